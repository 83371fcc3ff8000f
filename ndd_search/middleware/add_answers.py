"""Adds the answers of the engine to the state of a search. Nothing here sends requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ndd_search.middleware.fetch_strategies import DoesNotFit, documents_of
from ndd_search.middleware.plan import Plan
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import LISTED, State
from ndd_search.middleware.tables import counted_in_list
from ndd_search.paging.records import presence
from ndd_search.paging.stream import Stream
from ndd_search.paging.windows import Fetch
from ndd_search.rest.answers import Answer, Hit, HitReader, drop_fields, envelope_after, envelope_of
from ndd_search.sketching.sketches import Lack, Sketch

_NO_NUMBERS = (
    "hits without stored numbers stand alone: run ndd-search backfill --numbers, or turn numbers_must_match off"
)


def reader_of(state: State, settings: Settings, found: Sequence[Sketch | Lack] = ()) -> HitReader:
    """Return a reader of the engine's hits. found: sketches of the hits after those of the state's stream."""
    start = state.stream.fetched
    return HitReader(settings.recipe, settings.sketch_field, state.frequency_table, found, start, settings.items)


def sketches_in(answer: Answer, settings: Settings) -> Sequence[Sketch | Lack]:
    """Return what `sketches_of` returns for the hits of an answer."""
    if settings.items is not None:
        return sketches_of(answer.hits, settings)
    return answer.sketches(settings.sketch_field, settings.recipe)


def sketches_of(hits: Sequence[Hit], settings: Settings) -> Sequence[Sketch | Lack]:
    """Return the sketch of each hit, or why it has none. With items an empty sketch says that a hit is compared."""
    if settings.items is not None:
        return presence(hits, reader_of(State(), settings), settings.items)
    return settings.sketch_field.decode([hit.get("fields") or {} for hit in hits], settings.recipe)


def with_more_hits(state: State, plan: Plan, settings: Settings, answers: Sequence[Answer], fetch: Fetch) -> State:
    """Return the state after a trip for more hits.

    answers: to `plan.requests(fetch, ...)`. Their hits are changed: they lose the sketches.
    Raises DoesNotFit if these documents do not belong to the stream.
    """
    overall, window = answers[0], answers[-1]  # one answer, unless documents or aggregations come apart from sketches
    hits, sketches = window.hits, sketches_in(window, settings)
    if state.table == LISTED:
        state = state.comparing_with(counted_in_list(state.stream, sketches, plan, settings))
    reader = reader_of(state, settings, sketches)
    _drop(hits, plan.field.read if plan.is_split else plan.sketch_fields)
    partial = any(one.partial for one in answers)
    asked = len(hits) if partial else fetch.size  # few hits of a partial answer do not mean that there are no more
    stream = state.stream.extend(hits, asked, reader, plan.options, total=overall.total)
    documents: dict[int, Hit] = {}
    if not plan.is_split:
        documents = dict(enumerate(hits, fetch.start))
    elif len(answers) > 1:
        within = max(0, fetch.size - plan.search.start)  # max_window may end before the page does
        documents = _documents(stream, plan, settings, plan.search.start, overall, within)
    lacks_numbers = plan.options.numbers_must_match and any(
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
        lasting=state.lasting and not partial and not any(one.cut_short for one in answers),
    )


def with_documents(
    state: State, plan: Plan, settings: Settings, ranks: set[int], ranges: Sequence[Fetch], answers: Sequence[Answer]
) -> State:
    """Return the state with the documents of ranks. answers: to the requests for these ranges.

    Raises DoesNotFit if the documents are not those that the sketches belong to, or one has two ranks.
    """
    documents = dict(state.documents)
    for fetch, answer in zip(ranges, answers, strict=True):
        documents.update(_documents(state.stream, plan, settings, fetch.start, answer))
    if not ranks <= documents.keys():
        raise DoesNotFit
    state = replace(state, documents=documents, envelope=envelope_after(state.envelope or {}, answers))
    check_distinct(state, settings)
    return state


def check_distinct(state: State, settings: Settings) -> None:
    """Raise DoesNotFit if one document has two ranks of the stream.

    Then the index has changed between two requests, and a document has moved to the rank of another one. A stream of
    sketches without ids does not show that.
    """
    ranks = [rank for rank in state.stream.ranks.tolist() if rank in state.documents]
    hits = [state.documents[rank] for rank in ranks]
    if len(set(reader_of(state, settings).identities(hits, ranks))) < len(ranks):
        raise DoesNotFit


def _drop(hits: Sequence[Hit], names: Sequence[str]) -> None:
    """Remove the fields that were fetched for the sketches from hits, in place. Most hits came without them."""
    for hit in hits:
        if "fields" in hit:
            drop_fields(hit, names)


def _documents(
    stream: Stream, plan: Plan, settings: Settings, start: int, answer: Answer, most: int | None = None
) -> dict[int, Hit]:
    """Return the documents of an answer by rank, without their sketches. most: number of documents, None for all."""
    hits, sketches = answer.hits, sketches_in(answer, settings)
    if most is not None and most < len(hits):
        hits, sketches = hits[:most], sketches[:most]
    found = documents_of(stream, start, hits, sketches)
    _drop(hits, plan.sketch_fields)
    return found
