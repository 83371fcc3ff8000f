"""The transport of a wrapped client is one of the client's own library, and keeps what callers set on it."""

from __future__ import annotations

import copy
import importlib
import random
from collections.abc import Callable, Iterator
from functools import partial
from inspect import iscoroutinefunction
from types import SimpleNamespace
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.search.clients.wrap import settings_in
from tests.engines.find import CLASSES, MODULES
from tests.searching import hit_of, in_one_phase
from tests.wrapping.pair import FAILURE, SEARCH, Call, Pair, transport_of
from tests.wrapping.recorder import NO_HITS, Received, Recorder, Reply, usual


def base_class(pair: Pair) -> Any:
    """The transport class of the client's own library."""
    module = importlib.import_module("elastic_transport" if pair.family == "elasticsearch" else MODULES[pair.family])
    return module.AsyncTransport if pair.asynchronous else module.Transport


def sharing(client: Any) -> Any:
    """Another client with the same transport."""
    return client.options() if hasattr(client, "options") else copy.copy(client)


def counted(pair: Pair, inner: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    """perform_request as a library for tracing would replace it."""

    def traced(*arguments: Any, **others: Any) -> Any:
        calls.append("traced")
        return inner(*arguments, **others)

    async def traced_async(*arguments: Any, **others: Any) -> Any:
        calls.append("traced")
        return await inner(*arguments, **others)

    return traced_async if pair.asynchronous else traced


def test_the_transport_is_one_of_the_librarys_own(pair: Pair) -> None:
    """isinstance holds, and iscoroutinefunction of perform_request is right."""
    plain, wrapped = transport_of(pair.plain), transport_of(pair.wrapped)
    assert isinstance(wrapped, base_class(pair))
    assert type(wrapped).__name__ == type(plain).__name__
    assert iscoroutinefunction(wrapped.perform_request) == pair.asynchronous


def test_what_is_set_on_the_transport_takes_effect(pair: Pair) -> None:
    pair.at.reply = lambda _: (503, {**FAILURE, "status": 503})
    for retries in (2, 0):
        transport_of(pair.wrapped).max_retries = retries
        if pair.family == "elasticsearch":
            pair.wrapped._max_retries = retries  # a client's own number goes before its transport's
        outcome = pair.outcome(lambda: pair.wrapped.search(**SEARCH))
        assert len(outcome.received) == 2 * (1 + retries)  # our request, then the caller's own
    assert transport_of(ndd.wrap(pair.wrapped, enabled=False)).max_retries == 0


def test_a_serializer_set_later_writes_what_is_sent(pair: Pair) -> None:
    """A search of ours and a request that is none are both written by it."""
    transport = transport_of(pair.wrapped)
    if pair.family == "elasticsearch":
        owner, name = transport.serializers.get_serializer("application/vnd.elasticsearch+json"), "json_dumps"
    else:
        owner = transport.serializer = type(transport.serializer)()
        name = "dumps"
    written, before = [], getattr(owner, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, lambda data: written.append(data) or before(data))  # type: ignore[func-returns-value]
        for call in (Call("search", SEARCH), Call("index", {"index": "idx", "body": {"title": "x"}})):
            written.clear()
            pair.outcome(lambda call=call: call.on(pair.wrapped))  # type: ignore[misc]
            assert written


def test_a_transport_class_patched_later_is_seen(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries for tracing replace perform_request of the class, whenever they are switched on."""
    calls: list[str] = []
    kind = base_class(pair)
    monkeypatch.setattr(kind, "perform_request", counted(pair, kind.perform_request, calls))
    for call in (Call("search", SEARCH), Call("get", {"index": "idx", "id": "1"})):
        calls.clear()
        outcome = pair.outcome(lambda call=call: call.on(pair.wrapped))  # type: ignore[misc]
        assert len(calls) == len(outcome.received) > 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_transport_patched_alone_is_seen(pair: Pair, when: str) -> None:
    """perform_request of one transport, replaced before the client is wrapped or after, is called and calls ours."""
    calls: list[str] = []
    client = ndd.wrap(pair.wrapped, enabled=False) if when == "before" else pair.wrapped
    client.transport.perform_request = counted(pair, client.transport.perform_request, calls)
    ndd.wrap(client) if when == "before" else None
    outcome = pair.outcome(lambda: client.search(**SEARCH))
    assert b"ndd.sketch" in outcome.received[0].body
    assert len(calls) == (len(outcome.received) if when == "before" else 1)


def test_a_client_that_shares_the_transport_is_not_wrapped_with_it(pair: Pair) -> None:
    """Each client is wrapped for itself, with settings of its own, and gets its own transport back."""
    client = pair.plain
    transport, other, third = client.transport, sharing(client), sharing(client)
    ndd.wrap(client, window=20, cache=False)
    ndd.wrap(third, window=30, cache=False)
    assert other.transport is transport
    assert b"ndd.sketch" not in pair.outcome(lambda: other.search(**SEARCH)).received[0].body
    for one, window in ((client, 20), (third, 30), (sharing(client), 20)):
        assert one.transport.ndd.settings.options.window == window
        one.transport.ndd.settings.bypass_seconds = 0.0
        assert b"ndd.sketch" in pair.outcome(lambda one=one: one.search(**SEARCH)).received[0].body  # type: ignore[misc]
    assert ndd.wrap(client, enabled=False).transport is transport
    assert b"ndd.sketch" not in pair.outcome(lambda: client.search(**SEARCH)).received[0].body
    assert b"ndd.sketch" in pair.outcome(lambda: third.search(**SEARCH)).received[0].body


def test_a_transport_class_may_ask_for_the_nodes_as_it_starts(pair: Pair) -> None:
    """sniff_on_start sends a request before there is a client."""
    ours: Any = importlib.import_module(f"ndd_search.search.clients.{pair.family}")
    kind = ours.AsyncTransport if pair.asynchronous else ours.Transport
    address = pair.at.url.removeprefix("http://")
    node = {"http": {"publish_address": address}, "roles": ["data"], "version": "9.0.0"}
    pair.at.reply = lambda request: (
        (200, {"nodes": {"one": node}}) if request.path.startswith("/_nodes") else usual(request)
    )
    pair.at.take()

    def started() -> Any:
        return type(pair.plain)(pair.at.url, transport_class=kind, sniff_on_start=True)

    async def first_search() -> Any:
        client = started()
        try:
            return await client.search(**SEARCH)
        finally:
            await client.close()

    if pair.asynchronous:
        pair.run(first_search)
    else:
        with started() as client:
            client.search(**SEARCH)
    received = pair.at.take()
    assert any(one.path.startswith("/_nodes") for one in received)
    assert any(b"ndd.sketch" in one.body for one in received)


TARGETS = [
    "//idx/_search",
    "/idx//_search",
    "/idx/_search/",
    "/idx/_search#x",
    "/a?b=/_search",
    "http://idx/_search",
    "/_alias/_search",
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_path_that_is_no_search_is_left_alone(pair: Pair, target: str) -> None:
    """Not taken for an address, not for a search of everything."""

    def asked(client: Any) -> Callable[[], Any]:
        if pair.family == "opensearch":
            return lambda: client.transport.perform_request("POST", target, body={"query": {}, "ndd": 1})
        json = {"content-type": "application/json", "accept": "application/json"}
        return lambda: client.transport.perform_request("POST", target, body={"query": {}, "ndd": 1}, headers=json)

    plain, wrapped = pair.outcome(asked(pair.plain)), pair.outcome(asked(pair.wrapped))
    assert wrapped.received == plain.received


def pieces(received: Received) -> Iterator[str]:
    yield from received.target.partition("?")[2].split("&")


def test_parameters_of_a_search_go_out_as_they_came(pair: Pair) -> None:
    """Odd escapes, bytes and repeated names keep their meaning, though we add parameters of our own."""
    ndd.wrap(pair.wrapped, enabled=["unranked"])
    in_one_phase(settings_in(pair.wrapped))
    if pair.family == "opensearch":
        given: Any = {"routing": b"\xff", "preference": "ü &=", "typed_keys": True}
        outcomes = [
            pair.outcome(
                lambda client=client: client.transport.perform_request("POST", "/idx/_search", params=given, body={})  # type: ignore[misc]
            )
            for client in (pair.plain, pair.wrapped)
        ]
    else:
        target = "/idx/_search?routing=%ff&preference=a+b%2Bc&routing=%FF&pretty&typed_keys=%74rue&size=1&size=2"
        json = {"content-type": "application/json", "accept": "application/json"}
        outcomes = [
            pair.outcome(lambda client=client: client.transport.perform_request("POST", target, body={}, headers=json))  # type: ignore[misc]
            for client in (pair.plain, pair.wrapped)
        ]
    plain, wrapped = (set(pieces(one.received[0])) for one in outcomes)
    assert b"ndd.sketch" in outcomes[1].received[0].body
    assert {one for one in plain if not one.startswith("size=")} <= wrapped
    assert "size" not in str(wrapped)


class Bare:
    """The least that the client takes for a transport, as its own tests use: what it says is what it was sent."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def perform_request(self, method: str, target: str, **others: Any) -> Any:
        meta = SimpleNamespace(status=200, headers={"x-elastic-product": "Elasticsearch"}, http_version="1.1")
        return meta, {"method": method, "target": target, "body": others.get("body")}


def test_a_transport_of_the_callers_own_needs_nothing_but_perform_request() -> None:
    elasticsearch = pytest.importorskip("elasticsearch")
    client = ndd.wrap(elasticsearch.Elasticsearch("http://localhost:1", transport_class=Bare))
    document = {"ndd": 1}
    assert client.index(index="i", id="1", document=document).body["body"] == document
    assert client.search(index="i", query={"match_all": {}}).body["target"] == "/i/_search"


@pytest.mark.parametrize("family", ["elasticsearch", "opensearch"])
def test_a_class_derived_from_ours_keeps_what_it_overrides(family: str) -> None:
    """As that of a program which adds a header to each request."""
    package = pytest.importorskip(MODULES[family])
    ours: Any = importlib.import_module(f"ndd_search.search.clients.{family}").Transport
    kind, seen = getattr(package, CLASSES[family]), list[str]()

    class Derived(ours):  # type: ignore[misc]
        def perform_request(self, method: str, target: str, **others: Any) -> Any:
            seen.append(target)
            return super().perform_request(method, target, **others)

    for chosen in (Derived, Derived.using(window=20)):
        client = kind("http://localhost:1", transport_class=chosen, max_retries=0)
        assert isinstance(transport_of(client), Derived)
        with pytest.raises(Exception, match=r"refused|Connection"):
            client.index(index="i", id="1", body={"n": 1})
        assert seen.pop() == "/i/_doc/1"
    assert settings_in(client).options.window == 20


class BareOfOpenSearch:
    """The same for opensearch-py."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def perform_request(self, method: str, url: str, **others: Any) -> Any:
        return {"method": method, "url": url, "body": others.get("body")}


def test_a_transport_of_opensearch_needs_nothing_else_either() -> None:
    opensearch = pytest.importorskip("opensearchpy")
    client = ndd.wrap(opensearch.OpenSearch("http://localhost:1", transport_class=BareOfOpenSearch))
    assert client.index(index="i", id="1", body={"ndd": 1}) == {"method": "PUT", "url": "/i/_doc/1", "body": {"ndd": 1}}


def secrets(request: Received) -> Reply:
    """One document with a sketch for each caller, who is named by a header."""
    who = request.header.get("x-user", "") + request.header.get("authorization", "")
    hit = {**hit_of("1"), "_source": {"of": who}}
    found = {**NO_HITS, "hits": {"total": {"value": 1, "relation": "eq"}, "max_score": 1.0, "hits": [hit]}}
    count = len(request.body.splitlines()) // 2
    return 200, {"took": 1, "responses": [{**found, "status": 200}] * count} if "_msearch" in request.path else found


def connections(client: Any) -> Any:
    """What holds the headers and credentials of a client's connections."""
    pool = getattr(client.transport, "node_pool", None)
    return client.transport.connection_pool.connections if pool is None else pool.all()


def become(user: str, how: str, client: Any) -> None:
    """Change the credentials of a client in place."""
    for one in connections(client):
        match how:
            case "headers":
                (one.headers if hasattr(one, "http_compress") else one._headers)["x-user"] = user
            case "signature":
                one.http_auth = lambda *_: {"authorization": user}
            case "session":
                one.session.auth = (user, "x")
            case "headers of the session":
                one.session.headers["x-user"] = user


def are_of_their_callers(pair: Pair, ways: list[str], seed: int) -> None:
    rng = random.Random(seed)
    pair.at.reply = secrets
    for _ in range(40):
        how, user = rng.choice(["", *ways]), rng.choice(["ann", "bob", "eve"])
        search = {**SEARCH, "headers": {"x-user": user}} if how == "request" else SEARCH
        for client in (pair.plain, pair.wrapped):
            if how not in ("", "request"):
                become(user, how, client)
        shown = [
            pair.run(partial(client.search, **search))["hits"]["hits"][0]["_source"]
            for client in (pair.plain, pair.wrapped)
        ]
        assert shown[0] == shown[1]


@pytest.mark.parametrize("seed", range(4))
def test_nobody_gets_the_page_of_a_caller_before_however_credentials_change(pair: Pair, seed: int) -> None:
    """A token that is refreshed on the connections, a function that signs, or a header of one request."""
    pair.at.reply = secrets
    for client in (pair.plain, pair.wrapped):
        if getattr(client.transport, "kwargs", None) is not None and pair.asynchronous:
            client.transport.kwargs["headers"] = {
                "x-user": "ann"
            }  # of the connections that it makes with its first request
        pair.run(partial(client.search, **SEARCH))
    ways = ["headers"] if pair.family == "elasticsearch" else ["headers", "request"]
    are_of_their_callers(pair, ways + ["signature"] * (pair.family == "opensearch" and not pair.asynchronous), seed)


def test_nobody_gets_the_page_of_a_caller_before_by_a_session_of_requests(at: Recorder) -> None:
    opensearchpy = pytest.importorskip("opensearchpy")
    pair = Pair("opensearch", False, at)
    kind = opensearchpy.RequestsHttpConnection
    pair.plain, pair.wrapped = (opensearchpy.OpenSearch(at.url, connection_class=kind) for _ in range(2))
    ndd.wrap(pair.wrapped)
    are_of_their_callers(pair, ["session", "headers of the session", "request"], 1)
    at.reply = usual
    pair.close()


def test_a_client_shares_its_pages_with_others_that_hold_the_same_credentials(at: Recorder) -> None:
    """Whatever their numbers of connections, and whatever names their programs give themselves."""
    opensearchpy = pytest.importorskip("opensearchpy")
    cache, found = MemoryCache(), []
    at.reply = secrets
    for agent in ("one", "other"):
        with opensearchpy.OpenSearch(at.url, http_auth=("ann", "x")) as client:
            ndd.wrap(client, cache=cache)
            become("bob", "headers", client)
            for one in connections(client):
                one.headers["user-agent"] = agent
            found.append(client.search(**SEARCH)["ndd"]["cache"])
    at.reply = usual
    assert found == ["miss", "hit"]
