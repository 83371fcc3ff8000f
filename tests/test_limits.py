"""Shapes of searches that the test servers cannot run: retrievers that fuse, neural and hybrid queries."""

from __future__ import annotations

import copy
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ndd_search.search.rest.candidate_limits import Limits, limits_of, raised
from ndd_search.search.rest.read_request import Request, read_search
from ndd_search.search.rest.search_body import names_in

MATCH = {"match": {"body": "linear hybrid knn rrf"}}
STANDARD = {"standard": {"query": MATCH}}
NEAREST = {"field": "vector", "query_vector": [0.1, 0.2], "k": 10, "num_candidates": 40}
RRF = {"retriever": {"rrf": {"retrievers": [STANDARD, {"knn": NEAREST}], "rank_window_size": 50}}}
HYBRID = {
    "query": {
        "hybrid": {
            "pagination_depth": 20,
            "queries": [MATCH, {"neural": {"passage": {"query_text": "river", "model_id": "m", "k": 5}}}],
        }
    }
}

# A search, and the numbers that are raised in it.
BOUNDED: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "knn": ({"knn": NEAREST}, {"k": 100, "num_candidates": 100}),
    "knn in a list": ({"knn": [NEAREST]}, {"k": 100, "num_candidates": 100}),
    "two knn": ({"knn": [NEAREST, {**NEAREST, "k": 200, "num_candidates": 300}]}, {}),
    "knn beside a query": ({"query": MATCH, "knn": NEAREST}, {}),
    "enough": ({"knn": {**NEAREST, "k": 500, "num_candidates": 500}}, {}),
    "knn that leaves k to size": (
        {"query": {"knn": {"field": "v", "query_vector": [1], "num_candidates": 40}}},
        {"k": 100, "num_candidates": 100},
    ),
    "knn of a retriever": ({"retriever": {"knn": NEAREST}}, {"k": 100, "num_candidates": 100}),
    "knn of OpenSearch": ({"query": {"knn": {"vector": {"vector": [0.1], "k": 10}}}}, {"k": 100}),
    "knn of OpenSearch for fewer than the page": ({"query": {"knn": {"vector": {"vector": [0.1], "k": 9}}}}, {}),
    "knn of OpenSearch in a bool": ({"query": {"bool": {"must": [{"knn": {"v": {"vector": [0.1], "k": 10}}}]}}}, {}),
    "knn before a filter": ({"knn": NEAREST, "post_filter": MATCH}, {}),
    "neural by distance": ({"query": {"neural": {"p": {"query_text": "x", "model_id": "m", "min_score": 0.5}}}}, {}),
    "rrf": (RRF, {"rank_window_size": 100}),
    "rrf that leaves it to the engine": ({"retriever": {"rrf": {"retrievers": [STANDARD]}}}, {"rank_window_size": 100}),
    "linear": (
        {"retriever": {"linear": {"retrievers": [{"retriever": STANDARD, "weight": 2}], "rank_window_size": 10}}},
        {"rank_window_size": 100},
    ),
    "rrf in short": ({"retriever": {"rrf": {"query": "x", "fields": ["title"]}}}, {"rank_window_size": 100}),
    "linear in short": (
        {"retriever": {"linear": {"query": "x", "normalizer": "minmax", "rank_window_size": 20}}},
        {"rank_window_size": 100},
    ),
    "hybrid": (HYBRID, {"pagination_depth": 100}),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_numbers_that_bound_a_search_are_raised_to_the_window_and_named(name: str) -> None:
    """What is raised is what lets more hits through without another score for any of them."""
    body, wanted = BOUNDED[name]
    given = copy.deepcopy(body)
    limits = limits_of(body)
    changed, notes = raised(body, 100, limits)
    assert body == given
    assert limits.bounded
    assert notes == wanted
    assert raised({**body, **changed}, 100, limits)[1] == {}


def test_only_the_numbers_differ() -> None:
    """All other parts of a search are sent as they came."""
    changed, _ = raised(RRF, 100, limits_of(RRF))
    assert changed == {
        "retriever": {"rrf": {"retrievers": [STANDARD, {"knn": NEAREST}], "rank_window_size": 100}},
    }
    lone = {"knn": NEAREST}
    assert raised(lone, 100, limits_of(lone))[0] == {"knn": {**NEAREST, "k": 100, "num_candidates": 100}}


