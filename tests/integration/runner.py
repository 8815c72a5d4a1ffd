"""Runs the tests of one file."""

import fnmatch
import os
import pathlib
import sys
import time
import unittest

from product import SANITIZERS
from program import BIN, TEMPLATE, TESTS
from server import AtollServer

SKIPPED = 77  # ctest's SKIP_RETURN_CODE


class Result(unittest.TextTestResult):
    """Says how long each test took, and what the server said where one failed."""

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def stopTest(self, test):
        self.stream.writeln(f"    {time.monotonic() - self.begun:.2f} s")
        super().stopTest(test)

    def show_log(self):
        if AtollServer.current is not None:
            self.stream.writeln("---- the server's log\n" + AtollServer.current.log_tail() + "\n----")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.show_log()

    def addError(self, test, err):
        super().addError(test, err)
        self.show_log()


def expected_skips():
    lines = (TESTS / "expected_skips.txt").read_text().splitlines()
    names = {line.partition("#")[0].strip() for line in lines} - {""}
    return {name.removeprefix("thread: ") if SANITIZERS == "thread" else name for name in names}


def main():
    if os.geteuid() != 0:
        print("skipped: the integration tests make real sandboxes, which needs root")
        sys.exit(SKIPPED)
    if not BIN or not (TEMPLATE / "templates/base.json").exists():
        print(f"the program (ATOLL_BIN={BIN}) or the template (ATOLL_TEST_TEMPLATE={TEMPLATE}) is missing")
        sys.exit(1)
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result)
    result = unittest.main(module="__main__", testRunner=runner, exit=False).result
    unexpected = 0
    for test, reason in result.skipped:
        name = f"{pathlib.Path(sys.argv[0]).stem}.{test.id().partition('.')[2]}"
        allowed = any(fnmatch.fnmatch(name, one) for one in expected_skips())
        unexpected += not allowed
        print(f"skipped{'' if allowed else ', but not in expected_skips.txt'}: {name}: {reason}")
    sys.exit(0 if result.wasSuccessful() and not unexpected else 1)
