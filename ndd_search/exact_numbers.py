"""Decimal numbers as they are written, where a float has exactly their value."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from math import isfinite

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
