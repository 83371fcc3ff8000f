"""The texts of documents as the page shows them: title, text, the passage with the words of the search, dates.

Control characters and characters that change the direction of text are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ndd_search.core.document_fields import text_of
from ndd_search.core.text.printable import safe
from ndd_search.core.text.tokens import words_at
from ndd_search.reports.side_by_side import MOST_SHOWN, Piece, Wording, clean
from ndd_search.serving.ui.searcher import MARKS

TITLES = ("title", "headline", "name", "subject", "heading")
PASSAGE = 280  # characters
_TEXTS = ("body", "text", "content", "description", "summary", "message", "abstract")
_LONGEST_TITLE, _LONGEST_PASSAGE = 160, 2 * PASSAGE  # characters; an engine ends a passage with its sentence
_TELLING, _LONGEST_WORD = 30, 50  # words with which copies of a text are searched for, and their characters
_MILLISECONDS = re.compile(r"-?\d{11,14}", re.ASCII)


@dataclass(frozen=True)
class Texts:
    """The texts of a hit. title, passage: on one line, with the matched words marked. text: the whole."""

    title: list[Piece]
    text: str
    passage: list[Piece]

    @property
    def name(self) -> str:
        """The title without marks."""
        return "".join(piece.text for piece in self.title)


def texts_of(hit: Mapping[str, Any], names: Sequence[str]) -> Texts:
    """Return the texts of a hit.

    names: its text fields, () if they are not known: then fields are chosen by their names, else the longest text.
    A document without title gets the beginning of its text.
    """
    document, marked = hit.get("_source") or {}, hit.get("highlight") or {}
    head, bodies = named_fields(document, names)
    text = clean(text_of(document, bodies) or "")
    begin, start = shortened(safe(text[:1000]), 80), shortened(safe(text[:1000]), PASSAGE)
    title = _pieces(_marked(marked, [head]) or document[head][:1000], _LONGEST_TITLE) if head else []
    passage = _pieces(_marked(marked, bodies), _LONGEST_PASSAGE)
    return Texts(title or [Piece(begin or "(no text)")], text, _between(passage, text) or [Piece(start)])


def named_fields(document: Mapping[str, Any], names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of the field of the title, "" if there is none, and those of the text. names: see texts_of."""
    strings = [name for name in names or document if isinstance(document.get(name), str)]
    head = next((name for name in TITLES if name in strings), strings[0] if names and len(strings) > 1 else "")
    if names:
        return head, [name for name in names if name != head]
    rest = [name for name in strings if name != head]
    longest = sorted(rest, key=lambda name: -len(document[name]))
    return head, ([name for name in _TEXTS if name in rest] or longest)[:1]


def _marked(highlight: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """Return the passage of the first of some fields, or of a part of it such as body.english, that has one."""
    found = (highlight[key] for name in names for key in highlight if key == name or key.startswith(f"{name}."))
    return next((passages[0] for passages in found if passages), "")


def _pieces(passage: str, most: int) -> list[Piece]:
    """Cut a passage at its MARKS, and at `most` characters."""
    made = []
    for place, part in enumerate(re.split(f"[{''.join(MARKS)}]", passage)):
        line = safe(f"|{part}|")[1:-1]  # with the spaces at its ends
        made.append(Piece(shortened(line, most), marked=place % 2 == 1))
        if (most := most - len(line)) <= 0:
            break
    return [piece for piece in made if piece.text] if passage.strip() else []


def _between(passage: list[Piece], text: str) -> list[Piece]:
    """Return a passage with dots at those of its ends where the text goes on."""
    plain, whole = "".join(piece.text for piece in passage).strip(), safe(text)
    before, after = not whole.startswith(plain), not whole.rstrip(".!?").endswith(plain.rstrip(".!?"))
    return [Piece("… ")] * before + passage + [Piece(" …")] * (after and not plain.endswith("…"))


def shortened(text: str, length: int) -> str:
    """Return the beginning of a text of one line, cut between words if there is a space."""
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[length // 2 :] else cut}…"


def telling_words(text: str) -> str:
    """Return a search that finds copies of a text: its longest words."""
    words = {text[start:end].lower() for start, end in words_at(text[:MOST_SHOWN]).tolist()}
    return " ".join(
        sorted((word for word in words if len(word) <= _LONGEST_WORD), key=lambda word: (-len(word), word))[:_TELLING]
    )


def moment(text: str) -> tuple[str, str]:
    """Return a date for machines and for people: "2026-09-03T00:00Z" gives ("2026-09-03", "3 September 2026").

    text: in ISO 8601, as a month ("2026-09"), or in milliseconds since 1970. Any other is returned as it is, with "".
    """
    with suppress(ValueError, OverflowError, OSError):
        if len(text) == len("2026-09"):
            return text, f"{datetime.fromisoformat(f'{text}-01'):%B %Y}"
        when = (
            datetime.fromtimestamp(int(text) / 1000, UTC)
            if _MILLISECONDS.fullmatch(text)
            else datetime.fromisoformat(text)
        )
        when = when.astimezone(UTC) if when.tzinfo else when
        day = f"{when.day} {when:%B} {when.year}"
        if when.hour or when.minute or when.second:
            return f"{when:%Y-%m-%dT%H:%M:%SZ}", f"{day}, {when:%H:%M} UTC"
        return f"{when:%Y-%m-%d}", day
    return "", text


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
