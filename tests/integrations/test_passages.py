"""`passages`: different passages out of a ranked list, and what each of them stands for."""

import json
import random
from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.text.tokens import tokens
from ndd_search.errors import InvalidDocument, RecipeMismatch
from ndd_search.integrations.choose_passages import Passages, passages
from tests.integrations.texts import BUDGET, FINAL, REPORT, STEEL, STEEL_AGAIN

MANUAL = (
    "To replace the filter, switch the pump off at the wall and wait until the pressure gauge shows zero. "
    "Turn the housing to the left with the key that came with the pump. "
    "Take the old filter out and rinse the housing with clear water. "
    "Put the new filter in with the arrow pointing towards the tank, and close the housing by hand. "
    "Switch the pump on and look for drops below the housing for two minutes."
)


TABLE = FrequencyTable(0, np.empty(0, np.int32), np.empty(0), "w1-k64-v4")


@dataclass
class Node:
    content: str
    metadata: dict[str, Any]


def listed(found: Passages) -> list[tuple[int, list[tuple[int, str]]]]:
    """The rank of each shown passage, and rank and relation of what it stands for."""
    return [(one.rank, [(copy.rank, copy.relation) for copy in one.copies]) for one in found]


def chunk(start: int, end: int, document: str = "manual", **others: Any) -> dict[str, Any]:
    return {"text": MANUAL[start:end], "document": document, "start": start, **others}


def test_near_duplicates_are_shown_once_and_listed() -> None:
    found = passages([STEEL, BUDGET, STEEL_AGAIN, FINAL])
    assert found.texts == [STEEL, BUDGET, FINAL]
    assert listed(found) == [(0, [(2, "similar")]), (1, []), (3, [])]
    assert 0.5 < found[0].copies[0].similarity < 1
    assert (found.examined, found.left_out, found.tokens) == (4, (), None)


def test_short_passages_of_one_form_that_are_kept_apart_are_told_as_a_page_tells_them() -> None:
    towns = ("Aachen", "Bergen", "Cardiff", "Dresden", "Esbjerg", "Florence", "Granada", "Hamar")
    form = "{} Airport is a small public airport with one runway that lies ten kilometres to the north of the town"
    given = [BUDGET, *(form.format(town) for town in towns)]
    found, page = passages(given, size=5), ndd.collapse(given, size=5)
    assert (found.hits, found.warnings) == (page.hits, page.info.warnings)
    assert found.warnings[0].startswith("4 of 5 shown hits are short texts")
    assert passages(given, min_similarity=0.7).warnings == passages([BUDGET, STEEL]).warnings == ()
    named = [{"text": text, "place": rank} for rank, text in enumerate(given)]
    assert passages(named, guards=["same:place"]).warnings == ()


def test_the_output_of_a_reranker_is_taken_as_it_is() -> None:
    found = passages([(STEEL, 0.9), (STEEL_AGAIN, 0.8), [{"text": FINAL, "id": 7}, 0.1]])
    assert [(one.text, one.score) for one in found] == [(STEEL, 0.9), (FINAL, 0.1)]
    assert found[1].id == 7
    pairs = [({"text": STEEL}, None), ({"text": STEEL_AGAIN}, Decimal("0.8")), ({"text": FINAL}, np.array(0.1))]
    assert [(one.text, one.score) for one in passages(pairs)] == [(STEEL, Decimal("0.8")), (FINAL, np.array(0.1))]


@pytest.mark.parametrize("name", ["text", "content", "page_content"])
def test_the_usual_fields_of_text_are_found(name: str) -> None:
    hits = [{name: STEEL}, {name: STEEL_AGAIN}, {name: FINAL}]
    assert passages(hits).hits == [hits[0], hits[2]]


def test_fields_are_named_by_path_or_callable() -> None:
    hits = [Node(one, {"url": f"https://example.org/{place}"}) for place, one in enumerate([STEEL, STEEL_AGAIN])]
    found = passages(hits, id="metadata.url", source=lambda node: node.metadata["url"][-1])
    assert found[0].provenance == [
        {
            "id": "https://example.org/1",
            "source": "1",
            "rank": 1,
            "relation": "similar",
            "similarity": round(found[0].copies[0].similarity, 4),
        }
    ]
    json.dumps(found[0].provenance)


