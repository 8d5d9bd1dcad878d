"""Checking a store: its sums, counts and ends, and that every snapshot is what the database gives."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neupath.errors import NeuPathError
from neupath.graph.hin import digest
from neupath.store.database import StoreLayout, VersionFacts, check_marker, read_facts, read_layout, reading, run
from neupath.store.edge_matrices import add, edge_sum, node_sum, once
from neupath.store.snapshots import Snapshot, damaged_files, read_snapshot, versions_of
from neupath.store.versions import rebuild, to_hin


@dataclass(frozen=True)
class Checked:
    """What a check found: nothing wrong where `problems` is empty."""

    version: int
    oldest: int
    nodes: int
    edges: int
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Return what `check --json` prints."""
        return asdict(self)


def check(folder: str | Path) -> Checked:
    """Read all of a store and compare it with what was written down when it changed.

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
    return Checked(facts.version, oldest, facts.nodes, facts.edges, tuple(problems))


def _wrong_versions(connection: Any, layout: StoreLayout, facts: VersionFacts) -> list[str]:
    found = [version for (version,) in run(connection, "SELECT version FROM versions ORDER BY version")]
    if found != list(range(layout.folded, facts.version + 1)):
        return [f"versions {layout.folded} to {facts.version} should be there, and {len(found):,} are"]
    query = "SELECT count(*) FROM changes WHERE version NOT IN (SELECT version FROM versions)"
    ((strays,),) = run(connection, query)
    return [f"{strays:,} changes belong to no version"] if strays else []


def _wrong_sums(connection: Any, layout: StoreLayout, facts: VersionFacts, state: Snapshot) -> list[str]:
    problems = []
    edges, total = 0, 0
    for number, relation in enumerate(layout.schema.relations):
        listed = once(state.matrices[number], relation.directed)
        edges, total = edges + len(listed[0]), add(total, edge_sum(number, *listed))
    if edges != facts.edges:
        problems.append(f"there are {edges:,} edges where {facts.edges:,} were counted")
    if total != facts.edge_sum:
        problems.append("the checksum of the edges is not the one that was written down")
    types = range(len(layout.schema.node_types))
    nodes = sum(table["died"].null_count for table in state.nodes)
    if nodes != facts.nodes:
        problems.append(f"there are {nodes:,} nodes where {facts.nodes:,} were counted")
    if sum(node_sum(connection, number, "died IS NULL", []) for number in types) != facts.node_sum:
        problems.append("the checksum of the nodes is not the one that was written down")
    return problems


def _dangling(layout: StoreLayout, state: Snapshot) -> list[str]:
    """List the relations with edges to nodes that are gone."""
    gone = {
        node_type: table["died"].is_valid().to_numpy()
        for node_type, table in zip(layout.schema.node_types, state.nodes, strict=True)
    }
    problems = []
    for number, relation in enumerate(layout.schema.relations):
        matrix = state.matrices[number]
        at_source = int(np.diff(matrix.indptr)[gone[relation.source]].sum())
        dangling = at_source + int(np.count_nonzero(gone[relation.target][matrix.indices]))
        if dangling:
            problems.append(f"{dangling:,} ends of edges of '{relation}' are nodes that are not there")
    return problems


def _wrong_snapshots(connection: Any, layout: StoreLayout, folder: Path) -> list[str]:
    problems = []
    for version, path in versions_of(folder).items():
        try:
            damaged = damaged_files(path)
            if damaged:
                problems.append(f"{path.name} is damaged ({damaged[0]}); delete it, the store does without")
            elif version >= layout.folded:
                kept, made = read_snapshot(path), rebuild(connection, layout, version)
                if digest(to_hin(layout, kept)) != digest(to_hin(layout, made)):
                    problems.append(f"{path.name} is not what the database gives; delete it, the store does without")
        except (OSError, ValueError, KeyError, NeuPathError) as error:
            problems.append(f"{path.name} cannot be read ({error!r}); delete it, the store does without")
    return problems
