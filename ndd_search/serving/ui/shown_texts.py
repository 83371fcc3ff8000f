"""The texts of documents as the page shows them: title, passage with the words of the search, differences.

Control characters and characters that change the direction of text are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ndd_search.core.document_fields import text_of
from ndd_search.core.text.printable import safe
from ndd_search.core.text.tokens import words_at
from ndd_search.core.text.unicode_tables import fold
from ndd_search.reports.side_by_side import MOST_SHOWN, Piece, Wording, clean, pieces_of

_TITLES = ("title", "headline", "name", "subject", "heading")
_TEXTS = ("body", "text", "content", "description", "summary", "message", "abstract")
_LONGEST_TITLE, _PASSAGE = 160, 280  # characters
_MOST_PLACES = 200  # words of a search found in a text, around which its passage may be
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
    text = clean(text_of(document, bodies) or "")
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
    pieces = pieces_of(line[:end], within, begin)
    return [Piece("… ")] * (begin > 0) + pieces + [Piece(" …")] * (end < len(line))


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


def _stem(word: str) -> str:
    folded = fold(word)
    return folded if len(folded) <= _SHORT else folded[: max(_SHORT, len(folded) - _ENDING)]
