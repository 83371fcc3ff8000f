"""Fetch hits until a page of the deduplicated stream is full. Nothing here does I/O.

How many hits a page examines depends on the request alone: its first window, doubled until the page is full. So a page
of a longer, cached stream is the page that a first request would have returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import closing
from itertools import count
from operator import eq
from typing import Any, Generic, TypeVar

import numpy as np

from ndd_search.core.immutable import dataclass
from ndd_search.core.matching.group_by_keys import passed_over
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.stream import Reader, Stream

Asked = TypeVar("Asked")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Fetch:
    """A request for `size` hits of the engine's list, from rank `start` on."""

    start: int
    size: int


@dataclass(frozen=True)
class Fetched:
    """The answer to a Fetch. Fewer hits than requested mean that the engine has no more. total: matches, if known."""

    hits: Sequence[Any]
    total: int | None = None


def fetch_until_full(
    stream: Stream, start: int, size: int, reader: Reader, options: CollapseOptions, fetch: Callable[[Fetch], Fetched]
) -> Stream:
    """Fetch until the page [start, start + size) is full, the engine has no more hits, or max_window is reached."""
    while (request := next_fetch(stream, start, size, options)) is not None:
        fetched = fetch(request)
        stream = stream.extend(fetched.hits, request.size, reader, options, total=fetched.total)
    return stream


def next_fetch(stream: Stream, start: int, size: int, options: CollapseOptions) -> Fetch | None:
    """Return the next fetch, None when the stream holds the page [start, start + size)."""
    asked = window_for(stream, start + size, options) - stream.fetched
    return None if stream.exhausted or asked <= 0 else Fetch(stream.fetched, asked)


def run(flow: Generator[Asked, Any, Made], ask: Callable[[Asked], Any]) -> Made:
    """Run a generator: what `ask` returns for each value that it yields is sent to it, and so are errors of `ask`.

    Returns its result.
    """
    with closing(flow):
        given = _next_of(flow)
        while not isinstance(given, _Result):
            try:
                found = ask(given)
            except Exception as error:
                given = _next_of(flow, error=error)
            else:
                given = _next_of(flow, found)
        return given.value


async def run_async(flow: Generator[Asked, Any, Made], ask: Callable[[Asked], Awaitable[Any]]) -> Made:
    """Run a generator as `run` does, with a function whose result is awaited."""
    with closing(flow):
        given = _next_of(flow)
        while not isinstance(given, _Result):
            try:
                found = await ask(given)
            except Exception as error:
                given = _next_of(flow, error=error)
            else:
                given = _next_of(flow, found)
        return given.value


@dataclass(frozen=True)
class _Result(Generic[Made]):
    value: Made


def _next_of(
    flow: Generator[Asked, Any, Made], found: Any = None, error: Exception | None = None
) -> Asked | _Result[Made]:
    """Return what a generator yields next, given the last result or error, and its own result when it has ended.

    Python turns a StopIteration that passes through a generator into a RuntimeError with that cause, so the original
    error is raised here.
    """
    try:
        return flow.send(found) if error is None else flow.throw(error)
    except StopIteration as finished:
        return _Result(finished.value)
    except RuntimeError as raised:
        if error is not None and raised.__cause__ is error:
            raise error from None
        raise


def first_window(wanted: float, options: CollapseOptions) -> int:
    """Return the first of the windows (window, 2 * window, ... max_window) with `wanted` hits, or the last."""
    window = options.initial_window
    while window < min(wanted, options.max_window):
        window *= 2
    return min(window, options.max_window)


def window_for(stream: Stream, wanted: int, options: CollapseOptions) -> int:
    """Return the first window that gives `wanted` places, and those looked for beyond, or the next window to fetch."""
    wanted += options.ahead
    window = first_window(wanted, options)
    while window <= stream.fetched and window < options.max_window and count_places(stream, window, options) < wanted:
        window = first_window(window + 1, options)
    return window


def count_places(stream: Stream, window: int, options: CollapseOptions) -> int:
    """Return how many places the stream has within a window."""
    leader = stream.leader[: stream.examined(window)]
    if options.mode == "annotate":
        return len(leader)
    seen = [index for index, _, _ in stream.seen if index < len(leader)]
    if options.max_per_group == 1 and not seen:  # the leaders
        return sum(map(eq, leader.tolist(), count()))
    may_be_shown = np.ones(len(leader), np.int64)
    may_be_shown[[index for index in passed_over(stream.shares, options) if index < len(leader)]] = 0
    places = np.minimum(np.bincount(leader, may_be_shown), options.max_per_group)
    places[seen] = 0
    return int(places.sum())
