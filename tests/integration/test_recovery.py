#!/usr/bin/env python3
"""What survives what: kill -9 of each process, storms, damaged state, ends that nobody asked for."""

import hashlib
import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import unittest

import fixture
from fixture import AtollCase, AtollServer, Box, LeakCounter, cli, http as request, in_parallel, unique, wait_until
from pool_files import pool_of

# Prints numbered lines on both streams, slowly, and ends with a code of its own. $1: lines, $2: code.
COUNTER = 'i=0; while [ $i -lt "$1" ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); sleep 0.05; done; exit "$2"'


def expected(name, count):
    return "".join(f"{name} {i}\n" for i in range(count)).encode()


class Kills(AtollCase):
    """100 running commands in 5 sandboxes, and the death of each process of ours in turn."""

    server_options = {"on_exit": "keep"}
    LINES = 120  # six seconds: they are still at it when the server comes back

    def running(self):
        boxes = [self.create(name=unique("box")) for _ in range(5)]
        jobs = []
        for i in range(100):
            box = boxes[i % 5]
            jobs.append((box, box.spawn("/bin/bash", "-c", COUNTER, "sh", str(self.LINES), str(i % 50))["pid"], i % 50))
        return boxes, jobs

    def assert_complete(self, boxes, jobs):
        """The same sandboxes and processes; exit codes and output without a gap, also from an offset."""
        self.assertEqual({row["id"] for row in self.server.list()}, {box.id for box in boxes})
        self.assertEqual({row["status"] for row in self.server.list()}, {"running"})
        for box in boxes:
            rows = box.runtime("GET", "/process").json["data"]
            self.assertEqual({row["pid"] for row in rows}, {pid for other, pid, _ in jobs if other is box})
        out, err = expected("out", self.LINES), expected("err", self.LINES)
        for box, pid, code in jobs:
            half = len(out) // 2
            self.assertEqual(box.output(pid, offset=half, follow=True), out[half:])
            self.assertEqual(box.output(pid), out)
            self.assertEqual(box.output(pid, "stderr"), err)
            self.assertEqual(box.wait(pid)["exitCode"], code)

    def test_server(self):
        boxes, jobs = self.running()
        waiting = fixture.start_cli("exec", boxes[0].id, "--", "sh", "-c", "echo begun; sleep 2; echo ended; exit 9")
        self.assertEqual(waiting.stdout.readline(), b"begun\n")
        self.server.kill("server")
        self.assertTrue(any(box.process(pid)["running"] for box, pid, _ in jobs), "killed too late to prove anything")
        out, _ = waiting.communicate(timeout=20)
        self.assertEqual((out, waiting.returncode), (b"ended\n", 9), "the CLI attaches again")
        for row in boxes[0].runtime("GET", "/process").json["data"]:
            if "begun" in row["command"]:
                jobs.append((boxes[0], row["pid"], 9))
        extra = jobs.pop()
        rows = {row["pid"] for row in boxes[0].runtime("GET", "/process").json["data"]}
        self.assertIn(extra[1], rows)
        self.assert_complete_but(boxes, jobs, extra)

    def assert_complete_but(self, boxes, jobs, extra):
        """assert_complete, with one more process in the first sandbox."""
        box, pid, code = extra
        self.assertEqual(box.wait(pid)["exitCode"], code)
        out, err = expected("out", self.LINES), expected("err", self.LINES)
        for box, pid, code in jobs:
            self.assertEqual(box.output(pid, offset=10, follow=True), out[10:])
            self.assertEqual(box.output(pid, "stderr"), err)
            self.assertEqual(box.wait(pid)["exitCode"], code)
        self.assertEqual(len(self.server.list()), len(boxes))

    def test_launcher(self):
        boxes, jobs = self.running()
        self.server.kill("launcher")
        self.assertTrue(any(box.process(pid)["running"] for box, pid, _ in jobs))
        self.assert_complete(boxes, jobs)
        # What came back is in control: limits, freezing, an end.
        box = boxes[0]
        reply = request("PATCH", box.path(), {"resources": {"memoryMB": 300}})
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(request("POST", box.path("/pause")).json["status"], "paused")
        self.assertEqual(request("POST", box.path("/unpause")).json["status"], "running")
        self.assertEqual(request("POST", box.path("/stop")).json["status"], "stopped")

    def test_supervisor(self):
        boxes, jobs = self.running()
        self.server.kill("supervisor")
        self.assertGreater(len(self.server.sandbox_pids()), 100, "the sandboxes go on")
        self.server.start()
        self.assertTrue(any(box.process(pid)["running"] for box, pid, _ in jobs))
        self.assert_complete(boxes, jobs)

    def test_paused_and_stopped_stay_so(self):
        paused, stopped = self.create(name="paused"), self.create(name="stopped")
        request("POST", paused.path("/pause"))
        request("POST", stopped.path("/stop"))
        self.server.kill("server")
        self.assertEqual((paused.info()["status"], stopped.info()["status"]), ("paused", "stopped"))
        self.assertEqual(request("POST", paused.path("/unpause")).status, 200)
        self.assertEqual(paused.exec("/bin/echo", "on")["stdout"], "on\n")
        self.assertEqual(request("POST", stopped.path("/resume")).status, 200)
        self.assertEqual(stopped.exec("/bin/echo", "on")["stdout"], "on\n")

    def test_large_output_while_the_server_is_away(self):
        """More than pipes hold, written while nobody is there to read: all of it is kept."""
        box = self.create()
        script = "import sys,time\nfor i in range(40000): sys.stdout.write('%08d\\n' % i)\nsys.exit(3)"
        go = box.spawn("/bin/sh", "-c", "read line; exec python3 -c \"$1\"", "sh", script, stdin=True)["pid"]
        # Writes to its standard input through /proc: so that it begins when the server has died.
        later = box.spawn("/bin/sh", "-c", f"sleep 0.3; echo > /proc/{go}/fd/0")["pid"]
        self.server.kill("server")
        self.assertEqual(box.wait(later)["exitCode"], 0)
        self.assertEqual(box.wait(go)["exitCode"], 3)
        text = "".join("%08d\n" % i for i in range(40000)).encode()
        self.assertEqual(box.output(go), text)
        self.assertEqual(box.output(go, offset=9 * 12345), text[9 * 12345 :])


