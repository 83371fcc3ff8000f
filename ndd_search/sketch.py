"""Shingle hashes to min-K sketches: the K smallest distinct hashes of a document, 31 bits each, ascending."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

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
