"""The filter of LangChain, in LangChain: `make test-third-parties` installs it and runs this."""

import asyncio
from typing import Any

import pytest

from ndd_search.indexing.with_sketches import sketch_fields
from tests.engines.find import Engine
from tests.integrations.texts import BUDGET, FINAL, REPORT, STEEL, STEEL_AGAIN

WHERE = "run `make test-third-parties`"
documents = pytest.importorskip("langchain_core.documents", reason=WHERE)
load = pytest.importorskip("langchain_core.load", reason=WHERE)
retrievers = pytest.importorskip("langchain_core.retrievers", reason=WHERE)
pydantic = pytest.importorskip("pydantic", reason=WHERE)

from ndd_search.integrations.langchain import NearDuplicateFilter  # noqa: E402 - needs what was looked for above


def document(text: str, id: str | None = None, **metadata: Any) -> Any:
    return documents.Document(page_content=text, id=id, metadata=metadata)


FOUND = [
    document(STEEL, "1", source="a.html", date="2024-01-01"),
    document(FINAL, "2", source="b.html"),
    document(STEEL_AGAIN, "3", source="c.html", date="2024-02-01"),
    document(REPORT, "4", source="d.html"),
    document(BUDGET, "5", source="e.html"),
]


class Fixed(retrievers.BaseRetriever):  # type: ignore[name-defined,misc]
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
        return list(FOUND)


def test_a_compression_retriever_shows_different_documents_and_what_they_stand_for() -> None:
    classic = pytest.importorskip("langchain_classic.retrievers", reason=WHERE)
    retriever = classic.ContextualCompressionRetriever(
        base_compressor=NearDuplicateFilter(size=3), base_retriever=Fixed()
    )
    found = retriever.invoke("emissions")
    assert [one.page_content for one in found] == [STEEL, REPORT, BUDGET]
    (copy,) = found[0].metadata["near_duplicates"]
    assert (copy["id"], copy["source"], copy["relation"]) == ("3", "c.html", "similar")
    assert [one["id"] for one in found[1].metadata["near_duplicates"]] == ["2"]
    assert asyncio.run(retriever.ainvoke("emissions")) == found


def test_the_origins_of_copies_are_told_to_the_model() -> None:
    first, *others = NearDuplicateFilter(origins=["source", "date"]).compress_documents(FOUND, "")
    assert first.metadata["near_duplicate_origins"] == "2 sources, first a.html, 1 reprint, 0 edited"
    assert "near_duplicate_origins" not in others[-1].metadata


def test_a_document_that_stands_for_nothing_else_is_the_one_that_was_found() -> None:
    before = [one.model_copy(deep=True) for one in FOUND]
    assert NearDuplicateFilter().compress_documents(FOUND, "")[-1] is FOUND[-1]
    assert before == FOUND


def test_settings_name_fields_of_the_metadata() -> None:
    newest = NearDuplicateFilter(keep=["newest:date"], max_tokens=65)
    assert [one.id for one in newest.compress_documents(FOUND, "")] == ["3", "2"]
    apart = NearDuplicateFilter(guards=["same:date"], contained=False)
    assert apart.compress_documents(FOUND, "") == FOUND
    for same in ({"group_by": "date"}, {"max_per": ["date:1"]}):
        same_day = [document(text, text[:4], date="2024-01-01") for text in (STEEL, FINAL)]
        (shown,) = NearDuplicateFilter(**same).compress_documents(same_day, "")
        assert [one["id"] for one in shown.metadata["near_duplicates"]] == [FINAL[:4]]
        told = NearDuplicateFilter(**same, origins="date").compress_documents(same_day, "")[0].metadata
        assert told["near_duplicate_origins"].startswith("1 source, first 2024-01-01, 0 reprints")


def test_a_second_filter_keeps_what_the_first_one_listed() -> None:
    first = [one for part in (FOUND[:3], FOUND[3:]) for one in NearDuplicateFilter().compress_documents(part, "")]
    assert [one.id for one in first] == ["1", "2", "4", "5"]
    second = NearDuplicateFilter().compress_documents([*first, document(STEEL, "6", source="F.html")], "")
    listed = {one.id: [copy["id"] for copy in one.metadata.get("near_duplicates", [])] for one in second}
    assert listed == {"1": ["3", "6"], "4": ["2"], "5": []}
    named = {one.id: one.metadata.get("near_duplicate_sources") for one in second}
    assert named == {"1": ["a.html", "F.html", "c.html"], "4": ["b.html", "d.html"], "5": None}


