"""The service under load and under attack, from a second process over loopback.

    python benchmarks/service.py load | light [--data DATA] [--seconds 30] [--out FILE]
    python benchmarks/service.py job | loris | idle | body | names [--data DATA]

`load`: top 10 on IMDB by movie-actor-movie at 1, 8 and 64 connections, every answer compared, byte by byte, with what
`neupath search --json` prints. In turns with it the same measure as a handler that one would write with FastAPI and
scipy, all in memory, on the same uvicorn with uvloop and httptools; its answers are first found to hold the same hits,
and then compared with themselves, so that both loads cost their sender the same. `light`: the same load for a service
that answers light searches in threads, for one that does not, and for that on connections of uvicorn's own instead of
ours, in turns of 2 seconds. `job`: 64 connections while join jobs run, against no job. `loris`: clients that never
finish their headers; `idle`: 10,000 connections that say nothing; `body`: a body of 1 GB, with and without a
Content-Length; each while others search. `names`: lookups among 50,000 names.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import uvloop

import neupath as npth
from neupath.graph.nodes import Nodes

PATH, K, CONNECTIONS = "movie-actor-movie", 10, (1, 8, 64)
PORT, PEER_PORT = 8765, 8766
SLICE = 5.0
"""Seconds of load after which it is the other service's turn, so that both meet the same weather."""
PEER = """
import sys
import numpy as np, uvicorn
from fastapi import FastAPI
import neupath as npth

hin = npth.load("imdb", data=sys.argv[1])
scorer = npth.PathSim("MAM").fit(hin)
w, wt, norms = scorer.factors_.left.copy(), scorer.factors_.right.copy(), np.array(scorer.factors_.left_norms)
names, ids = hin.nodes["movie"].names.to_pylist(), hin.nodes["movie"].ids.to_pylist()
row_of = {node_id: row for row, node_id in enumerate(ids)}
app = FastAPI()


@app.get("/api/graphs/imdb/search")
async def search(query: int, metapath: str, k: int = 10):
    row = row_of[query]
    product = w[[row]] @ wt
    targets, m = product.indices, product.data
    scores = 2 * m / (norms[row] + norms[targets])
    scores[targets == row] = -1
    if len(scores) > k:
        kth = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero((scores >= kth) & (scores > 0))
    else:
        kept = np.flatnonzero(scores > 0)
    best = kept[np.lexsort((targets[kept], -scores[kept]))[:k]]
    hits = [
        {"rank": rank, "id": ids[targets[at]], "name": names[targets[at]], "score": float(scores[at])}
        for rank, at in enumerate(best, 1)
    ]
    return {"query": query, "metapath": metapath, "measure": "pathsim", "exact": True, "hits": hits}


uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False, loop="uvloop", http="httptools")
"""


