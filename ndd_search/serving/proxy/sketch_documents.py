"""Adds sketches to the documents of write requests on their way to the engine; a bulk streams, in bounded memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from ndd_search.core.paging.fill_page import run_async
from ndd_search.core.text.printable import many
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.writing.sketch_written_requests import WrittenLines
from ndd_search.serving.proxy.http_exchange import SMALL, Exchange
from ndd_search.serving.proxy.pass_through import PassThrough
from ndd_search.serving.proxy.upstream import Body, Upstream, sent
from ndd_search.serving.proxy.wire_format import READ, unpacked, unpacking

log = logging.getLogger("ndd_search")

_MOST_AT_ONCE = 2**18  # bytes of lines that are sketched in a row; a longer line in a thread: other requests go on
_LONG = 2**20  # bytes of a line from which on a request is one of long bodies


class SketchedDocuments:
    """driver: has the rules. pass_through: sends the requests. long: of the requests with long bodies.

    most: bytes of a document that is parsed.
    """

    def __init__(
        self, driver: Driver, upstream: Upstream, pass_through: PassThrough, long: asyncio.Semaphore, most: int
    ) -> None:
        self._driver, self._writes, self._upstream = driver, driver.settings.writes, upstream
        self._pass_through, self._long, self._most = pass_through, long, most

    async def write(self, exchange: Exchange, path: str) -> None:
        """Add sketches to documents, and send them to the engine. What prevents one, its document goes as it came."""
        encoding, kind = exchange.encoding, exchange.header(b"content-type")
        if "json" not in kind or "," in kind or encoding not in READ:
            if await exchange.read(0) is None:
                _missed(exchange, "documents passed without a sketch: only JSON is read, plain or with gzip")
            await self._pass_through.pass_on(exchange)
            return
        lines = self._writes.lines_of(path)
        assert lines is not None

        async def ask(index: str) -> None:
            asked = self._driver.put_mapping(index, _credentials(exchange))
            why, faults = await run_async(asked, partial(sent, self._upstream))
            lines.unmapped |= {index: why} if why else {}
            for fault in faults:
                exchange.note(fault)

        def tell() -> None:
            if count := sketched.missed:
                first = ", the first" if count > 1 else ""
                what = f"{many(count, 'document')} passed without a sketch{first}: {sketched.why}"
                _missed(exchange, what, count)

        sketched = SketchedBody(lines, self._most, self._long, ask)
        headers = [one for one in exchange.headers if one[0] not in (b"content-length", b"content-encoding")]
        if lines.following is None:  # a bulk, which begins with a header line
            small = None if encoding else await exchange.read(SMALL)
            parts = sketched(unpacking(exchange.parts(), encoding))
            body: Body = parts if small is None else b"".join([part async for part in parts])
            await self._pass_through.forward(exchange, exchange.target, headers, body, tell)
            return
        async with exchange.turn(self._long):
            given = await exchange.read(self._most)
            plain = None if given is None else unpacked(given, encoding, self._most)
            if plain is None:
                sketched.miss(f"it is longer than {self._most:,} bytes, or damaged")
            after = plain and await sketched.line(plain)
            if after == plain:
                tell()
                await self._pass_through.pass_on(exchange)
            else:
                await self._pass_through.forward(exchange, exchange.target, headers, after, tell)


class SketchedBody:
    """Adds sketches to the documents of one request, a bulk or one document.

    lines:  what knows the documents. long: of the requests that hold long lines.
    most:   bytes of a line that is parsed; a longer one passes as it is.
    ask:    called once with the name of each index with a rule, before the first of its documents.
    missed: number of documents that passed without the sketch that they should have got. why: the first reason.
    """

    def __init__(
        self, lines: WrittenLines, most: int, long: asyncio.Semaphore, ask: Callable[[str], Awaitable[None]]
    ) -> None:
        self._lines, self._most, self._long, self._ask = lines, most, long, ask
        self._asked: set[str] = set()
        self._held: list[bytes] = []  # the beginning of a line
        self._size = 0
        self._is_too_long = False  # the rest of a line that is too long
        self.missed, self.why = 0, ""

    async def __call__(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the body with sketches, line after line."""
        async with AsyncExitStack() as held:
            holds = False
            async for part in parts:
                if self._size + len(part) > _LONG and not holds:
                    await held.enter_async_context(self._long)
                    holds = True
                for start in range(0, len(part), _MOST_AT_ONCE):
                    if fed := await self._fed(part[start : start + _MOST_AT_ONCE]):
                        yield fed
            if self._held:
                yield await self._whole(b"")

    async def _fed(self, part: bytes) -> bytes:
        """Return what can be sent after one more part."""
        *ends, rest = part.split(b"\n")
        sent: list[bytes] = []
        for end in ends:
            sent += (await self._whole(end), b"\n")
        if self._is_too_long:
            sent.append(rest)
        elif rest:
            self._held.append(rest)
            self._size += len(rest)
            if self._size > self._most:
                self._is_too_long = True
                sent.append(self._taken())
                if self._lines.skip():
                    self.miss(f"a document is longer than {self._most:,} bytes")
        return b"".join(sent)

    async def _whole(self, end: bytes) -> bytes:
        """Return a line, or the rest of one that is too long."""
        if self._is_too_long:
            self._is_too_long = False
            return end
        line = self._taken() + end if self._held else end
        text = line.rstrip()
        return await self.line(text) + line[len(text) :]

    async def line(self, text: bytes) -> bytes:
        """Return one line with its sketch, as it came if it gets none."""
        index = self._lines.following
        if index is not None and index not in self._asked:
            self._asked.add(index)
            await self._ask(index)
        try:
            is_long = len(text) > _MOST_AT_ONCE
            after = await asyncio.to_thread(self._lines, text, self.miss) if is_long else self._lines(text, self.miss)
            return bytes(after)
        except Exception as error:  # one document does not stop the others
            self.miss(str(error))
            return text

    def miss(self, why: str) -> None:
        """Count a document without a sketch."""
        self.missed += 1
        self.why = self.why or why

    def _taken(self) -> bytes:
        line, self._held, self._size = b"".join(self._held), [], 0
        return line


def _credentials(exchange: Exchange) -> dict[str, str]:
    """Return the headers of a caller, without those of the body."""
    others = [one for one in exchange.headers if not one[0].startswith((b"content-", b"accept"))]
    return {name.decode(): value.decode("latin-1") for name, value in others}


def _missed(exchange: Exchange, sentence: str, documents: int = 1) -> None:
    """Say in the answer and in the log that documents passed without their sketch, and count them."""
    exchange.note(sentence)
    exchange.unsketched += documents
    log.warning("%s %s: %s", exchange.method, exchange.path, sentence)
