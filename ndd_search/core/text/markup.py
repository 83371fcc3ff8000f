"""Convert HTML to the visible text, with a line break wherever a block begins or ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ndd_search.errors import importing

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_UNSEEN = ["script", "style", "template", "noscript", "noframes", "iframe"]
# All other elements separate words. "wbr" marks a possible line break inside a word.
_INLINE = (
    "a,abbr,acronym,b,bdi,bdo,big,cite,code,data,del,dfn,em,font,html,i,ins,kbd,mark,nobr,q,ruby,s,samp,small,span,"
    "strike,strong,sub,sup,time,tt,u,var,wbr"
)
_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")
_DEEPEST, _PIECE = 20_000, 2_000  # tags


def strip_markup(text: str) -> str:
    """Return the text of an HTML page without scripts, styles and comments, entities resolved.

    A block element (any that is not in _INLINE) adds a line break before and after itself. Malformed HTML is parsed as
    in browsers. Raises MissingExtra without the extra "html".
    """
    text = _UNPRINTABLE.sub(" ", text)  # the parser would drop these characters and join the words around them
    if _depth(text) <= _DEEPEST:
        return _parse(text)
    # The HTML parsing rules take quadratic time on nested blocks, so extremely deep pages are parsed in pieces.
    tags = text.split("<")
    return "\n".join(_parse("<".join(["", *tags[i : i + _PIECE]])) for i in range(0, len(tags), _PIECE))


def title_of(text: str) -> str:
    """Return the title of an HTML page on one line, "" if it has none. Raises MissingExtra without the extra "html"."""
    end = re.search("</title[^>]*>", text, re.IGNORECASE)
    head = _UNPRINTABLE.sub(" ", text[: end.end()] if end else "")
    title = _tree(head).css_first("title") if _depth(head) <= _PIECE else None
    return " ".join(title.text().split()) if title else ""


def _tree(text: str) -> LexborHTMLParser:
    with importing("selectolax", "reading HTML", "selectolax", "html"):
        from selectolax.lexbor import LexborHTMLParser
    return LexborHTMLParser(text)


def _parse(text: str) -> str:
    tree = _tree(text)
    tree.strip_tags(_UNSEEN)
    for block in tree.css(f"*:not({_INLINE})"):
        block.insert_before("\n")
        block.insert_after("\n")
    return str(tree.text())


def _depth(text: str) -> int:
    """Return an upper bound of the nesting depth; void elements count as never closed."""
    points = np.frombuffer(text.encode("latin-1", "replace") + b" ", np.uint8)
    opening = np.flatnonzero(points == ord("<"))
    steps = np.where(points[opening + 1] == ord("/"), -1, 1)
    return int(np.cumsum(steps).max(initial=0))
