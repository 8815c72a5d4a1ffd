"""A small internet in network namespaces of a test's own: name server, web servers with their own authority, and
hosts that nobody should reach. The server under test runs in one namespace, all else in the other."""

import atexit
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile

from product import wait_until

DNS = "93.184.216.53"
WEB, OTHER, EVIL = "93.184.216.34", "93.184.216.35", "93.184.216.66"
WEB6 = "2606:2800:220:1::34"
PRIVATE = "10.99.0.2"
METADATA = "169.254.169.254"
HOSTS = {
    "allowed.test": [WEB, WEB6], "api.allowed.test": [WEB], "www.wild.test": [WEB], "echo.test": [WEB],
    "other.test": [OTHER], "evil.test": [EVIL], "db.test": [WEB], "h2.test": [WEB], "index.test": [WEB],
    "inside.test": [PRIVATE], "mixed.test": [WEB, PRIVATE], "metadata.google.internal": [METADATA],
    "badcert.test": [WEB], "rebind.test": [WEB], "expired.test": [WEB],
}  # fmt: skip
ALIASES = {"alias.test": "inside.test", "cdn.test": "other.test"}


def run(*command, **more):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **more)


class Internet:
    def __init__(self):
        mark = secrets.token_hex(3)
        self.inner, self.outer = f"atoll-s-{mark}", f"atoll-o-{mark}"
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="atoll-net-", dir="/var/tmp"))
        self.home.chmod(0o755)
        self.zone, self.queries = self.home / "zone.json", self.home / "queries"
        self.requests = self.home / "requests"
        self.process = None
        atexit.register(self.close)

    def start(self):
        self.set_zone(HOSTS)
        self.queries.touch()
        self.requests.touch()
        self.make_certificates()
        self.make_namespaces()
        with (self.home / "log").open("wb") as log:
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.outer}", "--", sys.executable,
                 str(pathlib.Path(__file__).with_name("internet_hosts.py")), str(self.home)],
                stdout=log, stderr=log,
            )  # fmt: skip
        wait_until(lambda: (self.home / "ready").exists(), 20, "the hosts are there")
        return self

    def close(self):
        atexit.unregister(self.close)
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None
        for name in (self.inner, self.outer):
            with contextlib.suppress(subprocess.CalledProcessError):
                run("ip", "netns", "del", name)
        shutil.rmtree(self.home, ignore_errors=True)

    def make_namespaces(self):
        for name in (self.inner, self.outer):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.inner, "link", "add", "out", "type", "veth", "peer", "name", "in", "netns", self.outer)
        for name, link, four, six in (
            (self.inner, "out", "10.99.0.1/24", "fd99::1/64"),
            (self.outer, "in", f"{PRIVATE}/24", "fd99::2/64"),
        ):
            run("ip", "-n", name, "addr", "add", four, "dev", link)
            run("ip", "-n", name, "-6", "addr", "add", six, "dev", link, "nodad")
            run("ip", "-n", name, "link", "set", link, "up")
        run("ip", "-n", self.inner, "route", "add", "default", "via", PRIVATE)
        run("ip", "-n", self.inner, "-6", "route", "add", "default", "via", "fd99::2")
        for address in (DNS, WEB, OTHER, EVIL, METADATA):
            run("ip", "-n", self.outer, "addr", "add", f"{address}/32", "dev", "lo")
        run("ip", "-n", self.outer, "-6", "addr", "add", f"{WEB6}/128", "dev", "lo", "nodad")

    def make_certificates(self):
        self.ca = self.home / "ca.pem"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "30", "-subj", "/CN=Test authority", "-keyout", self.home / "ca.key", "-out", self.ca)  # fmt: skip
        good = [name for name in HOSTS if name not in ("badcert.test", "expired.test")]
        self.sign("good", good + ["*.wild.test", "cdn.test"], 30)
        self.sign("badcert", ["somebody-else.test"], 30)
        self.sign("expired", ["expired.test"], -1)

    def sign(self, name, hosts, days):
        key, request, out = (self.home / f"{name}{end}" for end in (".key", ".csr", ".pem"))
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
            f"/CN={hosts[0]}", "-keyout", key, "-out", request)  # fmt: skip
        extension = self.home / f"{name}.ext"
        extension.write_text("subjectAltName=" + ",".join(f"DNS:{host}" for host in hosts) + "\n")
        when = ["-days", str(days)] if days > 0 else ["-days", "1"]
        command = ["openssl", "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.home / "ca.key",
                   "-CAcreateserial", "-extfile", extension, "-out", out, *when]  # fmt: skip
        if days < 0:
            command = ["faketime", "-7d", *command] if shutil.which("faketime") else command
        run(*command)

    def set_zone(self, hosts, ttl=5):
        fresh = self.zone.with_suffix(".new")
        fresh.write_text(json.dumps({"hosts": hosts, "aliases": ALIASES, "ttl": ttl}))
        fresh.rename(self.zone)

    def asked(self, text):
        """How often the name server was asked for names with this in them."""
        return self.queries.read_text().count(text)

    def seen(self, text=""):
        """Requests that reached a web server, as dictionaries."""
        lines = [json.loads(line) for line in self.requests.read_text().splitlines()]
        return [line for line in lines if text in line["path"]]

    def options(self, *more):
        return ("--dns-upstream", f"{DNS}:53", "--egress-ca", str(self.ca), *more)
