"""Groups found on Spark: they are those of one machine, whatever fails on the way.

Needs pyspark, pandas and Java 17 or later, else the tests are skipped; NDD_TEST_REQUIRE_ENGINES=spark fails instead.
test_spark_cluster.py adds a cluster of several processes.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ndd_search as ndd
from ndd_search.cli import main
from ndd_search.corpus.document_batches import Pieces
from tests.conftest import LONG
from tests.corpus import made
from tests.corpus import spark as servers
from tests.examples import ROOT, run

COUNT = 600
for_long_runs = pytest.mark.skipif(not LONG, reason="NDD_TEST_LONG=1 runs every test of Spark, which takes minutes")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of pyspark and pandas
]


def documents(count: int = COUNT) -> list[dict[str, Any]]:
    """Documents with copies, equal texts, an empty one, repeated ids and fields to choose by."""
    texts = list(made.texts(count, frames=4))
    texts[7::50] = [texts[7]] * len(texts[7::50])
    texts[11] = ""
    return [
        {
            "id": f"d{number % (count - 3)}",
            "text": text,
            "day": f"2024-01-{number % 28 + 1:02}",
            "site": "ab"[number % 2],
        }
        for number, text in enumerate(texts)
    ]


def write(folder: Path, rows: list[dict[str, Any]], files: int = 3) -> str:
    folder.mkdir()
    for number in range(files):
        part = rows[number * len(rows) // files : (number + 1) * len(rows) // files]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    with (folder / "1.jsonl").open("a") as file:
        file.write("no JSON\n")
    return str(folder / "*.jsonl")


def on_two_hosts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Documents with URLs: pages of one host repeat those of the other, a third of them in another folder."""
    for number, row in enumerate(rows):
        row["url"] = f"https://{row['site']}.example/{'old/' * (number % 3 == 0)}{number // 2}"
        row["text"] = rows[number - 1]["text"] if number % 2 else row["text"]
    return rows


