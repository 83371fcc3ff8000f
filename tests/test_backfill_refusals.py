"""A backfill that an index, a document or a busy server refuses says what happened, and does the rest."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ndd_search.errors import IndexUnusable
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.rate_and_retries import Retry, Stopped
from ndd_search.indexing.sketch_or_remove import SketchDocuments
from tests.backfilling import DYNAMIC, TEXT, backfill, fill, writing
from tests.command_line import run
from tests.engines.find import Engine
from tests.indexed import stored


@pytest.mark.newest_servers
def test_closed_read_only_and_full_indexes_are_told_and_the_others_done(engine: Engine, index: str) -> None:
    with engine.client() as client:
        names = [f"{index}-{kind}" for kind in ("closed", "open", "readonly", "full")]
        try:
            for name in names:
                fill(client, name, [{"id": "1", "text": TEXT}])
            client.indices.close(index=names[0])
            client.indices.put_settings(index=names[2], body={"index.blocks.write": True})
            client.indices.put_settings(index=names[3], body={"index.mapping.total_fields.limit": 5})
            planned = Backfill(index=f"{index}-*", fields=["text"]).plan(client)
            assert [one.waiting for one in planned] == [0, 1, 1, 0]
            done = run("backfill", engine.url, f"{index}-*", "--fields", "text", code=3)
            assert f"{names[0]} was skipped: it is closed" in done.stderr
            assert f"{names[2]} was skipped: it has the block index.blocks.write" in done.stderr
            assert f"{names[3]} was skipped: the server refuses the fields of the sketch" in done.stderr
            assert "1 document written" in done.stdout
            refused = run("backfill", engine.url, names[2], "--fields", "text", code=2)
            assert "index.blocks.write" in refused.stderr
        finally:
            client.indices.put_settings(index=names[2], body={"index.blocks.write": None})
            client.indices.delete(index=",".join(names))


@pytest.mark.parametrize(
    ("name", "words"), [("write", "index write"), ("read_only_allow_delete", "disk usage|read-only-allow-delete")]
)
def test_an_index_blocked_in_the_middle_ends_the_run_with_what_the_server_says(
    engine: Engine, index: str, name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the block of a full disk, whose status is that of a busy server: no page waits for minutes."""
    monkeypatch.setattr("ndd_search.indexing.rate_and_retries.WAITS", [0.01] * 2)
    with engine.client() as client:
        fill(client, index, [{"id": str(number), "text": TEXT} for number in range(1_000)])
        block = {f"index.blocks.{name}": True}
        began = threading.Event()

        def write(other: Any) -> None:
            began.wait(30)
            other.indices.put_settings(index=index, body=block)

        with (
            writing(engine, index, write),
            pytest.raises(IndexUnusable, match=rf"the server refuses to write.*({words})"),
        ):
            backfill(client, index, ["text"], rate=500, on_progress=lambda done, total: began.set())
        client.indices.put_settings(index=index, body={f"index.blocks.{name}": None})


