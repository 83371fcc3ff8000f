"""The state of a page in its URL, and its texts: passages, shared wording, titles."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.core.text.tokens import words_at
from ndd_search.reports.side_by_side import RUN, SHORT, Wording, compared
from ndd_search.serving.ui.page_url import State
from ndd_search.serving.ui.shown_texts import passage, reason, title_and_text

texts = st.lists(st.sampled_from(["a", "b", "c", "D", "é", "日", "\u202e", "x" * 400, "\n", ", "]), max_size=40).map(
    " ".join
)
states = st.builds(
    State,
    q=st.text(st.characters(exclude_categories=["Cs"])).map(str.strip),
    order=st.sampled_from(["deduplicated", "engine"]),
    min_similarity=st.none() | st.floats(0.01, 1),
    trial=st.none() | st.floats(0.01, 1),
    source=st.text(st.characters(exclude_categories=["Cs"])),
    period=st.sampled_from(["", "2024", "1999-12"]),
    page=st.integers(1, 1000),
)


@given(states)
def test_a_url_keeps_the_whole_state(state: State) -> None:
    assert State.parse(state.url(page=state.page)[1:]) == state


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("page=0", "page must be a number from 1 to 1000, got '0'"),
        (f"q={2_001 * 'a'}", "the query has more than 2,000 characters"),
        ("page=²", "page must be"),
        ("order=x", 'order must be "deduplicated" or "engine", got \'x\''),
        ("min_similarity=2", "min_similarity must be a number above 0 and at most 1, got '2'"),
        ("try=nan", "try must be"),
        ("period=2024-13", "period must be a year or a month"),
        ("&".join(f"a{i}=1" for i in range(60)), "the URL has more than 50 parameters"),
    ],
)
def test_an_invalid_value_is_named(query: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        State.parse(query)


@given(texts, texts)
def test_what_is_marked_is_in_no_run_of_three_words_that_both_have(left: str, right: str) -> None:
    """The pieces make up the texts, and a word is marked if and only if none of its runs is in the other text."""
    first, second = Wording(left), Wording(right)
    shared = compared(first, second)
    assert "".join(piece.text for piece in shared.left) == first.text
    assert "".join(piece.text for piece in shared.right) == second.text
    size = RUN if min(len(first.words), len(second.words)) >= SHORT else 1
    words = [[word for *_, word in one.words] for one in (first, second)]
    other = {tuple(words[1][i : i + size]) for i in range(len(words[1]) - size + 1)}
    common = set(first.in_common(second))
    told = " ".join(piece.text for piece in shared.left if piece.marked)
    assert len(words_at(told)) == len(words[0]) - len(common)
    for place in range(len(words[0])):
        runs = [tuple(words[0][i : i + size]) for i in range(max(0, place - size + 1), place + 1)]
        assert (place in common) == any(len(run) == size and run in other for run in runs)
    assert (shared.of_left == 1) == (bool(words[0]) and len(common) == len(words[0]))


def test_reasons_are_in_words() -> None:
    text = Wording("Ministers agreed on Friday to cut emissions from steel works by a third.")
    longer = Wording("LONDON (Wire) - ministers agreed on Friday to cut emissions from steel works by a third!")
    other = Wording("Ministers agreed on Friday to cut emissions from cement, said a spokesman late last night")
    assert reason(text, text) == "the same wording"
    assert reason(text, longer) == "the whole text above, and more"
    assert reason(longer, text) == "a part of the text above"
    assert reason(text, other) == "53% of its wording is in the text above"


@given(texts, texts)
def test_a_passage_is_a_part_of_the_text_with_words_of_the_search_marked(text: str, q: str) -> None:
    pieces = passage(text, q)
    for piece in pieces:
        assert not piece.marked or piece.text[:4].casefold() in q.casefold()
    assert sum(len(piece.text) for piece in pieces) < 1000


def test_words_that_tell_nothing_are_marked_only_where_nothing_else_is_asked_for() -> None:
    for text, q, marked in (("the summit in Lisbon", "The Summit IN", ["summit"]), ("the who", "the", ["the"])):
        assert [piece.text for piece in passage(text, q) if piece.marked] == marked


def test_title_and_text_are_chosen_by_their_names() -> None:
    assert title_and_text({"headline": "A", "body": "B", "note": "C" * 50}, ()) == ("A", "B")
    assert title_and_text({"x": "short", "y": "the longer one"}, ()) == ("the longer one", "the longer one")
    assert title_and_text({"name": "N", "lead": "L", "body": "B"}, ["name", "lead", "body"]) == ("N", "L\nB")
    assert title_and_text({"title": "T", "body": ["a", "b"]}, ["title", "body"]) == ("T", "a\nb")
    assert title_and_text({"body": "B"}, ["title", "body"]) == ("B", "B")
    assert title_and_text({}, ()) == ("(no text)", "")
    assert title_and_text({"title": "a\u202eb\x00", "body": 5}, ["title", "body"])[0] == "a b"
