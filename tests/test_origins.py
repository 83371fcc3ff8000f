"""Sources counted once: how many origins a group has, which was first, and what is a reprint."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.paging.origins import Origins, origin_of
from tests.collections import read

STEEL = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
FINAL = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
NEWS: list[dict[str, Any]] = [
    {
        "id": "1",
        "text": "PARIS, May 3 (AFP) - " + STEEL,
        "source": "https://www.post.example/a",
        "at": "2024-05-03T12:00",
    },
    {"id": "2", "text": FINAL, "source": "Herald", "at": "2024-05-01"},
    {"id": "3", "text": STEEL, "source": "https://afp.example/x", "at": "2024-05-03T09:00"},
    {"id": "4", "text": STEEL.replace("Friday", "Saturday"), "source": "http://post.example/b", "at": None},
    {"id": "5", "text": STEEL + " | City Post", "source": None, "at": "2024-05-02"},
]
STORY = Origins(2, "afp.example", 2, 1)


def test_a_page_tells_of_each_group_how_many_sources_it_has_and_which_was_first() -> None:
    page = ndd.collapse(NEWS, text="text", origins=["source", "at"])
    assert [group.origins for group in page.groups] == [STORY, Origins(1, "Herald", 0, 0)]
    assert str(STORY) == "2 sources, first afp.example, 2 reprints, 1 edited"
    [story, _] = ndd.collapse(NEWS, text="text", origins="source").groups
    assert story.origins == STORY._replace(first="post.example")
    assert ndd.collapse(NEWS, text="text").groups[0].origins is None
    by_sources = sorted(page.groups, key=lambda group: -(group.origins or STORY).number)
    assert [group.rank for group in by_sources] == [0, 1]


def test_a_hit_that_a_limit_puts_under_another_is_no_copy_of_it() -> None:
    hits = [{"text": story, "desk": desk} for desk in ("a", "b") for story in (STEEL, FINAL)]
    [first, second] = ndd.collapse(hits, text="text", max_per=["desk:1"], origins="desk").groups
    assert [copy.hit["text"] for copy in first.duplicates] == [FINAL, STEEL]
    assert (first.origins, second.origins) == (Origins(2, "a", 1, 0), Origins(1, "b", 0, 0))


FERRY = "The ferry to the island was late on Friday because a storm had closed the harbour for most of the morning."


@pytest.mark.parametrize(
    ("limit", "first"),
    [({"max_per": ["source:1"]}, Origins(2, "a", 1, 0)), ({"group_by": "source"}, Origins(2, "a", 1, 2))],
)
def test_passages_keep_to_a_limit_by_origins_and_count_what_it_passes_over_for_no_copy(
    limit: dict[str, Any], first: Origins
) -> None:
    """Longer copies, and shorter texts where tokens are scarce, do not take the place of the one that leads."""
    hits = [
        {"id": number, "text": text, "source": source}
        for number, (text, source) in enumerate(
            [(STEEL, "a"), (FINAL, "a"), (STEEL + " Update.", "b"), (FERRY, "a"), (FERRY, "b"), (FINAL + " AP", "c")]
        )
    ]
    found = ndd.passages(hits, origins="source", **limit)
    assert [one.source for one in found] == ["a", "b", "c"]
    assert found[0].origins == first
    relations = [(copy.id, copy.relation) for copy in found[0].copies]
    assert relations == [(1, "shares"), (2, "similar"), (3, "shares")]
    assert [one.source for one in sorted(found, key=lambda one: -(one.origins or first).number)] == ["a", "b", "c"]
    longest = {"id": 9, "text": f"{STEEL} {FERRY} {FINAL}", "source": "a"}
    scarce = ndd.passages([longest, *hits], max_tokens=25, contained=False, **limit)
    assert [one.source for one in scarce] == ["b"]
    assert scarce.left_out[0] is longest


def test_a_page_of_a_folder_passages_and_a_collection_tell_the_same(tmp_path: Path) -> None:
    with ndd.Index.open(tmp_path / "news.idx", text=["text"]) as index:
        index.add(NEWS)
        for mode in ("group", "count"):
            hits = index.search("ministers steel", origins=["source", "at"], mode=mode)["hits"]["hits"]
            [origins] = hits[0]["fields"]["ndd.origins"]
            assert (origins["number"], origins["first"]) == (2, "afp.example")
    found = ndd.passages(NEWS, text="text", origins=["source", "at"])
    assert [one.origins for one in found] == [STORY, Origins(1, "Herald", 0, 0)]
    assert found.origins == "2 independent sources, 3 reprints"
    groups = ndd.Corpus.read(NEWS, text="text", fields=["source", "at"]).groups(origins=["source", "at"])
    assert groups.origins == [STORY, Origins(1, "Herald", 0, 0), STORY, STORY, STORY]
    assert next(groups.rows())["origins"] == 2
    assert groups.table.column("first").to_pylist()[:2] == ["afp.example", "Herald"]


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        ("https://www.Post.example:8080/a?b", "post.example"),
        ("https://amp.www.post.example/a", "post.example"),
        ("http://m.post.example", "post.example"),
        ("www.post.example", "post.example"),
        ("https://m.de/a", "m.de"),
        ("https://marine.example/a", "marine.example"),
        (" City\tPost ", "City Post"),
        (["AFP", "AP"], "AFP"),
        ("", None),
        (float("nan"), None),
        (7, 7),
        ("http://[bad", "http://[bad"),
    ],
)
def test_the_origin_of_an_address_is_its_host(value: Any, origin: Any) -> None:
    assert origin_of(value) == origin


def test_one_source_in_several_spellings_counts_once() -> None:
    hosts = ["https://www.post.example/1", "https://m.post.example/1", "amp.post.example"]
    hits = [{"text": STEEL, "source": source} for source in ("Reuters", "reuters", "REUTERS ", *hosts)]
    [group] = ndd.collapse(hits, text="text", origins="source").groups
    assert group.origins == Origins(2, "Reuters", 5, 0)
    other = [{"text": FINAL, "source": "REUTERS"}]
    assert ndd.passages([*hits, *other], origins="source").origins == "1 independent source, 5 reprints"


@pytest.mark.parametrize("name", ["synth_web", "xquad_pages"])
def test_origins_and_the_first_one_are_right_in_nearly_all_labelled_groups(name: str) -> None:
    """The labels: hosts and dates of the pages that carry one text, in other frames and edited (see their README).

    Excerpts and digests, of which the labels do not say whether they are copies, are left out.
    """
    unlabelled = {one["id"] for one in read(name, "variants") if one["label"] != 1}
    documents = {one["id"]: one for one in read(name) if one["id"] not in unlabelled}
    texts = defaultdict[str, list[dict[str, Any]]](list)
    for variant in read(name, "variants"):
        if variant["id"] in documents:
            texts[variant["base"]].append(documents[variant["id"]])
    labelled = [copies for copies in texts.values() if len(copies) > 1]
    groups = ndd.Corpus.read(list(documents.values()), text="text", fields=["url", "date"]).groups(
        origins=["url", "date"]
    )
    told = dict(zip(groups.corpus.ids, groups.origins, strict=True))
    right = 0
    for copies in labelled:
        hosts = {origin_of(copy["url"]) for copy in copies}
        first = min(copies, key=lambda copy: copy["date"])["date"]
        firsts = {origin_of(copy["url"]) for copy in copies if copy["date"] == first}
        best = max((told[copy["id"]] for copy in copies), key=lambda one: one.reprints + one.edited)
        right += best.number == len(hosts) and best.first in firsts
    assert len(labelled) > 300, len(labelled)
    assert right >= 0.95 * len(labelled)
