"""The tools for agents, asked through the client of the protocol's own library."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TextIO

import pytest

import ndd_search as ndd
from tests.engines.find import Engine
from tests.engines.launch import free_ports
from tests.integrations.texts import BUDGET, FINAL, STEEL, STEEL_AGAIN
from tests.proxy.serving import serving

mcp = pytest.importorskip("mcp", reason="run `make test-third-parties`")

MEMORIES = [
    {"id": "1", "text": STEEL, "source": "post"},
    {"id": "2", "text": STEEL_AGAIN, "source": "herald"},
    {"id": "3", "text": FINAL, "source": "post"},
    {"id": "4", "text": BUDGET, "source": "post"},
]


def asked(place: Sequence[str], ask: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a program's agent gets that starts the command itself, which complains of nothing."""

    async def run(log: TextIO) -> Any:
        command = mcp.StdioServerParameters(command=sys.executable, args=["-m", "ndd_search", "agents", *place])
        async with mcp.Client(mcp.stdio_client(command, log)) as client:
            return await ask(client)

    with TemporaryFile("w+") as log:
        found = asyncio.run(asyncio.wait_for(run(log), 60))
        log.seek(0)
        assert "Unclosed" not in log.read()
    return found


def content(result: Any) -> Any:
    assert not result.is_error, result
    return result.structured_content


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with ndd.Index.open(tmp_path / "memories.idx", text=["text"]) as index:
        index.add(MEMORIES)
    return str(index.path)


@pytest.fixture
def filled(engine: Engine, index: str) -> Iterator[str]:
    """The name of an index of a server that holds the memories."""
    with engine.client() as client:
        source = {"source": {"type": "keyword"}}
        properties = {**ndd.indexing.mapping_properties(), **source}
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        for one in ndd.with_sketches([{"_id": one["id"], **one} for one in MEMORIES], fields=["text"]):
            client.index(index=index, id=one["_id"], body={name: one[name] for name in one if name != "_id"})
        client.indices.refresh(index=index)
        yield index
        client.indices.delete(index=index)


async def walk(client: Any) -> None:
    """Page through a search of all memories, and ask where each of them is."""
    assert {tool.name for tool in (await client.list_tools()).tools} == {"search", "more", "why_hidden"}
    every: dict[str, Any] = {"query": "ministers friday side budget", "size": 1}
    found, start = [], 0
    page = content(await client.call_tool("search", every))
    while True:
        found += page["hits"]
        if (start := page["next"]) is None:
            break
        page = content(await client.call_tool("more", {**every, "start": start}))
    ids = [hit["id"] for hit in found]
    assert len(ids) == 3
    story = next(hit for hit in found if hit["copies"])
    [hidden] = story["ids_of_copies"]
    assert {story["id"], hidden} == {"1", "2"}
    assert {*ids, hidden} == {"1", "2", "3", "4"}
    assert story["origins"] == {"number": 2, "first": story["document"]["source"], "reprints": 1, "edited": 0}
    why = await client.call_tool("why_hidden", {"query": every["query"], "id": hidden})
    assert f"{hidden} is hidden under {story['id']}" in why.content[0].text
    shown = await client.call_tool("why_hidden", {"query": every["query"], "id": ids[0]})
    assert "is shown, at place 1" in shown.content[0].text
    absent = await client.call_tool("why_hidden", {"query": every["query"], "id": "nine"})
    assert "is not among the hits" in absent.content[0].text
    refused = await client.call_tool("more", {"query": "ministers", "start": -1})
    assert refused.is_error
    assert "start must be at least 0" in json.dumps(refused.content[0].text)


def test_an_agent_searches_goes_on_and_asks_why_a_document_is_hidden(folder: str) -> None:
    asked([folder, "--origins", "source"], walk)


def test_an_agent_is_told_how_a_query_was_read_that_is_not_complete(folder: str) -> None:
    async def ask(client: Any) -> None:
        found = content(await client.call_tool("search", {"query": '"ministers'}))
        assert found["hits"]
        assert found["notes"] == ['the query was read as plain words: it is not complete, write "ministers"']

    asked([folder], ask)


@pytest.mark.newest_servers
def test_the_tools_over_an_engine_answer_as_those_over_a_folder(engine: Engine, filled: str) -> None:
    asked([engine.url, filled, "--origins", "source"], walk)


@pytest.mark.newest_servers
def test_the_tools_through_a_proxy_show_what_the_proxy_collapses(engine: Engine, filled: str) -> None:
    with serving(engine.url) as served:
        asked([served.url, filled, "--proxy", "--origins", "source"], walk)

    async def ask(client: Any) -> None:
        failed = await client.call_tool("search", {"query": "ministers"})
        assert "this address is not that of ndd-search serve: leave out --proxy" in failed.content[0].text

    asked([engine.url, filled, "--proxy"], ask)


def test_an_index_that_is_not_there_is_told_to_the_agent(tmp_path: Path) -> None:
    async def ask(client: Any) -> None:
        failed = await client.call_tool("search", {"query": "ministers"})
        assert failed.is_error
        assert "the search failed" in failed.content[0].text

    asked([f"http://127.0.0.1:{free_ports(1)[0]}", "nothing"], ask)
