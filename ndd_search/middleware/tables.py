"""Chooses the frequency table that all hits of a search are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from ndd_search.matching.document_frequency import count_in_list
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.counted_table import table_of
from ndd_search.middleware.plan import Plan
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import LISTED, State
from ndd_search.paging.stream import NO_HITS, Stream
from ndd_search.paging.windows import next_fetch
from ndd_search.sketching.sketches import Lack, Sketch


def with_table(state: State, plan: Plan, settings: Settings) -> State | None:
    """Return a state with the frequency table that it names, None if that table is no longer stored."""
    table: FrequencyTable | None = None
    if isinstance(settings.frequency_table, FrequencyTable):
        table = settings.frequency_table
    elif (counted := settings.known.table(plan.search.target, state.table)) is not None:
        table = counted.frequency_table
    needs_none = state.table in ("", LISTED)
    return state.comparing_with(table) if needs_none or (table is not None and table.digest == state.table) else None


def with_table_of_stream(cached: State, plan: Plan, settings: Settings) -> State | None:
    """Return a cached state with its own frequency table, None if it needs to be extended and the table is nowhere.

    The table may have been counted by another process, which stored it in the cache with the stream.
    """
    if (state := with_table(cached, plan, settings)) is not None:
        return state
    table = settings.memory.recall_table(cached.table)
    if table is None and next_fetch(cached.stream, plan.search.start, plan.search.size, plan.options) is not None:
        return None
    return cached.comparing_with(table)


def new_state(plan: Plan, settings: Settings) -> State:
    """Return the state of a search that begins now, with the caller's current table."""
    given, name = settings.frequency_table, ""
    table = given if isinstance(given, FrequencyTable) else None
    if given is not False and weighs(plan, settings):
        table = table or table_of(plan.search, settings)
        name = LISTED if table is None else table.digest
    return State(stream=Stream(shown=plan.shown) if plan.shown else NO_HITS, table=name, frequency_table=table)


def weighs(plan: Plan, settings: Settings) -> bool:
    """Return whether the search compares hits by how rare their sketch values are."""
    of_sketches = settings.items is None and settings.recipe.measure == "kmv"
    return of_sketches and plan.options.min_similarity == "auto"


def with_counted_table(state: State, plan: Plan, settings: Settings) -> State:
    """Return the state with its frequency table, which a cached state counts only when hits are added."""
    if state.table != LISTED or state.frequency_table is not None:
        return state
    return state.comparing_with(counted_in_list(state.stream, (), plan, settings))


def counted_in_list(stream: Stream, found: Sequence[Sketch | Lack], plan: Plan, settings: Settings) -> FrequencyTable:
    """Count the table of a stream's first window. found: the sketches that follow those of the stream."""
    window = plan.options.initial_window
    first = stream.sketches[: stream.examined(window)] if stream.fetched else found[:window]
    return count_in_list([one for one in first if not isinstance(one, str)], settings.recipe)
