#!/usr/bin/env python3
"""Ways into sandboxes: links to ports, what passes through them, waking, raw connections, commands."""

import hashlib
import json
import os
import socket
import subprocess
import threading

import fixture
import ingress_app
from fixture import cli, http, raw_cli, start_cli, wait_until
from ingress_case import IngressCase
from memory_case import skip_where_none_can_be_made
from websocket import BINARY, TEXT, WebSocket

MIB = 1 << 20


class Links(IngressCase):
    def test_public_links_are_for_anybody_and_for_one_port(self):
        box = self.box_with_app(3000, 3001)
        self.assert_denied(self.visit(box))
        link = self.link(box, access="public")
        self.assertEqual(link["url"], f"http://{self.host(box)}/")
        self.assertEqual((link["status"], link["access"], link["port"]), ("ready", "public", 3000))
        self.assertEqual(self.visit(box, "/x").json["path"], "/x")
        self.assertEqual(self.by_path(box, "/x").json["path"], "/x")
        self.assert_denied(self.visit(box, port=3001))
        self.assert_denied(self.by_path(box, port=3001))
        self.assertEqual(self.visit(box, port=3001, key=self.key).json["port"], 3001)
        self.assertEqual(self.link(box, access="public")["previewId"], link["previewId"], "the same once more")
        self.unlink(box, link)
        self.assert_denied(self.visit(box))

    def test_private_ports_open_for_those_who_may_use_the_sandbox(self):
        key, reader = self.make_key("alpha"), self.make_key("alpha", "read-only")
        stranger = self.make_key("beta")
        made = http("POST", "/v1/sandboxes", {}, headers={"Authorization": f"Bearer {key}"}).json
        box = fixture.Box(made["id"])
        self.app(box)
        scoped = http("POST", box.path("/tokens"), {"scope": "read-only"}).json["token"]
        for one in (key, self.key, reader, scoped, made["connection"]["authToken"]):
            reply = self.visit(box, key=one)
            self.assertEqual(reply.status, 200, reply)
            self.assertNotIn("authorization", {name.lower() for name, _ in reply.json["headers"]})
        for one in (reader, scoped):
            self.assert_denied(self.visit(box, method="POST", body=b"x", key=one), 403)
        self.assertEqual(self.visit(box, method="POST", body=b"x", key=key).json["body"], "x")
        other = self.create()
        bearer = other.info()["connection"]["authToken"]
        self.assert_denied(self.visit(box, key=bearer))
        # Another tenant's is as if it did not exist.
        hidden, missing = self.visit(box, key=stranger), self.visit("sandbox-000000000000", key=stranger)
        self.assert_denied(hidden, 404)
        self.assertEqual((hidden.status, hidden.body), (missing.status, missing.body))
        hidden, missing = self.visit(box), self.visit("sandbox-000000000000")
        self.assert_denied(hidden)
        self.assertEqual((hidden.status, hidden.body), (missing.status, missing.body))

    def test_a_link_that_is_opened_in_a_browser_becomes_a_cookie(self):
        box = self.box_with_app()
        link = self.link(box)
        token = self.token_of(link)
        browser = {"Accept": "text/html,*/*", "Sec-Fetch-Mode": "navigate"}
        self.assert_denied(self.visit(box, headers=browser))
        opened = self.visit(box, f"/a//b?x=1&atoll-preview-token={token}&y=%2F", headers=browser)
        self.assertEqual((opened.status, opened.headers["Location"]), (303, "/a//b?x=1&y=%2F"))
        self.assertEqual(opened.headers["Referrer-Policy"], "no-referrer")
        cookie, *attributes = opened.headers["Set-Cookie"].split("; ")
        self.assertTrue(cookie.startswith("__Host-atoll-preview="), cookie)
        self.assertTrue({"HttpOnly", "Secure", "Path=/", "SameSite=Lax"} <= set(attributes), attributes)
        self.assertNotIn("Domain", opened.headers["Set-Cookie"])
        inside = self.visit(box, "/a", headers={"Cookie": f"mine=1; {cookie}; yours=2"}).json
        self.assertEqual(dict(inside["headers"])["Cookie"], "mine=1; yours=2")
        self.assertEqual(self.visit(box, f"//evil.test/?atoll-preview-token={token}", headers=browser).headers["Location"], "/evil.test/")
        # The one in the URL is no cookie, the cookie none for a URL, and neither for another port.
        url_as_cookie = {"Cookie": f"__Host-atoll-preview={token}"}
        self.assert_denied(self.visit(box, headers=url_as_cookie))
        self.assert_denied(self.visit(box, f"/?atoll-preview-token={cookie.partition('=')[2]}"))
        self.assert_denied(self.visit(box, port=3001, headers={"Cookie": cookie}))
        self.assert_denied(self.by_path(box, headers={"Cookie": cookie}))
        self.unlink(box, link)
        self.assert_denied(self.visit(box, headers={"Cookie": cookie}))
        self.assert_denied(self.visit(box, f"/?atoll-preview-token={token}", headers=browser))

    def test_signed_links_are_for_whoever_has_them_until_they_expire(self):
        box, other = self.box_with_app(3000, 3001), self.box_with_app()
        link = self.link(box, access="signed", expiresInSeconds=600)
        token = self.token_of(link)
        self.assertIsNotNone(link["expiresAt"])
        target = f"/s?a=b&atoll-preview-token={token}"
        self.assertEqual(self.visit(box, target).json["path"], "/s?a=b")
        self.assertEqual(self.by_path(box, target).json["path"], "/s?a=b")
        for headers in ({"Atoll-Preview-Token": token}, {"Authorization": f"Bearer {token}"}):
            reply = self.visit(box, "/h", headers=headers)
            self.assertEqual(reply.json["path"], "/h")
            self.assertNotIn(token, json.dumps(reply.json))
        self.assertNotEqual(self.link(box, access="signed")["previewId"], link["previewId"])
        name, middle, mac = token.split(".")
        later = f"{name}.u{int(middle[1:]) + 60}.{mac}"
        for wrong in (later, token[:-1] + ("A" if token[-1] != "A" else "B"), token + "A", "x", f"{name}.{middle}."):
            self.assert_denied(self.visit(box, f"/?atoll-preview-token={wrong}"))
        self.assert_denied(self.visit(box, target, port=3001))
        self.assert_denied(self.visit(other, target))
        brief = self.link(box, access="signed", expiresInSeconds=2)
        target = "/?atoll-preview-token=" + self.token_of(brief)
        browser = {"Accept": "text/html"}
        cookie = self.visit(box, target, headers=browser).headers["Set-Cookie"].split(";")[0]
        self.assertEqual(self.visit(box, headers={"Cookie": cookie}).status, 200)
        over = wait_until(lambda: (reply := self.visit(box, target)).status == 401 and reply, 10, "it expires")
        self.assertIn("expired", over.json["message"])
        self.assert_denied(self.visit(box, headers={"Cookie": cookie}))
        self.assertEqual([one["status"] for one in self.links(box)][-1], "disabled")

    def test_links_survive_the_server_and_end_with_the_sandbox(self):
        box = self.box_with_app()
        public, signed = self.link(box, access="public"), self.link(box, access="signed")
        target = "/?atoll-preview-token=" + self.token_of(signed)
        before = self.links(box)
        self.assertEqual([one["previewId"] for one in before], [public["previewId"], signed["previewId"]])
        self.server.kill("server")
        self.find_port()
        self.assertEqual([one["previewId"] for one in self.links(box)], [one["previewId"] for one in before])
        self.assertEqual(self.visit(box).status, 200)
        self.unlink(box, public)
        self.assert_denied(self.visit(box))
        self.assertEqual(self.visit(box, target).status, 200)
        self.link(box, access="public")
        self.assertEqual(box.delete().status, 200)
        self.assert_denied(self.visit(box))
        self.assert_denied(self.visit(box, target))
        self.assert_denied(self.visit(box, key=self.key), 404)

    def test_a_link_that_is_removed_shuts_out_who_is_in(self):
        box = self.box_with_app()
        for access in ("signed", "public"):
            link = self.link(box, access=access)
            target = "/ws" + (f"?atoll-preview-token={self.token_of(link)}" if access == "signed" else "")
            with WebSocket(("127.0.0.1", self.tcp), target, host=self.host(box)) as open_one:
                open_one.send_frame(TEXT, b"in")
                self.assertEqual(open_one.receive(), (TEXT, b"in"))
                self.unlink(box, link)
                with self.assertRaises(OSError):
                    for _ in range(3):
                        open_one.send_frame(TEXT, b"still in")
                        open_one.receive()

    def test_making_and_removing_them_are_events(self):
        box = self.create()
        link = self.link(box, 8000)
        self.unlink(box, link)
        text = cli("events", box.id, "--json").stdout
        found = [json.loads(line) for line in text.splitlines()]
        kinds = [one.get("type") for one in found]
        self.assertIn("preview.created", kinds, text)
        self.assertIn("preview.removed", kinds, text)

    def test_what_cannot_be_a_link(self):
        box = self.create()
        for body, field in (({}, "port"), ({"port": 0}, "port"), ({"port": 65536}, "port"), ({"port": "web"}, "port"),
                            ({"port": 1, "access": "open"}, "access"), ({"port": 1, "protocol": "udp"}, "protocol"),
                            ({"port": 1, "expiresInSeconds": 0}, "expiresInSeconds"), ({"port": 1, "extra": 1}, "extra")):  # fmt: skip
            self.assert_error(http("POST", box.path("/runtime/preview-links"), body), 400, "VALIDATION_ERROR", field)
        self.assertEqual(http("DELETE", box.path("/runtime/preview-links/pv-none")).status, 404)
        other = self.create()
        link = self.link(box, 1)
        self.assertEqual(http("GET", other.path(f"/runtime/preview-links/{link['previewId']}")).status, 404)
        self.assertEqual(http("GET", box.path(f"/runtime/preview-links/{link['previewId']}")).status, 200)

    def test_the_first_form_of_them(self):
        box = self.box_with_app()
        made = http("POST", box.path("/network/expose"), {"port": 3000}).json
        self.assertEqual(self.visit(box, made["url"].partition(str(self.tcp))[2]).status, 200)
        self.assertEqual(list(http("GET", box.path("/network/urls")).json["urls"]), ["3000"])


