"""Actions of the bulk helpers: which documents are in them and where, and copies with something added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]  # keys from an action down to a document in it, () when the action is the document


def documents_in(action: Any) -> list[tuple[Path, bool]] | str:
    """Where the action has documents, and whether each is a part of one; or, in a word, why it has none to read."""
    if not isinstance(action, Mapping):
        return "raw" if isinstance(action, str | bytes) else "not a document"
    kind = action.get("_op_type", "index")
    source: Path = ("_source",) if "_source" in action else ()
    if kind in ("index", "create"):
        return [(source, False)] if isinstance(at(action, source), Mapping) else "raw"
    if kind != "update":
        return "delete" if kind == "delete" else "unknown operation"
    if source and not isinstance(action["_source"], Mapping):
        source = ()  # it says what the response should hold
    body = at(action, source)
    found = [((*source, name), name == "doc") for name in ("doc", "upsert") if isinstance(body.get(name), Mapping)]
    return found or ("script" if "script" in body else "not a document")


def touches(document: Mapping[str, Any], source: str) -> str:
    """What a partial document says of a field: "whole" gives or clears it, "part" changes some of it, "" leaves it."""
    if source in document:
        return "part" if isinstance(document[source], Mapping) else "whole"
    head, dot, rest = source.partition(".")
    if not dot or head not in document:
        return ""
    inner = document[head]
    return touches(inner, rest) if isinstance(inner, Mapping) else "whole"


def at(action: Mapping[str, Any], path: Path) -> Any:
    """What stands at a path."""
    for name in path:
        action = action[name]
    return action


def changed(action: Any, extra: Mapping[Path, Mapping[str, Any]]) -> Any:
    """The action with some parts added to the documents in it: itself when there are none, else a copy."""
    for path, parts in extra.items():
        action = _with(action, path, parts)
    return action


def _with(action: Mapping[str, Any], path: Path, parts: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with some parts added at a path; what is not on the way is shared."""
    if not path:
        return {**action, **parts}
    return {**action, path[0]: _with(action[path[0]], path[1:], parts)}


def characters(action: Any) -> int:
    """About how much text is held, one level deep."""
    if isinstance(action, str | bytes):
        return len(action)
    if not isinstance(action, Mapping):
        return 0
    source = action.get("_source", action)
    values = source.values() if isinstance(source, Mapping) else [source]
    return sum(len(value) for value in values if isinstance(value, str | bytes))
