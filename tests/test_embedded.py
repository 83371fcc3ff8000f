import copy
import gzip
import json
import multiprocessing
import os
import pickle
import random
import runpy
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.errors import InvalidDocument
from tests.examples import ROOT

pytest.importorskip("tantivy", reason="the embedded index needs tantivy")

WORDS = ["river", "stone", "harbour", "winter", "letter", "garden", "signal", "copper", "meadow", "lantern"]


def story(number: int) -> str:
    rng = random.Random(number)
    return " ".join(f"{rng.choice(WORDS)}{rng.randrange(50)}" for _ in range(60)) + " climate"


def documents(groups: int = 30, copies: int = 4) -> list[dict[str, Any]]:
    """Every story several times, each copy with another line in front."""
    return [
        {"id": f"{group}-{copy}", "title": f"copy {copy}", "body": f"seen at site {copy} {story(group)}", "copy": copy}
        for group in range(groups)
        for copy in range(copies)
    ]


@pytest.fixture
def index(tmp_path: Path) -> ndd.Index:
    made = ndd.Index.open(tmp_path / "news", text=["title", "body"])
    assert made.add(documents()) == 120
    return made


def ids(response: dict[str, Any]) -> list[str]:
    return [hit["_id"] for hit in response["hits"]["hits"]]


def copies(hit: dict[str, Any]) -> list[dict[str, Any]]:
    duplicates: list[dict[str, Any]] = (
        hit.get("inner_hits", {}).get("near_duplicates", {}).get("hits", {}).get("hits", [])
    )
    return duplicates


def test_a_page_is_full_and_holds_each_story_once_with_its_copies_below(index: ndd.Index) -> None:
    response = index.search("climate", size=10)
    hits = response["hits"]["hits"]
    assert len({hit["_id"].partition("-")[0] for hit in hits}) == 10
    for hit in hits:
        group = hit["_id"].partition("-")[0]
        assert {hit["_id"], *(copy["_id"] for copy in copies(hit))} <= {f"{group}-{copy}" for copy in range(4)}
        assert all(copy["fields"]["ndd.similarity"][0] >= 0.5 for copy in copies(hit))
        assert hit["_source"] == index.get(hit["_id"])
    assert response["hits"]["total"] == {"value": response["ndd"]["kept"], "relation": "gte"}
    assert response["ndd"]["examined"] == response["ndd"]["kept"] + response["ndd"]["hidden"] == 100
    json.dumps(response)


def test_all_pages_together_show_every_story_once_and_the_total_is_exact_at_the_end(index: ndd.Index) -> None:
    pages = [index.search("climate", size=7, from_=start) for start in range(0, 42, 7)]
    shown = [one for page in pages for one in ids(page)]
    assert sorted(one.partition("-")[0] for one in shown) == sorted(map(str, range(30)))
    assert [len(ids(page)) for page in pages] == [7, 7, 7, 7, 2, 0]
    assert pages[-1]["hits"]["total"] == {"value": 30, "relation": "eq"}
    listed = [copy["_id"] for page in pages for hit in page["hits"]["hits"] for copy in copies(hit)]
    late = [one["_id"] for page in pages[:-1] for one in page["ndd"]["late"]]
    assert sorted({*shown, *listed, *late}) == sorted(document["id"] for document in documents())


def test_the_same_id_again_replaces_the_document(index: ndd.Index) -> None:
    index.add([{"id": "0-0", "title": "changed", "body": "an altogether different text"}])
    assert len(index) == 120
    assert index.get("0-0") == {"id": "0-0", "title": "changed", "body": "an altogether different text"}
    assert ids(index.search("altogether")) == ["0-0"]