def test_nothing_that_was_given_is_changed() -> None:
    hits = [chunk(0, 250), chunk(150, 400), {"text": STEEL, "ndd": {"sketch": [1], "recipe": "?"}}]
    before = deepcopy(hits)
    passages(hits, merge=True, max_tokens=1000)
    assert hits == before


def test_a_passage_inside_a_longer_one_is_shown_as_a_part_of_it_at_the_better_place() -> None:
    found = passages([FINAL, STEEL, REPORT])
    assert listed(found) == [(2, [(0, "contained")]), (1, [])]
    assert passages([FINAL, STEEL, REPORT], contained=False).hits == [FINAL, STEEL, REPORT]


UPDATE = (
    f"{STEEL.replace('third', 'quarter')} The unions had asked for a later date. Two works in the north will close."
)


def test_an_update_is_shown_in_the_place_of_the_text_that_it_extends() -> None:
    found = passages([STEEL, BUDGET, UPDATE, STEEL_AGAIN])
    assert listed(found) == [(2, [(0, "similar"), (3, "similar")]), (1, [])]
    assert listed(passages([UPDATE, BUDGET, STEEL])) == [(0, [(2, "similar")]), (1, [])]


def test_copies_that_both_add_something_are_both_shown() -> None:
    one, other = f"{UPDATE} {BUDGET}", f"{FINAL} {STEEL}"
    assert passages([one, other, STEEL_AGAIN]).hits == [one, other]
    assert passages([one, other], min_similarity=0.2).hits == [one], "a bar of the user's decides alone"


@pytest.mark.parametrize(("size", "stride"), [(200, 100), (200, 180), (200, 50), (50, 25)])
def test_windows_of_a_document_are_not_copies_and_merged_ones_hold_each_word_once(size: int, stride: int) -> None:
    for seed in range(10):
        pick = random.Random(seed)
        hits, words = [], defaultdict[str, set[int]](set)
        for document in "abcd":
            text = [f"{document}{pick.randrange(3000)}" for _ in range(900)]
            starts = np.cumsum([0, *(len(word) + 1 for word in text)]).tolist()
            hits += [
                {"text": " ".join(text[at : at + size]), "document": document, "start": starts[at], "at": at}
                for at in range(0, 900, stride)
            ]
        pick.shuffle(hits)
        hits = hits[:20]
        for one in hits:
            words[one["document"]] |= set(range(one["at"], min(one["at"] + size, 900)))
        distinct = sum(map(len, words.values()))
        for given in (hits, [{**one, "start": None} for one in hits]):
            assert sum(len(text.split()) for text in passages(given, size=50, merge=True).texts) == distinct
        copies = [copy for one in passages(hits, size=50) for copy in one.copies]
        assert all(copy.relation == "contained" for copy in copies)


def test_a_budget_goes_to_what_is_not_shown_yet_before_it_goes_to_repetitions() -> None:
    found = passages([f"{FINAL} {STEEL}", f"{STEEL} {BUDGET}", REPORT[:90]], max_tokens=80)
    assert [one.rank for one in found] == [0, 2]
    assert found.left_out == (f"{STEEL} {BUDGET}",)
    assert [one.rank for one in passages([f"{FINAL} {STEEL}", f"{STEEL} {BUDGET}", REPORT[:90]], max_tokens=150)] == [
        0,
        1,
        2,
    ]


def test_sources_of_a_fact_are_named_in_the_order_of_rank() -> None:
    given = [
        {"text": one, "source": source}
        for one, source in ((STEEL, "a"), (STEEL_AGAIN, "b"), (UPDATE, "c"), (STEEL, "a"))
    ]
    (found,) = passages(given)
    assert (found.source, found.sources) == ("c", ["a", "b", "c"])


