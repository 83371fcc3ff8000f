"""Requests that are not collapsed are sent and answered byte for byte as by the plain client."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

import elasticsearch
import opensearchpy
import pytest

import ndd_search as ndd
from tests.engines.find import MODULES, Engine
from tests.wrapping.conftest import Caller, Connect, Library, body_of
from tests.wrapping.library import DIMENSIONS, documents, mapping
from tests.wrapping.proxy import Passed, Proxy

pytestmark = pytest.mark.one_kind_of_client

MATCH = {"match": {"body": "market"}}
NEAR = {"field": "vector", "query_vector": [1.0] * DIMENSIONS, "k": 9, "num_candidates": 9}
SUGGESTED = {"suggest": {"meant": {"text": "markte", "term": {"field": "body"}}}, "sort": ["price"]}
NO_SOURCE = {"query": MATCH, "_source": None}
SLICED = {"query": MATCH, "size": 3, "slice": {"id": 0, "max": 2}, "sort": ["_doc"]}
IDS = {"ids": {"values": ["7-0", "7-1"]}}
FOUND = {"term": {"_id": "7-0"}}

CYCLE: dict[str, Any] = {"bool": {"must": [MATCH]}}
CYCLE["bool"]["must"].append(CYCLE)


def deep(levels: int) -> dict[str, Any]:
    """A query inside so many others."""
    query: dict[str, Any] = MATCH
    for _ in range(levels):
        query = {"bool": {"must": [query]}}
    return query


# Queries that ask for documents by id, wherever the ids stand.
BY_ID: dict[str, Any] = {
    "should": {"query": {"bool": {"should": [FOUND, {"term": {"_id": {"value": "7-1"}}}]}}},
    "bools in bools": {"query": {"bool": {"must": [{"bool": {"should": [{"bool": {"filter": [IDS]}}, MATCH]}}]}}},
    "match on _id": {"query": {"match": {"_id": "7-0"}}},
    "dis_max": {"query": {"dis_max": {"queries": [IDS, MATCH]}}},
    "function_score": {"query": {"function_score": {"query": IDS, "boost": 2}}},
    "boosting": {"query": {"boosting": {"positive": IDS, "negative": MATCH, "negative_boost": 0.5}}},
    "constant_score": {"query": {"constant_score": {"filter": {"bool": {"should": [IDS, FOUND]}}}}, "ndd": {}},
    "post_filter": {"query": MATCH, "post_filter": IDS},
    "query_string": {"query": {"query_string": {"query": "title:story OR (_id:7-0 OR _id:7-1)"}}},
    "default field": {"query": {"query_string": {"query": "7-0", "default_field": "_id"}}},
    "simple_query_string": {"query": {"simple_query_string": {"query": "7-0 7-1", "fields": ["_id^2"]}}},
    "rescore": {"query": MATCH, "rescore": {"window_size": 9, "query": {"rescore_query": IDS}}},
}

# Searches whose hits are in no order that means anything.
UNRANKED: dict[str, Any] = {
    "nothing said": {},
    "match_all": {"query": {"match_all": {}}},
    "a filter": {"query": {"bool": {"filter": [{"term": {"language": "en"}}]}}},
    "match_all and a filter": {"query": {"bool": {"must": {"match_all": {}}, "filter": {"term": {"language": "en"}}}}},
    "constant_score": {"query": {"constant_score": {"filter": MATCH}}},
    "by _doc": {"query": MATCH, "sort": ["_doc"]},
    "by _doc, descending": {"query": MATCH, "sort": [{"_doc": {"order": "desc"}}]},
}

AFTER = {"query": MATCH, "sort": ["price"], "search_after": [3]}
OWN_COPIES = {"field": "site", "inner_hits": {"name": "near_duplicates", "size": 2}}

# Name: method, path ("{news}" is the index), body, parameters.
CALLS: dict[str, Any] = {
    "size 0": ("POST", "/{news}/_search", {"query": MATCH, "size": 0}, {}),
    "size 0 in the URL": ("POST", "/{news}/_search", {"query": MATCH}, {"size": "0"}),
    "search_after": ("POST", "/{news}/_search", {"query": MATCH, "sort": ["price"], "search_after": [3]}, {}),
    "search_after in a retriever": ("POST", "/{news}/_search", {"retriever": {"standard": AFTER}}, {}),
    "scroll": ("POST", "/{news}/_search", {"query": MATCH, "size": 5}, {"scroll": "1m"}),
    "slice of a scroll": ("POST", "/{news}/_search", SLICED, {"scroll": "1m"}),
    "ids": ("POST", "/{news}/_search", {"query": {"ids": {"values": ["4-0", "4-1", "7-0"]}}}, {}),
    "terms on _id": ("POST", "/{news}/_search", {"query": {"terms": {"_id": ["7-0", "7-1", "7-2"]}}}, {}),
    "ids in a filter": ("POST", "/{news}/_search", {"query": {"bool": {"filter": {"ids": {"values": ["7-0"]}}}}}, {}),
    "ids in the URL": ("GET", "/{news}/_search", None, {"q": "_id:7-0 OR _id:7-1"}),
    "ids as the default field": ("GET", "/{news}/_search", None, {"q": "7-0 7-1", "df": "_id"}),
    "ids in a retriever": ("POST", "/{news}/_search", {"retriever": {"standard": {"query": IDS}}}, {}),
    "a query nested too deep": ("POST", "/{news}/_search", {"query": deep(60)}, {}),
    "a query that holds itself": ("POST", "/{news}/_search", {"query": CYCLE}, {}),
    "an empty search_after": ("POST", "/{news}/_search", {"query": MATCH, "search_after": []}, {}),
    "an empty search_pipeline": ("POST", "/{news}/_search", {"query": MATCH, "search_pipeline": {}}, {}),
    "no ids at all": ("POST", "/{news}/_search", {"query": MATCH, "stored_fields": "_none_", "_source": False}, {}),
    "YAML": ("POST", "/{news}/_search", {"query": MATCH}, {"format": "yaml"}),
    "too deep for the engine": ("POST", "/{news}/_search", {"query": MATCH, "from": 9_995, "size": 10}, {}),
    "suggestions alone, which have no hits": ("POST", "/{news}/_search", SUGGESTED, {}),
    "neighbours on a page too long for the engine": ("POST", "/{news}/_search", {"knn": NEAR, "size": 10_001}, {}),
    "size that is no number": ("POST", "/{news}/_search", {"query": MATCH, "size": "many"}, {}),
    "size below zero that the URL overrides": ("POST", "/{news}/_search", {"query": MATCH, "size": -1}, {"size": "5"}),
    "no _source, beside one in the URL": ("POST", "/{news}/_search", NO_SOURCE, {"_source_excludes": "body"}),
    "size that is true": ("POST", "/{news}/_search", {"query": MATCH, "size": True}, {}),
    "size that Python alone takes for a number": ("POST", "/{news}/_search", {"query": MATCH, "size": "1_0"}, {}),
    "inner hits with the name of ours": ("POST", "/{news}/_search", {"query": MATCH, "collapse": OWN_COPIES}, {}),
    "size without end": ("POST", "/{news}/_search", {"query": MATCH, "size": float("inf")}, {}),
    "count": ("POST", "/{news}/_count", {"query": MATCH}, {}),
    "get": ("GET", "/{news}/_doc/7-0", None, {}),
    "mget": ("POST", "/{news}/_mget", {"ids": ["7-0", "7-1"]}, {}),
    "explain": ("POST", "/{news}/_explain/7-0", {"query": MATCH}, {}),
    "validate": ("POST", "/{news}/_validate/query", {"query": MATCH}, {}),
    "template": (
        "POST",
        "/{news}/_search/template",
        {"source": {"query": MATCH, "size": "{{n}}"}, "params": {"n": 9}},
        {},
    ),
    "delete by query": ("POST", "/{news}/_delete_by_query", {"query": {"term": {"site": "nowhere"}}}, {}),
    "field caps": ("GET", "/{news}/_field_caps", None, {"fields": "price"}),
    "cat": ("GET", "/_cat/indices/{news}", None, {"format": "json", "h": "index"}),
}


def wire(passed: list[Passed]) -> list[Any]:
    """What passed, without what differs from one connection or request to the next."""
    changing = {"host", "x-opaque-id", "traceparent", "user-agent", "x-elastic-client-meta", "connection"}
    return [
        (one.method, one.target, one.body, {name: value for name, value in one.headers.items() if name not in changing})
        for one in passed
    ]


def outcome(caller: Caller, call: Any, index: str) -> Any:
    """The answer, or the client's own exception."""
    method, path, body, params = call
    try:
        answer = caller.ask(method, path.format(news=index), body, params)
    except Exception as error:
        return type(error), str(error).partition("took")[0]
    if isinstance(answer, dict):
        return {name: value for name, value in answer.items() if name not in ("took", "_scroll_id", "pit_id")}
    return answer if not isinstance(answer, str) else answer.partition("hits:")[2]


