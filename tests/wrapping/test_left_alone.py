"""What is no list of hits to collapse goes over the wire exactly as without us, and comes back so."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import ndd_search as ndd
from tests.engines.find import MODULES
from tests.wrapping.conftest import Caller, Connect, Library
from tests.wrapping.library import documents
from tests.wrapping.proxy import Passed, Proxy

MATCH = {"match": {"body": "market"}}
SLICED = {"query": MATCH, "size": 3, "slice": {"id": 0, "max": 2}, "sort": ["_doc"]}

# Name: method, path ("{news}" is the index), body, parameters.
CALLS: dict[str, Any] = {
    "size 0": ("POST", "/{news}/_search", {"query": MATCH, "size": 0}, {}),
    "size 0 in the URL": ("POST", "/{news}/_search", {"query": MATCH}, {"size": "0"}),
    "search_after": ("POST", "/{news}/_search", {"query": MATCH, "sort": ["price"], "search_after": [3]}, {}),
    "scroll": ("POST", "/{news}/_search", {"query": MATCH, "size": 5}, {"scroll": "1m"}),
    "slice of a scroll": ("POST", "/{news}/_search", SLICED, {"scroll": "1m"}),
    "ids": ("POST", "/{news}/_search", {"query": {"ids": {"values": ["4-0", "4-1", "7-0"]}}}, {}),
    "terms on _id": ("POST", "/{news}/_search", {"query": {"terms": {"_id": ["7-0", "7-1", "7-2"]}}}, {}),
    "ids in a filter": ("POST", "/{news}/_search", {"query": {"bool": {"filter": {"ids": {"values": ["7-0"]}}}}}, {}),
    "no ids at all": ("POST", "/{news}/_search", {"query": MATCH, "stored_fields": "_none_", "_source": False}, {}),
    "YAML": ("POST", "/{news}/_search", {"query": MATCH}, {"format": "yaml"}),
    "too deep for the engine": ("POST", "/{news}/_search", {"query": MATCH, "from": 9_995, "size": 10}, {}),
    "size that is no number": ("POST", "/{news}/_search", {"query": MATCH, "size": "many"}, {}),
    "size that is true": ("POST", "/{news}/_search", {"query": MATCH, "size": True}, {}),
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
    "cat": ("GET", "/_cat/indices", None, {"format": "json", "h": "index"}),
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


def test_an_index_without_sketches_pays_for_no_window_once_that_is_known(
    library: Library, connect: Connect, proxy: Proxy
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
