"""What a cluster says of the indexes behind a name: an index, an alias, a data stream, a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ndd_search.errors import IndexUnusable
from ndd_search.indexing.patience import status_of


@dataclass(frozen=True)
class IndexFacts:
    """One concrete index.

    mapping, settings: as the engine returns them; settings is what is under "index".
    closed:      nobody can read or write it.
    documents:   live ones, 0 when closed. bytes: of its primaries.
    filter:      what the alias it was reached by lets through, None for everything.
    data_stream: the name of the stream that it backs, None for none.
    """

    name: str
    mapping: Mapping[str, Any]
    settings: Mapping[str, Any]
    closed: bool
    documents: int
    bytes: int
    filter: Mapping[str, Any] | None
    data_stream: str | None

    @property
    def not_writable(self) -> str:
        """Why documents cannot be changed, "" when they can."""
        if self.closed:
            return "it is closed"
        blocks = self.settings.get("blocks", {})
        blocked = [name for name, value in blocks.items() if str(value) == "true" and name != "metadata"]
        return f"it has the block index.blocks.{blocked[0]}" if blocked else ""


def look_up(client: Any, expression: str) -> list[IndexFacts]:
    """The indexes behind a name or a list of names joined by commas, by name.

    Raises IndexUnusable when one of the names means nothing.
    """
    nothing = IndexUnusable(expression, "there is no such index, alias or data stream", "see GET _cat/indices")
    try:
        found = client.indices.get(index=expression, expand_wildcards="all")
    except Exception as error:
        raise (nothing if status_of(error) == 404 else error) from None
    if not found:
        raise nothing
    listed = client.cat.indices(
        index=expression,
        format="json",
        h="index,status,docs.count,pri.store.size",
        bytes="b",
        expand_wildcards="all",
    )
    counted = {line["index"]: line for line in listed}
    return [_facts(name, about, counted.get(name, {}), expression) for name, about in sorted(found.items())]


def _facts(name: str, about: Mapping[str, Any], line: Mapping[str, Any], expression: str) -> IndexFacts:
    aliases = about.get("aliases", {})
    asked = expression.split(",")
    filters = [alias.get("filter") for key, alias in aliases.items() if key in asked]
    filtered = filters and None not in filters and name not in asked
    return IndexFacts(
        name=name,
        mapping=about.get("mappings", {}),
        settings=about.get("settings", {}).get("index", {}),
        closed=line.get("status") == "close",
        documents=int(line.get("docs.count") or 0),
        bytes=int(line.get("pri.store.size") or 0),
        filter={"bool": {"should": filters, "minimum_should_match": 1}} if filtered else None,
        data_stream=about.get("data_stream"),
    )
