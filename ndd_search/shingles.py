"""Shingles and their hashes, many texts at a time.

A shingle is a list of tokens: `size` words in a row; one "word" of `size` characters in a row (of the text with one
space wherever tokens are separated); the words of a line; the stems of a sentence.

The hash "mix64" of a shingle, in arithmetic modulo 2**64, where c is a code point and "seed" the recipe's:

    token(word)    = c[0] + c[1] * P + c[2] * P**2 + ...
    state(shingle) = token[0] + token[1] * Q + token[2] * Q**2 + ... + seed * R
    x    = state * A
    x    = x ^ (x >> 32)
    hash = x * B

    P = 0x9E3779B97F4A7C15   Q = 0xC2B2AE3D27D4EB4F   R = 0xD6E8FEB86659FD93
    A = 0xFF51AFD7ED558CCD   B = 0xC4CEB9FE1A85EC53

A text with fewer than `size` tokens (characters) gives one shingle of what there is; none gives none.
The hash "crc32" of a line or sentence is zlib.crc32 of its words joined by spaces, in UTF-8, times 2**32: the high half
(`hash >> 32`) is the CRC itself, and a sketch, which keeps the high 31 bits, keeps the CRCs' order.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.config import Recipe
from ndd_search.sentences import sentences
from ndd_search.text import Clean, Points, clean, clean_short, join_short, prepare, split
from ndd_search.unicode_table import Places

Hashes = npt.NDArray[np.uint64]

P, Q, R = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93
A, B = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_MASK = 2**64 - 1
_HALF, _B = np.array(32, np.uint64), np.array(B, np.uint64)  # arrays without dimensions: numpy's fast lane
_BLOCK = 1 << 15  # code points at a time: their 8-byte sums stay in the second cache of a processor
_P_BLOCK, _P_BLOCK_BACK = pow(P, _BLOCK, 2**64), pow(P, -_BLOCK, 2**64)


def _powers(first: int, base: int) -> Hashes:
    factors = np.full(_BLOCK, base, np.uint64)
    factors[0] = first
    return np.multiply.accumulate(factors)


_POWERS = _powers(1, P)  # P**i for every place in a block
_INVERSES = _powers(A * pow(P, -1, 2**64) & _MASK, pow(P, -1, 2**64))  # A * P**-(i + 1)


class Hashed(NamedTuple):
    """The shingle hashes of texts: those of text i are hashes[first[i]:first[i] + number[i]]; others are nobody's."""

    hashes: Hashes
    first: Places
    number: Places


def shingle_hashes(texts: Sequence[str], recipe: Recipe) -> tuple[Hashes, Places]:
    """The hash of every shingle, in the order of the texts, repeated where a shingle is.

    Returns (hashes, offsets): uint64, and int64 of shape (n + 1,); text i has hashes[offsets[i]:offsets[i + 1]].
    """
    hashes, first, number = hash_shingles(texts, recipe)
    offsets = np.cumsum([0, *number.tolist()])
    return hashes[np.repeat(first - offsets[:-1], number) + np.arange(offsets[-1])], offsets


def shingle_texts(text: str, recipe: Recipe) -> list[str]:
    """The shingles of a text for people to read, in order and with repeats: tokens joined by spaces."""
    text = prepare(text, recipe)
    if recipe.kind == "lines":
        return [" ".join(line) for line in _lines(text)]
    if recipe.kind == "sentences":
        return [" ".join(stems) for stems in sentences(text, recipe.language)]
    words = split(clean([text], apart=recipe.kind == "words").points)
    if recipe.kind == "words":
        return [" ".join(words[i : i + recipe.size]) for i in _windows(len(words), recipe.size)]
    line = " ".join(words)
    return [line[i : i + recipe.size] for i in _windows(len(line), recipe.size)]


def _windows(length: int, size: int) -> range:
    return range(min(length, 1) if length < size else length - size + 1)


