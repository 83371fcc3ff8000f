"""Text to clean tokens.

A token is a run of letters, digits and the marks that belong to them; in scripts that are written without spaces
(Han, kana, Thai, Lao, Khmer, Myanmar) it is one character with its marks. Everything else separates tokens, except
what Unicode calls default ignorable (soft hyphens, joiners, bidi marks, variation selectors), which is left out.

The classes come from Python's own Unicode tables. A code point that they do not know yet counts as a letter, so a
newer Python changes a sketch only where a text holds a character younger than the older table that is no letter.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

from ndd_search.config import Recipe
from ndd_search.errors import MissingExtra

SEPARATOR, LETTER, SINGLE, MARK, SINGLE_MARK = range(5)  # classes of code points; SINGLE: a token by itself

_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]|[\U000e0000-\U000e0fff]"
)
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x19E0, 0x19FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x1AFF0, 0x1B16F), (0x20000, 0x323AF),
)  # fmt: skip


def normalise(text: str, recipe: Recipe) -> str:
    """The text as it is cut into tokens: markup and URLs dealt with, NFKC, case folded, ignorable characters gone."""
    if recipe.markup == "html":
        text = strip_markup(text)
    if recipe.urls == "drop":
        text = _URL.sub(" ", text)
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", _IGNORABLE.sub("", unicodedata.normalize("NFKC", text)).casefold())


def tokens(text: str, recipe: Recipe) -> list[str]:
    """The tokens of a text, in order."""
    clean = normalise(text, recipe)
    starts, ends = token_bounds(code_points(clean))
    return [clean[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def code_points(text: str) -> npt.NDArray[np.uint8] | npt.NDArray[np.uint32]:
    """The code points of a text, one byte each if it is ASCII."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def token_bounds(
    points: npt.NDArray[np.uint8] | npt.NDArray[np.uint32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where each token starts and ends (exclusive), as places in the code points."""
    classes = character_classes()[points]
    if points.dtype == np.uint8:  # no marks, no unspaced scripts: the ends of runs
        edges = np.flatnonzero(np.diff(classes, prepend=SEPARATOR, append=SEPARATOR))
        return edges[::2], edges[1::2]
    before = np.concatenate(([SEPARATOR], classes[:-1]))
    inside = classes != SEPARATOR
    new = (before == SEPARATOR) | (classes == SINGLE)
    new |= (classes == LETTER) & ((before == SINGLE) | (before == SINGLE_MARK))
    starts = np.flatnonzero(inside & new)
    stops = np.flatnonzero(inside & np.append(new[1:] | ~inside[1:], True)) + 1
    return starts, stops


@cache
def character_classes() -> npt.NDArray[np.uint8]:
    """The class of every code point; uint8, shape (0x110000,)."""
    classes = np.zeros(0x110000, np.uint8)
    for point in range(0x323B0):
        category = unicodedata.category(chr(point))
        if category[0] in "LN" or category == "Cn":
            classes[point] = LETTER
        elif category[0] == "M":
            classes[point] = MARK
    for first, last in _UNSPACED:
        part = classes[first : last + 1]
        part[part == LETTER] = SINGLE
        part[part == MARK] = SINGLE_MARK
    classes[0x0E50:0x0E5A] = classes[0x0ED0:0x0EDA] = LETTER  # Thai and Lao digits make numbers
    return classes


def strip_markup(text: str) -> str:
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ModuleNotFoundError:
        raise MissingExtra('Recipe(markup="html")', "selectolax", "html") from None
    tree = LexborHTMLParser(text)
    tree.strip_tags(["script", "style", "noscript", "template"])
    return str(tree.text(separator=" "))
