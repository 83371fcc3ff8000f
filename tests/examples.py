"""Run the examples of README.md and of the pages under docs. It needs no pytest, so it also runs beside a wheel.

Blocks of one page run in order, in one namespace and the current folder. ```python blocks run anywhere; blocks marked
"engine" or "opensearch" talk to http://localhost:9200 or to Redis, which become the addresses of real servers; of
```console blocks each line that starts with "$ " is run by the shell, has to succeed, and to print the lines that stand
below it, if any.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

ENGINE, REDIS = "http://localhost:9200", "redis://localhost:6379/0"
ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>[a-z0-9 ]+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def run(page: Path, kinds: set[str], replaced: Mapping[str, str] = MappingProxyType({})) -> int:
    """Run the blocks of some kinds. Returns their number.

    replaced: words of the page, with the words to run instead: the addresses of real servers, another index.
    """
    names: dict[str, object] = {"__name__": "readme"}
    ran = 0
    for block in BLOCK.finditer(page.read_text()):
        kind, code = block["kind"].strip(), block["code"]
        if kind not in kinds:
            continue
        for written, real in replaced.items():
            code = code.replace(written, real)
        ran += 1
        if kind.startswith("console"):
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
