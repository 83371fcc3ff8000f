"""One page of a cursor: its hits after the leaders that earlier pages have shown. Nothing here does I/O.

These leaders stand before the new hits in the stream, so that the same code assigns leaders to the new ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.cursor import Cursor, Leaders
from ndd_search.core.paging.fill_page import count_places, first_window
from ndd_search.core.paging.page import Page, UniqueEstimate, places_of, slice_page
from ndd_search.core.paging.stream import Reader, Stream
from ndd_search.errors import CursorUnusable

_NONE = np.empty(0, np.int32)


class ContinuedPage(ABC):
    """One page of a search with a cursor. cursor: of this page. most: hits that one request may fetch.

    may_repeat: whether hits may come again on later pages, so that the ids of all hits shown are kept.
    """

    may_repeat = False

    def __init__(self, cursor: Cursor, size: int, options: CollapseOptions, most: int) -> None:
        self.cursor, self.size, self.options, self.most = cursor, size, options, most
        self.start = sum(cursor.leaders.shown)  # place of the page in the stream: earlier pages have shown so many hits
        self.by_fields = options.reads_keys  # else nothing joins a hit without a sketch

    @abstractmethod
    def named(self, hit: Any) -> tuple[str, str] | None:
        """Return the index and id of a hit, None if it came without."""

    @abstractmethod
    def compared(self, hit: Any) -> Mapping[str, Any] | None:
        """Return the fields of a hit that guards compare, None if it has none."""

    def before(self, hit_of: Callable[[str, str, Mapping[str, Any] | None], Any]) -> Stream:
        """Return the stream before the new hits: the leaders that earlier pages have shown.

        A leader of whose group several hits were shown stands there as often, so that no more than max_per_group are
        shown. hit_of: makes a hit of an index, an id and fields.
        """
        leaders = self.cursor.leaders
        again = [place for place, shown in enumerate(leaders.shown) for _ in range(shown - 1)]
        columns = list(zip(leaders.indexes, leaders.ids, leaders.fields, strict=True))
        hits = [hit_of(*columns[place]) for place in (*range(len(leaders)), *again)]
        return Stream(
            hits=tuple(hits),
            sketches=(*leaders.sketches, *(_NONE for _ in again)),
            lacking=("",) * len(hits),
            ranks=np.arange(len(hits)),
            leader=np.array([*range(len(leaders)), *again], np.int64),
            similarity=np.ones(len(hits)),
            earlier=len(hits),
            fetched=len(hits),
        )

    @property
    def first_window(self) -> int:
        """The number of hits to fetch first: a window that holds the page, and whatever was examined ahead of it."""
        return min(max(first_window(self.size + 1, self.options), self.cursor.ahead), self.most)

    def missing(self, stream: Stream) -> int:
        """Return how many hits to fetch next: 0 once it is known whether a hit follows the page."""
        fetched = stream.fetched - self.start
        if stream.exhausted or count_places(stream, stream.fetched, self.options) - self.start > self.size:
            return 0
        return max(0, min(fetched, self.options.max_window - fetched, self.most))

    def page(self, stream: Stream, reader: Reader) -> Page:
        """Return the page. Its facts are about the new hits alone."""
        places, known, named = self._places(stream), self.start, self._named(stream)
        options = whole(stream, self.options)
        page = slice_page(stream, known, self.size, reader, options)
        if named is not stream:
            page = replace(page, groups=slice_page(named, known, self.size, reader, options).groups)
        new = len(stream.hits) - known
        unique = page.info.unique
        if self.cursor.pages:
            unique = UniqueEstimate.of(self.cursor.unique) if self.cursor.unique else None
        info = replace(
            page.info,
            examined=new,
            kept=len(places),
            hidden=new - len(places),
            capped=not stream.exhausted and new >= self.options.max_window,
            unique=unique,
            late=self._late(named, page.shown_ranks.union(stream.ranks[places[self.size :]].tolist())),
            seen=tuple(
                (int(named.ranks[index]), item, alike)
                for index, item, alike in named.seen
                if named.ranks[index] >= known + self.cursor.ahead
            ),
        )
        return replace(page, info=info)

    def following(self, stream: Stream, page: Page, next_hit: int, **where: Any) -> Cursor:
        """Return the cursor after a page. next_hit: index of its first hit. where: other fields of the cursor."""
        ahead = stream.fetched - self.rank_of(stream, next_hit) if self._named(stream) is stream else 0
        pages = self.cursor.pages + 1
        shown = self._places(stream)[: self.size]
        leaders, count = self._leaders(stream, shown, page), self.cursor.shown + len(shown)
        return replace(self.cursor, ahead=ahead, pages=pages, leaders=leaders, shown=count, **where).bounded()

    def next_hit(self, stream: Stream) -> int | None:
        """Return the index of the hit with which the next page begins; None if there is no next page."""
        left = self._places(stream)[self.size :]
        if left:
            return left[0]
        return None if stream.exhausted else len(stream.hits)

    def _places(self, stream: Stream) -> list[int]:
        """Return the places of the new hits that may be shown."""
        return [place for place in places_of(stream, self.options) if place >= self.start]

    def _named(self, stream: Stream) -> Stream:
        """Return the stream as far as the page names its hits.

        If `keep` chooses several hits of a group, this ends with the page's last place: a hit from further down would
        come again with a later page.
        """
        if self.options.max_per_group == 1 or self.options.keep == ("score",):
            return stream
        end = self.next_hit(stream)
        return stream if end is None else stream.only(range(end))

    def rank_of(self, stream: Stream, index: int) -> int:
        """Return the rank of a hit of the stream, or of the one after its last."""
        return int(stream.ranks[index]) if index < len(stream.hits) else stream.fetched

    def _late(self, stream: Stream, shown: set[int]) -> tuple[tuple[int, int, float], ...]:
        """Return the hidden hits whose leader an earlier page has shown, unless an earlier page has named them.

        shown: ranks of hits that this page shows, and of places on later pages.
        """
        ranks = stream.ranks.tolist()
        return tuple(
            (ranks[index], ranks[stream.leader[index]], float(stream.similarity[index]))
            for index in range(self.start, len(stream.hits))
            if ranks[index] >= self.start + self.cursor.ahead
            and stream.leader[index] < self.start
            and ranks[index] not in shown
        )

    def _leaders(self, stream: Stream, shown: list[int], page: Page) -> Leaders:
        """Return the leaders of all hits shown so far, without those that came without an id.

        shown: the places that the page has shown. A hit that was shown and leads none is kept without its sketch.
        """
        old, counts = self.cursor.leaders, Counter(stream.leader[shown].tolist())
        if self.may_repeat:
            shown = sorted({*shown, *map(stream.index_of, page.shown_ranks)})  # `keep` may have chosen others
        leads = {place: bool(stream.leader[place] == place) for place in shown}
        names = {place: self.named(stream.hits[place]) for place in shown if leads[place] or self.may_repeat}
        kept = self.may_repeat or self.by_fields
        new = [(place, name) for place, name in names.items() if name and (kept or len(stream.sketches[place]))]
        if self.options.max_per_group == 1 or self.options.mode == "annotate":
            counts = Counter({place: 1 for place, _ in new})  # no further hit of these groups has a place, or all have
        return Leaders(
            indexes=(*old.indexes, *(name[0] for _, name in new)),
            ids=(*old.ids, *(name[1] for _, name in new)),
            sketches=(*old.sketches, *(stream.sketches[place] if leads[place] else _NONE for place, _ in new)),
            fields=(*old.fields, *(self.compared(stream.hits[place]) if leads[place] else None for place, _ in new)),
            shown=(
                *(shown + counts[place] for place, shown in enumerate(old.shown)),
                *(max(1, counts[place]) for place, _ in new),
            ),
        )


def whole(stream: Stream, options: CollapseOptions) -> CollapseOptions:
    """Return options with which a page of a stream examines all of it."""
    most = max(1, stream.fetched)
    return replace(options, window=most, max_window=most)


def check_has_end(about: str, options: CollapseOptions) -> None:
    """Raise CursorUnusable if hits are to be shown after all others, which a page of a cursor does not know.

    about: the search, or its source.
    """
    if options.mode == "demote":
        problem = 'mode="demote" shows hits after all others, and a page of a cursor does not know the last one'
        raise CursorUnusable(about, problem, 'use mode="annotate", or from and size')
