"""Properties of streams and pages of generated result lists. `test_prove` compares whole pages with an oracle."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.matching.decision import Decision, Overlaps
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.cache_entries import sealed, stream_of, stream_parts, unsealed
from ndd_search.core.paging.fill_page import Fetch, Fetched, fetch_until_full
from ndd_search.core.paging.page import Page, slice_page
from ndd_search.core.paging.stream import Stream
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.estimate_similarity import resemblance
from ndd_search.core.sketching.sketches import Lack, Sketch

RECIPE = Recipe.words(k=12)


@dataclass
class Engine:
    """A ranked list behind the flow: the smallest real engine. hits: {"id", "sketch" or None, fields...}."""

    hits: list[dict[str, Any]]
    fetches: list[Fetch] = field(default_factory=list)
    recipe: Recipe = RECIPE
    frequency_table: FrequencyTable | None = None
    items: None = None

    def fetch(self, wish: Fetch) -> Fetched:
        self.fetches.append(wish)
        return Fetched(self.hits[wish.start : wish.start + wish.size], len(self.hits))

    def sketches(self, hits: Sequence[dict[str, Any]], ranks: Sequence[int]) -> list[Sketch | Lack]:
        return [Lack.MISSING if not hit["sketch"] else np.array(hit["sketch"], np.int32) for hit in hits]

    def identities(self, hits: Sequence[dict[str, Any]], ranks: Sequence[int]) -> list[int]:
        return [hit["id"] for hit in hits]

    def value(self, hit: dict[str, Any], field: str) -> Any:
        return hit.get(field)

    def numbers(self, hit: dict[str, Any]) -> int | None:
        return hit.get("numbers")

    def text_of(self, hit: dict[str, Any]) -> None:
        return None

    def page(self, start: int, size: int, options: CollapseOptions, stream: Stream | None = None) -> Page:
        grown = fetch_until_full(stream or Stream(), start, size, self, options, self.fetch)
        return slice_page(grown, start, size, self, options)


VALUES = st.integers(0, 60).map(lambda number: 2 * number)  # an odd one is its neighbour, at an edge of the text


@st.composite
def engines(draw: st.DrawFn) -> Engine:
    """Result lists full of near-copies: a few base documents, edited a little, some hits without a sketch."""
    bases = draw(st.lists(st.sets(VALUES, min_size=1, max_size=14), min_size=1, max_size=6))
    hits = []
    for identity in range(draw(st.integers(0, 60))):
        base = set(draw(st.sampled_from(bases)))
        edited = base ^ draw(st.sets(VALUES, max_size=3))
        sketch = sorted(edited)[: RECIPE.k] if draw(st.integers(0, 9)) else []
        time = identity * 37 % 61 * 100
        hits.append({"id": identity, "sketch": sketch, "price": draw(st.sampled_from([1, 2])), "time": time})
    return Engine(hits)


@st.composite  # type: ignore[arg-type]
def option_sets(draw: st.DrawFn, **fixed: Any) -> CollapseOptions:
    window = draw(st.integers(1, 20))
    chosen = {
        "min_similarity": draw(st.sampled_from([0.2, 0.5, 0.8, 1.0, "high", "auto"])),
        "window": window,
        "max_window": draw(st.integers(window, 80)),
        "guards": draw(st.sets(st.sampled_from(["same:price", "length:0.5", "within:time=1000s"])).map(tuple)),
    }
    return CollapseOptions(**{**chosen, **fixed})


def counts(hit: dict[str, Any], other: dict[str, Any], options: CollapseOptions) -> bool:
    """Whether two hits are near-duplicates, by definition."""
    a, b = hit["sketch"], other["sketch"]
    alike = resemblance(a, b, RECIPE.k)
    sizes = [len(x) if len(x) < RECIPE.k else (RECIPE.k - 1) * 2**31 / (x[-1] + 1) for x in (a, b)]
    if (
        not alike
        or alike < bar_of(a, b, sizes, options)
        or any(hit[name] != other[name] for name in options.same_fields)
        or any(abs(hit[name] - other[name]) > apart for name, apart in options.seconds_apart.items())
    ):
        return False
    if min(len(a), len(b)) < min(RECIPE.min_shingles, RECIPE.k) and alike < 1:
        return False
    return min(sizes) / max(sizes) >= options.length_ratio


def bar_of(a: list[int], b: list[int], sizes: list[float], options: CollapseOptions) -> float:
    """The resemblance that two hits of these numbers of shingles need."""
    decision = Decision.of(options.min_similarity, RECIPE)
    limit = min([x[-1] for x in (a, b) if len(x) == RECIPE.k], default=2**31)
    numbers = len({*a} & {*b}), sum(x <= limit for x in a), sum(x <= limit for x in b)
    shared, left, right = (np.array([number], np.int64) for number in numbers)
    shorter, longer, *rare = (np.array([float(number)]) for number in (min(sizes), max(sizes), *numbers))
    pair = Overlaps(shared, left, right, shorter, longer, rare[0], rare[1], rare[2])
    return float(decision.bars(pair)[0]) - 1e-9


@given(engines(), option_sets(), st.integers(0, 59))
def test_every_examined_hit_can_be_explained(engine: Engine, options: CollapseOptions, rank: int) -> None:
    page = engine.page(0, 1000, options)
    if rank >= page.info.examined:
        with pytest.raises(IndexError, match="was not examined"):
            page.explain(rank)
        return
    why = page.explain(rank)
    if rank in [group.rank for group in page.groups]:
        assert why.leader == rank
        assert "stands for itself" in str(why)
    else:
        assert counts(engine.hits[why.leader], engine.hits[rank], options)
        assert "is shown under" in str(why)


def test_a_hit_that_comes_twice_is_shown_once() -> None:
    hits = [{"id": i // 2, "sketch": []} for i in range(20)]
    page = Engine(hits).page(0, 10, CollapseOptions(window=4))
    assert [hit["id"] for hit in page.hits] == list(range(10))


def test_as_many_hits_of_a_group_as_there_are_may_be_shown() -> None:
    """A number beyond 64 bits is as good as "all"."""
    engine = Engine([{"id": i, "sketch": list(range(12))} for i in range(5)])
    assert len(engine.page(0, 9, CollapseOptions(window=2, max_per_group=10**30)).hits) == 5


@given(engines(), option_sets(), st.integers(1, 9))
def test_hits_are_compared_piece_by_piece_with_the_same_result(
    engine: Engine, options: CollapseOptions, piece: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ndd_search.core.paging.stream._BATCH", piece)
        pieces = engine.page(0, 1000, options)
    whole = engine.page(0, 1000, options)
    assert (pieces.groups, pieces.info.kept) == (whole.groups, whole.info.kept)


def test_thousands_of_copies_of_one_text_take_little_memory() -> None:
    engine = Engine([{"id": i, "sketch": [*range(11), 100 + i]} for i in range(8000)])
    tracemalloc.start()
    page = engine.page(0, 2, CollapseOptions(min_similarity=0.8))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (page.info.examined, page.info.kept) == (8000, 1)
    assert peak < 100 * 2**20  # the pairs of half of them alone would take 250


@pytest.mark.parametrize("guards", [["same:id"], ["numbers"], ["within:day=1d"]])
def test_thousands_of_copies_that_a_guard_keeps_apart_take_little_memory(guards: list[str]) -> None:
    """They are compared with those alone that the guard lets them join."""
    hits = [{"id": i // 2, "text": f"ministers agreed on steel {i // 2}", "day": i // 2 * 1e5} for i in range(8000)]
    sketches = [np.arange(12, dtype=np.int32)] * len(hits)
    tracemalloc.start()
    page = ndd.collapse(hits, sketches=sketches, size=9000, text="text", guards=guards, min_similarity=0.8)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [hit["id"] for hit in page.hits] == list(range(4000))
    assert peak < 100 * 2**20


def test_a_second_page_fetches_only_what_the_stream_lacks() -> None:
    engine = Engine([{"id": i, "sketch": []} for i in range(500)])
    options = CollapseOptions(window=50)
    stream = fetch_until_full(Stream(), 0, 10, engine, options, engine.fetch)
    stream = fetch_until_full(stream, 39, 10, engine, options, engine.fetch)
    fetch_until_full(stream, 90, 20, engine, options, engine.fetch)
    assert engine.fetches == [Fetch(0, 50), Fetch(50, 150)]


def test_hits_too_far_apart_in_time_stay_apart_and_so_does_one_without_a_time() -> None:
    same = {"sketch": list(range(12))}
    times = ["2024-01-01", "2024-01-01T12:00:00Z", "2024-02-01", "not a time", 1704067200, 1704067200000]
    engine = Engine([{"id": i, "time": time, **same} for i, time in enumerate(times)])
    page = engine.page(0, 10, CollapseOptions(guards=("within:time=1d",)))
    assert [hit["id"] for hit in page.hits] == [0, 2, 3]
    assert "within:time keeps them apart" in page.explain(2).rule


def test_the_estimate_of_unique_hits_is_exact_at_the_end_and_bounded_before() -> None:
    engine = Engine([{"id": i, "sketch": list(range(i // 2 * 20, i // 2 * 20 + 12))} for i in range(400)])
    early, late = (engine.page(0, size, CollapseOptions(window=100)).info.unique for size in (10, 400))
    assert early is not None
    assert late is not None
    assert (early.value, early.relation, early.low, early.high) == (200, "estimate", 50, 350)
    assert (late.value, late.relation, late.low, late.high) == (200, "eq", 200, 200)


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (["longest:body"], 2),
        (["oldest:time"], 1),
        (["newest:time", "score"], 0),
        (["preferred:source=reuters,ap"], 2),
        (["preferred:source=ap,reuters", "oldest:time"], 1),
        ([lambda hit: -hit["id"]], 2),
        (["longest"], 0),
    ],
)
def test_the_copy_shown_is_the_one_wished_for(keep: list[Any], expected: int) -> None:
    same = {"sketch": list(range(12))}
    hits = [
        {"id": 0, "time": "2024-03-01", "body": "a", "source": "blog", **same},
        {"id": 1, "time": "2023-03-01", "body": "ab", "source": "ap", **same},
        {"id": 2, "body": "abc", "source": "reuters", **same},
    ]
    page = Engine(hits).page(0, 10, CollapseOptions(keep=keep))  # type: ignore[arg-type]
    assert [hit["id"] for hit in page.hits] == [expected]
    assert sorted(copy.hit["id"] for copy in page.groups[0].duplicates) == sorted({0, 1, 2} - {expected})


@given(engines(), option_sets(), st.integers(0, 20), st.integers(1, 7))
def test_a_stream_comes_back_from_its_bytes_and_gives_the_same_page(
    engine: Engine, options: CollapseOptions, start: int, size: int
) -> None:
    stream = fetch_until_full(Stream(), start, size, engine, options, engine.fetch)
    entry = sealed(b"key", *stream_parts(stream))
    found = entry and unsealed(b"key", entry)
    assert found
    back = stream_of(*found)
    assert back.hits == stream.hits
    assert [one.tolist() for one in back.sketches] == [one.tolist() for one in stream.sketches]
    assert all(one.dtype == np.int32 for one in back.sketches)
    assert (
        slice_page(back, start, size, engine, options).groups == slice_page(stream, start, size, engine, options).groups
    )


@given(engines(), option_sets(mode="group"), st.integers(1, 7), st.sets(st.integers(0, 60)))
def test_a_page_with_other_hits_shows_those_and_ends_where_one_is_missing(
    engine: Engine, options: CollapseOptions, size: int, missing: set[int]
) -> None:
    page = engine.page(0, size, options)
    assert page.ranks >= {group.rank for group in page.groups}
    whole = {rank: {"whole": rank} for rank in page.ranks}
    full = page.with_hits(whole)
    assert [group.hit for group in full.groups] == [{"whole": group.rank} for group in page.groups]
    assert [[one.hit for one in group.duplicates] for group in full.groups] == [
        [{"whole": one.rank} for one in group.duplicates] for group in page.groups
    ]
    assert full.info == page.info
    assert all(full.hit_at(rank) == {"whole": rank} for rank in page.ranks)
    partial = page.with_hits({rank: hit for rank, hit in whole.items() if rank not in missing})
    lacking = [at for at, group in enumerate(page.groups) if group.rank in missing]
    assert len(partial) == (lacking[0] if lacking else len(page))
    for group, before in zip(partial.groups, page.groups, strict=False):
        assert [one.rank for one in group.duplicates] == [
            one.rank for one in before.duplicates if one.rank not in missing
        ]
