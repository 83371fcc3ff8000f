"""What the groups of a collection cost on Spark, a stage at a time and for each document.

    python -m benchmarks.corpus_spark 20000 [--master local[2]] [--min-similarity auto] [--sampled 500] [--texts FOLDER]
    python -m benchmarks.corpus_spark 300000 --master standalone
    python -m benchmarks.corpus_spark 1000000 --published --real-words --memory 5g --partitions 16 --texts FOLDER

Documents, --published, --real-words and --texts are those of benchmarks.corpus. The master "standalone" is a cluster of
two workers of one processor each, started for the run. Needs the extra `spark` and Java 17 or later. Figures come from
Spark's event log: bytes shuffled, bytes written to the work folder, and task seconds, which include those of Python
processes. With a local master, the processor seconds of Java and Python until the groups are there come from /proc. The
groups of one machine are compared with those of Spark, and timed. Settings of Spark and Java are those of ndd-search
--spark.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.corpus import PUBLISHED, Texts
from benchmarks.real_words import LONGEST
from ndd_search.corpus.collection import Corpus
from tests.corpus.spark import cluster, session

_FILES = 8


def tasks_of(log: Path) -> list[dict[str, Any]]:
    """The metrics of every task in a folder of event logs."""
    lines = (line for path in log.rglob("*") if path.is_file() for line in path.read_text().splitlines())
    events = (json.loads(line) for line in lines if line.startswith('{"Event":"SparkListenerTaskEnd"'))
    return [event["Task Metrics"] for event in events]


def processor_seconds() -> dict[str, float]:
    """The processor seconds of this process and of all that it started, with their ended children, by program."""
    parents, spent = dict[int, int](), dict[int, tuple[str, float]]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            head, _, rest = stat.read_text().rpartition(")")
            number, _, program = head.partition(" (")
            parents[int(number)] = int(rest.split()[1])
            spent[int(number)] = program, sum(map(int, rest.split()[11:15])) / os.sysconf("SC_CLK_TCK")
    own, total = {os.getpid()}, dict[str, float]()
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    for program, seconds in (spent[number] for number in own):
        total[program] = total.get(program, 0.0) + seconds
    return {program: round(seconds, 1) for program, seconds in total.items() if seconds >= 1}


@contextmanager
def running(master: str, folder: Path) -> Iterator[str]:
    """The address of a master, which is started for "standalone"."""
    if master != "standalone":
        yield master
        return
    with cluster(folder) as running:
        yield running.url


def written(texts: Texts, folder: Path) -> str:
    """The texts as documents in files of a new folder. Returns the pattern of their names."""
    folder.mkdir()
    rest, count = enumerate(texts), texts.count
    for part in range(_FILES):
        size = (part + 1) * count // _FILES - part * count // _FILES
        lines = (json.dumps({"id": f"{number:09}", "text": text}) + "\n" for number, text in islice(rest, size))
        with (folder / f"{part}.jsonl").open("w") as file:
            file.writelines(lines)
    return str(folder / "*.jsonl")


def figures(
    source: str, count: int, master: str, bar: float | str, folder: Path, recipe: str | None, settings: dict[str, str]
) -> dict[str, Any]:
    """Sums over all tasks, for each of `count` documents of a source. settings: of Spark."""
    log = folder / "log"
    log.mkdir()
    events = {"eventLog.enabled": "true", "eventLog.compress": "false", "eventLog.dir": str(log)}
    with running(master, folder) as address, session(address, **events, **settings) as spark:
        corpus_on_spark = import_module("ndd_search.corpus.spark").SparkCorpus
        start = time.perf_counter()
        groups = corpus_on_spark.read(spark, source, text="text", recipe=recipe, work=folder / "work").groups(bar)
        seconds, processor = time.perf_counter() - start, processor_seconds()
        found = {row["document"]: row["group"] for row in groups.table.toArrow().to_pylist()}
        met = groups.effort.met
    start = time.perf_counter()
    alone = Corpus.read(source, text="text", recipe=recipe).groups(bar)
    seconds_alone = time.perf_counter() - start
    expected = {row["document"]: row["group"] for row in alone.rows()}
    tasks = tasks_of(log)
    shuffled = sum(task["Shuffle Write Metrics"]["Shuffle Bytes Written"] for task in tasks)
    written = sum(path.stat().st_size for path in (folder / "work").rglob("*.parquet"))
    return {
        "documents": count,
        "recipe": recipe,
        "bar": bar,
        "different_groups": sum(found[name] != group for name, group in expected.items()),
        "groups": len(alone),
        "seconds": round(seconds, 1),
        "processor_seconds": processor,
        "seconds_one_machine": round(seconds_alone, 1),
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
    parser.add_argument("--part", type=int, help="documents of a part, as if there were many more")
    parser.add_argument("--recipes", nargs="+", default=[None], help="ids of other recipes than the default")
    parser.add_argument("--published", action="store_true", help="by each published method, each at its own bar")
    parser.add_argument("--memory", default="1g", help="of the driver, and of each executor")
    parser.add_argument("--partitions", default="3", help="of each shuffle")
    parser.add_argument("--real-words", type=int, nargs="?", const=LONGEST, help="see benchmarks.corpus")
    parser.add_argument("--texts", type=Path, metavar="FOLDER", help="keep the generated texts here")
    arguments = parser.parse_args()
    if arguments.sampled:
        vars(import_module("ndd_search.corpus.spark_pairs"))["SAMPLED"] = arguments.sampled
    if arguments.part:
        vars(import_module("ndd_search.corpus.spark_parts"))["SIZE"] = arguments.part
    bar = arguments.min_similarity
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
    settings = {"sql.shuffle.partitions": arguments.partitions, "sql.adaptive.enabled": "false"}
    settings |= {"driver.memory": arguments.memory, "executor.memory": arguments.memory}
    for size in arguments.sizes:
        with TemporaryDirectory() as temporary:
            texts = Texts.of(arguments.texts or Path(temporary) / "texts", size, arguments.real_words)
            source = written(texts, Path(temporary) / "source")
            for recipe in PUBLISHED if arguments.published else arguments.recipes:
                with TemporaryDirectory(dir=temporary) as folder:
                    found = figures(
                        source,
                        size,
                        arguments.master,
                        bar if bar == "auto" else float(bar),
                        Path(folder),
                        recipe,
                        settings,
                    )
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
