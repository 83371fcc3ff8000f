"""Fill an index that begins empty while it is searched, put its mapping late, and kill its engine twice.

    python -m tests.soak_from_empty [--seconds 12] [--engine opensearch3 ...]   # a minute for each engine

Threads write and search at the same time, half of them through one wrapped client, the other half through one proxy:

* one index has the mapping of the sketches from the start, the other one gets it after a second of searches and writes,
  and the documents that are there are then written again, which indexes their sketches;
* the engine is killed without a shutdown at a third and at two thirds of the time, and started again with its data;
* each document that the engine confirmed is there at the end, as it was written last, with the sketch of its text;
* from a second after the mapping on, each answer is a page, and no page holds two copies of a text.

What fails while there is no engine is sent again, as its callers would do.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import ndd_search as ndd
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import MODULES, Engine
from tests.engines.jars import RELEASES
from tests.engines.launch import Server, free_ports
from tests.proxy.serving import ask, serving

THREADS = 2  # of each kind, and each way
COPIES = 4  # documents of one text
LATE = "-late: there is no field ndd"  # what the proxy warns of until the mapping is put
FIRST = 1.0  # seconds after which the late mapping is put, and again until each answer has to be a page
_PAUSE = 0.5  # seconds before something is sent again
_AWAY = (0, 429, 502, 503, 504)  # statuses while there is no engine, or while it starts
_WORDS = [f"{a}{b}{number}" for a in ("ka", "lo", "mi") for b in ("ban", "dor", "fel") for number in range(40)]

Body = dict[str, Any]
Call = Callable[[str, str, list[Body]], Body]  # method, path, lines of a body


@cache
def text_of(number: int) -> str:
    """Return a text. No two of them are alike."""
    return " ".join([*random.Random(number).choices(_WORDS, k=80), f"own{number}", "market"])


class Away(Exception):
    """The engine did not answer, as it was killed."""


class History:
    """What was written and seen by all threads. stored: the documents that the engine confirmed, by index and id."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], Body] = {}
        self.counts: Counter[str] = Counter()
        self.fault = ""  # the traceback of the first
        self.complete = float("inf")  # when each answer has to be a page
        self.stop = threading.Event()

    def fail(self, error: BaseException) -> None:
        """Note a fault, and end."""
        self.fault = self.fault or "".join(traceback.format_exception(error))
        self.stop.set()


class Writer:
    """Writes the documents of texts that no other writer writes, each again until it is confirmed."""

    def __init__(self, number: int, indexes: list[str], call: Call, history: History) -> None:
        self._number, self._indexes, self._call, self._history = number, indexes, call, history
        self._rng = random.Random(number)

    def run(self) -> None:
        """Write until the end."""
        edition = 0
        while not self._history.stop.is_set():
            edition += 1
            index, text = self._rng.choice(self._indexes), self._number + 2 * THREADS * self._rng.randrange(8)
            ids = [f"{text}-{copy}" for copy in self._rng.sample(range(COPIES), self._rng.choice([1, 1, 3]))]
            self._write(index, {id: {"body": text_of(text), "edition": edition} for id in ids})

    def _write(self, index: str, documents: dict[str, Body]) -> None:
        while True:
            try:
                if len(documents) == 1:
                    ((id, document),) = documents.items()
                    self._call("PUT", f"/{index}/_doc/{id}", [document])
                else:
                    lines = [line for id, one in documents.items() for line in ({"index": {"_id": id}}, one)]
                    answer = self._call("POST", f"/{index}/_bulk", lines)
                    if answer["errors"]:  # of a shard that starts
                        raise Away
            except Away:
                if self._history.fault:  # there may be no engine any more
                    return
                time.sleep(_PAUSE)
                continue
            self._history.stored.update({(index, id): one for id, one in documents.items()})
            self._history.counts["documents written"] += len(documents)
            return


class Searcher:
    """Searches all indexes, and checks what is shown."""

    def __init__(self, number: int, indexes: list[str], call: Call, history: History) -> None:
        self._path, self._call, self._history = f"/{','.join(indexes)}/_search", call, history
        self._rng = random.Random(number)

    def run(self) -> None:
        """Search until the end."""
        while not self._history.stop.is_set():
            began = time.monotonic()
            try:
                answer = self._call("POST", self._path, [self._body()])
            except Away:
                self._history.counts["searches without an engine"] += 1
                self._history.stop.wait(_PAUSE)
                continue
            if answer["_shards"]["failed"]:
                self._history.counts["searches while shards start"] += 1
                continue
            self._check(answer, began > self._history.complete)

    def _body(self) -> Body:
        return {
            "query": {"match": {"body": "market"}},
            "size": self._rng.choice([5, 10]),
            "from": self._rng.choice([0, 0, 5]),
        }

    def _check(self, answer: Body, is_complete: bool) -> None:
        hits = answer["hits"]["hits"]
        for hit in hits:
            assert hit["_source"]["body"] == text_of(int(hit["_id"].partition("-")[0])), "another text"
        if not is_complete:
            self._history.counts["searches of the first second"] += 1
            return
        block = answer.get("ndd") or {}
        assert "examined" in block, f"an answer is no page: {block}"
        names = {name for hit in hits for name in hit["_source"]}
        assert names <= {"body", "edition"}, f"documents show {names}"
        texts = [hit["_id"].partition("-")[0] for hit in hits]
        assert len(texts) == len(set(texts)), f"two copies of a text are on a page: {block}"
        self._history.counts["pages"] += 1


