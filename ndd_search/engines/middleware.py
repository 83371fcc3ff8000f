"""One search on its way to an engine and back, without any I/O: requests come out, answers are sent in.

An exception of the client is thrown into the flow at the place where its request came out. On the first request it
passes through untouched; later it ends the search for more hits, and the caller gets the page made of what is there.
How hits are fetched is in `rounds`; where that does not work out, the search starts again and is fetched in one phase.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from time import perf_counter
from typing import Any

import numpy as np

from ndd_search.cache import cache_key
from ndd_search.common_values import CommonValues
from ndd_search.config import CollapseOptions, Strategy, collapse_options
from ndd_search.engines.answers import (
    Answer,
    Hit,
    HitReader,
    after,
    drop_fields,
    envelope_of,
    reason_of,
    window_limit,
    without_fields,
)
from ndd_search.engines.filter_path import filtered
from ndd_search.engines.limits import raised
from ndd_search.engines.request import SAMPLE, Request, Search, any_sketch, asked_for, read_search, sample, widened
from ndd_search.engines.response import block_of, hits_of, total_of
from ndd_search.engines.rounds import own_part, sketches_only, strategy_of, stretches, together
from ndd_search.engines.settings import Settings
from ndd_search.engines.state import State
from ndd_search.field import SketchField
from ndd_search.keep import fields_of
from ndd_search.page import Fetch, Page, cut, next_fetch
from ndd_search.sketches import Sketch
from ndd_search.stream import Stream

MAX_RESULT_WINDOW = 10_000  # the engines' default
_COUNT_AGAIN = 3600.0  # seconds
_TRACING = {"traceparent", "tracestate", "x-opaque-id", "user-agent", "x-elastic-client-meta", "content-length"}

_NO_NUMBERS = (
    "hits without stored numbers stand alone: run ndd-search backfill --numbers, or turn numbers_must_match off"
)
_REFUSED = {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
_LATE = "out of time, the page is made of the first hits"
_FAILED = "a later round failed, the page is made of the first hits"
_NO_DOCUMENTS = "the documents to show could not be fetched, the page is the engine's own"

Flow = Generator[Request, Answer, Answer]


class _DoesNotFit(Exception):
    """A search that was taken apart: refused, failed in part, or two requests do not speak of the same hits."""


def conversation(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> Conversation | None:
    """How to answer a request, None when it is left alone.

    changes: options of the surrounding `ndd_search.options`; None switches us off.
    Raises TypeError or ValueError for options that cannot be.
    """
    search = None if changes is None else read_search(request)
    if search is None or changes is None:
        return None
    path = search.request.path
    wishes = {**changes, **search.changes}
    remember = bool(wishes.pop("cache", True))
    options = collapse_options(settings.options, **wishes)
    if settings.clock() < settings.plain_until.get(path, 0):
        return None
    wanted = search.start + search.size
    limit = settings.window_limit.get(path, MAX_RESULT_WINDOW)
    if wanted > limit:
        return None  # so deep that the engine itself has to say what it can do
    most = min(options.max_window, limit, max(search.limit or limit, wanted))
    if search.one_window:
        doublings = max(0, (wanted - 1) // options.window).bit_length()
        most = min(most, options.window << doublings)
        options = replace(options, window=most, max_window=most)
    if most < options.max_window:
        options = replace(options, window=min(options.window, most), max_window=most)
    return Conversation(search, options, settings, remember)


class Conversation:
    """What is said to the engine for one search, and what the caller gets."""

    def __init__(self, search: Search, options: CollapseOptions, settings: Settings, remember: bool) -> None:
        self.search, self.options, self.settings = search, options, settings
        self._began, self._waited = perf_counter(), 0.0
        self._values = fields_of(options)
        self._numbers = [self._field.numbers] if options.numbers_must_match else []
        self._added = (self._field.sketch, self._field.recipe)
        self._sketch_fields = [name for name in self._added if not asked_for(search, name)]
        self._not_asked_for = [name for name in (*self._values, *self._numbers) if not asked_for(search, name)]
        self.strategy: Strategy = "one_phase"
        if settings.clock() >= settings.whole_until.get(self.path, 0):
            self.strategy = strategy_of(search, options, self._values, settings.seen_at(self.path))
        self._remember = remember and settings.cache is not None
        self.key: bytes | None = None
        if self._remember and not any(map(callable, options.keep)):
            self.key = self._make_key(options, search.start, search.size)

    def remembered(self) -> Answer | None:
        """The finished page, if it is in the cache."""
        body = self.settings.recall(self.key)
        if body is None:
            return None
        if "ndd" in body:
            body["ndd"]["cache"] = "hit"
        return Answer(body)

    def flow(self) -> Flow:
        """Ask for hits until the page is full; the generator's value is the answer for the caller."""
        known: State | None = self.settings.recall(self._stream_key)
        try:
            return (yield from self._page(known or State()))
        except _DoesNotFit:
            self.strategy = "one_phase"
            if known is None:  # else it is just older than the index
                self.settings.whole_until[self.path] = self.settings.clock() + self.settings.plain_for
        return (yield from self._page(State()))

    def _page(self, state: State) -> Flow:
        fresh = False
        while (wish := next_fetch(state.stream, self.search.start, self.search.size, self.options)) is not None:
            first = state.envelope is None
            if not first and self._seconds_left() <= 0:
                state = replace(state, degraded=_LATE, lasting=False)
                break
            answers = yield from self._ask(self._requests(wish, first), first)
            found, whole = all(one.has_hits for one in answers), not any(one.partial for one in answers if one.has_hits)
            if first and self.strategy != "one_phase" and not (found and whole):
                raise _DoesNotFit
            if first and not found:
                return (yield from self._as_asked(answers[0]))
            if not found or not (first or whole):
                state = replace(state, degraded=_FAILED, lasting=False)
                break
            if first:
                yield from self._count_common(answers[-1])
            state, fresh = self._extended(state, answers, wish), True
            if first and state.stream.lacking and set(state.stream.lacking) == {"missing"}:
                return (yield from self._without_us(state))
        page = cut(state.stream, self.search.start, self.search.size, self._reader(), self.options)
        gap = page.ranks - state.documents.keys()
        if fresh and self.strategy == "one_trip":
            self._learn(state, bool(gap))
        if gap:
            state, fresh = (yield from self._with_documents(state, page.ranks)), True
        if page.groups and page.groups[0].rank not in state.documents:
            return (yield from self._as_it_came(_NO_DOCUMENTS))
        if fresh and state.lasting:
            self.settings.remember(self._stream_key, replace(state, raw=None))
        body = self._response(state, page, "off" if self._stream_key is None else "miss" if fresh else "hit")
        if state.lasting:
            self.settings.remember(self.key, body)
        return Answer(body, raw=state.raw)

    @property
    def path(self) -> str:
        """What is searched, as the URL says it: what is learnt about an index is kept under it."""
        return self.search.request.path

    def _requests(self, wish: Fetch, first: bool) -> list[Request]:
        """What is sent for a round; sketches are in the answer to the last."""
        if self.strategy == "one_phase":
            read = self._values, self._numbers
            return [widened(self.search, wish.start, wish.size, self._field, *read, first=first)]
        of_all = first and self.strategy == "two_phase"
        sketches = sketches_only(self.search, wish, self._field, self._values, self._numbers, of_all)
        if not first or of_all:
            return [sketches]
        own = own_part(self.search, self.options.window)
        return [widened(self.search, own.start, own.size, self._field), sketches]

    def _count_common(self, answer: Answer) -> Generator[Request, Answer, None]:
        """Have the common values of what is searched counted, if the decision wants them and the index has sketches."""
        until, _ = self.settings.counted.get(self.path, (0.0, None))
        if self.options.min_similarity != "auto" or self.settings.common is not True or self.settings.clock() < until:
            return
        if self._seconds_left() <= 0 or not any(self._field.sketch in (hit.get("fields") or {}) for hit in answer.hits):
            return
        sampled = yield from self._sample(min(SAMPLE, self.settings.window_limit.get(self.path, SAMPLE)))
        if not sampled.has_hits and (most := window_limit(sampled.body)):
            self.settings.window_limit[self.path] = most
            sampled = yield from self._sample(most)
        common = None
        if sampled.has_hits:
            found = self._sketches(sampled.hits)
            common = CommonValues.count([one for one in found if not isinstance(one, str)], self.settings.recipe)
        self.settings.counted[self.path] = self.settings.clock() + _COUNT_AGAIN, common

    def _sample(self, size: int) -> Generator[Request, Answer, Answer]:
        request = sample(self.search, self._field, self.settings.recipe, size)
        (answer,) = yield from self._ask([request], first=False)
        return answer

    def _reader(self, found: Sequence[Sketch | str] = (), start: int = 0) -> HitReader:
        _, counted = self.settings.counted.get(self.path, (0.0, None))
        given = self.settings.common
        common = counted if isinstance(given, bool) else given
        return HitReader(self.settings.recipe, self._field, common, found, start)

    @property
    def _field(self) -> SketchField:
        return self.settings.sketch_field

    def _sketches(self, hits: Sequence[Hit]) -> list[Sketch | str]:
        return self._field.decode([hit.get("fields") or {} for hit in hits], self.settings.recipe)

    def _ask(self, requests: list[Request], first: bool) -> Generator[Request, Answer, list[Answer]]:
        """One trip. Exceptions of the client become failed answers, except where the user would have got them."""
        began = perf_counter()
        try:
            request = together(requests)
            answer = yield request if first else replace(request, timeout=self._timeout())
        except Exception as error:
            status = getattr(error, "status_code", None)
            if first and status not in ({HTTPStatus.BAD_REQUEST} if self.strategy == "one_phase" else _REFUSED):
                raise
            answer = Answer(str(error), status if isinstance(status, int) else HTTPStatus.SERVICE_UNAVAILABLE)
        finally:
            self._waited += perf_counter() - began
        return [answer] if len(requests) == 1 else answer.apart(len(requests))

    def _as_asked(self, refused: Answer) -> Flow:
        """The engine would not have the wider request: make it narrower if that helps, else send what the user sent."""
        if refused.status != HTTPStatus.BAD_REQUEST and not refused.ok:
            return refused
        most = window_limit(refused.body)
        if most and self.search.start + self.search.size <= most < self.options.max_window:
            self.settings.window_limit[self.path] = most
            self.options = replace(self.options, window=min(self.options.window, most), max_window=most)
            return (yield from self.flow())
        why = reason_of(refused.body)
        if self._field.recipe in str(refused.body) and "ielddata" in str(refused.body):  # so will the next one be
            why = f"{self._field.recipe} is a text field: put the template or mapping in before the first document"
            self.settings.plain_until[self.path] = self.settings.clock() + self.settings.plain_for
        return (yield from self._as_it_came(f"the engine refused the wider request: {why}"))

    def _as_it_came(self, reason: str) -> Flow:
        """What the engine says to the user's own request."""
        answer = yield self.search.request
        if not answer.has_hits:
            return answer
        return replace(answer, body={**answer.body, "ndd": {"degraded": self.settings.degrade(self.path, reason)}})

    def _extended(self, state: State, answers: list[Answer], wish: Fetch) -> State:
        """The state after a round."""
        apart, hits = self.strategy != "one_phase", answers[-1].hits
        sketches = self._sketches(hits)
        reader = self._reader(sketches, state.stream.fetched)
        for hit in hits:
            if apart and not (self._values or self._numbers):
                hit.pop("fields", None)  # nobody reads more of them
            else:
                drop_fields(hit, self._added if apart else self._sketch_fields)
        total = answers[0].total
        stream = state.stream.extend(hits, wish.size, reader, self.options, total=total, find=self.settings.pairs)
        documents = {} if apart else dict(enumerate(hits, wish.start))
        if len(answers) > 1:
            within = max(0, wish.size - self.search.start)  # max_window may end before the page does
            documents = self._documents(stream, self.search.start, answers[0].hits[:within])
        envelope = envelope_of(answers[0].body) if state.envelope is None else after(state.envelope, answers)
        unknown = self._numbers and any(
            not isinstance(sketch, str) and reader.numbers(hit) is None
            for hit, sketch in zip(hits, reader.found, strict=True)
        )
        return replace(
            state,
            degraded=_NO_NUMBERS if unknown else state.degraded,
            stream=stream,
            documents={**state.documents, **documents},
            took=state.took or answers[-1].took or 0,
            envelope=envelope,
            raw=state.raw or answers[0].raw,
            lasting=state.lasting and not any(one.partial for one in answers),
        )

    def _with_documents(self, state: State, ranks: set[int]) -> Generator[Request, Answer, State]:
        """The state with the documents of some places, fetched now where they are not there."""
        if self._seconds_left() <= 0:
            return replace(state, degraded=_LATE, lasting=False)
        wishes = stretches(ranks - state.documents.keys())
        asked = [widened(self.search, wish.start, wish.size, self._field, first=False) for wish in wishes]
        answers = yield from self._ask(asked, first=False)
        if not all(one.has_hits and not one.partial for one in answers):
            return replace(state, degraded=_FAILED, lasting=False)
        documents = dict(state.documents)
        for wish, answer in zip(wishes, answers, strict=True):
            documents.update(self._documents(state.stream, wish.start, answer.hits))
        if len({(one["_index"], one["_id"]) for rank, one in documents.items() if rank in ranks}) < len(ranks):
            raise _DoesNotFit
        return replace(state, documents=documents, envelope=after(state.envelope or {}, answers))

    def _documents(self, stream: Stream, start: int, hits: list[Hit]) -> dict[int, Hit]:
        """Documents by place, ranked and scored as their sketches were. Raises _DoesNotFit if those are others."""
        first = int(np.searchsorted(stream.ranks, start))
        if stream.ranks[first : first + len(hits)].tolist() != list(range(start, start + len(hits))):
            raise _DoesNotFit
        for at, (hit, sketch) in enumerate(zip(hits, self._sketches(hits), strict=True), first):
            before, lacking = stream.hits[at], stream.lacking[at]
            if isinstance(sketch, str):
                same = sketch == lacking and all(hit.get(name) == before.get(name) for name in ("_score", "sort"))
            else:
                same = sketch.tobytes() == stream.sketches[at].tobytes()
            if not same or hit["_index"] != before["_index"]:
                raise _DoesNotFit
            drop_fields(hit, self._sketch_fields)
            hit.update({name: before[name] for name in ("_score", "sort") if name in before})
        return dict(enumerate(hits, start))

    def _learn(self, state: State, gap: bool) -> None:
        """What helps to decide how the next searches are fetched."""
        kilobytes = len(str(next(iter(state.documents.values()), ""))) / 1000
        until = self.settings.clock() + self.settings.plain_for
        self.settings.seen[self.path] = self.settings.seen_at(self.path).after(state.took, kilobytes, gap, until)

    def _response(self, state: State, page: Page, cache: str) -> dict[str, Any]:
        """The answer in the engine's own shape, with our page and block."""
        page = page.with_hits(state.documents)
        took = perf_counter() - self._began - self._waited
        degraded = self.settings.degrade(self.path, state.degraded) if state.degraded else ""
        page = replace(page, info=replace(page.info, took=took, cache=cache, degraded=degraded))
        body = dict(state.envelope or {})
        body["hits"] = {**body["hits"], "hits": hits_of(page, self._plain)}
        if "total" in body["hits"]:
            body["hits"]["total"] = total_of(page, body["hits"]["total"])
        body["ndd"] = {**block_of(page, self._plain), "strategy": self.strategy}
        if notes := raised(self.search.body, self.options.window)[1]:
            body["ndd"]["raised"] = notes
        return self._filtered(body)

    def _without_us(self, state: State) -> Flow:
        """The page as the engine ranks it, for a window that holds no sketch."""
        (found,) = yield from self._ask([any_sketch(self.search, self._field)], first=False)
        if found.has_hits and not found.hits:
            self.settings.plain_until[self.path] = self.settings.clock() + self.settings.plain_for
        places = range(self.search.start, min(self.search.start + self.search.size, state.stream.fetched))
        if self.search.one_window or not state.documents.keys() >= set(places):
            return (yield self.search.request)
        body = dict(state.envelope or {})
        body["hits"] = {**body["hits"], "hits": [self._plain(state.documents[place]) for place in places]}
        return Answer(self._filtered(body), raw=state.raw)

    def _filtered(self, body: dict[str, Any]) -> dict[str, Any]:
        paths = self.search.request.params.get("filter_path")
        return filtered(body, paths, "ndd") if paths else body

    def _plain(self, hit: Hit) -> Hit:
        """A new dict: the hit as the user would have got it."""
        return without_fields(hit, self._not_asked_for)

    def _seconds_left(self) -> float:
        budget = self.settings.time_budget
        return float("inf") if budget is None else budget - (perf_counter() - self._began)

    def _timeout(self) -> float | None:
        return None if self.settings.time_budget is None else self._seconds_left()

    def _make_key(self, *parts: Any) -> bytes:
        request = self.search.request
        caller = {name.lower(): value for name, value in request.headers.items() if name.lower() not in _TRACING}
        body = {key: value for key, value in self.search.body.items() if key not in ("from", "size")}
        params = {name: value for name, value in request.params.items() if name not in ("from", "size")}
        settings = (self.settings.scope, self.settings.recipe.id, self.settings.sketch_field.name)
        return cache_key(settings, caller, self.path, params, body, repr(parts))

    @cached_property
    def _stream_key(self) -> bytes | None:
        if not self._remember:
            return None
        whole = any(map(callable, self.options.keep))  # it reads hits, which may be remembered without documents
        return self._make_key(replace(self.options, keep=("score",)), self._values, whole)
