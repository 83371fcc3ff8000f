"""Several indexes in one search: aliases, data streams, recipes, and indexes that have no sketches."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

import ndd_search as ndd
from ndd_search.indexing.rate_and_retries import Retry
from ndd_search.indexing.scan import snapshot
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, Library, bulk
from tests.wrapping.library import BAR, RECIPE, actions, documents, expected
from tests.wrapping.test_searches import MATCH, pages

pytestmark = pytest.mark.one_kind_of_client


@pytest.fixture
def stream(engine: Engine) -> Iterator[str]:
    """A data stream with every document, on two backing indexes."""
    name = f"ndd-stream-{uuid.uuid4().hex[:8]}"
    with engine.client() as client:
        template = {
            "index_patterns": [f"{name}*"],
            "priority": 900,
            "data_stream": {},
            "template": {
                "settings": {"number_of_replicas": 0},
                "mappings": {"properties": {"@timestamp": {"type": "date"}, **mapping_properties()}},
            },
        }
        caller = Caller(client, asynchronous=False)
        caller.ask("PUT", f"/_index_template/{name}", template)
        acts = [{**one, "_op_type": "create", "@timestamp": one["published"]} for one in actions(name, engine)]
        for one in acts:
            one.pop("vector", None)
        half = len(acts) // 2
        bulk(engine, client, acts[:half])
        caller.ask("POST", f"/{name}/_rollover")
        bulk(engine, client, acts[half:])
        yield name
        if engine.family == "opensearch":  # the published jars of Elasticsearch cannot delete one
            caller.ask("DELETE", f"/_data_stream/{name}")
            caller.ask("DELETE", f"/_index_template/{name}")


def kept_of(caller: Caller, index: str) -> list[tuple[str, str]]:
    """Index and id of every hit shown."""
    found = [hit for page in pages(caller, index, {"query": MATCH}) for hit in page["hits"]["hits"]]
    return [(hit["_index"], hit["_id"]) for hit in found]


def ranking_of(caller: Caller, index: str) -> list[tuple[str, str]]:
    """Index and id of what the engine itself finds, best first."""
    found = caller.search(index=index, body={"query": MATCH, "size": 1000})["hits"]["hits"]
    return [(hit["_index"], hit["_id"]) for hit in found]


def test_a_data_stream_is_collapsed_across_its_backing_indexes(stream: str, wrapped: Caller, plain: Caller) -> None:
    ranking = ranking_of(plain, stream)
    truth = expected([id for _, id in ranking])
    assert len({index for index, _ in ranking}) == 2
    assert [id for _, id in kept_of(wrapped, stream) if id not in truth.doubtful] == truth.kept


def test_hits_of_an_index_without_sketches_stand_alone_in_an_alias(
    library: Library, wrapped: Caller, plain: Caller
) -> None:
    ranking = ranking_of(plain, library.mixed)
    truth = expected([id for index, id in ranking if index == library.news])
    got = kept_of(wrapped, library.mixed)
    assert [id for index, id in got if index == library.news and id not in truth.doubtful] == truth.kept
    assert [id for index, id in got if index == library.bare] == [id for index, id in ranking if index == library.bare]
    block = wrapped.search(index=library.mixed, body={"query": MATCH, "size": 300})["ndd"]
    assert block["lacking"] == {"missing": len(documents())}


def test_a_copy_with_the_same_id_in_another_index_is_told_from_its_original(
    engine: Engine, index: str, connect: Connect
) -> None:
    """Wherever a response names a hit, it names the index, too."""
    text, rest = documents()[0]["body"], {"query": {"match_all": {}}, "size": 1, "sort": [{"place": "asc"}]}
    names = [f"{index}-{letter}" for letter in "ab"]
    properties = {**mapping_properties(), "place": {"type": "integer"}}
    with engine.client() as client:
        for place, name in enumerate(names):
            client.indices.create(index=name, body={"mappings": {"properties": properties}})
            acts = [{"_index": name, "_id": "1", "body": text, "place": 2 * place}]
            acts += [{"_index": name, "_id": "2", "body": f"another text {place} of its own", "place": 1}]
            bulk(engine, client, list(ndd.with_sketches(acts, fields=["body"])))
        try:
            caller = connect(window=1)
            both = ",".join(names)
            first = caller.search(index=both, body={**rest, "ndd": {"max_window": 1}})
            later = [caller.search(index=both, body={**rest, "from": start, "ndd": True}) for start in (1, 2, 3)]
            shown = caller.search(index=both, body={**rest, "size": 4, "ndd": {"mode": "annotate"}})["hits"]["hits"]
        finally:
            client.indices.delete(index=both)
    assert (first["hits"]["hits"][0]["_index"], first["hits"]["hits"][0]["_id"]) == (names[0], "1")
    (late,) = [one for page in later for one in page["ndd"]["late"]]
    named = {name: late[name] for name in ("_index", "_id", "duplicate_of", "duplicate_of_index")}
    assert named == {"_index": names[1], "_id": "1", "duplicate_of": "1", "duplicate_of_index": names[0]}
    (copy,) = [hit for hit in shown if "ndd.duplicate_of" in hit.get("fields", {})]
    assert (copy["_index"], copy["fields"]["ndd.duplicate_of_index"]) == (names[1], [names[0]])


def test_sketches_of_another_recipe_stand_alone(library: Library, wrapped: Caller, plain: Caller) -> None:
    half = {one["_id"] for one in documents()[: len(documents()) // 2]}
    ranking = [id for _, id in ranking_of(plain, library.two)]
    truth = expected(ranking, lacking=[id for id in ranking if id not in half])
    assert [id for _, id in kept_of(wrapped, library.two) if id not in truth.doubtful] == truth.kept
    block = wrapped.search(index=library.two, body={"query": MATCH, "size": 200})["ndd"]
    assert (block["recipe"], block["lacking"]) == (RECIPE.id, {"foreign": len(documents()) - len(half)})
    assert block["warnings"] == []


def test_a_recipe_that_the_index_does_not_hold_is_a_warning(library: Library, connect: Connect) -> None:
    caller = connect(recipe=ndd.Recipe.words(size=7))
    block = caller.search(index=library.news, body={"query": MATCH})["ndd"]
    (warning,) = block["warnings"]
    assert "sketches of another recipe than w7-k64-v4" in warning
    assert block["hidden"] == 0


def test_a_target_that_is_partly_missing_is_searched_as_the_user_allowed(library: Library, wrapped: Caller) -> None:
    answer = wrapped.ask(
        "POST", f"/{library.news},ndd-not-there/_search", {"query": MATCH}, {"ignore_unavailable": "true"}
    )
    assert answer["ndd"]["hidden"] > 0


def test_responses_of_two_searches_merge_into_one_page(library: Library, wrapped: Caller, plain: Caller) -> None:
    sketches = ["ndd.sketch", "ndd.recipe"]
    bodies = [
        {
            "query": {"bool": {"must": MATCH, "filter": {"term": {"language": name}}}},
            "size": 200,
            "docvalue_fields": sketches,
        }
        for name in ("en", "de")
    ]
    for caller in (plain, wrapped):
        responses = [caller.search(index=library.news, body=body) for body in bodies]
        merged = ndd.merge(responses, by="reciprocal_rank", size=200, min_similarity=BAR)
        shown = [hit["_id"] for hit in merged["hits"]["hits"]]
        hidden = [
            one["_id"]
            for hit in merged["hits"]["hits"]
            for one in hit.get("inner_hits", {}).get("near_duplicates", {}).get("hits", {}).get("hits", [])
        ]
        truth = expected([*shown, *hidden])
        assert [one for one in shown if one not in truth.doubtful] == truth.kept
        assert sorted([*shown, *hidden]) == sorted(one["_id"] for one in documents())
        assert merged["hits"]["total"] == {"value": len(shown), "relation": "eq"}


@pytest.mark.newest_servers
def test_hits_of_equal_rank_in_several_indexes_are_all_read(engine: Engine, connect: Connect) -> None:
    """By the pages of a cursor and by the snapshot of a scan. OpenSearch numbers the documents of each index alike."""
    name = f"ndd-ties-{uuid.uuid4().hex[:8]}"
    words = [f"word{number}" for number in range(60)]
    ids = {str(number) for number in range(20)}
    acts = [{"_index": f"{name}-{int(id) % 2}", "_id": id, "body": " ".join(words[int(id) :])} for id in ids]
    with engine.client() as client:
        try:
            for index in (f"{name}-0", f"{name}-1"):
                settings = {"number_of_shards": 1, "number_of_replicas": 0}
                client.indices.create(
                    index=index, body={"settings": settings, "mappings": {"properties": mapping_properties()}}
                )
            bulk(engine, client, list(ndd.with_sketches(acts, fields=["body"])))
            shown: list[str] = []
            cursor: bool | str | None = True
            caller = connect(min_similarity="identical", window=5)
            while cursor is not None:
                body = {"query": {"match_all": {}}, "size": 3, "ndd": {"cursor": cursor}}
                page = caller.search(index=f"{name}-*", body=body)
                shown += [hit["_id"] for hit in page["hits"]["hits"]]
                cursor = page["ndd"]["cursor"]
            assert (len(shown), set(shown)) == (len(ids), ids)
            with snapshot(client, f"{name}-*", Retry()) as now:
                read = [hit["_id"] for hits in now.pages({"query": {"match_all": {}}}, 3) for hit in hits]
            assert (len(read), set(read)) == (len(ids), ids)
        finally:
            client.indices.delete(index=f"{name}-0,{name}-1")
