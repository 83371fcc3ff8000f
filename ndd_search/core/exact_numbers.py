"""Numbers of JSON that keep all their digits: those that no float has exactly know how they are written."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

_SURELY_EXACT = 16  # characters of a number with at most 15 digits, which a float always keeps


def exact_float(text: str) -> float | None:
    """Return the float of a JSON number, None if the number that Python writes for it has another value.

    So 0.10 and 1e22 are floats; 0.10000000000000000001, 1e400 and 1e-400 are not.
    """
    number = float(text)
    if len(text) <= _SURELY_EXACT and "e" not in text and "E" not in text:
        return number
    written = repr(number)
    if written == text:
        return number
    try:
        return number if isfinite(number) and Decimal(written) == Decimal(text) else None
    except InvalidOperation:  # an exponent of 19 digits and more, which no Decimal holds
        return None


class WrittenNumber(float):
    """A number of a JSON text that no float has exactly, such as 3.14159265358979323846. text: as it is written."""

    text: str

    @classmethod
    def of(cls, text: str) -> float:
        """Return a plain float if it has the value of the text."""
        if (number := exact_float(text)) is not None:
            return number
        written = cls(text)
        written.text = text
        return written


def json_with_written(text: bytes | str, **hooks: Any) -> Any:
    """Parse JSON; numbers that no float has exactly are WrittenNumber.

    hooks: further arguments of json.loads. Raises ValueError, or RecursionError for JSON that nests too deep.
    """
    return json.loads(text, parse_float=WrittenNumber.of, **hooks)


def holds_written(value: Any) -> bool:
    """Whether a value is a WrittenNumber, or holds one at any depth."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, WrittenNumber):
            return True
        if isinstance(one, dict | list):
            stack.extend(one.values() if isinstance(one, dict) else one)
    return False
