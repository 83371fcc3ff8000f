"""The pairs and leaders of a whole collection are those that comparing every pair finds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.core.matching.choose_leaders import assign_leaders, choose_leaders
from ndd_search.core.matching.decision import Decision, Setting
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.similar_pairs import Pairs, accepted, as_compared, overlaps
from ndd_search.core.matching.similarity_measures import similarities
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches, sketch_many
from ndd_search.corpus.collection import Corpus
from ndd_search.corpus.collection_pairs import Search, frequency_table
from ndd_search.corpus.guard_columns import Guards
from tests import collections
from tests.corpus import made

WAYS = ["native", pytest.param("numpy", id="without_core")]
BARS: list[Setting] = ["auto", 0.2, 0.5, 0.8, 1.0]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    choose(request.param, monkeypatch)
    return str(request.param)


def choose(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "numpy":
        monkeypatch.setattr(native, "core", None)
    elif native.core is None:
        pytest.skip("the native core was not built")


def search_for(bar: Setting, sketches: Sketches, recipe: Recipe, **more: Any) -> Search:
    table = frequency_table(sketches, recipe) if bar == "auto" else None
    return Search(recipe=recipe, decision=Decision.of(bar, recipe, table), **more)


def every_pair(sketches: Sketches, search: Search) -> Pairs:
    """All pairs that the decision accepts, each compared by itself."""
    rows = rows_of(as_compared(sketches, search.recipe.k, search.decision), search.recipe.k)
    first, second = np.triu_indices(len(sketches), 1)
    shared = overlaps(rows, first, second, search.decision.frequency_table)
    short = np.minimum(rows.lengths[first], rows.lengths[second]) < search.min_shingles
    counts = (
        accepted(rows, search.decision, first, second, shared)
        & (shared.shared > 0)
        & (~short | (shared.resemblance == 1))
    )
    return Pairs(first[counts], second[counts], shared.resemblance[counts])


def as_set(pairs: Pairs) -> set[tuple[int, int]]:
    return set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))


def check(sketches: Sketches, search: Search) -> None:
    expected = every_pair(sketches, search)
    found = search.pairs(sketches)
    first, second = expected.first, expected.second
    different = (found.same[first] == first) & (found.same[second] == second)
    assert as_set(found.pairs) == as_set(expected.where(different))
    assert (np.diff(found.pairs.first) >= 0).all()
    compared = as_compared(sketches, search.recipe.k, search.decision)
    equal = [bytes(one.tobytes()) or place for place, one in enumerate(compared)]
    assert found.same.tolist() == [equal.index(one) for one in equal]
    leader, similarity = choose_leaders(len(sketches), expected)
    led = search.leaders(sketches)
    assert led.leader.tolist() == leader.tolist()
    assert led.similarity == pytest.approx(similarity)
    assert led.effort.cut == found.effort.cut == 0


def test_large_sketches_that_meet_in_more_lists_than_they_have_values_are_found(way: str) -> None:
    """Lists of a few values are one by chance, so two sketches of 255 values may meet in more than 255 lists."""
    recipe = Recipe(k=255)
    for seed in range(50):
        values = np.sort(np.random.default_rng(seed).choice(2**31 - 1, 256, replace=False)).astype(np.int32)
        sketches = Sketches(np.concatenate((values[:-1], values[1:])), np.array([0, 255, 510]))
        assert as_set(search_for(0.02, sketches, recipe).pairs(sketches).pairs) == {(0, 1)}


def test_empty_sketches_are_no_pair(way: str) -> None:
    sketches = Sketches(np.array([1, 2], np.int32), np.array([0, 0, 0, 2]))
    pairs = search_for(0.5, sketches, Recipe()).pairs(sketches).pairs
    assert not as_set(pairs)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 60),
    k=st.sampled_from([4, 16, 64]),
    bar=st.sampled_from(BARS),
    min_shingles=st.sampled_from([0, 4]),
)
def test_no_pair_is_missed_and_none_is_invented(
    way: str, seed: int, count: int, k: int, bar: Setting, min_shingles: int
) -> None:
    """Whatever the sketches are: frames, copies, equal, short or empty ones."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        choose(way, monkeypatch)
        sketches = made.sketches(seed, count, k)
        check(sketches, search_for(bar, sketches, Recipe(k=k), min_shingles=min_shingles, budget=2**31))


