#!/usr/bin/env python3
"""Commands and files over HTTP: output and its replay, back-pressure, ends, and what a file API must keep."""

import base64
import io
import json
import os
import tarfile
import threading
import time
import unittest
import urllib.parse

import fixture
import product
from fixture import AtollCase, events, http as request, in_parallel, wait_until

MIB = 1 << 20


class Processes(AtollCase):
    def test_output_nobody_reads(self):
        box = self.create()
        pid = box.spawn("/usr/bin/python3", "-c", "import sys\nfor i in range(200000): print('%09d' % i)")["pid"]
        self.assertEqual(box.wait(pid)["exitCode"], 0)
        text = "".join("%09d\n" % i for i in range(200000)).encode()
        self.assertEqual(box.output(pid), text)
        for offset in (1, 999_999, 1_000_000, len(text) - 1, len(text), len(text) + 5):
            self.assertEqual(box.output(pid, offset=offset), text[offset:], offset)
        self.assertEqual(box.process(pid)["stdoutBytes"], len(text))
        with box.stream(f"/process/{pid}/logs?follow=true&stdoutOffset=1999990") as reply:
            found = list(events(reply))
        self.assertEqual([(name, event.get("data"), event.get("offset")) for name, event in found[:1]],
                         [("stdout", "000199999\n", 1999990)])  # fmt: skip
        self.assertEqual((found[-1][0], found[-1][1]["exitCode"]), ("exit", 0))

    def test_attach_while_it_runs(self):
        box = self.create()
        script = "import time,sys\nfor i in range(100):\n print(i, flush=True); time.sleep(0.01)"
        pid = box.spawn("/usr/bin/python3", "-c", script)["pid"]
        text = "".join(f"{i}\n" for i in range(100)).encode()
        results = in_parallel([lambda k=k: box.output(pid, offset=k, follow=True) for k in (0, 10, 50)])
        self.assertEqual(results, [text, text[10:], text[50:]])

    def test_streams_stay_apart_and_in_order(self):
        box = self.create()
        script = "for i in $(seq 2000); do echo out$i; echo err$i >&2; done"
        result = box.exec("/bin/bash", "-c", script)
        self.assertEqual(result["stdout"].split(), [f"out{i}" for i in range(1, 2001)])
        self.assertEqual(result["stderr"].split(), [f"err{i}" for i in range(1, 2001)])
        pid = box.spawn("/bin/bash", "-c", script)["pid"]
        parts = {"stdout": "", "stderr": ""}
        with box.stream(f"/process/{pid}/logs?follow=true") as reply:
            for name, event in events(reply):
                if name in parts:
                    self.assertEqual(event["offset"], len(parts[name]))
                    parts[name] += event["data"]
        self.assertEqual(parts["stdout"].split(), result["stdout"].split())
        self.assertEqual(parts["stderr"].split(), result["stderr"].split())

    def test_back_pressure(self):
        """Who follows slowly holds the command back; who leaves lets it go."""
        box = self.create()
        script = f"until [ -e /tmp/go ]; do sleep 0.02; done; exec head -c {200 * MIB} /dev/zero"
        pid = box.spawn("/bin/sh", "-c", script)["pid"]  # begins when somebody follows
        with box.stream(f"/process/{pid}/output?follow=true") as reply:
            box.exec("/bin/touch", "/tmp/go")
            got = len(reply.read(65536))
            last = [-1]

            def stalled():
                before, last[0] = last[0], box.process(pid)["stdoutBytes"]
                return before == last[0] and last[0] > 0

            # Unchanged over ten looks in a row.
            for _ in range(10):
                wait_until(stalled, 10, "the command waits")
            ahead = box.process(pid)["stdoutBytes"] - got
            self.assertTrue(box.process(pid)["running"])
            self.assertLess(ahead, 16 * MIB, f"it ran {ahead >> 20} MiB ahead")
            while got < 20 * MIB:  # whoever reads on gets on, without a gap
                got += len(reply.read(65536))
            self.assertGreater(box.process(pid)["stdoutBytes"], 19 * MIB)
        self.assertEqual(box.wait(pid, 20000)["exitCode"], 0, "nobody reads any more: it goes on")
        self.assertEqual(box.process(pid)["stdoutBytes"], 200 * MIB)

    def test_slow_reader_loses_nothing(self):
        box = self.create()
        pid = box.spawn("/usr/bin/python3", "-c", f"import sys\nfor i in range({30 * MIB // 16}): sys.stdout.write('%015d\\n' % i)")["pid"]
        got = box.output(pid, follow=True)
        self.assertEqual(len(got), 30 * MIB)
        self.assertTrue(got.startswith(b"000000000000000\n000000000000001\n"))
        step = 16 * 4321
        for at in range(0, len(got), step):
            self.assertEqual(int(got[at : at + 15]), at // 16)

    def test_timeout_keeps_output(self):
        box = self.create()
        begin = time.monotonic()
        result = box.exec("/bin/sh", "-c", "echo early; echo problem >&2; sleep 100", timeoutMs=500)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual((result["stdout"], result["stderr"]), ("early\n", "problem\n"))
        self.assertEqual((result["exitCode"], result["timedOut"]), (124, True))
        result = box.exec("/bin/sh", "-c", "trap '' TERM; (trap '' TERM; sleep 100)& echo x; wait", timeoutMs=300)
        self.assertEqual((result["stdout"], result["exitCode"]), ("x\n", 124))
        self.assertEqual(box.exec("/bin/sh", "-c", "pgrep sleep | wc -l")["stdout"], "0\n", "the tree is gone")

    def test_kill_takes_the_whole_tree(self):
        box = self.create()
        script = (
            "setsid sleep 100 & (setsid sh -c 'setsid sleep 100 & sleep 100' &) ; nohup sleep 100 >/dev/null 2>&1 & "
            "python3 -c 'import os,time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(100)\n' ; "
            "echo ready; sleep 100"
        )
        pid = box.spawn("/bin/bash", "-c", script)["pid"]
        wait_until(lambda: box.output(pid) == b"ready\n", 10, "all of it runs")
        survivor = box.spawn("/bin/sleep", "100")["pid"]
        count = "ps -e -o args= | grep -c '[s]leep'"
        self.assertGreaterEqual(int(box.exec("/bin/sh", "-c", count)["stdout"]), 6)
        self.assertEqual(box.runtime("DELETE", f"/process/{pid}").status, 200)
        self.assertEqual(box.wait(pid)["exitCode"], 137)
        wait_until(lambda: box.exec("/bin/sh", "-c", count)["stdout"] == "1\n", 5, "only the other command is left")
        self.assertTrue(box.process(survivor)["running"])

    def test_signals(self):
        box = self.create()
        script = "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done"
        pid = box.spawn("/bin/bash", "-c", script)["pid"]
        wait_until(lambda: box.output(pid) == b"ready\n", 10, "it is ready")
        self.assertEqual(box.runtime("DELETE", f"/process/{pid}", {"signal": "SIGUSR1", "tree": False}).status, 200)
        self.assertEqual(box.wait(pid)["exitCode"], 5)
        self.assertEqual(box.output(pid), b"ready\ngot\n")
        for bad in ("SIGNOPE", 0, 999, -1, True):
            reply = box.runtime("DELETE", f"/process/{pid}", {"signal": bad})
            self.assert_error(reply, 400, "VALIDATION_ERROR", "signal")

    def test_background_child_holds_the_pipes(self):
        box = self.create()
        begin = time.monotonic()
        result = box.exec("/bin/sh", "-c", "sleep 30 & echo started")
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual((result["stdout"], result["exitCode"]), ("started\n", 0))
        begin = time.monotonic()
        done = fixture.raw_cli("exec", box.id, "--", "sh", "-c", "sleep 30 & echo started")
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual((done.stdout, done.returncode), (b"started\n", 0))
        self.assertEqual(box.exec("/bin/sh", "-c", "pgrep -c sleep")["stdout"], "2\n", "the children live on")

    def test_user_directory_environment(self):
        box = self.create(env={"A": "sandbox", "B": "sandbox"})
        script = 'id -un; pwd; echo "$A $B $C"; echo $HOME'
        result = box.exec("/bin/sh", "-c", script, user="user", cwd="/tmp", env={"B": "exec", "C": "ü = x\n"})
        self.assertEqual(result["stdout"], "user\n/tmp\nsandbox exec ü = x\n\n/home/user\n")
        self.assertEqual(box.exec("/usr/bin/id", "-u", user="1234")["stdout"], "1234\n")
        self.assertEqual(box.exec("/bin/pwd", cwd="")["stdout"], "/workspace\n")
        box.exec("/bin/mkdir", "sub")
        self.assertEqual(box.exec("/bin/pwd", cwd="sub")["stdout"], "/workspace/sub\n")
        user = self.create(user="user")
        self.assertEqual(user.exec("/usr/bin/id", "-un")["stdout"], "user\n")
        self.assertEqual(user.exec("/usr/bin/id", "-un", user="root")["stdout"], "root\n")

    def test_shell_command(self):
        box = self.create()
        reply = box.runtime("POST", "/terminals/commands", {"command": "echo $((6*7)) | tr 4 x; exit 3"})
        self.assertEqual((reply.json["result"]["stdout"], reply.json["result"]["exitCode"]), ("x2\n", 3))

    def test_standard_input_and_many_commands(self):
        box = self.create()
        self.assertEqual(box.exec("/bin/cat")["stdout"], "", "no input is an empty one")
        results = in_parallel([lambda i=i: box.exec("/bin/sh", "-c", f"echo {i}; exit {i}") for i in range(60)])
        self.assertEqual([(r["stdout"], r["exitCode"]) for r in results], [(f"{i}\n", i) for i in range(60)])

    def test_wait(self):
        box = self.create()
        pid = box.spawn("/bin/sleep", "100")["pid"]
        self.assert_error(box.runtime("GET", f"/process/{pid}/wait?timeoutMs=100"), 408, "TIMEOUT")
        self.assertTrue(box.process(pid)["running"])
        self.assertEqual(box.process(pid)["exitCode"], -1)

    def test_ended_processes_are_remembered_in_bounds(self):
        box = self.create()
        first = box.exec("/bin/echo", "first")["pid"]
        for _ in range(300):
            box.exec("/bin/true")
        rows = box.runtime("GET", "/process").json["data"]
        self.assertLessEqual(len(rows), 260)
        self.assert_error(box.runtime("GET", f"/process/{first}"), 404, "NOT_FOUND")


class Files(AtollCase):
    def test_lines(self):
        box = self.create()
        box.write("/workspace/f", b"one\ntwo\nthree\nfour")
        for first, last, text in ((1, 1, "one\n"), (2, 3, "two\nthree\n"), (4, 9, "four"), (9, 12, "")):
            reply = box.runtime("POST", "/files/read", {"path": "f", "startLine": first, "endLine": last})
            self.assertEqual((reply.status, reply.json.get("data", {}).get("content")), (200, text), reply)
        reply = box.runtime("POST", "/files/read", {"path": "f", "startLine": 3})
        self.assertEqual(reply.json["data"]["content"], "three\nfour")
        for body in ({"startLine": 0}, {"startLine": -1}, {"startLine": 3, "endLine": 2}, {"startLine": "1"}):
            self.assertEqual(box.runtime("POST", "/files/read", {"path": "f", **body}).status, 400, body)

    def test_text_and_bytes(self):
        box = self.create()
        reply = box.runtime("POST", "/files/write", {"path": "a/b/c.txt", "content": "grüß\n", "mode": "0600"})
        self.assertEqual((reply.status, reply.json["data"]["size"]), (200, 7), reply)
        entry = box.runtime("GET", "/fs/stat/workspace/a/b/c.txt").json["data"]
        self.assertEqual((entry["permissions"], entry["isFile"], entry["size"]), ("0600", True, 7))
        reply = box.runtime("POST", "/files/read", {"path": "/workspace/a/b/c.txt", "encoding": "utf8"})
        self.assertEqual(reply.json["data"]["content"], "grüß\n")
        box.write("/workspace/bin", b"\xff\xfe\x00")
        self.assertEqual(box.read_bytes("/workspace/bin"), b"\xff\xfe\x00")

    def test_replace_is_atomic(self):
        """Whoever reads sees the old or the new file, never a mix, while it is replaced all the time."""
        box = self.create()
        size = 256 * 1024
        box.write("/workspace/f", b"0" * size)
        script = (
            "import sys,time\nend=time.time()+60\nmixed=0;reads=0;seen=set()\n"
            "while time.time()<end:\n"
            " d=open('/workspace/f','rb').read();reads+=1;seen.add(d[:1])\n"
            f" mixed+=len(set(d))!=1 or len(d)!={size}\n"
            " if d[:1]==b'Z': break\n"
            "print(mixed, reads, len(seen))"
        )
        pid = box.spawn("/usr/bin/python3", "-c", script)["pid"]
        for i in range(60):
            reply = box.runtime("PUT", "/fs/upload/workspace/f", bytes([48 + i % 10]) * size)
            self.assertEqual(reply.status, 200, reply)
        box.runtime("PUT", "/fs/upload/workspace/f", b"Z" * size)
        self.assertEqual(box.wait(pid)["exitCode"], 0)
        mixed, reads, seen = map(int, box.output(pid).split())
        self.assertEqual(mixed, 0)
        self.assertGreater(min(reads, seen), 2)
        self.assertEqual(box.exec("/bin/ls", "-A", "/workspace")["stdout"], "f\n")

    def test_replace_keeps_mode_and_owner(self):
        box = self.create()
        box.write("/workspace/f", b"old")
        box.exec("/bin/sh", "-c", "chown user:user f; chmod 0751 f")
        box.write("/workspace/f", b"new")
        entry = box.runtime("GET", "/fs/stat/workspace/f").json["data"]
        self.assertEqual((entry["permissions"], entry["owner"], entry["size"]), ("0751", "user", 3))

    def test_aborted_upload(self):
        box = self.create()
        box.write("/workspace/f", b"old")
        for headers in ({"Content-Length": str(50 * MIB)}, {"Transfer-Encoding": "chunked"}):
            connection = product.UnixConnection(20)
            connection.putrequest("PUT", box.path("/runtime/fs/upload/workspace/f"))
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.send(b"100000\r\n" + b"x" * MIB + b"\r\n" if "chunked" in headers.values() else b"x" * MIB)
            listing = lambda: box.exec("/bin/ls", "-A", "/workspace")["stdout"].split()  # noqa: E731
            connection.close()
            wait_until(lambda: listing() == ["f"], 10, "no temporary file stays")
            self.assertEqual(box.read_bytes("/workspace/f"), b"old")

    def test_large_file_and_ranges(self):
        box = self.create()
        data = os.urandom(MIB) * 20 + b"end"
        self.assertEqual(box.runtime("PUT", "/fs/upload/workspace/big?mode=0640", data).status, 200)
        whole = box.download("/workspace/big")
        self.assertEqual((whole.status, whole.body == data), (200, True))
        self.assertEqual(whole.headers["Content-Length"], str(len(data)))
        for text, first, last in (("bytes=0-9", 0, 9), ("bytes=1000000-3000000", 1000000, 3000000),
                                  (f"bytes={len(data) - 3}-", len(data) - 3, len(data) - 1),
                                  (f"bytes=5-{len(data) * 2}", 5, len(data) - 1)):  # fmt: skip
            part = box.download("/workspace/big", headers={"Range": text})
            self.assertEqual(part.status, 206, text)
            self.assertEqual(part.body, data[first : last + 1])
            self.assertEqual(part.headers["Content-Range"], f"bytes {first}-{last}/{len(data)}")
        past = box.download("/workspace/big", headers={"Range": f"bytes={len(data)}-"})
        self.assertIn(past.status, (400, 416))
        self.assertEqual(box.download("/workspace/big", headers={"Range": "lines=1-2"}).status, 200)
        box.write("/workspace/empty", b"")
        empty = box.download("/workspace/empty")
        self.assertEqual((empty.status, empty.body), (200, b""))

    def test_directories(self):
        box = self.create()
        box.exec("/bin/sh", "-c", "mkdir -p d/sub; echo a > d/a; ln -s a d/l; printf x > d/sub/b; chmod 755 d/sub/b; touch d/.h")
        for query, mode in (("?format=tar", "r:"), ("", "r:gz")):
            reply = box.runtime("GET", "/fs/download-dir/workspace/d" + query)
            self.assertEqual(reply.status, 200)
            with tarfile.open(fileobj=io.BytesIO(reply.body), mode=mode) as archive:
                names = {os.path.normpath(name) for name in archive.getnames()} - {"."}
                tails = {name.split("d/", 1)[-1] for name in names} - {"d"}
                self.assertEqual(tails, {"a", "l", "sub", "sub/b", ".h"}, names)
            up = box.runtime("PUT", f"/fs/upload-dir/workspace/copy{len(query)}", reply.body)
            self.assertEqual(up.status, 200, up)
            done = box.exec("/usr/bin/diff", "-r", "d", f"copy{len(query)}")
            self.assertEqual((done["exitCode"], done["stdout"]), (0, ""))
        listed = box.runtime("GET", "/fs/list/workspace/d?recursive=true&all=true").json["data"]
        self.assertEqual(len(listed["entries"]), 5)
        listed = box.runtime("GET", "/fs/list/workspace/d?limit=1").json["data"]
        self.assertEqual((len(listed["entries"]), listed["truncated"]), (1, True))
        self.assertEqual(box.runtime("POST", "/fs/move", {"from": "d/a", "to": "d/z"}).status, 200)
        self.assertEqual(box.runtime("GET", "/fs/exists/workspace/d/z").json["data"]["exists"], True)
        self.assertIn(box.runtime("DELETE", "/fs/workspace/d").status, (400, 409), "not empty, not recursive")
        self.assertEqual(box.runtime("DELETE", "/fs/workspace/d?recursive=true").status, 200)
        self.assertEqual(box.runtime("DELETE", "/fs/workspace/d").status, 404)
        self.assertEqual(box.runtime("DELETE", "/fs/workspace/d?force=true").status, 200)
        self.assertEqual(box.runtime("POST", "/fs/mkdir/workspace/x/y").status, 404)
        self.assertEqual(box.runtime("POST", "/fs/mkdir/workspace/x/y?recursive=true").status, 200)

    def test_names_that_are_no_utf8(self):
        box = self.create()
        name = b"\xff\xfe odd\nname %"
        box.exec("/usr/bin/python3", "-c", f"open({name!r}, 'wb').write(b'content')")
        quoted = urllib.parse.quote(b"/workspace/" + name)
        reply = box.runtime("GET", "/fs/download" + quoted)
        self.assertEqual((reply.status, reply.body), (200, b"content"), reply)
        self.assertEqual(box.runtime("GET", "/fs/stat" + quoted).json["data"]["size"], 7)
        self.assertEqual(len(box.runtime("GET", "/fs/list/workspace").json["data"]["entries"]), 1, "and still JSON")
        with tarfile.open(fileobj=io.BytesIO(box.runtime("GET", "/fs/download-dir/workspace?format=tar").body)) as archive:
            raw = [member.name.encode("utf-8", "surrogateescape") for member in archive if member.isfile()]
        self.assertEqual([os.path.basename(path) for path in raw], [name])
        self.assertEqual(box.runtime("PUT", "/fs/upload" + quoted, b"new").status, 200)
        self.assertEqual(box.runtime("GET", "/fs/download" + quoted).body, b"new")
        self.assertEqual(box.runtime("DELETE", "/fs" + quoted).status, 200)
        self.assertEqual(box.exec("/bin/ls", "-A")["stdout"], "")

    def test_watch(self):
        box = self.create()
        box.exec("/bin/mkdir", "-p", "deep/er")
        seen = []
        with box.stream("/fs/watch/workspace?recursive=true") as reply:
            stream = events(reply)
            self.assertEqual(next(stream)[0], "ready")
            box.exec("/bin/sh", "-c", "echo 1 > f; echo 2 >> f; chmod 600 f; mv f g; rm g; mkdir new; echo 3 > deep/er/h; echo end > end")
            for name, event in stream:
                seen.append((name, os.path.relpath(event["path"], "/workspace") if "path" in event else ""))
                if seen[-1][1] == "end":
                    break
        kinds = {name for name, _ in seen}
        self.assertLessEqual({"created", "modified", "removed", "attributes"}, kinds, seen)
        self.assertIn(("created", "f"), seen)
        self.assertTrue(any(name == "renamed" for name, _ in seen), seen)
        self.assertTrue(("removed", "g") in seen, seen)
        self.assertTrue(any(path == "deep/er/h" for _, path in seen), seen)

    def test_watch_of_new_directories(self):
        box = self.create()
        with box.stream("/fs/watch/workspace?recursive=true") as reply:
            stream = events(reply)
            self.assertEqual(next(stream)[0], "ready")
            box.exec("/bin/sh", "-c", "mkdir -p a/b/c; sleep 0.3; echo x > a/b/c/f")
            for _, event in stream:
                if event.get("path", "").endswith("a/b/c/f"):
                    break

    def test_search(self):
        box = self.create()
        box.exec("/bin/sh", "-c", "mkdir src; for i in 1 2 3; do printf 'a\\nmatch %s\\nb\\n' $i > src/$i.py; done; printf 'match\\0' > src/bin; echo Match > t.txt")
        body = box.runtime("POST", "/search", {"pattern": "match [0-9]", "cwd": "/workspace", "context": 1}).json
        matches = sorted(body["matches"], key=lambda match: match["path"])
        self.assertEqual([(m["line"], m["text"], m["before"], m["after"]) for m in matches],
                         [(2, f"match {i}", ["a"], ["b"]) for i in (1, 2, 3)])  # fmt: skip
        self.assertFalse(body["truncated"])
        body = box.runtime("POST", "/search", {"pattern": "match", "maxResults": 2}).json
        self.assertEqual((len(body["matches"]), body["truncated"]), (2, True))
        body = box.runtime("POST", "/search", {"pattern": "match", "glob": "*.txt", "ignoreCase": True}).json
        self.assertEqual([m["text"] for m in body["matches"]], ["Match"])
        self.assertEqual(box.runtime("POST", "/search", {"pattern": "("}).status, 400)
        self.assertEqual(box.runtime("POST", "/search", {}).status, 400)


if __name__ == "__main__":
    fixture.main()
