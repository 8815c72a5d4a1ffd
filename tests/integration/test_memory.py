#!/usr/bin/env python3
"""Processes that are kept, brought back and copied."""

import pathlib
import threading

import fixture
from fixture import Box, cli, events, http as request, in_parallel, raw_cli, read_text, unique, wait_until
from memory_case import MemoryCase
from websocket import BINARY, WebSocket

# One process of each kind of thing that processes hold. Each step is checked by the other side of it.
MANY_THINGS = """
import os, socket, threading, time, signal, mmap
out = os.open("/workspace/steps", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
reader, writer = os.pipe()
left, right = socket.socketpair()
server = socket.socket(socket.AF_UNIX); server.bind("/tmp/named.sock"); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("/tmp/named.sock"); accepted, _ = server.accept()
shared = mmap.mmap(-1, 4096)
deleted = open("/workspace/deleted", "w+"); deleted.write("still here"); deleted.flush(); os.unlink("/workspace/deleted")
ticks = [0]
def tick():
    while True: ticks[0] += 1; time.sleep(0.005)
threading.Thread(target=tick, daemon=True).start()
child = os.fork()
if child == 0:
    while True:
        got = os.read(reader, 4); left.sendall(got); shared[:4] = got
for i in range(10**9):
    word = b"%04d" % (i % 10000)
    before = ticks[0]
    os.write(writer, word)
    assert right.recv(4) == word
    while shared[:4] != word: time.sleep(0.001)
    client.sendall(word); assert accepted.recv(4) == word
    deleted.seek(0); assert deleted.read() == "still here"
    while ticks[0] == before: time.sleep(0.001)
    os.write(out, b"%d\\n" % i)
"""


