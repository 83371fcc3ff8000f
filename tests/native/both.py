"""What the native core answers, and what numpy does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.core.matching import similar_pairs
from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import Decision, Overlaps
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similar_pairs import Pairs, leaders_of, overlapping_pairs, resembling_pairs
from ndd_search.core.matching.sketch_rows import Rows, rows_of

T = TypeVar("T")
FLOORS = [0.0, 0.1, 0.3, 0.5, 0.8, 1.0]
values = st.one_of(st.integers(0, 40), st.integers(2**31 - 20, 2**31 - 1))
pages = st.lists(st.sets(values, max_size=25).map(sorted), max_size=12)


def both(call: Callable[[], T]) -> tuple[T, T]:
    """What the core answers, and what numpy does."""
    with_core, core = call(), native.core
    native.core = None
    try:
        return with_core, call()
    finally:
        native.core = core


def same_fields(found: Pairs | Overlaps, wanted: Pairs | Overlaps) -> None:
    for field in fields(wanted):
        one, other = getattr(found, field.name), getattr(wanted, field.name)
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist(), field.name


def same_answers(page: list[np.ndarray], k: int, floor: float) -> None:
    rows, plain = both(lambda: rows_of(page, k))
    for one, other in ((rows.values, plain.values), (rows.offsets, plain.offsets)):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    some = np.unique(rows.values[rows.values % 3 > 0])
    for frequency_table in (None, FrequencyTable(100, some, (5 + some % 90).astype(np.float64), "any")):
        decision = Decision(None, 3, frequency_table)
        found, wanted = both(lambda decision=decision: overlapping_pairs(rows, decision, floor))  # type: ignore[misc]
        same_fields(found[0], wanted[0])
        same_fields(found[1], wanted[1])
        same_decisions(page, rows, decision)
    same_decisions(page, rows, Decision(floor, 3))


def same_decisions(page: list[np.ndarray], rows: Rows, decision: Decision) -> None:
    """Compare pairs and leaders, also those of a list so long that the core searches it as a collection."""
    pairs, leaders = (
        both(lambda: resembling_pairs(rows, decision)),
        both(lambda: assign_leaders(page, rows.k, decision)),
    )
    same_fields(*pairs)
    for one, other in zip(*leaders, strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    if leaders_of(page, rows.k, decision) is None:
        return  # a pair is too close to its bar
    with as_long():
        same_fields(resembling_pairs(rows, decision), pairs[1])
        for one, other in zip(assign_leaders(page, rows.k, decision), leaders[1], strict=True):
            assert one.tolist() == other.tolist()


@contextmanager
def as_long() -> Iterator[None]:
    """Search any list with a frequency table as a long one."""
    before, similar_pairs.LONG = similar_pairs.LONG, 0
    try:
        yield
    finally:
        similar_pairs.LONG = before


def in_frames(rng: np.random.Generator, count: int, longest: int) -> tuple[list[np.ndarray], FrequencyTable]:
    """Texts of different length in one of three frames, some of them copies, and what an index has counted of them."""
    frames = [rng.choice(2**31, size, replace=False) for size in rng.integers(20, 500, 3)]
    page: list[np.ndarray] = []
    while len(page) < count:
        text = rng.choice(2**31, rng.integers(20, longest), replace=False)
        for _ in range(rng.choice((1, 1, 1, 3))):
            edited = np.where(rng.random(len(text)) < rng.uniform(0, 0.5), rng.integers(0, 2**31, len(text)), text)
            page.append(np.concatenate((frames[rng.integers(3)], edited)))
    shown = np.unique(np.concatenate([*frames, *page[::9]])).astype(np.int32)
    counts = rng.integers(4, 1000, 1) if rng.random() < 0.5 else rng.integers(4, 1000, len(shown))
    return page, FrequencyTable(1000, shown, np.broadcast_to(counts, len(shown)).astype(np.float64), "any")
