"""Convert texts to normalised tokens.

A token is a run of letters, digits and their combining marks; in scripts without spaces (Han, kana, Thai, Lao, Khmer,
Myanmar) it is one character with its marks. Signs that carry meaning, as in C++, -5 and 10 %, count, too (see
`text.signs`). All other characters separate tokens, except those that folding removes (see `unicode_tables.fold`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.core.recipe import Recipe
from ndd_search.core.text.mail import own_words
from ndd_search.core.text.markup import strip_markup
from ndd_search.core.text.signs import Kinds, settled
from ndd_search.core.text.unicode_tables import (
    MARK,
    PLUS,
    SEPARATOR,
    SINGLE,
    Numbers,
    Places,
    code_points,
    fold,
    kinds_of_folded,
    kinds_of_unfolded,
)

_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_SIGN = re.compile("[-+#<>$%]")  # of ASCII; texts without need no tables
_MAY_COUNT = re.compile(r"[+#<>]|-(?![^\W\d_])")
_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)
_BESIDE = np.zeros(1, np.uint8)  # a SEPARATOR


class Tokens(NamedTuple):
    """The tokens of some texts, in order.

    points: uint32, the code points of all tokens, one after the other. lengths: of each token, in code points.
    counts: number of tokens of each text.
    """

    points: Numbers
    lengths: Places
    counts: Places


def normalise(text: str, recipe: Recipe) -> str:
    """Return the text after `prepare` and `fold`, as it is split into tokens."""
    return fold(prepare(text, recipe))


def tokens(text: str, recipe: Recipe) -> list[str]:
    """Return the tokens of a text, in order."""
    return split(prepare(text, recipe), apart=True)


def words_at(text: str) -> Places:
    """Return where the tokens of a text are, before folding: shape (n, 2), the start and the end of each.

    A character that folding turns into several tokens, such as a fraction, is one word with its neighbours.
    """
    if text.isascii() and not _SIGN.search(text):
        inside = np.frombuffer(f" {text} ".encode().translate(_ASCII), np.uint8) != ord(" ")
        places: Places = np.flatnonzero(inside[1:] != inside[:-1]).reshape(-1, 2)
        return places
    points = code_points(text)
    return _places(kinds_of_unfolded()[points], points, apart=True)


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


def split(text: str, apart: bool) -> list[str]:
    """Return the tokens of a prepared text. apart: whether each character of a script without spaces is a token."""
    if text.isascii() and not _SIGN.search(text):
        return text.encode().translate(_ASCII).decode().split()
    folded = fold(text)
    points = code_points(folded)
    return [folded[start:end] for start, end in _places(kinds_of_folded()[points], points, apart).tolist()]


def without_idle_signs(folded: str) -> str:
    """Return a folded text with a space for each of the signs + # - < > that does not count (see `text.signs`)."""
    if not _MAY_COUNT.search(folded):
        return folded.replace("-", " ")
    points = code_points(folded)
    kinds = kinds_of_folded()[points]
    counts = settled(np.concatenate((_BESIDE, kinds, _BESIDE)), np.concatenate((_BESIDE, points, _BESIDE)))[1:-1]
    shown = np.where((kinds >= PLUS) & (counts == SEPARATOR), np.uint32(ord(" ")), points)
    return shown.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def find_tokens(texts: Sequence[str]) -> Tokens:
    """Return the tokens of prepared texts, each character of a script without spaces as one."""
    folded = list(map(fold, texts))
    points = code_points("\0".join([*folded, ""]))  # with a separator after each text
    starts, ends = _places(kinds_of_folded()[points], points, apart=True).T
    texts_end = np.cumsum([len(text) + 1 for text in folded], dtype=np.int64)
    lengths = ends - starts
    return Tokens(points[runs(starts, lengths)], lengths, np.diff(np.searchsorted(starts, texts_end), prepend=0))


def runs(starts: Places, lengths: Places) -> Places:
    """Return start, start + 1, ... start + length - 1 for each of some runs, one after the other."""
    within: Places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return within + np.repeat(starts, lengths)


def starts_of_runs(ascending: npt.NDArray[Any]) -> Places:
    """Return the places of numbers that differ from the one before."""
    new = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)


def sorted_distinct(*parts: npt.NDArray[Any]) -> Places:
    """Return the distinct numbers of some arrays, ascending; `unique` of numpy 2.3 takes fifty times as long."""
    ordered: Places = np.sort(np.concatenate(parts))
    return ordered[starts_of_runs(ordered)]


def _places(kinds: Kinds, points: Numbers, apart: bool) -> Places:
    """Return the start and the end of each token, shape (n, 2). kinds, points: of each character."""
    kinds = np.concatenate((_BESIDE, kinds, _BESIDE))
    is_mark = kinds == MARK
    kinds = settled(kinds, np.concatenate((_BESIDE, points, _BESIDE)))
    inside = kinds != SEPARATOR
    bounds = inside[1:] != inside[:-1]
    if apart and (single := kinds >= SINGLE).any():
        bounds |= (single[1:] | single[:-1]) & ~is_mark[1:]
    begins, ends = np.flatnonzero(bounds & inside[1:]), np.flatnonzero(bounds & inside[:-1])
    places: Places = np.array((begins, ends)).T
    return places
