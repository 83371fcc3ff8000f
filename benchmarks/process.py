"""Measure the page check in a process: threads, memory, decoding, start-up.

python -m benchmarks.process
"""

from __future__ import annotations

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
from ndd_search.core.matching import leaders
from ndd_search.core.sketching.stored_sketch import SketchField

HITS, K = 100, 128


def page(kind: str = "20 % duplicates") -> list[np.ndarray]:
    return sketches_of(KINDS[kind](np.random.default_rng(1), HITS), K)


def pages_a_minute(threads: int, seconds: float = 1.0) -> float:
    """Return how many pages of 100 hits the threads check in a minute of wall-clock time."""
    sketches, end = page(), time.perf_counter() + seconds

    def work() -> int:
        done = 0
        while time.perf_counter() < end:
            leaders(sketches, 0.5, K)
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda _: work(), range(threads))) * 60 / seconds


def grown(calls: int = 20_000) -> int:
    """Return the bytes by which the process grows over so many page checks of all kinds."""
    sketches = [page(kind) for kind in KINDS]
    for one in sketches * 20:
        leaders(one, 0.5, K)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(calls):
        leaders(sketches[i % len(sketches)], 0.5, K)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def decoding(rounds: int) -> float:
    """Return the microseconds to decode the sketches of 100 hits from the doc values of a client."""
    field, recipe = SketchField(), ndd.Recipe(k=K)
    hits = [{"fields": {field.sketch: sketch.tolist(), field.recipe: [recipe.id]}} for sketch in page()]
    return measure({"decode": lambda: field.decode(hits, recipe)}, rounds)["decode"]


def start_ups(programs: dict[str, list[str]], rounds: int) -> dict[str, float]:
    """Return the median seconds of processor time of Python with each of the given arguments, in alternation."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, arguments in programs.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {name: statistics.median(found) for name, found in times.items()}


def figures(rounds: int = 9) -> dict[str, float]:
    """Return all figures by name; names that end in "x" are ratios."""
    programs = {
        "nothing": ["-c", ""],
        "numpy": ["-c", "import numpy"],
        "ndd_search": ["-c", "import ndd_search"],
        "help": ["-c", "import sys; from ndd_search.cli import main; sys.exit(main())", "--help"],
    }
    times = start_ups(programs, rounds)
    found = {
        "import ndd_search / import numpy, x": (times["ndd_search"] - times["nothing"])
        / (times["numpy"] - times["nothing"]),
        "ndd-search --help, s": times["help"],
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
