"""Two texts side by side, with the words marked that only one of them has; punctuation and case are not compared.

The output is safe on a terminal: control characters, escape sequences and bidirectional overrides are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from ndd_search.core.text.printable import UNSAFE, safe
from ndd_search.core.text.tokens import words_at
from ndd_search.core.text.unicode_tables import fold

RUN = 3  # words: the default recipe compares runs of three words
SHORT = 12  # words: a shorter text is compared word by word
MOST_SHOWN = 200_000  # characters of a text that are compared and shown
_AROUND = 12  # words shown at each end of a shortened equal stretch
_SHOWN = 160  # words of a text that a report shows


@dataclass(frozen=True)
class Piece:
    """A part of a text. marked: wording that another text has not, or a word of a search."""

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


def side_by_side(first: str, second: str) -> tuple[list[Piece], list[Piece]]:
    """Return both texts on one line. Long equal stretches are shortened to their ends, and texts to _SHOWN words."""
    both = compared(Wording(safe(first[:MOST_SHOWN])), Wording(safe(second[:MOST_SHOWN])))
    return _cut(map(_shortened, both.left)), _cut(map(_shortened, both.right))


def as_html(pieces: list[Piece]) -> str:
    """Return a side as HTML, what the other text does not have marked."""
    return "".join(f"<mark>{escape(one.text)}</mark>" if one.marked else escape(one.text) for one in pieces)


class Wording:
    """The words of a text, and its runs of RUN words; case and punctuation do not count."""

    def __init__(self, text: str) -> None:
        self.text = clean(text)
        self.words = [(start, end, fold(self.text[start:end])) for start, end in words_at(self.text).tolist()]
        self.runs = self._runs(RUN)

    def _runs(self, size: int) -> list[tuple[str, ...]]:
        words = [word for *_, word in self.words]
        return list(zip(*(words[i:] for i in range(size)), strict=False))

    def in_common(self, other: Wording) -> list[int]:
        """Return the places of the words that are in a run which the other text has anywhere, ascending."""
        size = RUN if min(len(self.words), len(other.words)) >= SHORT else 1
        own, others = (self.runs, other.runs) if size == RUN else (self._runs(size), other._runs(size))
        found = set(others)
        return sorted({place for i, run in enumerate(own) if run in found for place in range(i, i + size)})

    def without(self, places: Sequence[int]) -> list[Piece]:
        """Return the text with all words marked but those at some places, neighbours together."""
        kept = set(places)
        own = (place for place in range(len(self.words)) if place not in kept)
        stretches = [[place for _, place in group] for _, group in groupby(enumerate(own), lambda one: one[1] - one[0])]
        return pieces_of(self.text, [(self.words[run[0]][0], self.words[run[-1]][1]) for run in stretches])

    def share(self, places: Sequence[int]) -> float:
        """Return the share of the words that are at some places, 0..1."""
        return len(places) / len(self.words) if self.words else 0.0


def compared(left: Wording, right: Wording) -> Compared:
    """Mark in each of two texts the wording that the other one has not."""
    of_left, of_right = left.in_common(right), right.in_common(left)
    return Compared(left.without(of_left), right.without(of_right), left.share(of_left), right.share(of_right))


def _shortened(piece: Piece) -> Piece:
    places = words_at(piece.text).tolist()
    if piece.marked or len(places) <= 3 * _AROUND:
        return piece
    return Piece(f"{piece.text[: places[_AROUND][0]]}… {piece.text[places[-_AROUND][0] :]}")


def _cut(pieces: Iterable[Piece]) -> list[Piece]:
    shown, left = [], _SHOWN
    for piece in pieces:
        starts = words_at(piece.text)[:, 0].tolist()
        if len(starts) > left:
            shown.append(Piece(piece.text[: starts[left]] + "…", piece.marked))
            break
        shown.append(piece)
        left -= len(starts)
    return shown


def clean(text: str) -> str:
    """Return a text without what acts on a terminal or a page."""
    return UNSAFE.sub("", text.encode("utf-8", "replace").decode()[:MOST_SHOWN])


def pieces_of(text: str, ranges: Sequence[tuple[int, int]], begin: int = 0) -> list[Piece]:
    """Cut a text, from `begin` on, at ascending ranges, which are marked."""
    pieces = []
    for start, end in ranges:
        pieces += [Piece(text[begin:start]), Piece(text[start:end], True)]
        begin = end
    return [piece for piece in (*pieces, Piece(text[begin:])) if piece.text]
