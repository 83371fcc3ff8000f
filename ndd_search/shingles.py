"""Tokens to shingle hashes, many documents at a time."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from ndd_search.config import Recipe
from ndd_search.text import code_points, normalise, token_bounds, tokens

Hashes = npt.NDArray[np.uint64]
_P, _Q = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


def shingle_hashes(text: str, recipe: Recipe) -> Hashes:
    if recipe.kind == "words":
        return _word_shingles(text, recipe)
    return _mix(np.array([_hash_text(one) for one in shingle_texts(text, recipe)], np.uint64) + np.uint64(recipe.seed))


def shingle_texts(text: str, recipe: Recipe) -> list[str]:
    words = tokens(text, recipe)
    if recipe.kind == "words":
        return (
            [" ".join(words[i : i + recipe.size]) for i in range(max(len(words) - recipe.size, 0) + 1)] if words else []
        )
    joined = " ".join(words)
    return [joined[i : i + recipe.size] for i in range(max(len(joined) - recipe.size, 0) + 1)] if joined else []


def _hash_text(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) * 0x9E3779B97F4A7C15 & (2**64 - 1)


def _word_shingles(text: str, recipe: Recipe) -> Hashes:
    points = code_points(normalise(text, recipe))
    starts, ends = token_bounds(points)
    if not len(starts):
        return np.empty(0, np.uint64)
    powers = np.cumprod(np.full(len(points) + 1, _P))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum((points.astype(np.uint64) + np.uint64(1)) * powers[:-1])))
    inverse = np.cumprod(np.full(len(points) + 1, np.uint64(pow(int(_P), -1, 2**64))))
    hashed = _mix((sums[ends] - sums[starts]) * inverse[starts])
    size = min(recipe.size, len(hashed))
    total = np.zeros(len(hashed) - size + 1, np.uint64)
    for place in range(size):
        total = total * _Q + hashed[place : place + len(total)]
    return _mix(total + np.uint64(recipe.seed))


def _mix(values: Hashes) -> Hashes:
    values = (values ^ (values >> np.uint64(32))) * _M1
    values = (values ^ (values >> np.uint64(29))) * _M2
    return values ^ (values >> np.uint64(32))
