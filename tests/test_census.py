"""Frequency tables count values that different documents share, not those of copies of one document."""

import random
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import UNSEEN, count_document_frequency, count_in_list
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similar_pairs import resembling_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import VALUES, Sketch, sketch_many
from ndd_search.errors import InvalidSketch

RECIPE = Recipe()


def story(seed: int, words: int = 120) -> str:
    rng = random.Random(seed)
    return " ".join(f"w{rng.randrange(10**6)}" for _ in range(words))


def edited(text: str, seed: int, share: float = 0.02) -> str:
    """Some words changed, and another opening and ending."""
    rng = random.Random(seed)
    words = [f"e{rng.randrange(10**6)}" if rng.random() < share else word for word in text.split()]
    return f"{story(seed, 8)} {' '.join(words)} {story(seed + 1, 8)}"


def leaders_by_default(sketches: Sequence[Sketch], frequency_table: FrequencyTable) -> set[int]:
    pairs = resembling_pairs(rows_of(sketches, RECIPE.k), Decision.of("auto", RECIPE, frequency_table))
    return set(choose_leaders(len(sketches), pairs)[0].tolist())


def test_values_that_more_than_three_documents_hold_are_common() -> None:
    sketches = [[2, 4, *range(200 + 40 * i, 220 + 40 * i, 2)] for i in range(4)] + [[4, 6], [6, 8], [6, 10]]
    counted = count_document_frequency(sketches, RECIPE)
    assert (counted.documents, counted.values.tolist(), counted.counts.tolist()) == (7, [2, 4], [4, 5])


def test_equal_sketches_count_once_and_empty_ones_not_at_all() -> None:
    others = [[2, *range(100 * i, 100 * i + 10)] for i in range(1, 4)]
    counted = count_document_frequency([[1, 2]] * 50 + [[]] * 3 + others, RECIPE)
    assert (counted.documents, counted.values.tolist(), counted.counts.tolist()) == (4, [2], [4])


def test_a_list_is_counted_among_documents_without_its_values_once_it_tells_any_as_common() -> None:
    frame = story(1, 60)
    sketches = sketch_many([f"{frame} {story(seed, 60)}" for seed in range(2, 14)], RECIPE)
    counted, listed = count_document_frequency(sketches, RECIPE), count_in_list(sketches, RECIPE)
    assert len(counted.values) > 10
    assert listed == replace(counted, documents=counted.documents + UNSEEN)
    assert count_in_list(sketches[:3], RECIPE) == count_document_frequency(sketches[:3], RECIPE)


def test_a_sketch_that_is_none_is_named() -> None:
    with pytest.raises(InvalidSketch, match="hit 2"):
        count_document_frequency([[1, 2], [1, 2], [2, 1]], RECIPE)


@pytest.mark.parametrize("sketches", [[], [[]], [[6]], [[6]] * 9])
def test_a_table_of_next_to_nothing_is_empty(sketches: list[list[int]]) -> None:
    counted = count_document_frequency(sketches, RECIPE)
    assert (counted.documents, len(counted.values), counted.telling) == (int([6] in sketches), 0, False)


def test_copies_of_which_hardly_anything_was_changed_do_not_make_their_words_common() -> None:
    copies = [story(0).replace(word, f"x{word}", 1) for word in story(0).split()[4:40:4]]
    others = [story(seed) for seed in range(1, 40)]
    counted = count_document_frequency(sketch_many([*copies, *others], RECIPE), RECIPE)
    assert len(counted.values) == 0
    assert counted.documents == 39 + 9**0.5


def test_revisions_of_a_text_do_not_make_its_words_common_though_the_last_shares_little_with_the_first() -> None:
    words = story(0, 200).split()
    revisions = [" ".join(words)]
    for number in range(12):
        words[number * 15 : number * 15 + 15] = story(500 + number, 15).split()
        revisions.append(" ".join(words))
    counted = count_document_frequency(
        sketch_many([*revisions, *(story(i, 200) for i in range(1, 40))], RECIPE), RECIPE
    )
    assert counted.documents == pytest.approx(39 + 13**0.5, abs=0.001)


def test_what_different_texts_in_one_frame_share_is_common() -> None:
    pages = [f"{story(0, 200)} {story(seed, 60)}" for seed in range(1, 40)]
    sketches = sketch_many(pages, RECIPE)
    counted = count_document_frequency(sketches, RECIPE)
    assert len(counted.values) > 40
    assert (counted.counts > 6).all()
    assert len(leaders_by_default(sketches, counted)) == 39


def test_a_small_index_with_many_copies_of_few_stories_shows_each_story_once(tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    texts = [f"harbour news {edited(story(i, 300), 1000 + 40 * i + 2 * j)}" for i in range(6) for j in range(8)]
    with ndd.Index.open(tmp_path / "index", text="text") as index:
        index.add({"id": str(place), "text": text} for place, text in enumerate(texts))
        hits = index.search("harbour news", size=10)["hits"]["hits"]
    assert [hit["inner_hits"]["near_duplicates"]["hits"]["total"]["value"] for hit in hits] == [7] * 6


@pytest.mark.parametrize(("count", "shared", "own"), [(count_document_frequency, 44, 20), (count_in_list, 8, 2)])
def test_a_frame_of_thousands_of_documents_is_counted_without_all_their_pairs(
    count: Any, shared: int, own: int
) -> None:
    """Those of ten values are short texts, of which a list counts the ones that fill a form."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, VALUES // 2, (8001, 44), np.int32) * 2  # even ones: none touches an edge
    frame = values[0, :shared]
    sketches = [np.unique(np.concatenate((frame, of_text))) for of_text in values[1:, :own]]
    tracemalloc.start()
    try:
        counted = count(sketches, RECIPE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6  # bytes; two numbers for each of these 32 million pairs would be five times as much
    assert np.isin(frame, counted.values).all()
    assert counted.documents == 8000 + (UNSEEN if count is count_in_list else 0)
