"""Files of mails as documents, and the mail that holds the others' text in the place of these."""

from __future__ import annotations

import csv
import json
import mailbox
from email.message import EmailMessage
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.cli import main
from ndd_search.sources.documents_with_ids import SourceOptions, read_documents

ASKED = (
    "Dear all,\n\nthe invoice of the Northern Dredging Company is due on Friday, and nobody has signed it so far.\n"
    "Could you please tell me who was there when the barge arrived?\n\nAnn"
)
ANSWERED = "Bob and I were there; the barge came at nine in the evening, two hours late."
AGREED = "That is what the harbour master has in his book, too. I am going to sign it today."
PLAN = b"%PDF the plan of the harbour"


def mail(number: int, body: str, subject: str = "The barge", **headers: str) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = f"p{number}@example.org", "all@example.org", subject
    made["Date"], made["Message-ID"] = f"Fri, {number} Jan 2026 10:00:00 +0100", f"<{number}@example.org>"
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content(body)
    return made


def quoted(text: str, who: str) -> str:
    return f"On Friday, {who} wrote:\n" + "".join(f"> {line}\n" for line in text.splitlines())


def case(folder: Path) -> Path:
    """A folder of a note, a mail with an attachment and a mailbox."""
    box = mailbox.mbox(folder / "inbox.mbox")
    answer = f"{ANSWERED}\n\n{quoted(ASKED, 'Ann')}"
    box.add(mail(1, ASKED))
    box.add(mail(2, answer, "Re: The barge", In_Reply_To="<1@example.org>", References="<1@example.org>"))
    box.add(mail(3, f"{AGREED}\n\n{quoted(answer, 'Bob')}", "Re: The barge", In_Reply_To="<2@example.org>"))
    box.add(mail(4, ASKED.replace("Friday", "Monday"), "The barge again"))
    box.close()
    with_plan = mail(5, ANSWERED, "Plan")
    with_plan.add_alternative(f"<p>{ANSWERED}</p>", subtype="html")
    with_plan.add_attachment(PLAN, maintype="application", subtype="pdf", filename="Plan, früher.pdf")
    (folder / "sent.eml").write_bytes(bytes(with_plan))
    (folder / "note.txt").write_text(AGREED)
    return folder


def read(path: Path) -> dict[str, dict[str, Any]]:
    said: list[str] = []
    found = {one["id"]: one for one in read_documents(path, SourceOptions(), report=said.append, note=said.append)}
    assert said == []
    return found


def test_a_folder_of_mixed_files_gives_every_mail_with_its_thread_and_attachments(tmp_path: Path) -> None:
    found = read(case(tmp_path))
    assert list(found) == [*(f"inbox.mbox#{number}" for number in range(1, 5)), "note.txt", "sent.eml"]
    assert [found[f"inbox.mbox#{number}"]["thread"] for number in range(1, 5)] == [
        *["<1@example.org>"] * 3, "<4@example.org>"
    ]  # fmt: skip
    sent = found["sent.eml"]
    assert (sent["title"], sent["body"], sent["from"]) == ("Plan", ANSWERED, "p5@example.org")
    assert sent["date"] == "2026-01-05T10:00:00+01:00"
    assert (sent["attachments"], sent["attachment_names"]) == ([sha256(PLAN).hexdigest()], ["Plan, früher.pdf"])
    assert found["inbox.mbox#1"]["body"] == ASKED
    assert read(tmp_path / "inbox.mbox").keys() == {f"inbox.mbox#{number}" for number in range(1, 5)}


def test_no_text_of_a_mail_is_lost_and_an_attached_mail_is_an_attachment(tmp_path: Path) -> None:
    made = mail(1, "before")
    made.add_attachment("<p>between &amp; all</p>", subtype="html", disposition="inline")
    made.add_attachment("after", disposition="inline")
    made.add_attachment(mail(2, ASKED))
    made.add_attachment("a,b\n", subtype="csv", filename="table.csv")
    (tmp_path / "one.EML").write_bytes(bytes(made))
    found = read(tmp_path)["one.EML"]
    assert found["body"] == "before\n\nbetween & all\n\nafter"
    assert sorted(found["attachment_names"]) == ["", "table.csv"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no header at all",
        b"Subject: =?nope?B?!!?=\nDate: yesterday\nFrom: <<>\nMessage-ID: [\n\nbody",
        b"Date: Fri, 3 Jan 2025 10:00:00 +99999999999999\n\nbody",
        b"Content-Type: multipart/mixed\n\nbody",
        b"Content-Type: text/plain; charset=nope\n\n\xff\xfe body",
        b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n%%%",
        b"Subject: \xff\xfe\nContent-Type: message/rfc822\n\nSubject: inner\n\nbody",
    ],
)
def test_a_damaged_mail_is_read_as_far_as_it_can_be(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "damaged.eml").write_bytes(raw)
    assert json.loads(json.dumps(read(tmp_path)["damaged.eml"]))["id"] == "damaged.eml"


def test_the_mail_that_holds_the_others_stands_for_them(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "groups.csv"
    command = ["corpus", "groups", str(case(tmp_path)), "--text", "body", "--out", str(out)]
    fields = ["--set", "guards=same:attachments", "--fields", "thread,attachments"]
    assert main([*command, "--method", "inclusive", *fields]) == 0
    with out.open() as file:
        rows = {row["document"]: row for row in csv.DictReader(file)}
    box = "inbox.mbox#"
    # The mail with a plan stands alone, although its text is in others; so does the one that differs in a word.
    assert {name: row["group"] for name, row in rows.items()} == {
        f"{box}1": f"{box}3", f"{box}2": f"{box}3", f"{box}3": f"{box}3", f"{box}4": f"{box}4",
        "note.txt": "note.txt", "sent.eml": "sent.eml",
    }  # fmt: skip
    assert rows["sent.eml"]["document.attachments"] == json.dumps([sha256(PLAN).hexdigest()])
    assert rows[f"{box}2"]["document.thread"] == "<1@example.org>"
    assert rows[f"{box}2"]["rule"] == "method inclusive, recipe w3-k64-v4"
    assert 0 < float(rows[f"{box}1"]["similarity"]) < float(rows[f"{box}2"]["similarity"]) < 1
    assert main([*command, "--method", "inclusive", "--min-similarity", "0.5"]) == 2
    assert "leave out min_similarity" in capsys.readouterr().err


def test_a_text_is_inside_another_with_all_its_paragraphs_in_their_order() -> None:
    first, second = ASKED.split("\n\n", 1)
    texts = {
        "whole": ASKED,
        "between": f"{first}\n\nSee below.\n\n{second}",
        "turned": f"{second}\n\n{first}",
        "same": ASKED.upper(),
        "half": f"{ANSWERED}\n\n{second.partition('Could')[0]}",
    }
    corpus = ndd.Corpus.read([{"id": id, "text": text} for id, text in texts.items()], text="text")
    groups = {row["document"]: row["group"] for row in corpus.groups(method="inclusive").rows()}
    assert groups == {**dict.fromkeys(("whole", "between", "same"), "between"), "turned": "turned", "half": "half"}
    with pytest.raises(ValueError, match="and keep"):
        corpus.groups(method="inclusive", keep=["longest"])
    with pytest.raises(ValueError, match="read only once"):
        ndd.Corpus.read(iter([{"text": ASKED}]), text="text").groups(method="inclusive")


def test_an_empty_mailbox_holds_no_mail(tmp_path: Path) -> None:
    (tmp_path / "empty.mbox").write_bytes(b"")
    assert read(tmp_path) == {}
