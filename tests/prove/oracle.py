"""What a page of a ranked list must be, by sets of sketch values and the rules of docs/how-it-works.md.

This module imports nothing of the library. Documents are dicts: "values" is the list of sketch values or None, "lack"
why it is None, and "price", "time" and "numbers" are the fields that guards and `keep` read, None if missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from typing import Any

Document = Mapping[str, Any]
Options = Mapping[str, Any]

BARS = {"identical": 1.0, "high": 0.8, "moderate": 0.5}
FEW = 4  # shingles; of fewer, only an equal sketch is a near-duplicate
LEAST, ASKED, COMMON = 0.24, 4, 0.05  # constants of "auto", see matching/decision.py
POWER, MARGIN, OWN, HANDFUL = 11, 8, 100, 3
HARDLY, ENOUGH = 0.1, 80  # two texts that differ by this share are copies; by less below so many shingles
# Values inside of texts that differ at their edges: shared at least, of one alone at most, twice those of one without a
# table, and how many times as many are shared as are twice as common as on average.
SHARED, INNER, UNTOLD, FRAME = 4, 12, 11, 4
CLOSE = 1e-4  # a value this close to its bar may be on either side: weights of values are rounded to 2**-20
DEFAULTS: dict[str, Any] = {
    "min_similarity": "auto", "mode": "group", "window": 100, "max_window": 10_000, "max_per_group": 1,
    "keep": ["score"], "guards": [], "total": "auto",
}  # fmt: skip


class Undecided(Exception):
    """A pair is so close to its bar that rounding decides, so that no page can be expected."""


@dataclass(frozen=True)
class Table:
    """Document frequencies of values in `documents` documents."""

    documents: float
    counts: Mapping[int, float]

    def idf(self, value: int) -> float:
        """Return 1 for a value that at most a handful of documents contain, 0 for one that all contain."""
        count = self.counts.get(value)
        return 1.0 if count is None else log(self.documents / count) / log(self.documents / HANDFUL)


@dataclass(frozen=True, kw_only=True)
class Page:
    """What an answer must hold. Documents are named by their ids.

    shown:      the hits. listed: of each hit, what is under it, with the similarity rounded to four digits.
    leader_of:  of hits that are shown as duplicates.
    late:       hits of earlier groups that only this page has found, with their leaders.
    everything: whether the engine has no hits beyond the examined ones, None if that depends on earlier requests.
    sketched:   whether any hit of the first window has a sketch, readable or not.
    """

    shown: list[str] = field(default_factory=list)
    listed: dict[str, dict[str, float]] = field(default_factory=dict)
    leader_of: dict[str, str] = field(default_factory=dict)
    late: list[tuple[str, str]] = field(default_factory=list)
    examined: int
    kept: int
    everything: bool | None
    sketched: bool


class Oracle:
    """Answers for one ranked list. k, size: of the recipe. table: for "auto"."""

    def __init__(self, ranked: Sequence[Document], options: Options, k: int, size: int, table: Table | None) -> None:
        self.ranked, self.options, self.k, self.size, self.table = ranked, {**DEFAULTS, **options}, k, size, table
        self._values = [frozenset(one["values"] or ()) for one in ranked]
        if self.options["min_similarity"] != "auto":
            self._values = [self._unmarked(values) for values in self._values]
        self._shingles = [self._estimated(values) for values in self._values]

    @cached_property
    def leaders(self) -> list[tuple[int, float]]:
        """The place of the leader of each hit, and the similarity to it."""
        found: list[tuple[int, float]] = []
        for place in range(len(self.ranked)):
            before = (other for other in range(place) if found[other][0] == other)
            pairs = ((other, self._similarity(other, place)) for other in before)
            found.append(next(((other, alike) for other, alike in pairs if alike), (place, 1.0)))
        return found

    def _similarity(self, one: int, other: int) -> float:
        """Return the resemblance of two near-duplicates, 0 for any other pair."""
        a, b = self._values[one], self._values[other]
        if a.isdisjoint(b):
            return 0.0
        limit = min([max(values) for values in (a, b) if len(values) == self.k], default=2**31)
        a_up, b_up = {value for value in a if value <= limit}, {value for value in b if value <= limit}
        alike = len(a_up & b_up) / len(a_up | b_up)
        if alike < 1 and min(len(a), len(b)) < min(FEW, self.k):
            return 0.0
        return alike if self._reaches(alike, one, other, a_up, b_up) and self._fits(one, other) else 0.0

    def _reaches(self, alike: float, one: int, other: int, a: set[int], b: set[int]) -> bool:
        """Whether a resemblance is enough. a, b: the values that are compared."""
        setting = self.options["min_similarity"]
        if setting != "auto":
            return bool(alike >= BARS.get(setting, setting) - 1e-9)
        shorter, longer = sorted(max(1.0, self._shingles[place]) for place in (one, other))
        if 1 - alike <= HARDLY * min(shorter, ENOUGH) / ENOUGH + 1e-9 or self._differ_at_edges(one, other):
            return True
        idf = self.table.idf if self.table else lambda value: 1.0
        only_a, only_b = (sum(map(idf, values)) for values in (a - b, b - a))
        value = alike
        if self.table and only_a + only_b > 0 and alike:
            rarity = min(1.0, sum(map(idf, a & b)) / len(a & b) / ((only_a + only_b) / len(a ^ b)))
            apart = min(1.0, 1 - alike + MARGIN * self.size / shorter)
            value *= rarity ** (POWER * apart * 2 * min(only_a, only_b) / (only_a + only_b))
        shared_idf = sum(map(idf, a & b))
        if abs(max(only_a, only_b) - shared_idf) < CLOSE:
            raise Undecided
        if max(only_a, only_b) > shared_idf:
            return False
        own = (min(only_a, only_b) * longer / max(len(a), len(b)) / OWN) ** 6
        common = 1 - sum(map(idf, a & b)) / len(a & b) if alike else 0.0
        family = min(1.0, common / COMMON + 0.5)
        bar = min(1.0, LEAST + ASKED * self.size * family / shorter)
        own_bar = bar + max(0.0, 1 - LEAST - bar) * own / (1 + own)
        if min(abs(value - bar), abs(alike - own_bar)) < CLOSE:
            raise Undecided
        return value > bar and alike > own_bar

    def _unmarked(self, values: frozenset[int]) -> frozenset[int]:
        """The values of a short text as even ones: a fixed bar does not ask what touches an edge."""
        even = frozenset(value & -2 for value in values)
        return even if len(values) < self.k and len(even) == len(values) else values

    def _differ_at_edges(self, one: int, other: int) -> bool:
        """Whether two short texts differ at their edges (odd values), and inside no more than edited copies do."""
        both = self._values[one], self._values[other]
        inside = [{value >> 1 for value in values} for values in both]
        whole = all(len(values) < self.k and len(values) == len(of) for values, of in zip(both, inside, strict=True))
        marked = [any(value & 1 for value in values) for values in both]
        longer = max(sum(not value & 1 for value in values) for values in both)
        shared_inside = sum(not value & 1 for value in both[0] & both[1])
        if not whole or not any(marked) or shared_inside < (LEAST - 1e-9) * longer:
            return False
        if inside[0] == inside[1]:
            return True
        if shared_inside < SHARED:
            return False
        shared = inside[0] & inside[1]
        own = [{value for value in values if value >> 1 not in shared} for values in both]
        inner = [{value for value in values if not value & 1} for values in own]
        apart = inner[0] | inner[1]
        twice = 2 * min(map(len, inner))
        if twice > min(2 * shared_inside, INNER if self.table else UNTOLD) or own == inner:
            return False
        if not self.table:
            return True
        common = [{value >> 1: 1 - self.table.idf(value) for value in values} for values in both]
        usual = sum(min(of[value] for of in common) for value in shared) / len(shared)
        most = max((1 - self.table.idf(value) for value in apart), default=0)
        double = log(2) / log(self.table.documents / HANDFUL)
        both_inside = [value >> 1 for value in both[0] & both[1] if not value & 1]
        held = [min(of[value] for of in common) for value in both_inside]
        bars = usual + double, double + 1e-6 + CLOSE  # many values are in twice a handful of documents: above these
        near = min((abs(weight - bar) for weight in held for bar in bars), default=1.0)
        if min(abs(most + double - usual), abs(usual - double), near) < CLOSE:
            raise Undecided
        frame, scarce = sum(of > bars[0] for of in held), sum(of < bars[1] for of in held)
        alike = most > 0 and most + double >= usual and FRAME * frame < shared_inside
        rare = usual < double or (scarce >= twice and 3 * scarce >= 2 * shared_inside)
        return rare or (len(apart) <= INNER and (not all(inner) or alike))

    def _estimated(self, values: frozenset[int]) -> float:
        """Estimate how many shingles a document has."""
        return len(values) if len(values) < self.k else max(self.k - 1, 1) * 2**31 / (max(values) + 1)

    def _fits(self, one: int, other: int) -> bool:
        """Whether no guard keeps two hits apart."""
        return all(self._fit(guard, one, other) for guard in self.options["guards"])

    def _fit(self, guard: str, one: int, other: int) -> bool:
        first, second, (kind, _, rest) = self.ranked[one], self.ranked[other], guard.partition(":")
        if kind == "same":
            return bool(first[rest] == second[rest])
        if kind == "numbers":
            return bool(first["numbers"] == second["numbers"] is not None)
        if kind == "within":
            times = first["time"], second["time"]
            return bool(None not in times and abs(times[0] - times[1]) <= 150)
        sizes = sorted((self._shingles[one], self._shingles[other]))
        return bool(sizes[0] / sizes[1] >= float(rest))

    def _groups(self, window: int) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for place, (leader, _) in enumerate(self.leaders[:window]):
            groups.setdefault(leader, []).append(place)
        return groups

    def _slots(self, window: int) -> list[int]:
        if self.options["mode"] == "annotate":
            return list(range(min(window, len(self.ranked))))
        most = self.options["max_per_group"]
        return sorted(place for members in self._groups(window).values() for place in members[:most])

    def _window_with(self, places: int) -> int:
        """Return the first of window, 2 * window, ... that holds so many hits, at most max_window."""
        most = self.options["max_window"]
        window = most if self.options["total"] == "groups" else self.options["window"]
        while window < min(places, most):
            window *= 2
        return int(min(window, most))

    def window(self, wanted: int) -> int:
        """Return the window that a page ending at `wanted` examines."""
        wanted += self.options["total"] in ("auto", "estimate")
        window, most = self._window_with(wanted), self.options["max_window"]
        while window < most and window <= len(self.ranked) and len(self._slots(window)) < wanted:
            window = self._window_with(window + 1)
        return window

    def page(self, start: int, size: int) -> Page:
        """Return the page [start, start + size)."""
        window, mode, ids = self.window(start + size), self.options["mode"], [one["id"] for one in self.ranked]
        groups, slots, examined = self._groups(window), self._slots(window), min(window, len(ids))
        places = list(slots)
        if mode == "demote" and (window >= min(len(ids), self.options["max_window"])):
            places += [place for place in range(examined) if place not in set(slots)]
        page = Page(
            examined=examined,
            kept=examined if mode in ("annotate", "demote") else len(slots),
            everything=None if window == len(ids) else window > len(ids),
            sketched=any(one["lack"] != "missing" for one in self.ranked[: self._window_with(start + size)]),
        )
        for place in places[start : start + size]:
            leader = self.leaders[place][0]
            members = groups[leader]
            order = self._copies(members) if mode != "annotate" else members
            shown = order[members.index(place)]
            page.shown.append(ids[shown])
            if mode == "annotate" or place != leader:
                if shown != leader:
                    page.leader_of[ids[shown]] = ids[leader]
            elif mode == "group" and (hidden := sorted(order[self._most :])):
                alike = [self.leaders[shown if at == leader else at][1] for at in hidden]
                page.listed[ids[shown]] = {ids[at]: round(one, 4) for at, one in zip(hidden, alike, strict=True)}
        if start and page.kept < examined:
            page.late.extend(self._late(self.window(start), examined, slots[:start], groups))
        return page

    def _late(
        self, before: int, examined: int, slots: list[int], groups: dict[int, list[int]]
    ) -> list[tuple[str, str]]:
        """Return the hidden hits after the first `before` whose group has one of some places."""
        shown = {self.leaders[place][0] for place in slots}
        late = [(place, self.leaders[place][0]) for place in range(before, examined) if self.leaders[place][0] in shown]
        hidden = [(at, leader) for at, leader in late if at not in self._copies(groups[leader])[: self._most]]
        return [(self.ranked[at]["id"], self.ranked[leader]["id"]) for at, leader in hidden]

    @property
    def _most(self) -> int:
        return int(self.options["max_per_group"])

    def _copies(self, members: list[int]) -> list[int]:
        """Return a group in the order in which its copies are shown: first those that `keep` chooses."""
        chosen: list[int] = []
        for place in members[: self._most]:
            known = [one for one in members if one < self._window_with(place + 1) and one not in chosen]
            chosen.append(min(known, key=self._preference))
        return [*chosen, *(one for one in members if one not in chosen)]

    def _preference(self, place: int) -> tuple[Any, ...]:
        hit, keys = self.ranked[place], []
        for wanted in self.options["keep"]:
            name, _, field = wanted.partition(":")
            if name == "newest":
                keys.append(float("inf") if hit["time"] is None else -hit["time"])
            elif name in ("highest", "lowest"):
                sign = -1 if name == "highest" else 1
                keys.append(float("inf") if hit[field] is None else sign * hit[field])
            elif name == "preferred":  # "preferred:price=2"
                keys.append(0 if str(hit["price"]) == field.partition("=")[2] else 1)
            elif name == "longest":
                keys.append(-self._shingles[place])
        return (*keys, place)
