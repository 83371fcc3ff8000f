"""Compare result pages with a frequency table of the list of hits, of the whole collection, and without one.

python -m benchmarks.lists FOLDER...    # as `python -m benchmarks.study` takes them, with clusters

Lists are the results of the queries. Of a collection without queries they are drawn: documents at random, each followed
by all that are labelled as near-duplicates of it or as different from it. "closed" is the share of the gap in F1
between no table and one of the collection that the table of the list closes.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.study.collection import Collection, Places, read_collection
from benchmarks.study.pages import result_page
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_document_frequency, count_in_list
from ndd_search.core.matching.frequency_table import SAMPLE
from ndd_search.core.matching.similarity_measures import similar_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many

RECIPE = Recipe()
HEADS = ["", "hits", "table", "F1 of pairs", "closed", "dup@10", "missed", "full", "lost", "µs to count"]
LISTS = 200  # drawn of a collection without queries


def drawn_pages(collection: Collection, depth: int) -> list[Places]:
    """Draw lists of documents and of those that are labelled together with one of them."""
    assert collection.pairs is not None
    labelled = defaultdict[int, list[int]](list)
    for one, other in zip(collection.pairs.first.tolist(), collection.pairs.second.tolist(), strict=True):
        labelled[one].append(other)
        labelled[other].append(one)
    rng, pages = random.Random(depth), []
    for _ in range(LISTS):
        page = dict[int, None]()
        while len(page) < depth:
            one = rng.randrange(len(collection.ids))
            page |= dict.fromkeys((one, *labelled[one]))
        pages.append(np.array(list(page)[:depth]))
    return pages


def lines(collection: Collection, depth: int) -> list[list[str]]:
    """Yield the rows of a collection: without a table, with one of each list, with one of all documents."""
    sketches, unscored = sketch_many(collection.texts, RECIPE), collection.unscored()
    chosen = np.random.default_rng(0).permutation(len(sketches))[:SAMPLE].tolist()
    whole = count_document_frequency([sketches[i] for i in chosen], RECIPE)
    found, f1s = [], []
    pages = [page[:depth] for page in collection.pages] or drawn_pages(collection, depth)
    for name in ("none", "of the list", "of the collection"):
        rows, took, pairs_found = [], [], np.zeros(3)
        for page in pages:
            given = [sketches[i] for i in page.tolist()]
            began = perf_counter()
            own = count_in_list(given, RECIPE) if name == "of the list" else None
            took.append(perf_counter() - began)
            decision = Decision.of("auto", RECIPE, whole if name == "of the collection" else own)
            pairs = similar_pairs(rows_of(given, RECIPE.k), decision)
            ends = np.sort(np.stack((page[pairs.first], page[pairs.second])), axis=0)
            similar = set(zip(*ends.tolist(), strict=True))
            pairs_found += counted_pairs(collection, page.tolist(), similar, unscored)
            rows.append(result_page(page, collection.cluster[page], similar, unscored))
        _, repeated, missed, fill = np.mean([row[:4] for row in rows], axis=0)
        lost, clusters = (sum(row[place] for row in rows) for place in (5, 6))
        right, called, wanted = pairs_found
        f1s.append(2 * right / (called + wanted))
        figures = [f"{one:.4f}" for one in (repeated, missed, fill, lost / clusters)]
        found.append(
            [collection.name, str(depth), name, f"{f1s[-1]:.4f}", "", *figures, f"{np.median(took) * 1e6:.0f}"]
        )
    without, of_list, whole_f1 = f1s
    if whole_f1 != without:
        found[1][4] = f"{(of_list - without) / (whole_f1 - without):.2f}"
    return found


def counted_pairs(
    collection: Collection, page: list[int], similar: set[tuple[int, int]], unscored: set[tuple[int, int]]
) -> list[int]:
    """Return how many scored pairs of a page are rightly called near-duplicates, are called so, and are labelled so."""
    scored = set(combinations(sorted(page), 2)) - unscored
    labelled = {pair for pair in scored if collection.cluster[pair[0]] == collection.cluster[pair[1]]}
    return [len(similar & labelled), len(similar & scored), len(labelled)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    print(f"| {' | '.join(HEADS)} |\n| --- | ---: | --- |{' ---: |' * 7}")
    for folder in parser.parse_args().folders:
        for depth in (20, 50):
            for line in lines(read_collection(folder), depth):
                print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
