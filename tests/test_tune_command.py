"""ndd-search tune as a user runs it: on an index in a folder, in a terminal, and on live servers."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.settings_file import read_preset
from tests.backfilling import fill
from tests.collections import read
from tests.command_line import run
from tests.engines.find import Engine
from tests.test_doctor import filled

pytest.importorskip("rich", reason="tables need rich")

CODE = "import sys; from ndd_search.cli import main; sys.exit(main())"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b[2J\x1b]0;owned\x07 \u202e [red]markup[/red] {0}"
PROMPT = "[q]uit > "


def story(number: int) -> str:
    return " ".join(f"word{number * 37 + place * (number + 3)}" for place in range(60))


def documents() -> list[dict[str, Any]]:
    """Twenty stories; copies with more and more of the words replaced, so that similarities are of every kind."""
    made = []
    for number in range(20):
        words = story(number).split()
        for copy, changed in enumerate((0, 1, 3, 6, 10)):
            text = " ".join(
                word if place >= changed * 2 else f"new{number}x{place}" for place, word in enumerate(words)
            )
            made.append({"id": f"{number}-{copy}", "text": f"climate {text} {HOSTILE if copy >= 3 else ''}"})
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    path = tmp_path_factory.mktemp("tune") / "news.idx"
    with ndd.Index.open(path, text="text") as index:
        index.add(documents())
    return path


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.txt"
    path.write_text("climate\nclimate word40\n\nalert\n")
    return path


def test_it_shows_what_each_setting_does_and_saves_the_default_without_being_asked_to_ask(
    folder: Path, queries: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "settings.toml"
    saved.write_text('[indexes."logs-*"]\nenabled = false\n')
    shown = run("tune", folder, "--queries", queries, "--save", saved).stdout
    assert "3 queries, " in shown
    assert 'Recommended: min_similarity = "auto", the default' in shown
    assert f"Saved in {saved}" in shown
    for name in ("auto", "1.0 (identical)", "0.8 (high)", "0.5 (moderate)", "hits hidden", "query: "):
        assert name in shown
    stored = read_preset(saved)
    assert (stored.options, stored.recipe, stored.tuned["queries"]) == (ndd.CollapseOptions(), ndd.Recipe(), 3)
    assert stored.indexes == {"logs-*": {"enabled": False}}  # what tune does not find out is kept
    with ndd.Index.open(folder, preset=ndd.preset(saved)) as index:
        assert index.options == stored.options
    facts = json.loads(run("tune", folder, "--queries", queries, "--json").stdout)
    assert facts["effects"][0]["hidden"] == stored.tuned["hidden"]
    assert facts["answers"] == {"yes": 0, "no": 0, "unknown": 0}


def test_hostile_documents_and_queries_do_nothing_in_the_terminal(folder: Path, queries: Path) -> None:
    queries.write_text(f"alert {HOSTILE}")
    shown = run("tune", folder, "--queries", queries).stdout
    assert not set(shown) & set("\x1b\x07\u202e")
    assert "[red]markup[/red]" in " ".join(shown.split())


def terminal(words: list[object], answer: Callable[[str, int], bytes | int]) -> tuple[int, str]:
    """Run a command in a terminal of its own and answer each prompt: bytes to type, or a signal to send."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1"}
    command = [sys.executable, "-c", CODE, *map(str, words)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as running:
        os.close(theirs)
        shown, asked, since = "", 0, 0
        while chunk := _read(ours):
            shown += chunk
            plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
            if PROMPT in plain[since:]:
                said = answer(plain[since:], asked)
                since, asked = len(plain), asked + 1
                if isinstance(said, bytes):
                    os.write(ours, said)
                else:
                    running.send_signal(said)
                    time.sleep(0.3)  # a signal just before a read that waits is seen when the read ends
                    with suppress(OSError):
                        os.write(ours, b"\n")
        os.close(ours)
    return running.returncode, re.sub(r"\x1b\[[0-9;]*m", "", shown)


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:  # how a terminal says that nobody is there any more
        return ""


def typing(*said: bytes) -> Callable[[str, int], bytes]:
    return lambda _, asked: said[asked]


def truth(shown: str, asked: int) -> bytes:
    """Answer as a reader for whom copies with at most six changes are near-duplicates."""
    first, second = re.findall(r"\b(\d+)-(\d)\b", shown)[-2:]
    return b"y\n" if first[0] == second[0] and "4" not in (first[1], second[1]) else b"n\n"


def test_somebody_answers_in_a_terminal(folder: Path, queries: Path, tmp_path: Path) -> None:
    saved = tmp_path / "settings.toml"
    code, shown = terminal(["tune", folder, "--queries", queries, "--save", saved, "--ask", 8], truth)
    assert code == 0, shown
    assert "pair 8 of at most 8" in shown
    assert read_preset(saved).tuned["answers"] == 8


def test_what_is_no_answer_is_asked_again_and_quit_keeps_what_was_said(folder: Path, queries: Path) -> None:
    for end in (b"q\n", b"\x04"):
        said = [b"y\n", b"maybe\n", b"n\n", b"d\n", end]
        code, shown = terminal(["tune", folder, "--queries", queries, "--ask", 9], typing(*said))
        assert code == 0, shown
        assert "after 1 yes, 1 no, 1 don't know" in shown


def test_ctrl_c_ends_the_questions(folder: Path, queries: Path) -> None:
    words = ["tune", folder, "--queries", queries, "--ask", 9]
    code, _ = terminal(words, lambda shown, asked: b"y\n" if asked < 2 else signal.SIGINT)
    assert code == 130


def test_without_a_terminal_nobody_can_be_asked(folder: Path, queries: Path) -> None:
    done = run("tune", folder, "--queries", queries, "--ask", 5, code=2)
    assert "--ask needs a terminal to ask questions, and standard input is not one" in done.stderr


def test_queries_that_cannot_be_answered_are_told_and_counted_and_the_others_count(folder: Path, queries: Path) -> None:
    queries.write_text('climate\n{"query": {"match_all": {}}}\n{broken\n{"query": "alert"}\n')
    done = run("tune", folder, "--queries", queries, code=3)
    assert "an index in a folder is searched for words" in done.stderr
    assert "line 3 is left out, it is not valid JSON" in done.stderr
    assert "2 queries, " in done.stdout
    assert json.loads(run("tune", folder, "--queries", queries, "--json", code=3).stdout)["failed"] == 2


@pytest.mark.once
def test_of_more_than_300_queries_300_are_taken(folder: Path, queries: Path) -> None:
    queries.write_text("\n".join(f"climate word{number}" for number in range(320)))
    facts = json.loads(run("tune", folder, "--queries", queries, "--json").stdout)
    assert facts["queries"] == 300


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("\n \n", "it holds no query; write one per line"),
        ('{"query": "unfinished', "line 1 is left out, it is not valid JSON"),
        ('{"query": {"match_all": {}}}', "none of the queries succeeded"),
        ("nothing has this word", "none of 1 queries finds a hit"),
    ],
)
def test_queries_that_say_nothing_are_told(folder: Path, queries: Path, lines: str, told: str) -> None:
    queries.write_text(lines)
    assert told in run("tune", folder, "--queries", queries, code=2).stderr


