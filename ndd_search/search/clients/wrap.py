"""Wraps a search client: `client = ndd_search.wrap(client)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, SupportsIndex, TypeVar, Unpack

from ndd_search.search.clients.hook import HookedTransport, perform, perform_async
from ndd_search.search.flow.driver import Driver
from ndd_search.search.flow.settings import Settings, WrapSettings, settings_of

Client = TypeVar("Client")

# Package of a client -> our module for it, and the attribute that holds the client's transport.
_FAMILIES = {"elasticsearch": ("elasticsearch", "_transport"), "opensearchpy": ("opensearch", "transport")}


def wrap(client: Client, *, enabled: bool = True, **settings: Unpack[WrapSettings]) -> Client:
    """Collapse the near-duplicates in every search through a client. Returns the same client.

    client:      Elasticsearch, AsyncElasticsearch, OpenSearch or AsyncOpenSearch. Wrapping it again changes settings.
    recipe:      of the sketches that are compared (Recipe()). field: the object that holds them ("ndd").
    cache:       True: 64 MB in this process, for ten seconds; False: none; or a cache that other clients may share,
                 such as RedisCache(URL) or ndd_search.core.paging.cache.MemoryCache(seconds=60). A write through this
                 client invalidates earlier entries.
    time_budget: seconds after which a search fetches no more hits, None for no limit.
    frequency_table: for min_similarity="auto". True reads the table that `ndd-search backfill` stored for an index, or
                 counts one in a sample of 5,000 of its documents, once an hour; False uses no table; or a
                 FrequencyTable of your own.
    observers:   each is given the facts of every search: PrometheusMetrics(), OpenTelemetrySpans(), or an
                 ndd_search.search.flow.observer.Observer of your own.
    indexes:     settings by pattern of index names: {"news*": {"text": ["title", "body"], "window": 200}, "logs*":
                 {"enabled": False}}. Documents written to indexes of a pattern with `text` through the client (index,
                 create, update, bulk) get a sketch of these fields. A pattern also takes keys, numbers and storage, as
                 with_sketches does, recipe, field, enabled, and CollapseOptions. The most specific pattern wins. A
                 search over indexes whose searches have different settings is left alone.
    cursor_key:  a secret that signs the cursors of searches, equal in all processes that continue them; None for a
                 checksum.
    items:       an Items schema: hits are compared by their fields in place of sketches, which the index need not hold.
                 The fields are fetched beside those of the search. min_similarity is then a probability above 0 and
                 below 1, "auto" that of the schema.
    options:     CollapseOptions.
    others:      CollapseOptions by name: window=100, mode="group", min_similarity="auto", ...; also preset="messages",
                 or one in a file, preset=ndd_search.preset("tuned.toml"): its options, and its recipe and indexes
                 unless they are given, too.
    enabled:     False undoes an earlier `wrap`.
    A search may set its own options in its body, "ndd": {"mode": "annotate"}, or "ndd": false to be left alone.
    `with ndd_search.options(...)` does the same for every search inside it. A search that does not rank its hits
    (`match_all`, filters alone, a sort by `_doc`) is left alone unless its body has "ndd": true or options, or
    also=["unranked"].
    Raises TypeError for any other client and for an unknown setting, ValueError for an invalid value.
    """
    module, attribute = _family(client)
    driver = Driver(settings_of(**settings))
    transport = getattr(unwrap(client), attribute)
    if not enabled:
        return client
    if isinstance(transport, HookedTransport):
        driver.settings.serve(transport, transport.call.family)
        transport.ndd = driver
    else:
        setattr(client, attribute, _view(transport, driver, module))
    return client


def unwrap(client: Client) -> Client:
    """Undo `wrap`. Returns the client; a client that is not wrapped is not changed."""
    _, attribute = _family(client)
    transport = getattr(client, attribute)
    if isinstance(transport, View):
        setattr(client, attribute, transport.inner)
    elif isinstance(transport, HookedTransport):
        transport.ndd = None
    return client


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
    raise TypeError(f"wrap takes a client of elasticsearch-py or opensearch-py, got {given}")


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
