"""Pages of the deduplicated stream: which hit is shown at which place, and which hits are listed under it.

page = slice_page(stream, start, size, reader, options)  # of a stream that fill_page.fetch_until_full has filled
"""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from math import isnan
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ndd_search.core.immutable import dataclass
from ndd_search.core.matching.group_by_keys import passed_over, values_of
from ndd_search.core.matching.guards import number_in, seconds_since_1970
from ndd_search.core.options import LISTING, ByField, CollapseOptions
from ndd_search.core.paging.choose_copy import order_of_preference
from ndd_search.core.paging.copies_or_entries import few_words, joined, kept_apart
from ndd_search.core.paging.explain_hit import Explanation, explain
from ndd_search.core.paging.fill_page import first_window, window_for
from ndd_search.core.paging.origins import Origins, origins_of
from ndd_search.core.paging.record_schema import bar_of
from ndd_search.core.paging.stream import Reader, Stream
from ndd_search.core.sketching.estimate_similarity import estimated_shingles
from ndd_search.core.sketching.sketches import Lack

log = logging.getLogger("ndd_search")

_CUT = "a document to show could not be fetched, the page ends before it"
_TIME = "time (an ISO 8601 text, or a number since 1970)"


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

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> UniqueEstimate:
        """Read one that a cursor has carried."""
        return cls(given["value"], given["relation"], given["low"], given["high"])


