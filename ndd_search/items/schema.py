"""A schema of records: their fields, what was learnt about them, and how pairs of records are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as settings_of
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.core.setting_values import check_known, check_share
from ndd_search.items.compare_values import Rareness
from ndd_search.items.fields import KINDS, Field
from ndd_search.items.grades import Comparison, Graded
from ndd_search.items.integer_lists import Floats, Places
from ndd_search.items.lists_without_duplicates import evidence_of
from ndd_search.items.probability_model import Learnt, Model, Odds, default_odds, log_odds_of
from ndd_search.items.record_columns import Table

_COUNTS = ("records", "pairs", "same", "unsure")  # whole numbers and shares that were learnt
_ATTRIBUTES = ("fields", "needs", "min_probability", "learnt", "answers")
COUNTED = 1_000  # records that are enough to know which values are common
NEAR = 1e-9


class Answer(NamedTuple):
    """What a person said about two records.

    pair: a number of the two, by their values. same: whether they are one thing. odds: log odds that they are, by the
    schema. expected: see expected_share.
    """

    pair: int
    same: bool
    odds: float
    expected: float


@dataclass(frozen=True, init=False)
class Schema:
    """The fields of records of one kind, and how they are compared; see `Items`, which users make."""

    fields: Mapping[str, Field]
    needs: tuple[tuple[str, ...], ...]
    min_probability: float
    learnt: Learnt | None
    answers: tuple[Answer, ...]

    def __init__(
        self,
        *,
        needs: Sequence[Sequence[str]] = (),
        min_probability: float = 0.5,
        learnt: Learnt | None = None,
        answers: tuple[Answer, ...] = (),
        **fields: Field,
    ) -> None:
        if not fields:
            raise ValueError("items have no fields: name at least one, for example Items(name=Name())")
        for name, field in fields.items():
            if not isinstance(field, Field):
                raise TypeError(f"{name} must be a field such as Name(), got {field!r}")
        if isinstance(needs, str | Field) or any(isinstance(each, str) for each in needs):
            raise TypeError(f'needs must list combinations of fields, such as [("name", "summary")], got {needs!r}')
        combinations = tuple(tuple(each) for each in needs)
        for name in (one for each in combinations for one in each):
            if name not in fields:
                raise ValueError(f"needs names {name!r}; the fields are {', '.join(fields)}")
        if any(not each for each in combinations):
            raise ValueError("needs holds an empty combination: name the fields that have to meet")
        check_share("min_probability", min_probability)
        if not 0 < min_probability < 1:
            raise ValueError(f"min_probability must be above 0 and below 1, got {min_probability}")
        given = (fields, combinations, min_probability, learnt, answers)
        for name, value in zip(_ATTRIBUTES, given, strict=True):
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={type(field).__name__}()" for name, field in self.fields.items())
        about = f"learnt from {self.learnt.records:,} records" if self.learnt else "nothing learnt"
        return f"{type(self).__name__}({named}; {about}; {self.id})"

    @cached_property
    def id(self) -> str:
        """A short name that is equal for equal schemas only."""
        content = json.dumps(self.as_dict(), sort_keys=True).encode()
        return f"items-{blake2b(content, digest_size=5).hexdigest()}"

    def as_dict(self) -> dict[str, Any]:
        """Return the schema as names and plain values, as in a file."""
        value: dict[str, Any] = {"min_probability": self.min_probability}
        if self.needs:
            value["needs"] = [list(each) for each in self.needs]
        value["fields"] = {name: _field_as_dict(field) for name, field in self.fields.items()}
        if self.answers:
            value["answers"] = {name: [getattr(one, name) for one in self.answers] for name in Answer._fields[1:]}
            value["answers"]["pair"] = [f"{one.pair:016x}" for one in self.answers]
        if self.learnt:
            value["learnt"] = _learnt_as_dict(self.learnt, list(self.fields))
        return value

    def comparison(self, table: Table) -> Comparison:
        """Return what compares the records of a table.

        Common values are those learnt. If nothing was learnt, they are counted in a table of at least COUNTED records.
        """
        counted = self.learnt is None and table.records >= COUNTED
        return Comparison(self.fields, table, table.rareness(self.fields) if counted else self.common)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _ATTRIBUTES}

    @property
    def kinds(self) -> list[Field]:
        """The fields without their names."""
        return list(self.fields.values())

    @property
    def common(self) -> Mapping[str, Rareness]:
        """How many records hold the most common values, by field, as learnt."""
        return self.learnt.common if self.learnt else {}

    @cached_property
    def reasons(self) -> Mapping[str, tuple[str, str]]:
        """Of each field that was guessed its kind, "-" if it was left out, and why; empty if fields were named."""
        return {}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The fields of a record that are read."""
        return tuple(dict.fromkeys(path for name, field in self.fields.items() for path in field.paths(name)))

    @cached_property
    def model(self) -> Model:
        """The log odds of grades."""
        return Model(self.kinds, self.odds)

    @property
    def odds(self) -> Odds:
        """What is known about the grades of pairs."""
        return self.learnt.odds if self.learnt else default_odds(self.kinds)

    @property
    def bar(self) -> float:
        """min_probability as log odds."""
        return log_odds_of(self.min_probability)

    def graded(self, comparison: Comparison, first: Places, second: Places) -> Graded:
        """Compare pairs of records, given by their places."""
        return self.screened(comparison, first, second, -np.inf)[2]

    def screened(
        self, comparison: Comparison, first: Places, second: Places, bar: float
    ) -> tuple[Places, Places, Graded]:
        """Return the pairs that may reach a bar, compared; without the core, all pairs. bar: log odds, -inf for all.

        The core drops a pair as soon as no agreement of the later fields could lift it over the bar: most pairs are
        different things, and few fields suffice to tell.
        """
        model, names = self.model, list(self.fields)
        stages = [(names[place], model.tables[place], rest) for place, rest in model.stages]
        left, found = comparison.screened(stages, first, second, model.shares, model.most_against(bar))
        first, second = first[left], second[left]
        columns = [found.get(name) or comparison.graded_by(name, first, second) for name in names]
        similarity, grades = (np.stack(of, axis=1) for of in zip(*columns, strict=True))
        return first, second, Graded(similarity.astype(np.float32), grades.astype(np.int16))

    def log_odds(self, graded: Graded) -> Floats:
        """Return the log odds that pairs are one thing, -inf where a veto holds or no combination of `needs` meets."""
        odds = self.model.log_odds(graded.grades)
        odds[self._lacks_needs(graded)] = -np.inf
        return odds

    def evidence(self, comparison: Comparison, first: Places, second: Places, graded: Graded) -> Floats:
        """Return log odds above the bar, as evidence for and against joining groups; -inf where a veto holds.

        Two records that lack what `needs` asks for are not one thing by themselves, but that is no evidence against it:
        a third record may join them.
        """
        above = self.model.log_odds(graded.grades) - self.bar
        lacks = self._lacks_needs(graded)
        above[lacks] = np.minimum(above[lacks], -NEAR)
        return above + self.of_lists(comparison.table, first, second)

    def of_lists(self, table: Table, first: Places, second: Places) -> Floats:
        """Return the evidence of pairs of records that are in one list without duplicates, 0 for other pairs."""
        return evidence_of(self.learnt.lists if self.learnt else {}, table, first, second)

    def _lacks_needs(self, graded: Graded) -> npt.NDArray[np.bool_]:
        """Return the pairs in which no combination of `needs` meets."""
        if not self.needs:
            return np.zeros(len(graded), np.bool_)
        names = list(self.fields)
        with np.errstate(invalid="ignore"):
            meets = graded.similarity >= np.array([field.meets for field in self.kinds], np.float32)
        met = [meets[:, [names.index(name) for name in each]].all(axis=1) for each in self.needs]
        lacks: npt.NDArray[np.bool_] = ~np.logical_or.reduce(met)
        return lacks


