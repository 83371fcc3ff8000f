"""Six hundred documents in two hundred groups of three whose members rank far apart, with a window of a hundred."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.indexing.templates import mapping_properties
from ndd_search.middleware.observer import Observation
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, bulk

GROUPS, COPIES, SIZE, WINDOW = 200, 3, 10, 100
WORDS = [f"word{number}" for number in range(2000)]
RANKED: dict[str, Any] = {
    "function_score": {
        "query": {"match": {"body": "market"}},
        "field_value_factor": {"field": "weight"},
        "boost_mode": "replace",
    }
}
KEEP = {"keep": ["newest:day"], "members": "all"}


@dataclass(frozen=True)
class Articles:
    """The index, and the ids of each group, newest first, by group."""

    index: str
    groups: dict[str, list[str]]


class Seen:
    """An observer that counts the requests of each search."""

    def __init__(self) -> None:
        self.trips: list[int] = []

    def observe(self, seen: Observation) -> None:
        self.trips.append(seen.trips)


def group_of(id: str) -> str:
    return id.partition("-")[0]


@pytest.fixture(scope="module")
def articles(engine: Engine) -> Iterator[Articles]:
    """Copy c of text t has place 200 * c + t by weight; which copy is the newest is drawn."""
    rng, index = random.Random(7), f"ndd-whole-{uuid.uuid4().hex[:12]}"
    found, groups = [], {}
    for text in range(GROUPS):
        words = rng.choices(WORDS, k=60)
        days = rng.sample(range(1, 1000), COPIES)
        for copy, day in enumerate(days):
            place = GROUPS * copy + text
            fields = {"day": day, "weight": 1000 - place, "place": place, "desk": f"desk{copy}"}
            found.append({"_index": index, "_id": f"{text}-{copy}", **fields, "body": " ".join([*words, "market"])})
        groups[str(text)] = [f"{text}-{copy}" for copy in sorted(range(COPIES), key=lambda copy: -days[copy])]
    rng.shuffle(found)
    number = {"type": "integer"}
    properties = {**mapping_properties(keys=True), "day": number, "weight": number, "place": number}
    with engine.client() as client:
        settings = {"number_of_shards": 2}
        mappings = {"properties": {**properties, "desk": {"type": "keyword"}}}
        client.indices.create(index=index, body={"settings": settings, "mappings": mappings})
        bulk(engine, client, list(ndd.with_sketches(found, fields=["body"], keys=8)))
        yield Articles(index, groups)
        client.indices.delete(index=index)


def listed(hit: dict[str, Any]) -> list[str]:
    """The ids under a hit."""
    found = hit["inner_hits"]["near_duplicates"]["hits"]
    assert found["total"] == {"value": len(found["hits"]), "relation": "eq"}
    return [copy["_id"] for copy in found["hits"]]


def test_every_page_shows_the_newest_of_each_group_and_lists_the_rest_wherever_they_rank(
    articles: Articles, connect: Connect
) -> None:
    seen = Seen()
    caller = connect(window=WINDOW, frequency_table=False, observers=[seen])
    shown: list[str] = []
    for start in range(0, GROUPS, SIZE):
        body = {"query": RANKED, "size": SIZE, "from": start, "ndd": KEEP}
        answer = caller.search(index=articles.index, body=body)
        ids = [hit["_id"] for hit in answer["hits"]["hits"]]
        assert ids == [articles.groups[str(text)][0] for text in range(start, start + SIZE)]
        for hit in answer["hits"]["hits"]:
            assert sorted([hit["_id"], *listed(hit)]) == sorted(articles.groups[group_of(hit["_id"])])
            copies = [hit, *hit["inner_hits"]["near_duplicates"]["hits"]["hits"]]
            assert all(copy["_score"] == copy["_source"]["weight"] for copy in copies)
            assert all("ndd" not in copy["_source"] for copy in copies)
        assert answer["ndd"]["members"]["incomplete"] == []
        shown += ids
    assert len(set(map(group_of, shown))) == len(shown) == GROUPS
    print(seen.trips)
