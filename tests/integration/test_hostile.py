#!/usr/bin/env python3
"""Clients and sandboxes that mean harm: smuggled requests, slow and flooding clients, foreign web pages, forged log
entries, escapes for somebody's terminal. Sections I and J of the security reference; each beside a control."""

import contextlib
import json
import os
import re
import socket
import time
import unittest

import fixture
from fixture import MEMORY_FACTOR, AtollCase, AtollServer, Box, cli, http, in_parallel, raw_cli, rss_bytes, wait_until
from websocket import BINARY, PING, PONG, TEXT, Refused, WebSocket

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
MARK = "mark-7f3a9c"


class Raw:
    """A connection that says exactly what it is told to."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)
        return self

    def all(self):
        """Everything until the server hangs up."""
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while part := self.socket.recv(65536):
                data += part
        return data


def head(method, path, *fields):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *fields, "", ""]).encode()


class Smuggling(AtollCase):
    """I06: two readers of one stream must not disagree on where a request ends. What is not plain is refused, and
    nothing behind it is taken for a request."""

    HIDDEN = head("POST", "/v1/secrets", "Content-Type: application/json", "Content-Length: 33", "Connection: close")
    HIDDEN += b'{"name":"SMUGGLED","value":"xxx"}'

    def smuggled(self):
        names = [row["name"] for row in http("GET", "/v1/secrets").json["secrets"]]
        http("DELETE", "/v1/secrets/SMUGGLED")
        return "SMUGGLED" in names

    def test_a_plain_one_behind_another_is_served(self):
        with Raw(self.server.socket) as raw:
            answers = raw.send(head("GET", "/health") + self.HIDDEN).all()
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", answers), [b"200", b"201"])
        self.assertTrue(self.smuggled())

    def test_what_two_readers_read_differently(self):
        size = len(self.HIDDEN)
        chunked = "Transfer-Encoding: chunked"
        cases = {
            "CL.TE": head("POST", "/v1/sandboxes", f"Content-Length: {size + 5}", chunked) + b"0\r\n\r\n",
            "TE.CL": head("POST", "/v1/sandboxes", chunked, "Content-Length: 4") + b"0\r\n\r\n",
            "TE.TE": head("POST", "/v1/sandboxes", chunked, "Transfer-Encoding: x") + b"0\r\n\r\n",
            "xchunked": head("POST", "/v1/sandboxes", "Transfer-Encoding: xchunked") + b"0\r\n\r\n",
            "padded coding": head("POST", "/v1/sandboxes", "Transfer-Encoding: \x0bchunked") + b"0\r\n\r\n",
            "coding before a blank": head("POST", "/v1/sandboxes", "Transfer-Encoding : chunked") + b"0\r\n\r\n",
            "two lengths": head("POST", "/v1/sandboxes", "Content-Length: 0", f"Content-Length: {size}"),
            "list of lengths": head("POST", "/v1/sandboxes", f"Content-Length: 0, {size}"),
            "signed length": head("POST", "/v1/sandboxes", "Content-Length: +0"),
            "length in parts": head("POST", "/v1/sandboxes", "Content-Length: 0 0"),
            "bare LF": b"POST /v1/sandboxes HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
            "bare CR": b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nX: a\rContent-Length: 0\r\n\r\n",
            "NUL": b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nX: a\0\r\nContent-Length: 0\r\n\r\n",
            "folded": b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nX: a\r\n Content-Length: 0\r\n\r\n",
            "chunk size overflow": head("POST", "/v1/sandboxes", chunked) + b"10000000000000000\r\n",
            "chunk size sign": head("POST", "/v1/sandboxes", chunked) + b"-1\r\n",
            "chunk without its end": head("POST", "/v1/sandboxes", chunked) + b"1\r\nxx0\r\n\r\n",
            "chunk of bare LF": head("POST", "/v1/sandboxes", chunked) + b"0\n\n",
            "a long chunk extension": head("POST", "/v1/sandboxes", chunked) + b"0;" + b"x" * (1 << 20) + b"\r\n\r\n",
        }
        for name, data in cases.items():
            with self.subTest(case=name), Raw(self.server.socket) as raw:
                answers = raw.send(data + self.HIDDEN).all()
                self.assertRegex(answers, rb"^HTTP/1.1 (4\d\d|501) ")
                self.assertEqual(answers.count(b"HTTP/1.1 "), 1, answers)
                self.assertFalse(self.smuggled())
        self.assertEqual(self.server.list(), [])

    def test_a_body_that_nobody_asked_for_is_no_request(self):
        with Raw(self.server.socket) as raw:
            data = head("GET", "/health", f"Content-Length: {len(self.HIDDEN)}") + self.HIDDEN
            answers = raw.send(data + head("GET", "/health", "Connection: close")).all()
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", answers), [b"200", b"200"])
        self.assertFalse(self.smuggled())

    def test_a_client_cannot_talk_itself_into_more(self):
        """No header of a client's says who it is or where it comes from."""
        key = (self.server.data / "api-key").read_text().strip()
        fields = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=unix:", "X-Real-IP": "::1", "Connection": "Authorization"}
        self.assertEqual(http("GET", "/v1/whoami", headers={**fields, "Authorization": f"Bearer {key}"}).status, 200)
        self.assertEqual(http("GET", "/v1/whoami", headers={**fields, "Authorization": "Bearer no"}).status, 401)

    def test_the_second_protocol_is_not_spoken(self):
        """I08: no frames of HTTP/2 are ever read, so none of its floods."""
        with Raw(self.server.socket) as raw:
            self.assertRegex(raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" * 1000).all(), rb"^HTTP/1.1 (400|505) ")
        reply = http("GET", "/health", headers={"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": ""})
        self.assertEqual(reply.status, 200, "an upgrade that is not offered is no reason to refuse")


class Slow(AtollCase):
    """I07: how long each is borne with is a matter of the unit tests (http/); here, that others do not wait for them."""

    CLIENTS = 400

    def crowd(self, data):
        peers = []
        for _ in range(self.CLIENTS):
            peer = self.enter(Raw(self.server.socket))
            peer.send(data)
            peers.append(peer)
        return peers

    def enter(self, peer):
        self.addCleanup(peer.socket.close)
        return peer

    def assert_served(self, box):
        begin = time.monotonic()
        for _ in range(20):
            self.assertEqual(box.exec("/bin/echo", "x", timeout=5)["stdout"], "x\n")
        self.assertLess(time.monotonic() - begin, 5)

    def test_half_requests(self):
        box = self.create()
        server = self.server.server_pid()
        before = rss_bytes(server)
        halves = {
            "half a head": b"GET /health HT",
            "a head without its end": b"GET /health HTTP/1.1\r\nHost: x\r\n",
            "half a body": head("POST", "/v1/sandboxes", "Content-Length: 1000000") + b"{",
            "half a chunk": head("POST", "/v1/sandboxes", "Transfer-Encoding: chunked") + b"f4240\r\n{",
        }
        for name, data in halves.items():
            with self.subTest(half=name):
                self.crowd(data)
                self.assert_served(box)
        self.assertLess(rss_bytes(server) - before, MEMORY_FACTOR * len(halves) * self.CLIENTS * (80 << 10))

    def test_answers_that_nobody_reads(self):
        box = self.create()
        box.exec("/bin/sh", "-c", "head -c 30000000 /dev/zero > /big")
        server = self.server.server_pid()
        before = rss_bytes(server)
        for peer in self.crowd(head("GET", box.path("/runtime/fs/download/big")))[:1]:
            self.assertRegex(peer.socket.recv(100), rb"^HTTP/1.1 200 ", "it has begun")
        self.assert_served(box)
        self.assertLess(rss_bytes(server) - before, MEMORY_FACTOR * self.CLIENTS * (300 << 10))


class Frames(AtollCase):
    """I08: WebSocket frames that no client sends."""

    def terminal(self, box, **options):
        ws = WebSocket(self.server.socket, box.path("/runtime/terminals/t/ws"), **options)
        self.addCleanup(ws.socket.close)
        ws.send_json(type="init", cols=80, rows=24)
        self.assertEqual(ws.receive()[0], TEXT)
        return ws

    def code_of_end(self, ws):
        """How the server closes; None where it hangs up without a word."""
        with contextlib.suppress(ConnectionError):
            while ws.receive() is not None:
                pass
        return ws.closed

    def test_a_ping_is_answered(self):
        ws = self.terminal(self.create())
        ws.send_frame(PING, b"hello")
        while (first := ws.take(2))[0] & 15 != PONG:
            ws.take(first[1])
        self.assertEqual(ws.take(5), b"hello")

    def test_broken_frames(self):
        box = self.create()
        mask = b"\0\0\0\0"
        protocol, payload, big = {1002}, {1007}, {1009, 1002}
        cases = {
            "no mask": (b"\x81\x02{}", protocol),
            "reserved bit, as of deflate": (b"\xc1\x82" + mask + b"{}", protocol),
            "reserved opcode": (b"\x83\x80" + mask, protocol),
            "reserved control opcode": (b"\x8b\x80" + mask, protocol),
            "continuation of nothing": (b"\x80\x80" + mask, protocol),
            "text within text": (b"\x01\x81" + mask + b"{" + b"\x81\x81" + mask + b"}", protocol),
            "ping in parts": (b"\x09\x80" + mask, protocol),
            "a long ping": (b"\x89\xfe\x00\x7e" + mask + b"x" * 126, protocol),
            "not UTF-8": (b"\x81\x82" + mask + b"\xc3\x28", payload),
            "UTF-8 cut off": (b"\x81\x81" + mask + b"\xc3", payload),
            "close without its code": (b"\x88\x81" + mask + b"\x03", protocol),
            "close code 999": (b"\x88\x82" + mask + b"\x03\xe7", protocol),
            "close code 1005": (b"\x88\x82" + mask + b"\x03\xed", protocol),
            "close reason not UTF-8": (b"\x88\x84" + mask + b"\x03\xe8\xc3\x28", protocol | payload),
            "over the limit": (b"\x82\xff" + (2 << 20).to_bytes(8, "big") + mask + b"x" * 1000, big),
            "2^63 bytes": (b"\x82\xff\x80" + bytes(7) + mask, big),
            "length in too many bytes": (b"\x82\xfe\x00\x01" + mask + b"x", protocol),
        }
        for name, (data, codes) in cases.items():
            with self.subTest(frame=name):
                ws = self.terminal(box)
                ws.socket.sendall(data)
                self.assertIn(self.code_of_end(ws), codes | {None})
        ws = self.terminal(box)
        ws.send_json(type="input", data="echo alive-$((6*7))\n")
        seen = b""
        while b"alive-42" not in seen:
            seen += ws.receive()[1]

    def test_floods(self):
        """Of one client, which does not read what comes back: others are served, nothing piles up."""
        box, other = self.create(), self.create()
        server = self.server.server_pid()
        before = rss_bytes(server)
        floods = {
            "pings": b"\x89\x80\0\0\0\0" * 10000,
            "empty parts": b"\x01\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * 10000,
            "one-byte parts": b"\x01\x80\0\0\0\0" + b"\x00\x81\0\0\0\0x" * 10000,
            "resizes": frame(b'{"type":"resize","cols":80,"rows":24}') * 10000,
        }
        for name, data in floods.items():
            with self.subTest(flood=name):
                ws = self.terminal(box)
                ws.socket.settimeout(0.5)
                with contextlib.suppress(OSError):
                    for _ in range(20):
                        ws.socket.sendall(data)
                begin = time.monotonic()
                for _ in range(10):
                    self.assertEqual(other.exec("/bin/echo", "x", timeout=5)["stdout"], "x\n")
                self.assertLess(time.monotonic() - begin, 5)
                ws.socket.close()
        self.assertLess(rss_bytes(server) - before, MEMORY_FACTOR * (60 << 20))

    def test_resizes_and_noise(self):
        """J08: a storm of resizes and a binary flood; Ctrl-C still ends it."""
        ws = self.terminal(self.create())
        ws.send_json(type="input", data="stty -echo; PS1=; cat /dev/urandom\n")
        for i in range(500):
            ws.send_json(type="resize", cols=20 + i % 200, rows=10 + i % 50)
        size = 0
        while size < 2 << 20:
            kind, data = ws.receive()
            size += len(data) if kind == BINARY else 0
        ws.send_binary(b"\x03")
        ws.send_json(type="input", data="echo; stty size | tr ' ' x; echo over-$((6*7))\n")
        seen = b""
        while b"over-42" not in seen:
            seen = (seen + ws.receive()[1])[-100000:]
        self.assertIn(b"59x119", seen, "the last size counts")


def frame(data):
    return bytes([0x81, 0x80 | len(data)]) + bytes(4) + data


def handshake(server, target, origin):
    """The status that a browser gets when a page of this origin opens a WebSocket."""
    try:
        with WebSocket(server.socket, target, headers=f"Origin: {origin}\r\n" if origin is not None else ""):
            return 101
    except Refused as refused:
        return refused.status


class Origins(AtollCase):
    """I12: a browser lets any page open a WebSocket to us, and says which page it was."""

    def targets(self):
        box = self.create()
        pid = box.spawn("/bin/sleep", "100")["pid"]
        return [box.path(f"/runtime{path}") for path in ("/terminals/t/ws", f"/process/{pid}/attach")]

    def test_pages(self):
        for target in self.targets():
            for origin, status in (
                (None, 101), ("http://localhost", 101), ("https://LOCALHOST", 101), ("http://evil.test", 403),
                ("null", 403), ("http://localhost.evil.test", 403), ("http://localhost:8080", 403), ("", 403),
                ("http://evil.test\r\nOrigin: http://localhost", 403),
            ):  # fmt: skip
                with self.subTest(target=target, origin=origin):
                    self.assertEqual(handshake(self.server, target, origin), status)


class AllowedOrigin(unittest.TestCase):
    def test_pages(self):
        server = AtollServer("--allowed-origin", "https://board.test").start()
        self.addCleanup(server.close)
        box = Box(http("POST", "/v1/sandboxes", {}).json["id"])
        for origin, status in (("https://board.test", 101), ("http://board.test", 403), ("https://evil.test", 403)):
            self.assertEqual(handshake(server, box.path("/runtime/terminals/t/ws"), origin), status)


class Output(AtollCase):
    def test_no_output_is_lost_at_an_instant_end(self):
        """J03."""
        box = self.create()

        def many(client):
            return [box.exec("/bin/echo", f"{client}-{i}")["stdout"] for i in range(250)]

        for client, lines in enumerate(in_parallel([lambda c=c: many(c) for c in range(4)])):
            self.assertEqual(lines, [f"{client}-{i}\n" for i in range(250)])

    def test_a_flood_that_nobody_reads(self):
        """J01: bounded in the sandbox's agent and in the server, and in nobody's way."""
        flood, other = self.create(), self.create()
        server, agent = self.server.server_pid(), self.server.agent_pid(flood.id)
        before = rss_bytes(server)
        pids = [flood.spawn("/bin/sh", "-c", "yes | head -c 20G; yes | head -c 20G >&2")["pid"] for _ in range(3)]
        peers = []
        for pid in pids[1:]:  # followers that never read hold their process up; the first has none
            peer = Raw(self.server.socket)
            self.addCleanup(peer.socket.close)
            peers.append(peer.send(head("GET", flood.path(f"/runtime/process/{pid}/logs?follow=true"))))
        wait_until(lambda: flood.process(pids[0])["stdoutBytes"] > 50 << 20, 60, "much more than is kept was written")
        for _ in range(10):
            self.assertEqual(other.exec("/bin/echo", "x", timeout=10)["stdout"], "x\n")
        self.assertLess(rss_bytes(server) - before, MEMORY_FACTOR * (60 << 20))
        self.assertLess(rss_bytes(agent), 120 << 20)
        self.assertRegex(peers[0].socket.recv(100), rb"^HTTP/1.1 200 ", "it was being answered")


class Logs(AtollCase):
    """J04 and J06: entries are the server's own words; and nothing secret is among them."""

    server_options = {"listen": "127.0.0.1:0"}
    FORGED = f'{MARK}"}}\n{{"level":"error","component":"server","message":"{MARK} forged"}}\n'

    def lines(self):
        """Every line of the server's log and of the audit log."""
        files = [self.server.log, *(self.server.data / "audit").iterdir()]
        return [line for file in files for line in file.read_text().splitlines()]

    def assert_not_forged(self, lines):
        for line in lines:
            self.assertIsNone(re.search(r"[\x00-\x1f\x7f]", line), f"a control character in {line!r}")
            self.assertNotIn("forged", json.loads(line).get("message", ""))

    def test_the_check_notices_what_a_careless_server_writes(self):
        for name in (self.FORGED, ESCAPE):
            with self.assertRaises(AssertionError):
                self.assert_not_forged(f'{{"message":"no sandbox {name}"}}'.split("\n"))

    def test_forged_entries(self):
        quoted = "".join(f"%{byte:02x}" for byte in (self.FORGED + ESCAPE).encode())
        box = self.create(metadata={"text": self.FORGED + ESCAPE})
        for method, path in (
            ("DELETE", f"/v1/sandboxes/{quoted}"), ("POST", f"/v1/sandboxes/{quoted}/stop"), ("GET", f"/{quoted}"),
            ("PUT", f"/v1/secrets/{quoted}"), ("DELETE", f"/v1/keys/{quoted}"),
            ("POST", box.path(f"/runtime/process/{quoted}")), ("GET", box.path(f"/runtime/fs/stat/{quoted}")),
            ("GET", f"/v1/sandboxes?status={quoted}"), ("GET", f"/v1/events?lastEventId={quoted}"),
        ):  # fmt: skip
            reply = http(method, path, {"value": "x"} if method == "PUT" else None)
            self.assertIn(reply.status, (200, 400, 404, 405), f"{method} {path}: {reply}")
        box.exec("/bin/echo", self.FORGED + ESCAPE)
        box.write("/workspace/" + MARK + ESCAPE, b"x")
        http("POST", "/v1/keys", {"name": self.FORGED + ESCAPE, "tenant": "t"})
        http("GET", "/v1/sandboxes", headers={"Atoll-Tenant": MARK + ESCAPE.replace("\x07", "")})
        lines = self.lines()
        self.assert_not_forged(lines)
        self.assertTrue(any(MARK in line for line in lines), "no attempt has left a trace: proves nothing")
        shown = cli("audit", "tail", "--data-dir", str(self.server.data), "-n", "100").stdout
        self.assertIn(MARK, shown)
        self.assertFalse(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown), shown)
        cli("audit", "verify", "--data-dir", str(self.server.data))
        for row in http("GET", "/v1/keys").json["keys"]:
            if MARK in row["name"]:
                http("DELETE", f"/v1/keys/{row['id']}")

    def test_the_audit_log_is_the_servers_alone(self):
        for path in (self.server.data / "audit", *(self.server.data / "audit").iterdir()):
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)

    def test_no_secret_is_logged(self):
        canary = "canary-" + os.urandom(8).hex()
        box = self.create(env={"TOKEN": canary})
        http("PUT", "/v1/secrets/CANARY", {"value": canary})
        token = http("POST", box.path("/tokens"), {"scope": "read-only"}).json["token"]
        key = http("POST", "/v1/keys", {"name": "canary", "tenant": "t"}).json
        runtime = box.info()["connection"]["authToken"]
        for secret in (canary, token, key["key"], runtime, key["key"][:-1] + "x"):
            http("GET", f"/v1/sandboxes/{box.id}/events?follow=false&token={secret}")
            http("GET", "/v1/whoami", headers={"Authorization": f"Bearer {secret}"})
            http("GET", f"/nowhere?token={secret}")
            http("POST", box.path("/tokens/refresh"), {"token": secret})
            http("POST", "/v1/sandboxes", {"name": "x", "secrets": "none", "env": {"A": secret}, "wrong": secret})
        box.exec("/bin/sh", "-c", f"echo {canary}; false")
        with contextlib.suppress(Refused), WebSocket(self.server.socket, box.path(f"/runtime/terminals/t/ws?token={token}")):
            pass
        lines = self.lines()
        self.assertTrue(any("/v1/keys" in line for line in lines), "the log has what happened")
        for secret in (canary, token, key["key"], runtime):
            found = [line for line in lines if secret in line or secret.split(".")[-1] in line]
            self.assertEqual(found, [])
        self.assertNotIn(canary, http("GET", "/metrics").body.decode())
        http("DELETE", "/v1/secrets/CANARY")
        http("DELETE", f"/v1/keys/{key['id']}")


