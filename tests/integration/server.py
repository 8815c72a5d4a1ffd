"""A server of a test's own."""

import atexit
import contextlib
import os
import pathlib
import re
import secrets
import select
import shutil
import signal
import subprocess
import tempfile

import product
from host import alive, children_of, read_text
from layers import give_layers, take_layers
from leaks import LeakCounter
from product import http, wait_until
from program import BIN, TEMPLATE

RESERVE = 2
POOL = 2


class AtollServer:
    """`atoll serve` on directories of its own. `use()` makes it the one that `cli` and `http` talk to."""

    current = None

    def __init__(self, *options, listen="none", on_exit="stop", reserve=RESERVE, pool=POOL, netns=None):
        self.options, self.listen, self.on_exit = options, listen, on_exit
        self.reserve, self.pool = reserve, pool
        self.netns = netns  # the name of a network namespace to run in
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
        if self.netns:
            command = ["nsenter", f"--net=/run/netns/{self.netns}", "--", *command]
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
                code = None
                with contextlib.suppress(subprocess.TimeoutExpired):  # it hung up, so it is ending
                    code = self.process.wait(10 if readable else 0)
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
            self.assert_sane()
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

    def assert_sane(self):
        """No sanitizer has anything to say about our processes: the supervisor would hide their deaths."""
        found = re.search(r"^.*(Sanitizer|runtime error:).*$(\n.*){0,40}", read_text(self.log), re.MULTILINE)
        if found:
            raise AssertionError(f"a sanitizer's report:\n{found[0]}")

    def log_tail(self, lines=40):
        return "\n".join(read_text(self.log).splitlines()[-lines:])

    # What it consists of.

    def children(self):
        return children_of(self.process.pid)

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
        for row in http("GET", "/v1/snapshots").json["snapshots"]:
            http("DELETE", f"/v1/snapshots/{row['snapshotId']}")
        for row in http("GET", "/v1/checkpoints").json["checkpoints"]:
            http("DELETE", f"/v1/checkpoints/{row['checkpointId']}")

    def pools(self):
        return http("GET", "/v1/system").json["pool"]

    def pooled(self):
        return self.pools().get("base", 0)

    def settled(self):
        """Whether the reserve and the pool are full, and nothing else is under way. A pool that ran empty once keeps
        more from then on."""
        live = sum(row["status"] in ("running", "paused") for row in self.list())
        sockets = len(os.listdir(self.run / "agents"))
        pools = self.pools()
        full = pools.get("base", 0) >= self.pool and all(size == 0 or size >= self.pool for size in pools.values())
        return full and sockets == live + self.reserve + sum(pools.values()) and not self.building()

    def building(self):
        """Whether a slot is being built: it has its socket long before it is ready."""
        builders = children_of(self.children().get("atoll-launcher", 0))
        return "atoll-builder" in builders

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
