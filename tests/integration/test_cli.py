#!/usr/bin/env python3
"""The command line, as a user types it: output, exit codes, errors."""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import tarfile
import tempfile
import pathlib
import unittest

import fixture
from fixture import AtollCase, cli, raw_cli, start_cli, wait_until

COMMANDS = [
    "run", "create", "ls", "inspect", "exec", "code", "ps", "logs", "kill", "wait", "cp", "cat", "files", "search", "watch",
    "stop", "start", "pause", "unpause", "resume", "snapshot", "checkpoint", "restore", "fork", "diff", "history", "undo", "update", "usage", "rm", "events", "token", "template", "storage", "system",
    "doctor", "serve", "key", "secret", "net", "port", "whoami", "config", "backup", "audit", "version", "completion",
]  # fmt: skip
NESTED = [
    "files ls", "files stat", "files mkdir", "files mv", "files rm", "template ls", "template create", "template set", "template import", "template export", "config show",
    "config check", "backup create", "backup restore", "key create", "key ls", "key rm", "secret set", "secret ls",
    "secret rm", "audit verify", "audit tail", "snapshot create", "snapshot ls", "snapshot rm", "snapshot prune", "snapshot export", "snapshot import", "storage show", "storage grow",
    "checkpoint create", "checkpoint ls", "checkpoint rm",
    "net get", "net set", "net log", "net explain", "port open", "port ls", "port rm",
]  # fmt: skip


