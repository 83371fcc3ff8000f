"""Which passages stand in longer ones, and how overlapping ones are joined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.matching.contained_texts import (
    Extract,
    joined,
    lies_inside,
    normalised,
    possible_containers,
)
from ndd_search.core.sketching import sketch_many
from ndd_search.integrations.choose_passages import passages

LONG = (
    "From today on the fee is 20 euros (it was 15). The first steel works have paid it already, and \n\n the others "
    "will follow. 人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"
)


@pytest.mark.parametrize(
    "short",
    [
        "From today on the fee is 20 euros",
        "THE FIRST STEEL WORKS HAVE PAID IT ALREADY.",
        "have paid it already, and the others\twill follow",
        "it was 15",
        "在尊严和权利上一律平等",
        "the fee is 20 euros (it was 15)",
    ],
)
def test_case_white_space_and_what_closes_a_sentence_do_not_matter(short: str) -> None:
    assert lies_inside(normalised(short), normalised(LONG))


@pytest.mark.parametrize("short", ["", "...", "today on the fee is 2", "rom today on", "paid it already or", LONG])
def test_other_words_or_parts_of_words_are_not_inside(short: str) -> None:
    assert not lies_inside(normalised(short), normalised(LONG))


def test_a_later_place_where_the_words_are_whole_counts() -> None:
    assert lies_inside("the port is", "the port isolates; the port is closed")


def test_passages_in_scripts_without_spaces_are_found_in_longer_ones() -> None:
    one, other = "人人生而自由，在尊严和权利上一律平等。", "他们赋有理性和良心，并应以兄弟关系的精神相对待。"
    long = (
        one + other * 1 + "人人有资格享有本宣言所载的一切权利和自由，不分种族、肤色、性别、语言、宗教、政治或其他见解。"
    )
    assert passages([one, other, long], min_similarity="identical").hits == [long]


def test_what_may_be_inside_is_found_in_sketches_however_many_share_their_head() -> None:
    """At most 16 longer passages are looked at for each value, so the work does not grow with the square."""
    head = "This message was sent to all members of the list, do not reply to it. "
    texts = [head + " ".join(f"{word}{place}" for word in "abcdefgh") for place in range(300)]
    texts[200] = f"{texts[7]} and so on and so forth"
    possible = possible_containers(sketch_many(texts), [len(text) for text in texts], ndd.Recipe())
    assert 200 in possible[7]
    assert sum(map(len, possible.values())) <= 8 * 16 * len(texts)


LENGTHS = st.integers(0, 5)


@given(st.lists(st.tuples(st.sets(st.integers(0, 60), max_size=16).map(sorted), LENGTHS), max_size=12), st.booleans())
def test_longer_texts_that_hold_nearly_all_of_the_smallest_values_are_possible(
    texts: list[tuple[list[int], int]], lines: bool
) -> None:
    sketches, lengths = [np.array(row, np.int32) for row, _ in texts], [length for _, length in texts]
    recipe, most_missing = (ndd.Recipe(kind="lines", size=1, k=16), 8) if lines else (ndd.Recipe(k=16), 2)
    expected: dict[int, list[int]] = {}
    for short, (row, length) in enumerate(texts):
        for long, (held, longer) in enumerate(texts):
            inside = [value for value in row[:8] if len(held) < 16 or value <= held[-1]]
            missing = set(inside) - set(held)
            if longer > length and len(missing) <= most_missing and len(missing) < len(inside):
                expected.setdefault(short, []).append(long)
    assert possible_containers(sketches, lengths, recipe) == expected


def test_a_text_that_ends_before_the_mark_of_a_letter_does_not_stand_in_a_longer_one() -> None:
    assert lies_inside("ข้าวผัดกั", "ข้าวผัดกับไก่")
    assert not lies_inside("ข้าวผัดก", "ข้าวผัดกับไก่")
    assert lies_inside("工場", "steel工場works")
    assert not lies_inside("工場w", "steel工場works")


@pytest.mark.parametrize(("one", "other"), [(0, 40), (40, 0)])
def test_extracts_join_in_either_order(one: int, other: int) -> None:
    parts = [Extract(LONG[start : start + 70], start) for start in (one, other)]
    assert joined(*parts) == Extract(LONG[:110], 0)
    assert joined(*(Extract(part.text) for part in parts)) == Extract(LONG[:110])


def test_a_known_start_gives_that_of_both() -> None:
    assert joined(Extract(LONG[:70]), Extract(LONG[40:110], 1040)) == Extract(LONG[:110], 1000)


def test_extracts_that_only_end_and_begin_with_a_few_equal_characters_are_not_joined() -> None:
    assert joined(Extract("It rained all day."), Extract("day. The next morning")) is None