def test_numbers_that_hang_on_the_size_of_the_page_are_written_out_where_they_are_not_raised() -> None:
    """The engine takes k from the size, and we ask for another size."""
    bare = {"field": "v", "query_vector": [1]}
    body = {"query": MATCH, "knn": bare}
    written = {"knn": {**bare, "k": 7, "num_candidates": 10}}
    assert raised(body, 100, limits_of(body, 7)) == ({"query": MATCH, **written}, {})
    few = {"knn": [{**bare, "num_candidates": 8}, NEAREST]}
    assert raised(few, 100, limits_of(few, 7))[0] == {"knn": [{**bare, "k": 7, "num_candidates": 8}, NEAREST]}
    query = {"bool": {"must": [MATCH, {"knn": {**bare, "num_candidates": 3}}]}}
    fewer = {"knn": {**bare, "k": 3, "num_candidates": 3}}
    assert raised({"query": query}, 100, limits_of({"query": query}, 7))[0] == {
        "query": {"bool": {"must": [MATCH, fewer]}}
    }


def test_no_more_candidates_than_the_engines_take() -> None:
    """Engines refuse more than ten thousand candidates."""
    body = {"knn": NEAREST}
    assert raised(body, 20_000, limits_of(body))[1] == {"k": 10_000, "num_candidates": 10_000}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": MATCH},
        {"query": {"match": {"knn": {"query": "a field of that name"}}}},
        {"query": {"term": {"hybrid": {"value": "x"}}}},
        {"query": {"function_score": {"linear": {"price": {"origin": 1, "scale": 2}}}}},
        {"retriever": STANDARD},
    ],
)
def test_words_and_fields_of_these_names_bound_nothing(body: dict[str, Any]) -> None:
    """A field may be called as a kind of search is."""
    assert limits_of(body) == Limits(10)
    assert raised(body, 100, limits_of(body)) == ({}, {})


@pytest.mark.parametrize("body", [{"knn": NEAREST}, {"knn": [NEAREST]}, {"retriever": {"knn": NEAREST}}])
def test_k_is_the_most_that_is_shown_and_counted(body: dict[str, Any]) -> None:
    """However far k is raised."""
    limits = limits_of(body)
    assert (limits.shown, limits.total) == (10, 10)


def test_k_of_a_query_is_the_most_that_is_shown_and_counted_of_each_shard() -> None:
    """On every page: no page knows how many shards answer before they have."""
    for start in (0, 5, 10, 25):
        body = {"query": {"knn": NEAREST}, "from": start, "size": 10}
        found = read_search(Request("POST", "/news/_search", {}, {}, body))
        assert found is not None
        assert (found.limits.shown, found.limits.total, found.limits.of_shard) == (None, None, 10)
        two, few = found.of_shards(2, None), found.of_shards(2, 17)
        assert (two.size, two.limits.total) == (max(0, min(10, 20 - start)), 20)
        assert (few.size, few.limits.total) == (max(0, min(10, 17 - start)), 17)


def test_neighbours_of_each_shard_beyond_k_are_shown_as_the_engine_finds_them() -> None:
    """A `knn` query takes k from each shard, so that a page longer than k may be full."""
    limits = limits_of({"query": {"knn": NEAREST}}, 20)
    assert (limits.grows, limits.shown, limits.total) == (False, None, None)


def test_aggregations_keep_what_the_user_asked_for() -> None:
    """What is aggregated is what is found, so nothing is raised."""
    counted = {"aggs": {"n": {"value_count": {"field": "price"}}}}
    for body, most in (
        ({"knn": NEAREST, "post_filter": MATCH}, 10),
        ({"knn": [NEAREST, NEAREST]}, 20),
        (RRF, 50),
        ({"query": MATCH, "knn": NEAREST}, None),
        ({"query": {"knn": {"vector": {"vector": [0.1], "k": 7}}}}, None),
        (HYBRID, None),
    ):
        limits = limits_of({**body, **counted})
        assert limits.found == most
        assert raised({**body, **counted}, 100, limits)[1] == {}


def test_aggregations_beside_nearest_neighbours_take_a_request_with_the_callers_own_k() -> None:
    """The neighbours to show come with another one."""
    body = {"knn": NEAREST, "aggs": {"n": {"value_count": {"field": "price"}}}}
    limits = limits_of(body)
    assert limits.apart
    assert raised(body, 100, limits)[1] == {"k": 100, "num_candidates": 100}
    assert not limits_of({"knn": NEAREST}).apart


def test_a_reranker_looks_at_no_more_than_it_was_told_to() -> None:
    """Each hit costs an inference."""
    reranker = {"retriever": {"text_similarity_reranker": {"retriever": RRF["retriever"], "rank_window_size": 30}}}
    assert limits_of(reranker).found == 30
    assert raised(reranker, 100, limits_of(reranker))[0] == reranker
    for kind in ("text_similarity_reranker", "diversify"):
        assert limits_of({"retriever": {kind: {"retriever": STANDARD}}}).found == 10


