"""The commands that compare, sketch and deduplicate texts."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import run as ndd
from tests.news_texts import FOOTBALL, NEWS
from tests.test_collapse import FORMS

pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
pytest.importorskip("rich", reason="tables need rich")


def test_two_texts_are_compared(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(NEWS[0])
    (tmp_path / "b").write_text(NEWS[2])
    shown = ndd("corpus", "compare", tmp_path / "a", tmp_path / "b").stdout
    assert "near-duplicates: 0." in shown
    assert "ministers agreed on" in shown
    facts = json.loads(ndd("corpus", "compare", tmp_path / "a", "-", "--json", stdin=FOOTBALL, code=1).stdout)
    assert facts["near_duplicates"] is False
    assert facts["similarity"] == facts["exact_resemblance"] < 0.1


def test_a_table_is_not_read_as_a_list_whose_first_hit_is_its_header(tmp_path: Path) -> None:
    (tmp_path / "shop.CSV").write_text("id,name\n1,one\n")
    done = ndd("corpus", "page", tmp_path / "shop.CSV", code=2)
    assert (
        "it is a table with a header, and this command reads a list of lines; use ndd-search corpus unique"
        in done.stderr
    )


def test_two_documents_of_an_index_are_compared_as_a_search_there_does(tmp_path: Path) -> None:
    form = (
        "Weather for {0}: tomorrow partly cloudy with highs of {1} degrees and light winds from the west; a shower is "
    )
    form += "possible in the evening. Outlook: dry and warmer from Thursday."
    towns = ["Bremen", "Hamburg", "Kiel", "Berlin", "Munich", "Cologne", "Jena", "Ulm"]
    texts = [form.format(town, number) for number, town in enumerate(towns)]
    lines = [json.dumps({"id": town, "body": text}) for town, text in zip(towns, texts, strict=True)]
    (tmp_path / "weather.jsonl").write_text("\n".join(lines))
    folder = tmp_path / "idx"
    ndd("index", "add", tmp_path / "weather.jsonl", folder)
    for town, text in zip(towns[:2], texts[:2], strict=True):
        (tmp_path / town).write_text(text)
    assert ndd(
        "corpus", "compare", tmp_path / "Bremen", tmp_path / "Hamburg"
    ).stdout  # by themselves they are near-duplicates
    told = ndd("corpus", "compare", "Bremen", "Hamburg", "--in", folder, code=1).stdout
    assert "without what many documents have in common, below" in " ".join(told.split())
    assert ndd("search", folder, "weather", "--size", "20").stdout.count("Weather") == len(towns)
    settings = tmp_path / "settings.toml"
    settings.write_text("[collapse]\nmin_similarity = 0.3\nguards = ['same:id', 'numbers']\n")
    parted = " ".join(
        ndd("corpus", "compare", "Kiel", "Ulm", "--in", folder, "--preset", settings, code=1).stdout.split()
    )
    assert "but same:id, numbers keeps them apart" in parted
    assert "there is no document 'Rome'" in ndd("corpus", "compare", "Bremen", "Rome", "--in", folder, code=2).stderr
    assert (
        "this call uses w5-k64-v4"
        in ndd("corpus", "compare", "Kiel", "Ulm", "--in", folder, "--recipe", "w5-k64-v4", code=2).stderr
    )


def test_a_ranked_list_is_deduplicated_line_by_line(tmp_path: Path) -> None:
    assert ndd("corpus", "page", stdin="\n".join(NEWS)).stdout.splitlines() == NEWS[:2]
    lines = [json.dumps({"body": one, "score": 1}) for one in NEWS]
    assert ndd("corpus", "page", "--text", "body", stdin="\n".join(lines)).stdout.splitlines() == lines[:2]
    found = [json.loads(line) for line in ndd("corpus", "page", "--json", stdin="\n".join(NEWS)).stdout.splitlines()]
    assert [one["duplicates"] for one in found] == [
        [{"line": 3, "similarity": found[0]["duplicates"][0]["similarity"]}],
        [],
    ]
    assert ndd("corpus", "page", stdin="", code=1).stdout == ""
    (tmp_path / "news.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert ndd("corpus", "page", f"{tmp_path}/news.jsonl.gz", "--text", "body").stdout.splitlines() == lines[:2]
    assert "news.txt" in ndd("corpus", "page", f"{tmp_path}/news.txt", code=2).stderr
    told = ndd("corpus", "page", "--text", "body", stdin='{"a": 1}\n{"b": 1}\n', code=2).stderr
    assert "no line has text in body; the fields there are a, b; check" in told
    assert (
        ndd("corpus", "page", "--text", "body", stdin='{"body": "x y z"}\nbroken\n', code=3).stdout
        == '{"body": "x y z"}\n'
    )


def test_what_many_lines_share_is_a_form_and_no_copy() -> None:
    assert ndd("corpus", "page", "--size", "20", stdin="\n".join(FORMS)).stdout.splitlines() == FORMS
    assert len(ndd("corpus", "page", "--min-similarity", "0.5", stdin="\n".join(FORMS)).stdout.splitlines()) < 5


def test_dedupe_prints_every_line_that_is_no_copy_of_a_long_input() -> None:
    lines = [" ".join(f"t{number}w{word}" for word in range(10)) for number in range(12_000)]
    done = ndd("corpus", "page", "--size", "20000", stdin="\n".join([*lines, lines[0]]))
    assert done.stdout.splitlines() == lines
    assert done.stderr == ""
    done = ndd("corpus", "page", "--from", "11000", stdin="\n".join([*lines, lines[0]]))
    assert done.stdout.splitlines() == lines[11_000:11_010]


def test_a_ranked_list_in_other_modes_says_in_json_whose_duplicate_a_line_is() -> None:
    shown = ndd("corpus", "page", "--set", "mode=annotate", "--json", stdin="\n".join(NEWS)).stdout
    found = [json.loads(line) for line in shown.splitlines()]
    assert [one.get("duplicate_of") for one in found] == [None, None, 1]
    assert 0.8 < found[2]["similarity"] < 1


def test_a_page_of_a_ranked_list_says_when_there_is_more() -> None:
    lines = [f"line {i} is about {i * 7919} things of its own" for i in range(25)]
    done = ndd("corpus", "page", stdin="\n".join(lines))
    assert done.stdout.splitlines() == lines[:10]
    assert "the page ends here: --size shows more, --from 10 shows the next page" in done.stderr
    assert "--size" not in ndd("corpus", "page", "--from", "20", stdin="\n".join(lines)).stderr


def test_a_field_that_no_line_has_is_told_once() -> None:
    done = ndd(
        "corpus", "page", "--text", "body", "--set", "keep=newest:nope", stdin='{"body": "x y z"}\n' * 2, process=True
    )
    assert done.stderr == "ndd-search: no hit has the field 'nope' that an option names: check its spelling\n"
    wrong = ndd(
        "corpus", "page", "--text", "body", "--set", "keep=lowest:body", stdin='{"body": "x y z"}\n' * 2, process=True
    )
    assert wrong.stderr == "ndd-search: no hit has a number in the field 'body' that an option names\n"


def test_lines_come_out_of_a_ranked_list_as_they_went_in() -> None:
    given = "one\u2028line\r\nnext\x85line\n".encode() + b"no \xff text\n\ntail"
    code = "import sys; from ndd_search.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, "corpus", "page"], input=given, capture_output=True, check=True)
    assert done.stdout == given + b"\n"
    lines = json.dumps({"body": "one\u2028line"}, ensure_ascii=False) + "\n"
    assert ndd("corpus", "page", "--text", "body", stdin=lines).stdout == lines


def test_bytes_that_are_not_utf_8_are_told(tmp_path: Path) -> None:
    lines = tmp_path / "latin.txt"
    lines.write_bytes(b"one line of plain text\ncaf\xe9 au lait\ncaf\xe8 au lait\n")
    assert (
        "latin.txt: line 2 has bytes that are not UTF-8, which are no letters here"
        in ndd("corpus", "page", lines).stderr
    )
    lines.write_text("caf\u00e9 au lait")
    assert "UTF-8" not in ndd("corpus", "page", lines).stderr


def test_the_mark_of_an_editor_is_no_part_of_a_ranked_list(tmp_path: Path) -> None:
    line = '{"body": "a mark of three bytes begins this file"}\n'
    (tmp_path / "marked.jsonl").write_text(line, encoding="utf-8-sig")
    assert ndd("corpus", "page", tmp_path / "marked.jsonl", "--text", "body").stdout == line
    (tmp_path / "wide.jsonl").write_text(line, encoding="utf-16")
    assert "it is in UTF-16; convert it first" in ndd("corpus", "page", tmp_path / "wide.jsonl", code=2).stderr


def test_a_list_without_lines_and_one_of_json_objects_are_told() -> None:
    assert ndd("corpus", "page", stdin="", code=1).stderr == "ndd-search: standard input is empty\n"
    lines = '{"id": 1, "body": "one two three four"}\n{"id": 2, "body": "one two three four"}\n'
    told = ndd("corpus", "page", stdin=lines)
    assert "standard input holds JSON objects, which are compared as they are written: name their texts" in told.stderr
    assert told.stdout.splitlines()[0] == lines.splitlines()[0]
    assert ndd("corpus", "page", "--text", "body", stdin=lines).stderr == ""
