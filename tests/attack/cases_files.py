"""F: the file API against links, races, special files, hostile names and half requests."""

import concurrent.futures
import contextlib
import http.client
import json
import threading
import time

import product
from harness import ProductCase

# Swaps a directory and a link to a path of the host's as fast as it can, for argv[2] seconds.
SWAP = """
import ctypes, os, sys, time
target, seconds = sys.argv[1], float(sys.argv[2])
os.makedirs("/race/real", exist_ok=True)
os.symlink(target, "/race/link")
libc, end = ctypes.CDLL(None), time.monotonic() + seconds
print("swapping", flush=True)
while time.monotonic() < end:
    for _ in range(1000): libc.syscall(316, -100, b"/race/real", -100, b"/race/link", 2)
"""


# Stops whatever process comes next, for argv[1] seconds: file operations run in processes of their own.
STOP_ALL = """
import os, signal, sys, time
me, end, stopped = os.getpid(), time.monotonic() + float(sys.argv[1]), set()
newest = os.open("/proc/loadavg", os.O_RDONLY)
print("stopping", flush=True)
while time.monotonic() < end:
    last = int(os.pread(newest, 99, 0).split()[-1])
    for pid in (last, last + 1, last + 2):
        try:
            if pid > me: os.kill(pid, signal.SIGSTOP)
        except OSError: continue
        stopped.add(pid)
print(len(stopped))
"""

# Keeps a lease: opening the file waits for it, unless told not to wait.
LEASE = """
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1])
fcntl.fcntl(file, 1024, fcntl.F_WRLCK)
signal.pause()
"""


class Links(ProductCase):
    def check_link(self, target):
        """Writes through a link that means a directory of the host, if the host resolves it."""
        box, canary = self.sandbox("dev"), self.canary()
        box.sh('mkdir -p "$1" /links && ln -s "$2" /links/l', str(canary), target(canary))
        self.assertLess(box.write("/links/l/file", b"through the link").status, 300)
        self.assertEqual(list(canary.iterdir()), [])
        # The control: it went where the link points inside.
        self.assertEqual(box.run("cat", f"{canary}/file").stdout, "through the link")

    def test_F01_an_absolute_link(self):
        self.check_link(str)

    def test_F02_a_relative_link_that_climbs(self):
        self.check_link(lambda canary: "../../../../../../../.." + str(canary))

    def test_F04_a_directory_that_turns_into_a_link_and_back(self):
        box, canary = self.sandbox("dev"), self.canary()
        secret = product.unique("secret")
        (canary / "file").write_text(secret)
        (canary / "file").chmod(0o666)
        swapper = box.start("python3", "-c", SWAP, str(canary), "5")
        self.addCleanup(self.end, swapper)
        product.wait_until(lambda: box.run("test", "-L", "/race/link", check=False).returncode == 0, 10, "swapping")  # fmt: skip
        end, tries = time.monotonic() + 3, 0
        while time.monotonic() < end:
            box.write("/race/real/file", b"intruder")
            self.assertNotIn(secret.encode(), box.download("/race/real/file").body)
            box.runtime("DELETE", "/fs/race/real/file")
            tries += 1
        self.assertGreater(tries, 10)
        found = {file.name: file.read_text() for file in canary.iterdir()}
        self.assertEqual(found, {"file": secret})

    def test_F05_deleting_a_link_leaves_its_target(self):
        box = self.sandbox("dev")
        box.sh("mkdir /d && echo keep >/d/target && ln -s /d/target /d/link && ln -s /d /dirlink")
        self.assertLess(box.runtime("DELETE", "/fs/d/link").status, 300)
        box.sh("test ! -L /d/link && test -s /d/target")
        self.assertLess(box.runtime("DELETE", "/fs/dirlink?recursive=true").status, 300)
        box.sh("test ! -L /dirlink && test -s /d/target")

    def test_F05_moving_a_link_moves_the_link(self):
        box = self.sandbox("dev")
        box.sh("mkdir /d && echo keep >/d/target && ln -s /d/target /d/link")
        moved = box.runtime("POST", "/fs/move", {"from": "/d/link", "to": "/d/moved"})
        self.assertLess(moved.status, 300, moved)
        box.sh("test -L /d/moved && test ! -e /d/link && test -s /d/target")

    def test_links_of_the_agents_proc_lead_nowhere(self):
        box, secret = self.sandbox("dev"), product.unique("secret")
        canary = self.canary()
        (canary / "file").write_text(secret)
        for root in ("/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/proc/self/cwd/../../.."):
            with self.subTest(root=root):
                self.assertNotIn(secret.encode(), box.download(f"{root}{canary}/file").body)


