"""Several callers of one client: learned facts are used only for callers who may read them, and cost few requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ndd_search.core.paging.cache import MemoryCache
from ndd_search.search.flow.learned_targets import View
from tests.wrapping.conftest import Connect, Library, settings_of
from tests.wrapping.forms import NOTHING, SEARCH, ask, counts, may_read, probes, stopped
from tests.wrapping.library import FORMS
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_learning import samples
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
    known = settings_of(caller).known
    assert len(known.about(next(iter(known._targets))).tables) == 2
    assert (len(counts(proxy)), len(probes(proxy))) == (2, 1)


def test_a_caller_takes_over_the_table_of_one_who_sees_about_the_same(
    forms: str, connect: Connect, proxy: Proxy
) -> None:
    """It costs the caller a request for 32 ids, not one for the sketches of 5,000 documents."""
    proxy.rewrite = may_read({"most": {"range": {"price": {"gte": 5}}}, "half": {"range": {"price": {"gte": 75}}}})
    caller = connect(proxy.url, min_similarity="auto", cache=False)
    tables = {
        user: {ask(caller, forms, SEARCH, x_user=user)["ndd"]["table"] for _ in range(3)} for user in ("all", "most")
    }
    assert tables["all"] == tables["most"]
    assert (len(counts(proxy)), len(probes(proxy))) == (1, 1)
    assert json.loads(probes(proxy)[0].body)["size"] == 32
    assert ask(caller, forms, SEARCH, x_user="half")["ndd"]["table"] not in tables["all"]
    assert (len(counts(proxy)), len(probes(proxy))) == (2, 2)


def test_a_token_that_is_new_at_every_request_costs_few_requests(forms: str, connect: Connect, proxy: Proxy) -> None:
    """No caller comes back, so nothing learned for a caller is reused; pages are made from the list of hits."""
    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, splits=False, window=100))
    answers = [ask(caller, forms, SEARCH, authorization=f"Bearer {number}") for number in range(40)]
    assert len(counts(proxy)) == 1
    assert len(proxy.searches) <= 40 + 8
    assert {len(ids(answer)) for answer in answers} == {5}
    assert {answer["ndd"]["hidden"] for answer in answers} == {0}
    proxy.reset()
    for _ in range(3):  # one who comes back gets a table all the same
        last = ask(caller, forms, SEARCH, authorization="Bearer 40")
    assert last["ndd"]["table"] == answers[0]["ndd"]["table"] != "list"
    assert len(proxy.searches) == 4


def test_headers_that_trace_a_request_make_no_new_caller(library: Library, connect: Connect, proxy: Proxy) -> None:
    traced = ["x-request-id", "X-Correlation-ID", "x-b3-traceid", "X-Amzn-Trace-Id", "baggage", "date", "x-amz-date"]
    caller = connect(proxy.url, min_similarity="auto", cache=MemoryCache(seconds=3600.0))
    for number in range(5):
        answer = ask(caller, library.news, SEARCH, **dict.fromkeys(traced, f"{number}"))
        assert answer["ndd"]["cache"] == ("hit" if number else "miss")
    assert len(samples(proxy)) == 1
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
    """Of sample, probe and the question for any sketch."""
    given = USELESS[name]
    harm = given if isinstance(given, Harm) else Harm(status=200, body=json.dumps({"took": 1, **given}).encode())
    caller = stopped(connect(proxy.url, min_similarity="auto", cache=False, window=100, client={"max_retries": 0}))

    def ours(_: int, request: Passed) -> Harm | None:
        return harm if b"random_score" in request.body or b'"exists"' in request.body else None

    proxy.reset(ours)
    for _ in range(2):
        answer = ask(caller, forms, SEARCH, x_user="first")
        assert (len(ids(answer)), answer["ndd"]["hidden"], answer["ndd"]["degraded"]) == (5, 0, None)
        assert answer["ndd"]["table"] == "list"
        assert ids(ask(caller, library.bare, SEARCH)) == ids(
            connect(wrapped=False).search(index=library.bare, body=SEARCH)
        )
    assert len(samples(proxy)) == 1
    proxy.reset()
    assert ask(caller, forms, SEARCH, x_user="second")["ndd"]["table"] != "list"
    proxy.reset(ours)
    answer = ask(caller, forms, SEARCH, x_user="third")
    assert (len(ids(answer)), answer["ndd"]["table"], len(samples(proxy))) == (5, "list", 1)


def test_views_agree_where_three_quarters_are_common() -> None:
    def view(first: range, total: int) -> View:
        return View(frozenset(map(str, first)), total)

    whole = view(range(32), 1000)
    for other, agrees in (
        (view(range(32), 1000), True),
        (view(range(8, 40), 900), True),
        (view(range(9, 41), 1000), False),
        (view(range(32), 740), False),
        (view(range(3), 3), False),
        (view(range(0), 0), False),
    ):
        assert (whole.is_about(other), other.is_about(whole)) == (agrees, agrees)
