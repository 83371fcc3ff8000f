"""Find the edges of a short text: what agencies, sites and people add before and after a text that they pass on.

An edge is a dateline, a byline, a mark (UPDATE 2 -, RT @name:), a source, the name of a site, "Read more at ...", a tag
or a link. Two signs together show one in any language: brackets or a date and a dash ("WARSZAWA, 3 maja (PAP) – "),
capitals and a dash or colon, brackets at the very start ("【速報】"), and brackets or a dash behind a sentence.
Of one sign alone, only the words in `edge_words` tell. In a text of LONG words and more, an edge is also what a dash, a
colon or a bracket (at the end a bar, too) sets apart within the first or last NEAR words. Shorter texts that begin or
end so are often fillings of one form ("Leeds: cloudy ..."), of which only the words that are set apart differ.

Everything is bounded: texts of at most MOST characters are read, at each side MOST_PIECES pieces of NEAR_KNOWN words.
The native core does the same (native/edges.h).
"""

from __future__ import annotations

import sys
from functools import cache, reduce
from operator import or_
from typing import NamedTuple

from ndd_search.core.text.edge_words import WORDS

MOST = 640  # characters: longer texts have no edges, as an edge is a small part of them
LEAST_INSIDE, LEAST_SHARE = 24, 0.4  # characters that are left between the edges, and their share of the text
MOST_PIECES, NEAR_KNOWN = 4, 12
ENCLOSED, SHORT_NAME = 32, 5  # characters in brackets, words of a name
LONG, NEAR, LEAST_LONG_SHARE = 25, 8, 0.5  # words; and the share of the text that is left between signs

MARK, AGENCY, BY, SOURCE, MORE, BEGINS, GOES_ON, RIGHTS, SITE, JOINS = (1 << i for i in range(len(WORDS)))
CAPITAL, CAPITALS, NUMBER, HANDLE, LINK, OTHER = (1 << i for i in range(11, 17))
NAMES = CAPITAL | NUMBER | JOINS

CASELESS = "\u0590"  # the first letter of the scripts without capitals, whose words all count as names
SPACES = frozenset("\t\n\r \u00a0\u3000")
OPENS, CLOSES = frozenset("([{/【（［〔"), frozenset(")]}/】）］〕")
BEFORE, AFTER = frozenset("([{/\"'“”„«‘"), frozenset(")]}/\"'“”»’.,:;!?…-–—")
DASHES, ENDS = frozenset("-–—"), frozenset(".!?…।。！？؟۔")


class Word(NamedTuple):
    """A word between spaces: text[start:end], of which text[inner:outer] is without punctuation."""

    start: int
    end: int
    inner: int
    outer: int
    kinds: int


def edges(text: str) -> tuple[int, int]:
    """Return where the text between the edges starts and ends, in characters; (0, len(text)) without edges."""
    whole = 0, len(text)
    if len(text) > MOST:
        return whole
    if not (words := _words(text)):
        return whole
    start, end = _known_start(text, words), _known_end(text, words)
    if end - start < LEAST_INSIDE or end - start < LEAST_SHARE * len(text):
        start, end = whole
    if len(words) >= LONG:
        far, near = max(start, _start_set_apart(text, words)), min(end, _end_set_apart(text, words))
        if near - far >= LEAST_LONG_SHARE * len(text):
            return far, near
    return start, end


@cache
def known_words() -> dict[str, int]:
    """Return the kinds of the words of `edge_words`."""
    found: dict[str, int] = {}
    for number, words in enumerate(WORDS.values()):
        for word in words.split():
            found[word] = found.get(word, 0) | 1 << number
    return found


_P, _MASK = 0x9E3779B97F4A7C15, 2**64 - 1


@cache
def native_words() -> bytes:
    """Return the known words for the native core: a hash table of their hashes and kinds, both uint64."""
    words = known_words()
    size = 1 << (2 * len(words)).bit_length()
    slots = [(0, 0)] * size
    for word, kinds in words.items():
        value = len(word)
        for letter in word:
            value = (value ^ ord(letter)) * _P & _MASK
        value ^= value >> 32
        at = value % size
        while slots[at][1]:
            at = (at + 1) % size
        slots[at] = value, kinds
    return b"".join(number.to_bytes(8, sys.byteorder) for slot in slots for number in slot)


def lower(letter: str) -> str:
    """Return the small letter of a Latin, Greek or Cyrillic one."""
    code = ord(letter)
    if "A" <= letter <= "Z" or ("À" <= letter <= "Þ" and letter != "×") or "Α" <= letter <= "Ω" or "А" <= letter <= "Я":
        return chr(code + 32)
    if 0x100 <= code < 0x180:
        return chr(code + (code % 2 == (0x139 <= code < 0x14A or code > 0x178)))
    return letter