@pytest.mark.parametrize("is_slow", [False, True])
def test_an_index_that_is_deleted_in_the_middle_is_not_made_anew(
    engine: Engine, index: str, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines make the index of an update that is not there, and an alias of its name is then refused."""
    began, sketch = threading.Event(), SketchDocuments.changes
    with engine.client() as client, engine.client() as other:
        fill(client, index, [{"id": str(number), "text": TEXT} for number in range(1_000)])

        def delete(_: Any = None) -> None:
            began.wait(30)
            time.sleep(0.2)
            other.indices.delete(index=index)

        def sketch_late(job: SketchDocuments, hits: Any) -> Any:
            made = sketch(job, hits)
            delete() if began.is_set() and hits else None
            return made

        if is_slow:  # it is deleted while the rate has the next page wait
            with writing(engine, index, delete), pytest.raises(Exception, match=r"404|no such index|deleted"):
                backfill(client, index, ["text"], rate=500, on_progress=lambda done, total: began.set())
        else:  # it is deleted between the reading of a page and its writing
            monkeypatch.setattr(SketchDocuments, "changes", sketch_late)
            with pytest.raises(IndexUnusable, match="somebody has deleted it meanwhile"):
                backfill(client, index, ["text"], on_progress=lambda done, total: began.set())
        assert not client.indices.exists(index=index)


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"properties": {"ndd": {"type": "text"}}}, "ndd is a field of type text"),
        (
            {"properties": DYNAMIC},
            "ndd.recipe is text, not keyword",
        ),
        ({"_source": {"enabled": False}}, "_source is disabled"),
        ({"enabled": False}, "its mapping is switched off"),
        ({"_source": {"excludes": ["vector"]}}, "which every update of a document would lose"),
    ],
)
def test_an_index_that_would_suffer_is_left_alone(
    engine: Engine, index: str, mapping: dict[str, Any], words: str
) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": mapping})
        fill(client, index, [{"id": "1", "text": TEXT}])
        with pytest.raises(IndexUnusable, match=words):
            backfill(client, index, ["text"])


class Failing(Exception):
    """An error with a status, as the clients raise them."""

    def __init__(self, status_code: int) -> None:
        super().__init__("the server failed")
        self.status_code = status_code


def failing(client: Any, *statuses: int) -> Any:
    """Copy a client; its first requests to change a mapping, and to open a point in time, fail with these statuses."""
    copied = copy.copy(client)
    copied.indices = copy.copy(client.indices)
    opens = "open_point_in_time" if hasattr(client, "open_point_in_time") else "create_pit"
    for owner, name in ((copied.indices, "put_mapping"), (copied, opens)):
        setattr(owner, name, failing_first(getattr(owner, name), list(statuses)))
    return copied


def failing_first(method: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        if left:
            raise Failing(left.pop(0))
        return method(**arguments)

    return call


@pytest.mark.newest_servers
def test_a_failing_server_is_no_refusal_of_an_index(
    engine: Engine, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ndd_search.indexing.rate_and_retries.WAITS", [0.01] * 5)
    with engine.client() as client:
        fill(client, index, [{"id": "1", "text": TEXT}])
        with pytest.raises(Failing):
            backfill(failing(client, 500), index, ["text"])
        assert backfill(failing(client, 503, 429), index, ["text"]).tally.written == 1
        report = backfill(client, index, [], field="nothing", remove=True)
        assert report.notes == (f"the mapping of {index} has no field nothing: check the name",)


def test_fields_that_are_none_are_told_before_every_document_counts_as_done(engine: Engine, index: str) -> None:
    with engine.client() as client:
        fill(client, index, [{"id": "1", "text": TEXT, "author": {"name": "Ann"}}])
        told = (
            r"none of 1 checked document has text in txet, author\.nam "
            r"\(fields with text: author\.name, id, text\)"
        )
        with pytest.raises(IndexUnusable, match=told):
            backfill(client, index, ["txet", "author.nam"])
        assert "ndd" not in stored(client, index)["1"]["_source"]
        report = backfill(client, index, ["text", "txet", "author.name"])
        assert report.notes == (f"the mapping of {index} has no field txet: check the name",)
        before = stored(client, index)["1"]["_source"]
        with pytest.raises(IndexUnusable, match="none of 1 checked document has text in txet"):
            backfill(client, index, ["txet"], recheck=True)  # every sketch would be emptied
        assert stored(client, index)["1"]["_source"] == before
        client.indices.put_mapping(index=index, body={"dynamic": False})
        fill(client, index, [{"id": "2", "headline": TEXT}])  # in _source alone
        report = backfill(client, index, ["headline"])
        assert (report.remaining, report.notes) == (0, ())
        assert len(stored(client, index)["2"]["_source"]["ndd"]["sketch"]) > 5


@pytest.mark.newest_servers
def test_a_query_that_the_server_refuses_is_to_be_corrected(engine: Engine, index: str, tmp_path: Path) -> None:
    with engine.client() as client:
        fill(client, index, [{"id": "1", "text": TEXT}])
    (body := tmp_path / "body.json").write_text('{"query": {"nosuch": {}}}')
    words = ("doctor", engine.url, index, "--explain", "1", "--body", body)
    assert "nothing is lost: correct what the server refuses" in run(*words, code=2).stderr


def test_documents_the_server_will_not_take_are_counted_and_do_not_keep_it_running(engine: Engine, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": {"day": {"type": "date"}}}})
        fill(client, index, [{"id": "1", "text": TEXT}, {"id": "2", "text": TEXT, "day": "2031-05-01"}])
        settings = {"index": {"mapping": {"total_fields": {"limit": 5}}}}
        client.indices.put_settings(index=index, body=settings)  # no room for our fields
        told = run("backfill", engine.url, index, "--fields", "text", code=2).stderr
        assert "Limit of total fields [5] has been exceeded" in told


class Busy:
    """Use the real client with a server that rejects half of the documents as too many, some times."""

    def __init__(self, client: Any, times: int = 3) -> None:
        self._client, self._times, self.refused = client, times, 0

    def __copy__(self) -> Any:
        return copy.copy(self._client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def bulk(self, body: list[dict[str, Any]]) -> Any:
        if self.refused >= self._times:
            return self._client.bulk(body=body)
        self.refused += 1
        half = len(body) // 4 * 2
        response = self._client.bulk(body=body[:half]) if half else {"items": []}
        turned_away = [{"update": {"status": 429, "error": {"type": "rejected"}}}] * ((len(body) - half) // 2)
        return {"items": [*response["items"], *turned_away]}


def test_what_a_busy_server_turns_away_is_sent_again_later(
    engine: Engine, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ndd_search.indexing.rate_and_retries.WAITS", [0.01] * 5)
    with engine.client() as client:
        fill(client, index, [{"id": str(number), "text": TEXT} for number in range(40)])
        busy = Busy(client)
        report = backfill(busy, index, ["text"])
        assert (report.tally.written, report.remaining, busy.refused) == (40, 0, 3)


def test_what_a_server_is_too_busy_for_all_the_time_is_told_and_left(
    engine: Engine, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ndd_search.indexing.rate_and_retries.WAITS", [0.01] * 2)
    with engine.client() as client:
        fill(client, index, [{"id": str(number), "text": TEXT} for number in range(40)])
        report = Backfill(index=index, fields=["text"], slices=1).run(Busy(client, 1_000))
        assert (report.tally.written, report.remaining) == (39, 1), "half of one document is none"
        assert report.tally.refused == {"the server was too busy for minutes": 1}


def test_a_rate_is_kept_over_all_threads_and_stopping_ends_every_wait() -> None:
    began = time.monotonic()
    retry = Retry(rate=1_000)
    threads = [threading.Thread(target=lambda: [retry.admit(10) for _ in range(10)]) for _ in range(3)]  # type: ignore[func-returns-value]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.28 < time.monotonic() - began < 10
    retry.stop()
    with pytest.raises(Stopped):
        retry.pause(60)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "give the fields that make the sketch"),
        ({"fields": ["text"], "remove": True}, "give the fields that make the sketch"),
        ({"fields": ["text"], "slices": 0}, "slices must be 1..64"),
        ({"fields": ["text"], "slices": "4"}, "slices must be a whole number, got '4'"),
        ({"fields": ["text"], "field": "a.b"}, "a sketch needs a top-level name without dots"),
        ({"fields": ["ndd.sketch"]}, "a field of the sketch itself"),
        ({"fields": ["text"], "keys": 65}, "keys must be 0..64, got 65"),
        ({"fields": ["text"], "rate": 0}, "rate must be above 0"),
        ({"fields": ["text"], "rate": "fast"}, "rate must be above 0 documents a second, got 'fast'"),
        ({"remove": "ndd"}, "remove must be true or false, got 'ndd'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Backfill(index="news", **settings)