@pytest.mark.parametrize(
    ("named", "listed"),
    [
        (["Reuters", "reuters", " REUTERS ", None, "AP", ""], ["Reuters", "AP"]),
        (["www.post.example", "m.post.example", "post.example"], ["www.post.example"]),
        (
            ["https://amp.post.example/a", "http://www.Post.example/a/", "https://post.example/b", "post.example"],
            ["https://amp.post.example/a", "https://post.example/b", "post.example"],
        ),
        ([["Reuters", "AP"], ["Reuters", "dpa"], ["REUTERS", "AP"], []], [["Reuters", "AP"], ["Reuters", "dpa"]]),
        ([7, 7.0, {"a": 1}, {"a": 1}], [7, {"a": 1}]),
    ],
)
def test_a_source_in_several_spellings_is_listed_once_and_every_page_of_a_site(
    named: list[Any], listed: list[Any]
) -> None:
    (found,) = passages([{"text": STEEL, "source": source} for source in named])
    assert found.sources == listed
    assert [copy["source"] for copy in found.provenance] == named[1:]


def test_a_passage_has_the_score_of_the_best_that_it_stands_for() -> None:
    for scores in ((0.9, 0.2), (0.2, 0.9), (None, 0.9), (0.9, None)):
        (found,) = passages(list(zip((FINAL, REPORT), scores, strict=True)))
        assert (found.hit, found.score) == (REPORT, 0.9)


def test_a_merge_without_the_field_of_documents_says_that_it_joins_nothing(caplog: pytest.LogCaptureFixture) -> None:
    hits = [{"text": one["text"], "doc": 7, "at": one["start"]} for one in (chunk(0, 200), chunk(100, 300))]
    assert passages(hits, merge=True).hits == hits
    assert "merge=True joins nothing: none of 2 passages has anything under 'document'" in caplog.text
    caplog.clear()
    assert len(passages(hits, merge=True, document="doc", start="at")) == 1
    assert len(passages(hits[:1], merge=True)) == 1
    assert "merge" not in caplog.text


def test_a_field_that_nothing_can_be_cited_by_is_told(caplog: pytest.LogCaptureFixture) -> None:
    hits = [{"text": one, "url": url} for one, url in ((STEEL, "a"), (STEEL_AGAIN, "b"))]
    sentence = "none of 2 passages has anything under {!r}, so none can be cited by it"
    found = passages(hits)
    assert [told.partition(":")[0] for told in found.warnings] == [sentence.format(one) for one in ("id", "source")]
    assert sentence.format("source") in caplog.text
    [told] = passages(hits, id="url", source="ulr").warnings
    assert told.startswith(sentence.format("ulr"))
    assert passages(hits, id="url").warnings == passages(hits, source="url").warnings == ()
    assert passages([STEEL, STEEL_AGAIN]).warnings == passages([hits[0], {"text": FINAL}]).warnings == ()


def test_a_budget_that_suffices_for_nothing_says_so(caplog: pytest.LogCaptureFixture) -> None:
    found = passages([FINAL, STEEL], max_tokens=5)
    assert found.warnings == ("max_tokens=5 has room for none of 2 passages: raise it, or cut shorter passages",)
    assert found.warnings[0] in caplog.text
    assert passages([], max_tokens=0).warnings == ()


def test_a_document_named_by_a_list_is_no_document() -> None:
    hits = [chunk(0, 200, ["a"]), chunk(100, 300, ["a"])]  # type: ignore[arg-type]
    assert passages(hits, merge=True).hits == hits


def test_chains_of_longer_passages_end_at_the_longest() -> None:
    longest = f"{REPORT} {BUDGET}"
    assert listed(passages([FINAL, REPORT, longest], min_similarity="identical")) == [
        (2, [(0, "contained"), (1, "contained")])
    ]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            "From today on the fee is 20",
            "From today on the fee is 200 euros for every tonne, and the fee is due at once.",
        ),
        ("From today on the fee is 20", "From today on the fee is 20.50 euros for each tonne, and the fee is due now."),
        ("From today on the fee is 20", "From today on the fee is 20% of what the steel works sell on the market."),
        (
            "5 degrees at night near the coast",
            "It will be cold with -5 degrees at night near the coast, warmer inland.",
        ),
        (
            "meet at the station by the port",
            "They meet at the station by the porthole, in the rain, without umbrellas.",
        ),
    ],
)
def test_part_of_a_word_or_number_is_not_the_same_word_or_number(short: str, long: str) -> None:
    assert passages([short, long], min_similarity="identical").hits == [short, long]


