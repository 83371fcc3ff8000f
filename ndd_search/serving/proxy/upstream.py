"""Sends requests to the nodes of the engine, over connections that are kept open."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from ndd_search.errors import NDDError, importing
from ndd_search.search.rest.point_in_time import Family
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request, media_type
from ndd_search.serving.proxy.http_exchange import Gone, Header, Refused
from ndd_search.serving.proxy.proxy_settings import Node, ProxySettings
from ndd_search.serving.proxy.wire_format import read_answer, sent_body, versioned_type

with importing("aiohttp", "the proxy or the search page", "aiohttp", "proxy"):
    import aiohttp
    from aiohttp import ClientError, ClientResponse
    from yarl import URL

__all__ = ["Body", "ClientError", "ClientResponse", "Unreachable", "Upstream", "read_all", "sent"]

Body = bytes | AsyncIterator[bytes] | None

_MOST_AWAY = 30.0  # seconds until a node that does not answer is tried again
_HEADER_BYTES, _HEADERS = 2**16, 2**14  # bytes of a header line of an answer, and lines: engines send many warnings
_SLICE = 2**18  # bytes of a body that are written at once
_WITHOUT_RIGHTS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
_KEEP_ALIVE = 30.0  # seconds that an idle connection is kept


class Unreachable(NDDError):
    """A request got no answer of the engine. args: (which node, the problem, what to do).

    status_code: of the answer to the caller.
    """

    def __init__(self, what: str, problem: str, remedy: str, status_code: int = HTTPStatus.BAD_GATEWAY) -> None:
        super().__init__(what, problem, remedy)
        self.status_code = int(status_code)


class _Broken(Exception):
    """The connection broke after the request was sent, so the engine may have carried it out."""


@dataclass
class _Health:
    """away: seconds that a node is left out for after its last failure. until: when that ends."""

    away: float = 0.0
    until: float = 0.0

    def failed(self) -> None:
        self.away = min(_MOST_AWAY, max(1.0, 2 * self.away))
        self.until = time.monotonic() + self.away

    def answered(self) -> None:
        self.away = self.until = 0.0


class _Response(ClientResponse):
    """An answer after which the connection is closed if its status is 400.

    It may say that the engine could not read the head of the request. Engines then answer nothing more on that
    connection, and the next request of anybody would wait for ever.
    """

    async def start(self, connection: aiohttp.connector.Connection) -> ClientResponse:
        """Read the head of the answer."""
        protocol = connection.protocol
        await super().start(connection)
        if self.status == HTTPStatus.BAD_REQUEST and protocol is not None:
            protocol.force_close()
            if self.content.is_eof():  # the connection is back among those that are kept
                protocol.close()
        return self


class Upstream:
    """The nodes of one cluster.

    hosts, kwargs and connection_class name cluster and credentials, as the transports of clients do (see
    middleware.origin): a wrapped client of the same cluster then shares the tokens of written indexes.
    """

    connection_class: type

    def __init__(self, settings: ProxySettings) -> None:
        self._settings, self._tls = settings, settings.tls()
        self._health = {node: _Health() for node in settings.nodes}
        self._turn = 0
        self._session: aiohttp.ClientSession | None = None
        self._family: Family | None = None
        self.hosts = [
            {"host": node.host, "port": node.port, "use_ssl": node.scheme == "https", "url_prefix": node.prefix}
            for node in settings.nodes
        ]
        self.kwargs: dict[str, Any] = {}

    async def request(
        self, method: str, target: str, headers: list[Header], body: Body, *, repeatable: bool, seconds: float | None
    ) -> ClientResponse:
        """Send a request to a node and return its answer, whose body has not been read.

        repeatable: whether the engine may carry it out twice. Such a request is sent again, to the next node, when the
        connection breaks. Any request goes to the next node if it was not sent, because there was no connection.
        seconds: None for the settings' own.
        Raises Unreachable if no node answers, and what the body raises.
        """
        named = [(name.decode(), value.decode("utf-8")) for name, value in headers]
        repeatable = repeatable and (body is None or isinstance(body, bytes))
        problem = Unreachable("the engine", "no node was tried", "send the request again")
        for node in self._order(repeatable):
            try:
                response = await self._send(node, method, target, named, body, seconds)
            except _Broken as error:
                self._health[node].failed()
                problem = _problem(node, f"it closed the connection before its answer ({error.__cause__})")
                if not repeatable:
                    raise problem from None
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                self._health[node].failed()
                problem = _problem(node, f"there is no connection ({_reason(error)})")
            except TimeoutError:
                status = HTTPStatus.REQUEST_TIMEOUT if seconds is not None else HTTPStatus.GATEWAY_TIMEOUT
                raise _problem(node, "it did not answer in time", status) from None
            except (aiohttp.ClientError, ValueError) as error:
                if isinstance(error.__cause__, Gone | Refused):  # the caller's body ended early
                    raise error.__cause__ from None
                raise _problem(node, f"its answer cannot be read ({_reason(error)})") from None
            else:
                self._health[node].answered()
                self._learn_family(response)
                return response
        raise problem

    def _learn_family(self, response: ClientResponse) -> None:
        """Elasticsearch names itself in every answer, OpenSearch in none."""
        if "x-elastic-product" in response.headers:
            self._family = "elasticsearch"
        elif self._family is None and response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            self._family = "opensearch"

    async def family(self, headers: Mapping[str, str]) -> Family:
        """Return which engine this is. It is asked, with the headers of a caller, if it has given no answer yet."""
        if self._family is None:
            await sent(self, Request("HEAD", "/", {}, headers, None, timeout=5.0))
        return self._family or "elasticsearch"

    async def _send(
        self, node: Node, method: str, target: str, headers: list[tuple[str, str]], body: Body, seconds: float | None
    ) -> ClientResponse:
        # The whole target goes into the path, so that nothing of it is parsed or encoded again.
        url = URL.build(scheme=node.scheme, host=node.host, port=node.port, path=node.prefix + target, encoded=True)
        connect, answer = self._settings.connect_seconds, self._settings.answer_seconds
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=connect, sock_read=answer)
        if isinstance(body, bytes) and len(body) > _SLICE:  # written at once, it would hold up other requests
            headers = [*(one for one in headers if one[0] != "content-length"), ("content-length", str(len(body)))]
            body = _slices(body)
        return await self._open().request(
            method, url, headers=headers, data=body or None, allow_redirects=False, timeout=timeout
        )

    def _order(self, repeatable: bool) -> Iterator[Node]:
        """Yield the nodes in turn, those that failed last; for a repeatable request one node twice."""
        nodes = self._settings.nodes
        self._turn = (self._turn + 1) % len(nodes)
        turned = nodes[self._turn :] + nodes[: self._turn]
        if len(nodes) > 1:
            now = time.monotonic()
            turned = tuple(sorted(turned, key=lambda node: self._health[node].until > now))
        yield from turned
        if repeatable and len(nodes) == 1:
            yield nodes[0]

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,  # requests in flight are limited where callers come in
                ssl=self._tls or True,
                keepalive_timeout=_KEEP_ALIVE,
                socket_factory=_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),  # no cookie of one caller goes with the request of another
                auto_decompress=False,
                skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
                trust_env=False,
                response_class=_Response,
                middlewares=(_once,),
                max_line_size=_HEADER_BYTES,
                max_field_size=_HEADER_BYTES,
                max_headers=_HEADERS,
            )
        return self._session

    async def answers(self, strict: bool = False) -> str:
        """Return "" if a node answers any request, also one without rights, else why not.

        strict: whether the status must be that of an engine's own address.
        """
        try:
            response = await self.request("HEAD", "/", [], None, repeatable=True, seconds=5.0)
        except Unreachable as error:
            return str(error)
        response.release()
        if strict and response.status >= HTTPStatus.BAD_REQUEST and response.status not in _WITHOUT_RIGHTS:
            where = self._settings.upstream[0]
            return f"{where} answers with status {response.status}: it is not the address of an engine"
        return ""

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


Upstream.connection_class = Upstream


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> ClientResponse:
    """Send a request once: the HTTP client itself would repeat a PUT or DELETE whose connection broke."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Broken from error


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _SLICE):
        yield body[start : start + _SLICE]


