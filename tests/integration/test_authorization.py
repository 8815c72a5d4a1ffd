#!/usr/bin/env python3
"""Who may do what: every operation that the server describes, as every kind of caller.

What is expected is written down here once more (`Caller.expected`), from docs/decisions/0010, and not taken from the server.
"""

import base64
import json

import fixture
from contract import Port, operations
from fixture import AtollCase, http, unique, wait_until

ALLOWED, REFUSED, FORBIDDEN, HIDDEN = "allowed", "401", "403", "404"
READS = ("read", "runtime-read")
SESSION = "example"  # the connection id in the description
# They change what the other requests need: an allowed one gets a sandbox of its own.
LIFECYCLE = {
    "deleteSandbox", "stopSandbox", "resumeSandbox", "pauseSandbox", "unpauseSandbox", "restoreSandbox", "snapshotSandbox",
    "createSandboxSnapshot", "forkSandbox", "undoSandbox",
}  # fmt: skip


def nothing(_query, _headers):
    pass


def in_header(token):
    return lambda _query, headers: headers.update({"Authorization": f"Bearer {token}"})


def in_query(token):
    return lambda query, _headers: query.update({"token": token})


def subprotocol(token):
    return "bearer." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def in_subprotocol(token):
    return lambda _query, headers: headers.update({"Sec-WebSocket-Protocol": f"atoll, {subprotocol(token)}"})


class Caller:
    def __init__(self, name, credential, expected):
        self.name, self.credential, self.expected = name, credential, expected


# What is expected of an operation that is not open to all.


def stranger(_operation):
    return REFUSED


def admin(_operation):
    return ALLOWED


def member(operation):
    return FORBIDDEN if operation.access == "admin" else ALLOWED


def reader(operation):
    return ALLOWED if operation.access in READS else FORBIDDEN


def other_tenant(operation):
    return HIDDEN if operation.of_sandbox and operation.access != "admin" else member(operation)


def other_reader(operation):
    return HIDDEN if operation.of_sandbox and operation.access in READS else reader(operation)


def of_one_sandbox(allowed):
    """A token: good for nothing where no sandbox is named, and for the runtime only where one is."""

    def expected(operation):
        if not operation.of_sandbox:
            return REFUSED
        return ALLOWED if operation.access in allowed else FORBIDDEN

    return expected


scoped_reader = of_one_sandbox(["runtime-read"])
scoped_session = of_one_sandbox(["runtime-terminal"])
runtime_bearer = of_one_sandbox(["runtime-read", "runtime-write", "runtime-terminal"])