@contextmanager
def serving(command: list[str], port: int = PORT) -> Iterator[int]:
    """Start a server in a process of its own, wait until it answers, and stop it at the end; yields its process id."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                asyncio.run(ask_once(b"GET /api/graphs HTTP/1.1\r\nhost: localhost\r\n\r\n", port))
                break
            except OSError:
                time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


def neupath_command(data: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "neupath.cli", "serve", "imdb", "--data", data, "--port", str(PORT), *more]


def peer_command(data: str) -> list[str]:
    return [sys.executable, "-c", PEER, data, str(PEER_PORT)]


async def ask_once(request: bytes, port: int = PORT) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    body = await reader.readexactly(_length(head))
    writer.close()
    return head + body


def _length(head: bytes) -> int:
    at = head.find(b"content-length: ")
    return int(head[at + 16 :].partition(b"\r\n")[0]) if at >= 0 else 0


class Caller(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, load: "Load", first: int) -> None:
        self._load, self._number = load, first
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._load.requests[self._number % len(self._load.requests)])

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        expected = self._load.expected[self._number % len(self._load.requests)]
        if not (self._buffer.startswith(b"HTTP/1.1 200 OK\r\n") and self._buffer.endswith(expected)):
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0 or len(self._buffer) < end + 4 + _length(self._buffer[:end]):
                return
            self._load.failed += 1
        self._load.times.append(time.perf_counter() - self._began)
        self._buffer = b""
        self._number += 1
        if time.perf_counter() < self._load.until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.failed += exc is not None or time.perf_counter() < self._load.until
        self._load.leave()


class Load:
    """Some connections that ask for a while."""

    def __init__(self, requests: list[bytes], answers: list[bytes], port: int = PORT) -> None:
        self.port = port
        self.requests, self.expected = requests, [b"\r\n\r\n" + answer for answer in answers]
        self.clear()
        self.until = 0.0

    def clear(self) -> None:
        """Forget what was measured."""
        self.times: list[float] = []
        self.failed, self.seconds, self.cpu = 0, 0.0, 0.0

    def leave(self) -> None:
        self._open -= 1
        if not self._open:
            self._done.set_result(None)

    async def go_on(self, connections: int, seconds: float) -> None:
        """Ask for some more seconds."""
        loop = asyncio.get_running_loop()
        self._open, self._done = connections, loop.create_future()
        began = time.perf_counter()
        self.until = began + seconds
        for number in range(connections):
            first = len(self.times) + 97 * number
            await loop.create_connection(lambda n=first: Caller(self, n), "127.0.0.1", self.port)  # type: ignore[misc]
        await self._done
        self.seconds += time.perf_counter() - began

    def tell(self, connections: int) -> dict[str, float]:
        """Return the rate, the times and the failures so far."""
        p50, p99 = np.percentile(self.times, [50, 99]) * 1e3
        rate, cpu = len(self.times) / self.seconds, 1e6 * self.cpu / len(self.times)
        found = {"connections": connections, "rate": rate, "p50": p50, "p99": p99, "failed": self.failed}
        return found | ({"cpu": cpu} if cpu else {})

    async def run(self, connections: int, seconds: float) -> dict[str, float]:
        """Ask for a while, and return what was measured."""
        self.clear()
        await self.go_on(connections, seconds)
        return self.tell(connections)


def make_load(data: str) -> Load:
    """Make the requests for all movies and what the command line answers to each."""
    hin = npth.load("imdb", data=data)
    ids = hin.nodes["movie"].ids.to_pylist()
    expected = cli_answers(data, ids)
    words = [urlencode({"query": i, "metapath": PATH, "k": K}) for i in ids]
    requests = [f"GET /api/graphs/imdb/search?{w} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode() for w in words]
    return Load(requests, expected)


async def load_of_peer(load: Load) -> Load:
    """Make the same load with a peer's own answers, once each has been found to hold the same hits."""
    answers = []
    for request, expected in zip(load.requests, load.expected, strict=True):
        body = (await ask_once(request, PEER_PORT)).partition(b"\r\n\r\n")[2]
        if json.loads(body)["hits"] != json.loads(expected)["hits"]:
            sys.exit(f"the peer answers {body!r}, and the command line {expected!r}")
        answers.append(body)
    return Load(load.requests, answers, PEER_PORT)


def cli_answers(data: str, ids: list[int]) -> list[bytes]:
    command = [sys.executable, "-m", "neupath.cli", "search", "imdb", *map(str, ids), "--metapath", PATH, "--json"]
    done = subprocess.run([*command, "-k", str(K), "--data", data], capture_output=True, check=True)
    return [re.sub(rb', "ties": \d+}$', b"}", line) for line in done.stdout.splitlines()]  # the service has none


