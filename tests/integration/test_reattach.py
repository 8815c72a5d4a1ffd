#!/usr/bin/env python3
"""Connections that break while the CLI streams: nothing is lost, nothing comes twice."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import threading

import fixture
from cutting_proxy import CuttingProxy
from fixture import AtollCase, start_cli, wait_until

# Numbered lines on both streams until somebody makes a file, then 50 more, and an exit code of its own.
LINES = """
import os, sys, time
i = left = 0
while left < 50:
    print("out", i, flush=True); print("err", i, file=sys.stderr, flush=True)
    i += 1
    left += os.path.exists("/tmp/enough")
    time.sleep(0.002)
sys.exit(7)
"""


def numbered(name, data):
    """The number of lines, which must be all from 0 on."""
    lines = data.decode().splitlines()
    expected = [f"{name} {i}" for i in range(len(lines))]
    if lines != expected:
        first = next(i for i, pair in enumerate(zip(lines, expected)) if pair[0] != pair[1])
        raise AssertionError(f"at line {first}: {lines[max(0, first - 2) : first + 3]}")
    return len(lines)


class Follower:
    """A CLI whose output is collected while it runs."""

    def __init__(self, case, *arguments, **options):
        self.process = start_cli(*arguments, **options)
        case.addCleanup(self.end)
        self.out, self.err = bytearray(), bytearray()
        pairs = ((self.process.stdout, self.out), (self.process.stderr, self.err))
        self.threads = [threading.Thread(target=self.collect, args=pair) for pair in pairs]
        for thread in self.threads:
            thread.start()

    def collect(self, pipe, into):
        while block := os.read(pipe.fileno(), 65536):
            into += block

    def wait_for(self, count):
        """Until it has that much more."""
        wanted = len(self.out) + count
        wait_until(lambda: len(self.out) >= wanted or self.process.poll() is not None, 20, "it goes on")
        if self.process.poll() is not None:
            raise AssertionError(f"it ended with {self.process.returncode}: {bytes(self.err)[-300:]}")

    def wait(self, seconds=30):
        code = self.process.wait(seconds)
        for thread in self.threads:
            thread.join(10)
        return code

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join(10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Output(AtollCase):
    server_options = {"on_exit": "keep"}

    def through_deaths(self, follower):
        """Each of our processes dies once, while there is output."""
        for victim in ("server", "launcher"):
            follower.wait_for(500)
            self.server.kill(victim)
        follower.wait_for(500)
        self.server.kill("supervisor")
        self.server.start()
        follower.wait_for(500)

    def enough(self, box):
        box.exec("/usr/bin/touch", "/tmp/enough")

    def test_exec(self):
        box = self.create()
        follower = Follower(self, "exec", box.id, "--", "python3", "-c", LINES)
        self.through_deaths(follower)
        self.enough(box)
        self.assertEqual(follower.wait(), 7)
        self.assertEqual(numbered("out", follower.out), numbered("err", follower.err))

    def test_logs(self):
        box = self.create()
        pid = box.spawn("/usr/bin/python3", "-c", LINES)["pid"]
        follower = Follower(self, "logs", "-f", box.id, str(pid))
        self.through_deaths(follower)
        self.enough(box)
        self.assertEqual(follower.wait(), 0)
        self.assertEqual(numbered("out", follower.out), numbered("err", follower.err))

    def test_logs_as_events(self):
        box = self.create()
        pid = box.spawn("/usr/bin/python3", "-c", LINES)["pid"]
        follower = Follower(self, "logs", "-f", "--json", box.id, str(pid))
        self.through_deaths(follower)
        self.enough(box)
        self.assertEqual(follower.wait(), 0, follower.err)
        events = [json.loads(line) for line in follower.out.decode().splitlines()]
        for stream, name in (("stdout", "out"), ("stderr", "err")):
            text = "".join(event["data"] for event in events if event.get("stream") == stream)
            numbered(name, text.encode())
        self.assertEqual(events[-1]["type"], "exit")
        self.assertEqual(events[-1]["process"]["exitCode"], 7)

    def test_a_command_that_ends_while_the_server_is_away(self):
        box = self.create()
        script = "mkfifo /tmp/go; echo begun; read line </tmp/go; echo ended; exit 9"
        follower = Follower(self, "exec", box.id, "--", "sh", "-c", script)
        wait_until(lambda: bytes(follower.out) == b"begun\n", 10, "it has begun")
        box.spawn("/bin/sh", "-c", "sleep 0.3; echo >/tmp/go")
        self.server.kill("supervisor")
        self.assertIsNone(follower.process.poll(), "it waits")
        self.server.start()
        self.assertEqual((follower.wait(), bytes(follower.out)), (9, b"begun\nended\n"))

    def test_an_interrupt_while_the_server_is_away(self):
        box = self.create()
        follower = Follower(self, "exec", box.id, "--", "python3", "-c", LINES)
        follower.wait_for(500)
        self.server.kill("supervisor")
        os.kill(follower.process.pid, signal.SIGINT)
        self.assertEqual(follower.wait(10), 130)
        self.assertIn(b"detached from process", follower.err)
        self.server.start()
        running = [row for row in box.runtime("GET", "/process").json["data"] if row["running"]]
        self.assertEqual(len(running), 1, "the command goes on")

    def test_a_sandbox_that_is_gone_is_not_waited_for(self):
        box = self.create()
        follower = Follower(self, "exec", box.id, "--", "python3", "-c", LINES)
        follower.wait_for(500)
        box.delete()
        self.assertNotIn(follower.wait(10), (0, 7))
        self.assertIn(b"atoll: ", follower.err.splitlines()[-1])


class Input(AtollCase):
    server_options = {"on_exit": "keep"}

    def start(self, box, data, *command):
        """A CLI that is given all of the data."""
        self.data = data
        follower = Follower(self, "exec", "-i", box.id, "--", *command, stdin=subprocess.PIPE)

        def feed():
            with follower.process.stdin as pipe:
                pipe.write(data)

        self.feeder = threading.Thread(target=feed)
        self.feeder.start()
        self.addCleanup(self.feeder.join)
        return follower

    def assert_all_arrived(self, follower):
        self.assertEqual(follower.wait(60), 0, bytes(follower.err))
        self.assertEqual(len(follower.out), len(self.data))
        self.assertEqual(hashlib.sha256(follower.out).digest(), hashlib.sha256(self.data).digest())

    def test_through_the_servers_deaths(self):
        box = self.create()
        follower = self.start(box, os.urandom(1 << 20) * 16, "cat")
        for victim in ("server", "launcher", "server"):
            follower.wait_for(1 << 20)
            self.server.kill(victim)
        self.assert_all_arrived(follower)

    def test_what_waits_for_a_slow_reader(self):
        """The server dies with the input in its hands, and the end of the input behind it."""
        box = self.create()
        script = "mkfifo /tmp/go; echo begun >&2; read line </tmp/go; exec cat"
        follower = self.start(box, os.urandom(300_000), "sh", "-c", script)
        wait_until(lambda: b"begun" in follower.err, 10, "it has begun")
        self.feeder.join(20)  # all of it is on its way
        self.server.kill("server")
        box.exec("/bin/sh", "-c", "echo >/tmp/go")
        self.assert_all_arrived(follower)

    def test_through_a_connection_that_breaks_and_a_server_that_stays(self):
        box = self.create()
        path = str(pathlib.Path(self.server.run) / "proxy.sock")
        proxy = CuttingProxy(path, self.server.socket, 100_000)
        self.addCleanup(proxy.close)
        os.environ["ATOLL_SOCKET"] = path
        follower = self.start(box, os.urandom(1 << 20) * 8, "cat")
        self.assert_all_arrived(follower)
        self.assertGreater(proxy.cuts, 5)


if __name__ == "__main__":
    fixture.main()
