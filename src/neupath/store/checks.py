"""Check a store: counts, checksums, ends of edges, and snapshots against the database."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neupath.errors import NeuPathError
from neupath.graph.hin import digest
from neupath.store import database, snapshots
from neupath.store.database import StoreLayout, VersionFacts, check_marker, read_facts, read_layout, reading, run
from neupath.store.snapshots import Snapshot
from neupath.store.versions import rebuild_unchecked, to_hin, wrong_sums


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


def check(folder: str | Path, *, accept_loss: bool = False) -> CheckReport:
    """Read all of a store and compare it with the counts and checksums written with each update.

    Parameters
    ----------
    folder
        The folder of the store.
    accept_loss
        Go on with what is left of a store that lost updates, or whose log is damaged; other stores stay as they are.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> from neupath.store import write_store
    >>> with TemporaryDirectory() as parent:
    ...     check(write_store(load("toy"), parent + "/store")).problems
    ()
    """
    path = Path(folder)
    check_marker(path)
    if accept_loss:
        database.accept_loss(path)
    with reading(path) as connection:
        layout, facts = read_layout(connection), read_facts(connection)
        ((oldest,),) = run(connection, "SELECT min(version) FROM versions")
        state = rebuild_unchecked(connection, layout, facts.version)
        problems = [
            *_wrong_versions(connection, layout, facts),
            *wrong_sums(connection, layout, facts, state),
            *_dangling(layout, state),
            *_wrong_snapshots(connection, layout, facts.version, path),
        ]
    return CheckReport(facts.version, oldest, facts.nodes, facts.edges, tuple(problems))


def _wrong_versions(connection: Any, layout: StoreLayout, facts: VersionFacts) -> list[str]:
    versions = [version for (version,) in run(connection, "SELECT version FROM versions ORDER BY version")]
    if versions != list(range(layout.base_version, facts.version + 1)):
        return [f"versions {layout.base_version} to {facts.version} should be there, and {len(versions):,} are"]
    ((strays,),) = run(connection, "SELECT count(*) FROM changes WHERE version NOT IN (SELECT version FROM versions)")
    return [f"{strays:,} changes belong to no version"] if strays else []


def _dangling(layout: StoreLayout, state: Snapshot) -> list[str]:
    """List the relations with edges to nodes that are gone."""
    gone = {
        node_type: state.nodes[number]["died"].is_valid().to_numpy()
        for number, node_type in enumerate(layout.schema.node_types)
    }
    problems = []
    for number, relation in enumerate(layout.schema.relations):
        matrix = state.matrices[number]
        at_source = int(np.diff(matrix.indptr)[gone[relation.source]].sum())
        dangling = at_source + int(np.count_nonzero(gone[relation.target][matrix.indices]))
        if dangling:
            problems.append(f"{dangling:,} ends of edges of '{relation}' are nodes that are not there")
    return problems


def _wrong_snapshots(connection: Any, layout: StoreLayout, newest: int, folder: Path) -> list[str]:
    problems = []
    for version, path in snapshots.snapshots_of(folder).items():
        if version < layout.base_version:  # a killed compaction left it; nobody reads it
            continue
        if version > newest:
            problems.append(f"{path.name} is newer than the database; delete it, the store does without")
            continue
        try:
            snapshot = snapshots.map_snapshot(path, layout, read_facts(connection, version), verify=True)
            if digest(to_hin(layout, snapshot)) != digest(
                to_hin(layout, rebuild_unchecked(connection, layout, version))
            ):
                problems.append(f"{path.name} differs from the database; delete it, the store does without")
        except NeuPathError as error:
            problems.append(f"{error}; the next reading or update rebuilds it")
    return problems
