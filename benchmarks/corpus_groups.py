"""How well the groups of whole collections agree with labelled clusters, by each method.

    python -m benchmarks.corpus_groups FOLDER... [--recall]

FOLDER has documents.jsonl and clusters.jsonl, also with .gz. --recall compares all pairs of each collection with the
bar, and says what share of those at or above it the search of pairs finds.

Pairwise F1: of all pairs of documents that are in one group, how many are in one cluster, and the reverse. It is ruled
by large clusters, whose pairs are many. B-cubed F1 (Bagga and Baldwin 1998): for each document the share of its group
that is in its cluster, and the reverse; means over all documents. A document outside all clusters is a cluster.

"as_a_page" is the share of documents whose leader is the one that a single page of all documents gives them, with the
frequency table of the collection.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.corpus import recall_of
from benchmarks.study.collection import read_collection
from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import Decision, Setting
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.corpus.collection import Corpus, Method

Places = npt.NDArray[np.int64]

METHODS: tuple[Method, ...] = ("leaders", "connected", "communities")


def f1(precision: float, recall: float) -> float:
    """The harmonic mean."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def agreement(group: Places, cluster: Places) -> dict[str, float]:
    """Pairwise and B-cubed precision, recall and F1, each 0..1."""
    _, group = np.unique(group, return_inverse=True)
    _, cluster = np.unique(cluster, return_inverse=True)
    cell = np.unique(group * (cluster.max() + 1) + cluster, return_inverse=True)[1]
    both, groups, clusters = (np.bincount(one) for one in (cell, group, cluster))

    def pairs(sizes: Places) -> int:
        return int((sizes * (sizes - 1) // 2).sum())

    precision = pairs(both) / pairs(groups) if pairs(groups) else 1.0
    recall = pairs(both) / pairs(clusters) if pairs(clusters) else 1.0
    cubed = float((both[cell] / groups[group]).mean()), float((both[cell] / clusters[cluster]).mean())
    return {
        "pair_precision": precision,
        "pair_recall": recall,
        "pair_f1": f1(precision, recall),
        "cubed_precision": cubed[0],
        "cubed_recall": cubed[1],
        "cubed_f1": f1(*cubed),
    }


def figures(folder: Path, setting: Setting) -> list[dict[str, Any]]:
    """The agreement of each method on one collection."""
    labelled, recipe = read_collection(folder), Recipe()
    sketches = sketch_many(labelled.texts, recipe)
    corpus = Corpus(labelled.ids, sketches, recipe)
    rows = []
    for method in METHODS:
        groups = corpus.groups(setting, method)
        found = {name: round(value, 3) for name, value in agreement(groups.leader, labelled.cluster).items()}
        row = {"collection": labelled.name, "bar": setting, "method": method, "groups": len(groups), **found}
        if method == "leaders":
            decision = Decision.of(setting, recipe, corpus.frequency_table if setting == "auto" else None)
            page, _ = assign_leaders(sketches, recipe.k, decision)
            row["as_a_page"] = round(float((page == groups.leader).mean()), 4)
        rows.append(row)
    return rows


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--min-similarity", type=float, default=0.5, help='beside "auto"')
    parser.add_argument("--recall", action="store_true", help="compare all pairs, too")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        for setting in ("auto", arguments.min_similarity):
            if arguments.recall:
                labelled = read_collection(folder)
                found = recall_of(sketch_many(labelled.texts, Recipe()), Recipe(), setting)
                print(json.dumps({"collection": labelled.name, **found}), flush=True)
            for row in figures(folder, setting):
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
