"""The search page as an ASGI application. It only reads, and every page is HTML made here."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from pkgutil import get_data
from typing import Any

from ndd_search.errors import NDDError
from ndd_search.serving.ui.page_html import Pages
from ndd_search.serving.ui.page_url import State, values
from ndd_search.serving.ui.searcher import Headers, Searcher, SearchFailed

log = logging.getLogger("ndd_search")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_FILES = {"style.css": "text/css", "script.js": "text/javascript", "icon.svg": "image/svg+xml"}
_RIGHTS = ("authorization",)  # headers that the engine gets
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_OF_EVERY_ANSWER = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True)
class Reply:
    """An answer to a browser."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class SearchPage:
    """searcher: what is searched. hosts: values of the header Host that are served, None for any.

    A page on the loopback address names its hosts, so that no other site can read it by a name of its own that
    resolves to 127.0.0.1 (DNS rebinding).
    """

    def __init__(self, searcher: Searcher, hosts: Collection[str] | None = None) -> None:
        self._searcher, self._hosts = searcher, hosts
        self._pages = Pages(searcher)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await lifespan(receive, send, self._searcher.close)
        else:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            query = scope["query_string"].decode("latin-1")
            reply = await self.reply(scope["method"], scope["path"], query, headers)
            raw = [(name.encode(), value.encode("latin-1")) for name, value in reply.headers.items()]
            await send({"type": "http.response.start", "status": reply.status, "headers": raw})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})

    async def reply(self, method: str, path: str, query: str, headers: Headers) -> Reply:
        """Answer one request. query: of the URL. headers: names in lower case."""
        name = path.removeprefix("/")
        if method not in ("GET", "HEAD"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED, "the search page is read with GET", {"allow": "GET, HEAD"})
        if self._hosts is not None and _host(headers.get("host", "")) not in self._hosts:
            return _plain(HTTPStatus.MISDIRECTED_REQUEST, "the search page is not served under this host name")
        if name in _FILES:
            content = get_data("ndd_search.serving.ui", f"page/{name}") or b""
            return _reply(HTTPStatus.OK, f"{_FILES[name]}; charset=utf-8", content, {"cache-control": "no-cache"})
        try:
            html = await self._html(name, query, {one: headers[one] for one in _RIGHTS if one in headers})
        except Exception as error:
            return self._failed(_failure(error))
        return _reply(HTTPStatus.OK, "text/html; charset=utf-8", html, {"cache-control": "no-store"})

    async def _html(self, name: str, query: str, headers: Headers) -> bytes:
        match name:
            case "":
                return await self._pages.search(State.parse(query), headers)
            case "document":
                return await self._pages.document(values(query), headers)
        raise SearchFailed(HTTPStatus.NOT_FOUND, f"there is no page {name!r} here: go back to the search")

    def _failed(self, error: SearchFailed) -> Reply:
        challenge = {"www-authenticate": error.challenge} if error.challenge else {}
        html = self._pages.failed(error.status, error.reason)
        return _reply(error.status, "text/html; charset=utf-8", html, {"cache-control": "no-store", **challenge})


async def lifespan(receive: Receive, send: Send, close: Callable[[], Awaitable[None]]) -> None:
    """Serve the connection of ASGI that tells of the start and the stop of the server."""
    while True:
        kind = (await receive())["type"]
        if kind == "lifespan.shutdown":
            await close()
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


def _failure(error: Exception) -> SearchFailed:
    """Return what a page says about an error. An error that is not about the request is logged."""
    match error:
        case SearchFailed():
            return error
        case NDDError():
            return SearchFailed(getattr(error, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR), str(error))
        case ValueError():
            return SearchFailed(HTTPStatus.BAD_REQUEST, str(error))
    log.error("a page could not be made", exc_info=error)
    return SearchFailed(HTTPStatus.INTERNAL_SERVER_ERROR, "a fault of the search page: see its log")


def _reply(status: int, kind: str, body: bytes, headers: Mapping[str, str]) -> Reply:
    length = {"content-type": kind, "content-length": str(len(body))}
    return Reply(int(status), {**length, **_OF_EVERY_ANSWER, **headers}, body)


def _plain(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Reply:
    return _reply(status, "text/plain; charset=utf-8", f"{sentence}\n".encode(), headers or {})


def _host(value: str) -> str:
    """Return the header Host without a port."""
    return (value if value.endswith("]") or ":" not in value else value.rpartition(":")[0]).lower()
