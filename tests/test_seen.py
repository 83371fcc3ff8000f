"""What was shown before: hits that resemble it in lists, and the memories of what users were shown."""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.paging.cache import Cache, MemoryCache
from ndd_search.core.paging.cache_entries import sealed
from ndd_search.errors import InvalidSketch
from tests.redis_server import Link

TEXTS = [" ".join(random.Random(number).choices([f"word{n}" for n in range(900)], k=40)) for number in range(5)]
PLACES = st.lists(st.sampled_from(range(5)), max_size=20)
CLOCK = [0.0]


@given(
    texts=PLACES,
    seen=PLACES,
    mode=st.sampled_from(["group", "drop", "demote", "annotate"]),
    window=st.integers(1, 25),
    native=st.booleans(),
)
def test_hits_that_resemble_what_was_seen_are_hidden_demoted_or_marked(
    texts: list[int], seen: list[int], mode: Any, window: int, native: bool
) -> None:
    """Leaders are those of the list that begins with what was seen; nothing is lost and no page repeats another."""
    hits = [{"body": TEXTS[text]} for text in texts]
    items: list[Any] = [TEXTS[one] if place % 2 else ndd.sketch(TEXTS[one]) for place, one in enumerate(seen)]
    guard: Any = {} if native else {"guards": ["same:price"]}  # no hit has one
    settings: Any = {"text": "body", "window": window, "min_similarity": 0.9, "mode": mode, "seen": items, **guard}
    hides = mode in ("group", "drop")
    page = ndd.collapse(hits, size=30, **settings)
    first = [rank for rank, text in enumerate(texts) if texts.index(text) == rank]
    known = [rank for rank, text in enumerate(texts) if text in seen and (hides or rank in first)]
    apart = [] if mode == "annotate" else known
    leaders = [rank for rank in first if rank not in apart]
    copies = [rank for rank in range(len(texts)) if rank not in (*first, *apart)]
    order = {"annotate": sorted([*leaders, *copies]), "demote": [*leaders, *copies]}.get(mode, leaders)
    assert [group.rank for group in page.groups] == order + (known if mode == "demote" else [])
    assert [(rank, item) for rank, item, _ in page.info.seen] == [(rank, seen.index(texts[rank])) for rank in known]
    assert {group.rank: group.seen for group in page.groups if group.seen is not None} == {
        rank: seen.index(texts[rank]) for rank in known if not hides
    }
    assert page.info.kept == len(page.groups)
    assert page.info.unique is not None
    assert page.info.unique.value == len(leaders if hides else first)  # a text that was seen is no result
    pages = [ndd.collapse(hits, size=4, from_=start, **settings) for start in range(0, 28, 4)]
    if mode != "demote":  # else hits move behind those of the window
        assert [one.rank for part in pages for one in part.groups] == [one.rank for one in page.groups]
    named = [rank for part in pages for rank, _, _ in part.info.seen]
    assert sorted(named) == known


def test_items_of_a_list_are_texts_hits_or_sketches() -> None:
    hits = [{"body": text, "price": 3} for text in TEXTS]
    seen = [{"body": TEXTS[1], "price": 3}, {"title": "no body"}, TEXTS[2], ndd.sketch(TEXTS[3]).tolist()]
    page = ndd.collapse(hits, text="body", seen=seen)
    assert [group.rank for group in page.groups] == [0, 4]
    assert [one[:2] for one in page.info.seen] == [(1, 0), (2, 2), (3, 3)]
    assert "item 2 of what was seen" in str(page.explain(2))
    # In doubt a hit is shown: a sketch says nothing about the price, which must match.
    page = ndd.collapse(hits, text="body", seen=seen, guards=["same:price"])
    assert [group.rank for group in page.groups] == [0, 2, 3, 4]
    books = [{"body": text, "isbn": "1"} for text in TEXTS[:2]]
    assert len(ndd.collapse(books[1:], text="body", seen=books[:1], group_by="isbn")) == 0
    assert len(ndd.collapse(books[1:], text="body", seen=books[:1], max_per=["isbn:1"])) == 1
    with pytest.raises(InvalidSketch):
        ndd.collapse(hits, text="body", seen=[[3, 2]])
    for one in (TEXTS[1], hits[1]):  # else its characters or names would be items, and hide nothing
        with pytest.raises(TypeError, match=r"seen must be a list of hits, got one (str|dict)"):
            ndd.collapse(hits, text="body", seen=one)


@pytest.fixture(params=["memory", "redis"])
def memory(request: pytest.FixtureRequest) -> ndd.plugins.SeenMemory:
    """A memory in every kind of cache, of three items for ten seconds of a clock that the tests set."""
    CLOCK[0] = 1e9
    return ndd.plugins.SeenMemory(cache_of(request), seconds=10.0, most_items=3, now=lambda: CLOCK[0])


def cache_of(request: pytest.FixtureRequest) -> Cache:
    if request.param == "memory":
        return MemoryCache()
    return shared_cache(request.getfixturevalue("redis_url"), uuid.uuid4().hex)


