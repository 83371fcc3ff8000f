"""Collections that could take all time or memory: see benchmarks.corpus, --extremes."""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ndd_search.corpus.collection import Corpus
from ndd_search.errors import NDDError
from tests.corpus import made

Figures = dict[str, Any]

Sources = list[dict[str, Any]] | str


def equal_texts(count: int) -> Sources:
    """One text, again and again."""
    return [{"text": "the same few words in every one of these documents"} for _ in range(count)]


def empty_texts(count: int) -> Sources:
    """Documents without text."""
    return [{"text": ""} for _ in range(count)]


def one_frame(count: int) -> Sources:
    """Texts of which all have the same frame."""
    return [{"text": text} for text in made.texts(count, frames=1, framed=1.0)]


def one_id(count: int) -> Sources:
    """Different texts with one id."""
    return [{"id": "same", "text": str(number)} for number in range(count)]


def no_ids(count: int) -> Sources:
    """Different texts of which none has the id that is asked for."""
    return [{"id": None, "text": str(number)} for number in range(count)]


def long_line(count: int) -> Sources:
    """A file with a line of 100 MB among short ones."""
    path = Path(mkdtemp()) / "docs.jsonl"
    with path.open("w") as file:
        for number in range(count):
            size = 20_000_000 if number == count // 2 else 20
            file.write(json.dumps({"id": str(number), "text": "word " * size}) + "\n")
    return str(path)


EXTREMES = [equal_texts, empty_texts, one_frame, one_id, no_ids, long_line]


def extreme(make: Callable[[int], Sources], count: int, bar: float | str) -> Figures:
    """As `timed`, for a collection of another kind."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_extreme, (make, count, bar))


def _extreme(make: Callable[[int], Sources], count: int, bar: float | str) -> Figures:
    source = make(count)
    said: list[str] = []
    start = time.perf_counter()
    field = "id" if make in (one_id, no_ids) else None
    try:
        corpus = Corpus.read(source, text="text", id=field, report=said.append)
        documents, groups = len(corpus), len(corpus.groups(bar))
    except NDDError as error:
        said.append(str(error))
        documents = groups = 0
    return {
        "collection": make.__name__,
        "given": count,
        "bar": bar,
        "documents": documents,
        "groups": groups,
        "left_out": said[:1] + said[-1:],
        "seconds": round(time.perf_counter() - start, 2),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }
