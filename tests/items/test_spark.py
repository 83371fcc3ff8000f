"""Groups of records found on Spark: they are those of one machine, whatever fails on the way.

Needs pyspark, pandas and Java 17 or later, else the tests are skipped; NDD_TEST_REQUIRE_ENGINES=spark fails instead.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

import ndd_search as ndd
from ndd_search import native
from ndd_search.cli import main
from ndd_search.items import spark_stages as stages
from ndd_search.items.candidate_pairs import Bounds, find_candidates
from ndd_search.items.record_columns import read_table
from ndd_search.items.record_groups import Method, read_records
from tests import collections
from tests.conftest import LONG
from tests.corpus import spark as servers
from tests.corpus.test_spark import kill_once
from tests.items.cathedrals import ARMAGH, CORK, DUBLIN, FINBARR, PLACES
from tests.items.made import PEOPLE, Made, people, sites

for_long_runs = pytest.mark.skipif(not LONG, reason="NDD_TEST_LONG=1 runs every test of Spark, which takes minutes")
pytestmark = [
    pytest.mark.skipif(native.core is None, reason="Spark needs the native core"),
    pytest.mark.filterwarnings("ignore"),  # of pyspark and pandas
]
items = ndd.items


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with servers.session_or_skip("local[2,4]") as session:
        yield session


def written(folder: Path, rows: list[dict[str, Any]], files: int = 3) -> str:
    folder.mkdir()
    for number in range(files):
        part = rows[number * len(rows) // files : (number + 1) * len(rows) // files]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    return str(folder / "*.jsonl")


def records_on(spark: Any, *sources: Any, **more: Any) -> Any:
    return importlib.import_module("ndd_search.items.spark").SparkRecords.read(spark, *sources, **more)


def rows_of(table: Any) -> list[tuple[str, str, int]]:
    return sorted((row["record"], row["group"], row["size"]) for row in table.toArrow().to_pylist())


def rows_here(groups: Any) -> list[tuple[str, str, int]]:
    return sorted((row["record"], row["group"], row["size"]) for row in groups.rows())


def test_groups_of_files_are_those_of_one_machine_though_many_tasks_find_them(
    spark: Any, made: Made, learnt: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Bounds leave most candidates out, and they leave out the same ones."""
    rows = [*made.records, *made.records[40:60], {"id": "bad", "born": "soon", "first_name": "?"}, {"id": "nothing"}]
    rows[9:9] = [{**row, "id": f"copy-{row['id']}"} for row in made.records[:30]]
    source, said, said_here = written(tmp_path / "people", rows), list[str](), list[str]()
    here = learnt.groups(read_records([source], "id", said_here.append)[0], id="id")
    with caplog.at_level(logging.WARNING, "ndd_search"):
        there = records_on(spark, source, schema=learnt, id="id", work=tmp_path / "work", report=said.append)
    assert sorted(said) == sorted(said_here)
    assert len(said) == 20
    assert "1 values of born could not be read and count as missing" in caplog.messages
    assert rows_of(there.groups()) == rows_here(here)
    bounds, many = Bounds(holders=9, tokens=4, most=5), replace(there, range=100)
    few = learnt.groups(source, id="id", bounds=bounds)
    assert rows_of(many.groups(bounds=bounds)) == rows_here(few)
    assert rows_here(few) != rows_here(here)


