"""Hits of an embedded index in the order of a field, and passages of their texts with what was found marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from ndd_search.embedded.query import number_of

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sort:
    """A field to order by: numbers, and texts that read as one, by size, before other texts by their letters."""

    field: str
    descending: bool = False

    @classmethod
    def parse(cls, given: str) -> Self:
        """Of "FIELD", "FIELD:asc" or "FIELD:desc". Raises ValueError."""
        name, _, direction = given.rpartition(":")
        if direction not in ("asc", "desc"):
            name, direction = given, "asc"
        if not name:
            raise ValueError(f'sort must be "FIELD", "FIELD:asc" or "FIELD:desc", got {given!r}')
        return cls(field=name, descending=direction == "desc")

    def ordered(self, hits: Sequence[T], values: Iterable[Any]) -> list[T]:
        """The hits by their values in the field, those without one last; equal ones stay as they were.

        Raises ValueError where there are hits and none has the field.
        """
        keys = [_key(value) for value in values]
        there = [place for place, key in enumerate(keys) if key is not None]
        if hits and not there:
            raise ValueError(f"no document that was found has a field {self.field!r} to sort by")
        there.sort(key=lambda place: keys[place] or (0, 0.0, ""), reverse=self.descending)
        return [hits[place] for place in there] + [hit for hit, key in zip(hits, keys, strict=True) if key is None]


def marked(text: str, ranges: Iterable[tuple[int, int]], marks: tuple[str, str]) -> str:
    """The text with marks before and after some ranges of it. ranges: ascending, in bytes of UTF-8."""
    raw, pieces, done = text.encode(), [], 0
    for start, end in ranges:
        pieces += [raw[done:start].decode(), marks[0], raw[start:end].decode(), marks[1]]
        done = end
    return "".join([*pieces, raw[done:].decode()])


def _key(value: Any) -> tuple[int, float, str] | None:
    if isinstance(value, list | tuple):
        value = next((one for one in value if one is not None), None)
    if value is None or value == "":
        return None
    number = number_of(value)
    return (1, 0.0, str(value).casefold()) if number is None else (0, number, "")
