"""No open relay, no second reading of a request, no way around limits."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import logging
import socket
import threading
import time
from contextlib import closing
from typing import Any

import pytest

from ndd_search.serving.proxy import app
from ndd_search.serving.proxy.proxy_settings import Node
from tests.proxy.serving import SECONDS, Engine, Served, ask, response, say, serving, wait_until

END = b"\r\n\r\n"


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def lines(*given: bytes) -> bytes:
    return b"\r\n".join(given) + END


def test_it_is_no_open_relay(behind: Engine, through: Served) -> None:
    """The only address that it connects to is the engine's, whatever a request names."""
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        other.settimeout(0)
        name = b"127.0.0.1:%d" % other.getsockname()[1]
        for sent in (
            lines(b"GET http://%s/secret HTTP/1.1" % name, b"Host: %s" % name, b"Connection: close"),
            lines(b"GET //%s/secret HTTP/1.1" % name, b"Host: x", b"Connection: close"),
            lines(b"GET /secret HTTP/1.1", b"Host: %s" % name, b"Connection: close"),
            lines(b"GET @%s/ HTTP/1.1" % name, b"Host: x", b"Connection: close"),
            lines(b"CONNECT %s HTTP/1.1" % name, b"Host: %s" % name, b"Connection: close"),
            lines(b"GET /secret HTTP/1.1", b"Host: x", b"X-Forwarded-Host: %s" % name, b"Connection: close"),
        ):
            say(through.address, sent)
            with pytest.raises(BlockingIOError):
                other.accept()
    assert {heard.header("host") for heard in behind.heard} == {behind.url.removeprefix("http://")}


def test_the_engine_cannot_send_the_proxy_elsewhere(behind: Engine, through: Served) -> None:
    behind.reply = lambda heard: response(b"", ("Location", "http://127.0.0.1:1/"), status=307)
    got = ask(through.url, "GET", "/_cat/nodes")
    assert (got.status, got.header("location"), len(behind.heard)) == (307, "http://127.0.0.1:1/", 1)


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    {
        "both": lines(b"POST /a HTTP/1.1", b"Host: x", b"Content-Length: 4", b"Transfer-Encoding: chunked"),
        "both, other order": lines(
            b"POST /a HTTP/1.1", b"Host: x", b"Transfer-Encoding: chunked", b"Content-Length: 4"
        ),
        "two lengths": lines(b"POST /a HTTP/1.1", b"Host: x", b"Content-Length: 0", b"Content-Length: 36"),
        "the same length twice": lines(b"POST /a HTTP/1.1", b"Host: x", b"Content-Length: 5", b"Content-Length: 5"),
        "lengths in a list": lines(b"POST /a HTTP/1.1", b"Host: x", b"Content-Length: 5, 5"),
        "a signed length": lines(b"POST /a HTTP/1.1", b"Host: x", b"Content-Length: +5"),
        "a hexadecimal length": lines(b"POST /a HTTP/1.1", b"Host: x", b"Content-Length: 0x5"),
        "two codings": lines(b"POST /a HTTP/1.1", b"Host: x", b"Transfer-Encoding: chunked", b"Transfer-Encoding: x"),
        "a hidden coding": lines(b"POST /a HTTP/1.1", b"Host: x", b"Transfer-Encoding: xchunked"),
        "a coding before chunked": lines(b"POST /a HTTP/1.1", b"Host: x", b"Transfer-Encoding: gzip, chunked"),
        "a space before the colon": lines(b"POST /a HTTP/1.1", b"Host: x", b"Content-Length : 5"),
        "a folded header": lines(b"POST /a HTTP/1.1", b"Host: x", b"Transfer-Encoding:", b" chunked"),
        "a folded first header": lines(b"POST /a HTTP/1.1", b" Host: x", b"Content-Length: 5"),
        "a bare line feed": b"POST /a HTTP/1.1\nHost: x\nContent-Length: 5\nTransfer-Encoding: chunked\n\n",
        "a null byte": lines(b"POST /a HTTP/1.1", b"Host: x", b"X: a\x00b", b"Content-Length: 5"),
        "a bare carriage return": lines(b"POST /a HTTP/1.1", b"Host: x", b"X: a\rTransfer-Encoding: chunked"),
        "a coding of an old version": lines(b"POST /a HTTP/1.0", b"Transfer-Encoding: chunked"),
        "two hosts": lines(b"POST /a HTTP/1.1", b"Host: x", b"Host: y", b"Content-Length: 5"),
        "a fragment": lines(b"DELETE /a/_doc/1#2 HTTP/1.1", b"Host: x"),
        "no name": lines(b"POST /a HTTP/1.1", b"Host: x", b": chunked", b"Content-Length: 5"),
    }.items(),
    ids=lambda one: one[0],
)
def test_a_request_of_two_readings_is_refused(behind: Engine, through: Served, head: tuple[str, bytes]) -> None:
    answer = say(through.address, head[1] + b"0\r\n\r\n" + SMUGGLED, seconds=1.0)
    assert status(answer) in (400, 501), answer
    assert b'"type": "ndd_search_proxy_exception"' in answer
    assert not [heard for heard in behind.heard if heard.target == "/smuggled"]
    assert not behind.heard


