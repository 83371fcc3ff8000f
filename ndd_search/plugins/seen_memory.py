"""Remembers what each user, session or agent was shown, for `"ndd": {"seen": memory.of(user)}` in the next search."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any, Protocol

import numpy as np
from cachetools import LRUCache

from ndd_search.recipe import Recipe
from ndd_search.sketching.estimates import checked_sketch
from ndd_search.sketching.sketches import VALUES, sketch

Item = dict[str, str] | list[int]  # the name of a document, or a sketch

_OF_A_DOCUMENT = ("_index", "_id")
WEEK = 7 * 24 * 3600.0


class Remembering(Protocol):
    """The methods of a memory, in this process or in a server that processes share.

    user: any text that identifies who was shown something; it is the program's own, never checked against the engine's
    users. Documents are remembered by their names alone. A search looks them up with the rights of its caller, so a
    memory gives nobody access to anything.
    """

    def add(self, user: str, items: Any) -> None:
        """Remember what a user was shown: an answer, a list of its hits, texts, or sketches.

        Raises TypeError or InvalidSketch for an item of another form, TypeError for a user that is not a text.
        """

    def of(self, user: str) -> list[Item]:
        """Return what a user was shown, the oldest first, in the form that a search and `collapse` take as `seen`."""

    def forget(self, user: str) -> None:
        """Forget everything about a user."""


class SeenMemory:
    """A memory in this process. Thread-safe. It is bounded, the oldest out first.

    seconds:    how long an item is remembered after it was shown last, above 0.
    most_items: of one user, 1..1000. most_users: the user who was not met for the longest time is forgotten first.
    recipe:     of the sketches that texts become. now: seconds since 1970.
    Raises ValueError for an invalid limit.
    """

    def __init__(
        self,
        *,
        seconds: float = WEEK,
        most_items: int = 500,
        most_users: int = 10_000,
        recipe: Recipe | str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        check_limits(seconds, most_items)
        if most_users < 1:
            raise ValueError(f"most_users must be at least 1, got {most_users}")
        self._seconds, self._most, self._recipe, self._now = seconds, most_items, Recipe.of(recipe), now
        self._users: LRUCache[str, dict[str, float]] = LRUCache(most_users)
        self._lock = Lock()

    def add(self, user: str, items: Any) -> None:
        """Remember what a user was shown: an answer, a list of its hits, texts, or sketches."""
        check_user(user)
        now, fresh = self._now(), members_of(items, self._recipe)
        with self._lock:
            known = self._users.get(user, {})
            kept = [(name, at) for name, at in known.items() if now - at < self._seconds and name not in fresh]
            newest = [*kept, *((name, now) for name in fresh)][-self._most :]
            self._users[user] = dict(newest)

    def of(self, user: str) -> list[Item]:
        """Return what a user was shown, the oldest first, in the form that a search and `collapse` take as `seen`."""
        check_user(user)
        now = self._now()
        with self._lock:
            known = dict(self._users.get(user, {}))
        return [json.loads(name) for name, at in known.items() if now - at < self._seconds]

    def forget(self, user: str) -> None:
        """Forget everything about a user."""
        with self._lock:
            self._users.pop(user, None)


def check_user(user: object) -> None:
    """Raise TypeError if a user is not a text: all readers without a name would share one memory under None."""
    if not isinstance(user, str):
        raise TypeError(f"a user must be a text, got {user!r:.80}: give readers without a name none, or a session's")


def is_item(one: Any) -> bool:
    """Return whether a value that was read from a server has the form of an item."""
    if isinstance(one, dict):
        return isinstance(one.get("_id"), str) and set(map(type, one.values())) == {str}
    if not isinstance(one, list) or not {int}.issuperset(map(type, one)):
        return False
    return one == sorted(set(one)) and all(0 <= end < VALUES for end in (*one[:1], *one[-1:]))


def check_limits(seconds: float, most_items: int) -> None:
    """Raise ValueError for an invalid limit of a memory."""
    if not seconds > 0 or not 1 <= most_items <= 1000:
        raise ValueError(f"seconds must be above 0 and most_items 1..1000, got {seconds} and {most_items}")


def members_of(items: Any, recipe: Recipe) -> list[str]:
    """Return what is remembered of items, each once, as JSON. Raises TypeError or InvalidSketch for any other item."""
    return list(dict.fromkeys(json.dumps(_item_of(one, recipe)) for one in _listed(items)))


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
