"""Jails that lack what the product adds. The probes must FAIL in them, or they prove nothing."""

import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
GROUPS = ["lib", "a_filesystem", "b_kernel", "c_visibility", "d_resources", "probes"]
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "ATTACK_BUNDLED": "1", "LC_ALL": "C"}

# Namespaces and no capabilities, but no system call filter, no masks and a dumpable PID 1. Started
# by an unprivileged user, so that what gets through reaches nothing of the host's.
BWRAP = [
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
    "bwrap", "--unshare-all", "--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--die-with-parent",
    "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/bin", "/bin",
    "--symlink", "usr/sbin", "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
    "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/",
]  # fmt: skip

# Root of the host in namespaces of its own, for the probes that an unprivileged jail passes by
# itself. The capabilities with which a probe could change the host are dropped.
ROOT_IN_NAMESPACES = [
    "unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child",
    "--mount-proc", "--propagation", "private",
    "setpriv", "--bounding-set",
    "-sys_time,-sys_boot,-sys_module,-sys_rawio,-sys_pacct",
    "bash", "-c",
    """mount -t tmpfs none /tmp && mkdir /tmp/lower /tmp/upper /tmp/work /tmp/merged &&
    mount -t overlay -o lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work o /tmp/merged
    exec "$@" """,
    "jail",
]  # fmt: skip

# The weaknesses that neither jail has by itself, planted: a writable agent, an inherited
# descriptor, a daemon in sight, code from a deleted file, other people's shared memory and sockets,
# the host's interfaces.
PLANTED = [
    *BWRAP, "--share-net",
    "bash", "-c",
    """cp /usr/bin/sleep /tmp/atoll-agent; cp /usr/bin/sleep /tmp/sshd; cp /usr/bin/bash /tmp/bash
    (/tmp/atoll-agent 60 & /tmp/sshd 60 &) >/dev/null 2>&1
    ipcmk -M 4096 >/dev/null; touch /dev/shm/left-behind
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/atoll.sock")'
    exec 9</etc/passwd
    script=$3; shift 4; exec /tmp/bash -c "rm /tmp/bash; $script" probes "$@" """,
    "jail",
]  # fmt: skip

JAILS = {"bwrap": BWRAP, "root-in-namespaces": ROOT_IN_NAMESPACES, "planted": PLANTED}


def bundle():
    """All probe files as one script, for `bash -c <script> probes all`."""
    return "\n".join((HERE / "probes" / f"{group}.sh").read_text() for group in GROUPS)


def parse(output):
    """Maps each probe id to its line."""
    lines = [line.split(maxsplit=2) for line in output.splitlines()]
    return {words[1]: " ".join(words) for words in lines if words[:1] in (["PASS"], ["FAIL"])}


def run_in_jail(jail, ids=("all",), timeout=180):
    command = [*JAILS[jail], "bash", "-c", bundle(), "probes", *ids]
    done = subprocess.run(
        command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    results = parse(done.stdout)
    if not results:
        raise RuntimeError(f"jail {jail} ran no probe: {done.stderr}")
    return results


def expected_failures(jail):
    """The ids that control_expectations.txt lists for the jail."""
    lines = (HERE / "control_expectations.txt").read_text().splitlines()
    words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return sorted(probe for name, *probes in words if name == jail for probe in probes)


def bundle_ids():
    """Every probe there is, so that one that does not run is missed."""
    listed = subprocess.run(
        ["bash", "-c", bundle(), "probes", "list"], env=ENVIRONMENT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return listed.stdout.split()