def test_a_producer_may_use_one_dict_and_what_is_in_it_for_every_document(tmp_path: Path) -> None:
    def producer() -> Iterator[dict[str, Any]]:
        document: dict[str, Any] = {"tags": []}
        for number in range(1_500):
            document["id"], document["body"], document["tags"][:] = number, story(number), [number]
            yield document

    with ndd.Index.open(tmp_path / "reused", text=["body"]) as index:
        assert index.add(producer()) == len(index) == 1_500
        for number in (0, 700, 1_499):
            assert index.get(number) == {"id": number, "body": story(number), "tags": [number]}


def test_a_deleted_document_is_gone(index: ndd.Index) -> None:
    index.delete(["0-0", "not there"])
    assert len(index) == 119
    assert index.get("0-0") is None


def test_a_commit_ends_what_was_remembered(index: ndd.Index) -> None:
    assert index.search("climate")["ndd"]["cache"] == "miss"
    assert index.search("climate", from_=10)["ndd"]["cache"] == "hit"
    index.delete("0-0")
    assert index.search("climate")["ndd"]["cache"] == "miss"


def test_facets_are_refused_because_a_folder_has_no_aggregations_of_a_search(index: ndd.Index) -> None:
    with pytest.raises(ValueError, match=r"Index\.aggregate counts documents"):
        index.search("story", facets=["sites"])


def test_options_change_how_a_page_is_collapsed(index: ndd.Index) -> None:
    annotated = index.search("climate", size=120, mode="annotate", window=120)
    assert len(ids(annotated)) == 120
    marked = [hit for hit in annotated["hits"]["hits"] if "fields" in hit]
    assert len(marked) == 90
    for hit in marked:
        assert hit["fields"]["ndd.duplicate_of"][0].partition("-")[0] == hit["_id"].partition("-")[0]
    newest = index.search("climate", size=30, window=120, keep=["preferred:copy=3"])
    assert {one.partition("-")[2] for one in ids(newest)} == {"3"}
    wished = index.search("climate", size=30, window=120, keep=[lambda hit: -int(hit["_source"]["copy"])])
    assert ids(wished) == ids(newest)
    whole = index.search("climate", size=5, window=5, keep=["preferred:copy=3"], members="all")
    assert ids(whole) == ids(newest)[:5]
    assert all(len(copies(hit)) == 3 for hit in whole["hits"]["hits"])
    with pytest.raises(TypeError, match="unknown option 'similarity'"):
        index.search("climate", similarity=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "query",
    ["", "   ", '"', "title:(", "a AND (b", "\x00", "\ud800", "~", "*", "é" * 10_000, "[1 TO", "-climate", "climate^"],
)
def test_any_text_is_a_query(index: ndd.Index, query: str) -> None:
    assert index.search(query)["hits"]["total"]["value"] >= 0


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("北京的天气很好", "天气"),
        ("ประเทศไทยสวยงาม", "ไทย"),
        ("東京タワーの夜景", "タワー"),
        ("हिन्दी में समाचार", "हिन्दी"),
        ("Übergrößenträger", "übergrößenträger"),
        ("Running shoes", "run"),
        ("caf\u00e9", "cafe\u0301"),
        ("cafe\u0301", "caf\u00e9"),
        ("ＦＵＬＬ ﬁre", "full"),
        ("e" + "\u0301\u0327" * 300_000 + " storm", "storm"),
    ],
)
def test_words_of_every_script_are_found(tmp_path: Path, text: str, query: str) -> None:
    with ndd.Index.open(tmp_path / "any", text="body") as index:
        index.add([{"id": 1, "body": text}, {"id": 2, "body": "something else"}])
        assert ids(index.search(query)) == ["1"]


def test_an_index_is_opened_again_with_what_it_was_made_with(tmp_path: Path, index: ndd.Index) -> None:
    with ndd.Index.open(tmp_path / "news") as again:
        assert len(again) == 120
        assert ids(again.search("climate")) == ids(index.search("climate"))


