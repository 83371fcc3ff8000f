"""Groups that are made again keep their names while documents come and go."""

import json
from pathlib import Path
from typing import Any

import ndd_search as ndd
from ndd_search.cli import main

STEEL = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
FINAL = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
BUDGET = "The council of the town has passed its budget for the coming year after a debate of nine hours at night."


def story(id: str, text: str) -> dict[str, Any]:
    return {"id": id, "text": text}


def names(groups: Any) -> dict[str, str]:
    return {row["document"]: row["group"] for row in groups.rows()}


def test_a_group_keeps_its_name_when_its_leader_goes_and_copies_come() -> None:
    first = ndd.Corpus.read([story("a", STEEL), story("b", STEEL), story("c", FINAL)], text="text").groups()
    later = ndd.Corpus.read(
        [story("n", BUDGET), story("x", STEEL), story("b", STEEL), story("a2", FINAL)], text="text"
    ).groups().since(first.rows())  # fmt: skip
    assert names(later) == {"n": "n", "x": "a", "b": "a", "a2": "a2"}
    assert later.changes is not None
    assert later.changes._asdict() == {"split": {}, "merged": {}, "new": ["n", "a2"], "gone": ["c"]}
    assert later.table.column("group").to_pylist() == ["n", "a", "a", "a2"]


def test_what_splits_and_merges_is_told_and_no_name_names_two_groups() -> None:
    earlier = [{"document": one, "group": "a"} for one in "abc"] + [{"document": one, "group": "d"} for one in "de"]
    now = [("a", FINAL), ("b", STEEL), ("c", STEEL), ("d", STEEL), ("e", BUDGET)]
    groups = ndd.Corpus.read([story(*one) for one in now], text="text").groups().since(earlier)
    assert names(groups) == {"a": "a~2", "b": "a", "c": "a", "d": "a", "e": "d"}
    assert groups.changes == ({"a": ["a~2", "a"], "d": ["a", "d"]}, {"a": ["a", "d"]}, [], [])
    again = groups.since(groups.rows())
    assert names(again) == names(groups)
    assert again.changes == ({}, {}, [], [])


def test_the_command_tells_what_changed_since_an_earlier_run(tmp_path: Path, capsys: Any) -> None:
    file, out = tmp_path / "news.jsonl", tmp_path / "groups.jsonl"
    command = ["corpus", "groups", str(file), "--text", "text", "--out", str(out)]
    file.write_text("".join(json.dumps(story(*one)) + "\n" for one in [("a", STEEL), ("b", STEEL), ("c", FINAL)]))
    assert main(command) == 0
    file.write_text("".join(json.dumps(story(*one)) + "\n" for one in [("b", STEEL), ("c", FINAL), ("d", BUDGET)]))
    assert main([*command, "--since", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["since"] == {"split": {}, "merged": {}, "new": ["d"], "gone": []}
    assert [json.loads(line)["group"] for line in out.read_text().splitlines()] == ["a", "c", "d"]
