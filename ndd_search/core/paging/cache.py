"""Caches of finished streams and pages.

A cache key is made of everything that can make two answers differ, and that includes the caller's identity: two callers
who may read different documents never share an entry.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import date, timedelta
from datetime import time as datetime_time
from hashlib import blake2b
from numbers import Number
from threading import get_ident
from typing import Any, Protocol, TypeGuard
from uuid import UUID

from cachetools import TLRUCache

from ndd_search.core.fork_safe import ForkSafe

log = logging.getLogger("ndd_search")

_VALUES = (date, datetime_time, timedelta, Number, UUID, bytes)
_OVERHEAD = 200  # bytes of an entry beside its value: two objects, a link, a time


@dataclass(frozen=True)
class CacheStats:
    """Counters since the cache was created. entries, bytes: what it holds now."""

    hits: int
    misses: int
    entries: int
    bytes: int


class Cache(Protocol):
    """The cache of a wrapped client or an embedded index, in this process or in a server that processes share.

    Keys are 16 bytes and mean the same in every process. Values are bytes that `cache_entries` checks when they are
    read, so a lost, truncated or swapped value only costs a search. A cache holds two kinds of values:

    - pages and streams, under keys made of everything that can make two answers differ (see `cache_key`);
    - one token of 16 random bytes for each index. A write replaces the token of its index, and entries made under an
      older token are not used. Tokens are put with `seconds` of their own.

    Every cache must guarantee: `get` after `put` returns the newest value or None, in every process that shares the
    cache, and no value outlives its seconds. A method that fails raises; the search then continues without the cache,
    and a write replaces its tokens before the cache is used again. Methods are called from several threads at once,
    also inside event loops, so they should be quick. Entries hold parts of documents: protect them like the index.

    A cache in a server may have the methods of `SharedCache` too, which save round trips and repeated computations.
    """

    def get(self, key: bytes) -> bytes | None:
        """Return the value, None when there is none or it has expired."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of several keys."""

    def put(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        """Store a value for some seconds, None for the cache's own lifetime. Too large a value is not stored."""

    def clear(self) -> None:
        """Remove every entry."""

    def stats(self) -> CacheStats:
        """Return the counters."""


class SharedCache(Cache, Protocol):
    """A cache in a server that processes share. Every method fails as those of `Cache` do."""

    def get_with(self, key: bytes, others: Sequence[bytes]) -> tuple[bytes | None, list[bytes | None]]:
        """Return the values of a key and of others in one round trip. Only the first key is counted in the stats."""

    def acquire(self, key: bytes, seconds: float) -> bytes | None:
        """Return a token if no process holds the lock of a key, else None. The lock ends after `seconds`."""

    def release(self, key: bytes, token: bytes) -> None:
        """End the lock of a key if it is still the one with this token."""


class CachePaused(Exception):
    """Raised by a cache that is not used for a while, because a call has failed."""


def check_cache(cache: object) -> None:
    """Raise TypeError for what lacks the methods of `Cache`."""
    if not all(hasattr(cache, name) for name in ("get", "get_many", "put")):
        raise TypeError(f'a cache must have the methods of Cache, as RedisCache("redis://...") has, got {cache!r}')


def is_shared(cache: Cache) -> TypeGuard[SharedCache]:
    """Return whether a cache has the methods of `SharedCache`."""
    return all(hasattr(type(cache), name) for name in ("get_with", "acquire", "release"))


class MemoryCache(ForkSafe):
    """A cache in this process, thread-safe, bounded in bytes and seconds, least recently used first out.

    max_bytes: keys, values and bookkeeping together, at least 1.
    seconds:   lifetime of an entry that is put without one, above 0.
    clock:     a monotonic clock, in seconds.
    """

    def __init__(
        self, max_bytes: int = 64 * 2**20, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if max_bytes < 1 or not seconds > 0:
            raise ValueError(f"max_bytes must be at least 1 and seconds above 0, got {max_bytes} and {seconds}")
        self._limits = max_bytes, seconds, clock
        super().__init__()

    def _begin(self) -> None:
        max_bytes, self._lifetime, clock = self._limits  # lifetime: of the entry that `put` is storing
        self._entries: TLRUCache[bytes, bytes] = TLRUCache(max_bytes, self._end, clock, getsizeof=_size)
        self._hits = self._misses = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryCache, self._limits  # a copy, or one sent to another process, starts empty

    def get(self, key: bytes) -> bytes | None:
        """Return the value, None when there is none or it has expired."""
        with self._lock:
            value = self._value(key)
            if value is None:
                self._misses += 1
            else:
                self._hits += 1
            return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of several keys, without changing the counters."""
        with self._lock:
            return [self._value(key) for key in keys]

    def put(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        """Store a value. One that is larger than the whole cache only removes the value that it would replace."""
        with self._lock:
            self._lifetime = self._limits[1] if seconds is None else seconds
            try:
                self._entries[key] = value
            except ValueError:  # too large
                self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove every entry."""
        with self._lock:
            self._entries.clear()

    def stats(self) -> CacheStats:
        """Return the counters."""
        with self._lock:
            self._entries.expire()
            return CacheStats(self._hits, self._misses, len(self._entries), int(self._entries.currsize))

    def _value(self, key: bytes) -> bytes | None:
        try:
            return self._entries[key]
        except KeyError:  # `get` of cachetools would look the key up twice
            return None

    def _end(self, key: bytes, value: bytes, now: float) -> float:
        return now + self._lifetime


class FailureGuard:
    """Lets searches and writes continue when the cache fails. Each type of error is logged once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def __enter__(self) -> None:
        """Begin a block that ends at the first error of the cache, which is suppressed."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        name = type(error).__name__
        if name not in self._logged and not isinstance(error, CachePaused):  # the error before a pause was logged
            self._logged.add(name)
            log.warning("the cache failed, searches continue without it: %.300r", error)
        return True


class SingleFlight(ForkSafe):
    """Lets one caller at a time compute a key, in threads and in coroutines alike.

        if (other := flights.acquire(key)) is None:
            try: compute the value and put it into the cache
            finally: flights.release(key)
        else:
            wait for `other` (other.result(), or await asyncio.wrap_future(other)), then read the cache again; if the
            value is not there, it could not be cached: compute it without acquire

    Use one object for threads and another one for coroutines: a thread that waits for a coroutine of its own event loop
    would wait for ever.

    caller: names the one that calls, by default its thread: who computes a key already does not wait for himself, as in
            a signal handler. For coroutines, an object of its own for each call.
    """

    def __init__(self, caller: Callable[[], object] = get_ident) -> None:
        self._caller = caller
        super().__init__()

    def _begin(self) -> None:
        self._flights: dict[bytes, tuple[object, Future[None] | None]] = {}  # no future while nobody waits

    def _after_fork(self) -> None:
        super()._after_fork()  # nobody in the child ends what other threads have begun
        self._flights = {key: flight for key, flight in self._flights.items() if flight[0] == self._caller()}

    def acquire(self, key: bytes) -> Future[None] | None:
        """Return None if the caller is to compute and then release(), else a future that ends with the other's."""
        with self._lock:
            caller = self._caller()
            if key not in self._flights:
                self._flights[key] = caller, None
                return None
            by, other = self._flights[key]
            if by == caller:
                return _ENDED
            other = other or Future()
            self._flights[key] = by, other
            return other

    def release(self, key: bytes) -> None:
        """Wake the callers that wait. Call it after success and after failure."""
        with self._lock:
            _, flight = self._flights.pop(key)
        if flight is not None:
            flight.set_result(None)


_ENDED: Future[None] = Future()
_ENDED.set_result(None)


def cache_key(*parts: Any) -> bytes:
    """Hash JSON-like values to 16 bytes. The order of keys matters, as it does in a `sort` by several fields."""
    return hash_of_json(*parts).digest()


def hash_of_json(*parts: Any) -> blake2b:
    """Return the hash of JSON-like values, to which more can be added."""
    return blake2b(_to_json(parts).encode("utf-8", "surrogatepass"), digest_size=16)


def is_value(given: Any) -> bool:
    """Return whether an object is a time, a number, an array and the like, which a client's serializer knows."""
    return isinstance(given, _VALUES) or hasattr(given, "tolist")


def _json_value(value: Any) -> Any:
    """Convert a value that JSON cannot encode. Arrays become lists, because repr abbreviates long arrays.

    The repr of other objects may be abbreviated, too, so each of them differs from all others that live meanwhile. The
    body of a search that is collapsed holds none: see `rest.read_request.names_in`.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    return repr(value) if is_value(value) else f"{value!r} {id(value)}"


_to_json = json.JSONEncoder(ensure_ascii=False, default=_json_value, separators=(",", ":")).encode


def _size(value: bytes) -> int:
    return len(value) + _OVERHEAD