@pytest.mark.parametrize("size", [b"5;x=\n", b"-5", b"0x5", b"5 5", b"g", b"fffffffffffffffffff"])
def test_a_chunk_of_an_odd_size_reaches_the_engine_in_no_part(behind: Engine, through: Served, size: bytes) -> None:
    head = lines(b"POST /a/_bulk HTTP/1.1", b"Host: x", b"Transfer-Encoding: chunked")
    say(through.address, head + size + b"\r\nabcde\r\n0\r\n\r\n" + SMUGGLED, seconds=1.0)
    assert not behind.heard


def test_the_end_of_a_body_adds_no_header(behind: Engine, through: Served) -> None:
    """A trailer could name another caller than the headers that a server in front has checked."""
    for target in (b"/a/_search", b"/_cat/x"):
        head = lines(b"POST %s HTTP/1.1" % target, b"Host: x", b"Connection: close", b"Transfer-Encoding: chunked")
        assert status(say(through.address, head + b"2\r\n{}\r\n0\r\nAuthorization: Basic YTpi" + END)) == 200
        assert behind.heard[-1].header("authorization") == ""


def test_an_upgrade_is_not_passed_on(behind: Engine, through: Served) -> None:
    head = lines(
        b"GET /a HTTP/1.1", b"Host: x", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AA"
    )
    say(through.address, head, seconds=1.0)
    assert {name for heard in behind.heard for name, _ in heard.headers} <= {"host"}


