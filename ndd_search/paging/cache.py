"""What is remembered between requests: finished streams and pages, and the pairs of a set of sketches.

A key holds everything that could make two answers differ, the caller's identity first of all: two callers who may
read different documents never share an entry.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, Protocol

from cachetools import TLRUCache

log = logging.getLogger("ndd_search")

_OVERHEAD = 200  # bytes an entry costs beside its key and value: two objects, a link, a time


@dataclass(frozen=True)
class CacheStats:
    """Counters since the cache was made. entries, bytes: held now."""

    hits: int
    misses: int
    entries: int
    bytes: int


class Cache(Protocol):
    """Where a wrapped client or an embedded index remembers what it found: in this process, or in a server for many.

    Keys are 16 bytes and mean the same in every process; values are bytes that `entries` checks when they come back, so
    a cache may lose, cut or mix up what it holds: that only costs a search. Two kinds of values are kept:

    - pages and streams, under keys made of everything that could make two answers differ: who asks, what, and how;
    - tokens of 16 random bytes that say that an index has not been written to: a write replaces the token of its index,
      and what was found under an older token is not used. Tokens are put with `seconds` of their own.

    What every cache must keep to: `get` after `put` gives the newest value or None, in every process that shares the
    cache, and no value lives longer than its seconds. A method that fails raises; searches then go on without the
    cache, and a write is told to it before it is used again. Methods are called from several threads at once, also
    inside event loops: they should be quick. Entries hold parts of documents: keep them as safe as the index.
    """

    def get(self, key: bytes) -> bytes | None:
        """The value, None when it is not there (any more)."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of several keys, asked for together."""

    def put(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        """Remember a value for some seconds, None for the cache's own time; one that is too large is not kept."""

    def clear(self) -> None:
        """Forget everything."""

    def stats(self) -> CacheStats:
        """The counters."""


class MemoryCache:
    """A cache in this process, safe for threads, bounded in bytes and seconds; least recently used entries go first.

    max_bytes: keys, values and bookkeeping together, at least 1.
    seconds:   how long an entry lives that is put without seconds of its own, above 0.
    clock:     seconds that never go back.
    """

    def __init__(
        self, max_bytes: int = 64 * 2**20, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if max_bytes < 1 or not seconds > 0:
            raise ValueError(f"max_bytes must be at least 1 and seconds above 0, got {max_bytes} and {seconds}")
        self._limits = max_bytes, seconds, clock
        self._lifetime = seconds  # of the entry that is being put, under the lock
        self._entries: TLRUCache[bytes, bytes] = TLRUCache(max_bytes, self._end, clock, getsizeof=_size)
        self._lock = Lock()
        self._hits = self._misses = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryCache, self._limits  # a copy, or what another process gets, starts empty

    def get(self, key: bytes) -> bytes | None:
        """The value, None when it is not there (any more)."""
        with self._lock:
            value = self._entries.get(key)
            if value is None:
                self._misses += 1
            else:
                self._hits += 1
            return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of several keys; the counters leave them out."""
        with self._lock:
            return [self._entries.get(key) for key in keys]

    def put(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        """Remember a value for a while; one that is too large for the cache is not kept, nor what it would replace."""
        with self._lock:
            self._lifetime = self._limits[1] if seconds is None else seconds
            try:
                self._entries[key] = value
            except ValueError:  # larger than the whole cache
                self._entries.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    def stats(self) -> CacheStats:
        """The counters."""
        with self._lock:
            self._entries.expire()
            return CacheStats(self._hits, self._misses, len(self._entries), int(self._entries.currsize))

    def _end(self, key: bytes, value: bytes, now: float) -> float:
        return now + self._lifetime


class FailureGuard:
    """Lets searches and writes go on without a cache that fails, and logs each kind of failure once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Leaves the block where the cache raises an error."""
        try:
            yield
        except Exception as error:
            if (kind := type(error).__name__) not in self._logged:
                self._logged.add(kind)
                log.warning("searches go on without the cache, which failed: %r", error)


class SingleFlight:
    """Lets one caller at a time compute a key, in threads and in coroutines alike.

        if (other := flights.board(key)) is None:
            try: compute and put it into the cache
            finally: flights.land(key)
        else:
            wait for `other` (other.result(), or await asyncio.wrap_future(other)), then look into the cache again;
            what is not there now could not be cached: compute it without boarding

    Threads and coroutines need one of these each: a thread that waits for a coroutine of its own loop waits for ever.
    """

    def __init__(self) -> None:
        self._flying: dict[bytes, Future[None]] = {}
        self._lock = Lock()

    def acquire(self, key: bytes) -> Future[None] | None:
        """None: the caller computes now and calls land(). Otherwise what is done when the other one has landed."""
        with self._lock:
            if (other := self._flying.get(key)) is not None:
                return other
            self._flying[key] = Future()
            return None

    def release(self, key: bytes) -> None:
        """Let those who wait go on; called however the computation ended."""
        with self._lock:
            flight = self._flying.pop(key)
        flight.set_result(None)


def cache_key(*parts: Any) -> bytes:
    """16 bytes for some JSON-like values. The order of keys counts: a `sort` by several fields follows it."""
    text = json.dumps(parts, ensure_ascii=False, default=_plainly, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _plainly(value: Any) -> Any:
    """What JSON cannot write, for a key: of a long array, repr shows the ends only."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def _size(value: bytes) -> int:
    return len(value) + _OVERHEAD
