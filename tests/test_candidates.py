"""Near-duplicates in a whole index: search by keys, and the policy for new documents that resemble another."""

from __future__ import annotations

import asyncio
import importlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.cli import main
from ndd_search.indexing.all_pairs import Collection, all_duplicates, read_collection
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.candidates import CandidateSearch
from ndd_search.indexing.duplicate_policy import DuplicatePolicy
from ndd_search.indexing.mapping import mapping_properties
from ndd_search.matching.decision import Decision
from ndd_search.matching.measures import similar_pairs
from ndd_search.matching.rows import rows_of
from ndd_search.rest.stored_keys import shared_keys
from tests.collections import read
from tests.command_line import run
from tests.engines.find import MODULES, Engine

TEXT = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
COPY = f"LONDON (Wire) - {TEXT}"
OTHER = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
DOCUMENTS = [{"_id": "a", "body": TEXT}, {"_id": "b", "body": COPY}, {"_id": "c", "body": OTHER}]


def create(client: Any, index: str, documents: list[dict[str, Any]] = DOCUMENTS, **settings: Any) -> None:
    client.indices.create(index=index, body={"mappings": {"properties": mapping_properties(keys=True)}})
    store(client, index, ndd.with_sketches(documents, "body", **{"keys": 8, **settings}))


def store(client: Any, index: str, actions: Any) -> list[dict[str, Any]]:
    """Index, as a bulk helper does; returns the documents."""
    stored = [dict(action) for action in actions]
    lines = [
        line
        for one in stored
        for line in ({"index": {"_index": index, "_id": one["_id"]}}, {k: v for k, v in one.items() if k != "_id"})
    ]
    if lines:
        assert not client.bulk(body=lines, refresh=True)["errors"]
    return stored


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
        assert "--size must be at least 1" in run("duplicates", engine.url, index, "--size", 0, code=2).stderr


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
        settings = Backfill(index=index, fields=["body"], keys=8)
        assert settings.run(client).tally.written == 3
        assert settings.run(client).tally.written == 0
        client.indices.refresh(index=index)
        assert [one.id for one in ndd.find_duplicates(client, index, TEXT)] == ["a", "b"]


def test_a_new_document_is_marked_left_out_or_only_told(engine: Engine, index: str) -> None:
    new = [
        {"_id": "d", "body": f"{TEXT} Read more."},
        {"_id": "e", "body": "Nothing like it was ever seen before, here."},
    ]
    with engine.client() as client:
        create(client, index)
        told: list[Any] = []
        policy = {"client": client, "index": index, "min_similarity": 0.5, "on_duplicate": told.append}
        for action in ("report", "skip", "mark"):
            actions = ndd.with_sketches(new, "body", keys=8, duplicates=DuplicatePolicy(action, **policy))
            done = list(actions)
            assert actions.report.duplicates == 1
            assert [one["_id"] for one in done] == (["e"] if action == "skip" else ["d", "e"])
            marks = [one["ndd"].get("duplicate_of") for one in done]
            assert marks == (["a", None] if action == "mark" else [None] * len(done))
            assert actions.report.skipped == (action == "skip")
        assert [(one.id, one.of) for one in told] == [("d", "a")] * 3


def test_duplicates_within_a_batch_and_before_a_refresh_are_found_and_marks_never_chain(
    engine: Engine, index: str
) -> None:
    words = TEXT.split()
    drift = [" ".join([f"word{i}{j}" for j in range(3 * i)] + words[: len(words) - i]) for i in range(4)]
    new = [{"_id": f"d{i}", "body": body} for i, body in enumerate([*drift, TEXT])]
    with engine.client() as client:
        create(client, index, [])
        policy = DuplicatePolicy("mark", client=client, index=index, min_similarity=0.5)
        actions = ndd.with_sketches(new, "body", keys=16, duplicates=policy, batch_size=2)
        marks = {one["_id"]: one["ndd"].get("duplicate_of") for one in actions}
        assert marks["d4"] == "d0"
        leaders = {key for key, of in marks.items() if of is None}
        assert {of for of in marks.values() if of} <= leaders
        store(client, index, ndd.with_sketches([{**new[0]}], "body", keys=16, duplicates=policy))
        again = list(ndd.with_sketches([{**new[0]}], "body", keys=16, duplicates=policy))
        assert "duplicate_of" not in again[0]["ndd"], "a document is no duplicate of itself"


