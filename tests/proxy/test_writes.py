"""Documents get their sketches on the way; everything else of a write stays as it is."""

from __future__ import annotations

import asyncio
import gzip
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

import ndd_search as ndd
from ndd_search import native
from ndd_search.core.options import CollapseOptions
from ndd_search.core.recipe import Recipe
from ndd_search.plugins.prometheus_metrics import PrometheusMetrics
from ndd_search.search.flow.observer import Observation
from ndd_search.search.index_rules import IndexRules
from ndd_search.search.rest.mapping import mapping_properties
from ndd_search.search.writing.sketch_written_requests import SketchedWrites
from ndd_search.serving.proxy.sketch_documents import SketchedBody
from tests.engines.find import Engine as RealEngine
from tests.proxy.serving import SECONDS, Engine, Served, ask, response, serving

pytestmark = pytest.mark.newest_servers

NDJSON = {"content-type": "application/x-ndjson"}
JSON = {"content-type": "application/json"}
RULES = {"news*": {"text": ["title", "body"]}, "shop": {"text": ["name"], "keys": 2}}
TEXT = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."


@pytest.fixture(scope="module")
def sketching(behind: Engine) -> Iterator[Served]:
    """A proxy that adds sketches."""
    with serving(behind.url, indexes=RULES, max_parsed=100_000) as served:
        yield served


def sketched(document: dict[str, Any]) -> Any:
    (action,) = ndd.with_sketches([{"_source": document}], fields=["title", "body"])
    return action["_source"]["ndd"]


def test_only_documents_with_a_rule_change_and_only_by_their_sketch(behind: Engine, sketching: Served) -> None:
    plain = json.dumps({"title": "A", "body": TEXT, "n": 1}).encode()
    lines = [
        b'{"index":{"_index":"news-1","_id":"1"}}\r\n',
        b'{ "body" : "%s",  "n":1.50 }\r\n' % TEXT.encode(),
        b'{"delete":{"_index":"news-1","_id":"2"}}\n',
        b'{"create":{"_index":"other"}}\n',
        plain + b"\n",
        b"\n",
        b'{"index":{"_index":"news-1"}}\n',
        b'{"body": "a damaged line\n',
        b'{"index":{"_index":"news-1"}}\n',
        b'{"no":"text"}\n',
        b'{"update":{"_index":"news-1","_id":"1"}}\n',
        b'{"doc":{"n":2}}\n',
        b'{"index":{"_index":"news-1"}}\n',
        b'{"body":"%s","ndd":"my own"}\n' % TEXT.encode(),
        b'{"index":{"_index":"shop"}}\n',
        b'{"name":"%s"}\n' % TEXT.encode(),
    ]
    for headers, body, chunked in (
        (NDJSON, b"".join(lines), False),
        (NDJSON, b"".join(lines), True),
        ({**NDJSON, "content-encoding": "gzip"}, gzip.compress(b"".join(lines)), False),
        ({**NDJSON, "content-encoding": "x-gzip"}, gzip.compress(b"".join(lines)), True),
    ):
        got = ask(sketching.url, "POST", "/_bulk?refresh=true", body, headers, chunked)
        heard = behind.wrote
        sent = heard.body.splitlines(keepends=True)
        assert len(sent) == len(lines)
        same = [place for place, (one, other) in enumerate(zip(sent, lines, strict=True)) if one == other]
        assert same == [place for place in range(len(lines)) if place not in (1, 15)]
        assert sent[1].startswith(b'{"body" : "%s","n":1.50,"ndd": ' % TEXT.encode())
        assert sent[1].endswith(b"}\r\n")
        assert json.loads(sent[1])["ndd"] == sketched({"body": TEXT})
        assert len(json.loads(sent[15])["ndd_keys"]) == 2
        assert heard.target == "/_bulk?refresh=true"
        assert heard.header("content-encoding") == ""
        assert "2 documents passed without a sketch" in got.header("warning")
        assert "has no text in title, body" in got.header("warning")


