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

# Flags above the 21 bits of a code point. COMPOSES: may compose with the code point before it. SPECIAL: is replaced by
# no or several code points. SINGLE: is a token by itself. MARK: belongs to the code point before it. ORDERED: a mark
# that canonical ordering may swap.
COMPOSES, SPECIAL, SINGLE, MARK, ORDERED = (np.uint32(1 << bit) for bit in (24, 25, 29, 30, 31))
POINT = np.uint32(0x1FFFFF)

_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
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
_SCANNED = ((0x80, 0x3400), (0x4DC0, 0x4E00), (0xA000, 0xAC00), (0xD7A4, 0xD800), (0xF900, 0x20000), (0x2F800, 0x2FA20),
            (0xE0000, 0xE1000))  # fmt: skip
DOT_ABOVE, IOTA_BELOW = 0x0307, 0x0345
IOTA_ORDER = 240  # the combining class of this iota only
MOST_MARKS = 30  # on one letter, as in Unicode's stream-safe format; ordering more takes quadratic time

ASCII = bytes(ord(chr(i).lower()) if i < 128 and chr(i).isalnum() else 0 for i in range(256))
_ignorable = re.compile(f"[{_IGNORABLE}]")
_turkish_i = re.compile("[i\u0131]\u0307+|\u0131")


