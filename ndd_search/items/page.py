"""Pages of ranked records: each thing once.

`ndd.collapse` compares one sketch for each hit, and a cached stream holds sketches. Items compare several values of
several kinds, so they have a function of their own, with the same groups: each hit joins the best-ranked leader that it
is one thing with, else it becomes a leader. A longer list never changes an earlier leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd_search.checks import check_page
from ndd_search.items.candidates import Bounds, find_candidates
from ndd_search.items.compare import Places
from ndd_search.items.model import probabilities
from ndd_search.items.similarity import Similarity
from ndd_search.items.table import read_table
from ndd_search.matching.groups import choose_leaders
from ndd_search.matching.pairs import Pairs
from ndd_search.paging.page import Duplicate, Group

if TYPE_CHECKING:
    from ndd_search.items.schema import Items

_EVERY_PAIR = 400  # hits of a list up to which all pairs are compared


@dataclass(frozen=True, eq=False)
class ItemPage:
    """A slice of a list without repeated things.

    groups: shown hits with their duplicates; `similarity` of a duplicate is its probability to be one thing with it.
    kept:   how many different things the whole list holds.
    bad:    how many values of each field could not be read; they count as missing.
    """

    groups: tuple[Group, ...]
    kept: int
    bad: Mapping[str, int]
    _schema: Items
    _hits: tuple[Any, ...]
    _leader: Places

    @property
    def hits(self) -> list[Any]:
        """The hits to show, in order, as they were given."""
        return [group.hit for group in self.groups]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.groups)

    def explain(self, rank: int) -> Similarity | None:
        """Compare the hit at a rank with its leader; None for a leader. Raises IndexError."""
        leader = int(self._leader[rank])
        return (
            None
            if leader == rank
            else self._schema.similarity(_fields_of(self._hits[leader]), _fields_of(self._hits[rank]))
        )


def collapse_items(schema: Items, hits: Iterable[Any], size: int, from_: int) -> ItemPage:
    """Return one page of a ranked list of records.

    hits: best first: mappings or objects, or hits of an engine, whose `_source` is read.
    """
    check_page(size, from_)
    if isinstance(hits, str | bytes | Mapping):
        raise TypeError(f"hits must be a list of records, got one {type(hits).__name__}")
    ranked = tuple(hits)
    table = read_table(schema.fields, map(_fields_of, ranked))
    comparison = schema.comparison(table)
    if len(ranked) <= _EVERY_PAIR:
        first, second = np.triu_indices(len(ranked), 1)
    else:
        found = find_candidates(comparison, Bounds())
        first, second = found.first, found.second
    odds = schema.log_odds(comparison.graded(first, second))
    yes = odds >= schema.bar
    leader, similarity = choose_leaders(len(ranked), Pairs(first[yes], second[yes], probabilities(odds[yes])))
    members: dict[int, list[int]] = {}
    for rank, of in enumerate(leader.tolist()):
        members.setdefault(of, []).append(rank)
    groups = tuple(
        Group(ranked[of], of, tuple(Duplicate(ranked[i], i, float(similarity[i])) for i in every if i != of))
        for of, every in list(members.items())[from_ : from_ + size]
    )
    return ItemPage(groups, len(members), table.bad, schema, ranked, leader)


def _fields_of(hit: Any) -> Any:
    """Return the record in a hit of an engine, or the hit itself."""
    source = hit.get("_source") if isinstance(hit, Mapping) else None
    return source if isinstance(source, Mapping) else hit