@pytest.mark.parametrize("target", ["/news-1/_doc", "/news-1/_doc/7?routing=x", "/news-1/_create/7", "/news-1/_doc/7/"])
def test_single_documents_get_a_sketch(behind: Engine, sketching: Served, target: str) -> None:
    ask(sketching.url, "PUT", target, json.dumps({"body": TEXT}).encode(), JSON)
    assert json.loads(behind.wrote.body)["ndd"] == sketched({"body": TEXT})
    assert behind.wrote.target == target


def test_an_update_gets_a_sketch_and_other_requests_get_none(behind: Engine, sketching: Served) -> None:
    text = json.dumps({"doc": {"title": "", "body": TEXT}}).encode()
    ask(sketching.url, "POST", "/news-1/_update/7", text, JSON)
    assert json.loads(behind.wrote.body)["doc"]["ndd"]["sketch"] == sketched({"title": "", "body": TEXT})["sketch"]
    document = json.dumps({"title": "A", "body": TEXT}).encode()
    for method, target in (
        ("POST", "/other/_doc"),
        ("POST", "/news-1/_count"),
        ("PUT", "/news-1"),
        ("PUT", "/news-1/_mapping"),
        ("GET", "/news-1/_doc/7"),
        ("POST", "/news-1/_update_by_query"),
        ("POST", "/_reindex"),
    ):
        ask(sketching.url, method, target, document, JSON)
        assert behind.wrote.body == document


def test_whoever_sends_what_cannot_be_read_is_told(behind: Engine, sketching: Served) -> None:
    long = json.dumps({"body": TEXT * 2000}).encode()
    header = b'{"index":{"_index":"news-1"}}\n'
    last = json.dumps({"body": TEXT}).encode()
    bulk = header + long + b"\n" + header + last + b"\n"
    got = ask(sketching.url, "POST", "/_bulk", bulk, NDJSON)
    sent = behind.wrote.body.split(b"\n")
    assert sent[:3] == bulk.split(b"\n")[:3]
    assert json.loads(sent[3])["ndd"] == sketched({"body": TEXT})
    assert "a document is longer than 100,000 bytes" in got.header("warning")
    smile = {"content-type": "application/smile"}
    deep = b'{"body":"x","deep":%s1%s}' % (b"[" * 40_000, b"]" * 40_000)
    for target, body, headers, why in (
        ("/news-1/_doc", deep, JSON, "nests too deep"),
        ("/news-1/_doc/1", b'{"body":"x"/**/}', JSON, "holds comments"),
        ("/_bulk", header + deep + b"\n", NDJSON, "nests too deep"),
        ("/news-1/_doc", long, JSON, "longer than 100,000 bytes"),
        ("/news-1/_doc", b'{"body":"x","ndd":"mine"}', JSON, "of your own"),
        ("/news-1/_doc", b":)\n", smile, "only JSON is read"),
        ("/_bulk", b":)\n", smile, "only JSON is read"),
        ("/_bulk", b"x", {**NDJSON, "content-encoding": "zstd"}, "only JSON is read"),
    ):
        got = ask(sketching.url, "POST", target, body, headers)
        assert behind.wrote.body == body
        assert why in got.header("warning")


class Counted:
    """An observer. unsketched: what a proxy told it."""

    def __init__(self) -> None:
        self.unsketched: list[tuple[str, int]] = []

    def observe(self, seen: Observation) -> None:
        pass

    def observe_unsketched(self, path: str, documents: int) -> None:
        self.unsketched.append((path, documents))


