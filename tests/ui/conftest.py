"""What the tests of the search page share: an index folder with news, and a page served in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the search page needs aiohttp")
pytest.importorskip("uvicorn", reason="the search page needs uvicorn")
pytest.importorskip("httptools", reason="the search page needs httptools")
pytest.importorskip("jinja2", reason="the search page needs jinja2")
pytest.importorskip("tantivy", reason="the search page needs tantivy")

from uvicorn import Server

import ndd_search as ndd
from ndd_search.serving.proxy.proxy_settings import ProxySettings
from ndd_search.serving.proxy.server import configuration, listening, url_of
from ndd_search.serving.ui.application import SearchPage
from ndd_search.serving.ui.search_folder import FolderSearcher
from tests.proxy.serving import SECONDS, Engine, engine_of_bytes, wait_until
from tests.ui.news import ARABIC, documents, hostile


@pytest.fixture(scope="session")
def news(tmp_path_factory: pytest.TempPathFactory) -> ndd.Index:
    """An index folder with news and hostile texts."""
    index = ndd.Index.open(tmp_path_factory.mktemp("ui") / "news.idx", text=["title", "body"])
    index.add([*documents(), *ARABIC, *hostile()])
    return index


@pytest.fixture(scope="session")
def address(news: ndd.Index) -> Iterator[str]:
    """The address of a page that searches it."""
    with served(SearchPage(FolderSearcher(news))) as url:
        yield url


@contextmanager
def served(application: Any) -> Iterator[str]:
    """Serve an ASGI application on a free port until the block ends."""
    settings = ProxySettings(listen="127.0.0.1:0")
    sockets = listening(settings)
    running = Server(configuration(settings, application))
    thread = threading.Thread(target=running.run, kwargs={"sockets": sockets}, daemon=True)
    thread.start()
    wait_until(lambda: running.started)
    try:
        yield url_of(settings, sockets[0])
    finally:
        running.should_exit = True
        thread.join(SECONDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small index folder of its own."""
    with ndd.Index.open(tmp_path / "own.idx", text=["title", "body"]) as index:
        index.add(documents())
    return tmp_path / "own.idx"


@pytest.fixture
def behind_page() -> Iterator[Engine]:
    """A server of raw bytes."""
    with engine_of_bytes() as made:
        yield made
