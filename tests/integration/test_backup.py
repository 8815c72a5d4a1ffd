#!/usr/bin/env python3
"""Backups: made while the server works, brought back elsewhere and in place, refused when damaged."""

import http.client
import json
import os
import pathlib
import stat
import subprocess
import threading
import unittest

import fixture
from fixture import AtollServer, Box, cli, http as request, wait_until
from pool_files import pool_of


def elsewhere():
    """The environment of somebody who has not been told which server to ask."""
    return {name: value for name, value in os.environ.items() if name not in ("ATOLL_SOCKET", "ATOLL_URL")}


class Backups(unittest.TestCase):
    def server(self, **options):
        server = AtollServer(**options)
        self.addCleanup(lambda: (server.use(), server.close()))  # each asks its own
        return server

    def setUp(self):
        self.first = self.server(on_exit="keep").start()
        self.file = self.first.home / "backup.tar.zst"

    def create(self, **body):
        reply = request("POST", "/v1/sandboxes", body)
        self.assertEqual(reply.status, 201, reply)
        return Box(reply.json["id"])

    def backup(self, *more, **options):
        return json.loads(cli("backup", "create", str(self.file), "--json", *more, **options).stdout)

    def restore(self, server, *more, check=True):
        return cli("backup", "restore", str(self.file), "--data-dir", str(server.data), *more, check=check)

    def assert_refused(self, done, *words):
        self.assertEqual(done.returncode, 125, done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_while_commands_run(self):
        """Every command and create that runs meanwhile succeeds, and what was there before is in the backup."""
        box = self.create(name="busy", metadata={"team": "blue"}, env={"A": "1"})
        stop, failures, created = threading.Event(), [], []

        def work(index):
            while not stop.is_set():
                result = box.exec("/bin/echo", str(index))
                if (result["stdout"], result["exitCode"]) != (f"{index}\n", 0):
                    failures.append(result)

        def grow():
            while not stop.wait(0.02):
                reply = request("POST", "/v1/sandboxes", {"name": f"grown-{len(created)}"})
                (created if reply.status == 201 else failures).append(reply)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)] + [threading.Thread(target=grow)]
        for thread in threads:
            thread.start()
        try:
            made = [self.backup() for _ in range(3)]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        self.assertTrue(created)
        counts = [report["manifest"]["sandboxes"] for report in made]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual([name for name in os.listdir(self.first.data / "state") if "backup" in name], [])

        other = self.server()
        self.restore(other)
        self.assertEqual((other.data / "api-key").read_text(), (self.first.data / "api-key").read_text())
        other.start()
        rows = {row["name"]: row for row in other.list()}
        self.assertEqual(len(rows), counts[-1])
        self.assertEqual((rows["busy"]["id"], rows["busy"]["metadata"]), (box.id, {"team": "blue"}))
        self.assertEqual({row["status"] for row in rows.values()}, {"stopped"})
        self.first.use()
        self.assertEqual(box.exec("/bin/echo", "on")["stdout"], "on\n", "the first server does not mind")

    def test_in_place(self):
        box = self.create(name="web")
        box.exec("/bin/sh", "-c", "echo kept > /workspace/f")
        request("POST", box.path("/stop"))
        self.backup()
        later = self.create(name="later")
        later.exec("/bin/sh", "-c", "echo too > /workspace/f")
        wait_until(self.first.settled, 20, "the pool is full")
        self.assert_refused(self.restore(self.first, "--force", check=False), "another atoll serve")
        self.assertEqual(self.first.stop(), 0)
        self.assert_refused(self.restore(self.first, check=False), "--force")
        report = json.loads(self.restore(self.first, "--force", "--json").stdout)
        self.assertEqual(report["unknownSandboxes"], [later.id])
        aside = pathlib.Path(report["aside"])
        with pool_of(self.first) as pool:
            kept = pool / "aside" / aside.name / later.id
            self.assertEqual((kept / "upper/workspace/f").read_text(), "too\n")
        self.first.start()
        self.assertEqual([(row["name"], row["status"]) for row in self.first.list()], [("web", "stopped")])
        self.assertEqual(request("POST", box.path("/resume")).status, 200)
        self.assertEqual(box.exec("/bin/cat", "/workspace/f")["stdout"], "kept\n")
        self.assertTrue((aside / "state/atoll.db").exists())

    def test_by_the_data_directory(self):
        """Asks the server that has it, whichever that is, and reads the files where none runs."""
        self.create(name="web")
        other = self.server().start()
        online = self.backup("--data-dir", str(self.first.data), env=elsewhere())
        self.assertEqual(online["manifest"]["sandboxes"], 1)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        self.assertEqual(self.first.stop(), 0)
        offline = self.backup("--data-dir", str(self.first.data), env=elsewhere())
        self.assertEqual(offline["manifest"]["sandboxes"], 1)
        self.assertEqual([entry["path"] for entry in offline["manifest"]["files"]], ["state/atoll.db", "state/master.key", "audit/audit.jsonl", "api-key"])
        for entry in (self.first.data / "state").iterdir():
            self.assertEqual(entry.stat().st_uid, (self.first.data / "state").stat().st_uid, entry)
        other.use()
        self.assertEqual(self.backup()["manifest"]["sandboxes"], 0, "without it, the server that other verbs ask")
        plain = cli("backup", "create", str(self.file)).stdout
        self.assertRegex(plain, r": [\d.]+ (Ki)?B, 0 sandboxes without their files\n$")
        self.first.start()

    def test_damaged_ones_are_refused(self):
        self.create(name="web")
        self.backup()
        whole = self.file.read_bytes()
        other = self.server()
        for damage, data in (
            ("cut off", whole[: len(whole) // 2]), ("without its end", whole[:-10]), ("empty", b""),
            ("no archive", b"hello" * 1000), ("changed", bytes([whole[0]]) + bytes(100) + whole[101:]),
        ):  # fmt: skip
            with self.subTest(damage=damage):
                self.file.write_bytes(data)
                self.assert_refused(self.restore(other, check=False), "not a whole backup")
                self.assertFalse((other.data / "state").exists())
        self.file.write_bytes(whole)
        folder = self.first.home / "unpacked"
        folder.mkdir()
        subprocess.run(["tar", "--zstd", "-xf", self.file, "-C", folder], check=True)
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(manifest["product"], "atoll")
        for change in ({"schema": 99}, {"files": manifest["files"][1:]}, {"product": "x"}):
            (folder / "manifest.json").write_text(json.dumps({**manifest, **change}))
            subprocess.run(
                ["tar", "--zstd", "-cf", self.file, "-C", folder, "state/atoll.db", "api-key", "manifest.json"],
                check=True,
            )
            self.assert_refused(self.restore(other, check=False), str(self.file))
        self.assertFalse((other.data / "state").exists())

    def test_a_failed_backup_leaves_no_file(self):
        done = cli("backup", "create", str(self.file), "--url", "unix:/nowhere.sock", check=False)
        self.assert_refused(done, "no server")
        self.assertEqual(list(self.first.home.glob("backup*")), [])


class OverTcp(unittest.TestCase):
    def test_the_key_is_needed(self):
        server = AtollServer(listen="127.0.0.1:0")
        self.addCleanup(server.close)
        server.start()
        lines = [json.loads(line) for line in fixture.read_text(server.log).splitlines() if '"url"' in line]
        port = int(lines[-1]["url"].rpartition(":")[2])

        def ask(**headers):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            self.addCleanup(connection.close)
            connection.request("POST", "/v1/system/backup", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("content-type"), answer.read()

        self.assertEqual(ask()[0], 401)
        key = (server.data / "api-key").read_text().strip()
        status, kind, body = ask(Authorization=f"Bearer {key}")
        self.assertEqual((status, kind, body[:4]), (200, "application/zstd", b"\x28\xb5\x2f\xfd"))


if __name__ == "__main__":
    fixture.main()
