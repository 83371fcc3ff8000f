"""Carries out one search as a generator that yields requests and is sent answers. Nothing here does I/O.

An exception of the client is thrown into the generator where its request was yielded. On the first request it passes
through unchanged. Later it ends the fetching of hits, and the caller gets the page made of the hits fetched so far.
`fetch_strategies` decides how hits are fetched. If the chosen strategy fails, the search starts again in one phase.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from typing import Any

from ndd_search.collapse_options import CollapseOptions, Strategy, collapse_options
from ndd_search.matching.document_frequency import count_in_list
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.fetch_strategies import (
    DoesNotFit,
    Seen,
    documents_of,
    goes_together,
    own_part,
    ranges_of,
    sketches_only,
    strategy_of,
)
from ndd_search.middleware.learned import LearnedOfCaller, LearnedOfTarget
from ndd_search.middleware.page_memory import Moment
from ndd_search.middleware.sampling import LISTED, sample_frequency_table, table_of
from ndd_search.middleware.sending import RoundTrips, Waiting, trouble
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.middleware.unsketched import has_sketches, look_for_sketches, peeked, saw_a_sketch
from ndd_search.paging.cache import cache_key
from ndd_search.paging.fetching import Fetch, next_fetch
from ndd_search.paging.keep import fields_of
from ndd_search.paging.page import Page, slice_page
from ndd_search.paging.stream import Stream
from ndd_search.rest.answers import (
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
from ndd_search.rest.filter_path import filtered
from ndd_search.rest.request import (
    Request,
    Search,
    asked_for,
    read_search,
    sketch_reading,
    widened,
)
from ndd_search.rest.response import block_of, hits_of, total_of
from ndd_search.rest.source_filter import SketchFilter
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import Lack, Sketch

_MAPPED = 3600.0  # seconds until we check again whether recipes are mapped as text

_NO_NUMBERS = (
    "hits without stored numbers stand alone: run ndd-search backfill --numbers, or turn numbers_must_match off"
)
# Statuses with which an engine, or a proxy in front of it, may refuse our request and accept the user's own.
_REFUSED = {HTTPStatus.BAD_REQUEST}
_REFUSED_MSEARCH = {
    *(*_REFUSED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,  # our `_msearch` holds the query twice
}
_WIDER = "the engine refused the wider request: "
_UNREADABLE = "the answer to the wider request is not the answer to a search"
_PARTIAL = "the engine's answer is partial, the page is made of it"
_NO_DOCUMENTS = "the documents to show could not be fetched, the page is the engine's own"

Flow = Generator[Request, Answer, Answer]
Fetching = Generator[Request, Answer, State | Answer]


def conversation(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> Conversation | None:
    """Return how to answer a request, None if it is left alone.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    Raises TypeError or ValueError for invalid options.
    """
    search = None if changes is None else read_search(request)
    if search is None or changes is None:
        return None
    combined = {**changes, **search.changes}
    remember = bool(combined.pop("cache", True))
    options = collapse_options(settings.options, **combined)
    if search.limits.apart and not goes_together(search.request):
        search = search.as_found
    if not search.is_collapsed(options):
        return None
    wanted, limit = search.start + search.size, settings.known.about(search.target).window_limit
    if wanted > limit or settings.clock() < settings.known.of_caller(search.target_of_caller).bypass_until:
        return None  # beyond max_result_window, where the engine's own error is due; or a target without sketches
    most = min(options.max_window, limit, max(search.limit or limit, wanted))
    if search.one_window:
        doublings = max(0, (wanted - 1) // options.window).bit_length()
        most = min(most, options.window << doublings)
        options = replace(options, window=most, max_window=most)
    return Conversation(search, _within(options, most), settings, remember)


class Conversation:
    """The requests for one search, and the answer for its caller."""

    def __init__(self, search: Search, options: CollapseOptions, settings: Settings, remember: bool) -> None:
        self.search, self.options, self.settings = search, options, settings
        self._round_trips = RoundTrips(settings.time_budget)
        self._remember = remember and settings.cache is not None
        self._weighs = options.min_similarity == "auto" and settings.recipe.measure == "kmv"
        self._frequency_table: FrequencyTable | None = None
        self._is_new = True
        self.key: bytes | None = None
        if self._remember and not any(map(callable, options.keep)):
            self.key = self._make_key(options, search.start, search.size)

    def _choose(self) -> None:
        """Choose what to read of hits and how to fetch them, from what is learned of the target now."""
        learned, now = self._learned, self.settings.clock()
        numbers = [self._field.numbers] if self.options.numbers_must_match else []
        values = fields_of(self.options)
        self._sketch_reading = sketch_reading(self._field, text=now < learned.text_until, sketched=learned.sketched)
        self._reading = self._sketch_reading.and_of(numbers, values)
        hidden = [name for name in {*self._field.paths, *values} if not asked_for(self.search, self._field, name)]
        self._not_asked_for = [name for name in hidden if name in (*values, *numbers)]
        self._sketch_fields = [name for name in hidden if name not in self._not_asked_for]
        self.strategy: Strategy = "one_phase"
        if now >= learned.whole_until:
            seen = self._learned_of_caller.seen
            self.strategy = strategy_of(self.search, self.options, self._reading, seen if now < seen.until else Seen())

    @property
    def path(self) -> str:
        """The path of the request."""
        return self.search.request.path

    @property
    def windows(self) -> list[int]:
        """The first window."""
        return [self.options.window]

    def remembered(self) -> Answer | None:
        """Return the finished page if it is in the cache."""
        body = self.settings.memory.recall_page(self.key, self.search.indexes)
        if body is None:
            return None
        if isinstance(body.get("ndd"), dict):
            body["ndd"]["cache"] = "hit"
        return Answer(body)

    def has_stream(self) -> bool:
        """Return whether the stream of the search is in the cache."""
        return self.settings.memory.recall_state(self.stream_key, self.search.indexes) is not None

    def wait(self, flight: Future[None], most: float) -> Waiting:
        """Wait until another caller has made the same page, at most `most` seconds and within the time budget.

        Returns whether time is left.
        """
        return self._round_trips.wait(flight, most)

    def flow(self) -> Flow:
        """Fetch hits until the page is full, and return the answer for the caller."""
        self._choose()
        if self._is_new:
            self._is_new = False
            if (
                self.settings.clock() < self._learned_of_caller.bypass_until
            ):  # learned while this search waited for another
                return (yield self.search.request)
            page = yield from peeked(self.search, self.settings, self._sketch_reading, self._round_trips)
            if page is not None:
                return replace(page, body=self._filtered(page.body)) if page.has_hits else page
            self.settings.known.came_back(self.search.target, self.search.target_of_caller)
        cached = self.settings.memory.recall_state(self.stream_key, self.search.indexes) if self._moment else None
        if cached is not None and not self._continues(cached):
            cached = None
        try:
            return (yield from self._page(cached or State()))
        except DoesNotFit:
            self.strategy = "one_phase"
            if cached is None:  # a cached stream may merely be older than the index
                self._learn(whole_until=self.settings.clock() + self.settings.bypass_seconds)
        return (yield from self._page(State()))

    def _page(self, cached: State) -> Flow:
        """Fetch what the page needs beyond a state, and return the answer. cached: State() if nothing is cached."""
        state = yield from self._fetch_until_full(cached)
        if isinstance(state, Answer):
            return state
        page = slice_page(state.stream, self.search.start, self.search.size, self._reader(), self.options)
        gap = page.ranks - state.documents.keys()
        if state is not cached and self.strategy == "one_trip":
            self._learn_from(state, bool(gap))
        if gap:
            state = yield from self._with_documents(state, page.ranks)
        if page.groups and page.groups[0].rank not in state.documents:
            return (yield from self._own_request(_NO_DOCUMENTS))
        if state is not cached and state.lasting:
            self.settings.memory.remember_state(self.stream_key, state, self._moment)
            if self.settings.frequency_table is True and state.table != LISTED:
                self.settings.memory.remember_table(self._frequency_table)
        body = self._response(state, page, "off" if self.stream_key is None else "hit" if state is cached else "miss")
        if state.lasting:
            self.settings.memory.remember_page(self.key, body, state, self._moment)
        return Answer(body, raw=state.raw)

    def _fetch_until_full(self, state: State) -> Fetching:
        """Fetch the hits that the page needs, as far as possible. Returns the state, or a final answer."""
        longer: State | Answer = state
        while isinstance(longer, State) and not longer.stopped:
            state = longer
            fetch = next_fetch(state.stream, self.search.start, self.search.size, self.options)
            if fetch is None:
                break
            longer = yield from (self._first(fetch) if state.envelope is None else self._next(state, fetch))
        return longer

    def _first(self, fetch: Fetch) -> Fetching:
        """Make the first trip."""
        refusals = _REFUSED_MSEARCH if self.strategy == "one_trip" or self.search.limits.apart else _REFUSED
        answers = yield from self._round_trips.first(self._requests(fetch, first=True), refusals)
        if isinstance(answers, Answer):
            return answers
        unreadable = next((answer for answer in answers if answer.ok and not answer.has_hits), None)
        if unreadable is None and trouble(answers, like=answers[0]):
            if self.strategy != "one_phase":
                raise DoesNotFit
            if self.search.limits.apart:
                self.search = self.search.as_found
                return (yield from self._first(fetch))
        if unreadable is not None or not answers[0].has_hits:
            return (yield from self._after_refusal(unreadable or answers[0]))
        if answers[0].refusals and (instead := (yield from self._refused_in_part(answers[0]))):
            return instead
        self._hide_sketches(answers)
        sketched = any(self._field.sketch in (hit.get("fields") or {}) for hit in answers[-1].hits)
        if sketched and self._weighs and self.settings.counts_document_frequency:
            yield from sample_frequency_table(self.search, self.settings, self._sketch_reading, self._round_trips)
        state = self._extended(State(table=self._current_table()), answers, fetch)
        if {"missing"}.issuperset(state.stream.lacking):
            return (yield from self._without_sketches(state))
        saw_a_sketch(self.search, self.settings)
        if "" in state.stream.lacking and not self._learned.sketched:
            self._learn(sketched=True)
        return state

    def _next(self, state: State, fetch: Fetch) -> Fetching:
        """Make a later trip for more hits."""
        if state.partial:  # ranks of another answer, perhaps a complete one, differ from those of a partial answer
            return replace(state, stopped=_PARTIAL)
        answers = yield from self._round_trips.later(self._requests(fetch, first=False))
        reason = trouble(answers, like=Answer(state.envelope))
        if not reason:
            self._hide_sketches(answers)
            return self._extended(state, answers, fetch)
        complaint = answers[-1].complaint
        if self._narrow(complaint):
            return state
        if self._is_about_text(complaint):  # from an index whose first hits are further down
            return (yield from self._with_text())
        return replace(state, stopped=reason, lasting=False)

    @property
    def _learned(self) -> LearnedOfTarget:
        return self.settings.known.about(self.search.target)

    @property
    def _learned_of_caller(self) -> LearnedOfCaller:
        return self.settings.known.of_caller(self.search.target_of_caller)

    def _learn(self, **changes: Any) -> None:
        self.settings.known.learn(self.search.target, **changes)

    @property
    def _field(self) -> SketchField:
        return self.settings.sketch_field

    def _requests(self, fetch: Fetch, first: bool) -> list[Request]:
        """Return the requests of one trip. The sketches are in the answer to the last one."""
        if first and self.search.limits.apart:
            aggregated = widened(self.search.as_found, 0, 1, self._field, self._sketch_reading)
            return [aggregated, widened(self.search, fetch.start, fetch.size, self._field, self._reading, first=False)]
        if self.strategy == "one_phase":
            return [widened(self.search, fetch.start, fetch.size, self._field, self._reading, first=first)]
        of_all = first and self.strategy == "two_phase"
        sketches = sketches_only(self.search, fetch, self._field, self._reading, of_all)
        if not first or of_all:
            return [sketches]
        own = own_part(self.search, self.options.window)
        return [widened(self.search, own.start, own.size, self._field, self._sketch_reading), sketches]

    @cached_property
    def _hider(self) -> SketchFilter:
        return SketchFilter(self.search.body, self.search.request.params, self._field)

    def _hide_sketches(self, answers: Sequence[Answer]) -> None:
        unasked = [name for name in self._reading.fields if name in (*self._sketch_fields, *self._not_asked_for)]
        for answer in answers:
            self._hider.clean(answer.body, unasked)

    def _reader(self, found: Sequence[Sketch | Lack] = (), start: int = 0) -> HitReader:
        return HitReader(self.settings.recipe, self._field, self._frequency_table, found, start)

    def _current_table(self) -> str:
        """Return the table for a stream that begins now, as in State.table."""
        given = self.settings.frequency_table
        if not self._weighs or given is False:
            return ""
        table = given.digest if isinstance(given, FrequencyTable) else table_of(self.search, self.settings)
        return table if self._use_table(table) else LISTED  # another search may just have evicted it

    def _use_table(self, table: str) -> bool:
        """Use a table for all further hits. Returns False if it is not available. table: as in State.table."""
        given, counted = self.settings.frequency_table, self.settings.known.table(self.search.target, table)
        self._frequency_table = (
            given if isinstance(given, FrequencyTable) else counted.frequency_table if counted else None
        )
        return table in ("", LISTED) or (self._frequency_table is not None and self._frequency_table.digest == table)

    def _continues(self, cached: State) -> bool:
        """Return whether the page can be cut from a cached stream, or from that stream extended with its own table."""
        fetch = next_fetch(cached.stream, self.search.start, self.search.size, self.options)
        if self._use_table(cached.table) or fetch is None:
            return True
        self._frequency_table = self.settings.memory.recall_table(cached.table)
        return self._frequency_table is not None

    def _count_in_list(self, stream: Stream, found: Sequence[Sketch | Lack]) -> FrequencyTable:
        """Count the table of a stream's first window. found: the sketches that follow those of the stream."""
        window = self.options.window
        first = stream.sketches[: stream.examined(window)] if stream.fetched else found[:window]
        return count_in_list([one for one in first if not isinstance(one, str)], self.settings.recipe)

    def _sketches(self, hits: Sequence[Hit]) -> list[Sketch | Lack]:
        return self._field.decode([hit.get("fields") or {} for hit in hits], self.settings.recipe)

    def _after_refusal(self, refused: Answer) -> Flow:
        """Replan after the engine has refused the wider request if that helps, else send the user's own request."""
        if self._narrow(refused.complaint):
            return (yield from self.flow())
        if self._is_about_text(refused.complaint):
            return (yield from self._with_text())
        return (yield from self._own_request(_UNREADABLE if refused.ok else _WIDER + reason_of(refused.body)))

    def _refused_in_part(self, answer: Answer) -> Generator[Request, Answer, Answer | None]:
        """Handle shards, perhaps of one index, that refused the wider request, so that their hits are missing.

        Returns None if they refuse the user's own request as well.
        """
        if self._narrow(answer.complaint):
            return (yield from self.flow())
        if self._is_about_text(answer.complaint):
            return (yield from self._with_text())
        (own,) = yield from self._round_trips.later([self.search.request])
        if not own.has_hits or len(own.refusals) >= len(answer.refusals):
            return None
        return self._degraded(own, _WIDER + answer.refusals[0])

    def _narrow(self, reason: str) -> bool:
        """Shorten the windows if one was longer than an index allows. Returns whether that was the reason."""
        most = window_limit(reason)
        if not most or not self.search.start + self.search.size <= most < self.options.max_window:
            return False
        self._learn(window_limit=most)
        self.options = _within(self.options, most)
        return True

    def _is_about_text(self, reason: str) -> bool:
        """Return whether recipes have no doc values because they are mapped as text, and this was not known."""
        return self._field.recipe in reason and "ielddata" in reason and not self._sketch_reading.fields

    def _with_text(self) -> Flow:
        """Start again, with recipes read from the documents."""
        self._learn(text_until=self.settings.clock() + _MAPPED)
        return (yield from self.flow())

    def _own_request(self, reason: str) -> Flow:
        """Send the user's own request. reason: why the answer is degraded."""
        answer = yield self.search.request
        return self._degraded(answer, reason) if answer.has_hits else answer

    def hide_sketches(self, body: Any) -> None:
        """Take the sketches out of an answer to the user's own request, in place, unless he names them."""
        self._hider.clean(body)

    def _degraded(self, answer: Answer, reason: str) -> Answer:
        degraded = self.settings.degrade(self.search.request.path, reason)
        self.hide_sketches(answer.body)
        return replace(answer, body={**answer.body, "ndd": {"degraded": degraded}})

    def _extended(self, state: State, answers: list[Answer], fetch: Fetch) -> State:
        """Return the state after a trip."""
        apart, hits = self.strategy != "one_phase", answers[-1].hits
        sketches = self._sketches(hits)
        if state.table == LISTED:
            self._frequency_table = self._count_in_list(state.stream, sketches)
        reader = self._reader(sketches, state.stream.fetched)
        for hit in hits:
            if apart and self._reading == self._sketch_reading:
                hit.pop("fields", None)  # no longer needed
            else:
                drop_fields(hit, (self._field.sketch, self._field.recipe) if apart else self._sketch_fields)
        partial = any(one.partial for one in answers)
        asked = len(hits) if partial else fetch.size  # few hits of a partial answer do not mean that there are no more
        total = answers[0].total
        stream = state.stream.extend(hits, asked, reader, self.options, total=total)
        documents = {} if apart else dict(enumerate(hits, fetch.start))
        if apart and len(answers) > 1:
            within = max(0, fetch.size - self.search.start)  # max_window may end before the page does
            documents = self._documents(stream, self.search.start, answers[0].hits[:within])
        envelope = envelope_of(answers[0].body) if state.envelope is None else after(state.envelope, answers)
        unknown = self.options.numbers_must_match and any(
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
            partial=partial,
            lasting=state.lasting and not partial and not any(one.cut_short for one in answers),
        )

    def _with_documents(self, state: State, ranks: set[int]) -> Generator[Request, Answer, State]:
        """Return the state with the documents of these ranks; missing ones are fetched."""
        missing = ranges_of(ranks - state.documents.keys())
        read = self._sketch_reading
        requests = [widened(self.search, one.start, one.size, self._field, read, first=False) for one in missing]
        answers = yield from self._round_trips.later(requests)
        if reason := trouble(answers, like=Answer(state.envelope)):
            return replace(state, stopped=reason, lasting=False)
        self._hide_sketches(answers)
        documents = dict(state.documents)
        for fetch, answer in zip(missing, answers, strict=True):
            documents.update(self._documents(state.stream, fetch.start, answer.hits))
        reader = self._reader()
        if len({reader.identity(one, rank) for rank, one in documents.items() if rank in ranks}) < len(ranks):
            raise DoesNotFit
        return replace(state, documents=documents, envelope=after(state.envelope or {}, answers))

    def _documents(self, stream: Stream, start: int, hits: list[Hit]) -> dict[int, Hit]:
        """Return documents by rank, without their sketches."""
        found = documents_of(stream, start, hits, self._sketches(hits))
        for hit in hits:
            drop_fields(hit, self._sketch_fields)
        return found

    def _learn_from(self, state: State, gap: bool) -> None:
        """Update the figures by which "auto" chooses the strategy of the next searches."""
        kilobytes = len(str(next(iter(state.documents.values()), ""))) / 1000
        now, seen = self.settings.clock(), self._learned_of_caller.seen
        before = seen if now < seen.until else Seen()
        after = before.after(state.took, kilobytes, gap, now + self.settings.bypass_seconds)
        self.settings.known.learn_of_caller(self.search.target_of_caller, seen=after)

    def _response(self, state: State, page: Page, cache: str) -> dict[str, Any]:
        """Return the answer in the engine's shape, with the page and the block `ndd`."""
        page = page.with_hits(state.documents)
        degraded = state.stopped or state.degraded
        if degraded:
            self.settings.degrade(self.search.request.path, degraded)
        page = replace(
            page, info=replace(page.info, took=self._round_trips.own_seconds, cache=cache, degraded=degraded)
        )
        body = dict(state.envelope or {})
        body["hits"] = {**body["hits"], "hits": hits_of(page, self._plain)}
        if "total" in body["hits"]:
            body["hits"]["total"] = total_of(page, body["hits"]["total"], self.search.limits.total)
        body["ndd"] = {**block_of(page, self._plain), "strategy": self.strategy, "table": state.table[:8] or None}
        if self.search.limits.total is not None and (unique := body["ndd"]["unique"]):
            most = self.search.limits.total
            unique.update({name: min(unique[name], most) for name in ("value", "low", "high")})
        if notes := self.search.raised(self.options.window)[1]:
            body["ndd"]["raised"] = notes
        return self._filtered(body)

    def _without_sketches(self, state: State) -> Fetching:
        """Handle a first window without any sketch.

        Returns the engine's own page, or the state if the window is empty and its target has sketches.
        """
        empty = not state.stream.fetched
        if not (empty and has_sketches(self.search, self.settings)):
            yield from look_for_sketches(self.search, self.settings, self._round_trips)
        if empty and has_sketches(self.search, self.settings):
            return state
        if self._reading.sketched and not has_sketches(self.search, self.settings):
            self._learn(sketched=False)  # so the next request does not exclude the sketch field from `_source`
            return (yield self.search.request)
        places = range(self.search.start, min(self.search.start + self.search.size, state.stream.fetched))
        if not state.documents.keys() >= set(places) or (self.search.one_window and not empty):
            return (yield self.search.request)
        body = dict(state.envelope or {})
        body["hits"] = {**body["hits"], "hits": [self._plain(state.documents[place]) for place in places]}
        return Answer(self._filtered(body), raw=state.raw)

    def _filtered(self, body: dict[str, Any]) -> dict[str, Any]:
        paths = self.search.request.params.get("filter_path")
        return filtered(body, paths, "ndd") if paths else body

    def _plain(self, hit: Hit) -> Hit:
        """Return a new dict: the hit as the engine would have returned it to the user."""
        return without_fields(hit, self._not_asked_for)

    def _make_key(self, *parts: Any) -> bytes:
        request = self.search.request
        body = {key: value for key, value in self.search.body.items() if key not in ("from", "size")}
        params = {name: value for name, value in request.params.items() if name not in ("from", "size")}
        return cache_key("search", self.settings.key, self.search.caller, request.path, params, body, repr(parts))

    @cached_property
    def _moment(self) -> Moment | None:
        """The write tokens when this search began, None if it is not cached."""
        return self.settings.memory.moment(self.search.indexes) if self._remember else None

    @cached_property
    def stream_key(self) -> bytes | None:
        """The cache key of the stream that the page is cut from, None if it is not cached."""
        if not self._remember:
            return None
        whole = any(map(callable, self.options.keep))  # a callable reads hits, which may be cached without documents
        return self._make_key(replace(self.options, keep=("score",)), fields_of(self.options), whole)


def _within(options: CollapseOptions, most: int) -> CollapseOptions:
    """Return options whose windows hold at most `most` hits."""
    if most >= options.max_window:
        return options
    return replace(options, window=min(options.window, most), max_window=most)
