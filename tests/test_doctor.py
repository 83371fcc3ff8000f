"""Doctor on live servers: every fault is reported with a remedy, and an index without faults is reported as such."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.doctor import NONE, Diagnosis, Doctor
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.rest.mapping import mapping_properties
from tests.backfilling import DYNAMIC, fill
from tests.collections import read
from tests.command_line import run
from tests.engines.find import Engine

FIELDS = ["title", "text"]
TEXT = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."


def filled(client: Any, index: str, documents: Sequence[dict[str, Any]], **settings: Any) -> None:
    body = {"mappings": {"properties": mapping_properties()}, **settings}
    client.indices.create(index=index, body=body)
    fill(client, index, [dict(one) for one in ndd.with_sketches(documents, FIELDS)])


def told(diagnosis: Diagnosis, *levels: str) -> list[str]:
    return [f"{one.level}: {one}" for one in diagnosis.findings if one.level in levels]


def test_an_index_in_order_is_called_so_with_its_figures(engine: Engine, index: str) -> None:
    """Each document has two nested ones, which engines store, and count in _cat, as documents of their own."""
    documents = [{**one, "parts": [{"at": 1}, {"at": 2}]} for one in read("xquad_pages")[:600]]
    properties = {**mapping_properties(), "parts": {"type": "nested"}}
    with engine.client() as client:
        filled(client, index, documents, mappings={"properties": properties})
        before = client.indices.stats(index=index)["_all"]["primaries"]["indexing"]["index_total"]
        diagnosis = Doctor(index=index, fields=FIELDS).examine(client)
        assert client.indices.stats(index=index)["_all"]["primaries"]["indexing"]["index_total"] == before
    assert told(diagnosis, "error", "warning") == []
    assert "every one of 600 documents has a sketch of recipe w3-k64-v4" in "".join(told(diagnosis, "ok"))
    figures = diagnosis.figures
    assert figures is not None
    assert figures.recipes == {"w3-k64-v4": 600}
    assert (figures.documents, figures.sampled, figures.wrong) == (600, 500, 0.0)


def test_a_field_that_no_document_has_and_documents_without_text_are_told(engine: Engine, index: str) -> None:
    empty = {"id": "empty", "ndd": {"sketch": [], "recipe": "w3-k64-v4", "text": "title,boddy"}}
    with engine.client() as client:
        filled(client, index, [{"id": str(n), "title": "three words here"} for n in range(3)])
        fill(client, index, [empty])
        diagnosis = Doctor(index=index, fields=["title", "boddy"]).examine(client)
    absent, other = sorted(told(diagnosis, "warning"), key=len)
    assert "none of 4 sampled documents has a field boddy; check its name" in absent
    assert "3 of 4 checked sketches, with their keys and marks, are not of the text in title, boddy: " in other
    notes = "".join(told(diagnosis, "note"))
    assert "25.0% of 4 sampled documents have no text" in notes
    assert "3 of 3 texts have fewer than 10 words" in notes


@pytest.mark.parametrize(("recipe", "times"), [(ndd.Recipe(), 9), (ndd.Recipe(method="simhash", k=4), 0.5)])
def test_keys_that_no_settings_store_are_told_as_wrong(
    engine: Engine, index: str, recipe: ndd.Recipe, times: float
) -> None:
    """As of a program that copied a part of them, or appended to them."""
    documents = [sketch_fields({"id": str(n), "text": f"{TEXT} {n}"}, FIELDS, recipe=recipe) for n in range(3)]
    keys = documents[1]["ndd_keys"]
    documents[1]["ndd_keys"] = (keys * 9)[: int(len(keys) * times)]
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        fill(client, index, documents)
        figures = Doctor(index=index, fields=FIELDS, recipe=recipe).examine(client).figures
    assert figures is not None
    assert (figures.sampled, figures.examples) == (3, ["1"])


def test_documents_without_a_sketch_stale_ones_other_recipes_and_wrong_ones_are_told(
    engine: Engine, index: str
) -> None:
    other = sketch_fields({"id": "other", "text": TEXT}, FIELDS, recipe=ndd.Recipe.words(k=128))
    wrong = {**sketch_fields({"id": "wrong", "text": TEXT}, FIELDS), "text": "changed"}
    stale = {"id": "stale", "text": TEXT, "ndd": {"sketch": [], "recipe": "stale"}}
    with engine.client() as client:
        filled(client, index, [])
        good = sketch_fields({"id": "good", "text": TEXT}, FIELDS)
        fill(client, index, [good, {"id": "none", "text": TEXT}, other, wrong, stale])
        diagnosis = Doctor(index=index, fields=FIELDS).examine(client)
    warnings = "\n".join(told(diagnosis, "warning"))
    assert (
        "no sketch of recipe w3-k64-v4 in 2 of 5 documents: each is shown by itself; run ndd-search backfill"
        in warnings
    )
    assert "the sketch of 1 document is stale" in warnings
    assert (
        "1 of 2 checked sketches, with their keys and marks, are not of the text in title, text: wrong; give"
        in warnings
    )
    assert "other recipes (w3-k128-v4)" in "\n".join(told(diagnosis, "note"))
    assert diagnosis.figures is not None
    assert diagnosis.figures.recipes == {"w3-k64-v4": 2, "w3-k128-v4": 1, "stale": 1, NONE: 1}


def test_sketches_of_a_dynamic_mapping_are_read_as_searches_read_them(engine: Engine, index: str) -> None:
    documents = [{"id": str(number), "text": f"{TEXT} Edition {number}."} for number in range(5)]
    stale = {"id": "stale", "text": TEXT, "ndd": {"sketch": [], "recipe": "stale"}}
    with engine.client() as client:
        fill(client, index, [*(sketch_fields(one, FIELDS) for one in documents), stale])
        diagnosis = Doctor(index=index, fields=FIELDS).examine(client)
        ndd.wrap(client, min_similarity=0.5)
        answer = client.search(index=index, body={"query": {"match": {"text": "ministers"}}})
    assert answer["ndd"]["hidden"] == 4
    assert diagnosis.figures is not None
    assert diagnosis.figures.recipes == {"w3-k64-v4": 5, "stale": 1}
    assert (diagnosis.figures.sampled, diagnosis.figures.wrong) == (5, 0.0)
    findings = told(diagnosis, "warning", "ok")
    assert not any("no sketch" in one or "every one of 6" in one for one in findings)
    assert [one for one in findings if "coverage" in one or "stale" in one] == [
        "warning: the sketch of 1 document is stale, as updates changed a part of the text; "
        f"run ndd-search backfill ... {index} --fields ..."
    ]


def test_keys_that_an_update_without_keys_left_behind_are_told(engine: Engine, index: str) -> None:
    before, after = ({"id": "1", "text": text} for text in (TEXT, f"{TEXT} Other ministers did not."))
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        fill(client, index, [sketch_fields(before, FIELDS)])
        assert Doctor(index=index, fields=FIELDS).examine(client).figures.wrong == 0  # type: ignore[union-attr]
        client.update(index=index, id="1", body={"doc": sketch_fields(after, FIELDS, keys=0)}, refresh=True)
        diagnosis = Doctor(index=index, fields=FIELDS).examine(client)
        assert "1 of 1 checked sketches, with their keys and marks, are not" in "\n".join(told(diagnosis, "warning"))
        Backfill(index=index, fields=FIELDS, recheck=True).run(client)
        client.indices.refresh(index=index)
        assert Doctor(index=index, fields=FIELDS).examine(client).figures.wrong == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "error: there is no field ndd; run ndd-search backfill"),
        ({"mappings": {"properties": {"ndd": {"type": "text"}}}}, "error: ndd is a field of type text"),
        ({"mappings": {"properties": DYNAMIC}}, "error: ndd.recipe is text, not keyword"),
        ({"mappings": {"properties": DYNAMIC}}, "warning: ndd.sketch is an indexed long"),
        (
            {"mappings": {"_source": {"enabled": False}, "properties": mapping_properties()}},
            "error: _source is disabled",
        ),
        ({"settings": {"index": {"max_result_window": 50}}}, "error: max_result_window is 50, less than the first"),
        ({"settings": {"index": {"max_result_window": 500}}}, "note: max_result_window is 500: the deduplicated list"),
        ({"settings": {"index": {"blocks": {"write": True}}}}, "note: it has the block index.blocks.write"),
    ],
)
def test_mappings_and_settings_that_hurt_are_told_with_what_to_do(
    engine: Engine, index: str, body: dict[str, Any], words: str
) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body=body)
        findings = told(Doctor(index=index).examine(client), "error", "warning", "note")
    assert any(words in one for one in findings), findings


def test_short_texts_are_told(engine: Engine, index: str) -> None:
    with engine.client() as client:
        filled(client, index, [{"id": str(n), "title": f"red shoes {n}"} for n in range(20)])
        diagnosis = Doctor(index=index, fields=FIELDS).examine(client)
    assert "20 of 20 texts have fewer than 10 words" in "\n".join(told(diagnosis, "note"))


def test_empty_and_closed_indexes_and_names_that_are_nothing_are_told(engine: Engine, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        assert "there are no documents yet" in "\n".join(told(Doctor(index=index).examine(client), "ok"))
        client.indices.close(index=index)
        diagnosis = Doctor(index=index).examine(client)
        assert diagnosis.figures is None
        assert "it is closed" in "\n".join(told(diagnosis, "note"))
        with pytest.raises(IndexUnusable, match="there is no such index"):
            Doctor(index=f"{index}-nothing").examine(client)


@pytest.mark.newest_servers
def test_the_command_line_shows_it_and_its_exit_code_says_whether_something_needs_doing(
    engine: Engine, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # so that no sentence is broken
    words = ["doctor", index, "--fields", "title,text"]
    with engine.client() as client:
        filled(client, index, [{"id": str(n), "title": f"Steel {n}", "text": f"{TEXT} {n}"} for n in range(10)])
        shown = run(words[0], engine.url, *words[1:]).stdout
        assert "every one of 10 documents has a sketch" in shown
        assert "computed with" in shown
        client.index(index=index, id="new", body={"title": "Steel", "text": TEXT}, refresh=True)
        facts = json.loads(run(words[0], engine.url, *words[1:], "--json", code=1).stdout)
        assert facts["figures"]["recipes"] == {"w3-k64-v4": 10, "(none)": 1}


def test_fields_are_a_list_of_names() -> None:
    with pytest.raises(TypeError, match="fields must be a list, got 'body'"):
        Doctor(index="news", fields="body")