def test_a_search_by_rules_that_pin_documents_is_left_alone() -> None:
    rule = {"ruleset_ids": ["r"], "match_criteria": {"q": "x"}}
    for body in ({"query": {"rule": {"organic": MATCH, **rule}}}, {"retriever": {"rule": {"retriever": RRF, **rule}}}):
        assert read_search(Request("POST", "/news/_search", {}, {}, body)) is None


def test_a_page_of_a_rescorer_is_its_window_where_no_size_is_named() -> None:
    """The smallest window of several counts, 10 where one names none."""
    sizes: list[tuple[Any, int]] = [
        ({"window_size": 30}, 30),
        ([{"window_size": 30}, {"window_size": 20}], 20),
        ([{}], 10),
    ]
    for rescore, window in sizes:
        body = {"retriever": {"rescorer": {"retriever": STANDARD, "rescore": rescore}}}
        assert raised(body, 100, limits_of(body)) == ({}, {})
        for start, size, wanted in ((0, None, window), (5, None, window - 5), (0, 7, 7), (window, 5, None)):
            asked = {**body, "from": start, **({} if size is None else {"size": size})}
            search = read_search(Request("POST", "/news/_search", {}, {}, asked))
            assert (search and (search.size, search.limits.found)) == (wanted and (wanted, window))


def test_a_fused_ranking_shows_no_more_than_its_window() -> None:
    """A page that is longer is for the engine to refuse, one that begins beyond it for the engine to leave empty."""
    assert limits_of(RRF).shown == 50
    assert limits_of(RRF).total is None
    pages = {(0, 10): 10, (0, 50): 50, (45, 10): 5, (50, 10): None, (0, 51): None}
    for (start, size), wanted in pages.items():
        body = {**RRF, "from": start, "size": size}
        search = read_search(Request("POST", "/news/_search", {}, {}, body))
        assert (search and search.size) == wanted


def test_a_body_that_contains_itself_twice_is_found_too_deep_at_once() -> None:
    body: dict[str, Any] = {"query": {"match": {"body": "emissions"}}}
    assert names_in(body) == {"query", "match", "body"}
    body["a"] = body["b"] = [body, body]
    assert names_in(body) is None
    assert read_search(Request("POST", "/news/_search", {}, {}, body)) is None


class Opaque:
    """A value of a caller's own serializer."""


class Clause(Opaque):
    """A query as an object, as in the DSL of both clients."""

    def __init__(self, query: dict[str, Any]) -> None:
        self._query = query

    def to_dict(self) -> dict[str, Any]:
        return self._query


class Unreadable(Opaque):
    """An object that only a serializer of the caller's own can read."""

    def to_dict(self, form: str) -> dict[str, Any]:
        return {form: {}}


def test_queries_that_are_objects_are_read_and_objects_that_cannot_be_read_leave_a_search_alone() -> None:
    """Otherwise documents that such a query names by id would be hidden, and an export would be collapsed."""
    match = {"match": {"body": Clause({"query": "emissions", "boost": np.float32(2)})}}
    found = read_search(
        Request("POST", "/news/_search", {}, {}, {"query": Clause({"bool": {"must": [Clause(match)]}})})
    )
    assert found is not None
    assert found.body["query"]["bool"]["must"][0]["match"]["body"]["query"] == "emissions"
    assert found.ranks_hits
    everything = read_search(Request("POST", "/news/_search", {}, {}, {"query": Clause({"match_all": {}})}))
    assert everything is not None
    assert not everything.ranks_hits
    left_alone = Clause({"ids": {"values": ["7"]}}), {"bool": {"must": [Opaque(), match]}}, Opaque(), Unreadable()
    for query in left_alone:
        assert read_search(Request("POST", "/news/_search", {}, {}, {"query": query})) is None
    times = {"range": {"day": {"gte": datetime(2024, 5, 1), "lt": Decimal(3)}}}
    options = {"keep": [Opaque.__init__], "min_similarity": 0.5}  # are for us, and are not read as a query
    own = read_search(Request("POST", "/news/_search", {}, {}, {"query": times, "ndd": options}))
    assert own is not None
    assert own.body == {"query": times}


@pytest.mark.parametrize("of_list", [False, True])
def test_a_search_with_inner_hits_of_our_name_is_left_alone(of_list: bool) -> None:
    """Ours would overwrite them."""
    nearest = {**NEAREST, "inner_hits": {"name": "near_duplicates"}}
    body = {"query": MATCH, "knn": [nearest] if of_list else nearest}
    assert read_search(Request("POST", "/news/_search", {}, {}, body)) is None
