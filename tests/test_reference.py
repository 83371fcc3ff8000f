"""The JSON Schema of settings files, the manual page and the shell completion agree with the program."""

import json
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ndd_search.cli import COMMANDS, whole_parser
from ndd_search.cli.completion import _actions
from ndd_search.collapse_options import CollapseOptions, collapse_options
from ndd_search.settings_schema import settings_schema
from tests.command_line import run as ndd
from tests.examples import ROOT

SCHEMA = ROOT / "docs" / "settings.schema.json"
MANUAL = ROOT / "docs" / "ndd-search.1"
VALID = Draft202012Validator(settings_schema()).is_valid
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.floats(-1, 2).filter(lambda value: not value.is_integer()),  # to JSON Schema, 1.0 is an integer
    st.sampled_from(["auto", "high", "group", "one_trip", "x", ""]),
    st.lists(
        st.one_of(st.integers(), st.sampled_from(["score", "longest", "newest:", "newest:at", "preferred:a=b", ""]))
    ),
)


def test_the_schema_in_docs_is_the_one_that_the_command_prints() -> None:
    assert json.loads(ndd("settings", "--schema").stdout) == json.loads(SCHEMA.read_text()), "run `make reference`"
    Draft202012Validator.check_schema(settings_schema())


@pytest.mark.parametrize("option", [option.name for option in fields(CollapseOptions)])
@given(value=VALUES)
@example(value=float("inf"))
def test_the_schema_allows_the_values_that_an_option_takes(option: str, value: Any) -> None:
    pair: dict[str, Any] = {"time_field": {"max_seconds_apart": 1}, "max_seconds_apart": {"time_field": "at"}}
    others = {**pair, "max_window": {"window": 1}}.get(option, {})  # what the value is only allowed with
    collapse = {option: value, **(others if value is not None else {})}
    try:
        collapse_options(**collapse)
        taken = True
    except (TypeError, ValueError):
        taken = False
    if option in pair and value is None:
        return  # null is the default, so one of the two may be null by itself; a file leaves the default out
    assert VALID({"version": 1, "collapse": collapse}) == taken


def test_the_schema_describes_every_option_and_refuses_what_is_none() -> None:
    options = settings_schema()["properties"]["collapse"]["properties"]
    assert all(option["description"] for option in options.values())
    assert VALID({"version": 1, "recipe": "w3-k64-v1-html", "tuned": {"answers": 3}})
    for wrong in ({}, {"version": 2}, {"version": 1, "collapse": {"windw": 3}}, {"version": 1, "recipe": "w3"}):
        assert not VALID(wrong)


def test_a_settings_file_is_checked_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "news.toml"
    file.write_text("version = 1\n[collapse]\nwindow = 50\n")
    assert "window = 50  (default: 100)" in ndd("settings", file).stdout
    assert json.loads(ndd("settings", file, "--json").stdout)["collapse"]["window"] == 50
    file.write_text("version = 1\n[collapse]\nwindow = 0\n")
    assert "window must be at least 1, got 0" in ndd("settings", file, code=2).stderr
    assert "either a settings file or --schema" in ndd("settings", code=2).stderr


def test_the_manual_page_names_every_command_and_option() -> None:
    page = MANUAL.read_text().replace("\\", "")
    missing = [name for name in COMMANDS if f"ndd-search {name}" not in page]
    options = {option for action in _actions(whole_parser()) for option in action.option_strings} - {"-h", "--help"}
    missing += [option for option in options if option not in page]
    assert not missing, "run `make reference`"


def test_every_option_with_a_number_has_a_range() -> None:
    unbounded = [action.option_strings for action in _actions(whole_parser()) if action.type in (int, float)]
    assert unbounded == []


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_the_completion_of_each_shell_names_every_command(shell: str) -> None:
    script = ndd("completion", shell).stdout
    assert [name for name in COMMANDS if name not in script] == []


@pytest.fixture(scope="module")
def bash_completion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script and a file."""
    folder = tmp_path_factory.mktemp("bash")
    (folder / "completion").write_text(ndd("completion", "bash").stdout)
    (folder / "news.idx").touch()
    return folder


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ba"], {"backfill"}),
        (["search", "--mo"], {"--mode"}),
        (["search", "--mode", "d"], {"drop", "demote"}),
        (["corpus", "un"], {"unique"}),
        (["info", "new"], {"news.idx"}),
        (["dedupe", "--settings", "new"], {"news.idx"}),
    ],
)
def test_bash_completes_commands_options_values_and_files(
    typed: list[str], offered: set[str], bash_completion: Path
) -> None:
    words = ["ndd-search", *typed]
    line = f"""
        source ./completion
        COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}
        _shtab_ndd_search ndd-search {words[-1]} {words[-2]}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", line], cwd=bash_completion, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offered
