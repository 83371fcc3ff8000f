"""The servers of the other tests index and search."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from tests.engines.find import COMPOSE_FILE, Engine
from tests.engines.jars import RELEASES

MAPPING = {"mappings": {"properties": {"body": {"type": "text"}, "numbers": {"type": "integer", "index": False}}}}
NUMBERS = [0, 7, 2**31 - 1]
SEARCH = {"query": {"match": {"body": "fox"}}, "_source": ["body"], "docvalue_fields": ["numbers"]}


def check(response: Any) -> None:
    (hit,) = response["hits"]["hits"]
    assert hit["_id"] == "1"
    assert hit["_source"] == {"body": "a quick fox"}
    assert hit["fields"] == {"numbers": NUMBERS}


def test_a_sync_client_indexes_refreshes_and_gets_integers_back_from_doc_values(engine: Engine, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body=MAPPING)
        client.index(index=index, id="1", body={"body": "a quick fox", "numbers": NUMBERS})
        client.index(index=index, id="2", body={"body": "a lazy dog", "numbers": NUMBERS})
        client.indices.refresh(index=index)
        check(client.search(index=index, body=SEARCH))


def test_an_async_client_does_the_same(engine: Engine, index: str) -> None:
    async def run() -> None:
        async with engine.async_client() as client:
            await client.indices.create(index=index, body=MAPPING)
            await client.index(index=index, id="1", body={"body": "a quick fox", "numbers": NUMBERS})
            await client.index(index=index, id="2", body={"body": "a lazy dog", "numbers": NUMBERS})
            await client.indices.refresh(index=index)
            check(await client.search(index=index, body=SEARCH))

    asyncio.run(run())


def test_the_server_is_the_release_it_is_named_after(engine: Engine) -> None:
    with engine.client() as client:
        told = client.info()["version"]
    assert told["number"].split(".")[0] == str(engine.major)
    assert told.get("distribution", "elasticsearch") == engine.family


def test_docker_and_the_published_jars_are_the_same_versions() -> None:
    images = re.findall(r"image: \S*?([a-z]+):([\d.]+)$", COMPOSE_FILE.read_text(), re.MULTILINE)
    assert sorted(images) == sorted((release.family, release.version) for release in RELEASES.values())
