"""Find the records of several fields that are one thing: places, products, people, offers.

examples:
  ndd-search items learn places.csv --out places.toml --report places.html
  ndd-search items learn places.csv --out places.toml --ask
  ndd-search items groups places.csv --schema places.toml --out groups.jsonl
  ndd-search items link ours.csv theirs.csv --schema places.toml --out links.csv
  ndd-search items groups "all/*.csv" --schema places.toml --spark yarn --store hdfs:///tmp/ndd --out groups.parquet
  ndd-search items merge places.csv --schema places.toml --out merged.jsonl --rule name=longest
  ndd-search items compare '{"name": "St. Finbarr"}' other.json --schema places.toml

A source is a .parquet, .jsonl, .csv or .tsv file (the text ones also with .gz), a pattern of such files, or "-" for
standard input. Each source is a list with ids of its own; `link` compares the records of two lists, but not those of
one list, and writes a row for each link: the ids, a and b, and the probability. Without --out, rows go to standard
output. `learn` guesses the kind of each field, unless --schema names a file with the fields, and learns from the
records themselves which agreement says how much. --ask asks on the terminal about the ten pairs whose answer matters
most, and moves the bar to fit the answers; --labels names a file of known pairs, which do the same: lines {"a": ID,
"b": ID, "label": 1 or 0}; of two lists, a is an id of the first one.

Rules of --rule FIELD=RULE: frequent, longest, first, central, union, newest:FIELD, oldest:FIELD, preferred:FIELD=a,b.

The exit code of compare is 1 when the two records are different things. That of the other actions is 3 when records
were left out: standard error names them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ndd_search.cli import DONE, NO, LeftOut
from ndd_search.cli.output import add_shared, print_json_line, say, tell, warn
from ndd_search.core.text.printable import many
from ndd_search.corpus.document_batches import Pieces
from ndd_search.corpus.write_files import check_kind, line_of
from ndd_search.errors import InvalidDocument
from ndd_search.items.items import Items, Question
from ndd_search.items.merged_record import check_rule
from ndd_search.items.record_groups import METHODS, ItemGroups, check_lines, group_items, read_records
from ndd_search.items.schema_report import write_report
from ndd_search.search.settings_file import check_toml
from ndd_search.sources.csv_and_json import read_rows
from ndd_search.sources.text_files import read_record

_SUMMARIES = {
    "learn": "learn a schema from records",
    "groups": "find the group of every record",
    "link": "find the records of two lists that are one thing",
    "merge": "write one merged record for each group",
    "compare": "compare two records field by field",
}

_WRITTEN = {  # by --out
    "learn": "the schema, as .toml",
    "groups": "the group of each record, as .parquet, .jsonl or .csv; with --spark a folder",
    "link": "the links, as .parquet, .jsonl or .csv",
    "merge": "the merged records, as .jsonl",
}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, summary in _SUMMARIES.items():
        action = actions.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        if name == "compare":
            action.add_argument("records", nargs=2, metavar="RECORD", help="a JSON object, or a .json file with one")
        else:
            action.add_argument("sources", nargs="+", metavar="SOURCE", help="files or patterns of files")
            add_shared(action, "--id")
            action.add_argument("--out", metavar="FILE", required=name == "learn", help=_WRITTEN[name])
            action.add_argument("--report", metavar="FILE", help="write a report as .html")
        action.add_argument("--schema", metavar="FILE", required=name != "learn", help="what learn has written")
        if name == "learn":
            action.add_argument("--labels", metavar="FILE", help="known pairs, as JSON lines")
            action.add_argument("--ask", action="store_true", help="ask about the ten pairs whose answer matters most")
        if name in ("groups", "link", "merge"):
            action.add_argument("--method", choices=METHODS, default="correlation", help="how pairs become groups")
        if name == "groups":
            add_shared(action, "--store", "--spark")
        if name == "merge":
            action.add_argument("--rule", action="append", default=[], metavar="FIELD=RULE", help="which value is kept")
        add_shared(action, "--json")


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "compare":
        return _compare(arguments)
    labels = getattr(arguments, "labels", None)
    folders = bool(getattr(arguments, "spark", None))
    if getattr(arguments, "store", None) and not folders:
        raise ValueError("--store goes with --spark: leave it out")
    _check_sources(arguments.action, arguments.sources)
    if arguments.out and not folders:
        checks: dict[str, Callable[[Path], object]] = {"learn": check_toml, "merge": check_lines}
        checks.get(arguments.action, check_kind)(Path(arguments.out))
    files = Pieces.of([*(one for one in arguments.sources if one != "-"), *([labels] if labels else [])])
    files.check_outputs(arguments.out, arguments.report, folders=folders)
    if folders:
        from ndd_search.cli import corpus_spark

        return corpus_spark.run_items(arguments)
    if arguments.action == "learn":
        return _learn(arguments)
    rules = dict(_rule(text) for text in getattr(arguments, "rule", []))
    schema, left_out, link = Items.read(arguments.schema), LeftOut(), arguments.action == "link"
    sources, method = arguments.sources, arguments.method
    groups = group_items(schema, sources, method, arguments.id, across=link, report=left_out)
    if arguments.action == "merge" and arguments.out:
        groups.merged(arguments.out, rules)
    elif arguments.out:
        groups.write(arguments.out, links=link)
    else:
        merged = groups.merged_records(rules) if arguments.action == "merge" else None
        for row in merged or (groups.links() if link else groups.rows()):
            print_json_line(line_of(row))
    if arguments.report:
        write_report(groups, arguments.report)
    if arguments.out:
        _tell(arguments, groups)
    return left_out.code


def _check_sources(action: str, sources: Sequence[str]) -> None:
    if action == "link" and len(sources) != 2:
        raise ValueError(f"link takes two lists, got {len(sources)}: name two files or patterns of files")
    if sources.count("-") > 1:
        raise ValueError('"-" is standard input, which can be one list only: name a file for the other one')


def _learn(arguments: argparse.Namespace) -> int:
    if arguments.ask and arguments.json:
        raise ValueError("--ask prints its questions on standard output, so it cannot be used with --json")
    if arguments.ask and "-" in arguments.sources:
        raise ValueError('--ask reads answers from standard input, which is a list: name a file instead of "-"')
    left_out = LeftOut()
    records, ids, lists = read_records(arguments.sources, arguments.id, left_out)
    if not records:
        raise InvalidDocument(", ".join(arguments.sources), "there are no records", "name another file")
    start = Items.read(arguments.schema, learnt=False) if arguments.schema else None
    known: list[dict[str, Any]] = [{} for _ in arguments.sources]
    for number, name, record in zip(lists.tolist(), ids, records, strict=True):
        known[number][name] = record
    labels = _labels(arguments.labels, known) if arguments.labels else []
    schema = Items.learn(records, start)
    reasons = schema.reasons
    schema = schema.answered(labels) if labels else schema
    if arguments.ask:
        schema = schema.answered(_answers(schema.questions(records)))
    assert schema.learnt
    for doubt in schema.learnt.doubts:
        warn(doubt)
    schema.write(arguments.out)
    if arguments.report:
        write_report(schema.groups(*(list(one.values()) for one in known), id=arguments.id), arguments.report)
    kinds = {name: field.kind for name, field in schema.fields.items()}
    width = max(map(len, reasons), default=0)
    table = [f"{name:{width}}  {kind:8}  {why}" for name, (kind, why) in reasons.items()]
    fields = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
    facts = {"records": len(records), "schema": schema.id, "fields": kinds, "basis": schema.learnt.basis}
    sentences = f"learnt from {many(len(records), 'record')}: {fields}", schema.learnt.basis
    tell(arguments, facts, "\n".join([*table, *sentences]))
    return left_out.code


def _answers(questions: Sequence[Question]) -> Iterator[tuple[Any, Any, bool]]:
    """Print the pairs, and yield those with an answer as they are read from standard input."""
    for number, question in enumerate(questions, 1):
        say(f"\n{number} of {len(questions)}; {many(question.pairs, 'pair')} with the same grades")
        for record in (question.first, question.second):
            say("  " + ", ".join(f"{name}: {value}" for name, value in record.items()))
        for line in question.similarity.explain().splitlines():
            say(f"    {line}")
        say("One thing? y yes, n no, anything else to skip, q to stop")
        answer = sys.stdin.readline().strip().lower()
        if answer == "q":
            return
        if answer in ("y", "n"):
            yield question.first, question.second, answer == "y"


def _labels(path: str, lists: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any, bool]]:
    """Read labelled pairs; pairs with another label than 0 and 1 are left out, as in labelled collections.

    lists: the records of each list by id. "a" is looked up from the first list on, "b" from the last one back.
    Raises InvalidDocument for a pair of unknown records, or a file without pairs.
    """
    found = []
    problems: list[str] = []
    for number, pair in read_rows(Path(path), problems.append, problems.append):
        if str(pair.get("label")) not in ("0", "1"):
            continue
        ends = []
        for end, order in (("a", lists), ("b", lists[::-1])):
            name = str(pair.get(end))
            if not (holding := [records for records in order if name in records]):
                what = f"line {number} names the record {pair.get(end)!r}, which the source does not hold"
                raise InvalidDocument(path, what, "use the ids of the source; --id names their field")
            ends.append(holding[0][name])
        found.append((ends[0], ends[1], str(pair["label"]) == "1"))
    if problems or not found:
        what = problems[0] if problems else "it holds no labelled pairs"
        raise InvalidDocument(path, what, 'write lines such as {"a": "1", "b": "7", "label": 1}')
    return found


def _compare(arguments: argparse.Namespace) -> int:
    a, b = (read_record(text) for text in arguments.records)
    found = Items.read(arguments.schema).similarity(a, b)
    fields = {one.name: {"similarity": one.similarity, "evidence": round(one.evidence, 3)} for one in found.fields}
    facts = {"match": found.is_match, "probability": found.probability, "fields": fields}
    tell(arguments, facts, found.explain())
    return DONE if found.is_match else NO


def _rule(text: str) -> tuple[str, str]:
    name, equals, rule = text.partition("=")
    if not equals:
        raise ValueError(f"--rule is FIELD=RULE, got {text!r}")
    check_rule(name, rule)
    return name, rule


def _tell(arguments: argparse.Namespace, groups: ItemGroups) -> None:
    facts: dict[str, Any] = {"records": len(groups.records), "groups": len(groups), "pairs": len(groups.candidates)}
    told = f"{many(len(groups.records), 'record')} of {many(len(groups), 'different thing')}"
    facts["unreadable"] = groups.bad
    tell(arguments, facts, f"{told}; {many(len(groups.candidates), 'pair')} compared")
