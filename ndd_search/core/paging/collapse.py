"""Deduplicates any ranked list of texts, mappings or objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Unpack

import numpy.typing as npt

from ndd_search.core.matching.frequency_table import FrequencyTable, table_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.fill_page import Fetch, Fetched, fetch_until_full
from ndd_search.core.paging.hit_reader import FORGED, HitReader, Text, by_texts
from ndd_search.core.paging.page import Page, slice_page
from ndd_search.core.paging.record_schema import SEEN_WITH_ITEMS, RecordSchema, check_schema
from ndd_search.core.paging.stream import Stream
from ndd_search.core.presets import CollapseChanges, chosen
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import check_page, hits_in
from ndd_search.core.sketching.estimate_similarity import checked_sketch
from ndd_search.core.text.printable import many
from ndd_search.errors import InvalidDocument, InvalidSketch


def collapse(  # noqa: PLR0913 - all settings of a page in one call
    hits: Iterable[Any],
    *,
    size: int = 10,
    from_: int = 0,
    text: Text | None = None,
    sketches: Sequence[npt.ArrayLike] | None = None,
    recipe: Recipe | str | None = None,
    frequency_table: FrequencyTable | bool = True,
    seen: Iterable[Any] = (),
    items: RecordSchema | None = None,
    options: CollapseOptions | None = None,
    **changes: Unpack[CollapseChanges],
) -> Page:
    """Collapse the near-duplicates of a ranked list and return one page of the result.

    hits:     best first: texts, or mappings, rows of a database or objects whose text is found by `text`.
    size, from_: the page, as positions in the deduplicated list. As many hits are examined as the page needs, all of
              them if necessary or with members="all": `max_window` applies to searches only.
    text:     a field, several fields, or a callable(hit); not needed for texts. A hit without text stands alone.
    sketches: one for each hit, if they exist already; `text` is then read for the guard numbers only.
    recipe:   the recipe, or its id, by which texts are sketched or `sketches` were made; None for that of a
              `preset`, else Recipe().
    frequency_table: for min_similarity="auto": a table of the whole collection, made by
              ndd_search.core.matching.document_frequency.count_document_frequency; True counts
              one in at most `window` hits, evenly spaced in the list; False uses no table.
    seen:     what was shown before: hits in the form of `hits`, texts, or sketches. Hits that resemble one of them are
              listed in `info.seen` (see `mode`). An item without text is not compared.
    items:    an Items schema: hits are compared by their fields, and not by a text. Hits are then mappings, objects, or
              hits of an engine, whose `_source` is read. min_similarity is a probability, "auto" that of the schema.
    options, changes: CollapseOptions, and single options by name (min_similarity=0.8), also preset="messages".
    Texts up to 10,000 characters that share no word are shown apart, whatever their sketches say, and `info.warnings`
    says so: without a key of the recipe, a text can be written to have the sketch of another one. With
    min_similarity="auto", texts up to 640 characters that differ in numbers alone are shown apart, too, but for
    numbers of an edge at their start ("UPDATE 2 - ").
    Raises InvalidDocument if no hit has a text, ValueError or TypeError for an invalid setting.
    """
    began = perf_counter()
    check_page(size, from_)
    check_schema(items)
    ranked, seen = hits_in("hits", hits), hits_in("seen", seen)
    options, recipe = chosen(options, recipe, changes)
    if items is not None and seen:
        raise ValueError(SEEN_WITH_ITEMS)
    if options.facets:
        raise ValueError("facets count aggregations of an engine, which a list has not: leave them out")
    counted = evenly(len(ranked), options.window)
    if len(ranked) > options.max_window:  # the whole list is in memory
        options = replace(options, max_window=len(ranked))
    if options.members == "all":
        options = replace(options, window=options.max_window)
    if sketches is not None and len(sketches) != len(ranked):
        raise ValueError(f"give one sketch for each hit, in order: got {len(sketches)} for {len(ranked)}")
    reader = HitReader(recipe, text, sketches, table_of(frequency_table), items)
    try:
        if frequency_table is True and is_counted(reader, options):
            reader = reader.counted(ranked, counted)
        page = page_of_list(ranked, size, from_, reader, options, seen)
    except InvalidSketch:  # it names a position within one batch; _check names the rank
        _check(() if sketches is None else sketches, reader.recipe.k)
        raise
    if page.info.compares_none and not any(map(reader.has_text, ranked[page.info.examined :])):
        lacking = "no field of " + ", ".join(items.paths) if items is not None else f"no text under {text!r}"
        remedy = "pass text='FIELD' or a callable" if items is None else "name the fields of hits in the schema"
        raise InvalidDocument(f"none of {many(len(ranked), 'hit')}", lacking, remedy)
    absent = [f"no hit has the field {name!r} of its text: check its spelling" for name in reader.absent_texts(ranked)]
    warnings = (*page.info.warnings, *absent)
    return replace(page, info=replace(page.info, warnings=warnings, took=perf_counter() - began))


def is_counted(reader: HitReader, options: CollapseOptions) -> bool:
    """Return whether a decision about hits asks a frequency table."""
    return options.min_similarity == "auto" and reader.recipe.measure == "kmv" and reader.items is None


def page_of_list(
    ranked: Sequence[Any],
    size: int,
    from_: int,
    reader: HitReader,
    options: CollapseOptions,
    seen: Sequence[Any] = (),
    arranged: Callable[[Stream], Stream] = lambda stream: stream,
) -> Page:
    """Return a page of a list that is in memory; max_window is at least as long.

    arranged: puts the hits of the list in another order, when it is known which of them are near-duplicates.
    """
    forged = set[int]()

    def fetch(request: Fetch) -> Fetched:
        return Fetched(ranked[request.start : request.start + request.size], len(ranked))

    def fill(stream: Stream, reader: HitReader) -> Stream:
        return fetch_until_full(stream, from_, size, reader, options, fetch)

    stream = by_texts(Stream(shown=reader.shown(seen)), fill, reader, options, forged, set())
    stream = arranged(replace(stream, exhausted=stream.fetched == len(ranked)))
    page = slice_page(stream, from_, size, reader, options)
    told = (FORGED.format(len(forged), min(forged)),) if forged else ()
    return replace(page, info=replace(page.info, warnings=(*page.info.warnings, *told)))


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` of the places 0..count-1, evenly spaced."""
    number = min(count, most)
    return [place * count // number for place in range(number)]


def _check(sketches: Sequence[npt.ArrayLike], k: int) -> None:
    """Raise InvalidSketch with the rank of the first invalid sketch."""
    for rank, sketch in enumerate(sketches):
        try:
            checked_sketch(sketch, k)
        except InvalidSketch as error:
            raise InvalidSketch(f"hit {rank}: {error.args[0]}") from None
