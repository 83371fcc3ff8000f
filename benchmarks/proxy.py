"""Measure the proxy against direct requests and against a wrapped client, on a live server: Markdown tables.

    python -m tests.engines.launch opensearch3 --heap 1g        prints an address, runs until Ctrl-C
    python -m benchmarks.proxy http://127.0.0.1:9200 [--documents 20000] [--repeats 300] [--seconds 5] [--workers 1]

The proxy is a process of its own, started and stopped here. Ways that are compared take turns. Throughput is measured
by `wrk` (32 connections) if that is installed; it, the proxy and the server share the processors of the machine. Other
programs on the machine lengthen the times; the processor time of the proxy, which Linux counts, they change little.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import nan
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import ndd_search as ndd
from benchmarks.workloads import LENGTHS, generated, queries
from benchmarks.wrapped_search import WARM_UP, about, connect, filled, milliseconds, table, wrapped_search

CONNECTIONS = 32


class Served(NamedTuple):
    """A running proxy. pid: of its first process."""

    url: str
    pid: int

    def processor_seconds(self) -> float:
        """Return the processor time of all its processes so far, nan if the system does not count it."""
        pids, seconds = [self.pid], 0.0
        try:
            for pid in pids:
                ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                seconds += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
                pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            return nan
        return seconds


@contextmanager
def proxy(upstream: str, workers: int) -> Iterator[Served]:
    """Serve a proxy until the block ends."""
    command = [sys.executable, "-u", "-m", "ndd_search", "serve", "--upstream", upstream, "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--workers", str(workers)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().rpartition(" at ")[2].strip()
        try:
            while True:
                try:
                    exact(url)("/")
                    break
                except OSError:
                    time.sleep(0.05)
            yield Served(url, process.pid)
        finally:
            process.terminate()


def exact(url: str) -> Callable[[str], bytes]:
    """Return a function that gets a path over one connection, with nothing of a client library in between."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)

    def get(target: str) -> bytes:
        connection.request("GET", target)
        return connection.getresponse().read()

    return get


def passing(url: str, through: Served, index: str, repeats: int) -> list[list[str]]:
    """Compare single requests, one after another, without a client library: median and 99th percentile."""
    search = f"/{index}/_search?size=10&q=body:kaban1"
    requests = {
        "a document": (f"/{index}/_doc/7", ""),
        "a search, size 10, ndd=off": (search, "&ndd=off"),
        "a remembered page": (search, ""),
    }
    rows = []
    for name, (target, off) in requests.items():
        direct, passed = exact(url), exact(through.url)
        taken: tuple[list[float], list[float]] = ([], [])
        for turn in range(repeats + WARM_UP):
            if turn == WARM_UP:
                before = through.processor_seconds()
            for get, path, times in ((direct, target, taken[0]), (passed, target + off, taken[1])):
                began = time.perf_counter()
                get(path)
                times.append((time.perf_counter() - began) * 1000)
        used = (through.processor_seconds() - before) / repeats * 1000
        for way, times, own in (("direct", taken[0], ""), ("through the proxy", taken[1], f"{used:.2f}")):
            p50, p99 = median(times[WARM_UP:]), quantiles(times[WARM_UP:], n=100)[-1]
            rows.append([name, way, f"{p50:.3f}", f"{p99:.3f}", f"{p50 - median(taken[0][WARM_UP:]):+.3f}", own])
    return rows


def throughput(url: str, through: str, index: str, seconds: int) -> list[list[str]]:
    """Compare searches per second at 32 connections, direct first and again last."""
    target = f"/{index}/_search?size=10&q=body:kaban1"
    rates = {"direct": 0.0, "through the proxy": 0.0, "through the proxy, remembered pages": 0.0}
    rows = []
    for _ in range(2):
        rates["direct"] += wrk(url + target, seconds) / 2
        rates["through the proxy"] += wrk(f"{through}{target}&ndd=off", seconds) / 2
        rates["through the proxy, remembered pages"] += wrk(f"{through}{target}", seconds) / 2
    for way, rate in rates.items():
        rows.append([way, f"{rate:,.0f}", f"{rate / rates['direct']:.0%}"])
    return rows


def wrk(url: str, seconds: int) -> float:
    """Return requests per second. Raises RuntimeError if any failed."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or re.search(r"(connect|read|write) [1-9]", said):
        raise RuntimeError(said)
    return float(re.findall(r"Requests/sec:\s+([\d.]+)", said)[0])


def pages(make: Callable[[], Any], through: Served, index: str, repeats: int) -> list[list[str]]:
    """Compare deduplicated pages of one client library: wrapped, and plain with the proxy's address."""
    at_proxy, _ = connect(through.url)
    with ExitStack() as stack:
        wrapped, plain = ndd.wrap(stack.enter_context(make())), stack.enter_context(at_proxy())
        ways = {
            "wrapped client": wrapped_search(wrapped, index, cache=False),
            "through the proxy": wrapped_search(plain, index, cache=False),
        }
        before = through.processor_seconds()
        times = milliseconds(ways, queries(), repeats)
        used = (through.processor_seconds() - before) / (repeats + WARM_UP) * 1000
        remembered = {
            f"{way}, remembered": wrapped_search(client, index)
            for way, client in (("wrapped client", wrapped), ("through the proxy", plain))
        }
        times |= milliseconds(remembered, queries()[:1], repeats)
    own = times["wrapped client"]
    processor = {"wrapped client": own.processor, "through the proxy": times["through the proxy"].processor + used}
    return [
        [way, f"{time.wall:.3f}", f"{time.wall / own.wall:.2f}", *_processor(processor.get(way), own.processor)]
        for way, time in times.items()
    ]


def _processor(milliseconds: float | None, of_wrapped: float) -> list[str]:
    return ["", ""] if milliseconds is None else [f"{milliseconds:.2f}", f"{milliseconds / of_wrapped:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=5, help="of each throughput measurement (5)")
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    print(f"{about(chosen.url)}; {chosen.documents:,} documents, {chosen.workers} worker(s).\n")
    with proxy(chosen.url, chosen.workers) as served:
        for name, length in LENGTHS.items():
            with filled(chosen.url, generated(name, length, chosen.documents)) as (make, index):
                print(f"Documents of {name}:\n")
                rows = passing(chosen.url, served, index, chosen.repeats)
                table(["request", "way", "p50 ms", "p99 ms", "added ms", "proxy's processor ms"], rows)
                rows = pages(make, served, index, chosen.repeats)
                table(["page of 10", "median ms", "/ wrapped", "processor ms, client and proxy", "/ wrapped"], rows)
                if shutil.which("wrk"):
                    rows = throughput(chosen.url, served.url, index, chosen.seconds)
                    table([f"{CONNECTIONS} connections", "searches/s", "of direct"], rows)


if __name__ == "__main__":
    main()
