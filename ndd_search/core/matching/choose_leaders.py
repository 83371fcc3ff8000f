"""Assign a leader to each hit from the similar pairs, in rank order and without chains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.similar_pairs import Pairs, as_compared, leaders_of, resembling_pairs
from ndd_search.core.matching.sketch_rows import Ranks, rows_of


def leaders(sketches: Sequence[npt.ArrayLike], min_similarity: float = 0.5, k: int = 64) -> Ranks:
    """Return for each hit, in rank order, the rank of its leader (its own rank for a leader).

    sketches:       of one recipe, best hit first, each ascending distinct values in 0..2**31-1.
    min_similarity: resemblance from which two hits are near-duplicates, 0 < x <= 1.
    k:              the recipe's k, or a smaller one.
    Returns int64, shape (n,). Each hit has at least min_similarity to its leader, no two leaders have it to each other,
    and later hits never change a leader. A hit with an empty sketch is a leader. Raises InvalidSketch naming the rank.
    """
    if isinstance(min_similarity, str) or not 0 < min_similarity <= 1:
        raise ValueError(f"min_similarity must be above 0 and at most 1, got {min_similarity!r}")
    return assign_leaders(sketches, k, Decision(min_similarity, 0))[0].copy()  # the array of the core is read-only


def assign_leaders(
    sketches: Sequence[npt.ArrayLike], k: int, decision: Decision
) -> tuple[Ranks, npt.NDArray[np.float64]]:
    """Return the leader of each hit and the similarity to it (1.0 for leaders), by any decision; else as `leaders`."""
    if (by_core := leaders_of(sketches, k, decision)) is not None:
        return by_core
    rows = rows_of(as_compared(sketches, k, decision), k)
    return choose_leaders(len(rows.lengths), resembling_pairs(rows, decision))


def choose_leaders(count: int, pairs: Pairs) -> tuple[Ranks, npt.NDArray[np.float64]]:
    """Assign each of `count` hits to the best-ranked leader it pairs with; a hit without one becomes a leader.

    Returns the leader of each hit (int64) and the similarity to it (1.0 for leaders), shape (count,).
    """
    leader, similarity = np.arange(count), np.ones(count)
    led = np.zeros(count, dtype=bool)
    first, second = pairs.first, pairs.second  # pairs whose first hit is undecided
    while len(first):
        may_be_led = np.zeros(count, dtype=bool)
        may_be_led[second] = True
        sure = ~may_be_led[first]
        led[second[sure]] = True
        open_ = ~(sure | led[first] | led[second])
        first, second = first[open_], second[open_]
    by_leader = np.flatnonzero(~led[pairs.first])[::-1]  # reversed, so that the best-ranked leader is assigned last
    followers = pairs.second[by_leader]
    leader[followers], similarity[followers] = pairs.first[by_leader], pairs.similarity[by_leader]
    return leader, similarity


def components(count: int, pairs: Pairs) -> Ranks:
    """Return for each of `count` hits the first one that a chain of pairs connects it with."""
    group = np.arange(count)
    while True:
        nearer = group.copy()
        first = np.minimum(group[pairs.first], group[pairs.second])
        np.minimum.at(nearer, pairs.first, first)
        np.minimum.at(nearer, pairs.second, first)
        np.minimum.at(nearer, group[pairs.first], first)
        np.minimum.at(nearer, group[pairs.second], first)
        nearer = nearer[nearer]
        if (nearer == group).all():
            return group
        group = nearer
