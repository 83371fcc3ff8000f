import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elasticsearch import Elasticsearch
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import collapse_options
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch
from ndd_search.errors import IndexUnusable, InvalidDocument, InvalidSketch, MissingExtra, RecipeMismatch
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.doctor import Doctor
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.integrations.passage_options import PassageOptions
from ndd_search.search.flow.client_settings import settings_of

recipes = st.one_of(
    st.builds(
        Recipe,
        kind=st.sampled_from(["words", "characters"]),
        size=st.integers(1, 64),
        k=st.integers(1, 4096),
        seed=st.integers(0, 2**64 - 1),
        markup=st.sampled_from(["keep", "html", "mail"]),
        urls=st.sampled_from(["keep", "drop"]),
    ),
    st.builds(
        Recipe.lines,
        size=st.integers(1, 64),
        seed=st.integers(0, 9),
        estimator=st.sampled_from(["kmv", "broder", "overlap"]),
    ),
    *(
        st.builds(make, k=st.integers(1, 4096), seed=st.integers(0, 9), urls=st.sampled_from(["keep", "drop"]))
        for make in (Recipe.min_hash, Recipe.super_shingles)
    ),
    st.builds(
        Recipe.n_grams, size=st.integers(1, 64), k=st.integers(1, 4096), markup=st.sampled_from(["keep", "html"])
    ),
    st.builds(Recipe.simhash, size=st.integers(1, 64)),
    st.just(Recipe.profile()),
    st.builds(Recipe.sentences, language=st.sampled_from([None, "english", "german"]), hash=st.just("crc32")),
)


@given(recipes)
def test_a_recipe_comes_back_from_its_id(recipe: Recipe) -> None:
    assert Recipe.parse(recipe.id) == recipe


@given(recipes, recipes)
def test_two_recipes_share_an_id_only_when_they_are_one(a: Recipe, b: Recipe) -> None:
    assert (a.id == b.id) == (a == b)


def test_a_recipe_may_be_given_by_its_id_everywhere(tmp_path: Path) -> None:
    name, texts = "c5-k32-v4", ["A bridge over the river", "A bridge over a river", "Goals in the last minute"]
    assert sketch(texts[0], name).tolist() == sketch(texts[0], Recipe.parse(name)).tolist()
    assert ndd.collapse(texts, recipe=name).info.recipe == name
    assert sketch_fields({"body": texts[0]}, "body", recipe=name)["ndd"]["recipe"] == name
    assert settings_of(recipe=name).recipe == CandidateSearch(recipe=name).recipe == Recipe.parse(name)  # type: ignore[arg-type]
    assert Backfill(index="news", fields=["body"], recipe=name).recipe == Recipe.parse(name)  # type: ignore[arg-type]
    assert Doctor(index="news", recipe=name).recipe == Recipe.parse(name)  # type: ignore[arg-type]
    with ndd.Index.open(tmp_path / "news", text="body", recipe=name) as made:
        assert made.recipe == Recipe.parse(name)
    with pytest.raises(RecipeMismatch, match="w3-k64-v4"):
        ndd.Index.open(tmp_path / "news", recipe="w3-k64-v4")


def test_what_is_no_recipe_is_told() -> None:
    with pytest.raises(TypeError, match="a recipe is a Recipe, or an id like w3-k64-v4, got 64"):
        sketch("some text", 64)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'w3' is no recipe id of this version"):
        ndd.collapse(["some text"], recipe="w3")


@pytest.mark.parametrize("name", ["", "w3", "w3-k64-v0", "w03-k64-v4", "x3-k64-v1", "w3-k64-v4-", "w3-k64-v4-english"])
def test_what_is_no_id_is_refused(name: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - two sentences, by what is wrong
        Recipe.parse(name)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"k": 0}, "k must be 1..4096, got 0"),
        ({"size": 0}, "size must be 1..64, got 0"),
        ({"kind": "word"}, "kind must be one of words, characters"),
        ({"seed": -1}, "seed must be"),
        ({"hash": "crc32"}, 'hash must be "mix64" for words'),
        ({"kind": "lines", "size": 1, "hash": "crc32", "seed": 1}, "seed must be 0 with crc32"),
        ({"language": "english"}, "language is the name of a Snowball stemmer"),
        ({"method": "lsh"}, "method must be one of min-k, min-hash, super-shingles"),
        ({"estimator": "exact"}, "estimator must be one of kmv, broder, overlap"),
        (
            {"method": "min-hash", "estimator": "broder"},
            'estimator is for "min-k" only, got broder with min-hash',
        ),
        ({"method": "simhash"}, "k must be 4 for simhash, got 64"),
        ({"method": "simhash", "k": 4, "seed": 1}, "seed must be 0 for simhash, got 1"),
        ({"method": "profile", "k": 2}, "a profile counts single words, got words of size 3"),
    ],
)
def test_an_impossible_recipe_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Recipe(**settings)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"min_similarity": 0}, "min_similarity must be above 0"),
        ({"min_similarity": 1.5}, "min_similarity must be in 0..1, got 1.5"),
        ({"min_similarity": float("nan")}, "min_similarity must be in 0..1"),
        ({"min_similarity": "0.5"}, "min_similarity must be auto, .*, or a number above 0 and at most 1, got '0.5'"),
        ({"mode": "hide"}, "mode must be one of group, ids, count, drop, demote, annotate"),
        ({"members": "some"}, "members must be one of window, all"),
        ({"total": "all"}, "total must be one of auto, groups, estimate, hits"),
        ({"window": 0}, "window must be at least 1"),
        ({"window": 200, "max_window": 100}, "window must be at most max_window, 100, got 200"),
        ({"keep": ["best"]}, "keep takes score, newest:FIELD"),
        ({"keep": ["newst:day"]}, "did you mean newest"),
        ({"keep": ["newest"]}, "keep takes score, newest:FIELD.*, got 'newest'$"),
        ({"guards": ["within:date=-1d"]}, "guards takes .*within:FIELD=1d.*, got 'within:date=-1d'"),
        ({"guards": ["within:date=1 month"]}, "guards takes .*within:FIELD=1d"),
        ({"guards": ["same:"]}, "guards takes same:FIELD"),
        ({"guards": ["price"]}, "guards takes same:FIELD"),
        ({"guards": ["sam:price"]}, r"got 'sam:price' \(did you mean same"),
        ({"guards": ["length:1.5"]}, "guards takes .*length:0.5, got 'length:1.5'"),
    ],
)
def test_an_impossible_option_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        CollapseOptions(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"window": 1.5},
        {"window": True},
        {"keep": "score"},
        {"min_similarity": None},
        {"guards": [1]},
        {"guards": [["same:price"]]},
        {"guards": "numbers"},
    ],
)
def test_an_option_of_another_type_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(settings))):
        CollapseOptions(**settings)


