"""Requests as values, and parsers of what streams: all that both transports share."""

from __future__ import annotations

import functools
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, Optional, Tuple, TypeVar
from urllib.parse import quote

T = TypeVar("T")


@dataclass
class Request:
    method: str
    path: str
    json: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    content: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    # How long the server may take before it answers; None: as long as it likes.
    timeout: Optional[float] = 60.0
    raw: bool = False  # the answer is bytes


# A call is a generator: it yields requests, is sent their answers, and returns its result.
Call = Generator[Request, Any, T]


def call(function: Callable[..., Call]) -> Callable[..., Any]:
    """A method of both clients: each runs the generator in its own way."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return self._run(function(self, *args, **options))

    return method


def sandbox_path(sandbox: str, *rest: str) -> str:
    return "/v1/sandboxes/" + "/".join([quote(sandbox, safe=""), *rest])


def runtime_path(sandbox: str, *rest: str) -> str:
    return sandbox_path(sandbox, "runtime", *rest)


def file_path(path: str) -> str:
    """An absolute path as the tail of a route; relative ones start at /workspace."""
    return quote(path if path.startswith("/") else "/workspace/" + path)


def given(**values: Any) -> Dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


class EventParser:
    """Server-sent events, from pieces of text that end anywhere."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> Iterator[Tuple[str, str, Dict[str, Any]]]:
        self._rest += text
        while "\n\n" in self._rest:
            block, _, self._rest = self._rest.partition("\n\n")
            fields: Dict[str, List[str]] = {}
            for line in block.split("\n"):
                name, _, value = line.partition(":")
                if name:
                    fields.setdefault(name, []).append(value[1:] if value.startswith(" ") else value)
            if "data" in fields:
                body = json.loads("\n".join(fields["data"]))
                yield fields.get("event", ["message"])[0], fields.get("id", [""])[0], body


@dataclass(frozen=True)
class Address:
    """Where the server is. Plain data, so that what holds it can be pickled."""

    url: str
    socket: Optional[str]
    api_key: Optional[str]
    tenant: Optional[str]

    @classmethod
    def find(cls, url: Optional[str], api_key: Optional[str], tenant: Optional[str]) -> Address:
        url = url or os.environ.get("ATOLL_URL")
        api_key = api_key or os.environ.get("ATOLL_API_KEY") or None
        tenant = tenant or os.environ.get("ATOLL_TENANT") or None
        if not url:
            url = "unix:" + os.environ.get("ATOLL_SOCKET", "/run/atoll/atoll.sock")
        if url.startswith("unix:"):
            return cls("http://localhost", re.sub("^unix:(//)?", "", url), api_key, tenant)
        return cls(url.rstrip("/"), None, api_key, tenant)

    def headers(self) -> Dict[str, str]:
        headers = {"User-Agent": "atoll-sandbox-python/0.1.0"}
        if self.api_key:
            headers["Authorization"] = "Bearer " + self.api_key
        if self.tenant:
            headers["Atoll-Tenant"] = self.tenant
        return headers
