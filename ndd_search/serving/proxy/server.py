"""Runs the proxy as a server: sockets, workers, TLS, protection from slow clients, graceful stop."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from http import HTTPStatus
from tempfile import TemporaryDirectory
from typing import Any

from ndd_search.errors import importing
from ndd_search.serving.proxy.http_exchange import error_bytes
from ndd_search.serving.proxy.proxy_settings import ProxySettings, address_of
from ndd_search.serving.proxy.route_requests import Proxy

with importing("uvicorn", "the proxy or the search page", "uvicorn", "proxy"):
    from uvicorn import Config, Server
    from uvicorn.supervisors import Multiprocess

with importing("httptools", "the proxy or the search page", "httptools", "proxy"):
    from httptools import HttpParserUpgrade, HttpRequestParser
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_HEADER_BYTES = 2**16  # of a request line and all its headers
_WORKER_SECONDS = 60  # in which a worker has to start: with uvicorn's 5, a busy machine would start it again for ever
_KEEP_ALIVE = 75  # seconds: pools of clients keep idle connections open for about as long, and engines for ever


def is_loopback(text: str) -> bool:
    """Return whether only this machine can reach an address HOST:PORT."""
    host, _ = address_of(text)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class JoinedWrites:
    """A transport that writes together what is written in one turn of the event loop.

    Head and body of a small answer then take one system call and one packet, as those of an engine do, not two.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Write at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._write_parts)
        self._parts.append(data)

    def close(self) -> None:
        """Close the transport after what was written."""
        self._write_parts()
        self._transport.close()

    def _write_parts(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.writelines(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Parser:
    """Parses the requests of a connection, also the body of one that offers another protocol, as Java's client does.

    httptools ends such a request with its head; a second parser then reads the body, by what the head says of it.
    """

    def __init__(self, protocol: Guarded) -> None:
        self._protocol, self._parser = protocol, self._new(protocol)

    @staticmethod
    def _new(protocol: Guarded) -> HttpRequestParser:
        parser = HttpRequestParser(protocol)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does: no fault to tell
        return parser

    def feed_data(self, data: bytes) -> None:
        """Parse a part of what the caller sends."""
        while not self._protocol.has_failed:
            try:
                return self._parser.feed_data(data)
            except HttpParserUpgrade as error:
                data = data[error.args[0] :]
                if self._protocol.framing:
                    self._parser = self._new(self._protocol)
                    self._parser.feed_data(b"POST / HTTP/1.1\r\n%s: %s\r\n\r\n" % self._protocol.framing[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)


class Guarded(HttpToolsProtocol):
    """The HTTP protocol of uvicorn, with limits for the head of a request and for a caller who reads nothing."""

    def __init__(self, *arguments: Any, header_seconds: float, idle_seconds: float, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self._header_seconds, self._idle_seconds = header_seconds, idle_seconds
        self._deadline: asyncio.TimerHandle | None = None
        self._head, self._in_head = 0, True
        self.framing: list[tuple[bytes, bytes]] = []  # of the body that follows the head of an upgrade
        self.has_failed = False  # whether what comes can be read no longer
        self.parser = Parser(self)  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time for the first head."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        made = transport.get_extra_info("socket")
        if made is not None and hasattr(socket, "TCP_USER_TIMEOUT") and made.family != socket.AF_UNIX:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self._idle_seconds * 1000))
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._stop()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the time for the next head."""
        if not self.framing:
            super().on_message_begin()
            self._head, self._in_head = 0, True
            self._start()

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the head."""
        self._count(len(url))
        if b"#" in url:
            raise ValueError("a fragment, which some servers read as a part of the path, and others leave out")
        if self._in_head:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of the head. Trailers are left out: the end of a body must not change who asks."""
        self._count(len(name) + len(value))
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the time."""
        if self._in_head:
            self._stop()
            self._in_head = False
            super().on_headers_complete()
            sizes = (b"content-length", b"transfer-encoding")
            self.framing = [one for one in self.headers if one[0] in sizes] if self.parser.should_upgrade() else []

    def on_message_complete(self) -> None:
        """End a request, unless its body follows."""
        if self.framing and self.parser.should_upgrade():
            return
        self.framing = []
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be read, or close the connection after the answer to the one before it."""
        self.has_failed = True
        if self.cycle is not None and not (self.cycle.more_body or self.cycle.response_complete):
            self.cycle.keep_alive = False
            self._stop()
            return
        reason = "this is no valid HTTP/1.1: look at its method, URL (ASCII, without #) and headers (at most 64 kB)"
        body = error_bytes(HTTPStatus.BAD_REQUEST, reason)
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + body)
        self.transport.close()

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > _MOST_HEADER_BYTES:
            raise ValueError("the head of the request is too long")  # the parser then refuses the request

    def _start(self) -> None:
        self._stop()
        self._deadline = self.loop.call_later(self._header_seconds, self._late)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def configuration(settings: ProxySettings, application: Any = None) -> Config:
    """Return the configuration of the server. Each worker makes a proxy of its own, unless an application is given."""
    seconds = {"header_seconds": settings.header_seconds, "idle_seconds": settings.idle_seconds}
    protocol: Any = partial(Guarded, **seconds)
    return Config(
        application or partial(_worker, settings, sys.getrecursionlimit()),
        factory=application is None,
        http=protocol,
        ws="none",
        lifespan="on",
        workers=settings.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_worker_healthcheck=_WORKER_SECONDS,
        timeout_graceful_shutdown=settings.stop_seconds,
        ssl_certfile=settings.certificate or None,
        ssl_keyfile=settings.key or None,
    )


def _worker(settings: ProxySettings, levels: int) -> Proxy:
    """Return the proxy of one process, which is a new one if there are several workers.

    levels: the recursion limit of the process that starts it. Python 3.11 reads JSON up to that depth.
    """
    sys.setrecursionlimit(levels)
    log_to_output()
    return Proxy(settings)


def listening(settings: ProxySettings) -> list[socket.socket]:
    """Return the sockets for callers and for management. Raises OSError with the address that cannot be used."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(_bound(given)) for given in (settings.listen, settings.manage) if given]
        opened.pop_all()  # all are open
    return sockets


def serve(settings: ProxySettings, sockets: list[socket.socket]) -> None:
    """Serve until a signal to stop; requests in flight then end first."""
    with suppress(ImportError, OSError, ValueError):  # each request takes two files, and shells allow 1,024
        import resource  # imported here: Windows has none

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = configuration(settings)
    if settings.workers > 1:
        with TemporaryDirectory(prefix="ndd-search-metrics-") as shared:
            os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", shared)
            Multiprocess(config, sockets=sockets).run()
    else:
        Server(config).run(sockets=sockets)


def serve_application(application: Any, listen: str, announce: Callable[[str], None]) -> None:
    """Serve another ASGI application in this process until a signal to stop. announce: gets the address."""
    settings = ProxySettings(listen=listen)
    sockets = listening(settings)
    announce(url_of(settings, sockets[0]))
    log_to_output()
    Server(configuration(settings, application)).run(sockets=sockets)


def url_of(settings: ProxySettings, listening: socket.socket) -> str:
    """Return the address at which callers reach a socket."""
    host, port = listening.getsockname()[:2]
    return f"{'https' if settings.certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def log_to_output() -> None:
    """Log warnings to standard error."""
    for name in ("ndd_search", "uvicorn.error"):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def _bound(given: str) -> socket.socket:
    host, port = address_of(given)
    try:
        # A caller that comes before the server is ready waits.
        made = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), given) from None
    made.set_inheritable(True)
    return made
