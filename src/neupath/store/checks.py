"""Check a store: counts, checksums, ends of edges, and snapshots against the database."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neupath.errors import NeuPathError
from neupath.graph.hin import digest
from neupath.store import snapshots
from neupath.store.database import StoreLayout, VersionFacts, check_marker, read_facts, read_layout, reading, run
from neupath.store.snapshots import Snapshot, edge_checksum, edges_of, node_checksum
from neupath.store.versions import rebuild, to_hin


@dataclass(frozen=True)
class CheckReport:
    """The newest and oldest version of a store, its counts, and its problems; a sound store has none."""

    version: int
    oldest: int
    nodes: int
    edges: int
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def check(folder: str | Path) -> CheckReport:
    """Read all of a store and compare it with the counts and checksums written with each update.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> from neupath.store import write_store
    >>> with TemporaryDirectory() as parent:
    ...     check(write_store(load("toy"), parent + "/store")).problems
    ()
    """
    path = Path(folder)
    check_marker(path)
    with reading(path) as connection:
        layout, facts = read_layout(connection), read_facts(connection)
        ((oldest,),) = run(connection, "SELECT min(version) FROM versions")
        state = rebuild(connection, layout, facts.version)
        problems = [
            *_wrong_versions(connection, layout, facts),
            *_wrong_sums(connection, layout, facts, state),
            *_dangling(layout, state),
            *_wrong_snapshots(connection, layout, path),
        ]
    return CheckReport(facts.version, oldest, facts.nodes, facts.edges, tuple(problems))


def _wrong_versions(connection: Any, layout: StoreLayout, facts: VersionFacts) -> list[str]:
    versions = [version for (version,) in run(connection, "SELECT version FROM versions ORDER BY version")]
    if versions != list(range(layout.base_version, facts.version + 1)):
        return [f"versions {layout.base_version} to {facts.version} should be there, and {len(versions):,} are"]
    ((strays,),) = run(connection, "SELECT count(*) FROM changes WHERE version NOT IN (SELECT version FROM versions)")
    return [f"{strays:,} changes belong to no version"] if strays else []


def _wrong_sums(connection: Any, layout: StoreLayout, facts: VersionFacts, state: Snapshot) -> list[str]:
    problems, edges, total = [], 0, 0
    for number, relation in enumerate(layout.schema.relations):
        listed = edges_of(state.matrices[number], relation.directed)
        edges += len(listed[0])
        total = snapshots.add_checksums(total, edge_checksum(number, *listed))
    if edges != facts.edges:
        problems.append(f"there are {edges:,} edges where {facts.edges:,} were counted")
    if total != facts.edge_checksum:
        problems.append("the checksum of the edges differs from the one written with them")
    types = range(len(layout.schema.node_types))
    nodes = sum(table["died"].null_count for table in state.nodes)
    if nodes != facts.nodes:
        problems.append(f"there are {nodes:,} nodes where {facts.nodes:,} were counted")
    if sum(node_checksum(connection, number, "died IS NULL", []) for number in types) != facts.node_checksum:
        problems.append("the checksum of the nodes differs from the one written with them")
    return problems


def _dangling(layout: StoreLayout, state: Snapshot) -> list[str]:
    """List the relations with edges to nodes that are gone."""
    gone = {
        node_type: table["died"].is_valid().to_numpy()
        for node_type, table in zip(layout.schema.node_types, state.nodes, strict=True)
    }
    problems = []
    for relation, matrix in zip(layout.schema.relations, state.matrices, strict=True):
        at_source = int(np.diff(matrix.indptr)[gone[relation.source]].sum())
        dangling = at_source + int(np.count_nonzero(gone[relation.target][matrix.indices]))
        if dangling:
            problems.append(f"{dangling:,} ends of edges of '{relation}' are nodes that are not there")
    return problems


def _wrong_snapshots(connection: Any, layout: StoreLayout, folder: Path) -> list[str]:
    problems = []
    for version, path in snapshots.snapshots_of(folder).items():
        try:
            damaged = snapshots.damaged_files(path)
            if damaged:
                problems.append(f"{path.name} is damaged ({damaged[0]}); delete it, the store does without")
            elif version >= layout.base_version:
                snapshot, expected = snapshots.read_snapshot(path), rebuild(connection, layout, version)
                if digest(to_hin(layout, snapshot)) != digest(to_hin(layout, expected)):
                    problems.append(f"{path.name} differs from the database; delete it, the store does without")
        except (OSError, ValueError, KeyError, NeuPathError) as error:
            problems.append(f"{path.name} cannot be read ({error!r}); delete it, the store does without")
    return problems
