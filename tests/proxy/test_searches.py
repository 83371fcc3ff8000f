"""Searches through the proxy: the same pages as through a wrapped client, in every form of a search request."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest

import ndd_search as ndd
from ndd_search.core.recipe import Recipe
from tests.engines.find import Engine as RealEngine
from tests.proxy.serving import Engine, Heard, Served, ask, response, serving
from tests.wrapping.conftest import Library, body_of
from tests.wrapping.library import BAR
from tests.wrapping.test_searches import ONLY_ELASTICSEARCH, SEARCHES

pytestmark = pytest.mark.newest_servers

JSON = {"content-type": "application/json"}
MATCH = {"match": {"body": "market"}}
OPTIONS: dict[str, Any] = {"min_similarity": BAR, "window": 20}


@pytest.fixture(scope="module")
def proxy(engine: RealEngine) -> Iterator[Served]:
    """A proxy in front of a real engine."""
    with serving(engine.url, **OPTIONS) as served:
        yield served


@pytest.fixture(scope="module")
def index(library: Library) -> str:
    """The index whose documents are sketched."""
    return library.news


def as_told(answer: Any) -> Any:
    """An answer without what differs between two runs of one search."""
    body = json.loads(json.dumps(body_of(answer)))
    for one in body.get("responses", [body]):
        one.pop("took", None)
        one.pop("status", None)
        for name in ("took_ms", "cache", "strategy"):
            (one.get("ndd") or {}).pop(name, None)
    body.pop("took", None)
    body.pop("status", None)
    return body


def search(served: Served, index: str, body: dict[str, Any], query: str = "", **headers: str) -> dict[str, Any]:
    target = f"/{index}/_search{f'?{query}' if query else ''}"
    got = ask(served.url, "POST", target, json.dumps(body).encode(), {**JSON, **headers})
    assert got.status == 200, got.body
    page: dict[str, Any] = json.loads(got.body)
    return page


def test_a_plain_client_at_the_proxy_gets_the_pages_of_a_wrapped_client(
    engine: RealEngine, proxy: Served, index: str
) -> None:
    through = RealEngine(**{**engine.__dict__, "url": proxy.url})
    with engine.client() as wrapped, through.client() as plain:
        ndd.wrap(wrapped, **OPTIONS)
        for name, body in SEARCHES.items():
            if name.startswith(ONLY_ELASTICSEARCH) and engine.family != "elasticsearch":
                continue
            for start in (0, 10):
                given = {**body, "size": 10, "from": start, "ndd": {}}
                asked = [as_told(client.search(index=index, body=given)) for client in (wrapped, plain)]
                assert asked[1] == asked[0], name
                assert "ndd" in asked[0]
        lines: list[Any] = []
        for body in ({"query": MATCH}, {"query": MATCH, "size": 3, "ndd": False}, {"query": {"match_all": {}}}):
            lines += [{"index": index}, body]
        several = [as_told(client.msearch(body=lines)) for client in (wrapped, plain)]
        assert several[1] == several[0]
        assert ["ndd" in one for one in several[0]["responses"]] == [True, False, False]


def test_every_form_of_one_search_gives_the_same_page(proxy: Served, index: str) -> None:
    body = {"query": MATCH, "size": 5}
    text = json.dumps(body).encode()
    page = as_told(search(proxy, index, body))
    assert page["ndd"]["hidden"] > 0
    source = f"source={quote(text)}&source_content_type=application%2Fjson"
    packed = {**JSON, "content-encoding": "gzip"}
    forms: list[tuple[str, str, bytes | None, dict[str, str], bool]] = [
        ("GET", f"/{index}/_search", text, JSON, False),
        ("POST", f"/{index}/_search", text, JSON, True),
        ("GET", f"/{index}/_search?{source}", None, {}, False),
        ("POST", f"/{index}/_search//", text, JSON, False),
        ("POST", f"/{index}/_search", gzip.compress(text), packed, False),
        ("POST", f"/{index}/_search", text, {**JSON, "accept": "*/*"}, False),
        ("POST", f"/{index}/_search?pretty", text, JSON, False),
        ("GET", f"/{index}/_search?size=5&q=body:market", None, {}, False),
        ("GET", f"/{index}/_search?size=5&q=body:market", None, {"content-type": "text/plain"}, False),
    ]
    for method, target, sent, headers, chunked in forms:
        got = ask(proxy.url, method, target, sent, headers, chunked)
        assert got.status == 200, got.body
        assert as_told(json.loads(got.body)) == page, target
        assert got.body.startswith(b'{\n  "') == ("pretty" in target)
    lines = b"{}\n" + text + b"\n"
    several = ask(proxy.url, "POST", f"/{index}/_msearch", lines, {"content-type": "application/x-ndjson"})
    assert as_told(json.loads(several.body)["responses"][0]) == page
    source = f"source={quote(lines)}&source_content_type=application%2Fx-ndjson"
    in_url = ask(proxy.url, "GET", f"/{index}/_msearch?{source}")
    assert as_told(json.loads(in_url.body)) == as_told(json.loads(several.body))


def test_a_page_is_packed_for_a_caller_who_accepts_gzip(proxy: Served, index: str) -> None:
    text = json.dumps({"query": MATCH, "size": 5}).encode()
    plain = ask(proxy.url, "POST", f"/{index}/_search", text, JSON)
    packed = ask(proxy.url, "POST", f"/{index}/_search", text, {**JSON, "accept-encoding": "gzip, deflate"})
    assert packed.header("content-encoding") == "gzip"
    assert as_told(json.loads(gzip.decompress(packed.body))) == as_told(json.loads(plain.body))
    refused = ask(proxy.url, "POST", f"/{index}/_search", text, {**JSON, "accept-encoding": "gzip;q=0"})
    assert refused.header("content-encoding") == ""


def test_a_search_is_switched_by_its_body_and_by_its_url(engine: RealEngine, proxy: Served, index: str) -> None:
    body = {"query": MATCH, "size": 10}
    given = ask(engine.url, "POST", f"/{index}/_search?filter_path=hits", json.dumps(body).encode(), JSON).body
    for query, more in (("ndd=off", {}), ("ndd=off", {"ndd": {"mode": "drop"}}), ("", {"ndd": False})):
        assert search(proxy, index, {**body, **more}, f"{query}&filter_path=hits".strip("&")) == json.loads(given)
    everything = {"size": 10}
    assert "ndd" not in search(proxy, index, everything)
    assert search(proxy, index, everything, "ndd=on")["ndd"]["hidden"] > 0
    assert "inner_hits" in str(search(proxy, index, body)["hits"])
    assert "inner_hits" not in str(search(proxy, index, {**body, "ndd": {"mode": "drop"}})["hits"])
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("ndd.window=3&ndd.window=4", {}),
        ("ndd=drop&ndd.mode=ids", {}),
        ("ndd=maybe", {}),
        ("", {"ndd": {"windw": 3}}),
        ("", {"ndd": 3}),
    ]
    for query, more in wrong:
        target = f"/{index}/_search?{query}"
        got = ask(proxy.url, "POST", target, json.dumps({**body, **more}).encode(), JSON)
        assert got.status == 400
        assert "ndd" in json.loads(got.body)["error"]["reason"] or "windw" in json.loads(got.body)["error"]["reason"]
    switched_off = {"query": MATCH, "size": 5, "ndd": {"mode": "drop"}}
    text = json.dumps(switched_off).encode()
    for target, sent, headers in (  # our key is found in each form, and not sent to the engine
        ("ndd=off", text.replace(b"ndd", b"n\\u0064d"), JSON),
        ("ndd=off", text.decode().encode("utf-16"), JSON),
        ("ndd=off", gzip.compress(text), {**JSON, "content-encoding": "gzip"}),
        (f"ndd=off&source={quote(text)}&source_content_type=application%2Fjson", None, {}),
    ):
        got = ask(proxy.url, "GET", f"/{index}/_search?{target}", sent, headers)
        assert (got.status, "ndd" in json.loads(got.body)) == (200, False), got.body
    assert ask(proxy.url, "GET", f"/{index}/_count?ndd=off").status == 400  # only searches have the parameter


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("ndd=annotate", {"mode": "annotate"}),
        ("ndd=ids&ndd.window=7&ndd.min_similarity=0.9", {"mode": "ids", "window": 7, "min_similarity": 0.9}),
        ("ndd.total=groups&ndd.guards=same:body", {"total": "groups", "guards": ["same:body"]}),
        ("ndd.guards=within:at%3D1d,numbers", {"guards": ["within:at=1d", "numbers"]}),
        ("ndd.preset=products&ndd.explain=1,2", {"preset": "products", "explain": ["1", "2"]}),
        ("ndd=on", {}),
    ],
)
def test_options_of_a_search_stand_in_its_url(proxy: Served, index: str, url: str, options: dict[str, Any]) -> None:
    """As in its body, which counts more; also where the whole search stands in the URL, and in an `_msearch`."""
    body = {"query": MATCH, "size": 10}
    own = as_told(search(proxy, index, {**body, "ndd": options or True}))
    assert as_told(search(proxy, index, body, url)) == own
    assert as_told(search(proxy, index, {**body, "ndd": options or True}, "ndd=drop&ndd.window=3&ndd.total=hits")) == (
        as_told(search(proxy, index, {**body, "ndd": {"mode": "drop", "window": 3, "total": "hits", **options}}))
    )
    lines = f"{{}}\n{json.dumps(body)}\n".encode()
    several = json.loads(ask(proxy.url, "POST", f"/{index}/_msearch?{url}", lines, JSON).body)
    assert [hit["_id"] for hit in several["responses"][0]["hits"]["hits"]] == [
        hit["_id"] for hit in own["hits"]["hits"]
    ]


def test_a_cursor_begins_by_url_and_goes_on_by_the_body(engine: RealEngine, proxy: Served, index: str) -> None:
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    body = {"query": MATCH, "size": 2}
    page = search(proxy, index, body, "ndd.cursor=true")
    found = [hit["_id"] for hit in page["hits"]["hits"]]
    url = f"/{index}/_search?ndd.cursor={quote(page['ndd']['cursor'])}"
    refused = ask(proxy.url, "POST", url, json.dumps(body).encode(), JSON)
    assert refused.status == 400
    assert "a token is too long for a URL: send it in the body" in refused.body.decode()
    while token := page["ndd"]["cursor"]:
        page = search(proxy, index, {**body, "ndd": {"cursor": token}})
        found += [hit["_id"] for hit in page["hits"]["hits"]]
    assert found == [hit["_id"] for hit in search(proxy, index, {**body, "size": 1000})["hits"]["hits"]]


def test_an_unknown_word_in_a_url_is_answered_with_the_nearest(proxy: Served, index: str) -> None:
    for url, word in {"ndd=anotate": "annotate", "ndd.totl=groups": "total", "ndd.total=group": "groups"}.items():
        for target in ("_search", "_msearch"):
            got = ask(proxy.url, "POST", f"/{index}/{target}?{url}", b'{"query":{"match_all":{}}}', JSON)
            assert (got.status, f"did you mean {word}?" in got.body.decode()) == (400, True), got.body
    paging = search(proxy, index, {"query": MATCH, "sort": ["_doc"], "search_after": [1]}, "ndd=drop")
    assert "it has a page of its own" in paging["ndd"]["degraded"]


def test_headers_of_a_page_are_those_of_the_engine(engine: RealEngine, proxy: Served, index: str) -> None:
    text = json.dumps({"query": MATCH, "size": 5, "ndd": {"window": 31}}).encode()
    accept = {"accept": "application/vnd.elasticsearch+json; compatible-with=9"} if engine.major == 9 else {}
    kind = {"content-type": accept["accept"]} if accept else JSON
    plain = json.dumps({"query": MATCH, "size": 5}).encode()
    own = ask(engine.url, "POST", f"/{index}/_search", plain, {**kind, **accept, "x-opaque-id": "7"})
    first, again = (
        ask(proxy.url, "POST", f"/{index}/_search", text, {**kind, **accept, "x-opaque-id": "7"}) for _ in range(2)
    )
    assert json.loads(again.body)["ndd"]["cache"] == "hit"
    for name in ("content-type", "x-elastic-product", "x-opensearch-version"):
        assert first.header(name) == again.header(name) == own.header(name)
    assert first.header("x-opaque-id").lower() == own.header("x-opaque-id").lower()


def test_a_media_type_of_elasticsearch_is_taken_in_a_search_without_a_body(proxy: Served, index: str) -> None:
    """OpenSearch reads over it there, and refuses it as the type of a body."""
    accept = {"accept": "application/vnd.elasticsearch+json; compatible-with=8"}
    got = ask(proxy.url, "GET", f"/{index}/_search?q=body:market", headers=accept)
    assert (got.status, b'"ndd"' in got.body) == (200, True), got.body


def test_several_media_types_in_accept_are_no_version_of_the_body(engine: RealEngine, index: str) -> None:
    """The official JavaScript client sends this for requests of its transport. Elasticsearch reads it as no version."""
    accept = {"accept": f"application/vnd.elasticsearch+json; compatible-with={engine.major},text/plain"}
    with serving(engine.url, cache=False) as served:
        for body in (None, json.dumps({"query": MATCH, "size": 5}).encode()):
            headers = {**accept, **(JSON if body else {})}
            target = f"/{index}/_search?size=5" + ("" if body else "&q=body:market")
            got, plain = (ask(url, "POST", target, body, headers) for url in (served.url, engine.url))
            assert got.status == plain.status == 200
            assert got.header("content-type") == plain.header("content-type")
            assert json.loads(got.body)["ndd"]["examined"] > 0


def test_what_the_caller_says_of_a_search_reaches_the_engine(behind: Engine, through: Served) -> None:
    """Every trip has the headers and parameters of the caller; a body that only the engine can read stays as it is."""
    headers = {**JSON, "authorization": "ApiKey abc", "x-opaque-id": "7", "accept-encoding": "gzip"}
    ask(through.url, "POST", "/news/_search?routing=a%2Fb&preference=x", json.dumps({"query": MATCH}).encode(), headers)
    assert behind.heard
    for heard in behind.heard:
        assert heard.header("authorization") == "ApiKey abc"
        assert heard.header("x-opaque-id") == "7"
        assert heard.header("accept-encoding") == ""
        assert "routing=a%2Fb" in heard.target or '"routing":"a/b"' in heard.body.decode()
    for body, kind in (
        (b"\xbf\x64size\x01\xff", "application/cbor"),
        (b":)\n\x00", "application/smile"),
        (b'{"size":1,"size":2}', "application/json"),
        (b"size: 1", "application/yaml"),
        (b'{"query":{"match":{}', "application/json"),
    ):
        behind.heard = []
        ask(through.url, "POST", "/news/_search", body, {"content-type": kind})
        assert [(one.body, one.target) for one in behind.heard] == [(body, "/news/_search")]
    for target in (
        "/news/_search?scroll=1m&q=a",
        "/news/_search?size=1&size=2",
        "/_search/scroll?scroll_id=7",
        "/news/_search/template",
        "/news/_async_search?q=a",
        "/news/_search?source=x&source_content_type=application%2Fcbor",
    ):
        behind.heard = []
        ask(through.url, "GET", target)
        assert [one.target for one in behind.heard] == [target]


def test_a_body_above_the_limit_passes_and_the_answer_says_so(behind: Engine, through: Served) -> None:
    long = json.dumps({"query": {"match": {"body": "long " * 500_000}}}).encode()
    ask(through.url, "POST", "/news/_search", long, JSON)
    assert json.loads(behind.heard[-1].body.splitlines()[-1])["query"] == json.loads(long)["query"]
    with serving(behind.url, max_parsed=100_000) as served:
        for body, headers in ((long, JSON), (gzip.compress(long), {**JSON, "content-encoding": "gzip"})):
            behind.heard = []
            ask(served.url, "POST", "/news/_search", body, headers)
            assert [one.body for one in behind.heard] == [body]
        got = ask(served.url, "POST", "/news/_search", long, JSON)
    assert "near-duplicates may be shown: the body is longer than 100,000 bytes" in got.header("warning")


@pytest.mark.parametrize("cache", [False, True])
def test_values_of_documents_are_not_changed(behind: Engine, cache: bool) -> None:
    """Numbers beyond the range of a float or of 64 bits, odd texts, and characters that UTF-8 cannot hold."""
    source = (
        r'{"a":0.12345678901234567890123,"b":1e400,"c":-1.0E-7,"d":123456789012345678901234567890,"e":1.10,'
        r'"f":"\ud800 \u0000 \"","g":"ü€","h":0.1,"i":5e-324,"j":100.0}'
    )
    document = source.encode()
    behind.reply = lambda heard: response(
        _page("1").replace(b'"_score": 1.0', b'"_score": 1.0, "_source": ' + document)
    )
    text = b'{"query":{"match":{"a":0.30000000000000000001}},"timeout":"1m"}'
    with serving(behind.url, cache=cache) as served:
        served.proxy.driver.settings.bypass_seconds = 0.0
        for _ in range(2):
            got = ask(served.url, "POST", "/news/_search", text, JSON)
            assert b'"ndd"' in got.body
            shown = json.loads(got.body, parse_float=Decimal)["hits"]["hits"][0]["_source"]
            assert shown == json.loads(document, parse_float=Decimal)
    assert any(b"0.30000000000000000001" in heard.body for heard in behind.heard)


def _page(*ids: str) -> bytes:
    hits = [
        {"_index": "news", "_id": id, "_score": 1.0, "fields": {"ndd.sketch": [1, 2], "ndd.recipe": [Recipe().id]}}
        for id in ids
    ]
    total = {"value": len(hits), "relation": "eq"}
    page = {"took": 1, "timed_out": False, "_shards": {"failed": 0}, "hits": {"total": total, "hits": hits}}
    return json.dumps(page).encode()


def test_callers_with_other_rights_never_share_a_page(behind: Engine) -> None:
    """The engine answers with the name of the caller. Each caller asks twice, and gets only what is his."""

    def who(heard: Heard) -> str:
        user = base64.b64decode(heard.header("authorization").partition(" ")[2]).decode().partition(":")[0]
        return user + heard.header("es-security-runas-user") + heard.header("cookie")

    behind.reply = lambda heard: response(_page(who(heard), f"{who(heard)}-2"))
    basic = [base64.b64encode(f"{name}:secret".encode()).decode() for name in ("ann", "bob")]
    callers: list[dict[str, str]] = [{"authorization": f"Basic {one}"} for one in basic]
    callers += [{**callers[0], "es-security-runas-user": "cid"}, {**callers[0], "cookie": "sid=eve"}]
    text = json.dumps({"query": MATCH, "timeout": "1m"}).encode()
    with serving(behind.url) as served:
        served.proxy.driver.settings.bypass_seconds = 0.0
        for _ in range(3):
            for headers in callers:
                got = json.loads(ask(served.url, "POST", "/news/_search", text, {**JSON, **headers}).body)
                shown = {hit["_id"].removesuffix("-2") for hit in got["hits"]["hits"]}
                name = base64.b64decode(headers["authorization"].partition(" ")[2]).decode().partition(":")[0]
                assert shown == {name + headers.get("es-security-runas-user", "") + headers.get("cookie", "")}


def test_a_page_that_was_just_made_is_remembered_as_a_whole(behind: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    behind.reply = lambda heard: response(_page("1", "2"))
    text = json.dumps({"query": MATCH, "timeout": "1m"}).encode()
    with serving(behind.url) as served:
        served.proxy.driver.settings.bypass_seconds = 0.0
        memory, found = served.proxy.driver.settings.memory, list[bool]()
        recall = memory.recall_page

        def spied(key: bytes | None, target: str) -> dict[str, Any] | None:
            page = recall(key, target)
            found.append(page is not None)
            return page

        monkeypatch.setattr(memory, "recall_page", spied)
        pages = [as_told(json.loads(ask(served.url, "POST", "/a/_search", text, JSON).body)) for _ in range(3)]
    assert found == [False, True, True]
    assert pages[1] == pages[2] == pages[0]


def test_a_fault_of_ours_costs_no_more_than_duplicates(
    behind: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(behind.url) as served:

        def broken(*_: Any) -> Any:
            raise RuntimeError("a fault")

        monkeypatch.setattr(served.proxy.driver, "_conversation", broken)
        behind.reply = lambda heard: response(b'{"own": true}')
        body = b'{"query":{"match":{"body":"market"}}}'
        assert ask(served.url, "POST", "/news/_search", body, JSON).body == b'{"own": true}'
        assert behind.heard[-1].body == body
    assert "near-duplicates may be shown" in caplog.text


def test_a_search_is_collapsed_after_a_search_pipeline(engine: RealEngine, proxy: Served, index: str) -> None:
    if engine.name != "opensearch3":
        pytest.skip("search pipelines are of OpenSearch; the jars of version 2 have none")
    place = f"/_search/pipeline/{index}"
    only = {"request_processors": [{"filter_query": {"query": {"term": {"language": "de"}}}}]}
    assert ask(engine.url, "PUT", place, json.dumps(only).encode(), JSON).status == 200
    page = search(proxy, index, {"query": MATCH, "ndd": True}, f"search_pipeline={index}")
    assert ask(engine.url, "DELETE", place).status == 200
    assert page["ndd"]["hidden"]
    assert {hit["_source"]["language"] for hit in page["hits"]["hits"]} == {"de"}


def test_a_cursor_goes_through_the_proxy(engine: RealEngine, index: str) -> None:
    """It opens a point in time, which differs by engine; the proxy is new and has to learn which one it is."""
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    with serving(engine.url, **OPTIONS) as served:
        token: Any = True
        seen: list[str] = []
        while token:
            page = search(served, index, {"query": MATCH, "size": 10, "ndd": {"cursor": token}})
            assert page["ndd"]["degraded"] is None
            seen += [hit["_id"] for hit in page["hits"]["hits"]]
            token = page["ndd"]["cursor"]
    assert len(seen) > 10
    assert len(set(seen)) == len(seen)
