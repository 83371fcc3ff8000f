"""Reads pages: what a hit stands for, and how its page was made. The same for searches, lists, folders and passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypedDict

from ndd_search.core.paging.page import Group, Page
from ndd_search.search.rest.write_response import DUPLICATE_OF, INNER, SHARES, SIMILARITY

_UNKNOWN = (
    'the search was left alone, or did not go through a wrapped client: put "ndd": true into its body, and it is '
    "collapsed, or its answer says why not"
)


class Unique(TypedDict):
    """How many hits the whole result has without near-duplicates; exact with relation "eq", else from low to high."""

    value: int
    relation: str
    low: int
    high: int


class Block(TypedDict, total=False):
    """The block `ndd` of an answer (see docs/wrapping.md). If the search was left alone, it has `degraded` at most."""

    examined: int
    kept: int
    hidden: int
    would_hide: int
    exhausted: bool
    capped: bool
    min_similarity: float | str
    recipe: str
    lacking: dict[str, int]
    unique: Unique | None
    late: list[dict[str, Any]]
    seen: list[dict[str, Any]]
    warnings: list[str]
    notes: list[str]
    degraded: str | None
    cache: str
    took_ms: float
    changed: bool
    strategy: str
    table: str | None
    raised: dict[str, int]
    members: dict[str, Any]
    facets: dict[str, Any]
    explain: list[dict[str, Any]]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Copy:
    """A hit that repeats another one.

    id, index:  of the document. A hit of a list has its place there as id, and "" as index.
    of:         id of the hit that it repeats. similarity: to that hit, 0..1.
    document:   its `_source`; a hit of a list, or a passage, as it was given; None if the answer tells its id alone.
    shares:     the field whose value put it under that hit (group_by, max_per), "" for a near-duplicate.
    """

    id: Any
    index: str
    of: Any
    similarity: float
    document: Any
    shares: str = ""


class Copies(list[Copy]):
    """The hits that one hit stands for.

    total: how many there are, also where their number alone is told (mode="count").
    whole: whether these are all of the result, as far as members="all" looks for them, and not of the window alone.
    """

    def __init__(self, found: Sequence[Copy], total: int, whole: bool) -> None:
        super().__init__(found)
        self.total, self.whole = total, whole


@dataclass(frozen=True, kw_only=True)
class Info:
    """How a page was made.

    collapsed: whether near-duplicates were looked for. reason: why not, or why some may be shown; "" if all went well.
    examined, kept, hidden: numbers of hits: compared; with a place of their own; listed under another.
    would_hide: how many of the examined hits mode="group" would hide (mode="annotate" shows them).
    repeats:   the hits of this page that repeat another one (modes "annotate" and "demote", max_per_group).
    unique:    see Unique, None if unknown. warnings: sentences about settings.
    block:     the whole block `ndd` of an answer, {} for a list.
    """

    collapsed: bool
    reason: str = ""
    examined: int = 0
    kept: int = 0
    hidden: int = 0
    would_hide: int = 0
    repeats: tuple[Copy, ...] = ()
    unique: Unique | None = None
    warnings: tuple[str, ...] = ()
    block: Block = field(default_factory=Block)


def copies(hit: Any) -> Copies:
    """Return what a hit stands for, best rank first, with ids, similarities and documents.

    hit: of an answer of an engine, also as an object of a DSL, of an index folder or `merge`; one of the `groups` of
         `collapse`; or a passage.
    Raises TypeError for anything else.
    """
    of_dsl = not isinstance(hit, Mapping) and hasattr(getattr(hit, "meta", None), "id")  # its documents may have a body
    answer = hit if of_dsl else getattr(hit, "body", hit)  # of a client's response
    if isinstance(answer, Mapping) and isinstance(answer.get("hits"), Mapping):
        raise TypeError('copies takes one hit: for hit in answer["hits"]["hits"]: copies(hit)')
    if isinstance(hit, Group):
        listed = [Copy(one.rank, "", hit.rank, one.similarity, one.hit, one.shares) for one in hit.duplicates]
        return Copies(listed, len(listed), hit.whole)
    if of_dsl:  # of a DSL, which makes each inner answer an object, and adds fields to documents
        inner = getattr(hit.meta, "inner_hits", {})
        hit = {"_id": hit.meta.id, "inner_hits": {INNER: inner[INNER].to_dict()} if INNER in inner else {}}
    if isinstance(hit, Mapping):
        found = hit.get("inner_hits", {}).get(INNER, {}).get("hits", {"hits": [], "total": {}})
        listed = [_copy(one, hit.get("_id")) for one in found["hits"]]
        total = found["total"]
        return Copies(listed, total.get("value", len(listed)), total.get("relation", "eq") == "eq")
    if is_dataclass(hit) and hasattr(hit, "copies"):
        given = [(one.rank if one.id is None else one.id, one) for one in hit.copies]
        of = getattr(hit, "id", None)
        return Copies([Copy(id, "", of, one.similarity, one.hit) for id, one in given], len(given), True)
    raise TypeError(f"copies takes a hit of an answer, a group of a page, or a passage, got {type(hit).__name__}")


def info(found: Any) -> Info:
    """Return how a page was made, also when the search was left alone.

    found: the answer to a search, one of the `responses` of an `_msearch`, or what `collapse`, `passages`, `merge` or
    an Index returned. Raises TypeError for anything else.
    """
    if isinstance(found, Page):
        return _of_list(found)
    if hasattr(found, "left_out"):
        hidden = found.examined - len(found) - len(found.left_out)
        kept, warnings = len(found), tuple(found.warnings)
        return Info(collapsed=True, examined=found.examined, kept=kept, hidden=hidden, warnings=warnings)
    body = getattr(found, "body", found)  # of a client's response
    body = body.to_dict() if hasattr(body, "to_dict") else body
    if not isinstance(body, Mapping):
        raise TypeError(f"info takes the answer to a search or a page, got {type(found).__name__}")
    block: Block = body.get("ndd") or {}
    reason = block.get("degraded") or ""
    if "examined" not in block:
        return Info(collapsed=False, reason=reason or _UNKNOWN, warnings=tuple(block.get("warnings", ())), block=block)
    hits = body.get("hits", {}).get("hits", [])
    repeats = [_copy(hit, (hit.get("fields") or {}).get(DUPLICATE_OF, [None])[0]) for hit in hits]
    return Info(
        collapsed=True,
        reason=reason,
        examined=block["examined"],
        kept=block["kept"],
        hidden=block["hidden"],
        would_hide=block.get("would_hide", 0),
        repeats=tuple(one for one in repeats if one.of is not None),
        unique=block.get("unique"),
        warnings=(*block.get("warnings", ()), *block.get("notes", ())),
        block=block,
    )


def _of_list(page: Page) -> Info:
    facts = page.info
    repeats = [
        Copy(one.rank, "", one.duplicate_of, one.similarity, one.hit, one.shares)
        for one in page.groups
        if one.duplicate_of is not None
    ]
    count = facts.unique
    return Info(
        collapsed=True,
        reason=facts.degraded,
        examined=facts.examined,
        kept=facts.kept,
        hidden=facts.hidden,
        would_hide=facts.would_hide or 0,
        repeats=tuple(repeats),
        unique=None
        if count is None
        else Unique(value=count.value, relation=count.relation, low=count.low, high=count.high),
        warnings=facts.warnings,
    )


def _copy(hit: Mapping[str, Any], of: Any) -> Copy:
    fields = hit.get("fields") or {}
    (similarity,), (shares,) = fields.get(SIMILARITY, [1.0]), fields.get(SHARES, [""])
    return Copy(hit.get("_id"), hit.get("_index", ""), of, similarity, hit.get("_source"), shares)