@dataclass(frozen=True)
class Info:
    """How a page was made.

    examined:  number of hits examined; kept + hidden = examined.
    kept:      hits with a place in the stream. hidden: hits that are listed under their leader only.
    would_hide: hits that mode "group" would hide; None in other modes than "annotate".
    exhausted: whether the engine has no hits beyond those examined.
    capped:    whether max_window ended the search for more hits.
    lacking:   number of hits without a comparable sketch, by reason; they stand alone.
    late:      hidden hits that were found after the page of their leader: (rank, rank of leader, similarity).
    seen:      hits that resemble an item of `seen`, unless an earlier page has named them: (rank, item, similarity).
               In modes "demote" and "annotate", leaders alone.
    took:      seconds of our own work.
    cache:     "hit", "miss" or "off".
    degraded:  why near-duplicates may be shown or hits may be missing, "" if all went well.
    warnings:  sentences about settings that probably do not do what was intended: a field that no hit has, a recipe of
               which no hit has a sketch, or many short texts that differ in a few words and are one group; and about
               texts that were made to hide others (see `collapse`).
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
    would_hide: int | None = None

    @property
    def compares_none(self) -> bool:
        """Whether hits were examined, and none of them has a text or a sketch."""
        return bool(self.examined) and self.lacking == {Lack.MISSING: self.examined}


class Duplicate(NamedTuple):
    """A hit that is listed under another one.

    rank: in the engine's list. similarity: to its leader, 0..1.
    shares: the field whose value put it there (group_by, max_per); "" for a near-duplicate.
    """

    hit: Any
    rank: int
    similarity: float
    shares: str = ""


class Group(NamedTuple):
    """A shown hit with its duplicates.

    hit:          the hit that is shown.
    rank:         of that hit in the engine's list.
    duplicates:   the rest of its group, best rank first, each with its similarity to the leader. If `keep` chose
                  another copy than the leader, the leader is listed with its similarity to the copy that is shown.
    duplicate_of: rank of the leader of a duplicate that is shown itself (modes annotate and demote, max_per_group).
    similarity:   to that leader, or to what was seen; 1.0 otherwise. shares: as in Duplicate.
    whole:        whether all members of the group are known, as far as members="all" looks for them.
    seen:         the item of `seen` that the hit resembles (modes "demote" and "annotate").
    origins:      where its hits are from, if the option `origins` asks for it.
    """

    hit: Any
    rank: int
    duplicates: tuple[Duplicate, ...] = ()
    duplicate_of: int | None = None
    similarity: float = 1.0
    shares: str = ""
    seen: int | None = None
    whole: bool = True
    origins: Origins | None = None


@dataclass(frozen=True)
class Page:
    """A slice of the deduplicated stream: `hits` as the engine returned them, `groups` with their duplicates.

    Ranks are places in the engine's list. On a page of a cursor, they are places in what it was made of: first the hits
    that earlier pages have shown, then those after the last one that these have dealt with.

    options: how the hits were collapsed.
    cursor: of the next page, if this is a page of a source with a cursor; None at the end.
    """

    groups: tuple[Group, ...]
    info: Info
    _stream: Stream = field(repr=False, compare=False)
    _reader: Reader = field(repr=False, compare=False)
    options: CollapseOptions = field(repr=False, compare=False)
    _hits: Mapping[int, Any] = field(default_factory=dict, repr=False, compare=False)  # other hits than the stream's
    cursor: str | None = None

    @property
    def hits(self) -> list[Any]:
        """The hits to show, in order."""
        return [group.hit for group in self.groups]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def total(self) -> int | None:
        """The number of matching documents as the source tells it, None if it does not."""
        return self._stream.total

    @property
    def compares_seen(self) -> bool:
        """Whether the hits were compared with what was shown before."""
        return bool(self._stream.shown)

    def hit_at(self, rank: int) -> Any:
        """Return the hit with this rank in the engine's list. Raises IndexError if it was not examined."""
        return self._hits[rank] if rank in self._hits else self._stream.hits[self._stream.index_of(rank)]

    @property
    def shown_ranks(self) -> set[int]:
        """The ranks, in the engine's list, of the hits that the page shows."""
        return {group.rank for group in self.groups}

    @property
    def grouped_ranks(self) -> set[int]:
        """The ranks, in the engine's list, of all hits of the page's groups, also where their number alone is told."""
        return self.shown_ranks | {copy.rank for group in self.groups for copy in group.duplicates}

    @property
    def ranks(self) -> set[int]:
        """The ranks, in the engine's list, of all hits of which a response tells more than their number."""
        ranks = self.shown_ranks if self.options.mode == "count" else self.grouped_ranks
        ranks |= {group.duplicate_of for group in self.groups if group.duplicate_of is not None}
        for rank, leader, _ in self.info.late:
            ranks |= {rank, leader}
        return ranks | {rank for rank, _, _ in self.info.seen}

    def with_hits(self, hits: Mapping[int, Any]) -> Page:
        """Return the same page with other hits, given by their ranks in the engine's list.

        Duplicates whose rank is not among them are left out, unless they are only counted. The page ends before the
        first shown hit whose rank is not among them, and `info.degraded` says so.
        """
        groups, info, listed = list[Group](), self.info, self.options.mode != "count"
        for group in self.groups:
            if group.rank not in hits:
                info = replace(info, degraded=info.degraded or _CUT)
                break
            copies = [  # _replace takes four times as long
                Duplicate(hits.get(one.rank, one.hit), *one[1:])
                for one in group.duplicates
                if not listed or one.rank in hits
            ]
            of = group.duplicate_of if group.duplicate_of in hits else None
            groups.append(group._replace(hit=hits[group.rank], duplicates=tuple(copies), duplicate_of=of))
        if info.late or info.seen:
            late = tuple(one for one in info.late if one[0] in hits and one[1] in hits)
            info = replace(info, late=late, seen=tuple(one for one in info.seen if one[0] in hits))
        return Page(tuple(groups), info, self._stream, self._reader, self.options, hits)

    def explain(self, rank: int) -> Explanation:
        """Explain why the hit with this rank is shown or hidden. Raises IndexError if it was not examined."""
        return explain(self._stream, rank, self._reader, self.options)


