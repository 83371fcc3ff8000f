"""Pages of callers who page with search_after, with and without a point in time of their own."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ndd_search.errors import CursorUnusable
from ndd_search.indexing.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, bulk
from tests.wrapping.test_cursors import TEXTS, document, leaders, shown, written

MARKET: dict[str, Any] = {"match": {"body": "market"}}


@dataclass(frozen=True)
class Placed:
    """An index, and its documents."""

    index: str
    documents: list[dict[str, Any]]


@pytest.fixture(scope="module")
def placed(engine: Engine) -> Iterator[Placed]:
    """An index of two shards with 90 documents of 30 texts; `tie` is equal in three adjacent places."""
    rng, index = random.Random(6), f"ndd-after-{uuid.uuid4().hex[:12]}"
    found = [{**document(place, rng.randrange(TEXTS)), "tie": place // 3} for place in range(90)]
    number = {"type": "integer"}
    properties = {**mapping_properties(), "place": number, "tie": number, "site": {"type": "keyword"}}
    with engine.client() as client:
        body = {"settings": {"number_of_shards": 2}, "mappings": {"properties": properties}}
        client.indices.create(index=index, body=body)
        written(index, engine, client, found)
        yield Placed(index, found)
        client.indices.delete(index=index)


def pages(caller: Caller, sort: list[Any], size: int = 7, pit: Any = None, **where: Any) -> Iterator[dict[str, Any]]:
    """The pages, as a program with its own loop over search_after reads them."""
    body: dict[str, Any] = {"query": MARKET, "sort": sort, "size": size, **({"pit": pit} if pit else {})}
    token: Any = True
    while token:
        answer = caller.search(body={**body, "ndd": {"search_after": token}}, **where)
        yield answer
        token = answer["ndd"]["search_after"]
        if answer["hits"]["hits"]:
            body["search_after"] = answer["hits"]["hits"][-1]["sort"]


def opened(engine: Engine, client: Any, index: str) -> str:
    if engine.family == "elasticsearch":
        return str(client.open_point_in_time(index=index, keep_alive="1m")["id"])
    return str(client.create_pit(index=index, params={"keep_alive": "1m"})["pit_id"])


@pytest.mark.parametrize("with_pit", [True, False])
def test_pages_of_search_after_hold_every_text_once(
    with_pit: bool, engine: Engine, placed: Placed, connect: Connect
) -> None:
    caller = connect(window=10, cursor_key="secret", frequency_table=False)
    found: list[str] = []
    named: list[str] = []
    with engine.client() as client:
        pit = opened(engine, client, placed.index) if with_pit else None
        where: dict[str, Any] = {"pit": {"id": pit, "keep_alive": "1m"}} if pit else {"index": placed.index}
        number = 0
        try:
            for number, answer in enumerate(pages(caller, [{"place": "asc"}], **where), 1):
                hits = answer["hits"]["hits"]
                assert answer["ndd"]["page"] == number
                assert len(hits) == 7 or answer["ndd"]["search_after"] is None
                found += shown(answer)
                named += [one["_id"] for one in answer["ndd"]["late"]]
                copies = [hit["inner_hits"]["near_duplicates"]["hits"] for hit in hits if "inner_hits" in hit]
                named += [one["_id"] for copy in copies for one in copy["hits"]]
                if pit:  # the caller's point in time stays open, and is of one moment
                    written(placed.index, engine, client, [document(-number, number)])
        finally:
            if pit:
                new = [f"{one}--{one}" for one in range(1, number + 1)]
                deleted = [{"_op_type": "delete", "_index": placed.index, "_id": id} for id in new]
                bulk(engine, client, deleted)
                close = client.close_point_in_time if engine.family == "elasticsearch" else client.delete_pit
                close(**({"id": pit} if engine.family == "elasticsearch" else {"body": {"pit_id": [pit]}}))
    assert found == leaders(placed.documents)
    assert sorted(found + named) == sorted(one["_id"] for one in placed.documents)


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_equal_sort_values_lose_no_hit_and_another_copy_may_be_shown(placed: Placed, connect: Connect) -> None:
    caller = connect(window=10, frequency_table=False, keep=["newest:place"])
    found = [id for answer in pages(caller, ["tie"], index=placed.index) for id in shown(answer)]
    assert len(found) == len(leaders(placed.documents))
    assert {id.partition("-")[0] for id in found} == {one["_id"].partition("-")[0] for one in placed.documents}


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_what_cannot_be_continued_is_refused(placed: Placed, connect: Connect) -> None:
    caller = connect(window=10, frequency_table=False)
    body: dict[str, Any] = {"query": MARKET, "sort": [{"place": "asc"}], "ndd": {"search_after": True}}
    token = caller.search(index=placed.index, body=body)["ndd"]["search_after"]
    for changes, problem in (
        ({"sort": [], "ndd": {"search_after": True}}, "a search without a sort"),
        ({"from": 1}, '"from" cannot be collapsed'),
        ({"sort": ["tie"], "ndd": {"search_after": token}}, "the token belongs to another search"),
        ({"ndd": {"search_after": token[:-9]}}, "not a token"),
        ({"sort": ["_index"]}, "the same sort values"),
    ):
        with pytest.raises(CursorUnusable, match=problem):
            caller.search(index=placed.index, body={**body, **changes})
    own = caller.search(index=placed.index, body={**body, "search_after": [80], "ndd": {}})
    assert "ndd" not in own  # without "search_after" in "ndd" it is left alone
    assert len(own["hits"]["hits"]) == 9
