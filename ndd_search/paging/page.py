"""Pages of the deduplicated stream. Nothing here does I/O.

page = slice_page(stream, start, size, reader, options)  # of a stream that fetching.fetch_until_full has filled
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from time import perf_counter
from typing import Any

import numpy as np

from ndd_search.collapse_options import CollapseOptions, Listing
from ndd_search.matching.decision import telling_shingles
from ndd_search.paging.explain import Explanation, explain
from ndd_search.paging.fetching import first_window, window_for
from ndd_search.paging.keep import fields_of, order_of_preference
from ndd_search.paging.stream import Reader, Stream
from ndd_search.sketching.estimates import estimated_shingles

log = logging.getLogger("ndd_search")

_FORM = 6  # so many different short texts in one group may be entries of one form


@dataclass(frozen=True)
class Duplicate:
    """A hit that is listed under another one.

    rank: in the engine's list. similarity: to its leader, 0..1.
    shares: the field whose value put it there (group_by, max_per); "" for a near-duplicate.
    """

    hit: Any
    rank: int
    similarity: float
    shares: str = ""


@dataclass(frozen=True)
class Group:
    """A shown hit with its duplicates.

    hit:          the hit that is shown.
    rank:         of that hit in the engine's list.
    duplicates:   the rest of its group, best rank first, each with its similarity to the leader. If `keep` chose
                  another copy than the leader, the leader is listed with its similarity to the copy that is shown.
    duplicate_of: rank of the leader of a duplicate that is shown itself (modes annotate and demote, max_per_group).
    similarity:   to that leader, or to what was seen; 1.0 otherwise. shares: as in Duplicate.
    whole:        whether all members of the group are known, as far as members="all" looks for them.
    seen:         the item of `seen` that the hit resembles (seen_mode "demote" and "annotate").
    """

    hit: Any
    rank: int
    duplicates: tuple[Duplicate, ...] = ()
    duplicate_of: int | None = None
    similarity: float = 1.0
    shares: str = ""
    seen: int | None = None
    whole: bool = True


@dataclass(frozen=True)
class UniqueEstimate:
    """How many hits the whole result has without near-duplicates.

    value:    exact if every hit was examined (relation "eq"), else extrapolated from the examined hits ("estimate").
    low, high: bounds that always hold: all unexamined hits are duplicates, or none is.
    """

    value: int
    relation: str
    low: int
    high: int


@dataclass(frozen=True)
class Info:
    """How a page was made.

    examined:  number of hits examined; kept + hidden = examined.
    kept:      hits with a place in the stream. hidden: hits that are listed under their leader only.
    exhausted: whether the engine has no hits beyond those examined.
    capped:    whether max_window ended the search for more hits.
    lacking:   number of hits without a comparable sketch, by reason; they stand alone.
    late:      hidden hits that were found after the page of their leader: (rank, rank of leader, similarity).
    seen:      hits that resemble an item of `seen`, unless an earlier page has named them: (rank, item, similarity).
               With seen_mode "demote" and "annotate", leaders alone.
    took:      seconds of our own work.
    cache:     "hit", "miss" or "off".
    degraded:  why near-duplicates may be shown or hits may be missing, "" if all went well.
    warnings:  sentences about settings that probably do not do what was intended: a field that no hit has, or many
               short texts that differ in a few words and are one group.
    members:   what members="all" found beyond the window; None if it was not asked for.
    explain:   an entry for each document that the search asked about; None if it asked about none.
    """

    examined: int
    kept: int
    hidden: int
    exhausted: bool
    capped: bool
    min_similarity: float | str
    recipe: str
    lacking: dict[str, int]
    unique: UniqueEstimate | None
    late: tuple[tuple[int, int, float], ...] = ()
    seen: tuple[tuple[int, int, float], ...] = ()
    took: float = 0.0
    cache: str = "off"
    degraded: str = ""
    warnings: tuple[str, ...] = ()
    members: Mapping[str, Any] | None = None
    explain: Sequence[Mapping[str, Any]] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the facts as a dict for JSON."""
        return {**vars(self), "unique": self.unique and dict(vars(self.unique))}