@pytest.mark.parametrize("kind", ["length", "chunks", "nothing"])
def test_a_request_that_offers_another_protocol_keeps_its_body(
    behind: Engine, through: Served, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """Java's HTTP client offers HTTP/2 with its first request. No byte of the body is read as a further request."""
    body = SMUGGLED if kind != "nothing" else b""
    offer = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AA")
    size = b"Transfer-Encoding: chunked" if kind == "chunks" else b"Content-Length: %d" % len(body)
    head = lines(b"PUT /raw/_doc/1 HTTP/1.1", b"Host: x", *offer, size)
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if kind == "chunks" else body
    following = lines(b"GET /a/_doc/1 HTTP/1.1", b"Host: x", b"Connection: close")
    for pause in (len(head), len(head) + 7, len(head) // 2, 0):
        behind.heard = []
        with socket.create_connection(through.address, timeout=SECONDS) as caller:
            caller.sendall((head + sent)[:pause])
            time.sleep(0.05)
            caller.sendall((head + sent)[pause:] + following)
            answers = b"".join(iter(lambda: caller.recv(65536), b""))
        assert answers.count(b"HTTP/1.1 200") == 2
        assert [(one.method, one.target, one.body) for one in behind.heard] == [
            ("PUT", "/raw/_doc/1", body),
            ("GET", "/a/_doc/1", b""),
        ]
    assert caplog.text == ""


def test_what_follows_a_request_does_not_take_its_answer(behind: Engine, through: Served) -> None:
    """A caller who was answered 400 instead would write the document again."""
    write = lines(b"PUT /raw/_doc/1 HTTP/1.1", b"Host: x", b"Content-Length: 2") + b"{}"
    answers = say(through.address, write * 2 + b"\0\0" + END)
    assert answers.count(b"HTTP/1.1 200") == 2
    assert b" 400 " not in answers
    assert len(behind.heard) == 2


def test_what_follows_the_last_request_of_a_connection_is_left_unread(
    behind: Engine, through: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Some clients send a further line end, or another request, after one that closes the connection."""
    last = lines(b"PUT /raw/_doc/1 HTTP/1.1", b"Host: x", b"Connection: close", b"Content-Length: 2") + b"{}"
    for more in (b"\r\n", lines(b"GET /a/_doc/1 HTTP/1.1", b"Host: x")):
        behind.heard = []
        assert say(through.address, last + more).count(b"HTTP/1.1 200") == 1
        assert [one.target for one in behind.heard] == ["/raw/_doc/1"]
    assert caplog.text == ""


def test_a_caller_who_sends_on_what_cannot_be_read_does_not_fill_the_log(
    behind: Engine, through: Served, caplog: pytest.LogCaptureFixture
) -> None:
    ready = threading.Event()
    behind.reply = lambda heard: response(b"{}") if ready.wait(SECONDS) else b""
    with socket.create_connection(through.address, timeout=SECONDS) as caller:
        caller.sendall(lines(b"PUT /raw/_doc/1 HTTP/1.1", b"Host: x", b"Content-Length: 2") + b"{}")
        for _ in range(20):
            caller.sendall(b"\0\0" + END)
            time.sleep(0.01)
        ready.set()
        answers = b"".join(iter(lambda: caller.recv(65536), b""))
    assert answers.startswith(b"HTTP/1.1 200")
    assert len(caplog.records) == 1


def test_nothing_of_a_request_becomes_a_header(behind: Engine, through: Served) -> None:
    for target in ("/a%0d%0aX-Evil:%201", "/a?q=%0d%0aX-Evil:%201", "/a/_search?preference=%0d%0aX-Evil:%201&q=b"):
        ask(through.url, "GET", target)
        assert behind.heard
        assert not any(heard.header("x-evil") for heard in behind.heard)
    body = json.dumps({"query": {"match": {"a": "b"}}, "ndd": {"windw\r\nX-Evil: 1": 1}}).encode()
    got = ask(through.url, "POST", "/a/_search", body, {"content-type": "application/json"})
    assert (got.status, got.header("x-evil")) == (400, "")
    with serving(behind.url, indexes={"news": {"text": ["body"]}}) as served:
        document = json.dumps({"body": "x", "ndd": 'a"\r\nX-Evil: 1'}).encode()
        headers = {"content-type": "application/json"}
        got = ask(served.url, "POST", "/news/_doc/a%0d%0aX-Evil:1%22", document, headers)
    assert got.header("warning").startswith("299 ndd_search ")
    assert got.header("x-evil") == ""


def test_a_path_cannot_leave_the_part_of_an_address_that_is_served(behind: Engine) -> None:
    with serving(f"{behind.url}/inner") as served:
        for path in ("/../secret", "/a/%2e%2e/%2E%2e/secret", "/a/..%2fsecret", "/.%2e/secret", "/a/./b"):
            assert (
                status(say(served.address, lines(b"GET %s HTTP/1.1" % path.encode(), b"Host: x", b"Connection: close")))
                == 400
            )
        assert not behind.heard
        ask(served.url, "GET", "/a/_doc/x..y?z=../")
        assert [heard.target for heard in behind.heard] == ["/inner/a/_doc/x..y?z=../"]


def test_management_is_at_its_own_address_only(behind: Engine, through: Served) -> None:
    for path in ("/_ndd/health", "/_ndd/ready", "//_ndd/health", "/%5fndd/health"):
        ask(through.url, "GET", path)
        assert behind.heard[-1].target == path  # to the engine, like any other path
    behind.heard = []
    assert json.loads(ask(through.manage, "GET", "/_ndd/health").body) == {"status": "ok"}
    assert not behind.heard
    assert json.loads(ask(through.manage, "GET", "/_ndd/ready").body) == {"status": "ok"}
    behind.heard = []
    for method, path in (("GET", "/news/_search"), ("POST", "/_ndd/health"), ("GET", "/"), ("GET", "/_ndd/../news")):
        assert ask(through.manage, method, path).status == 404
    assert not behind.heard


def test_credentials_reach_the_engine_and_no_log(
    behind: Engine, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = base64.b64encode(b"ann:very-secret").decode()
    headers = {"authorization": f"Basic {secret}", "content-type": "application/json", "cookie": "sid=very-secret"}
    with serving(behind.url, indexes={"news": {"text": ["body"]}}) as served:
        for target, body in (
            ("/news/_search?q=very-secret", None),
            ("/news/_search?ndd=very-secret", b"{}"),
            ("/news/_search", b'{"ndd":{"windw":"very-secret"}}'),
            ("/news/_doc/1?pipeline=very-secret", b'{"body":'),
            ("/news/_doc/1", b'{"body":"a","ndd":"mine"}'),
        ):
            ask(served.url, "POST", target, body, headers)
        behind.stream = lambda heard, handler: setattr(handler, "close_connection", True)
        assert ask(served.url, "POST", "/_x?a=very-secret", b"{}", headers).status == 502
    assert any(heard.header("authorization") == f"Basic {secret}" for heard in behind.heard)
    for text in (caplog.text, *capfd.readouterr()):
        assert secret not in text
        assert "very-secret" not in text


def test_a_url_that_is_not_ascii_is_refused() -> None:
    """The server of `ndd-search serve` refuses it before; other ASGI servers may pass it on."""
    sent: list[Any] = []
    head = {"type": "http", "method": "GET", "path": "/news", "raw_path": b"/news", "query_string": b"q=caf\xe9"}

    async def receive() -> Any:
        raise AssertionError("the request has no body")

    async def send(message: Any) -> None:
        sent.append(message)

    async def serve() -> None:
        proxy = app("http://127.0.0.1:1")
        await proxy({**head, "headers": [(b"host", b"x")]}, receive, send)
        await proxy.upstream.close()

    asyncio.run(serve())
    assert sent[0]["status"] == 400
    assert b"percent-encode" in sent[1]["body"]


def test_an_upstream_with_credentials_is_refused_without_showing_them() -> None:
    for url in ("https://ann:secret@es:9200", "https://ann:sec/ret@es:9200", "https://ann:secret@es:x"):
        with pytest.raises(ValueError, match="upstream") as raised:
            Node.parse(url)
        assert "sec" not in str(raised.value).replace("secure", "")


def test_slow_clients_are_cut_off(behind: Engine) -> None:
    with serving(behind.url, header_seconds=0.3, idle_seconds=0.3) as served:
        assert say(served.address, b"GET / HTTP/1.1\r\nHost: x\r\n") == b""
        assert say(served.address, b"") == b""
        begun = lines(b"GET / HTTP/1.1", b"Host: x") + b"GET / HT"
        assert say(served.address, begun).count(b"HTTP/1.1 200") == 1
        for target in (b"/a/_search", b"/_cat/x"):
            half = lines(
                b"POST %s HTTP/1.1" % target, b"Host: x", b"Content-Type: application/json", b"Content-Length: 9"
            )
            assert status(say(served.address, half + b"{")) == 408
        behind.stream = lambda heard, handler: handler.wfile.write(response(b"x" * 50_000_000))
        with socket.create_connection(served.address) as connection:  # who reads nothing of an answer
            connection.sendall(lines(b"GET /_cat/x HTTP/1.1", b"Host: x"))
            wait_until(lambda: behind.heard and behind.heard[-1].target == "/_cat/x")
            wait_until(lambda: served.proxy._in_flight == 0)


def test_a_head_without_end_is_refused(behind: Engine, through: Served) -> None:
    for head in (
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        lines(b"GET / HTTP/1.1", b"Host: x", b"X: " + b"a" * 100_000),
        lines(b"GET / HTTP/1.1", b"Host: x", *(b"X%d: %s" % (n, b"a" * 100) for n in range(1000))),
    ):
        assert status(say(through.address, head)) in (400, 431)
    assert not behind.heard


def test_bodies_wait_for_their_turn_in_memory(behind: Engine) -> None:
    """Two long bodies fit at once. Those of callers who are slow hold up long ones, and no short ones."""
    body = json.dumps({"query": {"match": {"a": "b " * 100_000}}}).encode()
    head = lines(
        b"POST /a/_search HTTP/1.1", b"Host: x", b"Content-Type: application/json", b"Content-Length: %d" % len(body)
    )
    headers = {"content-type": "application/json"}
    with serving(behind.url, max_long=2) as served:
        slow = [socket.create_connection(served.address) for _ in range(2)]
        for one in slow:
            one.sendall(head + body[:-1])
        wait_until(lambda: served.proxy._in_flight == 2)
        got: list[int] = []
        long = threading.Thread(target=lambda: got.append(ask(served.url, "POST", "/a/_search", body, headers).status))
        long.start()
        wait_until(lambda: served.proxy._in_flight == 3)
        assert ask(served.url, "POST", "/a/_search", b'{"query":{"match":{"a":"b"}}}', headers).status == 200
        assert got == []
        for one in slow:
            one.close()
        long.join()
        assert got == [200]


def test_a_caller_above_the_limit_of_requests_waits_outside(behind: Engine) -> None:
    with serving(behind.url, max_requests=2) as served:
        behind.stream = lambda heard, handler: handler.rfile.read(1) and None
        connections = [http.client.HTTPConnection(*served.address) for _ in range(2)]
        for one in connections:
            one.request("GET", "/_cat/health")
        wait_until(lambda: len(behind.heard) == 2)
        got = ask(served.url, "GET", "/_cat/health")
        assert (got.status, got.header("retry-after")) == (429, "1")
        assert "2 requests are in flight" in json.loads(got.body)["error"]["reason"]
        for one in connections:
            one.close()
        wait_until(lambda: served.proxy._in_flight == 0)
        behind.stream = None
        assert ask(served.url, "GET", "/_cat/health").status == 200


def test_a_cookie_of_the_engine_goes_back_to_its_caller_alone(behind: Engine) -> None:
    """An upstream with a name, for which the HTTP client would keep cookies: not for an address."""
    behind.reply = lambda heard: response(b"{}", ("Set-Cookie", "sid=of-the-first-caller; Path=/"))
    with serving(behind.url.replace("127.0.0.1", "localhost")) as served:
        assert ask(served.url, "GET", "/_cat/nodes").header("set-cookie").startswith("sid=")
        ask(served.url, "GET", "/_cat/nodes")
        ask(served.url, "POST", "/news/_search", b"{}", {"content-type": "application/json"})
    assert len(behind.heard) >= 3
    assert [heard.header("cookie") for heard in behind.heard] == [""] * len(behind.heard)


@pytest.mark.parametrize("path", ["/news/_search", "/news/_doc/1"])
def test_a_body_of_two_types_passes_as_it_came(path: str, behind: Engine) -> None:
    """An engine refuses it; it is not read as one of the two."""
    body = b'{"query": {"match": {"body": "market"}}, "body": "market"}'
    with serving(behind.url, indexes={"news": {"text": ["body"]}}) as served:
        ask(served.url, "POST", path, body, {"content-type": "application/json, text/plain"})
    assert [(heard.target, heard.body) for heard in behind.heard] == [(path, body)]
