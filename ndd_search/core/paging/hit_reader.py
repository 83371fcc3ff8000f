"""Reads the texts, sketches and fields of hits in memory: texts, mappings or objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

import numpy as np
import numpy.typing as npt

from ndd_search.core.document_fields import has_no_names, text_of, value_of
from ndd_search.core.matching.document_frequency import count_in_list
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.record_schema import RecordSchema, presence, record_of
from ndd_search.core.paging.stream import UNKNOWN, Shown, Stream
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import fields_in
from ndd_search.core.sketching.estimate_similarity import checked_sketch
from ndd_search.core.sketching.fits_text import misfits
from ndd_search.core.sketching.sketches import Lack, Sketch, or_empty, sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.core.text.numbers import differing_in_numbers, hashed_words_and_numbers, number_signature
from ndd_search.core.text.tokens import tokens

Text = str | Sequence[str] | Callable[[Any], str | None]
Where = str | Callable[[Any], Any]

NO_WORD = "no word in common"
COMPARED_FORGED = 20  # hits that share no word with the one above them; those after them are not compared at all
FORGED = (
    "hits with a sketch like that of a text with which they share no word: {}, the first is hit {}; they are shown, as "
    "such texts are written to hide others: give the recipe a key"
)
_NO_NAMES = (
    "a hit is a {} of values without names: make a mapping of it, as dict(zip(names, hit)), or pass text= a callable"
)
STALE = (
    "hits with the sketch of an earlier text: {}, the first is hit {}; their texts decide: store the sketch anew, or "
    "none, whenever a text changes"
)
_LOOKED_AT = 10_000  # characters of a text up to which it is searched for a common word
_GLANCE = 100  # characters whose words are looked for at first
_FIELD = SketchField()
_NUMBERS, _WORDS = "numbers of the text", "words, and numbers between them"
_NONE = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class Earlier:
    """A hit that a page before has shown, as a cursor keeps it. fields: those that guards compare."""

    id: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class HitReader:
    """Reads hits in memory (see stream.Reader).

    given:  the sketch of each hit by its rank; None if hits hold them, or have none.
    id, sketch: where the id and the stored sketch of a hit are; None for hits without.
    """

    recipe: Recipe
    text: Text | None = None
    given: Sequence[npt.ArrayLike] | None = None
    frequency_table: FrequencyTable | None = None
    items: RecordSchema | None = None
    id: Where | None = None
    sketch: Where | None = None
    known: Mapping[int, Sketch | Lack] = field(default_factory=dict)  # rank -> sketch, computed earlier
    words: dict[str, frozenset[str]] = field(default_factory=dict)  # of texts, as far as needed

    def __post_init__(self) -> None:
        if self.text is not None and not callable(self.text):
            object.__setattr__(self, "text", fields_in("text", self.text))

    def counted(self, hits: Sequence[Any], ranks: Sequence[int]) -> Self:
        """Return a reader with a frequency table counted in the hits with these ranks."""
        found = self.sketches([hits[rank] for rank in ranks], ranks)
        return replace(
            self, frequency_table=count_in_list(found, self.recipe), known=dict(zip(ranks, found, strict=True))
        )

    def without(self, ranks: Iterable[int]) -> HitReader:
        """Return a reader to which the hits at some ranks have no sketch, so that each of them is shown."""
        return replace(self, known={**self.known, **dict.fromkeys(ranks, Lack.EMPTY)})

    def sketches(self, hits: Sequence[Any], ranks: Sequence[int]) -> list[Sketch | Lack]:
        fresh = [(hit, rank) for hit, rank in zip(hits, ranks, strict=True) if rank not in self.known]
        computed = iter(self._compute([hit for hit, _ in fresh], [rank for _, rank in fresh]))
        return [self.known[rank] if rank in self.known else next(computed) for rank in ranks]

    def shown(self, items: Iterable[Any]) -> tuple[Shown, ...]:
        """Return items that were shown before, with their sketches."""
        shown = []
        for item, one in enumerate(items):
            if isinstance(one, np.ndarray) or (isinstance(one, list | tuple) and has_no_names(one)):
                shown.append(Shown(item, UNKNOWN, checked_sketch(one, self.recipe.k).astype(np.int32)))
            elif (found := self._of_hits([one])[0]) is not Lack.MISSING or self.identity(one):
                shown.append(Shown(item, one, _NONE if isinstance(found, Lack) else found))
        return tuple(shown)

    def stale(self, stream: Stream, start: int) -> dict[int, Sketch | Lack]:
        """Return the sketch of the text of each hit that holds another one, by rank.

        start: index of the first hit that is compared. Those that hide or are hidden come first (see `misfits`), and
               hits whose sketch is known otherwise are not compared.
        """
        if self.sketch is None or self.text is None or self.items is not None:
            return {}
        hits, ranks = stream.hits[start:], stream.ranks[start:].tolist()
        grouped = stream.grouped_ranks
        order = sorted(range(len(hits)), key=lambda at: ranks[at] not in grouped)
        fresh = [at for at in order if ranks[at] not in self.known]
        right = misfits(self.stored(hits), fresh, lambda places: [self._text(hits[at]) for at in places], self.recipe)
        return {ranks[at]: sketch for at, sketch in right.items()}

    def _compute(self, hits: Sequence[Any], ranks: Sequence[int]) -> list[Sketch | Lack]:
        if isinstance(self.text, tuple) or self.items is not None:
            for hit in filter(has_no_names, hits):
                raise TypeError(_NO_NAMES.format(type(hit).__name__))
        if self.items is not None:
            return presence(hits, self, self.items)
        if self.given is not None:
            return [or_empty(np.asarray(self.given[rank])) for rank in ranks]
        return self._of_hits(hits)

    def _of_hits(self, hits: Sequence[Any]) -> list[Sketch | Lack]:
        """Return the sketch that each hit holds, else that of its text."""
        known = self.stored(hits)
        lacks = [isinstance(one, Lack) and one != Lack.EMPTY for one in known]
        texts = [self._text(hit) if lack else None for hit, lack in zip(hits, lacks, strict=True)]
        found = iter(sketch_many((text for text in texts if text is not None), self.recipe))
        return [one if text is None else or_empty(next(found)) for one, text in zip(known, texts, strict=True)]

    def stored(self, hits: Sequence[Any]) -> Sequence[Sketch | Lack]:
        """Return the sketch that each hit holds, or why it has none."""
        if self.sketch is None:
            return [Lack.MISSING] * len(hits)
        return stored_sketches([member(hit, self.sketch) for hit in hits], self.recipe)

    def identities(self, hits: Sequence[Any], ranks: Sequence[int]) -> Sequence[Hashable]:
        """Return the id of each hit, its rank where it has none: equal values at two places of a list are two hits."""
        if self.id is None:
            return ranks
        return [self.identity(hit) or rank for hit, rank in zip(hits, ranks, strict=True)]

    def identity(self, hit: Any) -> str:
        """Return the id of a hit as text, "" if it has none."""
        if isinstance(hit, Earlier):
            return hit.id
        found = None if self.id is None else member(hit, self.id)
        return "" if found is None else repr(found)

    def value(self, hit: Any, field: str) -> Any:
        if isinstance(hit, Earlier):
            return hit.fields.get(field)
        if self.items is not None and isinstance(hit, dict):
            if isinstance(source := hit.get("_source"), dict):
                hit = source
            if field in hit:
                return hit[field]
        found = None if isinstance(hit, str) else value_of(hit, field)
        return str(found) if isinstance(found, date | Decimal | UUID) else found  # as JSON would hold it

    def text_of(self, hit: Any) -> str | None:
        return None if self.text is None and not isinstance(hit, str) else self._text(hit)

    def numbers(self, hit: Any) -> int | None:
        if isinstance(hit, Earlier):
            return hit.fields.get(_NUMBERS)
        text = self._text(hit)
        return None if text is None else number_signature(text, self.recipe)

    def compared(self, hit: Any, options: CollapseOptions) -> dict[str, Any]:
        """Return what is compared of a hit beside its sketch, for `Earlier`."""
        of_items = self.items.paths if self.items is not None else ()
        compared = (*options.same_fields, *options.seconds_apart, *options.group_by, *options.most_per)
        names = dict.fromkeys((*compared, *of_items))
        found = {name: value for name in names if (value := self.value(hit, name)) is not None}
        words = self._words_and_numbers(hit) if options.min_similarity == "auto" else None
        if options.same_numbers:
            found[_NUMBERS] = self.numbers(hit)
        return found if words is None else {**found, _WORDS: words}

    def apart(self, options: CollapseOptions) -> Callable[[Any, Any], str] | None:
        """Return what tells why two hits are no near-duplicates, whatever their sketches say; None if nothing does."""
        weighs = options.min_similarity == "auto"
        if self.items is not None or not (weighs or self.compares_words):
            return None

        differ = differing_in_numbers(self.recipe)

        def differ_in_numbers(one: Any, other: Any) -> bool:
            if isinstance(one, Earlier):
                before, now = one.fields.get(_WORDS), self._words_and_numbers(other)
                return isinstance(before, list) and now is not None and before[:1] == now[:1] and before != now
            text, of_other = self.text_of(one), self.text_of(other)
            return bool(text and of_other and differ(text, of_other))

        def why(one: Any, other: Any) -> str:
            if self.compares_words and not self.share_a_word(one, other):
                return NO_WORD
            return "a difference in numbers or signs alone" if weighs and differ_in_numbers(one, other) else ""

        return why

    def _words_and_numbers(self, hit: Any) -> list[int] | None:
        text = self.text_of(hit)
        return None if text is None else hashed_words_and_numbers(text, self.recipe)

    @property
    def compares_words(self) -> bool:
        """Whether hits whose texts share no word are no near-duplicates, whatever their sketches say.

        Shingles of words are equal only where words are, unless somebody who knows the hash looked for others. Of a
        recipe with a key nobody knows it. Sketches that came with the hits may be of other texts.
        """
        is_sketched_here = self.given is None and self.items is None and self.sketch is None
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

    def absent_texts(self, hits: Sequence[Any]) -> list[str]:
        """Return which of several fields with the text no hit has."""
        names = () if self.text is None or callable(self.text) or len(self.text) == 1 else self.text
        return [name for name in names if hits and all(self.value(hit, name) is None for hit in hits)]

    def _text(self, hit: Any) -> str | None:
        if hit is UNKNOWN or isinstance(hit, Earlier):
            return None
        if callable(self.text):
            return self.text(hit)
        if isinstance(hit, str):
            return hit
        if self.text is None:
            if self.sketch is not None:
                return None
            remedy = "pass text='FIELD' or a callable that returns its text" if hit is not None else "leave it out"
            remedy = "decode it" if isinstance(hit, bytes) else remedy
            raise TypeError(f"a hit is {type(hit).__name__}, not a text: {remedy}")
        return text_of(hit, self.text)


def by_texts(
    stream: Stream,
    fill: Callable[[Stream, HitReader], Stream],
    reader: HitReader,
    options: CollapseOptions,
    forged: set[int],
    stale: set[int],
) -> Stream:
    """Return the stream with the hits that `fill` adds, as texts and not their sketches alone decide.

    forged: the ranks of hits known to share no word with the one above them; further ones are added. Those after the
            first COMPARED_FORGED get no sketch, so that the work is bounded.
    stale: the ranks of hits that hold the sketch of another text are added; the sketch of their text decides.
    """
    filled, apart = fill(replace(stream, apart=None), reader), reader.apart(options)
    start = len(stream.hits)
    while right := reader.stale(filled, start):
        reader = replace(reader, known={**reader.known, **right})
        stale.update(right)
        filled = fill(replace(stream, apart=None), reader)
    if apart is None or not (wrong := _joined(filled, apart, start)):
        return replace(filled, apart=stream.apart)
    found = {rank for rank, why in wrong if why == NO_WORD}
    forged |= found
    reader = reader.without(found - set(sorted(forged)[:COMPARED_FORGED]))
    return fill(replace(stream, apart=apart), reader)


def _joined(stream: Stream, apart: Callable[[Any, Any], str], start: int) -> list[tuple[int, str]]:
    """Return the ranks of hits whose sketch joined them to a hit, or an item of `seen`, and what speaks against it.

    start: number of hits that were decided before.
    """
    hits, leader, shown = stream.hits, stream.leader.tolist(), {one.item: one.hit for one in stream.shown}
    by_fields = dict(stream.shares)
    pairs = [(at, hits[leader[at]]) for at in range(start, len(hits)) if leader[at] != at and at not in by_fields]
    pairs += [(at, shown[item]) for at, item, _ in stream.seen if at >= start]
    found = {at: why for at, other in pairs if (why := apart(other, hits[at]))}
    return [(int(stream.ranks[at]), why) for at, why in found.items()]


def member(hit: Any, where: Where) -> Any:
    """Return what a hit has in a field, or what a callable returns for it; a text has no fields."""
    if callable(where):
        return where(hit)
    return None if isinstance(hit, str) else value_of(hit, where)


def stored_sketches(found: Sequence[Any], recipe: Recipe) -> Sequence[Sketch | Lack]:
    """Return stored sketches, or why one cannot be compared.

    found: of each hit its values, ascending, of this recipe; the object that `with_sketches` stores, which names its
           recipe; or None.
    """
    if not any(one is not None for one in found):
        return [Lack.MISSING] * len(found)
    decoded = _FIELD.decode([_as_stored(one, recipe) for one in found], recipe)
    empty = [not isinstance(one, Mapping) and one is not None and len(one) == 0 for one in found]
    return [Lack.EMPTY if nothing else one for one, nothing in zip(decoded, empty, strict=True)]


def _as_stored(one: Any, recipe: Recipe) -> dict[str, Any]:
    values, made_by = _FIELD.read
    if one is None:
        return {}
    if isinstance(one, Mapping):
        return {"fields": {values: one.get("sketch"), made_by: [one.get("recipe")]}}
    listed = one.tolist() if isinstance(one, np.ndarray) else list(one)
    return {"fields": {values: listed, made_by: [recipe.id]}}
