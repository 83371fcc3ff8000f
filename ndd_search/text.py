"""Text to clean tokens.

A token is a run of letters, digits and the marks that belong to them; in scripts that are written without spaces
(Han, kana, Thai, Lao, Khmer, Myanmar) it is one character with its marks. Everything else separates tokens, except
what Unicode calls default ignorable (soft hyphens, joiners, bidi marks, variation selectors), which is left out.

Many texts are read at once: a table maps every code point to what becomes of it, so that a text costs one look-up a
code point. Only a text with marks that Unicode would compose or put into another order goes through `unicodedata`.

The tables come from Python's own version of Unicode. A code point it does not know yet counts as a letter, so a newer
Python changes a sketch only where a text holds characters younger than the older table: those that turn out to be no
letter, to be one half of a pair of cases, or to have a compatible form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.config import Recipe
from ndd_search.markup import strip_markup

Points = npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]

# Flags above the 21 bits of a code point: a token by itself; belongs to what stands before it; becomes none or several
# code points; needs `unicodedata`, because what becomes of it hangs on its neighbours.
SINGLE, MARK, SPECIAL, COMPLEX = (np.uint32(1 << bit) for bit in (24, 25, 26, 27))
_POINT = np.uint32(0x1FFFFF)

_TURKISH_I = re.compile("[i\u0131]\u0307+|\u0131")
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x19E0, 0x19FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x1AFF0, 0x1B16F), (0x20000, 0x323AF),
)  # fmt: skip
_UNSPACED_DIGITS = ((0x0E50, 0x0E59), (0x0ED0, 0x0ED9), (0x1040, 0x1049), (0x1090, 0x1099), (0x17E0, 0x17E9))
_NO_TEXT = ((0x80, 0xA0), (0xD800, 0xF8FF), (0xFDD0, 0xFDEF), (0xF0000, 0x10FFFF))  # controls, surrogates, private
# Where code points differ; the rest are ideographs and Hangul (letters that stay as they are) and yet unassigned.
_SCANNED = ((0x80, 0x3400), (0x4DC0, 0x4E00), (0xA000, 0xAC00), (0xD7A4, 0xD800), (0xF900, 0x20000), (0x2F800, 0x2FA20),
            (0xE0000, 0xE1000))  # fmt: skip
_MOST_MARKS = 30  # on one letter, as in Unicode's stream-safe format; putting more in order takes quadratic time

_ignorable = re.compile(f"[{_IGNORABLE}]")


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


def fold(text: str) -> str:
    """NFKC, case folding, default ignorable characters left out, and NFKC again, for folding may undo it.

    The four letters i of Turkish (dotted or not, small or capital) become one: whose capitals they are cannot be told.
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", _too_many_marks().sub(r"\1", text))
    text = _too_many_marks().sub(r"\1", _ignorable.sub("", text))
    return unicodedata.normalize("NFKC", _TURKISH_I.sub("i", text.casefold()))


def clean(texts: Sequence[str], apart: bool) -> Clean:
    """Fold prepared texts and put 0 for everything that separates tokens.

    apart: also separate the tokens of scripts without spaces from each other.
    """
    joined = "\0".join(["", *texts, ""])
    offsets = np.cumsum([1, *(len(text) + 1 for text in texts)])
    if joined.isascii():
        return Clean(np.frombuffer(joined.encode("ascii").translate(ascii_table()), np.uint8), offsets)
    points = _tables().points[code_points(joined)]
    flags = np.bitwise_or.reduce(points)
    if flags & SPECIAL:
        points, offsets = _replace_special(points, offsets)
    if flags & (MARK | COMPLEX):
        unsure = _unsure(points, offsets)
        if len(unsure):
            changed = list(texts)
            for i in unsure.tolist():
                changed[i] = fold(texts[i])
            offsets = np.cumsum([1, *(len(text) + 1 for text in changed)])
            points, offsets = _replace_special(_tables().points[code_points("\0".join(["", *changed, ""]))], offsets)
    return _settle_flags(points, offsets, apart) if np.bitwise_or.reduce(points) > _POINT else Clean(points, offsets)


def code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def _replace_special(points: npt.NDArray[np.uint32], offsets: Places) -> tuple[npt.NDArray[np.uint32], Places]:
    """Leave out the ignorable, spell out what becomes several code points."""
    _, pool, starts, lengths, _ = _tables()
    places = np.flatnonzero(points & SPECIAL)
    which = points[places] & _POINT
    size = lengths[which]
    counts = np.ones(len(points), np.int64)
    counts[places] = size
    longer = np.concatenate(([0], np.cumsum(size - 1)))
    spelt = np.repeat(points, counts)
    for j in range(size.max(initial=0)):
        some = size > j
        spelt[places[some] + longer[:-1][some] + j] = pool[starts[which[some]] + j]
    return spelt, offsets + longer[np.searchsorted(places, offsets)]


