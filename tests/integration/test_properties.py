#!/usr/bin/env python3
"""Requests that schemathesis makes up from the server's description, against the server: no faults, and every answer is
as described. Needs build/venv, which `./dev test --full` makes; registered only where that is there."""

import json
import os
import pathlib
import re
import subprocess

import fixture
from fixture import TIME_FACTOR, AtollCase, http

PROGRAM = pathlib.Path(os.environ.get("ATOLL_SCHEMATHESIS", "schemathesis"))
CHECKS = (
    "no_fault,errors_have_one_shape,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)
# Streams, long polls and the archive of everything.
TOO_LONG = r"/events$|/wait$|/backup$|/network/log$"
RUNTIME = r"/runtime/|/sidecar-proxy/"
REQUEST_SECONDS = 20 * TIME_FACTOR
SECONDS = 850 if TIME_FACTOR > 1 else 420  # within what ctest allows
EXAMPLES = 15
FEWEST_OPERATIONS = 40


class Properties(AtollCase):
    server_options = {"listen": "127.0.0.1:0"}

    def remove_templates(self):
        self.server.delete_all()  # they are in use
        for name in {one["name"] for one in http("GET", "/v1/templates?all=true").json["templates"]} - {"base"}:
            self.assertEqual(http("DELETE", f"/v1/templates/{name}").status, 200)

    def test_control_routes(self):
        self.addCleanup(self.remove_templates)
        lines = [json.loads(line) for line in fixture.read_text(self.server.log).splitlines() if '"url"' in line]
        key = (self.server.data / "api-key").read_text().strip()
        self.create(name="known")
        command = [
            PROGRAM, "run", lines[-1]["url"] + "/openapi.json", "--header", f"Authorization: Bearer {key}",
            "--exclude-path-regex", f"{RUNTIME}|{TOO_LONG}", "--checks", CHECKS, "--phases", "examples,coverage,fuzzing",
            "--max-examples", str(EXAMPLES), "--seed", "1", "--generation-deterministic", "--request-timeout",
            str(REQUEST_SECONDS), "--no-color",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent), "SCHEMATHESIS_HOOKS": "schemathesis_hooks"}
        done = subprocess.run(
            command, cwd=self.server.home, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tested = re.search(r"Tested: (\d+)", done.stdout)
        self.assertGreaterEqual(int(tested[1]), FEWEST_OPERATIONS, done.stdout)
        self.assertTrue(self.server.healthy())


if __name__ == "__main__":
    fixture.main()
