#!/usr/bin/env python3
"""As a service: what the unit file promises, and what the manager that reads it is told."""

import configparser
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import fixture
from fixture import AtollServer, http as request, wait_until

UNIT = pathlib.Path(fixture.BIN).parent / "atoll.service"
WATCHDOG_SECONDS = 0.6


def unit():
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str
    parser.read_string(UNIT.read_text())
    return parser


def dropped_capabilities():
    """In the names of setpriv(1)."""
    value = unit()["Service"]["CapabilityBoundingSet"]
    assert value.startswith("~")
    return [name.removeprefix("CAP_").lower() for name in value[1:].split()]


# What ProtectSystem=full and ProtectHome=read-only make of the host.
READ_ONLY = """
for folder in /usr /etc /home /root; do
  mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder" || exit 1
done
exec "$0" "$@"
"""


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o777)  # as systemd's is
        self.heard = []
        self.arrived = queue.SimpleQueue()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        """Always: only ten datagrams wait for a reader, and what comes after them is lost."""
        while datagram := self.socket.recv(4096):
            self.arrived.put(datagram.decode())

    def close(self):
        self.socket.shutdown(socket.SHUT_RD)
        self.reader.join()
        self.socket.close()

    def listen(self, seconds):
        try:
            self.heard.append(self.arrived.get(timeout=seconds))
        except queue.Empty:
            return None
        return self.heard[-1]

    def wait_for(self, state, seconds=20):
        wait_until(lambda: self.listen(1) == state, seconds, f"the manager hears {state}")

    def forget(self):
        while self.listen(0.05) not in (None, "WATCHDOG=1"):
            pass


class Service(unittest.TestCase):
    """The server with the environment and the rights that the unit gives it."""

    def setUp(self):
        self.server = AtollServer(on_exit="keep")
        self.addCleanup(self.server.close)
        self.manager = Manager(self.server.home)
        self.addCleanup(self.manager.close)
        self.start()

    def start(self):
        server = self.server
        with server.log.open("ab") as log:
            server.process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "slave", "sh", "-c", READ_ONLY, "setpriv", "--bounding-set", ",".join(f"-{name}" for name in dropped_capabilities()),
                 fixture.BIN, "serve", "--data-dir", server.data, "--run-dir", server.run, "--cgroup", server.cgroup,
                 "--listen", "none", "--on-exit", "keep", "--reserve", "2", "--pool", "2"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "NOTIFY_SOCKET": self.manager.path,
                     "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1e6))},
            )  # fmt: skip
        self.manager.wait_for("READY=1")
        server.use()

    def create(self, **body):
        reply = request("POST", "/v1/sandboxes", body)
        self.assertEqual(reply.status, 201, reply)
        return fixture.Box(reply.json["id"])

    def test_works_with_the_rights_it_is_left(self):
        self.assertTrue(self.server.healthy(), "READY=1 came too early")
        for body in ({}, {"resources": {"diskGB": 0.25}}, {"profile": "strict"}):
            box = self.create(**body)
            self.assertEqual(box.exec("/bin/sh", "-c", "echo a > /tmp/f; cat /tmp/f")["stdout"], "a\n")
        box = self.create(name="stopped")
        self.assertEqual(request("POST", box.path("/stop")).status, 200)
        self.assertEqual(request("POST", box.path("/resume")).status, 200)

    def test_children_do_not_hear_of_the_manager(self):
        variables = pathlib.Path(f"/proc/{self.server.launcher_pid()}/environ").read_bytes()
        self.assertIn(b"NOTIFY_SOCKET=", variables, "the kernel keeps what the process was started with")
        box = self.create()
        self.assertNotIn("NOTIFY", box.exec("/usr/bin/env")["stdout"])

    def test_signs_of_life_are_the_servers(self):
        for _ in range(3):
            self.manager.wait_for("WATCHDOG=1", WATCHDOG_SECONDS * 2)
        server = self.server.server_pid()
        os.kill(server, signal.SIGSTOP)
        try:
            self.manager.forget()
            while self.manager.listen(0.01) is not None:  # what was sent before
                pass
            self.assertIsNone(self.manager.listen(WATCHDOG_SECONDS), "a server that hangs shows no life")
        finally:
            os.kill(server, signal.SIGCONT)
        self.manager.wait_for("WATCHDOG=1")

    def test_restart_keeps_sandboxes(self):
        box = self.create(name="kept")
        pid = box.spawn("/bin/sleep", "100")["pid"]
        self.server.kill("server")
        self.manager.wait_for("READY=1")
        self.manager.forget()
        self.assertEqual(self.server.stop(), 0)
        while "STOPPING=1" not in self.manager.heard:
            self.assertIsNotNone(self.manager.listen(1), "the manager was not told of the end")
        self.start()
        self.assertTrue(box.process(pid)["running"])


class Unit(unittest.TestCase):
    def test_promises(self):
        service = unit()["Service"]
        self.assertEqual((service["Type"], service["NotifyAccess"]), ("notify", "all"))
        self.assertIn(service["KillMode"], ("process", "none"), "others kill sandboxes at a restart")
        self.assertIn("-HUP $MAINPID", service["ExecReload"])
        self.assertEqual((service["ProtectSystem"], service["ProtectHome"]), ("full", "read-only"))
        self.assertTrue(service["ExecStart"].endswith("/bin/atoll serve"))

    def test_is_good_for_systemd(self):
        analyze = shutil.which("systemd-analyze")
        if analyze is None:  # no skip: the tests above stand for it where there is no systemd
            return
        done = subprocess.run([analyze, "verify", UNIT], capture_output=True, text=True, check=False)
        # The program is not installed where the unit says, in a build directory.
        complaints = [line for line in done.stderr.splitlines() if "atoll.service" in line and "executable" not in line]
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    fixture.main()
