"""The native core and numpy give the same results, bit for bit, and no argument from Python crashes the core."""

import gc
import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.page_kinds import KINDS, sketches_of
from ndd_search import native
from ndd_search.collapse_options import CollapseOptions
from ndd_search.errors import InvalidSketch
from ndd_search.matching.decision import Constants, Decision, Overlaps
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.matching.groups import assign_leaders, leaders
from ndd_search.matching.pairs import Pairs, overlapping_pairs, resembling_pairs
from ndd_search.matching.rows import Rows, rows_of
from ndd_search.native import Core
from ndd_search.paging.collapse import collapse
from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import sketch, sketch_many
from ndd_search.text.shingles import shingle_hashes
from ndd_search.text.unicode_tables import native_table
from tests.strategies import texts as awkward_texts

T = TypeVar("T")
UDHR = Path(__file__).parent / "data" / "udhr.jsonl.gz"
FLOORS = [0.0, 0.1, 0.3, 0.5, 0.8, 1.0]
values = st.one_of(st.integers(0, 40), st.integers(2**31 - 20, 2**31 - 1))
pages = st.lists(st.sets(values, max_size=25).map(sorted), max_size=12)


@pytest.fixture(scope="session", autouse=True)
def core() -> Core:
    if native.core is None:
        if os.environ.get("NDD_TEST_REQUIRE_NATIVE"):
            pytest.fail("the native core is not built: python -m pip install --editable . with a compiler at hand")
        pytest.skip("the native core is not built")
    return native.core


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
    same_fields(*both(lambda: resembling_pairs(rows, decision)))
    for one, other in zip(*both(lambda: assign_leaders(page, rows.k, decision)), strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()


@given(pages, st.integers(1, 30), st.sampled_from(FLOORS))
def test_any_page_gets_the_same_answers(page: list[list[int]], k: int, floor: float) -> None:
    same_answers([np.array(sketch, np.int32) for sketch in page], k, floor)


@given(pages, st.integers(1, 30), st.integers(1, 12), st.sampled_from(["auto", 0.1, "identical"]), st.integers(0, 12))
def test_a_list_gets_the_same_groups_window_by_window(
    page: list[list[int]], k: int, window: int, bar: float | str, min_shingles: int
) -> None:
    recipe, sketches = Recipe(k=k), [np.array(sketch[:k], np.int32) for sketch in page]
    frequency_table = FrequencyTable(
        100, np.arange(0, 30, 2, dtype=np.int32), np.arange(5, 95, 6, dtype=np.int32), recipe.id
    )
    options = CollapseOptions(min_similarity=bar, min_shingles=min_shingles, window=window, mode="demote")
    found, plain = both(
        lambda: collapse(
            page, size=99, sketches=sketches, recipe=recipe, frequency_table=frequency_table, options=options
        )
    )
    assert found.groups == plain.groups


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "k"), [(20, 32), (64, 128), (100, 64), (300, 96)])
@pytest.mark.parametrize("floor", [0.3, 0.5, 0.8])
def test_every_kind_of_page_gets_the_same_answers(kind: str, count: int, k: int, floor: float) -> None:
    same_answers(sketches_of(KINDS[kind](np.random.default_rng(count), count), k), k, floor)


def test_sketches_of_very_unequal_length_get_the_same_answers() -> None:
    rng = np.random.default_rng(5)
    pool = np.sort(rng.choice(2**31, 400, replace=False)).astype(np.int32)
    for floor in FLOORS:
        page = [pool[rng.random(400) < share][:64] for share in rng.random(80) ** 3]
        same_answers(page, 64, floor)


