"""Single edges of a live graph, whose relations have attributes: those of a version, and those of a changed pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from neupath.engine.scorer import RowChange
from neupath.graph.edges import Edges, EdgeTables
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Rows
from neupath.store.database import edge_row_table, edges_of_rows
from neupath.store.versions import Pair, RowsChange, SingleEdges

EdgeLog = Sequence[tuple[Relation, RowsChange]]
"""The changed single edges of all relations in order; their ends are rows of the graph in memory."""


@dataclass(frozen=True)
class LiveChange(RowChange):
    """A change by rows with the single edges that end and that come, of the relations that have attributes."""

    edge_rows: Mapping[Relation, RowsChange] = field(default_factory=dict)


class LiveEdgeTables(EdgeTables):
    """The single edges of a base with the first `length` changes of a log that only grows, made on first use."""

    def __init__(self, base: Mapping[Relation, Edges], log: EdgeLog, length: int) -> None:
        schemas = {relation: EdgeTables.schema_of(base, relation) for relation in base}  # changes bring no others
        super().__init__(schemas, partial(_edges_after, base, log, length))
        self.base, self._log, self._length = base, log, length

    def fresh(self) -> "LiveEdgeTables":
        """Return a copy without the tables that are made."""
        return LiveEdgeTables(self.base, self._log, self._length)


def _edges_after(base: Mapping[Relation, Edges], log: EdgeLog, length: int, relation: Relation) -> Edges:
    """Return the edges of a relation after some changes: removing a pair ends all its edges that came before."""
    changes = [change for changed, change in log[:length] if changed == relation]
    return _changed(base[relation], changes)


def _changed(base: Edges, changes: Sequence[RowsChange]) -> Edges:
    if not changes:
        return base
    tables = [edge_row_table(base), *(change.added for change in changes)]
    rows = pa.concat_tables(tables).unify_dictionaries()
    came = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    removed = pa.concat_tables([change.removed.select(["source", "target"]) for change in changes])
    ended = np.repeat(np.arange(1, len(tables)), [len(change.removed) for change in changes])
    ends = [table[name].to_numpy() for table in (rows, removed) for name in ("source", "target")]
    width = 1 + max(int(each.max(initial=0)) for each in ends)
    pairs, gone = (_pair_numbers(table, base.relation.directed, width) for table in (rows, removed))
    if len(gone):
        distinct, first = np.unique(gone[::-1], return_index=True)
        last_ended = ended[::-1][first]  # the last change that removed each pair
        at = np.searchsorted(distinct, pairs).clip(max=len(distinct) - 1)
        kept = (distinct[at] != pairs) | (came >= last_ended[at])
        rows = rows.filter(pa.array(kept))
    return edges_of_rows(base.relation, rows, base.attributes.column_names)


def _pair_numbers(rows: pa.Table, directed: bool, width: int) -> Rows:
    """Return a number for the pair that each edge joins; rows of nodes are less than `width`."""
    sources, targets = rows["source"].to_numpy(), rows["target"].to_numpy()
    ends = (sources, targets) if directed else (np.minimum(sources, targets), np.maximum(sources, targets))
    numbers: Rows = ends[0] * width + ends[1]
    return numbers


class NewestEdges:
    """The single edges of the newest version by pair; those of a relation are sorted when a pair is looked up first."""

    def __init__(self, base: Mapping[Relation, Edges], log: EdgeLog) -> None:
        self._base, self._log = base, log
        self._by_relation: dict[Relation, SingleEdges] = {}

    def __contains__(self, relation: object) -> bool:
        return relation in self._base

    def keep(self, base: Mapping[Relation, Edges]) -> None:
        """Forget the relations that are not among these."""
        self._base = base

    def advance(self, relation: Relation, change: RowsChange) -> None:
        """Follow a change, which is in the log already."""
        if relation in self._by_relation:
            self._by_relation[relation].advance(change)

    def between(self, relation: Relation, pairs: Sequence[Pair]) -> Edges:
        """Return the single edges that join some pairs of rows, in the order in which they came.

        A pair of an undirected relation has its smaller row first.
        """
        base = self._base[relation]
        if relation not in self._by_relation:
            single = SingleEdges(edge_row_table(base), relation)
            for changed, change in self._log:
                if changed == relation:
                    single.advance(change)
            self._by_relation[relation] = single
        return edges_of_rows(relation, self._by_relation[relation].at(pairs), base.attributes.column_names)
