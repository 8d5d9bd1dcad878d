"""Folding: the changes that have grown many become part of the tables of edges, and a new snapshot is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from neupath.store.database import (
    Layout,
    read_facts,
    read_layout,
    run,
    run_on,
    telling_writes,
    transaction,
    write_layout,
)
from neupath.store.matrices import once
from neupath.store.reading import rebuild
from neupath.store.snapshots import Snapshot, write_snapshot
from neupath.store.standing import Standing

RETAINED = 1000
"""Versions before the last one that can still be read."""
_SHARE = 0.2
"""Changes for each edge from which a snapshot is written anew: replaying them takes as long as reading one."""


def is_due(standing: Standing) -> bool:
    """Whether so much has changed since the edges were folded that opening the store gets slow."""
    is_much = standing.changes > max(_SHARE * standing.facts.edges, RETAINED)
    return is_much and standing.facts.version - standing.layout.folded > 2 * RETAINED  # so that many are folded at once


def fold(connection: Any, folder: Path, retained: int = RETAINED) -> None:
    """Fold what is older than the retained versions, in one transaction, and write a snapshot of the last version."""
    with transaction(connection, folder):
        layout, last = read_layout(connection), read_facts(connection).version
        until = max(layout.folded, last - retained)
        if until > layout.folded:
            _replace_edges(connection, layout, rebuild(connection, layout, until))
            run(connection, "DELETE FROM changes WHERE version <= ?", [until])
            run(connection, "DELETE FROM versions WHERE version < ?", [until])
            write_layout(connection, replace(layout, folded=until))
    with telling_writes(folder):  # whatever fails here, the store does with the snapshot it has, or without
        run(connection, "CHECKPOINT")
        write_snapshot(folder, rebuild(connection, read_layout(connection), last))


def _replace_edges(connection: Any, layout: Layout, state: Snapshot) -> None:
    for number, relation in enumerate(layout.schema.relations):
        sources, targets, weights = once(state.matrices[number], relation.directed)
        given = pa.table({"source": sources, "target": targets, "weight": weights})
        run_on(connection, given, f"CREATE OR REPLACE TABLE edges_{number} AS SELECT * FROM given")  # noqa: S608
