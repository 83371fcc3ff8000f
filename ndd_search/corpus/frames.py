"""Frames as text: the passages that most documents of a collection share, such as headers, footers and notices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.matching.rows import Ranks
from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import Sketches
from ndd_search.text.shingles import shingle_hashes, shingle_texts

SHOWN = 10  # frames
_LOOKED_UP = 2_000  # values of the table, the most common first
_GAP = 8  # shingles between two common ones that belong to one passage: a sketch holds only some of them
_LEAST = 3  # common values of a passage


@dataclass(frozen=True)
class Frame:
    """A passage of a document. share: of the documents that hold its most common part, 0..1, in a sample."""

    document: int
    text: str
    share: float


def find_frames(
    sketches: Sketches, table: FrequencyTable, recipe: Recipe, read: Callable[[Iterable[int]], Mapping[int, str]]
) -> list[Frame]:
    """The most common passages, each out of one document, the most common first.

    read: returns the texts of some documents by place; those that cannot be read may be missing.
    """
    if not len(table.values):
        return []
    order = np.argsort(-table.counts, kind="stable")[:_LOOKED_UP]
    shares = dict(zip(table.values[order].tolist(), (table.counts[order] / table.documents).tolist(), strict=True))
    texts = read(_examples(sketches, table.values[order]))
    frames = []
    for place in sorted(texts):
        passages = _passages(texts[place], shares, recipe)
        if passages:
            frames.append(Frame(place, " … ".join(text for text, _ in passages), max(share for _, share in passages)))
    return sorted(frames, key=lambda frame: -frame.share)


def _examples(sketches: Sketches, values: np.ndarray) -> list[int]:
    """A few documents that hold most of some values together."""
    at = np.flatnonzero(np.isin(sketches.values, values))
    owners: Ranks = np.searchsorted(sketches.offsets, at, side="right") - 1
    held, left = sketches.values[at], np.ones(len(at), np.bool_)
    chosen: list[int] = []
    while len(chosen) < SHOWN and left.any():
        counts = np.bincount(owners[left])
        best = int(counts.argmax())
        if counts[best] < _LEAST:
            break
        chosen.append(best)
        left &= ~np.isin(held, held[owners == best])
    return chosen


def _passages(text: str, shares: Mapping[int, float], recipe: Recipe) -> list[tuple[str, float]]:
    """The passages of a text that consist of common shingles, with the share of the most common one."""
    hashes, _ = shingle_hashes([text], recipe)
    values, shingles = (hashes >> np.uint64(33)).tolist(), shingle_texts(text, recipe)
    common = [place for place, value in enumerate(values) if value in shares]
    passages: list[tuple[str, float]] = []
    start = 0
    for end in range(1, len(common) + 1):
        if end < len(common) and common[end] - common[end - 1] <= _GAP:
            continue
        if end - start >= _LEAST:
            run = range(common[start], common[end - 1] + 1)
            passages.append((_joined(shingles, run, recipe), max(shares[values[i]] for i in common[start:end])))
        start = end
    return passages


def _joined(shingles: list[str], run: range, recipe: Recipe) -> str:
    """The text of consecutive shingles. Those of words overlap in all but one word."""
    if recipe.kind != "words":
        return " ".join(shingles[place] for place in run)
    return " ".join([*(shingles[place].split(" ")[0] for place in run[:-1]), shingles[run[-1]]])
