"""The pairs of a page that are one thing.

A page has few records, and its pairs are nearly all different things. So all pairs are compared, field by field, and a
pair is dropped as soon as no agreement of the remaining fields could lift it over the bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd_search.items.candidates import Bounds, find_candidates
from ndd_search.items.grades import MISSING, Comparison, Graded, compare_values
from ndd_search.items.model import log_odds_of, probabilities
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
    columns: dict[int, tuple[Floats, Places]] = {}
    against = model.first_against(len(first))
    for place, rest in model.stages:
        values, codes = table.columns[names[place]].values, table.columns[names[place]].codes
        a, b = codes[first], codes[second]
        similarity, grades = _compared(schema, names[place], values, a, b)
        columns[place] = similarity, grades
        left, against = model.left_over(against, place, grades, rest, bar)
        if len(left) < len(first):
            first, second = first[left], second[left]
            columns = {done: (alike[left], grade[left]) for done, (alike, grade) in columns.items()}
    ordered = [columns[place] for place in range(len(names))]
    similarity = np.stack([one for one, _ in ordered], axis=1).astype(np.float32)
    return first, second, Graded(similarity, np.stack([one for _, one in ordered], axis=1).astype(np.int16))


def _compared(schema: Items, name: str, values: Sequence[Any], a: Places, b: Places) -> tuple[Floats, Places]:
    """Return similarity and grade of pairs of values of a field. Only values in a pair are prepared.

    a, b: places in `values`, -1 for a missing one; the pair's similarity is then NaN, and its grade MISSING.
    """
    has = (a >= 0) & (b >= 0)
    both = slice(None) if has.all() else np.flatnonzero(has)
    used = np.zeros(len(values), np.bool_)
    used[a[both]] = used[b[both]] = True
    if not used.any():
        return np.full(len(a), np.nan), np.full(len(a), MISSING)
    if not used.all():
        place = np.cumsum(used) - 1
        values, a, b = [values[i] for i in np.flatnonzero(used).tolist()], place[a], place[b]
    field = schema.fields[name]
    comparer = field.comparer(values, schema.common.get(name, UNKNOWN))
    found = compare_values(field, comparer, len(values), a[both], b[both])
    if isinstance(both, slice):
        return found
    similarity, grades = np.full(len(a), np.nan), np.full(len(a), MISSING)
    similarity[both], grades[both] = found
    return similarity, grades