CALLS |= {f"ids in {name}": ("POST", "/{news}/_search", body, {}) for name, body in BY_ID.items() if "ndd" not in body}
CALLS |= {f"unranked, {name}": ("POST", "/{news}/_search", body, {}) for name, body in UNRANKED.items()}


@pytest.mark.parametrize("name", CALLS)
def test_a_request_that_is_no_page_passes_byte_for_byte(
    name: str, library: Library, connect: Connect, proxy: Proxy
) -> None:
    before = outcome(connect(proxy.url, wrapped=False), CALLS[name], library.news)
    as_it_is = wire(proxy.passed)
    proxy.reset()
    after = outcome(connect(proxy.url), CALLS[name], library.news)
    assert wire(proxy.passed) == as_it_is
    assert after == before


@pytest.mark.parametrize("name", BY_ID)
def test_documents_asked_for_by_id_are_all_shown(name: str, library: Library, wrapped: Caller, plain: Caller) -> None:
    """A search that names documents by id, at whatever depth, shows what the plain client shows."""
    body = {"size": 200, **BY_ID[name]}
    found = wrapped.search(index=library.news, body=body)
    body.pop("ndd", None)
    assert found["hits"] == plain.search(index=library.news, body=body)["hits"]
    assert "7-0" in {hit["_id"] for hit in found["hits"]["hits"]}
    assert "ndd" not in found


