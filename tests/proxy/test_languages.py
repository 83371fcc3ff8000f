"""Programs in other languages get pages without near-duplicates: official clients of JavaScript and Java, and curl."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from tests.conftest import missing
from tests.engines.find import Engine as RealEngine
from tests.engines.jars import Unavailable, find_java
from tests.examples import ROOT
from tests.proxy.serving import serving

HERE = Path(__file__).parent
SECONDS = 300.0  # the first time, npm and Maven fetch packages


@contextmanager
def cached(name: str, made_from: bytes) -> Iterator[Path]:
    """Yield a folder in the user's cache folder, a new one where `made_from` has changed; one process at a time."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ndd-search-tests" / f"{name}-{hashlib.sha256(made_from).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)


def example(name: str) -> str:
    """Return the program that the page about the proxy links to."""
    assert f"(../examples/{name})" in (ROOT / "docs" / "proxy.md").read_text()
    return (ROOT / "examples" / name).read_text()


def check_told(done: subprocess.CompletedProcess[str], ids: list[str]) -> None:
    """Compare what a program of the documentation prints with the documents of these tests, the ids in their order."""
    assert done.returncode == 0, done.stderr
    *hits, hidden = done.stdout.splitlines()
    (copies,) = [line for line in hits if "itself" not in line]
    alone = f"{ids[2]} stands for itself"
    assert (hidden, alone in hits, len(hits)) == ("1", True, 2)
    leader, id, similarity = re.fullmatch(r"(\S+) stands for (\S+) \((0\.\d+)\)", copies).groups()  # type: ignore[union-attr]
    assert ({leader, id}, float(similarity) > 0.5) == ({ids[0], ids[1]}, True)


@pytest.fixture(scope="session")
def javascript() -> Path:
    """A folder with the pinned clients, kept in the user's cache folder. Skips where they cannot be installed."""
    if lacking := [name for name in ("node", "npm") if shutil.which(name) is None]:
        missing("javascript", f"needs {', '.join(lacking)}")
    text = (HERE / "javascript" / "package.json").read_bytes()
    with cached("javascript", text) as folder:
        if not (folder / "installed").exists():
            (folder / "package.json").write_bytes(text)
            done = run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
            if done.returncode:
                missing("javascript", f"clients cannot be installed by npm: {done.stderr.strip().splitlines()[-1:]}")
            (folder / "installed").touch()
        shutil.copy(HERE / "javascript" / "search.mjs", folder)
    return folder


def test_the_official_javascript_client(engine: RealEngine, index: str, javascript: Path) -> None:
    if engine.family == "elasticsearch" and engine.major != 9:
        pytest.skip("the JavaScript client 9 is refused by Elasticsearch 8")
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": ndd.indexing.mapping_properties()}})
    with serving(engine.url, indexes={index: {"text": ["body"]}}) as served:
        done = run(["node", "search.mjs", engine.family, served.url, index], javascript)
        if engine.family == "elasticsearch":
            in_docs = example("proxy_client.mjs").replace("http://localhost:9201", served.url)
            (javascript / "copies.mjs").write_text(in_docs.replace('"articles"', json.dumps(index)))
            check_told(run(["node", "copies.mjs"], javascript), ["0", "1", "2"])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        **{"errors": False, "shown": 2, "copies": 1, "hidden": 1, "sketches": 0, "off": 3, "several": [2, 1]},
        **{"scrolled": [9007199254740991] * 3, "missing": 404},
    }


def java_client(family: str) -> tuple[Path, str]:
    """Return a folder with the compiled program and the jars of a pinned client, and the Java that runs it."""
    pom, source = HERE / "java" / "pom.xml", (HERE / "java" / "Search.java").read_text() + example("Copies.java")
    try:
        java = find_java(17).command
    except Unavailable as reason:
        missing("java", reason)
    with cached(f"java-{family}", pom.read_bytes() + source.encode()) as folder:
        if not (folder / "Copies.class").exists():
            fetch_client(family, pom, folder)
            compile_java(family, folder, java)
    return folder, java


