"""A policy for duplicates against a model: what is stored with it, beside what is stored without it.

The index is a small one in memory, with what matters here of a real one: a search sees what was there at the last
refresh, a read by id sees what is there now, and some documents are refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.indexing import duplicate_policy
from ndd_search.indexing.duplicate_policy import DuplicatePolicy

NEWS = "news"
CHUNK = 4  # actions that the helper below sends at a time
FAMILIES = {letter: " ".join(f"{letter}{number}" for number in range(40)) for letter in "abcd"}

Documents = dict[tuple[str, str], dict[str, Any]]


@dataclass
class Memory:
    """An index in memory. seen: as of the last refresh."""

    documents: Documents = field(default_factory=dict)
    seen: Documents = field(default_factory=dict)
    writes: int = 0

    def refresh(self) -> None:
        self.seen = dict(self.documents)

    def msearch(self, body: list[Any]) -> dict[str, Any]:
        pairs = zip(body[::2], body[1::2], strict=True)
        return {"responses": [{"hits": {"hits": list(self._hits(where["index"], one))}} for where, one in pairs]}

    def _hits(self, where: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        query = body["query"]["bool"]
        keys = {key for one in query["should"] for key in one["constant_score"]["filter"]["terms"]["ndd_keys"]}
        for (index, id), stored in self.seen.items():
            source = stored["_source"]
            if where not in (index, "*") or not source["ndd"]["sketch"]:
                continue
            if len(keys & set(source["ndd_keys"])) >= query["minimum_should_match"]:
                fields = {"ndd.sketch": source["ndd"]["sketch"], "ndd.recipe": [source["ndd"]["recipe"]]}
                yield {**stored, "_id": id, "_index": index, "fields": fields}

    def mget(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"docs": [self._read(one) for one in body["docs"]]}

    def _read(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        stored = self.documents.get((wanted["_index"], wanted["_id"]))
        return {"found": False} if stored is None else {"found": True, **stored}

    def write(self, action: Mapping[str, Any]) -> None:
        kind = action.get("_op_type", "index")
        key = (action["_index"], str(action.get("_id", f"auto-{action.get('number')}")))
        self.writes += 1
        if kind == "delete":
            self.documents.pop(key, None)
            return
        if kind == "update":
            if key in self.documents:
                old = self.documents[key]["_source"]
                new = {**old, **action["doc"], "ndd": {**old["ndd"], **action["doc"].get("ndd", {})}}
                self._put(key, new)
            elif "upsert" in action or action.get("doc_as_upsert"):
                self._put(
                    key, {"ndd": {"sketch": [], "recipe": ""}, "ndd_keys": [], **action.get("upsert", action["doc"])}
                )
            return
        source = {name: value for name, value in action.items() if not name.startswith("_")}
        if not source.get("refused") and not (kind == "create" and key in self.documents):
            self._put(key, {"ndd": {"sketch": [], "recipe": ""}, "ndd_keys": [], **source})

    def _put(self, key: tuple[str, str], source: dict[str, Any]) -> None:
        self.documents[key] = {"_source": source, "_seq_no": self.writes, "_primary_term": 1}


def store(index: Memory, actions: Iterable[dict[str, Any]], refresh: bool) -> None:
    """Send actions in chunks, as a bulk helper does."""
    chunk: list[dict[str, Any]] = []
    for action in actions:
        if len(chunk) == CHUNK:
            for one in chunk:
                index.write(one)
            if refresh:
                index.refresh()
            chunk = []
        chunk.append(action)
    for one in chunk:
        index.write(one)


def family(stored: Mapping[str, Any]) -> str:
    return str(stored["_source"].get("body", ""))[:1]


bodies = st.builds(lambda letter, tail: f"{FAMILIES[letter]} {tail}", st.sampled_from("abcd"), st.sampled_from("xyz"))
ids = st.one_of(st.integers(1, 5), st.integers(1, 5).map(str))
places = st.sampled_from([NEWS, "other"])
documents = st.fixed_dictionaries({"_index": places, "_id": ids, "body": bodies})
kept = st.fixed_dictionaries({"_index": places, "_id": ids, "body": bodies, "refused": st.just(True)})
made = st.builds(lambda one: {**one, "_op_type": "create"}, documents)
unnamed = st.fixed_dictionaries({"_index": places, "body": bodies})
lost = st.fixed_dictionaries({"_index": places, "body": bodies, "refused": st.just(True)})
deleted = st.fixed_dictionaries({"_op_type": st.just("delete"), "_index": places, "_id": ids})
changed = st.fixed_dictionaries(
    {
        "_op_type": st.just("update"),
        "_index": places,
        "_id": ids,
        "doc": st.one_of(bodies.map(lambda body: {"body": body}), st.just({"price": 3})),
    },
    optional={"upsert": bodies.map(lambda body: {"body": body}), "doc_as_upsert": st.just(True)},
)
textless = st.fixed_dictionaries({"_index": places, "_id": ids, "body": st.just("")})
streams = st.lists(st.one_of(documents, documents, made, unnamed, deleted, changed, textless, kept, lost), max_size=16)


def numbered(actions: Iterable[Mapping[str, Any]], filled: bool = True) -> list[dict[str, Any]]:
    """Each document with a number of its own; if filled, some at the end that resemble nothing fill the last chunks."""
    given = [
        one if one.get("_op_type") in ("delete", "update") else {**one, "number": number}
        for number, one in enumerate(actions)
    ]
    if not filled:
        return given  # type: ignore[return-value]
    words = [" ".join(f"{uuid.UUID(int=number * 99 + i).hex}" for i in range(20)) for number in range(3 * CHUNK)]
    return [*given, *({"_index": "end", "_id": f"end{i}", "body": f"~{one}"} for i, one in enumerate(words))]  # type: ignore[list-item]


def sketched(actions: Any, **more: Any) -> Any:
    return ndd.with_sketches(actions, "body", keys=8, **more)


@settings(deadline=None)
@given(st.lists(documents, max_size=6), streams, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_nothing_is_lost_but_new_copies_of_what_stays(
    before: list[Any], stream: list[Any], as_list: bool, refreshed: bool, refreshes: bool, filled: bool
) -> None:
    """All that is stored without a policy is stored, but texts under new ids that resemble a document that stays.

    filled: whether the run ends with documents that resemble nothing; else what was left out is sent after it.
    """
    if filled:  # only left_out finds copies of a document without an id that was refused
        stream = [one for one in stream if "_id" in one or not one.get("refused")]
    plain, index = Memory(), Memory()
    for one in (plain, index):
        store(one, sketched(numbered(before)), False)
        if refreshed:
            one.refresh()
    deletions = {(one["_index"], str(one["_id"])) for one in stream if one.get("_op_type") == "delete"}
    there = index.documents.keys() - deletions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicate_policy, "CHUNK", CHUNK)
        store(plain, sketched(numbered(stream, filled)), refreshes)
        policy = DuplicatePolicy("skip", client=index, min_similarity=0.7)
        given = numbered(stream, filled)
        actions = sketched(given if as_list else iter(given), duplicates=policy)
        store(index, actions, refreshes)
        if not filled:
            index.refresh()
            store(index, actions.left_out(), refreshes)
    assert set(index.documents) <= set(plain.documents)
    for key, stored in plain.documents.items():
        if key in index.documents:
            found = index.documents[key]["_source"]
            assert {**found, "ndd": None} == {**stored["_source"], "ndd": None}
            assert found["ndd"]["sketch"] == stored["_source"]["ndd"]["sketch"]
        else:
            assert key not in there
            assert family(stored) in {family(one) for (place, _), one in index.documents.items() if place == key[0]}


def test_a_document_is_rewritten_though_one_with_its_id_was_deleted_from_another_index() -> None:
    index = Memory()
    old = {"_index": NEWS, "_id": "3", "body": FAMILIES["a"]}
    store(index, sketched([old, {**old, "_id": "2"}]), False)
    index.refresh()
    stream = [{"_op_type": "delete", "_index": "other", "_id": "3"}, {**old, "price": 7}]
    store(index, sketched(stream, duplicates=DuplicatePolicy("skip", client=index)), False)
    assert index.documents[NEWS, "3"]["_source"]["price"] == 7


@pytest.mark.parametrize("upsert", [{"doc_as_upsert": True}, {"upsert": {"body": FAMILIES["b"], "price": 3}}])
def test_a_document_that_an_update_may_have_created_counts_as_there(upsert: dict[str, Any]) -> None:
    """So a copy with its id is written."""
    index = Memory()
    original = {"_index": NEWS, "_id": "1", "body": FAMILIES["a"]}
    store(index, sketched([original]), False)
    index.refresh()
    copy = {**original, "_id": "2", "price": 7}
    update = {"_op_type": "update", "_index": NEWS, "_id": "2", "doc": {"price": 3}, **upsert}
    store(index, sketched([update, copy], duplicates=DuplicatePolicy("skip", client=index)), False)
    assert index.documents[NEWS, "2"]["_source"]["price"] == 7


def test_no_copy_waits_for_another_that_may_be_refused_in_its_turn() -> None:
    index = Memory()
    refused = [{"_index": NEWS, "_id": id, "body": FAMILIES["a"], "refused": True} for id in "12"]
    actions = sketched([*refused, {"_index": NEWS, "_id": "3", "body": FAMILIES["a"]}],
                       duplicates=DuplicatePolicy("skip", client=index))  # fmt: skip
    store(index, actions, False)
    index.refresh()
    store(index, actions.left_out(), False)
    assert index.documents.keys() == {(NEWS, "3")}


@pytest.mark.parametrize("id", [{"_id": "1"}, {}])
@pytest.mark.parametrize("refused", [True, False])
def test_a_copy_of_a_document_refused_at_the_end_is_sent_afterwards(id: dict[str, str], refused: bool) -> None:
    index = Memory()
    original = {**id, "_index": NEWS, "body": FAMILIES["a"], "number": 0, **({"refused": True} if refused else {})}
    copy = {"_index": NEWS, "_id": "2", "body": FAMILIES["a"]}
    actions = sketched([original, copy], duplicates=DuplicatePolicy("skip", client=index))
    store(index, actions, False)
    assert (NEWS, "2") not in index.documents
    index.refresh()
    store(index, actions.left_out(), False)
    assert ((NEWS, "2") in index.documents) is refused
    assert actions.report.skipped == (not refused)
    assert not list(actions.left_out())


@pytest.mark.parametrize("is_there", [True, False])
def test_of_more_copies_than_are_remembered_the_oldest_are_looked_at_at_once(is_there: bool) -> None:
    """They stay out if their original is in the index, and are passed on if it has not been sent yet."""
    index = Memory()
    original = {"_index": NEWS, "_id": "o", "body": FAMILIES["a"]}
    store(index, sketched([original] if is_there else []), False)
    index.refresh()
    stream = [*([] if is_there else [original]), *({**original, "_id": str(number)} for number in range(5))]
    actions = sketched(iter(stream), duplicates=DuplicatePolicy("skip", client=index, remembered=2))
    store(index, actions, False)
    assert {id for _, id in index.documents} == ({"o"} if is_there else {"o", "0", "1", "2"})
    assert actions.report.skipped == (5 if is_there else 2)


def test_a_copy_that_is_passed_on_with_another_one_is_passed_on_once() -> None:
    """A copy has the id of an original of another index, of which there is a copy, too."""
    index = Memory()
    first, second = (
        {"_index": NEWS, "_id": "1", "body": FAMILIES["a"]},
        {"_index": NEWS, "_id": "2", "body": FAMILIES["b"]},
    )
    store(index, sketched([first, second]), False)
    index.refresh()

    def stream() -> Iterator[dict[str, Any]]:
        yield {"_index": "other", "_id": "2", "body": FAMILIES["a"]}
        yield {"_index": "other", "_id": "3", "body": FAMILIES["b"]}
        store(index, sketched([{**first, "body": FAMILIES["c"]}]), False)  # by somebody else

    actions = sketched(stream(), duplicates=DuplicatePolicy("skip", client=index, index="*"))
    assert [one["_id"] for one in actions] == ["2", "3"]
    assert (actions.report.duplicates, actions.report.skipped) == (0, 0)


def test_a_document_that_this_run_has_given_another_text_has_no_copies_by_its_old_one() -> None:
    """A search finds the old text until the next refresh."""
    index = Memory()
    store(index, sketched([{"_index": NEWS, "_id": "1", "body": FAMILIES["a"]}]), False)
    index.refresh()
    stream = [{"_index": NEWS, "_id": "1", "body": FAMILIES["b"]}, {"_index": NEWS, "_id": "2", "body": FAMILIES["a"]}]
    actions = sketched(stream, duplicates=DuplicatePolicy("report", client=index))
    store(index, actions, False)
    assert actions.report.duplicates == 0