def every_kind() -> tuple[Any, list[dict[str, Any]]]:
    """Records with a field of each kind, vetoes and `needs`."""
    schema = items.Items(
        name=items.Name(synonyms="english-abbreviations"),
        summary=items.Text(),
        location=items.Place(source=("lat", "lon")),
        price=items.Number(),
        opened=items.Date(),
        tags=items.Category(veto=True),
        code=items.Exact(),
        page=items.Url(),
        needs=[("name", "location"), ("code",)],
    )
    rows = []
    for place in range(240):
        thing = place % 80
        rows.append(
            {
                "id": f"r{place:03}",
                "name": f"{('St.', 'Saint')[place % 2]} {'Abcdefghijklmnop'[thing % 16]}na {thing // 4} Church",
                "summary": f"A church with {thing} pews and a tower that was built by {place % 3 + 1} masons",
                "lat": (thing - 40) / 8 + place % 3 / 500 if place % 7 else None,
                "lon": -0.0 if thing == 40 else float(thing),
                "price": [12.5, f"EUR {thing},50", -0.0, 0][place % 4],
                "opened": [f"{1800 + thing}-03-04", f"4.3.{1800 + thing}", None][place % 3],
                "tags": [["a", "b"], ["b", "a"], ["c"]][place % 3 if thing % 5 == 0 else 0],
                "code": [f"C-{thing}", f"c {thing}"] if place % 4 else None,
                "page": f"https://www.example.org/{thing}/" if place % 5 else "no address",
            }
        )
    return schema, rows


@pytest.mark.parametrize("method", get_args(Method) if LONG else ["correlation"])
def test_groups_of_a_data_frame_are_those_of_its_order(spark: Any, method: Any, tmp_path: Path) -> None:
    """Fields of every kind, by the columns of a table; 0.0 and -0.0 are one value."""
    schema, rows = every_kind()
    rows = [{**row, "price": str(row["price"])} for row in rows]
    table = spark.createDataFrame(pa.Table.from_pylist(rows[::-1]))
    there = records_on(spark, table, schema=schema, id="id", order_by=["opened"], work=tmp_path / "work")
    ordered = sorted(rows, key=lambda row: (row["opened"] is not None, row["opened"] or "", row["id"]))
    here = schema.groups(ordered, method=method)
    assert rows_of(replace(there, range=50).groups(method)) == rows_here(here)
    assert 50 < len(here) < 220


def each(rows: pa.Table, stage: Any) -> pa.Table:
    """What a stage makes of the rows of each part, in this process."""
    part = rows.column("part").to_numpy()
    return pa.concat_tables([stage(rows.filter(pa.array(part == one))) for one in np.unique(part)] or [rows])


@pytest.mark.parametrize(
    ("size", "bounds"), [(90, Bounds()), (90, Bounds(holders=12, tokens=5, most=4)), (5_000, Bounds.of(2_000))]
)
def test_candidates_of_ranges_of_records_are_those_of_all_records(learnt: Any, bounds: Bounds, size: int) -> None:
    """Without Spark: in ranges of so many records."""
    rows = people(700, seed=11).records
    comparison = learnt.comparison(read_table(learnt.fields, rows))
    expected = find_candidates(comparison, bounds)
    texts = stages.ReadingRecords("id", learnt.fields).columns(rows)["fields"]
    table = pa.table({"place": np.arange(len(rows)), "fields": texts})
    search = stages.Stages(learnt, bounds, len(rows), size)
    held = each(pa.Table.from_batches(search.enter(iter(table.to_batches(300)))), search.count_holders)
    is_head = pa.array(held.column("part").to_numpy() < 0)
    search = search.numbering(held.filter(is_head))
    chosen = each(held.filter(pc.invert(is_head)), search.choose)
    is_joined = pa.array(chosen.column("part").to_numpy() >= search.joined_from)
    joined = each(each(chosen.filter(is_joined), search.count_joined), search.choose_joined)
    lists = each(pa.concat_tables([chosen.filter(pc.invert(is_joined)), joined]), search.list_holders)
    found = np.unique(stages.columns_of(each(lists, search.meet), "pair"))
    assert found.tolist() == (expected.first * len(rows) + expected.second).tolist()
    assert len(found) > 1_000


