"""Groups found by a standalone Spark cluster of two workers are those of one machine, even if a worker is killed.

Runs with NDD_TEST_LONG=1 only, because the processes of a cluster start slowly.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import ndd_search as ndd
from tests.conftest import LONG
from tests.corpus.spark import Cluster, cluster, session
from tests.corpus.test_spark import by_document, corpus_on, documents, on_two_hosts, write
from tests.engines.jars import Unavailable
from tests.items.made import PEOPLE, people

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of pyspark and pandas
    pytest.mark.skipif(not LONG, reason="NDD_TEST_LONG=1 runs a cluster of two workers"),
]


def killing(running: Cluster) -> tuple[subprocess.Popen[bytes], threading.Thread]:
    """A worker that is killed in two seconds, with its executors, by a thread."""
    victim = running.workers[0]

    def kill() -> None:
        time.sleep(2)
        for process in [victim.pid, *running.executors_of(victim)]:
            os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    return victim, killer


def test_a_killed_worker_of_a_cluster_changes_no_groups_of_records(tmp_path: Path) -> None:
    made = people(1_500, seed=3)
    schema = ndd.items.Items.learn(made.records, PEOPLE)
    source = write(tmp_path / "people", made.records)
    on_spark = importlib.import_module("ndd_search.items.spark").SparkRecords
    try:
        with cluster(tmp_path) as running, session(running.url) as spark:
            there = on_spark.read(spark, source, schema=schema, id="id", work=tmp_path / "work", report=lambda _: None)
            victim, killer = killing(running)
            found = {row["record"]: row["group"] for row in replace(there, range=500).groups().toArrow().to_pylist()}
            killer.join()
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert victim.wait() == -signal.SIGKILL
    assert found == {row["record"]: row["group"] for row in schema.groups(made.records, id="id").rows()}


def test_a_killed_worker_of_a_cluster_changes_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "docs", on_two_hosts(documents(4_000)))
    here = ndd.Corpus.read(source, text="text", fields=["url"], report=lambda _: None)
    here.save(tmp_path / "here.parquet")
    expected = here.groups(0.5)
    try:
        with cluster(tmp_path) as running, session(running.url) as spark:
            there = corpus_on(spark, source, text="text", fields=["url"], work=tmp_path / "work")
            victim, killer = killing(running)
            groups = there.groups(0.5)
            found = by_document(groups.table.toArrow().to_pylist())
            unique = [json.loads(row["document"]) for row in groups.unique_documents().toArrow().to_pylist()]
            hosts = there.hosts("url", 0.5).table.toArrow().to_pylist()
            earlier = there.load(spark, str(tmp_path / "here.parquet"), tmp_path / "work")
            new = there.new(earlier, 0.5).table.toArrow().to_pylist()
            killer.join()
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert victim.wait() == -signal.SIGKILL
    assert found == by_document(expected.rows())
    assert unique == list(expected.unique_documents())
    assert hosts == list(here.hosts("url", 0.5).rows())
    newcomers = here.new(ndd.Corpus.load(tmp_path / "here.parquet"), 0.5)
    known = {row["document"]: (row["duplicate_of"], row["earlier"]) for row in newcomers.rows()}
    assert {row["document"]: (row["duplicate_of"], row["earlier"]) for row in new if row["document"] in known} == known
    assert sum(row["document"] not in known for row in new) == len(newcomers)
