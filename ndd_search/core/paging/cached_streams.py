"""Streams that later pages continue: in a cache, or of one source in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ndd_search.core.paging.cache import Cache, FailureGuard, MemoryCache, SingleFlight, check_cache
from ndd_search.core.paging.cache_entries import UNREADABLE, sealed, stream_of, stream_parts, unsealed
from ndd_search.core.paging.stream import NO_HITS, Stream


class CachedStreams:
    """Streams in a cache, by key. Threads that need the same stream wait for one of them to extend it.

    pack: writes hits as values that `sealed` restores exactly. unpack: reads them. A stream whose hits are no such
    values is not cached.
    """

    def __init__(
        self,
        cache: Cache,
        pack: Callable[[Sequence[Any]], list[Any]] = list,
        unpack: Callable[[Any], Iterable[Any]] = list,
    ) -> None:
        check_cache(cache)
        self._cache, self._guarded, self._flights = cache, FailureGuard(), SingleFlight()
        self._own = type(cache) is MemoryCache
        self._pack, self._unpack = pack, unpack

    def grow(
        self, key: bytes, enough: Callable[[Stream], bool], grow: Callable[[Stream], Stream]
    ) -> tuple[Stream, bool]:
        """Return a stream that is long enough, and whether it was cached. One caller at a time extends it."""
        stream = self.cached(key)
        if enough(stream):
            return stream, True
        if (other := self._flights.acquire(key)) is not None:
            other.result()
            stream = self.cached(key)
            return (stream, True) if enough(stream) else (grow(stream), False)
        try:
            stream = grow(stream)
            self.remember(key, stream)
        finally:
            self._flights.release(key)
        return stream, False

    def cached(self, key: bytes) -> Stream:
        """The cached stream of a key, an empty one if there is none."""
        with self._guarded:
            entry = self._cache.get(key)
            parts = None if entry is None else unsealed(key, entry, self._own)
            if parts is not None:
                with suppress(*UNREADABLE):  # not ours, although key and checksum are right
                    plain, arrays = parts
                    return stream_of({**plain, "hits": list(self._unpack(plain["hits"]))}, arrays)
        return NO_HITS

    def remember(self, key: bytes, stream: Stream) -> None:
        """Cache a stream."""
        with self._guarded:
            plain, arrays = stream_parts(replace(stream, apart=None))
            plain["hits"] = self._pack(stream.hits)
            if (entry := sealed(key, plain, arrays, self._own)) is not None:
                self._cache.put(key, entry)


class OwnStream(CachedStreams):
    """The stream of one source, kept as long as the source is."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def cached(self, key: bytes) -> Stream:
        return self._stream

    def remember(self, key: bytes, stream: Stream) -> None:
        self._stream = stream
