"""A, the cases that need a view from the host."""

import hashlib
import os
import pathlib
import subprocess
import unittest

import product
from harness import ProductCase


class Paths(ProductCase):
    def test_A01_the_program_is_the_same_after_the_probes(self):
        program = pathlib.Path(subprocess.check_output(["which", product.BIN], text=True).strip())
        before = hashlib.sha256(program.read_bytes()).digest()
        box = self.sandbox("dev")
        box.sh("for exe in /proc/[0-9]*/exe; do (echo x >>$exe) 2>/dev/null; done; true")
        self.assertEqual(hashlib.sha256(program.read_bytes()).digest(), before)
        self.assert_alive(box)

    def test_A03_the_working_directory_never_leaves_the_root(self):
        box = self.sandbox("dev")
        control = box.runtime("POST", "/terminals/commands", {"command": "pwd", "cwd": "/tmp"})
        self.assertEqual(control.json["result"]["stdout"].strip(), "/tmp")
        links = ["/proc/self/fd/7", "/proc/1/fd/3", "/proc/1/cwd", "/proc/1/root",
                 "/proc/self/cwd/../../..", "../../../../../..", "/dev/fd/9"]  # fmt: skip
        for cwd in links:
            with self.subTest(cwd=cwd):
                body = {"command": "/bin/pwd -P; ls -d /proc/self", "cwd": cwd}
                reply = box.runtime("POST", "/terminals/commands", body)
                if reply.status >= 400:
                    continue
                result = reply.json["result"]
                if result["exitCode"] == 0:
                    self.assertTrue(result["stdout"].startswith("/"), result)
                    self.assertNotIn("unreachable", result["stdout"])

    def test_A16_namespaces_of_the_agent_cannot_be_entered(self):
        box = self.sandbox("dev")
        for kind in ("mnt", "net", "pid", "user"):
            entered = box.run("nsenter", f"--{kind}=/proc/1/ns/{kind}", "true", check=False)
            self.assertNotEqual(entered.returncode, 0, kind)

    @unittest.skipUnless(os.environ.get("ATOLL_DATA"), "ATOLL_DATA (the data directory) is not set")
    def test_A21_no_setuid_file_on_disk_belongs_to_root_of_the_host(self):
        box = self.sandbox("dev")
        box.sh("cp /usr/bin/id /setuid-canary && chmod 6755 /setuid-canary && sync")
        find = ["find", os.environ["ATOLL_DATA"], os.environ["ATOLL_POOL"], "-perm", "-4000"]
        # The control: the file is there at all.
        found = subprocess.check_output([*find, "-name", "setuid-canary"], text=True)
        self.assertIn("setuid-canary", found)
        self.assertEqual(subprocess.check_output([*find, "-uid", "0"], text=True), "")
