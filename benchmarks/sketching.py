"""Time sketching, next to other libraries in the same process.

    python -m benchmarks.sketching [--k 128] [--rounds 9] [--only words] [--json out.json]

Texts: the Factbook pages of the demonstration made plain ASCII, and articles of the Universal Declaration of Human
Rights in seventeen languages, cut to 140, 1,000, 5,000 and 100,000 characters, or of mixed lengths. Every method starts
from the text. The other libraries have no tokeniser; their shingles come from `re` and slices, the usual way.
The methods of a row alternate; figures are MB of UTF-8 per second of processor time, medians of one thread. Compare
ratios within one run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from benchmarks.measure import Method, measure
from benchmarks.page_check import PLAIN, plainly

import numpy as np  # isort: skip  # after measure, which sets the number of its threads

import ndd_search as ndd
from ndd_search import native
from ndd_search.core.sketching import sketch_many

ROOT = Path(__file__).parent.parent
TOTAL = 400_000  # characters in a row
WORD = re.compile(r"\w+")


def read(path: str) -> list[dict[str, object]]:
    with gzip.open(ROOT / path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def sources() -> dict[str, list[str]]:
    """Return long texts to cut from: one in ASCII, one in each language."""
    pages = [str(page["text"]) for page in read("examples/factbook/factbook.jsonl.gz")]
    languages = read("tests/data/udhr.jsonl.gz")
    return {
        "ASCII": ["\n".join(pages).encode("ascii", "ignore").decode()],
        "17 languages": ["\n".join(map(str, cast(list[str], one["articles"]))) for one in languages],
    }


def cut(texts: list[str], length: int | None) -> list[str]:
    """Return about TOTAL characters as texts of `length` characters, or of mixed lengths around 2,000."""
    rng = random.Random(1)
    pieces: list[str] = []
    while sum(map(len, pieces)) < TOTAL:
        text = texts[len(pieces) % len(texts)]
        size = length or min(int(rng.lognormvariate(7.6, 1.2)), 100_000)
        text *= 1 + size // len(text)
        start = rng.randrange(len(text) - size + 1)
        pieces.append(text[start : start + size])
    return pieces


LENGTHS = {"140": 140, "1,000": 1000, "5,000": 5000, "100,000": 100_000, "mixed": None}


def word_shingles(text: str) -> list[str]:
    words = WORD.findall(text.lower())
    return list(map(" ".join, zip(words, words[1:], words[2:], strict=False))) or [" ".join(words)]


def character_shingles(text: str) -> list[str]:
    line = " ".join(text.lower().split())
    return [line[i : i + 5] for i in range(max(len(line) - 4, 1))]


KINDS = {
    "words": (ndd.Recipe.words, word_shingles),
    "characters": (ndd.Recipe.characters, character_shingles),
}


BATCH, SINGLE, RE, RENSA = "batch", "one by one", "re and crc32", "rensa"
RATIOS = [(BATCH, RENSA), (SINGLE, RE), (f"{PLAIN}, {BATCH}", RENSA), (f"{PLAIN}, {SINGLE}", RE)]


def methods(kind: str, texts: list[str], k: int) -> dict[str, Method]:
    recipe_of, shingles = KINDS[kind]
    recipe = recipe_of(k=k)
    ours: dict[str, Method] = {
        BATCH: lambda: sketch_many(texts, recipe, threads=1),
        SINGLE: lambda: [ndd.sketch(text, recipe) for text in texts],
    }
    plain = {f"{PLAIN}, {name}": plainly(method) for name, method in ours.items()}
    found = (ours if native.core else {}) | plain
    found[RE] = lambda: [sorted({zlib.crc32(one.encode()) for one in shingles(text)})[:k] for text in texts]
    try:
        import rensa

        found[RENSA] = lambda: rensa.RMinHash.digest_matrix_from_token_sets(map(shingles, texts), num_perm=k, seed=42)
    except ImportError as missing:
        print(f"without rensa: {missing}", file=sys.stderr)
    try:
        from datasketch import MinHash

        def bulk() -> object:
            return MinHash.bulk([[one.encode() for one in set(shingles(text))] for text in texts], num_perm=k)

        found["datasketch"] = bulk
    except ImportError as missing:
        print(f"without datasketch: {missing}", file=sys.stderr)
    return found


def check(k: int, rounds: int, only: str = "") -> list[dict[str, Any]]:
    """Return a row for each kind of shingles and texts: MB/s by method, and ratios."""
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        for name, texts in sources().items():
            for size, length in LENGTHS.items():
                if only not in f"{kind}, {name}, {size}":
                    continue
                pieces = cut(texts, length)
                megabytes = sum(len(piece.encode()) for piece in pieces) / 1e6
                times = measure(methods(kind, pieces, k), rounds)
                speeds = {method: megabytes / time * 1e6 for method, time in times.items()}
                ratios = {f"{a} / {b}": speeds[a] / speeds[b] for a, b in RATIOS if a in speeds and b in speeds}
                rows.append({"shingles": kind, "texts": name, "characters": size, "MB/s": speeds, "x": ratios})
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table."""
    names, ratios = list(rows[0]["MB/s"]), list(rows[0]["x"])
    head = ["shingles", "texts", "characters", *names, *ratios]
    lines = [f"| {' | '.join(head)} |", "|---|---|--:|" + "--:|" * (len(head) - 3)]
    for row in rows:
        cells = [row[name] for name in head[:3]]
        cells += [f"{row['MB/s'][name]:.1f}" for name in names] + [f"{row['x'][name]:.1f}x" for name in ratios]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=128, help="values in a sketch, permutations in a signature (128)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose name holds this, as in 'words, ASCII, 140'")
    parser.add_argument("--json", help="write the figures to this file as well")
    arguments = parser.parse_args()
    rows = check(arguments.k, arguments.rounds, arguments.only)
    print(table(rows))
    if arguments.json:
        versions = {"python": sys.version.split()[0], "numpy": np.__version__}
        Path(arguments.json).write_text(json.dumps({"k": arguments.k, "versions": versions, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
