"""Groups out of pairs with log odds.

Correlation clustering asks for groups in which the members agree with one another on the whole: evidence for and
against is added up over all pairs of two groups before they are joined (greedy additive edge contraction: Keuper et al.
2015, "Efficient decomposition of image and mesh graphs by lifted multicuts"). So a vague record that resembles many
different things joins one of them, and does not join these things with each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.text.tokens import sorted_distinct
from ndd_search.corpus.communities import connected
from ndd_search.items.integer_lists import Floats, Places

_STRONGEST = 10.0  # log odds of a pair, beyond which more evidence does not count
_FINE = 1 << 20  # steps of evidence, per unit of log odds
_UNKNOWN = -3 * _FINE  # evidence about two records that share too little to be candidates
_WHOLE = 40  # members of a chain of pairs up to which all its pairs are compared
_NEVER = -1e9
_STEPS = 3  # how often pairs are added to those compared
_NEIGHBOURS = 100  # of a record in a longer chain, of which all pairs are compared
_HELD = 4_000_000  # pairs, of which many are the same ones

Judge = Callable[[Places, Places], Floats]


def correlation(count: int, pairs: Pairs, odds: Floats, judge: Judge) -> Places:
    """Return of each record the first one of its group; shape (count,).

    pairs: candidates. odds: their log odds above the bar, so that 0 is undecided. judge: returns the same of any pairs.
    """
    yes = odds >= 0
    component = connected(count, pairs.where(yes), np.arange(count))
    inside = component[pairs.first] == component[pairs.second]
    first, second, odds = pairs.first[inside], pairs.second[inside], odds[inside]
    sizes = np.bincount(component, minlength=count)
    more = _missing_pairs(component, sizes, first * np.int64(count) + second)
    for _ in range(_STEPS):
        a, b = more // count, more % count
        first, second = np.concatenate((first, a)), np.concatenate((second, b))
        odds = np.concatenate((odds, judge(a, b) if len(more) else np.empty(0)))
        far = (odds >= 0) & (sizes[component[first]] > _WHOLE)
        more = _two_steps(count, first[far], second[far], first * np.int64(count) + second)
    odds = np.where(np.isneginf(odds), _NEVER, np.clip(odds, -_STRONGEST, _STRONGEST))
    steps = np.floor(odds * _FINE).astype(np.int64)
    leader, against = component.copy(), np.zeros(count, np.bool_)
    against[component[first[odds < 0]]] = True
    # Of a whole component all pairs are compared: without any evidence against one thing, it is one group.
    left = (against | (sizes > _WHOLE))[component[first]] & (sizes[component[first]] > 2)
    first, second, steps = first[left], second[left], steps[left]
    of = component[first]
    order = np.argsort(of, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(of[order])) + 1) if len(order) else []:
        for members in _contracted(first[chosen].tolist(), second[chosen].tolist(), steps[chosen].tolist()):
            leader[members] = min(members)
    return leader


def _missing_pairs(component: Places, sizes: Places, known: Places) -> Places:
    """Return the pairs inside components of 3 to _WHOLE members that are not candidates, as first * count + second."""
    wanted = np.flatnonzero((sizes[component] > 2) & (sizes[component] <= _WHOLE))
    order = wanted[np.argsort(component[wanted], kind="stable")]
    return _together(len(component), component[order], order, _WHOLE, known)


def _two_steps(count: int, first: Places, second: Places, known: Places) -> Places:
    """Return the pairs of records that a third one is joined with, without those known, as first * count + second."""
    ends, others = np.concatenate((first, second)), np.concatenate((second, first))
    order = np.argsort(ends, kind="stable")
    return _together(count, ends[order], others[order], _NEIGHBOURS, known)


def _together(count: int, of: Places, records: Places, most: int, known: Places) -> Places:
    """Return the pairs of records with the same `of`, which ascends; of each record those with its next neighbours."""
    every, parts = np.empty(0, np.int64), list[Places]()
    for shift in range(1, most):
        same = np.flatnonzero(of[:-shift] == of[shift:])
        if not len(same):
            break
        a, b = records[same], records[same + shift]
        parts.append(np.minimum(a, b) * np.int64(count) + np.maximum(a, b))
        if sum(map(len, parts)) > _HELD:
            every, parts = sorted_distinct(every, *parts), []
    every = sorted_distinct(every, *parts)
    return every[~np.isin(every, sorted_distinct(known), assume_unique=True)]


def _contracted(first: list[int], second: list[int], odds: list[int]) -> list[list[int]]:
    """Join the two groups with most evidence for one thing until none is left; return all groups.

    first, second: ascending in each pair. A group is named by its first member, and of equal evidence, that of the
    first groups counts. odds: in steps, which add up to the same sum in any order.
    """
    members: dict[int, list[int]] = {one: [one] for one in (*first, *second)}
    # Evidence of the pairs that were compared, beyond what each would say if it had not been.
    between: dict[int, dict[int, int]] = {one: {} for one in members}
    for a, b, weight in zip(first, second, odds, strict=True):
        between[a][b] = between[b][a] = weight - _UNKNOWN
    heap = [(-weight, a, b) for a, b, weight in zip(first, second, odds, strict=True) if weight >= 0]
    heapq.heapify(heap)
    while heap:
        weight, a, b = heapq.heappop(heap)
        if a not in members or b not in members:
            continue
        total = between[a][b] + _UNKNOWN * len(members[a]) * len(members[b])
        if total < -weight:  # a group has grown since
            if total >= 0:
                heapq.heappush(heap, (-total, a, b))
            continue
        members[a] += members.pop(b)
        of_a, of_b = between[a], between.pop(b)
        del of_a[b], of_b[a]
        for other, known in of_b.items():
            del between[other][b]
            of_a[other] = between[other][a] = known + of_a.get(other, 0)
            total = of_a[other] + _UNKNOWN * len(members[a]) * len(members[other])
            if total >= 0:
                heapq.heappush(heap, (-total, min(a, other), max(a, other)))
    return list(members.values())
