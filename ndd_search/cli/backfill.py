"""Add sketches to the documents of a live index, or remove them.

examples:
  ndd-search backfill http://localhost:9200 news --fields title,body
  ndd-search backfill https://USER:PASSWORD@HOST news --fields title,body --rate 2000 --slices 4
  ndd-search backfill http://localhost:9200 news --fields title,body --field ndd_next --recipe w5-k128-v4
  ndd-search backfill http://localhost:9200 news --remove ndd --yes
  ndd-search backfill http://localhost:9200 --template articles
  ndd-search backfill --template

The index can be searched and written to during the run. A concurrent change of a document is never overwritten. After
an interruption, run the same command again: it continues with the documents that are left. At the end it counts the
common values of the index and stores them for all clients, so run it again when the index has grown by a quarter: name
the index as searches name it, because an alias and its index have a table each. --remove asks before it starts. The
exit code is 3 if some documents were not changed.

--template NAME changes no document: it adds the fields of sketches to your index template, for the indexes that are
created from it later. Without a name they are printed as a component template.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.cluster import add_cluster, connected, warn_of_undone
from ndd_search.cli.output import (
    add_shared,
    moving,
    number,
    print_json,
    warn,
)
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import KEYS
from ndd_search.core.text.printable import many
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.backfill import Backfill, BackfillReport, Work
from ndd_search.search.rest.mapping import check_mapping, component_template, with_sketch_fields


def configure(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser, optional=True)
    add_shared(parser, "--fields", "--field")
    either = parser.add_mutually_exclusive_group()
    add_shared(either, "--recipe", "--preset")
    parser.add_argument(
        "--keys",
        type=number(int, 0, 64),
        default=KEYS,
        help=f"number of keys to store, by which whole groups and duplicates are found ({KEYS})",
    )
    parser.add_argument("--numbers", action="store_true", help="also store numbers, for the guard that compares them")
    parser.add_argument(
        "--template", nargs="?", const=True, metavar="NAME", help="add the fields to this index template, or print them"
    )
    parser.add_argument("--remove", metavar="FIELD", help="instead remove the sketches stored in this object")
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    add_shared(parser, "--rate")
    parser.add_argument("--slices", type=number(int, 1, 64), default=2, help="number of threads (2)")
    parser.add_argument(
        "--recheck",
        action="store_true",
        help="compare all existing sketches with their texts, also if those of a sample fit",
    )
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    if arguments.template:
        return _template(arguments)
    if arguments.index is None:
        raise ValueError("the index is missing: ndd-search backfill URL INDEX --fields NAMES")
    chosen = arguments.preset
    if arguments.fields and arguments.remove is not None:
        raise ValueError("--remove removes sketches, --fields makes them: name one of the two")
    if not arguments.fields and arguments.remove is None:
        what = "--fields names the text fields that make the sketch, and is missing"
        raise ValueError(f"{what}; --field names the object that holds sketches, {arguments.field!r}")
    settings = Backfill(
        index=arguments.index,
        fields=tuple(arguments.fields),
        recipe=(chosen.recipe if chosen else arguments.recipe) or Recipe(),
        field=arguments.remove or arguments.field,
        keys=arguments.keys,
        numbers=arguments.numbers or bool(chosen and chosen.numbers),
        remove=arguments.remove is not None,
        rate=arguments.rate,
        slices=arguments.slices,
        recheck=arguments.recheck,
    )
    with connected(arguments, arguments.url) as client:
        if settings.remove and not arguments.yes and not _agreed(settings.plan(client), settings.field):
            print("nothing was changed")
            return NO
        with moving("backfill", None, arguments.json) as moved:
            report = settings.run(client, moved)
    return _report(report, arguments.json)


def _agreed(work: list[Work], field: str) -> bool:
    """Ask the user to confirm the removal. Raises ValueError if standard input is not a terminal."""
    if not (count := sum(item.waiting for item in work)):
        return True
    names = ", ".join(item.index for item in work if item.waiting)
    what = f"{many(count, 'document')} of {names} would lose {field}"
    if not sys.stdin or not sys.stdin.isatty():
        raise ValueError(f"{what}: add --yes to remove it without a question; nothing was changed")
    print(f"{what}. Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _report(report: BackfillReport, as_json: bool) -> int:
    tally = report.tally
    for note in report.notes:
        warn(note)
    warn_of_undone(tally)
    if as_json:
        stored = None if report.table is None else _facts_of(report.table)
        work = [_work(item) for item in report.work]
        print_json({"work": work, **tally.facts(), "remaining": report.remaining, "table": stored})
    else:
        print(
            f"{many(tally.written - tally.noops, 'document')} written; "
            f"{tally.conflicts:,} retried after a concurrent change, {tally.gone:,} deleted during the run; "
            f"{report.remaining:,} left"
        )
        if report.table is not None:
            print(f"frequency table {report.table.digest[:8]} stored: {many(len(report.table.values), 'common value')}")
    undone = report.remaining or tally.left or tally.refused or any(item.problem for item in report.work)
    return PARTLY if undone else DONE


def _facts_of(table: FrequencyTable) -> dict[str, Any]:
    return {
        "digest": table.digest,
        "recipe": table.recipe,
        "documents": table.documents,
        "values": len(table.values),
    }


def _work(item: Work) -> dict[str, Any]:
    return {"index": item.index, "documents": item.documents, "waiting": item.waiting, "problem": item.problem}


def _template(arguments: argparse.Namespace) -> int:
    """Print the fields of sketches as a component template, or add them to an index template of a cluster."""
    field, name = arguments.field, arguments.template
    if name is True and arguments.url is None:
        print(json.dumps(component_template(field), indent=2))
        return DONE
    if name is True or arguments.url is None or arguments.index is not None:
        raise ValueError(
            "--template takes the address of a cluster and an index template, backfill URL --template NAME, or "
            "neither; an index gets the fields with its first sketch"
        )
    with connected(arguments, arguments.url) as client:
        found = client.indices.get_index_template(name=name)["index_templates"][0]["index_template"]
        mapping = client.indices.simulate_template(name=name)["template"].get("mappings", {})
        if field in mapping.get("properties", {}):  # before anything is changed
            for finding in check_mapping(mapping, field):
                if finding.level == "error":
                    raise IndexUnusable(f"index template {name}", finding.what, finding.remedy)
        client.indices.put_index_template(name=name, body=with_sketch_fields(found, field))
    print(f"index template {name} has the fields: new indexes will have them")
    return DONE
