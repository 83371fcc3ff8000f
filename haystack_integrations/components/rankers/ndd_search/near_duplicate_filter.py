"""The component."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import deserialize_callable, serialize_callable

from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.integrations.chosen_passages import Passage
from ndd_search.integrations.passage_options import Fields, count_words, in_metadata, passage_options
from ndd_search.integrations.passages import select

_STORED = SketchField().name


@component
class NearDuplicateFilter:
    """At most `size` different documents, each with what it stands for in its meta, under "near_duplicates".

    Let the retriever find more documents than are shown (top_k). A sketch under "ndd" in the meta is used.
    """

    def __init__(  # noqa: PLR0913 - a component is stored as the arguments that made it
        self,
        *,
        size: int | None = None,
        max_tokens: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        min_similarity: float | str = "auto",
        keep: list[str] | None = None,
        contained: bool = True,
        merge: bool = False,
        recipe: str | None = None,
        frequency_table: bool = True,
        source: str = "file_path",
        document: str = "source_id",
        start: str = "split_idx_start",
        guards: dict[str, Any] | None = None,
    ) -> None:
        """The settings of `ndd_search.integrations.passages.PassageOptions`; fields that they name are fields of meta.

        :param count_tokens: Text to number of tokens; None counts words.
        :param keep: Which of several near-duplicates is shown, for instance ["newest:date"].
        :param recipe: The id of a recipe.
        :param source: Meta that is told of a document that another one stands for.
        :param document: Meta that says which document a chunk was cut from; DocumentSplitter writes it.
        :param start: Meta that says where in it, in characters; DocumentSplitter writes it.
        :param guards: Other CollapseOptions by name, for instance {"numbers_must_match": True}.
        """
        self.settings: dict[str, Any] = {
            "size": size,
            "max_tokens": max_tokens,
            "min_similarity": min_similarity,
            "keep": list(keep) if keep is not None else ["score"],
            "contained": contained,
            "merge": merge,
            "recipe": recipe,
            "frequency_table": frequency_table,
        }
        self.count_tokens = count_tokens
        self.guards = dict(guards or {})
        self.source, self.document, self.start = source, document, start
        chosen = passage_options(**self.settings, **self.guards, count_tokens=count_tokens or count_words)
        self._options = in_metadata(chosen, "meta")

    def to_dict(self) -> dict[str, Any]:
        """The settings, as Haystack stores them."""
        count_tokens = serialize_callable(self.count_tokens) if self.count_tokens else None
        where = {"source": self.source, "document": self.document, "start": self.start}
        return default_to_dict(self, **self.settings, **where, count_tokens=count_tokens, guards=self.guards)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "NearDuplicateFilter":
        """The component that to_dict stored."""
        parameters = dict(data.get("init_parameters", {}))
        if parameters.get("count_tokens"):
            parameters["count_tokens"] = deserialize_callable(parameters["count_tokens"])
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
        options = self._options if size is None else replace(self._options, size=size)
        return {"documents": [self._document(one) for one in select(documents, fields, options)]}

    def _document(self, passage: Passage) -> Document:
        """The document as it was found, where it stands for nothing else."""
        found: Document = passage.hit
        if not passage.copies:
            return found
        meta = {**found.meta, **passage.told(lambda one: one.meta)}
        score = passage.best.score  # it may be cut off or sorted by its score
        if passage.text == (found.content or ""):
            return replace(found, meta=meta, score=score)
        meta.pop(_STORED, None)  # of a shorter text
        if passage.start is not None:
            meta[self.start] = passage.start
        return replace(found, content=passage.text, meta=meta, score=score, embedding=None)
