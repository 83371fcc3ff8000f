"""The command line as a user types it; in this process where possible, because a new one takes half a second."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import ndd_search as ndd
from ndd_search.cli import main

Run = tuple[int, str, str]


def command(*words: object, lacking: str = "") -> list[str]:
    """Return the words that start a process. lacking: packages that cannot be imported, as where they are missing."""
    script = f"import sys; sys.modules.update(dict.fromkeys({lacking.split()})); "
    script += "from ndd_search.cli import main; sys.exit(main())"
    return [sys.executable, "-c", script, *map(str, words)]


def run(
    *words: object, stdin: str = "", code: int = 0, lacking: str = "", process: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command line; assert its exit code, and that it shows no traceback.

    lacking: see `command`. process: whether it runs in a new process, as it also does if packages are lacking.
    """
    if process or lacking:
        given = command(*words, lacking=lacking)
        done = subprocess.run(given, input=stdin, capture_output=True, text=True, check=False, timeout=120)
    else:
        done = _run_here(list(map(str, words)), stdin)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def _run_here(words: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
    streams = [io.TextIOWrapper(io.BytesIO(given), encoding="utf-8") for given in (stdin.encode(), b"", b"")]
    with patch("sys.stdin", streams[0]), redirect_stdout(streams[1]), redirect_stderr(streams[2]):
        try:
            code = main(words)
        except SystemExit as exit:  # argparse: help, or wrong usage
            code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    for stream in streams[1:]:
        stream.seek(0)
    return subprocess.CompletedProcess(words, code, streams[1].read(), streams[2].read())


class Command:
    """Runs command lines in a folder of their own: files and indexes are named relative to it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._capsys, self._monkeypatch = folder, capsys, monkeypatch
        monkeypatch.chdir(folder)

    def __call__(self, *words: str, stdin: bytes = b"") -> Run:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        code = main(words)
        out, err = self._capsys.readouterr()
        return code, out, err

    def write(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def stored(self, folder: str = "idx") -> dict[str, Any]:
        index = ndd.Index.open(self.folder / folder)
        return {id: index.get(id) for id in sorted(index.ids())}
