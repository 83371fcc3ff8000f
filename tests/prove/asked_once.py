"""Wrapped clients of real engines. For indexes that do not change, what was asked before is not sent again."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import ExitStack
from copy import copy
from typing import Any

from cachetools import LRUCache
from elastic_transport import AiohttpHttpNode, Urllib3HttpNode
from opensearchpy import AIOHttpConnection, Urllib3HttpConnection

import ndd_search as ndd
from ndd_search.core.paging.fill_page import run, run_async
from ndd_search.search.flow.client_settings import Settings
from tests.engines.find import Engine
from tests.proxy.serving import serving
from tests.searching import in_one_phase
from tests.wrapping.conftest import Caller, Connect, settings_of

MOST = 100_000_000  # bytes of replies
OF_A_CLIENT = "elastic_transport"  # clients of classes from elsewhere share no cache with one another
KEPT = "20s"  # points in time of the last pages: engines limit how many are open

_Sent = tuple[tuple[Any, ...], dict[str, Any]]  # the arguments of `perform_request`

_replies: LRUCache[str, Any] = LRUCache(MOST, getsizeof=lambda reply: len(reply[-1]))


def _asking(family: str, asked: tuple[Any, ...], others: dict[str, Any]) -> Generator[_Sent, Any, Any]:
    """Yield the requests that must be sent, receive the replies, return the reply.

    The searches of an `_msearch` are known one by one. A point in time has an id of its own, so it is asked again.
    """
    body, headers = others["body"] if "body" in others else asked[3], others.get("headers") or {}
    about = repr((family, asked[:3], [headers.get(name) for name in ("accept", "content-type")]))
    if body is None or not asked[1].partition("?")[0].endswith("/_msearch"):
        key = f"{about} {body}"
        if key not in _replies or "pit" in key:
            _replies[key] = yield asked, others
        return _replies[key]
    lines = _text(body).rstrip("\n").split("\n")
    searches = [f"{head}\n{search}\n" for head, search in zip(lines[::2], lines[1::2], strict=True)]
    found: dict[str, Any] = {one: _replies.get(f"{about} {one}") for one in searches if '"pit"' not in one}
    if missing := [one for one in searches if found.get(one) is None]:
        less: Any = "".join(missing) if isinstance(body, str) else "".join(missing).encode()
        named = "body" in others
        reply = yield (asked, others | {"body": less}) if named else ((*asked[:3], less, *asked[4:]), others)
        if (answers := _answers(reply[-1])) is None:
            return reply if missing == searches else (yield asked, others)
        found |= {one: _with(reply, answer) for one, answer in zip(missing, answers, strict=True)}
        _replies.update({f"{about} {one}": found[one] for one in missing})
    joined = ",".join(_text(found[one][-1]) for one in searches)
    return _with(found[searches[0]], f'{{"took":1,"responses":[{joined}]}}')


def _answers(reply: Any) -> list[str] | None:
    """Return the JSON of each answer in the reply to an `_msearch`, None if it holds none."""
    text, decoder, found = _text(reply), json.JSONDecoder(), list[str]()
    start = text.find('"responses":[') + len('"responses":[')
    while start >= len('"responses":['):
        _, end = decoder.raw_decode(text, start)
        found.append(text[start:end])
        if text[end] == "]":
            return found
        start = end + 1
    return None


def _text(raw: Any) -> str:
    text: str = raw if isinstance(raw, str) else raw.decode()
    return text


def _with(reply: Any, text: str) -> Any:
    """Return a reply with another text, as a client of its family reads it."""
    parts = (*reply[:-1], text if isinstance(reply[-1], str) else text.encode())
    return parts if type(reply) is tuple else type(reply)(*parts)


class _Once:
    """A connection that knows the replies to earlier requests."""

    __module__ = OF_A_CLIENT
    family = ""

    def perform_request(self, *asked: Any, **others: Any) -> Any:
        send = super().perform_request  # type: ignore[misc]
        return run(_asking(self.family, asked, others), lambda sent: send(*sent[0], **sent[1]))


class _OnceAsync:
    """The same for asynchronous clients."""

    __module__ = OF_A_CLIENT
    family = ""

    async def perform_request(self, *asked: Any, **others: Any) -> Any:
        send = super().perform_request  # type: ignore[misc]
        return await run_async(_asking(self.family, asked, others), lambda sent: send(*sent[0], **sent[1]))


def _class(once: type, base: type, family: str) -> type:
    return type(base.__name__, (once, base), {"__module__": OF_A_CLIENT, "family": family})


_CLASSES = {
    ("elasticsearch", False): {"node_class": _class(_Once, Urllib3HttpNode, "elasticsearch")},
    ("elasticsearch", True): {"node_class": _class(_OnceAsync, AiohttpHttpNode, "elasticsearch")},
    ("opensearch", False): {"connection_class": _class(_Once, Urllib3HttpConnection, "opensearch")},
    ("opensearch", True): {"connection_class": _class(_OnceAsync, AIOHttpConnection, "opensearch")},
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
