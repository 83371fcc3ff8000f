"""Adds sketches to the documents of write requests on their way to the engine."""

from __future__ import annotations

from ndd_search.proxy.budget import ByteBudget
from ndd_search.proxy.bulk import SketchedBody
from ndd_search.proxy.exchange import Exchange, Header
from ndd_search.proxy.packing import unpacked, unpacking
from ndd_search.proxy.passing import SMALL, Passing, missed
from ndd_search.proxy.upstream import Body
from ndd_search.rest.request import Request
from ndd_search.writing.writes import SketchedWrites

_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")


class Documents:
    """writes: the rules. passing: sends the requests. budget: of the bytes that all requests hold.

    most: bytes of a document that is parsed.
    """

    def __init__(self, writes: SketchedWrites, passing: Passing, budget: ByteBudget, most: int) -> None:
        self._writes, self._passing, self._budget, self._most = writes, passing, budget, most

    async def write(self, exchange: Exchange, path: str) -> None:
        """Add sketches to documents, and send them to the engine."""
        encoding = exchange.header(b"content-encoding").strip().lower()
        lines = self._writes.bulk_lines(path)
        if "json" not in exchange.header(b"content-type") or encoding not in _ENCODINGS:
            missed(exchange, "documents passed without a sketch: only JSON is read, plain or with gzip or deflate")
            await self._passing.pass_on(exchange)
            return
        exchange.kind = "sketched"
        headers = [one for one in exchange.headers if one[0] not in (b"content-length", b"content-encoding")]
        if lines is None:
            async with self._budget.of(exchange, SMALL, self._most):
                await self._write_one(exchange, path, encoding, headers)
            return
        sketched = SketchedBody(lines, self._most, self._budget)
        small = encoding in ("", "identity") and await exchange.read(SMALL) is not None
        parts = sketched(unpacking(exchange.parts(), encoding))
        body: Body = b"".join([part async for part in parts]) if small else parts
        await self._passing.forward(exchange, exchange.target, headers, body, sketched)

    async def _write_one(self, exchange: Exchange, path: str, encoding: str, headers: list[Header]) -> None:
        """Add the sketch to one document. Whatever prevents it, the document goes to the engine as it is."""
        body = await exchange.read(self._most)
        plain = None if body is None else unpacked(body, encoding, self._most)
        if plain is None:
            what = f"it is longer than {self._most:,} bytes, or damaged"
            missed(exchange, f"a document passed without a sketch: {what}")
            await self._passing.pass_on(exchange)
            return
        request = Request(exchange.method, path, {}, {}, plain)
        try:
            after = self._writes(request)
        except Exception as error:
            missed(exchange, f"a document passed without a sketch: {error}")
            after = request
        if after is request:
            await self._passing.pass_on(exchange)
        else:
            await self._passing.forward(exchange, exchange.target, headers, after.body)