def fold(text: str) -> str:
    """Return the text after NFKC, removal of default ignorable characters, case folding, and NFKC again.

    Combining marks after the thirtieth in a row are left out.

    The second NFKC is needed because folding can break normalisation. The four letters i of Turkish (dotted or not,
    small or capital) become one, because the language of a text, and so the case pairs, are unknown.
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", few_marks(text))
    text = few_marks(_ignorable.sub("", text)).casefold()
    if "\u0131" in text or "\u0307" in text:
        text = _turkish_i.sub("i", text)
    return unicodedata.normalize("NFKC", text)


@cache
def _many_marks() -> re.Pattern[str]:
    marks = re.escape("".join(map(chr, np.flatnonzero(combining_orders()[:0x10000]).tolist())))
    mark = f"[{marks}\U00010000-\U0010ffff]"  # listing the few marks above U+FFFF is ten times slower
    return re.compile(f"{mark}{mark}{{{MOST_MARKS}}}")  # the first one separately, so that `re` can scan for it


def few_marks(text: str) -> str:
    """Return the text without the combining marks after the thirtieth in a row, which take quadratic time to order."""
    if not _many_marks().search(text):
        return text
    points = code_points(text)
    marks = np.flatnonzero(combining_orders()[points])
    if not (marks[MOST_MARKS:] - marks[:-MOST_MARKS] == MOST_MARKS).any():
        return text
    places = np.arange(len(marks))
    run = np.maximum.accumulate(np.where(np.diff(marks, prepend=-2) > 1, places, 0))
    kept = np.delete(points, marks[places - run >= MOST_MARKS])
    return kept.tobytes().decode("utf-32-le", "surrogatepass")


def code_points(text: str) -> Numbers:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


class Table(NamedTuple):
    """The folded form of each code point.

    points:  uint32, shape (0x110000,): the folded code point with its flags, 0 for a separator; or SPECIAL with a
             number n: it is replaced by the `lengths[n]` entries of `pool` from `starts[n]` on.
    """

    points: Numbers
    pool: Numbers
    starts: Places
    lengths: Places


@cache
def code_point_table() -> Table:
    points = _classes()
    points[(composing_pairs().keys & POINT).astype(np.int64)] |= COMPOSES
    points[(points & MARK != 0) & (combining_orders() > 0)] |= ORDERED
    chars, folded = _folded()
    codes = code_points(chars)
    lengths = np.fromiter(map(len, folded), np.int64, len(folded))
    starts = np.cumsum(lengths) - lengths
    pool = points[code_points("".join(folded))]
    letters = np.cumsum(np.append(0, pool != 0))
    nothing = (lengths > 0) & (letters[starts + lengths] == letters[starts])  # replaced by separators only
    points[codes] = SPECIAL | np.arange(len(codes), dtype=np.uint32)
    points[codes[lengths == 1]] = pool[starts[lengths == 1]]
    points[codes[nothing]] = 0
    decomposed = code_points(unicodedata.normalize("NFKD", "\n".join(chars)))
    lines = np.cumsum(decomposed == ord("\n"))
    points[codes[lines[decomposed == IOTA_BELOW]]] = IOTA_BELOW | ORDERED  # the iota is a mark that folds to a letter
    return Table(points, pool, starts, lengths)


def _folded() -> tuple[str, list[str]]:
    """Return the code points that folding changes, and the text that replaces each."""
    assigned = _assigned().chars
    cases = "\n".join(assigned).casefold().split("\n")
    changing = [*_decompositions(), *_ignorable.findall(_scanned()), *_turkish_i.findall(assigned)]
    changing += [char for char, folded in zip(assigned, cases, strict=True) if char != folded]
    chars = "".join(dict.fromkeys(changing))
    folded = fold("\n".join(chars)).split("\n")
    # The dot of a capital i stays a mark here; `composing_pairs` removes it.
    folded[chars.index("\u0130")] = "i\u0307"
    return chars, folded


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


def _classes() -> Numbers:
    """Return each code point with its flags; 0 for a separator, the lower case for an ASCII capital."""
    points = np.arange(0x110000, dtype=np.uint32)
    for first, last in _NO_TEXT:
        points[first : last + 1] = 0
    points[0xFFFE::0x10000] = points[0xFFFF::0x10000] = 0  # noncharacters
    points[:128] = np.frombuffer(ASCII, np.uint8)[:128]
    assigned = _assigned()
    points[assigned.points[~np.isin(assigned.kinds, list(b"LMN"))]] = 0
    points[assigned.points[assigned.kinds == ord("M")]] |= MARK
    for first, last in UNSPACED:
        block = points[first : last + 1]
        block[block != 0] |= SINGLE
    return points


@cache
def unfolded_classes() -> Numbers:
    """Return for each code point the first letter of its folded form, with its flags; 0 for a separator.

    A code point that folding removes is a MARK: it separates nothing.
    """
    table = code_point_table()
    points = table.points.copy()
    for point in np.flatnonzero((points & SPECIAL) != 0).tolist():
        number = points[point] & POINT
        folded = table.pool[table.starts[number] :][: table.lengths[number]]
        points[point] = next(iter(folded[folded != 0]), MARK)
    return points


@cache
def native_table() -> bytes:
    """Return the folded form of each code point for the native core: uint32, 0x110000 entries, then the replacements.

    An entry is the folded code point in 21 bits; then, in 6 bits, the rank of the combining class of its last mark, or
    63 if no other mark may be next to it; then, from bit 27 on, the flags: first of a composing pair, COMPOSES, MARK,
    SINGLE, SPECIAL. The low bits of a SPECIAL entry are the index in the table of a count n, which n entries follow.
    The table ends with the composing pairs: the first of each, the second of each, the composed ones, and their count.
    """
    table, pairs = code_point_table(), composing_pairs()
    pool = np.zeros(len(table.pool) + len(table.lengths), np.uint32)  # each replacement after its length
    heads = table.starts + np.arange(len(table.starts))
    inside = np.ones(len(pool), np.bool_)
    inside[heads] = False
    pool[heads], pool[inside] = table.lengths, _packed(table.pool)
    special = (table.points & SPECIAL) != 0
    entries = np.arange(len(table.points), dtype=np.uint32)
    odd = pairs.is_first | (table.points != entries)
    odd[_assigned().points] = True
    some = np.flatnonzero(odd & ~special)
    entries[some] = _packed(table.points[some])
    entries[special] = (heads[table.points[special] & POINT] + len(entries)).astype(np.uint32) | np.uint32(1 << 31)
    # An i without its dot: marks may have been swapped with the dot.
    entries[0x0130] = _packed(np.array([ord("i")], np.uint32))[0] | np.uint32(63 << 21)
    composed = np.where(pairs.keys == (ord("i") << 21 | DOT_ABOVE), np.uint32(0x0130), pairs.composed)
    parts = (entries, pool, pairs.keys >> np.uint64(21), pairs.keys & POINT, composed, [len(composed)])
    return np.concatenate(parts, dtype=np.uint32, casting="unsafe").tobytes()


def _packed(entries: Numbers) -> Numbers:
    """Convert entries of `code_point_table` to the layout of `native_table`."""
    points = entries & POINT
    packed: Numbers = points | _tail_ranks()[points] << np.uint32(21)
    # A mark that is not reordered but decomposes into one that is, is flagged like the first of a pair.
    stays = ((entries & MARK) != 0) & (combining_orders()[points] == 0) & (combining_orders(tail=True)[points] > 0)
    mark = (entries & (MARK | ORDERED)) != 0
    single = ((entries & SINGLE) != 0) & ~mark  # a mark has the flag of its letter
    flags = (composing_pairs().is_first[points] | stays, (entries & COMPOSES) != 0, mark, single)
    for bit, flag in enumerate(flags, 27):
        packed |= flag.astype(np.uint32) << np.uint32(bit)
    return packed


@cache
def _tail_ranks() -> Numbers:
    """Return the rank of the combining class of each code point's last mark, among all classes."""
    tails = combining_orders(tail=True)
    ranks = np.cumsum(np.bincount(tails, minlength=256) > 0, dtype=np.uint32) - np.uint32(1)  # np.unique is slow
    ranks[IOTA_ORDER] = 63
    by_point: Numbers = ranks[tails]
    return by_point