def slice_page(stream: Stream, start: int, size: int, reader: Reader, options: CollapseOptions) -> Page:
    """Return the page [start, start + size) of a stream; a stream that is too short gives a shorter page."""
    began = perf_counter()
    window = min(window_for(stream, start + size, options), stream.fetched)
    examined = stream.examined(window)
    layout = Layout(stream, examined, options)
    over = stream.exhausted and examined == len(stream.hits)
    places = layout.places(everything=over or window >= options.max_window)
    shown = places[start : start + size]
    groups = [layout.group(place, reader) for place in shown]
    if options.origins:
        groups = [layout.with_origins(*one, reader) for one in zip(shown, groups, strict=True)]
    before = stream.examined(window_for(stream, start, options)) if start else 0
    kept = len(layout.places(everything=True))
    hides = options.mode in (*LISTING, "drop") and kept < examined
    info = Info(
        examined=examined,
        kept=kept,
        hidden=examined - kept,
        exhausted=over,
        capped=not over and window >= options.max_window,
        min_similarity=options.min_similarity
        if reader.items is None
        else bar_of(options) or reader.items.min_probability,
        recipe=reader.recipe.id if reader.items is None else reader.items.id,
        lacking=dict(Counter(filter(None, stream.lacking[:examined]))),
        unique=_unique(len(layout.leaders) - len(layout.passed_over), examined, stream.total, over),
        late=layout.late(before, start, reader) if start and hides else (),
        seen=tuple([(layout.ranks[one], *layout.seen[one]) for one in sorted(layout.seen) if one >= before]),
        warnings=(
            *(_unread_fields(stream.hits[:examined], reader, options) if options.document_fields else ()),
            *_none_compared(stream.lacking[:examined], reader),
            *layout.unsure(shown, reader),
        ),
        took=perf_counter() - began,
        would_hide=examined - len(layout.leaders) if options.mode == "annotate" else None,
    )
    return Page(tuple(groups), info, stream, reader, options)


def places_of(stream: Stream, options: CollapseOptions) -> list[int]:
    """Return the indexes of the hits of a stream that have a place on a page, in the order shown."""
    if options.max_per_group == 1 and options.mode != "annotate" and not stream.seen:  # the leaders
        return np.flatnonzero(stream.leader == np.arange(len(stream.leader))).tolist()
    return Layout(stream, len(stream.hits), options).places(everything=False)


