"""Hooks into the transport of opensearch-py 2 and 3.

OpenSearch(..., transport_class=Transport)                             # for libraries that make their own client
AsyncOpenSearch(..., transport_class=AsyncTransport.using(window=50))  # with settings of ndd_search.wrap
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from ndd_search.errors import importing
from ndd_search.search.clients.cutting_parser import TransportKind
from ndd_search.search.flow.driver import Driver, DriverMixin
from ndd_search.search.rest.answers import Answer, CutSketches
from ndd_search.search.rest.request import Request

with importing("opensearchpy", "wrapping OpenSearch", "opensearch-py", "opensearch"):
    import opensearchpy

_TIMEOUTS = ("request_timeout", "timeout")
_DEFAULT_TIMEOUT = 10.0  # seconds, of a connection without a timeout of its own
_CLASSES = opensearchpy.Transport, getattr(opensearchpy, "AsyncTransport", opensearchpy.Transport)
_KIND = TransportKind("deserializer", tuple(one.perform_request for one in _CLASSES))
_OF_THE_CLIENT = (*_TIMEOUTS, "ignore")  # parameters that the transport itself uses and does not send


class Transport(DriverMixin, opensearchpy.Transport):
    """opensearchpy.Transport whose searches are collapsed."""

    def perform_request(self, method: str, url: str, *arguments: Any, **others: Any) -> Any:
        """As in opensearchpy.Transport."""
        if self.ndd is None:
            return super().perform_request(method, url, *arguments, **others)
        return perform(self.ndd, super().perform_request, self, method, url, *arguments, **others)


if hasattr(opensearchpy, "AsyncTransport"):  # exists only if aiohttp is installed

    class AsyncTransport(DriverMixin, opensearchpy.AsyncTransport):
        """opensearchpy.AsyncTransport whose searches are collapsed."""

        async def perform_request(self, method: str, url: str, *arguments: Any, **others: Any) -> Any:
            """As in opensearchpy.AsyncTransport."""
            if self.ndd is None:
                return await super().perform_request(method, url, *arguments, **others)
            inner = super().perform_request
            return await perform_async(self.ndd, inner, self, method, url, *arguments, **others)


def perform(
    driver: Driver, inner: Callable[..., Any], transport: Any, method: str, url: str, *arguments: Any, **others: Any
) -> Any:
    """Handle one call of the client. inner: the transport's own perform_request."""
    driver.settings.serve(transport, "opensearch")
    named = _named(arguments, others)
    original = _request(method, url, named)

    def send(request: Request) -> Answer:
        send_to, sketches_of = _KIND.cutting(inner, transport, request)
        body = send_to(request.method, request.path, **_others(request, original, named, transport))
        return _answer(body, sketches_of(body))

    return driver.handle(original, send, partial(_is_writable, transport), _timeout(named, transport)).body


async def perform_async(
    driver: Driver,
    inner: Callable[..., Awaitable[Any]],
    transport: Any,
    method: str,
    url: str,
    *arguments: Any,
    **others: Any,
) -> Any:
    """Handle one call of the client. inner: the transport's own perform_request."""
    driver.settings.serve(transport, "opensearch")
    named = _named(arguments, others)
    original = _request(method, url, named)

    async def send(request: Request) -> Answer:
        send_to, sketches_of = _KIND.cutting(inner, transport, request)
        body = await send_to(request.method, request.path, **_others(request, original, named, transport))
        return _answer(body, sketches_of(body))

    writable, timeout = partial(_is_writable, transport), _timeout(named, transport)
    return (await driver.handle_async(original, send, writable, timeout)).body


def _named(arguments: tuple[Any, ...], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of perform_request by name."""
    names = ("params", "body", "timeout", "ignore", "headers")
    return {**dict(zip(names, arguments, strict=False)), **others}


def _request(method: str, url: str, named: Mapping[str, Any]) -> Request:
    given = named.get("params") or {}
    params = {name: _text(value) for name, value in given.items() if name not in _OF_THE_CLIENT}
    headers = {name.lower(): value for name, value in (named.get("headers") or {}).items()}
    return Request(method, url, params, headers, named.get("body"))


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _answer(body: Any, cut: CutSketches) -> Answer:
    """Return the answer. If the caller ignores a status, only the body reports the failure."""
    status = body.get("status") if isinstance(body, dict) and "error" in body else None
    return Answer(body, status if isinstance(status, int) else HTTPStatus.OK, cut=cut)


def _is_writable(transport: Any, body: Any) -> bool:
    """Return whether the client can serialize a body."""
    try:
        transport.serializer.dumps(body)
    except Exception:
        return False
    return True


def _timeout(named: Mapping[str, Any], transport: Any) -> float | None:
    """Return the caller's timeout of one request in seconds, resolved like in the transport."""
    params = named.get("params") or {}
    given = named.get("timeout") or params.get("request_timeout") or params.get("timeout")
    return (
        given if isinstance(given, int | float) else getattr(transport, "kwargs", {}).get("timeout", _DEFAULT_TIMEOUT)
    )


def _others(request: Request, original: Request, named: Mapping[str, Any], transport: Any) -> dict[str, Any]:
    if request is original:
        return dict(named)
    given = named.get("params") or {}
    kept = {name: value for name, value in given.items() if name in _OF_THE_CLIENT}
    same = {name: given[name] for name, value in request.params.items() if original.params.get(name) == value}
    timeout: dict[str, Any] = {}
    if request.timeout is not None:  # the transport uses one of them and sends the others to the server
        kept = {name: value for name, value in kept.items() if name not in _TIMEOUTS}
        own = _timeout(named, transport)
        timeout["timeout"] = request.timeout if own is None else min(request.timeout, own)
    body = "".join(_line(transport, line) for line in request.body) if request.parts else request.body
    return {**named, "params": {**request.params, **same, **kept}, "body": body, **timeout}


def _line(transport: Any, value: Any) -> str:
    """Return a line of an `_msearch`. A serializer of the user's own may return bytes."""
    text = transport.serializer.dumps(value)
    return f"{text.decode() if isinstance(text, bytes) else text}\n"
