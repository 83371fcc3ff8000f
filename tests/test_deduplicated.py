"""A store that is asked whether it knows a text already, and what replaced it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ndd_search as ndd
from ndd_search.embedded.deduplicated_store import Deduplicated, EngineIndex
from ndd_search.errors import InvalidDocument
from tests.engines.find import Engine

TEA = "The user prefers green tea in the morning, without sugar, and black tea after lunch."
TEA_AGAIN = "NOTE: The user prefers green tea in the morning, without sugar, and black tea after lunch!"
MERGED = "PR {} was merged today by the team into the main branch, after a review by two people."


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[ndd.Index]:
    with ndd.Index.open(tmp_path / "memories.idx", text=["text"]) as index:
        yield index


@pytest.fixture
def store(folder: ndd.Index) -> Deduplicated:
    return Deduplicated(folder, date="at")


def test_a_text_is_stored_once_and_the_newer_one_takes_the_place_and_id_of_the_older(
    store: Deduplicated, folder: ndd.Index
) -> None:
    first = store.add({"text": TEA, "at": "2025-03-01", "by": "ann"})
    assert (first.status, first.replaced) == ("new", None)
    assert store.add({"text": TEA_AGAIN, "at": "2025-02-01"})[:2] == ("known", first.id)
    assert store.add({"text": TEA_AGAIN})[:2] == ("known", first.id)
    newer = store.add({"id": "mine", "text": TEA_AGAIN, "at": "2025-04-01"})
    assert newer[:2] == ("newer", first.id)
    assert newer.replaced == {"id": first.id, "text": TEA, "at": "2025-03-01", "by": "ann"}
    assert len(folder) == 1
    assert store.known(TEA) == store.index.get(first.id) == {"id": first.id, "text": TEA_AGAIN, "at": "2025-04-01"}
    assert store.add({"id": first.id, "text": "Another text under the same id, of a later day.", "at": "2026"}).id


def test_texts_that_differ_in_a_number_alone_are_all_known(store: Deduplicated, folder: ndd.Index) -> None:
    added = [store.add(MERGED.format(number)) for number in (260, 480, 260, 481)]
    assert [one.status for one in added] == ["new", "new", "known", "new"]
    assert added[2].id == added[0].id
    assert store.known(MERGED.format(999)) is None
    assert len(folder) == 3


def test_a_text_found_among_many_is_the_same_after_the_folder_is_opened_again(
    store: Deduplicated, folder: ndd.Index
) -> None:
    texts = [f"The {a} of the {b} asked for {c} and got it." for a in "abc" for b in "defg" for c in ("tea", "time")]
    store.index.add([{"id": str(number), "text": text * 3} for number, text in enumerate(texts)])
    id = store.add(TEA).id
    again = Deduplicated(ndd.Index.open(folder.path), date="at")
    assert again.add({"text": TEA_AGAIN})[:2] == ("known", id)
    assert again.known("Nothing like it was ever said here before.") is None


def test_what_has_no_text_is_refused(store: Deduplicated) -> None:
    with pytest.raises(InvalidDocument, match="no text in text"):
        store.add({"body": TEA})
    with pytest.raises(TypeError, match="a document is a text or a mapping, got 3"):
        store.add(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unknown option"):
        Deduplicated(store.index, min_similarty=0.5)  # type: ignore[call-arg]


@pytest.mark.newest_servers
def test_an_index_of_an_engine_holds_each_text_once_as_a_folder_does(
    engine: Engine, index: str, store: Deduplicated, folder: ndd.Index
) -> None:
    documents = [
        {"text": TEA, "at": "2025-03-01", "by": "ann"},
        {"text": TEA_AGAIN, "at": "2025-02-01"},
        {"id": "mine", "text": TEA_AGAIN, "at": "2025-04-01"},
        *({"text": MERGED.format(number), "at": "2025-05-01"} for number in (260, 480, 260)),
        {"id": "tea", "text": f'{TEA} Or "coffee" - who knows?', "at": "2025-06-01"},
    ]
    with engine.client() as client:
        properties = {"text": {"type": "text"}, **ndd.indexing.mapping_properties()}
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        wrapped = ndd.wrap(client, indexes={index: {"text": ["text"]}})
        for one in (client, wrapped):
            over = Deduplicated(EngineIndex(one, index, ["text"]), date="at")
            for document in documents:
                added, expected = over.add(document), store.add(document)
                assert (added.status, added.id, added.similarity) == (expected.status, expected.id, expected.similarity)
            held = {hit["_id"] for hit in client.search(index=index, body={"size": 100})["hits"]["hits"]}
            assert len(held) == len(folder)
            assert over.known(TEA) == store.known(TEA)
        assert over.known("Nothing like it was ever said here before.") is None
        client.indices.delete(index=index)


def test_without_a_date_a_correction_of_a_text_is_stored_beside_it(folder: ndd.Index) -> None:
    """Nothing tells which of them is true now. With a date, or where min_similarity is given, the store decides."""
    said = "The user moved to Lisbon last spring, works from home, and wants to be called in the morning before nine."
    others = said.replace("wants", "does not want"), said.replace("Lisbon", "Porto")
    store = Deduplicated(folder)
    assert [store.add(text).status for text in (said, *others, *others, said.upper() + "!")] == [
        *("new", "new", "new"),
        *("known", "known", "known"),
    ]
    assert store.known(others[0]) == folder.get(store.add(others[0]).id)
    assert store.known(said.replace("spring", "autumn")) is None
    loose = Deduplicated(folder, min_similarity=0.5)
    assert loose.add(said.replace("spring", "autumn")).status == "known"


@pytest.mark.parametrize("text", ["$", "😀 %", "x" * 500])
def test_a_text_that_no_search_finds_is_known(folder: ndd.Index, text: str) -> None:
    """It has no word, or one that is too long to be indexed."""
    store = Deduplicated(folder)
    assert store.known(text) is None
    assert [store.add(text).status for _ in range(2)] == ["new", "known"]
    assert store.known(text) == folder.get(store.add(text).id)
