#!/usr/bin/env python3
"""./dev bench clients --json FILE: what the users of E2B's, eve's and our own packages wait for, on loopback."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path("@PROJECT_SOURCE_DIR@")
BUILD = pathlib.Path("@CMAKE_BINARY_DIR@")
os.environ.setdefault("ATOLL_BIN", str(BUILD / "atoll"))
os.environ.setdefault("ATOLL_TEST_TEMPLATE", str(BUILD / "test-template"))
sys.path[:0] = [str(SOURCE / "tests" / "clients"), str(SOURCE / "tests" / "integration"), str(SOURCE / "tests" / "attack")]

from client_case import free_port, node_packages  # noqa: E402
from import_template import import_once  # noqa: E402
from product import wait_until  # noqa: E402
from server import AtollServer  # noqa: E402
from test_js import Package  # noqa: E402

# Apart from its version: CMake would take a name between two @ for a variable of its own.
INTERPRETER = "@e2b/code-interpreter"
# What node itself takes to start is added to the goal that ends in it.
NODE_MARGIN_MS = 15
GOALS = {
    "tti_ms": 12, "tti_node_ms": None, "burst100_wall_ms": 800, "eve_resume_ms": 5, "first_runcode_ms": 50,
    "runcode_ms": 10, "kernel_fork_ms": 50,
}  # fmt: skip


def measure(server, count):
    package = Package.get()
    base = node_packages("e2b-js-2.51.0", "e2b@2.51.0") / "node_modules"
    interpreter = node_packages("e2b-interpreter-js-2.8.0", f"{INTERPRETER}@2.8.0", "e2b@2.51.0") / "node_modules"
    key = (server.data / "api-key").read_text().strip()
    url = f"http://{server.listen}"
    environment = {
        **os.environ, "E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": "e2b_" + key.encode().hex(),
        "ATOLL_URL": url, "ATOLL_API_KEY": key,
    }  # fmt: skip
    described = json.loads((package / "package.json").read_text())["exports"]
    entries = [package / target(described[name]) for name in (".", "./eve")]
    command = [
        "node", SOURCE / "bench" / "clients" / "measure.mjs", base / "e2b" / "dist" / "index.mjs",
        interpreter / "@e2b" / "code-interpreter" / "dist" / "index.mjs", *entries, count,
    ]  # fmt: skip
    done = subprocess.run(
        [str(part) for part in command], env=environment, stdout=subprocess.PIPE, text=True, check=False, timeout=1800
    )
    if done.returncode != 0:
        sys.exit(f"the measurement failed\n{server.log_tail()}")
    return json.loads(done.stdout.splitlines()[-1])


def target(entry):
    return entry if isinstance(entry, str) else target(entry.get("import") or entry["default"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--count", type=int, default=100)
    arguments = parser.parse_args()
    import_once(BUILD / "test-template")
    # As `atoll serve` is by default, but for the ports and places.
    server = AtollServer(listen=f"127.0.0.1:{free_port()}", reserve=4, pool=4)
    try:
        server.start()
        wait_until(server.settled, 30, "the pool is full")
        result = measure(server, arguments.count)
        server.close()
    finally:
        server.destroy()
    goals = {**GOALS, "tti_node_ms": result["details"]["node_start_ms"] + NODE_MARGIN_MS}
    missed = 0
    for key, goal in goals.items():
        good = result[key] <= goal
        missed += not good
        print(f"{key:24} {result[key]:12.3f}   goal: at most {goal:g}{'' if good else '   MISSED'}")
    for key, value in result["details"].items():
        print(f"{key:24} {value:12.3f}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
