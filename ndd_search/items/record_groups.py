"""The groups of a collection of records, and one merged record for each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ndd_search.core.document_fields import absent_fields, value_of
from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.setting_values import check_one_of
from ndd_search.core.text.printable import many
from ndd_search.corpus.communities import communities, connected
from ndd_search.corpus.document_batches import Document, IndexSource, Pieces, Report
from ndd_search.corpus.write_files import check_kind, write
from ndd_search.errors import InvalidDocument
from ndd_search.items.candidate_pairs import Bounds, Candidates, find_candidates
from ndd_search.items.correlation_clustering import correlation
from ndd_search.items.grades import Comparison
from ndd_search.items.integer_lists import Floats, Places
from ndd_search.items.merged_record import Rules, merge_group
from ndd_search.items.probability_model import UNSURE, probabilities, unsure, unsure_because
from ndd_search.items.record_columns import Table, read_table
from ndd_search.items.schema import Schema
from ndd_search.sources.csv_and_json import STDIN, read_rows

log = logging.getLogger("ndd_search")

Method = Literal["correlation", "leaders", "connected", "communities"]
METHODS = ("correlation", "leaders", "connected", "communities")
_AT_ONCE = 1 << 18
_ENOUGH = 100  # pairs from which their expected errors are worth a warning
_CHAINED = 2  # times as many pairs as count as one thing, from which chains are worth a warning
_CHAINS = "chains join %d pairs of records, of which %d count as one thing: compare method='correlation'"
_LARGEST_KEY = 1 << 62
_MARGIN = 7.0  # log odds below the bar, down to which a pair is kept: it speaks against joining groups


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """The groups of a collection: every record is in one, most are alone in theirs.

    schema:       which was used. table: the records as it reads them.
    records, ids: of all lists, in their order. An id is of its list.
    lists:        of each record the number of its list; int64, shape (n,). names: of the lists.
    leader:       of each record the place of the first one in its group; int64, shape (n,).
    pairs:        the candidate pairs that count as one thing, with their probability. Of records with equal values only
                  the first is a candidate; it is paired with each of the others.
    candidates:   the pairs that were compared, and what was left out.
    unsure:       verdicts about these pairs that have a thin margin, for each of `pairs` that is no copy.
    """

    schema: Schema
    records: Sequence[Document]
    ids: Sequence[str]
    lists: Places
    names: Sequence[str]
    leader: Places
    pairs: Pairs
    candidates: Candidates
    table: Table
    unsure: float

    def __len__(self) -> int:
        """How many groups there are, those of one record included."""
        return len(self.members)

    def __repr__(self) -> str:
        return f"ItemGroups({len(self):,} of {many(len(self.records), 'record')})"

    @property
    def bad(self) -> dict[str, int]:
        """How many values of each field could not be read; they count as missing."""
        return self.table.bad

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """Of each group the places of its records, by the place of the first."""
        found: dict[int, list[int]] = {}
        for place, leader in enumerate(self.leader.tolist()):
            found.setdefault(leader, []).append(place)
        return found

    @cached_property
    def own_ids(self) -> Sequence[str]:
        """An id of each record that no other one has: of several lists, the name of its list stands before it."""
        if len(self.names) < 2:
            return self.ids
        return [f"{self.names[of]}:{name}" for of, name in zip(self.lists.tolist(), self.ids, strict=True)]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield for each record its id, the own id of the first record of its group, and the size of the group.

        Of several lists, a row begins with the name of the record's list.
        """
        for place, leader in enumerate(self.leader.tolist()):
            of = {"list": self.names[self.lists[place]]} if len(self.names) > 1 else {}
            yield {**of, "record": self.ids[place], "group": self.own_ids[leader], "size": len(self.members[leader])}

    def links(self) -> Iterator[dict[str, Any]]:
        """Yield the pairs of a record of the first list and one of the second that are in one group, and how sure.

        Each is the id in the first list, `a`, the id in the second one, `b`, and the probability that they are one
        thing. Raises ValueError unless there are two lists.
        """
        if len(self.names) != 2:
            raise ValueError(f"links are between two lists, got {many(len(self.names), 'list')}")
        pairs = [
            (one, other)
            for members in self.members.values()
            for one in members
            for other in members
            if self.lists[one] < self.lists[other]
        ]
        ends = np.array(pairs, np.int64).reshape(-1, 2)
        graded = self.schema.graded(self.schema.comparison(self.table), ends[:, 0], ends[:, 1])
        sure = probabilities(self.schema.log_odds(graded)).tolist()
        for (one, other), probability in zip(pairs, sure, strict=True):
            yield {"a": self.ids[one], "b": self.ids[other], "probability": round(probability, 6)}

    def write(self, path: str | Path, *, links: bool = False) -> int:
        """Write `rows`, or `links`, as .parquet, .jsonl or .csv. Returns how many."""
        return write(path, self.links() if links else self.rows())

    def merged_records(self, rules: Rules | None = None) -> Iterator[dict[str, Any]]:
        """Yield one record for each group: see ndd_search.items.merged_record."""
        for name, rule in (rules or {}).items():
            for path in {name, rule.partition(":")[2].partition("=")[0]} - {"", *self.schema.fields}:
                if self.records and all(value_of(record, path) is None for record in self.records):
                    log.warning("the rule for %s has no effect: no record has a field %s", name, path)
        for members in self.members.values():
            yield merge_group(
                self.schema.fields, [self.records[i] for i in members], [self.own_ids[i] for i in members], rules or {}
            )

    def merged(self, path: str | Path, rules: Rules | None = None) -> int:
        """Write `merged_records` as .jsonl, also with .gz. Returns how many. Raises ValueError for another kind."""
        check_lines(path)
        return write(path, self.merged_records(rules))


