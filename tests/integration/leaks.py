"""A count of what a server leaves behind."""

import contextlib
import os
import pathlib

from host import read_text
from pool_files import pool_of
from product import wait_until


class LeakCounter:
    """Everything a server could leave behind, counted; fails where it has grown."""

    # What one more sandbox in the pool accounts for.
    POOLED = {
        "cgroups": 6, "processes": 1, "sandboxes": 1, "agents": 1, "namespaces": 8, "descriptors of atoll-server": 1,
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
            "agents": self.files(server.run / "agents"),
        }
        with pool_of(server) as pool:
            found |= {what: self.files(pool / what) for what in ("sandboxes", "states", "trash")}
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
            if str(self.server.data) in text:
                found.append(text)
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

    def egress_waits(self):
        """Whether that process has opened what it always has; nobody else waits for it to have started."""
        egress = self.server.children().get("atoll-egress")
        return egress is None or any("timerfd" in one for one in self.descriptors(egress))

    def start(self, seconds=20):
        wait_until(self.server.settled, seconds, "reserve and pool are full")
        wait_until(self.egress_waits, seconds, "egress has started")
        self.pooled, self.before = sum(self.server.pools().values()), self.count()
        return self

    def grown(self):
        """What there is more of than before, as text; the reserve must be full for a fair count."""
        if not self.server.settled():
            return "reserve and pool are not full again"
        more = max(0, sum(self.server.pools().values()) - self.pooled)
        after = self.count()
        lines = []
        for what, items in after.items():
            before = self.before.get(what, [])
            limit = len(before) + more * self.POOLED.get(what, 0)
            if len(items) > limit:
                new = [str(item) for item in items if item not in before]
                lines.append(f"{what}: {limit} -> {len(items)}: {', '.join(new[:8])}")
        return "\n".join(lines)

    def check(self, seconds=45):
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

    def assert_empty(self, seconds=45):
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
