"""The examples of README.md and of the pages under docs run, see tests/examples.py."""

import re
import shlex
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.engines.find import Engine
from tests.examples import ENGINE, REDIS, ROOT, pages_with, run


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def indexes_of(own: str) -> str:
    """The indexes that examples make. own: the name that stands for "articles"."""
    return ",".join(
        (own, *(f"{own}-{more}" for more in ("2026", "drafts", "wires", "tutorial", "proxy")), "ndd-tables")
    )


@pytest.mark.parametrize("page", pages_with("python", "console"), ids=page_name)
@pytest.mark.once
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(page, {"python", "console"})


@pytest.mark.parametrize("page", pages_with("python engine"), ids=page_name)
def test_the_examples_for_an_engine_run(
    page: Path, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if engine.family != "elasticsearch":
        pytest.skip("the examples show the client of Elasticsearch")
    own = f"articles_{uuid.uuid4().hex[:8]}"  # several runs may use one server
    replaced = {ENGINE: engine.url, "articles": own}
    if REDIS in page.read_text():
        # The address overrides the ten milliseconds that the cache allows a server, which a busy machine may exceed.
        replaced[REDIS] = request.getfixturevalue("redis_url") + "?socket_timeout=20&socket_connect_timeout=20"
    monkeypatch.chdir(tmp_path)
    with engine.client() as client:
        try:
            assert run(page, {"python engine", "console engine"}, replaced)
        finally:
            client.indices.delete(index=indexes_of(own), ignore_unavailable=True)


def test_the_tutorial_of_the_proxy_runs(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine.family != "elasticsearch" or not shutil.which("curl"):
        pytest.skip("the examples show Elasticsearch and curl")
    page, own = ROOT / "docs" / "tutorials" / "proxy.md", f"articles_{uuid.uuid4().hex[:8]}"
    replaced = {ENGINE: engine.url, "articles": own}
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^```console serve\n\$ ndd-search (.*)\n```$", page.read_text(), re.MULTILINE)
    for written, real in replaced.items():
        command = command.replace(written, real)
    with engine.client() as client:
        try:
            assert run(page, {"console engine"}, replaced)
            arguments = [sys.executable, "-m", "ndd_search", *shlex.split(command), "--listen", "127.0.0.1:0"]
            with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as proxy:
                assert proxy.stdout is not None
                try:
                    said, _, url = proxy.stdout.readline().strip().rpartition(" ")
                    assert said == f"serving {engine.url} at"
                    assert f"`serving {ENGINE} at http://127.0.0.1:9201`" in page.read_text()
                    assert run(page, {"console proxy"}, replaced | {"http://localhost:9201": url})
                finally:
                    proxy.terminate()
        finally:
            client.indices.delete(index=indexes_of(own), ignore_unavailable=True)


@pytest.mark.parametrize("page", pages_with("python opensearch"), ids=page_name)
def test_the_examples_for_opensearch_run(page: Path, engine: Engine) -> None:
    if engine.name != "opensearch3":
        pytest.skip("the examples show what OpenSearch 3 has")
    own = f"articles_{uuid.uuid4().hex[:8]}"
    with engine.client() as client:
        try:
            assert run(page, {"python opensearch"}, {ENGINE: engine.url, "articles": own})
        finally:
            client.indices.delete(index=indexes_of(own), ignore_unavailable=True)
