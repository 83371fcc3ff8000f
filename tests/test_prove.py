"""A sample of the cases that `make prove` checks by the million, and what it does with a case that fails."""

from __future__ import annotations

import json
import logging
import os
import random
from collections import Counter
from itertools import combinations, starmap
from pathlib import Path
from typing import Any

import pytest

from tests.prove import lists, options
from tests.prove.__main__ import PROGRAMS, main
from tests.prove.all_pairs import is_allowed, pair, pairs_of
from tests.prove.cases import Failure, Program, Progress, prove, smallest

EXAMPLES = os.environ.get("NDD_TEST_EXAMPLES", "small")
PARTS = 4  # parts of a sample, which run in any process
SAMPLE = {"lists": 600, "sources": 100, "pages": 100, "answers": 150, "ingest": 50}  # 4,000 cases in all
if EXAMPLES != "large":
    SAMPLE = {"lists": 250, "sources": 60, "pages": 40, "answers": 100, "ingest": 30}
if EXAMPLES == "few":
    SAMPLE = {name: cases // 3 for name, cases in SAMPLE.items()}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SAMPLE)
def test_what_is_promised_holds_for_generated_cases(name: str, part: int, caplog: pytest.LogCaptureFixture) -> None:
    """Pages are those of the oracle, whatever changes meanwhile; a malformed answer raises nothing and loses no hit."""
    caplog.set_level(logging.ERROR)
    numbers = range(part * SAMPLE[name], (part + 1) * SAMPLE[name])
    try:
        counts = PROGRAMS[name].run(2026, numbers)
    except Failure as failure:
        pytest.fail(f"case {failure.number} of {name}, made smaller: {failure.case}")
    assert counts["cases"] == SAMPLE[name]
    assert counts["pages"] > len(numbers) / 4 or counts["changed answers"] > len(numbers) / 4


def test_each_pair_of_values_of_options_that_has_a_meaning_is_among_the_first_3000_cases() -> None:
    """Of options, listings, totals, ways of paging, caches, clients, targets and engines."""
    refused = [*options.REFUSED, *options.NOT_TOGETHER, *options.NOT_BY_PROXY]
    pairs = pairs_of(options.FACTORS | options.AROUND)
    left = {both for both in pairs if is_allowed(options.FIRST | dict(both), refused)}
    assert len(left) > 4_500
    for number in range(3_000):
        row = options.FIRST | options.draw(random.Random(f"1/{number}"))
        left.difference_update(starmap(pair, combinations(row.items(), 2)))
    assert not left


def document(id: str, score: float, time: int | None = None) -> dict[str, Any]:
    """A document of the generated cases. Those with a time have equal sketches, the others none."""
    values = [] if time is None else [143165593, 178956987]
    about = {"price": 1, "numbers": 7, "text": f"text {id}", "lack": ""}
    return {"id": id, "values": values, "score": score, "time": time, **about}


def test_a_document_with_an_equal_sketch_takes_no_place_of_another_one() -> None:
    """A write between two trips moves such a document to the rank of one that is listed as a duplicate."""
    others = [document(f"d{number}", 1.5) for number in range(7)]
    alike = [document("a", 2.0, time=200), document("b", 1.0, time=0), document("c", 1.0, time=300)]
    steps = [["page", 0, 5, document("new", 1.5)], ["page", 0, 10, None]]
    case = {
        "documents": [*others, *alike],
        "options": {"guards": ["within:time=150s"]},
        "k": 2,
        "table": {},
        "steps": steps,
    }
    assert PROGRAMS["pages"].check({**case, "cache": True, "counts": False})["pages"] == 2


def test_a_document_that_moves_beyond_a_remembered_stream_is_shown_once() -> None:
    """The first pages remember sketches without ids; a later page needs more hits, of an index that has changed."""
    documents = [document(f"d{rank}", 2 - rank / 10, time=0 if rank in (2, 5, 7, 8) else None) for rank in range(10)]
    steps = [["page", 4, 3, None], ["page", 0, 4, None], ["foreign", document("new", 2.0)], ["page", 0, 10, None]]
    case = {"documents": documents, "options": {"window": 5}, "k": 2, "table": None, "steps": steps}
    assert PROGRAMS["pages"].check({**case, "cache": True, "counts": False})["pages"] == 3


def test_a_facet_counts_documents_in_their_own_order_where_others_have_the_same_sketches() -> None:
    """The bucket of price 1 holds one of two documents with each of two sketches, and which one decides who leads."""
    values = {"d5": [0, 357913], "d9": [0, 357913], "d10": [447392, 894784], "d15": [0, 447392], "d31": [0, 447392]}
    scores = {"d5": 2.0, "d9": 1.5, "d10": 1.0, "d15": 1.0, "d31": 2.0}
    documents = [
        {**document(id, scores[id], time=100), "values": those, "price": 1 if id in ("d5", "d15") else 2}
        for id, those in values.items()
    ]
    options = {"window": 2, "facets": ["kinds"], "mode": "drop", "total": "groups", "min_similarity": 0.3}
    case = {"documents": documents, "options": options, "k": 2, "table": {}, "steps": [["cursor", 2, None]]}
    assert PROGRAMS["cursors"].check({**case, "cache": True, "counts": False})["exact counts"] > 1


def wrong(case: dict[str, Any]) -> Counter[str]:
    """What a library with a fault would do: it fails for two documents that are alike in price."""
    prices = [one["price"] for one in case["documents"]]
    assert prices.count(2) < 2
    return Counter(pages=1)


def test_a_case_that_fails_is_made_smaller_and_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PROGRAMS, "lists", Program(lists.draw, wrong))
    assert main(["lists", "--cases", "200", "--processes", "1", "--folder", str(tmp_path / "new")]) == 1
    (file,) = tmp_path.glob("new/lists-1-*.json")
    assert str(file) in capsys.readouterr().out
    case = json.loads(file.read_text())["case"]
    assert [one["price"] for one in case["documents"]] == [2, 2]
    assert main(["--replay", str(file)]) == 1
    monkeypatch.setitem(PROGRAMS, "lists", Program(lists.draw, lambda case: Counter()))
    assert main(["--replay", str(file)]) == 0


def price_of(name: str) -> int:
    return {"apple": 1, "pear": 2}[name]


def test_a_case_is_not_made_so_small_that_it_fails_in_another_way() -> None:
    """A case that lacks the member "names" raises a KeyError too, but not where a price is looked up."""
    fruit = {"names": ["apple", "plum", "pear"]}
    found = smallest(fruit, lambda case: Counter({name: price_of(name) for name in case["names"]}))
    assert found == {"names": ["plum"]}


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "progress.json"
    program = Program(lists.draw, lambda case: Counter(pages=1))
    assert prove("lists", program, 7, 400, 1, Progress(file)) == Counter(pages=400, cases=400)
    assert prove("lists", program, 7, 1000, 1, Progress(file)) == Counter(pages=1000, cases=1000)
    assert json.loads(file.read_text())["lists 7"]["chunks"] == 5
