"""What the integration tests share: a server of their own, and a count of what it leaves behind.

ATOLL_BIN               the atoll program
ATOLL_TEST_TEMPLATE     a data directory with the template `base` imported (import_template.py makes it)
"""

import atexit
import contextlib
import json
import os
import pathlib
import re
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path.insert(0, str(TESTS / "attack"))
sys.dont_write_bytecode = True

import product  # noqa: E402
from product import http, unique, wait_until  # noqa: E402, F401

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
BIN = os.environ.get("ATOLL_BIN") or shutil.which("atoll") or ""
TEMPLATE = pathlib.Path(os.environ.get("ATOLL_TEST_TEMPLATE", "/nonexistent"))
RESERVE = 2
POOL = 2
product.BIN = BIN


def cli(*arguments, **options):
    return product.cli(*arguments, **options)


def raw_cli(*arguments, timeout=60, **options):
    """The CLI with its output as bytes; never raises for an exit code."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [BIN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
        check=False, **options,
    )  # fmt: skip


def start_cli(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([BIN, *arguments], **options)


def read_text(path):
    """Empty where it has gone."""
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""


def rss_bytes(pid):
    found = re.search(r"VmRSS:\s+(\d+) kB", read_text(f"/proc/{pid}/status"))
    return int(found[1]) * 1024 if found else 0


def alive(pid):
    state = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"


def take_layers(target):
    """The template's layers, in a directory of their own. Linking and unlinking ten thousand files takes seconds, so a
    server that ends leaves its copy in `spare-*` for the next one."""
    for spare in TEMPLATE.glob("spare-*"):
        with contextlib.suppress(OSError):  # another one took it, or it is on another file system
            return os.rename(spare, target)
    return link_tree(TEMPLATE / "layers", target)


def give_layers(source):
    with contextlib.suppress(OSError):
        os.rename(source, TEMPLATE / f"spare-{secrets.token_hex(6)}")


def link_tree(source, target):
    """A copy of a directory that shares its files, where one file system holds both."""
    done = subprocess.run(["cp", "-al", source, target], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


class AtollServer:
    """`atoll serve` on directories of its own. `use()` makes it the one that `cli` and `http` talk to."""

    current = None

    def __init__(self, *options, listen="none", on_exit="stop", reserve=RESERVE, pool=POOL):
        self.options, self.listen, self.on_exit = options, listen, on_exit
        self.reserve, self.pool = reserve, pool
        self.cgroup = f"atoll-it-{os.getpid()}-{secrets.token_hex(3)}"
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="atoll-it-", dir="/var/tmp"))
        self.home.chmod(0o755)
        self.data = self.home / "data"
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="ai-", dir="/tmp"))  # short: it holds sockets
        self.run.chmod(0o755)
        self.socket = str(self.run / "atoll.sock")
        self.log = self.home / "log"
        self.process = None
        self.data.mkdir(mode=0o755)
        take_layers(self.data / "layers")
        shutil.copytree(TEMPLATE / "templates", self.data / "templates")
        atexit.register(self.destroy)

    # Life.

    def spawn(self, *more):
        """Starts the process without waiting; answers the read end of its ready descriptor."""
        ready, write = os.pipe()
        command = [
            BIN, "serve", "--data-dir", str(self.data), "--run-dir", str(self.run), "--cgroup", self.cgroup,
            "--listen", self.listen, "--on-exit", self.on_exit, "--reserve", str(self.reserve),
            "--pool", str(self.pool), "--ready-fd", str(write), *self.options, *more,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[write],
                start_new_session=True,
            )  # fmt: skip
        os.close(write)
        return ready

    def start(self, *more, seconds=30):
        ready = self.spawn(*more)
        try:
            readable, _, _ = select.select([ready], [], [], seconds)
            if not readable or os.read(ready, 64) != b"ready\n":
                code = self.process.poll()
                raise AssertionError(f"the server did not get ready (exit code {code}):\n{self.log_tail()}")
        finally:
            os.close(ready)
        self.use()
        return self

    def use(self):
        AtollServer.current = self
        product.SOCKET = self.socket
        os.environ["ATOLL_SOCKET"] = self.socket
        os.environ.pop("ATOLL_URL", None)

    def stop(self, seconds=30):
        """SIGTERM; answers the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server did not end within {seconds} s:\n{self.log_tail()}") from None

    def close(self):
        """The proper end: exit code 0 and nothing left anywhere."""
        try:
            if self.process is not None and self.process.poll() is None:
                self.delete_all()
                # To stop in the middle of a refill is a test of its own (test_recovery).
                with contextlib.suppress(AssertionError, OSError):
                    wait_until(self.settled, 10, "the pool is full")
                code = self.stop()
                if code != 0:
                    raise AssertionError(f"the server ended with {code}:\n{self.log_tail()}")
            LeakCounter(self).assert_empty()
        finally:
            self.destroy()

    def destroy(self):
        """Whatever is left, by force. Ends only what is in our own control group."""
        atexit.unregister(self.destroy)
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self.kill_all(), 10, "all ended")
            wait_until(lambda: not self.remove_cgroups(), 5, "all groups are gone")
        give_layers(self.data / "layers")
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def remove_cgroups(self):
        for folder in sorted(self.cgroups(), key=len, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return self.cgroups()

    def kill_all(self):
        """Everything of ours, by pid; answers what there was."""
        pids = set(self.sandbox_pids() + self.family_pids())
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return pids

    def log_tail(self, lines=40):
        return "\n".join(read_text(self.log).splitlines()[-lines:])

    # What it consists of.

    def children(self):
        pid = self.process.pid
        found = {}
        for child in read_text(f"/proc/{pid}/task/{pid}/children").split():
            found[read_text(f"/proc/{child}/comm").strip()] = int(child)
        return found

    def server_pid(self):
        return wait_until(lambda: self.children().get("atoll-server"), 15, "there is a server process")

    def launcher_pid(self):
        return wait_until(lambda: self.children().get("atoll-launcher"), 15, "there is a launcher process")

    def sandbox_pids(self):
        """All processes in our control group, that is in all sandboxes and slots."""
        mark = re.compile(rf"/{re.escape(self.cgroup)}(/|$)", re.MULTILINE)
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            if mark.search(read_text(folder / "cgroup")) and alive(folder.name):
                found.append(int(folder.name))
        return found

    def family_pids(self):
        """Supervisor, server, launcher and their helpers: they have our run directory as an argument."""
        mark = b"\0" + str(self.run).encode() + b"\0"
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "cmdline").read_bytes() and alive(folder.name):
                    found.append(int(folder.name))
        return found

    def cgroups(self):
        found = []
        for top in pathlib.Path("/sys/fs/cgroup").glob("*/" + self.cgroup):
            found += [folder for folder, _, _ in os.walk(top)]
        top = pathlib.Path("/sys/fs/cgroup") / self.cgroup
        return found + [folder for folder, _, _ in os.walk(top)]

    def agent_pid(self, sandbox_id):
        """The host's pid of a sandbox's PID 1: sandboxes have their id as their host name."""
        for pid in self.sandbox_pids():
            line = re.search(r"^NSpid:.*\t(\d+)$", read_text(f"/proc/{pid}/status"), re.MULTILINE)
            if not line or line[1] != "1":
                continue
            done = subprocess.run(
                ["nsenter", "--target", str(pid), "--uts", "hostname"], capture_output=True, text=True, check=False
            )
            if done.stdout.strip() == sandbox_id:
                return pid
        raise AssertionError(f"no agent of {sandbox_id}")

    # What it holds.

    def healthy(self):
        try:
            return http("GET", "/health", timeout=5).status == 200
        except (OSError, AssertionError):
            return False

    def wait_healthy(self, seconds=20):
        wait_until(self.healthy, seconds, "the server answers")

    def list(self):
        return http("GET", "/v1/sandboxes").json["sandboxes"]

    def delete_all(self):
        for row in self.list():
            http("DELETE", f"/v1/sandboxes/{row['id']}")

    def pooled(self):
        return http("GET", "/v1/system").json["pool"].get("base", 0)

    def settled(self):
        """Whether the reserve and the pool are full, and nothing else is under way. A pool that ran empty once keeps
        more from then on."""
        live = sum(row["status"] in ("running", "paused") for row in self.list())
        sockets = len(os.listdir(self.run / "agents"))
        pooled = self.pooled()
        return pooled >= self.pool and sockets == live + self.reserve + pooled

    def kill(self, which):
        """kill -9 of `server`, `launcher` or `supervisor`; waits until its successor answers."""
        if which == "supervisor":
            children = list(self.children().values())
            self.process.kill()
            self.process.wait()
            wait_until(lambda: not any(map(alive, children)), 15, "server and launcher have ended")
            return
        old = self.children()
        os.kill(old["atoll-" + which], signal.SIGKILL)
        wait_until(lambda: not any(map(alive, old.values())), 15, "both processes have ended")
        wait_until(lambda: {"atoll-server", "atoll-launcher"} <= set(self.children()), 15, "both are back")
        self.wait_healthy()


