"""Reading a collection, its groups, and what becomes of them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ndd_search as ndd
from ndd_search.cli import main
from ndd_search.corpus import store
from ndd_search.corpus.marks import unmark
from ndd_search.corpus.sources import IndexSource
from ndd_search.errors import IndexUnusable, InvalidDocument, RecipeMismatch
from tests.corpus import made

STORY = "The minister opened the new bridge over the river on Monday and spoke of better days for the whole valley"
OTHER = "A recipe for bread asks for flour, water, salt and yeast, an oven, and above all a quiet afternoon at home"
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "body": STORY, "published": "2024-01-02", "site": "one"},
    {"id": "b", "body": f"{STORY} today", "published": "2024-01-03", "site": "two"},
    {"id": "c", "body": OTHER, "published": "2024-01-01", "site": "one"},
    {"id": "d", "body": "", "published": "2024-01-01", "site": "two"},
]
GROUPS = {"a": "a", "b": "a", "c": "c", "d": "d"}


def write_lines(path: Path, documents: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(one) + "\n" for one in documents)
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write(text)
    return path


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


def test_an_index_is_a_collection(engine: Any, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of either engine, read as it is at one moment; the address of an index is a source of the commands."""
    with engine.client() as client:
        lines = [line for one in DOCUMENTS for line in ({"index": {"_index": index, "_id": one["id"]}}, one)]
        client.bulk(body=lines, refresh=True)
        corpus = ndd.Corpus.read(IndexSource(client, index), text="body")
        groups = corpus.groups(0.5)
        assert len(groups) == 3
        assert {one["_id"] for one in groups.unique_documents()} <= {"a", "b", "c", "d"}
        few = ndd.Corpus.read(IndexSource(client, index, {"ids": {"values": ["c"]}}), text="body")
        assert few.ids == ["c"]
    assert run("groups", f"{engine.url}/{index}", "--text", "body", "--min-similarity", "0.5") == 0
    assert "4 documents in 3 groups" in capsys.readouterr().out


def test_groups_are_those_of_paging_through_an_index_in_the_same_order(engine: Any, index: str) -> None:
    """The decision is the same, and the frequency table of a small index counts all of its documents, too."""
    texts = made.texts(80, seed=3, frames=2, copies=0.5)
    documents = [{"id": f"{number:03}", "body": text, "place": number} for number, text in enumerate(texts)]
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": ndd.mapping_properties()}})
        lines = []
        for one in ndd.with_sketches([{"_id": one["id"], **one} for one in documents], fields=["body"]):
            lines += [{"index": {"_index": index, "_id": one.pop("_id")}}, one]
        client.bulk(body=lines, refresh=True)
        groups = ndd.Corpus.read(documents, text="body").groups()
        expected = {row["document"]: row["group"] for row in groups.rows()}
        wrapped = ndd.wrap(client, mode="annotate", window=100)
        found = {}
        for start in range(0, 80, 40):
            body = {"query": {"match_all": {}}, "sort": ["place"], "from": start, "size": 40, "ndd": True}
            for hit in wrapped.search(index=index, body=body)["hits"]["hits"]:
                found[hit["_id"]] = hit.get("fields", {}).get("ndd.duplicate_of", [hit["_id"]])[0]
        ndd.unwrap(wrapped)
    assert len(set(expected.values())) < 60
    assert found == expected


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


def test_keep_names_the_field_that_was_not_kept() -> None:
    corpus = ndd.Corpus.read(DOCUMENTS, text="body")
    with pytest.raises(ValueError, match=r"read the collection with fields=\['published'\]"):
        corpus.groups(keep=["newest:published"])


def test_guards_keep_documents_apart_as_in_a_search() -> None:
    documents = [{**one, "body": f"{one['body']} 2024"} for one in DOCUMENTS[:2]] + [
        {"id": "e", "body": f"{STORY} 2025", "published": "2024-02-02", "site": "one"}
    ]
    corpus = ndd.Corpus.read(documents, text="body", fields=["site", "published"], numbers=True)
    assert corpus.groups(0.5).leader.tolist() == [0, 0, 0]
    assert corpus.groups(0.5, must_match=["site"]).leader.tolist() == [0, 1, 0]
    assert corpus.groups(0.5, numbers_must_match=True).leader.tolist() == [0, 0, 2]
    near: dict[str, Any] = {"time_field": "published", "max_seconds_apart": 86_400}
    assert corpus.groups(0.5, **near).leader.tolist() == [0, 0, 2]
    assert corpus.groups(0.5, keep=["newest:published"], **near).leader.tolist() == [1, 1, 2]
    assert len(corpus.new(corpus, 0.5, must_match=["site"])) == 0
    with pytest.raises(ValueError, match="read the collection with numbers=True"):
        ndd.Corpus.read(documents, text="body").groups(numbers_must_match=True)
    with pytest.raises(TypeError, match="did you mean must_match"):
        corpus.groups(must_mach=["site"])  # type: ignore[call-overload]


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


