"""The two harms of result pages: a different text that is hidden, and a copy that is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks.study.collection import Collection, Places

WINDOW, SHOWN = 100, 10
Judge = Callable[[Places, Places], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Harms:
    """Shares of the pages of ten that a reader finds fault with, 0..1.

    hidden: a text is listed under a different one, and no copy of it is shown. The first harm: it is gone.
    shown:  two hits are copies of one another. The second harm: a line is lost.

    Pairs labelled -1 are neither copies nor different. Pairs without a label are copies if they are in one cluster.
    """

    hidden: float
    shown: float


def harms(collection: Collection, judge: Judge) -> Harms:
    """Collapse the first hundred results of each query to a page. judge: whether pairs are near-duplicates."""
    pages = [list(dict.fromkeys(page[:WINDOW].tolist())) for page in collection.pages]
    wanted = sorted({pair for page in pages for pair in combinations(page, 2)})
    first, second = np.array(wanted, np.int64).reshape(-1, 2).T
    yes = judge(first, second)
    similar = set(zip(first[yes].tolist(), second[yes].tolist(), strict=True))
    labels = _labels(collection)
    found = [_harms_of(page, similar, labels, collection.cluster) for page in pages]
    hidden, shown = np.mean(found, axis=0).tolist()
    return Harms(hidden, shown)


def _labels(collection: Collection) -> dict[frozenset[int], int]:
    if (pairs := collection.pairs) is None:
        return {}
    ends = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    return dict(zip(map(frozenset, ends), pairs.label.tolist(), strict=True))


def _harms_of(
    page: list[int], similar: set[tuple[int, int]], labels: dict[frozenset[int], int], cluster: Places
) -> tuple[bool, bool]:
    """Return whether a page hides a different text, and whether it shows a copy."""

    def label(one: int, other: int) -> int:
        return labels.get(frozenset((one, other)), int(cluster[one] == cluster[other]))

    leaders, hidden = list[int](), list[tuple[int, int]]()
    for hit in page:
        leader = next((one for one in leaders if (one, hit) in similar), None)
        if leader is not None:
            hidden.append((leader, hit))
        elif len(leaders) == SHOWN:
            break
        else:
            leaders.append(hit)
    gone = any(not label(leader, hit) and not any(label(one, hit) for one in leaders) for leader, hit in hidden)
    return gone, any(label(one, other) == 1 for one, other in combinations(leaders, 2))
