"""Faults between requests: the page of the first round is returned, and only the engine's own errors are raised."""

from __future__ import annotations

import json
import logging
import time
from contextlib import ExitStack
from typing import Any

import pytest

import ndd_search as ndd
from tests.engines.find import Engine
from tests.engines.launch import free_ports
from tests.wrapping.conftest import Connect, Library, bulk
from tests.wrapping.library import actions, documents, expected, mapping
from tests.wrapping.proxy import Harm, Passed, Proxy, proxy_to
from tests.wrapping.test_clients import ids
from tests.wrapping.test_searches import MATCH

pytestmark = pytest.mark.one_kind_of_client
LONG = {"query": MATCH, "size": 60}  # more than the first window, of 80 hits, gives
GARBAGE = b'{"took": 1, "hits": {"hi'
NO_RESULT = b'{"took": 1}'
SHARDS_FAILED = b'{"took":1,"timed_out":false,"_shards":{"total":2,"successful":1,"failed":1},"hits":{"hits":[]}}'
TIMED_OUT = b'{"took":1,"timed_out":true,"_shards":{"total":2,"successful":2,"failed":0},"hits":{"hits":[]}}'

LATER: dict[str, Any] = {
    "cut": Harm(cut=True),
    "too many requests": Harm(status=429, body=b'{"error": "busy", "status": 429}'),
    "unavailable": Harm(status=503, body=b'{"error": "down", "status": 503}'),
    "garbage": Harm(status=200, body=GARBAGE),
    "no search result": Harm(status=200, body=NO_RESULT),
    "failed shards": Harm(status=200, body=SHARDS_FAILED),
    "timed out": Harm(status=200, body=TIMED_OUT),
    "refused": Harm(status=400, body=b'{"error": "no such field", "status": 400}'),
    "not signed in": Harm(status=401, body=b'{"error": "who are you", "status": 401}'),
    "failed": Harm(status=500, body=b'{"error": "oops", "status": 500}'),
    "not found": Harm(status=404, body=b'{"error": "gone", "status": 404}'),
    "half an answer": Harm(half=True),
    "redirect": Harm(status=302, headers={"location": "http://127.0.0.1:1/"}),
    "page of a gateway": Harm(status=502, body=b"<html>Bad Gateway</html>", headers={"content-type": "text/html"}),
    "status of nobody": Harm(status=418, body=b'{"error": "teapot", "status": 418}'),
    "not allowed": Harm(status=403, body=b'{"error": "no", "status": 403}'),
}


def after_the_first(harm: Harm) -> Any:
    """Do harm to every search but the first one."""
    seen: list[Passed] = []

    def chosen(_: int, request: Passed) -> Harm | None:
        if not request.target.partition("?")[0].endswith("search"):
            return None
        seen.append(request)
        return harm if len(seen) > 1 else None

    return chosen


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "ndd_search"]


@pytest.mark.newest_servers
@pytest.mark.parametrize("name", LATER)
def test_a_later_round_that_fails_gives_what_the_first_one_gave(
    name: str, library: Library, connect: Connect, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "ndd_search")
    caller = connect(proxy.url, frequency_table=False)
    healthy = connect(frequency_table=False, max_window=80, cache=False).search(index=library.news, body=LONG)
    for _ in range(2):  # it is not remembered either
        proxy.reset(after_the_first(LATER[name]))
        answer = caller.search(index=library.news, body=LONG)
        assert answer["hits"] == healthy["hits"]
        assert 40 < len(ids(answer)) < 60
        assert answer["ndd"]["degraded"] == "a later round failed, the page is made of the first hits"
        assert answer["ndd"]["cache"] == "miss"
        assert answer["hits"]["total"] == {"value": answer["ndd"]["kept"], "relation": "gte"}
    assert len(warnings_of(caplog)) == 1
    proxy.reset()
    assert len(ids(caller.search(index=library.news, body=LONG))) == 60


def test_a_server_that_goes_down_between_two_requests_gives_the_page_of_the_first(
    library: Library, connect: Connect
) -> None:
    with ExitStack() as stack:
        proxy = stack.enter_context(proxy_to(library.engine.url))
        caller, plain = (
            connect(proxy.url, wrapped=one, client={"max_retries": 0}, frequency_table=False) for one in (True, False)
        )
        proxy.reset(after_the_first(Harm(before=stack.close, cut=True)))
        answer = caller.search(index=library.news, body=LONG)
        assert 40 < len(ids(answer)) < 60
        assert answer["ndd"]["degraded"] == "a later round failed, the page is made of the first hits"
        assert outcome(caller, library.news, LONG)[0] is outcome(plain, library.news, LONG)[0]


