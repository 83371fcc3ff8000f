"""The groups of a whole collection: time, memory and recall, beside other libraries where they are installed.

    python -m benchmarks.corpus 10000 100000 1000000 [--min-similarity 0.5 auto] [--peers] [--recall 20000] [--extremes]
    python -m benchmarks.corpus 3000000 --texts /tmp/texts --record benchmarks/figures/corpus.json
    python -m benchmarks.corpus 1000000 --published --real-words --texts /tmp/texts
    python -m benchmarks.corpus --record benchmarks/figures/corpus.json --plot benchmarks/figures/corpus.svg

Documents are generated (tests/corpus/made.py): about 1 kB each, a fifth are copies with up to five words changed, half
of all stand in one of 200 frames. They are written to a file before the clock starts, a text on each line. --texts
keeps that file for later runs, because three million texts take ten minutes. ndd_search reads the file while the clock
runs; other libraries get a list of texts. Every size runs in a process of its own, so memory is its own, too.

--real-words generates them of the words and sentences of the demonstration collection instead, see
benchmarks.real_words; with a number, the longest text has so many words instead of 220. --published finds the groups by
each method of docs/recipes.md, at the bar of its source.

--record adds the figures to a file, where they replace those of the same library, size and bar. --plot draws them.
--peers adds datasketch and rensa (min-hashes of 128 permutations over the same shingles, LSH at the bar, candidates
verified by their estimated resemblance), DuckDB (sketches, candidates and verification in SQL) and datatrove (its
MinhashDedup, whose candidates are not verified), or those that it names. Those that are not installed are named.
--recall compares every pair of the first documents, and says what share of the pairs at or above the bar were found.
--extremes measures collections that could take all time or memory instead: equal texts, empty texts, one frame around
everything, one id, no ids, and a line of 100 MB, or those that it names.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.corpus_extremes import EXTREMES, Figures, extreme
from benchmarks.kept_memory import keep_freed
from benchmarks.real_words import LONGEST
from benchmarks.real_words import texts as made_of_real_words
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.similar_pairs import overlaps
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches, sketch_many
from ndd_search.corpus.collection import Corpus
from tests.corpus import made

FRAMES = 200
PUBLISHED = (  # see docs/recipes.md
    "w3-k64-v4-minhash",
    "w3-k64-v4-broder",
    "w3-k6-v4-super",
    "s1-k64-v4-broder-crc32-english",
    "w1-k4-v4-simhash",
)
PERMUTATIONS = 128
_ROWS = 100  # documents compared with all others at a time


@dataclass(frozen=True)
class Texts:
    """The first texts of a file that has one on each line."""

    path: Path
    count: int

    @classmethod
    def of(cls, folder: Path, count: int, real_words: int | None = None) -> Texts:
        """Texts of a file in a folder, which is written if none of its files holds so many.

        real_words: of the longest text, for texts of benchmarks.real_words; a folder inside holds their files.
        """
        folder = folder / f"real-{real_words}" if real_words else folder
        make = partial(made_of_real_words, longest=real_words) if real_words else made.texts
        held = sorted(int(path.stem) for path in folder.glob("*.txt") if path.stem.isdigit())
        if enough := [size for size in held if size >= count]:
            return cls(folder / f"{enough[0]}.txt", count)
        folder.mkdir(parents=True, exist_ok=True)
        path, unfinished = folder / f"{count}.txt", folder / f"{count}.new"
        with unfinished.open("w") as file:
            file.writelines(f"{text}\n" for text in make(count, frames=FRAMES))
        unfinished.replace(path)
        return cls(path, count)

    def __iter__(self) -> Iterator[str]:
        with self.path.open() as file:
            for line in islice(file, self.count):
                yield line.removesuffix("\n")


Find = Callable[[Any, Any], int]  # from texts and a bar to the number of groups


def ours(texts: Texts, bar: float | str, recipe: str | None = None) -> int:
    """How many groups there are."""
    return len(Corpus.read(({"text": text} for text in texts), text="text", recipe=recipe).groups(bar))


def shingles(text: str) -> set[str]:
    """Runs of three words."""
    words = text.split()
    return {" ".join(words[at : at + 3]) for at in range(max(len(words) - 2, 1))}


def datasketch(texts: list[str], bar: float) -> int:
    """MinHashLSH of datasketch, candidates verified by their min-hashes."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=bar, num_perm=PERMUTATIONS)
    leaders: dict[int, Any] = {}
    for number, text in enumerate(texts):
        sketch = MinHash(num_perm=PERMUTATIONS)
        sketch.update_batch([one.encode() for one in shingles(text)])
        if not any(leaders[other].jaccard(sketch) >= bar for other in index.query(sketch)):
            leaders[number] = sketch
            index.insert(number, sketch, check_duplication=False)
    return len(leaders)


