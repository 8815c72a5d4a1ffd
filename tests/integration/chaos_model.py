"""A client of a server that dies now and then: it keeps a model of what was acknowledged (test_chaos.py)."""

import base64
from http.client import HTTPException

from product import http

GONE = "gone"


class Broken(AssertionError):
    """The server contradicts what it had acknowledged."""


class Belief:
    """One value of the server's: all that it may be by now. An answer settles it; a request without one widens it."""

    def __init__(self, *values):
        self.values = set(values)

    def is_surely(self, *values):
        return self.values <= set(values)

    def told(self, value):
        self.values = {value}

    def perhaps(self, *values):
        self.values |= set(values)

    def check(self, value, what):
        if value not in self.values:
            raise Broken(f"{what} is {shorten(value)}, and may only be {[shorten(each) for each in self.values]}")

    def saw(self, value, what):
        self.check(value, what)
        self.told(value)


def shorten(value):
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}... of {len(text)}"


class ModelBox:
    """A sandbox: what it was created with, and what may have become of it."""

    def __init__(self, name, memory):
        self.name, self.env, self.memory_wanted = name, "env of " + name, memory
        self.id = None
        self.status, self.version, self.memory = Belief(GONE), Belief("0"), Belief(memory)
        self.files = {}  # path: Belief of its content
        self.lines = self.lines_perhaps = 0  # that commands have written

    def path(self, tail=""):
        return f"/v1/sandboxes/{self.name}{tail}"

    def body(self):
        return {
            "name": self.name, "env": {"MARK": self.env}, "idempotencyKey": "key-" + self.name,
            "metadata": {"version": "0"}, "resources": {"memoryMB": self.memory_wanted},
        }  # fmt: skip


