"""The groups of near-duplicates of a collection, and what is made of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.frequency_table import Shares
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.paging.origins import Origins, origins_of
from ndd_search.core.setting_values import fields_in
from ndd_search.core.sketching.fits_text import fingerprint
from ndd_search.core.text.printable import many
from ndd_search.corpus.collection_pairs import Effort
from ndd_search.corpus.document_batches import Document
from ndd_search.corpus.guard_columns import check_columns
from ndd_search.corpus.read_collection import Documents
from ndd_search.corpus.sketch_store import Rows, write_rows, write_table
from ndd_search.corpus.write_files import check_kind, write
from ndd_search.errors import importing

if TYPE_CHECKING:
    import pyarrow as pa

    from ndd_search.indexing.concurrent_updates import Tally


class Changes(NamedTuple):
    """What became of earlier groups: names of groups, and which groups they became, or were made of.

    split: earlier groups whose documents are in several groups now. merged: groups with documents of several earlier
    ones. new: groups of new documents alone. gone: earlier groups none of whose documents is there.
    """

    split: dict[str, list[str]]
    merged: dict[str, list[str]]
    new: list[str]
    gone: list[str]


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
    names:      of the group of each document; None for the id of its leader.
    changes:    since earlier groups (see `since`).
    """

    corpus: Documents
    leader: Ranks
    similarity: Shares | None
    effort: Effort
    decision: Decision
    method: str
    origin_fields: Sequence[str] = ()
    names: Sequence[str] | None = None
    changes: Changes | None = None

    def __len__(self) -> int:
        """How many groups there are, those of one document included."""
        return int(self.is_leader.sum())

    def __repr__(self) -> str:
        return f"Groups({len(self):,} of {many(len(self.corpus), 'document')} by {self.method})"

    @property
    def rule(self) -> str:
        """By what documents were grouped, for a reader."""
        bar = "auto" if self.decision.bar is None else f"{self.decision.bar:g}"
        similar = "" if self.method == "inclusive" else f"min_similarity {bar}, "
        return f"{similar}method {self.method}, recipe {self.corpus.recipe.id}"

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
        """The fingerprint of each document, see core.sketching.fits_text."""
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

    def since(self, earlier: Iterable[Mapping[str, Any]]) -> Groups:
        """Return the same groups under their earlier names, and what changed.

        earlier: rows of the groups of an earlier run (`rows`, or the lines of what `write` wrote): document, group.
        A group takes the name of the earlier group with which it shares most documents, unless another one shares more.
        A group without such a name is named after one of its documents, with a number where that name was used.
        """
        was = {row["document"]: str(row["group"]) for row in earlier}
        leaders = self.leader.tolist()
        shared = Counter((leader, was[id]) for id, leader in zip(self.corpus.ids, leaders, strict=True) if id in was)
        name_of: dict[int, str] = {}
        taken: set[str] = set()
        for leader, name in sorted(shared, key=lambda pair: (-shared[pair], pair)):
            if leader not in name_of and name not in taken:
                name_of[leader] = name
                taken.add(name)
        used = taken.union(was.values())
        for leader in np.flatnonzero(self.is_leader).tolist():
            if leader not in name_of:
                id = self.corpus.ids[leader]
                names = chain([id], (f"{id}~{number}" for number in count(2)))
                name = name_of[leader] = next(name for name in names if name not in used)
                used.add(name)
        of_earlier, of_now = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for leader, name in sorted(shared):
            of_earlier[name].append(name_of[leader])
            of_now[name_of[leader]].append(name)
        changes = Changes(
            {name: found for name, found in of_earlier.items() if len(found) > 1},
            {name: found for name, found in of_now.items() if len(found) > 1},
            [name for leader, name in sorted(name_of.items()) if name not in of_now],
            sorted(set(was.values()).difference(of_earlier)),
        )
        return replace(self, names=[name_of[leader] for leader in leaders], changes=changes)

    @property
    def table(self) -> pa.Table:
        """document, group (the id of its leader), size (documents in the group), similarity to the leader, or null.

        After `since`, group is the name of the group, and leads tells which document is its leader.
        With `origin_fields` also origins (how many), first, reprints and edited (see Origins), equal in all rows of a
        group. The last column, fingerprint, tells whether a document still has the text that was grouped; null in a
        loaded collection, whose fields are not known.
        Raises MissingExtra without pyarrow.
        """
        with importing("pyarrow", "making a table", "pyarrow", "corpus"):
            import pyarrow as pa
        kinds = {
            "similarity": pa.float64(),
            **dict.fromkeys(("document", "group", "first", "fingerprint"), pa.string()),
        }
        return pa.table({name: pa.array(values, kinds.get(name)) for name, values in self._columns().items()})

    def rows(self, fields: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The rows of `table` as mappings; pyarrow is not needed.

        fields: that were kept; each is a column "document.FIELD", and a last column, rule, tells how groups were made.
        """
        fields = fields_in("fields", fields)
        check_columns(fields, self.corpus.columns)
        columns = self._columns()
        columns |= {f"document.{name}": self.corpus.columns[name] for name in fields}
        columns |= {"rule": [self.rule] * len(self.corpus)} if fields else {}
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))

    def _columns(self) -> dict[str, Sequence[Any]]:
        ids, count = self.corpus.ids, len(self.corpus)
        columns: dict[str, Sequence[Any]] = {
            "document": ids,
            "group": self.names or [ids[leader] for leader in self.leader.tolist()],
            "size": self.sizes.tolist(),
            "similarity": [None] * count if self.similarity is None else self.similarity.tolist(),
        }
        if self.names is not None:
            columns["leads"] = self.is_leader.tolist()
        if self.origin_fields:
            columns["origins"] = [one.number for one in self.origins]
            columns["first"] = [None if one.first is None else str(one.first) for one in self.origins]
            columns |= {name: [getattr(one, name) for one in self.origins] for name in ("reprints", "edited")}
        return {**columns, "fingerprint": self.fingerprints}

    def write(self, path: str | Path, fields: Sequence[str] = ()) -> None:
        """Write `table` as .parquet, .jsonl or .csv. fields: as for `rows`."""
        if check_kind(path) != "parquet" or fields:
            write(path, self.rows(fields))
            return
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
        """Write group, size and leader of every document into an index: see ndd_search.corpus.group_marks.

        client: of elasticsearch-py or opensearch-py. The ids of the collection must be the `_id`s of the index.
        """
        from ndd_search.corpus.group_marks import mark

        return mark(client, index, self.rows(), field=field, rate=rate)


@dataclass(frozen=True, eq=False)
class Newcomers:
    """The documents of a collection beside those of an earlier one.

    _groups: of both, the earlier documents first; each of these leads a group. An id that both collections hold is
             there twice, so users get none of the methods of Groups.
    earlier: how many the earlier documents are.
    """

    _groups: Groups
    earlier: int

    @property
    def effort(self) -> Effort:
        """What the search cost, and what it left out."""
        return self._groups.effort

    @cached_property
    def is_new(self) -> npt.NDArray[np.bool_]:
        """Whether each document of the later collection is new."""
        return self._groups.is_leader[self.earlier :]

    def __len__(self) -> int:
        """How many documents are new."""
        return int(self.is_new.sum())

    def rows(self) -> Iterator[dict[str, Any]]:
        """For each document that is not new: document, duplicate_of, whether that is an earlier one, similarity."""
        groups, ids = self._groups, self._groups.corpus.ids
        assert groups.similarity is not None
        for place in (np.flatnonzero(~self.is_new) + self.earlier).tolist():
            leader = int(groups.leader[place])
            row = {"document": ids[place], "duplicate_of": ids[leader], "earlier": leader < self.earlier}
            yield {**row, "similarity": round(float(groups.similarity[place]), 4)}

    def documents(self) -> Iterator[Document]:
        """The new documents; the sources are read again. Raises ValueError where that cannot be."""
        corpus = self._groups.corpus
        return corpus.read_again({corpus.ids[at] for at in (np.flatnonzero(self.is_new) + self.earlier).tolist()})

    def write(self, path: str | Path) -> int:
        """Write the new documents (see write_files.write). Returns how many."""
        return write(path, self.documents())

    def save(self, path: str | Path) -> None:
        """Write the sketches of both collections as one, to compare the next one with.

        A document of the earlier collection whose id is in this one, too, is replaced. Fields that both have kept stay.
        Raises ValueError if the name does not end with .parquet.
        """
        corpus = self._groups.corpus
        replaced = set(corpus.ids[self.earlier :])
        stay = [at for at, name in enumerate(corpus.ids) if at >= self.earlier or name not in replaced]
        columns = {name: [values[at] for at in stay] for name, values in corpus.columns.items()}
        rows = Rows([corpus.ids[at] for at in stay], corpus.sketches.taken(np.array(stay, np.int64)), columns)
        write_rows(Path(path), rows, corpus.recipe)
