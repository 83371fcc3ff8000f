"""The optional policy of with_sketches for documents that resemble an earlier one.

A document may be skipped only if its text stays in the index under another id. So an earlier document counts as an
original only after these checks:

 - A document found by a search counts while the run has not written its id, and if a real-time read finds the version
   that the search returned.
 - A document of this run counts while the helper may still hold it (CHUNK actions). After that a real-time read must
   find it with its sketch.

A copy is skipped only if its id is new: neither written in this run nor present in the index. If the original is
deleted, gets another text, or turns out not to be stored later in the run, a skipped copy is passed on after all.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.indexing.run_memory import Copies, LookUp, Original, Recent, Write, Written
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.writing.add_sketches import Sketcher

logger = logging.getLogger("ndd_search")

CHUNK = 500  # actions that the helpers of both clients collect before sending
_TRACKED = 100_000  # ids of the last writes that are remembered


@dataclass(frozen=True)
class FoundDuplicate:
    """A new document that resembles an earlier one.

    id, of: the ids of the new and the earlier document, None if the engine has not generated the id yet.
    """

    id: str | None
    of: str | None
    similarity: float


@dataclass(frozen=True)
class DuplicatePolicy:
    """What to do with a document that resembles one of the index or of this run.

    action:         "report" counts it. "skip" does not index it, if its id is new.
    client:         for searches of the index; asynchronous with an async helper.
    index:          the index to search; by default the one that each action names.
    min_similarity: the least similarity of a duplicate, as in CollapseOptions.
    remembered:     how many of the last documents are kept in memory (about 1 kB each), at least 0: a search does not
                    find what was sent since the last refresh. The same number of copies is kept, as whole documents.
    on_duplicate:   called with each duplicate.
    If a search or a read fails, the document is stored as if no duplicate had been found.
    """

    action: Literal["report", "skip"]
    client: Any
    index: str | None = None
    min_similarity: float | str = 0.8
    remembered: int = 20_000
    on_duplicate: Callable[[FoundDuplicate], None] | None = None

    def __post_init__(self) -> None:
        if self.action not in ("report", "skip"):
            raise ValueError(f'action must be "report" or "skip", got {self.action!r}')
        if self.remembered < 0:
            raise ValueError(f"remembered must be at least 0, got {self.remembered}")


@dataclass(frozen=True)
class Question:
    """A request to the index: a method of the client, and the body."""

    method: Literal["msearch", "mget"]
    body: Any


@dataclass(frozen=True)
class _Found:
    """A document found by a search. version: its sequence number and primary term in the search response."""

    original: Original
    similarity: float
    version: tuple[Any, Any]


Questions = Generator[Question, Any, None]


class DuplicateFilter:
    """Decides on the actions of one run, without I/O. ready: the actions to pass on, in order."""

    def __init__(self, policy: DuplicatePolicy, sketcher: Sketcher) -> None:
        self.ready: deque[Any] = deque()
        self._policy, self._field, self._report = policy, sketcher.first, sketcher.report
        self._search = CandidateSearch(
            recipe=sketcher.recipe,
            field=sketcher.first,
            keys=sketcher.keys,
            min_similarity=policy.min_similarity,
            examined=20,
        )
        self._recent, self._copies = Recent(self._search, policy.remembered), Copies(policy.remembered)
        self._written = Written(_TRACKED)
        self._upserted = Written(_TRACKED)  # by updates that change no text, so an original stays one
        self._unconfirmed: deque[Original] = deque()  # originals of copies that may not be stored
        self._handed_on = 0
        self._failed = False
        self._ended = False  # whether no write that is passed on is followed by a look whether it was stored

    def decide(self, writes: Sequence[Write]) -> Questions:
        """Decide on some actions, and on copies whose original disappears with them."""
        asked = [write for write in writes if len(write.sketch)]
        found: dict[Write, list[_Found]] = {}
        if asked:
            answer = yield Question("msearch", self._searches(asked))
            hits = self._hits(answer, len(asked))
            found = {write: self._candidates(write, each) for write, each in zip(asked, hits, strict=True)}
        lookup = LookUp()
        recent = [known for write in asked for known in self._ask_about(write, found[write], lookup, len(asked) == 1)]
        yield from self._confirm(recent, lookup)
        for write in writes:
            if (copy := self._copies.of_id(write.id)) is not None:  # a later action may need it, or may be refused
                self._copies.forget(copy)
                self._hand_on_after_all(copy)
            stored = [one for one in found.get(write, ()) if self._is_unchanged(one, lookup)]
            self._take(write, stored, self._is_new(write, lookup))

    def finish(self) -> Questions:
        """After the last action: pass on the copies whose originals should be stored by now, and are not."""
        yield from self._confirm([], LookUp())

    def finish_sent(self) -> Questions:
        """After the helper has sent all actions: pass on each copy whose original is not stored, or not found."""
        self._handed_on += CHUNK
        self._ended = True
        yield from self._confirm([], LookUp())
        if unsure := self._copies.of_unnamed():  # the id of their original is unknown, so they are searched for again
            answer = yield Question("msearch", self._searches(unsure))
            for write, hits in zip(unsure, self._hits(answer, len(unsure)), strict=True):
                if not self._candidates(write, hits):
                    self._copies.forget(write)
                    self._hand_on_after_all(write)

    def _searches(self, asked: Sequence[Write]) -> list[dict[str, Any]]:
        """The body of a multi search with one search for each document."""
        lines: list[dict[str, Any]] = []
        for write in asked:
            body = self._search.body(write.sketch)
            lines += [{"index": self._where(write), "ignore_unavailable": True}, {**body, "seq_no_primary_term": True}]
        return lines

    def _hits(self, answer: Any, count: int) -> list[list[dict[str, Any]]]:
        """The hits of each search, none if it failed."""
        responses = _parts(answer, "responses", count)
        if responses is None:
            self._fail(answer)
            return [[]] * count
        read = [Answer(response) for response in responses]
        usable = [one.has_hits and all("_id" in hit for hit in one.hits) for one in read]
        for response, is_usable in zip(responses, usable, strict=True):
            if not is_usable:
                self._fail(response.get("error", response))
        return [one.hits if is_usable else [] for one, is_usable in zip(read, usable, strict=True)]

    def _fail(self, reason: Any) -> None:
        if not self._failed:
            self._failed = True
            logger.warning("the search for duplicates failed (%.300s): documents are stored as new", reason)

    def _candidates(self, write: Write, hits: list[dict[str, Any]]) -> list[_Found]:
        """The hits of a search that resemble the document and have another id."""
        by_name = {(hit["_id"], hit["_index"]): hit for hit in hits}
        found = []
        for one in self._search.verified(write.sketch, hits):
            hit = by_name[one.id, one.index]
            original = Original(one.id, self._where(write), one.index, hit.get("_routing"), write.sketch)
            found.append(_Found(original, one.similarity, (hit.get("_seq_no"), hit.get("_primary_term"))))
        return [one for one in found if one.original.id != write.id]

    def _ask_about(self, write: Write, found: Sequence[_Found], lookup: LookUp, alone: bool) -> list[Original]:
        """Add to a multi-get what decides whether a document is a copy; returns similar documents of this run."""
        for one in found:
            assert one.original.id is not None
            lookup.add(one.original.index, one.original.id, one.original.routing)
        recent = [known for _, known in self._recent.resembling(write.sketch, self._where(write), write.id)]
        may_replace = self._policy.action == "skip" and write.action.kind == "index"
        if may_replace and (found or recent or not alone) and write.id is not None:
            lookup.add(self._index(write), write.id, write.routing)
        return recent

    def _confirm(self, recent: Sequence[Original], lookup: LookUp) -> Questions:
        """Run the multi-get, with the originals that should be stored by now."""
        originals = []
        while self._unconfirmed and self._was_sent(self._unconfirmed[0]):
            original = self._unconfirmed.popleft()
            if self._copies.original(original.id) is original:
                originals.append(original)
        known = (*recent, *originals)
        unconfirmed = [original for original in known if original.id is not None and self._should_be_stored(original)]
        for original in unconfirmed:
            lookup.add(original.index, original.id or "", original.routing, source=SketchField(self._field).values)
        if not lookup.lines:
            return
        answer: Any = yield Question("mget", {"docs": lookup.lines})
        if (documents := _parts(answer, "docs", len(lookup.lines))) is None:
            self._fail(answer)
        else:
            lookup.answered(documents)
        for original in unconfirmed:
            original.confirmed = lookup.has_sketch(original, self._field)
        for original in unconfirmed:
            if not original.confirmed and original.id is not None:
                self._recent.forget(original.id)
                self._release(original.id)

    def _should_be_stored(self, known: Original) -> bool:
        """Whether the helper has sent a document by now, and no read has confirmed that it is stored."""
        return not known.confirmed and known.handed_on is not None and self._was_sent(known)

    def _may_stay(self, known: Original) -> bool:
        """Whether a document of this run is stored, or can still be stored and looked for later."""
        return known.confirmed or not (self._ended or self._was_sent(known))

    def _was_sent(self, known: Original) -> bool:
        return known.handed_on is None or self._handed_on - known.handed_on >= CHUNK

    def _is_unchanged(self, found: _Found, lookup: LookUp) -> bool:
        return lookup.version(found.original.index, found.original.id or "") == found.version

    def _is_new(self, write: Write, lookup: LookUp) -> bool:
        """Whether no document has its id.

        A deletion by this run does not count before a read finds it done: it may have been of another index.
        """
        if write.id is None:
            return True
        is_there = self._written.is_there(write.id) or self._upserted.is_there(write.id)
        return not is_there and lookup.is_absent(self._index(write), write.id)

    def _take(self, write: Write, found: Sequence[_Found], new: bool) -> None:
        """Decide on one action. new: whether no document has its id."""
        skips = self._policy.action == "skip"
        original, similarity = self._original(write, found) if len(write.sketch) else (None, 0.0)
        replaces = not new and write.action.kind != "create"  # the engine refuses to create an existing id
        if original is None or (skips and (replaces or self._copies.original(write.id) is not None)):
            self._hand_on(write)
            return
        self._report.duplicates += 1
        if self._policy.on_duplicate:
            self._policy.on_duplicate(FoundDuplicate(write.id, original.id, similarity))
        if skips:
            self._report.skipped += 1
            self._keep(write, original)
        else:
            self._hand_on(write, leads=False)

    def _keep(self, write: Write, original: Original) -> None:
        """Keep a copy while its original may still disappear, or its own id may be written."""
        unsure = original.id is not None and original.handed_on is not None and not original.confirmed
        if unsure and self._copies.original(original.id) is None:
            self._unconfirmed.append(original)
        self._copies.keep(write, original)

    def _original(self, write: Write, found: Sequence[_Found]) -> tuple[Original | None, float]:
        """The original of a document, and their similarity; None and 0.0 without one."""
        there = [(one.similarity, one.original) for one in found if one.original.id not in self._written]
        seen = self._recent.resembling(write.sketch, self._where(write), write.id)
        there += [(similarity, known) for similarity, known in seen if self._may_stay(known)]
        similarity, original = max(there, key=lambda one: one[0], default=(0.0, None))
        return original, similarity

    def _hand_on(self, write: Write, leads: bool = True) -> None:
        """Append an action to `ready`, and update what is remembered of the document that it writes.

        leads: whether later documents may become copies of it.
        """
        self.ready.append(write.action.content)
        self._handed_on += 1
        if not write.changes_text:
            if write.id is not None and write.action.upserts:
                self._upserted.note(write.id, True)
            return
        if write.id is not None:
            self._written.note(write.id, write.action.kind != "delete")
            self._recent.forget(write.id)
        if leads and len(write.sketch):
            where, index = self._where(write), self._index(write)
            self._recent.add(Original(write.id, where, index, write.routing, write.sketch, self._handed_on))
        if write.id is not None:
            self._release(write.id)

    def _release(self, id: str) -> None:
        """Decide again on the copies of a document that was rewritten or is not stored; those that resemble it stay."""
        for write in self._copies.take(id):
            original, _ = self._original(write, ())
            if original is not None and original.id == id:
                self._keep(write, original)
                continue
            self._uncount()
            self._take(write, (), new=True)

    def _hand_on_after_all(self, copy: Write) -> None:
        """Pass on a copy that was skipped."""
        self._uncount()
        self._hand_on(copy)

    def _uncount(self) -> None:
        self._report.duplicates -= 1
        self._report.skipped -= 1

    def _where(self, write: Write) -> str:
        """The index or pattern that is searched for originals of a document."""
        index = self._policy.index or write.action.content.get("_index")
        if index is None:
            raise ValueError("an action names no _index: name the index to search in DuplicatePolicy(index=...)")
        return str(index)

    def _index(self, write: Write) -> str:
        """The index that a document is written to."""
        return str(write.action.content.get("_index") or self._where(write))


def _parts(answer: Any, name: str, count: int) -> list[dict[str, Any]] | None:
    """Return the list of `count` objects in an answer, None for an error or an answer in another shape."""
    body = getattr(answer, "body", answer)
    parts = body.get(name) if isinstance(body, dict) else None
    if not isinstance(parts, list) or len(parts) != count or not all(isinstance(one, dict) for one in parts):
        return None
    return parts
