"""Which of the signs + # - < > count. The native core does the same (native/signs.h).

* + and # directly behind a letter or a digit belong to its word: C++, F#, AB+, UTC+2.
* + and - directly before a number belong to it, unless they stand directly behind a letter, digit, unit or other sign
  (-5, but 3-5, 2024-12-01, COVID-19). All dashes but the long one are -.
* - behind a word of at most three letters belongs to it, unless a letter, digit, sign or line break follows (A-, AB-).
* < and > before a number, or before a space and a number, are tokens, unless they begin a line, as where mails are
  quoted, or follow another sign.

All others separate tokens: bullets, headings, hashtags, hyphens between words and at the end of a line. A number may
begin with a currency. Currencies, %, °, ± and ≤ are tokens wherever they stand, so "10 €" is "10€".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ndd_search.core.text.unicode_tables import (
    ANGLE,
    DASH,
    DIGIT,
    HASH,
    LETTER,
    MARK,
    MONEY,
    PLUS,
    SEPARATOR,
    SINGLE,
    UNIT,
    Numbers,
)

Kinds = npt.NDArray[np.uint8]

_SHORT = 3  # letters of a word that may end with -
_LINE_ENDS = (10, 13)
_BEFORE_A_LINE = (0, *_LINE_ENDS)


def settled(kinds: Kinds, points: Numbers) -> Kinds:
    """Return the kinds of characters, each MARK of the kind of its owner, each sign of what it counts as.

    kinds, points: with a SEPARATOR, 0, before and behind the texts.
    """
    is_mark = kinds == MARK
    if is_mark.any():
        owners = kinds[np.maximum.accumulate(np.where(is_mark, 0, np.arange(len(kinds))))]
        kinds = np.where(is_mark & (owners < PLUS), np.where(owners == DIGIT, np.uint8(LETTER), owners), kinds)
    places = np.flatnonzero(kinds >= PLUS)
    if not len(places):
        return kinds
    found, marks = bytearray(kinds.tobytes()), is_mark.tobytes()
    for place in places.tolist():
        counts_as = _counts_as(found, marks, kinds, points, place)
        found[place], behind = counts_as, place + 1
        while found[behind] == MARK:
            found[behind], behind = counts_as, behind + 1
    return np.frombuffer(found, np.uint8)


def _counts_as(found: bytearray, marks: bytes, kinds: Kinds, points: Numbers, place: int) -> int:
    """Return the kind of the sign at a place. found: kinds with those before it settled; marks: which are marks."""
    sign, ahead, owner = found[place], place + 1, place - 1
    while marks[owner]:
        owner -= 1
    before, behind_sign = found[owner], kinds[owner] >= PLUS
    if sign == ANGLE:
        ahead += points[ahead] == ord(" ")
        counts = _begins_number(found, points, ahead) and not behind_sign and points[owner] not in _BEFORE_A_LINE
        return UNIT if counts else SEPARATOR
    if sign != DASH and before in (LETTER, DIGIT):
        return LETTER
    if sign != HASH and before in (SEPARATOR, SINGLE) and not behind_sign and _begins_number(found, points, ahead):
        return LETTER
    if sign == DASH and before == LETTER and found[ahead] == SEPARATOR and points[ahead] not in _LINE_ENDS:
        return LETTER if _is_short(found, marks, place) else SEPARATOR
    return SEPARATOR


def _begins_number(found: bytearray, points: Numbers, place: int) -> bool:
    if points[place] == ord("."):
        return found[place + 1] == DIGIT
    return found[place] in (DIGIT, MONEY)


def _is_short(found: bytearray, marks: bytes, end: int) -> bool:
    """Return whether the word that ends before a place has at most _SHORT letters, and no digit."""
    letters = 0
    while found[end - 1] == LETTER and letters <= _SHORT:
        end -= 1
        letters += not marks[end]
    return letters <= _SHORT and found[end - 1] != DIGIT
