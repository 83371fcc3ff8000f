"""Makes text safe to print on a terminal (no control characters, escape sequences or bidirectional overrides)."""

from __future__ import annotations

import re

# Both sets of control characters, and characters that change the direction of text. Line feeds and tabs are harmless.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_JOINERS = "\u200c\u200d"  # parts of words in Persian and the scripts of India


def printable(text: str) -> str:
    """Replace every character that would control a terminal by an escape such as \\x1b.

    Line feeds and tabs stay, as do joiners, which are parts of words.
    """
    return UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def safe(text: str) -> str:
    """Put text on one line: every run of unprintable characters and spaces becomes one space."""
    shown = "".join(character if character.isprintable() or character in _JOINERS else " " for character in text)
    return " ".join(shown.split())


def many(count: int, what: str) -> str:
    """Return a count with its noun, in the plural unless it is 1."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
