"""The content of the file of a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields as settings_of
from typing import Any

from ndd_search.items.compare_values import Rareness
from ndd_search.items.fields import KINDS, Field
from ndd_search.items.probability_model import Learnt, Odds, default_odds

VERSION = 1
_COUNTS = ("records", "pairs", "same", "unsure")


def content_of(
    fields: Mapping[str, Field], needs: Sequence[Sequence[str]], min_probability: float, learnt: Learnt | None
) -> dict[str, Any]:
    """Return the parts of a schema as names and plain values."""
    value: dict[str, Any] = {"version": VERSION, "min_probability": min_probability}
    if needs:
        value["needs"] = [list(each) for each in needs]
    value["fields"] = {name: _field_as_dict(field) for name, field in fields.items()}
    if learnt:
        value["learnt"] = _learnt_as_dict(learnt, list(fields))
    return value


def parts_of(content: Mapping[str, Any]) -> tuple[dict[str, Field], dict[str, Any]]:
    """Return the fields and the settings of a schema. Raises TypeError, ValueError, KeyError, or AttributeError."""
    known = ("version", "min_probability", "needs", "fields", "learnt")
    if unknown := [name for name in content if name not in known]:
        raise ValueError(f"it has an unknown key {unknown[0]!r}; the keys are {', '.join(known)}")
    fields: dict[str, Field] = {}
    for name, settings in content["fields"].items():
        given = dict(settings)
        kind = given.pop("kind", None)
        if kind not in KINDS:
            raise ValueError(f"the kind of {name} is {kind!r}; the kinds are {', '.join(KINDS)}")
        fields[name] = KINDS[kind](**given)
    found = {name: content[name] for name in ("needs", "min_probability") if name in content}
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
    return Learnt(Odds(float(content["prior"]), shares, m, u), common, **counts, notes=tuple(content["notes"]))
