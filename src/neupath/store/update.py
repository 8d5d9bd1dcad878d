"""An update of a graph: its edges and nodes by id, and the tables it is read from.

An update takes three shapes on its way to a search:

1. `Update`, with `Edge` and `Node`: ids, as the user gives them. The service validates its JSON straight into it.
2. `Change` (store/versions.py): checked, by keys. The database writes it, and followers receive it.
3. `RowChange` (engine/scorer.py): by rows of the graph in memory, which the live graph applies.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neupath._runtime.files import bounded_lines
from neupath.errors import SourceError, listed
from neupath.graph.nodes import Id

_EDGE_COLUMNS, _NODE_COLUMNS = ("relation", "source", "target"), ("type", "id")


@dataclass(frozen=True)
class Edge:
    """One edge by the ids of its ends.

    Parameters
    ----------
    relation : the name of its relation, or `author -writes-> paper` where names repeat.
    source, target : ids of the two nodes.
    weight : a finite number above 0; ignored where the edge is removed.
    attributes : what else is known of it; ignored where the edge is removed.

    >>> Edge("writes", "Mike", "paper 7").weight
    1.0
    """

    relation: str
    source: Id
    target: Id
    weight: float = 1.0
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """One node by type and id; its name and attributes matter only where it is added.

    >>> Node("author", "Zoe").attributes
    {}
    """

    node_type: str
    id: Id
    name: str | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """What changes in one step: edges, then nodes are removed; nodes, then edges are added.

    Adding an edge that exists adds to its weight; one that is both removed and added gets the new weight. Where edges
    of a relation have attributes, each added edge is kept with its own, and removing a pair removes all its edges.

    Parameters
    ----------
    add_edges, remove_edges : edges by id.
    add_nodes, remove_nodes : nodes by id; a node that still has edges cannot be removed.
    places : by field, where each of its lines was read, for errors; positions such as add_edges[3] by default.

    >>> len(Update(add_edges=[Edge("writes", "Zoe", "paper 7")], add_nodes=[Node("author", "Zoe")]))
    2
    """

    add_edges: Sequence[Edge] = ()
    remove_edges: Sequence[Edge] = ()
    add_nodes: Sequence[Node] = ()
    remove_nodes: Sequence[Node] = ()
    places: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.add_edges) + len(self.remove_edges) + len(self.add_nodes) + len(self.remove_nodes)

    def located(self, field_name: str) -> Iterator[tuple[str, Any]]:
        """Yield the edges or nodes of a field, each after its place."""
        places = self.places.get(field_name)
        for number, line in enumerate(getattr(self, field_name)):
            yield places[number] if places else f"{field_name}[{number}]", line


# ---- Reading tables ------------------------------------------------------------------------------
def read_update(add: Sequence[str | Path] = (), remove: Sequence[str | Path] = ()) -> Update:
    r"""Read tables of edges and nodes to add and to remove.

    Parameters
    ----------
    add, remove : CSV files, or TSV files without quotes, with the columns relation, source, target and optionally
        weight and attributes; or type, id and optionally name and attributes.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder) / "new.csv"
    ...     _ = table.write_text("type,id\nauthor,Zoe\n")
    ...     read_update(add=[table]).add_nodes[0].id
    'Zoe'
    """
    lines: dict[str, list[Any]] = {}
    places: dict[str, list[str]] = {}
    for verb, paths in (("add", add), ("remove", remove)):
        for path in paths:
            for place, line in _read_lines(Path(path)):
                field_name = f"{verb}_{'edges' if isinstance(line, Edge) else 'nodes'}"
                lines.setdefault(field_name, []).append(line)
                places.setdefault(field_name, []).append(place)
    return Update(**lines, places=places)


def _read_lines(path: Path) -> Iterator[tuple[str, Edge | Node]]:
    first_line = 1  # of the row being read, which may span several
    if path.exists() and not path.is_file():  # a device or a pipe may never end
        raise SourceError(f"{path} is not a file; write the table to one")
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = bounded_lines(stream, path)
            if path.suffix.lower() in (".tsv", ".tab"):  # where quotes are ordinary characters, as in tables of graphs
                reader = csv.DictReader(lines, strict=True, delimiter="\t", quoting=csv.QUOTE_NONE)
            else:
                reader = csv.DictReader(lines, strict=True)
            columns = list(reader.fieldnames or ())
            has_edges = _check_columns(path, columns)
            for row in reader:
                place = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    extra = row.pop(None, [])
                    count = sum(value is not None for value in row.values()) + len(extra)
                    raise SourceError(f"{place}: expected {len(columns)} columns as in the header, got {count}")
                yield place, _edge(row) if has_edges else _node(row)
                first_line = reader.line_num + 1
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except csv.Error as error:
        raise SourceError(f"{path}, line {first_line}: {error}; check the quotes there") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error


def _check_columns(path: Path, columns: Sequence[str]) -> bool:
    """Raise for missing and repeated columns; return whether it lists edges. The store knows the attributes."""
    has_edges = set(_EDGE_COLUMNS) <= set(columns)
    if not (has_edges or set(_NODE_COLUMNS) <= set(columns)):
        raise SourceError(
            f"{path} has the columns {listed(columns) or 'none'}; a table of edges needs relation, source, target "
            f"and may have weight and attributes, a table of nodes needs type, id and may have name and attributes"
        )
    repeated, times = Counter(columns).most_common(1)[0]
    if times > 1:
        raise SourceError(f"{path} has the columns {listed(columns)}; {repeated} appears twice")
    return has_edges


def _edge(row: Mapping[str, str]) -> Edge:
    text = row.get("weight", "1") or "1"
    try:
        weight: Any = text if "_" in text else float(text)
    except ValueError:
        weight = text  # the store reports it with the other bad lines
    others = (*_EDGE_COLUMNS, "weight")
    attributes = {name: text for name, text in row.items() if name not in others and text != ""}
    return Edge(row["relation"], row["source"], row["target"], weight, attributes)


def _node(row: Mapping[str, str]) -> Node:
    attributes = {name: text for name, text in row.items() if name not in ("type", "id", "name") and text != ""}
    return Node(row["type"], row["id"], row.get("name") or None, attributes)
