"""The proxy as an ASGI application: which request is ours, and what becomes of every other one."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import fields
from http import HTTPStatus
from typing import Any

from ndd_search.middleware.driver import Driver
from ndd_search.middleware.scope import options
from ndd_search.middleware.settings import settings_of
from ndd_search.proxy.budget import ByteBudget
from ndd_search.proxy.bulk import SketchedBody, unpacking
from ndd_search.proxy.exchange import Exchange, Gone, Header, Message, Receive, Refused, Send, end_to_end
from ndd_search.proxy.searches import (
    Given,
    PageHeaders,
    Raw,
    answer_bytes,
    given_search,
    is_search,
    packed,
    plain_path,
    read_answer,
    sent_body,
    sent_headers,
    sent_target,
    switched,
    unpacked,
    wants_options,
)
from ndd_search.proxy.settings import ProxySettings, nodes_of
from ndd_search.proxy.upstream import Body, ClientError, ClientResponse, Unreachable, Upstream, read_all
from ndd_search.proxy.written import WrittenIndexes
from ndd_search.rest.answers import Answer
from ndd_search.rest.request import Request, is_write
from ndd_search.sketching.sketches import sketch

log = logging.getLogger("ndd_search")
access = logging.getLogger("ndd_search.access")

HEALTH, READY = "/_ndd/health", "/_ndd/ready"
_SMALL = 2**16  # bytes of a body that is read before it is sent, which is faster than a stream
_OWN = {field.name for field in fields(ProxySettings)} - {"nodes"}
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
_JSON: list[Header] = [(b"content-type", b"application/json")]


def app(upstream: str | Sequence[str], **settings: Any) -> Proxy:
    """Return the proxy in front of an engine, an ASGI application.

    upstream: http[s]://HOST[:PORT][/PREFIX] of the engine, or several nodes of one cluster.
    settings: those of ProxySettings (ca_certs, max_parsed, ...) and of ndd_search.wrap (sketch, recipe, window, ...).
    Raises TypeError or ValueError for invalid settings, MissingExtra if a recipe needs a package that is missing.
    """
    own = {name: value for name, value in settings.items() if name in _OWN}
    others = {name: value for name, value in settings.items() if name not in _OWN}
    return Proxy(ProxySettings(nodes=nodes_of(upstream), **own), others)


class Proxy:
    """Passes requests on to the engine, collapses searches, and adds sketches to documents.

    wrapping: settings of ndd_search.wrap by name.
    """

    def __init__(self, settings: ProxySettings, wrapping: dict[str, Any]) -> None:
        self.settings, self.upstream = settings, Upstream(settings)
        self.driver = Driver(settings_of(**wrapping))
        self.driver.settings.memory.serve(self.upstream)
        sketch("a text", self.driver.settings.recipe)  # raises now what each document would raise
        self._page_headers = PageHeaders()
        self._budget = ByteBudget(settings.max_held)
        self._in_flight = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await self.upstream.close()
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        self._in_flight += 1
        exchange: Exchange | None = None
        try:
            exchange = Exchange(scope, receive, send, self.settings.idle_seconds)
            await self._answer(exchange, scope)
        except Gone:
            if exchange is not None:
                exchange.kind = "gone"
        except (Refused, Unreachable) as error:
            await self._fail(exchange or _unread(scope, receive, send), error)
        except Exception as error:
            log.exception("a request failed by a fault of the proxy")
            failed = Refused(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"a fault of the proxy ({type(error).__name__}): see its log"
            )
            await self._fail(exchange or _unread(scope, receive, send), failed)
        finally:
            self._in_flight -= 1
            if exchange is not None and self.settings.access_log:
                _log(exchange, scope, time.perf_counter() - began)

    async def _fail(self, exchange: Exchange, error: Refused | Unreachable) -> None:
        """Answer with an error. An answer that has begun is left incomplete, so that the server cuts the connection."""
        exchange.kind = "failed"
        status, reason = error.args if isinstance(error, Refused) else (error.status_code, str(error))
        if isinstance(error, Unreachable):
            log.warning("%s", error)
            if status == HTTPStatus.REQUEST_TIMEOUT:
                status = HTTPStatus.GATEWAY_TIMEOUT
        if not exchange.status:
            try:
                await exchange.fail(status, reason)
            except Gone:
                exchange.kind = "gone"

    async def _answer(self, exchange: Exchange, scope: Message) -> None:
        if (
            self.settings.manage_port is not None
            and (scope.get("server") or ("", None))[1] == self.settings.manage_port
        ):
            await self._manage(exchange)
            return
        _check(exchange, bool(scope.get("root_path")) or any(node.prefix for node in self.settings.nodes))
        if self._in_flight > self.settings.max_requests:
            what = f"{self.settings.max_requests} requests are in flight: send it again later"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, what)
        path = plain_path(exchange.path)
        if is_search(exchange.method, path):
            async with self._held(exchange):
                await self._search(exchange)
        elif self.driver.settings.writes.concerns(exchange.method, path):
            await self._write(exchange, path)
        else:
            await self._pass(exchange)

    def _held(self, exchange: Exchange) -> AbstractAsyncContextManager[None]:
        """Wait until the body of a request may be held. A small one does not count."""
        length = exchange.header(b"content-length")
        packed = exchange.header(b"content-encoding") not in ("", "identity")
        size = int(length) if length.isdigit() and not packed else self.settings.max_parsed
        if not exchange.has_body or size <= _SMALL:
            return nullcontext()
        return self._budget.hold(min(size, self.settings.max_parsed))

    async def _manage(self, exchange: Exchange) -> None:
        """Answer one of our own pages."""
        exchange.kind = "management"
        if exchange.method not in ("GET", "HEAD") or exchange.path not in (HEALTH, READY):
            raise Refused(HTTPStatus.NOT_FOUND, f"here are only {HEALTH} and {READY}")
        problem = await self.upstream.answers() if exchange.path == READY else ""
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        text = json.dumps({"status": "unavailable", "reason": problem} if problem else {"status": "ok"})
        await exchange.answer(status, _JSON, text.encode())

    async def _pass(self, exchange: Exchange, query: str | None = None) -> None:
        """Send a request to the engine as it came, and its answer to the caller.

        query: instead of the request's own, None for that.
        """
        target = exchange.target if query is None else f"{exchange.path}?{query}" if query else exchange.path
        length = exchange.header(b"content-length")
        body: Body = exchange.parts() if exchange.has_body else None
        if exchange.has_body and length.isdigit() and int(length) <= _SMALL:
            body = await exchange.read(_SMALL)
        await self._forward(exchange, target, exchange.headers, body)

    async def _forward(
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
                response = await self.upstream.request(
                    exchange.method, target, headers, sent, repeatable=repeatable, seconds=None
                )
            except Unreachable:
                if isinstance(upload, _Upload) and upload.error is not None:
                    raise upload.error from None
                raise
            if sketched is not None and sketched.missed:
                self._missed(
                    exchange, f"{sketched.missed} documents passed without a sketch, the first: {sketched.why}"
                )
            await self._relay(exchange, response, writes)

        try:
            await exchange.while_connected(work())
        except BaseException:
            if writes:  # perhaps the engine has carried it out
                self.driver.settings.memory.forget(None)
            raise

    async def _relay(self, exchange: Exchange, response: ClientResponse, writes: bool) -> None:
        """Send an answer of the engine to the caller, part by part.

        The end of the answer to a write is sent after the cache has forgotten the index: the caller's next search sees
        the write.
        """
        async with response:
            headers = end_to_end(response.raw_headers)
            packing = any(name == b"content-encoding" for name, _ in headers)
            written = WrittenIndexes(exchange, response.status, not packing) if writes else None
            await exchange.begin(response.status, headers)
            last = b""
            try:
                async for part, whole in _parts(response):
                    if written is not None:
                        written.feed(part)
                    if whole:
                        last = part
                        break
                    await exchange.body(part, more=True)
            except (ClientError, TimeoutError) as error:
                raise Unreachable("the engine", f"its answer broke off ({error!r})", "send the request again") from None
            if written is not None:
                self.driver.settings.memory.forget(written.names)
            await exchange.body(last, more=False)

    async def _write(self, exchange: Exchange, path: str) -> None:
        """Add sketches to documents, and send them to the engine."""
        encoding = exchange.header(b"content-encoding").strip().lower()
        lines = self.driver.settings.writes.bulk_lines(path)
        if "json" not in exchange.header(b"content-type") or encoding not in _ENCODINGS:
            self._missed(
                exchange, "documents passed without a sketch: only JSON is read, plain or with gzip or deflate"
            )
            await self._pass(exchange)
            return
        exchange.kind = "sketched"
        headers = [one for one in exchange.headers if one[0] not in (b"content-length", b"content-encoding")]
        if lines is None:
            async with self._held(exchange):
                await self._write_one(exchange, path, encoding, headers)
            return
        sketched = SketchedBody(lines, self.settings.max_parsed, self._budget)
        small = encoding in ("", "identity") and await exchange.read(_SMALL) is not None
        parts = sketched(unpacking(exchange.parts(), encoding))
        body: Body = b"".join([part async for part in parts]) if small else parts
        await self._forward(exchange, exchange.target, headers, body, sketched)

    async def _write_one(self, exchange: Exchange, path: str, encoding: str, headers: list[Header]) -> None:
        """Add the sketch to one document. Whatever prevents it, the document goes to the engine as it is."""
        body = await exchange.read(self.settings.max_parsed)
        plain = None if body is None else unpacked(body, encoding, self.settings.max_parsed)
        if plain is None:
            what = f"it is longer than {self.settings.max_parsed:,} bytes, or damaged"
            self._missed(exchange, f"a document passed without a sketch: {what}")
            await self._pass(exchange)
            return
        request = Request(exchange.method, path, {}, {}, plain)
        try:
            after = self.driver.settings.writes(request)
        except Exception as error:
            self._missed(exchange, f"a document passed without a sketch: {error}")
            after = request
        if after is request:
            await self._pass(exchange)
        else:
            await self._forward(exchange, exchange.target, headers, after.body)

    def _missed(self, exchange: Exchange, sentence: str) -> None:
        exchange.note(sentence)
        log.warning("%s %s: %s", exchange.method, exchange.path, sentence)

    async def _search(self, exchange: Exchange) -> None:
        """Answer a search with a page without near-duplicates, or pass it on if it is to be left alone."""
        try:
            query, switch = switched(exchange.query)
        except ValueError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
        body = await exchange.read(self.settings.max_parsed)
        if body is None:
            exchange.note(f"near-duplicates may be shown: the body is longer than {self.settings.max_parsed:,} bytes")
        given = None if body is None else given_search(exchange, body, query, self.settings.max_parsed)
        if given is None or (switch is False and not wants_options(given.request.body)):
            await self._pass(exchange, query)
            return
        await exchange.while_connected(self._collapse(exchange, given, body, switch))

    async def _collapse(self, exchange: Exchange, given: Given, body: bytes | None, switch: bool | None) -> None:
        """Run the conversation of a search, and send its page; a search that is left alone streams as it is."""
        left_alone: list[ClientResponse] = []
        async with AsyncExitStack() as stack:

            async def send(request: Request) -> Answer:
                if request is given.request:
                    response = await self._ask(exchange, given.target, exchange.headers, body)
                    left_alone.append(await stack.enter_async_context(response))
                    return Answer(None, response.status)
                asked = sent_target(given, request), sent_headers(exchange, given, request), sent_body(request)
                response = await self._ask(exchange, *asked, seconds=request.timeout)
                raw = read_answer(response.status, list(response.raw_headers), await read_all(response))
                return Answer(raw.body, raw.status, raw)

            scope = options(enabled=False) if switch is False else options(collapse_unranked=True) if switch else None
            with scope or nullcontext():
                answer = await self._handled(given, send)
            if left_alone:
                await self._relay(exchange, left_alone[-1], writes=False)
                return
        raw = answer.raw if isinstance(answer.raw, Raw) else None
        if raw is not None and not isinstance(answer.body, dict):  # not the answer of an engine
            await exchange.answer(raw.status, _without_length(raw.headers), raw.content)
            return
        page = isinstance(answer.body, dict) and "ndd" in answer.body
        exchange.kind = ("remembered" if raw is None else "page") if page or raw is None else "passed"
        headers = self._page_headers.of(raw, exchange.header(b"accept"))
        text = answer_bytes(answer.body, given.pretty)
        await exchange.answer(answer.status, *packed(headers, text, exchange.header(b"accept-encoding")))

    async def _handled(self, given: Given, send: Any) -> Answer:
        """Return the answer to a search. A fault of ours costs the caller no more than near-duplicates."""
        request = given.request
        try:
            return await self.driver.handle_async(request, send, timeout=self.settings.answer_seconds)
        except (Unreachable, Gone, Refused):
            raise
        except Exception as error:
            if wants_options(request.body) and isinstance(error, TypeError | ValueError):
                raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
            log.warning("%s: near-duplicates may be shown: %r", request.path, error, exc_info=True)
            answer: Answer = await send(request)
            return answer

    async def _ask(
        self, exchange: Exchange, target: str, headers: list[Header], body: bytes | None, seconds: float | None = None
    ) -> ClientResponse:
        """Send a search to the engine. It changes nothing, so it may be sent twice, unless it opens a scroll."""
        repeatable = "scroll" not in target
        return await self.upstream.request(
            exchange.method, target, headers, body, repeatable=repeatable, seconds=seconds
        )


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


def _check(exchange: Exchange, has_prefix: bool) -> None:
    """Raise Refused for a request that two servers could read in two ways."""
    names = [name for name, _ in exchange.received]
    coding = [value.strip().lower() for name, value in exchange.received if name == b"transfer-encoding"]
    if exchange.method in ("CONNECT", "TRACE"):
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{exchange.method} is not passed on")
    if not exchange.path.startswith("/"):
        raise Refused(HTTPStatus.BAD_REQUEST, "the path of the URL must begin with a slash")
    if names.count(b"content-length") > 1 or len(coding) > 1 or (coding and b"content-length" in names):
        raise Refused(HTTPStatus.BAD_REQUEST, "the length of the body is given twice: send one header for it")
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


async def _parts(response: ClientResponse) -> AsyncIterator[tuple[bytes, bool]]:
    """Yield the parts of an answer, each with whether it is known to be the last one."""
    while True:
        part = await response.content.readany()
        whole = not part or response.content.at_eof()
        yield part, whole
        if whole:
            return


def _named(exchange: Exchange) -> Request:
    return Request(exchange.method, plain_path(exchange.path), {}, {}, None)


def _without_length(headers: list[Header]) -> list[Header]:
    return [header for header in headers if header[0] != b"content-length"]


def _unread(scope: Message, receive: Receive, send: Send) -> Exchange:
    """Return an exchange for a request whose URL cannot be read."""
    return Exchange({**scope, "raw_path": b"/", "query_string": b""}, receive, send, 10.0)


def _log(exchange: Exchange, scope: Message, seconds: float) -> None:
    """Log a request: no parameters, headers or bodies, as these may hold secrets."""
    now = time.time()
    entry = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z",
        "client": (scope.get("client") or ("", 0))[0],
        "method": exchange.method,
        "path": exchange.path,
        "status": exchange.status,
        "bytes": exchange.sent,
        "ms": round(seconds * 1000, 3),
        "kind": exchange.kind,
    }
    access.info("%s", json.dumps(entry))
