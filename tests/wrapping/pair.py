"""A plain client and a wrapped one: what each sends, returns and raises for the same call."""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ndd_search as ndd
from tests.engines.find import CLASSES, MODULES
from tests.wrapping.recorder import Received, Recorder

FAILURE = {"error": {"root_cause": [{"type": "x", "reason": "y"}], "type": "x", "reason": "y"}}
SEARCH: dict[str, Any] = {"index": "idx", "body": {"query": {"match": {"title": "x"}}}}


class Unwritable:
    """A value that no client can serialise."""

    def __repr__(self) -> str:
        return "<unwritable>"


@dataclass(frozen=True)
class Call:
    """A method by its path from the client, with arguments."""

    method: str
    arguments: dict[str, Any]

    def on(self, client: Any) -> Any:
        found = client
        for name in self.method.split("."):
            found = getattr(found, name)
        return found(**self.arguments)


@dataclass(frozen=True)
class Outcome:
    """Of one call, as text where it has to be compared."""

    received: list[Received]
    returned: str
    arguments: str


class Pair:
    """A plain client and a wrapped one of the same kind, at one recorder."""

    def __init__(self, family: str, asynchronous: bool, at: Recorder) -> None:
        kind = getattr(importlib.import_module(MODULES[family]), ("Async" if asynchronous else "") + CLASSES[family])
        self.plain, self.wrapped = (kind(at.url, max_retries=0) for _ in range(2))
        ndd.wrap(self.wrapped)
        self.family, self.asynchronous, self.at, self._runner = family, asynchronous, at, asyncio.Runner()

    def close(self) -> None:
        for client in (self.plain, self.wrapped):
            self.run(client.close)
        self._runner.close()

    def run(self, call: Callable[[], Any]) -> Any:
        """What a call gives, awaited where it has to be."""

        async def wait() -> Any:
            given = call()
            return await given if inspect.isawaitable(given) else given

        return self._runner.run(wait()) if self.asynchronous else call()

    def outcome(self, call: Callable[[], Any], arguments: Any = None) -> Outcome:
        self.at.take()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of deprecated methods
            try:
                returned = told(self.run(call))
            except Exception as error:
                returned = told_error(error)
        return Outcome(self.at.take(), returned, repr(arguments))

    def both(self, call: Call) -> tuple[Outcome, Outcome]:
        """What a call does through the plain client and through the wrapped one, each with arguments of its own."""
        one, other = copy.deepcopy(call), copy.deepcopy(call)
        return (
            self.outcome(lambda: one.on(self.plain), one.arguments),
            self.outcome(lambda: other.on(self.wrapped), other.arguments),
        )


def told(returned: Any) -> str:
    """A method's value with what can be known of it."""
    meta = getattr(returned, "meta", None)
    facts = (meta.status, sorted(meta.headers.items())) if hasattr(meta, "status") else ()  # type: ignore[union-attr]
    return f"{type(returned)} {facts} {getattr(returned, 'body', returned)!r}"


def told_error(error: BaseException) -> str:
    """An exception; the clients put how long it took into some."""
    arguments = [one for one in error.args if not hasattr(one, "duration")]
    return f"{type(error)} {arguments!r} {getattr(error, 'body', '')!r} {getattr(error, 'errors', ())!r}"


def transport_of(client: Any) -> Any:
    return client.transport
