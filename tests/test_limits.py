"""Shapes of searches that the test servers cannot run: retrievers that fuse, neural and hybrid queries."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ndd_search.engines.limits import is_bounded, limit_of, raised

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

BOUNDED: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "knn": ({"knn": NEAREST}, {"k": 100, "num_candidates": 100}),
    "two knn": ({"knn": [NEAREST, {**NEAREST, "k": 200, "num_candidates": 300}]}, {"k": 100, "num_candidates": 100}),
    "enough": ({"knn": {**NEAREST, "k": 500, "num_candidates": 500}}, {}),
    "knn that leaves k to size": (
        {"query": {"knn": {"field": "v", "query_vector": [1], "num_candidates": 40}}},
        {"num_candidates": 100},
    ),
    "knn of OpenSearch": ({"query": {"knn": {"vector": {"vector": [0.1], "k": 10}}}}, {"k": 100}),
    "knn of OpenSearch in a bool": (
        {"query": {"bool": {"must": [{"knn": {"v": {"vector": [0.1], "k": 10}}}]}}},
        {"k": 100},
    ),
    "neural by distance": ({"query": {"neural": {"p": {"query_text": "x", "model_id": "m", "min_score": 0.5}}}}, {}),
    "rrf": (RRF, {"rank_window_size": 100, "k": 100, "num_candidates": 100}),
    "rrf that leaves it to the engine": ({"retriever": {"rrf": {"retrievers": [STANDARD]}}}, {"rank_window_size": 100}),
    "linear": (
        {"retriever": {"linear": {"retrievers": [{"retriever": STANDARD, "weight": 2}], "rank_window_size": 10}}},
        {"rank_window_size": 100},
    ),
    "hybrid": (HYBRID, {"pagination_depth": 100, "k": 100}),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_numbers_that_bound_a_search_are_raised_to_the_window_and_named(name: str) -> None:
    body, wanted = BOUNDED[name]
    given = copy.deepcopy(body)
    changed, notes = raised(body, 100)
    assert body == given
    assert is_bounded(body)
    assert notes == wanted
    assert set(changed) == set(body)
    assert raised(changed, 100)[1] == {}
    assert limit_of(body) is None


def test_only_the_numbers_differ() -> None:
    changed, _ = raised(RRF, 100)
    nearest = {**NEAREST, "k": 100, "num_candidates": 100}
    assert changed == {"retriever": {"rrf": {"retrievers": [STANDARD, {"knn": nearest}], "rank_window_size": 100}}}


def test_no_more_candidates_than_the_engines_take() -> None:
    assert raised({"knn": NEAREST}, 20_000)[1] == {"k": 10_000, "num_candidates": 10_000}


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
    assert not is_bounded(body)
    assert raised(body, 100) == ({}, {})
    assert limit_of(body) is None


def test_aggregations_keep_what_the_user_asked_for() -> None:
    counted = {"aggs": {"n": {"value_count": {"field": "price"}}}}
    assert raised({"knn": NEAREST, **counted}, 100) == ({}, {})
    assert limit_of({"knn": NEAREST, **counted}) == 10
    assert limit_of({"knn": [NEAREST, NEAREST], **counted}) == 20
    assert limit_of({**RRF, **counted}) == 50
    assert limit_of({"query": MATCH, "knn": NEAREST, **counted}) is None
    assert limit_of({"query": {"knn": {"vector": {"vector": [0.1], "k": 7}}}, **counted}) == 7
    assert limit_of({"query": {"bool": {"should": [MATCH, {"knn": NEAREST}]}}, **counted}) is None
    assert limit_of({**HYBRID, **counted}) is None
    assert limit_of({"query": MATCH, **counted}) is None


def test_a_reranker_looks_at_no_more_than_it_was_told_to() -> None:
    reranker = {"retriever": {"text_similarity_reranker": {"retriever": RRF["retriever"], "rank_window_size": 30}}}
    assert limit_of(reranker) == 30
    assert raised(reranker, 100)[0] == reranker
    assert limit_of({"retriever": {"text_similarity_reranker": {"retriever": STANDARD}}}) == 10
