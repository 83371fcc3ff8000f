"""Stored marks and the reader of a search: a copy is shown whenever what it is a copy of is not among the hits."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.corpus.group_marks import mark
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, bulk

WORDS = [f"word{number}" for number in range(500)]
TEXT = " ".join(random.Random(11).sample(WORDS, 80))
MARKET: dict[str, Any] = {"match": {"body": "market"}}
FOR_ALL: dict[str, Any] = {"term": {"reader": "all"}}


@pytest.fixture
def marked(engine: Engine, index: str) -> Iterator[str]:
    """An original for editors alone and two copies for all, marked as one group; an alias of what all read."""
    found = [
        {"_index": index, "_id": id, "reader": reader, "body": f"{TEXT} market {' '.join(more)}"}
        for id, reader, more in (("original", "editors", []), ("copy", "all", ["desk"]), ("another", "all", ["wire"]))
    ]
    properties = {**mapping_properties(), "reader": {"type": "keyword"}}
    alias = f"{index}-{uuid.uuid4().hex[:6]}"
    with engine.client() as client:
        body = {"mappings": {"properties": properties}, "aliases": {alias: {"filter": FOR_ALL}}}
        client.indices.create(index=index, body=body)
        bulk(engine, client, list(ndd.with_sketches(found, fields=["body"])))
        mark(client, index, [{"document": one["_id"], "group": "original", "size": 3} for one in found])
        client.indices.refresh(index=index)
        yield alias


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_a_copy_is_shown_where_its_original_is_not_readable_filtered_out_or_deleted(
    engine: Engine, index: str, marked: str, connect: Connect
) -> None:
    caller = connect(cache=False, frequency_table=False, group_by=["ndd.group"])

    def shown(target: str, query: dict[str, Any]) -> list[list[str]]:
        hits = caller.search(index=target, body={"query": query})["hits"]["hits"]
        groups = [
            [hit, *hit.get("inner_hits", {}).get("near_duplicates", {"hits": {"hits": []}})["hits"]["hits"]]
            for hit in hits
        ]
        return [sorted(one["_id"] for one in group) for group in groups]

    assert shown(index, MARKET) == [["another", "copy", "original"]]
    copies = [["another", "copy"]]
    assert shown(marked, MARKET) == copies  # not readable
    assert shown(index, {"bool": {"must": MARKET, "filter": FOR_ALL}}) == copies
    with engine.client() as client:
        client.delete(index=index, id="original", refresh=True)
    assert shown(index, MARKET) == copies


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_documents_of_a_stored_group_are_one_hit_until_their_text_changes(
    engine: Engine, index: str, connect: Connect
) -> None:
    """Texts that do not resemble each other show what the group alone does."""
    rng = random.Random(12)
    texts = {id: " ".join([*rng.sample(WORDS, 60), "market"]) for id in ("a", "b", "c")}
    acts = [{"_index": index, "_id": id, "body": text} for id, text in texts.items()]
    caller = connect(cache=False, frequency_table=False, group_by=["ndd.group"])

    def groups() -> int:
        return len(caller.search(index=index, body={"query": MARKET})["hits"]["hits"])

    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        bulk(engine, client, list(ndd.with_sketches(acts, fields=["body"])))
        assert groups() == 3
        mark(client, index, [{"document": id, "group": "a", "size": 3} for id in texts])
        client.indices.refresh(index=index)
        assert groups() == 1
        client.delete(index=index, id="a", refresh=True)
        assert groups() == 1
        update = {"_op_type": "update", "_index": index, "_id": "b", "doc": {"body": f"{texts['b']} and more"}}
        bulk(engine, client, list(ndd.with_sketches([update], fields=["body"])))
        assert groups() == 2
