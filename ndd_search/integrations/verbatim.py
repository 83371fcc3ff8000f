"""Passages that stand word for word in longer ones, and passages of one document that overlap.

Which passages may lie inside which is read from their sketches, in time that grows with their number and not with its
square. Whether they do is read from the texts. A passage of a few words inside one of many hundreds may be missed,
because the sketch of the longer one samples too few of its shingles; such a passage is shown on its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ndd_search.sketching.sketches import Sketch

_PROBES = 3  # smallest values of a sketch; a word cut in two at either end of a passage spoils one of them at most
_MOST_HOLDERS = 16  # longest passages that are looked at for each probe, however many share it
_SMALLEST_OVERLAP = 20  # characters; two texts may end and begin with the same few words by chance
_CLOSING = " .,;:!?…"
_NUMBER_GOES_ON = re.compile(r"[.,:/–-]\d|\s?[%‰]")
_NUMBER_BEGINS = re.compile(r"(?:\d[.,:/–]|(?<!\w)[-−+<>≤≥~])$")


@dataclass(frozen=True)
class Extract:
    """A stretch of a document. start: of its first character in the document, None where that is not known."""

    text: str
    start: int | None = None

    @property
    def end(self) -> int | None:
        """Behind its last character."""
        return None if self.start is None else self.start + len(self.text)


def normalised(text: str) -> str:
    """The text as `lies_inside` compares it: without regard to case and white space."""
    return " ".join(text.casefold().split())


def lies_inside(short: str, long: str) -> bool:
    """Whether a text stands in a longer one word for word, whole words and whole numbers at both ends; normalised."""
    short = short.rstrip(_CLOSING)
    at = long.find(short) if 0 < len(short) < len(long) else -1
    while at >= 0:
        if not _cut_off(long[max(at - 2, 0) : at], short, long[at + len(short) : at + len(short) + 3]):
            return True
        at = long.find(short, at + 1)
    return False


def possible_containers(sketches: Sequence[Sketch], lengths: Sequence[int]) -> dict[int, list[int]]:
    """For passages that may lie inside longer ones, the places of those, ascending.

    lengths: of the texts, in characters.
    A passage whose text lies inside another one shares its smallest values with it, as far as they are below the
    largest value of the other sketch.
    """
    ends = np.cumsum([len(sketch) for sketch in sketches])
    if not len(sketches) or not ends[-1]:
        return {}
    values = np.concatenate(sketches)
    starts = np.concatenate(([0], ends[:-1]))
    first = starts + np.arange(_PROBES)[:, None]
    wanted = np.sort(values[first[first < ends]])
    low = np.flatnonzero(values <= wanted[-1])  # the probes are small: most values of a sketch are above them
    place = np.searchsorted(wanted, values[low])
    held = (wanted[place] == values[low]) & (np.bincount(place, minlength=len(wanted))[place] > 1)
    if not held.any():
        return {}
    low = low[held]
    owners = np.searchsorted(ends, low, side="right")
    asks = (low - starts[owners] < _PROBES).tolist()
    held_by: dict[int, list[int]] = {}
    asked_by: dict[int, list[int]] = {}
    for value, owner, is_probe in zip(values[low].tolist(), owners.tolist(), asks, strict=True):
        held_by.setdefault(value, []).append(owner)
        if is_probe:
            asked_by.setdefault(owner, []).append(value)
    for value, holders in held_by.items():
        if len(holders) > _MOST_HOLDERS:
            held_by[value] = sorted(holders, key=lambda owner: -lengths[owner])[:_MOST_HOLDERS]
    possible = {}
    for owner, row in asked_by.items():
        met = {one for value in row for one in held_by[value] if lengths[one] > lengths[owner]}
        if met:
            possible[owner] = sorted(met)
    return possible


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
    if _glued(before[-1:], short[0]) or _glued(short[-1], after[:1]):
        return True
    if short[-1].isdigit() and _NUMBER_GOES_ON.match(after):
        return True
    return short[0].isdigit() and _NUMBER_BEGINS.search(before) is not None


def _glued(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word; in scripts without spaces every letter is one."""
    return left.isalnum() and right.isalnum() and not (_unspaced(left) and _unspaced(right))


def _unspaced(letter: str) -> bool:
    code = ord(letter)
    return 0x0E00 <= code <= 0x0EFF or 0x1000 <= code <= 0x109F or 0x1780 <= code <= 0x17FF or _east_asian(code)


def _east_asian(code: int) -> bool:
    return 0x2E80 <= code <= 0xA4CF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x3FFFF
