"""Whole result pages: what a user sees before and after collapsing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ndd_search.evaluation.collection import Collection, Places
from ndd_search.matching.groups import choose_leaders
from ndd_search.matching.pairs import Pairs

DEPTH, SHOWN = 20, 10
Judge = Callable[[Places, Places], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class PageQuality:
    """Means over the pages of a collection, empty ones included; shares 0..1.

    repeated_before, repeated: of the first ten shown, those that repeat a cluster shown above (dup@10).
    lost:      clusters among the twenty results that nothing shown stands for.
    lost_hard: the same without those whose every member is shown under a partner labelled -1 (excerpts, digests).
    missed:    duplicates among the twenty results that are shown all the same.
    fill:      how full a page of ten is, from twenty results.
    """

    repeated_before: float
    repeated: float
    lost: float
    lost_hard: float
    missed: float
    fill: float


def page_quality(collection: Collection, judge: Judge) -> PageQuality:
    """Collapse the top twenty of every query. judge: whether each of some pairs of documents counts."""
    pages = [page[:DEPTH] for page in collection.pages]
    wanted = sorted({tuple(sorted(pair)) for page in pages for pair in combinations(page.tolist(), 2)})
    first, second = np.array(wanted, np.int64).reshape(-1, 2).T
    yes = judge(first, second)
    similar = set(zip(first[yes].tolist(), second[yes].tolist(), strict=True))
    unscored = collection.unscored()
    rows = [result_page(page, collection.cluster[page], similar, unscored) for page in pages]
    before, after, missed, fill = np.mean([row[:4] for row in rows], axis=0).tolist()
    lost, lost_hard, clusters = np.sum([row[4:] for row in rows], axis=0).tolist()
    return PageQuality(before, after, lost / max(clusters, 1), lost_hard / max(clusters, 1), missed, fill)


def result_page(
    page: Places, cluster: Places, similar: set[tuple[int, int]], unscored: set[tuple[int, int]]
) -> tuple[float, float, float, float, int, int, int]:
    """Repeated before and after, missed, fill, lost, lost_hard and clusters of one page, the lost as numbers.

    cluster: of each document of the page. similar, unscored: pairs of documents, the smaller number first.
    """
    couples = [(i, j) for i, j in combinations(range(len(page)), 2) if _ends(page, i, j) in similar]
    first, second = np.array(couples, np.int64).reshape(-1, 2).T
    leader, _ = choose_leaders(len(page), Pairs(first, second, np.ones(len(first))))
    shown = np.flatnonzero(leader == np.arange(len(page)))
    there, kept = set(cluster.tolist()), set(cluster[shown].tolist())
    hard = 0
    for one in there - kept:
        members = np.flatnonzero(cluster == one)
        hard += not all(_ends(page, int(i), int(leader[i])) in unscored for i in members)
    duplicates = len(page) - len(there)
    missed = (len(shown) - len(kept)) / duplicates if duplicates else 0.0
    return (
        _repeated(cluster[:SHOWN]),
        _repeated(cluster[shown[:SHOWN]]),
        missed,
        min(len(shown), SHOWN) / SHOWN,
        len(there - kept),
        hard,
        len(there),
    )


def _ends(page: Places, i: int, j: int) -> tuple[int, int]:
    one, other = int(page[i]), int(page[j])
    return min(one, other), max(one, other)


def _repeated(clusters: Places) -> float:
    return (len(clusters) - len(set(clusters.tolist()))) / max(len(clusters), 1)
