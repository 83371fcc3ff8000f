"""Changes options for the searches of a block of code, in this thread or task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Unpack

from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import CollapseChanges, collapse_options
from ndd_search.core.setting_values import YesNo, check_known

_surrounding: ContextVar[tuple[bool, Mapping[str, Any]]] = ContextVar("ndd_search.options", default=(True, {}))


class SearchChanges(CollapseChanges, total=False):
    """The keyword arguments of `options`, for type checkers."""

    cache: bool
    explain: Sequence[str]
    seen: Sequence[Any]


_BESIDE = ("cache", "explain", "seen")  # of a search or a block, beside CollapseOptions
_YES_NO = YesNo()


@contextmanager
def options(enabled: bool | None = None, **changes: Unpack[SearchChanges]) -> Iterator[None]:
    """Change options for the searches inside the block, through any wrapped client, in this thread or task.

    enabled: False leaves searches alone as if clients were not wrapped, True collapses them again, None keeps what an
             outer block has set.
    changes: CollapseOptions by name, `cache=False` to neither read nor fill the cache, `explain=IDS` to learn where
             these documents are (see docs/whole-groups.md), and `seen`, a list of what the caller was shown before (see
             docs/seen.md). They are added to those of outer blocks.
    Raises TypeError for an unknown option, ValueError for an invalid value.
    """
    if enabled is not None:
        _YES_NO.check("enabled", enabled)
    if "cursor" in changes:
        raise TypeError('cursor is an option of one search: put it into the body, "ndd": {"cursor": true}')
    check_known(changes, ["enabled", *SearchChanges.__annotations__])
    options_and_others(None, changes)
    before, others = _surrounding.get()
    token = _surrounding.set((before if enabled is None else enabled, {**others, **changes}))
    try:
        yield
    finally:
        _surrounding.reset(token)


def options_and_others(
    base: CollapseOptions | None, changes: Mapping[str, Any]
) -> tuple[CollapseOptions, dict[str, Any]]:
    """Return CollapseOptions with changes, and those of the changes that stand beside them: cache, explain, seen.

    base: as in `collapse_options`. Raises TypeError or ValueError for an unknown option or an invalid value.
    """
    check_known(changes, [*SearchChanges.__annotations__, "cursor"])
    others = {name: changes[name] for name in _BESIDE if name in changes}
    if "cache" in others:
        _YES_NO.check("cache", others["cache"])
    return collapse_options(base, **{name: changes[name] for name in changes if name not in _BESIDE}), others


def surrounding() -> Mapping[str, Any] | None:
    """Return the options of the surrounding blocks, None if searches are left alone."""
    enabled, changes = _surrounding.get()
    return changes if enabled else None
