"""The component."""

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import deserialize_callable, serialize_callable

from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.integrations.choose_passages import select
from ndd_search.integrations.passage_options import Fields, in_metadata, passage_options
from ndd_search.integrations.passages_and_copies import Passage, Passages

_STORED, _COUNT, _SOURCE = SketchField().name, "count_tokens", "file_path"
_CALLABLE = "callable:"  # before the name of one in a stored list of `keep`
_REMEDY = {
    "frequency_table": "give True or False",
    "collapse": "give its options by name",
    "preset": "name one of the library's, or give its options by name",
}


@component
class NearDuplicateFilter:
    """At most `size` different documents, each with what it stands for in its meta, under "near_duplicates".

    Let the retriever find more documents than are shown (top_k). A sketch under "ndd" in the meta is used.
    """

    def __init__(
        self,
        *,
        source: str = _SOURCE,
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
        stored = {name: _stored(name, value) for name, value in self._options.items()}
        return default_to_dict(self, source=self.source, document=self.document, start=self.start, **stored)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "NearDuplicateFilter":
        """The component that to_dict stored."""
        parameters = dict(data.get("init_parameters", {}))
        if _COUNT in parameters:
            parameters[_COUNT] = deserialize_callable(parameters[_COUNT])
        if "keep" in parameters:
            wishes = parameters["keep"]
            parameters["keep"] = [_callable(one) for one in ([wishes] if isinstance(wishes, str) else wishes)]
        return default_from_dict(cls, {**data, "init_parameters": parameters})

    @component.output_types(documents=list[Document], left_out=list[Document])
    def run(self, documents: list[Document], top_k: int | None = None) -> dict[str, list[Document]]:
        """Choose from documents, best first.

        :param top_k: Another number than the size of the component.
        :returns: `documents`, and those `left_out` that max_tokens had no room for.
        """
        fields = Fields(
            text=lambda one: one.content or "",  # documents may all be without text, as images are
            id="id",
            source=f"meta.{self.source}" if self.source != _SOURCE else lambda one: one.meta.get(_SOURCE),
            document=lambda one: one.meta.get(self.document),
            start=lambda one: one.meta.get(self.start),
            stored=lambda one: one.meta.get(_STORED),
        )
        options = self._chosen if top_k is None else replace(self._chosen, size=top_k)
        chosen = select([(one, one.score) for one in documents], fields, options)
        shown = [self._document(one, chosen) for one in chosen]
        return {"documents": shown, "left_out": list(chosen.left_out)}

    def _document(self, passage: Passage, chosen: Passages) -> Document:
        """The document as it was found, where there is nothing to tell."""
        found: Document = passage.hit
        told = chosen.told(passage, lambda one: one.meta, lambda one: one.id)
        if not told:
            return found
        meta = {**found.meta, **told}
        score = passage.score  # it may be cut off or sorted by its score
        if passage.text == (found.content or ""):
            return replace(found, meta=meta, score=score)
        meta.pop(_STORED, None)  # of a shorter text
        if passage.start is not None:
            meta[self.start] = passage.start
        return replace(found, content=passage.text, meta=meta, score=score, embedding=None)


def _stored(name: str, value: Any) -> Any:
    """Return the value of an option as Haystack writes it. Raises ValueError for one that it cannot write."""
    if name == _COUNT:
        return serialize_callable(value)
    if name == "keep" and not isinstance(value, str):
        return [_CALLABLE + serialize_callable(one) if callable(one) else one for one in value]
    if isinstance(value, Recipe):
        return value.id
    if name in ("frequency_table", "collapse", "preset") and not isinstance(value, bool | str):
        raise ValueError(f"{name} is a {type(value).__name__}, which a stored pipeline cannot hold: {_REMEDY[name]}")
    return value


def _callable(wish: str) -> Any:
    return deserialize_callable(wish.removeprefix(_CALLABLE)) if wish.startswith(_CALLABLE) else wish
