"""Count the searches a minute, end to end, that two processors do for the client and the engine together.

    python -m tests.engines.launch opensearch3 --heap 1g        prints an address, runs until Ctrl-C
    python -m benchmarks.throughput http://127.0.0.1:9200 [--documents 20000] [--searches 400] [--processors 2]

A search costs processor time of this process and of the engine, which must run on this machine, and for no one else.
Two processors do 120 seconds of it a minute. So other load, which makes each search wait, hardly changes the figures.
Plain searches, wrapped ones without the cache, and wrapped ones that find their page in the cache take turns, fifty at
a time. Documents of 0.3 kB, a third of them near-copies, pages of ten, a window of 100.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlsplit

import ndd_search as ndd
from benchmarks.workloads import LENGTHS, generated
from benchmarks.wrapped_search import about, filled, plain_search, table, wrapped_search

TURN = 50  # searches of one way
WARM_UP = 4  # turns of each way, in which the engine compiles its code


def process_at(port: int) -> int:
    """Return the id of the process that listens on a port of this machine."""
    wanted = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            parts = line.split()
            if int(parts[1].rpartition(":")[2], 16) == port and parts[3] == "0A":  # it listens
                wanted.add(f"socket:[{parts[9]}]")
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) in wanted:
                return int(link.parts[2])
        except OSError:
            continue  # it ended, or belongs to somebody else
    raise SystemExit(f"no process of this machine that you may look at listens on port {port}")


def processor_seconds(process: int) -> float:
    """Return the processor time of another process so far."""
    parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--searches", type=int, default=400, help="of each way")
    parser.add_argument("--processors", type=int, default=2)
    chosen = parser.parse_args()
    engine = process_at(urlsplit(chosen.url).port or 9200)
    workload = generated("0.3 kB", LENGTHS["0.3 kB"], chosen.documents)
    spent: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with filled(chosen.url, workload) as (make, index), make() as plain, make() as other, make() as third:
        ways = {
            "plain": plain_search(plain, index, 10),
            "wrapped": wrapped_search(ndd.wrap(other, cache=False), index),
            "wrapped, page in the cache": wrapped_search(ndd.wrap(third), index),
        }
        for _ in range(WARM_UP + chosen.searches // TURN):
            for name, way in ways.items():
                before = time.process_time(), processor_seconds(engine)
                for query in islice(cycle(workload.queries), TURN):
                    way(query)
                spent[name].append((time.process_time() - before[0], processor_seconds(engine) - before[1]))
    rows = []
    for name, turns in spent.items():
        ours, theirs = (sum(turn[side] for turn in turns[WARM_UP:]) / TURN / len(turns[WARM_UP:]) for side in (0, 1))
        count = chosen.processors * 60 / max(ours + theirs, 1e-9)
        rows.append([name, f"{count:,.0f}", f"{ours * 1000:.2f}", f"{theirs * 1000:.2f}"])
    print(f"{about(chosen.url)}; {chosen.documents:,} documents\n")
    table(["search", f"a minute, {chosen.processors} processors", "client, ms", "engine, ms"], rows)


if __name__ == "__main__":
    main()
