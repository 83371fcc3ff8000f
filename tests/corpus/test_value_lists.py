"""The lists of a cluster lose no pair, however they are cut; tests/corpus/test_spark.py runs them on Spark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ndd_search import native
from ndd_search.core.matching.decision import Decision, Setting
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.methods.simhash import Tables, as_sketches, cosine, fingerprints
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.corpus import inverted_lists
from ndd_search.corpus.collection_pairs import Search, frequency_table
from ndd_search.corpus.guard_columns import Guards
from ndd_search.corpus.inverted_lists import Holders, Keys, entries_of, pairs_of, sublists
from ndd_search.corpus.spark_stages import Lists
from ndd_search.errors import IndexUnusable
from tests.corpus import made

COUNT = 1_500
RECIPE = Recipe(k=32)
with_core = pytest.mark.skipif(native.core is None, reason="the lists of a cluster need the native core")


def part(sketches: Sketches, places: Ranks) -> Sketches:
    rows = [sketches[place] for place in places.tolist()]
    return Sketches(np.concatenate(rows), np.cumsum([0, *map(len, rows)]))


def pairs_by_lists(
    search: Search, sketches: Sketches, places: Ranks, sampled: int, budget: int
) -> tuple[set[int], int]:
    """Pairs of some documents that share a list and count, as numbers, and what the budget left out."""
    chosen = part(sketches, places)
    codes = None if search.guards.codes is None else search.guards.codes[places]
    sample = np.arange(0, len(places), sampled)
    holders = Holders.counted(part(chosen, sample), None if codes is None else codes[sample], len(places))
    entries = entries_of(chosen, RECIPE.k, search.native_rule, search.native_table, codes, holders)
    entry, list_of, side, cut = sublists(entries, places, holders, COUNT, budget)
    order = np.lexsort((side, list_of))
    document = places[entries.document[entry[order]]]
    found: set[int] = set()
    for one, other in pairs_of(list_of[order], side[order]):
        first, second = np.minimum(document[one], document[other]), np.maximum(document[one], document[other])
        different = first != second
        checked = search.check(sketches, first[different], second[different])
        found |= set((checked.first * COUNT + checked.second).tolist())
    return found, cut


@with_core
@pytest.mark.parametrize("guarded", [False, True])
def test_holders_are_counted_by_the_keys_that_documents_are_looked_up_by(guarded: bool) -> None:
    sketches = made.sketches(2, COUNT, RECIPE.k)
    codes = np.arange(COUNT) % 3 - 1 if guarded else None
    rule = Search(recipe=RECIPE, decision=Decision(0.5, 3)).native_rule
    holders = Holders(np.full(16, 2, np.uint32))
    found = entries_of(sketches, RECIPE.k, rule, None, codes, holders)
    assert len(found.key)
    assert np.isin(found.key, inverted_lists.keys_of(sketches, codes)).all()


@with_core
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("bar", ["auto", 0.5])
def test_no_pair_is_lost_however_lists_are_cut(bar: Setting, guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether holders are counted in all documents or in a seventh of them, and lists cut into blocks of ten."""
    monkeypatch.setattr(inverted_lists, "LISTED", 10)
    sketches = made.sketches(2, COUNT, RECIPE.k)
    table = frequency_table(sketches, RECIPE) if bar == "auto" else None
    codes = np.arange(COUNT) % 2 if guarded else None
    search = Search(recipe=RECIPE, decision=Decision.of(bar, RECIPE, table), guards=Guards(codes))
    whole = search.pairs(sketches)
    expected = set((whole.pairs.first * COUNT + whole.pairs.second).tolist())
    places = np.flatnonzero((whole.same == np.arange(COUNT)) & (np.diff(sketches.offsets) > 0))
    for sampled in (1, 7):
        assert pairs_by_lists(search, sketches, places, sampled, 10_000) == (expected, 0)
    few, cut = pairs_by_lists(replace(search, budget=10), sketches, places, 1, 10)
    assert few < expected
    assert cut > 0


@pytest.mark.parametrize("most", [0, 3, 12])
def test_fingerprints_that_share_a_key_travel_on_only_if_they_are_near(most: int) -> None:
    """Texts with the same frequent words share most of their keys: the pairs to compare would be a thousand each."""
    prints = np.unique(fingerprints(made.texts(COUNT, frames=2)))
    sketches = Sketches(as_sketches(prints).ravel(), np.arange(len(prints) + 1) * 4)
    keys = Keys.of(float(cosine(most)), sketches, len(prints))
    document, lists, marks = keys.lists(sketches)
    order = np.argsort(lists, kind="stable")
    columns = {"list": lists, "side": np.zeros(len(lists), np.bool_), "rank": document, "print": marks}
    batches = pa.table({name: column[order] for name, column in columns.items()}).to_batches(1_000)
    met = [row for batch in Lists(most=keys.most).meet(iter(batches)) for row in batch.to_pylist()]
    found = {(row["first"], row["second"]) for row in met}
    first, second = Tables(prints, most).pairs()
    assert found == set(zip(first.tolist(), second.tolist(), strict=True))


def test_a_machine_without_the_native_core_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "core", None)
    with pytest.raises(IndexUnusable, match="install a wheel"):
        Holders.counted(made.sketches(1, 5, RECIPE.k), None, 5)


@with_core
@pytest.mark.parametrize("bar", ["auto", 0.5])
def test_the_core_and_numpy_check_pairs_alike(bar: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 400
    sketches, random = made.sketches(5, count, RECIPE.k), np.random.default_rng(5)
    times = random.choice([0.0, 5.0, 20.0, np.nan], count, p=[0.5, 0.2, 0.2, 0.1])
    guards = Guards(random.integers(-1, 3, count), times, 10.0)
    table = frequency_table(sketches, RECIPE) if bar == "auto" else None
    search = Search(recipe=RECIPE, decision=Decision.of(bar, RECIPE, table), min_shingles=5, guards=guards)
    first, second = np.triu_indices(count, 1)
    for one in (search, replace(search, guards=Guards())):
        monkeypatch.undo()
        by_core = one.check(sketches, first, second)
        monkeypatch.setattr(native, "core", None)
        by_numpy = one.check(sketches, first, second)
        assert len(by_core) > 0
        for name in ("first", "second", "similarity"):
            assert (getattr(by_core, name) == getattr(by_numpy, name)).all()
