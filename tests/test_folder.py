"""The folder of an embedded index that is damaged, foreign, full, locked or owned by another user."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.errors import IndexUnusable, RecipeMismatch
from tests.folders import let_in
from tests.test_embedded import documents, ids

pytest.importorskip("tantivy", reason="the embedded index needs tantivy")

from ndd_search.embedded.folder import WAIT


@pytest.fixture
def index(tmp_path: Path) -> ndd.Index:
    made = ndd.Index.open(tmp_path / "news", text=["title", "body"])
    made.add(documents())
    return made


def test_a_second_writer_waits_and_gets_a_sentence_in_the_end(tmp_path: Path, index: ndd.Index) -> None:
    def slow() -> Any:
        yield {"id": "slow", "body": "x"}
        began = monotonic()
        with pytest.raises(IndexUnusable, match="another process is writing to it, for 10 seconds now"):
            ndd.Index.open(tmp_path / "news").add([{"id": "second", "body": "y"}])
        assert monotonic() - began >= WAIT == 10

    assert index.add(slow()) == 1


def test_a_second_writer_writes_when_the_first_one_has_finished(tmp_path: Path, index: ndd.Index) -> None:
    other, started = ndd.Index.open(tmp_path / "news"), Event()

    def slow() -> Any:
        yield {"id": "slow", "body": "x"}
        started.set()
        sleep(1)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(index.add, slow())
        started.wait()
        assert other.add([{"id": "second", "body": "y"}]) == 1
        assert first.result() == 1
    assert {"slow", "second"} <= {*index.ids()}


def test_what_a_killed_writer_left_is_removed_by_the_next_one(index: ndd.Index) -> None:
    code = """
import os, sys, ndd_search as ndd
def documents():
    for number in range(12_000):
        yield {"id": f"killed-{number}", "title": "", "body": f"{number} " + "filler word " * 200}
    os.kill(os.getpid(), 9)
