"""Every call of the API, described once. `Client` and `AsyncClient` run these descriptions."""

from __future__ import annotations

import codecs
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from atoll_sandbox._wire import Call, EventParser, Request, call, file_path, given, runtime_path, sandbox_path
from atoll_sandbox.errors import AtollError
from atoll_sandbox.types import (
    CodeContext,
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

Command = Union[str, Sequence[str]]
# The server's answer to a wait that has not ended is asked for again after this many seconds.
WAIT_SECONDS = 30.0


def _command(command: Command, **options: Any) -> Dict[str, Any]:
    if isinstance(command, str):
        return given(command=command, **options)
    executable, *arguments = command
    return given(executable=executable, args=arguments, **options)


def _milliseconds(seconds: Optional[float]) -> Optional[int]:
    return None if seconds is None else max(1, round(seconds * 1000))


class Api:
    """A sandbox is named by its id or its name; relative paths start at /workspace."""

    def _run(self, calling: Call) -> Any:
        raise NotImplementedError

    def _stream(self, request: Request, parse: Callable[[], Callable[[bytes], Iterable[Any]]]) -> Any:
        raise NotImplementedError

    # Sandboxes.

    @call
    def create(
        self,
        *,
        name: Optional[str] = None,
        template: Optional[str] = None,
        from_snapshot: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        secrets: Union[None, str, Sequence[str]] = None,
        resources: Optional[Mapping[str, Any]] = None,
        metadata: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        max_lifetime: Optional[int] = None,
        idle_timeout: Optional[int] = None,
        idempotency_key: Optional[str] = None,
        **more: Any,
    ) -> Call:
        """Makes a sandbox that is ready for commands. `more` goes into the request as it is."""
        body = given(
            name=name,
            templateId=template,
            fromSnapshot=from_snapshot,
            env=env,
            secrets=list(secrets) if secrets is not None and not isinstance(secrets, str) else secrets,
            resources=resources,
            metadata=metadata,
            user=user,
            maxLifetimeSeconds=max_lifetime,
            idleTimeoutSeconds=idle_timeout,
            idempotencyKey=idempotency_key,
        )
        return Sandbox.of((yield Request("POST", "/v1/sandboxes", json={**body, **more})))

    @call
    def list(self, *, status: Optional[str] = None, metadata: Optional[Mapping[str, str]] = None) -> Call:
        answer = yield Request("GET", "/v1/sandboxes", params=given(status=status))
        found = [Sandbox.of(item) for item in answer["sandboxes"]]
        wanted = dict(metadata or {}).items()
        return [one for one in found if wanted <= one.metadata.items()]

    @call
    def get(self, sandbox: str) -> Call:
        return Sandbox.of((yield Request("GET", sandbox_path(sandbox))))

    @call
    def update(self, sandbox: str, **changes: Any) -> Call:
        return Sandbox.of((yield Request("PATCH", sandbox_path(sandbox), json=changes)))

    @call
    def delete(self, sandbox: str) -> Call:
        yield Request("DELETE", sandbox_path(sandbox))

    @call
    def stop(self, sandbox: str) -> Call:
        return Sandbox.of((yield Request("POST", sandbox_path(sandbox, "stop"))))

    @call
    def resume(self, sandbox: str) -> Call:
        return Sandbox.of((yield Request("POST", sandbox_path(sandbox, "resume"))))

    @call
    def pause(self, sandbox: str) -> Call:
        return Sandbox.of((yield Request("POST", sandbox_path(sandbox, "pause"))))

    @call
    def wait_for(self, sandbox: str, status: str = "running", timeout: float = 30.0) -> Call:
        """Until it has the status; AtollError with the code TIMEOUT where it takes longer."""
        params = {"status": status, "timeoutMs": _milliseconds(timeout)}
        request = Request("GET", sandbox_path(sandbox, "wait"), params=params, timeout=timeout + 30)
        return Sandbox.of((yield request))

    @call
    def usage(self, sandbox: Optional[str] = None) -> Call:
        return (yield Request("GET", sandbox_path(sandbox, "usage") if sandbox else "/v1/usage"))

    # States.

    @call
    def snapshot(
        self,
        sandbox: str,
        *,
        message: Optional[str] = None,
        tags: Optional[Sequence[str]] = None,
        keep_seconds: Optional[int] = None,
    ) -> Call:
        body = given(message=message, tags=tags, keepSeconds=keep_seconds)
        return Snapshot.of((yield Request("POST", sandbox_path(sandbox, "snapshots"), json=body)))

    @call
    def snapshots(self, sandbox: Optional[str] = None) -> Call:
        path = sandbox_path(sandbox, "snapshots") if sandbox else "/v1/snapshots"
        return [Snapshot.of(item) for item in (yield Request("GET", path))["snapshots"]]

    @call
    def delete_snapshot(self, snapshot: str) -> Call:
        yield Request("DELETE", "/v1/snapshots/" + snapshot)

    @call
    def restore(self, sandbox: str, snapshot: str) -> Call:
        request = Request("POST", sandbox_path(sandbox, "restore"), json={"snapshotId": snapshot})
        return Sandbox.of((yield request))

    @call
    def fork(self, sandbox: str, count: int = 1, **options: Any) -> Call:
        request = Request("POST", sandbox_path(sandbox, "fork"), json={"count": count, **options})
        return [Sandbox.of(item) for item in (yield request)["sandboxes"]]

    # Commands.

    @call
    def exec(
        self,
        sandbox: str,
        command: Command,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        user: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Call:
        """Runs a shell's command, or a list as it is, to its end. Any exit code is a success; after `timeout` seconds
        all that it started is killed, and the result says so."""
        body = _command(command, env=env, cwd=cwd, user=user, timeoutMs=_milliseconds(timeout))
        limit = None if timeout is None else timeout + 30
        request = Request("POST", runtime_path(sandbox, "terminals/commands"), json=body, timeout=limit)
        return ExecResult.of((yield request)["result"])

    @call
    def run_code(
        self,
        sandbox: str,
        language: str,
        source: str,
        *,
        session: Optional[str] = None,
        timeout: float = 60.0,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> Call:
        """Runs code in the kernel of its session and language (python, node, typescript, bash), which keeps variables
        between calls. After `timeout` seconds (0: never) it is interrupted; its variables stay."""
        body = given(
            language=language,
            source=source,
            sessionId=session,
            timeoutMs=round(timeout * 1000),
            env=env,
            cwd=cwd,
            idempotencyKey=idempotency_key,
        )
        limit = timeout + 30 if timeout else None
        request = Request("POST", runtime_path(sandbox, "code/run"), json=body, timeout=limit)
        return CodeResult.of((yield request)["result"])

    @call
    def code_contexts(self, sandbox: str) -> Call:
        answer = yield Request("GET", runtime_path(sandbox, "code/contexts"))
        return [CodeContext.of(item) for item in answer["data"]]

    @call
    def create_code_context(
        self, sandbox: str, language: str = "python", *, cwd: Optional[str] = None, session: Optional[str] = None
    ) -> Call:
        body = given(language=language, cwd=cwd, sessionId=session)
        return CodeContext.of((yield Request("POST", runtime_path(sandbox, "code/contexts"), json=body))["data"])

    @call
    def remove_code_context(self, sandbox: str, context: str) -> Call:
        yield Request("DELETE", runtime_path(sandbox, "code/contexts/" + context))

    @call
    def restart_code_context(self, sandbox: str, context: str) -> Call:
        """Its variables are gone; its place stays."""
        yield Request("POST", runtime_path(sandbox, f"code/contexts/{context}/restart"))

    @call
    def fork_code_context(self, sandbox: str, context: str, *, session: Optional[str] = None) -> Call:
        """Another context that begins with all the variables of this one. Only Python's can be branched."""
        path = runtime_path(sandbox, f"code/contexts/{context}/fork")
        return CodeContext.of((yield Request("POST", path, json=given(sessionId=session)))["data"])

    @call
    def spawn(
        self,
        sandbox: str,
        command: Command,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        user: Optional[str] = None,
        timeout: Optional[float] = None,
        stdin: bool = False,
        pty: bool = False,
    ) -> Call:
        """Starts a command that goes on by itself, whatever becomes of this client."""
        options = given(env=env, cwd=cwd, user=user, timeoutMs=_milliseconds(timeout))
        body = _command(command, stdin=stdin, pty=pty, **options)
        return Process.of((yield Request("POST", runtime_path(sandbox, "process/spawn"), json=body))["data"])

    @call
    def processes(self, sandbox: str) -> Call:
        return [Process.of(item) for item in (yield Request("GET", runtime_path(sandbox, "process")))["data"]]

    @call
    def process(self, sandbox: str, pid: int) -> Call:
        return Process.of((yield Request("GET", runtime_path(sandbox, "process", str(pid))))["data"])

    @call
    def wait(self, sandbox: str, pid: int, timeout: Optional[float] = None) -> Call:
        """Until the process has ended. TimeoutError where that takes longer; 0 only looks."""
        left = timeout
        while True:
            asked = WAIT_SECONDS if left is None else min(left, WAIT_SECONDS)
            path = runtime_path(sandbox, "process", str(pid), "wait")
            params = {"timeoutMs": _milliseconds(asked)}
            try:
                return Process.of((yield Request("GET", path, params=params, timeout=asked + 30))["data"])
            except AtollError as error:
                if error.code != "TIMEOUT":
                    raise
            if left is not None:
                left -= asked
                if left <= 0:
                    raise TimeoutError(f"process {pid} still runs after {timeout} s")

    @call
    def kill(self, sandbox: str, pid: int, signal: Union[str, int] = "SIGKILL", tree: bool = True) -> Call:
        """With `tree`, all that the command has started."""
        body = {"signal": signal, "tree": tree}
        yield Request("DELETE", runtime_path(sandbox, "process", str(pid)), json=body)

    def logs(self, sandbox: str, pid: int, *, follow: bool = True, stdout_offset: int = 0, stderr_offset: int = 0) -> Any:
        """An iterator of LogEvent: what the process writes, as it writes it, and its end."""
        params = {"follow": follow, "stdoutOffset": stdout_offset, "stderrOffset": stderr_offset}
        request = Request("GET", runtime_path(sandbox, "process", str(pid), "logs"), params=params, timeout=None)
        return self._stream(request, _events(lambda kind, _, data: LogEvent.of(kind, data)))

    # Files.

    @call
    def read_bytes(self, sandbox: str, path: str) -> Call:
        return (yield Request("GET", runtime_path(sandbox, "fs/download") + file_path(path), raw=True, timeout=None))

    @call
    def read_text(self, sandbox: str, path: str) -> Call:
        request = Request("GET", runtime_path(sandbox, "fs/download") + file_path(path), raw=True, timeout=None)
        return (yield request).decode("utf-8", "replace")

    def download(self, sandbox: str, path: str) -> Any:
        """An iterator of the file's bytes, in pieces."""
        request = Request("GET", runtime_path(sandbox, "fs/download") + file_path(path), timeout=None)
        return self._stream(request, lambda: lambda piece: [piece])

    @call
    def write(self, sandbox: str, path: str, data: Union[str, bytes], mode: Optional[int] = None) -> Call:
        """Replaces the file at once, with the directories above it."""
        content = data.encode() if isinstance(data, str) else data
        request = Request(
            "PUT",
            runtime_path(sandbox, "fs/upload") + file_path(path),
            content=content,
            params=given(mode=None if mode is None else f"{mode:o}"),
            timeout=None,
        )
        return FileInfo.of((yield request)["data"])

    @call
    def stat(self, sandbox: str, path: str) -> Call:
        return FileInfo.of((yield Request("GET", runtime_path(sandbox, "fs/stat") + file_path(path)))["data"])

    @call
    def exists(self, sandbox: str, path: str) -> Call:
        return (yield Request("GET", runtime_path(sandbox, "fs/exists") + file_path(path)))["data"]["exists"]

    @call
    def list_files(self, sandbox: str, path: str = "/workspace", recursive: bool = False) -> Call:
        request = Request("GET", runtime_path(sandbox, "fs/list") + file_path(path), params={"recursive": recursive})
        return [FileInfo.of(item) for item in (yield request)["data"]["entries"]]

    @call
    def mkdir(self, sandbox: str, path: str, parents: bool = True) -> Call:
        yield Request("POST", runtime_path(sandbox, "fs/mkdir") + file_path(path), params={"recursive": parents})

    @call
    def move(self, sandbox: str, source: str, target: str) -> Call:
        yield Request("POST", runtime_path(sandbox, "fs/move"), json={"from": source, "to": target})

    @call
    def remove(self, sandbox: str, path: str, recursive: bool = False, force: bool = False) -> Call:
        params = {"recursive": recursive, "force": force}
        yield Request("DELETE", runtime_path(sandbox, "fs") + file_path(path), params=params)

    # What happens.

    def events(self, sandbox: Optional[str] = None, *, after: Optional[str] = None, follow: bool = True) -> Any:
        """An iterator of Event, of one sandbox or of all. `after` is the id of the last that was seen."""
        path = sandbox_path(sandbox, "events") if sandbox else "/v1/events"
        headers = {"Last-Event-ID": after} if after is not None else {}
        request = Request("GET", path, params={"follow": follow}, headers=headers, timeout=None)
        return self._stream(request, _events(_event))

    # Ports.

    @call
    def open_port(
        self, sandbox: str, port: int, *, access: str = "private", expires_in: Optional[float] = None
    ) -> Call:
        """A link that opens the port in a browser: private (its URL is good for 15 minutes), public or signed."""
        seconds = None if expires_in is None else max(1, round(expires_in))
        body = given(port=port, access=access, expiresInSeconds=seconds)
        answer = yield Request("POST", runtime_path(sandbox, "preview-links"), json=body)
        return PreviewLink.of(answer["previewLink"])

    @call
    def preview_links(self, sandbox: str) -> Call:
        answer = yield Request("GET", runtime_path(sandbox, "preview-links"))
        return [PreviewLink.of(item) for item in answer["previewLinks"]]

    @call
    def remove_preview_link(self, sandbox: str, preview: str) -> Call:
        yield Request("DELETE", runtime_path(sandbox, "preview-links/" + preview))

    # Secrets and tokens.

    @call
    def set_secret(self, name: str, value: str) -> Call:
        answer = yield Request("PUT", "/v1/secrets/" + name, json={"value": value})
        return Secret(name, answer)

    @call
    def secrets(self) -> Call:
        return [Secret(item["name"], item) for item in (yield Request("GET", "/v1/secrets"))["secrets"]]

    @call
    def delete_secret(self, name: str) -> Call:
        yield Request("DELETE", "/v1/secrets/" + name)

    @call
    def create_token(
        self, sandbox: str, scope: str = "project", *, session: Optional[str] = None, minutes: Optional[int] = None
    ) -> Call:
        """A short-lived token for one sandbox, to be given to a browser: session, project or read-only."""
        body = given(scope=scope, sessionId=session, ttlMinutes=minutes)
        answer = yield Request("POST", sandbox_path(sandbox, "tokens"), json=body)
        return Token(answer["token"], answer.get("scope", scope), answer)

    # The server.

    @call
    def templates(self) -> Call:
        return (yield Request("GET", "/v1/templates"))["templates"]

    @call
    def system(self) -> Call:
        return (yield Request("GET", "/v1/system"))

    @call
    def whoami(self) -> Call:
        return (yield Request("GET", "/v1/whoami"))

    @call
    def request(self, method: str, path: str, json: Any = None) -> Call:
        """Any request of the API, for what has no method here."""
        return (yield Request(method, path, json=json))


def _event(kind: str, position: str, data: Mapping[str, Any]) -> Optional[Event]:
    return None if kind == "heartbeat" else Event(position, kind, data)


def _events(convert: Callable[[str, str, Mapping[str, Any]], Any]) -> Callable[[], Callable[[bytes], List[Any]]]:
    """A parser for one stream: bytes in, values out."""

    def begin() -> Callable[[bytes], List[Any]]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        parser = EventParser()

        def feed(piece: bytes) -> List[Any]:
            values = (convert(*event) for event in parser.feed(decoder.decode(piece)))
            return [value for value in values if value is not None]

        return feed

    return begin
