"""Nodes that are down, slow, or break off: what is sent again and what is not; TLS to the engine and from callers."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ndd_search.serving.proxy import app
from tests.conftest import missing
from tests.engines.jars import RELEASES, Unavailable
from tests.engines.launch import Server, free_ports
from tests.proxy.serving import SECONDS, Engine, Heard, ask, engine_of_bytes, serving, wait_until

JSON = {"content-type": "application/json"}


def cut(heard: Heard, handler: BaseHTTPRequestHandler) -> None:
    """Close the connection instead of an answer."""
    handler.close_connection = True


@pytest.fixture
def second() -> Iterator[Engine]:
    with engine_of_bytes() as made:
        yield made


def test_requests_are_spread_over_the_nodes(behind: Engine, second: Engine) -> None:
    with serving(behind.url, second.url) as served:
        for _ in range(6):
            ask(served.url, "GET", "/_cat/health")
    assert (len(behind.heard), len(second.heard)) == (3, 3)


def test_what_was_not_sent_goes_to_the_next_node(behind: Engine) -> None:
    """A node that is down costs no request, not even a bulk."""
    (port,) = free_ports(1)
    with serving(f"http://127.0.0.1:{port}", behind.url) as served:
        for number in range(8):
            body = b"x" * (10 if number % 2 else 200_000)
            assert ask(served.url, "POST", "/_bulk", body, chunked=number > 3).status == 200
            assert behind.heard[-1].body == body
        assert len(behind.heard) == 8


@pytest.mark.parametrize(
    ("method", "target", "body", "times"),
    [
        ("GET", "/_cat/health", None, 2),
        ("HEAD", "/news", None, 2),
        ("GET", "/news/_search?q=a", None, 2),
        ("POST", "/news/_search", b'{"query":{"match":{"a":"b"}}}', 2),
        ("POST", "/_bulk", b"{}\n", 1),
        ("PUT", "/news/_doc/1", b"{}", 1),
        ("DELETE", "/news/_doc/1", None, 1),
        ("POST", "/news/_doc", b"{}", 1),
        ("POST", "/_search/scroll", b'{"scroll_id":"7"}', 1),
        ("GET", "/_search/scroll?scroll_id=7", None, 1),
        ("GET", "/news/_search?scroll=1m&q=a", None, 1),
    ],
)
def test_what_the_engine_may_have_done_is_never_sent_again(
    behind: Engine, method: str, target: str, body: bytes | None, times: int
) -> None:
    behind.stream = cut
    with serving(behind.url) as served:
        got = ask(served.url, method, target, body, JSON)
        assert got.status == 502
        assert len(behind.heard) == times
        if method != "HEAD":
            reason = json.loads(got.body)["error"]["reason"]
            assert reason.startswith(f"{behind.url}: it closed the connection before its answer")


def test_a_write_of_a_node_that_breaks_off_reaches_no_other_node(behind: Engine, second: Engine) -> None:
    behind.stream = second.stream = cut
    with serving(behind.url, second.url) as served:
        assert ask(served.url, "POST", "/_bulk", b"{}\n", JSON).status == 502
    assert len(behind.heard) + len(second.heard) == 1


def test_a_read_of_a_node_that_breaks_off_is_answered_by_the_next(behind: Engine, second: Engine) -> None:
    behind.stream = cut
    with serving(behind.url, second.url) as served:
        for _ in range(4):
            assert ask(served.url, "GET", "/_cat/health").status == 200
    assert len(behind.heard) == 1  # then it is left out for a while


def test_an_answer_that_breaks_off_is_an_error_or_breaks_off_for_the_caller(behind: Engine) -> None:
    arrived = threading.Event()

    def half(heard: Heard, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n")
        if "half" in heard.target:
            handler.wfile.write(b"half")
            handler.wfile.flush()
            arrived.wait(SECONDS)

    behind.stream = half
    with serving(behind.url) as served:
        got = ask(served.url, "GET", "/_cat/health")
        assert (got.status, b"broke off" in got.body) == (502, True)
        with closing(http.client.HTTPConnection(*served.address, timeout=SECONDS)) as connection:
            connection.request("GET", "/_cat/half")
            answer = connection.getresponse()
            arrived.set()
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                answer.read()
        assert answer.status == 200


def test_an_engine_that_is_too_slow_is_a_timeout(behind: Engine) -> None:
    leave = threading.Event()
    behind.stream = lambda heard, handler: leave.wait(SECONDS) and None
    with serving(behind.url, answer_seconds=0.3) as served:
        for method, target in (("GET", "/_cat/health"), ("POST", "/_bulk"), ("GET", "/news/_search?q=a")):
            got = ask(served.url, method, target)
            assert (got.status, b"did not answer in time" in got.body) == (504, True)
        assert ask(served.manage, "GET", "/_ndd/health").status == 200
        leave.set()


def test_readiness_says_which_node_does_not_answer() -> None:
    (port,) = free_ports(1)
    with serving(f"http://127.0.0.1:{port}") as served:
        got = ask(served.manage, "GET", "/_ndd/ready")
        assert (got.status, json.loads(got.body)["status"]) == (503, "unavailable")
        assert f"http://127.0.0.1:{port}: there is no connection" in json.loads(got.body)["reason"]


def test_an_engine_that_is_away_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ndd_search.serving.proxy.route_requests._QUIET", 1e9)
    (port,) = free_ports(1)
    with serving(f"http://127.0.0.1:{port}") as served:
        assert {ask(served.url, "GET", f"/_cat/{number}").status for number in range(20)} == {502}
    assert caplog.text.count("there is no connection") == 1


def test_a_stopped_server_lets_requests_end(behind: Engine) -> None:
    leave, heard = threading.Event(), threading.Event()

    def stream(given: Heard, handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(3)
        heard.set()
        leave.wait(SECONDS)
        handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    behind.stream = stream
    got: list[Any] = []
    with serving(behind.url) as served:
        url = served.url
        caller = threading.Thread(target=lambda: got.append(ask(url, "POST", "/_bulk", b"{}\n")))
        caller.start()
        heard.wait(SECONDS)
        threading.Timer(0.3, leave.set).start()
    caller.join()
    assert (got[0].body, got[0].status) == (b"ok", 200)
    with pytest.raises(ConnectionError):
        ask(url, "GET", "/")


@contextmanager
def opensearch(port: int) -> Iterator[str]:
    """A real server of this test's own."""
    if os.environ.get("NDD_TEST_EXAMPLES") != "large":
        pytest.skip("two starts of a server take long: NDD_TEST_EXAMPLES=large")
    try:
        server = Server(RELEASES["opensearch3"], **{"http.port": str(port)})
    except Unavailable as reason:
        pytest.skip(f"opensearch3 {reason}")
    with server:
        server.wait()
        yield server.url


