"""Pages of a source, `ndd_search.stream`, compared with the oracle: by from and size, and by cursors.

A case draws how the source answers: at most so many hits a call, with the number of all matches or without, errors at
some calls, hits of which kind, and whether it changes between two pages of a cursor.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, KeysView, Sequence
from types import MappingProxyType
from typing import Any

import ndd_search as ndd
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.core.paging.page import Page
from tests.prove.oracle import Oracle, Undecided
from tests.prove.world import Case, World, options_of, recipe_of, tables_of

Fetch = Callable[[int, int], Any]
_STORED = {"missing": None, "empty": [], "malformed": [7, 3], "foreign": {"sketch": [1], "recipe": "w9-k64-v4"}}
_CURSORS_LACK = ("max_window", "mode")
_SHOWN = ("id", "score", "price", "time", "text")  # of a document in a hit
_DATABASE = sqlite3.connect(":memory:")
_DATABASE.row_factory = sqlite3.Row


class Record:
    """A row that is read by the names of its columns and is no Mapping, as those of asyncpg are."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = columns

    def keys(self) -> KeysView[str]:
        return self._columns.keys()

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


def _row(columns: dict[str, Any]) -> Any:
    names = ", ".join(f"? AS {name}" for name in columns)
    return _DATABASE.execute(f"SELECT {names}", [*columns.values()]).fetchone()


KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": dict, "mapping": MappingProxyType, "record": Record, "row": _row
}  # fmt: skip


def draw(rng: random.Random) -> Case:
    """Draw a list of texts with edited copies, and how it is fetched."""
    world = World.of(rng)
    size, by_cursor = rng.choice([2, 3, 5, 10]), rng.random() < 0.4
    options = world.options("numbers", "total", *(_CURSORS_LACK if by_cursor else ()))
    options["total"] = rng.choice(["hits", "hits", "groups"])
    if by_cursor:
        options["mode"] = rng.choice(["group", "drop", "annotate"])
    return {
        "documents": world.documents(45), "options": options, "k": world.k, "table": world.table(),
        "pages": [[rng.choice([0, size, rng.randrange(30)]), size] for _ in range(rng.randint(1, 3))],
        "cursor": size if by_cursor else 0, "limit": rng.choice([1, 3, 7, 1000, 1000]), "counted": rng.random() < 0.5,
        "cached": rng.random() < 0.5, "fails": rng.choice([0, 0, 0, 1, 2, 3, 5]),
        "kind": rng.choice(list(KINDS)),
        "changes": [world.document(f"n{number}") for number in range(rng.choice([0, 0, 0, 1, 3]))],
    }  # fmt: skip


def check(case: Case) -> Counter[str]:
    """Compare pages of a list with the oracle. Raises AssertionError."""
    documents = list(case["documents"])
    return compare(case, documents, lambda start, count: (documents[start : start + count], len(documents)))


def compare(case: Case, documents: list[dict[str, Any]], fetch: Fetch) -> Counter[str]:
    """Compare pages of what a function fetches. documents: the same, best first; a change is written there, too."""
    return _Play(case, documents, fetch).play()


