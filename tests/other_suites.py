"""Run the test suites of the clients with plain and with wrapped clients, and compare the outcome of each test.

    python -m tests.other_suites elasticsearch9 FOLDER [--python PYTHON] [--url URL] [FILE OR FOLDER ...]

FOLDER: sources of elasticsearch-py or opensearch-py, of a version that fits the server. PYTHON: an interpreter that has
what those tests need (and what ndd_search needs), this one by default. Nothing is fetched. Without URL a server is
started as for our own tests. These suites delete whatever the server holds, so one with indexes is refused.
The exit code is 1 if a test has another outcome.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import ndd_search as ndd
from tests.engines.jars import RELEASES
from tests.engines.launch import start

HERE = Path(__file__).resolve().parents[1]
WRAPPED = "NDD_WRAP_EVERY_CLIENT"
CLIENTS = {
    "elasticsearch": ("elasticsearch", ("Elasticsearch", "AsyncElasticsearch")),
    "opensearch": ("opensearchpy", ("OpenSearch", "AsyncOpenSearch")),
}
USUAL = {
    "elasticsearch": ["test_elasticsearch/test_server", "test_elasticsearch/test_async", "test_elasticsearch/test_dsl"],
    "opensearch": ["test_opensearchpy/test_server", "test_opensearchpy/test_async/test_server"],
}


def pytest_configure() -> None:
    """As a plugin of those suites: wrap every client when it is made, where the environment says so."""
    for kind in filter(None, os.environ.get(WRAPPED, "").split(",")):
        module, names = CLIENTS[kind]
        for name in names:
            _wrap_when_made(getattr(__import__(module), name))


def _wrap_when_made(client: Any) -> None:
    before = client.__init__

    def made(self: Any, *arguments: Any, **others: Any) -> None:
        before(self, *arguments, **others)
        if not hasattr(self.transport, "ndd"):  # the transport of another client that is wrapped
            ndd.wrap(self)

    client.__init__ = made


def outcomes(report: Path) -> dict[str, str]:
    """Of each test in a report of pytest: "passed" or what kept it from that."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = [part.tag for part in case if part.tag in ("failure", "error", "skipped")]
        found[f"{case.get('classname')}::{case.get('name')}"] = " ".join(kinds) or "passed"
    return found


def run(family: str, url: str, wrapped: bool, given: argparse.Namespace, report: Path) -> dict[str, str]:
    """The suite once."""
    address = {"ELASTICSEARCH_URL": url, "OPENSEARCH_URL": url}
    paths = {"PYTHONPATH": f"{given.folder}{os.pathsep}{HERE}", WRAPPED: family if wrapped else ""}
    options = ["-q", "-p", "tests.other_suites", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command = [given.python, "-m", "pytest", *options, *(given.tests or USUAL[family])]
    subprocess.run(command, cwd=given.folder, env={**os.environ, **address, **paths}, check=False)
    return outcomes(report)


@contextmanager
def server(release: str, url: str | None) -> Iterator[str]:
    """The address of a server that may be emptied."""
    if url is None:
        with start(RELEASES[release]) as started:
            yield started.url
        return
    with urllib.request.urlopen(f"{url}/_cat/indices?format=json") as answer:
        names = [one["index"] for one in json.load(answer) if not one["index"].startswith(".")]
    if names:
        sys.exit(f"{url} holds {len(names)} indexes, which these tests would delete: name an empty server")
    yield url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--url")
    parser.add_argument("tests", nargs="*")
    given = parser.parse_intermixed_args()
    given.folder = given.folder.resolve()
    family = RELEASES[given.release].family
    with tempfile.TemporaryDirectory() as folder, server(given.release, given.url) as url:
        plain, wrapped = (
            run(family, url, wrapped, given, Path(folder) / f"{wrapped}.xml") for wrapped in (False, True)
        )
    print("plain:  ", dict(Counter(plain.values())), "\nwrapped:", dict(Counter(wrapped.values())))
    other = [name for name in sorted(plain.keys() | wrapped.keys()) if plain.get(name) != wrapped.get(name)]
    for name in other:
        print(f"{name}: {plain.get(name)} without, {wrapped.get(name)} wrapped")
    print(f"{len(plain)} tests, {len(other)} with another outcome")
    sys.exit(bool(other))


if __name__ == "__main__":
    main()
