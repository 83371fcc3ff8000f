"""Change the documents of a live index where they are, and never overwrite what somebody else has written meanwhile.

Every change names the sequence number of the document it was made from; the engine refuses it when the document has
changed since. Such documents are met again in the next pass. What there is to do is asked of the index itself, so a job
that was killed goes on where it was.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from ndd_search.errors import IndexUnusable
from ndd_search.indexing.exact import INEXACT, exact_reader
from ndd_search.indexing.retry import BUSY, Retry, Stopped, waits
from ndd_search.indexing.scan import Hits, Snapshot, snapshot

_EXAMPLES = 5  # ids of documents that were left alone, for each reason
_INEXACT = "a number has more digits than the engine keeps in an update"

_MOST_PASSES = 50  # over one index; each is smaller than the one before unless others write faster than we do


class Job(Protocol):
    """What is to be done with documents."""

    @property
    def search(self) -> Mapping[str, Any]:
        """The documents to look at, and what of them is needed: query, _source, docvalue_fields."""

    def changes(self, hits: Hits) -> Sequence[Mapping[str, Any] | str | None]:
        """For each hit the body of an update, None for one that is right as it is, or why it must be left alone."""


@dataclass
class LeftAlone:
    """Documents that were not changed for one reason. examples: ids of the first of them."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, other: LeftAlone) -> None:
        """Add another one to this."""
        self.count += other.count
        self.examples = (self.examples + other.examples)[:_EXAMPLES]


@dataclass
class Tally:
    """What became of the documents.

    seen:      looked at, one seen in two passes counted twice.
    written:   changed. Of these `noops` were the same already.
    conflicts: changed by somebody else meanwhile, so left to the next pass. gone: deleted meanwhile.
    refused:   documents the engine would not take, by its reason.
    left:      documents that we did not change, because that would have changed more than the sketch; by reason.
    """

    seen: int = 0
    written: int = 0
    noops: int = 0
    conflicts: int = 0
    gone: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    left: dict[str, LeftAlone] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add another one to this."""
        self.seen += other.seen
        self.written += other.written
        self.noops += other.noops
        self.conflicts += other.conflicts
        self.gone += other.gone
        self.refused += other.refused
        for reason, those in other.left.items():
            self.left.setdefault(reason, LeftAlone()).add(those)

    def repeat(self, other: Tally) -> None:
        """Add a later look at the same documents, in which those that cannot be changed are met again."""
        self.refused.clear()
        self.left.clear()
        self.add(other)


class Rewriter:
    """Carries out jobs on one index.

    size: documents in a page. slices: how many threads work side by side. on_progress: called with a number of
    documents looked at for the first time or again, from any of the threads, one at a time.
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
        self.client, self.index, self.size, self.slices = client, index, size, slices
        self.retry, self._on_progress = retry, on_progress
        self._lock = threading.Lock()
        self._reader = exact_reader(client)

    def repeat(self, job: Job) -> Tally:
        """Passes until one finds nothing it could change."""
        total = Tally()
        for _ in range(_MOST_PASSES):
            tally = self.once(job)
            total.repeat(tally)
            if not tally.written and not tally.conflicts:
                break
            if not tally.written:
                self.retry.pause(0.5)  # somebody is busy with the same documents
        return total

    def once(self, job: Job) -> Tally:
        """One pass over the index as it is now."""
        self.client.indices.refresh(index=self.index)
        total = Tally()
        with snapshot(self._reader, self.index, self.retry) as now, ThreadPoolExecutor(self.slices) as pool:
            parts = [pool.submit(self._part, now, job, (i, self.slices), total) for i in range(self.slices)]
            try:
                done, _ = wait(parts, return_when=FIRST_EXCEPTION)
            except BaseException:  # Ctrl-C comes to this thread alone
                self.retry.stop()
                raise
            if any(part.exception() for part in done):
                self.retry.stop()
            wait(parts)
        errors = [error for part in parts if (error := part.exception())]
        for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
            raise error
        return total

    def _part(self, now: Snapshot, job: Job, part: tuple[int, int], total: Tally) -> None:
        for hits in now.pages({**job.search, "seq_no_primary_term": True}, self.size, part):
            self.retry.admit(len(hits))
            tally = self._write(hits, job.changes(hits))
            with self._lock:
                total.add(tally)
                self._on_progress(len(hits))

    def _write(self, hits: Hits, changes: Sequence[Mapping[str, Any] | str | None]) -> Tally:
        tally, waiting = Tally(seen=len(hits)), []
        for hit, change in zip(hits, changes, strict=True):
            if isinstance(change, Mapping) and INEXACT not in hit:
                waiting.append((_update(hit), dict(change)))
            elif change is not None:
                reason = change if isinstance(change, str) else _INEXACT
                tally.left.setdefault(reason, LeftAlone()).add(LeftAlone(1, [hit["_id"]]))
        for pause in [*waits(), None]:
            waiting = self._send(waiting, tally)
            if not waiting:
                return tally
            if pause is not None:
                self.retry.pause(pause)
        tally.refused["the server was too busy for minutes"] += len(waiting)
        return tally

    def _send(self, waiting: list[Line], tally: Tally) -> list[Line]:
        """Send some updates; returns those for which the server had no room."""
        if not waiting:
            return []
        body = [line for pair in waiting for line in pair]
        response = self.retry.call(lambda: self.client.bulk(body=body))
        busy = []
        for pair, item in zip(waiting, response["items"], strict=True):
            result = item["update"]
            status = result["status"]
            if status in BUSY:
                busy.append(pair)
            elif status == 409:
                tally.conflicts += 1
            elif status == 404:
                tally.gone += 1
            elif status in (401, 403):
                remedy = "remove the block, or give this user the right to write; then run the same again"
                raise IndexUnusable(self.index, f"the server refuses to write: {_reason(result)}", remedy)
            elif status >= 400:
                tally.refused[_reason(result)] += 1
            else:
                tally.written += 1
                tally.noops += result.get("result") == "noop"
        return busy


Line = tuple[dict[str, Any], dict[str, Any]]


def _update(hit: Mapping[str, Any]) -> dict[str, Any]:
    """The line that says which document is meant, and as of when: the concrete index, the id, the routing."""
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
