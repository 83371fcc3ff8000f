"""What the groups of a collection cost on Spark, a stage at a time and for each document.

    python -m benchmarks.corpus_spark 20000 [--master local[2]] [--min-similarity auto] [--sampled 500] [--texts FOLDER]
    python -m benchmarks.corpus_spark 300000 --master standalone
    python -m benchmarks.corpus_spark 100000 --recipe w1-k4-v2-simhash --real-words

Documents and --texts are those of benchmarks.corpus. The master "standalone" is a cluster of two workers of one
processor each, started for the run. Needs the extra `spark` and Java 17 or later. Figures come from Spark's event
log: bytes shuffled, bytes written to the work folder, and task seconds, which include those of Python processes. The
groups of one machine are compared with those of Spark.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.corpus import Texts
from ndd_search.corpus.collection import Corpus
from tests.corpus.spark import cluster, session

_FILES = 8


def tasks_of(log: Path) -> list[dict[str, Any]]:
    """The metrics of every task in a folder of event logs."""
    lines = (line for path in log.rglob("*") if path.is_file() for line in path.read_text().splitlines())
    events = (json.loads(line) for line in lines if line.startswith('{"Event":"SparkListenerTaskEnd"'))
    return [event["Task Metrics"] for event in events]


@contextmanager
def running(master: str, folder: Path) -> Iterator[str]:
    """The address of a master, which is started for "standalone"."""
    if master != "standalone":
        yield master
        return
    with cluster(folder) as running:
        yield running.url


def figures(texts: Texts, master: str, bar: float | str, folder: Path, recipe: str | None = None) -> dict[str, Any]:
    """Sums over all tasks, for each document."""
    count = texts.count
    rest = enumerate(texts)
    for part in range(_FILES):
        size = (part + 1) * count // _FILES - part * count // _FILES
        lines = (json.dumps({"id": f"{number:09}", "text": text}) + "\n" for number, text in islice(rest, size))
        with (folder / f"{part}.jsonl").open("w") as file:
            file.writelines(lines)
    source, log = str(folder / "*.jsonl"), folder / "log"
    log.mkdir()
    events = {"eventLog.enabled": "true", "eventLog.compress": "false", "eventLog.dir": str(log)}
    with running(master, folder) as address, session(address, **events) as spark:
        corpus_on_spark = import_module("ndd_search.corpus.spark").SparkCorpus
        start = time.perf_counter()
        groups = corpus_on_spark.read(spark, source, text="text", recipe=recipe, work=folder / "work").groups(bar)
        seconds = time.perf_counter() - start
        found = {row["document"]: row["group"] for row in groups.table.toArrow().to_pylist()}
        met = groups.effort.met
    expected = {
        row["document"]: row["group"] for row in Corpus.read(source, text="text", recipe=recipe).groups(bar).rows()
    }
    tasks = tasks_of(log)
    shuffled = sum(task["Shuffle Write Metrics"]["Shuffle Bytes Written"] for task in tasks)
    written = sum(path.stat().st_size for path in (folder / "work").rglob("*.parquet"))
    return {
        "documents": count,
        "recipe": recipe,
        "bar": bar,
        "different_groups": sum(found[name] != group for name, group in expected.items()),
        "seconds": round(seconds, 1),
        "shuffled_bytes": round(shuffled / count),
        "written_bytes": round(written / count),
        "pairs_compared": round(met / count, 2),
        "task_milliseconds": round(sum(task["Executor Run Time"] for task in tasks) / count, 3),
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--min-similarity", default="auto")
    parser.add_argument(
        "--sampled", type=int, help="documents in which holders are counted, as if there were many more"
    )
    parser.add_argument("--recipe", help="id of another recipe than the default")
    parser.add_argument("--real-words", action="store_true", help="see benchmarks.corpus")
    parser.add_argument("--texts", type=Path, metavar="FOLDER", help="keep the generated texts here")
    arguments = parser.parse_args()
    if arguments.sampled:
        vars(import_module("ndd_search.corpus.spark_pairs"))["SAMPLED"] = arguments.sampled
    bar = arguments.min_similarity
    for size in arguments.sizes:
        with TemporaryDirectory() as folder:
            texts = Texts.of(arguments.texts or Path(folder) / "texts", size, arguments.real_words)
            found = figures(
                texts, arguments.master, bar if bar == "auto" else float(bar), Path(folder), arguments.recipe
            )
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
