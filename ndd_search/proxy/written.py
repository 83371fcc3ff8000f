"""Reads which indexes a write has changed from the engine's answer, while that answer streams through."""

from __future__ import annotations

import re
from http import HTTPStatus

from ndd_search.middleware.page_memory import indexes_written
from ndd_search.proxy.exchange import Exchange
from ndd_search.proxy.searches import plain_path
from ndd_search.rest.answers import Answer
from ndd_search.rest.request import Request

_INDEX = re.compile(rb'"_index"\s*:\s*"([^"\\]{1,255})"')
_LONGEST = 300  # bytes of a match


class WrittenIndexes:
    """The names of indexes in one answer. readable: whether the answer is plain JSON that names every index."""

    def __init__(self, exchange: Exchange, status: int, readable: bool) -> None:
        self._request = Request(exchange.method, plain_path(exchange.path), {}, {}, None)
        self._ok = readable and status < HTTPStatus.MULTIPLE_CHOICES and "filter_path" not in exchange.query
        self._names: set[str] = set()
        self._tail = b""

    def feed(self, part: bytes) -> None:
        """Read a part of the answer."""
        if self._ok:
            text = self._tail + part
            self._names.update(name.decode("utf-8", "replace") for name in _INDEX.findall(text))
            self._tail = text[-_LONGEST:]

    @property
    def names(self) -> set[str] | None:
        """The changed indexes under all known names, None if there may be others."""
        if not self._ok or not self._names:
            return None
        items = [{"any": {"_index": name}} for name in self._names]
        return indexes_written(self._request, Answer({"items": items, "_index": min(self._names)}))
