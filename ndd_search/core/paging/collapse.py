"""Deduplicates any ranked list of texts, mappings or objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from ndd_search.core.checks import check_page
from ndd_search.core.documents import text_of, value_of
from ndd_search.core.matching.document_frequency import count_in_list
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.fill_page import Fetch, Fetched, fetch_until_full, run
from ndd_search.core.paging.page import Page, slice_page
from ndd_search.core.paging.record_schema import SEEN_WITH_ITEMS, RecordSchema, check_schema, presence, record_of
from ndd_search.core.paging.stream import UNKNOWN, Shown, Stream
from ndd_search.core.presets import CollapseChanges, chosen
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.estimates import checked_sketch
from ndd_search.core.sketching.sketches import Lack, Sketch, or_empty, sketch_many
from ndd_search.core.text.numbers import number_signature
from ndd_search.core.text.tokens import tokens
from ndd_search.errors import InvalidDocument, InvalidSketch

Text = str | Sequence[str] | Callable[[Any], str | None]

_LOOKED_AT = 10_000  # characters of a text up to which it is searched for a common word
_GLANCE = 100  # characters whose words are looked for at first
_FORGED = (
    "hits with a sketch like that of a text with which they share no word: {}, the first is hit {}; they are shown, as "
    "such texts are written to hide others: give the recipe a key"
)


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

    hits:     best first: texts, or mappings or objects whose text is found by `text`.
    size, from_: the page, as positions in the deduplicated list. As many hits are examined as the page needs, all of
              them if necessary: `max_window` applies to searches only.
    text:     a field, several fields, or a callable(hit); not needed for texts. A hit without text stands alone.
    sketches: one for each hit, if they exist already; `text` is then read for numbers_must_match only.
    recipe:   the recipe, or its id, by which texts are sketched or `sketches` were made; None for that of a
              `preset`, else Recipe().
    frequency_table: for min_similarity="auto": a table of the whole collection, made by
              ndd_search.core.matching.document_frequency.count_document_frequency; True counts
              one in at most `window` hits, evenly spaced in the list; False uses no table.
    seen:     what was shown before: hits in the form of `hits`, texts, or sketches. Hits that resemble one of them are
              listed in `info.seen` (see seen_mode). An item without text is not compared.
    items:    an Items schema: hits are compared by their fields, and not by a text. Hits are then mappings, objects, or
              hits of an engine, whose `_source` is read. min_similarity is a probability, "auto" that of the schema.
    options, changes: CollapseOptions, and single options by name (min_similarity=0.8), also preset="messages".
    Texts up to 10,000 characters that share no word are shown apart, whatever their sketches say, and `info.warnings`
    says so: without a key of the recipe, a text can be written to have the sketch of another one.
    Raises InvalidDocument if no hit has a text, ValueError or TypeError for an invalid setting.
    """
    began = perf_counter()
    if isinstance(hits, str | bytes | Mapping):
        raise TypeError(f"hits must be a list of hits, got one {type(hits).__name__}")
    check_page(size, from_)
    check_schema(items)
    ranked, seen = list(hits), list(seen)
    options, recipe = chosen(options, recipe, changes)
    if items is not None and seen:
        raise ValueError(SEEN_WITH_ITEMS)
    if options.facets:
        raise ValueError("facets count aggregations of an engine, which a list has not: leave them out")
    options = replace(options, max_window=max(options.max_window, len(ranked)))  # the whole list is in memory
    if sketches is not None and len(sketches) != len(ranked):
        raise ValueError(f"{len(ranked)} hits came with {len(sketches)} sketches: give one for each hit, in order")
    reader = _ListReader(recipe, text, sketches, None if isinstance(frequency_table, bool) else frequency_table, items)

    def fetch(request: Fetch) -> Fetched:
        return Fetched(ranked[request.start : request.start + request.size], len(ranked))

    def filled(stream: Stream) -> Stream:
        return run(fetch_until_full(stream, from_, size, reader, options), fetch)

    try:
        weighs = options.min_similarity == "auto" and reader.recipe.measure == "kmv" and items is None
        if frequency_table is True and weighs:
            reader = reader.counted(ranked, options.window)
        stream = filled(Stream(shown=reader.shown(seen)))
        if forged := _joined_without_a_word(stream, reader):
            stream = filled(Stream(shown=stream.shown, may_join=reader.share_a_word))
        stream = replace(stream, exhausted=stream.fetched == len(ranked))
    except InvalidSketch:  # it names a position within one batch; _check names the rank
        _check(() if sketches is None else sketches, reader.recipe.k)
        raise
    if set(stream.lacking) == {"missing"} and not any(map(reader.has_text, ranked[len(stream.hits) :])):
        if items is not None:
            missing = f"no field of {', '.join(items.paths)}"
            raise InvalidDocument(f"none of {len(ranked)} hits", missing, "name the fields of hits in the schema")
        raise InvalidDocument(
            f"none of {len(ranked)} hits", f"no text under {text!r}", "pass text='FIELD' or a callable"
        )
    page = slice_page(stream, from_, size, reader, options)
    warnings = (*page.info.warnings, *([_FORGED.format(len(forged), forged[0])] if forged else ()))
    return replace(page, info=replace(page.info, warnings=warnings, took=perf_counter() - began))


