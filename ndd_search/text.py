"""Text to clean tokens.

A token is a run of letters, digits and the marks that belong to them; in scripts that are written without spaces
(Han, kana, Thai, Lao, Khmer, Myanmar) it is one character with its marks. Everything else separates tokens, except
what Unicode calls default ignorable (soft hyphens, joiners, bidi marks, variation selectors), which is left out.

Many texts are read at once: a table maps every code point to what becomes of it, so that a text costs one look-up a
code point. Only a text with marks that Unicode would compose or put into another order goes through `unicodedata`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.config import Recipe
from ndd_search.markup import strip_markup
from ndd_search.unicode_table import (
    ASCII,
    ASCII_SPACED,
    COMPOSES,
    DOT_ABOVE,
    IOTA_BELOW,
    MARK,
    MOST_MARKS,
    POINT,
    SINGLE,
    SPECIAL,
    Numbers,
    Places,
    code_point_table,
    code_points,
    combining_orders,
    composing_pairs,
    fold,
)

Points = npt.NDArray[np.uint8] | Numbers

_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_MOST_SWAPS = 3  # more disorder among the marks of one letter is rare


class Clean(NamedTuple):
    """Normalised texts one after the other, a separator before the first and after each.

    points:  code points, uint8 if all are ASCII, else uint32; 0 wherever tokens are separated.
    offsets: int64, shape (n + 1,): text i is points[offsets[i]:offsets[i + 1] - 1].
    """

    points: Points
    offsets: Places


def normalise(text: str, recipe: Recipe) -> str:
    """The text as it is cut into tokens: markup and URLs dealt with, NFKC, case folded, ignorable characters gone."""
    return fold(prepare(text, recipe))


def tokens(text: str, recipe: Recipe) -> list[str]:
    """The tokens of a text, in order."""
    return split(clean([prepare(text, recipe)], apart=True).points)


def prepare(text: str, recipe: Recipe) -> str:
    """The text without its markup and URLs, if the recipe says so; lines and sentences are still to be seen in it."""
    if recipe.markup == "html":
        text = strip_markup(text)
    return _URL.sub(" ", text) if recipe.urls == "drop" else text


def split(points: Points) -> list[str]:
    """The runs between separators."""
    text = points.tobytes().decode("ascii" if points.dtype == np.uint8 else "utf-32-le")
    return [run for run in text.split("\0") if run]


def clean(texts: Sequence[str], apart: bool) -> Clean:
    """Fold prepared texts and put 0 for everything that separates tokens.

    apart: also separate the tokens of scripts without spaces from each other.
    """
    joined = "\0".join(["", *texts, ""])
    if joined.isascii():
        return Clean(np.frombuffer(joined.encode("ascii").translate(ASCII), np.uint8), _offsets(texts))
    points, offsets = _look_up(texts, joined)
    if np.bitwise_or.reduce(points) & (MARK | COMPOSES):
        unsure = _order_marks(points, offsets)
        points, offsets = _compose(points, offsets)
        unsure |= _out_of_order(points, offsets)
        if unsure:
            folded = [fold(text) if i in unsure else text for i, text in enumerate(texts)]
            points, offsets = _look_up(folded, "\0".join(["", *folded, ""]))
            _order_marks(points, offsets)
            points, offsets = _compose(points, offsets)
    flags = np.bitwise_or.reduce(points)
    if flags & MARK:
        _settle_marks(points)
    if flags & SINGLE and apart:
        points, offsets = _set_apart(points, offsets)
    return Clean(points & POINT if flags > POINT else points, offsets)


def clean_short(text: str, apart: bool) -> Points:
    """The `points` of `clean` for one text, with the fewest steps."""
    if text.isascii():
        return np.frombuffer(f" {text} ".encode().translate(ASCII), np.uint8)
    points = code_point_table().points.take(code_points(f" {text} "))
    return points if np.bitwise_or.reduce(points) <= POINT else clean([text], apart).points


def join_short(text: str) -> Points:
    """The code points of one text with one space for every run of separators, and one before it."""
    if text.isascii():
        return np.frombuffer(b" ".join([b"", *text.encode().translate(ASCII_SPACED).split()]), np.uint8)
    return code_points(" ".join(["", *split(clean_short(text, apart=False))]))


def _offsets(texts: Sequence[str]) -> Places:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.concatenate(([1], np.cumsum(lengths + 1) + 1))


def _look_up(texts: Sequence[str], joined: str) -> tuple[Numbers, Places]:
    """The folded code points of texts with their flags (no longer SPECIAL), and the offsets of the texts."""
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
    return np.flatnonzero((points & flag) != 0)  # on numbers instead of truths it takes six times as long


def _owners(places: Places, offsets: Places) -> set[int]:
    """The texts that hold these places."""
    return set((np.searchsorted(offsets, places, "right") - 1).tolist()) if len(places) else set()


def _order_marks(points: Numbers, offsets: Places) -> set[int]:
    """Let neighbouring marks change places where Unicode wants it.

    Returns the texts that have too many in a row, or marks to be moved over the dot of an i: `fold` knows about them.
    """
    marks = _flagged(points, MARK)
    order = combining_orders().take(points[marks] & POINT)
    marks, order = marks[order > 0], order[order > 0]
    unsure = _owners(marks[MOST_MARKS:][marks[MOST_MARKS:] - marks[:-MOST_MARKS] == MOST_MARKS], offsets)
    for _ in range(_MOST_SWAPS):
        wrong = np.flatnonzero((order[:-1] > order[1:]) & (np.diff(marks) == 1))
        wrong = wrong[np.diff(wrong, prepend=-2) > 1]
        if not len(wrong):
            break
        places = marks[wrong]
        dots = ((points[places] & POINT) == DOT_ABOVE) & (points[places - 1] == ord("i"))
        unsure |= _owners(places[dots], offsets)
        for array, at in ((points, places), (order, wrong)):
            array[at], array[at + 1] = array[at + 1], array[at]
    return unsure


def _compose(points: Numbers, offsets: Places) -> tuple[Numbers, Places]:
    """Put together what NFC puts together, where the two stand side by side."""
    while len(second := _flagged(points, COMPOSES)):
        pairs = composing_pairs()
        first = points[second - 1] & POINT
        likely = pairs.is_first.take(first)
        second, first = second[likely], first[likely]
        keys = first.astype(np.uint64) << np.uint64(21) | points[second] & POINT
        found = np.searchsorted(pairs.keys, keys)
        found[found == len(pairs.keys)] = 0
        known = pairs.keys[found] == keys
        second, found = second[known], found[known]
        if not len(second):
            break
        free = np.diff(second, prepend=-1) > 1  # of three in a row the first two come first
        second, found = second[free], found[free]
        points[second - 1] = code_point_table().points[pairs.composed[found]]
        points = np.delete(points, second)
        offsets = offsets - np.searchsorted(second, offsets)
    return points, offsets


def _out_of_order(points: Numbers, offsets: Places) -> set[int]:
    """The texts with marks that must still change places, or may be composed over the head of another mark."""
    marks = _flagged(points, MARK)
    order = combining_orders().take(points[marks] & POINT)
    marks, order = marks[order > 0], order[order > 0]
    before = points[marks - 1] & POINT
    over = (combining_orders(tail=True).take(before) > order) | (order == IOTA_BELOW)
    over |= ((points[marks] & COMPOSES) != 0) & (combining_orders().take(before) > 0)
    return _owners(marks[over], offsets)


def _settle_marks(points: Numbers) -> None:
    """Marks share the fate of what they stand on: inside a token, alone with their letter, or separators."""
    marks = _flagged(points, MARK)
    first = np.diff(marks, prepend=-1) != 1
    bases = points[marks[first] - 1][np.cumsum(first) - 1]
    points[marks] = np.where(bases != 0, points[marks] | bases & SINGLE, 0)


def _set_apart(points: Numbers, offsets: Places) -> tuple[Numbers, Places]:
    """Put a separator between a token of one character and its neighbours."""
    inside = points != 0
    alone = (points & SINGLE) != 0
    new = np.zeros(len(points), np.bool_)
    new[1:] = inside[1:] & inside[:-1] & (alone[1:] | alone[:-1]) & ((points[1:] & MARK) == 0)
    places = np.cumsum(new, dtype=np.int64)
    places += np.arange(len(points), dtype=np.int64)
    spaced = np.zeros(places[-1] + 1, np.uint32)
    spaced[places] = points
    return spaced, np.append(places[offsets[:-1]], len(spaced))
