"""What the processes of a Spark cluster compute, a partition at a time: functions from Arrow batches to Arrow batches.

Each calls the function that does the same on one machine. Nothing here imports Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.similar_pairs import Pairs, as_compared
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.choose_copy import sort_key
from ndd_search.core.sketching.fits_text import fingerprint
from ndd_search.corpus.collection_pairs import Search
from ndd_search.corpus.communities import EACH, communities, connected
from ndd_search.corpus.document_batches import Document, Pieces, id_of
from ndd_search.corpus.guard_columns import Guards, shingles_of
from ndd_search.corpus.read_collection import Fields
from ndd_search.corpus.sketch_store import sketches_of
from ndd_search.corpus.spark_index import SparkIndex
from ndd_search.corpus.spark_parts import Parts
from ndd_search.corpus.write_files import line_of
from ndd_search.errors import importing

if TYPE_CHECKING:
    import pyarrow as pa
else:
    with importing("pyarrow", "a corpus on Spark", "pyarrow", "corpus"):
        import pyarrow as pa

Batches = Iterator["pa.RecordBatch"]
READ = "part int, row long, id string, said string"
PARTITION = "ndd partition"
PAIRING = "rank long, sketch array<int>, code long, time double"
ENTERED = f"{PAIRING}, part long"
MET = "first long, second long, similarity double, effort array<long>"
PREPARED = (
    "place long, id string, sketch array<int>, fingerprint string, code long, time double, same_key binary, "
    "key array<double>"
)
_ROWS = 50_000  # of a batch that is handed back


@dataclass(frozen=True)
class Reading:
    """How documents are read.

    id: the field of the id. None for "_id" or "id", else the document's place, which is "" until places are known.
    """

    id: str | None
    schema: ClassVar[str] = ""  # of `columns`
    exact: ClassVar[bool] = False  # see Pieces.read

    @property
    def wanted(self) -> list[str] | None:
        """The fields that are read, None for all."""
        return None

    def columns(self, documents: Sequence[Document]) -> dict[str, pa.Array]:
        """What is kept of documents."""
        return {}

    def read_rows(self, batches: Batches) -> Batches:
        """Read the documents of a table that has a column PARTITION with the number of the partition."""
        row = 0
        for batch in batches:
            documents = batch.drop_columns(PARTITION).to_pylist()
            part = batch.column(PARTITION)[0].as_py() if documents else 0
            yield self._rows(part, row, documents, [id_of(document, self.id) for document in documents], [])
            row += len(documents)

    def read_sources(self, tasks: Sequence[str | SparkIndex], batches: Batches) -> Batches:
        """Read the documents of paths and slices of an index, `tasks`, whose numbers are in rows of `part`."""
        begins = [not (isinstance(one, SparkIndex) and one.slice and one.slice[1]) for one in tasks]
        sources = np.cumsum(begins) - 1  # the number of the source of each task
        for part in (part for batch in batches for part in batch.column("part").to_pylist()):
            said: list[str] = []
            row, task = 0, tasks[part]
            prefix = f"{sources[part]}:" if sources[-1] else ""
            with task.opened() if isinstance(task, SparkIndex) else nullcontext(task) as source:
                read = Pieces.of([source]).read(said.append, self.id, self.wanted, exact=self.exact, prefix=prefix)
                for batch in read:
                    yield self._rows(part, row, batch.documents, batch.ids, said)
                    row += len(batch.documents)
            yield self._rows(part, row, [], [], said)

    def _rows(
        self, part: int, row: int, documents: Sequence[Document], ids: Sequence[str | None], said: list[str]
    ) -> pa.RecordBatch:
        """Rows of READ and `columns`; sentences have rows of their own, and are taken out of the list."""
        count, none = len(documents), [None] * len(said)
        columns = {
            "part": [part] * (count + len(said)),
            "row": [*range(row, row + count), *none],
            "id": [*ids, *none],
            "said": [*[None] * count, *said],
        }
        rows = _batch(columns, (pa.int32(), pa.int64(), pa.string(), pa.string()))
        said.clear()
        for name, kept in self.columns(documents).items():
            rows = rows.append_column(name, pa.concat_arrays([kept, pa.nulls(len(none), kept.type)]))
        return rows


@dataclass(frozen=True)
class ReadingWhole(Reading):
    """Documents as JSON, with all fields."""

    schema: ClassVar[str] = "document string"
    exact: ClassVar[bool] = True

    def columns(self, documents: Sequence[Document]) -> dict[str, pa.Array]:
        return {"document": pa.array(map(line_of, documents), pa.string())}


@dataclass(frozen=True)
class ReadingTexts(Reading):
    """The sketches of documents."""

    fields: Fields
    schema: ClassVar[str] = "sketch array<int>, fields string"

    @property
    def wanted(self) -> list[str] | None:
        return self.fields.wanted(self.id)

    def columns(self, documents: Sequence[Document]) -> dict[str, pa.Array]:
        rows = self.fields.sketched(documents, self.fields.texts(documents))
        kept = zip(*rows.columns.values(), strict=True) if rows.columns else ((),) * len(documents)
        return {
            "sketch": pa.ListArray.from_arrays(pa.array(rows.sketches.offsets, pa.int32()), rows.sketches.values),
            "fields": pa.array([_as_json(rows.columns, values) for values in kept], pa.string()),
        }


def _as_json(names: Iterable[str], values: Sequence[Any]) -> str | None:
    fields = dict(zip(names, values, strict=True))
    return json.dumps(fields, default=str, ensure_ascii=False) if fields else None


@dataclass(frozen=True)
class Preparing:
    """Which documents may pair, and their order: see CollapseOptions.

    names: of the fields that are kept. text: the fields that were sketched, for fingerprints; empty for none.
    """

    options: CollapseOptions
    names: tuple[str, ...]
    search: Search
    text: tuple[str, ...]

    def prepare(self, batches: Batches) -> Batches:
        """Rows of `place`, `id`, `sketch` and `fields` to rows of PREPARED.

        same_key: equal for documents with equal sketches that no guard tells apart; null for one that stands alone.
        """
        for batch in batches:
            rows = [json.loads(text) if text else {} for text in batch.column("fields").to_pylist()]
            sketches, recipe = sketches_of(batch.column("sketch")), self.search.recipe
            columns = {name: [row.get(name) for row in rows] for name in self.names}
            guards = Guards.of(self.options, columns, sketches, recipe.k)
            compared = as_compared(sketches, recipe.k, self.search.decision)
            shingles = shingles_of(sketches, recipe.k)
            keys = [
                sort_key(row, self.options.preferences, float(size), lambda hit, name: hit.get(name))
                for row, size in zip(rows, shingles, strict=True)
            ]
            zeros = np.zeros(len(rows))
            prepared = {
                "place": batch.column("place"),
                "id": batch.column("id"),
                "sketch": pa.ListArray.from_arrays(pa.array(compared.offsets, pa.int32()), compared.values),
                "fingerprint": [fingerprint(one, recipe, self.text) if self.text else None for one in sketches],
                "code": zeros.astype(np.int64) if guards.codes is None else guards.codes,
                "time": zeros if guards.times is None else guards.times,
                "same_key": [
                    None
                    if key is None or not len(one)
                    else blake2b(f"{key}".encode() + one.tobytes(), digest_size=16).digest()
                    for one, key in zip(compared, map(guards.key, range(len(rows))), strict=True)
                ],
                "key": keys,
            }
            names = (pa.int64(), pa.string(), pa.list_(pa.int32()), pa.string())
            yield _batch(prepared, (*names, pa.int64(), pa.float64(), pa.binary(), pa.list_(pa.float64())))


@dataclass(frozen=True, eq=False)
class Meeting:
    """How documents meet.

    search: without guards' codes and times, but with their `apart`.
    parts:  in which they meet.
    old:    so many documents at the head do not meet each other.
    """

    search: Search
    parts: Parts
    old: int = 0

    def enter(self, batches: Batches) -> Batches:
        """Rows of PAIRING, once for each part that they are in: ENTERED."""
        for batch in batches:
            row, part, _ = self.parts.entered(sketches_of(batch.column("sketch")), batch.column("rank").to_numpy())
            yield batch.take(pa.array(row)).append_column("part", pa.array(part))

    def count_cut(self, batches: Batches) -> Batches:
        """The same rows to the number of documents that the budget leaves out: `cut`."""
        for batch in batches:
            cut = self.parts.entered(sketches_of(batch.column("sketch")), batch.column("rank").to_numpy())[2]
            yield _batch({"cut": [cut]}, (pa.int64(),))

    def meet(self, rows: pa.Table) -> pa.Table:
        """The rows of one part, ENTERED, to MET: pairs that count, and after them a row of what the search cost."""
        rows = rows.sort_by("rank")
        ranks, codes, times = (rows.column(name).to_numpy() for name in ("rank", "code", "time"))
        guards = Guards(codes if codes.any() else None, times if times.any() else None, self.search.guards.apart)
        search = replace(self.search, guards=guards, threads=1)
        found = search.pairs(sketches_of(rows.column("sketch")), old=int(np.searchsorted(ranks, self.old)))
        effort, pairs = found.effort, found.pairs
        columns = {
            "first": pa.array(ranks[pairs.first]),
            "second": pa.array(ranks[pairs.second]),
            "similarity": pa.array(pairs.similarity),
            "effort": pa.nulls(len(pairs), pa.list_(pa.int64())),
        }
        cost = {name: pa.nulls(1, column.type) for name, column in columns.items()}
        cost["effort"] = pa.array([[effort.met, effort.compared, effort.cut]])
        return pa.concat_tables([pa.table(columns), pa.table(cost)])


def contract(batches: Batches) -> Batches:
    """Pairs `first` and `second` to pairs that connect the same ranks, one for each rank but the first of a chain."""
    first, second = (np.concatenate(column) for column in _columns(batches, "first", "second"))
    ranks, numbers = np.unique(np.concatenate((first, second)), return_inverse=True)
    pairs = Pairs(numbers[: len(first)], numbers[len(first) :], np.ones(len(first)))
    root = connected(len(ranks), pairs, np.arange(len(ranks)))
    led = root != np.arange(len(ranks))
    yield from _in_parts({"first": ranks[root[led]], "second": ranks[led]}, (pa.int64(), pa.int64()))


@dataclass(frozen=True)
class Grouping:
    """How groups are made of pairs. method: see Corpus.groups."""

    method: str

    def lead(self, batches: Batches) -> Batches:
        """All pairs of some chains to rows of `rank`, `leader` and `similarity`, of documents that do not lead."""
        first, second, similarity = (
            np.concatenate(column) for column in _columns(batches, "first", "second", "similarity")
        )
        order = np.lexsort((first, second))
        ranks, numbers = np.unique(np.concatenate((first, second)), return_inverse=True)
        pairs = Pairs(numbers[: len(first)][order], numbers[len(first) :][order], similarity[order])
        count, own = len(ranks), np.arange(len(ranks))
        if self.method == "leaders":
            leader, alike = choose_leaders(count, pairs)
        else:
            earlier = np.arange(len(pairs)) - np.searchsorted(pairs.second, pairs.second)
            joined = connected if self.method == "connected" else communities
            leader, alike = joined(count, pairs.where(earlier < EACH), own), np.full(count, np.nan)
        led = leader != own
        columns = {"rank": ranks[led], "leader": ranks[leader[led]], "similarity": alike[led]}
        yield from _in_parts(columns, (pa.int64(), pa.int64(), pa.float64()))


def number(batches: Batches) -> Batches:
    """Number the rows of a partition: adds a column `row`."""
    row = 0
    for batch in batches:
        yield batch.append_column("row", pa.array(np.arange(row, row + batch.num_rows)))
        row += batch.num_rows


def _columns(batches: Batches, *names: str) -> list[list[Any]]:
    """All of some columns of a partition."""
    columns: list[list[Any]] = [[np.empty(0, np.int64)] for _ in names]
    for batch in batches:
        for column, name in zip(columns, names, strict=True):
            column.append(batch.column(name).to_numpy())
    return columns


def _in_parts(columns: dict[str, Any], kinds: Sequence[pa.DataType]) -> Batches:
    for start in range(0, len(next(iter(columns.values()))), _ROWS):
        yield _batch({name: column[start : start + _ROWS] for name, column in columns.items()}, kinds)


def _batch(columns: dict[str, Any], kinds: Sequence[pa.DataType]) -> pa.RecordBatch:
    arrays = [pa.array(column, kind) for column, kind in zip(columns.values(), kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(columns))
