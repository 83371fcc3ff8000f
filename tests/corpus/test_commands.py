"""The commands of ndd-search corpus."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from ndd_search import native
from ndd_search.cli import main
from tests.corpus import made
from tests.corpus.made import DOCUMENTS, STORY, write_lines


def run(*words: object) -> int:
    return main(["corpus", *map(str, words)])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "docs.jsonl", DOCUMENTS)


def test_the_commands_write_what_the_library_finds(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = (source, "--text", "body", "--min-similarity", "0.5")
    assert run("groups", *settings, "--out", tmp_path / "g.parquet", "--report", tmp_path / "r.html") == 0
    told = "4 documents in 3 groups; 1 is a near-duplicate of another one\n  2 documents: a, b\n"
    assert capsys.readouterr().out == told
    assert parquet.read_table(tmp_path / "g.parquet").column("group").to_pylist() == ["a", "a", "c", "d"]
    assert run("unique", *settings, "--set", "keep=newest:published", "--save", tmp_path / "s.parquet") == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["b", "c", "d"]
    assert run("pairs", *settings) == 0
    (pair,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (pair["first"], pair["second"]) == ("a", "b")
    assert (pair["containment"], pair["contains"]) == (1.0, "second")
    assert run("groups", *settings, "--set", "guards=same:site,numbers") == 0
    assert "4 documents in 4 groups; 0 are near-duplicates" in capsys.readouterr().out
    assert run("new", *settings, "--against", tmp_path / "s.parquet", "--json", "--out", tmp_path / "n.jsonl") == 0
    assert json.loads(capsys.readouterr().out) == {"documents": 4, "new": 0}


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_decimals_keep_their_digits(tmp_path: Path, name: str) -> None:
    prices = [Decimal("12345678901234567890.50"), Decimal("1.10"), Decimal("-0.01")]
    bodies = [one["body"] for one in DOCUMENTS[1:]]
    rows = [
        {"body": body, "price": price, "more": {"price": price}} for body, price in zip(bodies, prices, strict=True)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    assert run("unique", tmp_path / "in.parquet", "--text", "body", "--out", tmp_path / name) == 0
    if name == "out.parquet":
        found = parquet.read_table(tmp_path / name).to_pylist()
        assert [(one["price"], one["more"]["price"]) for one in found] == [(price, price) for price in prices]
        return
    text = (tmp_path / name).read_text()
    for price in prices:
        assert (f'"price": {price},' if name == "out.jsonl" else f",{price},") in text
        assert f'"price": {price}}}' in text.replace('""', '"')


def test_a_command_that_left_something_out_says_so(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with source.open("a") as file:
        file.write("no JSON\n")
    assert run("groups", source, "--text", "body") == 3
    assert "line 5 was skipped, it is not JSON" in capsys.readouterr().err


def test_an_output_of_an_unknown_kind_is_refused_before_anything_is_read(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", source, "--text", "body", "--out", "groups.xlsx") == 2
    assert "expected a name that ends in .parquet" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--out", "--save", "--report"])
def test_no_source_is_overwritten(option: str, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = source.read_bytes()
    assert run("groups", f"{source.parent}/*.jsonl", "--text", "body", option, source) == 2
    assert f"{source} is one of the sources, and would be overwritten" in capsys.readouterr().err
    assert main(["items", "learn", str(source), "--out", str(source)]) == 2
    assert source.read_bytes() == before


@pytest.mark.parametrize("out", ["all.parquet", "all.parquet/in.parquet"])
def test_no_source_is_overwritten_on_spark(out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark replaces a folder with all that it holds."""
    source = tmp_path / "all.parquet" / "in.parquet"
    source.mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(DOCUMENTS), source / "0.parquet")
    words = ("--text", "body", "--spark", "local[2]", "--store", tmp_path / "work", "--out", tmp_path / out)
    assert run("groups", source, *words) == 2
    assert f"{tmp_path / out} holds one of the sources, and would be overwritten" in capsys.readouterr().err


