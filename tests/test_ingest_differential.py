"""Streams of actions with and without with_sketches, through the clients' own helpers: the same is stored."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import MODULES, Engine

TEXT = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
MAPPING = {"body": {"type": "text"}, "price": {"type": "long"}, "tags": {"type": "keyword"}}
CHUNK = 50
Stream = Callable[[str], Iterator[Any]]


def helpers(engine: Engine) -> Any:
    return importlib.import_module(f"{MODULES[engine.family]}.helpers")


def every_operation(index: str) -> Iterator[Any]:
    """Every kind of action, with ids of every type."""
    for id in (5, "5", np.int64(6), UUID(int=7), "seven", 0):
        yield {"_index": index, "_id": id, "body": f"{TEXT} {id}", "price": 1}
        yield {"_index": index, "_id": id, "_op_type": "update", "doc": {"price": 2}}
    yield {"_index": index, "_id": "5", "_op_type": "update", "_source": {"doc": {"body": "another text"}}}
    yield {"_index": index, "_id": "new", "_op_type": "update", "doc": {"price": 1}, "upsert": {"body": TEXT}}
    yield {"_index": index, "_id": "both", "_op_type": "update", "doc": {"body": TEXT}, "doc_as_upsert": True}
    yield {"_index": index, "_id": "made", "_op_type": "create", "_source": {"body": TEXT, "price": 3}}
    yield {"_index": index, "_id": "made", "_op_type": "create", "_source": {"body": "refused: it is there"}}
    yield {"_index": index, "_id": "seven", "_op_type": "delete"}
    yield {"_index": index, "_id": "absent", "_op_type": "delete"}
    yield {"_index": index, "_id": "routed", "_routing": "x", "_source": {"body": TEXT}}
    yield {"_index": index, "_id": "none"}
    yield {"_index": index, "_id": "versioned", "version": 7, "version_type": "external", "body": TEXT}


def reused(index: str) -> Iterator[Any]:
    """One dict, and one list inside it, for all documents."""
    action: dict[str, Any] = {"_index": index, "_source": {"tags": []}}
    for number in range(120):
        action["_id"] = number
        action["_source"]["body"], action["_source"]["tags"][:] = f"{number} {TEXT}", [str(number)]
        yield action


def refused(index: str) -> Iterator[Any]:
    """Some documents that the engine does not take."""
    for number in range(120):
        yield {"_index": index, "_id": number, "body": TEXT, "price": "no number" if number % 40 == 7 else number}


def breaking(index: str) -> Iterator[Any]:
    """A source that fails between two chunks."""
    for number in range(120):
        yield {"_index": index, "_id": number, "body": f"{number} {TEXT}"}
    raise OSError("the source is gone")


def send(engine: Engine, client: Any, actions: Any) -> None:
    """Through streaming_bulk, again and again where it stops for documents that are refused."""
    with suppress(OSError):
        for _ in range(10):
            try:
                for _ in helpers(engine).streaming_bulk(client, actions, chunk_size=CHUNK):
                    pass
                return
            except helpers(engine).BulkIndexError:
                continue


def send_all(engine: Engine, client: Any, actions: Any) -> None:
    with suppress(OSError):
        helpers(engine).bulk(client, actions, chunk_size=CHUNK, raise_on_error=False)


def send_async(engine: Engine, client: Any, actions: Any) -> None:
    async def run() -> None:
        async with engine.async_client() as own:
            with suppress(OSError):
                await helpers(engine).async_bulk(own, actions, chunk_size=CHUNK, raise_on_error=False)

    asyncio.run(run())


def send_streaming_async(engine: Engine, client: Any, actions: Any) -> None:
    async def run() -> None:
        async with engine.async_client() as own:
            with suppress(OSError):
                async for _ in helpers(engine).async_streaming_bulk(
                    own, actions, chunk_size=CHUNK, raise_on_error=False
                ):
                    pass

    asyncio.run(run())


def stored(client: Any, index: str) -> dict[str, Any]:
    client.indices.refresh(index=index)
    hits = client.search(index=index, body={"size": 1_000, "version": True})["hits"]["hits"]
    return {hit["_id"]: (hit["_source"], hit.get("_routing"), hit["_version"]) for hit in hits}


@pytest.fixture
def pair(engine: Engine) -> Iterator[tuple[str, str]]:
    """Two empty indexes."""
    names = f"ndd-test-{uuid4().hex[:12]}", f"ndd-test-{uuid4().hex[:12]}"
    with engine.client() as client:
        for name in names:
            body = {
                "settings": {"number_of_replicas": 0},
                "mappings": {"properties": {**MAPPING, **mapping_properties()}},
            }
            client.indices.create(index=name, body=body)
        yield names
        for name in names:
            client.indices.delete(index=name)


@pytest.mark.parametrize(
    ("stream", "way"),
    [
        *((every_operation, way) for way in (send, send_all, send_async, send_streaming_async)),
        *((stream, way) for stream in (reused, refused, breaking) for way in (send_all, send_streaming_async)),
    ],
)
def test_the_same_documents_are_stored_as_without_sketches(
    engine: Engine, pair: tuple[str, str], stream: Stream, way: Callable[..., None]
) -> None:
    """Whatever the source does, what is stored is what is stored without with_sketches, but for the sketch."""
    plain, sketched = pair
    with engine.client() as client:
        way(engine, client, stream(plain))
        way(engine, client, ndd.with_sketches(stream(sketched), "body", keys=0, numbers=True))
        expected, found = stored(client, plain), stored(client, sketched)
    assert expected
    assert {
        key: ({name: value for name, value in source.items() if name != "ndd"}, *rest)
        for key, (source, *rest) in found.items()
    } == {key: (source, *rest) for key, (source, *rest) in expected.items()}
    for source, *_ in found.values():
        if "body" in source:
            assert source["ndd"]["sketch"] == ndd.sketch(source["body"]).tolist()
