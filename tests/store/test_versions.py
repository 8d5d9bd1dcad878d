"""Versions of a store: updates that share a commit, refused updates, and stores that are replaced or locked."""

import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN
from neupath.errors import GraphError, SourceError, WriteError
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.live import LiveStore
from neupath.store import Change, Edge, Node, Store, Update, check, database, open_store, write_store
from neupath.store import store as store_module
from neupath.store.database import duckdb
from tests.store.stores import NEW

SIZE = 6
KNOWS, LIKES = Relation("p", "knows", "p", directed=False), Relation("p", "likes", "q")


def mixed_graph() -> HIN:
    """People who know each other (undirected) and like things; people have names."""
    rng = np.random.default_rng(0)
    people = Nodes("p", pa.array([f"p{i}" for i in range(SIZE)]), pa.array([f"P{i}" for i in range(SIZE)]))
    ends = [rng.integers(0, SIZE, (2, 8)) for _ in range(2)]
    return HIN.build([people, Nodes("q", pa.array(range(SIZE)))], [Edges(KNOWS, *ends[0]), Edges(LIKES, *ends[1])])


def random_update(rng: np.random.Generator, hin: HIN) -> Update:
    """Draw an update with edges and nodes to add and remove, valid or not."""
    people, things = hin.nodes["p"].ids.to_pylist(), hin.nodes["q"].ids.to_pylist()
    new = f"n{rng.integers(0, 9)}"

    def edge() -> Edge:
        ends = people if (knows := bool(rng.integers(0, 2))) else things
        return Edge("knows" if knows else "likes", rng.choice(people), rng.choice(ends), float(rng.integers(1, 4)))

    gone = str(rng.choice(people))
    leaving = rng.integers(0, 4) == 0
    return Update(
        [edge() for _ in range(rng.integers(0, 3))],
        _edges_at(hin, gone) if leaving else [],
        [Node("p", new, name="new")] if rng.integers(0, 2) else [],
        [Node("p", gone)] if leaving else [],
    )


def _edges_at(hin: HIN, person: str) -> list[Edge]:
    row, edges = hin.row("p", person), []
    for relation, matrix in hin.matrices.items():
        others = hin.nodes[relation.target]
        edges += [Edge(relation.name, person, others.id(c)) for c in matrix[[row]].tocoo().col]
    return edges


def test_one_bad_update_refuses_only_itself(store: Store) -> None:
    paper = Node("paper", "new")
    good = Update([Edge("writes", "Mike", "new")], add_nodes=[paper])
    bad = Update([Edge("writes", "Mike", "new"), Edge("writes", "Nobody", "new")])
    later = Update([Edge("writes", "Jim", "new")])  # of a node that the same group adds
    first, refused, second = store.update_many([good, bad, later])
    assert isinstance(first, Change)
    assert isinstance(second, Change)
    assert (first.version, second.version, store.version) == (1, 2, 2)
    assert str(refused) == "nothing was changed: add_edges[1]: no author with the id 'Nobody'"
    assert [store.hin(version).num_edges(store.hin().schema.relations[0]) for version in range(3)] == [81, 82, 83]
    assert not store.check().problems


def test_nodes_are_added_and_removed_in_one_group_and_in_one_update(store: Store) -> None:
    zoe, edge = Node("author", "Zoe"), Edge("writes", "Zoe", "Jim-SIGMOD-1")
    coming, going = Update([edge], add_nodes=[zoe]), Update(remove_edges=[edge], remove_nodes=[zoe])
    again = Update([Edge("writes", "Zoe", "Jim-SIGMOD-1", 5.0)], [edge], [zoe], [zoe])
    outcomes = store.update_many([coming, going, coming, again])
    assert [change.version for change in outcomes if isinstance(change, Change)] == [1, 2, 3, 4]
    assert [store.hin(version).num_nodes("author") for version in range(5)] == [5, 6, 5, 6, 6]
    assert digest(store.hin(0)) == digest(store.hin(2))
    hin = store.hin()
    assert hin.matrices[hin.schema.relations[0]][hin.row("author", "Zoe"), hin.row("paper", "Jim-SIGMOD-1")] == 5.0
    assert not store.check().problems