def _socket(address: Any) -> socket.socket:
    """Return a socket that notices when the node's machine has gone, as there may be no timeout."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    return made


def _problem(node: Node, problem: str, status: int = HTTPStatus.BAD_GATEWAY) -> Unreachable:
    return Unreachable(str(node), problem, "check that the engine runs and can be reached from here", status)


def _reason(error: BaseException) -> str:
    return str(getattr(error, "os_error", None) or error) or type(error).__name__


async def sent(upstream: Upstream, request: Request, kind: str = "") -> Answer:
    """Return the answer to a request that is not passed on as it came.

    kind: media type of the body of the caller's request, of which the engine gets one version with that of `accept`.
    """
    query = urlencode(request.params, quote_via=quote, safe=",*")
    headers = {"accept": "application/json", **request.headers}
    if request.body is not None:
        kind = kind if "json" in kind else versioned_type(headers["accept"]) or "application/json"
        headers["content-type"] = media_type(kind, request.path.endswith("_msearch"))
    response = await upstream.request(
        request.method,
        f"{request.path}?{query}" if query else request.path,
        [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
        sent_body(request),
        repeatable="scroll" not in query,  # a search changes nothing, unless it opens a scroll
        seconds=request.timeout,
    )
    return read_answer(response.status, list(response.raw_headers), await read_all(response), request.cut)


async def read_all(response: ClientResponse) -> bytes:
    """Read the body of an answer and free its connection. Raises Unreachable if it breaks off."""
    try:
        async with response:
            return await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        what = str(response.url.origin()), f"its answer broke off ({_reason(error)})", "send the request again"
        late = isinstance(error, TimeoutError)
        raise Unreachable(*what, HTTPStatus.REQUEST_TIMEOUT if late else HTTPStatus.BAD_GATEWAY) from None
