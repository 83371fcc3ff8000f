"""A small HTTP server that answers enough like a search engine for its clients, and records requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Any]

DOCUMENT = {"title": "Ünï\u2028códe", "ndd": {"sketch": [1, 2], "recipe": "mine"}, "ndd_keys": [3], "price": 0.1}
HIT = {"_index": "idx", "_id": "1", "_score": 1.0, "_source": DOCUMENT}
NO_HITS: dict[str, Any] = {
    "took": 1,
    "timed_out": False,
    "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
    "hits": {"total": {"value": 0, "relation": "eq"}, "max_score": None, "hits": []},
}
# Something of every API, so that a client's helpers find what they look for; what is left alone comes back like this.
ANYTHING: dict[str, Any] = {
    **{"acknowledged": True, "result": "updated", "found": True, "count": 3, "id": "7", "token": "t", "nodes": {}},
    **{
        "_index": "idx",
        "_id": "1",
        "_version": 2,
        "_seq_no": 9007199254740993,
        "_primary_term": 1,
        "_source": DOCUMENT,
    },
    **{"ndd": {"sketch": [5]}, "ndd_keys": None, "float": 1e-300, "items": [], "errors": False, "docs": []},
    "version": {"number": "9.0.0", "build_flavor": "default"},
}


@dataclass(frozen=True)
class Received:
    """A request as it came. target: the raw path and query. headers: in the order in which they came."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def header(self) -> dict[str, str]:
        """Headers by name, in lower case."""
        return {name.lower(): value for name, value in self.headers}


def usual(request: Received) -> Reply:
    """What a healthy server without documents says."""
    name = request.path.rpartition("/")[2]
    if name == "_bulk":
        return 200, {"took": 1, "errors": False, "items": list(_items(request.body))}
    if name == "_msearch":
        count = len(request.body.splitlines()) // 2
        return 200, {"took": 1, "responses": [{**NO_HITS, "status": 200}] * count}
    if name == "_search":
        scrolls = "scroll=" in request.target
        hits = {**NO_HITS["hits"], "hits": [HIT, {**HIT, "_id": "2"}]}
        return 200, {**NO_HITS, "hits": hits, "_scroll_id": "s"} if scrolls else NO_HITS
    if name == "scroll":
        return 200, {**NO_HITS, "_scroll_id": "s"}
    return 200, ANYTHING


def _items(body: bytes) -> Iterator[dict[str, Any]]:
    lines = iter(json.loads(line) for line in body.split(b"\n") if line)
    for line in lines:
        kind = next(iter(line))
        yield {kind: {"_index": "idx", "_id": "1", "status": 200, "result": "created"}}
        if kind != "delete":
            next(lines)


class Recorder:
    """received: since the last `take`. reply: what is answered."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[Received] = []
        self.reply: Callable[[Received], Reply] = usual

    def take(self) -> list[Received]:
        """What was received since the last time."""
        taken, self.received = self.received, []
        return taken


@contextmanager
def recorder() -> Iterator[Recorder]:
    """A server on a free port of the loopback address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.recorder = Recorder(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False
    recorder: Recorder


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer, or each takes 40 ms
    server: _Server

    def _handle(self) -> None:
        body = self._chunked() if "chunked" in self.headers.get("Transfer-Encoding", "") else None
        if body is None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Received(self.command, self.path, tuple(self.headers.items()), body)
        self.server.recorder.received.append(request)
        status, answer = self.server.recorder.reply(request)
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _chunked(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = _handle  # noqa: N815 - the names http.server looks for

    def log_message(self, *_: object) -> None:
        pass
