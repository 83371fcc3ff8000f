"""The parts of a search that it has only if it asks for them: each is a step, chosen in `search_steps`."""

from __future__ import annotations

from typing import Any

from ndd_search.core.paging.page import Page
from ndd_search.search.flow.plan import Plan
from ndd_search.search.flow.round_trips import Asking, RoundTrips
from ndd_search.search.flow.state import State
from ndd_search.search.rest.answers import Answer
from ndd_search.search.rest.request import Request


class Step:
    """A part of a search. Its methods are called in this order, and do nothing unless the step needs them."""

    @property
    def is_remembered(self) -> bool:
        """Whether the page may be read from the cache and stored there."""
        return True

    @property
    def needs_ids(self) -> bool:
        """Whether every hit of the window needs its id, so that the search is not split."""
        return False

    def planned(self, plan: Plan, round_trips: RoundTrips) -> Asking[Plan]:
        """Return the plan before the first trip."""
        yield from ()
        return plan

    def beside(self, plan: Plan) -> list[Request]:
        """Return requests to send beside those of the first trip."""
        return []

    def after_first_trip(
        self, state: State, plan: Plan, round_trips: RoundTrips, answers: list[Answer]
    ) -> Asking[State]:
        """Return the state after the first trip. answers: to the requests beside it."""
        yield from ()
        return state

    def after_hits(self, state: State, plan: Plan, round_trips: RoundTrips) -> Asking[State]:
        """Return the state, which may be a cached one, after the hits that the page needs are there."""
        yield from ()
        return state

    def with_page(self, state: State, page: Page, plan: Plan, round_trips: RoundTrips) -> Asking[tuple[State, Page]]:
        """Return the state and the page after the documents of the page are there."""
        yield from ()
        return state, page

    def with_answer(self, body: dict[str, Any], state: State, plan: Plan) -> dict[str, Any]:
        """Return the answer for the caller."""
        return body