class SpecialFiles(ProductCase):
    def assert_quick_and_bounded(self, box, path):
        begin = time.monotonic()
        for reply in (box.read(path, timeout=10), box.download(path, timeout=10, limit=64 << 20)):
            self.assertTrue(reply.status >= 400 or len(reply.body) < 32 << 20, (path, reply))
        self.assertLess(time.monotonic() - begin, 10, path)

    def test_F07_a_fifo_blocks_nobody(self):
        box = self.sandbox("dev")
        box.run("mkfifo", "/fifo")
        self.assert_quick_and_bounded(box, "/fifo")
        self.assertGreaterEqual(box.read("/fifo").status, 400)
        self.assert_alive(box)

    def test_F08_devices_sockets_and_proc_are_refused_or_bounded(self):
        box = self.sandbox("dev")
        box.sh("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/sock\")'; mkdir /dir")
        for path in ("/dev/zero", "/dev/urandom", "/dev/full", "/dev/tty", "/proc/kmsg",
                     "/proc/self/mem", "/proc/1/environ", "/sock", "/dir", "/"):  # fmt: skip
            with self.subTest(path=path):
                self.assert_quick_and_bounded(box, path)
        self.assert_alive(box)

    def test_F10_whoever_does_the_work_is_stopped(self):
        """There is no FUSE inside, but a sandbox's root can stop the process that serves a file."""
        box = self.sandbox("dev")
        box.sh("mkdir /d && echo x >/d/file")
        seconds = 4
        spawned = box.runtime("POST", "/process/spawn", {"executable": "/usr/bin/python3", "args": ["-c", STOP_ALL, str(seconds)]})
        pid = spawned.json["data"]["pid"]
        output = f"/process/{pid}/output?stream=stdout&follow=false"
        product.wait_until(lambda: b"stopping" in box.runtime("GET", output).body, 10, "it is at work")
        end, failures = time.monotonic() + seconds - 1, 0
        while time.monotonic() < end:
            for reply in (box.runtime("GET", "/fs/stat/d/file", timeout=10), box.read("/d/file", timeout=10),
                          box.write("/d/file", b"y" * 3000000)):  # fmt: skip
                if reply.status != 200:
                    self.assertIn(reply.json["code"], ("UNAVAILABLE", "TIMEOUT"), reply)
                    failures += 1
        box.runtime("GET", f"/process/{pid}/wait?timeoutMs=20000", timeout=30)
        self.assertGreater(int(box.runtime("GET", output).body.split()[-1]), 0, "it stopped nobody: this proves nothing")
        self.assert_alive(box)
        left = "ps -eo stat=,comm= | grep '^T' || true"
        product.wait_until(lambda: box.sh(left).stdout == "", 10, "nobody stays stopped")
        self.assertIn(box.sh("wc -c </d/file").stdout, ("2\n", "3000000\n"), "the old file or the new one")

    def lease(self, box, path):
        holder = box.start("python3", "-c", LEASE, path)
        self.addCleanup(self.end, holder)
        product.wait_until(lambda: box.sh("cat /proc/locks").stdout.count("LEASE"), 10, "the lease is held")

    def test_F10_a_file_that_cannot_be_opened_at_once(self):
        box = self.sandbox("dev")
        box.sh("mkdir /leased && echo content >/leased/file")
        self.lease(box, "/leased/file")
        begin = time.monotonic()
        for method, path, body in (
            ("GET", "/fs/download/leased/file", None), ("POST", "/files/read", {"path": "/leased/file"}),
            ("GET", "/fs/stat/leased/file", None), ("GET", "/fs/download-dir/leased?format=tar", None),
            ("POST", "/search", {"pattern": "content", "cwd": "/leased"}),
            ("POST", "/files/write", {"path": "/leased/file", "content": "new"}),
        ):  # fmt: skip
            with self.subTest(path):
                # An answer that has begun can only break off.
                with contextlib.suppress(http.client.HTTPException, ValueError):
                    reply = box.runtime(method, path, body, timeout=10)
                    self.assertLess(reply.status, 500, reply)
        self.assertLess(time.monotonic() - begin, 15)
        self.assert_alive(box)

    def test_F10_a_program_that_cannot_be_opened_at_once(self):
        """PID 1 waits for the start of what it starts, but not for ever."""
        box = self.sandbox("dev")
        box.sh("mkdir /leased && cp /bin/true /leased/program")
        self.lease(box, "/leased/program")
        begin = time.monotonic()
        reply = box.runtime("POST", "/process/spawn", {"executable": "/leased/program"}, timeout=30)
        self.assertEqual(reply.json["code"], "TIMEOUT", reply)
        self.assertGreater(time.monotonic() - begin, 1, "the lease was in nobody's way: this proves nothing")
        self.assert_alive(box)

    def test_F09_a_file_that_grows_while_it_is_sent(self):
        box = self.sandbox("dev")
        box.sh("head -c 20000000 /dev/zero >/grows")
        grower = box.start("bash", "-c", "for i in $(seq 400); do head -c 100000 /dev/zero; done >>/grows")
        self.addCleanup(self.end, grower)
        for _ in range(10):
            reply = box.download("/grows")
            if reply.status == 200 and reply.headers["Content-Length"]:
                self.assertEqual(len(reply.body), int(reply.headers["Content-Length"]))

    def test_F09_a_file_that_shrinks_while_it_is_sent(self):
        box = self.sandbox("dev")
        shrinker = "while :; do head -c 20000000 /dev/zero >/shrinks; : >/shrinks; done"
        client = box.start("timeout", "6", "bash", "-c", shrinker)
        self.addCleanup(self.end, client)
        for _ in range(10):
            try:
                box.download("/shrinks", timeout=10)
            except (OSError, http.client.HTTPException):
                pass  # cut short: honest
        self.assert_alive(box)


