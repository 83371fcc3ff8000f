"""Wrapped clients of real engines. For indexes that do not change, what was asked before is not sent again."""

from __future__ import annotations

from contextlib import ExitStack
from copy import copy
from typing import Any

from cachetools import LRUCache
from elastic_transport import AiohttpHttpNode, Urllib3HttpNode
from opensearchpy import AIOHttpConnection, Urllib3HttpConnection

import ndd_search as ndd
from ndd_search.search.flow.client_settings import Settings
from tests.engines.find import Engine
from tests.proxy.serving import serving
from tests.searching import in_one_phase
from tests.wrapping.conftest import Caller, Connect, settings_of

MOST = 100_000_000  # bytes of replies
OF_A_CLIENT = "elastic_transport"  # clients of classes from elsewhere share no cache with one another
KEPT = "20s"  # points in time of the last pages: engines limit how many are open

_replies: LRUCache[str, Any] = LRUCache(MOST, getsizeof=lambda reply: len(reply[-1]))


def _key(connection: Any, asked: Any, others: dict[str, Any]) -> str:
    """Return what is equal for equal requests. A point in time has an id of its own, so it is asked again."""
    times = ("timeout", "request_timeout")
    return repr((type(connection), asked, {name: value for name, value in others.items() if name not in times}))


class _Once:
    """A connection that knows the replies to earlier requests."""

    __module__ = OF_A_CLIENT

    def perform_request(self, *asked: Any, **others: Any) -> Any:
        key = _key(self, asked, others)
        if key not in _replies or "pit" in key:
            _replies[key] = super().perform_request(*asked, **others)  # type: ignore[misc]
        return _replies[key]


class _OnceAsync:
    """The same for asynchronous clients."""

    __module__ = OF_A_CLIENT

    async def perform_request(self, *asked: Any, **others: Any) -> Any:
        key = _key(self, asked, others)
        if key not in _replies or "pit" in key:
            _replies[key] = await super().perform_request(*asked, **others)  # type: ignore[misc]
        return _replies[key]


_NAMED = {"__module__": OF_A_CLIENT}
_CLASSES = {
    ("elasticsearch", False): {"node_class": type("Node", (_Once, Urllib3HttpNode), _NAMED)},
    ("elasticsearch", True): {"node_class": type("AsyncNode", (_OnceAsync, AiohttpHttpNode), _NAMED)},
    ("opensearch", False): {"connection_class": type("Connection", (_Once, Urllib3HttpConnection), _NAMED)},
    ("opensearch", True): {"connection_class": type("AsyncConnection", (_OnceAsync, AIOHttpConnection), _NAMED)},
}


def connecting(engine: Engine, asynchronous: bool, changes: bool = False) -> Connect:
    """Return a function that returns a client, wrapped or not; all of them share their connections.

    changes: whether the indexes change, so that each request is sent.
    """
    make = engine.async_client if asynchronous else engine.client
    plain = Caller(make(**({} if changes else _CLASSES[engine.family, asynchronous])), asynchronous)

    def connect(wrapped: bool = True, splits: bool = True, **settings: Any) -> Caller:
        if not wrapped:
            return plain
        caller = plain.with_client(ndd.wrap(copy(plain.client), **settings))
        _prepare(settings_of(caller), splits)
        return caller

    return connect


def serving_to(engine: Engine, connect: Connect, stack: ExitStack) -> Connect:
    """Return the same for clients of a proxy with the settings that a wrapped client would have.

    connect: gives plain clients of the engine. stack: ends the proxies.
    """

    def through(wrapped: bool = True, splits: bool = True, **settings: Any) -> Caller:
        if not wrapped:
            return connect(wrapped=False)
        settings = {name: value for name, value in settings.items() if value is not None}
        served = stack.enter_context(serving(engine.url, **settings))
        _prepare(served.proxy.driver.settings, splits)
        client = stack.enter_context(Engine(**{**engine.__dict__, "url": served.url}).client())
        return Caller(client, asynchronous=False)

    return through


def _prepare(settings: Settings, splits: bool) -> None:
    settings.cursor_keep_alive = KEPT
    if not splits:
        in_one_phase(settings)
