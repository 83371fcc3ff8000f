"""Options in any combination, on the pages of a list: refused at once, or nothing is repeated and nothing is lost."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.options import LISTING
from ndd_search.core.paging.page import Page
from ndd_search.errors import NDDError

WORDS = [f"word{number}" for number in range(900)]
BASES = [random.Random(number).choices(WORDS, k=30) for number in range(5)]
TEXTS = [" ".join([*base[: 30 - cut], "costs", str(cut), "euro"]) for base in BASES for cut in (0, 1, 9)]
VALUES = st.sampled_from([None, "a", "b", ["a", "c"]])
HIT = st.fixed_dictionaries(
    {
        "body": st.sampled_from([*TEXTS, None]),
        "isbn": VALUES,
        "source": VALUES,
        "day": st.sampled_from(["2026-05-01", "2026-05-20", None]),
    }
)
ITEMS = ndd.items.Items(body=ndd.items.Text(), isbn=ndd.items.Exact(), needs=[("body", "isbn")])
KEEP = (
    ["newest:day"],
    ["longest"],
    ["longest:body"],
    ["preferred:source=b", "oldest:day"],
    ["highest:place"],
    ["lowest:day"],
)
CHOICES: dict[str, tuple[Any, ...]] = {
    "min_similarity": ("identical", "high", 0.6, 1.0),
    "mode": ("group", "ids", "count", "drop", "demote", "annotate"),
    "max_per_group": (2, 3),
    "keep": (*KEEP, [lambda hit: str(hit["body"])]),
    "guards": (
        ["same:source"],
        ["numbers"],
        ["length:0.9"],
        ["within:day=1d"],
        ["same:source", "numbers", "length:0.9"],
    ),
    "group_by": ("isbn", ["isbn", "source"]),
    "max_per": (["source:1"], ["source:2", "isbn:1"]),
    "seen": ([TEXTS[0], TEXTS[4]], [ndd.sketch(TEXTS[0]).tolist()], [{"body": TEXTS[7], "isbn": "a"}]),
    "frequency_table": (False,),
    "members": ("all",),
    "total": ("groups", "estimate"),
    "facets": (["sources"],),
    "items": (ITEMS,),
}
OPTIONS = st.lists(st.sampled_from(sorted(CHOICES)), max_size=6, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: st.sampled_from(CHOICES[name]) for name in names})
)


@given(
    hits=st.lists(HIT, min_size=1, max_size=20),
    options=OPTIONS,
    window=st.integers(1, 25),
    size=st.sampled_from([2, 5, 30]),
)
def test_pages_repeat_nothing_and_lose_nothing_whatever_is_combined(
    hits: list[dict[str, Any]], options: dict[str, Any], window: int, size: int
) -> None:
    assume(any(hit["body"] for hit in hits))
    hits = [{"place": place, **hit} for place, hit in enumerate(hits)]

    def page(start: int, **changes: Any) -> Page:
        given = {**options, **changes}
        return ndd.collapse(hits, text=None if "items" in given else "body", from_=start, window=window, **given)

    pages, problem = list[Page](), ""
    try:
        pages.append(page(0, size=size))
    except (ValueError, TypeError, NDDError) as refused:
        problem = str(refused)
    if problem:
        assert problem.count(" ") > 3
        return
    pages += [page(start, size=size) for start in range(size, len(hits) + size, size)]
    check(pages, hits, options, size)
    if options.get("mode") != "demote" and options.get("total") != "groups":
        whole = page(0, size=len(hits))
        assert len(whole) == sum(map(len, pages))
        if "keep" not in options:
            assert whole.hits == [hit for one in pages for hit in one]


def check(pages: list[Page], hits: list[dict[str, Any]], options: dict[str, Any], size: int) -> None:
    """Each hit is shown, listed, late or seen."""
    mode = options.get("mode", "group")
    lengths = [len(one) for one in pages]
    shown = [group.rank for one in pages for group in one.groups]
    listed = [copy.rank for one in pages for group in one.groups for copy in group.duplicates]
    late = [rank for one in pages for rank, _, _ in one.info.late]
    seen = [rank for one in pages for rank, _, _ in one.info.seen]
    for places in (shown, [*listed, *late], seen):
        assert max(Counter(places).values(), default=0) <= 1, places
    assert sum(length not in (0, size) for length in lengths) <= 1, lengths
    assert sorted(lengths, reverse=True) == lengths, lengths
    assert not set(shown) & {*listed, *late}
    apart = [] if mode in ("demote", "annotate") else seen
    assert not set(apart) & {*shown, *listed, *late}
    found = {*shown, *apart} | ({*listed, *late} if mode in LISTING else set())
    if mode != "drop":
        assert sorted(found) == list(range(len(hits)))
    assert pages[-1].info.kept == len(shown)
    assert pages[-1].info.exhausted
    assert all(group.hit is hits[group.rank] for one in pages for group in one.groups)
