"""Compares pairs field by field, and drops a pair as soon as no agreement of the later fields could lift it over a bar.

Most pairs are different things, and few fields suffice to tell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.items.grades import Comparison, Graded
from ndd_search.items.integer_lists import Floats, Places
from ndd_search.items.probability_model import Model


class _Screened(NamedTuple):
    """The pairs that are left after some fields.

    places:     of these pairs. similarity, grades: of each field compared, by its place in the model.
    against:    what speaks against them so far; see Model.left_over.
    """

    places: Places
    similarity: dict[int, npt.NDArray[np.floating]]
    grades: dict[int, npt.NDArray[np.integer]]
    against: Floats

    def where(self, left: Places, against: Floats) -> _Screened:
        """Return some of these pairs. against: of them."""
        similarity = {place: alike[left] for place, alike in self.similarity.items()}
        grades = {place: of[left] for place, of in self.grades.items()}
        return _Screened(self.places[left], similarity, grades, against)


def screened(
    model: Model, comparison: Comparison, first: Places, second: Places, bar: float
) -> tuple[Places, Places, Graded]:
    """Return the pairs that may reach a bar, compared. bar: log odds, -inf for all pairs."""
    names = list(comparison.fields)
    found = _by_core(model, comparison, first, second, bar)
    for place, rest in model.stages:
        if place not in found.grades:
            similarity, grades = comparison.graded_by(names[place], first[found.places], second[found.places])
            found.similarity[place], found.grades[place] = similarity, grades
            found = found.where(*model.left_over(found.against, place, grades, rest, bar))
    columns = ([of[place] for place in range(len(names))] for of in (found.similarity, found.grades))
    similarities, all_grades = (np.stack(list(of), axis=1) for of in columns)
    graded = Graded(similarities.astype(np.float32), all_grades.astype(np.int16))
    return first[found.places], second[found.places], graded


def _by_core(model: Model, comparison: Comparison, first: Places, second: Places, bar: float) -> _Screened:
    """Compare pairs by the fields whose values the core compares, if it is there."""
    names, places = list(comparison.fields), []
    stages = []
    for place, rest in model.stages:
        if native.core and (rows := comparison.core_rows(names[place])):
            places.append(place)
            stages.append((*rows, *(floats.ravel().view(np.int64) for floats in (model.tables[place], rest))))
    if native.core and stages:
        shares, most = model.shares.view(np.int64), model.most_against(bar)
        if by_core := native.core.screened(first, second, shares, tuple(stages), most, native.THREADS):
            of_pairs = (len(by_core[0]) // 8, len(stages))
            similarity = np.frombuffer(by_core[1], np.float32).reshape(of_pairs).T
            grades = np.frombuffer(by_core[2], np.int16).reshape(of_pairs).T
            against = np.frombuffer(by_core[3], np.float64).reshape(-1, len(model.shares))
            return _Screened(
                np.frombuffer(by_core[0], np.int64),
                dict(zip(places, similarity, strict=True)),
                dict(zip(places, grades, strict=True)),
                against,
            )
    return _Screened(np.arange(len(first)), {}, {}, np.repeat(model.shares[None], len(first), axis=0))
