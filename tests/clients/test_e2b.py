#!/usr/bin/env python3
"""E2B's own packages against this server: the newest and an older one of each language."""

import base64
import hashlib
import json
import os
import pty
import select
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from client_case import CLIENTS, AtollServer, ClientCase, free_port, main, node_packages, python_with, releases, wait_until

JAVASCRIPT = ["2.51.0", "2.45.0"]
PYTHON = ["2.63.0", "2.45.1"]


def server_command(server):
    return [
        os.environ["ATOLL_BIN"], "serve", "--data-dir", str(server.data), "--run-dir", str(server.run),
        "--cgroup", server.cgroup, "--listen", server.listen, "--on-exit", "stop", "--reserve", "0", "--pool", "0",
    ]  # fmt: skip


class E2bCase(ClientCase):
    def environment(self):
        key = "e2b_" + self.api_key.encode().hex()
        return {"E2B_API_URL": self.url, "E2B_SANDBOX_URL": self.url, "E2B_API_KEY": key}

    def ask(self, method, path, body=None, headers=None):
        """The status and the JSON of an answer, whichever it is."""
        headers = {"X-API-Key": self.environment()["E2B_API_KEY"], **(headers or {})}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                text = response.read()
                return response.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text else None


class TestSdk(E2bCase):
    """Sandboxes, commands, terminals, files, watches, signed URLs, pauses, snapshots, metrics, paging, errors."""

    def test_javascript(self):
        for version in releases(JAVASCRIPT):
            with self.subTest(version):
                folder = node_packages(f"e2b-js-{version}", f"e2b@{version}")
                package = folder / "node_modules" / "e2b" / "dist" / "index.mjs"
                self.run_program(["node", CLIENTS / "e2b" / "session.mjs", package], self.environment())

    def test_python(self):
        for version in releases(PYTHON):
            with self.subTest(version):
                python = python_with(f"e2b-py-{version}", f"e2b=={version}")
                self.run_program([python, CLIENTS / "e2b" / "session.py"], self.environment())