PRICED = [{"_id": "a", "body": TEXT, "price": 2}, {"_id": "b", "body": COPY, "price": 2}]
COPIES = [{"_id": str(number), "body": f"{TEXT} {number}"} for number in range(6)]


@pytest.mark.parametrize(
    ("before", "stream", "expected"),
    [
        (DOCUMENTS, PRICED, {"a": TEXT, "b": COPY}),
        (DOCUMENTS, [{"_id": "a", "body": OTHER}, {"_id": "c", "body": TEXT}], {"a": OTHER, "c": TEXT}),
        (DOCUMENTS[:1], [{"_op_type": "delete", "_id": "a"}, {"_id": "n", "body": TEXT}], {"n": TEXT}),
        (DOCUMENTS[:1], [{"_id": "a", "body": OTHER}, {"_id": "n", "body": TEXT}], {"a": OTHER, "n": TEXT}),
        (DOCUMENTS[:1], [{"_id": "n", "body": COPY}, {"_id": "a", "body": OTHER}], {"a": OTHER, "n": COPY}),
        ([], [{"_id": 5, "body": TEXT}, {"_id": "5", "body": COPY}], {"5": COPY}),
        ([{"_id": "5", "body": OTHER}, {"_id": "6", "body": TEXT}], [{"_id": 5, "body": COPY}], {"5": COPY}),
        (DOCUMENTS[:1], [{"_id": "n", "body": COPY}, {"_op_type": "create", "_id": "m", "body": COPY}], {"a": TEXT}),
    ],
    ids=["a new price", "a swap", "deleted first", "rewritten first", "rewritten after", "5", "5 is there", "copies"],
)
@pytest.mark.parametrize("refreshed", [True, False])
def test_with_skip_a_text_is_missing_only_where_it_stays_under_another_id(
    engine: Engine, index: str, before: Any, stream: Any, expected: dict[str, str], refreshed: bool
) -> None:
    helpers = importlib.import_module(f"{MODULES[engine.family]}.helpers")
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties(keys=True)}})
        client.indices.put_alias(index=index, name=f"{index}-alias")
        given = [{"_index": index, **one} for one in before]
        helpers.bulk(client, ndd.with_sketches(given, "body", keys=8), refresh=refreshed)
        policy = DuplicatePolicy("skip", client=client, min_similarity=0.5)
        given = [{"_index": f"{index}-alias" if place % 2 else index, **one} for place, one in enumerate(stream)]
        helpers.bulk(client, ndd.with_sketches(iter(given), "body", keys=8, duplicates=policy), refresh=True)
        hits = client.search(index=index, body={})["hits"]["hits"]
        texts = {hit["_id"]: hit["_source"]["body"] for hit in hits}
        assert {id: texts.get(id) for id in expected} == expected
        if "n" not in expected and refreshed:
            assert "n" not in texts
            assert "m" not in texts


def test_of_copies_that_are_sent_again_one_stays_unmarked(engine: Engine, index: str) -> None:
    helpers = importlib.import_module(f"{MODULES[engine.family]}.helpers")
    with engine.client() as client:
        create(client, index, COPIES)
        for _ in range(2):
            policy = DuplicatePolicy("mark", client=client, index=index, min_similarity=0.5)
            given = [{"_index": index, **one} for one in COPIES]
            helpers.bulk(client, ndd.with_sketches(given, "body", keys=8, duplicates=policy), refresh=True)
            hits = client.search(index=index, body={})["hits"]["hits"]
            marks = {hit["_id"]: hit["_source"]["ndd"].get("duplicate_of") for hit in hits}
            leaders = {id for id, of in marks.items() if of is None}
            assert leaders
            assert {of for of in marks.values() if of} <= leaders


