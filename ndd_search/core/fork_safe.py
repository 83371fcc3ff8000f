"""Objects that several threads use, and that a child process made by `os.fork()` can use as well.

A child has one thread of its parent. A lock that another thread held is never released there, and what it guards may be
half changed.
"""

from __future__ import annotations

import os
from threading import RLock
from weakref import WeakSet

_OBJECTS: WeakSet[ForkSafe] = WeakSet()


class ForkSafe:
    """Base of a class with a lock, `self._lock`. Its own thread may take it again, as a signal handler does."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._begin()
        _OBJECTS.add(self)

    def _begin(self) -> None:
        """Set what the lock guards as for a new object; a child does so if another thread held the lock."""

    def _after_fork(self) -> None:
        """Make the object usable in a child."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = RLock()
            self._begin()


class ForkSafeLock(ForkSafe):
    """Such a lock alone, for what a child finds whole at any time, as it is stored elsewhere."""

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _after_fork() -> None:
    for one in list(_OBJECTS):
        one._after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
