"""One search on its way to an engine and back, without any I/O: requests come out, answers are sent in.

An exception of the client is thrown into the flow at the place where its request came out. On the first request it
passes through untouched; later it ends the search for more hits, and the caller gets the page made of what is there.
How hits are fetched is in `rounds`; where that does not work out, the search starts again and is fetched in one phase.
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
from ndd_search.middleware.learned import LearnedOfCaller, LearnedOfTarget
from ndd_search.middleware.page_memory import Moment
from ndd_search.middleware.round_trips import RoundTrips, Waiting, trouble
from ndd_search.middleware.sampling import LISTED, sample_frequency_table, table_of
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.middleware.strategies import (
    DoesNotFit,
    Seen,
    documents_of,
    goes_together,
    own_part,
    sketches_only,
    strategy_of,
    stretches,
)
from ndd_search.middleware.unsketched import has_sketches, look_for_sketches, peeked, saw_a_sketch
from ndd_search.paging.cache import cache_key
from ndd_search.paging.keep import fields_of
from ndd_search.paging.page import Fetch, Page, next_fetch, slice_page
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
from ndd_search.sketching.sketches import Sketch

_MAPPED = 3600.0  # seconds until we look again whether a recipe is still mapped as text

_NO_NUMBERS = (
    "hits without stored numbers stand alone: run ndd-search backfill --numbers, or turn numbers_must_match off"
)
# Statuses with which an engine, or what stands before it, may refuse our request where it takes the user's own.
_REFUSED = {HTTPStatus.BAD_REQUEST}
_REFUSED_MSEARCH = {
    *(*_REFUSED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,  # it holds the query twice
}
_WIDER = "the engine refused the wider request: "
_UNREADABLE = "the answer to the wider request is not the answer to a search"
_PARTIAL = "the engine's answer is partial, the page is made of it"
_NO_DOCUMENTS = "the documents to show could not be fetched, the page is the engine's own"

Flow = Generator[Request, Answer, Answer]
Rounds = Generator[Request, Answer, State | Answer]


def conversation(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> Conversation | None:
    """How to answer a request, None when it is left alone.

    changes: options of the surrounding `ndd_search.options`; None switches us off.
    Raises TypeError or ValueError for options that cannot be.
    """
    search = None if changes is None else read_search(request)
    if search is None or changes is None:
        return None
    wishes = {**changes, **search.changes}
    remember = bool(wishes.pop("cache", True))
    options = collapse_options(settings.options, **wishes)
    if search.limits.apart and not goes_together(search.request):
        search = search.as_found
    if not search.is_collapsed(options):
        return None
    wanted, limit = search.start + search.size, settings.known.about(search.target).window_limit
    if wanted > limit or settings.clock() < settings.known.of_caller(search.target_of_caller).bypass_until:
        return None  # so deep that the engine itself has to say what it can do; or without a sketch to compare
    most = min(options.max_window, limit, max(search.limit or limit, wanted))
    if search.one_window:
        doublings = max(0, (wanted - 1) // options.window).bit_length()
        most = min(most, options.window << doublings)
        options = replace(options, window=most, max_window=most)
    return Conversation(search, _within(options, most), settings, remember)


class Conversation:
    """What is said to the engine for one search, and what the caller gets."""

    def __init__(self, search: Search, options: CollapseOptions, settings: Settings, remember: bool) -> None:
        self.search, self.options, self.settings = search, options, settings
        self._round_trips = RoundTrips(settings.time_budget)
        self._remember = remember and settings.cache is not None
        self._weighs = options.min_similarity == "auto" and settings.recipe.measure == "kmv"
        self._common: FrequencyTable | None = None
        self._is_new = True
        self.key: bytes | None = None
        if self._remember and not any(map(callable, options.keep)):
            self.key = self._make_key(options, search.start, search.size)

    def _choose(self) -> None:
        """What to read of hits and how to fetch them, by what is known of the target now."""
        known, now = self._known, self.settings.clock()
        numbers = [self._field.numbers] if self.options.numbers_must_match else []
        values = fields_of(self.options)
        self._sketch_reading = sketch_reading(self._field, text=now < known.text_until, sketched=known.sketched)
        self._reading = self._sketch_reading.and_of(numbers, values)
        hidden = [name for name in {*self._field.paths, *values} if not asked_for(self.search, self._field, name)]
        self._not_asked_for = [name for name in hidden if name in (*values, *numbers)]
        self._sketch_fields = [name for name in hidden if name not in self._not_asked_for]
        self.strategy: Strategy = "one_phase"
        if now >= known.whole_until:
            seen = self._known_to_caller.seen
            self.strategy = strategy_of(self.search, self.options, self._reading, seen if now < seen.until else Seen())

    def remembered(self) -> Answer | None:
        """The finished page, if it is in the cache."""
        body = self.settings.memory.recall_page(self.key)
        if body is None:
            return None
        if isinstance(body.get("ndd"), dict):
            body["ndd"]["cache"] = "hit"
        return Answer(body)

    def wait(self, flight: Future[None], most: float) -> Waiting:
        """Until somebody else has made the same page: as long as our own budget allows, and `most` seconds."""
        return self._round_trips.wait(flight, most)

    def flow(self) -> Flow:
        """Ask for hits until the page is full; the generator's value is the answer for the caller."""
        self._choose()
        if self._is_new:
            self._is_new = False
            if (
                self.settings.clock() < self._known_to_caller.bypass_until
            ):  # learnt while this search waited for another
                return (yield self.search.request)
            page = yield from peeked(self.search, self.settings, self._sketch_reading, self._round_trips)
            if page is not None:
                return replace(page, body=self._filtered(page.body)) if page.has_hits else page
            self.settings.known.came_back(self.search.target, self.search.target_of_caller)
        known = self.settings.memory.recall_state(self._stream_key) if self._moment else None
        if known is not None and not self._decides_by(known.table):
            known = None
        try:
            return (yield from self._page(known or State()))
        except DoesNotFit:
            self.strategy = "one_phase"
            if known is None:  # else it is just older than the index
                self._learn(whole_until=self.settings.clock() + self.settings.bypass_seconds)
        return (yield from self._page(State()))

    def _page(self, known: State) -> Flow:
        state = yield from self._filled(known)
        if isinstance(state, Answer):
            return state
        page = slice_page(state.stream, self.search.start, self.search.size, self._reader(), self.options)
        gap = page.ranks - state.documents.keys()
        if state is not known and self.strategy == "one_trip":
            self._learn_from(state, bool(gap))
        if gap:
            state = yield from self._with_documents(state, page.ranks)
        if page.groups and page.groups[0].rank not in state.documents:
            return (yield from self._as_it_came(_NO_DOCUMENTS))
        if state is not known and state.lasting:
            self.settings.memory.remember_state(self._stream_key, state, self._moment)
        body = self._response(state, page, "off" if self._stream_key is None else "hit" if state is known else "miss")
        if state.lasting:
            self.settings.memory.remember_page(self.key, body, state, self._moment)
        return Answer(body, raw=state.raw)

    def _filled(self, state: State) -> Rounds:
        """The state with as many hits as the page takes, as far as they can be had; or an answer that needs no page."""
        longer: State | Answer = state
        while isinstance(longer, State) and not longer.stopped:
            state = longer
            wish = next_fetch(state.stream, self.search.start, self.search.size, self.options)
            if wish is None:
                break
            longer = yield from (self._first(wish) if state.envelope is None else self._next(state, wish))
        return longer

    def _first(self, wish: Fetch) -> Rounds:
        refusals = _REFUSED_MSEARCH if self.strategy == "one_trip" or self.search.limits.apart else _REFUSED
        answers = yield from self._round_trips.first(self._requests(wish, first=True), refusals)
        if isinstance(answers, Answer):
            return answers
        unreadable = next((one for one in answers if one.ok and not one.has_hits), None)
        if unreadable is None and trouble(answers, like=answers[0]):
            if self.strategy != "one_phase":
                raise DoesNotFit
            if self.search.limits.apart:
                self.search = self.search.as_found
                return (yield from self._first(wish))
        if unreadable is not None or not answers[0].has_hits:
            return (yield from self._as_asked(unreadable or answers[0]))
        if answers[0].refusals and (instead := (yield from self._refused_in_part(answers[0]))):
            return instead
        self._hide_sketches(answers)
        sketched = any(self._field.sketch in (hit.get("fields") or {}) for hit in answers[-1].hits)
        if sketched and self._weighs and self.settings.counts_document_frequency:
            yield from sample_frequency_table(self.search, self.settings, self._sketch_reading, self._round_trips)
        state = self._extended(State(table=self._current_table()), answers, wish)
        if {"missing"}.issuperset(state.stream.lacking):
            return (yield from self._without_sketches(state))
        saw_a_sketch(self.search, self.settings)
        if "" in state.stream.lacking and not self._known.sketched:
            self._learn(sketched=True)
        return state

    def _next(self, state: State, wish: Fetch) -> Rounds:
        if state.partial:  # the ranks of another answer, a whole one perhaps, are not its ranks
            return replace(state, stopped=_PARTIAL)
        answers = yield from self._round_trips.later(self._requests(wish, first=False))
        reason = trouble(answers, like=Answer(state.envelope))
        if not reason:
            self._hide_sketches(answers)
            return self._extended(state, answers, wish)
        why = answers[-1].complaint
        if self._narrows(why):
            return state
        if self._is_about_text(why):  # of an index whose hits stand further down
            return (yield from self._with_text())
        return replace(state, stopped=reason, lasting=False)

    @property
    def _known(self) -> LearnedOfTarget:
        return self.settings.known.about(self.search.target)

    @property
    def _known_to_caller(self) -> LearnedOfCaller:
        return self.settings.known.of_caller(self.search.target_of_caller)

    def _learn(self, **changes: Any) -> None:
        self.settings.known.learn(self.search.target, **changes)

    @property
    def _field(self) -> SketchField:
        return self.settings.sketch_field

    def _requests(self, wish: Fetch, first: bool) -> list[Request]:
        """What is sent for a round; sketches are in the answer to the last."""
        if first and self.search.limits.apart:
            aggregated = widened(self.search.as_found, 0, 1, self._field, self._sketch_reading)
            return [aggregated, widened(self.search, wish.start, wish.size, self._field, self._reading, first=False)]
        if self.strategy == "one_phase":
            return [widened(self.search, wish.start, wish.size, self._field, self._reading, first=first)]
        of_all = first and self.strategy == "two_phase"
        sketches = sketches_only(self.search, wish, self._field, self._reading, of_all)
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

    def _reader(self, found: Sequence[Sketch | str] = (), start: int = 0) -> HitReader:
        return HitReader(self.settings.recipe, self._field, self._common, found, start)

    def _current_table(self) -> str:
        """The table by which a stream that begins now is decided, as in State.table."""
        given = self.settings.frequency_table
        if not self._weighs or given is False:
            return ""
        table = given.digest if isinstance(given, FrequencyTable) else table_of(self.search, self.settings)
        return table if self._decides_by(table) else LISTED  # another search may have pushed it out of memory just now

    def _decides_by(self, table: str) -> bool:
        """Whether hits can be decided by a table, which they are from now on. table: as in State.table."""
        given, counted = self.settings.frequency_table, self.settings.known.table(self.search.target, table)
        self._common = given if isinstance(given, FrequencyTable) else counted.frequency_table if counted else None
        return table in ("", LISTED) or (self._common is not None and self._common.digest == table)

    def _count_in_list(self, stream: Stream, found: Sequence[Sketch | str]) -> FrequencyTable:
        """The table of a stream's first window, always the same. found: the sketches that come after the stream."""
        window = self.options.window
        first = stream.sketches[: stream.examined(window)] if stream.fetched else found[:window]
        return count_in_list([one for one in first if not isinstance(one, str)], self.settings.recipe)

    def _sketches(self, hits: Sequence[Hit]) -> list[Sketch | str]:
        return self._field.decode([hit.get("fields") or {} for hit in hits], self.settings.recipe)

    def _as_asked(self, refused: Answer) -> Flow:
        """The engine would not have the wider request: change it where that helps, else send what the user sent."""
        if self._narrows(refused.complaint):
            return (yield from self.flow())
        if self._is_about_text(refused.complaint):
            return (yield from self._with_text())
        return (yield from self._as_it_came(_UNREADABLE if refused.ok else _WIDER + reason_of(refused.body)))

    def _refused_in_part(self, answer: Answer) -> Generator[Request, Answer, Answer | None]:
        """Some shards, of one index perhaps, would not have the wider request, and their hits are missing.

        None where they would not have the user's own request either.
        """
        if self._narrows(answer.complaint):
            return (yield from self.flow())
        if self._is_about_text(answer.complaint):
            return (yield from self._with_text())
        (own,) = yield from self._round_trips.later([self.search.request])
        if not own.has_hits or len(own.refusals) >= len(answer.refusals):
            return None
        return self._degraded(own, _WIDER + answer.refusals[0])

    def _narrows(self, reason: str) -> bool:
        """Whether a window was longer than an index allows; from now on none is."""
        most = window_limit(reason)
        if not most or not self.search.start + self.search.size <= most < self.options.max_window:
            return False
        self._learn(window_limit=most)
        self.options = _within(self.options, most)
        return True

    def _is_about_text(self, reason: str) -> bool:
        """Whether recipes, mapped as text, cannot be read as doc values, and we did not know."""
        return self._field.recipe in reason and "ielddata" in reason and not self._sketch_reading.fields

    def _with_text(self) -> Flow:
        """Once more, with recipes read out of the documents."""
        self._learn(text_until=self.settings.clock() + _MAPPED)
        return (yield from self.flow())

    def _as_it_came(self, reason: str) -> Flow:
        """What the engine says to the user's own request."""
        answer = yield self.search.request
        return self._degraded(answer, reason) if answer.has_hits else answer

    def hide_sketches(self, body: Any) -> None:
        """Take the sketches out of an answer to the user's own request, in place, unless he names them."""
        self._hider.clean(body)

    def _degraded(self, answer: Answer, reason: str) -> Answer:
        degraded = self.settings.degrade(self.search.request.path, reason)
        self.hide_sketches(answer.body)
        return replace(answer, body={**answer.body, "ndd": {"degraded": degraded}})

    def _extended(self, state: State, answers: list[Answer], wish: Fetch) -> State:
        """The state after a round."""
        apart, hits = self.strategy != "one_phase", answers[-1].hits
        sketches = self._sketches(hits)
        if state.table == LISTED:
            self._common = self._count_in_list(state.stream, sketches)
        reader = self._reader(sketches, state.stream.fetched)
        for hit in hits:
            if apart and self._reading == self._sketch_reading:
                hit.pop("fields", None)  # nobody reads more of them
            else:
                drop_fields(hit, (self._field.sketch, self._field.recipe) if apart else self._sketch_fields)
        partial = any(one.partial for one in answers)
        asked = len(hits) if partial else wish.size  # fewer do not mean that there are no more
        total = answers[0].total
        stream = state.stream.extend(hits, asked, reader, self.options, total=total)
        documents = {} if apart else dict(enumerate(hits, wish.start))
        if apart and len(answers) > 1:
            within = max(0, wish.size - self.search.start)  # max_window may end before the page does
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
        """The state with the documents of some places, fetched now where they are not there."""
        wishes = stretches(ranks - state.documents.keys())
        read = self._sketch_reading
        asked = [widened(self.search, wish.start, wish.size, self._field, read, first=False) for wish in wishes]
        answers = yield from self._round_trips.later(asked)
        if reason := trouble(answers, like=Answer(state.envelope)):
            return replace(state, stopped=reason, lasting=False)
        self._hide_sketches(answers)
        documents = dict(state.documents)
        for wish, answer in zip(wishes, answers, strict=True):
            documents.update(self._documents(state.stream, wish.start, answer.hits))
        reader = self._reader()
        if len({reader.identity(one, rank) for rank, one in documents.items() if rank in ranks}) < len(ranks):
            raise DoesNotFit
        return replace(state, documents=documents, envelope=after(state.envelope or {}, answers))

    def _documents(self, stream: Stream, start: int, hits: list[Hit]) -> dict[int, Hit]:
        """Documents by place, without their sketches."""
        found = documents_of(stream, start, hits, self._sketches(hits))
        for hit in hits:
            drop_fields(hit, self._sketch_fields)
        return found

    def _learn_from(self, state: State, gap: bool) -> None:
        """What helps to decide how the next searches are fetched."""
        kilobytes = len(str(next(iter(state.documents.values()), ""))) / 1000
        now, seen = self.settings.clock(), self._known_to_caller.seen
        before = seen if now < seen.until else Seen()
        after = before.after(state.took, kilobytes, gap, now + self.settings.bypass_seconds)
        self.settings.known.learn_of_caller(self.search.target_of_caller, seen=after)

    def _response(self, state: State, page: Page, cache: str) -> dict[str, Any]:
        """The answer in the engine's own shape, with our page and block."""
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

    def _without_sketches(self, state: State) -> Rounds:
        """What to make of a first window that holds no sketch.

        It is the engine's own page, unless it is empty and its target has sketches.
        """
        empty = not state.stream.fetched
        if not (empty and has_sketches(self.search, self.settings)):
            yield from look_for_sketches(self.search, self.settings, self._round_trips)
        if empty and has_sketches(self.search, self.settings):
            return state
        if self._reading.sketched and not has_sketches(self.search, self.settings):
            self._learn(sketched=False)  # the engine left the values of stored sketches out of these hits
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
        """A new dict: the hit as the user would have got it."""
        return without_fields(hit, self._not_asked_for)

    def _make_key(self, *parts: Any) -> bytes:
        request = self.search.request
        body = {key: value for key, value in self.search.body.items() if key not in ("from", "size")}
        params = {name: value for name, value in request.params.items() if name not in ("from", "size")}
        return cache_key("search", self.settings.key, self.search.caller, request.path, params, body, repr(parts))

    @cached_property
    def _moment(self) -> Moment | None:
        """What had been written when this search began, None where it is not remembered."""
        return self.settings.memory.moment(self.search.request.path.rpartition("/")[0]) if self._remember else None

    @cached_property
    def _stream_key(self) -> bytes | None:
        if not self._remember:
            return None
        whole = any(map(callable, self.options.keep))  # it reads hits, which may be remembered without documents
        return self._make_key(replace(self.options, keep=("score",)), fields_of(self.options), whole)


def _within(options: CollapseOptions, most: int) -> CollapseOptions:
    """Options whose windows end at a place of the engine's list, at the latest."""
    if most >= options.max_window:
        return options
    return replace(options, window=min(options.window, most), max_window=most)
