"""What commands show: about an index in a folder, and on a terminal."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.command_line import Command

pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
pytest.importorskip("rich", reason="tables need rich")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, capsys, monkeypatch)


def test_a_folder_says_what_it_holds_and_deletes(run: Command) -> None:
    run("index", "add", run.write("a.csv", "id,name,price\n1,one,5\n2,two,6\n"), "idx")
    code, out, _ = run("index", "info", "idx", "--json")
    facts = json.loads(out)
    assert (code, facts["documents"], facts["text"], facts["fields"]) == (0, 2, ["name"], ["id", "name", "price"])
    assert "documents" in run("index", "info", "idx")[1]
    code, out, err = run("index", "delete", "idx", "2", "nope")
    assert (code, "1 document deleted from idx, which now holds 1" in out) == (3, True)
    assert "idx holds no document nope" in err
    assert run("index", "delete", "idx", "nope")[0] == 1
    assert "there is no index here" in run("index", "info", "nowhere")[2]


HOSTILE = "one \x9b2J two \x1b[31m three \u202e four \u2066 five"


@pytest.mark.parametrize(
    "words",
    [
        ["corpus", "page"],
        ["corpus", "page", "--json"],
        ["search", "idx", "three"],
        ["search", "idx", "three", "--json"],
        ["corpus", "compare", "x\x9b2J\u202e.txt", "x\x9b2J\u202e.txt"],
        ["corpus", "compare", "-", "absent\x9b2J\u202e.txt"],
        ["index", "add", "absent\x9b2J\u202e.csv", "idx"],
    ],
)
def test_no_output_makes_a_terminal_act(run: Command, words: list[str]) -> None:
    """On a terminal no byte of a text or a name is a control character or turns the direction of what is shown."""
    run("index", "add", run.write("a.jsonl", json.dumps({"id": HOSTILE, "body": HOSTILE})), "idx")
    run.write("x\x9b2J\u202e.txt", "text")
    shown = on_terminal(*words)
    assert shown
    assert not {"\x9b", "\x1b", "\u202e", "\u2066"} & set(shown)


def on_terminal(*words: str, **environment: str) -> str:
    """What a command line shows on a terminal, standard error as well; its standard input is the hostile text."""
    main_end, other_end = pty.openpty()
    script = "import sys; from ndd_search.cli import main; sys.exit(main(sys.argv[1:]))"
    given = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8", **environment}
    command = [sys.executable, "-c", script, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=other_end, stderr=other_end, env=given) as process:
        os.close(other_end)
        assert process.stdin is not None
        process.stdin.write(HOSTILE.encode() + b"\n")
        process.stdin.close()
        shown = b""
        with suppress(OSError):  # the other end is closed
            while piece := os.read(main_end, 65536):
                shown += piece
    os.close(main_end)
    return shown.decode()


def test_a_hit_in_a_folder_of_files_links_to_its_file_and_its_words_are_marked(run: Command) -> None:
    run.write("notes/a b.txt", "the volcano smoked")
    run("index", "add", "notes", "idx")
    shown = on_terminal("search", "idx", "volcano", TERM="xterm-256color", COLUMNS="100")
    assert f";{(run.folder / 'notes' / 'a b.txt').as_uri()}\x1b\\" in shown
    assert "\x1b[1;7mvolcano\x1b[0m" in shown


def test_what_is_piped_is_as_it_was(run: Command) -> None:
    run("index", "add", run.write("a.jsonl", json.dumps({"id": 1, "body": HOSTILE})), "idx")
    _, out, _ = run("search", "idx", "three", "--json")
    assert json.loads(out)["hits"]["hits"][0]["_source"]["body"] == HOSTILE
    assert "\u202e" in out