ndd.Index.open(sys.argv[1]).add(documents())
"""
    subprocess.run([sys.executable, "-c", code, index.path], check=False)
    assert len(index) > 10_000, "what was committed stays"
    index.add([{"id": "next", "body": "x"}])
    alive = {
        one["segment_id"].replace("-", "") for one in json.loads((index.path / "meta.json").read_text())["segments"]
    }
    assert {path.stem for path in index.path.glob("*.store")} == alive


def test_a_folder_that_is_moved_under_an_open_handle_is_told(tmp_path: Path, index: ndd.Index) -> None:
    """Nor is another index that is put in its place taken for it."""
    uses = (
        lambda: index.search("climate"),
        lambda: len(index),
        lambda: index.add([{"id": 1, "body": "x"}]),
        lambda: index.delete("1"),
        lambda: index.get("1"),
    )
    index.path.rename(tmp_path / "elsewhere")
    for use in uses:
        with pytest.raises(IndexUnusable, match=r"moved or removed after it was opened; open it with Index.open where"):
            use()
    assert not index.path.exists()
    ndd.Index.open(tmp_path / "news", text=["other"]).add([{"id": 1, "other": "y"}])
    for use in uses:
        with pytest.raises(IndexUnusable, match="it holds another index than when it was opened"):
            use()
    assert len(ndd.Index.open(tmp_path / "elsewhere")) == 120


def test_a_folder_that_is_moved_while_it_is_written_is_told(tmp_path: Path, index: ndd.Index) -> None:
    def moving() -> Any:
        yield {"id": "one", "body": "x"}
        index.path.rename(tmp_path / "elsewhere")

    with pytest.raises(IndexUnusable, match="moved or removed after it was opened"):
        index.add(moving())
    assert len(ndd.Index.open(tmp_path / "elsewhere")) == 120


def test_what_is_no_index_of_ours_is_refused(tmp_path: Path, index: ndd.Index) -> None:
    with pytest.raises(IndexUnusable, match="there is no index here"):
        ndd.Index.open(tmp_path / "nowhere")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(IndexUnusable, match="it is not an index of ndd-search"):
        ndd.Index.open(tmp_path / "photos", text="body")
    with pytest.raises(IndexUnusable, match="it is not an index of ndd-search"):
        ndd.Index.open(tmp_path / "photos" / "cat.jpg", text="body")
    with pytest.raises(IndexUnusable, match="it was made with text"):
        ndd.Index.open(tmp_path / "news", text="summary")
    with pytest.raises(IndexUnusable, match="it was made with language 'english'"):
        ndd.Index.open(tmp_path / "news", language="german")
    with pytest.raises(RecipeMismatch, match="holds sketches of recipe"):
        ndd.Index.open(tmp_path / "news", recipe=ndd.Recipe.words(size=7))
    with pytest.raises(ValueError, match="language must be one"):
        ndd.Index.open(tmp_path / "other", text="body", language="klingon")
    with pytest.raises(ValueError, match="text must name each field once"):
        ndd.Index.open(tmp_path / "other", text=["body", "body"])
    with pytest.raises(TypeError, match="text must be a list, got 3"):
        ndd.Index.open(tmp_path / "other", text=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a cache must have the methods of Cache"):
        ndd.Index.open(tmp_path / "news", cache="redis://localhost")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": 99}, "written by a version with index format 99.*update ndd-search"),
        ({"recipe": "w3-k64-v9"}, "written by a version with recipe w3-k64-v9.*update ndd-search"),
        ({"text": None}, "it is not an index of ndd-search"),
        ("[" * 100_000, "it is not an index of ndd-search"),
    ],
)
def test_what_another_version_wrote_is_refused(index: ndd.Index, change: dict[str, Any] | str, problem: str) -> None:
    meta = json.loads((index.path / "ndd.json").read_text())
    (index.path / "ndd.json").write_text(change if isinstance(change, str) else json.dumps({**meta, **change}))
    with pytest.raises(IndexUnusable, match=problem):
        ndd.Index.open(index.path)


@pytest.mark.parametrize(
    ("name", "problem"),
    [("meta.json", "its meta.json is missing"), ("*.store", "engine failed"), ("*.pos", "engine failed")],
)
def test_an_index_that_lost_a_file_is_told(index: ndd.Index, name: str, problem: str) -> None:
    for path in index.path.glob(name):
        path.unlink()
    with pytest.raises(IndexUnusable, match=problem):
        ndd.Index.open(index.path).search("climate")


@pytest.mark.parametrize("kind", ["store", "fast"])  # a plain error of the engine, and a panic
def test_an_index_with_nonsense_inside_a_file_is_told_whatever_the_engine_raises(index: ndd.Index, kind: str) -> None:
    (path,) = index.path.glob(f"*.{kind}")
    written = bytearray(path.read_bytes())
    written[:-110] = b"\xff" * (len(written) - 110)  # the footer, which is read first, stays whole
    path.write_bytes(written)
    with pytest.raises(IndexUnusable, match=r"the engine failed.*create the index again"):
        ndd.Index.open(index.path).search("climate")


@pytest.mark.parametrize("written", ["", "[]", "null", "[" * 100_000, '{"version": 1}', "of another recipe"])
def test_an_index_whose_table_of_common_values_cannot_be_read_does_without(index: ndd.Index, written: str) -> None:
    assert index.frequency_table is not None
    if written == "of another recipe":
        written = (index.path / "common.json").read_text().replace(index.recipe.id, "w5-k64-v4")
    (index.path / "common.json").write_text(written)
    assert ndd.Index.open(index.path).frequency_table is None
    assert ids(ndd.Index.open(index.path).search("climate"))
    assert index.add(documents(60)) == 240
    assert index.frequency_table is not None


def test_an_index_whose_folder_is_removed_meanwhile_is_told(index: ndd.Index) -> None:
    shutil.rmtree(index.path)
    for use in (lambda: index.search("climate"), lambda: len(index), lambda: index.add([{"id": 1}])):
        with pytest.raises(IndexUnusable):
            use()


def test_a_full_disk_is_told_and_what_was_there_stays(index: ndd.Index) -> None:
    code = """
import resource, signal, sys, ndd_search as ndd
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
index = ndd.Index.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    index.add({"id": f"big-{i}", "title": "", "body": f"{i} " + "filler word " * 200} for i in range(3000))
except ndd.errors.NDDError as error:
    print(error)
"""
    before = {path.stem for path in index.path.glob("*.store")}
    done = subprocess.run(
        [sys.executable, "-c", code, index.path], capture_output=True, text=True, timeout=120, check=False
    )
    assert "check free space" in done.stdout or "no space left" in done.stdout, done.stderr
    assert {path.stem for path in index.path.glob("*.store")} == before, "no file of the failed writing takes space"
    assert len(ndd.Index.open(index.path)) == 120


def told_another_user(index: ndd.Index) -> list[str]:
    """What somebody else is told who adds, and who searches."""
    code = """
import os, sys
import ndd_search as ndd
from ndd_search.embedded import index as embedded
if os.getuid() == 0:
    os.setuid(65534)
