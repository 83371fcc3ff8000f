"""Other options for the searches of a block of code, in this thread or task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Unpack

from ndd_search.collapse_options import CollapseChanges, collapse_options

_surrounding: ContextVar[tuple[bool, Mapping[str, Any]]] = ContextVar("ndd_search.options", default=(True, {}))


class SearchChanges(CollapseChanges, total=False):
    """The keyword arguments of `options`, for type checkers."""

    cache: bool


@contextmanager
def options(enabled: bool | None = None, **changes: Unpack[SearchChanges]) -> Iterator[None]:
    """Other options for the searches inside the block, through any wrapped client, in this thread or task.

    enabled: False lets searches through as if clients were not wrapped, True ends that; None leaves it as it is around
             the block.
    changes: CollapseOptions by name, and `cache=False` to neither read nor fill the cache; on top of those around it.
    Raises TypeError for an unknown option, ValueError for a value that cannot be.
    """
    checked: dict[str, Any] = {name: value for name, value in changes.items() if name != "cache"}
    collapse_options(**checked)
    before, others = _surrounding.get()
    token = _surrounding.set((before if enabled is None else enabled, {**others, **changes}))
    try:
        yield
    finally:
        _surrounding.reset(token)


def surrounding() -> Mapping[str, Any] | None:
    """The options of the block that the caller is in; None where searches are left alone."""
    enabled, changes = _surrounding.get()
    return changes if enabled else None
