"""Divides searches into two arms by a unit such as a user, and says on each page what the other arm would show.

    "ndd": {"experiment": {"unit": "user-17", "share": 0.5, "name": "autumn"}}

A unit is in the same arm in every process and at any time. In the arm "treatment" pages are collapsed. In the arm
"control" they are the engine's own, made with the same requests, so that both arms take the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, Literal

from ndd_search.checks import check_share
from ndd_search.middleware.plan import Plan
from ndd_search.middleware.state import State
from ndd_search.paging.page import Page
from ndd_search.rest.answers import Hit, without_fields

Arm = Literal["treatment", "control"]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """unit: who is always in the same arm, a user or a session. share: of the units that get collapsed pages, 0..1.

    name: of the experiment; units are divided anew for another name.
    """

    unit: str
    share: float = 0.5
    name: str = ""

    @classmethod
    def of(cls, given: Any) -> Experiment:
        """Create from the options of a search. Raises TypeError or ValueError for invalid ones."""
        known = [one.name for one in fields(cls)]
        if not isinstance(given, Mapping) or "unit" not in given or not set(known).issuperset(given):
            raise TypeError(f'"experiment" takes unit, share and name, as in {{"unit": "user-17"}}, got {given!r}')
        if not isinstance(given["unit"], str) or not isinstance(given.get("name", ""), str):
            raise TypeError(f"unit and name of an experiment must be texts, got {given!r}")
        check_share("share of an experiment", given.get("share", 0.5))
        return cls(**given)

    @property
    def bucket(self) -> float:
        """The place of the unit in 0..1, uniform over units."""
        text = f"{len(self.name)}:{self.name}{self.unit}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, digest_size=6).digest()) / 2**48

    @property
    def arm(self) -> Arm:
        """The arm of the unit."""
        return "treatment" if self.bucket < self.share else "control"

    def own_ranks(self, plan: Plan, state: State) -> set[int]:
        """Return the ranks of the engine's own page."""
        start, end = plan.search.start, plan.search.start + plan.search.size
        return {rank for rank in state.stream.ranks.tolist() if start <= rank < end}

    def reaches_beyond(self, plan: Plan, state: State) -> bool:
        """Return whether the engine's own page has hits beyond those fetched, as on a page beyond max_window."""
        return not state.stream.exhausted and state.stream.fetched < plan.search.start + plan.search.size

    def applied(
        self, body: dict[str, Any], plan: Plan, state: State, page: Page, own_page: Sequence[Hit] | None = None
    ) -> dict[str, Any]:
        """Return the answer for the unit's arm. body: the answer with the collapsed page.

        own_page: the hits of the engine's own page, None if the state holds all of them.

        Its block `ndd` describes the collapsed page in both arms. `experiment` holds the other arm's page as
        `instead`, and as `hidden` the hits of the engine's own page that collapsing hides.
        """
        own = {rank: state.documents[rank] for rank in sorted(self.own_ranks(plan, state)) if rank in state.documents}
        examined = [without_fields(hit, plan.added_fields) for hit in own.values()]
        hits = examined if own_page is None else list(own_page)
        shown, engines = _names(body["hits"]["hits"]), _names(hits)
        listed = {copy.rank for group in page.groups for copy in group.duplicates}
        on_page = {group.rank for group in page.groups}
        hidden = [
            name
            for rank, name in zip(own, _names(examined), strict=True)
            if rank in listed or (rank not in on_page and _is_led(state, rank))
        ]
        arm = self.arm
        facts = {
            "name": self.name,
            "arm": arm,
            "changed": shown != engines,
            "instead": engines if arm == "treatment" else shown,
            "hidden": hidden if plan.options.mode in ("group", "drop") else [],
        }
        block = {**body["ndd"], "experiment": facts}
        if arm == "treatment":
            return {**body, "ndd": block}
        engine = state.envelope or {}
        counted = {name: engine[name] for name in ("aggregations",) if name in body}
        total = {name: engine["hits"][name] for name in ("total",) if name in body["hits"]}
        return {**body, **counted, "hits": {**body["hits"], **total, "hits": hits}, "ndd": block}


def _names(hits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: hit[name] for name in ("_index", "_id") if name in hit} for hit in hits]


def _is_led(state: State, rank: int) -> bool:
    """Return whether a hit has no place of its own: it is led by another one, or was seen before."""
    index = state.stream.index_of(rank)
    return bool(state.stream.leader[index] != index) or any(one[0] == index for one in state.stream.seen)
