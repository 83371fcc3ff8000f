"""Rate limit and retries with exponential back-off for requests to a server; the status and reason of its errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock
from typing import Any, TypeVar

Answer = TypeVar("Answer")

BUSY = (429, 503)
WAITS = [min(2.0**power, 60.0) for power in range(12)]  # seconds after each try, about eight minutes


class Stopped(Exception):
    """The job was stopped by Retry.stop."""


class Retry:
    """The rate limit and the retries of one job, shared by its threads.

    rate:  documents per second, None for no limit.
    clock: a monotonic clock, in seconds.
    """

    def __init__(self, rate: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        if rate is not None and (not isinstance(rate, int | float) or not rate > 0):
            raise ValueError(f"rate must be above 0 documents a second, got {rate!r}")
        self.rate, self._clock = rate, clock
        self._free = clock()
        self._lock = Lock()
        self._stop = Event()

    def stop(self) -> None:
        """Make every current and later wait raise Stopped."""
        self._stop.set()

    def pause(self, seconds: float) -> None:
        """Wait. Raises Stopped after a call of `stop`."""
        if self._stop.wait(max(seconds, 0.0)):
            raise Stopped

    def admit(self, documents: int) -> None:
        """Wait until the rate allows this many more documents."""
        with self._lock:
            now = self._clock()
            begin = max(now, self._free)
            self._free = begin + (documents / self.rate if self.rate else 0.0)
        self.pause(begin - now)

    def call(self, request: Callable[[], Answer]) -> Answer:
        """Run a request, again while the server is busy. Raises its last error if the server stays busy."""
        for wait in WAITS:
            try:
                return request()
            except Exception as error:
                if status_of(error) not in BUSY or is_blocked(error):
                    raise
            self.pause(wait)
        return request()


def is_blocked(refusal: Any) -> bool:
    """Whether a refusal is for a block of the index. That of a full disk has the status of a busy server."""
    return "cluster_block_exception" in str(refusal)


def status_of(error: BaseException) -> int | None:
    """The HTTP status of an error of either client, None without one, as when the connection failed."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def server_reason(error: Exception) -> str | None:
    """The reason that the server gave for an error; None if the error is not of a client library."""
    if type(error).__module__.partition(".")[0] not in ("elasticsearch", "elastic_transport", "opensearchpy"):
        return None
    body = getattr(error, "body", None) or getattr(error, "info", None)
    try:
        cause = body["error"]["root_cause"][0]  # type: ignore[index]
        return f"{cause['type']}: {cause['reason']}"
    except (TypeError, KeyError, IndexError):
        return str(error)
