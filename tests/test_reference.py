"""The table of options agrees with the program, and its commands with one another."""

from pathlib import Path

from ndd_search.cli import whole_parser
from ndd_search.cli.output import every_action
from ndd_search.core.options import KINDS
from tests import option_table
from tests.command_line import run as ndd
from tests.examples import ROOT


def test_a_command_that_reads_a_settings_file_checks_it(tmp_path: Path) -> None:
    file = tmp_path / "news.toml"
    file.write_text("[collapse]\nwindow = 0\n")
    assert "window must be at least 1, got 0" in ndd("corpus", "page", "--preset", file, code=2).stderr


def test_the_table_of_options_is_that_of_their_declarations() -> None:
    written = (ROOT / "docs" / "reference" / "options.md").read_text()
    assert written == option_table.page(), "run `make reference`"
    assert all(f"| `{name}` |" in written for name in KINDS)


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
