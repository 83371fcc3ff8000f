"""A cache in a Redis or Valkey server: `ndd_search.wrap(client, cache=RedisCache("redis://localhost:6379/0"))`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, TypeVar
from weakref import finalize

from ndd_search.core.fork_safe import ForkSafe
from ndd_search.core.paging.cache import CachePaused, CacheStats
from ndd_search.errors import importing

with importing("redis", "the shared cache", "redis", "redis"):
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

Result = TypeVar("Result")

_CONNECTING = 3  # times the budget: a connection may need a TLS handshake
_SCANNED = 1000  # keys of one SCAN
_TOKEN = 16  # bytes of the token in a lock; any other value under its key is of another program


class RedisCache(ForkSafe):
    """A cache.SharedCache in a Redis or Valkey server. Thread-safe; a copy, also in another process, shares it.

    url:        redis://[[user]:password@]host[:port][/database], rediss:// for TLS, or unix://path.
    seconds:    lifetime of an entry that is put without one, finite and above 0.
    prefix:     of every key, so that other programs can use the same server.
    budget:     seconds that the server may take to answer, above 0. A connection may take three times as long.
    pause:      seconds for which the cache is not used after a failed or late answer, at least 0.
    most_bytes: a larger value is not stored.
    clock:      a monotonic clock, in seconds.

    Raises ValueError for an invalid address or limit, MissingExtra without the package redis. Creating the cache does
    not connect. Each method raises an error of the package redis if it fails, and CachePaused during a pause.

    The server bounds the memory of all entries: set its `maxmemory`, with a `maxmemory-policy` that evicts.
    """

    def __init__(
        self,
        url: str,
        *,
        seconds: float = 10.0,
        prefix: str = "ndd",
        budget: float = 0.05,
        pause: float = 5.0,
        most_bytes: int = 4 * 2**20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (0 < seconds < inf and 0 < budget < inf and pause >= 0 and most_bytes > 0):
            raise ValueError("seconds and budget must be finite and above 0, most_bytes above 0, and pause at least 0")
        limits: dict[str, Any] = {"budget": budget, "pause": pause, "most_bytes": most_bytes, "clock": clock}
        self._arguments = {"url": url, "seconds": seconds, "prefix": prefix, **limits}
        self._seconds, self._most_bytes, self._pause, self._clock = seconds, most_bytes, pause, clock
        self._prefix = f"{prefix}:1:".encode()  # 1: version of the layout
        self._redis: redis.Redis = redis.Redis.from_url(
            url,
            socket_timeout=budget,
            socket_connect_timeout=_CONNECTING * budget,
            retry=Retry(NoBackoff(), 0),
            protocol=2,  # understood by every server
        )
        finalize(self, self._redis.connection_pool.disconnect)
        self._paused_until = -float("inf")
        super().__init__()

    def _begin(self) -> None:
        self._hits = self._misses = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RedisCache, **self._arguments), ()

    def __repr__(self) -> str:  # without the password
        return f"{type(self).__name__}({self._redis.connection_pool.connection_kwargs.get('host', 'unix socket')!r})"

    def get(self, key: bytes) -> bytes | None:
        """Return the value, None when there is none or it has expired."""
        return self.get_with(key, [])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of several keys, without changing the counters."""
        return self._run(lambda server: server.mget(list(map(self._name, keys)))) if keys else []

    def get_with(self, key: bytes, others: Sequence[bytes]) -> tuple[bytes | None, list[bytes | None]]:
        """Return the values of a key and of others in one round trip. Only the first key is counted in the stats."""
        value, *found = self.get_many([key, *others])
        with self._lock:
            self._hits, self._misses = self._hits + (value is not None), self._misses + (value is None)
        return value, found

    def put(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        """Store a value. One of more than `most_bytes` only removes the value that it would replace."""
        name, milliseconds = self._name(key), max(1, round(1000 * (self._seconds if seconds is None else seconds)))
        if len(value) > self._most_bytes:
            self._run(lambda server: server.delete(name))
        else:
            self._run(lambda server: server.set(name, value, px=milliseconds))

    def acquire(self, key: bytes, seconds: float) -> bytes | None:
        """Return a token if no process holds the lock of a key, else None. The lock ends after `seconds`."""
        name, token, milliseconds = self._name(key), uuid.uuid4().bytes, max(1, round(1000 * seconds))

        def take(server: redis.Redis) -> bytes | None:
            both = server.pipeline(transaction=False)
            both.set(name, token, nx=True, px=milliseconds)
            both.mget(name)
            is_free, (held,) = both.execute()
            if is_free or (held is not None and len(held) == _TOKEN):
                return token if is_free else None
            server.set(name, token, px=milliseconds)
            return token

        taken: bytes | None = self._run(take)
        return taken

    def release(self, key: bytes, token: bytes) -> None:
        """End the lock of a key if it is still the one with this token.

        It may end by itself in between and be another's: then two processes compute one page.
        """
        name = self._name(key)
        self._run(lambda server: server.mget(name) == [token] and server.delete(name))

    def clear(self) -> None:
        """Remove every entry with this prefix, of all processes."""

        def remove(server: redis.Redis) -> None:
            for name in server.scan_iter(match=self._prefix + b"*", count=_SCANNED):
                server.delete(name)

        self._run(remove)

    def stats(self) -> CacheStats:
        """Return the hits and misses of this object, and the keys and bytes of the whole server."""
        entries, memory = self._run(lambda server: (server.dbsize(), server.info("memory")))
        return CacheStats(self._hits, self._misses, int(entries), int(memory["used_memory"]))

    def close(self) -> None:
        """Close the connections. The cache can still be used: it connects again."""
        self._redis.connection_pool.disconnect()

    def _name(self, key: bytes) -> bytes:
        return self._prefix + key

    def _run(self, ask: Callable[[redis.Redis], Any]) -> Any:
        """Ask the server. After a failure, leave it alone for a while."""
        if self._clock() < self._paused_until:
            raise CachePaused
        try:
            return ask(self._redis)
        except (redis.RedisError, OSError):
            self._paused_until = self._clock() + self._pause
            raise
