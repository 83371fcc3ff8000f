"""Searches of real engines while documents change between the requests, in every way that a client has.

* A page by `from` is after each change the one that a new client without a cache gets, and the last ones keep all that
  pages promise (see walks).
* Pages of a cursor, and of a scroll, are those of the documents that were there when the first one was asked for.
* Each document has the sketch of its text. What a client writes is seen by all that share its cache.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import ndd_search as ndd
from tests.engines.find import Engine
from tests.prove import options
from tests.prove.all_pairs import Row
from tests.prove.options import ENGINES, Place, index_of, walk_of
from tests.prove.walks import (
    DOCUMENTS,
    STORED,
    UNSKETCHED,
    Answers,
    Walk,
    check_pages,
    comparable,
    documents,
    shown,
    without_counts,
    without_total,
)
from tests.wrapping.conftest import Caller, body_of, bulk

Step = list[Any]  # ["page", number] or [a way of writing, place, place of the document whose text and values it gets]

WHICH = "1"
NEW = range(DOCUMENTS, DOCUMENTS + 4)  # places without a document at first
ONE_BY_ONE = ("index", "create", "update", "update_other", "delete", "bulk")
BY_QUERY = ("reindex", "update_by_query", "delete_by_query")  # only published jars of OpenSearch have these
# What a walk of changed documents cannot compare: orders of equal hits, tables of an earlier moment.
FIXED = {"which": WHICH, "frequency_table": "False", "explain": "False"}
_places: dict[str, Place] = {}


def draw(rng: random.Random, engine: str | None = None) -> dict[str, Any]:
    """Draw a search with its options, and steps of which each asks for a page or writes. engine: None for any."""
    row = options.draw(rng) | FIXED
    row["engine"] = engine or row["engine"]
    if row.get("paging") in ("msearch", "template"):
        row["paging"] = "from"
    if row.get("query") in ("all", "tied"):
        row["query"] = "sorted"
    return {"row": row, "steps": [_drawn_step(rng, row["engine"]) for _ in range(rng.choice([3, 6, 10]))]}


def _drawn_step(rng: random.Random, engine: str) -> Step:
    if rng.random() < 0.5:
        return ["page", rng.randrange(6)]
    ways = ONE_BY_ONE + (BY_QUERY if engine.startswith("opensearch") else ())
    return [rng.choice(ways), rng.randrange(NEW.stop), rng.randrange(DOCUMENTS)]


def check(case: dict[str, Any]) -> Counter[str]:
    """Carry out the steps. Returns what was compared. Raises AssertionError."""
    with ExitStack() as served:
        history = History(case.get("row", {}), served)
        if history.walk.paging == "cursor":
            pages = history.by_cursor(case.get("steps", []))
        else:
            pages = history.by_number(case.get("steps", []))
        history.check_sketches()
        pages += history.now(beside={}).check()
    return Counter({"pages": pages, "changes": history.changes, f"on {history.place.engine.name}": 1})


def servers() -> AbstractContextManager[None]:
    """Find or start the engines, and make their indexes."""
    return options.servers(changing)


@contextmanager
def changing(engine: Engine) -> Iterator[Place]:
    """Make the indexes of one engine."""
    with options.running(engine, [WHICH], changes=True) as place:
        _places[engine.name] = place
        yield place


class History:
    """What happens to the documents of one search. served: closes proxies."""

    def __init__(self, row: Row, served: ExitStack) -> None:
        row = options.FIRST | {"engine": ENGINES[0], "client": "sync"} | row | FIXED
        self.place, self.halves, self.changes = _places[row["engine"]], row["target"] != "one", 0
        self.stored: dict[str, Any] = {
            "text": ["body"],
            "keys": int(row["keys"]),
            "numbers": True,
        }
        walk = walk_of(row, served, self.place)
        self.name = walk.rule.rstrip("*")
        self.walk = replace(walk, stored=self.stored)
        self.originals = dict(enumerate(documents(WHICH)))
        self.plain = self.place.connect("sync", None)(wrapped=False)
        self._restore()
        self.caller = self.walk.caller(cache=walk.cache, splits=walk.splits)
        shares = not isinstance(walk.cache, bool)
        self.other = self.walk.caller(cache=walk.cache, splits=walk.splits) if shares else self.caller
        self.fresh = self.walk.caller(cache=False, splits=not walk.splits)

    def by_number(self, steps: list[Step]) -> int:
        """Write, and compare pages with those of a client that knows nothing of earlier ones. Returns their number."""
        scrolls = Scrolls(self.walk, self.caller, self.plain)
        for number, step in enumerate(steps):
            if step[0] == "page":
                one = self.other if number % 2 else self.caller
                start = step[1] * self.walk.size % self.walk.end
                pages = [without_counts(self.walk.page(each, start, {})) for each in (one, self.fresh)]
                if (
                    pages[0]["ndd"]["exhausted"] > pages[1]["ndd"]["exhausted"]
                ):  # a later page, in the cache, found the end
                    known, bounds = (page["ndd"]["unique"] for page in pages)
                    assert bounds["low"] <= known["value"] <= bounds["high"], step
                    pages = [without_total(page) for page in pages]
                assert comparable(pages[:1]) == comparable(pages[1:]), step
            else:
                self.write(step)
            scrolls.check_next()
        return sum(step[0] == "page" for step in steps)

    def by_cursor(self, steps: list[Step]) -> int:
        """Write between the pages of a cursor. They are those of the first moment. Returns their number."""
        left = iter([step for step in steps if step[0] != "page"])

        def between() -> None:
            for step in (next(left, None), next(left, None)):
                if step is not None:
                    self.write(step)

        walk = replace(self.walk, between=between)
        assert walk.found.keys() == {str(place) for place in self.originals}
        fresh = walk.pages(self.fresh, "from")
        pages: Answers = walk.pages(self.caller, "cursor", other=self.other)
        check_pages(walk, pages)
        if not walk.bounded and not walk.chooses:
            assert shown(pages) == shown(fresh)
        return len(pages)

    def now(self, **changes: Any) -> Walk:
        """The search of the documents that are there now. Merges, which may reorder hits, come before it."""
        self.plain.ask("POST", f"/{self.walk.index}/_forcemerge", None, {"max_num_segments": "1"})
        body = {"query": {"match_all": {}}, "size": 1000}
        hits = self.plain.search(index=self.walk.index, body=body)["hits"]["hits"]
        there = {int(hit["_id"]): {k: v for k, v in hit["_source"].items() if k not in STORED} for hit in hits}
        paging = self.walk.paging if self.walk.paging == "cursor" else "from"
        return replace(self.walk, documents=there, paging=paging, **changes)

    def write(self, step: Step) -> None:
        """Carry out one write by the client, and let searches see it."""
        kind, place, like = step
        self.changes += 1
        index, id = self._index_of(place), str(place)
        body = {**self.originals[like], "place": place, "weight": 1000 - place, "vector": [float(place), 1.0]}
        client, run, there = self.caller.client, self.caller.run, self._is_there(index, id)
        match kind:
            case "create" if there:
                kind = "index"
            case "update" | "update_other" | "delete" if not there:
                kind = "index"
        about: dict[str, Any] = {"index": index, "id": id, "refresh": True}
        match kind:
            case "index":
                run(client.index(**about, body=body))
            case "create":
                run(client.create(**about, body=body))
            case "update":
                run(client.update(**about, body={"doc": {"body": body["body"], "isbn": body.get("isbn")}}))
            case "update_other":
                run(client.update(**about, body={"doc": {"source": "site1", "language": "fr"}}))
            case "delete":
                run(client.delete(**about))
            case "bulk":
                gone = {"delete": {"_index": self._index_of(like), "_id": str(like)}}
                lines = [{"index": {"_index": index, "_id": id}}, body, gone]
                run(client.bulk(body=lines, refresh=True))
            case "reindex":
                source = {"index": f"{self.name}-{'half0' if not self.halves else 'whole'}", "query": _ids(like)}
                to = {"index": self._index_of(like)}
                run(client.reindex(body={"source": source, "dest": to}, refresh=True))
            case "update_by_query":
                script = {"source": "ctx._source.source = 'site2'"}
                by_query = {"query": _ids(place, like), "script": script}
                run(client.update_by_query(index=self.walk.index, body=by_query, refresh=True))
            case "delete_by_query":
                run(client.delete_by_query(index=self.walk.index, body={"query": _ids(place)}, refresh=True))

    def check_sketches(self) -> None:
        """Each document has what `with_sketches` stores for its text, but those that never had anything."""
        body = {"query": {"match_all": {}}, "size": 1000}
        for hit in self.plain.search(index=self.walk.index, body=body)["hits"]["hits"]:
            source = hit["_source"]
            text = {name: value for name, value in source.items() if name not in STORED}
            (right,) = self._sketched([text])
            found, expected = _stored_in(source), _stored_in(right)
            is_untouched = int(hit["_id"]) in UNSKETCHED and not found
            assert found == expected or is_untouched, (hit["_id"], found, expected)

    def _is_there(self, index: str, id: str) -> bool:
        return bool(self.plain.run(self.plain.client.exists(index=index, id=id)))

    def _index_of(self, place: int) -> str:
        return index_of(self.name, place, self.halves)

    def _restore(self) -> None:
        """Write the first documents again, as they were, and delete the others."""
        new = {"query": {"terms": {"place": [*NEW]}}, "size": 100}
        found = self.plain.search(index=f"{self.name}-*", body=new)["hits"]["hits"]
        actions = [{"_op_type": "delete", "_index": hit["_index"], "_id": hit["_id"]} for hit in found]
        for halves in (False, True):
            for place, each in self.originals.items():
                made = {"_index": index_of(self.name, place, halves), "_id": str(place), **each}
                actions += [made] if place in UNSKETCHED else self._sketched([made])
        bulk(self.place.engine, self.plain.client, actions)

    def _sketched(self, actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        about = {name: value for name, value in self.stored.items() if name != "text"}
        return list(ndd.with_sketches(actions, fields=["body"], **about))


class Scrolls:
    """The same scroll by two clients: it is left alone, whatever is written meanwhile."""

    def __init__(self, walk: Walk, caller: Caller, plain: Caller) -> None:
        self.callers, self.ids = (caller, plain), ["", ""]
        body = {"query": options.MATCH, "size": walk.size, "sort": [{"place": "asc"}]}
        self.first = {"index": walk.index, "body": body, "scroll": "20s"}

    def check_next(self) -> None:
        """Compare one page of each."""
        answers = []
        for number, caller in enumerate(self.callers):
            if self.ids[number]:
                given = {"scroll_id": self.ids[number], "scroll": "20s"}
                answer = body_of(caller.run(caller.client.scroll(body=given)))
            else:
                answer = caller.search(**self.first)
            self.ids[number] = answer["_scroll_id"]
            answers.append(answer["hits"])
        assert answers[0] == answers[1]


def _stored_in(source: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored with a text. An update sets what it removes to null."""
    made = {name: value for name, value in source.get("ndd", {}).items() if value is not None}
    return {name: value for name, value in {"ndd": made, "ndd_keys": source.get("ndd_keys")}.items() if value}


def _ids(*places: int) -> dict[str, Any]:
    return {"ids": {"values": [str(place) for place in places]}}