def test_a_time_budget_ends_the_search_for_more(library: Library, connect: Connect, proxy: Proxy) -> None:
    caller = connect(proxy.url, time_budget=2.0, frequency_table=False)
    proxy.reset(after_the_first(Harm(delay=30.0)))
    began = time.perf_counter()
    answer = caller.search(index=library.news, body=LONG)
    assert time.perf_counter() - began < 25
    assert 40 < len(ids(answer)) < 60
    assert answer["ndd"]["degraded"]


@pytest.mark.newest_servers
def test_a_time_budget_bounds_the_total_of_a_whole_result(library: Library, connect: Connect, proxy: Proxy) -> None:
    body = {**LONG, "size": 3, "ndd": {"total": "groups"}}
    whole = connect(window=10, frequency_table=False).search(index=library.news, body=body)
    assert whole["ndd"]["exhausted"]
    caller = connect(proxy.url, window=10, cache=False, time_budget=5.0, frequency_table=False)
    proxy.reset()
    assert caller.search(index=library.news, body=body)["hits"] == whole["hits"]
    proxy.reset(lambda number, request: Harm(delay=30.0) if number and b'"terms"' not in request.body else None)
    began = time.perf_counter()
    answer = caller.search(index=library.news, body=body)
    assert time.perf_counter() - began < 25
    assert (answer["ndd"]["examined"], answer["ndd"]["degraded"] is None) == (10, False)
    assert answer["hits"]["total"] == {"value": answer["ndd"]["kept"], "relation": "gte"}
    assert ids(answer) == ids(whole)


