"""What compares hits by their fields, in place of sketches: `ndd_search.items.Items`, which needs an extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ndd_search.core.matching.guards import FieldReader
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.options import CollapseOptions, Longest
from ndd_search.core.sketching.sketches import Lack, Sketch

Record = dict[str, Any]  # values by the path of their field
SEEN_WITH_ITEMS = '"seen" is compared by sketches, so it cannot be combined with items: leave one of them out'
_NO_SKETCH = np.empty(0, np.int32)


class Similarity(Protocol):
    """The comparison of two records."""

    @property
    def probability(self) -> float:
        """The probability that both are one thing, 0..1."""

    @property
    def similarity(self) -> float:
        """The mean similarity of the fields that both have, 0..1."""

    def explain(self) -> str:
        """Return a line for each field and one for the total."""


class RecordSchema(Protocol):
    """Decides which records are one thing. The decision about a pair never depends on other records."""

    @property
    def id(self) -> str:
        """A name that is equal for equal schemas only."""

    @property
    def min_probability(self) -> float:
        """The probability from which two records are one thing."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields of a record that are read."""

    def same_pairs(self, records: Sequence[Any], old: int, min_probability: float | None) -> Pairs:
        """Return the pairs of records that are one thing, with their probability.

        old: so many of the first records are not compared with one another.
        min_probability: None for the schema's own.
        """

    def similarity(self, a: Any, b: Any) -> Similarity:
        """Compare two records."""


def record_of(hit: Any, reader: FieldReader, schema: RecordSchema) -> Record:
    """Return the fields of a hit that a schema reads; empty if it has none of them."""
    return {path: value for path in schema.paths if (value := reader.value(hit, path)) is not None}


def presence(hits: Sequence[Any], reader: FieldReader, schema: RecordSchema) -> list[Sketch | Lack]:
    """Return for each hit an empty sketch, or "missing" if it has none of the fields that a schema reads."""
    paths = schema.paths
    has = [any(reader.value(hit, path) is not None for path in paths) for hit in hits]
    return [_NO_SKETCH if one else Lack.MISSING for one in has]


def bar_of(options: CollapseOptions) -> float | None:
    """Return the min_probability that min_similarity sets, None for that of the schema."""
    return None if isinstance(options.min_similarity, str) else options.min_similarity


def check_schema(items: object) -> None:
    """Raise TypeError for anything but a schema or None."""
    if items is not None and not hasattr(items, "same_pairs"):
        raise TypeError(f"items must be a schema such as ndd_search.items.Items.read(FILE), got {items!r}")


def check_fits_records(options: CollapseOptions) -> None:
    """Raise ValueError if an option needs sketches."""
    named = options.min_similarity in ("identical", "high", "moderate")
    for name, needed, remedy in (
        ("min_similarity", named, 'give a probability above 0 and below 1, or "auto" for that of the schema'),
        ("min_similarity", options.min_similarity == 1, "give a probability below 1"),
        ("keep", Longest() in options.preferences, 'name a field, "longest:FIELD"'),
        ("group_by", bool(options.group_by), "add an exact field to the schema"),
        ("max_per", bool(options.max_per), "leave it out"),
        ("facets", bool(options.facets), "leave it out"),
        ("members", options.members == "all", 'leave it at "window", or set total="groups"'),
        ("guards", options.same_numbers or options.length_ratio > 0, "add a field to the schema, or use same:FIELD"),
    ):
        if needed:
            raise ValueError(f"with items, {name} cannot be {getattr(options, name)!r}: {remedy}")