for use in (lambda index: index.add([{"id": 1}]), lambda index: index.search("climate")):
    try:
        use(ndd.Index.open(sys.argv[1]))
    except ndd.errors.NDDError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, index.path], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_who_may_not_write_searches_and_is_told_when_adding(index: ndd.Index) -> None:
    index.path.chmod(0o555)
    for path in index.path.iterdir():
        path.chmod(0o444)
    let_in(index.path)
    told = told_another_user(index)
    assert len(told) == 1
    assert "this user has no write permission; give this user write permission, or copy the folder" in told[0]


@pytest.mark.parametrize("closed", ["the folder", "the one above"])
def test_who_may_not_read_is_told(index: ndd.Index, closed: str) -> None:
    let_in(index.path)
    folder = index.path if closed == "the folder" else index.path.parent
    folder.chmod(0o000)
    told = told_another_user(index)
    folder.chmod(0o700)  # for who cleans up
    assert len(told) == 2
    assert all("it cannot be read: Permission denied; check its owner and permissions" in line for line in told)


def test_a_folder_that_cannot_be_written_is_told() -> None:
    with pytest.raises(IndexUnusable, match="it cannot be used"):
        ndd.Index.open("/proc/news", text="body")  # not even the superuser may make a folder there


READER = """
import os, sys
import ndd_search as ndd
from pathlib import Path
from ndd_search.embedded import index as embedded
if os.getuid() == 0:
    os.setuid(65534)
folder = Path(sys.argv[1])
before = sorted(path.name for path in folder.iterdir())
index = ndd.Index.open(folder)
if sys.argv[2] == "sees":
    print([hit["_id"] for hit in index.search("volcano")["hits"]["hits"]], flush=True)
else:
    print("opened", flush=True)
sys.stdin.readline()
print([hit["_id"] for hit in index.search("volcano")["hits"]["hits"]], flush=True)
try:
    index.add([{"id": "mine", "body": "x"}])
except ndd.errors.NDDError as error:
    print(error)
"""


def test_a_reader_who_may_not_write_sees_what_others_commit(index: ndd.Index) -> None:
    """As on a read-only file system, or in the folder of another user."""
    index.add([{"id": "one", "body": "volcano"}])
    index.path.chmod(0o555)
    for path in index.path.iterdir():
        path.chmod(0o444)
    let_in(index.path)
    with subprocess.Popen(
        [sys.executable, "-c", READER, index.path, "sees"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "['one']\n"
        index.path.chmod(0o755)  # a superuser writes anyway; the reader may not, as the folder is not his
        for path in index.path.glob("*.lock"):
            path.chmod(0o600)
        index.add([{"id": "two", "body": "volcano and a river of its own, which nobody else has seen"}])
        for path in index.path.iterdir():
            path.chmod(0o600 if path.suffix == ".lock" else 0o644)
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert sorted(reader.stdout.readline()) == sorted("['one', 'two']\n")
        assert "this user has no write permission" in reader.stdout.readline()
    assert index.get("mine") is None


def test_a_folder_that_can_no_longer_be_written_is_read(index: ndd.Index) -> None:
    """As that of a disk that the system mounted read-only after a fault, before the first search."""
    index.add([{"id": "one", "body": "volcano"}])
    let_in(index.path)
    for mode, of_files in ((0o777, 0o666), (0o555, 0o444)):
        index.path.chmod(mode)
        for path in index.path.iterdir():
            path.chmod(of_files)
        if mode == 0o777:
            reader = subprocess.Popen(
                [sys.executable, "-c", READER, index.path, "opens"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert reader.stdout is not None
            assert reader.stdout.readline() == "opened\n"
    found, told = reader.communicate("\n", timeout=60)[0].splitlines()
    assert found == "['one']"
    assert "this user has no write permission" in told


@pytest.mark.parametrize("left", ["ndd.json.ndd-7.new", "ndd.json.new"])
def test_a_folder_whose_making_was_interrupted_is_made_again(tmp_path: Path, left: str) -> None:
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / left).write_text('{"form')
    with ndd.Index.open(tmp_path / "news", text="body") as index:
        assert index.add([{"id": 1, "body": "volcano"}]) == 1
        assert ids(index.search("volcano")) == ["1"]


def test_an_index_of_the_older_format_says_what_to_do(index: ndd.Index) -> None:
    meta = json.loads((index.path / "ndd.json").read_text())
    (index.path / "ndd.json").write_text(json.dumps({**meta, "format": 1}))
    with pytest.raises(IndexUnusable, match=r"older index format 1.*index the documents again into another folder"):
        ndd.Index.open(index.path)
