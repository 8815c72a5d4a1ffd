#!/usr/bin/env python3
"""Wrong input, limits that are reached, and things that break: typed errors, bounded memory, nobody else harmed."""

import base64
import http.client
import json
import os
import secrets
import signal
import subprocess
import unittest
import urllib.parse

import fixture
import product
from fixture import AtollCase, cli, http as request, in_parallel, raw_cli, rss_bytes, start_cli, unique, wait_until

MIB = 1 << 20


class Requests(AtollCase):
    def post(self, body, **options):
        return request("POST", "/v1/sandboxes", body, **options)

    def test_names_and_templates(self):
        self.assert_error(self.post({"templateId": "nothing"}), 404, "TEMPLATE_NOT_FOUND")
        self.assert_fails(cli("create", "--template", "nothing", check=False))
        self.create(name="web")
        self.assert_error(self.post({"name": "web"}), 409, "CONFLICT", "name")
        self.assertIn("web", self.assert_fails(cli("create", "--name", "web", check=False)))
        for name in ("", "Web", "a b", "-a", "a/b", "..", "x" * 65, "ä", "a\x00b", "a\n"):
            self.assert_error(self.post({"name": name}), 400, "VALIDATION_ERROR", "name")
        for name in ("../base", "", "a/b", "A"):
            reply = self.post({"templateId": name})
            self.assertIn(reply.status, (400, 404), reply)

    def test_sizes(self):
        for text in ("0", "-1", "1x", "1" + "0" * 30, "", "m", "1e9", "nan", "0m", "1.5.5g", "512", " 1m", "99999999999g"):
            with self.subTest(memory=text):
                self.assert_fails(cli("create", "--memory", text, check=False), 2)
        for option, text in (("--cpu", "0"), ("--cpu", "-1"), ("--cpu", "x"), ("--pids", "-5"), ("--disk", "1y")):
            self.assert_fails(cli("create", option, text, check=False), 2)
        self.assert_fails(cli("create", "--memory", "1k", check=False))
        bad = {
            "memoryMB": [0, -1, 1e30, 10**30, "512", True, [], 7.9],
            "cpuCores": [0, -0.5, 1e9, "1"],
            "diskGB": [0, -1, 1e12, 0.01],
            "pids": [0, -1, 1.5, 10**30, "8"],
        }
        for field, values in bad.items():
            for value in values:
                with self.subTest(field=field, value=value):
                    reply = self.post({"resources": {field: value}})
                    self.assertEqual(reply.status, 400, reply)
                    self.assertTrue(any(field in name for name in reply.json["error"].get("fields", [])), reply)
        for text in (b'{"resources":{"memoryMB":NaN}}', b'{"resources":{"memoryMB":Infinity}}',
                     b'{"resources":{"memoryMB":1e999}}'):  # fmt: skip
            self.assertEqual(self.post(text).status, 400, text)
        for field in ("maxLifetimeSeconds", "idleTimeoutSeconds"):
            for value in (-1, 1.5, "1h", 10**30):
                self.assert_error(self.post({field: value}), 400, "VALIDATION_ERROR", field)

    def test_json(self):
        self.assert_error(self.post({"nmae": "x"}), 400, "VALIDATION_ERROR", "nmae")
        reply = self.post({"resources": {"memory": 1}})
        self.assertEqual(reply.status, 400)
        self.assertTrue(any("memory" in field for field in reply.json["error"]["fields"]), reply)
        for body in ({"name": 5}, {"name": ["a"]}, {"env": []}, {"env": {"A": 1}}, {"resources": "big"},
                     {"ephemeral": "yes"}, {"metadata": {"a": {}}}, {"pool": 1}, {"profile": "lax"}):  # fmt: skip
            with self.subTest(body=body):
                self.assert_error(self.post(body), 400, "VALIDATION_ERROR")
        for body in (b"", b"[]", b"5", b"null", b'"x"', b"{", b"{}}", b'{"name":"a","name":"b"}', b"\xff\xfe", b'{"a":}',
                     b"{'name':'x'}", b'{"name":"\xff"}', b'{"name":"a"} {}'):  # fmt: skip
            with self.subTest(body=body):
                reply = self.post(body)
                if body == b"":  # nothing said: a sandbox with the defaults
                    self.assertEqual(reply.status, 201)
                else:
                    self.assert_error(reply, 400, "VALIDATION_ERROR")
        self.assert_error(self.post(b'{"env":' + b"[" * 100000 + b"]" * 100000 + b"}"), 400, "VALIDATION_ERROR")
        self.assertEqual(len(self.server.list()), 1)

    def test_refused_when_half_made(self):
        """Who a user is, is known only inside: the sandbox that was taken for it goes, and another is made."""
        for _ in range(2):
            self.assert_error(self.post({"user": "no-such-user"}), 400, "VALIDATION_ERROR")
        self.assertEqual(self.server.list(), [])
        wait_until(self.server.settled, 15, "the pool is full again")

    def test_large_bodies(self):
        """The answer reaches also a client that has not sent everything when it comes."""
        for size in (2 * MIB, 64 * MIB):
            connection = product.UnixConnection(20)
            self.addCleanup(connection.close)
            connection.putrequest("POST", "/v1/sandboxes")
            connection.putheader("Content-Length", str(size))
            connection.endheaders()
            sent = 0
            try:
                while sent < size:
                    connection.send(b" " * MIB)
                    sent += MIB
            except (BrokenPipeError, ConnectionResetError):
                pass
            try:
                reply = connection.getresponse()
            except ConnectionResetError:
                self.fail(f"the connection was reset after {sent} of {size} bytes: the client cannot see the answer")
            self.assert_error(product.Reply(reply.status, reply.headers, reply.read()), 413, "PAYLOAD_TOO_LARGE")
        self.assertTrue(self.server.healthy())

    def test_exec_bodies(self):
        box = self.create()
        commands = "/terminals/commands"
        for body in ({}, {"command": ""}, {"executable": ""}, {"command": "a", "executable": "b"}, {"args": ["x"]},
                     {"command": "true", "args": ["x"]}, {"executable": "/bin/true", "args": "x"},
                     {"command": "true", "timeout": -1}, {"command": "true", "env": {"A=B": "x"}},
                     {"command": "true", "user": "no-such-user"}, {"command": "a\x00b"}, {"command": 5},
                     {"command": "true", "cwd": "/a\x00b"}, {"command": "true", "cwd": "/" + "x" * 5000}):  # fmt: skip
            with self.subTest(body=body):
                self.assert_error(box.runtime("POST", commands, body), 400, "VALIDATION_ERROR")
        self.assert_error(box.runtime("POST", commands, {"command": "true", "shell": 1}), 400, "VALIDATION_ERROR", "shell")
        reply = box.runtime("POST", commands, {"command": "true", "cwd": "/nowhere"})
        self.assertIn(reply.status, (400, 404), reply)
        result = box.exec("/no/such/program")
        self.assertEqual(result["exitCode"], 127)
        self.assertIn("not found", result["stderr"])
        self.assertEqual(box.exec("/etc/passwd")["exitCode"], 126)
        reply = box.runtime("POST", "/process/spawn", {"executable": "/no/such/program"})
        self.assertEqual(reply.status, 404, reply)
        for pid in ("0", "-1", "abc", "99999999999999999999", "1.5"):
            self.assertIn(box.runtime("GET", f"/process/{pid}").status, (400, 404), pid)
        self.assert_error(box.runtime("GET", "/process/4000"), 404, "NOT_FOUND")

    def test_paths(self):
        box = self.create()
        for path in ("", "a\x00b", "/" + "x" * 5000, "/" + "x" * 300 + "/f"):
            with self.subTest(path=path[:20]):
                for verb in ("read", "write"):
                    body = {"path": path} if verb == "read" else {"path": path, "content": ""}
                    reply = box.runtime("POST", f"/files/{verb}", body)
                    self.assertTrue(400 <= reply.status < 500, reply)
        for path in ("%00", "a%00b", "x" * 5000, "%zz", "%2e%2e/%2e%2e/%2e%2e/nothing"):
            reply = box.runtime("GET", f"/fs/download/{path}")
            self.assertTrue(400 <= reply.status < 500, f"{path[:20]}: {reply}")
        self.assert_error(box.runtime("GET", "/fs/download/nowhere"), 404, "NOT_FOUND")
        self.assertTrue(400 <= box.runtime("GET", "/fs/download/etc").status < 500, "a directory is no file")
        self.assertEqual(box.runtime("POST", "/files/write", {"path": "/tmp/x", "content": "###", "encoding": "base64"}).status, 400)
        self.assertEqual(box.runtime("POST", "/files/write", {"path": "/tmp/x", "content": "a", "mode": "rwx"}).status, 400)
        self.assertEqual(box.runtime("POST", "/files/read", {"path": "/etc/passwd", "encoding": "latin1"}).status, 400)
        box.exec("/bin/sh", "-c", "echo secret > /tmp/s; chmod 600 /tmp/s")
        done = raw_cli("exec", "-u", "user", box.id, "--", "cat", "/tmp/s")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"Permission denied", done.stderr)

    def test_unreadable_files(self):
        """For root in a sandbox few files are: those the kernel refuses."""
        box = self.create()
        for path in ("/proc/1/mem", "/proc/kcore", "/proc/kmsg", "/dev/zero", "/workspace"):
            with self.subTest(path=path):
                reply = box.runtime("POST", "/files/read", {"path": path}, timeout=10)
                self.assertTrue(400 <= reply.status < 500, reply)
                self.assertTrue(reply.json["message"])
                self.assert_fails(cli("cat", f"{box.id}:{path}", check=False, timeout=10))

    def test_routes(self):
        box = self.create()
        for method, path, allowed in (
            ("PUT", "/v1/sandboxes", {"GET", "POST"}), ("POST", "/health", {"GET"}), ("POST", box.path(), {"GET", "PATCH", "DELETE"}),
            ("GET", box.path("/stop"), {"POST"}), ("DELETE", box.path("/runtime/files/read"), {"POST"}),
            ("BREW", "/v1/sandboxes", {"GET", "POST"}),
        ):  # fmt: skip
            with self.subTest(method=method, path=path):
                reply = request(method, path)
                self.assertEqual(reply.status, 405, reply)
                self.assertLessEqual(allowed, set(reply.headers["Allow"].replace(" ", "").split(",")))
                self.assertFalse(reply.json["success"])
        for path in ("/", "/v3/sandboxes", "/v1/nothing", "/v1/sandboxes/x/y/z", box.path("/runtime/nothing")):
            reply = request("GET", path)
            self.assert_error(reply, 404, "NOT_FOUND")
            self.assertIn("application/json", reply.headers["Content-Type"])
        for path in ("/v1/sandboxes/nobody", "/v1/sandboxes/..%2f..", "/v1/sandboxes/" + "x" * 300):
            self.assertEqual(request("GET", path).status, 404, path)
        for query in ("limit=-1", "limit=x", "offset=1.5"):
            self.assertEqual(request("GET", "/v1/sandboxes?" + query).status, 400, query)

    def test_states(self):
        box = self.create()
        pid = box.spawn("/bin/sleep", "100")["pid"]
        other = self.create()
        self.assert_error(other.runtime("GET", f"/process/{pid}"), 404, "NOT_FOUND")
        self.assert_error(other.runtime("DELETE", f"/process/{pid}"), 404, "NOT_FOUND")
        body = {"command": "true"}
        request("POST", box.path("/pause"))
        self.assert_error(box.runtime("POST", "/terminals/commands", body), 409, "INVALID_STATE")
        request("POST", box.path("/unpause"))
        self.assertTrue(box.process(pid)["running"])
        request("POST", box.path("/stop"))
        self.assert_error(box.runtime("POST", "/terminals/commands", body), 409, "INVALID_STATE")
        self.assert_error(box.runtime("POST", "/files/read", {"path": "/etc/hosts"}), 409, "INVALID_STATE")
        self.assert_error(request("POST", box.path("/pause")), 409, "INVALID_STATE")
        self.assertNotIn("memoryBytes", request("GET", box.path("/usage")).json)
        box.delete()
        for method, path in (("POST", "/runtime/terminals/commands"), ("POST", "/stop"), ("POST", "/resume"),
                             ("DELETE", ""), ("GET", "/usage"), ("POST", "/pause")):  # fmt: skip
            self.assert_error(request(method, box.path(path), body if "commands" in path else None), 404, "NOT_FOUND")

    def test_unknown_status(self):
        box = self.create()
        for path in (box.path("/wait?timeoutMs=1&status="), "/v1/sandboxes?status="):
            for status in ("nonsense", "", "Running", "running,stopped"):
                self.assert_error(request("GET", path + status), 400, "VALIDATION_ERROR", "status")
        self.assertEqual(request("GET", box.path("/wait?status=running")).status, 200)
        self.assert_error(request("GET", box.path("/wait?timeoutMs=1&status=provisioning")), 408, "TIMEOUT")
        self.assertEqual(len(request("GET", "/v1/sandboxes?status=stopped&status=running").json["sandboxes"]), 1)

    def test_idempotency(self):
        key = unique("key")
        first = self.post({"idempotencyKey": key})
        again = self.post({"idempotencyKey": key})
        self.assertEqual((first.status, again.json["id"]), (201, first.json["id"]))
        self.assertIn(again.status, (200, 201))
        key = unique("key")
        replies = in_parallel([lambda: self.post({"idempotencyKey": key})] * 16)
        self.assertEqual(len({reply.json["id"] for reply in replies}), 1, replies)
        self.assertEqual(cli("create", "--key", key).stdout.strip(), replies[0].json["id"])
        self.assertEqual(len(self.server.list()), 2)
        self.server.kill("server")
        self.assertEqual(self.post({"idempotencyKey": key}).json["id"], replies[0].json["id"], "also after a restart")

    def test_one_winner(self):
        for _ in range(3):
            name = unique("name")
            replies = in_parallel([lambda name=name: self.post({"name": name})] * 12)
            self.assertEqual(sorted(reply.status for reply in replies), [201] + [409] * 11)
            self.assertEqual(len([row for row in self.server.list() if row["name"] == name]), 1)

    def test_malformed_http(self):
        import socket

        for raw in (b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x00\xa5",
                    b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                    b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                    b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
                    b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 200000 + b"\r\n\r\n"):  # fmt: skip
            with self.subTest(raw=raw[:60]), socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(10)
                peer.connect(self.server.socket)
                try:
                    peer.sendall(raw)
                    peer.shutdown(socket.SHUT_WR)
                    answer = peer.recv(4096)
                except (BrokenPipeError, ConnectionResetError):
                    continue
                self.assertFalse(answer.startswith(b"HTTP/1.1 2"), answer)
                self.assertFalse(answer.startswith(b"HTTP/1.1 5"), answer) if b"9.9" not in raw else None
        self.assertTrue(self.server.healthy())


