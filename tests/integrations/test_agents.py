"""The tools for agents, asked through the client of the protocol's own library."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from socket import create_connection
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import Any, TextIO

import pytest

import ndd_search as ndd
from tests.engines.find import Engine
from tests.engines.launch import free_ports
from tests.integrations.texts import BUDGET, FINAL, STEEL, STEEL_AGAIN

mcp = pytest.importorskip("mcp", reason="run `make test-third-parties`")

MEMORIES = [
    {"id": "1", "text": STEEL, "source": "post"},
    {"id": "2", "text": STEEL_AGAIN, "source": "herald"},
    {"id": "3", "text": FINAL, "source": "post"},
    {"id": "4", "text": BUDGET, "source": "post"},
]


def started(place: Sequence[str], ask: Callable[[Any], Awaitable[Any]]) -> Any:
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


def connected(place: Sequence[str], ask: Callable[[Any], Awaitable[Any]]) -> Any:
    """What agents get over HTTP, of whom the second comes when the first one has left."""

    async def run(address: str) -> list[Any]:
        found = []
        for _ in range(2):
            async with mcp.Client(address) as client:
                found.append(await ask(client))
        return found

    port = free_ports(1)[0]
    command = [sys.executable, "-m", "ndd_search", "agents", *place, "--listen", f"127.0.0.1:{port}"]
    with TemporaryFile("w+") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            wait_for_port(port, server)
            found = asyncio.run(asyncio.wait_for(run(f"http://127.0.0.1:{port}/mcp"), 60))
        finally:
            server.terminate()
    return found[-1]


def wait_for_port(port: int, server: subprocess.Popen[Any]) -> None:
    until = monotonic() + 60
    while True:
        try:
            create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert server.poll() is None
            assert monotonic() < until
            sleep(0.1)


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
    assert {tool.name for tool in (await client.list_tools()).tools} == {"search", "read", "why_hidden"}
    every: dict[str, Any] = {"query": "ministers friday side budget", "size": 1, "fields": ["source"]}
    found, start = [], 0
    while start is not None:
        page = content(await client.call_tool("search", {**every, "start": start}))
        found += page["hits"]
        start = page["next"]
    ids = [hit["id"] for hit in found]
    assert len(ids) == 3
    story = next(hit for hit in found if hit["copies"])
    [hidden] = story["all_copies"]
    assert {story["id"], hidden["id"]} == {"1", "2"}
    assert {*ids, hidden["id"]} == {"1", "2", "3", "4"}
    assert story["origins"] == {"number": 2, "first": story["fields"]["source"], "reprints": 1, "edited": 0}
    assert "source " in hidden["is"]
    texts = {one["id"]: one["text"] for one in MEMORIES}
    for one in (story, hidden):
        read = content(await client.call_tool("read", {name: one[name] for name in ("id", "index") if name in one}))
        assert read["text"] == texts[one["id"]]
        assert read["next"] is None
    why = await client.call_tool("why_hidden", {"query": every["query"], "id": hidden["id"]})
    assert f"{hidden['id']} is hidden under {story['id']}" in why.content[0].text
    shown = await client.call_tool("why_hidden", {"query": every["query"], "id": ids[0]})
    assert "is shown, at place 1" in shown.content[0].text
    absent = await client.call_tool("why_hidden", {"query": every["query"], "id": "nine"})
    assert "is not among the hits" in absent.content[0].text
    missing = await client.call_tool("read", {"id": "nine"})
    assert missing.is_error
    assert "there is no document 'nine'" in missing.content[0].text


TRANSPORTS = pytest.mark.parametrize("asked", [started, connected])


@TRANSPORTS
def test_an_agent_searches_goes_on_reads_and_asks_why_a_document_is_hidden(asked: Any, folder: str) -> None:
    asked([folder, "--set", "origins=source"], walk)


def test_an_agent_learns_what_the_tools_take(folder: str) -> None:
    async def ask(client: Any) -> None:
        assert client.server_info.version == version("ndd-search")
        for tool in (await client.list_tools()).tools:
            assert tool.annotations.read_only_hint
            assert all(one["description"] for one in tool.input_schema["properties"].values())
            assert tool.input_schema["additionalProperties"] is False
            assert tool.name != "search" or '"climate summit" (the words one after the other)' in tool.description
        for arguments, complaint in [
            ({"query": "x", "limit": 3}, "search has no argument 'limit'"),
            ({"q": "x"}, "search has no argument 'q': it takes query, start, size, copies, fields"),
            ({"query": "x", "start": -1}, "start: Input should be greater than or equal to 0"),
            ({"query": "x", "size": 500}, "size: Input should be less than or equal to 20"),
            ({}, "query: Field required"),
        ]:
            refused = await client.call_tool("search", arguments)
            assert refused.is_error
            assert complaint in refused.content[0].text
            assert "pydantic" not in refused.content[0].text

    started([folder], ask)


NEWS = {
    "title": "Ferry late",
    "text": f"{STEEL} Officials said so in the capital.",
    "date": "2024-03-01",
    "source": "post",
    "url": "https://post.example/ferry",
}
LONG = {"id": "long", "title": "t" * 10_000, "text": "before " * 100_000 + "the volcano smoked " + "after " * 100_000}


def test_an_agent_gets_what_a_model_can_read(tmp_path: Path) -> None:
    """The whole of a document in parts, and of a page little, whatever its documents hold."""
    with ndd.Index.open(tmp_path / "long.idx", text=["title", "text"]) as index:
        index.add([{**LONG, "id": f"{number}", "notes": ["n" * 1000] * 50} for number in range(60)])
        index.add([{**NEWS, "id": "news"}])

    async def ask(client: Any) -> None:
        page = await client.call_tool("search", {"query": "volcano", "copies": 3, "fields": ["notes", "nots", "url"]})
        (hit,) = content(page)["hits"]
        assert "the volcano smoked" in hit["snippet"]
        assert hit["copies"] == 59
        assert [set(one) for one in hit["some_copies"]] == [{"id", "is"}] * 3
        assert hit["some_copies"][0]["is"] == "the same text"
        assert len(page.content[0].text) < 2_000
        assert json.loads(page.content[0].text) == content(page)
        assert content(page)["notes"][0].startswith(
            "there is no field 'nots' (did you mean notes?): there are id, title,"
        )
        text, start = "", 0
        while start is not None:
            part = content(await client.call_tool("read", {"id": "7", "start": start, "size": 20_000}))
            assert len(part["text"]) <= 20_000
            text, start = text + part["text"], part["next"]
        assert text == LONG["text"]
        assert part["length"] == len(text)
        (news,) = content(await client.call_tool("search", {"query": "officials", "fields": ["source"]}))["hits"]
        assert (news["title"], news["address"], news["fields"]) == ("Ferry late", NEWS["url"], {"source": "post"})

    started([str(index.path)], ask)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "the same text"),
        ({"date": "2024-03-05", "source": "herald"}, "the same text, later date 2024-03-05, source herald"),
        ({"date": "2024-02-05"}, "the same text, earlier date 2024-02-05"),
        ({"title": "Ferries are late"}, 'the same text, title "Ferries are late"'),
        ({"text": f"{NEWS['text']} Six were hurt."}, 'adds "Six were hurt"'),
        ({"text": STEEL}, "lacks 6 words"),
    ],
)
def test_copies_say_what_they_add_or_change(tmp_path: Path, change: dict[str, str], says: str) -> None:
    with ndd.Index.open(tmp_path / "news.idx", text=["title", "text"]) as index:
        index.add([{**NEWS, "id": "1"}, {**NEWS, **change, "id": "2"}])

    async def ask(client: Any) -> None:
        (hit,) = content(await client.call_tool("search", {"query": "ministers ferry"}))["hits"]
        (copy,) = hit["all_copies"]
        assert (hit["id"], copy["is"]) == ("1", says)

    started([str(index.path), "--set", "keep=preferred:id=1"], ask)


def test_an_agent_sees_of_what_a_hit_is_a_copy_that_is_shown_all_the_same(folder: str) -> None:
    async def ask(client: Any) -> None:
        hits = content(await client.call_tool("search", {"query": "ministers friday"}))["hits"]
        first, second = [hit["id"] for hit in hits if hit["id"] in "12"]
        assert {hit["id"]: hit["copy_of"] for hit in hits if "copy_of" in hit} == {second: first}

    started([folder, "--set", "mode=annotate"], ask)


def test_an_agent_is_told_how_a_query_was_read_that_is_not_complete(folder: str) -> None:
    async def ask(client: Any) -> None:
        found = content(await client.call_tool("search", {"query": '"ministers'}))
        assert found["hits"]
        assert found["notes"] == ['the query was read as plain words: it is not complete, write "ministers"']

    started([folder], ask)


@pytest.mark.newest_servers
@TRANSPORTS
def test_the_tools_over_an_engine_answer_as_those_over_a_folder(asked: Any, engine: Engine, filled: str) -> None:
    asked([engine.url, filled, "--set", "origins=source"], walk)


def test_an_index_that_is_not_there_is_told_to_the_agent(tmp_path: Path) -> None:
    async def ask(client: Any) -> None:
        failed = await client.call_tool("search", {"query": "ministers"})
        assert failed.is_error
        assert "the search failed" in failed.content[0].text

    started([f"http://127.0.0.1:{free_ports(1)[0]}", "nothing"], ask)


@pytest.mark.newest_servers
def test_an_index_that_stores_no_documents_is_searched(engine: Engine, index: str) -> None:
    async def ask(client: Any) -> None:
        (hit,) = content(await client.call_tool("search", {"query": "ministers", "fields": ["source"]}))["hits"]
        assert (hit["id"], hit["copies"]) == ("1", 0)
        refused = await client.call_tool("read", {"id": "1"})
        assert refused.is_error
        assert "_source is disabled" in refused.content[0].text

    with engine.client() as client:
        mapping = {"_source": {"enabled": False}, "properties": ndd.indexing.mapping_properties()}
        client.indices.create(index=index, body={"mappings": mapping})
        client.index(index=index, id="1", body={"text": STEEL}, refresh=True)
        try:
            started([engine.url, index], ask)
        finally:
            client.indices.delete(index=index)
