"""OpenEnv's `SandboxBackend`, `SandboxHandle` and `BgJob` on Atoll.

The protocols are structural (`runtime_checkable`), so nothing of OpenEnv is imported.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Dict, Optional

from atoll_sandbox.client import Client
from atoll_sandbox.errors import AtollError, NotFoundError, TransportError

# A lost connection is no lost command: it is asked for again, this often and this long apart.
RETRIES = 5
RETRY_SECONDS = 0.2
KILL_GRACE_SECONDS = 5.0


@dataclass
class ExecResult:
    exit_code: int
    stdout: str
    stderr: str


class AtollBgJob:
    """A process that goes on by itself."""

    def __init__(self, client: Client, sandbox_id: str, pid: int) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self._pid = pid
        self._exit_code: Optional[int] = None

    @property
    def pid(self) -> int:
        return self._pid

    def wait(self, timeout: Optional[float] = None) -> int:
        """Its exit code; TimeoutError where it still runs after `timeout` seconds (0: only looks). Fails when the
        sandbox is gone."""
        if self._exit_code is not None:
            return self._exit_code
        deadline = None if timeout is None else time.monotonic() + timeout
        failures = 0
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                self._exit_code = self._client.wait(self._sandbox_id, self._pid, timeout=left).exit_code
                return self._exit_code
            except TransportError:
                failures += 1
                if failures > RETRIES:
                    raise
                time.sleep(RETRY_SECONDS * failures)

    def kill(self) -> None:
        """All that it started: asked to end first, then made to. Any number of times."""
        for signal, grace in (("SIGTERM", KILL_GRACE_SECONDS), ("SIGKILL", KILL_GRACE_SECONDS)):
            try:
                self._client.kill(self._sandbox_id, self._pid, signal)
                self.wait(grace)
                return
            except TimeoutError:
                continue
            except AtollError as error:
                if isinstance(error, TransportError):
                    raise
                return  # it, or its sandbox, has ended


class AtollSandboxHandle:
    """One live sandbox. May be used from several threads at once."""

    def __init__(self, client: Client, sandbox_id: str, home: str) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self.sandbox_home = home

    @property
    def sandbox_id(self) -> str:
        return self._sandbox_id

    @property
    def raw(self) -> Client:
        """The client, for all that the protocol has no word for."""
        return self._client

    def exec(
        self,
        cmd: str,
        *,
        envs: Optional[Dict[str, str]] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = 60,
    ) -> ExecResult:
        """`bash -lc cmd`. A command that fails or takes too long is a result (124), not an exception."""
        done = self._client.exec(self._sandbox_id, cmd, env=envs, cwd=cwd or self.sandbox_home, timeout=timeout)
        if not done.timed_out:
            return ExecResult(done.exit_code, done.stdout, done.stderr)
        return ExecResult(124, done.stdout, done.stderr + f"\n[timed out after {timeout:g}s]")

    def start_bg(self, cmd: str, *, envs: Optional[Dict[str, str]] = None, cwd: Optional[str] = None) -> AtollBgJob:
        process = self._client.spawn(self._sandbox_id, cmd, env=envs, cwd=cwd or self.sandbox_home)
        return AtollBgJob(self._client, self._sandbox_id, process.pid)

    def write_text(self, path: str, content: str) -> None:
        self._client.write(self._sandbox_id, self._absolute(path), content)

    def read_text(self, path: str) -> str:
        try:
            return self._client.read_text(self._sandbox_id, self._absolute(path))
        except NotFoundError as error:
            self._client.get(self._sandbox_id)  # raises where it is the sandbox that is gone
            raise FileNotFoundError(path) from error

    def exists(self, path: str) -> bool:
        return self._client.exists(self._sandbox_id, self._absolute(path))

    def kill(self) -> None:
        """Ends it with all that runs in it. Any number of times."""
        try:
            self._client.delete(self._sandbox_id)
        except NotFoundError:
            pass

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.sandbox_home}/{path}"


class AtollSandboxBackend:
    """Makes sandboxes for OpenEnv's harnesses. Can be pickled into worker processes and shared by threads."""

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        api_key: Optional[str] = None,
        template: Optional[str] = None,
        user: str = "user",
        sandbox_home: str = "/home/user",
        resources: Optional[Dict[str, float]] = None,
    ) -> None:
        self._client = Client(url, api_key=api_key)
        self._template = template
        self._user = user
        self._resources = resources
        self.sandbox_home = sandbox_home

    def create(
        self,
        *,
        timeout_s: int = 900,
        envs: Optional[Dict[str, str]] = None,
        metadata: Optional[Dict[str, str]] = None,
        image: Optional[str] = None,
    ) -> AtollSandboxHandle:
        """A sandbox that is ready, and that the server ends after `timeout_s` seconds whatever becomes of this
        program. `image` is the name of a template."""
        sandbox = self._client.create(
            template=image or self._template,
            env=envs,
            metadata=metadata,
            user=self._user,
            resources=self._resources,
            max_lifetime=timeout_s,
            ephemeral=True,  # deleted at its end, not kept
        )
        return AtollSandboxHandle(self._client, sandbox.id, self.sandbox_home)

    def close(self) -> None:
        self._client.close()
