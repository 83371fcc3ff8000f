"""Shingle hashes to min-K sketches: the K smallest distinct hashes of a document, 31 bits each, ascending."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from ndd_search.config import Recipe
from ndd_search.shingles import shingle_hashes

Sketch = npt.NDArray[np.int32]
VALUES = 2**31  # a sketch holds values in 0..VALUES-1: what fits a signed 32-bit integer field


class Sketches(Sequence[Sketch]):
    """Many sketches in two arrays, a sequence of `Sketch` views.

    values:  int32, all sketches one after the other.
    offsets: int64, shape (n + 1,): sketch i is values[offsets[i]:offsets[i + 1]].
    """

    __slots__ = ("offsets", "values")

    def __init__(self, values: Sketch, offsets: npt.NDArray[np.int64]) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Sketch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sketch]: ...
    def __getitem__(self, index: int | slice) -> Sketch | list[Sketch]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"sketch {index} of {len(self)}")
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[Sketch]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Sketches(n={len(self)}, values={len(self.values)})"


def sketch(text: str, recipe: Recipe | None = None) -> Sketch:
    """The sketch of a text: int32, ascending, distinct, at most k values, each 0..2**31-1."""
    return sketch_many([text], recipe)[0]


def sketch_many(texts: Iterable[str], recipe: Recipe | None = None) -> Sketches:
    """The sketches of many texts."""
    recipe = recipe or Recipe()
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be a list of texts, got one {type(texts).__name__}: use sketch() for one text")
    found = []
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {place} is {type(text).__name__}, not str: decode bytes, leave out what has no text")
        values = np.sort((shingle_hashes(text, recipe) >> np.uint64(33)).astype(np.int32))
        found.append(values[np.diff(values, prepend=-1) > 0][: recipe.k])
    offsets = np.cumsum([0, *map(len, found)])
    return Sketches(np.concatenate(found) if found else np.empty(0, np.int32), offsets)
