"""Small images, made by hand: layers of files, their documents, an OCI layout, an archive of `docker save`."""

import gzip
import hashlib
import io
import json
import pathlib
import platform
import subprocess
import tarfile

import hostile_templates as hostile

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
SHELL = hostile.SHELL


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


PACK = {"": lambda data: data, "+gzip": lambda data: gzip.compress(data, 1), "+zstd": zstd}


def tar(*entries):
    """Entries are (name, type, link target or content, more TarInfo fields)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, payload, *more in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o755 if kind == tarfile.DIRTYPE else 0o644
            for key, value in (more[0] if more else {}).items():
                setattr(info, key, value)
            if kind == tarfile.REGTYPE:
                info.size = len(payload)
                archive.addfile(info, io.BytesIO(payload))
            else:
                info.linkname = payload
                archive.addfile(info)
    return out.getvalue()


def file(name, content=b"", **more):
    return (name, tarfile.REGTYPE, content, more)


def tools():
    """What a sandbox needs for `SHELL` to run in it."""
    return [*hostile.tools(), file("etc/passwd", b"root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n")]


class Image:
    def __init__(self, *layers, packing="", architecture=ARCHITECTURE, **config):
        self.plain = [tar(*entries) for entries in layers]
        self.layers = [PACK[packing](data) for data in self.plain]
        self.config = json.dumps({
            "os": "linux", "architecture": architecture, "config": config,
            "rootfs": {"type": "layers", "diff_ids": [digest(data) for data in self.plain]},
        }).encode()  # fmt: skip
        described = [self.descriptor(data, LAYER + packing) for data in self.layers]
        self.manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": self.descriptor(self.config, CONFIG), "layers": described}
        ).encode()

    @staticmethod
    def descriptor(data, media_type, **more):
        return {"mediaType": media_type, "digest": digest(data), "size": len(data), **more}

    def blobs(self):
        return [self.config, *self.layers]

    def write_layout(self, folder):
        blobs = pathlib.Path(folder, "blobs/sha256")
        blobs.mkdir(parents=True)
        for data in [self.manifest, *self.blobs()]:
            (blobs / digest(data).partition(":")[2]).write_bytes(data)
        index = {"schemaVersion": 2, "manifests": [self.descriptor(self.manifest, MANIFEST)]}
        pathlib.Path(folder, "index.json").write_text(json.dumps(index))
        pathlib.Path(folder, "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        return folder

    def write_saved(self, path):
        names = [digest(data).partition(":")[2] + "/layer.tar" for data in self.layers]
        config = digest(self.config).partition(":")[2] + ".json"
        listing = [{"Config": config, "RepoTags": ["test:latest"], "Layers": names}]
        members = [file(name, data) for name, data in zip(names, self.layers)]
        pathlib.Path(path).write_bytes(
            tar(*members, file(config, self.config), file("manifest.json", json.dumps(listing).encode()))
        )
        return path


def index_of(*images):
    """An index of images for several processors: (architecture, image)."""
    entries = [
        Image.descriptor(image.manifest, MANIFEST, platform={"os": "linux", "architecture": architecture})
        for architecture, image in images
    ]
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