def test_two_passages_inside_one_that_has_no_room_are_both_shown() -> None:
    """What is shown only as a part of a longer passage is not lost when the longer one exceeds the budget."""
    long = f"{REPORT} {BUDGET} " + "Further down the page there is a list of all matches of the season. " * 3
    assert listed(passages([FINAL, BUDGET, long], max_tokens=500)) == [(2, [(0, "contained"), (1, "contained")])]
    found = passages([FINAL, BUDGET, long], max_tokens=60)
    assert found.texts == [FINAL, BUDGET]
    assert found.left_out == (long,)


def test_tokens_are_filled_with_what_fits() -> None:
    sizes = {STEEL: 35, FINAL: 20, BUDGET: 19}
    found = passages([FINAL, STEEL, BUDGET], max_tokens=45, count_tokens=sizes.__getitem__)
    assert found.texts == [FINAL, BUDGET]
    assert (found.tokens, [one.tokens for one in found], found.left_out) == (39, [20, 19], (STEEL,))


def test_words_are_counted_where_nobody_says_what_a_token_is() -> None:
    assert passages([FINAL], max_tokens=len(FINAL.split())).texts == [FINAL]
    assert passages([FINAL], max_tokens=len(FINAL.split()) - 1).left_out == (FINAL,)


@pytest.mark.parametrize(
    ("text", "words"),
    [("市立図書館は来月から開館", 12), ("ข้าวผัดกับไก่", 9), ("桥的建设计划", 6), ("𠀀𠀁", 2)],
)
def test_a_text_without_spaces_has_as_many_words_as_characters_with_their_marks(text: str, words: int) -> None:
    assert len(tokens(text, ndd.Recipe())) == words
    assert passages([text], max_tokens=100).tokens == words
    assert passages([f"iPhone 15: {text}, 2026"], max_tokens=100).tokens == words + 3


def test_a_row_of_signs_is_no_text_of_no_length() -> None:
    assert passages(["→ " * 50], max_tokens=100).tokens == 50


def test_a_shorter_copy_is_shown_where_the_wanted_one_has_no_room() -> None:
    found = passages([STEEL_AGAIN, STEEL], max_tokens=len(STEEL.split()))
    assert listed(found) == [(1, [(0, "similar")])]


def test_size_is_ten_and_with_a_budget_what_fits() -> None:
    different = [f"{word} " * 12 for word in "abcdefghijkl"]
    assert len(passages(different)) == 10
    assert len(passages(different, size=3)) == 3
    assert len(passages(different, size=0)) == 0
    assert len(passages(different, max_tokens=1000)) == 12
    assert len(passages(different, max_tokens=1000, size=11)) == 11


def test_the_copy_to_show_is_chosen() -> None:
    hits = [{"text": STEEL, "date": "2024-01-01"}, {"text": STEEL_AGAIN, "date": "2024-02-01"}]
    assert passages(hits, keep=["newest:date"]).hits == [hits[1]]
    assert passages(hits, keep=["oldest:date"]).hits == [hits[0]]
    assert passages(hits, guards=["same:date"]).hits == hits


def test_the_longer_of_two_copies_is_shown_unless_keep_says_which() -> None:
    shorter = {"text": STEEL, "date": "2024-02-01"}
    longer = {"text": f"{STEEL} The unions had asked for a later date.", "date": "2024-01-01"}
    assert passages([shorter, longer]).hits == [longer]
    assert passages([shorter, longer], keep=["newest:date"]).hits == [shorter]


@pytest.mark.parametrize(
    "guard",
    [{"guards": ["same:version"]}, {"guards": ["within:version=0.5s"]}, {"guards": ["numbers"]}],
)
def test_guards_keep_apart_what_stands_in_a_longer_passage_too(guard: dict[str, Any]) -> None:
    hits = [{"text": FINAL, "version": 1}, {"text": f"{REPORT} Page 7.", "version": 2}]
    assert passages(hits).hits == [hits[1]]
    assert passages(hits, **guard).hits == hits


