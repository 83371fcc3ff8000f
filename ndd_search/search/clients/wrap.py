"""Wraps a search client, `client = ndd_search.wrap(client)`: what the modules of both clients share.

A call of the client becomes a `Request`. Each request that the driver sends for it goes through the transport's own
perform_request, with the caller's arguments but for what the request changes, and its answer is parsed without the
sketches of its hits (see `rest.read_answer`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from importlib import import_module
from inspect import iscoroutinefunction
from types import MethodType
from typing import Any, ClassVar, SupportsIndex, TypeVar, Unpack

from ndd_search.core.sketching.stored_sketch import StoredSketches
from ndd_search.search.flow.client_settings import Settings, WrapSettings, settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.point_in_time import Family
from ndd_search.search.rest.read_answer import Answer, CutSketches, parsed
from ndd_search.search.rest.read_request import Request

Client = TypeVar("Client")
Cutting = tuple[Callable[..., Any], Callable[[Any], CutSketches]]

# Package of a client -> our module for it, and the attribute that holds the client's transport.
_FAMILIES = {"elasticsearch": ("elasticsearch", "_transport"), "opensearchpy": ("opensearch", "transport")}


def wrap(client: Client, **settings: Unpack[WrapSettings]) -> Client:
    """Collapse the near-duplicates in every search through a client. Returns the same client.

    client:      Elasticsearch, AsyncElasticsearch, OpenSearch or AsyncOpenSearch. Wrapping it again changes settings.
    recipe:      of the sketches that are compared.
    cache:       where pages are cached. True: 64 MB in this process, for ten seconds; False: nowhere; or a cache that
                 other clients may share, such as RedisCache(URL) or
                 ndd_search.core.paging.cache.MemoryCache(seconds=60). A write through this client invalidates earlier
                 entries.
    time_budget: seconds after which a search fetches no more hits, None for no limit. If there are none by then, the
                 caller's own request is sent.
    frequency_table: what min_similarity="auto" takes for common. True reads the table that `ndd-search backfill` stored
                 for an index, once an hour for each caller, or else counts one in the hits of a search; False uses no
                 table; or a FrequencyTable of your own.
    observers:   each is given the facts of every search: PrometheusMetrics(), OpenTelemetrySpans(), or an
                 ndd_search.search.flow.observer.Observer of your own.
    indexes:     settings by pattern of index names: {"news*": {"text": ["title", "body"], "window": 200}, "logs*":
                 {"enabled": False}}. Documents written to indexes of a pattern with `text` through the client (index,
                 create, update, bulk) get a sketch of these fields. A pattern also takes keys and numbers, as
                 with_sketches does, `field` (the object that holds sketches, "ndd"), recipe, enabled, and
                 CollapseOptions. The most specific pattern wins. A search over indexes whose searches have different
                 settings is left alone.
    cursor_key:  what signs the cursors of searches, equal in all processes that continue them; None for a checksum.
    items:       a schema by which hits are compared as records, by their fields in place of sketches, which the index
                 need not hold. The fields are fetched beside those of the search. min_similarity is then a probability
                 above 0 and below 1, "auto" that of the schema.
    others:      CollapseOptions by name: window=100, mode="group", min_similarity="auto", ...; also preset="messages",
                 or one in a file, preset=ndd_search.preset("tuned.toml"): its options, and its recipe and indexes
                 unless they are given, too.
    enabled:     which searches are collapsed: True for those that rank their hits; beside them those of a list,
                 "unranked" (`match_all`, filters alone, a sort by `_doc`), with "pipelines" of OpenSearch that only
                 filter, normalise or rerank, and search "templates", which it renders; False undoes an earlier `wrap`.
    A search may set its own options in its body, "ndd": {"mode": "annotate"}, or "ndd": false to be left alone.
    `with ndd_search.options(...)` does the same for every search inside it. A search whose
    body has "ndd": true or options is always collapsed.
    Raises TypeError for any other client and for an unknown setting, ValueError for an invalid value.
    """
    module, attribute = _family(client)
    driver = Driver(settings_of(**settings))
    transport = getattr(unwrap(client), attribute)
    if driver.settings.enabled is not False:
        setattr(client, attribute, _view(transport, driver, module))
    return client


def unwrap(client: Client) -> Client:
    """Undo `wrap`. Returns the client; a client that is not wrapped is not changed."""
    _, attribute = _family(client)
    transport = getattr(client, attribute)
    if isinstance(transport, View):
        setattr(client, attribute, transport.inner)
    return client


def hooked(kind: Any, module: str, **settings: Unpack[WrapSettings]) -> Any:
    """Return a class of a client's transports, for `transport_class=`, that creates them with settings of `wrap`.

    kind: the client's own class. module: of ours, for the client. Raises as `wrap` does.
    """
    settings_of(**settings)  # raises early
    names = {"_hook": (module, settings), "__module__": kind.__module__, "__doc__": kind.__doc__}
    return _Hooked(kind.__name__, (kind,), names)


class _Hooked(type):
    """The class of such classes, and of those that are derived from them."""

    _hook: tuple[str, WrapSettings]

    def __call__(cls, *arguments: Any, **others: Any) -> View:
        module, settings = cls._hook
        return _view(super().__call__(*arguments, **others), Driver(settings_of(**settings)), module)

    def using(cls, **settings: Unpack[WrapSettings]) -> Any:
        """Return the class with other settings."""
        return hooked(cls, cls._hook[0], **settings)


def settings_in(client: object) -> Settings:
    """Return the settings of a wrapped client. Raises TypeError for one that is not wrapped."""
    _, attribute = _family(client)
    driver = getattr(getattr(client, attribute), "ndd", None)
    if not isinstance(driver, Driver):
        raise TypeError(f"this takes a client that ndd_search.wrap has wrapped, got {type(client).__name__}")
    return driver.settings


def _family(client: object) -> tuple[str, str]:
    for kind in type(client).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in _FAMILIES and hasattr(client, _FAMILIES[package][1]):
            return _FAMILIES[package]
    given = f"{type(client).__module__}.{type(client).__name__}"
    wanted = "one client of elasticsearch-py or opensearch-py, wrap(Elasticsearch(URL))"
    raise TypeError(f"this takes {wanted}, got {given}")


class View:
    """A second object for a client's transport: same class and attributes, but its own perform_request.

    Both share one `__dict__`, so an attribute set on one of them is set on both. Slots are not shared: other clients
    with the same transport are not affected, and `unwrap` restores the transport unchanged. A slot takes precedence
    over `__dict__`, so this perform_request is called even if one was set on the transport itself.
    """

    __slots__ = ("_module", "inner", "ndd", "perform_request")

    inner: Any
    ndd: Driver
    _module: str
    perform_request: Callable[..., Any]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return _view, (self.inner, self.ndd, self._module)


def _view(transport: Any, driver: Driver, module: str) -> View:
    kind: type = type(transport)
    view: View = object.__new__(_view_class(kind))
    object.__setattr__(view, "__dict__", vars(transport))
    view.inner, view.ndd, view._module = transport, driver, module
    view.perform_request = _hooked(transport, driver, module)
    return view


@lru_cache
def _view_class(kind: type) -> type[View]:
    return type(kind.__name__, (View, kind), {"__slots__": (), "__module__": kind.__module__, "__doc__": kind.__doc__})


def _hooked(transport: Any, driver: Driver, module: str) -> Callable[..., Any]:
    """Return a perform_request with our hook. The transport's own is looked up per call, as others may replace it."""
    call = import_module(f"ndd_search.search.clients.{module}").Call
    driver.settings.serve(transport, call.family)

    def perform_request(*arguments: Any, **others: Any) -> Any:
        return perform(driver, call(transport.perform_request, transport, *arguments, **others))

    async def perform_request_async(*arguments: Any, **others: Any) -> Any:
        return await perform_async(driver, call(transport.perform_request, transport, *arguments, **others))

    asynchronous = any(map(iscoroutinefunction, (transport.perform_request, getattr(transport, "close", None))))
    return wraps(transport.perform_request)(perform_request_async if asynchronous else perform_request)


