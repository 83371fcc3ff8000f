"""How a collection is read: what is kept of each document, and how texts are read again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.document_fields import absent_fields, text_of, value_of
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches, sketch_many
from ndd_search.core.text.numbers import number_signature
from ndd_search.core.text.printable import many
from ndd_search.corpus import sketch_store
from ndd_search.corpus.collection_pairs import frequency_table
from ndd_search.corpus.document_batches import Document, Pieces, Report
from ndd_search.corpus.guard_columns import NUMBERS
from ndd_search.corpus.sketch_store import Rows
from ndd_search.errors import InvalidDocument

log = logging.getLogger("ndd_search")


@dataclass(frozen=True)
class Fields:
    """The fields of documents that a collection keeps.

    text:    those that are sketched.
    recipe:  of the sketches.
    fields:  those whose values are kept.
    numbers: whether the numbers of each text are kept, too.
    """

    text: tuple[str, ...]
    recipe: Recipe
    fields: tuple[str, ...] = ()
    numbers: bool = False

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the columns of `sketched`."""
        return (*self.fields, NUMBERS) if self.numbers else self.fields

    def wanted(self, id: str | None) -> list[str]:
        """The fields to read, with the one that holds the id."""
        return [*self.text, *([id] if id else []), *self.fields]

    def texts(self, documents: Sequence[Document]) -> list[str]:
        """The text of each document, "" for one without."""
        return [text_of(document, self.text) or "" for document in documents]

    def without_text(self, documents: int, names: Iterable[str] = ()) -> InvalidDocument:
        """The error for a collection of which no document has text. names: of the fields that some of them have."""
        there = ", ".join(name for name in names if not name.startswith("_"))
        what = f"none of them has text in {', '.join(self.text)}" + (f"; the fields there are {there}" if there else "")
        return InvalidDocument(many(documents, "document"), what, "name the fields that hold text")

    def sketched(self, documents: Sequence[Document], texts: Sequence[str], ids: Sequence[str] = ()) -> Rows:
        """The sketches of documents with these texts, and the values of fields, with their ids."""
        columns = {name: [value_of(document, name) for document in documents] for name in self.fields}
        if self.numbers:
            columns[NUMBERS] = [number_signature(text, self.recipe) for text in texts]
        return Rows(list(ids), sketch_many(texts, self.recipe), columns)


@dataclass(frozen=True, eq=False)
class Documents:
    """The id and the sketch of each document.

    ids:      of each document, as text, all different.
    sketches: in the same order, in read-only arrays, as all processors read them; other arrays are copied.
    recipe:   of the sketches.
    columns:  the values of each document in the fields that were kept, by field.
    pieces:   what the documents were read from, to read them again; None for a loaded collection.
    text:     the fields that were sketched.
    id_field: the field that holds the id; None for "_id", "id" or the place in its source.
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
        return f"{type(self).__name__}({many(len(self), 'document')}, {self.recipe.id})"

    @cached_property
    def frequency_table(self) -> FrequencyTable:
        """The frequency table of the collection itself, which min_similarity="auto" asks."""
        return frequency_table(self.sketches, self.recipe)

    def has_value(self, field: str) -> bool:
        """Whether any document has a value in a field that was kept."""
        return any(value is not None for value in self.columns[field])

    @property
    def textless(self) -> list[int]:
        """The places of the documents without text, whose sketch is empty."""
        places: list[int] = np.flatnonzero(np.diff(self.sketches.offsets) == 0).tolist()
        return places

    def save(self, path: str | Path) -> None:
        """Write ids, sketches and kept fields as Parquet. Raises ValueError if the name does not end with .parquet."""
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
        for batch in self.pieces.read(_silently, self.id_field, columns, exact=columns is None):
            yield from zip(batch.ids, batch.documents, strict=True)


def read_rows(
    pieces: Pieces, fields: Fields, id: str | None, report: Report, progress: Callable[[int], object]
) -> Rows:
    """What is kept of the documents of some sources. Arguments as for Corpus.read."""
    parts, there, count, any_text = list[Rows](), dict[str, None](), 0, False
    for batch in pieces.kept(report, id, fields.wanted(id)):
        if not there:
            _note_absent(fields.text, batch.documents)
            there = dict.fromkeys(name for document in batch.documents for name in document)
        texts = fields.texts(batch.documents)
        any_text |= any(texts)
        count += len(texts)
        parts.append(fields.sketched(batch.documents, texts, [str(name) for name in batch.ids]))
        progress(len(texts))
    if count and fields.text and not any_text:
        raise fields.without_text(count, there)
    return Rows.joined(parts, fields.kept)


def _note_absent(fields: Sequence[str], batch: Sequence[Document]) -> None:
    """Log the text fields that no document of the first batch has, if another one has text."""
    absent = absent_fields(fields, batch)
    if absent and len(absent) < len(fields):
        log.warning("none of the first %d documents has a field %s: check its name", len(batch), ", ".join(absent))


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
