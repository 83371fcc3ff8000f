"""Sketches by the other methods of the field: their documented formulas, their measures, and pages made of them."""

from __future__ import annotations

import re
import sys
from itertools import combinations
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.similarity_measures import estimate, judged_pairs, similar_pairs, similarities
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.methods.signatures import profile
from ndd_search.core.methods.simhash import as_sketches, fingerprints, from_sketches
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.estimate_similarity import resemblance
from ndd_search.core.sketching.sketches import sketch, sketch_many
from ndd_search.errors import RecipeMismatch
from ndd_search.indexing import find_duplicates
from ndd_search.search.rest.mapping import mapping_properties
from tests import plain_sketching as plain
from tests.engines.find import Engine
from tests.strategies import texts

METHODS = [
    Recipe.min_hash(),
    Recipe.super_shingles(),
    Recipe.n_grams(),
    Recipe.simhash(),
    Recipe.profile(),
    Recipe.words(estimator="broder"),
    Recipe.characters(17, k=16, estimator="overlap"),
    Recipe.sentences(hash="crc32", estimator="broder"),
]
FORMULAS = [
    Recipe.min_hash(k=5, seed=3),
    Recipe.min_hash(size=2, k=1, kind="characters"),
    Recipe.super_shingles(size=2, k=3, urls="drop"),
    Recipe.n_grams(size=2, k=6),
    Recipe.n_grams(size=9, k=40, urls="drop"),
    Recipe.simhash(),
    Recipe.simhash(size=3, kind="characters"),
]
STORY = (
    "The council approved a new bridge over the river on Tuesday after a long debate about what it will cost and where "
    "it should stand. Work is to begin in spring, and the mayor said that the old ferry would run until it is done. "
    "People of the eastern villages had asked for a tunnel, which engineers called too dear for the soft ground there. "
    "The ferry carries nine hundred cars a day, and its crew of twelve was promised other work by the harbour office."
)
COPY = f"Herald: {STORY}"
OTHER = (
    "Goals in the last minutes won the match for the visitors, who had not scored away from home since the autumn. "
    "Their keeper saved two penalties before half time and was carried from the field with a broken finger at the end. "
    "The home side had nine players left when the whistle came, and its manager left the ground without a word to us."
)
by_id = pytest.mark.parametrize("recipe", METHODS, ids=lambda recipe: recipe.id)
random_sketches = st.lists(st.frozensets(st.integers(0, 30), max_size=8).map(sorted), max_size=7)


@pytest.mark.parametrize("recipe", FORMULAS, ids=lambda recipe: recipe.id)
@given(st.lists(texts, max_size=5), st.integers(1, 60))
@settings(deadline=None, max_examples=30)
def test_a_sketch_is_that_of_the_documented_formula_in_every_batch(recipe: Recipe, batch: list[str], room: int) -> None:
    expected = [plain.by_method(text, recipe) for text in batch]
    assert [one.tolist() for one in sketch_many(batch, recipe)] == expected
    assert [sketch(text, recipe).tolist() for text in batch] == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["ndd_search.core.sketching.sketches"], "BATCH", room)
        assert [one.tolist() for one in sketch_many(batch, recipe, 2)] == expected


def test_the_page_of_methods_names_these_recipes() -> None:
    page = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text()
    rows = dict(re.findall(r"^\| [^|]+ \| `(Recipe[^`]+)`, ([\w-]+) \|", page, re.MULTILINE))
    assert {eval(code).id: name for code, name in rows.items()} == {recipe.id: recipe.id for recipe in METHODS}


def test_the_first_published_values_of_each_method_stay_what_they_are() -> None:
    expected = {
        "w3-k64-v4-minhash": [4477, 33623987, 67479601],
    }
    for name, values in expected.items():
        assert sketch(STORY, Recipe.parse(name)).tolist()[:3] == values


def test_a_profile_holds_the_words_that_are_frequent_enough_the_most_frequent_first() -> None:
    recipe = Recipe.profile()
    assert profile("The cat and the dog and the bird a a a", recipe) == "and 2 the 2"
    assert profile("one two three", recipe) == "one 1 three 1 two 1"
    same, other = sketch_many(["Cats and dogs and birds and dogs.", "and dogs, and dogs and fish!"], recipe)
    assert same.tolist() == other.tolist() != sketch("and dogs and fish", recipe).tolist()
    assert not len(sketch("a b c", recipe))


