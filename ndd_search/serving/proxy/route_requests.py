"""The proxy as an ASGI application: which request is ours, and what becomes of every other one."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from ndd_search.core.sketching.sketches import sketch
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.flow.observer import give_unsketched
from ndd_search.search.rest.read_request import kind_of_search
from ndd_search.serving.proxy.collapse_search import CollapsedSearches
from ndd_search.serving.proxy.http_exchange import Exchange, Gone, Header, Refused
from ndd_search.serving.proxy.pass_through import PassThrough
from ndd_search.serving.proxy.proxy_settings import ProxySettings, address_of
from ndd_search.serving.proxy.sketch_documents import SketchedDocuments
from ndd_search.serving.proxy.upstream import Unreachable, Upstream
from ndd_search.serving.proxy.wire_format import plain_path
from ndd_search.serving.ui.application import Message, Receive, Send, lifespan

log = logging.getLogger("ndd_search")

HEALTH, READY, METRICS = "/_ndd/health", "/_ndd/ready", "/metrics"
_QUIET, _MOST_WARNED = 10.0, 100  # seconds in which a sentence is logged once, and sentences that are logged in them
_OF_SERVER = {"listen", "workers", "certificate", "key", "header_seconds", "stop_seconds"}
_JSON: list[Header] = [(b"content-type", b"application/json")]


def app(upstream: str | Sequence[str], **settings: Any) -> Proxy:
    """Return the proxy in front of an engine, an ASGI application.

    upstream: http[s]://HOST[:PORT][/PREFIX] of the engine, or several nodes of one cluster.
    settings: those of ProxySettings (ca_certs, max_parsed, ...) but those of the server that runs it (listen, workers,
              ...), and those of ndd_search.wrap (recipe, window, ...); `cache` may be the address of a Redis server,
              `items` and `preset` the names of files.
    Raises TypeError or ValueError for invalid settings, MissingExtra if a recipe needs a package that is missing.
    """
    for name in settings:
        if name in _OF_SERVER:
            raise TypeError(f"unknown option {name!r}: it is one of the server, set it where you start that")
    return Proxy(ProxySettings.of(upstream, settings))


class Proxy:
    """Passes requests on to the engine, collapses searches, and adds sketches to documents."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings, self.upstream = settings, Upstream(settings)
        self._metrics: Any = None
        self._manage_port = address_of(settings.manage)[1] if settings.manage else None
        wrapping = settings.wrapping
        if settings.manage:
            from ndd_search.plugins.prometheus_metrics import metrics_of_process  # imported here: only for this address

            self._metrics = metrics_of_process()
            wrapping = {**wrapping, "observers": [*wrapping.get("observers", ()), self._metrics]}
        self.driver = Driver(settings_of(**wrapping))
        self.driver.settings.memory.serve(self.upstream)
        sketch("a text", self.driver.settings.recipe)  # raises now what each document would raise
        most, of_driver = settings.max_parsed, self.driver.settings
        self._long = asyncio.Semaphore(settings.max_long)
        self._pass_through = PassThrough(self.upstream, of_driver.wrote)
        self._documents = SketchedDocuments(self.driver, self.upstream, self._pass_through, self._long, most)
        self._searches = CollapsedSearches(
            self.driver, self.upstream, self._pass_through, most, settings.answer_seconds
        )
        self._in_flight = 0
        self._warned: dict[str, float] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await lifespan(receive, send, self.upstream.close)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send, self.settings.idle_seconds)
        self._in_flight += 1
        try:
            await self._answer(exchange, scope)
        except Gone:
            pass  # nobody waits for an answer
        except (Refused, Unreachable) as error:
            await self._fail(exchange, error)
        except Exception as error:
            log.exception("a request failed by a fault of the proxy")
            failed = Refused(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"a fault of the proxy ({type(error).__name__}): see its log"
            )
            await self._fail(exchange, failed)
        finally:
            self._in_flight -= 1
            if exchange.unsketched:
                give_unsketched(self.driver.settings.observers, exchange.path, exchange.unsketched)

    async def _fail(self, exchange: Exchange, error: Refused | Unreachable) -> None:
        """Answer with an error. An answer that has begun is left incomplete, so that the server cuts the connection."""
        status, reason = error.args if isinstance(error, Refused) else (error.status_code, str(error))
        if isinstance(error, Unreachable):
            self._warn(str(error))
            if status == HTTPStatus.REQUEST_TIMEOUT:
                status = HTTPStatus.GATEWAY_TIMEOUT
        if not exchange.status:
            with suppress(Gone):
                await exchange.fail(status, reason)

    def _warn(self, sentence: str) -> None:
        """Log why the engine gave no answer, each sentence once in _QUIET seconds."""
        now = time.monotonic()
        self._warned = {said: moment for said, moment in self._warned.items() if moment > now - _QUIET}
        if sentence not in self._warned and len(self._warned) < _MOST_WARNED:
            self._warned[sentence] = now
            log.warning("%s", sentence)

    async def _answer(self, exchange: Exchange, scope: Message) -> None:
        if self._manage_port is not None and (scope.get("server") or ("", None))[1] == self._manage_port:
            await self._manage(exchange)
            return
        _check(exchange, bool(scope.get("root_path")) or any(node.prefix for node in self.settings.nodes))
        if self._in_flight > self.settings.max_requests:
            what = f"{self.settings.max_requests} requests are in flight: send it again later"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, what)
        path, writes = plain_path(exchange.path), self.driver.settings.writes
        if kind_of_search(exchange.method, path) in ("search", "msearch"):
            async with exchange.turn(self._long):
                await self._searches.search(exchange)
        elif writes.concerns(exchange.method, path):
            await self._documents.write(exchange, path)
        else:
            await self._pass_through.pass_on(exchange)

    async def _manage(self, exchange: Exchange) -> None:
        """Answer one of our own pages."""
        if exchange.method not in ("GET", "HEAD") or exchange.path not in (HEALTH, READY, METRICS):
            raise Refused(HTTPStatus.NOT_FOUND, f"here are only {HEALTH}, {READY} and {METRICS}")
        if exchange.path == METRICS:
            text, kind = self._metrics.exposition()
            await exchange.answer(HTTPStatus.OK, [(b"content-type", kind.encode())], text)
            return
        problem = await self.upstream.answers() if exchange.path == READY else ""
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        told = {"status": "unavailable", "reason": problem} if problem else {"status": "ok"}
        await exchange.answer(status, _JSON, json.dumps(told).encode())


