"""Chooses the frequency table that all hits of a search are compared with, and counts one where there is none.

A frequency table reveals contents of documents, so callers share one only if they may read about the same documents. A
caller without a table first sends a probe for the ids of the sample's first documents. If they agree with those of
another caller, that caller's table is used, else the caller's own sample is counted. One such request at a time goes to
a target. Other searches continue with their former table, or with one counted in their own hits
(`search_state.LISTED`).

A table that is stored in the companion index TABLES comes first: it is read with one request, and used after the same
probe, so every process decides alike. Where it is missing, unreadable or of other documents, each process counts its
own. The companion index holds one document for each searched name, sketch field and recipe, which `backfill` writes.
Whoever may read it learns which sketch values are common, and no document or id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from ndd_search.core.matching.document_frequency import count_document_frequency, count_in_list
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache import cache_key
from ndd_search.core.paging.fill_page import next_fetch
from ndd_search.core.paging.stream import NO_HITS, Stream
from ndd_search.core.sketching.sketches import Lack, Sketch
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.flow.learned_targets import Counted, View
from ndd_search.search.flow.plan import Plan
from ndd_search.search.flow.round_trips import LATE, Asking, RoundTrips, trouble
from ndd_search.search.flow.search_state import LISTED, State
from ndd_search.search.rest.read_answer import Answer, Hit, window_limit
from ndd_search.search.rest.read_request import Request
from ndd_search.search.rest.wider_requests import SAMPLE, Reading, beside, sample_body


def with_table(state: State, plan: Plan) -> State | None:
    """Return a state with the frequency table that it names, None if that table is no longer stored."""
    table: FrequencyTable | None = None
    if isinstance(plan.settings.frequency_table, FrequencyTable):
        table = plan.settings.frequency_table
    elif (counted := plan.settings.known.table(plan.search.target, state.table)) is not None:
        table = counted.frequency_table
    needs_none = state.table in ("", LISTED)
    return (
        replace(state, frequency_table=table)
        if needs_none or (table is not None and table.digest == state.table)
        else None
    )


def with_table_of_stream(cached: State, plan: Plan) -> State | None:
    """Return a cached state with its own frequency table, None if it needs to be extended and the table is nowhere.

    The table may have been counted by another process, which stored it in the cache with the stream.
    """
    if (state := with_table(cached, plan)) is not None:
        return state
    table = plan.settings.memory.recall_table(cached.table)
    if table is None and next_fetch(cached.stream, plan.search.start, plan.search.size, plan.options) is not None:
        return None
    return replace(cached, frequency_table=table)


def new_state(plan: Plan) -> State:
    """Return the state of a search that begins now, with the caller's current table."""
    given, name = plan.settings.frequency_table, ""
    table = given if isinstance(given, FrequencyTable) else None
    if given is not False and weighs(plan):
        counted = _table_of(plan)
        table = table or (None if counted is None else counted.frequency_table)
        name = LISTED if table is None else table.digest
    return State(stream=Stream(shown=plan.shown) if plan.shown else NO_HITS, table=name, frequency_table=table)


def weighs(plan: Plan) -> bool:
    """Return whether the search compares hits by how rare their sketch values are."""
    of_sketches = plan.settings.items is None and plan.settings.recipe.measure == "kmv"
    return of_sketches and plan.options.min_similarity == "auto"


def with_counted_table(state: State, plan: Plan) -> State:
    """Return the state with its frequency table, which a cached state counts only when hits are added."""
    if state.table != LISTED or state.frequency_table is not None:
        return state
    return replace(state, frequency_table=counted_in_list(state.stream, (), plan))


def counted_in_list(stream: Stream, found: Sequence[Sketch | Lack], plan: Plan) -> FrequencyTable:
    """Count the table of a stream's first window. found: the sketches that follow those of the stream."""
    window = plan.options.initial_window
    first = stream.sketches[: stream.examined(window)] if stream.fetched else found[:window]
    return count_in_list([one for one in first if not isinstance(one, str)], plan.settings.recipe)


_AGAIN = 3600.0  # seconds until a table is counted again
_AFTER_A_FAILURE = 60.0  # seconds until a failed count is repeated


def _table_of(plan: Plan) -> Counted | None:
    """Return a caller's current table, None if there is none."""
    search, known = plan.search, plan.settings.known
    return known.table(search.target, known.of_caller(search.target_of_caller).table)


def learn_frequency_table(plan: Plan, round_trips: RoundTrips) -> Asking[None]:
    """Learn a frequency table if the search needs one, unless the caller has a fresh one or another caller is counting.

    A failure is retried after a minute; until then the caller's former table is used, if there is one.
    """
    search, known, now = plan.search, plan.settings.known, plan.settings.clock()

    def is_known() -> bool:
        table = _table_of(plan)
        return (table is not None and now < table.until) or now < known.of_caller(search.target_of_caller).count_again

    if plan.settings.frequency_table is not True or not weighs(plan) or is_known():
        return
    if not known.claim_count(search.target, search.target_of_caller, now):
        return
    try:
        if not is_known():  # another search may have counted it before the claim
            yield from _take_over_or_count(plan, round_trips)
    finally:
        known.learn(search.target, counting_until=0.0)