@given(random_sketches)
def test_overlap_and_broders_estimate_are_those_of_sets(sketches: list[list[int]]) -> None:
    rows = rows_of(sketches, 5)
    cut = [one[:5] for one in sketches]
    first, second = np.triu_indices(len(cut), 1)
    overlap = [len({*a} & {*b}) / max(len(a), len(b), 1) for a, b in combinations(cut, 2)]
    unions = [(sorted({*a} | {*b})[:5], {*a} & {*b}) for a, b in combinations(cut, 2)]
    broder = [len(common.intersection(union)) / max(len(union), 1) for union, common in unions]
    assert similarities(rows, first, second, "overlap") == pytest.approx(overlap)
    shorter = [len({*a} & {*b}) / max(min(len(a), len(b)), 1) for a, b in combinations(cut, 2)]
    assert similarities(rows, first, second, "shorter") == pytest.approx(shorter)
    assert similarities(rows, first, second, "broder") == pytest.approx(broder)
    assert similarities(rows, first, second, "kmv") == pytest.approx(
        [resemblance(a, b, 5) for a, b in combinations(cut, 2)]
    )


@given(
    random_sketches,
    st.sampled_from(["broder", "overlap", "shorter"]),
    st.sampled_from([0.05, 0.2, 1 / 3, 0.5, 0.6, 0.8, 1.0]),
)
def test_a_page_has_the_pairs_that_comparing_all_of_them_finds(
    sketches: list[list[int]], measure: Any, bar: float
) -> None:
    rows = rows_of(sketches, 5)
    first, second = np.triu_indices(len(sketches), 1)
    alike = similarities(rows, first, second, measure)
    expected = [(i, j, s) for i, j, s in zip(first, second, alike, strict=True) if s >= bar - 1e-9]
    pairs = similar_pairs(rows, Decision(bar, 3, measure=measure))
    assert list(zip(pairs.first, pairs.second, pairs.similarity, strict=True)) == expected


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6), st.lists(st.sets(st.integers(0, 63)), max_size=6))
def test_a_page_of_fingerprints_has_the_pairs_within_the_distance(originals: list[int], turned: list[set[int]]) -> None:
    prints = originals + [
        originals[i % len(originals)] ^ sum(1 << bit for bit in bits) for i, bits in enumerate(turned)
    ]
    sketches = as_sketches(np.array(prints, np.uint64))
    assert from_sketches(sketches)[0].tolist() == prints
    rows = rows_of(list(sketches), 4)
    for most in (0, 3, 12, 31):
        pairs = similar_pairs(rows, Decision(cos(most * pi / 64), 1, measure="cosine"))
        found = dict(zip(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), pairs.similarity, strict=True))
        apart = {(i, j): (prints[i] ^ prints[j]).bit_count() for i, j in combinations(range(len(prints)), 2)}
        assert found == pytest.approx({pair: cos(d * pi / 64) for pair, d in apart.items() if d <= most})


def test_thousands_of_fingerprints_are_compared_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    prints = np.random.default_rng(5).integers(0, 2**64, 300, dtype=np.uint64)
    prints[200:] = prints[:100] ^ np.uint64(5)
    rows = rows_of(list(as_sketches(prints)), 4)
    decision = Decision.of("auto", Recipe.simhash())
    whole = similar_pairs(rows, decision)
    monkeypatch.setattr("ndd_search.core.methods.simhash._AT_ONCE", 1000)
    parts = similar_pairs(rows, decision)
    assert list(zip(parts.first, parts.second, strict=True)) == [(i, i + 200) for i in range(100)]
    assert (whole.first.tolist(), whole.second.tolist()) == (parts.first.tolist(), parts.second.tolist())


def test_what_is_no_fingerprint_resembles_nothing() -> None:
    rows = rows_of([[1, 2, 3, 4], [1, 2, 3, 4], [], [7]], 4)
    assert not len(similar_pairs(rows, Decision.of("auto", Recipe.simhash())))


def test_fingerprints_with_weights_of_ones_own_make_a_page() -> None:
    texts = [STORY, COPY, OTHER]
    sketches = list(as_sketches(fingerprints(texts, weight=lambda word, count: len(word) * count)))
    page = ndd.collapse(texts, sketches=sketches, recipe=Recipe.simhash(), min_similarity=0.95)
    assert page.hits == [STORY, OTHER]


@by_id
def test_a_page_hides_a_copy_shows_another_text_and_says_why(recipe: Recipe) -> None:
    copy = STORY.upper() if recipe.method == "profile" else COPY
    page = ndd.collapse([STORY, OTHER, copy, ""], recipe=recipe)
    assert page.hits == [STORY, OTHER, ""]
    assert [one.hit for one in page.groups[0].duplicates] == [copy]
    assert "reaches the bar" in page.explain(2).rule
    assert "below" in page.explain(1).rule
    assert page.explain(2).similarity == page.groups[0].duplicates[0].similarity
    assert page.info.recipe == recipe.id


