"""Read .gdf files, the tables of nodes and edges that GUESS and Gephi write."""

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import neupath as npth


def read_gdf(path: Path) -> npth.HIN:
    """Read nodes (name, label, type) and edges (node1, node2, relation, weight); a node without a type is a "node".

    A line that does not fit the header above it, and an edge of an unknown node, is a ValueError, which `load` shows
    with the file and this package.
    """
    nodes: dict[str, dict[str, str]] = defaultdict(dict)
    type_of: dict[str, str] = {}
    edges: dict[tuple[str, str, str], list[tuple[str, str, float]]] = defaultdict(list)
    for line, kind, row in _rows(path):
        if kind == "nodedef":
            if row["name"] in type_of:
                raise ValueError(f"line {line}: a second node {row['name']!r}")
            node_type = type_of[row["name"]] = row.get("type") or "node"
            nodes[node_type][row["name"]] = row.get("label") or row["name"]
        else:
            ends = row["node1"], row["node2"]
            for end in ends:
                if end not in type_of:
                    raise ValueError(f"line {line}: no node {end!r}")
            key = type_of[ends[0]], row.get("relation") or "edge", type_of[ends[1]]
            edges[key].append((*ends, float(row.get("weight") or 1)))
    tables: dict[Any, Any] = dict(edges)
    for node_type, names in nodes.items():
        tables[node_type] = pa.table({"id": list(names), "name": list(names.values())})
    return npth.from_tables(tables)


def _rows(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Yield the number, the section and the columns of each line."""
    kind, columns = "", [""]
    with path.open(encoding="utf-8", newline="") as file:
        for line, cells in enumerate(csv.reader(file, quotechar="'", skipinitialspace=True), 1):
            if cells and cells[0].partition(">")[0] in ("nodedef", "edgedef"):
                kind, _, cells[0] = cells[0].partition(">")
                columns = [cell.split()[0].lower() for cell in cells]
                needed = ("name",) if kind == "nodedef" else ("node1", "node2")
                if missing := [column for column in needed if column not in columns]:
                    raise ValueError(f"line {line}: the {kind} has no column {missing[0]}")
            elif cells:
                if not kind or len(cells) != len(columns):
                    raise ValueError(f"line {line}: expected {len(columns)} columns as in its header, got {len(cells)}")
                yield line, kind, dict(zip(columns, cells, strict=True))
