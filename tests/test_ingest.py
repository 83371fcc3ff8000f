"""Actions through with_sketches: which get a sketch, in which order, and how many are read ahead."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from datetime import date
from itertools import count, islice
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.document_fields import text_of
from ndd_search.core.sketching.sketches import Sketch
from ndd_search.indexing.duplicate_policy import DuplicatePolicy
from ndd_search.indexing.with_sketches import sketch_fields

FIELDS = ["title", "body"]
TEXT = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
DOCUMENT = {"title": "Steel", "body": TEXT, "year": 2031}
STALE = {"sketch": [], "recipe": "stale"}
# An update takes them away.
OF_THE_OLD_TEXT = dict.fromkeys(("smallest", "text", "numbers", "group", "group_size", "leads", "judged"))


def stored(text: str, recipe: ndd.Recipe | None = None, of: str = "title,body") -> dict[str, Any]:
    recipe = recipe or ndd.Recipe()
    values = ndd.sketch(text, recipe).tolist()
    return {"sketch": values, **({"smallest": values[0]} if values else {}), "recipe": recipe.id, "text": of}


WHOLE = stored(f"Steel\n{TEXT}")


def through(*actions: Any, **settings: Any) -> list[Any]:
    before = copy.deepcopy(actions)
    done = list(ndd.with_sketches(actions, **{"fields": FIELDS, "keys": 0, **settings}))
    assert actions == before, "the caller's actions were changed"
    return done


def test_plain_documents_and_documents_under_source_get_the_sketch_of_their_joined_fields() -> None:
    plain, inside = {"_id": "1", **DOCUMENT}, {"_op_type": "create", "_id": "2", "_source": DOCUMENT}
    assert through(plain, inside) == [
        {**plain, "ndd": WHOLE},
        {"_op_type": "create", "_id": "2", "_source": {**DOCUMENT, "ndd": WHOLE}},
    ]


def test_keys_stand_beside_the_sketch_in_a_field_of_any_name() -> None:
    (done,) = through(*through(DOCUMENT, keys=2), fields="title", field="title_ndd", keys=2)
    assert done["title_ndd"] == stored("Steel", of="title")
    assert done["ndd"] == WHOLE
    assert done["ndd_keys"] == [f"{value:08x}" for value in WHOLE["sketch"][:2]]
    assert len(done["title_ndd_keys"]) == 1


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        ({"title": "Steel", "body": TEXT}, WHOLE),
        ({"title": "Steel", "body": TEXT, "year": 2032}, WHOLE),
        ({"title": None, "body": None}, stored("")),
        ({"body": TEXT}, STALE),
        ({"title": None}, STALE),
        ({"title": "Steel", "body": {"en": TEXT}}, STALE),
        ({"year": 2032}, None),
        ({}, None),
    ],
)
def test_a_partial_update_recomputes_marks_stale_or_leaves_alone(
    doc: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    for action in ({"_op_type": "update", "doc": doc}, {"_op_type": "update", "_source": {"doc": doc}}):
        (done,) = through({"_id": "1", **action})
        assert done.get("_source", done)["doc"].get("ndd") == (expected and {**OF_THE_OLD_TEXT, **expected})


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        ({"page": {"body": TEXT}}, stored(TEXT, of="page.body")),
        ({"page.body": TEXT}, STALE),  # the engine keeps an object of that path beside it
        ({"page.body": TEXT, "page": {"body": TEXT}}, STALE),
        ({"page": None}, stored("", of="page.body")),
        ({"page": [{"body": TEXT}]}, stored(TEXT, of="page.body")),
        ({"page": {"url": "x"}}, None),
        ({"page.text": {"body": TEXT}}, STALE),
    ],
)
def test_a_partial_update_of_a_field_inside_an_object(doc: dict[str, Any], expected: dict[str, Any] | None) -> None:
    fields = "page.text.body" if "page.text" in doc else "page.body"
    (done,) = through({"_op_type": "update", "_id": "1", "doc": doc}, fields=fields)
    assert done["doc"].get("ndd") == (expected and {**OF_THE_OLD_TEXT, **expected})


def test_an_upsert_is_a_whole_document_and_a_script_is_left_alone() -> None:
    upsert = {"_op_type": "update", "_id": "1", "doc": {"body": TEXT}, "upsert": DOCUMENT}
    scripted = {"_op_type": "update", "_id": "2", "script": {"source": "ctx._source.n += 1"}}
    wanted = {"_op_type": "update", "_id": "3", "_source": ["title"], "doc": {"year": 1}}
    actions = ndd.with_sketches([upsert, scripted, wanted], FIELDS)
    first, second, third = actions
    assert (first["doc"]["ndd"], first["upsert"]["ndd"]) == ({**STALE, **OF_THE_OLD_TEXT}, WHOLE)
    assert (second, third) == (scripted, wanted)
    assert (actions.report.sketched, actions.report.stale, actions.report.unchanged) == (1, 1, {"script": 1})


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({"_op_type": "delete", "_id": "1"}, "delete"),
        ({"_op_type": "frobnicate", "_id": "1", "body": TEXT}, "unknown operation"),
        (json.dumps(DOCUMENT), "raw"),
        (json.dumps(DOCUMENT).encode(), "raw"),
        ({"_id": "1", "_source": json.dumps(DOCUMENT)}, "raw"),
        ({"_id": "1", "_source": None}, "raw"),
        (object(), "not a document"),
        (None, "not a document"),
        ({"_op_type": "update", "_id": "1", "doc": None}, "not a document"),
        ({"_id": "1", "year": 2031}, "no text"),
        ({"_id": "1", "title": None, "body": []}, "no text"),
    ],
)
def test_what_cannot_be_sketched_goes_through_as_it_is_and_is_counted(action: Any, reason: str) -> None:
    actions = ndd.with_sketches([action, DOCUMENT], FIELDS, keys=0)
    first, second = actions
    assert first == action
    assert second["ndd"] == WHOLE
    assert actions.report.unchanged == {reason: 1}


@pytest.mark.parametrize(
    "value",
    [
        7,
        2.5,
        True,
        ["a", ["b", None, 3]],
        {"en": "one", "de": {"x": "eins"}},
        date(2031, 5, 1),
        "\x00\ud800 odd",
        "-- !! --",
        "",
        b"bytes",
    ],
)
def test_values_that_are_no_text_are_joined_as_documented_and_keep_their_place_in_the_document(value: Any) -> None:
    document = {"body": value}
    (done,) = through(document, fields="body")
    assert {key: done[key] for key in document} == document
    assert done["ndd"] == stored(text_of(document, ["body"]) or "", of="body")


def test_the_text_of_an_object_does_not_depend_on_the_order_of_its_members() -> None:
    """Engines give the members of an object back in any order, and a backfill must make the same sketch of them."""
    first = {"body": {"b": TEXT, "a": {"y": "one", "x": "two"}}}
    second = {"body": {"a": {"x": "two", "y": "one"}, "b": TEXT}}
    one, other = through(first, second, fields="body")
    assert one["ndd"] == other["ndd"] == stored(f"two\none\n{TEXT}", of="body")


class Explosive:
    def __str__(self) -> str:
        raise RuntimeError("no text of mine")


def in_itself() -> list[Any]:
    value: list[Any] = ["text"]
    value.append(value)
    return value


def test_the_first_document_without_text_is_named_with_the_fields_that_lack_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "ndd_search"):
        through({"_id": "7", "bdy": "a b c"}, {"_id": "8"}, fields=["title", "body"])
    (line,) = caplog.messages
    assert line.startswith("document 7 has no text in title, body and gets no sketch (its fields: bdy)")


def test_a_text_field_that_none_of_the_first_documents_has_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Different documents with one title would be near-duplicates."""
    documents = [{"_id": str(number), "title": "a b c d", "body": f"e f {number}"} for number in range(30)]
    with caplog.at_level(logging.WARNING, "ndd_search"):
        through(*documents, fields=["title", "boddy"])
        through(*documents, {"_id": "30", "title": "a"}, fields=["title", "body"])
        through({"_id": "31", "body": "e f"}, *documents, fields=["title", "body"])
    assert caplog.messages == ["none of the first 10 documents with a text has a field boddy: check its name"]


