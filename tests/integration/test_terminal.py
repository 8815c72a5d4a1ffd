#!/usr/bin/env python3
"""Terminals: `atoll exec -it` on a real pty, and the terminal and attach WebSockets."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import fixture
import websocket
from fixture import AtollCase, cli, unique, wait_until
from websocket import BINARY, TEXT, WebSocket

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>M]|\x1b\][^\x07]*\x07")


def set_size(fd, rows, cols):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


class Screen:
    """The CLI as a child on a pty of its own, whose controlling terminal that is."""

    def __init__(self, *arguments, rows=24, cols=80, term="xterm-256color"):
        self.master, self.slave = pty.openpty()  # the slave stays open: to look at its settings
        set_size(self.slave, rows, cols)
        self.settings = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [fixture.BIN, *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, "TERM": term},
        )  # fmt: skip
        self.seen = b""
        self.mark = 0

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def type(self, text):
        self.mark = len(self.seen)
        os.write(self.master, text.encode())

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 65536)

    def text(self):
        """What came since the last key, without escape sequences."""
        return ESCAPES.sub(b"", self.seen[self.mark :]).decode(errors="replace").replace("\r", "")

    def expect(self, pattern, seconds=10):
        deadline = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.text(), re.MULTILINE)
            if found:
                return found
            if time.monotonic() > deadline or (self.process.poll() is not None and not self.pending()):
                raise AssertionError(f"no {pattern!r} in {self.text()!r} (exit code {self.process.poll()})")
            self.read(0.05)

    def pending(self):
        return bool(select.select([self.master], [], [], 0)[0])

    def ask(self, command, pattern):
        """Types a command; what it prints must match, and a new prompt must come."""
        self.type(command + "\n")
        found = self.expect(pattern)
        self.expect(r"[#$] $")
        return found

    def wait(self, seconds=15):
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.05)  # so that the child is not stuck on a full terminal
        return self.process.poll()


class Interactive(AtollCase):
    def open(self, *command, **options):
        if not self.server.list():
            self.create(name="web")
        screen = Screen("exec", "-it", "web", "--", *(command or ("bash",)), **options)
        self.addCleanup(screen.close)
        if not command:
            screen.expect(r"[#$] $")
        return screen

    def assert_restored(self, screen):
        self.assertEqual(termios.tcgetattr(screen.slave), screen.settings, "the terminal's settings are back")

    def test_prompt_and_kind(self):
        screen = self.open()
        self.assertNotEqual(termios.tcgetattr(screen.slave)[3] & termios.ICANON, termios.ICANON, "raw while it runs")
        screen.ask("echo $TERM; tput colors", r"^xterm-256color\n256$")
        screen.ask("tty", r"^/dev/pts/\d+$")
        screen.ask("test -t 0 -a -t 1 -a -t 2 && echo all-$((1+1))", r"^all-2$")
        screen.ask("echo grüße-$((40+2))", r"^grüße-42$")
        screen.type("\x04")
        self.assertEqual(screen.wait(), 0, "Ctrl-D ends it with 0")
        self.assert_restored(screen)

    def test_other_kind(self):
        screen = self.open(term="vt100")
        screen.ask("echo $TERM; tput colors", r"^vt100\n-1$")

    def test_echo_and_editing(self):
        screen = self.open()
        screen.type("echo abX\x7fc")  # a backspace takes the X back
        screen.expect(r"echo ab.*c$")
        screen.ask("", r"^abc$")
        screen.ask("stty -echo", r"")
        screen.type("echo hid''den\n")
        screen.expect(r"hidden")
        self.assertNotIn("hid''den", screen.text(), "no echo")

    def test_exit_code(self):
        for line, code in (("exit 5", 5), ("kill -9 $$", 137), ("exit", 0)):
            screen = self.open()
            screen.type(line + "\n")
            self.assertEqual(screen.wait(), code, line)
            self.assert_restored(screen)

    def test_interrupt(self):
        screen = self.open()
        screen.type("sleep 100; echo code-$?\n")
        screen.expect("sleep 100")
        wait_until(lambda: "sleep 100" in cli("exec", "web", "--", "ps", "-e", "-o", "args").stdout, 10, "sleep runs")
        screen.type("\x03")
        screen.expect(r"\^C")
        screen.expect(r"[#$] $")
        screen.ask("echo alive-$?", r"^alive-130$")
        self.assertIsNone(screen.process.poll())

    def test_job_control(self):
        screen = self.open()
        self.assertNotIn("no job control", screen.text())
        screen.ask("sleep 100 &", r"\[1\] \d+")
        screen.ask("jobs", r"\[1\]\+ +Running +sleep 100")
        screen.type("fg\n")
        screen.expect(r"^sleep 100$")
        screen.type("\x1a")
        screen.expect(r"\[1\]\+ +Stopped +sleep 100")
        screen.ask("bg; jobs", r"Running +sleep 100")
        screen.ask("kill %1; wait %1; echo gone-$?", r"gone-143")

    def test_window_size(self):
        screen = self.open(rows=31, cols=97)
        screen.ask("stty size", r"^31 97$")
        screen.ask("trap 'echo resized' WINCH; echo set", r"^set$")
        screen.mark = len(screen.seen)
        set_size(screen.slave, 44, 132)  # the kernel tells the CLI by SIGWINCH
        # bash runs a trap when a command ends: so ask until the new size has got there.
        wait_until(lambda: screen.ask("stty size", r"^\d+ \d+$")[0] == "44 132", 10, "the new size")
        screen.ask("echo $COLUMNS", r"^132$")

    def test_full_screen_programs(self):
        screen = self.open()
        present = cli("exec", "web", "--", "sh", "-c", "command -v less nano", check=False).stdout.split()
        if not present:
            self.skipTest("the template has neither less nor nano")
        for path in present:
            program = os.path.basename(path)
            screen.ask("seq 1 500 > /tmp/f; echo made", r"^made$")
            screen.type(f"{program} /tmp/f\n")
            screen.expect(r"\b20\b")
            self.assertIn(b"\x1b[?1049h", screen.seen[screen.mark :], f"{program} takes the alternate screen")
            if program == "less":
                screen.type("G")
                screen.expect(r"\b500\b")
                screen.type("?^123$\n")
                screen.expect(r"\b123\b")
                screen.type("q")
            else:
                screen.type("typed text")
                screen.expect("typed text")
                screen.type("\x18")  # Ctrl-X: exit, and save?
                screen.expect("[Ss]ave")
                screen.type("y")
                screen.expect("File Name")
                screen.type("\r")
            screen.expect(r"[#$] $")
            if program == "nano":
                screen.ask("head -c 10 /tmp/f; echo", r"^typed text")
        screen.type("exit\n")
        self.assertEqual(screen.wait(), 0)
        self.assert_restored(screen)

    def test_much_output(self):
        screen = self.open("sh", "-c", "seq 1 200000; echo the-end")
        self.assertEqual(screen.wait(30), 0)
        screen.expect("the-end")
        lines = screen.seen.replace(b"\r\n", b"\n").split()
        self.assertEqual(lines[:200000], [str(i).encode() for i in range(1, 200001)])

    def test_settings_come_back_after_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            screen = self.open()
            screen.process.send_signal(number)
            self.assertEqual(screen.wait(), 128 + number)
            self.assert_restored(screen)

    def test_run_on_a_terminal(self):
        screen = Screen("run", "-it", "--", "bash", "-c", "stty size; tty; exit 6", rows=12, cols=34)
        self.addCleanup(screen.close)
        screen.expect(r"^12 34\n/dev/pts/\d+$")
        self.assertEqual(screen.wait(), 6)

    def test_no_terminal_at_hand(self):
        """-t without one still gives the command a terminal."""
        self.create(name="web")
        done = fixture.raw_cli("exec", "-t", "web", "--", "sh", "-c", "test -t 1 && stty size && exit 4")
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stdout, rb"^\d+ \d+\r\n$")


class Sockets(AtollCase):
    def terminal(self, box, connection, **init):
        """An open terminal: the socket, and what its `ready` said."""
        ws = WebSocket(self.server.socket, box.path(f"/runtime/terminals/{connection}/ws"))
        self.addCleanup(ws.socket.close)
        ws.send_json(type="init", **{"cols": 80, "rows": 24, **init})
        kind, data = ws.receive()
        self.assertEqual(kind, TEXT)
        return ws, json.loads(data)

    def until(self, ws, pattern, seconds=10):
        """Output until the pattern shows, without escape sequences; answers all of it."""
        seen = b""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, ESCAPES.sub(b"", seen).replace(b"\r", b""), re.MULTILINE):
            self.assertLess(time.monotonic(), deadline, f"no {pattern!r} in {seen!r}")
            message = ws.receive()
            self.assertIsNotNone(message, seen)
            if message[0] == BINARY:
                seen += message[1]
            else:
                self.fail(f"{message} after {seen!r}")
        return seen

    def end(self, ws):
        """The exit message; then the server closes."""
        while True:
            kind, data = ws.receive()
            if kind == TEXT:
                break
        self.assertIsNone(ws.receive())
        self.assertEqual(ws.closed, 1000)
        return json.loads(data)

    def test_terminal(self):
        box = self.create()
        ws, ready = self.terminal(box, "one", cols=91, rows=33)
        self.assertEqual((ready["type"], ready["connectionId"], ready["restored"]), ("ready", "one", False))
        self.assertTrue(ready["sessionId"])
        ws.send_json(type="input", data="stty size\n")
        self.until(ws, rb"^33 91$")
        ws.send_json(type="resize", cols=120, rows=50)
        ws.send_json(type="input", data="stty size\n")
        self.until(ws, rb"^50 120$")
        ws.send_binary("echo grü-$((6*7))\n".encode())
        self.until(ws, "^grü-42$".encode())
        ws.send_json(type="input", data="exit 7\n")
        self.assertEqual(self.end(ws), {"type": "exit", "exitCode": 7, "exitSignal": 0})

    def test_reattach(self):
        box = self.create()
        ws, first = self.terminal(box, "mine")
        ws.send_json(type="input", data="x=remembered; echo first-$((1+1))\n")
        self.until(ws, rb"^first-2$")
        ws.socket.close()
        pid = int(first["sessionId"])
        self.assertTrue(box.process(pid)["running"], "it goes on without us")
        ws, again = self.terminal(box, "mine", cols=100, rows=40)
        self.assertEqual((again["restored"], again["sessionId"]), (True, first["sessionId"]))
        self.until(ws, rb"^first-2$")  # the replay
        ws.send_json(type="input", data="echo $x; stty size\n")
        self.until(ws, rb"^remembered\n40 100$")
        # Another id is another shell; and the same one again after the server was killed.
        other, ready = self.terminal(box, "other")
        self.assertFalse(ready["restored"])
        self.assertNotEqual(ready["sessionId"], first["sessionId"])
        other.send_json(type="input", data="exit\n")
        self.end(other)
        self.server.kill("server")
        ws, again = self.terminal(box, "mine")
        self.assertTrue(again["restored"])
        self.until(ws, rb"^remembered$")
        ws.send_json(type="input", data="exit 3\n")
        self.assertEqual(self.end(ws)["exitCode"], 3)
        ws, again = self.terminal(box, "mine")
        self.assertFalse(again["restored"], "the old one has ended")

    def test_two_clients_on_one_terminal(self):
        box = self.create()
        one, _ = self.terminal(box, "shared")
        two, ready = self.terminal(box, "shared")
        self.assertTrue(ready["restored"])
        one.send_json(type="input", data="echo shared-$((3*3))\n")
        self.until(one, rb"^shared-9$")
        self.until(two, rb"^shared-9$")

    def test_init_options(self):
        box = self.create()
        ws, _ = self.terminal(box, unique("t"), command="id -un; pwd; echo $A; exit 4", user="user", cwd="/tmp", env={"A": "b c"})
        self.until(ws, rb"^user\n/tmp\nb c$")
        self.assertEqual(self.end(ws)["exitCode"], 4)

    def test_bad_frames(self):
        box = self.create()
        for first in ("{}", "nonsense", '{"type":"input","data":"x"}', '{"type":"init","cols":-1}', '{"type":"init","colour":1}'):
            with self.subTest(first=first), WebSocket(self.server.socket, box.path("/runtime/terminals/x/ws")) as ws:
                ws.send_frame(TEXT, first.encode())
                kind, data = ws.receive()
                self.assertEqual((kind, json.loads(data)["type"]), (TEXT, "error"), data)
                self.assertIsNone(ws.receive())
        ws, _ = self.terminal(box, "y")
        for bad in ('{"type":"dance"}', "[]", '{"type":"resize","cols":0,"rows":1}'):
            ws.send_frame(TEXT, bad.encode())
            while True:
                kind, data = ws.receive()
                if kind == TEXT:
                    break
            self.assertEqual(json.loads(data)["type"], "error")
        ws.send_json(type="input", data="echo fine-$((1+1))\n")
        self.until(ws, rb"^fine-2$")
        with self.assertRaises(websocket.Refused) as refused:
            WebSocket(self.server.socket, "/v1/sandboxes/nobody/runtime/terminals/x/ws")
        self.assertEqual(refused.exception.status, 404)
        # A frame without a mask breaks the protocol: the server closes.
        ws, _ = self.terminal(box, "z")
        ws.send_frame(TEXT, b"{}", masked=False)
        try:
            while ws.receive() is not None:
                pass
            self.assertEqual(ws.closed, 1002)
        except ConnectionError:
            pass
        self.assertTrue(self.server.healthy())

    def test_attach(self):
        box = self.create()
        pid = box.spawn("/bin/sh", "-c", "cat; echo problem >&2; exit 6", stdin=True)["pid"]
        with WebSocket(self.server.socket, box.path(f"/runtime/process/{pid}/attach")) as ws:
            ws.send_binary(b"\x00bytes \xff\x00!\n")
            self.assertEqual(ws.receive(), (BINARY, b"\x01bytes \xff\x00!\n"))
            ws.send_json(type="eof")
            self.assertEqual(ws.receive(), (BINARY, b"\x02problem\n"))
            kind, data = ws.receive()
            end = json.loads(data)
            self.assertEqual((kind, end["type"], end["process"]["exitCode"]), (TEXT, "exit", 6))
            self.assertIsNone(ws.receive())
        with WebSocket(self.server.socket, box.path(f"/runtime/process/{pid}/attach?stdoutOffset=6")) as ws:
            messages = [ws.receive(), ws.receive()]
            self.assertIn((BINARY, b"\x01\xff\x00!\n"), messages)
        pid = box.spawn("/bin/sleep", "100")["pid"]
        with WebSocket(self.server.socket, box.path(f"/runtime/process/{pid}/attach")) as ws:
            ws.send_json(type="signal", signal="SIGINT")
            self.assertEqual(json.loads(ws.receive()[1])["process"]["exitSignal"], signal.SIGINT)

    def test_large_input_and_output(self):
        box = self.create()
        pid = box.spawn("/bin/cat", stdin=True)["pid"]
        sent = os.urandom(1 << 16) * 16
        got = b""
        with WebSocket(self.server.socket, box.path(f"/runtime/process/{pid}/attach")) as ws:
            for at in range(0, len(sent), 1 << 16):
                ws.send_binary(b"\x00" + sent[at : at + (1 << 16)])
            ws.send_json(type="eof")
            while True:
                kind, data = ws.receive()
                if kind == TEXT:
                    break
                got += data[1:]
        self.assertEqual(got, sent)


if __name__ == "__main__":
    fixture.main()
