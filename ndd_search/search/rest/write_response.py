"""Writes a page in the response shape that Elasticsearch and OpenSearch share.

The duplicates of a hit are in `inner_hits.near_duplicates`, where code written for `collapse` finds them; each has its
similarity in `fields["ndd.similarity"]`. A duplicate that is shown itself (modes annotate and demote, max_per_group)
names its leader in `fields["ndd.duplicate_of"]` and `fields["ndd.duplicate_of_index"]`. `fields["ndd.shares"]` names
the field that put a hit under its leader (group_by, max_per), `fields["ndd.seen"]` the item of `seen` that a shown hit
resembles, `fields["ndd.origins"]` where the hits of its group are from. The block `ndd` beside `hits` describes how the
page was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from ndd_search.core.options import Mode
from ndd_search.core.paging.page import Duplicate, Group, Page

INNER = "near_duplicates"
SIMILARITY = "ndd.similarity"
DUPLICATE_OF, OF_INDEX = "ndd.duplicate_of", "ndd.duplicate_of_index"
SHARES = "ndd.shares"
SEEN = "ndd.seen"
ORIGINS = "ndd.origins"

_OF_IDS = {"_index", "_id", "_routing", "_score", "sort"}  # what mode "ids" tells

Hit = dict[str, Any]
Plain = Callable[[Any], Hit]


def hits_of(page: Page, plain: Plain) -> list[Hit]:
    """Return the hits to show, each with its duplicates. plain(hit): a new dict, the hit as the user expects it."""
    return [_shown(group, page, plain) for group in page.groups]


def block_of(page: Page, plain: Plain) -> dict[str, Any]:
    """Return the block `ndd`: the facts of page.Info, with times in milliseconds and hits by index and id.

    The id is None if the search left it out (`filter_path`).
    """
    facts: dict[str, Any] = {**vars(page.info), "unique": page.info.unique and dict(vars(page.info.unique))}
    facts["took_ms"] = round(facts.pop("took") * 1000, 3)
    facts["degraded"] = facts["degraded"] or None
    for name in ("members", "explain", "would_hide"):
        if facts[name] is None:
            del facts[name]
    seen = [
        {**_named(plain(page.hit_at(rank))), "item": item, "similarity": round(similarity, 4)}
        for rank, item, similarity in facts.pop("seen")
    ]
    if page.compares_seen:
        facts["seen"] = seen
    facts["warnings"] = list(facts["warnings"])  # a tuple would keep the page out of the cache
    facts["late"] = [
        {
            **_named(plain(page.hit_at(rank))),
            "duplicate_of": (of := plain(page.hit_at(leader))).get("_id"),
            "duplicate_of_index": of.get("_index"),
            "similarity": round(similarity, 4),
        }
        for rank, leader, similarity in page.info.late
    ]
    return facts


def _named(hit: Hit) -> dict[str, Any]:
    return {"_index": hit.get("_index"), "_id": hit.get("_id")}


def total_of(page: Page, total: Any, most: int | None = None) -> Any:
    """Return `hits.total` in its own shape: the engine's, or the number of kept hits if the engine had no more.

    Otherwise a client that pages until it has `total` hits would never end. Unless total is "hits", it is always the
    number of kept hits, and a lower bound ("gte") if the engine has more. most: upper bound, if limits were raised.
    """
    if total in (None, -1):  # the caller wants no count; -1 with rest_total_hits_as_int
        return total
    value = total if isinstance(total, int) else total["value"]
    exact = page.info.exhausted
    counts_groups = page.options.total != "hits"
    counted = page.info.kept if exact or counts_groups else value
    if most is not None and most < counted:
        counted, exact = most, True
    elif not exact and not counts_groups:
        return total
    return counted if isinstance(total, int) else {"value": counted, "relation": "eq" if exact else "gte"}


def _shown(group: Group, page: Page, plain: Plain) -> Hit:
    hit = plain(group.hit)
    if group.duplicate_of is not None:
        leader = plain(page.hit_at(group.duplicate_of))
        _relate(hit, group, {DUPLICATE_OF: [leader.get("_id")], OF_INDEX: [leader.get("_index")]})
    elif group.seen is not None:
        _relate(hit, group, {SEEN: [group.seen]})
    if group.origins is not None:
        hit["fields"] = {**hit.get("fields", {}), ORIGINS: [group.origins._asdict()]}
    if not group.duplicates:
        return hit
    mode = page.options.mode
    copies = [] if mode == "count" else [_listed(copy, mode, plain) for copy in group.duplicates]
    scores = [score for copy in copies if isinstance(score := copy.get("_score"), int | float)]
    found = {
        "total": {"value": len(group.duplicates), "relation": "eq" if group.whole else "gte"},
        "max_score": max(scores, default=None),
        "hits": copies,
    }
    hit["inner_hits"] = {**hit.get("inner_hits", {}), INNER: {"hits": found}}
    return hit


def _listed(copy: Duplicate, mode: Mode, plain: Plain) -> Hit:
    hit = plain(copy.hit)
    if mode == "ids":
        hit = {name: value for name, value in hit.items() if name in _OF_IDS}
    _relate(hit, copy)
    return hit


def _relate(hit: Hit, to: Group | Duplicate, more: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Say in the `fields` of a hit how it relates to its leader, or to what was seen."""
    shares = {SHARES: [to.shares]} if to.shares else {}
    hit["fields"] = {**hit.get("fields", {}), SIMILARITY: [round(to.similarity, 4)], **shares, **more}


_GONE = object()


def filtered(value: Any, paths: str, always: str) -> Any:
    """Return the parts of a response that the paths of a `filter_path` select: it is not sent, as we need the others.

    A path that starts with "-" removes parts.

    paths:  dotted names separated by commas; "*" matches any part of a name, "**" any names. Lists are transparent.
    always: a path that is selected as well.
    """
    patterns = [path.strip().split(".") for path in paths.split(",") if path.strip()]
    wanted = [pattern for pattern in patterns if not pattern[0].startswith("-")]
    wanted += [always.split(".")] if wanted else []
    unwanted = [[pattern[0][1:], *pattern[1:]] for pattern in patterns if pattern[0].startswith("-")]
    if wanted:
        value = _parts(value, wanted, kept=True)
    if unwanted and value is not _GONE:
        value = _parts(value, unwanted, kept=False)
    return {} if value is _GONE else value


def _parts(value: Any, patterns: list[list[str]], kept: bool) -> Any:
    """Return the parts of a value that the patterns name (kept), or all others; _GONE if there are none to keep."""
    if any(not pattern or pattern == ["**"] for pattern in patterns):
        return value if kept else _GONE
    if isinstance(value, list):
        items = [item for item in (_parts(item, patterns, kept) for item in value) if item is not _GONE]
        return items if items or not kept else _GONE
    if not isinstance(value, dict):
        return _GONE if kept else value
    inner = {name: _parts(one, _after(name, patterns), kept) for name, one in value.items()}
    found = {name: one for name, one in inner.items() if one is not _GONE}
    return found if found or not kept else _GONE


def _after(name: str, patterns: list[list[str]]) -> list[list[str]]:
    """Return the rest of each pattern below a name, without the patterns that do not match it."""
    rest = []
    for pattern in patterns:
        if pattern and pattern[0] == "**":
            rest.append(pattern)
            rest += _after(name, [pattern[1:]])
        elif pattern and fnmatchcase(name, pattern[0]):
            rest.append(pattern[1:])
    return rest
