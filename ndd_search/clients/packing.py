"""Lets a client's transport pack the sketches of an answer before it parses it (see `rest.packing`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import MethodType
from typing import Any

from ndd_search.rest.packing import packed
from ndd_search.rest.request import Request


class PackingParser:
    """Parses answers with a transport's own parser."""

    def __init__(self, parser: Any, field: str) -> None:
        self._parser, self._field = parser, field

    def loads(self, text: Any, *kind: Any) -> Any:
        """Parse an answer. kind: its media type."""
        return self._parser.loads(packed(text, self._field), *kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)


def packing(perform_request: Callable[..., Any], transport: Any, request: Request, parser: str) -> Callable[..., Any]:
    """Return a transport's perform_request that packs the sketches in the answer to a request.

    parser: name of the transport's attribute that parses answers.
    The transport itself is not changed, because other calls use it at the same time: the method is called on a second
    object with the same class and attributes, but for the parser. A perform_request that is not the transport's own
    method is returned unchanged, and so is that of a transport that parses otherwise, or has slots, which the second
    object would not share.
    """
    is_own = type(perform_request) is MethodType and perform_request.__self__ is transport
    kind: type = type(transport)
    view_class = _view_class(kind, parser) if is_own and request.packs and hasattr(transport, parser) else None
    if view_class is None:
        return perform_request
    view: Any = object.__new__(view_class)
    object.__setattr__(view, "__dict__", vars(transport))
    object.__setattr__(view, parser, PackingParser(getattr(transport, parser), request.packs))
    return MethodType(perform_request.__func__, view)  # type: ignore[attr-defined]


@lru_cache
def _view_class(kind: type, parser: str) -> type | None:
    if any(vars(base).get("__slots__") for base in kind.__mro__):
        return None
    slot = type("_Slot", (), {"__slots__": (parser,)})  # a slot takes precedence over the shared `__dict__`
    return type(kind.__name__, (slot, kind), {"__slots__": (), "__module__": kind.__module__})
