"""Several searches in one `_msearch`: few requests, each answered as if it were alone."""

from __future__ import annotations

import copy
from typing import Any

import elasticsearch
import opensearchpy
import pytest

from tests.wrapping.conftest import Caller, Connect, Library
from tests.wrapping.proxy import Proxy
from tests.wrapping.test_searches import MATCH, copies

pytestmark = pytest.mark.one_kind_of_client


def test_msearch_of_ten_takes_one_request_a_round(library: Library, connect: Connect, proxy: Proxy) -> None:
    words = ["market", "story", "report", "from", "the"]
    bodies = [
        {"query": {"multi_match": {"query": word, "fields": ["title", "body"]}}, "size": n}
        for word in words
        for n in (5, 60)
    ]
    caller = connect(proxy.url, cache=False)
    lines = [line for body in bodies for line in ({"index": library.news}, body)]
    sent = copy.deepcopy(lines)
    answer = caller.msearch(body=lines)
    assert lines == sent
    rounds = len(proxy.searches)
    alone = [caller.search(index=library.news, body=body) for body in bodies]
    for got, whole in zip(answer["responses"], alone, strict=True):
        assert got["hits"] == whole["hits"]
        assert got["ndd"]["kept"] == whole["ndd"]["kept"]
        assert got["status"] == 200
    assert rounds <= 5 < len(proxy.searches)


def test_searches_in_a_tuple_and_a_number_of_them_at_once_change_nothing(library: Library, connect: Connect) -> None:
    """The number is of the whole request, so it does not keep a search from being split."""
    caller = connect(cache=False, window=100)
    lines = ({"index": library.news}, {"query": MATCH, "ndd": {"mode": "drop"}})
    (alone,) = caller.msearch(body=list(lines))["responses"]
    (ours,) = caller.msearch(body=lines, max_concurrent_searches=2)["responses"]
    assert ours["ndd"]["strategy"] == "two_phases"
    assert ours["hits"] == alone["hits"]


def test_msearch_mixes_what_is_ours_with_what_is_not_and_keeps_headers(library: Library, connect: Connect) -> None:
    caller = connect()
    lines = [
        *({"index": library.news}, {"query": MATCH, "size": 20}),
        *({"index": "ndd-not-there"}, {"query": MATCH}),
        *({"index": library.news}, {"query": MATCH, "size": 0, "aggs": {"m": {"max": {"field": "price"}}}}),
        *({"index": library.news}, {"query": MATCH, "sort": ["body"]}),
        *({"index": "<ndd-not-there-{now/d}>"}, {"query": MATCH, "ndd": {"mode": "drop"}}),
        *({"index": ["ndd-not-there", library.news], "ignore_unavailable": True}, {"query": MATCH, "size": 20}),
        *({"index": library.news, "preference": "mine"}, {"query": MATCH, "size": 20, "ndd": {"mode": "drop"}}),
    ]
    for _ in range(2):
        first, missing, counted, refused, of_today, some, last = caller.msearch(body=lines)["responses"]
        assert first["ndd"]["hidden"] > 0
        assert missing["status"] == 404
        assert counted["aggregations"]["m"]["value"] == 24
        assert "ndd" not in counted
        assert refused["status"] == 400
        assert of_today["status"] == 404  # the engine read the search, without a key "ndd"
        assert some["hits"]["hits"] == first["hits"]["hits"]
        assert not any(map(copies, last["hits"]["hits"]))


def test_an_msearch_refused_as_a_whole_is_the_clients_own_error(library: Library, wrapped: Caller) -> None:
    lines = [{"index": library.news}, {"query": MATCH}, {"index": library.news}, {"query": {"bogus": {}}}]
    with pytest.raises(Exception, match="unknown query") as refused:
        wrapped.msearch(body=lines)
    assert refused.value.status_code == 400  # type: ignore[attr-defined]