def test_a_text_in_a_key_with_dots_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """An update that holds it as an object leaves the key, which nothing in the update tells of."""
    documents = [{"_id": "1", "page": {"body": "a b c d"}}, *({"_id": id, "page.body": "a b c d"} for id in "78")]
    with caplog.at_level(logging.WARNING, "ndd_search"):
        through(*documents, fields=["page.body"])
    (line,) = caplog.messages
    assert line.startswith("document 7 holds text in the key 'page.body'")
    assert "backfill --recheck" in line


@pytest.mark.parametrize(
    "value", [Explosive(), in_itself()], ids=["a value whose text fails", "a list that holds itself"]
)
def test_a_document_that_breaks_is_passed_on_and_logged_once(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    bad = {"_id": "7", "body": value}
    with caplog.at_level(logging.WARNING, "ndd_search"):
        actions = ndd.with_sketches([bad, DOCUMENT, bad, bad], FIELDS, keys=0)
        first, second, *_ = actions
    assert first == bad
    assert second["ndd"] == WHOLE
    assert actions.report.unchanged == {"unreadable": 3}
    (line,) = caplog.messages
    assert line.startswith("document 7 cannot be sketched")


def test_an_update_whose_text_cannot_be_read_marks_the_sketch_stale() -> None:
    (done,) = ndd.with_sketches([{"_op_type": "update", "_id": "1", "doc": {"body": Explosive()}}], "body")
    assert done["doc"]["ndd"] == {**STALE, **OF_THE_OLD_TEXT}


def test_a_fault_of_the_sketcher_costs_one_document_its_sketch(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(text: str, recipe: ndd.Recipe) -> Sketch:
        if text == "fault":
            raise RuntimeError("a fault")
        return ndd.sketch(text, recipe)

    monkeypatch.setattr("ndd_search.search.writing.sketch_or_mark_stale.sketch", faulty)
    actions = ndd.with_sketches([{"body": TEXT}, {"body": "fault"}], "body", keys=0)
    assert list(actions) == [{"body": TEXT, "ndd": stored(TEXT, of="body")}, {"body": "fault"}]
    assert actions.report.unchanged == {"unreadable": 1}


def test_every_action_is_handed_on_before_the_next_one_is_read() -> None:
    taken = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for taken in count(1):
            yield {"_id": taken, "body": TEXT}

    for number, action in enumerate(islice(ndd.with_sketches(endless(), "body"), 25), 1):
        assert (action["_id"], taken) == (number, number)


def test_what_was_read_before_the_source_raises_is_handed_on_and_the_rest_can_still_be_read() -> None:
    def source() -> Iterator[dict[str, Any]]:
        for number in range(10):
            yield {"_id": number, "body": [TEXT] if number != 5 else TEXT, "ndd": {} if number == 5 else None}

    done: list[int] = []
    actions = ndd.with_sketches(source(), "body")
    with pytest.raises(ndd.errors.NDDError, match="document 5"):
        done.extend(action["_id"] for action in actions)
    done.extend(action["_id"] for action in actions)
    assert done == [0, 1, 2, 3, 4, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("mine", "a text"),
        (3, "a number"),
        (False, "a boolean"),
        ([1, 2], "a list"),
        ({"recipe": "pancakes"}, "an object"),
        ({"sketch": "pencil", "recipe": "w3-k64-v4"}, "an object"),
        ({}, "an object"),
    ],
)
def test_a_field_of_the_users_own_is_never_overwritten(value: Any, kind: str) -> None:
    """A document whose field has the name of the sketch is refused with a sentence that names the way out."""
    for name in ("ndd", "ndd_keys"):
        for action in (
            {"_id": "7", **DOCUMENT, name: value},
            {"_id": "7", "_op_type": "update", "doc": {**DOCUMENT, name: value}},
        ):
            with pytest.raises(ndd.errors.NDDError) as raised:
                through(action, keys=2)
            assert str(raised.value).startswith(f"document 7: its field '{name}' holds {kind} of your own")
            assert "another name" in str(raised.value)
        assert through({"_id": "7", **DOCUMENT, name: value}, keys=2, field="other")[0][name] == value
    assert through({**DOCUMENT, "ndd_keys": value})[0]["ndd_keys"] == value, "without keys there are none to store"
    assert through({"ndd": value}) == [{"ndd": value}], "without text there is nothing to store"


def test_a_sketch_that_a_document_came_with_is_made_anew_or_taken_away() -> None:
    old = {**stored("an old text of some words", ndd.Recipe(k=16)), "numbers": 5, "group": "3"}
    carried = {"ndd": old, "ndd_keys": ["0123abcd"]}
    assert through({**DOCUMENT, **carried}) == [{**DOCUMENT, "ndd": WHOLE}]
    assert through({**DOCUMENT, "ndd": None, "ndd_keys": None}, keys=1)[0]["ndd"] == WHOLE
    assert through({"year": 2031, **carried}) == [{"year": 2031}]
    assert through({"_op_type": "update", "doc": {"year": 1, **carried}}) == [
        {"_op_type": "update", "doc": {"year": 1, **carried}}
    ], "an update that leaves the text alone is left alone"


@pytest.mark.once
def test_memory_stays_flat_for_an_endless_stream() -> None:
    actions = iter(ndd.with_sketches(({"body": f"{i} {TEXT}"} for i in count()), "body"))
    for _ in islice(actions, 500):
        pass
    tracemalloc.start()
    for _ in islice(actions, 500):
        pass
    early = tracemalloc.get_traced_memory()[0]
    for _ in islice(actions, 5_000):
        pass
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert late - early < 200_000


def test_an_object_for_the_helper_alone_is_handed_on_without_waiting_for_a_full_batch() -> None:
    flush = object()

    def trickle() -> Iterator[Any]:
        yield DOCUMENT
        yield flush
        pytest.fail("read beyond the flush")

    done = iter(ndd.with_sketches(trickle(), FIELDS))
    assert next(done)["ndd"] == WHOLE
    assert next(done) is flush


def test_asynchronous_iterators_and_plain_ones_can_be_iterated_with_async_for() -> None:
    async def source() -> AsyncIterator[dict[str, Any]]:
        for number in range(600):
            yield {"_id": number, "body": TEXT}

    async def run(actions: Any) -> list[Any]:
        return [one async for one in ndd.with_sketches(actions, "body", keys=0)]

    expected = through(*({"_id": number, "body": TEXT} for number in range(600)), fields="body")
    assert asyncio.run(run(source())) == asyncio.run(run([{"_id": n, "body": TEXT} for n in range(600)])) == expected
    with pytest.raises(TypeError, match="async for"):
        list(ndd.with_sketches(source(), "body"))


def test_an_iteration_that_is_broken_off_leaves_nothing_running() -> None:
    documents = [{"body": f"one two three {number}"} for number in range(100)]

    async def run() -> None:
        actions = aiter(ndd.with_sketches(documents, "body"))
        await anext(actions)
        await actions.aclose()  # type: ignore[attr-defined]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
    made = iter(ndd.with_sketches(documents, "body"))
    next(made)
    made.close()  # type: ignore[attr-defined]
    assert not [one for one in threading.enumerate() if one.name.startswith("ndd-search")]


def test_sketch_fields_returns_a_copy_of_one_document() -> None:
    before = copy.deepcopy(DOCUMENT)
    assert sketch_fields(DOCUMENT, FIELDS, keys=0) == {**DOCUMENT, "ndd": WHOLE}
    assert before == DOCUMENT
    assert sketch_fields({"year": 1}, FIELDS) == {"year": 1}
    assert sketch_fields({**DOCUMENT, "_op_type": "delete"}, FIELDS)["ndd"] == WHOLE
    with pytest.raises(TypeError, match="a document is a mapping, got str"):
        sketch_fields("text", FIELDS)  # type: ignore[arg-type]


@pytest.mark.once
def test_a_text_of_fifty_megabytes_gets_a_sketch() -> None:
    (done,) = through({"body": "one two three four five six seven " * 1_500_000}, fields="body")
    assert done["ndd"] == stored("one two three four five six seven one two three", of="body")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fields": []}, "at least one text field"),
        ({"fields": {"ndd": ["title"]}}, "fields must be a list"),
        ({"field": "a.b"}, "without dots"),
        ({"field": "_ndd"}, "leading underscore"),
        ({"fields": ["ndd"]}, "no text field"),
        ({"fields": ["ndd.sketch"]}, "no text field"),
        ({"fields": [3]}, "fields must name fields, got 3"),
        ({"keys": -1}, "keys must be 0..64"),
        ({"duplicates": DuplicatePolicy(client=None), "keys": 0}, "leave out keys=0"),
        ({"duplicates": "skip"}, "duplicates must be a policy, as DuplicatePolicy"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_read(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        ndd.with_sketches([], **{"fields": FIELDS, **settings})


@pytest.mark.parametrize("actions", ["news", {"_index": "news", "body": "text"}])
def test_one_action_is_no_list_of_actions(actions: Any) -> None:
    with pytest.raises(TypeError, match=f"got one {type(actions).__name__}"):
        ndd.with_sketches(actions, FIELDS)


def test_a_pattern_is_no_text_field() -> None:
    with pytest.raises(ValueError, match=r"'bo\*' is a pattern: name each text field"):
        ndd.with_sketches([DOCUMENT], fields=["title", "bo*"])
