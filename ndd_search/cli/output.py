"""What commands share: options, tables for people, JSON for programs, progress."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndd_search.collapse_options import CollapseOptions
from ndd_search.errors import importing
from ndd_search.presets import PRESETS, preset
from ndd_search.recipe import Recipe
from ndd_search.settings_file import StoredSettings, read_settings
from ndd_search.tuning.marked import safe

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text


# Control characters of both sets, and what turns the direction of text; line feeds and tabs are harmless.
_ACTED_UPON = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_recipe(parser: argparse._ActionsContainer) -> None:
    """--recipe."""
    parser.add_argument("--recipe", type=_recipe, default=None, metavar="ID", help=f"a recipe id ({Recipe().id})")


def add_page(parser: argparse.ArgumentParser) -> None:
    """--size, --from and the options of a collapse."""
    parser.add_argument("--size", type=int, default=10, help="hits on the page (10)")
    parser.add_argument("--from", type=int, default=0, dest="from_", help="where the page starts (0)")
    add_min_similarity(parser)
    parser.add_argument("--mode", choices=("group", "drop", "demote", "annotate"), help="what happens to them (group)")
    parser.add_argument(
        "--numbers-must-match", action="store_true", default=None, help="near-duplicates hold the same numbers"
    )
    parser.add_argument("--window", type=int, help="hits examined at first (100)")
    add_settings(parser)


def add_min_similarity(parser: argparse.ArgumentParser) -> None:
    """--min-similarity."""
    parser.add_argument(
        "--min-similarity", type=_similarity, help="auto, identical, high, moderate, or a resemblance in 0..1 (auto)"
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    """--settings and --preset."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--settings", type=Path, metavar="FILE", help="options out of a file, as tune writes it")
    add_preset(either)


def add_preset(parser: argparse._ActionsContainer) -> None:
    """--preset."""
    parser.add_argument("--preset", choices=PRESETS, help="settings for one kind of text, see docs/quality.md")


def page_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of add_page that were given, as arguments of a search or collapse."""
    names = ("size", "from_", "min_similarity", "mode", "numbers_must_match", "window")
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def stored_options(arguments: argparse.Namespace) -> tuple[CollapseOptions, Recipe]:
    """The options of --settings or --preset, and the recipe of --recipe or else theirs; the defaults without them."""
    if arguments.preset:
        chosen = preset(arguments.preset)
        return chosen.options, arguments.recipe or chosen.recipe
    stored = read_settings(arguments.settings, arguments.recipe) if arguments.settings else StoredSettings()
    return stored.options, arguments.recipe or stored.recipe or Recipe()


def comma_list(text: str) -> list[str]:
    """NAME,NAME,... as a list; for `type` of an argument."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"expected NAME or NAME,NAME, got {text!r}")
    return names


def print_json(value: Any) -> None:
    """One JSON value on a line of its own; escaped where standard output could not take it as it is.

    On a terminal, characters that it would act upon are escaped, too.
    """
    line = json.dumps(value, ensure_ascii=False)
    if sys.stdout and sys.stdout.isatty():
        line = _ACTED_UPON.sub(lambda found: json.dumps(found[0])[1:-1], line)
    try:
        line.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        line = json.dumps(value)
    print(line)


def warn(sentence: str) -> None:
    """A sentence on standard error."""
    print(f"ndd-search: {printable(sentence)}", file=sys.stderr)


def say(sentence: str) -> None:
    """A sentence on standard output, for people."""
    print(printable(sentence))


def printable(text: str) -> str:
    """The text with an escape such as \\x1b for every character that a terminal would act upon.

    Line feeds and tabs stay, as do joiners, which are parts of words.
    """
    return _ACTED_UPON.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def console(**settings: Any) -> Console:
    """Where tables are printed; brackets in a text are no markup. Raises MissingExtra without rich."""
    return _rich("console").Console(**{"markup": False, "emoji": False, **settings})  # type: ignore[no-any-return]


def styled(*pieces: tuple[str, str] | str) -> Text:
    """A line of pieces, some with a style. Raises MissingExtra without rich."""
    return _rich("text").Text.assemble(*pieces)  # type: ignore[no-any-return]


def table(*columns: str, **settings: Any) -> Table:
    """A table with these columns; names that start with ">" are numbers."""
    made: Table = _rich("table").Table(**{"header_style": "bold", "box": _rich("box").SIMPLE_HEAD, **settings})
    for name in columns:
        made.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    return made


@contextmanager
def progress(what: str, total: int | None, quiet: bool) -> Iterator[Any]:
    """A callable(advance, total) that moves a progress bar on standard error, with its rate and remaining time.

    total: None when the end is not known; a call may tell it, and tell another one later.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda advance, total=None: None
        return
    bars = _rich("progress")
    times = [bars.TextColumn("{task.fields[rate]}"), bars.TimeElapsedColumn(), bars.TimeRemainingColumn()]
    bar: Progress
    with bars.Progress(
        bars.TextColumn(what),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        *times,
        console=console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=total, rate="")

        def move(advance: int, total: int | None = None) -> None:
            seconds = bar.tasks[0].elapsed or 0.0
            rate = f"{(bar.tasks[0].completed + advance) / seconds:,.0f}/s" if seconds > 1 else ""
            bar.update(task, advance=advance, rate=rate, total=total)

        yield move


def many(count: int, what: str) -> str:
    """A count with the noun it counts."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def shorten(text: str, length: int = 100) -> str:
    """The beginning of a text, on one line, without what a terminal would act upon."""
    line = safe(text[: 4 * length])
    return line if len(line) <= length else line[: length - 1] + "…"


def counted(items: Iterable[Any], advance: Any, step: int = 100) -> Iterator[Any]:
    """The items, telling a progress bar of every `step` of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % step == 0:
            advance(step)


def _recipe(name: str) -> Recipe:
    try:
        return Recipe.parse(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _similarity(given: str) -> float | str:
    try:
        return float(given)
    except ValueError:
        return given


def _rich(module: str) -> Any:
    from importlib import import_module

    with importing("rich", "output for people (--json works without it)", "rich", "cli"):
        return import_module(f"rich.{module}")