def through_client(client: Any) -> Call:
    """Return how to ask through a wrapped client of either family."""

    def call(method: str, path: str, lines: list[Body]) -> Body:
        _, index, kind, *id = path.split("/")
        try:
            match kind:
                case "_search":
                    answer = client.search(index=index, body=lines[0])
                case "_bulk":
                    answer = client.bulk(index=index, body=lines)
                case _:
                    answer = client.index(index=index, id=id[0], body=lines[0])
        except Exception as error:
            status = getattr(error, "status_code", 0)
            if type(error).__module__.partition(".")[0] in ("elasticsearch", "elastic_transport", "opensearchpy") and (
                status in (*_AWAY, "N/A", "TIMEOUT")
            ):
                raise Away from error
            raise
        found: Body = getattr(answer, "body", answer)
        return found

    return call


def through_proxy(url: str) -> Call:
    """Return how to ask a proxy."""

    def call(method: str, path: str, lines: list[Body]) -> Body:
        is_bulk = path.endswith("_bulk")
        text = "\n".join(map(json.dumps, lines)) + ("\n" if is_bulk else "")
        kind = "application/x-ndjson" if is_bulk else "application/json"
        try:
            got = ask(url, method, path, text.encode(), {"content-type": kind})
        except TimeoutError as error:  # the proxy waits for an engine that starts
            raise Away from error
        if got.status in _AWAY:
            raise Away
        assert got.status in (200, 201), got
        warning = got.header("warning") or ""
        assert not warning or LATE in warning, warning
        found: Body = json.loads(got.body)
        return found

    return call


@contextmanager
def threads(history: History, works: list[Callable[[], None]]) -> Iterator[None]:
    """Run functions in threads until the end of the block; a fault of one, or of the block, ends all."""

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            history.fail(error)

    running = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for one in running:
        one.start()
    try:
        yield
    except BaseException as error:
        history.fail(error)
    finally:
        history.stop.set()
        for one in running:
            one.join()


def write_again(client: Any, index: str) -> None:
    """Write each document as it is, unless it has just changed. Not all nodes have the update by query that does so."""
    client.indices.refresh(index=index)
    found = client.search(index=index, body={"size": 10_000, "seq_no_primary_term": True})["hits"]["hits"]
    lines: list[Body] = []
    for hit in found:
        unchanged = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        lines += [{"index": {"_id": hit["_id"], **unchanged}}, hit["_source"]]
    if lines:
        answer = client.bulk(index=index, body=lines, refresh=True)
        assert {one["index"]["status"] for one in answer["items"]} <= {200, 409}, answer


def check_stored(engine: Engine, indexes: list[str], history: History) -> None:
    """Compare what a plain client reads with what was written and confirmed."""
    with engine.client() as plain:
        plain.indices.refresh(index=",".join(indexes))
        scan = import_module(f"{MODULES[engine.family]}.helpers").scan
        found = {(hit["_index"], hit["_id"]): hit["_source"] for hit in scan(plain, index=",".join(indexes))}
    assert found.keys() == history.stored.keys(), (
        f"{len(found)} documents are stored, {len(history.stored)} were written"
    )
    for name, document in history.stored.items():
        assert found[name] == sketch_fields(document, ["body"]), f"{name} is stored as {found[name]}"


def soak_from_empty(name: str, seconds: float) -> bool:
    """Run the scenario on an engine of its own. name: of its release. Returns whether all was well."""
    (port,), began = free_ports(1), time.monotonic()
    release, history = RELEASES[name], History()
    indexes = [f"ndd-begin-{uuid.uuid4().hex[:8]}-{part}" for part in ("mapped", "late")]
    settings: Body = {"indexes": {"ndd-begin-*": {"text": ["body"]}}, "min_similarity": 0.6}
    fields: Body = {"body": {"type": "text"}, "edition": {"type": "long"}}
    with ExitStack() as stack:
        server = stack.enter_context(Server(release, **{"http.port": str(port)}))
        server.wait()
        engine = Engine(name=name, family=release.family, major=release.major, url=server.url, source="its own")
        client = stack.enter_context(engine.client(max_retries=0))
        for index, properties in zip(indexes, ({**mapping_properties(), **fields}, fields), strict=True):
            client.indices.create(index=index, body={"mappings": {"dynamic": False, "properties": properties}})
        proxy = stack.enter_context(serving(server.url, **settings))
        ways = [through_client(ndd.wrap(client, **settings)), through_proxy(proxy.url)]
        works = [
            kind(number, indexes, ways[number % 2], history).run
            for kind in (Searcher, Writer)
            for number in range(2 * THREADS)
        ]
        with threads(history, works):
            history.stop.wait(FIRST)
            client.indices.put_mapping(index=indexes[1], body={"properties": mapping_properties()})
            history.stop.wait(FIRST)
            write_again(client, indexes[1])
            history.complete = time.monotonic()
            for _ in range(2):
                if not history.stop.wait(seconds / 3):
                    server.kill()
                    history.stop.wait(FIRST)
                    server.start_again()
            history.stop.wait(seconds / 3)
        if not history.fault:
            check_stored(engine, indexes, history)
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(history.counts.items()))
    seconds_taken = time.monotonic() - began
    print(f"{name} from empty: {seconds_taken:.0f} s, {told}{history.fault and chr(10)}{history.fault}", flush=True)
    return not history.fault


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0, help="beside two restarts of the engine (default: 12)")
    parser.add_argument("--engine", action="append", help="elasticsearch9 and opensearch3 by default")
    chosen = parser.parse_args()
    names = chosen.engine or ["elasticsearch9", "opensearch3"]
    return 0 if all(soak_from_empty(name, chosen.seconds) for name in names) else 1


if __name__ == "__main__":
    sys.exit(main())
