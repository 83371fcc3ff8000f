"""Two texts side by side, with what only one of them has marked: the words that a sketch tells apart, not punctuation.

What is shown is safe on a terminal: control characters, escape sequences and bidirectional overrides are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from ndd_search.text.printable import safe

# A word with what follows it; in scripts that are written without spaces, a character.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"([{_UNSPACED}]|[^\W{_UNSPACED}]+)[^\w]*")
_MOST = 1500  # words of a text that are compared: what is alike in longer ones takes seconds to find
_AROUND = 12  # words left of an equal stretch at its ends
_SHOWN = 160  # words of a text that are shown


@dataclass(frozen=True)
class Piece:
    """Some words of a text. own: the other text does not have them there."""

    text: str
    own: bool


def side_by_side(first: str, second: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts, their long equal stretches shortened to the ends, and cut where they go on for very long."""
    a, b = _words(first), _words(second)
    keys = [[word.casefold() for word, _ in words] for words in (a, b)]
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, start, stop, from_, to in SequenceMatcher(None, keys[0], keys[1], False).get_opcodes():
        for side, words in zip(sides, (a[start:stop], b[from_:to]), strict=True):
            if words:
                side += [Piece(text, kind != "equal") for text in _stretch(words, whole=kind != "equal")]
    return _cut(sides[0]), _cut(sides[1])


def _words(text: str) -> list[tuple[str, str]]:
    """The words of the beginning of a text, and each with what follows it."""
    found: list[tuple[str, str]] = []
    text = safe(text[: 40 * _MOST])
    starts = [match.start() for match in _WORD.finditer(text)]
    starts[:1] = [0] if starts else []  # with what stands before the first word
    for start, end in pairwise([*starts[:_MOST], *(starts[_MOST : _MOST + 1] or [len(text)])]):
        whole = text[start:end]
        found.append((re.sub(r"[\W_]+", "", whole), whole))
    if len(starts) > _MOST:
        found.append(("…", "…"))
    return found


def _stretch(words: list[tuple[str, str]], whole: bool) -> Iterator[str]:
    texts = [text for _, text in words]
    if whole or len(texts) <= 3 * _AROUND:
        yield "".join(texts)
    else:
        yield "".join(texts[:_AROUND]) + "… " + "".join(texts[-_AROUND:])


def _cut(pieces: list[Piece]) -> list[Piece]:
    shown, left = [], _SHOWN
    for piece in pieces:
        words = [match.group() for match in _WORD.finditer(piece.text)]
        if len(words) > left:
            shown.append(Piece("".join(words[:left]) + "…", piece.own))
            break
        shown.append(piece)
        left -= len(words)
    return shown
