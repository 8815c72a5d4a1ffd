"""Section H of the security reference: secrets that a policy sends, and that the sandbox never has."""

import json
import pathlib

from fixture import http, main, wait_until
from net_case import NetCase

VALUE = "s3cr3t-value-0123456789"
RULE = {"transform": [{"headers": {"Authorization": "Bearer ${API_KEY}"}}]}
POLICY = {"allow": {"api.allowed.test": [RULE], "other.test": [], "evil.test": []}}


class Secrets(NetCase):
    def setUp(self):
        super().setUp()
        self.set_secret(VALUE)

    def set_secret(self, value):
        self.assertEqual(http("PUT", "/v1/secrets/API_KEY", {"value": value}).status, 200)

    def echo(self, box, *more, url="https://api.allowed.test/echo"):
        """What the server saw; certificates are checked, as a client inside would."""
        done = box.exec("curl", "-sS", "-m", "8", "-i", *more, url)
        self.assertEqual(done["exitCode"], 0, done)
        return done["stdout"]

    def sent(self):
        return self.internet.seen("/echo")[-1]["headers"].get("Authorization")

    def test_h01_the_value_goes_out_and_is_nowhere_inside(self):
        box = self.box(POLICY)
        answer = self.echo(box)
        self.assertEqual(self.sent(), f"Bearer {VALUE}")
        self.assertNotIn(VALUE, answer)
        self.assertEqual(box.exec("bash", "-lc", "echo $API_KEY")["stdout"].strip(), "atoll-secret-API_KEY")
        code = (
            "import glob,os,sys\nv=(sys.argv[1]+sys.argv[2]).encode()\nfiles=glob.glob('/proc/[0-9]*/environ')\n"
            "for d in ('/etc','/usr/local','/workspace','/root','/run','/tmp'):\n"
            "  files+=[os.path.join(r,x) for r,_,n in os.walk(d) for x in n]\n"
            "print([f for f in files if os.path.isfile(f) and os.access(f,os.R_OK) and v in open(f,'rb').read()])"
        )
        self.assertEqual(self.python(box, code, VALUE[:9], VALUE[9:])["stdout"].strip(), "[]")
        self.assertNotEqual(self.python(box, code, "atoll-", "secret-API_KEY")["stdout"].strip(), "[]")
        for path in ("", "/network", "/network/log", "/egress/denials"):
            self.assertNotIn(VALUE, http("GET", box.path(path)).body.decode())
        self.assertNotIn(VALUE, self.server.log.read_text())
        self.assertNotIn(VALUE.encode(), (self.server.data / "state" / "atoll.db").read_bytes())

    def test_h02_nowhere_else(self):
        box = self.box({"allow": {"api.allowed.test": [{"match": {"path": {"startsWith": "/echo"}}, **RULE}], "other.test": []}})
        self.echo(box)
        self.assertEqual(self.sent(), f"Bearer {VALUE}")
        placeholder = ("-H", "Authorization: Bearer atoll-secret-API_KEY")
        for arguments in (
            ("-k", *placeholder, "https://other.test/elsewhere"),
            (*placeholder, "https://api.allowed.test/elsewhere"),
            (*placeholder, "http://api.allowed.test/elsewhere"),
            ("-k", *placeholder, "https://api.allowed.test:8443/elsewhere"),
        ):
            box.exec("curl", "-sS", "-m", "8", *arguments)
        seen = self.internet.seen("/elsewhere")
        self.assertGreaterEqual(len(seen), 3)
        plain = [line for line in seen if not line["tls"] or line["host"] == "other.test"]
        self.assertNotIn(VALUE, json.dumps(plain))
        self.assertNotIn(VALUE, json.dumps([line for line in seen if ":8443" not in line["host"]]))

    def test_h04_an_echo_is_hidden(self):
        box = self.box(POLICY)
        for path in ("/echo", "/chunked-echo"):
            answer = self.echo(box, "--compressed", url=f"https://api.allowed.test{path}")
            self.assertIn("*" * len(VALUE), answer)
            self.assertNotIn(VALUE, answer)

    def test_h05_what_the_caller_sends_is_replaced(self):
        box = self.box(POLICY)
        self.echo(box, "-H", "Authorization: mine", "-H", "authorization: also mine")
        self.assertEqual(self.sent(), f"Bearer {VALUE}")
        bad = {"allow": {"a.test": [{"transform": [{"headers": {"X": "a\r\nB: c"}}]}]}}
        self.assertEqual(http("PUT", box.path("/network"), {"policy": bad}).status, 400)
        self.set_secret("two\nlines")
        self.assertIn("403", self.echo(box))

    def test_h06_a_redirect_carries_nothing(self):
        box = self.box(POLICY)
        box.exec("curl", "-skL", "-m", "8", "https://api.allowed.test/redirect")
        stolen = self.internet.seen("/stolen")
        self.assertTrue(stolen)
        self.assertNotIn(VALUE, json.dumps(stolen))

    def test_h07_the_server_must_be_who_it_says(self):
        rules = {name: [RULE] for name in ("api.allowed.test", "badcert.test")}
        box = self.box({"allow": rules})
        self.echo(box)
        answer = self.echo(box, url="https://badcert.test/echo")
        self.assertIn("502", answer.splitlines()[0])
        self.assertNotIn("badcert.test", json.dumps(self.internet.seen("/echo")))

    def test_h09_trust_survives_its_tools_and_copies(self):
        box = self.box(POLICY)
        self.echo(box)
        box.exec("bash", "-c", "update-ca-certificates", timeout=120)
        self.echo(box)
        fork = type(box)(http("POST", box.path("/fork"), {}).json["sandbox"]["id"])
        self.echo(fork)
        http("POST", box.path("/stop"))
        http("POST", box.path("/resume"))
        self.echo(box)
        ca = "cat /usr/local/share/ca-certificates/atoll-egress.crt"
        self.assertNotEqual(box.exec("bash", "-c", ca)["stdout"], fork.exec("bash", "-c", ca)["stdout"])

    def test_h10_without_a_rule_the_servers_own_certificate_passes(self):
        """So clients that know their server's certificate go on; and nothing is added to what they say."""
        box = self.box(POLICY)
        code = "import ssl,sys;print(ssl.get_server_certificate((sys.argv[1],443)))"
        own = (self.internet.home / "good.pem").read_text()
        self.assertEqual(self.python(box, code, "other.test")["stdout"].split(), own.split())
        self.assertNotEqual(self.python(box, code, "api.allowed.test")["stdout"].split(), own.split(), "the control")
        self.echo(box, "-k", url="https://other.test/echo")
        self.assertIsNone(self.sent())

    def test_values_in_rules_are_sealed_where_they_are_kept(self):
        value = "literal-" + VALUE
        box = self.box({"allow": {"api.allowed.test": [{"transform": [{"headers": {"X-Key": value}}]}]}})
        plain = self.box({"allow": ["plain-name.allowed.test"]})
        http("POST", box.path("/snapshots"), {})
        kept = b"".join(path.read_bytes() for path in (pathlib.Path(self.server.data) / "state").glob("*"))
        self.assertIn(b"plain-name.allowed.test", kept, "this is where policies are")
        self.assertNotIn(value.encode(), kept)
        self.server.kill("server")
        wait_until(self.server.healthy, 30, "it is back")
        self.echo(box)
        self.assertEqual(self.internet.seen("/echo")[-1]["headers"].get("X-Key"), value)
        self.assertEqual(http("GET", plain.path("/network")).status, 200)

    def test_a_secret_changes_for_all_at_once(self):
        boxes = [self.box(POLICY) for _ in range(3)]
        self.set_secret("another-value-987654")
        for box in boxes:
            self.echo(box)
            self.assertEqual(self.sent(), "Bearer another-value-987654")
        self.assertEqual(http("DELETE", "/v1/secrets/API_KEY").status, 200)
        self.assertIn("403", self.echo(boxes[0]).splitlines()[0])
        self.assert_error(http("POST", "/v1/sandboxes", {"network": POLICY}), 400, "VALIDATION_ERROR", "network")

    def test_rules_that_come_while_it_is_paused(self):
        box = self.box({"allow": ["api.allowed.test"]})
        http("POST", box.path("/pause"))
        self.set_network(box, POLICY)
        http("POST", box.path("/resume"))
        self.echo(box)
        self.assertEqual(self.sent(), f"Bearer {VALUE}")

    def test_rules_can_come_and_go(self):
        box = self.box({"allow": ["api.allowed.test"]})
        before = len(self.internet.seen("/echo"))
        self.curl(box, "https://api.allowed.test/echo")
        self.assertIsNone(self.internet.seen("/echo")[before]["headers"].get("Authorization"))
        self.set_network(box, POLICY)
        self.echo(box)
        self.assertEqual(self.sent(), f"Bearer {VALUE}")
        self.server.kill("egress")
        wait_until(lambda: box.exec("true")["exitCode"] == 0, 20, "it works again")
        self.echo(box)
        self.assertEqual(self.sent(), f"Bearer {VALUE}")


if __name__ == "__main__":
    main()
