"""Of a recipe with a key, nobody writes a text that resembles another one, and nothing tells the key."""

import copy
import pickle
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search import native
from ndd_search.cli import main
from ndd_search.core.paging.hit_reader import HitReader
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.core.text.shingles import P
from ndd_search.errors import KeyNeeded
from ndd_search.indexing.backfill import Backfill
from ndd_search.search.index_rules import recipe_named
from ndd_search.search.settings_file import read_preset
from tests.native.both import both

KEY = "a secret of sixteen characters and more"
TEXT = "market market market"


def joined(one: np.ndarray, other: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of numbers of two lists whose sum ends in so many zero bits."""
    low, needed = (each << np.uint64(64 - bits) for each in (one, ~other + np.uint64(1)))
    order = np.argsort(low, kind="stable")
    first, last = (np.searchsorted(low[order], needed, side) for side in ("left", "right"))
    second = np.repeat(np.arange(len(other)), last - first)
    within = np.arange(len(second)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    return order[first[second] + within], second


@cache
def forged(word: str) -> list[str]:
    """Sixty other words with the same polynomial of the public hash.

    A generalised birthday search (Wagner 2002) over eight parts of four letters each.
    """
    letters, count = np.frombuffer(b"abcdefghijklmnopqrstuv", np.uint8).astype(np.uint64), 2**17
    places = np.arange(count)[:, None] // 22 ** np.arange(4) % 22
    lists = []
    for part in range(8):
        powers = [np.uint64(pow(P, 4 * part + at, 2**64)) for at in range(4)]
        lists.append(sum(letters[places[:, at]] * of for at, of in enumerate(powers)))
    lists[-1] = lists[-1] - np.uint64(sum(ord(letter) * pow(P, at, 2**64) for at, letter in enumerate(word)) % 2**64)
    found = [(values, np.arange(count)[:, None]) for values in lists]  # sums, and the places of their parts
    for bits in (16, 32, 64):
        pairs = list(zip(found[::2], found[1::2], strict=True))
        found = []
        for (one, of_one), (other, of_other) in pairs:
            first, second = joined(one, other, bits)
            found.append((one[first] + other[second], np.hstack((of_one[first], of_other[second]))))
    words = {"".join(chr(int(letters[place])) for at in row for place in places[at]) for row in found[0][1]}
    return sorted(words)[:60]


def forged_text(text: str, which: int = 0) -> str:
    """Another text with the same sketch, of other words."""
    return " ".join(forged(word)[which] for word in text.split())


def test_a_forged_text_has_the_sketch_of_another_one_only_without_a_key() -> None:
    other = forged_text(TEXT)
    assert not set(other.split()) & set(TEXT.split())
    sketches = [ndd.sketch(one, Recipe()) for one in (TEXT, other)]
    assert len(ndd.collapse([TEXT, other], sketches=sketches, recipe=Recipe()).hits) == 1
    assert ndd.sketch(TEXT, Recipe(key=KEY)).tolist() != ndd.sketch(other, Recipe(key=KEY)).tolist()
    assert len(ndd.collapse([TEXT, other], recipe=Recipe(key=KEY)).hits) == 2


@pytest.mark.parametrize("options", [{}, {"group_by": "site"}, {"min_similarity": 0.9}, {"window": 2}])
def test_a_forged_text_hides_no_other_in_a_list_of_texts(options: dict[str, Any]) -> None:
    other, copy_of = forged_text(TEXT), TEXT.upper()
    hits = [{"body": text} for text in (other, TEXT, copy_of, other, "something else entirely")]
    page = ndd.collapse(hits, text="body", recipe=Recipe(), **options)
    assert [group.rank for group in page.groups] == [0, 1, 4]
    assert [[one.rank for one in group.duplicates] for group in page.groups] == [[3], [2], []]
    assert "no word in common keeps them apart" in page.explain(1).rule
    told = [sentence for sentence in page.info.warnings if "share no word" in sentence]
    assert len(told) == 1
    assert "word: 2, the first is hit 1;" in told[0]
    fetched = ndd.stream(lambda start, count: hits[start : start + count], text="body", recipe=Recipe(), **options)
    pages = [fetched.page(1, start) for start in range(3)]
    assert [group.rank for page in pages for group in page.groups] == [0, 1, 4]
    assert all("word: " in page.info.warnings[-1] for page in pages[1:])


@pytest.mark.parametrize("by_cursor", [True, False])
@pytest.mark.once
def test_pages_of_a_source_tell_all_forged_texts_once(by_cursor: bool) -> None:
    """The ranks of a cursor's page begin anew, as do those of a second walk."""
    hits: list[dict[str, Any]] = []
    for word in ("market", "council"):
        text = " ".join([word] * 3)
        texts = (text, " ".join([forged(word)[0]] * 3), text, text)
        hits += [{"id": f"{word}{at}", "body": text} for at, text in enumerate(texts)]

    def fetch(start: int, count: int) -> list[dict[str, Any]]:
        return hits[start : start + count]

    source = ndd.stream(fetch, text="body", key="q", recipe=Recipe(), window=4)
    for _ in range(2):
        cursor: Any = True
        told, start = "", 0
        while cursor and start < len(hits):
            page = source.page(2, cursor=cursor) if by_cursor else source.page(2, start)
            told, cursor, start = page.info.warnings[-1], page.cursor if by_cursor else True, start + 2
        assert "share no word: 2, the first is hit 1;" in told


@pytest.mark.parametrize("options", [{}, {"guards": ["same:site"]}, {"min_similarity": 0.9}])
def test_a_forged_passage_hides_no_other(options: dict[str, Any]) -> None:
    """Unless sketches came with the passages: these may be of other texts."""
    given = [{"text": text} for text in (forged_text(TEXT), TEXT, TEXT.upper())]
    shown = ndd.passages(given, recipe=Recipe(), **options)
    assert [(one.rank, [copy.rank for copy in one.copies]) for one in shown] == [(0, []), (1, [2])]
    with_sketches = list(ndd.with_sketches(given, fields="text"))
    assert [one.rank for one in ndd.passages(with_sketches, recipe=Recipe(), **options)] == [0]


@pytest.mark.parametrize("window", [100, 30, 10])
@pytest.mark.parametrize("sourced", [False, True])
def test_many_forged_texts_are_all_shown_with_bounded_work(
    monkeypatch: pytest.MonkeyPatch, window: int, sourced: bool
) -> None:
    texts = [forged_text(TEXT, which) for which in range(60)]
    asked, really = Counter[str](), HitReader.share_a_word
    monkeypatch.setattr(HitReader, "share_a_word", lambda *given: asked.update(["x"]) or really(*given))
    given: dict[str, Any] = {"recipe": Recipe(), "window": window, "members": "window"}
    source = ndd.stream(lambda start, count: texts[start : start + count], **given)
    page = source.page(60) if sourced else ndd.collapse(texts, size=60, **given)
    assert page.hits == texts
    assert any("word: 59, the first is hit 1;" in sentence for sentence in page.info.warnings)
    assert asked["x"] <= 59 + 21 * 20 / 2


def test_a_forged_text_in_a_list_of_lines_hides_no_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lines").write_text("\n".join([forged_text(TEXT), TEXT, TEXT.upper()]))
    assert main(["corpus", "page", str(tmp_path / "lines")]) == 0
    told = capfd.readouterr()
    assert told.out.splitlines() == [forged_text(TEXT), TEXT]
    assert "share no word: 2" in told.err


def test_a_forged_text_that_was_seen_hides_no_other() -> None:
    other = forged_text(TEXT)
    for mode in ("group", "demote", "annotate"):
        page = ndd.collapse([TEXT, other], seen=[other], recipe=Recipe(), mode=mode)
        assert TEXT in page.hits
        assert [rank for rank, _, _ in page.info.seen] == [1]
        assert any("share no word" in sentence for sentence in page.info.warnings)


TEXTS = st.text(st.sampled_from("ab <p>.&;\n\u0301\u0600éßｱ漢\U00020000") | st.characters(), max_size=60)


@given(st.lists(TEXTS, max_size=9), st.sampled_from(["keep", "html"]))
def test_texts_with_a_common_shingle_are_never_taken_for_forged(texts: list[str], markup: Any) -> None:
    recipe = Recipe.words(1, markup=markup)
    reader = HitReader(recipe)
    for one, other in combinations(texts, 2):
        if np.intersect1d(ndd.sketch(one, recipe), ndd.sketch(other, recipe)).size:
            assert reader.share_a_word(one, other)


def test_long_texts_and_shingles_that_are_no_words_are_trusted() -> None:
    reader = HitReader(Recipe())
    assert not reader.share_a_word("one " * 2_500, "other " * 1_600)
    assert reader.share_a_word("one " * 2_500 + "more", "other " * 1_600)
    shops = ["an unbelievable notebook", "unbelievables notebooks"]
    assert len(ndd.collapse(shops, recipe=Recipe.characters(4), min_similarity=0.5)) == 1


def test_texts_that_differ_nowhere_still_share_a_sketch_with_a_key() -> None:
    assert len(ndd.collapse([TEXT, TEXT.upper()], recipe=Recipe(key=KEY)).hits) == 1


def test_words_of_two_letters_that_collide_for_any_base_differ_with_a_key() -> None:
    """Thue and Morse: two words of 4,096 letters whose polynomials are equal modulo 2**64, whatever odd base they have.

    With the same letters no key tells them apart. They equal each other only, and no word that somebody uses.
    """
    bits = [bin(place).count("1") % 2 for place in range(4096)]
    one, other = ("".join(letters[bit] for bit in bits) for letters in ("ab", "ba"))
    for recipe in (Recipe(), Recipe(key=KEY)):
        assert ndd.sketch(one, recipe).tolist() == ndd.sketch(other, recipe).tolist()
        assert ndd.sketch(one, recipe).tolist() != ndd.sketch(one[:-1], recipe).tolist()


@pytest.mark.skipif(native.core is None, reason="there is no core to compare with")
@given(
    st.sampled_from([Recipe.words, Recipe.characters, Recipe.lines]),
    st.integers(1, 4),
    st.lists(st.text(st.sampled_from("ab c.\n\u0301éß漢\U00020000") | st.characters(), max_size=400), min_size=1),
)
def test_the_core_makes_the_same_sketches_with_a_key(make: Any, size: int, texts: list[str]) -> None:
    recipe = make(key=KEY) if make == Recipe.lines else make(size, key=KEY)
    made, plain = both(lambda: [one.tolist() for one in sketch_many(texts, copy.copy(recipe).with_key(KEY))])
    assert made == plain
    assert made == [ndd.sketch(text, recipe).tolist() for text in texts]
    assert any(made) == any(ndd.sketch(text, make()).tolist() for text in texts)


def test_sketches_of_two_keys_share_nothing() -> None:
    text = " ".join(f"word{number}" for number in range(200))
    recipes = [Recipe(), Recipe(key=KEY), Recipe(key=KEY + ".")]
    made = [set(ndd.sketch(text, recipe).tolist()) for recipe in recipes]
    assert not made[0] & made[1] | made[1] & made[2] | made[0] & made[2]
    assert len({recipe.id for recipe in recipes}) == 3


def test_nothing_tells_the_key() -> None:
    recipe = Recipe.words(key=KEY)
    numbers = recipe.numbers
    assert recipe.plan or not native.core
    assert numbers
    pickled = pickle.dumps(recipe)
    for shown in (repr(recipe), str(recipe), recipe.id, repr(pickled), repr(vars(pickle.loads(pickled)))):
        assert KEY not in shown
        assert not any(str(number) in shown for number in numbers)
    assert pickle.loads(pickled) == recipe == Recipe.parse(recipe.id)


def test_a_search_and_a_removal_need_no_key_and_a_sketch_does() -> None:
    known = Recipe.parse(Recipe(key=KEY).id)
    sketches = [ndd.sketch(text, Recipe(key=KEY)) for text in (TEXT, TEXT, "something else")]
    assert len(ndd.collapse(["a", "b", "c"], sketches=sketches, recipe=known).hits) == 2
    with pytest.raises(KeyNeeded, match=known.id):
        ndd.sketch(TEXT, known)
    with pytest.raises(KeyNeeded, match=known.id):
        ndd.with_sketches([], fields=["body"], recipe=known)
    with pytest.raises(KeyNeeded, match=known.id):
        Backfill(index="news", fields=["body"], recipe=known)
    assert Backfill(index="news", remove=True, recipe=known).recipe == known
    assert ndd.sketch(TEXT, known.with_key(KEY)).tolist() == sketches[0].tolist()
    with pytest.raises(ValueError, match="another key"):
        known.with_key("another secret of sixteen characters")


def test_a_setting_names_where_the_key_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NDD_KEY_OF_TEST", KEY)
    secret, settings = tmp_path / "key", tmp_path / "settings.toml"
    secret.write_text(KEY + "\n")
    settings.write_text('recipe = "w3-k64-v4+env:NDD_KEY_OF_TEST"\n')
    wanted = Recipe(key=KEY)
    for found in (
        recipe_named("w3-k64-v4+env:NDD_KEY_OF_TEST"),
        recipe_named(f"{wanted.id}+file:{secret}"),
        read_preset(settings).recipe,
    ):
        assert found == wanted
        assert found is not None
        assert found.numbers == wanted.numbers
    for wrong in ("w3-k64-v4+env:NDD_NOT_SET", "w3-k64-v4+" + KEY, f"w3-k64-v4+file:{tmp_path / 'none'}"):
        with pytest.raises(ValueError, match="key"):
            recipe_named(wrong)


@pytest.mark.parametrize(
    "wrong", [{"seed": 3}, {"method": "simhash", "k": 4, "size": 1}, {"kind": "lines", "size": 1, "hash": "crc32"}]
)
def test_recipes_whose_hash_takes_no_key_refuse_one(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="key"):
        Recipe(key=KEY, **wrong)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        Recipe(key="hunter2")