def rensa(texts: list[str], bar: float) -> int:
    """RMinHashLSH of rensa, candidates verified by their min-hashes."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=bar, num_perm=PERMUTATIONS, num_bands=32)
    leaders: dict[int, Any] = {}
    for number, text in enumerate(texts):
        sketch = RMinHash(num_perm=PERMUTATIONS, seed=1)
        sketch.update(list(shingles(text)))
        if not any(leaders[other].jaccard(sketch) >= bar for other in index.query(sketch)):
            leaders[number] = sketch
            index.insert(number, sketch)
    return len(leaders)


_DUCKDB = """
CREATE TABLE sketch AS
SELECT id, list_sort(list_distinct(list_transform(range(1, greatest(len(w) - 1, 2)),
       lambda i: hash(array_to_string(w[i:i + 2], ' ')))))[1:64] AS s
FROM (SELECT id, string_split(text, ' ') AS w FROM texts);
CREATE TABLE entry AS
SELECT id, v FROM (SELECT id, unnest(s[1:CAST(64 - ceil($bar * 64) + 1 AS INTEGER)]) AS v FROM sketch)
WHERE v IN (SELECT v FROM (SELECT unnest(s) AS v FROM sketch) GROUP BY v HAVING count(*) BETWEEN 2 AND $most);
CREATE TABLE candidate AS
SELECT DISTINCT a.id AS first, b.id AS second FROM entry a JOIN entry b USING (v) WHERE a.id < b.id;
SELECT first, second FROM (
    SELECT first, second, len(list_intersect(a.s, b.s)) AS c,
           len(list_filter(a.s, lambda x: x <= least(a.s[-1], b.s[-1]))) AS n,
           len(list_filter(b.s, lambda x: x <= least(a.s[-1], b.s[-1]))) AS m
    FROM candidate JOIN sketch a ON a.id = first JOIN sketch b ON b.id = second)
WHERE c >= $bar * (n + m - c) ORDER BY second, first
"""
_HELD = 200  # documents that may hold a value which DuckDB joins: without a bound a frame makes the square of its texts


def duckdb(texts: list[str], bar: float) -> int:
    """Sketches of 64 values, candidates by the smallest ones, and verification, all in SQL."""
    import duckdb as duck
    import pyarrow as pa

    leads = [True] * len(texts)
    with duck.connect() as connection:
        connection.register("texts", pa.table({"id": list(range(len(texts))), "text": texts}))
        statements = [statement for statement in _DUCKDB.split(";") if statement.strip()]
        for statement in statements:
            wanted = {"bar": bar, "most": _HELD}
            given = {name: value for name, value in wanted.items() if f"${name}" in statement}
            found = connection.execute(statement, given)
        for first, second in found.fetchall():
            if leads[first]:
                leads[second] = False
    return sum(leads)


class _Words:
    """Splits a text at spaces, as the others do; datatrove's own tokenizers are models."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()