def _words(text: str) -> list[Word]:
    found, at = [], 0
    while at < len(text):
        if text[at] in SPACES:
            at += 1
            continue
        start = at
        while at < len(text) and text[at] not in SPACES:
            at += 1
        found.append(_word(text, start, at))
    return found


def _word(text: str, start: int, end: int) -> Word:
    inner, outer = start, end
    while inner < outer and text[inner] in BEFORE:
        inner += 1
    while outer > inner and text[outer - 1] in AFTER:
        outer -= 1
    return Word(start, end, inner, outer, _kinds(text[inner:outer]))


def _kinds(word: str) -> int:
    if not word:
        return 0
    small = "".join(map(lower, word))
    kinds = known_words().get(small, 0)
    host, slash, _ = small.partition("/")
    if small.startswith(("http://", "https://")) or ("." in host[1:-1] and (slash or host.startswith("www."))):
        return LINK
    if word[0] in "@#":
        return HANDLE
    if all("0" <= letter <= "9" or letter in ".:-/" for letter in word):
        return kinds | NUMBER
    if lower(word[0]) != word[0] or word[0] >= CASELESS:
        kinds |= CAPITAL
        if len(word) > 1 and all(lower(letter) != letter or letter in ".-'&" for letter in word):
            kinds |= CAPITALS
    return kinds or OTHER


def _is_sign(text: str, word: Word) -> bool:
    """Return whether a word is nothing but a dash, a bar or a slash."""
    return word.inner == word.outer or text[word.start : word.end] in ("|", "/", "•", "·")


def _known_start(text: str, words: list[Word]) -> int:
    """Return where the text starts behind its known edges."""
    at = first = 0
    while (behind := _behind_brackets(text, at)) > at:
        at = behind
    while first < len(words) - 1 and words[first].start < at:
        first += 1
    for _ in range(MOST_PIECES):
        found = _piece_at_start(text, words, first)
        if found is None:
            break
        first, at = found
    return at


def _piece_at_start(text: str, words: list[Word], first: int) -> tuple[int, int] | None:
    """Return the number of the first word behind a known edge at word `first`, and where it starts, or None."""
    while first < len(words) and _is_sign(text, words[first]):
        first += 1  # the dash of "(AFP) - PARIS, May 3 - "
    if behind := _line_behind(text, words, first):
        return behind, words[behind].start
    kinds, capitals, all_capitals = 0, 0, True
    for number in range(first, min(first + NEAR_KNOWN, len(words) - 1)):
        word, sign = words[number], _is_sign(text, words[number])
        if not sign:
            if word.kinds == OTHER:
                return _glued(text, words, number) if words[first].kinds & MARK else None
            kinds, all_capitals = kinds | word.kinds, all_capitals and word.kinds & CAPITALS != 0
            capitals += word.kinds & (CAPITAL | AGENCY) == CAPITAL
        last, begins = text[word.end - 1], words[first].kinds
        enclosed = text[word.start] in OPENS and word.outer < word.end and text[word.outer] in CLOSES
        apart = sign or last == ":" or text[word.outer : word.end].endswith(("--", ".-"))
        line = apart or last == "." or text[word.end] == "\n"
        if (
            (enclosed and word.kinds & AGENCY)
            or (apart and (kinds & AGENCY or begins & MARK))
            or (line and begins & BY and capitals > 1)
            or (sign and all_capitals and number > first)
            or (last == ":" and all_capitals)
        ):
            behind = _behind_signs(text, words, number + 1)
            return behind, words[behind].start
    return None


def _behind_brackets(text: str, at: int) -> int:
    """Return where the text goes on behind brackets at position `at`, as in "[Update] "; `at` without them."""
    start = at
    while start < len(text) and (text[start] in SPACES or text[start] in DASHES):
        start += 1
    if start < len(text) and text[start] in OPENS:
        for place in range(start + 1, min(start + ENCLOSED, len(text) - 1)):
            if text[place] in CLOSES:
                glued = text[place : place + 2]  # "(P)lease"
                return at if glued.isascii() and glued[1].isalnum() else place + 1
    return at


def _before_brackets(text: str, end: int) -> int:
    """Return where brackets begin that end at position `end` behind a sentence, as in ". (dpa)"; `end` without."""
    if text[end - 1] in CLOSES:
        for place in range(end - 2, max(end - 2 - ENCLOSED, 0), -1):
            if text[place] in OPENS:
                before = place - 1
                while before > 0 and text[before] in SPACES:
                    before -= 1
                return place if _ends_sentence(text, before + 1) else end
    return end


