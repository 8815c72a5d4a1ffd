#!/usr/bin/env python3
"""HTTPS by the server itself: the command line and sandboxes' ports through it, a renewed certificate, a missing one."""

import http.client as http_client
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import unittest

import fixture
import ingress_app
from fixture import AtollServer, http, wait_until
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

    def test_ports_of_sandboxes(self):
        self.server.start()
        self.cli("create", "--name", "web")
        for program, port in ((ingress_app.SOURCE, "3000"), (ingress_app.RAW, "4000")):
            http("POST", "/v1/sandboxes/web/runtime/process/spawn", {"executable": "python3", "args": ["-c", program, port]})
        listening = "cat < /dev/null > /dev/tcp/127.0.0.1/3000 && cat < /dev/null > /dev/tcp/127.0.0.1/4000"
        wait_until(lambda: self.cli("exec", "web", "--", "bash", "-c", listening).returncode == 0, 20, "both listen")
        url = self.cli("port", "web", "3000", "--public").stdout.strip()
        self.assertTrue(url.startswith("https://3000-sandbox-"), url)
        host = url.removeprefix("https://").removesuffix("/")
        port = int(self.url().rsplit(":", 1)[1])
        trust = ssl._create_unverified_context()  # noqa: S323: the certificate is for the address
        connection = http_client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trust)
        self.addCleanup(connection.close)
        connection.request("POST", "/digest", bytes(5_000_000), {"Host": host})
        self.assertEqual(json.loads(connection.getresponse().read())["size"], 5_000_000)
        connection.request("GET", "/big?5000000", headers={"Host": host})
        self.assertEqual(len(connection.getresponse().read()), 5_000_000)
        connection.request("GET", "/x", headers={"Host": host})
        seen = dict(json.loads(connection.getresponse().read())["headers"])
        self.assertEqual(seen["X-Forwarded-Proto"], "https")
        self.forward()

    def forward(self):
        key = (self.server.data / "api-key").read_text().strip()
        environment = os.environ | {"ATOLL_URL": self.url(), "ATOLL_API_KEY": key, "ATOLL_CA_FILE": str(self.certificate)}
        command = [fixture.BIN, "port", "--forward", "0:4000", "web", "--json"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
            try:
                port = json.loads(process.stdout.readline())["localPort"]
                with socket.create_connection(("127.0.0.1", port), 20) as peer:
                    sender = threading.Thread(target=lambda: (peer.sendall(bytes(3_000_000)), peer.shutdown(socket.SHUT_WR)))
                    sender.start()
                    got = b"".join(iter(lambda: peer.recv(65536), b""))
                    sender.join()
                self.assertEqual(got, bytes(3_000_000) + b"total 3000000")
            finally:
                process.kill()

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
