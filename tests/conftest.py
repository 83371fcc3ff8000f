"""Fixtures for tests against real servers (see tests/engines), and switches in the environment.

NDD_TEST_WITHOUT_CORE=1: without the native core.
NDD_TEST_EXAMPLES=large: twice as many examples per property; few: a fifth, for a run that repeats another one.
NDD_TEST_LONG=1: every test with both kinds of client and all servers, and longer soaks.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, NoReturn
from urllib.parse import urlsplit

import hypothesis
import pytest

from ndd_search import native
from tests.engines.find import Engine, Engines, variable
from tests.engines.jars import RELEASES, Unavailable
from tests.redis_server import ADDRESS, Link, given_address, server

# No deadlines: a machine may be busy with other things.
hypothesis.settings.register_profile("few", max_examples=10, deadline=None)
hypothesis.settings.register_profile("small", max_examples=50, deadline=None)
hypothesis.settings.register_profile("large", max_examples=100, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("NDD_TEST_EXAMPLES", "small"))

LONG = bool(os.environ.get("NDD_TEST_LONG"))
# Tests of code that both kinds of client share run with one kind per server: each major version of each client library
# is tested, and each of the two libraries with both kinds.
KIND = {"elasticsearch9": "sync", "elasticsearch8": "async", "opensearch3": "async", "opensearch2": "sync"}
# Commands, and code that meets no difference between the major versions of a server, run with the newest ones.
OLDER = {"elasticsearch8", "opensearch2"}
# Files whose tests share what takes seconds: a session of Spark, a core compiled for them, forged words.
TOGETHER = ("test_spark.py", "test_own_faults.py", "test_keyed_recipes.py")
REQUIRED = "NDD_TEST_REQUIRE_ENGINES"
report = pytest.StashKey[dict[str, str]]()  # of each server, where it came from


def pytest_configure(config: pytest.Config) -> None:
    config.stash[report] = {}
    if os.environ.get("NDD_TEST_WITHOUT_CORE"):
        native.core = None
    # Servers run for minutes only, so the optimizing compiler of Java would cost more time than it saves.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells start commands in the background so
        signal.signal(signal.SIGINT, signal.default_int_handler)  # for the commands that tests interrupt


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage, of which there is hardly any: it took a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "engine" in getattr(item, "fixturenames", ()):
            item.add_marker("engine")
    if not LONG:
        left_out = set(filter(_is_for_long_runs, items))
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _is_for_long_runs(item: pytest.Item) -> bool:
    """Return whether a marked test has a kind of client, or a server, that such tests do without (see KIND, OLDER)."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if item.get_closest_marker("newest_servers") and parameters.get("engine") in OLDER:
        return True
    one_kind = item.get_closest_marker("one_kind_of_client") and {"connect", "engine"} <= parameters.keys()
    return bool(one_kind and parameters["connect"] != KIND[parameters["engine"]])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`: run a test in any process, but all tests of a server that has to be started in the same one.

    The tests of one file on one server share indexes, so they stay together; so do those of TOGETHER.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByServer(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            server = re.search("|".join(RELEASES), nodeid)
            if server and not os.environ.get(variable(server[0])):
                return server[0]
            file = nodeid.partition("::")[0]
            if file.endswith(TOGETHER):
                return file
            return f"{server[0]} {file}" if server else nodeid

    return ByServer(config, log)


def missing(name: str, reason: object) -> NoReturn:
    """Skip the test with a reason; fail it if NDD_TEST_REQUIRE_ENGINES names the server or program that is missing."""
    if name in os.environ.get(REQUIRED, "").split(","):
        pytest.fail(f"{name} is required by {REQUIRED}, but {reason}", pytrace=False)
    pytest.skip(f"{name} {reason}")


@pytest.fixture(scope="session")
def engines(request: pytest.FixtureRequest) -> Iterator[Engines]:
    """Yield the servers of this session; those that the selected tests need start in parallel."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = {each["engine"] for each in parameters if "engine" in each}
    engines = Engines((name for name in RELEASES if name in chosen), request.config.stash[report])
    yield engines
    engines.close()


@pytest.fixture(scope="session", params=RELEASES)
def engine(request: pytest.FixtureRequest, engines: Engines) -> Engine:
    """Return a running server, each release in turn. Skips with a reason if it is not available.

    Names listed in NDD_TEST_REQUIRE_ENGINES ("elasticsearch9,opensearch3") fail instead of being skipped.
    """
    name: str = request.param
    try:
        return engines.get(name)
    except Unavailable as reason:
        missing(name, reason)


@pytest.fixture
def index(engine: Engine) -> Iterator[str]:
    """Yield a name for an index or data stream that no other test uses; it is deleted after the test."""
    name = f"ndd-test-{uuid.uuid4().hex[:12]}"
    yield name
    with engine.client() as client:
        client.indices.delete(index=name, ignore_unavailable=True)


@pytest.fixture(scope="session")
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the address of a Redis or Valkey server; each test uses keys with a prefix of its own.

    Without a server the test is skipped with a reason, or fails if NDD_TEST_REQUIRE_ENGINES names "redis".
    """
    pytest.importorskip("redis")
    said = request.config.stash[report]
    if address := given_address():
        said["redis"] = f"{address} from {ADDRESS}"
        yield address
        return
    try:
        with server() as made:
            said["redis"] = "started for this session"
            yield made.url
    except Unavailable as reason:
        said["redis"] = f"not tested: {reason}"
        missing("redis", reason)


@pytest.fixture
def link(redis_url: str) -> Iterator[Link]:
    """Yield a proxy in front of the Redis server, which injects faults."""
    made = Link(urlsplit(redis_url).port or 6379)
    yield made
    with suppress(OSError):  # closed by the test
        made.close()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # one of several processes tells the first one
        session.config.workeroutput["engines"] = session.config.stash[report]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[report].update(getattr(node, "workeroutput", {}).get("engines", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report for each server where it came from, or why it was skipped."""
    if config.stash[report]:
        terminalreporter.section("engines")
        for name, line in config.stash[report].items():
            terminalreporter.line(f"{name:15} {line}")
