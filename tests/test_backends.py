"""The recipes of docs/backends.md run against the real backends, and pages over two of them equal the oracle's."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.backends import postgresql, solr
from tests.conftest import missing
from tests.engines.jars import Unavailable
from tests.examples import BLOCK, ROOT, run
from tests.prove import sources

PAGE = ROOT / "docs" / "backends.md"
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


@pytest.mark.parametrize("library", ["bm25s", "lancedb", "qdrant_client"])
def test_the_recipe_for_a_library_runs(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library, reason=WHERE)
    monkeypatch.chdir(tmp_path)
    assert run(PAGE, {"python", f"python {library.removesuffix('_client')}"}) == 5


def test_the_recipe_for_postgresql_runs(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        assert run(PAGE, {"python", "python postgresql"}, {"postgresql:///news": server}) == 7
    finally:
        import psycopg

        with psycopg.connect(server) as connection:
            connection.execute("DROP TABLE IF EXISTS articles")


def test_the_recipe_for_solr_runs(core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        assert run(PAGE, {"python", "python solr"}, {"http://localhost:8983/solr/news": core}) == 5
    finally:
        import pysolr

        pysolr.Solr(core, always_commit=True).delete(q="*:*")


def test_each_recipe_is_shorter_than_25_lines() -> None:
    lengths = [(block["code"].count("\n"), block["kind"]) for block in BLOCK.finditer(PAGE.read_text())]
    assert len(lengths) == 11
    assert max(lengths)[0] < 25, max(lengths)


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
