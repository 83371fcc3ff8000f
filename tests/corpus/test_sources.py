"""What a collection is read from, and what is left out of it."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ndd_search as ndd
from ndd_search.corpus.document_batches import BATCH
from ndd_search.errors import InvalidDocument
from ndd_search.items.record_groups import read_records
from tests.corpus.made import DOCUMENTS, OTHER, STORY, write_lines
from tests.folders import let_in

GROUPS = {"a": "a", "b": "a", "c": "c", "d": "d"}


def as_lines(folder: Path) -> object:
    return write_lines(folder / "docs.jsonl", DOCUMENTS)


def as_packed_lines(folder: Path) -> object:
    return str(write_lines(folder / "docs.jsonl.gz", DOCUMENTS))


def as_csv(folder: Path) -> object:
    path = folder / "docs.csv"
    rows = [",".join(f'"{value}"' for value in one.values()) for one in DOCUMENTS]
    path.write_text("\n".join(["id,body,published,site", *rows]) + "\n")
    return path


def as_pattern(folder: Path) -> object:
    parquet.write_table(pa.Table.from_pylist(DOCUMENTS[:2]), folder / "1.parquet")
    parquet.write_table(pa.Table.from_pylist(DOCUMENTS[2:]), folder / "2.parquet")
    return str(folder / "*.parquet")


def as_table(folder: Path) -> object:
    return pa.Table.from_pylist(DOCUMENTS)


def as_list(folder: Path) -> object:
    return DOCUMENTS


def as_iterator(folder: Path) -> object:
    return iter(DOCUMENTS)


@pytest.mark.parametrize("form", [as_lines, as_packed_lines, as_csv, as_pattern, as_table, as_list, as_iterator])
def test_every_kind_of_source_gives_the_same_groups(form: Any, tmp_path: Path) -> None:
    groups = ndd.Corpus.read(form(tmp_path), text="body", id="id").groups(0.5)
    assert {row["document"]: row["group"] for row in groups.rows()} == GROUPS
    assert len(groups) == 3


def test_a_folder_of_texts_is_a_collection(tmp_path: Path) -> None:
    for name, text in (("one.txt", STORY), ("two.txt", f"{STORY} today"), ("three.txt", OTHER)):
        (tmp_path / name).write_text(text)
    groups = ndd.Corpus.read(tmp_path, text="body").groups(0.5)
    assert len(groups) == 2


def test_a_folder_that_may_not_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.txt").write_text(STORY)
    (tmp_path / "closed").chmod(0o000)
    let_in(tmp_path / "open" / "one.txt")
    told: list[str] = []
    user = os.geteuid()
    os.seteuid(user or 65534)  # the superuser may read everything
    try:
        corpus = ndd.Corpus.read(tmp_path, text="body", report=told.append)
    finally:
        os.seteuid(user)
        (tmp_path / "closed").chmod(0o700)  # for who cleans up
    assert corpus.ids == ["open/one.txt"]
    assert told == [f"{tmp_path / 'closed'} was skipped: Permission denied"]


def test_missing_and_repeated_ids_are_named_and_the_rest_is_done() -> None:
    told: list[str] = []
    documents = [*DOCUMENTS, {"id": "a", "body": OTHER}, {"id": None, "body": STORY}, {"id": "\ud800", "body": STORY}]
    corpus = ndd.Corpus.read(documents, text="body", id="id", report=told.append)
    assert corpus.ids == ["a", "b", "c", "d"]
    assert "document 5 is left out, an earlier one has its id, 'a'" in told[0]
    assert "document 6 is left out, it has nothing in 'id'" in told[1]
    assert "document 7 is left out, its id '\\ud800' has a lone surrogate" in told[2]


def test_a_row_without_an_id_takes_none_of_another_one(tmp_path: Path) -> None:
    rows, short, lines, absent = (tmp_path / name for name in ("a.csv", "b.csv", "a.jsonl", "b.jsonl"))
    rows.write_text("id,body\n9,Fog\n,Snow\n5,Council\n1,Copper\n")
    short.write_text("body,id\nFog,9\nSnow\nCouncil,5\nCopper,1\n")
    made = [("9", "Fog"), (None, "Snow"), ("5", "Council"), ("1", "Copper")]
    lines.write_text("\n".join(json.dumps({"id": id, "body": body}) for id, body in made))
    absent.write_text("\n".join(json.dumps({"body": body} | ({"id": id} if id else {})) for id, body in made))
    for source in (rows, short, lines, absent):
        for id in (None, "id"):
            told: list[str] = []
            assert ndd.Corpus.read(source, text="body", id=id, report=told.append).ids == ["9", "5", "1"]
            _, ids, _ = read_records([source], id=id, report=(again := list[str]()).append)
            assert ids == ["9", "5", "1"]
            assert told == again
            what = "'id'" if id else "'_id' or 'id'"
            assert f"it has nothing in {what}, which is to hold its id" in told[-1]
            assert len(told) == 1 + (source == short)  # which is told that a row has fewer fields than the header


def test_an_id_behind_many_documents_without_is_no_place_of_another_one() -> None:
    documents = [{"body": f"{STORY} {number}"} for number in range(BATCH + 2)]
    documents[BATCH]["id"] = "17"
    told: list[str] = []
    corpus = ndd.Corpus.read(documents, text="body", report=told.append)
    assert (corpus.ids, told) == ([str(number) for number in range(BATCH + 2)], [])


def test_an_empty_value_is_a_missing_one_for_guards_whatever_the_source(tmp_path: Path) -> None:
    rows, short, lines = (tmp_path / name for name in ("a.csv", "b.csv", "a.jsonl"))
    rows.write_text(f"id,body,brand\n1,{STORY},\n2,{STORY},\n3,{STORY},x\n")
    short.write_text(f"id,body,brand\n1,{STORY}\n2,{STORY},\n3,{STORY},x\n")
    lines.write_text(
        "".join(
            json.dumps({"id": id, "body": STORY, **more}) + "\n"
            for id, more in zip("123", ({}, {"brand": ""}, {"brand": "x"}), strict=True)
        )
    )
    table = pa.table({"id": ["1", "2", "3"], "body": [STORY] * 3, "brand": [None, None, "x"]})
    for source in (rows, short, lines, table):
        corpus = ndd.Corpus.read(source, text="body", fields=["brand"], report=lambda _: None)
        assert corpus.groups(guards=["same:brand"]).leader.tolist() == [0, 0, 2]


def test_a_source_without_ids_takes_none_of_another_one(tmp_path: Path) -> None:
    named, bare = tmp_path / "a.csv", tmp_path / "b.csv"
    named.write_text("id,body\n0,Fog\n1,Snow\n")
    bare.write_text("body\nCouncil\nCopper\n")
    for sources, ids in (([named, bare], ["0", "1", "1:0", "1:1"]), ([bare, named], ["0:0", "0:1", "0", "1"])):
        told: list[str] = []
        corpus = ndd.Corpus.read(*sources, text="body", report=told.append)
        assert (corpus.ids, told) == (ids, [])
        assert read_records(sources, report=told.append)[1] == ["0", "1", "0", "1"], "an id of a record is of its list"


def test_an_id_field_that_no_document_has_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,body\n9,Fog\n5,Council\n")
    for source in (tmp_path / "a.csv", DOCUMENTS):
        for read in (partial(ndd.Corpus.read, source, text="body", id="idd"), partial(read_records, [source], "idd")):
            with pytest.raises(InvalidDocument, match="has anything in 'idd'; the fields there are id, body"):
                read()


def test_an_id_that_cannot_be_kept_is_an_id_behind_many_documents_without() -> None:
    told: list[str] = []
    documents = [{"body": "Fog"}] * 25 + [{"id": "\ud800", "body": "Snow"}]
    assert not ndd.Corpus.read(documents, text="body", id="id", report=told.append).ids
    assert len(told) == 21


def test_what_is_left_out_of_files_is_named_by_file_and_line(tmp_path: Path) -> None:
    """Blank lines and lines that are no documents count, too; so do the documents of other sources."""
    lines = [json.dumps(one) for one in (*DOCUMENTS, DOCUMENTS[0])]
    jsonl, rows = tmp_path / "a.jsonl", tmp_path / "c.csv"
    jsonl.write_text("\n".join([lines[0], "", "nonsense", *lines[1:]]))
    array, folder = tmp_path / "b.json", tmp_path / "folder"
    array.write_text(json.dumps([{"id": "e", "body": OTHER}, 7, DOCUMENTS[1]]))
    rows.write_text('id,body\nf,"two\nlines"\n,nothing\n')
    folder.mkdir()
    (folder / "one.txt").write_text(OTHER)
    sources = [[DOCUMENTS[2]], jsonl, array, pa.Table.from_pylist(DOCUMENTS[:1]), folder, rows]
    for is_corpus in (True, False):
        told: list[str] = []
        if is_corpus:
            ndd.Corpus.read(*sources, text="body", id="id", report=told.append)
        else:
            read_records(sources, id="id", report=told.append)
        left_out = [one for one in told if "is left out" in one]
        expected = [
            f"the collection: {jsonl}, line 5, is left out, an earlier one has its id, 'c'",
            f"the collection: {jsonl}, line 7, is left out, an earlier one has its id, 'a'",
            f"the collection: {array}, element 3, is left out, an earlier one has its id, 'b'",
            "the collection: document 9 is left out, an earlier one has its id, 'a'",
            f"the collection: {rows}, line 4, is left out, it has nothing in 'id', which is to hold its id",
        ]
        assert left_out == (expected if is_corpus else [expected[1], expected[4]]), "an id of a record is of its list"


def test_many_mistakes_are_counted_and_not_listed() -> None:
    told: list[str] = []
    corpus = ndd.Corpus.read([{"id": 1, "body": STORY}] * 10_000, text="body", report=told.append)
    assert len(corpus) == 1
    assert len(told) == 21
    assert "9,979 more" in told[-1]


def test_a_damaged_file_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_pylist(DOCUMENTS), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes((tmp_path / "1.parquet").read_bytes()[:200])
    write_lines(tmp_path / "3.jsonl", [{"id": "e", "body": OTHER}])
    told: list[str] = []
    corpus = ndd.Corpus.read(
        tmp_path / "1.parquet", tmp_path / "2.parquet", tmp_path / "3.jsonl", text="body", report=told.append
    )
    assert corpus.ids == ["a", "b", "c", "d", "e"]
    assert len(told) == 1
    assert "2.parquet is left out" in told[0]


def test_a_huge_line_is_no_reason_to_fail(tmp_path: Path) -> None:
    source = tmp_path / "docs.jsonl"
    write_lines(source, [*DOCUMENTS, {"id": "huge", "body": "word " * 2_000_000}])
    corpus = ndd.Corpus.read(source, text="body", report=lambda _: None)
    assert corpus.ids[:4] == ["a", "b", "c", "d"]


def test_a_line_longer_than_any_document_is_named_and_the_rest_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ndd_search.sources.csv_and_json.LONGEST", 1_000)
    source = write_lines(tmp_path / "docs.jsonl", [DOCUMENTS[0], {"id": "huge", "body": "word " * 500}, *DOCUMENTS[1:]])
    told: list[str] = []
    corpus = ndd.Corpus.read(source, text="body", report=told.append)
    assert corpus.ids == ["a", "b", "c", "d"]
    assert len(told) == 1
    assert "line 2" in told[0]


def test_a_text_field_that_no_document_has_is_told() -> None:
    with pytest.raises(InvalidDocument, match="none of them has text in nobody"):
        ndd.Corpus.read(DOCUMENTS, text="nobody")


def test_a_path_that_names_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="no file has this name"):
        ndd.Corpus.read(tmp_path / "*.parquet", text="body")