@pytest.mark.slow
def test_random_groups_leave_memory_and_disk_equal(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = write_store(mixed_graph(), tmp_path / "s")
    done, refused = 0, 0
    with LiveStore(path) as live:
        live.attach(npth.PathSim("p-q-p"))
        for _ in range(25):
            hin = live.view().hin
            outcomes = live._update_many([random_update(rng, hin) for _ in range(4)])
            done += sum(isinstance(outcome, int) for outcome in outcomes)
            refused += sum(isinstance(outcome, GraphError) for outcome in outcomes)
            assert live.view().version == done
            assert digest(live.view().hin) == digest(live.store.hin())
    assert done > 30
    assert refused > 10
    assert not check(path).problems


def test_a_group_that_cannot_be_written_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    edge = Update([NEW])

    def fail(*_: object) -> None:
        raise duckdb().IOException("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(database, "write_facts", fail)
        with pytest.raises(WriteError, match="no space left; nothing was changed"):
            store.update(edge)
    assert digest(store.hin()) == digest(npth.load("toy"))
    assert store.update(edge).version == 1
    assert not store.check().problems


def test_a_store_that_was_replaced_refuses_updates(store: Store, tmp_path: Path) -> None:
    edge = Update([NEW])
    with store:
        assert store.update(edge).version == 1
        store.folder.rename(tmp_path / "before.store")
        write_store(npth.load("toy"), store.folder)
        for _ in range(2):  # also when it was closed in between
            with pytest.raises(WriteError, match="was moved or replaced while open; .* reopen it"):
                store.update(edge)
    assert open_store(tmp_path / "before.store").version == 1
    with open_store(store.folder) as replacement:
        assert replacement.version == 0
        assert replacement.update(edge).version == 1


@pytest.mark.slow
def test_closing_a_replaced_store_leaves_the_log_of_the_new_one(store: Store, tmp_path: Path) -> None:
    edge = Update([NEW])
    with store:
        store.update(edge)
        store.folder.rename(tmp_path / "before.store")
        write_store(npth.load("toy"), store.folder)
        code = (
            "import os, sys; from neupath.store import *; store = open_store(sys.argv[1]);"
            "store.update(Update([Edge('writes', 'Mike', 'Jim-SIGMOD-1')])); os._exit(0)"
        )
        subprocess.run([sys.executable, "-c", code, store.folder], check=True)
    assert open_store(store.folder).version == 1
    assert open_store(tmp_path / "before.store").version == 1


def test_ctrl_c_during_compaction_does_not_fail_the_update(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("neupath.store.store.is_compaction_due", lambda _: True)
    with monkeypatch.context() as patched:
        patched.setattr("neupath.store.store.compact_database", interrupt)
        assert store.update(Update([NEW])).version == 1
    assert "its maintenance failed: interrupted" in caplog.text
    assert store.update(Update([NEW])).version == 2
    assert not store.check().problems


def test_a_store_that_cannot_be_compacted_still_takes_updates(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_module, "RETAINED", 0)

    def fail(*_: Any) -> None:
        raise WriteError("the disk is full")

    monkeypatch.setattr("neupath.store.store.compact_database", fail)
    with caplog.at_level(logging.WARNING):
        change = store.update(
            Update([Edge("writes", "Mike", p) for p in npth.load("toy").nodes["paper"].ids.to_pylist()])
        )
    assert change.version == 1
    assert "its maintenance failed: the disk is full" in caplog.text
    assert store.update(Update([NEW])).version == 2


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (Update(add_nodes=[Node("author", "\ud800")]), "cannot be the id of a author"),
        (Update([Edge("writes", "Mike", "Jim-SIGMOD-1", 1.7e308)] * 2), "would be inf"),
        (Update([Edge("writes", "\ud800", "Jim-SIGMOD-1")]), "no author with the id '\\\\ud800'"),
        (Update([Edge("writes", "Mike", "Jim-SIGMOD-1", None)]), "weight None is not allowed"),  # type: ignore[arg-type]
        (Update([Edge("writes", "Mike", "Jim-SIGMOD-1", 10**400)]), "is not allowed"),
        (Update(add_nodes=[Node("author", None)]), "None cannot be the id of a author"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.slow
def test_ids_and_weights_that_cannot_be_stored_are_refused(store: Store, update: Update, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        store.update(update)
    assert store.version == 0


def test_an_unexpected_error_fails_only_its_own_update(store: Store) -> None:
    good = Update([NEW])
    bad = Update(add_nodes=[Node("author", "Zoe", attributes=None)])  # type: ignore[arg-type]
    first, refused, last = store.update_many([good, bad, good])
    assert isinstance(refused, TypeError)
    assert [change.version for change in (first, last) if isinstance(change, Change)] == [1, 2]
    assert not store.check().problems


@pytest.mark.slow
def test_one_process_reads_and_writes_a_store_at_once(store: Store) -> None:
    edge, written = Update([NEW]), [0]
    done = threading.Event()

    def read() -> list[tuple[int, int]]:
        """Return what was written before each read, and the version it saw."""
        reads = []
        while not (done.is_set() and reads):
            before = written[-1]
            reads.append((before, store.facts().version))
        return reads

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for _ in range(8):
                written.append(store.update(edge).version)
                store.close()
        finally:
            done.set()
        for reads in (reader.result() for reader in readers):
            assert all(before <= seen <= 8 for before, seen in reads), "an acknowledged update was not seen"
            assert [seen for _, seen in reads] == sorted(seen for _, seen in reads), "a read went back in time"
    assert store.version == 8


def test_a_store_held_by_this_process_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neupath.store.database.PATIENCE", 0.1)
    with store:
        store.hold()
        with pytest.raises(SourceError, match="written to by this process"):
            npth.load(str(store.folder))
        with open_store(store.folder) as other, pytest.raises(SourceError, match="open for writing in this process"):
            other.update(Update([NEW]))


@pytest.mark.slow
def test_two_open_stores_write_in_turn(store: Store) -> None:
    def add(paper: str) -> None:
        with open_store(store.folder) as own:
            own.update(Update([Edge("writes", "Mike", paper)]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, npth.load("toy").nodes["paper"].ids.to_pylist()[-8:]))
    assert store.version == 8
    assert not store.check().problems
