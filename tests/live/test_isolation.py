"""Readers see whole changes only; without isolation, the same checks find torn reads."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath.graph.hin import digest
from neupath.live import LiveGraph, LiveStore
from neupath.measures import PathCount
from neupath.store import check, write_store
from tests.live.comparison import set_edges
from tests.live.isolation import MEASURE, Exchange, Watcher, between_edges, publishing_parts, see, unprotected


class Pair:
    """Two authors whose edges to one paper always come and go together, and a measure that counts them."""

    def __init__(self) -> None:
        self.live, self.measure = (
            LiveGraph(npth.load("toy"), compaction_share=float("inf")),
            PathCount("author-paper-venue"),
        )
        self.live.attach(self.measure)
        self.write(0.0)
        self.before = self.read()

    def write(self, weight: float) -> None:
        writes = self.live.view().hin.schema.relations[0]
        set_edges(self.live, [(writes, 0, 10, weight), (writes, 1, 10, weight)])

    def read(self) -> np.ndarray:
        return self.live.view().scorer(self.measure).score_rows(np.arange(2)).sum(axis=1)

    def is_torn(self) -> bool:
        """Whether a read sees one of the edges without the other."""
        first, second = self.read() - self.before
        return bool(first != second)


@pytest.mark.slow
def test_no_read_beside_a_writer_is_torn() -> None:
    pair, done = Pair(), threading.Event()

    def write() -> None:
        while not done.is_set():
            for weight in (1.0, 0.0):
                pair.write(weight)

    writer = threading.Thread(target=write)
    writer.start()
    torn, versions = 0, set()
    try:
        while len(versions) < 100:
            assert writer.is_alive()
            torn += pair.is_torn()
            versions.add(pair.live.view().version)
    finally:
        done.set()
        writer.join()
    assert not torn


@pytest.mark.parametrize("isolated", [True, False])
def test_a_read_during_a_change_is_torn_only_without_versions(isolated: bool) -> None:
    pair, torn = Pair(), []
    with nullcontext() if isolated else publishing_parts(), between_edges(lambda: torn.append(pair.is_torn())):
        pair.write(1.0)
    assert len(torn) > 1
    assert any(torn) is not isolated
    assert not pair.is_torn()


class Crowd:
    """Writers and a reader of one store; the reader watches the exchanges of the writers."""

    def __init__(self, path: Path) -> None:
        self.live = LiveStore(write_store(npth.load("toy"), path), compaction_share=0.5)
        self.live.attach(MEASURE)
        papers = "Jim-SIGMOD-1", "Mike-VLDB-3"
        self.exchanges = [Exchange((f"first {n}", f"second {n}"), papers) for n in range(3)]
        for exchange in self.exchanges:
            self.live.update(exchange.start())
        self.unseen, self.writing = 0, threading.Event()

    def write(self, exchange: Exchange) -> None:
        while not self.writing.is_set():
            version = self.live.update(exchange.next())
            self.unseen += self.live.view().version < version

    def watch(self, enough: Callable[[Watcher], bool]) -> Watcher:
        """Read beside the writers until enough was seen."""
        watcher = Watcher(self.exchanges, partial(see, self.live))
        writers = [threading.Thread(target=self.write, args=(exchange,)) for exchange in self.exchanges]
        for writer in writers:
            writer.start()
        try:
            while not enough(watcher):
                assert all(writer.is_alive() for writer in writers)
                watcher.look()
        finally:
            self.writing.set()
            for writer in writers:
                writer.join()
            self.live.close()
        return watcher


@pytest.mark.slow
def test_many_writers_tear_no_read_and_lose_nothing(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path / "s")
    watcher = crowd.watch(lambda watcher: watcher.looks > 100 and crowd.live.view().version > 300)
    assert (watcher.torn, watcher.backwards, crowd.unseen) == (0, 0, 0)
    assert digest(crowd.live.view().hin) == digest(crowd.live.store.hin())
    assert not check(tmp_path / "s").problems


def test_the_watcher_sees_torn_reads_without_isolation(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path / "s")
    with unprotected():
        assert crowd.watch(lambda watcher: watcher.torn > 0).torn