class Inheritance(AtollCase):
    """A server of its own: the supervisor gives up after too many deaths in a row."""

    server_options = {"on_exit": "keep"}

    def test_commands_inherit_the_same_as_before(self):
        """Environment, user and profile; also a secret that has been deleted since."""
        request("PUT", "/v1/secrets/GIVEN", {"value": "secret"})
        boxes = {
            self.create(env={"A": "1"}, profile="strict", user="user"): ("1", "", "user", "0000000000000000"),
            self.create(env={"A": "2"}, secrets=["GIVEN"]): ("2", "secret", "root", None),
        }
        script = 'echo "$A/$GIVEN/$(id -un)"; sed -n "s/^CapBnd:[[:space:]]*//p" /proc/self/status'
        before = {box: box.exec("/bin/sh", "-c", script)["stdout"] for box in boxes}
        for box, (value, secret, user, capabilities) in boxes.items():
            first, second = before[box].splitlines()
            self.assertEqual(first, f"{value}/{secret}/{user}")
            self.assertTrue(capabilities is None or second == capabilities, second)
        request("DELETE", "/v1/secrets/GIVEN")
        for which in ("server", "launcher"):
            self.server.kill(which)
            self.assertEqual({box: box.exec("/bin/sh", "-c", script)["stdout"] for box in boxes}, before)


    def test_killed_right_after_the_answer(self):
        """Agents of the pool are told behind the answer whose they are; what was answered holds all the same."""
        wait_until(self.server.settled, 20, "the pool is full")
        boxes = [self.create(env={"A": str(i)}, profile="strict") for i in range(3)]
        self.server.kill("server")
        script = 'echo "$A"; sed -n "s/^CapBnd:[[:space:]]*//p" /proc/self/status'
        for i, box in enumerate(boxes):
            self.assertEqual(box.exec("/bin/sh", "-c", script)["stdout"], f"{i}\n0000000000000000\n")


