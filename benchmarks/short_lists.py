"""Measure lists of short texts in which one form is filled several times, or one text is passed on several times.

    python -m benchmarks.short_lists FOLDER [--seed 1]    # FOLDER: "messages" of benchmarks.kinds_of_text

Each list has HITS posts in random order. `many` of them fill one of the FACTS with different names and numbers, or are
one post that as many people passed on; the others are different posts, some of them passed on as well. Prints for lists
without a frequency table and with their own: the share of the different texts among the `many` that are hidden under
another one, and the share of copies that are shown, among the `many` and among the others.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.kinds_of_text import _reposted
from benchmarks.study.collection import Collection, LabelledPairs, read_collection
from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_in_list
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many

FACTS = [
    "{a} Airport is a small public airport with one runway, {n} miles from {b}. It has no control tower.",
    "{a} is a village in the municipality of {b}. It had {n} inhabitants at the last census.",
    "{a} {b} (born {n}) is a former footballer who played as a midfielder for the national team.",
    "The {a} Bridge is a road bridge over the river {b}, built in {n}. It is a listed building.",
    "{a} is a station on the line to {b}. Trains stop there every {n} minutes. It is staffed in the morning only.",
]

RECIPE = Recipe()
HITS, LISTS = 30, 200
MANY = (3, 5, 6, 8, 16)
List = tuple[list[str], list[int]]  # texts, and the number of the text that each of them is a copy of; the many first


def families(count: int, pairs: LabelledPairs, label: int, kind: str) -> list[list[int]]:
    """Return the connected components of the pairs of one label and kind."""
    group = np.arange(count)
    chosen = (pairs.label == label) & (pairs.kind == kind)
    for first, second in zip(pairs.first[chosen].tolist(), pairs.second[chosen].tolist(), strict=True):
        group[group == group[second]] = group[first]
    members = defaultdict[int, list[int]](list)
    for place, one in enumerate(group.tolist()):
        members[one].append(place)
    return list(members.values())


def lists(collection: Collection, many: int, passed_on: bool, rng: random.Random) -> Iterator[List]:
    """Yield lists in which `many` texts fill one form, or are one post that was passed on."""
    if collection.pairs is None:
        raise SystemExit(f"{collection.name} has no labelled pairs")
    posts = families(len(collection.ids), collection.pairs, 1, "repost")
    words = sorted({word.strip(".,") for text in collection.texts for word in text.split() if word.istitle()})

    def name() -> str:
        return " ".join(rng.choices(words, k=rng.choice((1, 1, 2, 3))))

    for _ in range(LISTS):
        if passed_on:
            text = collection.texts[rng.choice(posts)[0]]
            texts, owners = [text, *(_reposted(text, rng) for _ in range(many - 1))], [0] * many
        else:
            form = rng.choice(FACTS)
            texts = [form.format(a=name(), b=name(), n=rng.randint(2, 1999)) for _ in range(many)]
            owners = list(range(many))
        for post in rng.sample(posts, HITS):
            texts += [collection.texts[place] for place in post]
            owners += [many + post[0]] * len(post)
        yield texts[:HITS], owners[:HITS]


def shares(texts: list[str], owners: list[int], many: int, with_table: bool, rng: random.Random) -> list[float]:
    """Return the shares of hidden texts and of shown copies of one list, as `row` prints them."""
    order = rng.sample(range(HITS), HITS)
    sketches = sketch_many([texts[place] for place in order], RECIPE)
    table = count_in_list(sketches, RECIPE) if with_table else None
    leader, _ = assign_leaders(sketches, RECIPE.k, Decision.of("auto", RECIPE, table))
    shown = {order[place] for place in np.flatnonzero(leader == np.arange(HITS)).tolist()}
    found = []
    for part in (range(many), range(many, HITS)):
        different, kept = {owners[place] for place in part}, [owners[place] for place in part if place in shown]
        copies = len(part) - len(different)
        found += [1 - len(set(kept)) / len(different), (len(kept) - len(set(kept))) / copies if copies else 0.0]
    return found


def row(collection: Collection, many: int, passed_on: bool, with_table: bool, seed: int) -> list[str]:
    """Return the means over LISTS lists."""
    rng = random.Random(f"{seed} {many} {passed_on}")
    found = [shares(texts, owners, many, with_table, rng) for texts, owners in lists(collection, many, passed_on, rng)]
    kind = "one text passed on" if passed_on else "one form filled"
    return [kind, str(many), "of the list" if with_table else "none", *(f"{one:.3f}" for one in np.mean(found, axis=0))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    collection = read_collection(arguments.folder)
    heads = ["the many", "number", "table", "hidden", "copies shown", "others hidden", "copies of others shown"]
    print(f"| {' | '.join(heads)} |\n| --- |{' ---: |' * (len(heads) - 1)}")
    for passed_on in (False, True):
        for many in MANY:
            for with_table in (False, True):
                print(f"| {' | '.join(row(collection, many, passed_on, with_table, arguments.seed))} |")


if __name__ == "__main__":
    main()
