"""GraphML, GEXF and GML files, as NetworkX reads them."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath.errors import GraphError, MissingExtraError, SourceError, listed
from neupath.graph.hin import HIN, Duplicates, Edges
from neupath.graph.nodes import Nodes
from neupath.graph.schema import Relation
from neupath.io.assembly import (
    Choices,
    EdgeTable,
    NodeTable,
    TripleTable,
    TypedTable,
    assemble,
    assemble_typed,
    distinct_ids,
)
from neupath.io.row_errors import explained

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import HeteroData


# ---- Attributes of NetworkX graphs that hold types and relations, under whatever name another program gave them


_TYPE_KEYS = ("node_type", "ntype", "kind", "labels")
_RELATION_KEYS = ("edge_type", "etype", "type", "predicate", "kind")
"""What else than `type` and `relation` they are called; Neo4j writes labels with a colon in front."""
_MOST = 64
_FEW = 8
_SHARE = 10
"""Values that name types and relations are few: 64 at most, and 8 at most or one for each ten that carry them."""
Carriers = Collection[Mapping[str, Any]]


def find_type_key(nodes: Carriers) -> str:
    """Return the attribute that holds the types of nodes: `type` where any has it, or else one that reads like types.

    >>> find_type_key([{"kind": "user"}, {"kind": "item"}]), find_type_key([{"kind": "user"}, {"kind": 1.5}])
    ('kind', 'type')
    """
    return _find_key("type", _TYPE_KEYS, nodes)


def find_relation_key(edges: Carriers, foreign: bool) -> str:
    """Return the attribute that holds the relations of edges: `relation` where any has it, or else one that reads so.

    A `label` is what to draw in most graphs, and may be a relation where types have `foreign` names, too.
    """
    return _find_key("relation", (*_RELATION_KEYS, "label") if foreign else _RELATION_KEYS, edges)


def notes_on_keys(type_key: str | None, relation_key: str | None) -> list[str]:
    """Say which attributes were found that are not called as usual, and how to leave them alone."""
    found = (("type", "node_type", type_key), ("relation", "relation", relation_key))
    return [
        f"{usual}s were read from the attribute {key!r}; from_networkx(graph, {option}={usual!r}) does not"
        for usual, option, key in found
        if key not in (None, usual)
    ]


def _find_key(usual: str, others: Sequence[str], carriers: Carriers) -> str:
    if any(usual in data for data in carriers):
        return usual
    return next((key for key in others if _names_kinds([data.get(key) for data in carriers])), usual)


def _names_kinds(values: Sequence[Any]) -> bool:
    """Whether all values are texts, and few of them differ."""
    if not all(isinstance(value, str) and value.strip() for value in values):
        return False
    return 0 < len(set(values)) <= min(_MOST, max(_FEW, len(values) // _SHARE))


# ---- Graphs of other libraries


Table = Any
"""A pandas DataFrame, a pyarrow Table, or anything else that Arrow can take in."""
RelationKey = tuple[str, str] | tuple[str, str, str]


def from_tables(tables: Mapping[str | RelationKey, Table], *, duplicates: Duplicates = "count") -> HIN:
    """Make a graph of tables: a node type for each text key, a relation for each (source, [name,] target) key.

    A node table has the ids in its column `id`, or else its first, names in `name`, attributes in the rest. A relation
    table has the two ids in its first columns, and weights in `weight`.

    >>> edges = pa.table({"movie": ["m1", "m1"], "actor": [7, 8]})
    >>> from_tables({("movie", "actor"): edges}).num_nodes("actor")
    2
    """
    nodes = [_node_table(key, _to_arrow(table)) for key, table in tables.items() if isinstance(key, str)]
    edges = [_edge_table(key, _to_arrow(table)) for key, table in tables.items() if not isinstance(key, str)]
    return assemble(nodes, edges, Choices(duplicates=duplicates))


def from_triples(
    triples: Table,
    types: Mapping[str, str] | None = None,
    *,
    node_type: str = "entity",
    duplicates: Duplicates = "count",
) -> HIN:
    """Make a graph of a table with the columns head, relation, tail; `types` maps an entity to its type."""
    table = _to_arrow(triples)
    if table.num_columns < 3:
        raise GraphError(f"a table of triples has three columns, and this has {listed(table.column_names)}")
    head, relation, tail = (_as_ids(table, column, pa.string()) for column in table.column_names[:3])
    ids = distinct_ids([head, tail])
    kinds = [(types or {}).get(entity, node_type) for entity in ids.to_pylist()]
    nodes = TypedTable(ids, pa.array(kinds, pa.string()), lambda row: f"entity number {row + 1}")
    place = _place("the table of triples")
    return assemble_typed(nodes, TripleTable(head, relation, tail, place), Choices(duplicates=duplicates))


def from_networkx(
    graph: "nx.Graph[Any]",
    *,
    node_type: str | None = None,
    relation: str | None = None,
    duplicates: Duplicates = "count",
) -> HIN:
    """Make a graph of a NetworkX one, whose nodes carry a type and, if they like, `id` and `name`.

    Edges carry a relation name and, if they like, a `weight`. The attributes that hold type and relation are those
    given, or else `type` and `relation`; where no node or edge has these, another that reads like it (`node_type`,
    `kind`, …, `edge_type`, `type`, …: a text everywhere, with few values), which a note tells. Nodes without a type are
    of type "node", edges without a relation are called "edge". An edge of an undirected graph points from the type met
    first to the other.
    """
    type_key = node_type or find_type_key([data for _, data in graph.nodes(data=True)])
    kinds = {node: _as_kind(data.get(type_key, "node"), type_key) for node, data in graph.nodes(data=True)}
    foreign = node_type is None and type_key != "type"
    name_key = relation or find_relation_key([data for _, _, data in graph.edges(data=True)], foreign)
    order = {kind: place for place, kind in enumerate(dict.fromkeys(kinds.values()))}
    members: dict[str, list[Hashable]] = {kind: [n for n, k in kinds.items() if k == kind] for kind in order}
    rows = {node: row for nodes in members.values() for row, node in enumerate(nodes)}
    found: dict[Relation, list[tuple[int, int, float]]] = {}
    for one_end, other_end, data in graph.edges(data=True):
        one_way = graph.is_directed() and data.get("directed", True)
        swap = not graph.is_directed() and order[kinds[one_end]] > order[kinds[other_end]]
        start, end = (other_end, one_end) if swap else (one_end, other_end)
        directed = one_way or kinds[start] != kinds[end]
        key = Relation(kinds[start], str(data.get(name_key, "edge")), kinds[end], directed)
        found.setdefault(key, []).append((rows[start], rows[end], _as_weight(data.get("weight", 1.0), start, end)))
    nodes = [_networkx_nodes(kind, {node: graph.nodes[node] for node in members[kind]}, type_key) for kind in order]
    edges = []
    for key, links in found.items():
        sources, targets, weights = zip(*links, strict=True)
        edges.append(Edges(key, np.array(sources), np.array(targets), np.array(weights)))
    notes = notes_on_keys(None if node_type else type_key, None if relation else name_key)
    return HIN.build(nodes, edges, duplicates=duplicates, notes=notes)


def _as_kind(value: Any, key: str) -> str:
    return str(value).removeprefix(":") if key == "labels" else str(value)


def to_networkx(hin: HIN) -> "nx.MultiDiGraph[Any]":
    """Return the graph as NetworkX has it, with (type, id) as nodes; `from_networkx` reads it back."""
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtraError("networkx", "networkx") from error
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    for kind, nodes in hin.nodes.items():
        for row, node_id in enumerate(nodes.ids.to_pylist()):
            name = nodes.name(row)
            extra = {column: nodes.attributes[column][row].as_py() for column in nodes.attributes.column_names}
            graph.add_node(
                (kind, node_id), **(extra | {"type": kind, "id": node_id} | ({"name": name} if name else {}))
            )
    for relation, matrix in hin.matrices.items():
        sources, targets = hin.nodes[relation.source].ids.to_pylist(), hin.nodes[relation.target].ids.to_pylist()
        entries = matrix.tocoo()
        for row, column, weight in zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True):
            if relation.directed or row <= column:
                ends = (relation.source, sources[row]), (relation.target, targets[column])
                graph.add_edge(*ends, relation=relation.name, weight=weight, directed=relation.directed)
    return graph


def from_pyg(data: "HeteroData", *, duplicates: Duplicates = "count") -> HIN:
    """Make a graph of a `torch_geometric.data.HeteroData`.

    Ids are row numbers, weights are `edge_weight` or an `edge_attr` of one number an edge.

    A relation that only repeats another one backwards, as `ToUndirected` adds them, is left out.
    """
    kinds = dict.fromkeys([*data.node_types, *(end for kind in data.edge_types for end in (kind[0], kind[2]))])
    nodes = [Nodes(kind, pa.array(np.arange(_pyg_count(data, kind)))) for kind in kinds]
    edges = {kind: _pyg_edges(kind, data[kind]) for kind in data.edge_types}
    notes = []
    for kind in data.edge_types:
        forward = edges.get((kind[2], kind[1].removeprefix("rev_"), kind[0]))
        if kind[1].startswith("rev_") and forward is not None and repeats_backwards(edges[kind], forward):
            notes.append(f"relation {kind} was left out: it repeats {forward.relation} backwards")
            del edges[kind]
    return HIN.build(nodes, edges.values(), duplicates=duplicates, notes=notes)


def _pyg_count(data: "HeteroData", kind: str) -> int:
    count = data[kind].num_nodes if kind in data.node_types else None
    if count is None:
        raise GraphError(f"the HeteroData does not say how many nodes {kind!r} has; set data[{kind!r}].num_nodes")
    return int(count)


def _pyg_edges(kind: tuple[str, str, str], store: Any) -> Edges:
    if "edge_index" not in store:
        raise GraphError(f"the HeteroData's relation {kind} has no edge_index")
    sources, targets = store.edge_index.cpu().numpy().astype(np.int64)
    given = store.get("edge_weight", store.get("edge_attr"))
    one_each = given is not None and given.numel() == len(sources)
    weights = given.detach().reshape(-1).cpu().double().numpy() if one_each else None
    return Edges(Relation(*kind), sources, targets, weights)


def to_pyg(hin: HIN) -> "HeteroData":
    """Return the graph as a `torch_geometric.data.HeteroData`, with `edge_weight` where weights are not all 1."""
    try:
        import torch
        from torch_geometric.data import HeteroData
    except ImportError as error:
        raise MissingExtraError("torch_geometric", "neupath[learn]") from error
    data = HeteroData()
    for kind, nodes in hin.nodes.items():
        data[kind].num_nodes = len(nodes)
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        store = data[relation.source, relation.name, relation.target]
        store.edge_index = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
        if np.any(entries.data != 1):
            store.edge_weight = torch.from_numpy(entries.data.copy())
    return data


def _to_arrow(table: Table) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    try:
        if type(table).__module__.startswith("pandas"):
            # an index with a name is a column like others, and the first; one without counts the rows
            named = any(name is not None for name in table.index.names)
            return pa.Table.from_pandas(table.reset_index() if named else table, preserve_index=False)
        return pa.table(table)
    except (AttributeError, TypeError, ValueError, pa.ArrowException) as error:
        what = f"cannot read a {type(table).__name__} as a table ({error})"
        raise GraphError(f"{what}; give a pandas or Arrow table with one kind of values a column") from error


def _place(what: str) -> Any:
    return lambda row: f"{what}, row {row + 1}"


def _node_table(node_type: str, table: pa.Table) -> NodeTable:
    if not table.column_names:
        raise GraphError(f"the table of {node_type} has no columns; it needs the ids at least")
    id_column = "id" if "id" in table.column_names else table.column_names[0]
    name = "name" if "name" in table.column_names and id_column != "name" else None
    rest = [column for column in table.column_names if column not in (id_column, name)]
    names = None if name is None else _as_ids(table, name, pa.string())
    place = _place(f"the table of {node_type}")
    attributes = table.select(rest).combine_chunks()
    return NodeTable(node_type, _as_ids(table, id_column), place, names, attributes, typed=True)


def _edge_table(key: RelationKey, table: pa.Table) -> EdgeTable:
    if not isinstance(key, tuple) or len(key) not in (2, 3) or not all(isinstance(part, str) for part in key):
        raise GraphError(
            f"a node table's key is its type, a relation's is (source, target) or (source, name, target), and this is "
            f"{key!r}"
        )
    if table.num_columns < 2:
        raise GraphError(f"the table of relation {key} has one column; it needs the ids at both ends")
    source, target, name = key[0], key[-1], key[1] if len(key) == 3 else "_".join(key)
    first, second = table.column_names[:2]
    weights = table["weight"].combine_chunks() if "weight" in table.column_names[2:] else None
    place = _place(f"the table of relation {key}")
    return EdgeTable(Relation(source, name, target), _as_ids(table, first), _as_ids(table, second), place, weights)


def _as_ids(table: pa.Table, column: str, kind: pa.DataType | None = None) -> pa.Array:
    values = table[column].combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if kind is None and pa.types.is_floating(values.type):
        raise GraphError(
            f"column {column!r} holds {values.type} numbers; ids are texts or integers (pandas makes fractions of "
            f"integers where one is missing: drop that row and use astype('int64'))"
        )
    natural = pa.int64() if pa.types.is_integer(values.type) else pa.string()
    try:
        return pc.cast(values, kind or natural)
    except pa.ArrowException as error:
        raise GraphError(f"column {column!r} holds values of type {values.type}; ids are texts or integers") from error


def _networkx_nodes(kind: str, nodes: Mapping[Hashable, Mapping[str, Any]], node_type: str) -> Nodes:
    ids = [data.get("id", node) for node, data in nodes.items()]
    integers = all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in ids)
    names = [data.get("name") for data in nodes.values()]
    others = sorted({key for data in nodes.values() for key in data} - {node_type, "id", "name"})
    return Nodes(
        kind,
        pa.array([int(i) for i in ids] if integers else [str(i) for i in ids], pa.int64() if integers else pa.string()),
        None if all(name is None for name in names) else pa.array([n if n is None else str(n) for n in names]),
        pa.table({str(key): _values([data.get(key) for data in nodes.values()]) for key in others}),
    )


def _as_weight(value: Any, start: Hashable, end: Hashable) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise GraphError(
            f"the edge from {start!r} to {end!r} has the weight {value!r}, which is not a number"
        ) from error


def _values(values: list[Any]) -> pa.Array:
    """Return attribute values as Arrow has them, or as texts where they are of no one kind."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if value is None else str(value) for value in values])


