#!/usr/bin/env python3
"""E2B's code interpreter packages against this server, and pandas and matplotlib from Debian in a template."""

import base64
import os
import pathlib

from client_case import CACHE, CLIENTS, ClientCase, http, main, node_packages, python_with, releases
from fixture import Box, cli, unique

# Each with the release of `e2b` that it is used with: the oldest are the first that can be told where sandboxes are.
JAVASCRIPT = [("2.8.0", "2.51.0"), ("2.7.2", "2.45.0")]
PYTHON = [("2.11.5", "2.63.0"), ("2.9.0", "2.45.1")]
DATA = pathlib.Path(os.environ.get("ATOLL_CACHE", CACHE.parent), "python-data")


class TestPackages(ClientCase):
    def environment(self):
        key = "e2b_" + self.api_key.encode().hex()
        return {"E2B_API_URL": self.url, "E2B_SANDBOX_URL": self.url, "E2B_API_KEY": key}

    def test_javascript(self):
        for version, base in releases(JAVASCRIPT):
            with self.subTest(version):
                name = f"e2b-interpreter-js-{version}"
                folder = node_packages(name, f"@e2b/code-interpreter@{version}", f"e2b@{base}")
                package = folder / "node_modules" / "@e2b" / "code-interpreter" / "dist" / "index.mjs"
                self.run_program(["node", CLIENTS / "code_interpreter" / "session.mjs", package], self.environment())

    def test_python(self):
        for version, base in releases(PYTHON):
            with self.subTest(version):
                name = f"e2b-interpreter-py-{version}"
                python = python_with(name, f"e2b-code-interpreter=={version}", f"e2b=={base}")
                self.run_program([python, CLIENTS / "code_interpreter" / "session.py"], self.environment())


class TestData(ClientCase):
    """Debian's pandas and matplotlib, in a template that has them, which is what the packages ask for by name."""

    def setUp(self):
        super().setUp()
        if not DATA.is_dir():
            self.skipTest(f"{DATA} is missing (./dev setup)")

    def run_code(self, box, source):
        reply = box.runtime("POST", "/code/run", {"language": "python", "source": source}, timeout=180)
        self.assertEqual(reply.status, 200, reply)
        self.assertNotIn("error", reply.json["result"], reply.json)
        return reply.json["result"]["results"]

    def test_frames_and_figures(self):
        name = unique("data")
        cli("create", "--name", name, "--memory", "1g")
        box = Box(http("GET", f"/v1/sandboxes/{name}").json["id"])
        for folder in ("usr/lib", "usr/share", "etc"):
            if (DATA / folder).is_dir():
                cli("cp", str(DATA / folder), f"{name}:/{folder.rpartition('/')[0]}")
        # What Debian's packages leave to the alternatives of the machine that they are installed on.
        link = "cd /usr/lib/*-linux-gnu && ln -sf blas/libblas.so.3 lapack/liblapack.so.3 ."
        self.assertEqual(box.exec("/bin/sh", "-c", link)["exitCode"], 0)
        frame = "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': ['x', None]}, index=['p', 'q'])\n"
        part = self.run_code(box, frame + "df")[0]
        self.assertEqual(part["type"], "dataframe")
        self.assertEqual([column["name"] for column in part["columns"]], ["index", "a", "b"])
        self.assertEqual(part["columns"][1]["dtype"], "int64")
        self.assertEqual(part["rows"], [["p", 1, "x"], ["q", 2, None]])
        self.assertFalse(part["truncated"])
        self.assertTrue(self.run_code(box, "pd.DataFrame({'n': range(5000)})")[0]["truncated"])
        for source, count in [
            ("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()", 1),
            ("plt.plot([1, 2, 3]);", 1),
            ("fig, ax = plt.subplots(); ax.bar(['a'], [1]); fig", 1),
            ("for i in range(2): plt.figure(); plt.plot([i])", 2),
            ("_ = df.plot()", 1),
            ("1;", 0),
        ]:
            with self.subTest(source):
                images = [part for part in self.run_code(box, source) if part["type"] == "image"]
                self.assertEqual(len(images), count)
                for image in images:
                    self.assertEqual(base64.b64decode(image["data"])[:4], b"\x89PNG")
        sub = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import matplotlib.pyplot']).returncode"
        self.assertEqual(self.run_code(box, sub)[0]["value"], "0")


if __name__ == "__main__":
    main()
