"""Searches drawn at random, through a plain client and through a wrapped one, compared with one another.

Errors are the same, a search that is left alone has the same answer, and every hit that a page shows or lists is the
engine's own hit. All pages together have each hit of the engine once. NDD_TEST_LONG=1 draws many more searches,
NDD_TEST_SEED=text draws others.
"""

from __future__ import annotations

import copy
import json
import os
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engines.find import Engine
from tests.prove.walks import SEED, copies, ids
from tests.wrapping.conftest import Caller, Connect, bulk
from tests.wrapping.drawn import Draw, rich_documents, rich_mapping
from tests.wrapping.library import actions

pytestmark = pytest.mark.newest_servers

ROUNDS, SEARCHES = (40, 50) if os.environ.get("NDD_TEST_LONG") else (1, 50)
WHOLE = 1000  # more hits than any search has

Hit = dict[str, Any]


@pytest.fixture(scope="module")
def rich(engine: Engine) -> Iterator[str]:
    """An index of documents with fields of many types; every ninth has no sketch."""
    name = f"ndd-drawn-{uuid.uuid4().hex[:12]}"
    with engine.client() as client:
        client.indices.create(index=name, body=rich_mapping(engine))
        made = rich_documents()
        bulk(engine, client, actions(name, engine, where=[one for n, one in enumerate(made) if n % 9]))
        bulk(engine, client, actions(name, engine, None, made[::9]))
        yield name
        client.indices.delete(index=name)


class Drawn:
    """One search, and how each client sends it."""

    def __init__(self, seed: str, engine: Engine, index: str, connect: Connect) -> None:
        self.draw = Draw(seed, engine)
        self.body, self.params, options = self.draw.body(), self.draw.params(), self.draw.options()
        self.options = options if isinstance(options, dict) else {}
        self.asked = self.body if options is None else {**self.body, "ndd": options}
        self.path = f"/{index}/_search"
        splits = self.draw.rng.choice([True, False])
        self.plain, self.wrapped = connect(wrapped=False), connect(splits=splits)
        self.described = f"NDD_TEST_SEED={SEED} {seed}: {self.asked} {self.params} {splits}"

    def check(self) -> str:
        """Compare what both clients give. Returns what became of the search."""
        own = self.sent(self.plain, self.body)
        sent = copy.deepcopy(self.asked)
        ours = self.sent(self.wrapped, self.asked)
        assert self.asked == sent
        if isinstance(ours, str) and ours.startswith("ValueError"):  # options that exclude one another
            return "refused by us"
        if not isinstance(ours, str) and "examined" not in ours.get("ndd", ()):  # at most the reason why
            ours = {name: value for name, value in ours.items() if name != "ndd"}
        if isinstance(own, str) or "ndd" not in ours:
            assert comparable(ours) == comparable(own)
            return "an error" if isinstance(own, str) else "left alone"
        assert ours["ndd"]["degraded"] is None
        assert without_facts(self.sent(self.wrapped, self.asked)) == without_facts(ours)
        assert beside(ours) == beside(own)
        assert ours["hits"].get("max_score") == own["hits"].get("max_score")
        if not ours["ndd"]["exhausted"] and self.options.get("total") == "hits":
            assert ours["hits"].get("total") == own["hits"].get("total")
        self.check_pages(ours)
        return "collapsed"

    def check_pages(self, ours: Any) -> None:
        """Compare the hits of all pages with those of the engine."""
        params = {name: value for name, value in self.params.items() if name != "size"}
        size = int(self.params.get("size") or self.body.get("size", 10))
        body = {name: value for name, value in self.body.items() if name not in ("from", "suggest")}
        found = self.plain.ask("POST", self.path, {**body, "size": WHOLE}, params)
        of_engine = {hit["_id"]: plainly(hit) for hit in found["hits"]["hits"]}
        shown, listed, late, start, asked = [], [], [], 0, {**self.asked, "size": size}
        while (page := self.wrapped.ask("POST", self.path, {**asked, "from": start}, params))["hits"]["hits"]:
            assert "kept" in page["ndd"]
            if start == int(self.body.get("from", 0)):
                assert page["hits"] == ours["hits"]
            hits = page["hits"]["hits"]
            shown += ids(hits)
            late += ids(page["ndd"]["late"])
            for hit in hits:
                assert plainly(hit) == of_engine[hit["_id"]]
                listed += ids(copies(hit)[1])
                for one in copies(hit)[1]:
                    engines = of_engine[one["_id"]]
                    assert plainly(one) == (engines if "_source" in one else {k: engines[k] for k in plainly(one)})
            start += size
        late += ids(page["ndd"]["late"]) if "ndd" in page else []
        assert len(shown) == len(set(shown))
        assert len(listed) == len(set(listed))
        assert not set(shown) & {*listed, *late}
        if self.options.get("mode") not in ("drop", "count"):
            assert {*shown, *listed, *late} == of_engine.keys()

    def sent(self, caller: Caller, body: Any) -> Any:
        """The answer to a search, or its error as text."""
        try:
            return caller.ask("POST", self.path, copy.copy(body), self.params)
        except Exception as error:
            facts = getattr(error, "info", None) or getattr(error, "body", None)
            status = f" status {error.status_code}" if hasattr(error, "status_code") else ""
            return f"{type(error).__name__}{status} {json.dumps(facts) if facts else error}"


