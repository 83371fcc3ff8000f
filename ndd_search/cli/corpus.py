"""Find all near-duplicates of a collection: files, folders, tables or an index.

examples:
  ndd-search corpus groups news/*.parquet --id url --text title,body --out groups.parquet --report report.html
  ndd-search corpus unique news.jsonl.gz --text title,body --set keep=newest:published,longest --out unique.jsonl.gz
  ndd-search corpus pairs news.jsonl --text body --min-similarity 0.8 --out pairs.parquet
  ndd-search corpus new today.jsonl --text body --against earlier.parquet --save earlier.parquet --out new.jsonl
  ndd-search corpus hosts crawl.parquet --text body --url url --out hosts.csv
  ndd-search corpus groups http://localhost:9200/news --text title,body --out groups.jsonl
  ndd-search corpus mark groups.jsonl http://localhost:9200/news

A source is a .parquet, .jsonl, .csv or .tsv file (the text ones also with .gz), an .eml or .mbox file, a pattern of
such files, a folder of texts, HTML and mails, or the address of an index. With --set budget=N, documents that many
others resemble are compared with N of them at most.

The exit code is 3 when lines, documents or files were left out: standard error names them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ndd_search.cli import DONE, NO, PARTLY, LeftOut, corpus_compare, corpus_page, help_of
from ndd_search.cli.cluster import add_cluster, connected, warn_of_undone
from ndd_search.cli.corpus_arguments import (
    ADDRESSES,
    SETTINGS,
    check_fields,
    fields_of_command,
    is_first_run,
    options_of,
    parts_of,
    sentence_of,
    settings_of,
    tell_cut,
    tell_hosts,
    tell_new,
)
from ndd_search.cli.output import (
    PAGE,
    add_set,
    add_shared,
    comma_list,
    moving,
    number,
    print_json_line,
    progress,
    tell,
    warn,
)
from ndd_search.core.text.printable import many, safe
from ndd_search.corpus.collection import Corpus, Method
from ndd_search.corpus.collection_groups import Groups, Newcomers
from ndd_search.corpus.document_batches import IndexSource, Pieces
from ndd_search.corpus.group_marks import mark
from ndd_search.corpus.groups_report import write_report
from ndd_search.corpus.sketch_store import check_saved
from ndd_search.corpus.write_files import check_kind, line_of, write
from ndd_search.errors import InvalidDocument

_SUMMARIES = {
    "groups": "the group of every document",
    "unique": "one document of each group, with all its fields",
    "pairs": "every pair of near-duplicates with its similarity",
    "hosts": "pairs of hosts with the same pages, such as mirrors",
    "new": "the documents that are new since an earlier run",
}

_OF_TEXTS = {  # actions that read no collection
    "page": (corpus_page, "a page of a ranked list, without near-duplicates"),
    "compare": (corpus_compare, "how similar two texts are"),
}

_OF_ACTIONS = {"groups": ("keep", "origins"), "unique": ("keep",)}  # and those that some have


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, summary in _SUMMARIES.items():
        action = actions.add_parser(name, help=summary, description=f"Find {summary}.")
        action.add_argument("sources", nargs="+", metavar="SOURCE", help="files, patterns, folders, URL/INDEX")
        action.add_argument("--text", type=comma_list, required=True, help="the fields that hold the text, with commas")
        add_shared(action, "--id")
        action.add_argument("--save", metavar="FILE", help="write the sketches as .parquet, for --against")
        action.add_argument(
            "--out", metavar="FILE", help="write to this file, .parquet, .jsonl or .csv; with --spark a folder"
        )
        add_set(action, SETTINGS | {one: PAGE[one] for one in _OF_ACTIONS.get(name, ())})
        if name in ("groups", "unique"):
            action.add_argument(
                "--method",
                choices=get_args(Method),
                default="leaders",
                help="how pairs become groups",
            )
            action.add_argument("--fields", type=comma_list, default=[], help="fields to report by and to write")
            action.add_argument("--report", metavar="FILE", help="write a report as .html")
        if name == "groups":
            action.add_argument("--since", metavar="FILE", help="what --out wrote earlier: groups keep their names")
        add_shared(action, "--store", "--spark")
        if name == "hosts":
            action.add_argument("--url", default="url", help="the field that holds the URL (url)")
            action.add_argument(
                "--min-share", type=number(float, 0, 1), default=0.5, help="of the pages of one of two hosts (0.5)"
            )
        if name == "new":
            action.add_argument(
                "--against", metavar="FILE", required=True, help="what --save wrote earlier, or will write"
            )
        add_shared(action, "--min-similarity", "--recipe")
        add_cluster(action, positional=False)
        add_shared(action, "--json")
    for name, (module, summary) in _OF_TEXTS.items():
        module.configure(actions.add_parser(name, help=summary, **help_of(module)))
    marking = actions.add_parser("mark", help="write groups into an index", description="Write groups into an index.")
    marking.add_argument("groups", metavar="GROUPS", help="what the action groups wrote as .parquet or .jsonl")
    marking.add_argument("index", metavar="URL/INDEX", help="http[s]://[USER:PASSWORD@]HOST[:PORT]/INDEX")
    add_shared(marking, "--field", "--rate")
    add_cluster(marking, positional=False)
    add_shared(marking, "--json")


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "mark":
        return _mark(arguments)
    if arguments.action in _OF_TEXTS:
        code: int = _OF_TEXTS[arguments.action][0].run(arguments)
        return code
    _check(arguments)
    if arguments.spark:
        from ndd_search.cli import corpus_spark

        return corpus_spark.run(arguments)
    is_new = arguments.action == "new"
    against = Corpus.load(arguments.against) if is_new and not is_first_run(arguments) else None
    report = LeftOut()
    with ExitStack() as stack:
        sources = [_source(arguments, name, stack) for name in arguments.sources]
        with progress("sketches", None, arguments.json) as move:
            corpus = Corpus.read(
                *sources,
                text=arguments.text,
                id=arguments.id,
                recipe=arguments.recipe or (against.recipe if against else None),
                fields=fields_of_command(arguments),
                numbers=options_of(arguments).same_numbers,
                preset=settings_of(arguments).get("preset"),
                report=report,
                progress=move,
            )
        settings = settings_of(arguments)
        if len(corpus):
            check_fields(arguments, lambda name: any(value is not None for value in corpus.columns[name]))
        if is_new:
            none, columns = np.empty(0, np.int64), dict[str, list[Any]]((name, []) for name in corpus.columns)
            nothing = Corpus([], corpus.sketches.taken(none), corpus.recipe, columns)
            _new(arguments, corpus, against or nothing, settings)
        elif arguments.action == "hosts":
            _hosts(arguments, corpus, settings, report)
        elif arguments.action == "pairs":
            _pairs(arguments, corpus, settings)
        else:
            _groups(arguments, corpus, settings)
        if arguments.save and not is_new:
            corpus.save(arguments.save)
    return report.code or (DONE if len(corpus) or is_new else _empty(arguments))


def _check(arguments: argparse.Namespace) -> None:
    """Raise ValueError for arguments that do not go together, before anything is read."""
    if arguments.store and not arguments.spark:
        raise ValueError("--store goes with --spark: leave it out")
    if arguments.out:
        check_kind(arguments.out)
    files = Pieces.of(name for name in arguments.sources if not name.startswith(ADDRESSES))
    report_to = getattr(arguments, "report", None)
    files.check_outputs(arguments.out, arguments.save, report_to, folders=bool(arguments.spark))
    if arguments.save:
        check_saved(arguments.save)
    if arguments.action == "new":  # --save may replace the file of --against
        Pieces((Path(arguments.against),)).check_outputs(arguments.out, folders=bool(arguments.spark))


def _empty(arguments: argparse.Namespace) -> int:
    warn(f"{', '.join(arguments.sources)} holds no document")
    return NO


def _mark(arguments: argparse.Namespace) -> int:
    left_out = LeftOut()
    rows = rows_of_groups(arguments.groups, left_out)
    with ExitStack() as stack:
        target = _source(arguments, arguments.index, stack)
        if not isinstance(target, IndexSource):
            raise ValueError(f"{arguments.index} is no address of an index: expected http[s]://HOST[:PORT]/INDEX")
        with progress("marks", None, arguments.json) as move:
            tally = mark(
                target.client, target.index, rows, field=arguments.field, rate=arguments.rate, on_progress=move
            )
    warn_of_undone(tally)
    tell(arguments, {"written": tally.written}, f"{many(tally.written, 'document')} written")
    return PARTLY if tally.refused or tally.left else left_out.code


def _groups(arguments: argparse.Namespace, corpus: Corpus, settings: dict[str, Any]) -> None:
    with moving("groups", len(corpus), arguments.json) as moved:
        options = options_of(arguments)
        groups = corpus.groups(
            **settings, method=arguments.method, keep=options.keep, origins=options.origins, progress=moved
        )
    tell_cut(groups.effort)
    facts: dict[str, Any] = {"documents": len(corpus), "groups": len(groups)}
    facts["near_duplicates"] = len(corpus) - len(groups)
    if getattr(arguments, "since", None):
        groups = groups.since(rows_of_groups(arguments.since, warn))
    if arguments.action == "unique":
        if arguments.out:
            facts["written"] = groups.unique(arguments.out)
        else:
            _print_rows(groups.unique_documents())
    elif arguments.out:
        groups.write(arguments.out, arguments.fields)
    if arguments.report:
        write_report(groups, arguments.report)
    if arguments.out or arguments.action == "groups":
        told = [sentence_of(facts), *_largest(groups)]
        if groups.changes is not None:
            facts["since"] = groups.changes._asdict()
            told.append("  groups: " + ", ".join(f"{len(those):,} {what}" for what, those in facts["since"].items()))
        tell(arguments, facts, "\n".join(told))


def _largest(groups: Groups) -> Iterator[str]:
    """Yield a line for each of the three largest groups of several documents, with its first ids."""
    sizes = np.where(groups.is_leader, groups.sizes, 0)
    for leader in np.argsort(-sizes, kind="stable")[:3].tolist():
        if sizes[leader] > 1:
            first = np.flatnonzero(groups.leader == leader)[:5].tolist()
            more = ", ..." if sizes[leader] > len(first) else ""
            yield f"  {many(sizes[leader], 'document')}: {', '.join(safe(groups.corpus.ids[at]) for at in first)}{more}"


def rows_of_groups(path: str, report: Callable[[str], None]) -> list[Any]:
    """Return the rows that the action groups wrote. Raises InvalidDocument for another file."""
    rows = [row for batch in Pieces.of([path]).read(report, "document") for row in batch.documents]
    if not rows or not {"document", "group", "size", "fingerprint"} <= set(rows[0]):
        raise InvalidDocument(path, "it holds no groups", "write it with: ndd-search corpus groups --out")
    return rows


def _pairs(arguments: argparse.Namespace, corpus: Corpus, settings: dict[str, Any]) -> None:
    with moving("pairs", len(corpus), arguments.json) as moved:
        found = corpus.pairs(**settings, progress=moved)
    tell_cut(found.effort)

    def rows() -> Iterator[dict[str, Any]]:
        ids = corpus.ids
        for place, same in enumerate(found.same.tolist()):
            if same != place:
                yield _pair(ids[same], ids[place], 1.0, (1.0, 1.0))
        contained = zip(*found.containments(), strict=True) if corpus.recipe.measure == "kmv" else repeat(None)
        columns = (found.pairs.first.tolist(), found.pairs.second.tolist(), found.pairs.similarity.tolist())
        for first, second, similarity, shares in zip(*columns, contained):  # noqa: B905 - one of them may be endless
            yield _pair(ids[first], ids[second], similarity, shares)

    if not arguments.out:
        _print_rows(rows())
        return
    count = write(arguments.out, rows())
    tell(arguments, {"documents": len(corpus), "pairs": count}, f"{many(count, 'pair')} of near-duplicates")


def _hosts(arguments: argparse.Namespace, corpus: Corpus, settings: dict[str, Any], report: LeftOut) -> None:
    with moving("hosts", len(corpus), arguments.json) as moved:
        found = corpus.hosts(arguments.url, **settings, min_share=arguments.min_share, progress=moved)
    if arguments.out:
        found.write(arguments.out)
    else:
        _print_rows(found.rows())
    mirrors = sum(pair.is_mirror for pair in found.pairs)
    tell_hosts(arguments, report, found.without_host, len(corpus), len(found), mirrors)


def _pair(first: str, second: str, similarity: float, shares: tuple[float, float] | None) -> dict[str, Any]:
    """A row of the action pairs. shares: of the first document that the second contains, and the reverse, or None.

    "containment" is the larger share, "contains" the document that contains so much of the other one.
    """
    row: dict[str, Any] = {"first": first, "second": second, "similarity": round(similarity, 4)}
    if shares is None:
        return {**row, "containment": None, "contains": None}
    of_first, of_second = shares
    side = "both" if of_first == of_second else "second" if of_first > of_second else "first"
    return {**row, "containment": round(float(max(shares)), 4), "contains": side}


def _new(arguments: argparse.Namespace, corpus: Corpus, against: Corpus, settings: dict[str, Any]) -> None:
    with moving("new", len(corpus) + len(against), arguments.json) as moved:
        found: Newcomers = corpus.new(against, **settings, progress=moved)
    tell_cut(found.effort)
    if arguments.out:
        found.write(arguments.out)
    else:
        _print_rows(found.documents())
    if arguments.save:
        found.save(arguments.save)
    if arguments.out:
        tell_new(arguments, len(corpus), len(found))


def _print_rows(rows: Iterator[Any]) -> None:
    for row in rows:
        print_json_line(line_of(row))


def _source(arguments: argparse.Namespace, name: str, stack: ExitStack) -> object:
    if not name.startswith(ADDRESSES):
        return name
    url, index = parts_of(name)
    return IndexSource(stack.enter_context(connected(arguments, url)), index)
