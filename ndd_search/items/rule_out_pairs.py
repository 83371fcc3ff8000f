"""Compares pairs field by field.

The core drops a pair as soon as no agreement of the later fields could lift it over a bar: most pairs are different
things, and few fields suffice to tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd_search import native
from ndd_search.items.grades import Comparison, Graded
from ndd_search.items.integer_lists import Places
from ndd_search.items.probability_model import Model

_TYPES = np.float32, np.int16  # of similarities and grades


def screened(
    model: Model, comparison: Comparison, first: Places, second: Places, bar: float
) -> tuple[Places, Places, Graded]:
    """Return the pairs that may reach a bar, compared; without the core, all pairs. bar: log odds, -inf for all."""
    names = list(comparison.fields)
    places, similarity, grades = _by_core(model, comparison, first, second, bar)
    for place, name in enumerate(names):
        if place not in grades:
            similarity[place], grades[place] = comparison.graded_by(name, first[places], second[places])
    columns = [np.stack([of[place] for place in range(len(names))], axis=1) for of in (similarity, grades)]
    graded = Graded(columns[0].astype(np.float32), columns[1].astype(np.int16))
    return first[places], second[places], graded


def _by_core(
    model: Model, comparison: Comparison, first: Places, second: Places, bar: float
) -> tuple[Places, dict[int, Any], dict[int, Any]]:
    """Return the places of pairs that are left, their similarity and their grades by the fields that the core compares.

    Without the core, all pairs are left, and nothing is compared.
    """
    names, places, stages = list(comparison.fields), [], []
    for place, rest in model.stages:
        if native.core and (rows := comparison.core_rows(names[place])):
            places.append(place)
            stages.append((*rows, *(floats.ravel().view(np.int64) for floats in (model.tables[place], rest))))
    if native.core and stages:
        shares, most = model.shares.view(np.int64), model.most_against(bar)
        if by_core := native.core.screened(first, second, shares, tuple(stages), most, native.THREADS):
            columns = [np.frombuffer(*of).reshape(-1, len(stages)).T for of in zip(by_core[1:], _TYPES, strict=True)]
            similarity, grades = (dict(zip(places, of, strict=True)) for of in columns)
            return np.frombuffer(by_core[0], np.int64), similarity, grades
    return np.arange(len(first)), {}, {}
