"""Compare the default with the preset for messages by the number of words of the shorter text of each labelled pair.

    python -m benchmarks.few_words FOLDER...    # labelled collections of short texts: see benchmarks.short_texts

Each collection has its own frequency table. Printed are the number of pairs and, for both, F1 and recall.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.study.collection import Collection, Places, read_collection
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.guards import long_enough
from ndd_search.core.matching.similar_pairs import Pairs, accepted, as_compared, overlaps
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.presets import PRESETS
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many

WORDS = (0, 6, 8, 10, 12, 14, 18, 26)
RECIPES = {"default": Recipe(), "preset messages": PRESETS["messages"].recipe or Recipe()}


def joined(collection: Collection, recipe: Recipe, first: Places, second: Places) -> tuple[np.ndarray, np.ndarray]:
    """Return which pairs "auto" joins, and the number of shingles of each text."""
    sketches = sketch_many(collection.texts, recipe)
    decision = Decision.of("auto", recipe, count_document_frequency(sketches, recipe))
    rows = rows_of(as_compared(sketches, recipe.k, decision), recipe.k)
    found = overlaps(rows, first, second, decision.frequency_table)
    pairs = Pairs(first, second, found.resemblance)
    yes = accepted(rows, decision, first, second, found) & long_enough(pairs, rows, recipe.min_shingles)
    return yes, rows.lengths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    print("| collection | words | pairs |", " | ".join(f"{name}: F1 | recall" for name in RECIPES), "|")
    print("| --- | --- | ---: |", " | ".join("---: | ---:" for _ in RECIPES), "|")
    for folder in parser.parse_args().folders:
        collection = read_collection(folder)
        assert collection.pairs is not None
        scored = np.flatnonzero(collection.pairs.label >= 0)
        first, second = collection.pairs.first[scored], collection.pairs.second[scored]
        same = collection.pairs.label[scored] == 1
        verdicts, shingles = {}, np.empty(0)
        for name, recipe in reversed(RECIPES.items()):
            verdicts[name], shingles = joined(collection, recipe, first, second)
        words = np.minimum(shingles[first], shingles[second]) + RECIPES["default"].size - 1  # the default is the last
        for least, most in pairwise((*WORDS, 10**9)):
            within = (words >= least) & (words < most)
            cells = [folder.name, f"{least} to {most - 1}" if most < 10**9 else f"{least} and more", str(within.sum())]
            for name in RECIPES:
                right = (verdicts[name] & same & within).sum()
                sizes = verdicts[name][within].sum() + same[within].sum()
                cells += [f"{2 * right / max(sizes, 1):.3f}", f"{right / max(same[within].sum(), 1):.2f}"]
            print("|", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
