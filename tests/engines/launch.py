"""Run a real Elasticsearch or OpenSearch from the jars its makers publish: no Docker, no installation.

    python -m tests.engines.launch elasticsearch9          prints the address, runs until Ctrl-C
    python -m tests.engines.launch opensearch3 --nodes 3   three nodes, one cluster

Needs Java (17 or 21, see RELEASES) and, the first time, Maven and the network. Maven checks the checksum of every
jar; the jars stay in the user's cache folder. What such a server lacks is listed in README.md beside this file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.engines.jars import RELEASES, Release, Unavailable, find_java, prepare

START_SECONDS = 120.0
_MEMORY = Path("/dev/shm")  # a file system in memory, on Linux
_NEEDED = 4 << 30  # free bytes, for the data of all servers


def java_command(release: Release, heap: str) -> list[str]:
    """The command line up to the data folder and the settings."""
    java = find_java(release.java)
    folder = prepare(release)
    # The module is an incubator's, and only makes vectors faster: some runtimes come without it.
    modules = [f"--add-modules={name}" for name in ("jdk.incubator.vector",) if name in java.modules]
    flags = [f"-Xms{heap}", f"-Xmx{heap}", "--enable-native-access=ALL-UNNAMED", *modules]
    path = os.pathsep.join([str(folder / "main"), str(folder / "lib" / "*")])
    return [java.command, *flags, "-cp", path, release.main, str(folder)]


def data_parent() -> Path | None:
    """Return where data folders are made: in memory, where files need not be synced to a disk; None for the default.

    On a disk, an engine takes 200 ms to create an index and 80 ms to delete one; in memory 40 and 10.
    """
    with contextlib.suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _NEEDED:
            return _MEMORY
    return None


class Server:
    """One running node. Its data folder is temporary and goes when it is stopped.

    url: where it answers once `wait` has returned. The node also ends when this process does, however that ends:
    it holds the other end of a pipe.
    """

    def __init__(self, release: Release, *, heap: str = "512m", **settings: str) -> None:
        self.release = release
        self.url = ""
        command = java_command(release, heap)
        self._folder = Path(tempfile.mkdtemp(prefix=f"ndd-search-{release.name}-", dir=data_parent()))
        self._log = self._folder / "server.log"
        merged = {
            "cluster.name": "ndd-search",
            "node.name": "n1",
            "http.port": "0",  # the system picks a free one, and the server tells which
            "transport.port": "0",
            "network.host": "127.0.0.1",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "node.store.allow_mmap": "false",  # needs no vm.max_map_count
            **({} if "discovery.seed_hosts" in settings else {"discovery.type": "single-node"}),
            **settings,
        }
        self._command = [*command, str(self._folder), *(f"{name}={value}" for name, value in merged.items())]
        self.process = self._launched()

    def _launched(self) -> subprocess.Popen[bytes]:
        with self._log.open("w") as log:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C in the terminal is for us, not for it
            )

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Return when the node answers; raise RuntimeError with the end of its log when it does not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            if ready := re.search(r"^ready (\S+)$", self._log.read_text(errors="replace"), re.MULTILINE):
                self.url = ready[1]
                return
            time.sleep(0.1)
        text = self._log.read_text(errors="replace")[-3000:]
        self.stop()
        raise RuntimeError(f"{self.release.name} did not start; the end of its log:\n{text}")

    def kill(self) -> None:
        """Kill the node at once, without a shutdown."""
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        """Start a killed node with the data that it has, and wait until it answers."""
        if self.process.stdin:
            self.process.stdin.close()
        self.process = self._launched()
        self.wait()

    def stop(self) -> None:
        """Stop the node and delete its data; a second call does nothing."""
        self.kill()
        if self.process.stdin:
            self.process.stdin.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(release: Release) -> Server:
    """Start one node that is a cluster of its own, and wait until it answers."""
    server = Server(release)
    try:
        server.wait()
    except BaseException:
        server.stop()
        raise
    return server


@contextlib.contextmanager
def cluster(release: Release, nodes: int = 3, heap: str = "512m") -> Iterator[list[Server]]:
    """Run several nodes on this machine as one cluster; yields them when all have joined. heap: of each."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(release, heap=heap, **settings)) for settings in members(release, nodes)]
        for server in servers:
            server.wait()
        get_json(f"{servers[0].url}/_cluster/health?wait_for_nodes={nodes}&timeout=60s")
        yield servers


def members(release: Release, nodes: int) -> list[dict[str, str]]:
    """Return the settings of the nodes of one cluster. A node that is started again with its own joins the others."""
    names = [f"n{i + 1}" for i in range(nodes)]
    ports = free_ports(nodes)
    managers = "cluster_manager" if release.family == "opensearch" else "master"
    shared = {
        "discovery.seed_hosts": ",".join(f"127.0.0.1:{port}" for port in ports),
        f"cluster.initial_{managers}_nodes": ",".join(names),
    }
    return [{**shared, "node.name": name, "transport.port": str(port)} for name, port in zip(names, ports, strict=True)]


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def get_json(url: str, seconds: float = 90.0) -> Any:
    """GET without the proxies that the environment may name: the servers are on this machine."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=seconds) as answer:
        return json.load(answer)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engines.launch", description="Run a real search engine.")
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("--nodes", type=int, default=1, help="this many nodes in one cluster (default: 1)")
    parser.add_argument("--heap", default="512m", help="memory of each node, as Java takes it (default: 512m)")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with cluster(RELEASES[chosen.release], chosen.nodes, chosen.heap) as servers:
            print(*(server.url for server in servers), sep="\n", flush=True)
            signal.pause()
    except Unavailable as reason:
        print(f"{chosen.release} {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