def test_overlapping_passages_of_one_document_become_one() -> None:
    hits = [chunk(150, 330), {"text": BUDGET}, chunk(0, 180), chunk(300, len(MANUAL))]
    found = passages(hits, merge=True)
    assert found.texts == [MANUAL, BUDGET]
    assert (found[0].start, found[0].end) == (0, len(MANUAL))
    assert listed(found) == [(0, [(2, "merged"), (3, "merged")]), (1, [])]


def test_a_passage_may_close_the_gap_between_two_that_are_shown() -> None:
    found = passages([chunk(0, 180), chunk(250, 400), chunk(150, 300)], merge=True)
    assert found.texts == [MANUAL[:400]]
    assert listed(found) == [(0, [(1, "merged"), (2, "merged")])]


def test_overlap_is_found_in_the_text_where_no_offset_is_known() -> None:
    hits = [{"text": MANUAL[start:end], "document": "manual"} for start, end in ((200, 400), (0, 250))]
    found = passages(hits, merge=True)
    assert (found.texts, found[0].start) == ([MANUAL[:400]], None)


@pytest.mark.parametrize(
    "hits",
    [
        [chunk(0, 200), chunk(200, 400)],  # side by side
        [chunk(0, 200, "one"), chunk(100, 300, "other")],
        [{**chunk(0, 200), "document": None}, {**chunk(100, 300), "document": None}],
        [chunk(0, 200), {**chunk(100, 300), "start": 110}],  # an offset that is not true
    ],
)
def test_what_does_not_surely_overlap_is_not_merged(hits: list[dict[str, Any]]) -> None:
    assert passages(hits, merge=True, min_similarity="identical").hits == hits


def test_near_duplicates_of_one_document_that_overlap_are_merged_and_lose_nothing() -> None:
    hits = [chunk(0, 380), chunk(20, 420)]
    assert passages(hits).hits == hits, "the second one is the next part of the manual"
    assert passages(hits, merge=True).texts == [MANUAL[:420]]


def test_merging_keeps_to_the_budget() -> None:
    first = len(MANUAL[:180].split())
    found = passages([chunk(0, 180), chunk(150, 400)], merge=True, max_tokens=first + 5)
    assert found.texts == [MANUAL[:180]]
    assert found.left_out == (chunk(150, 400),)


def test_stored_sketches_are_used_and_those_of_another_recipe_made_anew() -> None:
    stored = {"sketch": ndd.sketch(STEEL).tolist(), "recipe": ndd.Recipe().id}
    asked_for = {"text": "Another text, which the stored sketch says nothing about.", "ndd": stored}
    assert passages([{"text": STEEL}, asked_for], contained=False).hits == [{"text": STEEL}]
    assert len(passages([{"text": STEEL}, asked_for])) == 2, "its text says something else"
    foreign = {"text": STEEL, "ndd": {**stored, "recipe": "w1-k64-v4"}}
    malformed = {"text": STEEL, "ndd": {**stored, "sketch": [3, 2, 1]}}
    assert passages([{"text": STEEL}, foreign, malformed, {"text": STEEL, "ndd": "?"}]).hits == [{"text": STEEL}]


def test_a_passage_without_text_is_shown() -> None:
    hits: list[Any] = [{"text": STEEL}, {"title": "no text"}, {"text": ""}, {"text": "!!!"}, {"text": None}]
    assert passages(hits).hits == hits


