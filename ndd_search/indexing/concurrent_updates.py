"""Changes the documents of a live index in place, and never overwrites concurrent writes of others.

Every update names the sequence number of the document that it was made from. If the document has changed since, the
engine refuses the update, and the next pass processes the document again. Each pass queries the index for the remaining
documents, so a job that was killed can be run again to continue.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

from ndd_search.core.exact_numbers import holds_written, json_with_written
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.rate_and_retries import BUSY, Retry, Stopped, is_blocked, status_of
from ndd_search.indexing.scan import ODD, Hits, Snapshot, snapshot, with_json

EXAMPLES = 5  # ids of documents that are named for each reason
# An engine that updates a document writes the doubles that it has parsed: 3.14159265358979323846 loses its last digits,
# and 1e400 becomes the text "Infinity". Integers of any length are kept.
_INEXACT = "a number has more digits than the engine keeps in an update"
_PAGE_SECONDS = 1.0  # with a rate, a page of all threads together, to avoid bursts
_PAUSE = 0.5  # seconds before a check for documents that others changed
_TRACKED = 100_000  # documents that were not written
_COUNTS = ("seen", "written", "noops", "conflicts", "gone")
ROUNDS = 10  # of checks for documents that others changed during a job, each for those since the round before


Key = tuple[str, str, str | None]  # the index, the id and the routing value of a document
Line = tuple[Key, dict[str, Any], dict[str, Any]]  # of a bulk


class _Busy(Exception):
    """The server was too busy for some updates of a bulk."""

    status_code = BUSY[0]


class Job(Protocol):
    """Selects documents, and makes the update of each."""

    @property
    def search(self) -> Mapping[str, Any]:
        """The search for the documents and what is needed of them: query, _source, docvalue_fields."""

    def changes(self, hits: Hits) -> Sequence[Mapping[str, Any] | str | None]:
        """For each hit the body of an update, None if it needs no change, or the reason why it must not be changed."""


class Undone(NamedTuple):
    """Why a document was not written: by the engine, which refused it, or because it must not be changed."""

    reason: str
    refused: bool


_CHANGING = Undone("others changed it each time it was read", refused=True)


@dataclass
class Tally:
    """Counts of documents by result.

    seen:      read; a document read in two passes counts twice.
    written:   updated. Of these, `noops` had the same content already.
    conflicts: changed by somebody else after they were read, so left to the next pass.
    gone:      deleted after they were read.
    undone:    documents that were not written, the first 100,000. A later pass that meets one of them decides anew.
    """

    seen: int = 0
    written: int = 0
    noops: int = 0
    conflicts: int = 0
    gone: int = 0
    undone: dict[Key, Undone] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """Documents that are not as before."""
        return self.written - self.noops

    @property
    def refused(self) -> Counter[str]:
        """How many the engine refused, by its reason."""
        return Counter(why.reason for why in self.undone.values() if why.refused)

    @property
    def left(self) -> dict[str, list[str]]:
        """The ids of those that were not changed, because the update would have changed more; by reason."""
        found: dict[str, list[str]] = {}
        for (_, id, _), (reason, refused) in self.undone.items():
            if not refused:
                found.setdefault(reason, []).append(id)
        return found

    def facts(self) -> dict[str, Any]:
        """Return the counts, for JSON."""
        left = {reason: {"count": len(ids), "examples": ids[:EXAMPLES]} for reason, ids in self.left.items()}
        return {**{name: getattr(self, name) for name in _COUNTS}, "refused": dict(self.refused), "left": left}

    def add(self, other: Tally, met: Iterable[Key] = ()) -> None:
        """Add the counts of another one. met: the documents that it has decided about."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for key in met if self.undone else ():
            self.undone.pop(key, None)
        self.undone.update(islice(other.undone.items(), _TRACKED - len(self.undone)))


@dataclass(frozen=True, kw_only=True)
class Position:
    """used: the sum of the last sequence numbers of all shards. done: up to this number all writes are visible."""

    used: int
    done: int


