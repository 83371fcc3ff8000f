"""The proxy as a server in a thread, a server of raw bytes behind it, and a caller who sends raw bytes."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from uvicorn import Server

from ndd_search.serving.proxy import Proxy
from ndd_search.serving.proxy.proxy_settings import ProxySettings
from ndd_search.serving.proxy.server import configuration, listening
from tests.engines.launch import free_ports

SECONDS = 30.0  # that a test waits for anything


@dataclass(frozen=True)
class Served:
    """A running proxy. url: for callers; manage: for management."""

    url: str
    manage: str
    proxy: Proxy

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)


@contextmanager
def serving(*upstream: str, **proxy: Any) -> Iterator[Served]:
    """Serve a proxy on a free port until the block ends."""
    settings, sockets = _bound(ProxySettings.of(upstream, {"listen": "127.0.0.1:0", **proxy}))
    made, config = Proxy(settings), configuration(settings)
    config.app, config.factory = made, False
    running = Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": sockets}, daemon=True)
    scheme = "https" if settings.certificate else "http"
    served = Served(f"{scheme}://127.0.0.1:{sockets[0].getsockname()[1]}", f"http://{settings.manage}", made)
    thread.start()
    wait_until(lambda: running.started)
    try:
        yield served
    finally:
        running.should_exit = True
        thread.join(SECONDS)
        assert not thread.is_alive(), "the server did not stop"


def _bound(settings: ProxySettings) -> tuple[ProxySettings, list[socket.socket]]:
    """Settings with a free port for management, and their sockets."""
    for port in free_ports(20):  # a connection of another process may take one before it is bound here
        settings = replace(settings, manage=f"127.0.0.1:{port}")
        with suppress(OSError):
            return settings, listening(settings)
    raise AssertionError("no port is free")


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until something holds; fail if it never does."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


@dataclass(frozen=True)
class Heard:
    """A request as it came to the engine. headers: in their order, names in lower case."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        return ",".join(value for given, value in self.headers if given == name)


class Engine:
    """A server that answers with the bytes that a test gives. heard: what it was sent."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.heard: list[Heard] = []
        self.reply: Callable[[Heard], bytes] = lambda heard: response(b"{}")
        self.stream: Callable[[Heard, BaseHTTPRequestHandler], object] | None = None  # instead of `reply`

    @property
    def wrote(self) -> Heard:
        """The last request but those that read: the proxy asks whether the engine answers, and reads mappings."""
        return [one for one in self.heard if one.method not in ("GET", "HEAD")][-1]


def response(body: bytes, *headers: tuple[str, str], status: int = 200, chunked: bool = False) -> bytes:
    """The bytes of an answer."""
    named = [*headers]
    if not any(name.lower() == "content-type" for name, _ in headers):
        named.append(("content-type", "application/json"))
    named.append(("transfer-encoding", "chunked") if chunked else ("content-length", str(len(body))))
    head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in named) + "\r\n"
    sent = (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n" if chunked else body
    return head.encode("latin-1") + sent


@contextmanager
def engine_of_bytes(port: int = 0) -> Iterator[Engine]:
    """Such a server, on a free port or the given one. At its end it cuts all connections, as a killed one does."""
    server = _Server(("127.0.0.1", port), _Handler)
    server.engine = Engine(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        for connection in list(server.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads, block_on_close, request_queue_size = True, False, 64
    engine: Engine

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connections: set[socket.socket] = set()

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        try:
            super().finish_request(request, client_address)
        finally:
            self.connections.discard(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Server

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (OSError, ValueError):  # the proxy has left
            self.close_connection = True

    def _handle(self) -> None:
        target = self.raw_requestline.split()[1].decode("latin-1")  # self.path has one slash of several
        body = b""
        headers = tuple((name.lower(), value) for name, value in self.headers.items())
        heard = Heard(self.command, target, headers, b"")
        if (stream := self.server.engine.stream) is not None:
            self.server.engine.heard.append(heard)
            stream(heard, self)
            return
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if len(body) < length:  # an incomplete request is not carried out
                return
        heard = Heard(self.command, target, headers, body)
        self.server.engine.heard.append(heard)
        answer = self.server.engine.reply(heard)
        head, _, rest = answer.partition(b"\r\n\r\n")
        self.wfile.write(head + b"\r\n\r\n" + (b"" if self.command == "HEAD" else rest))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True)
class Got:
    """An answer. headers: names in lower case, sorted, without those of the connection."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return ",".join(value for given, value in self.headers if given == name)


def ask(
    url: str,
    method: str,
    target: str,
    body: bytes | None = None,
    headers: dict[str, str] | list[tuple[str, str]] | None = None,
    chunked: bool = False,
) -> Got:
    """Send one request exactly as given, and read the answer."""
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=SECONDS)) as connection:
        connection.putrequest(method, target, skip_accept_encoding=True)
        given = list(headers.items()) if isinstance(headers, dict) else headers or []
        for name, value in given:
            connection.putheader(name, value)
        if chunked:
            connection.putheader("transfer-encoding", "chunked")
        elif body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders()
        if body is not None:
            connection.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked and body else body)
            if chunked and not body:
                connection.send(b"0\r\n\r\n")
        answer = connection.getresponse()
        kept = [(name.lower(), value) for name, value in answer.getheaders()]
        left_out = ("transfer-encoding", "connection", "keep-alive")
        return Got(answer.status, sorted(one for one in kept if one[0] not in left_out), answer.read())


def say(address: tuple[str, int], sent: bytes, seconds: float = SECONDS) -> bytes:
    """Send bytes on a connection of its own, and return everything that comes until it is closed."""
    with socket.create_connection(address, timeout=seconds) as connection:
        connection.sendall(sent)
        heard = b""
        try:
            while part := connection.recv(65536):
                heard += part
        except (TimeoutError, ConnectionResetError):
            pass
        return heard
