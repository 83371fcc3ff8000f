"""Searches without a cache that works, at the same time as others, and on engines that refuse split searches."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest

from ndd_search.core.paging.cache import MemoryCache
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.items import Items, Name
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.flow.round_trips import Wait
from ndd_search.search.rest.hide_sketches import SketchFilter
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request
from tests.searching import MATCH, SEARCH, hit_of, in_one_phase, one_hit


class BrokenCache:
    """A cache whose server is gone."""

    def get(self, *_: Any) -> Any:
        raise ConnectionError("cannot get")

    get_many = put = get


def test_searches_and_writes_go_on_without_a_cache_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    broken: Any = BrokenCache()
    driver = Driver(in_one_phase(settings_of(frequency_table=False, cache=broken)))
    found = {"took": 1, "hits": {"total": {"value": 1, "relation": "eq"}, "hits": [hit_of("1")]}}
    for _ in range(2):
        wanted = Request("POST", "/news/_search", {}, {}, {"query": MATCH})
        answer = driver.handle(wanted, lambda _: Answer(copy.deepcopy(found)))
        assert [one["_id"] for one in answer.body["hits"]["hits"]] == ["1"]
        write = Request("PUT", "/news/_doc/1", {}, {}, {"body": "new"})
        assert driver.handle(write, lambda _: Answer({"result": "updated"})).body == {"result": "updated"}
    assert [record.getMessage() for record in caplog.records] == [
        "the cache failed, searches continue without it: ConnectionError('cannot get')"
    ]


def test_what_a_search_found_before_a_write_is_not_given_after_it() -> None:
    driver = Driver(in_one_phase(settings_of(frequency_table=False)))
    stored = ["old"]
    fields = {"ndd.sketch": [1, 2], "ndd.recipe": [Recipe().id]}

    def send(request: Request) -> Answer:
        if request.path != "/news/_search":
            stored[:] = ["new"]
            return Answer({"result": "updated"})
        hit = {"_index": "news", "_id": "1", "_score": 1.0, "_source": {"body": stored[0]}, "fields": dict(fields)}
        if stored == ["old"]:  # somebody writes while this answer is on its way
            driver.handle(Request("PUT", "/news/_doc/1", {}, {}, {"body": "new"}), send)
        return Answer({"took": 1, "hits": {"total": {"value": 1, "relation": "eq"}, "hits": [hit]}})

    wanted = Request("POST", "/news/_search", {}, {}, {"query": MATCH})
    shown = [driver.handle(wanted, send).body["hits"]["hits"][0]["_source"]["body"] for _ in range(2)]
    assert shown == ["old", "new"]
    assert driver.handle(wanted, send).body["ndd"]["cache"] == "hit"


def test_a_search_that_fails_as_a_whole_does_not_keep_others_from_being_split() -> None:
    driver, sent = Driver(settings_of(frequency_table=False, cache=False)), list[str]()
    missing = {"error": {"type": "index_not_found_exception", "reason": "no such index"}, "status": 404}

    def send(request: Request) -> Answer:
        sent.append(request.path)
        return Answer(missing, 404)

    for _ in range(2):
        assert driver.handle(SEARCH, send).status == 404
    assert sent == ["/news/_search"] * 4  # each is asked for in two phases, then in one


def test_a_document_that_nests_too_deep_for_the_parser_costs_no_page_without_it() -> None:
    """Python 3.11 reads fewer levels than engines keep, and the window holds hits that the caller did not ask for."""
    for settings in (settings_of(cache=False), in_one_phase(settings_of(cache=False))):

        def send(request: Request) -> Answer:
            if request.body != SEARCH.body:
                raise RecursionError
            return one_hit(request)

        answer = Driver(settings).handle(SEARCH, send)
        assert [one["_id"] for one in answer.body["hits"]["hits"]] == ["1"]
        assert "the wider request" in answer.body["ndd"]["degraded"]


@pytest.mark.parametrize("status", [400, 403])
def test_an_engine_that_refuses_only_the_documents_is_asked_in_one_phase_from_then_on(status: int) -> None:
    driver, sent = Driver(settings_of(frequency_table=False, cache=False)), list[Any]()

    def send(request: Request) -> Answer:
        sent.append(request.body.get("_source"))
        return Answer("no", status) if "_seq_no" in str(request.body) else one_hit(request)

    for _ in range(2):
        assert driver.handle(SEARCH, send).body["ndd"]["kept"] == 1
    assert [one is False for one in sent] == [True, False, False, False]


@pytest.mark.parametrize("start", [0, 10])
def test_what_an_engine_refuses_of_documents_is_told_where_no_document_is_found(start: int) -> None:
    sent = list[Request]()

    def send(request: Request) -> Answer:
        sent.append(request)
        if "script_fields" in request.body:
            return Answer("no such script", 400)
        return one_hit(request) if start else Answer({"took": 1, "hits": {"total": 0, "hits": []}})

    driver = Driver(settings_of(frequency_table=False))
    plain = {"query": MATCH, "from": start}
    driver.handle(Request("POST", "/news/_search", {}, {}, plain), send)
    requests = len(sent)
    body = {**plain, "script_fields": {"price": {"script": {"lang": "none", "source": "1"}}}}
    answer = driver.handle(Request("POST", "/news/_search", {}, {}, body), send)
    assert (answer.status, answer.body) == (400, "no such script")
    assert len(sent) <= 2 * requests + 1


class SlowEngine:
    """Answers a search when it is released; `asked` is set when a request has come."""

    def __init__(self) -> None:
        self.asked, self.go_on, self.sent = threading.Event(), threading.Event(), list[Request]()

    def send(self, request: Request) -> Answer:
        self.sent.append(request)
        self.asked.set()
        self.go_on.wait(60)
        return one_hit(request)


def test_who_waits_for_another_gets_the_engines_own_page_when_his_time_budget_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = list[float]()

    def noted(step: Wait) -> None:
        waited.append(step.seconds)
        wait([step.flight], min(step.seconds, 1.0))

    monkeypatch.setattr("ndd_search.search.flow.intercept_requests._wait_for", noted)
    driver, slow = Driver(in_one_phase(settings_of(frequency_table=False, time_budget=0.2))), SlowEngine()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(driver.handle, SEARCH, slow.send)
        slow.asked.wait(60)
        sent: list[Request] = []
        answer = driver.handle(SEARCH, lambda request: sent.append(request) or one_hit(request))  # type: ignore[func-returns-value]
        assert not first.done()
        slow.go_on.set()
        assert [one.body for one in sent] == [SEARCH.body]
        assert answer.body["ndd"]["degraded"].startswith("no page was made within time_budget")
        assert max(waited) <= 0.2
        assert first.result().body["ndd"]["degraded"] is None


def test_who_waits_for_another_gets_his_page_as_soon_as_it_is_there() -> None:
    driver, slow = Driver(in_one_phase(settings_of(frequency_table=False))), SlowEngine()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(driver.handle, SEARCH, slow.send)
        slow.asked.wait(60)
        other = pool.submit(driver.handle, SEARCH, slow.send, 10.0)  # type: ignore[arg-type]
        slow.go_on.set()
        assert other.result().body["hits"] == first.result().body["hits"]
        assert len(slow.sent) == 1


def test_headers_of_any_type_pass_through_an_msearch() -> None:
    driver = Driver(in_one_phase(settings_of(frequency_table=False)))
    headers: dict[str, Any] = {"content-type": "application/x-ndjson", "authorization": b"Basic x", "x-tries": 1}
    sent: list[Request] = []

    def send(request: Request) -> Answer:
        sent.append(request)
        return Answer({"took": 1, "responses": [{**one_hit(request).body, "status": 200}]})

    answer = driver.handle(Request("POST", "/_msearch", {}, headers, [{"index": "news"}, {"query": MATCH}]), send)
    assert answer.body["responses"][0]["ndd"]["examined"] == 1
    assert sent[0].headers == headers


def test_a_limit_that_another_search_meets_meanwhile_narrows_a_search_too() -> None:
    driver = Driver(in_one_phase(settings_of(frequency_table=False, cache=False)))
    wanted, met = Request("POST", "/news/_search", {}, {}, {"query": MATCH, "size": 60}), list[Answer]()

    def send(request: Request) -> Answer:
        if request.body["size"] <= 70:
            return one_hit(request)
        if not met:
            met.append(driver.handle(wanted, lambda one: send(one) if met else refusal(one)))
        return refusal(request)

    def refusal(request: Request) -> Answer:
        met.append(Answer({}))
        reason = "Result window is too large, from + size must be less than or equal to: [70] but was [100]"
        return Answer({"error": {"type": "illegal_argument_exception", "reason": reason}, "status": 400}, 400)

    assert driver.handle(wanted, send).body["ndd"]["degraded"] is None


def test_a_document_that_holds_an_answer_of_its_own_is_shown_as_it_is_stored() -> None:
    stored = {"hits": {"hits": [{"_id": "2", "_source": {"ndd": {"recipe": Recipe().id, "sketch": [1]}}}]}}
    best = {"hits": {"hits": [{"_id": "1", "_source": {"log": copy.deepcopy(stored), "ndd": {"recipe": Recipe().id}}}]}}
    answer = {"hits": {"hits": []}, "aggregations": {"sites": {"buckets": [{"best": best}]}}}
    body = {"aggs": {"sites": {"terms": {"field": "site"}, "aggs": {"best": {"top_hits": {}}}}}}
    SketchFilter(body, SketchField()).clean(answer)
    assert best["hits"]["hits"][0]["_source"] == {"log": stored}


@pytest.mark.parametrize(
    "other",
    [
        {"recipe": Recipe.words(k=32)},
        {"frequency_table": True},
        {"items": Items(name=Name())},
    ],
)
def test_clients_that_share_a_cache_share_pages_only_if_they_decide_alike(
    other: dict[str, Any],
) -> None:
    cache, plain = MemoryCache(), dict[str, Any](frequency_table=False)

    def page(**settings: Any) -> str:
        driver = Driver(in_one_phase(settings_of(cache=cache, **settings)))
        driver.settings.memory.caller = "ann"
        return str(driver.handle(SEARCH, one_hit).body.get("ndd", {}).get("cache"))

    assert [page(**plain), page(**plain)] == ["miss", "hit"]
    assert page(**{**plain, **other}) != "hit"
    assert page(**plain) == "hit"
