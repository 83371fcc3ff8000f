"""The documents of a collection: what is kept of each, and how they are read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.document_fields import text_of
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.corpus import sketch_store
from ndd_search.corpus.collection_pairs import frequency_table
from ndd_search.corpus.document_batches import Document, Pieces, id_of
from ndd_search.corpus.sketch_store import Rows
from ndd_search.errors import InvalidDocument


@dataclass(frozen=True, eq=False)
class Documents:
    """The id and the sketch of each document.

    ids:      of each document, as text, all different.
    sketches: in the same order, in read-only arrays, as all processors read them; other arrays are copied.
    recipe:   of the sketches.
    columns:  the values of each document in the fields that were kept, by field.
    pieces:   what the documents were read from, to read them again; None for a loaded collection.
    text:     the fields that were sketched.
    id_field: the field that holds the id; None for "_id", "id" or the place.
    """

    ids: list[str]
    sketches: Sketches
    recipe: Recipe
    columns: Mapping[str, list[Any]] = field(default_factory=dict)
    pieces: Pieces | None = None
    text: tuple[str, ...] = ()
    id_field: str | None = None

    def __post_init__(self) -> None:
        kept = Sketches(_read_only(self.sketches.values), _read_only(self.sketches.offsets))
        object.__setattr__(self, "sketches", kept)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} documents, {self.recipe.id})"

    @cached_property
    def frequency_table(self) -> FrequencyTable:
        """The frequency table of the collection itself, which min_similarity="auto" asks."""
        return frequency_table(self.sketches, self.recipe)

    @property
    def textless(self) -> list[int]:
        """The places of the documents without text, whose sketch is empty."""
        places: list[int] = np.flatnonzero(np.diff(self.sketches.offsets) == 0).tolist()
        return places

    def save(self, path: str | Path) -> None:
        """Write ids, sketches and kept fields as Parquet."""
        sketch_store.write_rows(Path(path), Rows(self.ids, self.sketches, self.columns), self.recipe)

    def read_again(self, wanted: Set[str]) -> Iterator[Document]:
        """The documents that have some ids, with all their fields, in the order of the collection.

        Raises ValueError if the sources cannot be read again, InvalidDocument when a document is there no longer.
        """
        left = set(wanted)
        for name, document in self._named(None):
            if name in left:
                left.discard(name)
                yield document
        if left:
            what = "the sources no longer hold it: they have changed since they were read"
            raise InvalidDocument(f"document {min(left)!r}", what, "read the collection again")

    def texts(self, places: Iterable[int]) -> dict[int, str]:
        """The texts of some documents by their places, without those that are there no longer.

        Raises ValueError if the sources cannot be read again.
        """
        wanted, found = {self.ids[place]: place for place in places}, {}
        for name, document in self._named([*self.text, *([self.id_field] if self.id_field else [])]):
            if (place := wanted.pop(name or "", None)) is not None:
                found[place] = text_of(document, self.text) or ""
            if not wanted:
                break
        return found

    def _named(self, columns: list[str] | None) -> Iterator[tuple[str | None, Document]]:
        """The documents with their ids. columns: to read; None for all, with exact numbers."""
        if self.pieces is None:
            raise ValueError("a collection that was loaded knows no documents: read it from its sources")
        if self.pieces.read_once:
            raise ValueError("an iterator can be read only once: read the collection from a path, a list or a table")
        documents = (one for _, batch in self.pieces.read(_silently, columns, exact=columns is None) for one in batch)
        for place, document in enumerate(documents):
            yield id_of(document, self.id_field, place), document


def _silently(sentence: str) -> None:
    """What cannot be read was told when the collection was read."""


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers where nobody changes them: a copy if the array, or what it is a part of, can be written to."""
    part: Any = array
    while isinstance(part, np.ndarray) and not part.flags.writeable:
        part = part.base
    if part is None or isinstance(part, bytes):
        return array
    array = array.copy()
    array.flags.writeable = False
    return array
