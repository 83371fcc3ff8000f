"""The native core and numpy make the same sketches of texts."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch, sketch_many
from ndd_search.core.text.sentences import stems_of
from ndd_search.core.text.shingles import shingle_hashes
from ndd_search.core.text.unicode_tables import native_table
from ndd_search.native import Core
from tests.native.both import both
from tests.strategies import texts as awkward_texts

UDHR = Path(__file__).parents[1] / "data" / "udhr.jsonl.gz"
texts = st.lists(
    st.one_of(
        awkward_texts,
        st.text(max_size=40),
        st.text("ab cé0_.\n\u0301漢ก", max_size=60),
        st.lists(st.sampled_from(["a", "The", "fox's", "12", "naïve", "über", "漢字", "--"]), max_size=400).map(
            " ".join
        ),
    ),
    max_size=5,
)


@given(
    texts,
    st.sampled_from(["words", "characters"]),
    st.integers(1, 6),
    st.sampled_from([1, 2, 16, 64]),
    st.sampled_from([0, 1, 2**31 - 1]),
)
def test_any_text_gets_the_same_sketch(texts: list[str], kind: str, size: int, k: int, seed: int) -> None:
    recipe = Recipe(kind=kind, size=size, k=k, seed=seed)  # type: ignore[arg-type]
    for found, plain in (both(lambda: sketch_many(texts, recipe)), both(lambda: [sketch(t, recipe) for t in texts])):
        assert [one.tolist() for one in found] == [one.tolist() for one in plain]


pieces = [
    "The councils ",
    "approved ",
    "U.S. steel ",
    "J. B. Jones ",
    "Mrs. Q ",
    "aMr. ",
    "Prof.",
    "St. ",
    "Ü. ",
    "ÖÄ. ",
    "п.",
    "А. ",
]
pieces += [
    ". ",
    "! ",
    "…\u00a0",
    "?) ",
    '." ',
    ".’\x1c",
    ".\n",
    "\n",
    "\n \n",
    "\r\n",
    "\x85",
    "\u2028",
    "。",
    "漢字",
    "running ",
    "naïve ",
]


@given(
    st.lists(st.one_of(texts.map("".join), st.lists(st.sampled_from(pieces), max_size=30).map("".join)), max_size=4),
    st.sampled_from([("lines", None), ("sentences", None), ("sentences", "english"), ("sentences", "russian")]),
    st.integers(1, 4),
    st.sampled_from([("mix64", 0), ("mix64", 2**64 - 1), ("crc32", 0)]),
)
def test_any_lines_and_sentences_get_the_same_sketch(
    texts: list[str], kind: tuple[Any, str | None], size: int, hashed: tuple[Any, int]
) -> None:
    recipe = Recipe(kind=kind[0], language=kind[1], size=size, hash=hashed[0], seed=hashed[1])
    found, plain = both(lambda: sketch_many(texts, recipe))
    assert [one.tolist() for one in found] == [one.tolist() for one in plain]


def test_words_whose_stems_are_new_or_forgotten_get_the_same_sketch(monkeypatch: pytest.MonkeyPatch) -> None:
    """More words than are kept with their stems, twice, by two stemmers in turn; and long ones, which are not kept."""
    some = [" ".join(f"{first:x}running{at:x}" for at in range(40_000)) for first in range(4)]
    expected: dict[tuple[str, str], list[int]] = {}
    for language in ("english", "dutch", "english"):
        for text in [*some, *some, "x" * 300 + " running", "running"]:
            recipe = Recipe.sentences(language)
            if (language, text) not in expected:
                monkeypatch.setattr(native, "core", None)
                expected[language, text] = sketch(text, recipe).tolist()
                monkeypatch.undo()
            assert sketch(text, recipe).tolist() == expected[language, text]


def test_words_of_common_scripts_are_found_by_the_core(core: Core) -> None:
    with gzip.open(UDHR, "rt", encoding="utf-8") as lines:
        articles = [article for line in lines for article in json.loads(line)["articles"]]
    for apart, stems in ((True, None), (False, stems_of(None))):
        found = core.words_of(articles, bytes(len(articles)), (apart, 1, 0, 1), native_table(), stems)
        assert found is not None
        assert found.count(b"\n") == len(articles)


def test_long_texts_get_the_same_sketch() -> None:
    rng = np.random.default_rng(2)
    for length in (100, 3000, 60_000):
        for words in ([f"{i:x}" for i in range(500)], [f"{i:x}\u0103" for i in range(40_000)]):
            text = " ".join(words[i] for i in rng.integers(0, len(words), length))
            for kind in ("words", "characters"):
                found, plain = both(lambda text=text, kind=kind: sketch(text, Recipe(kind=kind, size=4, k=128)))  # type: ignore[misc]
                assert found.tolist() == plain.tolist()


def test_no_text_of_a_common_script_is_left_to_numpy(core: Core) -> None:
    with gzip.open(UDHR, "rt", encoding="utf-8") as lines:
        articles = [article for line in lines for article in json.loads(line)["articles"]]
    found = core.sketch_texts(articles, bytes(len(articles)), (True, 3, 0, 64), native_table())
    assert found is not None
    assert [articles[i] for i in np.frombuffer(found[2], np.int64)] == []


def test_words_chosen_to_crowd_and_to_fall_get_the_same_sketch() -> None:
    """Hashes that all lie close together, the largest first, twice each: what sorting by size is worst at."""
    recipe = Recipe.words(size=1, k=100)
    words = [f"{i:x}" for i in range(400_000)]
    hashes, _ = shingle_hashes([" ".join(words)], recipe)
    for share in (1e-3, 1e-4):
        chosen = [words[i] for i in np.argsort(hashes)[: int(share * len(words))][::-1]]
        text = " ".join(word for pair in zip(chosen, chosen, strict=True) for word in pair)
        found, plain = both(lambda text=text: sketch(text, recipe))  # type: ignore[misc]
        assert len(found) == min(len(chosen), 100)
        assert found.tolist() == plain.tolist()
