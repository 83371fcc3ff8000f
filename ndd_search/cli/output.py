"""What commands share: command-line options, tables, JSON and text output, progress bars."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ndd_search.core.options import KINDS, CollapseOptions
from ndd_search.core.presets import PRESETS, Preset, chosen
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Kind, nearest, read_named
from ndd_search.core.text.printable import UNSAFE, printable, safe
from ndd_search.errors import importing

_NEAR = 0.7  # likeness of two names from which one may be meant for the other
T = TypeVar("T")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text


class _Once(argparse._StoreAction):
    """Stores a value as "store" does, and refuses an option given twice, whose first value would be lost."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        times = sum(word.partition("=")[0] == option_string for word in takewhile("--".__ne__, Parser.given))
        if option_string and (times > 1 or getattr(namespace, self.dest, self.default) is not self.default):
            several = f": several names go into one, {option_string} A,B" if self.type is comma_list else ""
            raise argparse.ArgumentError(self, f"given twice{several}")
        super().__call__(parser, namespace, values, option_string)


class _EachOnce(argparse._AppendAction):
    """Appends a value as "append" does, and refuses a second one of a name: NAME=VALUE, or a pair of both."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        name, *before = (
            one.partition("=")[0] if isinstance(one, str) else one[0]
            for one in (values, *(getattr(namespace, self.dest) or ()))
        )
        if name in before:
            raise argparse.ArgumentError(self, f"{name} given twice")
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Names the nearest word where an option, a choice or a command is misspelt.

    given: the words of the command line.
    """

    given: Sequence[str] = ()

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.register("action", None, _Once)
        self.register("action", "append", _EachOnce)

    def error(self, message: str) -> NoReturn:
        actions = list(every_action(self))
        known = [name for action in actions for name in action.option_strings]
        settable = [name for action in actions for name in getattr(action, "settings", ())]
        for word in self.given:
            name = word.partition("=")[0]
            if re.match(r"-[^-\d.]", word) and not any(word.startswith(one) for one in known):
                message += f" ({word} was read as an option: write -- before what is none)"
            elif name.startswith("--") and not any(one.startswith(name) for one in known):
                setting = name[2:].replace("-", "_")
                near = [f"--set {setting}=VALUE"] if setting in settable else get_close_matches(name, known, 1, _NEAR)
                message += f" ({name} is no option: did you mean {near[0]}?)" if near else ""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            message += nearest(found[1], re.findall(r"[\w-]+", found[2]))
        super().error(message)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Refuse an empty word, which an unset variable of the shell leaves, unless it is the default."""
        is_command = isinstance(action, argparse._SubParsersAction)  # whose words have actions of their own
        if not arg_string and action.default != "" and not is_command:
            raise argparse.ArgumentError(action, "expected a value, got ''")
        return super()._get_value(action, arg_string)


def every_action(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield every argument of a parser and of the parsers of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from every_action(command)


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add the name of an index folder."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="an index made by ndd-search index add")


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add --size, --from and the options of a collapse."""
    parser.add_argument("--size", type=number(int, 1), default=10, metavar="N", help="hits on the page (10)")
    start = "how many hits of earlier pages are passed over (0)"
    parser.add_argument("--from", type=number(int, 0), default=0, dest="from_", metavar="N", help=start)
    add_shared(parser, "--min-similarity", "--preset")
    add_set(parser)


class _PresetOrFile(Kind):
    """the name of a preset, or of a file with one."""

    def read(self, name: str, text: str) -> Preset:
        from ndd_search.search.settings_file import preset  # imported here because it imports numpy

        return preset(text)


PAGE: dict[str, Kind] = {**KINDS, "preset": _PresetOrFile()}  # the options of a search on a command line


