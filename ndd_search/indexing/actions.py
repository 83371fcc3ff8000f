"""Actions of the bulk helpers: the documents in them, in a copy that may be added to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Action:
    """One action.

    content:    what the helper shall get: a copy of a mapping as deep as the documents in it; anything else as it came.
    kind:       its operation, "" for what is no mapping.
    documents:  those in the copy, each with whether it is a part of a document.
    reason:     in a word, why there are none.
    characters: about how much text is held, one level deep.
    """

    content: Any
    kind: str = ""
    documents: tuple[tuple[dict[str, Any], bool], ...] = ()
    reason: str = ""
    characters: int = 0


def open_action(action: Any) -> Action:
    """Copy an action and find the documents in it."""
    if not isinstance(action, Mapping):
        raw = isinstance(action, str | bytes)
        return Action(action, reason="raw" if raw else "not a document", characters=len(action) if raw else 0)
    content = dict(action)
    kind = content.get("_op_type", "index")
    if kind in ("index", "create"):
        document = _copied(content, "_source") if "_source" in content else content
        if document is None:
            source = content["_source"]
            return Action(content, kind, reason="raw", characters=len(source) if isinstance(source, str | bytes) else 0)
        return Action(content, kind, ((document, False),), characters=_characters(document))
    if kind != "update":
        return Action(content, str(kind), reason="delete" if kind == "delete" else "unknown operation")
    body = _copied(content, "_source") or content  # where _source is no mapping it says what the response should hold
    found = [(part, name == "doc") for name in ("doc", "upsert") if (part := _copied(body, name)) is not None]
    reason = "" if found else "script" if "script" in body else "not a document"
    return Action(content, kind, tuple(found), reason, sum(_characters(part) for part, _ in found))


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


def _characters(document: Mapping[str, Any]) -> int:
    return sum(len(value) for value in document.values() if isinstance(value, str | bytes))
