"""Time to read 100 hits with their sketches: parsed and then decoded, and with the sketches cut out of the text before.

python -m benchmarks.parsing
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson

from benchmarks.measure import Method, measure
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import SketchField, StoredSketches
from ndd_search.search.rest.read_answer import drop_fields, parsed

HITS, ROUNDS = 100, 15
WORDS = ["the", "engine", "reads", "documents", "and", "returns", "hits", "of", "some", "words", "each"]
STORED = StoredSketches(SketchField(), Recipe())


def answer(length: int) -> bytes:
    """Return an answer with sketches. length: characters of a document, 0 for none."""
    field, rng = SketchField(), np.random.default_rng(1)
    hits = []
    for _ in range(HITS):
        sketch = np.sort(rng.choice(2**31, STORED.recipe.k, replace=False)).astype(np.int32)
        stored = field.encode(sketch, STORED.recipe)
        hit: dict[str, Any] = {"_index": "news", "_score": 1.0}
        if length:
            hit["_source"] = {"title": "A title", "body": " ".join(rng.choice(WORDS, length // 5))[:length]}
        hits.append({**hit, "fields": {field.sketch: stored["sketch"], field.recipe: [STORED.recipe.id]}})
    return json.dumps({"responses": [{"took": 1, "hits": {"hits": hits}}]}, separators=(",", ":")).encode()


def read(loads: Callable[[bytes], Any], text: bytes) -> object:
    """Parse an answer, decode its sketches and drop them."""
    body = loads(text)
    (response,) = body["responses"]
    hits = response["hits"]["hits"]
    sketches = STORED.field.decode(hits, STORED.recipe)
    for hit in hits:
        drop_fields(hit, STORED.field.read)
    return body, sketches


def ways(text: bytes) -> dict[str, Method]:
    """Return the ways to read an answer with each parser."""
    return {
        "json, decoded after": lambda: read(json.loads, text),
        "json, cut out before": lambda: parsed(text, json.loads, STORED),
        "orjson, decoded after": lambda: read(orjson.loads, text),
        "orjson, cut out before": lambda: parsed(text, orjson.loads, STORED),
        "of both the cutting": lambda: parsed(text, len, STORED),
    }


def main() -> None:
    cases = {"no documents": 0, "3 kB documents": 3000}
    taken = {name: measure(ways(answer(length)), ROUNDS) for name, length in cases.items()}
    print(f"| µs, processor | {' | '.join(taken)} |\n| --- |{' ---: |' * len(taken)}")
    for way in ways(b""):
        print(f"| {way} | {' | '.join(f'{found[way]:,.0f}' for found in taken.values())} |")


if __name__ == "__main__":
    main()