def add_set(parser: argparse.ArgumentParser, kinds: Mapping[str, Kind] = PAGE) -> None:
    """Add --set. kinds: of the settings that it takes, by name."""

    def setting(text: str) -> tuple[str, Any]:
        name, _, value = text.partition("=")
        flag = f"--{name.replace('_', '-')}"
        if name not in kinds and flag in parser._option_string_actions:
            raise ValueError(f"{name} has a flag of its own: {flag}")
        return name, read_named(name, value, kinds)

    what = "another setting, by name: mode=drop, guards=same:brand, keep=newest:date (docs/reference/options.md)"
    added = parser.add_argument(
        "--set", action="append", type=checked(setting), default=[], metavar="NAME=VALUE", help=what
    )
    added.settings = [*kinds]  # type: ignore[attr-defined]


def page_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of add_page that the user gave, as arguments of a search or a collapse."""
    names = ("size", "from_", "min_similarity")
    return dict(arguments.set) | {
        name: value for name in names if (value := getattr(arguments, name, None)) is not None
    }


def _recipe(name: str) -> Recipe:
    from ndd_search.search.index_rules import recipe_named  # imported here because it imports numpy

    return recipe_named(name)


def stored_options(arguments: argparse.Namespace) -> tuple[CollapseOptions, Recipe]:
    """Return the options of --preset, else the defaults; and the recipe of --recipe, else that of the preset."""
    return chosen(None, arguments.recipe, {"preset": arguments.preset})


def comma_list(text: str) -> list[str]:
    """Split NAME,NAME,..., as a line of CSV: a name with a comma stands in quotes. For `type` of an argument."""
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True, strict=True), [])]
    except csv.Error:
        names = []
    if not names or not all(names):
        what = 'expected NAME or NAME,NAME (a name with a comma in quotes: "born, year",NAME)'
        raise argparse.ArgumentTypeError(f"{what}, got {text!r}")
    return names


def checked(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a parser whose errors argparse shows with the name of the argument, for `type` of one."""

    def parse(text: str) -> T:
        try:
            return read(text)
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def number(kind: type[int | float], least: float, most: float = 2**31 - 1) -> Callable[[str], float]:
    """Return a parser of numbers in least..most, for `type` of an argument. kind: int for whole numbers, else float."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if least <= (value := kind(text)) <= most:
                return value
        what = "whole number" if kind is int else "number"
        raise ValueError(f"expected a {what} in {least}..{most}, got {text!r}")

    return checked(read)


def print_json(value: Any) -> None:
    """Print a JSON value on one line; see print_json_line."""
    print_json_line(json.dumps(value, ensure_ascii=False))


def print_json_line(line: str) -> None:
    """Print a line of JSON.

    Characters that the encoding of standard output lacks are escaped; on a terminal, control characters are, too.
    """
    if sys.stdout and sys.stdout.isatty():
        line = UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], line)
    try:
        line.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        line = _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], line)
    print(line)


def warn(sentence: str) -> None:
    """Print a sentence on standard error."""
    print(f"ndd-search: {printable(sentence)}", file=sys.stderr)


def say(sentence: str) -> None:
    """Print a sentence on standard output."""
    print(printable(sentence), flush=True)  # at once, also if the output goes to a file


def print_line(line: str) -> None:
    """Write a line of rows.input_lines as it was read; on a terminal, control characters are escaped."""
    if sys.stdout:  # there is none if the caller has closed it
        sys.stdout.flush()
        shown = printable(line.removesuffix("\r")) if sys.stdout.isatty() else line
        sys.stdout.buffer.write(shown.encode("utf-8", "surrogateescape") + b"\n")


def console(**settings: Any) -> Console:
    """Return a console that prints tables and takes brackets in texts literally. Raises MissingExtra without rich."""
    made: Console = _rich("console").Console(**{"markup": False, "emoji": False, **settings})
    made.on_broken_pipe = _raise_again  # type: ignore[method-assign] # instead of ending the program with exit code 1
    return made


def _raise_again() -> None:
    """Raise the exception that is being handled."""
    raise  # noqa: PLE0704


def styled(*pieces: tuple[str, str] | str) -> Text:
    """Join pieces of text, some with a style. Raises MissingExtra without rich."""
    return _rich("text").Text.assemble(*pieces)  # type: ignore[no-any-return]


def table(*columns: str, **settings: Any) -> Table:
    """Return a table with these columns; those whose names start with ">" hold numbers."""
    result: Table = _rich("table").Table(**{"header_style": "bold", "box": _rich("box").SIMPLE_HEAD, **settings})
    for name in columns:
        result.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    return result


@contextmanager
def progress(what: str, total: int | None, quiet: bool, by: str = "advance") -> Iterator[Callable[..., None]]:
    """Yield a callable(number, total) that moves a progress bar with the remaining time on standard error.

    total: None if unknown; each call may set it. by: "advance", or "completed" for numbers
    that count from the beginning.
    """
    if quiet or not sys.stderr.isatty() or not find_spec("rich"):  # the work is done without a bar, too
        yield lambda number, total=None: None
        return
    bars = _rich("progress")
    columns = [bars.TextColumn(what), bars.BarColumn(), bars.MofNCompleteColumn()]
    times = [bars.TimeElapsedColumn(), bars.TimeRemainingColumn()]
    bar: Progress
    with bars.Progress(*columns, *times, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda number, total=None: bar.update(task, total=total, **{by: number})


moving = partial(progress, by="completed")


def tell(arguments: argparse.Namespace, facts: dict[str, Any], sentence: str) -> None:
    """Print what was done: a sentence, or with --json its facts."""
    if arguments.json:
        print_json(facts)
    else:
        say(sentence)


def shorten(text: str, length: int = 100) -> str:
    """Return the beginning of a text, on one line and without control characters."""
    line = safe(text[: 4 * length])
    return line if len(line) <= length else line[: length - 1] + "…"


def counted(items: Iterable[Any], advance: Any, step: int = 100) -> Iterator[Any]:
    """Yield the items, and advance a progress bar after every `step` of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % step == 0:
            advance(step)


