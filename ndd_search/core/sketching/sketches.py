"""Sketch texts. The min-K sketch of a text is its K smallest distinct hashes, 31 bits each, ascending."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, islice, pairwise, starmap
from typing import overload

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.recipe import Recipe
from ndd_search.core.text.edges import MOST_MARKED, between_edges
from ndd_search.core.text.shingles import BATCH, batches_of, shingle_hashes
from ndd_search.core.text.tokens import prepare, runs
from ndd_search.core.text.unicode_tables import native_table
from ndd_search.native import Core, Plan

Sketch = npt.NDArray[np.int32]
CORE_BATCH = 1 << 20  # characters in a batch for the native core, which sketches text by text
_INT32 = np.dtype(np.int32)
VALUES = 2**31  # values are in 0..VALUES-1, so that they fit a signed 32-bit integer field


class Lack(StrEnum):
    """Why a hit has no sketch to compare. The values are part of responses and stored streams."""

    MISSING = "missing"  # nothing is stored
    EMPTY = "empty"  # the text has no shingles
    FOREIGN = "foreign"  # the sketch is of another recipe, or its text has changed since
    MALFORMED = "malformed"  # what is stored is no sketch: not ascending distinct integers in range, or too many


def or_empty(found: Sketch) -> Sketch | Lack:
    """Return the sketch of a hit, or that its text has no shingles."""
    return found if found.size else Lack.EMPTY


class Sketches(Sequence[Sketch]):
    """Many sketches in two arrays; a sequence of `Sketch` views.

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
    def __getitem__(self, index: slice) -> Sequence[Sketch]: ...
    def __getitem__(self, index: int | slice) -> Sketch | Sequence[Sketch]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                ends = self.offsets[start : max(start, stop) + 1]
                return Sketches(self.values[ends[0] : ends[-1]], ends - ends[0])
            return [self[i] for i in range(start, stop, step)]
        count = len(self.offsets) - 1
        if index < 0:
            index += count
        if not 0 <= index < count:
            raise IndexError(f"sketch {index} of {count}")
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[Sketch]:
        return map(self.values.__getitem__, starmap(slice, pairwise(self.offsets.tolist())))

    @classmethod
    def joined(cls, parts: Iterable[Sketches]) -> Sketches:
        """All sketches of some parts."""
        every = list(parts)
        if len(every) == 1:
            return every[0]
        values = np.concatenate([np.empty(0, np.int32), *(part.values for part in every)])
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in every)])
        return cls(values, np.cumsum(lengths))

    def taken(self, places: npt.NDArray[np.int64]) -> Sketches:
        """Some of them, in any order."""
        starts, ends = self.offsets[places], self.offsets[places + 1]
        parts = map(self.values.__getitem__, map(slice, starts.tolist(), ends.tolist()))
        return Sketches(np.concatenate((self.values[:0], *parts)), np.concatenate(([0], np.cumsum(ends - starts))))

    def equal(self, others: Sketches) -> bool:
        """Return whether both are the same sketches in one order; np.array_equal takes five times as long."""
        same = self.offsets.tobytes() == others.offsets.tobytes()
        return same and self.values.tobytes() == others.values.tobytes()

    def __repr__(self) -> str:
        return f"Sketches(n={len(self)}, values={len(self.values)})"


def core_arguments(sketches: Sequence[npt.ArrayLike] | Sketches) -> tuple[object, object]:
    """Return the arguments `sketches` and `offsets` of the native core."""
    return (sketches.values, sketches.offsets) if isinstance(sketches, Sketches) else (sketches, None)


def sketch(text: str, recipe: Recipe | str | None = None) -> Sketch:
    """Sketch a text. Returns int32, ascending, distinct, at most k values, each 0..2**31-1.

    recipe: a recipe or its id.
    Raises TypeError if `text` is not a str.
    """
    recipe = Recipe.of(recipe)
    if not isinstance(text, str):
        raise TypeError(f"a text is {type(text).__name__}, not str: decode bytes, give sketch_many() a list of texts")
    if native.core and recipe.keeps_all and (plan := recipe.plan):
        found = native.core.sketch_text(text, plan, None if text.isascii() else native_table())
        if found is not None:
            return np.frombuffer(found, _INT32)
    return sketch_batch([text], recipe)[0]


