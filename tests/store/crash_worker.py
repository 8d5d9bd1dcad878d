"""A process that works on a store until it is killed: `python -m tests.store.crash_worker VERB STORE`.

The verbs are import, update, compact and group. It prints what was acknowledged, which must survive the kill.
"""

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa

from neupath import HIN
from neupath.errors import GraphError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io import import_store, write_folder
from neupath.store import Edge, Node, Store, Update, open_store

SIZE = 400
WRITERS = 6


def graph(edges: int) -> HIN:
    """Make a seeded graph of two types, whose edges have attributes."""
    rng = np.random.default_rng(0)
    nodes = [Nodes(name, pa.array([f"{name}{i}" for i in range(SIZE)])) for name in ("a", "b")]
    ends = rng.integers(0, SIZE, (2, edges))
    known = pa.table({"version": np.zeros(edges, dtype=np.int64), "word": [f"word {i % 9}" for i in range(edges)]})
    return HIN.build(nodes, [Edges(Relation("a", "r", "b"), ends[0], ends[1], None, known)])


def update_to(version: int) -> Update:
    """Return the update to a version: it adds a node with three edges; an even one also removes the node before."""
    new = f"new{version}"
    known = {"version": version, "word": new}
    edges = [Edge("r", new, f"b{(version * 7 + i) % SIZE}", float(version), known) for i in range(3)]
    before = f"new{version - 1}"
    gone = [Edge("r", before, f"b{((version - 1) * 7 + i) % SIZE}") for i in range(3)] if version % 2 == 0 else []
    dead = [Node("a", before)] if version % 2 == 0 else []
    return Update(edges, gone, [Node("a", new)], dead)


def own_update(name: str) -> Update:
    """Return an update that no other depends on: a new node with three edges."""
    return Update([Edge("r", name, f"b{i}") for i in range(3)], add_nodes=[Node("a", name)])


def write_together(store: Store) -> None:
    """Write from several threads, so that updates share commits; every fifth update is refused."""
    start = store.version

    def write(writer: int) -> None:
        for number in range(10**9):
            name = f"g{start}-{writer}-{number}"
            good = own_update(name)
            if number % 5 == 4:
                try:
                    store.update(Update([*good.add_edges, Edge("r", name, "nobody")], add_nodes=good.add_nodes))
                except GraphError:
                    continue
            store.update(good)
            os.write(1, f"{name}\n".encode())

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()


def work(verb: str, folder: Path) -> None:
    """Do one kind of work until the process is killed."""
    if verb == "import":
        tables = write_folder(graph(100_000), folder / ".tables")
        for number in range(10**6):
            import_store(tables, folder / f"s{number}", memory_limit="200MiB")
            print(number, flush=True)
    with open_store(folder) as store:
        print("ready", flush=True)
        if verb == "group":
            write_together(store)
            threading.Event().wait()
        for version in range(store.version + 1, 10**9):
            print(store.update(update_to(version)).version, flush=True)
            if verb == "compact" and version % 3 == 0:  # so that compaction merges more than the last snapshot has
                store.compact(retained=1)


if __name__ == "__main__":
    work(sys.argv[1], Path(sys.argv[2]))
