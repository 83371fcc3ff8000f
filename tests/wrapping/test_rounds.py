"""The page is the same in one phase and in two, and a fault between two requests never makes a wrong page."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

import ndd_search as ndd
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, Library, bulk
from tests.wrapping.library import actions, mapping
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_faults import LATER, LONG
from tests.wrapping.test_requests import FETCHES
from tests.wrapping.test_searches import MATCH, copies

pytestmark = pytest.mark.one_kind_of_client

STRATEGIES = ("one_phase", "two_phases")
PAGE = {"query": MATCH, "size": 10}  # copies of its hits are all over the window of 100

OPTIONS: dict[str, dict[str, Any]] = {
    "group": {},
    "drop": {"mode": "drop"},
    "demote": {"mode": "demote"},
    "annotate": {"mode": "annotate"},
    "two of each": {"max_per_group": 2},
    "the newest": {"keep": ["newest:published"]},
    "the longest": {"keep": ["longest"]},
    "same language": {"guards": ["same:language"]},
    "ids of copies": {"mode": "ids"},
    "numbers of copies": {"mode": "count"},
    "a bar that nothing meets": {"min_similarity": 1.0},
}


def without_facts(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what tells how and when it was made."""
    block = {name: value for name, value in answer["ndd"].items() if name not in ("took_ms", "strategy")}
    return {**{name: value for name, value in answer.items() if name != "took"}, "ndd": block}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_strategy_gives_the_same_pages_in_every_mode(name: str, library: Library, connect: Connect) -> None:
    callers = [connect(window=100, cache=False, splits=splits) for splits in (False, True)]
    reads_documents = name in ("the newest", "same language")
    for start in (0, 10, 60):
        asked = {**PAGE, "from": start, "ndd": OPTIONS[name]}
        whole, split = (caller.search(index=library.news, body=asked) for caller in callers)
        assert (whole["ndd"]["strategy"], len(ids(whole))) == ("one_phase", 10)
        assert split["ndd"]["strategy"] == ("one_phase" if reads_documents else "two_phases")
        assert without_facts(split) == without_facts(whole)


@pytest.mark.parametrize("name", FETCHES)
def test_every_strategy_fetches_of_a_hit_what_the_user_asked(name: str, library: Library, connect: Connect) -> None:
    body, params, _, _ = FETCHES[name]
    callers = [connect(window=100, cache=False, splits=splits) for splits in (False, True)]
    made = [caller.ask("POST", f"/{library.news}/_search", {**PAGE, **body}, params) for caller in callers]
    assert len(made[0]["hits"]["hits"]) == 10
    assert without_facts(made[1]) == without_facts(made[0])


def bodies(one: Passed) -> list[dict[str, Any]]:
    """The searches in a request."""
    lines = [json.loads(line) for line in one.body.splitlines()]
    return lines[1::2] if "_msearch" in one.target else lines


@pytest.mark.parametrize("name", ["docvalue_fields", "fields"])
def test_a_field_in_a_format_is_shown_in_it_and_compared_by_its_value(
    name: str, library: Library, connect: Connect
) -> None:
    """All are of one year, so by the values in that format every copy would be as new as its group."""
    caller = connect(cache=False, keep=["newest:published"])
    body = {"query": MATCH, "size": 20, "_source": ["published"]}
    by_value = caller.search(index=library.news, body=body)["hits"]["hits"]
    body[name] = [{"field": "published", "format": "yyyy"}]
    answer = caller.search(index=library.news, body=body)
    assert answer["ndd"]["warnings"] == []
    assert [hit["_source"] for hit in answer["hits"]["hits"]] == [hit["_source"] for hit in by_value]
    assert {tuple(hit["fields"]["published"]) for hit in answer["hits"]["hits"]} == {("2024",)}
    body["rescore"] = {"window_size": 10, "query": {"rescore_query": MATCH}}  # which is not fetched in parts
    answer = caller.search(index=library.news, body=body)
    assert {tuple(hit["fields"]["published"]) for hit in answer["hits"]["hits"]} == {("2024",)}
    (warning,) = answer["ndd"]["warnings"]
    assert "'published'" in warning


