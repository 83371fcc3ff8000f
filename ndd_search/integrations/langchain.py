"""LangChain: different documents out of what a retriever found, or of what is to be indexed.

wide = store.as_retriever(search_kwargs={"k": 50})
retriever = ContextualCompressionRetriever(base_compressor=NearDuplicateFilter(size=10), base_retriever=wide)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.errors import importing
from ndd_search.integrations.choose_passages import select
from ndd_search.integrations.passage_options import Fields
from ndd_search.integrations.passages_and_copies import Passage, Passages

with importing("langchain_core", "ndd_search.integrations.langchain", "langchain-core", "langchain"):
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
    from langchain_core.load.serializable import Serializable

from ndd_search.integrations.pydantic_settings import PassageSettings

_STORED = SketchField().name


class NearDuplicateFilter(PassageSettings, Serializable, BaseDocumentCompressor, BaseDocumentTransformer):
    """Different documents, each with what it stands for in its metadata, under "near_duplicates".

    It takes the options of `ndd_search.passages`; the fields that they name are metadata.

    As a compressor it gives at most `size` documents (10) and `max_tokens` tokens; let the retriever find more than are
    shown. As a transformer it gives all that are different. A sketch under "ndd" in the metadata is used.

    source:         metadata listed under "near_duplicates" for a document that is not shown.
    document:       metadata that says which document a chunk was cut from. start: where in it, in characters.
    store_sketches: transform_documents puts the sketch of each document into its metadata, under "ndd".
    """

    source: str = "source"
    document: str = "source"
    start: str = "start_index"
    store_sketches: bool = False

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Let LangChain store it with `dumpd`, and `load` it if it is among the allowed objects."""
        return True

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """At most `size` different documents, in the order given."""
        chosen = select(documents, self._fields(), self._options("metadata"))
        return [self._document(one, chosen) for one in chosen]

    def transform_documents(self, documents: Sequence[Document], **others: Any) -> list[Document]:
        """All different documents, in the order given."""
        documents, given = list(documents), self._options("metadata")
        options = replace(given, size=len(documents), max_tokens=None)
        different = select(documents, self._fields(), options)
        chosen = [self._document(one, different) for one in different]
        if not self.store_sketches:
            return chosen
        sketches = sketch_many((one.page_content for one in chosen), given.recipe)
        stored = [SketchField().encode(sketch, given.recipe) for sketch in sketches]
        return [_with(one, **{_STORED: sketch}) for one, sketch in zip(chosen, stored, strict=True)]

    def _fields(self) -> Fields:
        return Fields(
            text="page_content",
            id=_id,
            source=self._named("source", f"metadata.{self.source}"),
            document=lambda one: one.metadata.get(self.document),
            start=lambda one: one.metadata.get(self.start),
            stored=lambda one: one.metadata.get(_STORED),
        )

    def _document(self, passage: Passage, chosen: Passages) -> Document:
        """The document as it was found, where there is nothing to tell."""
        found: Document = passage.hit
        told = chosen.told(passage, lambda one: one.metadata, _id)
        if not told:
            return found
        if passage.text == found.page_content:
            return _with(found, **told)
        metadata = {name: value for name, value in found.metadata.items() if name != _STORED}  # of a shorter text
        whole = found.model_copy(update={"page_content": passage.text, "metadata": metadata})
        start = {} if passage.start is None else {self.start: passage.start}
        return _with(whole, **told, **start)


def _id(document: Document) -> Any:
    return document.id or document.metadata.get("id", document.metadata.get("_id"))


def _with(document: Document, **metadata: Any) -> Document:
    """A copy of a document with more metadata."""
    return document.model_copy(update={"metadata": {**document.metadata, **metadata}})
