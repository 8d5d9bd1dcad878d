"""Convert tables, NetworkX graphs and PyTorch Geometric graphs to a HIN and back; read GraphML, GEXF and GML."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath.errors import GraphError, MissingExtraError, SourceError, listed
from neupath.graph.hin import HIN, Duplicates, Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io.assembly import EdgeTable, NodeTable, TripleTable, TypedTable, assemble, assemble_typed, distinct_ids
from neupath.io.sources import Place, ReadOptions
from neupath.io.text_files import file_errors

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import HeteroData


# ---- Tables and triples --------------------------------------------------------------------------
Table = Any
"""A pandas DataFrame, a pyarrow Table, or anything else that Arrow can convert."""
RelationKey = tuple[str, str] | tuple[str, str, str]


def from_tables(tables: Mapping[str | RelationKey, Table], *, duplicates: Duplicates = "count") -> HIN:
    """Make a graph from data frames or Arrow tables.

    Parameters
    ----------
    tables
        A node type -> its nodes: ids in the column `id` or else the first, names in `name`, attributes in the rest.
        (source, target) or (source, name, target) -> the edges of a relation: ids in the first two columns, weights
        in `weight`.
    duplicates
        What parallel edges mean, as in `load`.

    >>> edges = pa.table({"movie": ["m1", "m1"], "actor": [7, 8]})
    >>> from_tables({("movie", "actor"): edges}).num_nodes("actor")
    2

    """
    nodes = [_node_table(key, _to_arrow(table)) for key, table in tables.items() if isinstance(key, str)]
    edges = [_edge_table(key, _to_arrow(table)) for key, table in tables.items() if not isinstance(key, str)]
    return assemble(nodes, edges, ReadOptions(duplicates=duplicates))


def from_triples(
    triples: Table,
    types: Mapping[str, str] | None = None,
    *,
    node_type: str = "entity",
    duplicates: Duplicates = "count",
) -> HIN:
    """Make a graph from a table of triples.

    Parameters
    ----------
    triples
        A table whose first three columns are head, relation and tail.
    types
        An entity -> its type.
    node_type
        The type of all other entities.
    duplicates
        What parallel edges mean, as in `load`.

    >>> from_triples(pa.table({"head": ["Ann"], "relation": ["likes"], "tail": ["pie"]})).schema.relations
    (Relation(source='entity', name='likes', target='entity', directed=True),)

    """
    table = _to_arrow(triples)
    if table.num_columns < 3:
        raise GraphError(f"a table of triples needs three columns, but this one has only {listed(table.column_names)}")
    head, relation, tail = (_as_ids(table, column, pa.string()) for column in table.column_names[:3])
    ids = distinct_ids([head, tail])
    kinds = [(types or {}).get(entity, node_type) for entity in ids.to_pylist()]
    nodes = TypedTable(ids, pa.array(kinds, pa.string()), lambda row: f"entity number {row + 1}")
    place = _place("the table of triples")
    return assemble_typed(nodes, TripleTable(head, relation, tail, place), ReadOptions(duplicates=duplicates))


def _to_arrow(table: Table) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    try:
        if type(table).__module__.startswith("pandas"):
            # an index with a name is the first column; one without a name only counts the rows
            named = any(name is not None for name in table.index.names)
            return pa.Table.from_pandas(table.reset_index() if named else table, preserve_index=False)
        return pa.table(table)
    except (AttributeError, TypeError, ValueError, pa.ArrowException) as error:
        what = f"cannot read a {type(table).__name__} as a table ({error})"
        raise GraphError(f"{what}; give a pandas or Arrow table with one type of values per column") from error


def _node_table(node_type: str, table: pa.Table) -> NodeTable:
    if not table.column_names:
        raise GraphError(f"the table of {node_type} has no columns; it needs at least the ids")
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
            f"expected a node type, (source, target) or (source, name, target) as the key of a table, got {key!r}"
        )
    if table.num_columns < 2:
        raise GraphError(f"the table of relation {key} has one column; it needs two, the ids of both ends")
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
            f"column {column!r} holds {values.type} numbers, but ids are texts or integers (pandas turns integers into "
            f"fractions if one is missing: drop that row and use astype('int64'))"
        )
    natural = pa.int64() if pa.types.is_integer(values.type) else pa.string()
    try:
        return pc.cast(values, kind or natural)
    except pa.ArrowException as error:
        raise GraphError(f"column {column!r} holds {values.type} values, but ids are texts or integers") from error


def _place(what: str) -> Place:
    return lambda row: f"{what}, row {row + 1}"


# ---- NetworkX ------------------------------------------------------------------------------------
def from_networkx(
    graph: "nx.Graph[Any]",
    *,
    node_type: str | None = None,
    relation: str | None = None,
    duplicates: Duplicates = "count",
) -> HIN:
    """Make a graph from a NetworkX graph.

    Nodes may have the attributes `id` and `name`, edges `weight`. Nodes without a type get the type "node", edges
    without a relation the name "edge". An edge of an undirected graph points from the type that comes first to the
    other.

    Parameters
    ----------
    graph
        The NetworkX graph.
    node_type, relation
        The attributes that hold the types of nodes and the relations of edges; by default `type` and `relation`, or
        if no node or edge has them, another text attribute with few values (`kind`, `edge_type`, …), which a note of
        the graph names.
    duplicates
        What parallel edges mean, as in `load`.

    >>> from neupath import load
    >>> from_networkx(to_networkx(load("toy"))).schema.node_types
    ('author', 'paper', 'venue')

    """
    type_key = node_type or _find_key("type", _TYPE_KEYS, [data for _, data in graph.nodes(data=True)])
    kinds = {node: str(data.get(type_key, "node")) for node, data in graph.nodes(data=True)}
    if type_key == "labels":  # Neo4j writes labels with a colon in front
        kinds = {node: kind.removeprefix(":") for node, kind in kinds.items()}
    # a label is usually only drawn; it may be the relation if the types, too, are in an unusual attribute
    keys = _RELATION_KEYS if node_type or type_key == "type" else (*_RELATION_KEYS, "label")
    name_key = relation or _find_key("relation", keys, [data for _, _, data in graph.edges(data=True)])
    order = {kind: place for place, kind in enumerate(dict.fromkeys(kinds.values()))}
    members: dict[str, list[Hashable]] = {kind: [n for n, k in kinds.items() if k == kind] for kind in order}
    rows = {node: row for nodes in members.values() for row, node in enumerate(nodes)}
    links: dict[Relation, list[tuple[int, int, float]]] = {}
    for one_end, other_end, data in graph.edges(data=True):
        one_way = graph.is_directed() and data.get("directed", True)
        swap = not graph.is_directed() and order[kinds[one_end]] > order[kinds[other_end]]
        start, end = (other_end, one_end) if swap else (one_end, other_end)
        directed = one_way or kinds[start] != kinds[end]
        key = Relation(kinds[start], str(data.get(name_key, "edge")), kinds[end], directed)
        links.setdefault(key, []).append((rows[start], rows[end], _as_weight(data.get("weight", 1.0), start, end)))
    nodes = [_networkx_nodes(kind, {node: graph.nodes[node] for node in members[kind]}, type_key) for kind in order]
    edges = []
    for key, entries in links.items():
        sources, targets, weights = zip(*entries, strict=True)
        edges.append(Edges(key, np.array(sources), np.array(targets), np.array(weights)))
    notes = _notes_on_keys(None if node_type else type_key, None if relation else name_key)
    return HIN.build(nodes, edges, duplicates=duplicates, notes=notes)


def to_networkx(hin: HIN) -> "nx.MultiDiGraph[Any]":
    """Return the graph as a NetworkX graph with (type, id) as nodes; `from_networkx` reads it back.

    >>> from neupath import load
    >>> to_networkx(load("toy")).number_of_nodes()
    90
    """
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
        raise GraphError(f"the weight of the edge from {start!r} to {end!r} must be a number, got {value!r}") from error


def _values(values: list[Any]) -> pa.Array:
    """Return attribute values as an Arrow array, or as texts if their types differ."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if value is None else str(value) for value in values])


