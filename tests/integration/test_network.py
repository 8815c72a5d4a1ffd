"""What sandboxes may reach: policies at create and live, what becomes of what is refused, restarts."""

import json
import time

from fixture import cli, http, main, raw_cli, wait_until
from internet import OTHER, WEB
from net_case import NetCase

TCP = "import socket,sys;s=socket.create_connection((sys.argv[1],int(sys.argv[2])),5);"


class Policies(NetCase):
    def test_a_sandbox_without_a_policy_reaches_nothing_and_has_no_gate(self):
        box = self.create()
        done = self.python(box, TCP, WEB, "80")
        self.assertIn("unreachable", done["stderr"])
        self.assertEqual(http("GET", box.path("/network")).json["policy"], "deny-all")

    def test_domains_by_name_and_nothing_else(self):
        asked = self.internet.asked("other.test")
        box = self.box({"allow": ["allowed.test", "*.wild.test"]})
        self.assertIn("hello from allowed.test", self.assert_reaches(box, "http://allowed.test/"))
        self.assert_reaches(box, "https://allowed.test/")
        self.assert_reaches(box, "https://www.wild.test/")
        self.assert_reaches(box, "-6", "https://allowed.test/")
        self.assert_refused(box, "https://other.test/")
        self.assert_refused(box, "https://wild.test/")
        self.assert_refused(box, "--resolve", f"other.test:443:{OTHER}", "https://other.test/")
        body = self.assert_refused(box, "--resolve", f"other.test:80:{OTHER}", "http://other.test/x")
        self.assertEqual(json.loads(body)["error"]["code"], "NETWORK_DENIED")
        self.assertIn("other.test", json.loads(body)["error"]["message"])
        entry = self.denial(box, protocol="tls", host="other.test", port=443)
        self.assertIn("no rule allows other.test", entry["reason"])
        self.assertEqual(self.internet.asked("other.test"), asked)

    def test_allow_all_is_every_public_address(self):
        box = self.box("allow-all")
        self.assert_reaches(box, "https://other.test/")
        self.assert_reaches(box, f"http://{OTHER}/")
        self.assertIn("ready", self.python(box, TCP + "print(s.recv(9))", WEB, "5432")["stdout"])

    def test_opaque_traffic_needs_a_port_or_a_subnet(self):
        read = TCP + "print(s.recv(9));s.sendall(b'ping');print(s.recv(9))"
        box = self.box({"allow": ["db.test"]})
        self.assertNotIn("ready", self.python(box, read, "db.test", "5432")["stdout"])
        self.set_network(box, {"allow": ["db.test:5432"]})
        self.assertIn("ping", self.python(box, read, "db.test", "5432")["stdout"])
        self.set_network(box, {"subnets": {"allow": [WEB + "/32"]}})
        self.assertIn("ping", self.python(box, read, WEB, "5432")["stdout"])
        self.set_network(box, {"subnets": {"allow": ["0.0.0.0/0"], "deny": [WEB + "/32"]}})
        self.assertNotIn("ready", self.python(box, read, WEB, "5432")["stdout"])
        self.assertEqual(self.denial(box, address=WEB, port=5432, protocol="tcp")["address"], WEB)

    def test_rules_for_requests(self):
        rules = [
            {"match": {"path": {"startsWith": "/secret"}}, "response": {"statusCode": 403, "body": "not for you"}},
            {"match": {"method": ["POST"]}, "forwardURL": "https://other.test/hook"},
            {"transform": [{"headers": {"X-Added": "yes", "User-Agent": None}}]},
        ]
        box = self.box({"allow": {"allowed.test": rules}})
        code, body, status = self.curl(box, "https://allowed.test/secret/1")
        self.assertEqual((code, body, status), (0, "not for you", "403"))
        seen = json.loads(self.assert_reaches(box, "https://allowed.test/echo"))
        self.assertEqual(seen["headers"]["X-Added"], "yes")
        self.assertNotIn("User-Agent", seen["headers"])
        self.assert_reaches(box, "-d", "x=1", "https://allowed.test/from?q=1")
        hook = self.internet.seen("/hook")[-1]
        self.assertEqual(hook["headers"]["vercel-forwarded-path"], "/from")
        self.assertEqual(hook["headers"]["vercel-forwarded-host"], "allowed.test")
        shown = http("GET", box.path("/network")).json["policy"]
        self.assertNotIn("yes", json.dumps(shown))

    def test_what_is_wrong_is_named(self):
        for body, field in (
            ({"network": "open"}, "network"),
            ({"network": {"allow": ["a b"]}}, "network.allow[0]"),
            ({"network": "deny-all", "egressPolicy": {"mode": "open"}}, "egressPolicy"),
            ({"egressPolicy": {"mode": "wide"}}, "egressPolicy.mode"),
        ):
            self.assert_error(http("POST", "/v1/sandboxes", body), 400, "VALIDATION_ERROR", field)
        box = self.box({"allow": ["allowed.test"]})
        self.assertEqual(http("PUT", box.path("/network"), {"policy": {"allow": "x"}}).status, 400)
        self.assert_reaches(box, "http://allowed.test/")

    def test_forms_of_other_clients(self):
        self.assert_reaches(self.create(egressPolicy={"mode": "open"}), "http://allowed.test/")
        box = self.create(egressPolicy={"mode": "strict", "allowDomains": ["allowed.test"]})
        self.assert_reaches(box, "http://allowed.test/")
        reply = http("PATCH", box.path("/egress"), {"mode": "blocked"})
        self.assertEqual(reply.json["egressPolicy"]["mode"], "blocked")
        self.assert_refused(box, "http://allowed.test/")
        self.assert_reaches(self.create(network={"blockOutbound": True, "allowList": [OTHER + "/32"]}), f"http://{OTHER}/")


