"""The report of the groups of a collection."""

from __future__ import annotations

from pathlib import Path

import ndd_search as ndd
from ndd_search.corpus.groups_report import write_report
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
