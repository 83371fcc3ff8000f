"""Pages of lists in memory, `ndd_search.collapse`, compared with the oracle. Two pages of a list are asked for."""

from __future__ import annotations

import random
from collections import Counter

import ndd_search as ndd
from tests.prove.oracle import Oracle, Undecided
from tests.prove.world import Case, World, options_of, recipe_of, tables_of

_NOT_OF_LISTS = {"total", "max_window", "numbers"}


def draw(rng: random.Random) -> Case:
    """Draw a list of texts with edited copies."""
    world = World.of(rng)
    size = rng.choice([2, 3, 5, 10])
    return {
        "documents": world.documents(40), "options": world.options(*_NOT_OF_LISTS), "k": world.k,
        "table": world.table(), "pages": [[rng.choice([0, size, rng.randrange(30)]), size], [0, 100]],
    }  # fmt: skip


def check(case: Case) -> Counter[str]:
    """Compare two pages of a list with the oracle. Raises AssertionError."""
    recipe, options, hits = recipe_of(case["k"]), options_of(case), case["documents"]
    table, given = tables_of(case, recipe)
    sketches = [one["values"] or [] for one in hits]
    whole = {**options, "max_window": max(len(hits), 10_000)}
    oracle, counts = Oracle(hits, whole, recipe.k, recipe.size, table), Counter[str]()
    for start, size in case["pages"]:
        page = ndd.collapse(
            hits, size=size, from_=start, sketches=sketches, recipe=recipe, frequency_table=given, **options
        )
        try:
            expected = oracle.page(start, size)
        except Undecided:
            return counts
        counts["pages"] += 1
        assert [hit["id"] for hit in page.hits] == expected.shown
        copies = {
            one.hit["id"]: {copy.hit["id"]: round(copy.similarity, 4) for copy in one.duplicates} for one in page.groups
        }
        assert {id: under for id, under in copies.items() if under} == expected.listed
        assert (page.info.examined, page.info.kept) == (expected.examined, expected.kept)
        late = [(hits[rank]["id"], hits[leader]["id"]) for rank, leader, _ in page.info.late]
        assert late == expected.late
    return counts