class LeakCounter:
    """Everything a server could leave behind, counted; fails where it has grown."""

    # What one more sandbox in the pool accounts for.
    POOLED = {
        "cgroups": 5, "processes": 1, "sandboxes": 1, "agents": 1, "namespaces": 8, "descriptors of atoll-server": 1,
        "descriptors of atoll-launcher": 1,
    }  # fmt: skip

    def __init__(self, server):
        self.server = server
        self.before = None
        self.pooled = 0

    def count(self):
        server = self.server
        found = {
            "mounts": self.mounts(),
            "cgroups": server.cgroups(),
            "processes": server.sandbox_pids(),
            "helpers": [f"{pid} {read_text(f'/proc/{pid}/comm').strip()}" for pid in server.family_pids()],
            "loop devices": self.loop_devices(),
            "sandboxes": self.files(server.data / "sandboxes"),
            "trash": self.files(server.data / "trash"),
            "agents": self.files(server.run / "agents"),
        }
        found["namespaces"] = self.namespaces(found["processes"])
        if server.process is not None and server.process.poll() is None:
            for name, pid in server.children().items():
                found[f"descriptors of {name}"] = self.descriptors(pid)
            launcher = server.children().get("atoll-launcher")
            found["mounts of the launcher"] = read_text(f"/proc/{launcher}/mountinfo").splitlines()
        return found

    def mounts(self):
        ours = (str(self.server.home), str(self.server.run))
        lines = read_text("/proc/self/mountinfo").splitlines()
        return [line for line in lines if any(folder in line for folder in ours)]

    def loop_devices(self):
        found = []
        for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
            text = read_text(path).strip()
            if str(self.server.data) in text or text.startswith("/sandboxes/"):
                found.append(f"{path} {text}")
        return found

    def namespaces(self, pids):
        found = set()
        for pid in pids:
            for link in pathlib.Path(f"/proc/{pid}/ns").glob("*"):
                with contextlib.suppress(OSError):
                    found.add(os.readlink(link))
        return sorted(found)

    def descriptors(self, pid):
        found = []
        for link in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                found.append(f"{link.name} {os.readlink(link)}")
        return found

    def files(self, folder):
        try:
            return sorted(os.listdir(folder))
        except OSError:
            return []

    def start(self, seconds=20):
        wait_until(self.server.settled, seconds, "reserve and pool are full")
        self.pooled, self.before = self.server.pooled(), self.count()
        return self

    def grown(self):
        """What there is more of than before, as text; the reserve must be full for a fair count."""
        if not self.server.settled():
            return "reserve and pool are not full again"
        more = max(0, self.server.pooled() - self.pooled)
        after = self.count()
        lines = []
        for what, items in after.items():
            before = self.before.get(what, [])
            limit = len(before) + more * self.POOLED.get(what, 0)
            if len(items) > limit:
                new = [str(item) for item in items if item not in before]
                lines.append(f"{what}: {limit} -> {len(items)}: {', '.join(new[:8])}")
        return "\n".join(lines)

    def check(self, seconds=15):
        """All sandboxes have been deleted: nothing may have grown. Clean-up is asynchronous."""
        last = [""]

        def clean():
            last[0] = self.grown()
            return not last[0]

        try:
            wait_until(clean, seconds, "nothing has grown")
        except AssertionError:
            raise AssertionError(f"leaked, after {seconds} s:\n{last[0]}") from None

    def assert_no_processes(self, seconds=5):
        """For a server that has ended, whatever sandboxes it knows: nothing runs."""
        keys = ("processes", "helpers", "cgroups")
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not any(self.count()[key] for key in keys), seconds, "all ended")
        left = {key: self.count()[key] for key in keys if self.count()[key]}
        if left:
            raise AssertionError(f"left behind, {seconds} s after the server's end: {left}")

    def assert_empty(self, seconds=15):
        """For a server that has ended with all sandboxes deleted: nothing at all is left. But for the trash, which has
        a test of its own: the next start goes on with it."""
        last = [{}]

        def empty():
            last[0] = {what: items for what, items in self.count().items() if items and what != "trash"}
            return not last[0]

        try:
            wait_until(empty, seconds, "nothing is left")
        except AssertionError:
            raise AssertionError(f"left behind, {seconds} s after the server's end: {last[0]}") from None