def sketch_many(texts: Iterable[str], recipe: Recipe | str | None = None, threads: int | None = None) -> Sketches:
    """Sketch many texts, in order. The result equals `sketch` of each text and is computed much faster.

    recipe:  a recipe or its id.
    texts:   read once, a few batches at a time, so it can be a generator over a large collection.
    threads: number of batches in work at a time. Default: one for each processor, or 1 if Python or numpy does the work
             (lines, sentences, markup, no native core), because threads do not speed that up.
    Raises TypeError naming the position of an item that is not a str, ValueError if threads is below 1.
    """
    recipe = Recipe.of(recipe)
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be a list of texts, got one {type(texts).__name__}: use sketch() for one text")
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    by_core = native.core is not None and recipe.plan is not None and recipe.keeps_all
    batches = batches_of(texts, CORE_BATCH if by_core else BATCH)
    return Sketches.joined(_in_threads(batches, recipe, threads or (None if by_core else 1)))


def _in_threads(batches: Iterator[list[str]], recipe: Recipe, threads: int | None) -> Iterator[Sketches]:
    """Yield the sketches of each batch, in order, with at most two batches for each thread in memory.

    threads: None for one for each processor.
    """
    first = list(islice(batches, 2))
    every = chain(first, batches)
    if threads == 1 or len(first) < 2:
        yield from (sketch_batch(batch, recipe) for batch in every)
        return
    from concurrent.futures import Future, ThreadPoolExecutor  # imported here because both are slow to import
    from multiprocessing import cpu_count

    threads = threads or cpu_count()
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Sketches]] = deque()
        for batch in every:
            waiting.append(pool.submit(sketch_batch, batch, recipe))
            if len(waiting) == 2 * threads:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)


def sketch_batch(texts: Sequence[str], recipe: Recipe) -> Sketches:
    """Sketch the texts of one batch."""
    if recipe.method != "min-k":
        from ndd_search.core.methods.signatures import sign  # imported here because it is rarely used

        return Sketches(*sign(texts, recipe))
    core, plan = native.core, recipe.plan
    if core and plan and (found := _by_core(core, texts, recipe, plan)) is not None:
        return found
    return _by_numpy(texts, recipe)


def _by_core(core: Core, texts: Sequence[str], recipe: Recipe, plan: Plan) -> Sketches | None:
    """Sketch texts with the native core, and those it leaves out with numpy. Returns None if the core refuses."""
    prepared = texts if recipe.keeps_all else [prepare(text, recipe) for text in texts]
    plain = bytes(map(str.isascii, prepared))
    found = core.sketch_texts(prepared, plain, plan, native_table() if 0 in plain else None)
    if found is None:
        return None
    values, offsets, left = found
    sketches = Sketches(np.frombuffer(values, np.int32), np.frombuffer(offsets, np.int64))
    if not left:
        return sketches
    every = list(sketches)
    for place in np.frombuffer(left, np.int64).tolist():
        (every[place],) = _by_numpy([texts[place]], recipe)
    return Sketches(np.concatenate(every), np.cumsum([0, *map(len, every)]))


def _by_numpy(texts: Sequence[str], recipe: Recipe) -> Sketches:
    """Sketch texts with numpy."""
    prepared = texts if recipe.keeps_all else [prepare(text, recipe) for text in texts]
    found = _smallest(*_values(prepared, recipe), recipe.k)
    for place, text in enumerate(prepared if recipe.marks_edges else ()):
        _mark_edges(found[place], text, recipe)
    return found


def _values(prepared: Sequence[str], recipe: Recipe) -> tuple[Sketch, npt.NDArray[np.int64]]:
    """Return the high 31 bits of the hashes of prepared texts, even ones for edges to mark, and their offsets."""
    hashes, offsets = shingle_hashes(prepared, recipe, prepared=True)
    values = (hashes >> np.uint64(33)).astype(np.int32)
    return values & -2 if recipe.marks_edges else values, offsets


def _mark_edges(values: Sketch, text: str, recipe: Recipe) -> None:
    """Make those even values of a short text odd whose shingles touch an edge wherever they occur, none of a sample."""
    if len(values) < min(recipe.k, MOST_MARKED):
        inside = "\n".join(text[start:end] for start, end in between_edges(text))
        if inside != text:
            values |= ~np.isin(values, _values([inside], recipe)[0])


def _smallest(values: Sketch, offsets: npt.NDArray[np.int64], k: int) -> Sketches:
    """Return the k smallest distinct values of each text. offsets: text i has values[offsets[i]:offsets[i + 1]]."""
    texts = np.arange(len(offsets) - 1)
    found = np.repeat(texts << 31, np.diff(offsets)) | values
    found.sort()
    found = found[np.diff(found, prepend=-1) > 0]  # np.unique takes many times as long
    starts = np.searchsorted(found, texts << 31)
    lengths = np.minimum(np.diff(starts, append=len(found)), k)
    kept = found[runs(starts, lengths)] & (VALUES - 1)
    return Sketches(kept.astype(np.int32), np.concatenate(([0], np.cumsum(lengths))))
