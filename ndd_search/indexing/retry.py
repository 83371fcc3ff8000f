"""Getting on with a server: errors by number, a rate that is kept, requests repeated later when it is busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock
from typing import TypeVar

from ndd_search.errors import IndexUnusable

Answer = TypeVar("Answer")

BUSY = (429, 503)
_LONGEST = 60.0  # seconds between two tries
_TRIES = 12  # about eight minutes


class Stopped(Exception):
    """Somebody asked the work to stop."""


class Busy(IndexUnusable):
    """The server has no room for a request that is a part of another one, see IndexUnusable."""

    status_code = 429


class Retry:
    """Shared by the threads of one job.

    rate:  documents a second, None for as many as the server takes.
    clock: seconds that never go back.
    """

    def __init__(self, rate: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        if rate is not None and not rate > 0:
            raise ValueError(f"rate must be above 0 documents a second, got {rate}")
        self._rate, self._clock = rate, clock
        self._free = clock()
        self._lock = Lock()
        self._stop = Event()

    def stop(self) -> None:
        """End every wait, now and later, with Stopped."""
        self._stop.set()

    def pause(self, seconds: float) -> None:
        """Wait. Raises Stopped."""
        if self._stop.wait(max(seconds, 0.0)):
            raise Stopped

    def admit(self, documents: int) -> None:
        """Wait until so many more documents are within the rate."""
        with self._lock:
            now = self._clock()
            begin = max(now, self._free)
            self._free = begin + (documents / self._rate if self._rate else 0.0)
        self.pause(begin - now)

    def call(self, request: Callable[[], Answer]) -> Answer:
        """The answer to a request, repeated while the server is busy; its last error when it stays so."""
        for wait in waits():
            try:
                return request()
            except Exception as error:
                if status_of(error) not in BUSY:
                    raise
            self.pause(wait)
        return request()


def waits() -> list[float]:
    """Seconds to wait after each try: 1, 2, 4, ... 60."""
    return [min(2.0**power, _LONGEST) for power in range(_TRIES)]


def status_of(error: BaseException) -> int | None:
    """The HTTP status behind an error of either client, None when there is none (no connection)."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None
