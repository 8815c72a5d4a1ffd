"""The controls: the attacks must succeed where the product's protection is missing. They need no
product, only root and bubblewrap."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import controls

HERE = pathlib.Path(__file__).parent


class ControlJails(unittest.TestCase):
    """The probes that control_expectations.txt lists fail in its jails."""

    def check(self, jail, ids=("all",)):
        results = controls.run_in_jail(jail, ids)
        for probe in controls.expected_failures(jail):
            with self.subTest(jail=jail, probe=probe):
                self.assertTrue(results.get(probe, "missing").startswith("FAIL"), "has lost its teeth")

    def test_bubblewrap_without_a_filter(self):
        self.check("bwrap")

    def test_root_in_namespaces(self):
        self.check("root-in-namespaces")

    def test_planted_weaknesses(self):
        self.check("planted", controls.expected_failures("planted"))


class WeakProduct(unittest.TestCase):
    """The cases that control_expectations.txt lists fail against a product full of mistakes."""

    def setUp(self):
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="atoll-weak-"))
        self.state.chmod(0o755)
        os.environ["WEAK_STATE"] = str(self.state)
        import weak_product  # reads WEAK_STATE when it is loaded

        self.weak = weak_product
        self.addCleanup(shutil.rmtree, self.state, ignore_errors=True)
        weak_product.prepare()
        self.addCleanup(weak_product.kill_all)
        self.socket = self.state / "server.sock"
        serve = [sys.executable, "-B", HERE / "weak_product.py", "serve", self.socket]
        server = subprocess.Popen([*weak_product.AS_NOBODY, *serve])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

    def attack(self, names):
        environment = {**os.environ, "ATOLL_BIN": str(HERE / "weak_product.py"),
                       "ATOLL_SOCKET": str(self.socket), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        patterns = [word for name in names for word in ("-k", name)]
        command = [sys.executable, HERE / "run_attacks.py", *patterns]
        modules = ["visibility", "resources", "teardown", "files", "archives"]
        done = subprocess.run(
            [*command, *[f"cases_{module}" for module in modules]], env=environment,
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        return done.stderr

    def test_the_cases_fail_against_it(self):
        expected = controls.expected_failures("weak-product")
        deadline = time.monotonic() + 10
        while not self.socket.exists() and time.monotonic() < deadline:
            os.sched_yield()
        # Some cases are races, which even a weak product wins now and then.
        failed = set()
        for _ in range(3):
            missing = [name for name in expected if name not in failed]
            if not missing:
                break
            failed |= set(re.findall(r"^FAIL: (test_\w+)", self.attack(missing), re.MULTILINE))
        for name in expected:
            with self.subTest(name):
                self.assertIn(name, failed, "has lost its teeth")
