"""The hits fetched so far for one request, from rank 0 on, and the leader of each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from operator import index as position
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ndd_search.core.immutable import cached_property, dataclass
from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.group_by_keys import LeadersByKeys
from ndd_search.core.matching.guards import FieldReader, allowed, allowed_by_fields, comparable, seconds_since_1970
from ndd_search.core.matching.similar_pairs import Pairs, as_compared, leaders_of
from ndd_search.core.matching.similarity_measures import similar_pairs
from ndd_search.core.matching.sketch_rows import Ranks, rows_of
from ndd_search.core.options import CollapseOptions, check_fit
from ndd_search.core.paging.record_schema import RecordSchema, bar_of, check_fits_records, record_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Lack, Sketch, Sketches

UNKNOWN: Mapping[str, Any] = MappingProxyType({})  # a hit of which only the sketch is known
_NONE = np.empty(0, np.int32)
_BATCH = 500  # hits in the first batch, where all similar pairs are listed
_LEAST = 100  # hits in a batch, at least
_FEW_PAIRS = 2**16  # pairs in a batch, up to which the next batch is twice as long, and else half as long


class Reader(FieldReader, Protocol):
    """Reads the hits of one engine."""

    @property
    def recipe(self) -> Recipe:
        """The recipe whose sketches are compared."""

    @property
    def frequency_table(self) -> FrequencyTable | None:
        """The document frequencies of sketch values, None without a table."""

    @property
    def items(self) -> RecordSchema | None:
        """The schema by which hits are compared, None to compare their sketches."""

    def sketches(self, hits: Sequence[Any], ranks: Sequence[int]) -> Sequence[Sketch | Lack]:
        """Return the sketch of each hit, or why it has none: "missing", "empty", "foreign" or "malformed".

        ranks: of these hits in the engine's list.
        """

    def identities(self, hits: Sequence[Any], ranks: Sequence[int]) -> Sequence[Hashable]:
        """Return a key of each hit, equal for the same document only: the engine may return it in two requests."""

    def text_of(self, hit: Any) -> str | None:
        """Return the text of a hit, None where it has none, or only its sketch was fetched."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A hit that was shown before this search. item: its place in the list of these.

    hit: as the engine returns it, UNKNOWN if only its sketch is known. sketch: empty for a hit without one.
    """

    item: int
    hit: Any
    sketch: Sketch


@dataclass(frozen=True, eq=False)
class Stream:
    """The hits of one request with their leaders. Immutable: a cached stream can be read while another one extends it.

    hits:       as the engine returned them, best first, without repeated documents.
    sketches:   of each hit; empty for a hit without a comparable sketch.
    lacking:    of each hit, why it has no sketch, "" where it has one.
    ranks:      of each hit, its place in the engine's list; int64, ascending.
    leader:     of each hit, the index of its leader; int64. Later hits never change it.
    similarity: of each hit to its leader, 1.0 for leaders; float64.
    shares:     of each hit that a field put under its leader, its index and that field (group_by, max_per).
    shown:      what was shown before this search.
    earlier:    how many hits at the beginning stand for the earlier pages of a cursor, for each hit that these showed.
    apart:      why two hits are none whatever their sketches say, "" if they may be; None for all. It is not cached.
    seen:       of each leader that resembles an item of it: its index, the item, and the similarity.
    fetched:    how many places of the engine's list were fetched.
    exhausted:  whether the engine has no further hits.
    total:      how many documents match according to the engine, None if unknown.
    """

    hits: tuple[Any, ...] = ()
    sketches: Sequence[Sketch] = ()
    lacking: tuple[str, ...] = ()
    ranks: Ranks = field(default_factory=lambda: np.empty(0, np.int64))
    leader: Ranks = field(default_factory=lambda: np.empty(0, np.int64))
    similarity: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    shares: tuple[tuple[int, str], ...] = ()
    shown: tuple[Shown, ...] = ()
    earlier: int = 0
    apart: Callable[[Any, Any], str] | None = None
    seen: tuple[tuple[int, int, float], ...] = ()
    fetched: int = 0
    exhausted: bool = False
    total: int | None = None

    def examined(self, window: int) -> int:
        """Return how many of the hits are within the first `window` places of the engine's list."""
        return int(self.ranks.searchsorted(window))

    def index_of(self, rank: int) -> int:
        """Return the index of the hit with this rank. Raises IndexError for a rank that was not examined."""
        index = int(self.ranks.searchsorted(position(rank)))
        if index >= len(self.ranks) or self.ranks[index] != rank:
            raise IndexError(f"rank {rank} was not examined: the stream holds {len(self.ranks)} of the engine's hits")
        return index

    @cached_property
    def grouped_ranks(self) -> set[int]:
        """The ranks of the hits that hide another one, or are hidden."""
        led = self.leader != np.arange(len(self.leader))
        led[self.leader[led]] = True
        return set(self.ranks[led].tolist())

    def only(self, indexes: Sequence[int]) -> Stream:
        """Return a stream of some of its hits, in this order. indexes: of hits, each after that of its leader."""
        kept = np.asarray(indexes, np.int64)
        places = {index: place for place, index in enumerate(kept.tolist())}
        return replace(
            self,
            hits=tuple([self.hits[index] for index in places]),
            sketches=tuple([self.sketches[index] for index in places]),
            lacking=tuple([self.lacking[index] for index in places]),
            ranks=self.ranks[kept],
            leader=np.array([places[leader] for leader in self.leader[kept].tolist()], np.int64),
            similarity=self.similarity[kept],
            shares=tuple(sorted((places[index], name) for index, name in self.shares if index in places)),
            seen=tuple(sorted((places[index], item, alike) for index, item, alike in self.seen if index in places)),
        )

    def extend(
        self, hits: Sequence[Any], asked: int, reader: Reader, options: CollapseOptions, *, total: int | None = None
    ) -> Stream:
        """Return the stream with the engine's next hits added; fewer than `asked` means that the engine has no more."""
        ranks = self._new_ranks(hits, reader)
        fresh = hits if len(ranks) == len(hits) else [hits[rank - self.fetched] for rank in ranks]
        decoded = reader.sketches(fresh, ranks)
        all_there = isinstance(decoded, Sketches)
        lacking = [""] * len(decoded) if all_there else [str(one) if isinstance(one, Lack) else "" for one in decoded]
        sketches: Sequence[Any] = decoded
        if any(lacking):
            sketches = [_NONE if reason else one for one, reason in zip(decoded, lacking, strict=True)]
        assigned = self._assign_leaders(fresh, sketches, reader, options)
        return Stream(
            hits=(*self.hits, *fresh),
            sketches=sketches if all_there and not self.hits else (*self.sketches, *sketches),
            lacking=(*self.lacking, *lacking),
            ranks=np.concatenate((self.ranks, np.fromiter(ranks, np.int64, len(ranks)))),
            leader=assigned.leader,
            similarity=assigned.similarity,
            shares=(*self.shares, *sorted(assigned.shares.items())),
            shown=self.shown,
            earlier=self.earlier,
            apart=self.apart,
            seen=(*self.seen, *[(index, *one) for index, one in sorted(assigned.seen.items())]),
            fetched=self.fetched + len(hits),
            exhausted=len(hits) < asked,
            total=self.total if total is None else total,
        )

    def _new_ranks(self, hits: Sequence[Any], reader: Reader) -> Sequence[int]:
        """Return the ranks of the next hits, without those of documents that a better rank has."""
        ranks = range(self.fetched, self.fetched + len(hits))
        identities = reader.identities(hits, ranks)
        if not self.hits and len(set(identities)) == len(hits):
            return ranks
        first = dict.fromkeys(reader.identities(self.hits, self.ranks.tolist()), -1)
        for identity, rank in zip(identities, ranks, strict=True):
            first.setdefault(identity, rank)
        return [rank for rank in first.values() if rank >= 0]

    def _assign_leaders(
        self, fresh: Sequence[Any], sketches: Sequence[Sketch], reader: Reader, options: CollapseOptions
    ) -> _Leaders:
        """Return the leader of each old and new hit and the similarity to it. New hits may lead later ones.

        Its `shares` and `seen` are those of the new hits.
        """
        if self.shown and not options.hides_seen:
            return self._mark_seen(fresh, sketches, reader, options)
        compare, start, size = _Comparison.of(reader, options, self.apart), len(self.hits), _BATCH
        if not self.hits and not self.shown and (by_core := compare.by_core(sketches, 0)):
            return _Leaders(*by_core)
        hits, sketches = [*self.hits, *fresh], [*self.sketches, *sketches]
        found = _Leaders(np.arange(len(hits)), np.ones(len(hits)))
        found.leader[:start], found.similarity[:start] = self.leader, self.similarity
        order = np.arange(start, len(hits))
        near = compare.near(hits) if len(fresh) > size else None
        is_seen = np.zeros(len(hits), bool)
        is_seen[[index for index, _, _ in self.seen]] = True
        if self.shown:
            for index, item in self._same_documents(fresh, reader).items():
                found.seen[index] = item, 1.0
                is_seen[index], hits[index], sketches[index] = True, UNKNOWN, _NONE
        if near is not None:
            order = order[np.argsort(near.classes[start:], kind="stable")]
        leads = found.leader == np.arange(len(hits))
        leads[start:] = False
        while len(order):
            batch, order = order[:size], order[size:]
            # A page holds what was shown before, the leaders so far, and a batch of the new hits, in this order.
            old = np.flatnonzero(leads & ~is_seen)
            old = old if near is None else old[near(old, batch)]
            where, before = np.concatenate((old, batch)), len(self.shown)
            members = where.tolist()
            page = [*(one.hit for one in self.shown), *(hits[i] for i in members)]
            compared = [*(one.sketch for one in self.shown), *(sketches[i] for i in members)]
            led = compare(page, compared, before + len(old), before)
            leader, similarity = led.leader[before + len(old) :], led.similarity[before + len(old) :]
            for at in np.flatnonzero(leader < before).tolist():
                index = int(batch[at])
                found.seen[index] = self.shown[leader[at]].item, float(similarity[at])
                is_seen[index] = True
            joined = leader >= before
            found.leader[batch[joined]] = where[leader[joined] - before]
            found.similarity[batch[joined]] = similarity[joined]
            leads[batch] = found.leader[batch] == batch
            found.shares.update((members[place - before], name) for place, name in led.shares.items())
            size = 2 * size if led.pairs < _FEW_PAIRS else max(size // 2, _LEAST)
        return found

    def _mark_seen(
        self, fresh: Sequence[Any], sketches: Sequence[Sketch], reader: Reader, options: CollapseOptions
    ) -> _Leaders:
        """Assign leaders among the hits alone, and mark the new leaders that resemble what was shown."""
        found = replace(self, shown=(), seen=())._assign_leaders(fresh, sketches, reader, options)
        first = len(self.hits)
        new = [at for at in range(len(fresh)) if found.leader[first + at] == first + at]
        hidden = replace(options, mode="group")
        compared = replace(Stream(), shown=self.shown, apart=self.apart)._assign_leaders(
            [fresh[at] for at in new], [sketches[at] for at in new], reader, hidden
        )
        found.seen.update((first + new[at], one) for at, one in compared.seen.items())
        return found

    def _same_documents(self, fresh: Sequence[Any], reader: Reader) -> dict[int, int]:
        """Return the new hits that are themselves among what was shown, with or without a sketch: index -> item."""
        known = [one for one in self.shown if one.hit is not UNKNOWN]
        items = [one.item for one in known]
        shown = dict(
            zip(reader.identities([one.hit for one in known], [-1 - item for item in items]), items, strict=True)
        )
        keys = reader.identities(fresh, range(self.fetched, self.fetched + len(fresh)))
        return {index: shown[key] for index, key in enumerate(keys, len(self.hits)) if key in shown}


NO_HITS = Stream()


@dataclass(frozen=True, eq=False)
class _Leaders:
    """The leaders of some hits, and the similarities.

    shares, seen: as in Stream. pairs: how many were similar, also those that a guard keeps apart.
    """

    leader: Ranks
    similarity: npt.NDArray[np.float64]
    shares: dict[int, str] = field(default_factory=dict)
    seen: dict[int, tuple[int, float]] = field(default_factory=dict)
    pairs: int = 0


@dataclass(frozen=True, eq=False)
class _Near:
    """Which hits guards may let join: those of one class, of times apart by so many seconds at most."""

    classes: npt.NDArray[np.int64]
    times: Sequence[tuple[npt.NDArray[np.float64], float]]

    def __call__(self, some: Ranks, others: Ranks) -> npt.NDArray[np.bool_]:
        """Return which of some hits may join one of the others. Both are given by their places."""
        may = np.isin(self.classes[some], self.classes[others])
        for seconds, apart in self.times:
            ordered = np.append(np.sort(seconds[others]), np.nan)
            may &= ordered[ordered[:-1].searchsorted(seconds[some] - apart)] <= seconds[some] + apart
        return may


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Assigns leaders among the hits of a page, by their sketches, or by their fields. apart: as in Stream."""

    reader: Reader
    options: CollapseOptions
    apart: Callable[[Any, Any], str] | None
    decision: Decision

    @classmethod
    def of(cls, reader: Reader, options: CollapseOptions, apart: Callable[[Any, Any], str] | None) -> _Comparison:
        """Return how hits are compared. Raises ValueError for options that do not fit the recipe or the schema."""
        if reader.items is not None:
            check_fits_records(options)
        else:
            check_fit(options, reader.recipe)
        decision = Decision.of(options.min_similarity, reader.recipe, reader.frequency_table)
        return cls(reader, options, apart, decision)

    def __call__(self, hits: Sequence[Any], sketches: Sequence[Sketch], leading: int, shown: int) -> _Leaders:
        """Return the leaders of a page. leading: so many hits are leaders already, and `shown` of them were shown."""
        if (by_core := self.by_core(sketches, leading)) is not None:
            return _Leaders(*by_core)
        pairs, verdicts = self._pairs(hits, sketches, leading)
        similar = len(pairs)
        pairs = self._apart(pairs.where(np.logical_and.reduce(verdicts)) if verdicts else pairs, hits)
        if not self.options.reads_keys:
            return _Leaders(*choose_leaders(len(hits), pairs), pairs=similar)
        by_keys = LeadersByKeys(hits, sketches, self.reader.recipe, self.reader.value, self.options)
        leader, similarity, shares = by_keys.choose(pairs, leading, shown)
        return _Leaders(leader, similarity, shares, pairs=similar)

    def near(self, hits: Sequence[Any]) -> _Near | None:
        """Return which hits the guards may let join, None if they may let all."""
        options, reader = self.options, self.reader
        if options.reads_keys or not (options.same_fields or options.same_numbers or options.seconds_apart):
            return None
        numbers: dict[tuple[Any, ...], int] = {}
        classes = []
        for place, hit in enumerate(hits):
            signature = reader.numbers(hit) if options.same_numbers else 0
            unknown = place if signature is None else -1  # equals none
            same = [comparable(reader.value(hit, name)) for name in options.same_fields]
            classes.append(numbers.setdefault((signature, unknown, *same), len(numbers)))
        times = [
            (np.array([seconds_since_1970(reader.value(hit, name)) for hit in hits]), apart + 1)  # differences round
            for name, apart in options.seconds_apart.items()
        ]
        return _Near(np.array(classes, np.int64), times)

    def by_core(self, sketches: Sequence[Sketch], leading: int) -> tuple[Ranks, npt.NDArray[np.float64]] | None:
        """Return leaders and similarities from the native core; None if it cannot tell them."""
        if self.reader.items is not None or self.options.guards or self.options.reads_keys or self.apart:
            return None
        recipe = self.reader.recipe
        return leaders_of(sketches, recipe.k, self.decision, leading, recipe.min_shingles)

    def _pairs(
        self, hits: Sequence[Any], sketches: Sequence[Sketch], leading: int
    ) -> tuple[Pairs, list[npt.NDArray[np.bool_]]]:
        """Return the similar pairs, without those of two leaders, and which of them each guard accepts."""
        reader, options, k = self.reader, self.options, self.reader.recipe.k
        if (items := reader.items) is not None:
            records = [record_of(hit, reader, items) for hit in hits]
            pairs = items.same_pairs(records, leading, bar_of(options))
            verdicts = allowed_by_fields(pairs, hits, reader, options)
        else:
            rows = rows_of(as_compared(sketches, k, self.decision), k)
            pairs = similar_pairs(rows, self.decision)
            pairs = pairs.where(pairs.second >= leading)
            verdicts = allowed(pairs, rows, hits, reader, options, reader.recipe.min_shingles)
        return pairs, list(verdicts.values())

    def _apart(self, pairs: Pairs, hits: Sequence[Any]) -> Pairs:
        """Return the pairs that `apart` does not refuse, which is asked once about two texts that many hits have."""
        if self.apart is None or not len(pairs):
            return pairs
        numbers: dict[str | int, int] = {}
        of = np.array(
            [numbers.setdefault(self.reader.text_of(hit) or place, len(numbers)) for place, hit in enumerate(hits)]
        )
        _, at, same = np.unique(
            of[pairs.first] * len(numbers) + of[pairs.second], return_index=True, return_inverse=True
        )
        ends = zip(pairs.first[at].tolist(), pairs.second[at].tolist(), strict=True)
        return pairs.where(np.array([not self.apart(hits[one], hits[other]) for one, other in ends], np.bool_)[same])
