"""What was learnt from a collection, and whether it can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ndd_search.items.compare import Rareness
from ndd_search.items.model import Odds

UNSURE = 0.055  # share of wrong verdicts that is worth a warning
_FEWEST = 100  # pairs of one thing from which evidence is learnt reliably


@dataclass(frozen=True)
class Learnt:
    """What was learnt from a collection.

    odds:    of the grades of each field, in the order of the schema's fields.
    common:  how many records hold the most common values, by field.
    records: how many records it was learnt from. pairs: how many candidate pairs; of a large collection, those of a
             sample of its records.
    same:    how many of these pairs are expected to be one thing.
    unsure:  expected wrong verdicts about these pairs, as a share of the pairs that count as one thing.
    """

    odds: Odds
    common: Mapping[str, Rareness]
    records: int
    pairs: int
    same: int = 0
    unsure: float = 0.0

    @property
    def doubts(self) -> tuple[str, ...]:
        """Sentences about why the verdicts may be poor; none if nothing points to that (figures in docs/items.md)."""
        few = f"only about {self.same} of {self.pairs:,} compared pairs are one thing, fewer than {_FEWEST}"
        return (
            *[f"{few}: learn from more records of the same collection, or answer questions"] * (self.same < _FEWEST),
            *[unsure_because(self.unsure)] * (self.unsure > UNSURE),
        )


def unsure_because(share: float) -> str:
    """Return a sentence about many expected wrong verdicts. share: of the pairs that count as one thing."""
    return (
        f"the wrong verdicts that are to be expected are {share:.1%} of the pairs that count as one thing: the fields "
        "say too little, or the schema was learnt from too few or from other records; add fields, or answer questions"
    )