def _behind_signs(text: str, words: list[Word], number: int) -> int:
    while number < len(words) - 1 and _is_sign(text, words[number]):
        number += 1
    return number


def _line_behind(text: str, words: list[Word], first: int) -> int:
    """Return the number of the word behind "PARIS, 3 mai (AFP) - ", "@ann" or "3)" at word `first`; 0 without."""
    dated = comma = False
    for number in range(first, min(first + NEAR, len(words) - 1)):
        word, sign = words[number], _is_sign(text, words[number + 1])
        last = text[word.end - 1]
        if number == first and (word.kinds & HANDLE or (word.kinds & NUMBER and last == ")")):
            return number + 1
        closes = any(letter in CLOSES for letter in text[word.outer : word.end])
        slashes = text[word.start] == "/" == text[word.outer : word.outer + 1]  # "/ТАСС/."
        dated |= comma and word.kinds & NUMBER != 0
        comma |= last == ","
        if (closes and (sign or slashes or last == ":" or last in DASHES)) or (dated and sign):
            return _behind_signs(text, words, number + 1)
    return 0


def _glued(text: str, words: list[Word], number: int) -> tuple[int, int] | None:
    """Return as _piece_at_start the end of an edge like "UPDATE 2-" that no space sets apart from the first word."""
    word = words[number]
    at = word.start
    while at < word.end and "0" <= text[at] <= "9":
        at += 1
    return (number, at + 1) if word.start < at < word.end and text[at] == "-" else None


def _known_end(text: str, words: list[Word]) -> int:
    """Return where the text ends before its known edges."""
    stop = _before_brackets(text, words[-1].end)
    end = max(sum(word.start < stop for word in words), 1)
    for _ in range(MOST_PIECES):
        before = _piece_at_end(text, words, end)
        if before == end:
            break
        end = before
    return min(stop if stop < words[-1].end else len(text), words[end].start if end < len(words) else len(text))


def _piece_at_end(text: str, words: list[Word], end: int) -> int:
    """Return the number of the word with which a known edge before word `end` begins; `end` without one."""
    at = end
    while at > 1 and words[at - 1].kinds & (HANDLE | LINK):
        at -= 1
    if at < end:
        return at - 1 if at > 1 and words[at - 1].kinds & SOURCE else at
    closes = text[words[end - 1].end - 1] in ")]"
    for number in range(end - 1, max(end - 1 - NEAR_KNOWN, 0), -1):
        word, begins = words[number], text[words[number].start]
        sign, opened = _is_sign(text, word), closes and begins in "(["
        if sign or opened:
            piece = [one.kinds for one in words[number + sign : end]]
            kinds, names = reduce(or_, piece, 0), bool(piece) and all(one & NAMES for one in piece)
            if sign:
                short = len(piece) <= SHORT_NAME
                known = names and (begins == "|" or kinds & (SITE | AGENCY))
                known = short and (known or _ends_sentence(text, words[number - 1].end))
            else:
                known = word.kinds & SOURCE or kinds & AGENCY or (names and (kinds & SITE or begins == "["))
            return number if known else end
        if number + 1 < end and _begins_more(text, word, words[number + 1]):
            return number
    return end


def _ends_sentence(text: str, end: int) -> bool:
    return any(letter in ENDS for letter in text[max(end - 2, 0) : end])


def _begins_more(text: str, word: Word, following: Word) -> bool:
    """Return whether a word and the one after it begin a line like "Read more at ..." or "Source: ..."."""
    if lower(text[word.start]) == text[word.start] != "©":
        return False
    colon = text[word.end - 1] == ":" or text[following.start : following.end] == ":"
    return bool(
        word.kinds & MORE
        or (word.kinds & BEGINS and following.kinds & GOES_ON)
        or (word.kinds & SOURCE and colon)
        or (word.kinds & RIGHTS and following.kinds & NUMBER)
    )


def _start_set_apart(text: str, words: list[Word]) -> int:
    """Return where the text starts behind the last sign, but a bar, among the first words."""
    found = 0
    for number in range(min(NEAR, len(words) - 1)):
        word = words[number]
        last = text[word.end - 1]
        if (
            (number and _is_sign(text, word) and text[word.start] != "|")
            or last in ":)]"
            or text[word.end - 2 : word.end] == "--"
        ):
            found = words[number + 1].start
    return found


def _end_set_apart(text: str, words: list[Word]) -> int:
    """Return where the text ends before the first sign among the last words."""
    for word in words[-NEAR:]:
        if (_is_sign(text, word) and word is not words[-1]) or text[word.start] in "([":
            return word.start
    return len(text)