class Keys(AtollCase):
    server_options = {"listen": "127.0.0.1:0"}

    def get(self, path, key=None):
        lines = [json.loads(line) for line in fixture.read_text(self.server.log).splitlines() if '"url"' in line]
        address = urllib.parse.urlparse(lines[-1]["url"])
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
        connection.request("GET", path, headers={} if key is None else {"Authorization": key})
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, body

    def test_tcp_needs_the_key(self):
        key = (self.server.data / "api-key").read_text().strip()
        self.assertEqual((self.server.data / "api-key").stat().st_mode & 0o007, 0, "not for others")
        for bad in (None, "", "Bearer", "Bearer ", "Bearer wrong", f"Bearer {key}x", f"Bearer {key[:-1]}", key, f"Basic {key}"):
            with self.subTest(key=bad):
                status, body = self.get("/v1/sandboxes", bad)
                self.assertEqual(status, 401, body)
                self.assertEqual(json.loads(body)["code"], "AUTH_ERROR")
                self.assertNotIn(key.encode(), body)
        for scheme in ("Bearer", "bearer", "BEARER"):  # a scheme's name has no case
            self.assertEqual(self.get("/v1/sandboxes", f"{scheme} {key}")[0], 200)
        self.assertEqual(self.get("/health")[0], 200)
        for path in ("/v1/system", "/v1/templates", "/v1/sandboxes/x", "/v1/sandboxes/x/runtime/process"):
            self.assertEqual(self.get(path)[0], 401, path)