def test_wrong_places_are_told(folder: Path, queries: Path, tmp_path: Path) -> None:
    assert "there is no index here" in run("tune", tmp_path / "no", "--queries", queries, code=2).stderr
    assert "there is no such file" in run("tune", folder, "--queries", tmp_path / "no", code=2).stderr
    assert "is not an address" in run("tune", folder, "news", "--queries", queries, code=2).stderr
    assert "name the index after" in run("tune", "http://localhost:1", "--queries", queries, code=2).stderr
    before = queries.read_text()
    assert "holds no settings" in run("tune", folder, "--queries", queries, "--save", queries, code=2).stderr
    assert queries.read_text() == before


def test_pages_where_nothing_resembles_anything_are_told_so(tmp_path: Path, queries: Path) -> None:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    with ndd.Index.open(tmp_path / "idx", text="body") as index:
        index.add({"id": number, "body": f"climate {story(number)}"} for number in range(3))
    shown = run("tune", tmp_path / "idx", "--queries", queries, code=1).stdout
    assert "No hit of these pages resembles another hit by 0.2 or more: every setting gives the same pages" in shown


def test_settings_to_start_from_are_kept_and_what_is_tuned_is_the_bar(
    folder: Path, queries: Path, tmp_path: Path
) -> None:
    start, saved = tmp_path / "start.toml", tmp_path / "tuned.toml"
    rule = '[indexes."a*"]\nwindow = 20\n'
    start.write_text(f'[collapse]\nwindow = 30\nmin_similarity = 0.9\nguards = ["same:id"]\n{rule}')
    run("tune", folder, "--queries", queries, "--preset", start, "--save", saved, code=1)
    options = read_preset(saved).options
    assert options == ndd.CollapseOptions(window=30, guards=("same:id",), min_similarity="auto")
    assert read_preset(saved).indexes == {"a*": {"window": 20}}
    run("tune", folder, "--queries", queries, "--preset", "products", "--save", saved, code=1)
    assert read_preset(saved).options == ndd.preset("products").options
    told = run("tune", folder, "--queries", queries, "--preset", "messages", process=True).stderr
    assert "preset messages is meant for sketches of recipe c5-k64-v4-nourls, these are of w3-k64-v4" in told