class Changes(NetCase):
    def test_a_change_holds_at_once_and_closes_connections(self):
        box = self.box({"allow": ["allowed.test", "other.test"]})
        run = box.spawn("curl", "-sk", "https://allowed.test/slow", "-o", "/tmp/slow")
        keep = box.spawn("curl", "-sk", "https://other.test/slow", "-o", "/tmp/keep")
        wait_until(lambda: len(self.internet.seen("/slow")) >= 2, 10, "both transfers have begun")
        self.set_network(box, {"allow": ["other.test"]})
        self.assert_refused(box, "https://allowed.test/")
        self.assertNotEqual(box.wait(run["pid"])["exitCode"], 0)
        self.assertTrue(box.process(keep["pid"])["running"])
        self.set_network(box, "deny-all")
        self.assertNotEqual(box.wait(keep["pid"])["exitCode"], 0)
        self.assert_refused(box, "https://other.test/")
        self.set_network(box, {"allow": ["allowed.test"]})
        self.assert_reaches(box, "https://allowed.test/")

    def test_survives_stop_fork_snapshot_and_restarts(self):
        policy = {"allow": {"allowed.test": []}}
        box = self.box(policy)

        def holds(which):
            self.assertEqual(http("GET", which.path("/network")).json["policy"], policy)
            self.assert_reaches(which, "https://allowed.test/")
            self.assert_refused(which, "https://other.test/")

        holds(box)
        http("POST", box.path("/stop"))
        http("POST", box.path("/resume"))
        holds(box)
        fork = http("POST", box.path("/fork"), {}).json["sandbox"]["id"]
        holds(type(box)(fork))
        snapshot = http("POST", box.path("/snapshots"), {}).json["snapshotId"]
        holds(self.create(fromSnapshot=snapshot))
        for which in ("egress", "server", "launcher"):
            self.server.kill(which)
            holds(box)

    def test_kill_of_egress_during_transfers(self):
        box = self.box({"allow": ["allowed.test"]})
        script = "for i in $(seq 200); do curl -sk -m 60 https://allowed.test/slow -o /dev/null & done; wait; echo all-ended"
        run = box.spawn("bash", "-c", script)
        wait_until(lambda: len(self.internet.seen("/slow")) >= 200, 60, "all transfers have begun")
        self.server.kill("egress")
        wait_until(lambda: not box.process(run["pid"])["running"], 60, "all have ended")
        self.assert_reaches(box, "https://allowed.test/")
        self.assert_refused(box, "https://other.test/")

    def test_limits_of_rate_and_number(self):
        box = self.box({"allow": {"allowed.test": {"limits": {"bytesPerSecond": 200_000}}}, "limits": {"connections": 4}})
        began = time.monotonic()
        self.assert_reaches(box, "https://allowed.test/big/1000000", "-o", "/dev/null")
        self.assertGreater(time.monotonic() - began, 2)
        code = (
            "import socket\nended,kept=0,[]\nfor i in range(8):\n  try:\n"
            "    s=socket.create_connection(('allowed.test',80),5)\n    s.settimeout(0.2)\n    kept.append(s)\n"
            "    ended+=s.recv(1)==b''\n  except TimeoutError: pass\n  except OSError: ended+=1\nprint(ended)"
        )
        done = self.python(box, code)
        self.assertEqual(done["stdout"].strip(), "4", done)


class Words(NetCase):
    def test_commands(self):
        name = cli("create", "--allow", "allowed.test", "--allow", "*.wild.test", "--deny", "203.0.113.0/24").stdout.strip()
        policy = json.loads(cli("net", "get", name).stdout)
        self.assertEqual(set(policy["allow"]), {"allowed.test", "*.wild.test"})
        self.assertEqual(policy["subnets"]["deny"], ["203.0.113.0/24"])
        cli("exec", name, "--", "curl", "-sk", "https://allowed.test/")
        raw_cli("exec", name, "--", "curl", "-sk", "https://evil.test/")
        wait_until(lambda: "evil.test" in cli("net", "log", name).stdout, 10, "the denial is logged")
        text = cli("net", "log", name).stdout
        self.assertRegex(text, r"allow +tls +allowed.test:443 +\[allowed.test\]")
        said = cli("net", "explain", name, "https://allowed.test/v1").stdout
        self.assertEqual(said, "allowed by allowed.test: passed through\n")
        denied = raw_cli("net", "explain", name, "https://evil.test/")
        self.assertEqual(denied.returncode, 1)
        cli("net", "set", name, "--net", "deny-all")
        self.assertEqual(cli("net", "get", name).stdout.strip(), '"deny-all"')
        seen = [event for event in cli("events", name).stdout.splitlines() if "network.denied" in event]
        self.assertTrue(seen)


if __name__ == "__main__":
    main()
