"""The groups of near-duplicates of a collection, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.frequency_table import Shares
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.paging.origins import Origins, origins_of
from ndd_search.core.sketching.fingerprint import fingerprint
from ndd_search.corpus.documents import Documents
from ndd_search.corpus.outputs import check_kind, write
from ndd_search.corpus.pairs import Effort
from ndd_search.corpus.sources import Document
from ndd_search.errors import importing

if TYPE_CHECKING:
    import pyarrow as pa

    from ndd_search.indexing.concurrent_updates import Tally


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a collection: every document is in one, most documents are alone in theirs.

    corpus:     the collection.
    leader:     of each document the place of the one that stands for its group, int64, shape (n,).
    similarity: of each document to that one, float64, shape (n,); None for groups made of chains, whose members may
                share nothing with it.
    effort:     what the search cost, and what it left out.
    decision:   which pairs counted.
    method:     how groups were made of them: see Corpus.groups.
    origin_fields: of the documents; then `table` and `rows` tell the origins of each group (see Corpus.groups).
    """

    corpus: Documents
    leader: Ranks
    similarity: Shares | None
    effort: Effort
    decision: Decision
    method: str
    origin_fields: Sequence[str] = ()

    def __len__(self) -> int:
        """How many groups there are, those of one document included."""
        return int(self.is_leader.sum())

    def __repr__(self) -> str:
        return f"Groups({len(self):,} of {len(self.corpus):,} documents by {self.method})"

    @cached_property
    def is_leader(self) -> npt.NDArray[np.bool_]:
        """Whether each document stands for its group; these are the unique documents."""
        leads: npt.NDArray[np.bool_] = self.leader == np.arange(len(self.leader))
        return leads

    @cached_property
    def sizes(self) -> Ranks:
        """How many documents are in the group of each document, int64, shape (n,)."""
        return np.bincount(self.leader, minlength=len(self.leader))[self.leader]

    @cached_property
    def fingerprints(self) -> list[str | None]:
        """The fingerprint of each document, see core.sketching.fingerprint."""
        corpus = self.corpus
        if not corpus.text:
            return [None] * len(corpus)
        return [fingerprint(sketch, corpus.recipe, corpus.text) for sketch in corpus.sketches]

    @cached_property
    def origins(self) -> list[Origins]:
        """The origins of the group of each document. Raises ValueError if no fields were named."""
        if not self.origin_fields:
            raise ValueError('groups(origins="source") makes groups that know their origins')
        columns, found = self.corpus.columns, dict[int, Origins]()
        order = np.lexsort((~self.is_leader, self.leader))  # the leader of each group first
        for members in np.split(order, np.flatnonzero(np.diff(self.leader[order])) + 1):
            places = members.tolist()
            found[int(self.leader[places[0]])] = origins_of(
                places,
                [self.corpus.sketches[place] for place in places],
                self.origin_fields,
                lambda place, name: columns[name][place],
                self.corpus.recipe,
            )
        return [found[leader] for leader in self.leader.tolist()]

    @property
    def table(self) -> pa.Table:
        """document, group (the id of its leader), size (documents in the group), similarity to the leader, or null.

        With `origin_fields` also origins (how many), first, reprints and edited (see Origins), equal in all rows of a
        group. The last column, fingerprint, tells whether a document still has the text that was grouped; null in a
        loaded collection, whose fields are not known.
        Raises MissingExtra without pyarrow.
        """
        with importing("pyarrow", "making a table", "pyarrow", "corpus"):
            import pyarrow as pa
        ids = pa.array(self.corpus.ids, pa.string())
        similarity = pa.nulls(len(ids), pa.float64()) if self.similarity is None else pa.array(self.similarity)
        group = ids.take(pa.array(self.leader))
        columns = {"document": ids, "group": group, "size": pa.array(self.sizes), "similarity": similarity}
        if self.origin_fields:
            told = pa.Table.from_pylist([_told(one) for one in self.origins])
            columns |= dict(zip(told.column_names, told.columns, strict=True))
        return pa.table({**columns, "fingerprint": pa.array(self.fingerprints, pa.string())})

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of `table` as mappings; pyarrow is not needed."""
        ids, sizes = self.corpus.ids, self.sizes.tolist()
        alike = [None] * len(ids) if self.similarity is None else self.similarity.tolist()
        for place, leader in enumerate(self.leader.tolist()):
            yield {
                "document": ids[place],
                "group": ids[leader],
                "size": sizes[place],
                "similarity": alike[place],
                **(_told(self.origins[place]) if self.origin_fields else {}),
                "fingerprint": self.fingerprints[place],
            }

    def write(self, path: str | Path) -> None:
        """Write `table` as .parquet, .jsonl or .csv."""
        if check_kind(path) != "parquet":
            write(path, self.rows())
            return
        from ndd_search.corpus.store import write_table

        write_table(Path(path), self.table)

    def unique_documents(self) -> Iterator[Document]:
        """The documents that stand for a group, in the order of the collection; its sources are read again.

        Raises ValueError when that cannot be, InvalidDocument when one of them is there no longer.
        """
        return self.corpus.read_again({self.corpus.ids[at] for at in np.flatnonzero(self.is_leader).tolist()})

    def unique(self, path: str | Path) -> int:
        """Write the documents that stand for a group, with all their fields. Returns how many.

        path: .jsonl or .csv, also with .gz, or .parquet.
        """
        return write(path, self.unique_documents())

    def write_back(self, client: Any, index: str, *, field: str = "ndd", rate: float | None = None) -> Tally:
        """Write group, size and leader of every document into an index: see ndd_search.corpus.marks.

        client: of elasticsearch-py or opensearch-py. The ids of the collection must be the `_id`s of the index.
        """
        from ndd_search.corpus.marks import mark

        return mark(client, index, self.rows(), field=field, rate=rate)


def _told(origins: Origins) -> dict[str, Any]:
    first = None if origins.first is None else str(origins.first)
    return {"origins": origins.number, "first": first, "reprints": origins.reprints, "edited": origins.edited}
