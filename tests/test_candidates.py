"""Near-duplicates in a whole index: search by keys."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.cli import main
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.all_pairs import Collection, all_duplicates, read_collection
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.candidates import CandidateSearch
from ndd_search.indexing.mapping import mapping_properties
from ndd_search.matching.decision import Decision
from ndd_search.matching.measures import similar_pairs
from ndd_search.matching.rows import rows_of
from ndd_search.rest.stored_keys import shared_keys
from tests.collections import read
from tests.command_line import run
from tests.engines.find import Engine
from tests.keyed import COPY, DOCUMENTS, OTHER, TEXT, create, store


def test_a_text_and_a_sketch_find_what_resembles_them_most_similar_first(engine: Engine, index: str) -> None:
    with engine.client() as client:
        create(client, index)
        found = ndd.find_duplicates(client, index, TEXT)
        assert [(one.id, one.index) for one in found] == [("a", index), ("b", index)]
        assert found[0].similarity == 1.0
        assert found[1].similarity == pytest.approx(ndd.resemblance(ndd.sketch(TEXT), ndd.sketch(COPY), 64))
        assert ndd.find_duplicates(client, index, ndd.sketch(TEXT), size=1) == found[:1]
        assert ndd.find_duplicates(client, index, TEXT, min_similarity=1.0) == found[:1]
        assert ndd.find_duplicates(client, index, "Something else altogether, of which nothing is known.") == []
        assert ndd.find_duplicates(client, index, "") == []


def test_a_wrapped_client_finds_them_too(engine: Engine, index: str) -> None:
    with engine.client() as client:
        create(client, index)
        ndd.wrap(client)
        assert [one.id for one in ndd.find_duplicates(client, index, TEXT)] == ["a", "b"]


def test_short_texts_are_found_only_when_they_are_identical(engine: Engine, index: str) -> None:
    with engine.client() as client:
        create(client, index, [{"_id": "1", "body": "red shoes for men"}, {"_id": "2", "body": "red shoes for boys"}])
        assert [one.id for one in ndd.find_duplicates(client, index, "Red shoes, for men")] == ["1"]
        assert ndd.find_duplicates(client, index, "red shoes for all") == []


def test_documents_of_another_recipe_are_not_compared(engine: Engine, index: str) -> None:
    with engine.client() as client:
        create(client, index, recipe=ndd.Recipe.words(k=128))
        assert ndd.find_duplicates(client, index, TEXT) == []
        assert len(ndd.find_duplicates(client, index, TEXT, recipe=ndd.Recipe.words(k=128))) == 2


def test_all_pairs_of_a_collection_are_found_and_nothing_else_is(engine: Engine, index: str) -> None:
    documents = [{"_id": one["id"], "body": one["text"]} for one in read("xquad_pages")[:800]]
    ids, sketches = [one["_id"] for one in documents], ndd.sketch_many(one["body"] for one in documents)
    pairs = similar_pairs(rows_of(sketches, 64), Decision.of(0.5, ndd.Recipe()))
    enough = [len(sketches[i]) >= 8 and len(sketches[j]) >= 8 for i, j in zip(pairs.first, pairs.second, strict=True)]
    pairs = pairs.where((pairs.similarity == 1.0) | enough)
    expected = {tuple(sorted((ids[i], ids[j]))) for i, j in zip(pairs.first, pairs.second, strict=True)}
    assert len(expected) > 100
    search = CandidateSearch(keys=8, min_similarity=0.5)
    with engine.client() as client:
        create(client, index, documents, keys=0)
        found = [(of, one.id) for of, one in all_duplicates(client, index, search)]
        assert set(found) == expected
        assert len(found) == len(expected)


@given(st.integers(1, 64), st.floats(0.01, 1))
def test_the_keys_that_must_be_shared_are_at_least_one_and_at_most_all(keys: int, bar: float) -> None:
    assert 1 <= shared_keys(keys, bar) <= keys
    assert shared_keys(keys, 1.0) == keys


def test_copies_of_one_id_in_two_indexes_are_a_pair(engine: Engine, index: str) -> None:
    other = f"{index}-other"
    with engine.client() as client:
        create(client, index)
        create(client, other, DOCUMENTS[:1])
        try:
            found = list(all_duplicates(client, f"{index}*", CandidateSearch()))
            of_one = run("duplicates", engine.url, f"{index}*", "--of", "a", "--json").stdout.splitlines()
        finally:
            client.indices.delete(index=other)
    assert sorted((of, one.id, one.index) for of, one in found) == [
        ("a", "a", other),
        ("a", "b", index),
        ("a", "b", index),
    ]
    assert sorted(json.loads(line)["id"] for line in of_one) == ["a", "b"]


@pytest.mark.parametrize("keys", [8, 16])
def test_at_most_one_in_a_hundred_pairs_at_the_bar_shares_too_few_keys(keys: int) -> None:
    rng, bar, shingles = np.random.default_rng(7), 0.5, 300
    union = round(2 * shingles / (1 + bar))
    values = rng.random((2_000, union))
    first, second = np.sort(values[:, :shingles])[:, :keys], np.sort(values[:, union - shingles :])[:, :keys]
    shared = (first[:, :, None] == second[:, None, :]).sum(axis=(1, 2))
    assert (shared < shared_keys(keys, bar)).mean() <= 0.015
    assert (shared < shared_keys(keys, bar) + 1).mean() > 0.01, "more could be asked for"


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"keys": 0}, "keys must be 1"), ({"examined": 0}, "examined must be"), ({"min_similarity": 0.0}, "above 0")],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CandidateSearch(**settings)


@pytest.mark.newest_servers
def test_the_command_line_finds_them_for_a_document_for_a_text_and_in_the_whole_index(
    engine: Engine, index: str, tmp_path: Any
) -> None:
    text = tmp_path / "text"
    text.write_text(COPY)
    with engine.client() as client:
        create(client, index)
        pairs = [json.loads(line) for line in run("duplicates", engine.url, index, "--json").stdout.splitlines()]
        assert [(one["of"], one["id"]) for one in pairs] == [("a", "b")]
        of = json.loads(run("duplicates", engine.url, index, "--of", "b", "--json").stdout)
        assert (of["of"], of["id"], of["similarity"]) == ("b", "a", pairs[0]["similarity"])
        assert "1.000" in run("duplicates", engine.url, index, "--text", text).stdout
        assert run("duplicates", engine.url, index, "--of", "c", code=1).stdout == "nothing found\n"
        assert "no document d" in run("duplicates", engine.url, index, "--of", "d", code=2).stderr


@pytest.mark.newest_servers
def test_the_command_line_says_when_there_are_more_and_leaves_nothing_open(engine: Engine, index: str) -> None:
    with engine.client() as client:
        create(client, index)
        copies = [{"_id": f"again{number}", "body": TEXT} for number in range(3)]
        store(client, index, ndd.with_sketches(copies, "body", keys=8))
        client.indices.refresh(index=index)
        done = run("duplicates", engine.url, index, "--size", 1)
        assert "there are more: --size shows more" in done.stdout
        assert done.stderr == ""
        assert "there are more" not in run("duplicates", engine.url, index, "--size", 10).stdout
        done = run("duplicates", engine.url, index, "--of", "again0", "--size", 3)
        assert "there are more: --size shows more" in done.stdout
        assert done.stderr == ""
        assert "there are more" not in run("duplicates", engine.url, index, "--of", "again0", "--size", 4).stdout
        done = run("duplicates", engine.url, index, "--of", "again0", "--size", 1, "--json")
        assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == {"a", "b", "again1", "again2"}
        done = run("duplicates", engine.url, index, "--size", 0, code=2)
        assert "argument --size: expected a whole number in 1.." in done.stderr


def test_all_pairs_of_near_identical_documents_are_found_without_keys(engine: Engine, index: str) -> None:
    """However many documents resemble one, none is left out: neither by a cap nor for keys that were not stored."""
    documents = [{"_id": f"{n:03}", "body": f"{TEXT} {OTHER} Edition {n // 2}."} for n in range(300)]
    with engine.client() as client:
        create(client, index, documents, keys=0)
        found = {(of, one.id) for of, one in all_duplicates(client, index, CandidateSearch())}
        assert found == {(f"{i:03}", f"{j:03}") for j in range(300) for i in range(j)}
        done = run("duplicates", engine.url, index, "--json")
        assert len(done.stdout.splitlines()) == len(found)
        assert done.stderr == ""


@pytest.mark.parametrize("count", [0, 1, 6, 7, 40])
def test_all_pairs_are_found_part_by_part_as_they_are_at_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the pairs might not fit in memory, the sketches are compared in parts."""
    texts = [f"{TEXT} {OTHER} Edition {n // 2}." if n % 3 else f"Text number {n} {'x' * n}" for n in range(count)]
    sketches = ndd.sketch_many(texts)
    collection = Collection([[(f"{n:02}", "news")] for n in range(count)], sketches, 0)
    found = list(collection.pairs(CandidateSearch()))
    monkeypatch.setattr("ndd_search.indexing.all_pairs._PART", 3)
    monkeypatch.setattr("ndd_search.indexing.all_pairs._SHARED", -1)
    parts = list(collection.pairs(CandidateSearch()))
    assert len(parts) == len(found)
    assert set(parts) == set(found)
    assert bool(found) == (count > 2)


