"""Fetches the hits and documents of one page according to a plan, as generators that yield requests.

An answer that shows how to ask instead raises Replan. Requests of a split search that do not fit raise DoesNotFit.
"""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from ndd_search.immutable import dataclass
from ndd_search.middleware.add_answers import check_distinct, with_documents, with_more_hits
from ndd_search.middleware.counted_table import learn_frequency_table
from ndd_search.middleware.fallbacks import after_partial_refusal, after_refusal, without_sketches
from ndd_search.middleware.fetch_strategies import DoesNotFit, ranges_of
from ndd_search.middleware.group_count import sample_requests, with_group_count
from ndd_search.middleware.plan import Plan, Replan, replan_if_learned
from ndd_search.middleware.sending import Asking, RoundTrips, trouble
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.middleware.tables import new_state, weighs
from ndd_search.middleware.unsketched import saw_a_sketch
from ndd_search.paging.stream import Stream
from ndd_search.paging.windows import Fetch, next_fetch
from ndd_search.rest.answers import Answer

# Statuses with which an engine, or a proxy in front of it, may refuse our request and accept the user's own.
_REFUSED = {HTTPStatus.BAD_REQUEST}
_REFUSED_MSEARCH = {
    *(*_REFUSED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,  # our `_msearch` holds the query twice
}
_PARTIAL = "the engine's answer is partial, the page is made of it"


@dataclass(frozen=True)
class HitFetcher:
    """Fetches what one page needs."""

    plan: Plan
    settings: Settings
    round_trips: RoundTrips

    def fetch_until_full(self, state: State) -> Asking[State | Answer]:
        """Fetch the hits that the page needs, as far as possible. Returns the state, or a final answer."""
        search = self.plan.search
        found: State | Answer = state
        while isinstance(found, State) and not found.stopped:
            state = found
            fetch = next_fetch(state.stream, search.start, search.size, self.plan.options)
            if fetch is None:
                break
            found = yield from (self._first(fetch) if state.envelope is None else self._next(state, fetch))
        return found

    def fetch_documents(self, state: State, ranks: set[int], ids_only: bool = False) -> Asking[State]:
        """Return the state with the documents of these ranks; missing ones are fetched. ids_only: without `_source`."""
        missing = ranges_of(ranks - state.documents.keys())
        answers = yield from self.round_trips.later(self.plan.document_requests(missing, ids_only))
        if reason := trouble(answers, like=Answer(state.envelope)):
            return state.stop(reason)
        self.plan.hide_sketches(answers)
        return with_documents(state, self.plan, self.settings, ranks, missing, answers)

    def _first(self, fetch: Fetch) -> Asking[State | Answer]:
        """Make the first trip."""
        plan, search, settings = self.plan, self.plan.search, self.settings
        requests, samples = plan.requests(fetch, first=True), sample_requests(plan, settings)
        refusals = _REFUSED_MSEARCH if len(requests) + len(samples) > 1 else _REFUSED
        all_answers = yield from self.round_trips.first([*requests, *samples], refusals)
        if isinstance(all_answers, Answer):
            return all_answers
        answers, sampled = all_answers[: len(requests)], all_answers[len(requests) :]
        if (instead := (yield from self._after_trouble(answers, bool(samples)))) is not None:
            return instead
        plan.hide_sketches(answers[:1] if plan.is_split else answers)  # the last one of a split trip has no documents
        sketched = answers[-1].has_sketches(plan.field)
        if sketched and weighs(plan, settings) and settings.counts_document_frequency:
            yield from learn_frequency_table(search, settings, plan.sketch_reading, self.round_trips)
        state = with_more_hits(new_state(plan, settings), plan, settings, answers, fetch)
        if settings.items is not None:
            return state
        if {"missing"}.issuperset(state.stream.lacking):
            return (yield from without_sketches(plan, settings, self.round_trips, state))
        saw_a_sketch(search, settings)
        if not plan.sketch_reading.sketched and "" in state.stream.lacking:
            settings.known.learn(search.target, sketched=True)
        return (yield from with_group_count(state, plan, settings, self.round_trips, sampled))

    def _after_trouble(self, answers: list[Answer], sampled: bool) -> Asking[Answer | None]:
        """Return the final answer if the first trip failed and no other plan helps, None if its answers can be used.

        sampled: whether the trip had one more request, for a sample.
        """
        plan = self.plan
        unreadable = next((answer for answer in answers if answer.ok and not answer.has_hits), None)
        if unreadable is None and trouble(answers, like=answers[0]):
            if plan.is_split or sampled:
                raise DoesNotFit
            if plan.search.limits.apart:
                raise Replan(plan.as_found, State())
        if unreadable is not None or not answers[0].has_hits:
            refused = unreadable or answers[0]
            replan_if_learned(plan, State(), refused.complaint, self.settings)
            return (yield from after_refusal(plan, self.settings, refused))
        if answers[0].refusals:
            replan_if_learned(plan, State(), answers[0].complaint, self.settings)
            return (yield from after_partial_refusal(plan, self.settings, self.round_trips, answers[0]))
        return None

    def _next(self, state: State, fetch: Fetch) -> Asking[State]:
        """Make a later trip for more hits."""
        if state.partial:  # ranks of another answer, perhaps a complete one, differ from those of a partial answer
            return state.stop(_PARTIAL)
        anew = self.plan.search.one_window  # a longer window may have another order
        fetch = Fetch(0, fetch.start + fetch.size) if anew else fetch
        answers = yield from self.round_trips.later(self.plan.requests(fetch, first=False))
        if not (reason := trouble(answers, like=Answer(state.envelope))):
            if not self.plan.is_split:
                self.plan.hide_sketches(answers)
            if anew:
                state = replace(state, stream=Stream(shown=self.plan.shown, total=state.stream.total), documents={})
            state = with_more_hits(state, self.plan, self.settings, answers, fetch)
            check_distinct(state, self.settings)
            return state
        replan_if_learned(self.plan, state, answers[-1].complaint, self.settings)
        return state.stop(reason)
