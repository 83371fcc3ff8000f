"""The counts of numpy equal the definition, on every code path."""

from itertools import combinations

import numpy as np
import pytest

from ndd_search import native
from ndd_search.core.matching import shared_sketch_values as counting
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.similar_pairs import overlapping_pairs
from ndd_search.core.matching.sketch_rows import rows_of

K = 32


@pytest.fixture(autouse=True)
def _without_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "core", None)


def by_definition(page: list[list[int]], floor: float) -> list[list[int]]:
    """As `similarity` puts it, pair by pair."""
    found, sets = [], list(map(set, page))
    for first, second in combinations(range(len(page)), 2):
        if shared := len(sets[first] & sets[second]):
            a, b = page[first], page[second]
            limit = min((one[-1] for one in (a, b) if len(one) == K), default=2**31)
            left, right = sum(value <= limit for value in a), sum(value <= limit for value in b)
            if shared / (left + right - shared) >= floor - 1e-9:
                found.append((first, second, shared, left, right))
    return np.array(found, np.int64).reshape(-1, 5).T.tolist()


def counted(page: list[list[int]], floor: float) -> list[list[int]]:
    pairs, found = overlapping_pairs(rows_of(page, K), Decision(1.0, 1), floor)
    return [one.tolist() for one in (pairs.first, pairs.second, found.shared, found.left, found.right)]


def drawn(count: int, pools: int, share: float, seed: int = 1) -> list[list[int]]:
    """Documents that have a share of their values from one of some pools of 40, every third one short."""
    rng = np.random.default_rng(seed)
    shared = rng.choice(2**31, (pools, 40), replace=False)
    page = []
    for rank in range(count):
        values = {*rng.choice(2**31, 40).tolist(), *shared[rng.integers(pools), rng.random(40) < share].tolist()}
        page.append(sorted(values)[: K if rank % 3 else rng.integers(K)])
    return page


@pytest.mark.parametrize("floor", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize(
    ("count", "pools", "share"),
    [
        pytest.param(100, 40, 0.9, id="few pairs meet"),
        pytest.param(80, 1, 0.15, id="most pairs meet, at a value or two"),
        pytest.param(80, 1, 0.9, id="all documents share most values"),
        pytest.param(220, 5, 0.8, id="more pairs meet than are compared at a time"),
        pytest.param(1100, 400, 0.9, id="more values than can be cut"),
        pytest.param(2, 1, 1.0, id="two documents"),
        pytest.param(1, 1, 1.0, id="one document"),
        pytest.param(0, 1, 1.0, id="none"),
    ],
)
def test_every_kind_of_page_is_counted_by_definition(count: int, pools: int, share: float, floor: float) -> None:
    page = drawn(count, pools, share)
    assert counted(page, floor) == by_definition(page, floor)


def test_a_long_page_is_counted_in_parts_and_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is counted in parts where the numbers of all its pairs would not fit in memory."""
    page = drawn(150, 1, 0.9) + drawn(70, 60, 0.1, seed=2)
    whole = counted(page, 0.3)
    monkeypatch.setattr(counting, "_PAIRS", 1_000)
    monkeypatch.setattr(counting, "_AT_ONCE", 1_000)
    assert counted(page, 0.3) == whole
