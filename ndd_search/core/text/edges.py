"""Find the edges of a short text: what agencies, sites and people add before and after a text that they pass on.

An edge is a dateline, a byline, a mark (UPDATE 2 -, RT @name:), a source, the name of a site, "Read more at ...", a tag
or a link. Signs and capitals show it, in any language, and before a byline one of six words.

At the end of a text one sign is enough: the tail begins with the first bracket, link, name with @ or # among the last
TAIL characters, at the first dash or bar there, or behind a sentence that ends among the last SENTENCE, if no colon
follows, as in a form ("... Place: Leeds"). It is a part of the last paragraph: a heading and a text have an empty line
between them.

At the start, where forms have their slots ("Leeds: cloudy ..."), one sign shows none, but two signs together do:

* brackets, and a dash or colon behind them, or short ones at the very start ("【速報】");
* a word in capitals in brackets, and a full stop beside them, behind names or a date ("Wien. (APA) ");
* a date behind a comma, and a dash ("LEEDS, May 3 - ");
* words in capitals, and then a dash, bar or colon ("BREAKING: ", "UPDATE 2-");
* a word of BYLINES, two names, and the end of a line or sentence ("By Anna Smith. ").

A line has edges of its own, since it may be a field of the document: a title that ends with the name of a site, a
description that repeats the title with its mark, or begins with a dateline.

Everything is bounded: texts of at most MOST characters are read, and of each line the first MOST_WORDS words.
The native core does the same (native/edges.h).
"""

from __future__ import annotations

from typing import NamedTuple

MOST, MOST_MARKED = 1280, 64  # characters, shingles: an edge is a small part of longer texts, which have none
LEAST_INSIDE, LEAST_SHARE = 24, 0.4  # characters that are left between the edges, and their share of the text
MOST_PIECES, NEAR_NAMES = 4, 12  # edges at the start, words of one
ENCLOSED = 32  # characters in brackets at the very start
MOST_SHORT = 3  # letters of a word that may join names
BYLINES = frozenset({"by", "von", "par", "por", "di", "da"})
TAIL, SENTENCE = 60, 40  # last characters in which a tail begins: by any sign, by the end of a sentence
MOST_WORDS, NEAR = 26, 8  # words that are read, words of a dateline

SHORT, CAPITAL, CAPITALS, NUMBER, HANDLE, BY = (1 << i for i in range(6))  # kinds of words, others have none

CASELESS = "\u0590"  # the first letter of the scripts without capitals, whose words all count as names
BLANKS = "\t\n\r \u00a0\u3000"
SPACES = frozenset(BLANKS)
OPENS, CLOSES = frozenset("([{/【（［〔"), frozenset(")]}/】）］〕")
BEFORE, AFTER = frozenset("([{/\"'“”„«‘"), frozenset(")]}/\"'“”»’.,:;!?…-–—")
DASHES, ENDS = frozenset("-–—"), frozenset(".!?…।。！？؟۔")
COLONS = ":："
BEGIN_TAILS, SIGNS, LINKS = OPENS | {"#", "@"}, DASHES | {"|", "•", "·"}, ("http://", "https://", "www.")


class Word(NamedTuple):
    """A word between spaces: text[start:end], of which text[inner:outer] is without punctuation."""

    start: int
    end: int
    inner: int
    outer: int
    kinds: int


def between_edges(text: str) -> list[tuple[int, int]]:
    """Return the parts of a text that are no edges, one of each line: where they start and end, in characters."""
    start, end = _between_edges(text)
    breaks = [at for at in range(start, end) if text[at] == "\n"] if len(text) <= MOST else []
    if not breaks:
        return [(start, end)]
    lines = list(zip([start, *(at + 1 for at in breaks)], [*breaks, end], strict=True))
    parts = [(first + at, first + stop) for first, last in lines for at, stop in [_between_edges(text[first:last])]]
    return [(start, parts[0][1]), *parts[1:-1], (parts[-1][0], end)]


def behind_edges(text: str) -> str:
    """Return a text without the edges at the start of its lines."""
    parts = between_edges(text)
    stops = [text.index("\n", end) for _, end in parts[:-1]]
    return "\n".join(text[start:stop] for (start, _), stop in zip(parts, [*stops, len(text)], strict=True))


def _between_edges(text: str) -> tuple[int, int]:
    """Return where the text between the edges starts and ends, apart from those of its lines."""
    least, end = max(LEAST_INSIDE, LEAST_SHARE * len(text)), len(text)
    if len(text) > MOST or not (words := _words(text)):
        return 0, end
    if (tail := _tail(text)) >= least:
        end = tail
    start = _start(text, words)
    return (start, end) if end - start >= least else (0, end)


def lower(letter: str) -> str:
    """Return the small letter of a Latin, Greek or Cyrillic one."""
    code = ord(letter)
    if "A" <= letter <= "Z" or ("À" <= letter <= "Þ" and letter != "×") or "Α" <= letter <= "Ω" or "А" <= letter <= "Я":
        return chr(code + 32)
    if 0x100 <= code < 0x180:
        return chr(code + (code % 2 == (0x139 <= code < 0x14A or code > 0x178)))
    return letter


