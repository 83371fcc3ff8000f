"""Whole collections through with_sketches and every bulk helper of the clients, into live servers with our template."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.rest.mapping import component_template
from tests.collections import read
from tests.engines.find import MODULES, Engine
from tests.indexed import FIELDS, check


def helpers(engine: Engine) -> Any:
    return importlib.import_module(f"{MODULES[engine.family]}.helpers")


@pytest.fixture
def templated(engine: Engine, index: str) -> Iterator[str]:
    """An index that the component template will be composed into."""
    template = {"index_patterns": [index], "priority": 600, "composed_of": [index]}
    with engine.client() as client:
        client.cluster.put_component_template(name=index, body=component_template())
        client.indices.put_index_template(name=index, body=template)
        yield index
        client.indices.delete_index_template(name=index)
        with suppress(Exception):
            client.cluster.delete_component_template(name=index)


def bulk(engine: Engine, actions: Any) -> int:
    with engine.client() as client:
        return int(helpers(engine).bulk(client, actions, stats_only=True)[0])


def streaming_bulk(engine: Engine, actions: Any) -> int:
    with engine.client() as client:
        return sum(ok for ok, _ in helpers(engine).streaming_bulk(client, actions))


def parallel_bulk(engine: Engine, actions: Any) -> int:
    with engine.client() as client:
        return sum(ok for ok, _ in helpers(engine).parallel_bulk(client, actions, thread_count=2))


def async_bulk(engine: Engine, actions: Any) -> int:
    async def one_by_one() -> AsyncIterator[dict[str, Any]]:
        async for action in actions:
            yield action

    async def run() -> int:
        async with engine.async_client() as client:
            done = await helpers(engine).async_bulk(client, one_by_one(), stats_only=True, chunk_size=200)
            return int(done[0])

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("store", "name"),
    [(bulk, "factbook"), (streaming_bulk, "xquad_pages"), (parallel_bulk, "factbook"), (async_bulk, "xquad_pages")],
)
def test_every_document_of_a_collection_arrives_unchanged_with_its_sketch(
    engine: Engine, templated: str, store: Callable[[Engine, Any], int], name: str
) -> None:
    documents = {document["id"]: document for document in read(name)}
    actions = ({"_index": templated, "_id": key, "_source": one} for key, one in documents.items())
    assert store(engine, ndd.with_sketches(actions, fields=FIELDS)) == len(documents)
    with engine.client() as client:
        mapping = client.indices.get_mapping(index=templated)[templated]["mappings"]["properties"]["ndd"]
        assert mapping["properties"]["sketch"] == {"type": "integer", "index": False}
        check(client, templated, documents)
