#!/usr/bin/env python3
"""What must not happen on the ways into sandboxes: cases I10 to I14 and C06 of the security reference, each beside what works."""

import base64
import json
import socket
from urllib.parse import quote

import fixture
from fixture import Box, http, wait_until
from ingress_case import IngressCase
from websocket import Refused, WebSocket


class Hosts(IngressCase):
    """Which of the two, the API or a sandbox, a request is for."""

    def test_a_sandboxs_host_is_never_the_api(self):
        box = self.box_with_app()
        self.link(box, access="public")
        bearer = {"Authorization": f"Bearer {self.key}"}
        for target in ("/v1/sandboxes", "/health", "/openapi.json", "/metrics", "/preview/x/1/", f"/preview/{box.id}/3000/v1/system",
                       "/.well-known/jwks.json", "/sandboxes", f"/runtime/{box.id}/process"):  # fmt: skip
            self.assertEqual(self.visit(box, target, headers=bearer).json["path"], target)
        more = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49983", "X-Access-Token": box.info()["connection"]["authToken"]}
        seen = self.visit(box, "/health", headers=more).json
        self.assertEqual(seen["path"], "/health")
        self.assertFalse({"e2b-sandbox-id", "x-access-token"} & {name.lower() for name, _ in seen["headers"]})
        for host in ("1-x.localhost", "3000-.localhost", "0-x.localhost", "99999-x.localhost", f"3000-{box.id}.x.localhost",
                     f"3000-{box.id.upper()}X.localhost.", f"03000-{box.id}.localhost", "49983-x.localhost"):  # fmt: skip
            reply = self.ask(f"{host}:{self.tcp}", "/v1/system", headers=bearer)
            self.assert_denied(reply, 404)
        # A host's name has no case, and may end with a dot.
        for host in (f"3000-{box.id.upper()}.LOCALHOST:{self.tcp}", f"3000-{box.id}.localhost.:{self.tcp}", f"3000-{box.id}.localhost"):
            self.assertEqual(self.ask(host, "/x").json["path"], "/x")

    def test_the_apis_host_is_a_sandbox_only_below_its_path(self):
        box = self.box_with_app()
        self.link(box, access="public")
        own = f"127.0.0.1:{self.tcp}"
        self.assertEqual(self.by_path(box, "/v1/system").json["path"], "/v1/system")
        self.assertEqual(self.ask(own, f"/preview/{box.id}/3000").json["path"], "/")
        self.assertEqual(self.ask(own, f"/preview/{box.id}/3000?a=1").json["path"], "/?a=1")
        for target in (f"/%70review/{box.id}/3000/", f"/previews/{box.id}/3000/", f"//preview/{box.id}/3000/"):
            reply = self.ask(own, target)
            self.assertEqual((reply.status, reply.headers["Atoll-Preview"]), (404, None), target)
        for target in ("/preview", "/preview/", f"/preview/{box.id}", f"/preview/{box.id}/x/", f"/preview/{box.id}/3000x/", "/preview/../v1/system",
                       f"/preview/{box.id}%2f3000/"):  # fmt: skip
            self.assert_denied(self.ask(own, target, headers={"Authorization": f"Bearer {self.key}"}), 404)
        self.assertEqual(self.by_path(box, "/../../../v1/system").json["path"], "/../../../v1/system")

    def test_paths_arrive_as_they_were_sent(self):
        """I10: nothing of the sandbox's own agent listens on any port, and no spelling leads elsewhere."""
        box = self.box_with_app()
        self.link(box, access="public")
        for target in ("/init", "//init", "/%69nit", "/x/../init", "/INIT", "/a%2fb?c=%00", "/?", "/a+b%20c"):
            if "%00" in target:
                self.assertEqual(self.visit(box, target).status, 400)
                continue
            self.assertEqual(self.visit(box, target).json["path"], target)
        listening = box.exec("python3", "-c", "print(sum(line.split()[3] == '0A' for line in list(open('/proc/net/tcp'))[1:] + list(open('/proc/net/tcp6'))[1:]))")
        self.assertEqual(listening["stdout"].strip(), "1", "only the test's own server listens")

    def test_ports_of_the_way_out_are_not_ways_in(self):
        box = self.box_with_app(network="allow-all")
        self.assertEqual(self.visit(box, key=self.key).status, 200)
        for port in (1, 53):
            self.assert_denied(self.visit(box, port=port, key=self.key), 502)
        # A self-connection is no connection: the whole range that near ends are taken from.
        low, high = map(int, fixture.read_text("/proc/sys/net/ipv4/ip_local_port_range").split())
        for port in range(low, min(high, low + 64)):
            self.assert_denied(self.visit(box, port=port, key=self.key), 502)

    def test_no_sandbox_reaches_another_through_its_preview(self):
        """C06."""
        one, other = self.box_with_app(), self.box_with_app(network="allow-all")
        self.link(one, access="public")
        self.assertEqual(self.visit(one).status, 200)
        for address in ("127.0.0.1", "10.0.2.2", "10.0.2.3"):
            done = other.exec("curl", "-sS", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", "-H", f"Host: {self.host(one)}",
                              f"http://{address}:{self.tcp}/")  # fmt: skip
            self.assertNotIn("200", done["stdout"])