def test_missing_and_repeated_ids_are_named_and_the_rest_is_done() -> None:
    told: list[str] = []
    documents = [*DOCUMENTS, {"id": "a", "body": OTHER}, {"id": None, "body": STORY}]
    corpus = ndd.Corpus.read(documents, text="body", id="id", report=told.append)
    assert corpus.ids == ["a", "b", "c", "d"]
    assert "document 5 is left out, an earlier one has its id, 'a'" in told[0]
    assert "document 6 is left out, it has nothing in 'id'" in told[1]


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
    monkeypatch.setattr("ndd_search.sources.rows.LONGEST", 1_000)
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


def test_no_documents_are_no_groups() -> None:
    groups = ndd.Corpus.read([], text="body").groups()
    assert (len(groups), groups.table.num_rows) == (0, 0)


def test_a_saved_collection_is_loaded_again(tmp_path: Path) -> None:
    corpus = ndd.Corpus.read(DOCUMENTS, text="body", fields=["site"])
    corpus.save(tmp_path / "c.parquet")
    loaded = ndd.Corpus.load(tmp_path / "c.parquet")
    assert (loaded.ids, loaded.recipe, loaded.columns) == (corpus.ids, corpus.recipe, corpus.columns)
    assert loaded.groups(0.5).leader.tolist() == corpus.groups(0.5).leader.tolist()
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(InvalidDocument, match="no Parquet file"):
        ndd.Corpus.load(tmp_path / "no.parquet")


def test_new_documents_resemble_none_of_an_earlier_collection(tmp_path: Path) -> None:
    earlier = ndd.Corpus.read(DOCUMENTS[:2], text="body")
    later = [{"id": "x", "body": f"{STORY} again"}, {"id": "y", "body": OTHER}, {"id": "z", "body": f"{OTHER} too"}]
    corpus = ndd.Corpus.read(later, text="body")
    found = corpus.new(earlier, 0.5)
    assert [one["id"] for one in found.documents()] == ["y"]
    rows = {row["document"]: (row["duplicate_of"], row["earlier"]) for row in found.rows()}
    assert rows == {"x": ("a", True), "z": ("y", False)}
    found.save(tmp_path / "both.parquet")
    assert ndd.Corpus.load(tmp_path / "both.parquet").ids == ["a", "b", "x", "y", "z"]
    assert len(corpus.new(ndd.Corpus.load(tmp_path / "both.parquet"), 0.5)) == 0


def test_a_collection_of_another_recipe_is_refused() -> None:
    one = ndd.Corpus.read(DOCUMENTS, text="body")
    with pytest.raises(RecipeMismatch):
        one.new(ndd.Corpus.read(DOCUMENTS, text="body", recipe="w5-k64-v1"))


