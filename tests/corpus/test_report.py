"""The report of the groups of a collection."""

from __future__ import annotations

from pathlib import Path

import ndd_search as ndd
from ndd_search.corpus.groups_report import write_report
from tests.corpus import made
from tests.corpus.made import DOCUMENTS


def test_the_report_shows_the_largest_groups_and_no_markup_of_the_texts(tmp_path: Path) -> None:
    documents = [{**one, "body": f"{one['body']} <b>bold</b>", "site": "<i>"} for one in DOCUMENTS]
    corpus = ndd.Corpus.read(documents, text="body", fields=["site"])
    write_report(corpus.groups(0.5), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "1 (25.0%)" in page
    assert "2 documents led by a" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "<b>bold" not in page
    assert "<i>" not in page
    assert "default-src 'none'" in page  # nothing is loaded, and no script runs, whatever the texts hold


def test_the_report_shows_the_frames_of_a_collection_as_text(tmp_path: Path) -> None:
    frame = "home about contact search this site imprint and terms of use all rights reserved by the valley gazette"
    texts = made.texts(60, framed=0.0, copies=0.0)
    documents = [{"text": f"{frame} {text}"} for text in texts]
    write_report(ndd.Corpus.read(documents, text="text").groups(), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    passages = page.partition("Passages that many documents share")[2]
    assert "100.0%" in passages
    assert "terms of use all rights reserved" in passages
