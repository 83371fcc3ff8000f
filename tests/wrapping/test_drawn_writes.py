"""Writes drawn at random, in every way of writing and every shape of the text, by a plain client and by a wrapped one.

The engine answers both alike and stores the same documents, under the same routing, but for the sketches, and each text
has its sketch, or one that is marked stale after a partial update. In between, queries change or delete documents, and
documents pass an ingest pipeline. NDD_TEST_LONG=1 draws many more, NDD_TEST_SEED=7 others.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.document_fields import text_of
from ndd_search.search.rest.mapping import mapping_properties
from tests.backfilling import TEXT, backfill
from tests.engines.find import MODULES, Engine
from tests.prove.walks import SEED
from tests.wrapping.conftest import body_of

pytestmark = pytest.mark.newest_servers

COUNT = 3000 if os.environ.get("NDD_TEST_LONG") else 150
FIELDS = ["title", "page.body"]
WORDS = TEXT.split()
PIPELINE = "ndd-drawn-writes"  # sets a field where the server of the tests can
OLD: dict[str, Any] = {"version": 1, "version_type": "external"}  # any document that is there is as new
ABOUT = {"index": OLD, "create": {"pipeline": PIPELINE}, "update": {"retry_on_conflict": 2}, "delete": {}}
BETWEEN = 20  # rounds of writes to a change by a query

Write = dict[str, Any]  # kind, id, about: what else a line of a bulk says, body: a document, or what an update says


def drawn_write(rng: random.Random, ids: list[str]) -> Write:
    kind = rng.choice(["index", "index", "create", "update", "update", "delete"])
    write = {"kind": kind, "id": rng.choice(ids), "about": rng.choice([{}, {}, {"routing": "north"}, ABOUT[kind]])}
    if kind == "update":
        return {**write, "body": drawn_update(rng)}
    return {**write, "body": drawn_document(rng)} if kind != "delete" else write


def by_query(rng: random.Random, client: Any, index: str) -> None:
    """Change or delete documents by a query, without their texts."""
    client.indices.refresh(index=index)
    number = rng.randrange(9)
    query = {"query": {"term": {"n": number}}} if number else {"query": {"match_all": {}}}
    if rng.random() < 0.3 and number:
        client.delete_by_query(index=index, body=query, refresh=True)
    else:
        client.update_by_query(index=index, body={**query, "script": {"source": "ctx._source.by = 1"}}, refresh=True)


def last_of(writes: list[Write], statuses: list[int], id: str) -> str:
    """The kind of the last write that changed a document, "" if none did. statuses: of each write, or of faults."""
    faults = [status >= 300 for status in statuses]
    if len(faults) != len(writes):
        return "update"
    kinds = [one["kind"] for one, fault in zip(writes, faults, strict=True) if one["id"] == id and not fault]
    return kinds[-1] if kinds else ""


def drawn_update(rng: random.Random) -> dict[str, Any]:
    script = {"source": "ctx._source.n = 1"}
    forms: list[Callable[[], dict[str, Any]]] = [
        lambda: {"doc": drawn_document(rng)},
        lambda: {"doc": drawn_document(rng), "doc_as_upsert": True},
        lambda: {"doc": drawn_document(rng), "upsert": drawn_document(rng)},
        lambda: {"script": script, "upsert": drawn_document(rng)},
        lambda: {"script": script},
        lambda: {"doc": {"n": rng.randrange(9)}},
    ]
    return rng.choice(forms)()


def drawn_document(rng: random.Random) -> dict[str, Any]:
    title, body = (drawn_text(rng) for _ in range(2))
    parts: list[dict[str, Any]] = [
        rng.choice([{}, {"title": title}, {"title": title}, {"title": {"en": "a b c"}}]),
        rng.choice([{}, {"page": {"body": body}}, {"page": {"body": body}}, {"page": {"n": 1}}, {"page": None}]),
        rng.choice([{}, {}, {"page.body": drawn_text(rng)}, {"page": [{"body": body}, {"n": 2}]}]),
        {"n": rng.randrange(9)},
    ]
    rng.shuffle(parts)
    return {name: value for part in parts for name, value in part.items()}


def drawn_text(rng: random.Random) -> Any:
    text = " ".join(rng.choices(WORDS, k=rng.choice([1, 5, 20])))
    return rng.choice([text, text, text, text, [text, "and more"], [], None, "", 7])


def lines(index: str, writes: list[Write]) -> list[Any]:
    found: list[Any] = []
    for one in writes:
        found.append({one["kind"]: {"_index": index, "_id": one["id"], **one.get("about", {})}})
        found += [one["body"]] if "body" in one else []
    return found


def text(given: list[Any]) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in given)


BODIES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "generator": lambda given: (line for line in given),
    "map": lambda given: map(dict, given),
    "dict values": lambda given: dict(enumerate(given)).values(),
    "texts": lambda given: [json.dumps(line) for line in given],
    "generator of texts": lambda given: (json.dumps(line) for line in given),
    "str": text,
    "bytes": lambda given: text(given).encode(),
}
HELPERS = ("bulk", "streaming_bulk", "parallel_bulk")
WAYS = [*BODIES, "one by one", *HELPERS, *(f"{name} with a generator" for name in HELPERS)]


class Writer:
    """A client of either kind that sends writes. The outcome of each is a status.

    lines: the argument of `bulk` that may be an iterator.
    """

    def __init__(self, engine: Engine, asynchronous: bool, **settings: Any) -> None:
        self._helpers = importlib.import_module(f"{MODULES[engine.family]}.helpers")
        self.lines = "operations" if engine.family == "elasticsearch" else "body"
        self._runner, self._asynchronous = asyncio.Runner(), asynchronous
        self._client = engine.async_client() if asynchronous else engine.client()
        if settings:
            ndd.wrap(self._client, **settings)

    def send(self, way: str, index: str, writes: list[Write]) -> list[int]:
        if way == "one by one":
            return [self._one(index, one) for one in writes]
        if way in BODIES:
            answer = body_of(self._value(lambda: self._client.bulk(**{self.lines: BODIES[way](lines(index, writes))})))
            return [next(iter(item.values()))["status"] for item in answer["items"]]
        actions: Any = [
            {"_op_type": one["kind"], "_index": index, "_id": one["id"], **one.get("about", {})}
            | (one["body"] if one["kind"] == "update" else {"_source": one["body"]} if "body" in one else {})
            for one in writes
        ]
        name, _, generated = way.partition(" ")
        given: dict[str, Any] = {"actions": iter(actions) if generated else actions, "raise_on_error": False}
        return [next(iter(item.values()))["status"] for item in self._helped(name, given)]

    def _helped(self, name: str, given: dict[str, Any]) -> list[Any]:
        """What a helper tells of each write; `bulk` of those that failed."""
        if name == "bulk":
            helper = self._helpers.async_bulk if self._asynchronous else self._helpers.bulk
            return list(self._value(lambda: helper(self._client, **given))[1])
        if not self._asynchronous:
            more = {"thread_count": 1, "chunk_size": 2} if name == "parallel_bulk" else {}
            return [item for _, item in getattr(self._helpers, name)(self._client, **given, **more)]

        async def every() -> list[Any]:
            return [item async for _, item in self._helpers.async_streaming_bulk(self._client, **given)]

        return self._runner.run(every())

    def msearch(self, searches: Any) -> Any:
        name = "searches" if self.lines == "operations" else "body"
        return body_of(self._value(lambda: self._client.msearch(**{name: searches})))

    def _one(self, index: str, write: Write) -> int:
        call, body = getattr(self._client, write["kind"]), {"body": write["body"]} if "body" in write else {}
        try:
            self._value(lambda: call(index=index, id=write["id"], **body, **write.get("about", {})))
        except Exception as error:
            status: int = error.status_code  # type: ignore[attr-defined]
            return status
        return 200

    def _value(self, call: Callable[[], Any]) -> Any:
        async def wait() -> Any:
            return await call()

        return self._runner.run(wait()) if self._asynchronous else call()

    def close(self) -> None:
        self._value(self._client.close)
        self._runner.close()


@pytest.fixture
def indexes(engine: Engine) -> Iterator[list[str]]:
    """Two empty indexes."""
    names = [f"ndd-writes-{uuid.uuid4().hex[:12]}" for _ in range(2)]
    with engine.client() as client:
        for name in names:
            mappings = {"dynamic": False, "properties": {**mapping_properties(), "n": {"type": "integer"}}}
            client.indices.create(index=name, body={"mappings": mappings})
        sets = [{"set": {"field": "piped", "value": 1}}] if engine.family == "opensearch" else []
        client.ingest.put_pipeline(id=PIPELINE, body={"processors": sets})
        yield names
        client.indices.delete(index=",".join(names))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_a_wrapped_client_writes_is_what_a_plain_one_writes_with_the_right_sketches(
    engine: Engine, indexes: list[str], asynchronous: bool
) -> None:
    plain, ours = (
        Writer(engine, asynchronous),
        Writer(engine, asynchronous, indexes={indexes[1]: {"text": FIELDS, "keys": 0}}),
    )
    sketched = 0
    with engine.client() as client:
        for number in range(COUNT):
            rng, way = random.Random(f"{SEED} {number}"), WAYS[number % len(WAYS)]
            ids = [f"{number}-{k}" for k in range(2)]
            writes = [drawn_write(rng, ids) for _ in range(rng.choice([1, 2, 5]))]
            described = f"NDD_TEST_SEED={SEED} {number}: {way} {writes}"
            statuses = [one.send(way, index, writes) for one, index in zip((plain, ours), indexes, strict=True)]
            assert statuses[0] == statuses[1], described
            if (
                number % BETWEEN == BETWEEN - 1 and engine.family == "opensearch"
            ):  # the other server of the tests cannot
                for index in indexes:
                    by_query(random.Random(f"{SEED} {number}"), client, index)
            both = [stored(client, index, ids) for index in reversed(indexes)]
            found, expected = ({id: one["_source"] for id, one in each.items()} for each in both)
            routings = [{id: one.get("_routing") for id, one in each.items()} for each in both]
            assert routings[0] == routings[1], described
            made = {id: source.pop("ndd", None) for id, source in found.items()}
            assert found == expected, described
            for id, source in found.items():
                last = last_of(writes, statuses[1], id)
                if last == "update" and ("page.body" in source or source.get("page") == {"n": 1}):
                    continue  # an object in an update tells of no dotted key, and of no list, that was stored before
                assert is_right(made[id], source, may_be_stale=last == "update"), (id, source, made[id], described)
                sketched += bool(made[id] and made[id].get("sketch"))
        assert sketched > COUNT / 3
        client.indices.refresh(index=indexes[1])
        assert backfill(client, indexes[1], FIELDS, recheck=True).remaining == 0
        for hit in client.search(index=indexes[1], body={"size": 10_000})["hits"]["hits"]:
            source = hit["_source"]
            assert is_right(source.pop("ndd"), source, may_be_stale=False), hit
    plain.close()
    ours.close()


def stored(client: Any, index: str, ids: list[str]) -> dict[str, Any]:
    """The documents of an index by id, as `mget` returns them."""
    found = client.mget(index=index, body={"ids": ids})["docs"]
    return {one["_id"]: one for one in found if one.get("found")}


def is_right(made: Any, source: dict[str, Any], may_be_stale: bool) -> bool:
    """Whether what is stored is the sketch of the text. A document without text has none, or an empty one."""
    values = (made or {}).get("sketch") or []
    if may_be_stale and (made or {}).get("recipe") == "stale":
        return not values
    return bool(values == ndd.sketch(text_of(source, FIELDS) or "").tolist())


@pytest.mark.parametrize("asynchronous", [False, True])
def test_searches_of_many_lines_in_an_iterator_are_collapsed_too(
    engine: Engine, indexes: list[str], asynchronous: bool
) -> None:
    index, body = indexes[1], " ".join(WORDS)
    writer = Writer(engine, asynchronous, indexes={index: {"text": FIELDS, "keys": 0}})
    writer.send("map", index, [{"kind": "index", "id": id, "body": {"title": body}} for id in "ab"])
    with engine.client() as client:
        client.indices.refresh(index=index)
    searches: list[dict[str, Any]] = [{"index": index}, {"query": {"match_all": {}}, "ndd": True}]
    for given in (searches, iter(searches), map(dict, searches)):
        (answer,) = writer.msearch(given)["responses"]
        assert answer["ndd"]["hidden"] == 1
    writer.close()
