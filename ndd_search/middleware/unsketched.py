"""Detects targets without sketches, and keeps searches there cheap.

Whether a target holds sketches is learned from documents, so only the caller who found none is left alone. One request
per minute and target asks for any sketch, for all callers together. While some caller has found none, the first page of
another caller is requested as it was written, plus the sketches of its hits: no window and no second request. If one of
these hits has a sketch, the search is collapsed as usual.
"""

from __future__ import annotations

from http import HTTPStatus

from ndd_search.middleware.plan import Plan
from ndd_search.middleware.sending import Asking, RoundTrips
from ndd_search.middleware.settings import Settings
from ndd_search.rest.answers import Answer, Hit
from ndd_search.rest.request import Search
from ndd_search.rest.wider_requests import any_sketch, peek

_RELIED_ON = 3600.0  # seconds for which a target counts as having sketches after one was seen
_LEAST = 1.0  # least seconds between two requests that ask for any sketch, whatever `bypass_seconds` is


def has_sketches(search: Search, settings: Settings) -> bool:
    """Return whether any caller saw a sketch in the target within the last hour."""
    return settings.clock() < settings.known.about(search.target).sketched_until


def saw_a_sketch(search: Search, settings: Settings) -> None:
    """Remember that the target has sketches."""
    known, until = settings.known.about(search.target), settings.clock() + _RELIED_ON
    if known.bare_until or known.sketched_until < until - _RELIED_ON / 2:
        settings.known.learn(search.target, sketched_until=until, bare_until=0.0)


def look_for_sketches(search: Search, settings: Settings, round_trips: RoundTrips) -> Asking[None]:
    """Ask whether the caller sees any sketch in the target, unless a caller has asked recently."""
    now = settings.clock()
    if not settings.known.claim_probe(search.target, now, now + max(settings.bypass_seconds, _LEAST)):
        return
    (found,) = yield from round_trips.later([any_sketch(search, settings.sketch_field)])
    if not found.whole:
        return
    if found.hits:
        saw_a_sketch(search, settings)
        return
    until = settings.clock() + settings.bypass_seconds
    settings.known.learn_of_caller(search.target_of_caller, bypass_until=until)
    if not has_sketches(search, settings):
        settings.known.learn(search.target, bare_until=until)


def peeked(plan: Plan, settings: Settings, round_trips: RoundTrips) -> Asking[Answer | None]:
    """Return the caller's own first page if another caller found no sketch in the target and this page has none.

    Returns None if the search is to be collapsed as usual: a sketch was found, or the engine refused to read sketches.
    """
    search = plan.search
    if search.start or settings.clock() >= plan.learned.bare_until:
        return None
    answers = yield from round_trips.first([peek(search, plan.sketch_reading)], {HTTPStatus.BAD_REQUEST})
    answer = answers[0] if isinstance(answers, list) else answers
    if answer.status == HTTPStatus.BAD_REQUEST or (answer.has_hits and answer.refusals):
        return None
    if answer.has_hits and _has_sketches(answer.hits, settings):
        saw_a_sketch(search, settings)
        return None
    return answer


def _has_sketches(hits: list[Hit], settings: Settings) -> bool:
    found = settings.sketch_field.decode([hit.get("fields") or {} for hit in hits], settings.recipe)
    return any(not isinstance(one, str) or one != "missing" for one in found)