class Authorization(AtollCase):
    server_options = {"listen": "127.0.0.1:0"}

    def setUp(self):
        super().setUp()
        self.port = Port(self.server_url())
        self.admin_key = (self.server.data / "api-key").read_text().strip()
        self.operations = operations(self.port.get("/openapi.json").json)
        self.member_key = self.make_key("alpha", "member")
        self.box = self.make_box(self.member_key)
        self.pid = self.spawn()
        self.values = {"id": self.box["id"], "pid": self.pid}

    def server_url(self):
        lines = [json.loads(line) for line in fixture.read_text(self.server.log).splitlines() if '"url"' in line]
        return lines[-1]["url"]

    # Things and credentials.

    def ask(self, key, method, path, body, status):
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        reply = self.port.send(method, path, json.dumps(body).encode(), headers)
        self.assertEqual(reply.status, status, reply)
        return reply.json

    def make_key(self, tenant, role, **more):
        body = {"name": unique(role), "tenant": tenant, "role": role, **more}
        return self.ask(self.admin_key, "POST", "/v1/keys", body, 201)["key"]

    def make_box(self, key, **body):
        return self.ask(key, "POST", "/v1/sandboxes", body, 201)

    def spawn(self):
        path = f"/v1/sandboxes/{self.box['id']}/runtime/process/spawn"
        body = {"executable": "/bin/sleep", "args": ["1000"]}
        return self.ask(self.member_key, "POST", path, body, 200)["data"]["pid"]

    def make_token(self, box, scope, **more):
        path = f"/v1/sandboxes/{box['id']}/tokens"
        return self.ask(self.member_key, "POST", path, {"scope": scope, **more}, 201)["token"]

    def revoked_key(self):
        key = self.make_key("alpha", "admin")
        self.assertEqual(self.port.get("/v1/keys", Authorization=f"Bearer {key}").status, 200)
        self.ask(self.admin_key, "DELETE", f"/v1/keys/{key.split('-')[2]}", {}, 200)
        return key

    def expired_key(self):
        key = self.make_key("alpha", "admin", expiresInSeconds=1)
        wait_until(lambda: self.port.get("/v1/keys", Authorization=f"Bearer {key}").status == 401, 5, "the key expires")
        return key

    def deleted_box(self):
        """The tokens of a sandbox whose name another one has now."""
        name = unique("again")
        old = self.make_box(self.member_key, name=name)
        tokens = self.make_token(old, "read-only"), old["connection"]["authToken"]
        self.ask(self.member_key, "DELETE", f"/v1/sandboxes/{old['id']}", {}, 200)
        return old, self.make_box(self.member_key, name=name), tokens

    # The matrix.

    def expected(self, caller, operation):
        return ALLOWED if operation.access == "open" else caller.expected(operation)

    def send(self, caller, operation, **values):
        values = {**self.values, **values} if operation.of_sandbox else {}
        fields = {"token": self.fresh_token} if operation.id == "refreshToken" else {}
        return self.port.call(operation, values, caller.credential, fields)

    def check_allowed(self, caller, operation):
        values = {}
        if operation.id in LIFECYCLE:
            values["id"] = self.make_box(self.member_key)["id"]
        reply = self.send(caller, operation, **values)
        self.assertNotIn(reply.status, (401, 403), reply)
        self.assertIn(reply.status, operation.statuses, reply)
        self.assertTrue(reply.status < 500 or operation.entry["tags"] == ["unbuilt"], reply)
        if operation.id in LIFECYCLE:
            self.port.send("DELETE", f"/v1/sandboxes/{values['id']}", headers={"Authorization": f"Bearer {self.admin_key}"})

    def check_denied(self, caller, operation, status):
        reply = self.send(caller, operation)
        self.assert_error(reply, status, {401: "AUTH_ERROR", 403: "FORBIDDEN"}[status])

    def check_hidden(self, caller, operation):
        """Nothing distinguishes what is another's from what is nowhere."""
        reply, missing = self.send(caller, operation), self.send(caller, operation, id="nowhere")
        self.assert_error(reply, 404, "NOT_FOUND")
        self.assertEqual(reply.status, missing.status)
        self.assertEqual(reply.body.replace(self.box["id"].encode(), b"nowhere"), missing.body)
        names = [{name.lower() for name in one.headers} for one in (reply, missing)]
        self.assertEqual(*names)

    def check_all(self, *callers):
        self.fresh_token = self.make_token(self.box, "read-only")
        seen = set()
        for caller in callers:
            for operation in self.operations:
                expected = self.expected(caller, operation)
                seen.add(expected)
                with self.subTest(caller=caller.name, operation=str(operation), expected=expected):
                    if expected == ALLOWED:
                        self.check_allowed(caller, operation)
                    elif expected == HIDDEN:
                        self.check_hidden(caller, operation)
                    else:
                        self.check_denied(caller, operation, int(expected))
        info = self.ask(self.member_key, "GET", f"/v1/sandboxes/{self.box['id']}", {}, 200)
        self.assertEqual(info["status"], "running", "nobody who may not has touched it")
        return seen

    def test_strangers(self):
        self.check_all(
            Caller("nobody", nothing, stranger),
            Caller("wrong key", in_header(self.admin_key[:-1] + ("A" if self.admin_key[-1] != "A" else "B")), stranger),
            Caller("expired key", in_header(self.expired_key()), stranger),
            Caller("revoked key", in_header(self.revoked_key()), stranger),
            Caller("key in the URL", in_query(self.admin_key), stranger),
            Caller("basic", lambda _, headers: headers.update(Authorization=f"Basic {self.admin_key}"), stranger),
        )
        self.assertTrue(self.process_runs())

    def process_runs(self):
        path = f"/v1/sandboxes/{self.box['id']}/runtime/process/{self.pid}"
        return self.ask(self.member_key, "GET", path, {}, 200)["data"]["running"]

    def test_keys_of_the_tenant(self):
        seen = self.check_all(Caller("read-only key", in_header(self.make_key("alpha", "read-only")), reader))
        self.assertTrue(self.process_runs())
        seen |= self.check_all(Caller("member", in_header(self.member_key), member))
        self.assertEqual(seen, {ALLOWED, FORBIDDEN})

    def test_administrators(self):
        self.check_all(Caller("admin", in_header(self.admin_key), admin))
        self.pid = self.values["pid"] = self.spawn()
        self.check_all(Caller("key as a subprotocol", in_subprotocol(self.admin_key), admin))

    def test_other_tenants(self):
        key = self.make_key("beta", "member")
        seen = self.check_all(
            Caller("member of another tenant", in_header(key), other_tenant),
            Caller("reader of another tenant", in_header(self.make_key("beta", "read-only")), other_reader),
        )
        self.assertEqual(seen, {ALLOWED, FORBIDDEN, HIDDEN})
        self.assertTrue(self.process_runs())

    def test_other_tenants_see_nothing_in_lists(self):
        key = in_header(self.make_key("beta", "member"))
        self.ask(self.member_key, "PUT", "/v1/secrets/ALPHA", {"value": "hidden"}, 200)
        for operation in self.operations:
            if operation.method == "GET" and operation.access == "read" and not operation.of_sandbox:
                with self.subTest(operation=str(operation)):
                    body = self.port.call(operation, self.values, key).body
                    for text in (self.box["id"], "alpha", "ALPHA"):
                        self.assertNotIn(text.encode(), body)

    def test_the_tenant_header_is_for_administrators(self):
        path = f"/v1/sandboxes/{self.box['id']}"
        for key, tenant, status in (
            (self.make_key("beta", "member"), "alpha", 403),
            (self.make_key("beta", "read-only"), "alpha", 403),
            (self.make_key("beta", "member"), "beta", 404),
            (self.member_key, "alpha", 200),
            (self.admin_key, "alpha", 200),
            (self.admin_key, "beta", 404),
            (self.admin_key, "No Tenant", 400),
        ):
            with self.subTest(tenant=tenant, status=status):
                reply = self.port.send("GET", path, headers={"Authorization": f"Bearer {key}", "Atoll-Tenant": tenant})
                self.assertEqual(reply.status, status, reply)
        self.assertEqual(self.port.send("GET", path, headers={"Atoll-Tenant": "alpha"}).status, 401)

    def test_scoped_tokens(self):
        read, project = self.make_token(self.box, "read-only"), self.make_token(self.box, "project")
        session = self.make_token(self.box, "session", sessionId=SESSION)
        seen = self.check_all(
            Caller("read-only token", in_header(read), scoped_reader),
            Caller("project token", in_header(project), scoped_reader),
            Caller("session token", in_header(session), scoped_session),
            Caller("token for another session", in_header(self.make_token(self.box, "session", sessionId="other")), of_one_sandbox([])),
            Caller("read-only token in the URL", in_query(read), scoped_reader),
            Caller("session token in the URL", in_query(session), scoped_session),
            Caller("session token as a subprotocol", in_subprotocol(session), scoped_session),
        )
        self.assertEqual(seen, {ALLOWED, FORBIDDEN, REFUSED})
        self.assertTrue(self.process_runs())

    def test_tokens_for_other_sandboxes(self):
        other = self.make_box(self.member_key)
        old, again, (scoped, bearer) = self.deleted_box()
        callers = [
            Caller("read-only token of another", in_header(self.make_token(other, "read-only")), stranger),
            Caller("session token of another", in_header(self.make_token(other, "session", sessionId=SESSION)), stranger),
            Caller("runtime bearer of another", in_header(other["connection"]["authToken"]), stranger),
            Caller("token of a deleted one", in_header(scoped), stranger),
            Caller("runtime bearer of a deleted one", in_header(bearer), stranger),
        ]
        self.check_all(*callers)
        for target in (old["id"], again["id"], again["name"]):
            for token in (scoped, bearer):
                reply = self.port.get(f"/runtime/{target}/process", Authorization=f"Bearer {token}")
                self.assert_error(reply, 401, "AUTH_ERROR")
        self.assertTrue(self.process_runs())

    def test_runtime_bearers(self):
        bearer = self.box["connection"]["authToken"]
        self.check_all(Caller("runtime bearer in the URL", in_query(bearer), stranger))
        self.assertTrue(self.process_runs())
        self.check_all(Caller("runtime bearer", in_header(bearer), runtime_bearer))
        self.pid = self.values["pid"] = self.spawn()
        self.check_all(Caller("runtime bearer as a subprotocol", in_subprotocol(bearer), runtime_bearer))

    def test_the_installations_own_key_stays(self):
        """It stands in a file: to forget it until the next start would be no revocation."""
        own = next(key for key in self.ask(self.admin_key, "GET", "/v1/keys", {}, 200)["keys"] if key["id"] == "0" * 12)
        self.ask(self.make_key("alpha", "admin"), "DELETE", f"/v1/keys/{own['id']}", {}, 409)
        self.ask(self.admin_key, "GET", "/v1/whoami", {}, 200)

    def test_readers_are_not_told_the_bearer(self):
        key = self.make_key("alpha", "read-only")
        for path in ("/v1/sandboxes", f"/v1/sandboxes/{self.box['id']}"):
            body = self.port.get(path, Authorization=f"Bearer {key}").body
            self.assertIn(self.box["id"].encode(), body)
            self.assertNotIn(b"authToken", body)

    def test_the_subprotocol_that_is_answered(self):
        """A browser hangs up where it offered some and none is chosen."""
        token = self.make_token(self.box, "session", sessionId=SESSION)
        operation = next(one for one in self.operations if one.id == "openTerminalProxied")
        reply = self.port.call(operation, self.values, in_subprotocol(token))
        self.assertEqual((reply.status, reply.headers["Sec-WebSocket-Protocol"]), (101, "atoll"))
        alone = subprotocol(token)
        reply = self.port.call(operation, self.values, nothing, **{"Sec-WebSocket-Protocol": alone})
        self.assertEqual((reply.status, reply.headers["Sec-WebSocket-Protocol"]), (101, alone))
        reply = self.port.call(operation, self.values, in_header(token))
        self.assertEqual((reply.status, reply.headers["Sec-WebSocket-Protocol"]), (101, None))

    def test_the_unix_socket_is_the_operators(self):
        self.assertEqual(http("GET", "/v1/whoami").json["role"], "admin")
        reply = http("GET", "/v1/whoami", headers={"Authorization": f"Bearer {self.member_key}"})
        self.assertEqual((reply.json["role"], reply.json["tenant"]), ("member", "alpha"))
        self.assertEqual(http("GET", "/v1/whoami", headers={"Authorization": "Bearer wrong"}).status, 401)


if __name__ == "__main__":
    fixture.main()
