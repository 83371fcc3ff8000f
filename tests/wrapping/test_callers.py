"""Several callers of one client: learned facts are used only for callers who may read them, and cost few requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ndd_search.core.paging.cache import MemoryCache
from ndd_search.search.flow.choose_frequency_table import TABLES
from tests.wrapping.conftest import Connect, Library, settings_of
from tests.wrapping.forms import NOTHING, SEARCH, ask, at_once, may_read, stopped
from tests.wrapping.library import FORMS
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_left_alone import wire
from tests.wrapping.test_searches import MATCH

pytestmark = [pytest.mark.newest_servers, pytest.mark.one_kind_of_client]


@pytest.mark.parametrize("splits", [False, True])
def test_a_caller_who_may_read_little_decides_nothing_for_the_others(
    splits: bool, forms: str, connect: Connect, proxy: Proxy
) -> None:
    """In three documents no form shows; by a table of those, all documents of the form would be hidden under one."""
    proxy.rewrite = may_read({"few": {"range": {"price": {"lt": 3}}}})
    caller = connect(proxy.url, min_similarity="auto", cache=False, window=200, splits=splits)
    for _ in range(2):
        assert len(ids(ask(caller, forms, {"query": MATCH, "size": FORMS}, x_user="few"))) <= 3
    for _ in range(2):
        answer = ask(caller, forms, {"query": MATCH, "size": FORMS}, x_user="all")
        assert (answer["ndd"]["hidden"], len(ids(answer)), answer["ndd"]["degraded"]) == (0, FORMS, None)


def test_a_token_that_is_new_at_every_request_costs_one_small_request(
    forms: str, connect: Connect, proxy: Proxy
) -> None:
    """No caller comes back, so nothing learned for a caller is reused, and each one asks for the stored table."""
    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, splits=False, window=100))
    answers = [ask(caller, forms, SEARCH, authorization=f"Bearer {number}") for number in range(40)]
    assert (len(proxy.searches), len(proxy.lookups)) == (40, 40)
    assert {len(ids(answer)) for answer in answers} == {5}
    assert {answer["ndd"]["hidden"] for answer in answers} == {0}
    for _ in range(3):  # one who comes back asks once
        ask(caller, forms, SEARCH, authorization="Bearer 40")
    assert len(proxy.lookups) == 41


def test_headers_that_trace_a_request_make_no_new_caller(library: Library, connect: Connect, proxy: Proxy) -> None:
    traced = ["x-request-id", "X-Correlation-ID", "x-b3-traceid", "X-Amzn-Trace-Id", "baggage", "date", "x-amz-date"]
    caller = connect(proxy.url, min_similarity="auto", cache=MemoryCache(seconds=3600.0))
    for number in range(5):
        answer = ask(caller, library.news, SEARCH, **dict.fromkeys(traced, f"{number}"))
        assert answer["ndd"]["cache"] == ("hit" if number else "miss")
    assert len(proxy.lookups) == 1
    sent = len(proxy.searches)
    assert ask(caller, library.news, SEARCH, x_tenant="another")["ndd"]["cache"] == "miss"  # what is unknown may matter
    assert len(proxy.searches) > sent


def test_a_page_without_hits_is_left_alone_where_there_are_no_sketches(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    """Nothing could have been collapsed in it; where there are sketches it says so as every other page."""
    expected = connect(proxy.url, wrapped=False).search(index=library.bare, body=NOTHING)
    as_it_is = wire(proxy.passed)
    for splits in (False, True):
        caller = stopped(connect(proxy.url, splits=splits))
        assert {**caller.search(index=library.bare, body=NOTHING), "took": expected["took"]} == expected
        caller = stopped(connect(proxy.url, splits=splits))
        caller.search(index=library.bare, body=SEARCH)  # a page without hits says nothing of the index, this one does
        proxy.reset()
        assert {**caller.search(index=library.bare, body=NOTHING), "took": expected["took"]} == expected
        assert wire(proxy.passed) == as_it_is
        assert caller.search(index=library.news, body=NOTHING)["ndd"]["kept"] == 0


def test_callers_without_end_cost_few_requests_more_where_there_are_no_sketches(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    expected = connect(proxy.url, wrapped=False).search(index=library.bare, body=SEARCH)
    for body, hits in ((SEARCH, expected["hits"]["hits"]), (NOTHING, [])):
        caller, now = connect(proxy.url, cache=False), [0.0]
        settings_of(caller).clock = lambda now=now: now[0]  # type: ignore[misc]
        proxy.reset()
        for number in range(45):
            now[0] = number * 4.0
            answer = ask(caller, library.bare, body, authorization=f"Bearer {number}")
            assert (answer["hits"]["hits"], "ndd" in answer) == (hits, False)
        assert len(proxy.searches) <= 45 + 6  # two a minute


def test_a_caller_who_finds_no_sketch_switches_nothing_off_for_one_who_comes_after(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    proxy.rewrite = may_read({"bare": {"bool": {"must_not": {"exists": {"field": "ndd.recipe"}}}}})
    total = connect(wrapped=False).search(index=library.mixed, body=SEARCH)["hits"]["total"]["value"]
    for splits in (False, True):
        caller = connect(proxy.url, cache=False, splits=splits, window=400, max_window=400)
        for _ in range(2):
            assert "ndd" not in ask(caller, library.mixed, SEARCH, x_user="bare")
        answer = ask(caller, library.mixed, {**SEARCH, "size": 300}, x_user="all")
        assert answer["ndd"]["hidden"] > 0
        assert answer["ndd"]["kept"] + answer["ndd"]["hidden"] == total


AT_ONCE = 50
SHARDS_FAILED = {"total": 2, "successful": 1, "failed": 1, "failures": []}
HIT = {"_index": "a", "_id": "1", "_score": 1.0}
USELESS: dict[str, Any] = {
    "cut": Harm(cut=True),
    "not allowed": Harm(status=403, body=b'{"error": "no", "status": 403}'),
    "garbage": Harm(status=200, body=b'{"took": 1, "hits": {"hi'),
    "no object": Harm(status=200, body=b"[1]"),
    "no hits": Harm(status=200, body=b'{"took": 1}'),
    "hits that are none": {"hits": {"hits": ["x", 1, None]}},
    "hits without ids": {"hits": {"hits": [{"_score": 1.0}]}},
    "ids that are none": {"hits": {"hits": [{**HIT, "_id": ["1"]}]}},
    "fields that are none": {"hits": {"hits": [{**HIT, "fields": "x"}]}},
    "shards that are none": {"_shards": [1], "hits": {"hits": [HIT]}},
    "clusters that are none": {"_clusters": [1], "hits": {"hits": [HIT]}},
    "failures that are none": {"_shards": {"failed": 1, "failures": ["x"]}, "hits": {"hits": [HIT]}},
    "timed out": {"timed_out": True, "hits": {"hits": [HIT]}},
    "failed shards": {"_shards": SHARDS_FAILED, "hits": {"hits": [HIT]}},
}


@pytest.mark.parametrize("name", USELESS)
def test_requests_of_our_own_that_come_to_nothing_leave_the_page_whole(
    name: str, forms: str, library: Library, connect: Connect, proxy: Proxy
) -> None:
    """Of the stored table, and the question for any sketch."""
    given = USELESS[name]
    harm = given if isinstance(given, Harm) else Harm(status=200, body=json.dumps({"took": 1, **given}).encode())
    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, window=100, client={"max_retries": 0}))

    def ours(_: int, request: Passed) -> Harm | None:
        return harm if TABLES in request.target or b'"exists"' in request.body else None

    proxy.reset(ours)
    for user in ("first", "first", "second"):
        answer = ask(caller, forms, SEARCH, x_user=user)
        assert (len(ids(answer)), answer["ndd"]["hidden"], answer["ndd"]["degraded"]) == (5, 0, None)
        assert answer["ndd"]["table"] == "list"
        assert ids(ask(caller, library.bare, SEARCH)) == ids(
            connect(wrapped=False).search(index=library.bare, body=SEARCH)
        )
    assert len(proxy.lookups) == 2


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
