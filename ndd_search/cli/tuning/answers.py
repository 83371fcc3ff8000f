"""Answers about pairs in a file, a JSON line each. Each is written at once: an interrupted session can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from ndd_search.cli.tuning.compare_settings import Pair

WORDS: dict[bool | None, str] = {True: "yes", False: "no", None: "unknown"}
_TAKEN_BACK = "taken back"
_MEANINGS = {word: answer for answer, word in WORDS.items()}


def read_answers(path: Path, report: Callable[[str], None]) -> dict[str, bool | None]:
    """Return the answers of a file by the key of their pair; the last answer to a pair counts. {} without a file.

    report: called with a sentence for every invalid line, such as the last one of a session that was killed.
    """
    answers: dict[str, bool | None] = {}
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            key, word = str(row["pair"]), row["answer"]
            if word == _TAKEN_BACK:
                answers.pop(key, None)
            else:
                answers[key] = _MEANINGS[word]
        except (ValueError, KeyError, TypeError, RecursionError):
            report(f"{path}: line {number} is left out, it is not an answer")
    return answers


class AnswerFile:
    """A file to which answers are appended."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, pair: Pair, answer: bool | None) -> None:
        """Append an answer and sync it to disk. Raises OSError if that fails."""
        self._add(pair, WORDS[answer])

    def take_back(self, pair: Pair) -> None:
        """Append that an earlier answer is withdrawn. Raises OSError if that fails."""
        self._add(pair, _TAKEN_BACK)

    def _add(self, pair: Pair, word: str) -> None:
        row = {"pair": pair.key, "answer": word, "ids": [pair.first.id, pair.second.id], "query": pair.query}
        line = json.dumps(row | {"similarity": round(pair.similarity, 4)}, ensure_ascii=True) + "\n"
        with self.path.open("ab+") as file:
            if file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                line = "\n" + line  # an earlier session was killed while it wrote a line
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
