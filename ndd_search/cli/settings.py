"""Check a settings file and print the options in effect, or print the JSON Schema of such files.

examples:
  ndd-search settings news.toml
  ndd-search settings news.toml --json
  ndd-search settings --schema > ndd-settings.schema.json

An editor that knows JSON Schema completes the names and marks mistakes. In TOML, name the schema in the first line:
#:schema ./ndd-settings.schema.json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from ndd_search.cli import DONE
from ndd_search.cli.output import add_json, print_json
from ndd_search.collapse_options import CollapseOptions
from ndd_search.settings_file import read_settings
from ndd_search.settings_schema import settings_schema


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", nargs="?", help="the settings file, .toml or .json")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of settings files")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.schema == bool(arguments.file):
        raise ValueError("give either a settings file or --schema")
    if arguments.schema:
        print(json.dumps(settings_schema(), indent=2))
        return DONE
    stored = read_settings(arguments.file)
    options, defaults = asdict(stored.options), asdict(CollapseOptions())
    recipe = stored.recipe.id if stored.recipe else None
    if arguments.json:
        print_json({"recipe": recipe, "collapse": options, "indexes": stored.indexes})
        return DONE
    print(f"recipe = {json.dumps(recipe)}" if recipe else "recipe: any")
    for name, value in options.items():
        default = "" if value == defaults[name] else f"  (default: {json.dumps(defaults[name])})"
        print(f"{name} = {json.dumps(value)}{default}")
    for pattern, settings in stored.indexes.items():
        print(f"indexes {pattern}: " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in settings.items()))
    return DONE
