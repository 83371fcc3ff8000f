"""The command line as a user types it, with real files."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ndd_search.cli import COMMANDS, main
from tests.command_line import run as ndd
from tests.news_texts import CLIMATE, NEWS

pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
pytest.importorskip("rich", reason="tables need rich")


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    path = tmp_path / "articles.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"n{i}", "title": "news", "body": one}) + "\n" for i, one in enumerate(NEWS))
    )
    return path


def test_without_a_command_it_says_which_there_are() -> None:
    shown = ndd().stdout
    assert all(f"  {name}" in shown for name in COMMANDS)
    assert "exit codes" in shown
    assert re.fullmatch(r"ndd-search [\d.]+, with (the native core|numpy \(.+\))\n", ndd("--version").stdout)


def test_the_package_is_a_program_too() -> None:
    done = subprocess.run([sys.executable, "-m", "ndd_search", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == ndd("--version", process=True).stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command: str) -> None:
    assert f"ndd-search {command}" in ndd(command, "--help").stdout.partition("examples:")[2]


def test_an_unknown_command_is_a_wrong_usage_and_the_nearest_is_named() -> None:
    told = ndd("serch", code=2).stderr
    assert "invalid choice: 'serch'" in told
    assert "did you mean search?" in told
    assert "did you mean group?" in ndd("corpus", "page", "--set", "mode=grupe", code=2).stderr
    assert "did you mean add?" in ndd("index", "ad", code=2).stderr


@pytest.mark.parametrize("setting", ["guards=same:titel", "keep=newest:titel"])
def test_a_field_of_a_setting_that_no_document_has_is_refused(articles: Path, setting: str) -> None:
    told = ndd("corpus", "groups", str(articles), "--text", "body", "--set", setting, code=2).stderr
    assert "no document has a value in the field 'titel', which an option names" in told


def test_a_field_of_addresses_that_no_document_has_is_refused(articles: Path) -> None:
    told = ndd("corpus", "hosts", str(articles), "--text", "body", "--url", "titel", code=2).stderr
    assert "no document has a value in the field 'titel', which an option names" in told


@pytest.mark.parametrize("words", ["corpus page lines", "corpus groups lines", "index add folder lines"])
def test_an_option_given_twice_is_refused_as_its_first_value_would_be_lost(words: str) -> None:
    told = ndd(*words.split(), "--text", "first", "--text", "last", code=2).stderr
    assert "argument --text: given twice: several names go into one, --text A,B" in told
    assert "argument --size: given twice" in ndd("corpus", "page", "lines", "--size", "10", "--size=20", code=2).stderr
    both = ("--set", "mode=drop", "--set", "mode=group")
    assert "argument --set: mode given twice" in ndd("search", "folder", "words", *both, code=2).stderr


def test_a_word_behind_two_dashes_is_no_option(articles: Path, tmp_path: Path) -> None:
    ndd("index", "add", str(articles), str(tmp_path / "folder"), "--text", "body")
    assert not ndd("search", str(tmp_path / "folder"), "--size", "3", "--", "--size").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("corpus page lines --sise 3", "--sise is no option: did you mean --size?"),
        ("corpus groups docs.jsonl --txt body", "--txt is no option: did you mean --text?"),
        (
            "index add docs.jsonl idx --lang=en --numbers-line",
            "--numbers-line is no option: did you mean --number-lines?",
        ),
        ("search idx words --guards same:brand", "--guards is no option: did you mean --set guards=VALUE?"),
        ("corpus unique a.csv --text body --keep longest", "--keep is no option: did you mean --set keep=VALUE?"),
        ("corpus page --size 0", "argument --size: expected a whole number in 1.."),
        ("backfill http://localhost:9 news --field title,body", "--field names the object that holds sketches"),
        ("corpus page lines --recipe w3-k64", "one looks like w3-k64-v4: shingles of 3 words, 64 values"),
    ],
)
def test_a_misspelt_option_gets_a_hint(words: str, told: str) -> None:
    assert told in ndd(*words.split(), code=2).stderr


def test_help_is_a_command_too() -> None:
    assert ndd("help").stdout == ndd("--help").stdout
    assert ndd("help", "corpus").stdout == ndd("corpus", "--help").stdout


def test_documents_are_indexed_and_searched(tmp_path: Path, articles: Path) -> None:
    folder = tmp_path / "news.idx"
    assert "3 documents added" in ndd("index", "add", articles, folder).stdout
    shown = ndd("search", folder, "final emissions").stdout
    assert "n0" in shown
    assert "3 hits examined, 1 of them shown under another; 2 different ones in all" in shown
    response = json.loads(ndd("search", folder, "final emissions", "--json", "--set", "mode=drop").stdout)
    assert sorted(hit["_id"] for hit in response["hits"]["hits"]) == ["n0", "n1"]
    assert ndd("search", folder, "volcano", code=1).stdout == "nothing found\n"


def test_a_gzip_file_and_a_csv_file_are_read(tmp_path: Path, articles: Path) -> None:
    packed = tmp_path / "articles.jsonl.gz"
    packed.write_bytes(gzip.compress(articles.read_bytes()))
    assert json.loads(ndd("index", "add", packed, tmp_path / "a", "--json").stdout)["documents"] == 3
    table = tmp_path / "shop.csv"
    table.write_text('name,price\n"red shoes, new",10\nblue hat,5\ntoo,many,fields\n')
    done = ndd("index", "add", table, tmp_path / "b", "--number-lines", "--json", code=3)
    assert json.loads(done.stdout) == {
        "added": 2,
        "replaced": 0,
        "left_out": 1,
        "without_text": 0,
        "documents": 2,
        "text": ["name"],
    }
    assert "line 4 was skipped, it has more fields" in done.stderr


def test_a_csv_file_of_any_separator_and_with_long_fields_is_read_and_an_open_quote_is_told(tmp_path: Path) -> None:
    table = tmp_path / "shop.csv"
    table.write_text(f'id;title;body\r\n1;"hat; red";{"long " * 40_000}\r\n2;shoe;x\r\n3;"never closed;y\r\n')
    done = ndd("index", "add", table, tmp_path / "idx", "--json", code=3)
    assert json.loads(done.stdout)["added"] == 2
    assert json.loads(done.stdout)["text"] == ["title", "body"]
    assert "line 4 was skipped, it is not valid CSV: unexpected end of data" in done.stderr
    assert "hat; red" in ndd("search", tmp_path / "idx", "hat").stdout
    (tmp_path / "one.tsv").write_text("id\tname\n1\tan apple, green\n")
    assert "1 document added" in ndd("index", "add", tmp_path / "one.tsv", tmp_path / "tsv.idx").stdout
    assert (
        "1 hit examined, 0 of them shown under another; 1 different one in all"
        in ndd("search", tmp_path / "tsv.idx", "green").stdout
    )


def test_a_folder_of_texts_is_read_and_markup_is_stripped(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "one.txt").write_text("a volcano erupts")
    (notes / "deep" / "two.html").write_text("<h1>Volcano</h1><script>ignored()</script><p>erupts &amp; smokes</p>")
    (notes / "photo.jpg").write_bytes(b"\xff\xd8")
    assert json.loads(ndd("index", "add", notes, tmp_path / "idx", "--json").stdout)["added"] == 2
    found = json.loads(ndd("search", tmp_path / "idx", "smokes", "--json").stdout)["hits"]["hits"]
    assert [hit["_id"] for hit in found] == ["deep/two.html"]
    assert "ignored" not in found[0]["_source"]["body"]


def test_a_file_of_html_is_the_text_that_it_shows_in_every_command(tmp_path: Path) -> None:
    page, text, folder = tmp_path / "page.HTML", tmp_path / "text.txt", tmp_path / "index"
    page.write_text(f"<title>News</title><script>ignored()</script><p>{CLIMATE}</p>")
    text.write_text(f"News\n{CLIMATE}")
    shown = json.loads(ndd("corpus", "compare", page, text, "--json").stdout)
    assert (shown["exact_resemblance"], shown["near_duplicates"]) == (1.0, True)
    ndd("index", "add", tmp_path, folder)
    assert len(json.loads(ndd("search", folder, "ministers", "--json").stdout)["hits"]["hits"]) == 1


@pytest.mark.parametrize("words", ["index add {0} {0}/made", "corpus compare {0}/page.html {0}/page.html"])
def test_html_without_the_extra_is_one_sentence_that_names_it(tmp_path: Path, words: str) -> None:
    (tmp_path / "page.html").write_text(f"<p>{CLIMATE}</p>")
    sentence = 'ndd-search: reading HTML needs selectolax, which is not installed: pip install "ndd-search[html]"\n'
    assert ndd(*words.format(tmp_path).split(), code=2, lacking="selectolax").stderr == sentence


@pytest.mark.parametrize("words", ["index add {0} {0}.idx --text body", "corpus compare {0} {0}", "corpus page"])
def test_recipes_of_html_without_the_extra_are_one_sentence_that_names_it(
    tmp_path: Path, articles: Path, words: str
) -> None:
    given = [*words.format(articles).split(), "--recipe", "w3-k64-v4-html"]
    done = ndd(*given, stdin=f"<p>{CLIMATE}</p>\n", code=2, lacking="selectolax")
    assert done.stderr.endswith('pip install "ndd-search[html]"\n')
    assert done.stderr.count("\n") == 1


def test_documents_that_no_index_takes_are_named_by_their_line_and_the_rest_is_indexed(tmp_path: Path) -> None:
    lines = [
        '{"id": true, "body": "x"}',
        '{"id": 1.5, "body": "x"}',
        '{"id": "\\ud800", "body": "x"}',
        '{"id": 2, "body": "x", "price": NaN}',
        '{"id": 3, "body": "x", "price": 1e999}',
        '{"id": 4, "body": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"id": 5, "body": "good"}',
    ]
    (tmp_path / "odd.jsonl").write_text("\n".join(lines))
    done = ndd("index", "add", tmp_path / "odd.jsonl", tmp_path / "idx", "--json", code=3)
    assert json.loads(done.stdout)["added"] == 1
    assert json.loads(done.stdout)["left_out"] == 6
    assert sorted(re.findall(r"line (\d) was skipped, (.+?)(?:[:(]|$)", done.stderr, re.MULTILINE)) == [
        ("1", "its id is True"),
        ("2", "its id is 1.5"),
        ("3", "its id has a lone surrogate, which UTF-8 cannot hold"),
        ("4", "it cannot be written as JSON"),
        ("5", "it cannot be written as JSON"),
        ("6", "it is nested too deep"),
    ]


def test_a_file_whose_name_is_no_text_is_left_out(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "good.txt").write_text("a volcano erupts")
    (notes / "latin.txt").write_bytes(b"a volcano smokes in M\xe9xico")
    Path(os.fsdecode(os.fsencode(notes) + b"/bad\xff.txt")).write_text("another one")
    done = ndd("index", "add", notes, tmp_path / "idx", "--json", code=3)
    assert json.loads(done.stdout)["added"] == 2
    assert "latin.txt has characters that are not UTF-8" in done.stderr
    assert "was skipped, its id has a lone surrogate, which UTF-8 cannot hold" in done.stderr


def test_what_a_newcomer_gets_wrong_with_text_fields_is_told(tmp_path: Path, articles: Path) -> None:
    done = ndd("index", "add", articles, tmp_path / "idx", "--text", "boddy", "--json", code=2)
    assert "no document has text in boddy; the fields there are id, title, body; nothing was stored" in done.stderr
    assert not (tmp_path / "idx").exists()
    assert json.loads(ndd("index", "add", articles, tmp_path / "idx", "--text", "title, body", "--json").stdout)[
        "text"
    ] == [
        "title",
        "body",
    ]
    (tmp_path / "other.jsonl").write_text('{"id": 1, "abstrakt": "x"}\n')
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "folder").mkdir()
    for source, problem in (
        (
            "other.jsonl",
            "none of its fields has a name that usually holds text; the fields there are id, abstrakt; name the fields "
            "that hold the text: --text NAME,NAME",
        ),
        ("empty.jsonl", "it holds no document that can be indexed"),
        ("folder", "it holds no .txt, .md, .html"),
    ):
        assert problem in ndd("index", "add", tmp_path / source, tmp_path / "new.idx", code=2).stderr
        assert not (tmp_path / "new.idx").exists()


def test_files_that_are_damaged_or_no_utf_8_are_told(tmp_path: Path, articles: Path) -> None:
    packed = gzip.compress(articles.read_bytes() * 50)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "plain.jsonl.gz").write_bytes(articles.read_bytes())
    for name in ("cut.jsonl.gz", "plain.jsonl.gz"):
        told = ndd("index", "add", tmp_path / name, tmp_path / "idx", "--text", "body", code=2).stderr
        assert f"{name}: it is not a complete gzip file" in told
    (tmp_path / "latin.jsonl").write_bytes(
        '{"id": 1, "body": "déjà vu"}\n{"id": 2, "body": "voilà"}\n'.encode("latin-1")
    )
    told = ndd("index", "add", tmp_path / "latin.jsonl", tmp_path / "idx").stderr
    assert told.count("\n") == 1
    assert (
        "latin.jsonl: line 1 has bytes that are not UTF-8: they were replaced by \ufffd; convert the file to UTF-8"
        in told
    )


def test_texts_are_shown_as_they_are_and_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    hostile = "alpha [bold]omega[/bold] [/nonsense] :smile: \x1b]0;title\x07 \x1b[31m \u202e \ud800 end"
    document = json.dumps({"id": "one\x1b[2J[/x]", "body": hostile})
    (tmp_path / "hostile.jsonl").write_text(document + "\n")
    ndd("index", "add", tmp_path / "hostile.jsonl", tmp_path / "idx")
    shown = ndd("search", tmp_path / "idx", "alpha").stdout
    assert "[bold]omega[/bold]" in shown
    assert "[/nonsense] :smile:" in " ".join(shown.split())
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    answer = json.loads(ndd("search", tmp_path / "idx", "alpha", "--json").stdout)
    assert answer["hits"]["hits"][0]["_source"] == json.loads(document)


def test_output_that_standard_output_has_no_letters_for_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words.jsonl").write_text(json.dumps({"id": 1, "body": "alpha déjà 😀"}) + "\n")
    ndd("index", "add", tmp_path / "words.jsonl", tmp_path / "idx")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    assert "d\\xe9j\\xe0" in ndd("search", tmp_path / "idx", "alpha", process=True).stdout
    answer = json.loads(ndd("search", tmp_path / "idx", "alpha", "--json").stdout)
    assert answer["hits"]["hits"][0]["_source"]["body"] == "alpha déjà 😀"


@pytest.mark.parametrize(
    "words",
    ["search {tmp}/idx final", "corpus page", "search {tmp}/idx final --json", "corpus page < {tmp}/words"],
)
@pytest.mark.once
def test_closed_standard_streams_are_no_crash(tmp_path: Path, articles: Path, words: str) -> None:
    ndd("index", "add", articles, tmp_path / "idx")
    (tmp_path / "words").write_text("one line\n")
    code = "import sys; from ndd_search.cli import main; sys.exit(main())"
    line = f"'{sys.executable}' -c '{code}' <&- {words.replace('{tmp}', str(tmp_path))} >&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ("ndd-search: standard input is empty\n" if words == "corpus page" else "")
    assert done.returncode in (0, 1)


def test_pages_beyond_the_end_say_how_many_hits_there_are(tmp_path: Path, articles: Path) -> None:
    ndd("index", "add", articles, tmp_path / "idx")
    shown = ndd("search", tmp_path / "idx", "final emissions", "--from", "5", code=1).stdout
    assert shown == "no hit at place 6: 2 different ones in all\n"


def test_broken_lines_are_named_the_rest_is_indexed_and_the_exit_code_says_so(tmp_path: Path, articles: Path) -> None:
    with articles.open("a") as file:
        file.write('{"id": "broken"\n\n["no object"]\n{"body": "no id"}\n{"id": "good", "body": "after"}\n')
    done = ndd("index", "add", articles, tmp_path / "idx", "--json", code=3)
    assert json.loads(done.stdout)["added"] == 4
    assert "line 4 was skipped, it is not JSON: " in done.stderr
    assert "line 6 was skipped, it is not a JSON object but list" in done.stderr
    assert "line 7 was skipped, it has no id" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["search", "{tmp}/nowhere", "x"], "there is no index here; create it: ndd-search index add FILE"),
        (["search", "http://localhost:9200", "x"], "name an index folder; ndd-search ui searches an engine"),
        (["search", "{tmp}", "x", "--preset", "web"], "it is not an index"),
        (
            ["corpus", "page", "--set", "totl=groups", "{tmp}/articles.jsonl"],
            "unknown option 'totl' (did you mean total?)",
        ),
        (
            ["corpus", "groups", "{tmp}", "--text", "a", "--set", "min_similarity=1"],
            "a flag of its own: --min-similarity",
        ),
        (
            ["search", "{tmp}", "x", "--preset", "wbe"],
            "there is no preset 'wbe' (did you mean web?): there are news, web,",
        ),
        (["corpus", "page", "--preset", "{tmp}/absent.toml"], "there is no such file"),
        (["tune", "{tmp}/nowhere", "--queries", "{tmp}/articles.jsonl"], "there is no index here; create it"),
        (
            ["tune", "{tmp}/nowhere", "--queries", "{tmp}/absent"],
            "{tmp}/absent: there is no such file or folder; check its name",
        ),
        (["tune", "{tmp}", "--queries", "{tmp}/absent", "--save", "{tmp}/no/x.toml"], "there is no folder {tmp}/no"),
        (["tune", "{tmp}", "--queries", "{tmp}/absent", "--save", "{tmp}/x.txt"], "give it such a name"),
        (["index", "add", "", "{tmp}/idx"], "argument SOURCE: expected a value, got ''"),
        (["backfill", "http://localhost:1", "", "--template"], "argument INDEX: expected a value"),
        (["backfill", "--template", "--field", "_ndd"], "a sketch needs a top-level name"),
        (["backfill", "http://localhost:1"], "the index is missing"),
        (["doctor", "http://localhost:1", "news", "--explain", "4711"], "--explain needs the search"),
        (["search", "{tmp}", "x", "--size", "-1"], "in 1..2147483647, got '-1'\n"),
        (["backfill", "http://localhost:1", "news", "--fields", "a", "--remove", "ndd"], "name one of the two"),
        (["serve", "--set", "windw=3"], "facets, upstream"),
        (["search", "{tmp}", "-sport"], "-sport was read as an option: write -- before what is none"),
        (["corpus", "page", "--text", "a,,b"], "expected NAME or NAME,NAME"),
        (["corpus", "compare", "-", "-"], "standard input can be read only once"),
        (["doctor", "http://localhost:99999999", "news"], "is not an address of a cluster"),
        (["doctor", "http://[::1", "news"], "is not an address of a cluster"),
        (["doctor", "https://localhost:1", "news", "--ca-certs", "{tmp}/absent"], "--ca-certs {tmp}/absent: No such"),
        (["search", "{tmp}", "x"], "it is not an index of ndd-search"),
        (["index", "add", "{tmp}/absent.jsonl", "{tmp}/idx"], "there is no such file"),
        (["index", "add", "{tmp}/articles.jsonl", "{tmp}/articles.jsonl"], "it is not an index of ndd-search"),
        (["index", "add", "{tmp}/photo.jpg", "{tmp}/idx"], "expected .jsonl, .ndjson, .json, .csv"),
        (["index", "add", "{tmp}/list.json", "{tmp}/idx"], "it holds no document that can be indexed"),
        (["corpus", "compare", "{tmp}/photo.jpg", "{tmp}/photo.jpg"], "it is not UTF-8 text"),
        (["corpus", "compare", "{tmp}/absent", "{tmp}/absent"], "there is no such file"),
        (
            ["corpus", "compare", "-", "{tmp}/articles.jsonl", "--min-similarity", "2"],
            "or a number above 0 and at most 1",
        ),
        (["corpus", "page", "--recipe", "nonsense"], "is no recipe id"),
        (["corpus", "page", "--size", "-1"], "argument --size: expected a whole number in 1..2147483647, got '-1'"),
        (["tune", "{tmp}", "--queries", "{tmp}", "--ask", "-1"], "argument --ask: expected a whole"),
        (["tune", "{tmp}", "--queries", "{tmp}", "--ask", "-1"], "argument --ask: expected a whole number in 0.."),
        (["corpus", "mark", "{tmp}", "http://x/y", "--rate", "nan"], "argument --rate: expected a number in 0.001.."),
        (
            ["corpus", "pairs", "{tmp}", "--text", "a", "--min-similarity", "0"],
            "or a number above 0 and at most 1",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(
    tmp_path: Path, articles: Path, words: list[str], sentence: str
) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "list.json").write_text("[]")
    done = ndd(*(word.replace("{tmp}", str(tmp_path)) for word in words), code=2)
    assert sentence.replace("{tmp}", str(tmp_path)) in done.stderr
    assert done.stdout == ""


@pytest.mark.once
def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    lines = "\n".join(f"line {i} says something of its own, number {i * 7919}" for i in range(4_000))
    (tmp_path / "lines").write_text(lines)
    code = "import sys; from ndd_search.cli import main; sys.exit(main())"
    line = f"'{sys.executable}' -c '{code}' corpus page --size 4000 < '{tmp_path}/lines' | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.once
def test_ctrl_c_is_told_and_keeps_what_was_committed(tmp_path: Path) -> None:
    source = tmp_path / "endless.jsonl"
    os.mkfifo(source)
    code = "import sys; from ndd_search.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "index", "add", str(source), str(tmp_path / "idx"), "--text", "body"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running,
        source.open("w") as pipe,
    ):
        for number in range(12_000):
            pipe.write(json.dumps({"id": number, "body": f"story {number}"}) + "\n")
        pipe.flush()
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert told.strip() == "interrupted"
    assert "story" in ndd("search", tmp_path / "idx", "story").stdout


def test_an_error_that_nobody_foresaw_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1, the exit code of Python after a traceback, would mean that nothing was found."""

    def fail(_: object) -> int:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("ndd_search.cli.corpus_page.run", fail)
    assert main(["corpus", "page"]) == 2
    assert "RuntimeError: unforeseen" in capsys.readouterr().err


def test_blanks_around_the_names_of_a_table_belong_to_no_name(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("id, body \n1,a volcano erupts\n")
    ndd("index", "add", tmp_path / "b.csv", tmp_path / "idx", "--text", "body")
    assert "volcano" in ndd("search", tmp_path / "idx", "volcano").stdout
