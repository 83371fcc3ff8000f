"""The similarity of two records, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ndd_search.items.probability_model import probabilities
from ndd_search.items.record_columns import read_table
from ndd_search.items.schema import Schema


@dataclass(frozen=True)
class FieldSimilarity:
    """One field of two records.

    values:     of both records as they are compared, None for a missing one.
    similarity: 0..1, None if either value is missing.
    evidence:   how much the log odds would be lower without this field; 0.0 if it is missing.
    """

    name: str
    values: tuple[Any, Any]
    similarity: float | None
    evidence: float

    def __str__(self) -> str:
        if self.similarity is None:
            which = "both records" if self.values == (None, None) else "one record"
            return f"{self.name}: missing in {which}, which says nothing"
        side = "for" if self.evidence > 0.05 else "against" if self.evidence < -0.05 else "neither for nor against"
        size = f", evidence {self.evidence:+.1f}" if side in ("for", "against") else ""
        return f"{self.name}: {self.similarity:.2f} alike{size}, speaks {side} one thing"


@dataclass(frozen=True)
class Similarity:
    """How similar two records are.

    probability: that they are one thing, 0..1.
    similarity:  the mean of the fields that both have, by weight; 1.0 if all are equal, 0.0 if there are none.
    log_odds:    of the probability; -inf if a veto holds or no combination of `needs` meets.
    fields:      each field of the schema.
    prevented:   why two records are kept apart whatever else agrees, "" if nothing does.
    bar:         min_probability of the schema.
    """

    probability: float
    similarity: float
    log_odds: float
    fields: tuple[FieldSimilarity, ...]
    prevented: str
    bar: float

    @property
    def is_match(self) -> bool:
        """Whether the two records count as one thing."""
        return self.probability >= self.bar

    def explain(self) -> str:
        """Return a line for each field, the strongest evidence first, and the total."""
        ordered = sorted(self.fields, key=lambda field: (field.similarity is None, -abs(field.evidence)))
        verdict = "one thing" if self.is_match else "different things"
        sign = ">=" if self.is_match else "<"
        total = f"{verdict}: probability {self.probability:.3f} {sign} {self.bar:g}, fields {self.similarity:.2f} alike"
        return "\n".join([*map(str, ordered), *filter(None, [self.prevented]), total])

    __str__ = explain


def similarity_of(schema: Schema, a: Any, b: Any) -> Similarity:
    """Compare two records: mappings, or objects with attributes."""
    fields, model = schema.fields, schema.model
    table = read_table(fields, (a, b))
    graded = schema.graded(schema.comparison(table), np.array([0]), np.array([1]))
    log_odds = float(schema.log_odds(graded)[0])
    whole = float(model.log_odds(graded.grades, vetoes=False)[0])
    found, vetoes = [], []
    for place, (name, field) in enumerate(fields.items()):
        column = table.columns[name]
        first, second = (None if code < 0 else column.values[code] for code in column.codes.tolist())
        similarity = None if np.isnan(alike := graded.similarity[0, place]) else float(alike)
        rest = whole if similarity is None else float(model.log_odds(graded.grades, without=place, vetoes=False)[0])
        found.append(FieldSimilarity(name, (first, second), similarity, whole - rest))
        if field.veto and model.is_vetoed(graded.grades[:, place], place)[0]:
            vetoes.append(name)
    known = [(one.similarity, fields[one.name].weight) for one in found if one.similarity is not None]
    prevented = f"{' and '.join(vetoes)} differs, which keeps records apart" if vetoes else ""
    if not prevented and np.isneginf(log_odds):
        needs = ", or ".join(" and ".join(each) for each in schema.needs)
        prevented = f"needed is agreement of {needs}"
    return Similarity(
        float(probabilities(np.array([log_odds]))[0]),
        sum(alike * weight for alike, weight in known) / sum(weight for _, weight in known) if known else 0.0,
        log_odds,
        tuple(found),
        prevented,
        schema.min_probability,
    )
