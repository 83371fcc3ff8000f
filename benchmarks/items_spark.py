"""What the groups of records cost on Spark, for each record.

    python -m benchmarks.items_spark 100000 1000000 [--master local[2]] [--memory 4g] [--not-here] [--made FOLDER]

Records are those of tests.items.made, about three of each person, and the schema is learnt from 20,000 of them. The
groups of one machine are compared with those of Spark, unless --not-here is given. Masters and figures are those of
benchmarks.corpus_spark; megabytes are the most that all processes of Java, and all of Python below them, have held at a
time. Needs the extras `spark` and `items`, Java 17 or later, and Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

from benchmarks.corpus_spark import running, tasks_of
from ndd_search.corpus.document_batches import Pieces
from ndd_search.items.items import Items
from tests.corpus.spark import session
from tests.items.made import PEOPLE, people

_EACH = 2.7  # records of a person
_FILES = 8
_LEARNT_FROM = 20_000


def written(folder: Path, count: int) -> str:
    """Write so many records, unless they are there. Returns the pattern of their files."""
    if not folder.exists():
        folder.mkdir(parents=True)
        records = people(int(count / _EACH) + 1_000).records[:count]
        for part in range(_FILES):
            with (folder / f"{part}.jsonl").open("w") as file:
                file.writelines(json.dumps(row) + "\n" for row in records[part * count // _FILES :][: count // _FILES])
    return str(folder / "*.jsonl")


@contextmanager
def most_held() -> Iterator[Counter[str]]:
    """Yield the most megabytes that all processes of a program below this one hold."""
    most, over = Counter[str](java=0, python=0), Event()

    def below(pid: int) -> Iterator[int]:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from below(child)

    def watch() -> None:
        while not over.wait(1):
            held = Counter[str]()
            with suppress(OSError):  # one has just ended
                for pid in below(os.getpid()):
                    name, pages = (Path(f"/proc/{pid}/{file}").read_text() for file in ("comm", "statm"))
                    held[name.strip().rstrip("0123456789.")] += int(pages.split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
            most.update({name: max(held[name] - most[name], 0) for name in most})

    thread = Thread(target=watch, daemon=True)
    thread.start()
    yield most
    over.set()
    thread.join()


def figures(source: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Sums over all tasks, for each record."""
    first = next(iter(Pieces.of([source]).pieces))
    sample = [row for batch in Pieces.of([first]).read(print, "id") for row in batch.documents][:_LEARNT_FROM]
    schema = Items.learn(sample, PEOPLE)
    log, work = folder / "log", folder / "work"
    log.mkdir()
    events = {"eventLog.enabled": "true", "eventLog.compress": "false", "eventLog.dir": str(log)}
    settings = {"driver.memory": arguments.memory, "executor.memory": arguments.memory, "sql.shuffle.partitions": "8"}
    with (
        running(arguments.master, folder) as address,
        session(address, **events, **settings) as spark,
        most_held() as held,
    ):
        start = time.perf_counter()
        on_spark = import_module("ndd_search.items.spark").SparkRecords
        records = on_spark.read(spark, source, schema=schema, id="id", work=work)
        table = records.groups()
        seconds = time.perf_counter() - start
        found = {row["record"]: row["group"] for row in table.toArrow().to_pylist()}
    facts: dict[str, Any] = {"records": len(found), "groups": len(set(found.values()))}
    if not arguments.not_here:
        start = time.perf_counter()
        groups = schema.groups(source, id="id")
        facts["seconds_here"] = round(time.perf_counter() - start, 1)
        facts["pairs_compared"] = round(len(groups.candidates) / len(found), 1)
        facts["different_groups"] = sum(found[row["record"]] != row["group"] for row in groups.rows())
    tasks = tasks_of(log)
    shuffled = sum(task["Shuffle Write Metrics"]["Shuffle Bytes Written"] for task in tasks)
    size = sum(path.stat().st_size for path in work.rglob("*.parquet"))
    return {
        **facts,
        "seconds": round(seconds, 1),
        "records_a_second": round(len(found) / seconds),
        "megabytes": held,
        "shuffled_bytes": round(shuffled / len(found)),
        "written_bytes": round(size / len(found)),
        "task_milliseconds": round(sum(task["Executor Run Time"] for task in tasks) / len(found), 3),
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="2g", help="of each Java process (2g)")
    parser.add_argument("--not-here", action="store_true", help="do not group the records on this machine alone, too")
    parser.add_argument("--made", type=Path, metavar="FOLDER", help="keep the made records here")
    arguments = parser.parse_args()
    for size in arguments.sizes:
        with TemporaryDirectory() as name:
            folder = Path(name)
            source = written((arguments.made or folder) / f"people-{size}", size)
            print(json.dumps(figures(source, folder, arguments)), flush=True)


if __name__ == "__main__":
    main()
