#!/usr/bin/env python3
"""kill -9 at every step of what changes states: afterwards it is as before or as asked for, never half, and nothing leaks."""

import contextlib
import os
import pathlib
import re
import unittest

import fixture
from fixture import Box, http as request, wait_until
from pool_files import pool_of
from server import AtollServer

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"

# What to do for a place to be reached. In helpers, the launcher dies with them, or goes on alone.
STEPS = {
    "snapshot": ["keep.frozen:family", "keep.copied:family", "keep.copied:alone", "snapshot.kept", "snapshot.written"],
    "unsnapshot": ["snapshot.forgotten", "drop.released", "drop.trashed", "sweep.found:family", "sweep.removed:family"],
    "fork": ["copy.unfinished:family", "copy.renewed:family", "copy.named:family", "copy.named:alone", "fork.kept", "fork.made"],
    "restore": ["restore.stopped", "restore.copied:family", "restore.renewed:family", "restore.exchanged:family",
                "restore.exchanged:alone", "restore.untidy", "restore.done", "restore.saved"],
    "build": ["build.ready", "build.ended", "publish.kept:family", "publish.untidy", "build.published", "build.saved"],
    "collect": ["collect.discarded:family", "collect.discarded:alone"],
    "delete": ["delete.written", "destroy.killed", "destroy.trashed"],
}  # fmt: skip


def armed(place):
    os.environ["ATOLL_FAILPOINT"] = place
    try:
        server = AtollServer(pool=0, reserve=1).start()
        server.place = place
        return server
    finally:
        del os.environ["ATOLL_FAILPOINT"]


class Scene:
    """A sandbox with one kept state, and what the pool and the API know of them."""

    def __init__(self, test, server):
        self.test, self.server = test, server
        self.box = Box(self.ask("POST", "/v1/sandboxes", {}, 201).json["id"])
        self.sh("echo old > f; mkdir d; echo 1 > d/x")
        self.wrote = "old"
        self.snapshot = None

    def ask(self, method, path, body=None, status=200):
        reply = request(method, path, body, timeout=30)
        self.test.assertEqual(reply.status, status, reply)
        return reply

    def sh(self, script):
        done = self.box.exec("/bin/sh", "-c", script)
        self.test.assertEqual(done["exitCode"], 0, done)
        return done["stdout"]

    def keep(self):
        """A state to return to, made by a way that is not the one that dies."""
        self.snapshot = self.ask("POST", self.box.path("/snapshots"), {}, 201).json["snapshotId"]
        self.sh("echo new > f; rm -r d")
        self.wrote = "new"

    def attempt(self, method, path, body=None):
        """What may die on the way: its status, or None."""
        with contextlib.suppress(OSError, ValueError, AssertionError):
            return request(method, path, body, timeout=30).status
        return None


