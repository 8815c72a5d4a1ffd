"""What tests of other people's packages share: the packages, in exact versions, and a server to run them against.

Packages are installed once, below $ATOLL_CACHE/clients, and never into the repository.
"""

import os
import pathlib
import socket
import subprocess
import sys

CLIENTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(CLIENTS.parent / "integration"))

from fixture import AtollCase, AtollServer, http, main, wait_until  # noqa: E402, F401

CACHE = pathlib.Path(os.environ.get("ATOLL_CACHE", "/var/cache/atoll")) / "clients"
INSTALL_SECONDS = 600


def releases(known):
    """Of what is known, the newest first, those to run: all, or the newest."""
    return list(known)[:1] if os.environ.get("ATOLL_CLIENTS") == "newest" else list(known)


def _install(folder, commands):
    """Runs the commands once; a mark says that all of them have succeeded."""
    mark = folder / ".installed"
    if mark.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for command in commands:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    mark.touch()
    return folder


def node_packages(name, *packages):
    """A directory whose node_modules has these packages ("e2b@2.51.0")."""
    folder = CACHE / name
    npm = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(folder), *packages]
    return _install(folder, [npm])


def python_with(name, *packages):
    """The interpreter of an environment that has these packages ("e2b==2.63.0")."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    _install(
        folder,
        [[sys.executable, "-m", "venv", "."], [python, "-m", "pip", "install", "--quiet", *packages]],
    )
    return python


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ClientCase(AtollCase):
    """A server that listens on TCP, for clients that know nothing else."""

    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.server_options = {"listen": f"127.0.0.1:{port}"}
        cls.url = f"http://127.0.0.1:{port}"
        super().setUpClass()

    @property
    def api_key(self):
        return (self.server.data / "api-key").read_text().strip()

    def run_program(self, command, env, seconds=240):
        """A program that says how it fares, line by line; its last line is "ok"."""
        done = subprocess.run(
            [str(part) for part in command],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        self.assertTrue(done.stdout.rstrip().endswith("ok"), done.stdout)
        return done.stdout