@pytest.mark.parametrize(
    ("frames", "framed", "bar"), [*((3, 0.5, bar) for bar in BARS), (1, 1.0, "auto"), (1, 1.0, 0.2)]
)
def test_texts_in_frames_have_the_pairs_that_comparing_all_finds(
    way: str, frames: int, framed: float, bar: Setting
) -> None:
    """Also where one frame stands around everything."""
    sketches = sketch_many(made.texts(300, frames=frames, framed=framed), Recipe())
    check(sketches, search_for(bar, sketches, Recipe(), budget=2**31))


@pytest.mark.parametrize("name", ["factbook", "advisories", "xquad_pages", "synth_web", "licences"])
@pytest.mark.parametrize("bar", ["auto", 0.5])
def test_the_budget_cuts_nothing_of_a_development_set(name: str, bar: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the core finds what numpy finds."""
    if native.core is None:
        pytest.skip("the native core was not built")
    sketches = sketch_many([document["text"] for document in collections.read(name)[:1000]], Recipe())
    search = search_for(bar, sketches, Recipe(), min_shingles=4)
    led, found = search.leaders(sketches), search.pairs(sketches)
    assert led.effort.cut == found.effort.cut == 0
    choose("numpy", monkeypatch)
    expected = search.pairs(sketches)
    assert as_set(found.pairs) == as_set(expected.pairs)
    leader, _ = choose_leaders(len(sketches), expected.pairs)
    assert led.leader.tolist() == leader[expected.same].tolist()


@pytest.mark.parametrize("bar", ["auto", 0.5])
def test_the_number_of_threads_changes_nothing(bar: Setting) -> None:
    """Of a collection of several blocks, each of which all threads look up together."""
    if native.core is None:
        pytest.skip("only the native core has threads")
    recipe = Recipe(k=16)
    sketches = made.sketches(1, 10_000, recipe.k)
    results = []
    for threads in (1, 3):
        search = replace(search_for(bar, sketches, recipe), threads=threads)
        led, found, few = search.leaders(sketches, 5_000), search.pairs(sketches), search.pairs(sketches, 3)
        columns = [led.leader, led.similarity, found.same]
        columns += [column for one in (found, few) for column in (one.pairs.first, one.pairs.second)]
        results.append([column.tolist() for column in columns] + [led.effort, found.effort, few.effort])
    assert results[0] == results[1]
    assert found.effort.cut == 0 < few.effort.cut
    every = search.leaders(sketches)
    leader, similarity = choose_leaders(len(sketches), found.pairs)
    assert (every.leader == leader[found.same]).all()
    assert (every.similarity == similarity[found.same]).all()


@pytest.mark.parametrize("bar", ["auto", 0.5])
def test_guards_keep_apart_what_comparing_all_pairs_keeps_apart(way: str, bar: Setting) -> None:
    """Equal sketches, too; a document whose number is unknown, or which has no time, stands alone."""
    random = np.random.default_rng(5)
    sketches = made.sketches(5, 300, 64)
    times = np.where(random.random(300) < 0.1, np.nan, random.integers(0, 5, 300).astype(float))
    codes = random.integers(-1, 3, 300)
    plain = search_for(bar, sketches, Recipe())
    for guards in (Guards(codes), Guards(None, times, 1.0), Guards(codes, times, 2.0)):
        search = replace(plain, guards=guards)
        every = every_pair(sketches, plain)
        expected = every.where(guards.allow(every.first, every.second))
        found = search.pairs(sketches)
        different = (found.same[expected.first] == expected.first) & (found.same[expected.second] == expected.second)
        assert as_set(found.pairs) == as_set(expected.where(different))
        leader, _ = choose_leaders(len(sketches), expected)
        assert search.leaders(sketches).leader.tolist() == leader.tolist()


def test_the_number_of_documents_that_another_code_keeps_apart_costs_hardly_any_work() -> None:
    """Documents of different codes are met only where two values have one list by chance, however much they share."""
    if native.core is None:
        pytest.skip("numpy compares every pair that meets")
    sketches = sketch_many(["the same few words in every one of them"] * 20_000, Recipe())
    search = search_for(0.5, sketches, Recipe(), guards=Guards(np.arange(20_000)))
    led = search.leaders(sketches)
    assert (led.leader == np.arange(20_000)).all()
    assert led.effort.met < 1_000
    assert (led.effort.compared, led.effort.cut) == (0, 0)


PUBLISHED = [
    Recipe.min_hash(),
    Recipe.words(estimator="broder"),
    Recipe.super_shingles(),
    Recipe.sentences(None, hash="crc32", estimator="broder"),
    Recipe.characters(17, k=16, estimator="overlap"),
    Recipe.n_grams(),
    Recipe.simhash(),
    Recipe.profile(),
]


@pytest.mark.parametrize("bar", ["auto", 0.3, 0.97])
@pytest.mark.parametrize("recipe", PUBLISHED, ids=lambda recipe: recipe.id)
def test_a_published_method_finds_by_tables_what_comparing_all_pairs_finds(
    recipe: Recipe, bar: Setting, way: str
) -> None:
    texts = [text if at % 9 else text[: at % 30] for at, text in enumerate(made.texts(200, frames=2))]
    bar = 0.9 if bar == 0.3 and recipe.measure == "cosine" else bar
    sketches = sketch_many(texts, recipe)
    search = replace(search_for(bar, sketches, recipe), min_shingles=recipe.min_shingles)
    found = search.pairs(sketches)
    rows = rows_of(sketches, recipe.k)
    first, second = np.triu_indices(len(texts), 1)
    alike = similarities(rows, first, second, recipe.measure)
    long = np.minimum(rows.lengths[first], rows.lengths[second]) >= min(recipe.min_shingles, recipe.k)
    known = (found.same == np.arange(len(texts))) & (rows.lengths > 0)
    counts = (alike >= (search.decision.bar or 0) - 1e-9) & long & known[first] & known[second]
    expected = zip(first[counts].tolist(), second[counts].tolist(), strict=True)
    assert list(zip(found.pairs.first.tolist(), found.pairs.second.tolist(), strict=True)) == list(expected)
    assert found.pairs.similarity == pytest.approx(alike[counts])
    leaders, _ = choose_leaders(len(texts), found.pairs)
    assert search.leaders(sketches).leader.tolist() == leaders[found.same].tolist()


@pytest.mark.parametrize("recipe", PUBLISHED[:2], ids=lambda recipe: recipe.id)
def test_a_published_method_meets_few_documents_of_one_frame(recipe: Recipe) -> None:
    """Texts in one frame resemble each other by a third: to meet all of them would take the square of their number."""
    if native.core is None:
        pytest.skip("numpy compares every pair that meets")
    sketches = sketch_many(made.texts(1000, frames=5, framed=1.0), recipe)
    led = search_for("auto", sketches, recipe, min_shingles=4).leaders(sketches)
    assert len(set(led.leader.tolist())) < 950
    assert led.effort.met < 50 * 1000


def test_containment_says_which_document_contains_the_other() -> None:
    text = " ".join(f"word{number}" for number in range(300))
    sketches = sketch_many([text, f"{text} " + " ".join(f"more{number}" for number in range(100))], Recipe())
    of_first, of_second = search_for(0.5, sketches, Recipe()).pairs(sketches).containments()
    assert of_first[0] == 1.0
    assert 0.5 < of_second[0] < 0.95


def test_what_a_budget_leaves_out_is_counted() -> None:
    if native.core is None:
        pytest.skip("numpy has no budget")
    sketches = sketch_many(made.texts(800, frames=1, framed=1.0), Recipe())
    assert search_for("auto", sketches, Recipe(), budget=1).leaders(sketches).effort.cut > 0


def test_a_budget_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="budget must be at least 1, got 0"):
        Search(recipe=Recipe(), decision=Decision(0.5, 3), budget=0)
    with pytest.raises(TypeError, match="budget must be a whole number, got '9'"):
        Search(recipe=Recipe(), decision=Decision(0.5, 3), budget="9")  # type: ignore[arg-type]


def test_the_first_documents_can_be_leaders_whatever_they_share(way: str) -> None:
    """A collection is compared with an earlier one, in which copies are not looked for again."""
    sketches = sketch_many(
        ["one two three four five six seven"] * 3 + ["another text of some more words here"], Recipe()
    )
    search = search_for(0.5, sketches, Recipe())
    assert search.leaders(sketches, old=2).leader.tolist() == [0, 1, 0, 3]


def test_equal_texts_cost_no_pairs(way: str) -> None:
    """Twenty thousand equal texts are no two hundred million pairs."""
    sketches = sketch_many(["the same few words in every one of them"] * 20_000, Recipe())
    search = search_for("auto", sketches, Recipe())
    assert not search.leaders(sketches).leader.any()
    found = search.pairs(sketches)
    assert (len(found.pairs), int(found.same.max())) == (0, 0)


def test_empty_texts_are_nobodys_duplicates(way: str) -> None:
    sketches = sketch_many([""] * 100_000, Recipe())
    led = search_for("auto", sketches, Recipe()).leaders(sketches)
    assert (led.leader == np.arange(100_000)).all()


def test_pairs_of_one_document_can_be_bounded(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To those with the first of the earlier documents, whatever finds them."""
    text = " ".join(f"word{number}" for number in range(200))
    sketches = sketch_many([f"{text} {number}" for number in range(300)], Recipe())
    search = search_for(0.5, sketches, Recipe())
    found = search.pairs(sketches, each=5)
    assert found.effort.cut > 0
    every = search.pairs(sketches).pairs
    first = {second: sorted(every.first[every.second == second].tolist())[:5] for second in range(300)}
    assert as_set(found.pairs) == {(one, second) for second, others in first.items() for one in others}


def test_the_caller_is_told_how_far_the_search_is_and_can_end_it() -> None:
    if native.core is None:
        pytest.skip("numpy tells nothing")
    sketches = sketch_many([str(number) for number in range(10_000)], Recipe())
    told: list[int] = []
    search = Search(recipe=Recipe(), decision=Decision(0.5, 3), progress=told.append)
    search.leaders(sketches)
    assert told == sorted(told) != []

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Search(recipe=Recipe(), decision=Decision(0.5, 3), progress=stop).leaders(sketches)


def test_nobody_can_write_documents_that_all_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that a known multiplication puts into one slot were one value, so each document met all others."""
    choose("native", monkeypatch)
    numbers = np.arange(1 << 23, dtype=np.uint64)
    values = np.flatnonzero(numbers * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - 11) == 0)[:2_000]
    sketches = Sketches(values.astype(np.int32), np.arange(126) * 16)
    found = search_for(0.5, sketches, Recipe(k=16)).leaders(sketches)
    assert found.leader.tolist() == list(range(125))
    assert found.effort.met < 1_000


@pytest.mark.parametrize("method", ["leaders", "pairs"])
def test_arrays_that_change_during_a_search_change_nothing(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The core reads what it was given at the start: changed offsets made it read beyond memory."""
    choose("native", monkeypatch)
    sketches = made.sketches(seed=4, count=12_000, k=16)
    expected = getattr(search_for(0.5, sketches, Recipe(k=16)), method)(sketches)

    def change(_: int) -> None:
        sketches.values[:], sketches.offsets[:] = -1, 2**60

    found = getattr(search_for(0.5, sketches, Recipe(k=16), progress=change), method)(sketches)
    assert sketches.offsets[0] == 2**60
    assert found.effort == expected.effort


@pytest.mark.parametrize("way", WAYS)
def test_arrays_that_another_thread_changes_harm_nothing(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they hold while they are read: it is refused, or searched; what comes later is as before."""
    choose(way, monkeypatch)
    sketches, rows = made.sketches(seed=4, count=6_000, k=16), made.sketches(seed=5, count=300, k=16)
    page, over = [np.array(row) for row in rows], threading.Event()
    search = search_for(0.5, sketches, Recipe(k=16))
    kept = sketches.values.copy(), sketches.offsets.copy(), [row.copy() for row in page]

    def change() -> None:
        while not over.is_set():
            sketches.values[:], sketches.offsets[1:-1] = -1, 2**60
            for row in page:
                row[:] = 2**31 - 1
            restore()

    def restore() -> None:
        sketches.values[:], sketches.offsets[:] = kept[:2]
        for row, old in zip(page, kept[2], strict=True):
            row[:] = old

    calls: list[Callable[[], Any]] = [
        lambda: search.leaders(sketches).leader,
        lambda: search.pairs(sketches).pairs.first,
        lambda: count_document_frequency(sketches, Recipe(k=16)).to_dict(),
        lambda: assign_leaders(page, 16, Decision(0.5, 3))[0],
    ]
    expected = [list(call()) for call in calls]
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for call in calls * 5:
            with suppress(Exception):  # no message of the core names such arrays
                call()
    finally:
        over.set()
        thread.join()
    restore()
    assert [list(call()) for call in calls] == expected


def test_a_corpus_keeps_sketches_that_nobody_changes() -> None:
    sketches = made.sketches(seed=4, count=300, k=64)
    shown = sketches.values.view()
    shown.flags.writeable = False
    corpus = Corpus([str(number) for number in range(300)], Sketches(shown, sketches.offsets), Recipe())
    before = corpus.groups(0.5).leader.tolist()
    sketches.values[:], sketches.offsets[:] = 0, 7
    assert corpus.groups(0.5).leader.tolist() == before
