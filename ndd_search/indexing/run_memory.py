"""The memory of one run with a DuplicatePolicy: the last ids written, the last documents, and their copies."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ndd_search.core.sketching.sketches import Sketch
from ndd_search.core.sketching.stored_sketch import sketch_in
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.search.rest.stored_keys import looked_up
from ndd_search.search.writing.helper_actions import Action


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

    @property
    def routing(self) -> str | None:
        """The routing value of the document."""
        content = self.action.content
        routing = content.get("_routing", content.get("routing"))
        return None if routing is None else str(routing)


@dataclass(eq=False)
class Original:
    """A document of which others may be copies.

    where:     the index or pattern that was searched. index: the index that holds it.
    handed_on: its position among the actions passed on in this run, None if a search found it.
    confirmed: whether a real-time read has found it with this sketch.
    """

    id: str | None
    where: str
    index: str
    routing: str | None
    sketch: Sketch
    handed_on: int | None = None
    confirmed: bool = False


class Written:
    """The ids of the last writes of the run, and whether the last write of each was no deletion.

    They are remembered without their index, which writes may name by an alias, too.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._there: OrderedDict[str, bool] = OrderedDict()

    def __contains__(self, id: str | None) -> bool:
        return id in self._there

    def is_there(self, id: str) -> bool:
        """Whether a document was written under an id, and not deleted since."""
        return self._there.get(id, False)

    def note(self, id: str, there: bool) -> None:
        """Remember a write."""
        self._there[id] = there
        self._there.move_to_end(id)
        if len(self._there) > self._most:
            self._there.popitem(last=False)


class Recent:
    """The last documents that were passed on and are no copies, indexed by their keys and ids."""

    def __init__(self, search: CandidateSearch, most: int) -> None:
        self._search, self._most = search, most
        self._documents: OrderedDict[int, Original] = OrderedDict()
        self._by_key: dict[int, list[int]] = {}
        self._by_id: dict[str, int] = {}
        self._next = 0

    def resembling(self, wanted: Sketch, where: str, but: str | None) -> list[tuple[float, Original]]:
        """Return those that resemble a sketch, with their similarity. but: an id to exclude."""
        keys = looked_up(wanted, self._search.keys, self._search.decision)
        shared_keys = Counter(number for equal in keys for key in equal for number in self._by_key.get(key, ()))
        needed = self._search.needed(len(keys))
        numbers = [number for number, shared in shared_keys.most_common() if shared >= needed]
        candidates = [document for document in map(self._documents.__getitem__, numbers) if document.where == where]
        candidates = [document for document in candidates if document.id is None or document.id != but]
        candidates = candidates[: self._search.examined]
        similarity = self._search.similarities(wanted, [document.sketch for document in candidates])
        return [(float(similarity[i]), candidates[i]) for i in np.flatnonzero(similarity).tolist()]

    def add(self, document: Original) -> None:
        """Remember a document, and forget the oldest if there are too many."""
        if not self._most:
            return
        number, self._next = self._next, self._next + 1
        self._documents[number] = document
        if document.id is not None:
            self._by_id[document.id] = number
        for key in document.sketch[: self._search.keys].tolist():
            self._by_key.setdefault(key, []).append(number)
        if len(self._documents) > self._most:
            self._forget(next(iter(self._documents)))

    def forget(self, id: str) -> None:
        """Forget the document with an id, if it is remembered."""
        if id in self._by_id:
            self._forget(self._by_id[id])

    def _forget(self, number: int) -> None:
        document = self._documents.pop(number)
        if document.id is not None:
            self._by_id.pop(document.id, None)
        for key in document.sketch[: self._search.keys].tolist():
            holders = self._by_key[key]
            holders.remove(number)
            if not holders:
                del self._by_key[key]


class Copies:
    """The last copies that were skipped, by the id of their original."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: OrderedDict[Write, str | Original] = OrderedDict()
        self._groups: dict[str | Original, tuple[Original, dict[Write, None]]] = {}  # by id, if it has one
        self._by_id: dict[str, Write] = {}

    def original(self, id: str | None) -> Original | None:
        """Return the document with an id, if copies of it are kept."""
        return self._groups[id][0] if id is not None and id in self._groups else None

    def keep(self, write: Write, original: Original) -> None:
        """Keep a copy of a document, and forget the oldest if there are too many."""
        self._of[write] = key = original if original.id is None else original.id
        self._groups.setdefault(key, (original, {}))[1][write] = None
        if write.id is not None:
            self._by_id[write.id] = write
        if len(self._of) > self._most:
            self.forget(next(iter(self._of)))

    def of_unnamed(self) -> list[Write]:
        """Return the copies of documents that had no id when they were passed on, in order."""
        return [write for write, original in self._of.items() if isinstance(original, Original)]

    def of_id(self, id: str | None) -> Write | None:
        """Return the copy with an id, if one is kept."""
        return None if id is None else self._by_id.get(id)

    def take(self, original: str) -> list[Write]:
        """Forget the copies of a document; returns them in order."""
        copies = list(self._groups[original][1]) if original in self._groups else []
        for write in copies:
            self.forget(write)
        return copies

    def forget(self, write: Write) -> None:
        """Forget a copy."""
        _, group = self._groups[original := self._of.pop(write)]
        del group[write]
        if not group:
            del self._groups[original]
        if write.id is not None and self._by_id.get(write.id) is write:
            del self._by_id[write.id]


class LookUp:
    """A multi-get: the documents to read in real time, by index and id, and the responses."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], dict[str, Any]] = {}
        self._answers: dict[tuple[str, str], Mapping[str, Any]] = {}

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The "docs" of the `_mget` request."""
        return list(self._lines.values())

    def add(self, index: str, id: str, routing: str | None, source: Sequence[str] = ()) -> None:
        """Add a document to the request. source: the fields to read."""
        if source or (index, id) not in self._lines:
            place = {} if routing is None else {"routing": routing}
            self._lines[index, id] = {"_index": index, "_id": id, **place, "_source": list(source) or False}

    def answered(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Store the "docs" of the response, which are in the order of `lines`."""
        self._answers = dict(zip(self._lines, documents, strict=True))

    def version(self, index: str, id: str) -> tuple[Any, Any] | None:
        """Return the sequence number and primary term of a document, None if it was not found."""
        answer = self._answers.get((index, id), {})
        return (answer.get("_seq_no"), answer.get("_primary_term")) if answer.get("found") is True else None

    def is_absent(self, index: str, id: str) -> bool:
        """Whether the response says that there is no such document; False after an error."""
        answer = self._answers.get((index, id), {})
        error = answer.get("error")
        kind = error.get("type") if isinstance(error, Mapping) else None
        return answer.get("found") is False or kind == "index_not_found_exception"

    def has_sketch(self, document: Original, field: str) -> bool:
        """Whether a document is stored with its known sketch. field: the object that holds sketches."""
        answer = self._answers.get((document.index, document.id or ""), {})
        source = answer.get("_source")
        stored = source.get(field) if isinstance(source, Mapping) else None
        found = sketch_in(stored, len(document.sketch)) if isinstance(stored, Mapping) else None
        return found is not None and found.tolist() == document.sketch.tolist()