class Layout:
    """Which hit is shown at which place, for the first `examined` hits of a stream."""

    def __init__(self, stream: Stream, examined: int, options: CollapseOptions) -> None:
        self.stream, self.options = stream, options
        self.leader: list[int] = stream.leader[:examined].tolist()
        self.ranks: list[int] = stream.ranks[:examined].tolist()
        self.similarity: list[float] = stream.similarity[:examined].tolist()
        self.leaders = [index for index, leader in enumerate(self.leader) if leader == index]
        self._best_shown = options.max_per_group == 1 and options.keep == ("score",)  # each hit at its own place
        self._shown_at: dict[int, tuple[dict[int, int], list[int]]] = {}  # see _shown_at_places
        self._groups: dict[int, list[int]] = {}  # of each leader that has duplicates, with itself, ascending
        for index, leader in enumerate(self.leader):
            if leader != index:
                self._groups.setdefault(leader, [leader]).append(index)
        self.shares = dict(stream.shares)
        self._passed = passed_over(stream.shares, options) if stream.shares else set[int]()
        self.seen = {index: (item, alike) for index, item, alike in stream.seen if index < examined}
        moved = {} if options.mode == "annotate" else self.seen
        self.passed_over = self.seen if options.hides_seen else {}  # none of these joins another one
        slots = self.leaders
        if options.max_per_group > 1:
            slots = sorted(i for leader in slots for i in self._copies(leader)[: options.max_per_group])
        self.slots = [index for index in slots if self.leader[index] not in moved] if moved else slots
        self.moved = [index for index in slots if self.leader[index] in moved]

    def places(self, everything: bool) -> list[int]:
        """Return the indexes of hits in the order shown. everything: whether no longer window can follow."""
        if self.options.mode == "annotate":
            return list(range(len(self.leader)))
        if self.options.mode == "demote" and everything:
            elsewhere = {*self.slots, *self.moved}
            return self.slots + [index for index in range(len(self.leader)) if index not in elsewhere] + self.moved
        return self.slots

    def group(self, place: int, reader: Reader) -> Group:
        """Return the group that is shown at a place."""
        leader, mode = self.leader[place], self.options.mode
        if mode == "annotate":
            return self._single(place)
        item, similarity = self.seen.get(leader, (None, 1.0))
        shown, hidden = place, list[int]()
        if leader in self._groups and self._best_shown:
            hidden = self._groups[leader][1:]
        elif leader in self._groups:
            if leader not in self._shown_at:
                self._shown_at[leader] = self._shown_at_places(leader, reader)
            at, hidden = self._shown_at[leader]
            shown = at[place]
        if place != leader:
            return self._single(shown)
        hits, ranks, listed = self.stream.hits, self.ranks, list[Duplicate]()
        for index in hidden if mode in LISTING else ():
            to = shown if index == leader else index
            listed.append(Duplicate(hits[index], ranks[index], self.similarity[to], self.shares.get(to, "")))
        return Group(hits[shown], ranks[shown], tuple(listed), similarity=similarity, seen=item)

    def _shown_at_places(self, leader: int, reader: Reader) -> tuple[dict[int, int], list[int]]:
        """Return which member of a group is shown at the place of each, and those that are hidden."""
        members = self._groups[leader]
        slots, chosen = self._copies(leader)[: self.options.max_per_group], self._chosen(leader, reader)
        hidden = members[1:] if chosen == members[:1] else sorted(set(members).difference(chosen))
        places = [*slots, *sorted(set(members).difference(slots))]
        return dict(zip(places, [*chosen, *hidden], strict=True)), hidden

    def with_origins(self, place: int, group: Group, reader: Reader) -> Group:
        """Return the group at a place with its origins; a duplicate that is shown itself has none."""
        if self.options.mode == "annotate" or place != self.leader[place]:
            return group
        members = self._copies(place)  # a hit that only max_per put here says something else
        hits, sketches = ([values[index] for index in members] for values in (self.stream.hits, self.stream.sketches))
        return group._replace(origins=origins_of(hits, sketches, self.options.origins, reader.value, reader.recipe))

    def _members(self, leader: int) -> list[int]:
        """Return the indexes of a group's hits, ascending."""
        return self._groups.get(leader) or [leader]

    def _copies(self, leader: int) -> list[int]:
        """Return those members of a group that may be shown: all but hits that only max_per put there."""
        members = self._members(leader)
        return [index for index in members if index not in self._passed] if self._passed else members

    def _chosen(self, leader: int, reader: Reader) -> list[int]:
        """Return the copies to show at the first max_per_group places of a group.

        Each is the preferred copy, not shown before, within the first window that holds the place. So a longer window
        shows the same copy there, and no later page repeats it. What an earlier page of a cursor has shown stays.
        """
        copies, earlier = self._copies(leader), self.stream.earlier
        places = copies[: self.options.max_per_group]
        if self.options.keep == ("score",):
            return places
        chosen = [place for place in places if place < earlier]
        order = self._in_order([index for index in copies if index >= earlier], reader)
        later, left, begin = sorted((index, nth) for nth, index in enumerate(order)), list[tuple[int, int]](), 0
        for place in places[len(chosen) :]:
            known = self.stream.examined(first_window(self.ranks[place] + 1, self.options))
            end = bisect_left(later, (known, 0))
            for index, nth in later[begin:end]:
                insort(left, (nth, index))
            begin, leads_fewer = end, place == leader and self.options.max_per
            best = next(one for one in left if not leads_fewer or self._leads_no_more(one[1], leader, reader))
            left.remove(best)
            chosen.append(best[1])
        return chosen

    def _leads_no_more(self, index: int, leader: int, reader: Reader) -> bool:
        """Return whether a copy, shown for its leader, has no value for max_per that the leader lacks."""
        hits, value = self.stream.hits, reader.value
        return all(
            values_of(hits[index], name, value) <= values_of(hits[leader], name, value)
            for name in self.options.most_per
        )

    def _in_order(self, members: list[int], reader: Reader) -> list[int]:
        hits, preferences, k = self.stream.hits, self.options.preferences, reader.recipe.k
        return order_of_preference(members, hits, lambda index: self._shingles(index, k), reader.value, preferences)

    def late(self, before: int, start: int, reader: Reader) -> tuple[tuple[int, int, float], ...]:
        """Return hidden hits beyond the first `before` whose group is shown at one of the first `start` places."""
        late = []
        for leader in {self.leader[place] for place in self.slots[:start]}:
            members = self._members(leader)
            if members[-1] >= before:
                chosen = set(self._chosen(leader, reader))
                late += [(index, leader) for index in members if index >= before and index not in chosen]
        return tuple((self.ranks[i], self.ranks[leader], self.similarity[i]) for i, leader in sorted(late))

    def unsure(self, shown: Sequence[int], reader: Reader) -> list[str]:
        """Return warnings about short texts: too few words, copies of one text or entries of one form.

        shown: indexes of the hits of a page. A frequency table tells copies from entries, but not surely; without one,
        "auto" takes all of them for copies.
        """
        if self.options.min_similarity != "auto" or reader.recipe.measure != "kmv" or reader.items is not None:
            return []
        leaders = {index: self.stream.sketches[index] for index in shown if self.leader[index] == index}
        lengths = np.array([len(sketch) for sketch in leaders.values()])
        if reader.frequency_table is not None and not ((lengths > 0) & (lengths < reader.recipe.k)).any():
            return []  # no text is short
        told = few_words(lengths, reader.recipe)
        if reader.frequency_table is None:
            groups = [[one for one in group if one not in self.shares] for group in self._groups.values()]
            others = joined(groups, self.stream.sketches, self.ranks, reader.recipe)
        else:
            others = kept_apart(self.stream.hits, leaders, len(shown), reader, reader.recipe, self.options)
        return [*filter(None, [told]), *others]

    def _single(self, index: int) -> Group:
        leader = self.leader[index]
        of = None if leader == index else self.ranks[leader]
        item, similarity = self.seen.get(index, (None, self.similarity[index]))
        shares = self.shares.get(index, "")
        return Group(self.stream.hits[index], self.ranks[index], (), of, similarity, shares, item)

    def _shingles(self, index: int, k: int) -> float:
        sketch = self.stream.sketches[index]
        return float(estimated_shingles(len(sketch), sketch[-1] if len(sketch) else 0, k))