@by_id
def test_the_named_bars_are_of_the_measure_of_the_recipe(recipe: Recipe) -> None:
    a, b = sketch_many([STORY, COPY], recipe)
    value = estimate(a, b, recipe).value
    rows = rows_of([a, b], recipe.k)
    for name, bar in {"identical": 1.0, "high": 0.8, "moderate": 0.5}.items():
        if recipe.measure == "cosine" and bar < 1:
            with pytest.raises(ValueError, match=f'"{name}" is a resemblance, and w1-k4-v4-simhash has cosines'):
                Decision.of(name, recipe)
            continue
        decision = Decision.of(name, recipe)
        assert bool(len(similar_pairs(rows, decision))) == (value >= bar)
        pairs, held, bars = judged_pairs(rows, decision, 0.0)
        if recipe.method != "profile":
            assert (pairs.similarity[0], held[0], bars[0]) == (pytest.approx(value), pytest.approx(value), bar)


def test_only_what_is_estimated_has_an_error() -> None:
    pairs = {recipe: sketch_many([STORY, STORY + OTHER], recipe) for recipe in METHODS}
    errors = {recipe.id: estimate(*pair, recipe).standard_error for recipe, pair in pairs.items()}  # type: ignore[call-arg]
    estimated = {name for name, error in errors.items() if error > 0}
    assert estimated == {"w3-k64-v4-minhash", "w3-k64-v4-broder"}


@by_id
def test_what_asks_for_the_length_of_texts_is_refused_where_sketches_do_not_tell(recipe: Recipe) -> None:
    asked: Any
    for asked in ({"keep": ["longest"]}, {"guards": ["length:0.5"]}):
        if recipe.method == "min-k":
            assert len(ndd.collapse([STORY, OTHER], recipe=recipe, **asked)) == 2
        else:
            with pytest.raises(ValueError, match=f"{next(iter(asked))} needs the length of texts.*{recipe.id}"):
                ndd.collapse([STORY, OTHER], recipe=recipe, **asked)


@by_id
def test_an_embedded_index_searches_and_remembers_its_recipe(recipe: Recipe, tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    copy = STORY.upper() if recipe.method == "profile" else COPY
    with ndd.Index.open(tmp_path / "news", text="body", recipe=recipe) as made:
        made.add({"id": name, "body": f"{text}"} for name, text in (("a", STORY), ("b", copy), ("c", OTHER)))
    with ndd.Index.open(tmp_path / "news") as index:
        assert index.recipe == recipe
        found = index.search("the", size=10)["hits"]["hits"]
        assert sorted("ab" if hit["_id"] in "ab" else hit["_id"] for hit in found) == ["ab", "c"]


@by_id
def test_a_server_stores_finds_and_collapses_them(recipe: Recipe, engine: Engine, index: str) -> None:
    copy = STORY.upper() if recipe.method == "profile" else COPY
    documents = [{"_id": name, "body": text} for name, text in (("a", STORY), ("b", copy), ("c", OTHER))]
    with engine.client() as client:
        fields = {"body": {"type": "text"}, **mapping_properties()}
        client.indices.create(index=index, body={"mappings": {"properties": fields}})
        for action in ndd.with_sketches(documents, "body", recipe=recipe, keys=8):
            client.index(index=index, id=action["_id"], body={k: v for k, v in action.items() if k != "_id"})
        client.indices.refresh(index=index)
        found = find_duplicates(client, index, STORY, min_similarity="auto")  # by the recipe that is stored
        assert sorted(one.id for one in found) == ["a", "b"]
        with pytest.raises(RecipeMismatch, match=f"holds sketches of recipe {recipe.id}, this call uses w5-k64-v4"):
            find_duplicates(client, index, STORY, recipe="w5-k64-v4")
        ndd.wrap(client, recipe=recipe)
        answer = client.search(index=index, body={"query": {"match": {"body": "the"}}})
        hits = answer["hits"]["hits"]
        assert sorted("ab" if hit["_id"] in "ab" else hit["_id"] for hit in hits) == ["ab", "c"]
        assert answer["ndd"]["hidden"] == 1
        if recipe.method != "min-k":
            with pytest.raises(ValueError, match=r"sketches of .* do not give"):
                client.search(index=index, body={"query": {"match_all": {}}, "ndd": {"keep": ["longest"]}})
