"""Show the measured effect of collapsing, from logs of searches and clicks.

examples:
  ndd-search effect searches.jsonl
  ndd-search effect access.log.gz clicks.jsonl --json

A log holds one JSON object a line: lines of ndd_search.SearchLog, of the proxy's access log, or your own with the block
`ndd` of an answer and with clicks, {"search": "s1", "ndd": {...}} and {"search": "s1", "click": "42"}. Lines of another
kind are counted and passed over. The exit code is 1 if no page was collapsed, 3 if a line is no JSON object.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.output import add_json, print_json, warn
from ndd_search.evaluation.effect import ArmEffect, Effect, measure_effect
from ndd_search.sources.csv_and_json import open_text


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", type=Path, metavar="LOG", nargs="+", help="a file of JSON lines, .gz or plain")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    effect = measure_effect(_lines(arguments.log))
    if arguments.json:
        print_json(effect.as_dict())
    else:
        print("\n".join(_sentences(effect)))
    if effect.unreadable:
        warn(f"{effect.unreadable:,} lines are no JSON objects and were passed over")
        return PARTLY
    return DONE if effect.arms else NO


def _lines(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        with open_text(path) as file:
            yield from file


def _sentences(effect: Effect) -> Iterator[str]:
    for name, arm in sorted(effect.arms.items(), reverse=True):
        yield f"{name}: {_pages(arm)}"
        if arm.logged:
            yield f"  {_share(arm.clicked, arm.logged, 'pages')} with a click"
            yield f"  {_share(arm.clicks_on_hidden, arm.clicks, 'clicks')} on hits that collapsing hides"
    if (found := effect.difference) is not None:
        yield f"pages with a click, treatment less control: {found[0]:+.1%} (95 % interval: {found[1]:.1%} either way)"
    if effect.left_alone:
        yield f"pages that were not collapsed: {effect.left_alone:,}"
    if effect.unknown_clicks:
        yield f"clicks on searches that no line holds: {effect.unknown_clicks:,}"
    if effect.other:
        yield f"lines of another kind: {effect.other:,}"
    if not effect.arms:
        yield "no page in these logs was collapsed"


def _pages(arm: ArmEffect) -> str:
    changed, hidden = _share(arm.changed, arm.pages, "pages"), _share(arm.hidden, arm.examined, "examined hits")
    degraded = _share(arm.degraded, arm.pages, "pages")
    return f"{changed} changed; {hidden} hidden; {degraded} degraded"


def _share(part: int, whole: int, what: str) -> str:
    return f"{part:,} of {whole:,} {what}" + (f" ({part / whole:.1%})" if whole else "")