def test_every_document_without_the_texts_that_its_rule_names_is_told_and_counted(
    behind: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """A misspelt field in the rule leaves a whole index without sketches."""
    counted, metrics = Counted(), PrometheusMetrics(registry := CollectorRegistry())
    lines = b"".join(
        b'{"index":{"_index":"news","_id":"%d"}}\n%s\n' % (n, json.dumps({"body" if n == 2 else "bdy": TEXT}).encode())
        for n in range(5)
    )
    document = json.dumps({"bdy": TEXT}).encode()
    with serving(behind.url, indexes={"news": {"text": ["body"]}}, observers=[counted, metrics]) as served:
        for _ in range(2):
            caplog.clear()
            got = ask(served.url, "POST", "/_bulk", lines, NDJSON)
            assert "4 documents passed without a sketch, the first: document 0 has no text in body" in got.header(
                "warning"
            )
            assert "/_bulk: 4 documents passed without a sketch" in caplog.text
            for method, target, name in (
                ("POST", "/news/_doc", "document (without _id)"),
                ("PUT", "/news/_create/7", "document 7"),
            ):
                caplog.clear()
                got = ask(served.url, method, target, document, JSON)
                assert f"{name} has no text in body" in got.header("warning")
                assert f"{target}: 1 document passed without a sketch: {name}" in caplog.text
                assert behind.wrote.body == document
        got = ask(served.url, "POST", "/news/_update/7", b'{"doc": {"n": 1}}', JSON)
        assert got.header("warning") == ""
    assert counted.unsketched == [("/_bulk", 4), ("/news/_doc", 1), ("/news/_create/7", 1)] * 2
    assert registry.get_sample_value("ndd_search_documents_unsketched_total") == 12


def test_a_bulk_without_documents_gets_no_warning(behind: Engine, sketching: Served) -> None:
    """OpenSearch's clients send it without a content type."""
    for body, headers in ((b"", {}), (None, {}), (b"", {"content-type": "text/plain"}), (b"\n", NDJSON)):
        got = ask(sketching.url, "POST", "/_bulk", body, headers)
        assert got.header("warning") == ""
        assert behind.wrote.body == (body or b"")


@pytest.mark.once
def test_a_damaged_packed_bulk_reaches_the_engine_in_no_part(behind: Engine, sketching: Served) -> None:
    lines = b"".join(
        b'{"index":{"_index":"news"}}\n{"body":"%d %s"}\n' % (n, uuid.uuid4().bytes.hex().encode()) for n in range(9000)
    )
    packed = gzip.compress(lines)
    for damaged in (
        packed[:-20],
        packed[: len(packed) // 2] + b"x" * 50 + packed[len(packed) // 2 + 50 :],
        packed + b"x",
    ):
        behind.heard = []
        got = ask(sketching.url, "POST", "/_bulk", damaged, {**NDJSON, "content-encoding": "gzip"})
        assert got.status == 400
        assert b"send it again" in got.body
        assert {one.method for one in behind.heard} <= {"GET"}, "of its mapping"


def test_a_body_of_several_packed_members_is_read_as_one(behind: Engine, sketching: Served) -> None:
    """Programs that pack in parallel, or append to a log, send such bodies, and engines read them."""
    header, document = b'{"index":{"_index":"news"}}\n', b'{"body":"%s"}\n' % TEXT.encode()
    for target, parts in (
        ("/_bulk", [header, document]),
        ("/_bulk", [header * 3000 + header[:7], header[7:], document[:9], document[9:]]),
        ("/news/_doc", [document[:20], document[20:]]),
    ):
        packed = b"".join(map(gzip.compress, parts))
        assert ask(sketching.url, "POST", target, packed, {**NDJSON, "content-encoding": "gzip"}).status == 200
        assert _without_sketches(behind.wrote.body) == b"".join(parts)
        assert b'"ndd"' in behind.wrote.body


@given(data=st.data())
def test_a_bulk_in_parts_is_the_bulk_as_a_whole(data: st.DataObject) -> None:
    writes = SketchedWrites.of(IndexRules.of({"news*": {"text": ["body"]}}, CollapseOptions()))
    line = st.sampled_from(
        [
            b'{"index":{"_index":"news"}}',
            b'{"index":{}}',
            b'{"delete":{"_index":"news"}}',
            b"",
            b"{",
            b'{"body":"a b c d"}',
            *(
                b'{"update":{"_index":"news","_id":1}}',
                b'{"doc":{"body":"a b c d e"}}',
                b'{"index":{"_index":7}}',
                b"\r",
            ),
        ]
    )
    body = b"\n".join(data.draw(st.lists(line, max_size=12)))
    lines = writes.lines_of("/_bulk")
    assert lines is not None
    asked, parts = list[str](), list[bytes]()

    async def ask(index: str) -> None:
        asked.append(index)

    while body:
        size = data.draw(st.integers(1, max(1, len(body))))
        part, body = body[:size], body[size:]
        parts.append(part)
    sent = asyncio.run(_as_sent(SketchedBody(lines, 10_000, asyncio.Semaphore(), ask), parts))
    assert asked == ["news"] or (asked == [] and b'"ndd": ' not in sent)
    again = writes.lines_of("/_bulk")
    assert again is not None
    at_once = SketchedBody(again, 10_000, asyncio.Semaphore(), ask)
    assert asyncio.run(_as_sent(at_once, [_without_sketches(sent)])) == sent


async def _as_sent(body: SketchedBody, parts: list[bytes]) -> bytes:
    async def given_parts() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    return b"".join([part async for part in body(given_parts())])


def _without_sketches(body: bytes) -> bytes:
    """The lines of a body with their sketches taken out, as far as they are objects that hold one."""
    kept = []
    for line in body.split(b"\n"):
        place = line.find(b',"ndd": ')
        kept.append(line if place < 0 else line[:place] + (b"}}" if line.startswith(b'{"doc"') else b"}"))
    return b"\n".join(kept)


@pytest.mark.once
def test_a_bulk_of_any_length_is_sketched_while_it_streams(behind: Engine, sketching: Served) -> None:
    count = 20_000 if native.core else 5_000  # numpy needs several times as long
    lines = b"".join(b'{"index":{"_index":"news"}}\n{"body":"%d %s"}\n' % (n, TEXT.encode()) for n in range(count))
    for headers, body in ((NDJSON, lines), ({**NDJSON, "content-encoding": "gzip"}, gzip.compress(lines))):
        assert ask(sketching.url, "POST", "/_bulk", body, headers).status == 200
        documents = behind.wrote.body.splitlines()[1::2]
        assert len(documents) == count
        assert all(b'"ndd": {"sketch": [' in one for one in documents)


def test_what_the_proxy_writes_is_what_a_wrapped_client_writes(engine: RealEngine, index: str) -> None:
    rules = {f"{index}*": {"text": ["body"]}}
    with serving(engine.url, indexes=rules) as served, engine.client() as direct:
        through = RealEngine(**{**engine.__dict__, "url": served.url})
        direct.indices.create(index=index, body={"mappings": {"properties": ndd.indexing.mapping_properties()}})
        with through.client() as plain:
            query = {"query": {"match": {"body": "ministers"}}}
            for _ in range(2):  # an index that was searched while it was empty is searched as any other afterwards
                assert plain.search(index=index, body=query)["hits"]["hits"] == []
            bulk = f'{{"index":{{"_id":"1"}}}}\n{{"body":"{TEXT}"}}\n{{"index":{{"_id":"2"}}}}\n{{"body":"{TEXT} x"}}\n'
            assert not plain.bulk(index=index, body=bulk, refresh=True)["errors"]
            page = plain.search(index=index, body=query)
            assert ([hit["_id"] for hit in page["hits"]["hits"]], page["ndd"]["hidden"]) == (["1"], 1)
            plain.index(index=index, id="3", body={"body": TEXT}, refresh=True)
            plain.update(index=index, id="2", body={"doc": {"body": "something else entirely"}}, refresh=True)
            page = plain.search(index=index, body=query)  # a caller always sees the writes through the proxy
            assert page["ndd"]["examined"] == 2
            found = {hit["_id"]: hit["_source"] for hit in direct.search(index=index, body={})["hits"]["hits"]}
    for source in found.values():
        assert source["ndd"]["sketch"] == sketched({"body": source["body"]})["sketch"]


def test_the_first_write_says_what_of_a_mapping_does_not_fit_sketches(
    engine: RealEngine, index: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In its answer and in the log, once for each index, as a wrapped client does; a mapping that fits says nothing."""
    fits = f"{index}-fits"
    with serving(engine.url, indexes={f"{index}*": {"text": ["body"]}}) as served, engine.client() as direct:
        direct.indices.create(index=fits, body={"mappings": {"properties": ndd.indexing.mapping_properties()}})
        for name in ("one", "bulk"):
            direct.index(index=f"{index}-{name}", body={"ndd": sketched({"body": TEXT})})
        document = json.dumps({"body": TEXT}).encode()
        lines = b"".join(
            b'{"index":{"_index":"%s"}}\n%s\n' % (name.encode(), document) for name in (fits, f"{index}-bulk")
        )
        for again in (False, True):
            one = ask(served.url, "PUT", f"/{index}-one/_doc/1", document, JSON)
            many = ask(served.url, "POST", "/_bulk", lines, NDJSON)
            for got, name in ((one, f"{index}-one"), (many, f"{index}-bulk")):
                assert got.status in (200, 201)
                assert (f"/{name}: ndd.recipe is text, not keyword" in got.header("warning")) is not again
                assert fits not in got.header("warning")
        for name in (fits, f"{index}-one", f"{index}-bulk"):
            direct.indices.delete(index=name)
    told = [line for line in caplog.messages if "ndd.recipe is text, not keyword" in line]
    assert sorted(line.partition(":")[0] for line in told) == [f"/{index}-bulk", f"/{index}-one"]


@pytest.mark.newest_servers
def test_an_index_without_the_mapping_gets_it_before_the_first_sketch(engine: RealEngine, index: str) -> None:
    document = json.dumps({"body": TEXT}).encode()
    with serving(engine.url, indexes={f"{index}*": {"text": ["body"]}}) as served, engine.client() as direct:
        for name, path, body, kind in (
            (f"{index}-one", f"/{index}-one/_doc/1", document, JSON),
            (f"{index}-path", f"/{index}-path/_bulk", b'{"index":{"_id":"1"}}\n%s\n' % document, NDJSON),
            (
                f"{index}-line",
                "/_bulk",
                b'{"index":{"_index":"%s-line","_id":"1"}}\n%s\n' % (index.encode(), document),
                NDJSON,
            ),
        ):
            direct.indices.create(index=name, body={"mappings": {"properties": {"body": {"type": "text"}}}})
            assert ask(served.url, "POST", path, body, kind).header("warning") == ""
            mapped = direct.indices.get_mapping(index=name)[name]["mappings"]["properties"]
            assert mapped["ndd"]["properties"]["recipe"] == {"type": "keyword"}
            assert direct.get(index=name, id="1")["_source"]["ndd"]["sketch"] == sketched({"body": TEXT})["sketch"]
            direct.indices.delete(index=name)


@pytest.mark.newest_servers
@pytest.mark.parametrize("is_short", [True, False])
def test_a_bulk_that_makes_an_index_has_no_sketch_in_it_unless_a_template_maps_it(
    engine: RealEngine, index: str, is_short: bool
) -> None:
    """Also in a bulk that streams, whose lines name indexes; the next bulk puts the mapping."""
    places = [f"{index}-{name}" for name in ("bare", "mapped", "there")]
    text = TEXT if is_short else f"{TEXT} " * 1000
    bulk = "".join(f'{{"index":{{"_index":"{name}","_id":"1"}}}}\n{{"body":"{text}"}}\n' for name in places).encode()
    template = {"index_patterns": [places[1]], "template": {"mappings": {"properties": mapping_properties()}}}
    with serving(engine.url, indexes={f"{index}*": {"text": ["body"]}}) as served, engine.client() as direct:
        direct.indices.put_index_template(name=index, body=template)
        direct.indices.create(index=places[2], body={"mappings": {"properties": {"body": {"type": "text"}}}})
        for first in (True, False):
            got = ask(served.url, "POST", "/_bulk", bulk, NDJSON, not is_short)
            assert ("1 document passed without a sketch" in got.header("warning")) is first
            stored = [direct.get(index=name, id="1")["_source"] for name in places]
            assert ["ndd" in one for one in stored] == [not first, True, True]
        for name in places:
            mapped = direct.indices.get_mapping(index=name)[name]["mappings"]["properties"]
            assert mapped["ndd"]["properties"]["recipe"] == {"type": "keyword"}
            direct.indices.delete(index=name)
        direct.indices.delete_index_template(name=index)


def test_a_document_passes_as_it_came_while_the_mapping_cannot_be_put(behind: Engine) -> None:
    def reply(heard: Any) -> bytes:
        if heard.method == "GET":
            return response(json.dumps({"news": {"mappings": {}, "settings": {"index": {}}}}).encode())
        return response(b"{}", status=403 if heard.target.endswith("_mapping") else 201)

    behind.reply = reply
    document = json.dumps({"body": TEXT}).encode()
    lines = b'{"index":{"_index":"news"}}\n%s\n' % document
    with serving(behind.url, indexes={"*": {"text": ["body"]}}) as served:
        for path, body, kind in (("/news/_doc/1", document, JSON), ("/_bulk", lines, NDJSON)):
            got = ask(served.url, "POST", path, body, kind)
            assert "passed without a sketch" in got.header("warning")
            assert "the mapping of sketches cannot be put" in got.header("warning")
            assert behind.heard[-1].body == body


def test_a_write_is_answered_if_the_mapping_does_not_come_and_a_refused_one_says_what_is_wrong(behind: Engine) -> None:
    """It is the first that was to have a sketch; the next ones ask nothing."""
    ends, refused = Event(), [True, False, False]
    mapped = {
        "mappings": {"properties": {"ndd": {"properties": {"recipe": {"type": "text"}}}}},
        "settings": {"index": {}},
    }

    def reply(heard: Any) -> bytes:
        if heard.method == "GET" and heard.target == "/slow":
            ends.wait(SECONDS)
        if heard.method == "GET":
            return response(json.dumps({heard.target[1:]: mapped}).encode())
        return response(b"{}", status=403 if "/quick" in heard.target and refused.pop(0) else 201)

    behind.reply = reply
    document = json.dumps({"body": TEXT}).encode()
    with serving(behind.url, indexes={"*": {"text": ["body"]}}) as served:
        try:
            assert ask(served.url, "PUT", "/slow/_doc/1", document, JSON).status == 201
        finally:
            ends.set()
        told = [ask(served.url, "PUT", f"/quick/_doc/{number}", document, JSON) for number in range(3)]
    assert [(got.status, "ndd.recipe is text" in got.header("warning")) for got in told] == [
        *((403, True), (201, False), (201, False)),
    ]
    assert sum(heard.method == "GET" for heard in behind.heard) == 2


def test_a_write_forgets_the_pages_of_its_index_and_no_others(behind: Engine) -> None:
    hits = [{"_index": "a", "_id": "1", "fields": {"ndd.sketch": [1, 2], "ndd.recipe": [Recipe().id]}}]
    page = {
        "took": 1,
        "timed_out": False,
        "_shards": {},
        "hits": {"total": {"value": 1, "relation": "eq"}, "hits": hits},
    }
    bulk = {"took": 1, "errors": False, "items": [{"index": {"_index": "a", "status": 201}}]}

    def reply(heard: Any) -> bytes:
        if "_bulk" in heard.target or "_doc" in heard.target:
            return response(json.dumps(bulk if "_bulk" in heard.target else {"_index": "a"}).encode())
        here = json.loads(json.dumps(page).replace('"a"', json.dumps(heard.target.split("/")[1])))
        return response(json.dumps(here).encode())

    behind.reply = reply
    body = json.dumps({"query": {"match": {"body": "x"}}, "ndd": {"mode": "drop", "min_similarity": 0.8}}).encode()

    def cached(index: str) -> bool:
        got: dict[str, Any] = json.loads(ask(served.url, "POST", f"/{index}/_search", body, JSON).body)
        return bool(got["ndd"]["cache"] == "hit")

    with serving(behind.url) as served:
        for method, target, sent in (
            ("POST", "/_bulk", b"{}\n"),
            ("PUT", "/a/_doc/1", b"{}"),
            ("DELETE", "/a/_doc/1", None),
        ):
            assert [cached(name) for name in ("a", "b", "a", "b")][2:] == [True, True]
            ask(served.url, method, target, sent, JSON)
            assert [cached("a"), cached("b")] == [False, False]