class Rewriter:
    """Runs jobs on one index.

    size:        most documents per page; with a rate, a page holds those of one second. slices: number of threads.
    on_progress: called with the number of documents of each page, repeated ones included; from any of the threads, but
                 never from two at once.
    """

    def __init__(
        self,
        client: Any,
        index: str,
        *,
        size: int,
        slices: int,
        retry: Retry,
        on_progress: Callable[[int], None],
    ) -> None:
        at_rate = retry.rate * _PAGE_SECONDS / slices if retry.rate else size
        self.client, self.index, self.slices = client, index, slices
        self.size = max(int(min(size, at_rate)), 1)
        self.retry, self._on_progress = retry, on_progress
        self._lock = threading.Lock()
        self._reader = with_json(client, json_with_written)
        self._total = Tally()

    def follow(self, job: Job, again: Job | None = None) -> Tally:
        """Run a pass of a job, then passes over the documents that others have written since, until nobody has.

        again: the job of the later passes, which may meet any document; None for the same.
        The job is run again if documents were refused, as long as that writes some. A document that others change all
        the time may be left as it is; it is counted in `refused`.
        """
        total = self._total = Tally()
        since, tally, tries_again = self.position(), self.once(job), True
        for _ in range(ROUNDS):
            now = self.position()
            is_over = since is not None and now is not None and now.used - since.used <= tally.changed
            if is_over and not (total.refused and tries_again):
                break  # nobody else has written
            self.retry.pause(_PAUSE)
            total.undone = {} if not since else {key: why for key, why in total.undone.items() if why != _CHANGING}
            tally = self.once(job) if is_over else self.once(again or job, since)
            tries_again = tally.written > 0 if is_over else tries_again
            if not (now or tally.written or tally.conflicts):
                break
            since = now
        return total

    def position(self) -> Position | None:
        """How far the sequence numbers of the index are, None if the server does not return it."""
        try:
            stats = self.client.indices.stats(index=self.index, level="shards")
        except Exception as error:
            if status_of(error) in (403, 404, 405):
                return None
            raise
        shards = [copies for index in stats["indices"].values() for copies in index["shards"].values()]
        numbers = [copy["seq_no"] for copies in shards for copy in copies if copy["routing"]["primary"]]
        return Position(
            used=sum(one["max_seq_no"] for one in numbers), done=min(one["local_checkpoint"] for one in numbers)
        )

    def once(self, job: Job, since: Position | None = None) -> Tally:
        """Run one pass over a snapshot of the index. since: only over documents written after this position."""
        search = {**job.search, "seq_no_primary_term": True}
        if since:
            search["query"] = {"bool": {"filter": [search["query"], {"range": {"_seq_no": {"gt": since.done}}}]}}
        self.client.indices.refresh(index=self.index)
        total = Tally()
        with snapshot(self._reader, self.index, self.retry) as now, ThreadPoolExecutor(self.slices) as pool:
            parts = [pool.submit(self._part, now, job, search, (i, self.slices), total) for i in range(self.slices)]
            try:
                done, _ = wait(parts, return_when=FIRST_EXCEPTION)
            except BaseException:  # Ctrl-C interrupts only this thread
                self.retry.stop()
                raise
            if any(part.exception() for part in done):
                self.retry.stop()
            wait(parts)
        errors = [error for part in parts if (error := part.exception())]
        for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
            raise error
        return total

    def _part(self, now: Snapshot, job: Job, search: Mapping[str, Any], part: tuple[int, int], total: Tally) -> None:
        pages = now.pages(search, self.size, part)
        while True:
            self.retry.admit(self.size)  # before a page is read: others change what waits to be written
            if (hits := next(pages, None)) is None:
                return
            tally = self._write(hits, job.changes(hits))
            with self._lock:
                total.add(tally)
                self._total.add(tally, met=map(_key, hits))
                self._on_progress(len(hits))

    def _write(self, hits: Hits, changes: Sequence[Mapping[str, Any] | str | None]) -> Tally:
        """Write one page. Returns its counts."""
        tally, waiting = Tally(seen=len(hits)), list[Line]()
        for hit, change in zip(hits, changes, strict=True):
            reason = hit.get(ODD) or (change if isinstance(change, str) else "")
            if isinstance(change, Mapping) and not reason and holds_written(hit.get("_source")):
                reason = _INEXACT
            if isinstance(change, Mapping) and not reason:
                waiting.append((_key(hit), _update(hit), dict(change)))
            elif reason:
                tally.undone[_key(hit)] = Undone(reason, refused=False)
        with suppress(_Busy):
            self.retry.call(partial(self._send, waiting, tally))
        for key, _, _ in waiting:
            tally.undone[key] = Undone("the server was too busy for minutes", refused=True)
        return tally

    def _send(self, waiting: list[Line], tally: Tally) -> None:
        """Send updates, and remove them from a list. Raises _Busy if the server was too busy for some, which stay."""
        if not waiting:
            return
        if not self.client.indices.exists(index=self.index):  # the engine would make it anew, empty
            raise IndexUnusable(self.index, "somebody has deleted it meanwhile", "nothing is left to do")
        response = self.client.bulk(body=[line for _, *lines in waiting for line in lines])
        busy = []
        for line, item in zip(waiting, response["items"], strict=True):
            (result,) = item.values()
            status = result["status"]
            if status in (401, 403) or is_blocked(result.get("error")):
                remedy = "remove the block, or give this user the right to write; then run the same command again"
                raise IndexUnusable(self.index, f"the server refuses to write: {_reason(result)}", remedy)
            if status in BUSY:
                busy.append(line)
            elif status == 409:
                tally.conflicts += 1
                tally.undone[line[0]] = _CHANGING
            elif status == 404:
                tally.gone += 1
            elif status >= 400:
                tally.undone[line[0]] = Undone(_reason(result), refused=True)
            else:
                tally.written += 1
                tally.noops += result.get("result") == "noop"
        waiting[:] = busy
        if busy:
            raise _Busy


def _key(hit: Mapping[str, Any]) -> Key:
    return hit["_index"], hit["_id"], hit.get("_routing")


def _update(hit: Mapping[str, Any]) -> dict[str, Any]:
    """The action line: concrete index, id, routing, and the sequence number that the document must still have."""
    where = {"_index": hit["_index"], "_id": hit["_id"]}
    if "_routing" in hit:
        where["routing"] = hit["_routing"]
    return {"update": {**where, "if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}}


def _reason(result: Mapping[str, Any]) -> str:
    error = result.get("error", {})
    causes = [cause["reason"] for cause in _causes(error) if cause.get("reason")]
    return f"{error.get('type', 'error')}: {causes[-1] if causes else result['status']}"[:300]


def _causes(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    cause: Any = error
    while isinstance(cause, Mapping):
        yield cause
        cause = cause.get("caused_by")
