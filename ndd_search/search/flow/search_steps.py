"""Decides which searches are collapsed, and which steps each of them has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ndd_search.core.options import CollapseOptions, Total
from ndd_search.core.paging.record_schema import SEEN_WITH_ITEMS
from ndd_search.core.presets import collapse_options
from ndd_search.errors import CursorUnusable
from ndd_search.search.flow.client_settings import Settings
from ndd_search.search.flow.conversation import Conversation
from ndd_search.search.flow.explain_search import Explanations, explained_ids
from ndd_search.search.flow.facet_count import Facets
from ndd_search.search.flow.group_count import AllGroups, GroupCount
from ndd_search.search.flow.options_context import NOT_OPTIONS
from ndd_search.search.flow.plan import Step
from ndd_search.search.flow.round_trips import goes_together
from ndd_search.search.flow.seen_items import SeenItems
from ndd_search.search.flow.whole_groups import AllMembers
from ndd_search.search.rest.read_request import Piped, Request, read_search

_OF_CANDIDATES: Mapping[str, Total] = {"groups": "estimate", "auto": "hits"}


def conversation(
    request: Request, settings: Settings, changes: Mapping[str, Any] | None, pipeline: Piped = ""
) -> Conversation | None:
    """Return how to answer a request, None if it is left alone.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    pipeline: "safe" for one that may be collapsed after its search pipeline, "reorders" if that reorders each answer.
    Raises TypeError or ValueError for invalid options.
    """
    if changes is None or (search := read_search(request, pipeline)) is None:
        return None
    if (own_settings := settings.of_target(request.path, asked=bool(search.changes))) is None:
        return None
    changes = {**changes, **search.changes}
    beside = {name: changes.pop(name) for name in NOT_OPTIONS if name in changes}
    if (given := changes.pop("cursor", None)) is not None and given is not False:  # one on its own is no conversation
        raise CursorUnusable(request.path, 'a search in an _msearch cannot have "cursor"', "send it on its own")
    options = collapse_options(own_settings.options, **changes) if changes else own_settings.options
    if search.limits.apart and not goes_together(search.request):
        search = search.as_found
    if not search.ranks_hits and "unranked" not in options.also:
        return None
    learned, of_caller = own_settings.known.facts(search.target, search.target_of_caller)
    is_bypassed = own_settings.clock() < of_caller.bypass_until
    if search.start + search.size > learned.window_limit or (is_bypassed and not search.changes):
        return None  # beyond max_result_window, where the engine's own error is due; or a target without sketches
    if search.one_window and options.total in _OF_CANDIDATES:  # to make more candidates for a total costs too much
        options = replace(options, total=_OF_CANDIDATES[options.total])
    steps = steps_of(options, beside, own_settings)
    return Conversation(search, options, own_settings, steps, bool(beside.get("cache", True)) and not is_bypassed)


def steps_of(options: CollapseOptions, beside: Mapping[str, Any], settings: Settings) -> list[Step]:
    """Return the steps that a search asks for, in the order in which they work.

    beside: what it gives under the names in NOT_OPTIONS. Raises TypeError or ValueError for wrong values.
    """
    steps: list[Step] = []
    if (seen := beside.get("seen")) is not None:
        if settings.items is not None:
            raise ValueError(SEEN_WITH_ITEMS)
        items = SeenItems.of(seen, settings.recipe)
        steps += [items] if items.shown or items.documents else []
    if options.total == "estimate":
        steps.append(GroupCount())
    if options.total == "groups" and "cursor" in beside:  # other searches examine the whole result for their page
        steps.append(AllGroups())
    if options.facets:
        steps.append(Facets())
    if options.members == "all":
        steps.append(AllMembers())
    if "explain" in beside and (ids := explained_ids(beside["explain"])):
        steps.append(Explanations(ids))
    return steps
