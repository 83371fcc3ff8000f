"""Which hit of a stream is shown at which place, and which hits are listed under it. Nothing here does I/O."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd_search.core.matching.group_by_keys import passed_over, values_of
from ndd_search.core.options import LISTING, CollapseOptions
from ndd_search.core.paging.choose_copy import order_of_preference
from ndd_search.core.paging.copies_or_entries import few_words, joined, kept_apart
from ndd_search.core.paging.fill_page import first_window
from ndd_search.core.paging.origins import Origins, origins_of
from ndd_search.core.paging.stream import Reader, Stream
from ndd_search.core.sketching.estimate_similarity import estimated_shingles


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
        if leader in self._groups:
            if leader not in self._shown_at:
                self._shown_at[leader] = self._shown_at_places(leader, reader)
            at, hidden = self._shown_at[leader]
            shown = at[place]
        if place != leader:
            return self._single(shown)
        listed = [self._duplicate(i, leader, shown) for i in hidden] if mode in LISTING else ()
        return Group(self.stream.hits[shown], self.ranks[shown], tuple(listed), similarity=similarity, seen=item)

    def _shown_at_places(self, leader: int, reader: Reader) -> tuple[dict[int, int], list[int]]:
        """Return which member of a group is shown at the place of each, and those that are hidden."""
        members = self._groups[leader]
        if self.options.max_per_group == 1 and self.options.keep == ("score",):
            return dict(zip(members, members, strict=True)), members[1:]
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
            values_of(hits[index], name, value) <= values_of(hits[leader], name, value) for name in self.options.max_per
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
        told = few_words(np.array([len(sketch) for sketch in leaders.values()]), reader.recipe)
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

    def _duplicate(self, index: int, leader: int, shown: int) -> Duplicate:
        to = shown if index == leader else index
        return Duplicate(self.stream.hits[index], self.ranks[index], self.similarity[to], self.shares.get(to, ""))

    def _shingles(self, index: int, k: int) -> float:
        sketch = self.stream.sketches[index]
        return float(estimated_shingles(len(sketch), sketch[-1] if len(sketch) else 0, k))
