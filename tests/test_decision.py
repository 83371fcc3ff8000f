"""The default decision: the bar of a pair, and its invariants."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.core.matching.decision import Decision, Overlaps, Setting
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.errors import RecipeMismatch

RECIPE = Recipe()


def table(documents: int = 1000, **counts: int) -> FrequencyTable:
    pairs = sorted((int(value[1:]), count) for value, count in counts.items())
    values, numbers = np.array(pairs, np.int32).reshape(-1, 2).T
    return FrequencyTable(documents, values, numbers.astype(np.float64), RECIPE.id)


def overlap(
    shared: int, left: int, right: int, shorter: float = 300, rare: tuple[float, ...] = (), longer: float = 0
) -> Overlaps:
    rare = rare or (shared, left, right)
    return Overlaps(  # type: ignore[call-arg]
        *(np.array([number]) for number in (shared, left, right)),
        np.array([float(shorter)]),
        np.array([float(max(longer, shorter))]),
        *(np.array([float(number)]) for number in rare),
    )


def test_rareness_falls_from_one_for_a_handful_of_documents_to_nothing_for_a_value_in_all() -> None:
    frequency_table = table(documents=300, v7=30, v9=300)
    assert frequency_table.idf([5, 7, 9, 2**31 - 1]) == pytest.approx([1, 0.5, 0, 1])


def test_a_table_of_a_handful_of_documents_tells_nothing() -> None:
    small = table(documents=3)
    assert small.idf([1, 2, 3]).tolist() == [1, 1, 1]
    assert Decision.of("auto", RECIPE, small) == Decision.of("auto", RECIPE)


def test_a_table_survives_being_written_and_read() -> None:
    frequency_table = table(v7=40, v9=400)
    read = FrequencyTable.from_dict(json.loads(json.dumps(frequency_table.to_dict())))
    assert (read.documents, read.recipe) == (1000, RECIPE.id)
    assert (read.values.tolist(), read.counts.tolist()) == ([7, 9], [40, 400])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 1}, "version 2, got 1"),
        ({"values": [9, 7]}, "damaged"),
        ({"values": [7, 2**31]}, "damaged"),
        ({"values": [7]}, "damaged"),
        ({"counts": [3, 400]}, "out of range"),
        ({"counts": [float("nan"), 400]}, "out of range"),
        ({"documents": float("inf")}, "damaged"),
        ({"documents": 100}, "out of range"),
    ],
)
def test_a_damaged_table_is_refused(change: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        FrequencyTable.from_dict(table(v7=40, v9=400).to_dict() | change)


def test_a_table_of_another_recipe_is_refused() -> None:
    with pytest.raises(RecipeMismatch, match=r"w3-k64-v4.*c5-k64-v4"):
        Decision.of("auto", Recipe.characters(), table())


@pytest.mark.parametrize("setting", ["automatic", 0, 1.5, float("nan"), True])
def test_an_unknown_setting_is_refused(setting: Setting) -> None:
    with pytest.raises(ValueError, match="min_similarity"):
        Decision.of(setting, RECIPE)


@pytest.mark.parametrize(("setting", "bar"), [("identical", 1.0), ("high", 0.8), ("moderate", 0.5), (0.65, 0.65)])
def test_names_and_numbers_are_plain_bars_that_no_table_moves(setting: Setting, bar: float) -> None:
    decision = Decision.of(setting, RECIPE, table(v7=900))
    shared = round(bar * 20)
    assert decision.floor == bar
    assert decision.accepts(overlap(shared, 20, shared, rare=(1, 18, 1))).tolist() == [True]
    assert decision.accepts(overlap(shared - 1, 20, shared - 1)).tolist() == [False]


def test_without_a_table_half_of_what_a_short_text_may_be_asked_is_asked() -> None:
    decision = Decision.of("auto", RECIPE)  # 0.24 + 12 / n / 2
    assert decision.accepts(overlap(12, 18, 18, shorter=24)).tolist() == [True]
    assert decision.accepts(overlap(11, 18, 18, shorter=24)).tolist() == [False]


@pytest.mark.parametrize("documents", [40, 1_000, 1_000_000])
def test_a_short_text_is_asked_for_half_if_no_other_documents_have_what_it_shares(documents: int) -> None:
    alone, family = overlap(18, 24, 25, shorter=25), overlap(18, 24, 25, rare=(15, 21, 22), shorter=25)
    decision = Decision.of("auto", RECIPE, table(documents=documents))  # 0.24 + 12 / n / 2, or without the half
    assert decision.accepts(alone).tolist() == [True]
    assert decision.accepts(family).tolist() == [False]
    assert decision.accepts(overlap(15, 24, 25, shorter=25)).tolist() == [False]


def test_a_table_parts_texts_that_share_a_template() -> None:
    template = overlap(50, 60, 58, rare=(25, 34, 32))
    assert Decision.of("auto", RECIPE).accepts(template).tolist() == [True]
    assert Decision.of("auto", RECIPE, table()).accepts(template).tolist() == [False]


def test_a_rare_frame_around_a_text_does_not_part_it_from_the_bare_one() -> None:
    framed, other = overlap(50, 70, 50, rare=(25, 45, 25)), overlap(50, 60, 60, rare=(25, 35, 35))
    assert framed.resemblance.tolist() == other.resemblance.tolist()
    assert (framed.specificity.tolist(), other.specificity.tolist()) == ([0.5], [0.5])
    assert (framed.mutuality.tolist(), other.mutuality.tolist()) == ([0], [1])
    decision = Decision.of("auto", RECIPE, table())
    assert (decision.accepts(framed).tolist(), decision.accepts(other).tolist()) == ([True], [False])


def test_texts_that_share_nothing_are_not_alike() -> None:
    decision = Decision.of("auto", RECIPE, table())
    assert decision.similarity(overlap(0, 64, 60)).tolist() == [0]
    assert decision.accepts(overlap(0, 64, 60)).tolist() == [False]


def test_short_texts_must_be_more_alike_than_long_ones() -> None:
    decision = Decision.of("auto", RECIPE, table())
    common = (18, 29, 29)
    assert decision.accepts(overlap(20, 32, 32, rare=common, shorter=150)).tolist() == [True]
    assert decision.accepts(overlap(20, 32, 32, rare=common, shorter=12)).tolist() == [False]


def test_the_bar_falls_with_the_length_of_the_shorter_text_and_rises_with_what_others_have_of_the_shared_text() -> None:
    decision = Decision.of("auto", RECIPE, table())
    bars = [float(decision.bars(overlap(9, 9, 12, shorter=n))[0]) for n in (1, 12, 24, 300)]
    assert bars == pytest.approx([1, *(0.24 + 6 / n for n in (12, 24, 300))])
    rarities = [(rare, 10, 12) for rare in (10, 9.9, 9.5, 5)]
    common = [float(decision.bars(overlap(10, 10, 12, rare=rare, shorter=24))[0]) for rare in rarities]
    assert common == pytest.approx([0.24 + 0.5 * share for share in (0.5, 0.7, 1, 1)])


def test_nothing_apart_is_as_specific_as_can_be_whatever_the_rounding_of_sums() -> None:
    almost = overlap(64, 64, 64, rare=(30.0, 30.0 + 1e-8, 30.0 - 1e-9))
    assert almost.specificity.tolist() == [1]


def test_long_texts_that_each_have_pages_of_their_own_must_be_nearly_as_alike_as_copies() -> None:
    for decision in (Decision.of("auto", RECIPE, table()), Decision.of("auto", RECIPE)):
        editions, extended, copies = overlap(42, 57, 57), overlap(42, 42, 64), overlap(57, 62, 62)
        for shingles, accepted in ((100, [True, True, True]), (5000, [False, True, True])):
            pairs = [replace(one, longer=np.array([shingles])) for one in (editions, extended, copies)]
            assert [decision.accepts(pair).tolist() for pair in pairs] == [[yes] for yes in accepted]
        bars = [decision.bars(overlap(42, 57, 57, longer=n))[0] for n in (0, 150, 600, 10**6)]
        assert bars == sorted(bars)
        assert bars[-1] == pytest.approx(0.76, abs=1e-3)


def test_content_of_both_texts_own_and_its_rarity_are_questions_of_their_own() -> None:
    decision = Decision.of("auto", RECIPE, table())
    scanned = overlap(57, 64, 64, rare=(50, 56.7, 56.7), longer=5000)
    bar, similarity = decision.bars(scanned)[0], decision.similarity(scanned)[0]
    assert similarity < 0.76 < scanned.resemblance[0]
    assert bar < similarity
    assert decision.accepts(scanned).tolist() == [True]
    mentioned = overlap(55, 64, 64, rare=(20, 28.5, 28.5), longer=5000)
    assert decision.accepts(mentioned).tolist() == [False]


counts = st.integers(1, 64)


@given(
    shared=counts,
    more=st.tuples(st.integers(0, 64), st.integers(0, 64)),
    shorter=st.floats(1, 1e6),
    idf=st.tuples(*[st.floats(0, 1)] * 3),
    documents=st.integers(5, 10_000),
)
def test_auto_never_counts_more_than_the_resemblance_and_always_an_equal_sketch_of_eight_shingles(
    shared: int, more: tuple[int, int], shorter: float, idf: tuple[float, float, float], documents: int
) -> None:
    s, d, e = idf
    pair = overlap(
        shared,
        shared + more[0],
        shared + more[1],
        shorter,
        (s * shared, s * shared + d * more[0], s * shared + e * more[1]),
    )
    decision = Decision.of("auto", RECIPE, table(documents))
    assert 0 <= decision.similarity(pair)[0] <= pair.resemblance[0]
    if decision.accepts(pair)[0]:
        assert pair.resemblance[0] >= decision.floor
    if more == (0, 0) and shorter >= 9:
        assert decision.accepts(pair)[0]


@given(st.lists(st.tuples(counts, counts, counts, st.sampled_from([0.0, 0.3, 0.9, 1.0])), max_size=8))
def test_every_pair_of_many_is_judged_as_it_is_alone(pairs: list[tuple[int, int, int, float]]) -> None:
    shared, left, right, idf = np.array(pairs, float).reshape(-1, 4).T
    left, right = shared + left, shared + right
    rare_shared = idf * shared
    columns = (
        shared,
        left,
        right,
        left,
        50 * left,
        rare_shared,
        rare_shared + left - shared,
        rare_shared + right - shared,
    )
    for decision in (Decision.of("auto", RECIPE, table(100)), Decision.of("auto", RECIPE), Decision.of(0.5, RECIPE)):
        alone = [decision.accepts(Overlaps(*(column[i : i + 1] for column in columns)))[0] for i in range(len(pairs))]
        assert decision.accepts(Overlaps(*columns)).tolist() == alone
