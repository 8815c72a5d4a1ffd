"""D: resource abuse with small limits. Every bomb carries its own bound in number and time, so that
a missing limit shows as a failed test and not as a dead host."""

import os
import pathlib
import time

import product
from harness import ProductCase

# Doubles nine times: at most 512 processes, for 8 s.
FORK_BOMB = """
import os, time
end = time.monotonic() + 8
for _ in range(9):
    try: os.fork()
    except OSError: pass
while time.monotonic() < end: os.sched_yield()
"""

THREAD_BOMB = """
import threading
started, stop = 0, threading.Event()
try:
    while started < 400:
        threading.Thread(target=stop.wait, args=(10,), daemon=True).start()
        started += 1
except RuntimeError: pass
print(started, flush=True)
import os; os._exit(0)
"""

# 1 GiB at most.
MEMORY_BOMB = "kept = [bytearray(b'x' * (1 << 24)) for _ in range(64)]; print('all of it')"

SPIN = "for i in $(seq 8); do timeout 6 bash -c 'while :; do :; done' \"$1\" & done; wait"

# 300,000 files at most.
INODE_BOMB = """
import os
os.mkdir("/inodes")
try:
    for i in range(300000): os.close(os.open("/inodes/%d" % i, os.O_CREAT | os.O_WRONLY))
except OSError as error: print("stopped", error.errno, i)
else: print("all of them")
"""

ORPHANS = """
import os
for _ in range(5000):
    child = os.fork()
    if child == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
"""


# The same 100 MiB again and again, each block on the disk before the next. Both floods end with their sandbox; a minute
# is enough even where a sanitizer makes every command slow.
DIRTY_FLOOD = """exec -a "$1" timeout 60 bash -c '
while :; do dd if=/dev/zero of=/big bs=1M count=100 oflag=dsync conv=notrunc status=none; done'"""

# As many as the disk takes.
FSYNC_STORM = """
import os, time
fd, end, count = os.open("/small", os.O_CREAT | os.O_WRONLY), time.monotonic() + 60, 0
while time.monotonic() < end:
    os.pwrite(fd, b"x", count % 4096)
    os.fsync(fd)
    count += 1
print(count)
"""

# 30,000 names of one file (ext4 allows 65,000), 5,000 small files, and one with 5,000 holes.
MANY_LINKS = """
import ctypes, os
os.makedirs("/workspace/links"); os.makedirs("/workspace/files")
open("/workspace/links/0", "w").close()
for i in range(1, 30000): os.link("/workspace/links/0", "/workspace/links/%d" % i)
for i in range(5000): os.close(os.open("/workspace/files/%d" % i, os.O_CREAT | os.O_WRONLY))
fd = os.open("/workspace/holes", os.O_CREAT | os.O_RDWR)
os.pwrite(fd, b"x" * (40 << 20), 0)
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
for i in range(5000): libc.fallocate(fd, 3, i * 8192, 4096)
"""


