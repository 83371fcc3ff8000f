from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import SketchField, is_sketch_object, sketch_in

RECIPE = Recipe.words(k=4)
FIELD = SketchField()


def stored(values: object, recipe: str = RECIPE.id) -> dict[str, object]:
    return {"fields": {"ndd.sketch": values, "ndd.recipe": [recipe]}}


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True).map(sorted)))
def test_what_was_encoded_comes_back(sketches: list[list[int]]) -> None:
    encoded = [FIELD.encode(np.array(one, np.int32), RECIPE) for one in sketches]
    hits = [stored(one["sketch"], one["recipe"]) for one in encoded]
    assert [sketch.tolist() for sketch in FIELD.decode(hits, RECIPE)] == sketches  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("hit", "reason"),
    [
        ({}, "missing"),
        ({"fields": None}, "missing"),
        ({"fields": {"other": [1]}}, "missing"),
        ({"fields": {"ndd.recipe": [RECIPE.id]}}, "empty"),
        ({"fields": {"ndd.sketch": [1, 2]}}, "foreign"),
        (stored([1, 2], "w3-k64-v4"), "foreign"),
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
def test_a_hit_without_a_good_sketch_says_why_and_its_neighbours_keep_theirs(hit: dict[str, Any], reason: str) -> None:
    before, odd, after = FIELD.decode([stored([5, 6]), hit, stored([1, 9])], RECIPE)
    assert before.tolist() == [5, 6]  # type: ignore[union-attr]
    assert odd == reason
    assert after.tolist() == [1, 9]  # type: ignore[union-attr]


def test_the_core_and_python_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of at most k ascending integers is a sketch, anything else is malformed."""
    values = [5, 6, 2**31 - 1]
    bad: list[object] = ["!", 5, {}, [], ["5"], [values], [True, 2.0], [2**70], [-(2**70)], [0, 1, 2, 3, 4]]
    bad += [[-1, 4], [2, 1], [3, 3], [2**31], [None]]
    given: list[Any] = [stored(values), stored([True, 2]), {"fields": {"ndd.recipe": [RECIPE.id]}}, stored(None)]
    given += [*map(stored, bad), {"fields": {"ndd.sketch": values}}, stored(values, "w3-k64-v4")]
    expected = [values, [1, 2], "empty", "empty", *["malformed"] * len(bad), "foreign", "foreign"]
    for core in (native.core, None):
        monkeypatch.setattr(native, "core", core)
        assert FIELD.decode([], RECIPE) == []
        assert [one if isinstance(one, str) else one.tolist() for one in FIELD.decode(given, RECIPE)] == expected


@given(st.lists(st.integers(0, 2**31 - 1), max_size=4, unique=True).map(sorted))
def test_what_is_stored_holds_the_values(values: list[int]) -> None:
    parts = FIELD.parts(np.array(values, np.int32), RECIPE, keys=2)
    stored = parts["ndd"]
    assert is_sketch_object(stored)
    assert parts["ndd_keys"] == [format(value, "08x") for value in values[:2]]
    assert stored.get("smallest") == (values[0] if values else None)
    assert set(stored) - {"recipe", "smallest"} == {"sketch"}
    found = sketch_in(stored, RECIPE.k)
    assert (values or None) == (None if found is None else found.tolist())


def test_a_second_recipe_lives_under_another_name() -> None:
    values: Any = {"ndd.sketch": [1, 2], "ndd.recipe": [RECIPE.id], "next.sketch": [3], "next.recipe": [RECIPE.id]}
    (found,) = SketchField("next").decode([{"fields": values}], RECIPE)
    assert found.tolist() == [3]  # type: ignore[union-attr]


def test_a_document_gets_the_object_and_when_asked_its_smallest_values_as_keys() -> None:
    sketch = np.array([1, 255, 2**31 - 1], np.int32)
    assert FIELD.parts(sketch, RECIPE) == {"ndd": {"sketch": [1, 255, 2**31 - 1], "smallest": 1, "recipe": RECIPE.id}}
    assert FIELD.parts(sketch, RECIPE, keys=2)["ndd_keys"] == ["00000001", "000000ff"]


def test_a_sketch_that_no_longer_fits_its_text_is_read_as_foreign_by_every_recipe() -> None:
    stored = FIELD.parts(None, RECIPE, keys=8)
    assert stored == {"ndd": {"sketch": [], "recipe": "stale"}, "ndd_keys": []}
    assert FIELD.decode([{"fields": {"ndd.recipe": [stored["ndd"]["recipe"]]}}], RECIPE) == ["foreign"]
    with pytest.raises(ValueError, match="no recipe id"):
        Recipe.parse("stale")


@pytest.mark.parametrize(
    ("stored", "number"),
    [([7], 7), ([0], 0), ([], None), (None, None), (7, None), ([1, 2], None), (["7"], None), ([1.5], None)]
    + [([wrong], None) for wrong in (-1, 2**31, 2**70, None)],
)
def test_numbers_are_read_only_as_they_were_stored(stored: object, number: int | None) -> None:
    assert SketchField().numbers_in({"ndd.numbers": stored}) == number


def test_the_object_needs_a_name() -> None:
    with pytest.raises(
        ValueError, match="a sketch needs a top-level name without dots or a leading underscore, got ''"
    ):
        SketchField("")


def test_only_marks_in_the_form_in_which_they_are_written_are_ours() -> None:
    ours = {"group": "a", "group_size": 2, "leads": True, "judged": ""}
    assert is_sketch_object(ours)
    assert is_sketch_object(dict.fromkeys(ours))  # after their removal
    for other in ({"group_size": True}, {"group_size": "2"}, {"group_size": 0}, {"leads": None}, {"group": 7}):
        assert not is_sketch_object({**ours, **other})
