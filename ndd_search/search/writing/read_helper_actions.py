"""Finds the documents in actions of the bulk helpers, in a copy that can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ndd_search.core.document_fields import splits


@dataclass(frozen=True)
class Action:
    """One action.

    content:   what the helper gets: a mapping copied down to its documents; anything else unchanged.
    kind:      its operation, "" for anything but a mapping.
    documents: in the copy, each with whether it is a partial document. Their values are not copied.
    reason:    why there are no documents, in a word.
    unsketched: filled by the Sketcher: why a document got no sketch, a sentence for each.
    """

    content: Any
    kind: str = ""
    documents: tuple[tuple[dict[str, Any], bool], ...] = ()
    reason: str = ""
    unsketched: list[str] = field(default_factory=list)


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
    body = _copied(content, "_source") or content  # a _source that is no mapping filters the response
    found = [(part, name == "doc") for name in ("doc", "upsert") if (part := _copied(body, name)) is not None]
    reason = "" if found else "script" if "script" in body else "not a document"
    return Action(content, kind, tuple(found), reason)


def touches(document: Mapping[str, Any], source: str) -> str:
    """Return how a partial document changes a field: "whole" sets or clears it, "part" changes a part, "" nothing.

    A key with dots changes a part, also {"a.b": ...} of "a": the engine stores it beside an object of the same path,
    and reads both.
    """
    found = {"part" for key in document if isinstance(key, str) and key.startswith(f"{source}.")}
    for head, rest in [(source, ""), *splits(source)]:
        if head in document:
            inner = document[head]
            within = touches(inner, rest) if rest and isinstance(inner, Mapping) else "whole"
            is_part = "." in head or (not rest and isinstance(inner, Mapping))
            found.add("part" if within and is_part else within)
    return "part" if "part" in found else "whole" if "whole" in found else ""


def _copied(holder: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Replace a mapping by a copy and return the copy, None if there is no mapping of that name."""
    found = holder.get(name)
    if not isinstance(found, Mapping):
        return None
    holder[name] = dict(found)
    copied: dict[str, Any] = holder[name]
    return copied
