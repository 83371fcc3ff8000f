"""Collections made for tests: texts that are copies of others, and texts that stand in one of a few frames."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ndd_search.core.sketching.sketches import Sketches

STORY = "The minister opened the new bridge over the river on Monday and spoke of better days for the whole valley"
OTHER = "A recipe for bread asks for flour, water, salt and yeast, an oven, and above all a quiet afternoon at home"
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "body": STORY, "published": "2024-01-02", "site": "one"},
    {"id": "b", "body": f"{STORY} today", "published": "2024-01-03", "site": "two"},
    {"id": "c", "body": OTHER, "published": "2024-01-01", "site": "one"},
    {"id": "d", "body": "", "published": "2024-01-01", "site": "two"},
]


def write_lines(path: Path, documents: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(one) + "\n" for one in documents)
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write(text)
    return path


def texts(count: int, seed: int = 0, frames: int = 5, copies: float = 0.2, framed: float = 0.5) -> Iterator[str]:
    """Texts of about 1 kB. copies: the share that repeats an earlier text with up to 5 words changed; framed: the share
    that stands in one of some frames of 30 to 120 words.
    """
    random = np.random.default_rng(seed)
    words = np.array([f"w{number:x}" for number in range(30_000)])
    often = np.cumsum(1 / np.arange(1, len(words) + 1))
    often /= often[-1]
    frame = [words[random.integers(0, len(words), random.integers(30, 120))] for _ in range(frames)]
    kept: list[np.ndarray] = []
    for _ in range(count):
        if kept and random.random() < copies:
            text = kept[random.integers(len(kept))].copy()
            for _ in range(random.integers(0, 6)):
                text[random.integers(len(text))] = words[random.integers(len(words))]
        else:
            text = words[np.searchsorted(often, random.random(int(random.integers(80, 220))))]
            if len(kept) < 50_000:
                kept.append(text)
            else:
                kept[random.integers(len(kept))] = text
        around = frame[random.integers(frames)] if random.random() < framed else frame[0][:0]
        half = len(around) // 2
        yield " ".join([*around[:half], *text, *around[half:]])


def sketches(seed: int, count: int, k: int) -> Sketches:
    """Sketches of which many share values: copies, frames, equal ones, short ones and empty ones."""
    random = np.random.default_rng(seed)
    frames = [random.integers(0, 2**31, random.integers(1, k)) for _ in range(3)]
    rows: list[np.ndarray] = []
    for _ in range(count):
        kind = random.integers(0, 10)
        if kind == 0 or not rows:
            row = random.integers(0, 2**31, random.integers(0, 2 * k))
        elif kind == 1:
            row = rows[random.integers(len(rows))]
        elif kind < 5:  # a copy with some values changed
            row = rows[random.integers(len(rows))].copy()
            changed = random.random(len(row)) < random.random()
            row[changed] = random.integers(0, 2**31, changed.sum())
        else:  # a frame around few or many values
            row = np.concatenate((frames[random.integers(3)], random.integers(0, 2**31, random.integers(0, 2 * k))))
        rows.append(np.unique(row)[:k].astype(np.int32))
    lengths = [len(row) for row in rows]
    return Sketches(np.concatenate(rows), np.concatenate(([0], np.cumsum(lengths))).astype(np.int64))
