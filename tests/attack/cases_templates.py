"""A26 and A27: templates that are out to get whoever makes a sandbox of them."""

import hashlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

import hostile_templates as hostile
import product
from harness import ProductCase

DATA = pathlib.Path(os.environ.get("ATOLL_DATA", "/nonexistent"))
OUR_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
WATCHED = ["/", "/etc", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/tmp"]

# Writes to every place, wherever that may lead.
TOUCH = "cd /; for place in tmp workspace dev/shm etc root home; do echo x >$place/touched; done 2>/dev/null; " + \
        "for file in etc/passwd etc/hosts etc/resolv.conf etc/hostname; do [ -p $file ] || echo x >>$file; done 2>/dev/null; " + \
        "echo x >/dev/null && echo alive"  # fmt: skip

# A product that follows whatever it finds. In mounts of its own; the archive leads to the canary only.
NAIVE = """
tar -C "$1" -xf "$2"
mount -t tmpfs none "$1/proc" || exit
mount -t tmpfs none "$1/dev/pts"
echo nameserver >"$1/etc/resolv.conf"; mkdir "$1/tmp/made"; cp /bin/true "$1/.atoll/agent"
cat /proc/self/mountinfo
"""

# Exchanges two names for as long as its standard input is open.
SWAPPER = """
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
folder = os.open(sys.argv[1], os.O_RDONLY)
a, b = sys.argv[2].encode(), sys.argv[3].encode()
print("swapping", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(500):
        if libc.renameat2(folder, a, folder, b, 2) != 0: sys.exit(os.strerror(ctypes.get_errno()))
"""


def status_of(path):
    try:
        info = os.lstat(path)
    except OSError as error:
        return error.errno
    return info.st_ino, info.st_mode, info.st_uid, info.st_size if stat.S_ISREG(info.st_mode) else 0


def host_state(canary):
    """What must be as before: the canary to the last bit, and the places that the archives point at."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(canary):
        for name in sorted(folders + files):
            path = pathlib.Path(folder, name)
            digest.update(repr((str(path), status_of(path), path.stat().st_mtime_ns)).encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
    at = lambda line: line.split()[4]  # noqa: E731
    near = [line for line in mounts_of("self") if at(line) in WATCHED or at(line).startswith((str(canary), str(DATA)))]
    return digest.hexdigest(), [status_of(path) for path in WATCHED], near, mounts_of(launcher_pid())


def mounts_of(pid):
    return sorted(pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()) if pid else []


def pool():
    """Where sandboxes' files are, as the launcher sees it."""
    return pathlib.Path(f"/proc/{launcher_pid()}/root/pool")


def launcher_pid():
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            ours = str(DATA).encode() in (folder / "cmdline").read_bytes()
            if ours and (folder / "comm").read_text() == "atoll-launcher\n":
                return int(folder.name)
        except OSError:
            continue
    return None


def shape_of(pid):
    """Where a sandbox has mounts, and of which kind."""
    lines = [line.split(" - ") for line in mounts_of(pid)]
    return sorted((left.split()[4], right.split()[0]) for left, right in lines)


class HostileTemplate(ProductCase):
    @classmethod
    def setUpClass(cls):
        if not DATA.exists():
            raise unittest.SkipTest("ATOLL_DATA (the data directory) is not set")

    def setUp(self):
        self.folder = self.canary()
        self.precious = self.folder / "canary"
        (self.precious / "deep").mkdir(parents=True)
        (self.precious / "file").write_text("precious\n")
        (self.precious / "deep/file").write_text("precious\n")
        for path in (self.precious, self.precious / "deep", self.precious / "file"):
            path.chmod(0o777)

    def load(self, *entries):
        """Imports a template; answers its name, or nothing where the archive is refused by name."""
        archive = hostile.write_archive(self.folder / "rootfs.tar", *entries)
        name = product.unique("hostile")
        done = product.cli("template", "import", str(archive), "--name", name, "--data-dir", str(DATA), "--json",
                           check=False)  # fmt: skip
        if done.returncode != 0:
            self.assertRegex(done.stderr, r"^atoll: importing .*: .+", "a refusal says what is wrong")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            return None
        for layer in json.loads(done.stdout)["layers"]:
            self.addCleanup(shutil.rmtree, DATA / "layers" / layer, ignore_errors=True)
            self.layer = DATA / "layers" / layer
        self.addCleanup((DATA / f"templates/{name}.json").unlink)
        return name

    def create(self, template, profile="dev", **more):
        """A sandbox's id, or nothing where that is refused by name."""
        body = {"environment": template, "profile": profile, "pool": False, **more}
        reply = product.http("POST", "/v1/sandboxes", body)
        if reply.status == 201:
            self.addCleanup(product.http, "DELETE", f"/v1/sandboxes/{reply.json['id']}")
            return reply.json["id"]
        self.assert_typed(reply)
        return None

    def assert_typed(self, reply):
        """An error of its own kind that names the place."""
        self.assertGreaterEqual(reply.status, 400, reply)
        self.assertNotIn(reply.json["code"], ("SERVER_ERROR", "TIMEOUT"), reply)
        self.assertRegex(reply.json["message"], r"/(proc|dev|\.atoll|workspace|etc)", reply)

    def runtime(self, sandbox, path, body):
        return product.http("POST", f"/v1/sandboxes/{sandbox}/runtime{path}", body)

    def run_shell(self, sandbox, script, **more):
        command = {"executable": hostile.SHELL[0], "args": [*hostile.SHELL[1:], "-c", script], "cwd": "/", **more}
        return self.runtime(sandbox, "/terminals/commands", command)

    def resident(self, sandbox, shell=tuple(hostile.SHELL)):
        """The host's pid of a process inside that waits."""
        marker = product.unique("marker")
        command = {"executable": shell[0], "args": [*shell[1:], "-c", "read line", marker], "cwd": "/", "stdin": True}
        self.assertEqual(self.runtime(sandbox, "/process/spawn", command).status, 200)
        return product.wait_until(lambda: product.processes_with(marker), 10, "it runs")[0]

    def ordinary_shape(self):
        with product.Sandbox("dev") as box:
            return shape_of(self.resident(box.id, ("/bin/sh",)))

    def assert_ordinary(self, sandbox, shape):
        """Mounts, devices, terminals and commands are those of any sandbox."""
        pid = self.resident(sandbox)
        self.assertEqual(shape_of(pid), shape)
        dev = pathlib.Path(f"/proc/{pid}/root/dev")
        self.assertTrue(stat.S_ISDIR(os.lstat(dev).st_mode))
        nodes = {}
        for path in dev.iterdir():
            info = os.lstat(path)
            if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode):
                nodes[path.name] = (os.major(info.st_rdev), os.minor(info.st_rdev))
        self.assertEqual(nodes, OUR_DEVICES)
        reply = self.run_shell(sandbox, TOUCH)
        self.assertEqual((reply.status, reply.json["result"]["stdout"]), (200, "alive\n"), reply)
        terminal = {"executable": hostile.SHELL[0], "args": [*hostile.SHELL[1:], "-c", "test -t 0"], "pty": True, "cwd": "/"}
        spawned = self.runtime(sandbox, "/process/spawn", terminal)
        self.assertEqual(spawned.status, 200, spawned)
        ended = product.http("GET", f"/v1/sandboxes/{sandbox}/runtime/process/{spawned.json['data']['pid']}/wait")
        self.assertEqual(ended.json.get("data", ended.json)["exitCode"], 0, "a terminal")

    def assert_layer_is_harmless(self):
        """No device but ours, nothing of the host's accounts."""
        devices, strangers = set(), []
        for folder, folders, files in os.walk(self.layer):
            for name in folders + files:
                path = pathlib.Path(folder, name)
                info = os.lstat(path)
                if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode):
                    devices.add(str(path.relative_to(self.layer)))
                if info.st_uid < 2147352576 or info.st_gid < 2147352576:
                    strangers.append(str(path))
        self.assertEqual(devices, {f"dev/{name}" for name in OUR_DEVICES})
        self.assertEqual(strangers, [])


