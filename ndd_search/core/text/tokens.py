"""Convert texts to normalised tokens.

A token is a run of letters, digits and their combining marks; in scripts without spaces (Han, kana, Thai, Lao, Khmer,
Myanmar) it is one character with its marks. All other characters separate tokens, except Unicode's default ignorable
characters (soft hyphens, joiners, bidi marks, variation selectors), which are removed.

Many texts are processed at once: a table maps each code point to its folded form, one look-up for each code point. Only
a text with marks that may have to be composed or reordered is normalised with `unicodedata`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.core.recipe import Recipe
from ndd_search.core.text.mail import own_words
from ndd_search.core.text.markup import strip_markup
from ndd_search.core.text.unicode_tables import (
    ASCII,
    COMPOSES,
    MARK,
    ORDERED,
    POINT,
    SINGLE,
    SPECIAL,
    Numbers,
    Places,
    code_point_table,
    code_points,
    fold,
    unfolded_classes,
)

Points = npt.NDArray[np.uint8] | Numbers

_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)


class Clean(NamedTuple):
    """Normalised texts one after the other, with a separator before the first and after each.

    points:  code points, uint8 if all are ASCII, else uint32; 0 is a separator. If tokens can be adjacent, uint32 with
             the flags SINGLE and MARK, from which `find_tokens` finds the boundaries.
    offsets: int64, shape (n + 1,): text i is points[offsets[i]:offsets[i + 1] - 1].
    flags:   all flags that occur in points.
    """

    points: Points
    offsets: Places
    flags: int


def normalise(text: str, recipe: Recipe) -> str:
    """Return the text after `prepare` and `fold`, as it is split into tokens."""
    return fold(prepare(text, recipe))


def tokens(text: str, recipe: Recipe) -> list[str]:
    """Return the tokens of a text, in order."""
    return split(clean([prepare(text, recipe)], apart=True).points)


def words_at(text: str) -> Places:
    """Return where the tokens of a text are, before folding: shape (n, 2), the start and the end of each.

    A character that folding turns into several tokens, such as a fraction, is one word with its neighbours.
    """
    if text.isascii():
        points: Points = np.frombuffer(f" {text} ".encode().translate(ASCII), np.uint8)
        return _runs(points).reshape(-1, 2)
    points = unfolded_classes()[code_points(f" {text} ")]
    if b"\1" in _pairs_of_kinds(points).translate(_UNSETTLED):
        _settle_marks(points)
    return find_tokens(points, int(np.bitwise_or.reduce(points))).reshape(-1, 2)


def are_one_word(before: str, here: str) -> bool:
    """Return whether two neighbouring characters belong to one token. Either may be "", which belongs to none."""
    return bool(before and here) and words_at(before + here).tolist() == [[0, 2]]


def prepare(text: str, recipe: Recipe) -> str:
    """Return the text without markup, quotes and URLs that the recipe removes. Line breaks and punctuation are kept."""
    if recipe.markup == "html":
        text = strip_markup(text)
    if recipe.markup == "mail":
        text = own_words(text)
    return _URL.sub(" ", text) if recipe.urls == "drop" else text


def split(points: Points) -> list[str]:
    """Return the tokens as texts."""
    if points.dtype == np.uint8:
        return points.tobytes().decode("ascii").replace("\0", " ").split()
    points = np.concatenate(([0], points, [0]))
    edges = (find_tokens(points, int(np.bitwise_or.reduce(points))) + 1).tolist()
    text = (points & POINT).astype("<u4").tobytes().decode("utf-32-le")
    return [text[first:last] for first, last in zip(edges[::2], edges[1::2], strict=True)]


def split_each(texts: Sequence[str], apart: bool) -> list[list[str]]:
    """Return the tokens of each prepared text; see `clean`."""
    points, offsets, flags = clean(texts, apart)
    if flags & SINGLE:  # tokens can be adjacent
        return [split(points[first:end]) for first, end in pairwise(offsets.tolist())]
    points = np.where(points, points, ord(" "))
    points[offsets - 1] = ord("\n")
    whole = points.astype("<u4").tobytes().decode("utf-32-le")
    return [line.split() for line in whole.split("\n")[1:-1]]


def find_tokens(points: Points, flags: int) -> Places:
    """Return for each token in turn the position before it and its last position.

    points: as in `Clean`, with a separator before the first and after the last token. flags: all that occur in points.
    """
    return _between(_pairs_of_kinds(points)) if flags & SINGLE else _runs(points)


def _runs(points: Points) -> Places:
    inside = points.astype(np.bool_)
    edges: Places = (inside[1:] != inside[:-1]).nonzero()[0]
    return edges


def _between(pairs: bytes) -> Places:
    begins = np.frombuffer(pairs.translate(_BEGINS), np.bool_).nonzero()[0]
    edges = np.empty(2 * len(begins), np.int64)
    edges[::2], edges[1::2] = begins, np.frombuffer(pairs.translate(_ENDS), np.bool_).nonzero()[0]
    return edges


def _pairs_of_kinds(points: Points) -> bytes:
    """Return a byte for each two neighbouring code points: 16 * the kind of the first + the kind of the second.

    The kind is 0 for a separator, else the sum of 1 and the flags that are set, as _SINGLE and _MARK.
    """
    kinds = (points >> _KIND).astype(np.uint8)
    kinds |= points.astype(np.bool_)
    return (kinds[:-1] << _FOUR | kinds[1:]).tobytes()


_KIND, _FOUR = np.uint32(28), np.uint8(4)
_SINGLE, _MARK = (int(flag >> _KIND) for flag in (SINGLE, MARK))


def _where(holds: Callable[[int, int], object]) -> bytes:
    """Return a table for `bytes.translate`: 1 for each pair of kinds for which `holds` is true, else 0."""
    return bytes(bool(holds(pair >> 4, pair & 15)) for pair in range(256))


def _are_apart(before: int, here: int) -> bool:
    return not (before and here) or bool((before | here) & _SINGLE and not here & _MARK)


_BEGINS = _where(lambda before, here: here and _are_apart(before, here))
_ENDS = _where(lambda before, here: before and _are_apart(before, here))
# A mark whose SINGLE flag differs from the one before it, or that follows a separator.
_UNSETTLED = _where(lambda before, here: here & _MARK and (not before or (before ^ here) & _SINGLE))


def clean(texts: Sequence[str], apart: bool) -> Clean:
    """Fold prepared texts and replace every separator by 0.

    apart: whether to keep the flags that separate the tokens of scripts without spaces.
    """
    joined = "\0".join(["", *texts, ""])
    if joined.isascii():
        folded_bytes = bytearray(joined, "ascii").translate(ASCII)  # faster than bytes.translate
        return Clean(np.frombuffer(folded_bytes, np.uint8), _offsets(texts), 0)
    points, offsets = _look_up(texts, joined)
    if marked := _owners(_flagged(points, ORDERED | COMPOSES), offsets):
        folded = [fold(text) if i in marked else text for i, text in enumerate(texts)]
        points, offsets = _look_up(folded, "\0".join(["", *folded, ""]))
    points &= POINT | MARK | SINGLE if apart else POINT | MARK
    flags = int(np.bitwise_or.reduce(points))
    if flags & MARK and b"\1" in _pairs_of_kinds(points).translate(_UNSETTLED):
        _settle_marks(points)
    if not flags & SINGLE:
        points &= POINT
    return Clean(points, offsets, flags)


def _offsets(texts: Sequence[str]) -> Places:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.concatenate(([1], np.cumsum(lengths + 1) + 1))


def _look_up(texts: Sequence[str], joined: str) -> tuple[Numbers, Places]:
    """Return the folded code points of texts with their flags, SPECIAL ones replaced, and the offsets of the texts."""
    table = code_point_table()
    points, offsets = table.points.take(code_points(joined)), _offsets(texts)
    places = _flagged(points, SPECIAL)
    if not len(places):
        return points, offsets
    which = points[places] & POINT
    lengths = table.lengths[which]
    counts = np.ones(len(points), np.int64)
    counts[places] = lengths
    spelt = np.repeat(points, counts)
    moved = np.concatenate(([0], np.cumsum(lengths - 1)))
    for j in range(lengths.max()):
        some = lengths > j
        spelt[places[some] + moved[:-1][some] + j] = table.pool[table.starts[which[some]] + j]
    return spelt, offsets + moved[np.searchsorted(places, offsets)]


def _flagged(points: Numbers, flag: np.uint32) -> Places:
    return np.flatnonzero((points & flag) != 0)  # six times as fast as flatnonzero of integers


def _owners(places: Places, offsets: Places) -> set[int]:
    """Return the indexes of the texts that contain these positions."""
    return set((np.searchsorted(offsets, places, "right") - 1).tolist()) if len(places) else set()


def _settle_marks(points: Numbers) -> None:
    """Give marks the SINGLE flag of their base character, in place. Marks after a separator become separators."""
    marks = _flagged(points, MARK)
    first = np.ones(len(marks), np.bool_)
    np.not_equal(marks[1:] - 1, marks[:-1], out=first[1:])
    bases = points[marks[first] - 1][np.add.accumulate(first, dtype=np.int64) - 1]
    points[marks] = np.where(bases != 0, points[marks] & ~SINGLE | bases & SINGLE, 0)
