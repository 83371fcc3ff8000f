"""First searches at the same time ask for one sample, and searches go on while it is counted."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

import pytest

from ndd_search.core.paging.cache import MemoryCache
from tests.wrapping.conftest import Connect, Library, settings_of
from tests.wrapping.forms import NOTHING, SEARCH, at_once, counts, probes, stopped
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_learning import samples
from tests.wrapping.test_searches import MATCH

pytestmark = [pytest.mark.newest_servers, pytest.mark.one_kind_of_client]

AT_ONCE = 50


def test_first_searches_at_once_ask_for_one_sample(forms: str, connect: Connect, proxy: Proxy) -> None:
    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, splits=False, window=100))
    proxy.reset(lambda _, request: Harm(delay=0.3) if b"random_score" in request.body else None)
    bodies = [{**SEARCH, "_source": [f"price{number}"]} for number in range(AT_ONCE)]
    answers = at_once(caller, forms, bodies, lambda _: {})
    assert len(proxy.searches) == AT_ONCE + 1
    assert len(counts(proxy)) == 1
    assert {(len(ids(answer)), answer["ndd"]["hidden"]) for answer in answers} == {(5, 0)}


def test_a_search_counts_no_sample_that_another_has_counted_just_before(
    forms: str, connect: Connect, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other search begins and ends after this one found no table, and before this one is allowed to count."""
    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, window=100))
    if caller.asynchronous:
        pytest.skip("the searches of one event loop cannot come between the two")
    known, pending = settings_of(caller).known, [1]
    claim_count = known.claim_count

    def late(*about: Any) -> bool:
        if pending:
            pending.clear()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(caller.search, index=forms, body={**SEARCH, "size": 4}).result()
        return claim_count(*about)

    monkeypatch.setattr(known, "claim_count", late)
    caller.search(index=forms, body=SEARCH)
    assert (len(counts(proxy)), len(probes(proxy))) == (1, 0)


def test_the_others_go_on_while_one_search_counts(forms: str, connect: Connect, proxy: Proxy) -> None:
    """The one that counts is held until another is done: its page is made from its own list of hits."""
    sampling, go_on = Event(), Event()

    def held(_: int, request: Passed) -> None:
        if b"random_score" in request.body:
            sampling.set()
            go_on.wait(60)

    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, window=100))
    proxy.reset(held)
    search = partial(caller.client.search, index=forms, body=SEARCH)
    if caller.asynchronous:

        async def both() -> tuple[Any, Any]:
            one = asyncio.create_task(search())
            await asyncio.to_thread(sampling.wait, 60)
            other = await search()
            go_on.set()
            return await one, other

        first, second = caller.run(both())
    else:
        with ThreadPoolExecutor(1) as pool:
            one = pool.submit(search)
            sampling.wait(60)
            second = search()
            go_on.set()
            first = one.result()
    assert (second["ndd"]["table"], second["ndd"]["hidden"], len(ids(second))) == ("list", 0, 5)
    assert first["ndd"]["table"] not in (None, "list")
    assert ids(first) == ids(second)
    assert len(samples(proxy)) == 1


def test_the_searches_of_an_msearch_ask_for_one_sample(forms: str, connect: Connect, proxy: Proxy) -> None:
    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, window=100))
    lines: list[Any] = []
    for size in range(1, 6):
        lines += [{"index": forms}, {"query": MATCH, "size": size}]
    for _ in range(2):
        answers = caller.msearch(body=lines)["responses"]
        assert [(len(ids(answer)), answer["ndd"]["hidden"]) for answer in answers] == [
            (size, 0) for size in range(1, 6)
        ]
    (table,) = {answer["ndd"]["table"] for answer in answers}
    assert table not in (None, "list")
    assert caller.search(index=forms, body=SEARCH)["ndd"]["table"] == table  # though its headers name another format
    assert sum(one.body.count(b"random_score") for one in proxy.searches) == 1


def test_first_searches_of_many_callers_at_once_ask_for_one_sample_at_a_time(
    forms: str, connect: Connect, proxy: Proxy
) -> None:
    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, splits=False, window=100))
    answers = at_once(caller, forms, [SEARCH] * AT_ONCE, lambda number: {"authorization": f"Bearer {number}"})
    assert len(proxy.searches) <= AT_ONCE + 8
    assert len(counts(proxy)) == 1
    assert {(len(ids(answer)), answer["ndd"]["hidden"]) for answer in answers} == {(5, 0)}


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("body", [SEARCH, NOTHING])
def test_first_searches_at_once_ask_once_whether_there_are_sketches(
    body: Any, cache: bool, library: Library, connect: Connect, proxy: Proxy
) -> None:
    expected = connect(wrapped=False).search(index=library.bare, body=body)
    caller = stopped(connect(proxy.url, cache=cache))
    answers = at_once(caller, library.bare, [body] * AT_ONCE, lambda _: {})
    assert all({**answer, "took": expected["took"]} == expected for answer in answers)
    assert len([one for one in proxy.searches if b'"exists"' in one.body]) <= 1
    assert len(proxy.searches) <= 2 * AT_ONCE + 1  # after sketches that are not there, the caller's own request


def test_all_pages_of_a_search_are_decided_by_one_table(forms: str, connect: Connect, proxy: Proxy) -> None:
    """A table that is there a moment later decides the next search, and not the next page of this one."""
    now, body = [0.0], {"query": MATCH, "size": 20, "sort": ["price"]}
    caller = connect(proxy.url, min_similarity="auto", window=50, splits=False, cache=MemoryCache(seconds=3600.0))
    settings_of(caller).clock = lambda: now[0]
    proxy.reset(lambda _, request: Harm(status=503) if b"random_score" in request.body else None)
    first = caller.search(index=forms, body=body)
    proxy.reset()
    now[0] = 100.0
    other = caller.search(index=forms, body={**body, "query": {"match": {"body": "field1"}}})
    second = caller.search(index=forms, body={**body, "from": 20})
    third = caller.search(index=forms, body={**body, "from": 60})  # for which the stream grows
    assert other["ndd"]["table"] not in (None, "list")
    assert [one["ndd"]["table"] for one in (first, second, third)] == ["list"] * 3
    assert [one["ndd"]["cache"] for one in (first, second, third)] == ["miss", "hit", "miss"]
    shown = ids(first) + ids(second) + ids(third)
    assert len(set(shown)) == len(shown) == 60
