#!/usr/bin/env python3
"""A product that makes every classic mistake: the control for the cases D, E and F.

Speaks enough of the CLI and of the HTTP API for run_attacks.py to attack it. Sandboxes are
bubblewrap jails without limits, all with the same user id and the host's network; the file API
resolves paths on the host's side; removal forgets instead of killing. All of it runs as an
unprivileged user, so that what gets through hurts nobody.

WEAK_STATE is its directory. Verbs: create, exec, rm, and `serve <socket>`; cases_controls.py
prepares, serves, and kills every sandbox at the end.
"""

import base64
import ctypes
import http.server
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socketserver
import subprocess
import sys
import tarfile
import urllib.parse

import controls

STATE = pathlib.Path(os.environ["WEAK_STATE"])
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
MISTAKE_LIMIT = 40 << 20  # even a mistake reads no more than this


def records():
    return [json.loads(file.read_text()) for file in STATE.glob("*.json")]


def find(name):
    return next((row for row in records() if name in (row["name"], row["id"])), None)


def create(name):
    reader, writer = os.pipe()
    jail = [word for word in controls.BWRAP if word != "--die-with-parent"]
    mounts = ["--bind", str(STATE / "etc"), "/etc", "--bind", str(STATE), str(STATE),
              "--perms", "1777", "--dir", "/var/tmp", "--dir", "/workspace"]  # fmt: skip
    subprocess.Popen(
        [*jail, "--share-net", *mounts, "--info-fd", str(writer), "sleep", "infinity"],
        pass_fds=[writer], start_new_session=True, env=controls.ENVIRONMENT,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writer)
    pid = json.loads(os.fdopen(reader).read())["child-pid"]
    row = {"id": f"sandbox-{secrets.token_hex(6)}", "name": name, "pid": pid}
    (STATE / f"{row['id']}.json").write_text(json.dumps(row))
    with open(STATE / "pids", "a", encoding="utf-8") as file:
        file.write(f"{pid}\n")


def inside(row, *command):
    enter = ["nsenter", "-t", str(row["pid"]), "-U", "-m", "-p", "-i", "-u"]
    enter += ["--preserve-credentials", "env", "-C", "/"]
    return [*(AS_NOBODY if os.getuid() == 0 else []), *enter, *command]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def address_string(self):
        return "unix"

    def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_any(self):
        path = urllib.parse.urlsplit(self.path).path
        if path == "/health":
            return self.answer(200, {"status": "ok"})
        if path == "/v1/sandboxes":
            return self.answer(200, {"sandboxes": records()})
        match = re.match(r"/v1/sandboxes/([^/]+)(?:/runtime(/.*))?$", path)
        row = match and find(match[1])
        if not row:
            return self.answer(404, {})
        if not match[2]:
            return self.answer(200, row)
        try:
            return self.runtime(row, match[2])
        except (OSError, ValueError, TypeError, EOFError, tarfile.TarError) as error:
            return self.answer(500, {"error": str(error)})

    do_GET = do_POST = do_DELETE = handle_any

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    # Mistake: the host resolves a path of the sandbox's, absolute links included.
    def host_path(self, row, path):
        return f"/proc/{row['pid']}/root/{urllib.parse.unquote(path)}"

    def runtime(self, row, route):
        if route == "/terminals/commands":
            return self.command(row, json.loads(self.body()))
        if route == "/files/write":
            return self.write(row)
        if route == "/files/read":
            with open(self.host_path(row, json.loads(self.body())["path"]), "rb") as file:
                content = file.read(MISTAKE_LIMIT)
            return self.answer(200, {"data": {"content": base64.b64encode(content).decode()}})
        if route == "/fs/upload-dir":
            return self.unpack(row)
        for prefix in ("/fs/download", "/fs/list", "/fs/stat", "/fs"):
            if route.startswith(prefix + "/"):
                return self.file(row, prefix, route.removeprefix(prefix))
        return self.answer(404, {})

    # Mistake: a timeout ends the wait, not the processes.
    def command(self, row, request):
        script = inside(row, "bash", "-c", request["command"])
        process = subprocess.Popen(script, stdout=subprocess.PIPE, env=controls.ENVIRONMENT)
        try:
            output = process.communicate(timeout=request.get("timeout", 30000) / 1000)[0]
        except subprocess.TimeoutExpired:
            output = b""
        result = {"exitCode": process.returncode, "stdout": output.decode(), "stderr": ""}
        return self.answer(200, {"result": result})

    # Mistake: truncates before it has the content.
    def write(self, row):
        path = json.loads(re.search(rb'"path": ("[^"]*")', self.rfile.peek(4096))[1])
        with open(self.host_path(row, path), "wb") as file:
            file.write(base64.b64decode(json.loads(self.body())["content"]))
        return self.answer(200, {"success": True})

    # Mistakes: names go into headers as they are, ranges are added up, links are followed.
    def file(self, row, prefix, path):
        path = self.host_path(row, path)
        if prefix == "/fs/stat":
            return self.answer(200, {"data": {"size": os.stat(path).st_size}})
        if prefix == "/fs/list":
            return self.answer(200, {"data": {"entries": [n.encode().decode() for n in os.listdir(path)]}})
        if prefix == "/fs":
            if os.path.islink(path):
                path = self.host_path(row, os.readlink(path))
            os.unlink(path)
            return self.answer(200, {})
        with open(path, "rb") as file:
            content = file.read(MISTAKE_LIMIT)
        content *= (self.headers.get("Range") or "").count(",") + 1
        name = os.path.basename(path)
        return self.answer(200, content, [("Content-Disposition", f'attachment; filename="{name}"')])

    # Mistake: believes every entry.
    def unpack(self, row):
        parts = self.body().split(b"\r\n\r\n", 2)
        folder = parts[1].split(b"\r\n")[0].decode()
        content = parts[2].rsplit(b"\r\n--", 1)[0]
        archive = STATE / secrets.token_hex(6)
        archive.write_bytes(content)
        with tarfile.open(archive, "r:gz") as opened:
            opened.extractall(self.host_path(row, folder))
        return self.answer(200, {})


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


def serve(path):
    with Server(path, Handler) as server:
        server.serve_forever()


def prepare():
    """As root, before `serve`: a directory for nobody, with an /etc that all sandboxes share."""
    shutil.copytree("/etc", STATE / "etc", symlinks=True, ignore_dangling_symlinks=True)
    subprocess.run(["chown", "-R", "65534:65534", STATE], check=True)
    (STATE / "pids").touch()


def kill_all():
    for pid in (STATE / "pids").read_text(encoding="utf-8").split():
        try:
            if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8") == "bwrap\n":
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


def main():
    verb, *arguments = sys.argv[1:]
    if verb == "create":
        return create(arguments[arguments.index("--name") + 1])
    if verb == "serve":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # ends with the test
        return serve(arguments[0])
    row = find(arguments[0])
    if row is None:
        return "no such sandbox"
    if verb == "rm":  # mistake: forgets it
        (STATE / f"{row['id']}.json").unlink(missing_ok=True)
        return 0
    command = inside(row, *arguments[arguments.index("--") + 1 :])
    os.execvpe(command[0], command, controls.ENVIRONMENT)


if __name__ == "__main__":
    sys.exit(main())
