"""Tokens suit every script: a copy in another frame is found, another text in the same frame is not.

The texts are articles of the Universal Declaration of Human Rights (tests/data/README.md); the frames, a third of a
page and more than half of one, are other articles of it; the index is every article by itself and in each frame.
"""

import gzip
import json
import random
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similar_pairs import overlapping_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches, sketch_many

LANGUAGES = ["en", "de", "ru", "ar", "hi", "bn", "th", "zh", "ja", "ko", "vi", "tr", "el", "he", "lo", "km", "my"]
BODIES = [range(0, 4), range(4, 9), range(9, 13), range(13, 17), range(17, 20), range(20, 23)]
RECIPE = Recipe()


@cache
def articles(language: str) -> list[str]:
    with gzip.open(Path(__file__).parent / "data/udhr.jsonl.gz", "rt", encoding="utf-8") as lines:
        return next(row["articles"] for row in map(json.loads, lines) if row["language"] == language)


def body(language: str, number: int) -> str:
    return "\n".join(articles(language)[i] for i in BODIES[number])


def framed(language: str, text: str, frame: int) -> str:
    head, foot = ((23, 27), (24, 27))[frame]
    return f"{articles(language)[head]}\n{text}\n{articles(language)[foot]}"


def edited(text: str, seed: int = 3) -> str:
    """A few letters lost and doubled, quotation marks and dashes of another kind, decomposed characters."""
    rng = random.Random(seed)
    letters = list(text.replace('"', "”").replace("-", "‐"))
    for _ in range(len(letters) // 250 + 1):
        i = rng.randrange(len(letters))
        letters[i] = letters[i] * rng.choice((0, 2))
    return unicodedata.normalize("NFD", "".join(letters))


@cache
def index(language: str) -> tuple[list[str], Sketches, FrequencyTable]:
    bodies = [body(language, number) for number in range(len(BODIES))]
    texts = [framed(language, bodies[0], 0), framed(language, edited(bodies[0]), 1)]
    texts += [framed(language, one, 0) for one in bodies[1:]]
    alone = articles(language)[:23]
    rest = [framed(language, one, frame) for one in alone for frame in (0, 1)]
    sketches = sketch_many([*texts, *alone, *rest], RECIPE)
    return texts, sketches, count_document_frequency(sketches, RECIPE)


def verdicts(language: str, frequency_table: FrequencyTable | None) -> dict[tuple[int, int], bool]:
    """Which pairs of the first documents of the index count: 0 and 1 are copies, 2 and up stand in the frame of 0."""
    texts, sketches, _ = index(language)
    decision = Decision.of("auto", RECIPE, frequency_table)
    pairs, overlaps = overlapping_pairs(rows_of(sketches[: len(texts)], RECIPE.k), decision)
    found = zip(pairs.first.tolist(), pairs.second.tolist(), decision.accepts(overlaps).tolist(), strict=True)
    return {(first, second): counts for first, second, counts in found}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_copy_with_light_edits_in_another_frame_is_found(language: str) -> None:
    assert verdicts(language, index(language)[2])[0, 1]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("with_table", [True, False])
def test_another_text_in_the_same_frame_is_not(language: str, with_table: bool) -> None:
    found = verdicts(language, index(language)[2] if with_table else None)
    others = [i for i in range(len(BODIES) + 1) if i != 1]
    assert not any(found.get((i, j), False) for i in others for j in others)


@pytest.mark.parametrize("language", LANGUAGES)
def test_another_text_of_the_language_has_next_to_nothing_in_common(language: str) -> None:
    sketches = sketch_many([body(language, number) for number in range(len(BODIES))], Recipe(k=1024))
    resembling, _ = overlapping_pairs(rows_of(sketches, 1024), Decision(0.01, 3))
    assert np.max(resembling.similarity, initial=0) < 0.2


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_in_capitals_is_the_same_text(language: str) -> None:
    text = body(language, 1)
    capitals = (text.replace("i", "İ").replace("ı", "I") if language == "tr" else text).upper()
    first, second = sketch_many([text, capitals], RECIPE)
    assert first.tolist() == second.tolist()
