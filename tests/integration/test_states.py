#!/usr/bin/env python3
"""States that are kept, returned to and branched from."""

import os
import threading

import fixture
from fixture import AtollCase, Box, cli, http as request, in_parallel, unique, wait_until
from pool_files import pool_of

# Appends numbered records to a log, each also to a second file after the first: whatever is kept of them is a prefix,
# and the second is never ahead of the first.
LOG_WRITER = """
import os
first = os.open("/workspace/first", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
second = os.open("/workspace/second", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for i in range(10**9):
    record = b"%010d\\n" % i
    os.write(first, record)
    os.write(second, record)
"""


class StateCase(AtollCase):
    def take(self, box, **body):
        reply = request("POST", box.path("/snapshots"), body)
        self.assertEqual(reply.status, 201, reply)
        return reply.json

    def from_snapshot(self, snapshot, **body):
        reply = request("POST", "/v1/sandboxes", {"fromSnapshot": snapshot, **body})
        self.assertEqual(reply.status, 201, reply)
        return Box(reply.json["id"])

    def sh(self, box, script):
        result = box.exec("/bin/sh", "-c", script)
        self.assertEqual(result["exitCode"], 0, result)
        return result["stdout"]


class States(StateCase):
    def test_a_snapshot_is_a_moment(self):
        box = self.create(env={"A": "1"})
        self.sh(box, "echo one > f; ln -s f link; mkdir -p d/e; chmod 700 d; rm /etc/motd; echo x > /etc/new")
        one = self.take(box, message="first", tags=["t"])
        self.assertEqual((one["message"], one["tags"], one["parent"]), ("first", ["t"], None))
        self.assertGreater(one["frozenMicroseconds"], 0)
        self.sh(box, "echo two > f; rm link; rm -r d")
        two = self.take(box)
        self.assertEqual(two["parent"], one["snapshotId"])
        old, new = self.from_snapshot("t"), self.from_snapshot(two["snapshotId"])
        self.assertEqual(self.sh(old, "cat link; stat -c %a d; test -e /etc/motd || cat /etc/new; echo $A"),
                         "one\n700\nx\n1\n")
        self.assertEqual(self.sh(new, "cat f; ls"), "two\nf\n")
        self.assertEqual(self.sh(box, "cat f"), "two\n")
        self.sh(old, "echo changed > f")
        again = self.from_snapshot(one["snapshotId"], env={"A": "2"})
        self.assertEqual(self.sh(again, "cat f; echo $A"), "one\n2\n", "a snapshot never changes")
        listed = request("GET", box.path("/snapshots")).json["snapshots"]
        self.assertEqual([item["snapshotId"] for item in listed], [one["snapshotId"], two["snapshotId"]])

    def test_restore(self):
        box = self.create(name=unique("back"))
        self.sh(box, "echo one > f")
        kept = self.take(box)["snapshotId"]
        self.sh(box, "echo two > f; echo more > g; sleep 1000 >/dev/null 2>&1 &")
        reply = request("POST", box.path("/restore"), {"snapshotId": kept})
        self.assertEqual((reply.status, reply.json["status"]), (200, "running"), reply)
        self.assertEqual(self.sh(box, "cat f; ls"), "one\nf\n")
        self.assertEqual(self.sh(box, "pgrep sleep || true"), "", "what ran has ended")
        request("POST", box.path("/stop"))
        self.assertEqual(request("POST", box.path("/restore"), {"snapshotId": kept}).status, 200)
        self.assertEqual(self.sh(box, "cat f"), "one\n")

    def test_fork(self):
        box = self.create(name=unique("source"), metadata={"m": "1"})
        self.sh(box, "echo 0123456789abcdef0123456789abcdef > /etc/machine-id; echo here > f; (sleep 1000 &) >/dev/null 2>&1")
        reply = request("POST", box.path("/fork"), {"count": 5, "name": unique("copy")})
        self.assertEqual(reply.status, 201, reply)
        copies = [Box(item["id"]) for item in reply.json["sandboxes"]]
        self.assertEqual(len(copies), 5)
        self.assertEqual({item["metadata"]["m"] for item in reply.json["sandboxes"]}, {"1"})
        self.assertEqual(self.sh(copies[0], "cat f; pgrep sleep || true"), "here\n", "files, not processes")
        self.assertEqual(self.sh(box, "pgrep -c sleep"), "1\n", "the source goes on")

    def test_k04_a_hundred_copies_are_all_others(self):
        rule = {"transform": [{"headers": {"X-Key": "1"}}]}
        box = self.create(network={"allow": {"api.example.org": [rule]}})
        self.sh(box, "echo 0123456789abcdef0123456789abcdef > /etc/machine-id; echo here > f")
        reply = request("POST", box.path("/fork"), {"count": 100, "name": unique("copy")}, timeout=120)
        self.assertEqual(reply.status, 201, reply)
        rows = reply.json["sandboxes"]
        copies = [Box(row["id"]) for row in rows]
        say = ("cat f; hostname; cat /etc/machine-id; head -c16 /dev/urandom | od -An -w16 -tx8 | tr -d ' ';"
               " md5sum < /usr/local/share/ca-certificates/atoll-egress.crt | cut -c-32; hostname > f; cat f")
        said = [self.sh(box, say).split()]
        for begin in range(0, len(copies), 10):
            said += in_parallel([lambda copy=copy: self.sh(copy, say).split() for copy in copies[begin:begin + 10]])
        self.assertEqual({words[0] for words in said}, {"here"}, "what one writes no other sees")
        self.assertEqual([words[1] for words in said], [words[5] for words in said])
        self.assertEqual({words[1] for words in said[1:]}, {copy.id for copy in copies})
        for column, what in ((1, "hostname"), (2, "machine-id"), (3, "randomness"), (4, "authority")):
            self.assertEqual(len({words[column] for words in said}), 101, what)
        tokens = [request("POST", copy.path("/tokens"), {"scope": "read-only"}).json["token"] for copy in copies[:2]]
        mine, other = (request("GET", f"/v1/sidecar-proxy/{copies[0].id}/process", headers={"Authorization": f"Bearer {token}"})
                       for token in tokens)
        self.assertEqual((mine.status, other.status // 100), (200, 4), (mine, other))

    def test_a_fork_is_whole_or_not_at_all(self):
        box, name = self.create(), unique("taken")
        self.create(name=f"{name}-3")
        before = {row["id"] for row in request("GET", "/v1/sandboxes").json["sandboxes"]}
        reply = request("POST", box.path("/fork"), {"count": 4, "name": name})
        self.assertEqual((reply.status, reply.json["fields"]), (409, ["name"]), reply)
        after = {row["id"] for row in request("GET", "/v1/sandboxes").json["sandboxes"]}
        self.assertEqual(after, before)

    def test_stopped_and_paused_ones(self):
        box = self.create()
        self.sh(box, "echo kept > f")
        request("POST", box.path("/pause"))
        paused = self.take(box)["snapshotId"]
        self.assertEqual(request("GET", box.path("")).json["status"], "paused", "it stays paused")
        request("POST", box.path("/unpause"))
        request("POST", box.path("/stop"))
        stopped = self.take(box)["snapshotId"]
        for snapshot in (paused, stopped):
            self.assertEqual(self.sh(self.from_snapshot(snapshot), "cat f"), "kept\n")
        copy = request("POST", box.path("/fork"), {}).json["sandbox"]
        self.assertEqual(self.sh(Box(copy["id"]), "cat f"), "kept\n")

    def test_snapshots_outlive_their_sandbox_and_copies_their_snapshot(self):
        box = self.create()
        self.sh(box, "echo kept > f")
        kept = self.take(box)["snapshotId"]
        request("DELETE", box.path(""))
        copy = self.from_snapshot(kept)
        self.assertEqual(request("DELETE", f"/v1/snapshots/{kept}").status, 200)
        self.assertEqual(request("GET", f"/v1/snapshots/{kept}").status, 404)
        self.assertEqual(self.sh(copy, "cat f"), "kept\n")
        request("POST", copy.path("/stop"))
        self.assertEqual(request("POST", copy.path("/resume")).status, 200)
        self.assertEqual(self.sh(copy, "cat f"), "kept\n")
        self.assertEqual(request("POST", "/v1/sandboxes", {"fromSnapshot": kept}).status, 404)

    def test_a_snapshot_goes_when_its_time_is_up(self):
        kept = self.take(self.create(), keepSeconds=1)
        self.assertIn("expiresAt", kept)
        gone = lambda: request("GET", f"/v1/snapshots/{kept['snapshotId']}").status == 404  # noqa: E731
        wait_until(gone, 15, "it has been removed")

    def test_the_disk_limit_holds_in_copies_and_can_be_changed(self):
        box = self.create(resources={"diskGB": 0.0625})
        copy = Box(request("POST", box.path("/fork"), {}).json["sandbox"]["id"])
        fill = "dd if=/dev/zero of=big bs=1M count=80 2>&1 | grep -o 'quota exceeded' || true"
        self.assertIn("quota", self.sh(copy, fill))
        self.sh(copy, "rm big; sync")
        self.assertEqual(request("PATCH", copy.path(""), {"resources": {"diskGB": 1}}).status, 200)
        self.assertEqual(self.sh(copy, fill), "")

    def test_diff(self):
        box = self.create()
        self.sh(box, "echo one > same; echo one > changed; mkdir gone; echo x > gone/f")
        first = self.take(box)["snapshotId"]
        self.sh(box, "echo two > changed; rm -r gone; echo new > new; rm /etc/issue; chmod 700 same")
        second = self.take(box)["snapshotId"]
        self.sh(box, "rm new")

        def changes(tail):
            body = request("GET", box.path(f"/diff?from={first}{tail}")).json
            self.assertTrue(body["complete"])
            return {item["path"]: item for item in body["changes"]}

        found = changes(f"&to={second}&text=true")
        kinds = {path: item["kind"] for path, item in found.items()}
        self.assertEqual(kinds, {"/etc/issue": "removed", "/workspace/changed": "changed", "/workspace/gone": "removed",
                                 "/workspace/new": "added", "/workspace/same": "changed"})
        self.assertEqual(found["/workspace/changed"]["text"], "@@ -1 +1 @@\n-one\n+two\n")
        self.assertEqual((found["/workspace/new"]["sizeBefore"], found["/workspace/new"]["sizeAfter"]), (0, 4))
        self.assertNotIn("/workspace/new", changes(""))
        shown = cli("diff", box.id, first, second, "--text").stdout
        self.assertRegex(shown, r"(?m)^~ /workspace/changed  4 B -> 4 B\n  @@ -1 \+1 @@\n  -one\n  \+two$")
        self.assertRegex(shown, r"(?m)^- /workspace/gone/$")
        self.sh(box, "mkdir many; cd many; for i in $(seq 6000); do : > a-rather-long-name-for-a-file-$i; done")
        body = request("GET", box.path(f"/diff?from={first}")).json
        self.assertFalse(body["complete"], "what does not fit is said to be missing")
        self.assertGreater(len(body["changes"]), 1000)
        self.assertEqual(request("GET", box.path("/diff")).status, 400)

    def test_history_and_undo(self):
        name = unique("undo")
        box = self.create(name=name, history=True)
        self.sh(box, "echo one > f")
        self.sh(box, "echo two > f")
        cli("exec", name, "--", "rm", "-rf", "/workspace/f", "/etc/issue")
        points = request("GET", box.path("/history")).json["points"]
        self.assertEqual([point["command"].split()[0] for point in points][-1], "rm")
        self.assertEqual(len(points), 3)
        self.assertEqual(request("GET", box.path("/snapshots")).json["snapshots"], [], "these are not for everybody")
        self.assertIn("undone: rm -rf /workspace/f", cli("undo", name).stdout)
        self.assertEqual(request("POST", box.path("/undo")).json["snapshotId"], points[1]["snapshotId"])
        self.assertEqual(request("POST", box.path("/undo")).json["snapshotId"], points[0]["snapshotId"])
        reply = request("POST", box.path("/undo"))
        self.assertEqual((reply.status, reply.json["message"]), (409, "there is nothing more to undo"))
        self.assertEqual(self.sh(box, "ls /workspace; test -e /etc/issue && echo there"), "there\n")
        self.assertEqual(len(request("GET", box.path("/history")).json["points"]), 1, "what was undone is gone")
        self.sh(box, "echo new > g")
        shown = cli("history", name, "--changes").stdout
        self.assertRegex(shown, r"(?m)^\+ /workspace/g  4 B$")
        plain = self.create()
        reply = request("POST", plain.path("/undo"))
        self.assertEqual(reply.status, 409, reply)

    def test_bad_input(self):
        box = self.create()
        cases = [
            ("/snapshots", {"paths": ["/etc"]}, 501, "paths"),
            ("/snapshots", {"tags": [""]}, 400, "tags"),
            ("/snapshots", {"message": "x" * 5000}, 400, "message"),
            ("/snapshots", {"keepSeconds": 0}, 400, "keepSeconds"),
            ("/snapshots", {"what": 1}, 400, "what"),
            ("/fork", {"count": 0}, 400, "count"),
            ("/fork", {"memory": "yes"}, 400, "memory"),
            ("/restore", {}, 400, "snapshotId"),
        ]  # fmt: skip
        for path, body, status, field in cases:
            with self.subTest(path=path, body=body):
                reply = request("POST", box.path(path), body)
                self.assertEqual((reply.status, reply.json.get("fields")), (status, [field]), reply)
        self.assertEqual(request("POST", box.path("/restore"), {"snapshotId": "snap-none"}).status, 404)
        kept = self.take(box)["snapshotId"]
        reply = request("POST", "/v1/sandboxes", {"fromSnapshot": kept, "git": {"url": "https://x/y"}})
        self.assertEqual((reply.status, reply.json["fields"]), (400, ["git"]))

    def test_command_line(self):
        name = unique("web")
        cli("create", "--name", name)
        self.addCleanup(cli, "rm", "-f", name, f"{name}-1", f"{name}-2", f"{name}-new")
        cli("exec", name, "--", "sh", "-c", "echo one > f")
        kept = cli("snapshot", "create", name, "-m", "deps installed", "--tag", "v1").stdout.strip()
        self.assertRegex(kept, r"^snap-[0-9a-f]+$")
        self.assertRegex(cli("snapshot", "ls", name).stdout, rf"(?m)^{kept} .*deps installed")
        cli("exec", name, "--", "sh", "-c", "echo two > f")
        self.assertEqual(cli("fork", name, "--count", "2", "--name", name).stdout, f"{name}-1\n{name}-2\n")
        cli("restore", name, kept)
        self.assertEqual(cli("exec", name, "--", "cat", "f").stdout, "one\n")
        self.assertEqual(cli("exec", f"{name}-1", "--", "cat", "f").stdout, "two\n")
        cli("create", "--from-snapshot", "v1", "--name", f"{name}-new")
        self.assertEqual(cli("exec", f"{name}-new", "--", "cat", "f").stdout, "one\n")
        cli("snapshot", "rm", kept)
        self.assertEqual(cli("snapshot", "ls", "-q", name).stdout, "")


class Retention(StateCase):
    def test_prune(self):
        box = self.create()
        kept = [self.take(box)["snapshotId"] for _ in range(4)] + [self.take(box, tags=["v1"])["snapshotId"]]
        would = cli("snapshot", "prune", box.id, "--keep", "2", "--dry-run").stdout.split()
        self.assertEqual(would, kept[:3])
        self.assertEqual(cli("snapshot", "prune", "--younger-than", "1h").stdout, "")
        self.assertEqual(cli("snapshot", "prune", box.id, "--keep", "2").stdout.split(), kept[:3])
        self.assertEqual(cli("snapshot", "ls", "-q", box.id).stdout.split(), kept[3:])
        self.assertEqual(cli("snapshot", "prune", "--keep", "0").stdout.split(), [kept[3]], "a tag keeps the last")
        self.assert_error(request("POST", "/v1/snapshots/prune", {}), 400, "VALIDATION_ERROR", "keepNewest")

    def test_back_to_before_a_command(self):
        box = self.create(history=True)
        for word in ("one", "two", "three"):
            self.sh(box, f"echo {word} >> log")
        points = request("GET", box.path("/history")).json["points"]
        self.assertEqual([point["number"] for point in points], [1, 2, 3])
        cli("restore", box.id, "--to", "3")
        with_history = request("GET", box.path("/history")).json["points"]
        self.assertEqual(len(with_history), 3, "nothing has happened since")
        self.assertEqual(box.exec("/bin/cat", "log")["stdout"], "one\ntwo\n")
        self.assert_error(request("POST", box.path("/restore"), {"to": 99}), 404, "NOT_FOUND", "to")
        self.assert_error(request("POST", box.path("/restore"), {}), 400, "VALIDATION_ERROR", "snapshotId")


class Pool(StateCase):
    def test_it_grows_while_it_is_used(self):
        before = request("GET", "/v1/system/storage").json
        box = self.create()
        writer = box.spawn("python3", "-c", LOG_WRITER)
        size = ((before["sizeBytes"] >> 30) + 2) << 30
        shown = cli("storage", "grow", f"{size >> 30}g", "--json").stdout
        self.assertIn(f'"sizeBytes":{size}', shown.replace(" ", ""))
        after = request("GET", "/v1/system/storage").json
        self.assertGreater(after["freeBytes"], before["freeBytes"] + (1 << 29))
        self.assertTrue(box.process(writer["pid"])["running"])
        smaller = request("PATCH", "/v1/system/storage", {"sizeBytes": 1 << 30})
        self.assert_error(smaller, 400, "VALIDATION_ERROR", "sizeBytes")
        self.assertIn("Pool", cli("storage", "show").stdout)


class Consistency(StateCase):
    def test_a_storm_of_writes_during_200_snapshots(self):
        box = self.create()
        writer = box.spawn("python3", "-c", LOG_WRITER)
        wait_until(lambda: int(self.sh(box, "stat -c %s second 2>/dev/null || echo 0")) > 0, 20, "it writes")
        kept = [self.take(box)["snapshotId"] for _ in range(200)]
        self.assertTrue(box.process(writer["pid"])["running"])
        sizes = []
        with pool_of(self.server) as pool:
            for snapshot in kept:
                upper = pool / "states" / snapshot / "upper/workspace"
                first, second = (upper / "first").read_bytes(), (upper / "second").read_bytes()
                lines = first.splitlines(keepends=True)
                for i in (0, len(lines) // 2, len(lines) - 2):
                    self.assertEqual(lines[i], b"%010d\n" % i)
                self.assertEqual(len(first) % 11, 0, "no record is torn")
                self.assertTrue(first.startswith(second) and len(first) - len(second) in (0, 11),
                                f"what was written later is not there without what was written before: {len(first)} {len(second)}")
                sizes.append(len(first))
        self.assertEqual(sizes, sorted(sizes))
        restored = self.from_snapshot(kept[100])
        self.assertEqual(int(self.sh(restored, "stat -c %s first")), sizes[100])

    def test_databases_and_repositories_stay_whole(self):
        box = self.create()
        self.sh(box, "git init -q r && cd r && git config user.email a@b && git config user.name n")
        work = """
import sqlite3, subprocess
db = sqlite3.connect("/workspace/db")
db.execute("pragma journal_mode=wal")
db.execute("create table t (i integer primary key, v text)")
for i in range(10**9):
    db.execute("insert into t values (?, ?)", (i, "x" * 200)); db.commit()
    if i % 50 == 0: subprocess.run("echo %d > f && git add f && git commit -qm %d" % (i, i), shell=True, cwd="/workspace/r")
"""
        box.spawn("python3", "-c", work)
        wait_until(lambda: int(self.sh(box, "git -C r rev-list --count HEAD 2>/dev/null || echo 0")) > 2, 30, "it works")
        check = ("python3 -c 'import sqlite3; print(sqlite3.connect(\"/workspace/db\").execute(\"pragma integrity_check\")"
                 ".fetchone()[0])'; rm -f r/.git/index.lock; git -C r fsck --strict >/dev/null 2>&1 && echo fine")
        for _ in range(5):
            copy = self.from_snapshot(self.take(box)["snapshotId"])
            self.assertEqual(self.sh(copy, check), "ok\nfine\n")
            fork = Box(request("POST", box.path("/fork"), {}).json["sandbox"]["id"])
            self.assertEqual(self.sh(fork, check), "ok\nfine\n")
            for done in (copy, fork):
                request("DELETE", done.path(""))

    def test_pauses_lose_nothing(self):
        box = self.create()
        for i in range(50):
            self.sh(box, f"echo {i} >> log")
            self.assertEqual(request("POST", box.path("/pause")).status, 200)
            self.assertEqual(request("POST", box.path("/unpause")).status, 200)
        self.assertEqual(self.sh(box, "cat log").split(), [str(i) for i in range(50)])


class Crashes(StateCase):
    """kill -9 of the launcher and the server while states are made: the old or the new, and nothing in between."""

    def test_kills(self):
        box = self.create()
        self.sh(box, "mkdir d; for i in $(seq 200); do echo $i > d/$i; done; echo base > f")
        acknowledged = [self.take(box)["snapshotId"]]
        for round_ in range(5):  # more in a row, and the supervisor gives up
            stop = threading.Event()

            def storm():
                while not stop.is_set():
                    try:
                        reply = request("POST", box.path("/snapshots"), {}, timeout=20)
                        if reply.status == 201:
                            acknowledged.append(reply.json["snapshotId"])
                        forked = request("POST", box.path("/fork"), {"count": 2}, timeout=20)
                        for item in forked.json.get("sandboxes", []) if forked.status == 201 else []:
                            request("DELETE", f"/v1/sandboxes/{item['id']}", timeout=20)
                    except (OSError, ValueError):
                        pass

            thread = threading.Thread(target=storm)
            thread.start()
            known = len(acknowledged)
            wait_until(lambda count=known: len(acknowledged) > count, 20, "a snapshot was taken")
            self.server.kill("launcher" if round_ % 2 else "server")
            stop.set()
            thread.join(60)
            status = request("GET", box.path("")).json["status"]
            if status != "running":
                self.assertEqual(request("POST", box.path("/resume")).status, 200)
            self.assertEqual(self.sh(box, "cat f; ls d | wc -l"), "base\n200\n")
        listed = {item["snapshotId"] for item in request("GET", box.path("/snapshots")).json["snapshots"]}
        self.assertEqual(set(acknowledged) - listed, set(), "nothing acknowledged is lost")
        with pool_of(self.server) as pool:
            self.assertEqual(set(os.listdir(pool / "states")), listed, "and nothing else is there")
        copy = self.from_snapshot(acknowledged[-1])
        self.assertEqual(self.sh(copy, "cat f; ls d | wc -l"), "base\n200\n")
        for row in request("GET", "/v1/sandboxes").json["sandboxes"]:
            request("DELETE", f"/v1/sandboxes/{row['id']}")


if __name__ == "__main__":
    fixture.main()
