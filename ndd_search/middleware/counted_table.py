"""Counts document frequencies of sketch values in a sample of an index, with a request of our own.

A frequency table reveals contents of documents, so callers share one only if they may read about the same documents. A
caller without a table first sends a probe for the ids of the sample's first documents. If they agree with those of
another caller, that caller's table is used, else the caller's own sample is counted. One such request at a time goes to
a target. Other searches continue with their former table, or with one counted in their own hits (`state.LISTED`).

The table that is stored beside the index comes first (see `stored_table`): it is read with one request, and used
after the same probe, so every process decides alike. Where it is missing, unreadable or of other documents, each
process counts its own. A client with `write_tables` stores what it has counted, unless another one has done so before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from ndd_search.matching.document_frequency import count_document_frequency
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.learned import Counted
from ndd_search.middleware.sending import LATE, Asking, RoundTrips, trouble
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.stored_table import (
    HEAD,
    StoredTable,
    creating,
    document,
    document_id,
    is_missing,
    read_document,
    reading,
    view_of,
    writing,
)
from ndd_search.rest.answers import Answer, reason_of, window_limit
from ndd_search.rest.request import Request, Search
from ndd_search.rest.wider_requests import SAMPLE, Reading, sample, sample_head

log = logging.getLogger("ndd_search")

_OLD = 24 * 3600.0  # seconds after which a client with `write_tables` counts a stored table again
_EXISTS = {HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT}  # of an index that another client has created meanwhile
_AGAIN = 3600.0  # seconds until a table is counted again
_AFTER_A_FAILURE = 60.0  # seconds until a failed count is repeated


def table_of(search: Search, settings: Settings) -> FrequencyTable | None:
    """Return a caller's current table, None if there is none."""
    counted = settings.known.table(search.target, settings.known.of_caller(search.target_of_caller).table)
    return None if counted is None else counted.frequency_table


def learn_frequency_table(
    search: Search, settings: Settings, reading: Reading, round_trips: RoundTrips
) -> Asking[None]:
    """Learn a frequency table for the caller, unless there is one, another caller is counting, or no time is left.

    A failure is retried after a minute; until then the caller's former table is used, if there is one.
    """
    known = settings.known
    if not _needs_count(search, settings) or not known.claim_count(
        search.target, search.target_of_caller, settings.clock()
    ):
        return
    try:
        if _needs_count(search, settings):  # another search may have counted it between the two lines above
            yield from _Count(search, settings, reading, round_trips).take_over_or_count()
    finally:
        known.end_count(search.target)


def _needs_count(search: Search, settings: Settings) -> bool:
    """Return whether the caller needs a count now: it has no fresh table, and its last count did not fail recently."""
    now, caller = settings.clock(), settings.known.of_caller(search.target_of_caller)
    table = settings.known.table(search.target, caller.table)
    return (table is None or now >= table.until) and now >= caller.count_again


