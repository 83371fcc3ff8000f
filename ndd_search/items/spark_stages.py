"""What the processes of a Spark cluster compute to group records: functions from Arrow tables to Arrow tables.

Each calls the functions that one machine calls. Rows travel as blocks: a row of `part`, the task that reads it, and
columns of int64 as bytes, so that Spark handles thousands of numbers as one row. Nothing here imports Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.text.tokens import sorted_distinct, starts_of_runs
from ndd_search.corpus.document_batches import Document
from ndd_search.corpus.spark_stages import Batches, Reading
from ndd_search.errors import importing
from ndd_search.items import candidate_pairs as finding
from ndd_search.items.candidate_pairs import Bounds, Entries
from ndd_search.items.fields import Field
from ndd_search.items.grades import Comparison
from ndd_search.items.integer_lists import Places, Ragged
from ndd_search.items.probability_model import probabilities
from ndd_search.items.record_columns import Column, Table, read_table
from ndd_search.items.record_groups import Method, judged, led_by
from ndd_search.items.schema import COUNTED, Schema

if TYPE_CHECKING:
    import pyarrow as pa
else:
    with importing("pyarrow", "records on Spark", "pyarrow", "spark"):
        import pyarrow as pa

TURN = 1 << 56  # above the places of tokens within a value, and above the numbers of joined tokens


@dataclass(frozen=True)
class ReadingRecords(Reading):
    """The values of records: of each field a JSON text, "" for a missing one, and its name if it cannot be read."""

    fields: Mapping[str, Field]
    schema: ClassVar[str] = "fields array<string>, bad array<string>"
    exact: ClassVar[bool] = True

    @property
    def wanted(self) -> list[str]:
        paths = [path for name, field in self.fields.items() for path in field.paths(name)]
        return [*paths, *([self.id] if self.id else [])]

    def columns(self, documents: Sequence[Document]) -> dict[str, pa.Array]:
        read = read_table(self.fields, documents).columns
        texts = [np.array([*map(_written, column.values), ""], object)[column.codes] for column in read.values()]
        names = [np.where(column.unread, name, "") for name, column in read.items()]
        columns = {"fields": texts, "bad": names}
        kind = pa.list_(pa.string())
        return {name: pa.array(list(zip(*rows, strict=True)), kind) for name, rows in columns.items()}


def _written(value: Any) -> str:
    """A value as JSON; equal for equal values, as 0.0 and -0.0 are."""
    members = value if isinstance(value, tuple) else [value]
    plain = [one + 0.0 if isinstance(one, float) else one for one in members]
    return json.dumps(plain if isinstance(value, tuple) else plain[0], default=lambda held: {"": sorted(held)})


def _unchanging(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _set_of(held: dict[str, Any]) -> frozenset[Any]:
    return frozenset(map(_unchanging, held[""]))


def table_of(fields: Mapping[str, Field], texts: pa.Array | pa.ChunkedArray) -> Table:
    """Records from a column of lists of the texts of their fields."""
    columns = {}
    flat = (texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).flatten()
    for place, name in enumerate(fields):
        coded = flat.take(pa.array(np.arange(place, len(flat), len(fields)))).dictionary_encode()
        written = coded.dictionary.to_pylist()
        there = np.array([text != "" for text in written], np.int64)
        codes = (np.cumsum(there) * there - 1)[coded.indices.to_numpy()]
        read = json.loads(f"[{','.join(filter(None, written))}]", object_hook=_set_of)
        values = list(map(_unchanging, read))
        columns[name] = Column(codes, values, np.zeros(len(codes), np.bool_), "")
    return Table(columns, len(texts))


@dataclass(frozen=True, eq=False)
class Stages:
    """The search for candidate pairs, their comparison, and their groups.

    count: of all records. range: records that one task looks at.
    tokens: the common tokens, ascending. numbers: their places in the order in which one machine meets them.
    Raises ValueError for COUNTED records or more if the schema is not learnt: one machine counts their values then, a
    cluster does not.
    """

    schema: Schema
    bounds: Bounds
    count: int
    range: int
    tokens: Places = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Places = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if self.schema.learnt is None and self.count >= COUNTED:
            raise ValueError(
                f"on Spark, {COUNTED:,} records or more need a learnt schema: learn it on one machine, with "
                "Items.learn, from as many of these records as it holds"
            )

    @property
    def _parts(self) -> int:
        """How many parts tokens are divided into; those of each kind follow one another, joined ones last."""
        return 1 + self.count // (2 * self.range)

    @property
    def _sides(self) -> int:
        """How many sides records are divided into: one task compares the pairs of records of two sides."""
        return 1 + int((2 * self.count / self.range) ** 0.5)

    @property
    def joined_from(self) -> int:
        """The first part of joined tokens that are not counted yet."""
        return 3 * self._parts

    def _comparison(self, texts: pa.Array | pa.ChunkedArray) -> Comparison:
        return Comparison(self.schema.fields, table_of(self.schema.fields, texts), self.schema.common)

    def check_copies(self, batches: Batches) -> Batches:
        """Rows of `fields` and the `places` of copies to the `places` of those that are one thing."""
        for batch in batches:
            own = np.arange(batch.num_rows)
            odds = self.schema.log_odds(self.schema.graded(self._comparison(batch.column("fields")), own, own))
            yield batch.select(["places"]).filter(pa.array(odds >= self.schema.bar))

    def enter(self, batches: Batches) -> Batches:
        """Rows of `place` and `fields` to blocks of `token`, `record` and `turn`: field * TURN + place in the value."""
        for batch in batches:
            places, comparison = batch.column("place").to_numpy(), self._comparison(batch.column("fields"))
            entries = []
            for number, (name, of) in enumerate(self.schema.fields.items()):
                codes = comparison.table.columns[name].codes
                across = not self.schema.needs
                hashes = _Hashes(of.shares_tokens(name, across=across))
                lists = Ragged.of(comparison.comparer(name).tokens(across=across), hashes)
                has = np.flatnonzero(codes >= 0)
                at, owner = Ragged(np.arange(len(lists.items)), lists.offsets).taken(codes[has])
                turn = number * TURN + at - lists.offsets[codes[has]][owner]
                entries.append((lists.items[at], places[has][owner], turn))
            token, record, turn = (np.concatenate(column) for column in zip(*entries, strict=True))
            once = finding.held_once(np.unique(token, return_inverse=True)[1], record)
            token, record, turn = token[once], record[once], turn[once]
            yield from blocks(token % self._parts, token=token, record=record, turn=turn).to_batches()

    def count_holders(self, table: pa.Table) -> pa.Table:
        """All entries of some tokens to those that count, with how many records hold the token, `held`.

        Part -1 lists common tokens with the first record that holds each. `held` is 0 for tokens of parts of records.
        """
        token, record, turn = columns_of(table, "token", "record", "turn")
        order = np.lexsort((record, turn // TURN, token))
        token, record, turn = token[order], record[order], turn[order]
        start, number, held = _runs_of(token)
        of = turn // TURN
        looked_up, allowed = finding.joinable(self.schema.fields, self.schema.needs, within=True)
        some = finding.parts_of(Entries(number, record, of), held, looked_up, self.bounds.holders)
        own_part = np.int64(table.column("part")[0].as_py())
        rare = (held > 1) & (held <= self.bounds.holders) & looked_up[of]
        common = (held > self.bounds.holders) & (allowed.max(axis=1) > 0)[of]
        head = start[common[start]]
        at = np.concatenate((np.flatnonzero(rare | common), head))
        none = np.zeros(len(some.token), np.int64)
        more = (some.token * self._parts + own_part, some.record, none, none)
        rows = [np.concatenate((one[at], of)) for one, of in zip((token, record, turn, held), more, strict=True)]
        part = rows[1] // self.range
        part[len(at) - len(head) : len(at)] = -1
        return blocks(part, **dict(zip(("token", "record", "turn", "held"), rows, strict=True)))

    def numbering(self, heads: pa.Table) -> Stages:
        """These stages with numbers of the common tokens. heads: part -1 of `count_holders`."""
        token, record, turn = columns_of(heads, "token", "record", "turn")
        order = np.lexsort((turn % TURN, record, turn // TURN))
        by_token = np.argsort(token)
        return replace(self, tokens=token[by_token], numbers=np.argsort(order)[by_token])

    def choose(self, table: pa.Table) -> pa.Table:
        """All entries of some records to what they look up, and from part `joined_from` to all their joined tokens."""
        token, record, turn, held = columns_of(table, "token", "record", "turn", "held")
        order = np.lexsort((turn, record))
        entries, held = Entries(token[order], record[order], turn[order] // TURN), held[order]
        parts = entries.where(np.flatnonzero(held == 0))
        rare, common = (held > 0) & (held <= self.bounds.holders), held > self.bounds.holders
        direct = finding.rarest(entries.where(np.flatnonzero(rare)), held[rare], self.bounds.tokens)
        few = finding.rarest(entries.where(np.flatnonzero(common)), held[common], self.bounds.tokens)
        numbered = Entries(self.numbers[np.searchsorted(self.tokens, few.token)], few.record, few.field)
        allowed = finding.joinable(self.schema.fields, self.schema.needs, within=True)[1]
        one, _, joined = finding.joined_tokens(numbered, len(self.tokens), allowed)
        to_joined = self.joined_from + joined % (1 + 2 * self.count // self.range)
        to = (direct.token % self._parts, self._parts + parts.token % self._parts, to_joined)
        token = np.concatenate((direct.token, parts.token, joined))
        record = np.concatenate((direct.record, parts.record, few.record[one]))
        return blocks(np.concatenate(to), token=token, record=record)

    def count_joined(self, table: pa.Table) -> pa.Table:
        """All entries of some joined tokens to those that few records hold, with how many do, `held`."""
        token, record = _by_token(table)
        held = _runs_of(token)[2]
        few = (held > 1) & (held <= self.bounds.holders)
        return blocks(record[few] // self.range, token=token[few], record=record[few], held=held[few])

    def choose_joined(self, table: pa.Table) -> pa.Table:
        """All joined tokens of some records to those that they look up."""
        token, record, held = columns_of(table, "token", "record", "held")
        order = np.argsort(token)
        chosen = finding.rarest(Entries(token, record, record).where(order), held[order], self.bounds.tokens)
        return blocks(2 * self._parts + chosen.token % self._parts, token=chosen.token, record=chosen.record)

    def list_holders(self, table: pa.Table) -> pa.Table:
        """All entries of some tokens to lists of their records, `told`, for each part that has one of these records.

        Before each list is the information of its token as a negative number, from -1.
        """
        token, record = _by_token(table)
        start, number, held = _runs_of(token)
        parts = sorted_distinct((record // self.range * len(start) + number)[held > 1])
        told = np.insert(record, start, -1 - finding.information_of(held[start], self.count))
        part, which = np.divmod(parts, max(len(start), 1))
        lists, owner = Ragged(told, np.append(start, len(token)) + np.arange(len(start) + 1)).taken(which)
        return blocks(part[owner], told=lists)

    def meet(self, table: pa.Table) -> pa.Table:
        """All lists with some records to the pairs that are among the best of one of these: first * count + second.

        Those records are numbered evenly, the others oddly: of even ones the best pairs are looked for.
        """
        (told,) = columns_of(table, "told")
        is_record = told >= 0
        token, record = (np.cumsum(~is_record) - 1)[is_record], told[is_record]
        held = np.zeros(self.count, np.bool_)
        held[record] = True
        records = np.flatnonzero(held)
        number = 2 * (np.cumsum(held) - 1) + (np.arange(self.count) // self.range != table.column("part")[0].as_py())
        information = -1 - told[~is_record]
        first, second = finding.meetings(token, number[record], information, 2 * len(records), self.bounds.most, 2)
        first, second = records[first // 2], records[second // 2]
        return blocks(self._tile(self._side(first), self._side(second)), pair=first * self.count + second)

    def _side(self, record: Places) -> Places:
        return record * self._sides // self.count

    def _tile(self, one: Places, other: Places) -> Places:
        """The part of two sides."""
        return np.minimum(one, other) * self._sides + np.maximum(one, other)

    def pack(self, batches: Batches) -> Batches:
        """Records with `place` and `fields` to a table, `records`, for each part that compares pairs with them."""
        for batch in batches:
            sides, every = self._side(batch.column("place").to_numpy()), np.arange(self._sides)
            for side in sorted_distinct(sides):
                with pa.ipc.new_stream(sink := pa.BufferOutputStream(), batch.schema) as stream:
                    stream.write(batch.filter(pa.array(sides == side)))
                tables = pa.array([bytes(sink.getvalue())] * self._sides, pa.binary())
                yield pa.record_batch({"part": pa.array(self._tile(side, every), pa.int32()), "records": tables})

    def judge(self, pairs: pa.Table, records: pa.Table) -> pa.Table:
        """Pairs and their records to `first`, `second` and `odds` above the bar; see `judged`."""
        first, second = np.divmod(sorted_distinct(*columns_of(pairs, "pair")), self.count)
        tables = [pa.ipc.open_stream(one.as_buffer()).read_all() for one in records.column("records")]
        held = pa.concat_tables(tables).sort_by("place")
        places, comparison = held.column("place").to_numpy(), self._comparison(held.column("fields"))
        found, odds = judged(self.schema, comparison, np.searchsorted(places, first), np.searchsorted(places, second))
        return pa.table({"first": places[found.first], "second": places[found.second], "odds": odds})

    def lead(self, method: Method, pairs: pa.Table, records: pa.Table) -> pa.Table:
        """All pairs of some chains, and their records, to `rank` and `leader` of the records that do not lead."""
        pairs, records = pairs.sort_by([("first", "ascending"), ("second", "ascending")]), records.sort_by("place")
        places, comparison = records.column("place").to_numpy(), self._comparison(records.column("fields"))
        odds = pairs.column("odds").to_numpy()
        first, second = (np.searchsorted(places, pairs.column(name).to_numpy()) for name in ("first", "second"))
        given = Pairs(first, second, probabilities(odds + self.schema.bar))
        leader = led_by(method, self.schema, comparison, given, odds)
        led = leader != np.arange(len(places))
        return pa.table({"rank": places[led], "leader": places[leader[led]]})


class _Hashes(dict[Any, int]):
    """A number of 63 bits for each token of some fields, the same in all processes."""

    def __init__(self, fields: str) -> None:
        self._fields = fields

    def __missing__(self, token: Any) -> int:
        digest = blake2b(repr((self._fields, token)).encode(errors="surrogatepass"), digest_size=8).digest()
        self[token] = found = int.from_bytes(digest) >> 1
        return found


def blocks(part: Places, **columns: Places) -> pa.Table:
    """Columns of numbers as a row for each part."""
    short = (part + 1).astype(np.min_scalar_type(int(part.max(initial=0)) + 1))  # sorted by their bytes
    order = np.argsort(short, kind="stable") if (short[1:] < short[:-1]).any() else slice(None)
    start = starts_of_runs(short[order])
    ends = pa.array(8 * np.append(start, len(part)), pa.int32()).buffers()[1]
    arrays = {
        name: pa.Array.from_buffers(pa.binary(), len(start), [None, ends, pa.py_buffer(column[order])])
        for name, column in columns.items()
    }
    return pa.table({"part": pa.array(part[order][start], pa.int32()), **arrays})


def columns_of(table: pa.Table, *names: str) -> list[Places]:
    """The numbers of all blocks."""
    texts = ([np.frombuffer(one.as_buffer(), np.int64) for one in table.column(name)] for name in names)
    return [np.concatenate([np.empty(0, np.int64), *each]) for each in texts]


def _by_token(table: pa.Table) -> tuple[Places, Places]:
    """Tokens, ascending, and the record of each."""
    token, record = columns_of(table, "token", "record")
    order = np.argsort(token)
    return token[order], record[order]


def _runs_of(token: Places) -> tuple[Places, Places, Places]:
    """Where each of ascending tokens starts; of each place the number of its token, and how often that is there."""
    start = starts_of_runs(token)
    sizes = np.diff(start, append=len(token))
    return start, np.repeat(np.arange(len(start)), sizes), np.repeat(sizes, sizes)