class Relaying(IngressCase):
    def setUp(self):
        super().setUp()
        self.box = self.box_with_app()
        self.link(self.box, access="public")

    def test_methods_and_requests_one_after_the_other(self):
        connection = self.connection()
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"):
            body = b"body of " + method.encode() if method not in ("GET", "OPTIONS") else None
            seen = self.visit(self.box, f"/m?{method}", method=method, body=body, connection=connection).json
            self.assertEqual((seen["method"], seen["path"], seen["body"]), (method, f"/m?{method}", (body or b"").decode()))
        head = self.visit(self.box, "/big?1234567", method="HEAD", connection=connection)
        self.assertEqual((head.status, head.headers["Content-Length"], head.body), (200, "1234567", b""))
        self.assertEqual(self.visit(self.box, "/until-close", connection=connection).body, b"until the end")
        self.assertEqual(self.visit(self.box, "/x", connection=connection).status, 200)

    def test_large_bodies_both_ways(self):
        data = os.urandom(MIB) * 48
        reply = self.visit(self.box, "/digest", method="POST", body=data)
        self.assertEqual(reply.json, {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)})
        connection = self.connection()
        connection.putrequest("POST", "/digest", skip_host=True)
        connection.putheader("Host", self.host(self.box))
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders((data[i : i + 100_000] for i in range(0, 10 * MIB, 100_000)), encode_chunked=True)
        answer = json.loads(connection.getresponse().read())
        self.assertEqual(answer["sha256"], hashlib.sha256(data[: -(-10 * MIB // 100_000) * 100_000]).hexdigest())
        whole = self.visit(self.box, f"/big?{48 * MIB}").body
        self.assertEqual(hashlib.sha256(whole).digest(), hashlib.sha256(bytes(range(256)) * (48 * MIB // 256)).digest())

    def test_a_reader_that_does_not_read_holds_the_sender_up(self):
        connection = self.connection()
        connection.putrequest("GET", f"/big?{512 * MIB}", skip_host=True)
        connection.putheader("Host", self.host(self.box))
        connection.endheaders()
        sent = []

        def stalled():
            sent.append(int(self.visit(self.box, "/sent").body))
            return sent[-1] > 0 and sent[-20:] == [sent[-1]] * 20

        wait_until(stalled, 20, "the sender waits")
        self.assertLess(sent[-1], 64 * MIB)

    def test_bytes_arrive_as_they_are_sent_and_a_visitor_who_leaves_is_noticed(self):
        connection = self.connection()
        connection.putrequest("GET", "/events", skip_host=True)
        connection.putheader("Host", self.host(self.box))
        connection.endheaders()
        response = connection.getresponse()
        self.assertEqual(response.readline(), b"data: 1\n")
        response.close()
        connection.close()
        wait_until(lambda: {"ended": True} in self.visit(self.box, "/seen").json, 10, "the server inside sees the end")

    def test_an_answer_before_the_end_of_the_question(self):
        reply = self.visit(self.box, "/too-large", method="POST", body=bytes(100_000))
        self.assertEqual((reply.status, reply.body), (413, b"no"))

    def test_an_answer_without_the_body_whose_size_it_tells(self):
        connection = self.connection()
        for _ in range(2):
            reply = self.visit(self.box, "/not-modified", connection=connection)
            self.assertEqual((reply.status, reply.body), (304, b""))

    def test_what_breaks_is_not_taken_for_the_whole(self):
        with self.assertRaises(Exception) as broken:
            self.visit(self.box, "/broken")
        self.assertIn(type(broken.exception).__name__, ("IncompleteRead", "ConnectionResetError"))
        self.assert_denied(self.visit(self.box, "/silent"), 502)

    def test_nothing_listens(self):
        reply = self.visit(self.box, port=3999, key=self.key)
        self.assert_denied(reply, 502)
        self.assertEqual(reply.json["code"], "PORT_NOT_OPEN")
        self.assertIn("3999", reply.json["message"])
        page = self.visit(self.box, port=3999, key=self.key, headers={"Accept": "text/html"})
        self.assertEqual((page.status, page.headers.get_content_type()), (502, "text/html"))
        self.assertIn(b"3999", page.body)

    def test_who_listens_on_one_address_only(self):
        self.app(self.box, 3010, address="127.0.0.1")
        self.app(self.box, 3011, address="::1")

    def test_websockets(self):
        for target, host in (("/ws", self.host(self.box)), (f"/preview/{self.box.id}/3000/ws", f"127.0.0.1:{self.tcp}")):
            with WebSocket(("127.0.0.1", self.tcp), target, host=host) as socket_:
                socket_.send_frame(TEXT, b"hello")
                self.assertEqual(socket_.receive(), (TEXT, b"hello"))
                data = os.urandom(MIB)
                socket_.send_binary(data)
                self.assertEqual(socket_.receive(), (BINARY, data))
        reply = self.visit(self.box, "/ws", headers={"Connection": "Upgrade", "Upgrade": "other"})
        self.assertEqual((reply.status, reply.body), (400, b"a WebSocket"))


class Waking(IngressCase):
    def sleep(self, box, status):
        wait_until(lambda: self.status(box) == status, 20, f"it is {status}")

    def test_what_idleness_stopped(self):
        box = self.box_with_app(idleTimeoutSeconds=1)
        never = self.box_with_app(idleTimeoutSeconds=1, autoResume=False)
        for one in (box, never):
            self.link(one, access="public")
            self.sleep(one, "stopped")
        woken = self.visit(box)
        self.assert_denied(woken, 502)
        self.assertEqual(self.status(box), "running")
        self.assert_denied(self.visit(never), 503)
        self.assertEqual(self.status(never), "stopped")

    def test_what_was_paused(self):
        box, never = self.box_with_app(), self.box_with_app(autoResume=False)
        for one in (box, never):
            self.link(one, access="public")
            self.assertEqual(http("POST", one.path("/pause")).status, 200)
        self.assert_denied(self.visit(box, port=3001))
        self.assertEqual(self.status(box), "paused", "nobody who may not has woken it")
        self.assertEqual(self.visit(box, "/x").json["path"], "/x")
        self.assertEqual(self.status(box), "running")
        reply = self.visit(never)
        self.assert_denied(reply, 503)
        self.assertIn("paused", reply.json["message"])
        self.assertEqual(self.status(never), "paused")

    def test_what_was_paused_to_disk(self):
        skip_where_none_can_be_made(self)
        box = self.box_with_app()
        self.link(box, access="public")
        with WebSocket(("127.0.0.1", self.tcp), "/ws", host=self.host(box)) as live:
            live.send_frame(TEXT, b"here")
            self.assertEqual(live.receive(), (TEXT, b"here"))
            before = self.visit(box, "/x").json
            reply = http("POST", box.path("/pause"), {"disk": True}, timeout=120)
            self.assertEqual((reply.status, reply.json["status"]), (200, "paused"), reply)
            with self.assertRaises((ConnectionError, OSError)):
                live.receive()
        self.assertIn(before, self.visit(box, "/seen").json, "it is the process that was there before")
        self.assertEqual(self.status(box), "running")

    def test_what_somebody_stopped_stays(self):
        box = self.box_with_app()
        self.link(box, access="public")
        self.assertEqual(http("POST", box.path("/stop")).status, 200)
        self.assert_denied(self.visit(box), 503)
        self.assertEqual(self.status(box), "stopped")

    def test_traffic_is_activity_and_a_connection_alone_is_not(self):
        box = self.box_with_app(idleTimeoutSeconds=2)
        self.link(box, access="public")
        with WebSocket(("127.0.0.1", self.tcp), "/ws", host=self.host(box)) as live:
            started = box.info()["startedAt"]
            for _ in range(8):
                live.send_frame(TEXT, b"here")
                self.assertEqual(live.receive(), (TEXT, b"here"))
                live.socket.settimeout(0.5)
                with self.assertRaises(TimeoutError):
                    live.receive()
                live.socket.settimeout(20)
            self.assertEqual((self.status(box), box.info()["startedAt"]), ("running", started))
            self.sleep(box, "stopped")  # though the connection is still there


class Connections(IngressCase):
    def setUp(self):
        super().setUp()
        self.box = self.create(name=fixture.unique("raw"))
        self.box.spawn("python3", "-c", ingress_app.RAW, "4000")
        wait_until(lambda: self.connect(4000)[0] == 101, 20, "it listens")

    def connect(self, port, upgrade="tcp", **headers):
        """(status, socket, first bytes)."""
        peer = socket.create_connection(("127.0.0.1", self.tcp), 20)
        self.addCleanup(peer.close)
        lines = [f"GET {self.box.path(f'/runtime/ports/{port}/tcp')} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.key}"]
        if upgrade:
            lines += ["Connection: Upgrade", f"Upgrade: {upgrade}"]
        peer.sendall("\r\n".join([*lines, "", ""]).encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += peer.recv(65536)
        head, _, rest = data.partition(b"\r\n\r\n")
        return int(head.split()[1]), peer, rest

    def test_bytes_as_they_are_and_half_an_end(self):
        _, peer, rest = self.connect(4000)
        peer.sendall(b"abc")
        peer.shutdown(socket.SHUT_WR)
        while part := peer.recv(65536):
            rest += part
        self.assertEqual(rest, b"abctotal 3")

    def test_refusals(self):
        self.assertEqual(self.connect(4000, upgrade=None)[0], 426)
        self.assertEqual(self.connect(4000, upgrade="websocket")[0], 426)
        self.assertEqual(self.connect(4001)[0], 503)
        self.assertEqual(self.connect(0)[0], 400)

    def test_its_end_is_that_of_the_sandbox(self):
        _, peer, _ = self.connect(4000)
        self.box.delete()
        try:
            self.assertEqual(peer.recv(10), b"")
        except ConnectionResetError:
            pass

    def test_forwarding_by_the_command(self):
        name = self.box.info()["name"]
        process = start_cli("port", "--forward", "0:4000", name, "--json", stdout=subprocess.PIPE)
        try:
            port = json.loads(process.stdout.readline())["localPort"]
            data = os.urandom(4 * MIB)
            with socket.create_connection(("127.0.0.1", port), 20) as peer:
                got = bytearray()

                def send():
                    peer.sendall(data)
                    peer.shutdown(socket.SHUT_WR)

                thread = threading.Thread(target=send)
                thread.start()
                while part := peer.recv(65536):
                    got += part
                thread.join()
            self.assertEqual(bytes(got), data + b"total %d" % len(data))
            with socket.create_connection(("127.0.0.1", port), 20) as first, socket.create_connection(("127.0.0.1", port), 20) as second:
                for one, text in ((second, b"second"), (first, b"first")):
                    one.sendall(text)
                    self.assertEqual(one.recv(100), text)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def test_the_commands(self):
        name = self.box.info()["name"]
        self.app(self.box)
        done = cli("port", name, "3000")
        self.assertIn("15 minutes", done.stderr)
        self.assertEqual(self.visit(self.box, done.stdout.strip().partition(str(self.tcp))[2]).status, 200)
        self.assertEqual(cli("port", name, "3000", "--public").stdout, f"http://{self.host(self.box)}/\n")
        self.assertEqual(self.visit(self.box).status, 200)
        made = json.loads(cli("port", name, "3000", "--signed", "1h", "--json").stdout)
        self.assertEqual(made["access"], "signed")
        listed = cli("port", "ls", name)
        self.assertEqual(len(listed.stdout.splitlines()), 4)
        self.assertNotIn("token", listed.stdout)
        self.assertEqual(cli("port", "rm", name, made["previewId"]).stdout.strip(), made["previewId"])
        self.assertEqual(len(cli("port", "rm", name, "3000").stdout.split()), 2)
        self.assert_denied(self.visit(self.box))
        for words, code in ((["port", name], 2), (["port", name, "x"], 2), (["port", name, "1:2"], 2),
                            (["port", name, "1", "--public", "--signed", "1h"], 2), (["port", "rm", name, "1"], 125),
                            (["port", "none", "3000"], 125), (["port", "--forward", "y", name], 2)):  # fmt: skip
            self.assert_fails(raw_cli(*words), code)


class OnTheSocketAlone(fixture.AtollCase):
    def test_ports_without_tcp(self):
        box = self.create(name=fixture.unique("local"))
        box.spawn("python3", "-c", ingress_app.SOURCE, "3000")
        headers = {"Host": f"3000-{box.id}.localhost"}
        wait_until(lambda: http("GET", "/x", headers=headers).status == 200, 20, "whoever may open the socket may visit")
        self.assertEqual(http("GET", f"/preview/{box.id}/3000/x").json["path"], "/x")
        self.assertEqual(http("GET", "/x", headers={"Host": "3000-sandbox-none.localhost"}).status, 404)
        wrong = {"Atoll-Preview-Token": "pv-0.u9999999999.x"}
        self.assertEqual(http("GET", "/x", headers={**headers, **wrong}).status, 401, "what is shown must be good")
        made = http("POST", box.path("/runtime/preview-links"), {"port": 3000}).json["previewLink"]
        self.assertIsNone(made["url"])
        self.assertIn("--forward", self.assert_fails(raw_cli("port", box.info()["name"], "3000")))


if __name__ == "__main__":
    fixture.main()
