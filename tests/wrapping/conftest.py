"""What the tests of wrapped clients share: the library on each server, and clients of both kinds.

NDD_TEST_THROUGH_PROXY=1: `connect` gives plain clients of a proxy with the same settings, instead of wrapped clients.
Then run the files that use `connect`: test_searches, test_rounds, test_requests, test_msearch, test_hidden,
test_left_alone, test_several_indexes, test_unusual_answers.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.flow.client_settings import Settings
from tests.engines.find import MODULES, Engine
from tests.searching import in_one_phase
from tests.wrapping.library import BAR, FORMS, RECIPE, actions, documents, form, mapping
from tests.wrapping.pair import Pair
from tests.wrapping.proxy import Proxy, proxy_to
from tests.wrapping.recorder import Recorder, recorder, usual

THROUGH_PROXY = bool(os.environ.get("NDD_TEST_THROUGH_PROXY"))
# Parts of names of tests of what no proxy can do: options of a block of Python, callables, exceptions of its own, and
# a later round that fails for good when its connection breaks once.
_ONLY_IN_PYTHON: tuple[str, ...] = (
    "keep_of_your_own",
    "block_around",
    "switched_off",
    "unknown_option",
    "nothing_that_is_no_options",
)
_ONLY_IN_PYTHON += ("collapsed_where_that_is_asked_for", "or_around_it", "-cut")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what does not hold through a proxy, and is not meant to."""
    for item in items:
        if THROUGH_PROXY and any(part in item.name for part in _ONLY_IN_PYTHON):
            item.add_marker(pytest.mark.skip(reason="a proxy knows nothing of the Python program in front of it"))


@dataclass(frozen=True)
class Library:
    """Indexes of one server. news: every document sketched. bare: none. mixed: an alias of both, with other ids.

    two: an index whose documents are sketched with one of two recipes.
    """

    engine: Engine
    news: str
    bare: str
    mixed: str
    two: str


def bulk(engine: Engine, client: Any, acts: list[dict[str, Any]]) -> None:
    """Send bulk actions and make them visible."""
    helpers = importlib.import_module(f"{MODULES[engine.family]}.helpers")
    helpers.bulk(client, acts, refresh=True)


@pytest.fixture(scope="session")
def libraries() -> Iterator[Callable[[Engine], Library]]:
    """Yield a function that makes the library of a server once, whatever servers tests use in between."""
    with ExitStack() as stack:
        yield cache(lambda engine: stack.enter_context(made_library(engine)))


@pytest.fixture(scope="session")
def library(engine: Engine, libraries: Callable[[Engine], Library]) -> Library:
    """Return the documents in the indexes of a server; they are only read."""
    return libraries(engine)


