"""Which of the documents in `walks` are near-duplicates, by their words alone. Imports nothing of the library."""

from __future__ import annotations

import re
from typing import Any

BARS = {"identical": 1.0, "high": 0.8}
UNLIKE = 0.2  # below it, "auto" takes no pair for near-duplicates
DAYS = 10

Document = dict[str, Any]


def are_alike(one: Document, other: Document, options: dict[str, Any]) -> bool | None:
    """Return whether two documents with sketches are near-duplicates; None where a frequency table decides."""
    if not _fit(one, other, options):
        return False
    shared, bar = resemblance(one, other), options["min_similarity"]
    if bar != "auto":
        return bool(shared >= BARS.get(bar, bar) - 1e-9)
    return True if shared == 1 else False if shared < UNLIKE else None


def resemblance(one: Document, other: Document) -> float:
    """Return the share of runs of three words that both have."""
    a, b = _shingles(one), _shingles(other)
    return len(a & b) / len(a | b)


def are_one_by_key(one: Document, other: Document, fields: list[str]) -> bool:
    """Return whether an equal value in one of some fields makes two documents one group."""
    return any(values_of(one, name) & values_of(other, name) for name in fields)


def values_of(document: Document, name: str) -> set[str]:
    """Return the values of a field, none if it is missing or null."""
    found = document.get(name)
    return set(found if isinstance(found, list) else [found]) - {None}


def _shingles(document: Document) -> set[tuple[str, ...]]:
    words = document["body"].split()
    return {tuple(words[at : at + 3]) for at in range(len(words) - 2)}


def _fit(one: Document, other: Document, options: dict[str, Any]) -> bool:
    """Return whether no guard keeps two documents apart."""
    return all(_fits(guard, one, other) for guard in options.get("guards", ()))


def _fits(guard: str, one: Document, other: Document) -> bool:
    kind, _, rest = guard.partition(":")
    if kind == "same":
        return bool(one.get(rest) == other.get(rest))
    if kind == "numbers":
        return _numbers(one) == _numbers(other)
    if kind == "within":
        return abs(_day(one) - _day(other)) <= DAYS
    lengths = sorted((len(_shingles(one)), len(_shingles(other))))
    return lengths[0] / lengths[1] >= float(rest)


def _numbers(document: Document) -> set[str]:
    return set(re.findall(r"\d+", document["body"]))  # also those inside words


def _day(document: Document) -> int:
    return int(document["day"][-2:])
