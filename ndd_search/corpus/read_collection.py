"""From documents to what is kept of them: their sketches, and the values of some fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ndd_search.core.document_fields import text_of, value_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.core.text.numbers import number_signature
from ndd_search.corpus.document_batches import Document
from ndd_search.corpus.guard_columns import NUMBERS
from ndd_search.corpus.sketch_store import Rows
from ndd_search.errors import InvalidDocument


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
        there = ", ".join(names)
        what = f"none of them has text in {', '.join(self.text)}" + (f"; the fields there are {there}" if there else "")
        return InvalidDocument(f"{documents:,} documents", what, "name the fields that hold text")

    def sketched(self, documents: Sequence[Document], texts: Sequence[str], ids: Sequence[str] = ()) -> Rows:
        """The sketches of documents with these texts, and the values of fields, with their ids."""
        columns = {name: [value_of(document, name) for document in documents] for name in self.fields}
        if self.numbers:
            columns[NUMBERS] = [number_signature(text, self.recipe) for text in texts]
        return Rows(list(ids), sketch_many(texts, self.recipe), columns)
