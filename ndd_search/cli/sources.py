"""Documents out of a source: a file of documents, standard input, or a folder of texts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from ndd_search.cli.files import is_html, read_file, read_text
from ndd_search.cli.output import printable, warn
from ndd_search.cli.rows import STDIN, Document, Report, Rows, json_lines, open_text, read_rows
from ndd_search.documents import text_of, value_of
from ndd_search.embedded.stored import id_of, source_of, texts_of
from ndd_search.errors import InvalidDocument
from ndd_search.tuning.marked import safe

__all__ = [
    "PEEK",
    "Document",
    "SourceOptions",
    "input_lines",
    "json_lines",
    "open_text",
    "peek",
    "print_line",
    "read_documents",
    "read_text",
    "text_fields",
    "with_text",
]

PEEK = 500  # documents read before the first is indexed, to see whether they have the fields that are asked for

_TEXT_FIELDS = ("title", "headline", "name", "text", "body", "content", "description", "abstract")
_FOLDER_TYPES = (".txt", ".md", ".html", ".htm")
_ID_NAMES = ("id", "_id", "uuid", "guid", "url", "uri", "link", "key", "doi", "isbn", "sku")


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """How documents are taken out of a source.

    id: the field that holds a document's id; None for "_id" or "id".
    number: give a document without an id the name of its file and its line as one.
    main_text: of .html files only the article (see files.main_text_of).
    """

    id: str | None = None
    number: bool = False
    main_text: bool = False


def read_documents(source: Path, report: Report, options: SourceOptions) -> Iterator[Document]:
    """The documents of a source, in its order.

    source: a file as read_rows takes it, or a folder, whose .txt, .md and .html files are taken with their path as id,
    their name or the page's title as title, their text as body and their address as file.
    report: told a sentence for every line or file that cannot be taken.
    Raises InvalidDocument where no document has an id, and whatever read_rows raises.
    """
    if source.is_dir():
        if options.id or options.number:
            raise ValueError("--id and --number-lines are for files of documents: in a folder a file's path is its id")
        return _possible(_folder(source, report, options.main_text), report)
    return _possible(_with_ids(read_rows(source, report), source, report, options), report)


def text_fields(source: Path, documents: Iterable[Document]) -> tuple[list[str], Iterator[Document]]:
    """The fields of the first documents that usually hold text, and the documents again.

    Raises InvalidDocument when there is no such field, or no document.
    """
    first, documents = peek(source, documents)
    if found := [name for name in _TEXT_FIELDS if any(name in one for one in first)]:
        return found, documents
    raise InvalidDocument(
        source, f"which of its fields hold text? there are {_names(first)}", "say so: --text NAME,NAME"
    )


def with_text(
    source: Path, documents: Iterable[Document], fields: Sequence[str], remedy: str
) -> tuple[list[str], Iterator[Document]]:
    """The names among `fields` that no document read ahead has, and the documents again.

    Raises InvalidDocument, with the fields that there are, when no document has text in any of them.
    """
    first, documents = peek(source, documents)
    if not any(text_of(one, fields) for one in first):
        problem = f"{_nobody(first)} has text in {', '.join(fields)}; the fields there are {_names(first)}"
        raise InvalidDocument(source, problem, remedy)
    return [name for name in fields if all(value_of(one, name) is None for one in first)], documents


def peek(source: Path, documents: Iterable[Document]) -> tuple[list[Document], Iterator[Document]]:
    """The first documents, and all of them. Raises InvalidDocument when there are none."""
    waiting = iter(documents)
    first = list(islice(waiting, PEEK))
    if not first:
        wanted = ", ".join(_FOLDER_TYPES) if source.is_dir() else "document"
        raise InvalidDocument(source, f"it holds no {wanted} that can be taken", "name another one")
    return first, chain(first, waiting)


def input_lines() -> list[str]:
    """The lines of standard input, in UTF-8, with whatever ends them but the line feed.

    A byte that is no UTF-8 becomes a lone surrogate; print_line writes it as it was.
    """
    if sys.stdin is None:  # the caller has closed it
        return []
    lines = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\n")
    return lines if lines[-1] else lines[:-1]


def print_line(line: str) -> None:
    """Write a line of input_lines as it came; on a terminal, what the terminal would act upon is escaped."""
    if sys.stdout:  # there is none where the caller has closed it
        sys.stdout.flush()
        shown = printable(line.removesuffix("\r")) if sys.stdout.isatty() else line
        sys.stdout.buffer.write(shown.encode("utf-8", "surrogateescape") + b"\n")


def _possible(named: Iterable[tuple[str, Document]], report: Report) -> Iterator[Document]:
    """The documents that an index can take."""
    for name, document in named:
        try:
            id_of(document, name)
            source_of(document, name)
            texts_of(document, list(document), name)
        except InvalidDocument as error:
            _, problem, remedy = error.args
            report(f"{name} is left out, {problem}: {remedy}")
        else:
            yield document


def _with_ids(rows: Rows, source: Path, report: Report, options: SourceOptions) -> Iterator[tuple[str, Document]]:
    """The documents with an id each, and a name for messages.

    Raises InvalidDocument when none of the first documents has an id, or the field of options.id.
    """
    first = list(islice(rows, PEEK))
    documents = [document for _, document in first]
    if options.id and documents and all(document.get(options.id) in (None, "") for document in documents):
        problem = f"{_nobody(documents)} has a field {options.id!r}; the fields there are {_names(documents)}"
        raise InvalidDocument(source, problem, "name one that holds an id: --id NAME")
    if not options.id and not options.number and documents and not any(map(_has_id, documents)):
        problem = f"{_nobody(documents)} has an id; the fields there are {_names(documents)}"
        raise InvalidDocument(source, problem, _advice(documents))
    stem = "stdin" if source == STDIN else source.name
    for number, document in chain(first, rows):
        name = f"line {number}"
        if options.id and options.id != "_id" and document.get("_id") is not None:
            report(f'{name} is left out, it has an "_id" of its own beside {options.id!r}: rename that field')
        elif options.id and document.get(options.id) in (None, ""):
            report(f"{name} is left out, it has nothing in {options.id!r}, which is to hold its id")
        elif options.id:
            yield name, document if options.id in ("id", "_id") else {"_id": document[options.id], **document}
        elif _has_id(document):
            yield name, document
        elif options.number:
            others = {field: value for field, value in document.items() if field not in ("id", "_id")}
            yield name, {"id": f"{stem}:{number}", **others}
        else:
            report(f"{name} is left out, it has no id: name the field that holds it with --id, or --number-lines")


def _has_id(document: Document) -> bool:
    return any(document.get(name) not in (None, "") for name in ("_id", "id"))


def _advice(documents: Sequence[Document]) -> str:
    """What to do about documents without an id: the fields whose names and values look like one."""
    likely = [
        name
        for name in documents[0]
        if (name.lower() in _ID_NAMES or name.lower().endswith("id"))
        and len({str(one.get(name) or "") for one in documents} - {""}) == len(documents)
    ]
    number = "number the lines: --number-lines"
    if likely:
        also = f" (or {', '.join(likely[1:])})" if likely[1:] else ""
        return f"name the field that holds it: --id {likely[0]}{also}; or {number}"
    return f"name the field that holds it: --id NAME; or {number}"


def _nobody(first: Sequence[Document]) -> str:
    """No document, as far as was read."""
    return "no document" if len(first) < PEEK else f"none of the first {PEEK} documents"


def _names(documents: Iterable[Document], most: int = 40) -> str:
    names = list(dict.fromkeys(safe(str(name)) for one in documents for name in one))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _folder(folder: Path, report: Report, main_text: bool) -> Iterator[tuple[str, Document]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in _FOLDER_TYPES or not path.is_file():
            continue
        name = safe(str(path))
        try:
            title, text, legible = read_file(path, main_text)
        except OSError as error:
            report(f"{name} is left out: {error.strerror}")
            continue
        if not legible:
            what = "of the encoding that it names, or UTF-8" if is_html(path) else "UTF-8"
            warn(f"{name} has characters that are no {what}, kept as \ufffd")
        fields = {"title": title or path.stem, "body": _without(title, text), "file": path.resolve().as_uri()}
        yield name, {"id": path.relative_to(folder).as_posix(), **fields}


def _without(title: str, text: str) -> str:
    """The text of a page without the title that it begins with, which is a field of its own."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if title and " ".join(first.split()) == title else text