def fetch_client(family: str, pom: Path, folder: Path) -> None:
    if shutil.which("mvn") is None:
        missing("java", "needs Maven (mvn) to fetch the client")
    shutil.copy(pom, folder)
    command = ["mvn", "--batch-mode", "--quiet", "--strict-checksums", "-Dstyle.color=never"]
    done = run([*command, "package", "-P", family, f"-Dfolder={folder}"], folder)
    if done.returncode:
        missing("java", f"client cannot be fetched by Maven: {done.stdout.strip()[-300:]}")


def compile_java(family: str, folder: Path, java: str) -> None:
    """Compile Search.java, and the program of the documentation for any address and index."""
    in_docs = example("Copies.java").replace('"http://localhost:9201"', "arguments[0]")
    in_docs = in_docs.replace('"/articles/_search"', '"/" + arguments[1] + "/_search"')
    jars = os.pathsep.join(map(str, (folder / "lib").glob("*.jar")))
    (compiler,) = (folder / "compiler").glob("*.jar")
    for name, source in {"Search": (HERE / "java" / "Search.java").read_text(), "Copies": in_docs}.items():
        renamed = source.replace("org.elasticsearch.client", "org.opensearch.client")
        renamed = renamed.replace("org.apache.http.HttpHost", "org.apache.hc.core5.http.HttpHost")
        renamed = renamed.replace("org.apache.http.util.", "org.apache.hc.core5.http.io.entity.")
        (folder / f"{name}.java").write_text(renamed if family == "opensearch" else source)
        done = run([java, "-jar", str(compiler), "-17", "-nowarn", "-cp", jars, "-d", ".", f"{name}.java"], folder)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_low_level_java_client(engine: RealEngine, index: str) -> None:
    if engine.name not in ("elasticsearch9", "opensearch3"):
        pytest.skip("the Java clients are tested with the newest release of each engine")
    folder, java = java_client(engine.family)
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": ndd.indexing.mapping_properties()}})
    with serving(engine.url, indexes={index: {"text": ["body"]}}) as served:
        done, in_docs = [
            run([java, "-cp", f"lib/*{os.pathsep}.", name, served.url, index], folder) for name in ("Search", "Copies")
        ]
    assert done.returncode == 0, done.stderr
    bulk, page, off, several, status = map(json.loads, done.stdout.splitlines())
    check_told(in_docs, [item["index"]["_id"] for item in bulk["items"]])
    assert (bulk["errors"], status) == (False, 404)
    assert (len(page["hits"]["hits"]), page["ndd"]["hidden"], len(off["hits"]["hits"])) == (2, 1, 3)
    assert [len(one["hits"]["hits"]) for one in several["responses"]] == [2, 1]
    assert {hit["_source"]["number"] for hit in page["hits"]["hits"]} == {9007199254740991}
    assert not any("sketch" in hit["_source"].get("ndd", {}) for hit in page["hits"]["hits"])


def test_curl(engine: RealEngine, index: str) -> None:
    if shutil.which("curl") is None:
        missing("curl", "is not installed")
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": ndd.indexing.mapping_properties()}})
    text = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
    with serving(engine.url, indexes={index: {"text": ["body"]}}) as served:

        def curl(target: str, *words: str) -> dict[str, Any]:
            command = ["curl", "-sS", "--fail-with-body", *words, f"{served.url}/{index}/{target}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, done.stdout + done.stderr
            answer: dict[str, Any] = json.loads(done.stdout)
            return answer

        for number in range(3):
            body = json.dumps({"body": f"{text} {number}"})
            curl(f"_doc/{number}?refresh=true", "-X", "PUT", "-H", "content-type: application/json", "-d", body)
        page = curl("_search?q=body:ministers")
        assert (len(page["hits"]["hits"]), page["ndd"]["hidden"]) == (1, 2)
        assert len(curl("_search?q=body:ministers&ndd=off", "--compressed")["hits"]["hits"]) == 3
