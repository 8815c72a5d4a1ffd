"""The running product, seen as a user sees it: the CLI, and the HTTP API on its Unix socket.

ATOLL_BIN      the atoll program (default: atoll on PATH)
ATOLL_SOCKET   the server's Unix socket; the tests that need the product skip without it
ATOLL_API_KEY  sent as a bearer token where the server wants one
ATOLL_SANITIZE the sanitizers that the program was built with, if any
"""

import base64
import http.client
import json
import os
import pathlib
import secrets
import socket
import subprocess
import threading
import time
import urllib.parse

import controls

BIN = os.environ.get("ATOLL_BIN", "atoll")
SOCKET = os.environ.get("ATOLL_SOCKET", "")
API_KEY = os.environ.get("ATOLL_API_KEY", "")
SANITIZERS = os.environ.get("ATOLL_SANITIZE", "")
# How much larger the program is than what it holds: beside every byte the thread sanitizer keeps two and a half of its
# own, and what has once been in use; the address sanitizer keeps what was freed.
MEMORY_FACTOR = {"": 1, "thread": 4}.get(SANITIZERS, 8)
TIME_FACTOR = 5 if SANITIZERS else 1
SMALL = ["--memory", "256m", "--pids", "128", "--disk", "256m"]


def unique(prefix):
    return f"{prefix}-{secrets.token_hex(6)}"


def wait_until(condition, seconds, what):
    """Asks again until the condition holds; fails at the deadline."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        pause.wait(0.02)


def cli(*arguments, timeout=60, check=True, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    try:
        done = subprocess.run(
            [BIN, *arguments], capture_output=True, text=True, errors="replace", timeout=timeout,
            check=False, **options,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"atoll {arguments[0]} did not end within {timeout} s") from late
    if check and done.returncode != 0:
        raise AssertionError(f"atoll {arguments[0]} gave {done.returncode}: {done.stderr}")
    return done


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, timeout):
        super().__init__("localhost", timeout=timeout)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)  # without a timeout it waits where the queue is full
        self.sock.settimeout(self.timeout)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"HTTP {self.status} {self.body[:200]!r}"


def http(method, path, body=None, headers=None, timeout=20, limit=64 << 20):
    """One request on a fresh connection. `body` is bytes, or anything that becomes JSON."""
    headers = dict(headers or {})
    if API_KEY:
        headers["Authorization"] = f"Bearer {API_KEY}"
    if body is not None and not isinstance(body, bytes):
        headers["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    connection = UnixConnection(timeout)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Reply(response.status, response.headers, response.read(limit))
    except TimeoutError as late:
        raise AssertionError(f"{method} {path[:80]}: no answer within {timeout} s") from late
    finally:
        connection.close()


def multipart(fields, name, filename, content):
    """The body and headers of a form with one file."""
    boundary = secrets.token_hex(16)
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in fields.items()
    ]
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"'
    parts += [f"{head}\r\n\r\n".encode(), content, f"\r\n--{boundary}--\r\n".encode()]
    return b"".join(parts), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


class Sandbox:
    """A sandbox of its own for a test; removed when the `with` block ends."""

    def __init__(self, profile="dev", *options):
        self.name = unique("attack")
        cli("create", "--profile", profile, "--name", self.name, *options)
        self.profile = profile
        self._id = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        cli("rm", self.name, check=False)

    @property
    def id(self):
        if self._id is None:
            found = http("GET", "/v1/sandboxes").json
            rows = found["sandboxes"] if isinstance(found, dict) else found
            self._id = next(row["id"] for row in rows if self.name in (row.get("name"), row["id"]))
        return self._id

    def remove(self, timeout=60):
        return cli("rm", self.name, timeout=timeout)

    def run(self, *command, check=True, timeout=60):
        return cli("exec", self.name, "--", *command, check=check, timeout=timeout)

    def sh(self, script, *arguments, check=True, timeout=60):
        return self.run("bash", "-c", script, "sh", *arguments, check=check, timeout=timeout)

    def start(self, *command):
        """An exec in flight: a Popen of the CLI."""
        return subprocess.Popen(
            [BIN, "exec", self.name, "--", *command], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def probes(self, *ids, timeout=300):
        script = f"export ATTACK_BUNDLED=1 ATTACK_PROFILE={self.profile}\n{controls.bundle()}"
        return controls.parse(self.run("bash", "-c", script, "probes", *ids, timeout=timeout).stdout)

    def runtime(self, method, path, body=None, **options):
        return http(method, f"/v1/sandboxes/{self.id}/runtime{path}", body, **options)

    def status(self):
        return http("GET", f"/v1/sandboxes/{self.id}").json

    def degraded(self, word):
        """Whether the product admits that it cannot enforce something on this host."""
        return word in json.dumps(self.status().get("isolation", {}).get("degraded", []))

    # The file API.

    def write(self, path, content, **more):
        text = base64.b64encode(content).decode()
        body = {"path": path, "content": text, "encoding": "base64", **more}
        return self.runtime("POST", "/files/write", body)

    def read(self, path, **options):
        return self.runtime("POST", "/files/read", {"path": path, "encoding": "base64"}, **options)

    def read_bytes(self, path):
        return base64.b64decode(self.read(path).json["data"]["content"])

    def download(self, path, **options):
        return self.runtime("GET", "/fs/download" + urllib.parse.quote(path), **options)

    def upload_archive(self, path, archive, timeout=60):
        body, headers = multipart({"path": path}, "archive", "a.tar.gz", archive)
        return self.runtime("POST", "/fs/upload-dir", body, headers=headers, timeout=timeout)


def processes_with(marker):
    """Host pids whose command line holds the marker. Zombies have none left. The CLI's own
    processes (`atoll exec ... marker`) live in our PID namespace and are not counted."""
    ours = os.readlink("/proc/self/ns/pid")
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() not in (folder / "cmdline").read_bytes():
                continue
            if os.readlink(folder / "ns/pid") != ours:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def latency_ms(sandbox, rounds=15):
    """The median time of `true`."""
    times = []
    for _ in range(rounds):
        begin = time.monotonic()
        sandbox.run("true", timeout=30)
        times.append((time.monotonic() - begin) * 1000)
    return sorted(times)[rounds // 2]
