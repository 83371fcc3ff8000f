"""A real Redis or Valkey server for the tests, and a TCP proxy in front of it that injects faults."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.engines.jars import Unavailable
from tests.engines.launch import free_ports

ADDRESS = "NDD_TEST_REDIS"
_BINARIES = ("redis-server", "valkey-server")
_START_SECONDS = 20.0


class Server:
    """A server on a free port, which can be stopped and started again; it keeps nothing on disk."""

    def __init__(self, *settings: str) -> None:
        binary = next(filter(None, map(shutil.which, _BINARIES)), None)
        if binary is None:
            raise Unavailable(f"needs {' or '.join(_BINARIES)}, or an address in {ADDRESS}")
        (self.port,) = free_ports(1)
        self._command = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *settings]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        folder = tempfile.gettempdir()
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, cwd=folder)
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
            time.sleep(0.01)
        raise RuntimeError(f"{self._command[0]} did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


@contextmanager
def server(*settings: str) -> Iterator[Server]:
    """A running server of our own."""
    made = Server(*settings)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def given_address() -> str | None:
    """The address of a server in the environment."""
    return os.environ.get(ADDRESS)


class Link:
    """A TCP proxy to a server. delay: seconds before each answer. cut: close connections instead of answering.

    asked: how many pieces clients have sent. A client sends one piece for each round trip.
    """

    def __init__(self, port: int) -> None:
        self.delay, self.cut, self.asked = 0.0, False, 0
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listening.getsockname()[1]}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse further connections."""
        self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as upstream:
            threading.Thread(target=self._answer, args=(upstream, client), daemon=True).start()
            while piece := client.recv(2**20):
                if self.cut:
                    return
                self.asked += 1
                upstream.sendall(piece)

    def _answer(self, upstream: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while piece := upstream.recv(2**20):
                time.sleep(self.delay)
                client.sendall(piece)