def test_readers_see_what_a_writer_commits(tmp_path: Path, index: ndd.Index) -> None:
    with ndd.Index.open(tmp_path / "news") as reader:
        index.add([{"id": "new", "title": "", "body": "volcano"}])
        assert ids(reader.search("volcano")) == ["new"]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_is_opened_as_the_index_was_and_sees_what_it_sees(tmp_path: Path, way: Callable[[Any], Any]) -> None:
    (tmp_path / "ndd.toml").write_text('[collapse]\nmin_similarity = 0.7\nmode = "drop"\n')
    recipe = ndd.Recipe.words(size=2)
    with ndd.Index.open(
        tmp_path / "news", text="body", language="german", recipe=recipe, preset=ndd.preset(tmp_path / "ndd.toml")
    ) as index:
        index.add(documents(5))
        other = way(index)
    assert type(other) is ndd.Index
    assert (other.path, other.recipe, other.options) == (index.path, recipe, index.options)
    assert ids(other.search("climate")) == ids(index.search("climate"))
    index.add([{"id": "late", "body": "ein Fluss im Winter"}])
    assert ids(other.search("Flüsse")) == ids(index.search("Flüsse")) == ["late"]
    other.add([{"id": "later", "body": "ein Stein"}])
    assert index.get("later") == {"id": "later", "body": "ein Stein"}


def test_other_processes_search_an_index_that_they_were_given(index: ndd.Index) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert ids(pool.submit(index.search, "climate", size=5).result()) == ids(index.search("climate", size=5))


def test_a_pickled_index_whose_folder_is_gone_or_another_is_refused_and_no_folder_is_made(index: ndd.Index) -> None:
    pickled = pickle.dumps(index)
    shutil.rmtree(index.path)
    with pytest.raises(
        ndd.errors.IndexUnusable, match="there is no index here; this process must have access to the folder"
    ):
        pickle.loads(pickled)
    assert not index.path.exists()
    ndd.Index.open(index.path, text="title")
    with pytest.raises(ndd.errors.IndexUnusable, match="it holds another index than when it was opened"):
        pickle.loads(pickled)


def test_threads_search_while_another_adds(index: ndd.Index) -> None:
    done = threading.Event()

    def write() -> None:
        for number in range(10):
            index.add([{"id": f"more-{number}", "title": "", "body": f"climate note {story(1000 + number)}"}])
        done.set()

    with ThreadPoolExecutor(4) as pool:
        writing = pool.submit(write)
        while not done.is_set():
            for response in pool.map(lambda start: index.search("climate", from_=start), [0, 0, 10]):
                assert len(ids(response)) == 10
        writing.result()


def test_what_is_remembered_does_not_grow_with_the_documents(tmp_path: Path) -> None:
    cache = MemoryCache()
    with ndd.Index.open(tmp_path / "long", text="body", cache=cache) as index:
        index.add({"id": i, "body": story(i), "attached": "x" * 100_000} for i in range(100))
        found = index.search("climate")["hits"]["hits"]
        assert found == index.search("climate")["hits"]["hits"]
        assert all(len(hit["_source"]["attached"]) == 100_000 for hit in found)
    assert 0 < cache.stats().bytes < 100_000


def test_the_first_thousand_different_words_of_a_query_count(index: ndd.Index) -> None:
    many = " ".join(f"w{i}" for i in range(1023))
    assert len(ids(index.search(f"{many} {many} climate"))) == 10
    assert ids(index.search(f"{many} one climate")) == []


def test_a_cache_can_be_given_and_counts(tmp_path: Path) -> None:
    cache = MemoryCache()
    with ndd.Index.open(tmp_path / "news", text="body", cache=cache) as index:
        index.add(documents())
        for _ in range(3):
            index.search("climate")
    assert (cache.stats().hits, cache.stats().misses) == (2, 1)


WRITER = """
import sys, ndd_search as ndd
from ndd_search.embedded import index as embedded
embedded.COMMIT_EVERY = 512
with ndd.Index.open(sys.argv[1], text="body") as index:
    def documents():
        for number in range(10**9):
            if number % 512 == 0:
                print(len(index), flush=True)
            yield {"id": number, "body": f"document number {number} of the flood"}
    index.add(documents())
"""


def test_documents_of_which_none_has_text_are_told_and_a_field_that_the_first_ones_lack(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ndd.Index.open(tmp_path / "folder", ["titel", "body"]) as index:
        index.add([{"id": 1, "title": "one"}, {"id": 2, "body": "two"}])
        index.add([{"id": 3, "title": "three"}])
        index.add([{"id": 4, "body": "four"}])
    assert [one.partition(": ")[2] for one in caplog.messages] == [
        "none of 2 documents added has text in titel: check its name",
        "none of 1 document added has text in titel, body: no search finds them",
    ]


def test_a_kill_while_adding_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    path = tmp_path / "flood"
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True) as writer:
        committed = 0
        while committed < 2000:
            committed = int(writer.stdout.readline())  # type: ignore[union-attr]
        os.kill(writer.pid, signal.SIGKILL)
    with ndd.Index.open(path) as index:
        kept = len(index)
        assert kept >= committed
        assert all(index.get(number) is not None for number in range(0, kept, 97))
        assert index.add([{"id": "after", "body": "written after the crash"}]) == 1
        assert len(index) == kept + 1


def test_an_error_in_the_middle_keeps_what_was_committed(index: ndd.Index) -> None:
    with pytest.raises(InvalidDocument, match="document 1: it has no id"):
        index.add([{"id": "good", "body": "volcano"}, {"body": "no id"}])
    assert len(index) == 120
    assert index.add([{"id": "good", "body": "volcano"}]) == 1


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_what_the_documents_raise_themselves_passes_and_what_was_there_stays(index: ndd.Index) -> None:
    def broken() -> Any:
        yield {"id": "volcano", "body": "volcano"}
        raise OSError(5, "the tape tore")

    with pytest.raises(OSError, match="the tape tore"):
        index.add(broken())
    assert len(index) == 120
    assert index.add([{"id": "volcano", "body": "volcano"}]) == 1


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"body": "no id"}, "document 0: it has no id"),
        ({"id": None, "body": ""}, "document 0: it has no id"),
        ({"id": ["a"], "body": ""}, "document 0: its id is"),
        ({"id": 1, "body": {1, 2}}, r"document 0 \(1\): it cannot be written as JSON"),
        ("a text", "document 0: it is str, not a mapping"),
        ({"id": "x" * 513, "body": ""}, "document 0: its id does not fit in 512 bytes"),
        ({"id": "\ud800", "body": ""}, "document 0: its id has a lone surrogate"),
        ({"id": 10**5000, "body": ""}, "document 0: its id does not fit"),
        ({"id": 1, "body": "", "x": float("nan")}, r"document 0 \(1\): it cannot be written as JSON"),
        ({"id": 1, "body": nested(100_000)}, r"document 0 \(1\): it is nested too deep"),
    ],
)
def test_a_document_that_cannot_be_taken_is_named(index: ndd.Index, document: Any, problem: str) -> None:
    with pytest.raises(InvalidDocument, match=problem):
        index.add([document])


@pytest.mark.parametrize("documents", ["text", b"bytes", {"id": 1, "body": "one"}])
def test_one_document_is_no_list_of_them(index: ndd.Index, documents: Any) -> None:
    with pytest.raises(TypeError, match=r"documents must be a list of mappings, got one (str|bytes|dict)"):
        index.add(documents)


def test_odd_documents_are_kept_as_they_are(index: ndd.Index) -> None:
    odd: list[dict[str, Any]] = [
        {"id": "nothing"},
        {"id": "null", "title": None, "body": None},
        {"id": "list", "body": ["one", "two"], "title": 3},
        {"id": "surrogate", "body": "half \ud800 of a pair"},
        {"id": "zero", "body": "\x00"},
    ]
    index.add(odd)
    assert [index.get(one["id"]) for one in odd] == odd