class Names(ProductCase):
    def test_F12_names_that_are_not_utf8_can_be_listed_and_deleted(self):
        box = self.sandbox("dev")
        box.sh("mkdir /names && touch $'/names/\\xff\\xfe' $'/names/new\\nline' $'/names/\\e[31m'")
        listed = box.runtime("GET", "/fs/list/names?all=true")
        self.assertEqual(listed.status, 200, listed)
        self.assertEqual(len(json.loads(listed.body)["data"]["entries"]), 3)
        self.assertLess(box.runtime("DELETE", "/fs/names/%FF%FE").status, 300)
        self.assertEqual(box.sh("ls -1A /names | wc -l").stdout.strip(), "3")  # one has a newline
        self.assertLess(box.runtime("DELETE", "/fs/names?recursive=true").status, 300)

    def test_F13_names_cannot_inject_headers(self):
        box = self.sandbox("dev")
        for name in ('a"b', "a\r\nX-Injected: 1", "a\nX-Injected: 1", "a;filename=b", "ä\x7f"):
            with self.subTest(name=name):
                path = f"/headers-{product.unique('n')}/{name}"
                box.sh('mkdir -p "$(dirname "$1")" && echo content >"$1"', path)
                reply = box.download(path)
                self.assertNotIn("X-Injected", str(reply.headers))
                self.assertNotIn("\r\nX-Injected", reply.body[:200].decode(errors="replace"))

    def test_paths_with_nul_dots_and_length(self):
        box = self.sandbox("dev")
        for path in ("/a\0b", "", "/" + "x" * 300, "/" + "y/" * 3000, "\0"):
            with self.subTest(path=path[:20]):
                self.assert_refused(box.write(path, b"x"))
        climbing = box.write("../../../../../../tmp/climbed", b"x")
        if climbing.status < 300:
            box.sh("test -e /tmp/climbed")  # the sandbox's own /tmp
        self.assert_alive(box)


