"""The programs in examples/: the demonstration, and search pages, each through the test client of its framework."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.examples import ROOT
from tests.news_texts import FOOTBALL, NEWS

WHERE = "run `make test-third-parties`"


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example of a framework, as a module that runs in an empty folder."""
    pytest.importorskip("tantivy", reason=WHERE)
    pytest.importorskip(request.param, reason=WHERE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    name = f"{request.param}_app"
    yield import_module(name)
    sys.modules.pop(name)


def test_the_demonstration_shows_every_search_twice() -> None:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    pytest.importorskip("rich", reason="its tables need the extra cli")
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--query", "coral reefs and overfishing"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "4 of the first 8 hits repeat another" in shown
    assert "from the cache" in shown


def check(put: Any, get: Any) -> None:
    """Add three articles, two of them near-duplicates. put(path, body) and get(path) return the status and JSON."""
    for number, body in enumerate(NEWS):
        assert put(f"/articles/{number}", json.dumps({"title": "news", "body": body})) == 204
    found = get("/search?q=final+emissions")
    hits = found["hits"]["hits"]
    assert sorted(hit["_source"]["body"] == FOOTBALL for hit in hits) == [False, True]
    assert found["ndd"]["hidden"] == 1
    assert get("/search?q=final+emissions&page=1")["hits"]["hits"] == []


def check_page(get: Any) -> None:
    """What is no number of a page is the first one. get(path): as for check."""
    assert len(get("/search?q=final+emissions&page=x")["hits"]["hits"]) == 2
    assert len(get("/search?q=final+emissions&page=-1")["hits"]["hits"]) == 2


@pytest.mark.parametrize("program", ["flask"], indirect=True)
def test_the_example_for_flask_runs(program: Any) -> None:
    client = program.app.test_client()
    check(
        lambda path, body: client.put(path, data=body, content_type="application/json").status_code,
        lambda path: client.get(path).json,
    )
    check_page(lambda path: client.get(path).json)


@pytest.mark.parametrize("program", ["fastapi"], indirect=True)
def test_the_example_for_fastapi_runs(program: Any) -> None:
    from fastapi.testclient import TestClient

    client = TestClient(program.app)
    check(
        lambda path, body: client.put(path, json=json.loads(body)).status_code,
        lambda path: client.get(path).json(),
    )
    assert client.get("/search?q=final&page=-1").status_code == 422


@pytest.mark.parametrize("program", ["django"], indirect=True)
def test_the_example_for_django_runs(program: Any) -> None:
    import django
    from django.test import Client

    django.setup()
    client = Client()
    check(
        lambda path, body: client.put(path, body, content_type="application/json").status_code,
        lambda path: client.get(path).json(),
    )
    check_page(lambda path: client.get(path).json())
