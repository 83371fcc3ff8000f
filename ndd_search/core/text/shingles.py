"""Shingles and their hashes, for many texts at a time.

A shingle is a list of tokens: `size` consecutive words; one "word" of `size` consecutive characters (of the text with
one space between tokens); the words of `size` consecutive lines; the stems of `size` consecutive sentences.

The hash "mix64" of a shingle, in arithmetic modulo 2**64, where c is a code point and "seed" the recipe's:

    token(word)    = c[0] + c[1] * P + c[2] * P**2 + ...
    state(shingle) = token[0] + token[1] * Q + token[2] * Q**2 + ... + seed * R
    x    = state * A
    x    = x ^ (x >> 32)
    hash = x * B

    P = 0x9E3779B97F4A7C15   Q = 0xC2B2AE3D27D4EB4F   R = 0xD6E8FEB86659FD93
    A = 0xFF51AFD7ED558CCD   B = 0xC4CEB9FE1A85EC53

A text of fewer than `size` tokens (characters) has one shingle of all of them; an empty text has none.

Of a recipe with a key, all numbers are secret (`secret.HashNumbers`). A term replaces each code point c, so that nobody
knows the difference of two texts, in which alone polynomials modulo 2**64 repeat themselves. There is one more of the
last steps: a sketch shows half of each hash, and nobody computes the state back from it without both multipliers.

    term         = (c + add) * times,  term ^ (term >> 32)
    token(word)  = (term[0] + term[1] * p + ...) * a
    x            = token[0] + token[1] * q + ... + seed
    x            = (x ^ (x >> 32)) * first
    hash         = (x ^ (x >> 29)) * second

The hash "crc32" of a line or sentence is zlib.crc32 of its words joined by spaces, in UTF-8, times 2**32. The high half
(`hash >> 32`) is the CRC itself, so a sketch, which keeps the high 31 bits, has the order of the CRCs.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.recipe import Recipe
from ndd_search.core.text.sentences import SHORT_WORD, Stems, sentences, stems_of
from ndd_search.core.text.tokens import Clean, Points, clean, find_tokens, prepare, split, split_each
from ndd_search.core.text.unicode_tables import POINT, Places, code_points, native_table

Hashes = npt.NDArray[np.uint64]

P, Q, R = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93
A, B = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_MASK = 2**64 - 1
_HALF, _B = np.array(32, np.uint64), np.array(B, np.uint64)  # 0-d arrays: numpy is slower with its scalars
_BLOCK = 1 << 15  # code points at a time: their 8-byte sums fit the L2 cache


def _powers(first: int, base: int) -> Hashes:
    factors = np.full(_BLOCK, base, np.uint64)
    factors[0] = first
    return np.multiply.accumulate(factors)


_POWERS = _powers(1, P)  # P**i for each position in a block
_INVERSES = _powers(A * pow(P, -1, 2**64) & _MASK, pow(P, -1, 2**64))  # A * P**-(i + 1)


class Hashed(NamedTuple):
    """Shingle hashes: those of text i are hashes[first[i]:first[i] + number[i]]. Entries in between are unused."""

    hashes: Hashes
    first: Places
    number: Places


def shingle_hashes(texts: Sequence[str], recipe: Recipe) -> tuple[Hashes, Places]:
    """Return the hash of every shingle, in text order, including repeats.

    Returns (hashes, offsets): uint64, and int64 of shape (n + 1,); text i has hashes[offsets[i]:offsets[i + 1]].
    """
    hashes, first, number = hash_shingles(texts, recipe)
    offsets = np.cumsum([0, *number.tolist()])
    return hashes[np.repeat(first - offsets[:-1], number) + np.arange(offsets[-1])], offsets


def shingle_texts(text: str, recipe: Recipe) -> list[str]:
    """Return the shingles of a text in readable form, in order and with repeats: tokens joined by spaces."""
    text = prepare(text, recipe)
    if recipe.kind in ("lines", "sentences"):
        return _units([text], recipe)[0]
    words = split(clean([text], apart=recipe.kind == "words").points)
    if recipe.kind == "words":
        return [" ".join(words[i : i + recipe.size]) for i in _windows(len(words), recipe.size)]
    line = " ".join(words)
    return [line[i : i + recipe.size] for i in _windows(len(line), recipe.size)]


def _windows(length: int, size: int) -> range:
    return range(min(length, 1) if length < size else length - size + 1)


def hash_shingles(texts: Sequence[str], recipe: Recipe, *, prepared: bool = False) -> Hashed:
    """Return the hashes of `shingle_hashes` with gaps between the texts, which saves a copy.

    prepared: whether markup and URLs are removed already, if the recipe removes them.
    """
    if not prepared and (recipe.markup != "keep" or recipe.urls != "keep"):
        texts = [prepare(text, recipe) for text in texts]
    if recipe.fingerprint and recipe.kind in ("words", "characters"):
        return _keyed([_runs(text, recipe) for text in texts], recipe)
    if recipe.kind == "words":
        return _hash_words(clean(texts, apart=True), recipe)
    if recipe.kind == "characters":
        return _hash_characters(clean(texts, apart=False), recipe)
    return _hash_units(_units(texts, recipe), recipe)


def _runs(text: str, recipe: Recipe) -> list[Sequence[str]]:
    """Return the tokens of each shingle of words or characters."""
    words = split(clean([text], apart=recipe.kind == "words").points)
    tokens = words if recipe.kind == "words" else " ".join(words)
    runs = [tokens[i : i + recipe.size] for i in _windows(len(tokens), recipe.size)]
    return list(runs) if recipe.kind == "words" else [[run] for run in runs]  # type: ignore[list-item]


def _hash_units(units: Sequence[list[str]], recipe: Recipe) -> Hashed:
    """Hash lines or sentences, given as words with one space between them."""
    if recipe.numbers:
        return _keyed([[unit.split(" ") for unit in of_text] for of_text in units], recipe)
    count = np.fromiter(map(len, units), np.int64, len(units))
    every = list(chain.from_iterable(units))
    if recipe.hash == "crc32":
        numbers = [zlib.crc32(unit.encode("utf-8", "surrogatepass")) for unit in every]
        return Hashed(np.array(numbers, np.uint64) << np.uint64(32), np.cumsum(count) - count, count)
    points = code_points("\n".join(["", *every, ""]))
    ends = np.flatnonzero(points == ord("\n"))
    points = np.where((points == ord(" ")) | (points == ord("\n")), 0, points)
    edges = find_tokens(points, 0)
    tokens = token_hashes(points, edges)
    starts = np.searchsorted(edges[::2], ends[:-1])
    words = np.diff(starts, append=len(tokens))
    tokens *= _weights(int(words.max(initial=1))).take(np.arange(len(tokens)) - np.repeat(starts, words))
    states = np.add.reduceat(tokens, starts) if len(starts) else tokens
    return Hashed(mix(states, recipe.seed), np.cumsum(count) - count, count)


def _hash_words(texts: Clean, recipe: Recipe) -> Hashed:
    points, offsets, flags = texts
    edges = find_tokens(points, flags)
    tokens = token_hashes(points & POINT if flags > POINT else points, edges)
    bounds = np.searchsorted(edges[::2], offsets - 1)
    return _hash_windows(tokens, bounds[:-1], np.diff(bounds), recipe)


@cache
def _weights(size: int) -> Hashes:
    """Return Q**i for each token of a shingle."""
    return np.array([pow(Q, i, 2**64) for i in range(size)], np.uint64)


def token_hashes(points: Points, edges: Places) -> Hashes:
    """Return token(word) * A for each run of code points.

    edges: for each run in turn, ascending, the position before it and its last position.
    The polynomial of a run is its part of the sum of c[i] * P**i over its block, times P**-start.
    """
    work = np.empty(min(_BLOCK, len(points)), np.uint64)
    tokens = np.empty(len(edges) // 2, np.uint64)
    first = 0
    while first < len(tokens):
        start = int(edges[2 * first])
        last = int(np.searchsorted(edges, start + _BLOCK)) // 2  # the number of runs that end in this block or before
        if last == first:
            tokens[first] = _hash_long(points[start + 1 : edges[2 * first + 1] + 1])
            first += 1
            continue
        part = points[start : edges[2 * last - 1] + 1]
        running = work[: len(part)]
        np.copyto(running, part)  # faster than a product of two dtypes
        running *= _POWERS[: len(part)]
        np.add.accumulate(running, out=running)
        bounds = edges[2 * first : 2 * last] - start
        sums = running.take(bounds)
        np.subtract(sums[1::2], sums[::2], out=tokens[first:last])
        tokens[first:last] *= _INVERSES.take(bounds[::2])
        first = last
    return tokens


def _hash_long(points: Points) -> int:
    """Return token(word) * A of one run longer than a block."""
    total, power = 0, pow(P, _BLOCK, 2**64)
    for start in reversed(range(0, len(points), _BLOCK)):
        part = points[start : start + _BLOCK]
        total = (total * power + int((_POWERS[: len(part)] * part).sum())) & _MASK
    return total * A & _MASK


def _hash_windows(tokens: Hashes, first: Places, length: Places, recipe: Recipe) -> Hashed:
    """Hash every `size` consecutive tokens.

    tokens: token(word) * A. first, length: position and number of the tokens of each text.
    """
    size = recipe.size
    full = max(len(tokens) - size + 1, 0)
    states = np.empty(len(tokens), np.uint64)  # one for each token, so that texts shorter than a window have room
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
    """Turn states * A (without the seed) into hashes, in place."""
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
    """Return the code points with one space for each run of separators, and the start and length of each text."""
    points = texts.points.copy()
    points[texts.offsets - 1] = 1  # 1 marks the end of a text in `line`
    kept = points != 0
    kept[1:] |= points[:-1] > 1
    line = points[kept]
    bounds = np.flatnonzero(line == 1)
    np.maximum(line, ord(" "), out=line)
    first = bounds[:-1] + 1
    length = np.maximum(bounds[1:] - first - (line[bounds[1:] - 1] == ord(" ")), 0)
    return line, first, length


def _keyed(groups: Sequence[Sequence[Sequence[str]]], recipe: Recipe) -> Hashed:
    """Hash the shingles of each text, lists of tokens, with the recipe's key."""
    secret, known = recipe.numbers, dict[str, int]()
    assert secret
    hashes = []
    for tokens in chain.from_iterable(groups):
        for token in tokens:
            if token not in known:
                known[token] = _polynomial([secret.term(ord(letter)) for letter in token], secret.p) * secret.a & _MASK
        state = _polynomial([known[token] for token in tokens], secret.q) + secret.seed & _MASK
        state = (state ^ state >> 32) * secret.first & _MASK
        hashes.append((state ^ state >> 29) * secret.second & _MASK)
    count = np.fromiter(map(len, groups), np.int64, len(groups))
    return Hashed(np.array(hashes, np.uint64), np.cumsum(count) - count, count)


