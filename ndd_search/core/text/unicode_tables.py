"""Tables of the folded form and class of each code point, and the folding of one text.

The tables are built from the Unicode version of the running Python. Unassigned code points count as letters. A newer
Python therefore changes a sketch only if the text contains a character that the older version did not have and that is
no letter, has another case, or has a compatibility decomposition.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]

# Kinds of characters. A SINGLE one, a currency (MONEY) and a UNIT are tokens by themselves; `text.signs` has those
# from PLUS on.
SEPARATOR, LETTER, DIGIT, SINGLE, MONEY, UNIT, MARK, PLUS, HASH, DASH, ANGLE = range(11)
POINT = np.uint32(0x1FFFFF)

_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Hebrew points and accents, Arabic vowel signs, and what stretches an Arabic word: all of them may be left out.
_VOWEL_SIGNS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065e\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08d3-\u08e1\u08e3-\u08ff"
)
# One sign for what is written with several; those of Romanian after the last NFKC, as the tones.
_SPELLINGS = dict(zip("یک−–‐٪", "يك---%", strict=True))
_TONES = {  # of Vietnamese, the older place and the newer one
    first + second: plain + marked
    for plain, toned, second, all_marked in (
        ("o", "òóỏõọ", "a", "àáảãạ"),
        ("o", "òóỏõọ", "e", "èéẻẽẹ"),
        ("u", "ùúủũụ", "y", "ỳýỷỹỵ"),
    )
    for first, marked in zip(toned, all_marked, strict=True)
}
_COMMAS, _RANKS = [0x0219, 0x021B], np.uint32(63 << 21)
_LAST = _TONES | dict(zip("șț", "şţ", strict=True))
_SIGNS = {PLUS: "+", HASH: "#", DASH: "-", ANGLE: "<>", UNIT: "%°±‰‱≤≥≰≱≦≧⩽⩾"}
_MONEY = ((0x24, 0x24), (0xA2, 0xA5), (0x20A0, 0x20CF))
# The scripts that are written without spaces, without their digits: those of South East Asia (line breaking class SA of
# Unicode: Thai, Lao, Myanmar, Tai Le, New Tai Lue, Khmer, Tai Tham, Tai Viet, Ahom), Han, and kana.
UNSPACED = (
    (0x0E00, 0x0E4F), (0x0E5A, 0x0ECF), (0x0EDA, 0x0EFF), (0x1000, 0x103F), (0x104A, 0x108F), (0x109A, 0x109F),
    (0x1780, 0x17DF), (0x17EA, 0x17FF), (0x1950, 0x19CF), (0x19DA, 0x19DF), (0x1A20, 0x1A7F), (0x1A9A, 0x1AAF),
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA9E0, 0xA9EF), (0xA9FA, 0xA9FF), (0xAA60, 0xAADF), (0xF900, 0xFAFF), (0x11700, 0x1172F),
    (0x1173A, 0x1174F), (0x1AFF0, 0x1B16F), (0x20000, 0x323AF),
)  # fmt: skip
UNSPACED_CLASS = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)  # between [ and ] of a pattern
_NO_TEXT = ((0x80, 0xA0), (0xD800, 0xF8FF), (0xFDD0, 0xFDEF), (0xF0000, 0x10FFFF))  # controls, surrogates, private use
# Ranges whose code points are looked up one by one. The rest are ideographs and Hangul, which folding keeps, and
# unassigned code points.
_SCANNED = ((0x20, 0x3400), (0x4DC0, 0x4E00), (0xA000, 0xAC00), (0xD7A4, 0xD800), (0xF900, 0x20000), (0x2F800, 0x2FA20),
            (0xE0000, 0xE1000))  # fmt: skip
_JOINER = 0x200C  # the non-joiner
CAPITAL_I, DOT_ABOVE, IOTA_BELOW = 0x0130, 0x0307, 0x0345  # the capital with a dot
IOTA_ORDER = 240  # the combining class of this iota only
MOST_MARKS = 30  # on one letter, as in Unicode's stream-safe format; ordering more takes quadratic time

_left_out = re.compile(f"[{_IGNORABLE}{_VOWEL_SIGNS}]")
_joiner = re.compile("(?<=[\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc])\u200c")  # of the parts of a word
_other_digit = re.compile("[^\\D0-9]")
_spelled = re.compile(f"[{''.join(_SPELLINGS)}]")
_last = re.compile("[șț]|[òóỏõọ][ae]|[ùúủũụ]y")
_turkish_i = re.compile("[i\u0131]\u0307+|\u0131")


def fold(text: str) -> str:
    """Return the text in one spelling: NFKC, case folding, the replacements below, and NFKC again.

    Left out are default ignorable characters, zero-width spaces, the vowel signs of Hebrew and Arabic, tatweel, and
    combining marks after the thirtieth in a row. A non-joiner between Arabic letters is a space. Digits of all scripts
    become those of ASCII, and letters and signs of _SPELLINGS one. The four letters i of Turkish (dotted or not, small
    or capital) become one, because the language of a text, and so the case pairs, are unknown. A Vietnamese tone mark
    stands on the second vowel (hoà for hòa).

    The second NFKC is needed because the steps before it can break normalisation.
    """
    if text.isascii():
        return text.lower()
    text = _left_out.sub("", _joiner.sub(" ", text))
    text = unicodedata.normalize("NFKC", few_marks(text))
    text = few_marks(_left_out.sub("", text)).casefold()  # NFKC makes several marks of some
    if "\u0131" in text or "\u0307" in text:
        text = _turkish_i.sub("i", text)
    text = _other_digit.sub(lambda digit: str(int(digit[0])), text)
    text = _spelled.sub(lambda letter: _SPELLINGS[letter[0]], text)
    return _last.sub(lambda found: _LAST[found[0]], unicodedata.normalize("NFKC", text))


def few_marks(text: str) -> str:
    """Return the text without the combining marks after the thirtieth in a row, which take quadratic time to order."""
    return _many_marks(True).sub(r"\1", text) if _many_marks(False).search(text) else text


@cache
def _many_marks(exactly: bool) -> re.Pattern[str]:
    """Return a pattern of more than MOST_MARKS marks in a row; unless exactly, characters above U+FFFF match, too."""
    marks = "".join(map(chr, np.flatnonzero(combining_orders()[: None if exactly else 0x10000]).tolist()))
    others = "" if exactly else "\U00010000-\U0010ffff"  # listing the few marks there is ten times slower
    mark = f"[{re.escape(marks)}{others}]"
    return re.compile(f"({mark}{mark}{{{MOST_MARKS - 1}}}){mark}+")  # `re` scans for the first one


def code_points(text: str) -> Numbers:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


@cache
def kinds_of_folded() -> npt.NDArray[np.uint8]:
    """Return the kind of each code point of a folded text. Shape (0x110000,)."""
    kinds = np.full(0x110000, LETTER, np.uint8)
    for first, last in UNSPACED:
        kinds[first : last + 1] = SINGLE
    for first, last in _NO_TEXT:
        kinds[first : last + 1] = SEPARATOR
    kinds[0xFFFE::0x10000] = kinds[0xFFFF::0x10000] = SEPARATOR  # noncharacters
    assigned = _assigned()
    kinds[:0x20] = kinds[assigned.points[~np.isin(assigned.kinds, list(b"LMN"))]] = SEPARATOR
    kinds[assigned.points[assigned.kinds == ord("M")]] = MARK
    kinds[ord("0") : ord("9") + 1] = DIGIT
    for first, last in _MONEY:
        kinds[first : last + 1] = MONEY
    for kind, signs in _SIGNS.items():
        kinds[list(map(ord, signs))] = kind
    return kinds


@cache
def kinds_of_unfolded() -> npt.NDArray[np.uint8]:
    """Return for each code point the kind of the first letter of its folded form. Shape (0x110000,).

    A code point that folding removes is a MARK: it separates nothing.
    """
    kinds, folded = kinds_of_folded().copy(), _folded()
    for point, text in folded.items():
        of_letters = (int(kinds_of_folded()[ord(letter)]) for letter in text)
        kinds[point] = next(filter(None, of_letters), SEPARATOR if text else MARK)
    return kinds


@cache
def _folded() -> dict[int, str]:
    """Return the text that folding puts in place of each code point that it changes."""
    assigned = _assigned().chars
    cases = zip(assigned, "\n".join(assigned).casefold().split("\n"), strict=True)
    patterns = (_left_out, _turkish_i, _other_digit, _spelled, _last)
    others = [char for pattern in patterns for char in pattern.findall(_scanned())]
    chars = [*_decompositions(), *(char for char, case in cases if char != case), *others]
    return dict(zip(map(ord, chars), fold("\n".join(chars)).split("\n"), strict=True))


class Assigned(NamedTuple):
    """The assigned code points of _SCANNED.

    points: int64. kinds: uint8, the first letter of the general category of each.
    """

    chars: str
    points: Places
    kinds: npt.NDArray[np.uint8]


@cache
def _assigned() -> Assigned:
    scanned = _scanned()
    categories = np.frombuffer("".join(map(unicodedata.category, scanned)).encode(), "S2")
    assigned = categories != b"Cn"
    points = code_points(scanned)[assigned]
    chars = points.tobytes().decode("utf-32-le")
    return Assigned(chars, points.astype(np.int64), categories[assigned].astype("S1").view(np.uint8))


def _scanned() -> str:
    points = np.concatenate([np.arange(*part, dtype="<u4") for part in _SCANNED])
    return points.tobytes().decode("utf-32-le")


@cache
def _decompositions() -> dict[str, str]:
    """Return the decomposition of each assigned code point that has one, as `unicodedata.decomposition` writes it."""
    chars = _assigned().chars
    return {char: parts for char, parts in zip(chars, map(unicodedata.decomposition, chars), strict=True) if parts}


@cache
def native_table() -> bytes:
    """Return the folded form of each code point for the native core: uint32, 0x110000 entries, then the replacements.

    An entry is the folded code point in 21 bits; then, in 6 bits, the rank of the combining class of its last mark, 61
    for MONEY, 62 for a UNIT, or 63 if no other mark may be next to it; then, from bit 27 on, the flags: first of a
    composing pair, second of one (or a vowel whose tone mark may be moved), MARK, a token by itself, and SPECIAL. The
    low bits of a SPECIAL entry are a sign, or the non-joiner, or the index in the table of a count n, which n entries
    follow.
    The table ends with the composing pairs: the first of each, the second of each, the composed ones, and their count.
    """
    pairs, folded = _composing_pairs(), _folded()
    keys = np.array(sorted(pairs), np.uint64)
    first, second = (keys >> np.uint64(21)).astype(np.uint32), keys.astype(np.uint32) & POINT
    composed = np.array([pairs[key] for key in keys.tolist()], np.uint32)
    entries = _entries(first, second)
    codes, lengths = (np.array(list(numbers), np.int64) for numbers in (folded, map(len, folded.values())))
    starts = np.cumsum(lengths) - lengths
    pool = entries[code_points("".join(folded.values()))]
    letters = np.cumsum(np.append(0, pool != 0))
    nothing = (lengths > 0) & (letters[starts + lengths] == letters[starts])  # replaced by separators only
    places = np.uint32(len(entries)) + (starts + np.arange(len(starts))).astype(np.uint32)
    replaced = np.where(nothing, np.uint32(0), places | np.uint32(1 << 31))
    replaced[lengths == 1] = pool[starts[lengths == 1]]
    iotas = [point for point in folded if chr(IOTA_BELOW) in unicodedata.normalize("NFKD", chr(point))]
    iota, capital_i = entries[IOTA_BELOW] & ~np.uint32(1 << 28), entries[ord("i")] | np.uint32(63 << 21)
    ranks = entries[_COMMAS] & _RANKS  # marks behind a comma are in the order that they had
    entries[codes] = replaced
    entries[_COMMAS] = entries[_COMMAS] & ~_RANKS | ranks
    entries[iotas] = iota  # which is a mark that folds to a letter
    entries[_JOINER] = np.uint32(1 << 31 | _JOINER)
    entries[CAPITAL_I] = capital_i  # an i without its dot: marks may have been swapped with the dot
    parts = (entries, np.insert(pool, starts, lengths.astype(np.uint32)), first, second, composed)
    return np.concatenate((*parts, [len(composed)]), dtype=np.uint32, casting="unsafe").tobytes()


def _entries(first: Numbers, second: Numbers) -> Numbers:
    """Return the entry in `native_table` of each code point of a folded text. first, second: of composing pairs."""
    points, kinds, orders = np.arange(0x110000, dtype=np.uint32), kinds_of_folded(), combining_orders()
    tails = _last_orders()
    ranks = np.cumsum(np.bincount(tails, minlength=256) > 0, dtype=np.uint32) - np.uint32(1)
    ranks[IOTA_ORDER] = 63
    entries: Numbers = points | ranks[tails] << np.uint32(21)
    # A mark that is not reordered but decomposes into one that is, is flagged like the first of a pair.
    entries[(kinds == MARK) & (orders == 0) & (tails > 0)] |= np.uint32(1 << 27)
    toned = np.array([ord(vowels[0]) for vowels in _TONES], np.uint32)  # the core has to look at these, too
    second = np.append(second, toned)
    single = (kinds == SINGLE) | (kinds == MONEY) | (kinds == UNIT)
    for bit, flagged in enumerate((first, second, kinds == MARK, single), 27):
        entries[flagged] |= np.uint32(1 << bit)
    for kind in (MONEY, UNIT):
        entries[kinds == kind] |= np.uint32(kind - MONEY + 61 << 21)
    entries[kinds == SEPARATOR] = 0
    signs = np.flatnonzero(kinds >= PLUS).astype(np.uint32)
    entries[signs] = signs | np.uint32(1 << 31)
    return entries


@cache
def combining_orders() -> npt.NDArray[np.uint8]:
    """Return the canonical combining class of each code point."""
    orders = np.zeros(0x110000, np.uint8)
    marks = _assigned().points[_assigned().kinds == ord("M")]
    orders[marks] = [unicodedata.combining(chr(mark)) for mark in marks]
    return orders


def _last_orders() -> npt.NDArray[np.uint8]:
    """Return the canonical combining class of the last code point that each one decomposes into."""
    orders = combining_orders().copy()
    for char, parts in _decompositions().items():
        if parts[0] != "<":
            orders[ord(char)] = unicodedata.combining(unicodedata.normalize("NFD", char)[-1])
    return orders


def _composing_pairs() -> dict[int, int]:
    """Return the pairs that NFC composes, first code point << 21 | second, with the composed code point."""
    pairs = {}
    for char, parts in _decompositions().items():
        pair = parts.split()
        if len(pair) == 2 and pair[0][0] != "<" and unicodedata.normalize("NFC", char) == char:
            pairs[int(pair[0], 16) << 21 | int(pair[1], 16)] = ord(char)
    for composed_point in list(pairs.values()):
        whole = unicodedata.normalize("NFD", chr(composed_point))
        for i in range(1, len(whole) - 1):  # mark i may be composed last, after the marks behind it
            rest = unicodedata.normalize("NFC", whole[:i] + whole[i + 1 :])
            if len(rest) == 1 and unicodedata.normalize("NFC", rest + whole[i]) == chr(composed_point):
                pairs[ord(rest) << 21 | ord(whole[i])] = composed_point
    pairs[ord("i") << 21 | DOT_ABOVE] = CAPITAL_I  # whose entry is an i, as `fold` does
    for syllable in range(0xAC00, 0xD7A4):  # of Hangul
        block, final = divmod(syllable - 0xAC00, 28)
        parts_of = (syllable - final, 0x11A7 + final) if final else (0x1100 + block // 21, 0x1161 + block % 21)
        pairs[parts_of[0] << 21 | parts_of[1]] = syllable
    return pairs
