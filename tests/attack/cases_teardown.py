"""E: nothing survives its sandbox, however it tries."""

import concurrent.futures
import time

import product
from harness import SLEEPER, ProductCase

DAEMON = "(setsid bash -c 'setsid bash -c '\\''exec -a \"$0\" sleep 300'\\'' \"$0\" &' \"$1\" &)"
STOPPED = '(exec -a "$1" sleep 300) & kill -STOP $!; exec -a "$1" bash -c "kill -STOP \\$\\$"'
DEAF = 'trap "" TERM INT HUP; exec -a "$1" python3 -c "import signal; signal.pause()"'

# posix_spawn is a vfork: while its child hangs in opening the FIFO, the parent is in state D.
VFORK = """
import os, sys
os.mkfifo("/tmp/fifo")
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/tmp/fifo", os.O_RDONLY, 0)])
"""


class Teardown(ProductCase):
    def check_dies_with_its_sandbox(self, script, count=1):
        box = self.sandbox("dev")
        marker, _ = self.marked(box, script, count)
        sandbox_id = box.id
        box.remove(timeout=20)
        self.assert_gone(marker)
        self.assert_nothing_left(sandbox_id)

    def test_E01_a_daemon(self):
        self.check_dies_with_its_sandbox(DAEMON)

    def test_E02_stopped_processes(self):
        self.check_dies_with_its_sandbox(STOPPED, count=2)

    def test_E03_a_process_that_ignores_signals(self):
        self.check_dies_with_its_sandbox(DEAF)

    def test_E04_a_parent_that_hangs_in_vfork(self):
        self.check_dies_with_its_sandbox(f"exec python3 -c '{VFORK}' \"$1\"", count=2)

    def test_E04_frozen_processes(self):
        box = self.sandbox("dev")
        marker, _ = self.marked(box, STOPPED, count=2)
        sandbox_id = box.id
        self.pause(sandbox_id)
        # The control: what is frozen does not even die of SIGTERM, until somebody ends it properly.
        self.assertEqual(box.status()["status"], "paused")
        self.assertTrue(product.processes_with(marker))
        box.remove(timeout=20)
        self.assert_gone(marker)
        self.assert_nothing_left(sandbox_id)

    def test_E04_frozen_processes_of_a_sandbox_that_is_stopped(self):
        box = self.sandbox("dev")
        marker, _ = self.marked(box, DEAF)
        self.pause(box.id)
        self.assertEqual(product.http("POST", f"/v1/sandboxes/{box.id}/stop").json["status"], "stopped")
        self.assert_gone(marker)

    def test_E04_frozen_processes_whose_time_is_up(self):
        reply = product.http("POST", "/v1/sandboxes", {"maxLifetimeSeconds": 2, "ephemeral": True})
        path = f"/v1/sandboxes/{reply.json['id']}"
        marker = product.unique("marker")
        command = {"executable": "/bin/bash", "args": ["-c", SLEEPER, "sh", marker]}
        self.assertEqual(product.http("POST", f"{path}/runtime/process/spawn", command).status, 200)
        product.wait_until(lambda: product.processes_with(marker), 10, "it runs")
        self.pause(reply.json["id"])
        self.assert_gone(marker, 10)
        product.wait_until(lambda: product.http("GET", path).status == 404, 5, "it is removed")

    def pause(self, sandbox_id):
        self.assertEqual(product.http("POST", f"/v1/sandboxes/{sandbox_id}/pause").json["status"], "paused")

    def test_E06_removal_while_a_command_runs_ends_the_command(self):
        box = self.sandbox("dev")
        marker, client = self.marked(box)
        box.remove(timeout=20)
        self.assert_gone(marker)
        self.assertNotEqual(client.wait(timeout=15), 0)

    def test_E06_of_two_removals_one_wins_and_nothing_breaks(self):
        box = self.sandbox("dev")
        sandbox_id = box.id
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            path = f"/v1/sandboxes/{sandbox_id}"
            statuses = list(pool.map(lambda _: product.http("DELETE", path).status, range(4)))
        self.assertIn(200, [200 if status < 300 else status for status in statuses])
        for status in statuses:
            self.assertTrue(status < 300 or status in (404, 409), statuses)
        self.assert_nothing_left(sandbox_id)

    def test_E06_commands_and_removal_at_the_same_time(self):
        box = self.sandbox("dev")
        marker, sandbox_id = product.unique("marker"), box.id
        with concurrent.futures.ThreadPoolExecutor(9) as pool:
            command = ["bash", "-c", SLEEPER, "sh", marker]
            runs = [pool.submit(box.run, *command, check=False, timeout=15) for _ in range(8)]
            pool.submit(box.remove).result(timeout=30)
            for run in runs:
                self.assertNotEqual(run.result(timeout=30).returncode, 0)
        self.assert_gone(marker)
        self.assert_nothing_left(sandbox_id)

    def at_once(self, *requests):
        """Requests as (method, path, body) at the same time; answers their statuses."""
        with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
            replies = list(pool.map(lambda one: product.http(*one, timeout=30), requests))
        for reply in replies:
            self.assertLess(reply.status, 500, reply)
            if reply.status >= 400:
                self.assertIn(reply.json["code"], ("NOT_FOUND", "CONFLICT", "INVALID_STATE"), reply)
        return [reply.status for reply in replies]

    def assert_deleted(self, path):
        product.http("DELETE", path)
        self.assertEqual(product.http("GET", path).status, 404)
        sandbox_id = path.rpartition("/")[2]
        self.assert_nothing_left(sandbox_id)

    def test_E06_removal_while_it_is_being_created(self):
        for round_ in range(30):
            name = product.unique("unborn")
            path = f"/v1/sandboxes/{name}"
            body = {"name": name, "pool": round_ % 2 == 0}
            statuses = self.at_once(("POST", "/v1/sandboxes", body), *[("DELETE", path)] * 3)
            self.assertEqual(statuses[0], 201, "whoever creates is told of a sandbox, deleted since or not")
            there = product.http("GET", path).status == 200
            # One winner: either a deletion found it, and it is gone, or none did, and it is there.
            self.assertEqual(there, 200 not in statuses[1:], statuses)
            self.assert_deleted(path)
            again = product.http("POST", "/v1/sandboxes", body)
            self.assertEqual(again.status, 201, "the name is free again")
            self.assertEqual(product.http("DELETE", path).status, 200)

    def test_E06_removal_while_it_is_paused_unpaused_stopped_and_started(self):
        for verbs in (["pause"], ["pause", "unpause"], ["stop"], ["stop", "resume"], ["pause", "stop", "resume"]):
            for _ in range(5):
                box = self.sandbox("dev")
                marker, _ = self.marked(box)
                path = f"/v1/sandboxes/{box.id}"
                *before, last = verbs
                for verb in before:
                    product.http("POST", f"{path}/{verb}")
                with self.subTest(verbs):
                    statuses = self.at_once(("POST", f"{path}/{last}"), ("DELETE", path), ("POST", f"{path}/{last}"))
                    self.assertEqual(statuses[1], 200)
                    self.assertEqual(product.http("GET", path).status, 404, "deleted, then back")
                    self.assert_gone(marker)
                    self.assert_nothing_left(box.id)

    def test_E06_a_pause_in_the_middle_of_a_command(self):
        box = self.sandbox("dev")
        _, client = self.marked(box, 'mkfifo /go; exec -a "$1" bash -c "read line </go; exit 7"')
        self.pause(box.id)
        refused = box.runtime("POST", "/terminals/commands", {"executable": "/bin/true"})
        self.assertEqual((refused.status, refused.json["code"]), (409, "INVALID_STATE"))
        self.assertIsNone(client.poll(), "its caller waits")
        self.assertEqual(product.http("POST", f"/v1/sandboxes/{box.id}/unpause").json["status"], "running")
        box.sh("echo >/go")
        self.assertEqual(client.wait(timeout=15), 7, "it goes on where it was")

    def test_E08_a_timeout_kills_grandchildren_too(self):
        box = self.sandbox("dev")
        marker = product.unique("marker")
        script = f"(setsid bash -c 'exec -a {marker} sleep 300' &) ; exec -a {marker} sleep 300"
        begin = time.monotonic()
        reply = box.runtime("POST", "/terminals/commands", {"command": script, "timeout": 1500})
        self.assertLess(time.monotonic() - begin, 6)
        self.assertLess(reply.status, 500, reply)
        self.assert_gone(marker, 2)
        self.assert_alive(box)

    def test_E09_cgroups_cannot_be_made_or_changed_from_inside(self):
        box = self.sandbox("dev")
        made = box.sh("mkdir /sys/fs/cgroup/x || find / -xdev -name cgroup.procs -writable | grep .", check=False)
        self.assertNotEqual(made.returncode, 0, made.stdout)

    def test_E10_a_background_process_does_not_hold_its_command_open(self):
        box = self.sandbox("dev")
        marker = product.unique("marker")
        done = box.sh('(exec -a "$1" sleep 300 &) ; echo done', marker, timeout=15)
        self.assertEqual(done.stdout, "done\n")
        self.assertTrue(product.processes_with(marker))  # a normal exit leaves it running
        box.remove(timeout=20)
        self.assert_gone(marker)