class AtollCase(unittest.TestCase):
    """A server for the class; everything is deleted and counted after each test."""

    server_options = {}
    broken = False

    @classmethod
    def setUpClass(cls):
        cls.broken = False
        cls.server = AtollServer(**cls.server_options)
        cls.addClassCleanup(lambda: cls.server.destroy() if cls.broken else cls.server.close())
        cls.server.start()

    def setUp(self):
        if self.broken:  # by the test before: this one shall not pay for it
            self.server.destroy()
            type(self).server = AtollServer(**self.server_options).start()
            type(self).broken = False
        self.server.use()
        self.leaks = LeakCounter(self.server).start()
        self.addCleanup(self.delete_and_count)  # the first: so it runs last

    def delete_and_count(self):
        type(self).broken = True
        self.server.use()
        self.server.delete_all()
        self.leaks.check()
        type(self).broken = False

    def create(self, **body):
        reply = http("POST", "/v1/sandboxes", body)
        self.assertEqual(reply.status, 201, reply)
        return Box(reply.json["id"])

    def assert_error(self, reply, status, code, *fields):
        self.assertEqual(reply.status, status, reply)
        body = reply.json
        self.assertEqual(body["code"], code, body)
        self.assertEqual(body["error"]["code"], code)
        self.assertFalse(body["success"])
        self.assertEqual(body["error"]["message"], body["message"])
        self.assertTrue(body["message"])
        for field in fields:
            self.assertIn(field, body["error"].get("fields", []))

    def assert_fails(self, done, code=None):
        """A CLI error: one line on standard error, nothing on standard output."""
        error = done.stderr if isinstance(done.stderr, str) else done.stderr.decode()
        self.assertNotEqual(done.returncode, 0)
        if code is not None:
            self.assertEqual(done.returncode, code, error)
        self.assertEqual(len(error.splitlines()), 1, f"not one line: {error!r}")
        self.assertTrue(error.startswith("atoll: "), error)
        self.assertFalse(done.stdout)
        return error


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


