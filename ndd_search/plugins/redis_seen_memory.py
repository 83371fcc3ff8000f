"""Remembers what users were shown in a Redis or Valkey server, for all processes."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from hashlib import blake2b
from math import inf
from typing import Any
from weakref import finalize

from ndd_search.errors import importing
from ndd_search.plugins.seen_memory import WEEK, Item, check_limits, check_user, is_item, members_of
from ndd_search.recipe import Recipe

with importing("redis", "the shared memory of what was seen", "redis", "redis"):
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

log = logging.getLogger("ndd_search")


class RedisSeenMemory:
    """A seen_memory.Remembering in a server. Thread-safe.

    url:        redis://[[user]:password@]host[:port][/database], rediss:// for TLS, or unix://path.
    seconds, most_items, recipe, now: as of SeenMemory. prefix: of every key.
    budget:     seconds that the server may take to answer, above 0.
    Raises ValueError for an invalid address or limit, MissingExtra without the package redis. Creating the memory does
    not connect. If the server fails or is late, that is logged, and nothing is remembered or returned: hits are then
    shown again. Users are stored by a hash of their name. Set the server's `maxmemory` to bound the number of users.
    """

    def __init__(
        self,
        url: str,
        *,
        seconds: float = WEEK,
        most_items: int = 500,
        recipe: Recipe | str | None = None,
        prefix: str = "ndd-seen",
        budget: float = 0.05,
        now: Callable[[], float] = time.time,
    ) -> None:
        check_limits(seconds, most_items)
        if not 0 < budget < inf or seconds == inf:
            raise ValueError(f"seconds and budget must be finite and above 0, got {seconds} and {budget}")
        self._seconds, self._most, self._recipe, self._now = seconds, most_items, Recipe.of(recipe), now
        self._prefix = f"{prefix}:1:"  # 1: version of the layout
        self._redis: redis.Redis = redis.Redis.from_url(
            url,
            socket_timeout=budget,
            socket_connect_timeout=3 * budget,
            retry=Retry(NoBackoff(), 1),  # the server may have closed an idle connection
            protocol=2,
        )
        finalize(self, self._redis.connection_pool.disconnect)

    def add(self, user: str, items: Any) -> None:
        """Remember what a user was shown: an answer, a list of its hits, texts, or sketches."""
        key, now, fresh = self._key(user), self._now(), members_of(items, self._recipe)
        if not fresh:
            return
        # Equal times are ordered by the members; the fraction keeps the order in which they were shown.
        scores = {member: now + place / 1e6 for place, member in enumerate(fresh)}

        def store(server: redis.Redis) -> None:
            with server.pipeline() as pipeline:
                pipeline.zadd(key, scores)
                pipeline.zremrangebyscore(key, 0, now - self._seconds)
                pipeline.zremrangebyrank(key, 0, -1 - self._most)
                pipeline.pexpire(key, max(1, round(1000 * self._seconds)))
                pipeline.execute()

        self._run(store, None)

    def of(self, user: str) -> list[Item]:
        """Return what a user was shown, the oldest first, in the form that a search and `collapse` take as `seen`."""
        key, since = self._key(user), self._now() - self._seconds
        found = self._run(lambda server: server.zrangebyscore(key, f"({since}", "+inf"), [])
        return [item for member in found if is_item(item := _read(member))]

    def forget(self, user: str) -> None:
        """Forget everything about a user."""
        self._run(lambda server: server.delete(self._key(user)), None)

    def _key(self, user: str) -> str:
        check_user(user)
        return self._prefix + blake2b(user.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def _run(self, ask: Callable[[redis.Redis], Any], otherwise: Any) -> Any:
        try:
            return ask(self._redis)
        except (redis.RedisError, OSError) as error:
            log.warning("what was seen may be shown again: the memory in the server failed: %s", error)
            return otherwise


def _read(member: bytes) -> Any:
    """Return the value of a member, None if another program wrote something else."""
    try:
        return json.loads(member)
    except ValueError:
        return None
