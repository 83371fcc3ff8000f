"""A schema of records: their fields, what was learnt about them, and how pairs of records are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.setting_checks import check_share
from ndd_search.items.compare_values import Rareness
from ndd_search.items.fields import Field
from ndd_search.items.grades import Comparison, Graded
from ndd_search.items.integer_lists import Floats
from ndd_search.items.probability_model import Learnt, Model, default_odds, log_odds_of
from ndd_search.items.record_columns import Table, read_table
from ndd_search.items.schema_file import content_of

COUNTED = 1_000  # records that are enough to know which values are common
NEAR = 1e-9
LEARNT_FROM = "learnt_from"  # an attribute that is no part of a schema: see Schema.comparison_of


@dataclass(frozen=True, init=False)
class Schema:
    """The fields of records of one kind, and how they are compared; see `Items`, which users make."""

    fields: Mapping[str, Field]
    needs: tuple[tuple[str, ...], ...]
    min_probability: float
    learnt: Learnt | None

    def __init__(
        self,
        *,
        needs: Sequence[Sequence[str]] = (),
        min_probability: float = 0.5,
        learnt: Learnt | None = None,
        **fields: Field,
    ) -> None:
        if not fields:
            raise ValueError("items have no fields: name at least one, for example Items(name=Name())")
        for name, field in fields.items():
            if not isinstance(field, Field):
                raise TypeError(f"{name} must be a field such as Name(), got {field!r}")
        if isinstance(needs, str) or any(isinstance(each, str) for each in needs):
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
        values = {"fields": fields, "needs": combinations, "min_probability": min_probability, "learnt": learnt}
        for name, value in values.items():
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
        return content_of(self.fields, self.needs, self.min_probability, self.learnt)

    def comparison(self, table: Table) -> Comparison:
        """Return what compares the records of a table.

        Common values are counted in the table itself if it has at least COUNTED records, else they are those learnt.
        """
        if table.records >= COUNTED:
            return Comparison(self.fields, table, table.rareness(self.fields))
        return Comparison(self.fields, table, self.common)

    def comparison_of(self, records: Sequence[Any]) -> Comparison:
        """Return what compares the records of a collection.

        What `learn` has read is kept until this is called or a page is compared, and is returned if the records hold
        the same values.
        """
        known: Comparison | None = self.__dict__.pop(LEARNT_FROM, None)
        table = read_table(self.fields, records, known=known.table if known else None)
        return known if known and table is known.table else self.comparison(table)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("fields", "needs", "min_probability", "learnt")}

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
    def parsed(self) -> dict[str, dict[Any, Any]]:
        """The values of earlier pages, parsed, by field and raw value."""
        return {name: {} for name in self.fields}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The fields of a record that are read."""
        return tuple(dict.fromkeys(path for name, field in self.fields.items() for path in field.paths(name)))

    @cached_property
    def model(self) -> Model:
        """The log odds of grades."""
        return Model(self.kinds, self.learnt.odds if self.learnt else default_odds(self.kinds))

    @property
    def bar(self) -> float:
        """min_probability as log odds."""
        return log_odds_of(self.min_probability)

    def log_odds(self, graded: Graded) -> Floats:
        """Return the log odds that pairs are one thing, -inf where a veto holds or no combination of `needs` meets."""
        odds = self.model.log_odds(graded.grades)
        odds[self._lacks_needs(graded)] = -np.inf
        return odds

    def evidence(self, graded: Graded) -> Floats:
        """Return log odds above the bar, as evidence for and against joining groups; -inf where a veto holds.

        Two records that lack what `needs` asks for are not one thing by themselves, but that is no evidence against it:
        a third record may join them.
        """
        above = self.model.log_odds(graded.grades) - self.bar
        lacks = self._lacks_needs(graded)
        above[lacks] = np.minimum(above[lacks], -NEAR)
        return above

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
