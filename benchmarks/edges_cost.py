"""Time building with and without the edges of short texts, in turns in one process.

    python -m benchmarks.edges_cost [--rounds 7]

Texts: 4,000 teasers of 24 words, a third with a dateline and a third with the name of a site, and 400 articles of 300
words, both cut from the Factbook of the demonstration. Timed are sketching alone, the actions of a bulk helper with
sketches and keys, a folder index, and the groups of a collection from its texts. Figures are processor time: of one
document, and the share that edges add.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from tempfile import TemporaryDirectory

from benchmarks.measure import measure
from benchmarks.sketching import sources

import ndd_search as ndd  # isort: skip  # after measure, which sets the number of threads
from ndd_search import native
from ndd_search.core.sketching import sketch_many
from ndd_search.core.text.edges import native_words

TEASERS, ARTICLES = (24, 4000), (300, 400)  # words, texts


def pieces(words: Sequence[str], length: int, count: int) -> list[str]:
    return [" ".join(words[at * length % (len(words) - length) :][:length]) for at in range(count)]


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


def switched(with_edges: bool, way: Callable[[], object]) -> None:
    if native.core:
        native.core.know_words(native_words() if with_edges else b"")
    way()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    if not native.core:
        raise SystemExit("edges are switched off in the native core, which is not built here")
    words = sources()["ASCII"][0].split()
    print("| texts | building | without edges, µs | with edges, µs | edges add |\n| --- | --- | ---: | ---: | ---: |")
    for name, (length, count) in {"teasers of 24 words": TEASERS, "articles of 300 words": ARTICLES}.items():
        cut = pieces(words, length, count)
        texts = [passed_on(text, number) for number, text in enumerate(cut)] if length == TEASERS[0] else cut
        for way, build in ways(texts).items():
            times = measure({str(one): partial(switched, one, build) for one in (False, True)}, rounds)
            without, with_edges = (times[str(one)] / count for one in (False, True))
            print(f"| {name} | {way} | {without:.2f} | {with_edges:.2f} | {100 * (with_edges / without - 1):.0f} % |")


if __name__ == "__main__":
    main()