# Options that several commands have, with one meaning and one help text.
SHARED: dict[str, dict[str, Any]] = {
    "--ca-certs": {"default": "", "metavar": "FILE", "help": "certificates to trust of the engine (the system's)"},
    "--field": {"default": "ndd", "metavar": "NAME", "help": "the object that holds sketches and marks (ndd)"},
    "--fields": {
        "type": comma_list,
        "default": [],
        "metavar": "NAMES",
        "help": "the text fields that make the sketch, in order",
    },
    "--id": {"metavar": "FIELD", "help": "the field that holds the id (_id, else id)"},
    "--insecure": {"action": "store_true", "help": "do not verify the engine's certificate"},
    "--json": {"action": "store_true", "help": "print JSON, for programs"},
    "--min-similarity": {
        "type": checked(partial(KINDS["min_similarity"].read, "min_similarity")),
        "metavar": "VALUE",
        "help": "auto, identical, high, moderate, or a resemblance in 0..1 (auto)",
    },
    "--preset": {
        "type": checked(partial(PAGE["preset"].read, "preset")),
        "metavar": "PRESET",
        "help": f"settings for one kind of text ({', '.join(PRESETS)}; see docs/quality.md), or a file of settings, as "
        "tune writes it",
    },
    "--rate": {
        "type": number(float, 0.001),
        "metavar": "N",
        "help": "documents a second (as many as the server takes)",
    },
    "--recipe": {
        "type": checked(_recipe),
        "metavar": "ID",
        "help": f"the id of the recipe ({Recipe().id}), +env:NAME or +file:PATH of a key",
    },
    "--spark": {"metavar": "MASTER", "help": "run on a cluster: spark://HOST:7077, yarn, local[4]"},
    "--store": {"metavar": "FOLDER", "help": "with --spark: a folder that all workers share, for what they compute"},
}


def add_shared(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add options of SHARED."""
    for name in names:
        parser.add_argument(name, **SHARED[name])


def _rich(module: str) -> Any:
    from importlib import import_module

    with importing("rich", "output for people (--json works without it)", "rich", "cli"):
        return import_module(f"rich.{module}")
