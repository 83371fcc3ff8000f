"""`ndd-search index add` on real-world files: what it reads, and what it reports about the rest."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ndd_search.sources import csv_and_json
from tests.command_line import Command

pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
pytest.importorskip("rich", reason="tables need rich")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, capsys, monkeypatch)


def test_a_wrong_text_column_stores_nothing_and_the_right_command_works_afterwards(run: Command) -> None:
    run.write("a.csv", "id,title,body\n" + "".join(f"{i},t,some text {i}\n" for i in range(3000)))
    code, _, err = run("index", "add", "a.csv", "idx", "--text", "boddy")
    assert code == 2
    assert (
        "none of the first 500 documents has text in boddy; the fields there are id, title, body; nothing was stored"
        in err
    )
    assert err.count("\n") == 1
    assert not (run.folder / "idx").exists()
    assert run("index", "add", "a.csv", "idx", "--text", "body")[0] == 0
    code, _, err = run("index", "add", run.write("b.csv", "id,name\n9,x\n"), "idx")
    assert code == 2
    assert "no document has text in body; the fields there are id, name; these are the text fields of idx" in err


def test_a_text_column_that_only_some_lines_lack_is_no_error_and_one_that_is_nowhere_is_named(run: Command) -> None:
    run.write("a.jsonl", '{"id": 1, "body": "x"}\n{"id": 2, "note": "y"}\n')
    code, _, err = run("index", "add", "a.jsonl", "idx", "--text", "body,note,titel")
    assert code == 0
    assert "none of the first 500 documents has a field titel" in err


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
@pytest.mark.once
def test_documents_without_ids_are_one_sentence_that_proposes_the_fields_that_look_like_one(
    run: Command, name: str
) -> None:
    documents = [
        {"article_id": str(i), "kind_id": "7", "url": f"http://x/{i}", "ID": f"n{i}", "body": f"text {i}"}
        for i in range(2000)
    ]
    if name == "a.csv":
        lines = [",".join(documents[0]), *(",".join(one.values()) for one in documents)]
        run.write(name, "\n".join(lines))
    else:
        whole = "\n".join(map(json.dumps, documents)) if name == "a.jsonl" else json.dumps(documents)
        run.write(name, whole)
    code, _, err = run("index", "add", name, "idx")
    assert code == 2
    assert err.count("\n") == 1
    assert "none of the first 500 documents has an id; the fields there are article_id, kind_id, url, ID, body" in err
    assert "--id article_id (or url, ID); or number the lines: --number-lines" in err
    assert not (run.folder / "idx").exists()
    assert run("index", "add", name, "idx", "--id", "url")[0] == 0
    assert run.stored()["http://x/0"] == {"_id": "http://x/0", **documents[0]}
    code, _, err = run("index", "add", name, "idx2", "--id", "nope")
    assert code == 2
    assert "none of the first 500 documents has a field 'nope'; the fields there are article_id" in err


def test_many_lines_that_are_left_out_are_counted_after_the_first_twenty(run: Command) -> None:
    run.write("a.jsonl", '{"id": 1, "body": "x"}\n' + '{"body": "y"}\n' * 500)
    code, out, err = run("index", "add", "a.jsonl", "idx", "--json")
    assert code == 3
    assert json.loads(out)["left_out"] == 500
    assert err.count("\n") == 21
    assert "480 more were skipped" in err


def test_a_column_whose_name_has_a_comma_is_named_in_quotes(run: Command) -> None:
    source = run.write("a.csv", 'id,"text, short",note\n1,one,x\n')
    assert "text: text, short, note" in run("index", "add", source, "idx", "--text", '"text, short",note')[1]
    for wrong in ('"text', "a,,b", ""):
        with pytest.raises(SystemExit, match="2"):
            run("index", "add", source, "other", "--text", wrong)


def test_numbered_lines_hold_the_name_of_their_file_so_that_none_replaces_another(run: Command) -> None:
    run.write("a.csv", "name\nred shoe\nblue hat\n")
    run.write("b.csv", "name\ngreen coat\n")
    run.write("c.jsonl", '{"id": 2, "name": "own number"}\n')
    for name in ("a.csv", "b.csv", "c.jsonl"):
        assert run("index", "add", name, "idx", "--number-lines")[0] == 0
    assert sorted(run.stored()) == ["2", "a.csv:2", "a.csv:3", "b.csv:2"]


def test_documents_that_replace_others_are_counted_and_ids_that_repeat_in_a_source_are_told(run: Command) -> None:
    run.write("a.csv", "id,name\n1,one\n2,two\n")
    assert "of them replaced one" not in run("index", "add", "a.csv", "idx")[1]
    assert (
        "2 documents added to idx (2 of them replaced one with the same id)" in run("index", "add", "a.csv", "idx")[1]
    )
    code, _, err = run("index", "add", run.write("b.csv", "id,name\n7,one\n7,two\n7,three\n"), "idx")
    assert code == 0
    assert "b.csv: 2 documents had the id of an earlier one in it and replaced it" in err


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_of_a_table_is_seen_from_its_header(run: Command, mark: str) -> None:
    run.write("a.csv", f'id{mark}body{mark}"odd, name; x"\n1{mark}"one, two; three"{mark}4\n')
    assert run("index", "add", "a.csv", "idx")[0] == 0
    assert run.stored() == {"1": {"id": "1", "body": "one, two; three", "odd, name; x": "4"}}


@pytest.mark.parametrize(
    "given",
    [
        b'{"id": 1, "body": "a"}\n{"id": 2, "body": "b"}\n',
        b'[{"id": 1, "body": "a"}, {"id": 2, "body": "b"}]',
        b"id,body\n1,a\n2,b\n",
        gzip.compress(b'{"id": 1, "body": "a"}\n{"id": 2, "body": "b"}\n', mtime=0),
        b'\xef\xbb\xbf{"id": 1, "body": "a"}\n{"id": 2, "body": "b"}',
    ],
    ids=["lines", "array", "table", "compressed", "marked"],
)
def test_standard_input_is_a_source_whose_kind_is_seen(run: Command, given: bytes) -> None:
    assert run("index", "add", "-", "idx", stdin=given)[0] == 0
    assert [document["body"] for document in run.stored().values()] == ["a", "b"]


@pytest.mark.once
def test_a_json_array_is_read_an_element_at_a_time_and_what_is_wrong_with_it_is_told(run: Command) -> None:
    many = [{"id": i, "body": "déjà " * 200, "n": [{}, [i]]} for i in range(5000)]  # more than one read
    assert run("index", "add", run.write("a.json", json.dumps(many, ensure_ascii=False)), "idx")[0] == 0
    assert len(run.stored()) == 5000
    code, _, err = run(
        "index", "add", run.write("b.json", '[{"id": 1, "body": "x"}, 5, {"id": 2, "body": "y"'), "b.idx"
    )
    assert code == 3
    assert "element 2 was skipped, it is not a JSON object but int" in err
    assert "element 3 and all after it were skipped, they are not JSON" in err
    assert sorted(run.stored("b.idx")) == ["1"]
    assert run("index", "add", run.write("c.json", '{\n "id": 1,\n "body": "one object"\n}'), "c.idx")[0] == 0
    assert run("index", "add", run.write("d.json", '{"id": 1, "body": "x"}\n{"id": 2, "body": "y"}\n'), "d.idx")[0] == 0
    assert sorted(run.stored("d.idx")) == ["1", "2"]


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ('\n[{"id": 2, "body": "y"}]', "what follows the array was skipped: write one array"),
        (" " * 2**20 + '{"id": 2, "body": "y"}', "what follows the array was skipped"),
        (" " * 2**20, ""),
    ],
    ids=["array", "far", "space"],
)
def test_what_follows_an_array_is_told(run: Command, after: str, told: str) -> None:
    code, _, err = run("index", "add", run.write("a.json", '[{"id": 1, "body": "x"}]' + after), "idx")
    assert code == (3 if told else 0)
    assert told in err
    assert sorted(run.stored()) == ["1"]


def test_an_integer_that_is_too_long_to_be_read_is_told(run: Command) -> None:
    given = f'[{{"id": 1, "body": "x"}}, {{"id": 2, "body": "y", "n": {"9" * 5000}}}]'
    code, _, err = run("index", "add", run.write("a.json", given), "idx")
    assert code == 3
    assert "element 2 and all after it were skipped, it has an integer of more than 4,300 digits" in err
    assert sorted(run.stored()) == ["1"]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("id,body,body\n1,a,b\n", "two of its columns are named 'body'; rename one of them"),
        ("id\rx,body\n1,a\n", "its header is not valid CSV: new-line character seen in unquoted field"),
        ('"id"x,body\n1,a\n', "its header is not valid CSV: ',' expected after '\"'; correct its first line"),
        ("id,,column 2,body\n1,x,a,b\n", "two of its columns are named 'column 2'"),
    ],
)
def test_a_header_that_is_invalid_or_names_two_columns_alike_is_refused(
    run: Command, table: str, sentence: str
) -> None:
    code, _, err = run("index", "add", run.write("a.csv", table), "idx")
    assert code == 2
    assert sentence in err
    assert not (run.folder / "idx").exists()


def test_a_key_that_a_json_object_has_twice_is_told_since_one_value_would_be_lost(run: Command) -> None:
    run.write("a.jsonl", '{"id": 1, "body": "x"}\n{"id": 2, "body": "y", "n": {"a": 1, "a": 2}}\n')
    code, _, err = run("index", "add", "a.jsonl", "idx")
    assert code == 3
    assert "line 2 was skipped, it has the key 'a' twice: rename one" in err


def test_nothing_of_an_odd_table_is_lost_or_changed_in_silence(run: Command) -> None:
    run.write("a.csv", b',id,body\r\n0,1,"two\rlines"\r\n1,2\r\n2,3,a\rb\r\n3,4,c,\r\n\r\n4,5,d,e\r\n')
    code, _, err = run("index", "add", "a.csv", "idx")
    assert code == 3
    assert run.stored() == {
        "1": {"column 1": "0", "id": "1", "body": "two\rlines"},
        "2": {"column 1": "1", "id": "2"},
        "4": {"column 1": "3", "id": "4", "body": "c"},
    }
    assert "columns without a name were named by their number: column 1" in err
    assert "line 3 has fewer fields than the header" in err
    assert "line 4 was skipped, it is not valid CSV: new-line character seen in unquoted field" in err
    assert "line 7 was skipped, it has more fields than the header" in err
    run.write("mac.csv", b"id,body\r1,one\r2,two\r")
    assert run("index", "add", "mac.csv", "mac.idx")[0] == 0
    assert [one["body"] for one in run.stored("mac.idx").values()] == ["one", "two"]


def test_a_number_of_more_digits_than_are_stored_is_told_once(run: Command) -> None:
    line = '{"id": %d, "body": "one", "x": {"y": [1, 3.14159265358979323846]}}\n'
    _, _, err = run("index", "add", run.write("a.jsonl", line % 1 + line % 2), "idx")
    assert err.count("line 1 has a number of more digits than are stored") == err.count("more digits") == 1
    line = '{"id": 1, "body": "one", "x": 1e-9999999999999999999}\n'
    code, _, err = run("index", "add", run.write("b.jsonl", line), "b.idx")
    assert (code, err.count("more digits")) == (0, 1)


def test_all_lines_that_an_open_quote_takes_are_named(run: Command) -> None:
    code, _, err = run("index", "add", run.write("a.csv", 'id,body\n1,x\n2,"never closed\n3,y\n4,z\n'), "idx")
    assert code == 3
    assert "lines 3 to 5 were skipped, it is not valid CSV" in err


def test_marks_and_encodings_are_no_part_of_a_text(run: Command) -> None:
    run.write("notes/a.txt", b"\xef\xbb\xbfmarked")
    run.write("notes/b.md", "wide".encode("utf-16"))
    run.write("notes/c.txt", "a true \ufffd is UTF-8")
    code, _, err = run("index", "add", "notes", "idx")
    assert (code, err) == (0, "")
    assert [one["body"] for one in run.stored().values()] == ["marked", "wide", "a true \ufffd is UTF-8"]
    run.write("a.jsonl", json.dumps({"id": 1, "body": "a true \ufffd"}, ensure_ascii=False))
    assert run("index", "add", "a.jsonl", "a.idx")[2] == ""
    code, _, err = run("index", "add", run.write("u.csv", "id\tbody\n1\tx\n".encode("utf-16")), "u.idx")
    assert code == 2
    assert "u.csv: it is in UTF-16; convert it first: iconv -f UTF-16 -t UTF-8" in err


def test_a_line_that_is_longer_than_fits_is_told_and_the_others_are_indexed(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_and_json, "LONGEST", 2**20)
    long = b'{"id": 2, "body": "' + b"x" * 5_000_000 + b'"}\n'
    run.write("a.jsonl.gz", gzip.compress(b'{"id": 1, "body": "a"}\n' + long + b'{"id": 3, "body": "b"}\n'))
    code, _, err = run("index", "add", "a.jsonl.gz", "idx")
    assert code == 3
    assert "line 2 was skipped, it is longer than 1 MB: split it into several documents" in err
    assert sorted(run.stored()) == ["1", "3"]


LONG_LINE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
from ndd_search.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.once
def test_a_line_of_gigabytes_takes_no_such_memory(run: Command) -> None:
    """1 GB of one line, packed to 1 MB, is read by a process that may have 2 GB of addresses in all."""
    with gzip.open(run.folder / "a.jsonl.gz", "wb", compresslevel=1) as file:
        file.write(b'{"id": 1, "body": "a"}\n{"id": 2, "body": "')
        for _ in range(64):
            file.write(b"x" * 2**24)
        file.write(b'"}\n{"id": 3, "body": "b"}\n')
    command = [sys.executable, "-c", LONG_LINE, "index", "add", "a.jsonl.gz", "idx"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )
    assert done.returncode == 3, done.stderr
    assert "line 2 was skipped, it is longer than 64 MB" in done.stderr
    assert "2 documents added" in done.stdout


def test_deeply_nested_json_is_one_sentence_and_the_others_are_indexed(run: Command) -> None:
    deep = "[" * 600 + "]" * 600
    run.write("a.jsonl", f'{{"id": 1, "body": "x"}}\n{{"id": 2, "body": {deep}}}\n{{"id": 3, "body": "y"}}\n')
    code, _, err = run("index", "add", "a.jsonl", "idx")
    assert (code, err.count("\n")) in ((0, 0), (3, 1))  # taken, or told
    assert {"1", "3"} <= set(run.stored())


def test_html_pages_are_read_in_the_encoding_that_they_name_and_have_their_title(run: Command) -> None:
    page = '<head><meta charset="{0}"><title>Grüße\n aus {0}</title></head><p>Größe 5 €</p>'
    for name in ("windows-1252", "iso-8859-1", "utf-8"):
        encoding = "cp1252" if name == "iso-8859-1" else name
        run.write(f"pages/{name}.html", page.format(name).encode(encoding))
    old = '<meta http-equiv="Content-Type" content="text/html; charset=shift_jis"><p>東京タワー</p>'
    run.write("pages/old.html", old.encode("shift_jis"))
    run.write("pages/wide.htm", "<title>Ω</title><p>marked</p>".encode("utf-16"))
    run.write("pages/unnamed.html", "<p>café</p>".encode("latin-1"))
    code, _, err = run("index", "add", "pages", "idx")
    assert (code, err) == (0, "")
    found = run.stored()
    for name in ("windows-1252", "iso-8859-1", "utf-8"):
        assert found[f"{name}.html"]["title"] == f"Grüße aus {name}"
        assert "Größe 5 €" in found[f"{name}.html"]["body"]
    assert "東京タワー" in found["old.html"]["body"]
    assert (found["wide.htm"]["title"], found["old.html"]["title"]) == ("Ω", "old")
    assert "café" in found["unnamed.html"]["body"]
    assert "marked" in found["wide.htm"]["body"]
    assert "Ω" not in found["wide.htm"]["body"]
    assert found["old.html"]["file"] == (run.folder / "pages" / "old.html").as_uri()


@pytest.mark.parametrize("name", ["hex", "idna", "punycode", "undefined", "unicode_escape", "cp037"])
def test_a_page_that_names_a_codec_that_is_no_encoding_of_pages_is_read_as_utf_8(run: Command, name: str) -> None:
    run.write("pages/a.html", f'<meta charset="{name}"><p>café \\x41</p>')
    code, _, err = run("index", "add", "pages", "idx")
    assert (code, err) == (0, "")
    assert run.stored()["a.html"]["body"].strip() == "café \\x41"


def test_main_text_leaves_out_navigation_and_keeps_a_page_that_is_nothing_else(run: Command) -> None:
    pytest.importorskip("trafilatura", reason="--main-text needs trafilatura")
    story = "".join(
        f"<p>The harbour was frozen for the {i}th winter, and all of its ferries stayed.</p>" for i in range(9)
    )
    menu = "<nav><a href=/>Home</a> <a href=/a>press ← or → to turn pages</a></nav>"
    run.write("pages/story.html", f"<html><body>{menu}<article><h1>Ice</h1>{story}</article></body></html>")
    run.write("pages/menu.html", f"<html><body>{menu}</body></html>")
    assert run("index", "add", "pages", "idx", "--main-text")[0] == 0
    found = run.stored()
    assert "frozen for the 8th winter" in found["story.html"]["body"]
    assert "press" not in found["story.html"]["body"]
    assert "press" in found["menu.html"]["body"]


def test_main_text_without_its_extra_is_one_sentence_that_names_it(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    code, _, err = run("index", "add", str(Path(run.write("pages/a.html", "<p>x</p>")).parent), "idx", "--main-text")
    assert code == 2
    assert '--main-text needs trafilatura, which is not installed: pip install "ndd-search[main-text]"' in err