READ = """
import sys, ndd_search as ndd
from ndd_search.corpus import store
store.PART = 1000
ndd.Corpus.read(sys.argv[1], text="text", store=sys.argv[2])
"""


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_a_reading_that_was_killed_goes_on_and_gives_the_same(
    parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was killed before the first part or after some of them."""
    documents = [{"id": str(number), "text": text} for number, text in enumerate(made.texts(20_000))]
    source = write_lines(tmp_path / "docs.jsonl", documents)
    folder = tmp_path / "store"
    process = subprocess.Popen([sys.executable, "-c", READ, str(source), str(folder)])
    while process.poll() is None and len(list(folder.glob("part-*.parquet"))) < parts:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    monkeypatch.setattr(store, "PART", 1000)
    whole, again = ndd.Corpus.read(source, text="text"), ndd.Corpus.read(source, text="text", store=folder)
    assert again.ids == whole.ids
    assert (again.sketches.values == whole.sketches.values).all()
    once_more = ndd.Corpus.read(source, text="text", store=folder)
    assert once_more.ids == whole.ids


def test_a_store_of_another_reading_is_refused(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "docs.jsonl", DOCUMENTS)
    ndd.Corpus.read(source, text="body", store=tmp_path / "store")
    with pytest.raises(IndexUnusable, match="recipe were others"):
        ndd.Corpus.read(source, text="body", store=tmp_path / "store", recipe="w5-k64-v1")
    write_lines(source, DOCUMENTS[:2])
    with pytest.raises(IndexUnusable, match="sources were others"):
        ndd.Corpus.read(source, text="body", store=tmp_path / "store")
    with pytest.raises(IndexUnusable, match="it holds other files"):
        ndd.Corpus.read(source, text="body", store=tmp_path)


def test_the_report_shows_the_largest_groups_and_no_markup_of_the_texts(tmp_path: Path) -> None:
    documents = [{**one, "body": f"{one['body']} <b>bold</b>", "site": "<i>"} for one in DOCUMENTS]
    corpus = ndd.Corpus.read(documents, text="body", fields=["site"])
    corpus.groups(0.5).report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "1 (25.0%)" in page
    assert "2 documents led by a" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "<b>bold" not in page
    assert "<i>" not in page


def test_the_report_shows_the_frames_of_a_collection_as_text(tmp_path: Path) -> None:
    frame = "home about contact search this site imprint and terms of use all rights reserved by the valley gazette"
    texts = made.texts(60, framed=0.0, copies=0.0)
    documents = [{"text": f"{frame} {text}"} for text in texts]
    ndd.Corpus.read(documents, text="text").groups().report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    passages = page.partition("Passages that many documents share")[2]
    assert "100.0%" in passages
    assert "terms of use all rights reserved" in passages


def run(*words: object) -> int:
    return main(["corpus", *map(str, words)])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "docs.jsonl", DOCUMENTS)


def test_the_commands_write_what_the_library_finds(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = (source, "--text", "body", "--min-similarity", "0.5")
    assert run("groups", *settings, "--out", tmp_path / "g.parquet", "--report", tmp_path / "r.html") == 0
    assert capsys.readouterr().out == "4 documents in 3 groups; 1 is a near-duplicate of another one\n"
    assert parquet.read_table(tmp_path / "g.parquet").column("group").to_pylist() == ["a", "a", "c", "d"]
    assert run("unique", *settings, "--keep", "newest:published", "--save", tmp_path / "s.parquet") == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["b", "c", "d"]
    assert run("pairs", *settings) == 0
    (pair,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (pair["first"], pair["second"]) == ("a", "b")
    assert (pair["containment"], pair["contains"]) == (1.0, "second")
    assert run("groups", *settings, "--must-match", "site", "--numbers-must-match") == 0
    assert "4 documents in 4 groups; 0 are near-duplicates" in capsys.readouterr().out
    assert run("new", *settings, "--against", tmp_path / "s.parquet", "--json", "--out", tmp_path / "n.jsonl") == 0
    assert json.loads(capsys.readouterr().out) == {"documents": 4, "new": 1}  # the empty one is nobody's duplicate


def test_a_command_that_left_something_out_says_so(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with source.open("a") as file:
        file.write("no JSON\n")
    assert run("groups", source, "--text", "body") == 3
    assert "line 5 was skipped, it is not JSON" in capsys.readouterr().err


def test_an_output_of_an_unknown_kind_is_refused_before_anything_is_read(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", source, "--text", "body", "--out", "groups.xlsx") == 2
    assert "expected a name that ends in .parquet" in capsys.readouterr().err


def test_the_package_tells_which_extra_brings_pyarrow(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["pyarrow"] = None
import ndd_search as ndd
corpus = ndd.Corpus.read([{{"text": "a"}}], text="text")
print(len(corpus.groups()))
try:
    corpus.save({str(tmp_path / "c.parquet")!r})
except ndd.NDDError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.splitlines()[0] == "1"
    assert 'pip install "ndd-search[corpus]"' in done.stdout


def test_groups_are_written_into_an_index_only_where_they_changed_and_taken_away_again(
    engine: Any, index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with engine.client() as client:
        lines = [line for one in DOCUMENTS for line in ({"index": {"_index": index, "_id": one["id"]}}, one)]
        client.bulk(body=lines, refresh=True)
        groups = ndd.Corpus.read(IndexSource(client, index), text="body").groups(0.5)
        assert groups.write_back(client, index).written == 4
        assert groups.write_back(client, index).written == 0
        client.indices.refresh(index=index)
        found = client.search(index=index, body={"collapse": {"field": "ndd.group"}, "size": 10})
        assert len(found["hits"]["hits"]) == 3
        marks = {hit["_source"]["ndd"]["group_size"] for hit in found["hits"]["hits"]}
        assert marks == {1, 2}
        client.index(index=index, id="c", body={**DOCUMENTS[2], "ndd": {"recipe": "mine"}}, refresh=True)
        groups.write(tmp_path / "groups.jsonl")
        assert run("mark", tmp_path / "groups.jsonl", f"{engine.url}/{index}", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"written": 1}
        assert unmark(client, index).written == 4
        left = client.get(index=index, id="c")["_source"]
        assert left == {**DOCUMENTS[2], "ndd": {"recipe": "mine", "group": None, "group_size": None, "leads": None}}
