"""When the page is the engine's own: it refused the wider request, or no hit has a sketch.

Whether a target holds sketches is learned from documents, so only the caller who found hits and no sketch is left
alone. A search without hits says nothing, and a write through the client may bring sketches: after it no caller is left
alone. One request per minute and target asks for any sketch, for all callers together.
"""

from __future__ import annotations

from dataclasses import replace

from ndd_search.search.flow.client_settings import Settings
from ndd_search.search.flow.plan import Plan
from ndd_search.search.flow.round_trips import Asking, Finished, Flow, RoundTrips
from ndd_search.search.flow.search_state import State
from ndd_search.search.rest.read_answer import Answer, without_fields
from ndd_search.search.rest.read_request import Search
from ndd_search.search.rest.wider_requests import any_sketch

NO_DOCUMENTS = "the documents to show could not be fetched, the page is the engine's own"
WIDER = "the engine refused the wider request: "
TOO_LATE = "no page was made within time_budget, this one is the engine's own"
UNREADABLE = "the answer to the wider request is not the answer to a search"
_NO_SKETCH = (
    "no hit has a sketch: run ndd-search backfill, which searches notice within a minute; doctor says what is missing"
)
_LEAST = 1.0  # least seconds between two requests that ask for any sketch, whatever is set


def own_request(plan: Plan, reason: str) -> Flow:
    """Send the caller's own request. reason: why the answer is degraded."""
    answer = yield plan.search.request
    return degraded(answer, plan, reason) if answer.has_hits else answer


def no_sketch(settings: Settings, path: str) -> str:
    """Return that no hit has a sketch, and what to do. path: of the search."""
    patterns = settings.indexes.sketched_beside(path.partition("/_search")[0])
    unmatched = f"; no index of the search matches a pattern with `text` ({', '.join(patterns)})" if patterns else ""
    return _NO_SKETCH + unmatched


def as_it_is(answer: Answer, search: Search, settings: Settings) -> Answer:
    """Return an answer without a block `ndd`; with the reason if the search asked to be collapsed."""
    if not search.changes or not answer.has_hits or not answer.hits or "ndd" in answer.body:
        return answer
    reason = no_sketch(settings, search.request.path)
    return replace(answer, body={**answer.body, "ndd": {"degraded": reason, "warnings": [reason]}})


def without_sketches(plan: Plan, round_trips: RoundTrips, state: State) -> Asking[State]:
    """Handle a first window without any sketch.

    Returns the state if the window is empty and its target has sketches, else raises Finished with the engine's page.
    """
    search, empty = plan.search, not state.stream.fetched
    if not (empty and plan.has_sketches):
        yield from look_for_sketches(plan, round_trips, has_hits=not empty)
    if empty and plan.has_sketches:
        return state
    if not empty and plan.reading.sketched and not plan.has_sketches:
        plan.settings.known.learn(search.target, sketched=False)  # the next request keeps the field in `_source`
        raise Finished((yield search.request))
    ranks = range(search.start, min(search.start + search.size, state.stream.fetched))
    is_read = state.documents.keys() >= set(ranks) if ranks else not plan.leaves_unread
    if not is_read or (search.limits.bounded and not empty):
        raise Finished((yield search.request))
    hits = [without_fields(state.documents[rank], plan.added_fields) for rank in ranks]
    body = dict(state.envelope or {})
    body["hits"] = {**body["hits"], "hits": hits}
    raise Finished(Answer(search.filtered(body), raw=state.raw))


def degraded(answer: Answer, plan: Plan, reason: str) -> Answer:
    """Return the answer to the caller's own request, with the reason why it is no page of ours."""
    reason = plan.settings.degrade(plan.search.request.path, reason)
    plan.filter.clean(answer.body)
    return replace(answer, body={**answer.body, "ndd": {"degraded": reason}})


def look_for_sketches(plan: Plan, round_trips: RoundTrips, has_hits: bool) -> Asking[None]:
    """Ask whether the caller sees any sketch in the target, unless a caller has asked recently.

    A caller who sees none is left alone for a minute; so is one whose hits have none, if another just saw none at all.

    has_hits: whether the search has any. Without hits, the target may only be empty, and nothing is learned of it.
    """
    search, settings = plan.search, plan.settings
    now, known, writes = settings.clock(), settings.known, settings.known.writes
    if now >= known.about(search.target).bare_until:  # else another caller has found none
        if now < known.about(search.target).probe_again:
            return
        known.learn(search.target, probe_again=now + max(settings.bypass_seconds, _LEAST))
        (found,) = yield from round_trips.later([any_sketch(search, plan.field)])
        if not found.whole:
            return
        if found.hits:
            known.saw_sketch(search.target, settings.clock())
            return
        if has_hits and not plan.has_sketches:
            known.learn(search.target, bare_until=settings.clock() + settings.bypass_seconds)
    if has_hits:
        until = settings.clock() + settings.bypass_seconds
        known.learn(search.target_of_caller, bypass_until=until, writes=writes)
        settings.degrade(search.request.path, no_sketch(settings, search.request.path))