@dataclass(frozen=True)
class Page:
    """A slice of the deduplicated stream: `hits` as the engine returned them, `groups` with their duplicates."""

    groups: tuple[Group, ...]
    info: Info
    _stream: Stream = field(repr=False, compare=False)
    _reader: Reader = field(repr=False, compare=False)
    _options: CollapseOptions = field(repr=False, compare=False)
    _hits: Mapping[int, Any] = field(default_factory=dict, repr=False, compare=False)  # other hits than the stream's

    @property
    def hits(self) -> list[Any]:
        """The hits to show, in order."""
        return [group.hit for group in self.groups]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def compares_seen(self) -> bool:
        """Whether the hits were compared with what was shown before."""
        return bool(self._stream.shown)

    @property
    def counts_groups(self) -> bool:
        """Whether `hits.total` counts the hits that all pages show together."""
        return self._options.total != "hits"

    def hit_at(self, rank: int) -> Any:
        """Return the hit with this rank in the engine's list. Raises IndexError if it was not examined."""
        return self._hits[rank] if rank in self._hits else self._stream.hits[self._stream.index_of(rank)]

    @property
    def listing(self) -> Listing:
        """What a response tells of the duplicates of a hit."""
        return self._options.duplicates

    @property
    def shown_ranks(self) -> set[int]:
        """The ranks, in the engine's list, of the hits that the page shows."""
        return {group.rank for group in self.groups}

    @property
    def ranks(self) -> set[int]:
        """The ranks, in the engine's list, of all hits of which a response tells more than their number."""
        named = {group.duplicate_of for group in self.groups if group.duplicate_of is not None}
        listed = {copy.rank for group in self.groups for copy in group.duplicates if self.listing != "count"}
        late = {place for late in self.info.late for place in late[:2]}
        return self.shown_ranks | named | listed | late | {rank for rank, _, _ in self.info.seen}

    def with_hits(self, hits: Mapping[int, Any]) -> Page:
        """Return the same page with other hits, given by their ranks in the engine's list.

        Duplicates whose rank is not among them are left out, unless they are only counted. The page ends before the
        first shown hit whose rank is not among them.
        """
        counts = self.listing == "count"
        groups = tuple(
            Group(
                hits[group.rank],
                group.rank,
                tuple(
                    Duplicate(hits.get(one.rank, one.hit), one.rank, one.similarity, one.shares)
                    for one in group.duplicates
                    if counts or one.rank in hits
                ),
                group.duplicate_of if group.duplicate_of in hits else None,
                group.similarity,
                group.shares,
                group.seen,
                group.whole,
            )
            for group in takewhile(lambda group: group.rank in hits, self.groups)
        )
        late = tuple(one for one in self.info.late if one[0] in hits and one[1] in hits)
        seen = tuple(one for one in self.info.seen if one[0] in hits)
        info = (
            self.info if (late, seen) == (self.info.late, self.info.seen) else replace(self.info, late=late, seen=seen)
        )
        return Page(groups, info, self._stream, self._reader, self._options, hits)

    def explain(self, rank: int) -> Explanation:
        """Explain why the hit with this rank is shown or hidden. Raises IndexError if it was not examined."""
        return explain(self._stream, rank, self._reader, self._options)


