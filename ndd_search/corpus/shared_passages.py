"""Frames as text: the passages that most documents of a collection share, such as headers, footers and notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.core.text.shingles import shingle_hashes, shingle_texts

SHOWN = 10  # frames
_LOOKED_UP = 2_000  # values of the table, the most common first
_COMPANIONS = 4  # documents that a document is compared with
_LEAST = 3  # common values of a document, and shingles of a passage


@dataclass(frozen=True)
class Frame:
    """What a document has in common with others that are not near-duplicates of it.

    text: its passages. share: of the documents that hold the most common part of them, 0..1, in a sample.
    """

    document: int
    text: str
    share: float


def find_frames(
    sketches: Sketches,
    leader: Ranks,
    table: FrequencyTable,
    recipe: Recipe,
    read: Callable[[Iterable[int]], Mapping[int, str]],
) -> list[Frame]:
    """The most common passages, each out of one document, the most common first.

    leader: of each document, as in Groups; documents of one group are not compared, as they share more than a frame.
    read:   returns the texts of some documents by place; those that cannot be read may be missing.
    """
    order = np.argsort(-table.counts, kind="stable")[:_LOOKED_UP]
    shares = dict(zip(table.values[order].tolist(), (table.counts[order] / table.documents).tolist(), strict=True))
    examples = _examples(sketches, leader, table.values[order])
    texts = read({place for example, others in examples.items() for place in (example, *others)})
    frames = []
    for example, others in examples.items():
        there = [texts[place] for place in others if place in texts]
        if example in texts and there:
            passages, share = _passages(texts[example], there, shares, recipe)
            if passages:
                frames.append(Frame(example, " … ".join(passages), share))
    return sorted(frames, key=lambda frame: -frame.share)


def _examples(sketches: Sketches, leader: Ranks, values: np.ndarray) -> dict[int, list[int]]:
    """A few documents that hold most of some values together, each with others that share most of its values."""
    at = np.flatnonzero(np.isin(sketches.values, values))
    owners: Ranks = np.searchsorted(sketches.offsets, at, side="right") - 1
    held, left = sketches.values[at], np.ones(len(at), np.bool_)
    examples: dict[int, list[int]] = {}
    while len(examples) < SHOWN and left.any():
        counts = np.bincount(owners[left])
        best = int(counts.argmax())
        if counts[best] < _LEAST:
            break
        covered = np.isin(held, held[(owners == best) & left])
        shared = np.bincount(owners[covered], minlength=len(leader)) * (leader != leader[best])
        others = np.argsort(-shared, kind="stable")[:_COMPANIONS]
        examples[best] = [int(place) for place in others if shared[place] >= _LEAST]
        left &= ~covered
    return examples


def _passages(text: str, others: list[str], shares: Mapping[int, float], recipe: Recipe) -> tuple[list[str], float]:
    """The passages of a text that half of some others have, too, and the share of their most common shingle."""
    holders = Counter[int]()
    for other in others:
        holders.update(set(_values(other, recipe)))
    values, shingles = _values(text, recipe), shingle_texts(text, recipe)
    common = [place for place, value in enumerate(values) if 2 * holders[value] >= len(others)]
    passages, share, start = [], 0.0, 0
    for end in range(1, len(common) + 1):
        if end < len(common) and common[end] == common[end - 1] + 1:
            continue
        if end - start >= _LEAST:
            passages.append(_joined([shingles[place] for place in common[start:end]], recipe))
            share = max(share, *(shares.get(values[place], 0.0) for place in common[start:end]))
        start = end
    return passages, share


def _values(text: str, recipe: Recipe) -> list[int]:
    """The sketch value of each shingle of a text, in order."""
    values: list[int] = (shingle_hashes([text], recipe)[0] >> np.uint64(33)).tolist()
    return values


def _joined(shingles: list[str], recipe: Recipe) -> str:
    """The text of consecutive shingles. Those of words overlap in all but one word."""
    if recipe.kind != "words":
        return " ".join(shingles)
    return " ".join([*(shingle.split(" ")[0] for shingle in shingles[:-1]), shingles[-1]])
