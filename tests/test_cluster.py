"""Commands for clusters: addresses, detection of the engine, error messages, templates."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from ndd_search.cli.cluster import Address
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.with_sketches import sketch_fields
from tests.command_line import run
from tests.engines.find import Engine
from tests.index_templates import files


@pytest.mark.parametrize(
    ("url", "bare", "user"),
    [
        ("http://localhost", "http://localhost:9200", ""),
        ("https://search.example.org", "https://search.example.org:443", ""),
        ("http://me:p%40ss%3Aword@10.0.0.1:9201/prefix/", "http://10.0.0.1:9201/prefix", "me"),
        ("https://[::1]:9200", "https://[::1]:9200", ""),
    ],
)
def test_an_address_is_read(url: str, bare: str, user: str) -> None:
    address = Address.parse(url, api_key="key")
    assert (address.url, address.user) == (bare, user)
    assert address.password == ("p@ss:word" if user else "")
    assert address.api_key == ("" if user else "key"), "who names a user does not mean the key of the environment"


@pytest.mark.parametrize("url", ["localhost:9200", "ftp://host", "http://", "", "news"])
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(ValueError, match="is not an address of a cluster; write it as https://USER:PASSWORD@HOST:9200"):
        Address.parse(url)


def test_each_server_is_asked_what_it_is(engine: Engine) -> None:
    assert Address.parse(engine.url).detect() == engine.family


@contextmanager
def answering(status: int, body: bytes, location: str = "", product: str = "") -> Iterator[tuple[str, list[str]]]:
    """A server that gives one answer; its address, and the Authorization headers it was sent."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("authorization", ""))
            self.send_response(status)
            if location:
                self.send_header("location", location)
            if product:
                self.send_header("x-elastic-product", product)
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_POST = do_GET  # noqa: N815 - the names that http.server asks for

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


OLD = {"version": {"number": "7.10.2"}, "tagline": "The OpenSearch Project: https://opensearch.org/"}


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b"{}", "it answers 401 Unauthorized; check user and password, or NDD_SEARCH_API_KEY"),
        (404, b"{}", "it answers 404 Not Found; check the path: no engine is there"),
        (200, b"<html>", "not a search engine"),
        (200, b'{"version": {"number": "1"}}', "its answer does not name the engine; check the address"),
    ],
)
def test_what_does_not_answer_like_an_engine_is_told(status: int, body: bytes, words: str) -> None:
    with answering(status, body) as (url, _), pytest.raises(IndexUnusable, match=words):
        Address.parse(url).detect()


def test_an_opensearch_that_gives_itself_an_old_number_is_known_by_its_words_and_the_key_is_sent() -> None:
    with answering(200, json.dumps(OLD).encode()) as (url, seen):
        assert Address.parse(url, api_key="secret").detect() == "opensearch"
        assert Address.parse(url.replace("://", "://me:pw@")).detect() == "opensearch"
    assert seen == ["ApiKey secret", "Basic bWU6cHc="]


@pytest.mark.parametrize(("product", "engine"), [("Elasticsearch", "elasticsearch"), ("", "opensearch")])
def test_the_engine_is_known_to_a_user_who_may_not_see_what_it_tells_of_itself(product: str, engine: str) -> None:
    """Elasticsearch names itself in the head of every answer, OpenSearch in none."""
    with answering(403, b"{}", product=product) as (url, _):
        assert Address.parse(url).detect() == engine


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_credentials_are_never_sent_to_where_a_redirect_points(status: int) -> None:
    """A redirect is reported with its target, and its host gets no request."""
    with (
        answering(200, json.dumps(OLD).encode()) as (other, seen),
        answering(status, b"", other.replace("://", "://who:hidden@") + "/") as (url, _),
    ):
        address = Address.parse(url, api_key="secret")
        with pytest.raises(IndexUnusable, match=f"it answers {status} and redirects to http://…@127") as raised:
            address.detect()
        assert "hidden" not in str(raised.value)
        for engine in ("elasticsearch", "opensearch"):
            with address.client(engine) as client, suppress(Exception):
                client.indices.get(index="news")
    assert seen == []


