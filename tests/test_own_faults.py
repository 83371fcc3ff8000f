"""Faults of the process and of what is around it: no memory for the core, no file handles, false clocks and caches."""

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from benchmarks.page_kinds import sketches_of
from ndd_search import native
from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_document_frequency, count_in_list
from ndd_search.core.matching.similar_pairs import given_pairs, resembling_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.core.sketching.sketches import sketch, sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField, StoredSketches
from ndd_search.corpus.collection_pairs import Search
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer, parsed, without_fields
from ndd_search.search.rest.read_request import Request
from tests.compiled_core import compiled, compiler, loaded
from tests.items.made import PEOPLE, people
from tests.native.both import in_frames
from tests.prove.engine import INDEX, Engine
from tests.wrapping.recorder import recorder

HEADER = Path(__file__).parent / "failing_allocations.h"
UNITS = [ndd.Recipe.lines(), ndd.Recipe.sentences(None), ndd.Recipe.sentences(hash="crc32")]
NOT_FAILING = {
    "is_plain",  # these two allocate nothing, but for objects of Python
    "edges",
}


class CalledCore:
    """A core that remembers which of its functions were called."""

    def __init__(self, core: Any) -> None:
        self.core, self.called = core, set[str]()

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(self.core, name)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int, int], int]]:
    """The core, compiled so that an allocation of it fails on demand: see failing_allocations.h."""
    if native.core is None or compiler() is None:
        pytest.skip("the native core is not used, or cannot be built here")
    flags = os.environ.get("CFLAGS", "").split()  # `make sanitize` sets them
    library = compiled(tmp_path_factory.mktemp("core"), "-O1", *flags, "-include", str(HEADER), link=(*flags,))
    fail_allocation = ctypes.CDLL(str(library)).fail_allocation
    fail_allocation(0, 1)  # a core that is not told the words of edges would give other results than numpy
    before, native.core = native.core, CalledCore(loaded(library))
    fail_allocation(-1, 0)
    yield fail_allocation
    native.core = before


