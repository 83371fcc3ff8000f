"""What fails below a wrapped client, or cannot be written, is what the plain client raises and sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.clients.wrap import settings_in
from tests.searching import in_one_phase
from tests.wrapping.pair import FAILURE, SEARCH, Call, Pair, Unwritable, transport_of
from tests.wrapping.recorder import Received, Reply, usual


def failing(pair: Pair, error: BaseException) -> Callable[..., Any]:
    """perform_request of a transport that only raises."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    async def fail_async(*_: Any, **__: Any) -> Any:
        raise error

    return fail_async if pair.asynchronous else fail


class Stopped(BaseException):
    """No Exception: nobody catches it by chance."""


@pytest.mark.parametrize(
    "error", [StopIteration(7), StopAsyncIteration(7), KeyboardInterrupt(), GeneratorExit(), Stopped()]
)
@pytest.mark.parametrize("name", ["search", "msearch", "get"])
def test_what_is_raised_below_passes_as_it_is(pair: Pair, error: BaseException, name: str) -> None:
    """Also what Python itself makes use of in generators and coroutines."""
    arguments = {
        "search": SEARCH,
        "msearch": {"body": [{"index": "idx"}, SEARCH["body"]]},
        "get": {"index": "idx", "id": "1"},
    }
    transport_of(pair.plain).perform_request = failing(pair, error)
    transport_of(ndd.wrap(pair.wrapped, enabled=False)).perform_request = failing(pair, error)
    ndd.wrap(pair.wrapped)

    def raised(client: Any) -> BaseException | None:
        def call() -> Any:
            return getattr(client, name)(**arguments[name])

        async def caught() -> BaseException | None:
            try:
                await call()
            except BaseException as found:
                return found
            return None

        if pair.asynchronous:
            found: BaseException | None = pair.run(caught)
            return found
        try:
            call()
        except BaseException as found:
            return found
        return None

    plain, wrapped = raised(pair.plain), raised(pair.wrapped)
    assert (type(wrapped), str(wrapped)) == (type(plain), str(plain))
    if not (pair.asynchronous and isinstance(error, StopIteration)):  # no coroutine passes that on, wrapped or not
        assert wrapped is error


@pytest.mark.parametrize("status", [401, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("splits", [True, False])
def test_a_failure_that_is_not_about_us_is_told_as_without_us(pair: Pair, status: int, splits: bool) -> None:
    """Our request and then the caller's own, each with the client's own retries; credentials are shown once."""
    if not splits:
        in_one_phase(settings_in(pair.wrapped))
    for client in (pair.plain, pair.wrapped):
        client.transport.max_retries = 3
        if pair.family == "elasticsearch":
            client._max_retries = 3
    pair.at.reply = lambda _: (status, {**FAILURE, "status": status})
    plain, wrapped = pair.both(Call("search", SEARCH))
    assert len(wrapped.received) == len(plain.received) * (1 if status == 401 else 2)
    assert wrapped.returned == plain.returned


def refusing(status: int, *refused: str) -> Callable[[Received], Reply]:
    """A server that refuses requests whose path ends so, or whose body holds that."""

    def reply(request: Received) -> Reply:
        if any(request.path.endswith(one) or one.encode() in request.body for one in refused):
            return status, {**FAILURE, "status": status}
        return usual(request)

    return reply


@pytest.mark.parametrize("status", [400, 403, 404, 405, 413])
def test_where_only_an_msearch_is_refused_the_search_is_sent_alone(pair: Pair, status: int) -> None:
    """By a firewall, by a role, or because it holds the query twice."""
    pair.at.reply = refusing(status, "/_msearch")
    plain, wrapped = pair.both(Call("search", SEARCH))
    assert wrapped.received[-1].path == "/idx/_search"
    assert "NotFound" not in wrapped.returned
    assert "'took'" in plain.returned
    assert "'took'" in wrapped.returned


@pytest.mark.parametrize("splits", [True, False])
def test_a_missing_index_is_asked_for_once_more_at_most(pair: Pair, splits: bool) -> None:
    """Told in the client's own exception, or as the caller's `ignore` wants it."""
    if not splits:
        in_one_phase(settings_in(pair.wrapped))
    missing = {**FAILURE, "status": 404}

    def reply(request: Received) -> Reply:
        if request.path.endswith("_msearch"):
            return 200, {"took": 1, "responses": [missing] * 2}
        return 404, missing

    pair.at.reply = reply
    plain, wrapped = pair.both(Call("search", SEARCH))
    assert wrapped.returned == plain.returned
    assert len(wrapped.received) <= 1 + splits
    if pair.family == "opensearch":
        plain, wrapped = pair.both(Call("search", {**SEARCH, "params": {"ignore": 404}}))
        assert wrapped.returned == plain.returned
        assert len(wrapped.received) <= 1 + splits


@pytest.mark.parametrize(
    "body",
    [
        {"query": {"match": {"title": Unwritable()}}},
        {"query": {"match": {("a", "b"): 1}}},
        {"query": {"match": {"title": {1, 2}}}},
        {"size": 3, "docvalue_fields": [Unwritable()], "ndd": {"mode": "drop"}},
    ],
)
def test_a_body_that_cannot_be_written_is_the_clients_own_error(pair: Pair, body: dict[str, Any]) -> None:
    """It shows the caller's body, not ours, and nothing is sent."""
    own = {key: value for key, value in body.items() if key != "ndd"}
    choices: list[dict[str, Any]] = [{}, {"cache": False}]
    for settings in choices:
        ndd.wrap(pair.wrapped, **settings)
        plain = pair.outcome(lambda: pair.plain.search(index="idx", body=own))
        wrapped = pair.outcome(lambda: pair.wrapped.search(index="idx", body=body))
        assert wrapped == plain
        assert plain.received == []
        lines = [{"index": "idx"}, own]
        assert pair.outcome(lambda lines=lines: pair.wrapped.msearch(body=lines)) == pair.outcome(  # type: ignore[misc]
            lambda lines=lines: pair.plain.msearch(body=lines)  # type: ignore[misc]
        )


def test_a_body_that_contains_itself_is_the_clients_own_error(pair: Pair) -> None:
    body: dict[str, Any] = {"query": {"match": {"title": "x"}}}
    body["query"]["match"]["title"] = body
    outcomes = [
        pair.outcome(lambda client=client: client.search(index="idx", body=body))  # type: ignore[misc]
        for client in (pair.plain, pair.wrapped)
    ]
    assert outcomes[0].returned.partition(">")[0] == outcomes[1].returned.partition(">")[0]
    assert outcomes[1].received == []


def test_options_that_cannot_be_are_told_though_no_client_can_write_them(pair: Pair) -> None:
    outcome = pair.outcome(lambda: pair.wrapped.search(index="idx", body={"query": {}, "ndd": Unwritable()}))
    assert "must be an object of options, true or false, got <unwritable>" in outcome.returned
    assert outcome.received == []
