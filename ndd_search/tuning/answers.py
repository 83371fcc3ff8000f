"""What a person said of pairs, a JSON line each, written as it is said: an interrupted session goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from ndd_search.tuning.pages import Pair

WORDS: dict[bool | None, str] = {True: "yes", False: "no", None: "unknown"}
_TAKEN_BACK = "taken back"
_MEANINGS = {word: answer for answer, word in WORDS.items()}


def read_answers(path: Path, report: Callable[[str], None]) -> dict[str, bool | None]:
    """The answers of a file by the key of their pair, the last one for each; none if there is no file.

    report: told a sentence for every line that is none, such as the last one of a session that was killed.
    """
    answers: dict[str, bool | None] = {}
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
            key, word = str(found["pair"]), found["answer"]
            if word == _TAKEN_BACK:
                answers.pop(key, None)
            else:
                answers[key] = _MEANINGS[word]
        except (ValueError, KeyError, TypeError, RecursionError):
            report(f"{path}: line {number} is left out, it is no answer")
    return answers


class AnswerFile:
    """Where answers are written. Raises OSError when the first one cannot be."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, pair: Pair, answer: bool | None) -> None:
        """Add an answer, for good: it is on the disk when this returns."""
        self._add(pair, WORDS[answer])

    def take_back(self, pair: Pair) -> None:
        """Say that an answer written before does not hold."""
        self._add(pair, _TAKEN_BACK)

    def _add(self, pair: Pair, word: str) -> None:
        told = {"pair": pair.key, "answer": word, "ids": [pair.first.id, pair.second.id], "query": pair.query}
        line = json.dumps(told | {"similarity": round(pair.similarity, 4)}, ensure_ascii=True) + "\n"
        with self.path.open("ab+") as file:
            if file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                line = "\n" + line  # the session before was killed within a line
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