def test_an_id_that_no_document_can_have_is_not_found(index: ndd.Index) -> None:
    impossible = ["", "\ud800", "x" * 100_000]
    assert [index.get(id) for id in impossible] == [None] * 3
    index.delete(impossible)
    assert len(index) == 120


@pytest.mark.parametrize(
    "document", [{"id": "k", 1: "a", "1": "b"}, {"id": "k", "n": [{"x": {2: 3}}]}, {"id": "k", "n": {None: 1}}]
)
def test_keys_that_json_would_change_are_refused(index: ndd.Index, document: dict[Any, Any]) -> None:
    with pytest.raises(InvalidDocument, match=r"document 0 \(k\): its key .* and JSON would make it a string"):
        index.add([document])


def test_a_mapping_that_holds_itself_and_a_text_nested_too_deep_are_one_sentence(index: ndd.Index) -> None:
    cyclic: dict[str, Any] = {"id": 1, "body": []}
    cyclic["body"].append(cyclic)
    with pytest.raises(InvalidDocument, match=r"document 0 \(1\): it cannot be written as JSON: Circular"):
        index.add([cyclic])


def test_an_empty_engine_id_leaves_the_documents_own(index: ndd.Index) -> None:
    index.add([{"_id": None, "id": "own", "body": "volcano"}])
    assert ids(index.search("volcano")) == ["own"]


def test_what_is_no_id_deletes_nothing(index: ndd.Index) -> None:
    index.add([{"id": "True", "body": "volcano"}, {"id": "1.5", "body": "volcano"}])
    for wrong in (True, [True], [1.5], ["0-0", None]):
        with pytest.raises(TypeError, match="an id must be a string or an integer, got"):
            index.delete(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="an id must be a string or an integer, got"):
            index.get(wrong)  # type: ignore[arg-type]
    assert len(index) == 122


def test_threads_that_write_to_one_index_wait_for_each_other(index: ndd.Index) -> None:
    def write(number: int) -> int:
        index.delete(f"{number}-0")
        return index.add({"id": f"{number}-{i}-new", "body": story(i)} for i in range(20))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(8))) == [20] * 8
    assert len(index) == 120 - 8 + 160


def test_every_id_is_listed(index: ndd.Index) -> None:
    assert sorted(index.ids()) == sorted(document["id"] for document in documents())
    assert index.sample(3) == [index.get(document["id"]) for document in index.sample(3)]


AIRPORT = "{} Airport is a small public airport with one runway that lies ten kilometres to the north of the town"


def test_entries_of_one_form_that_are_kept_apart_are_told_with_the_option_that_joins_them(tmp_path: Path) -> None:
    airports = [{"id": str(number), "body": AIRPORT.format(f"Name{number}")} for number in range(16)]
    with ndd.Index.open(tmp_path / "airports", text=["body"]) as index:
        index.add([*airports, *documents()])
        [warning] = index.search("airport", size=10)["ndd"]["warnings"]
        joined = index.search("airport", size=10, min_similarity=0.7)["ndd"]
    assert warning.startswith("10 of 10 shown hits are short texts")
    assert "set min_similarity=0.7" in warning
    assert (joined["kept"], joined["warnings"]) == (1, [])


def test_searches_of_the_demo_have_no_warning(tmp_path: Path) -> None:
    pytest.importorskip("rich", reason="the demonstration needs the extra cli")
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    with ndd.Index.open(tmp_path / "demo", text=["title", "text"]) as index:
        index.add([json.loads(line) for line in gzip.decompress(demo["PAGES"].read_bytes()).splitlines()])
        for query in (*demo["QUERIES"], "airport", "elections", "island", "exports"):
            assert index.search(query, size=20)["ndd"]["warnings"] == []
