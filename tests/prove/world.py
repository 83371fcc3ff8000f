"""What programs draw: documents with edited copies, options and frequency tables; and the same for the library."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from tests.prove.oracle import Table

Case = dict[str, Any]

KS = [2, 6, 12]
RANGE = [35_791_394 * number + 17 for number in range(60)]  # values of all sketches, over the whole range
LACKS = ["missing", "missing", "foreign", "empty", "malformed"]
OPTIONS: dict[str, list[Any]] = {
    "min_similarity": ["auto", "auto", 0.2, "moderate", 0.8, "identical"],
    "mode": ["group", "group", "drop", "demote", "annotate"],
    "window": [1, 2, 3, 5, 8, 20, 100],
    "max_window": [20, 40, 10_000],
    "max_per_group": [1, 1, 2, 3],
    "keep": [
        ["score"],
        ["newest:time"],
        ["preferred:price=2"],
        ["highest:price"],
        ["lowest:price", "newest:time"],
        ["longest", "newest:time"],
    ],
    "total": ["groups", "hits", "estimate"],
}
GUARDS: list[list[list[str]]] = [
    [["length:0.5"]], [["same:price"], ["same:price", "same:time"]], [["numbers"]],
    [["within:time=150s"], ["within:time=2.5m"]],
]  # fmt: skip
DOCUMENTS = 40  # counted in a frequency table


@dataclass(frozen=True)
class World:
    """Draws documents.

    k: of the recipe. values: of all sketches. bases: texts that documents are edited copies of.
    """

    rng: random.Random
    k: int
    values: list[int]
    bases: list[list[int]]

    @classmethod
    def of(cls, rng: random.Random) -> World:
        """Draw a world. Full sketches of small values are those of long texts."""
        values = RANGE if rng.random() < 0.7 else [value // 400 for value in RANGE]
        bases = [rng.sample(values, rng.randint(1, 14)) for _ in range(rng.randint(1, 6))]
        return cls(rng, rng.choice(KS), values, bases)

    def document(self, id: str) -> dict[str, Any]:
        """Draw a document."""
        rng = self.rng
        values = set(rng.choice(self.bases)) ^ set(rng.sample(self.values, rng.choice([0, 0, 1, 1, 2, 3])))
        lack = rng.choice(LACKS) if rng.random() < 0.1 or not values else ""
        return {
            "id": id, "values": None if lack else sorted(values)[: self.k], "lack": lack,
            "score": rng.choice([1.0, 1.5, 2.0]), "price": rng.choice([None, 1, 2, 2]),
            "time": rng.choice([None, 0, 100, 200, 300]), "numbers": rng.choice([None, 7, 7, 8]),
            "text": f"{id} {rng.randrange(10**6)}",
        }  # fmt: skip

    def documents(self, most: int) -> list[dict[str, Any]]:
        """Draw fewer than `most` documents, few more often than many."""
        return [self.document(f"d{number}") for number in range(int(self.rng.random() ** 2 * most))]

    def table(self) -> dict[str, int] | None:
        """Draw the counts of a frequency table, as JSON holds them."""
        rng = self.rng
        if rng.random() < 0.5:
            return None
        return {str(value): rng.randint(4, DOCUMENTS) for value in sorted(rng.sample(self.values, rng.randint(0, 30)))}

    def options(self, *without: str) -> dict[str, Any]:
        """Draw some options. without: names of options, and "numbers" for the guard."""
        rng, names = self.rng, [name for name in OPTIONS if name not in without]
        options = {name: rng.choice(OPTIONS[name]) for name in names if rng.random() < 0.35}
        drawn = [rng.choice(one) for one in GUARDS if rng.random() < 0.35]
        guards = [guard for one in drawn for guard in one if guard not in without]
        return options | ({"guards": guards} if guards else {})


@lru_cache
def recipe_of(k: int) -> Recipe:
    """Return the recipe of sketches of k values."""
    return Recipe.words(k=k)


def options_of(case: Case) -> dict[str, Any]:
    """Return the options of a case, as the library takes them."""
    options = dict(case["options"])
    if options.get("window", 100) > options.get("max_window", 10_000):
        options["window"] = options["max_window"]
    return options


def tables_of(case: Case, recipe: Recipe) -> tuple[Table | None, FrequencyTable | bool]:
    """Return the frequency table of a case for the oracle and for the library."""
    if case["table"] is None:
        return None, False
    counts = {int(value): float(count) for value, count in case["table"].items()}
    columns = np.array(list(counts), np.int32), np.array(list(counts.values()))
    return Table(DOCUMENTS, counts), FrequencyTable(DOCUMENTS, *columns, recipe.id)
