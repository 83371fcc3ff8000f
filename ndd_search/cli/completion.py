"""The script that completes commands, options, their values and files in a shell: `ndd-search --completion SHELL`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from ndd_search.errors import importing

_FILES = ("FILE", "FOLDER", "SOURCE", "GROUPS")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for a shell. Raises MissingExtra without shtab."""
    with importing("shtab", "shell completion", "shtab", "cli"):
        import shtab
    for action in every_action(parser):
        if action.type is Path or action.metavar in _FILES or action.dest in ("a", "b"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def every_action(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield every argument of a parser and of the parsers of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from every_action(command)
