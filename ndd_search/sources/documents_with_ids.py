"""Documents with ids from a file of documents, from standard input, or from a folder of texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from ndd_search.core.document_fields import absent_fields, text_of
from ndd_search.core.exact_numbers import holds_written
from ndd_search.core.text.printable import safe
from ndd_search.embedded.stored_document import id_of, source_of, texts_of
from ndd_search.errors import InvalidDocument
from ndd_search.sources.csv_and_json import STDIN, Document, Report, Rows, read_rows
from ndd_search.sources.mails import MAILS, read_mails
from ndd_search.sources.text_files import is_html, read_file

PEEK = 500  # documents read before the first is indexed, to check that they have the requested fields

_TEXT_FIELDS = ("title", "headline", "name", "text", "body", "content", "description", "abstract")
_FOLDER_TYPES = (".txt", ".md", ".html", ".htm", *MAILS)
_ID_NAMES = ("id", "_id", "uuid", "guid", "url", "uri", "link", "key", "doi", "isbn", "sku")


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """How a source is read.

    id:        the field that holds the id of a document; None for "_id" or "id".
    number:    give each document without an id the name of its file and its line number as id.
    main_text: keep only the article of .html files (see files.main_text_of).
    """

    id: str | None = None
    number: bool = False
    main_text: bool = False


def read_documents(source: Path, options: SourceOptions, *, report: Report, note: Report) -> Iterator[Document]:
    """Yield the documents of a source, in its order.

    source: a file as for read_rows, or a folder. In a folder every .txt, .md and .html file is a document: its path is
            the id, its name or the title of the page the title, its text the body, and its address the field "file".
            So is every mail of .eml and .mbox files (see read_mails).
    report: called with a sentence for every line or file that is skipped.
    note:   called with a sentence for everything that was read in another way than written, but not skipped.
    Raises InvalidDocument if no document has an id, and whatever read_rows raises.
    """
    if source.is_dir():
        if options.id or options.number:
            raise ValueError("--id and --number-lines are for files of documents: in a folder a file's path is its id")
        return _indexable(_folder(source, options.main_text, report, note), report, note)
    rows = read_rows(source, report, note, exact=True)
    return _indexable(_with_ids(rows, source, options, report), report, note)


def text_fields(source: Path, documents: Iterable[Document]) -> tuple[list[str], Iterator[Document]]:
    """Return the fields of the first documents whose names usually hold text, and all documents.

    Raises InvalidDocument if there is no such field, or no document.
    """
    first, documents = peek(source, documents)
    if names := [name for name in _TEXT_FIELDS if any(name in document for document in first)]:
        return names, documents
    problem = f"none of its fields has a name that usually holds text; the fields there are {_names(first)}"
    raise InvalidDocument(source, problem, "name the fields that hold the text: --text NAME,NAME")


def with_text(
    source: Path, documents: Iterable[Document], fields: Sequence[str], remedy: str
) -> tuple[list[str], Iterator[Document]]:
    """Return the names in `fields` that none of the first documents has, and all documents.

    Raises InvalidDocument, naming the fields that exist, if none of the first documents has text in any of `fields`.
    """
    first, documents = peek(source, documents)
    if not any(text_of(document, fields) for document in first):
        problem = f"{_no_document(first)} has text in {', '.join(fields)}; the fields there are {_names(first)}"
        raise InvalidDocument(source, problem, remedy)
    return absent_fields(fields, first), documents


def peek(source: Path, documents: Iterable[Document]) -> tuple[list[Document], Iterator[Document]]:
    """Return the first PEEK documents, and all documents. Raises InvalidDocument if there are none."""
    remaining = iter(documents)
    first = list(islice(remaining, PEEK))
    if not first:
        kind = ", ".join(_FOLDER_TYPES) if source.is_dir() else "document"
        raise InvalidDocument(source, f"it holds no {kind} that can be indexed", "name another one")
    return first, chain(first, remaining)


def _indexable(named: Iterable[tuple[str, Document]], report: Report, note: Report) -> Iterator[Document]:
    """Yield the documents that an index accepts; report the others, and note the first with too long a number."""
    is_noted = False
    for name, document in named:
        try:
            id_of(document, name)
            source_of(document, name)
            texts_of(document, list(document), name)
        except InvalidDocument as error:
            _, problem, remedy = error.args
            report(f"{name} was skipped, {problem}: {remedy}")
        else:
            if not is_noted and holds_written(document):
                is_noted = True
                note(f"{name} has a number of more digits than are stored: write such numbers as texts to keep them")
            yield document


def _with_ids(rows: Rows, source: Path, options: SourceOptions, report: Report) -> Iterator[tuple[str, Document]]:
    """Yield each document with its id, and a name for messages.

    Raises InvalidDocument if none of the first documents has an id, or the field of options.id.
    """
    first = list(islice(rows, PEEK))
    documents = [document for _, document in first]
    if options.id and documents and all(document.get(options.id) in (None, "") for document in documents):
        problem = f"{_no_document(documents)} has a field {options.id!r}; the fields there are {_names(documents)}"
        raise InvalidDocument(source, problem, "name one that holds an id: --id NAME")
    if not options.id and not options.number and documents and not any(map(_has_id, documents)):
        problem = f"{_no_document(documents)} has an id; the fields there are {_names(documents)}"
        raise InvalidDocument(source, problem, _id_remedy(documents))
    stem = "stdin" if source == STDIN else source.name
    for number, document in chain(first, rows):
        name = f"line {number}"
        if options.id and options.id != "_id" and document.get("_id") is not None:
            report(f'{name} was skipped, it has a field "_id" beside {options.id!r}: rename that field')
        elif options.id and document.get(options.id) in (None, ""):
            report(f"{name} was skipped, its field {options.id!r}, which holds the id, is empty")
        elif options.id:
            yield name, document if options.id in ("id", "_id") else {"_id": document[options.id], **document}
        elif _has_id(document):
            yield name, document
        elif options.number:
            others = {field: value for field, value in document.items() if field not in ("id", "_id")}
            yield name, {"id": f"{stem}:{number}", **others}
        else:
            report(f"{name} was skipped, it has no id: name the field that holds it with --id, or use --number-lines")


def _has_id(document: Document) -> bool:
    return any(document.get(name) not in (None, "") for name in ("_id", "id"))


def _id_remedy(documents: Sequence[Document]) -> str:
    """What to do about documents without an id: name the fields whose names and values look like one."""
    likely = [
        name
        for name in documents[0]
        if (name.lower() in _ID_NAMES or name.lower().endswith("id"))
        and len({str(document.get(name) or "") for document in documents} - {""}) == len(documents)
    ]
    number = "number the lines: --number-lines"
    if likely:
        also = f" (or {', '.join(likely[1:])})" if likely[1:] else ""
        return f"name the field that holds it: --id {likely[0]}{also}; or {number}"
    return f"name the field that holds it: --id NAME; or {number}"


def _no_document(first: Sequence[Document]) -> str:
    """The subject "no document" of a sentence, limited to what was read."""
    return "no document" if len(first) < PEEK else f"none of the first {PEEK} documents"


def _names(documents: Iterable[Document], most: int = 40) -> str:
    names = list(dict.fromkeys(safe(str(name)) for document in documents for name in document))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _folder(folder: Path, main_text: bool, report: Report, note: Report) -> Iterator[tuple[str, Document]]:
    threads: dict[str, str] = {}
    for path in _files(folder, report):
        if path.suffix.lower() not in _FOLDER_TYPES or not path.is_file():
            continue
        name, id, file = safe(str(path)), path.relative_to(folder).as_posix(), path.resolve().as_uri()
        try:
            if path.suffix.lower() in MAILS:
                yield from ((name, {**mail, "file": file}) for _, mail in read_mails(path, id, report, threads))
                continue
            title, text, is_legible = read_file(path, main_text)
        except OSError as error:
            report(f"{name} was skipped: {error.strerror}")
            continue
        if not is_legible:
            what = "in neither the encoding that it names nor UTF-8" if is_html(path) else "not UTF-8"
            note(f"{name} has characters that are {what}: they were replaced by \ufffd")
        yield name, {"id": id, "title": title or path.stem, "body": _without(title, text), "file": file}


def _files(folder: Path, report: Report) -> list[Path]:
    """Return the files in a folder and the folders in it, in order; report folders that cannot be read."""

    def unreadable(error: OSError) -> None:
        report(f"{safe(str(error.filename))} was skipped: {error.strerror}")

    return sorted(Path(at, name) for at, _, names in os.walk(folder, onerror=unreadable) for name in names)


def _without(title: str, text: str) -> str:
    """Remove the title at the beginning of a page's text: the title is a field of its own."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if title and " ".join(first.split()) == title else text
