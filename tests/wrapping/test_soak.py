"""Threads and tasks write and search through one wrapped client at once: no document is lost or changed.

NDD_TEST_LONG=1 does 75 times as much.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.clients.wrap import settings_in
from tests.engines.find import Engine
from tests.soak import soak
from tests.wrapping.conftest import body_of
from tests.wrapping.library import BAR, RECIPE, documents, mapping

WORKERS = 4
OPERATIONS = 1500 if os.environ.get("NDD_TEST_LONG") else 20  # of each worker
IDS = 12  # of each worker

Source = dict[str, Any]
Step = Callable[[Any], Any]


class Ledger:
    """What was written by all threads.

    stored:  every document as it has to be now. written: all that was ever sent for an id.
    removed: for the ids that are gone, a number that no other removal has.
    """

    def __init__(self) -> None:
        self.stored: dict[str, Source] = {}
        self.written: dict[str, list[Source]] = {}
        self.removed: dict[str, int] = {}
        self.searches = self.hidden = 0
        self._lock, self._removals = Lock(), 0

    def will_write(self, name: str, source: Source) -> None:
        with self._lock:
            self.written.setdefault(name, []).append(source)
            self.removed.pop(name, None)
            self.stored[name] = source

    def has_removed(self, name: str) -> None:
        with self._lock:
            self._removals += 1
            self.removed[name] = self._removals
            del self.stored[name]

    def gone(self) -> dict[str, int]:
        with self._lock:
            return dict(self.removed)

    def check(self, answer: Any, gone_before: dict[str, int]) -> None:
        """Every hit is a document that was not removed before the search began, with a content that was sent."""
        gone_after = self.gone()
        for hit in answer["hits"]["hits"]:
            name, source = hit["_id"], hit["_source"]
            removal = gone_before.get(name)
            assert removal is None or gone_after.get(name) != removal, f"{name} was removed before"
            with self._lock:
                sent = [visible(one) for one in self.written[name]]
            assert visible(source) in sent, f"{name} was never like this: {source}"
        with self._lock:
            self.searches += 1
            self.hidden += answer.get("ndd", {}).get("hidden", 0)


def visible(source: Source) -> Source:
    """What a search shows of a document: the sketch is hidden."""
    return {name: value for name, value in source.items() if name not in ("ndd", "ndd_keys")}


class Worker:
    """Reads and writes documents with ids of its own, in an order that its number decides."""

    def __init__(self, number: int, index: str, ledger: Ledger) -> None:
        self.number, self.index, self.ledger = number, index, ledger
        self._rng = random.Random(number)
        self._mine: dict[str, Source] = {}

    def steps(self) -> Generator[Step, Any, None]:
        """Calls of a client; what each gives is sent in."""
        ways = [self._index, self._create, self._update, self._delete, self._bulk, self._search, self._msearch]
        for _ in range(OPERATIONS):
            yield from self._rng.choices(ways, [3, 2, 2, 1, 1, 4, 1])[0]()

    def _new(self) -> Source:
        """Nearly every text is a near-duplicate of another one's; a sketch may be lacking."""
        text = self._rng.choice(documents()[:40])
        source = {"title": text["title"], "body": text["body"], "price": self._rng.randrange(10**6)}
        return sketch_fields(source, ["title", "body"], recipe=RECIPE) if self._rng.random() < 0.8 else source

    def _name(self) -> str:
        return f"{self.number}-{self._rng.randrange(IDS)}"

    def _soon(self) -> bool:
        """Whether searches see a write at once; they always do a removal."""
        return self._rng.random() < 0.4

    def _keep(self, name: str, source: Source) -> None:
        self._mine[name] = source
        self.ledger.will_write(name, source)

    def _index(self) -> Generator[Step, Any, None]:
        name, source, now = self._name(), self._new(), self._soon()
        self._keep(name, source)
        yield lambda client: client.index(index=self.index, id=name, body=source, refresh=now)

    def _create(self) -> Generator[Step, Any, None]:
        name, source, now = self._name(), self._new(), self._soon()
        if name not in self._mine:
            self._keep(name, source)
            yield lambda client: client.create(index=self.index, id=name, body=source, refresh=now)

    def _update(self) -> Generator[Step, Any, None]:
        name, price, now = self._name(), self._rng.randrange(10**6), self._soon()
        if name in self._mine:
            self._keep(name, {**self._mine[name], "price": price})
            yield lambda client: client.update(index=self.index, id=name, body={"doc": {"price": price}}, refresh=now)

    def _delete(self) -> Generator[Step, Any, None]:
        name = self._name()
        if self._mine.pop(name, None):
            yield lambda client: client.delete(index=self.index, id=name, refresh=True)
            self.ledger.has_removed(name)

    def _bulk(self) -> Generator[Step, Any, None]:
        lines: list[Any] = []
        now = self._soon()
        for name in {self._name() for _ in range(3)}:
            source = self._new()
            self._keep(name, source)
            lines += [{"index": {"_id": name}}, source]
        answer = yield lambda client: client.bulk(index=self.index, body=lines, refresh=now)
        assert not answer["errors"]

    def _search(self) -> Generator[Step, Any, None]:
        gone = self.ledger.gone()
        body = self._page()
        self.ledger.check((yield lambda client: client.search(index=self.index, body=body)), gone)

    def _msearch(self) -> Generator[Step, Any, None]:
        gone = self.ledger.gone()
        lines = [{"index": self.index}, self._page(), {"index": self.index}, {**self._page(), "ndd": False}]
        for answer in (yield lambda client: client.msearch(body=lines))["responses"]:
            self.ledger.check(answer, gone)

    def _page(self) -> dict[str, Any]:
        """One of few, so that many searches are answered from the cache."""
        return {"query": {"match": {"body": "market"}}, "size": self._rng.choice([5, 10])}


