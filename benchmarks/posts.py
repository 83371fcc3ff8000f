"""Measure lists of real short texts: which hits are hidden that say something else, and which copies are shown.

    git clone --depth 1 https://github.com/sajao/CrisisLex             # posts of 26 events
    git clone --depth 1 https://github.com/wklnd/news-archive          # headlines
    git clone --depth 1 https://github.com/cardiffnlp/xlm-t            # posts in eight languages
    git clone --depth 1 https://github.com/Blagues-API/blagues-api     # questions and answers in French
    python -m benchmarks.posts .

Each list has the 100 texts that an index folder of one set finds for one of its texts. Nobody labelled these texts. So
two of them are compared by the words they have besides links, names with @, and RT: Jaccard's share of the words that
both have. Printed are, of all hidden hits, the share of those that have less than .4 and less than .6 of their words in
common with the hit that stands for them; and of all hits that have .8 or more in common with one before them, the
share of those that are shown. Below .4 most are other statements of one event, between .4 and .6 about half.
"""

from __future__ import annotations

import argparse
import csv
import html
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import ndd_search as ndd
from ndd_search.core.text.tokens import split

LISTS, HITS, MOST = 60, 100, 10_000
LEFT_OUT = re.compile(r"https?:\S*|@\w+|#|\b(?:rt|via|mt)\b", re.IGNORECASE)


def _posts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.csv")):
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            yield from (html.unescape(row[1]) for row in csv.reader(file, skipinitialspace=True) if len(row) > 2)


def _headlines(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.md")):
        yield from (line[2:] for line in path.read_text(errors="replace").splitlines() if line.startswith("- "))


def _lines(folder: Path) -> Iterator[str]:
    return chain.from_iterable(path.read_text().splitlines() for path in sorted(folder.glob("*_text.txt")))


def _riddles(folder: Path) -> Iterator[str]:
    return (f"{one['joke']} {one['answer']}" for one in json.loads((folder / "blagues.json").read_text()))


def sets(folder: Path) -> Iterator[tuple[str, Iterable[str]]]:
    for event in sorted((folder / "CrisisLex/data/CrisisLexT26").glob("*/")):
        yield "posts of an event, 1,000", _posts(event)
    for event in sorted((folder / "CrisisLex/data/CrisisLexT6").glob("*/")):
        yield "posts of an event, 10,000", _posts(event)
    yield "headlines", _headlines(folder / "news-archive/news")
    for language in sorted((folder / "xlm-t/data/sentiment").glob("*/")):
        yield "posts in one language", _lines(language)
    yield "riddles", _riddles(folder / "blagues-api")


def words_of(text: str) -> frozenset[str]:
    return frozenset(split(LEFT_OUT.sub(" ", text), apart=True))


def alike(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(len(first | second), 1)


def measure(texts: list[str], rng: random.Random) -> tuple[int, int, int, int, int]:
    """Return the hidden hits, those less than .4 and .6 alike, the hits .8 like one before, and those shown."""
    hidden = below_4 = below_6 = near = shown = 0
    with TemporaryDirectory() as folder, ndd.Index.open(folder, text="text") as index:
        index.add({"id": str(place), "text": text} for place, text in enumerate(texts))
        for query in rng.sample(texts, min(LISTS, len(texts))):
            found = index.search(" ".join(words_of(query)), size=HITS, min_similarity="identical")["hits"]["hits"]
            page = ndd.collapse([hit["_source"]["text"] for hit in found], size=HITS)
            said = [words_of(hit["_source"]["text"]) for hit in found]
            apart = [alike(said[one.rank], said[group.rank]) for group in page.groups for one in group.duplicates]
            hidden, below_4 = hidden + len(apart), below_4 + sum(share < 0.4 for share in apart)
            below_6 += sum(share < 0.6 for share in apart)
            leaders = {group.rank for group in page.groups}
            for rank in range(len(said)):
                if any(alike(said[rank], said[before]) >= 0.8 for before in range(rank)):
                    near += 1
                    shown += rank in leaders
    return hidden, below_4, below_6, near, shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    rng, counts = random.Random(1), defaultdict[str, list[tuple[int, ...]]](list)
    for kind, found in sets(parser.parse_args().folder):
        texts = [text for text in dict.fromkeys(found) if len(text.split()) >= 5]
        texts = rng.sample(texts, min(MOST, len(texts)))
        counts[kind].append((len(texts), *measure(texts, rng)))
    print(
        "| kind | texts | hidden | less than .4 alike | less than .6 | copies | shown |\n|" + " --- |" + " ---: |" * 6
    )
    for kind, rows in counts.items():
        all_texts, hidden, below_4, below_6, near, shown = map(sum, zip(*rows, strict=True))
        shares = f"{below_4 / hidden:.3f} | {below_6 / hidden:.3f} | {near:,} | {shown / near:.3f}"
        print(f"| {kind} | {all_texts:,} | {hidden:,} | {shares} |")


if __name__ == "__main__":
    main()