class Tables(AtollCase):
    """J04: what a sandbox calls its things is shown to somebody on a terminal."""

    def assert_harmless(self, done):
        for text in (done.stdout, done.stderr):
            bad = re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", text)
            self.assertIsNone(bad, f"{done.args}: {text!r}")

    def test_names_with_escapes(self):
        box = self.create(name="shown", metadata={"label": ESCAPE, ESCAPE: "x"})
        nasty = "/workspace/n" + ESCAPE + "\u009b2J\nsecond line"
        box.write(nasty, b"find me\n" + ESCAPE.encode())
        box.exec("/bin/ln", "-s", ESCAPE, "/workspace/link")
        box.spawn("/bin/sh", "-c", "sleep 100 # " + ESCAPE)
        key = http("POST", "/v1/keys", {"name": "k" + ESCAPE, "tenant": "t"})
        for words in (
            ["ls"], ["inspect", "shown"], ["ps", "shown"], ["files", "ls", "shown:/workspace"], ["files", "ls", "-l", "shown:/workspace"],
            ["search", "shown:/workspace", "find"], ["files", "stat", "shown:" + nasty], ["files", "stat", "shown:/workspace/link"],
            ["files", "mkdir", "shown:/proc/" + ESCAPE], ["cat", "shown:/workspace/" + ESCAPE], ["inspect", ESCAPE],
            ["exec", ESCAPE, "--", "true"], ["events", "shown"], ["events", "--json", "shown"], ["key", "ls"], ["secret", "ls"],
            ["usage"], ["usage", "shown"], ["ls", "--json"], ["inspect", "shown", "--json"], ["ps", "shown", "--json"],
            ["exec", "--cwd", ESCAPE, "shown", "--", "true"], ["exec", "shown", "--", "/bin/" + ESCAPE],
            ["cp", "shown:/workspace/" + ESCAPE, "/tmp/never"], ["rm", ESCAPE], ["template", "ls"], ["nonsense" + ESCAPE],
            ["ls", "--" + ESCAPE],
        ):  # fmt: skip
            with self.subTest(words=words):
                self.assert_harmless(raw_cli(*words, timeout=20))
        # Output is the command's own, byte by byte: so the check above can fail.
        done = raw_cli("exec", "shown", "--", "printf", ESCAPE)
        with self.assertRaises(AssertionError):
            self.assert_harmless(done)
        if key.status == 201:
            http("DELETE", f"/v1/keys/{key.json['id']}")


if __name__ == "__main__":
    fixture.main()
