"""Split the time of a call into stages: patched functions are timed, and time counts for the innermost stage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any


class Stopwatch:
    """Measures seconds by stage, call after call."""

    def __init__(self) -> None:
        self.calls: list[dict[str, float]] = []
        self._now: dict[str, float] = {}
        self._running: list[str] = []
        self._since = 0.0
        self._undo: list[Callable[[], None]] = []

    def put_under(self, stage: str, owner: Any, *names: str) -> None:
        """Time functions of an object, class or module as a stage, without the time of stages called inside."""
        for name in names:
            inner = getattr(owner, name)
            own = vars(owner).get(name) if hasattr(owner, "__dict__") else None

            def timed(*arguments: Any, _inner: Callable[..., Any] = inner, **others: Any) -> Any:
                with self.stage(stage):
                    return _inner(*arguments, **others)

            assert not asyncio.iscoroutinefunction(inner), "only of what is done when it returns"
            setattr(owner, name, timed)
            self._undo.append(partial(delattr, owner, name) if own is None else partial(setattr, owner, name, own))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the time of the block, without that of stages inside."""
        self._switch()
        self._running.append(name)
        try:
            yield
        finally:
            self._switch()
            self._running.pop()

    def call(self, function: Callable[[], Any]) -> None:
        """Time one call; time outside all stages counts for ""."""
        self._now = {}
        with self.stage(""):
            function()
        self.calls.append(self._now)

    def microseconds(self) -> dict[str, float]:
        """Return the median of each stage over all calls."""
        stages = dict.fromkeys(name for call in self.calls for name in call)
        return {name: median(call.get(name, 0.0) for call in self.calls) * 1e6 for name in stages}

    def take_off(self) -> None:
        """Restore the original functions."""
        while self._undo:
            self._undo.pop()()

    def _switch(self) -> None:
        now = time.perf_counter()
        if self._running:
            self._now[self._running[-1]] = self._now.get(self._running[-1], 0.0) + now - self._since
        self._since = now
