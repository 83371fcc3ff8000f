"""Resolves a name (index, alias, data stream or pattern) to concrete indexes and their properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from inspect import iscoroutinefunction
from typing import Any

from ndd_search.errors import IndexUnusable
from ndd_search.indexing.rate_and_retries import status_of


@dataclass(frozen=True)
class IndexFacts:
    """One concrete index.

    mapping, settings: as the engine returns them; settings is the object under "index".
    closed:      whether it is closed to reads and writes.
    documents:   number of live documents, 0 if closed. bytes: size of its primary shards.
    filter:      the filter of the aliases that the name resolved by, None without one.
    data_stream: the name of the data stream that it backs, None if it backs none.
    routed_by:   an alias in the name through which a search reaches only some of its shards, "" if there is none.
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
        """Why its documents cannot be changed, "" if they can."""
        if self.closed:
            return "it is closed"
        blocks = self.settings.get("blocks", {})
        blocked = [name for name, value in blocks.items() if str(value) == "true" and name != "metadata"]
        return f"it has the block index.blocks.{blocked[0]}" if blocked else ""


def check_synchronous(client: Any) -> None:
    """Raise TypeError for an asynchronous client."""
    if iscoroutinefunction(getattr(getattr(client, "transport", None), "perform_request", None)):
        raise TypeError(f"a synchronous client is needed, Elasticsearch(URL) or OpenSearch(URL), got {client!r}")


def look_up(client: Any, expression: str) -> list[IndexFacts]:
    """Return the indexes that a search of an expression would reach, and closed ones that match it, ordered by name.

    expression: a name, or several joined by commas. Raises IndexUnusable if one of the names matches nothing.
    """
    check_synchronous(client)
    no_match = IndexUnusable(expression, "there is no such index, alias or data stream", "GET _cat/indices lists them")
    try:
        found = client.indices.get(index=expression, expand_wildcards="open,closed")
    except Exception as error:
        raise (no_match if status_of(error) == 404 else error) from None
    if not found:
        raise no_match
    listed = client.cat.indices(
        index=expression,
        format="json",
        h="index,status,pri.store.size",
        bytes="b",
        expand_wildcards="open,closed",
    )
    stored = {line["index"]: line for line in listed}
    # The indexes that a search would reach, each with the aliases that it uses and their filters.
    searched = client.search_shards(index=expression, ignore_unavailable=True, allow_no_indices=True)["indices"]
    facts = [
        _facts(client, name, about, stored.get(name, {}), searched.get(name, {}), expression)
        for name, about in sorted(found.items())
    ]
    if not (matching := [index for index in facts if index.closed or index.name in searched]):
        raise no_match
    return matching


def _facts(
    client: Any,
    name: str,
    about: Mapping[str, Any],
    line: Mapping[str, Any],
    searched: Mapping[str, Any],
    expression: str,
) -> IndexFacts:
    closed = line.get("status") == "close"
    stream = about.get("data_stream")
    own = any(fnmatchcase(part, term) for term in expression.split(",") for part in (name, stream) if part)
    aliases = [(key, about.get("aliases", {}).get(key, {})) for key in searched.get("aliases", ()) if not own]
    return IndexFacts(
        name=name,
        mapping=about.get("mappings", {}),
        settings=about.get("settings", {}).get("index", {}),
        closed=closed,
        documents=0 if closed else client.count(index=name)["count"],  # _cat counts nested ones, too
        bytes=int(line.get("pri.store.size") or 0),
        filter=searched.get("filter"),
        data_stream=stream,
        routed_by=next((key for key, alias in aliases if alias.get("search_routing")), ""),
    )
