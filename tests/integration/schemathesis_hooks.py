"""What test_properties.py has schemathesis check besides its own rules."""

import schemathesis

UNSUPPORTED = 501  # a stable answer of its own, and no fault
UNAVAILABLE = 503
MOST_FORKS = 4


@schemathesis.hook
def before_call(_context, case, **_):
    """A few forks say what a thousand would, which take a sanitized server minutes. Wrong numbers stay as they are."""
    count = case.body.get("count") if isinstance(case.body, dict) else None
    if case.path.endswith("/fork") and isinstance(count, int) and MOST_FORKS < count <= 1000:
        case.body["count"] = MOST_FORKS


@schemathesis.check
def no_fault(_context, response, case):
    """Whatever is asked, the server does not fail."""
    registry_away = response.status_code == UNAVAILABLE and case.path == "/v1/templates/import"
    if response.status_code >= 500 and response.status_code != UNSUPPORTED and not registry_away:
        raise AssertionError(f"{case.method} {case.path}: {response.status_code}")


@schemathesis.check
def errors_have_one_shape(_context, response, _case):
    if response.status_code < 400:
        return
    body = response.json()
    assert body["success"] is False, body
    assert body["error"] == {name: body[name] for name in body["error"]}, body
    assert body["code"] and body["message"], body
