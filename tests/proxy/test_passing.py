"""What is not ours passes byte for byte, streamed both ways."""

from __future__ import annotations

import gzip
import http.client
import re
import resource
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.find import Engine as RealEngine
from tests.proxy.serving import SECONDS, Engine, Got, Heard, Served, ask, response, say, serving, wait_until

SEGMENTS = st.sampled_from(
    [
        "news",
        "_doc",
        "%2e%2e",
        "..",
        ".",
        "a%2Fb",
        "%zz",
        "ü".encode().hex("%"),
        "_bulk",
        "_all",
        "_search",
        "*",
        "",
        *(
            "scroll",
            "_cat",
            "a,b",
            "%3Clogs-%7Bnow%2Fd%7D%3E",
            "_msearch",
            "template",
            "x" * 200,
            "~",
            "a+b",
            "a:b",
            "@",
        ),
    ]
)
QUERIES = st.lists(
    st.sampled_from(
        ["pretty", "a=1", "a=2", "q=%C3%BC", "filter_path=hits.*,-x", "scroll=1m", "b=", "=c", "d=e=f", "x;y"]
    ),
    max_size=4,
)
NAMES = st.sampled_from(
    [
        "Authorization",
        "X-Opaque-Id",
        "Accept",
        "Accept-Encoding",
        "Content-Encoding",
        "Cookie",
        "Range",
        "If-None-Match",
        *("es-security-runas-user", "Traceparent", "X-Many", "X-Many"),
    ]
)
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30)
KINDS = st.sampled_from(["application/json", "application/cbor", "text/plain", "application/x-ndjson"])
BODIES = st.one_of(st.none(), st.binary(max_size=200), st.binary(min_size=70_000, max_size=70_100))
UNSENT = ("host", "content-length", "transfer-encoding", "connection", "keep-alive")


def seen(heard: Heard) -> tuple[Any, ...]:
    return heard.method, heard.target, sorted(one for one in heard.headers if one[0] not in UNSENT), heard.body


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]),
    segments=st.lists(SEGMENTS, max_size=4),
    pieces=QUERIES,
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=4),
    kind=KINDS,
    body=BODIES,
    chunked=st.booleans(),
    status=st.sampled_from([200, 201, 301, 400, 404, 409, 429, 500, 503]),
    answer=st.binary(max_size=300),
    chunked_answer=st.booleans(),
    answer_headers=st.lists(
        st.tuples(st.sampled_from(["Warning", "X-elastic-product", "Set-Cookie", "Location"]), VALUES)
    ),
)
def test_a_request_and_its_answer_are_the_same_with_and_without_the_proxy(
    behind: Engine, through: Served, **drawn: Any
) -> None:
    target = "/" + "/".join(drawn["segments"]) + (f"?{'&'.join(drawn['pieces'])}" if any(drawn["pieces"]) else "")
    headers = [*drawn["headers"], ("content-type", drawn["kind"])]
    behind.reply = lambda heard: response(
        drawn["answer"], *drawn["answer_headers"], status=drawn["status"], chunked=drawn["chunked_answer"]
    )
    behind.heard = []
    got = [
        ask(url, drawn["method"], target, drawn["body"], headers, drawn["chunked"] and drawn["body"] is not None)
        for url in (behind.url, through.url)
    ]
    direct, passed = behind.heard
    assert seen(passed) == seen(direct)
    assert got[1] == got[0]


def test_nothing_is_added_to_a_request(behind: Engine, through: Served) -> None:
    ask(through.url, "GET", "/_cat/health")
    (heard,) = behind.heard
    assert {name for name, _ in heard.headers} == {"host"}
    assert heard.header("host") == behind.url.removeprefix("http://")


def test_headers_of_the_connection_are_not_passed_on(behind: Engine, through: Served) -> None:
    headers = {
        "Connection": "X-Mine, keep-alive",
        "X-Mine": "1",
        "TE": "trailers",
        "Keep-Alive": "timeout=5",
        "X-Other": "2",
    }
    behind.reply = lambda heard: response(
        b"{}", ("Keep-Alive", "timeout=9"), ("Connection", "keep-alive, X-A"), ("X-A", "1")
    )
    got = ask(through.url, "GET", "/_cat/health", headers=headers)
    (heard,) = behind.heard
    assert {name for name, _ in heard.headers} == {"host", "x-other"}
    assert [name for name, _ in got.headers] == ["content-length", "content-type"]


