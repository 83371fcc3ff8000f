"""Changes options for the searches of a block of code, in this thread or task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Unpack

from ndd_search.core.options import OF_ONE_SEARCH, Also, CollapseOptions
from ndd_search.core.presets import OPTIONS, CollapseChanges, collapse_options
from ndd_search.core.setting_values import check_known

_surrounding: ContextVar[Mapping[str, Any]] = ContextVar("ndd_search.options", default={})  # noqa: B039 - never changed


class SearchChanges(CollapseChanges, total=False):
    """The keyword arguments of `options`, for type checkers."""

    cache: bool
    explain: Sequence[str]
    seen: Sequence[Any]


@contextmanager
def options(enabled: bool | Sequence[Also] | None = None, **changes: Unpack[SearchChanges]) -> Iterator[None]:
    """Change options for the searches inside the block, through any wrapped client, in this thread or task.

    enabled: False leaves searches alone as if clients were not wrapped, True collapses those that their clients do, a
             list others too, as in `wrap`; None keeps what an outer block has set.
    changes: CollapseOptions by name, `cache=False` to neither read nor fill the cache, `explain=IDS` to learn where
             these documents are (see docs/whole-groups.md), and `seen`, a list of what the caller was shown before (see
             docs/seen.md). They are added to those of outer blocks.
    Raises TypeError for an unknown option, ValueError for an invalid value.
    """
    if "cursor" in changes:
        raise TypeError('cursor is an option of one search: put it into the body, "ndd": {"cursor": true}')
    check_known(changes, ["enabled", *SearchChanges.__annotations__])
    given: dict[str, Any] = {**changes, **({} if enabled is None else {"enabled": enabled})}
    _, others = options_and_others(None, given)
    token = _surrounding.set({**_surrounding.get(), **given, **others})
    try:
        yield
    finally:
        _surrounding.reset(token)


def options_and_others(
    base: CollapseOptions | None, changes: Mapping[str, Any]
) -> tuple[CollapseOptions, dict[str, Any]]:
    """Return CollapseOptions with changes, and those of the changes that stand beside them, see OF_ONE_SEARCH.

    base: as in `collapse_options`. Raises TypeError or ValueError for an unknown option or an invalid value.
    """
    check_known(changes, [*OPTIONS, *OF_ONE_SEARCH])
    others = {name: OF_ONE_SEARCH[name].check(name, changes[name]) for name in OF_ONE_SEARCH if name in changes}
    return collapse_options(base, **{name: changes[name] for name in changes if name not in OF_ONE_SEARCH}), others


def surrounding() -> Mapping[str, Any] | None:
    """Return the options of the surrounding blocks, None if searches are left alone."""
    changes = _surrounding.get()
    return None if changes.get("enabled") is False else changes
