"""The pairs of a page that are one thing.

A page has few records, and its pairs are nearly all different things. So all pairs are compared, field by field, and a
pair is dropped as soon as no agreement of the remaining fields could lift it over the bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.items.candidate_pairs import Bounds, find_candidates
from ndd_search.items.grades import MISSING, Comparison, graded_values
from ndd_search.items.integer_lists import Floats, Places
from ndd_search.items.probability_model import log_odds_of, probabilities
from ndd_search.items.record_columns import read_table
from ndd_search.items.rule_out_pairs import screened
from ndd_search.items.schema import Schema

_EVERY_PAIR = 200_000  # pairs of a list up to which all are compared
_REMEMBERED = 10_000  # parsed values of a field


def same_pairs(schema: Schema, records: Sequence[Any], old: int, min_probability: float | None) -> Pairs:
    """Return the pairs of records that are one thing, with their probability. See paging.record_schema.RecordSchema."""
    bar = schema.bar if min_probability is None else log_odds_of(min_probability)
    for name, values in schema.parsed.items():
        if len(values) > _REMEMBERED:
            schema.parsed[name] = {}
    table = read_table(schema.fields, records, schema.parsed)
    comparison = Comparison(schema.fields, table, schema.common)
    count = len(records)
    if count * (count - 1) - old * (old - 1) <= 2 * _EVERY_PAIR:
        first, second = _every_pair(count, old)
    else:
        found = find_candidates(comparison, Bounds(), needs=schema.needs)
        first, second = found.first, found.second
        later = second >= old
        first, second = first[later], second[later]
    compare = partial(_graded_by, comparison)
    first, second, graded = screened(schema.model, comparison, first, second, bar, compare)
    odds = schema.log_odds(graded)
    same = (odds >= bar) & (graded.grades != MISSING).any(axis=1)  # no field in common is no reason to hide a hit
    return Pairs(first[same], second[same], probabilities(odds[same]))


def _every_pair(count: int, old: int) -> tuple[Places, Places]:
    """Return the pairs of `count` records whose second one is not among the `old` first."""
    nearest = np.maximum(np.arange(count) + 1, old)  # the first record that each is compared with
    times = count - nearest
    first = np.repeat(np.arange(count), times)
    return first, np.arange(len(first)) + np.repeat(nearest - (np.cumsum(times) - times), times)


def _graded_by(comparison: Comparison, name: str, first: Places, second: Places) -> tuple[Floats, Places]:
    """Return similarity and grade of pairs of records by one field. Only values in a pair are prepared."""
    column, field = comparison.table.columns[name], comparison.fields[name]
    used = np.zeros(comparison.table.records, np.bool_)
    used[first] = used[second] = True
    kept = np.unique(column.codes[used & (column.codes >= 0)])
    if not len(kept):
        return np.full(len(first), np.nan), np.full(len(first), MISSING)
    values = [column.values[code] for code in kept.tolist()]
    codes = np.where(column.codes >= 0, np.searchsorted(kept, column.codes), -1)
    return graded_values(field, comparison.comparer_of(name, values), len(values), codes[first], codes[second])
