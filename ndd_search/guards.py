"""Which similar pairs count: guards against merging what only looks alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.config import CollapseOptions
from ndd_search.pairs import Pairs, Rows
from ndd_search.similarity import estimated_shingles

Value = Callable[[Any, str], Any]


def allowed(
    pairs: Pairs, rows: Rows, hits: Sequence[Any], value: Value, options: CollapseOptions
) -> dict[str, npt.NDArray[np.bool_]]:
    """For each guard that is on, by name, which pairs it lets count; bool, shape (len(pairs),).

    value(hit, field) reads a field of a hit, None where it has none.
    """
    first, second = pairs.first, pairs.second
    verdicts = {"min_shingles": _long_enough(pairs, rows, options.min_shingles)}
    if options.min_length_ratio:
        sizes = estimated_shingles(rows.lengths, rows.largest, rows.k)
        ratio = np.minimum(sizes[first], sizes[second]) / np.maximum(sizes[first], sizes[second])
        verdicts["min_length_ratio"] = ratio >= options.min_length_ratio
    if not len(pairs):  # what follows reads fields of all hits, for nothing
        return verdicts
    for field in options.must_match:
        codes: dict[str, int] = {}
        of = np.array([codes.setdefault(repr(value(hit, field)), len(codes)) for hit in hits])
        verdicts[f"must_match {field}"] = of[first] == of[second]
    if options.time_field is not None and options.max_seconds_apart is not None:
        times = np.array([seconds_since_1970(value(hit, options.time_field)) for hit in hits])
        verdicts["max_seconds_apart"] = np.abs(times[first] - times[second]) <= options.max_seconds_apart
    return verdicts


def seconds_since_1970(value: Any) -> float:
    """Read a time: a datetime, an ISO 8601 text, or a number of seconds or milliseconds; NaN for anything else.

    A time without a zone is taken as UTC. A number above 1e11 (the year 5138 in seconds) is milliseconds.
    """
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    try:
        if isinstance(value, str):
            value = float(value) if value.lstrip("-").replace(".", "", 1).isdigit() else datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value / 1000 if abs(value) > 1e11 else float(value)
    except (ValueError, OverflowError):
        pass
    return float("nan")


def _long_enough(pairs: Pairs, rows: Rows, least: int) -> npt.NDArray[np.bool_]:
    """Whether both hits have enough shingles to compare, or the same ones."""
    short = rows.lengths < min(least, rows.k)
    comparable: npt.NDArray[np.bool_] = ~(short[pairs.first] | short[pairs.second])
    comparable |= pairs.similarity == 1.0
    return comparable