def datatrove(texts: list[str], bar: float) -> int:
    """The four steps of datatrove's MinhashDedup, of 32 buckets of 4 hashes: candidates are not verified."""
    from datatrove.data import Document
    from datatrove.pipeline.dedup import minhash
    from datatrove.utils.hashing import HashConfig

    minhash.load_word_tokenizer = lambda language: _Words()
    buckets, hashes = 32, 4
    if bar != 0.5:
        raise ValueError("buckets are chosen for a bar of 0.5")
    config = minhash.MinhashConfig(
        n_grams=3, num_buckets=buckets, hashes_per_bucket=hashes, hash_config=HashConfig(hash_fc="sha1")
    )
    documents = [Document(text=text, id=str(number)) for number, text in enumerate(texts)]
    with TemporaryDirectory() as folder:
        signatures, found, removed = (f"{folder}/{name}" for name in ("signatures", "buckets", "removed"))
        minhash.MinhashDedupSignature(signatures, config).run(documents)
        for bucket in range(buckets):
            minhash.MinhashDedupBuckets(signatures, found, config=config).run(rank=bucket, world_size=buckets)
        minhash.MinhashDedupCluster(found, removed, config=config).run()
        return sum(1 for _ in minhash.MinhashDedupFilter(removed).run(documents))


_PACKAGES = {"datatrove": "datatrove regex tokenizers xxhash"}  # and what its minhash imports
PEERS = {"datasketch": datasketch, "rensa": rensa, "duckdb": duckdb, "datatrove": datatrove}


def recall(count: int, bar: float | str) -> Figures:
    """The share of the pairs at the bar that were found, of all pairs of some generated documents."""
    recipe = Recipe()
    return {"documents": count, **recall_of(sketch_many(made.texts(count, frames=FRAMES), recipe), recipe, bar)}


