"""A page of the deduplicated stream: the flow that asks an engine for hits until the page is full, without any I/O.

    stream = Stream()
    flow = fill(stream, start, size, reader, options)     # yields Fetch, is sent Fetched, returns the longer stream
    page = cut(stream, start, size, reader, options)

How far a page looks depends on the request alone (its first window, doubled until the page is full), never on what was
asked before, so a page cut out of a longer, cached stream is the page that a first request would have given.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from time import perf_counter
from typing import Any

import numpy as np

from ndd_search.collapse_options import CollapseOptions
from ndd_search.matching.decision import telling_shingles
from ndd_search.paging.explain import Explanation, explain
from ndd_search.paging.keep import fields_of, order_of_preference
from ndd_search.paging.stream import Reader, Stream
from ndd_search.sketching.estimates import estimated_shingles

log = logging.getLogger("ndd_search")

_FORM = 6  # different short texts in one group may be entries of one form


@dataclass(frozen=True)
class Fetch:
    """A wish: `size` hits of the engine's list from place `start` on."""

    start: int
    size: int


@dataclass(frozen=True)
class Fetched:
    """The answer to a Fetch; fewer hits than asked: the engine has no more. total: how many match, if known."""

    hits: Sequence[Any]
    total: int | None = None


@dataclass(frozen=True)
class Duplicate:
    """A hit that another one stands for. rank: its place in the engine's list. similarity: to its leader, 0..1."""

    hit: Any
    rank: int
    similarity: float


@dataclass(frozen=True)
class Group:
    """A shown hit with the duplicates it stands for.

    hit:          what is shown.
    rank:         place of that hit in the engine's list.
    duplicates:   the rest of its group, best rank first; each with its similarity to the leader, or, for the leader
                  itself where `keep` chose another copy, to the copy that is shown.
    duplicate_of: rank of the leader of a duplicate that is shown itself (modes annotate and demote, max_per_group).
    similarity:   to that leader; 1.0 otherwise.
    """

    hit: Any
    rank: int
    duplicates: tuple[Duplicate, ...] = ()
    duplicate_of: int | None = None
    similarity: float = 1.0


@dataclass(frozen=True)
class UniqueEstimate:
    """How many hits the whole result would have without near-duplicates.

    value:    a count, when the engine had no more hits ("eq"), else the share kept so far carried over to the rest
              ("estimate").
    low, high: certain bounds: everything not examined is a duplicate, or nothing of it is.
    """

    value: int
    relation: str
    low: int
    high: int


@dataclass(frozen=True)
class Info:
    """What happened on the way to a page.

    examined:  hits looked at; kept + hidden = examined.
    kept:      hits that have a place in the stream. hidden: hits that only their leader shows.
    exhausted: whether the engine has no hits beyond those examined.
    capped:    whether max_window ended the search for more.
    lacking:   hits without a sketch to compare, by reason; they stand alone.
    late:      hidden hits whose leader stands on an earlier page, found only now: (rank, rank of leader, similarity).
    took:      seconds of our own work.
    cache:     "hit", "miss" or "off".
    degraded:  why the promise could not be kept in full, "" when it was.
    warnings:  what a setting may not do as it was meant: it names a field that no hit has, or many short texts that
               differ in a few words are one group. A sentence each.
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
    took: float = 0.0
    cache: str = "off"
    degraded: str = ""
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "unique": self.unique and dict(vars(self.unique))}


@dataclass(frozen=True)
class Page:
    """A slice of the deduplicated stream: `hits` as the engine gave them, `groups` with what they stand for."""

    groups: tuple[Group, ...]
    info: Info
    _stream: Stream = field(repr=False, compare=False)
    _reader: Reader = field(repr=False, compare=False)
    _options: CollapseOptions = field(repr=False, compare=False)

    @property
    def hits(self) -> list[Any]:
        """The hits to show, in order."""
        return [group.hit for group in self.groups]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.groups)

    def hit_at(self, rank: int) -> Any:
        """The hit at a place of the engine's list. Raises IndexError if not examined."""
        return self._stream.hits[self._stream.index_of(rank)]

    @property
    def ranks(self) -> set[int]:
        """The places, in the engine's list, of all hits that the page shows or names."""
        named = {of for group in self.groups for of in (group.rank, group.duplicate_of) if of is not None}
        listed = {copy.rank for group in self.groups for copy in group.duplicates}
        return named | listed | {place for late in self.info.late for place in late[:2]}

    def with_hits(self, hits: Mapping[int, Any]) -> Page:
        """The same page made of other hits, by their places in the engine's list.

        What is not among them is left out, and the page ends before the first hit to show that is not.
        """
        groups = tuple(
            Group(
                hits[group.rank],
                group.rank,
                tuple(
                    Duplicate(hits[rank], rank, one.similarity)
                    for one in group.duplicates
                    if (rank := one.rank) in hits
                ),
                group.duplicate_of if group.duplicate_of in hits else None,
                group.similarity,
            )
            for group in takewhile(lambda group: group.rank in hits, self.groups)
        )
        late = tuple(one for one in self.info.late if one[0] in hits and one[1] in hits)
        at = zip(self._stream.ranks.tolist(), self._stream.hits, strict=True)
        stream = replace(self._stream, hits=tuple([hits.get(rank, hit) for rank, hit in at]))
        info = self.info if late == self.info.late else replace(self.info, late=late)
        return Page(groups, info, stream, self._reader, self._options)

    def explain(self, rank: int) -> Explanation:
        """Why the hit at this place of the engine's list is shown or hidden. Raises IndexError if not examined."""
        return explain(self._stream, rank, self._reader, self._options)


