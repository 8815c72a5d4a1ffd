#!/usr/bin/env python3
"""Two tenants on one server, over its port and with keys: what each sees, may do and leaves in the log."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import termios

import fixture
import product
from fixture import AtollCase, cli, http, in_parallel, raw_cli, start_cli, wait_until
from tls_proxy import TlsProxy, make_certificate

SECRET = "s3cret-value-0123456789"


class Tenant:
    """The CLI with a key of its own, over the port."""

    def __init__(self, url, key):
        self.key = key
        self.environment = {**os.environ, "ATOLL_URL": url, "ATOLL_API_KEY": key}
        self.environment.pop("ATOLL_SOCKET", None)

    def cli(self, *arguments, check=True, **options):
        return cli(*arguments, check=check, env=self.environment, **options)

    def json(self, *arguments):
        return json.loads(self.cli(*arguments, "--json").stdout)

    def start(self, *arguments):
        return start_cli(*arguments, env=self.environment)

    def events(self, *arguments):
        return [json.loads(line) for line in self.cli("events", "--json", *arguments).stdout.splitlines()]

    def names(self):
        return self.cli("ls", "-q").stdout.split()

    def id_of(self, name):
        return self.json("inspect", name)["id"]

    def set_secret(self, name, value=SECRET):
        return self.cli("secret", "set", name, stdin=None, input=value + "\n")


class Tenants(AtollCase):
    server_options = {"listen": "127.0.0.1:0"}

    def setUp(self):
        super().setUp()
        port = wait_until(
            lambda: re.search(r"127\.0\.0\.1:(\d+)", self.server.log.read_text()), 10, "the server listens on a port"
        )[1]
        self.url = f"http://127.0.0.1:{port}"

    def key(self, tenant, *options):
        made = cli("key", "create", f"of-{tenant}", "--tenant", tenant, *options)
        self.assertEqual(len(made.stdout.split()), 1, "the key alone, for $(...)")
        self.assertIn("this once", made.stderr)
        return made.stdout.strip()

    def tenant(self, name, *options):
        return Tenant(self.url, self.key(name, *options))

    def key_id(self, tenant):
        rows = json.loads(cli("key", "ls", "--tenant", tenant, "--json").stdout)
        self.assertEqual(len(rows), 1, rows)
        return rows[0]["id"]

    def test_who_is_who(self):
        member = self.tenant("who").json("whoami")
        self.assertEqual((member["tenant"], member["role"], member["allTenants"]), ("who", "member", False))
        local = json.loads(cli("whoami", "--json").stdout)
        self.assertEqual((local["role"], local["allTenants"]), ("admin", True))
        acting = json.loads(cli("whoami", "--json", env={**os.environ, "ATOLL_TENANT": "who"}).stdout)
        self.assertEqual((acting["tenant"], acting["allTenants"]), ("who", False))
        self.assertIn("member", self.tenant("who2").cli("whoami").stdout)
        error = self.assert_fails(self.tenant("who3").cli("ls", "--tenant", "who", check=False))
        self.assertIn("administrator", error)

    def test_nobody_sees_another_tenants(self):
        a, b = self.tenant("one"), self.tenant("two")
        a.cli("create", "--name", "web")
        a.set_secret("TOKEN")
        web = a.id_of("web")
        self.assertEqual(a.json("inspect", "web")["tenant"], "one")
        self.assertEqual((a.names(), b.names()), (["web"], []))
        self.assertEqual((len(a.json("secret", "ls")), b.json("secret", "ls")), (1, []))
        self.assertTrue(a.events())
        self.assertEqual(b.events(), [])
        self.assertEqual((a.json("usage")["totalSandboxes"], b.json("usage")["totalSandboxes"]), (1, 0))
        self.assertEqual({row["tenant"] for row in a.json("usage")["keys"]}, {"one"})
        for verb in (["inspect"], ["exec"], ["events"], ["usage"], ["stop"], ["rm"], ["update", "--cpu", "1"],
                     ["token", "--scope", "project"], ["ps"], ["cat"]):  # fmt: skip
            with self.subTest(verb=verb):
                self.assert_as_if_missing(b, verb, web)
        self.assert_fails(b.cli("create", "--secret", "TOKEN", check=False))
        self.assert_fails(b.cli("secret", "rm", "TOKEN", check=False))
        self.assert_fails(b.cli("key", "ls", check=False))
        # A name is a tenant's own.
        b.cli("create", "--name", "web")
        self.assertNotEqual(b.id_of("web"), web)
        self.assertEqual(cli("ls", "-q", "--tenant", "one").stdout, "web\n")
        self.assertEqual(len(cli("ls", "-q").stdout.split()), 2, "an administrator sees all")

    def assert_as_if_missing(self, tenant, verb, sandbox):
        """The same answer, but for the name, as for what never was."""

        def answer(name):
            words = [verb[0], *verb[1:]]
            words += [f"{name}:/etc/hostname"] if verb == ["cat"] else [name]
            words += ["--", "true"] if verb == ["exec"] else []
            done = tenant.cli(*words, check=False)
            self.assert_fails(done)
            return done.returncode, done.stderr.replace(name, "NAME")

        missing = sandbox[:-4] + ("aaaa" if not sandbox.endswith("aaaa") else "bbbb")
        self.assertEqual(answer(sandbox), answer(missing))

    def test_quotas(self):
        tenant = self.tenant("small", "--max-sandboxes", "2", "--max-memory", "1g", "--max-cpu", "1.5")
        tenant.cli("create", "--name", "first", "--memory", "256m", "--cpu", "0.5")
        error = self.assert_fails(tenant.cli("create", "--memory", "900m", "--cpu", "0.5", check=False))
        self.assertRegex(error, r"--memory: quota exceeded: quotaType \S*[mM]emory")
        error = self.assert_fails(tenant.cli("create", "--memory", "128m", "--cpu", "1.2", check=False))
        self.assertRegex(error, r"--cpu: quota exceeded")
        tenant.cli("create", "--name", "second", "--memory", "256m", "--cpu", "0.5")
        error = self.assert_fails(tenant.cli("create", "--memory", "64m", "--cpu", "0.1", check=False))
        self.assertRegex(error, r"quotaType \S*[sS]andboxes, current 2, wanted 1, limit 2")
        headers = {"Authorization": f"Bearer {tenant.key}"}
        refused = http("POST", "/v1/sandboxes", {"resources": {"memoryMB": 64, "cpuCores": 0.1}}, headers)
        self.assert_error(refused, 429, "QUOTA_EXCEEDED")
        self.assert_fails(tenant.cli("update", "first", "--memory", "800m", check=False))
        self.assertRegex(cli("key", "ls", "--tenant", "small").stdout, r"2 / 2 +1 / 1\.5 +512 MiB / 1(\.0)? GiB +never")
        tenant.cli("stop", "first")
        self.assert_fails(tenant.cli("create", "--memory", "64m", "--cpu", "0.1", check=False))
        tenant.cli("rm", "first")
        tenant.cli("create", "--memory", "64m", "--cpu", "0.1")

    def test_a_quota_counts_what_is_under_way(self):
        tenant = self.tenant("eager", "--max-sandboxes", "1")
        headers = {"Authorization": f"Bearer {tenant.key}"}
        replies = in_parallel([lambda: http("POST", "/v1/sandboxes", {"pool": False}, headers).status] * 8)
        self.assertEqual(sorted(replies), [201] + [429] * 7)
        self.assertRegex(cli("key", "ls", "--tenant", "eager").stdout, r"1 / 1 ")

    def test_rate(self):
        tenant = self.tenant("eager", "--rate", "1")
        answers = [tenant.cli("ls", check=False) for _ in range(12)]
        refused = [done for done in answers if done.returncode != 0]
        self.assertTrue(refused)
        self.assert_fails(refused[0])

    def test_roles(self):
        owner, reader = self.tenant("staff"), Tenant(self.url, self.key("staff", "--role", "read-only"))
        owner.cli("create", "--name", "shown")
        self.assertEqual(reader.names(), ["shown"])
        for words in (["create"], ["rm", "shown"], ["stop", "shown"], ["exec", "shown", "--", "true"],
                      ["secret", "rm", "X"], ["token", "shown", "--scope", "project"], ["key", "create", "x"]):  # fmt: skip
            with self.subTest(words=words):
                self.assertIn("atoll whoami", self.assert_fails(reader.cli(*words, check=False)))
        self.assert_fails(owner.cli("key", "create", "more", check=False))
        self.assert_fails(raw_cli("key", "create", "x", "--role", "king"), 2)

    def test_a_secret_reaches_the_sandbox_and_no_answer(self):
        tenant = self.tenant("safe")
        self.assertNotIn(SECRET, tenant.set_secret("TOKEN", "old").stdout)
        self.assertEqual(tenant.set_secret("TOKEN").stdout, "TOKEN\n")
        tenant.cli("create", "--name", "box", "--secret", "TOKEN")
        self.assertEqual(tenant.cli("exec", "box", "--", "sh", "-c", "printf %s \"$TOKEN\"").stdout, SECRET)
        headers = {"Authorization": f"Bearer {tenant.key}"}
        for path in ("/v1/secrets", "/v1/secrets/TOKEN", "/v1/sandboxes", "/v1/sandboxes/box",
                     "/v1/sandboxes/box/usage", "/v1/sandboxes/box/events?follow=false", "/v1/events?follow=false",
                     "/v1/sandboxes/box/runtime/process", "/v1/usage"):  # fmt: skip
            reply = http("GET", path, headers=headers)
            self.assertEqual(reply.status, 200, reply)
            self.assertNotIn(SECRET.encode(), reply.body, path)
        self.assertEqual(tenant.json("inspect", "box")["secrets"], ["TOKEN"])
        tenant.cli("stop", "box")
        tenant.cli("start", "box")
        self.assertEqual(tenant.cli("exec", "box", "--", "sh", "-c", "printf %s \"$TOKEN\"").stdout, SECRET)
        for file in [self.server.log, *self.server.data.glob("audit/*"), *self.server.data.glob("state/*")]:
            self.assertNotIn(SECRET.encode(), file.read_bytes(), file)
        tenant.cli("secret", "rm", "TOKEN")
        self.assertEqual(tenant.json("secret", "ls"), [])
        self.assert_fails(tenant.cli("secret", "set", "TOKEN", check=False), 2)
        self.assert_fails(tenant.cli("secret", "set", "TOKEN", "as-an-argument", check=False), 2)

    def test_a_typed_secret_is_not_shown(self):
        tenant = self.tenant("typist")
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [fixture.BIN, "secret", "set", "TYPED"], stdin=slave, stdout=slave, stderr=slave, env=tenant.environment
        )
        os.close(slave)
        seen = b""
        try:
            while b"Value of TYPED: " not in seen:
                self.assertTrue(select.select([master], [], [], 20)[0], seen)
                seen += os.read(master, 4096)
            # It drops what was typed before it hid the input.
            wait_until(lambda: not termios.tcgetattr(master)[3] & termios.ECHO, 10, "the input is hidden")
            os.write(master, SECRET.encode() + b"\n")
            while select.select([master], [], [], 20)[0]:
                try:
                    seen += os.read(master, 4096)
                except OSError:
                    break
        finally:
            os.close(master)
        self.assertEqual(process.wait(20), 0, seen)
        self.assertNotIn(SECRET.encode(), seen)
        self.assertEqual([row["name"] for row in tenant.json("secret", "ls")], ["TYPED"])

    def test_a_revoked_key_is_refused(self):
        tenant = self.tenant("leaver")
        tenant.cli("create", "--name", "left")
        identifier = self.key_id("leaver")
        self.assertEqual(cli("key", "rm", identifier).stdout, f"{identifier}\n")
        self.assertIn("not valid", self.assert_fails(tenant.cli("ls", check=False)))
        self.assertIn("key ls", self.assert_fails(cli("key", "rm", identifier, check=False)))
        self.assertEqual(cli("ls", "-q", "--tenant", "leaver").stdout, "left\n", "its sandboxes stay")

    def test_an_expired_key_is_refused(self):
        tenant = self.tenant("guest", "--expires", "1s")
        done = wait_until(lambda: (d := tenant.cli("ls", check=False)).returncode and d, 10, "the key has expired")
        self.assertIn("expired", self.assert_fails(done))

    def test_tokens(self):
        tenant = self.tenant("tokens")
        tenant.cli("create", "--name", "shared")
        sandbox = tenant.id_of("shared")
        token = tenant.cli("token", "shared", "--scope", "read-only", "--ttl", "5").stdout.strip()
        self.assertEqual(token.count("."), 2)
        holder = {"Authorization": f"Bearer {token}"}
        self.assertEqual(http("GET", f"/v1/sandboxes/{sandbox}/runtime/process", headers=holder).status, 200)
        for method, path in (("GET", "/v1/sandboxes"), ("DELETE", f"/v1/sandboxes/{sandbox}"),
                             ("POST", f"/v1/sandboxes/{sandbox}/runtime/process/spawn")):  # fmt: skip
            self.assertIn(http(method, path, {} if method == "POST" else None, holder).status, (401, 403), path)
        self.assert_fails(tenant.cli("token", "shared", check=False), 2)
        self.assert_fails(tenant.cli("token", "shared", "--scope", "session", check=False))

    def test_events_go_on_where_they_stopped(self):
        tenant = self.tenant("news")
        tenant.cli("create", "--name", "box")
        sandbox = tenant.id_of("box")
        seen = tenant.events()
        self.assertEqual({event["data"]["sandboxId"] for event in seen}, {sandbox})
        self.assertRegex(tenant.cli("events", "box").stdout, r"^20\S+Z  box  sandbox\.\w+")
        self.assertEqual(tenant.events("--since", seen[-1]["id"]), [])
        tenant.cli("stop", "box")
        later = tenant.events("--since", seen[-1]["id"])
        self.assertIn("stopped by request", [event["data"].get("reason") for event in later])
        tenant.cli("rm", "box")
        self.assertEqual([event["id"] for event in tenant.events(sandbox)],
                         [event["id"] for event in tenant.events()])  # fmt: skip
        self.assert_fails(tenant.cli("events", "--since", "soon", check=False))

    def test_following_survives_a_restart(self):
        tenant = self.tenant("follower")
        follower = tenant.start("events", "-f", "--since", "0", "--json")
        self.addCleanup(lambda: (follower.kill(), follower.wait(), follower.stdout.close(), follower.stderr.close()))
        heard = []

        def created():
            self.assertTrue(select.select([follower.stdout], [], [], 20)[0], heard)
            heard.append(json.loads(follower.stdout.readline()))
            return heard[-1]["type"] == "sandbox.created" and heard[-1]["data"]["name"]

        tenant.cli("create", "--name", "first")
        self.assertEqual(wait_until(created, 20, "the first is told"), "first")
        for _ in range(2):  # the second time nothing has come since
            self.server.kill("server")
        tenant.cli("create", "--name", "second")
        self.assertEqual(wait_until(created, 20, "the second is told"), "second")
        numbers = [int(event["id"]) for event in heard]
        self.assertEqual(numbers, sorted(set(numbers)), "each once, in order")

    def test_a_stream_without_events_says_where_to_go_on(self):
        tenant = self.tenant("quiet")
        tenant.cli("create", "--name", "box")
        connection = product.UnixConnection(20)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {tenant.key}"})
        response = connection.getresponse()
        lines = dict(response.readline().decode().strip().split(": ", 1) for _ in range(3))
        self.assertEqual(lines["event"], "heartbeat")
        tenant.cli("stop", "box")
        missed = tenant.events("--since", lines["id"])
        self.assertEqual({event["data"]["status"] for event in missed}, {"stopped"})

    def test_idle_stop_and_the_next_use(self):
        tenant = self.tenant("sleepy")
        tenant.cli("create", "--name", "nap", "--idle-timeout", "1s")
        tenant.cli("create", "--name", "deep", "--idle-timeout", "1s", "--no-auto-resume")
        tenant.cli("exec", "nap", "--", "sh", "-c", "echo kept > f; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
        for name in ("nap", "deep"):
            wait_until(lambda name=name: tenant.json("inspect", name)["status"] == "stopped", 20, f"{name} is stopped")
            self.assertEqual(tenant.json("inspect", name)["cause"], "idle")
        used = tenant.json("usage", "nap")
        self.assertGreater(used["cpuSeconds"], 0)
        self.assertGreater(used["memoryGBSeconds"], 0)
        self.assertNotIn("memoryBytes", used)
        self.assertRegex(tenant.cli("usage", "nap").stdout, r"\n +- +- ")
        self.assertEqual(tenant.cli("exec", "nap", "--", "cat", "f").stdout, "kept\n")
        self.assertGreaterEqual(tenant.json("usage", "nap")["cpuSeconds"], used["cpuSeconds"])
        self.assertIn("atoll start", self.assert_fails(tenant.cli("exec", "deep", "--", "true", check=False)))
        row = next(row for row in tenant.json("usage")["keys"] if row["tenant"] == "sleepy")
        self.assertGreaterEqual(row["cpuSeconds"], used["cpuSeconds"])
        self.assertRegex(tenant.cli("usage").stdout, r"sleepy +\S+ +\d +2 ")

    def test_deleted_after_a_stop_and_the_reason_is_known(self):
        tenant, other = self.tenant("tidy"), self.tenant("nosy")
        tenant.cli("create", "--name", "old")
        tenant.cli("update", "old", "--delete-after", "1s")
        sandbox = tenant.id_of("old")
        tenant.cli("stop", "old")
        wait_until(lambda: tenant.names() == [], 20, "it is deleted")
        error = self.assert_fails(tenant.cli("inspect", sandbox, check=False))
        self.assertIn("was deleted: it stood stopped for as long as it may", error)
        self.assertNotIn("was deleted", self.assert_fails(other.cli("inspect", sandbox, check=False)))
        headers = {"Authorization": f"Bearer {tenant.key}"}
        self.assert_error(http("GET", f"/v1/sandboxes/{sandbox}", headers=headers), 404, "NOT_FOUND")
        self.assertEqual(tenant.json("usage")["totalSandboxes"], 1, "its usage stays")

    def test_the_log_of_who_did_what(self):
        tenant = self.tenant("logged")
        tenant.cli("create", "--name", "traced")
        data = str(self.server.data)
        done = cli("audit", "verify", "--data-dir", data)
        entries, head = re.fullmatch(r"(\d+) entries, head (\d+:[0-9a-f]{64})\n", done.stdout).groups()
        self.assertGreater(int(entries), 1)
        actor = f"key:{self.key_id('logged')}"
        last = cli("audit", "tail", "--data-dir", data, "-n", "100").stdout
        self.assertRegex(last, rf"(?m)^20\S+Z  {actor}  logged  POST /v1/sandboxes  -  accepted$")
        self.assertEqual(len(cli("audit", "tail", "--data-dir", data, "-n", "1", "--json").stdout.splitlines()), 1)
        tenant.cli("rm", "traced")
        cli("audit", "verify", "--data-dir", data, "--head", head)
        # A copy: the server goes on with its own.
        copy = self.server.home / "copy"
        shutil.copytree(self.server.data / "audit", copy / "audit")
        self.addCleanup(shutil.rmtree, copy)
        file = copy / "audit" / "audit.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        changed = next(i for i, line in enumerate(lines) if '"tenant":"logged"' in line)
        lines[changed] = lines[changed].replace('"tenant":"logged"', '"tenant":"nobody"')
        file.write_text("".join(lines))
        error = self.assert_fails(cli("audit", "verify", "--data-dir", str(copy), check=False), 1)
        self.assertIn(f"{file}:{changed + 1}: does not have the hash it names", error)
        file.write_text("".join(lines[:changed]))
        cli("audit", "verify", "--data-dir", str(copy))
        error = self.assert_fails(cli("audit", "verify", "--data-dir", str(copy), "--head", head, check=False), 1)
        self.assertIn("the end of the log is missing", error)
        self.assert_fails(cli("audit", "verify", "--head", "soon", check=False), 2)

    def test_everything_goes_over_https(self):
        certificate, key = make_certificate(self.server.home)
        proxy = TlsProxy(int(self.url.rpartition(":")[2]), certificate, key)
        self.addCleanup(proxy.close)
        tenant = Tenant(proxy.url, self.key("far"))
        self.assert_fails(tenant.cli("ls", check=False))  # nobody vouches for the certificate
        tenant.environment["ATOLL_CA_FILE"] = str(certificate)
        self.assertEqual(tenant.json("whoami")["tenant"], "far")
        tenant.set_secret("TOKEN")
        tenant.cli("create", "--name", "web", "--secret", "TOKEN")
        self.assertEqual(tenant.cli("exec", "web", "--", "printenv", "TOKEN").stdout, SECRET + "\n")
        self.assertTrue(tenant.events("web"))
        self.assertGreater(tenant.json("usage", "web")["memoryBytes"], 0)
        self.assertEqual(tenant.cli("token", "web", "--scope", "project").stdout.count("."), 2)
        self.assertEqual(tenant.cli("rm", "web").stdout, "web\n")


if __name__ == "__main__":
    fixture.main()