def test_chunks_of_one_file_are_merged() -> None:
    text = f"{STEEL} {FINAL} {BUDGET}"
    chunks = [document(text[at : at + 200], source="a.txt", start_index=at, ndd={}) for at in (0, 150)]
    (merged,) = NearDuplicateFilter(merge=True).compress_documents(chunks[::-1], "")
    assert merged.page_content == text[:350]
    assert merged.metadata["start_index"] == 0
    assert "ndd" not in merged.metadata


def test_before_indexing_all_different_documents_are_kept_with_their_sketches() -> None:
    many = [document(f"{word} " * 12) for word in "abcdefghijkl"]
    kept = NearDuplicateFilter(size=1, store_sketches=True).transform_documents([*many, *many])
    assert [one.page_content for one in kept] == [one.page_content for one in many]
    of_field = sketch_fields({"text": kept[0].page_content}, ["text"])["ndd"]
    assert kept[0].metadata["ndd"] == {name: of_field[name] for name in kept[0].metadata["ndd"]}
    assert NearDuplicateFilter().compress_documents(kept, "") == kept[:10]


@pytest.mark.parametrize("settings", [{"size": -1}, {"min_similarity": 2}, {"recipe": "w"}, {"keep": ["best"]}])
def test_a_wrong_setting_is_refused_when_it_is_made(settings: Any) -> None:
    with pytest.raises(pydantic.ValidationError):
        NearDuplicateFilter(**settings)


@pytest.mark.filterwarnings("ignore:The function .loads. is in beta")
def test_it_is_stored_and_loaded_and_its_schema_names_the_options() -> None:
    made = NearDuplicateFilter(size=3, keep=["newest:date"], source="url")
    loaded = load.loads(load.dumps(made), valid_namespaces=["ndd_search"], allowed_objects=[NearDuplicateFilter])
    assert loaded == made
    assert loaded.compress_documents(FOUND, "") == made.compress_documents(FOUND, "")
    assert {"size", "max_tokens", "min_similarity", "source", "document"} <= set(
        NearDuplicateFilter.model_json_schema()["properties"]
    )
    assert NearDuplicateFilter(**made.model_dump()).compress_documents(FOUND, "") == loaded.compress_documents(
        FOUND, ""
    )


def test_documents_without_room_are_named_in_the_last_one_and_so_is_a_source_that_no_document_has(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = [FOUND[1], FOUND[4]]
    (shown,) = NearDuplicateFilter(max_tokens=30, source="ulr").compress_documents(given, "")
    assert shown.metadata["near_duplicates_left_out"] == ["5"]
    assert "none of 2 passages has anything under 'metadata.ulr'" in caplog.text


def test_a_misspelt_setting_is_refused_and_the_right_one_is_named() -> None:
    with pytest.raises(pydantic.ValidationError, match="did you mean max_tokens"):
        NearDuplicateFilter(max_token=5)


def test_over_elasticsearchs_own_retriever(engine: Engine, index: str) -> None:
    """The retriever of langchain-elasticsearch finds, and the filter shows what is different."""
    elastic = pytest.importorskip("langchain_elasticsearch", reason=WHERE)
    if engine.family != "elasticsearch":
        pytest.skip("a retriever of Elasticsearch")
    with engine.client() as client:
        for place, one in enumerate(FOUND):
            client.index(index=index, id=str(place), document={"body": one.page_content}, refresh=True)
        wide = elastic.ElasticsearchRetriever(
            index_name=index, body_func=lambda query: {"size": 50}, content_field="body", client=client
        )
        found = NearDuplicateFilter(size=3).compress_documents(wide.invoke("all"), "all")
    assert len(found) == 3
    listed = [copy["id"] for one in found for copy in one.metadata.get("near_duplicates", ())]
    assert sorted([one.metadata["_id"] for one in found] + listed) == ["0", "1", "2", "3", "4"]
