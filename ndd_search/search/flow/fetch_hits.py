"""Fetches the hits and documents of one page according to a plan, and adds them to the state of the search.

What sends requests is a generator that yields them. An answer that shows how to ask instead, and requests of a split
search that do not fit together, raise AskAnew. Where no page can be made, the answer is the engine's own page (see
`engines_own_page`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import numpy as np

from ndd_search.core.immutable import dataclass
from ndd_search.core.paging.fill_page import Fetch, first_window, next_fetch
from ndd_search.core.paging.record_schema import presence
from ndd_search.core.paging.stream import Stream
from ndd_search.core.sketching.fits_text import misfits, sketched_texts
from ndd_search.core.sketching.sketches import Lack, Sketch, Sketches
from ndd_search.search.flow.choose_frequency_table import counted_in_list, learn_frequency_table, new_state
from ndd_search.search.flow.engines_own_page import (
    TOO_LATE,
    UNREADABLE,
    WIDER,
    degraded,
    own_request,
    without_sketches,
)
from ndd_search.search.flow.plan import AskAnew, Documents, Plan, Step, ask_anew_if_learned, needs_sketches
from ndd_search.search.flow.round_trips import PLACE, Asking, Finished, RoundTrips, trouble
from ndd_search.search.flow.search_state import LISTED, State
from ndd_search.search.rest.candidate_limits import raised
from ndd_search.search.rest.read_answer import (
    Answer,
    Hit,
    HitReader,
    drop_fields,
    envelope_after,
    envelope_of,
    shards_of,
)
from ndd_search.search.rest.wider_requests import widened

# Statuses with which an engine, or a proxy in front of it, may refuse a part of a search and accept the whole.
_REFUSED_APART = {*PLACE, HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.NOT_IMPLEMENTED}
_STEP = 3  # hits of a fetch, in multiples of those before it, where a time budget may end the search
_LONGER = 3 / 2  # hits of the first fetch for a later page, in multiples of the end of the page
_OTHERS = 5  # hits of an answer that hide nothing and are not hidden, whose sketches are compared with their texts
_PARTIAL = "the engine's answer is partial, the page is made of it"


@dataclass(frozen=True)
class HitFetcher:
    """Fetches what one page needs. steps: of the search."""

    plan: Plan
    round_trips: RoundTrips
    steps: Sequence[Step] = ()

    def fetch_until_full(self, state: State) -> Asking[State]:
        """Fetch the hits that the page needs, as far as possible. Raises Finished if there is no page of ours."""
        search = self.plan.search
        while not state.stopped:
            fetch = next_fetch(state.stream, search.start, search.size, self.plan.options)
            if fetch is None:
                break
            fetch = self._fitting(fetch)
            state = yield from (self._first(fetch) if state.envelope is None else self._next(state, fetch))
        return state

    def _fitting(self, fetch: Fetch) -> Fetch:
        """Return a fetch of as many hits as are worth one trip. The page is the same: it examines those that it needs.

        With a time budget, a fetch of the whole result is a part of it, so that some hits are there when the time is
        over. The first fetch for a later page is long enough if a third of its hits are hidden.
        """
        search, options = self.plan.search, self.plan.options
        if options.total == "groups":
            most = max(options.window, 2 * (search.start + search.size), _STEP * fetch.start)
            return Fetch(fetch.start, min(fetch.size, most)) if self.round_trips.has_budget else fetch
        if not search.start or fetch.start or search.limits.bounded:
            return fetch  # a longer window of bounded candidates has other hits
        wanted = _LONGER * (search.start + search.size + options.ahead)
        return Fetch(0, max(fetch.size, first_window(wanted, options)))

    def fetch_documents(self, state: State, ranks: set[int]) -> Asking[State]:
        """Return the state with the documents of these ranks; missing ones are fetched, even when no time is left."""
        asked = self.plan.documents(state.stream, ranks - state.documents.keys())
        (answer,) = yield from self.round_trips.needed([asked.request], None)
        if reason := trouble([answer], like=Answer(state.envelope)):
            ask_anew_if_learned(self.plan, answer.complaint)
            if answer.status in _REFUSED_APART:
                raise AskAnew
            return state.stop(reason)
        return with_documents(state, self.plan, asked, answer)

    def _first(self, fetch: Fetch) -> Asking[State]:
        """Make the first trip."""
        plan, settings = self.plan, self.plan.settings
        requests = plan.requests(fetch, first=True)
        beside = [request for step in self.steps for request in step.beside(plan)]
        all_answers = yield from self.round_trips.first([*requests, *beside], plan.is_split)
        answers, others = all_answers[: len(requests)], all_answers[len(requests) :]
        if trouble(answers, like=answers[0]):
            yield from self._refused(answers, bool(beside))
        sketches = sketches_in(answers[-1], plan)
        needs = needs_sketches(plan.options, self.steps)
        if any(not isinstance(one, str) for one in sketches) or (not needs and plan.has_sketches):  # in later hits
            yield from learn_frequency_table(plan, self.round_trips)
        state = with_more_hits(new_state(plan), plan, answers, sketches, fetch)
        is_bare = {"missing"}.issuperset(state.stream.lacking)
        if settings.items is None and is_bare and needs:
            return (yield from without_sketches(plan, self.round_trips, state))
        if settings.items is None and not is_bare:
            settings.known.saw_sketch(plan.search.target, settings.clock())
            if not plan.sketch_reading.sketched and "" in state.stream.lacking:
                settings.known.learn(plan.search.target, sketched=True)
        for step in self.steps:
            state = yield from step.after_first_trip(state, plan, self.round_trips, others)
        if plan.search.limits.of_shard is not None:
            state = yield from self._counted(state, fetch)
        return state

    def _counted(self, state: State, fetch: Fetch) -> Asking[State]:
        """Return the state with the caller's own total, if a shard may have fewer neighbours than are requested of it.

        A shard that has fewer than the raised limit may have fewer than the caller's, too.
        """
        search, envelope = self.plan.search, state.envelope or {}
        shards, total = shards_of(envelope), Answer(envelope).exact_total
        asked = raised(search.body, fetch.size, search.limits)[1].get("k")
        if asked is None or total is None or total >= asked * shards or search.limits.apart:
            return state
        request = widened(search.as_found, 0, 1, self.plan.field, self.plan.sketch_reading)
        (own,) = yield from self.round_trips.later([request])
        if not own.whole:
            return state
        hits = {**envelope["hits"], "total": own.body["hits"].get("total")}
        return replace(state, envelope=envelope_after({**envelope, "hits": hits}, [own]))

    def _refused(self, answers: list[Answer], has_others: bool) -> Asking[None]:
        """Handle answers of the first trip that failed or are partial. has_others: whether it had requests of steps.

        Raises AskAnew if another plan may help, else Finished with the caller's own page, unless that is no better.
        """
        plan = self.plan
        unreadable = next((answer for answer in answers if answer.ok and not answer.has_hits), None)
        is_several = plan.is_split or has_others or plan.search.limits.apart
        may_help = answers[0].ok or answers[0].status in _REFUSED_APART
        if is_several and unreadable is None and may_help:
            raise AskAnew
        if unreadable is not None or not answers[0].has_hits:
            refused = unreadable or answers[0]
            ask_anew_if_learned(plan, refused.complaint)
            is_late = refused.status == HTTPStatus.REQUEST_TIMEOUT
            reason = UNREADABLE if refused.ok else TOO_LATE if is_late else WIDER + refused.reason
            raise Finished((yield from own_request(plan, reason)))
        if answers[0].failed_shards:
            ask_anew_if_learned(plan, answers[0].complaint)
            own = yield plan.search.request
            if own.has_hits and own.failed_shards < answers[0].failed_shards:
                raise Finished(degraded(own, plan, WIDER + answers[0].reason))

    def _next(self, state: State, fetch: Fetch) -> Asking[State]:
        """Make a later trip for more hits."""
        if state.partial:  # ranks of another answer, perhaps a complete one, differ from those of a partial answer
            return state.stop(_PARTIAL)
        anew = self.plan.search.limits.bounded  # a longer window may have another order
        fetch = Fetch(0, fetch.start + fetch.size) if anew else fetch
        answers = yield from self.round_trips.later(self.plan.requests(fetch, first=False))
        if not (reason := trouble(answers, like=Answer(state.envelope))):
            if anew:
                state = replace(state, stream=Stream(shown=self.plan.shown, total=state.stream.total), documents={})
            state = with_more_hits(state, self.plan, answers, sketches_in(answers[-1], self.plan), fetch)
            check_distinct(state, self.plan)
            return state
        ask_anew_if_learned(self.plan, answers[-1].complaint)
        return state.stop(reason)


_NO_NUMBERS = (
    "hits without stored numbers stand alone: run ndd-search backfill --numbers, or leave the guard numbers out"
)


def reader_of(state: State, plan: Plan, found: Sequence[Sketch | Lack] = (), start: int | None = None) -> HitReader:
    """Return a reader of the engine's hits.

    found: sketches of the hits from rank `start` on, which by default follow those of the state's stream.
    """
    settings, start = plan.settings, state.stream.fetched if start is None else start
    return HitReader(settings.recipe, settings.sketch_field, state.frequency_table, found, start, settings.items)


def sketches_in(answer: Answer, plan: Plan) -> Sequence[Sketch | Lack]:
    """Return what `sketches_of` returns for the hits of an answer."""
    if plan.settings.items is not None:
        return sketches_of(answer.hits, plan)
    return answer.sketches(plan.field, plan.settings.recipe)


def sketches_of(hits: Sequence[Hit], plan: Plan) -> Sequence[Sketch | Lack]:
    """Return the sketch of each hit, or why it has none. With items an empty sketch says that a hit is compared."""
    if (items := plan.settings.items) is not None:
        return presence(hits, reader_of(State(), plan), items)
    return plan.field.decode(hits, plan.settings.recipe)


def with_more_hits(
    state: State, plan: Plan, answers: Sequence[Answer], sketches: Sequence[Sketch | Lack], fetch: Fetch
) -> State:
    """Return the state after a trip for more hits.

    answers: to `plan.requests(fetch, ...)`. Their hits are changed: they lose the sketches. sketches: in the last one;
             where the documents come with them, one that is not of its text is replaced by the sketch of the text.
    Raises AskAnew if these documents do not belong to the stream.
    """
    overall, window = answers[0], answers[-1]  # one answer, unless documents or aggregations come apart from sketches
    hits = window.hits
    if state.table == LISTED and state.frequency_table is None:
        state = replace(state, frequency_table=counted_in_list(state.stream, sketches, plan))
    reader = reader_of(state, plan, sketches)
    for hit in hits:
        if "fields" in hit:  # most hits come without
            drop_fields(hit, plan.field.read if plan.is_split else plan.sketch_fields)
    partial = any(one.partial for one in answers)
    asked = len(hits) if partial else fetch.size  # few hits of a partial answer do not mean that there are no more
    stream = state.stream.extend(hits, asked, reader, plan.options, total=overall.total)
    ranks = range(fetch.start, fetch.start + len(hits))
    if not plan.is_split and (right := misfits_in(window, sketches, plan, stream, ranks, None)):
        state = state.told_stale(hits[min(right)])
        reader = reader_of(state, plan, [right.get(place, one) for place, one in enumerate(sketches)])
        stream = state.stream.extend(hits, asked, reader, plan.options, total=overall.total)
    plan.hide_sketches(answers[:-1] if plan.is_split else answers)
    documents: dict[int, Hit] = {} if plan.is_split else dict(enumerate(hits, fetch.start))
    lacks_numbers = plan.options.same_numbers and any(
        not isinstance(sketch, str) and reader.numbers(hit) is None for hit, sketch in zip(hits, sketches, strict=True)
    )
    return replace(
        state,
        degraded=_NO_NUMBERS if lacks_numbers else state.degraded,
        stream=stream,
        documents={**state.documents, **documents},
        envelope=envelope_of(overall.body) if state.envelope is None else envelope_after(state.envelope, answers),
        raw=state.raw or overall.raw,
        partial=partial,
        facets=None if stream.exhausted and not state.before else state.facets,  # exact counts replace estimates
        lasting=state.lasting and not partial and not any(one.body.get("terminated_early") for one in answers),
    )


def with_documents(state: State, plan: Plan, asked: Documents, answer: Answer) -> State:
    """Return the state with more documents.

    Raises AskAnew if a document has changed since its sketch was read, or one has two ranks, or if one of a group has a
    sketch that is not of its text: a search in one phase compares the text.
    """
    stream, sketches = state.stream, sketches_in(answer, plan)
    ranks = _ranks_of(answer, stream, asked, sketches)
    if wrong := misfits_in(answer, sketches, plan, stream, ranks, _OTHERS):
        if stream.grouped_ranks.intersection([ranks[place] for place in wrong]):
            raise AskAnew
        state = state.told_stale(answer.hits[min(wrong)])
    plan.hide_sketches([answer])
    wanted = {rank: hit for rank, hit in zip(ranks, answer.hits, strict=True) if rank in asked.wanted}
    _as_first_found(wanted, stream, plan)
    documents = {**state.documents, **wanted}
    state = replace(state, documents=documents, envelope=envelope_after(state.envelope or {}, [answer]))
    check_distinct(state, plan)
    return state


def _ranks_of(answer: Answer, stream: Stream, request: Documents, sketches: Sequence[Sketch | Lack]) -> list[int]:
    """Return the rank in a stream of each hit of an answer, -1 of other hits. sketches: of the hits.

    A hit is found again by its index, sequence number and sketch, as a write between the two requests may have changed
    the order. Copies in two shards may have all three in common: they keep their order.

    Raises AskAnew if a wanted hit is missing.
    """
    places = stream.ranks.searchsorted(np.array(request.found, np.int64))
    hits, known = stream.hits, stream.sketches
    at = places.tolist()
    before = known.taken(places) if isinstance(known, Sketches) else [stream.lacking[i] or known[i] for i in at]
    left: dict[tuple[Any, ...], list[int]] = {}
    for version, rank in zip(_versions([hits[place] for place in at], before), request.found, strict=True):
        left.setdefault(version, []).append(rank)
    ranks = [left[version].pop(0) if left.get(version) else -1 for version in _versions(answer.hits, sketches)]
    if not request.wanted <= set(ranks):
        raise AskAnew(changed=True)
    return ranks


def _versions(hits: Sequence[Hit], sketches: Iterable[Sketch | str]) -> list[tuple[Any, ...]]:
    return [
        (hit["_index"], hit.get("_seq_no"), one if isinstance(one, str) else one.tobytes())
        for hit, one in zip(hits, sketches, strict=True)
    ]


def _as_first_found(documents: Mapping[int, Hit], stream: Stream, plan: Plan) -> None:
    """Give hits, by rank, the scores and sort values that their sketches came with, and nothing that is not asked for.

    They are changed in place.
    """
    added = () if plan.search.body.get("seq_no_primary_term") else ("_seq_no", "_primary_term")
    places = stream.ranks.searchsorted(np.array(list(documents), np.int64)).tolist()
    for hit, place in zip(documents.values(), places, strict=True):
        before = stream.hits[place]
        for name in ("_score", "sort"):
            if name in before:
                hit[name] = before[name]
        for name in added:
            hit.pop(name, None)
        if "fields" in hit:
            drop_fields(hit, plan.sketch_fields)


def misfits_in(
    answer: Answer,
    sketches: Sequence[Sketch | Lack],
    plan: Plan,
    stream: Stream,
    ranks: Sequence[int],
    others: int | None,
) -> dict[int, Sketch | Lack]:
    """Return the right sketch of each hit whose sketch is not of its text, by its place in an answer.

    sketches, ranks: of the hits. others: how many hits that hide nothing and are not hidden are compared, after those
                     that do or are; None for all, as later hits may join them.
    """
    if plan.settings.items is not None:
        return {}
    hits, grouped = answer.hits, stream.grouped_ranks
    order = [place for place, rank in enumerate(ranks) if rank in grouped]
    order += [place for place, rank in enumerate(ranks) if rank not in grouped][:others]
    return misfits(
        sketches,
        order,
        lambda places: sketched_texts([hits[place].get("_source") for place in places], plan.field.name),
        plan.settings.recipe,
    )


def check_distinct(state: State, plan: Plan) -> None:
    """Raise AskAnew if one document has two ranks of the stream.

    Then the index has changed between two requests, and a document has moved to the rank of another one. A stream of
    sketches without ids does not show that.
    """
    ranks = [rank for rank in state.stream.ranks.tolist() if rank in state.documents]
    hits = [state.documents[rank] for rank in ranks]
    if len(set(reader_of(state, plan).identities(hits, ranks))) < len(ranks):
        raise AskAnew
