"""Mirrored hosts, made out of the Factbook: a moved folder, a partial mirror, and a host that only shares a frame."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.cli import main
from ndd_search.corpus import mirrored_hosts as hosts_module
from ndd_search.corpus.mirrored_hosts import Hosts
from tests import collections

FRAME = (
    "Home About Contact Countries Maps References Appendices Search the site by country name or by topic of interest"
)
FRAME += " Please send questions and comments to the editors of this site who will answer within a week or so"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Different texts of the Factbook, of which none is a near-duplicate of another."""
    documents = [{"id": one["id"], "text": one["text"]} for one in collections.read("factbook")[:700]]
    unique = ndd.Corpus.read(documents, text="text").groups(0.2).unique_documents()
    return [one["text"] for one in unique if len(one["text"]) > 800][:160]


def pages(texts: list[str]) -> Iterator[dict[str, Any]]:
    def page(host: str, path: str, text: str) -> dict[str, Any]:
        return {"url": f"https://{host}/{path}", "text": f"{FRAME}\n{text}"}

    for number, text in enumerate(texts[:80]):
        yield page("book.example", f"geos/{number}.html", text)
        yield page("moved.example", f"library/book/geos/{number}.html", f"{text} Updated last week.")
        if number < 20:
            yield page("part.example", f"geos/{number}.html", text)
            yield page("texts.example", f"story-{number}", text)
    for number, text in enumerate(texts[80:]):
        yield page("framed.example", f"geos/{number}.html", text)
        if number < 5:
            yield page("part.example", f"news/{number}.html", text[::-1])
    yield {"url": "no host", "text": "A text of a page that has no address in any network"}


@pytest.fixture(scope="module")
def found(texts: list[str]) -> Hosts:
    return ndd.Corpus.read(pages(texts), text="text", id="url").hosts("url")


def test_mirrors_are_found_with_their_direction_and_their_folders(found: Hosts) -> None:
    pairs = {(pair.first, pair.second): pair for pair in found.pairs}
    moved = pairs["book.example", "moved.example"]
    assert moved.is_mirror
    assert moved.holds == "both"
    assert min(moved.first_share, moved.second_share) > 0.95
    assert (moved.first_folder, moved.second_folder) == ("/", "/library/book/")
    assert moved.first_example.removeprefix("https://book.example/") in moved.second_example
    part = pairs["book.example", "part.example"]
    assert part.is_mirror
    assert part.holds == "first"
    assert (part.first_share, part.second_share, part.same_path) == (0.25, 0.8, 1.0)
    assert part.resemblance == 1.0


def test_a_host_that_shares_only_a_frame_is_in_no_pair(found: Hosts) -> None:
    assert not [pair for pair in found.pairs if "framed.example" in (pair.first, pair.second)]


def test_hosts_that_hold_the_same_texts_elsewhere_are_no_mirrors(found: Hosts) -> None:
    (pair,) = (pair for pair in found.pairs if (pair.first, pair.second) == ("book.example", "texts.example"))
    assert not pair.is_mirror
    assert pair.second_share == 1.0


def test_pages_without_a_host_and_texts_of_very_many_hosts_are_counted(
    found: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found.without_host == 1
    monkeypatch.setattr(hosts_module, "MOST_HOSTS", 2)
    text = "The page that you asked for is not here, please go back to where you came from"
    same = [{"url": f"h{number}.example/404", "text": text} for number in range(3)]
    named = ndd.Corpus.read([*same, {"url": "word", "text": text}], text="text", fields=["url"])
    assert named.hosts().without_host == 1
    hosts = ndd.Corpus.read(same, text="text", fields=["url"]).hosts()
    assert (len(hosts), hosts.ubiquitous) == (0, 1)


def test_the_command_writes_a_table(texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages(texts)))
    words = ["corpus", "hosts", str(tmp_path / "pages.jsonl"), "--text", "text", "--out", str(tmp_path / "hosts.csv")]
    assert main(words) == 3
    output = capsys.readouterr()
    assert "6 pairs of hosts with the same pages, 3 mirrors" in output.out
    assert "1 document left out, whose 'url' names no host" in output.err
    assert (tmp_path / "hosts.csv").read_text().startswith("first,second,first_pages,")


def test_a_field_that_was_not_kept_is_named() -> None:
    corpus = ndd.Corpus.read([{"id": 1, "text": "some words"}], text="text", id="id")
    with pytest.raises(ValueError, match=r"read the collection with fields=\['url'\]"):
        corpus.hosts()
    with pytest.raises(TypeError, match=r"min_share must be a number in 0\.\.1, got 'half'"):
        corpus.hosts("id", min_share="half")  # type: ignore[arg-type]
