"""Lets a client's transport parse answers without the sketches of their hits (see `rest.answers`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import MethodType
from typing import Any

from ndd_search.core.sketching.field import StoredSketches
from ndd_search.search.rest.answers import CutSketches, parsed
from ndd_search.search.rest.request import Request

Cutting = tuple[Callable[..., Any], Callable[[Any], CutSketches]]


class CuttingParser:
    """Parses answers with a transport's own parser, and keeps the sketches that were cut out of the latest one."""

    def __init__(self, parser: Any, stored: StoredSketches) -> None:
        self._parser, self._stored = parser, stored
        self._latest: tuple[Any, CutSketches] = None, ()

    def loads(self, text: Any, *kind: Any) -> Any:
        """Parse an answer. kind: its media type."""
        parse = (lambda rest: self._parser.loads(rest, *kind)) if kind else self._parser.loads
        self._latest = parsed(text, parse, self._stored)
        return self._latest[0]

    def sketches_of(self, body: Any) -> CutSketches:
        """Return the sketches that were cut out of an answer. A transport may return an earlier one than the latest."""
        return self._latest[1] if body is self._latest[0] else ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)


def _nothing_cut(body: Any) -> CutSketches:
    return ()


@dataclass(frozen=True)
class TransportKind:
    """The transports of a client.

    parser: name of the attribute that parses answers.
    perform_requests: the methods of the client's own classes. A transport with another method keeps the sketches in the
    answer, because that method may change the hits.
    """

    parser: str
    perform_requests: tuple[Callable[..., Any], ...]

    def cutting(self, perform_request: Callable[..., Any], transport: Any, request: Request) -> Cutting:
        """Return a perform_request that cuts the sketches out of the answer to a request, and a function to get them.

        The transport itself is not changed, because other calls use it at the same time: the method is called on a
        second object with the same class and attributes, but for the parser. A perform_request that is not the
        transport's own method is returned unchanged, and so is that of a transport that parses otherwise, or has
        slots, which the second object would not share.
        """
        function = perform_request.__func__ if type(perform_request) is MethodType else None
        is_own = function in self.perform_requests and getattr(perform_request, "__self__", None) is transport
        if function is None or not is_own or request.cut is None or not hasattr(transport, self.parser):
            return perform_request, _nothing_cut
        kind: type = type(transport)
        if (view_class := _view_class(kind, self.parser)) is None:
            return perform_request, _nothing_cut
        view: Any = object.__new__(view_class)
        parser = CuttingParser(getattr(transport, self.parser), request.cut)
        object.__setattr__(view, "__dict__", vars(transport))
        object.__setattr__(view, self.parser, parser)
        return MethodType(function, view), parser.sketches_of


@lru_cache
def _view_class(kind: type, parser: str) -> type | None:
    if any(vars(base).get("__slots__") for base in kind.__mro__):
        return None
    slot = type("_Slot", (), {"__slots__": (parser,)})  # a slot takes precedence over the shared `__dict__`
    return type(kind.__name__, (slot, kind), {"__slots__": (), "__module__": kind.__module__})
