"""Backfill on live servers: what it writes and leaves alone, with concurrent writes, and when it is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.rest.mapping import mapping_properties
from tests.backfilling import TEXT, backfill, fill, writing
from tests.collections import read
from tests.command_line import command, run
from tests.engines.find import Engine
from tests.indexed import FIELDS, RECIPE, check, stored


def test_an_index_filled_without_us_gets_all_its_sketches_and_a_second_run_does_nothing(
    engine: Engine, index: str
) -> None:
    documents = [
        *read("xquad_pages")[:2_000],
        {"id": "without-text", "lang": "en"},
        {"id": "null", "title": None, "text": []},
    ]
    with engine.client() as client:
        client.indices.create(index=index, body={"settings": {"number_of_shards": 3}})
        fill(client, index, documents)
        told: list[tuple[int, int]] = []
        report = backfill(client, index, FIELDS, slices=2, on_progress=lambda done, total: told.append((done, total)))
        assert (report.tally.written, report.remaining) == (len(documents), 0)
        assert told[-1] == (len(documents), len(documents))
        check(client, index, {document["id"]: document for document in documents})
        versions = {key: hit["_source"] for key, hit in stored(client, index).items()}
        again = backfill(client, index, FIELDS)
        assert (again.work[0].waiting, again.tally.seen, again.tally.written) == (0, 0, 0)
        assert {key: hit["_source"] for key, hit in stored(client, index).items()} == versions


def test_documents_changed_meanwhile_are_never_overwritten_and_end_with_the_sketch_of_their_final_text(
    engine: Engine, index: str
) -> None:
    documents = {document["id"]: document for document in read("xquad_pages")[:1_000]}
    changed = list(documents)[::5]

    def write(client: Any) -> None:
        for number, key in enumerate(changed):
            text = f"{documents[key]['text']} Changed for the {number}th time."
            documents[key] = {**documents[key], "text": text}
            if number % 3 == 0:  # as a whole, and the sketch is gone
                client.index(index=index, id=key, body=documents[key])
            else:  # the text alone, and a sketch that is there no longer fits
                client.update(index=index, id=key, body={"doc": {"text": text}}, retry_on_conflict=5)
        client.delete(index=index, id=changed[0])
        del documents[changed[0]]
        documents["new"] = {"id": "new", "title": "New", "text": TEXT}
        client.index(index=index, id="new", body=documents["new"])

    with engine.client() as client:
        fill(client, index, list(documents.values()))
        with writing(engine, index, write):
            backfill(client, index, FIELDS, rate=2_000, slices=2)
        report = backfill(client, index, FIELDS)  # the writer may have been the last
        assert report.remaining == 0
        check(client, index, documents)


def test_it_reads_the_index_only_twice_while_others_write_all_the_time(engine: Engine, index: str) -> None:
    documents = {document["id"]: document for document in read("xquad_pages")[:1_000]}
    over = threading.Event()

    def write(client: Any) -> None:
        for number, key in enumerate(cycle(list(documents)[:20])):
            if over.is_set():
                return
            documents[key] = {**documents[key], "text": f"{TEXT} Changed for the {number}th time."}
            client.update(index=index, id=key, body={"doc": {"text": documents[key]["text"]}}, retry_on_conflict=9)

    with engine.client() as client:
        fill(client, index, list(documents.values()))
        with writing(engine, index, write):
            try:
                report = backfill(client, index, FIELDS)
            finally:
                over.set()
        assert report.tally.seen < 3 * len(documents)
        backfill(client, index, FIELDS, recheck=True)
        check(client, index, documents)


def test_an_error_while_it_reads_is_not_hidden_by_one_of_cleaning_up(engine: Engine, index: str) -> None:
    documents = read("xquad_pages")[:300]
    with engine.client() as client:
        fill(client, index, documents)
        with pytest.raises(Exception, match=r"^(?!.*num_freed)"):
            backfill(client, index, FIELDS, rate=100, on_progress=lambda done, total: client.indices.close(index=index))
        client.indices.open(index=index)


def sketched(client: Any, index: str) -> list[str]:
    return [key for key, hit in stored(client, index).items() if "ndd" in hit["_source"]]


@pytest.mark.newest_servers
def test_killed_in_the_middle_it_goes_on_where_it_was_and_finds_what_others_wrote_meanwhile(
    engine: Engine, index: str
) -> None:
    documents = {document["id"]: document for document in read("factbook")[:1_200]}
    fields = ["--fields", ",".join(FIELDS)]
    with engine.client() as client:
        fill(client, index, list(documents.values()))
        victim = subprocess.Popen(command("backfill", engine.url, index, *fields, "--rate", 400))
        done: list[str] = []
        while len(done) < 300:
            assert victim.poll() is None
            time.sleep(0.1)
            done = sketched(client, index)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        while (now := sketched(client, index)) != done:  # the server may still carry out the last request
            done = now
            time.sleep(0.3)
        documents[done[0]]["text"] = TEXT  # by an update that leaves the old sketch
        client.update(index=index, id=done[0], body={"doc": {"text": TEXT}})
        told = json.loads(run("backfill", engine.url, index, *fields, "--json").stdout)
        assert told["work"][0]["waiting"] == len(documents)  # all are compared
        assert told["remaining"] == 0
        assert 1 < told["written"] <= len(documents) - 300 + 1
        check(client, index, documents)


@pytest.mark.newest_servers
@pytest.mark.parametrize("what", ["backfill", "remove", "mark"])
def test_a_command_that_a_supervisor_stops_is_finished_by_the_same_command(
    what: str, engine: Engine, index: str, tmp_path: Path
) -> None:
    """SIGTERM ends it at once, as its exit code says; what it wrote stays, and is not written again."""
    documents = [{"id": str(number), "text": f"{TEXT} {number % 7} {number % 5}"} for number in range(600)]
    query: dict[str, Any] = {"exists": {"field": "ndd.group" if what == "mark" else "ndd.recipe"}}
    with engine.client() as client:
        fill(client, index, documents)
        words: list[object] = ["backfill", engine.url, index, "--fields", "text", "--json"]
        if what == "remove":
            backfill(client, index, ["text"])
            words, query = (
                ["backfill", engine.url, index, "--remove", "ndd", "--yes", "--json"],
                {"bool": {"must_not": query}},
            )
        if what == "mark":
            groups, target = tmp_path / "groups.jsonl", f"{engine.url}/{index}"
            run("corpus", "groups", target, "--text", "text", "--out", groups)
            words = ["corpus", "mark", groups, target, "--json"]

        def done() -> int:
            client.indices.refresh(index=index)
            return int(client.count(index=index, body={"query": query})["count"])

        stopped = subprocess.Popen(command(*words, "--rate", 100), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while done() < 60:
            assert stopped.poll() is None
            time.sleep(0.05)
        stopped.send_signal(signal.SIGTERM)
        assert stopped.communicate(timeout=60) == (b"", b"")
        assert stopped.returncode == -signal.SIGTERM
        before = -1
        while before != (before := done()):  # the server may still carry out the last request
            time.sleep(0.3)
        assert before < len(documents)
        assert json.loads(run(*words).stdout)["written"] == len(documents) - before
        assert done() == len(documents)


@pytest.mark.newest_servers
def test_ctrl_c_ends_it_with_a_sentence_and_what_was_written_stays(engine: Engine, index: str) -> None:
    with engine.client() as client:
        fill(client, index, [{"id": str(number), "text": TEXT} for number in range(2_000)])
        words = command("backfill", engine.url, index, "--fields", "text", "--rate", 200)
        running = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        query = {"query": {"exists": {"field": "ndd.recipe"}}}
        while client.count(index=index, body=query)["count"] < 100:
            assert running.poll() is None
            time.sleep(0.1)
            client.indices.refresh(index=index)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=30)
        assert (running.returncode, errors) == (130, "interrupted\n")
        assert backfill(client, index, ["text"]).work[0].waiting < 2_000


@pytest.mark.newest_servers
def test_a_new_recipe_is_made_beside_the_old_one_which_is_then_removed(engine: Engine, index: str) -> None:
    documents = {str(number): {"id": str(number), "text": f"{TEXT} {number}", "n": 1.50} for number in range(300)}
    following = ndd.Recipe.words(size=5, k=128)
    with engine.client() as client:
        fill(client, index, list(documents.values()))
        backfill(client, index, ["text"])
        backfill(client, index, ["text"], field="ndd_next", recipe=following)
        both = stored(client, index)["7"]["_source"]
        assert both["ndd"]["recipe"] == RECIPE.id
        assert both["ndd_next"] == SketchField().encode(ndd.sketch(f"{TEXT} 7", following), following, text=["text"])
        done = run("backfill", engine.url, index, "--remove", "ndd", "--yes")
        assert "300 documents written" in done.stdout
        assert "mapping of ndd stays" in done.stderr
        for key, hit in stored(client, index).items():
            left = {name: value for name, value in hit["_source"].items() if value is not None}
            assert left.pop("ndd_next")["recipe"] == following.id
            assert len(left.pop("ndd_next_keys")) == 8
            assert left == documents[key]
            assert "fields" not in hit
        assert "0 documents written" in run("backfill", engine.url, index, "--remove", "ndd", "--yes").stdout
        backfill(client, index, ["text"])  # and it can come back
        assert stored(client, index)["7"]["_source"]["ndd"]["recipe"] == RECIPE.id


def test_sketches_of_another_recipe_and_stale_ones_are_made_anew(engine: Engine, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        other = sketch_fields({"id": "other", "text": TEXT}, "text", recipe=ndd.Recipe.words(k=8))
        fill(client, index, [other, {"id": "stale", "text": TEXT, "ndd": {"sketch": [], "recipe": "stale"}}])
        assert backfill(client, index, ["text"]).tally.written == 2
        assert {hit["_source"]["ndd"]["recipe"] for hit in stored(client, index).values()} == {RECIPE.id}


def test_routing_aliases_with_a_filter_and_data_streams(engine: Engine, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"settings": {"number_of_shards": 3}, "aliases": {f"{index}-all": {}}})
        fill(client, index, [{"id": str(n), "text": f"{TEXT} {n}"} for n in range(50)], routing="somewhere")
        german = {"actions": [{"add": {"index": index, "alias": f"{index}-de", "filter": {"ids": {"values": ["3"]}}}}]}
        client.indices.update_aliases(body=german)
        assert backfill(client, f"{index}-de", ["text"]).tally.written == 1
        assert backfill(client, f"{index}-all", ["text"]).tally.written == 49
        assert all(hit["_routing"] == "somewhere" for hit in stored(client, index).values())
        assert len(stored(client, index)) == 50

        stream = f"{index}-stream"
        template = {"index_patterns": [stream], "priority": 600, "data_stream": {}}
        client.indices.put_index_template(name=stream, body=template)
        line = {"@timestamp": "2031-05-01T12:00:00Z", "text": TEXT}
        client.bulk(index=stream, body=[{"create": {"_id": "1"}}, line], refresh=True)
        client.indices.rollover(alias=stream)
        client.bulk(index=stream, body=[{"create": {"_id": "2"}}, line], refresh=True)
        report = backfill(client, stream, ["text"])
        assert (len(report.work), report.tally.written, report.remaining) == (2, 2, 0)
        assert any("the next backing index" in note for note in report.notes)
        with suppress(Exception):  # Elasticsearch from published jars cannot delete a data stream
            client.indices.delete_data_stream(name=stream)
            client.indices.delete_index_template(name=stream)


def test_what_a_search_of_a_pattern_does_not_see_is_not_written(engine: Engine, index: str) -> None:
    """Filters of aliases that match a pattern are kept to, hidden indexes are left out, and an alias that routes
    searches to some shards is refused.
    """
    german = {"filter": {"ids": {"values": ["3"]}}}
    with engine.client() as client:
        names = {
            f"{index}-open": {"aliases": {f"{index}alias-german": german, f"{index}other-all": {}}},
            f"{index}-hidden": {"settings": {"index.hidden": True}, "aliases": {f"{index}routed": {"routing": "a"}}},
        }
        try:
            for name, body in names.items():
                client.indices.create(index=name, body=body)
                fill(client, name, [{"id": str(n), "text": TEXT} for n in range(5)])
            with pytest.raises(IndexUnusable, match=f"the alias {index}routed routes searches to some of its shards"):
                backfill(client, f"{index}rout*", ["text"])
            for pattern, written in ((f"{index}alias-*", 1), (f"{index}-*", 4), (f"{index}-hidden", 5)):
                seen = client.count(index=pattern)["count"]
                report = backfill(client, pattern, ["text"])
                assert (report.tally.written, report.remaining) == (written, 0)
                body = {"query": {"exists": {"field": "ndd.recipe"}}}
                assert client.count(index=pattern, body=body)["count"] == seen
        finally:
            client.indices.delete(index=",".join(names))
