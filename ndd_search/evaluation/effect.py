"""The measured effect of collapsing, from logs of searches and clicks: one JSON object a line.

    {"pages": [...], ...}                     a line of plugins.SearchLog, or of the proxy's access log
    {"search": "s1", "ndd": {...}}            the program's own: the block `ndd` of an answer
    {"search": "s1", "click": "42"}           the program's own: a click on the document "42" of that page

A click is on a hidden hit if the engine's own page had the hit and collapsing hides it: readers of the arm "control"
see such hits, readers of "treatment" find them in the list of copies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any

_WITHOUT = "all"  # the name of the arm of pages without an experiment
_Z = 1.96  # of an interval that holds with probability 0.95


@dataclass
class ArmEffect:
    """Counts of one arm.

    pages: collapsed ones, and those of "control" that would have been. changed: pages that differ between the arms, or
    from the engine's own. hidden: hits that are listed under another one, of all examined. logged: pages whose clicks
    can be counted. clicked: those with a click. clicks_on_hidden: of all clicks.
    """

    pages: int = 0
    changed: int = 0
    examined: int = 0
    hidden: int = 0
    degraded: int = 0
    logged: int = 0
    clicked: int = 0
    clicks: int = 0
    clicks_on_hidden: int = 0


@dataclass
class Effect:
    """The effect by arm: "treatment" and "control", or "all" without an experiment.

    left_alone: pages that were not collapsed. unknown_clicks: on a search that no line holds. other: lines of another
    kind. unreadable: lines that are no JSON object.
    """

    arms: dict[str, ArmEffect] = field(default_factory=dict)
    left_alone: int = 0
    unknown_clicks: int = 0
    other: int = 0
    unreadable: int = 0

    @property
    def difference(self) -> tuple[float, float] | None:
        """How much larger the share of clicked pages is in "treatment", and the half width of its 95 % interval.

        None without pages of both arms whose clicks are counted.
        """
        arms = [self.arms.get(name, ArmEffect()) for name in ("treatment", "control")]
        if not all(arm.logged for arm in arms):
            return None
        one, other = (arm.clicked / arm.logged for arm in arms)
        variance = sum(share * (1 - share) / arm.logged for share, arm in zip((one, other), arms, strict=True))
        return one - other, _Z * sqrt(variance)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        found = self.difference
        return {**asdict(self), "difference": found and {"value": found[0], "half_width": found[1]}}


def measure_effect(lines: Iterable[str]) -> Effect:
    """Count the lines of logs. A click may stand before the line of its search."""
    effect = Effect()
    searches: dict[str, tuple[ArmEffect, set[str]]] = {}
    clicks: dict[tuple[str, str], int] = {}
    for entry in _entries(lines, effect):
        match entry:
            case {"click": str(document), "search": str(of)}:
                clicks[of, document] = clicks.get((of, document), 0) + 1
            case {"ndd": block, **others} if isinstance(block, dict):
                arm = _count(effect, block, _arm(block))
                search = others.get("search")
                if arm is not None and isinstance(search, str) and search not in searches:
                    arm.logged += 1
                    searches[search] = arm, _hidden(block)
            case {"pages": [*pages]}:
                for page in pages:
                    if isinstance(page, dict):
                        _count(effect, page, str(page.get("arm") or _WITHOUT))
            case _:
                effect.other += 1
    _count_clicks(effect, searches, clicks)
    return effect


def _entries(lines: Iterable[str], effect: Effect) -> Iterator[dict[str, Any]]:
    for line in lines:
        if not line.strip():
            continue
        entry: Any = None
        with suppress(ValueError, RecursionError):
            entry = json.loads(line)
        if isinstance(entry, dict):
            yield entry
        else:
            effect.unreadable += 1


def _count(effect: Effect, page: Mapping[str, Any], name: str) -> ArmEffect | None:
    """Count a page. Returns its arm, None for a page that was not collapsed."""
    if not page.get("collapsed", "examined" in page):
        effect.left_alone += 1
        return None
    arm = effect.arms.setdefault(name, ArmEffect())
    arm.pages += 1
    experiment = page.get("experiment")
    arm.changed += bool((experiment if isinstance(experiment, dict) else page).get("changed"))
    arm.examined += _number(page, "examined")
    arm.hidden += _number(page, "hidden")
    arm.degraded += bool(page.get("degraded"))
    return arm


def _number(page: Mapping[str, Any], name: str) -> int:
    value = page.get(name)
    return value if isinstance(value, int) else 0


def _arm(block: Mapping[str, Any]) -> str:
    experiment = block.get("experiment")
    return str(experiment.get("arm")) if isinstance(experiment, dict) else _WITHOUT


def _hidden(block: Mapping[str, Any]) -> set[str]:
    """Return the ids of the hits of the engine's page that collapsing hides."""
    experiment = block.get("experiment")
    listed = experiment.get("hidden") if isinstance(experiment, dict) else None
    return {str(one.get("_id")) for one in listed or () if isinstance(one, dict)}


def _count_clicks(
    effect: Effect, searches: Mapping[str, tuple[ArmEffect, set[str]]], clicks: Mapping[tuple[str, str], int]
) -> None:
    clicked = set()
    for (search, document), count in clicks.items():
        if search not in searches:
            effect.unknown_clicks += count
            continue
        arm, hidden = searches[search]
        arm.clicks += count
        arm.clicks_on_hidden += count if document in hidden else 0
        arm.clicked += search not in clicked
        clicked.add(search)
