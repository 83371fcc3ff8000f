"""What ndd-search corpus and items read and find on a Spark cluster: --spark."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ndd_search.cli import LeftOut
from ndd_search.cli.cluster import ADDRESSES, Address, parts_of
from ndd_search.cli.output import tell
from ndd_search.core.text.printable import many
from ndd_search.corpus.document_batches import Report
from ndd_search.corpus.spark import SparkCorpus
from ndd_search.corpus.spark_index import SparkIndex
from ndd_search.corpus.spark_pairs import write_rows
from ndd_search.errors import NDDError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_KINDS = {"unique": (".jsonl", ".jsonl.gz"), "new": (".jsonl", ".jsonl.gz")}  # of what --out names
_PARTS = "spark.sql.shuffle.partitions"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_IN_A_PART = 50_000  # documents


class OnSpark:
    """Reads collections on a cluster."""

    def __init__(self, arguments: argparse.Namespace, stack: ExitStack) -> None:
        given = {**vars(arguments), "set origins": dict(arguments.set).get("origins")}
        _check(given, ("report", "fields", "set origins", "since"))
        self._arguments, self._spark, self._earlier = arguments, stack.enter_context(_session(arguments.spark)), 0
        _spread(self._spark)

    def load(self, path: str) -> SparkCorpus:
        corpus = SparkCorpus.load(self._spark, path, _work(self._arguments))
        self._earlier = len(corpus)
        return corpus

    def read(self, reading: dict[str, Any], report: Report) -> SparkCorpus:
        sources = [_source(self._spark, self._arguments, name) for name in self._arguments.sources]
        reading |= {"id": self._arguments.id, "work": _work(self._arguments)}
        corpus = SparkCorpus.read(self._spark, *sources, **reading, report=report)
        _spread(self._spark, len(corpus) + self._earlier)
        return corpus


def run_items(arguments: argparse.Namespace) -> int:
    """Find the groups of records on a cluster. Returns the exit code."""
    from ndd_search.items.items import Items  # they need an extra that documents do not
    from ndd_search.items.spark import SparkRecords

    _check(vars(arguments), ("report",))
    report = LeftOut()
    with _session(arguments.spark) as spark:
        _spread(spark)
        read: dict[str, Any] = {"schema": Items.read(arguments.schema), "work": _work(arguments), "id": arguments.id}
        records = SparkRecords.read(spark, *arguments.sources, **read, report=report)
        _spread(spark, records.count)
        table = records.groups(arguments.method)
        write_rows(table, arguments.out)
        facts = {"records": records.count, "groups": table.filter("record = group").count()}
        said = f"{many(facts['records'], 'record')} of {many(facts['groups'], 'different thing')}"
        tell(arguments, facts, said)
    return report.code


def _check(given: Mapping[str, Any], others: Sequence[str]) -> None:
    """Raise ValueError for arguments that do not go with --spark. others: those of one machine."""
    kinds = _KINDS.get(given["action"], (".parquet",))
    if not given["store"]:
        raise ValueError("--spark needs --store FOLDER, a folder that all workers of the cluster share")
    if not (given["out"] or "").endswith(kinds):
        raise ValueError(f"--spark needs --out FOLDER{kinds[0]}: Spark writes a folder of files")
    for name in others:
        if given.get(name):
            raise ValueError(f"--{name} does not go with --spark: leave one of them out")


def _work(arguments: argparse.Namespace) -> str:
    """The folder for the stages, as all workers name it."""
    folder: str = arguments.store
    return folder if "://" in folder else os.path.abspath(folder)


def _source(spark: SparkSession, arguments: argparse.Namespace, name: str) -> str | SparkIndex:
    if not name.startswith(ADDRESSES):
        return name
    url, index = parts_of(name)
    address = Address.of(arguments, url)
    engine, slices = address.detect(), max(spark.sparkContext.defaultParallelism, 2)
    client = address.arguments(engine)
    return SparkIndex(engine=engine, url=address.url, index=index, client=client, slices=slices)


@contextmanager
def _session(master: str) -> Iterator[SparkSession]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    is_local = master.startswith("local")
    if is_local:  # the workers run on this machine; Spark takes the first python3 of the PATH
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")  # half of Java's time is its compiler's
    try:
        session = SparkSession.builder.appName("ndd-search corpus").master(master).getOrCreate()
    except (PySparkException, Py4JError) as error:
        problem = f"it does not start, see above: {str(error).strip().splitlines()[0]}"
        java = os.environ.get("JAVA_HOME") or "not set"
        remedy = f"check the address, and that JAVA_HOME is the folder of Java 17 or later (it is {java})"
        raise NDDError(f"Spark on {master}", problem, remedy) from error
    session.sparkContext.setLogLevel("ERROR")
    if is_local and not session.sparkContext.getConf().contains(_ADAPTIVE):
        session.conf.set(_ADAPTIVE, "false")  # it makes a job of each stage, half as many again
    try:
        yield session
    finally:
        session.stop()


def _spread(spark: SparkSession, documents: int = 0) -> None:
    """Set the number of parts of a shuffle by the number of documents, unless the user's configuration does.

    Each part of each stage is a task that takes a tenth of a second whatever it holds, and Spark makes 200 of them.
    """
    if not spark.sparkContext.getConf().contains(_PARTS):
        spark.conf.set(_PARTS, spark.sparkContext.defaultParallelism + documents // _IN_A_PART)
