"""The two harms of result pages: a different text that is hidden, and a copy that is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks.study.collection import Collection, Places
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_in_list
from ndd_search.core.matching.similar_pairs import resembling_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many

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
    pages = _pages(collection)
    wanted = sorted({pair for page in pages for pair in combinations(page, 2)})
    first, second = np.array(wanted, np.int64).reshape(-1, 2).T
    yes = judge(first, second)
    similar = set(zip(first[yes].tolist(), second[yes].tolist(), strict=True))
    return _mean(collection, [(page, similar) for page in pages])


def harms_in_lists(collection: Collection, recipe: Recipe) -> Harms:
    """Return the harms of the default with a frequency table that is counted in each list of hits by itself."""
    found = []
    for page in _pages(collection):
        sketches = sketch_many([collection.texts[place] for place in page], recipe)
        decision = Decision.of("auto", recipe, count_in_list(sketches, recipe))
        pairs = resembling_pairs(rows_of(sketches, recipe.k), decision)
        ends = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        found.append((page, {(page[first], page[second]) for first, second in ends}))
    return _mean(collection, found)


def _pages(collection: Collection) -> list[list[int]]:
    return [list(dict.fromkeys(page[:WINDOW].tolist())) for page in collection.pages]


def _mean(collection: Collection, pages: list[tuple[list[int], set[tuple[int, int]]]]) -> Harms:
    """Return the harms of pages, each with its similar pairs: the better-ranked hit first."""
    labels = _labels(collection)
    found = [_harms_of(page, similar, labels, collection.cluster) for page, similar in pages]
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
