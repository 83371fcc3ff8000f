"""Each value of each option meets each value of every other one, on all pages of a search, on each server.

The rows are generated (see all_pairs), and hold what every page promises (see walks). REFUSED names the combinations
that have no meaning: each is refused with a sentence that names its options, and all others work.
`make prove ARGS=options` draws combinations of more than two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.options import KINDS
from tests.conftest import KIND
from tests.engines.find import Engine
from tests.prove.all_pairs import Row, all_pairs, each_of
from tests.prove.options import FACTORS, FIRST, ITEMS, NOT_TOGETHER, OPTIONS, REFUSED, running, walk_of
from tests.prove.walks import SEED

pytestmark = pytest.mark.newest_servers

FAULTS: list[dict[str, Any]] = [  # three or more options that once failed together
    {"size": 5, "group_by": ["isbn"], "window": 4},
    {"size": 3, "members": "all", "max_per": ["source:3", "isbn:1"], "window": 15},
    {"size": 5, "mode": "annotate", "seen": "texts", "window": 15},
    {"size": 5, "mode": "demote", "seen": "texts", "window": 4},
    {"size": 12, "max_window": 17, "window": 4},
    {"size": 12, "facets": ["sources"], "seen": "texts", "window": 60},
    {"size": 3, "items": ITEMS, "total": "estimate", "window": 4},
    {"size": 12, "members": "all", "guards": ["same:language"], "paging": "msearch"},
    {"size": 5, "members": "all", "guards": ["numbers"], "query": "all"},
    {"size": 5, "paging": "cursor", "seen": "hits", "total": "groups"},
    {
        **{"size": 3, "mode": "ids", "keep": ["newest:day"], "max_per_group": 2, "group_by": ["isbn", "work"]},
        **{"max_per": ["source:3", "isbn:1"], "min_similarity": "high", "paging": "msearch", "total": "groups"},
    },
]
PARTS = 4  # of the table, so that each test takes seconds


@cache
def table() -> list[Row]:
    faults: list[Row] = [{name: str(value) for name, value in one.items()} for one in FAULTS]
    return faults + all_pairs(FACTORS, [*REFUSED, *NOT_TOGETHER], f"{SEED} 0")


@pytest.fixture(scope="module")
def where(engine: Engine) -> Iterator[Row]:
    """The engine and the kind of client of a row."""
    with running(engine, ["0"]):
        yield {"engine": engine.name, "client": KIND[engine.name], "which": "0"}


def test_every_option_is_in_the_table() -> None:
    assert OPTIONS.keys() == KINDS.keys()
    default = ndd.CollapseOptions()
    for name in OPTIONS.keys() - {"window"}:
        first = OPTIONS[name][0]
        assert ndd.CollapseOptions(**{name: first}) == default, name


@pytest.mark.parametrize("part", range(PARTS))
def test_pages_keep_their_promises_whatever_is_combined(part: int, where: Row) -> None:
    rows = table()
    for number in range(part, len(rows), PARTS):
        row = rows[number]
        try:
            with ExitStack() as served:
                walk_of(where | row, served).check()
        except Exception as error:
            told = {name: value for name, value in row.items() if value != FIRST[name]}
            raise AssertionError(f"row {number}, NDD_TEST_SEED={SEED}: {told}") from error


@pytest.mark.parametrize("given", ["body", "rule", "block"])
def test_a_combination_without_a_meaning_is_refused_by_its_names(given: str, where: Row) -> None:
    for pair in each_of(REFUSED):
        with pytest.raises((ValueError, ndd.errors.NDDError)) as refused:
            walk_of(where | {"given": given} | pair).check()
        told = str(refused.value)
        assert all((pair[name] if name == "paging" else name) in told for name in pair), (pair, told)
