"""Runs a program on many cases, remembers how far it came, and makes a failing case smaller.

Case `number` of a seed is the same on every machine. A run is split into chunks over the processors; the state file
holds how many chunks are done, so that a run that was stopped goes on there.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from traceback import format_exception, walk_tb
from typing import Any

CHUNK = 200  # cases

Case = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A program. draw: makes a case. check: counts what holds for it; raises if something does not.

    within: starts and stops what the cases need. together: how many cases in a row are drawn with an equal second
    generator, for what they share; 0 for none.
    """

    draw: Callable[..., Case]
    check: Callable[[Case], Counter[str]]
    within: Callable[[], AbstractContextManager[None]] = nullcontext
    together: int = 0

    def case(self, seed: int, number: int) -> Case:
        """Return case `number` of a seed. It survives JSON unchanged, so that a file can hold it."""
        shared = [random.Random(f"{seed}/{number // self.together} shared")] if self.together else []
        case: Case = json.loads(json.dumps(self.draw(random.Random(f"{seed}/{number}"), *shared)))
        return case

    def run(self, seed: int, numbers: range) -> Counter[str]:
        """Check cases and return what was counted. Raises Failure for the first one that fails, made smaller."""
        counts = Counter[str]()
        for number in numbers:
            case = self.case(seed, number)
            try:
                counts += self.check(case)
            except Exception as error:
                told = "".join(format_exception(error))
                raise Failure(seed, number, json.dumps(smallest(case, self.check)), told) from None
        return counts + Counter(cases=len(numbers))


class Failure(Exception):
    """A case that failed. case: JSON, made smaller. told: the traceback of its first error."""

    def __init__(self, seed: int, number: int, case: str, told: str) -> None:
        super().__init__(seed, number, case, told)
        self.seed, self.number, self.case, self.told = seed, number, case, told


def error_of(case: Case, check: Callable[[Case], Counter[str]]) -> Exception | None:
    """Return what a case raises, None for one that holds."""
    try:
        check(case)
    except Exception as error:
        return error
    return None


def smallest(case: Case, check: Callable[[Case], Counter[str]]) -> Case:
    """Return a case that fails with the same error in the same function, and of which little can be left out."""
    kind = _kind(error_of(case, check))

    def fails(candidate: Any) -> bool:
        return _kind(error_of(candidate, check)) == kind

    before: Any = None
    while case != before:
        before, case = case, _smaller(case, fails)
    return case


def _kind(error: Exception | None) -> tuple[type, Any]:
    """Return the type of an error, and the code that raised it: a case that lacks a member is another error."""
    frames = list(walk_tb(error.__traceback__)) if error else []
    return type(error), frames[-1][0].f_code if frames else None


def _smaller(value: Any, fails: Callable[[Any], bool]) -> Any:
    """Leave out what a JSON value does not need to fail: halves of lists, items and members, and parts of these."""
    if isinstance(value, list):
        for length in sorted({len(value) // 2, len(value) // 4, 1} - {0}, reverse=True):
            start = 0
            while start < len(value):
                if fails(less := value[:start] + value[start + length :]):
                    value = less
                else:
                    start += length
        places: Any = range(len(value))
    elif isinstance(value, dict):
        for name in () if "id" in value else list(value):  # a document keeps its members: the engine reads all
            if fails(less := {other: one for other, one in value.items() if other != name}):
                value = less
        places = list(value)
    else:
        return value
    for place in places:
        part = _smaller(value[place], partial(_fails_with, fails, value, place))
        value = _with(value, place, part)
    return value


def _fails_with(fails: Callable[[Any], bool], value: Any, place: Any, part: Any) -> bool:
    return fails(_with(value, place, part))


def _with(value: Any, place: Any, part: Any) -> Any:
    """Return a list or an object with another item or member at a place."""
    changed = value.copy()
    changed[place] = part
    return changed


class Progress:
    """How many chunks of each run are done. file: keeps it, None for nowhere."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._done: dict[str, Any] = json.loads(file.read_text()) if file and file.exists() else {}

    def of(self, run: str) -> tuple[int, Counter[str]]:
        """Return the number of chunks that are done, and what they have counted."""
        done = self._done.get(run, {"chunks": 0, "counts": {}})
        return done["chunks"], Counter(done["counts"])

    def keep(self, run: str, chunks: int, counts: Counter[str]) -> None:
        """Write down that so many chunks are done."""
        self._done[run] = {"chunks": chunks, "counts": dict(counts)}
        if self._file:
            whole = self._file.with_suffix(".new")
            whole.write_text(json.dumps(self._done))
            whole.replace(self._file)


def prove(name: str, program: Program, seed: int, cases: int, processes: int, progress: Progress) -> Counter[str]:
    """Check cases on several processors until all are done, and print what was counted. Raises Failure."""
    run, began = f"{name} {seed}", monotonic()
    done, counts = progress.of(run)
    most, before = -(-cases // CHUNK), done
    waiting: dict[int, Future[Counter[str]]] = {}
    forked = get_context("fork")  # a process knows what `within` has made
    with program.within(), ProcessPoolExecutor(processes, forked) if processes > 1 else ThreadPoolExecutor(1) as pool:
        try:
            while done < most:
                for chunk in range(done, min(most, done + 2 * processes)):
                    if chunk not in waiting:
                        numbers = range(chunk * CHUNK, min(cases, (chunk + 1) * CHUNK))
                        waiting[chunk] = pool.submit(program.run, seed, numbers)
                counts += waiting.pop(done).result()
                done += 1
                progress.keep(run, done, counts)
        finally:
            for left in waiting.values():
                left.cancel()
    fresh, seconds = min(cases, done * CHUNK) - min(cases, before * CHUNK), monotonic() - began
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    print(f"{name}, seed {seed}: {told}; all hold. {seconds:.0f} s for {fresh:,} new cases", flush=True)
    return counts
