"""The index is deleted, made again, mapped otherwise or switched between two requests of one search."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, bulk
from tests.wrapping.library import actions, documents
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids

pytestmark = pytest.mark.one_kind_of_client

SEARCH: dict[str, Any] = {"query": {"match": {"body": "market"}}, "size": 12}
FEW = [one for one in documents() if int(one["_id"].partition("-")[0]) < 16]  # 40 documents, 16 stories and some copies


class Switched:
    """An alias of one of two indexes, "a" and "b", with the same documents."""

    def __init__(self, engine: Engine, client: Any, name: str) -> None:
        self.engine, self.client, self.name = engine, client, name
        self.create("a")
        self.create("b")
        self.point_to("a")

    def create(self, part: str, sketched: bool = True, filled: bool = True) -> None:
        properties = mapping_properties() if sketched else {"ndd": {"type": "keyword"}}
        self.client.indices.create(index=f"{self.name}-{part}", body={"mappings": {"properties": properties}})
        if filled:
            acts = actions(f"{self.name}-{part}", self.engine, where=FEW)
            acts = acts if sketched else [{name: one for name, one in act.items() if name != "ndd"} for act in acts]
            bulk(self.engine, self.client, acts)

    def delete(self, *parts: str) -> None:
        for part in parts:
            self.client.indices.delete(index=f"{self.name}-{part}", ignore_unavailable=True)

    def point_to(self, part: str) -> None:
        every = [{"remove": {"index": f"{self.name}-{one}", "alias": self.name, "must_exist": False}} for one in "ab"]
        action = {"add": {"index": f"{self.name}-{part}", "alias": self.name}}
        found = [one for one in every if self.client.indices.exists(index=one["remove"]["index"])]
        self.client.indices.update_aliases(body={"actions": [*found, action]})

    def renew(self, **given: Any) -> None:
        self.delete("a")
        self.create("a", **given)
        self.point_to("a")


# Each with whether the search is split, and what makes the index as it was, for the next one.
CHANGES: dict[str, tuple[bool, Callable[[Switched], None], Callable[[Switched], None]]] = {
    "switched by its alias": (False, lambda at: at.point_to("b"), lambda at: at.point_to("a")),
    "made again with the same documents": (True, lambda at: at.renew(), lambda at: None),
    "mapped otherwise": (False, lambda at: at.renew(sketched=False), lambda at: at.renew()),
    "made again without documents": (True, lambda at: at.renew(filled=False), lambda at: at.renew()),
    "deleted": (False, lambda at: at.delete("a"), lambda at: at.renew()),
}


@pytest.fixture
def switched(engine: Engine) -> Iterator[Switched]:
    with engine.client() as client:
        made = Switched(engine, client, f"ndd-switched-{uuid.uuid4().hex[:8]}")
        yield made
        made.delete("a", "b")


def at_the_second_search(change: Callable[[], None]) -> Callable[[int, Passed], Harm | None]:
    """Do something before the second search of a client is passed on."""
    seen: list[Passed] = []

    def chosen(_: int, request: Passed) -> Harm | None:
        if not request.target.partition("?")[0].endswith("search"):
            return None
        seen.append(request)
        return Harm(before=change) if len(seen) == 2 else None

    return chosen


def everything(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Every hit of an answer, shown or listed, by index and id."""
    listed = [
        copy
        for hit in answer["hits"]["hits"]
        for copy in hit.get("inner_hits", {}).get("near_duplicates", {"hits": {"hits": []}})["hits"]["hits"]
    ]
    return [(hit["_index"], hit["_id"]) for hit in (*answer["hits"]["hits"], *listed)]


def test_an_index_that_changes_between_two_requests_costs_no_hit_and_raises_nothing(
    connect: Connect, proxy: Proxy, switched: Switched
) -> None:
    """The page holds what the first request gave, no hit twice, and the next search is as if nothing had been."""
    settings: dict[str, Any] = {"window": 12, "frequency_table": False, "cache": False, "total": "hits"}
    plain = connect(wrapped=False)
    first = ids(plain.search(index=switched.name, body=SEARCH))
    for name, (splits, change, undo) in CHANGES.items():
        caller, healthy = connect(proxy.url, splits=splits, **settings), connect(splits=splits, **settings)
        expected = healthy.search(index=switched.name, body=SEARCH)["hits"]["hits"]
        proxy.reset(at_the_second_search(lambda change=change: change(switched)))  # type: ignore[misc]
        found = everything(caller.search(index=switched.name, body=SEARCH))
        assert len(proxy.searches) > 1, name
        assert len(found) == len(set(found)), name
        assert {id for _, id in found} >= set(first), name
        undo(switched)
        proxy.reset()
        again = caller.search(index=switched.name, body=SEARCH)
        assert again["ndd"]["degraded"] is None, name
        assert again["hits"]["hits"] == expected, name
