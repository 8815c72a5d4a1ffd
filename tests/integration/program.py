"""The program under test: where it is, and how to call it.

ATOLL_BIN               the atoll program
ATOLL_TEST_TEMPLATE     a data directory with the template `base` imported (import_template.py makes it)
"""

import os
import pathlib
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "attack"))
sys.dont_write_bytecode = True

import product  # noqa: E402

BIN = os.environ.get("ATOLL_BIN") or shutil.which("atoll") or ""
TEMPLATE = pathlib.Path(os.environ.get("ATOLL_TEST_TEMPLATE", "/nonexistent"))
product.BIN = BIN


def cli(*arguments, **options):
    return product.cli(*arguments, **options)


def raw_cli(*arguments, timeout=60, **options):
    """The CLI with its output as bytes; never raises for an exit code."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [BIN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
        check=False, **options,
    )  # fmt: skip


def start_cli(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([BIN, *arguments], **options)
