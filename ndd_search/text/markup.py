"""HTML to text: what a reader would see, with a line break wherever a block begins or ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ndd_search.errors import importing

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_UNSEEN = ["script", "style", "template", "noscript", "noframes", "iframe"]
# Everything else separates words. "wbr" only offers a place to break one.
_INLINE = (
    "a,abbr,acronym,b,bdi,bdo,big,cite,code,data,del,dfn,em,font,html,i,ins,kbd,mark,nobr,q,ruby,s,samp,small,span,"
    "strike,strong,sub,sup,time,tt,u,var,wbr"
)
_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")
_DEEPEST, _PIECE = 20_000, 2_000  # tags


def strip_markup(text: str) -> str:
    """The text of an HTML page: scripts, styles and comments gone, entities resolved.

    A block element (any that is not known to be inline) puts a line break before and after itself. Broken HTML is
    read as browsers read it. Raises MissingExtra without the extra "html".
    """
    text = _UNPRINTABLE.sub(" ", text)  # the parser would drop them and join what they separate
    if _depth(text) <= _DEEPEST:
        return _parse(text)
    # Browsers' rules take quadratic time on nested blocks: pages nested beyond reason are read in pieces.
    tags = text.split("<")
    return "\n".join(_parse("<".join(["", *tags[i : i + _PIECE]])) for i in range(0, len(tags), _PIECE))


def title_of(text: str) -> str:
    """The title of an HTML page on one line, "" when it has none. Raises MissingExtra without the extra "html"."""
    end = re.search("</title[^>]*>", text, re.IGNORECASE)
    head = _UNPRINTABLE.sub(" ", text[: end.end()] if end else "")
    found = _tree(head).css_first("title") if _depth(head) <= _PIECE else None
    return " ".join(found.text().split()) if found else ""


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
    """How deep tags can be nested at most; void elements count as never closed."""
    points = np.frombuffer(text.encode("latin-1", "replace") + b" ", np.uint8)
    opening = np.flatnonzero(points == ord("<"))
    steps = np.where(points[opening + 1] == ord("/"), -1, 1)
    return int(np.cumsum(steps).max(initial=0))
