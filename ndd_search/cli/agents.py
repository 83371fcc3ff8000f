"""Serve searches to agents as tools: pages without near-duplicates, documents in parts, and why one is not shown.

examples:
  ndd-search agents memories.idx
  ndd-search agents http://localhost:9200 "news*" --set origins=source,published
  ndd-search agents memories.idx --listen 127.0.0.1:8765

The tools speak the Model Context Protocol: on standard input and output, so that an agent's program starts the command
itself, or with --listen at http://HOST:PORT/mcp. They read, and write nothing. Credentials of an engine come from the
address or from NDD_SEARCH_API_KEY; everybody who reaches the tools searches with them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, TypeVar

from ndd_search.cli import DONE
from ndd_search.cli.output import warn
from ndd_search.cli.ui import add_place, searcher_of
from ndd_search.core.document_fields import absent_fields, text_of, value_of
from ndd_search.core.setting_values import nearest
from ndd_search.core.text.printable import UNSAFE, many
from ndd_search.core.text.tokens import words_at
from ndd_search.errors import NDDError, importing
from ndd_search.reports.side_by_side import Wording, compared
from ndd_search.search.rest.info_and_copies import Copy
from ndd_search.search.rest.info_and_copies import copies as copies_of
from ndd_search.search.rest.read_answer import Hit
from ndd_search.search.rest.write_response import DUPLICATE_OF, ORIGINS
from ndd_search.serving.proxy.proxy_settings import address_of
from ndd_search.serving.proxy.server import is_loopback
from ndd_search.serving.ui.searcher import DATES, SOURCES, Asked, Found, Searcher, SearchFailed, chosen
from ndd_search.serving.ui.shown_texts import moment, named_fields, shortened, texts_of

with importing("mcp", "the server for agents", "mcp", "agents"):
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import CallToolResult, TextContent, ToolAnnotations
    from pydantic import Field, ValidationError

T = TypeVar("T")

_ADDRESSES = ("url", "link", "address", "permalink", "uri", "href")
_MOST, _MOST_COPIES, _MOST_FIELDS = 20, 50, 20  # hits of one page, copies named with each, further fields of each
_LONGEST_PART = 20_000  # characters of a document in one answer
_SNIPPET, _VALUE, _ADDED, _ADDRESS = 320, 200, 120, 500  # characters of these parts of an answer
_COMPARED = 20_000  # characters of a copy that are compared with its hit
_SEARCHED = 1_000  # hits among which a document is looked for
_AT_ONCE = 100  # of them
_INSTRUCTIONS = """Each hit of `search` stands for its near-duplicates, which `copies` counts: count their text once. \
`snippet` is the part that matches; `read` returns the whole text, of a copy, too. `next` continues a search or a text \
without repeating anything."""
_SEARCH = """Search, best first, near-duplicates once. A hit has its id, title, address, the part of its text that \
matches, and the number of its copies, with what some of them add or change.
What `query` may contain: """

_Query = Annotated[str, Field(description="what to look for, in the syntax that `search` describes")]
_Start = Annotated[int, Field(ge=0, description="place of the first hit: 0, or `next` of the page before")]
_Size = Annotated[int, Field(ge=1, le=_MOST, description="the most hits to return")]
_Copies = Annotated[int, Field(ge=0, le=_MOST_COPIES, description="the most copies to name with each hit")]
_Fields = Annotated[
    list[str],
    Field(
        default_factory=list,
        max_length=_MOST_FIELDS,
        description="names of further fields to return, such as author or author.name; long values are shortened",
    ),
]
_Id = Annotated[str, Field(description="`id` of a hit, or of a copy")]
_Index = Annotated[str, Field(description="`index` of the hit or copy, if it has one")]
_Place = Annotated[int, Field(ge=0, description="first character to return: 0, or `next` of the part before")]
_Length = Annotated[int, Field(ge=1, le=_LONGEST_PART, description="the most characters to return")]


def configure(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--listen", metavar="HOST:PORT", help="serve HTTP here instead of standard input and output")


def run(arguments: argparse.Namespace) -> int:
    searcher = searcher_of(arguments)
    server = server_of(searcher)
    if not arguments.listen:
        server.run("stdio")
        return DONE
    host, port = address_of(arguments.listen)
    if not is_loopback(arguments.listen):
        warn(f"{arguments.listen} is served without https to everybody who can reach it")
    server.run("streamable-http", host=host, port=port)
    return DONE


class _Server(MCPServer[Any]):  # type: ignore[misc]  # an optional package
    """Refuses arguments that a tool does not have, which would be ignored otherwise."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        for tool in await self.list_tools():
            names = list(tool.input_schema["properties"])
            if tool.name == name and (unknown := [one for one in arguments if one not in names]):
                near = nearest(unknown[0], names)
                raise ToolError(f"{name} has no argument {unknown[0]!r}{near}: it takes {', '.join(names)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.__cause__.errors()]
            raise ToolError(f"{name} was not called, {'; '.join(wrong)}") from None


def server_of(searcher: Searcher) -> MCPServer[Any]:
    """Return the server of the tools."""

    @asynccontextmanager
    async def closing(_: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await searcher.close()

    tools, made = _Tools(searcher), []
    syntax = "; ".join(f"{example} ({what})" for example, what in searcher.syntax)
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for function, about in ((tools.search, f"{_SEARCH}{syntax}."), (tools.read, None), (tools.why_hidden, None)):
        made.append(Tool.from_function(function, description=about, annotations=reads))
        made[-1].parameters["additionalProperties"] = False
    release = version("ndd-search")
    return _Server("ndd-search", instructions=_INSTRUCTIONS, version=release, tools=made, lifespan=closing)


@dataclass(frozen=True)
class _Tools:
    """The tools, each a method."""

    searcher: Searcher

    async def search(
        self, query: _Query, start: _Start = 0, size: _Size = 10, copies: _Copies = 3, *, fields: _Fields
    ) -> CallToolResult:
        found = await self._page(query, start, size)
        hits = found.response["hits"]["hits"]
        shown = [_hit(hit, self.searcher, copies, fields) for hit in hits]
        notes = [*found.problems, *_absent(fields, [_source(hit) for hit in hits])]
        following = start + len(hits) if len(hits) == size else None
        return _answer({"hits": shown, "next": following}, notes)

    async def read(
        self, id: _Id, index: _Index = "", start: _Place = 0, size: _Length = 4_000, *, fields: _Fields
    ) -> CallToolResult:
        """Return the text of a document from one place on, with its title and address, and its length in characters."""
        found = await _asked(self.searcher.documents([(index or self.searcher.name, id)], {}))
        if not found:
            remedy = "" if index else "; if its hit names an `index`, give that, too"
            raise ToolError(f"there is no document {id!r} in {index or self.searcher.name}{remedy}")
        hit, document = found[0].hit, _source(found[0].hit)
        head, bodies = named_fields(document, self.searcher.text)
        text = UNSAFE.sub("", (text_of(document, bodies) or "").encode("utf-8", "replace").decode())
        told = _named(hit, self.searcher) | {"text": text[start : start + size], "length": len(text)}
        told["next"] = start + size if start + size < len(text) else None
        rest = [name for name in document if name not in (head, *bodies)]
        told |= {"fields": _values(document, fields)} if fields else {"other_fields": rest[:_MOST_COPIES]}
        return _answer(told, _absent(fields, [document]))

    async def why_hidden(self, query: _Query, id: _Id) -> str:
        """Say where the document with this id is in a search: shown, at which place; or hidden, under which hit."""
        for start in range(0, _SEARCHED, _AT_ONCE):
            hits = (await self._page(query, start, _AT_ONCE)).response["hits"]["hits"]
            for place, hit in enumerate(hits, start + 1):
                if hit["_id"] == id:
                    return f"{id} is shown, at place {place}."
                for copy in copies_of(hit):
                    if copy.id == id:
                        why = f"both have the same {copy.shares}" if copy.shares else f"{copy.similarity:.0%} alike"
                        verdict = await self._verdict(hit, copy)
                        return f"{id} is hidden under {hit['_id']}, at place {place}: {why}.{verdict}"
            if len(hits) < _AT_ONCE:
                return f"{id} is not among the hits of this search."
        return f"{id} is not among the first {_SEARCHED:,} hits of this search."

    async def _page(self, query: str, start: int, size: int) -> Found:
        return await _asked(self.searcher.search(Asked(q=query, start=start, size=size), {}))

    async def _verdict(self, hit: Hit, copy: Copy) -> str:
        names = [(hit["_index"], hit["_id"]), (copy.index, copy.id)]
        pair = await self.searcher.documents(names, {})
        return f" {self.searcher.verdict(pair, {})}" if len(pair) == len(names) else ""


async def _asked(answer: Awaitable[T]) -> T:
    """Return what a searcher answers. Raises ToolError if it fails, for the agent to read."""
    try:
        return await answer
    except (NDDError, SearchFailed, ValueError) as error:
        reason = error.reason if isinstance(error, SearchFailed) else error
        raise ToolError(f"the search failed: {reason}") from error


def _answer(told: Mapping[str, Any], notes: Sequence[str]) -> CallToolResult:
    """Return an answer as an object, and as text without spaces, which cost tokens."""
    whole = {**told, "notes": notes} if notes else told
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"), default=str)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=json.loads(text))


def _hit(hit: Hit, searcher: Searcher, most: int, fields: Sequence[str]) -> dict[str, Any]:
    listed, document = copies_of(hit), _source(hit)
    told = _named(hit, searcher)
    told["snippet"] = shortened("".join(piece.text for piece in texts_of(hit, searcher.text).passage), _SNIPPET)
    told |= {"fields": found} if (found := _values(document, fields)) else {}
    told["copies"] = listed.total
    if listed and most:
        told["some_copies" if most < listed.total else "all_copies"] = [
            {"id": one.id} | _index(one.index, searcher) | {"is": _difference(document, one, searcher.text)}
            for one in listed[:most]
        ]
    about = hit.get("fields") or {}
    return told | {
        name: about[key][0] for name, key in (("origins", ORIGINS), ("copy_of", DUPLICATE_OF)) if key in about
    }


def _named(hit: Hit, searcher: Searcher) -> dict[str, Any]:
    """Return id, title and address of a hit. The beginning of a text is no title."""
    document = _source(hit)
    told = {"id": hit["_id"]} | _index(hit["_index"], searcher)
    if named_fields(document, searcher.text)[0]:
        told["title"] = texts_of({"_source": document}, searcher.text).name
    address = document.get(chosen(_ADDRESSES, document))
    return told | ({"address": address} if isinstance(address, str) and len(address) <= _ADDRESS else {})


def _source(hit: Hit) -> Mapping[str, Any]:
    """Return the document of a hit, empty if its index stores none."""
    found: Mapping[str, Any] = hit.get("_source") or {}
    return found


def _index(name: str, searcher: Searcher) -> dict[str, str]:
    return {} if name == searcher.name else {"index": name}


def _difference(document: Mapping[str, Any], copy: Copy, names: Sequence[str]) -> str:
    """Say what a copy adds to a document, or changes."""
    other = copy.document
    if copy.shares or not isinstance(other, Mapping):
        return f"of the same {copy.shares}" if copy.shares else f"{copy.similarity:.0%} alike"
    mine, its = (texts_of({"_source": one}, names) for one in (document, other))
    both = compared(Wording(mine.text[:_COMPARED]), Wording(its.text[:_COMPARED]))
    added, lacked = ([piece.text.strip() for piece in side if piece.marked] for side in (both.right, both.left))
    said = [f'adds "{shortened(" … ".join(added), _ADDED)}"'] if added else []
    said += [f"lacks {many(sum(len(words_at(one)) for one in lacked), 'word')}"] if lacked else []
    said = said or ["the same text"]
    said += [f'title "{its.name}"'] if named_fields(other, names)[0] and its.name != mine.name else []
    for kinds in (DATES, SOURCES):
        field = chosen(kinds, document)
        before, after = (
            moment(str(value_of(one, field) or ""))[0] or value_of(one, field) for one in (document, other)
        )
        if field and after and before != after:
            when = f"{'later' if str(after) > str(before) else 'earlier'} " if kinds is DATES and before else ""
            said.append(shortened(f"{when}{field} {after}", _ADDED))
    return ", ".join(said)


def _values(document: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Return the values of some fields of a document, long ones shortened."""
    found = {name: value_of(document, name) for name in fields}
    return {name: _short(value) for name, value in found.items() if value is not None}


def _short(value: Any) -> Any:
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(written) <= _VALUE else shortened(written, _VALUE)


def _absent(fields: Sequence[str], documents: Sequence[Mapping[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for one in documents for name in one))
    listed = ", ".join(names[:_MOST_COPIES])
    return [
        f"there is no field {name!r}{nearest(name, names)}: there are {listed}"
        for name in absent_fields(fields, documents)
    ]
