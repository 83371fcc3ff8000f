"""What an engine answered to a search: whether it is one, whether it is whole, and its parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any

from ndd_search.documents import value_of
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.recipe import Recipe
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import Sketch

Hit = dict[str, Any]

_NOTHING: dict[str, Any] = {}
_WINDOW_LIMIT = re.compile(r"from \+ size must be less than or equal to: \[(\d+)\]")


@dataclass(frozen=True)
class Answer:
    """What came back. body: parsed JSON. raw: the client's own object, None for what we made."""

    body: Any
    status: int = 200
    raw: Any = None

    @property
    def ok(self) -> bool:
        """Whether the engine did what it was asked."""
        return 200 <= self.status < 300

    @cached_property
    def has_hits(self) -> bool:
        """Whether this is the answer to a search, in the shape that engines give it: a proxy may have changed it."""
        return self.ok and isinstance(self.body, dict) and _is_answer_to_search(self.body)

    @property
    def hits(self) -> list[Hit]:
        """The hits of a search."""
        found: list[Hit] = self.body["hits"]["hits"]
        return found

    @property
    def partial(self) -> bool:
        """Whether a search timed out, or failed on some shards."""
        return bool(self.body.get("timed_out") or (self.body.get("_shards") or {}).get("failed"))

    @property
    def refusals(self) -> list[str]:
        """What shards say is wrong with the search; those of others may have taken it."""
        failures = (self.body.get("_shards") or {}).get("failures") or []
        reasons = [one.get("reason") or {} for one in failures]
        return [str(one.get("reason")) for one in reasons if one.get("type") == "illegal_argument_exception"]

    @property
    def complaint(self) -> str:
        """What is said to be wrong with the whole search, or by some shards; "" for nothing."""
        return " ".join(self.refusals) if self.has_hits else str(self.body)

    @property
    def clusters(self) -> dict[str, int]:
        """Of a search over several clusters, how many answered, were skipped, ..."""
        counts = self.body.get("_clusters") or {}
        return {name: count for name, count in counts.items() if isinstance(count, int)}

    @property
    def cut_short(self) -> bool:
        """Whether a search looked at no more documents than its user allowed (`terminate_after`)."""
        return bool(self.body.get("terminated_early"))

    @property
    def whole(self) -> bool:
        """Whether this is the answer to a search, and not partial."""
        return self.has_hits and not self.partial

    @property
    def total(self) -> int | None:
        """How many documents a search says match, None where they were not counted."""
        total = self.body["hits"].get("total")
        value = total.get("value") if isinstance(total, dict) else total
        return value if isinstance(value, int) and value >= 0 else None  # -1 with rest_total_hits_as_int

    @property
    def took(self) -> int | None:
        """Milliseconds by the engine's own clock."""
        took = self.body.get("took")
        return took if isinstance(took, int) else None

    def apart(self, count: int) -> list[Answer]:
        """The answers to the searches of an `_msearch`, as many as were sent; this one for each if it is none."""
        found = self.body.get("responses") if self.ok and isinstance(self.body, dict) else None
        if not isinstance(found, list) or len(found) != count or not all(isinstance(one, dict) for one in found):
            return [Answer(self.body, HTTPStatus.BAD_GATEWAY if self.ok else self.status, self.raw)] * count
        bodies = [{name: value for name, value in one.items() if name != "status"} for one in found]
        return [Answer(body, status_in(one), self.raw) for body, one in zip(bodies, found, strict=True)]


@dataclass(frozen=True, eq=False)
class HitReader:
    """Hits of an engine. found: the sketches of the hits from place `start` of the engine's list on."""

    recipe: Recipe
    field: SketchField
    frequency_table: FrequencyTable | None
    found: Sequence[Sketch | str] = ()
    start: int = 0

    def sketches(self, hits: Sequence[Hit], ranks: Sequence[int]) -> list[Sketch | str]:
        return [self.found[rank - self.start] for rank in ranks]

    def identity(self, hit: Hit, rank: int) -> tuple[Any, ...]:
        return hit.get("_index"), hit.get("_id", rank), hit.get("_routing")

    def value(self, hit: Hit, field: str) -> Any:
        return value_in(hit, field)

    def numbers(self, hit: Hit) -> int | None:
        return self.field.numbers_in(hit.get("fields") or {})


