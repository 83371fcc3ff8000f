"""Every kind of search, compared with the plain engine's own ranking collapsed by true resemblance."""

from __future__ import annotations

from typing import Any

import pytest

from ndd_search.core.sketching.estimate_similarity import standard_error
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, Library, bulk
from tests.wrapping.library import BAR, DIMENSIONS, RECIPE, actions, documents, expected, jaccard, mapping

pytestmark = pytest.mark.one_kind_of_client

MATCH = {"match": {"body": "market"}}
NEAR = {"field": "vector", "query_vector": [1.0] * DIMENSIONS, "k": 200, "num_candidates": 200}
AFTER = {"range": {"price": {"gte": 8}}}

# Name: the request, whose own first hits are what the wrapped client is to collapse.
SEARCHES: dict[str, Any] = {
    "match": {"query": MATCH},
    "everything": {},
    "bool with filters": {
        "query": {
            "bool": {
                "must": MATCH,
                "filter": [{"term": {"language": "en"}}, AFTER],
                "must_not": [{"term": {"site": "site3"}}],
                "should": [{"match": {"title": "report"}}],
            }
        }
    },
    "function_score": {
        "query": {
            "function_score": {
                "query": MATCH,
                "functions": [
                    {"linear": {"price": {"origin": 10, "scale": 5}}},
                    {"filter": {"term": {"language": "de"}}, "weight": 3},
                ],
            }
        }
    },
    "field_value_factor": {"query": {"function_score": {"query": MATCH, "field_value_factor": {"field": "price"}}}},
    "rescore": {
        "query": MATCH,
        "rescore": {"window_size": 30, "query": {"rescore_query": {"match": {"title": "report"}}, "query_weight": 0.3}},
    },
    "sort by field": {"query": MATCH, "sort": [{"price": "desc"}, {"published": "asc"}]},
    "sort with ties": {"query": {"match_all": {}}, "sort": ["language"], "track_scores": True},
    "collapse on a keyword": {
        "query": MATCH,
        "collapse": {"field": "site", "inner_hits": {"name": "more", "size": 2, "_source": ["price"]}},
    },
    "sequence numbers": {"query": MATCH, "min_score": 0.005, "version": True, "seq_no_primary_term": True},
    "aggregations": {
        "query": MATCH,
        "aggs": {"languages": {"terms": {"field": "language"}}, "mean": {"avg": {"field": "price"}}},
        "post_filter": AFTER,
    },
    "suggest": {"query": MATCH, "suggest": {"meant": {"text": "markte", "term": {"field": "body"}}}},
    "highlight": {"query": MATCH, "highlight": {"fields": {"body": {"number_of_fragments": 1}}}},
    "min_score": {"query": MATCH, "min_score": 0.05, "explain": True, "version": True, "seq_no_primary_term": True},
    "words that name other searches": {"query": {"match": {"body": "market linear hybrid knn rrf"}}},
    "kNN": {"knn": NEAR},
    "kNN with a filter": {"knn": {**NEAR, "filter": AFTER}},
    "kNN as a query": {"query": {"knn": NEAR}},
    "kNN beside a query": {"query": MATCH, "knn": NEAR},
    "retriever standard": {"retriever": {"standard": {"query": MATCH, "filter": AFTER}}},
    "retriever knn": {"retriever": {"knn": NEAR}},
    "retriever rescorer": {"retriever": {"rescorer": {"retriever": {"standard": {"query": MATCH}}, "rescore": {
        "window_size": 1000, "query": {"rescore_query": {"match": {"title": "report"}}, "query_weight": 0.3},
    }}}},
}  # fmt: skip
ONLY_ELASTICSEARCH = ("kNN", "retriever")
OF_CANDIDATES = [name for name in SEARCHES if "knn" in name.lower() and not name.startswith("words")]
IN_ONE_PHASE = {
    "rescore",
    "collapse on a keyword",
    "min_score",
    *(name for name in SEARCHES if name.startswith(ONLY_ELASTICSEARCH)),
}  # always


def search_named(name: str, library: Library) -> dict[str, Any]:
    if name.startswith(ONLY_ELASTICSEARCH) and library.engine.family != "elasticsearch":
        pytest.skip(f"{name}: OpenSearch does it with a plugin that the published jars do not have")
    given: dict[str, Any] = SEARCHES[name]
    return given


def as_plain(hit: dict[str, Any]) -> dict[str, Any]:
    """A hit of a wrapped client without what we add to it."""
    inner = {name: found for name, found in hit.get("inner_hits", {}).items() if name != "near_duplicates"}
    rest = {name: value for name, value in hit.items() if name != "inner_hits"}
    return {**rest, **({"inner_hits": inner} if inner else {})}


def copies(hit: dict[str, Any]) -> list[dict[str, Any]]:
    found: dict[str, Any] = hit.get("inner_hits", {}).get("near_duplicates", {}).get("hits", {})
    assert not found or found["total"] == {"value": len(found["hits"]), "relation": "eq"}
    hits: list[dict[str, Any]] = found.get("hits", [])
    return hits


