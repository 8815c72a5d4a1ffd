"""The files of a server's sandboxes, which live in a file system of their own."""

import contextlib
import pathlib
import subprocess

from product import wait_until


def mount(image, view):
    """A second device for the same image would destroy it."""
    attached = subprocess.run(["losetup", "-n", "-O", "NAME", "-j", image], capture_output=True, text=True, check=True)
    source = attached.stdout.split() or ["-oloop", image]
    return subprocess.run(["mount", "-t", "btrfs", *source, view], stderr=subprocess.DEVNULL, check=False).returncode == 0


@contextlib.contextmanager
def pool_of(server):
    """The pool as the launcher sees it; where none runs it is mounted for a moment."""
    running = server.process is not None and server.process.poll() is None
    launcher = server.children().get("atoll-launcher") if running else None
    image = server.data / "pool.img"
    if launcher is not None:
        yield pathlib.Path(f"/proc/{launcher}/root/pool")
    elif not image.exists():
        yield server.data / "pool"
    else:
        view = server.home / "pool-view"
        view.mkdir(exist_ok=True)
        # The kernel may still be letting go of the launcher's.
        wait_until(lambda: mount(image, view), 10, "the pool can be mounted")
        try:
            yield view
        finally:
            subprocess.run(["umount", view], check=True)
            view.rmdir()