def test_the_policy_works_with_an_asynchronous_client(engine: Engine, index: str) -> None:
    async def through() -> list[dict[str, Any]]:
        async with engine.async_client() as client:
            policy = DuplicatePolicy("mark", client=client, index=index)
            actions = ndd.with_sketches([{"_id": "d", "body": TEXT}], "body", keys=8, duplicates=policy)
            return [one async for one in actions]

    with engine.client() as client:
        create(client, index)
        assert asyncio.run(through())[0]["ndd"]["duplicate_of"] == "a"


def created(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Actions that never replace a document."""
    return [{"_op_type": "create", **one} for one in documents]


class NoSearch:
    """A client all of whose searches fail."""

    def msearch(self, body: list[Any]) -> dict[str, Any]:
        return {"responses": [{"error": {"type": "overloaded"}, "status": 503}] * (len(body) // 2)}


def test_when_the_search_fails_documents_are_stored_as_new_and_those_of_this_run_still_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = DuplicatePolicy("skip", client=NoSearch(), index="news")
    given = [*DOCUMENTS, {"_id": "d", "body": TEXT}]
    actions = ndd.with_sketches(created(given), "body", keys=8, duplicates=policy)
    assert [one["_id"] for one in actions] == ["a", "c"]
    actions = ndd.with_sketches(given, "body", keys=8, duplicates=policy)
    assert [one["_id"] for one in actions] == ["a", "b", "c", "d"], "each may replace a document of another text"
    assert len([line for line in caplog.messages if "the search for duplicates failed" in line]) == 2, "once a run"


NOWHERE = "http://127.0.0.1:1"  # nobody listens there


@pytest.mark.parametrize(
    ("sync", "async_"), [("Elasticsearch", "AsyncElasticsearch"), ("OpenSearch", "AsyncOpenSearch")]
)
def test_when_no_search_gets_through_documents_are_stored_as_new_too(
    sync: str, async_: str, caplog: pytest.LogCaptureFixture
) -> None:
    clients = pytest.importorskip("opensearchpy" if "Open" in sync else "elasticsearch")
    given = created([*DOCUMENTS, {"_id": "d", "body": TEXT}])

    async def through() -> list[Any]:
        async with getattr(clients, async_)(NOWHERE, max_retries=0) as client:
            policy = DuplicatePolicy("skip", client=client, index="news")
            actions = ndd.with_sketches(given, "body", keys=8, duplicates=policy)
            return [one["_id"] async for one in actions]

    policy = DuplicatePolicy("skip", client=getattr(clients, sync)(NOWHERE, max_retries=0), index="news")
    actions = ndd.with_sketches(given, "body", keys=8, duplicates=policy)
    assert [one["_id"] for one in actions] == ["a", "c"]
    assert asyncio.run(through()) == ["a", "c"]
    assert len([line for line in caplog.messages if line.startswith("the search for duplicates failed (")]) == 2


def test_only_the_last_documents_are_remembered() -> None:
    policy = DuplicatePolicy("skip", client=NoSearch(), index="news", remembered=2)
    bodies = [" ".join(f"{letter}{number}" for number in range(20)) for letter in "abc"]
    new = [{"_id": str(i), "body": body} for i, body in enumerate([*bodies, bodies[2], bodies[0]])]
    actions = ndd.with_sketches(created(new), "body", keys=8, duplicates=policy)
    assert [one["_id"] for one in actions] == ["0", "1", "2", "4"]


def test_the_policy_says_what_it_needs() -> None:
    with pytest.raises(ValueError, match="action must be"):
        DuplicatePolicy("drop", client=None)  # type: ignore[arg-type]
    actions = ndd.with_sketches(DOCUMENTS, "body", keys=8, duplicates=DuplicatePolicy("mark", client=NoSearch()))
    with pytest.raises(ValueError, match=r"names no _index: name the index to search in DuplicatePolicy\(index="):
        list(actions)