def run(worker: Worker, client: Any) -> None:
    steps, given = worker.steps(), None
    try:
        while True:
            given = body_of(steps.send(given)(client))
    except StopIteration:
        pass


async def run_async(worker: Worker, client: Any) -> None:
    steps, given = worker.steps(), None
    try:
        while True:
            call = steps.send(given)(client)
            given = body_of(await call if inspect.isawaitable(call) else call)
    except StopIteration:
        pass


def compare(engine: Engine, index: str, ledger: Ledger) -> None:
    """Every stored document, read through a plain client, field by field with what was written."""
    with engine.client() as plain:
        plain.indices.refresh(index=index)
        found = body_of(plain.search(index=index, body={"size": 1000, "version": True}))["hits"]["hits"]
    assert {hit["_id"]: hit["_source"] for hit in found} == ledger.stored
    assert ledger.searches >= WORKERS * OPERATIONS / 6
    assert ledger.hidden > 0


def create(engine: Engine, index: str) -> None:
    with engine.client() as plain:
        plain.indices.create(index=index, body=mapping(engine))


def test_threads_that_write_and_search_lose_nothing(engine: Engine, index: str) -> None:
    """Every document is stored as it was written, every hit is a document of that time."""
    ledger = Ledger()
    create(engine, index)
    with engine.client() as plain, ThreadPoolExecutor(WORKERS) as pool:
        client = ndd.wrap(plain, min_similarity=BAR)
        settings_in(client).bypass_seconds = 0.0
        done = [pool.submit(run, Worker(number, index, ledger), client) for number in range(WORKERS)]
        for one in done:
            one.result()
    compare(engine, index, ledger)


def test_tasks_that_write_and_search_lose_nothing(engine: Engine, index: str) -> None:
    """The same of coroutines that share an asynchronous client."""
    ledger = Ledger()
    create(engine, index)

    async def soak() -> None:
        async with engine.async_client() as plain:
            client = ndd.wrap(plain, min_similarity=BAR)
            settings_in(client).bypass_seconds = 0.0
            await asyncio.gather(*(run_async(Worker(number, index, ledger), client) for number in range(WORKERS)))

    asyncio.run(soak())
    compare(engine, index, ledger)


@pytest.mark.newest_servers
def test_a_second_of_the_long_soak_finds_no_error(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """`make soak` runs it for minutes."""
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch 2 has no cursors")
    assert soak(engine, minutes=1 / 60, every=0.5, threads=2, tasks=4), capsys.readouterr().out
    assert " searches" in capsys.readouterr().out