def repeats_backwards(edge: Edges, forward: Edges) -> bool:
    """Whether the edges of one relation are those of another, each the other way round."""
    if len(edge.sources) != len(forward.sources):
        return False
    here, there = np.lexsort((edge.sources, edge.targets)), np.lexsort((forward.targets, forward.sources))
    return bool(
        np.array_equal(edge.targets[here], forward.sources[there])
        and np.array_equal(edge.sources[here], forward.targets[there])
        and (edge.weights is None) == (forward.weights is None)
        and (edge.weights is None or np.array_equal(edge.weights[here], forward.weights[there]))  # type: ignore[index]
    )


# ---- GraphML, GEXF and GML files, as NetworkX reads them


GRAPH_SUFFIXES = (".graphml", ".gexf", ".gml")


def is_graph_file(path: Path) -> bool:
    """Whether a file's name says that NetworkX can read it."""
    return path.is_file() and path.name.lower().removesuffix(".gz").endswith(GRAPH_SUFFIXES)


def read_graph_file(path: Path, duplicates: Duplicates = "count") -> HIN:
    """Read a file as a NetworkX graph, and that as a graph of types and relations."""
    return from_networkx(_read(path), duplicates=duplicates)


def _read(path: Path) -> Any:
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtraError("networkx", "networkx") from error
    name = path.name.lower().removesuffix(".gz")
    read = nx.read_graphml if name.endswith(".graphml") else nx.read_gexf if name.endswith(".gexf") else _read_gml
    try:
        with explained(path):
            return read(path)
    except (nx.NetworkXException, SyntaxError, LookupError, TypeError, ValueError) as error:
        raise SourceError(f"{path} cannot be read as {Path(name).suffix[1:]}: {error}") from error


def _read_gml(path: Path) -> Any:
    """Read GML by the ids that all of its nodes have; labels, which may be missing or the same, are names."""
    import networkx as nx

    graph = nx.read_gml(path, label="id")
    for _, data in graph.nodes(data=True):
        if "label" in data and "name" not in data:
            data["name"] = data.pop("label")
    return graph