class Failpoints(unittest.TestCase):
    def test_all_are_tried(self):
        found = set()
        for source in SOURCES.rglob("*.cpp"):
            found |= set(re.findall(r'failpoint\("([a-z.]+)"\)', source.read_text()))
        tried = {place.split(":")[0] for places in STEPS.values() for place in places}
        self.assertEqual(found, tried)

    def died(self, server):
        if server.place.endswith(":alone"):
            return
        wait_until(lambda: "starting again" in server.log.read_text(), 20, "a process has died")
        server.wait_healthy()

    def settle(self, scene):
        """It runs, or can be made to."""
        status = scene.ask("GET", scene.box.path("")).json["status"]
        if status != "running":
            scene.ask("POST", scene.box.path("/resume"), {})
        content = scene.sh("cat f; ls -d d || true").split()
        self.assertIn(content, [["old", "d"], ["new"]], "a state that was")
        return content[0]

    def check_pool(self, server):
        """What the pool holds is what the API knows, once the trash is empty."""
        boxes = {row["id"] for row in request("GET", "/v1/sandboxes").json["sandboxes"]}
        states = {row["snapshotId"] for row in request("GET", "/v1/snapshots").json["snapshots"]}
        layers = set()
        for item in request("GET", "/v1/templates?all=true").json["templates"]:
            if item["name"] == "built":
                layers.add(item["name"])

        def clean():
            with pool_of(server) as pool:
                kept = {name for name in os.listdir(pool / "states")}
                files = {name for name in os.listdir(pool / "sandboxes") if not name.startswith(".")}
                trash = os.listdir(pool / "trash")
            made = {name for name in kept if name.startswith("layer-")}
            return not trash and files == boxes and kept - made == states and len(made) == len(layers)

        wait_until(clean, 20, f"the pool holds {boxes}, {states} and {len(layers)} layers")

    def run_place(self, step, place):
        server = armed(place)
        try:
            scene = Scene(self, server)
            getattr(self, step)(scene, server)
            self.settle(scene)
            self.check_pool(server)
            server.delete_all()
            if self.built(scene):
                scene.ask("DELETE", "/v1/templates/built")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{server.log_tail()}") from None
        else:
            server.close()
        finally:
            server.destroy()

    # Each does it, has the process die on the way, and looks at what there is.

    def snapshot(self, scene, server):
        status = scene.attempt("POST", scene.box.path("/snapshots"), {})
        self.died(server)
        listed = scene.ask("GET", scene.box.path("/snapshots")).json["snapshots"]
        if status == 201:
            self.assertEqual(len(listed), 1, "what was acknowledged is there")
        for item in listed:
            copy = scene.ask("POST", "/v1/sandboxes", {"fromSnapshot": item["snapshotId"]}, 201).json["id"]
            self.assertEqual(Box(copy).exec("/bin/cat", "f")["stdout"], "old\n")
        self.assertEqual(self.settle(scene), "old")

    def unsnapshot(self, scene, server):
        scene.keep()
        scene.attempt("DELETE", f"/v1/snapshots/{scene.snapshot}")
        self.died(server)
        self.assertEqual(self.settle(scene), "new")
        request("DELETE", f"/v1/snapshots/{scene.snapshot}", timeout=30)
        self.assertEqual(scene.ask("GET", "/v1/snapshots").json["snapshots"], [])

    def fork(self, scene, server):
        scene.attempt("POST", scene.box.path("/fork"), {"count": 2})
        self.died(server)
        for row in scene.ask("GET", "/v1/sandboxes").json["sandboxes"]:
            if row["status"] != "running":
                scene.ask("POST", f"/v1/sandboxes/{row['id']}/resume", {})
            self.assertEqual(Box(row["id"]).exec("/bin/cat", "f", "d/x")["stdout"], "old\n1\n")

    def restore(self, scene, server):
        scene.keep()
        status = scene.attempt("POST", scene.box.path("/restore"), {"snapshotId": scene.snapshot})
        self.died(server)
        found = self.settle(scene)
        if status == 200:
            self.assertEqual(found, "old", "what was acknowledged has happened")

    def built(self, scene):
        return [item for item in scene.ask("GET", "/v1/templates").json["templates"] if item["name"] == "built"]

    BUILD = {"name": "built", "from": "base", "bootstrap": "echo made > /etc/made"}

    def build(self, scene, server):
        scene.attempt("POST", "/v1/templates", self.BUILD)
        self.died(server)
        before = self.built(scene)
        again = scene.ask("POST", "/v1/templates", self.BUILD, 201).json
        self.assertEqual(again["reused"], bool(before))
        box = scene.ask("POST", "/v1/sandboxes", {"templateId": "built"}, 201).json["id"]
        self.assertEqual(Box(box).exec("/bin/cat", "/etc/made")["stdout"], "made\n")

    def collect(self, scene, server):
        scene.ask("POST", "/v1/templates", self.BUILD, 201)
        scene.attempt("DELETE", "/v1/templates/built")
        self.died(server)
        if self.built(scene):
            scene.ask("DELETE", "/v1/templates/built")
        self.assertEqual(self.built(scene), [])

    def delete(self, scene, server):
        other = scene.ask("POST", scene.box.path("/fork"), {}, 201).json["sandbox"]["id"]
        scene.attempt("DELETE", f"/v1/sandboxes/{other}")
        self.died(server)
        request("DELETE", f"/v1/sandboxes/{other}", timeout=30)
        self.assertEqual(request("GET", f"/v1/sandboxes/{other}").status, 404)


def add(step, place):
    def test(self):
        self.run_place(step, place)

    setattr(Failpoints, "test_" + step + "_" + re.sub("[^a-z]", "_", place), test)


for _step, _places in STEPS.items():
    for _place in _places:
        add(_step, _place)


if __name__ == "__main__":
    fixture.main()
