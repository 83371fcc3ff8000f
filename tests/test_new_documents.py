"""The policy for new documents that resemble one of the index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.indexing.duplicate_policy import DuplicatePolicy, FoundDuplicate
from tests.engines.find import Engine
from tests.keyed import DOCUMENTS, OTHER, TEXT, create, store


def telling(told: list[FoundDuplicate], answer: bool | None) -> Callable[[FoundDuplicate], bool | None]:
    """What is told of duplicates, and whether they are stored."""

    def tell(found: FoundDuplicate) -> bool | None:
        told.append(found)
        return answer

    return tell


leave_out = telling([], False)


def test_a_document_that_resembles_one_of_the_index_is_told_and_left_out_on_demand(engine: Engine, index: str) -> None:
    new = [
        {"_id": "d", "body": f"{TEXT} Read more."},
        {"_id": "e", "body": "Nothing like it was ever seen before, here."},
    ]
    with engine.client() as client:
        create(client, index)
        for answer in (None, True, False):
            told: list[FoundDuplicate] = []
            policy = DuplicatePolicy(client=client, index=index, min_similarity=0.5, on_duplicate=telling(told, answer))
            actions = ndd.with_sketches(new, "body", keys=8, duplicates=policy)
            left_out = answer is False
            assert [one["_id"] for one in actions] == (["e"] if left_out else ["d", "e"])
            assert (actions.report.duplicates, actions.report.skipped) == (1, left_out)
            (one,) = told
            assert (one.id, one.of, one.action["body"]) == ("d", "a", new[0]["body"])
            assert one.action["ndd"]["sketch"] == ndd.sketch(new[0]["body"]).tolist(), "it can be sent later"


def test_duplicates_within_a_batch_and_before_a_refresh_are_found_and_never_chain(engine: Engine, index: str) -> None:
    words = TEXT.split()
    drift = [" ".join([f"word{i}{j}" for j in range(3 * i)] + words[: len(words) - i]) for i in range(4)]
    new = [{"_id": f"d{i}", "body": body} for i, body in enumerate([*drift, TEXT])]
    with engine.client() as client:
        create(client, index, [])
        told: list[Any] = []
        settings: Any = {"client": client, "index": index, "min_similarity": 0.5}
        policy = DuplicatePolicy(**settings, on_duplicate=telling(told, False))
        passed = list(ndd.with_sketches(new, "body", keys=16, duplicates=policy))
        of = {one.id: one.of for one in told}
        assert of["d4"] == "d0"
        assert set(of.values()) <= {one["_id"] for one in passed}
        store(client, index, ndd.with_sketches([{**new[0]}], "body", keys=16, duplicates=policy))
        again = ndd.with_sketches([{**new[0]}], "body", keys=16, duplicates=DuplicatePolicy(**settings))
        assert (len(list(again)), again.report.duplicates) == (1, 0), "a document is no duplicate of itself"


LETTERS = {letter: " ".join(f"{letter}{number}" for number in range(40)) for letter in "abc"}
IDS = st.one_of(st.integers(1, 4), st.integers(1, 4).map(str))
ACTIONS = st.one_of(
    st.fixed_dictionaries(
        {"_index": st.just("news"), "body": st.sampled_from([*LETTERS.values(), ""])}, optional={"_id": IDS}
    ),
    st.fixed_dictionaries({"_index": st.just("news"), "_id": IDS, "_op_type": st.just("delete")}),
    st.fixed_dictionaries(
        {
            "_index": st.just("news"),
            "_id": IDS,
            "_op_type": st.just("update"),
            "doc": st.sampled_from([*({"body": text} for text in LETTERS.values()), {"price": 3}]),
        }
    ),
)


@given(st.lists(ACTIONS, max_size=12), st.booleans(), st.booleans())
def test_a_duplicate_is_one_of_what_the_run_has_stored_by_then_and_all_else_passes(
    stream: list[dict[str, Any]], as_list: bool, leaves_out: bool
) -> None:
    """Whatever rewrites or deletes stand between, by a model of what is stored under each id."""
    told: list[FoundDuplicate] = []
    policy = DuplicatePolicy(client=NoSearch(), on_duplicate=telling(told, not leaves_out))
    passed = list(ndd.with_sketches(stream if as_list else iter(stream), "body", keys=8, duplicates=policy))
    plain = list(ndd.with_sketches(stream, "body", keys=8))
    originals: dict[str, str] = {}  # the text of each document that leads, by its id
    expected, sent = [], []
    for place, one in enumerate(stream):
        id, text = str(one.get("_id", f"no id {place}")), one.get("body", "")
        leading = {other for other in originals if originals[other] == text and other != id} if text else set()
        if leading:
            expected.append((one.get("_id"), leading))
        if leading and leaves_out:
            continue
        sent.append(plain[place])
        if one.get("doc") != {"price": 3}:
            originals.pop(id, None)
        if text and not leading:
            originals[id] = text
    assert passed == sent
    assert [found.id for found in told] == [None if id is None else str(id) for id, _ in expected]
    named = [(found.of, leading) for found, (_, leading) in zip(told, expected, strict=True)]
    assert all(of in leading or (of is None and any("no id" in one for one in leading)) for of, leading in named)


def test_a_document_that_this_run_has_given_another_text_has_no_copies_by_its_old_one(
    engine: Engine, index: str
) -> None:
    """A search finds the old text until the next refresh."""
    stream = [{"_id": "a", "body": OTHER}, {"_id": "b", "body": OTHER}, {"_id": "n", "body": TEXT}]
    with engine.client() as client:
        create(client, index)
        told: list[Any] = []
        policy = DuplicatePolicy(client=client, index=index, on_duplicate=told.append)
        assert len(list(ndd.with_sketches(stream, "body", keys=8, duplicates=policy))) == 3
        assert [(one.id, one.of) for one in told] == [("a", "c"), ("b", "c")]


def test_the_policy_works_with_an_asynchronous_client(engine: Engine, index: str) -> None:
    new = [{"_id": "e", "body": "Nothing like it was ever seen before, here."}]

    async def through() -> list[dict[str, Any]]:
        async with engine.async_client() as client:
            policy = DuplicatePolicy(client=client, index=index, on_duplicate=leave_out)
            actions = ndd.with_sketches([{"_id": "d", "body": TEXT}, *new], "body", keys=8, duplicates=policy)
            return [one async for one in actions]

    with engine.client() as client:
        create(client, index)
        assert [one["_id"] for one in asyncio.run(through())] == ["e"]


class NoSearch:
    """A client all of whose searches fail."""

    def msearch(self, body: list[Any]) -> dict[str, Any]:
        return {"responses": [{"error": {"type": "overloaded"}, "status": 503}] * (len(body) // 2)}


def test_when_the_search_fails_documents_are_stored_as_new_and_those_of_this_run_still_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = DuplicatePolicy(client=NoSearch(), index="news", on_duplicate=leave_out)
    given = [*DOCUMENTS, {"_id": "d", "body": TEXT}]
    for _ in range(2):
        actions = ndd.with_sketches(given, "body", keys=8, duplicates=policy)
        assert [one["_id"] for one in actions] == ["a", "c"]
    assert len([line for line in caplog.messages if "the search for duplicates failed" in line]) == 2, "once a run"


NOWHERE = "http://127.0.0.1:1"  # nobody listens there


@pytest.mark.parametrize(
    ("sync", "async_"), [("Elasticsearch", "AsyncElasticsearch"), ("OpenSearch", "AsyncOpenSearch")]
)
def test_when_no_search_gets_through_documents_are_stored_as_new_too(
    sync: str, async_: str, caplog: pytest.LogCaptureFixture
) -> None:
    clients = pytest.importorskip("opensearchpy" if "Open" in sync else "elasticsearch")
    given = [*DOCUMENTS, {"_id": "d", "body": TEXT}]

    async def through() -> list[Any]:
        async with getattr(clients, async_)(NOWHERE, max_retries=0) as client:
            policy = DuplicatePolicy(client=client, index="news", on_duplicate=leave_out)
            actions = ndd.with_sketches(given, "body", keys=8, duplicates=policy)
            return [one["_id"] async for one in actions]

    client = getattr(clients, sync)(NOWHERE, max_retries=0)
    policy = DuplicatePolicy(client=client, index="news", on_duplicate=leave_out)
    actions = ndd.with_sketches(given, "body", keys=8, duplicates=policy)
    assert [one["_id"] for one in actions] == ["a", "c"]
    assert asyncio.run(through()) == ["a", "c"]
    assert len([line for line in caplog.messages if line.startswith("the search for duplicates failed (")]) == 2


def test_only_the_last_documents_are_remembered() -> None:
    policy = DuplicatePolicy(client=NoSearch(), index="news", remembered=2, on_duplicate=leave_out)
    bodies = [" ".join(f"{letter}{number}" for number in range(20)) for letter in "abc"]
    new = [{"_id": str(i), "body": body} for i, body in enumerate([*bodies, bodies[2], bodies[0]])]
    actions = ndd.with_sketches(new, "body", keys=8, duplicates=policy)
    assert [one["_id"] for one in actions] == ["0", "1", "2", "4"]


def test_the_policy_says_what_it_needs() -> None:
    with pytest.raises(TypeError, match="unknown option 'acton'"):
        DuplicatePolicy(client=None, acton="skip")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="remembered must be a whole number, got '9'"):
        DuplicatePolicy(client=None, remembered="9")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"min_similarity must be in 0\.\.1, got 80"):
        DuplicatePolicy(client=None, min_similarity=80)
    actions = ndd.with_sketches(DOCUMENTS, "body", keys=8, duplicates=DuplicatePolicy(client=NoSearch()))
    with pytest.raises(ValueError, match=r"names no _index: name the index to search in DuplicatePolicy\(index="):
        list(actions)
