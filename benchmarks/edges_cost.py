"""Time how much of building the edges of short texts take.

    python -m benchmarks.edges_cost [--rounds 7]

Texts: 4,000 teasers of 24 words, a third with a dateline and a third with the name of a site, cut from the Factbook of
the demonstration. Timed are sketching alone, the actions of a bulk helper with sketches and keys, a folder index, and
the groups of a collection from its texts. A sketch of k values has no edges if its text has k shingles, so edges cost
what sketching takes longer with k = 64 than with k = 22. Figures are processor time of one document.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory

from benchmarks.measure import measure
from benchmarks.sketching import sources

import ndd_search as ndd  # isort: skip  # after measure, which sets the number of threads
from ndd_search.core.sketching import sketch_many

WORDS, TEASERS = 24, 4000
NO_EDGES = ndd.Recipe.words(k=WORDS - 2)


def passed_on(text: str, number: int) -> str:
    return [f"PARIS, May {number % 28 + 1} (AFP) - {text}", f"{text} | City Post", text][number % 3]


def fill_folder(documents: Sequence[dict[str, str]]) -> None:
    with TemporaryDirectory() as folder, ndd.Index.open(folder, text="text") as index:
        index.add(documents)


def ways(texts: Sequence[str]) -> dict[str, Callable[[], object]]:
    documents = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    return {
        "sketching": lambda: sketch_many(texts, threads=1),
        "bulk": lambda: list(ndd.with_sketches(documents, ["text"])),
        "folder index": lambda: fill_folder(documents),
        "groups of a collection": lambda: ndd.Corpus.read(documents, text="text").groups(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    words = sources()["ASCII"][0].split()
    starts = (at * WORDS % (len(words) - WORDS) for at in range(TEASERS))
    texts = [passed_on(" ".join(words[start : start + WORDS]), number) for number, start in enumerate(starts)]
    without = {"without edges": lambda: sketch_many(texts, NO_EDGES, threads=1)}
    times = {name: time / TEASERS for name, time in measure(without | ways(texts), rounds).items()}
    edges = times["sketching"] - times.pop("without edges")
    print("| building | µs | of these, edges |\n| --- | ---: | ---: |")
    for way, time in times.items():
        print(f"| {way} | {time:.2f} | {100 * edges / time:.0f} % |")


if __name__ == "__main__":
    main()