def test_a_first_request_that_exceeds_a_time_budget_leaves_the_answer_to_the_callers_own(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    proxy.reset(lambda number, _: Harm(delay=30.0) if number == 0 else None)
    began = time.perf_counter()
    answer = connect(proxy.url, time_budget=2.0, frequency_table=False).search(index=library.news, body=LONG)
    assert time.perf_counter() - began < 25
    assert ids(answer) == ids(connect(wrapped=False).search(index=library.news, body=LONG))
    assert answer["ndd"]["degraded"].startswith("no page was made within time_budget")
    assert len(proxy.searches) == 2


def test_msearch_fails_open_for_each_search(library: Library, connect: Connect, proxy: Proxy) -> None:
    caller = connect(proxy.url, frequency_table=False, splits=False)
    lines: list[Any] = [{"index": library.news}, {"query": MATCH, "size": 5}, {"index": library.news}, LONG]
    for harm in (Harm(cut=True), Harm(status=503), Harm(status=200, body=GARBAGE), Harm(status=200, body=NO_RESULT)):
        proxy.reset(after_the_first(harm))
        short, long = caller.msearch(body=lines)["responses"]
        assert (len(ids(short)), short["ndd"]["degraded"]) == (5, None)
        assert 10 < len(ids(long)) < 60
        assert long["ndd"]["degraded"]


def test_msearch_gives_what_it_has_where_one_search_gets_nothing_at_all(
    library: Library, engine: Engine, index: str, connect: Connect, proxy: Proxy
) -> None:
    made = mapping(engine)
    made["mappings"]["properties"]["ndd"]["properties"]["sketch"] = {"type": "integer", "doc_values": False}
    with engine.client() as client:
        client.indices.create(index=index, body=made)  # refuses to read sketches, so its search needs a second round
        bulk(engine, client, actions(index, engine))
    caller = connect(proxy.url, frequency_table=False, splits=False, client={"max_retries": 0})
    lines: list[Any] = [{"index": library.news}, {"query": MATCH, "size": 5}, {"index": index}, {"query": MATCH}]
    for harm in (Harm(cut=True), Harm(status=503), Harm(status=200, body=b'"upstream connect error"')):
        proxy.reset(after_the_first(harm))
        good, bad = caller.msearch(body=lines)["responses"]
        assert (len(ids(good)), good["status"], good["ndd"]["degraded"]) == (5, 200, None)
        assert (bad["status"], "hits" in bad) == (503, False)
    proxy.reset()
    assert len(ids(caller.msearch(body=lines)["responses"][1])) == 10


def outcome(caller: Any, index: str, body: Any) -> Any:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - compared with the plain client's
        caller.search(index=index, body=body)
    return type(raised.value), str(raised.value).replace(str(id(raised.value)), "")


@pytest.mark.parametrize(
    ("index", "body"),
    [("ndd-not-there", LONG), ("{news}", {"query": {"bogus": {}}}), ("{news}", {"query": MATCH, "sort": ["body"]})],
)
def test_errors_of_the_engine_on_the_first_request_pass_untouched(
    index: str, body: Any, library: Library, connect: Connect
) -> None:
    name = index.format(news=library.news)
    assert outcome(connect(), name, body) == outcome(connect(wrapped=False), name, body)


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_refusal_of_the_first_request_passes_untouched(
    status: int, library: Library, connect: Connect, proxy: Proxy
) -> None:
    body = b'{"error": {"type": "security", "reason": "who are you", "root_cause": []}, "status": %d}' % status
    proxy.reset(lambda _, __: Harm(status=status, body=body))
    plain = outcome(connect(proxy.url, wrapped=False, client={"max_retries": 0}), library.news, LONG)
    assert outcome(connect(proxy.url, client={"max_retries": 0}), library.news, LONG) == plain
    assert len(proxy.searches) == (2 if status < 429 else 3)


FIRST = ("half an answer", "redirect", "page of a gateway", "status of nobody", "cut", "garbage")


@pytest.mark.one_kind_of_client
def test_a_first_request_that_fails_is_the_clients_own_error(library: Library, connect: Connect, proxy: Proxy) -> None:
    """Within the caller's timeout, and without a request more, unless the engine answered ours and failed."""
    timeout = "request_timeout" if library.engine.family == "elasticsearch" else "timeout"
    settings = {"max_retries": 0, timeout: 1.0}
    plain, wrapped = (connect(proxy.url, wrapped=one, client=settings) for one in (False, True))
    for name, harm in {**{name: LATER[name] for name in FIRST}, "slow": Harm(delay=1.5)}.items():
        proxy.reset(lambda _, __, harm=harm: harm)  # type: ignore[misc]
        began = time.perf_counter()
        (kind, _), (plain_kind, _) = outcome(wrapped, library.news, LONG), outcome(plain, library.news, LONG)
        assert kind is plain_kind, name
        assert len(proxy.searches) == (3 if harm.status and harm.status >= 400 else 2), name
        assert time.perf_counter() - began < 30


def test_a_server_that_is_down_is_the_clients_own_error(connect: Connect) -> None:
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    settings = {"max_retries": 0}
    wrapped = outcome(connect(url, client=settings), "news", LONG)
    plain = outcome(connect(url, wrapped=False, client=settings), "news", LONG)
    assert wrapped[0] is plain[0]


def test_a_request_that_only_our_wider_form_breaks_is_answered_as_it_came(
    library: Library, connect: Connect, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    error = b'{"error": {"root_cause": [{"type": "x", "reason": "no such field for me"}], "type": "x"}, "status": 400}'
    proxy.reset(lambda _, request: Harm(status=400, body=error) if b"ndd.sketch" in request.body else None)
    caplog.set_level(logging.WARNING, "ndd_search")
    answer = connect(proxy.url).search(index=library.news, body={**LONG, "ndd": {"mode": "drop"}})
    plain = connect(wrapped=False).search(index=library.news, body=LONG)
    for hit in plain["hits"]["hits"]:
        del hit["_source"]["ndd"]
        hit["_source"].pop("ndd_keys", None)
    assert answer["hits"] == plain["hits"]
    assert answer["ndd"]["degraded"].startswith("the engine refused the wider request: ")
    assert len(warnings_of(caplog)) == 1
    both = connect(proxy.url).msearch(body=[{"index": library.news}, LONG] * 2)["responses"]
    assert [one["hits"] for one in both] == [plain["hits"]] * 2


@pytest.mark.newest_servers
@pytest.mark.parametrize("shards", [1, 2])
def test_a_document_below_the_page_that_cannot_be_fetched_costs_no_hit(
    shards: int, engine: Engine, index: str, connect: Connect
) -> None:
    """Highlighting fails for one document, which the window holds and the page does not."""
    made = mapping(engine)
    made["settings"] = {"number_of_shards": shards, "index.highlight.max_analyzed_offset": 1000}
    acts = actions(index, engine, where=documents()[:40])
    for place, one in enumerate(acts):
        one |= {"price": place, "note": "note " * (300 if place == 13 else 3)}
    with engine.client() as client:
        client.indices.create(index=index, body=made)
        bulk(engine, client, acts)
    body = {"query": {"match": {"note": "note"}}, "sort": ["price"], "highlight": {"fields": {"note": {}}}}
    plain, caller = connect(wrapped=False), connect(cache=False)
    right = plain.search(index=index, body=body)["hits"]["hits"]
    assert len(right) == 10
    searches = [caller.search(index=index, body={**body, "ndd": True})]
    searches += caller.msearch(body=[{"index": index}, {**body, "ndd": True}] * 2)["responses"]
    for answer in searches:
        listed = [one["_id"] for hit in answer["hits"]["hits"] for one in (hit, *copies(hit))]
        assert {hit["_id"] for hit in right} <= set(listed)
        assert answer["_shards"]["failed"] == 0
        assert answer["ndd"]["degraded"].startswith("the engine refused the wider request")
    first = caller.search(index=index, body={**body, "ndd": {"cursor": True}})
    listed = [one["_id"] for hit in first["hits"]["hits"] for one in (hit, *copies(hit))]
    assert set(listed) == {hit["_id"] for hit in right}
    assert first["ndd"]["cursor"]


def copies(hit: Any) -> Any:
    return hit["inner_hits"]["near_duplicates"]["hits"]["hits"] if "inner_hits" in hit else []


def test_answers_that_are_partial_are_given_and_not_remembered(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    caller = connect(proxy.url)
    for said in (
        {"timed_out": True},
        {"_shards": {"total": 2, "successful": 1, "failed": 1}},
        {"terminated_early": True},
    ):
        proxy.reset()
        partial = connect(wrapped=False).search(
            index=library.news, body={**LONG, "size": 20, "docvalue_fields": ["ndd.*"]}
        )
        body = json.dumps({**partial, **said}).encode()
        proxy.reset(lambda _, __, body=body: Harm(status=200, body=body))  # type: ignore[misc]
        answer = caller.search(index=library.news, body={"query": MATCH})
        assert all(answer[name] == value for name, value in said.items())
        proxy.reset()
        assert caller.search(index=library.news, body={"query": MATCH})["ndd"]["cache"] == "miss"
        caller.ask("POST", f"/{library.bare}/_refresh")


def test_a_first_answer_that_is_partial_is_not_mixed_with_a_later_one(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    """The ranks of a partial answer differ from those of a complete one: hits between the two would be lost."""
    asked = {**LONG, "size": 20, "docvalue_fields": ["ndd.*"]}
    partial = connect(wrapped=False).search(index=library.news, body=asked)
    for number, said in enumerate(({"timed_out": True}, {"_shards": {"total": 2, "successful": 1, "failed": 1}})):
        hits = {**partial["hits"], "hits": partial["hits"]["hits"][: 20 - number]}  # and one that is short as well
        body = json.dumps({**partial, **said, "hits": hits}).encode()  # type: ignore[dict-item]
        sent = 1 + number  # the caller's own request does not do better where a shard has failed
        proxy.reset(lambda at, _, body=body, sent=sent: Harm(status=200, body=body) if at < sent else None)  # type: ignore[misc]
        answer = connect(proxy.url, splits=False, frequency_table=False).search(index=library.news, body=LONG)
        assert len(proxy.searches) == sent
        assert answer["ndd"]["examined"] == 20 - number
        assert answer["ndd"]["degraded"] == "the engine's answer is partial, the page is made of it"
        assert answer["hits"]["total"] == {"value": answer["ndd"]["kept"], "relation": "gte"}
        assert not answer["ndd"]["exhausted"]


def test_a_round_that_another_cluster_answers_is_not_mixed_with_the_first(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    asked = {**LONG, "size": 80, "docvalue_fields": ["ndd.*"]}
    both = connect(wrapped=False).search(index=library.news, body=asked)
    clusters = {"total": 2, "successful": 2, "skipped": 0, "details": {"far": {"took": 3}}}
    body = json.dumps({**both, "_clusters": clusters}).encode()
    proxy.reset(lambda number, _: None if number else Harm(status=200, body=body))
    answer = connect(proxy.url, splits=False, frequency_table=False).search(index=library.news, body=LONG)
    assert answer["_clusters"] == clusters
    assert answer["ndd"]["degraded"] == "a later round failed, the page is made of the first hits"
    assert answer["ndd"]["examined"] == 80


def test_a_limit_on_the_documents_looked_at_is_no_trouble(library: Library, connect: Connect) -> None:
    body = {"query": MATCH, "terminate_after": 40}
    caller, plain = connect(), connect(wrapped=False)
    whole = plain.search(index=library.news, body={**body, "size": 156})["hits"]["hits"]
    answer = caller.search(index=library.news, body={**body, "size": 30})
    assert (len(ids(answer)), answer["ndd"]["degraded"]) == (30, None)
    answer = caller.search(index=library.news, body={**body, "size": 156})
    assert (answer["ndd"]["degraded"], answer["ndd"]["exhausted"]) == (None, True)
    assert answer["ndd"]["kept"] + answer["ndd"]["hidden"] == len(whole)
    assert answer["ndd"]["cache"] == "miss"


def test_a_timeout_of_ones_own_is_kept_to_beside_a_time_budget(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    caller = connect(proxy.url, time_budget=60.0, frequency_table=False, splits=False, cache=False)
    for said in (2.0, 50.0):
        if library.engine.family == "elasticsearch":
            caller = caller.with_client(caller.client.options(request_timeout=said))
            given: dict[str, Any] = {}
        else:
            given = {"params": {"request_timeout": said}}
        proxy.reset()
        assert caller.search(index=library.news, body=LONG, **given)["ndd"]["degraded"] is None
        assert not any("timeout" in one.target for one in proxy.searches)
        proxy.reset(after_the_first(Harm(delay=30.0 if said < 10 else 2.1)))
        began = time.perf_counter()
        answer = caller.search(index=library.news, body=LONG, **given)
        assert bool(answer["ndd"]["degraded"]) == (said < 10)
        assert said > 10 or time.perf_counter() - began < 25


def test_the_timeout_of_a_client_holds_beside_a_longer_time_budget(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    """A budget without an end limits nothing, and is no timeout that a socket refuses."""
    name = "request_timeout" if library.engine.family == "elasticsearch" else "timeout"
    settings: dict[str, Any] = {"frequency_table": False, "splits": False, "cache": False}
    endless = connect(proxy.url, time_budget=float("inf"), **settings)
    assert endless.search(index=library.news, body=LONG)["ndd"]["degraded"] is None
    proxy.reset(after_the_first(Harm(delay=30.0)))
    hurried = connect(proxy.url, client={name: 2.0, "max_retries": 0}, time_budget=60.0, **settings)
    assert hurried.search(index=library.news, body=LONG)["ndd"]["degraded"]


def test_sketches_that_are_none_stand_alone(engine: Engine, index: str, connect: Connect) -> None:
    """Unsorted cannot come out of doc values, repeated and negative values can; so can another recipe, or none.

    An empty sketch of a text that is not empty is a stale one: the text decides.
    """
    story = actions(index, engine, where=[one for one in documents() if one["_id"] == "3-0"])[0]
    good = story["ndd"]["sketch"]
    wrong = {
        "copy": story["ndd"],
        "repeated": {**story["ndd"], "sketch": [*good[:-1], good[0]]},
        "negative": {**story["ndd"], "sketch": [-5, *good[1:]]},
        "too many": {**story["ndd"], "sketch": [*good, good[-1] + 1]},
        "foreign": {**story["ndd"], "recipe": "w5-k64-v4"},
        "two recipes": {**story["ndd"], "recipe": [ndd.Recipe().id, "w5-k64-v4"]},
        "nobody's": {"sketch": good},
        "empty": {**story["ndd"], "sketch": []},
        "missing": None,
    }
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(
            engine,
            client,
            [{**story, "_id": name, "ndd": sketch} for name, sketch in {"good": story["ndd"], **wrong}.items()],
        )
    answer = connect().search(index=index, body={"query": {"match_all": {}}, "size": 20, "ndd": True})
    assert answer["ndd"]["hidden"] == 2
    assert len(ids(answer)) == len(wrong) - 1
    assert len({"good", "copy", "empty"} & set(ids(answer))) == 1
    assert answer["ndd"]["lacking"] == {"malformed": 3, "foreign": 3, "missing": 1}
    assert expected(["3-0"]).kept == ["3-0"]
