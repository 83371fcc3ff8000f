"""Two texts side by side, with the words marked that only one of them has; punctuation and case are not compared.

The output is safe on a terminal: control characters, escape sequences and bidirectional overrides are removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from itertools import pairwise

from ndd_search.core.text.printable import safe
from ndd_search.core.text.tokens import words_at
from ndd_search.core.text.unicode_tables import fold

_MOST = 1500  # words of a text that are compared; longer texts would take seconds
_AROUND = 12  # words shown at each end of a shortened equal stretch
_SHOWN = 160  # words of a text that are shown


@dataclass(frozen=True)
class Piece:
    """A run of words of a text. own: the other text does not have them at this position."""

    text: str
    own: bool


def side_by_side(first: str, second: str) -> tuple[list[Piece], list[Piece]]:
    """Return both texts as pieces. Long equal stretches are shortened to their ends, and texts to _SHOWN words."""
    a, b = _words(first), _words(second)
    keys = [[word for word, _ in words] for words in (a, b)]
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, start, stop, from_, to in SequenceMatcher(None, keys[0], keys[1], False).get_opcodes():
        for side, words in zip(sides, (a[start:stop], b[from_:to]), strict=True):
            if words:
                side += [Piece(text, kind != "equal") for text in _stretch(words, whole=kind != "equal")]
    return _cut(sides[0]), _cut(sides[1])


def as_html(pieces: list[Piece]) -> str:
    """Return a side as HTML, what the other text does not have marked."""
    return "".join(f"<mark>{escape(one.text)}</mark>" if one.own else escape(one.text) for one in pieces)


def _words(text: str) -> list[tuple[str, str]]:
    """Return the first _MOST words of a text, each as (folded word, word with the characters that follow)."""
    text = safe(text[: 40 * _MOST])
    places = words_at(text).tolist()
    folded = [fold(text[start:end]) for start, end in places[:_MOST]]
    starts = [start for start, _ in places]
    starts[:1] = [0] if starts else []  # the first piece includes what precedes the first word
    pieces = pairwise([*starts[:_MOST], *(starts[_MOST : _MOST + 1] or [len(text)])])
    words = [(word, text[start:end]) for word, (start, end) in zip(folded, pieces, strict=True)]
    return [*words, ("…", "…")] if len(starts) > _MOST else words


def _stretch(words: list[tuple[str, str]], whole: bool) -> Iterator[str]:
    texts = [text for _, text in words]
    if whole or len(texts) <= 3 * _AROUND:
        yield "".join(texts)
    else:
        yield "".join(texts[:_AROUND]) + "… " + "".join(texts[-_AROUND:])


def _cut(pieces: list[Piece]) -> list[Piece]:
    shown, left = [], _SHOWN
    for piece in pieces:
        starts = words_at(piece.text)[:, 0].tolist()
        if len(starts) > left:
            shown.append(Piece(piece.text[: starts[left]] + "…", piece.own))
            break
        shown.append(piece)
        left -= len(starts)
    return shown
