"""Make labelled collections in which a text has many copies: one story on up to fifty sites, each with its own frame.

    python -m benchmarks.many_copies base.jsonl.gz out [--seed 1]    # base: see benchmarks.language_collections

syndicated:       720 texts; a few are printed by 50, 20, 8 and 3 sites, the others by one.
syndicated_small: the same with 80 documents: five stories on ten sites each, and thirty others.

A site has navigation and a footer around every text. Its copy of a story has a byline and a date, up to three words in
a hundred changed, and sometimes lacks the end. Near-duplicates: two copies of a story (kind copies_50 and so on: of as
many). Not: two stories on one site (same_site), the most similar other ones (nearest_other). All random choices use
one seed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import defaultdict
from itertools import combinations, pairwise
from pathlib import Path

from benchmarks.kinds_of_text import Collection

SITES = 60
PRINTED = {50: 4, 20: 8, 8: 20, 3: 40}  # copies: stories
PRINTED_IN_SMALL = {10: 5}
SINGLES_IN_SMALL = 30
PAIRS = 100  # of a story, drawn
LEAST_WORDS = 60


def syndicated(base: Path, printed: dict[int, int], singles: int | None, rng: random.Random) -> Collection:
    """Print the stories of a base on sites. singles: number of the other texts, None for all."""
    with gzip.open(base, "rt", encoding="utf-8") as lines:
        stories = [one for one in map(json.loads, lines) if len(one["text"].split()) >= LEAST_WORDS]
    words = sorted({word for one in stories for word in one["text"].split()})
    sites = [(" ".join(rng.choices(words, k=14)), " ".join(rng.choices(words, k=22))) for _ in range(SITES)]
    rng.shuffle(stories)
    copies = [number for number, many in printed.items() for _ in range(many)]
    rest = len(stories) - len(copies) if singles is None else singles
    made, owner, on_site = Collection(), dict[str, str](), defaultdict[int, list[str]](list)
    for number, story in zip(copies + [1] * rest, stories, strict=False):
        members = []
        for site in rng.sample(range(SITES), number):
            text = story["text"] if number == 1 else _edited(story["text"], words, rng)
            page = f"{sites[site][0]}\n{_byline(words, rng)}\n{text}\n{sites[site][1]}"
            members.append(made.add(page, story["lang"]))
            owner[members[-1]] = story["id"]
            on_site[site].append(members[-1])
        pairs = list(combinations(members, 2))
        made.pairs += [(a, b, 1, f"copies_{number}") for a, b in rng.sample(pairs, min(PAIRS, len(pairs)))]
    for members in on_site.values():
        made.pairs += [(a, b, 0, "same_site") for a, b in pairwise(members) if owner[a] != owner[b]]
    made.nearest(owner)
    return made


def _byline(words: list[str], rng: random.Random) -> str:
    return f"{' '.join(rng.choices(words, k=3))}, {rng.randrange(1, 29)}.{rng.randrange(1, 13)}. {rng.randrange(1000)}"


def _edited(text: str, words: list[str], rng: random.Random) -> str:
    """Change up to three words in a hundred, and leave out the last tenth in a quarter of all copies."""
    edited, share = text.split(), rng.uniform(0, 0.03)
    edited = [rng.choice(words) if rng.random() < share else word for word in edited]
    return " ".join(edited[: len(edited) * 9 // 10] if rng.random() < 0.25 else edited)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    syndicated(arguments.base, PRINTED, None, random.Random(arguments.seed)).write(arguments.out / "syndicated")
    small = syndicated(arguments.base, PRINTED_IN_SMALL, SINGLES_IN_SMALL, random.Random(arguments.seed + 1))
    small.write(arguments.out / "syndicated_small")


if __name__ == "__main__":
    main()
