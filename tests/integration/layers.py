"""The template's layers, for a server of a test's own."""

import contextlib
import os
import secrets
import shutil
import subprocess

from program import TEMPLATE


def take_layers(target):
    """The template's layers, in a directory of their own. Linking and unlinking ten thousand files takes seconds, so a
    server that ends leaves its copy in `spare-*` for the next one."""
    for spare in TEMPLATE.glob("spare-*"):
        with contextlib.suppress(OSError):  # another one took it, or it is on another file system
            return os.rename(spare, target)
    return link_tree(TEMPLATE / "layers", target)


def give_layers(source):
    with contextlib.suppress(OSError):
        os.rename(source, TEMPLATE / f"spare-{secrets.token_hex(6)}")


def link_tree(source, target):
    """A copy of a directory that shares its files, where one file system holds both."""
    done = subprocess.run(["cp", "-al", source, target], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)