def slice_page(stream: Stream, start: int, size: int, reader: Reader, options: CollapseOptions) -> Page:
    """Return the page [start, start + size) of a stream; a stream that is too short gives a shorter page."""
    began = perf_counter()
    window = min(window_for(stream, start + size, options), stream.fetched)
    examined = stream.examined(window)
    layout = _Layout(stream, examined, options)
    over = stream.exhausted and examined == len(stream.hits)
    places = layout.places(everything=over or window >= options.max_window)
    groups = tuple(layout.group(place, reader) for place in places[start : start + size])
    before = stream.examined(window_for(stream, start, options)) if start else 0
    kept = len(layout.places(everything=True))
    hides = options.mode in ("group", "drop") and kept < examined
    info = Info(
        examined=examined,
        kept=kept,
        hidden=examined - kept,
        exhausted=over,
        capped=not over and window >= options.max_window,
        min_similarity=_bar(reader, options),
        recipe=reader.recipe.id if reader.items is None else reader.items.id,
        lacking=dict(Counter(reason for reason in stream.lacking[:examined] if reason)),
        unique=_unique(len(layout.members), examined, stream.total, over),
        late=layout.late(before, start, reader) if start and hides else (),
        seen=layout.seen_since(before),
        warnings=(*_unread_fields(stream.hits[:examined], reader, options), *layout.short_forms(reader)),
        took=perf_counter() - began,
    )
    return Page(groups, info, stream, reader, options)


def places_of(stream: Stream, options: CollapseOptions) -> list[int]:
    """Return the indexes of the hits of a stream that have a place on a page, in the order shown."""
    if options.max_per_group == 1 and options.mode != "annotate" and not stream.seen:  # the leaders
        return np.flatnonzero(stream.leader == np.arange(len(stream.leader))).tolist()
    return _Layout(stream, len(stream.hits), options).places(everything=False)


