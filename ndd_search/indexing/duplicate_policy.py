"""The optional policy of with_sketches for documents that resemble an earlier one.

A copy is held back, not thrown away: an action on its original, or on its own id, may follow, and the engine may refuse
its original. At the end of the run the originals are read in real time. A copy whose original is not there, or is
another text by then, is passed on after all.

 - Only a new id is held back: no earlier action of the run wrote it, and a real-time read does not find it.
 - Before an action on the id of a copy, the copy is passed on; after one that changes an original, its copies are.
 - An original among the last CHUNK actions may not have been sent yet: its copies wait for `finish_sent`.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from itertools import islice
from typing import Any, Literal

from cachetools import LRUCache

from ndd_search.core.options import KINDS
from ndd_search.core.setting_values import check_one_of, check_whole
from ndd_search.core.sketching.sketches import Sketch
from ndd_search.core.sketching.stored_sketch import SketchField, sketch_in
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.indexing.run_memory import NONE, Original, Recent, Write
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.writing.sketch_or_mark_stale import Sketcher

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
                    find what was sent since the last refresh. The same number of copies is held back, as whole
                    documents; the originals of older ones are looked at before the end of the run.
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
        check_one_of("action", self.action, ("report", "skip"))
        KINDS["min_similarity"].check("min_similarity", self.min_similarity)
        check_whole("remembered", self.remembered, 0)


Question = tuple[Literal["msearch", "mget"], Any]  # a method of the client, and the body of the request
Questions = Generator[Question, Any, None]
Found = list[tuple[float, Original]]  # what a search found, with its similarity
_Read = Mapping[tuple[str, str], Mapping[str, Any]]  # answers of a multi-get by index and id


class DuplicateFilter:
    """Decides on the actions of one run, without I/O. ready: the actions to pass on, in order."""

    def __init__(self, policy: DuplicatePolicy, sketcher: Sketcher) -> None:
        self.ready: deque[Any] = deque()
        self._policy, self._field, self._report = policy, SketchField(sketcher.first), sketcher.report
        self._search = CandidateSearch(
            recipe=sketcher.recipe,
            field=sketcher.first,
            keys=sketcher.keys,
            min_similarity=policy.min_similarity,
            examined=20,
        )
        self._recent = Recent(self._search, policy.remembered)
        self._copies: dict[Write, Original] = {}  # those that are held back, each with its original; the oldest first
        self._copy_with_id: dict[str, Write] = {}
        self._copies_of: defaultdict[str | None, dict[Write, None]] = defaultdict(dict)
        # By ids without their index, which writes may name by an alias: the number of actions passed on up to the last
        # write, and whether that was no deletion.
        self._written: LRUCache[str, tuple[int, bool]] = LRUCache(_TRACKED)
        self._upserted: LRUCache[str, bool] = LRUCache(_TRACKED)  # by updates that leave the text of a document
        self._handed_on = 0
        self._failed = False

    def decide(self, writes: Sequence[Write]) -> Questions:
        """Decide on some actions."""
        asked = [write for write in writes if len(write.sketch)]
        found = yield from self._similar(asked)
        there = yield from self._read(
            {
                (self._index(write), write.id): write.routing
                for write in asked
                if self._policy.action == "skip" and write.action.kind == "index" and write.id is not None
                if len(asked) > 1 or self._original(write, found[write])[0]
            }
        )
        for write in writes:
            if copy := self._copy_with_id.get(write.id or ""):  # this action may need it
                self._pass_on_after_all(copy)
            self._take(write, found.get(write, []), there)
        while (more := len(self._copies) - self._policy.remembered) > 0:
            yield from self._settle(list(islice(self._copies, min(more, CHUNK))))

    def finish(self) -> Questions:
        """After the last action: settle the copies whose originals the helper has sent by now."""
        yield from self._settle_all()

    def finish_sent(self) -> Questions:
        """After the helper has sent all actions: settle all copies."""
        self._handed_on += CHUNK
        yield from self._settle_all()
        unsure = list(self._copies)  # the id of their original is unknown, so they are searched for again
        found = yield from self._similar(unsure)
        for write in unsure:
            if write in self._copies:  # passing on another one may have passed it on
                self._forget(write) if found[write] else self._pass_on_after_all(write)

    def _settle_all(self) -> Questions:
        """Settle the copies whose originals can be read: by their id, after the last action on them was sent."""
        copies = [write for write, original in self._copies.items() if self._can_be_read(original)]
        for start in range(0, len(copies), CHUNK):
            yield from self._settle(copies[start : start + CHUNK])

    def _settle(self, copies: Sequence[Write]) -> Questions:
        """Read the originals of some copies. A copy that does not resemble what is there is passed on after all."""
        known = {write: self._copies[write] for write in copies}
        stored = yield from self._read(
            {(one.index, one.id or ""): one.routing for one in known.values() if self._can_be_read(one)}
        )
        for write, original in known.items():
            if write not in self._copies:  # passing on another one has passed it on
                continue
            answer = stored.get((original.index, original.id or ""), {})
            source = answer.get("_source") if answer.get("found") is True else None
            values = source.get(self._field.name) if isinstance(source, Mapping) else None
            sketch = sketch_in(values, self._search.recipe.k) if isinstance(values, Mapping) else None
            if sketch is not None and self._resembles(write, sketch):
                self._forget(write)
            else:
                self._pass_on_after_all(write)

    def _similar(self, asked: Sequence[Write]) -> Generator[Question, Any, dict[Write, Found]]:
        """Search for the documents that resemble each of some others. What a failed search finds is nothing."""
        if not asked:
            return {}
        lines: list[dict[str, Any]] = []
        for write in asked:
            lines += [{"index": self._where(write), "ignore_unavailable": True}, self._search.body(write.sketch)]
        if not (responses := (yield from self._asked("msearch", lines, "responses", len(asked)))):
            return {write: [] for write in asked}
        return {write: self._verified(write, each) for write, each in zip(asked, responses, strict=True)}

    def _verified(self, write: Write, response: dict[str, Any]) -> Found:
        answer = Answer(response)
        if not answer.has_hits or not all("_id" in hit for hit in answer.hits):
            self._fail(response.get("error", response))
            return []
        routing = {(hit["_id"], hit["_index"]): hit.get("_routing") for hit in answer.hits}
        return [
            (one.similarity, Original(one.id, self._where(write), one.index, routing[one.id, one.index], NONE))
            for one in self._search.verified(write.sketch, answer.hits)
            if one.id != write.id
        ]

    def _read(self, wanted: Mapping[tuple[str, str], str | None]) -> Generator[Question, Any, _Read]:
        """Read documents in real time, with their sketches. wanted: their routing. What a failed read gives is {}."""
        if not wanted:
            return {}
        lines = [
            {"_index": index, "_id": id, "_source": [self._field.sketch], **({"routing": routing} if routing else {})}
            for (index, id), routing in wanted.items()
        ]
        documents = yield from self._asked("mget", {"docs": lines}, "docs", len(lines))
        return dict(zip(wanted, documents, strict=True)) if documents else {}

    def _asked(
        self, method: Literal["msearch", "mget"], body: Any, name: str, count: int
    ) -> Generator[Question, Any, list[dict[str, Any]]]:
        """Return the list of `count` objects under a name of an answer, [] for an error or another answer."""
        try:
            answer = yield method, body
        except Exception as error:
            answer = error
        if isawaitable(answer):
            raise TypeError("the client of `duplicates` is asynchronous: use an async helper, or another one")
        found = getattr(answer, "body", answer)
        parts = found.get(name) if isinstance(found, dict) else None
        if isinstance(parts, list) and len(parts) == count and all(isinstance(one, dict) for one in parts):
            return parts
        self._fail(answer)
        return []

    def _fail(self, reason: Any) -> None:
        if not self._failed:
            self._failed = True
            logger.warning("the search for duplicates failed (%.300s): documents are stored as new", reason)

    def _original(self, write: Write, found: Found) -> tuple[Original | None, float]:
        """The original of a document, and their similarity; None and 0.0 without one."""
        there = [one for one in found if one[1].id not in self._written]
        there += self._recent.resembling(write.sketch, self._where(write), write.id)
        similarity, original = max(there, key=lambda one: one[0], default=(0.0, None))
        return original, similarity

    def _take(self, write: Write, found: Found, there: _Read) -> None:
        """Decide on one action. there: what a real-time read found under the ids of some actions."""
        original, similarity = self._original(write, found) if len(write.sketch) else (None, 0.0)
        skips = self._policy.action == "skip"
        # The engine refuses to create an existing id.
        if original is None or (skips and write.action.kind != "create" and not self._is_new(write, there)):
            self._hand_on(write)
            return
        self._report.duplicates += 1
        if self._policy.on_duplicate:
            self._policy.on_duplicate(FoundDuplicate(write.id, original.id, similarity))
        if skips:
            self._report.skipped += 1
            self._copies[write] = original
            self._copies_of[original.id][write] = None
            if write.id is not None:
                self._copy_with_id[write.id] = write
        else:
            self._hand_on(write, leads=False)

    def _is_new(self, write: Write, there: _Read) -> bool:
        """Whether no document has its id.

        A deletion by this run does not count before a read finds it done: it may have been of another index.
        """
        if write.id is None:
            return True
        answer = there.get((self._index(write), write.id), {})
        error = answer.get("error")
        kind = error.get("type") if isinstance(error, Mapping) else None
        is_absent = answer.get("found") is False or kind == "index_not_found_exception"
        _, is_there = self._written.get(write.id, (0, False))
        return is_absent and not is_there and write.id not in self._upserted

    def _hand_on(self, write: Write, leads: bool = True) -> None:
        """Append an action to `ready`, and update what is remembered of the document that it writes.

        leads: whether later documents may become copies of it.
        """
        self.ready.append(write.action.content)
        self._handed_on += 1
        if not write.changes_text:
            if write.id is not None and write.action.upserts:
                self._upserted[write.id] = True
            return
        if write.id is not None:
            self._written[write.id] = self._handed_on, write.action.kind != "delete"
            self._recent.forget(write.id)
        if leads and len(write.sketch):
            where, index = self._where(write), self._index(write)
            self._recent.add(Original(write.id, where, index, write.routing, write.sketch))
        for copy in list(self._copies_of.get(write.id, ())) if write.id is not None else ():
            if copy in self._copies and not self._resembles(copy, write.sketch):
                self._pass_on_after_all(copy)

    def _pass_on_after_all(self, copy: Write) -> None:
        """Pass on a copy that was held back."""
        self._forget(copy)
        self._report.duplicates -= 1
        self._report.skipped -= 1
        self._hand_on(copy)

    def _forget(self, copy: Write) -> None:
        """Hold a copy back no longer."""
        original = self._copies.pop(copy).id
        del self._copies_of[original][copy]
        if not self._copies_of[original]:
            del self._copies_of[original]
        if copy.id is not None:
            del self._copy_with_id[copy.id]

    def _resembles(self, write: Write, sketch: Sketch) -> bool:
        return len(sketch) > 0 and bool(self._search.similarities(write.sketch, [sketch])[0])

    def _can_be_read(self, original: Original) -> bool:
        """Whether the last action on it has been sent, and its id is known."""
        last, _ = self._written.get(original.id or "", (-CHUNK, True))
        return original.id is not None and self._handed_on - last >= CHUNK

    def _where(self, write: Write) -> str:
        """The index or pattern that is searched for originals of a document."""
        index = self._policy.index or write.action.content.get("_index")
        if index is None:
            raise ValueError("an action names no _index: name the index to search in DuplicatePolicy(index=...)")
        return str(index)

    def _index(self, write: Write) -> str:
        """The index that a document is written to."""
        return str(write.action.content.get("_index") or self._where(write))