# ---- NetworkX attributes that hold types and relations -------------------------------------------
_TYPE_KEYS = ("node_type", "ntype", "kind", "labels")
_RELATION_KEYS = ("edge_type", "etype", "type", "predicate", "kind")
"""Other names of `type` and `relation`."""
_MOST_VALUES, _FEW_VALUES, _NODES_PER_VALUE = 64, 8, 10
"""Types have few distinct values: at most 64, and at most 8 or one per ten nodes or edges."""
Carriers = Collection[Mapping[str, Any]]


def _notes_on_keys(type_key: str | None, relation_key: str | None) -> list[str]:
    """Note the attributes that do not have the usual names, and how to ignore them."""
    keys = (("type", "node_type", type_key), ("relation", "relation", relation_key))
    return [
        f"{usual}s were read from the attribute {key!r}; from_networkx(graph, {option}={usual!r}) ignores it"
        for usual, option, key in keys
        if key not in (None, usual)
    ]


def _find_key(usual: str, others: Sequence[str], carriers: Carriers) -> str:
    """Return the attribute that holds types or relations: the usual one, or else the first that looks like them.

    >>> _find_key("type", _TYPE_KEYS, [{"kind": "user"}, {"kind": "item"}])
    'kind'
    >>> _find_key("type", _TYPE_KEYS, [{"kind": "user"}, {"kind": 1.5}])
    'type'
    """
    if any(usual in data for data in carriers):
        return usual
    return next((key for key in others if _names_kinds([data.get(key) for data in carriers])), usual)


