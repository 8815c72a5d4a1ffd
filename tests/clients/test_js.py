#!/usr/bin/env python3
"""sdk/js as npm would install it, and the frameworks that it is for, from the registry and in exact versions."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

from client_case import CACHE, CLIENTS, ClientCase, free_port, main, node_packages, releases, wait_until
from fixture import http
from net_case import NetCase

SCRIPTS = CLIENTS / "js"
SOURCE = CLIENTS.parent.parent / "sdk" / "js"
OLDEST_NODE = "18.20.8"
AI = {"7.0.169": ("@ai-sdk/harness@1.0.122",), "7.0.137": ()}
# The newest, the last with the older contract, and the oldest that is looked at.
EVE = {"0.80.1": "provider", "0.63.0": "backend", "0.18.2": "backend"}
EVE_AI = "7.0.137"


def npm(*arguments, cwd):
    done = subprocess.run(["npm", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise AssertionError(f"npm {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Package:
    """The package, compiled and packed outside of the repository, once."""

    folder = None

    @classmethod
    def get(cls):
        if cls.folder is None:
            cls.folder = cls.build()
        return cls.folder

    @staticmethod
    def build():
        tools = node_packages("js-tools", "typescript@5.9.3", "@types/node@20.19.0")
        work = CACHE / "js-package"
        shutil.rmtree(work, ignore_errors=True)
        ignored = shutil.ignore_patterns("node_modules", "dist", "*.tgz")
        shutil.copytree(SOURCE, work / "source", ignore=ignored)
        (work / "source" / "node_modules").symlink_to(tools / "node_modules")
        archive = npm("pack", "--silent", cwd=work / "source").split()[-1]
        subprocess.run(["tar", "xzf", work / "source" / archive, "-C", work], check=True, timeout=60)
        return work / "package"


def app_in(folder, name, *trees):
    """A directory whose programs find the packages of the folder and ours."""
    app = folder / "apps" / name
    shutil.rmtree(app, ignore_errors=True)
    for tree in trees:
        if tree.is_dir():
            shutil.copytree(tree, app, dirs_exist_ok=True)
        else:
            app.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree, app)
    shutil.copytree(Package.get(), app / "node_modules" / "atoll-sandbox")
    return app


def node(version):
    return node_packages(f"node-{version}", f"node@{version}") / "node_modules" / "node" / "bin" / "node"


def typecheck(folder, source, *options):
    """Against the types of the packages that are really there."""
    compiler = node_packages("js-tools", "typescript@5.9.3", "@types/node@20.19.0") / "node_modules"
    app = app_in(folder, f"types-{source.stem}", source)
    (app / "package.json").write_text('{"type": "module"}')
    done = subprocess.run(
        ["node", compiler / "typescript" / "bin" / "tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022",
         "--module", "nodenext", "--moduleResolution", "nodenext", "--types", "node",
         "--typeRoots", compiler / "@types", *options, app / source.name],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)


class TestPackage(ClientCase):
    def entry(self):
        return Package.get() / "dist" / "index.js"

    def over_tcp(self):
        return {"ATOLL_URL": self.url, "ATOLL_API_KEY": self.api_key}

    def test_layout(self):
        described = json.loads((Package.get() / "package.json").read_text())
        self.assertEqual(described.get("dependencies", {}), {})
        for entry in described["exports"].values():
            for file in entry.values() if isinstance(entry, dict) else [entry]:
                self.assertTrue((Package.get() / file).is_file(), file)
        self.assertTrue((Package.get() / "README.md").is_file())

    def test_every_call_over_the_socket(self):
        self.run_program(["node", SCRIPTS / "client.mjs", self.entry()], {})

    def test_every_call_over_tcp_on_the_oldest_node(self):
        self.run_program([node(OLDEST_NODE), SCRIPTS / "client.mjs", self.entry()], self.over_tcp())

    def test_orchestrator(self):
        self.run_program(["node", SCRIPTS / "orchestrator.mjs", self.entry()], self.over_tcp())

    def test_backend_of_eve_by_itself(self):
        eve = Package.get() / "dist" / "eve.js"
        self.run_program(["node", SCRIPTS / "eve-backend.mjs", eve, self.entry()], self.over_tcp())

    def test_examples(self):
        folder = node_packages("js-ai-7.0.169", "ai@7.0.169", "zod", *AI["7.0.169"])
        app = app_in(folder, "examples", SOURCE / "examples")
        for example in sorted(app.glob("*.mjs")):
            with self.subTest(example.name):
                done = subprocess.run(
                    ["node", example], env={**os.environ, **self.over_tcp()}, capture_output=True, text=True,
                    timeout=120, check=False,
                )  # fmt: skip
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class TestAi(ClientCase):
    def test_session_and_harness(self):
        for version, more in releases(AI.items()):
            with self.subTest(version):
                folder = node_packages(f"js-ai-{version}", f"ai@{version}", "zod", *more)
                app = app_in(folder, "ai", SCRIPTS / "ai.mjs")
                self.run_program(["node", app / "ai.mjs"], {"ATOLL_URL": self.url, "ATOLL_API_KEY": self.api_key})
                for snapshot in http("GET", "/v1/snapshots").json["snapshots"]:
                    http("DELETE", f"/v1/snapshots/{snapshot['snapshotId']}")

    def test_types(self):
        folder = node_packages("js-ai-7.0.169", "ai@7.0.169", "zod", *AI["7.0.169"])
        typecheck(folder, SCRIPTS / "types" / "ai.ts")
        typecheck(folder, SCRIPTS / "types" / "harness.ts")


class EveApp:
    """An app on one version of eve, with Atoll for its sandboxes."""

    def __init__(self, version, name):
        packages = (f"eve@{version}", f"ai@{EVE_AI}", "zod", "typescript")
        self.folder = node_packages(f"js-eve-{version}", *packages)
        eve = SCRIPTS / "eve"
        self.path = app_in(self.folder, name, eve / "common", eve / EVE[version], eve / "drive.mjs")
        needs = {"eve": version, "ai": EVE_AI, "zod": "*", "atoll-sandbox": "*"}
        described = {"name": name, "private": True, "type": "module", "dependencies": needs}
        (self.path / "package.json").write_text(json.dumps(described))
        self.env = {**os.environ, "EVE_TELEMETRY_DISABLED": "1", "PATH": f"{node('24').parent}:{os.environ['PATH']}"}
        self.log = self.path / "start.log"
        self.process = None
        self.host = None

    def eve(self, *arguments):
        return ["node", str(self.folder / "node_modules" / "eve" / "bin" / "eve.js"), *arguments]

    def run(self, command, seconds=240):
        done = subprocess.run(
            command, cwd=self.path, env=self.env, capture_output=True, text=True, timeout=seconds, check=False
        )
        if done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
        return done.stdout

    def start(self):
        port = free_port()
        self.host = f"http://127.0.0.1:{port}"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.eve("start", "--host", "127.0.0.1", "--port", str(port)), cwd=self.path, env=self.env,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        wait_until(self.answers, 120, f"eve listens; see {self.log}")

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"eve start ended:\n{self.log.read_text()[-6000:]}")
        try:
            urllib.request.urlopen(self.host + "/eve/v1/health", timeout=2).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)

    def drive(self, what, state=None):
        more = [] if state is None else [json.dumps(state)]
        out = self.run(["node", str(self.path / "drive.mjs"), self.host, what, *more])
        return json.loads(out.strip().splitlines()[-1])


def snapshots():
    return [one for one in http("GET", "/v1/snapshots").json["snapshots"] if one["tags"][0].startswith("eve-")]


def delete_snapshots():
    for one in snapshots():
        http("DELETE", f"/v1/snapshots/{one['snapshotId']}")


class TestEve(ClientCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(delete_snapshots)

    def test_evals(self):
        for version in releases(EVE):
            with self.subTest(version):
                app = EveApp(version, "evals")
                app.run(app.eve("eval", "--verbose"))
                made = snapshots()
                self.assertEqual(len(made), 1, "one template for one app")
                app.run(app.eve("eval", "--verbose"))
                self.assertEqual(snapshots(), made, "it is prepared once")
                delete_snapshots()

    def test_production(self):
        """Sessions that outlive eve and Atoll; a cancelled turn leaves nothing running."""
        for version in releases(("0.80.1", "0.63.0")):
            with self.subTest(version):
                app = EveApp(version, "production")
                self.addCleanup(app.stop)
                app.run(app.eve("build"))
                app.start()
                first = app.drive("create")
                self.assertEqual(first["outputs"][0]["stdout"], "one\nhello from the workspace\n")
                boxes = http("GET", "/v1/sandboxes").json["sandboxes"]
                self.assertEqual(len(boxes), 1, boxes)
                self.assertEqual(self.server.stop(), 0)
                self.server.start()
                second = app.drive("resume", first["state"])
                self.assertEqual(second["outputs"][0]["stdout"], "one\n", "after a restart of Atoll")
                app.stop()
                app.start()
                third = app.drive("resume", second["state"])
                self.assertEqual(third["outputs"][0]["stdout"], "one\n", "after a restart of eve")
                boxes = http("GET", "/v1/sandboxes").json["sandboxes"]
                self.assertEqual(len(boxes), 1, "the same sandbox all along")
                cancelled = app.drive("cancel")["outputs"][0]["stdout"].split()
                self.assertIn("begun", cancelled)
                self.assertNotIn("never", cancelled)
                self.assertEqual(cancelled[-1], "0", "the whole tree is gone")
                app.stop()
                self.server.delete_all()

    def test_provider_that_bundlers_follow(self):
        app = EveApp("0.80.1", "static")
        sandbox = app.path / "agent" / "sandbox" / "sandbox.ts"
        sandbox.write_text(sandbox.read_text().replace("atoll-sandbox/eve", "atoll-sandbox/eve/provider"))
        app.run(app.eve("eval", "--verbose"))

    def test_a_long_command_outlives_its_turn(self):
        app = EveApp("0.80.1", "long")
        self.addCleanup(app.stop)
        app.run(app.eve("build"))
        app.start()
        let_go, later = app.drive("long")["outputs"]
        self.assertNotEqual(let_go.get("status"), "completed", let_go)
        self.assertEqual(later["stdout"], "finished\n", later)

    def test_types(self):
        for version, contract in releases(EVE.items()):
            with self.subTest(version):
                packages = (f"eve@{version}", f"ai@{EVE_AI}", "zod", "typescript")
                typecheck(node_packages(f"js-eve-{version}", *packages), SCRIPTS / "types" / f"eve-{contract}.ts")


class TestEveNetwork(NetCase):
    def test_headers_are_injected(self):
        """Into requests to one host; the sandbox never has them, and reaches no other."""
        self.addCleanup(delete_snapshots)
        for version in releases(("0.80.1", "0.63.0")):
            with self.subTest(version):
                app = EveApp(version, "network")
                self.addCleanup(app.stop)
                app.run(app.eve("build"))
                app.start()
                reached, refused = app.drive("network")["outputs"]
                self.assertIn('"path": "/echo"', reached["stdout"], reached)
                self.assertEqual(self.internet.seen("/echo")[-1]["headers"]["Authorization"], "Bearer injected")
                self.assertEqual(reached["stdout"].split()[-1], "0", "not in its environment")
                self.assertNotIn("path", refused["stdout"], refused)
                self.assertIn("curl: ", refused["stderr"])
                app.stop()


if __name__ == "__main__":
    main()
