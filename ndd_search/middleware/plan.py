"""The plan of a search: which hits are fetched, what is read of them, and with which requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ndd_search.collapse_options import CollapseOptions, Strategy
from ndd_search.immutable import cached_property, dataclass
from ndd_search.middleware.fetch_strategies import Timings, own_part, sketches_only, strategies_of
from ndd_search.middleware.learned import LearnedOfCaller, LearnedOfTarget
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.paging.stream import Shown
from ndd_search.paging.windows import Fetch
from ndd_search.rest.answers import Answer, window_limit
from ndd_search.rest.request import Request, Search
from ndd_search.rest.source_filter import SketchFilter
from ndd_search.rest.wider_requests import (
    Reading,
    asked_for,
    asked_otherwise,
    fields_added,
    sketch_reading,
    widened,
)
from ndd_search.sketching.field import SketchField

_MAPPED = 3600.0  # seconds until we check again whether recipes are mapped as text


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one search is carried out.

    search, options: what is searched and how its hits are collapsed.
    learned:         what was known of the target when the search was planned. of_caller: the same of the caller.
    field:           where the sketches are in a document.
    may_split:       whether the search may be split in two requests; False after a split search of it failed.
    strategy:        how hits are fetched (see `fetch_strategies`).
    is_measured:     whether "auto" learns from this search. is_timed: whether its time is compared with that of others.
    width:           end of the documents that one_trip fetches first, in multiples of the end of the page.
    sketch_reading:  how sketches are read of a hit. reading: the same with the fields that guards and `keep` need.
    sketch_fields:   fields of ours that are removed from hits when they arrive.
    added_fields:    fields that were added for guards and `keep`; they are removed from the hits shown.
    shown:           what the caller was shown before. unread: why some of it is not known, "" if all of it is.
    """

    search: Search
    options: CollapseOptions
    learned: LearnedOfTarget
    of_caller: LearnedOfCaller
    field: SketchField
    may_split: bool
    strategy: Strategy
    is_measured: bool
    is_timed: bool
    width: float
    sketch_reading: Reading
    reading: Reading
    sketch_fields: tuple[str, ...]
    added_fields: tuple[str, ...]
    shown: tuple[Shown, ...] = ()
    unread: str = ""

    def within(self, most: int) -> Plan:
        """Return the same plan with windows of at most `most` hits."""
        return replace(self, options=narrowed(self.options, most))

    @property
    def is_split(self) -> bool:
        """Whether documents and sketches are fetched by different requests."""
        return self.strategy != "one_phase"

    @property
    def as_found(self) -> Plan:
        """The same plan with the caller's own candidate limits."""
        return replace(self, search=self.search.as_found)

    @property
    def warnings(self) -> list[str]:
        """Sentences about fields that options name and that could only be read as the caller requests them."""
        if not self.reading.fields or (self.is_split and self.options.members != "all"):
            return []
        return [
            f"the field {name!r}, which an option names, is compared as the search requests it: request it in "
            "`_source` or, without a format, in `fields`"
            for name in asked_otherwise(self.search, self.reading.fields)
        ]

    def requests(self, fetch: Fetch, first: bool) -> list[Request]:
        """Return the requests of one trip. The sketches are in the answer to the last one."""
        if first and self.search.limits.apart:
            aggregated = widened(self.search.as_found, 0, 1, self.field, self.sketch_reading)
            return [aggregated, widened(self.search, fetch.start, fetch.size, self.field, self.reading, first=False)]
        if not self.is_split:
            return [widened(self.search, fetch.start, fetch.size, self.field, self.reading, first=first)]
        sketches = sketches_only(self.search, fetch, self.field, self.reading)
        if not first:
            return [sketches]
        own = own_part(self.search, self.options.initial_window, self.width)
        return [widened(self.search, own.start, own.size, self.field, self.sketch_reading), sketches]

    def document_requests(self, ranges: Sequence[Fetch], ids_only: bool = False) -> list[Request]:
        """Return the requests for the documents, or only the ids, of some ranges of the engine's list."""
        if ids_only:
            return [sketches_only(self.search, one, self.field, self.sketch_reading, ids=True) for one in ranges]
        return [
            widened(self.search, one.start, one.size, self.field, self.sketch_reading, first=False) for one in ranges
        ]

    def hide_sketches(self, answers: Sequence[Answer]) -> None:
        """Remove the sketches from the hits of answers, in place, unless the caller names them."""
        added = fields_added(self.search, self.reading)
        for answer in answers:
            self._filter.clean(answer.body, added, (*self.sketch_fields, *self.added_fields, *added))

    def hide_sketches_in(self, body: Any) -> None:
        """Remove the sketches from the answer to the caller's own request, in place, unless the caller names them."""
        self._filter.clean(body)

    @cached_property
    def _filter(self) -> SketchFilter:
        return SketchFilter(self.search.body, self.search.request.params, self.field)


