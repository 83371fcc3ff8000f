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
such files, a folder of texts, HTML and mails, the address of an index, or "-" for standard input. With --set budget=N,
documents that many others resemble are compared with N of them at most.

The exit code is 3 when lines, documents or files were left out: standard error names them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ndd_search.cli import DONE, NO, PARTLY, LeftOut, corpus_compare, corpus_page, help_of
from ndd_search.cli.cluster import ADDRESSES, add_cluster, connected, parts_of, warn_of_undone
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
from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import collapse_options
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Kind, Whole
from ndd_search.core.text.printable import many, safe
from ndd_search.corpus.collection import Corpus, Method
from ndd_search.corpus.collection_groups import Groups
from ndd_search.corpus.collection_pairs import BUDGET, Effort
from ndd_search.corpus.document_batches import IndexSource, Pieces, Report
from ndd_search.corpus.group_marks import mark
from ndd_search.corpus.groups_report import write_report
from ndd_search.corpus.sketch_store import check_saved
from ndd_search.corpus.write_files import check_kind, line_of
from ndd_search.errors import InvalidDocument
from ndd_search.sources.csv_and_json import STDIN, read_rows

_SETTINGS: dict[str, Kind] = {  # that all actions have
    "guards": PAGE["guards"],
    "preset": PAGE["preset"],
    "budget": Whole(1),  # documents that are met for one document at most
}

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
        action.add_argument("sources", nargs="+", metavar="SOURCE", help='files, patterns, folders, URL/INDEX, or "-"')
        action.add_argument("--text", type=comma_list, required=True, help="the fields that hold the text, with commas")
        add_shared(action, "--id")
        action.add_argument("--save", metavar="FILE", help="write the sketches as .parquet, for --against")
        action.add_argument(
            "--out", metavar="FILE", help="write to this file, .parquet, .jsonl or .csv; with --spark a folder"
        )
        add_set(action, _SETTINGS | {one: PAGE[one] for one in _OF_ACTIONS.get(name, ())})
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
    report, is_new = LeftOut(), arguments.action == "new"
    with ExitStack() as stack:
        reader: Any = _Here(arguments, stack)
        if arguments.spark:
            from ndd_search.cli.corpus_spark import OnSpark

            reader = OnSpark(arguments, stack)
        against = reader.load(arguments.against) if is_new and not _is_first_run(arguments) else None
        corpus = reader.read(_reading_of(arguments, None if against is None else against.recipe), report)
        if len(corpus):
            _check_fields(arguments, corpus.has_value)
        found = _found(arguments, corpus, against)
        _tell_cut(found.effort)
        _TOLD.get(arguments.action, _tell_groups)(arguments, corpus, found, report)
        if arguments.save:
            (found if is_new else corpus).save(arguments.save)
    return report.code or (DONE if len(corpus) or is_new else _empty(arguments))


def _reading_of(arguments: argparse.Namespace, recipe: Recipe | None) -> dict[str, Any]:
    """The arguments of Corpus.read and SparkCorpus.read that a command gives. recipe: unless the command names one."""
    return {
        "text": arguments.text,
        "recipe": arguments.recipe or recipe,
        "fields": _fields_of(arguments),
        "numbers": _options_of(arguments).same_numbers,
        "preset": _settings_of(arguments).get("preset"),
    }


class _Here:
    """Reads collections on this machine."""

    def __init__(self, arguments: argparse.Namespace, stack: ExitStack) -> None:
        self._arguments, self._stack = arguments, stack

    def load(self, path: str) -> Corpus:
        return Corpus.load(path)

    def read(self, reading: dict[str, Any], report: Report) -> Corpus:
        sources = [_source(self._arguments, name, self._stack, report) for name in self._arguments.sources]
        with progress("sketches", None, self._arguments.json) as move:
            return Corpus.read(*sources, **reading, id=self._arguments.id, report=report, progress=move)


def _found(arguments: argparse.Namespace, corpus: Any, against: Any) -> Any:
    """What an action finds in a Corpus or SparkCorpus. against: an earlier one."""
    settings, options = _settings_of(arguments), _options_of(arguments)
    quiet = arguments.json or bool(arguments.spark)
    with moving(arguments.action, None if quiet else len(corpus) + len(against or ()), quiet) as moved:
        if not arguments.spark:
            settings["progress"] = moved
        if arguments.action == "pairs":
            return corpus.pairs(**settings)
        if arguments.action == "new":
            return corpus.new(against, **settings)
        if arguments.action == "hosts":
            return corpus.hosts(arguments.url, min_share=arguments.min_share, **settings)
        origins = {"origins": options.origins} if options.origins else {}
        return corpus.groups(method=arguments.method, keep=options.keep, **origins, **settings)


def _check(arguments: argparse.Namespace) -> None:
    """Raise ValueError for arguments that do not go together, before anything is read."""
    if arguments.sources.count("-") > (0 if arguments.spark else 1):
        raise ValueError('"-" is standard input, which can be read once, on one machine: name a file')
    if arguments.store and not arguments.spark:
        raise ValueError("--store goes with --spark: leave it out")
    if arguments.out:
        check_kind(arguments.out)
    files = Pieces.of(name for name in arguments.sources if name != "-" and not name.startswith(ADDRESSES))
    report_to = getattr(arguments, "report", None)
    files.check_outputs(arguments.out, arguments.save, report_to, folders=bool(arguments.spark))
    if arguments.save:
        check_saved(arguments.save)
    if arguments.action == "new":  # --save may replace the file of --against
        Pieces((Path(arguments.against),)).check_outputs(arguments.out, folders=bool(arguments.spark))


