"""Pages by `from` and `size`, and pages of cursors, while the index changes: compared with the oracle, hit by hit.

A case is a list of documents, options, settings of the client, and steps: a page, several pages in one `_msearch`, all
pages of a cursor, another caller, a fork, or a change of the index. Changes are made through the same client, by
somebody else between two searches, or between two requests of one search. The credentials of a caller are in the
headers of his requests, or in a connection of the client, where they change. A process forks while another thread
searches; the child takes the step of that search and those after it again.
"""

from __future__ import annotations

import os
import random
import signal
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request
from tests.prove.engine import INDEX, Engine, read_by_client, source_of
from tests.prove.oracle import Oracle, Page, Undecided
from tests.prove.world import Case, World, options_of, recipe_of, tables_of

Body = dict[str, Any]

SEARCH: Body = {"query": {"match": {"body": "market"}}}
FACETS: dict[str, Body] = {
    "prices": {"terms": {"field": "price"}, "aggs": {"times": {"terms": {"field": "time"}}}},
    "ages": {"range": {"field": "time", "ranges": [{"to": 150}, {"from": 150}]}},
    "kinds": {"filters": {"filters": {"cheap": {"term": {"price": 1}}, "dear": {"term": {"price": 2}}}}},
}
_DEADLINE = 20  # seconds
SEEN = "seen"  # id of a document that was seen before the others


def draw(rng: random.Random) -> Case:
    """Draw a case: texts with edited copies, some of them without a sketch, and what is done with them."""
    return _draw(World.of(rng), with_cursor=rng.random() < 0.25)


def draw_cursors(rng: random.Random) -> Case:
    """Draw a case whose pages are all of cursors. In half of the cases each page is asked for by another client."""
    return {**_draw(World.of(rng), with_cursor=True), "clients": rng.random() < 0.5}


def _draw(world: World, with_cursor: bool) -> Case:
    rng = world.rng
    options = world.options(*(("max_window", "mode") if with_cursor else ()))
    if with_cursor:
        options["facets"] = [name for name in FACETS if rng.random() < 0.3]
        options["mode"] = rng.choice(["group", "drop", "annotate"])
        options["total"] = rng.choice(["auto", "groups", "estimate", "hits"])
    steps: list[Any] = []
    for _ in range(rng.randint(1, 4)):
        kind, size, change = rng.random(), rng.choice([2, 3, 5, 10, 10]), world.document(f"d{rng.randrange(60)}")
        between = change if rng.random() < 0.1 else None
        if rng.random() < 0.2:
            steps.append(["caller", rng.choice(["guest", "editor", ""]), rng.random() < 0.5])
        if rng.random() < 0.05 and hasattr(os, "fork"):
            steps.append(["fork"])
        if steps and kind < 0.35:
            steps.append([rng.choice(["own", "foreign"]), change if rng.random() < 0.6 else change["id"]])
        elif with_cursor:
            steps.append(["cursor", size, between])
        elif kind > 0.85:
            steps.append(["msearch", [[rng.choice([0, 0, 3, 10]), rng.choice([1, 4, 10])] for _ in range(2)]])
        else:
            steps.append(["page", rng.choice([0, 0, size, 2 * size, rng.randrange(40)]), size, between])
    documents, seen = world.documents(45), None
    if with_cursor and "guards" not in options and rng.random() < 0.5:  # what was seen has no fields for guards
        seen = next((one["values"] for one in documents if one["values"] and one["lack"] == ""), None)
    return {
        "documents": documents, "options": options, "seen": seen, "k": world.k, "table": world.table(), "steps": steps,
        "cache": rng.random() < 0.5, "counts": rng.random() < 0.1,
    }  # fmt: skip


def check(case: Case) -> Counter[str]:
    """Play a case and compare every answer with the oracle. Returns what was compared. Raises AssertionError."""
    return _Play(case).play()


