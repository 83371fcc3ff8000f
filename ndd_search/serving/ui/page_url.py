"""What a page shows, as its URL says it. A link therefore keeps everything, and a page can be sent to somebody else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self
from urllib.parse import parse_qs, urlencode

SIZE = 10  # results on a page
_MOST_PAGES, _MOST_PARAMETERS, _MOST_CHARACTERS = 1000, 50, 2000  # an engine takes seconds for thousands of words
_PERIOD = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2]))?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class State:
    """The state of the search page.

    q:              what the user has typed.
    order:          "deduplicated", or "engine" for the engine's own order with each duplicate marked.
    min_similarity: a resemblance in 0..1, None for the setting of the index or proxy.
    source:         only documents of one of these sources, () for all.
    period:         only documents of one of these years ("2024") or months ("2024-03"), () for all.
    page:           number of the page, from 1.
    """

    q: str = ""
    order: str = "deduplicated"
    min_similarity: float | None = None
    source: tuple[str, ...] = ()
    period: tuple[str, ...] = ()
    page: int = 1

    @classmethod
    def parse(cls, query: str) -> Self:
        """Parse the query string of a URL; unknown parameters are ignored. Raises ValueError for an invalid value."""
        every = _listed(query)
        given = _last(every)
        source, period = (tuple(dict.fromkeys(every.get(name, ()))) for name in ("source", "period"))
        order, page = given.get("order", ""), given.get("page", "1")
        if order not in ("", "deduplicated", "engine"):
            raise ValueError(f'order must be "deduplicated" or "engine", got {order!r}')
        for one in period:
            if not _PERIOD.fullmatch(one) or one.startswith("0000"):
                raise ValueError(f'period must be a year or a month, as in "2024" or "2024-03", got {one!r}')
        if not page.isascii() or not page.isdigit() or not 1 <= int(page) <= _MOST_PAGES:
            raise ValueError(f"page must be a number from 1 to {_MOST_PAGES}, got {page!r}")
        if len(given.get("q", "")) > _MOST_CHARACTERS:
            raise ValueError(f"the query has more than {_MOST_CHARACTERS:,} characters: search for fewer words")
        return cls(
            q=given.get("q", "").strip(),
            order=order or "deduplicated",
            min_similarity=_similarity(given.get("min_similarity", "")),
            source=source,
            period=period,
            page=int(page),
        )

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of the URL, without those that have their default."""
        default = State()
        changed = [
            (one.name, value)
            for one in fields(self)
            if (value := getattr(self, one.name)) != getattr(default, one.name)
        ]
        return [
            (name, str(one)) for name, value in changed for one in (value if isinstance(value, tuple) else (value,))
        ]

    def url(self, **changes: Any) -> str:
        """Return the relative URL of this state with some changes. It is of page 1 unless a page is given."""
        return f"?{urlencode(replace(self, **{'page': 1, **changes}).parameters, errors='replace')}"

    def toggled(self, name: str, value: str) -> str:
        """Return the URL with a value of a filter added, or removed if it is there. name: source or period."""
        chosen: tuple[str, ...] = getattr(self, name)
        left = tuple(one for one in chosen if one != value)
        return self.url(**{name: left if value in chosen else (*chosen, value)})

    @property
    def options(self) -> dict[str, Any]:
        """The CollapseOptions of the search, by name, as far as the state sets them."""
        options: dict[str, Any] = {} if self.min_similarity is None else {"min_similarity": self.min_similarity}
        return options | ({"mode": "annotate"} if self.order == "engine" else {})


def values(query: str) -> dict[str, str]:
    """Return the last value of each parameter of a query string. Raises ValueError for more than 50 parameters."""
    return _last(_listed(query))


def _listed(query: str) -> dict[str, list[str]]:
    try:
        return parse_qs(query, keep_blank_values=True, errors="replace", max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise ValueError(f"the URL has more than {_MOST_PARAMETERS} parameters: open the page anew") from None


def _last(given: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: values[-1] for name, values in given.items()}


def _similarity(text: str) -> float | None:
    if text in ("", "auto"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise ValueError(f"min_similarity must be a number above 0 and at most 1, got {text!r}")
    return value
