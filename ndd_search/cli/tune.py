"""Find the setting that suits an index: see what each would hide on the pages of your queries, judge some pairs.

examples:
  ndd-search tune http://localhost:9200 news --queries queries.txt
  ndd-search tune http://localhost:9200 news --queries queries.txt --ask 40 --save settings.toml --html tuning.html
  ndd-search tune news.idx --queries queries.txt --ask 40

A line of the file is a query in words, or a search body as JSON. Nothing in the index is changed. Answers are kept in a
file as they are given; the same command goes on where it was. The exit code is 1 when no two hits resemble each other,
3 when a query failed.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.cluster import Address, add_cluster, connected, told_by_server
from ndd_search.cli.output import (
    add_json,
    add_recipe,
    add_settings,
    comma_list,
    console,
    print_json,
    progress,
    stored_options,
    table,
    warn,
)
from ndd_search.cli.search import open_index, options_for
from ndd_search.collapse_options import CollapseOptions
from ndd_search.errors import IndexUnusable, InvalidDocument
from ndd_search.reports.side_by_side import Piece, side_by_side
from ndd_search.settings_file import write_settings
from ndd_search.sketching.field import SketchField
from ndd_search.sources.rows import open_text
from ndd_search.text.printable import safe
from ndd_search.tuning.answers import AnswerFile, read_answers
from ndd_search.tuning.belief import Tuning
from ndd_search.tuning.pages import BARS, Pages, Pair, ResultPage, look_at, samples
from ndd_search.tuning.report import HEADS, cells, described, page
from ndd_search.tuning.sources import FolderSource, Query, ServerSource, Source, read_queries, shown
from ndd_search.tuning.summary import effects, facts, overview, settings_of, verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "d": None, "don't know": None}
_ASKING = "near-duplicates, one of them is enough?  [y]es  [n]o  [d]on't know  [b]ack  [q]uit > "
_SAMPLES = 3
_MOST_SHOWN = 5  # failures of queries; the rest is counted
_WIDEST = 40  # characters of a bar of the histogram


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="URL|FOLDER", help="a cluster, or an index made by ndd-search index")
    parser.add_argument("index", metavar="INDEX", nargs="?", help="on the cluster: an index, alias or pattern")
    parser.add_argument("--queries", type=Path, required=True, metavar="FILE", help="queries to try, one a line")
    parser.add_argument(
        "--most-queries", type=int, default=300, metavar="N", help="of more take so many at random (300)"
    )
    parser.add_argument("--ask", type=int, default=0, metavar="N", help="ask about at most N pairs, until it is sure")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="where answers are kept (beside --save, or here)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the settings there, .toml or .json")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write figures and pairs to this HTML file")
    parser.add_argument("--fields", type=comma_list, default=[], help="fields to search and show, on a cluster (all)")
    parser.add_argument("--field", default="ndd", help="the object that holds the sketch, on a cluster (ndd)")
    add_cluster(parser, positional=False)
    add_recipe(parser)
    add_settings(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.ask and not sys.stdin.isatty():
        raise ValueError("--ask needs somebody to answer, and standard input is no terminal: run it in one")
    for file in filter(None, (arguments.save, arguments.html, arguments.answers)):
        if not file.parent.is_dir():  # before the work, and before a person answers questions
            raise ValueError(f"{file}: there is no folder {file.parent}")
    failures: list[str] = []
    queries = _queries(arguments, failures)
    answers = AnswerFile(arguments.answers or _beside(arguments.save))
    with _opened(arguments) as (source, options):
        pages = _look(source, queries, options, failures, arguments.json)
        name = source.name
    out = console(stderr=arguments.json) if arguments.ask or not arguments.json else None
    tuning = Tuning(pages, read_answers(answers.path, warn))
    if out:
        _show_figures(tuning, out)
        tuning = _interview(tuning, arguments.ask, answers, out) if arguments.ask else tuning
    if arguments.save:
        about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "on": name}
        write_settings(arguments.save, settings_of(tuning, about))
    if arguments.html:
        arguments.html.write_text(page(tuning, name), "utf-8", errors="replace")
    if arguments.json:
        print_json({**facts(tuning), "failed": len(failures)})
    else:
        _show_verdict(tuning, arguments)
    return NO if not pages.pairs else PARTLY if failures else DONE


def _queries(arguments: argparse.Namespace, failures: list[str]) -> Sequence[Query]:
    with open_text(arguments.queries) as lines:
        queries = read_queries(lines, failures.append)
    if not queries:
        raise InvalidDocument(arguments.queries, "it holds no query", "write one a line, in words or as a search body")
    if len(queries) <= arguments.most_queries:
        return queries
    return random.Random(0).sample(queries, max(arguments.most_queries, 1))


def _beside(save: Path | None) -> Path:
    return Path("ndd-answers.jsonl") if save is None else save.with_suffix(".answers.jsonl")


@contextmanager
def _opened(arguments: argparse.Namespace) -> Iterator[tuple[Source, CollapseOptions]]:
    """The index, and the options to start from."""
    if "://" not in arguments.source:
        if arguments.index is not None:
            raise ValueError(f"{arguments.source!r} is no address: name one as http://HOST:PORT, or a folder alone")
        with open_index(Path(arguments.source), recipe=arguments.recipe, settings=arguments.settings) as index:
            yield FolderSource(index), options_for(index, arguments.preset)
        return
    if arguments.index is None:
        raise ValueError("name the index behind the address, as in: ndd-search tune URL INDEX --queries FILE")
    options, recipe = stored_options(arguments)
    where = f"{Address.parse(arguments.source).url} {arguments.index}"
    with connected(arguments, arguments.source) as client:
        field = SketchField(arguments.field)
        yield ServerSource(where, client, arguments.index, recipe, field, tuple(arguments.fields)), options


def _look(
    source: Source, queries: Sequence[Query], options: CollapseOptions, failures: list[str], quiet: bool
) -> Pages:
    """The pages of the queries that can be answered; what failed is told."""
    frequency_table = source.frequency_table
    pages: list[ResultPage] = []
    with progress("searching", len(queries), quiet) as advance:
        for query in queries:
            try:
                pages.append(source.search(query, options.window))
            except Exception as error:
                told = "; ".join(error.args[1:]) if isinstance(error, InvalidDocument) else told_by_server(error)
                if told is None:
                    raise
                failures.append(f"query {shown(query)[:200]} failed: {told}")
            advance(1)
    for failure in failures[:_MOST_SHOWN]:
        warn(safe(failure))
    if len(failures) > _MOST_SHOWN:
        warn(f"{len(failures)} queries failed in all, the others count")
    if not pages:
        raise IndexUnusable(source.name, "none of the queries could be answered", "correct them, or the fields")
    _check_sketches(source, pages)
    return look_at(pages, source.recipe, frequency_table, options)


def _check_sketches(source: Source, pages: Sequence[ResultPage]) -> None:
    hits = [hit for one in pages for hit in one.hits]
    lacking = [hit for hit in hits if isinstance(hit.sketch, str) and hit.sketch != "empty"]
    if not hits:
        raise IndexUnusable(source.name, f"none of {len(pages)} queries finds anything", "give others, or --fields")
    if len(lacking) == len(hits):
        what = f"none of {len(hits)} hits has a sketch of recipe {source.recipe.id}"
        raise IndexUnusable(source.name, what, "run ndd-search backfill, or say which recipe: --recipe ID")
    if lacking:
        warn(f"{len(lacking):,} of {len(hits):,} hits have no sketch of recipe {source.recipe.id}: they stand alone")


def _interview(tuning: Tuning, most: int, answers: AnswerFile, out: Console) -> Tuning:
    """Ask until it is sure, or enough, or the person has enough."""
    said: list[Pair] = []
    try:
        while len(said) < most and (pair := tuning.question()) is not None:
            _show_pair(pair, f"pair {len(said) + 1} of at most {most}", out)
            match _ask(out):
                case "q":
                    break
                case "b":
                    if said:
                        last = said.pop()
                        answers.take_back(last)
                        tuning = tuning.without(last.key)
                case word:
                    answers.write(pair, _ANSWERS[word])
                    tuning = tuning.answered(pair.key, _ANSWERS[word])
                    said.append(pair)
    except KeyboardInterrupt:
        # Not through the console: interrupted while it prints, it keeps to itself what it gets from then on.
        print(f"\nThe answers are in {answers.path}; the same command goes on from here.", file=out.file)
        raise
    return tuning


def _ask(out: Console) -> str:
    """One of the keys of _ANSWERS, "b" or "q"; the end of the input is "q"."""
    while True:
        try:
            word = out.input(_ASKING, markup=False).strip().casefold()
        except EOFError:
            return "q"
        if word in ("q", "quit", "b", "back"):
            return word[0]
        if word in _ANSWERS:
            return word


def _show_figures(tuning: Tuning, out: Console) -> None:
    pages = tuning.pages
    out.print(overview(tuning), highlight=False)
    columns = len(HEADS) - (tuning.recommendation().interval is None)
    lines = table(*(f">{head}" if number else head for number, head in enumerate(HEADS[:columns])))
    for line in effects(tuning):
        lines.add_row(*cells(line)[:columns], style="bold" if line["recommended"] else None)
    out.print(lines)
    if pages.pairs:
        out.print(_histogram(pages))


def _histogram(pages: Pages) -> Any:
    """How many hits resemble one above them by how much, and how many of these "auto" joins."""
    most = pages.nearest.sum(axis=1).max()
    lines = table(">nearest hit above", ">hits", '█ joined by "auto", ░ shown apart')
    for bar, (apart, joined) in zip(BARS.tolist(), pages.nearest.tolist(), strict=True):
        width = [round(_WIDEST * count / most) for count in (joined, apart)]
        lines.add_row(f"{bar:.2f}", f"{apart + joined:,.0f}", "█" * width[0] + "░" * width[1])
    return lines


def _show_verdict(tuning: Tuning, arguments: argparse.Namespace) -> None:
    if not arguments.ask:
        for pair in samples(tuning.pages, _SAMPLES):
            _show_pair(pair, described(pair), console())
    print("\n".join(verdict(tuning)))
    if arguments.save:
        print(f"Saved in {arguments.save}")


def _show_pair(pair: Pair, about: str, out: Console) -> None:
    """Two texts side by side, what only one of them has in colour, or in «» where there is none."""
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
        told = f"«{piece.text.rstrip()}»{' ' * piece.text.endswith(' ')}" if piece.own and plain else piece.text
        text.append(told, "bold yellow" if piece.own and not plain else "")
    return text