def check_lines(path: str | Path) -> None:
    """Raise ValueError unless a file can hold merged records, whose fields are nested."""
    if check_kind(path) != "jsonl":
        raise ValueError(f"{path}: merged records have nested fields, expected a name that ends in .jsonl or .jsonl.gz")


def group_items(
    schema: Schema,
    sources: Sequence[Any],
    method: Method,
    id: str | None,
    bounds: Bounds | None = None,
    *,
    across: bool = False,
    report: Report = log.warning,
) -> ItemGroups:
    """Find the records of some lists that are one thing. Each source is a list.

    across: only records of different lists are compared. report: see read_records.
    method: "correlation": groups whose members agree with one another on the whole.
            "leaders": each record is one thing with the first of its group. "connected": a chain of pairs joins them.
            "communities": the parts of chains with many pairs inside; needs networkx.
    Raises InvalidDocument if no record of a list has a value in any field of the schema.
    A record without an id in the field `id`, or with the id of an earlier one of its list, is reported and left out.
    """
    check_one_of("method", method, METHODS)
    records, ids, lists = read_records(sources, id, report)
    comparison = schema.comparison(read_table(schema.fields, records))
    table, columns = comparison.table, comparison.table.columns.values()
    names = _names(sources)
    for number, name in enumerate(names):
        held = np.flatnonzero(lists == number)
        if len(held) and not any((column.codes[held] >= 0).any() or column.unread[held].any() for column in columns):
            of = f"{many(len(held), 'record')}{f' of list {name}' if len(names) > 1 else ''}"
            what = f"none of them has a value in {', '.join(schema.fields)}"
            raise InvalidDocument(of, what, "name the fields of the records: Name(source=FIELD)")
    if records and (absent := absent_fields(schema.paths, records)):
        log.warning("no record has a field %s: check its name", ", ".join(absent))
    for name, count in table.bad.items():
        log.warning(
            "%d values of %s could not be read and count as missing: %s", count, name, table.columns[name].example
        )
    own = np.arange(len(records))
    apart = lists if across else own
    same, surely = (own, own) if across else _copies(schema, comparison)
    limits = bounds or Bounds.of(len(records))
    candidates = find_candidates(comparison, limits, same == own, needs=schema.needs)
    candidates = candidates.where(apart[candidates.first] != apart[candidates.second])
    pairs, odds = judged(schema, comparison, candidates.first, candidates.second)
    first = led_by(method, schema, comparison, pairs, odds, apart)
    leader = first[same]
    found = pairs.where(odds >= 0)
    if method == "connected":
        sizes = np.bincount(leader[same == own])
        if (joined := int((sizes * (sizes - 1) // 2).sum())) > _CHAINED * max(len(found), _ENOUGH):
            log.warning(_CHAINS, joined, len(found))
    copies = np.flatnonzero(same != own)
    every = Pairs(
        np.concatenate((found.first, same[copies])),
        np.concatenate((found.second, copies)),
        np.concatenate((found.similarity, surely[copies])),
    )
    doubt = unsure(odds)
    if schema.learnt is not None and doubt > UNSURE >= schema.learnt.unsure and len(found) > _ENOUGH:
        log.warning("%s", unsure_because(doubt))
    return ItemGroups(schema, records, ids, lists, names, leader, every, candidates, table, doubt)


def _names(sources: Sequence[Any]) -> list[str]:
    """Return a name of each list: that of its file without the endings, or its number, from 1."""
    paths = [Path(source).name.partition(".")[0] if isinstance(source, str | Path) else "" for source in sources]
    distinct = len(set(paths)) == len(paths) and all(name.strip("-*?[]") for name in paths)
    return paths if distinct else [str(number) for number in range(1, len(sources) + 1)]


def _copies(schema: Schema, comparison: Comparison) -> tuple[Places, Floats]:
    """Return of each record the first one with equal values, and the probability that they are one thing.

    A record whose values say too little, such as a common name alone, is its own first one.
    """
    count = comparison.table.records
    key, bound = np.zeros(count, np.int64), 1
    for column in comparison.table.columns.values():
        size = len(column.values) + 1
        if bound * size > _LARGEST_KEY:
            present, key = np.unique(key, return_inverse=True)
            bound = len(present)
        key, bound = key * size + column.codes + 1, bound * size
    _, at, which, times = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    odds, copied = np.full(len(at), -np.inf), np.flatnonzero(times > 1)
    if len(copied):
        odds[copied] = schema.log_odds(schema.graded(comparison, at[copied], at[copied]))
    which = which.reshape(count)
    return np.where((odds >= schema.bar)[which], at[which], np.arange(count)), probabilities(odds)[which]


def led_by(
    method: Method, schema: Schema, comparison: Comparison, pairs: Pairs, odds: Floats, apart: Places | None = None
) -> Places:
    """Return of each record the first one of its group. pairs, odds: see `correlation`.

    apart: of each record a number; records with equal ones are not compared.
    Of equal evidence, what counts depends on the values of the records, not on their order.
    """
    count = comparison.table.records

    def evidence(a: Places, b: Places) -> Floats:
        found = schema.evidence(comparison, a, b, schema.graded(comparison, a, b))
        alone = schema.of_lists(comparison.table, a, b)
        return found if apart is None else np.where(apart[a] == apart[b], alone, found)

    if method == "correlation":
        order = comparison.table.order
        rank = np.argsort(order)
        ends = np.sort(rank[np.stack((pairs.first, pairs.second))], axis=0)
        ranked = Pairs(ends[0], ends[1], pairs.similarity)
        group = correlation(count, ranked, odds, lambda a, b: evidence(*np.sort(order[np.stack((a, b))], axis=0)))[rank]
        leader = np.full(count, count)
        np.minimum.at(leader, group, np.arange(count))
        return leader[group]
    found, own = pairs.where(odds >= 0), np.arange(count)
    if method == "leaders":
        return choose_leaders(count, found)[0]
    return connected(count, found, own) if method == "connected" else communities(count, found, own, extra="items")


def judged(schema: Schema, comparison: Comparison, all_first: Places, all_second: Places) -> tuple[Pairs, Floats]:
    """Return pairs of records with their probability, and their log odds above the bar; clear negatives are left out.

    Vetoes are kept: they hold for whole groups.
    """
    vetoes = any(field.veto for field in schema.fields.values())
    bar = -np.inf if vetoes else schema.bar - _MARGIN
    parts = []
    for start in range(0, max(len(all_first), 1), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        first, second, graded = schema.screened(comparison, all_first[some], all_second[some], bar)
        above = schema.evidence(comparison, first, second, graded)
        kept = (above >= -_MARGIN) | np.isneginf(above)
        parts.append((first[kept], second[kept], above[kept]))
    first, second, above = map(np.concatenate, zip(*parts, strict=True))
    return Pairs(first, second, probabilities(above + schema.bar)), above


def records_of(given: Any) -> list[Any]:
    """Return the records of one source, or of an iterable of records. Raises TypeError for paths among records."""
    if isinstance(given, str | Path | IndexSource) or hasattr(given, "__arrow_c_stream__"):
        return list(read_records([given])[0])
    records = list(given)
    for one in records[:1]:
        if isinstance(one, str | Path):
            raise TypeError(f"a record is a mapping or an object, got {one!r}; name several files by one pattern")
    return records


def read_records(
    sources: Sequence[Any], id: str | None = None, report: Report = log.warning
) -> tuple[list[Document], list[str], Places]:
    """Return the records of some lists, their ids, and of each the number of its list. An id is of its list.

    sources: a list each; "-" is standard input. report: told what is left out: records without an id, or with the id of
    an earlier one of their list.
    Numbers keep all their digits, as merged records are written from them.
    """
    records: list[Document] = []
    ids: list[str] = []
    lists: list[int] = []
    for number, source in enumerate(sources):
        rows = (row for _, row in read_rows(STDIN, report, report, True)) if source == "-" else source
        for batch in Pieces.of([rows]).kept(report, id, exact=True):
            records += batch.documents
            ids += map(str, batch.ids)
            lists += [number] * len(batch.ids)
    return records, ids, np.array(lists, np.int64)
