"""JSON whose numbers stay as they are: what a Python float cannot hold exactly keeps its text."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from numbers import Number
from typing import Any

from ndd_search.core.exact_numbers import exact_float
from ndd_search.errors import importing

with importing("orjson", "the proxy or the search page", "orjson", "proxy"):
    import orjson

_MARK = secrets.token_hex(8)  # so that no text of a document is taken for a number
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


@dataclass(frozen=True)
class ExactNumber:
    """A number by its text.

    It is no float, as a WrittenNumber is: whatever else writes JSON would round one in silence, and refuses this.
    """

    text: str

    def __str__(self) -> str:
        return self.text


Number.register(ExactNumber)


def loads(text: bytes | str, **hooks: Any) -> Any:
    """Parse JSON. Raises ValueError, or RecursionError for JSON that nests too deep."""
    return json.loads(text, parse_float=_number, parse_constant=ExactNumber, **hooks)


def dumps(value: Any, indent: int | None = None) -> bytes:
    """Return JSON in UTF-8. A lone surrogate, which UTF-8 cannot hold, is escaped, as it was when it was read.

    orjson writes a page of 60 kB in a fortieth of the time. It refuses lone surrogates, numbers beyond 64 bits and deep
    nesting; Python's own writer takes these.
    """
    if indent is None:
        try:
            return orjson.dumps(value, _fragment, orjson.OPT_PASSTHROUGH_DATACLASS)
        except TypeError:
            pass
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent, default=_marked)
    if _MARK in text:
        text = _MARKED.sub(r"\1", text)
    return encoded(text)


def encoded(text: str) -> bytes:
    """Encode JSON text, with lone surrogates escaped."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _number(text: str) -> float | ExactNumber:
    number = exact_float(text)
    return ExactNumber(text) if number is None else number


def _fragment(value: Any) -> orjson.Fragment:
    if isinstance(value, ExactNumber):
        return orjson.Fragment(value.text)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _marked(value: Any) -> str:
    if isinstance(value, ExactNumber):
        return _MARK + value.text
    raise TypeError(f"{type(value).__name__} is not JSON")