def test_ids_that_are_excluded_or_compared_with_do_not_stop_collapsing(library: Library, wrapped: Caller) -> None:
    """ "Not this article" and "more like this article" name ids, too, but ask for other documents."""
    excluded = {"bool": {"must": MATCH, "must_not": IDS}}
    like = [{"_index": library.news, "_id": "7-0"}]
    more = {"more_like_this": {"fields": ["body"], "like": like, "min_term_freq": 1, "min_doc_freq": 1}}
    for query in (excluded, more, {"match": {"body": {"query": "market _id: 7-0"}}}):
        assert "ndd" in wrapped.search(index=library.news, body={"query": query})


@pytest.mark.parametrize("name", UNRANKED)
def test_a_search_that_does_not_rank_is_collapsed_where_that_is_asked_for(
    name: str, library: Library, connect: Connect, wrapped: Caller
) -> None:
    """An export misses no document; one key in its body, or one option, has it collapsed."""
    body = {**UNRANKED[name], "size": 60}
    for asked in (True, {}, {"mode": "drop"}):
        assert wrapped.search(index=library.news, body={**body, "ndd": asked})["ndd"]["hidden"] > 0
    with ndd.options(enabled=["unranked"]):
        assert wrapped.search(index=library.news, body=body)["ndd"]["hidden"] > 0
    everywhere = connect(cache=False, enabled=["unranked"])
    assert everywhere.search(index=library.news, body=body)["ndd"]["hidden"] > 0
    with ndd.options(enabled=True):
        assert everywhere.search(index=library.news, body=body)["ndd"]["hidden"] > 0
    with pytest.raises(TypeError, match='leave out "enabled"'):
        everywhere.search(index=library.news, body={**body, "ndd": {"enabled": []}})


def test_a_search_that_ranks_by_a_sort_or_a_clause_is_collapsed(library: Library, wrapped: Caller) -> None:
    """Whatever gives an order that means something is collapsed by itself."""
    language = {"term": {"language": "en"}}
    bodies: list[dict[str, Any]] = [
        {"sort": [{"price": "asc"}, "_doc"]},
        {"query": {"bool": {"filter": language}}, "sort": "price"},
        {"query": {"bool": {"filter": language, "should": [{"match": {"title": "story"}}]}}},
        {"query": {"function_score": {"field_value_factor": {"field": "price"}}}},
        {"query": MATCH, "sort": ["_score", "_doc"]},
    ]
    for body in bodies:
        assert wrapped.search(index=library.news, body={**body, "size": 60})["ndd"]["hidden"] > 0
    assert wrapped.ask("GET", f"/{library.news}/_search", None, {"sort": "price:desc", "size": "60"})["ndd"]["hidden"]
    assert "ndd" not in wrapped.ask("GET", f"/{library.news}/_search", None, {"sort": "_doc", "size": "60"})


REFUSED = [elasticsearch.ApiError, opensearchpy.TransportError]  # some of what follows, by some engine
OWN = {"title": "three", "ndd": {"sketch": [1, 2], "recipe": "w3-k64-v4"}, "ndd_keys": ["00000001"]}

