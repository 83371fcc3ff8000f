"""Deduplicates any ranked source: a function that fetches hits, by rank, from wherever they are.

found = ndd_search.stream(lambda start, count: search("steel", offset=start, limit=count), text="body", id="id")
page = found.page(size=10, from_=20)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from inspect import isawaitable
from time import perf_counter
from typing import Any, Unpack

from ndd_search.core.fork_safe import ForkSafeLock
from ndd_search.core.matching.document_frequency import count_in_list
from ndd_search.core.matching.frequency_table import FrequencyTable, table_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.cache import Cache, SingleFlight, cache_key
from ndd_search.core.paging.cached_streams import CachedStreams, OwnStream
from ndd_search.core.paging.cursor import Cursor, cursor_of, token_of
from ndd_search.core.paging.cursor_page import ContinuedPage, check_has_end
from ndd_search.core.paging.fill_page import Fetch, Fetched, count_places, next_fetch, run, run_async
from ndd_search.core.paging.hit_reader import FORGED, STALE, Earlier, HitReader, Text, Where, by_texts
from ndd_search.core.paging.page import Page, UniqueEstimate, log_once, slice_page
from ndd_search.core.paging.record_schema import SEEN_WITH_ITEMS, RecordSchema, check_schema
from ndd_search.core.paging.stream import Stream
from ndd_search.core.presets import CollapseChanges, chosen
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import check_page, hits_in
from ndd_search.errors import CursorUnusable

log = logging.getLogger("ndd_search")

_NO_TEXT = "no hit has a text or a sketch: say where it is, by text= or sketch="
_A_CURSOR = "a cursor of a source"


def stream(  # noqa: PLR0913 - all settings of a source in one call
    fetch: Callable[[int, int], Any],
    *,
    text: Text | None = None,
    id: Where = "id",
    sketch: Where | None = None,
    key: Any = None,
    cache: Cache | None = None,
    recipe: Recipe | str | None = None,
    frequency_table: FrequencyTable | bool = True,
    seen: Iterable[Any] = (),
    items: RecordSchema | None = None,
    options: CollapseOptions | None = None,
    **changes: Unpack[CollapseChanges],
) -> Source:
    """Deduplicate what a function fetches: the result of one query, in any search engine, database or retriever.

    fetch:  fetch(start, count) returns the hits with the ranks start..start+count-1, best first: texts, mappings, rows
            of a database or objects; or a pair of them and the number of all matches. Fewer hits than asked are no end,
            so the next ones are asked for; an empty list is, and so are fewer hits that reach the number of matches. It
            may be asynchronous, see Source.page_async.
    text:   a field, several fields, or a callable(hit); not needed for texts. A hit without text stands alone.
    id:     the field, or a callable(hit), that names the document of a hit: one that `fetch` returns again, as a source
            does that changes, has the better place alone. Hits without an id are all different.
    sketch: the field, or a callable(hit), with a stored sketch: its values, or the object that `with_sketches` stores.
            The text is sketched of a hit without one, or with one of another recipe. Sketches alone need no text.
    key:    what decides the result: the query, its filters, its user; a value as in JSON. `cache` and cursors need it.
    cache:  keeps what was fetched for later calls with an equal key, MemoryCache or RedisCache; hits must be values as
            in JSON. Without it, the source itself keeps it.
    recipe, seen, items, options, changes: as in `collapse`. max_window limits how many hits are examined.
    frequency_table: as in `collapse`; True counts in the first `window` hits.
    Raises ValueError or TypeError for an invalid setting. An error of `fetch` passes unchanged, unless some of the
    page's hits were fetched before: the page then ends with them, and `info.degraded` says why.
    """
    if not callable(fetch):
        raise TypeError(f"fetch must be a function of a start and a count, got {fetch!r}: use collapse for a list")
    check_schema(items)
    options, recipe = chosen(options, recipe, changes)
    seen = hits_in("seen", seen)
    if options.facets or options.total == "estimate":
        raise ValueError("facets and total='estimate' need an engine's aggregations: leave them out")
    if items is not None and seen:
        raise ValueError(SEEN_WITH_ITEMS)
    if cache is not None and key is None:
        raise ValueError("a cache needs the key of the result: key=(query, user)")
    table = table_of(frequency_table)
    reader = HitReader(recipe, text, frequency_table=table, items=items, id=id, sketch=sketch)
    counts = frequency_table is True and options.min_similarity == "auto" and recipe.measure == "kmv" and items is None
    where = [one for one in (text, id, sketch) if not callable(one)]
    made = (recipe.id, items and items.id, table and table.digest, counts, options.stream_text)
    own = cache_key("source", key, where, *made)
    first = Stream(shown=reader.shown(seen))
    streams = OwnStream(first) if cache is None or seen else CachedStreams(cache)
    return Source(fetch, reader, options, streams, own, first, counts=counts, may_continue=key is not None)


class Source:
    """The deduplicated hits of one query, in pages (see `stream`). Threads may share one, or coroutines, not both."""

    def __init__(
        self,
        fetch: Callable[[int, int], Any],
        reader: HitReader,
        options: CollapseOptions,
        streams: CachedStreams,
        key: bytes,
        first: Stream,
        *,
        counts: bool,
        may_continue: bool,
    ) -> None:
        if options.members == "all":
            options = replace(options, window=options.max_window)
        if options.total == "auto":
            options = replace(options, total="hits")  # a page tells no total for which to look ahead
        self._fetch, self._reader, self._options = fetch, reader, options
        self._streams, self._key, self._shown = streams, key, first.shown
        self._counts, self._may_continue = counts, may_continue
        self._forged, self._stale = set[int](), set[int]()  # ranks in the source
        self._lock, self._flights = ForkSafeLock(), SingleFlight(caller=object)

    def page(self, size: int = 10, from_: int = 0, *, cursor: bool | str | None = None) -> Page:
        """Return a page of the hits without near-duplicates.

        size, from_: the page, as positions in the deduplicated list. Pages of one source continue one another: what
                 was fetched is not fetched again, so they are disjoint even if it changes.
        cursor:  True for the first page of a cursor, then `page.cursor` of the page before, until that is None. Any
                 process with the same settings and key continues it. It holds the place in the source, and the leaders
                 shown so far: whatever changes meanwhile, none is shown again; a hit that moves up past that place is
                 missed. `seen` is given again for each page.
        Raises CursorUnusable for a cursor that is damaged, belongs to another key, or cannot be had with an option.
        """
        with self._lock:
            return run(self._paged(size, from_, cursor), self._ask)

    async def page_async(self, size: int = 10, from_: int = 0, *, cursor: bool | str | None = None) -> Page:
        """Return a page as `page` does, of a `fetch` that is asynchronous, or not."""
        while (other := self._flights.acquire(self._key)) is not None:
            await asyncio.wait([asyncio.wrap_future(other)])
        try:
            return await run_async(self._paged(size, from_, cursor), self._ask_async)
        finally:
            self._flights.release(self._key)

    def _ask(self, request: Fetch) -> Fetched:
        found = self._fetch(request.start, request.size)
        if isawaitable(found):
            if hasattr(found, "close"):
                found.close()  # it would warn that nobody awaits it
            raise TypeError("fetch is asynchronous: await page_async(...) instead of page(...)")
        return _fetched(found, request)

    async def _ask_async(self, request: Fetch) -> Fetched:
        found = self._fetch(request.start, request.size)
        return _fetched(await found if isawaitable(found) else found, request)

    def _paged(self, size: int, from_: int, cursor: bool | str | None) -> Generator[Fetch, Fetched, Page]:
        """Make a page, and say what else is known of how it was made."""
        began, troubles, cache = perf_counter(), list[str](), "off"
        check_page(size, from_)

        def next_of(stream: Stream) -> Fetch | None:
            return next_fetch(stream, from_, size, self._options)

        if cursor is not None and cursor is not False:
            page = yield from self._continued(size, from_, cursor, troubles)
        else:
            stream = self._streams.cached(self._key)
            cache = "hit" if next_of(stream) is None else "miss"
            if cache == "miss":
                stream = yield from self._extended(stream, next_of, from_, troubles)
                self._streams.remember(self._key, stream)
            else:
                self._count(stream, [])
            page = slice_page(stream, from_, size, self._reader, self._options)
        info, forged = page.info, self._forged
        warnings = (*info.warnings, FORGED.format(len(forged), min(forged))) if forged else info.warnings
        if stale := self._stale:
            warnings = (*warnings, STALE.format(len(stale), min(stale)))
            log_once(warnings[-1])
        lacks_all = info.compares_none and not self._options.reads_keys
        degraded = troubles[0] if troubles else _NO_TEXT if lacks_all else ""
        own = perf_counter() - began
        return replace(page, info=replace(info, warnings=warnings, degraded=degraded, took=own, cache=cache))

    def _extended(
        self, stream: Stream, next_of: Callable[[Stream], Fetch | None], start: int, troubles: list[str], ahead: int = 0
    ) -> Generator[Fetch, Fetched, Stream]:
        """Add what next_of asks for, until it asks for nothing.

        An error ends it if there is a hit for the place `start`. ahead: how many more hits of the source come before a
        place of the stream than the stream has places.
        """
        while (request := next_of(stream)) is not None:
            hits: list[Any] = []
            total = None
            while (missing := request.size - len(hits)) > 0:
                at = request.start + ahead + len(hits)
                try:
                    fetched = yield Fetch(at, missing)
                except Exception as error:
                    stream = self._grown(stream, hits, len(hits), total, ahead)
                    if count_places(stream, stream.fetched, self._options) <= start:
                        raise
                    log.warning("hits from rank %d on could not be fetched, the page ends before them: %r", at, error)
                    troubles.append(f"hits from rank {at} on could not be fetched: {error!r}")
                    return stream
                hits += fetched.hits
                total = fetched.total
                if not fetched.hits or (total is not None and at + len(fetched.hits) >= total):
                    break
            stream = self._grown(stream, hits, request.size, total, ahead)
        return stream

    def _grown(self, stream: Stream, hits: list[Any], asked: int, total: int | None, ahead: int) -> Stream:
        """Add hits to a stream; fewer than `asked` mean that the source has no more. ahead: as in `_extended`."""
        self._count(stream, hits)

        def fill(one: Stream, reader: HitReader) -> Stream:
            return one.extend(hits, asked, reader, self._options, total=total)

        forged, stale = {rank - ahead for rank in self._forged}, set[int]()  # in this stream, of a cursor's page
        grown = by_texts(stream, fill, self._reader, self._options, forged, stale)
        self._forged |= {rank + ahead for rank in forged}
        self._stale |= {rank + ahead for rank in stale}
        return grown

    def _count(self, stream: Stream, hits: list[Any]) -> None:
        """Count the frequency table in the first `window` hits, until all of them are there.

        hits: those that follow the hits of the stream.
        """
        first = self._options.window
        if not self._counts or not (stream.hits or hits):
            return
        new = hits[: max(0, first - stream.fetched)]
        found = [*stream.sketches[: stream.examined(first)], *self._reader.sketches(new, range(len(new)))]
        known = [one for one in found if not isinstance(one, str) and len(one)]
        self._reader = replace(self._reader, frequency_table=count_in_list(known, self._reader.recipe))
        self._counts = stream.fetched + len(hits) < first and not stream.exhausted

    def _continued(
        self, size: int, from_: int, given: bool | str, troubles: list[str]
    ) -> Generator[Fetch, Fetched, Page]:
        """Make one page of a cursor."""
        cursor = self._cursor(given, from_)
        if self._counts and cursor.pages:
            first = yield Fetch(0, self._options.window)
            self._count(Stream(exhausted=True), list(first.hits))
        options, groups = self._options, None
        if options.total == "groups":
            if not cursor.pages:
                groups = yield from self._groups(troubles)
            options = replace(options, total="hits")  # else the window is the result
        page = _ContinuedPage(self._reader, cursor, size, options)
        ahead = cursor.after[0] - page.start

        def next_of(stream: Stream) -> Fetch | None:
            begins = stream.fetched == page.start and not stream.exhausted
            count = page.first_window if begins else page.missing(stream)
            return Fetch(stream.fetched, count) if count else None

        before = replace(page.before(lambda _, id, fields: Earlier(id, fields or {})), shown=self._shown)
        stream = yield from self._extended(before, next_of, page.start, troubles, ahead)
        made = page.page(stream, self._reader)
        made = made if groups is None else replace(made, info=replace(made.info, unique=groups))
        if (next_hit := page.next_hit(stream)) is None:
            return made
        place = page.rank_of(stream, next_hit)
        unique = made.info.unique and dict(vars(made.info.unique))
        return replace(
            made, cursor=token_of(page.following(stream, made, next_hit, after=[place + ahead], unique=unique), None)
        )

    def _groups(self, troubles: list[str]) -> Generator[Fetch, Fetched, UniqueEstimate | None]:
        """Count the groups of the whole result, as far as max_window."""
        first = Stream(shown=self._shown)
        whole = yield from self._extended(first, lambda one: next_fetch(one, 0, 0, self._options), 0, troubles)
        return slice_page(whole, 0, 0, self._reader, self._options).info.unique

    def _cursor(self, given: bool | str, from_: int) -> Cursor:
        """Return the cursor of a page. Raises CursorUnusable if it cannot be had, or is that of another result."""
        options, own = self._options, self._key.hex()
        obstacles = {
            "from_ above 0": from_ > 0,
            "no key=": not self._may_continue,
        }
        if reason := next((name for name, present in obstacles.items() if present), ""):
            raise CursorUnusable(_A_CURSOR, f"a source with {reason} has none", "use from_ and size")
        check_has_end(_A_CURSOR, options)
        if given is True:
            return Cursor(search=own, pit="", after=[0], ahead=0, pages=0)
        if not isinstance(given, str):
            raise TypeError(f"cursor must be True or the cursor of the page before, got {given!r}")
        cursor = cursor_of(given, None)
        fits = cursor.leaders.fit(self._reader.recipe.k, options.max_per_group, by_keys=True)
        if cursor.search != own or not fits or [type(one) for one in cursor.after] != [int] or cursor.after[0] < 0:
            raise CursorUnusable(_A_CURSOR, "it belongs to another result", "send equal key, recipe and options")
        return cursor


class _ContinuedPage(ContinuedPage):
    may_repeat = True

    def __init__(self, reader: HitReader, cursor: Cursor, size: int, options: CollapseOptions) -> None:
        super().__init__(cursor, size, options, options.max_window)
        self._reader = reader

    def named(self, hit: Any) -> tuple[str, str]:
        return "", self._reader.identity(hit)

    def compared(self, hit: Any) -> Mapping[str, Any] | None:
        return self._reader.compared(hit, self.options) or None


def _fetched(given: Any, request: Fetch) -> Fetched:
    """Read what `fetch` returned. Raises TypeError for anything but hits, or hits and their number."""
    hits, total = given, None
    is_pair = isinstance(given, tuple) and len(given) == 2
    if is_pair and (given[1] is None or (hasattr(given[1], "__index__") and not isinstance(given[1], bool))):
        hits, total = given[0], None if given[1] is None else int(given[1])
    return Fetched(hits_in(f"what fetch({request.start}, {request.size}) returned", hits, request.size), total)