@cache
def combining_orders(tail: bool = False) -> npt.NDArray[np.uint8]:
    """Return the canonical combining class of each code point; with `tail`, of the last mark it decomposes into."""
    if tail:
        orders = combining_orders().copy()
        for char, parts in _decompositions().items():
            if parts[0] != "<":
                orders[ord(char)] = unicodedata.combining(unicodedata.normalize("NFD", char)[-1])
        return orders
    orders = np.zeros(0x110000, np.uint8)
    marks = _assigned().points[_assigned().kinds == ord("M")]
    orders[marks] = [unicodedata.combining(chr(mark)) for mark in marks]
    return orders


class Pairs(NamedTuple):
    """The pairs that NFC composes, and i with a dot above, which becomes i.

    keys:     uint64, ascending: first code point << 21 | second.
    composed: uint32: the composed code point of each pair.
    is_first: bool, shape (0x110000,): whether a code point is first in any pair.
    """

    keys: npt.NDArray[np.uint64]
    composed: Numbers
    is_first: npt.NDArray[np.bool_]


@cache
def composing_pairs() -> Pairs:
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
    pairs[ord("i") << 21 | DOT_ABOVE] = ord("i")  # as `fold` does
    syllables = np.arange(0xAC00, 0xD7A4, dtype=np.uint64)
    block, final = np.divmod(syllables - np.uint64(0xAC00), np.uint64(28))
    first = np.where(final > 0, syllables - final, np.uint64(0x1100) + block // np.uint64(21))
    second = np.where(final > 0, np.uint64(0x11A7) + final, np.uint64(0x1161) + block % np.uint64(21))
    keys = np.append(np.array(list(pairs), np.uint64), first << np.uint64(21) | second)
    composed = np.append(np.array(list(pairs.values()), np.uint32), syllables.astype(np.uint32))
    order = np.argsort(keys)
    keys = keys[order]
    is_first = np.zeros(0x110000, np.bool_)
    is_first[(keys >> np.uint64(21)).astype(np.int64)] = True
    return Pairs(keys, composed[order], is_first)