class Storms(AtollCase):
    server_options = {"on_exit": "keep"}
    ROUNDS = 30

    def storm(self, index, known, lock, end):
        """Creates and deletes until the server is gone; `known` holds what was acknowledged, as id -> True, False, or
        None where no answer came."""
        rng = random.Random(index)
        mine = []
        while not end.is_set():
            try:
                if mine and rng.random() < 0.5:
                    victim = mine.pop()
                    with lock:
                        known[victim] = None
                    if request("DELETE", f"/v1/sandboxes/{victim}").status == 200:
                        with lock:
                            known[victim] = False
                else:
                    reply = request("POST", "/v1/sandboxes", {"metadata": {"storm": str(index)}})
                    if reply.status == 201:
                        with lock:
                            known[reply.json["id"]] = True
                        mine.append(reply.json["id"])
            except (OSError, http.client.HTTPException, AssertionError, json.JSONDecodeError):
                return

    def test_create_and_delete(self):
        known, lock = {}, threading.Lock()
        rng = random.Random(4711)
        for round_ in range(self.ROUNDS):
            end = threading.Event()
            threads = [
                threading.Thread(target=self.storm, args=(round_ * 10 + i, known, lock, end)) for i in range(4)
            ]  # fmt: skip
            for thread in threads:
                thread.start()
            threading.Event().wait(rng.uniform(0.005, 0.12))  # when the blow falls
            # Twice too many quick deaths would make the supervisor give up, as it should: so every
            # fourth blow hits the supervisor itself.
            if round_ % 4 == 3:
                self.server.kill("supervisor")
                end.set()
                self.server.start()
            else:
                self.server.kill("launcher" if round_ % 4 == 1 else "server")
                end.set()
            for thread in threads:
                thread.join(20)
                self.assertFalse(thread.is_alive())
            listed = {row["id"] for row in self.server.list()}
            there = {name for name, state in known.items() if state}
            unsure = {name for name, state in known.items() if state is None}
            self.assertEqual(there - listed, set(), f"round {round_}: acknowledged, then lost")
            gone = {name for name, state in known.items() if state is False}
            self.assertEqual(gone & listed, set(), f"round {round_}: deleted, then back")
            # A create whose answer got lost may be there: the caller finds it in the list.
            for row in self.server.list():
                if row["id"] in unsure or row["id"] not in known:
                    known[row["id"]] = True
                self.assertEqual(row["status"], "running", row)
            for name in unsure - listed:
                known[name] = False
            if round_ % 10 == 9:
                for name in [name for name, state in known.items() if state]:
                    result = Box(name).exec("/bin/echo", "alive")
                    self.assertEqual(result["stdout"], "alive\n")
                    self.assertEqual(request("DELETE", f"/v1/sandboxes/{name}").status, 200)
                    known[name] = False
        self.server.delete_all()
        self.assertEqual(self.server.list(), [])


