"""What a search must not take for its own: pages of other callers, other requests and older documents.

Each test runs without a server. A function or a small object answers like an engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest
from opensearchpy import OpenSearch

from ndd_search.core.paging.cache import MemoryCache
from ndd_search.core.paging.cached_streams import CachedStreams
from ndd_search.core.paging.stream import NO_HITS
from ndd_search.core.recipe import Recipe
from ndd_search.errors import CursorExpired
from ndd_search.indexing.rate_and_retries import Retry
from ndd_search.indexing.scan import snapshot
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request, read_search
from tests.searching import MATCH, SEARCH, hit_of, in_one_phase, one_hit
from tests.test_conversations import SlowEngine

Send = Callable[[Request], Answer]


def found(*hits: dict[str, Any]) -> Answer:
    return Answer({"took": 1, "hits": {"total": {"value": len(hits), "relation": "eq"}, "hits": list(hits)}})


def driver_of(cache: MemoryCache, user: str = "ann", **settings: Any) -> Driver:
    """The driver of a client that signs in as a user."""
    made = Driver(in_one_phase(settings_of(cache=cache, frequency_table=False, **settings)))
    made.settings.memory.serve(OpenSearch("http://engine:9200", http_auth=(user, "x")).transport)
    return made


def cached(driver: Driver, send: Send = one_hit, params: dict[str, str] | None = None) -> str:
    """Whether a page came out of the cache: "hit" or "miss"."""
    answer = driver.handle(Request("POST", "/news/_search", params or {}, {}, {"query": MATCH}), send)
    return str(answer.body["ndd"]["cache"])


def test_clients_of_two_users_share_no_page() -> None:
    cache = MemoryCache()
    drivers = [driver_of(cache, user) for user in ("ann", "bob", "ann")]
    assert [cached(driver) for driver in drivers] == ["miss", "miss", "hit"]


def test_searches_with_other_parameters_share_no_page() -> None:
    driver = driver_of(MemoryCache())
    params: list[dict[str, str]] = [{}, {"routing": "a"}, {"routing": "b"}, {"q": "a"}, {"q": "b"}]
    assert [cached(driver, params=one) for one in params] == ["miss"] * len(params)
    assert [cached(driver, params=one) for one in params] == ["hit"] * len(params)


def test_clients_whose_sketches_are_in_other_fields_share_no_page() -> None:
    cache = MemoryCache()
    hit = {**hit_of("1"), "fields": {f"{field}.{part}": value for field in ("ndd", "own") for part, value in PARTS}}
    drivers = [driver_of(cache, indexes={"*": {"field": field}}) for field in ("ndd", "own", "own")]
    assert [cached(driver, lambda _: found(dict(hit))) for driver in drivers] == ["miss", "miss", "hit"]


PARTS = [(path.partition(".")[2], value) for path, value in hit_of("1")["fields"].items()]


class Lost(Exception):
    """The connection was cut, or no answer came in time."""


@pytest.mark.parametrize("path", ["/news/_doc/1", "/news/_delete_by_query", "/_bulk"])
@pytest.mark.parametrize("answer", [Answer({"deleted": 1}), Answer("unavailable", 503), Lost(), TimeoutError()])
def test_after_a_write_that_may_have_been_done_no_page_from_before_is_shown(
    path: str, answer: Answer | Exception
) -> None:
    cache = MemoryCache()
    driver, other = driver_of(cache), driver_of(cache)

    def write(_: Request) -> Answer:
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert [cached(driver), cached(other)] == ["miss", "hit"]
    try:
        driver.handle(Request("POST", path, {}, {}, {"query": MATCH}), write)
    except (Lost, TimeoutError) as error:
        assert error is answer  # noqa: PT017 - others answer
    assert [cached(other), cached(driver)] == ["miss", "hit"]


def test_a_page_of_an_alias_that_was_written_to_meanwhile_is_not_kept() -> None:
    """The index behind the alias is known from the hits, when another client has already written to it."""
    cache = MemoryCache()
    one, other = driver_of(cache), driver_of(cache)

    def send(_: Request) -> Answer:
        write = Request("PUT", "/news-1/_doc/1", {}, {}, {"body": "new"})
        other.handle(write, lambda _: Answer({"_index": "news-1", "result": "updated"}))
        return found({**hit_of("1"), "_index": "news-1"})

    assert cached(one, send) == "miss"
    assert cached(one) == "miss"


def test_an_error_while_a_stream_grows_lets_others_go_on() -> None:
    streams = CachedStreams(MemoryCache())

    def fail(_: Any) -> Any:
        raise Lost

    with pytest.raises(Lost):
        streams.grow(b"key", lambda _: False, fail)
    other = Thread(target=lambda: streams.grow(b"key", lambda _: False, lambda _: NO_HITS), daemon=True)
    other.start()
    other.join(20)
    assert not other.is_alive()


def test_a_search_with_a_time_budget_waits_for_another_no_longer() -> None:
    driver, slow = Driver(in_one_phase(settings_of(frequency_table=False, time_budget=0.1))), SlowEngine()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(driver.handle, SEARCH, slow.send)
        slow.asked.wait(60)
        began = time.monotonic()
        driver.handle(SEARCH, one_hit)
        assert time.monotonic() - began < 20  # without a budget it waits for 30 seconds
        slow.go_on.set()
        first.result()


def test_a_search_that_asks_to_be_collapsed_is_told_why_it_is_not() -> None:
    """Also while other searches of an index without sketches are left alone without a word."""
    driver = Driver(in_one_phase(settings_of(cache=False, frequency_table=False)))
    plain = {"_index": "news", "_id": "1", "_score": 1.0, "_source": {"body": "x"}}

    def send(request: Request) -> Answer:
        return found() if "exists" in str(request.body) else found(dict(plain))

    assert "ndd" not in driver.handle(SEARCH, send).body
    assert "ndd" not in driver.handle(SEARCH, send).body
    asked = Request("POST", "/news/_search", {}, {}, {"query": MATCH, "ndd": {"mode": "annotate"}})
    assert "no hit has a sketch" in driver.handle(asked, send).body["ndd"]["degraded"]


@pytest.mark.parametrize(
    "body",
    [
        {"query": MATCH, "slice": {"id": 0, "max": 2}},
        {"query": {"pinned": {"organic": MATCH, "docs": [{"_index": "news", "_id": "1"}]}}},
        {"query": {"pinned": {"organic": MATCH, "ids": ["1"]}}},
    ],
)
def test_a_search_for_a_part_of_the_hits_or_for_documents_by_id_is_left_alone(body: dict[str, Any]) -> None:
    assert read_search(Request("POST", "/news/_search", {}, {}, body)) is None
    driver = Driver(settings_of(cache=False))
    assert "ndd" not in driver.handle(Request("POST", "/news/_search", {}, {}, body), one_hit).body


def test_who_asks_for_the_sketch_by_a_pattern_gets_it() -> None:
    driver = Driver(in_one_phase(settings_of(cache=False, frequency_table=False)))
    stored = {"body": "x", "ndd": {"sketch": [1], "recipe": Recipe().id}}
    for pattern, shown in (("ndd*", stored), ("*", {"body": "x"})):
        asked = Request("POST", "/news/_search", {}, {}, {"query": MATCH, "_source": [pattern]})
        answer = driver.handle(asked, lambda _: found({**hit_of("1"), "_source": {**stored, "ndd": {**stored["ndd"]}}}))  # type: ignore[dict-item]
        assert answer.body["hits"]["hits"][0]["_source"] == shown


def test_all_requests_of_a_page_go_to_one_copy_of_each_shard() -> None:
    """Copies break ties differently: hits would be twice on a page, or on none."""
    driver, sent = Driver(settings_of(cache=False, frequency_table=False)), list[Request]()

    def send(request: Request) -> Answer:
        sent.extend(request.parts or (request,))
        return one_hit(request)

    driver.handle(SEARCH, send)
    driver.handle(Request("POST", "/news/_search", {"preference": "mine"}, {}, {"query": MATCH}), send)
    preferences = [one.params.get("preference") for one in sent]
    assert len(set(preferences[: preferences.index("mine")])) == 1
    assert preferences[0] is not None
    assert set(preferences[preferences.index("mine") :]) == {"mine"}


class Refusal(Exception):
    """An error of a client."""

    def __init__(self, status: int, reason: str = "refused") -> None:
        super().__init__(reason)
        self.status_code = status


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_what_the_engine_refuses_is_not_sent_again(status: int) -> None:
    sent: list[int] = []

    def send() -> None:
        sent.append(status)
        raise Refusal(status)

    retry = Retry()
    retry.stop()  # a second try would wait, and raise that it is stopped
    with pytest.raises(Refusal):
        retry.call(send)
    assert sent == [status]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (404, "No search context found for id [7]"),
        (500, "no node found for id: NYDbaggvShemaSRMC3j5qw"),
        (500, "[n2][127.0.0.1:9300] Node not connected"),
        (502, "node_disconnected_exception: [n2][127.0.0.1:9300] disconnected"),
    ],
)
def test_a_cursor_whose_node_has_left_has_expired(status: int, reason: str) -> None:
    driver, cursor = Driver(settings_of(cache=False, frequency_table=False)), list[Any]()
    pages = [{**hit_of(str(number)), "sort": [number]} for number in range(30)]
    for number, hit in enumerate(pages):
        hit["fields"] = {**hit["fields"], "ndd.sketch": [number + 1]}

    def send(request: Request) -> Answer:
        if request.path.endswith("_pit"):
            return Answer({"id": "point"})
        if cursor:
            raise Refusal(status, reason)
        return found(*pages)

    def page(asked: Any) -> Any:
        body = {"query": MATCH, "size": 1, "ndd": {"cursor": asked, "min_similarity": "identical", "window": 20}}
        return driver.handle(Request("POST", "/news/_search", {}, {}, body), send).body["ndd"]["cursor"]

    cursor.append(page(True))
    with pytest.raises(CursorExpired):
        page(cursor[0])


class Scanned:
    """The calls of a client that read an index through a point in time."""

    def __init__(self) -> None:
        self.open: list[str] = []

    def open_point_in_time(self, **_: Any) -> dict[str, str]:
        self.open.append("point")
        return {"id": "point"}

    def close_point_in_time(self, *, id: str) -> None:
        self.open.remove(id)

    def search(self, **_: Any) -> Any:
        return found(hit_of("1")).body if len(self.open) < 2 else found().body


@pytest.mark.parametrize("fails", [False, True])
def test_the_point_in_time_of_a_scan_is_freed(fails: bool) -> None:
    client: Any = Scanned()
    try:
        with snapshot(client, "news", Retry()) as now:
            assert client.open == [now.point]
            if fails:
                raise Lost
    except Lost:
        assert fails
    assert client.open == []


def test_members_beyond_the_neighbours_of_a_search_are_told_as_unknown() -> None:
    """With another clause, a search for so many neighbours would look for as many others."""
    made = Driver(settings_of(cache=False, frequency_table=False, members="all", window=1, max_window=1))
    body = {"query": {"knn": {"field": "v", "query_vector": [1.0], "k": 10, "num_candidates": 40}}, "size": 1}
    sent = list[Request]()

    def send(request: Request) -> Answer:
        sent.append(request)
        return one_hit(request)

    answer = made.handle(Request("POST", "/news/_search", {}, {}, body), send).body
    (told,) = answer["ndd"]["members"]["incomplete"]
    assert told == {"reason": "this kind of search cannot be limited to the copies of a hit", "ids": ["1"]}
    assert not any("filter" in str(one.body) for one in sent)