def test_an_empty_list_gives_an_empty_one() -> None:
    assert list(passages([])) == []


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("max_tokens", [None, 150, 400])
def test_every_passage_is_shown_listed_or_left_out(merge: bool, max_tokens: int | None) -> None:
    """However passages overlap, each is at one place, and what is merged or contained stands in the text shown."""
    words = " ".join([MANUAL, REPORT, STEEL, BUDGET]).split()
    for seed in range(20):
        pick = random.Random(seed)
        hits = []
        for _ in range(30):
            start = pick.randrange(len(words) - 12)
            text = " ".join(words[start : start + pick.choice([8, 12, 25, 50])])
            hits.append({"text": text, "document": pick.choice(["a", "b"])})
        found = passages(hits, size=len(hits), merge=merge, max_tokens=max_tokens)
        ranks = [one.rank for one in found] + [copy.rank for one in found for copy in one.copies]
        ranks += [next(rank for rank, hit in enumerate(hits) if hit is left) for left in found.left_out]
        assert sorted(ranks) == list(range(len(hits)))
        for one in found:
            assert all(copy.hit["text"] in one.text for copy in one.copies if copy.relation != "similar")
            assert one.hit["text"] in one.text
        if max_tokens is not None:
            assert found.tokens == sum(len(text.split()) for text in found.texts) <= max_tokens


@pytest.mark.parametrize("options", [{}, {"min_similarity": 0.6}, {"keep": ["longest"]}, {"frequency_table": False}])
def test_without_containment_the_groups_are_those_of_collapse(options: dict[str, Any]) -> None:
    words = " ".join([MANUAL, REPORT, STEEL, BUDGET]).split()
    for seed in range(15):
        pick = random.Random(seed)
        starts = [pick.randrange(20) for _ in range(25)]
        texts = [" ".join(words[start : start + pick.choice([25, 50, 90])]) for start in starts]
        page = ndd.collapse(texts, size=25, **options)
        found = passages(texts, size=25, contained=False, **options)
        assert found.hits == page.hits
        assert [[(copy.rank, copy.similarity) for copy in one.copies] for one in found] == [
            [(copy.rank, copy.similarity) for copy in group.duplicates] for group in page.groups
        ]


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        (lambda: passages(STEEL), TypeError, "ranked must be a list of hits, got one str"),
        (lambda: passages([{"body": STEEL}]), InvalidDocument, "none of 1 passages: no text under text or content"),
        (lambda: passages([{"body": STEEL}], text="boddy"), InvalidDocument, "no text under 'boddy'"),
        (lambda: passages([STEEL], size=-1), ValueError, "size must be at least 0, got -1"),
        (lambda: passages([STEEL], max_tokens="many"), TypeError, "max_tokens must be a whole number, got 'many'"),
        (lambda: passages([STEEL], count_tokens="words"), TypeError, "count_tokens must be a callable"),
        (lambda: passages([STEEL], mode="drop"), TypeError, "mode does not apply to passages"),
        (lambda: passages([STEEL], members="all"), TypeError, "members does not apply to passages"),
        (lambda: passages([STEEL], min_similarity=2), ValueError, "min_similarity must be in 0..1"),
        (lambda: passages([STEEL], treshold=2), TypeError, "unknown option 'treshold'"),
        (lambda: passages([STEEL], top_k=2), TypeError, r"unknown option 'top_k' \(did you mean size\?\)"),
        (lambda: passages([STEEL], top_n=2), TypeError, r"unknown option 'top_n' \(did you mean size\?\)"),
        (lambda: passages([STEEL], max_token=2), TypeError, r"\(did you mean max_tokens\?\): the options are size, "),
        (lambda: passages([STEEL], recipe="w3"), ValueError, "is no recipe id"),
        (lambda: passages([STEEL], frequency_table=TABLE), RecipeMismatch, "holds sketches of recipe w1-k64-v4"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        call()


def test_memories_that_differ_in_a_number_alone_are_different_ones() -> None:
    """Also among framed copies, which are joined although the dates of their frames differ."""
    merged = [
        f"PR {number} was merged today by the team into the main branch, after a review." for number in (260, 480)
    ]
    story = [f"PARIS, May {day} (AFP) - {STEEL}" for day in (3, 4)]
    prices = [
        f"The flat costs {price} euros a month, with heating and without the garage." for price in ("1,299", "98")
    ]
    texts = [*merged, *prices, story[0], f"UPDATE 2 - {story[1]}", merged[0].upper(), prices[0].replace(",", ".")]
    assert passages(texts).texts == [*merged, *prices, story[0]]
    assert [hit.rank for hit in passages(texts, min_similarity=0.5)] == [0, 2, 4]
