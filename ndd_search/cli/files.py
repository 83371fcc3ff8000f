"""The text of one file: plain text or HTML, in the encoding that it names."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import IO, NamedTuple

from ndd_search.errors import InvalidDocument, MissingExtra
from ndd_search.text.markup import strip_markup, title_of

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CHARSET = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_HEAD = 4096  # bytes of a page in which its charset must be named; browsers look at the first 1,024
# Browsers read these names as encodings that hold more letters (WHATWG Encoding Standard).
_READ_AS = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}


class FileText(NamedTuple):
    """What a file says. title: of an HTML page, else "". legible: whether all its bytes were of its encoding."""

    title: str
    text: str
    legible: bool


def is_html(path: Path) -> bool:
    return path.suffix.lower() in (".html", ".htm")


def read_file(path: Path, main_text: bool = False) -> FileText:
    """The text of a file; of .html what a reader would see.

    The encoding is that of a byte order mark, of an HTML page the one that the page names, else UTF-8; an HTML page
    that names none and is no UTF-8 is read as windows-1252, as browsers do. Other bytes become U+FFFD.
    main_text: of .html only the article, without navigation and the like (see main_text_of).
    Raises MissingExtra for .html without the extra "html", OSError.
    """
    html = is_html(path)
    text, legible = _decoded(path.read_bytes(), html)
    if not html:
        return FileText("", text, legible)
    body = (main_text_of(text) if main_text else None) or strip_markup(text)
    return FileText(title_of(text), body, legible)


def main_text_of(page: str) -> str | None:
    """The article of an HTML page, without navigation, headers and footers; None when there is none to be found.

    Raises MissingExtra without the extra "main-text".
    """
    try:
        import trafilatura
    except ModuleNotFoundError as error:
        if error.name != "trafilatura":
            raise
        raise MissingExtra("--main-text", "trafilatura", "main-text") from None
    found: str | None = trafilatura.extract(page, include_comments=False)
    return found


def read_text(path: str, stdin: IO[str]) -> str:
    """The text of a file, as in a folder of texts, or of standard input for "-".

    Raises InvalidDocument for what is not of the encoding that it names, MissingExtra for .html without the extra
    "html".
    """
    if path == "-":
        try:
            return stdin.read() if stdin else ""
        except UnicodeDecodeError as error:
            raise InvalidDocument(path, f"it is no UTF-8 text: {error.reason}", "convert it") from None
    found = read_file(Path(path))
    if not found.legible:
        html = is_html(Path(path))
        problem = "it has bytes that are not of the encoding that it names" if html else "it is no UTF-8 text"
        raise InvalidDocument(path, problem, "convert it")
    return found.text


def _decoded(raw: bytes, html: bool) -> tuple[str, bool]:
    """The text of some bytes, and whether all of them were of the encoding."""
    marked = next((name for mark, name in _MARKS.items() if raw.startswith(mark)), None)
    named = marked or (_charset(raw) if html else None)
    for encoding in [named] if named else ["utf-8", "cp1252"] if html else ["utf-8"]:
        try:
            return raw.decode(encoding), True
        except UnicodeDecodeError:
            continue
    return raw.decode(named or "utf-8", "replace"), False


def _charset(raw: bytes) -> str | None:
    """The encoding that an HTML page names, None when it names none that is known."""
    found = _CHARSET.search(raw[:_HEAD])
    if found is None:
        return None
    try:
        name = codecs.lookup(found[1].decode()).name
    except (LookupError, UnicodeDecodeError):
        return None
    if name.startswith(("utf-16", "utf-32")):  # the page could not be read so far if that were true
        return "utf-8"
    return _READ_AS.get(name, name)
