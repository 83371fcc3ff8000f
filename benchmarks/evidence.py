"""Measure the inputs of the default decision on labelled pairs: mutuality of the difference, rarity of the shared part.

    python -m benchmarks.evidence FOLDER...    # as `python -m benchmarks.study` takes them

Prints medians over the pairs with a resemblance of at least LEAST, and F1 with frequency tables of all documents and of
SMALL of them. Then, about the content that both texts have of their own (`o` in matching/decision.py): F1 of the decision
without it, with a table and without one; the 95th percentile of `o` of the copies; and the relative error of the number
of shingles that only one text has, the smaller of two such numbers of OWN or more, estimated from sketches of 64 and of
128 values: the median and the 90th percentile.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.study.collection import LabelledPairs, read_collection
from benchmarks.study.measures import quality
from ndd_search.core.matching.decision import Constants, Decision, Overlaps
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import SAMPLE
from ndd_search.core.matching.similar_pairs import overlaps
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many

RECIPE = Recipe()
LEAST = 0.3
SMALL = 1000
OWN = 200  # shingles
WHOLE = Recipe.words(k=4096)  # sketches that hold all shingles of nearly all texts
HEADS = ["", "m, different", "m, copies", "s / d, different", "s / d, copies", "F1", f"F1, table of {SMALL:,}"]
HEADS += ["F1 without o", "without o and table", "o of copies", "error, k = 64", "error, k = 128"]


def row(folder: Path) -> list[str]:
    """Return the row of one collection."""
    collection = read_collection(folder)
    if collection.pairs is None:
        raise SystemExit(f"{folder} has no labelled pairs")
    sketches = sketch_many(collection.texts, RECIPE)
    rows, chosen = rows_of(sketches, RECIPE.k), np.random.default_rng(0).permutation(len(sketches)).tolist()
    pairs = collection.pairs

    def compared(most: int, constants: Constants | None = None) -> tuple[Overlaps, str]:
        """Return the overlaps of the pairs and F1 with a table of at most so many documents, without a table for 0."""
        constants = constants or Constants()
        table = count_document_frequency([sketches[i] for i in chosen[:most]], RECIPE, constants) if most else None
        shared = overlaps(rows, pairs.first, pairs.second, table)
        decision = Decision(None, RECIPE.size, table, constants)
        return shared, f"{quality(decision.accepts(shared), pairs.label).f1:.3f}"

    shared, f1 = compared(SAMPLE)
    others = (compared(SMALL), compared(SAMPLE, Constants(pages=0.0)), compared(0, Constants(pages=0.0)))
    own = shared.own[pairs.label == 1]
    highest = f"{np.quantile(own, 0.95):.0f}" if len(own) else ""
    f1s = [f1, *(one for _, one in others)]
    return [collection.name, *_medians(shared, pairs), *f1s, highest, *_errors(collection.texts, pairs)]


def _medians(shared: Overlaps, pairs: LabelledPairs) -> list[str]:
    alike = shared.resemblance >= LEAST
    of_label = [alike & (pairs.label == label) for label in (0, 1)]
    return [
        f"{np.median(one[which]):.2f}" if which.any() else ""
        for one in (shared.mutuality, shared.specificity)
        for which in of_label
    ]


def _errors(texts: Sequence[str], pairs: LabelledPairs) -> list[str]:
    true, *estimates = (
        overlaps(rows_of(sketch_many(texts, recipe), recipe.k), pairs.first, pairs.second, None).own
        for recipe in (WHOLE, RECIPE, Recipe.words(k=128))
    )
    chosen = true >= OWN
    if not chosen.any():
        return ["", ""]
    errors = [np.abs(one[chosen] / true[chosen] - 1) for one in estimates]
    return [f"{np.median(one):.2f}, {np.quantile(one, 0.9):.2f}" for one in errors]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    print("| " + " | ".join(HEADS) + " |\n| --- |" + " ---: |" * (len(HEADS) - 1))
    for folder in parser.parse_args().folders:
        print("| " + " | ".join(row(folder)) + " |")


if __name__ == "__main__":
    main()
