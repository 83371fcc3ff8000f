"""Packs the sketches in an answer before it is parsed: a parser reads 64 integers more slowly than one text of base64.

Sketches that are stored as integers come as lists of integers, which make up most of an answer and of the time to parse
it. In the hits' `fields` each such list becomes what a packed sketch looks like there, so `SketchField.decode` reads
both. Only a field that the caller does not request is packed. Without the native core nothing is.
"""

from __future__ import annotations

from typing import Any

from ndd_search import native


def packed(text: Any, field: str) -> Any:
    """Return the JSON of an answer, str or bytes, with the integers of a field packed. Anything else is unchanged."""
    if native.core is None or not isinstance(text, str | bytes):
        return text
    return native.core.packed_answer(text, f'"{field}"'.encode()) or text
