"""Wrapped clients that share a cache in Redis: pages, writes of others, one computation, and faults of the cache."""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from threading import Barrier, Event
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.flow import page_cache
from tests.engines.find import Engine
from tests.redis_server import Link, server
from tests.wrapping.conftest import Connect, Library, body_of, bulk
from tests.wrapping.library import BAR, RECIPE, actions, documents, mapping
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_searches import MATCH

pytest.importorskip("redis")
pytestmark = pytest.mark.newest_servers
SEARCH: dict[str, Any] = {"query": MATCH, "size": 5}
OTHER_PROCESSES = 3

Shared = Callable[..., Any]


@pytest.fixture
def shared(redis_url: str) -> Iterator[Shared]:
    """shared(url=None, **settings): a cache of its own object, with the keys of this test and a long budget."""
    prefix, made = uuid.uuid4().hex, []

    def make(url: str | None = None, **settings: Any) -> Any:
        given = {"prefix": prefix, "seconds": 600.0, "budget": 20.0, **settings}
        made.append(ndd.plugins.RedisCache(url or redis_url, **given))
        return made[-1]

    yield make
    for cache in made:
        cache.close()


def kinds(*answers: dict[str, Any]) -> list[str]:
    return [answer["ndd"]["cache"] for answer in answers]


def documents_of(answer: dict[str, Any]) -> set[tuple[str, str]]:
    return {(hit["_index"], hit["_id"]) for hit in answer["hits"]["hits"]}


def test_a_page_of_one_client_is_found_by_another_in_one_round_trip(
    library: Library, connect: Connect, proxy: Proxy, shared: Shared, link: Link
) -> None:
    one, other = connect(proxy.url, cache=shared()), connect(proxy.url, cache=shared(link.url))
    for index in (library.news, library.mixed, f"{library.news}*"):  # a name, an alias, a pattern
        first = one.search(index=index, body=SEARCH)
        other.search(index=index, body={**SEARCH, "size": 1})  # learns what the alias stands for
        proxy.reset()
        before = link.asked
        again = other.search(index=index, body=SEARCH)
        assert kinds(first, again) == ["miss", "hit"]
        assert again["hits"] == first["hits"]
        assert (len(proxy.searches), link.asked - before) == (0, 1)
        longer = other.search(index=index, body={**SEARCH, "from": 5})
        assert not documents_of(longer) & documents_of(first)


def test_a_write_of_one_client_is_seen_by_the_others(
    engine: Engine, index: str, connect: Connect, shared: Shared
) -> None:
    one, other = connect(cache=shared()), connect(cache=shared())
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(engine, client, actions(index, engine, RECIPE, documents()[:6]))
    body = {"query": MATCH, "size": 6}
    found = ids(one.search(index=index, body=body))
    assert kinds(other.search(index=index, body=body)) == ["hit"]
    one.run(one.client.delete(index=index, id=found[0], refresh=True))
    assert found[0] not in ids(other.search(index=index, body=body))


def test_one_of_several_processes_computes_a_page(
    library: Library, engine: Engine, proxy: Proxy, redis_url: str, shared: Shared
) -> None:
    if engine.family != "elasticsearch":
        pytest.skip("processes take seconds to start, and wait in the same way for every engine")
    proxy.reset(lambda number, request: Harm(delay=0.5) if number == 0 else None)
    about = engine.__dict__ | {"url": proxy.url}, library.news, redis_url, shared()._arguments["prefix"]
    with multiprocessing.get_context("spawn").Pool(OTHER_PROCESSES) as pool:
        pool.map(_ready, range(OTHER_PROCESSES), chunksize=1)
        answers = pool.map(_search, [about] * OTHER_PROCESSES, chunksize=1)
    assert len(proxy.searches) <= 2  # those of one search
    assert sorted(kinds(*answers)) == ["hit"] * (OTHER_PROCESSES - 1) + ["miss"]
    assert len({tuple(ids(answer)) for answer in answers}) == 1


def _ready(_: int) -> None:
    """Import what a search needs, so that all processes search at the same time."""
    print(ndd.wrap, ndd.plugins.RedisCache)


def _search(about: tuple[dict[str, Any], str, str, str]) -> dict[str, Any]:
    engine, index, url, prefix = about
    cache = ndd.plugins.RedisCache(url, prefix=prefix, seconds=600.0, budget=20.0)
    with Engine(**engine).client() as client, closing(cache):
        caller = ndd.wrap(client, min_similarity=BAR, window=20, cache=cache)
        answer: dict[str, Any] = body_of(caller.search(index=index, body=SEARCH))
        return answer


