"""Actions of the bulk helpers: the documents in them, in a copy that may be added to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Action:
    """One action.

    content:   what the helper gets: a copy of a mapping down to the documents in it; anything else as it came.
    kind:      its operation, "" for what is no mapping.
    documents: those in the copy, each with whether it is a part of a document. Their values are the caller's own.
    reason:    in a word, why there are none.
    """

    content: Any
    kind: str = ""
    documents: tuple[tuple[dict[str, Any], bool], ...] = ()
    reason: str = ""


def open_action(action: Any) -> Action:
    """Copy an action and find the documents in it."""
    if not isinstance(action, Mapping):
        return Action(action, reason="raw" if isinstance(action, str | bytes) else "not a document")
    content = dict(action)
    kind = content.get("_op_type", "index")
    if kind in ("index", "create"):
        document = _copied(content, "_source") if "_source" in content else content
        if document is None:
            return Action(content, kind, reason="raw")
        return Action(content, kind, ((document, False),))
    if kind != "update":
        return Action(content, str(kind), reason="delete" if kind == "delete" else "unknown operation")
    body = _copied(content, "_source") or content  # where _source is no mapping it says what the response should hold
    found = [(part, name == "doc") for name in ("doc", "upsert") if (part := _copied(body, name)) is not None]
    reason = "" if found else "script" if "script" in body else "not a document"
    return Action(content, kind, tuple(found), reason)


def touches(document: Mapping[str, Any], source: str) -> str:
    """What a partial document says of a field: "whole" gives or clears it, "part" changes some of it, "" leaves it."""
    if source in document:
        return "part" if isinstance(document[source], Mapping) else "whole"
    head, dot, rest = source.partition(".")
    if not dot or head not in document:
        return ""
    inner = document[head]
    return touches(inner, rest) if isinstance(inner, Mapping) else "whole"


def _copied(holder: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Put a copy of a mapping in its place; returns it, None when there is no mapping of that name."""
    found = holder.get(name)
    if not isinstance(found, Mapping):
        return None
    holder[name] = dict(found)
    copied: dict[str, Any] = holder[name]
    return copied