class TestProtocol(E2bCase):
    """What the packages cannot show: refusals, and what strangers learn."""

    def create_sandbox(self, **body):
        status, answer = self.ask("POST", "/v2/sandboxes", {"templateID": "base", **body})
        self.assertEqual(status, 201, answer)
        return answer

    def daemon(self, sandbox, path, token=None, method="GET", body=None, **headers):
        headers = {"E2b-Sandbox-Id": sandbox, "E2b-Sandbox-Port": "49983", **headers}
        if token is not None:
            headers["X-Access-Token"] = token
        return self.ask(method, path, body, headers)

    def test_unsupported_fields_are_refused_by_name(self):
        for field, value in [
            ("mcp", {"server": {}}),
            ("iam", {"tokens": {"a": {}}}),
            ("volumeMounts", [{"name": "v", "path": "/v"}]),
            ("somethingNew", True),
        ]:
            with self.subTest(field):
                status, answer = self.ask("POST", "/v2/sandboxes", {"templateID": "base", field: value})
                self.assertIn(status, (400, 422, 501), answer)
                self.assertEqual(answer["code"], status)
                self.assertIn(field, answer["message"])

    def test_the_network_is_changed_while_it_runs(self):
        status, made = self.ask("POST", "/sandboxes", {"templateID": "base"})
        self.assertEqual(status, 201, made)
        policy = f"/v1/sandboxes/{made['sandboxID']}/network"
        key = {"Authorization": "Bearer " + self.api_key}
        self.assertEqual(self.ask("GET", policy, headers=key)[1]["policy"], "allow-all")
        update = {"allowOut": ["example.org"], "denyOut": ["0.0.0.0/0"]}
        self.assertEqual(self.ask("PUT", f"/sandboxes/{made['sandboxID']}/network", update)[0], 204)
        self.assertIn("example.org", json.dumps(self.ask("GET", policy, headers=key)[1]))
        status, _ = self.ask("PUT", f"/sandboxes/{made['sandboxID']}/network", {"allowOutt": []})
        self.assertEqual(status, 400)

    def test_missing_template_is_said(self):
        status, answer = self.ask("POST", "/v2/sandboxes", {"templateID": "nowhere"})
        self.assertEqual(status, 404, answer)
        self.assertIn("nowhere", answer["message"])

    def test_keys_in_both_forms_and_no_other(self):
        self.assertEqual(self.ask("GET", "/v2/sandboxes", headers={"X-API-Key": self.api_key})[0], 200)
        self.assertEqual(self.ask("GET", "/v2/sandboxes", headers={"X-API-Key": "e2b_00"})[0], 401)
        request = urllib.request.Request(self.url + "/v2/sandboxes")
        with self.assertRaises(urllib.error.HTTPError) as none:
            urllib.request.urlopen(request, timeout=30)
        self.assertEqual(none.exception.code, 401)

    def test_a_wrong_token_and_no_sandbox_look_the_same(self):
        box = self.create_sandbox()
        self.assertEqual(self.daemon(box["sandboxID"], "/health", box["envdAccessToken"])[0], 204)
        answers = [
            self.daemon(box["sandboxID"], "/health", "rt-wrong"),
            self.daemon(box["sandboxID"], "/health"),
            self.daemon("sb-none", "/health", box["envdAccessToken"]),
        ]
        for status, answer in answers:
            self.assertEqual(status, 502)
            self.assertEqual(answer["message"], "The sandbox was not found")

    def test_sandboxes_by_host(self):
        box = self.create_sandbox()
        host = f"49983-{box['sandboxID']}.{box['domain']}"
        headers = {"Host": host, "X-Access-Token": box["envdAccessToken"]}
        self.assertEqual(self.ask("GET", "/health", headers=headers)[0], 204)
        headers["Host"] = f"8080-{box['sandboxID']}.{box['domain']}"
        status, answer = self.ask("GET", "/health", headers=headers)
        self.assertEqual(status, 502)
        self.assertIn("port is not open", answer["message"])

    def test_a_token_is_for_its_own_sandbox(self):
        one, other = self.create_sandbox(), self.create_sandbox()
        self.assertEqual(self.daemon(other["sandboxID"], "/health", one["envdAccessToken"])[0], 502)

    def test_expired_and_altered_signatures(self):
        box = self.create_sandbox()

        def link(path, operation, expiration, signed=None):
            text = f"{signed or path}:{operation}::{box['envdAccessToken']}:{expiration}"
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            query = urllib.parse.urlencode(
                {"path": path, "signature": "v1_" + digest, "signature_expiration": expiration}
            )
            return "/files?" + query

        later = 4_000_000_000
        self.assertEqual(self.daemon(box["sandboxID"], link("/etc/hostname", "read", 1))[0], 401)
        self.assertEqual(self.daemon(box["sandboxID"], link("/etc/hostname", "write", later))[0], 502)
        altered = link("/etc/shadow", "read", later, signed="/etc/hostname")
        self.assertEqual(self.daemon(box["sandboxID"], altered)[0], 502)

    def test_the_time_to_live_ends_it(self):
        box = self.create_sandbox(timeout=1)
        wait_until(lambda: self.ask("GET", f"/sandboxes/{box['sandboxID']}")[0] == 404, 15, "it is gone")
        self.assertEqual(self.daemon(box["sandboxID"], "/health", box["envdAccessToken"])[0], 502)

    def test_an_auto_paused_one_keeps_its_processes_and_wakes(self):
        box = self.create_sandbox(timeout=2, autoPause=True, autoResume={"enabled": True})
        path = f"/sandboxes/{box['sandboxID']}"
        wait_until(lambda: self.ask("GET", path)[1]["state"] == "paused", 15, "it is paused")
        self.assertEqual(self.ask("GET", path)[1]["pauseMode"], "full")
        self.assertEqual(self.daemon(box["sandboxID"], "/health", box["envdAccessToken"])[0], 204)
        self.assertEqual(self.ask("GET", path)[1]["state"], "running")

    def test_idempotency_keys(self):
        headers = {"Idempotency-Key": "the-same"}
        first = self.ask("POST", "/v2/sandboxes", {"templateID": "base"}, headers)[1]
        second = self.ask("POST", "/v2/sandboxes", {"templateID": "base"}, headers)[1]
        self.assertEqual(first["sandboxID"], second["sandboxID"])

    def test_the_key_is_shown_on_terminals_only(self):
        self.assertNotIn("E2B_API_KEY", self.server.log.read_text())
        server = AtollServer(listen=f"127.0.0.1:{free_port()}")
        self.addCleanup(server.destroy)
        terminal, other_end = pty.openpty()
        process = subprocess.Popen(server_command(server), stdin=other_end, stdout=other_end, stderr=other_end)
        server.process = process
        os.close(other_end)
        shown = b""
        while b"E2B_API_KEY=e2b_" not in shown:
            readable, _, _ = select.select([terminal], [], [], 30)
            self.assertTrue(readable, shown)
            shown += os.read(terminal, 65536)
        self.assertIn(b"E2B_SANDBOX_URL=http://" + server.listen.encode(), shown)
        server.use()
        self.assertEqual(server.stop(), 0)
        os.close(terminal)
        self.server.use()

    def test_audited_under_the_same_rules(self):
        box = self.create_sandbox()

        def lines():
            return "".join(path.read_text() for path in (self.server.data / "audit").glob("*"))

        wait_until(lambda: box["sandboxID"] in lines(), 10, "what came of it is written down")
        self.assertIn("POST /v2/sandboxes", lines())


if __name__ == "__main__":
    main()
