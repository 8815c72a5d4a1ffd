#!/usr/bin/env python3
"""The Python package: built as a wheel, installed into an environment of its own, and driven there."""

import subprocess

from client_case import CACHE, CLIENTS, ClientCase, main, python_with

PACKAGE = CLIENTS.parent.parent / "sdk" / "python"


def package_python(name, *more):
    """An environment that has the package as its users would have it: from a wheel, made anew each time."""
    python = python_with(name, "httpx", "setuptools>=61", "wheel", *more)
    wheels = CACHE / "wheels"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(PACKAGE)]
    subprocess.run(build, check=True, timeout=300)
    (wheel,) = wheels.glob("atoll_sandbox-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--force-reinstall", str(wheel)], check=True, timeout=300)
    return python


class TestPython(ClientCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = package_python("atoll-py")

    def environment(self):
        return {"ATOLL_URL": self.url, "ATOLL_API_KEY": self.api_key}

    def run_part(self, name, env=None):
        return self.run_program([self.python, CLIENTS / "python" / name], env or self.environment())

    def test_client(self):
        self.run_part("client.py")

    def test_client_over_the_socket(self):
        self.run_part("client.py", {"ATOLL_URL": "unix:" + self.server.socket, "ATOLL_API_KEY": ""})

    def test_openenv_behaviours(self):
        self.run_part("openenv_behaviours.py")

    def test_openenv_harness(self):
        self.run_part("openenv_harness.py")

    def test_openenv_package(self):
        """The real one. It has no protocols of sandboxes in this version, but the loop that uses them."""
        python = package_python("atoll-openenv", "openenv==0.10.0")
        self.run_program([python, CLIENTS / "python" / "openenv_package.py"], self.environment())

    def test_examples(self):
        for example in sorted((PACKAGE / "examples").glob("*.py")):
            with self.subTest(example.name):
                done = subprocess.run(
                    [str(self.python), str(example)],
                    env={"PATH": "/usr/bin:/bin", **self.environment()},
                    capture_output=True,
                    text=True,
                    timeout=120,
                    check=False,
                )
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    main()
