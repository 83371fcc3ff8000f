"""The streams of an index folder, cached between searches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import starmap
from typing import Any

from ndd_search.core.paging.cache import Cache, FailureGuard, SingleFlight
from ndd_search.core.paging.cache_entries import UNREADABLE, sealed, stream_of, stream_parts, unsealed
from ndd_search.core.paging.stream import Stream
from ndd_search.embedded.stored import StoredHit


class CachedStreams:
    """Streams in a cache, by key. Threads that need the same stream wait for one of them to extend it."""

    def __init__(self, cache: Cache) -> None:
        self._cache, self._guarded, self._flights = cache, FailureGuard(), SingleFlight()

    def grow(
        self, key: bytes, enough: Callable[[Stream], bool], grow: Callable[[Stream], Stream]
    ) -> tuple[Stream, bool]:
        """Return a stream that is long enough, and whether it was cached. One caller at a time extends it."""
        stream = self._cached(key)
        if enough(stream):
            return stream, True
        if (other := self._flights.acquire(key)) is not None:
            other.result()
            stream = self._cached(key)
            return (stream, True) if enough(stream) else (grow(stream), False)
        try:
            stream = grow(stream)
            self._remember(key, stream)
        finally:
            self._flights.release(key)
        return stream, False

    def _cached(self, key: bytes) -> Stream:
        """The cached stream of a key, an empty one if there is none."""
        with self._guarded:
            entry = self._cache.get(key)
            parts = None if entry is None else unsealed(key, entry)
            if parts is not None:
                with suppress(*UNREADABLE):  # not ours, although key and checksum are right
                    return _stream_of(*parts)
        return Stream()

    def _remember(self, key: bytes, stream: Stream) -> None:
        """Cache a stream. The hits are written as columns, without sketches, which the stream holds already."""
        with self._guarded:
            plain, arrays = stream_parts(stream)
            columns = [list(column) for column in zip(*(hit[:-1] for hit in stream.hits), strict=True)]
            plain["hits"], plain["columns"] = columns.pop(0) if columns else [], columns
            if (entry := sealed(key, plain, arrays)) is not None:
                self._cache.put(key, entry)


def _stream_of(plain: dict[str, Any], arrays: memoryview) -> Stream:
    """Restore the stream that CachedStreams._remember wrote. Raises one of UNREADABLE for anything else."""
    columns = plain.pop("columns")
    stream = stream_of(plain, arrays)
    return replace(stream, hits=tuple(starmap(StoredHit, zip(stream.hits, *columns, strict=True))))