def recall_of(sketches: Sketches, recipe: Recipe, bar: float | str) -> Figures:
    """The share of the pairs at the bar that were found, and the share of those found that are at the bar."""
    count = len(sketches)
    corpus = Corpus([str(at) for at in range(count)], sketches, recipe)
    found = corpus.pairs(bar)
    met = set((found.pairs.first * count + found.pairs.second).tolist())
    decision = Decision.of(bar, recipe, corpus.frequency_table if bar == "auto" else None)
    rows = rows_of(sketches, recipe.k)
    expected = missed = 0
    for start in range(0, count, _ROWS):
        first = np.repeat(np.arange(start, min(start + _ROWS, count)), count)
        second = np.tile(np.arange(count), len(first) // count)
        first, second = first[first < second], second[first < second]
        counts = decision.accepts(overlaps(rows, first, second, decision.frequency_table))
        counts &= (found.same[first] == first) & (found.same[second] == second)
        codes = (first[counts] * count + second[counts]).tolist()
        expected += len(codes)
        missed += sum(code not in met for code in codes)
    right = expected - missed
    return {"bar": bar, "pairs": expected, "recall": right / max(expected, 1), "precision": right / max(len(met), 1)}


def timed(find: Find, texts: Texts, bar: float | str, keeps: bool = False) -> Figures:
    """Seconds from texts to groups, processor seconds, and the most memory, in a new process.

    keeps: whether that process keeps freed memory (ndd_search.allocator).
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, keep_freed if keeps else None) as pool:
        return pool.apply(_timed, (find, texts, bar))


def _timed(find: Find, texts: Texts, bar: float | str) -> Figures:
    given = list(texts) if find in PEERS.values() else texts
    start, worked = time.perf_counter(), time.process_time()
    groups = find(given, bar)
    return {
        "library": find.keywords["recipe"] if isinstance(find, partial) else find.__name__,
        "documents": texts.count,
        "bar": bar,
        "groups": groups,
        "seconds": round(time.perf_counter() - start, 2),
        "processor_seconds": round(time.process_time() - worked, 2),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def plot(rows: list[Figures], path: Path) -> None:
    """Processor seconds by documents, both on logarithmic axes, beside a line of linear growth."""
    from matplotlib import pyplot as plt
    from matplotlib import use

    use("svg")
    plt.rcParams["svg.hashsalt"] = "ndd_search"  # equal figures give equal files
    figure, axes = plt.subplots(figsize=(5, 3.2))
    for bar in dict.fromkeys(row["bar"] for row in rows):
        chosen = sorted((row["documents"], row["processor_seconds"]) for row in rows if row["bar"] == bar)
        axes.loglog(*zip(*chosen, strict=True), marker="o", label=f"min_similarity {bar}")
    sizes = sorted({row["documents"] for row in rows})
    least = min(row["processor_seconds"] / row["documents"] for row in rows)
    axes.loglog(sizes, [least * size for size in sizes], color="#999999", linestyle="--", label="linear")
    axes.set(xlabel="documents", ylabel="processor seconds")
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def record(rows: Iterable[Figures], path: Path) -> list[Figures]:
    """Add figures to those that a file holds. Returns all of them."""
    kept = json.loads(path.read_text()) if path.exists() else []
    known = {(row["library"], row["documents"], row["bar"]): row for row in [*kept, *rows]}
    everything = [known[key] for key in sorted(known, key=lambda key: (key[0], str(key[2]), key[1]))]
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in everything) + "\n]\n")
    return everything


def _installed(names: Sequence[str]) -> list[Find]:
    """Those of some other libraries that are installed; the others are named."""
    there = [name for name in names if find_spec(name)]
    for name in set(names) - set(there):
        print(json.dumps({"library": name, "missing": f"pip install {_PACKAGES.get(name, name)}"}))
    return [PEERS[name] for name in there]


def _bar(text: str) -> float | str:
    return text if text == "auto" else float(text)


def show(figures: Iterable[Figures]) -> list[Figures]:
    """Print a line of JSON for each, and return them."""
    shown = []
    for one in figures:
        print(json.dumps(one), flush=True)
        shown.append(one)
    return shown


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*")
    parser.add_argument("--min-similarity", type=_bar, nargs="+", default=[0.5, "auto"])
    parser.add_argument("--recipes", nargs="*", default=[], help="ids of other recipes than the default")
    parser.add_argument("--published", action="store_true", help="by each published method, each at its own bar")
    parser.add_argument("--real-words", type=int, nargs="?", const=LONGEST, metavar="LONGEST")
    parser.add_argument("--peers", nargs="*", choices=PEERS)
    parser.add_argument("--recall", type=int)
    parser.add_argument("--extremes", nargs="*", choices=[make.__name__ for make in EXTREMES])
    parser.add_argument("--keep-freed", action="store_true", help="every process keeps the memory that it frees")
    parser.add_argument("--texts", type=Path, metavar="FOLDER", help="keep the generated texts here")
    parser.add_argument("--record", type=Path, metavar="FILE.json", help="add the figures to those of this file")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw processor seconds; needs matplotlib")
    arguments = parser.parse_args()
    rows: list[Figures] = []
    recipes = [*arguments.recipes, *(PUBLISHED if arguments.published else ())]
    by: list[Find] = [partial(ours, recipe=recipe) for recipe in recipes] or [ours]
    bars = ["auto"] if arguments.published else arguments.min_similarity
    with TemporaryDirectory() as temporary:
        for bar in bars:
            if arguments.recall:
                show([recall(arguments.recall, bar)])
            if arguments.extremes is not None:
                chosen = [make for make in EXTREMES if not arguments.extremes or make.__name__ in arguments.extremes]
                show(extreme(make, size, bar) for size in arguments.sizes for make in chosen)
                continue
            peers = _installed(arguments.peers or list(PEERS)) if arguments.peers is not None and bar != "auto" else []
            for size in arguments.sizes:
                texts = Texts.of(arguments.texts or Path(temporary), size, arguments.real_words)
                rows += show(timed(find, texts, bar, arguments.keep_freed) for find in [*by, *peers])
    if arguments.record:
        rows = record(rows, arguments.record)
    if arguments.plot:
        plot([row for row in rows if row["library"] == "ours"], arguments.plot)


if __name__ == "__main__":
    main()
