"""Compares pairs field by field, and drops a pair as soon as no agreement of the later fields could lift it over a bar.

Most pairs are different things, and few fields suffice to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ndd_search.items.grades import Graded
from ndd_search.items.model import Model
from ndd_search.items.ragged import Floats, Places

GradedBy = Callable[[str, Places, Places], tuple[Floats, Places]]


def screened(
    model: Model, names: Sequence[str], compare: GradedBy, first: Places, second: Places, bar: float
) -> tuple[Places, Places, Graded]:
    """Return the pairs that may reach a bar, compared.

    names: of the fields of the model. compare: returns similarity and grade of pairs of records by a field.
    bar:   log odds.
    """
    columns: dict[int, tuple[Floats, Places]] = {}
    against = model.first_against(len(first))
    for place, rest in model.stages:
        columns[place] = compare(names[place], first, second)
        left, against = model.left_over(against, place, columns[place][1], rest, bar)
        if len(left) < len(first):
            first, second = first[left], second[left]
            columns = {done: (alike[left], grade[left]) for done, (alike, grade) in columns.items()}
    similarity, grades = zip(*[columns[place] for place in range(len(names))], strict=True)
    return first, second, Graded(np.stack(similarity, axis=1, dtype=np.float32, casting="same_kind"),
                                 np.stack(grades, axis=1, dtype=np.int16, casting="same_kind"))  # fmt: skip
