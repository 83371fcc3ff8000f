"""The command that measures writes what it measured, and notices when a ratio has become worse."""

from copy import deepcopy
from pathlib import Path

import pytest

from benchmarks.__main__ import PARTS, worse
from benchmarks.document import BLOCKS, rewrite
from benchmarks.page_check import PLAIN

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
FOUND = {"kinds": {kind: {PLAIN: 100.0, "a peer": 400.0} for kind in ("distinct", "20 % duplicates")}}


def test_figures_stand_between_their_marks_and_nothing_else_changes() -> None:
    text = "before\n<!-- kinds -->\nold\n<!-- end -->\nafter <!-- sizes -->\n<!-- end -->\n"
    written = rewrite(text, FOUND)
    assert written.startswith("before\n<!-- kinds -->\n| ")
    assert "| a peer | 400 (4.0x) | 400 (4.0x) |" in written
    assert written.endswith("|\n<!-- end -->\nafter <!-- sizes -->\n<!-- end -->\n")
    assert "old" not in written
    assert rewrite(written, FOUND) == written


def test_figures_without_a_place_are_an_error() -> None:
    with pytest.raises(KeyError, match="no place for kinds"):
        rewrite("a page without marks", FOUND)


def test_the_documentation_has_a_place_for_every_part() -> None:
    text = PAGE.read_text()
    assert {*PARTS} <= {*BLOCKS}
    assert [name for name in BLOCKS if f"<!-- {name} -->\n" not in text] == []


def test_a_ratio_that_became_worse_is_named_and_a_slower_machine_is_not() -> None:
    slower_machine = deepcopy(FOUND)
    for times in slower_machine["kinds"].values():
        for name in times:
            times[name] *= 3
    assert worse(slower_machine, FOUND) == []
    slower_check = deepcopy(FOUND)
    slower_check["kinds"]["distinct"][PLAIN] = 200.0
    assert sorted(line.partition(":")[0] for line in worse(slower_check, FOUND)) == ["distinct", "distinct"]
    assert "distinct: a peer / numpy: 2.00, was 4.00" in worse(slower_check, FOUND)
