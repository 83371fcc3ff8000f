"""The component of Haystack, in Haystack: `make test-third-parties` installs it and runs this."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ndd_search.core.options import CollapseOptions
from ndd_search.core.recipe import Recipe
from ndd_search.indexing.with_sketches import sketch_fields
from tests.engines.find import Engine
from tests.integrations.texts import BUDGET, FINAL, REPORT, STEEL, STEEL_AGAIN

WHERE = "run `make test-third-parties`"
haystack = pytest.importorskip("haystack", reason=WHERE)

from ndd_search.integrations.haystack import NearDuplicateFilter  # noqa: E402 - needs what was looked for above

FOUND = [
    haystack.Document(content=text, id=str(place), meta={"file_path": f"{place}.txt", "date": f"2024-0{place}-01"})
    for place, text in enumerate([STEEL, FINAL, STEEL_AGAIN, REPORT, BUDGET], 1)
]


def test_the_origins_of_copies_are_told_in_the_meta() -> None:
    first, *_ = NearDuplicateFilter(origins=["file_path", "date"]).run(documents=FOUND)["documents"]
    assert first.meta["near_duplicate_origins"] == "2 sources, first 1.txt, 1 reprint, 0 edited"


def pipeline(**settings: Any) -> Any:
    made = haystack.Pipeline()
    made.add_component("filter", NearDuplicateFilter(**settings))
    return made


def test_documents_are_different_and_say_what_they_stand_for() -> None:
    found = pipeline(size=3).run({"filter": {"documents": FOUND}})["filter"]["documents"]
    assert [one.content for one in found] == [STEEL, REPORT, BUDGET]
    (copy,) = found[0].meta["near_duplicates"]
    assert (copy["id"], copy["source"], copy["relation"]) == ("3", "3.txt", "similar")
    assert [one.id for one in found] == ["1", "4", "5"]
    fewer = pipeline(size=3).run({"filter": {"documents": FOUND, "top_k": 1}})["filter"]["documents"]
    assert fewer == found[:1]


def test_in_an_asynchronous_pipeline() -> None:
    made = haystack.AsyncPipeline() if hasattr(haystack, "AsyncPipeline") else haystack.Pipeline()
    made.add_component("filter", NearDuplicateFilter(size=3))
    found = asyncio.run(made.run_async({"filter": {"documents": FOUND}}))["filter"]["documents"]
    assert found == NearDuplicateFilter(size=3).run(FOUND)["documents"]


def test_the_documents_found_are_not_changed() -> None:
    before = [replace(one, meta=dict(one.meta)) for one in FOUND]
    assert NearDuplicateFilter().run(FOUND)["documents"][-1] is FOUND[-1]
    assert before == FOUND


def test_documents_that_are_all_without_text_are_shown() -> None:
    images = [haystack.Document(id=id) for id in "ab"]
    assert NearDuplicateFilter().run(images)["documents"] == images


def test_a_stored_pipeline_is_loaded_without_being_told_of_the_module() -> None:
    settings = {"size": 2, "keep": ["newest:date"], "guards": ["length:0.1"], "count_tokens": ndd_tokens}
    stored = pipeline(size=2, keep=["newest:date"], guards=["length:0.1"], max_tokens=100).dumps()
    loaded = haystack.Pipeline.loads(stored)
    assert loaded.dumps() == stored
    found = loaded.run({"filter": {"documents": FOUND}})["filter"]["documents"]
    assert [one.id for one in found] == ["3", "4"]
    made = NearDuplicateFilter(**settings)
    assert made.to_dict()["init_parameters"]["count_tokens"].endswith(".ndd_tokens")


def ndd_tokens(text: str) -> int:
    """A user's own way to count tokens."""
    return len(text)


def test_chunks_that_the_splitter_made_are_merged() -> None:
    splitters = pytest.importorskip("haystack.components.preprocessors", reason=WHERE)
    splitter = splitters.DocumentSplitter(split_by="word", split_length=40, split_overlap=15)
    text = " ".join([STEEL, FINAL, BUDGET, REPORT])
    chunks = splitter.run([haystack.Document(content=text)])["documents"]
    (merged,) = NearDuplicateFilter(merge=True).run(chunks[::-1])["documents"]
    assert (merged.content, merged.meta["split_idx_start"]) == (text, 0)


def test_callables_and_recipes_are_stored_and_what_cannot_be_is_refused() -> None:
    made = pipeline(keep=[file_name, "longest"], recipe=Recipe(k=128), count_tokens=file_name)
    loaded = haystack.Pipeline.loads(made.dumps(), unsafe=True)  # a function of a test
    assert loaded.dumps() == made.dumps()
    assert loaded.run({"filter": {"documents": FOUND}}) == made.run({"filter": {"documents": FOUND}})
    with pytest.raises(ValueError, match="collapse is a CollapseOptions, which a stored pipeline cannot hold: "):
        NearDuplicateFilter(collapse=CollapseOptions()).to_dict()


def file_name(one: Any) -> int:
    return len(one.id) if isinstance(one, haystack.Document) else 1


def test_documents_without_room_come_out_beside_the_others() -> None:
    found = pipeline(max_tokens=30).run({"filter": {"documents": [FOUND[1], FOUND[4], FOUND[0]]}})["filter"]
    assert [one.id for one in found["documents"]] == ["2"]
    assert [one.id for one in found["left_out"]] == ["5", "1"]
    assert found["documents"][0].meta["near_duplicates_left_out"] == ["5", "1"]


def test_stored_sketches_are_used() -> None:
    stored = sketch_fields({"text": STEEL}, ["text"])["ndd"]
    documents = [haystack.Document(content=text, meta={"ndd": stored}) for text in (STEEL, BUDGET)]
    assert len(NearDuplicateFilter(contained=False).run(documents)["documents"]) == 1


def test_behind_elasticsearchs_own_retriever(engine: Engine, index: str) -> None:
    """The retriever of elasticsearch-haystack finds, and the filter shows what is different."""
    stores = pytest.importorskip("haystack_integrations.document_stores.elasticsearch", reason=WHERE)
    retrievers = pytest.importorskip("haystack_integrations.components.retrievers.elasticsearch", reason=WHERE)
    if engine.family != "elasticsearch":
        pytest.skip("a retriever of Elasticsearch")
    store = stores.ElasticsearchDocumentStore(hosts=engine.url, index=index, request_timeout=60)
    store.write_documents(FOUND)
    made = haystack.Pipeline()
    made.add_component("retriever", retrievers.ElasticsearchBM25Retriever(document_store=store, top_k=50))
    made.add_component("filter", NearDuplicateFilter(size=10))
    made.connect("retriever.documents", "filter.documents")
    try:
        found = made.run({"retriever": {"query": "the"}})["filter"]["documents"]
    finally:
        store.client.close()
    assert len(found) == 3
    listed = [copy["id"] for one in found for copy in one.meta.get("near_duplicates", ())]
    assert sorted([one.id for one in found] + listed) == ["1", "2", "3", "4", "5"]