def status_in(response: dict[str, Any]) -> int:
    """The status of one search of an `_msearch`; 502 where it is no number."""
    status = response.get("status", HTTPStatus.OK.value)
    return status if isinstance(status, int) else HTTPStatus.BAD_GATEWAY


def value_in(hit: Hit, field: str) -> Any:
    """What a hit has in a field: among its `fields`, where a list of one is that one, or else in its `_source`."""
    found = (hit.get("fields") or {}).get(field)
    if found is None:
        return value_of(hit.get("_source") or {}, field)
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def envelope_of(body: dict[str, Any]) -> dict[str, Any]:
    """An answer without its hits."""
    return {**body, "hits": {name: value for name, value in body["hits"].items() if name != "hits"}}


def after(envelope: dict[str, Any], answers: Sequence[Answer]) -> dict[str, Any]:
    """The first answer's envelope after another round, whose requests ran side by side.

    Time adds up, and what timed out once has timed out.
    """
    took = [one.took for one in answers if one.took is not None]
    joined = {**envelope, **({"took": envelope["took"] + max(took)} if took and "took" in envelope else {})}
    if any(one.body.get("timed_out") for one in answers):
        joined["timed_out"] = True
    return joined


def reason_of(refused: Any) -> str:
    """What the engine says is wrong: the first cause in the body of its answer, or a client's error as text."""
    try:
        return str(refused["error"]["root_cause"][0]["reason"])
    except (TypeError, KeyError, IndexError):
        return str(refused)[:300]


def window_limit(complaint: str) -> int | None:
    """The smallest `max_result_window` of the indexes that refused a search; None if that is not the reason."""
    return min(map(int, _WINDOW_LIMIT.findall(complaint)), default=None)


def without_fields(hit: Hit, names: Sequence[str]) -> Hit:
    """A new dict: the hit without some of its fields."""
    made = dict(hit)
    if fields := hit.get("fields"):
        made["fields"] = dict(fields)
        drop_fields(made, names)
    return made


def drop_fields(hit: Hit, names: Sequence[str]) -> None:
    """Take some fields out of a hit, and `fields` itself where nothing else is left of it."""
    if fields := hit.get("fields"):
        for name in names:
            fields.pop(name, None)
        if not fields:
            del hit["fields"]


def _is_answer_to_search(body: dict[str, Any]) -> bool:
    hits, shards, clusters = (body.get(name) for name in ("hits", "_shards", "_clusters"))
    if not isinstance(hits, dict) or not _are_dicts_or_none((shards, clusters)):
        return False
    total, failures = hits.get("total"), (shards or {}).get("failures") or []
    value = total.get("value") if isinstance(total, dict) else total
    if not isinstance(value, int) and total is not None:
        return False
    if not isinstance(failures, list) or not all(isinstance(one, dict) for one in failures):
        return False
    listed = hits.get("hits")
    return (
        _are_dicts_or_none(one.get("reason") for one in failures)
        and isinstance(listed, list)
        and all(map(_is_hit, listed))
    )


def _is_hit(hit: Any) -> bool:
    return (
        isinstance(hit, dict)
        and isinstance(hit.get("_index"), str)
        and isinstance(hit.get("_id", ""), str)
        and isinstance(hit.get("fields", _NOTHING), dict)
        and isinstance(hit.get("_source", _NOTHING), dict)
    )


def _are_dicts_or_none(values: Iterable[Any]) -> bool:
    return all(one is None or isinstance(one, dict) for one in values)