class Create(HostileTemplate):
    def test_A26_no_template_reaches_the_host(self):
        shape, before = self.ordinary_shape(), host_state(self.precious)
        made = 0
        for what, entries in hostile.variants(str(self.precious)).items():
            with self.subTest(what):
                template = self.load(*entries)
                if template is None:
                    continue
                self.assert_layer_is_harmless()
                for profile in ("dev", "strict"):
                    sandbox = self.create(template, profile)
                    if sandbox is not None:
                        self.assert_ordinary(sandbox, shape)
                        made += 1
                self.assertEqual(host_state(self.precious), before, "the host has changed")
        self.assertGreater(made, 50, "refusing everything would prove nothing")

    def test_A26_the_working_directory_is_no_way_out(self):
        """Commands that start where a link of the template leads."""
        before = host_state(self.precious)
        template = self.load(("way", hostile.SYMLINK, str(self.precious)), ("up", hostile.SYMLINK, "../../.."),
                             ("magic", hostile.SYMLINK, "/proc/1/root"), ("cwd", hostile.SYMLINK, "/proc/1/cwd"))  # fmt: skip
        sandbox = self.create(template)
        for cwd in ("/way", "/up", "/magic", "/cwd", "/way/deep", "/magic/var/tmp"):
            with self.subTest(cwd):
                reply = self.run_shell(sandbox, "echo x >touched; pwd -P", cwd=cwd)
                if reply.status < 400:
                    self.assertTrue(reply.json["result"]["stdout"].startswith("/"), reply)
                else:
                    self.assertNotEqual(reply.status, 500, reply)
        self.assertEqual(host_state(self.precious), before)

    def test_A26_a_naive_product_is_hit(self):
        """The control: the same archives, and the same look at the host."""
        caught = set()
        for place in ("proc", "dev/pts", "etc/resolv.conf", "tmp", ".atoll"):
            before = host_state(self.precious)
            root = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            target = self.precious / "file" if place == "etc/resolv.conf" else self.precious
            rest = [other for other in ("proc", "dev/pts", "etc", "tmp", ".atoll") if other not in (place, place.split("/")[0])]
            plain = [(other, hostile.DIRECTORY, "") for other in rest]
            archive = hostile.write_archive(self.folder / "naive.tar", *plain, *hostile.links(str(target), [place]))
            done = subprocess.run(
                ["unshare", "--mount", "--propagation", "private", "bash", "-c", NAIVE, "naive", root, archive],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            mounted = any(line.split()[4].startswith(str(self.precious)) for line in done.stdout.splitlines())
            if mounted or host_state(self.precious) != before:
                caught.add(place)
        self.assertEqual(caught, {"proc", "dev/pts", "etc/resolv.conf", "tmp", ".atoll"})


class Races(HostileTemplate):
    ROUNDS = 150

    def swap(self, folder, name, link_target):
        """Exchanges `name` with a link, as fast as it can, until the test ends."""
        os.symlink(link_target, folder / "other")  # a name of its own: settle() removes it
        swapper = subprocess.Popen(
            [sys.executable, "-c", SWAPPER, folder, name, "other"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        swapper.stdout.readline()

        def end():
            swapper.stdin.close()
            swapper.stdout.close()
            return swapper.wait()

        return end

    def test_A27_a_place_that_turns_into_a_link_and_back(self):
        """Somebody with the host's root in the template's own files, while sandboxes are made of it."""
        shape, before = self.ordinary_shape(), host_state(self.precious)
        (self.precious / "agent").write_text("precious\n")
        before = host_state(self.precious)
        template = self.load()
        outcomes = {}
        for place in ("proc", "dev", "dev/pts", ".atoll", ".atoll/agent"):
            with self.subTest(place):
                folder, name = (self.layer / place).parent, (self.layer / place).name
                end = self.swap(folder, name, self.precious / ("agent" if place.endswith("agent") else ""))
                try:
                    outcomes[place] = self.storm(template, shape)
                finally:
                    code = end()
                self.assertEqual(code, 0, "the swapper ended by itself")
                self.settle(folder, name)
                self.assertEqual(host_state(self.precious), before, "the host has changed")
        # The control: the links were in the way.
        self.assertTrue(any(refused for _, refused in outcomes.values()), outcomes)
        self.assertIsNotNone(self.create(template), "and once it is quiet all is well")

    def settle(self, folder, name):
        """The real one in its place, whatever the last exchange left."""
        if (folder / name).is_symlink():
            (folder / name).unlink()
            (folder / "other").rename(folder / name)
        else:
            (folder / "other").unlink()

    def storm(self, template, shape):
        made = refused = 0
        for _ in range(self.ROUNDS):
            reply = product.http("POST", "/v1/sandboxes", {"environment": template, "pool": False})
            if reply.status != 201:
                self.assert_typed(reply)
                refused += 1
                continue
            sandbox = reply.json["id"]
            self.assertEqual(shape_of(self.resident(sandbox)), shape)
            product.http("DELETE", f"/v1/sandboxes/{sandbox}")
            made += 1
        return made, refused

    def test_A27_a_sandbox_that_rearranges_itself_before_it_is_started_again(self):
        """What its own root can do. Not all of it works: directories of the template cannot be renamed."""
        rename = "python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])'"
        changes = {
            "dev is a link": f"{rename} /dev /old && ln -s {self.precious} /dev",
            "dev is empty": "rm -rf /dev",
            "null is a link": f"rm /dev/null && ln -s {self.precious}/file /dev/null",
            "null is a fifo": "rm /dev/null && mkfifo /dev/null",
            "null is a directory": "rm /dev/null && mkdir /dev/null",
            "the agent is a link": f"{rename} /.atoll /old && mkdir /.atoll && ln -s {self.precious}/file /.atoll/agent",
            "the workspace is a link": f"rmdir /workspace && ln -s {self.precious} /workspace",
            "the workspace is a fifo": "rmdir /workspace && mkfifo /workspace",
            "accounts are a fifo": "rm /etc/passwd && mkfifo /etc/passwd",
            "accounts are endless": "rm /etc/passwd && ln -s /dev/zero /etc/passwd",
            "accounts are a terminal": "rm /etc/passwd && ln -s /dev/pts/ptmx /etc/passwd",
            "a closed root": "chmod 0 / /etc /dev /workspace",
        }
        for what, script in changes.items():
            with self.subTest(what):
                box = self.sandbox("dev")
                box.sh(script, check=False)
                self.assertTrue(self.start_again(box, lambda upper: None), "its own root can always be put up with")

    def test_A27_files_of_a_sandbox_that_somebody_rearranged_meanwhile(self):
        """What only the host's root could do, or a template that was taken from a hostile sandbox."""
        def link(name, target):
            return lambda upper: self.plant(upper / name, lambda path: os.symlink(target, path))

        changes = {place: link(place, self.precious) for place in ("proc", "dev", ".atoll", "dev/pts", "dev/shm", "tmp", "etc")}
        changes["agent"] = link(".atoll/agent", self.precious / "file")
        changes["proc up"] = link("proc", "../../../../../../proc")
        changes["no proc"] = lambda upper: self.plant(upper / "proc", lambda path: os.mknod(path, stat.S_IFCHR, 0))
        changes["fifo"] = lambda upper: self.plant(upper / "dev/pts", os.mkfifo)
        changes["device"] = lambda upper: self.plant(upper / "dev/null", lambda path: os.mknod(path, stat.S_IFBLK | 0o666, 0xFFFF))
        refused = 0
        for what, change in changes.items():
            with self.subTest(what):
                refused += not self.start_again(self.sandbox("dev"), change)
        self.assertGreater(refused, 6, "most of these cannot be started from: this proves nothing")

    def plant(self, path, make):
        path.parent.mkdir(exist_ok=True)
        os.chown(path.parent, 2147352576, 2147352576)
        make(path)
        os.lchown(path, 2147352576, 2147352576)

    def start_again(self, box, change):
        """Stops a sandbox, changes its files, and starts it again: whether that works."""
        shape, before = self.ordinary_shape(), host_state(self.precious)
        self.assertEqual(product.http("POST", f"/v1/sandboxes/{box.id}/stop").status, 200)
        change(pool() / "sandboxes" / box.id / "upper")
        reply = product.http("POST", f"/v1/sandboxes/{box.id}/resume", timeout=30)
        if reply.status == 200:
            self.assertEqual(shape_of(self.resident(box.id, ("/bin/sh",))), shape)
            command = {"executable": "/bin/echo", "args": ["on"], "cwd": "/"}
            self.assertEqual(box.runtime("POST", "/terminals/commands", command).json["result"]["stdout"], "on\n")
        else:
            self.assert_typed(reply)
            self.assertEqual(box.status()["status"], "stopped")
            self.assertTrue((pool() / "sandboxes" / box.id).exists(), "its files are kept")
        self.assertEqual(host_state(self.precious), before, "the host has changed")
        return reply.status == 200

    def test_A27_an_archive_that_changes_while_it_is_imported(self):
        """What is published under a digest is what has that digest."""
        contents = {}
        for word in (b"one", b"two"):
            path = hostile.write_archive(self.folder / "source.tar", ("word", hostile.FILE, word * 300_000))
            contents[hashlib.sha256(path.read_bytes()).hexdigest()] = (word, path.read_bytes())
        archive = self.folder / "changing.tar"
        (_, first), (_, second) = contents.values()
        self.assertEqual(len(first), len(second))
        archive.write_bytes(first)
        stop = threading.Event()

        def rewrite():
            with archive.open("r+b") as file:
                while not stop.is_set():
                    for content in (second, first):
                        file.seek(0)
                        file.write(content)
                        file.flush()

        writer = threading.Thread(target=rewrite)
        writer.start()
        refused = 0
        try:
            for _ in range(20):
                name = product.unique("changing")
                done = product.cli("template", "import", str(archive), "--name", name, "--data-dir", str(DATA), "--json",
                                   check=False)  # fmt: skip
                if done.returncode != 0:
                    self.assertRegex(done.stderr, "changed while it was being read|damaged")
                    refused += 1
                    continue
                made = json.loads(done.stdout)
                layer = DATA / "layers" / made["layers"][0]
                self.addCleanup((DATA / f"templates/{name}.json").unlink)
                self.addCleanup(shutil.rmtree, layer, ignore_errors=True)
                known = contents.get(made["digest"].removeprefix("sha256:"))  # else it stood half-way for both reads
                if known:
                    self.assertEqual((layer / "word").read_bytes(), known[0] * 300_000)
        finally:
            stop.set()
            writer.join()
        self.assertGreater(refused, 0, "nothing changed in time: this proves nothing")