def test_what_is_sent(library: Library, connect: Connect, proxy: Proxy) -> None:
    """Two trips at most, sketches of the window once, aggregations once, and no document that is not shown."""
    asked = {**PAGE, "aggs": {"mean": {"avg": {"field": "price"}}}, "highlight": {"fields": {"body": {}}}}
    round_trips, listed = {}, 0
    for strategy in STRATEGIES:
        splits = strategy == "two_phases"
        caller = connect(proxy.url, window=100, cache=False, frequency_table=False, splits=splits)
        proxy.reset()
        answer = caller.search(index=library.news, body=asked)
        assert all("body" in hit["highlight"] for hit in answer["hits"]["hits"])
        listed = sum(len(copies(hit)) for hit in answer["hits"]["hits"])
        round_trips[strategy] = [bodies(one) for one in proxy.searches]
        sent = [body for trip in round_trips[strategy] for body in trip]
        assert len([body for body in sent if "aggs" in body]) == 1
        assert "mean" in answer["aggregations"]
        if strategy != "one_phase":
            (sketches,) = [body for body in sent if body.get("_source") is False]
            assert (sketches["from"], sketches["size"], sketches["stored_fields"]) == (0, 100, "_none_")
            assert "highlight" not in sketches
    assert [len(round_trips[strategy]) for strategy in STRATEGIES] == [1, 2]
    ((documents,),) = round_trips["two_phases"][1:]
    assert 10 + listed <= documents["size"] <= 10 + listed + 20  # numbers of versions that other shards have, too
    assert len(documents["query"]["bool"]["filter"][0]["terms"]["_seq_no"]) <= 10 + listed


