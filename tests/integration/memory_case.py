"""Tests with a process that counts: whoever goes on from a moment goes on from its count."""

import pathlib

from fixture import AtollCase, Box, http as request, wait_until
from product import SANITIZERS

# Counts in memory and tells the count in a file.
COUNTER = """
import os, time
count, ballast = 0, bytearray(os.urandom(1 << 20)) * 8
while True:
    count += 1
    with open("/tmp/count.new", "w") as file: file.write(str(count))
    os.rename("/tmp/count.new", "/tmp/count")
    time.sleep(0.01)
"""



def skip_where_none_can_be_made(test):
    if SANITIZERS == "thread":
        test.skipTest("the thread sanitizer's own thread keeps the launcher's children out of other mount namespaces")


class MemoryCase(AtollCase):
    def setUp(self):
        skip_where_none_can_be_made(self)
        super().setUp()
        self.addCleanup(self.check_images)

    def check_images(self):
        """Every image that nobody needs is gone. (Sandboxes are deleted after this.)"""
        for checkpoint in request("GET", "/v1/checkpoints").json["checkpoints"]:
            request("DELETE", f"/v1/checkpoints/{checkpoint['checkpointId']}")
        self.server.delete_all()
        wait_until(lambda: not self.images(), 15, "no image is left")

    def images(self):
        return sorted(path.name for path in (pathlib.Path(self.server.data) / "memory").iterdir())

    def sh(self, box, script):
        result = box.exec("/bin/sh", "-c", script)
        self.assertEqual(result["exitCode"], 0, result)
        return result["stdout"]

    def keep(self, box, **body):
        reply = request("POST", box.path("/checkpoints"), body, timeout=120)
        self.assertEqual(reply.status, 201, reply)
        return reply.json

    def fork(self, box, **body):
        reply = request("POST", box.path("/fork"), {"memory": True, **body}, timeout=240)
        self.assertEqual(reply.status, 201, reply)
        return [Box(item["id"]) for item in reply.json["sandboxes"]]

    def count(self, box):
        return int(self.sh(box, "cat /tmp/count"))

    def counting(self, **body):
        box = self.create(**body)
        pid = box.spawn("python3", "-c", COUNTER)["pid"]
        wait_until(lambda: self.sh(box, "cat /tmp/count 2>/dev/null || true") != "", 20, "it counts")
        return box, pid

    def assert_counts_on(self, box, at_least):
        first = self.count(box)
        self.assertGreaterEqual(first, at_least)
        wait_until(lambda: self.count(box) > first + 3, 20, "it counts on")