def test_an_msearch_refused_only_with_the_members_that_fetch_documents_is_the_clients_own_error(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    caller = connect(proxy.url, cache=False, window=100, frequency_table=False)
    lines = [
        {"index": library.news},
        {"query": MATCH, "docvalue_fields": "x"},
        {"index": library.news},
        {"query": MATCH},
    ]
    with pytest.raises(Exception, match="docvalue_fields") as refused:
        caller.msearch(body=lines)
    assert refused.value.status_code == 400  # type: ignore[attr-defined]
    assert len(proxy.searches) == 3  # ours was answered, what fetches documents was refused, and so was the caller's


def test_msearch_goes_on_from_remembered_streams(library: Library, connect: Connect, proxy: Proxy) -> None:
    caller = connect(proxy.url, splits=False)
    lines: list[Any] = [{"index": library.news}, {"query": MATCH, "size": 5}]
    caller.msearch(body=lines)
    proxy.reset()
    lines[1]["from"] = 5
    (second,) = caller.msearch(body=lines)["responses"]
    assert second["ndd"]["cache"] == "hit"
    assert not proxy.passed
    assert len(second["hits"]["hits"]) == 5
    assert second["status"] == 200
    assert "status" not in caller.search(index=library.news, body=lines[1])


def test_msearch_out_of_the_cache_is_answered_in_the_same_shape(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    caller = connect(proxy.url)
    lines = [one for size in (5, 6) for one in ({"index": library.news}, {"query": MATCH, "size": size})]
    for paths in ({}, {"filter_path": "responses.hits.hits._id"}):
        made = [caller.msearch(body=lines, **paths) for _ in range(3)]
        first, second, third = [
            {**one, "took": 0, "responses": [{**r, "ndd": 0} for r in one["responses"]]} for one in made
        ]
        assert second == third
        assert {**first, "took": 0} == second
    assert len(proxy.searches) == 2


@pytest.mark.parametrize("paths", ["responses.hits.hits._id", "-responses.took,responses.hits.hits._id"])
def test_msearch_filter_path_is_applied_to_our_answer(paths: str, library: Library, wrapped: Caller) -> None:
    lines = [{"index": library.news}, {"query": MATCH, "size": 20, "ndd": {"mode": "drop"}}]
    answer = wrapped.msearch(body=lines, filter_path=paths)
    (one,) = answer["responses"]
    assert [list(hit) for hit in one["hits"]["hits"]] == [["_id"]] * 20
    assert one["ndd"]["hidden"] > 0


@pytest.mark.parametrize("name", ["index", "indices"])
@pytest.mark.parametrize("several", [False, True])
def test_indexes_may_be_named_in_every_way_that_engines_read(
    name: str, several: bool, library: Library, connect: Connect
) -> None:
    """Equal searches of two indexes are two searches, in whatever form their header lines name the indexes."""
    caller = connect()
    body = {"query": MATCH, "size": 20}
    lines: list[Any] = []
    for index in (library.news, library.two, library.bare):
        lines += [{name: [index] if several else index}, body]
    for _ in range(2):
        news, two, bare = caller.msearch(body=lines)["responses"]
        assert {hit["_index"] for hit in news["hits"]["hits"]} == {library.news}
        assert {hit["_index"] for hit in two["hits"]["hits"]} == {library.two}
        assert {hit["_index"] for hit in bare["hits"]["hits"]} == {library.bare}
        assert news["ndd"]["hidden"] > 0


def test_a_header_line_that_says_something_else_leaves_its_search_alone(library: Library, connect: Connect) -> None:
    """What engines make of it is not known here, nor is it guessed; a key "ndd" is taken out all the same."""
    caller, plain = connect(cache=False), connect(wrapped=False)
    body = {"query": MATCH, "size": 20}
    headers: list[Any] = [
        {"index": library.bare, "indices": library.news},
        {"index": library.news, "ignoreUnavailable": True},
        {"indices": [library.news], "searchType": "dfs_query_then_fetch"},
    ]
    for header in headers:
        try:
            of_engine = plain.msearch(body=[header, body])["responses"][0]["hits"]["hits"]
        except (elasticsearch.ApiError, opensearchpy.TransportError) as refused:
            with pytest.raises(type(refused)):
                caller.msearch(body=[header, {**body, "ndd": {"mode": "drop"}}])
            continue
        for asked in ({}, {"ndd": {"mode": "drop"}}):
            alone, ours = caller.msearch(body=[header, {**body, **asked}, {"index": library.news}, body])["responses"]
            assert alone["hits"]["hits"] == of_engine
            assert "ndd" in ours
