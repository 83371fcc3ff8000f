"""One HTTP request of a caller and its answer, in the terms of ASGI."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ndd_search.search.rest.read_answer import error_of
from ndd_search.serving.ui.application import Message, Receive, Send

Header = tuple[bytes, bytes]

# Headers of one connection (RFC 9110, 7.6.1). The server and the HTTP client frame bodies on their own connections.
_HOP_BY_HOP = {
    *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization"),
    *(b"te", b"trailer", b"transfer-encoding", b"upgrade", b"http2-settings"),
}
SMALL = 2**16  # bytes of a body that is read before it is sent, which is faster than a stream
_MOST_NOTES = 10
_UNWATCHED = 0.05  # seconds before the caller of a request is watched: a task for each request costs a tenth of it
_MOST_COUNTED = 2**26  # bytes of an answer of unknown length that are held for a caller who needs to know its length
_WITHOUT_BODY = HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED


class Gone(Exception):
    """The caller has closed the connection, or is too slow to be served."""


class Refused(Exception):
    """The proxy itself answers with an error. args: (status, what happened and what to do)."""


def end_to_end(headers: Iterable[Header]) -> list[Header]:
    """Return headers, names in lower case, without those that belong to one connection."""
    given = [(name.lower(), value) for name, value in headers]
    named = [one.strip().lower() for name, value in given if name == b"connection" for one in value.split(b",")]
    left_out = _HOP_BY_HOP.union(named) if named else _HOP_BY_HOP
    return [header for header in given if header[0] not in left_out]


class Exchange:
    """One request and its answer.

    path, query: as they came, with their percent-encodings; a byte that is not ASCII is a character of Latin-1.
    headers:     without those of the connection.
    version:     of HTTP, as in "1.1".
    has_body:    whether the request has a body, which may be empty.
    status:      of the answer, 0 before it is sent.
    unsketched:  number of documents that passed without their sketch.
    """

    def __init__(self, scope: Message, receive: Receive, send: Send, idle_seconds: float) -> None:
        self._receive, self._send, self._idle = receive, send, idle_seconds
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        self.path: str = raw.removeprefix(quote(scope.get("root_path", "")).encode()).decode("latin-1")
        self.query: str = scope["query_string"].decode("latin-1")
        self.method: str = scope["method"]
        self.version: str = scope.get("http_version", "1.1")
        self.received: list[Header] = list(scope["headers"])
        self.headers = [header for header in end_to_end(self.received) if header[0] not in (b"host", b"expect")]
        self.status = self.unsketched = 0
        self._notes: list[str] = []
        self._held: deque[bytes] = deque()
        self._counted: bytearray | None = None  # the answer so far, while its head waits for its length
        self._start: Message = {}
        self.has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in self.received)
        self._ended = not self.has_body
        self._waiting: asyncio.Task[Any] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._watches: asyncio.TimerHandle | None = None

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def header(self, name: bytes) -> str:
        """Return the value of a header, several of them joined by commas, "" if there is none."""
        return ",".join(value.decode("latin-1") for given, value in self.headers if given == name)

    @property
    def encoding(self) -> str:
        """The content encoding of the body, "" for none."""
        encoding = self.header(b"content-encoding").strip().lower()
        return "" if encoding == "identity" else encoding

    @property
    def is_short(self) -> bool:
        """Whether the body has at most SMALL bytes, as it comes."""
        length = self.header(b"content-length")
        return not self.has_body or (length.isdigit() and int(length) <= SMALL)

    def turn(self, long: asyncio.Semaphore) -> AbstractAsyncContextManager[None]:
        """Wait until the body may be held. long: of the requests whose bodies are long, or become so unpacked."""
        return nullcontext() if self.is_short and not self.encoding else long

    def note(self, sentence: str) -> None:
        """Add a Warning header to the answer: something of the request was not done."""
        if len(self._notes) < _MOST_NOTES:
            self._notes.append(sentence)

    async def _next_part(self) -> bytes:
        """Return the next part of the body, b"" at its end. Raises Gone, or Refused if the caller is too slow."""
        while not self._ended:
            try:
                async with asyncio.timeout(self._idle):
                    message = await self._receive()
            except TimeoutError:
                what = f"no part of the body came for {self._idle:g} seconds: send the request again"
                raise Refused(HTTPStatus.REQUEST_TIMEOUT, what) from None
            if message["type"] == "http.disconnect":
                raise Gone
            self._ended = not message.get("more_body")
            if part := message.get("body"):
                return bytes(part)
        return b""

    async def read(self, most: int) -> bytes | None:
        """Return the whole body, None if it is longer than `most` bytes. `parts` still gives all of it."""
        size = sum(map(len, self._held))
        while size <= most:
            if not (part := await self._next_part()):
                if len(self._held) > 1:
                    self._held = deque((b"".join(self._held),))
                return self._held[0] if self._held else b""
            self._held.append(part)
            size += len(part)
        return None

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body, also those that `read` has read."""
        while self._held:
            yield self._held.popleft()
        while part := await self._next_part():
            yield part
        self._watch()

    async def while_connected(self, work: Awaitable[None]) -> None:
        """Await something, and cancel it when the caller leaves. Raises Gone if the caller has left."""
        self._waiting = waiting = asyncio.current_task()
        if self._ended:
            self._watch()
        try:
            await work
        except asyncio.CancelledError:
            if self._watcher is None or not self._watcher.done() or self._watcher.cancelled():
                raise
            if waiting is not None:
                waiting.uncancel()
            raise Gone from None
        finally:
            self._waiting = None
            for watching in (self._watches, self._watcher):
                if watching is not None:
                    watching.cancel()

    def _watch(self) -> None:
        """Watch whether the caller leaves, once the body has been read. Most requests end before that begins."""
        if self._watches is None and self._waiting is not None:
            self._watches = asyncio.get_running_loop().call_later(_UNWATCHED, self._begin_to_watch)

    def _begin_to_watch(self) -> None:
        self._watcher = asyncio.ensure_future(self._until_gone())
        self._watcher.add_done_callback(self._cancel_work)

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _cancel_work(self, watcher: asyncio.Task[None]) -> None:
        if not watcher.cancelled() and self._waiting is not None:
            self._waiting.cancel()

    def begin(self, status: int, headers: Iterable[Header]) -> None:
        """Set status and headers, which must not be of one connection. The first part of the body is sent with them."""
        notes = [(b"warning", f'299 ndd_search "{_quoted(note)}"'.encode()) for note in self._notes]
        sent = [header for header in headers if header[0] != b"content-length" or status not in _WITHOUT_BODY]
        self._start = {"type": "http.response.start", "status": status, "headers": [*sent, *notes]}
        has_body = self.method != "HEAD" and status not in _WITHOUT_BODY
        has_length = any(name == b"content-length" for name, _ in sent)
        self._counted = bytearray() if self.version == "1.0" and has_body and not has_length else None

    async def body(self, part: bytes, more: bool) -> None:
        """Send a part of the body. more: whether another part follows."""
        if not more:
            self._waiting = None  # servers report a finished answer like a caller who has left
        if self._counted is not None:
            self._counted += part
            if len(self._counted) > _MOST_COUNTED:
                what = f"HTTP/1.0 needs the length of an answer before its {_MOST_COUNTED:,} bytes: use HTTP/1.1"
                raise Refused(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, what)
            if more:
                return
            part = bytes(self._counted)
            self._start["headers"].append((b"content-length", str(len(part)).encode()))
        try:
            async with asyncio.timeout(self._idle):
                if not self.status:
                    self.status = self._start["status"]
                    await self._send(self._start)
                await self._send({"type": "http.response.body", "body": part, "more_body": more})
        except (TimeoutError, OSError):
            raise Gone from None

    async def answer(self, status: int, headers: list[Header], body: bytes) -> None:
        """Send a whole answer of our own."""
        length = (b"content-length", str(len(body)).encode())
        self.begin(status, [*headers, length])
        await self.body(b"" if self.method == "HEAD" else body, more=False)

    async def fail(self, status: int, reason: str) -> None:
        """Send an error in the shape of the engines' own."""
        headers = [(b"content-type", b"application/json")]
        if not self._ended:  # the rest of the body is not read, so the connection cannot be used again
            headers.append((b"connection", b"close"))
        if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
            headers.append((b"retry-after", b"1"))
        await self.answer(status, headers, error_bytes(status, reason))


def error_bytes(status: int, reason: str) -> bytes:
    """Return the body of an error of our own, in the shape of the engines' errors."""
    return json.dumps(error_of("ndd_search_proxy_exception", reason, status)).encode()


def _quoted(text: str) -> str:
    """Return a text that a quoted string in a header can hold."""
    plain = "".join(one if " " <= one <= "~" else "?" for one in text)
    return plain.replace("\\", "/").replace('"', "'")
