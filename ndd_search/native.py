"""The native core, whose source is the folder `native` beside this package, when this installation has it.

sketches.py, counting.py, decision.py and groups.py compute the same with numpy, bit for bit. Whoever can use it asks
for `core` each time, so setting it to None goes the numpy way.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, Protocol, cast

VERSION = 7  # of the functions below, as in core/module.c: an older core may lie in a folder that is worked in
Plan = tuple[bool, int, int, int]  # shingles of words (else of characters), size, seed, k


class Rule(NamedTuple):
    """The numbers a pair is decided by; the core reads them in this order. With j, s, d, m as in `decision`:

        j * min(1, s / d) ** (power * m * min(1, 1 - j + margin / n))  >=  least + asked / max(few, min(n, known))

    n is the number of shingles of the shorter document.
    """

    least: float  # the bar of the longest texts, 0..1
    asked: float = 0.0  # at least 0: what a short text adds to the bar, times its number of shingles
    few: float = 1.0  # shingles, above 0: shorter texts count as this long
    known: float = 1.0  # shingles, at least `few`: longer texts count as this long
    power: float = 0.0  # at least 0; 0 leaves the resemblance as it is
    margin: float = 0.0  # shingles, at least 0
    min_shingles: int = 0  # a document with fewer values is a near-duplicate only of one with the same values


class Core(Protocol):
    """Functions that answer None for what is not regular; numpy's way then says what is wrong.

    sketches: rows of int32 with offsets None, or one array of int32 with int64 offsets; arrays come back as bytes.
    """

    def rows(self, sketches: object, offsets: object, k: int, /) -> tuple[bytes, bytes] | None:
        """Values (int32) and offsets (int64) of checked sketches, at most k values of each."""

    def leaders(
        self, sketches: object, offsets: object, k: int, rule: Rule, frequency_table: bytes | None, old: int, /
    ) -> tuple[bytes, bytes] | None:
        """The leader of each hit (int64) and the similarity to it (float64); the first `old` hits are leaders anyway.

        frequency_table: a common_table. None also for a pair that is too close to its bar to tell.
        """

    def pairs(
        self, sketches: object, offsets: object, k: int, rule: Rule, frequency_table: bytes | None, brief: bool, /
    ) -> tuple[bytes, ...] | None:
        """The pairs that count: the fields of pairs.Pairs and, unless brief, decision.Overlaps; else as in leaders."""

    def common_table(self, values: object, weights: object, /) -> bytes | None:
        """A hash table of values (int32) and what each weighs (int64, 0..2**20)."""

    def sketch_text(self, text: str, plan: Plan, table: bytes | None, /) -> bytes | None:
        """The values (int32) of a sketch; None also for a text whose marks only numpy's way puts in order.

        table: None for a text that is all ASCII, else unicode_table.native_table.
        """

    def sketch_texts(
        self, texts: Sequence[str], is_ascii: bytes, plan: Plan, table: bytes | None, /
    ) -> tuple[bytes, bytes, bytes] | None:
        """Values (int32) and offsets (int64) of the sketches, and the texts (int64) left to numpy, without values.

        is_ascii: one for each text that is all ASCII, 0 for others.
        """


def _load() -> tuple[Core | None, str]:
    """The core, or why there is none."""
    try:
        module = import_module("ndd_search._native")
    except ModuleNotFoundError:  # one that is there and does not load is an error
        return None, "the native core was not built: there was no C compiler"
    if (found := getattr(module, "version", 1)) == VERSION:
        return cast(Core, module), ""
    why = f"the native core found has version {found}, not {VERSION}"
    warnings.warn(
        f"{why}, so numpy is used: install ndd_search again, in a checkout with `python -m pip install --editable .`",
        RuntimeWarning,
        stacklevel=2,
    )
    return None, why


core, _why_not = _load()


def in_use() -> str:
    """What computes sketches and pages in this process, for people."""
    return "the native core" if core else f"numpy ({_why_not or 'the native core was switched off'})"
