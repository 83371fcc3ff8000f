"""The records of a whole index that are one thing with a given one: where to look for them, and which of them are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ndd_search.core.paging.record_schema import Record, RecordSchema

MOST_EXAMINED = 10_000  # documents compared with one; the default max_result_window of the engines


@dataclass(frozen=True)
class Candidate:
    """A document that resembles the given one.

    similarity: in 0..1, by the measure of the recipe; with items the probability that both are one thing.
    """

    id: str
    index: str
    similarity: float


@dataclass(frozen=True)
class Found:
    """A document to compare, with the fields that a schema reads."""

    id: str
    index: str
    record: Record


def check_numbers(size: int, examined: int) -> None:
    """Raise ValueError unless both are 1..10,000."""
    for name, value in (("size", size), ("examined", examined)):
        if not 1 <= value <= MOST_EXAMINED:
            raise ValueError(f"{name} must be 1..{MOST_EXAMINED:,}, got {value}")


def one_thing(record: Any, found: Sequence[Found], items: RecordSchema, bar: float | None) -> list[Candidate]:
    """Return the documents that are one thing with a record, the most probable first. bar: None for that of `items`."""
    pairs = items.same_pairs([*(one.record for one in found), record], len(found), bar)
    chosen = sorted(zip(pairs.first.tolist(), pairs.similarity.tolist(), strict=True), key=lambda pair: -pair[1])
    return [Candidate(found[place].id, found[place].index, probability) for place, probability in chosen]
