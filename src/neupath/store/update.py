"""Drafts: a batch as the rows that will be written for it, with nothing of it unchecked."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from neupath.errors import SourceError, listed
from neupath.graph.hin import Floats
from neupath.graph.nodes import Id, Rows
from neupath.store.database import VersionFacts

# ---- Batch


_EDGE_COLUMNS, _NODE_COLUMNS = ("relation", "source", "target"), ("type", "id")


@dataclass(frozen=True)
class EdgeLine:
    """One edge by the ids of its ends; the relation by its name, or as `author -writes-> paper` where names repeat."""

    relation: str
    source: Id
    target: Id
    weight: float = 1.0
    place: str = ""
    """Where it was read, for errors."""


@dataclass(frozen=True)
class NodeLine:
    """One node by type and id, with its name and attributes where it is new."""

    node_type: str
    id: Id
    name: str | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    place: str = ""


@dataclass(frozen=True)
class Batch:
    """What changes in one step: edges and then nodes go, nodes and then edges come.

    An edge that is there already gets heavier by the weight that is added, as parallel edges do. An edge that is both
    removed and added has the new weight.
    """

    add_edges: Sequence[EdgeLine] = ()
    remove_edges: Sequence[EdgeLine] = ()
    add_nodes: Sequence[NodeLine] = ()
    remove_nodes: Sequence[NodeLine] = ()

    def __len__(self) -> int:
        return len(self.add_edges) + len(self.remove_edges) + len(self.add_nodes) + len(self.remove_nodes)


def read_batch(add: Sequence[str | Path] = (), remove: Sequence[str | Path] = ()) -> Batch:
    """Read tables of what to add and what to remove.

    A CSV or TSV file has the columns relation, source, target and perhaps weight, or type, id and perhaps name and
    attributes.
    """
    added = [line for path in add for line in _read_lines(Path(path))]
    removed = [line for path in remove for line in _read_lines(Path(path))]
    return Batch(
        [line for line in added if isinstance(line, EdgeLine)],
        [line for line in removed if isinstance(line, EdgeLine)],
        [line for line in added if isinstance(line, NodeLine)],
        [line for line in removed if isinstance(line, NodeLine)],
    )


def _read_lines(path: Path) -> Iterator[EdgeLine | NodeLine]:
    begins = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
            reader = csv.DictReader(stream, strict=True, delimiter=delimiter)
            columns = list(reader.fieldnames or ())
            if not (set(_EDGE_COLUMNS) <= set(columns) or set(_NODE_COLUMNS) <= set(columns)):
                raise SourceError(
                    f"{path} has the columns {listed(columns) or 'none'}; a table of edges has relation, source, "
                    f"target and perhaps weight, one of nodes type, id and perhaps name"
                )
            edges = set(_EDGE_COLUMNS) <= set(columns)
            _refuse_strange(path, columns, edges)
            for row in reader:
                place = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    raise SourceError(f"{place}: it has not the {len(columns)} columns of the header")
                yield _edge(row, place) if edges else _node(row, place)
                begins = reader.line_num + 1
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except csv.Error as error:
        raise SourceError(f"{path}, line {begins}: {error}; check the quotes there") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error


def _refuse_strange(path: Path, columns: Sequence[str], edges: bool) -> None:
    """Refuse columns that nobody would read: a weight that is misspelt would be 1."""
    strange = [name for name in columns if name not in (*_EDGE_COLUMNS, "weight")] if edges else []
    repeated = [name for name in columns if columns.count(name) > 1]
    if strange or repeated:
        raise SourceError(
            f"{path} has the columns {listed(columns)}; {listed(repeated[:1] or strange)} "
            f"{'is there twice' if repeated else 'is none of a table of edges (relation, source, target, weight)'}"
        )


def _edge(row: Mapping[str, str], place: str) -> EdgeLine:
    text = row.get("weight", "1") or "1"
    try:
        weight: Any = text if "_" in text else float(text)
    except ValueError:
        weight = text  # refused with the other bad lines of the batch
    return EdgeLine(row["relation"], row["source"], row["target"], weight, place)


def _node(row: Mapping[str, str], place: str) -> NodeLine:
    others = {name: text for name, text in row.items() if name not in ("type", "id", "name") and text != ""}
    return NodeLine(row["type"], row["id"], row.get("name") or None, others, place)


# ---- Drafts


Pair = tuple[int, int]


@dataclass(frozen=True)
class EdgeChange:
    """What became of some edges of one relation: keys of their ends, and weights before and after (0: not there)."""

    sources: Rows
    targets: Rows
    before: Floats
    after: Floats


@dataclass(frozen=True)
class Draft:
    """One version to be: its facts, changed edges by relation, new rows and keys that go by node type."""

    facts: VersionFacts
    edges: Mapping[int, EdgeChange]
    born: Mapping[int, pa.Table]
    dead: Mapping[int, list[int]]