def test_an_address_shows_no_secret_in_repr_and_str() -> None:
    """Logs and tracebacks print an address without its password and without the API key."""
    for address in (Address.parse("https://me:hidden@host"), Address.parse("https://host", api_key="hidden")):
        assert "hidden" not in f"{address!r} {address}"


@pytest.mark.parametrize(
    "url",
    [
        "me:hidden@host:9200",
        "ftp://me:hidden@host",
        "https://me:hidden@host:port",
        "https://me:hid/hidden@host",
        "//hidden@",
    ],
)
def test_a_password_is_not_repeated_in_the_message_about_an_address(url: str) -> None:
    """An invalid address is reported without its credentials."""
    with pytest.raises(ValueError, match="is not an address of a cluster") as raised:
        Address.parse(url)
    assert "hid" not in str(raised.value)


def test_nobody_there_is_a_sentence() -> None:
    with pytest.raises(IndexUnusable, match="there is no answer"):
        Address.parse("http://127.0.0.1:1").detect()


@pytest.mark.newest_servers
def test_an_index_that_is_not_there_is_a_sentence(engine: Engine, index: str) -> None:
    for words in (["doctor", index], ["backfill", index, "--fields", "text"]):
        assert (
            f"{index}: there is no such index, alias or data stream"
            in run(words[0], engine.url, *words[1:], code=2).stderr
        )


def template(*words: object, code: int = 0) -> Any:
    return run("backfill", "--template", *words, code=code)


def test_the_template_is_printed_as_it_stands_in_the_repository(engine: Engine) -> None:
    assert json.loads(template().stdout) == files()["component.json"]
    for words in (["--template", "articles"], [engine.url, "--template"], [engine.url, "news", "--template", "a"]):
        assert "the address of a cluster and an index template" in run("backfill", *words, code=2).stderr


def test_the_fields_are_put_into_an_index_template(engine: Engine, index: str) -> None:
    with engine.client() as client:
        try:
            theirs = {
                "index_patterns": [f"{index}-*"],
                "priority": 700,
                "template": {"settings": {"number_of_shards": 2}},
            }
            client.indices.put_index_template(name=index, body=theirs)
            told = template(index, engine.url, "--field", index).stdout
            assert told == f"index template {index} has the fields: new indexes will have them\n"
            client.indices.create(index=f"{index}-1")
            mapping = client.indices.get_mapping(index=f"{index}-1")[f"{index}-1"]["mappings"]["properties"]
            assert mapping[index]["properties"]["sketch"] == {"type": "integer", "index": False}
        finally:
            for delete in (
                lambda: client.indices.delete(index=f"{index}-1"),
                lambda: client.indices.delete_index_template(name=index),
            ):
                with suppress(Exception):
                    delete()  # type: ignore[no-untyped-call]


@pytest.mark.newest_servers
def test_a_field_of_that_name_and_another_type_is_told_before_anything_is_changed(engine: Engine, index: str) -> None:
    with engine.client() as client:
        theirs = {"index_patterns": [f"{index}-*"], "priority": 700}
        theirs["template"] = {"mappings": {"properties": {index: {"type": "text"}}}}
        client.indices.put_index_template(name=index, body=theirs)
        before = client.indices.get_index_template(name=index)["index_templates"]
        try:
            done = template(index, engine.url, "--field", index, code=2)
            assert f"{index} is a field of type text, not an object with sketches; choose another" in done.stderr
            assert client.indices.get_index_template(name=index)["index_templates"] == before
            other = f"{index}_2"
            template(index, engine.url, "--field", other)
            client.indices.create(index=f"{index}-1")
            document = sketch_fields({"body": "some text"}, "body", field=other)
            client.index(index=f"{index}-1", id="1", body=document)
        finally:
            client.indices.delete_index_template(name=index)
