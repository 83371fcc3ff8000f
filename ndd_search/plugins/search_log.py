"""Writes a JSON line for each search of a wrapped client: `ndd_search.wrap(client, observers=[SearchLog(file)])`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from threading import Lock
from typing import Any, TextIO

from ndd_search.middleware.observer import Observation, PageFacts

_FACTS = ("collapsed", "changed", "examined", "hidden", "cache", "degraded", "arm")


def page_entries(pages: Iterable[PageFacts]) -> list[dict[str, Any]]:
    """Return what a log says of each page: counts and reasons, no content."""
    return [{name: getattr(page, name) for name in _FACTS if getattr(page, name) != ""} for page in pages]


class SearchLog:
    """An observer that writes to an open text file. Thread-safe. `ndd-search effect` reads the lines.

    A line holds time, path, milliseconds, the facts of each page, and the class of the error of a failed search.
    """

    def __init__(self, file: TextIO) -> None:
        self._file, self._lock = file, Lock()

    def __deepcopy__(self, memo: object) -> SearchLog:
        """Return this observer: a copied client writes to the same file."""
        return self

    def observe(self, seen: Observation) -> None:
        """Write one line."""
        entry = {
            "time": datetime.fromtimestamp(seen.ended / 1e9, UTC).isoformat(timespec="milliseconds"),
            "path": seen.path,
            "ms": round(1000 * (seen.own_seconds + seen.upstream_seconds), 3),
            "pages": page_entries(seen.pages),
            **({"failed": seen.failed} if seen.failed else {}),
        }
        with self._lock:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()
