"""One line in front of a search client: `client = ndd_search.wrap(client)`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from ndd_search.engines.hook import Hook, Hooked
from ndd_search.engines.settings import settings_of

Client = TypeVar("Client")

# The package of a client, the module of ours that knows it, and the attribute that holds its transport.
_FAMILIES = {"elasticsearch": ("elasticsearch", "_transport"), "opensearchpy": ("opensearch", "transport")}


def wrap(client: Client, **settings: Any) -> Client:
    """Collapse the near-duplicates of every search through a client, whoever sends it; returns that client.

    client:      Elasticsearch, AsyncElasticsearch, OpenSearch or AsyncOpenSearch. Wrapping it again changes settings.
    recipe:      whose sketches are compared (Recipe()). field: the object that holds them ("ndd").
    cache:       True: 64 MB in this process, ten seconds; False; or a cache.Cache, which other clients may share. What
                 was found before a write through this client is not used after it.
    time_budget: seconds after which a search asks for no more hits, None for no limit.
    plain_for:   seconds during which an index without sketches is searched as if the client were not wrapped (60).
    common:      for min_similarity="auto": True counts, once an hour, which sketch values many documents of an index
                 hold, in a sample of 5,000; False decides without; or a CommonValues of your own.
    settings:    a file of CollapseOptions that `ndd-search tune` wrote, or that looks like it (see settings_file).
    others:      CollapseOptions by name: window=100, mode="group", min_similarity="auto", ...
    A search may bring its own options in its body, "ndd": {"mode": "annotate"}, or "ndd": false to be left alone; so
    does every search inside `with ndd_search.options(...)`.
    Raises TypeError for what is no such client and for an unknown setting, ValueError for a value that cannot be.
    """
    module, attribute = _family(client)
    hook = Hook(settings_of(**settings))
    transport = getattr(unwrap(client), attribute)
    if isinstance(transport, Hooked):
        transport.ndd = hook
    else:
        setattr(client, attribute, _WrappedTransport(transport, hook, module))
    return client


def unwrap(client: Client) -> Client:
    """Take back `wrap`; returns the client. A client that is not wrapped stays as it is."""
    _, attribute = _family(client)
    transport = getattr(client, attribute)
    if isinstance(transport, _WrappedTransport):
        setattr(client, attribute, transport.inner)
    elif isinstance(transport, Hooked):
        transport.ndd = None
    return client


def _family(client: object) -> tuple[str, str]:
    for kind in type(client).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in _FAMILIES and hasattr(client, _FAMILIES[package][1]):
            return _FAMILIES[package]
    given = f"{type(client).__module__}.{type(client).__name__}"
    raise TypeError(f"wrap takes a client of elasticsearch-py or opensearch-py, got {given}")


class _WrappedTransport:
    """Stands in front of a client's transport and is like it in everything but perform_request."""

    def __init__(self, inner: Any, hook: Hook, module: str) -> None:
        self.inner, self.ndd, self._module = inner, hook, module
        self.perform_request = self._way()

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, while a copy is made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _WrappedTransport, (self.inner, self.ndd, self._module)

    def _way(self) -> Callable[..., Any]:
        """perform_request of this transport: a coroutine function where the inner one is."""
        family = import_module(f"ndd_search.engines.{self._module}")
        inner = self.inner.perform_request
        perform = family.perform_async if iscoroutinefunction(inner) else family.perform
        given = (self.ndd, inner, self.inner)

        def call(*arguments: Any, **others: Any) -> Any:
            return perform(*given, *arguments, **others)

        return call