def _joined_without_a_word(stream: Stream, reader: _ListReader) -> list[int]:
    """Return the ranks of hits that share no word with the hit, or the item of `seen`, that their sketch resembles."""
    if not reader.compares_words:
        return []
    hits, leader, shown = stream.hits, stream.leader.tolist(), {one.item: one.hit for one in stream.shown}
    by_fields = dict(stream.shares)
    pairs = [(at, hits[of]) for at, of in enumerate(leader) if at != of and at not in by_fields]
    pairs += [(at, shown[item]) for at, item, _ in stream.seen]
    apart = {at for at, other in pairs if not reader.share_a_word(other, hits[at])}
    return [int(stream.ranks[at]) for at in sorted(apart)]


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` of the places 0..count-1, evenly spaced."""
    number = min(count, most)
    return [place * count // number for place in range(number)]


@dataclass(frozen=True, eq=False)
class _ListReader:
    recipe: Recipe
    text: Text | None
    given: Sequence[npt.ArrayLike] | None
    frequency_table: FrequencyTable | None
    items: RecordSchema | None = None
    known: Mapping[int, Sketch | Lack] = field(default_factory=dict)  # rank -> sketch, computed earlier
    words: dict[str, frozenset[str]] = field(default_factory=dict)  # of texts, as far as needed

    def counted(self, hits: Sequence[Any], most: int) -> _ListReader:
        """Return a reader with a frequency table counted in at most `most` of the hits."""
        ranks = evenly(len(hits), most)
        found = self.sketches([hits[rank] for rank in ranks], ranks)
        frequency_table = count_in_list([one for one in found if not isinstance(one, str)], self.recipe)
        return replace(self, frequency_table=frequency_table, known=dict(zip(ranks, found, strict=True)))

    def sketches(self, hits: Sequence[Any], ranks: Sequence[int]) -> list[Sketch | Lack]:
        fresh = [(hit, rank) for hit, rank in zip(hits, ranks, strict=True) if rank not in self.known]
        computed = iter(self._compute([hit for hit, _ in fresh], [rank for _, rank in fresh]))
        return [self.known[rank] if rank in self.known else next(computed) for rank in ranks]

    def shown(self, items: Iterable[Any]) -> tuple[Shown, ...]:
        """Return items that were shown before, with their sketches."""
        shown = []
        for item, one in enumerate(items):
            if isinstance(one, list | tuple | np.ndarray):
                shown.append(Shown(item, UNKNOWN, checked_sketch(one, self.recipe.k).astype(np.int32)))
            elif (text := self._text(one)) is not None:
                shown.append(Shown(item, one, sketch_many([text], self.recipe)[0]))
        return tuple(shown)

    def _compute(self, hits: Sequence[Any], ranks: Sequence[int]) -> list[Sketch | Lack]:
        if self.items is not None:
            return presence(hits, self, self.items)
        if self.given is not None:
            return [or_empty(np.asarray(self.given[rank])) for rank in ranks]
        texts = [self._text(hit) for hit in hits]
        found = iter(sketch_many((text for text in texts if text is not None), self.recipe))
        return [Lack.MISSING if text is None else or_empty(next(found)) for text in texts]

    def identities(self, hits: Sequence[Any], ranks: Sequence[int]) -> Sequence[int]:
        return ranks  # equal values at two places of the list are two hits

    def value(self, hit: Any, field: str) -> Any:
        if self.items is not None and isinstance(hit, dict):
            if isinstance(source := hit.get("_source"), dict):
                hit = source
            if field in hit:
                return hit[field]
        return None if isinstance(hit, str) else value_of(hit, field)

    def text_of(self, hit: Any) -> str | None:
        return None if self.text is None and not isinstance(hit, str) else self._text(hit)

    def numbers(self, hit: Any) -> int | None:
        text = self._text(hit)
        return None if text is None else number_signature(text, self.recipe)

    @property
    def compares_words(self) -> bool:
        """Whether hits whose texts share no word are no near-duplicates, whatever their sketches say.

        Shingles of words are equal only where words are, unless somebody who knows the hash looked for others. Of a
        recipe with a key nobody knows it. Sketches that came with the hits may be of other texts.
        """
        is_sketched_here = self.given is None and self.items is None
        return is_sketched_here and self.recipe.kind == "words" and not self.recipe.fingerprint

    def share_a_word(self, one: Any, other: Any) -> bool:
        """Return whether two hits have a word in common, as the recipe sees words; True if a text is missing or long.

        Words from the middle of one text, looked for between spaces of the other, nearly always tell that they have.
        """
        text, of_other = self._text(one), self._text(other)
        if text is None or of_other is None or max(len(text), len(of_other)) > _LOOKED_AT:
            return True
        if text not in self.words or of_other not in self.words:
            middle = len(text) // 2  # the beginning may be a frame
            for word in text[middle : middle + _GLANCE].split()[1:-1]:
                if word.isalnum() and f" {word} " in of_other:
                    return True
        return not self._words(text).isdisjoint(self._words(of_other))

    def _words(self, text: str) -> frozenset[str]:
        if text not in self.words:
            self.words[text] = frozenset(tokens(text, self.recipe))
        return self.words[text]

    def has_text(self, hit: Any) -> bool:
        """Return whether the hit has a text, or with items a field that they read."""
        if self.items is not None:
            return bool(record_of(hit, self, self.items))
        return self._text(hit) is not None

    def _text(self, hit: Any) -> str | None:
        if hit is UNKNOWN:
            return None
        if callable(self.text):
            return self.text(hit)
        if isinstance(hit, str):
            return hit
        if self.text is None:
            raise TypeError(f"a hit is a {type(hit).__name__}: pass text='FIELD' or a callable that returns its text")
        return text_of(hit, [self.text] if isinstance(self.text, str) else self.text)


def _check(sketches: Sequence[npt.ArrayLike], k: int) -> None:
    """Raise InvalidSketch with the rank of the first invalid sketch."""
    for rank, sketch in enumerate(sketches):
        try:
            checked_sketch(sketch, k)
        except InvalidSketch as error:
            raise InvalidSketch(f"hit {rank}: {error.args[0]}") from None
