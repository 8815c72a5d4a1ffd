#!/usr/bin/env python3
"""Runs the attack cases A to F. Usage: run_attacks.py [-k pattern]... [cases_files.Links...]...

Without ATOLL_SOCKET only the controls (cases_controls) run. See product.py for the environment, README.md for which
case is where. Python's standard library only.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True

MODULES = [
    "cases_controls", "cases_probes", "cases_paths", "cases_templates", "cases_visibility", "cases_resources",
    "cases_floods", "cases_teardown", "cases_files", "cases_archives",
]  # fmt: skip


if __name__ == "__main__":
    chosen = any(argument.startswith("cases_") for argument in sys.argv[1:])
    unittest.main(module=None, argv=[*sys.argv, *([] if chosen else MODULES)], verbosity=2)