class Checkpoints(MemoryCase):
    def test_what_runs_goes_on_in_a_copy(self):
        box, pid = self.counting(name=unique("source"))
        before = self.count(box)
        copy, = self.fork(box)
        self.assert_counts_on(copy, before)
        self.assert_counts_on(box, before)
        self.assertTrue(copy.process(pid)["running"], "it is the same process, known to the agent")
        self.sh(copy, "echo only here > /workspace/f")
        self.assertEqual(self.sh(box, "ls /workspace"), "")
        self.assertEqual(self.images(), [], "what the fork needed is gone")

    def test_commands_under_way_end_in_both(self):
        box = self.create()
        pid = box.spawn("/bin/sh", "-c", "echo begun; while ! test -e /workspace/go; do sleep 0.05; done; echo done; exit 7")
        waiting = in_background(lambda: box.exec("/bin/sh", "-c", "while ! test -e /workspace/go; do sleep 0.05; done; echo waited"))
        wait_until(lambda: box.output(pid["pid"]) == b"begun\n", 20, "it has begun")
        wait_until(lambda: self.sh(box, "pgrep -fc 'echo waited' || true").strip() != "0", 20, "the other too")
        copy, = self.fork(box)
        self.assertEqual(copy.output(pid["pid"]), b"begun\n", "what it has printed is known in the copy")
        for place in (copy, box):
            self.sh(place, "touch /workspace/go")
            self.assertEqual(place.wait(pid["pid"])["exitCode"], 7)
            self.assertEqual(place.output(pid["pid"]), b"begun\ndone\n")
        self.assertEqual(waiting()["stdout"], "waited\n", "who waits for a command does not notice")

    def test_all_kinds_of_things(self):
        box = self.create()
        worker = box.spawn("python3", "-c", MANY_THINGS)["pid"]
        steps = lambda where: int(self.sh(where, "wc -l < steps 2>/dev/null || echo 0"))  # noqa: E731
        wait_until(lambda: steps(box) > 3, 20, "it works")
        copy, = self.fork(box)
        for place in (copy, box):
            done = steps(place)
            wait_until(lambda place=place, done=done: steps(place) > done + 3, 20, "it goes on")
            self.assertTrue(place.process(worker)["running"], place.output(worker, "stderr"))
        second, = self.fork(copy)
        done = steps(second)
        wait_until(lambda: steps(second) > done + 3, 20, "a copy of a copy goes on")

    def test_a_terminal_keeps_its_shell(self):
        box = self.create()
        pid = box.spawn("bash", "--norc", "-i", pty=True)["pid"]
        with self.attach(box, pid) as ws:
            ws.send_binary(b"\x00kept=v$((6*7)); echo is-set\n")
            self.assertIn(b"is-set\r\n", until(ws, b"is-set\r\n"))
            copy, = self.fork(box)
            ws.send_binary(b"\x00echo here-$kept\n")
            self.assertIn(b"here-v42", until(ws, b"here-v42"), "whoever is attached to the original does not notice")
        with self.attach(copy, pid) as ws:
            ws.send_binary(b"\x00echo there-$kept; tty; stty size\n")
            self.assertRegex(until(ws, b"24 80"), rb"there-v42\r\n/dev/pts/\d+\r\n24 80")

    def attach(self, box, pid):
        return WebSocket(self.server.socket, box.path(f"/runtime/process/{pid}/attach"))

    def test_tcp_connections_close_and_listeners_stay(self):
        box = self.create()
        program = (
            "import socket,time,threading\n"
            "s=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); s.bind(('127.0.0.1',4000)); s.listen()\n"
            "def serve():\n"
            "  while True:\n"
            "    c,_=s.accept(); threading.Thread(target=lambda c=c:[c.sendall(d) for d in iter(lambda:c.recv(9),b'')],daemon=True).start()\n"
            "threading.Thread(target=serve,daemon=True).start()\n"
            "made=0\n"
            "while True:\n"
            "  try:\n"
            "    c=socket.create_connection(('127.0.0.1',4000)); made+=1\n"
            "    open('/workspace/made','w').write(str(made))\n"
            "    while True:\n"
            "      c.sendall(b'x'); assert c.recv(9)==b'x'; time.sleep(0.01)\n"
            "  except (OSError, AssertionError): pass\n"
        )
        box.spawn("python3", "-c", program)
        made = lambda where: self.sh(where, "cat made 2>/dev/null || true")  # noqa: E731
        wait_until(lambda: made(box) == "1", 20, "it is connected")
        copy, = self.fork(box)
        wait_until(lambda: made(copy) not in ("", "1"), 20, "the copy's connection closes, and it makes another")

    def test_restore_in_place(self):
        box, _ = self.counting(name=unique("web"))
        self.sh(box, "echo one > f; (sleep 1000 &) >/dev/null 2>&1")
        kept = self.keep(box, message="here", tags=["good"])
        self.assertEqual((kept["message"], kept["hasMemoryState"], kept["hasFilesystemSnapshot"]), ("here", True, True))
        self.assertGreater(kept["sizeBytes"], 8 << 20)
        self.assertGreater(kept["frozenMicroseconds"], 0)
        at = self.count(box)
        wait_until(lambda: self.count(box) > at + 50, 20, "it goes on")
        self.sh(box, "echo two > f; pkill sleep")
        reply = request("POST", box.path("/restore"), {"checkpointId": "good"}, timeout=120)
        self.assertEqual((reply.status, reply.json["status"]), (200, "running"), reply)
        self.assertLess(self.count(box), at + 50, "it goes on from where it was")
        self.assert_counts_on(box, 1)
        self.assertEqual(self.sh(box, "cat f; pgrep -c sleep"), "one\n1\n", "files and processes agree")
        self.assertEqual(self.sh(box, "hostname").strip(), box.id)
        again = request("POST", box.path("/fork"), {"checkpointId": kept["checkpointId"], "count": 2}, timeout=120)
        self.assertEqual(again.status, 201, again)
        for item in again.json["sandboxes"]:
            self.assertEqual(self.sh(Box(item["id"]), "cat f; pgrep -c sleep"), "one\n1\n")
        listed = request("GET", box.path("/checkpoints")).json["checkpoints"]
        self.assertEqual([item["checkpointId"] for item in listed], [kept["checkpointId"]])
        self.assertEqual(request("GET", box.path("/snapshots")).json["snapshots"], [])
        self.assertEqual(request("DELETE", box.path(f"/checkpoints/{kept['checkpointId']}")).status, 200)
        self.assertEqual(self.images(), [])

    def test_checkpoint_and_stop(self):
        box, _ = self.counting()
        kept = self.keep(box, leaveRunning=False)
        self.assertEqual(box.info()["status"], "stopped")
        reply = request("POST", box.path("/restore"), {"checkpointId": kept["checkpointId"]}, timeout=120)
        self.assertEqual(reply.json["status"], "running", reply)
        self.assert_counts_on(box, 1)

    def test_copies_are_others(self):
        box, _ = self.counting(name=unique("one"), metadata={"m": "1"})
        self.sh(box, "echo 0123456789abcdef0123456789abcdef > /etc/machine-id")
        reply = request("POST", box.path("/fork"), {"memory": True, "count": 10, "name": unique("many")}, timeout=240)
        self.assertEqual(reply.status, 201, reply)
        rows = reply.json["sandboxes"]
        copies = [Box(row["id"]) for row in rows]
        say = "hostname; cat /etc/machine-id; head -c8 /dev/urandom | od -An -tx8; cat /proc/sys/user/max_user_namespaces"
        said = in_parallel([lambda copy=copy: self.sh(copy, say).split() for copy in copies])
        self.assertEqual({words[0] for words in said}, {copy.id for copy in copies})
        for column in (1, 2):
            self.assertEqual(len({words[column] for words in said}), 10)
        self.assertEqual({words[3] for words in said}, {"0"}, "no namespace can be made in them")
        tokens = {row["connection"]["authToken"] for row in rows if row.get("connection")}
        self.assertEqual(len(tokens), len([row for row in rows if row.get("connection")]), "each has its own token")
        for copy in copies:
            self.assert_counts_on(copy, 1)

    def test_a_revived_sandbox_is_confined_as_it_was(self):
        box, _ = self.counting()
        copy, = self.fork(box)
        facts = ("grep -E '^(Seccomp|Seccomp_filters|NoNewPrivs|Cap|Uid|Gid)' /proc/self/status; cat /proc/self/uid_map | wc -l; "
                 "cut -d' ' -f5,6 /proc/self/mountinfo | sort; cat /proc/self/cgroup; ls /proc/1/fd 2>&1 | wc -l; "
                 "unshare -U true 2>&1; cat /proc/1/environ 2>&1 | wc -c; ls /proc/bus /proc/fs; mount -t tmpfs x /mnt 2>&1")
        run = lambda where: where.exec("/bin/sh", "-c", facts)["stdout"].replace("/e1\n", "/e0\n")  # noqa: E731
        self.assertEqual(run(copy).replace("/e2\n", "/e0\n"), run(box).replace("/e2\n", "/e0\n"))
        pids = {pid: read_text(f"/proc/{pid}/uid_map").split()[1] for pid in self.server.sandbox_pids()}
        self.assertNotIn("0", set(pids.values()))

    def test_limits_hold_in_copies(self):
        box, _ = self.counting(resources={"memoryMB": 256})
        copy, = self.fork(box)
        result = copy.exec("python3", "-c", "b = bytearray(512 << 20); print(len(b))")
        self.assertNotEqual(result["exitCode"], 0, result)
        self.assert_counts_on(box, 1)

    def test_what_cannot_be_kept_is_refused_with_the_reason(self):
        box, _ = self.counting()
        with box.stream("/fs/watch/workspace") as reply:
            self.assertEqual(next(events(reply))[0], "ready")
            reply = request("POST", box.path("/checkpoints"), {}, timeout=60)
            self.assertEqual(reply.status, 409, reply)
            self.assertIn("a file operation or watch is under way", reply.json["message"])
        self.assert_counts_on(box, 1)
        request("POST", box.path("/pause"))
        reply = request("POST", box.path("/checkpoints"), {})
        self.assertEqual(reply.status, 409, reply)
        self.assertIn("paused", reply.json["message"])
        request("POST", box.path("/unpause"))
        request("POST", box.path("/stop"))
        for path, body in (("/checkpoints", {}), ("/fork", {"memory": True}), ("/pause", {"disk": True})):
            reply = request("POST", box.path(path), body)
            self.assertEqual(reply.status, 409, reply)
            self.assertIn("stopped", reply.json["message"])
        self.assertEqual(self.images(), [])

    def test_a_large_deleted_file_is_refused_and_nothing_is_downgraded(self):
        box, _ = self.counting()
        hold = "f = open('/workspace/big', 'w+b'); f.write(b'x' * (80 << 20)); f.flush(); import os, time; os.unlink('/workspace/big'); time.sleep(1000)"
        box.spawn("python3", "-c", hold)
        wait_until(lambda: "big (deleted)" in self.sh(box, "ls -l /proc/*/fd 2>/dev/null | grep deleted || true"), 20, "it holds it")
        before = {row["id"] for row in request("GET", "/v1/sandboxes").json["sandboxes"]}
        reply = request("POST", box.path("/fork"), {"memory": True}, timeout=60)
        self.assertEqual(reply.status, 409, reply)
        self.assertIn("larger than 64 MiB", reply.json["message"])
        self.assertEqual({row["id"] for row in request("GET", "/v1/sandboxes").json["sandboxes"]}, before)
        self.assert_counts_on(box, 1)

    def test_bad_input(self):
        box = self.create()
        cases = [
            ("/checkpoints", {"includeSnapshot": False}, 501, "includeSnapshot"),
            ("/checkpoints", {"tags": [""]}, 400, "tags"),
            ("/checkpoints", {"what": 1}, 400, "what"),
            ("/fork", {"checkpointId": "x", "memory": False}, 400, "memory"),
            ("/pause", {"disk": "yes"}, 400, "disk"),
        ]  # fmt: skip
        for path, body, status, field in cases:
            with self.subTest(path=path, body=body):
                reply = request("POST", box.path(path), body)
                self.assertEqual((reply.status, reply.json.get("fields")), (status, [field]), reply)
        for path, body in (("/restore", {"checkpointId": "none"}), ("/fork", {"checkpointId": "none"})):
            self.assertEqual(request("POST", box.path(path), body).status, 404)
        self.assertEqual(request("GET", "/v1/checkpoints/none").status, 404)

    def test_status_is_a_trial(self):
        status = request("GET", "/v1/system/criu-status").json
        self.assertTrue(status["available"], status)
        self.assertRegex(status["criuVersion"], r"^4\.[2-9]")

    def test_another_host_is_refused(self):
        box, _ = self.counting()
        kept = self.keep(box)["checkpointId"]
        manifest = pathlib.Path(self.server.data) / "memory" / kept / "manifest"
        bytes_before = manifest.read_bytes()
        release = pathlib.Path("/proc/sys/kernel/osrelease").read_text().strip().encode()
        self.assertIn(release, bytes_before)
        for what, other in ((release, b"9" * len(release)), (b" fpu ", b" qpu ")):
            if what not in bytes_before:
                continue
            manifest.write_bytes(bytes_before.replace(what, other, 1))
            reply = request("POST", box.path("/fork"), {"checkpointId": kept}, timeout=60)
            self.assert_error(reply, 501, "NOT_SUPPORTED")
            self.assertIn("cannot run here", reply.json["message"])
        manifest.write_bytes(bytes_before)
        self.assert_counts_on(Box(request("POST", box.path("/fork"), {"checkpointId": kept}).json["sandbox"]["id"]), 1)

    def test_images_are_the_roots_alone(self):
        box, _ = self.counting()
        self.keep(box)
        folder = pathlib.Path(self.server.data) / "memory"
        self.assertEqual((folder.stat().st_mode & 0o777, folder.stat().st_uid), (0o700, 0))

    def test_command_line(self):
        name = unique("web")
        box, _ = self.counting(name=name)
        kept = cli("checkpoint", name, "-m", "model loaded").stdout.strip()
        self.assertRegex(kept, r"^ckpt-[0-9a-f]+$")
        self.assertRegex(cli("checkpoint", "ls", name).stdout, rf"(?m)^{kept} .*model loaded")
        self.assertEqual(cli("fork", name, "--memory", "--name", f"{name}-m").stdout.strip(), f"{name}-m")
        self.assertGreater(int(cli("exec", f"{name}-m", "--", "cat", "/tmp/count").stdout), 0)
        cli("restore", name, kept)
        cli("pause", name, "--disk")
        self.assertEqual(box.info()["status"], "paused")
        cli("resume", name)
        self.assert_counts_on(box, 1)
        cli("checkpoint", "rm", kept)
        self.assertEqual(cli("checkpoint", "ls", "-q").stdout, "")
        self.assert_fails(raw_cli("restore", name, kept))


