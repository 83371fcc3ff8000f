"""Guards of a collection: what keeps documents apart whatever they share, as one number or time for each document."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from math import isnan, log
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.guards import comparable, seconds_since_1970
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.options import CollapseOptions
from ndd_search.core.sketching.estimate_similarity import estimated_shingles
from ndd_search.core.sketching.sketches import Sketches

_ROUNDING = 1e-9  # of a difference of logarithms
NUMBERS = "ndd.numbers"  # the column of number signatures (see text.numbers)


@dataclass(frozen=True, eq=False)
class Guards:
    """Which documents may be near-duplicates of each other.

    codes: int64, shape (n,): only documents with equal codes; a document whose code is below 0 stands alone. None: all.
    times: float64, shape (n,): only documents at most `apart` apart, in seconds, or in the logarithm of the number of
           their shingles; one with NaN stands alone. None: all.
    """

    codes: Ranks | None = None
    times: npt.NDArray[np.float64] | None = None
    apart: float = 0.0

    @classmethod
    def of(cls, options: CollapseOptions, columns: Mapping[str, Sequence[Any]], sketches: Sketches, k: int) -> Guards:
        """The guards of some options, whose fields must have been kept (see check_kept). k: most values of a sketch."""
        fields = [*options.same_fields, *([NUMBERS] if options.same_numbers else [])]
        codes: Ranks | None = None
        if fields:
            rows = zip(*(map(comparable, columns[name]) for name in fields), strict=True)
            codes = np.fromiter(map(cache(_code), rows), np.int64)
            if options.same_numbers:
                codes[[value is None for value in columns[NUMBERS]]] = -1
        times = None
        for name in options.seconds_apart:
            times = np.array([seconds_since_1970(value) for value in columns[name]], np.float64)
        if options.length_ratio:
            times = np.log(np.maximum(shingles_of(sketches, k), 1))
        return cls(codes, times, apart_of(options))

    def taken(self, places: Ranks) -> Guards:
        """The same for documents in another order."""
        codes = None if self.codes is None else self.codes[places]
        return Guards(codes, None if self.times is None else self.times[places], self.apart)

    def allow(self, first: Ranks, second: Ranks) -> npt.NDArray[np.bool_]:
        """Which pairs may count; bool, the shape of both."""
        allowed = np.ones(len(first), np.bool_)
        if self.codes is not None:
            allowed &= (self.codes[first] == self.codes[second]) & (self.codes[first] >= 0)
        if self.times is not None:
            allowed &= np.abs(self.times[first] - self.times[second]) <= self.apart
        return allowed

    def key(self, place: int) -> tuple[int, float] | None:
        """Equal for documents that no guard tells apart; None for one that stands alone."""
        code = 0 if self.codes is None else int(self.codes[place])
        time = 0.0 if self.times is None else float(self.times[place])
        return None if code < 0 or isnan(time) else (code, time)

    @property
    def arguments(self) -> tuple[object, object, float]:
        """These guards for the native core."""
        return self.codes, None if self.times is None else self.times.view(np.int64), self.apart


def apart_of(options: CollapseOptions) -> float:
    """The `apart` of the guards of some options; 0 if they compare no times and no lengths."""
    if options.length_ratio:
        return _ROUNDING - log(options.length_ratio)
    return sum(options.seconds_apart.values())


def shingles_of(sketches: Sketches, k: int) -> npt.NDArray[np.float64]:
    """About how many shingles each document has, float64, shape (n,). k: values of a sketch at most."""
    lengths = np.diff(sketches.offsets)
    last = sketches.values[sketches.offsets[1:] - 1] if len(sketches.values) else lengths
    return estimated_shingles(lengths, np.where(lengths, last, -1), k)


def check_kept(options: CollapseOptions, kept: Container[str]) -> None:
    """Raise ValueError if `keep` or a guard names a field whose values were not kept."""
    check_columns([*options.document_fields, *([NUMBERS] if options.same_numbers else [])], kept)


def check_columns(names: Iterable[str], kept: Container[str]) -> None:
    """Raise ValueError if one of some fields was not kept."""
    for name in names:
        if name not in kept:
            how = "numbers=True" if name == NUMBERS else f"fields=[{name!r}]"
            raise ValueError(f"{name!r} is asked for, which was not kept: read the collection with {how}")


def _code(values: tuple[str, ...]) -> int:
    """A code for a combination of values that is the same in every process: 63 bits of a hash."""
    return int.from_bytes(blake2b(repr(values).encode(), digest_size=8).digest(), "big") >> 1
