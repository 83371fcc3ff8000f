"""The text of one file, plain text or HTML, in the encoding that it names; and one record as JSON."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

from ndd_search.core.text.markup import strip_markup, title_of
from ndd_search.errors import InvalidDocument, MissingExtra

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CHARSET = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_HEAD = 4096  # bytes of a page in which its charset must be named; browsers look at the first 1,024
_PROBE = b"A\\x41\xff"  # an A and no second one in every encoding of pages
# Browsers read these names as encodings that hold more letters (WHATWG Encoding Standard).
_READ_AS = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}


class FileText(NamedTuple):
    """The text of a file. title: of an HTML page, else "". is_legible: whether all bytes were valid in its encoding."""

    title: str
    text: str
    is_legible: bool


def is_html(path: Path) -> bool:
    return path.suffix.lower() in (".html", ".htm")


def read_file(path: Path, main_text: bool = False) -> FileText:
    """Read the text of a file, also with .gz; of .html the text that a browser shows.

    The encoding is that of a byte order mark, else the one that an HTML page names, else UTF-8. An HTML page that names
    none and is not UTF-8 is read as windows-1252, as browsers do. Invalid bytes become U+FFFD.
    main_text: read only the article of .html, without navigation, headers and footers (see main_text_of).
    Raises MissingExtra for .html without the extra "html", and OSError.
    """
    raw, is_packed = path.read_bytes(), path.suffix.lower() == ".gz"
    try:
        raw = gzip.decompress(raw) if is_packed else raw
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidDocument(path, f"it is not a complete gzip file: {error}", "create it again") from None
    html = is_html(path.with_suffix("") if is_packed else path)
    text, is_legible = _decoded(raw, html)
    if not html:
        return FileText("", text, is_legible)
    body = (main_text_of(text) if main_text else None) or strip_markup(text)
    return FileText(title_of(text), body, is_legible)


def read_record(text: str) -> dict[str, Any]:
    """Return the record in a JSON object, or in a file that holds one. Raises InvalidDocument and OSError."""
    try:
        record = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(text, f"it is not JSON: {error}", "give one JSON object, or a file with one") from None
    if not isinstance(record, dict):
        raise InvalidDocument(text, "it is not a JSON object", "give one record with its fields")
    return record


def main_text_of(page: str) -> str | None:
    """Return the article of an HTML page, without navigation, headers and footers; None if none is found.

    Raises MissingExtra if the extra "main-text" is not installed.
    """
    try:
        import trafilatura
    except ModuleNotFoundError as error:
        if error.name != "trafilatura":
            raise
        raise MissingExtra("--main-text", "trafilatura", "main-text") from None
    article: str | None = trafilatura.extract(page, include_comments=False)
    return article


def read_text(path: str, stdin: IO[str]) -> str:
    """Read the text of a file as read_file does, or standard input for "-".

    Raises InvalidDocument if the text is not valid in its encoding, MissingExtra for .html without the extra "html".
    """
    if path == "-":
        try:
            return stdin.read() if stdin else ""
        except UnicodeDecodeError as error:
            raise InvalidDocument(path, f"it is not UTF-8 text: {error.reason}", "convert it to UTF-8") from None
    file = read_file(Path(path))
    if not file.is_legible:
        html = is_html(Path(path))
        problem = "it has bytes that are not valid in the encoding that it names" if html else "it is not UTF-8 text"
        raise InvalidDocument(path, problem, "convert it to UTF-8")
    return file.text


def _decoded(raw: bytes, html: bool) -> tuple[str, bool]:
    """Decode the bytes of a file; also return whether all of them were valid in the encoding."""
    marked = next((name for mark, name in _MARKS.items() if raw.startswith(mark)), None)
    named = marked or (_charset(raw) if html else None)
    for encoding in [named] if named else ["utf-8", "cp1252"] if html else ["utf-8"]:
        try:
            return raw.decode(encoding), True
        except UnicodeDecodeError:
            continue
    return raw.decode(named or "utf-8", "replace"), False


def _charset(raw: bytes) -> str | None:
    """The encoding that an HTML page names, None if it names none, an unknown one, or another codec."""
    match = _CHARSET.search(raw[:_HEAD])
    if match is None:
        return None
    try:
        name = codecs.lookup(match[1].decode()).name
        if name.startswith(("utf-16", "utf-32")):  # it cannot be: then the name could not have been read as ASCII
            return "utf-8"
        probe = _PROBE.decode(name, "replace")
    except (LookupError, UnicodeError):  # such as hex and idna
        return None
    return _READ_AS.get(name, name) if probe[:1] == "A" != probe[1:2] else None  # not EBCDIC, nor escapes
