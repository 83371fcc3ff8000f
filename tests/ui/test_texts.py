"""The state of a page in its URL, and its texts: passages, shared wording, titles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.core.text.tokens import words_at
from ndd_search.reports.side_by_side import RUN, SHORT, Wording, compared
from ndd_search.serving.ui.page_url import State
from ndd_search.serving.ui.searcher import MARKS
from ndd_search.serving.ui.shown_texts import PASSAGE, moment, reason, telling_words, texts_of

texts = st.lists(st.sampled_from(["a", "b", "c", "D", "é", "日", "\u202e", "x" * 400, "\n", ", "]), max_size=40).map(
    " ".join
)
states = st.builds(
    State,
    q=st.text(st.characters(exclude_categories=["Cs"])).map(str.strip),
    order=st.sampled_from(["deduplicated", "engine"]),
    min_similarity=st.none() | st.floats(0.01, 1),
    source=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3, unique=True).map(tuple),
    period=st.lists(st.sampled_from(["2024", "1999-12"]), unique=True).map(tuple),
    page=st.integers(1, 1000),
)


@given(states)
def test_a_url_keeps_the_whole_state(state: State) -> None:
    assert State.parse(state.url(page=state.page)[1:]) == state


@given(states, st.sampled_from(["2024", "1999-12", "2000"]))
def test_a_value_of_a_filter_is_chosen_beside_others_and_removed_again(state: State, value: str) -> None:
    once = State.parse(state.toggled("period", value)[1:])
    assert set(once.period) ^ set(state.period) == {value}
    assert set(State.parse(once.toggled("period", value)[1:]).period) == set(state.period)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("page=0", "page must be a number from 1 to 1000, got '0'"),
        (f"q={2_001 * 'a'}", "the query has more than 2,000 characters"),
        ("page=²", "page must be"),
        ("order=x", 'order must be "deduplicated" or "engine", got \'x\''),
        ("min_similarity=2", "min_similarity must be a number above 0 and at most 1, got '2'"),
        ("min_similarity=nan", "min_similarity must be"),
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


def shown(document: dict[str, Any], *names: str, marked: Mapping[str, str] = {}) -> tuple[str, str, str]:
    """Title, passage with marked words in angle brackets, and text of a hit."""
    marks = str.maketrans(dict(zip("<>", MARKS, strict=True)))
    found = {name: [passage.translate(marks)] for name, passage in marked.items()}
    texts = texts_of({"_source": document, "highlight": found}, names)
    title, passage = (
        "".join(f"<{one.text}>" if one.marked else one.text for one in pieces)
        for pieces in (texts.title, texts.passage)
    )
    return title, passage, texts.text


@given(texts, texts)
def test_a_passage_has_the_marks_of_the_index_and_no_other(text: str, passage: str) -> None:
    """It is on one line and short, and its words are those of the passage."""
    marked = passage.replace("a", f"{MARKS[0]}a{MARKS[1]}")
    found = texts_of({"_source": {"body": text}, "highlight": {"body": [marked]}}, ["body"]).passage
    assert {piece.text for piece in found if piece.marked} <= {"a"}
    assert not any("\n" in piece.text or "\u202e" in piece.text for piece in found)
    assert sum(len(piece.text) for piece in found) < 3 * PASSAGE


def test_matched_words_are_marked_in_the_title_and_in_the_passage() -> None:
    document = {"title": "Summits of Europe", "body": "One. The summit in Lisbon ends. Two."}
    marked = {"title": "<Summits> of Europe", "body": "The <summit> in Lisbon ends."}
    title, passage, text = shown(document, marked=marked)
    assert (title, passage) == ("<Summits> of Europe", "… The <summit> in Lisbon ends. …")
    assert text == document["body"]
    assert shown(document, marked={"body.english": "One. The <summit>"})[:2] == (
        "Summits of Europe",
        "One. The <summit> …",
    )
    assert shown(document, marked={"body": "Two"})[1] == "… Two"
    assert shown({"title": "a " * 100 + "end"}, marked={"title": "<a> " * 100 + "end"})[0].count("<a>") == 80
    assert shown({"body": "x" * 300})[1] == "x" * (PASSAGE - 1) + "…"


def test_dates_are_written_in_words() -> None:
    for text, machine, people in (
        ("2026-09-03", "2026-09-03", "3 September 2026"),
        ("2026-09", "2026-09", "September 2026"),
        ("2026-09-03T00:00:00.000Z", "2026-09-03", "3 September 2026"),
        ("2026-09-03T01:30:00+02:00", "2026-09-02T23:30:00Z", "2 September 2026, 23:30 UTC"),
        ("1788393600000", "2026-09-03", "3 September 2026"),
        ("2026", "", "2026"),
        ("last week", "", "last week"),
        ("2026-13", "", "2026-13"),
        ("99999999999999", "5138-11-16T09:46:39Z", "16 November 5138, 09:46 UTC"),
    ):
        assert moment(text) == (machine, people)


def test_copies_are_searched_for_by_the_longest_words() -> None:
    assert (
        telling_words("An emission of steel, AN emission, steelworks " + "x" * 60) == "steelworks emission steel an of"
    )
    assert len(telling_words(" ".join(f"word{n}" for n in range(100))).split()) == 30
    assert telling_words("… !") == ""


def test_title_and_text_are_chosen_by_their_names() -> None:
    def chosen(document: dict[str, Any], names: tuple[str, ...] = ()) -> tuple[str, str]:
        title, _, text = shown(document, *names)
        return title, text

    assert chosen({"headline": "A", "body": "B", "note": "C" * 50}) == ("A", "B")
    assert chosen({"x": "short", "y": "the longer one"}) == ("the longer one", "the longer one")
    assert chosen({"name": "N", "lead": "L", "body": "B"}, ("name", "lead", "body")) == ("N", "L\nB")
    assert chosen({"title": "T", "body": ["a", "b"]}, ("title", "body")) == ("T", "a\nb")
    assert chosen({"body": "B"}, ("title", "body")) == ("B", "B")
    assert chosen({}) == ("(no text)", "")
    assert chosen({"title": "a\u202eb\x00", "body": 5}, ("title", "body"))[0] == "a b "