def _words(text: str) -> list[Word]:
    """Return the first MOST_WORDS words."""
    found, at = list[Word](), 0
    while at < len(text) and len(found) < MOST_WORDS:
        if text[at] in SPACES:
            at += 1
            continue
        start = at
        while at < len(text) and text[at] not in SPACES:
            at += 1
        inner, outer = start, at
        while inner < outer and text[inner] in BEFORE:
            inner += 1
        while outer > inner and text[outer - 1] in AFTER:
            outer -= 1
        found.append(Word(start, at, inner, outer, _kinds(text[inner:outer])))
    return found


def _kinds(word: str) -> int:
    if not word:
        return 0
    if word[0] in "@#":
        return HANDLE
    if all("0" <= letter <= "9" or letter in ".:-/" for letter in word):
        return NUMBER
    kinds = SHORT if len(word) <= MOST_SHORT and word[0] < CASELESS else 0
    if kinds and "".join(map(lower, word)) in BYLINES:
        kinds |= BY
    if lower(word[0]) != word[0] or word[0] >= CASELESS:
        kinds |= CAPITAL
        if len(word) > 1 and all(lower(letter) != letter or letter in ".-'&" for letter in word):
            kinds |= CAPITALS
    return kinds


def _is_sign(text: str, word: Word) -> bool:
    """Return whether a word is nothing but signs, as a dash or a bar."""
    return word.inner == word.outer or text[word.start : word.end] in ("|", "•", "·")


def _start(text: str, words: list[Word]) -> int:
    """Return where the text starts behind its edges."""
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
    """Return the number of the first word behind an edge at word `first`, and where it starts, or None."""
    while first < len(words) and _is_sign(text, words[first]):
        first += 1  # the dash of "(AFP) - PARIS, May 3 - "
    if behind := _line_behind(text, words, first):
        return behind, words[behind].start
    names, all_capitals = 0, True
    for number in range(first, min(first + NEAR_NAMES, len(words) - 1)):
        word, sign = words[number], _is_sign(text, words[number])
        if not sign:
            if not word.kinds:
                return _glued(text, word, number) if names and all_capitals else None
            all_capitals = all_capitals and word.kinds & (CAPITALS | NUMBER | HANDLE) != 0
            names += word.kinds & CAPITAL != 0
        last = text[word.end - 1]
        apart = sign or last == ":"
        begins = words[first].kinds
        if (apart and names and all_capitals) or (
            (apart or last == "." or text[word.end] == "\n") and begins & BY and names >= 2 + (begins & CAPITAL != 0)
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
                return place + 1
    return at


def _behind_signs(text: str, words: list[Word], number: int) -> int:
    while number < len(words) - 1 and _is_sign(text, words[number]):
        number += 1
    return number


def _line_behind(text: str, words: list[Word], first: int) -> int:
    """Return the number of the word behind "PARIS, 3 mai (AFP) - ", "@ann" or "3)" at word `first`; 0 without."""
    dated = comma = False
    named = True  # whether all words are names or numbers
    for number in range(first, min(first + NEAR, len(words) - 1)):
        word, sign = words[number], _is_sign(text, words[number + 1])
        last = text[word.end - 1]
        if number == first and (word.kinds & HANDLE or (word.kinds & NUMBER and last == ")")):
            return number + 1
        closes = any(letter in CLOSES for letter in text[word.outer : word.end])
        dated |= comma and word.kinds & NUMBER != 0
        comma |= last == ","
        named = named and word.kinds & (CAPITAL | NUMBER) != 0
        agency = text[word.start] in OPENS and word.kinds & CAPITALS and (named or dated)  # "/ТАСС/. ", "Wien. (APA) "
        stop = agency and "." in (last, text[words[number - 1].end - 1] if number else "")
        if (closes and (sign or stop or last == ":" or last in DASHES)) or (dated and sign):
            return _behind_signs(text, words, number + 1)
    return 0


def _glued(text: str, word: Word, number: int) -> tuple[int, int] | None:
    """Return as _piece_at_start the end of an edge that no space sets apart: "UPDATE 2-Oil", but not "US 2-year"."""
    at = word.start
    while at < word.end and "0" <= text[at] <= "9":
        at += 1
    is_edge = word.start < at < word.end - 1 and text[at] == "-" and _kinds(text[at + 1 : word.end]) & CAPITAL
    return (number, at + 1) if is_edge else None


def _tail(text: str) -> int:
    """Return where the tail of a text begins; its length without one."""
    colon, sentence = max(text.rfind(letter) for letter in COLONS), len(text) - SENTENCE
    last = len(text.rstrip(BLANKS)) - 1
    paragraph = len(text[: max(text.rfind("\n\n", 0, last), 0)].rstrip("\n"))
    for at in range(max(len(text) - TAIL, len(text) // 2, paragraph, 1), last):
        before, letter = text[at - 1], text[at]
        spaced = before in SPACES
        if (
            (letter in BEGIN_TAILS and (spaced or max(before, letter) >= CASELESS))
            or (spaced and ((letter in SIGNS and text[at + 1] in SPACES) or text.startswith(LINKS, at)))
            or (at >= max(sentence, colon) and before in ENDS and (letter in SPACES or before >= CASELESS))
        ):
            return at
    return len(text)
