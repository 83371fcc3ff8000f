"""Quality of whole result pages, before and after near-duplicates are collapsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks.study.collection import Collection, Places
from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.similar_pairs import Pairs

DEPTH, SHOWN = 20, 10
Judge = Callable[[Places, Places], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class PageQuality:
    """Means over the pages of a collection, empty pages included; shares 0..1.

    repeated_before, repeated: share of the first ten hits whose cluster was already shown above (dup@10), before and
               after collapsing.
    lost:      share of the clusters among the twenty results without a member that is shown.
    lost_hard: lost, without clusters all of whose members are listed under a hit with which they are labelled -1
               (excerpts, digests).
    missed:    share of the duplicates among the twenty results that are shown.
    fill:      number of hits shown from twenty results, at most ten, as a share of ten.
    """

    repeated_before: float
    repeated: float
    lost: float
    lost_hard: float
    missed: float
    fill: float


def page_quality(collection: Collection, judge: Judge) -> PageQuality:
    """Collapse the top twenty results of every query. judge: whether pairs of documents are near-duplicates."""
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
    """Return (repeated_before, repeated, missed, fill, lost, lost_hard, clusters) of a page; the last three are counts.

    cluster: cluster of each document of the page. similar, unscored: pairs of documents, the smaller position first.
    """
    couples = [(i, j) for i, j in combinations(range(len(page)), 2) if _ends(page, i, j) in similar]
    first, second = np.array(couples, np.int64).reshape(-1, 2).T
    leader, _ = choose_leaders(len(page), Pairs(first, second, np.ones(len(first))))
    shown = np.flatnonzero(leader == np.arange(len(page)))
    clusters, kept = set(cluster.tolist()), set(cluster[shown].tolist())
    hard = 0
    for lost in clusters - kept:
        members = np.flatnonzero(cluster == lost)
        hard += not all(_ends(page, int(i), int(leader[i])) in unscored for i in members)
    duplicates = len(page) - len(clusters)
    missed = (len(shown) - len(kept)) / duplicates if duplicates else 0.0
    return (
        _repeated(cluster[:SHOWN]),
        _repeated(cluster[shown[:SHOWN]]),
        missed,
        min(len(shown), SHOWN) / SHOWN,
        len(clusters - kept),
        hard,
        len(clusters),
    )


def _ends(page: Places, i: int, j: int) -> tuple[int, int]:
    first, second = int(page[i]), int(page[j])
    return min(first, second), max(first, second)


def _repeated(clusters: Places) -> float:
    return (len(clusters) - len(set(clusters.tolist()))) / max(len(clusters), 1)
