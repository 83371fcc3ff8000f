"""Generated result pages: for each kind a function (rng, hits) that returns the shingle hashes of each hit.

Distinct documents; 20 % and 40 % near-duplicates in clusters of 2 to 5; edits of one text; documents that share
boilerplate at a resemblance of about 0.33; pairs; and hashes chosen so that a hash table which spreads them by a
multiplication with a known number has them all in one place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ndd_search.core.sketching.sketches import VALUES, Sketch

Documents = list[np.ndarray]


def documents(rng: np.random.Generator, count: int, shingles: int = 600) -> Documents:
    return [rng.choice(VALUES, shingles, replace=False) for _ in range(count)]


def edited(rng: np.random.Generator, document: np.ndarray, most: float) -> np.ndarray:
    """Return the document with up to a share `most` of its shingles replaced."""
    fresh = rng.integers(0, VALUES, len(document))
    return np.where(rng.random(len(document)) < rng.uniform(0, most), fresh, document)


def with_duplicates(rng: np.random.Generator, count: int, share: float) -> Documents:
    originals = documents(rng, count - round(count * share))
    sources: list[int] = []
    while len(originals) + len(sources) < count:
        sources += [int(rng.integers(len(originals)))] * int(rng.choice((1, 1, 1, 2, 2, 3, 4)))
    page = originals + [edited(rng, originals[i], 0.2) for i in sources[: count - len(originals)]]
    return [page[i] for i in rng.permutation(count)]


def boilerplate(rng: np.random.Generator, count: int) -> Documents:
    frequency_table = documents(rng, 1, 400)[0]
    return [np.concatenate((frequency_table, own)) for own in documents(rng, count, 400)]


def pairs(rng: np.random.Generator, count: int) -> Documents:
    half = documents(rng, count // 2)
    return half + [edited(rng, one, 0.1) for one in half]


def crafted(count: int, of: int = 66) -> Documents:
    """Return documents of `of` hashes, all different, whose products with 0x9E3779B1 follow one another."""
    numbers = np.arange(3 * count * of, dtype=np.uint64) * np.uint64(pow(0x9E3779B1, -1, 1 << 32)) % np.uint64(1 << 32)
    return list(numbers[numbers < VALUES][: count * of].astype(np.int64).reshape(count, of))


KINDS: dict[str, Callable[[np.random.Generator, int], Documents]] = {
    "distinct": documents,
    "20 % duplicates": lambda rng, count: with_duplicates(rng, count, 0.2),
    "40 % duplicates": lambda rng, count: with_duplicates(rng, count, 0.4),
    "edits of one text": lambda rng, count: [edited(rng, one, 0.05) for one in documents(rng, 1) * count],
    "boilerplate": boilerplate,
    "pairs": pairs,
    "crafted": lambda rng, count: crafted(count),
}


def sketches_of(page: Documents, k: int) -> list[Sketch]:
    """Return the k smallest distinct values of each document."""
    return [np.unique(document)[:k].astype(np.int32) for document in page]
