"""What can go wrong, in a form that a caller can branch on."""

from __future__ import annotations

from typing import Any, List, Optional


class AtollError(Exception):
    """The server said no. `code` is for programs, the message for people."""

    def __init__(
        self,
        message: str,
        code: str = "",
        status: int = 0,
        fields: Optional[List[str]] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.fields = fields or []
        self.retry_after = retry_after  # seconds; None: waiting is no remedy

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.code, self.status, self.fields, self.retry_after)


class NotFoundError(AtollError):
    """There is no such sandbox, process, file or snapshot."""


class TransportError(AtollError):
    """The server could not be reached, or the connection broke: the request may or may not have happened."""


def from_response(status: int, body: Any) -> AtollError:
    body = body if isinstance(body, dict) else {}
    error = body.get("error") if isinstance(body.get("error"), dict) else body
    wait = error.get("retryAfterMs")
    kind = NotFoundError if status == 404 else AtollError
    return kind(
        error.get("message") or f"the server answered {status}",
        code=error.get("code") or "",
        status=status,
        fields=error.get("fields") or [],
        retry_after=wait / 1000 if wait else None,
    )
