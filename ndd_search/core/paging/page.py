"""Pages of the deduplicated stream. Nothing here does I/O.

page = slice_page(stream, start, size, reader, options)  # of a stream that fill_page.fetch_until_full has filled
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from math import isnan
from time import perf_counter
from typing import Any

from ndd_search.core.immutable import dataclass
from ndd_search.core.matching.guards import number_in, seconds_since_1970
from ndd_search.core.options import LISTING, ByField, CollapseOptions
from ndd_search.core.paging.explain_hit import Explanation, explain
from ndd_search.core.paging.fill_page import window_for
from ndd_search.core.paging.layout import Group, Layout
from ndd_search.core.paging.record_schema import bar_of
from ndd_search.core.paging.stream import Reader, Stream
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
            copies = [
                one._replace(hit=hits.get(one.rank, one.hit))
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
