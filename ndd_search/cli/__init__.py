"""The command line program ndd-search.

Each command is a module of this package with its help in the docstring, `configure(parser)` and `run(arguments)`, which
returns the exit code. Only the module of the called command is imported.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pkgutil import get_data
from types import ModuleType
from typing import Any

from ndd_search.cli.output import Parser, warn
from ndd_search.errors import MissingExtra, NDDError
from ndd_search.native import in_use

DONE, NO, FAILED, PARTLY, INTERRUPTED = 0, 1, 2, 3, 130

COMMANDS = {
    "index": "fill and look after an index folder",
    "search": "search an index folder",
    "backfill": "add sketches to the documents of a live index, or the mapping to its template",
    "corpus": "find every near-duplicate group of a collection; collapse a list, compare two texts",
    "serve": "serve a proxy in front of an engine, for programs in any language",
    "ui": "serve a search page for the browser, of an index folder or an engine",
    "agents": "serve searches to agents as tools (Model Context Protocol)",
    "items": "find the records of several fields that are one thing, and merge them",
    "tune": "find the settings that suit an index, from your queries and answers",
    "doctor": "find problems of an index, with remedies; say where documents are in a search, and why",
}

_EXAMPLES = """\
examples:
  ndd-search index add articles.jsonl.gz news.idx --text title,body
  ndd-search search news.idx "climate summit"
  ndd-search corpus page ranked.txt
  ndd-search backfill http://localhost:9200 news --fields title,body

exit codes: 0 done; 1 the answer is no (nothing found, not similar); 2 wrong usage or failure; 3 done in part (standard
error names what was skipped); 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (sys.argv by default). Returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 2_500))  # Python 3.11: engines keep JSON of 1,000 levels
    if isinstance(sys.stdout, io.TextIOWrapper):  # escape characters that its encoding lacks, instead of failing
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if words[:1] == ["help"]:
            words = [*words[1:2], "--help"]
        if words and words[0] in COMMANDS:
            return _run(words[0], words[1:])
        _overview().parse_args(words or ["--help"])  # exits with help, version, or an error
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe: discard the rest, also what is flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (NDDError, OSError, ValueError) as error:
        warn(_sentence(error))
        return FAILED
    except Exception:  # the exit code of Python, 1, would mean that the answer is no
        traceback.print_exc()
        return FAILED
    return DONE


class LeftOut:
    """Prints what is left out, a sentence each. code: the exit code."""

    code = DONE

    def __call__(self, sentence: str) -> None:
        warn(sentence)
        self.code = PARTLY


def _sentence(error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{error.filename}: there is no such file or folder; check its name"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _run(name: str, words: Sequence[str]) -> int:
    try:
        command = import_module(f"ndd_search.cli.{name}")
    except MissingExtra as error:
        extra = "agents" if name == "agents" else error.args[2]  # which holds those of the modules that it imports
        error.args = f"ndd-search {name}", error.args[1], extra
        if {"-h", "--help"}.isdisjoint(words):
            raise
        # The options are known only to the module, which cannot be imported; its docstring can be read.
        print(f"{ast.get_docstring(ast.parse(get_data('ndd_search.cli', f'{name}.py') or b''))}\n\n{error}")
        return DONE
    parser = Parser(f"ndd-search {name}", **help_of(command))
    command.configure(parser)
    Parser.given = words
    code: int = command.run(parser.parse_args(words))
    if sys.stdout:  # there is none if the caller has closed it
        sys.stdout.flush()
    return code


def whole_parser() -> argparse.ArgumentParser:
    """Return one parser of all commands, for their reference.

    A command whose extra is not installed has no options there.
    """
    parser = argparse.ArgumentParser(
        "ndd-search",
        description="Search results without near-duplicates.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_program_options(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        try:
            command = import_module(f"ndd_search.cli.{name}")
        except MissingExtra:
            commands.add_parser(name, help=summary)
        else:
            command.configure(commands.add_parser(name, help=summary, **help_of(command)))
    return parser


def help_of(command: ModuleType) -> dict[str, Any]:
    """Return what a parser shows about a command or an action that is a module."""
    summary, _, epilog = (command.__doc__ or "").partition("\n\n")
    return {"description": summary, "epilog": epilog, "formatter_class": argparse.RawDescriptionHelpFormatter}


def _overview() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:{width}}  {summary}" for name, summary in COMMANDS.items())
    parser = Parser(
        "ndd-search",
        usage="ndd-search COMMAND ...",
        description=f"Search results without near-duplicates.\n\ncommands (ndd-search COMMAND --help):\n{commands}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_program_options(parser)
    parser.add_argument("command", choices=[*COMMANDS], metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def _add_program_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")


class _Version(argparse.Action):
    """Prints the version, and ends the program."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # imported here because it takes as long as the rest of the help

        print(f"ndd-search {version('ndd-search')}, with {in_use()}")
        parser.exit()