def _names_kinds(values: Sequence[Any]) -> bool:
    """Whether all values are texts with few distinct ones."""
    if not all(isinstance(value, str) and value.strip() for value in values):
        return False
    return 0 < len(set(values)) <= min(_MOST_VALUES, max(_FEW_VALUES, len(values) // _NODES_PER_VALUE))


# ---- PyTorch Geometric ---------------------------------------------------------------------------
def from_pyg(data: "HeteroData", *, duplicates: Duplicates = "count") -> HIN:
    """Make a graph from a `torch_geometric.data.HeteroData`, with row numbers as ids.

    A relation that only repeats another one backwards, as `ToUndirected` adds them, is left out.

    Parameters
    ----------
    data
        The HeteroData; weights are `edge_weight`, or an `edge_attr` of one number per edge.
    duplicates
        What parallel edges mean, as in `load`.

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


def to_pyg(hin: HIN) -> "HeteroData":
    """Return the graph as a `torch_geometric.data.HeteroData`, with `edge_weight` unless all weights are 1."""
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


def _pyg_count(data: "HeteroData", kind: str) -> int:
    count = data[kind].num_nodes if kind in data.node_types else None
    if count is None:
        raise GraphError(f"the HeteroData does not say how many nodes {kind!r} has; set data[{kind!r}].num_nodes")
    return int(count)


def _pyg_edges(kind: tuple[str, str, str], store: Any) -> Edges:
    if "edge_index" not in store:
        raise GraphError(f"relation {kind} of the HeteroData has no edge_index; set data[{kind}].edge_index")
    sources, targets = store.edge_index.cpu().numpy().astype(np.int64)
    tensor = store.get("edge_weight", store.get("edge_attr"))
    one_each = tensor is not None and tensor.numel() == len(sources)
    weights = tensor.detach().reshape(-1).cpu().double().numpy() if one_each else None
    return Edges(Relation(*kind), sources, targets, weights)


def repeats_backwards(edge: Edges, forward: Edges) -> bool:
    """Whether the edges of one relation are those of another, reversed."""
    if len(edge.sources) != len(forward.sources):
        return False
    here, there = np.lexsort((edge.sources, edge.targets)), np.lexsort((forward.targets, forward.sources))
    return bool(
        np.array_equal(edge.targets[here], forward.sources[there])
        and np.array_equal(edge.sources[here], forward.targets[there])
        and (edge.weights is None) == (forward.weights is None)
        and (edge.weights is None or np.array_equal(edge.weights[here], forward.weights[there]))  # type: ignore[index]
    )


# ---- GraphML, GEXF and GML files -----------------------------------------------------------------
GRAPH_SUFFIXES = (".graphml", ".gexf", ".gml")


def read_graph_file(path: Path, duplicates: Duplicates = "count") -> HIN:
    """Read a file with NetworkX, and make a graph from that."""
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtraError("networkx", "networkx") from error
    name = path.name.lower().removesuffix(".gz")
    read = nx.read_graphml if name.endswith(".graphml") else nx.read_gexf if name.endswith(".gexf") else _read_gml
    try:
        with file_errors(path):
            graph = read(path)
    except (nx.NetworkXException, SyntaxError, LookupError, TypeError, ValueError) as error:
        raise SourceError(f"{path} cannot be read as {Path(name).suffix[1:]}: {error}") from error
    return from_networkx(graph, duplicates=duplicates)


def _read_gml(path: Path) -> Any:
    """Read GML by the ids of its nodes; labels, which may be missing or repeated, become names."""
    import networkx as nx

    graph = nx.read_gml(path, label="id")
    for _, data in graph.nodes(data=True):
        if "label" in data and "name" not in data:
            data["name"] = data.pop("label")
    return graph
