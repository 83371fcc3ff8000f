"""Sketches by methods other than min-K, stored and read like min-K sketches.

    min-hash        k numbers: the smallest of permuted(hash, i) over all shingles, for i in 0..k-1 (Broder, Charikar,
                    Frieze and Mitzenmacher 1998, "Min-wise independent permutations")
    super-shingles  k numbers, each a hash of 14 other min-hashes (Broder 2000, "Identifying and filtering
                    near-duplicate documents": 6 of 84)
    n-grams         the k smallest distinct hashes of the runs of `size` characters of the text, case, punctuation and
                    spaces as they are (Basu 2011: 10 of size 4). The hash is that of Java's strings, modulo 2**31
    simhash         four numbers: 16 bits each of a fingerprint of the shingles, weighted by count, see `simhash`
    profile         two numbers: a hash of the frequent words (TextProfileSignature of Nutch and Solr)

Numbers that are compared position by position are stored as

    value = position * 2**b + number               b = 31 - bits of the largest position; number: its b highest bits

so a sketch still holds ascending distinct values in 0..2**31-1, and values are equal where the numbers at one position
are (by chance with probability 2**-b, 2**-25 for k = 64). With `hash` as in `text.shingles`,

    x = hash + (i + 1) * R
    x = (x ^ (x >> 33)) * A
    x = (x ^ (x >> 29)) * B
    permuted(hash, i) = x ^ (x >> 32)

in arithmetic modulo 2**64, with the same constants. A super-shingle starts as 0 and is updated for each of its 14
min-hashes: mixed = permuted(mixed + min_hash, 0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ndd_search.core.methods.simhash import as_sketches, fingerprints
from ndd_search.core.recipe import Recipe
from ndd_search.core.text.shingles import A, B, Hashes, R, shingle_hashes, shingle_texts
from ndd_search.core.text.tokens import prepare, sorted_distinct

Values = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

SUPER = 14  # min-hashes in a super-shingle
_A, _B = np.uint64(A), np.uint64(B)
_MASK = 2**64 - 1


def sign(texts: Sequence[str], recipe: Recipe) -> tuple[Values, Places]:
    """Sketch texts by a method other than min-K. Returns values and offsets, as in `Sketches`.

    A text without shingles has an empty sketch; with `profile`, so does a text without words of two letters or more.
    """
    if recipe.method == "simhash":
        prints = fingerprints(texts, recipe)
        some = prints != 0  # 0 is the fingerprint of a text without shingles, and of one in 2**64 others
        return _rows(as_sketches(prints)[some], some)
    if recipe.method == "profile":
        profiles = [profile(text, recipe) for text in texts]
        digests = [blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest() for words in profiles]
        numbers = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, 2)
        some = np.array(list(map(bool, profiles)), np.bool_)
        return _rows(_placed(numbers[some]), some)
    if recipe.method == "n-grams":
        found = [_n_grams(prepare(text, recipe), recipe) for text in texts]
        return np.concatenate([np.empty(0, np.int32), *found]), np.cumsum([0, *map(len, found)])
    hashes, offsets = shingle_hashes(texts, recipe)
    some = np.diff(offsets) > 0
    if recipe.method == "min-hash":
        return _rows(_placed(_min_hashes(hashes, offsets[:-1][some], recipe.k)), some)
    parts = _min_hashes(hashes, offsets[:-1][some], recipe.k * SUPER).reshape(-1, recipe.k, SUPER)
    mixed = np.zeros(parts.shape[:2], np.uint64)
    for place in range(SUPER):
        mixed = _permuted(mixed + parts[:, :, place], 0)
    return _rows(_placed(mixed), some)


def profile(text: str, recipe: Recipe, shortest: int = 2, rate: float = 0.01) -> str:
    """Return the frequent words of `shortest` letters or more with their frequencies, the most frequent first.

    Frequencies are rounded down to multiples of a quantum; words below one quantum are dropped. The quantum is `rate`
    of the highest frequency, at least 2 unless no word is repeated.
    """
    counts = Counter(word for word in shingle_texts(text, recipe) if len(word) >= shortest)
    highest = max(counts.values(), default=0)
    quantum = round(highest * rate)
    if quantum < 2:
        quantum = 2 if highest > 1 else 1
    kept = [(count // quantum * quantum, word) for word, count in counts.items() if count >= quantum]
    return " ".join(f"{word} {count}" for count, word in sorted(kept, key=lambda entry: (-entry[0], entry[1])))


def _min_hashes(hashes: Hashes, starts: Places, count: int) -> Hashes:
    """Return the smallest hash of each text under each of `count` permutations; shape (len(starts), count)."""
    smallest = np.empty((len(starts), count), np.uint64)
    for place in range(count if len(starts) else 0):
        smallest[:, place] = np.minimum.reduceat(_permuted(hashes, place), starts)
    return smallest


def _permuted(hashes: Hashes, place: int) -> Hashes:
    """Return permuted(hash, place) of each hash."""
    x = hashes + np.uint64((place + 1) * R & _MASK)
    x ^= x >> np.uint64(33)
    x *= _A
    x ^= x >> np.uint64(29)
    x *= _B
    x ^= x >> np.uint64(32)
    return x


def _placed(numbers: Hashes) -> Values:
    """Return numbers, shape (n, k), as values that contain their position."""
    k = numbers.shape[1]
    bits = 31 - (k - 1).bit_length()
    return (np.arange(k, dtype=np.uint64) << np.uint64(bits) | numbers >> np.uint64(64 - bits)).astype(np.int32)


def _rows(values: Values, some: npt.NDArray[np.bool_]) -> tuple[Values, Places]:
    """Return values and offsets of sketches. values: one row for each text where `some` is True; others are empty."""
    return values.ravel(), np.concatenate(([0], np.cumsum(some * values.shape[1])))


def _n_grams(text: str, recipe: Recipe) -> Values:
    """Return the sketch of a text without markup: the k smallest distinct hashes of its runs of UTF-16 code units."""
    if not text.strip():
        return np.empty(0, np.int32)
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2").astype(np.int64)
    size = min(recipe.size, len(units))
    hashes = np.zeros(len(units) - size + 1, np.int64)
    for place in range(size):
        hashes = (hashes * 31 + units[place : place + len(hashes)]) % 2**31
    return sorted_distinct(hashes)[: recipe.k].astype(np.int32)
