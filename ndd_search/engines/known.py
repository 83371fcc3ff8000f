"""What a wrapped client has learnt about the targets it searches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from cachetools import LRUCache

from ndd_search.cache import cache_key
from ndd_search.common_values import CommonValues
from ndd_search.engines.rounds import Seen

MAX_RESULT_WINDOW = 10_000  # the engines' default
_BYTES = 64 * 2**20
_OVERHEAD = 1_000  # bytes of one without a table
_SENTENCES = 10_000
_PER_VALUE = 64  # bytes of a table of common values, with what makes it quick to look up


@dataclass(frozen=True)
class Known:
    """Of one target. Times are of the client's clock.

    plain_until:  until when it is searched as if we were not there: it had no sketch.
    whole_until:  until when it is searched in one phase: taking a search apart did not work out.
    sketched:     whether it is known to hold sketches.
    text_until:   until when recipes are read out of the documents: they are mapped as text, without doc values.
    count_again:  when its common values are counted next. common: those counted last.
    window_limit: its max_result_window.
    seen:         what the last searches were like.
    """

    plain_until: float = 0.0
    whole_until: float = 0.0
    sketched: bool = False
    text_until: float = 0.0
    count_again: float = 0.0
    common: CommonValues | None = field(default=None, repr=False)
    window_limit: int = MAX_RESULT_WINDOW
    seen: Seen = field(default_factory=Seen)

    @property
    def bytes(self) -> int:
        """About what it takes in memory."""
        return _OVERHEAD + _PER_VALUE * (len(self.common.values) if self.common else 0)


class Knowledge:
    """Known by target, bounded: what was not asked for longest is forgotten first. Safe for threads."""

    def __init__(self) -> None:
        self._known: LRUCache[bytes, Known] = LRUCache(_BYTES, getsizeof=lambda known: known.bytes)
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Knowledge, ()  # a copy, or what another process gets, learns for itself

    def about(self, target: bytes) -> Known:
        """What is known, the defaults where that is nothing."""
        with self._lock:
            return self._known.get(target) or Known()

    def learn(self, target: bytes, **changes: Any) -> None:
        """Replace some of it."""
        with self._lock:
            self._known[target] = replace(self._known.get(target) or Known(), **changes)


class Said:
    """What was said already, as far as that is remembered. Safe for threads."""

    def __init__(self) -> None:
        self._said: LRUCache[bytes, None] = LRUCache(_SENTENCES)
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Said, ()

    def first_time(self, *what: str) -> bool:
        """Whether this was not said before."""
        key = cache_key(*what)
        with self._lock:
            known = key in self._said
            self._said[key] = None
        return not known
