"""What a wrapped client has learned about the targets that it searches.

Facts from the engine or from a mapping are shared by every caller of the client. Facts from documents are kept per
caller, because they may reveal documents that other callers cannot read. A stored frequency table is used by the
callers who have read it themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cachetools import LRUCache

from ndd_search.core.fork_safe import ForkSafe
from ndd_search.core.immutable import dataclass
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache import cache_key

MAX_RESULT_WINDOW = 10_000  # the engines' default
_MOST = 50_000  # things of which facts are kept
_RELIED_ON = 3600.0  # seconds for which a target counts as having sketches after one was seen
_SENTENCES = 10_000
_BYTES = 64 * 2**20
_OVERHEAD = 1_000  # bytes of a table without values
_PER_VALUE = 64  # bytes of a value of a table, with its share of the look-up structure


@dataclass(frozen=True)
class Facts:
    """Facts about a target, one of its callers, or a search pipeline. Times are of the client's clock.

    Of a target, shared by all callers of a client:
    whole_until:    the target is searched in one phase until then, because a split search failed.
    sketched:       whether requests exclude the values of sketches from `_source`, as the target held some.
    text_until:     until then, recipes are read from the documents: they are mapped as text, without doc values.
    no_source_until: until then, requests exclude nothing from `_source`: an index without it refuses that.
    window_limit:   the target's max_result_window.
    sketched_until: until then, the target counts as having sketches: a caller saw one.
    bare_until:     until then, a caller who finds no sketch need not ask for any: another caller found none at all.
    probe_again:    earliest time for the next request that asks whether the target holds any sketch.

    Of one caller:
    bypass_until:   until then, searches are not collapsed, because this caller found hits and no sketch.
    writes:         the number of writes through the client at that time; another write ends it.
    table:          digest of the stored frequency table that this caller has read, "" for none.
    table_until:    until then, it is not read again.
    lacks_until:    until then, samples of groups count the documents without values: there are some.

    Of a search pipeline:
    pipeline:       its definition. pipeline_until: until then, it is not read again.
    """

    whole_until: float = 0.0
    sketched: bool = False
    text_until: float = 0.0
    no_source_until: float = 0.0
    window_limit: int = MAX_RESULT_WINDOW
    sketched_until: float = 0.0
    bare_until: float = 0.0
    probe_again: float = 0.0
    bypass_until: float = 0.0
    writes: int = 0
    table: str = ""
    table_until: float = 0.0
    lacks_until: float = 0.0
    pipeline: Mapping[str, Any] | None = None
    pipeline_until: float = 0.0


_NOTHING = Facts()


def _bytes_of(table: FrequencyTable) -> int:
    return _OVERHEAD + _PER_VALUE * len(table.values)


class Learned(ForkSafe):
    """Learned facts by the hash of what they are about, and which messages were logged.

    Bounded, least recently used first out. Thread-safe.
    """

    def _begin(self) -> None:
        self._facts: LRUCache[bytes, Facts] = LRUCache(_MOST)
        self._tables: LRUCache[str, FrequencyTable] = LRUCache(_BYTES, getsizeof=_bytes_of)
        self._said: LRUCache[bytes, None] = LRUCache(_SENTENCES)
        self.writes = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Learned, ()  # a copy, or one sent to another process, starts empty

    def written(self) -> None:
        """Note a write through the client: it may have brought the first sketches."""
        with self._lock:
            self.writes += 1

    def about(self, key: bytes) -> Facts:
        """Return the facts under a hash of what they are about; the defaults if none are known."""
        with self._lock:
            found = self._facts.get(key, _NOTHING)
            if found.bypass_until and found.writes != self.writes:
                found = replace(found, bypass_until=0.0)
            return found

    def learn(self, key: bytes, **changes: Any) -> None:
        """Change some of these facts."""
        with self._lock:
            self._facts[key] = replace(self._facts.get(key, _NOTHING), **changes)

    def saw_sketch(self, target: bytes, now: float) -> None:
        """Remember for an hour that a target has sketches."""
        known, until = self.about(target), now + _RELIED_ON
        if known.bare_until or known.sketched_until < until - _RELIED_ON / 2:
            self.learn(target, sketched_until=until, bare_until=0.0)

    def table(self, digest: str) -> FrequencyTable | None:
        """Return a table that a caller has read, None if it is no longer held."""
        with self._lock:
            return self._tables.get(digest)

    def add_table(self, table: FrequencyTable | None) -> str:
        """Keep a table for the callers who have read it. Returns its digest, "" for no table."""
        if table is None:
            return ""
        with self._lock, suppress(ValueError):  # of one that is larger than all that may be held
            self._tables[table.digest] = table
        return table.digest

    def says_first(self, *what: str) -> bool:
        """Return whether a message was not logged before, and remember it."""
        key = cache_key(*what)
        with self._lock:
            known = key in self._said
            self._said[key] = None
        return not known
