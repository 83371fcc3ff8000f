"""Keep a proxy busy for minutes while its engine and its Redis are killed and started again.

    python -m tests.proxy.saturate --seconds 600 [--engine opensearch3] [--callers 24] [--nodes 3]

Searches, bulks, slow writers and slow readers run at once. The run fails if a request fails
that the engine would not have failed, if memory grows by more than a tenth, or if a connection or a request is left.
Redis is stopped from 0.2 to 0.35 of the time. The engine is killed at 0.45 and started again at once, empty. Of several
nodes, the one that manages the cluster is killed at 0.45 and started again at 0.6; requests may fail until the others
have chosen a new manager and new primary shards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import aiohttp

import ndd_search as ndd
from tests.engines.jars import RELEASES
from tests.engines.launch import Server, free_ports, get_json, members
from tests.redis_server import Server as RedisServer
from tests.redis_server import server as redis_server

WORDS = [f"{a}{b}" for a in ("kaban", "lodor", "mifel", "regim", "sutan") for b in range(40)]
DOCUMENTS = 3000
INDEX = "saturated"
MARGIN = 3.0  # seconds after the engine answers again in which a request may still fail
SLOWNESS = 0.1  # seconds between two pieces of a slow caller


@dataclass
class Run:
    """outcomes: of requests, by kind and result. wrong: the first failures that are not the engine's."""

    url: str
    until: float
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    down: list[tuple[float, float]] = field(default_factory=list)  # when the engine was away

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self.until

    def note(self, kind: str, began: float, result: str, ok: bool) -> None:
        """Count a request; one that failed must have met the engine's absence."""
        now = time.monotonic()
        excused = any(began < end + MARGIN and now > start for start, end in self.down)
        self.outcomes[kind, "ok" if ok else f"{result}, engine away" if excused else f"{result}, WRONG"] += 1
        if not ok and not excused and len(self.wrong) < 20:
            self.wrong.append(f"{kind}: {result}")


