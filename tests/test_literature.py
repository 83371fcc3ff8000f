"""The examples and numbers that papers give for their methods: see docs/recipes.md."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from math import comb, cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.similarity_measures import estimate
from ndd_search.core.methods.simhash import distance, fingerprints, from_rows, key_masks
from ndd_search.core.sketching import sketch_many
from ndd_search.core.text.shingles import shingle_texts

Recipe = ndd.Recipe
PAIRS = 400


def pairs_at(resemblance: float, words: int = 400) -> list[str]:
    """Texts of single words, two by two, that have this resemblance as sets of words."""
    shared = round(words * 2 * resemblance / (1 + resemblance))
    texts = []
    for pair in range(PAIRS):
        common = [f"p{pair}w{at}" for at in range(shared)]
        for side in "ab":
            texts.append(" ".join([*common, *(f"p{pair}{side}{at}" for at in range(words - shared))]))
    return texts


def estimates(texts: list[str], recipe: ndd.Recipe) -> list[float]:
    sketches = sketch_many(texts, recipe)
    return [estimate(sketches[at], sketches[at + 1], recipe).value for at in range(0, len(texts), 2)]


def weighted(weights: dict[str, float]) -> int:
    """The fingerprint of words with these weights."""
    return int(fingerprints([" ".join(weights)], weight=lambda word, _: weights[word])[0])


def test_broder_1997_a_rose_is_a_rose_is_a_rose() -> None:
    rose = shingle_texts("a rose is a rose is a rose", Recipe.words(4))
    assert set(rose) == {"a rose is a", "rose is a rose", "is a rose is"}


@pytest.mark.parametrize("recipe", [Recipe.words(1, estimator="broder"), Recipe.min_hash(size=1)])
def test_broder_1998_the_share_of_equal_values_is_the_resemblance(recipe: ndd.Recipe) -> None:
    for resemblance in (0.5, 0.9):
        found = estimates(pairs_at(resemblance), recipe)
        assert np.mean(found) == pytest.approx(resemblance, abs=4 * (0.25 / 64 / PAIRS) ** 0.5)


def test_broder_2000_two_of_six_super_shingles_are_a_filter_with_a_steep_step() -> None:
    for resemblance in (0.95, 0.8):
        equal = resemblance**14
        expected = sum(comb(6, at) * equal**at * (1 - equal) ** (6 - at) for at in range(2, 7))
        found = np.mean([one >= 2 / 6 for one in estimates(pairs_at(resemblance), Recipe.super_shingles(size=1))])
        assert found == pytest.approx(expected, abs=4 * (expected * (1 - expected) / PAIRS) ** 0.5)


def test_charikar_2002_bits_differ_with_the_probability_of_the_angle() -> None:
    apart = []
    for at in range(300):
        words = [f"a{at}b{number}" for number in range(40)]
        generator = np.random.default_rng(at)
        u, v = generator.normal(size=(2, 40))
        v -= u * (u @ v) / (u @ u)
        v *= np.linalg.norm(u) / np.linalg.norm(v)
        at_60_degrees = cos(pi / 3) * u + 0.75**0.5 * v
        first, second = (weighted(dict(zip(words, weights, strict=True))) for weights in (u, at_60_degrees))
        apart.append(int(distance(first, second)))
    assert np.mean(apart) / 64 == pytest.approx(1 / 3, abs=0.02)


def test_manku_2007_three_bits_take_four_ten_or_twenty_tables() -> None:
    widths = {blocks: [int(mask).bit_count() for mask in key_masks(3, blocks)] for blocks in (4, 5, 6)}
    assert widths[4] == [16] * 4
    assert (len(widths[5]), set(widths[5])) == (10, {25, 26})
    assert (len(widths[6]), set(widths[6])) == (20, {31, 32, 33})


def test_smith_2008_a_sentence_is_the_crc_of_its_stems() -> None:
    pytest.importorskip("Stemmer")
    recipe = Recipe.sentences(hash="crc32", estimator="broder")
    values = ndd.sketch("The councils approved two bridges.", recipe).tolist()
    assert values == [zlib.crc32(b"council approv bridg") >> 1]


def test_basu_2011_two_copies_of_a_tweet_are_told_from_two_shows() -> None:
    tweets = [
        "Vet, 77, Busted For Obama Death Threat | The Smoking Gun http://t.co/MrTUwxv via @",
        "Vet, 77, Busted For Obama Death Threat http://tinyurl.com/25zyxgp #tcot #tlot #sgp",
        "Playing a show in Chicago, IL at 9:00 PM today at LE PASSAGE http://artistdata.com/a/32on",
        "Playing a show in Cape Girardeau, MO at 9:00 PM today at The Venue http://artistdata.com/a/32ow",
    ]
    assert estimates(tweets, Recipe.n_grams()) == [0.7, 0.5]
    assert ndd.collapse(tweets, recipe=Recipe.n_grams()).hits == [tweets[0], *tweets[2:]]


def test_a_search_imports_a_method_only_for_its_recipe() -> None:
    code = (
        "import sys, ndd_search as ndd; ndd.collapse(['a b c d e', 'f'], recipe=sys.argv[1]);"
        "print(any(name.startswith('ndd_search.core.methods') for name in sys.modules))"
    )
    for recipe, imported in (("w3-k64-v4", "False"), ("w1-k4-v4-simhash", "True"), ("w3-k64-v4-minhash", "True")):
        done = subprocess.run([sys.executable, "-c", code, recipe], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == imported


def simhash_for_pairs_of_one_site(source: Any) -> Any:
    """Return the place of the document that stands for each: of pairs of one site, simhash decides."""
    shingles = ndd.Corpus.read(source, text="text", fields=["site"])
    words = ndd.Corpus.read(source, text="text", recipe=ndd.Recipe.simhash())
    prints, _ = from_rows(words.sketches.values, np.diff(words.sketches.offsets))
    found, sites = shingles.pairs(0.5), np.array(shingles.columns["site"])
    first, second = found.pairs.first, found.pairs.second
    near = (sites[first] != sites[second]) | (distance(prints[first], prints[second]) <= 4)
    return choose_leaders(len(sites), found.pairs.where(near))[0][found.same].tolist()


def test_henzinger_2006_simhash_decides_about_the_pairs_of_one_site_that_shingles_find(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="collections need pyarrow")
    source = tmp_path / "crawl.jsonl"
    frame = " ".join(f"menu{number}" for number in range(120))
    story = " ".join(f"bridge{number}" for number in range(60))
    other = " ".join(f"goal{number}" for number in range(30))
    texts = [f"{frame} {story}", f"{frame} {other}", f"{frame} {story} today", f"{story} today", story]
    page = [{"text": text, "site": site} for text, site in zip(texts, "aaabc", strict=True)]
    source.write_text("".join(json.dumps(hit) + "\n" for hit in page))
    assert simhash_for_pairs_of_one_site(page) == simhash_for_pairs_of_one_site(str(source)) == [0, 1, 0, 3, 3]
