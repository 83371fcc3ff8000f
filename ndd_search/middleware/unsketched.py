"""Targets without sketches: how a client finds out, and what a search costs there.

Whether a target holds sketches is learnt from documents, so a caller who found none is left alone and no other caller
is. One request a minute and target asks for any sketch, whoever searches. The other callers pay no second request and
no window: while somebody found no sketch, a first page is asked for as the caller wrote it, with the sketches of its
hits; one sketch among them, and the search goes its usual way.
"""

from __future__ import annotations

from collections.abc import Generator
from http import HTTPStatus

from ndd_search.middleware.round_trips import RoundTrips
from ndd_search.middleware.settings import Settings
from ndd_search.rest.answers import Answer, Hit
from ndd_search.rest.request import Reading, Request, Search, any_sketch, peek

_RELIED_ON = 3600.0  # seconds for which a target in which a sketch was seen counts as one that has sketches
_LEAST = 1.0  # seconds between two requests that ask for any sketch, however small `bypass_seconds` is


def has_sketches(search: Search, settings: Settings) -> bool:
    """Whether somebody saw a sketch in the target within the last hour."""
    return settings.clock() < settings.known.about(search.target).sketched_until


def saw_a_sketch(search: Search, settings: Settings) -> None:
    """Remember that the target has sketches."""
    known, until = settings.known.about(search.target), settings.clock() + _RELIED_ON
    if known.bare_until or known.sketched_until < until - _RELIED_ON / 2:
        settings.known.learn(search.target, sketched_until=until, bare_until=0.0)


def look_for_sketches(search: Search, settings: Settings, round_trips: RoundTrips) -> Generator[Request, Answer, None]:
    """Ask whether the caller sees any sketch in the target, unless somebody has asked lately."""
    now = settings.clock()
    if not settings.known.may_probe(search.target, now, now + max(settings.bypass_seconds, _LEAST)):
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


def peeked(
    search: Search, settings: Settings, reading: Reading, round_trips: RoundTrips
) -> Generator[Request, Answer, Answer | None]:
    """The caller's own first page, where another caller found no sketch in the target and this page has none either.

    None where the search has to go its usual way: a sketch was found, or the engine refuses to read sketches.
    """
    if search.start or settings.clock() >= settings.known.about(search.target).bare_until:
        return None
    answers = yield from round_trips.first([peek(search, reading)], {HTTPStatus.BAD_REQUEST})
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
