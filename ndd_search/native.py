"""The native core (_native.c), when this installation has it.

pairs.py and groups.py compute the same with numpy, bit for bit. They ask for `core` each time, so setting
it to None goes the numpy way.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast


class Core(Protocol):
    """Functions that answer None for what is not regular; numpy's way then says what is wrong.

    sketches: rows of int32 with offsets None, or one array of int32 with int64 offsets; arrays come back as bytes.
    """

    def rows(self, sketches: object, offsets: object, k: int, /) -> tuple[bytes, bytes] | None:
        """Values (int32) and offsets (int64) of checked sketches, at most k values of each."""

    def leaders(self, sketches: object, offsets: object, k: int, min_similarity: float, /) -> bytes | None:
        """The leader of each hit, int64."""

    def pairs(
        self, sketches: object, offsets: object, k: int, min_similarity: float, weights: object, /
    ) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes] | None:
        """first, second, shared, left, right and weight of each similar pair, int64; see pairs.count_shared."""

    def sketch_texts(
        self, texts: object, table: bytes, words: bool, size: int, seed: int, k: int, /
    ) -> tuple[bytes, bytes] | None:
        """Values (int32) and offsets (int64) of the sketches of texts that are all ASCII.

        table: what becomes of each byte, 0 for what separates tokens. words: else characters.
        """

    def sketch_points(
        self, points: object, offsets: object, words: bool, size: int, seed: int, k: int, /
    ) -> tuple[bytes, bytes] | None:
        """The same of clean code points (uint32), see text.Clean."""


core: Core | None
try:
    core = cast(Core, import_module("ndd_search._native"))
except ModuleNotFoundError:  # built without a compiler; one that is there and does not load is an error
    core = None
