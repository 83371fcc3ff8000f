"""Sketches do not depend on batches; values that are not texts raise an error."""

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches, sketch, sketch_batch, sketch_many
from tests import plain_sketching as plain
from tests.strategies import RECIPES, recipes, texts


@pytest.fixture(params=["core", "numpy"], scope="module", autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test runs with the native core, if it was built, and without."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(native, "core", None)
        elif native.core is None:
            pytest.skip("the native core was not built")
        yield


@contextmanager
def batches_of(characters: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("BATCH", "CORE_BATCH"):
            patch.setattr(sys.modules["ndd_search.core.sketching.sketches"], name, characters)
        yield


@given(st.lists(texts, max_size=8), recipes, st.integers(1, 200), st.integers(1, 3))
@example(["the oﬃDr. Running"], Recipe(kind="sentences", size=1, language="english"), 9, 1)
def test_a_sketch_is_the_same_in_every_batch_and_by_itself(
    batch: list[str], recipe: Recipe, room: int, threads: int
) -> None:
    expected = [plain.sketch(text, recipe) for text in batch]
    assert [one.tolist() for one in sketch_many(batch, recipe)] == expected
    assert [sketch(text, recipe).tolist() for text in batch] == expected
    with batches_of(room):
        assert [one.tolist() for one in sketch_many(iter(batch), recipe, threads)] == expected


@pytest.mark.parametrize("threads", [None, 1, 2, 7])
@pytest.mark.once
def test_many_threads_keep_the_order_of_texts_however_unequal_they_are(threads: int | None) -> None:
    batch = [f"text {i} " * (i * i % 97 * 20 + 1) for i in range(900)]
    expected = [sketch(text).tolist() for text in batch]
    with batches_of(5000):
        assert [one.tolist() for one in sketch_many(iter(batch), threads=threads)] == expected


def test_threads_read_a_generator_no_further_ahead_than_they_need() -> None:
    done, ahead = 0, 0

    def read() -> Iterator[str]:
        nonlocal ahead
        for i in range(400):
            ahead = max(ahead, i - done)
            yield "some text of several words " * 100

    def counted(batch: list[str], recipe: Recipe) -> Sketches:
        nonlocal done
        done += len(batch)
        return sketch_batch(batch, recipe)

    with batches_of(20_000), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["ndd_search.core.sketching.sketches"], "sketch_batch", counted)
        assert len(sketch_many(read(), threads=3)) == 400
    assert ahead <= 8 * 2 * 3 + 8


def test_fewer_than_one_thread_is_refused() -> None:
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        sketch_many(["a"], threads=0)


def test_what_the_reader_of_texts_raises_reaches_the_caller() -> None:
    def read() -> Iterator[str]:
        yield from ["some text"] * 5000
        raise OSError("the disk is gone")

    with batches_of(1000), pytest.raises(OSError, match="the disk is gone"):
        sketch_many(read(), threads=2)


@pytest.mark.parametrize("make", [Recipe.words, Recipe.characters])
def test_a_short_text_of_letters_that_become_many_is_sketched(make: Callable[..., Recipe]) -> None:
    recipe = make(k=64)
    for text in ("\ufdfa " * 1900, "\ufdfa" * 3900, "\ufb03" * 3000 + " x y z"):
        assert sketch(text, recipe).tolist() == plain.sketch(text, recipe)


@pytest.mark.parametrize("make", [Recipe.words, Recipe.characters])
def test_texts_that_repeat_themselves_keep_their_smallest_hashes(make: Callable[..., Recipe]) -> None:
    """Repetition is what makes a cut fall short that expects the hashes of a text to be distinct."""
    varied = " ".join(f"{i * i % 7919:x}" for i in range(4000))
    batch = ["the same words " * 9000, "x " * 30_000 + varied, "", varied, "one", "é " + varied[:999], varied * 3]
    longest = [plain.sketch(text, make(k=4096)) for text in batch]
    for k in (1, 64, 4096):
        expected = [values[:k] for values in longest]
        assert [one.tolist() for one in sketch_many(batch, make(k=k))] == expected
        assert [sketch(text, make(k=k)).tolist() for text in batch] == expected


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_a_sketch_is_ascending_distinct_and_within_its_range(recipe: Recipe) -> None:
    one = sketch("Some words. And more words, \n and still others! " * 9 + " ".join(map(str, range(500))), recipe)
    assert one.dtype == np.int32
    assert 0 < len(one) <= recipe.k
    assert (np.diff(one.astype(np.int64)) > 0).all()
    assert one[0] >= 0


def test_the_order_of_words_and_what_stands_between_them_matters_only_as_the_recipe_says() -> None:
    assert sketch("a b c").tolist() == sketch("A, b -- C!").tolist()
    assert sketch("a b c").tolist() != sketch("c b a").tolist()


def test_a_generator_is_read_a_batch_at_a_time() -> None:
    tracemalloc.start()
    try:
        many = sketch_many(f"text {i} of many " * 10_000 for i in range(200))  # 34 MB of text
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(many) == 200
    assert peak < 20e6


def test_many_sketches_are_a_sequence() -> None:
    many = sketch_many(["one two three four", "", "five six seven"])
    assert (len(many), len(many[0]), len(many[1]), len(many[-1])) == (3, 2, 0, 1)
    assert [one.tolist() for one in many[1:]] == [many[1].tolist(), many[2].tolist()]
    assert repr(many) == "Sketches(n=3, values=3)"
    with pytest.raises(IndexError, match="sketch 3 of 3"):
        _ = many[3]


def test_no_texts_give_no_sketches() -> None:
    assert isinstance(sketch_many([]), Sketches)
    assert list(sketch_many(iter(()))) == []


@pytest.mark.parametrize("text", [None, b"bytes", 7, ["a", "b"]])
def test_what_is_no_text_is_named(text: object) -> None:
    with pytest.raises(TypeError, match=f"a text is {type(text).__name__}, not str"):
        sketch(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", [None, b"bytes", 7, float("nan")])
@pytest.mark.parametrize("place", [0, 3, 5000])
def test_what_is_no_text_among_texts_is_named_with_its_place(odd: object, place: int) -> None:
    batch: list[object] = ["some text of several words"] * 6000
    batch[place] = odd
    with pytest.raises(TypeError, match=f"text {place} is {type(odd).__name__}, not str"):
        sketch_many(batch)  # type: ignore[arg-type]


@pytest.mark.parametrize("one", ["one text", b"bytes"])
def test_one_text_where_many_are_wanted_is_refused(one: object) -> None:
    with pytest.raises(TypeError, match=f"texts must be a list of texts, got one {type(one).__name__}"):
        sketch_many(one)  # type: ignore[arg-type]
