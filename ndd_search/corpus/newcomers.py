"""Which documents of a collection are new since an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.frequency_table import Shares
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.corpus import sketch_store
from ndd_search.corpus.collection_pairs import Effort
from ndd_search.corpus.document_batches import Document
from ndd_search.corpus.kept_documents import Documents
from ndd_search.corpus.sketch_store import Rows
from ndd_search.corpus.write_files import write


@dataclass(frozen=True, eq=False)
class Newcomers:
    """A collection beside an earlier one.

    corpus, against: the collection and the earlier one.
    leader:     of each document the place of the one that it is a near-duplicate of: in `against` below len(against),
                else in `corpus` from there on; its own for a new document. int64, shape (len(corpus),).
    similarity: to that one, float64, shape (len(corpus),).
    effort:     what the search cost, and what it left out.
    """

    corpus: Documents
    against: Documents
    leader: Ranks
    similarity: Shares
    effort: Effort

    @cached_property
    def is_new(self) -> npt.NDArray[np.bool_]:
        """Whether each document is new."""
        new: npt.NDArray[np.bool_] = self.leader == np.arange(len(self.leader)) + len(self.against)
        return new

    def __len__(self) -> int:
        """How many documents are new."""
        return int(self.is_new.sum())

    def rows(self) -> Iterator[dict[str, Any]]:
        """For each document that is not new: document, duplicate_of, whether that is an earlier one, similarity."""
        earlier = len(self.against)
        for place in np.flatnonzero(~self.is_new).tolist():
            leader = int(self.leader[place])
            known = leader < earlier
            yield {
                "document": self.corpus.ids[place],
                "duplicate_of": self.against.ids[leader] if known else self.corpus.ids[leader - earlier],
                "earlier": known,
                "similarity": round(float(self.similarity[place]), 4),
            }

    def documents(self) -> Iterator[Document]:
        """The new documents; the sources are read again. Raises ValueError where that cannot be."""
        return self.corpus.read_again({self.corpus.ids[at] for at in np.flatnonzero(self.is_new).tolist()})

    def write(self, path: str | Path) -> int:
        """Write the new documents (see outputs.write). Returns how many."""
        return write(path, self.documents())

    def save(self, path: str | Path) -> None:
        """Write the sketches of both collections as one, to compare the next one with.

        A document of the earlier collection whose id is in this one, too, is replaced. Fields that both have kept stay.
        """
        replaced = set(self.corpus.ids)
        stay = [place for place, name in enumerate(self.against.ids) if name not in replaced]
        names = [name for name in self.corpus.columns if name in self.against.columns]
        sketches = sketch_store.taken(self.against.sketches, np.array(stay, np.int64))
        columns = {name: [self.against.columns[name][place] for place in stay] for name in names}
        before = Rows([self.against.ids[place] for place in stay], sketches, columns)
        now = Rows(self.corpus.ids, self.corpus.sketches, self.corpus.columns)
        sketch_store.write_rows(Path(path), Rows.joined([before, now], names), self.corpus.recipe)
