"""Stands between a client and its transport: decides which requests are collapsed, and runs conversations.

Threads and coroutines have a `SingleFlight` each: a thread that waits for a coroutine of its own event loop
would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from time import monotonic
from typing import Any
from urllib.parse import quote

from ndd_search.core.paging.cache import SingleFlight
from ndd_search.core.paging.fill_page import run, run_async
from ndd_search.search.flow.carry_out_search import Conversation, conversation
from ndd_search.search.flow.client_settings import Settings, surrounding
from ndd_search.search.flow.cursor_search import cursor_search
from ndd_search.search.flow.msearch import multi_conversation, parsed
from ndd_search.search.flow.observer import observed
from ndd_search.search.flow.page_cache import LOCK_SECONDS, indexes_written
from ndd_search.search.flow.pipelines_and_templates import pipeline_search, template_search
from ndd_search.search.flow.round_trips import Asking, DrivenFlow, Flow, Wait
from ndd_search.search.rest.mapping import faults_in, is_for_sketches, is_mapped_by_any, mapping_properties
from ndd_search.search.rest.read_answer import MALFORMED, Answer, index_in, reason_of
from ndd_search.search.rest.read_request import (
    Request,
    is_search,
    is_template,
    is_write,
    media_type,
    option_in,
    read_once,
    stripped,
    why_left_alone,
)
from ndd_search.search.rest.wider_requests import legacy_templates, mappings, new_index

Send = Callable[[Request], Answer]
AsyncSend = Callable[[Request], Awaitable[Answer]]
Writable = Callable[[Any], bool]
Talk = Conversation | Flow

_WAIT = 30.0  # seconds to wait at most for another caller's computation of the same page
_PUT = 30.0  # seconds to wait at most for a new mapping
_MAPPED = 10_000  # names of indexes that are known to map sketches
_NO_INDEX = (
    "there is no such index yet, and no template maps sketches: create the index with their mapping, or run "
    "ndd-search backfill after this write"
)
_POLLS = 0.002, 0.05  # seconds between two questions whether another process still computes: at first, and at most


def _wait_for(step: Wait) -> Answer | None:
    """Wait until the other computation has ended or the time is over. Returns None."""
    wait([step.flight], step.seconds)
    return None


async def _wait_for_async(step: Wait) -> Answer | None:
    await asyncio.wait([asyncio.wrap_future(step.flight)], timeout=step.seconds)
    return None


def _asked(request: Request) -> Asking[Answer]:
    """Send a request of our own; an error of the client is an answer with its status, 0 if it has none."""
    try:
        return (yield request)
    except Exception as error:
        status = getattr(error, "status_code", 0)
        return Answer(getattr(error, "info", str(error)), status if isinstance(status, int) else 0)


def _anything(body: Any) -> bool:
    return True


class Driver:
    """Handles each request of a wrapped client."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._flights, self._async_flights = SingleFlight(), SingleFlight(caller=object)
        self._mapped: dict[str, float] = {}  # indexes that map sketches, and until when nobody asks again

    def __reduce__(self) -> tuple[Any, ...]:
        return Driver, (replace(self.settings),)  # a copy has the same settings and nothing learned

    def handle(
        self, request: Request, send: Send, is_writable: Writable = _anything, timeout: float | None = None
    ) -> Answer:
        """Answer a request with as many requests of our own as needed.

        is_writable: whether the client can serialize a body. If it cannot, the client gets the request unchanged and
                     raises its own error.
        timeout: seconds that the caller allows for one request and for a wait; None for no limit.
        """

        def take(step: Request | Wait) -> Answer | None:
            return _wait_for(step) if isinstance(step, Wait) else send(step)

        return run(self._answered(request, self._flights, is_writable, timeout), take)

    async def handle_async(
        self, request: Request, send: AsyncSend, is_writable: Writable = _anything, timeout: float | None = None
    ) -> Answer:
        """Do the same for coroutines."""

        async def take(step: Request | Wait) -> Answer | None:
            return await (_wait_for_async(step) if isinstance(step, Wait) else send(step))

        return await run_async(self._answered(request, self._async_flights, is_writable, timeout), take)

    def _answered(
        self, request: Request, flights: SingleFlight, is_writable: Writable, timeout: float | None
    ) -> DrivenFlow:
        """Yield the requests to send and the computations to wait for; return the answer."""
        given = read_once(request)
        request = _parsed(given) if isinstance(given.body, str | bytes) else given
        try:
            if (talk := self._conversation(request)) is not None:
                flow, observers = self._flow(talk, flights, timeout), self.settings.observers
                return (yield from observed(flow, request.path, observers) if observers else flow)
        except Exception:
            if is_writable(stripped(request).body):
                raise
        answer: Answer | None = None
        plain = given if (plain := stripped(request)) is request else plain  # a text that is left alone keeps its bytes
        sent = yield from self._sketched(plain)
        try:
            answer = yield sent
            return _told(request, answer)
        finally:
            if is_write(request.method, request.path):  # searches through this client see it
                self.settings.wrote(indexes_written(request, answer))
                if request.method == "DELETE":
                    self._mapped.clear()

    def _sketched(self, request: Request) -> Asking[Request]:
        """Return a write with sketches in the documents of the indexes that map them."""
        writes = self.settings.writes
        lines = writes.lines_of(request.path)
        sent = writes(request, lines)
        if lines is None or sent is request:
            return sent
        unmapped: dict[str, str] = {}
        for index in sorted(lines.indexes):
            why, _ = yield from self.put_mapping(index, request.headers)
            if why:
                unmapped[index] = why
                self.settings.tell(f"/{index}", f"documents pass without a sketch: {why}")
        return writes(request, writes.lines_of(request.path, unmapped)) if unmapped else sent

    def put_mapping(self, index: str, headers: Mapping[str, str]) -> Asking[tuple[str, list[str]]]:
        """Before the first sketches for an index, put the mapping if it is missing. headers: of the caller.

        Returns why documents of the index get no sketch, "" if they do: the engine would map their recipes as text,
        since the mapping cannot be put, or no template gives it to an index that the write creates. An index whose
        mapping, or whose template, cannot be read counts as mapped. It is asked about again after a while, and after a
        deletion: another process may have replaced it.
        Also returns, and logs, what of the mapping keeps searches from reading the sketches.
        """
        field, now = self.settings.writes.field_of(index), self.settings.clock()
        if not field or self._mapped.get(index, now) > now:
            return "", []
        path = f"/{quote(index, safe='')}"
        why, faults = yield from _put_where_missing(path, index, field, headers)
        if not why and (index in self._mapped or len(self._mapped) < _MAPPED):
            self._mapped[index] = now + self.settings.bypass_seconds
        return why, [f"/{index}: {self.settings.tell(f'/{index}', sentence)}" for sentence in faults]

    def _flow(self, talk: Talk, flights: SingleFlight, timeout: float | None) -> DrivenFlow:
        if not isinstance(talk, Conversation):
            return (yield from talk)
        if talk.key is None:
            return (yield from talk.made())
        if (cached := talk.remembered()) is not None:
            return cached
        most = _WAIT if timeout is None else min(_WAIT, timeout)
        if (other := flights.acquire(talk.key)) is not None:
            yield from talk.round_trips.wait(other, most)
            return (yield from talk.flow())
        try:
            if self.settings.memory.has_locks:
                return (yield from self._computed(talk, talk.stream_key or talk.key, most))
            return (yield from talk.made())
        finally:
            flights.release(talk.key)

    def _computed(self, talk: Conversation, key: bytes, most: float) -> DrivenFlow:
        """Compute a page, after any other process that computes a page of the same stream. most: seconds to wait."""
        memory, poll, until = self.settings.memory, _POLLS[0], monotonic() + min(most, LOCK_SECONDS)
        token = at_once = memory.acquire(key)
        while token is None and monotonic() < until:
            is_time_left = yield from talk.round_trips.wait(Future(), poll)
            if (cached := talk.remembered()) is not None:
                return cached
            if not is_time_left:
                break
            token, poll = memory.acquire(key), min(2 * poll, _POLLS[1])
        try:
            if token is not None and at_once is None:
                if (cached := talk.remembered()) is not None:
                    return cached
                if not talk.has_stream():  # pages of this search cannot be cached: nobody needs to wait for them
                    memory.release(key, token)
                    token = None
            return (yield from talk.made())
        finally:
            if token is not None:
                memory.release(key, token)

    def _conversation(self, request: Request) -> Talk | None:
        settings, changes = self.settings, surrounding()
        if (sender := settings.memory.sender) != request.sender:
            request = replace(request, sender=sender)
        if not is_search(request):
            if (flow := template_search(request, settings, changes)) is not None:
                return flow
            return None if (several := multi_conversation(request, settings, changes)) is None else several.flow()
        if option_in(request, "cursor") is not None and (talk := cursor_search(request, settings, changes)):
            return talk
        return conversation(request, settings, changes) or pipeline_search(request, settings, changes)