def until(ws, text):
    """What came over a socket to a process, up to `text`."""
    got = b""
    while text not in got:
        kind, data = ws.receive()
        got += data[1:] if kind == BINARY else b""
    return got


def in_background(action):
    """Starts it; the answer waits for its end and gives what it gave."""
    result = []
    thread = threading.Thread(target=lambda: result.append(action()))
    thread.start()

    def finish():
        thread.join(60)
        return result[0]

    return finish


class Room(MemoryCase):
    server_options = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.close()
        cls.server = fixture.AtollServer("--memory-images-size", "12m")
        cls.server.start()

    def test_images_are_bounded(self):
        box, _ = self.counting()
        reply = request("POST", box.path("/checkpoints"), {})
        if reply.status == 201:
            reply = request("POST", box.path("/checkpoints"), {})
        self.assert_error(reply, 507, "NO_SPACE")
        self.assertIn("memory_images_size", reply.json["message"])
        self.assert_counts_on(box, 1)


class NoCriu(MemoryCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.close()
        cls.server = fixture.AtollServer("--criu", "/nonexistent")
        cls.server.start()

    def test_a_host_without_says_so(self):
        box = self.create()
        status = request("GET", "/v1/system/criu-status").json
        self.assertFalse(status["available"])
        self.assertTrue(status["reason"])
        for path, body in (("/checkpoints", {}), ("/fork", {"memory": True}), ("/pause", {"disk": True})):
            self.assert_error(request("POST", box.path(path), body), 501, "NOT_SUPPORTED")
        self.assertEqual(self.sh(box, "echo fine"), "fine\n")


if __name__ == "__main__":
    fixture.main()
