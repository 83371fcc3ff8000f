import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.config import Recipe
from ndd_search.field import SketchField

RECIPE = Recipe.words(k=4)
FIELD = SketchField()


def stored(values: object, recipe: str = RECIPE.id) -> dict[str, object]:
    return {"ndd.sketch": values, "ndd.recipe": [recipe]}


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True).map(sorted)))
def test_what_was_encoded_comes_back(sketches: list[list[int]]) -> None:
    encoded = [FIELD.encode(np.array(one, np.int32), RECIPE) for one in sketches]
    doc_values = [{"ndd.sketch": one["sketch"], "ndd.recipe": [one["recipe"]]} for one in encoded]
    assert [sketch.tolist() for sketch in FIELD.decode(doc_values, RECIPE)] == sketches


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "missing"),
        ({"other": [1]}, "missing"),
        ({"ndd.recipe": [RECIPE.id]}, "empty"),
        ({"ndd.sketch": [1, 2]}, "foreign"),
        (stored([1, 2], "w3-k64-v1"), "foreign"),
        (stored([2, 1]), "malformed"),
        (stored([1, 1]), "malformed"),
        (stored([-1, 1]), "malformed"),
        (stored([1, 2**31]), "malformed"),
        (stored([1, 2.5]), "malformed"),
        (stored(["1", "2"]), "malformed"),
        (stored([1, None]), "malformed"),
        (stored([1, 2, 3, 4, 5]), "malformed"),
        (stored([]), "malformed"),
        (stored("12"), "malformed"),
    ],
)
def test_a_hit_without_a_good_sketch_says_why_and_its_neighbours_keep_theirs(fields: dict, reason: str) -> None:
    before, odd, after = FIELD.decode([stored([5, 6]), fields, stored([1, 9])], RECIPE)
    assert before.tolist() == [5, 6]
    assert odd == reason
    assert after.tolist() == [1, 9]


def test_a_second_recipe_lives_under_another_name() -> None:
    assert SketchField("next").decode([{**stored([1, 2]), "next.sketch": [3], "next.recipe": [RECIPE.id]}], RECIPE)[
        0
    ].tolist() == [3]
