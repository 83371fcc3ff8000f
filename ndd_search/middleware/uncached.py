"""Searches that are not cached under a key of their own, as the driver takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ndd_search.collapse_options import CollapseOptions
from ndd_search.middleware.settings import Settings
from ndd_search.rest.answers import Answer
from ndd_search.rest.request import Request


class Uncached:
    """A search that sends a request before it can tell its page, or whose pages are different each time."""

    key: bytes | None = None

    def __init__(self, request: Request, options: CollapseOptions) -> None:
        self.request, self.options = request, options

    @property
    def path(self) -> str:
        """The path of the request."""
        return self.request.path

    @property
    def first_windows(self) -> list[int]:
        """How many hits are examined at first, in a list of one search (see `MultiConversation`)."""
        return [self.options.initial_window]

    def remembered(self) -> Answer | None:
        """Return None: there is no finished page."""
        return None


def is_asked_for(option: str, request: Request, settings: Settings, changes: Mapping[str, Any]) -> bool:
    """Return whether a search is to be collapsed although that costs a request more, as an option says.

    The "ndd" of the search decides: the option, or else any value that asks to be collapsed. Without one, the block
    around the search decides, then the settings of its indexes. changes: options of that block.
    """
    asked = request.body.get("ndd") if isinstance(request.body, Mapping) else None
    if asked is False:
        return False
    if isinstance(asked, Mapping) and option in asked:
        return bool(asked[option])
    if asked:
        return True
    if option in changes:
        return bool(changes[option])
    own = settings.of_target(request.path, asked=False)
    return own is not None and bool(getattr(own.options, option))
