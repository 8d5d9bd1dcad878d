"""Writing a graph as a new store: under a temporary name, so that a store is there whole or not at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.errors import WriteError, first_line
from neupath.files import write_whole_folder
from neupath.graph import HIN
from neupath.headway import Progress, silent
from neupath.store.database import Layout, VersionFacts, create_tables, duckdb, run, run_on, write_facts
from neupath.store.layout import DATABASE, sync, write_marker
from neupath.store.matrices import once
from neupath.store.reading import node_columns
from neupath.store.snapshots import Snapshot, write_snapshot
from neupath.store.sums import add, edge_sum, node_sum


def write_store(hin: HIN, path: str | Path, progress: Progress = silent) -> Path:
    """Write a graph as a store of version 0; the folder appears whole or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> with TemporaryDirectory() as parent:
    ...     load(write_store(load("toy"), parent + "/store")).num_nodes("author")
    5
    """
    return write_new(Path(path), lambda temporary: _fill(hin, temporary, progress))


def write_new(target: Path, fill: Callable[[Path], object]) -> Path:
    """Let `fill` write a store into a temporary folder, then give it its name."""
    if target.exists():
        raise WriteError(f"{target} exists already; give a new folder, or remove it first")
    library = duckdb()
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        write_whole_folder(target, fill)
    except library.Error as error:
        raise WriteError(f"cannot write {target}: {first_line(error)}") from error
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror or error}") from error
    sync(target.absolute().parent)
    return target


def _fill(hin: HIN, folder: Path, progress: Progress) -> None:
    tables = [node_table(nodes.ids, nodes.names, nodes.attributes) for nodes in hin.nodes.values()]
    connection = duckdb().connect(str(folder / DATABASE))
    try:
        run(connection, "SET enable_progress_bar = false")
        run(connection, "BEGIN TRANSACTION")
        create_tables(connection, _layout(hin))
        write_facts(connection, _insert(connection, hin, tables, progress))
        run(connection, "COMMIT")
        run(connection, "CHECKPOINT")
    finally:
        connection.close()
    write_snapshot(folder, Snapshot(0, tuple(hin.matrices[r] for r in hin.schema.relations), tuple(tables)))
    write_marker(folder)


def _insert(connection: Any, hin: HIN, tables: list[pa.Table], progress: Progress) -> VersionFacts:
    nodes, total = 0, 0
    for number in progress(range(len(tables)), "nodes"):
        run_on(connection, tables[number], f"CREATE TABLE nodes_{number} AS SELECT * FROM given")  # noqa: S608
        nodes += node_sum(connection, number, "true", [])
    count = 0
    for number in progress(range(len(hin.schema.relations)), "edges"):
        relation = hin.schema.relations[number]
        sources, targets, weights = once(hin.matrices[relation], relation.directed)
        given = pa.table({"source": sources, "target": targets, "weight": weights})
        run_on(connection, given, f"CREATE TABLE edges_{number} AS SELECT * FROM given")  # noqa: S608
        count += len(sources)
        total = add(total, edge_sum(number, sources, targets, weights))
    return VersionFacts(0, sum(map(len, tables)), count, nodes, total)


def _layout(hin: HIN) -> Layout:
    return Layout(
        hin.schema,
        tuple(nodes.names is not None for nodes in hin.nodes.values()),
        tuple(nodes.attributes.schema for nodes in hin.nodes.values()),
        hin.notes,
    )


def node_table(ids: pa.Array, names: pa.Array | None, attributes: pa.Table, first: int = 0) -> pa.Table:
    """Return nodes of a type as their table in the database has them, with keys from `first` on."""
    count = len(ids)
    columns = {
        "key": pa.array(np.arange(first, first + count)),
        "born": pa.array(np.zeros(count, dtype=np.int64)),
        "died": pa.nulls(count, pa.int64()),
        "id": ids,
        "name": pa.nulls(count, pa.string()) if names is None else names.cast(pa.string()),
    }
    columns_of_attributes = (attributes[name] for name in attributes.column_names)
    return pa.table(columns | dict(zip(node_columns(attributes.num_columns), columns_of_attributes, strict=True)))