# What writes, or says how, with a top-level key "ndd" in its body: method, path, body.
WRITES: dict[str, Any] = {
    "index": ("PUT", "/{index}/_doc/1", OWN),
    "index without an id": ("POST", "/{index}/_doc", OWN),
    "create": ("PUT", "/{index}/_create/2", OWN),
    "update": ("POST", "/{index}/_update/1", {"doc": OWN, "ndd": {"mode": "drop"}}),
    "count": ("POST", "/{index}/_count", {"query": {"match_all": {}}, "ndd": False}),
    "pipeline": ("PUT", "/_ingest/pipeline/{index}", {"processors": [], "ndd": True}),
    "a document of an index called so": ("PUT", "/ndd-{index}/_doc/_search", OWN),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_no_search_keeps_a_key_ndd_byte_for_byte(
    name: str, engine: Engine, index: str, connect: Connect, proxy: Proxy
) -> None:
    """The sketch of a document, and any other "ndd", arrives as it was given wherever it is not part of a search."""
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
    method, path, body = WRITES[name]
    sent = []
    for caller in (connect(proxy.url, wrapped=False), connect(proxy.url)):
        proxy.reset()
        with suppress(*REFUSED):
            caller.ask(method, path.format(index=index), body)
        sent.append([(one.method, one.target, one.body) for one in proxy.passed])
    assert sent[0] == sent[1]
    assert b'"ndd":' in sent[0][0][2]
    with engine.client() as client:
        client.indices.delete(index=f"ndd-{index}", ignore_unavailable=True)
        helpers = client.options(ignore_status=404) if hasattr(client, "options") else client
        if name == "pipeline":
            helpers.ingest.delete_pipeline(id=index, **({} if hasattr(client, "options") else {"ignore": 404}))


def test_documents_written_through_a_wrapped_client_keep_their_sketch(
    engine: Engine, index: str, connect: Connect
) -> None:
    """index, create, update and the DSL's save store what they are given, the sketch included."""
    caller = connect()
    client = caller.client
    caller.run(client.indices.create(index=index, body=mapping(engine)))
    given = "document" if engine.family == "elasticsearch" else "body"
    caller.run(client.index(index=index, id="1", **{given: OWN}))
    caller.run(client.create(index=index, id="2", **{given: OWN}))
    caller.run(client.index(index=index, id="3", **{given: {"title": "none yet"}}))
    caller.run(client.update(index=index, id="3", body={"doc": OWN}))
    story, meta = story_class(engine, caller.asynchronous)(**OWN), {"using": client, "index": index}
    story.meta.id = "4"
    caller.run(story.save(**meta))
    for id in "1234":
        assert body_of(caller.run(client.get(index=index, id=id)))["_source"] == OWN


def story_class(engine: Engine, asynchronous: bool) -> Any:
    """A document class of the client's DSL."""
    where = {
        ("elasticsearch", False): ("elasticsearch.dsl", "Document"),
        ("elasticsearch", True): ("elasticsearch.dsl", "AsyncDocument"),
        ("opensearch", False): ("opensearchpy", "Document"),
        ("opensearch", True): ("opensearchpy._async.helpers.document", "AsyncDocument"),
    }
    module, name = where[engine.family, asynchronous]
    return type("Story", (getattr(importlib.import_module(module), name),), {})


def test_a_point_in_time_is_paged_without_us(library: Library, connect: Connect, proxy: Proxy) -> None:
    path = "_pit" if library.engine.family == "elasticsearch" else "_search/point_in_time"
    caller = connect(proxy.url)
    opened = caller.ask("POST", f"/{library.news}/{path}", None, {"keep_alive": "1m"})
    pit = opened.get("id") or opened["pit_id"]
    proxy.reset()
    body = {"query": MATCH, "size": 50, "pit": {"id": pit, "keep_alive": "1m"}, "sort": [{"price": "asc"}, "published"]}
    answer = caller.search(body=body)
    assert len(answer["hits"]["hits"]) == 50
    assert "ndd" not in answer
    assert len(proxy.passed) == 1
    assert b"docvalue_fields" not in proxy.passed[0].body


def test_helpers_scan_sees_every_document(library: Library) -> None:
    helpers = importlib.import_module(f"{MODULES[library.engine.family]}.helpers")
    with library.engine.client() as client:
        found = helpers.scan(ndd.wrap(client), index=library.news, query={"query": MATCH}, size=40)
        assert {hit["_id"] for hit in found} == {one["_id"] for one in documents()}


def test_an_index_without_sketches_is_told_of_once_and_pays_for_no_window_once_that_is_known(
    library: Library, connect: Connect, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"query": MATCH, "size": 7, "from": 2, "aggs": {"prices": {"sum": {"field": "price"}}}}
    expected = connect(proxy.url, wrapped=False).search(index=library.bare, body=body)
    as_it_is = wire(proxy.passed)
    caller = connect(proxy.url, cache=False)
    for _ in range(2):
        proxy.reset()
        answer = caller.search(index=library.bare, body=body)
        assert {**answer, "took": 0} == {**expected, "took": 0}
    assert wire(proxy.passed) == as_it_is
    assert ["ndd-search backfill" in line for line in caplog.messages if library.bare in line] == [True]
    for asking in (caller, connect(proxy.url, cache=False)):  # one that has found it out, and one that has not
        told = asking.search(index=library.bare, body={**body, "ndd": True})
        lacks = "no hit has a sketch: run ndd-search backfill"
        assert ndd.info(told).reason.startswith(lacks)
        assert ndd.info(told).warnings == (ndd.info(told).reason,)
        assert {**told, "took": 0, "ndd": None} == {**expected, "took": 0, "ndd": None}
    for pattern, is_told in (("nwes*", True), ("*", False)):
        told = connect(indexes={pattern: {"text": "body"}}).search(index=library.bare, body={**body, "ndd": True})
        assert is_told == (f"no index of the search matches a pattern with `text` ({pattern})" in ndd.info(told).reason)
    lines = [{"index": library.bare}, {**body, "ndd": True}]
    (told,) = caller.msearch(body=lines)["responses"]
    assert "ndd-search backfill" in ndd.info(told).reason


def test_an_index_without_sketches_is_grouped_by_fields_and_what_was_seen_is_hidden(
    library: Library, connect: Connect
) -> None:
    body = {"query": MATCH, "size": 30}
    for caller in (connect(cache=False), connect()):
        expected = caller.search(index=library.bare, body={**body, "size": 100, "ndd": False})["hits"]["hits"]
        first: dict[str, str] = {}
        for hit in expected:
            first.setdefault(hit["_source"]["site"], hit["_id"])
        for _ in range(2):
            own = caller.search(index=library.bare, body=body)  # tells the client that there are no sketches
            assert "ndd" not in own
            for options in ({"group_by": ["site"]}, {"max_per": ["site:1"]}):
                answer = caller.search(index=library.bare, body={**body, "ndd": options})
                assert [hit["_id"] for hit in answer["hits"]["hits"]] == [*first.values()][:30]
                assert answer["ndd"]["degraded"] is None
            answer = caller.search(index=library.bare, body={**body, "ndd": {"seen": expected[1:2]}})
            assert [hit["_id"] for hit in answer["hits"]["hits"]] == [
                hit["_id"] for hit in expected if hit is not expected[1]
            ][:30]


def test_every_page_of_a_cursor_warns_where_no_hit_has_a_sketch(library: Library, connect: Connect) -> None:
    """Unless fields have grouped its hits, which need no sketches."""
    if library.engine.name == "opensearch2":
        pytest.skip("it has no cursors")
    caller = connect(cache=False)
    for options, expected in (({}, [True, True]), ({"group_by": ["site"]}, [False])):
        cursor: Any = True
        for _ in range(2):
            body = {"query": MATCH, "size": 5, "ndd": {**options, "cursor": cursor}}
            told = ndd.info(caller.search(index=library.bare, body=body))
            assert ["run ndd-search backfill, which" in one for one in (*told.warnings, told.reason)] == expected
            cursor = told.block["cursor"]


def test_hits_without_sketches_do_not_switch_off_an_alias_that_has_some(library: Library, wrapped: Caller) -> None:
    bare = {"bool": {"must": MATCH, "must_not": {"exists": {"field": "ndd.recipe"}}}}
    assert "ndd" not in wrapped.search(index=library.mixed, body={"query": bare})
    assert wrapped.search(index=library.mixed, body={"query": MATCH, "size": 100})["ndd"]["hidden"] > 0


def test_false_in_the_body_or_around_it_leaves_a_search_alone(library: Library, connect: Connect, proxy: Proxy) -> None:
    body = {"query": MATCH, "size": 20}
    expected = connect(proxy.url, wrapped=False).search(index=library.news, body=body)
    as_it_is = wire(proxy.passed)
    caller = connect(proxy.url)
    proxy.reset()
    assert {**caller.search(index=library.news, body={**body, "ndd": False}), "took": 0} == {**expected, "took": 0}
    with ndd.options(enabled=False):
        assert {**caller.search(index=library.news, body=body), "took": 0} == {**expected, "took": 0}
    assert wire(proxy.passed) == as_it_is * 2
    lines = [{"index": library.news}, {**body, "ndd": False}]
    assert [len(one["hits"]["hits"]) for one in caller.msearch(body=lines)["responses"]] == [20]
