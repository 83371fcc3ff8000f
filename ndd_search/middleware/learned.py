"""What a wrapped client has learnt about the targets it searches.

What is learnt from the engine or from a mapping serves every caller of the client. What is learnt from documents
belongs to the callers who may read those documents: it is kept for each caller, and a table of common values is taken
over from another caller only where a probe showed that both see about the same documents (see `common`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from cachetools import LRUCache

from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.strategies import Seen
from ndd_search.paging.cache import cache_key

MAX_RESULT_WINDOW = 10_000  # the engines' default
_TARGETS = 20_000
_CALLERS = 50_000
_VIEWS = 8  # tables of one target that a caller new to it is compared with
_STRANGERS = 8  # requests for callers new to a target who have not come back yet
_LEASE = 60.0  # seconds after which a count that never ended is no longer waited for
_SENTENCES = 10_000
_BYTES = 64 * 2**20
_OVERHEAD = 1_000  # bytes of a table without values
_PER_VALUE = 64  # bytes of a value of a table, with what makes it quick to look up


@dataclass(frozen=True)
class View:
    """Which documents of a target a caller sees, told by the head of a random sample that is the same for everybody.

    first: index and id of the first documents of the sample. total: documents that the sample was drawn from.
    """

    first: frozenset[tuple[str, str]]
    total: int

    def is_about(self, other: View) -> bool:
        """Whether both views have at least three quarters in common, as far as heads and totals tell."""
        shared, most = len(self.first & other.first), max(len(self.first), len(other.first))
        return 4 * shared >= 3 * most and 4 * min(self.total, other.total) >= 3 * max(self.total, other.total)


@dataclass(frozen=True)
class Counted:
    """A table of common values. view: the documents it was counted in. until: when it is to be counted again."""

    frequency_table: FrequencyTable
    view: View
    until: float

    @property
    def bytes(self) -> int:
        """About what the table takes in memory."""
        return _OVERHEAD + _PER_VALUE * len(self.frequency_table.values)


@dataclass(frozen=True)
class LearnedOfTarget:
    """What every caller of a client may know of a target. Times are of the client's clock.

    whole_until:    until when the target is searched in one phase: taking a search apart did not work out.
    sketched:       whether the target is known to hold sketches of ours.
    text_until:     until when recipes are read out of the documents: they are mapped as text, without doc values.
    window_limit:   the target's max_result_window.
    sketched_until: until when the target counts as one with sketches: somebody saw one.
    bare_until:     until when sketches are looked for in a small request first: somebody found none at all.
    probe_again:    when some caller may next ask whether the target holds any sketch.
    counting_until: until when one caller counts common values, and the others do not.
    tables:         digests of the tables counted last, for callers new to the target.
    strangers:      requests sent for callers who were new to the target and have not come back.
    """

    whole_until: float = 0.0
    sketched: bool = False
    text_until: float = 0.0
    window_limit: int = MAX_RESULT_WINDOW
    sketched_until: float = 0.0
    bare_until: float = 0.0
    probe_again: float = 0.0
    counting_until: float = 0.0
    tables: tuple[str, ...] = ()
    strangers: int = 0


@dataclass(frozen=True)
class LearnedOfCaller:
    """What one caller of a client knows of a target.

    bypass_until: until when the target is searched as if the client were not wrapped: this caller found no sketch.
    count_again: when this caller may next count common values, after a failure.
    table:       digest of this caller's table of common values, "" for none.
    met:         whether a search of this caller wanted a table before.
    charged:     whether that search is among the `strangers` of the target.
    seen:        what the caller's last searches were like.
    """

    bypass_until: float = 0.0
    count_again: float = 0.0
    table: str = ""
    met: bool = False
    charged: bool = False
    seen: Seen = field(default_factory=Seen)


class Learned:
    """Known by target and by caller, bounded: what was not used for longest is forgotten first. Safe for threads."""

    def __init__(self) -> None:
        self._targets: LRUCache[bytes, LearnedOfTarget] = LRUCache(_TARGETS)
        self._callers: LRUCache[bytes, LearnedOfCaller] = LRUCache(_CALLERS)
        self._tables: LRUCache[tuple[bytes, str], Counted] = LRUCache(_BYTES, getsizeof=lambda counted: counted.bytes)
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Learned, ()  # a copy, or what another process gets, learns for itself

    def about(self, target: bytes) -> LearnedOfTarget:
        """What every caller may know of a target, the defaults where that is nothing."""
        with self._lock:
            return self._targets.get(target) or LearnedOfTarget()

    def learn(self, target: bytes, **changes: Any) -> None:
        """Replace some of it."""
        with self._lock:
            self._targets[target] = replace(self._targets.get(target) or LearnedOfTarget(), **changes)

    def of_caller(self, target_of_caller: bytes) -> LearnedOfCaller:
        """What one caller knows of a target, the defaults where that is nothing."""
        with self._lock:
            return self._callers.get(target_of_caller) or LearnedOfCaller()

    def learn_of_caller(self, target_of_caller: bytes, **changes: Any) -> None:
        """Replace some of it."""
        with self._lock:
            self._callers[target_of_caller] = replace(
                self._callers.get(target_of_caller) or LearnedOfCaller(), **changes
            )

    def table(self, target: bytes, digest: str) -> Counted | None:
        """A table of a target, None where it is not remembered."""
        with self._lock:
            return self._tables.get((target, digest))

    def add_table(self, target: bytes, counted: Counted) -> str:
        """Remember a table for those who see about the same documents. Returns its digest."""
        digest = counted.frequency_table.digest
        with self._lock:
            known = self._targets.get(target) or LearnedOfTarget()
            others = tuple(one for one in known.tables if one != digest)
            self._targets[target] = replace(known, tables=(digest, *others)[:_VIEWS])
            if counted.bytes <= self._tables.maxsize:
                self._tables[target, digest] = counted
        return digest

    def may_probe(self, target: bytes, now: float, again: float) -> bool:
        """Whether a caller may ask now if a target holds any sketch; nobody else may until `again`."""
        with self._lock:
            known = self._targets.get(target) or LearnedOfTarget()
            if now < known.probe_again:
                return False
            self._targets[target] = replace(known, probe_again=again)
            return True

    def may_count(self, target: bytes, target_of_caller: bytes, now: float) -> bool:
        """Whether a caller may send a request to get a table of common values now; who is told so calls `has_counted`.

        One request at a time goes to a target. A caller's first search there may send one only while few of the callers
        before came just once: where every request brings another identity (a fresh token), none would ever come back.
        """
        with self._lock:
            known = self._targets.get(target) or LearnedOfTarget()
            caller = self._callers.get(target_of_caller) or LearnedOfCaller()
            allowed = now >= known.counting_until and (caller.met or known.strangers < _STRANGERS)
            charged = allowed and not caller.met
            self._callers[target_of_caller] = replace(caller, met=True, charged=caller.charged or charged)
            if allowed:
                self._targets[target] = replace(known, strangers=known.strangers + charged, counting_until=now + _LEASE)
            return allowed

    def came_back(self, target: bytes, target_of_caller: bytes) -> None:
        """Count a caller no longer among the strangers of a target."""
        with self._lock:
            known, caller = self._targets.get(target), self._callers.get(target_of_caller)
            if caller is not None and caller.charged:
                self._callers[target_of_caller] = replace(caller, charged=False)
                if known is not None:
                    self._targets[target] = replace(known, strangers=max(0, known.strangers - 1))

    def has_counted(self, target: bytes) -> None:
        """Let others count."""
        self.learn(target, counting_until=0.0)


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