def test_an_answer_may_have_any_number_of_warnings(behind: Engine, through: Served) -> None:
    """An engine warns of each index of a pattern. A write that was carried out must not seem to have failed."""
    named = [("Warning", f'299 Elasticsearch "index {n} has deprecated settings"') for n in range(2000)]
    behind.reply = lambda heard: response(b"{}", *named, status=201)
    answer = say(
        through.address, b"PUT /raw/_doc/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert answer.startswith(b"HTTP/1.1 201")
    assert answer.count(b"\r\nwarning: 299 Elasticsearch") == len(named)


def test_a_gzip_answer_goes_only_to_who_asked_for_it_and_stays_packed(behind: Engine, through: Served) -> None:
    packed = gzip.compress(b"{}" * 500)
    behind.reply = lambda heard: response(packed, ("content-encoding", "gzip"))
    got = ask(through.url, "GET", "/_nodes", headers={"accept-encoding": "gzip, br"})
    assert (got.body, got.header("content-encoding")) == (packed, "gzip")
    assert behind.heard[-1].header("accept-encoding") == "gzip, br"


def test_cookies_of_one_caller_do_not_go_with_the_request_of_another(behind: Engine, through: Served) -> None:
    behind.reply = lambda heard: response(b"{}", ("Set-Cookie", "session=secret"))
    assert ask(through.url, "GET", "/_cat/health").header("set-cookie") == "session=secret"
    ask(through.url, "GET", "/_cat/health")
    assert behind.heard[-1].header("cookie") == ""


def test_an_answer_begins_before_its_end_is_there(behind: Engine, through: Served) -> None:
    """Each part waits until the caller has got the part before."""
    got_first = threading.Event()

    def stream(heard: Heard, handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst")
        handler.wfile.flush()
        assert got_first.wait(SECONDS)
        handler.wfile.write(b"later")

    behind.stream = stream
    connection = http.client.HTTPConnection(*through.address, timeout=SECONDS)
    connection.request("GET", "/_cat/nodes")
    answer = connection.getresponse()
    assert answer.read(5) == b"first"
    got_first.set()
    assert answer.read() == b"later"
    connection.close()


def test_an_old_version_of_http_gets_the_length_of_an_answer(behind: Engine, through: Served) -> None:
    for method, sent in ((b"GET", b"{}" * 500), (b"GET", b""), (b"HEAD", b"")):
        behind.reply = lambda heard, sent=sent: response(sent, chunked=True)  # type: ignore[misc]
        head, _, body = say(through.address, method + b" /_cat/x HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
        assert (head[:15], b"transfer-encoding" in head, body) == (b"HTTP/1.1 200 OK", False, sent)
        assert (b"content-length: %d" % len(sent) in head) is (method == b"GET")


def test_an_answer_without_a_body_may_name_its_length(behind: Engine, through: Served) -> None:
    behind.reply = lambda heard: b"HTTP/1.1 304 X\r\ncontent-length: 5\r\netag: x\r\n\r\n"
    got = ask(through.url, "GET", "/_cat/nodes")
    assert (got.status, got.header("etag"), got.body) == (304, "x", b"")


MANY = 300 * 2**20


def test_bodies_of_any_length_pass_in_flat_memory(behind: Engine, through: Served) -> None:
    """The proxy runs in this process, so its memory is this process's."""
    part = b"x" * 2**20
    received = 0

    def stream(heard: Heard, handler: BaseHTTPRequestHandler) -> None:
        nonlocal received
        while received < MANY:
            received += len(handler.rfile.read(2**20))
        handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % MANY)
        for _ in range(MANY // len(part)):
            handler.wfile.write(part)

    behind.stream = stream
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    connection = http.client.HTTPConnection(*through.address, timeout=SECONDS)
    connection.putrequest("POST", "/_bulk")
    connection.putheader("content-length", str(MANY))
    connection.endheaders()
    for _ in range(MANY // len(part)):
        connection.send(part)
    answer = connection.getresponse()
    sent = 0
    while got := answer.read(2**20):
        sent += len(got)
    connection.close()
    assert (received, sent) == (MANY, MANY)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kB


def test_a_caller_who_leaves_ends_the_request_at_the_engine(behind: Engine, through: Served) -> None:
    closed = threading.Event()

    def stream(heard: Heard, handler: BaseHTTPRequestHandler) -> None:
        while handler.rfile.read(1):
            pass
        closed.set()

    behind.stream = stream
    for target in ("/_forcemerge", "/news/_search?q=a"):
        closed.clear()
        with socket.create_connection(through.address) as connection:
            connection.sendall(f"POST {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            wait_until(lambda: behind.heard)
            behind.heard = []
        assert closed.wait(SECONDS), target
    wait_until(lambda: through.proxy._in_flight == 0)


def test_an_answer_that_breaks_off_breaks_off_for_the_caller(behind: Engine, through: Served) -> None:
    def stream(heard: Heard, handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart")
        handler.close_connection = True

    behind.stream = stream
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(through.url, "GET", "/_cat/nodes")


# Requests of the engines' API whose answers hold no times, in every form that a proxy could change.
REAL: list[tuple[str, str, bytes | None, dict[str, str]]] = [
    ("GET", "/", None, {}),
    ("GET", "/_cat/indices/{news}?h=index,docs.count", None, {}),
    ("GET", "/_cat/indices/{news}?h=index&format=yaml", None, {}),
    ("HEAD", "/{news}", None, {}),
    ("HEAD", "/ndd-no-such-index", None, {}),
    ("GET", "/{news}/_mapping/", None, {}),
    ("GET", "/{news}/_mapping?pretty", None, {"accept-encoding": "gzip"}),
    ("GET", "//{news}///_mapping", None, {}),
    ("GET", "/{news}//_search?q=body:market", None, {}),
    ("GET", "//{news}/_search?q=body:market", None, {}),
    ("GET", "/%7Bno-such%7D/_doc/a%2Fb", None, {}),
    ("GET", "/{news}/_doc/%2e%2e", None, {}),
    ("GET", "/{news}/_count?q=body:market&unknown=1", None, {}),
    ("GET", "/{news}/_count?q=body:market&q=body:steel", None, {}),
    ("POST", "/{news}/_count", b'{"query":{"match":{"body":"market"}}}', {"content-type": "application/json"}),
    ("POST", "/{news}/_count", b'{"query":{"match":', {"content-type": "application/json"}),
    ("POST", "/{news}/_count", b"x", {"content-type": "text/html"}),
    ("POST", "/{news}/_search", b'{"size":0,"size":1}', {"content-type": "application/json"}),
    ("POST", "/{news}/_search", b"[]", {"content-type": "application/json"}),
    ("POST", "/{news}/_search", b"{}", {}),
    ("POST", "/{news}/_search/template", b'{"source":"{}"}', {"content-type": "application/json"}),
    ("GET", "/{news}/_search?size=nine", None, {}),
    ("GET", "/{news}/_search?unknown=1", None, {}),
    ("GET", "/{news}/_search?q=body:market", None, {"accept": ""}),
    ("GET", "/ndd-no-such-index/_search?q=a", None, {}),
    (
        "POST",
        "/{news}/_search",
        gzip.compress(b'{"query":'),
        {"content-type": "application/json", "content-encoding": "gzip"},
    ),
    ("POST", "/{news}/_msearch", b"{}\n", {"content-type": "application/x-ndjson"}),
    (
        "POST",
        "/{news}/_msearch",
        b'{}\n{"query":{"match":{"body":"market"}}}',
        {"content-type": "application/x-ndjson"},
    ),
    ("POST", "/_msearch", b"nothing", {"content-type": "application/x-ndjson"}),
    ("PUT", "/{news}/_bulk", b"nothing\n", {"content-type": "application/x-ndjson"}),
    ("DELETE", "/ndd-no-such-index", None, {}),
    ("OPTIONS", "/{news}", None, {}),
    ("PATCH", "/{news}", None, {}),
    ("GET", "/_nodes/_none/none?filter_path=x", None, {"x-opaque-id": "mine"}),
]


def test_engines_answer_the_same_with_and_without_the_proxy(engine: RealEngine, library: Any) -> None:
    with serving(engine.url, indexes={f"{library.news}*": {"text": ["body"]}}) as served:
        for method, form, body, headers in REAL:
            target = form.replace("{news}", library.news)
            direct, passed = (ask(url, method, target, body, headers) for url in (engine.url, served.url))
            assert _comparable(passed) == _comparable(direct), (method, target)


def test_a_head_that_the_engine_cannot_read_holds_up_nobody_else(engine: RealEngine) -> None:
    """Engines answer it with 400, and nothing more on that connection, which other callers must not get."""
    with serving(engine.url) as served:
        for _ in range(3):
            assert ask(served.url, "GET", "/_cat/health?h=status", headers={"x": "a" * 20_000}).status == 400
            assert ask(served.url, "GET", "/_cat/health?h=status").status == 200


@pytest.mark.parametrize("slow", [False, True])
def test_nothing_is_sent_on_a_connection_on_which_the_engine_has_answered_400(
    slow: bool, through: Served, behind: Engine
) -> None:
    """It may have closed its ears: the next caller would wait for ever."""
    refused, again = set[int](), list[str]()

    def answer(heard: Heard, handler: Any) -> None:
        port = handler.client_address[1]
        if port in refused:
            again.append(heard.target)
        status = 400 if "bad" in heard.target else 200
        if status == 400:
            refused.add(port)
        whole = response(b"{}", status=status)
        handler.wfile.write(whole[:-1])
        handler.wfile.flush()
        if slow:
            time.sleep(0.05)  # the answer ends after the proxy has read its head
        handler.wfile.write(whole[-1:])

    behind.stream = answer
    for _ in range(3):
        assert ask(through.url, "GET", "/_cat/bad").status == 400
        assert ask(through.url, "GET", "/_cat/health").status == 200
    assert refused
    assert again == []


def _comparable(got: Got) -> tuple[Any, ...]:
    """Status, headers and body, without the milliseconds of a search and the lengths that depend on them."""
    body = gzip.decompress(got.body) if got.header("content-encoding") == "gzip" and got.body else got.body
    return got.status, [one for one in got.headers if one[0] != "content-length"], re.sub(rb'"took":\d+', b"", body)
