"""The native core and numpy find the same leaders and pairs on a page, bit for bit."""

import gc
import pickle
import subprocess
import sys
import timeit
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.page_kinds import KINDS, sketches_of
from ndd_search import native
from ndd_search.core.matching.choose_leaders import assign_leaders, leaders
from ndd_search.core.matching.decision import Constants, Decision
from ndd_search.core.matching.document_frequency import count_in_list
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similar_pairs import accepted, leaders_of, overlapping_pairs, resembling_pairs
from ndd_search.core.matching.sketch_rows import Rows, rows_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.errors import InvalidSketch
from ndd_search.native import Core
from tests.native.both import FLOORS, as_long, both, in_frames, pages, same_answers, same_decisions, same_fields


@given(pages, st.integers(1, 30), st.sampled_from(FLOORS))
def test_any_page_gets_the_same_answers(page: list[list[int]], k: int, floor: float) -> None:
    same_answers([np.array(sketch, np.int32) for sketch in page], k, floor)


@given(pages, st.integers(1, 30), st.integers(1, 12), st.sampled_from(["auto", 0.1, "identical"]))
def test_a_list_gets_the_same_groups_window_by_window(
    page: list[list[int]], k: int, window: int, bar: float | str
) -> None:
    recipe, sketches = Recipe(k=k), [np.array(sketch[:k], np.int32) for sketch in page]
    frequency_table = FrequencyTable(
        100, np.arange(0, 30, 2, dtype=np.int32), np.arange(5, 95, 6, dtype=np.int32), recipe.id
    )
    options = CollapseOptions(min_similarity=bar, window=window, mode="demote")
    found, plain = both(
        lambda: collapse(
            page, size=99, sketches=sketches, recipe=recipe, frequency_table=frequency_table, options=options
        )
    )
    assert found.groups == plain.groups


@pytest.mark.parametrize("seed", range(10))
def test_short_texts_get_the_same_answers_whichever_of_their_words_touch_an_edge(seed: int) -> None:
    """Texts of 13 shingles, some without a few of these, and with any share of those that touch an edge."""
    rng = np.random.default_rng(seed)
    texts = np.sort(rng.choice(2**30, (3, 13), replace=False) * 2, axis=1).astype(np.int32)
    chosen = [texts[rng.integers(3)] | (rng.random(13) < rng.random()) for _ in range(20)]
    same_answers([sketch[rng.random(13) < rng.choice((0.8, 1.0))] for sketch in chosen], 64, 0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "k", "floor"), [(20, 32, 0.3), (64, 128, 0.5), (100, 64, 0.8), (300, 96, 0.5)])
def test_every_kind_of_page_gets_the_same_answers(kind: str, count: int, k: int, floor: float) -> None:
    same_answers(sketches_of(KINDS[kind](np.random.default_rng(count), count), k), k, floor)


def test_sketches_of_very_unequal_length_get_the_same_answers() -> None:
    rng = np.random.default_rng(5)
    pool = np.sort(rng.choice(2**31, 400, replace=False)).astype(np.int32)
    for floor in FLOORS:
        page = [pool[rng.random(400) < share][:64] for share in rng.random(80) ** 3]
        same_answers(page, 64, floor)


@given(pages, st.integers(1, 30), st.integers(0, 30), st.integers(0, 8), st.integers(2, 40))
def test_a_long_list_has_the_leaders_of_any_other(
    page: list[list[int]], k: int, old: int, min_shingles: int, every: int
) -> None:
    """With equal texts, short ones, and hits at the head that are leaders already."""
    sketches = [np.array(sketch, np.int32) for sketch in (*page, *page[::2])]
    common = np.arange(0, 41, every, dtype=np.int32)
    table = FrequencyTable(100, common, np.full(len(common), 60, np.int32), "any")
    decision, old = Decision(None, 3, table), min(old, len(sketches))
    wanted = leaders_of(sketches, k, decision, old, min_shingles)
    with as_long():
        found = leaders_of(sketches, k, decision, old, min_shingles)
    if wanted is not None:
        assert found is not None
        assert [column.tolist() for column in found] == [column.tolist() for column in wanted]


@given(pages, st.integers(1, 30), st.integers(2, 40))
def test_a_long_list_has_the_pairs_and_leaders_of_any_other_with_equal_texts(
    page: list[list[int]], k: int, every: int
) -> None:
    sketches = [np.array(sketch, np.int32) for sketch in (*page, *page[::2], *page[::3])]
    common = np.arange(0, 41, every, dtype=np.int32)
    table = FrequencyTable(100, common, np.full(len(common), 60, np.int32), "any")
    same_decisions(sketches, rows_of(sketches, k), Decision(None, 3, table))


def test_the_leaders_of_a_long_list_of_copies_take_memory_for_hits_and_not_for_pairs(core: Core) -> None:
    """Also where many hits are equal, or all resemble one another: 3,000 hits are 4.5 million pairs."""
    rng = np.random.default_rng(2)
    text = np.sort(rng.choice(2**31, 64, replace=False)).astype(np.int32)
    copies = [np.delete(text, place % 64) for place in range(1_500)]
    table = FrequencyTable(100, text[:2], np.full(2, 60, np.int32), "any")
    tracemalloc.start()
    try:
        with as_long():
            found = leaders_of([text] * 1_500 + copies, 64, Decision(None, 3, table))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None
    assert not found[0].any()
    assert most < 5_000_000


