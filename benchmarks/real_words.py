"""Generated texts with the words, sentences and common phrases of the demonstration collection, for large collections.

A word is followed by one that follows it in the collection in half of all places, else by any word, drawn by its
frequency: a quarter of all three-word shingles are phrases that many texts share, as in real text. Texts have 80 to
220 words, or others in proportion. A fifth repeat an earlier text: up to five words changed, in a third of them the end
missing, in a third a dateline before it. Half of all stand in the frame of one of some sites, 30 to 120 words.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

BATCH = 2_000
KEPT = 50_000  # texts that may be repeated
LONGEST = 220
FACTBOOK = Path(__file__).parents[1] / "examples" / "factbook" / "factbook.jsonl.gz"


def texts(
    count: int, seed: int = 0, frames: int = 200, copies: float = 0.2, framed: float = 0.5, longest: int = LONGEST
) -> Iterator[str]:
    """Yield texts without line ends, the same for equal arguments. longest: words of a text at most."""
    random = np.random.default_rng(seed)
    packed = FACTBOOK.read_bytes()
    documents = (json.loads(line)["text"].split() for line in gzip.decompress(packed).splitlines())
    words, stream = np.unique(np.array([word for words in documents for word in words]), return_inverse=True)
    follows = stream[1:][np.argsort(stream[:-1], kind="stable")]
    ends = np.cumsum(np.bincount(stream[:-1], minlength=len(words)))
    starts = np.concatenate(([0], ends[:-1]))

    def chains(lengths: np.ndarray) -> np.ndarray:
        """One row of `longest` words for each length."""
        rows = stream[random.integers(len(stream), size=(len(lengths), longest))]
        goes_on = random.random(rows.shape) < 0.5
        places = random.random(rows.shape)
        for at in range(1, longest):
            before = rows[:, at - 1]
            choices = ends[before] - starts[before]
            chained = goes_on[:, at] & (choices > 0)
            after = follows[np.minimum(starts[before] + (places[:, at] * choices).astype(int), len(follows) - 1)]
            rows[chained, at] = after[chained]
        return rows

    sizes = random.integers(longest * 3 // 22, longest * 6 // 11, frames)
    frame = [row[:size] for row, size in zip(chains(sizes), sizes, strict=True)]
    kept: list[np.ndarray] = []
    for start in range(0, count, BATCH):
        lengths = random.integers(longest * 4 // 11, longest, min(BATCH, count - start))
        for row, length in zip(chains(lengths), lengths, strict=True):
            lead = ""
            if kept and random.random() < copies:
                text = kept[random.integers(len(kept))].copy()
                text[random.integers(len(text), size=random.integers(6))] = stream[random.integers(len(stream))]
                edit = random.integers(3)
                text = text[: len(text) * 4 // 5] if edit == 0 else text
                lead = f"{words[stream[random.integers(len(stream))]].upper()}, May 5 - " if edit == 1 else ""
            else:
                text = row[:length].copy()
                if len(kept) < KEPT:
                    kept.append(text)
                else:
                    kept[random.integers(KEPT)] = text
            around = frame[random.integers(frames)] if random.random() < framed else frame[0][:0]
            half = len(around) // 2
            yield lead + " ".join(words[np.concatenate((around[:half], text, around[half:]))])