def hash_shingles(texts: Sequence[str], recipe: Recipe) -> Hashed:
    """What `shingle_hashes` returns, less tidy and without a copy."""
    if recipe.markup != "keep" or recipe.urls != "keep":
        texts = [prepare(text, recipe) for text in texts]
    if recipe.kind == "words":
        return _hash_words(clean(texts, apart=True), recipe)
    if recipe.kind == "characters":
        return _hash_characters(clean(texts, apart=False), recipe)
    groups = [list(_lines(text) if recipe.kind == "lines" else sentences(text, recipe.language)) for text in texts]
    count = np.array([len(group) for group in groups], np.int64)
    return Hashed(_hash_groups(list(chain.from_iterable(groups)), recipe), np.cumsum(count) - count, count)


def _hash_words(texts: Clean, recipe: Recipe) -> Hashed:
    points, offsets = texts
    inside = points != 0
    edges = (inside[1:] != inside[:-1]).nonzero()[0]  # in turn the separator before a token and its last letter
    tokens = token_hashes(points, edges)
    bounds = np.searchsorted(edges[::2], offsets - 1)
    return _hash_windows(tokens, bounds[:-1], np.diff(bounds), recipe)


def hash_short(text: str, recipe: Recipe) -> Hashes | None:
    """The shingle hashes of one short text, at a fraction of the price of `hash_shingles`.

    None if it is not that simple: lines and sentences, fewer tokens than `size`, markup, URLs to drop.
    """
    if recipe.markup != "keep" or recipe.urls != "keep":
        return None
    if recipe.kind == "words":
        points = clean_short(text, apart=True)
        inside = points.astype(np.bool_)
        edges = (inside[1:] != inside[:-1]).nonzero()[0]
        if len(edges) < 2 * recipe.size:
            return None
        sums = np.add.accumulate(_POWERS[: len(points)] * points).take(edges)
        tokens = sums[1::2] - sums[::2]
        tokens *= _INVERSES.take(edges[::2])
        return mix(np.correlate(tokens, _weights(recipe.size)), recipe.seed)
    if recipe.kind == "characters":
        line = join_short(text)
        if len(line) <= recipe.size:
            return None
        sums = np.add.accumulate(_POWERS[: len(line)] * line)
        states = sums[recipe.size :] - sums[: -recipe.size]
        states *= _INVERSES[: len(states)]
        return mix(states, recipe.seed)
    return None


@cache
def _weights(size: int) -> Hashes:
    """Q**i for every token of a shingle."""
    return np.array([pow(Q, i, 2**64) for i in range(size)], np.uint64)


