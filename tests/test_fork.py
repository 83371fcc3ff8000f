"""After `os.fork()`, and within a signal handler, nobody waits for what another thread of the parent was doing."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core import fork_safe
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.embedded.deduplicated_store import Deduplicated
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request
from tests.searching import MATCH, SEARCH, one_hit
from tests.test_conversations import SlowEngine

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
_DEADLINE = 20.0  # seconds: less than a search waits at most for another one


def in_child(act: Callable[[], object]) -> None:
    """Run a function in a child process, which has one thread. Fails if it raises, or does not end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which these are about
        child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    until = time.monotonic() + _DEADLINE
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child waits for what no thread of it does")
        time.sleep(0.002)
    assert ended[1] == 0


@contextmanager
def held_by_another_thread(*locks: Any) -> Iterator[None]:
    """Another thread holds these locks while the block runs."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for one in locks:
                stack.enter_context(one)
            held.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    try:
        yield
    finally:
        over.set()
        thread.join()


def ask(driver: Driver, send: Callable[[Request], Answer] = one_hit) -> None:
    assert [one["_id"] for one in driver.handle(SEARCH, send).body["hits"]["hits"]] == ["1"]


def test_a_child_computes_a_page_that_a_thread_of_its_parent_was_computing() -> None:
    driver, slow = Driver(settings_of(frequency_table=False)), SlowEngine()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(driver.handle, SEARCH, slow.send)
        slow.asked.wait(60)
        in_child(lambda: ask(driver))
        slow.go_on.set()
        first.result()


def test_a_search_that_forks_is_answered_in_both_processes() -> None:
    driver = Driver(settings_of(frequency_table=False))

    def send(request: Request) -> Answer:
        in_child(lambda: ask(driver))
        return one_hit(request)

    ask(driver, send)


def test_a_signal_handler_searches_while_its_own_thread_does(tmp_path: Path) -> None:
    driver, found = Driver(settings_of(frequency_table=False)), list[str]()
    handler = signal.signal(signal.SIGUSR1, lambda *_: found.append(ask(driver) or "answered"))  # type: ignore[func-returns-value]

    def send(request: Request) -> Answer:
        if not found:
            found.append("asked")
            with driver.settings.known._lock:  # as if the signal came while facts are read
                os.kill(os.getpid(), signal.SIGUSR1)
                while len(found) == 1:
                    time.sleep(0.001)
        return one_hit(request)

    began = time.monotonic()
    try:
        ask(driver, send)
    finally:
        signal.signal(signal.SIGUSR1, handler)
    assert found == ["asked", "answered"]
    assert time.monotonic() - began < _DEADLINE


def test_a_child_takes_every_lock_that_a_thread_of_its_parent_held(tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    driver, seen = Driver(settings_of(frequency_table=False)), ndd.plugins.SeenMemory()
    ask(driver)
    texts = [f"text {number} about the climate summit and the ministers of country {number}" for number in range(9)]
    source = ndd.stream(lambda start, size: texts[start : start + size])
    with ndd.Index.open(tmp_path / "index", text=["body"]) as index:
        index.add({"id": str(number), "body": text} for number, text in enumerate(texts))
        store = Deduplicated(index)

        def use_everything() -> None:
            ask(driver)
            driver.handle(
                Request("PUT", "/news/_doc/1", {}, {}, {"body": "new"}), lambda _: Answer({"result": "updated"})
            )
            seen.add("ann", texts[:1])
            assert len(seen.of("ann")) == 1
            assert len(source.page(5)) == 5
            assert index.search("climate", size=3)["hits"]["hits"]
            assert store.add(texts[0]).status == "known"

        with held_by_another_thread(*(one._lock for one in list(fork_safe._OBJECTS))):
            in_child(use_everything)


@pytest.mark.parametrize("seed", range(3))
def test_children_of_a_busy_process_search(seed: int) -> None:
    """Threads search, write and fill the cache while the process forks again and again."""
    rng, over = random.Random(seed), threading.Event()
    cache = MemoryCache(max_bytes=rng.choice([500, 50_000]))
    driver = Driver(settings_of(cache=cache, frequency_table=rng.random() < 0.5))

    def work(number: int) -> None:
        own = random.Random(number)
        while not over.is_set():
            query = {"query": MATCH, "from": own.randrange(3), "size": own.randrange(1, 9)}
            driver.handle(Request("POST", "/news/_search", {}, {"x-user": str(own.randrange(9))}, query), one_hit)
            if own.random() < 0.2:
                driver.handle(Request("PUT", "/news/_doc/1", {}, {}, {}), lambda _: Answer({"_index": "news"}))

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, number) for number in range(4)]
        try:
            for _ in range(12):
                time.sleep(rng.random() / 100)
                in_child(lambda: ask(driver))
        finally:
            over.set()
        for one in working:
            one.result()
