#!/usr/bin/env python3
"""The C++ client as a package: installed, found by another project, and used by its program."""

import os
import pathlib
import subprocess
import tempfile

from client_case import CLIENTS, ClientCase, main

ROOT = CLIENTS.parent.parent
BUILD = pathlib.Path(os.environ["ATOLL_BIN"]).resolve().parent


class TestCpp(ClientCase):
    def run_tool(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")

    def test_example(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix, build = pathlib.Path(folder, "prefix"), pathlib.Path(folder, "build")
            self.run_tool("cmake", "--install", BUILD, "--component", "client", "--prefix", prefix)
            self.run_tool("cmake", "-G", "Ninja", "-S", ROOT / "sdk/cpp/example", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                          "-DCMAKE_CXX_COMPILER=clang++-16")  # fmt: skip
            self.run_tool("cmake", "--build", build)
            env = {**os.environ, "ATOLL_URL": self.url, "ATOLL_API_KEY": self.api_key}
            done = subprocess.run([build / "example"], env=env, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, "hello from sandbox\nkept\nkept\n"), done.stderr)


if __name__ == "__main__":
    main()