class _Layout:
    """Which hit is shown at which place, for the first `examined` hits of a stream."""

    def __init__(self, stream: Stream, examined: int, options: CollapseOptions) -> None:
        self.stream, self.options = stream, options
        self.leader: list[int] = stream.leader[:examined].tolist()
        self.members: dict[int, list[int]] = {}
        for index, leader in enumerate(self.leader):
            self.members.setdefault(leader, []).append(index)
        self.shares = dict(stream.shares)
        self.seen = {index: (item, alike) for index, item, alike in stream.seen if index < examined}
        moved = {} if options.seen_mode == "annotate" else self.seen
        slots = list(self.members)  # the leaders, in their order
        if options.max_per_group > 1:
            slots = sorted(i for members in self.members.values() for i in members[: options.max_per_group])
        self.slots = [index for index in slots if self.leader[index] not in moved]
        self.moved = sorted(moved) if options.mode == "annotate" else [i for i in slots if self.leader[i] in moved]

    def places(self, everything: bool) -> list[int]:
        """Return the indexes of hits in the order shown. everything: whether no longer window can follow."""
        last = self.moved if everything and self.options.seen_mode == "demote" else []
        elsewhere = set(self.moved)
        if self.options.mode == "annotate":
            return [index for index in range(len(self.leader)) if index not in elsewhere] + last
        if self.options.mode == "demote" and everything:
            elsewhere |= set(self.slots)
            return self.slots + [index for index in range(len(self.leader)) if index not in elsewhere] + last
        return self.slots + last

    def group(self, place: int, reader: Reader) -> Group:
        """Return the group that is shown at a place."""
        leader, mode = self.leader[place], self.options.mode
        if mode == "annotate":
            return self._single(place)
        members = self.members[leader]
        chosen = self._chosen(members, reader)
        hidden = sorted(set(members).difference(chosen))
        nth = members.index(place)
        if nth:
            return self._single([*chosen, *hidden][nth])
        shown = chosen[0]
        listed = tuple(self._duplicate(i, leader, shown) for i in hidden) if mode == "group" else ()
        item, similarity = self.seen.get(leader, (None, 1.0))
        return Group(self.stream.hits[shown], self._rank(shown), listed, similarity=similarity, seen=item)

    def _chosen(self, members: list[int], reader: Reader) -> list[int]:
        """Return the copies to show at the first max_per_group places of a group.

        Each is the preferred copy, not shown before, within the first window that holds the place. So a longer window
        shows the same copy there, and no later page repeats it.
        """
        places = members[: self.options.max_per_group]
        if self.options.keep == ("score",):
            return places
        chosen: list[int] = []
        for place in places:
            known = self.stream.examined(first_window(self._rank(place) + 1, self.options))
            left = [index for index in members if index < known and index not in chosen]
            chosen += self._in_order(left, reader)[:1]
        return chosen

    def _in_order(self, members: list[int], reader: Reader) -> list[int]:
        hits, preferences, k = self.stream.hits, self.options.preferences, reader.recipe.k
        return order_of_preference(members, hits, lambda index: self._shingles(index, k), reader.value, preferences)

    def late(self, before: int, start: int, reader: Reader) -> tuple[tuple[int, int, float], ...]:
        """Return hidden hits beyond the first `before` whose group is shown at one of the first `start` places."""
        late = []
        for leader in {self.leader[place] for place in self.slots[:start]}:
            members = self.members[leader]
            if members[-1] >= before:
                chosen = self._chosen(members, reader)
                late += [(index, leader) for index in members if index >= before and index not in chosen]
        return tuple(
            (self._rank(i), self._rank(leader), float(self.stream.similarity[i])) for i, leader in sorted(late)
        )

    def seen_since(self, before: int) -> tuple[tuple[int, int, float], ...]:
        """Return the hits beyond the first `before` that resemble what was shown: rank, item, similarity."""
        return tuple((self._rank(index), *self.seen[index]) for index in sorted(self.seen) if index >= before)

    def short_forms(self, reader: Reader) -> list[str]:
        """Return warnings about groups of short texts that may be entries of one form; "auto" cannot tell."""
        if self.options.min_similarity != "auto" or reader.recipe.measure != "kmv" or reader.items is not None:
            return []
        warnings = []
        for leader, members in self.members.items():
            if len(members) < _FORM or not 0 < len(self.stream.sketches[leader]) < telling_shingles(reader.recipe):
                continue
            similar = [index for index in members if index not in self.shares]
            different = len({self.stream.sketches[index].tobytes() for index in similar})
            if different >= _FORM:
                warnings.append(
                    f"{different} of {len(self.leader)} hits are short texts that differ in a few words and are shown "
                    f'as one, hit {self._rank(leader)}: if they are entries of one form, set min_similarity="identical"'
                    f", must_match or numbers_must_match"
                )
        return warnings

    def _single(self, index: int) -> Group:
        leader = self.leader[index]
        of = None if leader == index else self._rank(leader)
        item, similarity = self.seen.get(index, (None, float(self.stream.similarity[index])))
        return Group(self.stream.hits[index], self._rank(index), (), of, similarity, self.shares.get(index, ""), item)

    def _duplicate(self, index: int, leader: int, shown: int) -> Duplicate:
        to = shown if index == leader else index
        similarity, shares = float(self.stream.similarity[to]), self.shares.get(to, "")
        return Duplicate(self.stream.hits[index], self._rank(index), similarity, shares)

    def _rank(self, index: int) -> int:
        return int(self.stream.ranks[index])

    def _shingles(self, index: int, k: int) -> float:
        sketch = self.stream.sketches[index]
        return float(estimated_shingles(len(sketch), sketch[-1] if len(sketch) else 0, k))


def _bar(reader: Reader, options: CollapseOptions) -> float | str:
    """Return the similarity, or with items the probability, from which two hits are near-duplicates."""
    given = options.min_similarity
    return reader.items.min_probability if reader.items is not None and isinstance(given, str) else given


def _unread_fields(hits: Sequence[Any], reader: Reader, options: CollapseOptions) -> list[str]:
    """Return warnings about fields that settings name and no hit has. Each is logged once."""
    warnings = [
        f"no hit has the field {name!r} that an option names: check its spelling"
        for name in fields_of(options)
        if hits and all(reader.value(hit, name) is None for hit in hits)
    ]
    for sentence in warnings:
        _log_once(sentence)
    return warnings


@lru_cache(1024)
def _log_once(sentence: str) -> None:
    log.warning(sentence)


def _unique(groups: int, examined: int, total: int | None, exhausted: bool) -> UniqueEstimate | None:
    if exhausted:
        return UniqueEstimate(groups, "eq", groups, groups)
    if total is None or not examined:
        return None
    unseen = max(total - examined, 0)
    return UniqueEstimate(round(groups + unseen * groups / examined), "estimate", groups, groups + unseen)
