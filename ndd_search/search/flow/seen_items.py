"""Reads what a caller was shown before, `"ndd": {"seen": [...]}`, and finds its sketches.

An item has a form that `more_like_this` knows: a text, or a document by its `_id` and perhaps `_index`, so that hits
can be passed as they are; or it is a sketch. Documents are looked up in the searched indexes, through the same aliases
and with the caller's own rights: one of another index, one that the caller may not read, or that was deleted, is not
compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ndd_search.core.paging.stream import UNKNOWN, Shown
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.estimate_similarity import checked_sketch
from ndd_search.core.sketching.sketches import Sketch, sketch_many
from ndd_search.search.flow.plan import Plan, Step, ask_anew_if_learned
from ndd_search.search.flow.round_trips import Asking, RoundTrips
from ndd_search.search.flow.search_state import State
from ndd_search.search.rest.read_answer import MALFORMED, Hit, reason_of
from ndd_search.search.rest.read_request import Request
from ndd_search.search.rest.wider_requests import beside

MOST = 1000  # items of one search
_NONE = np.empty(0, np.int32)
_UNREAD = "what was seen could not be read, and may be shown again: "


@dataclass(frozen=True, eq=False)
class SeenItems(Step):
    """What a caller was shown. shown: texts and sketches. documents: by their item, to be looked up."""

    recipe: Recipe
    shown: tuple[Shown, ...]
    documents: Mapping[int, Mapping[str, Any]]
    is_remembered: ClassVar[bool] = False

    @classmethod
    def of(cls, given: Any, recipe: Recipe) -> SeenItems:
        """Read the items. Raises TypeError or ValueError for one of another form, InvalidSketch."""
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TypeError(f'"seen" must be a list of texts, hits or sketches, got {type(given).__name__}')
        if len(given) > MOST:
            raise ValueError(f'"seen" has {len(given)} items, and {MOST} are compared: give the newest')
        texts = {item: one for item, one in enumerate(given) if isinstance(one, str)}
        found: dict[int, Sketch] = dict(zip(texts, sketch_many(texts.values(), recipe), strict=True))
        documents = {}
        for item, one in enumerate(given):
            if isinstance(one, Mapping) and isinstance(one.get("_id"), str):
                documents[item] = one
            elif isinstance(one, list | tuple | np.ndarray):
                found[item] = checked_sketch(one, recipe.k).astype(np.int32)
            elif item not in texts:
                raise TypeError(
                    f'item {item} of "seen" is neither a text, nor a hit with an _id, nor a sketch: {one!r}'
                )
        return cls(recipe, tuple(Shown(item, UNKNOWN, one) for item, one in found.items()), documents)

    @property
    def needs_sketches(self) -> bool:
        """Hits that are themselves items are hidden without a sketch."""
        return not self.documents

    def with_answer(self, body: dict[str, Any], state: State, plan: Plan) -> dict[str, Any]:
        """Return the answer with warnings: about texts that may be ids, for they resemble equal ones alone, and about
        documents that were not found."""
        block = body["ndd"]
        block.setdefault("seen", [])
        short = [one.item for one in self.shown if len(one.sketch) < 2]
        told = f'items {short} of "seen" are read as texts of a few words: name a document as {{"_id": "1"}}'
        block["warnings"] += [plan.settings.tell(plan.search.request.path, told)] if short else []
        absent = sorted(self.documents.keys() - {one.item for one in plan.shown})
        if absent and not plan.unread:
            block["warnings"].append(f'items {absent} of "seen" are not in the index, so no hit was compared with them')
        return body

    def planned(self, plan: Plan, round_trips: RoundTrips) -> Asking[Plan]:
        """Return the plan with all items and their sketches, and with the reason if documents could not be read."""
        if plan.shown or plan.unread:  # it was planned before
            return plan
        shown, unread = list(self.shown), ""
        if self.documents:
            (answer,) = yield from round_trips.later([self._request(plan)])
            ask_anew_if_learned(plan, answer.complaint)
            if not answer.has_hits:
                unread = reason_of(answer.body)
            elif answer.partial:
                unread = "the answer is partial"
            try:
                shown += self._found(answer.hits, plan) if answer.has_hits else []
            except MALFORMED as error:
                unread = f"the answer is malformed ({error!r})"
        plan = replace(plan, shown=tuple(shown), unread=unread and _UNREAD + unread)
        by_id = any(one.hit is not UNKNOWN and not len(one.sketch) for one in shown)
        if by_id or (self.documents and plan.options.same_numbers):  # hits of a split search have no ids at first
            return replace(plan, is_split=False, may_split=False)
        return plan

    def _request(self, plan: Plan) -> Request:
        ids = sorted({one["_id"] for one in self.documents.values()})
        most = max(len(ids), min(2 * MOST, plan.options.max_window))  # an id may be in several indexes
        body: dict[str, Any] = {"query": {"ids": {"values": ids}}, "size": most, "_source": False}
        body |= {"docvalue_fields": list(plan.reading.stored), "track_total_hits": False}
        if plan.reading.fields:
            body["fields"] = list(plan.reading.fields)
        return beside(plan.search, body)

    def _found(self, hits: Sequence[Hit], plan: Plan) -> list[Shown]:
        by_id = defaultdict[str, list[Hit]](list)
        for hit in hits:
            by_id[hit.get("_id", "")].append(hit)
        found = []
        for item, one in self.documents.items():
            found += [(item, hit) for hit in by_id[one["_id"]] if one.get("_index") in (None, hit["_index"])]
        sketches = plan.field.decode([hit for _, hit in found], self.recipe)
        return [
            Shown(item, hit, _NONE if isinstance(sketch, str) else sketch)
            for (item, hit), sketch in zip(found, sketches, strict=True)
        ]