@pytest.mark.newest_servers
def test_an_index_on_a_server_is_tuned_by_words_and_by_bodies_and_wrap_reads_what_was_saved(
    engine: Engine, index: str, tmp_path: Path
) -> None:
    some, queries = read("xquad_pages")[:800], read("xquad_pages", "queries")
    saved, file = tmp_path / "settings.toml", tmp_path / "queries.jsonl"
    bodies = [
        {"query": {"match": {"text": one["query"]}}, "size": 1, "from": 5, "_source": False} for one in queries[:5]
    ]
    broken: dict[str, Any] = {"query": {"nonsense": {}}}
    file.write_text("\n".join(map(json.dumps, [*queries[5:30], *bodies, broken])))
    with engine.client() as client:
        filled(client, index, some)
        client.indices.put_settings(index=index, body={"index": {"max_result_window": 500}})  # less than is counted
        words = [index, "--queries", file, "--fields", "title,text", "--save", saved]
        done = run("tune", engine.url, *words, code=3)
        assert "nonsense" in done.stderr
        assert "30 queries, " in done.stdout
        facts = json.loads(run("tune", engine.url.replace("//", "//me:secret@"), *words, "--json", code=3).stdout)
        assert facts["failed"] == 1
        assert 0 < facts["effects"][0]["hidden"] < facts["hits"]
        assert read_preset(saved).tuned["on"] == f"{engine.url} {index}"
        assert "secret" not in saved.read_text()
        saved.write_text(saved.read_text().replace('"auto"', '"identical"'))
        wrapped = ndd.wrap(client, preset=ndd.preset(saved))
        answer = wrapped.search(index=index, body={"query": {"match_all": {}}, "ndd": True})
        assert answer["ndd"]["min_similarity"] == "identical"


@pytest.mark.newest_servers
def test_an_index_without_sketches_is_told_of_a_backfill(engine: Engine, index: str, tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("climate")
    with engine.client() as client:
        fill(client, index, documents()[:10])
        done = run("tune", engine.url, index, "--queries", queries, code=2)
        assert "none of 10 hits has a sketch of recipe w3-k64-v4; run ndd-search backfill" in done.stderr
        filled(client, f"{index}-x", documents()[10:])
        try:
            done = run("tune", engine.url, f"{index}*", "--queries", queries)
            assert " in 10 of 100 hits: not compared" in done.stderr
        finally:
            client.indices.delete(index=f"{index}-x")
