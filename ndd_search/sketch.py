"""Shingle hashes to min-K sketches: the K smallest distinct hashes of a document, 31 bits each, ascending."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.config import Recipe
from ndd_search.shingles import Hashed, hash_shingles
from ndd_search.text import ascii_table, clean, prepare

Sketch = npt.NDArray[np.int32]
BATCH = 1 << 17  # code points worked on at a time
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
    """The sketch of a text: int32, ascending, distinct, at most k values, each 0..2**31-1.

    Raises TypeError if `text` is no str.
    """
    if not isinstance(text, str):
        raise TypeError(f"a text is {type(text).__name__}, not str: decode bytes, give sketch_many() a list of texts")
    recipe = recipe or Recipe()
    if (found := _by_core([text], recipe)) is not None:
        return np.frombuffer(found[0], np.int32)
    return smallest(hash_shingles([text], recipe), recipe.k)[0]


def sketch_many(texts: Iterable[str], recipe: Recipe | None = None) -> Sketches:
    """The sketches of many texts, the same as `sketch` of each, and much faster.

    texts: read once, a batch of some 128 KB at a time, so a generator over a large collection is welcome.
    Raises TypeError that names the place of anything that is no str.
    """
    recipe = recipe or Recipe()
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be a list of texts, got one {type(texts).__name__}: use sketch() for one text")
    done = [sketch_batch(batch, recipe) for batch in _batches(texts)]
    if not done:
        return Sketches(np.empty(0, np.int32), np.zeros(1, np.int64))
    counts = np.concatenate([np.diff(part.offsets) for part in done])
    return Sketches(np.concatenate([part.values for part in done]), np.concatenate(([0], np.cumsum(counts))))


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    room = BATCH
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {place} is {type(text).__name__}, not str: decode bytes, leave out what has no text")
        batch.append(text)
        room -= len(text) + 1
        if room <= 0:
            yield batch
            batch, room = [], BATCH
    if batch:
        yield batch


def sketch_batch(texts: Sequence[str], recipe: Recipe) -> Sketches:
    """The sketches of a few texts, all worked on at the same time."""
    plain = [text.isascii() for text in texts]
    if all(plain) or not any(plain):
        return _sketches(texts, recipe)
    # Apart, so that one odd letter does not make every text of the batch four bytes a letter.
    halves = [_sketches([t for t, p in zip(texts, plain, strict=True) if p is side], recipe) for side in (True, False)]
    counts = np.empty(len(texts), np.int64)
    order = np.array(plain)
    counts[order], counts[~order] = (np.diff(half.offsets) for half in halves)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    values = np.empty(offsets[-1], np.int32)
    owner = np.repeat(order, counts)
    values[owner], values[~owner] = (half.values for half in halves)
    return Sketches(values, offsets)


def _sketches(texts: Sequence[str], recipe: Recipe) -> Sketches:
    if (found := _by_core(texts, recipe)) is not None:
        return Sketches(np.frombuffer(found[0], np.int32), np.frombuffer(found[1], np.int64))
    return smallest(hash_shingles(texts, recipe), recipe.k)


def _by_core(texts: Sequence[str], recipe: Recipe) -> tuple[bytes, bytes] | None:
    """Values and offsets from the native core; None where there is none, and for lines and sentences."""
    if native.core is None or recipe.kind not in {"words", "characters"}:
        return None
    if recipe.markup != "keep" or recipe.urls != "keep":
        texts = [prepare(text, recipe) for text in texts]
    words = recipe.kind == "words"
    if all(map(str.isascii, texts)):
        return native.core.sketch_texts(texts, ascii_table(), words, recipe.size, recipe.seed, recipe.k)
    points, offsets = clean(texts, apart=words)
    points = points.astype(np.uint32, copy=False)
    return native.core.sketch_points(points, offsets, words, recipe.size, recipe.seed, recipe.k)


def smallest(hashed: Hashed, k: int) -> Sketches:
    """The k smallest distinct hashes of each text, cut to their high 31 bits."""
    hashes, first, count = hashed
    found = []
    for start, length in zip(first.tolist(), count.tolist(), strict=True):
        values = (hashes[start : start + length] >> np.uint64(33)).astype(np.int32)
        values.sort()
        found.append(values[np.diff(values, prepend=-1) > 0][:k])
    return Sketches(np.concatenate(found), np.cumsum([0, *map(len, found)]))
