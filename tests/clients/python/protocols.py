"""OpenEnv's protocols as its documents state them, to hold the adapter against. Where the real package is installed
and has them, those are used."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class BgJob(Protocol):
    @property
    def pid(self) -> int: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


@runtime_checkable
class SandboxHandle(Protocol):
    @property
    def sandbox_id(self) -> str: ...

    def exec(
        self, cmd: str, *, envs: dict[str, str] | None = None, cwd: str | None = None, timeout: float | None = 60
    ) -> Any: ...

    def start_bg(self, cmd: str, *, envs: dict[str, str] | None = None, cwd: str | None = None) -> BgJob: ...

    def write_text(self, path: str, content: str) -> None: ...

    def read_text(self, path: str) -> str: ...

    def exists(self, path: str) -> bool: ...

    def kill(self) -> None: ...


@runtime_checkable
class SandboxBackend(Protocol):
    def create(
        self, *, timeout_s: int = 900, envs: dict[str, str] | None = None, metadata: dict[str, str] | None = None
    ) -> SandboxHandle: ...


try:
    from openenv.core.sandbox import SandboxBackend, SandboxHandle  # noqa: F811
except ImportError:
    pass
