"""Print a script that completes commands, options, their values and files in a shell.

examples:
  ndd-search completion bash > ~/.local/share/bash-completion/completions/ndd-search
  ndd-search completion zsh > "${fpath[1]}/_ndd-search"
  ndd-search completion fish > ~/.config/fish/completions/ndd-search.fish

Start a new shell after that, and print the script again after an update.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from ndd_search.cli import DONE, whole_parser
from ndd_search.errors import importing

_FILES = ("FILE", "FOLDER", "SOURCE", "GROUPS")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell to complete in")


def run(arguments: argparse.Namespace) -> int:
    with importing("shtab", "shell completion", "shtab", "cli"):
        import shtab
    parser = whole_parser()
    for action in _actions(parser):
        if action.type is Path or action.metavar in _FILES or action.dest in ("a", "b"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell))
    return DONE


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield every argument of a parser and of the parsers of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