def test_a_pair_closer_to_its_bar_than_powers_are_exact_is_left_to_numpy(core: Core) -> None:
    page = [np.arange(40, dtype=np.int32), np.arange(10, 50, dtype=np.int32)]
    rows, some = rows_of(page, 64), np.arange(15, 45, dtype=np.int32)
    frequency_table = FrequencyTable(100, some, np.full(30, 7, np.int32), "any")
    pair = overlapping_pairs(rows, Decision(None, 0, frequency_table))[1]
    (similarity,) = Decision(None, 0, frequency_table).similarity(pair).tolist()
    assert 0.3 < similarity < pair.resemblance[0] - 0.1
    for off, told in ((0.0, False), (1e-14, False), (-1e-14, False), (1e-11, True), (-1e-11, True)):
        decision = Decision(None, 0, frequency_table, Constants(least=similarity + 1e-9 + off, pages=0))
        found = core.pairs(rows.values, rows.offsets, 64, decision.rule, frequency_table.native_table, True)
        assert (found is not None) == told
        same_decisions(page, rows, decision)
        assert len(resembling_pairs(rows, decision)) == (off <= 0)


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


@pytest.mark.parametrize("seed", range(40))
def test_texts_in_frames_get_the_same_answers_however_much_frames_weigh(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.choice((16, 64, 200)))
    page, frequency_table = in_frames(rng, 80, int(rng.choice((100, 800))))
    sketches, told = sketches_of(page, k), 0
    for power in (0.5, 4.0, 11.0, 60.0):
        for least in (0.1, 0.27, 0.4):
            decision, rows = (
                Decision(None, 3, frequency_table, Constants(least=least, power=power)),
                rows_of(sketches, k),
            )
            same_decisions(sketches, rows, decision)
            pairs, overlaps = overlapping_pairs(rows, decision)
            found = resembling_pairs(rows, decision)
            same_fields(found, pairs.where(decision.accepts(overlaps)))  # weighed, each of them
            told += len(found)
    alike = resembling_pairs(rows_of(sketches, k), Decision(0.1, 3))
    assert 0 < told < 12 * len(alike)  # weights part some of what is alike, and not all


def long_list(rng: np.random.Generator, count: int, frame: int) -> list[np.ndarray]:
    """Texts long and short, half of them with a frame of so many shingles, some of them copies of one before."""
    shared = rng.choice(2**31, frame, replace=False)
    page: list[np.ndarray] = []
    while len(page) < count:
        size = int(rng.integers(4, 30) if rng.random() < 0.2 else rng.integers(60, 200))
        text = rng.choice(2**31, size, replace=False)
        if page and rng.random() < 0.4:
            before = page[rng.integers(len(page))]
            text = np.where(rng.random(len(before)) < rng.uniform(0, 0.6), rng.integers(0, 2**31, len(before)), before)
        page.append(np.concatenate((shared, text)) if rng.random() < 0.5 else text)
    return page


@pytest.mark.parametrize("frame", [0, 4, 60])
def test_a_long_list_gets_the_same_groups(frame: int) -> None:
    """Only the hits that a hit of a long list has met are looked at; what comes out is the same."""
    page = long_list(np.random.default_rng(frame), 1_300, frame)
    sketches = sketches_of(page, 64)
    often, counts = np.unique(np.concatenate(sketches), return_counts=True)
    frequency_table = FrequencyTable(
        1_300, often[counts > 3].astype(np.int32), counts[counts > 3].astype(np.float64), "any"
    )
    for decision in (Decision(0.5, 3), Decision(None, 3), Decision(None, 3, frequency_table)):
        same_decisions(sketches, rows_of(sketches, 64), decision)
    pages = both(lambda: collapse([""] * 1_300, sketches=sketches, size=1_300, window=600))
    assert pages[0].groups == pages[1].groups


def test_rows_of_thousands_of_values_get_the_same_answers() -> None:
    rng = np.random.default_rng(3)
    page, frequency_table = in_frames(rng, 20, 9000)
    frame = rng.choice(2**31, 3000, replace=False)
    sketches = sketches_of([np.concatenate((frame, text)) for text in page], 5000)
    for seen in (frequency_table, FrequencyTable(1000, np.unique(frame).astype(np.int32), np.full(3000, 900.0), "any")):
        same_decisions(sketches, rows_of(sketches, 5000), Decision(None, 3, seen))


