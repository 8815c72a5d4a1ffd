"""A registry of a test's own: Debian's docker-registry on a port of this host, and what can stand in its way."""

import base64
import contextlib
import crypt
import http.client
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading

import images
from product import wait_until

CACHED = pathlib.Path(os.environ.get("ATOLL_CACHE", "/var/cache/atoll")) / "registry/usr/bin/docker-registry"
PROGRAM = shutil.which("docker-registry") or (str(CACHED) if CACHED.exists() else None)
USER, PASSWORD = "alice", "secret"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Registry:
    def __init__(self, login=False):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="atoll-registry-", dir="/var/tmp"))
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.headers = {}
        lines = [
            "version: 0.1", "log: {level: error}",
            f"storage: {{filesystem: {{rootdirectory: {self.home}/data}}}}",
            f"http: {{addr: '{self.host}'}}",
        ]  # fmt: skip
        if login:
            (self.home / "users").write_text(f"{USER}:{crypt.crypt(PASSWORD, '$2b$05$abcdefghijklmnopqrstuu')}\n")
            lines.append(f"auth: {{htpasswd: {{realm: test, path: {self.home}/users}}}}")
            self.headers = {"Authorization": "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}
        (self.home / "config.yml").write_text("\n".join(lines) + "\n")
        with open(self.home / "log", "wb") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "serve", self.home / "config.yml"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(self.answers, 20, "the registry answers")

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError("the registry has ended:\n" + (self.home / "log").read_text())
        with contextlib.suppress(OSError):
            return self.request("GET", "/v2/").status == 200
        return False

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def request(self, method, target, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, target, body, {**self.headers, **headers})
            response = connection.getresponse()
            response.body = response.read()
            return response

    def push_blob(self, repository, data):
        started = self.request("POST", f"/v2/{repository}/blobs/uploads/")
        assert started.status == 202, (started.status, started.body)
        target = started.headers["Location"].partition(self.host)[2] or started.headers["Location"]
        target += ("&" if "?" in target else "?") + "digest=" + images.digest(data)
        done = self.request("PUT", target, data, **{"Content-Type": "application/octet-stream"})
        assert done.status == 201, (done.status, done.body)

    def push_manifest(self, repository, tag, text, media_type):
        done = self.request("PUT", f"/v2/{repository}/manifests/{tag}", text, **{"Content-Type": media_type})
        assert done.status == 201, (done.status, done.body)

    def push(self, repository, tag, image):
        """Answers what to import."""
        for data in image.blobs():
            self.push_blob(repository, data)
        self.push_manifest(repository, tag, image.manifest, images.MANIFEST)
        return f"{self.host}/{repository}:{tag}"


class Front:
    """Stands before a registry and makes it difficult: asks for tokens, redirects blobs, cuts bodies short or changes
    them. `seen` holds the requests as (path, Authorization, Range)."""

    def __init__(self, registry, token=None, cut=None, redirect=False, tamper=None):
        self.registry, self.token, self.cut, self.redirect, self.tamper = registry, token, cut, redirect, tamper
        self.seen = []
        self.busy = self.busiest = 0
        self.lock = threading.Lock()
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                front.handle(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients that leave are part of the tests
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def handle(self, request):
        with self.lock:
            self.seen.append((request.path, request.headers.get("Authorization"), request.headers.get("Range")))
            self.busy += 1
            self.busiest = max(self.busiest, self.busy)
        try:
            self.reply(request)
        finally:
            with self.lock:
                self.busy -= 1

    def reply(self, request):
        if request.path.startswith("/token"):
            return self.send(request, 200, b'{"token":"' + self.token.encode() + b'"}')
        if self.token and request.headers.get("Authorization") != "Bearer " + self.token:
            ask = f'Bearer realm="http://{self.host}/token",service="test",scope="repository:x:pull"'
            return self.send(request, 401, b"{}", {"WWW-Authenticate": ask})
        if self.redirect and "/blobs/" in request.path:
            return self.send(request, 307, b"", {"Location": f"http://{self.registry.host}{request.path}"})
        sent = {key: request.headers[key] for key in ("Accept", "Range") if key in request.headers}
        found = self.registry.request("GET", request.path, **sent)
        kept = {key: found.headers[key] for key in ("Content-Range", "Docker-Content-Digest", "Content-Type") if key in found.headers}
        body = found.body
        if self.tamper and "/blobs/" in request.path:
            body = self.tamper(body)
        if self.cut and "/blobs/" in request.path and len(body) > self.cut:
            return self.send(request, found.status, body, kept, upto=self.cut)
        self.send(request, found.status, body, kept)

    @staticmethod
    def send(request, status, body, headers=None, upto=None):
        request.send_response(status)
        for key, value in (headers or {}).items():
            request.send_header(key, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[:upto])
        request.wfile.flush()
        if upto is not None:
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
