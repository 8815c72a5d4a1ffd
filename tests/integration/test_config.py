#!/usr/bin/env python3
"""Settings: where they come from, what is refused, what the server makes of them."""

import json
import os
import pathlib
import signal
import tempfile
import unittest

import fixture
from fixture import AtollServer, cli, http as request, wait_until


def environment(**settings):
    """Ours, without the settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ATOLL_")}
    return {**kept, **settings}


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="atoll-config-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "config.toml"

    def show(self, *flags, **settings):
        done = cli("config", "show", "--config", str(self.file), "--json", *flags, env=environment(**settings))
        return {row["key"]: row for row in json.loads(done.stdout)}

    def refused(self, *arguments, **settings):
        done = cli(*arguments, check=False, env=environment(**settings))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_each_value_says_where_it_comes_from(self):
        self.file.write_text('# ours\npool = 1\nreserve = 1\n[lifetimes]\nidle = "5m"\n')
        rows = self.show("--pool", "3", ATOLL_POOL="2", ATOLL_RESERVE="2")
        self.assertEqual((rows["pool"]["value"], rows["pool"]["origin"]), (3, "--pool"))
        self.assertEqual((rows["reserve"]["value"], rows["reserve"]["origin"]), (2, "ATOLL_RESERVE"))
        self.assertEqual((rows["lifetimes.idle"]["value"], rows["lifetimes.idle"]["origin"]), ("5m", f"{self.file}:5"))
        self.assertEqual((rows["on_exit"]["source"], rows["on_exit"]["origin"]), ("default", ""))
        plain = cli("config", "show", "--config", str(self.file), env=environment()).stdout
        self.assertRegex(plain, rf"(?m)^pool +1 +{self.file}:2$")
        self.assertRegex(plain, r"(?m)^listen +127\.0\.0\.1:7777 +default$")

    def test_check_names_every_problem(self):
        self.file.write_text('pool = 1\n')
        self.assertEqual(cli("config", "check", str(self.file)).stdout, f"{self.file}: ok\n")
        self.file.write_text('pol = 1\n[limits.default]\nmemory = "much"\n')
        error = self.refused("config", "check", str(self.file))
        self.assertEqual(
            error.splitlines(),
            [f"atoll: {self.file}:1: there is no setting 'pol'",
             f"atoll: {self.file}:3: limits.default.memory: 'much' is not a size, such as 512m or 1.5g"],
        )  # fmt: skip
        report = json.loads(cli("config", "check", str(self.file), "--json", check=False).stdout)
        self.assertEqual((report["ok"], len(report["problems"])), (False, 2))

    def test_serve_refuses_before_it_starts(self):
        self.file.write_text("\nlisten = 7777\n")
        error = self.refused("serve", "--config", str(self.file))
        self.assertEqual(error, f"atoll: {self.file}:2: listen wants a text in quotes\n")
        self.assertIn("No such file", self.refused("serve", "--config", f"{self.file}.not"))
        self.assertIn("ATOLL_ON_EXIT: 'later'", self.refused("serve", ATOLL_ON_EXIT="later"))
        self.assertIn("--log-format: 'xml'", self.refused("serve", "--log-format", "xml"))


class Serving(unittest.TestCase):
    def start(self, text, **more):
        server = AtollServer(**more)
        file = server.home / "config.toml"
        file.write_text(text)
        server.options = ("--config", str(file))
        self.addCleanup(server.close)
        return server.start()

    def test_settings_of_the_file_apply(self):
        server = self.start(
            'log_format = "text"\npublic_url = "https://box.example.com/"\n'
            'limits.default = { memory = "256m", pids = 99, cpu = 0.5 }\n'
        )
        info = request("POST", "/v1/sandboxes", {"name": "web"}).json
        limits = info["resources"]
        self.assertEqual((limits["memoryMB"], limits["pids"], limits["cpuCores"]), (256, 99, 0.5))
        self.assertTrue(info["connection"]["runtimeUrl"].startswith("https://box.example.com/runtime/"))
        self.assertRegex(fixture.read_text(server.log), r"(?m)^\S+Z info    server: serving socket=/\S+ url=https://")

    def test_hangup_ends_nothing(self):
        server = self.start("")
        box = request("POST", "/v1/sandboxes", {"name": "web"}).json["id"]
        before = server.children()
        for _ in range(3):
            server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "told to reload" in fixture.read_text(server.log), 10, "the server heard of it")
        self.assertEqual(server.children(), before)
        self.assertEqual(request("GET", f"/v1/sandboxes/{box}").json["status"], "running")


if __name__ == "__main__":
    fixture.main()
