"""The number of groups of a result, estimated from its first window and the hits with the smallest sketch values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.group_estimate import GroupEstimate, Sample, estimate_groups, extrapolated, head_of
from ndd_search.core.paging.stream import UNKNOWN, Shown, Stream
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import VALUES, Lack, Sketch
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.rest.read_answer import HitReader

RECIPE, WINDOW = Recipe(), 100
OPTIONS = CollapseOptions(min_similarity=0.8, window=WINDOW)

Found = Sketch | Lack


def reader(start: int, found: Sequence[Found]) -> HitReader:
    return HitReader(RECIPE, SketchField(), None, found, start)


def stream_of(sketches: Sequence[Found]) -> Stream:
    """The stream of a whole result, in rank order."""
    hits = [{"_index": "a", "_id": str(rank)} for rank in range(len(sketches))]
    return Stream().extend(hits, len(hits) + 1, reader(0, sketches), OPTIONS, total=len(hits))


def sample_of(sketches: Sequence[Found], size: int) -> Sample:
    """The sample of a result that an engine would give."""
    valued = [one for one in sketches if not isinstance(one, str)]
    first = sorted(valued, key=lambda one: int(one[0]))[:size]
    hits = [{"_index": "a"} for _ in first]
    return Sample(hits, first, [int(one[0]) for one in first], len(sketches), len(sketches) - len(valued))


def groups_of(stream: Stream) -> int:
    return len(set(stream.leader.tolist()))


def estimate(sketches: Sequence[Found], size: int = 64, window: int = WINDOW) -> tuple[int, GroupEstimate]:
    """The true number of groups, and its estimate."""
    stream = stream_of(sketches)
    head = head_of(stream, window) if window else Stream()
    return groups_of(stream), estimate_groups(head, sample_of(sketches, size), partial(reader, head.fetched), OPTIONS)


def texts_in_copies(seed: int, texts: int, copies: Sequence[int], lengths: Sequence[int]) -> list[Sketch]:
    """Sketches of texts of some numbers of shingles, each in one of the numbers of copies, which differ by 2 %."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(texts):
        values = rng.integers(0, VALUES, rng.choice(lengths), np.int32)
        for _ in range(rng.choice(copies)):
            own = rng.integers(0, VALUES, len(values) // 50, np.int32)
            made.append(np.unique(np.concatenate((values[len(own) :], own)))[: RECIPE.k])
    random.Random(seed).shuffle(made)
    return made


@pytest.mark.parametrize(
    ("copies", "lengths"), [((1,), (80,)), ((1, 1, 1, 2), (30, 90, 400)), ((3,), (120,)), ((1, 2, 5), (60, 300))]
)
def test_the_interval_holds_in_results_of_many_kinds(copies: Sequence[int], lengths: Sequence[int]) -> None:
    inside, widths = 0, []
    for seed in range(20):
        true, found = estimate(texts_in_copies(seed, 250, copies, lengths))
        assert found.relation == "estimate"
        assert found.low <= found.value <= found.high
        inside += found.low <= true <= found.high
        widths.append((found.high - found.low) / true)
    assert inside >= 18
    assert sorted(widths)[10] < 1


def test_a_large_group_that_is_missing_from_the_sample_widens_the_interval() -> None:
    others = texts_in_copies(4, 600, (1,), (80,))
    largest = max(others, key=lambda one: int(one[0]))  # never among the smallest
    mixed = [*others, *[largest] * 600]
    random.Random(4).shuffle(mixed)
    true, found = estimate(mixed)
    assert true == 600
    assert found.low <= true <= found.high


def test_hits_without_values_are_groups_of_their_own() -> None:
    known = texts_in_copies(5, 150, (2,), (80,))
    mixed: list[Found] = [*known, *[Lack.MISSING] * 200]
    random.Random(5).shuffle(mixed)
    true, found = estimate(mixed)
    assert true == 350
    assert found.low <= true <= found.high
    assert found.low >= 200 * 0.5


def test_a_sample_that_holds_everything_is_counted() -> None:
    true, found = estimate(texts_in_copies(6, 20, (1, 2), (80,)), window=0)
    assert (found.value, found.low, found.high) == (true, true, true)


def test_a_sample_of_copies_of_one_text_shows_that_there_are_many() -> None:
    (text,) = texts_in_copies(8, 1, (1,), (80,))
    true, found = estimate([text] * 300, size=24, window=0)
    assert (found.value, found.low) == (12, true)
    nothing: list[Found] = [Lack.MISSING] * 30
    assert estimate(nothing, window=0)[1] == GroupEstimate.exactly(30)


def test_an_engine_that_has_not_indexed_the_keys_gives_bounds_that_hold() -> None:
    """The hits of the window have keys, two of each, and the engine counts none."""
    options = CollapseOptions(min_similarity=0.8, window=WINDOW, group_by=("isbn",))
    sketches = texts_in_copies(3, 400, [1], [60])
    hits = [{"_index": "a", "_id": str(rank), "_source": {"isbn": rank // 2}} for rank in range(len(sketches))]
    whole = Stream().extend(hits, len(hits) + 1, reader(0, sketches), options, total=len(hits))
    sample = sample_of(sketches, 40)
    found = estimate_groups(
        head_of(whole, WINDOW), replace(sample, keys=sample.total), partial(reader, WINDOW), options
    )
    assert found.low <= groups_of(whole) == 200 <= found.high


def test_without_a_sample_the_bounds_hold_always() -> None:
    stream = stream_of(texts_in_copies(7, 100, (3,), (80,)))
    head = head_of(stream, WINDOW)
    found = extrapolated(head, 300)
    assert found.low == groups_of(head)
    assert found.high == groups_of(head) + 200
    empty: list[Any] = []
    assert estimate_groups(head, Sample(empty, empty, empty, 300, 0), partial(reader, 100), OPTIONS) == found


def test_the_estimate_of_a_late_page_is_that_of_the_first_one_also_if_something_was_seen_before() -> None:
    """A late page examines more hits than the first window, some of which were shown before this search."""
    sketches = texts_in_copies(9, 200, (1, 2), (80,))
    hits = [{"_index": "a", "_id": str(rank)} for rank in range(len(sketches))]
    before = Stream(shown=tuple(Shown(rank, UNKNOWN, sketches[rank]) for rank in (3, 107, 150)))
    sample = sample_of(sketches, 40)

    def estimated(examined: int) -> GroupEstimate:
        stream = before.extend(hits[:examined], examined, reader(0, sketches[:examined]), OPTIONS, total=len(hits))
        return estimate_groups(head_of(stream, WINDOW), sample, partial(reader, WINDOW), OPTIONS)

    assert estimated(WINDOW) == estimated(200)
