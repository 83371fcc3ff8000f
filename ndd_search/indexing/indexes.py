"""What a cluster says of the indexes behind a name: an index, an alias, a data stream, a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ndd_search.errors import IndexUnusable
from ndd_search.indexing.retry import status_of


@dataclass(frozen=True)
class IndexFacts:
    """One concrete index.

    mapping, settings: as the engine returns them; settings is what is under "index".
    closed:      nobody can read or write it.
    documents:   live ones, 0 when closed. bytes: of its primaries.
    filter:      what the aliases it was reached by let through, None for everything.
    data_stream: the name of the stream that it backs, None for none.
    routed_by:   the alias by which a search reaches only some of its shards, "" for none.
    """

    name: str
    mapping: Mapping[str, Any]
    settings: Mapping[str, Any]
    closed: bool
    documents: int
    bytes: int
    filter: Mapping[str, Any] | None
    data_stream: str | None
    routed_by: str = ""

    @property
    def not_writable(self) -> str:
        """Why documents cannot be changed, "" when they can."""
        if self.closed:
            return "it is closed"
        blocks = self.settings.get("blocks", {})
        blocked = [name for name, value in blocks.items() if str(value) == "true" and name != "metadata"]
        return f"it has the block index.blocks.{blocked[0]}" if blocked else ""


def look_up(client: Any, expression: str) -> list[IndexFacts]:
    """The indexes that a search of a name, or of several joined by commas, would see, and those that are closed.

    They come in the order of their names. Raises IndexUnusable when one of the names means nothing.
    """
    nothing = IndexUnusable(expression, "there is no such index, alias or data stream", "see GET _cat/indices")
    try:
        found = client.indices.get(index=expression, expand_wildcards="open,closed")
    except Exception as error:
        raise (nothing if status_of(error) == 404 else error) from None
    if not found:
        raise nothing
    listed = client.cat.indices(
        index=expression,
        format="json",
        h="index,status,docs.count,pri.store.size",
        bytes="b",
        expand_wildcards="open,closed",
    )
    counted = {line["index"]: line for line in listed}
    searched = _searched(client, expression)
    facts = [
        _facts(name, about, counted.get(name, {}), searched.get(name, {}), expression)
        for name, about in sorted(found.items())
    ]
    if not (seen := [one for one in facts if one.closed or one.name in searched]):
        raise nothing
    return seen


def _searched(client: Any, expression: str) -> Mapping[str, Any]:
    """The indexes that a search would see, each with the aliases it is reached by and what they let through."""
    answer = client.search_shards(index=expression, ignore_unavailable=True, allow_no_indices=True)
    indexes: Mapping[str, Any] = answer["indices"]
    return indexes


def _facts(
    name: str, about: Mapping[str, Any], line: Mapping[str, Any], searched: Mapping[str, Any], expression: str
) -> IndexFacts:
    stream = about.get("data_stream")
    own = any(fnmatchcase(one, term) for term in expression.split(",") for one in (name, stream) if one)
    aliases = [(key, about.get("aliases", {}).get(key, {})) for key in searched.get("aliases", ()) if not own]
    return IndexFacts(
        name=name,
        mapping=about.get("mappings", {}),
        settings=about.get("settings", {}).get("index", {}),
        closed=line.get("status") == "close",
        documents=int(line.get("docs.count") or 0),
        bytes=int(line.get("pri.store.size") or 0),
        filter=searched.get("filter"),
        data_stream=stream,
        routed_by=next((key for key, alias in aliases if alias.get("search_routing")), ""),
    )
