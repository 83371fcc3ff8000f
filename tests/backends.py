"""Servers of our own of PostgreSQL and Solr, on free ports and in temporary folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.jars import Release, Unavailable
from tests.engines.launch import free_ports, start

ADDRESS = "NDD_TEST_POSTGRESQL"
SOLR_ADDRESS = "NDD_TEST_SOLR"
_USER = "postgres"  # the server refuses to run as root
_SOLR = Release(family="solr", version="9.8.1", java=17)


@contextmanager
def postgresql() -> Iterator[str]:
    """Yield the address of an empty database: that in the environment, else of a server that ends with the block."""
    if given := os.environ.get(ADDRESS):
        yield given
        return
    programs = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *map(Path, os.get_exec_path())]
    place = next((one for one in programs if (one / "initdb").exists()), None)
    if place is None:
        raise Unavailable(f"needs initdb of PostgreSQL (apt-get install postgresql), or an address in {ADDRESS}")
    user = _USER if os.getuid() == 0 else None
    folder = tempfile.mkdtemp()
    try:
        if user:
            shutil.chown(folder, user)
        (port,) = free_ports(1)

        def control(program: str, *options: str) -> None:
            command = [str(place / program), "-D", f"{folder}/data", *options]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=user, cwd=folder)

        control("initdb", "--no-sync", "-A", "trust", "-U", _USER)
        settings = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
        control("pg_ctl", "-w", "-l", f"{folder}/log", "-o", settings, "start")
        try:
            yield f"postgresql://{_USER}@127.0.0.1:{port}/postgres"
        finally:
            control("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@contextmanager
def solr() -> Iterator[str]:
    """Yield the address of an empty core: that in the environment, else of a server that ends with the block."""
    if given := os.environ.get(SOLR_ADDRESS):
        yield given
        return
    with start(_SOLR) as server:
        yield f"{server.url}/news"