def parts_of(content: Mapping[str, Any]) -> tuple[dict[str, Field], dict[str, Any]]:
    """Return the fields and the settings of a schema. Raises TypeError, ValueError, KeyError, or AttributeError."""
    if unknown := [name for name in content if name not in _ATTRIBUTES]:
        raise ValueError(f"it has an unknown key {unknown[0]!r}; the keys are {', '.join(_ATTRIBUTES)}")
    tables, fields = content["fields"], dict[str, Field]()
    if not isinstance(tables, Mapping) or not all(isinstance(one, Mapping) for one in tables.values()):
        raise ValueError('fields is no list of tables, such as [fields.name] with kind = "name"')
    for name, settings in tables.items():
        given = dict(settings)
        kind = given.pop("kind", None)
        if kind not in KINDS:
            raise ValueError(f"the kind of {name} is {kind!r}; the kinds are {', '.join(KINDS)}")
        check_known(given, [one.name for one in settings_of(KINDS[kind])])
        fields[name] = KINDS[kind](**given)
    found = {name: content[name] for name in ("needs", "min_probability") if name in content}
    if "answers" in content:
        pair, *rest = (content["answers"][name] for name in Answer._fields)
        found["answers"] = tuple(map(Answer, (int(each, 16) for each in pair), *rest))
    if "learnt" in content:
        found["learnt"] = _learnt_of(content["learnt"], fields)
    return fields, found


