"""The pairs whose answer by a person matters most, and the bar that fits the answers.

Pairs with equal grades in all fields get equal probabilities, so an answer about one of them speaks for all. It matters
most where many pairs have the same grades and a probability in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.items.grades import pattern_of
from ndd_search.items.integer_lists import Floats
from ndd_search.items.record_similarity import Similarity

_USUAL = 3.0  # standard deviation of the log odds by which a bar is usually wrong
_TRIED = np.linspace(-12, 12, 2401)


@dataclass(frozen=True)
class Question:
    """Two records, of which a person is asked whether they are one thing.

    pairs:      how many candidate pairs have the same grades. similarity: what the schema says about the two.
    """

    first: Any
    second: Any
    pairs: int
    similarity: Similarity


def most_telling(
    grades: npt.NDArray[np.int16], matters: Floats, ends: npt.NDArray[np.int64], count: int
) -> list[tuple[int, int]]:
    """Return the pairs to ask about, at most `count`, and how many pairs each speaks for. No record is in two of them.

    grades: of candidate pairs. matters: how much an answer about each does, 0..1. ends: the two records of each, shape
    (n, 2).
    """
    which = pattern_of(grades)
    alike = np.bincount(which)
    matters = alike[which] * matters
    chosen: list[tuple[int, int]] = []
    patterns: set[int] = set()
    records: set[int] = set()
    for place in np.argsort(-matters, kind="stable").tolist():
        if len(chosen) == count or matters[place] <= 0:
            break
        pattern, both = int(which[place]), set(ends[place].tolist())
        if pattern not in patterns and not records & both:
            patterns.add(pattern)
            records |= both
            chosen.append((place, int(alike[pattern])))
    return chosen


def fitted_bar(bar: float, log_odds: Floats, same: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return the bar, as log odds, that fits answers best, and the log likelihood of the answers with it.

    log_odds: of the pairs that were asked about. same: the answers.
    All log odds are taken to be wrong by one number, which is normally distributed around 0 before any answer. So a few
    answers move the bar of a good schema little: it expects them.
    """
    odds = (log_odds - bar)[:, None] + _TRIED
    likelihood = -np.logaddexp(0, np.where(same[:, None], -odds, odds)).sum(axis=0) - _TRIED**2 / (2 * _USUAL**2)
    best = int(np.argmax(likelihood))
    return bar - float(_TRIED[best]), float(likelihood[best])
