"""Hooks into the transport of opensearch-py 2 and 3.

OpenSearch(..., transport_class=Transport)                             # for libraries that make their own client
AsyncOpenSearch(..., transport_class=AsyncTransport.using(window=50))  # with settings of ndd_search.wrap
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from ndd_search.errors import importing
from ndd_search.search.clients.wrap import ClientCall, TransportKind, hooked
from ndd_search.search.rest.read_answer import Answer, CutSketches
from ndd_search.search.rest.read_request import Request

with importing("opensearchpy", "wrapping OpenSearch", "opensearch-py", "opensearch"):
    import opensearchpy

_TIMEOUTS = ("request_timeout", "timeout")
_DEFAULT_TIMEOUT = 10.0  # seconds, of a connection without a timeout of its own
_CLASSES = opensearchpy.Transport, getattr(opensearchpy, "AsyncTransport", opensearchpy.Transport)  # without aiohttp
_OF_THE_CLIENT = (*_TIMEOUTS, "ignore")  # parameters that the transport itself uses and does not send


class Call(ClientCall):
    """One call of perform_request(method, url, params, body, timeout, ignore, headers)."""

    family = "opensearch"
    kind = TransportKind("deserializer", tuple(one.perform_request for one in _CLASSES))

    def __init__(
        self, perform_request: Callable[..., Any], transport: Any, method: str, url: str, *arguments: Any, **others: Any
    ) -> None:
        self.transport, self._perform_request = transport, perform_request
        names = ("params", "body", "timeout", "ignore", "headers")
        self._named = {**dict(zip(names, arguments, strict=False)), **others}
        self._params: Mapping[str, Any] = self._named.get("params") or {}
        params = {name: _text(value) for name, value in self._params.items() if name not in _OF_THE_CLIENT}
        headers = {name.lower(): value for name, value in (self._named.get("headers") or {}).items()}
        self.request = Request(method, url, params, headers, self._named.get("body"))
        timeout = self._named.get("timeout") or self._params.get("request_timeout") or self._params.get("timeout")
        if not isinstance(timeout, int | float):  # as in the transport
            timeout = getattr(transport, "kwargs", {}).get("timeout", _DEFAULT_TIMEOUT)
        self.timeout = timeout

    def arguments(self, request: Request) -> tuple[tuple[str, str], dict[str, Any]]:
        """Return method and path, and the other arguments."""
        called, given = (request.method, request.path), self._params
        if request is self.request:
            return called, self._named
        kept = {name: value for name, value in given.items() if name in _OF_THE_CLIENT}
        same = {name: given[name] for name, value in request.params.items() if self.request.params.get(name) == value}
        timeout: dict[str, Any] = {}
        if request.timeout is not None:  # the transport uses one of them and sends the others to the server
            kept = {name: value for name, value in kept.items() if name not in _TIMEOUTS}
            timeout["timeout"] = request.timeout if self.timeout is None else min(request.timeout, self.timeout)
        body = "".join(map(self._line, request.body)) if request.parts else request.body
        return called, {**self._named, "params": {**request.params, **same, **kept}, "body": body, **timeout}

    def _line(self, value: Any) -> str:
        """Return a line of an `_msearch`. A serializer of the user's own may return bytes."""
        text = self.serialized(value)
        return f"{text.decode() if isinstance(text, bytes) else text}\n"

    def answer(self, response: Any, sketches_of: Callable[[Any], CutSketches]) -> Answer:
        """Return the answer. If the caller ignores a status, only the body reports the failure."""
        status = response.get("status") if isinstance(response, dict) and "error" in response else None
        return Answer(response, status if isinstance(status, int) else HTTPStatus.OK, cut=sketches_of(response))

    def response(self, answer: Answer) -> Any:
        return answer.body

    def serialized(self, body: Any) -> Any:
        return self.transport.serializer.dumps(body)


Transport, AsyncTransport = (hooked(one, "opensearch") for one in _CLASSES)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