def _take_over_or_count(plan: Plan, round_trips: RoundTrips) -> Asking[None]:
    """Use the table of a caller with about the same view, or count a new one."""
    search, settings, known = plan.search, plan.settings, plan.settings.known
    now, recipe = settings.clock(), settings.recipe
    request = reading(search.request, document_id(search.indexes, settings.sketch_field, recipe.id))
    (found,) = yield from round_trips.later([request])
    stored = read_document(found.hits[0], recipe.id) if found.whole and found.hits else None
    others = [known.table(search.target, digest) for digest in known.about(search.target).tables]
    fresh = [one for one in others if one is not None and now < one.until]
    if stored is not None:
        fresh.insert(0, replace(stored, until=now + _AGAIN))
    used = sampled = None
    if fresh:
        sampled = yield from _sampled(plan, round_trips, HEAD, None)
        view = view_of(sampled.hits, sampled.total) if sampled.whole else None
        used = next((one for one in fresh if view is not None and one.view.is_about(view)), None)
    if used is None and (sampled is None or sampled.whole):
        sampled = yield from _sampled(plan, round_trips, SAMPLE, plan.sketch_reading)
        if sampled.whole:
            sketches = [one for one in sampled.sketches(plan.field, recipe) if not isinstance(one, str)]
            table = count_document_frequency(sketches, recipe)
            used = Counted(table, view_of(sampled.hits, sampled.total), now + _AGAIN)
    if used is not None:
        known.learn_of_caller(search.target_of_caller, table=known.add_table(search.target, used))
    elif sampled is not None and trouble([sampled], like=sampled) != LATE:  # when late, nothing was sent
        known.learn_of_caller(search.target_of_caller, count_again=settings.clock() + _AFTER_A_FAILURE)


def _sampled(plan: Plan, round_trips: RoundTrips, size: int, read: Reading | None) -> Asking[Answer]:
    """Return the answer to a request for a sample of `size` documents, fewer if an index allows no more."""
    search, settings, known = plan.search, plan.settings, plan.settings.known
    for _ in range(2):
        most = min(size, known.about(search.target).window_limit)
        request = beside(search, sample_body(settings.stored_sketches, most, read))
        (answer,) = yield from round_trips.later([replace(request, cut=None if read is None else read.sketches)])
        if answer.has_hits and not all("_id" in hit for hit in answer.hits):
            return Answer("not the answer to a search", HTTPStatus.BAD_GATEWAY)
        if not (limit := window_limit(answer.complaint)):
            break
        known.learn(search.target, window_limit=limit)
    return answer


TABLES = "ndd-tables"
VERSION = 1  # of the document
HEAD = 32  # documents of a sample by which the views of two callers are compared
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


def document_id(target: str, field: SketchField, recipe: str) -> str:
    """Return the id of the document for a searched name: an index, alias, pattern, or several joined by commas."""
    return cache_key("table", named(target), field.name, recipe).hex()


def named(target: str) -> str:
    """Return a searched name in one form. target: as in a path, "/news,blogs" or "news,blogs"; "" for every index."""
    names = sorted(filter(None, unquote(target.lstrip("/")).split(",")))
    return ",".join(names) or "_all"


def document(target: str, field: SketchField, table: Counted) -> dict[str, Any]:
    return {
        "version": VERSION,
        "target": named(target),
        "field": field.name,
        "digest": table.frequency_table.digest,
        "table": table.frequency_table.to_dict(),
        "view": {"first": sorted(table.view.first), "total": table.view.total},
    }


def read_document(hit: Mapping[str, Any], recipe: str) -> Counted | None:
    """Return the table of a document, None if it has another version or recipe, or is damaged."""
    try:
        stored = hit["_source"]
        if stored["version"] != VERSION:
            return None
        table = FrequencyTable.from_dict(stored["table"])
        if table.recipe != recipe or table.digest != stored["digest"]:
            return None
        return Counted(table, View(frozenset(map(str, stored["view"]["first"])), int(stored["view"]["total"])))
    except _MALFORMED:
        return None


def view_of(hits: list[Hit], total: int | None) -> View:
    """Return the view of a caller whose sample begins with these hits. Ids are hashed."""
    first = frozenset(cache_key(hit["_index"], hit["_id"]).hex() for hit in hits[:HEAD])
    return View(first, len(hits) if total is None else total)


def reading(like: Request, id: str) -> Request:
    """Return the request for a document, to which a missing index is no error. like: of the caller."""
    body = {"query": {"ids": {"values": [id]}}, "size": 1}
    params = {"ignore_unavailable": "true", "allow_no_indices": "true"}
    return replace(like, method="POST", path=f"/{TABLES}/_search", params=params, body=body)
