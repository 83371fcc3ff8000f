"""Simhash: what a fingerprint says, and that the tables find exactly what comparing all finds."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.core.methods.simhash import (
    Rarity,
    Tables,
    as_sketches,
    cheapest_blocks,
    distance,
    fingerprints,
    near_blocks,
)
from ndd_search.core.recipe import Recipe

prints = st.lists(st.integers(0, 2**64 - 1), max_size=12)
flips = st.lists(st.tuples(st.integers(0, 11), st.sets(st.integers(0, 63), max_size=5)), max_size=20)


def with_neighbours(originals: list[int], changes: list[tuple[int, set[int]]]) -> list[int]:
    """The fingerprints, and copies of some of them with some bits turned."""
    copies = [originals[i % len(originals)] ^ sum(1 << bit for bit in bits) for i, bits in changes if originals]
    return originals + copies


def brute_force(values: list[int], most: int) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i in range(len(values))
        for j in range(i + 1, len(values))
        if (values[i] ^ values[j]).bit_count() <= most
    ]


@given(prints, flips, st.sampled_from([(0, None), (1, 3), (3, 4), (3, 6), (5, 7), (8, 12), (8, None)]))
def test_the_tables_find_what_comparing_all_pairs_finds(
    originals: list[int], changes: list[tuple[int, set[int]]], shape: tuple[int, int | None]
) -> None:
    values = with_neighbours(originals, changes)
    tables = Tables(np.array(values, np.uint64), *shape)
    expected = brute_force(values, shape[0])
    assert [(int(i), int(j)) for i, j in zip(*tables.pairs(), strict=True)] == expected
    for place, value in enumerate(values):
        near, differing = tables.near(value)
        others = sorted({i for pair in expected if place in pair for i in pair} | {place})
        assert near.tolist() == others
        assert differing.tolist() == [(values[i] ^ value).bit_count() for i in others]


def test_a_table_of_many_fingerprints_finds_planted_neighbours_online_and_in_one_batch() -> None:
    generator = np.random.default_rng(7)
    many = generator.integers(0, 2**64, 50_000, dtype=np.uint64)
    planted = many[:200] ^ (np.uint64(1) << generator.integers(0, 64, 200, dtype=np.uint64))
    tables = Tables(np.concatenate((many, planted)))
    first, second = tables.pairs()
    assert set(zip(first.tolist(), second.tolist(), strict=True)) >= {(i, 50_000 + i) for i in range(200)}
    assert (distance(tables.prints[first], tables.prints[second]) <= 3).all()
    assert all(50_000 + i in tables.near(many[i])[0] for i in range(200))


def test_fingerprints_that_share_bits_are_looked_up_by_longer_keys() -> None:
    """Texts with the same frequent words share bits: keys of 16 bits would let each meet a tenth of all."""
    random = np.random.default_rng(3).integers(0, 2**64, 20_000, dtype=np.uint64)
    alike = random & random[::-1] & np.roll(random, 1)
    for prints, longer in ((random, False), (alike, True)):
        assert (cheapest_blocks(prints, 3, 10**6) > 4) == longer
    blocks = cheapest_blocks(alike, 3)
    assert np.array_equal(Tables(alike[:2000], 3, blocks).pairs(), Tables(alike[:2000], 3, 4).pairs())


def test_a_fingerprint_is_the_sign_of_the_weighted_bits_of_its_features() -> None:
    (alone,) = fingerprints(["tax"])
    weights = {"tax": 5, "cat": 1, "dog": 1}
    assert fingerprints(["tax cat dog"], weight=lambda word, _: weights[word]) == alone
    assert fingerprints(["tax"], weight=lambda _, count: -count) == alone ^ np.uint64(2**64 - 1)
    assert fingerprints([""]) == 0
    weights["tax"] = 3
    assert fingerprints(["tax tax tax cat"]) == fingerprints(["cat tax"], weight=lambda word, _: weights[word])


TEXT = "The council has approved a new bridge over the river after a long debate about its cost and its place"


def test_a_text_with_two_words_changed_is_nearer_than_another_text() -> None:
    text, edited, other = fingerprints([TEXT, TEXT.replace("long", "short"), "Goals in the last minute won the match"])
    assert distance(text, edited) < distance(text, other)


def test_rare_words_weigh_more_by_tf_idf_and_by_a_weight_of_ones_own() -> None:
    texts = [f"home news sport login weather video {name}" for name in ("amber", "basalt", "cobalt", "dolomite")]
    rarity = Rarity.count(texts)
    assert rarity("amber", 1) > rarity("home", 1) == 0
    plain, weighed = fingerprints(texts), fingerprints(texts, weight=rarity)
    assert distance(weighed[0], weighed[1:]).min() > distance(plain[0], plain[1:]).max()
    assert (fingerprints(texts, weight=lambda feature, count: len(feature) * count) != plain).any()


def test_long_texts_are_fingerprinted_in_the_memory_of_a_few() -> None:
    texts = [" ".join(f"word{place}of{number}" for place in range(1_500)) for number in range(100)]
    tracemalloc.start()
    try:
        found = fingerprints(texts, Recipe.words(size=3))
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 50_000_000
    assert held < 1_000_000
    assert np.array_equal(found[[0, 99]], fingerprints([texts[0], texts[99]], Recipe.words(size=3)))


@pytest.mark.parametrize("shape", [(3, 2), (-1, 2), (3, 65)])
def test_impossible_tables_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="blocks must be at least most"):
        Tables(np.zeros(2, np.uint64), *shape)


@given(prints, prints, flips, st.sampled_from([0, 3, 8]))
def test_tables_that_grow_find_what_was_added_at_once(
    originals: list[int], added: list[int], changes: list[tuple[int, set[int]]], most: int
) -> None:
    tables = Tables(np.array(originals, np.uint64), most)
    tables.near(0)  # sorts what is there
    later = with_neighbours(added, changes)
    for start in range(0, len(later), 3):
        tables.add(np.array(later[start : start + 3], np.uint64))
        known = originals + later[: start + 3]
        for value in known[-3:]:
            assert tables.near(value)[0].tolist() == [
                at for at, one in enumerate(known) if (one ^ value).bit_count() <= most
            ]


@given(st.integers(0, 2**64 - 1), st.sets(st.integers(0, 63), max_size=15))
def test_looked_up_blocks_find_every_fingerprint_within_the_distance(value: int, bits: set[int]) -> None:
    near, wanted = as_sketches([value, value ^ sum(1 << bit for bit in bits)]).tolist()
    assert any(held in near_blocks(block, len(bits)) for held, block in zip(near, wanted, strict=True))


def test_more_bits_than_can_be_found_are_an_error_that_names_the_most() -> None:
    with pytest.raises(ValueError, match=r"16 differing bits are too many for stored keys: 15 at most, .* of 0\.741"):
        near_blocks(0, 16)
    with pytest.raises(ValueError, match=r"16 differing bits are too many for 1,000,000 fingerprints: 1\d at most"):
        cheapest_blocks(np.zeros(0, np.uint64), 16, 1_000_000)
