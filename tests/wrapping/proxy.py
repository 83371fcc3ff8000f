"""A small HTTP proxy in front of a real server: it records requests, and injects faults on demand."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

from ndd_search.search.flow.choose_frequency_table import TABLES

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


@dataclass(frozen=True)
class Passed:
    """A request as it came over the wire. target: path and query. headers: names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Harm:
    """What becomes of a request: seconds of delay, then its answer, another answer, half of one, or a cut connection.

    before: called before the request is passed on.
    """

    delay: float = 0.0
    status: int | None = None
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    half: bool = False
    cut: bool = False
    before: Callable[[], object] = lambda: None


class Proxy:
    """Where clients connect to. harm(number, request): called for each request, the first is number 0.

    rewrite: what the server gets instead of a request that is not harmed.
    """

    def __init__(self, url: str, upstream: str) -> None:
        self.url, self._upstream = url, urlsplit(upstream).netloc
        self.passed: list[Passed] = []
        self.harm: Callable[[int, Passed], Harm | None] = lambda number, request: None
        self.rewrite: Callable[[Passed], Passed] = lambda request: request
        self._lock = threading.Lock()

    def reset(self, harm: Callable[[int, Passed], Harm | None] = lambda number, request: None) -> None:
        """Clear the record and set other faults."""
        self.passed, self.harm = [], harm

    @property
    def searches(self) -> list[Passed]:
        """The searches that have passed, without those for the table that clients share."""
        ends = ("/_search", "/_msearch")
        return [one for one in self.passed if one.target.partition("?")[0].endswith(ends) and one not in self.lookups]

    @property
    def lookups(self) -> list[Passed]:
        """The searches that have passed for the table that clients share."""
        return [one for one in self.passed if one.target.startswith(f"/{TABLES}") and "_search" in one.target]

    def forward(self, request: Passed) -> tuple[int, dict[str, str], bytes, bool] | None:
        """The answer to a request, and whether to send only half of its body; None when the connection is to be cut."""
        with self._lock:
            number = len(self.passed)
            self.passed.append(request)
        harm = self.harm(number, request) or Harm()
        time.sleep(harm.delay)
        harm.before()
        if harm.cut:
            return None
        if harm.status is not None:
            usual = {"content-type": "application/json", "x-elastic-product": "Elasticsearch"}
            return harm.status, {**usual, **harm.headers}, harm.body, harm.half
        request = self.rewrite(request)
        connection = http.client.HTTPConnection(self._upstream, timeout=60)
        try:
            headers = {name: value for name, value in request.headers.items() if name not in _HOP_BY_HOP}
            connection.request(request.method, request.target, request.body or None, headers)
            answer = connection.getresponse()
            body = answer.read()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
            return answer.status, kept, body, harm.half
        finally:
            connection.close()


@contextmanager
def proxy_to(upstream: str) -> Iterator[Proxy]:
    """A proxy on a free port of the loopback address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads, server.block_on_close = True, False
    proxy = _Handler.proxies[server.server_port] = Proxy(f"http://127.0.0.1:{server.server_port}", upstream)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        del _Handler.proxies[server.server_port]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxies: ClassVar[dict[int, Proxy]] = {}

    def _handle(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Passed(self.command, self.path, headers, self.rfile.read(size))
        answer = self.proxies[self.server.server_address[1]].forward(request)  # type: ignore[index]
        if answer is None:
            self.close_connection = True
            return
        status, headers, body, half = answer
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(OSError):  # the caller's timeout is over
                self.wfile.write(body[: len(body) // 2] if half else body)
        self.close_connection = self.close_connection or half

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _handle  # noqa: N815 - the names http.server looks for

    def log_message(self, *_: object) -> None:
        pass
