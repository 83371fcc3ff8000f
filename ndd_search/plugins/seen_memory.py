"""Remembers what each user, session or agent was shown, for `"ndd": {"seen": memory.of(user)}` in the next search."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ndd_search.core.fork_safe import ForkSafeLock
from ndd_search.core.paging.cache import (
    Cache,
    FailureGuard,
    MemoryCache,
    SharedCache,
    cache_key,
    check_cache,
    is_shared,
)
from ndd_search.core.paging.cache_entries import sealed, unsealed
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.estimate_similarity import checked_sketch
from ndd_search.core.sketching.sketches import VALUES, sketch

Item = dict[str, str] | list[int]  # the name of a document, or a sketch

_OF_A_DOCUMENT = ("_index", "_id")
_WEEK = 7 * 24 * 3600.0
_LOCK_SECONDS = 1.0  # after which a process that holds a lock is taken for dead
_POLL = 0.002  # seconds between two questions for a lock


class SeenMemory:
    """A memory of what users were shown, in a cache. Thread-safe, and shared by all processes that share the cache.

    cache:      where it is kept: MemoryCache() in this process, the default, or RedisCache(URL). It bounds the memory
                of all users together; those who were not met for the longest time are forgotten first.
    seconds:    how long an item is remembered after it was shown last, above 0.
    most_items: of one user, 1..1000, the newest.
    recipe:     of the sketches that texts become. now: seconds since 1970.
    Raises ValueError for an invalid limit.

    A user is any text that identifies who was shown something; it is the program's own, never checked against the
    engine's users, and stored by a hash. Documents are remembered by their names alone. A search looks them up with the
    rights of its caller, so a memory gives nobody access to anything. If the cache fails, that is logged, and nothing
    is remembered or returned: hits are then shown again.
    """

    def __init__(
        self,
        cache: Cache | None = None,
        *,
        seconds: float = _WEEK,
        most_items: int = 500,
        recipe: Recipe | str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not seconds > 0 or not 1 <= most_items <= 1000:
            raise ValueError(f"seconds must be above 0 and most_items 1..1000, got {seconds} and {most_items}")
        self._cache: Cache = MemoryCache() if cache is None else cache
        check_cache(self._cache)
        self._shared: SharedCache | None = self._cache if is_shared(self._cache) else None
        self._seconds, self._most, self._recipe, self._now = seconds, most_items, Recipe.of(recipe), now
        self._guarded, self._changing = FailureGuard(), ForkSafeLock()

    def add(self, user: str, items: Any) -> None:
        """Remember what a user was shown: an answer, a list of its hits, texts, or sketches.

        Raises TypeError or InvalidSketch for an item of another form, TypeError for a user that is not a text.
        """
        key, fresh = _key(user), {json.dumps(_item_of(one, self._recipe)): None for one in _listed(items)}
        if not fresh:
            return
        with self._guarded, self._changing, self._locked(key):
            now = self._now()
            kept = [(name, at) for name, at in self._known(key) if name not in fresh]
            newest = [*kept, *((name, now) for name in fresh)][-self._most :]
            entry = sealed(key, [[name, at] for name, at in newest])
            if entry is not None:
                self._cache.put(key, entry, self._seconds)

    def of(self, user: str) -> list[Item]:
        """Return what a user was shown, the oldest first, in the form that a search and `collapse` take as `seen`."""
        key = _key(user)
        with self._guarded:
            return [json.loads(name) for name, _ in self._known(key)]
        return []

    def forget(self, user: str) -> None:
        """Forget everything about a user."""
        key = _key(user)
        with self._guarded, self._changing, self._locked(key):
            self._cache.put(key, b"", self._seconds)

    def _known(self, key: bytes) -> list[tuple[str, float]]:
        """Return the items of a user as JSON, with their times, the oldest first."""
        entry, now = self._cache.get_many([key])[0], self._now()
        found = unsealed(key, entry) if entry else None
        if found is None or not isinstance(found[0], list):
            return []
        return [(name, at) for name, at in filter(_is_stored, found[0]) if now - at < self._seconds]

    @contextmanager
    def _locked(self, key: bytes) -> Iterator[None]:
        """Change a user's items alone among all processes: two changes at once would lose one of them."""
        if self._shared is None:
            yield
            return
        lock, until = cache_key("lock", key.hex()), time.monotonic() + _LOCK_SECONDS
        while (token := self._shared.acquire(lock, _LOCK_SECONDS)) is None and time.monotonic() < until:
            time.sleep(_POLL)
        try:
            yield
        finally:
            if token is not None:
                self._shared.release(lock, token)


def _key(user: str) -> bytes:
    if not isinstance(user, str):  # all readers without a name would share one memory under None
        raise TypeError(f"a user must be a text, got {user!r:.80}: give readers without a name none, or a session's")
    return cache_key("seen", user)


def _is_stored(entry: Any) -> bool:
    """Return whether an entry of a cache is an item with its time, and no value that another program wrote."""
    try:
        name, at = entry
        return isinstance(at, int | float) and _is_item(json.loads(name))
    except (TypeError, ValueError):
        return False


def _is_item(one: Any) -> bool:
    if isinstance(one, dict):
        return isinstance(one.get("_id"), str) and set(map(type, one.values())) == {str}
    if not isinstance(one, list) or not {int}.issuperset(map(type, one)):
        return False
    return one == sorted(set(one)) and all(0 <= end < VALUES for end in (*one[:1], *one[-1:]))


def _listed(items: Any) -> Iterable[Any]:
    """Return the hits of an answer, or a list as it is."""
    body = getattr(items, "body", items)  # elasticsearch-py's answers are objects
    if isinstance(body, Mapping):
        found = body.get("hits")
        if not isinstance(found, Mapping):
            raise TypeError("an answer with hits.hits is needed, or a list of hits, texts or sketches")
        body = found.get("hits", ())
    if isinstance(body, str) or not isinstance(body, Iterable):
        raise TypeError(f"a list of hits, texts or sketches is needed, got one {type(items).__name__}")
    return body


def _item_of(one: Any, recipe: Recipe) -> Item:
    if isinstance(one, str):
        return [int(value) for value in sketch(one, recipe)]
    if isinstance(one, Mapping):
        if not isinstance(one.get("_id"), str):
            raise TypeError(f"a hit without an _id cannot be remembered: {dict(one)!r:.80}")
        return {name: one[name] for name in _OF_A_DOCUMENT if isinstance(one.get(name), str)}
    if not isinstance(one, list | tuple | np.ndarray):
        raise TypeError(f"neither a hit, nor a text, nor a sketch: {one!r:.80}")
    values: list[int] = checked_sketch(one, len(one) or 1).tolist()
    return values
