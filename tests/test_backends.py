"""The examples for other backends run against the real ones, and pages over three of them equal the oracle's."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ndd_search.core.document_fields import value_of
from tests.backends import postgresql, solr
from tests.conftest import missing
from tests.engines.jars import Unavailable
from tests.examples import ROOT
from tests.prove import sources

CASES = 300 if os.environ.get("NDD_TEST_EXAMPLES") == "large" else 100
WHERE = "run `make test-third-parties`"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server."""
    pytest.importorskip("psycopg", reason=WHERE)
    try:
        with postgresql() as address:
            yield address
    except Unavailable as reason:
        missing("postgresql", reason)


@pytest.fixture(scope="module")
def core() -> Iterator[str]:
    """The address of a core of a Solr server."""
    pytest.importorskip("pysolr", reason=WHERE)
    try:
        with solr() as address:
            yield address
    except Unavailable as reason:
        missing("java", reason)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module examples/backends.py."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    return import_module("backends")


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module examples/postgresql.py."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    return import_module("postgresql")


def shown(stream: Any) -> list[list[Any]]:
    """The ids of each group of the first page, that of the hit that is shown first."""
    groups = stream.page().groups
    return [[value_of(hit, "id") for hit in (one.hit, *(copy.hit for copy in one.duplicates))] for one in groups]


@pytest.mark.parametrize(
    ("library", "package", "ids"),
    [
        ("bm25s", "bm25s", [[4], [1, 2]]),
        ("lancedb", "lancedb", [[1, 2], [3], [4]]),
        ("qdrant", "qdrant_client", [[1, 2], [3], [4]]),
        ("tantivy", "tantivy", [[[4]], [[1], [2]]]),  # which returns every value in a list
    ],
)
def test_the_example_for_a_library_runs(
    library: str, package: str, ids: list[Any], example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package, reason=WHERE)
    monkeypatch.chdir(tmp_path)
    assert shown(getattr(example, library)()) == ids


def test_the_example_for_postgresql_runs(server: str, postgres: Any) -> None:
    db = postgres.connect(server)
    try:
        postgres.add(db, [(1, postgres.STEEL), (2, f"UPDATE - {postgres.STEEL}"), (3, postgres.FERRY)])
        assert shown(postgres.search(db, "friday")) == [[1, 2], [3]]
        assert sorted(postgres.find_duplicates(db, postgres.STEEL)) == [1, 2]
        db.execute("UPDATE articles SET body = %s WHERE id = 2", ["The ferry company was sold on Friday for a crown."])
        assert sorted(map(len, shown(postgres.search(db, "friday")))) == [1, 1, 1], "it is no copy any more"
    finally:
        db.execute("DROP TABLE articles")
        db.close()


def test_the_example_for_solr_runs(core: str, example: Any) -> None:
    try:
        assert shown(example.solr(core)) == [["4"], ["1", "2"]]
    finally:
        import pysolr

        pysolr.Solr(core, always_commit=True).delete(q="*:*")


class Core:
    """The documents of a case in a core of Solr, ranked by a field."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def fill(self, documents: list[dict[str, Any]]) -> None:
        self.core.delete(q="*:*")
        rows = enumerate(map(json.dumps, documents))
        self.core.add([{"id": str(place), "place_i": place, "document_s": one} for place, one in rows])

    def fetch(self, start: int, count: int) -> tuple[list[Any], int]:
        found = self.core.search("*:*", sort="place_i asc", start=start, rows=count)
        return [json.loads(one["document_s"]) for one in found], found.hits


class Table:
    """The documents of a case in a table of a database, ranked by a column."""

    def __init__(self, cursor: Any, mark: str) -> None:
        self.cursor, self.mark = cursor, mark
        cursor.execute("CREATE TABLE hits (place integer PRIMARY KEY, document text)")

    def fill(self, documents: list[dict[str, Any]]) -> None:
        self.cursor.execute("DELETE FROM hits")
        rows = [(place, json.dumps(one)) for place, one in enumerate(documents)]
        self.cursor.executemany(f"INSERT INTO hits VALUES ({self.mark}, {self.mark})", rows)

    def fetch(self, start: int, count: int) -> tuple[list[Any], int]:
        ranked = f"SELECT document FROM hits ORDER BY place LIMIT {self.mark} OFFSET {self.mark}"
        hits = [json.loads(document) for (document,) in self.cursor.execute(ranked, (count, start)).fetchall()]
        return hits, self.cursor.execute("SELECT count(*) FROM hits").fetchone()[0]


def compare(table: Table | Core) -> None:
    """Compare the pages of drawn cases over a table with the oracle."""
    counts = Counter[str]()
    for number in range(CASES):
        case = json.loads(json.dumps(sources.draw(random.Random(f"tables/{number}")))) | {"changes": []}
        table.fill(case["documents"])
        counts += sources.compare(case, case["documents"], table.fetch)
    assert counts["pages"] > CASES


def test_pages_over_sqlite_are_those_of_the_oracle() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        compare(Table(connection.cursor(), "?"))


def test_pages_over_postgresql_are_those_of_the_oracle(server: str) -> None:
    import psycopg

    with psycopg.connect(server) as connection:
        compare(Table(connection.cursor(), "%s"))
        connection.rollback()


def test_pages_over_solr_are_those_of_the_oracle(core: str) -> None:
    import pysolr

    client = pysolr.Solr(core, always_commit=True)
    with client.get_session():
        compare(Core(client))
        client.delete(q="*:*")