class Fields(IngressCase):
    def inside(self, reply):
        self.assertEqual(reply.status, 200, reply)
        found = {}
        for name, value in reply.json["headers"]:
            found.setdefault(name.lower(), []).append(value)
        return found

    def test_who_asks_is_told_by_us(self):
        """I14."""
        box = self.box_with_app()
        self.link(box, access="public")
        lies = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "evil", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "1",
                "Forwarded": "for=6.6.6.6", "X-Real-Ip": "6.6.6.6", "X-Forwarded-Prefix": "/evil"}  # fmt: skip
        seen = self.inside(self.visit(box, headers={**lies, "X-Mine": "1"}))
        self.assertEqual(seen["x-forwarded-for"], ["127.0.0.1"])
        self.assertEqual(seen["x-forwarded-host"], [self.host(box)])
        self.assertEqual(seen["x-forwarded-proto"], ["http"])
        self.assertEqual((seen["host"], seen["x-mine"]), ([self.host(box)], ["1"]))
        self.assertNotIn("6.6.6.6", json.dumps(seen))
        self.assertFalse({"forwarded", "x-real-ip", "x-forwarded-port", "x-forwarded-prefix"} & set(seen))
        seen = self.inside(self.by_path(box, headers=lies))
        self.assertEqual(seen["x-forwarded-prefix"], [f"/preview/{box.id}/3000"])
        self.assertEqual(seen["host"], ["localhost:3000"])

    def test_fields_of_a_connection_stay_with_it(self):
        box = self.box_with_app()
        self.link(box, access="public")
        hops = {"Connection": "X-Hop, close", "X-Hop": "1", "Keep-Alive": "5", "TE": "trailers", "Proxy-Authorization": "x", "Proxy-Connection": "y"}
        seen = self.inside(self.visit(box, headers=hops))
        self.assertFalse({"x-hop", "keep-alive", "te", "proxy-authorization", "proxy-connection"} & set(seen))
        back = self.visit(box, "/page").headers
        self.assertIsNone(back["X-Hop"])
        self.assertEqual(back["X-Own"], "1")
        self.assertEqual(len(back.get_all("Date")), 1)

    def test_no_credential_of_ours_goes_in(self):
        box = self.box_with_app()
        self.link(box, access="public")
        stranger = self.make_key("beta")
        token = self.token_of(self.link(box, access="signed"))
        scoped = http("POST", box.path("/tokens"), {"scope": "project"}).json["token"]
        wrapped = "e2b_" + stranger.encode().hex()
        for name, value in (("Authorization", f"Bearer {stranger}"), ("authorization", f"bearer {scoped}"), ("X-Api-Key", wrapped),
                            ("X-Api-Key", self.key), ("X-Access-Token", box.info()["connection"]["authToken"]), ("Atoll-Tenant", "alpha"),
                            ("Atoll-Preview-Token", token), ("E2b-Traffic-Access-Token", "tt-x"), ("Cookie", f"__Host-atoll-preview={token}"),
                            ("Authorization", "Bearer sk-atoll-of-another-server")):  # fmt: skip
            seen = self.inside(self.visit(box, headers={name: value}))
            self.assertNotIn(name.lower(), seen)
            self.assertNotIn(value.split()[-1], json.dumps(seen))
        pair = base64.b64encode(f"user:{stranger}".encode()).decode()
        self.assertNotIn(pair, json.dumps(self.inside(self.visit(box, headers={"Authorization": f"Basic {pair}"}))))
        for secret in (token, scoped, stranger, quote(self.key).replace("sk-", "%73k-")):
            reply = self.visit(box, f"/?a=1&token={secret}&atoll-preview-token={token}&b=2")
            self.assertEqual(reply.json["path"], "/?a=1&b=2")
        # What is the sandbox's own business passes.
        for name, value in (("Authorization", "Bearer theirs"), ("Authorization", "Basic dTpw"), ("X-Api-Key", "theirs"), ("Cookie", "a=1; b=2"),
                            ("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30.x")):  # fmt: skip
            self.assertEqual(self.inside(self.visit(box, headers={name: value}))[name.lower()], [value])

    def test_cookies_stay_with_their_port(self):
        """I11: of the origin of its own."""
        box = self.box_with_app()
        self.link(box, access="public")
        back = self.visit(box, "/page").headers
        self.assertEqual(back.get_all("Set-Cookie"), ["plain=1; Path=/", "wide=1; Path=/"])
        self.assertEqual(back.get_all("Content-Security-Policy"), ["default-src 'self'"])
        self.assertEqual((back["Service-Worker-Allowed"], back["Access-Control-Allow-Origin"]), ("/", "*"))
        for name in ("Clear-Site-Data", "Alt-Svc", "X-Accel-Redirect", "X-Sendfile"):
            self.assertIsNone(back[name], name)

    def test_a_page_on_the_apis_origin_is_of_no_origin(self):
        """I11 and I13: of the form that shares the API's."""
        box = self.box_with_app()
        self.link(box, access="public")
        back = self.by_path(box, "/page", headers={"Cookie": "a=1"})
        self.assertEqual(back.body, b"page")
        policies = back.headers.get_all("Content-Security-Policy")
        self.assertEqual(policies[0], "default-src 'self'")
        self.assertTrue(policies[1].startswith("sandbox "), policies)
        self.assertNotIn("allow-same-origin", policies[1])
        for name in ("Set-Cookie", "Service-Worker-Allowed", "Access-Control-Allow-Origin", "Clear-Site-Data"):
            self.assertIsNone(back.headers[name], name)
        self.assertEqual(back.headers["X-Content-Type-Options"], "nosniff")
        self.assertNotIn("cookie", self.inside(self.by_path(box, headers={"Cookie": "a=1"})))
        own, prefix = f"127.0.0.1:{self.tcp}", f"/preview/{box.id}/3000"
        for location, expected in (("/v1/sandboxes", prefix + "/v1/sandboxes"), (f"http://{own}/v1/x", prefix + "/v1/x"), (f"//{own}/v1/x", prefix + "/v1/x"),
                                   ("\\v1", prefix + "/v1"), ("relative", prefix + "/relative"), ("/../../../v1/x", prefix + "/v1/x"),
                                   ("../../../v1/x", prefix + "/v1/x"), ("/a/%2e%2E/%2e./v1", prefix + "/v1"), (f"http://x@{own}/v1/x", prefix + "/v1/x"),
                                   (f"HTTP://{own.replace(':', ':0')}/v1/x", prefix + "/v1/x"), ("http:/v1/x", prefix + "/v1/x"), ("?q=/..", "?q=/.."), ("https://example.org/", "https://example.org/")):  # fmt: skip
            reply = self.by_path(box, f"/redirect?{location}")
            self.assertEqual((reply.status, reply.headers["Location"]), (302, expected))

    def test_pages_of_other_origins_do_not_use_a_visitors_cookie(self):
        """I12."""
        box = self.box_with_app()
        url = "/ws?atoll-preview-token=" + self.token_of(self.link(box))
        cookie = self.visit(box, url, headers={"Accept": "text/html"}).headers["Set-Cookie"].split(";")[0]
        host = self.host(box)
        for origin, good in ((f"http://{host}", True), ("https://evil.test", False), (f"http://3000-sandbox-other.localhost:{self.tcp}", False), ("null", False)):
            reply = self.visit(box, method="POST", body=b"x", headers={"Cookie": cookie, "Origin": origin})
            self.assertEqual(reply.status, 200 if good else 403, origin)
            headers = f"Cookie: {cookie}\r\nOrigin: {origin}\r\n"
            if good:
                with WebSocket(("127.0.0.1", self.tcp), "/ws", host=host, headers=headers):
                    continue
            with self.assertRaises(Refused) as refused:
                WebSocket(("127.0.0.1", self.tcp), "/ws", host=host, headers=headers)
            self.assertEqual(refused.exception.status, 403)
        self.assert_denied(self.visit(box, method="OPTIONS", headers={"Origin": f"http://{host}", "Access-Control-Request-Method": "POST"}))

    def test_tokens_are_in_no_log(self):
        box = self.box_with_app()
        token = self.token_of(self.link(box, access="signed"))
        self.assertEqual(self.visit(box, f"/?atoll-preview-token={token}").status, 200)
        self.visit(box, f"/?atoll-preview-token={token[:-4]}xxxx")
        secret = token.rpartition(".")[2]
        self.assertNotIn(secret, fixture.read_text(self.server.log))
        for path in (self.server.data / "audit").glob("*"):
            self.assertNotIn(secret.encode(), path.read_bytes())