def fetch_until_full(
    stream: Stream, start: int, size: int, reader: Reader, options: CollapseOptions
) -> Generator[Fetch, Fetched, Stream]:
    """Ask for hits until the page [start, start + size) of the stream is full, the engine runs out, or max_window."""
    while (wish := next_fetch(stream, start, size, options)) is not None:
        fetched = yield wish
        stream = stream.extend(fetched.hits, wish.size, reader, options, total=fetched.total)
    return stream


def next_fetch(stream: Stream, start: int, size: int, options: CollapseOptions) -> Fetch | None:
    """The hits to ask for next, None when the page [start, start + size) can be cut out of the stream as it is."""
    asked = _window(stream, start + size, options) - stream.fetched
    return None if stream.exhausted or asked <= 0 else Fetch(stream.fetched, asked)


def slice_page(stream: Stream, start: int, size: int, reader: Reader, options: CollapseOptions) -> Page:
    """The page [start, start + size) of a stream that `fill` has made long enough; a shorter one gives what it has."""
    began = perf_counter()
    window = min(_window(stream, start + size, options), stream.fetched)
    examined = stream.examined(window)
    plan = _Plan(stream, examined, options)
    over = stream.exhausted and examined == len(stream.hits)
    places = plan.places(everything=over or window >= options.max_window)
    groups = tuple(plan.group(place, reader) for place in places[start : start + size])
    before = stream.examined(_window(stream, start, options)) if start else 0
    kept = examined if options.mode in ("annotate", "demote") else len(plan.slots)
    info = Info(
        examined=examined,
        kept=kept,
        hidden=examined - kept,
        exhausted=over,
        capped=not over and window >= options.max_window,
        min_similarity=options.min_similarity,
        recipe=reader.recipe.id,
        lacking=dict(Counter(reason for reason in stream.lacking[:examined] if reason)),
        unique=_unique(len(plan.members), examined, stream.total, over),
        late=plan.late(before, start, reader) if start and kept < examined else (),
        warnings=(*_unread_fields(stream.hits[:examined], reader, options), *plan.short_forms(reader)),
        took=perf_counter() - began,
    )
    return Page(groups, info, stream, reader, options)


def run(flow: Generator[Fetch, Fetched, Stream], fetch: Callable[[Fetch], Fetched]) -> Stream:
    """Drive a flow with a function that fetches."""
    try:
        wish = next(flow)
        while True:
            wish = flow.send(fetch(wish))
    except StopIteration as filled:
        stream: Stream = filled.value
        return stream


