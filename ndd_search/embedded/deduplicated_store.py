"""A store that holds each text once: an index that is asked whether it knows a text before it takes it.

store = Deduplicated(ndd_search.Index.open("memories.idx", text=["text"]), date="at")
store.add({"text": "The user prefers tea.", "at": "2025-03-01"}).status      # "new"
store.add({"text": "The user prefers tea!", "at": "2025-04-01"}).status      # "newer": it took the other's place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from ndd_search.core.document_fields import as_mapping, text_of, value_of
from ndd_search.core.fork_safe import ForkSafeLock
from ndd_search.core.matching.guards import seconds_since_1970
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.presets import CollapseChanges, collapse_options
from ndd_search.core.recipe import Recipe
from ndd_search.core.text.tokens import tokens
from ndd_search.errors import InvalidDocument
from ndd_search.search.flow.client_settings import options

if TYPE_CHECKING:
    from ndd_search.embedded.index import Index

_WORDS, _CANDIDATES = 64, 50  # words of a text that are searched for; hits that are compared with it


class Added(NamedTuple):
    """What became of a document.

    status:   "new": it is stored. "newer": it is stored in the place of an earlier one, under the id of that one.
              "known": it is not stored, as a document that resembles it is there and is not older.
    id:       of the document that is stored now. document: that document.
    similarity: to the one that was there, 0..1; 0.0 if none was.
    replaced: the document whose place was taken, which the store no longer holds; None if there is none.
    """

    status: Literal["new", "newer", "known"]
    id: str
    document: Mapping[str, Any]
    similarity: float = 0.0
    replaced: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class EngineIndex:
    """An index of Elasticsearch or OpenSearch in the place of a folder. It needs neither sketches nor keys.

    client: synchronous, wrapped or not. name: of one index. text: the fields with the text, which the engine searches.
    """

    client: Any
    name: str
    text: Sequence[str]
    recipe: Recipe = field(default_factory=Recipe)
    options: CollapseOptions = field(default_factory=CollapseOptions)
    frequency_table: None = None

    def get(self, id: str) -> dict[str, Any] | None:
        """Return a document with its id, None if there is none."""
        return next(iter(self._found({"ids": {"values": [id]}}, 1)), None)

    def add(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Store documents in the place of those with the same ids; the next search finds them."""
        for one in documents:
            source = {name: value for name, value in one.items() if name != "_id"}
            self.client.index(index=self.name, id=one.get("id", one.get("_id")), body=source, refresh=True)

    def search(self, query: str, *, size: int, **_: Any) -> dict[str, Any]:
        """Return the documents that hold most words of a query, as a folder does; they are not collapsed."""
        found = self._found({"simple_query_string": {"query": query, "fields": list(self.text)}}, size)
        return {"hits": {"hits": [{"_source": one} for one in found]}}

    def _found(self, query: Mapping[str, Any], size: int) -> list[dict[str, Any]]:
        with options(enabled=False):  # a wrapped client would collapse them
            found = self.client.search(
                index=self.name, body={"query": query, "size": size, "_source": {"excludes": ["ndd", "ndd_keys"]}}
            )
        return [{**hit["_source"], "id": hit["_id"]} for hit in found["hits"]["hits"]]


class Deduplicated:
    """index: the folder, or the index of an engine. date: the field with the time of a document, "" for none.

    The newer of two documents that resemble each other stays; one without a readable time is older than all. Without
    `date` nothing tells whether a similar text is a copy or a correction of the earlier one, so only a text of the same
    words is known, unless `min_similarity` is given. changes: which texts resemble each other, as in a search
    (min_similarity, guards, ...); texts that differ in a number alone do not.
    One object may be used by several threads; two objects, or processes, may each take a copy of one new text.
    """

    def __init__(self, index: Index | EngineIndex, *, date: str = "", **changes: Unpack[CollapseChanges]) -> None:
        self.index, self._date, self._lock = index, date, ForkSafeLock()
        self._text = index.text if isinstance(index, EngineIndex) else index.meta.text
        self._options = collapse_options(index.options, **changes)
        self._same_words = not date and "min_similarity" not in changes

    def add(self, document: str | Mapping[str, Any]) -> Added:
        """Store a document unless the store knows it, and say what is stored now.

        document: a text, or a mapping with text in the text fields of the index. One without "id" or "_id" gets an id
        made of its text. Of one whose id is stored, the newer of the two stays.
        Raises InvalidDocument for a document without text, or one that the index cannot hold.
        """
        document = as_mapping(document)
        if not isinstance(document, str | Mapping):
            raise TypeError(f"a document is a text or a mapping, got {document!r}")
        given = {self._text[0]: document} if isinstance(document, str) else dict(document)
        text = text_of(given, self._text)
        if not text or not text.strip():
            what = f"it has no text in {', '.join(self._text)}"
            raise InvalidDocument("a document", what, "name its text as the text fields of the index are named")
        own = given.get("id", given.get("_id"))
        id = _id_of(text) if own is None else str(own)
        with self._lock:
            stored, similarity = self._known(id, given, text)
            if stored is None:
                named = given if own is not None else {"id": id, **given}
                self.index.add([named])
                return Added("new", id, named)
            known = str(stored.get("id", stored.get("_id")))
            if not self._date or not self._is_newer(given, stored):
                return Added("known", known, stored, similarity)
            newer = {"id": known, **{name: value for name, value in given.items() if name not in ("id", "_id")}}
            self.index.add([newer])
            return Added("newer", known, newer, similarity, stored)

    def known(self, text: str) -> Mapping[str, Any] | None:
        """Return the document that the store holds for a text, perhaps a newer one; None for an unknown text."""
        return self._known(_id_of(text), {self._text[0]: text}, text)[0]

    def _known(self, id: str, given: Mapping[str, Any], text: str) -> tuple[dict[str, Any] | None, float]:
        """Return the document with this id, or the one that resembles a document most, and the similarity."""
        if (same := self.index.get(id)) is not None:
            return same, 1.0
        said = tokens(text, self.index.recipe)
        words = sorted(set(said), key=lambda word: (-len(word), word))[:_WORDS]
        if not words:
            return None, 0.0
        query = " ".join(f'"{word}"' for word in words)
        found = self.index.search(query, size=_CANDIDATES, mode="annotate", window=_CANDIDATES)["hits"]["hits"]
        page = collapse(
            [given, *(hit["_source"] for hit in found)],
            size=1,
            text=self._text,
            recipe=self.index.recipe,
            frequency_table=self.index.frequency_table or False,
            options=self._options,
            mode="group",
            keep=("score",),
            window=len(found) + 1,
            max_window=len(found) + 1,
        )
        copies = [
            copy for copy in page.groups[0].duplicates if not self._same_words or self._words_in(copy.hit) == said
        ]
        nearest = max(copies, key=lambda copy: copy.similarity, default=None)
        return (None, 0.0) if nearest is None else (nearest.hit, nearest.similarity)

    def _words_in(self, document: Mapping[str, Any]) -> list[str]:
        return tokens(text_of(document, self._text) or "", self.index.recipe)

    def _is_newer(self, given: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        mine, its = (seconds_since_1970(value_of(one, self._date)) for one in (given, stored))
        return mine > its or (isnan(its) and not isnan(mine))


def _id_of(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()