def _check(exchange: Exchange, has_prefix: bool) -> None:
    """Raise Refused for a request that two servers could read in two ways."""
    names = [name for name, _ in exchange.received]
    coding = [value.strip().lower() for name, value in exchange.received if name == b"transfer-encoding"]
    if exchange.method in ("CONNECT", "TRACE"):
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{exchange.method} is not passed on")
    if not exchange.target.isascii():
        raise Refused(HTTPStatus.BAD_REQUEST, "the URL is not ASCII: percent-encode it")
    if not exchange.path.startswith("/"):
        raise Refused(HTTPStatus.BAD_REQUEST, "the path of the URL must begin with a slash")
    if coding and exchange.version == "1.0":
        raise Refused(HTTPStatus.BAD_REQUEST, "HTTP/1.0 has no transfer encodings: send the length of the body")
    if names.count(b"host") > 1:
        raise Refused(HTTPStatus.BAD_REQUEST, "the header Host is given twice: send it once")
    if coding not in ([], [b"chunked"]):
        raise Refused(HTTPStatus.NOT_IMPLEMENTED, "the only transfer encoding that is read is chunked")
    segments = exchange.path.lower().replace("%2e", ".").replace("%2f", "/").split("/")
    if has_prefix and (".." in segments or "." in segments):
        raise Refused(HTTPStatus.BAD_REQUEST, "the path holds . or .., and could leave the engine's own path")
    for name, value in exchange.headers:
        try:
            name.decode("ascii"), value.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(HTTPStatus.BAD_REQUEST, f"the header {name!r} is not UTF-8") from None
