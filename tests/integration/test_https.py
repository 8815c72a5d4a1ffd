#!/usr/bin/env python3
"""HTTPS by the server itself: the command line through it, a renewed certificate, a missing one."""

import json
import os
import signal
import ssl
import subprocess
import unittest

import fixture
from fixture import AtollServer, wait_until
from tls_proxy import make_certificate


class Https(unittest.TestCase):
    def setUp(self):
        self.server = AtollServer(listen="127.0.0.1:0")
        self.addCleanup(self.server.close)
        self.certificate, key = make_certificate(self.server.home)
        key.chmod(0o644)  # the server's account reads it
        self.server.options = ("--tls-certificate", str(self.certificate), "--tls-key", str(key))

    def url(self):
        lines = [json.loads(line) for line in fixture.read_text(self.server.log).splitlines()]
        return [line["url"] for line in lines if line.get("message") == "serving"][-1]

    def cli(self, *arguments, **environment):
        key = (self.server.data / "api-key").read_text().strip()
        environment = {"ATOLL_URL": self.url(), "ATOLL_API_KEY": key, "ATOLL_CA_FILE": str(self.certificate)} | environment
        return subprocess.run(
            [fixture.BIN, *arguments], env=os.environ | environment, capture_output=True, text=True, timeout=60
        )

    def served_certificate(self):
        host, port = self.url().removeprefix("https://").split(":")
        return ssl.get_server_certificate((host, int(port)))

    def test_commands_and_their_verification(self):
        self.server.start()
        self.assertTrue(self.url().startswith("https://127.0.0.1:"))
        done = self.cli("run", "--", "echo", "hi")
        self.assertEqual((done.returncode, done.stdout), (0, "hi\n"), done.stderr)
        untrusting = self.cli("ls", ATOLL_CA_FILE="")
        self.assertNotEqual(untrusting.returncode, 0)
        self.assertIn("certificate", untrusting.stderr)
        plain = self.cli("ls", ATOLL_URL=self.url().replace("https", "http"))
        self.assertIn("https://", plain.stderr)

    def test_a_renewed_certificate_is_taken_at_a_hangup(self):
        self.server.start()
        before = self.served_certificate()
        make_certificate(self.server.home)
        (self.server.home / "key.pem").chmod(0o644)
        os.kill(self.server.process.pid, signal.SIGHUP)
        wait_until(lambda: self.served_certificate() != before, 10, "the new certificate is served")

    def test_without_the_file_nothing_is_served_in_the_clear(self):
        self.certificate.unlink()
        with self.assertRaises(AssertionError) as refused:
            self.server.start()
        self.assertIn("cert.pem", str(refused.exception))


if __name__ == "__main__":
    fixture.main()
