"""Answers a search with the caller's own request where the page cannot be made."""

from __future__ import annotations

from dataclasses import replace

from ndd_search.middleware.page_answer import engine_page
from ndd_search.middleware.plan import Plan
from ndd_search.middleware.sending import Asking, Flow, RoundTrips
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.middleware.unsketched import has_sketches, look_for_sketches
from ndd_search.rest.answers import Answer, reason_of

NO_DOCUMENTS = "the documents to show could not be fetched, the page is the engine's own"
_WIDER = "the engine refused the wider request: "
_UNREADABLE = "the answer to the wider request is not the answer to a search"


def own_request(plan: Plan, settings: Settings, reason: str) -> Flow:
    """Send the caller's own request. reason: why the answer is degraded."""
    answer = yield plan.search.request
    return _degraded(answer, plan, settings, reason) if answer.has_hits else answer


def after_refusal(plan: Plan, settings: Settings, refused: Answer) -> Flow:
    """Send the caller's own request, after the engine has refused the wider one."""
    return own_request(plan, settings, _UNREADABLE if refused.ok else _WIDER + reason_of(refused.body))


def after_partial_refusal(
    plan: Plan, settings: Settings, round_trips: RoundTrips, answer: Answer
) -> Asking[Answer | None]:
    """Send the caller's own request, after some shards have refused the wider one, so that their hits are missing.

    Returns None if they refuse the caller's own request as well.
    """
    (own,) = yield from round_trips.later([plan.search.request])
    if not own.has_hits or len(own.refusals) >= len(answer.refusals):
        return None
    return _degraded(own, plan, settings, _WIDER + answer.refusals[0])


def without_sketches(plan: Plan, settings: Settings, round_trips: RoundTrips, state: State) -> Asking[State | Answer]:
    """Handle a first window without any sketch.

    Returns the engine's own page, or the state if the window is empty and its target has sketches.
    """
    search, empty = plan.search, not state.stream.fetched
    if not (empty and has_sketches(search, settings)):
        yield from look_for_sketches(search, settings, round_trips)
    if empty and has_sketches(search, settings):
        return state
    if plan.reading.sketched and not has_sketches(search, settings):
        settings.known.learn(search.target, sketched=False)  # the next request keeps the field in `_source`
        return (yield search.request)
    ranks = range(search.start, min(search.start + search.size, state.stream.fetched))
    if not state.documents.keys() >= set(ranks) or (search.one_window and not empty):
        return (yield search.request)
    return Answer(engine_page(plan, state, ranks), raw=state.raw)


def _degraded(answer: Answer, plan: Plan, settings: Settings, reason: str) -> Answer:
    degraded = settings.degrade(plan.search.request.path, reason)
    plan.hide_sketches_in(answer.body)
    return replace(answer, body={**answer.body, "ndd": {"degraded": degraded}})