@given(
    st.lists(
        st.one_of(
            st.lists(st.integers(-(2**31), 2**31 - 1), max_size=6).map(lambda row: np.array(row, np.int32)),
            st.lists(st.integers(0, 2**40), max_size=4).map(lambda row: np.array(sorted(row), np.int64)),
            st.binary(max_size=9),
            st.sampled_from([None, 1, "text", [1, 2], np.float32([1]), np.zeros((2, 2), np.int32), np.arange(9)[::2]]),  # type: ignore[arg-type]
        ),
        max_size=5,
    ),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
)
def test_what_is_no_page_is_left_to_numpy(page: list[object], k: int, floor: float) -> None:
    assert native.core
    regular = all(
        isinstance(row, np.ndarray) and row.dtype == np.int32 and row.ndim == 1 and (np.diff(row, prepend=-1) > 0).all()
        for row in page
    )
    rule = native.Rule(floor)
    found = native.core.leaders(page, None, k, rule, None, 0), native.core.pairs(page, None, k, rule, None, False)
    expected = regular and k >= 1 and 0 <= floor <= 1
    assert [one is not None for one in found] == [expected, expected]
    assert (native.core.rows(page, None, k) is not None) == (regular and k >= 1)
    assert (native.core.repeats(page, None, k, 1) is not None) == (regular and k >= 1)


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=12),
    st.lists(st.integers(-3, 14), max_size=5),
    st.integers(1, 5),
)
def test_offsets_out_of_range_are_refused(row: list[int], ends: list[int], k: int) -> None:
    assert native.core
    found = native.core.rows(np.array(row, np.int32), np.array(ends, np.int64), k)
    if found is not None:
        assert ends[0] == 0
        assert ends[-1] == len(row)
        assert ends == sorted(ends)


@given(pages, st.integers(1, 4))
def test_equal_sketches_and_repeated_values_are_found(page: list[list[int]], times: int) -> None:
    assert native.core
    rows = [np.array(row, np.int32) for row in page]
    found = native.core.repeats(rows, None, 30, times)
    assert found is not None
    first = [place for place, row in enumerate(page) if row and page.index(row) == place]
    assert np.frombuffer(found[0], np.int64).tolist() == first
    assert found[1] == any(sum(value in row for row in page) > times for value in {one for row in page for one in row})


texts = st.lists(
    st.one_of(
        awkward_texts,
        st.text(max_size=40),
        st.text("ab cé0_.\n\u0301漢ก", max_size=60),
        st.lists(st.sampled_from(["a", "The", "fox's", "12", "naïve", "über", "漢字", "--"]), max_size=400).map(
            " ".join
        ),
    ),
    max_size=5,
)


@given(
    texts,
    st.sampled_from(["words", "characters"]),
    st.integers(1, 6),
    st.sampled_from([1, 2, 16, 64]),
    st.sampled_from([0, 1, 2**31 - 1]),
)
def test_any_text_gets_the_same_sketch(texts: list[str], kind: str, size: int, k: int, seed: int) -> None:
    recipe = Recipe(kind=kind, size=size, k=k, seed=seed)  # type: ignore[arg-type]
    for found, plain in (both(lambda: sketch_many(texts, recipe)), both(lambda: [sketch(t, recipe) for t in texts])):
        assert [one.tolist() for one in found] == [one.tolist() for one in plain]


def test_long_texts_get_the_same_sketch() -> None:
    rng = np.random.default_rng(2)
    for length in (100, 3000, 60_000):
        for words in ([f"{i:x}" for i in range(500)], [f"{i:x}\u0103" for i in range(40_000)]):
            text = " ".join(words[i] for i in rng.integers(0, len(words), length))
            for kind in ("words", "characters"):
                found, plain = both(lambda text=text, kind=kind: sketch(text, Recipe(kind=kind, size=4, k=128)))  # type: ignore[misc]
                assert found.tolist() == plain.tolist()


