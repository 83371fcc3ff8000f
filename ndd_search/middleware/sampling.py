"""Counts document frequencies of sketch values in a sample of an index, with a request of our own.

A frequency table reveals contents of documents, so callers share one only if they may read about the same documents. A
caller without a table first sends a probe for the ids of the sample's first documents. If they agree with those of
another caller, that caller's table is used, else the caller's own sample is counted. One such request at a time goes to
a target. Other searches continue with their former table, or with one counted in their own hits (`LISTED`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from http import HTTPStatus

from ndd_search.matching.document_frequency import count_document_frequency
from ndd_search.middleware.learned import Counted, View
from ndd_search.middleware.sending import LATE, RoundTrips, trouble
from ndd_search.middleware.settings import Settings
from ndd_search.rest.answers import Answer, window_limit
from ndd_search.rest.request import SAMPLE, Reading, Request, Search, sample, sample_head

LISTED = "list"  # the name of a table that is counted in the hits of the search
_HEAD = 32  # documents of a sample by which the views of two callers are compared
_AGAIN = 3600.0  # seconds until a table is counted again
_AFTER_A_FAILURE = 60.0  # seconds until a failed count is repeated

Asked = Generator[Request, Answer, None]


def table_of(search: Search, settings: Settings) -> str:
    """Return the digest of a caller's current table, LISTED if there is none."""
    digest = settings.known.of_caller(search.target_of_caller).table
    return digest if settings.known.table(search.target, digest) else LISTED


def sample_frequency_table(search: Search, settings: Settings, reading: Reading, round_trips: RoundTrips) -> Asked:
    """Get a frequency table for the caller, unless there is one, another caller is counting, or no time is left.

    A failure is retried after a minute; until then the caller's former table is used, if there is one.
    """
    known = settings.known
    if _needs_no_count(search, settings) or not known.may_count(
        search.target, search.target_of_caller, settings.clock()
    ):
        return
    try:
        if not _needs_no_count(search, settings):  # another search may have counted it between the two lines above
            yield from _Count(search, settings, reading, round_trips).take_over_or_count()
    finally:
        known.has_counted(search.target)


def _needs_no_count(search: Search, settings: Settings) -> bool:
    """Return whether the caller needs no count now: its table is fresh, or its last count failed recently."""
    now, caller = settings.clock(), settings.known.of_caller(search.target_of_caller)
    table = settings.known.table(search.target, caller.table)
    return (table is not None and now < table.until) or now < caller.count_again


class _Count:
    """Gets a table for one caller."""

    def __init__(self, search: Search, settings: Settings, reading: Reading, round_trips: RoundTrips) -> None:
        self._search, self._settings, self._reading, self._round_trips = search, settings, reading, round_trips
        self._target, self._known = search.target, settings.known

    def take_over_or_count(self) -> Asked:
        """Use the table of a caller with about the same view, or count a new one."""
        now, field, recipe = self._settings.clock(), self._settings.sketch_field, self._settings.recipe
        found = [self._known.table(self._target, digest) for digest in self._known.about(self._target).tables]
        fresh = [one for one in found if one is not None and now < one.until]
        if fresh:
            head = yield from self._fetch(lambda size: sample_head(self._search, field, recipe, size), _HEAD)
            if not head.whole:
                return self._try_again_soon(head)
            view = _view(head)
            if (like := next((one for one in fresh if one.view.is_about(view)), None)) is not None:
                return self._use(like.frequency_table.digest)
        sampled = yield from self._fetch(lambda size: sample(self._search, field, recipe, self._reading, size), SAMPLE)
        if not sampled.whole:
            return self._try_again_soon(sampled)
        sketches = field.decode([hit.get("fields") or {} for hit in sampled.hits], recipe)
        frequency_table = count_document_frequency([one for one in sketches if not isinstance(one, str)], recipe)
        self._use(self._known.add_table(self._target, Counted(frequency_table, _view(sampled), now + _AGAIN)))

    def _fetch(self, request: Callable[[int], Request], size: int) -> Generator[Request, Answer, Answer]:
        """Return the answer to a request for `size` documents, fewer if an index allows no more."""
        limit = self._known.about(self._target).window_limit
        answer = yield from self._sent(request(min(size, limit)))
        if most := window_limit(answer.complaint):
            self._known.learn(self._target, window_limit=most)
            answer = yield from self._sent(request(min(size, most)))
        return answer

    def _sent(self, request: Request) -> Generator[Request, Answer, Answer]:
        (answer,) = yield from self._round_trips.later([request])
        return answer if is_readable(answer) else Answer("not the answer to a search", HTTPStatus.BAD_GATEWAY)

    def _use(self, digest: str) -> None:
        self._known.learn_of_caller(self._search.target_of_caller, table=digest)

    def _try_again_soon(self, failed: Answer) -> None:
        if trouble([failed], like=failed) != LATE:  # when late, nothing was sent
            again = self._settings.clock() + _AFTER_A_FAILURE
            self._known.learn_of_caller(self._search.target_of_caller, count_again=again)


def _view(sampled: Answer) -> View:
    first = frozenset((hit["_index"], hit["_id"]) for hit in sampled.hits[:_HEAD])
    return View(first, len(sampled.hits) if sampled.total is None else sampled.total)


def is_readable(answer: Answer) -> bool:
    """Return whether the hits of an answer, if it has any, have ids."""
    return not answer.has_hits or all("_id" in hit for hit in answer.hits)
