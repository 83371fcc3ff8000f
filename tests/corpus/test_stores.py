"""Sketches on disk: saved collections, what is new since one, and commands that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

import ndd_search as ndd
from ndd_search.errors import InvalidDocument, RecipeMismatch
from tests.conftest import LONG
from tests.corpus import made
from tests.corpus.made import DOCUMENTS, OTHER, STORY, write_lines


def test_a_saved_collection_is_loaded_again(tmp_path: Path) -> None:
    corpus = ndd.Corpus.read(DOCUMENTS, text="body", fields=["site"])
    corpus.save(tmp_path / "c.parquet")
    loaded = ndd.Corpus.load(tmp_path / "c.parquet")
    assert (loaded.ids, loaded.recipe, loaded.columns) == (corpus.ids, corpus.recipe, corpus.columns)
    for array in (array for one in (corpus, loaded) for array in (one.sketches.values, one.sketches.offsets)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    assert loaded.groups(0.5).leader.tolist() == corpus.groups(0.5).leader.tolist()
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(InvalidDocument, match="no Parquet file"):
        ndd.Corpus.load(tmp_path / "no.parquet")


def test_new_documents_resemble_none_of_an_earlier_collection(tmp_path: Path) -> None:
    earlier = ndd.Corpus.read(DOCUMENTS[:2], text="body")
    later = [{"id": "x", "body": f"{STORY} again"}, {"id": "y", "body": OTHER}, {"id": "z", "body": f"{OTHER} too"}]
    corpus = ndd.Corpus.read(later, text="body")
    found = corpus.new(earlier, 0.5)
    assert [one["id"] for one in found.documents()] == ["y"]
    rows = {row["document"]: (row["duplicate_of"], row["earlier"]) for row in found.rows()}
    assert rows == {"x": ("a", True), "z": ("y", False)}
    assert found.effort.cut == 0
    found.save(tmp_path / "both.parquet")
    assert ndd.Corpus.load(tmp_path / "both.parquet").ids == ["a", "b", "x", "y", "z"]
    assert len(corpus.new(ndd.Corpus.load(tmp_path / "both.parquet"), 0.5)) == 0


def test_a_new_collection_may_repeat_ids_of_an_earlier_one(tmp_path: Path) -> None:
    """Each is told once, by its text now; the groups of both, which hold the id twice, are no attribute."""
    earlier = ndd.Corpus.read([{"id": "1", "body": STORY}, {"id": "2", "body": STORY}], text="body")
    found = ndd.Corpus.read([{"id": "1", "body": OTHER}, {"id": "2", "body": STORY}], text="body").new(earlier, 0.5)
    assert list(found.documents()) == [{"id": "1", "body": OTHER}]
    assert [(row["document"], row["duplicate_of"], row["earlier"]) for row in found.rows()] == [("2", "1", True)]
    found.save(tmp_path / "both.parquet")
    assert ndd.Corpus.load(tmp_path / "both.parquet").ids == ["1", "2"]
    assert not hasattr(found, "groups")


def test_a_document_without_text_is_new_once(tmp_path: Path) -> None:
    """The second time its id is known; another one without text is new, and one that has a text by now is compared."""
    weeks = [{"a": STORY, "x": ""}, {"b": f"{STORY} today", "x": "", "y": ""}, {"x": OTHER, "y": ""}]
    saved, told = tmp_path / "saved.parquet", []
    ndd.Corpus.read([{"id": "first", "body": "a text of another collection"}], text="body").save(saved)
    for week in weeks:
        documents = [{"id": name, "body": body} for name, body in week.items()]
        found = ndd.Corpus.read(documents, text="body").new(ndd.Corpus.load(saved), 0.5)
        told.append([one["id"] for one in found.documents()])
        found.save(saved)
    assert told == [["a", "x"], ["y"], ["x"]]


def test_a_collection_of_another_recipe_is_refused() -> None:
    one = ndd.Corpus.read(DOCUMENTS, text="body")
    with pytest.raises(RecipeMismatch):
        one.new(ndd.Corpus.read(DOCUMENTS, text="body", recipe="w5-k64-v4"))


GROUP = """
import sys
from ndd_search.cli import main
sys.exit(main(["corpus", "groups", sys.argv[1], "--text", "text", "--out", sys.argv[2]]))
"""


@pytest.mark.skipif(not LONG, reason="NDD_TEST_LONG=1 kills a command ten times")
def test_a_command_that_was_killed_at_ten_random_moments_gives_the_same(tmp_path: Path) -> None:
    """The table of groups is written as a whole or not at all."""
    documents = [{"id": str(number), "text": text} for number, text in enumerate(made.texts(20_000))]
    source, random = write_lines(tmp_path / "docs.jsonl", documents), np.random.default_rng(3)

    def start(name: str) -> subprocess.Popen[bytes]:
        words = [str(source), str(tmp_path / f"{name}.parquet")]
        return subprocess.Popen([sys.executable, "-c", GROUP, *words], stdout=subprocess.DEVNULL)

    began = time.monotonic()
    assert start("whole").wait() == 0
    seconds = time.monotonic() - began
    for moment in random.random(10).tolist():
        process = start("killed")
        time.sleep(moment * seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "killed.parquet").exists() or parquet.read_table(tmp_path / "killed.parquet")
    assert start("killed").wait() == 0
    assert parquet.read_table(tmp_path / "killed.parquet").equals(parquet.read_table(tmp_path / "whole.parquet"))


def test_a_field_that_no_column_can_hold_is_named(tmp_path: Path) -> None:
    documents = [{**one, "x": value} for one, value in zip(DOCUMENTS, (1, "a"), strict=False)]
    with pytest.raises(InvalidDocument, match="a column cannot hold all values of the field 'x'"):
        ndd.Corpus.read(documents, text="body", fields=["x"]).save(tmp_path / "all.parquet")


def test_the_package_tells_which_extra_brings_pyarrow(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["pyarrow"] = None
import ndd_search as ndd
corpus = ndd.Corpus.read([{{"text": "a"}}], text="text")
print(len(corpus.groups()))
try:
    corpus.save({str(tmp_path / "c.parquet")!r})
except ndd.errors.NDDError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.splitlines()[0] == "1"
    assert 'pip install "ndd-search[corpus]"' in done.stdout


def test_sketches_are_saved_in_no_file_of_another_kind(tmp_path: Path) -> None:
    corpus = ndd.Corpus.read([{"id": "a", "body": "one two three four"}], text="body")
    with pytest.raises(ValueError, match=r"saved\.csv: sketches are saved as Parquet"):
        corpus.save(tmp_path / "saved.csv")
    assert not list(tmp_path.iterdir())


def test_a_changed_byte_in_the_pages_of_a_saved_collection_is_told(tmp_path: Path) -> None:
    documents = [{"id": f"id-{number}", "body": f"{STORY} {number}", "site": f"site {number}"} for number in range(40)]
    saved = tmp_path / "saved.parquet"
    (corpus := ndd.Corpus.read(documents, text="body", fields=["site"])).save(saved)
    whole, told = saved.read_bytes(), 0
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # of the pages
    for place in range(4, end, end // 60):
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            loaded = ndd.Corpus.load(saved)
        except InvalidDocument:
            told += 1
        else:
            assert (loaded.ids, loaded.columns) == (corpus.ids, corpus.columns)
            assert loaded.sketches.values.tolist() == corpus.sketches.values.tolist()
    assert told > 40
