"""What an observer of a wrapped client, or of a proxy, is given about each search: counts and times, never content."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, time_ns
from typing import Any, Protocol, runtime_checkable

from ndd_search.search.flow.round_trips import DrivenFlow
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request

log = logging.getLogger("ndd_search")


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """Facts about a page, from its block `ndd`.

    collapsed: whether the page was made by us; False for an engine's own page, where the other facts are unknown.
    examined, hidden: numbers of hits.
    cache:     "hit", "miss" or "off". strategy: "one_phase" or "two_phases".
    degraded:  why near-duplicates may be shown, one of a few sentences; "" if all went well.
    changed:   whether the page differs from the engine's own.
    """

    collapsed: bool
    examined: int = 0
    hidden: int = 0
    cache: str = "off"
    strategy: str = ""
    degraded: str = ""
    changed: bool = False


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Facts about one request of a client: a search, or an `_msearch` with a page for each of its searches.

    path:    of the request, as in "/news/_search".
    pages:   none if the request failed.
    trips:   number of requests to the engine.
    own_seconds, upstream_seconds: time of our own work, and time spent waiting for the engine or for another caller.
    ended:   nanoseconds since 1970.
    failed:  name of the class of the exception that the caller gets, "" for none.
    """

    path: str
    pages: tuple[PageFacts, ...]
    trips: int
    own_seconds: float
    upstream_seconds: float
    ended: int
    failed: str = ""


class Observer(Protocol):
    """Receives an observation after each search that a wrapped client may collapse.

    It is called in the thread or the task of the search and should be quick. Its errors are logged, not raised.
    """

    def observe(self, seen: Observation) -> None:
        """Use an observation."""


@runtime_checkable
class WriteObserver(Protocol):
    """An observer that a proxy also tells of the documents that it passed without the sketch of their rule."""

    def observe_unsketched(self, path: str, documents: int) -> None:
        """Use their number in one request. path: of the request, as in "/news/_bulk"."""


def observed(flow: DrivenFlow, path: str, observers: Sequence[Observer]) -> DrivenFlow:
    """Run a flow, and give its facts to observers when it ends."""
    began, waited, trips = perf_counter(), 0.0, 0
    answer: Answer | None = None
    failed = ""
    try:
        step = next(flow)
        while True:
            asked = perf_counter()
            trips += isinstance(step, Request)
            try:
                result = yield step
            except Exception as error:
                waited += perf_counter() - asked
                step = flow.throw(error)
            else:
                waited += perf_counter() - asked
                step = flow.send(result)
    except StopIteration as finished:
        answer = finished.value
        return finished.value  # type: ignore[no-any-return]
    except BaseException as error:
        failed = type(error.__cause__ or error).__name__ if isinstance(error, RuntimeError) else type(error).__name__
        raise
    finally:
        flow.close()
        seen = Observation(
            path=path,
            pages=tuple(facts_of(None if answer is None else answer.body)),
            trips=trips,
            own_seconds=perf_counter() - began - waited,
            upstream_seconds=waited,
            ended=time_ns(),
            failed=failed,
        )
        for observer in observers:
            _give(observer.observe, seen)


def _give(observe: Callable[..., None], *facts: Any) -> None:
    try:
        observe(*facts)
    except Exception:
        log.exception("an observer failed; the request is not affected")


def give_unsketched(observers: Sequence[Observer], path: str, documents: int) -> None:
    """Tell those observers that count documents without a sketch how many a request had."""
    for observer in observers:
        if isinstance(observer, WriteObserver):
            _give(observer.observe_unsketched, path, documents)


def facts_of(body: Any) -> list[PageFacts]:
    """Return the facts of each page in an answer to a search or an `_msearch`."""
    if not isinstance(body, dict):
        return []
    responses = body.get("responses")
    return list(map(_page, responses if isinstance(responses, list) else [body]))


def _page(body: Any) -> PageFacts:
    block = body.get("ndd") if isinstance(body, dict) else None
    if not isinstance(block, dict):
        return PageFacts(collapsed=False)
    degraded = str(block.get("degraded") or "").partition(":")[0]  # after the colon an engine may quote the query
    if "examined" not in block:
        return PageFacts(collapsed=False, degraded=degraded)
    return PageFacts(
        collapsed=True,
        examined=block["examined"],
        hidden=block["hidden"],
        cache=block["cache"],
        strategy=block.get("strategy", ""),
        degraded=degraded,
        changed=bool(block.get("changed")),
    )
