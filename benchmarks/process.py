"""What the page check asks of a process: threads, memory, decoding, start-up.

python -m benchmarks.process
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import ndd_search as ndd
from benchmarks.measure import measure
from benchmarks.page_kinds import KINDS, sketches_of
from ndd_search import native
from ndd_search.field import SketchField

HITS, K = 100, 128


def page(kind: str = "20 % duplicates") -> list[np.ndarray]:
    return sketches_of(KINDS[kind](np.random.default_rng(1), HITS), K)


def pages_a_minute(threads: int, seconds: float = 1.0) -> float:
    """Pages of 100 hits that so many threads check in a minute, by the clock on the wall."""
    sketches, end = page(), time.perf_counter() + seconds

    def work() -> int:
        done = 0
        while time.perf_counter() < end:
            ndd.leaders(sketches, 0.5, K)
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda _: work(), range(threads))) * 60 / seconds


def grown(calls: int = 20_000) -> int:
    """Bytes by which the process grows over so many page checks of all kinds."""
    sketches = [page(kind) for kind in KINDS]
    for one in sketches * 20:
        ndd.leaders(one, 0.5, K)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(calls):
        ndd.leaders(sketches[i % len(sketches)], 0.5, K)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def decoding(rounds: int) -> float:
    """Microseconds for the sketches of a page out of the doc values a client hands over, 100 hits."""
    field, recipe = SketchField(), ndd.Recipe(k=K)
    fields = [{field.sketch: sketch.tolist(), field.recipe: [recipe.id]} for sketch in page()]
    return measure({"decode": lambda: field.decode(fields, recipe)}, rounds)["decode"]


def start_up(command: list[str], rounds: int) -> float:
    """Median seconds of processor time of a command, child processes included."""
    times = []
    for _ in range(rounds):
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return statistics.median(times)


def figures(rounds: int = 9) -> dict[str, float]:
    """All of these, by name; what ends in "x" is a ratio."""
    python = [sys.executable, "-c"]
    empty, numpy = start_up([*python, ""], rounds), start_up([*python, "import numpy"], rounds)
    ours = start_up([*python, "import ndd_search"], rounds)
    found = {
        "import ndd_search / import numpy, x": (ours - empty) / (numpy - empty),
        "ndd-search --help, s": start_up(
            [*python, "import sys; from ndd_search.cli import main; sys.exit(main())", "--help"], rounds
        ),
        "decode a page of 100 sketches, µs": decoding(rounds),
        "growth over 20,000 page checks, bytes": grown(),
    }
    for threads in (1, 2, 4):
        found[f"pages a minute, {threads} threads"] = pages_a_minute(threads)
    if native.core:
        core, native.core = native.core, None
        for threads in (1, 2):
            found[f"pages a minute with numpy, {threads} threads"] = pages_a_minute(threads)
        native.core = core
    return found


def main() -> None:
    for name, value in figures().items():
        print(f"{name}: {value:,.2f}")


if __name__ == "__main__":
    main()
