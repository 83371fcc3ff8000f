"""Nearest-neighbour searches: callers get the number of hits that they asked for in `k`."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, Library, bulk
from tests.wrapping.library import DIMENSIONS, actions, documents, expected, mapping
from tests.wrapping.proxy import Proxy
from tests.wrapping.test_searches import copies

pytestmark = pytest.mark.one_kind_of_client

NEAR = {"field": "vector", "query_vector": [1.0] * DIMENSIONS, "k": 10, "num_candidates": 200}
THREE = {**NEAR, "k": 3}
BARE = {"field": "vector", "query_vector": [1.0] * DIMENSIONS}
OTHER = {**NEAR, "query_vector": [-1.0] * DIMENSIONS, "k": 4}
FEW = {"match": {"title": "42"}}
RESCORE = {"window_size": 5, "query": {"rescore_query": {"match": {"body": "market"}}}}
PRICES = {"prices": {"value_count": {"field": "price"}}, "best": {"top_hits": {"size": 1}}}


@pytest.fixture(autouse=True)
def _has_vectors(library: Library) -> None:
    if library.engine.family != "elasticsearch":
        pytest.skip("the published jars of OpenSearch have no vectors")


LONE: dict[str, Any] = {
    "k below the default size": {"knn": THREE},
    "k below the size": {"knn": THREE, "size": 20},
    "k is the size": {"knn": NEAR, "size": 10},
    "k above the size": {"knn": NEAR, "size": 4},
    "k that is left to the size": {"knn": BARE, "size": 7},
    "in a list": {"knn": [THREE]},
    "of a retriever": {"retriever": {"knn": THREE}},
    "numbers in other forms": {"knn": {**THREE, "k": 3.0, "num_candidates": "9"}},
    "candidates in another form": {"query": {"knn": {**BARE, "num_candidates": "5"}}, "aggs": PRICES, "size": 5},
    "with a filter": {"knn": {**THREE, "filter": {"range": {"price": {"gte": 8}}}}},
    "with a similarity": {"knn": {**NEAR, "similarity": 0.5}},
    "as a query": {"query": {"knn": THREE}, "size": 3},
    "as a query below its k": {"query": {"knn": NEAR}, "size": 4},
    "as a query without k": {"query": {"knn": BARE}, "size": 5, "from": 2},
    "with aggregations": {"knn": NEAR, "aggs": PRICES},
    "of a retriever, with aggregations": {"retriever": {"knn": THREE}, "aggs": PRICES},
}
# Here a shard or a clause finds more than k, or a larger k would change scores: nothing is raised.
OTHERS: dict[str, Any] = {
    "as a query above its k": {"query": {"knn": THREE}, "size": 20},
    "two": {"knn": [THREE, OTHER], "size": 20},
    "beside a query": {"query": FEW, "knn": THREE, "size": 20},
    "beside a query, without k": {"query": FEW, "knn": BARE, "size": 5},
    "in a bool": {"query": {"bool": {"should": [FEW, {"knn": THREE}]}}, "size": 20},
    "before a post_filter": {"knn": NEAR, "post_filter": {"range": {"price": {"gte": 8}}}},
}


def found(caller: Caller, library: Library, body: dict[str, Any], many: bool) -> dict[str, Any]:
    """The answer to a search, alone or in an `_msearch`."""
    if not many:
        return caller.search(index=library.news, body=body)
    answer: dict[str, Any] = caller.msearch(body=[{"index": library.news}, body])["responses"][0]
    return answer


@pytest.mark.parametrize("many", [False, True], ids=["search", "msearch"])
@pytest.mark.parametrize("name", [*LONE, *OTHERS])
def test_no_more_is_shown_and_counted_than_without_us(
    name: str, many: bool, library: Library, wrapped: Caller, plain: Caller
) -> None:
    """Neither more hits than the plain client shows, nor a higher total; and fewer only where there are no more."""
    body = {**LONE, **OTHERS}[name]
    of_engine, got = found(plain, library, body, many), found(wrapped, library, body, many)
    assert got["hits"]["total"]["value"] <= of_engine["hits"]["total"]["value"]
    assert len(got["hits"]["hits"]) <= len(of_engine["hits"]["hits"])
    assert got["ndd"]["degraded"] is None
    if name in LONE:
        assert got["ndd"]["unique"]["value"] <= of_engine["hits"]["total"]["value"]
        assert got["ndd"]["exhausted"] or len(got["hits"]["hits"]) == len(of_engine["hits"]["hits"])
        assert "raised" in got["ndd"]
        beyond = {**body, "from": of_engine["hits"]["total"]["value"]}
        assert not found(wrapped, library, beyond, many)["hits"]["hits"]
    else:
        assert "raised" not in got["ndd"]
        whole = found(plain, library, {**body, "size": 1000, "from": 0}, many)["hits"]["hits"]
        shown = {hit["_id"] for hit in got["hits"]["hits"]}
        listed = shown | {copy["_id"] for hit in got["hits"]["hits"] for copy in copies(hit)}
        first = {hit["_id"] for hit in of_engine["hits"]["hits"]}
        assert shown <= {hit["_id"] for hit in whole}
        assert "from" in body or first <= listed
        scores = {hit["_id"]: hit["_score"] for hit in of_engine["hits"]["hits"]}
        assert all(scores.get(hit["_id"], hit["_score"]) == hit["_score"] for hit in got["hits"]["hits"])


REFUSED: dict[str, Any] = {
    "a retriever without k": {"retriever": {"knn": {**BARE, "num_candidates": 200}}},
    "one of several retrievers without k": {"retriever": {"rrf": {"retrievers": [{"knn": THREE}, {"knn": BARE}]}}},
    "fewer candidates than the size": {"knn": {**BARE, "num_candidates": 4}},
    "fewer candidates than k": {"knn": {**NEAR, "num_candidates": 9}},
    "fewer candidates than k, as a query": {"query": {"knn": {**NEAR, "num_candidates": 9}}},
    "a rescored retriever without k": {"retriever": {"rescorer": {"retriever": {"knn": BARE}, "rescore": RESCORE}}},
    "k that is null": {"knn": {**NEAR, "k": None}},
    "k of nothing, in a bool": {"query": {"bool": {"should": [FEW, {"knn": {**NEAR, "k": 0}}]}}},
    "too many candidates": {"query": {"knn": {**NEAR, "num_candidates": 10_001}}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_neighbours_that_an_engine_refuses_are_refused(
    name: str, library: Library, wrapped: Caller, plain: Caller
) -> None:
    """We raise limits, and add none that a caller left out where they must be given."""
    complaints = []
    for caller in (plain, wrapped):
        with pytest.raises(Exception, match="400") as refused:
            found(caller, library, REFUSED[name], many=False)
        complaints.append(str(refused.value))
    assert complaints[0] == complaints[1]


def test_a_shard_with_fewer_neighbours_than_k_is_counted_as_the_engine_counts_it(
    engine: Engine, index: str, connect: Connect, wrapped: Caller, plain: Caller
) -> None:
    """Also on a page that is made of what an earlier one has fetched; the limit of each shard holds for all pages."""
    acts = actions(index, engine, where=documents()[:60])
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(engine, client, [{**act, "_routing": "3" if place < 4 else "1"} for place, act in enumerate(acts)])
    body: dict[str, Any] = {"query": {"knn": NEAR}, "size": 5}
    for more in ({}, {"from": 5}, {"aggs": PRICES}, {"track_total_hits": 3}, {"track_total_hits": False}):
        of_engine, got = (one.search(index=index, body={**body, **more})["hits"] for one in (plain, wrapped))
        assert got.get("total") == of_engine.get("total")
    whole = connect(mode="annotate")
    number = plain.search(index=index, body=body)["hits"]["total"]["value"]  # 14 if the engine finds all
    pages = [whole.search(index=index, body={**body, "from": start})["hits"]["hits"] for start in (0, 5, 10, 15)]
    assert [len(page) for page in pages] == [max(min(number - start, 5), 0) for start in (0, 5, 10, 15)]


def test_a_page_of_k_holds_k_different_neighbours(library: Library, wrapped: Caller, plain: Caller) -> None:
    """More neighbours are looked at than are shown, with aggregations, too."""
    near = {**NEAR, "k": 200}
    ranking = [hit["_id"] for hit in plain.search(index=library.news, body={"knn": near, "size": 200})["hits"]["hits"]]
    truth = expected(ranking)
    for more in ({}, {"aggs": PRICES}):
        answer = wrapped.search(index=library.news, body={"knn": NEAR, **more})
        shown = [hit["_id"] for hit in answer["hits"]["hits"]]
        assert len(shown) == 10
        sure = [one for one in shown if one not in truth.doubtful]
        assert sure == truth.kept[: len(sure)]
        assert answer["ndd"]["raised"] == {"k": 20}
    assert wrapped.search(index=library.news, body={"knn": {**NEAR, "num_candidates": 12}})["ndd"]["raised"] == {
        "k": 20,
        "num_candidates": 20,
    }


def test_aggregations_are_over_the_neighbours_that_were_asked_for(
    library: Library, connect: Connect, proxy: Proxy, plain: Caller
) -> None:
    """They are those of the plain client, however many neighbours the page is made of; it takes one trip."""
    caller = connect(proxy.url, cache=False)
    for size in (5, 10):
        body = {"knn": NEAR, "aggs": PRICES, "size": size}
        proxy.reset()
        answer, of_engine = caller.search(index=library.news, body=body), plain.search(index=library.news, body=body)
        for hit in of_engine["aggregations"]["best"]["hits"]["hits"]:
            del hit["_source"]["ndd"]
        assert answer["aggregations"] == of_engine["aggregations"]
        assert {**answer["hits"], "hits": 0} == {**of_engine["hits"], "hits": 0}
        assert len(answer["hits"]["hits"]) == size
        assert len(proxy.searches) == 1
    with_timeout = caller.ask("POST", f"/{library.news}/_search", body, {"timeout": "10s"})  # not for an `_msearch`
    assert with_timeout["aggregations"]["prices"]["value"] == 10
    assert "raised" not in with_timeout["ndd"]


@pytest.mark.parametrize("total", ["hits", "groups", "estimate"])
def test_windows_of_neighbours_grow_with_the_page_whatever_the_total_counts(
    total: Literal["hits", "groups", "estimate"], library: Library, connect: Connect, plain: Caller
) -> None:
    """Every neighbour is on a page or below one, and the pages that the total promises have hits."""
    body = {"knn": {**NEAR, "k": 60}, "size": 10}
    nearest = plain.search(index=library.news, body={**body, "size": 60})["hits"]["hits"]
    caller = connect(window=20, total=total)
    shown: list[str] = []
    listed: set[str] = set()
    promised: dict[str, Any] = {"value": 1, "relation": "gte"}
    while len(shown) < promised["value"] or promised["relation"] == "gte":
        answer = caller.search(index=library.news, body={**body, "from": len(shown)})
        page, promised = answer["hits"]["hits"], answer["hits"]["total"]
        assert len(page) == min(10, promised["value"] - len(shown)) > 0
        shown += [hit["_id"] for hit in page]
        listed |= {copy["_id"] for hit in page for copy in copies(hit)} | {one["_id"] for one in answer["ndd"]["late"]}
    assert len(shown) == len(set(shown)) == promised["value"] <= 60
    assert {hit["_id"] for hit in nearest} <= listed.union(shown)


def test_all_pages_of_neighbours_tell_the_same_number_of_groups(library: Library, connect: Connect) -> None:
    caller = connect(window=4, total="estimate", group_by=["site", "language"], cache=False)  # no sample tells these
    pages = [{"knn": {**NEAR, "k": 6}, "size": 3, "from": start} for start in (0, 3)]
    assert len({str(caller.search(index=library.news, body=page)["ndd"]["unique"]) for page in pages}) == 1


def test_pages_of_a_knn_query_are_the_same_cached_or_not_and_show_no_more_than_the_engine(
    library: Library, connect: Connect, plain: Caller
) -> None:
    """One limit holds on all of them, that of the engine for all its shards; no page repeats another."""
    body = {"query": {"knn": {**NEAR, "k": 30}}, "size": 10}
    most = plain.search(index=library.news, body=body)["hits"]["total"]["value"]
    cached, fresh = connect(window=20), connect(window=20, cache=False)
    walks = [
        [caller.search(index=library.news, body={**body, "from": start}) for start in range(0, most + 20, 10)]
        for caller in (cached, cached, fresh)
    ]
    ids = [[[hit["_id"] for hit in answer["hits"]["hits"]] for answer in walk] for walk in walks]
    assert ids[0] == ids[1] == ids[2]
    shown = [id for page in ids[0] for id in page]
    assert len(shown) == len(set(shown)) <= most
    assert [len(page) for page in ids[0][:3]] == [10, 10, 10]
    totals = [[answer["hits"]["total"]["value"] for answer in walk] for walk in walks]
    assert totals[0] == totals[1] == totals[2]
    assert max(totals[0]) <= most