def test_no_text_of_a_common_script_is_left_to_numpy(core: Core) -> None:
    with gzip.open(UDHR, "rt", encoding="utf-8") as lines:
        articles = [article for line in lines for article in json.loads(line)["articles"]]
    found = core.sketch_texts(articles, bytes(len(articles)), (True, 3, 0, 64), native_table())
    assert found is not None
    assert [articles[i] for i in np.frombuffer(found[2], np.int64)] == []


anything = st.one_of(st.none(), st.integers(), st.text(max_size=9), st.binary(max_size=99), st.floats())
plans = st.one_of(
    anything,
    st.lists(anything, max_size=5).map(tuple),
    st.tuples(st.booleans(), st.integers(-9, 99), st.integers(-9, 2**65), st.integers(-9, 5000)),
)


def test_words_chosen_to_crowd_and_to_fall_get_the_same_sketch() -> None:
    """Hashes that all lie close together, the largest first, twice each: what sorting by size is worst at."""
    recipe = Recipe.words(size=1, k=100)
    words = [f"{i:x}" for i in range(400_000)]
    hashes, _ = shingle_hashes([" ".join(words)], recipe)
    for share in (1e-3, 1e-4):
        chosen = [words[i] for i in np.argsort(hashes)[: int(share * len(words))][::-1]]
        text = " ".join(word for pair in zip(chosen, chosen, strict=True) for word in pair)
        found, plain = both(lambda text=text: sketch(text, recipe))  # type: ignore[misc]
        assert len(found) == min(len(chosen), 100)
        assert found.tolist() == plain.tolist()


@given(
    st.one_of(anything, st.lists(st.one_of(anything, st.text("aé\u0301\u0323ß各", max_size=50)), max_size=4)),
    st.binary(max_size=5),
    plans,
    st.one_of(anything, st.integers(0, 2**32)),
)
def test_nothing_handed_over_harms_the_core(texts: Any, is_ascii: bytes, plan: Any, table: Any) -> None:
    """Not even a table that is random numbers."""
    assert native.core
    if isinstance(table, int):
        table = np.random.default_rng(abs(table)).integers(0, 2**32, 0x110000 + table % 99, np.uint32).tobytes()
    items = texts if isinstance(texts, list) else [texts]
    for text in items:
        native.core.sketch_text(text, plan, table)
    native.core.sketch_texts(items, is_ascii, plan, table)
    native.core.sketch_texts(items, bytes(len(items)), plan, table)
    if not isinstance(texts, list | str | bytes):
        with pytest.raises(TypeError):
            native.core.sketch_texts(texts, is_ascii, plan, table)


entries = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=60, unique=True)


@given(entries, st.lists(st.integers(0, 3), min_size=7, max_size=7), st.integers(1, 4))
def test_records_meet_at_their_tokens(pairs: list[tuple[int, int]], information: list[int], most: int) -> None:
    token, record = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    shared: dict[tuple[int, int], int] = {}
    met = 0
    for place, (one, first) in enumerate(pairs):
        for other, second in pairs[:place]:
            if one == other:
                ends = min(first, second), max(first, second)
                shared[ends] = shared.get(ends, 0) + information[one]
                met += 1
    best: set[tuple[int, int]] = set()
    for record_of in range(10):
        own = [(-weight, sum(ends) - record_of, ends) for ends, weight in shared.items() if record_of in ends]
        best |= {ends for *_, ends in sorted(own)[:most]}
    assert native.core is not None
    found = native.core.meetings(token, record, np.array(information), (10, most, 1, 2))
    assert found is not None
    first, second = (np.frombuffer(of, np.int64).tolist() for of in found[:2])
    assert list(zip(first, second, strict=True)) == sorted(best)
    assert found[2:] == (met, len(shared))


