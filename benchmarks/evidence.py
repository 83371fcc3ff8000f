"""Measure the inputs of the default decision on labelled pairs: mutuality of the difference, rarity of the shared part.

    python -m benchmarks.evidence FOLDER...    # as `ndd-search evaluate` takes them

Prints medians over the pairs with a resemblance of at least LEAST, and F1 with frequency tables of all documents and of
SMALL of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ndd_search.evaluation.collection import LabelledPairs, read_collection
from ndd_search.evaluation.measures import quality
from ndd_search.matching.decision import Decision, Overlaps
from ndd_search.matching.document_frequency import count_document_frequency
from ndd_search.matching.frequency_table import SAMPLE, FrequencyTable
from ndd_search.matching.pairs import overlaps
from ndd_search.matching.rows import rows_of
from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import sketch_many

RECIPE = Recipe()
LEAST = 0.3
SMALL = 1000


def row(folder: Path) -> list[str]:
    """Return the row of one collection."""
    collection = read_collection(folder)
    if collection.pairs is None:
        raise SystemExit(f"{folder} has no labelled pairs")
    sketches = sketch_many(collection.texts, RECIPE)
    rows, chosen = rows_of(sketches, RECIPE.k), np.random.default_rng(0).permutation(len(sketches)).tolist()
    tables = [count_document_frequency([sketches[i] for i in chosen[:most]], RECIPE) for most in (SAMPLE, SMALL)]
    given = [(table, overlaps(rows, collection.pairs.first, collection.pairs.second, table)) for table in tables]
    return [collection.name, *_medians(given[0][1], collection.pairs), *(_f1(*one, collection.pairs) for one in given)]


def _medians(shared: Overlaps, pairs: LabelledPairs) -> list[str]:
    alike = shared.resemblance >= LEAST
    of_label = [alike & (pairs.label == label) for label in (0, 1)]
    return [
        f"{np.median(one[which]):.2f}" if which.any() else ""
        for one in (shared.mutuality, shared.specificity)
        for which in of_label
    ]


def _f1(table: FrequencyTable, shared: Overlaps, pairs: LabelledPairs) -> str:
    decision = Decision.of("auto", RECIPE, table)
    return f"{quality(decision.accepts(shared), pairs.label).f1:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    heads = ["", "m, different", "m, copies", "s / d, different", "s / d, copies", "F1", f"F1, table of {SMALL:,}"]
    print("| " + " | ".join(heads) + " |\n| --- |" + " ---: |" * (len(heads) - 1))
    for folder in parser.parse_args().folders:
        print("| " + " | ".join(row(folder)) + " |")


if __name__ == "__main__":
    main()
