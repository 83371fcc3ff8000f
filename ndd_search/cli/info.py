"""Say what an index folder holds: its documents, fields and settings.

examples:
  ndd-search info news.idx
  ndd-search info news.idx --json
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndd_search.cli import DONE
from ndd_search.cli.output import add_json, print_json, say
from ndd_search.cli.search import open_index
from ndd_search.text.printable import safe

if TYPE_CHECKING:
    from ndd_search.embedded.index import Index

_SAMPLE = 1000  # documents whose fields are listed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="an index made by ndd-search index")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with open_index(arguments.folder) as index:
        facts = _facts(index)
    if arguments.json:
        print_json(facts)
        return DONE
    width = max(map(len, facts))
    for name, value in facts.items():
        shown = f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, list) else value
        say(f"{name.replace('_', ' '):{width}}  {safe(shown)}")
    return DONE


def _facts(index: Index) -> dict[str, Any]:
    written = (index.path / "meta.json").stat().st_mtime
    names = dict.fromkeys(str(name) for document in index.sample(_SAMPLE) for name in document)
    return {
        "documents": len(index),
        "text": list(index.meta.text),
        "fields": list(names),
        "language": index.meta.language,
        "recipe": index.recipe.id,
        "bytes": sum(path.stat().st_size for path in index.path.iterdir() if path.is_file()),
        "written": datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds"),
    }
