"""The groups of a collection: methods, guards, leaders, tables and unique documents."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import ndd_search as ndd
from ndd_search.cli import main
from ndd_search.core.exact_numbers import WrittenNumber
from ndd_search.corpus import write_files
from ndd_search.corpus.spark_index import SparkIndex
from ndd_search.errors import InvalidDocument
from tests.corpus.made import DOCUMENTS, STORY, write_lines


def test_the_table_says_whose_duplicate_each_document_is() -> None:
    groups = ndd.Corpus.read(DOCUMENTS, text="body").groups(0.5)
    table = groups.table.to_pydict()
    assert table["document"] == ["a", "b", "c", "d"]
    assert table["group"] == ["a", "a", "c", "d"]
    assert table["size"] == [2, 2, 1, 1]
    assert table["similarity"][0] == 1.0
    assert 0.5 <= table["similarity"][1] < 1
    chains = ndd.Corpus.read(DOCUMENTS, text="body").groups(0.5, "connected").table
    assert chains.column("similarity").null_count == 4
    assert chains.column("group").to_pylist() == ["a", "a", "c", "d"]


@pytest.mark.parametrize(
    ("keep", "leader"),
    [(["newest:published"], "b"), (["oldest:published"], "a"), (["longest"], "b"), (["preferred:site=two,one"], "b")],
)
def test_keep_says_which_document_leads_its_group(keep: list[str], leader: str) -> None:
    corpus = ndd.Corpus.read(DOCUMENTS, text="body", fields=["published", "site"])
    for method in ("leaders", "connected"):
        groups = corpus.groups(0.5, method, keep=keep)
        assert {row["group"] for row in groups.rows()} == {leader, "c", "d"}
        assert [one["id"] for one in groups.unique_documents()] == sorted([leader, "c", "d"])


def test_options_that_do_nothing_for_a_collection_are_refused(tmp_path: Path) -> None:
    corpus = ndd.Corpus.read(DOCUMENTS, text="body", fields="published")
    assert list(corpus.columns) == ["published"]
    with pytest.raises(TypeError, match="unknown option 'group_by': the options are guards, preset"):
        corpus.groups(group_by="published")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="'brand' is asked for, which was not kept"):
        corpus.groups().write(tmp_path / "groups.csv", "brand")
    with pytest.raises(TypeError, match="numbers must be true or false, got 'no'"):
        ndd.Corpus.read(DOCUMENTS, text="body", numbers="no")  # type: ignore[arg-type]


def test_keep_names_the_field_that_was_not_kept() -> None:
    corpus = ndd.Corpus.read(DOCUMENTS, text="body")
    with pytest.raises(ValueError, match=r"read the collection with fields=\['published'\]"):
        corpus.groups(keep=["newest:published"])
    with pytest.raises(TypeError, match=r"keep must be a list, got 'longest': write \['longest'\]"):
        corpus.groups(keep="longest")
    with pytest.raises(TypeError, match="text must be a list, got 3"):
        ndd.Corpus.read(DOCUMENTS, text=3)  # type: ignore[arg-type]


def test_guards_keep_documents_apart_as_in_a_search() -> None:
    documents = [{**one, "body": f"{one['body']} 2024"} for one in DOCUMENTS[:2]] + [
        {"id": "e", "body": f"{STORY} 2025", "published": "2024-02-02", "site": "one"}
    ]
    corpus = ndd.Corpus.read(documents, text="body", fields=["site", "published"], numbers=True)
    assert corpus.groups(0.5).leader.tolist() == [0, 0, 0]
    assert corpus.groups(0.5, guards=["same:site"]).leader.tolist() == [0, 1, 0]
    assert corpus.groups(0.5, guards=["numbers"]).leader.tolist() == [0, 0, 2]
    near: dict[str, Any] = {"guards": ["within:published=24h"]}
    assert corpus.groups(0.5, **near).leader.tolist() == [0, 0, 2]
    assert corpus.groups(0.5, keep=["newest:published"], **near).leader.tolist() == [1, 1, 2]
    assert len(corpus.new(corpus, 0.5, guards=["same:site"])) == 0
    longer = {**documents[2], "id": "f", "body": f"{documents[2]['body']} {' '.join(map(str, range(60)))}"}
    both = ndd.Corpus.read([documents[2], longer], text="body")
    assert both.groups(0.1).leader.tolist() == both.groups(0.1, guards=["length:0.1"]).leader.tolist() == [0, 0]
    assert both.groups(0.1, guards=["length:0.9"]).leader.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read the collection with numbers=True"):
        ndd.Corpus.read(documents, text="body").groups(guards=["numbers"])
    with pytest.raises(TypeError, match="did you mean guards"):
        corpus.groups(gards=["same:site"])  # type: ignore[call-arg]


def test_a_preset_gives_the_recipe_the_numbers_and_the_guards(tmp_path: Path) -> None:
    bodies = [f"{STORY} 2024", f"{STORY} 2025"]
    documents = [{"id": str(place), "body": body, "site": "a"} for place, body in enumerate(bodies)]
    products = ndd.Corpus.read(documents, text="body", preset="products")
    assert products.groups().leader.tolist() == [0, 0]
    assert products.groups(preset="products").leader.tolist() == [0, 1]
    assert ndd.Corpus.read(documents, text="body", preset="messages").recipe == ndd.preset("messages").recipe
    file = tmp_path / "mine.toml"
    file.write_text('[collapse]\nmin_similarity = "identical"\nkeep = ["preferred:site=b"]\n')
    kept = ndd.Corpus.read(documents, text="body", fields=["site"])
    assert kept.groups(preset=ndd.preset(file)).leader.tolist() == [0, 1]
    assert kept.groups(0.5, preset=ndd.preset(file)).leader.tolist() == [0, 0]
    file.write_text('[collapse]\ngroup_by = ["site"]\n')
    with pytest.raises(ValueError, match="group_by and max_per of a preset are for pages"):
        kept.groups(preset=ndd.preset(file))


def test_communities_keep_two_large_groups_apart_that_one_document_joins() -> None:
    """One listing that resembles two different ones must not make one group of them."""
    left = [f"l{number}" for number in range(60)]
    right = [f"r{number}" for number in range(60)]

    def changed(words: list[str], at: int) -> str:
        return " ".join([*words[:at], f"x{at}", *words[at + 1 :]])

    texts = [changed(left, at) for at in range(0, 60, 6)] + [changed(right, at) for at in range(0, 60, 6)]
    texts.append(" ".join(left[:58] + right[:58]))
    corpus = ndd.Corpus.read([{"text": text} for text in texts], text="text")
    joined, parted = corpus.groups(0.4, "connected"), corpus.groups(0.4, "communities")
    assert len(joined) == 1
    assert parted.leader[0] != parted.leader[10]
    assert len(parted) == 2


@pytest.mark.parametrize("name", ["unique.jsonl", "unique.jsonl.gz", "unique.csv", "unique.parquet"])
def test_unique_documents_keep_all_their_fields(name: str, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "docs.jsonl", DOCUMENTS)
    assert ndd.Corpus.read(source, text="body").groups(0.5).unique(tmp_path / name) == 3
    again = ndd.Corpus.read(tmp_path / name, text="body", fields=["site"])
    assert again.ids == ["a", "c", "d"]
    assert again.columns["site"] == ["one", "one", "two"]


@pytest.mark.parametrize(
    ("name", "more", "problem"),
    [
        ("a.jsonl", [{"x": "\ud800"}, {"x": {"a": 1}}], None),
        ("a.csv", [{"x": "\ud800"}], "row 1: it has a lone surrogate"),
        ("a.parquet", [{"x": "\ud800"}], "surrogates not allowed; write .jsonl"),
        ("a.parquet", [{"x": {}}], "struct type 'x' with no child field"),
        ("a.parquet", [{"x": 2**70}], "too large"),
        ("a.parquet", [{"x": 1}, {"x": "one"}], "Could not convert 'one'"),
        ("a.parquet", [{"x": 1}, {"x": 1.5}], "row 2: a column of int64 cannot hold 'x': 1.5"),
        ("a.parquet", [{"x": WrittenNumber.of(f"1.{7**30}")}], f"column of double cannot hold 'x': 1.{7**30}"),
        ("a.parquet", [{"x": [date(2024, 1, 2)]}, {"x": [datetime(2024, 1, 2, 3)]}], "row 2: a column of list"),
        ("a.parquet", [{"x": {"y": 1.5}}, {"x": {"y": True}}], "row 2: a column of struct"),
        ("a.parquet", [{"x": [{"a": 1}]}, {"x": [{"a": 1, "b": 2}]}], "row 2: a column of list"),
        ("a.parquet", [{}, {"y": 2}], "row 2: it has the field 'y'"),
        ("a.csv", [{}, {"y": 2}], "row 2: it has the field 'y'"),
    ],
)
def test_documents_that_a_file_cannot_hold_as_they_are_are_told(
    name: str, more: list[Any], problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_files, "_ROWS", 1)
    documents = [{**given, **one} for given, one in zip(DOCUMENTS[1:], more, strict=False)]
    groups = ndd.Corpus.read(documents, text="body").groups(0.5)
    if problem is None:
        groups.unique(tmp_path / name)
        assert [json.loads(line) for line in (tmp_path / name).read_text().splitlines()] == documents
    else:
        with pytest.raises(InvalidDocument, match=problem):
            groups.unique(tmp_path / name)


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_numbers_of_any_length_keep_all_their_digits(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exact = ["3.14159265358979323846", "1e400", "12345678901234567890123", "0.30000000000000004"]
    line = f'{{"id": 2.71828182845904523536, "body": "{STORY}", "x": [{", ".join(exact)}], "y": {{"z": {exact[0]}}}}}'
    source = tmp_path / f"docs.{kind}"
    source.write_text(line if kind == "jsonl" else f"[{line}]")
    groups = ndd.Corpus.read(source, text="body").groups()
    groups.unique(tmp_path / "unique.jsonl")
    assert (tmp_path / "unique.jsonl").read_text() == f"{line}\n"
    groups.unique(tmp_path / "unique.csv")
    assert f'"[{", ".join(exact)}]"' in (tmp_path / "unique.csv").read_text()
    main(["corpus", "unique", str(source), "--text", "body"])
    assert capsys.readouterr().out == f"{line}\n"
    stages, pa = pytest.importorskip("ndd_search.corpus.spark_stages"), pytest.importorskip("pyarrow")
    task = pa.RecordBatch.from_pylist([{"part": 0}])
    rows, _ = stages.ReadingWhole(None).read_sources([str(source)], iter([task]))
    assert rows.column("document").to_pylist() == [line]


def test_a_file_without_ids_gives_the_same_ids_on_spark_behind_the_slices_of_an_index(tmp_path: Path) -> None:
    stages, pa = pytest.importorskip("ndd_search.corpus.spark_stages"), pytest.importorskip("pyarrow")
    source = write_lines(tmp_path / "docs.jsonl", [{"body": STORY}])
    news = SparkIndex(engine="opensearch", url="http://localhost:9200", index="news")
    tasks = [*(replace(news, slice=("point", number, 2)) for number in range(2)), str(source)]
    rows, _ = stages.ReadingWhole(None).read_sources(tasks, iter([pa.RecordBatch.from_pylist([{"part": 2}])]))
    here = ndd.Corpus.read([{"_id": "a", "body": STORY}], source, text="body")
    assert rows.column("id").to_pylist() == here.ids[1:] == ["1:0"]


def test_bytes_are_base64_where_a_file_has_no_bytes(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to("there.jsonl")
    groups = ndd.Corpus.read([{**DOCUMENTS[0], "x": b"\x00\xff", "y": [b"z"]}], text="body").groups()
    for name in ("link.jsonl", "a.csv", "a.parquet"):
        groups.unique(tmp_path / name)
    assert '"x": "AP8=", "y": ["eg=="]' in (tmp_path / "there.jsonl").read_text()
    (tmp_path / "link.parquet").symlink_to("there.parquet")
    groups.write(tmp_path / "link.parquet")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "link.parquet").is_symlink()
    assert parquet.read_table(tmp_path / "there.parquet").num_rows == 1
    assert (tmp_path / "a.csv").read_text().endswith(',AP8=,"[""eg==""]"\n')
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist()[0]["x"] == b"\x00\xff"


def test_values_of_a_table_are_those_of_json(tmp_path: Path) -> None:
    document = {**DOCUMENTS[0], "x": {"a": [None, True]}, "y": [1, "z"], "z": False}
    ndd.Corpus.read([document], text="body").groups().unique(tmp_path / "unique.csv")
    (row,) = csv.DictReader((tmp_path / "unique.csv").read_text().splitlines())
    assert {name: json.loads(row[name]) for name in "xyz"} == {name: document[name] for name in "xyz"}


def test_what_cannot_be_read_again_says_so() -> None:
    groups = ndd.Corpus.read(iter(DOCUMENTS), text="body").groups()
    with pytest.raises(ValueError, match="an iterator can be read only once"):
        list(groups.unique_documents())


def test_a_source_that_changed_after_it_was_read_is_told(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "docs.jsonl", DOCUMENTS)
    groups = ndd.Corpus.read(source, text="body").groups(0.5)
    write_lines(source, DOCUMENTS[:1])
    with pytest.raises(InvalidDocument, match="have changed since"):
        list(groups.unique_documents())


def test_no_documents_are_no_groups() -> None:
    groups = ndd.Corpus.read([], text="body").groups()
    assert (len(groups), groups.table.num_rows) == (0, 0)


def test_a_collection_of_few_words_is_told_with_the_preset_that_finds_its_copies(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heads = ["Ministers agree to cut steel emissions", "Ministers agree to cut emissions of steel"]
    rows = [{"id": str(place), "body": head} for place, head in enumerate(heads)]
    assert len(ndd.Corpus.read(rows, text="body").groups()) == 2
    assert "2 of 2 texts have fewer than 10 words" in caplog.text
    caplog.clear()
    for recipe in (ndd.Recipe.simhash(), ndd.Recipe.words(k=6)):  # whose sketches do not tell how long a text is
        assert ndd.Corpus.read(DOCUMENTS, text="body", recipe=recipe).ids
    assert len(ndd.Corpus.read(rows, text="body", recipe=ndd.preset("messages").recipe).groups()) == 1
    assert caplog.text == ""
