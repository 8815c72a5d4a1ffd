"""The two clients: one description of the calls, two ways to carry them."""

from __future__ import annotations

import threading
from typing import Any, AsyncIterator, Callable, Iterable, Iterator, Optional

import httpx

from atoll_sandbox._api import Api
from atoll_sandbox._wire import Address, Call, Request
from atoll_sandbox.errors import TransportError, from_response

CONNECT_SECONDS = 10.0


def _options(address: Address, request: Request) -> dict:
    params = {name: str(value).lower() if isinstance(value, bool) else value for name, value in request.params.items()}
    return {
        "method": request.method,
        "url": address.url + request.path,
        "json": request.json,
        "content": request.content,
        "params": params or None,
        "headers": {**address.headers(), **request.headers},
        "timeout": httpx.Timeout(request.timeout, connect=CONNECT_SECONDS),
    }


def _decode(request: Request, response: httpx.Response) -> Any:
    if response.status_code >= 400:
        raise from_response(response.status_code, _json(response))
    return response.content if request.raw else _json(response)


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _broken(error: httpx.TransportError) -> TransportError:
    return TransportError(f"{type(error).__name__}: {error}", code="UNREACHABLE")


class _Base(Api):
    def __init__(self, url: Optional[str] = None, *, api_key: Optional[str] = None, tenant: Optional[str] = None) -> None:
        """`url` is http://, https:// or unix:/path; else ATOLL_URL, else the socket ATOLL_SOCKET. `tenant` is for
        administrators who act for one."""
        self._address = Address.find(url, api_key, tenant)
        self._begin()

    def _begin(self) -> None:
        raise NotImplementedError

    # Pickled, a client is its address: connections are made again where they are needed.
    def __getstate__(self) -> Address:
        return self._address

    def __setstate__(self, address: Address) -> None:
        self._address = address
        self._begin()


class Client(_Base):
    """Blocks. One may be shared by all threads of a program, and pickled."""

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._http: Optional[httpx.Client] = None

    def _connection(self) -> httpx.Client:
        with self._lock:
            if self._http is None:
                transport = httpx.HTTPTransport(uds=self._address.socket, limits=httpx.Limits(max_connections=None))
                self._http = httpx.Client(transport=transport)
            return self._http

    def close(self) -> None:
        with self._lock:
            connection, self._http = self._http, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _send(self, request: Request) -> Any:
        try:
            return _decode(request, self._connection().request(**_options(self._address, request)))
        except httpx.TransportError as error:
            raise _broken(error) from error

    def _run(self, calling: Call) -> Any:
        try:
            request = next(calling)
            while True:
                try:
                    answer = self._send(request)
                except Exception as error:
                    request = calling.throw(error)
                else:
                    request = calling.send(answer)
        except StopIteration as end:
            return end.value

    def _stream(self, request: Request, parse: Callable[[], Callable[[bytes], Iterable[Any]]]) -> Iterator[Any]:
        feed = parse()
        try:
            with self._connection().stream(**_options(self._address, request)) as response:
                if response.status_code >= 400:
                    response.read()
                    _decode(request, response)
                for piece in response.iter_bytes():
                    yield from feed(piece)
        except httpx.TransportError as error:
            raise _broken(error) from error


class AsyncClient(_Base):
    """The same methods, to be awaited; what streams is iterated with `async for`."""

    def _begin(self) -> None:
        self._http: Optional[httpx.AsyncClient] = None

    def _connection(self) -> httpx.AsyncClient:
        if self._http is None:
            limits = httpx.Limits(max_connections=None)
            transport = httpx.AsyncHTTPTransport(uds=self._address.socket, limits=limits)
            self._http = httpx.AsyncClient(transport=transport)
        return self._http

    async def close(self) -> None:
        connection, self._http = self._http, None
        if connection is not None:
            await connection.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def _send(self, request: Request) -> Any:
        try:
            return _decode(request, await self._connection().request(**_options(self._address, request)))
        except httpx.TransportError as error:
            raise _broken(error) from error

    async def _run(self, calling: Call) -> Any:
        try:
            request = next(calling)
            while True:
                try:
                    answer = await self._send(request)
                except Exception as error:
                    request = calling.throw(error)
                else:
                    request = calling.send(answer)
        except StopIteration as end:
            return end.value

    async def _stream(
        self, request: Request, parse: Callable[[], Callable[[bytes], Iterable[Any]]]
    ) -> AsyncIterator[Any]:
        feed = parse()
        try:
            async with self._connection().stream(**_options(self._address, request)) as response:
                if response.status_code >= 400:
                    await response.aread()
                    _decode(request, response)
                async for piece in response.aiter_bytes():
                    for value in feed(piece):
                        yield value
        except httpx.TransportError as error:
            raise _broken(error) from error
