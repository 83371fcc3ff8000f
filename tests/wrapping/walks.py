"""All pages of a search in each way of paging, and what holds for them whatever options are combined."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from typing import Any

import ndd_search as ndd
from ndd_search.errors import CursorUnusable
from tests.wrapping.conftest import Caller, Connect, body_of

DOCUMENTS = 42
SEED = int(os.environ.get("NDD_TEST_SEED", "0"))

OURS = {"ndd.similarity", "ndd.shares", "ndd.seen", "ndd.duplicate_of"}

WORDS = [f"word{number}" for number in range(900)]

Answers = list[dict[str, Any]]


def document(place: int) -> dict[str, Any]:
    """Groups of up to four copies, some with a changed word or number; some without a source, an isbn or a work."""
    draw = random.Random(f"{SEED} {place}")
    words = random.Random(f"{SEED} {place % 13}").choices(WORDS, k=50)
    if draw.random() < 0.4:
        words[draw.randrange(50)] = draw.choice(WORDS)
    made = {
        "place": place,
        "weight": 1000 - place,
        "day": f"2026-05-{draw.randrange(1, 28):02}",
        "language": draw.choice(["de", "en"]),
        "body": " ".join([*words, f"costs {place % 3} euro", "market"]),
    }
    for name, values in {"source": 4, "isbn": 20, "work": 30}.items():
        if draw.random() < 0.7:
            number = draw.randrange(values)
            made[name] = [f"site{number}", "all"] if name == "isbn" and number == 7 else f"site{number}"
    return made


class Walks:
    """All pages of one search with one combination of options, in each way of paging."""

    def __init__(
        self,
        connect: Connect,
        index: str,
        body: dict[str, Any],
        given: dict[str, Any],
        settings: dict[str, Any],
    ) -> None:
        self.index, self.body, self.given, self.pages_made = index, body, given, 0
        self.cached, self.fresh = connect(window=20, **settings), connect(window=20, cache=False, **settings)
        self.size: int = body["size"]
        self.templates = type(self.fresh.client).__module__.startswith("opensearch")  # the other server has no mustache
        (rule,) = settings.get("indexes", {"": {}}).values()
        self.options = {**rule, **given}
        self.bounded = self.options.get("max_window", DOCUMENTS) < DOCUMENTS

    def check(self) -> None:
        once = self.by_from(self.cached)
        check_pages(self, once)
        again = self.by_from(self.cached)
        assert comparable(once) == comparable(again)
        fresh = self.by_from(self.fresh)
        assert comparable(once) == comparable(fresh)
        if "seen" not in self.options:
            assert once[0]["ndd"]["cache"] == "miss"
            assert again[0]["ndd"]["cache"] == "hit"
        assert fresh[0]["ndd"]["cache"] == "off"
        self.check_strategies(once)
        self.check_listings(once)
        self.check_facets(once)
        self.check_others(once)
        self.check_experiment(once)
        self.check_explanations(once)
        for walk in (self.by_cursor, self.by_search_after):
            problem, pages = "", list[dict[str, Any]]()
            try:
                pages = walk()
            except CursorUnusable as refused:
                problem = str(refused)
            assert not problem or (self.first_refused and " cannot be " in problem), problem
            if problem:
                continue
            check_pages(self, pages)
            if not self.bounded and self.options.get("keep", ["score"]) == ["score"]:
                assert shown(pages) == shown(once)

    def search(self, caller: Caller, **changes: Any) -> dict[str, Any]:
        """One page; `ndd` in changes is added to the options."""
        body = {**self.body, **changes, "ndd": {**self.given, **changes.get("ndd", {})} or True}
        answer = caller.search(index=self.index, body=body)
        self.pages_made += 1
        return answer

    def by_from(self, caller: Caller, **changes: Any) -> Answers:
        starts = range(0, DOCUMENTS + self.size, self.size)
        return [self.search(caller, **{"from": start}, ndd=changes) for start in starts]

    def by_cursor(self) -> Answers:
        self.first_refused = True
        pages, cursor = list[dict[str, Any]](), True
        while cursor and len(pages) < DOCUMENTS:
            pages.append(self.search(self.fresh, ndd={"cursor": cursor}))
            self.first_refused, cursor = False, pages[-1]["ndd"]["cursor"]
        return pages

    def by_search_after(self) -> Answers:
        self.first_refused = True
        pages: Answers = []
        token, after = True, dict[str, Any]()
        while token and len(pages) < DOCUMENTS:
            pages.append(self.search(self.fresh, **after, ndd={"search_after": token}))
            self.first_refused, token = False, pages[-1]["ndd"]["search_after"]
            after = {"search_after": pages[-1]["hits"]["hits"][-1]["sort"]} if pages[-1]["hits"]["hits"] else after
        return pages

    def check_strategies(self, pages: Answers) -> None:
        """Each strategy gives the same pages."""
        for strategy in ("one_phase", "one_trip"):
            place = self.size
            other = self.search(self.fresh, **{"from": place}, ndd={"strategy": strategy})
            assert comparable([other]) == comparable([pages[1]]), strategy

    def check_others(self, pages: Answers) -> None:
        """A search in an `_msearch`, and one of a template, gives the same page."""
        body = {**self.body, "from": self.size}
        line = {**body, "ndd": self.given or True}
        answers = self.cached.msearch(body=[{"index": self.index}, line] * 2)["responses"]
        if self.templates:
            template = {"source": json.dumps(body), "params": {}, "ndd": {**self.given, "collapse_templates": True}}
            rendered = self.fresh.client.search_template(index=self.index, body=template)
            answers.append(body_of(self.fresh.run(rendered)))
        for answer in answers:
            answer.pop("status", None)
            assert comparable([answer]) == comparable([pages[1]])

    def check_listings(self, pages: Answers) -> None:
        """Duplicates are the same with any form of the list."""
        whole = self.by_from(self.fresh, duplicates="documents")
        assert shown(whole) == shown(pages)
        for one, other in zip(hits_of(pages), hits_of(whole), strict=True):
            assert one.get("_source") == other["_source"]
            assert copies(one)[0] == copies(other)[0]
            if self.options.get("duplicates") != "count":
                assert ids(copies(one)[1]) == ids(copies(other)[1])

    def check_facets(self, pages: Answers) -> None:
        """Where the first window holds the whole result, a bucket counts the hits of a search within it."""
        if not self.options.get("facets") or self.options["window"] < DOCUMENTS or self.bounded:
            return
        for bucket in pages[0]["aggregations"]["sources"]["buckets"][:2]:
            click = {"bool": {"must": self.body["query"], "filter": {"term": {"source": bucket["key"]}}}}
            alone = {"mode": "drop", "max_per_group": 1, "members": "window"}
            page = self.search(self.fresh, query=click, size=DOCUMENTS, ndd=alone)
            assert bucket["doc_count"] == len(page["hits"]["hits"]), bucket

    def check_experiment(self, pages: Answers) -> None:
        """Both arms know both pages; the page of the control is the engine's own."""
        if "seen" in self.options:
            return
        for start in (0, self.size):
            own = pages[start // self.size]
            arms = {
                share: self.search(self.cached, **{"from": start}, ndd={"experiment": {"unit": "u", "share": share}})
                for share in (1, 0)
            }
            with ndd.options(enabled=False):
                engines = self.cached.search(index=self.index, body={**self.body, "from": start})
            assert ids(arms[1]["hits"]["hits"]) == ids(own["hits"]["hits"])
            for hit in engines["hits"]["hits"]:
                hit["_source"] = document(int(hit["_id"]))  # without the sketch, which a search left alone shows
            assert arms[0]["hits"]["hits"] == engines["hits"]["hits"]
            facts = [arms[share]["ndd"]["experiment"] for share in (1, 0)]
            assert ids(facts[0]["instead"]) == ids(engines["hits"]["hits"])
            assert ids(facts[1]["instead"]) == ids(own["hits"]["hits"])

    def check_explanations(self, pages: Answers) -> None:
        """Each document has one entry, and the places are those of the pages."""
        every = [str(place) for place in range(DOCUMENTS)]
        answer = self.search(self.cached, **{"from": self.size}, ndd={"explain": every})
        assert comparable([answer]) == comparable([pages[1]])
        entries = answer["ndd"]["explain"]
        assert [one["_id"] for one in entries] == every
        order, page = shown(pages), ids(pages[1]["hits"]["hits"])
        for one in entries:
            assert one["status"] in ("shown", "hidden", "beyond_window"), one
            assert (one["status"] == "shown" and one["place"] in range(self.size + 1, 2 * self.size + 1)) == (
                one["_id"] in page
            ), one
            if one["_id"] in page:
                assert order[one["place"] - 1] == one["_id"]


def check_pages(walks: Walks, pages: Answers) -> None:
    """What holds for the pages of every search."""
    options, size = walks.options, walks.size
    mode, seen_mode = options.get("mode", "group"), options.get("seen_mode", "hide")
    lengths = [len(one["hits"]["hits"]) for one in pages]
    assert sorted(lengths, reverse=True) == lengths, lengths
    if not walks.bounded:
        assert sum(length not in (0, size) for length in lengths) <= 1, lengths
    for one in pages:
        assert one["ndd"]["degraded"] is None
        assert "error" not in one
    order = shown(pages)
    assert max(Counter(order).values(), default=0) <= 1, order
    for hit in hits_of(pages):
        check_hit(hit, "_source", walks)
        for copy in copies(hit)[1]:
            check_hit(copy, "_source" if options.get("duplicates") != "ids" else "", walks)
    listed = [copy["_id"] for hit in hits_of(pages) for copy in copies(hit)[1]]
    late = [one["_id"] for page in pages for one in page["ndd"]["late"]]
    passed = [one["_id"] for page in pages for one in page["ndd"].get("seen", [])]
    assert max(Counter(listed).values(), default=0) <= 1, listed
    assert max(Counter(late).values(), default=0) <= 1, late
    assert max(Counter(passed).values(), default=0) <= 1, passed
    assert not set(order) & set(listed), (order, listed)
    if options.get("members") != "all":  # else `late` names them again
        assert not set(order) & set(late), (order, late)
        assert not set(listed) & set(late), (listed, late)
    if seen_mode == "hide":
        assert not set(passed) & {*order, *listed, *late}
    check_totals(walks, pages, len(order))
    if walks.bounded:
        return
    found = {*order, *listed, *late, *passed}
    every = {str(place) for place in range(DOCUMENTS)}
    counted = sum(copies(hit)[0] for hit in hits_of(pages))
    if mode in ("demote", "annotate"):
        assert {*order, *(passed if seen_mode == "hide" else [])} == every
    elif mode == "group" and options.get("duplicates") == "count" and options.get("members") != "all":
        named = len(set(late) - set(passed)) + len(order) + (len(passed) if seen_mode == "hide" else 0)
        assert named + counted == DOCUMENTS
    elif mode == "group" and options.get("duplicates") != "count":
        assert found == every, sorted(every - found)


def check_totals(walks: Walks, pages: Answers, count: int) -> None:
    totals = [page["hits"]["total"]["value"] for page in pages]
    match walks.options.get("total", "hits"):
        case "groups":
            assert set(totals) == {count}, (totals, count)
        case "estimate":
            assert len({str(page["ndd"]["unique"]) for page in pages}) == 1
            assert max(totals) <= count, (totals, count)
            if not walks.bounded:
                assert totals[-1] == count
        case _ if "cursor" not in pages[0]["ndd"] and "search_after" not in pages[0]["ndd"] and not walks.bounded:
            assert totals[-1] == count


def check_hit(hit: dict[str, Any], source: str, walks: Walks) -> None:
    """A hit has its whole document and nothing of ours but what the documentation names."""
    if source:
        assert hit["_source"] == document(int(hit["_id"])), hit
    assert set(hit.get("fields", {})) <= OURS, hit
    assert ("sort" in hit) == ("sort" in walks.body), hit
    if "sort" in hit:
        assert hit["sort"] == [int(hit["_id"])]


def comparable(pages: Answers) -> list[Any]:
    """What must be equal whenever a page is asked for again."""
    vary = ("took_ms", "cache", "strategy", "table", "explain")
    return [
        {
            **{name: value for name, value in page.items() if name not in ("took", "ndd")},
            "ndd": {name: value for name, value in page["ndd"].items() if name not in vary},
        }
        for page in pages
    ]


def hits_of(pages: Answers) -> list[dict[str, Any]]:
    return [hit for page in pages for hit in page["hits"]["hits"]]


def ids(hits: list[dict[str, Any]]) -> list[str]:
    return [hit["_id"] for hit in hits]


def shown(pages: Answers) -> list[str]:
    return ids(hits_of(pages))


def copies(hit: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """The number of duplicates of a hit, and those that are listed."""
    inner = hit.get("inner_hits", {}).get("near_duplicates", {"hits": {"total": {"value": 0}, "hits": []}})["hits"]
    return inner["total"]["value"], inner["hits"]
