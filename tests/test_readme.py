"""Run the examples of README.md and of the pages under docs.

Blocks of one page run in order, in one namespace and an empty folder. ```python blocks run anywhere; blocks marked
```python engine talk to http://localhost:9200, which becomes the address of a real engine; of ```console blocks each
line that starts with "$ " is run by the shell, has to succeed, and to print the lines that stand below it, if any.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.find import Engine

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>[a-z ]+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


REDIS = "redis://localhost:6379/0"


def run(page: Path, kinds: set[str], url: str = "", redis: str = "") -> int:
    names: dict[str, object] = {"__name__": "readme"}
    ran = 0
    for block in BLOCK.finditer(page.read_text()):
        kind, code = (
            block["kind"].strip(),
            block["code"].replace("http://localhost:9200", url or "http://localhost:9200"),
        )
        code = code.replace(REDIS, redis or REDIS)
        if kind not in kinds:
            continue
        ran += 1
        if kind == "console":
            for command, shown in CONSOLE.findall(code):
                printed = shell(command)
                assert shown in ("", printed), command
        else:
            line = page.read_text()[: block.start()].count("\n") + 1
            exec(compile("\n" * line + code, str(page), "exec"), names)
    return ran


def shell(command: str) -> str:
    """Run a line as the reader would, with this environment's ndd-search in front."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, check=False, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def pages_with(*kinds: str) -> list[Path]:
    return [page for page in PAGES if any(block["kind"].strip() in kinds for block in BLOCK.finditer(page.read_text()))]


@pytest.mark.parametrize("page", pages_with("python", "console"), ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(page, {"python", "console"})


@pytest.mark.parametrize("page", pages_with("python engine"), ids=lambda page: page.name)
def test_the_examples_for_an_engine_run(
    page: Path, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if engine.family != "elasticsearch":
        pytest.skip("the examples show the client of Elasticsearch")
    redis = request.getfixturevalue("redis_url") if REDIS in page.read_text() else ""
    monkeypatch.chdir(tmp_path)
    with engine.client() as client:
        client.indices.delete(index="articles,ndd-tables", ignore_unavailable=True)
        assert run(page, {"python engine"}, engine.url, redis)
        client.indices.delete(index="articles,ndd-tables", ignore_unavailable=True)