def _unsure(points: npt.NDArray[np.uint32], offsets: Places) -> Places:
    """The texts in which marks compose with a letter, are out of order, or are too many."""
    found = [np.flatnonzero(points & COMPLEX)]
    marks = np.flatnonzero(points & MARK)
    order = _tables().order[points[marks] & _POINT]
    marks, order = marks[order > 0], order[order > 0]
    found.append(marks[1:][(np.diff(marks) == 1) & (order[1:] < order[:-1])])
    found.append(marks[_MOST_MARKS:][marks[_MOST_MARKS:] - marks[:-_MOST_MARKS] == _MOST_MARKS])
    return np.array(sorted(set((np.searchsorted(offsets, np.concatenate(found), "right") - 1).tolist())), np.int64)


def _settle_flags(points: npt.NDArray[np.uint32], offsets: Places, apart: bool) -> Clean:
    """Marks share the fate of what they stand on; tokens of one character each are set apart."""
    marks = np.flatnonzero(points & MARK)
    first = np.diff(marks, prepend=-1) != 1
    bases = points[marks[first] - 1][np.cumsum(first) - 1]
    points[marks] = np.where(bases != 0, points[marks] | bases & SINGLE, 0)
    if apart:
        inside = points != 0
        alone = points & SINGLE != 0
        new = np.zeros(len(points), np.bool_)
        new[1:] = inside[1:] & inside[:-1] & (alone[1:] | alone[:-1]) & (points[1:] & MARK == 0)
        places = np.arange(len(points)) + np.cumsum(new)
        spaced = np.zeros(places[-1] + 1, np.uint32)
        spaced[places] = points
        points, offsets = spaced, np.append(places[offsets[:-1]], len(spaced))
    return Clean(points & _POINT, offsets)


class _Tables(NamedTuple):
    """What becomes of each code point.

    points:  uint32, shape (0x110000,): the folded code point with flags, 0 for a separator; SPECIAL with a number n:
             it becomes the `lengths[n]` entries of `pool` from `starts[n]` on.
    order:   uint8, shape (0x110000,): canonical combining classes.
    """

    points: npt.NDArray[np.uint32]
    pool: npt.NDArray[np.uint32]
    starts: Places
    lengths: Places
    order: npt.NDArray[np.uint8]


@cache
def ascii_table() -> bytes:
    return bytes(ord(chr(i).lower()) if i < 128 and chr(i).isalnum() else 0 for i in range(256))


@cache
def _tables() -> _Tables:
    points = _classes()
    order = np.zeros(0x110000, np.uint8)
    chars = [chr(point) for part in _SCANNED for point in range(*part)]
    order[[ord(char) for char in chars]] = [unicodedata.combining(char) for char in chars]
    composing = _composing()
    fragile = order > 0
    fragile[composing] = True
    plain = points.copy()
    points[composing] |= COMPLEX
    pool: list[int] = []
    starts: list[int] = []
    lengths: list[int] = []
    for char, folded in zip(chars, fold("\n".join(chars)).split("\n"), strict=True):
        if folded == char:
            continue
        after = [ord(one) for one in folded]
        if fragile[after].any():
            points[ord(char)] = COMPLEX
        elif after and not plain[after].any():
            points[ord(char)] = 0
        elif len(after) == 1:
            points[ord(char)] = plain[after[0]]
        else:
            points[ord(char)] = SPECIAL | np.uint32(len(starts))
            starts.append(len(pool))
            lengths.append(len(after))
            pool += plain[after].tolist()
    return _Tables(points, np.array(pool, np.uint32), np.array(starts), np.array(lengths), order)


def _classes() -> npt.NDArray[np.uint32]:
    """Every code point as it is, with its flags; 0 for a separator, the lower case of an ASCII capital."""
    points = np.arange(0x110000, dtype=np.uint32)
    for first, last in _NO_TEXT:
        points[first : last + 1] = 0
    points[0xFFFE::0x10000] = points[0xFFFF::0x10000] = 0  # noncharacters
    points[:128] = np.frombuffer(ascii_table(), np.uint8)[:128]
    for part in _SCANNED:
        for point in range(*part):
            category = unicodedata.category(chr(point))
            if category[0] == "M":
                points[point] |= MARK
            elif category[0] not in "LN" and category != "Cn":
                points[point] = 0
    for first, last in _UNSPACED:
        block = points[first : last + 1]
        block[(block != 0) & (block & MARK == 0)] |= SINGLE
    for first, last in _UNSPACED_DIGITS:
        points[first : last + 1] &= ~SINGLE
    return points


def _composing() -> list[int]:
    """The code points that NFC may join with what stands before them."""
    found = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels and final consonants
    for part in _SCANNED:
        for point in range(*part):
            pair = [chr(int(one, 16)) for one in unicodedata.decomposition(chr(point)).split() if one[0] != "<"]
            if len(pair) == 2 and len(unicodedata.normalize("NFC", "".join(pair))) == 1:
                found.add(ord(pair[1]))
    return sorted(found)


@cache
def _too_many_marks() -> re.Pattern[str]:
    scanned = (chr(point) for part in _SCANNED for point in range(*part))
    marks = "".join(char for char in scanned if unicodedata.combining(char))
    return re.compile(f"([{marks}]{{{_MOST_MARKS}}})[{marks}]+")