def _field_as_dict(field: Field) -> dict[str, Any]:
    changed = {
        one.name: list(value) if isinstance(value, tuple) else value
        for one in settings_of(field)
        if (value := getattr(field, one.name)) != one.default
    }
    return {"kind": field.kind, **changed}


def _learnt_as_dict(learnt: Learnt, names: list[str]) -> dict[str, Any]:
    odds = learnt.odds
    return {
        **{name: getattr(learnt, name) for name in _COUNTS},
        "notes": list(learnt.notes),
        "basis": learnt.basis,
        "lists": [list(fields) for fields in learnt.lists],
        "odds_in_lists": list(learnt.lists.values()),
        "prior": odds.prior,
        "shares": list(odds.shares),
        "m": {name: list(odds.m[f]) for f, name in enumerate(names)},
        "u": {name: [list(kind[f]) for kind in odds.u] for f, name in enumerate(names)},
        "common": {name: {"rest": each.rest, "shares": dict(each.shares)} for name, each in learnt.common.items()},
    }


def _learnt_of(content: Mapping[str, Any], fields: Mapping[str, Field]) -> Learnt:
    shares = tuple(map(float, content["shares"]))
    m = tuple(tuple(map(float, content["m"][name])) for name in fields)
    u = tuple(tuple(tuple(map(float, content["u"][name][kind])) for name in fields) for kind in range(len(shares)))
    expected = [len(one) for one in default_odds(list(fields.values())).m]
    if any([len(one) for one in each] != expected for each in (m, *u)):
        raise ValueError("what was learnt does not fit its fields: learn it again")
    if not all(0 < value < 1 for each in (m, *u) for one in each for value in one) or not 0 < content["prior"] < 1:
        raise ValueError("what was learnt holds shares outside 0..1: learn it again")
    common = {name: Rareness(each["shares"], each["rest"]) for name, each in content["common"].items()}
    counts = {name: content[name] for name in _COUNTS}
    notes, odds_in_lists = tuple(content["notes"]), map(float, content["odds_in_lists"])
    lists = dict(zip(map(tuple, content["lists"]), odds_in_lists, strict=True))
    return Learnt(
        Odds(float(content["prior"]), shares, m, u), common, **counts, notes=notes, lists=lists, basis=content["basis"]
    )