class _Plan:
    """Who is shown where, over the first `examined` hits of a stream."""

    def __init__(self, stream: Stream, examined: int, options: CollapseOptions) -> None:
        self.stream, self.options = stream, options
        self.leader: list[int] = stream.leader[:examined].tolist()
        self.members: dict[int, list[int]] = {}
        for index, leader in enumerate(self.leader):
            self.members.setdefault(leader, []).append(index)
        self.slots = sorted(i for members in self.members.values() for i in members[: options.max_per_group])

    def places(self, everything: bool) -> list[int]:
        """The stream: indexes of hits, in the order shown. everything: no longer window can follow this one."""
        if self.options.mode == "annotate":
            return list(range(len(self.leader)))
        if self.options.mode == "demote" and everything:
            shown = set(self.slots)
            return self.slots + [index for index in range(len(self.leader)) if index not in shown]
        return self.slots

    def group(self, place: int, reader: Reader) -> Group:
        """What is shown at a place."""
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
        return Group(self.stream.hits[shown], self._rank(shown), listed)

    def _chosen(self, members: list[int], reader: Reader) -> list[int]:
        """The copies to show at the first max_per_group places of a group.

        Each is the one most wanted of the first window that holds the place, and not shown before: a longer window
        shows the same there, and what one page has shown no later page shows again.
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
        hits, keep = self.stream.hits, self.options.keep
        return order_of_preference(members, hits, lambda i: self._shingles(i, reader.recipe.k), reader.value, keep)

    def late(self, before: int, start: int, reader: Reader) -> tuple[tuple[int, int, float], ...]:
        """Hidden hits beyond the first `before` whose group stands at one of the first `start` places."""
        found = []
        for leader in {self.leader[place] for place in self.slots[:start]}:
            members = self.members[leader]
            if members[-1] >= before:
                chosen = self._chosen(members, reader)
                found += [(index, leader) for index in members if index >= before and index not in chosen]
        return tuple(
            (self._rank(i), self._rank(leader), float(self.stream.similarity[i])) for i, leader in sorted(found)
        )

    def short_forms(self, reader: Reader) -> list[str]:
        """What to say of groups of short texts that may be entries of one form, as `"auto"` cannot tell."""
        if self.options.min_similarity != "auto" or reader.recipe.measure != "kmv":
            return []
        said = []
        for leader, members in self.members.items():
            if len(members) < _FORM or not 0 < len(self.stream.sketches[leader]) < telling_shingles(reader.recipe):
                continue
            different = len({self.stream.sketches[index].tobytes() for index in members})
            if different >= _FORM:
                said.append(
                    f"{different} of {len(self.leader)} hits are short texts that differ in a few words and are shown "
                    f'as one, hit {self._rank(leader)}: if they are entries of one form, set min_similarity="identical"'
                    f", must_match or numbers_must_match"
                )
        return said

    def _single(self, index: int) -> Group:
        leader = self.leader[index]
        of = None if leader == index else self._rank(leader)
        return Group(self.stream.hits[index], self._rank(index), (), of, float(self.stream.similarity[index]))

    def _duplicate(self, index: int, leader: int, shown: int) -> Duplicate:
        to = shown if index == leader else index
        return Duplicate(self.stream.hits[index], self._rank(index), float(self.stream.similarity[to]))

    def _rank(self, index: int) -> int:
        return int(self.stream.ranks[index])

    def _shingles(self, index: int, k: int) -> float:
        sketch = self.stream.sketches[index]
        return float(estimated_shingles(len(sketch), sketch[-1] if len(sketch) else 0, k))


def _unread_fields(hits: Sequence[Any], reader: Reader, options: CollapseOptions) -> list[str]:
    """What to say of the fields that settings name and no hit has; logged once, too."""
    said = [
        f"no hit has the field {name!r} that must_match, keep or time_field names: see to its spelling"
        for name in fields_of(options)
        if hits and all(reader.value(hit, name) is None for hit in hits)
    ]
    for sentence in said:
        _log_once(sentence)
    return said


@lru_cache(1024)
def _log_once(sentence: str) -> None:
    log.warning(sentence)


def first_window(wanted: int, options: CollapseOptions) -> int:
    """The first of the windows (window, 2 * window, ... max_window) that holds so many hits, or the last."""
    window = options.window
    while window < min(wanted, options.max_window):
        window *= 2
    return min(window, options.max_window)


def _window(stream: Stream, wanted: int, options: CollapseOptions) -> int:
    """The first window that gives `wanted` places, or the one to fetch next to find out."""
    window = first_window(wanted, options)
    while window <= stream.fetched and window < options.max_window and _places(stream, window, options) < wanted:
        window = first_window(window + 1, options)
    return window


def _places(stream: Stream, window: int, options: CollapseOptions) -> int:
    """How many places the stream has within a window."""
    leader = stream.leader[: stream.examined(window)]
    if options.mode == "annotate":
        return len(leader)
    return int(np.minimum(np.bincount(leader), options.max_per_group).sum()) if len(leader) else 0


def _unique(groups: int, examined: int, total: int | None, exhausted: bool) -> UniqueEstimate | None:
    if exhausted:
        return UniqueEstimate(groups, "eq", groups, groups)
    if total is None or not examined:
        return None
    unseen = max(total - examined, 0)
    return UniqueEstimate(round(groups + unseen * groups / examined), "estimate", groups, groups + unseen)