def shared_cache(url: str, prefix: str) -> Cache:
    cache: Cache = ndd.plugins.RedisCache(url, prefix=prefix, budget=20.0)
    return cache


def hit(id: str) -> dict[str, Any]:
    return {"_index": "news", "_id": id, "_score": 1.5, "_source": {"body": "secret"}}


def test_a_memory_keeps_the_newest_items_of_each_user_for_a_while(memory: ndd.plugins.SeenMemory) -> None:
    memory.add("ann", {"hits": {"hits": [hit("1"), hit("2")]}})
    memory.add("bob", [hit("9")])
    CLOCK[0] += 4
    memory.add("ann", [hit("3"), hit("1")])
    assert memory.of("ann") == [{"_index": "news", "_id": id} for id in "231"]
    CLOCK[0] += 0.5
    memory.add("ann", [hit("4")])
    assert memory.of("ann") == [{"_index": "news", "_id": id} for id in "314"]
    assert memory.of("bob") == [{"_index": "news", "_id": "9"}]
    CLOCK[0] += 6
    assert memory.of("bob") == []
    assert len(memory.of("ann")) == 3
    memory.forget("ann")
    assert memory.of("ann") == memory.of("nobody") == []


def test_a_memory_keeps_sketches_of_texts(memory: ndd.plugins.SeenMemory) -> None:
    memory.add("ann", [TEXTS[0], ndd.sketch(TEXTS[1])])
    page = ndd.collapse(TEXTS, seen=memory.of("ann"))
    assert list(page) == TEXTS[2:]
    wrong: Any
    for wrong in ("a text", {"_id": "1"}, [{"id": "1"}], 3, [3], [[3, 2]], [[1.5]], [b"abc"]):
        with pytest.raises((TypeError, InvalidSketch)):
            memory.add("ann", wrong)  # each search of this user would raise it for a week
    assert len(memory.of("ann")) == 2
    nobody: Any = None
    for call in (memory.of, lambda user: memory.add(user, [TEXTS[0]])):
        with pytest.raises(TypeError, match="a user must be a text, got None"):
            call(nobody)


def test_what_another_program_wrote_into_a_memory_is_no_item() -> None:
    cache = MemoryCache()
    memory = ndd.plugins.SeenMemory(cache)
    memory.add("ann", [hit("1"), TEXTS[0]])
    before, (key,) = memory.of("ann"), cache._entries
    assert len(before) == 2
    names = ["text", "5", "null", "[1.5]", "[3,2]", "[-1]", "[2147483648]", "[true]", '{"_id":5}']
    wrong = [5, None, ["[1]"], ["[1]", "now"], [[1], 5.0], *([name, time.time()] for name in names)]
    good = [[json.dumps(one), time.time()] for one in before]
    for value, expected in (([*wrong, *good], before), ({"a": 1}, []), (5, [])):
        entry = sealed(key, value)
        assert entry is not None
        cache.put(key, entry)
        assert memory.of("ann") == expected
    cache.put(key, b"damaged")
    assert memory.of("ann") == []


def test_the_memory_of_a_process_is_bounded_by_its_cache() -> None:
    memory = ndd.plugins.SeenMemory(MemoryCache(max_bytes=1000))
    for user in ("ann", "bob", "cleo", "dora", "emil"):
        memory.add(user, [np.array([1, 2, 3])])
    assert [len(memory.of(user)) for user in ("ann", "emil")] == [0, 1]
    for wrong in ({"seconds": 0}, {"most_items": 0}, {"most_items": 1001}):
        with pytest.raises(ValueError, match="must be"):
            ndd.plugins.SeenMemory(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a cache must have the methods of Cache"):
        ndd.plugins.SeenMemory("redis://localhost")  # type: ignore[arg-type]


def test_what_is_added_at_the_same_time_is_all_remembered(redis_url: str) -> None:
    """By threads of several processes: each has its own memory, and all share one cache."""
    prefix = uuid.uuid4().hex
    memories = [ndd.plugins.SeenMemory(shared_cache(redis_url, prefix)) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda place: memories[place % 4].add("ann", [hit(str(place))]), range(80)))
    assert {one["_id"] for one in memories[0].of("ann") if isinstance(one, dict)} == set(map(str, range(80)))


def test_a_server_that_fails_hides_nothing_and_raises_nothing(link: Link, caplog: pytest.LogCaptureFixture) -> None:
    memory = ndd.plugins.SeenMemory(ndd.plugins.RedisCache(link.url, prefix=uuid.uuid4().hex, budget=5.0))
    memory.add("ann", [hit("1")])
    assert len(memory.of("ann")) == 1
    link.cut = True
    link.close()
    with caplog.at_level(logging.WARNING, "ndd_search"):
        memory.add("ann", [hit("2")])
        assert memory.of("ann") == []
    assert "the cache failed" in caplog.text
