"""Programs in other languages get pages without near-duplicates: the official JavaScript clients, and curl."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from tests.engines.find import Engine as RealEngine
from tests.proxy.serving import serving

HERE = Path(__file__).parent / "javascript"
SECONDS = 300.0  # the first time, npm fetches the packages


@pytest.fixture(scope="session")
def javascript() -> Path:
    """A folder with the pinned clients, kept in the user's cache folder. Skips where they cannot be installed."""
    if missing := [name for name in ("node", "npm") if shutil.which(name) is None]:
        pytest.skip(f"the JavaScript clients need {', '.join(missing)}")
    text = (HERE / "package.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ndd-search-tests" / f"javascript-{hashlib.sha256(text).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "installed").exists():
        (folder / "package.json").write_bytes(text)
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
        if done.returncode:
            pytest.skip(f"npm cannot install the JavaScript clients: {done.stderr.strip().splitlines()[-1:]}")
        (folder / "installed").touch()
    shutil.copy(HERE / "search.mjs", folder)
    return folder


def test_the_official_javascript_client(engine: RealEngine, index: str, javascript: Path) -> None:
    if engine.family == "elasticsearch" and engine.major != 9:
        pytest.skip("the JavaScript client 9 is refused by Elasticsearch 8")
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": ndd.mapping_properties()}})
    with serving(engine.url, sketch={index: ["body"]}) as served:
        command = ["node", "search.mjs", engine.family, served.url, index]
        done = subprocess.run(command, cwd=javascript, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        **{"errors": False, "shown": 2, "copies": 1, "hidden": 1, "sketches": 0, "off": 3, "several": [2, 1]},
        **{"scrolled": [9007199254740991] * 3, "missing": 404},
    }


def test_curl(engine: RealEngine, index: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is missing")
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": ndd.mapping_properties()}})
    text = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
    with serving(engine.url, sketch={index: ["body"]}) as served:

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