def test_copies_that_are_only_counted_need_no_documents_and_those_that_are_named_tell_none(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    """Their number is always right. What was fetched for one listing is not taken for another one's documents."""
    caller = connect(proxy.url, window=100, frequency_table=False)
    pages, sent = {}, dict[str, list[list[dict[str, Any]]]]()
    for listing in ("count", "ids", "group", "ids"):
        proxy.reset()
        pages[listing] = caller.search(index=library.news, body={**PAGE, "ndd": {"mode": listing}})["hits"]["hits"]
        sent.setdefault(listing, [bodies(one) for one in proxy.searches])
    counted, named, whole = (pages[listing] for listing in ("count", "ids", "group"))
    assert [hit["_source"] for hit in counted] == [hit["_source"] for hit in named] == [hit["_source"] for hit in whole]
    groups = [
        [hit["inner_hits"]["near_duplicates"]["hits"] for hit in hits if "inner_hits" in hit]
        for hits in (counted, named, whole)
    ]
    for few, ids_only, full in zip(*groups, strict=True):
        assert few == {"total": full["total"], "max_score": None, "hits": []}
        assert [one["_id"] for one in ids_only["hits"]] == [one["_id"] for one in full["hits"]]
        assert not any("_source" in one for one in ids_only["hits"])
        assert all("_source" in one for one in full["hits"])
    asked = {}
    for listing in ("count", "ids", "group"):
        (documents,) = [body for trip in sent[listing] for body in trip if body.get("_source") is not False]
        asked[listing] = set(documents["query"]["bool"]["filter"][0]["terms"]["_seq_no"])
    assert (
        asked["count"] < asked["ids"] == asked["group"]
    )  # texts of named copies are compared with their sketches, too


def test_the_next_page_asks_for_documents_only(library: Library, connect: Connect, proxy: Proxy) -> None:
    caller = connect(proxy.url, window=100, frequency_table=False)
    plain = connect(window=100, cache=False, splits=False)
    first = caller.search(index=library.news, body=PAGE)
    proxy.reset()
    second = caller.search(index=library.news, body={**PAGE, "from": 10})
    sent = [body for one in proxy.searches for body in bodies(one)]
    assert sent
    assert all(body["size"] < 60 and body["_source"] is not False for body in sent)
    assert second["hits"] == plain.search(index=library.news, body={**PAGE, "from": 10})["hits"]
    assert not set(ids(first)) & set(ids(second))
    again = caller.search(index=library.news, body={**PAGE, "from": 10})
    assert again["ndd"]["cache"] == "hit"
    assert again["hits"] == second["hits"]


@pytest.mark.parametrize("start", [0, 18, 40])
def test_two_phases_give_the_page_where_the_list_ends_before_it_does(
    start: int, library: Library, connect: Connect
) -> None:
    caller = connect(window=20, max_window=20, cache=False, frequency_table=False, mode="annotate")
    body = {"query": MATCH, "from": start, "size": 3}
    whole = caller.search(index=library.news, body={**body, "timeout": "1m"})
    answer = caller.search(index=library.news, body=body)
    assert (whole["ndd"]["strategy"], answer["ndd"]["strategy"]) == ("one_phase", "two_phases")
    assert len(ids(answer)) == min(3, max(0, 20 - start))
    assert without_facts(answer) == without_facts(whole)


def test_a_keep_of_your_own_is_given_documents_though_sketches_are_remembered(
    library: Library, connect: Connect
) -> None:
    caller = connect(window=100, frequency_table=False)
    assert caller.search(index=library.news, body=PAGE)["ndd"]["strategy"] == "two_phases"
    with ndd.options(keep=[lambda hit: hit["_source"]["published"]]):
        answer = caller.search(index=library.news, body=PAGE)
    wish = {"keep": ["oldest:published"], "cache": False}
    assert ids(answer) == ids(caller.search(index=library.news, body={**PAGE, "ndd": wish}))


REFUSED = ("refused", "not found", "not allowed")  # as by what stands before an engine and forbids such a request


def for_documents(harm: Harm) -> Any:
    """Do harm to the first request for the documents of a page."""
    seen: list[int] = []

    def chosen(number: int, request: Passed) -> Harm | None:
        seen.extend([number] if b'"_seq_no":[' in request.body else [])
        return harm if seen == [number] else None

    return chosen


@pytest.mark.newest_servers
@pytest.mark.parametrize("is_cached", [False, True])
@pytest.mark.parametrize("name", LATER)
def test_documents_that_cannot_be_fetched_give_the_page_of_the_engine_or_of_one_phase(
    name: str, is_cached: bool, library: Library, connect: Connect, proxy: Proxy
) -> None:
    later = {**PAGE, "from": 20}
    plain = connect(wrapped=False).search(index=library.news, body={**later, "_source": {"excludes": ["ndd"]}})
    healthy = connect(window=100, cache=False, splits=False).search(index=library.news, body=later)
    caller = connect(proxy.url, window=100, frequency_table=False, client={"max_retries": 0})
    if is_cached:  # the stream, without documents of the later page
        caller.search(index=library.news, body=PAGE)
    proxy.reset(for_documents(LATER[name]))
    answer = caller.search(index=library.news, body=later)
    assert len(proxy.searches) == 3 - is_cached
    if name in REFUSED:
        assert (answer["hits"], answer["ndd"]["degraded"]) == (healthy["hits"], None)
    else:
        assert ids(answer) == ids(plain)
        assert answer["ndd"] == {"degraded": "the documents to show could not be fetched, the page is the engine's own"}
    proxy.reset(lambda number, _: Harm(status=503))
    if name not in REFUSED:  # it is not remembered
        with pytest.raises(Exception) as raised:  # noqa: PT011 - of either client
            caller.search(index=library.news, body=later)
        assert getattr(raised.value, "status_code", None) == 503


def test_documents_are_waited_for_when_no_time_is_left(library: Library, connect: Connect, proxy: Proxy) -> None:
    healthy = connect(window=100, cache=False, splits=False).search(index=library.news, body=PAGE)
    proxy.reset(for_documents(Harm(delay=2.1)))
    caller = connect(proxy.url, window=100, frequency_table=False, time_budget=2.0)
    answer = caller.search(index=library.news, body=PAGE)
    assert (answer["hits"], answer["ndd"]["degraded"]) == (healthy["hits"], None)
    assert len(proxy.searches) == 2


def test_a_later_trip_that_is_refused_is_not_tried_again_beyond_the_time(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    if library.engine.family != "elasticsearch":
        pytest.skip("opensearch-py cannot be told for a single request")
    proxy.reset(lambda number, _: Harm(status=503) if number else None)
    caller = connect(proxy.url, frequency_table=False, time_budget=60.0)
    assert caller.search(index=library.news, body=LONG)["ndd"]["degraded"]
    assert len(proxy.searches) == 2  # the client on its own would have asked three times more


@pytest.mark.newest_servers
@pytest.mark.parametrize("status", [400, 403, 404, 405])
def test_an_engine_that_refuses_to_give_documents_apart_is_asked_in_one_phase(
    status: int, library: Library, connect: Connect, proxy: Proxy
) -> None:
    body = b'{"error": {"type": "x", "reason": "no", "root_cause": []}, "status": %d}' % status
    proxy.reset(lambda _, request: Harm(status=status, body=body) if b'"_seq_no":[' in request.body else None)
    caller = connect(proxy.url, window=100, cache=False, frequency_table=False)
    healthy = connect(window=100, cache=False, splits=False).search(index=library.news, body=PAGE)
    for round_trips in (3, 4):  # the second search does not try again
        answer = caller.search(index=library.news, body=PAGE)
        assert answer["hits"] == healthy["hits"]
        assert (answer["ndd"]["strategy"], answer["ndd"]["degraded"]) == ("one_phase", None)
        assert len(proxy.searches) == round_trips


def test_an_index_that_changes_between_the_trips_is_asked_again_in_one_phase(
    engine: Engine, index: str, connect: Connect, proxy: Proxy
) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(engine, client, actions(index, engine))
        best = client.search(index=index, body={"query": MATCH, "size": 1})["hits"]["hits"][0]["_id"]

        def change(_: int, request: Passed) -> Harm | None:
            if len(proxy.searches) == 2:  # the second trip: the best hit is not there any more
                client.delete(index=index, id=best, refresh=True)
            return None

        caller = connect(proxy.url, window=100, cache=False, frequency_table=False)
        proxy.reset(change)
        answer = caller.search(index=index, body=PAGE)
        assert len(proxy.searches) == 3
        assert answer["ndd"]["strategy"] == "one_phase"
        assert best not in ids(answer)
        after = connect(window=100, cache=False, splits=False).search(index=index, body=PAGE)
        assert without_facts(answer) == without_facts(after)
        assert answer["hits"]["total"] == {"value": answer["ndd"]["kept"], "relation": "gte"}
        time.sleep(1.1)  # a change is no reason to leave the two phases for longer
        assert caller.search(index=index, body=PAGE)["ndd"]["strategy"] == "two_phases"


def test_documents_are_found_again_in_another_order(engine: Engine, index: str, connect: Connect, proxy: Proxy) -> None:
    def titles(word: str, kind: str, count: int) -> list[dict[str, Any]]:
        words = [f"{word}{number}" for number in range(6 * count)]
        found = [{"title": " ".join((word, *words[place::count])), "kind": kind} for place in range(count)]
        return [{"_index": index, **one} for one in ndd.with_sketches(found, fields=["title"])]

    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        bulk(engine, client, titles("friday", "hit", 5) + titles("bridge", "hit", 20))
        body = {
            "query": {"bool": {"must": {"match": {"title": "friday bridge"}}, "filter": {"match": {"kind": "hit"}}}},
            "size": 10,
        }

        def change(_: int, request: Passed) -> Harm | None:
            if len(proxy.searches) == 2:  # "friday" becomes the more common word, and the page would be another one
                bulk(engine, client, titles("friday", "other", 200))
            return None

        caller = connect(proxy.url, window=100, cache=False, frequency_table=False)
        before = connect(window=100, cache=False, splits=False).search(index=index, body=body)
        proxy.reset(change)
        answer = caller.search(index=index, body=body)
        assert (answer["ndd"]["strategy"], len(proxy.searches)) == ("two_phases", 2)
        assert answer["hits"] == before["hits"]
        after = connect(wrapped=False).search(index=index, body=body)
        assert sorted(ids(after)[:5]) != sorted(ids(answer)[:5])


def test_an_index_without_sketches_pays_for_no_window(library: Library, connect: Connect, proxy: Proxy) -> None:
    whole = connect(wrapped=False).search(index=library.bare, body=PAGE)
    caller = connect(proxy.url, window=100, cache=False)
    for _ in range(2):
        answer = caller.search(index=library.bare, body=PAGE)
        assert {**answer, "took": 0} == {**whole, "took": 0}


def test_a_remembered_stream_that_is_older_than_the_index_is_fetched_again(
    engine: Engine, index: str, connect: Connect, proxy: Proxy
) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(engine, client, actions(index, engine))
        caller = connect(proxy.url, window=100, frequency_table=False)
        first = caller.search(index=index, body=PAGE)
        next_one = connect(cache=False).search(index=index, body={**PAGE, "from": 10})
        for one in (*ids(first)[:3], ids(next_one)[4]):
            client.delete(index=index, id=one, refresh=True)
        second = caller.search(index=index, body={**PAGE, "from": 10})
        now = connect(window=100, cache=False, splits=False).search(index=index, body={**PAGE, "from": 10})
        assert second["hits"] == now["hits"]
        assert second["ndd"]["strategy"] == "one_phase"
        assert caller.search(index=index, body={**PAGE, "size": 9})["ndd"]["strategy"] == "two_phases"  # as before


def test_scores_are_those_that_the_sketches_came_with(library: Library, connect: Connect, proxy: Proxy) -> None:
    """A score that depends on the time of day is another one in the next request."""

    def a_little_later(number: int, request: Passed) -> Harm | None:
        if not number:
            return None
        names = ("content-type", "accept")
        headers = {name: request.headers[name] for name in names if name in request.headers}
        asked = Request(library.engine.url + request.target, request.body, headers)
        with build_opener(ProxyHandler({})).open(asked) as answer:
            return Harm(status=200, body=re.sub(rb'"_score":[0-9.]+', b'"_score":0.001', answer.read()))

    proxy.reset(a_little_later)
    healthy = connect(window=100, cache=False, splits=False).search(index=library.news, body=PAGE)
    answer = connect(proxy.url, window=100, frequency_table=False).search(index=library.news, body=PAGE)
    assert len(proxy.searches) == 2
    assert answer["ndd"]["degraded"] is None
    assert answer["hits"] == healthy["hits"]
