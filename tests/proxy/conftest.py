"""What the tests of the proxy share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
pytest.importorskip("uvicorn", reason="the proxy needs uvicorn")
pytest.importorskip("httptools", reason="the proxy needs httptools")

from tests.proxy.serving import Engine, Served, engine_of_bytes, response, serving
from tests.wrapping.conftest import libraries, library

__all__ = ["libraries", "library"]


@pytest.fixture(scope="session")
def behind() -> Iterator[Engine]:
    """A server of raw bytes."""
    with engine_of_bytes() as made:
        yield made


@pytest.fixture(scope="session")
def through(behind: Engine) -> Iterator[Served]:
    """A proxy in front of it."""
    with serving(behind.url) as served:
        yield served


@pytest.fixture(autouse=True)
def _reset(request: pytest.FixtureRequest) -> None:
    if "behind" in request.fixturenames:
        made: Engine = request.getfixturevalue("behind")
        made.heard, made.reply, made.stream = [], lambda heard: response(b"{}"), None