def _parsed(request: Request) -> Request:
    """Return a search whose body is JSON as text with that parsed; other requests as they are."""
    found = parsed([request.body]) if is_search(request) or is_template(request) else None
    return replace(request, body=found[0]) if found else request


def _told(request: Request, answer: Answer) -> Answer:
    """Return the engine's answer to a search that is left alone; with the reason if it asked to be collapsed."""
    asked = is_search(request) and isinstance(request.body, Mapping) and request.body.get("ndd")
    if not asked or surrounding() is None or not answer.has_hits:
        return answer
    return Answer({**answer.body, "ndd": {"degraded": why_left_alone(request)}}, answer.status, answer.raw)


def _put_where_missing(path: str, index: str, field: str, headers: Mapping[str, str]) -> Asking[tuple[str, list[str]]]:
    """Return why an index does not map sketches and cannot be made to, "" if it does, or nothing is known; and faults.

    path: of the index.
    """
    answer = yield from _asked(mappings(path, field, headers))
    if missing := answer.status == HTTPStatus.NOT_FOUND:
        name = index_in(answer.body) or index
        answer = yield from _asked(new_index(name, headers))
        if answer.ok and not answer.body:  # legacy templates count where no other one does
            older = yield from _asked(legacy_templates(headers))
            return "" if older.ok and is_mapped_by_any(older.body, name, field) else _NO_INDEX, []
    is_mapped_by_all, faults = True, list[str]()
    with suppress(*MALFORMED):  # an answer may be no engine's
        for one in answer.body.values() if answer.ok else ():
            mapping = one.get("mappings", {})
            is_mapped_by_all = is_mapped_by_all and is_for_sketches(mapping, field)
            faults += faults_in(mapping, field)
    if is_mapped_by_all or missing:
        return "" if is_mapped_by_all else _NO_INDEX, faults
    given = {name: media_type(value, lines=False) for name, value in headers.items()}  # of a bulk
    body = {"properties": mapping_properties(field)}
    put = yield from _asked(Request("PUT", f"{path}/_mapping", {}, given, body, _PUT))
    return "" if put.ok else f"the mapping of sketches cannot be put ({reason_of(put.body)})", faults