class Output(AtollCase):
    def test_binary(self):
        box = self.create()
        data = bytes(range(256)) * 4096
        box.write("/tmp/blob", data)
        self.assertEqual(raw_cli("exec", box.id, "--", "cat", "/tmp/blob").stdout, data)
        pid = box.spawn("/bin/sh", "-c", "cat /tmp/blob; cat /tmp/blob >&2")["pid"]
        box.wait(pid)
        self.assertEqual(box.output(pid), data)
        self.assertEqual(box.output(pid, "stderr"), data)
        self.assertEqual(box.output(pid, offset=1000), data[1000:])
        # JSON cannot hold it: the answer is still JSON, with replacements.
        result = box.exec("/usr/bin/head", "-c", "256", "/tmp/blob")
        self.assertTrue(result["stdout"].startswith("\x00\x01\x02"))
        self.assertEqual(box.read_bytes("/tmp/blob"), data)
        self.assertEqual(box.download("/tmp/blob").body, data)

    def test_a_line_of_one_gigabyte(self):
        box = self.create()
        agent, server = self.server.agent_pid(box.id), self.server.server_pid()
        before = rss_bytes(agent), rss_bytes(server)
        size = 1 << 30
        script = f"printf HEAD; head -c {size} /dev/zero | tr '\\0' x; printf TAIL"
        pid = box.spawn("/bin/sh", "-c", script)["pid"]
        peak = [0, 0]

        def ended():
            peak[0] = max(peak[0], rss_bytes(agent) - before[0])
            peak[1] = max(peak[1], rss_bytes(server) - before[1])
            return not box.process(pid)["running"]

        wait_until(ended, 60, "a gigabyte was written")
        self.assertEqual(box.process(pid)["stdoutBytes"], size + 8)
        text = box.output(pid)
        self.assertTrue(text.startswith(b"HEADxxx") and text.endswith(b"xxxTAIL"))
        self.assertLess(len(text), 16 * MIB)
        with box.stream(f"/process/{pid}/logs?follow=true") as reply:
            lost = kept = 0
            for name, event in fixture.events(reply):
                if name == "lost":
                    lost += event["bytes"]
                elif name == "stdout":
                    kept += len(event["data"])
                elif name == "exit":
                    break
        self.assertEqual(lost + kept, size + 8, "what is lost is counted")
        self.assertEqual(kept, len(text))
        ended()
        for name, grown in zip(("agent", "server"), peak):
            self.assertLess(grown, 64 * MIB, f"the {name} grew by {grown >> 20} MiB")

    def test_a_large_line_through_exec(self):
        box = self.create()
        server = self.server.server_pid()
        before = rss_bytes(server)
        result = box.exec("/bin/sh", "-c", "printf HEAD; head -c 200000000 /dev/zero | tr '\\0' x; printf TAIL")
        text = result["stdout"]
        self.assertTrue(text.startswith("HEADxx") and text.endswith("xxTAIL"))
        self.assertEqual(len(text) + result["stdoutLost"], 200000008)
        self.assertLess(rss_bytes(server) - before, 64 * MIB)

    def test_closed_pipe(self):
        box = self.create()
        for shell in (f"{fixture.BIN} exec {box.id} -- yes | head -1", f"{fixture.BIN} exec {box.id} -- cat /dev/zero | head -c 2"):
            done = subprocess.run(["bash", "-c", f"set -o pipefail; {shell}"], capture_output=True, timeout=30, check=False)
            self.assertIn(done.stdout, (b"y\n", b"\0\0"))
            self.assertEqual(done.returncode, 141, done.stderr)
            self.assertEqual(done.stderr, b"")
        wait_until(lambda: not any(row["running"] for row in box.runtime("GET", "/process").json["data"]), 10, "yes has ended")