@contextmanager
def small(port: int) -> Iterator[str]:
    with engine_of_bytes(port) as made:
        yield made.url


@pytest.mark.parametrize("start", [small, opensearch])
def test_an_engine_that_is_killed_and_restarted_fails_only_what_it_would_have_refused(start: Any) -> None:
    """The engine is killed while requests come in, and started again at its port."""
    (port,) = free_ports(1)
    statuses: list[int] = []
    stop = threading.Event()

    def call(url: str) -> None:
        while not stop.is_set():
            for target in ("/_cat/health?h=status", "/_search?q=a"):
                statuses.append(ask(url, "GET", target).status)
            stop.wait(0.01)  # leaves the processors to the engine, which starts

    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        served = stack.enter_context(serving(first.enter_context(start(port))))
        callers = [threading.Thread(target=call, args=(served.url,)) for _ in range(3)]
        for one in callers:
            stack.callback(one.join)
        stack.callback(stop.set)
        for one in callers:
            one.start()
        wait_until(lambda: len(statuses) > 30)
        first.close()
        wait_until(lambda: 502 in statuses)
        assert ask(served.manage, "GET", "/_ndd/ready").status == 503
        stack.enter_context(start(port))
        wait_until(lambda: statuses[-20:] == [200] * 20)
        assert ask(served.manage, "GET", "/_ndd/ready").status == 200
        stop.set()
        wait_until(lambda: served.proxy._in_flight == 0)
    assert set(statuses) <= {200, 502, 503}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a CA, and certificates of a server and of a client."""
    if shutil.which("openssl") is None:
        missing("openssl", "makes the certificates, and is not installed")
    folder = tmp_path_factory.mktemp("tls")
    days = ["-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *days, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    for name in ("server", "client"):
        extension = ["-addext", "subjectAltName=IP:127.0.0.1"]
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", *extension]
        openssl("req", "-x509", *days, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}", *signed)
    return folder


class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the name in the client's certificate."""
        shown: Any = self.connection.getpeercert()
        body = str(dict(part[0] for part in shown["subject"])["commonName"] if shown else "nobody").encode()
        self.send_response_only(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def over_tls(certificates: Path) -> Iterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates / "ca.pem"))
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    server.daemon_threads, server.block_on_close = True, False
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_engine_is_verified_unless_the_user_says_otherwise(certificates: Path) -> None:
    ca = str(certificates / "ca.pem")
    with over_tls(certificates) as url:
        for settings, expected in (
            ({}, 502),
            ({"ca_certs": ca}, b"nobody"),
            ({"insecure": True}, b"nobody"),
        ):
            with serving(url, **settings) as served:
                got = ask(served.url, "GET", "/")
                assert got.status == expected if isinstance(expected, int) else got.body == expected, got
                assert isinstance(expected, bytes) or b"certificate" in got.body.lower()
    with pytest.raises(ValueError, match="ca_certs"):
        app("https://127.0.0.1:1", ca_certs="/none")


def test_callers_come_in_over_tls(certificates: Path, behind: Engine) -> None:
    own = {"certificate": str(certificates / "server.pem"), "key": str(certificates / "server.key")}
    with serving(behind.url, **own) as served:
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        with closing(http.client.HTTPSConnection(*served.address, context=context, timeout=SECONDS)) as connection:
            connection.request("GET", "/_cat/health")
            assert connection.getresponse().read() == b"{}"
