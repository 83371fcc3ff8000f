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
from ndd_search.cli.output import every_action
from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import collapse_options
from ndd_search.search.settings_file import settings_schema
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
    st.sampled_from(["auto", "high", "group", "window", "x", ""]),
    st.lists(
        st.one_of(
            st.integers(),
            st.sampled_from(
                ["score", "longest", "newest:", "newest:at", "lowest:price", "preferred:a=b", "templates", ""]
            ),
        )
    ),
)


def test_the_schema_in_docs_is_the_one_of_the_program() -> None:
    assert settings_schema() == json.loads(SCHEMA.read_text()), "run `make reference`"
    Draft202012Validator.check_schema(settings_schema())


@pytest.mark.parametrize("option", [option.name for option in fields(CollapseOptions)])
@given(value=VALUES)
@example(value=float("inf"))
def test_the_schema_allows_the_values_that_an_option_takes(option: str, value: Any) -> None:
    collapse = {option: value, **({"window": 1} if option == "max_window" else {})}
    try:
        collapse_options(**collapse)
        taken = True
    except (TypeError, ValueError):
        taken = False
    assert VALID({"version": 1, "collapse": collapse}) == taken


def test_the_schema_describes_every_option_and_refuses_what_is_none() -> None:
    options = settings_schema()["properties"]["collapse"]["properties"]
    assert all(option["description"] for option in options.values())
    assert VALID({"version": 1, "recipe": "w3-k64-v2-html", "tuned": {"answers": 3}})
    for wrong in ({}, {"version": 2}, {"version": 1, "collapse": {"windw": 3}}, {"version": 1, "recipe": "w3"}):
        assert not VALID(wrong)


def test_a_command_that_reads_a_settings_file_checks_it(tmp_path: Path) -> None:
    file = tmp_path / "news.toml"
    file.write_text("version = 1\n[collapse]\nwindow = 0\n")
    assert "window must be at least 1, got 0" in ndd("dedupe", "--preset", file, code=2).stderr


def test_the_manual_page_names_every_command_and_option() -> None:
    page = MANUAL.read_text().replace("\\", "")
    missing = [name for name in COMMANDS if f"ndd-search {name}" not in page]
    options = {option for action in every_action(whole_parser()) for option in action.option_strings} - {"-h", "--help"}
    missing += [option for option in options if option not in page]
    assert not missing, "run `make reference`"


# Words that name different things in commands for different people.
SEVERAL_MEANINGS = {
    "--ask",
    "--fields",
    "--items",
    "--listen",
    "--out",
    "--query",
    "--save",
    "--size",
    "--text",
}


def test_an_option_of_several_commands_has_one_help_text() -> None:
    texts: dict[str, set[str | None]] = {}
    for action in every_action(whole_parser()):
        for option in action.option_strings:
            texts.setdefault(option, set()).add(action.help)
    several = {option for option, helps in texts.items() if len(helps) > 1}
    assert several - {"--min-similarity"} <= SEVERAL_MEANINGS


def test_every_option_with_a_number_has_a_range() -> None:
    unbounded = [action.option_strings for action in every_action(whole_parser()) if action.type in (int, float)]
    assert unbounded == []


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_the_completion_of_each_shell_names_every_command(shell: str) -> None:
    script = ndd("--completion", shell).stdout
    assert [name for name in COMMANDS if name not in script] == []


@pytest.fixture(scope="module")
def bash_completion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script and a file."""
    folder = tmp_path_factory.mktemp("bash")
    (folder / "completion").write_text(ndd("--completion", "bash").stdout)
    (folder / "news.idx").touch()
    return folder


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ba"], {"backfill"}),
        (["backfill", "--sto"], {"--storage"}),
        (["backfill", "--storage", "p"], {"packed"}),
        (["corpus", "un"], {"unique"}),
        (["index", "info", "new"], {"news.idx"}),
        (["dedupe", "--preset", "new"], {"news.idx"}),
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
