#!/usr/bin/env python3
"""Pauses to disk, and deaths while processes are kept or brought back."""

import threading

import fixture
from fixture import http as request, read_text, wait_until
from memory_case import MemoryCase


class PausesToDisk(MemoryCase):
    def test_pause_and_resume(self):
        box, pid = self.counting()
        at = self.count(box)
        reply = request("POST", box.path("/pause"), {"disk": True}, timeout=120)
        self.assertEqual((reply.status, reply.json["status"]), (200, "paused"), reply)
        self.assertEqual(len(self.images()), 1)
        mine = [pid for pid in self.server.sandbox_pids() if "count" in read_text(f"/proc/{pid}/cmdline")]
        self.assertEqual(mine, [], "it has no process")
        self.assertEqual(request("POST", box.path("/resume"), timeout=120).json["status"], "running")
        self.assert_counts_on(box, at)
        self.assertTrue(box.process(pid)["running"])
        self.assertEqual(self.images(), [])

    def test_the_next_call_resumes(self):
        box, _ = self.counting()
        at = self.count(box)
        request("POST", box.path("/pause"), {"disk": True}, timeout=120)
        self.assert_counts_on(box, at)

    def test_cycles_lose_nothing(self):
        box, _ = self.counting()
        for i in range(50):
            self.sh(box, f"echo {i} >> log")
            at = self.count(box)
            self.assertEqual(request("POST", box.path("/pause"), {"disk": True}, timeout=120).status, 200)
            reply = request("POST", box.path("/resume"), timeout=120)
            self.assertEqual(reply.status, 200, reply)
            self.assertGreaterEqual(self.count(box), at)
        self.assertEqual(self.sh(box, "cat log").split(), [str(i) for i in range(50)])

    def test_stop_and_delete_drop_what_was_kept(self):
        box, _ = self.counting()
        request("POST", box.path("/pause"), {"disk": True}, timeout=120)
        self.assertEqual(request("POST", box.path("/stop")).json["status"], "stopped")
        wait_until(lambda: not self.images(), 15, "the image is gone")
        self.assertEqual(request("POST", box.path("/resume")).json["status"], "running")
        self.assertEqual(self.sh(box, "pgrep -c python3 || true"), "0\n", "a fresh start")
        request("POST", box.path("/pause"), {"disk": True}, timeout=120)
        box.delete()
        wait_until(lambda: not self.images(), 15, "the image is gone")

    def test_it_survives_the_server(self):
        box, _ = self.counting()
        at = self.count(box)
        request("POST", box.path("/pause"), {"disk": True}, timeout=120)
        for victim in ("server", "launcher"):
            self.server.kill(victim)
            wait_until(lambda: request("GET", "/health").status == 200, 30, "it is back")
            self.assertEqual(box.info()["status"], "paused")
        self.assertEqual(request("POST", box.path("/resume"), timeout=120).json["status"], "running")
        self.assert_counts_on(box, at)


class DeathCase(MemoryCase):
    """kill -9 while something is under way: the old state or the new one, and nothing is left over. Each has a server
    of its own, because deaths in a row are counted."""

    def die_during(self, box, victim, path, body, after):
        sent = threading.Thread(target=lambda: attempt(box, path, body))
        sent.start()
        wait_until(lambda: after() or not sent.is_alive(), 20, "it is under way, or over")
        self.server.kill(victim)
        wait_until(lambda: healthy(), 30, "it is back")
        sent.join(60)

    def busy(self):
        """A helper of the launcher's, or criu, is at work."""
        names = [read_text(f"/proc/{pid}/comm").strip() for pid in self.server.family_pids()]
        return any(name in ("criu", "loader", "atoll-keeper", "atoll-reviver") for name in names) or bool(
            [name for name in self.images() if name.startswith(".")])


class DeathsInCheckpoints(DeathCase):
    def test_during_a_checkpoint(self):
        for victim in ("server", "launcher"):
            for _ in range(2):
                box, _ = self.counting()
                at = self.count(box)
                self.die_during(box, victim, "/checkpoints", {}, self.busy)
                self.assertEqual(box.info()["status"], "running")
                self.assert_counts_on(box, at)
                whole = {item["checkpointId"] for item in request("GET", "/v1/checkpoints").json["checkpoints"]}
                wait_until(lambda whole=whole: set(self.images()) == whole, 20, "only whole ones are there")
                self.assertEqual(request("POST", box.path("/checkpoints"), {}, timeout=60).status, 201)


class DeathsInRestores(DeathCase):
    def test_during_a_restore(self):
        for victim in ("server", "launcher"):
            box, _ = self.counting()
            kept = self.keep(box)["checkpointId"]
            self.die_during(box, victim, "/restore", {"checkpointId": kept},
                            lambda: any(name.startswith(".revive") for name in self.images()))
            wait_until(lambda: not any(name.startswith(".") for name in self.images()), 20, "nothing half is left")
            self.assertIn(box.info()["status"], ("running", "stopped"))
            reply = request("POST", box.path("/restore"), {"checkpointId": kept}, timeout=120)
            self.assertEqual(reply.status, 200, reply)
            self.assert_counts_on(box, 1)


class DeathsInPauses(DeathCase):
    def test_during_a_pause_to_disk(self):
        for victim in ("server", "launcher"):
            box, _ = self.counting()
            at = self.count(box)
            self.die_during(box, victim, "/pause", {"disk": True}, self.busy)
            self.assertIn(box.info()["status"], ("running", "paused"))
            reply = request("POST", box.path("/resume"), timeout=120)
            self.assertEqual(reply.status, 200, reply)
            self.assert_counts_on(box, at)


def attempt(box, path, body):
    try:
        request("POST", box.path(path), body, timeout=60)
    except OSError:
        pass
    except Exception:  # noqa: BLE001  # the server died under it, which is what is tested
        pass


def healthy():
    try:
        return request("GET", "/health").status == 200
    except OSError:
        return False


if __name__ == "__main__":
    fixture.main()
