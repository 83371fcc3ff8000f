import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from ndd_search.core.paging.cache import MemoryCache, SingleFlight, cache_key


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_entry_lives_for_its_seconds() -> None:
    clock = Clock()
    cache = MemoryCache(seconds=10, clock=clock)
    cache.put(b"page", b"hits")
    clock.now = 9.9
    assert cache.get(b"page") == b"hits"
    clock.now = 10.1
    assert cache.get(b"page") is None
    assert (cache.stats().hits, cache.stats().misses, cache.stats().bytes) == (1, 1, 0)


def test_an_entry_may_have_seconds_of_its_own() -> None:
    clock = Clock()
    cache = MemoryCache(seconds=10, clock=clock)
    cache.put(b"token", b"1", seconds=3600)
    cache.put(b"page", b"2")
    clock.now = 11
    assert cache.get_many([b"page", b"token", b"nothing"]) == [None, b"1", None]
    assert (cache.stats().hits, cache.stats().misses) == (0, 0)


def test_the_bytes_stay_below_the_limit_and_the_least_used_goes_first() -> None:
    cache = MemoryCache(max_bytes=3000)
    for name in (b"a", b"b", b"a", b"c"):
        cache.get(name)
        cache.put(name, bytes(1000))
    assert cache.get(b"b") is None
    assert cache.get(b"a") is not None
    assert cache.stats().bytes <= 3000


def test_a_value_larger_than_the_cache_is_not_kept_and_nothing_else_goes() -> None:
    cache = MemoryCache(max_bytes=3000)
    cache.put(b"small", b"1")
    cache.put(b"large", b"1")
    cache.put(b"large", bytes(5000))
    assert cache.get(b"large") is None  # the former value would not be the newest
    assert cache.get(b"small") == b"1"


@pytest.mark.parametrize(("max_bytes", "seconds"), [(0, 1), (1, 0), (1, -1)])
def test_impossible_limits_are_refused(max_bytes: int, seconds: float) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        MemoryCache(max_bytes, seconds)


def test_a_key_depends_on_every_part_and_on_the_order_that_a_sort_has() -> None:
    assert cache_key("me", {"a": 1, "b": [2]}) == cache_key("me", {"a": 1, "b": [2]})
    assert cache_key({"sort": {"day": "desc", "title": "asc"}}) != cache_key({"sort": {"title": "asc", "day": "desc"}})
    assert cache_key({"terms": {1: "a", "b": 2}}) == cache_key({"terms": {1: "a", "b": 2}})
    keys = {cache_key("me", {"a": 1}), cache_key("you", {"a": 1}), cache_key("me", {"a": 2}), cache_key("me", "\ud800")}
    assert len(keys) == 4


def test_a_key_holds_every_number_of_a_long_vector() -> None:
    vector = np.zeros(1536)
    other = vector.copy()
    other[700] = 1.0
    assert cache_key({"query_vector": vector}) == cache_key({"query_vector": vector.tolist()})
    assert cache_key({"query_vector": vector}) != cache_key({"query_vector": other})


def test_objects_that_only_look_equal_have_keys_of_their_own() -> None:
    """The objects of both DSLs abbreviate what they hold."""

    class Abbreviated:
        def __repr__(self) -> str:
            return "{...}"

    one, other = Abbreviated(), Abbreviated()
    assert cache_key(one) != cache_key(other)
    assert cache_key(date(2024, 5, 1), Decimal(3)) == cache_key(date(2024, 5, 1), Decimal(3))


def test_threads_that_want_one_key_compute_it_once() -> None:
    flights, cache, computed = SingleFlight(), MemoryCache(), []
    start = threading.Barrier(8)

    def ask(_: int) -> bytes | None:
        start.wait()
        if (other := flights.acquire(b"k")) is None:
            try:
                time.sleep(0.05)
                computed.append(1)
                cache.put(b"k", b"v")
            finally:
                flights.release(b"k")
        else:
            other.result()
        return cache.get(b"k")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {b"v"}
    assert len(computed) == 1


def test_a_cancelled_coroutine_lets_the_others_go_on() -> None:
    flights = SingleFlight()

    async def compute() -> None:
        assert flights.acquire(b"k") is None
        try:
            await asyncio.sleep(60)
        finally:
            flights.release(b"k")

    async def both() -> None:
        first = asyncio.create_task(compute())
        await asyncio.sleep(0)
        waiting = flights.acquire(b"k")
        assert waiting is not None
        first.cancel()
        await asyncio.wait_for(asyncio.wrap_future(waiting), 5)
        assert flights.acquire(b"k") is None

    asyncio.run(both())
