"""Reads the JSON of a client's answers in another way: marks documents whose numbers a partial update would change.

An update serialises `_source` again: the engine parses decimals as doubles and writes those. 3.14159265358979323846
loses its last digits, and 1e400 becomes the text "Infinity". Integers of any length are kept.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from ndd_search.core.exact_numbers import WrittenNumber, holds_written
from ndd_search.search.clients.wrap import unwrap

INEXACT = "ndd_search: an update would change its numbers"  # a key of such hits, beside "_source"


def exact_reader(client: Any) -> Any:
    """Return an unwrapped client on the same connections that marks hits with INEXACT. client: as for with_json."""
    return with_json(client, _marked)


def with_json(client: Any, parse: Callable[[bytes | str], Any]) -> Any:
    """Return an unwrapped client on the same connections that parses JSON with a function.

    client: of elasticsearch-py or opensearch-py, synchronous, wrapped or not; it is not changed.
    parse:  raises ValueError for what is no JSON; the client then raises its own error.
    """
    reader = copy.copy(client)
    attribute = "_transport" if hasattr(reader, "_transport") else "transport"
    setattr(reader, attribute, copy.copy(getattr(reader, attribute)))  # unwrapping may change the transport itself
    transport = copy.copy(getattr(unwrap(reader), attribute))
    loader = "serializers" if hasattr(transport, "serializers") else "deserializer"
    setattr(transport, loader, _Loader(getattr(transport, loader), parse))
    setattr(reader, attribute, transport)
    return reader


class _Loader:
    """Replaces a client's deserializers: parses JSON itself and delegates everything else."""

    def __init__(self, inner: Any, parse: Callable[[bytes | str], Any]) -> None:
        self._inner, self._parse = inner, parse

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # not set yet while copy.copy creates the object
            raise AttributeError(name)
        return getattr(self._inner, name)

    def loads(self, data: bytes | str, mimetype: str | None = None) -> Any:
        """Deserialize a response like the client, but JSON with `parse`."""
        if not data or "json" not in (mimetype or "json") or "ndjson" in (mimetype or ""):
            return self._inner.loads(data, mimetype)
        try:
            return self._parse(data)
        except ValueError:
            return self._inner.loads(data, mimetype)  # raises the error of the client


def _marked(data: bytes | str) -> Any:
    """Parse a response, and mark its hits with INEXACT."""
    some_changed = False

    def decimal(written: str) -> float:
        nonlocal some_changed
        number = WrittenNumber.of(written)
        some_changed = some_changed or isinstance(number, WrittenNumber)
        return number

    answer = json.loads(data, parse_float=decimal)
    if some_changed:
        for hit in answer.get("hits", {}).get("hits", ()):
            if holds_written(hit.get("_source")):
                hit[INEXACT] = "a number has more digits than the engine keeps in an update"
    return answer