class ChaosClient:
    """Random operations on things of its own. `tick` is called before each request."""

    BOXES = 3
    TENANT = "chaos"

    def __init__(self, prefix, random, tick):
        self.prefix, self.random, self.tick = prefix, random, tick
        self.boxes, self.secrets, self.keys = {}, {}, {}
        self.created, self.deleted = set(), set()  # ids, acknowledged
        self.count = self.unanswered = 0
        self.server_errors = []

    def run(self, operations):
        kinds = {
            self.create: 3, self.execute: 5, self.write: 5, self.read: 4, self.stop: 2, self.resume: 3, self.pause: 1,
            self.patch: 2, self.delete: 2, self.list: 1, self.set_secret: 2, self.delete_secret: 1, self.create_key: 1,
            self.delete_key: 1, self.events: 1,
        }  # fmt: skip
        while self.count < operations:
            self.random.choices(list(kinds), list(kinds.values()))[0]()

    def ask(self, method, path, body=None, **options):
        """The reply; None where none came, or one that leaves open whether it happened."""
        self.count += 1
        self.tick()
        try:
            reply = http(method, path, body, timeout=40, **options)
        except (OSError, HTTPException):
            reply = None
        if reply is None or len(reply.body) < int(reply.headers.get("Content-Length", 0)):
            self.unanswered += 1
            return None
        if reply.status < 500:
            return reply
        self.unanswered += 1
        if reply.status != 503:
            self.server_errors.append(f"{method} {path}: {reply}")
        return None

    def expect(self, reply, status, what):
        if reply.status != status:
            raise Broken(f"{what}: {reply} instead of {status}")

    # Sandboxes.

    def some_box(self):
        """One whose state is known, where one can be found."""
        if not self.boxes:
            self.create()
            return None
        box = self.random.choice(list(self.boxes.values()))
        return box if len(box.status.values) == 1 or self.observe(box) else None

    def observe(self, box):
        reply = self.ask("GET", box.path())
        if reply is None:
            return False
        if reply.status == 404:
            box.status.saw(GONE, box.name)
            return True
        self.expect(reply, 200, box.name)
        row = reply.json
        box.status.saw(row["status"], box.name)
        box.version.saw(row["metadata"].get("version"), f"metadata of {box.name}")
        box.memory.saw(row["resources"]["memoryMB"], f"memory of {box.name}")
        box.id = box.id or row["id"]
        if box.id != row["id"]:
            raise Broken(f"{box.name} is another sandbox than before")
        return True

    def create(self):
        if sum(not box.status.is_surely(GONE) for box in self.boxes.values()) >= self.BOXES:
            return
        box = ModelBox(f"{self.prefix}-{self.count}", self.random.choice([256, 300, 512]))
        self.boxes[box.name] = box
        box.status.perhaps("running")
        for _ in range(self.random.choice([1, 2])):  # again, with the same idempotency key
            reply = self.ask("POST", "/v1/sandboxes", box.body())
            if reply is None:
                continue
            self.expect(reply, 201, f"create {box.name}")
            box.status.told("running")
            box.id = reply.json["id"]
            self.created.add(box.id)
            break

    def execute(self):
        box = self.some_box()
        if box is None:
            return
        script = 'echo "$MARK"; echo x >> /workspace/lines'
        reply = self.runtime(box, "POST", "/terminals/commands", {"executable": "/bin/sh", "args": ["-c", script]})
        if reply is None:
            box.lines_perhaps += 1
        elif reply.status == 200:
            box.lines += 1
            said = reply.json["result"]["stdout"]
            if said != box.env + "\n":
                raise Broken(f"a command in {box.name} has MARK={said!r}, not {box.env!r}")

    def runtime(self, box, method, path, body):
        """A call into a sandbox, refused where it does not run. None for no answer."""
        reply = self.ask(method, box.path("/runtime" + path), body)
        if reply is None:
            return None
        missing_file = path == "/files/read" and reply.status == 404 and box.status.is_surely("running")
        expected = {"running": 200, GONE: 404}.get(next(iter(box.status.values)), 409)
        if not missing_file:
            self.expect(reply, expected, f"{path} in {box.name}, which is {box.status.values}")
        return reply

    def write(self):
        box = self.some_box()
        if box is None:
            return
        path = f"/workspace/file{self.random.randrange(3)}"
        content = self.random.randbytes(self.random.choice([1, 100, 20_000, 300_000]))
        text = base64.b64encode(content).decode()
        reply = self.runtime(box, "POST", "/files/write", {"path": path, "content": text, "encoding": "base64"})
        believed = box.files.setdefault(path, Belief(None))
        if reply is None:
            believed.perhaps(content)
        elif reply.status == 200:
            believed.told(content)

    def read(self):
        box = self.some_box()
        if box is not None and box.files:
            self.read_file(box, self.random.choice(list(box.files)))

    def read_file(self, box, path):
        """Never settles it: a write whose answer was lost may be done by the agent a moment later."""
        reply = self.runtime(box, "POST", "/files/read", {"path": path, "encoding": "base64"})
        if reply is None or not box.status.is_surely("running"):
            return reply is not None
        content = base64.b64decode(reply.json["data"]["content"]) if reply.status == 200 else None
        box.files[path].check(content, f"{path} of {box.name}")
        return True

    def change(self, verb, allowed, after):
        box = self.some_box()
        if box is not None:
            self.change_box(box, verb, allowed, after)

    def change_box(self, box, verb, allowed, after):
        before = set(box.status.values)
        reply = self.ask("POST", box.path("/" + verb))
        if reply is None:
            box.status.perhaps(after)
        elif box.status.is_surely(*allowed):
            self.expect(reply, 200, f"{verb} {box.name}, {before}")
            box.status.told(after)
            if reply.json["status"] != after:
                raise Broken(f"{verb} left {box.name} {reply.json['status']}")
        else:
            self.expect(reply, 404 if box.status.is_surely(GONE) else 409, f"{verb} {box.name}, {before}")

    def stop(self):
        self.change("stop", ("running", "paused", "stopped"), "stopped")

    def resume(self):
        self.change("resume", ("running", "paused", "stopped"), "running")

    def pause(self):
        self.change("pause", ("running", "paused"), "paused")

    def patch(self):
        box = self.some_box()
        if box is None:
            return
        version, memory = str(self.count), self.random.choice([256, 320, 400])
        body = {"metadata": {"version": version}, "resources": {"memoryMB": memory}}
        reply = self.ask("PATCH", box.path(), body)
        if reply is None:
            box.version.perhaps(version)
            box.memory.perhaps(memory)
            return
        self.expect(reply, 404 if box.status.is_surely(GONE) else 200, f"patch {box.name}")
        if reply.status == 200:
            box.version.told(version)
            box.memory.told(memory)

    def delete(self):
        box = self.some_box()
        if box is None:
            return
        reply = self.ask("DELETE", box.path())
        if reply is None:
            box.status.perhaps(GONE)
            return
        self.expect(reply, 404 if box.status.is_surely(GONE) else 200, f"delete {box.name}")
        if reply.status == 200:
            self.deleted.add(box.id)
        box.status.told(GONE)
        if self.random.random() < 0.8:  # some are kept to be asked for again
            del self.boxes[box.name]

    def list(self):
        reply = self.ask("GET", "/v1/sandboxes")
        if reply is not None:
            self.expect(reply, 200, "list")
            self.check_list(reply.json["sandboxes"])

    def check_list(self, rows):
        found = {row["name"]: row for row in rows if row.get("name", "").startswith(self.prefix + "-")}
        for name, row in found.items():
            if name not in self.boxes:
                raise Broken(f"{name} was deleted, and is back")
            self.boxes[name].status.check(row["status"], name)
        for name, box in self.boxes.items():
            if name not in found:
                box.status.check(GONE, name)

    # Secrets and keys.

    def set_secret(self):
        name = f"{self.prefix}_{self.random.randrange(4)}"
        believed = self.secrets.setdefault(name, Belief(False))
        reply = self.ask("PUT", f"/v1/secrets/{name}", {"value": "value"})
        if reply is None:
            believed.perhaps(True)
            return
        self.expect(reply, 200, f"set {name}")
        believed.told(True)

    def delete_secret(self):
        if not self.secrets:
            return
        name = self.random.choice(list(self.secrets))
        reply = self.ask("DELETE", f"/v1/secrets/{name}")
        if reply is None:
            self.secrets[name].perhaps(False)
            return
        self.secrets[name].check(reply.status == 200, f"whether there is a secret {name}")
        self.secrets[name].told(False)

    def create_key(self):
        name = f"{self.prefix}-{self.count}"
        reply = self.ask("POST", "/v1/keys", {"name": name, "tenant": self.TENANT})
        if reply is None:
            self.keys[name] = (Belief(False, True), None)
            return
        self.expect(reply, 201, f"key {name}")
        self.keys[name] = (Belief(True), reply.json)

    def delete_key(self):
        known = [name for name, (_, key) in self.keys.items() if key]
        if not known:
            return
        name = self.random.choice(known)
        believed, key = self.keys[name]
        reply = self.ask("DELETE", f"/v1/keys/{key['id']}")
        if reply is None:
            believed.perhaps(False)
            return
        believed.check(reply.status == 200, f"whether there is a key {name}")
        believed.told(False)

    def events(self):
        reply = self.ask("GET", "/v1/events?follow=false")
        if reply is not None:
            self.expect(reply, 200, "events")

    # The end, when the server lives.

    def verify(self):
        self.list()
        for box in list(self.boxes.values()):
            if not self.observe(box):
                raise Broken(f"no answer about {box.name}")
            if not box.status.is_surely(GONE):
                self.verify_box(box)
        self.verify_secrets()
        self.verify_keys()

    def verify_box(self, box):
        self.change_box(box, "resume", ("running", "paused", "stopped"), "running")
        self.execute_in(box)
        for path in box.files:
            if not self.read_file(box, path):
                raise Broken(f"no answer about {path} of {box.name}")

    def execute_in(self, box):
        body = {"executable": "/bin/sh", "args": ["-c", 'echo "$MARK"; cat /workspace/lines 2>/dev/null | wc -l']}
        reply = self.runtime(box, "POST", "/terminals/commands", body)
        mark, lines = reply.json["result"]["stdout"].splitlines()
        if mark != box.env:
            raise Broken(f"the environment of {box.name} has MARK={mark!r}, not {box.env!r}")
        if not box.lines <= int(lines) <= box.lines + box.lines_perhaps:
            raise Broken(f"{box.name}: {lines} lines of {box.lines} commands, and perhaps {box.lines_perhaps} more")

    def verify_secrets(self):
        rows = {row["name"] for row in self.ask("GET", "/v1/secrets").json["secrets"]}
        for name, believed in self.secrets.items():
            believed.check(name in rows, f"whether there is a secret {name}")
        unknown = {name for name in rows if name.startswith(self.prefix + "_")} - set(self.secrets)
        if unknown:
            raise Broken(f"secrets from nowhere: {unknown}")

    def verify_keys(self):
        rows = [row["name"] for row in self.ask("GET", "/v1/keys").json["keys"]]
        for name, (believed, key) in self.keys.items():
            believed.check(name in rows, f"whether there is a key {name}")
            if rows.count(name) > 1:
                raise Broken(f"the key {name} is there twice")
            if key:
                reply = self.ask("GET", "/v1/whoami", headers={"Authorization": f"Bearer {key['key']}"})
                self.expect(reply, 200 if name in rows else 401, f"the key {name}")
        unknown = {name for name in rows if name.startswith(self.prefix + "-")} - set(self.keys)
        if unknown:
            raise Broken(f"keys from nowhere: {unknown}")

    def forget(self):
        """Deletes its secrets and keys."""
        for name in self.secrets:
            self.ask("DELETE", f"/v1/secrets/{name}")
        for row in self.ask("GET", "/v1/keys").json["keys"]:
            if row["name"] in self.keys:
                self.ask("DELETE", f"/v1/keys/{row['id']}")
