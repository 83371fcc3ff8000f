"""Reading documents so that those can be told apart whose numbers an update by the engine would change.

An update re-serialises `_source`: the engine reads decimals as doubles and writes them again. 3.14159265358979323846
loses its last digits, and 1e400 becomes the text "Infinity". Whole numbers of any length are kept.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from ndd_search.clients.wrap import unwrap

INEXACT = "ndd_search: an update would change its numbers"  # a key of such hits, beside "_source"
_SURE = 16  # characters of a decimal with at most 15 digits, which a double always keeps


class _Changed(float):
    """A decimal that a double does not keep."""


def exact_reader(client: Any) -> Any:
    """A client that reads through the same connections, and marks hits with INEXACT.

    client: of elasticsearch-py or opensearch-py, synchronous, wrapped or not; it stays as it is. The reader is not
    wrapped.
    """
    reader = copy.copy(client)
    attribute = "_transport" if hasattr(reader, "_transport") else "transport"
    setattr(reader, attribute, copy.copy(getattr(reader, attribute)))  # unwrapping may change the transport itself
    transport = copy.copy(getattr(unwrap(reader), attribute))
    loader = "serializers" if hasattr(transport, "serializers") else "deserializer"
    setattr(transport, loader, _Loader(getattr(transport, loader)))
    setattr(reader, attribute, transport)
    return reader


class _Loader:
    """Stands in front of a client's own deserializers, and reads JSON itself."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # not there yet, while a copy is made
            raise AttributeError(name)
        return getattr(self._inner, name)

    def loads(self, data: bytes | str, mimetype: str | None = None) -> Any:
        """As of the client's own, for JSON with INEXACT hits marked."""
        if not data or "json" not in (mimetype or "json") or "ndjson" in (mimetype or ""):
            return self._inner.loads(data, mimetype)
        some_changed = False

        def decimal(written: str) -> float:
            nonlocal some_changed
            number = float(written)
            if _is_kept(written, number):
                return number
            some_changed = True
            return _Changed(number)

        try:
            answer = json.loads(data, parse_float=decimal)
        except ValueError:
            return self._inner.loads(data, mimetype)  # which raises the client's own error
        if some_changed:
            for hit in answer.get("hits", {}).get("hits", ()):
                if _holds_changed(hit.get("_source")):
                    hit[INEXACT] = True
        return answer


def _is_kept(written: str, number: float) -> bool:
    """Whether a decimal is the same number once it was read as a double and written again."""
    if len(written) <= _SURE and "e" not in written and "E" not in written:
        return True
    return repr(number) == written or (isfinite(number) and Decimal(repr(number)) == Decimal(written))


def _holds_changed(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_changed, value.values()))
    if isinstance(value, list):
        return any(map(_holds_changed, value))
    return isinstance(value, _Changed)
