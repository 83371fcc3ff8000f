"""The parts of a collection on Spark lose no pair, however many there are; test_spark.py runs them on Spark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ndd_search import native
from ndd_search.core.matching.decision import Decision, Setting
from ndd_search.core.methods.simhash import as_sketches, cosine, fingerprints
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.corpus import spark_parts
from ndd_search.corpus.collection_pairs import Search, frequency_table
from ndd_search.corpus.guard_columns import Guards
from ndd_search.corpus.spark_parts import Parts
from ndd_search.corpus.spark_stages import Meeting
from tests.corpus import made

COUNT = 1_500
RECIPE = Recipe(k=32)


def pairs_in_parts(search: Search, sketches: Sketches, sampled: int, old: int = 0) -> tuple[set[int], int, list[int]]:
    """The pairs of different documents, as numbers, what the budget left out, and the size of each part."""
    search = replace(search, guards=Guards(apart=search.guards.apart))
    wanted = np.flatnonzero(search.pairs(sketches).same == np.arange(len(sketches)))
    wanted = wanted[np.diff(sketches.offsets)[wanted] > 0]
    parts = Parts.of(search, len(sketches), len(wanted), lambda: sketches.taken(wanted[::sampled]))
    meeting = Meeting(search, parts, old)
    zeros = np.zeros(len(wanted))
    chosen = sketches.taken(wanted)
    columns = {
        "rank": pa.array(wanted),
        "sketch": pa.ListArray.from_arrays(pa.array(chosen.offsets, pa.int32()), chosen.values),
        "code": pa.array(zeros.astype(np.int64)),
        "time": pa.array(zeros),
    }
    entered = pa.Table.from_batches(list(meeting.enter(iter(pa.table(columns).to_batches(200)))))
    cut = sum(batch.column("cut")[0].as_py() for batch in meeting.count_cut(iter(pa.table(columns).to_batches())))
    found: set[int] = set()
    sizes = []
    for part in range(parts.number):
        rows = entered.filter(pa.compute.equal(entered.column("part"), part))
        sizes.append(rows.num_rows)
        for row in meeting.meet(rows).to_pylist():
            if row["effort"] is None:
                found.add(row["first"] * COUNT + row["second"])
            else:
                cut += row["effort"][2]
    return found, cut, sizes


@pytest.mark.parametrize(("size", "blocks"), [(1_200, 3), (700, 4)])
def test_a_few_parts_are_any_two_blocks(size: int, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_parts, "SIZE", size)
    sketches = made.sketches(2, COUNT, RECIPE.k)
    search = Search(recipe=RECIPE, decision=Decision.of(0.5, RECIPE))
    whole = search.pairs(sketches).pairs
    found, _, sizes = pairs_in_parts(search, sketches, 1)
    assert found == set((whole.first * COUNT + whole.second).tolist())
    assert len(sizes) == blocks * (blocks - 1) // 2
    assert max(sizes) <= size


@pytest.mark.parametrize("bar", ["auto", 0.5])
def test_no_pair_is_lost_however_many_parts_there_are(bar: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether holders are counted in all documents or in a seventh of them, and lists cut into blocks of ten."""
    monkeypatch.setattr(spark_parts, "SIZE", 100)
    monkeypatch.setattr(spark_parts, "LISTED", 10)
    sketches = made.sketches(2, COUNT, RECIPE.k)
    table = frequency_table(sketches, RECIPE) if bar == "auto" else None
    search = Search(recipe=RECIPE, decision=Decision.of(bar, RECIPE, table))
    whole = search.pairs(sketches).pairs
    expected = set((whole.first * COUNT + whole.second).tolist())
    for sampled in (1, 7):
        found, cut, sizes = pairs_in_parts(search, sketches, sampled)
        assert (found, cut) == (expected, 0)
        assert len(sizes) > 5
        assert max(sizes) < 600
    few, cut, _ = pairs_in_parts(replace(search, budget=5), sketches, 1)
    if native.core:  # numpy compares all documents of a part that meet, whatever the budget is
        assert few < expected
        assert cut > 0
    later, _, _ = pairs_in_parts(search, sketches, 1, old=700)
    assert later == {pair for pair in expected if pair % COUNT >= 700}


@pytest.mark.parametrize("most", [0, 3, 12])
def test_near_fingerprints_are_together_in_a_part(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_parts, "SIZE", 200)
    prints = np.unique(fingerprints(made.texts(COUNT, frames=2)))
    sketches = Sketches(as_sketches(prints).ravel(), np.arange(len(prints) + 1) * 4)
    recipe = Recipe.simhash()
    search = Search(recipe=recipe, decision=Decision.of(float(cosine(most)), recipe))
    whole = search.pairs(sketches).pairs
    found, _, sizes = pairs_in_parts(search, sketches, 1)
    assert found == set((whole.first * COUNT + whole.second).tolist())
    assert len(sizes) > 5


@pytest.mark.parametrize("bar", ["auto", 0.5])
def test_the_core_and_numpy_find_the_same_pairs_of_parts(bar: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    sketches = made.sketches(5, 400, RECIPE.k)
    table = frequency_table(sketches, RECIPE) if bar == "auto" else None
    search = Search(recipe=RECIPE, decision=Decision.of(bar, RECIPE, table), min_shingles=5)
    monkeypatch.setattr(spark_parts, "SIZE", 50)
    by_core = pairs_in_parts(search, sketches, 1, old=100)[0]
    monkeypatch.setattr(native, "core", None)
    assert by_core == pairs_in_parts(search, sketches, 1, old=100)[0] != set()
