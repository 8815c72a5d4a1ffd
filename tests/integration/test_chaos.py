#!/usr/bin/env python3
"""A thousand operations by several clients while server and launcher are killed: all that was acknowledged holds."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import fixture
from chaos_model import ChaosClient
from fixture import AtollCase, AtollServer, Box, LeakCounter, http, in_parallel, wait_until
from host import alive

SEED = int(os.environ.get("ATOLL_CHAOS_SEED", "20260815"))


class Killer:
    """Kills after given numbers of operations, a random moment later; sometimes the successor too, while it starts."""

    MOMENT = 0.03  # seconds; several operations
    START = 0.3  # about as long as a start takes

    def __init__(self, server, chance, kills):
        self.server, self.chance = server, chance
        self.done = 0
        self.lock = threading.Condition()
        self.ended = False
        self.kills = []
        self.plan = kills
        self.thread = threading.Thread(target=self.run)

    def tick(self):
        with self.lock:
            self.done += 1
            self.lock.notify()

    def run(self):
        for after, victim, while_starting in self.plan:
            with self.lock:
                self.lock.wait_for(lambda after=after: self.ended or self.done >= after)
            self.pause(self.MOMENT)
            self.kill(victim)
            if while_starting:
                self.pause(self.START)
                self.kill(victim)
            self.server.wait_healthy()

    def pause(self, seconds):
        threading.Event().wait(self.chance.random() * seconds)

    def kill(self, victim):
        pid = wait_until(lambda: self.server.children().get("atoll-" + victim), 20, f"there is a {victim}")
        os.kill(pid, signal.SIGKILL)
        self.kills.append(victim)
        wait_until(lambda: not alive(pid), 10, "it has ended")

    def join(self):
        with self.lock:
            self.ended = True
            self.lock.notify()
        self.thread.join(60)


class Chaos:
    """One server, and fewer deaths in a row than the supervisor gives up at."""

    server_options = {"on_exit": "keep"}
    CLIENTS = 5
    REQUESTS = 100  # of each
    PLAN = ()

    def test_what_was_acknowledged_holds(self):
        seed = SEED + self.ROUND
        print(f"\n    seed {seed} (ATOLL_CHAOS_SEED={SEED})")
        killer = Killer(self.server, random.Random(seed), self.PLAN)
        clients = [ChaosClient(f"c{i}", random.Random(seed * 100 + i), killer.tick) for i in range(self.CLIENTS)]
        begin = time.monotonic()
        killer.thread.start()
        failures = [f for f in in_parallel([lambda c=c: c.run(self.REQUESTS) for c in clients]) if f]
        killer.join()
        self.assertFalse(failures, "\n".join(map(repr, failures)))
        requests, lost = sum(c.count for c in clients), sum(c.unanswered for c in clients)
        spent = time.monotonic() - begin
        print(f"    {requests} requests, {lost} without an answer, kills: {killer.kills}, {spent:.1f} s")
        self.assertEqual(len(killer.kills), sum(1 + extra for _, _, extra in self.PLAN))
        self.assertGreater(lost, 0, "nothing was interrupted: proves nothing")
        self.server.wait_healthy()
        for client in clients:
            client.verify()
        self.assertEqual([error for c in clients for error in c.server_errors], [])
        self.verify_events(clients)
        for client in clients:
            client.forget()

    def verify_events(self, clients):
        ids, seen = [], set()
        for block in http("GET", "/v1/events?follow=false").body.decode().split("\n\n"):
            fields = dict(line.partition(": ")[::2] for line in block.splitlines() if ": " in line)
            if "id" not in fields:
                continue
            ids.append(int(fields["id"]))
            with contextlib.suppress(KeyError):
                seen.add((fields["event"], json.loads(fields["data"])["sandboxId"]))
        self.assertEqual(ids, sorted(set(ids)), "an event came twice or out of order")
        for client in clients:
            self.assertLessEqual({("sandbox.created", box) for box in client.created}, seen)
            self.assertLessEqual({("sandbox.deleted", box) for box in client.deleted}, seen)


class ServerFirst(Chaos, AtollCase):
    ROUND = 1
    PLAN = ((60, "server", False), (160, "launcher", False), (260, "server", True), (400, "launcher", False))


class LauncherFirst(Chaos, AtollCase):
    ROUND = 2
    PLAN = ((50, "launcher", False), (180, "server", False), (300, "launcher", True), (420, "server", False))


class Refused:
    """One change of each kind, while the database takes none: all are refused, and nothing has happened."""

    def prepare(self):
        self.boxes = {verb: self.make_box(verb) for verb in ("stop", "pause", "patch", "delete", "unpause", "resume")}
        self.expect(200, "POST", self.boxes["unpause"].path("/pause"))
        self.expect(200, "POST", self.boxes["resume"].path("/stop"))
        self.expect(200, "PUT", "/v1/secrets/KEPT", {"value": "x"})
        self.key = self.expect(201, "POST", "/v1/keys", {"name": "kept", "tenant": "t"})["id"]

    def make_box(self, verb):
        box = Box(self.expect(201, "POST", "/v1/sandboxes", {"name": "to-" + verb, "metadata": {"v": "old"}})["id"])
        box.write("/workspace/f", verb.encode())
        return box

    def expect(self, status, *request):
        reply = http(*request, timeout=60)
        self.assertEqual(reply.status, status, f"{request}: {reply}")
        return reply.json

    def changes(self):
        yield 201, "POST", "/v1/sandboxes", {"name": "new"}
        for verb in ("stop", "pause", "unpause", "resume"):
            yield 200, "POST", self.boxes[verb].path("/" + verb)
        changed = {"metadata": {"v": "new"}, "resources": {"memoryMB": 128}}
        yield 200, "PATCH", self.boxes["patch"].path(), changed
        yield 200, "DELETE", self.boxes["delete"].path()
        yield 200, "PUT", "/v1/secrets/NEW", {"value": "x"}
        yield 200, "DELETE", "/v1/secrets/KEPT"
        yield 201, "POST", "/v1/keys", {"name": "new", "tenant": "t"}
        yield 200, "DELETE", f"/v1/keys/{self.key}"

    def assert_refused(self, status, code):
        requests = [request for _, *request in self.changes()]
        replies = in_parallel([lambda r=r: http(*r, timeout=90) for r in requests])
        for request, reply in zip(requests, replies):
            self.assertEqual((reply.status, reply.json["code"]), (status, code), f"{request}: {reply}")

    def assert_as_before(self):
        rows = {row["name"]: row for row in http("GET", "/v1/sandboxes").json["sandboxes"]}
        self.assertEqual(set(rows), {"to-" + verb for verb in self.boxes})
        for verb, box in self.boxes.items():
            expected = {"unpause": "paused", "resume": "stopped"}.get(verb, "running")
            row = rows["to-" + verb]
            self.assertEqual((row["status"], row["metadata"]), (expected, {"v": "old"}), verb)
            self.assertNotEqual(row["resources"]["memoryMB"], 128)
            self.assertNotIn("deleted", row.get("reason", ""))
            if expected == "running":  # also in truth
                self.assertEqual(box.exec("/bin/cat", "/workspace/f")["stdout"], verb)
        self.assertEqual([row["name"] for row in http("GET", "/v1/secrets").json["secrets"]], ["KEPT"])
        names = {row["name"] for row in http("GET", "/v1/keys").json["keys"]}
        self.assertTrue("kept" in names and "new" not in names, names)

    def assert_all_work(self):
        for status, *request in self.changes():
            self.expect(status, *request)


class FullDisk(Refused, unittest.TestCase):
    """The database's directory is a small file system of its own."""

    def test_full_disk(self):
        server = AtollServer()
        self.addCleanup(server.destroy)
        state = server.data / "state"
        state.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", state], check=True)
        unmount = contextlib.ExitStack()
        self.addCleanup(unmount.close)
        unmount.callback(subprocess.run, ["umount", "--lazy", state], check=True)
        server.start()
        leaks = LeakCounter(server).start()
        self.prepare()
        self.fill(state)
        self.assert_refused(507, "NO_SPACE")
        self.assert_as_before()
        server.kill("server")
        self.assert_as_before()
        self.assert_refused(507, "NO_SPACE")
        (state / "filler").unlink()
        self.assert_all_work()
        server.kill("server")
        self.assertEqual(http("GET", self.boxes["stop"].path()).json["status"], "stopped")
        self.assertEqual(http("GET", self.boxes["delete"].path()).status, 404)
        server.delete_all()
        leaks.check()
        self.assertEqual(server.stop(), 0)
        unmount.close()
        server.close()

    def fill(self, state):
        with (state / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        # The log that the database writes ahead may have room left from before.
        wait_until(lambda: http("PUT", "/v1/secrets/KEPT", {"value": "y" * 4000}).status == 507, 20, "it is full")


class LockedDatabase(Refused, AtollCase):
    """Another process holds the write lock."""

    @contextlib.contextmanager
    def locked(self):
        other = sqlite3.connect(self.server.data / "state/atoll.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()

    def test_for_a_moment(self):
        answers = []
        create = threading.Thread(target=lambda: answers.append(http("POST", "/v1/sandboxes", {"name": "late"})))
        with self.locked():
            create.start()
            create.join(2)
            self.assertTrue(create.is_alive(), "the lock was in nobody's way")
            self.assertEqual(http("GET", "/v1/sandboxes", timeout=1).status, 200)
        create.join(10)
        self.assertEqual(answers[0].status, 201, answers)

    def test_for_long(self):
        self.prepare()
        with self.locked():
            self.assert_refused(503, "UNAVAILABLE")
            self.assertEqual(http("GET", "/v1/events?follow=false", timeout=20).status, 200)
            self.assert_as_before()
        self.assert_as_before()
        self.server.kill("server")
        self.assert_as_before()
        self.assert_all_work()
        http("DELETE", "/v1/secrets/NEW")


if __name__ == "__main__":
    fixture.main()
