"""The hits fetched so far for one request, from rank 0 on, and the leader of each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.collapse_options import CollapseOptions, check_fit
from ndd_search.matching.decision import Decision
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.matching.groups import choose_leaders
from ndd_search.matching.guards import Reader as FieldReader
from ndd_search.matching.guards import allowed, reads_hits
from ndd_search.matching.measures import similar_pairs
from ndd_search.matching.pairs import leaders_of
from ndd_search.matching.rows import Ranks, rows_of
from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import Lack, Sketch

_NONE = np.empty(0, np.int32)
_BATCH = 500  # hits in the first batch, where all similar pairs are listed
_FEW_PAIRS = 2**18  # pairs in a batch, up to which the next batch is twice as long; four times as many take 30 MB


class Reader(FieldReader, Protocol):
    """Reads the hits of one engine."""

    @property
    def recipe(self) -> Recipe:
        """The recipe whose sketches are compared."""

    @property
    def frequency_table(self) -> FrequencyTable | None:
        """The document frequencies of sketch values, None without a table."""

    def sketches(self, hits: Sequence[Any], ranks: Sequence[int]) -> Sequence[Sketch | Lack]:
        """Return the sketch of each hit, or why it has none: "missing", "empty", "foreign" or "malformed".

        ranks: of these hits in the engine's list.
        """

    def identity(self, hit: Any, rank: int) -> Hashable:
        """Return a key that is equal for the same document only: the engine may return it in two requests."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The hits of one request with their leaders. Immutable: a cached stream can be read while another one extends it.

    hits:       as the engine returned them, best first, without repeated documents.
    sketches:   of each hit; empty for a hit without a comparable sketch.
    lacking:    of each hit, why it has no sketch, "" where it has one.
    ranks:      of each hit, its place in the engine's list; int64, ascending.
    leader:     of each hit, the index of its leader; int64. Later hits never change it.
    similarity: of each hit to its leader, 1.0 for leaders; float64.
    fetched:    how many places of the engine's list were fetched.
    exhausted:  whether the engine has no further hits.
    total:      how many documents match according to the engine, None if unknown.
    """

    hits: tuple[Any, ...] = ()
    sketches: tuple[Sketch, ...] = ()
    lacking: tuple[str, ...] = ()
    ranks: Ranks = field(default_factory=lambda: np.empty(0, np.int64))
    leader: Ranks = field(default_factory=lambda: np.empty(0, np.int64))
    similarity: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    fetched: int = 0
    exhausted: bool = False
    total: int | None = None

    def examined(self, window: int) -> int:
        """Return how many of the hits are within the first `window` places of the engine's list."""
        return int(np.searchsorted(self.ranks, window))

    def index_of(self, rank: int) -> int:
        """Return the index of the hit with this rank. Raises IndexError for a rank that was not examined."""
        index = int(np.searchsorted(self.ranks, rank))
        if index >= len(self.ranks) or self.ranks[index] != rank:
            raise IndexError(f"rank {rank} was not examined: the stream holds {len(self.ranks)} of the engine's hits")
        return index

    def extend(
        self,
        hits: Sequence[Any],
        asked: int,
        reader: Reader,
        options: CollapseOptions,
        *,
        total: int | None = None,
    ) -> Stream:
        """Return the stream with the engine's next hits added; fewer than `asked` means that the engine has no more."""
        seen = {reader.identity(hit, rank) for hit, rank in zip(self.hits, self.ranks.tolist(), strict=True)}
        first: dict[Hashable, int] = {}  # of each document that is new, the rank
        for rank, identity in enumerate(map(reader.identity, hits, count(self.fetched)), self.fetched):
            if identity not in seen:
                first.setdefault(identity, rank)
        ranks = list(first.values())
        fresh = [hits[rank - self.fetched] for rank in ranks]
        decoded = reader.sketches(fresh, ranks)
        sketches = [_NONE if isinstance(one, Lack) else one for one in decoded]
        lacking = [str(one) if isinstance(one, Lack) else "" for one in decoded]
        leader, similarity = self._assign_leaders(fresh, sketches, reader, options)
        return Stream(
            hits=(*self.hits, *fresh),
            sketches=(*self.sketches, *sketches),
            lacking=(*self.lacking, *lacking),
            ranks=np.concatenate((self.ranks, np.array(ranks, np.int64))),
            leader=leader,
            similarity=similarity,
            fetched=self.fetched + len(hits),
            exhausted=len(hits) < asked,
            total=self.total if total is None else total,
        )

    def _assign_leaders(
        self, fresh: Sequence[Any], sketches: Sequence[Sketch], reader: Reader, options: CollapseOptions
    ) -> tuple[Ranks, npt.NDArray[np.float64]]:
        """Return the leader of each old and new hit and the similarity to it. New hits may lead later ones."""
        check_fit(options, reader.recipe)
        decision, k = Decision.of(options.min_similarity, reader.recipe, reader.frequency_table), reader.recipe.k
        hits, sketches = (*self.hits, *fresh), (*self.sketches, *sketches)
        leader, similarity = np.arange(len(hits)), np.ones(len(hits))
        leader[: len(self.hits)], similarity[: len(self.hits)] = self.leader, self.similarity
        start, size = len(self.hits), _BATCH
        by_core = native.core is not None and not reads_hits(options)
        while start < len(hits):
            end = len(hits) if by_core else min(start + size, len(hits))
            old = np.flatnonzero(leader[:start] == np.arange(start))
            where = np.concatenate((old, np.arange(start, end)))
            members = where.tolist()
            page = [sketches[i] for i in members]
            assigned = leaders_of(page, k, decision, len(old), options.min_shingles) if by_core else None
            if assigned is None and by_core:
                by_core = False
                continue
            if assigned is None:
                rows = rows_of(page, k)
                pairs = similar_pairs(rows, decision)
                pairs = pairs.where(pairs.second >= len(old))
                verdicts = allowed(pairs, rows, [hits[i] for i in members], reader, options)
                assigned = choose_leaders(len(where), pairs.where(np.logical_and.reduce(list(verdicts.values()))))
                size = 2 * size if len(pairs) < _FEW_PAIRS else size
            leader[start:end], similarity[start:end] = where[assigned[0][len(old) :]], assigned[1][len(old) :]
            start = end
        return leader, similarity