def test_no_output_is_overwritten_by_another_one(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = tmp_path / "twice.parquet"
    for other in ("--save", "--report"):
        assert run("groups", source, "--text", "body", "--out", twice, other, twice) == 2
        assert f"{twice} is named for two outputs" in capsys.readouterr().err
    assert run("groups", source, "--text", "body", "--save", twice) == 0
    before = twice.read_bytes()
    assert run("new", source, "--text", "body", "--against", twice, "--out", twice) == 2
    assert twice.read_bytes() == before


@pytest.mark.parametrize("option", ["--out", "--save", "--report"])
def test_a_folder_is_no_output(option: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").mkdir()
    assert run("groups", source, "--text", "body", option, tmp_path / "a.csv") == 2
    assert capsys.readouterr() == ("", f"ndd-search: {tmp_path}/a.csv cannot be written: it is a folder; name a file\n")


def test_a_column_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # In seconds: of nanoseconds, pandas reads each value if it is installed.
    bodies, moments = [one["body"] for one in DOCUMENTS], pa.array([1 << 40] * len(DOCUMENTS), pa.timestamp("s"))
    for table, sentence in (
        (pa.table({"body": bodies, "moment": moments}), "a value of its column 'moment' cannot be read"),
        (pa.table([bodies, bodies], ["body", "body"]), "two of its columns are named 'body'"),
    ):
        parquet.write_table(table, tmp_path / "in.parquet")
        assert run("unique", tmp_path / "in.parquet", "--text", "body", "--out", tmp_path / "out.jsonl") == 2
        assert f"{tmp_path}/in.parquet: {sentence}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "nowhere/groups.csv"], "there is no folder nowhere"),
        (["--set", "keep=newest:publisched"], "no document has a value in the field 'publisched'"),
        (["--set", "guards=same:lnguage"], "no document has a value in the field 'lnguage'"),
        (["--text", "titel,body"], "none of the first 4 documents has a field titel"),
    ],
)
def test_an_option_that_would_do_nothing_is_told(
    words: list[str], sentence: str, source: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    run("groups", source, *words, *([] if "--text" in words else ["--text", "body"]))
    assert sentence in capsys.readouterr().err + caplog.text


def test_a_folder_that_holds_no_documents_and_a_missing_collection_are_told(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", tmp_path, "--text", "body") == 3
    assert "holds no file of text, HTML or mails" in capsys.readouterr().err
    (tmp_path / "empty.parquet").mkdir()
    assert run("groups", tmp_path / "empty.parquet", "--text", "body") == 2
    assert "it is a folder without .parquet files" in capsys.readouterr().err
    assert run("new", source, "--text", "body", "--against", "none.parquet") == 2
    assert "none.parquet: there is no such file" in capsys.readouterr().err


def test_the_first_run_of_a_command_that_saves_what_it_compares_with_knows_nothing(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tmp_path / "known.parquet"
    monkeypatch.chdir(tmp_path)
    command = ("new", source, "--text", "body", "--min-similarity", "0.5", "--set", "guards=same:site")
    for new in (4, 0):
        out = ("--out", tmp_path / "new.jsonl", "--json")
        assert run(*command, "--against", known, "--save", "./known.parquet", *out) == 0
        told = capsys.readouterr()
        assert json.loads(told.out) == {"documents": 4, "new": new}
        assert (f"{known} does not exist yet: nothing is known before this run" in told.err) == (new > 0)
    assert run(*command, "--against", tmp_path / "misspelt.parquet", "--save", known) == 2


def test_an_error_of_the_disk_names_the_file(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        assert run("groups", source, "--text", "body", "--out", source.with_name("o.csv")) == 2
        assert "o.csv: File too large" in capsys.readouterr().err
        assert run("groups", source, "--text", "body", "--save", source.with_name("s.parquet")) == 2
        assert "s.parquet: it cannot be written" in capsys.readouterr().err
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert [path.name for path in source.parent.iterdir()] == [source.name]


def test_wishes_and_times_are_written_as_in_a_url(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_lines(tmp_path / "docs.jsonl", [
        {"id": "1", "body": STORY, "site": "c", "at": "2024-01-01"},
        {"id": "2", "body": STORY, "site": "b", "at": "2024-01-02"},
        {"id": "3", "body": STORY, "site": "b", "at": "2024-03-01"},
    ])  # fmt: skip
    command = ["corpus", "groups", str(source), "--text", "body", "--set", "keep=preferred:site=a,b,newest:at"]
    for apart, leaders in (("1d", ["2", "2", "3"]), ("100d", ["3", "3", "3"])):
        assert main([*command, "--set", f"guards=within:at={apart}", "--out", str(tmp_path / "out.jsonl")]) == 0
        written = (tmp_path / "out.jsonl").read_text().splitlines()
        assert [json.loads(line)["group"] for line in written] == leaders
    with pytest.raises(SystemExit):
        main([*command, "--set", "guards=within:at=1x"])
    assert "guards takes same:FIELD, numbers, within:FIELD=1d" in capsys.readouterr().err


def test_a_preset_sets_how_texts_are_sketched_and_what_keeps_them_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_lines(
        tmp_path / "docs.jsonl", [{"id": str(year), "body": f"{STORY} {year}"} for year in (2024, 2025)]
    )
    for setting, leaders in (("news", ["2024", "2024"]), ("products", ["2024", "2025"])):
        out = tmp_path / "out.jsonl"
        assert run("groups", source, "--text", "body", "--set", f"preset={setting}", "--out", out) == 0
        assert [json.loads(line)["group"] for line in out.read_text().splitlines()] == leaders
    assert run("groups", source, "--text", "body", "--set", "preset=messages", "--save", tmp_path / "s.parquet") == 0
    assert "c5-k64-v4-nourls" in str(parquet.read_schema(tmp_path / "s.parquet").metadata)
    with pytest.raises(SystemExit):
        run("groups", source, "--text", "body", "--set", "preset=messagse")
    assert "did you mean messages" in capsys.readouterr().err


@pytest.mark.skipif(not find_spec("pyspark"), reason="needs pyspark: pip install -e '.[spark]'")
def test_a_spark_that_does_not_start_is_a_sentence_and_needs_no_extra_of_records(tmp_path: Path) -> None:
    """Exit code 1 means that something was found or left out."""
    (tmp_path / "a.jsonl").write_text('{"body": "one"}\n')
    code = "import sys; sys.modules['rapidfuzz'] = None; from ndd_search.cli import main; sys.exit(main(sys.argv[1:]))"
    words = (
        "corpus",
        "groups",
        "a.jsonl",
        "--text",
        "body",
        "--spark",
        "local[2]",
        "--store",
        "w",
        "--out",
        "o.parquet",
    )
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "nowhere")}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(r"Spark on local\[2\]: it does not start.*JAVA_HOME is the folder of Java .*nowhere", done.stderr)


@pytest.mark.parametrize("text", ["", "id,body\n"])
def test_a_source_without_documents_is_told(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.csv").write_text(text)
    assert run("unique", tmp_path / "empty.csv", "--text", "body") == 1
    assert "empty.csv holds no document" in capsys.readouterr().err
    done = subprocess.run(
        [sys.executable, "-m", "ndd_search", "corpus", "unique", "-", "--text", "body"],
        input="", text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "ndd-search: standard input holds no document\n")


@pytest.mark.skipif(native.core is None, reason="numpy has no budget")
@pytest.mark.parametrize("action", ["groups", "unique", "pairs", "hosts", "new"])
def test_every_action_tells_what_the_budget_leaves_out(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": f"https://{'ab'[number % 2]}.example/{number}", "body": text}
        for number, text in enumerate(made.texts(300, frames=1))
    ]
    source = write_lines(tmp_path / "docs.jsonl", rows)
    more: dict[str, list[object]] = {
        "hosts": ["--url", "id"],
        "new": ["--against", tmp_path / "s.parquet", "--save", tmp_path / "s.parquet"],
    }
    settings = ("--text", "body", "--set", "budget=1", "--out", tmp_path / "out.jsonl", *more.get(action, []))
    assert run(action, source, *settings) == 0
    assert "others had used up their budget, so pairs may be missed: raise it" in capsys.readouterr().err


def test_standard_input_is_a_source(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also of what is read again, with all digits; an id counts once, and it cannot be read twice."""
    lines = (
        source.read_text() + '{"id": "e", "body": "nothing else has words like these", "n": 0.12345678901234567890}\n'
    )
    for words, code in ((["-"], 0), ([str(source), "-"], 3), (["-", "-"], 2)):
        command = [sys.executable, "-m", "ndd_search", "corpus", "unique", *words, "--text", "body"]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert ("0.12345678901234567890" in done.stdout) == (code != 2)
    assert "can be read once" in done.stderr
    assert main(["corpus", "groups", "-", "--text", "body", "--spark", "local[2]"]) == 2
    assert "on one machine" in capfd.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else False, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_read(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder := tmp_path / "closed").mkdir(mode=0o500)
    assert run("groups", source, "--text", "body", "--out", folder / "g.jsonl") == 2
    assert "you may not write into the folder" in capsys.readouterr().err


def test_cells_that_a_spreadsheet_would_compute_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for ids, count in ((("=1+2", "+cmd", "-4.5", "x"), 2), (("1", "a=b", "-3"), 0)):
        caplog.clear()
        source = write_lines(tmp_path / "in.jsonl", [{"id": id, "body": f"text {id}"} for id in ids])
        assert run("unique", source, "--text", "body", "--out", tmp_path / "out.csv") == 0
        told = [one.getMessage() for one in caplog.records if "spreadsheets compute" in one.getMessage()]
        assert len(told) == bool(count)
        assert all(one.startswith(f"{count} rows") for one in told)
