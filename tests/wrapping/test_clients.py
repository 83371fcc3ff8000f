"""A wrapped client is the client it was: caches, callers, copies, threads and event loops."""

from __future__ import annotations

import asyncio
import copy
import importlib
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.search.clients.wrap import settings_in
from ndd_search.search.flow import client_settings as middleware_settings
from tests.engines.find import CLASSES, MODULES, Engine
from tests.searching import in_one_phase
from tests.wrapping.conftest import Connect, Library, body_of, bulk, settings_of
from tests.wrapping.library import BAR, actions, mapping
from tests.wrapping.proxy import Harm, Proxy
from tests.wrapping.test_searches import MATCH

PAGE = {"query": MATCH, "size": 10}


def ids(answer: Any) -> list[str]:
    return [hit["_id"] for hit in answer["hits"]["hits"]]


def transport_class(engine: Engine, asynchronous: bool) -> Any:
    module = importlib.import_module(f"ndd_search.search.clients.{engine.family}")
    return module.AsyncTransport if asynchronous else module.Transport


def test_a_second_search_comes_from_the_cache_and_a_longer_one_continues_it(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    caller = connect(proxy.url)
    first = caller.search(index=library.news, body=PAGE)
    sent = len(proxy.searches)
    again = caller.search(index=library.news, body=PAGE)
    assert (first["ndd"]["cache"], again["ndd"]["cache"]) == ("miss", "hit")
    assert {**again, "ndd": 0} == {**first, "ndd": 0}
    caller.search(index=library.news, body={**PAGE, "from": 5, "size": 4})
    assert len(proxy.searches) == sent
    off = caller.search(index=library.news, body={**PAGE, "ndd": {"cache": False}})
    assert off["ndd"]["cache"] == "off"
    with ndd.options(cache=False):
        assert caller.search(index=library.news, body=PAGE)["ndd"]["cache"] == "off"
    assert len(proxy.searches) > sent


def test_what_a_caller_does_to_an_answer_changes_nobody_elses(library: Library, connect: Connect) -> None:
    caller = connect()
    first = caller.search(index=library.news, body=PAGE)
    expected = copy.deepcopy(first["hits"])
    for _ in range(2):
        got = caller.search(index=library.news, body=PAGE)
        assert got["hits"] == expected
        got["hits"]["hits"].clear()


def test_who_writes_through_the_client_reads_what_he_wrote(engine: Engine, index: str, connect: Connect) -> None:
    caller = connect()
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(engine, client, actions(index, engine))
    body = {"query": {"term": {"site": "of the writer"}}}
    assert ids(caller.search(index=index, body=body)) == []
    caller.ask("PUT", f"/{index}/_doc/written", {"body": "new", "site": "of the writer"}, {"refresh": "true"})
    assert ids(caller.search(index=index, body=body)) == ["written"]
    caller.ask("DELETE", f"/{index}/_doc/written")
    caller.ask("POST", f"/{index}/_refresh")
    assert ids(caller.search(index=index, body=body)) == []


def test_a_failed_write_empties_the_cache_too(library: Library, connect: Connect, proxy: Proxy) -> None:
    caller = connect(proxy.url)
    caller.search(index=library.news, body=PAGE)
    proxy.reset(lambda _, request: Harm(status=500) if request.method == "PUT" else None)
    with pytest.raises(Exception):  # noqa: B017, PT011 - the client's own, another one in each library
        caller.ask("PUT", f"/{library.bare}/_doc/x", {"title": "perhaps written"})
    assert caller.search(index=library.news, body=PAGE)["ndd"]["cache"] == "miss"


@pytest.mark.parametrize("name", ["Authorization", "es-security-runas-user", "X-Forwarded-User"])
def test_another_callers_headers_get_an_entry_of_their_own(name: str, library: Library, connect: Connect) -> None:
    caller = connect()
    path = f"/{library.news}/_search"

    def cache_said(user: str) -> str:
        return str(caller.ask("POST", path, PAGE, headers={name: user})["ndd"]["cache"])

    assert [cache_said(user) for user in ("ApiKey one", "ApiKey two", "ApiKey one")] == ["miss", "miss", "hit"]
    assert caller.search(index=library.news, body=PAGE)["ndd"]["cache"] == "miss"


def test_two_clients_made_in_the_same_way_share_what_they_remember(library: Library, connect: Connect) -> None:
    shared = MemoryCache()
    answers = [connect(cache=shared).search(index=library.news, body=PAGE) for _ in range(2)]
    assert [one["ndd"]["cache"] for one in answers] == ["miss", "hit"]


def test_options_of_elasticsearch_py_keep_the_hook(library: Library, connect: Connect) -> None:
    if library.engine.family != "elasticsearch":
        pytest.skip("opensearch-py has no options()")
    caller = connect()
    other = caller.client.options(headers={"x-user": "bob"}, request_timeout=20)
    assert isinstance(other, type(caller.client))
    answers = [body_of(caller.run(one.search(index=library.news, **PAGE))) for one in (caller.client, other, other)]
    assert [one["ndd"]["cache"] for one in answers] == ["miss", "miss", "hit"]
    missing = caller.run(other.options(ignore_status=404).search(index="ndd-not-there", **PAGE))
    assert missing["status"] == 404


def test_wrapping_twice_is_once_and_unwrap_takes_it_back(library: Library, connect: Connect, proxy: Proxy) -> None:
    caller = connect(proxy.url, cache=False)
    kind, once = type(caller.client), caller.search(index=library.news, body={**PAGE, "size": 60})
    sent = len(proxy.searches)
    assert ndd.wrap(caller.client, min_similarity=BAR, window=20, cache=False) is caller.client
    proxy.reset()
    twice = caller.search(index=library.news, body={**PAGE, "size": 60})
    assert (ids(twice), len(proxy.searches)) == (ids(once), sent)
    assert ndd.wrap(ndd.wrap(caller.client, enabled=False), enabled=False) is caller.client
    assert type(caller.client) is kind
    assert "ndd" not in caller.search(index=library.news, body=PAGE)


def test_a_transport_class_does_the_same_and_takes_settings(library: Library, connect: Connect) -> None:
    wanted = connect(cache=False).search(index=library.news, body=PAGE)
    asynchronous = connect().asynchronous
    chosen = transport_class(library.engine, asynchronous)
    caller = connect(wrapped=False, client={"transport_class": chosen.using(min_similarity=BAR, window=20)})
    found = caller.search(index=library.news, body=PAGE)
    assert ids(found) == ids(wanted)
    assert found["ndd"]["examined"] == wanted["ndd"]["examined"]
    defaults = connect(wrapped=False, client={"transport_class": chosen})
    assert defaults.search(index=library.news, body=PAGE)["ndd"]["min_similarity"] == "auto"
    with pytest.raises(TypeError, match="unknown option 'windows'"):
        chosen.using(windows=20)


def test_a_transport_class_is_wrapped_once_and_unwrapped(library: Library, connect: Connect, proxy: Proxy) -> None:
    chosen = transport_class(library.engine, connect().asynchronous)
    caller = connect(proxy.url, cache=False, client={"transport_class": chosen})
    body = {**PAGE, "size": 60}
    expected = connect(cache=False).search(index=library.news, body=body)
    found = caller.search(index=library.news, body=body)
    assert (ids(found), found["ndd"]["examined"]) == (ids(expected), expected["ndd"]["examined"])
    assert found["hits"]["total"] == expected["hits"]["total"]
    ndd.wrap(caller.client, enabled=False)
    assert "ndd" not in caller.search(index=library.news, body=body)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_wrapped_client_is_copied_and_pickled_as_far_as_the_client_itself(
    way: Callable[[Any], Any], library: Library, connect: Connect
) -> None:
    caller = connect()
    if way is not copy.copy and type(caller.client).__name__ != "AsyncOpenSearch":
        pytest.skip("the client itself cannot: its transport holds locks")
    assert type(way(connect(wrapped=False).client)) is type(caller.client)
    settings_of(caller).cache.put(b"key", b"value")  # type: ignore[union-attr]
    other = caller.with_client(way(caller.client))
    try:
        answer = other.search(index=library.news, body={**PAGE, "size": 11})
        assert answer["ndd"]["min_similarity"] == BAR
        assert len(ids(answer)) == 11
        assert settings_of(caller).cache.get(b"key") == b"value"  # type: ignore[union-attr]
    finally:
        if other.client.transport is not caller.client.transport:
            caller.run(other.client.close())


def test_threads_share_a_client_and_one_of_them_does_the_work(library: Library, proxy: Proxy, engine: Engine) -> None:
    at_proxy = Engine(**{**engine.__dict__, "url": proxy.url})
    with at_proxy.client() as plain, ThreadPoolExecutor(8) as pool:
        client = ndd.wrap(plain, min_similarity=BAR, frequency_table=False)
        in_one_phase(settings_in(client))
        proxy.reset(lambda _, __: Harm(delay=0.1))
        answers = list(pool.map(lambda _: body_of(client.search(index=library.news, body=PAGE)), range(8)))
        assert len({tuple(ids(one)) for one in answers}) == 1
        assert len(proxy.searches) == 1
        bodies = [{**PAGE, "size": 5 + number % 5} for number in range(40)]
        answers = list(pool.map(lambda body: body_of(client.search(index=library.news, body=body)), bodies))
        assert all(len(ids(one)) == body["size"] for one, body in zip(answers, bodies, strict=True))


def test_coroutines_share_a_client_and_one_of_them_does_the_work(
    library: Library, proxy: Proxy, engine: Engine
) -> None:
    at_proxy = Engine(**{**engine.__dict__, "url": proxy.url})
    proxy.reset(lambda _, __: Harm(delay=0.1))

    async def run() -> None:
        async with at_proxy.async_client() as plain:
            client = ndd.wrap(plain, min_similarity=BAR, frequency_table=False)
            in_one_phase(settings_in(client))
            answers = await asyncio.gather(*(client.search(index=library.news, body=PAGE) for _ in range(8)))
            assert len({tuple(ids(one)) for one in answers}) == 1
            assert len(proxy.searches) == 1

    asyncio.run(run())


def test_a_cancelled_task_holds_nobody_up(library: Library, proxy: Proxy, engine: Engine) -> None:
    at_proxy = Engine(**{**engine.__dict__, "url": proxy.url})
    proxy.reset(lambda number, _: Harm(delay=1.0) if number == 0 else None)

    async def run() -> None:
        async with at_proxy.async_client() as plain:
            client = ndd.wrap(plain, min_similarity=BAR, frequency_table=False)
            first = asyncio.create_task(client.search(index=library.news, body=PAGE))
            await asyncio.sleep(0.1)
            others = [asyncio.create_task(client.search(index=library.news, body=PAGE)) for _ in range(3)]
            await asyncio.sleep(0.05)
            others[0].cancel()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            answers = await asyncio.wait_for(asyncio.gather(*others[1:]), 5)
            assert all(len(ids(one)) == 10 for one in answers)

    asyncio.run(run())


def hasty(engine: Engine, client: Any, seconds: float) -> tuple[Any, dict[str, Any]]:
    """What gives one search a timeout in the client's own way: another client, or a parameter."""
    if engine.family == "elasticsearch":
        return client.options(request_timeout=seconds), {}
    return client, {"params": {"request_timeout": seconds}}


def test_a_thread_waits_for_another_no_longer_than_its_own_timeout(
    library: Library, proxy: Proxy, engine: Engine
) -> None:
    at_proxy, go_on = Engine(**{**engine.__dict__, "url": proxy.url}), threading.Event()
    with at_proxy.client() as plain, ThreadPoolExecutor(1) as pool:
        client = ndd.wrap(plain, min_similarity=BAR, frequency_table=False)
        in_one_phase(settings_in(client))
        proxy.reset(lambda number, _: None if number else go_on.wait(20) and None)  # type: ignore[arg-type, return-value]
        slow = pool.submit(client.search, index=library.news, body=PAGE)
        while not proxy.passed:
            time.sleep(0.01)
        other, more = hasty(engine, client, 2.0)
        began = time.perf_counter()
        answer = body_of(other.search(index=library.news, body=PAGE, **more))
        assert 1.9 < time.perf_counter() - began < 19
        assert answer["ndd"]["took_ms"] < 1_900  # the time that was waited is not ours
        go_on.set()
        assert ids(answer) == ids(body_of(slow.result()))


def test_a_task_waits_for_another_no_longer_than_its_own_timeout(
    library: Library, proxy: Proxy, engine: Engine
) -> None:
    at_proxy, go_on = Engine(**{**engine.__dict__, "url": proxy.url}), threading.Event()
    proxy.reset(lambda number, _: None if number else go_on.wait(20) and None)  # type: ignore[arg-type, return-value]

    async def run() -> None:
        async with at_proxy.async_client() as plain:
            client = ndd.wrap(plain, min_similarity=BAR, frequency_table=False)
            in_one_phase(settings_in(client))
            slow = asyncio.create_task(client.search(index=library.news, body=PAGE))
            while not proxy.passed:
                await asyncio.sleep(0.01)
            other, more = hasty(engine, client, 2.0)
            began = time.perf_counter()
            answer = body_of(await other.search(index=library.news, body=PAGE, **more))
            assert 1.9 < time.perf_counter() - began < 19
            go_on.set()
            assert ids(answer) == ids(body_of(await slow))

    asyncio.run(run())


def test_clients_of_several_event_loops_share_a_cache(library: Library, engine: Engine) -> None:
    cache = MemoryCache()

    async def run() -> list[str]:
        async with engine.async_client() as plain:
            client = ndd.wrap(plain, min_similarity=BAR, cache=cache)
            return ids(await client.search(index=library.news, body=PAGE))

    with ThreadPoolExecutor(3) as pool:
        answers = [one.result() for one in [pool.submit(asyncio.run, run()) for _ in range(3)]]
    assert answers[0] == answers[1] == answers[2] == asyncio.run(run())


def test_a_client_outlives_its_event_loop_as_far_as_it_can_itself(library: Library, connect: Connect) -> None:
    caller = connect()
    if not caller.asynchronous:
        pytest.skip("only of asynchronous clients")
    answers = [caller.search(index=library.news, body={**PAGE, "ndd": {"cache": cache}}) for cache in (True, False)]
    assert ids(answers[0]) == ids(answers[1])


def test_wrap_names_what_is_no_client() -> None:
    given: list[Any] = ["http://localhost:9200", []]
    for wrong in given:
        with pytest.raises(TypeError, match=r"one client of .* wrap\(Elasticsearch\(URL\)\), got builtins\.(str|list)"):
            ndd.wrap(wrong)
    with pytest.raises(TypeError, match=r"got builtins\.dict"):
        ndd.wrap({}, enabled=False)


def test_wrap_refuses_settings_that_cannot_be(engine: Engine) -> None:
    with engine.client() as client:
        cases: list[tuple[dict[str, Any], type[Exception]]] = [
            ({"window": 0}, ValueError),
            ({"windw": 9}, TypeError),
            ({"time_budget": 0}, ValueError),
        ]
        for wrong, kind in cases:
            with pytest.raises(kind):
                ndd.wrap(client, **wrong)
        with pytest.raises(TypeError, match=r"did you mean time_budget\?\): the options are .*window, .*cache"):
            ndd.wrap(client, time_bugdet=1)  # type: ignore[call-arg]
        assert type(client).__name__ == CLASSES[engine.family]
        assert type(client).__module__.startswith(MODULES[engine.family])


WRONG: list[tuple[str, Any]] = [
    ("time_budget", "2s"),
    ("frequency_table", "table.json"),
    ("frequency_table", None),
    ("cache", "redis://localhost"),
    ("cache", object()),
    ("observers", [print]),
    ("observers", "log"),
    ("options", {"window": 50}),
    ("indexes", {"news*": {"keys": 100}}),
    ("indexes", {"news*": 8}),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_setting_of_a_wrong_type_is_named_before_any_search(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        middleware_settings.settings_of(**{name: value})


def test_an_index_without_sketches_is_asked_again_after_a_while(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    now = [0.0]
    caller = connect(proxy.url, cache=False, splits=False)
    settings_of(caller).bypass_seconds = 30
    settings_of(caller).clock = lambda: now[0]
    for seconds, sent in ((0, 2), (29, 1), (31, 2), (60, 1)):
        now[0] = seconds
        proxy.reset()
        assert "ndd" not in caller.search(index=library.bare, body=PAGE)
        assert len(proxy.searches) == sent