class _Play:
    def __init__(self, case: Case, documents: list[dict[str, Any]], fetch: Fetch) -> None:
        self.case, self.documents, self.read = case, documents, fetch
        self.recipe, self.options, self.calls = recipe_of(case["k"]), options_of(case), 0
        self.table, self.given = tables_of(case, self.recipe)
        self.cache = MemoryCache(seconds=1000) if case["cached"] else None
        self.counts, self.source = Counter[str](), self.new()

    def new(self) -> Any:
        return ndd.stream(
            self.fetch,
            sketch=self.stored,
            key="query",
            cache=self.cache,
            recipe=self.recipe,
            frequency_table=self.given,
            **self.options,
        )

    def fetch(self, start: int, count: int) -> Any:
        self.calls += 1
        if self.calls == self.case["fails"]:
            raise ConnectionError("no answer")
        found, total = self.read(start, min(count, self.case["limit"]))
        hits = [KINDS[self.case.get("kind", "dict")]({name: one[name] for name in _SHOWN}) for one in found]
        return (hits, total) if self.case["counted"] else hits

    def stored(self, hit: Any) -> Any:
        document = next(one for one in self.documents if one["id"] == hit["id"])
        return _STORED[document["lack"]] if document["lack"] else document["values"]

    def play(self) -> Counter[str]:
        if self.case["cursor"]:
            self.cursor(self.case["cursor"])
            return self.counts
        for start, size in self.case["pages"]:
            if self.cache:
                self.source = self.new()
            page = self.page(size, start)
            try:
                expected = self.oracle(self.documents, self.options).page(start, size)
            except Undecided:
                return self.counts
            self.counts["pages"] += 1
            assert [hit["id"] for hit in page.hits] == expected.shown
            copies = {
                one.hit["id"]: {copy.hit["id"]: round(copy.similarity, 4) for copy in one.duplicates}
                for one in page.groups
            }
            assert {id: under for id, under in copies.items() if under} == expected.listed
            assert (page.info.examined, page.info.kept) == (expected.examined, expected.kept)
            assert expected.everything in (None, page.info.exhausted)
            ids = [one["id"] for one in self.documents]
            assert [(ids[rank], ids[leader]) for rank, leader, _ in page.info.late] == expected.late
        return self.counts

    def page(self, size: int, start: int) -> Page:
        """Return a page; after an error of the source, ask again."""
        try:
            page: Page = self.source.page(size, start)
        except ConnectionError:
            page = self.source.page(size, start)
        if page.info.degraded.startswith("hits from"):
            self.counts["degraded"] += 1
            assert 0 < len(page) <= size, "a page without hits is an error"
            page = self.source.page(size, start)
        return page

    def cursor(self, size: int) -> None:
        """Ask for all pages by cursors: each document is shown or named once; without changes those of the oracle."""
        before, shown, named = list(self.documents), list[str](), list[str]()
        cursor: Any = True
        changes = iter(self.case["changes"])
        while cursor:
            if self.cache:
                self.source = self.new()
            try:
                page = self.source.page(size, cursor=cursor)
            except ConnectionError:
                continue
            self.counts["pages"] += 1
            cursor = page.cursor
            assert len(page) == size or cursor is None or page.info.degraded
            shown += [hit["id"] for hit in page.hits]
            named += [copy.hit["id"] for one in page.groups for copy in one.duplicates]
            named += [page.hit_at(rank)["id"] for rank, _, _ in page.info.late]
            assert len(shown) <= 60, "a cursor does not end"
            if change := next(changes, None):
                self.documents.insert(0, change)
        assert len(shown) == len(set(shown)), "a document is shown twice"
        everything = shown if self.options["mode"] == "annotate" else shown + named
        if self.options["mode"] != "drop":
            assert {one["id"] for one in before} <= set(everything), "a document is lost"
        if self.case["changes"]:
            return
        assert len(everything) == len(set(everything)), "a document is named twice"
        try:
            whole = {**self.options, "window": 1000, "max_window": 10_000, "keep": ["score"]}
            oracle = self.oracle(before, whole)
            expected, ids = oracle.page(0, 1000).shown, [one["id"] for one in before]
            leader = {id: ids[place] for id, (place, _) in zip(ids, oracle.leaders, strict=True)}
        except Undecided:
            return
        if self.options.get("keep", ["score"]) != ["score"] and self.options["mode"] != "annotate":
            shown, expected = ([leader[id] for id in ids] for ids in (shown, expected))  # `keep` reads a page's window
        assert shown == expected

    def oracle(self, documents: Sequence[dict[str, Any]], options: dict[str, Any]) -> Oracle:
        return Oracle(documents, options, self.recipe.k, self.recipe.size, self.table)
