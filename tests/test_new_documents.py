"""The policy for new documents that resemble one of the index."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.indexing.duplicate_policy import DuplicatePolicy
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import MODULES, Engine
from tests.keyed import COPY, DOCUMENTS, OTHER, TEXT, create, store


def test_a_new_document_is_left_out_or_only_told(engine: Engine, index: str) -> None:
    new = [
        {"_id": "d", "body": f"{TEXT} Read more."},
        {"_id": "e", "body": "Nothing like it was ever seen before, here."},
    ]
    with engine.client() as client:
        create(client, index)
        told: list[Any] = []
        policy = {"client": client, "index": index, "min_similarity": 0.5, "on_duplicate": told.append}
        for action in ("report", "skip"):
            actions = ndd.with_sketches(new, "body", keys=8, duplicates=DuplicatePolicy(action, **policy))
            done = list(actions)
            assert actions.report.duplicates == 1
            assert [one["_id"] for one in done] == (["e"] if action == "skip" else ["d", "e"])
            assert actions.report.skipped == (action == "skip")
        assert [(one.id, one.of) for one in told] == [("d", "a")] * 2


def test_duplicates_within_a_batch_and_before_a_refresh_are_found_and_never_chain(engine: Engine, index: str) -> None:
    words = TEXT.split()
    drift = [" ".join([f"word{i}{j}" for j in range(3 * i)] + words[: len(words) - i]) for i in range(4)]
    new = [{"_id": f"d{i}", "body": body} for i, body in enumerate([*drift, TEXT])]
    with engine.client() as client:
        create(client, index, [])
        told: list[Any] = []
        settings: Any = {"client": client, "index": index, "min_similarity": 0.5, "on_duplicate": told.append}
        policy = DuplicatePolicy("skip", **settings)
        passed = list(ndd.with_sketches(new, "body", keys=16, duplicates=policy))
        of = {one.id: one.of for one in told}
        assert of["d4"] == "d0"
        assert set(of.values()) <= {one["_id"] for one in passed}
        store(client, index, ndd.with_sketches([{**new[0]}], "body", keys=16, duplicates=policy))
        told.clear()
        again = ndd.with_sketches([{**new[0]}], "body", keys=16, duplicates=DuplicatePolicy("report", **settings))
        assert (len(list(again)), told) == (1, []), "a document is no duplicate of itself"


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
@pytest.mark.newest_servers
def test_with_skip_a_text_is_missing_only_where_it_stays_under_another_id(
    engine: Engine, index: str, before: Any, stream: Any, expected: dict[str, str], refreshed: bool
) -> None:
    helpers = importlib.import_module(f"{MODULES[engine.family]}.helpers")
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
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


def test_the_policy_works_with_an_asynchronous_client(engine: Engine, index: str) -> None:
    new = [{"_id": "e", "body": "Nothing like it was ever seen before, here."}]

    async def through() -> list[dict[str, Any]]:
        async with engine.async_client() as client:
            policy = DuplicatePolicy("skip", client=client, index=index)
            actions = ndd.with_sketches([{"_id": "d", "body": TEXT}, *new], "body", keys=8, duplicates=policy)
            return [one async for one in actions]

    with engine.client() as client:
        create(client, index)
        assert [one["_id"] for one in asyncio.run(through())] == ["e"]


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
    with pytest.raises(TypeError, match="remembered must be a whole number, got '9'"):
        DuplicatePolicy("skip", client=None, remembered="9")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"min_similarity must be in 0\.\.1, got 80"):
        DuplicatePolicy("skip", client=None, min_similarity=80)
    actions = ndd.with_sketches(DOCUMENTS, "body", keys=8, duplicates=DuplicatePolicy("skip", client=NoSearch()))
    with pytest.raises(ValueError, match=r"names no _index: name the index to search in DuplicatePolicy\(index="):
        list(actions)
