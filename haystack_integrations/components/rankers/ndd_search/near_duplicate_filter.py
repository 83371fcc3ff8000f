"""The component."""

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import deserialize_callable, serialize_callable

from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.integrations.choose_passages import select
from ndd_search.integrations.passage_options import Fields, in_metadata, passage_options
from ndd_search.integrations.passages_and_copies import Passage

_STORED, _COUNT = SketchField().name, "count_tokens"


@component
class NearDuplicateFilter:
    """At most `size` different documents, each with what it stands for in its meta, under "near_duplicates".

    Let the retriever find more documents than are shown (top_k). A sketch under "ndd" in the meta is used.
    """

    def __init__(
        self,
        *,
        source: str = "file_path",
        document: str = "source_id",
        start: str = "split_idx_start",
        **options: Any,
    ) -> None:
        """Take the options of `ndd_search.passages`; the fields that they name are fields of meta.

        :param source: Meta that is told of a document that another one stands for.
        :param document: Meta that says which document a chunk was cut from; DocumentSplitter writes it.
        :param start: Meta that says where in it, in characters; DocumentSplitter writes it.
        """
        self.source, self.document, self.start, self._options = source, document, start, options
        self._chosen = in_metadata(passage_options(**options), "meta")

    def to_dict(self) -> dict[str, Any]:
        """The settings, as Haystack stores them."""
        stored = {"source": self.source, "document": self.document, "start": self.start, **self._options}
        if _COUNT in stored:
            stored[_COUNT] = serialize_callable(stored[_COUNT])
        return default_to_dict(self, **stored)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "NearDuplicateFilter":
        """The component that to_dict stored."""
        parameters = dict(data.get("init_parameters", {}))
        if _COUNT in parameters:
            parameters[_COUNT] = deserialize_callable(parameters[_COUNT])
        return default_from_dict(cls, {**data, "init_parameters": parameters})

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], size: int | None = None) -> dict[str, list[Document]]:
        """Choose from documents, best first.

        :param size: Another number than that of the component.
        """
        fields = Fields(
            text=lambda one: one.content or "",  # documents may all be without text, as images are
            id="id",
            source=lambda one: one.meta.get(self.source),
            document=lambda one: one.meta.get(self.document),
            start=lambda one: one.meta.get(self.start),
            stored=lambda one: one.meta.get(_STORED),
        )
        options = self._chosen if size is None else replace(self._chosen, size=size)
        return {
            "documents": [
                self._document(one) for one in select([(one, one.score) for one in documents], fields, options)
            ]
        }

    def _document(self, passage: Passage) -> Document:
        """The document as it was found, where it stands for nothing else."""
        found: Document = passage.hit
        if not passage.copies:
            return found
        meta = {**found.meta, **passage.told(lambda one: one.meta)}
        score = passage.score  # it may be cut off or sorted by its score
        if passage.text == (found.content or ""):
            return replace(found, meta=meta, score=score)
        meta.pop(_STORED, None)  # of a shorter text
        if passage.start is not None:
            meta[self.start] = passage.start
        return replace(found, content=passage.text, meta=meta, score=score, embedding=None)
