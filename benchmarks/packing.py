"""Time the parsing of an answer with the sketches of 100 hits: integers, integers that are packed before, and packed.

python -m benchmarks.packing
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import orjson

from benchmarks.measure import Method, measure
from ndd_search.recipe import Recipe
from ndd_search.rest.packing import packed
from ndd_search.sketching.field import SketchField, Storage

HITS, ROUNDS = 100, 15


def answer(storage: Storage) -> bytes:
    """Return an answer with sketches in a form of storage."""
    recipe, field, rng = Recipe(), SketchField(storage=storage), np.random.default_rng(1)
    hits = []
    for _ in range(HITS):
        sketch = np.sort(rng.choice(2**31, recipe.k, replace=False)).astype(np.int32)
        stored = field.encode(sketch, recipe)
        form, values = (field.packed, [stored["packed"]]) if "packed" in stored else (field.sketch, stored["sketch"])
        hits.append({"_index": "news", "_score": 1.0, "fields": {form: values, field.recipe: [recipe.id]}})
    return json.dumps({"responses": [{"took": 1, "hits": {"hits": hits}}]}, separators=(",", ":")).encode()


def ways(loads: Callable[[bytes], object]) -> dict[str, Method]:
    """Return the ways to parse an answer with a parser."""
    integers, stored = answer("integers"), answer("packed")
    return {
        "integers": lambda: loads(integers),
        "integers, packed before": lambda: loads(packed(integers, SketchField().sketch)),
        "of this the packing": lambda: packed(integers, SketchField().sketch),
        "stored packed": lambda: loads(packed(stored, SketchField().sketch)),
    }


def main() -> None:
    print("| µs, processor | json | orjson |\n| --- | ---: | ---: |")
    plain, fast = measure(ways(json.loads), ROUNDS), measure(ways(orjson.loads), ROUNDS)
    for name, taken in plain.items():
        print(f"| {name} | {taken:,.0f} | {fast[name]:,.0f} |")


if __name__ == "__main__":
    main()
