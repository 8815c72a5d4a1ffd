#!/usr/bin/env python3
"""Runs all attack cases but the controls against a server of its own; arguments go to run_attacks.py.

A case that is skipped must stand in tests/expected_skips.txt, as attack_product.<case>.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import fixture  # noqa: E402
import run_attacks  # noqa: E402

SKIP = re.compile(r"^(\w+) \(([\w.]+)\).*\.\.\. skipped (.*)$", re.MULTILINE)


def main():
    if os.geteuid() != 0:
        print("skipped: the attack cases need root")
        sys.exit(fixture.SKIPPED)
    # The cases expect what a server has by default.
    server = fixture.AtollServer(reserve=4, pool=4).start()
    modules = sys.argv[1:] or [name for name in run_attacks.MODULES if name != "cases_controls"]
    environment = {**os.environ, "ATOLL_SOCKET": server.socket, "ATOLL_DATA": str(server.data),
                   "ATOLL_POOL": f"/proc/{server.launcher_pid()}/root/pool"}
    command = [sys.executable, str(HERE / "run_attacks.py"), *modules]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)  # fmt: skip
    print(done.stdout)
    if done.returncode != 0:
        print("---- the server's log\n" + server.log_tail())
    allowed = fixture.expected_skips()
    unexpected = [f"{where}: {why}" for _, where, why in SKIP.findall(done.stdout) if f"attack_product.{where}" not in allowed]
    for line in unexpected:
        print(f"skipped, but not in expected_skips.txt: {line}")
    server.close()
    sys.exit(1 if done.returncode != 0 or unexpected else 0)


if __name__ == "__main__":
    main()