def by_document(rows: Iterator[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["document"]: row for row in rows}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with servers.session_or_skip("local[2,4]") as session:
        yield session


def corpus_on(spark: Any, *sources: Any, **more: Any) -> Any:
    return importlib.import_module("ndd_search.corpus.spark").SparkCorpus.read(spark, *sources, **more)


def test_groups_of_files_are_those_of_one_machine(spark: Any, tmp_path: Path) -> None:
    source, said, said_here = write(tmp_path / "docs", documents()), list[str](), list[str]()
    reading: dict[str, Any] = {"text": "text", "fields": ["day"]}
    here = ndd.Corpus.read(source, **reading, report=said_here.append)
    there = corpus_on(spark, source, **reading, work=tmp_path / "work", report=said.append)
    assert sorted(said) == sorted(said_here)
    assert len(there) == len(here) == COUNT - 3
    wishes: Any = {"method": "communities", "guards": ["within:day=20d"]}
    groups, expected = there.groups(**wishes), here.groups(**wishes)
    assert by_document(groups.table.toArrow().to_pylist()) == by_document(expected.rows())
    assert groups.effort.cut == 0
    wishes = {"preset": ndd.preset("news"), "guards": ["length:0.8"]}
    assert by_document(there.groups(**wishes).table.toArrow().to_pylist()) == by_document(here.groups(**wishes).rows())
    with pytest.raises(ValueError, match="is not on Spark"):
        there.groups(method="inclusive")


PUBLISHED = [
    ("w3-k64-v4-minhash", "auto"),
    ("w3-k64-v4-broder", "auto"),
    ("w3-k6-v4-super", "auto"),
    ("s1-k64-v4-broder-crc32-english", 0.3),
    ("w1-k4-v4-simhash", "auto"),
    ("w1-k4-v4-simhash", 0.92),
    ("c4-k10-v4-ngrams", "auto"),
    ("c17-k16-v4-overlap", "auto"),
    ("w1-k2-v4-profile", "auto"),
]


@pytest.mark.parametrize(("recipe", "bar"), PUBLISHED)
def test_groups_by_a_published_method_are_those_of_one_machine(
    spark: Any, tmp_path: Path, recipe: str, bar: float | str
) -> None:
    """NDD_TEST_LONG=1 compares the groups of 20,000 documents."""
    made_of = documents(20_000 if LONG else COUNT)
    rows = [{**row, "text": re.sub(r"((?:\S+ ){9}\S+) ", r"\1. ", row["text"])} for row in made_of]
    source = write(tmp_path / "docs", rows)
    here = ndd.Corpus.read(source, text="text", recipe=recipe).groups(bar)
    there = corpus_on(spark, source, text="text", recipe=recipe, work=tmp_path / "work").groups(bar)
    assert by_document(there.table.toArrow().to_pylist()) == by_document(here.rows())
    assert sum(row["size"] > 1 for row in here.rows()) > 10
    if "simhash" in recipe:  # only near fingerprints travel from the tables
        assert there.effort == here.effort


def test_every_row_of_the_page_of_methods_is_tried_here() -> None:
    page = (ROOT / "docs" / "recipes.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| `Recipe[^`]+`, ([\w-]+) \|", page, re.MULTILINE)
    assert set(rows) == {name for name, _ in PUBLISHED}


def kill_once(flag: Path) -> Any:
    """A stage that ends its own process with SIGKILL the first time."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return stage


@for_long_runs
def test_a_killed_process_changes_nothing(spark: Any, tmp_path: Path) -> None:
    """A DataFrame, whose documents have the order of their ids, is read by a process that is killed."""
    rows = sorted({row["id"]: row for row in documents(200)}.values(), key=lambda row: row["id"])
    flag = tmp_path / "killed"
    table = spark.createDataFrame(pa.Table.from_pylist(rows).select(["id", "text"]))
    table = table.mapInArrow(kill_once(flag), "id string, text string")
    there = corpus_on(spark, table, id="id", text="text", work=tmp_path / "work").pairs(0.5).table
    here = ndd.Corpus.read(rows, text="text").pairs(0.5)
    expected = {(int(first), int(second)) for first, second in zip(here.pairs.first, here.pairs.second, strict=True)}
    expected |= {(int(same), place) for place, same in enumerate(here.same) if same != place}
    place = {row["id"]: number for number, row in enumerate(rows)}
    assert {(place[row["first"]], place[row["second"]]) for row in there.toArrow().to_pylist()} == expected
    assert flag.exists()


@pytest.mark.newest_servers
def test_an_index_is_a_source(spark: Any, engine: Any, index: str, tmp_path: Path) -> None:
    """Also by an id of its own, with guards of fields within objects, and beside a file."""
    rows = [{**row, "page": {"site": row["site"]}, "key": f"k{row['id']}"} for row in documents(60)[:57]]
    with engine.client() as client:
        client.bulk(
            body=[line for row in rows for line in ({"index": {"_index": index, "_id": row["id"]}}, row)], refresh=True
        )
    of_engine = importlib.import_module("ndd_search.corpus.spark_index").SparkIndex
    source = of_engine(engine=engine.family, url=engine.url, index=index, slices=3)
    more = [{**rows[0], "key": "another"}, {**rows[1], "text": "An id that the index has."}]
    (tmp_path / "more.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in more))
    reading: dict[str, Any] = {"text": "text", "id": "key", "fields": ["page.site", "day"]}
    said: list[str] = []
    there = corpus_on(spark, source, tmp_path / "more.jsonl", **reading, work=tmp_path / "work", report=said.append)
    assert said == ["the collection: document 59 is left out, an earlier one has its id, 'k" + rows[1]["id"] + "'"]
    here = ndd.Corpus.read([*rows, {**rows[0], "key": "another"}], **reading)
    wishes: Any = {"keep": ["newest:day", "longest"], "guards": ["same:page.site"]}
    groups = there.groups(**wishes)
    sizes = {row["document"]: row["size"] for row in groups.table.toArrow().to_pylist()}
    assert sizes == {row["document"]: row["size"] for row in here.groups(**wishes).rows()}
    written = [json.loads(row["document"]) for row in groups.unique_documents().collect()]
    assert sorted(row["key"] for row in written) == sorted(
        row["key"] for row in here.groups(**wishes).unique_documents()
    )
    assert all(row["text"] != more[1]["text"] for row in written)


def test_of_rows_of_a_data_frame_with_one_id_the_first_is_written(spark: Any, tmp_path: Path) -> None:
    rows = [("a", 2, "seven eight nine ten eleven"), ("b", 3, "red green blue yellow"), ("a", 1, "one two three four")]
    table = spark.createDataFrame(rows, "key string, day int, body string")
    reading: dict[str, Any] = {"text": "body", "id": "key", "order_by": ["day"], "report": lambda sentence: None}
    groups = corpus_on(spark, table, **reading, work=tmp_path / "work").groups()
    assert [row["day"] for row in groups.unique_documents().collect()] == [1, 3]
    assert groups.unique(str(tmp_path / "unique.jsonl")) == 2


@pytest.mark.parametrize("option", ["--since x", "--set origins=x", "--fields x", "--report x"])
def test_what_one_machine_alone_does_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark")
    command = ["corpus", "groups", str(Path(__file__).parent), "--text", "text", "--spark", "local[2]", "--store", "w"]
    assert main([*command, "--out", "groups.parquet", *option.split()]) == 2
    assert f"{re.split('[ =]x', option)[0]} does not go with --spark" in capsys.readouterr().err


def test_a_field_of_a_setting_that_no_document_has_is_refused(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    source, out = write(tmp_path / "docs", documents()), str(tmp_path / "groups.parquet")
    command = ["corpus", "groups", source, "--text", "text", "--spark", "local[2]", "--store", str(tmp_path / "work")]
    assert main([*command, "--out", out, "--set", "guards=same:stie"]) == 2
    assert "no document has a value in the field 'stie', which an option names" in capsys.readouterr().err


@for_long_runs
def test_the_command_writes_a_folder_of_parquet(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "docs", documents())
    wishes = {"keep": ["newest:day", "longest"], "guards": ["same:site"]}
    command = ["corpus", "groups", source, "--text", "text", "--spark", "local[2]", "--json"]
    assert main(command) == 2
    assert "--store FOLDER" in capsys.readouterr().err
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # the session of these tests is used, and goes on
    command += ["--set", "keep=newest:day,longest", "--set", "guards=same:site", "--store", str(tmp_path / "work")]
    assert main([*command, "--out", str(tmp_path / "groups.parquet")]) == 3
    told = capsys.readouterr()
    assert "2.jsonl, line 198, is left out, an earlier one has its id, 'd0'" in told.err
    corpus = ndd.Corpus.read(source, text="text", fields=["day", "site"], report=lambda _: None)
    groups = corpus.groups(**wishes)  # type: ignore[arg-type]
    near = len(corpus) - len(groups)
    assert json.loads(told.out) == {"documents": len(corpus), "groups": len(groups), "near_duplicates": near}
    parts = Pieces.of([tmp_path / "groups.parquet"]).pieces
    written = [row for part in parts for row in parquet.read_table(part).to_pylist()]
    assert by_document(iter(written)) == by_document(groups.rows())


def lines(path: Path) -> list[str]:
    """The lines of a file, or of all files in a folder."""
    return [line for file in sorted(path.glob("part-*")) or [path] for line in file.read_text().split("\n")[:-1]]


@for_long_runs
def test_the_commands_write_what_those_of_one_machine_write(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Document by document: unique and new documents in their order, saved sketches, and pairs of hosts."""
    rows = on_two_hosts(documents())
    source, before = write(tmp_path / "docs", rows), write(tmp_path / "before", rows[:200])
    with (tmp_path / "docs" / "2.jsonl").open("a") as file:
        file.write('{"id": "exact", "text": "no other text has these words", "price": 3.14159265358979323846}\n')
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # the session of these tests is used, and goes on

    def written(action: str, name: str, *more: str) -> Path:
        """Run an action on one machine and on Spark. What both print and how both end is the same."""
        out = {where: tmp_path / f"{where}-{name}" for where in ("here", "there")}
        ends = {}
        for where, cluster in (("here", []), ("there", ["--spark", "local[2]", "--store", str(tmp_path / "work")])):
            words = [one.replace("WHERE", str(tmp_path / where)) for one in more]
            command = ["corpus", action, *words, "--text", "text", "--out", str(out[where]), "--json", *cluster]
            ends[where] = main(command), capsys.readouterr().out
        assert ends["here"] == ends["there"]
        return out["there"]

    there = written("unique", "unique.jsonl", source, "--set", "keep=longest", "--set", "guards=numbers")
    assert lines(there) == lines(tmp_path / "here-unique.jsonl")
    written("pairs", "pairs.parquet", before, "--save", "WHERE-saved.parquet", "--set", "guards=same:site")
    assert ndd.Corpus.load(tmp_path / "there-saved.parquet").ids == ndd.Corpus.load(tmp_path / "here-saved.parquet").ids
    new = [source, "--min-similarity", "0.5", "--set", "guards=same:site", "--against"]
    there = written("new", "new.jsonl", *new, "WHERE-saved.parquet", "--save", "WHERE-next.parquet")
    assert lines(there) == lines(tmp_path / "here-new.jsonl")
    saved = [ndd.Corpus.load(tmp_path / f"{where}-next.parquet") for where in ("here", "there")]
    assert saved[0].ids == saved[1].ids
    assert (saved[0].sketches.values == saved[1].sketches.values).all()
    assert saved[0].columns == saved[1].columns
    there = written("new", "first.jsonl", *new, "WHERE-known.parquet", "--save", "WHERE-known.parquet")
    assert lines(there) == lines(tmp_path / "here-first.jsonl") != []
    known = [ndd.Corpus.load(tmp_path / f"{where}-known.parquet") for where in ("here", "there")]
    assert known[0].ids == known[1].ids
    there = written("new", "again.jsonl", *new, str(tmp_path / "here-next.parquet"))
    assert lines(there) == []
    there = written("hosts", "hosts.parquet", source, "--url", "url")
    hosts = parquet.read_table(there).to_pylist()
    assert hosts == parquet.read_table(tmp_path / "here-hosts.parquet").to_pylist()
    assert hosts[0]["moved"] > 0


@for_long_runs
@pytest.mark.newest_servers
def test_unique_and_new_documents_of_an_index_are_those_of_one_machine(
    spark: Any, engine: Any, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all their fields. Which of two copies is unique is a matter of `keep`; there are no copies among the new."""
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # the session of these tests is used, and goes on
    rows = [
        {"text": text, "second": number, "deep": {"a": [{"b": None}, {"b": 1}], "ü": "ß\u2028"}, "list": ["x", "y"]}
        for number, text in enumerate(made.texts(60, seed=3, copies=0))
    ]
    old = [{**row, "second": 100 + number} for number, row in enumerate(rows[:20])]
    del rows[-1]["text"]
    with engine.client() as client:
        actions = [line for at, row in enumerate(rows + old) for line in ({"index": {"_id": f"d{at}"}}, row)]
        client.bulk(index=index, body=actions, refresh=True)
    ndd.Corpus.read(old, text="text").save(tmp_path / "old.parquet")
    for action, more, count in (
        ("unique", ["--set", "keep=newest:second"], 60),
        ("new", ["--against", str(tmp_path / "old.parquet")], 40),
    ):
        out = {where: tmp_path / f"{where}-{action}.jsonl" for where in ("here", "there")}
        for where, cluster in (("here", []), ("there", ["--spark", "local[2]", "--store", str(tmp_path / "work")])):
            command = ["corpus", action, f"{engine.url}/{index}", *more, "--text", "text", "--out", str(out[where])]
            assert main([*command, *cluster]) == 0
        documents_there = [json.loads(line) for line in lines(out["there"])]
        assert sorted(lines(out["there"])) == sorted(lines(out["here"]))
        assert len(documents_there) == count
        assert all(document["deep"] == rows[0]["deep"] for document in documents_there)


@for_long_runs
def test_the_examples_of_the_page_run(spark: Any, tmp_path: Path) -> None:
    folders = {f'"{name}"': f'"{tmp_path / name}"' for name in ("work", "unique")}
    assert run(ROOT / "docs" / "spark.md", {"python spark"}, folders) == 2
    assert sorted(row["url"] for row in parquet.read_table(tmp_path / "unique").to_pylist()) == ["a", "c"]