class _Play:
    def __init__(self, case: Case) -> None:
        self.case, self.counts = case, Counter[str]()
        self.recipe = recipe_of(case["k"])
        self.engine = Engine(self.recipe.id)
        for one in case["documents"]:
            self.engine.write(one)
        self.options = options_of(case)
        self.table, table = tables_of(case, self.recipe)
        if case["counts"]:
            self.table, table = None, True
        common = {"recipe": self.recipe, "cache": case["cache"], "frequency_table": table}
        self.held, self.headers = dict[str, str](), dict[str, str]()
        self.client = partial(_client, {**common, **self.options}, self.held)
        self.driver = self.client()
        self.versions: dict[str, list[dict[str, Any]]] = {}  # of each id, every document that was ever there
        self.forks_before = 0  # the step in which the process forks, 0 for none
        self.stale = False  # whether somebody else has changed the index after a search may have been cached
        for one in case["documents"]:
            self.versions.setdefault(one["id"], []).append(one)

    def play(self, first: int = 0) -> Counter[str]:
        for place, step in enumerate(self.case["steps"][first:], first):
            match step:
                case ["fork"]:
                    self.forks_before = place + 1
                case ["caller", name, is_held]:
                    self.engine.caller = name
                    self.held.pop("authorization", None)
                    self.headers = {}
                    (self.held if is_held else self.headers)["authorization"] = name
                case ["own" | "foreign" as who, change]:
                    self._change(change, who == "own")
                case ["page", start, size, change]:
                    self._page(start, size, change)
                case ["msearch", pages]:
                    self._msearch(pages)
                case ["cursor", size, change]:
                    self._cursor(size, change)
        return self.counts

    def _fork(self, first: int) -> None:
        """Let a child process take the steps from `first` on. It has less time than a search waits for another one."""
        self.counts["forks"] += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which this is about
            child = os.fork()
        if child == 0:
            try:
                signal.alarm(_DEADLINE)
                self.play(first)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0, "the child process failed, or waited for what no thread of it does"

    def _change(self, change: Any, is_own: bool) -> None:
        id = change if isinstance(change, str) else change["id"]
        if not isinstance(change, str):
            self.versions.setdefault(id, []).append(change)
        if is_own:
            method, body = ("DELETE", None) if isinstance(change, str) else ("PUT", change)
            self.driver.handle(Request(method, f"/{INDEX}/_doc/{id}", {}, {}, body), self.engine.send)
        elif isinstance(change, str):
            self.engine.delete(id)
        else:
            self.engine.write(change)
        self.stale = (self.stale and not is_own) or (not is_own and self.case["cache"])

    def _send(self, request: Request) -> Answer:
        if first := self.forks_before:
            self.forks_before = 0
            with ThreadPoolExecutor(1) as another:  # to a child, the thread of this search is one that is gone
                another.submit(self._fork, first).result()
        return read_by_client(request, self.engine.send(request))

    def _ask(self, path: str, body: Any) -> Body:
        answer: Body = self.driver.handle(Request("POST", f"/{INDEX}/{path}", {}, self.headers, body), self._send).body
        return answer

    def _page(self, start: int, size: int, change: Any) -> None:
        is_open = self.stale
        if change is not None:
            asked = self.engine.answered
            self.engine.before = lambda number: self._change(change, is_own=False) if number == asked + 1 else None
            is_open = True
        body = self._ask("_search", {**SEARCH, "from": start, "size": size})
        self.engine.before = lambda number: None
        if change is not None:
            self.stale = bool(self.case["cache"])
        self._compare(body, start, size, is_open)

    def _msearch(self, pages: list[list[int]]) -> None:
        lines = [line for start, size in pages for line in ({"index": INDEX}, {**SEARCH, "from": start, "size": size})]
        for body, (start, size) in zip(self._ask("_msearch", lines)["responses"], pages, strict=True):
            assert body["status"] == 200
            self._compare(body, start, size, self.stale)

    def _compare(self, body: Body, start: int, size: int, is_open: bool) -> None:
        hits = body["hits"]["hits"]
        self._are_whole(hits, has_block="ndd" in body)
        assert len(hits) <= size
        ids = [hit["_id"] for hit in hits]
        named = ids + [copy["_id"] for hit in hits for copy in listed(hit)]
        assert len(named) == len(set(named)), "a document is twice on a page"
        self.counts["pages"] += 1
        if is_open or self._is_counted():
            return
        try:
            page = self._oracle().page(start, size)
        except Undecided:
            return
        self.counts["pages compared"] += 1
        assert ids == page.shown, f"shown {ids}, expected {page.shown}"
        copies = {hit["_id"]: {one["_id"]: one["fields"]["ndd.similarity"][0] for one in listed(hit)} for hit in hits}
        assert {id: under for id, under in copies.items() if under} == page.listed
        assert all(list(copies[id]) == list(under) for id, under in page.listed.items())  # in this order
        named_leaders = {hit["_id"]: hit["fields"]["ndd.duplicate_of"][0] for hit in hits if "fields" in hit}
        assert named_leaders == page.leader_of
        self._facts(body, page)

    def _is_counted(self) -> bool:
        return bool(self.case["counts"]) and self.options.get("min_similarity", "auto") == "auto"

    def _oracle(self) -> Oracle:
        return Oracle(self.engine.ranked(), self.options, self.recipe.k, self.recipe.size, self.table)

    def _facts(self, body: Body, page: Page) -> None:
        """Compare the numbers of an answer. An engine's own page, of hits without sketches, has no block `ndd`."""
        count = len(self.engine.ranked())
        if "ndd" not in body:
            assert not page.sketched
            assert body["hits"]["total"] == {"value": count, "relation": "eq"}
            return
        block = body["ndd"]
        assert (block["examined"], block["kept"]) == (page.examined, page.kept)
        assert block["hidden"] == page.examined - page.kept
        assert page.everything in (None, block["exhausted"])
        assert block["capped"] <= (page.examined == self.options.get("max_window"))
        assert [(one["_id"], one["duplicate_of"]) for one in block["late"]] == page.late
        expected: Any = {"value": count, "relation": "eq"}
        if block["exhausted"] or self.options.get("total") != "hits":
            expected = {"value": page.kept, "relation": "eq" if block["exhausted"] else "gte"}
        assert body["hits"]["total"] == expected
        assert not block["degraded"] or "numbers" in self.options.get("guards", ()), block["degraded"]

    def _are_whole(self, hits: list[Body], has_block: bool) -> None:
        """Every hit is a document as it was written at some time, and nothing of ours is left in it.

        has_block: whether the answer has a block `ndd`; without one it is the engine's own, with sketches in its hits.
        """
        for hit in hits:
            for one in (hit, *listed(hit)):
                versions = [source_of(each) for each in self.versions[one["_id"]]]
                source = {name: value for name, value in one["_source"].items() if has_block or name != "ndd"}
                assert source in versions, f"{one['_id']} was never like this: {source}"
                assert set(one) <= {"_index", "_id", "_score", "_source", "fields", "inner_hits"}, set(one)
                named = {"ndd.similarity", "ndd.duplicate_of", "ndd.duplicate_of_index", "ndd.seen"}
                assert set(one.get("fields", ())) <= named, one["fields"]

    def _cursor(self, size: int, change: Any) -> None:
        """All pages of a cursor show the index as it was when the first page was asked for, each hit once."""
        ranked, changes = self.engine.ranked(), iter([change] if change else [])
        cursor: Any = True
        shown: list[str] = []
        named: list[str] = []
        totals: list[int] = []
        facets: list[Body] = []
        seen, annotates = self.case.get("seen"), self.options["mode"] == "annotate"
        hides = seen and ranked and not annotates
        first = [{**dict.fromkeys(ranked[0]), "id": SEEN, "values": seen, "lack": ""}] if hides else []
        aggs = {name: FACETS[name] for name in self.options.get("facets", ())}
        while cursor:
            if self.case.get("clients"):
                self.driver = self.client()
            body = self._ask(
                "_search",
                {
                    **SEARCH,
                    **({"aggs": aggs} if aggs else {}),
                    "size": size,
                    "ndd": {"cursor": cursor, "seen": [seen] if seen else None},
                },
            )
            hits = body["hits"]["hits"]
            self._are_whole(hits, has_block="ndd" in body)
            shown += [hit["_id"] for hit in hits]
            named += [copy["_id"] for hit in hits for copy in listed(hit)]
            named += [one["_id"] for one in (*body["ndd"]["late"], *body["ndd"].get("seen", ()))]
            totals.append(body["hits"]["total"]["value"])
            self._is_total(totals, len(shown), body)
            facets.append(body["ndd"].get("facets"))
            assert facets[0] == facets[-1]
            cursor = body["ndd"]["cursor"]
            assert len(hits) == size or cursor is None
            assert len(shown) <= len(ranked), "a cursor does not end"
            self.counts["pages of cursors"] += 1
            for one in changes:
                self._change(one, is_own=False)
        assert len(self.engine.points) <= 1
        self.engine.points.clear()
        if self.options["mode"] != "drop" and not self._is_counted():
            everything = shown if annotates else shown + named
            assert sorted(everything) == sorted(one["id"] for one in ranked)
        if self._is_counted():
            return
        try:
            oracle = self._whole([*first, *ranked])
            page, names = oracle.page(0, 1000), [one["id"] for one in oracle.ranked]
            leader = {id: names[place] for id, (place, _) in zip(names, oracle.leaders, strict=True)}
        except Undecided:
            return
        self.counts["cursors compared"] += 1
        expected = [id for id in page.shown if SEEN not in (id, page.leader_of.get(id))]
        if self.options.get("keep", ["score"]) != ["score"] and not annotates:
            shown, expected = ([leader[id] for id in ids] for ids in (shown, expected))  # `keep` reads a page's window
        assert shown == expected, f"shown {shown}, expected {expected}"
        for name in aggs:
            self._are_counts(FACETS[name], facets[0][name]["buckets"], first, ranked)

    def _whole(self, ranked: list[Body]) -> Oracle:
        """The oracle for one page with all hits, the best of each group."""
        whole = {**self.options, "window": 1000, "max_window": 10_000, "keep": ["score"]}
        return Oracle(ranked, whole, self.recipe.k, self.recipe.size, self.table)

    def _are_counts(self, facet: Body, buckets: list[Body], first: list[Body], ranked: list[Body]) -> None:
        """Whether each exact count of a facet is that of a search within its bucket, and each other has its bounds."""
        for place, bucket in enumerate(buckets):
            within = [one for one in ranked if _is_within(facet, bucket["key"], place, one)]
            assert bucket["documents"] == len(within)
            assert bucket["low"] <= bucket["value"] <= bucket["high"] <= len(within)
            try:
                groups = {leader for leader, _ in self._whole([*first, *within]).leaders} - set(range(len(first)))
            except Undecided:
                continue
            if bucket["relation"] == "eq":
                self.counts["exact counts"] += 1
                assert bucket["value"] == len(groups), (bucket, len(groups))
            for name, inner in bucket.get("facets", {}).items():
                self._are_counts(facet["aggs"][name], inner["buckets"], first, within)

    def _is_total(self, totals: list[int], shown: int, body: Body) -> None:
        """Whether a paginator that believes the total goes on as long as there are pages, and no further."""
        is_last, total = body["ndd"]["cursor"] is None, self.options["total"]
        if total in ("auto", "estimate"):
            assert totals[-1] > shown or is_last
        if is_last and total != "hits":
            assert totals[-1] == shown, (totals, shown)
        if total in ("groups", "hits"):
            assert len(set(totals)) == 1


def _is_within(facet: Body, key: Any, place: int, document: Body) -> bool:
    """Whether a bucket of one of FACETS holds a document. place: of the bucket."""
    match facet:
        case {"terms": {"field": field}}:
            return bool(document[field] == key)
        case {"filters": {"filters": filters}}:
            return bool(document["price"] == filters[key]["term"]["price"])
    limits = facet["range"]["ranges"][place]
    return document["time"] is not None and limits.get("from", 0) <= document["time"] < limits.get("to", 1000)


def _client(settings: Body, held: dict[str, str]) -> Driver:
    """Return a client that has sent no request yet, as in another process. held: headers of its connection."""
    driver = Driver(settings_of(**settings))
    node = SimpleNamespace(headers=held)
    driver.settings.serve(SimpleNamespace(node_pool=SimpleNamespace(all=lambda: [node])), "elasticsearch")
    driver.settings.bypass_seconds = 0.0
    return driver


def listed(hit: Body) -> list[Body]:
    """The hits that are listed under a hit."""
    found: list[Body] = hit["inner_hits"]["near_duplicates"]["hits"]["hits"] if "inner_hits" in hit else []
    return found
