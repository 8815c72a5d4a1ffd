#!/usr/bin/env python3
"""Templates from images: layouts, saved archives, registries; what their settings do to a sandbox."""

import json
import os
import pathlib
import tarfile
import unittest

import fixture
import images
import product
import registry
from box import Box as product_box
from fixture import AtollCase, http, unique
from images import SHELL, Image, file


class Imports(AtollCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.server.home, unique("images"))
        self.folder.mkdir()

    def import_source(self, source, name, *more, check=True, **options):
        return fixture.cli(
            "template", "import", str(source), "--name", name, "--data-dir", str(self.server.data), "--json", *more,
            check=check, **options,
        )  # fmt: skip

    def imported(self, source, name, *more):
        return json.loads(self.import_source(source, name, *more).stdout)

    def refused(self, source, words, *more, **options):
        name = unique("bad")
        done = self.import_source(source, name, *more, check=False, **options)
        self.assertIn(words, self.assert_fails(done))
        self.assertFalse((self.server.data / f"templates/{name}.json").exists())
        self.assertEqual(list((self.server.data / "incoming").iterdir()), [])

    def shell(self, box, script, **more):
        done = box.exec(*SHELL, "-c", script, **more)
        self.assertEqual(done["exitCode"], 0, done)
        return done["stdout"]


