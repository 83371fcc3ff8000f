"""Sorts hits of an embedded index by a field, and marks the matched words in passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from ndd_search.embedded.query_parser import number_of

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sort:
    """A field to order by: first numbers, and strings that hold one, by value; then other strings alphabetically."""

    field: str
    descending: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse "FIELD", "FIELD:asc" or "FIELD:desc". Raises ValueError for anything else."""
        name, _, direction = text.rpartition(":")
        if direction not in ("asc", "desc"):
            name, direction = text, "asc"
        if not name:
            raise ValueError(f'sort must be "FIELD", "FIELD:asc" or "FIELD:desc", got {text!r}')
        return cls(field=name, descending=direction == "desc")

    def ordered(self, hits: Sequence[T], values: Iterable[Any]) -> list[T]:
        """Return the hits ordered by their values in the field; hits without a value come last. The sort is stable.

        Raises ValueError if there are hits and none has the field.
        """
        keys = [_key(value) for value in values]
        present = [place for place, key in enumerate(keys) if key is not None]
        if hits and not present:
            raise ValueError(f"none of the documents found has the field {self.field!r} to sort by")
        present.sort(key=lambda place: keys[place] or (0, 0.0, ""), reverse=self.descending)
        return [hits[place] for place in present] + [hit for hit, key in zip(hits, keys, strict=True) if key is None]


def marked(text: str, ranges: Iterable[tuple[int, int]], marks: tuple[str, str]) -> str:
    """Insert marks before and after ranges of a text. ranges: ascending, in bytes of UTF-8."""
    raw, pieces, done = text.encode(), [], 0
    for start, end in ranges:
        pieces += [raw[done:start].decode(), marks[0], raw[start:end].decode(), marks[1]]
        done = end
    return "".join([*pieces, raw[done:].decode()])


def _key(value: Any) -> tuple[int, float, str] | None:
    if isinstance(value, list | tuple):
        value = next((item for item in value if item is not None), None)
    if value is None or value == "":
        return None
    number = number_of(value)
    return (1, 0.0, str(value).casefold()) if number is None else (0, number, "")
