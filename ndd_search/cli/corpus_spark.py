"""The actions `groups` and `pairs` of ndd-search corpus on a Spark cluster."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ndd_search.cli.cluster import API_KEY, Address
from ndd_search.corpus.spark import SparkCorpus
from ndd_search.corpus.spark_index import IndexDataSource
from ndd_search.errors import IndexUnusable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def corpus_on_spark(arguments: argparse.Namespace, fields: list[str], report: Any) -> Iterator[SparkCorpus]:
    """The collection that a command names, read on a cluster."""
    with _session(arguments.spark) as spark:
        addresses = [name for name in arguments.sources if name.startswith(("http://", "https://"))]
        if addresses and len(arguments.sources) > 1:
            raise ValueError("with --spark the source is one index, or files")
        names = list(dict.fromkeys([*arguments.text, *fields]))
        sources = [_index(spark, arguments, name, names) for name in addresses] or arguments.sources
        yield SparkCorpus.read(
            spark,
            *sources,
            text=arguments.text,
            work=arguments.work if "://" in arguments.work else os.path.abspath(arguments.work),
            id="_id" if addresses else arguments.id,
            recipe=arguments.recipe,
            fields=fields,
            numbers=arguments.numbers_must_match,
            report=report,
        )


@contextmanager
def _session(master: str) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    building = SparkSession.builder.appName("ndd-search corpus").master(master)
    if master.startswith("local"):
        building = building.config("spark.pyspark.python", sys.executable)
    session = building.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def _index(spark: SparkSession, arguments: argparse.Namespace, name: str, fields: list[str]) -> DataFrame:
    """An index as a DataFrame of `_id` and some fields, as text."""
    parts = urlsplit(name)
    prefix, _, index = parts.path.rstrip("/").rpartition("/")
    if not index:
        raise IndexUnusable(name, "it names no index", "write http[s]://[USER:PASSWORD@]HOST[:PORT]/INDEX")
    key = os.environ.get(API_KEY, "")
    url = parts._replace(path=prefix, query="", fragment="").geturl()
    address = Address.parse(url, api_key=key, ca_certs=arguments.ca_certs, insecure=arguments.insecure)
    engine = arguments.engine or address.detect()
    spark.dataSource.register(IndexDataSource)
    schema = ", ".join(f"`{field}` string" for field in ["_id", *fields])
    options = {"engine": engine, "url": address.url, "index": index, "client": json.dumps(address.arguments(engine))}
    slices = str(max(spark.sparkContext.defaultParallelism, 2))
    return spark.read.format("ndd_search").schema(schema).options(**options, slices=slices).load()