def pages(caller: Caller, index: str, body: dict[str, Any], size: int = 20) -> list[dict[str, Any]]:
    """Every page of a search, the empty one after the end included."""
    made: list[dict[str, Any]] = []
    while not made or made[-1]["hits"]["hits"]:
        assert len(made) < 40, "the pages have no end"
        made.append(caller.search(index=index, body={**body, "size": size, "from": size * len(made)}))
    return made


@pytest.mark.parametrize(
    ("name", "splits"), [*((name, True) for name in SEARCHES), *((name, False) for name in list(SEARCHES)[::3])]
)
def test_all_pages_agree_with_true_resemblance_and_change_nothing_else(
    name: str, splits: bool, library: Library, connect: Connect, record_property: Any
) -> None:
    body = search_named(name, library)
    whole = connect(wrapped=False).search(
        index=library.news, body={**body, "size": 1000, "_source": {"excludes": ["ndd"]}}
    )
    of_engine = {hit["_id"]: hit for hit in whole["hits"]["hits"]}
    truth = expected(list(of_engine))
    caller = connect(cache=False, window=100 if splits else 20, splits=splits, enabled=["unranked"])
    got = pages(caller, library.news, body)
    shown = [hit for page in got for hit in page["hits"]["hits"]]
    ids = [hit["_id"] for hit in shown]

    assert len(ids) == len(set(ids))
    assert all(len(page["hits"]["hits"]) == 20 for page in got[:-2])
    assert [one for one in ids if one not in truth.doubtful] == truth.kept
    late = [one["_id"] for page in got for one in page["ndd"]["late"]]
    assert {*ids, *late, *(copy["_id"] for hit in shown for copy in copies(hit))} == set(of_engine)
    for hit in shown:
        assert as_plain(hit) == of_engine[hit["_id"]]
        for copy in copies(hit):
            (similarity,) = copy["fields"].pop("ndd.similarity")
            assert abs(similarity - jaccard(hit["_id"], copy["_id"])) < 4.5 * standard_error(0.5, RECIPE.k)
            assert similarity >= BAR
            assert {**copy, "fields": copy["fields"]} == {"fields": {}, **of_engine[copy["_id"]]}
    first, last = got[0], got[-1]
    assert {page["ndd"]["strategy"] for page in got} == {
        "two_phases" if splits and name not in IN_ONE_PHASE else "one_phase"
    }
    assert {key: value for key, value in first.items() if key not in ("took", "hits", "ndd")} == {
        key: value for key, value in whole.items() if key not in ("took", "hits")
    }
    assert first["hits"].get("max_score") == whole["hits"].get("max_score")
    assert last["ndd"]["exhausted"]
    assert last["hits"]["total"] == {"value": len(ids), "relation": "eq"}
    assert last["ndd"]["kept"] == len(ids)
    assert last["ndd"]["hidden"] == len(of_engine) - len(ids)
    if name in OF_CANDIDATES:
        assert first["hits"]["total"] == whole["hits"]["total"]
    elif not first["ndd"]["exhausted"]:
        assert first["hits"]["total"] == {"value": first["ndd"]["kept"], "relation": "gte"}
    record_property("doubtful", f"{len(truth.doubtful)} of {len(of_engine)}")


def test_the_oracle_leaves_little_in_doubt_and_knows_copies() -> None:
    truth = expected([one["_id"] for one in documents()])
    assert len(truth.doubtful) <= len(documents()) // 8
    assert len(documents()) - len(truth.leader.keys() & set(truth.kept)) > 40


def test_a_rescorer_shows_as_many_hits_as_it_rescores(library: Library, connect: Connect) -> None:
    """Elasticsearch refuses a page that is longer than its window, and returns the whole window where none is named."""
    body = search_named("retriever rescorer", library)
    rescore = {**body["retriever"]["rescorer"]["rescore"], "window_size": 25}
    body = {"retriever": {"rescorer": {**body["retriever"]["rescorer"], "rescore": [rescore]}}}
    plain, caller = connect(wrapped=False), connect(cache=False)
    engines = plain.search(index=library.news, body=body)["hits"]["hits"]
    found = caller.search(index=library.news, body=body)
    shown = [one["_id"] for hit in found["hits"]["hits"] for one in (hit, *copies(hit))]
    assert len(engines) == found["ndd"]["examined"] == 25
    assert sorted(shown) == sorted(hit["_id"] for hit in engines)
    assert (found["ndd"]["degraded"], found["ndd"]["hidden"] > 0) == (None, True)


def test_entries_of_one_form_that_are_kept_apart_are_told_with_the_option_that_joins_them(
    engine: Engine, index: str, connect: Connect
) -> None:
    airport = "Airport {0} is a small public airport with one runway that lies ten kilometres to the north of the town"
    airports = [{"_id": str(number), "title": "", "body": airport.format(f"Name{number}")} for number in range(16)]
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(engine, client, actions(index, engine, where=[*airports, *documents()[:100]]))
    caller = connect(min_similarity="auto", window=100)
    search = {"query": {"match": {"body": "airport"}}, "size": 10}
    [warning] = caller.search(index=index, body=search)["ndd"]["warnings"]
    joined = caller.search(index=index, body={**search, "ndd": {"min_similarity": 0.7}})["ndd"]
    assert warning.startswith("10 of 10 shown hits are short texts")
    assert "set min_similarity=0.7" in warning
    assert (joined["kept"], joined["warnings"]) == (1, [])
