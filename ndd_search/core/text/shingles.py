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
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.hash_numbers import HashNumbers
from ndd_search.core.recipe import Recipe
from ndd_search.core.text.sentences import SHORT_WORD, Stems, sentences, stems_of
from ndd_search.core.text.tokens import find_tokens, prepare, runs, split
from ndd_search.core.text.unicode_tables import Numbers, Places, code_points, native_table

Hashes = npt.NDArray[np.uint64]

BATCH = 1 << 18  # characters in a batch for numpy
MOST_AHEAD = 64  # texts read before their lengths are checked

P, Q, R = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93
A, B = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_MASK = 2**64 - 1


def shingle_hashes(texts: Sequence[str], recipe: Recipe, *, prepared: bool = False) -> tuple[Hashes, Places]:
    """Return the hash of every shingle, in text order, including repeats.

    prepared: whether markup and URLs are removed already, if the recipe removes them.
    Returns (hashes, offsets): uint64, and int64 of shape (n + 1,); text i has hashes[offsets[i]:offsets[i + 1]].
    """
    if not (prepared or recipe.keeps_all):
        texts = [prepare(text, recipe) for text in texts]
    hash_texts = {"words": _hash_words, "characters": _hash_characters}.get(recipe.kind, _hash_units)
    hashes, counts = hash_texts(texts, recipe)
    return hashes, np.concatenate(([0], np.cumsum(counts)))


def shingle_texts(text: str, recipe: Recipe) -> list[str]:
    """Return the shingles of a text in readable form, in order and with repeats: tokens joined by spaces."""
    return many_shingle_texts([text], recipe)[0]


def many_shingle_texts(texts: Sequence[str], recipe: Recipe) -> list[list[str]]:
    """Do the same for each of some texts."""
    texts = [prepare(text, recipe) for text in texts]
    if recipe.kind != "characters":
        return _shingles(texts, recipe)
    lines = [" ".join(split(text, apart=False)) for text in texts]
    return [[line[i : i + recipe.size] for i in _windows(len(line), recipe.size)] for line in lines]


def _windows(length: int, size: int) -> range:
    """Return where the shingles of a text of `length` tokens begin."""
    return range(min(length, 1) if length < size else length - size + 1)


def _shingles(texts: Sequence[str], recipe: Recipe) -> list[list[str]]:
    """Return every `size` consecutive words, lines or sentences of each prepared text, with one space between words.

    The words of sentences are stems. Lines and sentences without words are left out.
    """
    if recipe.kind == "words":
        found = [line.split() for line in _words_of(texts, None)]
    else:
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
    words = (split(text, apart=stems is None) for text in texts)
    if stems is not None:
        words = ([stems[word] for word in one if len(word) > SHORT_WORD] for one in words)
    return list(map(" ".join, words))


def _hash_words(texts: Sequence[str], recipe: Recipe) -> tuple[Hashes, Places]:
    """Return the hashes of prepared texts, and the number of hashes of each."""
    numbers, tokens = _numbers(recipe), find_tokens(texts)
    hashed = _polynomials(_terms(tokens.points, numbers), tokens.lengths, numbers.p) * np.uint64(numbers.a)
    states, counts = _roll(hashed, tokens.counts, recipe.size, numbers.q)
    return _mix(states, numbers), counts


def _hash_characters(texts: Sequence[str], recipe: Recipe) -> tuple[Hashes, Places]:
    """Do the same for shingles of characters, each one a word of its own."""
    numbers, lines = _numbers(recipe), [" ".join(split(text, apart=False)) for text in texts]
    lengths = np.array(list(map(len, lines)), np.int64)
    states, counts = _roll(_terms(code_points("".join(lines)), numbers), lengths, recipe.size, numbers.p)
    return _mix(states * np.uint64(numbers.a), numbers), counts