def _units(texts: Sequence[str], recipe: Recipe) -> list[list[str]]:
    """Return every `size` consecutive lines or sentences of each prepared text that hold words, as these words.

    One space is between words. The words of sentences are stems.
    """
    is_lines = recipe.kind == "lines"
    parts = [text.splitlines() if is_lines else sentences(text) for text in texts]
    written = iter(_words_of(list(chain.from_iterable(parts)), None if is_lines else stems_of(recipe.language)))
    found = [[unit for unit in islice(written, len(part)) if unit] for part in parts]
    if recipe.size == 1:
        return found
    return [[" ".join(one[i : i + recipe.size]) for i in _windows(len(one), recipe.size)] for one in found]


def _words_of(texts: Sequence[str], stems: Stems | None) -> list[str]:
    """Return the words of each text with one space between them; of stems, those of words of four letters or more."""
    if native.core:
        plain, plan = bytes(map(str.isascii, texts)), (stems is None, 1, 0, 1)
        written = native.core.words_of(texts, plain, plan, native_table() if 0 in plain else None, stems)
        if written is not None:
            return written.decode("utf-8", "surrogatepass").split("\n")[:-1]
    words = split_each(texts, apart=stems is None)
    if stems is not None:
        words = [[stems[word] for word in one if len(word) > SHORT_WORD] for one in words]
    return list(map(" ".join, words))