class Database(unittest.TestCase):
    def setUp(self):
        self.server = AtollServer()
        self.addCleanup(self.server.destroy)
        self.database = self.server.data / "state/atoll.db"

    def fill(self):
        self.server.start()
        for _ in range(30):
            reply = request("POST", "/v1/sandboxes", {"metadata": {"text": "x" * 2000}})
            self.assertEqual(reply.status, 201, reply)
            request("POST", f"/v1/sandboxes/{reply.json['id']}/stop")
        self.assertEqual(self.server.stop(), 0)
        with sqlite3.connect(self.database) as db:  # all of it into the one file
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()

    def assert_refused(self, *words):
        before = hashlib.sha256(self.database.read_bytes()).hexdigest()
        files = self.sandbox_files()
        os.close(self.server.spawn())
        self.assertNotEqual(self.server.process.wait(30), 0)
        lines = [json.loads(line) for line in self.server.log.read_text().splitlines() if line.startswith("{")]
        said = " ".join(line.get("error", "") for line in lines if line["level"] == "error")
        for word in (str(self.database), *words):
            self.assertIn(word, said)
        self.assertEqual(hashlib.sha256(self.database.read_bytes()).hexdigest(), before, "the file was changed")
        self.assertEqual(self.sandbox_files(), files, "files of sandboxes were touched")

    def sandbox_files(self):
        with pool_of(self.server) as pool:
            return sorted(name for name in os.listdir(pool / "sandboxes") if not name.startswith("."))

    def test_corrupt(self):
        self.fill()
        size = self.database.stat().st_size
        self.assertGreater(size, 20000)
        with self.database.open("r+b") as file:
            for page in range(1, size // 4096):
                file.seek(page * 4096)
                file.write(bytes(byte ^ 0xFF for byte in b"\x0d\x00\x00\x00\x05\x0a\x00\x10" * 16))
        self.assert_refused("damaged")

    def test_not_a_database(self):
        self.fill()
        self.database.write_bytes(b"this is no database at all\n" * 1000)
        self.assert_refused("damaged")

    def test_refused_start_leaves_nothing_running(self):
        """The launcher builds its reserve while the server looks at the database."""
        self.fill()
        self.database.write_bytes(b"this is no database at all\n" * 1000)
        for _ in range(5):
            os.close(self.server.spawn())
            self.assertNotEqual(self.server.process.wait(30), 0)
        LeakCounter(self.server).assert_no_processes()

    def test_newer_schema(self):
        self.fill()
        with sqlite3.connect(self.database) as db:
            db.execute("PRAGMA user_version=99")
        db.close()
        for leftover in ("-wal", "-shm"):
            path = self.database.with_name(self.database.name + leftover)
            if path.exists():
                path.unlink()
        self.assert_refused("newer", "99")

    def test_second_server_on_the_same_data(self):
        self.server.start()
        done = subprocess.run(
            [fixture.BIN, "serve", "--data-dir", self.server.data, "--run-dir", f"{self.server.run}-2", "--listen",
             "none"], capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        subprocess.run(["rm", "-rf", f"{self.server.run}-2"], check=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("another atoll serve", done.stderr)
        self.assertTrue(self.server.healthy())


class Ends(AtollCase):
    def test_delete_while_a_command_runs(self):
        box = self.create()
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(
                box.runtime("POST", "/terminals/commands", {"executable": "/bin/sleep", "args": ["100"]}, timeout=30)
            )
        )
        thread.start()
        wait_until(lambda: box.runtime("GET", "/process").json["data"], 10, "it runs")
        self.assertEqual(box.delete().status, 200)
        thread.join(20)
        self.assertTrue(answers, "the command's caller got no answer")
        self.assertIn(answers[0].status, (404, 409, 503), answers[0])
        self.assertEqual(request("GET", box.path()).status, 404)

    def test_two_deletes_at_once(self):
        for _ in range(10):
            box = self.create()
            codes = sorted(reply.status for reply in in_parallel([box.delete] * 4))
            self.assertEqual(codes[0], 200)
            self.assertLessEqual(set(codes), {200, 404})

    def test_an_agent_that_dies_while_its_sandbox_is_deleted_or_stopped(self):
        """Whichever comes first: what was deleted stays so, what was stopped can be started."""
        stopped = []
        server = self.server.server_pid()
        for i in range(120):
            box = self.create()
            os.kill(self.server.agent_pid(box.id), signal.SIGKILL)
            threading.Event().wait(i % 20 * 0.0002)  # before, while and after the server hears of it
            reply = box.delete() if i % 2 else request("POST", box.path("/stop"))
            self.assertEqual(reply.status, 200, reply)
            if i % 30 == 0:
                stopped.append(box)
            else:
                box.delete()
        self.assertEqual(self.server.server_pid(), server, "the server died of it")
        self.server.kill("server")
        self.assertEqual({row["id"] for row in self.server.list()}, {box.id for box in stopped}, "deleted, then back")
        for box in stopped:
            self.assertIn(box.info()["status"], ("stopped", "failed"))
            self.assertEqual(request("POST", box.path("/resume")).status, 200)
            self.assertEqual(box.exec("/bin/echo", "on")["stdout"], "on\n")

    def test_stop_and_start_loop(self):
        box = self.create(name="loop", env={"A": "1"})
        for i in range(20):
            box.exec("/bin/sh", "-c", f"echo {i} >> /workspace/f; echo {i} > /root/g{i}")
            self.assertEqual(request("POST", box.path("/stop")).json["status"], "stopped")
            reply = request("POST", box.path("/resume"))
            self.assertEqual((reply.status, reply.json.get("status")), (200, "running"), reply)
        result = box.exec("/bin/sh", "-c", "cat /workspace/f; ls /root | wc -l; echo $A")
        self.assertEqual(result["stdout"], "".join(f"{i}\n" for i in range(20)) + "20\n1\n")

    def test_stop_and_start_with_a_disk_of_its_own(self):
        box = self.create(resources={"diskGB": 0.25})
        for i in range(3):
            box.exec("/bin/sh", "-c", f"echo {i} >> /workspace/f")
            request("POST", box.path("/stop"))
            self.assertEqual(request("POST", box.path("/resume")).status, 200)
        self.assertEqual(box.exec("/bin/cat", "/workspace/f")["stdout"], "0\n1\n2\n")

    def test_lifetime_and_idleness(self):
        short = self.create(name="short", maxLifetimeSeconds=1)
        idle = self.create(name="idle", idleTimeoutSeconds=2)
        busy = self.create(name="busy", idleTimeoutSeconds=2)
        gone = self.create(name="gone", maxLifetimeSeconds=1, ephemeral=True)
        forever = self.create(name="forever")
        running = busy.spawn("/bin/sleep", "100")["pid"]
        wait_until(lambda: short.info()["status"] == "stopped", 10, "the lifetime ended it")
        self.assertIn("lifetime", short.info()["reason"])

        def idle_ended():
            busy.process(running)  # asking is activity
            return idle.info()["status"] == "stopped"

        wait_until(idle_ended, 10, "idleness ended it")
        self.assertIn("idle", idle.info()["reason"])
        wait_until(lambda: request("GET", gone.path()).status == 404, 10, "an ephemeral one is removed")
        self.assertEqual((busy.info()["status"], forever.info()["status"]), ("running", "running"))
        self.assertEqual(request("POST", short.path("/resume")).status, 200)
        self.assertEqual(short.exec("/bin/echo", "again")["stdout"], "again\n")

    def test_a_running_command_is_activity(self):
        """A sandbox whose command has run all along is not idle."""
        box = self.create(idleTimeoutSeconds=2)
        result = box.exec("/bin/sh", "-c", "sleep 5; echo done")
        self.assertEqual((result["stdout"], result["exitCode"]), ("done\n", 0))
        self.assertEqual(box.info()["status"], "running")


class OnExit(unittest.TestCase):
    def test_keep(self):
        server = AtollServer(on_exit="keep")
        self.addCleanup(server.close)
        server.start()
        box = Box(request("POST", "/v1/sandboxes", {"name": "kept"}).json["id"])
        pid = box.spawn("/bin/sh", "-c", "sleep 1; echo out; sleep 100")["pid"]
        agent = server.agent_pid(box.id)
        wait_until(server.settled, 20, "the pool is full")
        self.assertEqual(server.stop(), 0)
        self.assertTrue(fixture.alive(agent))
        slots = {os.path.basename(path) for path in server.cgroups() if os.path.basename(path).startswith("s")}
        self.assertEqual(len(slots), 1, f"only the sandbox stays, not the reserve: {slots}")
        server.start()
        self.assertEqual(box.info()["status"], "running")
        self.assertTrue(box.process(pid)["running"])
        wait_until(lambda: box.output(pid) == b"out\n", 10, "its output")
        self.assertEqual(server.agent_pid(box.id), agent)

    def test_stop(self):
        server = AtollServer(on_exit="stop")
        self.addCleanup(server.close)
        server.start()
        wait_until(server.settled, 20, "the pool is full")
        box = Box(request("POST", "/v1/sandboxes", {"name": "stopped"}).json["id"])
        brief = Box(request("POST", "/v1/sandboxes", {"name": "brief", "ephemeral": True}).json["id"])
        box.exec("/bin/sh", "-c", "echo kept > /workspace/f")
        box.spawn("/bin/sleep", "100")
        wait_until(server.settled, 20, "the pool is full")
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.sandbox_pids(), [])
        self.assertEqual(server.cgroups(), [])
        server.start()
        info = box.info()
        self.assertEqual((info["status"], info["reason"]), ("stopped", "the server was stopped"))
        self.assertEqual(request("GET", brief.path()).status, 404)
        self.assertEqual(request("POST", box.path("/resume")).status, 200)
        self.assertEqual(box.exec("/bin/cat", "/workspace/f")["stdout"], "kept\n")

    def test_nothing_left_when_stopped_at_any_time(self):
        """Also while the pool is being filled."""
        server = AtollServer()
        self.addCleanup(server.destroy)
        for _ in range(10):
            server.start()
            for _ in range(3):
                request("POST", "/v1/sandboxes", {"ephemeral": True})
            self.assertEqual(server.stop(), 0)
            LeakCounter(server).assert_empty(seconds=3)

    def test_trash_is_empty_at_the_end(self):
        server = AtollServer()
        self.addCleanup(server.destroy)
        for _ in range(10):
            server.start()
            request("POST", "/v1/sandboxes", {})
            server.delete_all()
            self.assertEqual(server.stop(), 0)
            with pool_of(server) as pool:
                self.assertEqual(os.listdir(pool / "trash"), [], "a clean end leaves files in the trash")

    def test_more_files_of_sandboxes_than_one_message_holds(self):
        server = AtollServer()
        self.addCleanup(server.close)
        server.start()
        kept = request("POST", "/v1/sandboxes", {}).json["id"]
        server.stop()
        unknown = {f"sandbox-{number:012x}" for number in range(2500)}
        with pool_of(server) as pool:
            for name in unknown:
                (pool / "sandboxes" / name).mkdir()
        server.start()
        with pool_of(server) as pool:
            wait_until(lambda: not unknown & set(os.listdir(pool / "sandboxes")), 30, "only what is known is left")
            self.assertIn(kept, os.listdir(pool / "sandboxes"))
        self.assertEqual(request("GET", f"/v1/sandboxes/{kept}").json["status"], "stopped")

    def test_start_goes_on_with_the_trash(self):
        server = AtollServer()
        self.addCleanup(server.close)
        server.start()
        server.stop()
        with pool_of(server) as pool:
            (pool / "trash/old/deep/er").mkdir(parents=True)
            (pool / "trash/old/deep/er/file").write_text("x")
            (pool / "sandboxes/sandbox-0123456789ab/upper").mkdir(parents=True)
        server.start()
        with pool_of(server) as pool:
            wait_until(lambda: not os.listdir(pool / "trash"), 10, "the trash is empty")
            self.assertFalse((pool / "sandboxes/sandbox-0123456789ab").exists())


if __name__ == "__main__":
    fixture.main()