class Layouts(Imports):
    def test_layers_whiteouts_and_what_shows_of_them(self):
        image = Image(
            [*images.tools(), file("etc/gone", b"1"), file("etc/kept", b"1"), file("var/old/a", b"1"), file("d/x", b"1")],
            [file("etc/.wh.gone"), file("var/old/.wh..wh..opq"), file("var/old/b", b"2"), file(".wh.d"), file("top", b"2")],
            [file("etc/kept", b"3"), file("d/y", b"3")],
            packing="+gzip",
        )
        made = self.imported("oci:" + str(image.write_layout(self.folder / "layout")), "layered")
        self.assertEqual(len(made["layers"]), 4)
        box = self.create(templateId="layered")
        self.assertEqual(self.shell(box, "cd /; echo etc/* var/old/* d/*; read x <etc/kept; echo $x"),
                         "etc/kept etc/passwd etc/resolv.conf var/old/b d/y\n3\n")  # fmt: skip
        # The overlay is a whole one: what the image took away can be made anew, and the rest removed.
        self.shell(box, "cd /; echo new >etc/gone; echo new >d/x; echo >/dev/null; echo x >/tmp/x; echo x >/workspace/x")
        again = self.create(templateId="layered", pool=False)
        self.assertEqual(self.shell(again, "cd /; echo etc/* d/*"), "etc/kept etc/passwd etc/resolv.conf d/y\n")

    def test_the_same_layers_from_a_saved_archive(self):
        image = Image([*images.tools()], [file("a", b"x")], packing="+zstd")
        plain = Image([*images.tools()], [file("a", b"x")])
        first = self.imported("oci:" + str(image.write_layout(self.folder / "layout")), "one")
        second = self.imported(plain.write_saved(self.folder / "saved.tar"), "two")
        self.assertEqual(first["layers"], second["layers"])
        self.assertEqual(second["reusedLayers"], 2)

    def test_settings_of_the_image_are_defaults(self):
        image = Image(
            [*images.tools(), file("app/x", b"1"), file("home/user/x", b"")],
            Env=["GREETING=hello", "OTHER=1"], WorkingDir="/app", User="user", Cmd=["sh"],
        )  # fmt: skip
        self.imported("oci:" + str(image.write_layout(self.folder / "layout")), "settled")
        script = "echo $PWD $GREETING $OTHER"
        for pool in [False, True, True]:
            box = self.create(templateId="settled", env={"OTHER": "2"}, pool=pool)
            self.assertEqual(self.shell(box, script), "/app hello 2\n")
            self.assertEqual(box.info()["user"], "user")
        self.assertEqual(self.shell(self.create(templateId="settled", user="root"), "echo >/app/y; echo $PWD"), "/app\n")
        # They stay what they were when it is started again, also with a new version of the template.
        other = Image([*images.tools()], Env=["GREETING=bye"])
        self.imported("oci:" + str(other.write_layout(self.folder / "other")), "settled")
        self.assertEqual(http("POST", box.path("/stop")).status, 200)
        self.assertEqual(http("POST", box.path("/resume")).status, 200)
        self.assertEqual(self.shell(box, script), "/app hello 2\n")
        self.assertEqual(self.shell(self.create(templateId="settled"), script), "/workspace bye\n")
        self.assertEqual(self.shell(self.create(templateId="settled@1"), script), "/app hello 1\n")
        self.assert_error(http("POST", "/v1/sandboxes", {"templateId": "settled@7"}), 404, "TEMPLATE_NOT_FOUND")

    def test_settings_survive_the_servers_death(self):
        image = Image([*images.tools()], Env=["GREETING=hello"], WorkingDir="/tmp")
        self.imported("oci:" + str(image.write_layout(self.folder / "layout")), "lasting")
        box = self.create(templateId="lasting", env={"OWN": "mine"}, user="1000")
        self.server.kill("server")
        self.assertEqual(self.shell(box, "echo $PWD $GREETING $OWN"), "/tmp hello mine\n")

    def test_hostile_archives(self):
        canary = self.folder / "canary"
        canary.write_text("precious")
        image = Image([
            *images.tools(), ("out", tarfile.SYMTYPE, "/"), file("out/escaped"), ("up", tarfile.SYMTYPE, "../../.."),
            file("up/escaped2"), ("hard", tarfile.LNKTYPE, "etc/passwd"), file("out/.wh.canary"),
            ("null", tarfile.CHRTYPE, "", {"devmajor": 1, "devminor": 1}), ("wh", tarfile.CHRTYPE, ""),
        ])  # fmt: skip
        self.imported("oci:" + str(image.write_layout(self.folder / "layout")), "hostile")
        self.assertFalse(pathlib.Path("/escaped").exists() or pathlib.Path("/escaped2").exists())
        self.assertEqual(canary.read_text(), "precious")
        box = self.create(templateId="hostile")
        self.assertEqual(self.shell(box, "cd /; [ ! -e null ] && [ ! -e wh ] && [ -e escaped ] && echo fine"), "fine\n")
        for name, words in {"../x": "../x", "a/../../x": "leads out"}.items():
            bad = Image([file(name)])
            self.refused("oci:" + str(bad.write_layout(self.folder / unique("bad"))), words)
        owner = Image([file("x", uid=70000)])
        self.refused("oci:" + str(owner.write_layout(self.folder / "owner")), "ids 0 to 65535")
        many = Image(*[[file("x")]] * 129)
        self.refused("oci:" + str(many.write_layout(self.folder / "many")), "128 are the most")

    def test_what_is_no_image_says_so(self):
        self.refused(f"oci:{self.folder}", "no OCI layout")
        self.refused(self.folder / "missing.tar", "No such file")
        self.refused("debian", "No such file")


