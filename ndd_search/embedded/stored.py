"""A document as an embedded index keeps it: its id, itself as JSON, and its text as the engine can take it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ndd_search.documents import text_of
from ndd_search.errors import InvalidDocument

LONGEST_ID = 512  # bytes, as in Elasticsearch

# Combining marks are put into an order, which takes quadratic time: no letter has thirty.
_TOO_MANY_MARKS = re.compile(r"([^\w\s]{30})[^\w\s]+")


class StoredHit(NamedTuple):
    """A hit without its document, which is read when it is shown.

    sketch: little-endian int32. segment, number: where the document is in this state of the index.
    """

    id: str
    score: float
    sketch: bytes
    segment: int
    number: int


def id_of(document: Any, which: str) -> str:
    """The id of a document, under "_id" or "id".

    which: names the document in an error. Raises InvalidDocument for what is no mapping or has no usable id.
    """
    if not isinstance(document, Mapping):
        raise InvalidDocument(which, f"it is {type(document).__name__}, not a mapping", "give dicts")
    id = document.get("_id")
    if id is None:
        id = document.get("id")
    if id is None or id == "":
        raise InvalidDocument(which, "it has no id", 'give it a text or a whole number under "id"')
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise InvalidDocument(which, f"its id is {id!r}", 'give it a text or a whole number under "id"')
    if not possible_id(id):
        raise InvalidDocument(which, f"its id does not fit in {LONGEST_ID} bytes of UTF-8", "give it another one")
    return str(id)


def check_id(id: Any) -> None:
    """Raise TypeError unless this is a text or a whole number, as every id is."""
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise TypeError(f"an id is a text or a whole number, got {id!r}")


def possible_id(id: str | int) -> bool:
    """Whether a document can have this id."""
    try:
        return 0 < len(str(id).encode()) <= LONGEST_ID
    except ValueError:  # a lone surrogate, or a number of thousands of digits
        return False


def source_of(document: Mapping[str, Any], which: str) -> bytes:
    """The document as JSON, UTF-8.

    Raises InvalidDocument for one that cannot be written as JSON, or whose keys JSON would change.
    """
    try:
        written = json.dumps(dict(document), ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
        if (key := _no_text_key(document)) is not None:
            problem = f"its key {key[0]!r} is {type(key[0]).__name__}, and JSON would make it a text"
            raise InvalidDocument(which, problem, "make every key a text")
        return written
    except RecursionError:
        raise InvalidDocument(which, "it is nested too deep", "flatten it") from None
    except (TypeError, ValueError) as error:
        raise InvalidDocument(which, f"it cannot be written as JSON: {error}", "convert it first") from None


def texts_of(document: Mapping[str, Any], fields: Sequence[str], which: str) -> list[str]:
    """The text of each field, "" where there is none. Raises InvalidDocument for a field that holds itself."""
    try:
        return [text_of(document, [field]) or "" for field in fields]
    except InvalidDocument as error:
        _, problem, remedy = error.args
        raise InvalidDocument(which, problem, remedy) from None


def _no_text_key(value: Any) -> tuple[Any] | None:
    """A key that is no text, in a mapping or in what it holds; None when there is none."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                return (key,)
            if isinstance(inner, Mapping | list | tuple) and (found := _no_text_key(inner)):
                return found
    elif isinstance(value, list | tuple):
        for inner in value:
            if isinstance(inner, Mapping | list | tuple) and (found := _no_text_key(inner)):
                return found
    return None


def document_of(source: bytes) -> dict[str, Any]:
    """The document that source_of wrote."""
    document: dict[str, Any] = json.loads(source.decode("utf-8", "surrogatepass"))
    return document


def searchable(text: str) -> str:
    """The text as it is searched: NFKC, so that both ways to write an é are one word; lone surrogates replaced."""
    if text.isascii():
        return text
    whole = text.encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFKC", _TOO_MANY_MARKS.sub(r"\1", whole))
