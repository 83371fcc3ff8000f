"""Find the settings that suit an index: shows what each would hide for your queries, and asks about pairs.

examples:
  ndd-search tune http://localhost:9200 news --queries queries.txt
  ndd-search tune http://localhost:9200 news --queries queries.txt --ask 20 --save settings.toml
  ndd-search tune news.idx --queries queries.txt --ask 20

Each line of the file is a query in words, or a search body as JSON; of more than 300, 300 are taken at random. The
index is not changed. The exit code is 1 if no two hits resemble each other, 3 if a query failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.cluster import Address, add_cluster, connected
from ndd_search.cli.output import (
    add_shared,
    comma_list,
    console,
    number,
    print_json,
    progress,
    stored_options,
    table,
    warn,
)
from ndd_search.cli.search import open_index
from ndd_search.cli.tuning.compare_settings import (
    SETTINGS,
    Pages,
    Pair,
    ResultPage,
    Tuning,
    look_at,
    samples,
)
from ndd_search.cli.tuning.page_sources import FolderSource, Query, ServerSource, Source, read_queries, shown
from ndd_search.core.matching.decision import PLAIN
from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import Preset
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.core.text.printable import many, safe
from ndd_search.errors import IndexUnusable, InvalidDocument
from ndd_search.indexing.rate_and_retries import server_reason
from ndd_search.reports.side_by_side import Piece, side_by_side
from ndd_search.search.settings_file import check_toml, replaceable, write_preset
from ndd_search.sources.csv_and_json import text_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "d": None, "unknown": None}
_WORDS = {True: "yes", False: "no", None: "unknown"}
_HEADS = ("min_similarity", ">hits hidden", ">of all hits", ">on pages", ">right, by the answers")
_BARS_SHOWN = ("auto", 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_NAMES = {bar: name for name, bar in PLAIN.items()}
_ASKING = "near-duplicates, one of them is enough?  [y]es  [n]o  [d]on't know  [q]uit > "
_SAMPLES = 3
_MOST_SHOWN = 5  # failed queries that are shown one by one; the others are counted


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="URL|FOLDER", help="a cluster, or an index made by ndd-search index add")
    parser.add_argument("index", metavar="INDEX", nargs="?", help="on the cluster: an index, alias or pattern")
    parser.add_argument("--queries", type=Path, required=True, metavar="FILE", help="sample queries, one per line")
    parser.add_argument(
        "--ask", type=number(int, 0), default=0, metavar="N", help="ask about at most N pairs; 20 usually suffice"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the settings to this .toml file")
    parser.add_argument("--fields", type=comma_list, default=[], help="fields to search and show, on a cluster (all)")
    add_shared(parser, "--field")
    add_cluster(parser, positional=False)
    add_shared(parser, "--recipe", "--preset", "--json")


def run(arguments: argparse.Namespace) -> int:
    if arguments.ask and not sys.stdin.isatty():
        raise ValueError("--ask needs a terminal to ask questions, and standard input is not one")
    if arguments.save:  # checked before the user answers questions
        if not arguments.save.parent.is_dir():
            raise ValueError(f"{arguments.save}: there is no folder {arguments.save.parent}")
        before = replaceable(arguments.save)
        check_toml(arguments.save)
    failures: list[str] = []
    queries = _queries(arguments, failures)
    with _opened(arguments) as (source, options):
        pages = _look(source, queries, options, failures, arguments.json)
        name = source.name
    out = console(stderr=arguments.json) if arguments.ask or not arguments.json else None
    tuning = Tuning(pages)
    if out:
        _show_figures(tuning, out)
        tuning = _interview(tuning, arguments.ask, out) if arguments.ask else tuning
    if arguments.save:
        about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "on": name}
        given = arguments.preset.indexes if arguments.preset else {}
        rules = {**given, **before.indexes}
        write_preset(arguments.save, replace(settings_of(tuning, about), indexes=rules))
    if arguments.json:
        print_json({**facts(tuning), "failed": len(failures)})
    else:
        _show_verdict(tuning, arguments)
    return NO if not pages.pairs else PARTLY if failures else DONE


def _queries(arguments: argparse.Namespace, failures: list[str]) -> Sequence[Query]:
    queries = read_queries(text_lines(arguments.queries, failures.append), failures.append)
    if not queries:
        problem = failures[0] if failures else "it holds no query"
        raise InvalidDocument(arguments.queries, problem, "write one per line, in words or as a search body")
    return queries


@contextmanager
def _opened(arguments: argparse.Namespace) -> Iterator[tuple[Source, CollapseOptions]]:
    """Open the index; also return the options to start from."""
    if "://" not in arguments.source:
        if arguments.index is not None:
            raise ValueError(f"{arguments.source!r} is not an address: write http://HOST:PORT, or name only a folder")
        with open_index(Path(arguments.source), recipe=arguments.recipe, preset=arguments.preset) as index:
            yield FolderSource(index), index.options
        return
    if arguments.index is None:
        raise ValueError("name the index after the address: ndd-search tune URL INDEX --queries FILE")
    options, recipe = stored_options(arguments)
    where = f"{Address.parse(arguments.source).url} {arguments.index}"
    with connected(arguments, arguments.source) as client:
        field = SketchField(arguments.field)
        yield ServerSource(where, client, arguments.index, recipe, field, tuple(arguments.fields)), options


def _look(
    source: Source, queries: Sequence[Query], options: CollapseOptions, failures: list[str], quiet: bool
) -> Pages:
    """Run the queries and return their pages; failed queries are reported."""
    frequency_table = source.frequency_table
    pages: list[ResultPage] = []
    with progress("searching", len(queries), quiet) as advance:
        for query in queries:
            try:
                pages.append(source.search(query, options.window))
            except Exception as error:
                reason = "; ".join(error.args[1:]) if isinstance(error, InvalidDocument) else server_reason(error)
                if reason is None:
                    raise
                failures.append(f"query {shown(query)[:200]} failed: {reason}")
            advance(1)
    for failure in failures[:_MOST_SHOWN]:
        warn(safe(failure))
    if len(failures) > _MOST_SHOWN:
        warn(f"{len(failures)} queries failed in total; the others were used")
    if not pages:
        raise IndexUnusable(source.name, "none of the queries succeeded", "correct the queries, or --fields")
    _check_sketches(source, pages)
    return look_at(pages, source.recipe, frequency_table, options)


def _check_sketches(source: Source, pages: Sequence[ResultPage]) -> None:
    hits = [hit for result in pages for hit in result.hits]
    lacking = [hit for hit in hits if isinstance(hit.sketch, str) and hit.sketch != "empty"]
    if not hits:
        raise IndexUnusable(source.name, f"none of {len(pages)} queries finds a hit", "try other queries, or --fields")
    if len(lacking) == len(hits):
        what = f"none of {many(len(hits), 'hit')} has a sketch of recipe {source.recipe.id}"
        raise IndexUnusable(source.name, what, "run ndd-search backfill, or name the stored recipe: --recipe ID")
    if lacking:
        warn(f"no sketch of recipe {source.recipe.id} in {len(lacking):,} of {many(len(hits), 'hit')}: not compared")


def _interview(tuning: Tuning, most: int, out: Console) -> Tuning:
    """Ask until there is no pair left to ask about, the limit is reached, or the user quits."""
    for place in range(1, most + 1):
        if (pair := tuning.question()) is None:
            break
        _show_pair(pair, f"pair {place} of at most {most}", out)
        if (word := _ask(out)) == "q":
            break
        tuning = tuning.answered(pair.key, _ANSWERS[word])
    return tuning


def _ask(out: Console) -> str:
    """Read one of the keys of _ANSWERS, or "q"; the end of the input counts as "q"."""
    while True:
        try:
            word = out.input(_ASKING, markup=False).strip().casefold()
        except EOFError:
            return "q"
        if word in ("q", "quit"):
            return "q"
        if word in _ANSWERS:
            return word


def effects(tuning: Tuning) -> list[dict[str, Any]]:
    """Return a row for each setting shown, the default first, then from strict to loose.

    Keys: setting; name, "" for a bar without one; recommended; hidden, in hits; share of all hits; pages with a hidden
    hit; right: of the hits that resemble another hit, the share decided as the answers do, None without answers.
    """
    pages = tuning.pages
    shown_settings = {*_BARS_SHOWN, SETTINGS[tuning.place]}
    return [
        {
            "setting": SETTINGS[place],
            "name": _NAMES.get(SETTINGS[place], ""),
            "recommended": place == tuning.place,
            "hidden": pages.hides[place],
            "share": pages.hides[place] / max(pages.hits, 1),
            "pages": pages.touches[place],
            "right": float(tuning.right[place]) if _is_answered(tuning) else None,
        }
        for place in [0, *range(len(SETTINGS) - 1, 0, -1)]
        if SETTINGS[place] in shown_settings
    ]


def facts(tuning: Tuning) -> dict[str, Any]:
    """Return all figures, for JSON."""
    pages = tuning.pages
    return {
        "recipe": pages.recipe.id,
        "queries": len(pages.pages),
        "hits": pages.hits,
        "pairs": len(pages.pairs),
        "effects": effects(tuning),
        "recommended": SETTINGS[tuning.place],
        "answers": {word: tuning.count(answer) for answer, word in _WORDS.items()},
    }


def settings_of(tuning: Tuning, about: Mapping[str, Any]) -> Preset:
    """Return the recommended settings for a file. about: facts stored with them, such as the date and the index."""
    pages = tuning.pages
    tuned = {**about, "queries": len(pages.pages), "hits": pages.hits, "hidden": pages.hides[tuning.place]}
    tuned["answers"] = tuning.count(True) + tuning.count(False)
    return Preset(replace(pages.options, min_similarity=SETTINGS[tuning.place]), pages.recipe, tuned)


def verdict(tuning: Tuning) -> list[str]:
    """Return the recommendation and the answers that speak for it, in sentences."""
    if not tuning.pages.pairs:
        return ["No hit of these pages resembles another hit by 0.2 or more: every setting gives the same pages."]
    setting = '"auto", the default' if tuning.place == 0 else f"{SETTINGS[tuning.place]:g}"
    if not _is_answered(tuning):
        return [f"Recommended: min_similarity = {setting}, no pair has an answer yet (--ask 20 asks about pairs)."]
    yes, no, unknown = map(tuning.count, (True, False, None))
    agreed, by_default = tuning.agreeing(tuning.place), tuning.agreeing(0)
    return [
        f"Recommended: min_similarity = {setting}, after {yes} yes, {no} no, {unknown} don't know.",
        f'It agrees with {agreed} of these {yes + no} answers, "auto" with {by_default}.',
    ]


def _is_answered(tuning: Tuning) -> bool:
    return tuning.count(True) + tuning.count(False) > 0


def _show_figures(tuning: Tuning, out: Console) -> None:
    pages = tuning.pages
    queries = f"{len(pages.pages):,} {'query' if len(pages.pages) == 1 else 'queries'}"
    out.print(f"{queries}, {many(pages.hits, 'hit')}, recipe {pages.recipe.id}", highlight=False)
    columns = len(_HEADS) - (not _is_answered(tuning))
    lines = table(*_HEADS[:columns])
    for line in effects(tuning):
        name = f"{line['setting']}" + (f" ({line['name']})" if line["name"] else "")
        figures = [f"{line['hidden']:,}", f"{line['share']:.1%}", f"{line['pages']:,}", f"{line['right'] or 0:.0%}"]
        lines.add_row(*[name, *figures][:columns], style="bold" if line["recommended"] else None)
    out.print(lines)


def _show_verdict(tuning: Tuning, arguments: argparse.Namespace) -> None:
    if not arguments.ask:
        for pair in samples(tuning.pages, _SAMPLES):
            decision = "joins them" if pair.joined else "shows them apart"
            _show_pair(pair, f'resemblance {pair.similarity:.2f}, "auto" {decision}', console())
    print("\n".join(verdict(tuning)))
    if arguments.save:
        print(f"Saved in {arguments.save}")


def _show_pair(pair: Pair, about: str, out: Console) -> None:
    """Print two texts side by side. Words that only one of them has are coloured, or in «» without colour."""
    sides = side_by_side(pair.first.text, pair.second.text)
    plain = not out.is_terminal or out.no_color
    out.print(f"{about}; query: {safe(pair.query)[:100]}", highlight=False, style="bold")
    lines = table("", "", show_header=False, expand=True)
    lines.columns[0].ratio = lines.columns[1].ratio = 1
    lines.add_row(safe(pair.first.id), safe(pair.second.id), style="dim")
    lines.add_row(*(_text(side, plain) for side in sides))
    out.print(lines)


def _text(pieces: Sequence[Piece], plain: bool) -> Text:
    from rich.text import Text

    text = Text()
    for piece in pieces:
        shown_text = f"«{piece.text}»" if piece.marked and plain else piece.text
        text.append(shown_text, "bold yellow" if piece.marked and not plain else "")
    return text
