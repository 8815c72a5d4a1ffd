"""What the client returns. `raw` is always the server's own answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Sandbox:
    id: str
    name: Optional[str]
    status: str  # provisioning, running, paused, stopped, failed
    reason: str
    cause: str
    template: str
    metadata: Dict[str, str]
    created_at: str
    expires_at: Optional[str]
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Sandbox:
        return cls(
            id=raw["id"],
            name=raw.get("name"),
            status=raw["status"],
            reason=raw.get("reason", ""),
            cause=raw.get("cause", ""),
            template=raw.get("template", ""),
            metadata=dict(raw.get("metadata", {})),
            created_at=raw.get("createdAt", ""),
            expires_at=raw.get("expiresAt"),
            raw=raw,
        )


@dataclass(frozen=True)
class ExecResult:
    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool
    duration_ms: int
    pid: int
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> ExecResult:
        return cls(
            exit_code=raw["exitCode"],
            stdout=raw["stdout"],
            stderr=raw["stderr"],
            timed_out=raw["timedOut"],
            duration_ms=raw["duration"],
            pid=raw["pid"],
            raw=raw,
        )


@dataclass(frozen=True)
class CodeError:
    name: str
    message: str
    traceback: str = ""


@dataclass(frozen=True)
class CodeResult:
    """What code did. `results` are what it has shown, each in its richest form (`type`: text, json, image, html,
    dataframe, error)."""

    exit_code: int  # 1 after an error, bash's own status, 124 when the time was up
    stdout: str
    stderr: str
    results: List[Dict[str, Any]]
    error: Optional[CodeError]
    timed_out: bool
    kernel_ended: bool  # the next call starts a new kernel, without the variables
    duration_ms: int
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> CodeResult:
        error = raw.get("error")
        return cls(
            exit_code=raw["exitCode"],
            stdout=raw["stdout"],
            stderr=raw["stderr"],
            results=list(raw["results"]),
            error=None if error is None else CodeError(**error),
            timed_out=raw["timedOut"],
            kernel_ended=raw["kernelEnded"],
            duration_ms=raw["durationMs"],
            raw=raw,
        )


@dataclass(frozen=True)
class CodeContext:
    """A kernel's place: a session and a language."""

    id: str
    session: str
    language: str
    cwd: str
    running: bool

    @classmethod
    def of(cls, raw: Json) -> CodeContext:
        return cls(raw["id"], raw["sessionId"], raw["language"], raw["cwd"], raw["running"])


@dataclass(frozen=True)
class Process:
    pid: int
    command: str
    running: bool
    exit_code: int  # 128+n when ended by signal n, 124 when the time was up
    timed_out: bool
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Process:
        return cls(
            pid=raw["pid"],
            command=raw["command"],
            running=raw["running"],
            exit_code=raw["exitCode"],
            timed_out=raw["timedOut"],
            raw=raw,
        )


@dataclass(frozen=True)
class LogEvent:
    """A piece of output (`stdout`, `stderr`), a gap in it (`lost`), or the end (`exit`, with `process`)."""

    kind: str
    data: str = ""
    offset: int = 0
    process: Optional[Process] = None

    @classmethod
    def of(cls, kind: str, raw: Json) -> LogEvent:
        if kind == "exit":
            return cls(kind, process=Process.of(raw))
        return cls(kind, data=raw.get("data", ""), offset=raw.get("offset", 0))


@dataclass(frozen=True)
class FileInfo:
    name: str
    path: str
    size: int
    is_dir: bool
    is_symlink: bool
    permissions: str
    modified_at: str
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> FileInfo:
        return cls(
            name=raw["name"],
            path=raw["path"],
            size=raw["size"],
            is_dir=raw["isDir"],
            is_symlink=raw["isSymlink"],
            permissions=raw["permissions"],
            modified_at=raw["modTime"],
            raw=raw,
        )


@dataclass(frozen=True)
class Snapshot:
    id: str
    sandbox_id: str
    message: str
    tags: List[str]
    created_at: str
    size_bytes: int
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Snapshot:
        return cls(
            id=raw["snapshotId"],
            sandbox_id=raw["sandboxId"],
            message=raw["message"],
            tags=list(raw["tags"]),
            created_at=raw["createdAt"],
            size_bytes=raw["sizeBytes"],
            raw=raw,
        )


@dataclass(frozen=True)
class Event:
    """Something that happened to a sandbox. `id` is where to go on from."""

    id: str
    type: str
    data: Json

    @property
    def sandbox_id(self) -> Optional[str]:
        return self.data.get("sandboxId")


@dataclass(frozen=True)
class Secret:
    """A secret's name and times; nobody is ever told its value."""

    name: str
    raw: Json = field(repr=False, compare=False)


@dataclass(frozen=True)
class PreviewLink:
    """A way to a port of a sandbox."""

    id: str
    port: int
    access: str  # private, public or signed
    url: Optional[str]  # what to open; None where the server has no TCP port
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> "PreviewLink":
        return cls(raw["previewId"], raw["port"], raw["access"], raw["url"], raw)


@dataclass(frozen=True)
class Token:
    token: str
    scope: str
    raw: Json = field(repr=False, compare=False)
