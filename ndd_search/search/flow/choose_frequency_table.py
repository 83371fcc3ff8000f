"""Chooses the frequency table that all hits of a search are compared with: a given one, a stored one, or the list's.

A table that is stored in the companion index TABLES is read by each caller with one request an hour. Where there is
none, or the caller may not read it, a search counts a table in its own hits (`search_state.LISTED`). The companion
index holds one document for each searched name, sketch field and recipe, which `backfill` writes. Whoever may read it
learns which sketch values are common, and no document or id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from ndd_search.core.matching.document_frequency import count_in_list
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache import cache_key
from ndd_search.core.paging.stream import NO_HITS, Stream
from ndd_search.core.sketching.sketches import Lack, Sketch
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.flow.plan import Plan
from ndd_search.search.flow.round_trips import Asking, RoundTrips
from ndd_search.search.flow.search_state import LISTED, State
from ndd_search.search.rest.read_request import Request


def with_table(state: State, plan: Plan) -> State | None:
    """Return a state with the frequency table that it names, None if that table is nowhere."""
    if state.table in ("", LISTED):
        return state
    for table in (plan.settings.frequency_table, plan.settings.known.table(state.table), state.frequency_table):
        if isinstance(table, FrequencyTable) and table.digest == state.table:
            return replace(state, frequency_table=table)
    return None


def new_state(plan: Plan) -> State:
    """Return the state of a search that begins now, with the caller's current table."""
    given, name = plan.settings.frequency_table, ""
    table = given if isinstance(given, FrequencyTable) else None
    if given is not False and weighs(plan):
        known = plan.settings.known
        table = table or known.table(known.about(plan.search.target_of_caller).table)
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
    """Count the table of a stream's first `window` hits, so that no form of the total changes which hits are shown.

    found: the sketches that follow those of the stream.
    """
    window = plan.options.window
    first = stream.sketches[: stream.examined(window)] if stream.fetched else found[:window]
    return count_in_list(first, plan.settings.recipe)


_AGAIN = 3600.0  # seconds until a caller reads the stored table again
_AFTER_A_FAILURE = 60.0  # seconds until a request for it that failed is repeated


def learn_frequency_table(plan: Plan, round_trips: RoundTrips) -> Asking[None]:
    """Read the stored table if the search needs one, and the caller has not asked for it within the hour.

    Until there is an answer, other searches use the caller's former table. So do all until a failure is retried.
    """
    search, settings, known = plan.search, plan.settings, plan.settings.known
    caller, recipe, now = search.target_of_caller, settings.recipe, settings.clock()
    if settings.frequency_table is not True or now < known.about(caller).table_until or not weighs(plan):
        return
    known.learn(caller, table_until=now + _AFTER_A_FAILURE)
    request = reading(search.request, document_id(search.indexes, settings.sketch_field, recipe.id))
    (found,) = yield from round_trips.later([request])
    if found.whole:
        table = read_document(found.hits[0], recipe.id) if found.hits else None
        known.learn(caller, table=known.add_table(table), table_until=settings.clock() + _AGAIN)


TABLES = "ndd-tables"
VERSION = 1  # of the document
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


def document_id(target: str, field: SketchField, recipe: str) -> str:
    """Return the id of the document for a searched name: an index, alias, pattern, or several joined by commas."""
    return cache_key("table", named(target), field.name, recipe).hex()


def named(target: str) -> str:
    """Return a searched name in one form. target: as in a path, "/news,blogs" or "news,blogs"; "" for every index."""
    names = sorted(filter(None, unquote(target.lstrip("/")).split(",")))
    return ",".join(names) or "_all"


def document(target: str, field: SketchField, table: FrequencyTable) -> dict[str, Any]:
    return {
        "version": VERSION,
        "target": named(target),
        "field": field.name,
        "digest": table.digest,
        "table": table.to_dict(),
    }


def read_document(hit: Mapping[str, Any], recipe: str) -> FrequencyTable | None:
    """Return the table of a document, None if it has another version or recipe, or is damaged."""
    with suppress(*_MALFORMED):
        stored = hit["_source"]
        table = table_in(stored["table"], recipe) if stored["version"] == VERSION else None
        return table if table is not None and table.digest == stored["digest"] else None
    return None


def table_in(stored: Any, recipe: str) -> FrequencyTable | None:
    """Return the table of a recipe that is stored as JSON, None if it has another one, or is damaged."""
    with suppress(*_MALFORMED):
        table = FrequencyTable.from_dict(stored)
        return table if table.recipe == recipe else None
    return None


def reading(like: Request, id: str) -> Request:
    """Return the request for a document, to which a missing index is no error. like: of the caller."""
    body = {"query": {"ids": {"values": [id]}}, "size": 1}
    params = {"ignore_unavailable": "true", "allow_no_indices": "true"}
    return replace(like, method="POST", path=f"/{TABLES}/_search", params=params, body=body)
