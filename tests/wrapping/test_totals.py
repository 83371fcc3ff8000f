"""total="groups": every page shows the same total, and the pages hold as many hits as it says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.indexing.templates import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, bulk

GROUPS, COPIES, SIZE = 200, 3, 10
MATCH: dict[str, Any] = {"query": {"match": {"body": "market"}}, "size": SIZE}
WORDS = [f"word{number}" for number in range(2000)]


@dataclass(frozen=True)
class Articles:
    index: str
    newest: frozenset[str]


@pytest.fixture(scope="module")
def articles(engine: Engine) -> Iterator[Articles]:
    """Two hundred texts in three copies, in any order; the newest of each."""
    rng, index = random.Random(3), f"ndd-totals-{random.SystemRandom().randrange(2**32):08x}"
    found, newest = [], []
    for text in range(GROUPS):
        words = rng.choices(WORDS, k=60)
        days = rng.sample(range(1, 1000), COPIES)
        newest.append(f"{text}-{max(days)}")
        for day in days:
            body = " ".join([*words, *["market"] * rng.choice((1, 2, 3))])
            found.append({"_index": index, "_id": f"{text}-{day}", "day": day, "body": body})
    rng.shuffle(found)
    properties = {**mapping_properties(), "day": {"type": "integer"}}
    with engine.client() as client:
        settings = {"number_of_shards": 2}
        client.indices.create(index=index, body={"settings": settings, "mappings": {"properties": properties}})
        bulk(engine, client, list(ndd.with_sketches(found, fields=["body"])))
        yield Articles(index, frozenset(newest))
        client.indices.delete(index=index)


@pytest.mark.parametrize("cache", [True, False])
def test_the_pages_hold_what_the_total_says_and_it_is_the_same_on_all_of_them(
    cache: bool, articles: Articles, connect: Connect
) -> None:
    caller = connect(window=100, cache=cache, total="groups", keep=["newest:day"], frequency_table=False)
    starts = range(0, GROUPS + 2 * SIZE, SIZE) if cache else (0, 100, 190, 200)
    shown: list[str] = []
    for start in starts:
        answer = caller.search(index=articles.index, body={**MATCH, "from": start})
        assert answer["hits"]["total"] == {"value": GROUPS, "relation": "eq"}
        assert answer["ndd"]["unique"] == {"value": GROUPS, "relation": "eq", "low": GROUPS, "high": GROUPS}
        assert answer["ndd"]["late"] == []
        hits = answer["hits"]["hits"]
        assert len(hits) == (SIZE if start < GROUPS else 0)
        assert all(hit["inner_hits"]["near_duplicates"]["hits"]["total"]["value"] == COPIES - 1 for hit in hits)
        shown += [hit["_id"] for hit in hits]
    assert articles.newest.issuperset(shown)
    assert len(set(shown)) == len(shown)
    if cache:
        assert articles.newest == set(shown)


def test_a_total_that_max_window_ends_is_a_lower_bound_and_still_the_number_of_hits_on_the_pages(
    articles: Articles, connect: Connect
) -> None:
    caller = connect(window=50, max_window=150, frequency_table=False)
    body = {**MATCH, "ndd": {"total": "groups"}}
    first = caller.search(index=articles.index, body=body)
    total = first["hits"]["total"]
    assert total["relation"] == "gte"
    assert 50 <= total["value"] <= 150
    last = SIZE * (ceil(total["value"] / SIZE) - 1)
    for start, count in ((last, total["value"] - last), (last + SIZE, 0)):
        answer = caller.search(index=articles.index, body={**body, "from": start})
        assert answer["hits"]["total"] == total
        assert len(answer["hits"]["hits"]) == count
    hits = caller.search(index=articles.index, body=MATCH)["hits"]["total"]
    assert hits == {"value": GROUPS * COPIES, "relation": "eq"}  # the engine's own, unless it is asked for


@pytest.mark.parametrize(("mode", "total"), [("annotate", GROUPS * COPIES), ("demote", GROUPS * COPIES)])
def test_a_mode_that_shows_every_hit_counts_every_hit(
    mode: str, total: int, articles: Articles, connect: Connect
) -> None:
    caller = connect(mode=mode, total="groups", frequency_table=False)
    for start in (0, total - SIZE):
        answer = caller.search(index=articles.index, body={**MATCH, "from": start})
        assert answer["hits"]["total"] == {"value": total, "relation": "eq"}
        assert len(answer["hits"]["hits"]) == SIZE