def test_a_pair_closer_to_its_bar_than_powers_are_exact_is_left_to_numpy(core: Core) -> None:
    page = [np.arange(40, dtype=np.int32), np.arange(10, 50, dtype=np.int32)]
    rows, some = rows_of(page, 64), np.arange(15, 45, dtype=np.int32)
    frequency_table = FrequencyTable(100, some, np.full(30, 7, np.int32), "any")
    pair = overlapping_pairs(rows, Decision(None, 0, frequency_table))[1]
    (similarity,) = Decision(None, 0, frequency_table).similarity(pair).tolist()
    assert 0.3 < similarity < pair.resemblance[0] - 0.1
    for off, told in ((0.0, False), (1e-14, False), (-1e-14, False), (1e-11, True), (-1e-11, True)):
        decision = Decision(None, 0, frequency_table, Constants(least=similarity + 1e-9 + off, pages=0))
        found = core.pairs(rows.values, rows.offsets, 64, decision.rule, frequency_table.native_table)
        assert (found is not None) == told
        same_decisions(page, rows, decision)
        assert len(resembling_pairs(rows, decision)) == (off <= 0)


@pytest.mark.parametrize(("shared", "own", "joined"), [(143, 16, False), (144, 15, True)])
def test_a_tenth_of_a_long_text_may_differ_whatever_its_rarity_and_no_more(shared: int, own: int, joined: bool) -> None:
    frame, rest = list(range(0, 2 * shared, 2)), list(range(1000, 1000 + 2 * own, 2))
    page = [np.array([*frame, *part], np.int32) for part in (rest[: own // 2], rest[own // 2 :])]
    rows, common = rows_of(page, 200), np.array(frame, np.int32)
    decision = Decision(None, 3, FrequencyTable(10_000, common, np.full(shared, 9_990, np.int32), "any"))
    same_decisions(page, rows, decision)
    assert len(resembling_pairs(rows, decision)) == joined


@pytest.mark.parametrize("seed", range(4))
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
            same_fields(
                found, pairs.where(accepted(rows, decision, pairs.first, pairs.second, overlaps))
            )  # weighed, each of them
            told += len(found)
    alike = resembling_pairs(rows_of(sketches, k), Decision(0.1, 3))
    assert 0 < told < 12 * len(alike)  # weights part some of what is alike, and not all


@pytest.mark.parametrize("seed", range(12))
def test_a_list_gets_the_same_frequency_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    page, _ = in_frames(rng, int(rng.choice((1, 5, 40, 120))), int(rng.choice((40, 100, 400))))
    recipe = Recipe(size=int(rng.choice((1, 3))), k=int(rng.choice((32, 64))))
    even = [text & ~1 for text in page]  # no value touches an edge, so that no text becomes short without them
    sketches = sketches_of([*even, *even[: seed % 3]], recipe.k)
    table, plain = both(lambda: count_in_list(sketches, recipe))
    assert table == plain
    same_decisions(sketches, rows_of(sketches, recipe.k), Decision.of("auto", recipe, plain))


@pytest.mark.parametrize("bare", [6, 12, 13])
def test_a_list_of_texts_with_edges_gets_the_same_frequency_table(bare: int) -> None:
    """A text that is there twice tells no more than once."""
    words = [f"{letter}{number}" for letter in "abcdefg" for number in range(8)]
    copies = [f"PARIS, May {day} (AFP) - {' '.join(words[: 48 - day % 2])}" for day in range(1, 7)]
    texts = [f"seen by x{number} y{number} {' '.join(words[:48])}" for number in range(bare)] + 2 * copies
    others = [" ".join(f"{one}{number}" for one in words) for number in range(40)]
    table, plain = both(lambda: count_in_list(sketch_many([*texts, *others], Recipe()), Recipe()))
    assert table == plain
    assert (len(table.values) == 0) == (bare <= 12)


def test_short_texts_and_long_lists_are_left_to_numpy(core: Core) -> None:
    sketches = [np.arange(place, place + 40, dtype=np.int32) for place in range(501)]
    for page, is_left in ((sketches[:500], False), (sketches, True), ([*sketches[:9], sketches[0][:20]], True)):
        assert (core.counted(page, None, 64, Decision(None, 3).rule, 4.0, 16) is None) == is_left


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


def test_rows_are_the_same_type_either_way() -> None:
    found, plain = both(lambda: rows_of([[3, 4], [5]], 8))
    assert isinstance(found, Rows)
    assert found.values.dtype == plain.values.dtype == np.int32


def test_nobody_can_write_a_page_that_takes_long() -> None:
    """Values that a known multiplication puts side by side made a page two hundred times as slow."""
    seconds = {}
    for kind in ("distinct", "crafted"):
        page = sketches_of(KINDS[kind](np.random.default_rng(1), 100), 64)
        seconds[kind] = min(timeit.repeat(lambda page=page: leaders(page, 0.5, 64), number=5, repeat=20))  # type: ignore[misc]
    assert seconds["crafted"] < 10 * seconds["distinct"]


def test_a_frequency_table_gives_the_same_leaders_in_another_process() -> None:
    """Tables are hashed by random numbers of the process that made them, and travel with them."""
    page, table = in_frames(np.random.default_rng(3), 60, 300)
    sketches, decision = sketches_of(page, 64), Decision(None, 3, table)
    expected = assign_leaders(sketches, 64, decision)[0].tolist()
    assert expected != assign_leaders(sketches, 64, Decision(None, 3, None))[0].tolist()
    code = """if True:
        import pickle, sys
        from ndd_search.core.matching.choose_leaders import assign_leaders
        print(assign_leaders(*pickle.load(sys.stdin.buffer))[0].tolist())"""
    given = pickle.dumps((sketches, 64, decision))
    found = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=True).stdout
    assert found.decode().strip() == str(expected)
