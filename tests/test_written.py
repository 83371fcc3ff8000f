"""What every earlier version has written is read by this one (see `tests.written`)."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging import cache_entries
from ndd_search.core.sketching import sketch_many
from ndd_search.core.sketching.sketches import Lack
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.flow.choose_frequency_table import read_document
from tests.written import CURSOR_KEY, FOLDER, KEY, driver, engine, page, stream, table, texts

FILES = sorted(FOLDER.glob("*.json"))


@pytest.fixture(params=FILES, ids=[file.stem for file in FILES])
def written(request: pytest.FixtureRequest) -> Any:
    file: Path = request.param
    return json.loads(file.read_text())


def test_a_recipe_still_names_the_same_sketches(written: Any) -> None:
    """A later version of a recipe has another id; sketches of the earlier one are then foreign and stand alone."""
    for id, stored in written["sketches"].items():
        fields = [
            {f"ndd.{name}": value if name == "sketch" else [value] for name, value in one.items()} for one in stored
        ]
        held = [{"fields": one if one["ndd.sketch"] else {"ndd.recipe": one["ndd.recipe"]}} for one in fields]
        try:
            recipe = ndd.Recipe.of(id)
        except ValueError:
            assert set(SketchField().decode(held, ndd.Recipe())) <= {Lack.FOREIGN, Lack.EMPTY}
            continue
        assert [one.tolist() for one in sketch_many(texts(), recipe)] == [one["sketch"] for one in stored]
        read = SketchField().decode(held, recipe)
        assert [[] if isinstance(one, Lack) else one.tolist() for one in read] == [one["sketch"] for one in stored]


def test_a_frequency_table_is_read(written: Any) -> None:
    assert FrequencyTable.from_dict(written["table"]) == table()
    assert read_document({"_source": written["stored table"]}, "w3-k64-v4") == table()


def test_a_cursor_is_continued(written: Any) -> None:
    """After an upgrade between two pages, the second one is what it would have been without."""
    for key, token in written["cursors"].items():
        at = engine()
        new = page(at, driver(key or None), True)
        old = page(at, driver(key or None), token)
        assert old["hits"] == page(at, driver(key or None), new["ndd"]["cursor"])["hits"]
        assert old["ndd"]["page"] == 2
    assert set(written["cursors"]) == {"", CURSOR_KEY}


def test_a_cache_entry_is_read_unless_its_format_has_another_version(written: Any) -> None:
    entry = b64decode(written["entry"])
    found = cache_entries.unsealed(KEY, entry)
    if entry[3] != cache_entries.VERSION:
        assert found is None
        return
    assert found is not None
    read, expected = cache_entries.stream_of(*found), stream()
    assert (read.hits, read.lacking, read.total) == (expected.hits, expected.lacking, expected.total)
    assert [one.tolist() for one in read.sketches] == [one.tolist() for one in expected.sketches]
    assert read.leader.tolist() == expected.leader.tolist()
    assert read.similarity.tolist() == expected.similarity.tolist()
