"""What was learnt from a collection, and whether it can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ndd_search.items.compare import Rareness
from ndd_search.items.model import Odds

UNSURE = 0.055  # share of wrong verdicts above which a schema is doubtful
_FEWEST = 100  # pairs of one thing from which evidence is learnt reliably


@dataclass(frozen=True)
class Learnt:
    """What was learnt from a collection.

    odds:    of the grades of each field, in the order of the schema's fields.
    common:  how many records hold the most common values, by field.
    records: how many records it was learnt from. pairs: how many candidate pairs.
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
        """Sentences about why the evidence may be poor; none if nothing points to that.

        Of ten schemas learnt from samples of 300 to 10,000 records, those with a doubt had an F1 of 0.69 to 0.98 in the
        whole collections, the others 0.98 to 1.00 (docs/items.md).
        """
        few = f"only about {self.same} of {self.pairs:,} compared pairs are one thing, fewer than {_FEWEST}"
        many = f"about {self.unsure:.1%} of the pairs that count as one thing are expected to be wrong"
        remedy = "learn from more records of the same collection, or answer questions about them"
        found = [few] * (self.same < _FEWEST) + [many] * (self.unsure > UNSURE)
        return tuple(f"what was learnt is doubtful: {one}: {remedy}" for one in found)
