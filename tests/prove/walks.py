"""All pages of a search in each way of paging, and what holds for them whatever options are combined."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from dataclasses import field as member
from functools import cache, cached_property
from itertools import accumulate, combinations, count, cycle, islice
from typing import Any

import ndd_search as ndd
from ndd_search.core.options import LISTING
from tests.prove.likeness import are_alike, are_one_by_key, values_of
from tests.wrapping.conftest import Caller, Connect, body_of

DOCUMENTS = 28
EXPLAINED = [str(place) for place in range(0, DOCUMENTS - 9, 9)]  # ids
UNSKETCHED = range(0, DOCUMENTS, 7)
SEEN = (1, 7, 16, 23)  # places of documents that were shown before; one of them has no sketch
SEED = os.environ.get("NDD_TEST_SEED", "0")

OURS = {"ndd.similarity", "ndd.shares", "ndd.seen", "ndd.duplicate_of", "ndd.duplicate_of_index", "ndd.origins"}

MORE = {"_source_excludes": "body", "typed_keys": "true", "preference": "_local"}  # in a URL; they change an answer
STORED = {"ndd", "ndd_keys"}  # what with_sketches adds to a document

WORDS = [f"word{number}" for number in range(900)]

EVERY = 3  # of so many pages, one is asked for again

Answers = list[dict[str, Any]]


@cache
def documents(which: str) -> list[dict[str, Any]]:
    """Groups of up to four copies, some with a changed word or number; some without a source, an isbn or a work."""
    return [_document(f"{SEED} {which}", place) for place in range(DOCUMENTS)]


def _document(seed: str, place: int) -> dict[str, Any]:
    draw = random.Random(f"{seed} {place}")
    words = random.Random(f"{seed} {place % 8}").choices(WORDS, k=50)
    if draw.random() < 0.4:
        words[draw.randrange(50)] = draw.choice(WORDS)
    made = {
        "place": place,
        "weight": 1000 - place,
        "vector": [float(place), 1.0],
        "day": f"2026-05-{draw.randrange(1, 28):02}",
        "language": draw.choice(["de", "en"]),
        "body": " ".join([*words, f"costs {place // 16} euro", "market"]),
    }
    for name, values in {"source": 4, "isbn": 20, "work": 30}.items():
        if draw.random() < 0.7:
            number = draw.randrange(values)
            made[name] = [f"site{number}", "all"] if name == "isbn" and number == 7 else f"site{number}"
    return made


@dataclass(frozen=True, kw_only=True)
class Walk:
    """All pages of one search with one combination of options.

    options: CollapseOptions by name. beside: what a search alone can have, `seen` and `explain`.
    given:   where the options stand: in the "body", in a "rule" for the index, in a "block" around the search, or in
             its "url".
    paging:  "from", "cursor", "msearch" or "template".
    index:   what the search names; rule: the pattern of a rule for it, which says what is stored with a text if
             `stored` does.
    enabled: which searches are collapsed, where a rule or a block says so.
    documents: by the numbers that are their ids.
    asked:   where size, from and sort stand: in the "body", in the "url", or there with "more" that changes an answer.
    shards:  number of them.
    cache:   a cache that another client shares, or whether each client has one.
    between: called before each further page of a cursor.
    """

    connect: Connect
    index: str
    rule: str
    documents: Mapping[int, dict[str, Any]]
    body: dict[str, Any]
    options: dict[str, Any]
    beside: dict[str, Any]
    given: str
    paging: str
    splits: bool
    cache: Any
    settings: dict[str, Any]
    stored: dict[str, Any] = member(default_factory=dict)
    shards: int = 2
    between: Callable[[], None] = lambda: None
    asked: str = "body"
    enabled: Any = True

    @property
    def hides_seen(self) -> bool:
        return self.options.get("mode", "group") not in ("demote", "annotate")

    @cached_property
    def found(self) -> dict[str, dict[str, Any]]:
        """The hits that a plain client gets, in their order, by id; of raised limits, those of a limit of all."""
        body = self.unlimited if self.few < self.most else self.body
        body, params = self.split({**body, "size": 1000})
        found = self.connect(wrapped=False).ask("POST", f"/{self.index}/_search", body, params)
        return {hit["_id"]: hit for hit in found["hits"]["hits"]}

    def check(self) -> int:
        """Compare the pages with the hits of a plain client, with those of another client, and with one another.

        Returns their number.
        """
        caller = other = self.caller(cache=self.cache, splits=self.splits)
        if not isinstance(self.cache, bool):
            other = self.caller(cache=self.cache, splits=self.splits)
        pages = self.pages(caller, self.paging, other=other)
        check_pages(self, pages)
        self.check_changed(pages)
        at_once = "from" if self.paging == "msearch" else "msearch"
        alone = self.caller(cache=False, splits=not self.splits)
        self.page(
            alone, 0, {}
        )  # counts a frequency table, which the first searches of an `_msearch` would not all have
        fresh = self.pages(alone, at_once, self.starts(pages))
        if self.paging != "cursor":
            exact = [pages[::EVERY], fresh]
            if not isinstance(self.cache, bool):  # it may hold more of the result, of which facets are counted
                exact = [[without_counts(page) for page in one] for one in exact]
            assert comparable(exact[0]) == comparable(exact[1])
            self.check_cache(other, pages)
        elif not self.bounded and "keep" not in self.options and not self.reorders_ties:
            assert shown(pages) == shown(fresh)
        self.check_listings(caller, pages)
        self.check_limit(pages)
        self.check_facets(caller, pages)
        self.check_explanations(pages)
        return len(pages)

    def caller(self, cache: Any, splits: bool) -> Caller:
        """A wrapped client with the settings of the search."""
        rule = {**self.stored, **({**self.options, "enabled": self.enabled} if self.given == "rule" else {})}
        rules = {"indexes": {self.rule: rule}} if rule else {}
        return self.connect(window=self.options["window"], cache=cache, splits=splits, **rules, **self.settings)

    @property
    def size(self) -> int:
        return int(self.body["size"])

    @property
    def most(self) -> int:
        """How many hits there may be."""
        return len(self.documents)

    @property
    def has_neighbours(self) -> bool:
        """Whether the search is one for nearest neighbours, with as many candidates as there are documents."""
        return "knn" in self.body or "knn" in self.body["query"]

    @property
    def near(self) -> dict[str, Any]:
        """What a search for nearest neighbours asks for, empty for others."""
        near: dict[str, Any] = self.body.get("knn") or self.body["query"].get("knn") or {}
        return near

    @property
    def few(self) -> int:
        """How many hits a search for nearest neighbours asks for on all pages; `most` where k is not raised."""
        k = int(self.near.get("k", self.most))
        if "knn" not in self.body:
            k = self.most if self.size > k else k * self.shards
        return min(k, self.most)

    @property
    def unlimited(self) -> dict[str, Any]:
        """The body of a search for all neighbours."""
        near = {**self.near, "k": 100, "num_candidates": 100}
        return {**self.body, **({"knn": near} if "knn" in self.body else {"query": {"knn": near}})}

    @property
    def end(self) -> int:
        """Where the last page begins at the latest: of k neighbours, the engine answers further pages itself."""
        return self.most + self.size if self.few == self.most else self.few

    @property
    def bounded(self) -> bool:
        """Whether fewer hits are examined than the result has."""
        return bool(self.options.get("max_window", self.most) < self.most)

    @property
    def chooses(self) -> bool:
        """Whether another copy than the best one may be shown."""
        return "keep" in self.options

    @property
    def guards(self) -> bool:
        return "guards" in self.options

    @property
    def changes_leaders(self) -> bool:
        """Whether hits may be one group that do not resemble each other."""
        by_field = not {"keep", "group_by", "max_per"}.isdisjoint(self.options)
        return by_field or bool(self.settings["items"]) or self.options.get("max_per_group", 1) > 1

    @property
    def reorders_ties(self) -> bool:
        """Whether a point in time may order equal hits of several shards in another way than a search."""
        return self.paging == "cursor" and len(set(self.places.values())) < len(self.found)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each hit in the order of the plain client, by id; hits with equal sort values have one."""
        values = [(hit.get("sort"), hit["_score"]) for hit in self.found.values()]
        return {id: values.index(value) for id, value in zip(self.found, values, strict=True)}

    @property
    def lists(self) -> bool:
        return self.options.get("mode", "group") in LISTING

    def starts(self, pages: Answers) -> range:
        """Where pages begin that are asked for again: some, or of a cursor all and one after them."""
        return range(0, len(pages) * self.size + 1, self.size) if self.paging == "cursor" else self.some(pages)

    def some(self, pages: Answers) -> range:
        """Where every third of some pages begins."""
        return range(0, len(pages) * self.size, EVERY * self.size)

    def pages(
        self, caller: Caller, paging: str, starts: range | None = None, other: Caller | None = None, **changes: Any
    ) -> Answers:
        """Pages in a way of paging. changes: other options.

        starts: where they begin, None for all and one after the end; an `_msearch` then asks for more after the end.
        other: asks for every second page.
        """
        callers, ends = cycle((caller, other or caller)), starts is None
        starts = range(0, self.end, self.size) if starts is None else starts
        with (
            ndd.options(enabled=self.enabled, **self.options, **self.beside) if self.given == "block" else nullcontext()
        ):
            match paging:
                case "from" | "template":
                    ask = self.page if paging == "from" else self.by_template
                    pages = (ask(one, start, changes) for start, one in zip(starts, callers, strict=False))
                    return list(_to_the_end(pages) if ends else pages)
                case "cursor":
                    return list(self.by_cursor(callers))
                case "msearch":
                    more = {"_source": {"excludes": [MORE["_source_excludes"]]}} if self.asked == "more" else {}
                    bodies = [self.body_of(start, changes) | more for start in starts]
                    lines = [line for body in bodies for line in ({"index": self.index}, body)]
                    answers = self.msearch(caller, lines)["responses"]
                    return [{name: one[name] for name in one if name != "status"} for one in answers]
        raise AssertionError(f"no way of paging: {paging}")

    def page(self, caller: Caller, start: int, changes: dict[str, Any]) -> dict[str, Any]:
        """One page by its number of hits before it."""
        return self.search(caller, self.body_of(start, changes))

    def search(self, caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
        """One search; its options stand in its URL if they are given there."""
        body, params = self.split(body)
        params |= in_url(self.options) if self.given == "url" else {}
        if not params:
            return caller.search(index=self.index, body=body)
        answer: dict[str, Any] = caller.ask("POST", f"/{self.index}/_search", body, params)
        return answer

    def split(self, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the body that is sent, and what stands in the URL instead."""
        if self.asked == "body":
            return body, {}
        url: dict[str, str] = {name: str(body[name]) for name in ("size", "from") if name in body}
        url |= {"sort": ",".join(f"{name}:{way}" for one in body.get("sort", ()) for name, way in one.items())}
        url |= MORE if self.asked == "more" else {}
        return {name: one for name, one in body.items() if name not in url}, {k: v for k, v in url.items() if v}

    def msearch(self, caller: Caller, lines: list[dict[str, Any]]) -> dict[str, Any]:
        """Several searches in one request."""
        params = in_url(self.options) if self.given == "url" else {}
        params |= {"typed_keys": "true"} if self.asked == "more" else {}
        if not params:
            return caller.msearch(body=lines)
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        kind = {"content-type": "application/x-ndjson"}
        answer: dict[str, Any] = caller.ask("POST", "/_msearch", text, params, kind)
        return answer

    def body_of(self, start: int, changes: dict[str, Any]) -> dict[str, Any]:
        """The body of one page."""
        return {**self.body, "from": start, **self.key(changes)}

    def key(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The "ndd" of a body, if it has one."""
        own = {"body": {**self.options, **self.beside}, "block": {}}.get(self.given, self.beside)
        return {"ndd": {**own, **changes}} if own or changes else {}

    def by_cursor(self, callers: Iterator[Caller]) -> Iterator[dict[str, Any]]:
        cursor: Any = True
        for caller in islice(callers, self.most):
            answer = self.search(caller, {**self.body, **self.key({"cursor": cursor})})
            yield answer
            if (cursor := answer["ndd"]["cursor"]) is None:
                return
            self.between()
        raise AssertionError("a cursor does not end")

    def by_template(self, caller: Caller, start: int, changes: dict[str, Any]) -> dict[str, Any]:
        """One template for all searches: engines limit how many they compile."""
        given = {"search": {**self.body, "from": start}}
        template = {"source": "{{#toJson}}search{{/toJson}}", "params": given, **self.key(changes)}
        answer: dict[str, Any] = body_of(caller.run(caller.client.search_template(index=self.index, body=template)))
        return answer

    def check_changed(self, pages: Answers) -> None:
        """A page says that it changed if the hits of the plain client's page are others, and only then.

        Where max_window ends a page, it cannot know whether the engine had further hits.
        """
        if self.paging == "cursor" or self.has_neighbours or len(set(self.places.values())) < len(self.found):
            return
        order = list(self.found)
        for start, page in zip(count(0, self.size), pages, strict=False):
            changed = ids(page["hits"]["hits"]) != order[start : start + self.size]
            assert changed == page["ndd"]["changed"] or (self.bounded and not changed), (start, order, page["ndd"])

    def check_cache(self, caller: Caller, pages: Answers) -> None:
        """A page that is asked for again is the same, and the cache knows it, if there is one."""
        again = self.pages(caller, self.paging, self.some(pages))
        assert comparable(again) == comparable(pages[::EVERY])
        if self.cache is False:
            assert {page["ndd"]["cache"] for page in (*pages, *again)} == {"off"}
        elif not self.beside:
            assert {page["ndd"]["cache"] for page in again} == {"hit"}

    def check_listings(self, caller: Caller, pages: Answers) -> None:
        """Duplicates are the same with any form of the list."""
        if not self.lists or self.options.get("mode", "group") == "group" or self.paging == "cursor":
            return
        whole, pages = self.pages(caller, "from", self.some(pages), mode="group"), pages[::EVERY]
        assert shown(whole) == shown(pages)
        for one, other in zip(hits_of(pages), hits_of(whole), strict=True):
            assert one.get("_source") == other["_source"]
            assert copies(one)[0] == copies(other)[0]
            if self.options["mode"] != "count":
                assert ids(copies(one)[1]) == ids(copies(other)[1])

    def check_limit(self, pages: Answers) -> None:
        """A search for k neighbours shows the first hits of one for all of them."""
        if self.few == self.most:
            return
        assert len(shown(pages)) <= self.few
        if not self.bounded and not self.chooses:
            whole = replace(self, body=self.unlimited).pages(self.caller(cache=False, splits=self.splits), "from")
            assert shown(pages) == shown(whole)[: self.few]

    def check_facets(self, caller: Caller, pages: Answers) -> None:
        """Where the first page examines the whole result, a bucket counts the hits of a search within it."""
        hides = "seen" in self.beside and self.hides_seen
        for page in pages if "facets" in self.options else ():
            for one in page["ndd"]["facets"]["sources"]["buckets"]:
                assert (not hides) <= one["low"] <= one["value"] <= one["high"] <= one["documents"], one
        is_counted = self.options.get("total") == "groups" and not self.has_neighbours
        is_whole = self.options["window"] >= self.most or is_counted
        if "facets" not in self.options or not is_whole or self.bounded or self.few < self.most:
            return
        (sources,) = pages[0]["aggregations"].values()
        for bucket in sources["buckets"][:2]:
            click, term = dict(self.body), {"term": {"source": bucket["key"]}}
            if "knn" in click:
                click["knn"] = {**click["knn"], "filter": term}
            else:
                click["query"] = {"bool": {"must": self.body["query"], "filter": term}}
            seen = {"seen": self.beside["seen"]} if hides else {}
            alone = {**self.options, **seen, "mode": "drop", "max_per_group": 1, "members": "window"}
            body = {**click, "size": self.most, "ndd": alone}
            page = caller.search(index=self.index, body=body)
            assert bucket["doc_count"] == len(page["hits"]["hits"]), bucket

    def check_explanations(self, pages: Answers) -> None:
        """Each document asked about has one entry on each page, and the places are those of the pages."""
        order = shown(pages)
        for number, page in enumerate(pages):
            if "explain" not in self.beside:
                assert not page["ndd"].get("explain")
                continue
            entries = page["ndd"]["explain"]
            assert [one["_id"] for one in entries] == EXPLAINED
            here = ids(page["hits"]["hits"])
            first = (
                sum(len(one["hits"]["hits"]) for one in pages[:number])
                if self.paging == "cursor"
                else number * self.size
            )
            for one in entries:
                unknown = ["unknown"] if self.has_neighbours else []
                assert one["status"] in ("shown", "hidden", "beyond_window", *unknown), one
                on_page = one["status"] == "shown" and first < one.get("place", 0) <= first + self.size
                assert on_page == (one["_id"] in here), one
                assert not on_page or order[one["place"] - 1] == one["_id"]


def _to_the_end(pages: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield pages, and the first one without hits as the last."""
    for page in pages:
        yield page
        if not page["hits"]["hits"]:
            return


def check_pages(walk: Walk, pages: Answers) -> None:
    """What holds for the pages of every search."""
    options, size = walk.options, walk.size
    mode = options.get("mode", "group")
    lengths = [len(one["hits"]["hits"]) for one in pages]
    may_vary = walk.bounded and walk.paging == "cursor"  # each page of a cursor examines max_window hits at most
    assert may_vary or sorted(lengths, reverse=True) == lengths, lengths
    if not walk.bounded:
        assert sum(length not in (0, size) for length in lengths) <= 1, lengths
    for one in pages:
        assert one["ndd"]["degraded"] is None, one["ndd"]["degraded"]
        assert "error" not in one
        assert one["ndd"]["kept"] + one["ndd"]["hidden"] == one["ndd"]["examined"], one["ndd"]
    order = shown(pages)
    assert max(Counter(order).values(), default=0) <= 1, order
    for hit in hits_of(pages):
        check_hit(walk, hit, is_whole=True)
        assert hit["_score"] == walk.found[hit["_id"]]["_score"], hit
        for copy in copies(hit)[1]:
            check_hit(walk, copy, is_whole=mode != "ids")
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
    if walk.hides_seen:
        assert not set(passed) & {*order, *listed, *late}
    check_totals(walk, pages, len(order))
    check_shown(walk, order, passed)
    check_listed(walk, pages)
    if walk.bounded or walk.few < walk.most:
        return
    found = {*order, *listed, *late, *passed}
    every = set(walk.found)
    counted = sum(copies(hit)[0] for hit in hits_of(pages))
    if mode in ("demote", "annotate"):
        assert set(order) == every
    elif mode == "count" and options.get("members") != "all":
        named = len(set(late) - set(passed)) + len(order) + len(passed)
        assert named + counted == len(every)
    elif mode in ("group", "ids"):
        assert found == every, sorted(every - found)
    elif not walk.changes_leaders:
        for id in every - found:
            assert any(alike(walk, id, other) is not False for other in order), f"{id} is like no shown hit"


def check_shown(walk: Walk, order: list[str], passed: list[str]) -> None:
    """No two hits that lead groups are near-duplicates, and none leads more groups of a value than it may."""
    options, mode = walk.options, walk.options.get("mode", "group")
    if mode in ("demote", "annotate") or options.get("max_per_group", 1) > 1:
        return
    if not walk.chooses:
        places = walk.places if walk.reorders_ties else {id: place for place, id in enumerate(walk.found)}
        assert order == sorted(order, key=places.__getitem__)
    if not walk.chooses and not walk.settings["items"]:
        for one, other in combinations(order, 2):
            assert alike(walk, one, other) is not True, (one, other)
            if not options.get("max_per"):
                both = walk.documents[int(one)], walk.documents[int(other)]
                assert not are_one_by_key(*both, options.get("group_by", [])), (one, other)
    for field, _, most in (one.partition(":") for one in options.get("max_per", [])):
        led = Counter(value for one in order for value in values_of(walk.documents[int(one)], field))
        assert max(led.values(), default=0) <= int(most), led
    if not walk.guards and not walk.chooses and not walk.settings["items"] and "seen" in walk.beside:
        for one in order:
            for place in SEEN:
                assert alike(walk, one, str(place)) is not True, f"{one} was seen as {place}"


def check_listed(walk: Walk, pages: Answers) -> None:
    """What is listed under a hit resembles it."""
    if walk.changes_leaders:
        return
    for hit in hits_of(pages):
        for copy in copies(hit)[1]:
            assert alike(walk, hit["_id"], copy["_id"]) is not False, (hit["_id"], copy["_id"])


def alike(walk: Walk, one: str, other: str) -> bool | None:
    """Whether two documents are near-duplicates by their words, None in doubt."""
    if not all("ndd" in walk.found[id]["_source"] for id in (one, other)):
        return False
    return are_alike(walk.documents[int(one)], walk.documents[int(other)], walk.options)


def check_totals(walk: Walk, pages: Answers, count: int) -> None:
    totals = [page["hits"]["total"]["value"] for page in pages]
    total = walk.options.get("total", "auto")
    if walk.has_neighbours:  # to examine more candidates for a total costs too much
        total = {"groups": "estimate", "auto": "hits"}.get(total, total)
    if total == "groups" or (total == "hits" and walk.paging == "cursor"):
        assert len(set(totals)) == 1, totals
        if total == "groups":  # a cursor goes on beyond max_window
            assert totals[0] == count or (walk.bounded and walk.paging == "cursor" and totals[0] < count)
        return
    if total == "estimate":
        assert len({str(page["ndd"]["unique"]) for page in pages}) == 1
    if total != "hits":  # a lower bound, above the end of every page that another one follows
        assert max(totals) <= count, (totals, count)
        ends = accumulate(len(page["hits"]["hits"]) for page in pages)
        further = [value > end for value, end in zip(totals, ends, strict=True) if end < count]
        assert walk.bounded or all(further), (totals, count)
    if not walk.bounded:
        assert totals[-1] == count


def check_hit(walk: Walk, hit: dict[str, Any], is_whole: bool) -> None:
    """A hit is that of the plain client, and has nothing of ours but what the documentation names."""
    plain = walk.found[hit["_id"]]
    if is_whole:
        assert hit["_source"] == {name: value for name, value in plain["_source"].items() if name not in STORED}, hit
    assert set(hit.get("fields", {})) <= OURS, hit
    assert hit.get("sort") == plain.get("sort"), hit


def without_counts(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page without the counts of facets: they are exact where the cache knows the whole result."""
    block = {name: value for name, value in page["ndd"].items() if name != "facets"}
    return {name: value for name, value in page.items() if name != "aggregations"} | {"ndd": block}


def without_total(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page without what tells how many hits the whole result has."""
    block = {name: value for name, value in page["ndd"].items() if name not in ("exhausted", "unique")}
    return page | {"hits": {**page["hits"], "total": None}, "ndd": block}


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


def in_url(options: dict[str, Any]) -> dict[str, str]:
    """Options as parameters of a URL."""
    return {f"ndd.{name}": _in_url(value) for name, value in options.items()}


def _in_url(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{each}" for name, each in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower()


def ids(hits: list[dict[str, Any]]) -> list[str]:
    return [hit["_id"] for hit in hits]


def shown(pages: Answers) -> list[str]:
    return ids(hits_of(pages))


def copies(hit: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """The number of duplicates of a hit, and those that are listed."""
    inner = hit.get("inner_hits", {}).get("near_duplicates", {"hits": {"total": {"value": 0}, "hits": []}})["hits"]
    return inner["total"]["value"], inner["hits"]