def _unread_fields(hits: Sequence[Any], reader: Reader, options: CollapseOptions) -> list[str]:
    """Return warnings about fields that options name and no hit has, or none as a time or number; logged once each."""
    warnings = []
    by_order = [one for one in options.preferences if isinstance(one, ByField)]
    times = {*options.seconds_apart, *(one.field for one in by_order if one.is_time)}
    numbers = {one.field for one in by_order if not one.is_time}
    for name in options.document_fields if hits else ():
        if all(reader.value(hit, name) is None for hit in hits):
            warnings.append(f"no hit has the field {name!r} that an option names: check its spelling")
            continue
        for fields, read, kind in ((times, seconds_since_1970, _TIME), (numbers, number_in, "number")):
            if name in fields and all(isnan(read(reader.value(hit, name))) for hit in hits):
                warnings.append(f"no hit has a {kind} in the field {name!r} that an option names")
    for sentence in warnings:
        log_once(sentence)
    return warnings


def _none_compared(lacking: Sequence[str], reader: Reader) -> list[str]:
    """Return a warning if no hit has a field of the schema, or every one a sketch of another recipe; logged once."""
    if reader.items is not None and set(lacking) == {Lack.MISSING}:
        sentence = f"no hit has a field of the schema ({', '.join(reader.items.paths)}): check their spelling"
    elif len(lacking) > 1 and set(lacking) == {Lack.FOREIGN}:
        problem = f"all hits have sketches of another recipe than {reader.recipe.id}, or of earlier texts"
        sentence = f"{problem}: pass the stored recipe, which ndd-search doctor names, or run ndd-search backfill"
    else:
        return []
    log_once(sentence)
    return [sentence]


@lru_cache(1024)
def log_once(sentence: str) -> None:
    log.warning(sentence)


def _unique(groups: int, examined: int, total: int | None, exhausted: bool) -> UniqueEstimate | None:
    if exhausted:
        return UniqueEstimate(groups, "eq", groups, groups)
    if total is None or not examined:
        return None
    unseen = max(total - examined, 0)
    return UniqueEstimate(round(groups + unseen * groups / examined), "estimate", groups, groups + unseen)
