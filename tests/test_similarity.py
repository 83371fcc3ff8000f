import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.core.matching.choose_leaders import leaders
from ndd_search.core.sketching.estimate_similarity import (
    containment,
    estimate_resemblance,
    estimated_shingles,
    resemblance,
    standard_error,
)
from ndd_search.errors import InvalidSketch

values = st.sets(st.integers(0, 40), max_size=30)
sketches = values.map(sorted)


def of(shingles: set[int], k: int) -> list[int]:
    return sorted(shingles)[:k]


@given(values, values)
def test_whole_documents_are_compared_exactly(a: set[int], b: set[int]) -> None:
    jaccard = len(a & b) / len(a | b) if a | b else 0.0
    assert resemblance(of(a, 64), of(b, 64), 64) == pytest.approx(jaccard)
    assert containment(of(a, 64), of(b, 64), 64) == pytest.approx(len(a & b) / min(len(a), len(b)) if a and b else 0.0)
    assert estimate_resemblance(of(a, 64), of(b, 64), 64).standard_error == 0


@given(values, values, st.integers(1, 12))
def test_both_estimates_stay_in_range_are_symmetric_and_know_equals(a: set[int], b: set[int], k: int) -> None:
    for estimate in (resemblance, containment):
        value = estimate(of(a, k), of(b, k), k)
        assert 0 <= value <= 1
        assert value == estimate(of(b, k), of(a, k), k)
        assert estimate(of(a, k), of(a, k), k) == (1.0 if a else 0.0)


@given(values, values, st.integers(1, 12))
def test_a_smaller_k_reads_the_sketch_of_that_k(a: set[int], b: set[int], k: int) -> None:
    assert resemblance(of(a, 30), of(b, 30), k) == resemblance(of(a, k), of(b, k), k)


@given(st.lists(sketches, max_size=8), st.integers(1, 12), st.sampled_from([0.05, 0.3, 0.5, 0.8, 1.0]))
def test_the_page_check_gives_each_hit_the_best_leader_it_resembles(page: list[list[int]], k: int, bar: float) -> None:
    expected: list[int] = []
    for rank, sketch in enumerate(page):
        similar = [i for i in range(rank) if expected[i] == i and resemblance(page[i], sketch, k) >= bar - 1e-9]
        expected.append(similar[0] if similar else rank)
    assert leaders(page, bar, k).tolist() == expected


@pytest.mark.parametrize("kind", ["meetings", "matrix"])
def test_the_page_check_on_large_pages_agrees_with_pairwise_estimates(kind: str) -> None:
    rng, k = np.random.default_rng(3), 64
    frequency_table = rng.choice(2**31, 500, replace=False)
    share = 0.9 if kind == "matrix" else 0.1
    page = []
    for _ in range(60):
        own = rng.choice(2**31, 500, replace=False)
        page.append(np.sort(np.where(rng.random(500) < share * rng.random(), frequency_table, own))[:k])
    expected: list[int] = []
    for rank, sketch in enumerate(page):
        similar = [i for i in range(rank) if expected[i] == i and resemblance(page[i], sketch, k) >= 0.3]
        expected.append(similar[0] if similar else rank)
    assert leaders(page, 0.3, k).tolist() == expected


def test_estimates_scatter_as_much_as_they_say() -> None:
    rng, k, truth = np.random.default_rng(7), 64, 0.6
    found = []
    for _ in range(400):
        pool = rng.choice(2**31, 1000, replace=False)  # 600 shared, 200 of each alone: 600 / 1000
        found.append(resemblance(np.sort(pool[:800])[:k], np.sort(np.concatenate((pool[:600], pool[800:])))[:k], k))
    assert np.mean(found) == pytest.approx(truth, abs=0.015)
    assert np.std(found) <= 1.15 * standard_error(truth, k)


def test_the_number_of_shingles_is_exact_or_close() -> None:
    rng = np.random.default_rng(1)
    full = np.sort(rng.choice(2**31, 5000, replace=False))[:1024]
    assert estimated_shingles(7, 99, 64) == 7
    assert estimated_shingles(1024, full[-1], 1024) == pytest.approx(5000, rel=0.12)


@pytest.mark.parametrize(
    ("sketch", "problem"),
    [
        ([2, 1], "does not come after"),
        ([1, 1], "does not come after"),
        ([-1, 1], "outside"),
        ([1, 2**31], "outside"),
        ([0.5, 1.5], "not one row of integers"),
        ([[1, 2]], "not one row of integers"),
        (["a"], "not one row of integers"),
    ],
)
def test_what_is_no_sketch_is_refused_with_its_reason(sketch: list[int], problem: str) -> None:
    with pytest.raises(InvalidSketch, match=problem):
        resemblance(sketch, [1, 2], 64)


def test_a_page_names_the_hit_with_the_bad_sketch() -> None:
    with pytest.raises(InvalidSketch, match="hit 1: value 1"):
        leaders([[1, 2], [5, 5], [3]])


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        resemblance([1], [1], k)
    with pytest.raises(ValueError, match="k must be at least 1"):
        leaders([[1]], k=k)


@pytest.mark.parametrize("bar", [0, -0.1, 1.1, float("nan")])
def test_a_bar_outside_its_range_is_refused(bar: float) -> None:
    with pytest.raises(ValueError, match="min_similarity"):
        leaders([[1]], bar)
