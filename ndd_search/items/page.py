"""The pairs of a page that are one thing.

A page has few records, and its pairs are nearly all different things. So all pairs are compared, field by field, and a
pair is dropped as soon as no agreement of the remaining fields could lift it over the bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ndd_search.items.candidates import Bounds, find_candidates
from ndd_search.items.grades import MISSING, Comparison, Graded, compare_values
from ndd_search.items.model import Grades, log_odds_of, probabilities
from ndd_search.items.ragged import Floats, Places
from ndd_search.items.table import UNKNOWN, Table, read_table
from ndd_search.matching.pairs import Pairs

if TYPE_CHECKING:
    from ndd_search.items.schema import Items

_EVERY_PAIR = 200_000  # pairs of a list up to which all are compared
_REMEMBERED = 10_000  # parsed values of a field


def same_pairs(schema: Items, records: Sequence[Any], old: int, min_probability: float | None) -> Pairs:
    """Return the pairs of records that are one thing, with their probability. See paging.records.RecordSchema."""
    bar = schema.bar if min_probability is None else log_odds_of(min_probability)
    for name, values in schema.parsed.items():
        if len(values) > _REMEMBERED:
            schema.parsed[name] = {}
    table = read_table(schema.fields, records, schema.parsed)
    count = len(records)
    if count * (count - 1) - old * (old - 1) <= 2 * _EVERY_PAIR:
        first, second = np.triu_indices(count, 1)
    else:
        found = find_candidates(Comparison(schema.fields, table, schema.common), Bounds())
        first, second = found.first, found.second
    if old:
        later = second >= old
        first, second = first[later], second[later]
    first, second, graded = _screened(schema, table, first, second, bar)
    odds = schema.log_odds(graded)
    same = (odds >= bar) & (graded.grades != MISSING).any(axis=1)  # no field in common is no reason to hide a hit
    return Pairs(first[same], second[same], probabilities(odds[same]))


def _screened(schema: Items, table: Table, first: Places, second: Places, bar: float) -> tuple[Places, Places, Graded]:
    """Return the pairs that may reach the bar, compared."""
    model, names = schema.model, list(schema.fields)
    columns: dict[int, tuple[npt.NDArray[np.float32], Grades]] = {}
    against = model.first_against(len(first))
    for place, rest in model.stages:
        values, codes = table.columns[names[place]].values, table.columns[names[place]].codes
        similarity, grades = np.full(len(first), np.nan, np.float32), np.full(len(first), MISSING, np.int16)
        a, b = codes[first], codes[second]
        both = np.flatnonzero((a >= 0) & (b >= 0))
        if len(both):
            similarity[both], grades[both] = _compared(schema, names[place], values, a[both], b[both])
        columns[place] = similarity, grades
        against += model.against(place, grades)
        left = np.flatnonzero(~model.ruled_out(against, rest, bar))
        if len(left) < len(first):
            first, second, against = first[left], second[left], against[:, left]
            columns = {done: (alike[left], grade[left]) for done, (alike, grade) in columns.items()}
    ordered = [columns[place] for place in range(len(names))]
    graded = Graded(np.stack([one for one, _ in ordered], axis=1), np.stack([one for _, one in ordered], axis=1))
    return first, second, graded


def _compared(schema: Items, name: str, values: Sequence[Any], a: Places, b: Places) -> tuple[Floats, Places]:
    """Return similarity and grade of pairs of values of a field. Only values in a pair are prepared."""
    used = np.zeros(len(values), np.bool_)
    used[a] = used[b] = True
    place = np.cumsum(used) - 1
    chosen = [values[i] for i in np.flatnonzero(used).tolist()]
    field = schema.fields[name]
    comparer = field.comparer(chosen, schema.common.get(name, UNKNOWN))
    return compare_values(field, comparer, len(chosen), place[a], place[b])