int64s = st.one_of(
    st.lists(st.integers(-3, 12), max_size=20).map(lambda row: np.array(row, np.int64)),
    st.sampled_from([None, "text", np.zeros(3), np.zeros((2, 2), np.int64), np.full(3, 2**62)]),
)


@given(int64s, int64s, int64s, st.integers(-2, 50), st.integers(-2, 5))
def test_no_tokens_handed_over_harm_the_core(
    token: Any, record: Any, information: Any, records: int, most: int
) -> None:
    assert native.core is not None
    found = native.core.meetings(token, record, information, (records, most, 1, most))
    assert found is None or len(found[0]) == len(found[1])
    assert native.core.meetings(token, record, information, (2**31, most, 1, 1)) is None
    rare = native.core.rarest(record, token, records, most)
    assert rare is None or len(rare) <= 8 * len(record)
    groups = native.core.contracted(token, record, information, information, most)
    assert groups is None or len(groups) == 8 * len(information)
    few = most if most > 0 else 1
    joined = native.core.super_tokens(token, record, information, np.ones(few**2, np.int64), (records, 9, few, few, 3))
    assert joined is None or len(joined[0]) == len(joined[1])
    for kind, rows in ((1, (token,)), (2, (token, record, information)), (3, (token, record)), (4, (token, record))):
        compared = native.core.alike(kind, rows, record, information)
        assert compared is None or len(compared) == 16 * len(record)
        for codes, floats in ((information, token), (np.array([0, 1, -1]), np.zeros(1, np.int64))):
            stage = (kind, rows, codes, np.array([1]), np.zeros(0, np.int64), np.zeros(3, np.int64), floats)
            left = native.core.screened(token, record, floats, (stage, stage), 1.0, most)
            assert left is None or len(left[1]) == 2 * len(left[2]) == len(left[0])
    rounds = native.core.mixture(token, record, information, most, token)
    assert rounds is None or len(rounds[0]) == most * len(rounds[1])


@given(
    st.lists(
        st.dictionaries(st.sampled_from("ab"), st.sampled_from([None, "x", "y", 1, 2, 1.5, True, []])) | st.none()
    ),
    st.lists(st.text(max_size=9) | st.just("word " * 40)),
)
def test_no_records_handed_over_harm_the_core(records: list[Any], texts: list[str]) -> None:
    assert native.core is not None
    found = native.core.columns(records, ("a", "b"))
    assert (found is None) == (None in records)
    for name, column in zip("ab", found or [], strict=bool(found)):
        values = [record.get(name) for record in records]
        one_type = {type(value) for value in values} - {type(None)} in ({str}, {int}, {float}, set())
        assert (column is not None) == one_type
        if column:
            assert [None if at < 0 else column[1][at] for at in np.frombuffer(column[0], np.int64).tolist()] == values
    assert native.core.columns(tuple(records), ("a",)) is None
    assert len(native.core.plain_values(texts, False)) == len(native.core.plain_values(texts, True)) == len(texts)
    with pytest.raises(TypeError):
        native.core.plain_values([1], False)  # type: ignore[call-overload]


int32s = st.one_of(st.lists(st.integers(-3, 200), max_size=9).map(lambda row: np.array(row, np.int32)), int64s)
whole = (
    np.array([97, 98, 98, 49], np.int32), np.array([0, 2, 3, 4]), np.array([0, 2, 1]), np.ones(3, np.int64),
    np.ones(3, np.int64), np.array([0, 1, 2, 0]), np.array([0, 2, 4]), np.array([97, 98, 98], np.int32),
    np.array([0, 2, 3]), np.array([0, 0]), np.array([1]),
)  # fmt: skip


