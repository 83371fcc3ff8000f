"""Packed sketches on live servers: written, read beside integers, and converted both ways."""

from __future__ import annotations

from typing import Any

import ndd_search as ndd
from ndd_search.core.sketching.stored_sketch import STORAGES, SketchField, Storage
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.doctor import Doctor
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.indexed import check, stored
from tests.wrapping.conftest import bulk

WORDS = "steel works cut emissions by a third before the decade ends say ministers on friday in the city of"
PLACES = ("Leeds", "Porto", "Turin")
TEXTS = [f"{place} {WORDS} {place} {' '.join(place + str(n) for n in range(20))}" for place in PLACES]

FORMS = SketchField().values
CONVERSIONS: tuple[tuple[Storage | None, int, int], ...] = (  # to a form, and how many documents then have each
    (None, 3, 3),
    ("packed", 0, 6),
    (None, 0, 6),
    ("integers", 6, 0),
)


def test_a_mixed_index_is_searched_as_one_and_converted_in_both_directions(engine: Engine, index: str) -> None:
    """Three texts, each stored in every form, are three groups, whatever form each copy has."""
    documents = {f"{number}-{storage}": {"text": text} for storage in STORAGES for number, text in enumerate(TEXTS)} | {
        "empty": {"text": "!"}
    }
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        for storage in STORAGES:
            some = [{"_id": id, **one} for id, one in documents.items() if id.endswith((storage, "empty"))]
            for action in ndd.with_sketches(some, "text", storage=storage, keys=8):
                client.index(index=index, id=action.pop("_id"), body=action)
        expected = {id: {**one, "ndd_keys": _keys(one)} for id, one in documents.items()}
        check(client, index, expected)
        _search(engine, index)
        for form, integers, packed in CONVERSIONS:
            report = Backfill(index=index, fields=["text"], storage=form, keys=8).run(client)
            assert (report.remaining, report.tally.refused, report.tally.left) == (0, {}, {})
            counts = [client.count(index=index, body={"query": {"exists": {"field": path}}}) for path in FORMS]
            assert [one["count"] for one in counts] == [integers, packed]
            check(client, index, expected)
            again = Backfill(index=index, fields=["text"], storage=form, keys=8, recheck=True).run(client)
            assert again.tally.written == 0
        _search(engine, index)


def test_numbers_of_groups_that_cannot_be_sampled_have_bounds_that_hold(engine: Engine, index: str) -> None:
    """Engines cannot sort by packed values, so there is no sample of the result."""
    texts = [
        f"{WORDS} {' '.join(f'a{group}b{n}' for n in range(40))} copy {n}" for group in range(40) for n in range(3)
    ]
    with engine.client() as client:
        properties = {**mapping_properties(), "kind": {"type": "keyword"}}
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        documents = [{"_index": index, "text": text, "kind": "k"} for text in texts]
        bulk(engine, client, list(ndd.with_sketches(documents, "text", storage="packed")))
        wrapped = ndd.wrap(client, min_similarity=0.6, window=30, cache=False)
        options = {"total": "estimate", "facets": ["kinds"]}
        body = {"query": {"match": {"text": "steel"}}, "aggs": {"kinds": {"terms": {"field": "kind"}}}, "ndd": options}
        block = wrapped.search(index=index, body=body)["ndd"]
    (facet,) = block["facets"]["kinds"]["buckets"]
    for found in (block["unique"], facet):
        assert found["relation"] == "estimate"
        assert found["low"] <= 40 <= found["high"]


def test_an_update_leaves_no_packed_values_of_the_old_text(engine: Engine, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        (before,) = ndd.with_sketches([{"text": TEXTS[0]}], "text", storage="packed")
        client.index(index=index, id="1", body=before)
        (update,) = ndd.with_sketches([{"_op_type": "update", "doc": {"text": TEXTS[1]}}], "text")
        client.update(index=index, id="1", body={"doc": update["doc"]})
        check(client, index, {"1": {"text": TEXTS[1]}})
        client.indices.delete(index=index)
        old = mapping_properties()
        del old["ndd"]["properties"]["packed"]  # as an earlier version of the template has it
        client.indices.create(index=index, body={"mappings": {"properties": old}})
        client.index(index=index, id="1", body=before, refresh=True)
        (finding,) = [one for one in Doctor(index=index).examine(client).findings if one.level == "error"]
        assert "100.0% of 1 sampled sketches are packed, and ndd.packed is not mapped" in finding.what
        Backfill(index=index, fields=["text"], storage="packed", recheck=True).run(client)
        check(client, index, {"1": {"text": TEXTS[0]}})


def _keys(document: dict[str, Any]) -> list[str]:
    keys: list[str] = sketch_fields(document, "text", keys=8)["ndd_keys"]
    return keys


def _search(engine: Engine, index: str) -> None:
    """Assert that searches, candidates and merged responses treat all forms alike."""
    with engine.client() as client, engine.client() as other:
        body: dict[str, Any] = {"query": {"match": {"text": "ministers"}}, "size": 10}
        hits = stored(client, index)
        plain = client.search(index=index, body={**body, "docvalue_fields": SketchField().read})
        merged = ndd.merge([plain])["hits"]["hits"]
        assert [list(hit.get("fields", {})) for hit in merged] == [[]] * 3
        wrapped = ndd.wrap(other, cache=False)
        for whole in ({}, {"timeout": "1m"}):  # which cannot be split
            answer = wrapped.search(index=index, body={**body, **whole})
            assert answer["ndd"]["hidden"] == 3
            for hit in answer["hits"]["hits"]:
                assert "ndd" not in hit["_source"]
                assert len(hit["inner_hits"]["near_duplicates"]["hits"]["hits"]) == 1
        near = CandidateSearch()
        values = SketchField().decode([hits["0-packed"]["fields"]], ndd.Recipe())[0]
        assert not isinstance(values, str)
        found = near.verified(values, client.search(index=index, body=near.body(values))["hits"]["hits"])
        assert {one.id for one in found} == {f"0-{storage}" for storage in STORAGES}