def plain(value: Any) -> Any:
    """Arrays as lists, in any structure."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def work() -> dict[str, Callable[[], Any]]:
    """Calls that use every function of the core but NOT_FAILING, and what is compared of them."""
    page, table = in_frames(np.random.default_rng(3), 40, 300)
    sketches, recipe = sketches_of(page, 64), ndd.Recipe()
    told = "PARIS (AFP) - the museum of porcelain shows cups to all who ask for them"
    texts = ["plain words of a text", told, "Ünï\u0301 ở e\u0323\u0301 " * 40, "漢字かな " * 30, ""]
    words = np.random.default_rng(5).choice([f"w{number}" for number in range(90)], (40, 30))
    collection = sketch_many([" ".join(words[number // 2 * 2]) + f" {number}" for number in range(40)], recipe)
    search, places = Search(recipe=recipe, decision=Decision(0.5, 3)), np.arange(39)
    stored = [{"fields": {"ndd.sketch": one.tolist(), "ndd.recipe": [recipe.id]}} for one in collection]
    answer, persons = json.dumps({"hits": {"hits": stored}}), people(14, seed=1).records

    def led() -> Any:
        found = search.leaders(collection)
        return found.leader, found.similarity

    def paired() -> Any:
        found = search.pairs(collection)
        return found.pairs.first, found.pairs.second, found.pairs.similarity, found.same

    def cut() -> Any:
        body, sketches = parsed(answer, json.loads, StoredSketches(SketchField(), recipe))
        found = Answer(body, cut=sketches)
        hits = [without_fields(hit, SketchField().read) for hit in found.hits]
        return list(found.sketches(SketchField(), recipe)), hits

    return {
        "a page": lambda: assign_leaders(sketches, 64, Decision(None, 3, replace(table))),
        "pairs": lambda: list(
            vars(resembling_pairs(rows_of(sketches, 64), Decision(None, 3, replace(table)))).values()
        ),
        "the frequency table of a list": lambda: count_in_list(sketches, recipe).to_dict(),
        "a text": lambda: [sketch(text, recipe) for text in texts],
        "texts": lambda: [one.tolist() for one in sketch_many(texts, recipe)],
        "lines and sentences": lambda: [one.tolist() for of in UNITS for one in sketch_many(texts, of)],
        "leaders of a collection": led,
        "pairs of a collection": paired,
        "some pairs": lambda: list(
            vars(given_pairs(rows_of(collection, 64), Decision(None, 3, replace(table)), places, places + 1)).values()
        ),
        "the frequency table of a collection": lambda: count_document_frequency(collection, recipe).to_dict(),
        "stored sketches": lambda: list(SketchField().decode(stored, recipe)),
        "sketches in an answer": cut,
        "records": lambda: PEOPLE.groups(persons).leader,
    }


@pytest.mark.parametrize("later", [0, 1], ids=["one allocation", "it and all later ones"])
def test_the_core_without_memory_gives_the_same_results(failing: Callable[[int, int], int], later: int) -> None:
    """Each allocation fails in turn; numpy then does the work of the core."""
    for name, call in work().items():
        expected = plain(call())
        failing(-1, 0)
        assert plain(call()) == expected
        count = failing(-1, 0)
        assert count > 0, name
        for nth in range(count):
            failing(nth, later)
            assert plain(call()) == expected, (name, nth)
        failing(-1, 0)
    core: Any = native.core
    functions = {name for name, one in vars(core.core).items() if callable(one)}
    assert functions - core.called <= NOT_FAILING


class LyingCache(MemoryCache):
    """A cache that returns what was never stored under a key: values of others, damaged ones, other types, or fails."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng, self.values = random.Random(seed), [b"", b"ndd\x01"]

    def get(self, key: bytes) -> Any:
        return self._lie(super().get(key))

    def get_many(self, keys: Sequence[bytes]) -> Any:
        found = [self._lie(one) for one in super().get_many(keys)]
        return found[: self.rng.choice([0, 1, len(found)])] if self.rng.random() < 0.1 else found

    def put(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        self.values.append(value)
        if self.rng.random() < 0.9:
            super().put(key, value, seconds)

    def _lie(self, value: bytes | None) -> Any:
        if (kind := self.rng.random()) < 0.4:
            return value
        if kind < 0.5:
            raise OSError("the cache is away")
        other = self.rng.choice(self.values)
        place = self.rng.randrange(len(other) + 1)
        lies: list[Any] = [None, other, other[:place], other[:place] + b"x" + other[place + 1 :], "text", 5, [], {}]
        return self.rng.choice(lies)


def engine() -> Engine:
    """An engine with twenty texts, every other one a copy."""
    made = Engine(ndd.Recipe().id)
    for number in range(20):
        document = {
            "id": f"d{number}",
            "values": sorted(random.Random(number // 2).sample(range(2**31), 30)),
            "lack": "",
        }
        fields = {"score": 30.0 - number, "price": None, "time": None, "numbers": None, "text": f"text {number}"}
        made.write({**document, **fields})
    return made


def page_of(at: Engine, driver: Driver, start: int = 0) -> Any:
    body = {"query": {"match": {"body": "market"}}, "from": start, "size": 4}
    return driver.handle(Request("POST", f"/{INDEX}/_search", {}, {}, body), at.send).body


@pytest.mark.parametrize("seed", range(20))
def test_a_cache_that_lies_changes_no_page(seed: int) -> None:
    at = engine()
    drivers = [Driver(settings_of(window=6, frequency_table=False, cache=one)) for one in (LyingCache(seed), False)]
    for start in [0, 4, 8, 0, 4, 8, 0, 0, 4]:
        lied, honest = (page_of(at, driver, start) for driver in drivers)
        assert lied["hits"]["hits"] == honest["hits"]["hits"]
        assert not lied["ndd"]["degraded"]


NO_HANDLES = """
import resource, sys, warnings
warnings.simplefilter("ignore")
from {module} import {name}
import ndd_search

def outcome(client):
    try:
        client.search(index="idx", body={{"query": {{"match": {{"body": "x"}}}}}})
    except Exception as error:
        return type(error).__name__

clients = [{name}(sys.argv[1], max_retries=0), ndd_search.wrap({name}(sys.argv[1], max_retries=0))]
most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, most[1]))
refused = [outcome(client) for client in clients]
resource.setrlimit(resource.RLIMIT_NOFILE, most)
print(*refused, *map(outcome, clients))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(("module", "name"), [("elasticsearch", "Elasticsearch"), ("opensearchpy", "OpenSearch")])
@pytest.mark.once
def test_out_of_file_handles_is_the_clients_own_error_and_passes(module: str, name: str) -> None:
    pytest.importorskip(module)
    with recorder() as at:
        command = [sys.executable, "-c", NO_HANDLES.format(module=module, name=name), at.url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    plain_one, wrapped_one, *later = done.stdout.split()
    assert plain_one == wrapped_one == "ConnectionError"
    assert later == ["None", "None"]