class _Count:
    """Gets a table for one caller."""

    def __init__(self, search: Search, settings: Settings, reading: Reading, round_trips: RoundTrips) -> None:
        self._search, self._settings, self._reading, self._round_trips = search, settings, reading, round_trips
        self._target, self._known = search.target, settings.known
        self._has_companion = True

    def take_over_or_count(self) -> Asking[None]:
        """Use the table of a caller with about the same view, or count a new one."""
        now, field, recipe = self._settings.clock(), self._settings.sketch_field, self._settings.recipe
        stored = yield from self._stored()
        found = [self._known.table(self._target, digest) for digest in self._known.about(self._target).tables]
        fresh = [one for one in found if one is not None and now < one.until]
        if stored is not None and not self._is_old(stored):
            fresh.insert(0, Counted(stored.frequency_table, stored.view, now + _AGAIN))
        if fresh:
            head = yield from self._fetch(lambda size: sample_head(self._search, field, recipe, size), HEAD)
            if not head.whole:
                return self._try_again_soon(head)
            view = view_of(head.hits, head.total)
            if (like := next((one for one in fresh if one.view.is_about(view)), None)) is not None:
                return self._use(like)
        sampled = yield from self._fetch(lambda size: sample(self._search, field, recipe, self._reading, size), SAMPLE)
        if not sampled.whole:
            return self._try_again_soon(sampled)
        sketches = sampled.sketches(field, recipe)
        frequency_table = count_document_frequency([one for one in sketches if not isinstance(one, str)], recipe)
        counted = Counted(frequency_table, view_of(sampled.hits, sampled.total), now + _AGAIN)
        if self._settings.write_tables and self._settings.tables:
            counted = yield from self._store(counted, stored)
        self._use(counted)

    def _stored(self) -> Asking[StoredTable | None]:
        """Return the table that is stored beside the index, None if there is none that can be used."""
        if not self._settings.tables:
            return None
        (found,) = yield from self._round_trips.later([reading(self._request, self._settings.tables, self._id)])
        self._has_companion = not is_missing(found)
        return read_document(found.hits[0], self._settings.recipe.id) if found.whole and found.hits else None

    def _is_old(self, stored: StoredTable) -> bool:
        return self._settings.write_tables and self._settings.now() - stored.counted > _OLD

    def _store(self, counted: Counted, before: StoredTable | None) -> Asking[Counted]:
        """Store a table for all clients. Returns the table to use: another client may have stored one meanwhile.

        before: the stored table. It is replaced if it is old, or if this caller sees more documents: the index has
                grown, or a caller with fewer rights has stored it.
        """
        if before is not None:
            alike = before.view.is_about(counted.view)
            if not (self._is_old(before) if alike else counted.view.total > before.view.total):
                return counted
        if not self._has_companion:
            (made,) = yield from self._round_trips.later([creating(self._request, self._settings.tables)])
            if not made.ok and made.status not in _EXISTS:
                return self._not_stored(made, counted)
        table = StoredTable(counted.frequency_table, counted.view, self._settings.now())
        body = document(self._search.indexes, self._settings.sketch_field, table)
        place = None if before is None else before.place
        request = writing(self._request, self._settings.tables, self._id, body, place)
        (written,) = yield from self._round_trips.later([request])
        if written.status == HTTPStatus.CONFLICT:
            other = yield from self._stored()
            if other is not None and other.view.is_about(counted.view):
                return replace(counted, frequency_table=other.frequency_table, view=other.view)
        elif not written.ok:
            return self._not_stored(written, counted)
        return counted

    def _not_stored(self, failed: Answer, counted: Counted) -> Counted:
        log.info("the frequency table was not stored in %s: %s", self._settings.tables, reason_of(failed.body))
        return counted

    @property
    def _request(self) -> Request:
        """The caller's request: our requests are sent with its headers."""
        return self._search.request

    @property
    def _id(self) -> str:
        return document_id(self._search.indexes, self._settings.sketch_field, self._settings.recipe.id)

    def _fetch(self, request: Callable[[int], Request], size: int) -> Asking[Answer]:
        """Return the answer to a request for `size` documents, fewer if an index allows no more."""
        limit = self._known.about(self._target).window_limit
        answer = yield from self._sent(request(min(size, limit)))
        if most := window_limit(answer.complaint):
            self._known.learn(self._target, window_limit=most)
            answer = yield from self._sent(request(min(size, most)))
        return answer

    def _sent(self, request: Request) -> Asking[Answer]:
        (answer,) = yield from self._round_trips.later([request])
        return answer if is_readable(answer) else Answer("not the answer to a search", HTTPStatus.BAD_GATEWAY)

    def _use(self, counted: Counted) -> None:
        digest = self._known.add_table(self._target, counted)
        self._known.learn_of_caller(self._search.target_of_caller, table=digest)

    def _try_again_soon(self, failed: Answer) -> None:
        if trouble([failed], like=failed) != LATE:  # when late, nothing was sent
            again = self._settings.clock() + _AFTER_A_FAILURE
            self._known.learn_of_caller(self._search.target_of_caller, count_again=again)


def is_readable(answer: Answer) -> bool:
    """Return whether the hits of an answer, if it has any, have ids."""
    return not answer.has_hits or all("_id" in hit for hit in answer.hits)
