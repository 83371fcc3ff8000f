"""Hooks the driver into a client's transport: what the modules of both clients share.

A call of the client becomes a `Request`. Each request that the driver sends for it goes through the transport's own
perform_request, with the caller's arguments but for what the request changes, and its answer is parsed without the
sketches of its hits (see `rest.answers`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MethodType
from typing import Any, ClassVar, Self, Unpack

from ndd_search.core.sketching.field import StoredSketches
from ndd_search.search.flow.driver import Driver
from ndd_search.search.flow.settings import WrapSettings, settings_of
from ndd_search.search.rest.answers import Answer, CutSketches, parsed
from ndd_search.search.rest.point_in_time import Family
from ndd_search.search.rest.request import Request

Cutting = tuple[Callable[..., Any], Callable[[Any], CutSketches]]


class ClientCall(ABC):
    """One call of a client. request: as the caller made it. timeout: his own for one request in seconds, None for none.

    family: of the engine. kind: of the transport.
    """

    family: ClassVar[Family]
    kind: ClassVar[TransportKind]
    request: Request
    timeout: float | None

    def __init__(self, perform_request: Callable[..., Any], transport: Any) -> None:
        self.transport, self._perform_request = transport, perform_request

    def begin(self, request: Request) -> tuple[Any, Callable[[Any], Answer]]:
        """Send a request. Returns what perform_request does, perhaps to be awaited, and how its result is read."""
        send, sketches_of = self.kind.cutting(self._perform_request, self.transport, request)
        arguments, others = self.arguments(request)
        return send(*arguments, **others), lambda response: self.answer(response, sketches_of)

    @abstractmethod
    def arguments(self, request: Request) -> tuple[tuple[str, str], dict[str, Any]]:
        """Return the arguments of perform_request that send a request."""

    @abstractmethod
    def answer(self, response: Any, sketches_of: Callable[[Any], CutSketches]) -> Answer:
        """Return the answer in what perform_request has returned."""

    @abstractmethod
    def response(self, answer: Answer) -> Any:
        """Return an answer as perform_request would return it."""

    @abstractmethod
    def serialized(self, body: Any) -> Any:
        """Return a body as the client writes it."""

    def is_writable(self, body: Any) -> bool:
        """Return whether the client can serialize a body."""
        try:
            self.serialized(body)
        except Exception:
            return False
        return True


def perform(driver: Driver, call: ClientCall) -> Any:
    """Answer one call of a client as its transport would."""

    def send(request: Request) -> Answer:
        response, read = call.begin(request)
        return read(response)

    return call.response(driver.handle(call.request, send, call.is_writable, call.timeout))


async def perform_async(driver: Driver, call: ClientCall) -> Any:
    """Do the same for an asynchronous client."""

    async def send(request: Request) -> Answer:
        response, read = call.begin(request)
        return read(await response)

    return call.response(await driver.handle_async(call.request, send, call.is_writable, call.timeout))


class HookedTransport:
    """Adds the driver to a client's transport class. ndd: the driver, None once the client is unwrapped."""

    call: Any  # the class of its calls
    _settings: Mapping[str, Any] = {}

    def __init__(self, *arguments: Any, **others: Any) -> None:
        self.ndd: Driver | None = Driver(settings_of(**self._settings))
        super().__init__(*arguments, **others)  # needs self.ndd: with sniff_on_start it sends a request
        self.ndd.settings.serve(self, self.call.family)

    @classmethod
    def using(cls, **settings: Unpack[WrapSettings]) -> type[Self]:
        """Return this class with settings of `ndd_search.wrap`. Raises TypeError or ValueError for invalid ones."""
        settings_of(**settings)  # raises early
        return type(cls.__name__, (cls,), {"_settings": settings})

    def perform_request(self, *arguments: Any, **others: Any) -> Any:
        """As in the client's own transport class."""
        inner = super().perform_request  # type: ignore[misc]
        if self.ndd is None:
            return inner(*arguments, **others)
        return perform(self.ndd, self.call(inner, self, *arguments, **others))


class AsyncHookedTransport(HookedTransport):
    """The same for an asynchronous client."""

    async def perform_request(self, *arguments: Any, **others: Any) -> Any:
        """As in the client's own transport class."""
        inner = super(HookedTransport, self).perform_request  # type: ignore[misc]
        if self.ndd is None:
            return await inner(*arguments, **others)
        return await perform_async(self.ndd, self.call(inner, self, *arguments, **others))


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
