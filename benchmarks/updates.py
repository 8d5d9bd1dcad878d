"""Durable updates at a steady rate while others read: how long each takes, and whether any read is torn.

`python benchmarks/updates.py` offers 10,000 updates a minute to a store of a million edges for two minutes, beside 8
readers, in stretches that take turns with stretches of the same readers alone. Most batches are one edge, drawn as the
graph has them; every tenth is an exchange that the readers watch (tests/live/tearing.py). `--torn` takes the protection
away, to show that the watching catches it.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from powerlaw import powerlaw

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.live.tearing import MEASURE, Exchange, Watcher, unprotected

from neupath import HIN, PathSim
from neupath.live import LiveStore
from neupath.store import Batch, EdgeLine, check, write_store

PATH = "author-paper-author"
STRETCH = 10.0
"""Seconds of readers beside writers, and then of readers alone."""
WATCHED = 10
"""One batch of so many is an exchange."""


def call_steadily(call: Callable[[], object], rate: float, until: float, times: list[float]) -> None:
    """Call at a steady rate until a moment; each call is timed from when it was due, so that no delay is hidden."""
    due = time.perf_counter()
    while due < until:
        time.sleep(max(0.0, due - time.perf_counter()))
        call()
        times.append(time.perf_counter() - due)
        due += 1 / rate


class Writer:
    """Writes single edges, drawn as the graph has them, and now and then an exchange of its own."""

    def __init__(self, live: LiveStore, hin: HIN, exchange: Exchange, seed: int) -> None:
        self._live, self._exchange = live, exchange
        self._entries = hin.matrices[hin.schema.relations[0]].tocoo()
        self._rng = np.random.default_rng(seed)
        self.times: list[float] = []
        self.unseen = 0

    def write(self) -> None:
        """Write one batch; once it is acknowledged, every reader must see it."""
        is_watched = len(self.times) % WATCHED == 0
        version = self._live.update(self._exchange.next() if is_watched else self._draw())
        self.unseen += self._live.view().version < version

    def _draw(self) -> Batch:
        source, target = self._rng.integers(0, self._entries.nnz, 2)
        return Batch([EdgeLine("writes", int(self._entries.row[source]), int(self._entries.col[target]))])


class Reader:
    """Searches for the ten authors most like a random one, and watches the view that answered."""

    def __init__(self, live: LiveStore, watcher: Watcher, num_authors: int, seed: int) -> None:
        self._live, self._num_authors, self.watcher = live, num_authors, watcher
        self._rng = np.random.default_rng(seed)
        self._view = live.view()

    def read(self) -> None:
        """Do what is timed."""
        self._view = self._live.view()
        self._view.fit(PathSim(PATH)).top_k(int(self._rng.integers(0, self._num_authors)), k=10, threads=1)

    def read_and_watch(self, rate: float, until: float, times: list[float]) -> None:
        """Read at a steady rate until a moment, and look at each view after its answer."""
        due = time.perf_counter()
        while due < until:
            call_steadily(self.read, rate, due + 0.5 / rate, times)
            self.watcher.look(self._view)
            due += 1 / rate
            time.sleep(max(0.0, due - time.perf_counter()))


def start_exchanges(live: LiveStore, hin: HIN, count: int) -> list[Exchange]:
    """Add pairs of authors who exchange two papers of different venues."""
    venues = hin.matrices[hin.schema.relations[1]].indices
    new, other = hin.num_nodes("author"), int(np.flatnonzero(venues != venues[0])[0])
    found = [Exchange((new + 2 * i, new + 2 * i + 1), (0, other)) for i in range(count)]
    for exchange in found:
        live.update(exchange.start())
    return found


def run_stretch(*jobs: Callable[[float], None]) -> None:
    """Do some jobs in threads of their own, all until the same moment."""
    until = time.perf_counter() + STRETCH
    threads = [threading.Thread(target=job, args=(until,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def describe(name: str, times: list[float]) -> dict[str, float]:
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1e3
    return {f"{name}_p50_ms": round(float(p50), 2), f"{name}_p99_ms": round(float(p99), 2)}


def measure(live: LiveStore, hin: HIN, options: argparse.Namespace) -> dict[str, object]:
    live.fit(PathSim(PATH))
    live.fit(MEASURE)
    exchanges = start_exchanges(live, hin, options.writers)
    writers = [Writer(live, hin, exchange, seed) for seed, exchange in enumerate(exchanges)]
    readers = [
        Reader(live, Watcher(exchanges, live.view()), hin.num_nodes("author"), 100 + n) for n in range(options.readers)
    ]
    for warm in (*writers, *writers):  # the first calls compile
        warm.write()
    for reader in readers:
        reader.read()
    alone: list[float] = []
    beside: list[float] = []
    acknowledged: list[float] = []
    update_rate, read_rate = options.updates / 60 / options.writers, options.reads / options.readers
    writing = [partial(call_steadily, writer.write, update_rate, times=acknowledged) for writer in writers]
    for _ in range(max(1, round(options.seconds / STRETCH))):
        run_stretch(*writing, *(partial(reader.read_and_watch, read_rate, times=beside) for reader in readers))
        run_stretch(*(partial(reader.read_and_watch, read_rate, times=alone) for reader in readers))
    watchers = [reader.watcher for reader in readers]
    return {
        "offered_per_minute": options.updates,
        "acknowledged_per_minute": round(len(acknowledged) / options.seconds * 60),
        **describe("acknowledged", acknowledged),
        "reads_beside": len(beside), **describe("beside", beside),
        "reads_alone": len(alone), **describe("alone", alone),
        "looks": sum(watcher.looks for watcher in watchers),
        "torn": sum(watcher.torn for watcher in watchers),
        "backwards": sum(watcher.backwards for watcher in watchers),
        "acknowledged_unseen": sum(writer.unseen for writer in writers),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=120.0, help="seconds with writers; those without come on top")
    parser.add_argument("--updates", type=float, default=10_000, help="updates offered a minute")
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--reads", type=float, default=200.0, help="reads offered a second, of all readers")
    parser.add_argument("--torn", action="store_true", help="take the protection away")
    options = parser.parse_args()
    hin = powerlaw(options.edges)
    with TemporaryDirectory() as folder, unprotected() if options.torn else nullcontext():
        with LiveStore(write_store(hin, Path(folder) / "store")) as live:
            found = measure(live, hin, options)
            found["version"] = live.view().version
        found["problems"] = check(Path(folder) / "store").problems
    print(json.dumps(found))


if __name__ == "__main__":
    main()
