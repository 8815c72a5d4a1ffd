"""What test_properties.py has schemathesis check besides its own rules."""

import schemathesis

UNSUPPORTED = 501  # a stable answer of its own, and no fault


@schemathesis.check
def no_fault(_context, response, case):
    """Whatever is asked, the server does not fail."""
    if response.status_code >= 500 and response.status_code != UNSUPPORTED:
        raise AssertionError(f"{case.method} {case.path}: {response.status_code}")


@schemathesis.check
def errors_have_one_shape(_context, response, _case):
    if response.status_code < 400:
        return
    body = response.json()
    assert body["success"] is False, body
    assert body["error"] == {name: body[name] for name in body["error"]}, body
    assert body["code"] and body["message"], body
