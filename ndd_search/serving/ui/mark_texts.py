"""The texts of documents as the page shows them: title, passage with the words of the search, differences.

Control characters and characters that change the direction of text are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ndd_search.core.document_fields import text_of
from ndd_search.core.text.printable import UNSAFE, safe
from ndd_search.core.text.tokens import words_at
from ndd_search.core.text.unicode_tables import fold

_TITLES = ("title", "headline", "name", "subject", "heading")
_TEXTS = ("body", "text", "content", "description", "summary", "message", "abstract")
_LONGEST_TITLE, _PASSAGE = 160, 280  # characters
_MOST_PLACES = 200  # words of a search found in a text, around which its passage may be
MOST_SHOWN = 200_000  # characters of a text that are compared and shown
RUN = 3  # words: the default recipe compares runs of three words
_OPERATORS = re.compile(r"\b(?:AND|OR|NOT|TO)\b|[\w.@]+:")
_SHORT, _ENDING = 4, 3  # letters of a word that is compared whole, and at the end in which longer ones may differ

# Words that tell nothing about a text, in English, French, German, Spanish and Italian.
_STOP_TEXT = """
a an and are as at be but by for from has have he in into is it its no not of on or she so than that the their they this
to was we were what when which who will with you au aux ce dans de des du elle en est et il la le les ne on ou par pas
pour que qui sur un une am auf aus bei das dem den der die ein eine es für im ist mit nicht oder sie sind und von vor
wie zu zum zur al como con del el las lo los más mi para por se sin su sus y che da di gli i nel non per più sono
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Piece:
    """A part of a text. marked: a word of the search, or wording that another text has not."""

    text: str
    marked: bool = False


@dataclass(frozen=True)
class Compared:
    """Two texts, with the wording marked that the other one has not.

    left, right: the texts. of_left, of_right: shares of their words that are in shared runs, 0..1.
    """

    left: list[Piece]
    right: list[Piece]
    of_left: float
    of_right: float


def title_and_text(document: Document, names: Sequence[str]) -> tuple[str, str]:
    """Return title and text of a document.

    names: its text fields, () if they are not known: then fields are chosen by their names, else the longest text.
    A document without title gets the beginning of its text.
    """
    strings = [name for name in names or document if isinstance(document.get(name), str)]
    head = next((name for name in _TITLES if name in strings), strings[0] if names and len(strings) > 1 else "")
    bodies = [name for name in names if name != head]
    if not names:
        rest = [name for name in strings if name != head]
        bodies = [name for name in _TEXTS if name in rest][:1] or sorted(rest, key=lambda name: -len(document[name]))[
            :1
        ]
    text = _clean(text_of(document, bodies) or "")
    title = shortened(safe(document[head][:1000]), _LONGEST_TITLE) if head else ""
    return title or shortened(safe(text[:1000]), 80) or "(no text)", text


def shortened(text: str, length: int) -> str:
    """Return the beginning of a text of one line, cut between words if there is a space."""
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[length // 2 :] else cut}…"


def passage(text: str, q: str) -> list[Piece]:
    """Return the part of a text with the most different words of a search, these marked."""
    asked = _OPERATORS.sub(" ", q)
    typed = {fold(asked[start:end]) for start, end in words_at(asked).tolist()}
    stems = {_stem(word) for word in typed - _STOP_WORDS or typed}
    line = safe(text[:MOST_SHOWN])
    words = [(start, end, _stem(line[start:end])) for start, end in words_at(line).tolist()]
    places = [(start, stem) for start, _, stem in words if stem in stems][:_MOST_PLACES]
    first = max(
        (start for start, _ in places),
        key=lambda start: len({stem for place, stem in places if start <= place < start + _PASSAGE}),
        default=0,
    )
    begin = line.rfind(" ", 0, max(first - 60, 0)) + 1 if first > 60 else 0
    end = begin + _PASSAGE if len(line) <= begin + _PASSAGE or " " not in line[begin : begin + _PASSAGE] else 0
    end = end or line.rfind(" ", begin, begin + _PASSAGE)
    within = [(start, stop) for start, stop, stem in words if begin <= start and stop <= end and stem in stems]
    pieces = _pieces(line[:end], within, begin)
    return [Piece("… ")] * (begin > 0) + pieces + [Piece(" …")] * (end < len(line))


class Wording:
    """The words of a text, and its runs of RUN words; case and punctuation do not count."""

    def __init__(self, text: str) -> None:
        self.text = _clean(text)
        self.words = [(start, end, fold(self.text[start:end])) for start, end in words_at(self.text).tolist()]
        self.runs = self._runs(RUN)

    def _runs(self, size: int) -> list[tuple[str, ...]]:
        words = [word for *_, word in self.words]
        return list(zip(*(words[i:] for i in range(size)), strict=False))

    def in_common(self, other: Wording) -> list[int]:
        """Return the places of the words that are in a run which the other text has anywhere, ascending.

        Texts of fewer than RUN words are compared by shorter runs.
        """
        size = max(1, min(RUN, len(self.words), len(other.words)))
        own, others = (self.runs, other.runs) if size == RUN else (self._runs(size), other._runs(size))
        found = set(others)
        return sorted({place for i, run in enumerate(own) if run in found for place in range(i, i + size)})

    def without(self, places: Sequence[int]) -> list[Piece]:
        """Return the text with all words marked but those at some places, neighbours together."""
        kept = set(places)
        own = (place for place in range(len(self.words)) if place not in kept)
        stretches = [[place for _, place in group] for _, group in groupby(enumerate(own), lambda one: one[1] - one[0])]
        return _pieces(self.text, [(self.words[run[0]][0], self.words[run[-1]][1]) for run in stretches])

    def share(self, places: Sequence[int]) -> float:
        """Return the share of the words that are at some places, 0..1."""
        return len(places) / len(self.words) if self.words else 0.0


def compared(left: Wording, right: Wording) -> Compared:
    """Mark in each of two texts the wording that the other one has not."""
    of_left, of_right = left.in_common(right), right.in_common(left)
    return Compared(left.without(of_left), right.without(of_right), left.share(of_left), right.share(of_right))


def reason(leader: Wording, copy: Wording) -> str:
    """Return a phrase that names what a text shares with its leader."""
    of_leader, of_copy = leader.share(leader.in_common(copy)), copy.share(copy.in_common(leader))
    if of_leader == of_copy == 1:
        return "the same wording"
    if of_copy == 1:
        return "a part of the text above"
    if of_leader == 1:
        return "the whole text above, and more"
    return f"{of_copy:.0%} of its wording is in the text above"


def _clean(text: str) -> str:
    return UNSAFE.sub("", text.encode("utf-8", "replace").decode()[:MOST_SHOWN])


def _stem(word: str) -> str:
    folded = fold(word)
    return folded if len(folded) <= _SHORT else folded[: max(_SHORT, len(folded) - _ENDING)]


def _pieces(text: str, ranges: Sequence[tuple[int, int]], begin: int = 0) -> list[Piece]:
    """Cut a text, from `begin` on, at ascending ranges, which are marked."""
    pieces = []
    for start, end in ranges:
        pieces += [Piece(text[begin:start]), Piece(text[start:end], True)]
        begin = end
    return [piece for piece in (*pieces, Piece(text[begin:])) if piece.text]
