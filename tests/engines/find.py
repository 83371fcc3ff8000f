"""Find a server for each release: an address in the environment, else Docker, else the published jars on a JVM."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pytest_docker.plugin import get_docker_ip, get_docker_services

from tests.engines.jars import RELEASES, Release, Unavailable
from tests.engines.launch import free_ports, get_json, start

COMPOSE_FILE = Path(__file__).resolve().parents[2] / "docker" / "compose.yml"
DISTRIBUTIONS = {"elasticsearch": "elasticsearch", "opensearch": "opensearch-py"}
MODULES = {"elasticsearch": "elasticsearch", "opensearch": "opensearchpy"}
CLASSES = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A running server. name: its release, "elasticsearch9"; family: "elasticsearch" or "opensearch".

    source: where it came from, for the report.
    """

    name: str
    family: str
    major: int
    url: str
    source: str

    def client(self, **settings: Any) -> Any:
        """A new client of the family's own library; the caller closes it (`with`)."""
        return self._make(CLASSES[self.family], settings)

    def async_client(self, **settings: Any) -> Any:
        """A new asynchronous client; the caller closes it (`async with`)."""
        return self._make("Async" + CLASSES[self.family], settings)

    def _make(self, name: str, settings: Mapping[str, Any]) -> Any:
        timeout = "request_timeout" if self.family == "elasticsearch" else "timeout"
        return getattr(importlib.import_module(MODULES[self.family]), name)(self.url, **{timeout: 60, **settings})


def client_version(family: str) -> str:
    """The version of the family's client library, "9.5.1"."""
    try:
        return version(DISTRIBUTIONS[family])
    except PackageNotFoundError:
        raise Unavailable(f"needs the Python client: pip install {DISTRIBUTIONS[family]}") from None


def check_client(release: Release) -> None:
    """Raise Unavailable when the client in this environment cannot talk to the release."""
    client = client_version(release.family)
    if release.family == "elasticsearch" and int(client.split(".")[0]) > release.major:
        raise Unavailable(f"refuses the newer elasticsearch-py {client} (400, media type); test it with an older one")


def is_spoken(release: Release) -> bool:
    """Whether the client in this environment can talk to the release."""
    with suppress(Unavailable):
        check_client(release)
        return True
    return False


def variable(name: str) -> str:
    """The environment variable that may hold a release's address."""
    return f"NDD_TEST_{name.upper()}"


def check_address(release: Release, url: str) -> None:
    """Check that the server at an address from the environment is of the expected release."""
    told = f"{variable(release.name)}={url}"
    try:
        answer = get_json(url, seconds=10)["version"]
    except (OSError, ValueError, KeyError) as error:
        raise RuntimeError(
            f"{told}: no search engine answers there ({error}); start it or unset the variable"
        ) from error
    found = f"{answer.get('distribution', 'elasticsearch')} {answer['number']}"
    if not found.startswith(f"{release.family} {release.major}."):
        raise RuntimeError(f"{told}: that is {found}, not {release.family} {release.major}")


class Engines:
    """The servers of one test session, started when first asked for and stopped by `close`.

    expected: names of the releases that will be asked for; they start side by side on the first call of `get`.
    report:   called for each with where it came from, or why there is none.
    """

    def __init__(self, expected: Iterable[str], report: dict[str, str]) -> None:
        self.report = report
        self._expected = list(expected)
        self._running = ExitStack()
        self._pool = ThreadPoolExecutor(len(RELEASES))
        self._found: dict[str, Future[Engine]] = {}
        self._docker: dict[str, str] | None = None

    def get(self, name: str) -> Engine:
        """The server of a release. Raises Unavailable with a reason to skip by; any other exception is a failure."""
        if self._docker is None:
            self._docker = self._start_docker()
        for each in (name, *self._expected):
            if each not in self._found:
                self._found[each] = self._pool.submit(self._find, RELEASES[each])
        try:
            engine = self._found[name].result()
        except Exception as error:
            how = "not tested" if isinstance(error, Unavailable) else "failed"
            self.report[name] = f"{how}: {str(error).splitlines()[0]}"
            raise
        client = f"{DISTRIBUTIONS[engine.family]} {client_version(engine.family)}"
        self.report[name] = f"{engine.source}, {client}"
        return engine

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._running.close()

    def _find(self, release: Release) -> Engine:
        check_client(release)
        if url := os.environ.get(variable(release.name)):
            check_address(release, url)
            source = f"{url} from {variable(release.name)}"
        elif self._docker and release.name in self._docker:
            url = self._docker[release.name]
            source = f"{release.version} in Docker"
        else:
            server = self._running.enter_context(start(release))
            url = server.url
            source = f"{release.version} from published jars"
        return Engine(name=release.name, family=release.family, major=release.major, url=url, source=source)

    def _start_docker(self) -> dict[str, str]:
        """Start containers of the expected releases that have no address; returns theirs, {} without Docker."""
        names = [name for name in self._expected if not os.environ.get(variable(name)) and is_spoken(RELEASES[name])]
        if not names or not docker_answers():
            return {}
        for name, port in zip(names, free_ports(len(names)), strict=True):
            os.environ[f"NDD_PORT_{name.upper()}"] = str(port)
        command = "docker compose", str(COMPOSE_FILE), f"ndd-search-{os.getpid()}"
        self._running.enter_context(get_docker_services(*command, docker_setup=[], docker_cleanup=["down -v"]))
        try:  # apart from the cleanup, which has to run when this fails half-way
            setup = [f"up --wait {' '.join(names)}"]
            services = self._running.enter_context(get_docker_services(*command, setup, docker_cleanup=[]))
        except Exception as error:  # pytest-docker raises nothing narrower
            self.report["docker"] = f"compose failed, so jars are tried: {' '.join(str(error).split())[-300:]}"
            return {}
        return {name: f"http://{get_docker_ip()}:{services.port_for(name, 9200)}" for name in names}


def docker_answers() -> bool:
    """Whether there is Docker with Compose, and its daemon runs."""
    if not shutil.which("docker"):
        return False
    commands = (["docker", "compose", "version"], ["docker", "info"])
    return all(subprocess.run(each, capture_output=True, check=False).returncode == 0 for each in commands)
