"""Find the settings that suit an index: shows what each would hide for your queries, and asks about pairs.

examples:
  ndd-search tune http://localhost:9200 news --queries queries.txt
  ndd-search tune http://localhost:9200 news --queries queries.txt --ask 40 --save settings.toml --html tuning.html
  ndd-search tune news.idx --queries queries.txt --ask 40

Each line of the file is a query in words, or a search body as JSON. The index is not changed. Every answer is saved at
once; after an interruption the same command continues. The exit code is 1 if no two hits resemble each other, 3 if a
query failed.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
    preset_of,
    print_json,
    progress,
    stored_options,
    table,
    warn,
)
from ndd_search.cli.search import open_index
from ndd_search.cli.tuning.answers import AnswerFile, read_answers
from ndd_search.cli.tuning.belief import Tuning
from ndd_search.cli.tuning.compare_settings import BARS, Pages, Pair, ResultPage, look_at, samples
from ndd_search.cli.tuning.page_sources import FolderSource, Query, ServerSource, Source, read_queries, shown
from ndd_search.cli.tuning.summary import (
    HEADS,
    cells,
    described,
    effects,
    facts,
    overview,
    page,
    settings_of,
    verdict,
)
from ndd_search.core.options import CollapseOptions
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.core.text.printable import safe
from ndd_search.errors import IndexUnusable, InvalidDocument, InvalidSettings
from ndd_search.indexing.retry import server_reason
from ndd_search.reports.side_by_side import Piece, side_by_side
from ndd_search.search.settings_file import check_replaceable, preset, write_preset
from ndd_search.sources.csv_and_json import open_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "d": None, "don't know": None}
_ASKING = "near-duplicates, one of them is enough?  [y]es  [n]o  [d]on't know  [b]ack  [q]uit > "
_SAMPLES = 3
_MOST_SHOWN = 5  # failed queries that are shown one by one; the others are counted
_WIDEST = 40  # characters of the longest bar of the histogram


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="URL|FOLDER", help="a cluster, or an index made by ndd-search index add")
    parser.add_argument("index", metavar="INDEX", nargs="?", help="on the cluster: an index, alias or pattern")
    parser.add_argument("--queries", type=Path, required=True, metavar="FILE", help="sample queries, one per line")
    parser.add_argument(
        "--most-queries",
        type=number(int, 1),
        default=300,
        metavar="N",
        help="if there are more queries, take N at random (300)",
    )
    parser.add_argument(
        "--ask",
        type=number(int, 0),
        default=0,
        metavar="N",
        help="ask about at most N pairs; stops early when the answer is certain",
    )
    parser.add_argument(
        "--answers", type=Path, metavar="FILE", help="file for your answers (beside --save, or in this folder)"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the settings to this file, .toml or .json")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write figures and pairs to this HTML file")
    parser.add_argument("--fields", type=comma_list, default=[], help="fields to search and show, on a cluster (all)")
    add_shared(parser, "--field")
    add_cluster(parser, positional=False)
    add_shared(parser, "--recipe", "--preset", "--json")


def run(arguments: argparse.Namespace) -> int:
    if arguments.ask and not sys.stdin.isatty():
        raise ValueError("--ask needs a terminal to ask questions, and standard input is not one")
    for file in filter(None, (arguments.save, arguments.html, arguments.answers)):
        if not file.parent.is_dir():  # checked before the user answers questions
            raise ValueError(f"{file}: there is no folder {file.parent}")
    if arguments.save:
        check_replaceable(arguments.save)
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
        rules = {**_rules_in(arguments.preset), **_rules_in(arguments.save)}
        write_preset(arguments.save, replace(settings_of(tuning, about), indexes=rules))
    if arguments.html:
        arguments.html.write_text(page(tuning, name), "utf-8", errors="replace")
    if arguments.json:
        print_json({**facts(tuning), "failed": len(failures)})
    else:
        _show_verdict(tuning, arguments)
    return NO if not pages.pairs else PARTLY if failures else DONE


def _rules_in(file: Path | None) -> Mapping[str, Mapping[str, Any]]:
    """Return the rules for indexes of a preset, none if it cannot be read."""
    with suppress(OSError, InvalidSettings):
        return preset(file).indexes if file else {}
    return {}


def _queries(arguments: argparse.Namespace, failures: list[str]) -> Sequence[Query]:
    with open_text(arguments.queries) as lines:
        queries = read_queries(lines, failures.append)
    if not queries:
        raise InvalidDocument(
            arguments.queries, "it holds no query", "write one per line, in words or as a search body"
        )
    if len(queries) <= arguments.most_queries:
        return queries
    return random.Random(0).sample(queries, arguments.most_queries)


def _beside(save: Path | None) -> Path:
    return Path("ndd-answers.jsonl") if save is None else save.with_suffix(".answers.jsonl")


@contextmanager
def _opened(arguments: argparse.Namespace) -> Iterator[tuple[Source, CollapseOptions]]:
    """Open the index; also return the options to start from."""
    if "://" not in arguments.source:
        if arguments.index is not None:
            raise ValueError(f"{arguments.source!r} is not an address: write http://HOST:PORT, or name only a folder")
        with open_index(Path(arguments.source), recipe=arguments.recipe, preset=preset_of(arguments)) as index:
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
        what = f"none of {len(hits)} hits has a sketch of recipe {source.recipe.id}"
        raise IndexUnusable(source.name, what, "run ndd-search backfill, or name the stored recipe: --recipe ID")
    if lacking:
        warn(
            f"{len(lacking):,} of {len(hits):,} hits have no sketch of recipe {source.recipe.id}: they are not compared"
        )


def _interview(tuning: Tuning, most: int, answers: AnswerFile, out: Console) -> Tuning:
    """Ask until the result is certain, the limit is reached, or the user quits."""
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
        # Not through the console: after an interrupted print it may buffer all further output.
        print(f"\nThe answers are in {answers.path}; run the same command to continue.", file=out.file)
        raise
    return tuning


def _ask(out: Console) -> str:
    """Read one of the keys of _ANSWERS, "b" or "q"; the end of the input counts as "q"."""
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
    """A histogram of the similarity of hits to the nearest hit above, split by whether "auto" groups them."""
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
        shown_text = f"«{piece.text.rstrip()}»{' ' * piece.text.endswith(' ')}" if piece.own and plain else piece.text
        text.append(shown_text, "bold yellow" if piece.own and not plain else "")
    return text
