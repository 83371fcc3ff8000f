"""Serve searches to agents as tools: pages without near-duplicates, further pages, and why a document is not shown.

examples:
  ndd-search agents memories.idx
  ndd-search agents http://localhost:9200 "news*" --origins source,published
  ndd-search agents http://localhost:9201 news --proxy
  ndd-search agents memories.idx --listen 127.0.0.1:8765

The tools speak the Model Context Protocol: on standard input and output, so that an agent's program starts the command
itself, or with --listen at http://HOST:PORT/mcp. They read, and write nothing. Credentials of an engine come from the
address or from NDD_SEARCH_API_KEY; everybody who reaches the tools searches with them.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ndd_search.cli import DONE
from ndd_search.cli.output import comma_list, warn
from ndd_search.cli.ui import add_place, searcher_of
from ndd_search.errors import NDDError, importing
from ndd_search.search.flow.intercept_requests import AsyncSend, Driver
from ndd_search.search.rest.info_and_copies import copies
from ndd_search.search.rest.read_answer import Answer, Hit
from ndd_search.search.rest.read_request import Request
from ndd_search.search.rest.write_response import ORIGINS
from ndd_search.serving.proxy.proxy_settings import address_of
from ndd_search.serving.proxy.server import is_loopback
from ndd_search.serving.ui.searcher import Asked, Found, Searcher, SearchFailed

with importing("mcp", "the server for agents", "mcp", "agents"):
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

_MOST = 50  # hits of one page
_SEARCHED = 1_000  # hits among which a document is looked for
_AT_ONCE = 100  # of them
_INSTRUCTIONS = (
    "Each hit stands for the near-duplicates of it, which `copies` counts: count their text once. `more` continues a "
    "search without repeating anything. `why_hidden` says where a document is that a search did not show."
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--proxy", action="store_true", help="the URL is that of ndd-search serve")
    parser.add_argument("--listen", metavar="HOST:PORT", help="serve HTTP here instead of standard input and output")
    parser.add_argument(
        "--origins", type=comma_list, default=[], metavar="FIELD[,TIME]", help="tell how many sources each group has"
    )


def run(arguments: argparse.Namespace) -> int:
    searcher = searcher_of(arguments, _PassedOn if arguments.proxy else Driver)
    server = server_of(searcher, {"origins": arguments.origins} if arguments.origins else {})
    if not arguments.listen:
        server.run("stdio")
        return DONE
    host, port = address_of(arguments.listen)
    if not is_loopback(arguments.listen):
        warn(f"{arguments.listen} is served without https to everybody who can reach it")
    server.run("streamable-http", host=host, port=port)
    return DONE


class _PassedOn(Driver):
    """Sends searches as they are to a proxy, which collapses them."""

    async def handle_async(self, request: Request, send: AsyncSend, *_: Any) -> Answer:
        answer = await send(request)
        if "[ndd]" in answer.complaint:  # an engine's, which knows no such key
            raise SearchFailed(answer.status, "this address is not that of ndd-search serve: leave out --proxy")
        return answer


def server_of(searcher: Searcher, options: dict[str, Any]) -> MCPServer[Any]:
    """Return the server of the tools. options: CollapseOptions of each search, by name."""

    @asynccontextmanager
    async def closing(_: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await searcher.close()

    server: MCPServer[Any] = MCPServer("ndd-search", instructions=_INSTRUCTIONS, lifespan=closing)

    async def page(query: str, start: int, size: int) -> Found:
        try:
            return await searcher.search(Asked(q=query, start=start, size=size, options=options), {})
        except (NDDError, SearchFailed, ValueError) as error:
            reason = error.reason if isinstance(error, SearchFailed) else str(error)
            raise ToolError(f"the search failed: {reason}") from error

    async def more(query: str, start: int, size: int = 10) -> dict[str, Any]:
        """Return further hits of a search, from place `start` on (the `next` of the page before)."""
        if start < 0 or not 1 <= size <= _MOST:
            raise ToolError(f"start must be at least 0 and size 1..{_MOST}, got {start} and {size}")
        found = await page(query, start, size)
        hits = found.response["hits"]["hits"]
        told = {"hits": [_told(hit) for hit in hits], "next": start + len(hits) if len(hits) == size else None}
        return told | ({"notes": found.problems} if found.problems else {})

    async def search(query: str, size: int = 10) -> dict[str, Any]:
        """Search, best first, near-duplicates once. Each hit has its id, document, copies, and the ids of these."""
        return await more(query, 0, size)

    async def why_hidden(query: str, id: str) -> str:
        """Say where the document with this id is in a search: shown, at which place; or hidden, under which hit."""
        for start in range(0, _SEARCHED, _AT_ONCE):
            hits = (await page(query, start, _AT_ONCE)).response["hits"]["hits"]
            for place, hit in enumerate(hits, start + 1):
                if hit["_id"] == id:
                    return f"{id} is shown, at place {place}."
                for copy in copies(hit):
                    if copy.id == id:
                        why = f"both have the same {copy.shares}" if copy.shares else f"{copy.similarity:.0%} alike"
                        return f"{id} is hidden under {hit['_id']}, at place {place}: {why}.{await verdict(hit, copy)}"
            if len(hits) < _AT_ONCE:
                return f"{id} is not among the hits of this search."
        return f"{id} is not among the first {_SEARCHED:,} hits of this search."

    async def verdict(hit: Hit, copy: Any) -> str:
        names = [(hit["_index"], hit["_id"]), (copy.index, copy.id)]
        pair = await searcher.documents(names, {})
        return f" {searcher.verdict(pair, options)}" if len(pair) == len(names) else ""

    for tool in (search, more, why_hidden):
        server.add_tool(tool)
    return server


def _told(hit: Hit) -> dict[str, Any]:
    listed = copies(hit)
    told = {"id": hit["_id"], "index": hit["_index"], "document": hit.get("_source"), "copies": listed.total}
    told |= {"ids_of_copies": [one.id for one in listed]} if listed else {}
    return told | ({"origins": (hit.get("fields") or {})[ORIGINS][0]} if ORIGINS in (hit.get("fields") or {}) else {})