def token_hashes(points: Points, edges: Places) -> Hashes:
    """token(word) * A of runs of code points.

    edges: for each run in turn, ascending, the place before it and its last place.
    A run's share of the sum of c[i] * P**i over the whole array, times P**-start, is its own polynomial.
    """
    work = np.empty(min(_BLOCK, len(points)), np.uint64)
    sums, tokens = np.empty(len(edges), np.uint64), np.empty(len(edges) // 2, np.uint64)
    cuts = np.searchsorted(edges, np.arange(0, len(points) + _BLOCK, _BLOCK)).tolist()
    done, power, inverse = 0, 1, 1  # the sum of all blocks before, P**start, P**-start
    for start, (low, high) in zip(range(0, len(points), _BLOCK), pairwise(cuts), strict=True):
        part, here = points[start : start + _BLOCK], edges[low:high] - start
        running = work[: len(part)]
        np.multiply(_POWERS[: len(part)], part, out=running)
        np.add.accumulate(running, out=running)
        first = low % 2  # 1 if the first edge is the end of a run
        if start:
            sums[low:high] = running.take(here) * np.uint64(power) + np.uint64(done)
            scale = _INVERSES.take(here[first::2]) * np.uint64(inverse)
        else:
            sums[low:high] = running.take(here)
            scale = _INVERSES.take(here[::2])
        tokens[(low + first) // 2 : (high + 1) // 2] = scale
        done = (done + power * int(running[-1])) & _MASK
        power, inverse = power * _P_BLOCK & _MASK, inverse * _P_BLOCK_BACK & _MASK
    tokens *= sums[1::2] - sums[::2]
    return tokens


def _hash_windows(tokens: Hashes, first: Places, length: Places, recipe: Recipe) -> Hashed:
    """Hash every `size` tokens in a row.

    tokens: token * A. first, length: where the tokens of each text are.
    """
    size = recipe.size
    full = max(len(tokens) - size + 1, 0)
    states = np.empty(len(tokens), np.uint64)  # as many as there are tokens: room for the texts shorter than a window
    states[full:] = 0
    states[:full] = tokens[size - 1 :]
    for j in range(size - 2, -1, -1):
        states[:full] *= np.uint64(Q)
        states[:full] += tokens[j : j + full]
    short = np.flatnonzero((length < size) & (length > 0))
    for i in short.tolist():
        states[first[i]] = _polynomial(tokens[first[i] : first[i] + length[i]].tolist(), Q)
    return Hashed(mix(states, recipe.seed), first, np.where(length < size, np.minimum(length, 1), length - size + 1))


def mix(states: Hashes, seed: int) -> Hashes:
    """The hashes of states * A (still without the seed), in place."""
    if seed:
        states += np.uint64(seed * R * A & _MASK)
    states ^= states >> _HALF
    states *= _B
    return states


def _polynomial(values: Sequence[int], base: int) -> int:
    total = 0
    for value in reversed(values):
        total = (total * base + value) & _MASK
    return total


def _hash_characters(texts: Clean, recipe: Recipe) -> Hashed:
    size = recipe.size
    line, first, length = _join_tokens(texts)
    states = np.zeros(len(line), np.uint64)
    work = np.empty(min(_BLOCK, len(line)), np.uint64)
    step = _BLOCK - size
    for start in range(1, len(line) - size + 1, step):
        part = line[start - 1 : start - 1 + _BLOCK]
        running = work[: len(part)]
        np.multiply(_POWERS[: len(part)], part, out=running)
        np.add.accumulate(running, out=running)
        windows = states[start : start + len(part) - size]
        np.subtract(running[size:], running[:-size], out=windows)
        windows *= _INVERSES[: len(windows)]
    for i in np.flatnonzero((length < size) & (length > 0)).tolist():
        states[first[i]] = _polynomial(line[first[i] : first[i] + length[i]].tolist(), P) * A & _MASK
    count = np.where(length < size, np.minimum(length, 1), length - size + 1)
    return Hashed(mix(states, recipe.seed), first, count)


def _join_tokens(texts: Clean) -> tuple[Points, Places, Places]:
    """The texts with one space for every run of separators: code points, where each text starts, how long it is."""
    points = texts.points.copy()
    points[texts.offsets - 1] = 1  # marks that outlive the squeezing
    kept = points != 0
    kept[1:] |= points[:-1] > 1
    line = points[kept]
    bounds = np.flatnonzero(line == 1)
    np.maximum(line, ord(" "), out=line)
    first = bounds[:-1] + 1
    length = np.maximum(bounds[1:] - first - (line[bounds[1:] - 1] == ord(" ")), 0)
    return line, first, length


def _hash_groups(groups: Sequence[Sequence[str]], recipe: Recipe) -> Hashes:
    """The hash of each group of tokens, whatever their number."""
    if recipe.hash == "crc32":
        numbers = [zlib.crc32(" ".join(group).encode("utf-8", "surrogatepass")) for group in groups]
        return np.array(numbers, np.uint64) << np.uint64(32)
    states = [
        _polynomial([_polynomial(list(map(ord, token)), P) for token in group], Q) * A & _MASK for group in groups
    ]
    return mix(np.array(states, np.uint64), recipe.seed)


def _lines(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if words := split(clean([line], apart=True).points):
            yield words