def _hash_units(texts: Sequence[str], recipe: Recipe) -> tuple[Hashes, Places]:
    """Do the same for shingles of lines or sentences."""
    units = _shingles(texts, recipe)
    counts, every = np.array(list(map(len, units)), np.int64), list(chain(*units))
    if recipe.hash == "crc32":
        codes = [zlib.crc32(unit.encode("utf-8", "surrogatepass")) for unit in every]
        return np.array(codes, np.uint64) << np.uint64(32), counts
    numbers, points = _numbers(recipe), code_points("\n".join([*every, ""]))
    behind = np.flatnonzero(points <= ord(" "))  # each word
    hashed = _polynomials(_terms(points[points > ord(" ")], numbers), np.diff(behind, prepend=-1) - 1, numbers.p)
    words = np.diff(np.flatnonzero(points[behind] == ord("\n")), prepend=-1)  # number in each unit
    return _mix(_polynomials(hashed * np.uint64(numbers.a), words, numbers.q), numbers), counts


def _numbers(recipe: Recipe) -> HashNumbers:
    """Return the numbers of a recipe's hash: without a key the public ones, with a second factor of 0 for none."""
    return recipe.numbers or HashNumbers(0, 1, P, Q, A, recipe.seed * R * A & _MASK, B, 0)


def _terms(points: Numbers, numbers: HashNumbers) -> Hashes:
    """Return what stands for each code point; without a key the code point itself."""
    mixed = (points + np.uint64(numbers.add)) * np.uint64(numbers.times)
    terms: Hashes = mixed ^ mixed >> np.uint64(32)
    return terms


def _polynomials(terms: Hashes, lengths: Places, base: int) -> Hashes:
    """Return terms[0] + terms[1] * base + terms[2] * base**2 + ... of each run of `lengths` terms; 0 of none."""
    powers = np.full(max(int(lengths.max(initial=0)), 1), base, np.uint64)
    powers[0] = 1
    np.multiply.accumulate(powers, out=powers)
    sums = np.zeros(len(terms) + 1, np.uint64)
    np.cumsum(terms * powers[runs(np.zeros_like(lengths), lengths)], out=sums[1:])  # modulo 2**64, as each difference
    ends = np.cumsum(lengths)
    found: Hashes = sums[ends] - sums[ends - lengths]
    return found


def _roll(terms: Hashes, lengths: Places, size: int, base: int) -> tuple[Hashes, Places]:
    """Return the polynomial of every `size` consecutive terms of each text, and how many there are.

    lengths: number of terms of each text. Of a text of fewer there is one polynomial, of all its terms.
    """
    first = np.cumsum(lengths) - lengths + np.arange(len(lengths)) * size
    line = np.zeros(int(lengths.sum()) + len(lengths) * size + size, np.uint64)
    line[runs(first, lengths)] = terms  # zeros behind each text add nothing to its polynomials
    counts = np.maximum(lengths - size + 1, np.minimum(lengths, 1))
    states = np.zeros(len(line) - size, np.uint64)
    for i in reversed(range(size)):
        states *= np.uint64(base)
        states += line[i : i + len(states)]
    return states[runs(first, counts)], counts


def _mix(states: Hashes, numbers: HashNumbers) -> Hashes:
    """Turn states, times A or a, without the seed, into hashes."""
    states = states + np.uint64(numbers.seed)
    states = (states ^ states >> np.uint64(32)) * np.uint64(numbers.first)
    return (states ^ states >> np.uint64(29)) * np.uint64(numbers.second) if numbers.second else states


def batches_of(texts: Iterable[str], most: int) -> Iterator[list[str]]:
    """Yield lists of texts of about `most` characters in total, a little more if long texts follow short ones."""
    rest, read = iter(texts), 0
    batch: list[str] = []
    room, usual = most, most  # usual: average length of a text with one separator
    while part := list(islice(rest, min(max(room // usual, 1), MOST_AHEAD))):
        if set(map(type, part)) != {str}:
            _check_texts(part, read)
        length = sum(map(len, part)) + len(part)
        batch += part
        read, room, usual = read + len(part), room - length, length // len(part)
        if room <= 0:
            yield batch
            batch, room = [], most
    if batch:
        yield batch


def _check_texts(texts: Iterable[object], first: int) -> None:
    for place, text in enumerate(texts, first):
        if not isinstance(text, str):
            raise TypeError(f"text {place} is {type(text).__name__}, not str: decode bytes, leave out what has no text")
