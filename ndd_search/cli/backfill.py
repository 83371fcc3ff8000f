"""Give the documents of a live index their sketches, or take them away.

examples:
  ndd-search backfill http://localhost:9200 news --fields title,body
  ndd-search backfill https://USER:PASSWORD@HOST news --fields title,body --rate 2000 --slices 4
  ndd-search backfill http://localhost:9200 news --fields title,body --field ndd_next --recipe w5-k128-v1
  ndd-search backfill http://localhost:9200 news --remove ndd --yes

The index is searched and written to all the while; a document that somebody changes meanwhile is never overwritten. A
run that was ended in any way is continued by running it again: the index itself knows what is left. --remove asks
before it begins. The exit code is 3 when documents are left as they were.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Any

from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.cluster import add_cluster, connected
from ndd_search.cli.output import (
    add_json,
    add_preset,
    add_recipe,
    comma_list,
    console,
    many,
    print_json,
    progress,
    table,
    warn,
)
from ndd_search.indexing.backfill import Backfill, BackfillReport, Work
from ndd_search.presets import preset
from ndd_search.recipe import Recipe
from ndd_search.text.printable import safe


def configure(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("index", metavar="INDEX", help="an index, alias, data stream or pattern")
    parser.add_argument("--fields", type=comma_list, default=[], help="the text fields that make the sketch, in order")
    parser.add_argument("--field", default="ndd", help="the object that holds the sketch (ndd)")
    either = parser.add_mutually_exclusive_group()
    add_recipe(either)
    add_preset(either)
    parser.add_argument("--keys", type=int, default=0, help="keys to store for whole-index candidates (none)")
    parser.add_argument("--numbers", action="store_true", help="store numbers for the guard numbers_must_match, too")
    parser.add_argument("--remove", metavar="FIELD", help="take away the sketches of this object instead")
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    parser.add_argument("--query", type=_query, help="only documents that match: JSON, as in a search request")
    parser.add_argument("--rate", type=float, help="documents a second (as many as the server takes)")
    parser.add_argument("--slices", type=int, default=2, help="threads side by side (2)")
    parser.add_argument(
        "--recheck",
        "--resume",
        action="store_true",
        help="also compare sketches that are there with their texts: after a run that was killed while others wrote",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what there is to do")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    chosen = preset(arguments.preset) if arguments.preset else None
    settings = Backfill(
        index=arguments.index,
        fields=tuple(arguments.fields),
        recipe=chosen.recipe if chosen else arguments.recipe or Recipe(),
        field=arguments.remove or arguments.field,
        keys=arguments.keys,
        numbers=arguments.numbers or bool(chosen and chosen.numbers),
        remove=arguments.remove is not None,
        query=arguments.query,
        rate=arguments.rate,
        slices=arguments.slices,
        recheck=arguments.recheck,
    )
    with connected(arguments, arguments.url) as client:
        if arguments.dry_run:
            return _plan(settings.plan(client), arguments.json)
        if settings.remove and not arguments.yes and not _agreed(settings.plan(client), settings.field):
            print("nothing was changed")
            return NO
        told = 0
        with progress("backfill", None, arguments.json) as move:

            def on_progress(done: int, total: int) -> None:
                nonlocal told
                move(done - told, total)
                told = done

            report = settings.run(client, on_progress)
    return _report(report, arguments.json)


def _plan(work: list[Work], as_json: bool) -> int:
    if as_json:
        print_json([_work(one) for one in work])
        return DONE
    shown = table("index", ">documents", ">to do", "")
    for one in work:
        shown.add_row(one.index, f"{one.documents:,}", f"{one.waiting:,}", one.problem)
    console().print(shown)
    return DONE


def _agreed(work: list[Work], field: str) -> bool:
    """Ask whether so many documents are to lose what they hold. Raises ValueError when there is nobody to ask."""
    if not (count := sum(one.waiting for one in work)):
        return True
    names = ", ".join(one.index for one in work if one.waiting)
    what = f"{many(count, 'document')} of {names} would lose {field}"
    if not sys.stdin or not sys.stdin.isatty():
        raise ValueError(f"{what}: say --yes to remove it without being asked; nothing was changed")
    print(f"{what}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _report(report: BackfillReport, as_json: bool) -> int:
    tally = report.tally
    for note in report.notes:
        warn(note)
    for reason, count in tally.refused.most_common(5):
        warn(f"the server refused {count} documents: {reason}")
    for reason, left in tally.left.items():
        examples = ", ".join(map(safe, left.examples)) + (", ..." if left.count > len(left.examples) else "")
        warn(f"left as they were: {many(left.count, 'document')} ({examples}): {reason}")
    if as_json:
        facts: dict[str, Any] = {**dataclasses.asdict(tally), "corrected": report.corrected}
        print_json({"work": [_work(one) for one in report.work], **facts, "remaining": report.remaining})
    else:
        print(
            f"{tally.written - tally.noops:,} documents written, {report.corrected:,} of them corrected; "
            f"{tally.conflicts:,} met again after others had changed them, {tally.gone:,} deleted meanwhile; "
            f"{report.remaining:,} left"
        )
    undone = report.remaining or tally.left or tally.refused or any(one.problem for one in report.work)
    return PARTLY if undone else DONE


def _work(one: Work) -> dict[str, Any]:
    return {"index": one.index, "documents": one.documents, "waiting": one.waiting, "problem": one.problem}


def _query(text: str) -> dict[str, Any]:
    try:
        query = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"no JSON: {error}") from None
    if not isinstance(query, dict) or len(query) != 1:
        raise argparse.ArgumentTypeError('expected one query, {"term": {...}}, as under "query" of a search request')
    return dict(query.get("query", query))
