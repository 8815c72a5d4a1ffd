"""What the cases share: a test class that needs the product, host canaries, marked processes."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import product

# Takes the marker as its only argument; `exec -a` puts it where the host's /proc shows it.
SLEEPER = 'exec -a "$1" sleep 300'


@unittest.skipUnless(product.SOCKET, "ATOLL_SOCKET is not set")
class ProductCase(unittest.TestCase):
    def sandbox(self, profile="dev", *options):
        box = product.Sandbox(profile, *options)
        self.addCleanup(box.__exit__)
        return box

    def canary(self):
        """A directory of the host that anyone may write to, in a place that sandboxes have too."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-canary-", dir="/var/tmp"))
        folder.chmod(0o777)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def marked(self, sandbox, script=SLEEPER, count=1):
        """Starts a command in the sandbox and waits until the host sees its processes, which is
        the control for every later "it is gone"."""
        marker = product.unique("marker")
        client = sandbox.start("bash", "-c", script, "sh", marker)
        self.addCleanup(self.end, client)
        product.wait_until(
            lambda: len(product.processes_with(marker)) >= count, 15, f"{count} processes started"
        )
        return marker, client

    def end(self, client):
        if client.poll() is None:
            client.kill()
        client.wait()

    def assert_gone(self, marker, seconds=5):
        product.wait_until(
            lambda: not product.processes_with(marker), seconds, f"processes of {marker} are gone"
        )

    def assert_nothing_left(self, sandbox_id):
        """No cgroup and no mount carries the id of a removed sandbox."""
        def leftovers():
            found = subprocess.run(
                ["find", "/sys/fs/cgroup", "-type", "d", "-path", f"*{sandbox_id}*"],
                capture_output=True, text=True, check=False,
            ).stdout.split()  # fmt: skip
            mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
            return found + [line for line in mounts if sandbox_id in line]

        product.wait_until(lambda: not leftovers(), 10, f"nothing left of {sandbox_id}")

    def assert_alive(self, sandbox):
        self.assertEqual(sandbox.run("echo", "alive", timeout=30).stdout, "alive\n")
        self.assertEqual(product.http("GET", "/health").status, 200)

    def assert_refused(self, reply):
        self.assertGreaterEqual(reply.status, 400, reply)
        self.assertNotIn(reply.status, (500, 502), reply)