@contextmanager
def made_library(engine: Engine) -> Iterator[Library]:
    name = f"ndd-library-{uuid.uuid4().hex[:8]}"
    made = Library(engine, f"{name}-news", f"{name}-bare", f"{name}-mixed", f"{name}-two")
    half = documents()[: len(documents()) // 2]
    with engine.client() as client:
        for index in (made.news, made.bare, made.two):
            client.indices.create(index=index, body=mapping(engine, sketches=index != made.bare))
        client.indices.put_alias(index=f"{made.news},{made.bare}", name=made.mixed)
        other = ndd.Recipe.words(size=5)
        acts = actions(made.news, engine) + actions(made.bare, engine, None)
        acts += actions(made.two, engine, RECIPE, half)
        acts += actions(made.two, engine, other, documents()[len(half) :])
        bulk(engine, client, acts)
        yield made
        client.indices.delete(index=",".join((made.news, made.bare, made.two)))


@pytest.fixture(scope="module")
def forms(engine: Engine) -> Iterator[str]:
    """Yield an index of different documents that all fill one form; it is only read."""
    name = f"ndd-test-{uuid.uuid4().hex[:12]}"
    with engine.client() as client:
        client.indices.create(index=name, body=mapping(engine))
        bulk(engine, client, actions(name, engine, where=[form(number) for number in range(FORMS)]))
        yield name
        client.indices.delete(index=name)


class Caller:
    """A client of either kind, called in the same way: what has to be awaited is awaited here."""

    def __init__(self, client: Any, asynchronous: bool) -> None:
        self.client, self.asynchronous = client, asynchronous
        self.settings: Settings | None = None  # of the proxy, if there is one
        self._runner = asyncio.Runner()

    def with_client(self, client: Any) -> Caller:
        """Another client, in the same event loop."""
        other = copy(self)
        other.client = client
        return other

    def run(self, awaitable: Any) -> Any:
        """The value of what a method of the client gave."""
        return self._runner.run(_wait(awaitable), context=copy_context()) if self.asynchronous else awaitable

    def search(self, **given: Any) -> dict[str, Any]:
        """client.search, its answer as a plain dict."""
        body: dict[str, Any] = body_of(self.run(self.client.search(**given)))
        return body

    def msearch(self, **given: Any) -> dict[str, Any]:
        """client.msearch, its answer as a plain dict."""
        body: dict[str, Any] = body_of(self.run(self.client.msearch(**given)))
        return body

    def ask(
        self, method: str, path: str, body: Any = None, params: Any = None, headers: dict[str, str] | None = None
    ) -> Any:
        """Any request of the API."""
        if hasattr(self.client, "options"):
            json = {"accept": "application/json", **({"content-type": "application/json"} if body else {})}
            call = self.client.perform_request(
                method, path, params=params, headers={**json, **(headers or {})}, body=body
            )
        else:
            call = self.client.transport.perform_request(method, path, params=params, body=body, headers=headers)
        return body_of(self.run(call))

    def close(self) -> None:
        self.run(self.client.close())
        self._runner.close()


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def body_of(answer: Any) -> Any:
    """The parsed JSON of a client's answer."""
    return getattr(answer, "body", answer)


Connect = Callable[..., Caller]


@pytest.fixture(params=["sync", "async"])
def connect(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Connect]:
    """connect(url=None, wrapped=True, settings for the client, **settings for wrap) makes a client, of either kind.

    splits: False for a client that has learned in each target that split searches are refused.
    """
    made: list[Caller] = []
    proxies = ExitStack()

    def make(
        url: str | None = None,
        wrapped: bool = True,
        client: dict[str, Any] | None = None,
        splits: bool = True,
        **settings: Any,
    ) -> Caller:
        place = engine if url is None else Engine(**{**engine.__dict__, "url": url})
        asynchronous = request.param == "async"
        options = {"min_similarity": BAR, "window": 20, **settings}
        served: Any = None
        if wrapped and THROUGH_PROXY:
            from tests.proxy.serving import serving  # needs the extra of the proxy

            served = proxies.enter_context(serving(place.url, **options))
            place, wrapped = Engine(**{**place.__dict__, "url": served.url}), False
        plain = (place.async_client if asynchronous else place.client)(**(client or {}))
        made.append(Caller(ndd.wrap(plain, **options) if wrapped else plain, asynchronous))
        if served is not None:
            made[-1].settings = served.proxy.driver.settings
        if (wrapped or served is not None) and not splits:
            in_one_phase(settings_of(made[-1]))
        return made[-1]

    yield make
    for caller in made:
        caller.close()
    proxies.close()


@pytest.fixture
def wrapped(connect: Connect) -> Caller:
    """A wrapped client without a cache, so that every search is really done."""
    return connect(cache=False)


@pytest.fixture
def plain(connect: Connect) -> Caller:
    """A client as it is."""
    return connect(wrapped=False)


@pytest.fixture
def proxy(engine: Engine) -> Iterator[Proxy]:
    """A proxy in front of the server."""
    with proxy_to(engine.url) as made:
        yield made


def settings_of(caller: Caller) -> Settings:
    """What a wrapped client has learnt, or the proxy in its place."""
    if caller.settings is not None:
        return caller.settings
    transport = getattr(caller.client, "_transport", None) or caller.client.transport
    return transport.ndd.settings  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def at() -> Iterator[Recorder]:
    """A small server that answers anything and keeps what it is sent."""
    with recorder() as made:
        yield made


@pytest.fixture(params=["elasticsearch sync", "elasticsearch async", "opensearch sync", "opensearch async"])
def pair(request: pytest.FixtureRequest, at: Recorder) -> Iterator[Pair]:
    """A plain client and a wrapped one at that server."""
    family, kind = request.param.split()
    pytest.importorskip(MODULES[family])
    made = Pair(family, kind == "async", at)
    yield made
    at.reply = usual
    made.close()
