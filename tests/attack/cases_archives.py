"""F14 to F16: archives that reach out of their directory, carry special entries, or explode."""

import gzip
import io
import tarfile
import time

import product
from harness import ProductCase


def tar_gz(*entries):
    """An archive of (name, type, link name or content, more TarInfo fields)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, payload, *more in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o644
            for key, value in (more[0] if more else {}).items():
                setattr(info, key, value)
            if kind == tarfile.REGTYPE:
                info.size = len(payload)
                archive.addfile(info, io.BytesIO(payload))
            else:
                info.linkname = payload
                archive.addfile(info)
    return raw.getvalue()


FILE, LINK, SYMLINK = tarfile.REGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE


def slips(canary):
    """Ways out of the directory an archive is unpacked in. WORD is the file that must not appear
    elsewhere; `canary` exists inside and on the host."""
    target, word = "/etc/attack-target", ("WORD", FILE, b"x")
    return {
        "dots": [("../WORD", FILE, b"x")],
        "more dots": [("a/../../../WORD", FILE, b"x")],
        "absolute": [(f"{canary}/WORD", FILE, b"x")],
        "through a symlink": [("l", SYMLINK, canary), ("l/WORD", FILE, b"x")],
        "through a relative symlink": [("l", SYMLINK, "../.."), ("l/WORD", FILE, b"x")],
        "file over a symlink": [("d", SYMLINK, canary), ("d", FILE, b"x"), ("d/WORD", FILE, b"x")],
        "hard link out": [("h", LINK, f"../..{target}"), ("h", FILE, b"overwritten"), word],
        "hard link to a symlink": [("s", SYMLINK, target), ("h", LINK, "s"), ("h", FILE, b"bad")],
        "write through a symlink": [("s", SYMLINK, target), ("s", FILE, b"overwritten")],
        "loop": [("x", SYMLINK, "y"), ("y", SYMLINK, "x"), ("x/WORD", FILE, b"x")],
    }


class Archives(ProductCase):
    def upload(self, box, archive):
        """Unpacks into a fresh directory and returns it. Any answer but a crash will do."""
        folder = f"/unpack/{product.unique('dir')}"
        box.run("mkdir", "-p", folder)
        reply = box.upload_archive(folder, archive)
        self.assertNotIn(reply.status, (500, 502), reply)
        return folder, reply

    def test_a_good_archive_is_unpacked(self):
        """The control: refusing everything would pass the cases below."""
        box = self.sandbox("dev")
        folder, reply = self.upload(box, tar_gz(("sub/file", FILE, b"content")))
        self.assertLess(reply.status, 300, reply)
        self.assertEqual(box.run("cat", f"{folder}/sub/file").stdout, "content")

    def test_F14_entries_stay_below_their_directory(self):
        box, canary = self.sandbox("dev"), self.canary()
        box.sh('mkdir -p "$1"; echo original >/etc/attack-target', str(canary))
        for what, entries in slips(str(canary)).items():
            with self.subTest(what):
                word = product.unique("slip")
                named = [(name.replace("WORD", word), *rest) for name, *rest in entries]
                folder, _ = self.upload(box, tar_gz(*named))
                find = 'find / -xdev -name "$1" -not -path "$2/*" 2>/dev/null | grep .'
                found = box.sh(find, word, folder, check=False)
                self.assertEqual(found.stdout, "", "outside its directory")
                self.assertEqual(list(canary.iterdir()), [], "on the host")
                self.assertEqual(box.run("cat", "/etc/attack-target").stdout, "original\n")

    def test_F15_special_entries(self):
        box = self.sandbox("dev")
        device = {"devmajor": 8, "devminor": 0}
        xattr = {"pax_headers": {"SCHILY.xattr.trusted.overlay.opaque": "y"}}
        caps = {"pax_headers": {"SCHILY.xattr.security.capability": "\x01\x00\x00\x02"}}
        archives = {
            "block device": tar_gz(("b", tarfile.BLKTYPE, "", device)),
            "character device": tar_gz(("c", tarfile.CHRTYPE, "", device)),
            "fifo": tar_gz(("p", tarfile.FIFOTYPE, "")),
            "setuid": tar_gz(("s", FILE, b"x", {"mode": 0o6755, "uid": 0})),
            "overlay attributes": tar_gz(("o", FILE, b"x", xattr)),
            "capabilities": tar_gz(("k", FILE, b"x", caps)),
            "greatest owner": tar_gz(("u", FILE, b"x", {"uid": 2**32 - 1, "gid": 2**32 - 1})),
            "before time": tar_gz(("t", FILE, b"x", {"mtime": -1})),
            "whiteout": tar_gz((".wh..wh..opq", FILE, b""), (".wh.etc", FILE, b"")),
            "endless size": self.lying_about_size(),
        }  # fmt: skip
        for what, archive in archives.items():
            with self.subTest(what):
                folder, _ = self.upload(box, archive)
                devices = box.sh('find "$1" -type b -o -type c', folder).stdout
                self.assertEqual(devices, "")
                unmapped = box.sh('find "$1" -uid 65534 -o -gid 65534', folder).stdout
                self.assertEqual(unmapped, "")
        self.assert_alive(box)

    def lying_about_size(self):
        info = tarfile.TarInfo("huge")
        info.size = 1 << 62
        return gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + b"x" * 512)

    def test_F16_a_bomb_is_bounded_by_the_disk(self):
        box = self.sandbox("dev", *product.SMALL)
        info = tarfile.TarInfo("zeros")
        info.size = 1 << 30
        # 1 GiB in about 1 MB. Each member of a gzip file is decompressed in turn.
        bomb = gzip.compress(info.tobuf()) + gzip.compress(bytes(1 << 24), 9) * 64
        begin = time.monotonic()
        reply = box.upload_archive("/tmp", bomb, timeout=90)
        self.assertLess(time.monotonic() - begin, 60)
        if not box.degraded("disk"):
            self.assert_refused(reply)
        self.assert_alive(box)

    def test_F16_broken_archives_are_refused(self):
        box = self.sandbox("dev")
        good = tar_gz(("file", FILE, b"content" * 10000))
        broken = {
            "truncated": good[: len(good) // 2],
            "wrong checksum": good[:-8] + bytes(8),
            "not gzip": b"hello" * 1000,
            "empty": b"",
            "gzip of nonsense": gzip.compress(b"nonsense" * 1000),
        }
        for what, archive in broken.items():
            with self.subTest(what):
                _, reply = self.upload(box, archive)
                self.assertGreaterEqual(reply.status, 400, what)
        self.assert_alive(box)