def test_many_records_need_a_learnt_schema(learnt: Any) -> None:
    """One machine counts the values of a collection of this size; on Spark only learning does."""
    unlearnt = items.Items(**learnt.fields)
    stages.Stages(unlearnt, Bounds(), 999, 10_000)
    stages.Stages(learnt, Bounds(), 1_000, 10_000)
    with pytest.raises(ValueError, match="1,000 records or more need a learnt schema"):
        stages.Stages(unlearnt, Bounds(), 1_000, 10_000)


def collection(name: str) -> tuple[Any, list[dict[str, Any]]]:
    """A schema and the records of a set of these tests, or of a labelled collection."""
    if name == "cathedrals":
        held: list[dict[str, Any]] = [dict(row) for row in (CORK, DUBLIN, FINBARR, ARMAGH, CORK)]
        return PLACES, [{**row, "id": str(place)} for place, row in enumerate(held)]
    if name in ("people", "sites"):
        rows = people(1_500, seed=3).records if name == "people" else sites(500, 0.4, 4).records
        return items.Items.learn(rows, PEOPLE if name == "people" else None), rows
    rows = [{**row["fields"], "ndd id": row["id"]} for row in collections.read(name)]
    fields = [{key: value for key, value in row.items() if key != "ndd id"} for row in rows]
    return items.Items.learn(fields), rows


@for_long_runs
@pytest.mark.parametrize(
    "name", ["cathedrals", "people", "sites", "countries", "early_childhood", "patstat", "airports", "febrl"]
)
def test_groups_of_every_set_are_those_of_one_machine(spark: Any, name: str, tmp_path: Path) -> None:
    schema, rows = collection(name)
    id = "ndd id" if "ndd id" in rows[0] else "id"
    source = written(tmp_path / "records", rows)
    there = records_on(spark, source, schema=schema, id=id, work=tmp_path / "work")
    assert rows_of(replace(there, range=3_000).groups()) == rows_here(schema.groups(rows, id=id))


@for_long_runs
def test_a_killed_process_changes_nothing(spark: Any, made: Made, learnt: Any, tmp_path: Path) -> None:
    flag = tmp_path / "killed"
    rows = sorted(made.records, key=lambda row: str(row["id"]))
    names = ["id", *learnt.fields]
    table = spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], [f"{n}" for n in names])
    table = table.mapInArrow(kill_once(flag), ", ".join(f"{name} string" for name in names))
    there = records_on(spark, table, schema=learnt, id="id", work=tmp_path / "work")
    assert rows_of(there.groups()) == rows_here(learnt.groups(rows))
    assert flag.exists()


@for_long_runs
def test_the_command_writes_a_folder_of_parquet(
    spark: Any,
    made: Made,
    learnt: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # the session of these tests is used, and goes on
    learnt.write(tmp_path / "people.toml")
    source = written(tmp_path / "people", made.records)
    command = ["items", "groups", source, "--schema", str(tmp_path / "people.toml"), "--spark", "local[2]", "--json"]
    assert main([*command, "--out", "groups.parquet"]) == 2
    assert "--store FOLDER" in capsys.readouterr().err
    command += ["--store", str(tmp_path / "work"), "--out", str(tmp_path / "groups.parquet")]
    assert main([*command, "--report", str(tmp_path / "report.html")]) == 2
    assert "--report does not go with --spark" in capsys.readouterr().err
    assert main(command) == 0
    here = learnt.groups(made.records)
    assert json.loads(capsys.readouterr().out) == {"records": len(made.records), "groups": len(here)}
    found = parquet.read_table(tmp_path / "groups.parquet").to_pylist()
    assert sorted((row["record"], row["group"], row["size"]) for row in found) == rows_here(here)


@for_long_runs
def test_records_without_any_field_of_the_schema_are_no_groups(spark: Any, tmp_path: Path) -> None:
    source = written(tmp_path / "records", [{"id": "a", "title": "x"}])
    with pytest.raises(ndd.errors.NDDError, match="none of them has a value in name"):
        records_on(spark, source, schema=items.Items(name=items.Name()), work=tmp_path / "work")