def in_parallel(jobs):
    """Runs functions at the same time; answers their results in order, exceptions included."""
    results = [None] * len(jobs)

    def one(index, job):
        try:
            results[index] = job()
        except Exception as error:  # noqa: BLE001
            results[index] = error

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


# Running.


class Result(unittest.TextTestResult):
    """Says how long each test took, and what the server said where one failed."""

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def stopTest(self, test):
        self.stream.writeln(f"    {time.monotonic() - self.begun:.2f} s")
        super().stopTest(test)

    def show_log(self):
        if AtollServer.current is not None:
            self.stream.writeln("---- the server's log\n" + AtollServer.current.log_tail() + "\n----")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.show_log()

    def addError(self, test, err):
        super().addError(test, err)
        self.show_log()


def expected_skips():
    lines = (TESTS / "expected_skips.txt").read_text().splitlines()
    return {line.partition("#")[0].strip() for line in lines} - {""}


def main():
    if os.geteuid() != 0:
        print("skipped: the integration tests make real sandboxes, which needs root")
        sys.exit(SKIPPED)
    if not BIN or not (TEMPLATE / "templates/base.json").exists():
        print(f"the program (ATOLL_BIN={BIN}) or the template (ATOLL_TEST_TEMPLATE={TEMPLATE}) is missing")
        sys.exit(1)
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result)
    result = unittest.main(module="__main__", testRunner=runner, exit=False).result
    unexpected = 0
    for test, reason in result.skipped:
        name = f"{pathlib.Path(sys.argv[0]).stem}.{test.id().partition('.')[2]}"
        allowed = name in expected_skips()
        unexpected += not allowed
        print(f"skipped{'' if allowed else ', but not in expected_skips.txt'}: {name}: {reason}")
    sys.exit(0 if result.wasSuccessful() and not unexpected else 1)