class Limits(AtollCase):
    def test_full_disk(self):
        box, other = self.create(resources={"diskGB": 0.0625}), self.create()
        result = box.exec("/bin/sh", "-c", "head -c 100M /dev/zero > /workspace/big")
        self.assertNotEqual(result["exitCode"], 0)
        self.assertIn("Disk quota exceeded", result["stderr"])
        reply = box.write("/workspace/more", b"x" * 8 * MIB)
        self.assert_error(reply, 507, "NO_SPACE")
        self.assertEqual(box.runtime("GET", "/fs/exists/workspace/more").json["data"]["exists"], False)
        names = box.exec("/bin/ls", "-A", "/workspace")["stdout"].split()
        self.assertEqual(names, ["big"], "no temporary file stays")
        self.assertEqual(other.write("/workspace/more", b"x" * 8 * MIB).status, 200)
        box.exec("/bin/rm", "/workspace/big")
        self.assertEqual(box.write("/workspace/more", b"x" * 8 * MIB).status, 200)

    def test_out_of_memory(self):
        box, other = self.create(resources={"memoryMB": 128}), self.create()
        agent = self.server.agent_pid(box.id)
        sleeper = box.spawn("/bin/sleep", "100")["pid"]
        result = box.exec("/usr/bin/python3", "-c", "x = bytearray(600 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1")
        self.assertEqual((result["exitCode"], result["exitSignal"]), (137, 9), result)
        self.assertTrue(box.process(sleeper)["running"], "other processes are unharmed")
        self.assertTrue(fixture.alive(agent))
        self.assertEqual(box.info()["status"], "running")
        self.assertGreaterEqual(request("GET", box.path("/usage")).json["oomKills"], 1)
        self.assertEqual(box.exec("/bin/echo", "on")["stdout"], "on\n")
        self.assertEqual(other.exec("/bin/echo", "on")["stdout"], "on\n")

    def test_process_limit(self):
        box, other = self.create(resources={"pids": 24}), self.create()
        sleepers = []
        refused = None
        for _ in range(40):
            reply = box.runtime("POST", "/process/spawn", {"executable": "/bin/sleep", "args": ["100"]})
            if reply.status != 200:
                refused = reply
                break
            sleepers.append(reply.json["data"]["pid"])
        self.assertIsNotNone(refused, "40 processes under a limit of 24")
        self.assert_error(refused, 429, "QUOTA_EXCEEDED")
        self.assertGreater(len(sleepers), 10)
        self.assertTrue(all(box.process(pid)["running"] for pid in sleepers))
        self.assert_error(box.runtime("POST", "/terminals/commands", {"executable": "/bin/true"}), 429, "QUOTA_EXCEEDED")
        self.assert_fails(cli("exec", box.id, "--", "true", check=False))
        self.assertEqual(other.exec("/bin/echo", "on")["stdout"], "on\n")
        box.runtime("DELETE", f"/process/{sleepers[0]}")
        box.wait(sleepers[0])
        self.assertEqual(box.exec("/bin/echo", "on")["stdout"], "on\n")

    def test_files_at_the_process_limit(self):
        """The agent forks for a file operation: that fails in the same typed way, or works."""
        box = self.create(resources={"pids": 16})
        while box.runtime("POST", "/process/spawn", {"executable": "/bin/sleep", "args": ["100"]}).status == 200:
            pass
        reply = box.read("/etc/hosts")
        if reply.status != 200:
            self.assert_error(reply, 429, "QUOTA_EXCEEDED")

    def test_killed_agent(self):
        box, other = self.create(name="victim"), self.create()
        keep = other.spawn("/bin/sleep", "100")["pid"]
        box.exec("/bin/sh", "-c", "echo kept > /workspace/f")
        process = start_cli("exec", box.id, "--", "sh", "-c", "echo begun; sleep 100")
        self.assertEqual(process.stdout.readline(), b"begun\n")
        os.kill(self.server.agent_pid(box.id), signal.SIGKILL)
        wait_until(lambda: box.info()["status"] == "failed", 10, "the sandbox has failed")
        self.assertTrue(box.info()["reason"])
        _, error = process.communicate(timeout=20)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(len(error.splitlines()), 1, error)
        self.assertTrue(other.process(keep)["running"])
        reply = box.runtime("POST", "/terminals/commands", {"command": "true"})
        self.assert_error(reply, 409, "INVALID_STATE")
        self.assertEqual(request("POST", box.path("/resume")).status, 200)
        self.assertEqual(box.exec("/bin/cat", "/workspace/f")["stdout"], "kept\n", "files stay")
        os.kill(self.server.agent_pid(box.id), signal.SIGKILL)
        wait_until(lambda: box.info()["status"] == "failed", 10, "it has failed again")
        self.assertEqual(cli("rm", "victim").stdout, "victim\n")


if __name__ == "__main__":
    fixture.main()
