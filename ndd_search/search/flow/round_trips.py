"""The round trips of one search: measures their time, enforces the time budget, decides which failures are raised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass, replace
from http import HTTPStatus
from time import perf_counter
from typing import Any, TypeVar

from ndd_search.errors import NDDError
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request

LATE = "out of time, the page is made of the first hits"
FAILED = "a later round failed, the page is made of the first hits"
_MOST = 1e6  # seconds: a longer budget limits nothing, and sockets take no such timeout
# Statuses about who asks, and where: the caller's own request would get them, too, unless ours is an `_msearch`, which
# goes elsewhere. All others may be about what we changed.
PLACE = {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
REFUSED = set(range(HTTPStatus.BAD_REQUEST, 600)) - {HTTPStatus.UNAUTHORIZED} - PLACE

Result = TypeVar("Result")
Asking = Generator[Request, Answer, Result]  # yields requests, is sent their answers, returns a result
Flow = Asking[Answer]  # of a search or an `_msearch`


# Parameters of a search that an `_msearch` takes per search, and those that it takes once for all searches.
FOR_EACH = {
    *("preference", "routing", "search_type", "request_cache"),
    *("ignore_unavailable", "allow_no_indices", "expand_wildcards"),
}
_FOR_ALL = {"typed_keys", "rest_total_hits_as_int", "ccs_minimize_roundtrips"}
_ACCEPTED = {*FOR_EACH, *_FOR_ALL, "from", "size", "filter_path"}  # `filter_path` is applied here


@dataclass(frozen=True)
class Wait:
    """A step of a flow: wait until another computation has ended (see cache.SingleFlight), or for so many seconds."""

    flight: Future[None]
    seconds: float


Waiting = Generator[Wait, None, bool]
DrivenFlow = Generator[Request | Wait, Any, Answer]  # what a driver runs: a flow that may wait


class Finished(Exception):
    """A search ends with an answer that is no page of ours: an error of the engine, or the caller's own page."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


class RoundTrips:
    """The round trips of one search.

    budget: seconds after which no later trip begins, and the timeout of the trips in flight; None for no limit.
    """

    def __init__(self, budget: float | None) -> None:
        self._budget = None if budget is None or budget > _MOST else budget
        self.has_budget = self._budget is not None
        self._began = perf_counter()
        self._waits: list[float] = []  # seconds
        self._moved: Callable[[Request], Request] | None = None

    @property
    def own_seconds(self) -> float:
        """Seconds spent so far without waiting for the engine."""
        return perf_counter() - self._began - sum(self._waits)

    def moved(self, change: Callable[[Request], Request]) -> RoundTrips:
        """Return trips of the same search whose requests are changed before they are sent, as to a point in time."""
        other = copy(self)
        other._moved = change
        return other

    @property
    def _seconds_left(self) -> float | None:
        return None if self._budget is None else self._budget - (perf_counter() - self._began)

    def wait(self, flight: Future[None], most: float) -> Waiting:
        """Wait for another computation, at most `most` seconds and within the budget. It counts as waiting.

        Returns whether any of the budget is left.
        """
        began, left = perf_counter(), self._seconds_left
        yield Wait(flight, most if left is None else max(0.0, min(most, left)))
        self._waits.append(perf_counter() - began)
        left = self._seconds_left
        return left is None or left > 0

    def first(self, requests: list[Request], is_split: bool) -> Asking[list[Answer]]:
        """Make the first trip. A failure after which the caller's own request decides is returned as a failed answer.

        No answer within the budget is such a failure, too. Other exceptions of the client pass through.
        is_split: whether parts of the caller's request are left for a second trip. An engine finds faults in these
        before it looks for the index.
        """
        return self._go(requests, self._seconds_left, REFUSED | PLACE if is_split or len(requests) > 1 else REFUSED)

    def needed(self, requests: list[Request], refusals: Collection[int] | None = ()) -> Asking[list[Answer]]:
        """Make a trip without which there is no page, in all the time that the client gives it.

        refusals: statuses that are returned as failed answers; None returns every failure. For any other failure, an
                  exception of the client passes through, and a failed answer raises Finished.
        """
        return self._go(requests, None, refusals)

    def later(self, requests: list[Request]) -> Asking[list[Answer]]:
        """Make another trip. Every failure is returned as a failed answer, also if no time is left."""
        return self._go(requests, self._seconds_left, None)

    def _go(
        self, requests: list[Request], timeout: float | None, refusals: Collection[int] | None
    ) -> Asking[list[Answer]]:
        """Make a trip. refusals: as in `first`; None for every status."""
        trip = together(requests if self._moved is None else list(map(self._moved, requests)))
        if timeout is not None:
            if timeout <= 0:
                return [Answer(LATE, HTTPStatus.REQUEST_TIMEOUT)] * len(requests)
            trip = replace(trip, timeout=timeout)
        began = perf_counter()
        try:
            answer = yield trip
        except RecursionError:  # of the parser: a document that the caller's own request does not ask for
            answer = Answer("")
        except Exception as error:
            if refusals is not None and timeout is None and not is_refused(error, refusals):
                raise
            left = self._seconds_left
            is_late = left is not None and left <= 0
            told = getattr(error, "info", None) or str(error)  # the engine's own body, where a client gives it
            answer = Answer(told, HTTPStatus.REQUEST_TIMEOUT if is_late else status_of(error))
        finally:
            self._waits.append(perf_counter() - began)
        if refusals is not None and timeout is None and not answer.ok and answer.status not in refusals:
            raise Finished(answer)
        return [answer] if len(requests) == 1 else answer.apart(len(requests))


def is_refused(error: Exception, refusals: Collection[int] = REFUSED) -> bool:
    """Return whether an engine answered with one of these statuses. Errors of our proxy have one without an answer."""
    return not isinstance(error, NDDError) and getattr(error, "status_code", None) in refusals


def status_of(error: Exception) -> int:
    """Return the status in an exception of a client, 503 if it has none."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else HTTPStatus.SERVICE_UNAVAILABLE


def trouble(answers: Sequence[Answer], like: Answer) -> str:
    """Return why answers cannot be combined with an earlier one, "" if they can.

    like: the earlier answer. If other clusters answered, ranks differ.
    """
    for one in answers:
        if not one.whole or (one is not like and one.clusters != like.clusters):
            return LATE if HTTPStatus.REQUEST_TIMEOUT in [each.status for each in answers] else FAILED
    return ""


def joined(*reasons: str | None) -> str:
    """Return the reasons for a degraded page in one line, "" if there are none."""
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def together(requests: list[Request]) -> Request:
    """Combine searches of one target in one `_msearch`."""
    if len(requests) == 1:
        return requests[0]
    first = requests[0]
    lines: list[Any] = []
    for request in requests:
        lines += [{name: value for name, value in request.params.items() if name in FOR_EACH}, request.body]
    params = {name: value for name, value in first.params.items() if name in _FOR_ALL}
    path = first.path.removesuffix("_search") + "_msearch"
    cut = first.cut if all(request.cut == first.cut for request in requests) else None
    return Request("POST", path, params, first.headers, lines, first.timeout, tuple(requests), cut)


def goes_together(request: Request) -> bool:
    """Return whether an `_msearch` accepts every URL parameter of a search."""
    return _ACCEPTED.issuperset(request.params)
