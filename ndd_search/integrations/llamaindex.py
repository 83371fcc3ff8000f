"""LlamaIndex: different nodes out of what a retriever found.

engine = index.as_query_engine(similarity_top_k=50, node_postprocessors=[NearDuplicatePostprocessor(size=10)])
"""

from __future__ import annotations

from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.errors import MissingExtra
from ndd_search.integrations.choose_passages import select
from ndd_search.integrations.passage_options import Fields
from ndd_search.integrations.passages_and_copies import LEFT_OUT, LISTED, SOURCES, Passage, Passages

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    if error.name not in ("llama_index", "llama_index.core"):
        raise
    raise MissingExtra("ndd_search.integrations.llamaindex", "llama-index-core", "llamaindex") from None

from ndd_search.integrations.pydantic_settings import PassageSettings

_STORED = SketchField().name


class NearDuplicatePostprocessor(PassageSettings, BaseNodePostprocessor):
    """At most `size` different nodes, each with what it stands for in its metadata, under "near_duplicates".

    It takes the options of `ndd_search.passages`; the fields that they name are metadata. Let the retriever find more
    nodes than are shown. What is listed under "near_duplicates" is excluded from the text for models and embeddings;
    the sources, under "near_duplicate_sources", are shown to models, to be cited. A sketch under "ndd" in the metadata
    is used. Chunks are merged by `ref_doc_id` and `start_char_idx`.

    source: metadata listed under "near_duplicates" for a node that is not shown.
    """

    source: str = "file_path"

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex stores it."""
        return "NearDuplicatePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        chosen = select([(one, one.score) for one in nodes], self._fields(), self._options("node.metadata"))
        return [_node(one, chosen) for one in chosen]

    def _fields(self) -> Fields:
        return Fields(
            text=lambda one: one.node.get_content(metadata_mode=MetadataMode.NONE),
            id=lambda one: one.node.node_id,
            source=self._named("source", f"node.metadata.{self.source}"),
            document=lambda one: one.node.ref_doc_id,
            start=lambda one: getattr(one.node, "start_char_idx", None),
            stored=lambda one: one.node.metadata.get(_STORED),
        )


def _node(passage: Passage, chosen: Passages) -> NodeWithScore:
    """The node as it was found, where there is nothing to tell."""
    found: NodeWithScore = passage.hit
    told = chosen.told(passage, lambda one: one.node.metadata, lambda one: one.node.node_id)
    if not told:
        return found
    node: BaseNode = found.node.model_copy()
    node.metadata = {**node.metadata, **told}
    node.excluded_llm_metadata_keys = _and(node.excluded_llm_metadata_keys, LISTED, LEFT_OUT)
    node.excluded_embed_metadata_keys = _and(node.excluded_embed_metadata_keys, LISTED, LEFT_OUT, SOURCES)
    if passage.text != found.node.get_content(metadata_mode=MetadataMode.NONE):
        node.set_content(passage.text)
        node.metadata.pop(_STORED, None)  # of a shorter text
        node.embedding = None
        if isinstance(node, TextNode):
            node.start_char_idx, node.end_char_idx = passage.start, passage.end
    return NodeWithScore(node=node, score=passage.score)  # it may be cut off or sorted by its score


def _and(names: list[str], *more: str) -> list[str]:
    return [*names, *(name for name in more if name not in names)]
