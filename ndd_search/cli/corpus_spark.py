"""The actions of ndd-search corpus and items on a Spark cluster: --spark."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ndd_search.cli import LeftOut
from ndd_search.cli.cluster import Address
from ndd_search.cli.corpus_arguments import (
    ADDRESSES,
    check_fields,
    fields_of_command,
    is_first_run,
    options_of,
    parts_of,
    sentence_of,
    settings_of,
    tell_cut,
    tell_hosts,
    tell_new,
)
from ndd_search.cli.output import tell
from ndd_search.core.recipe import Recipe
from ndd_search.core.text.printable import many
from ndd_search.corpus.document_batches import Report
from ndd_search.corpus.spark import SparkCorpus, SparkGroups
from ndd_search.corpus.spark_index import IndexDataSource
from ndd_search.corpus.spark_reading import write_documents
from ndd_search.errors import NDDError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_KINDS = {"unique": (".jsonl", ".jsonl.gz"), "new": (".jsonl", ".jsonl.gz")}  # of what --out names
_PARTS = "spark.sql.shuffle.partitions"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_IN_A_PART = 50_000  # documents
_WHOLE = "_source"  # the column of an index that holds documents with all their fields


def run(arguments: argparse.Namespace) -> int:
    """Run an action on a cluster. Returns the exit code."""
    given = {**vars(arguments), "set origins": options_of(arguments).origins}
    _check(given, ("report", "fields", "set origins", "since"))
    report = LeftOut()
    with _session(arguments.spark) as spark:
        _spread(spark)
        source = _source(spark, arguments)
        is_new = arguments.action == "new"
        knows = is_new and not is_first_run(arguments)
        against = SparkCorpus.load(spark, arguments.against, _work(arguments)) if knows else None
        corpus = _read(spark, arguments, source, against.recipe if against else None, report)
        _spread(spark, corpus.count + (against.count if against else 0))
        if corpus.count:
            check_fields(arguments, corpus.has_value)
        if is_new:
            nothing = SparkCorpus(corpus.documents.limit(0), corpus.recipe, corpus.fields, corpus.work)
            _new(arguments, corpus, against or nothing, source)
        elif arguments.action == "hosts":
            _hosts(arguments, corpus, report)
        else:
            actions = {"groups": _groups, "unique": _unique, "pairs": _pairs}
            actions[arguments.action](arguments, corpus, source)
        if arguments.save and not is_new:
            corpus.save(arguments.save)
    return report.code


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
        _write(table, arguments.out)
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
    if any(name.startswith(ADDRESSES) for name in given["sources"]) and given["id"] not in (None, "_id"):
        raise ValueError(f"with --spark, the id of documents of an index is their _id: leave out --id {given['id']}")
    for name in others:
        if given.get(name):
            raise ValueError(f"--{name} does not go with --spark: leave one of them out")


def _groups(arguments: argparse.Namespace, corpus: SparkCorpus, _: object) -> None:
    groups, facts = _grouped(arguments, corpus)
    _write(groups.table, arguments.out)
    tell(arguments, facts, sentence_of(facts))


def _unique(arguments: argparse.Namespace, corpus: SparkCorpus, source: DataFrame | None) -> None:
    groups, facts = _grouped(arguments, corpus)
    _write_documents(arguments, corpus, source, groups.leaders, facts["groups"])
    tell(arguments, {**facts, "written": facts["groups"]}, sentence_of(facts))


def _grouped(arguments: argparse.Namespace, corpus: SparkCorpus) -> tuple[SparkGroups, dict[str, int]]:
    """The groups, and how many there are."""
    groups = corpus.groups(**settings_of(arguments), method=arguments.method, keep=options_of(arguments).keep)
    tell_cut(groups.effort)
    documents, count = corpus.count, groups.leaders.count()
    return groups, {"documents": documents, "groups": count, "near_duplicates": documents - count}


def _pairs(arguments: argparse.Namespace, corpus: SparkCorpus, _: object) -> None:
    count = _write(corpus.pairs(**settings_of(arguments)), arguments.out)
    tell(arguments, {"documents": corpus.count, "pairs": count}, f"{many(count, 'pair')} of near-duplicates")


def _hosts(arguments: argparse.Namespace, corpus: SparkCorpus, report: LeftOut) -> None:
    found = corpus.hosts(arguments.url, **settings_of(arguments), min_share=arguments.min_share)
    count = _write(found.table, arguments.out)
    tell_hosts(arguments, report, found.without_host, corpus.count, count, found.table.filter("mirror").count())


def _new(arguments: argparse.Namespace, corpus: SparkCorpus, against: SparkCorpus, source: DataFrame | None) -> None:
    found = corpus.new(against, **settings_of(arguments))
    tell_cut(found.effort)
    count = found.new.count()
    _write_documents(arguments, corpus, source, found.new, count)
    if arguments.save:
        found.save(arguments.save)
    tell_new(arguments, corpus.count, count)


def _write(rows: DataFrame, path: str) -> int:
    """Write rows as a folder of Parquet files. Returns how many."""
    rows.write.mode("overwrite").parquet(path)
    count: int = rows.sparkSession.read.parquet(path).count()
    return count


def _write_documents(
    arguments: argparse.Namespace, corpus: SparkCorpus, source: DataFrame | None, ids: DataFrame, count: int
) -> None:
    """Write the documents that have some ids."""
    if source is None:
        rows = corpus.documents_of(ids)
    else:
        rows = source.join(ids, source["_id"] == ids["id"], "left_semi").sort("_id").select(_WHOLE)
    write_documents(rows, arguments.out, count)


def _work(arguments: argparse.Namespace) -> str:
    """The folder for the stages, as all workers name it."""
    folder: str = arguments.store
    return folder if "://" in folder else os.path.abspath(folder)


def _read(
    spark: SparkSession,
    arguments: argparse.Namespace,
    source: DataFrame | None,
    recipe: Recipe | None,
    report: Report,
) -> SparkCorpus:
    """The collection that a command names. recipe: unless the command names one."""
    return SparkCorpus.read(
        spark,
        *([source] if source is not None else arguments.sources),
        text=arguments.text,
        work=_work(arguments),
        id="_id" if source is not None else arguments.id,
        recipe=arguments.recipe or recipe,
        fields=fields_of_command(arguments),
        numbers=options_of(arguments).same_numbers,
        preset=settings_of(arguments).get("preset"),
        report=report,
    )


def _source(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame | None:
    """The index that a command names, None for files."""
    addresses = [name for name in arguments.sources if name.startswith(ADDRESSES)]
    if addresses and len(arguments.sources) > 1:
        raise ValueError("with --spark the source is one index, or files")
    whole = [_WHOLE] if arguments.action in _KINDS else []
    names = list(dict.fromkeys([*arguments.text, *fields_of_command(arguments), *whole]))
    if addresses and (within := next((name for name in names if "." in name), None)):
        raise ValueError(f"--spark reads no field within an object of an index, as {within!r}: leave out --spark")
    return _index(spark, arguments, addresses[0], names) if addresses else None


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


def _index(spark: SparkSession, arguments: argparse.Namespace, name: str, fields: list[str]) -> DataFrame:
    """An index as a DataFrame of `_id` and some fields, as text."""
    url, index = parts_of(name)
    address = Address.of(arguments, url)
    engine = address.detect()
    spark.dataSource.register(IndexDataSource)
    schema = ", ".join(f"`{field}` string" for field in ["_id", *fields])
    options = {"engine": engine, "url": address.url, "index": index, "client": json.dumps(address.arguments(engine))}
    slices = str(max(spark.sparkContext.defaultParallelism, 2))
    return spark.read.format("ndd_search").schema(schema).options(**options, slices=slices).load()
