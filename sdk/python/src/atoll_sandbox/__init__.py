"""The Python client of Atoll.

    from atoll_sandbox import Client

    with Client() as atoll:
        box = atoll.create(name="web")
        print(atoll.exec(box.id, "echo hi").stdout)

`Client` blocks, `AsyncClient` has the same methods to be awaited, and `AtollSandboxBackend` is what
OpenEnv's harnesses take.
"""

from atoll_sandbox.client import AsyncClient, Client
from atoll_sandbox.errors import AtollError, NotFoundError, TransportError
from atoll_sandbox.openenv import AtollSandboxBackend
from atoll_sandbox.types import (
    CodeContext,
    CodeError,
    CodeResult,
    Event,
    ExecResult,
    FileInfo,
    LogEvent,
    PreviewLink,
    Process,
    Sandbox,
    Secret,
    Snapshot,
    Token,
)

__all__ = [
    "AsyncClient",
    "AtollError",
    "AtollSandboxBackend",
    "Client",
    "CodeContext",
    "CodeError",
    "CodeResult",
    "Event",
    "ExecResult",
    "FileInfo",
    "LogEvent",
    "NotFoundError",
    "PreviewLink",
    "Process",
    "Sandbox",
    "Secret",
    "Snapshot",
    "Token",
    "TransportError",
]
__version__ = "0.1.0"