def _empty(arguments: argparse.Namespace) -> int:
    names = ["standard input" if one == str(STDIN) else one for one in arguments.sources]
    warn(f"{', '.join(names)} holds no document")
    return NO


def _mark(arguments: argparse.Namespace) -> int:
    left_out = LeftOut()
    rows = rows_of_groups(arguments.groups, left_out)
    with ExitStack() as stack:
        target = _source(arguments, arguments.index, stack, left_out)
        if not isinstance(target, IndexSource):
            raise ValueError(f"{arguments.index} is no address of an index: expected http[s]://HOST[:PORT]/INDEX")
        with progress("marks", None, arguments.json) as move:
            tally = mark(
                target.client, target.index, rows, field=arguments.field, rate=arguments.rate, on_progress=move
            )
    warn_of_undone(tally)
    tell(arguments, {"written": tally.written}, f"{many(tally.written, 'document')} written")
    return PARTLY if tally.refused or tally.left else left_out.code


def _tell_groups(arguments: argparse.Namespace, corpus: Any, groups: Any, _: Report) -> None:
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
        groups.write(arguments.out, *filter(None, [arguments.fields]))
    if arguments.report:
        write_report(groups, arguments.report)
    if arguments.out or arguments.action == "groups":
        copies = facts["near_duplicates"]
        said = "1 is a near-duplicate" if copies == 1 else f"{copies:,} are near-duplicates"
        told = [f"{many(len(corpus), 'document')} in {many(facts['groups'], 'group')}; {said} of another one"]
        if not arguments.spark:
            told += _largest(groups)
        if getattr(arguments, "since", None):
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


def _tell_pairs(arguments: argparse.Namespace, corpus: Any, found: Any, _: Report) -> None:
    if not arguments.out:
        _print_rows(found.rows())
        return
    count = found.write(arguments.out)
    tell(arguments, {"documents": len(corpus), "pairs": count}, f"{many(count, 'pair')} of near-duplicates")


def _tell_hosts(arguments: argparse.Namespace, corpus: Any, found: Any, report: Report) -> None:
    if found.without_host:
        report(f"{many(found.without_host, 'document')} left out, whose {arguments.url!r} names no host")
    if not arguments.out:
        _print_rows(found.rows())
        return
    facts = {"documents": len(corpus), "pairs": found.write(arguments.out), "mirrors": found.mirrors}
    sentence = f"{many(facts['pairs'], 'pair')} of hosts with the same pages, {many(facts['mirrors'], 'mirror')}"
    tell(arguments, facts, sentence)


def _tell_new(arguments: argparse.Namespace, corpus: Any, found: Any, _: Report) -> None:
    if not arguments.out:
        _print_rows(found.documents())
        return
    found.write(arguments.out)
    told = f"{len(found):,} of {many(len(corpus), 'document')} are new"
    tell(arguments, {"documents": len(corpus), "new": len(found)}, told)


_TOLD = {"pairs": _tell_pairs, "hosts": _tell_hosts, "new": _tell_new}


def _print_rows(rows: Iterable[Any]) -> None:
    for row in rows:
        print_json_line(line_of(row))


def _source(arguments: argparse.Namespace, name: str, stack: ExitStack, report: Report) -> object:
    if name == "-":
        return [document for _, document in read_rows(STDIN, report, report, exact=True)]
    if not name.startswith(ADDRESSES):
        return name
    url, index = parts_of(name)
    return IndexSource(stack.enter_context(connected(arguments, url)), index)


def _is_first_run(arguments: argparse.Namespace) -> bool:
    """Whether nothing is known yet: --save will write the file that --against names. It is told."""
    against, save = (Path(name).resolve() for name in (arguments.against, arguments.save or ""))
    is_first = against == save and "://" not in arguments.against and not save.exists()
    if is_first:
        warn(f"{arguments.against} does not exist yet: nothing is known before this run, which writes it")
    return is_first


def _fields_of(arguments: argparse.Namespace) -> list[str]:
    """The fields of documents whose values a command keeps."""
    fields = [*_options_of(arguments).document_fields, *getattr(arguments, "fields", [])]
    return list(dict.fromkeys([*fields, *([arguments.url] if arguments.action == "hosts" else [])]))


def _check_fields(arguments: argparse.Namespace, has_value: Callable[[str], bool]) -> None:
    """Raise InvalidDocument for a field that an option names and no document has; a few new ones may lack any.

    has_value: whether a document has a value in a field.
    """
    for name in _fields_of(arguments) if arguments.action != "new" else ():
        if not has_value(name):
            what = f"no document has a value in the field {name!r}, which an option names"
            raise InvalidDocument(", ".join(arguments.sources), what, "check its name")


def _options_of(arguments: argparse.Namespace) -> CollapseOptions:
    """The options of a search that --set gives."""
    return collapse_options(**{name: value for name, value in arguments.set if name != "budget"})


def _settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of a search that all actions have."""
    settings = {name: value for name, value in arguments.set if name in _SETTINGS}
    return {**settings, "min_similarity": arguments.min_similarity}


def _tell_cut(effort: Effort) -> None:
    """Warn if the budget left documents out."""
    if effort.cut:
        warn(
            f"{many(effort.cut, 'document')} not met because others had used up their budget, so pairs may be missed: "
            f"raise it, --set budget={2 * BUDGET}"
        )