class Resources(ProductCase):
    def small(self, profile="dev"):
        return self.sandbox(profile, *product.SMALL)

    def assert_neighbour_is_served(self, neighbour, idle_ms):
        # 50 ms of grace: idle times are a few milliseconds, where five times is noise.
        self.assertLess(product.latency_ms(neighbour, 9), 5 * idle_ms + 50)

    def test_D01_a_fork_bomb_stays_below_its_limit_and_dies_with_the_sandbox(self):
        box, neighbour = self.small(), self.small()
        idle = product.latency_ms(neighbour)
        marker, _ = self.marked(box, f"exec python3 -c '{FORK_BOMB}' \"$1\"", count=40)
        self.assertLessEqual(len(product.processes_with(marker)), 128)
        self.assert_neighbour_is_served(neighbour, idle)
        begin = time.monotonic()
        box.remove(timeout=10)
        self.assertLess(time.monotonic() - begin, 5)
        self.assert_gone(marker)

    def test_D02_a_thread_bomb_stays_below_its_limit(self):
        box = self.small()
        self.assertLess(int(box.run("python3", "-c", THREAD_BOMB).stdout), 128)
        self.assert_alive(box)

    def test_D03_a_memory_bomb_kills_only_itself(self):
        box, neighbour = self.small(), self.small()
        bomb = box.run("python3", "-c", MEMORY_BOMB, check=False, timeout=60)
        self.assertNotEqual(bomb.returncode, 0)
        self.assertNotIn("all of it", bomb.stdout)
        self.assert_alive(box)
        self.assert_alive(neighbour)

    def test_D04_shared_memory_counts(self):
        box = self.small()
        for target in ("/dev/shm/x", "/tmp/x"):
            filled = box.run("dd", "if=/dev/zero", f"of={target}", "bs=1M", "count=600",
                             check=False, timeout=120)  # fmt: skip
            self.assertNotEqual(filled.returncode, 0, target)
            box.run("rm", "-f", target)
        self.assert_alive(box)

    def check_disk_flood(self, start):
        """A neighbour's commands, and what it writes itself, while another one keeps the disk busy."""
        box, neighbour = self.small(), self.small()
        idle = product.latency_ms(neighbour)
        write_idle = self.write_ms(neighbour)
        marker, _ = self.marked(box, start)
        self.assert_neighbour_is_served(neighbour, idle)
        # A full disk queue is shared; what counts is that it moves.
        self.assertLess(self.write_ms(neighbour), 5 * write_idle + 1000)
        begin = time.monotonic()
        self.assertEqual(product.http("POST", "/v1/sandboxes", {"ephemeral": True, "name": marker}).status, 201)
        self.assertEqual(product.http("DELETE", f"/v1/sandboxes/{marker}").status, 200)
        self.assertLess(time.monotonic() - begin, 3, "a create and a delete, each with a row to record")
        self.assertTrue(product.processes_with(marker), "the flood was over too soon to prove anything")
        box.remove(timeout=15)
        self.assert_gone(marker)

    def write_ms(self, box):
        """The median time of a small file that is made to last."""
        times = []
        for _ in range(5):
            begin = time.monotonic()
            box.sh("echo x >/note && sync /note")
            times.append((time.monotonic() - begin) * 1000)
        return sorted(times)[2]

    def test_D05_a_flood_of_writes_leaves_the_neighbour_served(self):
        self.check_disk_flood(DIRTY_FLOOD)

    def test_D06_a_storm_of_fsyncs_leaves_the_neighbour_served(self):
        self.check_disk_flood(f"exec python3 -c '{FSYNC_STORM}' \"$1\"")

    def test_D10_very_many_names_and_holes_are_removed_behind_the_callers_back(self):
        box, neighbour = self.sandbox("dev"), self.small()
        idle = product.latency_ms(neighbour)
        box.run("python3", "-c", MANY_LINKS, timeout=120)
        sandbox_id = box.id
        begin = time.monotonic()
        box.remove(timeout=20)
        self.assertLess(time.monotonic() - begin, 3)
        self.assert_neighbour_is_served(neighbour, idle)
        self.assert_nothing_left(sandbox_id)
        trash = pathlib.Path(os.environ.get("ATOLL_POOL", "/nonexistent"), "trash")
        if trash.exists():
            mine = lambda: [name for name in os.listdir(trash) if name.startswith(sandbox_id)]  # noqa: E731
            product.wait_until(lambda: not mine(), 120, "its files are gone")

    def test_D07_the_disk_is_bounded(self):
        box = self.small()
        if box.degraded("disk"):
            self.skipTest("the product says that it cannot bound the disk here")
        self.assertNotEqual(box.run("fallocate", "-l", "1T", "/x", check=False).returncode, 0)
        filled = box.run("dd", "if=/dev/urandom", "of=/y", "bs=1M", "count=400", check=False)
        self.assertNotEqual(filled.returncode, 0)
        box.run("rm", "-f", "/x", "/y")
        self.assert_alive(box)

    def test_D08_inodes_are_bounded(self):
        """By the disk limit: they are metadata, which counts."""
        box = self.sandbox("dev", "--disk", "64m")
        if box.degraded("inode") or box.degraded("disk"):
            self.skipTest("the product says that it cannot bound inodes here")
        self.assertIn("stopped", box.run("python3", "-c", INODE_BOMB, timeout=120).stdout)

    def test_D09_a_huge_sparse_file_is_not_read(self):
        box = self.small()
        box.sh("truncate -s 8E /sparse 2>/dev/null || truncate -s 15T /sparse || truncate -s 1T /sparse")
        begin = time.monotonic()
        self.assertGreaterEqual(box.read("/sparse").status, 400)
        self.assertEqual(box.runtime("GET", "/fs/stat/sparse").status, 200)
        self.assertLess(time.monotonic() - begin, 5)
        box.download("/sparse", limit=1 << 20)  # a reader that goes away
        self.assert_alive(box)

    def test_D14_spinning_on_all_cores_leaves_the_neighbour_served(self):
        box, neighbour = self.small(), self.small()
        idle = product.latency_ms(neighbour)
        marker, _ = self.marked(box, SPIN, count=8)
        self.assert_neighbour_is_served(neighbour, idle)
        box.remove(timeout=15)
        self.assert_gone(marker)

    def test_D16_a_directory_with_very_many_names_is_listed_in_bounded_time(self):
        box = self.sandbox("dev")
        box.sh("mkdir /many && cd /many && seq 100000 | xargs touch", timeout=120)
        begin = time.monotonic()
        listed = box.runtime("GET", "/fs/list/many", timeout=30)
        self.assertLess(time.monotonic() - begin, 15)
        self.assertNotIn(listed.status, (500, 502))
        self.assert_alive(box)

    def test_D17_orphans_are_reaped(self):
        box = self.small()
        box.run("python3", "-c", ORPHANS, timeout=120)
        zombies = "cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.*Z' || true"
        product.wait_until(lambda: int(box.sh(zombies).stdout) == 0, 10, "no zombies")
