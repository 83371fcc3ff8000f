"""Guards: options that keep similar hits apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ndd_search.core.document_fields import is_missing
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.matching.sketch_rows import Rows
from ndd_search.core.options import CollapseOptions
from ndd_search.core.sketching.estimate_similarity import estimated_shingles
from ndd_search.core.text.tokens import sorted_distinct

Value = Callable[[Any, str], Any]


class FieldReader(Protocol):
    """Reads the fields of hits for the guards."""

    def value(self, hit: Any, field: str) -> Any:
        """Return the value of a field of the hit, None if it has none."""

    def numbers(self, hit: Any) -> int | None:
        """Return the number signature of the hit's text (see `text.numbers`), None if it is unknown."""


def allowed(
    pairs: Pairs, rows: Rows, hits: Sequence[Any], reader: FieldReader, options: CollapseOptions, least: int
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return for each active guard, as `guards` has it, which pairs it accepts; bool, shape (len(pairs),).

    least: Recipe.min_shingles.
    """
    first, second = pairs.first, pairs.second
    verdicts = {f"fewer than {least} shingles": long_enough(pairs, rows, least)}
    if options.length_ratio:
        sizes = estimated_shingles(rows.lengths, rows.largest, rows.k)
        ratio = np.minimum(sizes[first], sizes[second]) / np.maximum(sizes[first], sizes[second])
        verdicts[f"length:{options.length_ratio}"] = ratio >= options.length_ratio
    return verdicts | allowed_by_fields(pairs, hits, reader, options)


def allowed_by_fields(
    pairs: Pairs, hits: Sequence[Any], reader: FieldReader, options: CollapseOptions
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the same for the guards that read hits, and not their sketches."""
    verdicts: dict[str, npt.NDArray[np.bool_]] = {}
    first, second = pairs.first, pairs.second
    if not len(pairs):  # the guards would read fields of all hits
        return verdicts
    for field in options.same_fields:
        codes: dict[str, int] = {}
        of = np.array([codes.setdefault(comparable(reader.value(hit, field)), len(codes)) for hit in hits])
        verdicts[f"same:{field}"] = of[first] == of[second]
    if options.same_numbers:
        verdicts["numbers"] = _same_numbers(pairs, hits, reader)
    for field, apart in options.seconds_apart.items():
        times = np.array([seconds_since_1970(reader.value(hit, field)) for hit in hits])
        verdicts[f"within:{field}"] = np.abs(times[first] - times[second]) <= apart
    return verdicts


def comparable(value: Any) -> str:
    """Return a text that is equal for equal values of any type. 10 and 10.0 are equal, as JSON writers differ.

    So are None, NaN, NaT, NA and an empty text, which is all that CSV has for a missing value.
    """
    if is_missing(value) or (isinstance(value, str) and not value):
        return repr(None)
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _same_numbers(pairs: Pairs, hits: Sequence[Any], reader: FieldReader) -> npt.NDArray[np.bool_]:
    """Return which pairs have equal number signatures. Unknown signatures equal none."""
    of = np.full(len(hits), -1, np.int64)
    for place in sorted_distinct(pairs.first, pairs.second).tolist():  # only hits of pairs, as reading a text is slow
        signature = reader.numbers(hits[place])
        of[place] = -1 if signature is None else signature
    same: npt.NDArray[np.bool_] = (of[pairs.first] == of[pairs.second]) & (of[pairs.first] >= 0)
    return same


def seconds_since_1970(value: Any) -> float:
    """Parse a datetime, an ISO 8601 text, or a number of seconds or milliseconds. Returns NaN for anything else.

    A time without a zone is in UTC. A number above 1e11 (the year 5138 in seconds) is in milliseconds.
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


def number_in(value: Any) -> float:
    """Return a number, or the number that a text is. Returns NaN for anything else."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    try:
        return float("nan") if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def long_enough(pairs: Pairs, rows: Rows, least: int) -> npt.NDArray[np.bool_]:
    """Return which pairs have at least `least` shingles in both hits, or equal sketches."""
    short = rows.lengths < min(least, rows.k)
    comparable: npt.NDArray[np.bool_] = ~(short[pairs.first] | short[pairs.second])
    comparable |= pairs.similarity == 1.0
    return comparable