def test_an_unknown_option_is_named_with_the_known_ones() -> None:
    with pytest.raises(TypeError, match=r"unknown option 'min_similarty' \(did you mean min_similarity\?\): .* window"):
        collapse_options(min_similarty=0.8)


def test_a_class_of_settings_names_the_nearest_of_an_unknown_name() -> None:
    settings: tuple[tuple[Any, str, str], ...] = (
        (CollapseOptions, "windw", "window"),
        (Recipe, "sede", "seed"),
        (PassageOptions, "max_token", "max_tokens"),
    )
    for kind, name, nearest in settings:
        with pytest.raises(TypeError, match=rf"unknown option '{name}' \(did you mean {nearest}\?\)"):
            kind(**{name: 3})


def test_true_and_false_are_no_words_and_no_numbers() -> None:
    unwrapped, search = Elasticsearch("http://localhost:1"), {"query": {"match": {"body": "x"}}, "ndd": {"cache": "no"}}
    for call, name in (
        (lambda: ndd.wrap(unwrapped, enabled="no"), "enabled"),  # type: ignore[arg-type]
        (lambda: ndd.options(enabled="no").__enter__(), "enabled"),  # type: ignore[arg-type]
        (lambda: ndd.options(cache="no").__enter__(), "cache"),  # type: ignore[arg-type]
        (lambda: ndd.wrap(Elasticsearch("http://localhost:1")).search(index="news", body=search), "cache"),
        (lambda: list(ndd.with_sketches([{"_id": "1"}], fields=["body"], numbers="no")), "numbers"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=f"{name} must be true or false.*, got 'no'"):
            call()
    for show in (ndd.collapse, ndd.passages):
        with pytest.raises(TypeError, match="size must be a whole number, got True"):
            show(["a"], size=True)


def test_options_take_whole_numbers_of_numpy() -> None:
    window: Any = np.int64(5)
    assert CollapseOptions(window=window).as_text == CollapseOptions(window=5).as_text


def test_a_class_that_inherits_options_checks_and_keeps_values_as_they_do() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Ours(CollapseOptions):
        team: str = ""

    window: Any = np.int64(5)
    assert repr(Ours(window=window, team="a").window) == "5"
    with pytest.raises(TypeError, match="guards must be a list, got 'numbers'"):
        Ours(guards="numbers")  # type: ignore[arg-type]


def test_a_recipe_takes_whole_numbers_of_numpy() -> None:
    size, k, seed = (np.int64(one) for one in (2, 8, 4))
    numbers: Any = {"size": size, "k": k, "seed": seed}
    recipe = Recipe(**numbers)
    assert recipe == Recipe(size=2, k=8, seed=4)
    assert (
        sketch("a bridge closed for a day", recipe).tolist() == sketch("a bridge closed for a day", recipe.id).tolist()
    )


def test_options_change_one_by_one() -> None:
    assert collapse_options(CollapseOptions(window=50), mode="drop") == CollapseOptions(window=50, mode="drop")


def test_options_that_searches_repeat_are_made_once_and_equal_values_of_another_type_are_checked() -> None:
    class Cheapest:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, hit: dict[str, Any]) -> int:
            return 0

    base = CollapseOptions()
    assert collapse_options(base, window=1) is collapse_options(base, window=1)
    with pytest.raises(TypeError, match="window must be a whole number, got True"):
        collapse_options(base, window=True)
    assert collapse_options(CollapseOptions(keep=(Cheapest(),)), window=1).window == 1
    capped = CollapseOptions(max_per=("source:2",))
    assert collapse_options(capped, window=1) is collapse_options(capped, window=1) == replace(capped, window=1)


@pytest.mark.parametrize(
    "error",
    [
        InvalidSketch("it is empty"),
        RecipeMismatch("index 'news'", "w3-k64-v4", "w5-k64-v4"),
        InvalidDocument("document 7", "it has no id", "give it one"),
        IndexUnusable("news.idx", "it holds no index", "make one"),
        MissingExtra("reading HTML", "selectolax", "html"),
    ],
)
def test_errors_tell_their_facts_and_survive_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, str(again)) == (type(error), error.args, str(error))
    assert all(str(fact) in str(error) for fact in error.args)