@pytest.mark.newest_servers
def test_documents_that_were_not_compared_are_counted_and_told(engine: Engine, index: str) -> None:
    """Documents without a sketch of the recipe are counted, with exit code 3; those without any text resemble none."""
    with engine.client() as client:
        create(client, index)
        store(client, index, [{"_id": "x", "body": TEXT}, {"_id": "y", "body": TEXT, "ndd": {"recipe": "stale"}}])
        store(client, index, [{"_id": "z", "ndd": {"sketch": [], "recipe": ndd.Recipe().id}}])
        assert read_collection(client, index, CandidateSearch()).uncompared == 2
        done = run("duplicates", engine.url, index, "--json", code=3)
        assert "2 documents not compared, with no sketch of recipe w3-k64-v1 in ndd" in done.stderr
        assert len(done.stdout.splitlines()) == 1
        refused = run("duplicates", engine.url, index, "--field", "other", code=2).stderr
        assert "its documents have no sketch of recipe w3-k64-v1 in other" in refused


@pytest.mark.newest_servers
def test_as_many_duplicates_of_a_document_are_found_as_are_asked_for(
    engine: Engine, index: str, monkeypatch: pytest.MonkeyPatch, capsys: Any, caplog: Any
) -> None:
    """More candidates are compared until the requested number is found; if a limit ends that, it is reported."""
    with engine.client() as client:
        create(client, index, [{"_id": str(number), "body": TEXT} for number in range(250)])
        assert len(ndd.find_duplicates(client, index, TEXT, size=1_000)) == 250
        assert len(ndd.find_duplicates(client, index, TEXT, size=150)) == 150
        with pytest.raises(ValueError, match=r"size must be 1\.\.10,000, got 0"):
            ndd.find_duplicates(client, index, TEXT, size=0)
        assert not caplog.messages
        words = ["duplicates", engine.url, index, "--of", "7"]
        assert main([*words, "--json"]) == 0
        told = capsys.readouterr()
        assert (len(told.out.splitlines()), told.err) == (249, "")
        monkeypatch.setattr("ndd_search.indexing.candidates.MOST_EXAMINED", 100)
        assert len(ndd.find_duplicates(client, index, TEXT, size=100, examined=20)) == 100
        assert main([*words, "--json"]) == 3
        told = capsys.readouterr()
        assert len(told.out.splitlines()) in (99, 100)  # the document itself is one of those, or is not
        assert "documents that share most keys with it were compared: there may be more" in told.err
        assert main(words) == 0
        assert "there are more: --size shows more" in capsys.readouterr().out


def test_keys_are_added_to_sketches_that_were_made_without(engine: Engine, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        store(client, index, ndd.with_sketches([*DOCUMENTS, {"_id": "empty", "body": "?"}], "body"))
        assert "has no keys" in run("duplicates", engine.url, index, "--of", "a", code=2).stderr
        with pytest.raises(IndexUnusable, match=r"has no keys \(ndd_keys\); store them"):
            ndd.find_duplicates(client, index, TEXT)
        settings = Backfill(index=index, fields=["body"], keys=8)
        assert settings.run(client).tally.written == 3
        assert settings.run(client).tally.written == 0
        client.indices.refresh(index=index)
        assert [one.id for one in ndd.find_duplicates(client, index, TEXT)] == ["a", "b"]