class E2b(IngressCase):
    def make(self, **network):
        body = json.dumps({"templateID": "base", "timeout": 300, "network": network}).encode()
        headers = {"X-API-Key": "e2b_" + self.key.encode().hex(), "Content-Type": "application/json"}
        reply = self.ask(f"127.0.0.1:{self.tcp}", "/v2/sandboxes", method="POST", body=body, headers=headers)
        self.assertEqual(reply.status, 201, reply)
        made = reply.json
        self.assertEqual(made["domain"], f"localhost:{self.tcp}")
        return made, Box(made["sandboxID"])

    def test_ports_are_public_where_nothing_else_is_said(self):
        _, box = self.make()
        self.app(box)
        self.assertEqual(self.visit(box, "/x").json["path"], "/x")
        reply = self.visit(box, port=3001)
        self.assertIn("port is not open", reply.json["message"])

    def test_private_traffic_wants_its_token(self):
        made, box = self.make(allowPublicTraffic=False, maskRequestHost="app.test:${PORT}")
        other, _ = self.make(allowPublicTraffic=False)
        self.app(box)
        self.assert_denied(self.visit(box))
        reply = self.visit(box, headers={"E2B-Traffic-Access-Token": made["trafficAccessToken"]})
        self.assertEqual(dict(reply.json["headers"])["Host"], "app.test:3000")
        for wrong in (other["trafficAccessToken"], made["trafficAccessToken"][:-1], made["envdAccessToken"]):
            self.assert_denied(self.visit(box, headers={"E2B-Traffic-Access-Token": wrong}))
        self.server.kill("server")
        self.find_port()
        self.assert_denied(self.visit(box))
        self.assertEqual(self.visit(box, headers={"E2B-Traffic-Access-Token": made["trafficAccessToken"]}).status, 200)
        update = json.dumps({"allowPublicTraffic": True}).encode()
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        reply = self.ask(f"127.0.0.1:{self.tcp}", f"/sandboxes/{box.id}/network", method="PUT", body=update, headers=headers)
        self.assertEqual(reply.status, 204, reply)
        self.assertEqual(self.visit(box).status, 200)


class Ends(IngressCase):
    def test_a_sandbox_that_goes_takes_its_connections_along(self):
        box = self.box_with_app()
        self.link(box, access="public")
        with WebSocket(("127.0.0.1", self.tcp), "/ws", host=self.host(box)) as live:
            box.delete()
            with self.assertRaises((ConnectionError, OSError)):
                live.receive()

    def test_the_server_ends_with_tunnels_open(self):
        box = self.box_with_app()
        self.link(box, access="public")
        with WebSocket(("127.0.0.1", self.tcp), "/ws", host=self.host(box)) as live:
            self.assertEqual(self.server.stop(), 0)
            with self.assertRaises((ConnectionError, OSError)):
                live.receive()
        self.server.start()

    def test_visitors_who_come_and_go(self):
        box = self.box_with_app()
        self.link(box, access="public")
        for _ in range(30):
            peer = socket.create_connection(("127.0.0.1", self.tcp), 10)
            peer.sendall(f"GET /big?100000000 HTTP/1.1\r\nHost: {self.host(box)}\r\n\r\n".encode())
            peer.recv(10)
            peer.close()
        wait_until(lambda: self.visit(box, "/x").status == 200, 10, "it still answers")


if __name__ == "__main__":
    fixture.main()