def document(rng: random.Random) -> dict[str, str]:
    """A text of forty words; a third are copies of others with a word added."""
    seed = random.Random(rng.randrange(DOCUMENTS // 3 * 2))
    text = " ".join(seed.choices(WORDS, k=40))
    return {"body": f"{text} {rng.choice(WORDS)}" if rng.random() < 0.3 else text, "source": rng.choice("abc")}


def bulk(rng: random.Random, count: int) -> bytes:
    lines = [line for _ in range(count) for line in ({"index": {"_id": str(rng.randrange(DOCUMENTS))}}, document(rng))]
    return ("\n".join(map(json.dumps, lines)) + "\n").encode()


async def fill(engine: str, shards: int) -> None:
    """Create the index, and fill it through no proxy."""
    async with aiohttp.ClientSession(engine) as session:
        properties = {**ndd.indexing.mapping_properties(), "source": {"type": "keyword"}}
        settings = {"number_of_shards": shards, "number_of_replicas": 1}
        await session.put(f"/{INDEX}", json={"mappings": {"properties": properties}, "settings": settings})
        rng = random.Random(0)
        actions = [{"_index": INDEX, "_id": str(n), "_source": document(rng)} for n in range(DOCUMENTS)]
        lines = []
        for action in ndd.with_sketches(actions, fields=["body"]):
            source = action.pop("_source")
            lines += [json.dumps({"index": action}), json.dumps(source)]
        headers = {"content-type": "application/x-ndjson"}
        async with session.post("/_bulk?refresh=true", data="\n".join([*lines, ""]), headers=headers) as answer:
            assert not (await answer.json())["errors"]


async def calling(
    run: Run, kind: str, seed: int, send: Callable[[aiohttp.ClientSession, random.Random], Awaitable[str]]
) -> None:
    """Send requests one after another until the end. send: returns "" or what is wrong with the answer."""
    rng = random.Random(seed)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(run.url, timeout=timeout, connector=aiohttp.TCPConnector(limit=1)) as session:
        while run.goes_on:
            began = time.monotonic()
            try:
                problem = await send(session, rng)
            except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                problem = type(error).__name__
            run.note(kind, began, problem, not problem)
            if problem:
                await asyncio.sleep(0.2)


async def search(session: aiohttp.ClientSession, rng: random.Random) -> str:
    body = {"query": {"match": {"body": " ".join(rng.choices(WORDS, k=2))}}, "from": rng.choice((0, 0, 10))}
    async with session.post(f"/{INDEX}/_search", json=body) as answer:
        text = await answer.read()
        if answer.status != 200:
            return str(answer.status)
        return "" if "hits" in json.loads(text) else "no hits"


async def write(session: aiohttp.ClientSession, rng: random.Random) -> str:
    headers = {"content-type": "application/x-ndjson"}
    async with session.post(f"/{INDEX}/_bulk", data=bulk(rng, 50), headers=headers) as answer:
        text = await answer.read()
        if answer.status != 200:
            return str(answer.status)
        items = json.loads(text)["items"]
        return "" if len(items) == 50 and all(one["index"]["status"] < 300 for one in items) else "item failed"


async def write_slowly(session: aiohttp.ClientSession, rng: random.Random) -> str:
    body = bulk(rng, 20)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), len(body) // 20):
            yield body[start : start + len(body) // 20]
            await asyncio.sleep(SLOWNESS)

    headers = {"content-type": "application/x-ndjson"}
    async with session.post(f"/{INDEX}/_bulk", data=pieces(), headers=headers) as answer:
        await answer.read()
        return "" if answer.status == 200 else str(answer.status)


async def read_slowly(session: aiohttp.ClientSession, rng: random.Random) -> str:
    async with session.get(f"/{INDEX}/_search", params={"size": "500", "ndd": "off", "q": rng.choice(WORDS)}) as answer:
        async for _ in answer.content.iter_chunked(4096):
            await asyncio.sleep(SLOWNESS)
        return "" if answer.status == 200 else str(answer.status)


KINDS = {"search": search, "bulk": write, "slow bulk": write_slowly, "slow reader": read_slowly}
SHARES = {"search": 14, "bulk": 2, "slow bulk": 4, "slow reader": 4}


@contextmanager
def proxy(engine: list[str], redis: str, log: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a proxy in a process of its own. log: gets its warnings."""
    command = [sys.executable, "-u", "-m", "ndd_search", "serve", "--upstream", ",".join(engine), "--listen"]
    command += ["127.0.0.1:0", "--set", f"cache={redis}", "--text", f"{INDEX}:body"]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        yield process, process.stdout.readline().rpartition(" at ")[2].strip()
        process.send_signal(signal.SIGTERM)


def memory(pid: int) -> float:
    """Megabytes of a process."""
    (kilobytes,) = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) / 1024


def connections(pid: int) -> Counter[int]:
    """Count the established connections of a process by their port, its own or the other end's."""
    own = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            own.add(os.readlink(one))
    found: Counter[int] = Counter()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, status, *_, inode = line.split()[:10]
        if status == "01" and f"socket:[{inode}]" in own:
            found.update(int(end.partition(":")[2], 16) for end in (local, remote))
    return found


async def saturate(
    run: Run, process: subprocess.Popen[str], chosen: argparse.Namespace, servers: Servers
) -> list[float]:
    """Run all callers and the faults. Returns megabytes, second by second."""
    callers = [kind for kind, share in SHARES.items() for _ in range(max(1, round(share * chosen.callers / 24)))]
    tasks = [asyncio.create_task(calling(run, kind, seed, KINDS[kind])) for seed, kind in enumerate(callers)]
    faults = asyncio.create_task(servers.faults(run, chosen.seconds))
    megabytes = []
    while run.goes_on:
        await asyncio.sleep(1)
        megabytes.append(memory(process.pid))
    await asyncio.gather(*tasks, faults)
    return megabytes


class Servers:
    """The nodes of the engine, and Redis, which are killed and started again."""

    def __init__(self, engine: str, nodes: int, redis: RedisServer) -> None:
        self._release, self.redis = RELEASES[engine], redis
        ports = free_ports(nodes)
        settings = members(self._release, nodes) if nodes > 1 else [{}]
        self._settings = [{**one, "http.port": str(port)} for one, port in zip(settings, ports, strict=True)]
        self.nodes = [Server(self._release, **one) for one in self._settings]
        for node in self.nodes:
            node.wait()

    @property
    def urls(self) -> list[str]:
        """The addresses of the nodes."""
        return [node.url for node in self.nodes]

    def stop(self) -> None:
        """Stop all nodes."""
        for node in self.nodes:
            node.stop()

    def _start(self, place: int) -> None:
        self.nodes[place] = Server(self._release, **self._settings[place])
        self.nodes[place].wait()

    async def faults(self, run: Run, seconds: float) -> None:
        """Stop and start Redis and a node at their times."""
        began = run.until - seconds
        await _at(began + 0.2 * seconds)
        self.redis.stop()
        await _at(began + 0.35 * seconds)
        await asyncio.to_thread(self.redis.start)
        await _at(began + 0.45 * seconds)
        place = await asyncio.to_thread(self._manager)
        run.down.append((time.monotonic(), float("inf")))
        await asyncio.to_thread(self.nodes[place].stop)
        if len(self.nodes) == 1:
            await asyncio.to_thread(self._start, place)
            await fill(self.urls[0], 1)
        else:
            wanted = f"wait_for_nodes={len(self.nodes) - 1}&wait_for_status=yellow&timeout=80s"
            await asyncio.to_thread(get_json, f"{self.urls[place - 1]}/_cluster/health?{wanted}")
        run.down[-1] = run.down[-1][0], time.monotonic()
        print(f"the engine was away, or chose a manager, for {run.down[-1][1] - run.down[-1][0]:.1f} s", flush=True)
        if len(self.nodes) > 1:
            await _at(began + 0.6 * seconds)
            await asyncio.to_thread(self._start, place)

    def _manager(self) -> int:
        """Return the place of the node that manages the cluster."""
        state = get_json(f"{self.urls[0]}/_cluster/state/nodes,master_node")
        name = state["nodes"][state["master_node"]]["name"]
        return [one.get("node.name", name) for one in self._settings].index(name)


async def _at(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--engine", choices=RELEASES, default="opensearch3")
    parser.add_argument("--callers", type=int, default=24)
    parser.add_argument("--nodes", type=int, default=1, help="of the engine; one of several is lost")
    parser.add_argument("--log", type=Path, default=Path("build/saturate.log"), help="the proxy's own log")
    chosen = parser.parse_args()
    chosen.log.parent.mkdir(exist_ok=True)
    with redis_server() as redis:
        servers = Servers(chosen.engine, chosen.nodes, redis)
        try:
            asyncio.run(fill(servers.urls[0], chosen.nodes))
            with proxy(servers.urls, redis.url, chosen.log) as (process, url):
                run = Run(url, time.monotonic() + chosen.seconds)
                megabytes = asyncio.run(saturate(run, process, chosen, servers))
                left = _left(process.pid, *(int(address.rpartition(":")[2]) for address in (url, *servers.urls)))
                process.send_signal(signal.SIGTERM)
                stopped = time.monotonic()
                process.wait(30)
                stopped = time.monotonic() - stopped
        finally:
            servers.stop()
    return report(run, megabytes, left, stopped, chosen)


def _left(pid: int, *ports: int) -> int:
    """Return the connections to callers and to the engine that are left when idle ones have been closed."""
    until = time.monotonic() + 60
    while sum(connections(pid)[port] for port in ports) and time.monotonic() < until:
        time.sleep(0.5)
    return sum(connections(pid)[port] for port in ports)


def report(run: Run, megabytes: list[float], left: int, stopped: float, chosen: argparse.Namespace) -> int:
    """Print what happened. Returns the exit code."""
    for (kind, result), count in sorted(run.outcomes.items()):
        print(f"{kind:12} {result:28} {count:8,}")
    quarter = max(1, len(megabytes) // 4)
    early, late = median(megabytes[quarter : 2 * quarter]), median(megabytes[-quarter:])
    faults = chosen.log.read_text().count("a fault of the proxy") + chosen.log.read_text().count("Traceback")
    print(f"{sum(run.outcomes.values()) / chosen.seconds:,.0f} requests/s for {chosen.seconds:g} seconds")
    print(f"memory: {early:.0f} MB in the second quarter, {late:.0f} MB in the last; most {max(megabytes):.0f} MB")
    print(f"connections at the end: {left}; stopped within {stopped:.1f} s; faults in its log: {faults}")
    wrong = [*run.wrong]
    wrong += ["memory grew by more than a tenth"] if late > 1.1 * early else []
    wrong += ["connections are left"] if left else []
    wrong += ["a request was left"] if stopped > 5 else []
    wrong += [f"see {chosen.log}"] if faults else []
    print("\n".join(["WRONG:", *wrong]) if wrong else "nothing went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
