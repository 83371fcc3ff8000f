"""The search page (`serving.ui`) behind the proxy, at `/_ndd/search/`. The engine sees its caller's credentials."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus

from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer
from ndd_search.serving.proxy.http_exchange import Exchange
from ndd_search.serving.proxy.upstream import Upstream, sent
from ndd_search.serving.proxy.wire_format import Raw
from ndd_search.serving.ui.application import SearchPage
from ndd_search.serving.ui.search_engine import EngineSearcher

PAGE = "/_ndd/search"
_NO_HEADERS: Mapping[str, str] = {}


class UpstreamSearcher(EngineSearcher):
    """Searches an engine through the proxy's own connections. headers: sent with every request, as Authorization.

    Raises ValueError if `index` names no index.
    """

    def __init__(
        self, driver: Driver, upstream: Upstream, index: str, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        super().__init__(driver, partial(sent, upstream, headers), index, _challenge)
        self._upstream = upstream

    async def close(self) -> None:
        """Close all connections."""
        await self._upstream.close()


class PageOfProxy:
    """Answers requests below PAGE."""

    def __init__(self, searcher: UpstreamSearcher) -> None:
        self._page = SearchPage(searcher)

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request. The engine's part of the work ends when the caller leaves."""
        exchange.kind = "search page"
        path = exchange.path.removeprefix(PAGE)
        if not path:  # the links of the page are relative
            query = f"?{exchange.query}" if exchange.query else ""
            location = f"{PAGE.rpartition('/')[2]}/{query}"
            await exchange.answer(HTTPStatus.PERMANENT_REDIRECT, [(b"location", location.encode())], b"")
            return
        await exchange.while_connected(self._answer(exchange, path))

    async def _answer(self, exchange: Exchange, path: str) -> None:
        headers = {name.decode(): exchange.header(name) for name, _ in exchange.headers}
        reply = await self._page.reply(exchange.method, path, exchange.query, headers)
        raw = [(name.encode(), value.encode("latin-1")) for name, value in reply.headers.items()]
        await exchange.answer(reply.status, [header for header in raw if header[0] != b"content-length"], reply.body)


def _challenge(answer: Answer) -> str:
    headers = answer.raw.headers if isinstance(answer.raw, Raw) else []
    return next((value.decode("latin-1") for name, value in headers if name == b"www-authenticate"), "")
