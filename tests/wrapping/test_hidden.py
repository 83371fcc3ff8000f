"""Documents that a part of a search lists come without the sketch, as the hits do."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.indexing.templates import properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, Library, bulk
from tests.wrapping.library import actions, mapping
from tests.wrapping.test_searches import MATCH

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


STRATEGIES = ("one_phase", "two_phase", "one_trip")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_top_hits_come_without_sketches_and_as_the_user_asked(
    strategy: str, library: Library, wrapped: Caller, plain: Caller
) -> None:
    tops = {
        "best": {"top_hits": {"size": 2}},
        "titles": {"top_hits": {"size": 2, "_source": ["title"]}},
        "bare": {"top_hits": {"size": 2, "_source": False}},
        "whole": {"top_hits": {"size": 2, "_source": ["ndd.recipe", "price"]}},
    }
    aggregations = {"top_hits": {"terms": {"field": "language"}, "aggs": tops}}  # whatever it is called
    body = {"query": MATCH, "aggs": aggregations}
    sent = copy.deepcopy(body)
    of_engine = plain.search(index=library.news, body=body)["aggregations"]
    found = wrapped.search(index=library.news, body={**body, "ndd": {"strategy": strategy}})["aggregations"]
    assert body == sent
    body["fields"] = ["site"]  # which top_hits take over from the search
    named = wrapped.search(index=library.news, body={**body, "_source": False, "ndd": {"strategy": strategy}})
    whole = plain.search(index=library.news, body={**body, "_source": False})
    for bucket, other in zip(*(one["aggregations"]["top_hits"]["buckets"] for one in (named, whole)), strict=True):
        assert bucket["titles"] == other["titles"]
    assert len(found["top_hits"]["buckets"]) == 2
    for bucket, other in zip(found["top_hits"]["buckets"], of_engine["top_hits"]["buckets"], strict=True):
        assert bucket["whole"]["hits"]["hits"][0]["_source"]["ndd"] == {"recipe": "w3-k64-v1"}
        assert other["best"]["hits"]["hits"][0]["_source"].pop("ndd")
        assert other["best"]["hits"]["hits"][1]["_source"].pop("ndd")
        assert bucket == other


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_whatever_is_stored_beside_a_sketch_is_hidden_and_shown_to_him_who_names_it(
    strategy: str, engine: Engine, index: str, connect: Connect
) -> None:
    made = mapping(engine)
    made["mappings"]["properties"].update(properties(keys=True))
    documents = [{**one, "ndd": None} for one in actions(index, engine)]
    with engine.client() as client:
        client.indices.create(index=index, body=made)
        bulk(engine, client, list(ndd.with_sketches(documents, fields=["title", "body"], keys=8, numbers=True)))
    caller = connect(cache=False, strategy=strategy, numbers_must_match=True)
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