def comparable(answer: Any) -> Any:
    """An answer without what differs from one request to the next."""
    if isinstance(answer, str):
        return re.sub(r"@[0-9a-f]{5,8}", "", answer)
    return {name: value for name, value in answer.items() if name not in ("took", "profile")}


def beside(answer: Any) -> Any:
    """What an answer has beside hits, without sketches in documents."""
    parts = {name: value for name, value in comparable(answer).items() if name not in ("hits", "ndd")}
    return json.loads(json.dumps(parts), object_hook=bare)


def bare(node: Hit) -> Hit:
    """A part of an answer without our fields."""
    stored, fields = node.get("_source"), node.get("fields")
    if isinstance(stored, dict):
        node["_source"] = {name: value for name, value in stored.items() if name != "ndd"}
    if isinstance(fields, dict):
        node["fields"] = {name: value for name, value in fields.items() if not name.startswith("ndd.")}
        if not node["fields"]:
            del node["fields"]
    if node.get("_seq_no") == -2:  # of inner hits; engines show it in some answers
        del node["_seq_no"], node["_primary_term"]
    return node


def plainly(hit: Hit) -> Hit:
    """A hit without what we add to it, and without sketches."""
    made: Hit = json.loads(json.dumps(hit), object_hook=bare)
    inner = {name: found for name, found in made.pop("inner_hits", {}).items() if name != "near_duplicates"}
    return {**made, **({"inner_hits": inner} if inner else {})}


def without_facts(answer: Any) -> Any:
    return {**comparable(answer), "ndd": {k: v for k, v in answer["ndd"].items() if k in ("kept", "hidden", "late")}}


def test_a_cursor_remembers_values_of_nested_documents(engine: Engine, rich: str, connect: Connect) -> None:
    """Each hit is shown or listed once: a guard decides with a leader of an earlier page as on its own page."""
    body = {"query": {"term": {"language": "en"}}, "sort": "price", "size": 7}
    caller, options = connect(), {"guards": ["same:comments.stars"]}
    cursor: Any = True
    found: list[str] = []
    while cursor:
        page = caller.search(index=rich, body={**body, "ndd": {**options, "cursor": cursor}})
        found += ids([*page["hits"]["hits"], *page["ndd"]["late"]])
        found += [id for hit in page["hits"]["hits"] for id in ids(copies(hit)[1])]
        cursor = page["ndd"]["cursor"]
    whole = connect(wrapped=False).search(index=rich, body={**body, "size": WHOLE})
    assert sorted(found) == sorted(ids(whole["hits"]["hits"]))


def test_a_cursor_has_scores_beside_documents_that_are_suggested(engine: Engine, rich: str, connect: Connect) -> None:
    """Engines fail for these if a search with a sort asks for scores; without a cursor it needs no sort."""
    suggest = {"begun": {"prefix": "story", "completion": {"field": "begun", "size": 3}}}
    body = {"query": {"match": {"title": "report"}}, "size": 5, "suggest": suggest, "track_scores": True}
    own, caller = connect(wrapped=False).search(index=rich, body={**body, "size": WHOLE}), connect(cache=False)
    scores = {hit["_id"]: hit["_score"] for hit in own["hits"]["hits"]}
    cursor: Any = True
    while cursor:
        page = caller.search(index=rich, body={**body, "ndd": {"cursor": cursor}})
        assert [hit["_score"] for hit in page["hits"]["hits"]] == [scores[id] for id in ids(page["hits"]["hits"])]
        assert len(page["suggest"]["begun"][0]["options"]) == 3
        if cursor is True:
            assert page["hits"]["max_score"] == own["hits"]["max_score"]
        cursor = page["ndd"]["cursor"]


@pytest.mark.parametrize("number", range(ROUNDS))
def test_drawn_searches_show_the_hits_of_the_engine_and_change_nothing_else(
    number: int, engine: Engine, rich: str, connect: Connect
) -> None:
    became = []
    for search in range(SEARCHES):
        drawn = Drawn(f"{SEED} {number} {search}", engine, rich, connect)
        try:
            became.append(drawn.check())
        except Exception as error:
            raise AssertionError(drawn.described) from error
    for outcome in ("collapsed", "left alone", "an error"):
        assert became.count(outcome) >= SEARCHES / 20, became
