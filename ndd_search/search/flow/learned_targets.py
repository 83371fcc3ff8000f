"""What a wrapped client has learned about the targets that it searches.

Facts from the engine or from a mapping are shared by every caller of the client. Facts from documents are kept per
caller, because they may reveal documents that other callers cannot read. A frequency table is shared between callers
only if a probe showed that both see about the same documents (see `choose_frequency_table`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cachetools import LRUCache

from ndd_search.core.fork_safe import ForkSafe
from ndd_search.core.immutable import dataclass
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache import cache_key

MAX_RESULT_WINDOW = 10_000  # the engines' default
_TARGETS = 20_000
_CALLERS = 50_000
_VIEWS = 8  # most tables of one target that a new caller's view is compared with
_RELIED_ON = 3600.0  # seconds for which a target counts as having sketches after one was seen
_STRANGERS = 8  # most requests for new callers of a target who have not returned yet
_LEASE = 60.0  # seconds after which an unfinished count no longer blocks others
_PIPELINES, _PIPELINE_SECONDS = 1_000, 300.0
_SENTENCES = 10_000
_BYTES = 64 * 2**20
_OVERHEAD = 1_000  # bytes of a table without values
_PER_VALUE = 64  # bytes of a value of a table, with its share of the look-up structure


@dataclass(frozen=True)
class View:
    """Which documents of a target a caller sees, estimated from the head of a random sample with a fixed seed.

    first: hashes of index and id of the first documents of the sample. total: number of documents it was drawn from.
    """

    first: frozenset[str]
    total: int

    def is_about(self, other: View) -> bool:
        """Return whether the heads share three quarters, and the totals differ by no more than a quarter."""
        shared, most = len(self.first & other.first), max(len(self.first), len(other.first))
        return 4 * shared >= 3 * most and 4 * min(self.total, other.total) >= 3 * max(self.total, other.total)


@dataclass(frozen=True)
class Counted:
    """A frequency table. view: the documents it was counted in. until: time at which it is counted again."""

    frequency_table: FrequencyTable
    view: View
    until: float = 0.0

    @property
    def bytes(self) -> int:
        """Approximate memory of the table."""
        return _OVERHEAD + _PER_VALUE * len(self.frequency_table.values)


@dataclass(frozen=True)
class LearnedOfTarget:
    """Facts about a target that are shared by all callers of a client. Times are of the client's clock.

    whole_until:    the target is searched in one phase until then, because a split search failed.
    sketched:       whether requests exclude the values of sketches from `_source`, as the target held some.
    text_until:     until then, recipes are read from the documents: they are mapped as text, without doc values.
    no_source_until: until then, requests exclude nothing from `_source`: an index without it refuses that.
    window_limit:   the target's max_result_window.
    sketched_until: until then, the target counts as having sketches: a caller saw one.
    bare_until:     until then, a caller who finds no sketch need not ask for any: another caller found none at all.
    probe_again:    earliest time for the next request that asks whether the target holds any sketch.
    counting_until: until then, one caller counts a frequency table and the others do not.
    tables:         digests of the tables counted last, for new callers of the target.
    strangers:      number of requests sent for new callers of the target who have not returned.
    """

    whole_until: float = 0.0
    sketched: bool = False
    text_until: float = 0.0
    no_source_until: float = 0.0
    window_limit: int = MAX_RESULT_WINDOW
    sketched_until: float = 0.0
    bare_until: float = 0.0
    probe_again: float = 0.0
    counting_until: float = 0.0
    tables: tuple[str, ...] = ()
    strangers: int = 0


@dataclass(frozen=True)
class LearnedOfCaller:
    """Facts about a target that belong to one caller of a client.

    bypass_until: until then, searches are not collapsed, because this caller found hits and no sketch. writes: the
                 number of writes through the client at that time; another write ends it.
    count_again: earliest time for this caller's next count, after a failure.
    table:       digest of this caller's frequency table, "" for none.
    met:         whether a search of this caller needed a table before.
    charged:     whether that search is counted in `strangers` of the target.
    lacks_until: until then, samples of groups count the documents without values: there are some.
    """

    bypass_until: float = 0.0
    writes: int = 0
    count_again: float = 0.0
    table: str = ""
    met: bool = False
    charged: bool = False
    lacks_until: float = 0.0


_NO_TARGET, _NO_CALLER = LearnedOfTarget(), LearnedOfCaller()


class Learned(ForkSafe):
    """Learned facts by target and by caller, and which messages were logged.

    Bounded, least recently used first out. Thread-safe.
    """

    def _begin(self) -> None:
        self._targets: LRUCache[bytes, LearnedOfTarget] = LRUCache(_TARGETS)
        self._callers: LRUCache[bytes, LearnedOfCaller] = LRUCache(_CALLERS)
        self._tables: LRUCache[tuple[bytes, str], Counted] = LRUCache(_BYTES, getsizeof=lambda counted: counted.bytes)
        self._pipelines: LRUCache[str, tuple[float, Mapping[str, Any]]] = LRUCache(_PIPELINES)
        self._said: LRUCache[bytes, None] = LRUCache(_SENTENCES)
        self.writes = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Learned, ()  # a copy, or one sent to another process, starts empty

    def facts(self, target: bytes, target_of_caller: bytes) -> tuple[LearnedOfTarget, LearnedOfCaller]:
        """Return the shared facts about a target, and those of one caller."""
        with self._lock:
            caller = self._callers.get(target_of_caller, _NO_CALLER)
            if caller.bypass_until and caller.writes != self.writes:
                caller = replace(caller, bypass_until=0.0)
            return self._targets.get(target, _NO_TARGET), caller

    def written(self) -> None:
        """Note a write through the client: it may have brought the first sketches."""
        with self._lock:
            self.writes += 1

    def about(self, target: bytes) -> LearnedOfTarget:
        """Return the shared facts about a target, the defaults if nothing was learned."""
        with self._lock:
            return self._targets.get(target, _NO_TARGET)

    def learn(self, target: bytes, **changes: Any) -> None:
        """Change some of these facts."""
        with self._lock:
            self._targets[target] = replace(self._targets.get(target, _NO_TARGET), **changes)

    def saw_sketch(self, target: bytes, now: float) -> None:
        """Remember for an hour that a target has sketches."""
        known, until = self.about(target), now + _RELIED_ON
        if known.bare_until or known.sketched_until < until - _RELIED_ON / 2:
            self.learn(target, sketched_until=until, bare_until=0.0)

    def of_caller(self, target_of_caller: bytes) -> LearnedOfCaller:
        """Return one caller's facts about a target, the defaults if nothing was learned."""
        with self._lock:
            return self._callers.get(target_of_caller, _NO_CALLER)

    def learn_of_caller(self, target_of_caller: bytes, **changes: Any) -> None:
        """Change some of these facts."""
        with self._lock:
            self._callers[target_of_caller] = replace(self._callers.get(target_of_caller, _NO_CALLER), **changes)

    def table(self, target: bytes, digest: str) -> Counted | None:
        """Return a table of a target, None if it is not stored."""
        with self._lock:
            return self._tables.get((target, digest))

    def add_table(self, target: bytes, counted: Counted) -> str:
        """Store a table for callers who see about the same documents. Returns its digest."""
        digest = counted.frequency_table.digest
        with self._lock:
            known = self._targets.get(target, _NO_TARGET)
            others = tuple(other for other in known.tables if other != digest)
            self._targets[target] = replace(known, tables=(digest, *others)[:_VIEWS])
            if counted.bytes <= self._tables.maxsize:
                self._tables[target, digest] = counted
        return digest

    def claim_probe(self, target: bytes, now: float, again: float) -> bool:
        """Let one caller ask for any sketch in a target. Returns whether this one may; then no other until `again`."""
        with self._lock:
            known = self._targets.get(target, _NO_TARGET)
            if now < known.probe_again:
                return False
            self._targets[target] = replace(known, probe_again=again)
            return True

    def claim_count(self, target: bytes, target_of_caller: bytes, now: float) -> bool:
        """Let one caller request a frequency table. Returns whether this one may now; it then ends `counting_until`.

        One such request at a time goes to a target. A new caller may send one only while few new callers before have
        not returned: if every request has another identity (a fresh token), no caller would ever use its table.
        """
        with self._lock:
            known = self._targets.get(target, _NO_TARGET)
            caller = self._callers.get(target_of_caller, _NO_CALLER)
            allowed = now >= known.counting_until and (caller.met or known.strangers < _STRANGERS)
            charged = allowed and not caller.met
            self._callers[target_of_caller] = replace(caller, met=True, charged=caller.charged or charged)
            if allowed:
                self._targets[target] = replace(known, strangers=known.strangers + charged, counting_until=now + _LEASE)
            return allowed

    def came_back(self, target: bytes, target_of_caller: bytes) -> None:
        """Remove a caller who has returned from the `strangers` of a target."""
        with self._lock:
            caller = self._callers.get(target_of_caller)
            if caller is not None and caller.charged:
                self._callers[target_of_caller] = replace(caller, charged=False)
                if (known := self._targets.get(target)) is not None:
                    self._targets[target] = replace(known, strangers=max(0, known.strangers - 1))

    def pipeline(self, name: str, now: float) -> Mapping[str, Any] | None:
        """Return the definition of a search pipeline, None if it is unknown or was read five minutes ago."""
        with self._lock:
            until, definition = self._pipelines.get(name, (now, {}))
        return definition if now < until else None

    def learn_pipeline(self, name: str, definition: Mapping[str, Any], now: float) -> None:
        """Store the definition of a search pipeline."""
        with self._lock:
            self._pipelines[name] = now + _PIPELINE_SECONDS, definition

    def says_first(self, *what: str) -> bool:
        """Return whether a message was not logged before, and remember it."""
        key = cache_key(*what)
        with self._lock:
            known = key in self._said
            self._said[key] = None
        return not known
