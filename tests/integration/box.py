"""A sandbox, over HTTP."""

import contextlib
import json

import product
from product import http


class Box(product.Sandbox):
    """product.Sandbox over HTTP: by id, and with the process API."""

    def __init__(self, sandbox_id):
        self.name = self._id = sandbox_id
        self.profile = "dev"

    def path(self, tail=""):
        return f"/v1/sandboxes/{self.id}{tail}"

    def info(self):
        return http("GET", self.path()).json

    def delete(self):
        return http("DELETE", self.path())

    def exec(self, *argv, timeout=60, **more):
        """The result object of one command, run as it is."""
        body = {"executable": argv[0], "args": list(argv[1:]), **more}
        reply = self.runtime("POST", "/terminals/commands", body, timeout=timeout)
        if reply.status != 200:
            raise AssertionError(f"exec {argv[0]}: {reply}")
        return reply.json["result"]

    def spawn(self, *argv, **more):
        body = {"executable": argv[0], "args": list(argv[1:]), **more}
        reply = self.runtime("POST", "/process/spawn", body)
        if reply.status != 200:
            raise AssertionError(f"spawn {argv[0]}: {reply}")
        return reply.json["data"]

    def process(self, pid):
        return self.runtime("GET", f"/process/{pid}").json["data"]

    def wait(self, pid, milliseconds=30000):
        reply = self.runtime("GET", f"/process/{pid}/wait?timeoutMs={milliseconds}", timeout=milliseconds / 1000 + 10)
        if reply.status != 200:
            raise AssertionError(f"wait: {reply}")
        body = reply.json
        return body.get("data", body)

    def output(self, pid, stream="stdout", offset=0, follow=False, timeout=60):
        tail = f"?stream={stream}&offset={offset}&follow={str(follow).lower()}"
        reply = self.runtime("GET", f"/process/{pid}/output{tail}", timeout=timeout)
        if reply.status != 200:
            raise AssertionError(f"output: {reply}")
        return reply.body

    @contextlib.contextmanager
    def stream(self, path, timeout=30, **headers):
        """An answer that is read bit by bit: yields the response."""
        connection = product.UnixConnection(timeout)
        try:
            connection.request("GET", self.path("/runtime" + path), headers=headers)
            yield connection.getresponse()
        finally:
            connection.close()


def events(response):
    """The server-sent events of an open stream, as (name, object)."""
    name, data = "message", []
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if not line:
            if data:
                yield name, json.loads("\n".join(data))
            name, data = "message", []
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
