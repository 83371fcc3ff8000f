"""Passages as they were given, and what is read from them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ndd_search.core.matching.contained_texts import Extract
from ndd_search.core.matching.similarity_measures import similarities
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.paging.hit_reader import stored_sketches
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketch, sketch_many
from ndd_search.core.text.numbers import number_signature
from ndd_search.integrations.passage_options import Fields, read

_NO_SKETCH = np.empty(0, np.int32)


@dataclass(frozen=True)
class Given:
    """The passages as they were given, and what was read from them."""

    hits: list[Any]
    scores: list[Any]
    where: Fields
    recipe: Recipe

    @cached_property
    def texts(self) -> list[str | None]:
        return [self.where.text_of(hit) for hit in self.hits]

    @cached_property
    def sketches(self) -> list[Sketch]:
        """Those stored with the passages, and of the others' texts."""
        sketches = [_NO_SKETCH if isinstance(one, str) else one for one in self._stored()]
        fresh = [rank for rank, one in enumerate(sketches) if one is _NO_SKETCH and self.texts[rank] is not None]
        made = sketch_many([self.texts[rank] or "" for rank in fresh], self.recipe) if fresh else ()
        for rank, sketch in zip(fresh, made, strict=True):
            sketches[rank] = sketch
        return sketches

    @property
    def came_with(self) -> list[Sketch] | None:
        """The sketches, None if no passage came with one."""
        return self.sketches if any(not isinstance(one, str) for one in self._stored()) else None

    def extract(self, rank: int) -> Extract:
        start = read(self.hits[rank], self.where.start)
        whole = isinstance(start, int) and not isinstance(start, bool)
        return Extract(self.texts[rank] or "", start if whole else None)

    def document(self, rank: int) -> Hashable:
        """Which document a passage is of; None where it does not say, or not in a word."""
        found = read(self.hits[rank], self.where.document)
        return found if found is None or isinstance(found, Hashable) else None

    def id(self, rank: int) -> Any:
        return read(self.hits[rank], self.where.id)

    def source(self, rank: int) -> Any:
        return read(self.hits[rank], self.where.source)

    def similarities(self, ranks: list[int]) -> list[float]:
        """Of passages to the first of them, as estimated."""
        rows = rows_of([self.sketches[rank] for rank in ranks], self.recipe.k)
        places = np.arange(len(ranks))
        found: list[float] = similarities(rows, np.zeros_like(places), places, self.recipe.measure).tolist()
        return found

    def value(self, hit: Any, field: str) -> Any:
        """What a passage has in a field, for guards."""
        return read(hit, field)

    def numbers(self, hit: Any) -> int | None:
        """The numbers of its text, for guards; None without a text."""
        text = self.where.text_of(hit)
        return None if text is None else number_signature(text, self.recipe)

    def _stored(self) -> Sequence[Sketch | str]:
        """Of those that `with_sketches` stores; anything else under that name is none."""
        found = [
            one if isinstance(one, Mapping) else None for one in (read(hit, self.where.stored) for hit in self.hits)
        ]
        return stored_sketches(found, self.recipe)
