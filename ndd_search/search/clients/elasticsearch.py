"""Hooks into the transport of elasticsearch-py 8 and 9.

Elasticsearch(..., transport_class=Transport)                             # for libraries that make their own client
AsyncElasticsearch(..., transport_class=AsyncTransport.using(window=50))  # with settings of ndd_search.wrap
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from ndd_search.errors import importing
from ndd_search.search.clients.cutting_parser import TransportKind
from ndd_search.search.flow.driver import Driver, DriverMixin
from ndd_search.search.rest.answers import Answer, CutSketches
from ndd_search.search.rest.request import Request, changed_target, params_of

with importing("elastic_transport", "wrapping Elasticsearch", "elasticsearch", "elasticsearch"):
    import elastic_transport
    from elastic_transport import ApiResponseMeta, HttpHeaders, TransportApiResponse
    from elastic_transport.client_utils import DEFAULT

_KIND = TransportKind(
    "serializers", (elastic_transport.Transport.perform_request, elastic_transport.AsyncTransport.perform_request)
)


class Transport(DriverMixin, elastic_transport.Transport):
    """elastic_transport.Transport whose searches are collapsed."""

    def perform_request(self, method: str, target: str, **others: Any) -> TransportApiResponse:
        """As in elastic_transport.Transport."""
        if self.ndd is None:
            return super().perform_request(method, target, **others)
        return perform(self.ndd, super().perform_request, self, method, target, **others)


class AsyncTransport(DriverMixin, elastic_transport.AsyncTransport):
    """elastic_transport.AsyncTransport whose searches are collapsed."""

    async def perform_request(self, method: str, target: str, **others: Any) -> TransportApiResponse:  # type: ignore[override]
        """As in elastic_transport.AsyncTransport."""
        if self.ndd is None:
            return await super().perform_request(method, target, **others)
        return await perform_async(self.ndd, super().perform_request, self, method, target, **others)


def perform(
    driver: Driver,
    inner: Callable[..., TransportApiResponse],
    transport: elastic_transport.Transport,
    method: str,
    target: str,
    **others: Any,
) -> TransportApiResponse:
    """Handle one call of the client. inner: the transport's own perform_request."""
    driver.settings.serve(transport, "elasticsearch")
    original = _request(method, target, **others)

    writable, timeout = partial(_is_writable, transport, others), _timeout(transport, others)

    def send(request: Request) -> Answer:
        called = request.method, changed_target(request, original, target)
        send_to, sketches_of = _KIND.cutting(inner, transport, request)
        return _answer(send_to(*called, **_others(request, original, others, timeout)), sketches_of)

    return _client_response(driver.handle(original, send, writable, timeout), transport)


async def perform_async(
    driver: Driver,
    inner: Callable[..., Awaitable[TransportApiResponse]],
    transport: elastic_transport.AsyncTransport,
    method: str,
    target: str,
    **others: Any,
) -> TransportApiResponse:
    """Handle one call of the client. inner: the transport's own perform_request."""
    driver.settings.serve(transport, "elasticsearch")
    original = _request(method, target, **others)

    writable, timeout = partial(_is_writable, transport, others), _timeout(transport, others)

    async def send(request: Request) -> Answer:
        called = request.method, changed_target(request, original, target)
        send_to, sketches_of = _KIND.cutting(inner, transport, request)
        return _answer(await send_to(*called, **_others(request, original, others, timeout)), sketches_of)

    return _client_response(await driver.handle_async(original, send, writable, timeout), transport)


def _request(method: str, target: str, *, body: Any = None, headers: Any = None, **_others: Any) -> Request:
    path, _, query = target.partition("?")  # urlsplit would read "//index/_search" as a host
    named = {name.lower(): value for name, value in headers.items()} if isinstance(headers, Mapping) else {}
    return Request(method, path, params_of(query) if query else {}, named, body)


def _is_writable(transport: elastic_transport.Transport, others: Mapping[str, Any], body: Any) -> bool:
    """Return whether the client can serialize a body."""
    headers = others.get("headers", DEFAULT)
    kind = HttpHeaders({} if headers is DEFAULT else headers).get("content-type")
    try:
        transport.serializers.dumps(body, mimetype=kind)
    except Exception:
        return False
    return True


def _timeout(transport: elastic_transport.Transport, others: Mapping[str, Any]) -> float | None:
    """Return the caller's timeout of one request in seconds, None for no limit."""
    given: Any = others.get("request_timeout", DEFAULT)
    if given is DEFAULT:
        pool = getattr(transport, "node_pool", None)  # a class of the caller's own may have none
        given = None if pool is None else pool.all()[0].config.request_timeout
    seconds: float | None = given
    return seconds


def _others(request: Request, original: Request, others: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:
    """Return the arguments of perform_request. timeout: the caller's own, in seconds."""
    if request is original:
        return dict(others)
    changed: dict[str, Any] = {"body": request.body}
    if request.timeout is not None:
        least = request.timeout if timeout is None else min(timeout, request.timeout)
        changed.update(request_timeout=least, max_retries=0)  # each retry would take the timeout again
    if original.body is None or request.parts:  # the server requires the compatibility version of `accept`
        kind = request.headers.get("accept", "application/json")
        kind = kind.replace("json", "x-ndjson", 1) if request.parts else kind
        changed["headers"] = HttpHeaders({**request.headers, "content-type": kind})  # the type that the client gives
    return {**others, **changed}


def _answer(response: TransportApiResponse, sketches_of: Callable[[Any], CutSketches]) -> Answer:
    meta, body = response
    return Answer(body, meta.status, response, sketches_of(body))


def _client_response(answer: Answer, transport: elastic_transport.Transport) -> TransportApiResponse:
    """Return a response of the client's type: the engine's own, or our body with the meta data of the first trip."""
    raw = answer.raw
    if raw is not None:
        return raw if raw[1] is answer.body else TransportApiResponse(raw[0], answer.body)
    headers = HttpHeaders({"content-type": "application/json", "x-elastic-product": "Elasticsearch"})
    node = transport.node_pool.all()[0].config
    return TransportApiResponse(ApiResponseMeta(200, "1.1", headers, 0.0, node), answer.body)
