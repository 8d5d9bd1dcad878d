"""Measure durable updates at a steady rate beside readers: latencies, and whether any read is torn.

`python benchmarks/updates.py` offers 10,000 updates per minute to a store of a million edges for two minutes, beside 8
readers, alternating with periods of the same readers alone. Most updates are one edge, its ends drawn by degree; every
tenth is an exchange that the readers watch (tests/live/isolation.py). `--service` runs it over HTTP, with the service
in its own process. `--torn` removes the isolation, to show that the readers notice.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from powerlaw import powerlaw

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.live.isolation import MEASURE, Exchange, Seen, Watcher, see, unprotected

from neupath import HIN, PathSim
from neupath.client import Client
from neupath.engine.topk import load_kernels
from neupath.graph.nodes import Id
from neupath.live import LiveStore
from neupath.store import Edge, Update, check, write_store

PATH = "author-paper-author"
PERIOD = 10.0
"""Seconds of readers beside writers, then of readers alone."""
WATCHED = 10
"""One update in this many is an exchange."""


class Caller(ABC):
    """How one thread reaches the graph."""

    @abstractmethod
    def update(self, update: Update) -> int:
        """Write an update and return its version."""

    @abstractmethod
    def search(self, author: int) -> None:
        """Find the ten authors most like one."""

    @abstractmethod
    def see(self, authors: tuple[Id, Id]) -> Seen:
        """Return the version and the venue counts of two authors."""


class Direct(Caller):
    """A thread of the process that holds the graph."""

    def __init__(self, live: LiveStore) -> None:
        self._live = live

    def update(self, update: Update) -> int:
        return self._live.update(update)

    def search(self, author: int) -> None:
        self._live.view().scorer(PathSim(PATH)).top_k(author, k=10, threads=1)

    def see(self, authors: tuple[Id, Id]) -> Seen:
        return see(self._live, authors)


class Remote(Caller):
    """A client of a service."""

    def __init__(self, url: str, num_venues: int) -> None:
        self._client, self._num_venues = Client(url), num_venues

    def update(self, update: Update) -> int:
        added = [(edge.relation, edge.source, edge.target, edge.weight) for edge in update.add_edges]
        removed = [(edge.relation, edge.source, edge.target) for edge in update.remove_edges]
        return self._client.update("store", added, removed, [(node.node_type, node.id) for node in update.add_nodes])

    def search(self, author: int) -> None:
        self._client._session.read_bytes("GET", f"/api/graphs/store/search?query={author}&metapath={PATH}&k=10")

    def see(self, authors: tuple[Id, Id]) -> Seen:
        body = {"queries": list(authors), "metapath": str(MEASURE.metapath), "measure": MEASURE.name, "k": 1000}
        answers = self._client._session.read_list("POST", "/api/graphs/store/search", body)
        counts = np.zeros((2, self._num_venues))
        for row, answer in enumerate(answers):
            for hit in answer["hits"]:
                counts[row, hit["id"]] = hit["score"]
        return answers[0]["version"], counts


class Writer:
    """Writes single edges, their ends drawn by degree, and regularly its own exchange."""

    def __init__(self, caller: Caller, hin: HIN, exchange: Exchange, seed: int) -> None:
        self._caller, self._exchange = caller, exchange
        self._entries = hin.matrices[hin.schema.relations[0]].tocoo()
        self._rng = np.random.default_rng(seed)
        self._count = 0
        self.unseen = 0

    def write(self) -> None:
        """Write one update; once an exchange is acknowledged, every reader must see it."""
        self._count += 1
        if self._count % WATCHED:
            self._caller.update(self._draw())
        else:
            version = self._caller.update(self._exchange.next())
            self.unseen += self._caller.see(self._exchange.authors)[0] < version

    def _draw(self) -> Update:
        source, target = self._rng.integers(0, self._entries.nnz, 2)
        return Update([Edge("writes", int(self._entries.row[source]), int(self._entries.col[target]))])


class Reader:
    """Searches for random authors, and checks an exchange after each answer."""

    def __init__(self, caller: Caller, exchanges: list[Exchange], num_authors: int, seed: int) -> None:
        self._caller, self._num_authors = caller, num_authors
        self._rng = np.random.default_rng(seed)
        self.watcher = Watcher(exchanges, caller.see)

    def read(self) -> None:
        self._caller.search(int(self._rng.integers(0, self._num_authors)))


def call_steadily(
    call: Callable[[], object], rate: float, until: float, times: list[float], after: Callable[[], object] = bool
) -> None:
    """Call at a steady rate until a point in time; time each call from when it was due, so that no delay is hidden."""
    due = time.perf_counter() + np.random.default_rng().uniform(0, 1 / rate)
    while due < until:
        time.sleep(max(0.0, due - time.perf_counter()))
        call()
        times.append(time.perf_counter() - due)
        after()
        due += 1 / rate


def start_exchanges(caller: Caller, hin: HIN, count: int) -> list[Exchange]:
    """Add pairs of authors who exchange two papers of different venues."""
    venues = hin.matrices[hin.schema.relations[1]].indices
    new, other = hin.num_nodes("author"), int(np.flatnonzero(venues != venues[0])[0])
    exchanges = [Exchange((new + 2 * i, new + 2 * i + 1), (0, other)) for i in range(count)]
    for exchange in exchanges:
        caller.update(exchange.start())
    return exchanges


def run_period(*jobs: Callable[[float], None]) -> float:
    """Run each job in its own thread until the same point in time; return the seconds it took."""
    began = time.perf_counter()
    until = began + PERIOD
    threads = [threading.Thread(target=job, args=(until,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def describe(name: str, times: list[float]) -> dict[str, float]:
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1e3
    return {f"{name}_p50_ms": round(float(p50), 2), f"{name}_p99_ms": round(float(p99), 2)}


def measure(make_caller: Callable[[], Caller], hin: HIN, options: argparse.Namespace) -> dict[str, object]:
    exchanges = start_exchanges(make_caller(), hin, options.writers)
    writers = [Writer(make_caller(), hin, exchange, seed) for seed, exchange in enumerate(exchanges)]
    readers = [Reader(make_caller(), exchanges, hin.num_nodes("author"), 100 + n) for n in range(options.readers)]
    for work in [reader.read for reader in readers] + [writer.write for writer in writers] * WATCHED:
        work()  # the first calls compile the kernels
    alone: list[float] = []
    beside: list[float] = []
    acknowledged: list[float] = []
    update_rate, read_rate = options.updates / 60 / options.writers, options.reads / options.readers
    writing = [partial(call_steadily, writer.write, update_rate, times=acknowledged) for writer in writers]

    def reading(times: list[float]) -> list[Callable[[float], None]]:
        return [partial(call_steadily, r.read, read_rate, times=times, after=r.watcher.look) for r in readers]

    seconds = 0.0
    for _ in range(max(1, round(options.seconds / PERIOD))):
        seconds += run_period(*writing, *reading(beside))
        run_period(*reading(alone))
    watchers = [reader.watcher for reader in readers]
    return {
        "offered_per_minute": options.updates,
        "acknowledged_per_minute": round(len(acknowledged) / seconds * 60),
        **describe("acknowledged", acknowledged),
        "reads_beside": len(beside), **describe("beside", beside),
        "reads_alone": len(alone), **describe("alone", alone),
        "looks": sum(watcher.looks for watcher in watchers),
        "torn": sum(watcher.torn for watcher in watchers),
        "backwards": sum(watcher.backwards for watcher in watchers),
        "acknowledged_unseen": sum(writer.unseen for writer in writers),
    }  # fmt: skip


@contextmanager
def serve(store: Path) -> Iterator[str]:
    """Serve a store from another process."""
    command = [sys.executable, "-m", "neupath.cli", "serve", f"store={store}", "--writable", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[3]
        finally:
            process.terminate()


def measure_store(store: Path, hin: HIN, options: argparse.Namespace) -> dict[str, object]:
    if options.service:
        with serve(store) as url:
            return measure(lambda: Remote(url, hin.num_nodes("venue")), hin, options)
    with LiveStore(store) as live:
        load_kernels()  # as a service does before its first request
        live.attach(PathSim(PATH))
        live.attach(MEASURE)
        return measure(lambda: Direct(live), hin, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=120.0, help="seconds with writers; as many follow without")
    parser.add_argument("--updates", type=float, default=10_000, help="updates offered per minute")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--reads", type=float, default=200.0, help="reads offered per second, by all readers")
    parser.add_argument("--service", action="store_true", help="over HTTP")
    parser.add_argument("--torn", action="store_true", help="remove the isolation")
    options = parser.parse_args()
    hin = powerlaw(options.edges)
    with TemporaryDirectory() as folder:
        store = write_store(hin, Path(folder) / "store")
        if options.torn:
            with unprotected():
                result = measure_store(store, hin, options)
        else:
            result = measure_store(store, hin, options)
        result["version"] = check(store).version
        result["problems"] = check(store).problems
    print(json.dumps(result))


if __name__ == "__main__":
    main()
