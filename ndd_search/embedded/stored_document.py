"""The stored form of a document in an embedded index: its id, its JSON, and its normalised text."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, NamedTuple

from ndd_search.core.document_fields import text_of
from ndd_search.errors import InvalidDocument

LONGEST_ID = 512  # bytes, as in Elasticsearch

# Normalisation sorts the combining marks of a letter, in quadratic time. No real letter has thirty.
_TOO_MANY_MARKS = re.compile(r"([^\w\s]{30})[^\w\s]+")


class StoredHit(NamedTuple):
    """A hit without its document, which is read when the hit is shown.

    segment, number: the address of the document in this state of the index. sketch: little-endian int32; empty if the
    hit comes from a cached stream, which holds the sketches itself.
    """

    id: str
    score: float
    segment: int
    number: int
    sketch: bytes = b""


def columns_of(hits: Sequence[StoredHit]) -> list[list[Any]]:
    """Return hits as columns for a cache, without their sketches."""
    return [list(column) for column in zip(*(hit[:-1] for hit in hits), strict=True)]


def hits_of_columns(columns: Sequence[Sequence[Any]]) -> Iterator[StoredHit]:
    return starmap(StoredHit, zip(*columns, strict=True))


def id_of(document: Any, which: str) -> str:
    """Return the id of a document, from "_id" or "id".

    which: the name of the document in errors. Raises InvalidDocument if it is not a mapping or has no valid id.
    """
    if not isinstance(document, Mapping):
        raise InvalidDocument(which, f"it is {type(document).__name__}, not a mapping", "give dicts")
    id = document.get("_id")
    if id is None:
        id = document.get("id")
    if id is None or id == "":
        raise InvalidDocument(which, "it has no id", 'give it a string or an integer under "id"')
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise InvalidDocument(which, f"its id is {id!r}", 'give it a string or an integer under "id"')
    if not possible_id(id):
        long = f"its id does not fit in {LONGEST_ID} bytes of UTF-8"
        is_odd = isinstance(id, str) and any("\ud800" <= one <= "\udfff" for one in id)
        what = "its id has a lone surrogate, which UTF-8 cannot hold" if is_odd else long
        raise InvalidDocument(which, what, "give it another one")
    return str(id)


def check_id(id: Any) -> None:
    """Raise TypeError unless an id is a string or an integer."""
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise TypeError(f"an id must be a string or an integer, got {id!r}")


def possible_id(id: str | int) -> bool:
    """Whether a document can have this id."""
    try:
        return 0 < len(str(id).encode()) <= LONGEST_ID
    except ValueError:  # a lone surrogate, or a number of thousands of digits
        return False


def source_of(document: Mapping[str, Any], which: str) -> bytes:
    """Encode a document as JSON, in UTF-8.

    Raises InvalidDocument if it cannot be written as JSON, or JSON would change its keys.
    """
    try:
        written = json.dumps(dict(document), ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
        if (key := _key_of_other_type(document)) is not None:
            problem = f"its key {key[0]!r} is {type(key[0]).__name__}, and JSON would make it a string"
            raise InvalidDocument(which, problem, "make every key a string")
        return written
    except RecursionError:
        raise InvalidDocument(which, "it is nested too deep", "flatten it") from None
    except (TypeError, ValueError) as error:
        raise InvalidDocument(which, f"it cannot be written as JSON: {error}", "convert it first") from None


def texts_of(document: Mapping[str, Any], fields: Sequence[str], which: str) -> list[str]:
    """Return the text of each field, "" if it has none. Raises InvalidDocument if a value contains itself."""
    try:
        return [text_of(document, [field]) or "" for field in fields]
    except InvalidDocument as error:
        _, problem, remedy = error.args
        raise InvalidDocument(which, problem, remedy) from None


def _key_of_other_type(value: Any) -> tuple[Any] | None:
    """Find a key that is not a string, in a value or inside it; returned in a tuple, None if there is none."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                return (key,)
            if isinstance(inner, Mapping | list | tuple) and (found := _key_of_other_type(inner)):
                return found
    elif isinstance(value, list | tuple):
        for inner in value:
            if isinstance(inner, Mapping | list | tuple) and (found := _key_of_other_type(inner)):
                return found
    return None


def document_of(source: bytes) -> dict[str, Any]:
    """Decode a document that source_of wrote."""
    document: dict[str, Any] = json.loads(source.decode("utf-8", "surrogatepass"))
    return document


def searchable(text: str) -> str:
    """Normalise a text for searches: NFKC, so that both encodings of é are equal; lone surrogates are replaced."""
    if text.isascii():
        return text
    whole = text.encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFKC", _TOO_MANY_MARKS.sub(r"\1", whole))