def on_terminal(*arguments, columns=100):
    """What a command prints on a terminal."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([fixture.BIN, *arguments], stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    seen = b""
    try:
        while select.select([master], [], [], 20)[0]:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other side has closed
                break
            if not part:
                break
            seen += part
    finally:
        os.close(master)
    return process.wait(20), seen.decode()


class Bash:
    """An interactive bash with our completion."""

    def __init__(self, directory):
        path = f"{pathlib.Path(fixture.BIN).resolve().parent}:{os.environ['PATH']}"
        settings = pathlib.Path(directory) / ".rc"
        # A key that shows the line as it stands, whatever the screen looks like.
        settings.write_text("""source <(atoll completion bash); bind -x '"\\C-o": echo "<<$READLINE_LINE>>"'""")
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "--rcfile", settings, "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            cwd=directory, env={**os.environ, "PATH": path, "TERM": "dumb", "PS1": "$ "},
        )  # fmt: skip
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def complete(self, line):
        """What a line becomes by one press of the tabulator."""
        os.write(self.master, b"\x15" + line.encode() + b"\t\x0f")
        seen = b""
        while not (found := re.search(rb"<<(.*)>>", seen)):
            if not select.select([self.master], [], [], 20)[0]:
                raise AssertionError(f"bash says no more than {seen!r}")
            seen += os.read(self.master, 65536)
        return found[1].decode()


class Run(AtollCase):
    def test_output_is_the_commands_own(self):
        done = cli("run", "--", "python3", "-c", "print(6*7)")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("42\n", "", 0))
        done = cli("run", "--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual((done.stdout, done.stderr), ("out\n", "err\n"))
        self.assertEqual(self.server.list(), [], "run removes its sandbox")

    def test_exit_codes(self):
        for script, code in (("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137), ("kill -15 $$", 143)):
            done = cli("run", "--", "sh", "-c", script, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (code, "", ""), script)
        self.assert_fails(cli("run", "--", "no-such-program", check=False), 127)
        self.assert_fails(cli("run", "--", "/etc/passwd", check=False), 126)

    def test_standard_input(self):
        done = raw_cli("run", "-i", "--", "cat", input=b"some\x00bytes\xff\n")
        self.assertEqual((done.stdout, done.returncode), (b"some\x00bytes\xff\n", 0))
        done = raw_cli("run", "-i", "--", "python3", "-", input=b"print(1)\n")
        self.assertEqual(done.stdout, b"1\n")
        big = os.urandom(1 << 20) * 3
        self.assertEqual(raw_cli("run", "-i", "--", "cat", input=big).stdout, big)

    def test_options(self):
        done = cli("run", "-e", "A=b c", "-w", "/tmp", "-u", "user", "--", "sh", "-c", 'echo "$A"; pwd; id -un')
        self.assertEqual(done.stdout, "b c\n/tmp\nuser\n")
        done = cli("run", "--timeout", "1s", "--", "sh", "-c", "echo begun; sleep 60", check=False, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (124, "begun\n"))

    def test_user_of_the_help_text(self):
        """`atoll exec --help` and `atoll create --help` have nobody in their examples."""
        self.assertEqual(cli("run", "-u", "nobody", "--", "id", "-un").stdout, "nobody\n")

    def test_interrupted_run_leaves_nothing(self):
        # By exec: a shell that is interrupted just before it starts a command waits for that command.
        process = start_cli("run", "--", "sh", "-c", "echo ready; exec sleep 100")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(self.server.list(), [])


class Lifecycle(AtollCase):
    def web(self, *options):
        return cli("create", "--name", "web", *options)

    def test_create_and_inspect(self):
        options = "--cpu 1 --memory 512m --disk 2g --env A=1 --timeout 1h".split()
        self.assertEqual(self.web(*options).stdout, "web\n")
        info = json.loads(cli("inspect", "web", "--json").stdout)
        self.assertEqual((info["name"], info["status"], info["template"]), ("web", "running", "base"))
        limits = info["resources"]
        self.assertEqual((limits["cpuCores"], limits["memoryMB"], limits["diskGB"]), (1, 512, 2))
        self.assertEqual(info["envNames"], ["A"])
        self.assertTrue(info["expiresAt"] > info["createdAt"])
        self.assertEqual(info["isolation"]["driver"], "native")
        self.assertIn("totalMicroseconds", info["timings"])
        plain = cli("inspect", "web").stdout
        self.assertRegex(plain, r"(?m)^Name +web$")
        self.assertRegex(plain, r"(?m)^Status +running$")
        self.assertEqual(cli("exec", "web", "--", "sh", "-c", "echo $A").stdout, "1\n")

    def test_create_without_a_name_prints_the_id(self):
        name = cli("create").stdout.strip()
        self.assertRegex(name, r"^sandbox-[0-9a-z]+$")
        self.assertEqual(json.loads(cli("inspect", name, "--json").stdout)["id"], name)
        made = json.loads(cli("create", "--json", "--label", "k=v").stdout)
        self.assertEqual(made["metadata"], {"k": "v"})

    def test_ls(self):
        self.web("--memory", "512m")
        cli("create", "--name", "other")
        cli("stop", "other")
        lines = cli("ls").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "ID", "STATUS", "TEMPLATE", "CPU", "MEMORY", "AGE"])
        self.assertEqual([line.split()[0] for line in lines[1:]], ["web", "other"])
        self.assertNotIn("\x1b", "".join(lines))
        self.assertIn("512 MiB", lines[1])
        rows = json.loads(cli("ls", "--json").stdout)
        self.assertEqual([row["status"] for row in rows], ["running", "stopped"])
        self.assertEqual(cli("ls", "-q").stdout, "web\nother\n")
        self.assertEqual(cli("ls", "-q", "--status", "stopped").stdout, "other\n")
        self.assertEqual(cli("ls", "-q", "--limit", "1", "--offset", "1").stdout, "other\n")
        code, shown = on_terminal("ls")
        self.assertEqual(code, 0)
        self.assertIn("\x1b[", shown, "colours on a terminal")
        self.assertIn("web", shown)
        code, shown = on_terminal("ls", "--json")
        self.assertEqual(len(json.loads(re.sub(r"\x1b\[[0-9;]*m", "", shown))), 2)
        self.assertGreater(len(shown.splitlines()), 10, "indented on a terminal")

    def test_the_names_of_new_things_are_printed_quietly_too(self):
        name = cli("create", "-q").stdout.strip()
        self.assertRegex(name, r"^sandbox-[0-9a-z]+$")
        snapshot = cli("snapshot", "create", name, "-q").stdout.strip()
        self.assertIn(snapshot, cli("snapshot", "ls", name).stdout)
        self.assertIn("base\n", cli("template", "ls", "-q").stdout)
        done = cli("restore", name, "no-such", check=False)
        self.assertIn("'atoll snapshot ls' lists the snapshots", done.stderr)

    def test_an_ephemeral_one_starts_again(self):
        for pooled in ([], ["--no-pool"]):
            cli("create", "--name", "fast", "--ephemeral", *pooled)
            cli("exec", "fast", "--", "sh", "-c", "echo kept > f")
            for _ in range(3):
                cli("stop", "fast")
                cli("start", "fast")
                self.assertEqual(cli("cat", "fast:f").stdout, "kept\n")
            cli("rm", "fast")

    def test_out_of_memory_is_said(self):
        grow = "x=bytearray(300000000)"
        done = cli("run", "--memory", "64m", "--", "python3", "-c", grow, check=False)
        self.assertEqual(done.returncode, 137)
        self.assertIn("run out of memory", done.stderr)
        done = cli("run", "--", "sh", "-c", "kill -9 $$", check=False)
        self.assertEqual((done.returncode, done.stderr), (137, ""))

    def test_a_failed_clone_is_said(self):
        done = cli("create", "--git", "https://example.invalid/x", "--name", "g", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("example.invalid", done.stderr)

    def test_exec_as_json(self):
        self.web()
        done = cli("exec", "web", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3", check=False)
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, told["exitCode"], told["stdout"], told["stderr"]), (3, 3, "out\n", "err\n"))
        self.assertEqual(cli("exec", "web", "--json", "-i", "--", "cat", check=False).returncode, 2)
        self.assertEqual(cli("run", "--json", "--", "true", check=False).returncode, 2)

    def test_exec_detached(self):
        self.web()
        process = cli("exec", "-d", "web", "--", "sh", "-c", "echo first; exec tail -f /dev/null").stdout.strip()
        self.assertRegex(process, r"^[0-9]+$")
        self.assertIn(process, cli("ps", "web").stdout)
        wait_until(lambda: cli("logs", "web", process).stdout == "first\n", 10, "its output is kept")
        cli("kill", "web", process)
        done = json.loads(cli("exec", "-d", "web", "--json", "--", "true").stdout)
        self.assertEqual(done["command"], "true")
        done = cli("exec", "-dit", "web", "--", "bash", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("drop -d", done.stderr)
        self.assertEqual(cli("exec", "-d", "web", "--", "no-such-program", check=False).returncode, 127)

    def test_exec(self):
        self.web()
        done = cli("exec", "web", "--", "sh", "-c", "echo hi; exit 3", check=False)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("hi\n", "", 3))
        done = raw_cli("exec", "-i", "web", "--", "sh", "-c", "cat; exit 4", input=b"text")
        self.assertEqual((done.stdout, done.returncode), (b"text", 4))
        done = cli("exec", "web", "--", "sh", "-c", "kill -9 $$", check=False)
        self.assertEqual(done.returncode, 137)
        self.assertEqual(cli("exec", "web", "--", "pwd").stdout, "/workspace\n")
        done = cli("exec", "--timeout", "1s", "web", "--", "sh", "-c", "echo a; sleep 60", check=False)
        self.assertEqual((done.returncode, done.stdout), (124, "a\n"))

    def test_processes(self):
        self.web()
        process = start_cli("exec", "web", "--", "sh", "-c", "echo one; echo two >&2; sleep 1; echo three; sleep 100")
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stdout.readline(), b"one\n")
        rows = json.loads(cli("ps", "web", "--json").stdout)
        self.assertEqual(len(rows), 1)
        pid = str(rows[0]["pid"])
        self.assertTrue(rows[0]["running"])
        table = cli("ps", "web").stdout.splitlines()
        self.assertEqual(table[0].split()[0], "PID")
        self.assertEqual(table[1].split()[:3], [pid, "running", "root"])
        now = cli("logs", "web", pid)
        self.assertTrue(now.stdout.startswith("one\n"))
        self.assertEqual(now.stderr, "two\n")
        follow = start_cli("logs", "-f", "web", pid)
        self.assertEqual(follow.stdout.readline(), b"one\n")
        self.assertEqual(follow.stdout.readline(), b"three\n")
        self.assertIsNone(follow.poll(), "logs -f goes on while the command runs")
        cli("kill", "-s", "TERM", "web", pid)
        self.assertEqual(process.wait(20), 143)
        self.assertEqual(follow.wait(20), 0)
        self.assertEqual(follow.stderr.read(), b"two\n")
        follow.stdout.close()
        follow.stderr.close()
        self.assertEqual(cli("wait", "web", pid, check=False).returncode, 143)
        self.assertIn("killed (TERM)", cli("ps", "web").stdout)
        lines = [json.loads(line) for line in cli("logs", "web", pid, "--json").stdout.splitlines()]
        self.assertEqual("".join(line["data"] for line in lines if line.get("stream") == "stdout"), "one\nthree\n")
        self.assertEqual(lines[-1]["type"], "exit")
        self.assert_fails(cli("kill", "web", "99999", check=False))
        self.assert_fails(cli("kill", "-s", "NOPE", "web", pid, check=False))
        self.assert_fails(cli("logs", "web", "99999", check=False))

    def test_copy(self):
        self.web()
        with tempfile.TemporaryDirectory() as text:
            here = pathlib.Path(text)
            tree = here / "dir"
            (tree / "sub").mkdir(parents=True)
            (tree / "a.txt").write_text("alpha\n")
            (tree / "sub/run.sh").write_text("#!/bin/sh\necho ran\n")
            (tree / "sub/run.sh").chmod(0o755)
            (tree / "link").symlink_to("a.txt")
            (tree / "empty").mkdir()
            cli("cp", str(tree), "web:/workspace/dir")
            self.assertEqual(cli("exec", "web", "--", "dir/sub/run.sh").stdout, "ran\n")
            self.assertEqual(cli("exec", "web", "--", "readlink", "dir/link").stdout, "a.txt\n")
            cli("cp", "web:/workspace/dir", str(here / "back"))
            self.assertEqual(subprocess.run(["diff", "-r", tree, here / "back"], check=False).returncode, 0)
            self.assertEqual((here / "back/sub/run.sh").stat().st_mode & 0o777, 0o755)
            self.assertTrue((here / "back/link").is_symlink())
            cli("cp", str(tree), "web:/workspace/dir")  # into what exists: under its own name
            cli("exec", "web", "--", "test", "-f", "dir/dir/a.txt")
            cli("cp", str(tree) + "/.", "web:/workspace/flat")
            cli("exec", "web", "--", "test", "-f", "flat/a.txt")
            blob = here / "blob"
            blob.write_bytes(os.urandom(3 << 20))
            cli("cp", str(blob), "web:blob")
            cli("cp", "web:blob", str(here / "blob2"))
            self.assertEqual((here / "blob2").read_bytes(), blob.read_bytes())
            (here / "into").mkdir()
            cli("cp", "web:/workspace/blob", str(here / "into"))
            self.assertEqual((here / "into/blob").stat().st_size, 3 << 20)
            self.assertEqual(raw_cli("cp", "-", "web:hi.txt", input=b"hi\xff\n").returncode, 0)
            self.assertEqual(raw_cli("cp", "web:hi.txt", "-").stdout, b"hi\xff\n")
            self.assertEqual(raw_cli("cat", "web:hi.txt").stdout, b"hi\xff\n")
            archive = tarfile.open(fileobj=io.BytesIO(raw_cli("cp", "web:/workspace/dir", "-").stdout))
            self.assertTrue(any(name.endswith("sub/run.sh") for name in archive.getnames()))
            self.assert_fails(cli("cp", "web:/nowhere", str(here / "x"), check=False))
            self.assertFalse((here / "x").exists())
            self.assert_fails(cli("cp", str(here / "nothing"), "web:x", check=False))
            self.assert_fails(cli("cp", str(blob), str(here / "y"), check=False))
            self.assert_fails(cli("cat", "web:/nowhere", check=False))

    def test_files(self):
        self.web()
        cli("files", "mkdir", "web:/workspace/a/b")
        raw_cli("cp", "-", "web:/workspace/a/f", input=b"12345")
        self.assertIn("f", cli("files", "ls", "web:/workspace/a").stdout)
        self.assertEqual(json.loads(cli("files", "stat", "web:a/f", "--json").stdout)["size"], 5)
        cli("files", "mv", "web:a/f", "web:a/g")
        self.assertEqual(cli("cat", "web:a/g").stdout, "12345")
        self.assert_fails(cli("files", "rm", "web:a", check=False))
        cli("files", "rm", "-r", "web:a")
        self.assert_fails(cli("files", "stat", "web:a", check=False))

    def test_stop_and_start_keep_files(self):
        self.web("--env", "A=1")
        cli("exec", "web", "--", "sh", "-c", "echo kept > /workspace/f; echo also > /etc/mine")
        self.assertEqual(cli("stop", "web").stdout, "web\n")
        self.assertEqual(json.loads(cli("inspect", "web", "--json").stdout)["status"], "stopped")
        self.assert_fails(cli("exec", "web", "--", "true", check=False))
        self.assertEqual(cli("start", "web").stdout, "web\n")
        done = cli("exec", "web", "--", "sh", "-c", "cat /workspace/f /etc/mine; echo $A")
        self.assertEqual(done.stdout, "kept\nalso\n1\n")

    def test_pause(self):
        self.web()
        self.assertEqual(cli("pause", "web").stdout, "web\n")
        self.assertEqual(json.loads(cli("inspect", "web", "--json").stdout)["status"], "paused")
        self.assert_fails(cli("exec", "web", "--", "true", check=False, timeout=10))
        self.assertEqual(cli("unpause", "web").stdout, "web\n")
        self.assertEqual(cli("exec", "web", "--", "echo", "on").stdout, "on\n")

    def test_usage_and_update(self):
        self.web("--memory", "512m")
        used = json.loads(cli("usage", "web", "--json").stdout)
        self.assertGreater(used["memoryBytes"], 0)
        self.assertGreaterEqual(used["processes"], 1)
        self.assertEqual(cli("usage", "web").stdout.split()[:2], ["MEMORY", "PEAK"])
        cli("update", "web", "--memory", "1g", "--cpu", "0.5", "--timeout", "never", "-l", "a=b")
        info = json.loads(cli("inspect", "web", "--json").stdout)
        self.assertEqual((info["resources"]["memoryMB"], info["resources"]["cpuCores"]), (1024, 0.5))
        self.assertEqual(info["metadata"], {"a": "b"})

    def test_search(self):
        self.web()
        raw_cli("cp", "-", "web:src/a.py", input=b"one\n# TODO first\nthree\n")
        raw_cli("cp", "-", "web:src/b.txt", input=b"todo second\n")
        found = cli("search", "web:/workspace", "TODO|FIXME").stdout
        self.assertEqual(len(found.splitlines()), 1)
        self.assertRegex(found, r"src/a\.py:2:# TODO first\n$")
        both = json.loads(cli("search", "web:/workspace", "todo", "--ignore-case", "--json").stdout)
        self.assertEqual(len(both), 2)
        self.assertIn("one", cli("search", "web:src", "TODO", "-C", "1", "-g", "*.py").stdout)
        nothing = cli("search", "web:src", "absent", check=False)
        self.assertEqual((nothing.returncode, nothing.stdout, nothing.stderr), (1, "", ""))
        self.assert_fails(cli("search", "web:src", "(", check=False))

    def test_watch(self):
        self.web()
        watch = start_cli("watch", "web:/workspace", "--json")
        self.addCleanup(watch.stderr.close)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        os.set_blocking(watch.stdout.fileno(), False)
        seen = []

        # The watch begins some time after the command has: so touch until it shows.
        def shown():
            cli("exec", "web", "--", "sh", "-c", "echo x > /workspace/new; rm /workspace/new")
            part = watch.stdout.read()
            seen.extend(json.loads(line) for line in (part or b"").splitlines())
            return {"created", "removed"} <= {event.get("type", event.get("change")) for event in seen}

        wait_until(shown, 20, f"events: {seen}")
        self.assertTrue(all(event["path"].endswith("new") for event in seen), seen)

    def test_rm(self):
        self.web()
        self.assertEqual(cli("rm", "web").stdout, "web\n")
        self.assert_fails(cli("rm", "web", check=False))
        self.assertEqual(cli("rm", "-f", "web").returncode, 0)
        self.assertEqual(self.server.list(), [])

    def test_several_at_once(self):
        self.web()
        cli("create", "--name", "two")
        raw_cli("cp", "-", "web:a", input=b"1\n")
        raw_cli("cp", "-", "web:b", input=b"2\n")
        self.assertEqual(cli("cat", "web:a", "web:b", check=False).stdout, "1\n2\n")
        for verb in ("stop", "start", "pause", "unpause"):
            self.assertEqual(cli(verb, "web", "two", check=False).stdout, "web\ntwo\n", verb)
        done = cli("rm", "web", "missing", "two", check=False)
        self.assertEqual((done.stdout, done.returncode != 0), ("web\ntwo\n", True))
        self.assertEqual(self.server.list(), [])


class Others(AtollCase):
    def test_doctor(self):
        done = cli("doctor", "--data-dir", str(self.server.data), check=False)
        report = json.loads(cli("doctor", "--data-dir", str(self.server.data), "--json", check=False).stdout)
        missing = [check for check in report["checks"] if check["status"] == "missing"]
        self.assertEqual(missing, [], "this host runs the tests, so it lacks nothing")
        self.assertEqual((done.returncode, report["ok"]), (0, True))
        for check in report["checks"]:
            self.assertIn(check["status"], ("ok", "degraded"))
            if check["status"] == "degraded":
                self.assertTrue(check["remedy"], check)
        self.assertRegex(done.stdout, r"\d+ ok, \d+ degraded, 0 missing\n$")

    def test_help(self):
        for line in COMMANDS + NESTED:
            done = cli(*line.split(), "--help")
            self.assertEqual(done.stderr, "")
            self.assertIn(f"Usage: atoll {line}", done.stdout)
            self.assertIn("Examples\n  ", done.stdout, f"{line} --help has no example")
        listed = re.findall(r"^  ([a-z]+) {2,}[A-Z]", cli("--help").stdout, re.MULTILINE)
        self.assertEqual(listed, COMMANDS)

    def test_completion(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("atoll __complete", cli("completion", shell).stdout)
        self.assertIn("bash, zsh, fish", self.assert_fails(cli("completion", "tcsh", check=False)))
        cli("create", "--name", "completed")
        cases = {
            "unp": "unpause ",
            "files mk": "files mkdir ",
            "create --mem": "create --memory ",
            "create --profile=s": "create --profile=strict ",
            "create --template ba": "create --template base ",
            "inspect comp": "inspect completed ",
            "stop loc": "stop loc",  # no sandbox, and a file is none
            "cp ./loc": "cp ./local.txt ",
            "cp comp": "cp completed:",
            "cp completed:/etc/hostn": "cp completed:/etc/hostname ",
            "cp local.txt completed:/et": "cp local.txt completed:/etc/",
            "cp completed: loc": "cp completed: local.txt ",
            "exec completed -- loc": "exec completed -- loc",
        }
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "local.txt").touch()
            with Bash(directory) as bash:
                for typed, line in cases.items():
                    self.assertEqual(bash.complete("atoll " + typed), "atoll " + line)

    def test_system_version_templates(self):
        self.assertRegex(cli("version").stdout, r"^atoll \d+\.\d+\.\d+\n$")
        self.assertEqual(cli("--version").stdout, cli("version").stdout)
        system = json.loads(cli("system", "--json").stdout)
        self.assertEqual((system["backend"], system["sandboxes"]), ("native", 0))
        self.assertIn("base", cli("template", "ls").stdout)
        self.assertEqual(json.loads(cli("template", "ls", "--json").stdout)[0]["name"], "base")

    def test_errors_are_one_line(self):
        cases = [
            ["nonsense"], ["create", "--nonsense"], ["exec", "web"], ["exec", "nobody-knows", "--", "true"],
            ["run"], ["inspect"], ["inspect", "nobody-knows"], ["create", "--memory"], ["ls", "--status", "asleep"],
            ["create", "--template", "nothing"], ["create", "--name", "Not OK"], ["create", "--env", "novalue"],
            ["create", "--timeout", "soon"], ["stop", "nobody-knows"], ["logs", "web", "abc"], ["ps", "nobody-knows"],
            ["ls", "--url", "http://127.0.0.1:1"], ["ls", "--url", "unix:/nowhere.sock"], ["ls", "--url", "ftp://x"],
        ]  # fmt: skip
        for arguments in cases:
            with self.subTest(arguments=arguments):
                done = cli(*arguments, check=False)
                self.assert_fails(done)

    def test_no_server(self):
        done = cli("ls", "--url", "unix:/nowhere.sock", check=False)
        self.assertIn("no server", self.assert_fails(done))


if __name__ == "__main__":
    fixture.main()
