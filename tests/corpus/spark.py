"""Spark for the tests: sessions on this machine, and a standalone cluster of two worker processes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.conftest import missing
from tests.engines.jars import Unavailable, find_java
from tests.engines.launch import free_ports

ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 120.0  # until the workers have joined the master


@contextmanager
def session(master: str, **more: str) -> Iterator[Any]:
    """A session of a master, with more settings. Raises Unavailable without Spark or Java."""
    for package in ("pyspark", "pandas"):
        if not find_spec(package):
            raise Unavailable(f"needs {package}: pip install -e '.[spark]'")
    os.environ["JAVA_HOME"] = str(find_java(17).home)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    building = importlib.import_module("pyspark.sql").SparkSession.builder.master(master)
    settings = {"ui.enabled": "false", "ui.showConsoleProgress": "false", "sql.shuffle.partitions": "3"}
    settings |= {"driver.memory": "1g", "executor.memory": "1g", "log.level": "ERROR", **more}
    for name, value in settings.items():
        building = building.config(f"spark.{name}", value)
    spark = building.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def session_or_skip(master: str) -> Iterator[Any]:
    """The same; without Spark or Java the tests are skipped."""
    try:
        with session(master) as spark:
            yield spark
    except Unavailable as reason:
        missing("spark", reason)


class Cluster:
    """A standalone master with two workers, each a process of its own. folder: for their logs."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        (self._port,) = free_ports(1)
        self.url = f"spark://127.0.0.1:{self._port}"
        self._master = self._start("Master", "--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0")
        time.sleep(1)
        self.workers = [self.add_worker(), self.add_worker()]

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker of one processor."""
        return self._start("Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0", self.url)

    def wait(self) -> None:
        """Wait until two workers have joined."""
        until = time.monotonic() + _SECONDS
        while self._log("Master").count("Registering worker") < 2:
            if time.monotonic() > until:
                raise RuntimeError(f"the workers have not joined the master: {self._log('Master')[-2000:]}")
            time.sleep(0.2)

    def executors_of(self, worker: subprocess.Popen[bytes]) -> list[int]:
        """The process ids of a worker's executors and of their Python processes."""
        parents: dict[int, int] = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        found = {worker.pid}
        while more := {child for child, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found - {worker.pid})

    def stop(self) -> None:
        for process in [*self.workers, self._master]:
            process.terminate()
            process.wait()

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(importlib.import_module("pyspark").__file__ or "").parent
        name = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        self._number += 1
        environment = {**os.environ, "JAVA_HOME": str(find_java(17).home), "SPARK_LOCAL_IP": "127.0.0.1"}
        with (self._folder / f"{kind}-{self._number}.log").open("wb") as log:
            command = [str(home / "bin" / "spark-class"), name, *arguments]
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=self._folder)

    def _log(self, kind: str) -> str:
        return "".join(path.read_text() for path in self._folder.glob(f"{kind}-*.log"))


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A running cluster."""
    if not find_spec("pyspark"):
        raise Unavailable("needs pyspark: pip install -e '.[spark]'")
    made = Cluster(folder)
    try:
        made.wait()
        yield made
    finally:
        made.stop()
