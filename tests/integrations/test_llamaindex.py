"""The postprocessor of LlamaIndex, in LlamaIndex: `make test-third-parties` installs it and runs this."""

import asyncio
import json
from typing import Any

import pytest

from tests.engines.find import Engine
from tests.integrations.texts import BUDGET, FINAL, REPORT, STEEL, STEEL_AGAIN

WHERE = "run `make test-third-parties`"
core = pytest.importorskip("llama_index.core", reason=WHERE)
pydantic = pytest.importorskip("pydantic", reason=WHERE)
schema = pytest.importorskip("llama_index.core.schema", reason=WHERE)

from ndd_search.integrations.llamaindex import NearDuplicatePostprocessor  # noqa: E402 - needs what was looked for


def node(text: str, id: str, score: float = 1.0, **metadata: Any) -> Any:
    return schema.NodeWithScore(node=schema.TextNode(text=text, id_=id, metadata=metadata), score=score)


FOUND = [
    node(STEEL, "1", 0.9, file_path="a.html"),
    node(FINAL, "2", 0.8, file_path="b.html"),
    node(STEEL_AGAIN, "3", 0.7, file_path="c.html"),
    node(REPORT, "4", 0.6, file_path="d.html"),
    node(BUDGET, "5", 0.5, file_path="e.html"),
]


def test_nodes_are_different_and_say_what_they_stand_for() -> None:
    found = NearDuplicatePostprocessor(size=3).postprocess_nodes(FOUND, query_str="emissions")
    assert [(one.node.text, one.score) for one in found] == [(STEEL, 0.9), (REPORT, 0.8), (BUDGET, 0.5)]
    assert FOUND[3].score == 0.6, "it stands for a better one, and is cut off by no later step that would keep that"
    (copy,) = found[0].node.metadata["near_duplicates"]
    assert (copy["id"], copy["source"], copy["relation"]) == ("3", "c.html", "similar")
    assert asyncio.run(NearDuplicatePostprocessor(size=3).apostprocess_nodes(FOUND)) == found


def test_the_model_sees_the_sources_of_a_passage_and_neither_it_nor_an_embedding_the_list_of_copies() -> None:
    (shown,) = NearDuplicatePostprocessor(size=1).postprocess_nodes(FOUND)
    model, embedding = schema.MetadataMode.LLM, schema.MetadataMode.EMBED
    assert shown.node.get_content(metadata_mode=embedding) == FOUND[0].node.get_content(metadata_mode=embedding)
    cited = shown.node.get_content(metadata_mode=model).replace("near_duplicate_sources: ['a.html', 'c.html']\n", "")
    assert cited == FOUND[0].node.get_content(metadata_mode=model)
    assert shown.node.metadata["near_duplicate_sources"] == ["a.html", "c.html"]


def test_the_model_is_told_how_many_sources_say_it() -> None:
    first, *_ = NearDuplicatePostprocessor(origins="file_path").postprocess_nodes(FOUND, query_str="")
    assert "2 sources, first a.html, 1 reprint, 0 edited" in first.node.get_content(
        metadata_mode=schema.MetadataMode.LLM
    )


def test_the_nodes_found_are_not_changed() -> None:
    before = [one.model_copy(deep=True) for one in FOUND]
    assert NearDuplicatePostprocessor().postprocess_nodes(FOUND)[-1] is FOUND[-1]
    assert before == FOUND


def test_a_misspelt_setting_is_refused_and_the_right_one_is_named() -> None:
    with pytest.raises(pydantic.ValidationError, match="did you mean max_tokens"):
        NearDuplicatePostprocessor(max_token=5)


def test_it_is_stored_and_loaded() -> None:
    made = NearDuplicatePostprocessor(size=3, keep=["newest:date"], guards=["numbers"])
    stored = json.loads(made.to_json())
    assert stored["class_name"] == "NearDuplicatePostprocessor"
    assert NearDuplicatePostprocessor.from_dict(stored).to_dict() == made.to_dict()
    assert NearDuplicatePostprocessor.from_json(made.to_json()).postprocess_nodes(FOUND) == made.postprocess_nodes(
        FOUND
    )


def test_chunks_that_the_splitter_made_are_merged() -> None:
    text = " ".join([STEEL, FINAL, BUDGET, REPORT])
    splitter = core.node_parser.SentenceSplitter(chunk_size=60, chunk_overlap=30, tokenizer=str.split)
    nodes = splitter.get_nodes_from_documents([core.Document(text=text)])
    assert len(nodes) > 2
    found = NearDuplicatePostprocessor(merge=True).postprocess_nodes(
        [schema.NodeWithScore(node=one) for one in nodes[::-1]]
    )
    assert [one.node.text for one in found] == [text]
    assert (found[0].node.start_char_idx, found[0].node.end_char_idx) == (0, len(text))


def test_in_a_query_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IS_TESTING", "1")  # LlamaIndex then asks for no model
    retrievers = pytest.importorskip("llama_index.core.retrievers", reason=WHERE)
    engines = pytest.importorskip("llama_index.core.query_engine", reason=WHERE)

    class Fixed(retrievers.BaseRetriever):  # type: ignore[name-defined,misc]
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return list(FOUND)

    engine = engines.RetrieverQueryEngine.from_args(
        Fixed(),
        response_mode="no_text",
        node_postprocessors=[NearDuplicatePostprocessor(size=2, max_tokens=100)],
    )
    assert [one.node.node_id for one in engine.query("emissions").source_nodes] == ["1", "4"]


def test_behind_elasticsearchs_own_retriever(engine: Engine, index: str) -> None:
    """The store of llama-index-vector-stores-elasticsearch finds by words, and the postprocessor shows what differs."""
    stores = pytest.importorskip("llama_index.vector_stores.elasticsearch", reason=WHERE)
    if engine.family != "elasticsearch":
        pytest.skip("a store of Elasticsearch")

    async def search() -> list[Any]:
        store = stores.ElasticsearchStore(
            index_name=index, es_url=engine.url, retrieval_strategy=stores.AsyncBM25Strategy()
        )
        try:
            await store.async_add([one.node for one in FOUND], create_index_if_not_exists=True)
            found = core.VectorStoreIndex.from_vector_store(store, embed_model=core.MockEmbedding(embed_dim=1))
            retriever = found.as_retriever(similarity_top_k=50, vector_store_query_mode="text_search")
            return list(await retriever.aretrieve("the"))
        finally:
            await store.client.close()

    found = NearDuplicatePostprocessor(size=10).postprocess_nodes(asyncio.run(search()))
    assert len(found) == 3
    listed = [copy["id"] for one in found for copy in one.node.metadata.get("near_duplicates", ())]
    assert sorted([one.node.node_id for one in found] + listed) == ["1", "2", "3", "4", "5"]
