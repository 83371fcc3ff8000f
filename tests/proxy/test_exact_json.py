"""JSON that passes through the proxy keeps its values, whatever reads it afterwards."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.serving.proxy.wire_format import dumps, loads

NUMBERS = st.one_of(
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1e400", "-0.0", "0.10000000000000000001", "18446744073709551616", "1E+5", "NaN", "-Infinity"]),
)
TEXTS = st.text(st.characters(exclude_categories=())).map(json.dumps)  # with lone surrogates
VALUES = st.recursive(
    NUMBERS | TEXTS | st.sampled_from(["null", "true", "false"]),
    lambda parts: (
        st.lists(parts).map(lambda listed: f"[{','.join(listed)}]")
        | st.dictionaries(TEXTS, parts).map(lambda named: f"{{{','.join(map(':'.join, named.items()))}}}")
    ),
    max_leaves=10,
)


def exact(text: str | bytes) -> Any:
    """Parse JSON with numbers as they are."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=str)


@given(VALUES)
def test_values_are_the_same_after_reading_and_writing(text: str) -> None:
    assert exact(dumps(loads(text))) == exact(dumps(loads(text), indent=2)) == exact(text)


def test_deep_nesting_is_written() -> None:
    text = b"[" * 400 + b"]" * 400
    assert dumps(loads(text)) == text


@pytest.mark.parametrize("text", [b"1e-9999999999999999999", b"[0.0E9999999999999999999,1e9999999999999999999]"])
def test_a_number_whose_exponent_no_decimal_holds_keeps_its_text(text: bytes) -> None:
    assert dumps(loads(text)) == text