class Writes(ProductCase):
    def test_F17_an_aborted_upload_leaves_the_old_file_and_nothing_else(self):
        box = self.sandbox("dev")
        box.run("mkdir", "/up")
        box.write("/up/file", b"old")
        body = json.dumps({"path": "/up/file", "content": "x" * 200000, "encoding": "utf8"}).encode()
        for method, route in (("POST", "/files/write"), ("PUT", "/fs/upload/up/file")):
            for cut in (0, 1, 1000, len(body) - 1):
                self.send_part(f"{method} /v1/sandboxes/{box.id}/runtime{route}", body, cut)
        self.assert_alive(box)
        self.assertEqual(box.read_bytes("/up/file"), b"old")
        product.wait_until(lambda: box.sh("ls -A /up").stdout == "file\n", 10, "no temporary files")

    def send_part(self, request, body, size):
        """Announces the whole body, sends the beginning and hangs up."""
        head = f"{request} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        if product.API_KEY:
            head += f"Authorization: Bearer {product.API_KEY}\r\n"
        connection = product.UnixConnection(10)
        connection.connect()
        connection.sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:size])
        connection.close()

    def test_F18_of_concurrent_writes_one_wins_whole(self):
        box = self.sandbox("dev")
        contents = [bytes([65 + i]) * 500_000 for i in range(8)]
        start = threading.Barrier(8)

        def write(content):
            start.wait(10)
            return box.write("/contended", content).status

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for status in pool.map(write, contents):
                self.assertTrue(status < 300 or status == 409, status)
        self.assertIn(box.read_bytes("/contended"), contents)

    def test_F19_over_a_directory_a_running_program_and_where_nothing_can_be_written(self):
        box = self.sandbox("dev")
        box.sh("mkdir -p /taken/inner && cp /usr/bin/sleep /running")
        self.assert_refused(box.write("/taken", b"x"))
        client = box.start("/running", "60")
        self.addCleanup(self.end, client)
        box.write("/running", b"#!/bin/sh\n")  # either answer is right; the process goes on
        self.assertIsNone(client.poll())
        for path in ("/proc/version", "/proc/new", "/dev/null/x"):
            self.assert_refused(box.write(path, b"x"))

    def test_F19_on_a_full_disk(self):
        box = self.sandbox("dev", *product.SMALL)
        if box.degraded("disk"):
            self.skipTest("the product says that it cannot bound the disk here")
        box.write("/file", b"old")
        box.sh("dd if=/dev/urandom of=/fill bs=1M count=400 2>/dev/null; dd if=/dev/zero of=/fill2 bs=4k count=50000 2>/dev/null; true", timeout=120)  # fmt: skip
        self.assert_refused(box.write("/file", b"x" * (4 << 20)))
        self.assertEqual(box.read_bytes("/file"), b"old")

    def test_F20_abuse_of_ranges(self):
        box = self.sandbox("dev")
        box.write("/ranged", b"0123456789" * 100)
        ranges = ["bytes=0-," * 1000 + "0-", "bytes=-1", "bytes=5-2", "bytes=99999999999999999999-",
                  "bytes=0-18446744073709551615", "bytes=--1", "bytes=abc", "lines=1-2"]  # fmt: skip
        for value in ranges:
            with self.subTest(range=value[:30]):
                reply = box.download("/ranged", headers={"Range": value})
                self.assertIn(reply.status, (200, 206, 400, 413, 416, 431))
                self.assertLessEqual(len(reply.body), 4096)

    def test_F22_files_belong_to_the_sandbox(self):
        for profile in ("dev", "strict"):
            box = self.sandbox(profile)
            path = f"/tmp/{product.unique('owned')}/inner/file"
            self.assertLess(box.write(path, b"x").status, 300)
            for step in (path, path.rsplit("/", 1)[0]):
                owner = box.run("stat", "-c", "%u:%g", step).stdout.strip()
                self.assertIn(owner, ("0:0", "1000:1000"), (profile, step))


class Watches(ProductCase):
    def test_F21_many_directories_renames_and_watchers_stay_bounded(self):
        box = self.sandbox("dev", *product.SMALL)
        box.sh("mkdir -p /w/{1..40}/{1..50}")
        watchers = []
        for _ in range(64):
            connection = product.UnixConnection(10)
            self.addCleanup(connection.close)
            headers = {"Authorization": f"Bearer {product.API_KEY}"} if product.API_KEY else {}
            path = f"/v1/sandboxes/{box.id}/runtime/fs/watch/w?recursive=true"
            connection.request("GET", path, headers=headers)
            watchers.append(connection)
        statuses = [connection.getresponse().status for connection in watchers]
        self.assertIn(200, statuses)  # the control: at least one is served
        self.assertFalse({500, 502} & set(statuses), statuses)
        box.sh("for i in {1..2000}; do mv /w/1 /w/x; mv /w/x /w/1; done", timeout=60)
        self.assert_alive(box)  # nobody reads the 64 streams
