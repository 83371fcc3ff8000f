"""The tools for agents, asked through the client of the protocol's own library."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from tests.integrations.texts import BUDGET, FINAL, STEEL, STEEL_AGAIN

mcp = pytest.importorskip("mcp", reason="run `make test-third-parties`")

MEMORIES = [
    {"id": "1", "text": STEEL, "source": "post"},
    {"id": "2", "text": STEEL_AGAIN, "source": "herald"},
    {"id": "3", "text": FINAL, "source": "post"},
    {"id": "4", "text": BUDGET, "source": "post"},
]


def asked(place: Sequence[str], ask: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a program's agent gets that starts the command itself."""

    async def run() -> Any:
        command = mcp.StdioServerParameters(command=sys.executable, args=["-m", "ndd_search", "agents", *place])
        async with mcp.Client(command) as client:
            return await ask(client)

    return asyncio.run(asyncio.wait_for(run(), 60))


def content(result: Any) -> Any:
    assert not result.is_error, result
    return result.structured_content


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with ndd.Index.open(tmp_path / "memories.idx", text=["text"]) as index:
        index.add(MEMORIES)
    return str(index.path)


def test_an_agent_searches_goes_on_and_asks_why_a_document_is_hidden(folder: str) -> None:
    async def ask(client: Any) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"search", "more", "why_hidden"}
        every: dict[str, Any] = {"query": "ministers friday side budget", "size": 1}
        found, start = [], 0
        page = content(await client.call_tool("search", every))
        while True:
            found += page["hits"]
            if (start := page["next"]) is None:
                break
            page = content(await client.call_tool("more", {**every, "start": start}))
        with ndd.Index.open(folder) as index:
            expected = [hit["_id"] for hit in index.search(every["query"])["hits"]["hits"]]
        assert [hit["id"] for hit in found] == expected
        story = next(hit for hit in found if hit["copies"])
        [hidden] = story["ids_of_copies"]
        assert {story["id"], hidden} == {"1", "2"}
        assert story["origins"] == {"number": 2, "first": story["document"]["source"], "reprints": 1, "edited": 0}
        why = await client.call_tool("why_hidden", {"query": every["query"], "id": hidden})
        assert f"{hidden} is hidden under {story['id']}" in why.content[0].text
        shown = await client.call_tool("why_hidden", {"query": every["query"], "id": expected[0]})
        assert "is shown, at place 1" in shown.content[0].text
        absent = await client.call_tool("why_hidden", {"query": every["query"], "id": "nine"})
        assert "is not among the hits" in absent.content[0].text
        refused = await client.call_tool("more", {"query": "ministers", "start": -1})
        assert refused.is_error
        assert "start must be at least 0" in json.dumps(refused.content[0].text)

    asked([folder, "--origins", "source"], ask)
