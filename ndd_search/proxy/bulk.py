"""Adds sketches to the body of a bulk request while it streams through, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from ndd_search.proxy.budget import ByteBudget
from ndd_search.writing.writes import BulkLines

_MOST_AT_ONCE = 2**18  # bytes: more are sketched in a thread, so that other requests go on
_LONG = 2**20  # bytes of a line from which on a request counts against the budget


class SketchedBody:
    """Adds sketches to the documents of one bulk request.

    lines:  what knows the documents. budget: of the bytes that all requests hold.
    most:   bytes of a line that is parsed; a longer one passes as it is.
    missed: number of documents that passed without the sketch that they should have got. why: the first reason.
    """

    def __init__(self, lines: BulkLines, most: int, budget: ByteBudget) -> None:
        self._lines, self._most, self._budget = lines, most, budget
        self._held: list[bytes] = []  # the beginning of a line
        self._size = 0
        self._passing = False  # the rest of a line that is too long
        self.missed, self.why = 0, ""

    async def __call__(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the body with sketches, line after line."""
        async with AsyncExitStack() as held:
            holds = False
            async for part in parts:
                size = self._size + len(part)
                if size > _LONG and not holds:
                    await held.enter_async_context(self._budget.hold(self._most))
                    holds = True
                fed = await asyncio.to_thread(self.feed, part) if size > _MOST_AT_ONCE else self.feed(part)
                if fed:
                    yield fed
            if last := self.end():
                yield last

    def feed(self, part: bytes) -> bytes:
        """Return what can be sent after one more part."""
        *ends, rest = part.split(b"\n")
        sent: list[bytes] = []
        for end in ends:
            sent += (self._whole(end), b"\n")
        if self._passing:
            sent.append(rest)
        elif rest:
            self._held.append(rest)
            self._size += len(rest)
            if self._size > self._most:
                self._passing = True
                sent.append(self._taken())
                if self._lines.skip():
                    self._miss(f"a document is longer than {self._most:,} bytes")
        return b"".join(sent)

    def end(self) -> bytes:
        """Return what is left after the last line end."""
        return self._whole(b"") if self._held else b""

    def _whole(self, end: bytes) -> bytes:
        """Return a line, or the rest of one that is too long."""
        if self._passing:
            self._passing = False
            return end
        line = self._taken() + end if self._held else end
        return self._sketched(line)

    def _sketched(self, line: bytes) -> bytes:
        text = line.rstrip()
        try:
            after: bytes = self._lines(text)
            return after + line[len(text) :]
        except Exception as error:  # one document does not stop the others
            self._miss(str(error))
            return line

    def _miss(self, why: str) -> None:
        self.missed += 1
        self.why = self.why or why

    def _taken(self) -> bytes:
        line, self._held, self._size = b"".join(self._held), [], 0
        return line
