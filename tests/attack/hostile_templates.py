"""Archives of root filesystems that lie in wait for whoever unpacks, mounts or enters them."""

import io
import pathlib
import re
import subprocess
import tarfile

DIRECTORY, FILE, LINK, SYMLINK = tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE
FIFO, CHARACTER, BLOCK = tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE

# Every place where a product mounts, writes, reads or enters something while it makes a sandbox.
MOUNTED = ["proc", "sys", "dev", "dev/pts", "dev/shm", ".atoll", ".atoll/agent"]
USED = ["dev/null", "dev/console", "dev/ptmx", "dev/fd", "etc/resolv.conf", "etc/hosts", "etc/hostname", "etc/passwd",
        "etc/group", "tmp", "workspace", "root", "home"]  # fmt: skip
PLACES = MOUNTED + USED

# The shell that the cases talk to, in no place that any of them replaces.
SHELL = ["/tools/ld.so", "--library-path", "/tools", "/tools/dash"]


def tools():
    """dash and what it is linked with, from this host."""
    dash = pathlib.Path("/bin/dash").resolve()
    linked = subprocess.check_output(["ldd", dash], text=True)
    files = {"dash": dash}
    for path in re.findall(r"(/\S+) \(0x", linked):
        name = pathlib.Path(path).name
        files["ld.so" if name.startswith("ld-") else name] = pathlib.Path(path).resolve()
    return [(f"tools/{name}", FILE, path.read_bytes(), {"mode": 0o755}) for name, path in files.items()]


def write_archive(path, *entries):
    """Entries are (name, type, link target or content, more TarInfo fields); the tools come first."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, payload, *more in [*tools(), *entries]:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o755 if kind == DIRECTORY else 0o644
            for key, value in (more[0] if more else {}).items():
                setattr(info, key, value)
            if kind == FILE:
                info.size = len(payload)
                archive.addfile(info, io.BytesIO(payload))
            else:
                info.linkname = payload
                archive.addfile(info)
    return path


def parents(places):
    """The directories that the places lie in, unless one is a place itself."""
    found = dict.fromkeys(place.rpartition("/")[0] for place in places if "/" in place)
    return [(name, DIRECTORY, "") for name in found if name not in places]


def outermost(places):
    """Without the places that lie in other places: below a link there is nothing to put."""
    return [place for place in places if place.rpartition("/")[0] not in places]


def innermost(places):
    return [place for place in places if not any(other.startswith(place + "/") for other in places)]


def links(target, places):
    """All the places as links to one target."""
    return [*parents(places), *[(place, SYMLINK, target) for place in places]]


def as_kind(kind, places, **more):
    payload = b"not what you expect\n" if kind == FILE else ""
    return [*parents(places), *[(place, kind, payload, more) for place in places]]


def variants(canary):
    """All of A26 by name. `canary` is a directory of the host."""
    targets = {
        "the host's canary": canary, "the root": "/", "etc": "/etc", "dots": "../../../../../..", "itself": "loop",
        "a magic root": "/proc/self/root", "a magic directory": "/proc/1/cwd", "a magic descriptor": "/proc/self/fd/3",
        "the canary through proc": f"/proc/1/root{canary}", "the agent": "/.atoll/agent", "nowhere": "/nowhere/at/all",
    }  # fmt: skip
    found = {"nothing but the tools": []}
    for what, target in targets.items():
        found[f"links to {what}"] = links(target, outermost(PLACES))
        found[f"inner links to {what}"] = links(target, innermost(PLACES))
    for place in PLACES:
        found[f"only {place}, a link to the canary"] = links(canary, [place])
    found["regular files"] = as_kind(FILE, outermost(PLACES))
    found["inner regular files"] = as_kind(FILE, innermost(PLACES))
    found["fifos"] = as_kind(FIFO, outermost(PLACES))
    found["inner fifos"] = as_kind(FIFO, innermost(PLACES))
    found["directories"] = as_kind(DIRECTORY, PLACES)
    found["disks"] = as_kind(BLOCK, innermost(PLACES), devmajor=254, devminor=0)
    found["kernel memory"] = as_kind(CHARACTER, innermost(PLACES), devmajor=1, devminor=1)
    found["closed directories"] = as_kind(DIRECTORY, [".", "etc", "usr", *outermost(PLACES)], mode=0)
    found["set-id files"] = as_kind(FILE, innermost(PLACES), mode=0o7777)
    found["set-id directories"] = as_kind(DIRECTORY, PLACES, mode=0o7777)
    found["somebody else's"] = as_kind(DIRECTORY, PLACES, uid=65533, gid=65533, mode=0o700)
    found["full of surprises"] = surprises(canary)
    return found


def surprises(canary):
    """What lies below the places: names that the product itself uses."""
    overlay = {"pax_headers": {"SCHILY.xattr.trusted.overlay.redirect": canary, "SCHILY.xattr.user.overlay.opaque": "y"}}
    return [
        ("dev", DIRECTORY, ""), ("dev/pts", DIRECTORY, ""), ("dev/pts/ptmx", SYMLINK, canary), ("dev/pts/0", FILE, b"x"),
        ("dev/shm", DIRECTORY, ""), ("dev/shm/left", FILE, b"x"), ("dev/null", DIRECTORY, ""), ("dev/null/x", FILE, b"x"),
        ("proc", DIRECTORY, ""), ("proc/self", SYMLINK, canary), ("proc/sys", SYMLINK, canary), ("proc/1", DIRECTORY, ""),
        (".atoll", DIRECTORY, ""), (".atoll/agent", DIRECTORY, ""), (".atoll/agent/x", FILE, b"x"), (".wh.etc", FILE, b""),
        (".wh..wh..opq", FILE, b""), ("upper", SYMLINK, canary), ("work", SYMLINK, canary), ("merged", SYMLINK, canary),
        ("odd", DIRECTORY, "", overlay), ("etc", DIRECTORY, ""), ("etc/passwd", FILE, b":" * 2_000_000),
        ("etc/group", FILE, b"root:x:0:\n" * 200_000), ("tmp", DIRECTORY, "", {"mode": 0o000}),
    ]  # fmt: skip
