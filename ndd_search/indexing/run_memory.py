"""The memory of one run with a DuplicatePolicy: its last documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ndd_search.core.sketching.sketches import Sketch
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.search.rest.stored_keys import looked_up
from ndd_search.search.writing.read_helper_actions import Action

NONE: Sketch = np.empty(0, np.int32)


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
    sketch:    of a document of this run, else empty.
    """

    id: str | None
    where: str
    index: str
    routing: str | None
    sketch: Sketch


class Recent:
    """The last documents that were passed on and are no copies, indexed by their keys and ids."""

    def __init__(self, search: CandidateSearch, most: int) -> None:
        self._search, self._most = search, most
        self._documents: dict[Original, None] = {}
        self._by_key: dict[int, dict[Original, None]] = {}
        self._by_id: dict[str | None, Original] = {}

    def resembling(self, wanted: Sketch, where: str, but: str | None) -> list[tuple[float, Original]]:
        """Return those that resemble a sketch, with their similarity. but: an id to exclude."""
        keys = looked_up(wanted, self._search.keys, self._search.decision)
        shared_keys = Counter(document for equal in keys for key in equal for document in self._by_key.get(key, ()))
        needed = self._search.needed(len(keys))
        candidates = [
            document
            for document, shared in shared_keys.most_common()
            if shared >= needed and document.where == where and (document.id is None or document.id != but)
        ][: self._search.examined]
        similarity = self._search.similarities(wanted, [document.sketch for document in candidates])
        return [(float(similarity[i]), candidates[i]) for i in np.flatnonzero(similarity).tolist()]

    def add(self, document: Original) -> None:
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

    def _forget(self, document: Original) -> None:
        del self._documents[document]
        self._by_id.pop(document.id, None)
        for key in document.sketch[: self._search.keys].tolist():
            self._by_key[key].pop(document, None)
            if not self._by_key[key]:
                del self._by_key[key]