@given(st.dictionaries(st.integers(0, len(whole) - 1), int32s, max_size=3))
def test_no_names_handed_over_harm_the_core(changed: dict[int, Any]) -> None:
    assert native.core is not None
    rows, ends = tuple(changed.get(place, row) for place, row in enumerate(whole)), (np.array([0, 1]), np.array([1, 0]))
    found = native.core.alike(0, rows, *ends)
    assert found is None or len(found) == 32
    edges, zero, one = np.array([0.9]).view(np.int64), np.zeros(1, np.int64), np.array([0, 1])
    left = native.core.screened(*ends, zero, ((0, rows, one, edges, zero[:0], np.zeros(3, np.int64), zero),), 1.0, 1)
    assert left is None or len(left[0]) == 16
    assert len(native.core.alike(0, whole, *ends) or b"") == 32
    assert native.core.alike(0, whole[:-1], *ends) is None
    assert native.core.alike(5, whole, *ends) is None


@given(st.one_of(pages, st.just(None)), int64s, st.integers(-2, 30), st.integers(-2, 9))
def test_no_lengths_handed_over_harm_the_core(page: Any, lengths: Any, k: int, spoilt: int) -> None:
    assert native.core is not None
    sketches = page and [np.array(row, np.int32) for row in page]
    found = native.core.containers(sketches, None, k, lengths, spoilt)
    assert found is None or len(found) % 16 == 0


def test_no_sequence_at_all_is_left_to_numpy(core: Core) -> None:
    for nothing in (None, 3, object()):
        assert core.rows(nothing, None, 4) is None
    with pytest.raises(TypeError):
        core.rows([], None)  # type: ignore[call-arg]


def test_a_bad_sketch_is_named_with_the_core_as_without() -> None:
    def problem() -> str:
        with pytest.raises(InvalidSketch) as caught:
            leaders([np.array([1, 2], np.int32), np.array([5, 5], np.int32)])
        return str(caught.value)

    assert len(set(both(problem))) == 1


def test_a_page_leaves_nothing_behind(core: Core) -> None:
    page = sketches_of(KINDS["20 % duplicates"](np.random.default_rng(1), 100), 128)
    rows = rows_of(page, 128)
    references = [sys.getrefcount(sketch) for sketch in page]

    def check() -> None:
        leaders(page, 0.5, 128)
        resembling_pairs(rows, Decision(0.3, 3))
        core.leaders([*page, "no sketch"], None, 128, native.Rule(0.5), None, 0)

    check()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(200):
        check()
    assert tracemalloc.get_traced_memory()[0] - before < 4000  # 20 bytes for each check
    tracemalloc.stop()
    assert [sys.getrefcount(sketch) for sketch in page] == references


def test_a_core_of_another_version_is_left_alone_with_a_warning() -> None:
    code = (
        "import sys, types, warnings\n"
        "old = sys.modules['ndd_search._native'] = types.ModuleType('ndd_search._native')\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    import ndd_search as ndd\n"
        "    from ndd_search import native\n"
        "    ndd.sketch('one two three four')\n"
        "assert native.core is None\n"
        "assert 'has version 1' in str(caught[0].message), caught\n"
        "assert 'reinstall ndd_search' in str(caught[0].message), caught\n"
        "assert len(caught) == 1\n"
        "assert native.in_use() == f'numpy (the native core has version 1, not {native.VERSION})'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_in_use_is_told(core: Core) -> None:
    told, plain = both(native.in_use)
    assert told == "the native core"
    assert plain.startswith("numpy (")


def test_a_core_that_does_not_load_is_not_hidden(tmp_path: object) -> None:
    code = (
        "import sys, importlib.abc\n"
        "class Broken(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'ndd_search._native': raise ImportError('undefined symbol', name=name)\n"
        "sys.meta_path.insert(0, Broken())\n"
        "import ndd_search.native"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "undefined symbol" in done.stderr


def test_rows_are_the_same_type_either_way() -> None:
    found, plain = both(lambda: rows_of([[3, 4], [5]], 8))
    assert isinstance(found, Rows)
    assert found.values.dtype == plain.values.dtype == np.int32