@unittest.skipIf(registry.PROGRAM is None, "docker-registry is missing: ./dev setup")
class Registries(Imports):
    def setUp(self):
        super().setUp()
        self.registry = registry.Registry()
        self.addCleanup(self.registry.close)
        self.image = Image([*images.tools()], [file("big", os.urandom(1 << 20))], *[[file(f"l{i}", os.urandom(5000))] for i in range(6)],
                           packing="+gzip", Env=["FROM=registry"])  # fmt: skip

    def front(self, **options):
        front = registry.Front(self.registry, **options)
        self.addCleanup(front.close)
        return front

    def test_pull_and_run(self):
        source = self.registry.push("team/web", "1.0", self.image)
        made = self.imported(source, "web")
        self.assertEqual(len(made["layers"]), 9)
        self.assertEqual(made["digest"], images.digest(self.image.manifest))
        box = self.create(templateId="web")
        self.assertEqual(self.shell(box, "echo $FROM; echo /l?"), "registry\n/l0 /l1 /l2 /l3 /l4 /l5\n")
        self.assertTrue(self.imported(f"{self.registry.host}/team/web@{made['digest']}", "web")["reused"])
        self.refused(f"{self.registry.host}/team/web:nope", "404")
        self.refused(f"{self.registry.host}/team/web@sha256:{'0' * 64}", "404")

    def test_layers_that_are_there_are_not_downloaded(self):
        self.imported(self.registry.push("a", "1", self.image), "first")
        self.registry.push("b", "1", Image([*images.tools()], [file("other", os.urandom(8))], packing="+gzip"))
        front = self.front()
        self.assertEqual(self.imported(f"{front.host}/b:1", "second")["reusedLayers"], 1)
        blobs = [path for path, _, _ in front.seen if "/blobs/" in path]
        self.assertEqual(len(blobs), 2, blobs)

    def test_this_processors_image_is_chosen(self):
        others = {"amd64": "arm64", "arm64": "amd64"}
        other = Image([file("wrong")], architecture=others[images.ARCHITECTURE])
        for image in (other, self.image):
            self.registry.push("multi", "part", image)
        index = images.index_of((others[images.ARCHITECTURE], other), (images.ARCHITECTURE, self.image))
        self.registry.push_manifest("multi", "all", index, images.INDEX)
        made = self.imported(f"{self.registry.host}/multi:all", "multi")
        self.assertEqual(made["digest"], images.digest(self.image.manifest))
        index = images.index_of((others[images.ARCHITECTURE], other))
        self.registry.push_manifest("multi", "wrong", index, images.INDEX)
        self.refused(f"{self.registry.host}/multi:wrong", "there is no image for linux/" + images.ARCHITECTURE)

    def test_cut_connections_are_taken_up(self):
        self.registry.push("cut", "1", self.image)
        front = self.front(cut=100_000)
        self.imported(f"{front.host}/cut:1", "cut")
        ranges = {given for _, _, given in front.seen if given}
        self.assertTrue(all(given.startswith("bytes=") for given in ranges) and ranges, ranges)
        self.assertLessEqual(front.busiest, 4)

    def test_tokens_and_redirects(self):
        self.registry.push("x", "1", self.image)
        front = self.front(token="t0ken", redirect=True)
        self.imported(f"{front.host}/x:1", "tokens", "--user", "alice:secret")
        asked = {path.partition("?")[0]: authorization for path, authorization, _ in front.seen}
        self.assertTrue(asked["/token"].startswith("Basic "))
        self.assertEqual(asked["/v2/x/manifests/1"], "Bearer t0ken")

    def test_basic_login(self):
        closed = registry.Registry(login=True)
        self.addCleanup(closed.close)
        source = closed.push("x", "1", self.image)
        self.refused(source, "--user")
        self.refused(source, "401", "--user", "alice:wrong")
        self.imported(source, "basic", "--user", f"{registry.USER}:{registry.PASSWORD}")

    def test_what_was_tampered_with_is_refused(self):
        self.registry.push("x", "1", self.image)
        flip = lambda body: body[:-1] + bytes([body[-1] ^ 1]) if len(body) > 4000 else body  # noqa: E731
        self.refused(f"{self.front(tamper=flip).host}/x:1", "do not match the image")
        self.refused(f"{self.front(tamper=lambda body: body + b'more').host}/x:1", "promised")
        self.refused(f"{self.front(tamper=lambda body: body[:100]).host}/x:1", "promised")

    def test_plain_http_beyond_this_host_is_asked_for(self):
        self.refused("192.0.2.1:1/x:1", "192.0.2.1")
        self.refused("localhost:1/X:1", "malformed repository")

    def test_the_server_imports_and_says_how_far_it_is(self):
        source = self.registry.push("team/api", "1", self.image)
        connection = product.UnixConnection(60)
        self.addCleanup(connection.close)
        body = json.dumps({"name": "api", "source": source, "tag": "prod"})
        connection.request("POST", "/v1/templates/import", body, {"Accept": "text/event-stream", "Content-Type": "application/json"})
        seen = list(fixture.events(connection.getresponse()))
        self.assertEqual({name for name, _ in seen[:-1]}, {"progress"})
        self.assertEqual({event["phase"] for _, event in seen[:-1]}, {"download", "unpack"})
        name, made = seen[-1]
        self.assertEqual((name, made["name"], made["version"]), ("complete", "api", 1))
        self.assertEqual(self.shell(self.create(templateId="api:prod"), "echo $FROM"), "registry\n")
        again = http("POST", "/v1/templates/import", {"name": "api", "source": source})
        self.assertEqual((again.status, again.json["reused"]), (201, True), again)
        gone = http("POST", "/v1/templates/import", {"name": "api", "source": self.registry.host + "/team/none:1"})
        self.assert_error(gone, 404, "NOT_FOUND")
        self.assertEqual(list((self.server.data / "incoming").iterdir()), [])

    def test_the_server_imports_nothing_from_where_it_should_not(self):
        for source in ("/etc/passwd", "oci:/", "../x:1", "x", ""):
            reply = http("POST", "/v1/templates/import", {"name": "bad", "source": source})
            self.assert_error(reply, 400, "VALIDATION_ERROR", "source")
        for name in ("../x", "a@1", "a:b", "A", ""):
            reply = http("POST", "/v1/templates/import", {"name": name, "source": "localhost:1/x:1"})
            self.assertEqual(reply.status, 400, reply)


