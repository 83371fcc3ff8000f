"""Shingles and their hashes: the documented formula, in numpy and one number at a time, and the published values."""

import json
import sys
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch, sketch_many
from ndd_search.core.text.shingles import shingle_hashes, shingle_texts
from ndd_search.errors import MissingExtra
from tests import plain_sketching as plain
from tests.strategies import RECIPES, recipes, texts

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


@given(st.lists(texts, max_size=5), recipes)
def test_hashes_are_those_of_the_documented_formula(batch: list[str], recipe: Recipe) -> None:
    hashes, offsets = shingle_hashes(batch, recipe)
    assert (hashes.dtype, offsets.dtype, offsets[0], offsets[-1]) == (np.uint64, np.int64, 0, len(hashes))  # type: ignore[comparison-overlap]
    found = [hashes[first:last].tolist() for first, last in pairwise(offsets)]
    assert found == [plain.hashes(text, recipe) for text in batch]


@given(texts, recipes)
def test_readable_shingles_are_those_that_are_hashed(text: str, recipe: Recipe) -> None:
    assert shingle_texts(text, recipe) == [" ".join(shingle) for shingle in plain.shingles(text, recipe)]


@pytest.mark.parametrize("recipe", [Recipe(), Recipe.characters(), Recipe.lines()], ids=lambda recipe: recipe.kind)
@pytest.mark.parametrize("letter", ["a", "é", "字"])
def test_texts_longer_than_what_is_worked_on_at_a_time_keep_to_the_formula(recipe: Recipe, letter: str) -> None:
    batch = [f"{letter}b" * 40_000 + " c d", "x", "", " ".join(f"{letter}{i}" for i in range(10_000)), "y. z"]
    hashes, offsets = shingle_hashes(batch, recipe)
    for i, text in enumerate(batch):
        shingles = plain.shingles(text, recipe)
        assert offsets[i + 1] - offsets[i] == len(shingles)
        some = {*range(0, len(shingles), 997), *range(min(3, len(shingles))), *range(len(shingles))[-3:]}
        for j in some:
            assert hashes[offsets[i] + j] == plain.hash_of(shingles[j], recipe)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['recipe']}-{vector['text'][:20]!a}")
def test_published_values_stay_as_they_are(vector: dict[str, object]) -> None:
    text, recipe = str(vector["text"]), Recipe.parse(str(vector["recipe"]))
    hashes = [f"{number:016x}" for number in shingle_hashes([text], recipe)[0].tolist()]
    assert (len(hashes), hashes[:5]) == (vector["shingles"], vector["hashes"])
    assert sketch(text, recipe).tolist() == vector["sketch"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['recipe']}-{vector['text'][:20]!a}")
def test_published_values_follow_from_the_documented_formula(vector: dict[str, object]) -> None:
    assert plain.sketch(str(vector["text"]), Recipe.parse(str(vector["recipe"]))) == vector["sketch"]


def test_crc32_of_a_sentence_is_the_crc_of_its_stems() -> None:
    recipe = Recipe.sentences("english", hash="crc32")
    text = "The cats were sleeping peacefully. Running dogs, however, barked!"
    stems = ["cat were sleep peac", "run dog howev bark"]
    assert shingle_texts(text, recipe) == stems
    assert shingle_hashes([text], recipe)[0].tolist() == [zlib.crc32(one.encode()) << 32 for one in stems]
    assert sketch(text, recipe).tolist() == sorted(zlib.crc32(one.encode()) >> 1 for one in stems)


def test_a_sentence_does_not_end_after_an_initial_a_title_or_an_abbreviation_in_capitals() -> None:
    text = 'Yesterday J. B. Jones and Dr. Ann Brown bought U.S. steel. Prices rose. "They fell." Nobody knew why.'
    whole = ["yesterday jones brown bought steel", "prices rose", "they fell", "nobody knew"]
    assert shingle_texts(text, Recipe.sentences(None)) == whole


def test_a_text_shorter_than_a_shingle_is_one_shingle_and_none_is_none() -> None:
    assert shingle_texts("two words", Recipe.words(size=3)) == ["two words"]
    assert shingle_texts("abc", Recipe.characters(size=5)) == ["abc"]
    for recipe in RECIPES:
        assert shingle_texts(" ... ", recipe) == []
        assert shingle_hashes([" ... "], recipe)[0].tolist() == []


def test_no_text_at_all_has_no_shingles() -> None:
    for recipe in RECIPES:
        hashes, offsets = shingle_hashes([], recipe)
        assert (hashes.tolist(), offsets.tolist()) == ([], [0])


def test_a_line_is_its_words_and_an_empty_line_is_none() -> None:
    text = "First  line:\n\n  --- \nsecond\u2028third\r\nfourth 中文"
    assert shingle_texts(text, Recipe.lines()) == ["first line", "second", "third", "fourth 中 文"]


def test_lines_of_a_page_are_its_blocks() -> None:
    assert shingle_texts("<p>One <b>b</b>it<p>Two<br>three", Recipe.lines(markup="html")) == ["one bit", "two", "three"]


def test_another_seed_gives_unrelated_hashes() -> None:
    text = " ".join(map(str, range(1000)))
    one, other = (set(shingle_hashes([text], Recipe(seed=seed))[0].tolist()) for seed in (0, 1))
    assert len(one) == 998
    assert not one & other


@pytest.mark.parametrize(
    "recipe", [Recipe.words(), Recipe.words(size=1), Recipe.characters(), Recipe.characters(size=9)]
)
def test_hashes_of_similar_shingles_spread_evenly(recipe: Recipe) -> None:
    """Chi-square over 256 cells: its mean is 255 and its standard deviation 23; five of them are allowed."""
    numbers = " ".join(f"{i:05d}" for i in range(20_000))
    hashes = np.array(sorted(set(shingle_hashes([numbers], recipe)[0].tolist())), np.uint64)
    for shift in (56, 48, 40, 33):
        counts = np.bincount(((hashes >> np.uint64(shift)) & np.uint64(255)).astype(np.int64), minlength=256)
        expected = len(hashes) / 256
        assert np.sum((counts - expected) ** 2) / expected < 255 + 5 * 23


def test_a_language_without_stemmer_is_told_with_those_that_have_one() -> None:
    with pytest.raises(ValueError, match=r"no Snowball stemmer for 'klingon'; the languages are .*english"):
        shingle_texts("some sentence", Recipe.sentences("klingon"))


def test_without_the_stemmer_sentences_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(MissingExtra, match=r'pip install "ndd-search\[stem\]"'):
        shingle_texts("some sentence", Recipe.sentences("danish"))


def test_a_word_without_a_stem_lets_the_sketch_of_its_sentence_be_whatever_follows() -> None:
    """Turkish stemming leaves nothing of "leri"."""
    recipe, text = Recipe.sentences(language="turkish"), "Eski bilgisayarlar TV'leri."
    alone = sketch(text, recipe).tolist()
    assert len(alone) == 1
    for batch in ([text, "Ankara soğuk."], [text, "İzmir sıcak.", ""], [text]):
        assert sketch_many(batch, recipe)[0].tolist() == alone
