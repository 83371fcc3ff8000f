"""What is known of a search between its requests, and remembered for its next page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ndd_search.paging.stream import Stream
from ndd_search.rest.answers import Hit


@dataclass(frozen=True)
class State:
    """What is known of a search. envelope: the first answer without its hits. raw: the client's own first answer.

    documents: hits with everything the user asked for, by place; those of the stream may be without.
    took: milliseconds that the engine said the first sketches took.
    stopped: why it is not asked any further, "" while it may be.
    degraded: what is lacking otherwise. partial: whether the first answer is partial.
    lasting: whether it may be remembered: nothing timed out, failed or was cut short.
    table: digest of the table of common values by which the stream's hits are decided, the first and all that follow;
           "list" for one counted in the stream's first window, "" for none.
    """

    stream: Stream = field(default_factory=Stream)
    documents: Mapping[int, Hit] = field(default_factory=dict)
    took: int = 0
    envelope: dict[str, Any] | None = None
    raw: Any = None
    stopped: str = ""
    degraded: str = ""
    partial: bool = False
    lasting: bool = True
    table: str = ""
