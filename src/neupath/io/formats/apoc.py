"""Neo4j's apoc.export.csv: one CSV with the columns _id, _labels, … of nodes and _start, _end, _type, … of edges.

A row is a node or an edge, and has empty cells in the columns of the other. Several files may share the rows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from neupath.errors import SourceError
from neupath.graph.metapath import Relation
from neupath.io.columns import choose_columns
from neupath.io.formats.text import TextTable
from neupath.io.plan import EdgePlan, NodePlan, Plan, ReadOptions, Selection, SharedIds, existing
from neupath.io.tables import SAMPLE_ROWS, Report, Types, no_report, sample_of
from neupath.io.text_files import Dialect, open_raw
from neupath.io.words import NAMES

_OF_NODES, _OF_EDGES = ("_id", "_labels"), ("_start", "_end", "_type")
KEYS = (_OF_NODES[0], _OF_EDGES[0])
_NAME = "_name"
"""The first name of a node: nodes of one type have a `name`, and others a `title`."""


def keys_of(path: Path) -> set[str]:
    """Return the keys of what a file has by its first line: nodes, edges, both or, if it is no export, neither."""
    try:
        with open_raw(path) as stream:
            words = re.findall(r"\w+", stream.readline(1 << 16).decode(errors="replace"))
    except (OSError, SourceError, EOFError):
        return set()
    return {columns[0] for columns in (_OF_NODES, _OF_EDGES) if {*columns} <= {*words}}


def read_exports(paths: Sequence[Path], options: ReadOptions) -> Plan:
    """Return the nodes and edges of one or more files."""
    nodes = [_ExportTable(path, KEYS[0]) for path in paths if KEYS[0] in keys_of(path)]
    edges = [_ExportTable(path, KEYS[1]) for path in paths if KEYS[1] in keys_of(path)]
    notes = [note for e in edges for note in choose_columns(e, _OF_EDGES, _weight(e)).notes(e.label)]
    if any(";" in labels for table in nodes for labels in table.sample["_labels"]):
        notes.append("of several labels of a node, the first that is not a general class was read as its type")

    def clean(selection: Selection) -> Selection:
        return replace(selection, missing_ids=options.missing_ids or (), fold_ids=bool(options.fold_ids))

    return Plan(
        [NodePlan("node", clean(_select_nodes(table))) for table in nodes],
        [EdgePlan(Relation("node", "edge", "node"), clean(_select_edges(table))) for table in edges],
        replace(options, notes=[*notes, *options.notes]),
        SharedIds("node", labels=";"),
    )


def _select_nodes(table: "_ExportTable") -> Selection:
    first = table.names[0] if table.names else None
    attributes = [column for column in table.columns if column not in (*_OF_NODES, first)]
    return Selection(table, existing(id="_id", type="_labels", name=_NAME if table.names else None), attributes)


def _select_edges(table: "_ExportTable") -> Selection:
    weight = _weight(table)
    chosen = choose_columns(table, _OF_EDGES, weight)
    columns = existing(source="_start", relation="_type", target="_end", weight=weight)
    return Selection(table, columns, chosen.columns, kinds=chosen.kinds)


def _weight(table: TextTable) -> str | None:
    return next((column for column in table.columns if column.lower() == "weight"), None)


class _ExportTable(TextTable):
    """The nodes of a file, or its edges: the rows with a value of `key`, and the columns from there on."""

    def __init__(self, path: Path, key: str) -> None:
        super().__init__(path, path.name.partition(".")[0], Dialect(header=True))
        self._key = key

    @cached_property
    def _written_columns(self) -> list[str]:
        """The names of all columns; those of the other kind of rows, which may have the same names, get others."""
        written = [name.strip() for name in self._first_rows[0]]
        start = written.index(_OF_EDGES[0]) if _OF_EDGES[0] in written else len(written)
        is_own = [(at < start) == (self._key == _OF_NODES[0]) for at in range(len(written))]
        return self._checked(
            [name if own else f"{at}:" for at, (name, own) in enumerate(zip(written, is_own, strict=True))]
        )

    @cached_property
    def columns(self) -> list[str]:
        return [name for at, name in enumerate(self._written_columns) if name != f"{at}:"]

    @cached_property
    def names(self) -> list[str]:
        """The columns that hold names, the best first."""
        return [column for word in NAMES for column in self.columns if column.lower() == word]

    @cached_property
    def sample(self) -> Mapping[str, Sequence[str]]:
        found, count = [], 0
        for batch in self.batches(self.columns, dict.fromkeys(self.columns, pa.string())):
            found.append(batch)
            count += len(batch)
            if count >= SAMPLE_ROWS:
                break
        return sample_of(pa.concat_tables(found).slice(0, SAMPLE_ROWS), self.columns)

    def read(self, columns: Sequence[str], types: Types) -> pa.Table:
        return self._own(super().read(self._needed(columns), self._all_types(types)), columns)

    def batches(self, columns: Sequence[str], types: Types, report: Report = no_report) -> Iterator[pa.Table]:
        for batch in super().batches(self._needed(columns), self._all_types(types), report):
            yield self._own(batch, columns)

    def place(self, row: int) -> str:
        at = self._written_columns.index(self._key)
        lines = (line for line, cells in self._records() if len(cells) > at and cells[at])
        return f"{self.path}, line {next(islice(lines, row + 1, None), '?')}"

    def _needed(self, columns: Sequence[str]) -> list[str]:
        names = self.names if _NAME in columns else []
        return list(dict.fromkeys([self._key, *(column for column in columns if column != _NAME), *names]))

    def _all_types(self, types: Types) -> dict[str, pa.DataType]:
        return {**types, **dict.fromkeys([self._key, *self.names], pa.string())}

    def _own(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return the columns of the rows that are nodes, or edges, with plain labels."""
        rows = table.filter(pc.not_equal(table[self._key], ""))
        own = {}
        for column in dict.fromkeys(columns):
            if column == _NAME:
                own[column] = reduce(_first_filled, (rows[name] for name in self.names))
            elif column == "_labels":  # :Person:Actor
                labels = pc.replace_substring(pc.utf8_ltrim(rows[column], ":"), ":", ";")
                own[column] = pc.if_else(pc.equal(labels, ""), "node", labels)
            else:
                own[column] = rows[column]
        return pa.table(own)


def _first_filled(texts: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(texts, ""), others, texts)
