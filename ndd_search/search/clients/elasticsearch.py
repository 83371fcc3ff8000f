"""Hooks into the transport of elasticsearch-py 8 and 9.

Elasticsearch(..., transport_class=Transport)                             # for libraries that make their own client
AsyncElasticsearch(..., transport_class=AsyncTransport.using(window=50))  # with settings of ndd_search.wrap
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ndd_search.errors import importing
from ndd_search.search.clients.wrap import ClientCall, TransportKind, hooked
from ndd_search.search.rest.read_answer import Answer, CutSketches
from ndd_search.search.rest.read_request import Request, changed_target, media_type, params_of

with importing("elastic_transport", "wrapping Elasticsearch", "elasticsearch", "elasticsearch"):
    import elastic_transport
    from elastic_transport import ApiResponseMeta, HttpHeaders, TransportApiResponse
    from elastic_transport.client_utils import DEFAULT


class Call(ClientCall):
    """One call of perform_request(method, target, **others)."""

    family = "elasticsearch"
    kind = TransportKind(
        "serializers", (elastic_transport.Transport.perform_request, elastic_transport.AsyncTransport.perform_request)
    )

    def __init__(
        self, perform_request: Callable[..., Any], transport: Any, method: str, target: str, **others: Any
    ) -> None:
        self.transport, self._perform_request = transport, perform_request
        self._target, self._others = target, others
        path, _, query = target.partition("?")  # urlsplit would read "//index/_search" as a host
        given = others.get("headers")
        headers = {name.lower(): value for name, value in given.items()} if isinstance(given, Mapping) else {}
        self.request = Request(method, path, params_of(query) if query else {}, headers, others.get("body"))
        self.timeout = _timeout(transport, others)

    def arguments(self, request: Request) -> tuple[tuple[str, str], dict[str, Any]]:
        """Return method and target, and the other arguments."""
        called = request.method, changed_target(request, self.request, self._target)
        if request is self.request:
            return called, self._others
        changed: dict[str, Any] = {"body": request.body}
        if request.timeout is not None:
            least = request.timeout if self.timeout is None else min(self.timeout, request.timeout)
            changed.update(request_timeout=least, max_retries=0)  # each retry would take the timeout again
        if self.request.body is None or request.parts:  # the server requires the compatibility version of `accept`
            kind = request.headers.get("accept", "application/json")
            kind = media_type(kind, lines=bool(request.parts))
            changed["headers"] = HttpHeaders({**request.headers, "content-type": kind})  # as the client does
        elif request.headers != self.request.headers:  # the mapping that is put before a bulk is no lines
            changed["headers"] = HttpHeaders(request.headers)
        return called, {**self._others, **changed}

    def answer(self, response: TransportApiResponse, sketches_of: Callable[[Any], CutSketches]) -> Answer:
        meta, body = response
        return Answer(body, meta.status, response, sketches_of(body))

    def response(self, answer: Answer) -> TransportApiResponse:
        """Return the engine's own response, or our body with the meta data of the first trip."""
        raw = answer.raw
        if raw is not None:
            return raw if raw[1] is answer.body else TransportApiResponse(raw[0], answer.body)
        headers = HttpHeaders({"content-type": "application/json", "x-elastic-product": "Elasticsearch"})
        node = self.transport.node_pool.all()[0].config
        return TransportApiResponse(ApiResponseMeta(200, "1.1", headers, 0.0, node), answer.body)

    def serialized(self, body: Any) -> Any:
        """Return a body in the media type that the caller names."""
        headers = self._others.get("headers", DEFAULT)
        kind = HttpHeaders({} if headers is DEFAULT else headers).get("content-type")
        return self.transport.serializers.dumps(body, mimetype=kind)


Transport = hooked(elastic_transport.Transport, "elasticsearch")
AsyncTransport = hooked(elastic_transport.AsyncTransport, "elasticsearch")


def _timeout(transport: elastic_transport.Transport, others: Mapping[str, Any]) -> float | None:
    """Return the caller's timeout of one request in seconds, None for no limit."""
    given: Any = others.get("request_timeout", DEFAULT)
    if given is DEFAULT:
        pool = getattr(transport, "node_pool", None)  # a class of the caller's own may have none
        given = None if pool is None else pool.all()[0].config.request_timeout
    seconds: float | None = given
    return seconds
