"""Documents from mails: a file of one (.eml), or a mailbox of many (.mbox)."""

from __future__ import annotations

import mailbox
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from ndd_search.core.text.markup import strip_markup
from ndd_search.core.text.printable import safe

MAILS = (".eml", ".mbox")  # file names end so


def read_mails(
    path: Path, name: str, report: Callable[[str], None], threads: dict[str, str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the mails of a file as documents with their numbers, from 1. Raises MissingExtra without the extra "html".

    name:    the id of the mail of an .eml; in an .mbox "#" and a number follow.
    report:  called with a sentence for a mail that is skipped.
    threads: of mails that were read before by their Message-ID; those of this file are added.

    Fields of a document, after its "id": "title", the subject; "body", its text with what it quotes (of HTML what a
    browser shows); "from", "to", "cc", "date" (ISO 8601) and "message_id"; "thread", the Message-ID of the mail that
    began it: that of the first of References, else that of the mail that In-Reply-To names, else its own;
    "attachments", the SHA-256 of each, ascending, and "attachment_names" in the same order.
    """
    is_one = path.suffix.lower() == ".eml"
    with nullcontext() if is_one else closing(mailbox.mbox(path, create=False)) as box:
        for number, raw in enumerate(map(box.get_bytes, box.iterkeys()) if box is not None else [path.read_bytes()], 1):
            id = name if is_one else f"{name}#{number}"
            try:
                yield number, _document(raw, id, threads)
            except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:  # damaged
                report(f"{safe(id)} was skipped, Python's email package cannot read it: {error!r}")


def _document(raw: bytes, id: str, threads: dict[str, str]) -> dict[str, Any]:
    mail = message_from_bytes(raw, policy=policy.default)
    leaves = _leaves(mail)
    files = [leaf for leaf in leaves if not _is_text(leaf)]
    attached = sorted((sha256(_bytes(leaf)).hexdigest(), _clean(leaf.get_filename(""))) for leaf in files)
    own, answered, mentioned = (_header(mail, name).split() for name in ("message-id", "in-reply-to", "references"))
    own_id, *_ = *own, id
    before, *_ = *mentioned, *answered, own_id
    threads[own_id] = threads.get(before, before)
    return {
        "id": id,
        "title": _header(mail, "subject"),
        "body": "\n\n".join(_text(leaf) for leaf in leaves if _is_text(leaf)),
        **{name: _header(mail, name) for name in ("from", "to", "cc")},
        "date": _date(mail),
        "message_id": own_id,
        "thread": threads[own_id],
        "attachments": [digest for digest, _ in attached],
        "attachment_names": [name for _, name in attached],
    }


def _leaves(part: EmailMessage) -> list[EmailMessage]:
    """The parts of a mail, an attached one as a whole; of alternatives, no other text than the plain one."""
    if not part.is_multipart() or part.get_content_maintype() == "message":
        return [part]
    leaves = [leaf for inner in part.iter_parts() for leaf in _leaves(cast(EmailMessage, inner))]
    plain = [leaf for leaf in leaves if leaf.get_content_type() == "text/plain" and _text(leaf)]
    if plain and part.get_content_subtype() == "alternative":
        return [leaf for leaf in leaves if leaf in plain or not _is_text(leaf)]
    return leaves


def _is_text(leaf: EmailMessage) -> bool:
    """Whether a leaf is shown as text; a damaged mail may be a "multipart" of nothing but its text."""
    return leaf.get_content_maintype() in ("text", "multipart") and not leaf.is_attachment()


def _bytes(leaf: EmailMessage) -> bytes:
    found = leaf.get_payload(decode=True)
    return found if isinstance(found, bytes) else b"".join(one.as_bytes() for one in leaf.iter_parts())


def _text(leaf: EmailMessage) -> str:
    try:
        text = _bytes(leaf).decode(leaf.get_content_charset("utf-8"), "replace")
    except LookupError:  # an unknown charset
        text = _bytes(leaf).decode("utf-8", "replace")
    text = strip_markup(text) if leaf.get_content_subtype() == "html" else text
    return text.replace("\r\n", "\n").strip("\n")


def _header(mail: EmailMessage, name: str) -> str:
    try:
        found = str(mail.get(name, ""))
    except Exception:  # the parser of headers fails in many ways on what no standard allows
        found = next(value for given, value in mail.raw_items() if given.lower() == name)
    return _clean(found)


def _date(mail: EmailMessage) -> str | None:
    try:
        return parsedate_to_datetime(_header(mail, "date")).isoformat()
    except (OverflowError, TypeError, ValueError):  # none, or none that any standard allows
        return None


def _clean(text: str) -> str:
    """A text that UTF-8 can hold, on one line."""
    return " ".join(text.encode("utf-8", "replace").decode().split())
