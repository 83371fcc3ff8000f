"""`ndd-search serve` as a process: settings from two places, workers, a graceful stop."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search import native
from ndd_search.cli import main
from ndd_search.serving.proxy import Proxy, app
from ndd_search.serving.proxy.proxy_settings import SETTINGS, ProxySettings, read_configuration, text_rules
from ndd_search.serving.proxy.server import listening
from tests.engines.find import Engine as RealEngine
from tests.engines.launch import free_ports
from tests.proxy.serving import SECONDS, Engine, ask, response, serving, wait_until

pytestmark = pytest.mark.newest_servers

JSON = {"content-type": "application/json"}
COMMAND = [sys.executable, "-m", "ndd_search", "serve"]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """run(word, ...) gives exit code, standard output and standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        try:
            code = main(["serve", *words])
        except SystemExit as end:  # words that are no option
            code = int(end.code or 0)
        return code, *capfd.readouterr()

    return call


@contextmanager
def running(*words: str, files: int = 0, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves, and the address that it names. files: that it may open at first, 0 for as many as we."""
    variables = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    limited = ["sh", "-c", f'ulimit -Sn {files}; exec "$@"', "sh"] if files else []
    with subprocess.Popen(
        [*limited, *COMMAND, *words], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert " at http" in line, (line, process.poll() and process.stderr and process.stderr.read())
            url = line.rpartition(" at ")[2].strip()
            wait_until(lambda: answers(url))
            yield process, url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)


def answers(url: str) -> bool:
    try:
        return ask(url, "GET", "/").status > 0
    except OSError:
        return False


def test_it_serves_with_workers_and_stops_gracefully(behind: Engine, tmp_path: Path) -> None:
    """Settings come from both places; each worker reads JSON as deep as engines take it."""
    file = tmp_path / "serve.toml"
    rules = '[indexes."news*"]\ntext = ["body"]\n'
    file.write_text(f'upstream = ["http://x"]\nlisten = "127.0.0.1:0"\nworkers = 2\nmax_requests = 50\n{rules}')
    behind.reply = lambda heard: response(b'{"answer": 1}')
    words = ("--config", str(file), "--upstream", behind.url)
    with running(*words) as (process, url):
        assert ask(url, "GET", "/_cat/health").body == b'{"answer": 1}'
        document = b'{"body": "a text of some words", "deep": ' + b'{"a":' * 990 + b"1" + b"}" * 991
        ask(url, "PUT", "/news-1/_doc/1", document, {"content-type": "application/json"})
        assert b'"ndd"' in behind.wrote.body
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=SECONDS)
        assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("workers", [1, 2])
def test_it_opens_as_many_connections_as_the_system_allows(behind: Engine, workers: int) -> None:
    """Shells and services begin with a limit that 500 callers reach: then no node could be connected to."""
    callers = 60
    together = threading.Barrier(callers)

    def reply(heard: Any) -> bytes:
        if heard.target == "/_cat/together":
            together.wait(SECONDS)
        return response(b"{}")

    behind.reply = reply
    words = ("--upstream", behind.url, "--listen", "127.0.0.1:0", "--set", f"workers={workers}")
    with running(*words, files=64 if workers == 1 else 40) as (_, url), ThreadPoolExecutor(callers) as pool:
        answers = pool.map(lambda _: ask(url, "GET", "/_cat/together").status, range(callers))
        assert list(answers) == [200] * callers


def test_an_address_that_is_taken_leaves_the_other_one_free() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ProxySettings(listen=f"127.0.0.1:{port}", manage=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(OSError, match="in use"):
            listening(settings)
        socket.create_server(("127.0.0.1", port)).close()


def test_a_node_that_does_not_answer_is_named_at_the_start() -> None:
    (port,) = free_ports(1)
    with running("--upstream", f"http://127.0.0.1:{port}", "--listen", "127.0.0.1:0") as (process, _):
        assert process.stderr is not None
        assert f"http://127.0.0.1:{port}: there is no connection" in process.stderr.readline()


def test_a_node_that_hangs_does_not_hold_up_the_start() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        words = ["--upstream", f"http://127.0.0.1:{hangs.getsockname()[1]}", "--listen", "127.0.0.1:0"]
        words += ["--set", f"manage=127.0.0.1:{port}"]
        with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            process.stdout.readline()
            began = time.monotonic()
            wait_until(lambda: answers(f"http://127.0.0.1:{port}"))
            process.terminate()
            assert time.monotonic() - began < 5  # seconds for which a node is asked


def says_it_answers(checked: tuple[int, str, str], url: str) -> bool:
    """Whether a check says that the engine answers, and that pages take long if there is no native core."""
    code, output, errors = checked
    slow = bool(re.fullmatch("ndd-search: sketches and pages are computed with numpy .*\n", errors))
    return (code, output) == (0, f"{url} answers\n") and (errors == "" if native.core else slow)


def test_check_says_what_is_wrong_and_serves_nothing(behind: Engine, tmp_path: Path, run: Any) -> None:
    assert says_it_answers(run("--upstream", behind.url, "--check"), behind.url)
    (port,) = free_ports(1)
    down = f"http://127.0.0.1:{port}"
    without = run("--upstream", behind.url, "--set", f"cache=redis://{down.removeprefix('http://')}", "--check")
    assert (without[0], "the cache RedisCache('127.0.0.1') does not answer" in without[2]) == (2, True)
    behind.reply = lambda heard: response(b"{}", status=200 if heard.target == "/engine/" else 404)
    assert run("--upstream", f"{behind.url}/engine", "--check")[0] == 0
    code, output, errors = run("--upstream", behind.url, "--check")
    assert (code, output) == (2, "")
    assert f"{behind.url} answers with status 404: it is not the address of an engine" in errors
    code, _, errors = run("--upstream", f"{behind.url},{down}", "--check")
    assert code == 2
    assert f"{down}: there is no connection" in errors
    file = tmp_path / "serve.toml"
    for words, text, said in (
        ((), "", "upstream is not set"),
        ((), "upstream = 3", "upstream must be a list, got 3"),
        ((), "upstrem = 3", "unknown option 'upstrem' (did you mean upstream?)"),
        ((), "upstream =", "it is not valid TOML"),
        (("--set", "workers=many"), "", "workers must be a whole number, got 'many'"),
        (("--set", "workres=1"), "", "unknown option 'workres' (did you mean workers?)"),
        (("--upstream", "http://x", "--set", "windw=3"), "", "unknown option 'windw' (did you mean window?)"),
        (("--upstream", "http://x", "--set", "workers=0"), "", "workers must be at least 1"),
        (("--upstream", "http://x", "--certificate", "c"), "", "did you mean --set certificate=VALUE?"),
        (("--upstream", "ftp://x"), "", "is not an address of an engine"),
        (("--upstream", "http://x", "--listen", "x"), "", "'x' is not an address to listen on"),
        (("--upstream", "http://x", "--text", "news"), "", "write PATTERN:FIELD,FIELD"),
        (("--upstream", "http://x", "--text", "a:b", "--text", "a:c"), "", "'a' is given twice: name all"),
        (("--upstream", "http://x", "--set", "cache=maybe"), "", "or the address of a Redis server"),
        (("--upstream", "http://x", "--set", "cache=ftp://x"), "", "Redis URL must specify"),
        (("--upstream", "http://x"), "[collapse]\nwindw = 3", "windw"),
        ((), 'mode = "drop"', "unknown option 'mode' (it belongs below [collapse])"),
        ((), "windw = 3", "unknown option 'windw' (did you mean window below [collapse]?)"),
        (("--upstream", "https://x", "--ca-certs", "/no/file"), "", "ca_certs /no/file"),
        (("--upstream", "https://x", "--set", "certificate=/no/file"), "", "needs both certificate and key"),
    ):
        file.write_text(text)
        code, output, errors = run("--config", str(file), *words, "--check")
        assert (code, output) == (2, "")
        assert said in errors


def test_a_monitor_reads_metrics(engine: RealEngine, index: str) -> None:
    """Searches are counted in the text format of Prometheus."""

    def pages() -> float:
        got = ask(served.manage, "GET", "/metrics")
        assert got.header("content-type").startswith("text/plain")
        found = re.search(r'^ndd_search_pages_total{result="collapsed"} (\S+)$', got.body.decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    with serving(engine.url, indexes={index: {"text": ["body"]}}) as served, engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": ndd.indexing.mapping_properties()}})
        for id in ("1", "2"):
            ask(served.url, "PUT", f"/{index}/_doc/{id}?refresh=true", b'{"body": "a b c d e f"}', JSON)
        before = pages()
        assert json.loads(ask(served.url, "GET", f"/{index}/_search?q=body:c").body)["ndd"]["hidden"] == 1
        assert pages() == before + 1
        assert ask(served.manage, "GET", "/_ndd/else").status == ask(served.url, "GET", "/metrics").status == 404


@pytest.mark.once
def test_metrics_are_those_of_all_workers(behind: Engine, tmp_path: Path) -> None:
    """And the folder in which workers count together goes with the server."""
    behind.reply = lambda _: response(b'{"error": {}, "status": 404}', status=404)
    (port,) = free_ports(1)
    manage = f"127.0.0.1:{port}"
    words = ("--upstream", behind.url, "--set", "workers=2", "--set", f"manage={manage}")
    with running(*words, TMPDIR=str(tmp_path)) as (_, url):
        for _ in range(20):
            ask(url, "GET", "/ndd-no-such-index/_search?q=a")
        told = [ask(f"http://{manage}", "GET", "/metrics").body.decode() for _ in range(6)]
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
    counts = [re.search(r"^ndd_search_trips_total (\S+)$", text, re.MULTILINE) for text in told]
    assert [found and float(found[1]) for found in counts] == [20.0] * 6, told


def test_an_address_in_use_is_named(behind: Engine, run: Any) -> None:
    listen = behind.url.removeprefix("http://")
    code, _, errors = run("--upstream", behind.url, "--listen", listen)
    assert code == 2
    assert listen in errors


def test_later_settings_win_and_tables_are_merged(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(
        'upstream = ["http://a", "http://b"]\nworkers = 2\nmax_parsed = 5\ncache = false\n'
        '[indexes.shop]\nkeys = 2\n[collapse]\nwindow = 30\nmode = "drop"\n'
    )
    given: dict[str, Any] = {
        "workers": 4,
        "max_parsed": 6,
        "insecure": True,
        "indexes": text_rules(["news*:title, body", "shop:name"]),
        "collapse": {"window": 40},
    }
    settings = read_configuration(file, given)
    assert (settings.upstream, settings.workers) == (("http://a", "http://b"), 4)
    assert (settings.max_parsed, settings.insecure) == (6, True)
    assert settings.wrapping == {
        **{"cache": False, "window": 40, "mode": "drop"},
        "indexes": {"shop": {"text": ["name"], "keys": 2}, "news*": {"text": ["title", "body"]}},
    }
    assert Proxy(settings).driver.settings.options.window == 40


def test_every_setting_is_one_of_the_server_the_proxy_or_a_wrapped_client() -> None:
    texts = {"listen": "127.0.0.1:1", "recipe": "w3-k64-v4", "certificate": "c", "key": "k"}
    skipped = {
        "preset",
        "items",
        "upstream",
        "ca_certs",
        "manage",
        "field",
    }
    given = {name: kind.read(name, texts.get(name, "1")) for name, kind in SETTINGS.items() if name not in skipped}
    settings = read_configuration(None, {**given, "upstream": "http://x"})
    assert Proxy(settings).settings.max_parsed == 1


def test_proxies_share_pages_in_redis(behind: Engine, redis_url: str) -> None:
    """A page that one process has made is remembered by the other one."""
    fields = {"ndd.sketch": [1], "ndd.recipe": ["w3-k64-v4"]}
    hit = {"_index": "i", "_id": "1", "_score": 1.0, "_source": {"title": "a text"}, "fields": fields}
    answer = {"took": 1, "hits": {"total": {"value": 1, "relation": "eq"}, "hits": [hit]}}
    behind.reply = lambda heard: response(json.dumps(answer).encode())
    body = json.dumps({"query": {"match": {"title": uuid.uuid4().hex}}}).encode()
    pages = []
    for _ in range(10):  # a server that is too busy to answer in time costs a "miss"
        settings = read_configuration(None, {"cache": redis_url, "upstream": behind.url})
        with serving(*settings.upstream, **settings.wrapping) as served:
            page = ask(served.url, "POST", "/i/_search", body, {"content-type": "application/json"})
        pages.append(json.loads(page.body)["ndd"]["cache"])
        if pages[-1] == "hit":
            break
    assert pages[0] == "miss"
    assert pages[-1] == "hit"


def test_the_application_refuses_wrong_settings() -> None:
    for settings, error in (
        ({"windw": 3}, TypeError),
        ({"max_parsed": 0}, ValueError),
        ({"idle_seconds": 0}, ValueError),
        ({"listen": "127.0.0.1:9201"}, TypeError),
        ({"workers": 2}, TypeError),
        ({"certificate": "own.pem", "key": "own.key"}, TypeError),
        ({"key": "own.key"}, TypeError),
        ({"header_seconds": 5.0}, TypeError),
        ({"stop_seconds": 5}, TypeError),
    ):
        with pytest.raises(error, match=next(iter(settings))):
            app("http://x", **settings)
    with pytest.raises(ValueError, match="names no address"):
        app([])


def test_a_schema_of_items_comes_from_a_file(behind: Engine, tmp_path: Path) -> None:
    schema = ndd.items.Items(name=ndd.items.Name(), price=ndd.items.Number())
    schema.write(file := tmp_path / "shop.toml")
    settings = read_configuration(None, {"upstream": behind.url, "items": str(file)})
    assert Proxy(settings).driver.settings.items == schema
    assert app(behind.url, items=str(file)).driver.settings.items == schema
    preset = tmp_path / "preset.toml"
    preset.write_text('[collapse]\nmode = "drop"\n')
    settings_of_app = app(behind.url, preset=str(preset), cache="redis://127.0.0.1:1").driver.settings
    assert (settings_of_app.options.mode, repr(settings_of_app.cache)) == ("drop", "RedisCache('127.0.0.1')")
