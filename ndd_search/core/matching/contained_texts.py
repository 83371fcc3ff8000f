"""Passages that stand word for word in longer ones, and passages of one document that overlap.

The sketches give the pairs that are possible, in time that grows with the number of passages and not with its square.
The texts of these pairs are then compared. A passage of a few words inside one of many hundreds may be missed, because
the sketch of the longer one samples too few of its shingles; such a passage is shown on its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ndd_search.core.matching.shared_sketch_values import partners
from ndd_search.core.matching.sketch_rows import Ranks, rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import VALUES, Sketch
from ndd_search.core.text.tokens import are_one_word

_PROBES = 8  # smallest values of a sketch that are looked up in other sketches
_SPOILT = 2  # of them may be missing in the longer text; of lines and sentences, which end elsewhere there, more
_MOST_HOLDERS = 16  # longest passages that are looked at for each probe, however many share it
_HEAD = 40  # characters of a text that are looked for first
_SMALLEST_OVERLAP = 20  # characters; two texts may end and begin with the same few words by chance
_CLOSING = " .,;:!?…"
_NUMBER_GOES_ON = re.compile(r"[.,:/–-]\d|\s?[%‰]")
_NUMBER_BEGINS = re.compile(r"(?:\d[.,:/–]|(?<!\w)[-−+<>≤≥~])$")


class Extract(NamedTuple):
    """A stretch of a document. start: of its first character in the document, None where that is not known."""

    text: str
    start: int | None = None

    @property
    def end(self) -> int | None:
        """Behind its last character."""
        return None if self.start is None else self.start + len(self.text)


def normalised(text: str) -> str:
    """The text as `lies_inside` compares it: without regard to case and white space."""
    folded = text.casefold()
    if folded.isprintable() and "  " not in folded:  # single spaces are its only white space
        return folded.strip(" ")
    return " ".join(folded.split())


def lies_inside(short: str, long: str) -> bool:
    """Whether a text stands in a longer one word for word, whole words and whole numbers at both ends; normalised."""
    short = short.rstrip(_CLOSING)
    return len(short) < len(long) and place_of(short, long) >= 0


def place_of(short: str, long: str, start: int = 0) -> int:
    """Return where a text stands in another one in that way, at `start` or behind; -1 if it does not."""
    short = short.rstrip(_CLOSING)
    at = _find(short, long, start) if short else -1
    while at >= 0 and _cut_off(long[max(at - 2, 0) : at], short, long[at + len(short) : at + len(short) + 3]):
        at = _find(short, long, at + 1)
    return at


def _find(short: str, long: str, start: int = 0) -> int:
    """As long.find(short, start), which prepares a table of a short text of some hundred characters first."""
    at = long.find(short[:_HEAD], start)
    while at >= 0 and not long.startswith(short, at):
        at = long.find(short[:_HEAD], at + 1)
    return at


def possible_containers(sketches: Sequence[Sketch], lengths: Sequence[int], recipe: Recipe) -> dict[int, list[int]]:
    """Return for texts that may stand in longer ones the places of those, ascending.

    lengths: of the texts, in characters.
    The shingles of a text inside a longer one are shingles of the longer one. So its smallest values are in the longer
    sketch, as far as they are not above the largest value there. A longer text is possible if its sketch holds nearly
    all of the _PROBES smallest values that it should hold. For each of these values, only the longest texts that hold
    it are looked at.
    """
    spoilt = _SPOILT if recipe.kind in ("words", "characters") else _PROBES
    rows, sizes, count = rows_of(sketches, recipe.k), np.array(lengths, np.int64), len(lengths)
    limits = np.where(rows.lengths < recipe.k, VALUES, rows.largest)
    owner = np.repeat(np.arange(count), rows.lengths)
    probe = np.flatnonzero(np.arange(len(owner)) - rows.offsets[owner] < _PROBES)
    probes, which = np.unique(rows.values[probe], return_inverse=True)
    found = set[tuple[int, int]]()
    keys, values = _and_none(owner * (VALUES + 1) + rows.values), _and_none(rows.values)
    at = np.searchsorted(probes, rows.values)
    held = np.flatnonzero(_and_none(probes)[at] == rows.values)
    held = held[np.lexsort((owner[held], -sizes[owner[held]], at[held]))]  # the longest text that holds a probe first
    begin = np.searchsorted(at[held], np.arange(len(probes) + 1))
    for holder, of in partners(begin[which], np.minimum(np.diff(begin), _MOST_HOLDERS)[which]):
        met = owner[probe[of]] * count + owner[held[holder]]
        shorter, longer = np.divmod(np.unique(met), max(count, 1))
        shorter, longer = (one[sizes[longer] > sizes[shorter]] for one in (shorter, longer))
        nth = np.arange(_PROBES) + np.zeros((len(shorter), 1), np.int64)
        smallest = values[np.where(nth < rows.lengths[shorter, None], rows.offsets[shorter, None] + nth, -1)]
        expected = (smallest >= 0) & (smallest <= limits[longer, None])
        wanted = longer[:, None] * (VALUES + 1) + smallest
        shared = (expected & (keys[np.searchsorted(keys[:-1], wanted)] == wanted)).sum(1)
        possible = (shared > 0) & (expected.sum(1) - shared <= spoilt)
        found.update(zip(shorter[possible].tolist(), longer[possible].tolist(), strict=True))
    containers: dict[int, list[int]] = {}
    for place, other in sorted(found):
        containers.setdefault(place, []).append(other)
    return containers


def _and_none(values: Ranks | Sketch) -> Ranks:
    """Some values, and behind them one that is none of them."""
    return np.append(values, -1)


def joined(one: Extract, other: Extract) -> Extract | None:
    """Two overlapping stretches of one document as one, None when they do not overlap.

    Where both know where they start, the overlap has to be there and hold the same characters in both. Otherwise the
    end of one has to be the beginning of the other, by 20 characters or more.
    """
    if one.start is not None and other.start is not None:
        first, second = (one, other) if one.start <= other.start else (other, one)
        return _joined_at(first, second, second.start - first.start)  # type: ignore[operator]
    for first, second in ((one, other), (other, one)):
        at = first.text.find(second.text[:_SMALLEST_OVERLAP])
        while 0 <= at <= len(first.text) - _SMALLEST_OVERLAP:
            if (found := _joined_at(first, second, at)) is not None:
                return found
            at = first.text.find(second.text[:_SMALLEST_OVERLAP], at + 1)
    return None


def _joined_at(first: Extract, second: Extract, at: int) -> Extract | None:
    """Two stretches, the second of which begins `at` characters into the first."""
    overlap = min(len(first.text) - at, len(second.text))
    if overlap <= 0 or first.text[at : at + overlap] != second.text[:overlap]:
        return None
    start = first.start
    if start is None and second.start is not None:
        start = second.start - at
    return Extract(first.text + second.text[overlap:], start)


def _cut_off(before: str, short: str, after: str) -> bool:
    """Whether a text begins or ends in the middle of a word or number of what stands around it."""
    if are_one_word(before[-1:], short[0]) or are_one_word(short[-1], after[:1]):
        return True
    if short[-1].isdigit() and _NUMBER_GOES_ON.match(after):
        return True
    return short[0].isdigit() and _NUMBER_BEGINS.search(before) is not None
