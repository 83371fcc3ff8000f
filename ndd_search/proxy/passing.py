"""Passes requests on to the engine, and its answers to callers, as streams."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from ndd_search.middleware.page_memory import Memory
from ndd_search.proxy.bulk import SketchedBody
from ndd_search.proxy.exchange import Exchange, Gone, Header, Refused, end_to_end
from ndd_search.proxy.searches import plain_path
from ndd_search.proxy.upstream import Body, ClientError, ClientResponse, Unreachable, Upstream
from ndd_search.proxy.written import WrittenIndexes
from ndd_search.rest.request import Request, is_write

log = logging.getLogger("ndd_search")

SMALL = 2**16  # bytes of a body that is read before it is sent, which is faster than a stream


class Passing:
    """upstream: the nodes of the engine. memory: forgets the pages of indexes that a request has written to."""

    def __init__(self, upstream: Upstream, memory: Memory) -> None:
        self._upstream, self._memory = upstream, memory

    async def pass_on(self, exchange: Exchange, query: str | None = None) -> None:
        """Send a request to the engine as it came, and its answer to the caller.

        query: instead of the request's own, None for that.
        """
        target = exchange.target if query is None else f"{exchange.path}?{query}" if query else exchange.path
        length = exchange.header(b"content-length")
        body: Body = exchange.parts() if exchange.has_body else None
        if exchange.has_body and length.isdigit() and int(length) <= SMALL:
            body = await exchange.read(SMALL)
        await self.forward(exchange, target, exchange.headers, body)

    async def forward(
        self, exchange: Exchange, target: str, headers: list[Header], body: Body, sketched: SketchedBody | None = None
    ) -> None:
        """Send a request to the engine, and its answer to the caller, both as streams."""
        writes = exchange.method not in ("GET", "HEAD") and is_write(_named(exchange))
        # A scroll moves on with every request.
        repeatable = exchange.method in ("GET", "HEAD") and "scroll" not in target
        upload = body if body is None or isinstance(body, bytes) else _Upload(body)

        async def work() -> None:
            sent = upload.parts() if isinstance(upload, _Upload) else upload
            try:
                response = await self._upstream.request(
                    exchange.method, target, headers, sent, repeatable=repeatable, seconds=None
                )
            except Unreachable:
                if isinstance(upload, _Upload) and upload.error is not None:
                    raise upload.error from None
                raise
            if sketched is not None and sketched.missed:
                missed(exchange, f"{sketched.missed} documents passed without a sketch, the first: {sketched.why}")
            await self.relay(exchange, response, writes)

        try:
            await exchange.while_connected(work())
        except BaseException:
            if writes:  # perhaps the engine has carried it out
                self._memory.forget(None)
            raise

    async def relay(self, exchange: Exchange, response: ClientResponse, writes: bool) -> None:
        """Send an answer of the engine to the caller, part by part.

        The end of the answer to a write is sent after the cache has forgotten the index: the caller's next search sees
        the write.
        """
        async with response:
            headers = end_to_end(response.raw_headers)
            packing = any(name == b"content-encoding" for name, _ in headers)
            written = WrittenIndexes(exchange, response.status, not packing) if writes else None
            exchange.begin(response.status, headers)
            last = b""
            try:
                while not response.content.at_eof():
                    if last:
                        await exchange.body(last, more=True)
                    last = await response.content.readany()
                    if written is not None:
                        written.feed(last)
            except (ClientError, TimeoutError) as error:
                raise Unreachable("the engine", f"its answer broke off ({error!r})", "send the request again") from None
            if written is not None:
                self._memory.forget(written.names)
            await exchange.body(last, more=False)


class _Upload:
    """A body that is sent as a stream. error: why it ended early, which the HTTP client hides behind its own error."""

    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts
        self.error: Gone | Refused | None = None

    async def parts(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._parts:
                yield part
        except (Gone, Refused) as error:
            self.error = error
            raise


def missed(exchange: Exchange, sentence: str) -> None:
    """Say in the answer and in the log that a document passed without its sketch."""
    exchange.note(sentence)
    log.warning("%s %s: %s", exchange.method, exchange.path, sentence)


def _named(exchange: Exchange) -> Request:
    return Request(exchange.method, plain_path(exchange.path), {}, {}, None)
