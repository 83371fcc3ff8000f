"""Search, write and delete through wrapped clients for some minutes: errors, memory and latencies over time.

    python -m tests.soak [--minutes 10] [--engine elasticsearch9 ...]          make soak ARGS="--minutes 10"

Eight threads share a synchronous client and 200 tasks an asynchronous one, for each engine in turn. Every hit is
compared with what was written: no page may show two copies of a text, a document twice, or another document than
was written, and each worker reads its own writes. The exit status is 1 after an error, or if memory or latency drift.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import statistics
import sys
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import ndd_search as ndd
from ndd_search.search.clients.wrap import settings_in
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import MODULES, Engine, Engines

COPIES = 3  # documents of each worker, all of one text
DRIFT = 0.05  # share by which memory may grow after the first third of the run
SLOWER = 1.5  # times by which the median latency of the last third may exceed that of the first
_WORDS = [f"{a}{b}{number}" for a in ("ka", "lo", "mi") for b in ("ban", "dor", "fel") for number in range(40)]

Step = Callable[[Any], Any]
Body = dict[str, Any]


@cache
def text_of(number: int) -> str:
    """Return the text of a worker. No two of them are alike."""
    return " ".join([*random.Random(number).choices(_WORDS, k=80), f"own{number}", "market"])


@dataclass
class Record:
    """What happened. latencies: seconds of each search since the last report."""

    counts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    first: str = ""  # traceback of the first error

    def fail(self, error: Exception) -> None:
        """Note an error."""
        self.errors[f"{type(error).__name__}: {str(error)[:80]}"] += 1
        self.first = self.first or "".join(traceback.format_exception(error))


class Worker:
    """Searches everything, and writes the documents of one text, which no other worker writes."""

    def __init__(self, number: int, index: str, record: Record) -> None:
        self.number, self.index, self.record = number, index, record
        self._rng, self._versions = random.Random(number), dict[str, int]()

    def steps(self) -> Generator[Step, Any, None]:
        """Yield calls of a client without end; each is sent its answer."""
        ways = [self._search, self._pages, self._msearch, self._write, self._delete, self._read_own]
        while True:
            yield from self._rng.choices(ways, [12, 0.1, 1, 4, 1, 1])[0]()

    def _body(self) -> Body:
        """One of few searches, so that many of them are answered from the cache."""
        changes: Body = {"mode": self._rng.choice(["group", "drop", "demote"])}
        word = self._rng.choice(["market", "market", "kaban1 lodor2", f"own{self._rng.randrange(9)}"])
        body: Body = {"query": {"match": {"body": word}}, "size": self._rng.choice([5, 10])}
        return {**body, "from": self._rng.choice([0, 0, 0, 10, 30]), "ndd": changes}

    def _search(self) -> Generator[Step, Any, None]:
        body = self._body()
        self._check((yield lambda client: client.search(index=self.index, body=body)), body["ndd"]["mode"])

    def _msearch(self) -> Generator[Step, Any, None]:
        bodies = [self._body(), self._body()]
        lines = [line for body in bodies for line in ({"index": self.index}, body)]
        answers = (yield lambda client: client.msearch(body=lines))["responses"]
        for answer, body in zip(answers, bodies, strict=True):
            self._check(answer, body["ndd"]["mode"])

    def _pages(self) -> Generator[Step, Any, None]:
        """Read three pages of a cursor."""
        shown: list[str] = []
        cursor: Any = True
        for _ in range(3):
            asked = {"query": {"match": {"body": "market"}}, "size": 10, "ndd": {"cursor": cursor}}
            answer = yield lambda client, asked=asked: client.search(index=self.index, body=asked)  # type: ignore[misc]
            self._check(answer, "group")
            shown += [hit["_id"].partition("-")[0] for hit in answer["hits"]["hits"]]
            if (cursor := answer["ndd"]["cursor"]) is None:
                break
        assert len(shown) == len(set(shown)), "a text is on two pages of a cursor"

    def _write(self) -> Generator[Step, Any, None]:
        id, now = f"{self.number}-{self._rng.randrange(COPIES)}", self._rng.random() < 0.1
        yield self._written(id, now)

    def _written(self, id: str, now: bool) -> Step:
        version = self._versions[id] = self._versions.get(id, 0) + 1
        source = {"body": text_of(self.number), "edition": version}
        return lambda client: client.index(index=self.index, id=id, body=source, refresh=now)

    def _delete(self) -> Generator[Step, Any, None]:
        id = f"{self.number}-{self._rng.randrange(1, COPIES)}"  # the first one stays
        if self._versions.pop(id, None):
            yield lambda client: client.delete(index=self.index, id=id)

    def _read_own(self) -> Generator[Step, Any, None]:
        """Write a document and find it."""
        id = f"{self.number}-0"
        yield self._written(id, now=True)
        body: Body = {"query": {"match": {"body": f"own{self.number}"}}}
        found = every_hit((yield lambda client: client.search(index=self.index, body=body)))
        versions = [hit["_source"]["edition"] for hit in found if hit["_id"] == id]
        assert versions == [self._versions[id]], f"{id} is of version {versions}, {self._versions[id]} was written"

    def _check(self, answer: Any, mode: str) -> None:
        """Every hit is what was written at some time, and no page holds one document or two copies of a text."""
        hits, shown = every_hit(answer), answer["hits"]["hits"]
        for hit in hits:
            assert set(hit["_source"]) == {"body", "edition"}, set(hit["_source"])
            assert hit["_source"]["body"] == text_of(int(hit["_id"].partition("-")[0])), (
                f"{hit['_id']} has another text"
            )
        ids = [hit["_id"] for hit in hits]
        assert len(ids) == len(set(ids)), "a document is on a page twice"
        texts = [hit["_id"].partition("-")[0] for hit in shown]
        assert mode == "demote" or len(texts) == len(set(texts)), "two copies of a text are on a page"
        degraded = answer["ndd"]["degraded"] if "ndd" in answer else ""
        self.record.counts["degraded" if degraded else "searches"] += 1


def every_hit(answer: Any) -> list[Body]:
    """Return the hits of an answer, shown or listed."""
    shown: list[Body] = answer["hits"]["hits"]
    inner = [hit["inner_hits"]["near_duplicates"]["hits"]["hits"] for hit in shown if "inner_hits" in hit]
    return shown + [copy for copies in inner for copy in copies]


def in_thread(worker: Worker, client: Any, pause: float, stop: threading.Event) -> None:
    """Let a worker work until the end. An error ends its current step."""
    rng, steps, given = random.Random(worker.number), worker.steps(), None
    while not stop.is_set():
        try:
            call, began = steps.send(given), time.perf_counter()
            given = getattr(answer := call(client), "body", answer)
            worker.record.latencies.append(time.perf_counter() - began)
        except Exception as error:
            worker.record.fail(error)
            steps, given = worker.steps(), None
        stop.wait(rng.uniform(0, 2 * pause))


async def in_task(worker: Worker, client: Any, pause: float, stop: threading.Event) -> None:
    """The same as a coroutine."""
    rng, steps, given = random.Random(worker.number), worker.steps(), None
    while not stop.is_set():
        try:
            call, began = steps.send(given), time.perf_counter()
            given = getattr(answer := await call(client), "body", answer)
            worker.record.latencies.append(time.perf_counter() - began)
        except Exception as error:
            worker.record.fail(error)
            steps, given = worker.steps(), None
        await asyncio.sleep(rng.uniform(0, 2 * pause))


@contextmanager
def filled(engine: Engine, workers: int) -> Iterator[str]:
    """Create an index with the documents of all workers, and delete it afterwards."""
    name = f"ndd-soak-{uuid.uuid4().hex[:12]}"
    documents = [
        {"_index": name, "_id": f"{number}-{copy}", "body": text_of(number), "edition": 0}
        for number in range(workers)
        for copy in range(COPIES)
    ]
    with engine.client() as client:
        properties = {**mapping_properties(), "body": {"type": "text"}, "edition": {"type": "long"}}
        client.indices.create(index=name, body={"mappings": {"properties": properties}})
        try:
            acts = ndd.with_sketches(documents, fields=["body"])
            import_module(f"{MODULES[engine.family]}.helpers").bulk(client, acts, refresh=True)
            yield name
        finally:
            client.indices.delete(index=name)


def memory() -> float:
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def wrapped(plain: Any, settings: Body) -> Any:
    """A wrapped client whose cursors live shortly: they are left before their end, and OpenSearch allows 300."""
    client = ndd.wrap(plain, **settings)
    settings_in(client).cursor_keep_alive = "20s"
    return client


def soak(engine: Engine, minutes: float, every: float, threads: int, tasks: int) -> bool:
    """Run all workers on an engine and report. Returns whether there was no error and no drift."""
    record, stop, workers = Record(), threading.Event(), threads + tasks
    settings: Body = {"indexes": {"ndd-soak-*": {"text": ["body"]}}, "min_similarity": 0.6, "window": 40}

    def loop() -> None:
        async def run() -> None:
            async with engine.async_client() as plain:
                client = wrapped(plain, settings)
                given = [Worker(threads + number, index, record) for number in range(tasks)]
                await asyncio.gather(*(in_task(one, client, 2.0, stop) for one in given))

        asyncio.run(run())

    with filled(engine, workers) as index, engine.client() as plain, ExitStack() as stack:
        client = wrapped(plain, settings)
        given = [Worker(number, index, record) for number in range(threads)]
        running = [threading.Thread(target=in_thread, args=(one, client, 0.1, stop)) for one in given]
        running.append(threading.Thread(target=loop))
        for one in running:
            stack.callback(one.join)
        stack.callback(stop.set)
        for one in running:
            one.start()
        print(f"{engine.name}: {threads} threads and {tasks} tasks, for {minutes:g} minutes", flush=True)
        samples = list(reports(record, minutes * 60, every))
    return verdict(record, samples)


def reports(record: Record, seconds: float, every: float) -> Iterator[tuple[float, float]]:
    """Print a line for each interval; yield its median latency in milliseconds and its memory in MB."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        time.sleep(min(every, seconds - passed))
        took, record.latencies = sorted(record.latencies), []
        gc.collect()
        held = memory()
        if not took:
            continue
        median, most = statistics.median(took) * 1000, took[int(len(took) * 0.99)] * 1000
        print(
            f"{time.monotonic() - began:6.0f} s {len(took):7,} requests  median {median:6.1f} ms  99 % {most:7.1f} ms  "
            f"memory {held:6.1f} MB  errors {sum(record.errors.values())}",
            flush=True,
        )
        yield median, held