def run_load(data: str, seconds: float, out: str | None) -> None:
    ours = make_load(data)
    with serving(neupath_command(data)) as first, serving(peer_command(data), PEER_PORT) as second:
        theirs = uvloop.run(load_of_peer(ours))
        services = (("neupath", ours, first), ("FastAPI + scipy", theirs, second))
        for _, load, _ in services:
            uvloop.run(load.run(8, 3))  # warm
        rows: list[dict[str, Any]] = []
        for connections in CONNECTIONS:
            rows += take_turns(services, connections, seconds)
            print(*map(tell, rows[-2:]), sep="\n", flush=True)
            print(f"  {rows[-2]['rate'] / rows[-1]['rate']:.2f} times the throughput", flush=True)
    if out:
        Path(out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


VARIANT = """
import runpy, sys
from neupath.service import light_search, server

variant = sys.argv.pop(1)
if variant == "in threads":
    light_search.search_light = lambda *arguments: None
if variant in ("h11", "httptools"):
    server.limited_connections = lambda limits: variant
runpy.run_module("neupath.cli", run_name="__main__")
"""


def run_light(data: str, seconds: float, out: str | None) -> None:
    """Compare the service with variants of it; medians of slices."""
    load = make_load(data)
    answers = [expected[4:] for expected in load.expected]
    names = ("in threads", "as served", "h11", "httptools")
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        services = []
        for number, name in enumerate(names):
            port = PORT + number
            options = ["--data", data, "--port", str(port), "--limit", "heavy=64"]
            command = [sys.executable, "-c", VARIANT, name, "serve", "imdb", *options]
            process = stack.enter_context(serving(command, port))
            services.append((name, Load(load.requests, answers, port), process))
        for _, service, _ in services:
            uvloop.run(service.run(8, 3))  # warm
        for connections in CONNECTIONS:
            slices: dict[str, list[dict[str, float]]] = {name: [] for name in names}
            for _ in range(max(3, int(seconds / 2))):
                for name, service, process in services:
                    before = _cpu(process)
                    row = uvloop.run(service.run(connections, 2))
                    cpu = 1e6 * (_cpu(process) - before) / len(service.times)
                    slices[name].append(row | {"cpu": cpu})
            for name, measured in slices.items():
                medians = {
                    key: float(np.median([row[key] for row in measured])) for key in ("rate", "p50", "p99", "cpu")
                }
                failed = sum(row["failed"] for row in measured)
                rows.append({"service": name, "connections": connections, "failed": failed} | medians)
                print(tell(rows[-1]), flush=True)
    if out:
        Path(out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def take_turns(services: Sequence[tuple[str, Load, int]], connections: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Load each service for some seconds in all, in turns."""
    for _, load, _ in services:
        load.clear()
    while services[-1][1].seconds < seconds:
        for _, load, process in services:
            before = _cpu(process)
            uvloop.run(load.go_on(connections, SLICE))
            load.cpu += _cpu(process) - before
    for name, load, _ in services:
        yield {"service": name} | load.tell(connections)


def tell(row: dict[str, Any]) -> str:
    times = f"p50 {row['p50']:7.3f} ms  p99 {row['p99']:7.3f} ms"
    cpu = f"  {row['cpu']:4.0f} µs of the server's CPU each" if "cpu" in row else ""
    return f"{row['service']:<16} {row['connections']:>3}  {row['rate']:8.0f}/s  {times}  failed {row['failed']}{cpu}"


def _cpu(process: int) -> float:
    """Return the seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_job(data: str, seconds: float) -> None:
    """Compare 64 clients while jobs run, one after the other, with 64 clients alone."""
    load = make_load(data)
    join = json.dumps(
        {"kind": "join", "graph": "imdb", "metapath": "movie-actor-movie-actor-movie", "k": 1000}
    ).encode()
    with serving(neupath_command(data)):
        uvloop.run(load.run(8, 3))
        idle = uvloop.run(load.run(64, seconds))
        print(tell({"service": "no job"} | idle))

        async def busy() -> dict[str, float]:
            for _ in range(8):
                await ask_once(_post("/api/jobs", join))
            return await load.run(64, seconds)

        found = uvloop.run(busy())
        print(tell({"service": "while jobs run"} | found))
        print(f"p99 is {found['p99'] / idle['p99']:.2f} times that without a job")
        answer = uvloop.run(ask_once(b"GET /api/jobs HTTP/1.1\r\nhost: localhost\r\n\r\n"))
        print("jobs:", [job["state"] for job in json.loads(answer.partition(b"\r\n\r\n")[2])])


def _post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def run_loris(data: str, seconds: float, count: int = 2000) -> None:
    """Let clients send a header line every second and never the last, while others search."""
    load = make_load(data)

    async def drip(ended: list[float]) -> None:
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        writer.write(b"GET /api/graphs HTTP/1.1\r\nhost: localhost\r\n")
        answer = asyncio.ensure_future(reader.read())
        while not answer.done():
            writer.write(b"x-a: b\r\n")
            await asyncio.wait({answer}, timeout=1)
        answer.exception()  # a reset is an end as well
        ended.append(time.perf_counter() - began)

    async def attack() -> dict[str, float]:
        ended: list[float] = []
        drips = [asyncio.create_task(drip(ended)) for _ in range(count)]
        await asyncio.sleep(2)
        found = await load.run(8, seconds)
        for task in drips:
            task.cancel()
        await asyncio.gather(*drips, return_exceptions=True)
        print(f"{len(ended)} of {count} slow clients were closed, after {np.median(ended or [np.nan]):.1f} s (median)")
        return found

    with serving(neupath_command(data)):
        uvloop.run(load.run(8, 3))
        print(tell({"service": "alone"} | uvloop.run(load.run(8, seconds))))
        print(tell({"service": "with slow-loris"} | uvloop.run(attack())))


def run_idle(data: str, seconds: float, count: int = 10_000) -> None:
    """Open connections that say nothing, keep as many open, and search meanwhile."""
    load = make_load(data)

    async def hold(opened: list[int]) -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
            opened[0] += 1
            await reader.read()
            writer.close()

    async def attack(process: int) -> dict[str, float]:
        opened = [0]
        holds = [asyncio.create_task(hold(opened)) for _ in range(count)]
        while opened[0] < count:
            await asyncio.sleep(0.1)
        held = len(list(Path(f"/proc/{process}/fd").iterdir()))
        found = await load.run(8, seconds)
        print(f"{held:,} files open in the service with {count:,} idle connections; {opened[0]:,} were opened in all")
        for task in holds:
            task.cancel()
        await asyncio.gather(*holds, return_exceptions=True)
        return found

    with serving(neupath_command(data)) as process:
        uvloop.run(load.run(8, 3))
        print(tell({"service": "alone"} | uvloop.run(load.run(8, seconds))))
        print(tell({"service": "with idle ones"} | uvloop.run(attack(process))))
        print("memory of the service:", _memory(process))


def _memory(process: int) -> str:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("VmHWM"))


def run_body(data: str, seconds: float, size: int = 1 << 30) -> None:
    """Send a body of 1 GB, told beforehand and in chunks, while others search."""
    load = make_load(data)
    block = b" " * (1 << 20)

    async def send(chunked: bool) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        length = "transfer-encoding: chunked" if chunked else f"content-length: {size}"
        head = f"POST /api/graphs/imdb/search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{length}"
        writer.write(head.encode() + b"\r\n\r\n")
        sent = 0
        try:
            while sent < size and not reader.at_eof():
                writer.write(b"100000\r\n" + block + b"\r\n" if chunked else block)
                await writer.drain()
                sent += len(block)
        except OSError:
            pass
        try:
            return sent, await reader.read(65536)
        except OSError:
            return sent, b"(reset)"

    async def attack() -> dict[str, float]:
        search = asyncio.create_task(load.run(8, seconds))
        for chunked in (False, True):
            sent, answer = await send(chunked)
            told = answer.split(b"\r\n")[0].decode(), answer.rpartition(b"\r\n\r\n")[2].decode()
            print(f"{'chunked' if chunked else 'content-length'}: {sent >> 20} MiB sent, answered {told}")
        return await search

    with serving(neupath_command(data)) as process:
        uvloop.run(load.run(8, 3))
        print("memory of the service:", _memory(process))
        print(tell({"service": "with 1 GB bodies"} | uvloop.run(attack())))
        print("memory of the service:", _memory(process))


def run_names(count: int = 50_000) -> None:
    """Look up among made-up names: the first time, by prefix, inside and by spelling."""
    import pyarrow as pa

    from neupath.graph.name_search import search_names
    from neupath.service.autocomplete import NameIndex

    rng = np.random.default_rng(0)
    syllables = ["ka", "lo", "mi", "ren", "tos", "vu", "shi", "dra", "el", "an", "gor", "pe", "qui", "zan"]
    texts = [" ".join("".join(rng.choice(syllables, 3)) for _ in range(3)) for _ in range(count)]
    began = time.perf_counter()
    names = NameIndex(Nodes("person", pa.array([f"p{i}" for i in range(count)]), pa.array(texts)))
    names.prepare()
    print(f"prepared {count:,} names in {time.perf_counter() - began:.2f} s")
    for what, asked in (
        ("prefix", texts[7][:4]), ("inside", texts[9][3:9]), ("spelling", "x" + texts[11][:7] + "y" + texts[11][9:])
    ):  # fmt: skip
        times = []
        for _ in range(20):
            began = time.perf_counter()
            matches = search_names(names.searches, asked)
            matches.best(20)
            times.append(time.perf_counter() - began)
        print(f"{what:<9} {len(matches):>6} found, {1e3 * float(np.median(times)):.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("load", "light", "job", "loris", "idle", "body", "names"))
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out")
    given = parser.parse_args()
    if given.what == "names":
        run_names()
        return
    if not given.data:
        sys.exit("give --data, the folder that holds imdb")
    if given.what == "load":
        run_load(given.data, given.seconds, given.out)
        return
    if given.what == "light":
        run_light(given.data, given.seconds, given.out)
        return
    runs = {"job": run_job, "loris": run_loris, "idle": run_idle, "body": run_body}
    runs[given.what](given.data, given.seconds)


if __name__ == "__main__":
    main()