class ClientCall(ABC):
    """One call of a client. request: as the caller made it. timeout: his own for one request in seconds, None for none.

    family: of the engine. kind: of the transport.
    """

    family: ClassVar[Family]
    kind: ClassVar[TransportKind]
    request: Request
    timeout: float | None
    transport: Any
    _perform_request: Callable[..., Any]

    def begin(self, request: Request) -> tuple[Any, Callable[[Any], CutSketches]]:
        """Send a request. Returns what perform_request does, perhaps to be awaited, and the rest for `answer`."""
        send, sketches_of = self.kind.cutting(self._perform_request, self.transport, request)
        arguments, others = self.arguments(request)
        return send(*arguments, **others), sketches_of

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
        response, sketches_of = call.begin(request)
        return call.answer(response, sketches_of)

    return call.response(driver.handle(call.request, send, call.is_writable, call.timeout))


async def perform_async(driver: Driver, call: ClientCall) -> Any:
    """Do the same for an asynchronous client."""

    async def send(request: Request) -> Answer:
        response, sketches_of = call.begin(request)
        return call.answer(await response, sketches_of)

    return call.response(await driver.handle_async(call.request, send, call.is_writable, call.timeout))


class CuttingParser:
    """Parses answers with a transport's own parser, and keeps the sketches that were cut out of the latest one."""

    def __init__(self, parser: Any, stored: StoredSketches) -> None:
        self._parser, self._stored = parser, stored
        self._latest: tuple[Any, CutSketches] = None, ()

    def loads(self, text: Any, *kind: Any) -> Any:
        """Parse an answer. kind: its media type."""
        self._latest = parsed(text, self._parser.loads, self._stored, *kind)
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
        if (view_class := _parsing_class(kind, self.parser)) is None:
            return perform_request, _nothing_cut
        view: Any = object.__new__(view_class)
        parser = CuttingParser(getattr(transport, self.parser), request.cut)
        object.__setattr__(view, "__dict__", vars(transport))
        object.__setattr__(view, self.parser, parser)
        return MethodType(function, view), parser.sketches_of


@lru_cache
def _parsing_class(kind: type, parser: str) -> type | None:
    if any(vars(base).get("__slots__") for base in kind.__mro__):
        return None
    slot = type("_Slot", (), {"__slots__": (parser,)})  # a slot takes precedence over the shared `__dict__`
    return type(kind.__name__, (slot, kind), {"__slots__": (), "__module__": kind.__module__})