def verdict(record: Record, samples: Sequence[tuple[float, float]]) -> bool:
    """Print what happened, and return whether all was well. Memory and latency are judged from six intervals on."""
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(record.counts.items()))
    print(f"       {told}")
    for error, count in record.errors.most_common():
        print(f"       {count} times {error}")
    if record.first:
        print(record.first)
    if len(samples) < 6:
        return not record.errors
    third = len(samples) // 3
    latencies, memories = zip(*samples, strict=True)
    grown = statistics.median(memories[-third:]) / statistics.median(memories[third : 2 * third]) - 1
    slower = statistics.median(latencies[-third:]) / statistics.median(latencies[:third])
    print(f"       memory {grown:+.1%} from the second third to the last, median latency {slower:.2f} times the first")
    return not record.errors and grown <= DRIFT and slower <= SLOWER


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="for each engine (default: 10)")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two lines (default: 60)")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--engine", action="append", help="elasticsearch9 and opensearch3 by default")
    chosen = parser.parse_args(arguments)
    names = chosen.engine or ["elasticsearch9", "opensearch3"]
    with ExitStack() as stack:
        engines = Engines(names, {})
        stack.callback(engines.close)
        given = chosen.minutes, chosen.every, chosen.threads, chosen.tasks
        failed = [name for name in names if not soak(engines.get(name), *given)]
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
