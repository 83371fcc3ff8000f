"""What the benchmarks of searches index and search: generated documents, or a labelled collection."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

WORDS = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "re", "su") for b in ("ban", "dor", "fel", "gim") for c in range(400)]
LENGTHS = {"0.3 kB": 40, "3 kB": 400}  # words
QUERIES = 20


class Workload(NamedTuple):
    """What is indexed and searched. documents: called with the name of an index, gives bulk actions."""

    name: str
    documents: Callable[[str], Iterable[dict[str, Any]]]
    queries: list[dict[str, Any]]


def documents(index: str, count: int, length: int) -> Iterator[dict[str, Any]]:
    """Yield bulk actions; every third document is a near-copy of the one before it."""
    rng = random.Random(length)
    weights = [1 / (place + 10) for place in range(len(WORDS))]
    words: list[str] = []
    for number in range(count):
        if number % 3 == 2:
            words = [rng.choice(WORDS) if rng.random() < 0.01 else word for word in words]
        else:
            words = rng.choices(WORDS, weights, k=length)
        yield {"_index": index, "_id": str(number), "body": " ".join(words)}


def generated(name: str, length: int, count: int) -> Workload:
    """Return a workload of generated documents."""
    return Workload(name, lambda index: documents(index, count, length), queries())


def collected(folder: Path) -> Workload:
    """Return the workload of a labelled collection."""

    def rows(name: str) -> Iterator[dict[str, Any]]:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    def actions(index: str) -> Iterator[dict[str, Any]]:
        return ({"_index": index, "_id": one["id"], "body": one["text"]} for one in rows("documents"))

    asked = [{"match": {"body": one["query"]}} for one in rows("queries")]
    random.Random(1).shuffle(asked)
    return Workload(folder.name, actions, asked[: 2 * QUERIES])


def queries() -> list[dict[str, Any]]:
    """Return queries: pairs of frequent words."""
    rng = random.Random(1)
    return [{"match": {"body": " ".join(rng.sample(WORDS[:200], 2))}} for _ in range(QUERIES)]
