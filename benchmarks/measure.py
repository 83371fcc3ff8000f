"""Time methods in alternation: medians of processor time. Compare ratios within one run only."""

from __future__ import annotations

import os

for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # before numpy or another library is imported: one thread each

import gc  # noqa: E402
import statistics  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Mapping  # noqa: E402

Method = Callable[[], object]
ENOUGH = 20e6  # least nanoseconds of a sample; calls are repeated, so that the slow first ones hardly count


def measure(methods: Mapping[str, Method], rounds: int) -> dict[str, float]:
    """Return the median processor time of a call of each, in microseconds; a warm-up call precedes every sample."""
    first = {name: min(_sample(method, 1) for _ in range(3)) for name, method in methods.items()}
    repeats = {name: max(1, int(ENOUGH / max(taken, 1))) for name, taken in first.items()}
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, method in methods.items():
            times[name].append(_sample(method, repeats[name]) / 1000)
    return {name: statistics.median(found) for name, found in times.items()}


def _sample(method: Method, repeats: int) -> float:
    """Return the nanoseconds per call."""
    method()
    gc.collect()
    gc.disable()
    try:
        began = time.process_time_ns()
        for _ in range(repeats):
            method()
        return (time.process_time_ns() - began) / repeats
    finally:
        gc.enable()
