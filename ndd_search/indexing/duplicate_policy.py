"""The optional policy of with_sketches for documents that resemble one of the index, or an earlier one of the run."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

import numpy as np
from cachetools import LRUCache

from ndd_search.core.options import KINDS
from ndd_search.core.setting_values import Whole, checked, setting
from ndd_search.core.sketching.sketches import Sketch
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.stored_keys import looked_up
from ndd_search.search.writing.sketch_or_mark_stale import Action, Sketcher

logger = logging.getLogger("ndd_search")

NONE: Sketch = np.empty(0, np.int32)
_TRACKED = 100_000  # ids of the last writes that are remembered


@dataclass(frozen=True)
class FoundDuplicate:
    """A document that resembles an earlier one.

    id, of: the ids of the document and the earlier one, None if the engine has not generated the id yet.
    action: as the helper would get it, with the sketch.
    """

    id: str | None
    of: str | None
    similarity: float
    action: Mapping[str, Any]


@checked
@dataclass(frozen=True, kw_only=True)
class DuplicatePolicy:
    """How documents that resemble one of the index or of this run are found, and who is told.

    client:         for searches of the index; asynchronous with an async helper.
    index:          the index to search; by default the one that each action names.
    min_similarity: the least similarity of a duplicate, as in CollapseOptions.
    remembered:     how many of the last documents are kept in memory (about 1 kB each), at least 0: a search does not
                    find what was sent since the last refresh.
    on_duplicate:   called with each duplicate, before it is passed on. If it returns False, the document is left out.
    If a search fails, its documents are stored as if no duplicate had been found.
    """

    client: Any
    index: str | None = None
    min_similarity: float | str = setting(KINDS["min_similarity"], 0.8)
    remembered: int = setting(Whole(0), 20_000)
    on_duplicate: Callable[[FoundDuplicate], bool | None] | None = None


@dataclass(frozen=True, eq=False)
class Write:
    """One action on its way to the index.

    sketch:       of the document that it stores as a whole; empty if there is none to compare.
    changes_text: whether it may change the text of a document.
    """

    action: Action
    sketch: Sketch
    changes_text: bool

    @property
    def id(self) -> str | None:
        """The id as the engine reads it: 5 and "5" are the same. None if the engine generates it."""
        content = self.action.content
        id = content.get("_id") if isinstance(content, Mapping) else None
        return None if id is None else str(id).lower() if isinstance(id, bool) else str(id)


@dataclass(frozen=True, eq=False)
class _Document:
    """A document of this run. where: the index or pattern that is searched for its duplicates."""

    id: str | None
    where: str
    sketch: Sketch


class _Recent:
    """The last documents that were passed on and are no copies, indexed by their keys and ids."""

    def __init__(self, search: CandidateSearch, most: int) -> None:
        self._search, self._most = search, most
        self._documents: dict[_Document, None] = {}
        self._by_key: dict[int, dict[_Document, None]] = {}
        self._by_id: dict[str, _Document] = {}

    def resembling(self, wanted: Sketch, where: str, but: str | None) -> list[tuple[float, str | None]]:
        """Return the similarity and id of those that resemble a sketch. but: an id to exclude."""
        keys = looked_up(wanted, self._search.keys, self._search.decision)
        shared_keys = Counter(document for equal in keys for key in equal for document in self._by_key.get(key, ()))
        needed = self._search.needed(len(keys))
        candidates = [
            document
            for document, shared in shared_keys.most_common()
            if shared >= needed and document.where == where and (document.id is None or document.id != but)
        ][: self._search.examined]
        similarity = self._search.similarities(wanted, [document.sketch for document in candidates])
        return [(float(similarity[i]), candidates[i].id) for i in np.flatnonzero(similarity).tolist()]

    def add(self, document: _Document) -> None:
        """Remember a document, and forget the oldest if there are too many."""
        self._documents[document] = None
        if document.id is not None:
            self._by_id[document.id] = document
        for key in document.sketch[: self._search.keys].tolist():
            self._by_key.setdefault(key, {})[document] = None
        if len(self._documents) > self._most:
            self._forget(next(iter(self._documents)))

    def forget(self, id: str) -> None:
        """Forget the document with an id, if it is remembered."""
        if id in self._by_id:
            self._forget(self._by_id[id])

    def _forget(self, document: _Document) -> None:
        del self._documents[document]
        if document.id is not None:
            self._by_id.pop(document.id, None)
        for key in document.sketch[: self._search.keys].tolist():
            self._by_key[key].pop(document, None)
            if not self._by_key[key]:
                del self._by_key[key]


class DuplicateFilter:
    """Decides on the actions of one run, without I/O."""

    def __init__(self, policy: DuplicatePolicy, sketcher: Sketcher) -> None:
        self._policy, self._report = policy, sketcher.report
        self._search = CandidateSearch(
            recipe=sketcher.settings.recipe,
            field=sketcher.settings.field,
            keys=sketcher.settings.keys,
            min_similarity=policy.min_similarity,
            examined=20,
        )
        self._recent = _Recent(self._search, policy.remembered)
        self._written: LRUCache[str, None] = LRUCache(_TRACKED)  # ids without their index, which an alias may name
        self._failed = False

    def decide(self, writes: Sequence[Write]) -> Generator[list[dict[str, Any]], Any, list[Any]]:
        """Return the actions to pass on. Yields the body of a multi-search, and receives the answer or its error."""
        asked = [write for write in writes if len(write.sketch)]
        found = dict(zip(asked, (yield from self._similar(asked)), strict=True))
        return [write.action.content for write in writes if self._is_stored(write, found.get(write, []))]

    def _similar(
        self, asked: Sequence[Write]
    ) -> Generator[list[dict[str, Any]], Any, list[list[tuple[float, str | None]]]]:
        """Search for the documents that resemble each of some others. What a failed search finds is nothing."""
        if not asked:
            return []
        lines: list[dict[str, Any]] = []
        for write in asked:
            lines += [{"index": self._where(write), "ignore_unavailable": True}, self._search.body(write.sketch)]
        try:
            answer = yield lines
        except Exception as error:
            answer = error
        if isawaitable(answer):
            raise TypeError("the client of `duplicates` is asynchronous: use an async helper, or another one")
        found = getattr(answer, "body", answer)
        parts = found.get("responses") if isinstance(found, dict) else None
        if isinstance(parts, list) and len(parts) == len(asked) and all(isinstance(one, dict) for one in parts):
            return [self._verified(write, each) for write, each in zip(asked, parts, strict=True)]
        self._fail(answer)
        return [[] for _ in asked]

    def _verified(self, write: Write, response: dict[str, Any]) -> list[tuple[float, str | None]]:
        answer = Answer(response)
        if not answer.has_hits or not all("_id" in hit for hit in answer.hits):
            self._fail(response.get("error", response))
            return []
        found = self._search.verified(write.sketch, answer.hits)
        return [(one.similarity, one.id) for one in found if one.id != write.id]

    def _fail(self, reason: Any) -> None:
        if not self._failed:
            self._failed = True
            logger.warning("the search for duplicates failed (%.300s): documents are stored as new", reason)

    def _is_stored(self, write: Write, found: list[tuple[float, str | None]]) -> bool:
        """Return whether an action is passed on, and remember what it writes.

        found: of the index as of its last refresh. A document of it that this run has written is another text by now.
        """
        original = False
        if len(write.sketch):
            there = [one for one in found if one[1] not in self._written]
            there += self._recent.resembling(write.sketch, self._where(write), write.id)
            if original := bool(there):
                similarity, of = max(there, key=lambda one: one[0])
                self._report.duplicates += 1
                told = FoundDuplicate(write.id, of, similarity, write.action.content)
                if self._policy.on_duplicate and self._policy.on_duplicate(told) is False:
                    self._report.skipped += 1
                    return False
        if write.changes_text:
            if write.id is not None:
                self._written[write.id] = None
                self._recent.forget(write.id)
            if len(write.sketch) and not original:  # nothing is a copy of a copy
                self._recent.add(_Document(write.id, self._where(write), write.sketch))
        return True

    def _where(self, write: Write) -> str:
        """The index or pattern that is searched for originals of a document."""
        index = self._policy.index or write.action.content.get("_index")
        if index is None:
            raise ValueError("an action names no _index: name the index to search in DuplicatePolicy(index=...)")
        return str(index)