class Service(Imports):
    """Templates over HTTP."""

    def upload(self, data, name):
        connection = product.UnixConnection(60)
        self.addCleanup(connection.close)
        connection.request("POST", f"/v1/templates/import?name={name}", data, {"Content-Type": "application/octet-stream"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def layers(self):
        return {path.name for path in (self.server.data / "layers").iterdir() if path.name[0] != "."}

    def test_uploads(self):
        image = Image([*images.tools()], [file("a", os.urandom(100))], Env=["A=b"])
        saved = image.write_saved(self.folder / "saved.tar")
        for data in (saved.read_bytes(), images.zstd(saved.read_bytes())):
            status, made = self.upload(data, "uploaded")
            self.assertEqual((status, made["layers"], made["version"]), (201, 3, 1), made)
        self.assertEqual(self.shell(self.create(templateId="uploaded"), "echo $A"), "b\n")
        status, made = self.upload(images.tar(*images.tools()), "rootfs")
        self.assertEqual((status, made["layers"]), (201, 1), made)
        self.assertEqual(self.shell(self.create(templateId="rootfs"), "echo fine"), "fine\n")
        for data in (b"", b"nonsense" * 1000, images.tar(file("../x"))):
            status, error = self.upload(data, "bad")
            self.assertEqual((status, error["code"]), (400, "VALIDATION_ERROR"), error)
        self.assertEqual(list((self.server.data / "incoming").iterdir()), [])
        self.assertEqual(http("GET", "/v1/templates/bad").status, 404)

    def test_versions_tags_and_removal(self):
        before = self.layers()
        for content in (b"1", b"2"):
            self.upload(images.tar(*images.tools(), file("v", content)), "versioned")
        self.assertEqual(http("PUT", "/v1/templates/versioned@1/tags/old").json["tags"], ["old"])
        box = self.create(templateId="versioned:old")
        self.assertEqual(self.shell(box, "read x </v; echo $x"), "1\n")
        shown = [item for item in http("GET", "/v1/templates?all=true").json["templates"] if item["name"] == "versioned"]
        self.assertEqual([(item["version"], item["inUse"]) for item in shown], [(2, 0), (1, 1)])
        self.assert_error(http("DELETE", "/v1/templates/versioned@1"), 409, "CONFLICT")
        self.assert_error(http("DELETE", "/v1/templates/versioned"), 409, "CONFLICT")
        self.assertEqual(http("DELETE", "/v1/templates/versioned@2").status, 200)
        self.assertEqual(len(self.layers() - before), 1)
        self.assertEqual(self.shell(box, "read x </v; echo $x"), "1\n")
        box.delete()
        self.assertEqual(http("DELETE", "/v1/templates/versioned").status, 200)
        self.assertEqual(self.layers(), before)
        self.assert_error(http("GET", "/v1/templates/versioned"), 404, "TEMPLATE_NOT_FOUND")

    def test_nobody_waits_for_the_removal_of_a_large_one(self):
        """Neither who removes it nor who imports, exports and asks meanwhile; in the end it is gone."""
        before = self.layers()
        many = [file(f"many/{i % 100}/{i}") for i in range(20_000)]
        self.assertEqual(self.upload(images.tar(*images.tools(), *many), "large")[0], 201)
        small = images.tar(*images.tools())
        done = fixture.in_parallel(
            [
                lambda: http("DELETE", "/v1/templates/large").status,
                *[lambda i=i: self.upload(small, f"small-{i}")[0] for i in range(4)],
                *[lambda i=i: fixture.cli("template", "export", "base", str(self.folder / f"{i}.tar.zst")).returncode for i in range(2)],
                *[lambda: http("GET", "/v1/templates/base").status] * 4,
            ]
        )
        self.assertEqual(done, [200, 201, 201, 201, 201, 0, 0, 200, 200, 200, 200])
        for i in range(4):
            self.assertEqual(http("DELETE", f"/v1/templates/small-{i}").status, 200)
        self.assertEqual(self.layers(), before)
        left = lambda: [path for path in (self.server.data / "layers").iterdir() if path.name.startswith(".import-")]  # noqa: E731
        fixture.wait_until(lambda: not left(), 60, "it is gone")

    def test_only_administrators_import_and_remove(self):
        key = http("POST", "/v1/keys", {"name": "member", "role": "member"}).json["key"]
        headers = {"Authorization": f"Bearer {key}"}
        for method, path in (("POST", "/v1/templates/import"), ("DELETE", "/v1/templates/base"), ("PUT", "/v1/templates/base/tags/x")):
            self.assertEqual(http(method, path, {"name": "x", "source": "localhost:1/x:1"}, headers=headers).status, 403)
        self.assertEqual(http("GET", "/v1/templates/base", headers=headers).status, 200)


class Builds(Imports):
    """Templates from a base, files and a script; from snapshots; as archives."""

    def build(self, status=201, **body):
        reply = http("POST", "/v1/templates", body, timeout=120)
        self.assertEqual(reply.status, status, reply)
        return reply.json

    def drop(self, *names):
        for name in names:
            self.assertEqual(http("DELETE", f"/v1/templates/{name}").status, 200)

    def sh(self, box, script):
        done = box.exec("/bin/sh", "-c", script)
        self.assertEqual(done["exitCode"], 0, done)
        return done["stdout"]

    def test_the_command_line(self):
        (self.folder / "files/sub").mkdir(parents=True)
        (self.folder / "files/sub/a").write_text("seeded")
        script = self.folder / "setup.sh"
        script.write_text("cat /workspace/sub/a > /etc/made; echo building; id -un\n")
        name = unique("built")
        command = ["template", "create", name, "--from", "base", "--bootstrap", str(script),
                   "--seed", f"{self.folder}/files:/workspace", "--env", "MODE=x", "--memory", "256m"]  # fmt: skip
        first = fixture.cli(*command)
        self.assertEqual(first.stdout, f"{name}@1\n")
        self.assertIn("building\nroot\n", first.stderr)
        again = fixture.cli(*command)
        self.assertEqual(again.stdout, f"{name}@1\n")
        self.assertIn("reused: ", again.stderr)
        box = self.create(templateId=name)
        self.assertEqual(self.sh(box, "cat /etc/made; echo $MODE"), "seededx\n")
        self.assertEqual(http("GET", box.path("")).json["resources"]["memoryMB"], 256)
        told = self.create(templateId=name, env={"MODE": "y"}, resources={"memoryMB": 128})
        self.assertEqual(self.sh(told, "echo $MODE"), "y\n", "what is said explicitly wins")
        (self.folder / "files/sub/a").write_text("other")
        self.assertEqual(fixture.cli(*command).stdout, f"{name}@2\n", "other contents, another version")
        self.assertEqual(self.sh(self.create(templateId=name), "cat /etc/made"), "other")
        self.assertEqual(self.sh(self.create(templateId=f"{name}@1"), "cat /etc/made"), "seeded")
        self.assertEqual(fixture.cli("template", "set", name, "--env", "MODE=z").stdout, f"{name}@3\n")
        self.assertEqual(self.sh(self.create(templateId=name), "cat /etc/made; echo $MODE"), "otherz\n")
        fixture.cli("template", "set", name, "--allow", "example.org")
        usual, closed = self.create(templateId=name), self.create(templateId=name, network="deny-all")
        self.assertIn("example.org", str(http("GET", usual.path("/network")).json))
        self.assertEqual(http("GET", closed.path("/network")).json["policy"], "deny-all")
        self.server.delete_all()
        self.drop(name)

    def test_a_script_that_fails_leaves_nothing(self):
        name = unique("bad")
        reply = http("POST", "/v1/templates", {"name": name, "bootstrap": "echo so; exit 3"}, timeout=60)
        self.assertEqual(reply.status, 409, reply)
        self.assertIn("exited with 3", reply.json["message"])
        self.assertEqual(http("GET", f"/v1/templates/{name}").status, 404)
        for body, field in (
            ({"name": "Bad Name"}, "name"),
            ({"name": name, "seed": [{"path": "/a"}]}, "seed.content"),
            ({"name": name, "seed": [{"path": "/a", "archive": "%"}]}, "seed.archive"),
            ({"name": name, "workdir": "relative"}, "workdir"),
            ({"name": name, "unknown": 1}, "unknown"),
        ):
            self.assert_error(http("POST", "/v1/templates", body), 400, "VALIDATION_ERROR", field)
        missing = http("POST", "/v1/templates", {"name": name, "from": "nothing"})
        self.assert_error(missing, 404, "TEMPLATE_NOT_FOUND")

    def test_once_for_callers_at_the_same_time(self):
        name = unique("race")
        body = {"name": name, "bootstrap": "echo x >> /etc/count; sleep 1"}
        made = fixture.in_parallel([lambda: self.build(**body)] * 4)
        self.assertEqual(sorted(item["reused"] for item in made), [False, True, True, True])
        self.assertEqual(self.sh(self.create(templateId=name), "cat /etc/count"), "x\n")
        self.server.delete_all()
        self.drop(name)

    def test_from_a_snapshot_and_as_an_archive(self):
        box = self.create(env={"A": "1"})
        self.sh(box, "echo kept > f; rm /etc/motd; ln -s f link; chmod 600 f")
        snapshot = http("POST", box.path("/snapshots"), {"message": "done", "tags": ["v7"]}).json["snapshotId"]
        name = unique("made")
        self.build(name=name, snapshot=snapshot, env={"B": "2"})
        of_template = self.create(templateId=name)
        self.assertEqual(self.sh(of_template, "cat link; echo $B; test -e /etc/motd || stat -c %a f"), "kept\n2\n600\n")
        file, other = str(self.folder / "t.tar.zst"), str(self.folder / "s.tar.zst")
        fixture.cli("template", "export", name, file)
        fixture.cli("snapshot", "export", "v7", other)
        fixture.cli("snapshot", "rm", snapshot)
        with open(file, "rb") as archive:
            reply = http("POST", f"/v1/templates/import?name={name}-back", archive.read(), timeout=120,
                         headers={"content-type": "application/octet-stream"})  # fmt: skip
        self.assertEqual(reply.status, 201, reply)
        back = self.create(templateId=f"{name}-back")
        self.assertEqual(self.sh(back, "cat link; echo $B; test -e /etc/motd || stat -c %a f"), "kept\n2\n600\n")
        imported = fixture.cli("snapshot", "import", other).stdout.strip()
        item = http("GET", f"/v1/snapshots/{imported}").json
        self.assertEqual((item["message"], item["tags"]), ("done", ["v7"]))
        copy = http("POST", "/v1/sandboxes", {"fromSnapshot": imported}).json["id"]
        self.assertEqual(self.sh(product_box(copy), "cat link; echo $A; test -e /etc/motd || echo gone"), "kept\n1\ngone\n")
        self.server.delete_all()
        self.drop(name, f"{name}-back")


if __name__ == "__main__":
    fixture.main()
