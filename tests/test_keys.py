"""group_by and max_per: groups of equal keys, and a limited number of groups for each value, in lists."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.paging.page import Page

TEXTS = [" ".join(random.Random(number).choices([f"word{n}" for n in range(900)], k=40)) for number in range(4)]
VALUES = st.sampled_from([None, "", "a", "b", 1, ["a", "c"], ["c", "c"], []])
HIT = st.fixed_dictionaries({"body": st.sampled_from(TEXTS), "isbn": VALUES, "ean": VALUES, "source": VALUES})
HITS = st.lists(HIT, max_size=25)
RULES: Any = st.fixed_dictionaries(
    {
        "group_by": st.sampled_from([[], ["isbn"], ["isbn", "ean"]]),
        "max_per": st.sampled_from([[], ["source:1"], ["source:2", "ean:1"]]),
    }
)


def values(hit: dict[str, Any], name: str) -> set[Any]:
    found = hit[name] if isinstance(hit[name], list) else [hit[name]]
    return {one for one in found if one not in (None, "")}


def expected(hits: list[dict[str, Any]], group_by: list[str], max_per: list[str]) -> list[int]:
    """The leader of each hit, slowly and obviously."""
    leaders: list[int] = []
    found = []
    for place, hit in enumerate(hits):
        same = [
            one
            for one in leaders
            if hits[one]["body"] == hit["body"] or any(values(hits[one], name) & values(hit, name) for name in group_by)
        ]
        full = []
        for name, _, most in (one.partition(":") for one in max_per):
            for value in values(hit, name):
                having = [one for one in leaders if value in values(hits[one], name)]
                full += having[:1] if len(having) >= int(most) else []
        found.append(min(same) if same else min(full, default=place))
        if found[-1] == place:
            leaders.append(place)
    return found


def leaders_of(page: Page) -> dict[int, int]:
    return {rank: group.rank for group in page.groups for rank in (group.rank, *(one.rank for one in group.duplicates))}


@given(hits=HITS, rules=RULES, window=st.integers(1, 9))
def test_a_hit_joins_the_best_ranked_leader_that_it_resembles_or_shares_a_key_with(
    hits: list[dict[str, Any]], rules: dict[str, Any], window: int
) -> None:
    settings: Any = {"text": "body", "min_similarity": 0.9, "window": window, **rules}
    page = ndd.collapse(hits, size=len(hits) + 1, **settings)
    assert leaders_of(page) == dict(enumerate(expected(hits, **rules)))
    assert sorted(leaders_of(page)) == list(range(len(hits)))  # nothing is lost
    pages = [ndd.collapse(hits, size=3, from_=start, **settings) for start in range(0, len(hits) + 1, 3)]
    assert [group.rank for one in pages for group in one.groups] == [group.rank for group in page.groups]
    for one in pages[1:]:
        named = {copy.rank for group in one.groups for copy in group.duplicates} | {late[0] for late in one.info.late}
        assert not named & {group.rank for other in pages for group in other.groups}


def test_what_a_field_put_under_a_hit_says_which_field_and_keeps_its_true_similarity() -> None:
    hits = [
        {"body": TEXTS[0], "isbn": "1", "source": "x"},
        {"body": TEXTS[1], "isbn": "1", "source": "y"},
        {"body": TEXTS[0] + " more", "isbn": None, "source": "x"},
        {"isbn": "1", "source": "z"},  # without a text
        {"body": TEXTS[2], "isbn": "2", "source": "x"},
    ]
    page = ndd.collapse(hits, text="body", group_by="isbn", max_per=["source:1"], min_similarity=0.5)
    (group,) = page.groups
    assert [(one.rank, one.shares) for one in group.duplicates] == [(1, "isbn"), (2, ""), (3, "isbn"), (4, "source")]
    assert group.duplicates[0].similarity < 0.1
    assert group.duplicates[1].similarity > 0.9
    assert "same isbn" in str(page.explain(3))
    assert page.info.lacking == {"missing": 1}
    shown = ndd.collapse(hits, text="body", group_by="isbn", mode="annotate", min_similarity=0.5).groups
    assert [(one.duplicate_of, one.shares) for one in shown][:2] == [(None, ""), (0, "isbn")]


@pytest.mark.parametrize("option", [{"group_by": "isbn"}, {"max_per": ["isbn:1"]}])
def test_missing_values_and_texts_of_data_frames_are_no_keys_and_no_texts(option: Any) -> None:
    """Data frames write NaN where a value is missing."""
    nan = float("nan")
    hits = [{"body": text, "isbn": isbn} for text in (*TEXTS[:2], nan, nan) for isbn in (nan, np.float32("nan"), [nan])]
    page = ndd.collapse(hits, text="body", size=20, min_similarity="identical", **option)
    assert [group.rank for group in page.groups] == [0, 3, *range(6, 12)]
    assert page.info.lacking == {"missing": 6}
    guarded = [{"body": TEXTS[0], "price": price} for price in (nan, None)]
    assert len(ndd.collapse(guarded, text="body", guards=["same:price"])) == 1


def test_max_per_counts_groups_whatever_copy_is_shown_and_however_many() -> None:
    """`keep` brings no source above its limit, and a hit that max_per passes over is no copy of the hit above it."""
    hits = [
        {"body": TEXTS[0], "source": "x", "day": "2026-05-01"},
        {"body": TEXTS[1], "source": "y", "day": "2026-05-02"},
        {"body": TEXTS[2], "source": "x", "day": "2026-05-09"},  # passed over
        {"body": TEXTS[0], "source": "y", "day": "2026-05-08"},
        {"body": TEXTS[0], "source": None, "day": "2026-05-07"},
        {"body": TEXTS[0], "source": "x", "day": "2026-05-06"},
    ]
    settings: Any = {"text": "body", "max_per": ["source:1"], "keep": ["newest:day"]}
    page = ndd.collapse(hits, **settings)
    assert [group.rank for group in page.groups] == [4, 1]
    assert [copy.rank for copy in page.groups[0].duplicates] == [0, 2, 3, 5]
    both = ndd.collapse(hits, **settings, max_per_group=2)
    assert [group.rank for group in both.groups] == [4, 1, 3]
    assert [copy.rank for copy in both.groups[0].duplicates] == [0, 2, 5]
    pages = [ndd.collapse(hits, **settings, max_per_group=2, size=1, from_=start) for start in range(4)]
    assert [group.rank for one in pages for group in one.groups] == [4, 1, 3]
    assert [one.info.kept for one in pages] == [3] * 4
    last = ndd.collapse(hits, **settings, max_per_group=2, mode="demote")
    assert [group.rank for group in last.groups] == [4, 1, 3, 0, 2, 5]


def test_guards_keep_texts_apart_and_not_keys() -> None:
    """Language versions of one text are variants of one hit, and `keep` says which one is shown."""
    hits = [
        {"body": TEXTS[0], "work": 7, "language": "de"},
        {"body": TEXTS[1], "work": 7, "language": "en"},
        {"body": TEXTS[0], "work": None, "language": "en"},
    ]
    settings: Any = {"text": "body", "group_by": "work", "guards": ["same:language"], "min_similarity": 0.5}
    page = ndd.collapse(hits, **settings, keep=["preferred:language=en,de"])
    assert [(group.rank, [one.rank for one in group.duplicates]) for group in page.groups] == [(1, [0]), (2, [])]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"group_by": 3}, "group_by must be a list"),
        ({"group_by": [""]}, "group_by must name fields, and a field has no empty name"),
        ({"group_by": [3]}, "group_by must name fields"),
        ({"keep": "newest:day"}, r"keep must be a list, got 'newest:day': write \['newest:day'\]"),
        ({"max_per": ["source"]}, "max_per takes FIELD:2, got 'source'"),
        ({"max_per": ["source:0"]}, "max_per takes FIELD:2, got 'source:0'"),
        ({"max_per": {"source": 2}}, "max_per must be a list, got {'source': 2}"),
        ({"max_per": [2]}, "max_per must be texts such as FIELD:2, got 2"),
    ],
)
def test_what_is_wrong_with_a_setting_is_told(settings: dict[str, Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        ndd.CollapseOptions(**settings)
