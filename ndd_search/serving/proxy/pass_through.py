"""Passes requests on to the engine, and its answers to callers, as streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from http import HTTPStatus

from ndd_search.search.flow.page_cache import indexes_written
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request, is_write
from ndd_search.serving.proxy.http_exchange import SMALL, Exchange, Header, end_to_end
from ndd_search.serving.proxy.upstream import Body, ClientError, ClientResponse, Unreachable, Upstream
from ndd_search.serving.proxy.wire_format import plain_path

_INDEX = re.compile(rb'"_index"\s*:\s*"([^"\\]{1,255})"')
_LONGEST = 300  # bytes of a match


class PassThrough:
    """upstream: the nodes of the engine. wrote: is told the indexes that a request has written to, None if unknown."""

    def __init__(self, upstream: Upstream, wrote: Callable[[Collection[str] | None], None]) -> None:
        self._upstream, self._wrote = upstream, wrote

    async def pass_on(self, exchange: Exchange, query: str | None = None) -> None:
        """Send a request to the engine as it came, and its answer to the caller.

        query: instead of the request's own, None for that.
        """
        target = exchange.target if query is None else f"{exchange.path}?{query}" if query else exchange.path
        body: Body = None
        if exchange.has_body:
            body = await exchange.read(SMALL) if exchange.is_short else exchange.parts()
        await self.forward(exchange, target, exchange.headers, body)

    async def forward(
        self,
        exchange: Exchange,
        target: str,
        headers: list[Header],
        body: Body,
        answered: Callable[[], None] | None = None,
    ) -> None:
        """Send a request to the engine, and its answer to the caller, both as streams.

        answered: called when the engine has answered, before the caller gets anything.
        """
        writes = is_write(exchange.method, plain_path(exchange.path))
        # A scroll moves on with every request.
        repeatable = exchange.method in ("GET", "HEAD") and "scroll" not in target

        async def work() -> None:
            response = await self._upstream.request(
                exchange.method, target, headers, body, repeatable=repeatable, seconds=None
            )
            if answered is not None:
                answered()
            await self.relay(exchange, response, writes)

        try:
            await exchange.while_connected(work())
        except BaseException:
            if writes:  # perhaps the engine has carried it out
                self._wrote(None)
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
                self._wrote(written.names)
            await exchange.body(last, more=False)


class WrittenIndexes:
    """The names of the indexes that a write has changed, read from the engine's answer while it streams through.

    readable: whether the answer is plain JSON that names every index.
    """

    def __init__(self, exchange: Exchange, status: int, readable: bool) -> None:
        self._request = _named(exchange)
        self._ok = readable and status < HTTPStatus.MULTIPLE_CHOICES and "filter_path" not in exchange.query
        self._names: set[str] = set()
        self._tail = b""

    def feed(self, part: bytes) -> None:
        """Read a part of the answer."""
        if self._ok:
            text = self._tail + part
            self._names.update(name.decode("utf-8", "replace") for name in _INDEX.findall(text))
            self._tail = text[-_LONGEST:]

    @property
    def names(self) -> set[str] | None:
        """The changed indexes under all known names, None if there may be others."""
        if not self._ok or not self._names:
            return None
        items = [{"any": {"_index": name}} for name in self._names]
        return indexes_written(self._request, Answer({"items": items, "_index": min(self._names)}))


def _named(exchange: Exchange) -> Request:
    return Request(exchange.method, plain_path(exchange.path), {}, {}, None)
