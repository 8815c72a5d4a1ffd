"""What the host knows of a process."""

import pathlib
import re


def read_text(path):
    """Empty where it has gone."""
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""


def children_of(pid):
    """Pids by name, the youngest where several have the same."""
    found = {}
    for child in read_text(f"/proc/{pid}/task/{pid}/children").split():
        found[read_text(f"/proc/{child}/comm").strip()] = int(child)
    return found


def rss_bytes(pid):
    found = re.search(r"VmRSS:\s+(\d+) kB", read_text(f"/proc/{pid}/status"))
    return int(found[1]) * 1024 if found else 0


def alive(pid):
    state = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"
