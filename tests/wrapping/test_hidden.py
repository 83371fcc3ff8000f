"""Documents listed by any part of a search come without the sketch, as hits do."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import elasticsearch
import opensearchpy
import pytest

import ndd_search as ndd
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, Library, bulk
from tests.wrapping.library import actions, mapping
from tests.wrapping.test_searches import MATCH

pytestmark = pytest.mark.one_kind_of_client

YEAR = {"field": "published", "format": "yyyy"}
RESCORE = {"window_size": 1, "query": {"rescore_query": MATCH, "rescore_query_weight": 0}}  # not fetched in parts
INNER: dict[str, Any] = {"name": "more", "size": 3, "sort": ["price"]}


@pytest.mark.parametrize(
    "inner",
    [INNER, [INNER, {**INNER, "name": "titles", "_source": "title"}, {**INNER, "name": "bare", "_source": False}]],
)
def test_the_users_own_collapse_lists_hits_without_sketches(
    inner: Any, library: Library, wrapped: Caller, plain: Caller
) -> None:
    body = {"query": MATCH, "collapse": {"field": "site", "inner_hits": inner}}
    sent = copy.deepcopy(body)
    of_engine = {
        hit["_id"]: hit for hit in plain.search(index=library.news, body={**body, "size": 100})["hits"]["hits"]
    }
    shown = wrapped.search(index=library.news, body={**body, "ndd": {"window": 100}})["hits"]["hits"]
    assert body == sent
    for hit in shown:
        for name, found in hit["inner_hits"].items():
            if name == "near_duplicates":
                continue
            whole = of_engine[hit["_id"]]["inner_hits"][name]
            assert found["hits"]["total"] == whole["hits"]["total"]
            for one, other in zip(found["hits"]["hits"], whole["hits"]["hits"], strict=True):
                assert "ndd" not in one.get("_source", {})
                other.get("_source", {}).pop("ndd", None)
                assert one == other


def test_top_hits_come_without_sketches_and_as_the_user_asked(
    library: Library, connect: Connect, plain: Caller
) -> None:
    wrapped = connect(cache=False, window=40)
    tops = {
        "best": {"top_hits": {"size": 2}},
        "titles": {"top_hits": {"size": 2, "_source": ["title"]}},
        "bare": {"top_hits": {"size": 2, "_source": False}},
        "valued": {"top_hits": {"size": 2, "_source": False, "docvalue_fields": [YEAR]}},
        "hits": {"top_hits": {"size": 2}},
        "whole": {"top_hits": {"size": 2, "_source": ["ndd.recipe", "price"]}},
    }
    aggregations = {"top_hits": {"terms": {"field": "language"}, "aggs": tops}}  # whatever it is called
    body = {"query": MATCH, "aggs": aggregations}
    sent = copy.deepcopy(body)
    of_engine = plain.search(index=library.news, body=body)["aggregations"]
    found = wrapped.search(index=library.news, body=body)["aggregations"]
    assert body == sent
    keep = {"keep": ["newest:published"]}  # which reads that field of all hits
    kept = wrapped.search(index=library.news, body={**body, "ndd": keep})["aggregations"]
    beside = wrapped.search(index=library.news, body={**body, "rescore": RESCORE, "ndd": keep})["aggregations"]
    english = {"english": {"filter": {"term": {"language": "en"}}, "aggs": {"hits": {"top_hits": {"size": 2}}}}}
    inside = wrapped.search(index=library.news, body={**body, "aggs": english})["aggregations"]["english"]["hits"]
    assert not [hit for hit in inside["hits"]["hits"] if "ndd" in hit["_source"]]
    body["fields"] = ["site"]  # which top_hits take over from the search
    for collapse in ({}, {"collapse": {"field": "language"}}):  # whose field hits have, but not `top_hits`
        given = {**body, **collapse, "_source": False}
        named = wrapped.search(index=library.news, body={**given, "ndd": {"guards": ["same:language"]}})
        whole = plain.search(index=library.news, body=given)
        for bucket, other in zip(*(one["aggregations"]["top_hits"]["buckets"] for one in (named, whole)), strict=True):
            assert bucket["titles"] == other["titles"]
    assert len(found["top_hits"]["buckets"]) == 2
    for bucket, other in zip(found["top_hits"]["buckets"], of_engine["top_hits"]["buckets"], strict=True):
        assert bucket["whole"]["hits"]["hits"][0]["_source"]["ndd"] == {"recipe": "w3-k64-v4"}
        for name in ("best", "hits"):
            assert all(hit["_source"].pop("ndd") for hit in other[name]["hits"]["hits"])
        assert bucket == other
    assert found == kept
    for bucket, other in zip(found["top_hits"]["buckets"], beside["top_hits"]["buckets"], strict=True):
        assert [set(hit["fields"]) for hit in other["valued"]["hits"]["hits"]] == [{"published"}] * 2
        assert bucket["best"] == other["best"]


@pytest.mark.parametrize("splits", [False, True])
def test_documents_that_a_suggester_lists_come_as_the_user_asked(
    splits: bool, engine: Engine, index: str, connect: Connect
) -> None:
    """Engines read of them what the search reads of hits, so also what was added to it."""
    made = mapping(engine)
    made["mappings"]["properties"]["title"] = {"type": "text", "fields": {"begun": {"type": "completion"}}}
    with engine.client() as client:
        client.indices.create(index=index, body=made)
        bulk(engine, client, actions(index, engine))
    wanted = {"begun": {"prefix": "report", "completion": {"field": "title.begun", "size": 3}}}
    caller, plain = connect(cache=False, window=40, splits=splits), connect(wrapped=False)
    parts: list[dict[str, Any]] = [{}, {"docvalue_fields": ["site"]}, {"_source": False}]
    if engine.family == "elasticsearch":  # OpenSearch 3.8 fails for both
        parts.append({"collapse": {"field": "site"}})
    for asked in parts:
        body = {"query": MATCH, "suggest": wanted, **asked}
        of_engine = plain.search(index=index, body=body)["suggest"]
        for option in of_engine["begun"][0]["options"]:
            option.get("_source", {}).pop("ndd", None)
        for _ in range(2):
            given = {"keep": ["newest:published"], "guards": ["same:site"]}
            answer = caller.search(index=index, body={**body, "ndd": given})
            assert len(answer["suggest"]["begun"][0]["options"]) == 3
            assert answer["suggest"] == of_engine


@pytest.mark.parametrize("splits", [False, True])
def test_whatever_is_stored_beside_a_sketch_is_hidden_and_shown_to_him_who_names_it(
    splits: bool, engine: Engine, index: str, connect: Connect
) -> None:
    made = mapping(engine)
    made["mappings"]["properties"].update(mapping_properties())
    documents = [{**one, "ndd": None} for one in actions(index, engine)]
    with engine.client() as client:
        client.indices.create(index=index, body=made)
        bulk(engine, client, list(ndd.with_sketches(documents, fields=["title", "body"], keys=8, numbers=True)))
    caller = connect(cache=False, window=40, splits=splits, guards=["numbers"])
    for asked in ({}, {"fields": ["*"]}, {"_source": ["*"]}, {"_source": {"excludes": ["body"]}}):
        answer = caller.search(index=index, body={"query": MATCH, **asked})
        assert answer["ndd"]["degraded"] is None
        for hit in answer["hits"]["hits"]:
            shown = set(hit["_source"]) | set(hit.get("fields", {}))
            assert "title" in shown
            assert not [name for name in shown if name.startswith("ndd")]
    named = {"_source": ["ndd_keys"], "fields": ["ndd_keys", "ndd.nu*"]}
    for hit in caller.search(index=index, body={"query": MATCH, **named})["hits"]["hits"]:
        assert len(hit["_source"]["ndd_keys"]) == len(hit["fields"]["ndd_keys"]) == 8
        assert set(hit["fields"]) == {"ndd_keys", "ndd.numbers"}


def test_children_and_parents_come_without_sketches(engine: Engine, index: str, connect: Connect) -> None:
    made = mapping(engine)
    made["mappings"]["properties"]["family"] = {"type": "join", "relations": {"story": "version"}}
    with engine.client() as client:
        try:
            client.indices.create(index=index, body=made)
        except Exception as refused:
            if "type [join]" not in str(refused):
                raise
            pytest.skip("the published jars of Elasticsearch have no parents and children")
        stories = actions(index, engine)[:20]
        for number, one in enumerate(stories):
            one["routing"] = 1
            one["family"] = {"name": "version", "parent": stories[0]["_id"]} if number else "story"
        bulk(engine, client, stories)
    version = {"has_child": {"type": "version", "query": MATCH, "inner_hits": {"name": "v", "size": 30}}}
    story = {"has_parent": {"parent_type": "story", "query": MATCH, "inner_hits": {"_source": {"excludes": "body"}}}}
    caller = connect(cache=False)
    (parent,) = caller.search(index=index, body={"query": {"bool": {"must": [version]}}})["hits"]["hits"]
    found = parent["inner_hits"]["v"]["hits"]["hits"]
    assert len(found) == 19
    assert all(one["_source"]["body"] and "ndd" not in one["_source"] for one in found)
    for child in caller.search(index=index, body={"query": story})["hits"]["hits"]:
        (one,) = child["inner_hits"]["story"]["hits"]["hits"]
        assert one["_source"]["title"]
        assert not {"ndd", "body"} & set(one["_source"])


# Documents whose fields have our names and are not ours.
OWN: dict[str, Any] = {
    "text": {"ndd": "National Diet Database", "ndd_keys": ["cafe", "deadbeef"]},
    "object": {"ndd": {"other": 1, "recipe": "cake"}, "ndd_keys": {"a": 1}},
    "a list": {"ndd": [{"sketch": [1, 2], "numbers": 3}], "ndd_keys": ["0123abcd"]},
    "an object of ours by name": {"ndd": {"sketch": "of a house", "numbers": 7, "duplicate_of": "me"}},
    "nothing in it": {"ndd": {}, "ndd_keys": []},
    "null": {"ndd": None, "ndd_keys": None},
}


@pytest.mark.parametrize("name", OWN)
def test_fields_of_the_callers_own_with_our_names_come_back_as_they_are_stored(
    name: str, engine: Engine, index: str, connect: Connect
) -> None:
    """In an index without sketches every answer, the first one included, shows all that is stored."""
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine, sketches=False))
        bulk(engine, client, [{"_index": index, "_id": str(n), "body": "market", **OWN[name]} for n in range(4)])
    tops = {"languages": {"missing": {"field": "language"}, "aggs": {"best": {"top_hits": {"size": 2}}}}}
    plain, wrapped = connect(wrapped=False), connect(cache=False)
    for body in ({}, {"_source": ["*"]}, {"_source": {"excludes": ["body"]}}, {"aggs": tops}, {"_source": ["ndd*"]}):
        sent = {"query": MATCH, **body}
        expected = plain.search(index=index, body=sent)
        for _ in range(2):
            found = wrapped.search(index=index, body=sent)
            assert found["hits"]["hits"] == expected["hits"]["hits"]
            assert found.get("aggregations") == expected.get("aggregations")


def test_an_index_with_sketches_beside_one_with_such_fields_hides_its_own_only(
    engine: Engine, index: str, library: Library, wrapped: Caller
) -> None:
    """What is a sketch is decided document by document."""
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine, sketches=False))
        bulk(engine, client, [{"_index": index, "_id": "own", "body": "market market", **OWN["text"]}])
    for _ in range(2):
        found = wrapped.search(index=f"{index},{library.news}", body={"query": MATCH, "size": 200})["hits"]["hits"]
        assert {hit["_id"]: hit["_source"].get("ndd") for hit in found if "ndd" in hit["_source"]} == {
            "own": OWN["text"]["ndd"]
        }


def test_an_index_made_anew_without_sketches_shows_what_is_stored(engine: Engine, index: str, connect: Connect) -> None:
    """What was learnt of an index of the same name hides nothing of this one."""
    caller = connect(cache=False)
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(engine, client, actions(index, engine))
        assert caller.search(index=index, body={"query": MATCH})["ndd"]["hidden"] > 0
        client.indices.delete(index=index)
        client.indices.create(index=index, body=mapping(engine, sketches=False))
        own = {"body": "market", **OWN["an object of ours by name"]}
        bulk(engine, client, [{"_index": index, "_id": "1", **own}])
    for _ in range(2):
        (hit,) = caller.search(index=index, body={"query": MATCH})["hits"]["hits"]
        assert hit["_source"] == own


REFUSED: list[Any] = [
    *({"bogus": 1}, {"excludes": 5}, {"excludes": None}, {"includes": [["a"]]}, {"includes": {"a": 1}}),
    *(5, None, [1], {"exclude_vectors": "perhaps"}),
]


@pytest.mark.parametrize("source", REFUSED, ids=str)
def test_a_source_that_the_engine_refuses_stays_refused(
    source: Any, library: Library, connect: Connect, plain: Caller
) -> None:
    """`_source` goes to the engine with every key that it came with, in hits and in what lists hits."""
    wrapped = connect(cache=False, total="hits")
    bodies: list[dict[str, Any]] = [
        {"_source": source},
        {"aggs": {"best": {"top_hits": {"_source": source}}}},
        {"collapse": {"field": "site", "inner_hits": {"name": "more", "_source": source}}},
    ]
    wrapped.search(index=library.news, body={"query": MATCH})  # from now on the engine leaves out what is long
    for body in bodies:
        outcomes = []
        for caller in (plain, wrapped):
            try:
                outcomes.append(caller.search(index=library.news, body={"query": MATCH, **body})["hits"]["total"])
            except (elasticsearch.ApiError, opensearchpy.TransportError) as refused:
                outcomes.append(refused.status_code)
        assert outcomes[0] == outcomes[1], body


@pytest.mark.parametrize("source", ["title,price", ["title,price"], {"excludes": "body,title"}, {"include": "title"}])
def test_a_name_with_a_comma_in_a_body_is_one_name(source: Any, library: Library, wrapped: Caller) -> None:
    """Only the URL takes several names in one text."""
    engine_says = library.engine.client()
    with engine_says as client:
        whole = client.search(index=library.news, body={"query": MATCH, "_source": source, "size": 200})
    of_engine = {hit["_id"]: set(hit["_source"]) - {"ndd"} for hit in whole["hits"]["hits"]}
    for _ in range(2):
        for hit in wrapped.search(index=library.news, body={"query": MATCH, "_source": source})["hits"]["hits"]:
            assert set(hit["_source"]) == of_engine[hit["_id"]]


@pytest.mark.parametrize(
    "params",
    [
        {"_source": "title,ndd"},
        {"_source_includes": "title,ndd.recipe"},
        {"_source": "title", "_source_excludes": "ndd"},
        {"_source_exclude_vectors": "false"},
        {"_source_exclude_vectors": "false", "_source": "vector,ti*"},
    ],
    ids=str,
)
def test_what_the_url_says_of_the_source_holds(params: dict[str, str], library: Library, connect: Connect) -> None:
    """A URL that names the sketch gets it; any other URL gets what it names, without the sketch.

    The engine does not read the `_source` of the body beside one in the URL.
    """
    if "_source_exclude_vectors" in params and library.engine.name != "elasticsearch9":
        pytest.skip("Elasticsearch 9 knows this parameter")
    path, named = (
        f"/{library.news}/_search",
        any("ndd" in params.get(one, "") for one in ("_source", "_source_includes")),
    )
    whole = connect(wrapped=False).ask("POST", path, {"query": MATCH, "size": 200}, params)
    of_engine = {hit["_id"]: hit["_source"] for hit in whole["hits"]["hits"]}
    wrapped = connect(cache=False)
    for _ in range(2):
        answer = wrapped.ask("POST", path, {"query": MATCH, "_source": ["ndd.recipe"]}, params)
        assert answer["ndd"]["degraded"] is None
        for hit in answer["hits"]["hits"]:
            expected = dict(of_engine[hit["_id"]])
            assert named == ("ndd" in expected) or "_source_exclude_vectors" in params
            if not named:
                expected.pop("ndd", None)
            assert hit["_source"] == expected


def test_a_vector_that_is_read_and_saved_stays_in_the_index(engine: Engine, index: str, connect: Connect) -> None:
    """A DSL document with a dense vector asks for it by `exclude_vectors`; it comes back, and so it is saved again."""
    if engine.name != "elasticsearch9" or elasticsearch.VERSION[0] < 9:
        pytest.skip("elasticsearch-py 9 asks for vectors")
    caller = connect(cache=False)
    asynchronous = caller.asynchronous
    dsl = importlib.import_module("elasticsearch.dsl")  # from release 8.18 on
    base = dsl.AsyncDocument if asynchronous else dsl.Document
    story_class = type("Story", (base,), {"vector": dsl.DenseVector(dims=2), "body": dsl.Text()})
    where = {"using": caller.client, "index": index}
    with engine.client() as client:
        client.indices.create(
            index=index,
            body=mapping(engine)
            | {"mappings": {"properties": {"vector": {"type": "dense_vector", "dims": 2}, **mapping_properties()}}},
        )
        bulk(
            engine,
            client,
            list(
                ndd.with_sketches(
                    [{"_index": index, "_id": "1", "body": "market " * 9, "vector": [1.0, 0.5]}], fields=["body"]
                )
            ),
        )
    for _ in range(2):
        (found,) = caller.run(story_class.search(**where).query("match", body="market").execute())  # type: ignore[attr-defined]
        assert list(found.vector) == [1.0, 0.5]
        found.title = "changed"
        caller.run(found.save(**where, refresh=True))
    answer = caller.search(index=index, body={"query": MATCH, "_source": {"exclude_vectors": False}})
    assert answer["hits"]["hits"][0]["_source"]["vector"] == [1.0, 0.5]