def plan_of(search: Search, options: CollapseOptions, settings: Settings, may_split: bool = True) -> Plan:
    """Plan a search from what is learned of its target now."""
    field, now = settings.sketch_field, settings.clock()
    learned, of_caller = settings.known.facts(search.target, search.target_of_caller)
    numbers = [field.numbers] if options.numbers_must_match else []
    values = options.document_fields
    sketches = sketch_reading(settings.stored_sketches, now < learned.text_until, learned.sketched)
    if settings.items is not None:
        sketches, may_split = Reading(()), False  # the fields of items are read from documents
        values = tuple(dict.fromkeys((*values, *settings.items.paths)))
    reading = sketches.and_of(numbers, values)
    added = (*values, *numbers)
    timings = of_caller.timings if now < of_caller.timings.until else Timings()
    is_timed = not settings.known.under_way.are_many
    width = timings.width(search.start + search.size)
    possible: tuple[Strategy, ...] = ("one_phase",)
    if may_split and now >= learned.whole_until:
        possible = strategies_of(search, options, reading, width)
    return Plan(
        search=search,
        options=options,
        learned=learned,
        of_caller=of_caller,
        field=field,
        may_split=may_split,
        strategy=possible[0] if len(possible) == 1 else timings.strategy if is_timed else timings.faster,
        is_measured="one_trip" in possible,
        is_timed=is_timed,
        width=width,
        sketch_reading=sketches,
        reading=reading,
        sketch_fields=_not_requested(search, field, [name for name in field.paths if name not in added]),
        added_fields=_not_requested(search, field, added),
    )


def _not_requested(search: Search, field: SketchField, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of our fields that the caller does not request."""
    return tuple(name for name in names if not asked_for(search, field, name)) if search.wanted_fields else tuple(names)


def narrowed(options: CollapseOptions, most: int) -> CollapseOptions:
    """Return options whose windows hold at most `most` hits."""
    if most >= options.max_window:
        return options
    return replace(options, window=min(options.window, most), max_window=most)


class Replan(Exception):
    """The search continues with another plan. state: the hits fetched so far that it keeps."""

    def __init__(self, plan: Plan, state: State) -> None:
        super().__init__(plan, state)
        self.plan, self.state = plan, state


def replan_if_learned(plan: Plan, state: State, complaint: str, settings: Settings) -> None:
    """Raise Replan if the engine's complaint about a request shows how to ask instead. It is learned for the target.

    A first window is planned anew. Later ones keep the strategy, because documents were fetched according to it.
    """
    if most := _shorter_window(plan, complaint):
        settings.known.learn(plan.search.target, window_limit=most)
        narrow = plan.within(most)
        raise Replan(_again(narrow, settings) if state.envelope is None else narrow, state)
    if _is_about_text(plan, complaint):
        settings.known.learn(plan.search.target, text_until=settings.clock() + _MAPPED)
        raise Replan(_again(plan, settings), state)


def _again(plan: Plan, settings: Settings) -> Plan:
    return replace(plan_of(plan.search, plan.options, settings, plan.may_split), shown=plan.shown, unread=plan.unread)


def _shorter_window(plan: Plan, complaint: str) -> int | None:
    """Return the longest window that an index allows, if it is shorter than planned and still holds the page."""
    most = window_limit(complaint)
    wanted = plan.search.start + plan.search.size
    return most if most and wanted <= most < plan.options.max_window else None


def _is_about_text(plan: Plan, complaint: str) -> bool:
    """Return whether recipes have no doc values because they are mapped as text, and this was not known."""
    return plan.field.recipe in complaint and "ielddata" in complaint and not plan.sketch_reading.fields