def test_pages_that_cannot_be_cached_are_not_computed_one_after_another(
    library: Library, engine: Engine, proxy: Proxy, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three processes ask at once: two wait for the first, then both search at the same time."""
    monkeypatch.setattr(page_cache, "LOCK_SECONDS", 600.0)
    both, first, refused = Barrier(2), Event(), [Event() for _ in range(3)]

    def held(number: int, request: Passed) -> None:
        if number:
            both.wait(20)  # less than a search waits for another
        else:
            first.set()
            assert all(other.wait(30) for other in refused[1:])

    def cache(number: int) -> Any:
        made = shared()
        acquire = made.acquire

        def noted(key: bytes, seconds: float) -> bytes | None:
            token: bytes | None = acquire(key, seconds)
            if token is None:
                refused[number].set()
            return token

        made.acquire = noted
        return made

    proxy.reset(held)
    at_proxy = Engine(**{**engine.__dict__, "url": proxy.url})
    body = {**SEARCH, "terminate_after": 1}

    def ask(client: Any) -> list[str]:
        return ids(body_of(client.search(index=library.news, body=body)))

    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
        plain = [stack.enter_context(at_proxy.client(max_retries=0)) for _ in range(3)]
        clients = [
            ndd.wrap(client, min_similarity=BAR, window=20, cache=cache(number)) for number, client in enumerate(plain)
        ]
        pages = [pool.submit(ask, clients[0])]
        assert first.wait(60)
        pages += [pool.submit(ask, client) for client in clients[1:]]
        assert len({tuple(page.result()) for page in pages}) == 1
    assert len(proxy.searches) == 3


def test_a_lock_that_ended_in_the_meantime_is_not_taken_from_its_next_owner(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads of one client compute pages of one stream, and the first takes longer than a lock lasts."""
    key, memory, other = b"stream", page_cache.Memory(shared()), page_cache.Memory(shared())
    monkeypatch.setattr(page_cache, "LOCK_SECONDS", 0.001)
    first = memory.acquire(key)
    monkeypatch.setattr(page_cache, "LOCK_SECONDS", 600.0)
    while (second := memory.acquire(key)) is None:
        pass
    assert first
    memory.release(key, first)
    assert other.acquire(key) is None
    memory.release(key, second)
    assert other.acquire(key)


def test_a_search_that_waits_for_another_process_ends_in_its_own_time(
    library: Library, connect: Connect, shared: Shared
) -> None:
    """The lock's owner has died: his own request is answered when the time for near-duplicates is over."""
    caller = connect(cache=shared())
    expected = connect(wrapped=False).search(index=library.news, body=SEARCH)
    caller.client = ndd.wrap(caller.client, min_similarity=BAR, window=20, cache=(cache := shared()), time_budget=0.5)
    cache.clear()
    cache.acquire = lambda key, seconds: None
    answer = caller.search(index=library.news, body=SEARCH)
    assert ids(answer) == ids(expected)


def test_two_callers_share_no_page(library: Library, connect: Connect, shared: Shared) -> None:
    one = connect(cache=shared(), client={"headers": {"x-user": "one"}})
    other = connect(cache=shared(), client={"headers": {"x-user": "other"}})
    answers = [caller.search(index=library.news, body=SEARCH) for caller in (one, other, one)]
    assert kinds(*answers) == ["miss", "miss", "hit"]


@pytest.mark.parametrize("fault", ["down", "cut", "slow", "damaged", "swapped"])
def test_a_faulty_cache_costs_no_more_than_the_saving(
    fault: str, library: Library, connect: Connect, shared: Shared, link: Link
) -> None:
    caller = connect(cache=(cache := shared(link.url)))
    expected = caller.search(index=library.news, body=SEARCH)
    if fault == "down":
        link.close()
        caller.client = ndd.wrap(caller.client, min_similarity=BAR, window=20, cache=shared(link.url))
    elif fault == "slow":
        link.delay = 5.0
        cache._redis.connection_pool.disconnect()
        caller.client = ndd.wrap(caller.client, min_similarity=BAR, window=20, cache=shared(link.url, budget=0.05))
    elif fault == "cut":
        link.cut = True
    else:
        names = list(cache._redis.scan_iter(match=cache._prefix + b"*"))
        values = cache._redis.mget(names)
        halves = [value[: len(value) // 2] for value in values]
        values = halves if fault == "damaged" else values[1:] + values[:1]
        for name, value in zip(names, values, strict=True):
            cache._redis.set(name, value)
    for start in (0, 5):
        answer = caller.search(index=library.news, body={**SEARCH, "from": start})
        assert answer["ndd"]["degraded"] is None
        assert kinds(answer) != ["hit"] or start
        if not start:
            assert ids(answer) == ids(expected)


def test_a_server_that_is_killed_and_restarted_under_load_harms_no_search(
    library: Library, engine: Engine, redis_url: str
) -> None:
    with server() as cache, engine.client() as client, ThreadPoolExecutor(4) as pool, ExitStack() as stack:
        settings: dict[str, Any] = {"seconds": 600.0, "budget": 20.0, "pause": 0.0}
        shared = stack.enter_context(closing(ndd.plugins.RedisCache(cache.url, **settings)))
        wrapped = ndd.wrap(client, min_similarity=BAR, window=20, cache=shared)

        def ask(number: int) -> tuple[list[str], Any]:
            body = {**SEARCH, "from": 5 * (number % 4)}
            answer = body_of(wrapped.search(index=library.news, body=body))
            return ids(answer), answer["ndd"]["degraded"]

        expected = list(pool.map(ask, range(4)))
        for change in (cache.stop, cache.start, cache.stop, cache.start):
            answers = pool.map(ask, range(40))
            change()
            assert list(answers) == expected * 10
        assert ask(0) == ask(0) == expected[0]
        assert body_of(wrapped.search(index=library.news, body=SEARCH))["ndd"]["cache"] == "hit"


def test_many_threads_share_one_cache(library: Library, engine: Engine, shared: Shared) -> None:
    with engine.client() as one, engine.client() as other, ThreadPoolExecutor(8) as pool:
        clients = [ndd.wrap(client, min_similarity=BAR, window=20, cache=shared()) for client in (one, other)]

        def ask(number: int) -> list[str]:
            body = {**SEARCH, "from": 5 * (number // 2 % 4)}
            return ids(body_of(clients[number % 2].search(index=library.news, body=body)))

        pages = list(pool.map(ask, range(32)))
    assert all(pages[number] == pages[number % 8] for number in range(32))
    shown = [id for page in pages[0:8:2] for id in page]
    assert len(set(shown)) == len(shown) == 20
