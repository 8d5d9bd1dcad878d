"""Convert tables, NetworkX graphs and PyTorch Geometric graphs to a HIN and back; read GraphML, GEXF and GML."""

import io
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import iterparse

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array

from neupath.errors import GraphError, MissingExtraError, SourceError, first_line, listed
from neupath.graph.hin import HIN, Duplicates, Edges, check_counts
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.io.assemble import read_tables
from neupath.io.assembly import RawAttributes, distinct_ids
from neupath.io.columns import find_ends
from neupath.io.detection import Tables, options_of, recognise
from neupath.io.edge_columns import undeclared_attributes
from neupath.io.graph_toml import Config, EdgesConfig, NodesConfig, TriplesConfig, checked_options
from neupath.io.plan import Selection, TripleTables
from neupath.io.tables import ArrowTable, Table
from neupath.io.text_files import file_errors, open_raw, refuse_special

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import HeteroData


# ---- Tables and triples --------------------------------------------------------------------------
Frame = Any
"""A pandas or polars DataFrame, a pyarrow Table, or anything else that Arrow can convert."""
RelationKey = tuple[str, str] | tuple[str, str, str]


def from_tables(
    tables: Mapping[str | RelationKey, Any], *, config: Config | None = None, duplicates: Duplicates | None = None
) -> HIN:
    """Make a graph from data frames, Arrow tables, matrices or lists of tuples.

    Parameters
    ----------
    tables
        (source, target) or (source, name, target) -> the edges of a relation: a table with ids in the two columns that
        its types name, or else in the first two, and weights in `weight`; a list of (source, target) or (source,
        target, weight) tuples; or a matrix of weights, whose rows and columns are nodes. A name -> a table that is
        recognised as a file of that name is: nodes, a relation, or triples; the name of a type in a relation's key is
        that type. Instead of a table, (table, options) gives the keys that graph.toml has for [[edges]] or [nodes]:
        `{"columns": ["user", "movie"], "weight": "rating", "split": "|"}`, `{"id": "key", "name": "title"}`.
    config
        A graph.toml, as `load` takes it; it calls tables by their names.
    duplicates
        What parallel edges mean, as in `load`.

    >>> edges = pa.table({"movie": ["m1", "m1"], "actor": [7, 8]})
    >>> from_tables({("movie", "actor"): edges}).num_nodes("actor")
    2

    """
    if not tables:
        raise GraphError('the mapping is empty; give at least the edges of one relation: {("user", "item"): table}')
    settings = config or Config()
    mapping = _Mapping({key: _with_options(value) for key, value in tables.items()})
    named, nodes = mapping.node_tables()
    matrix_nodes = mapping.matrix_nodes(named, nodes)
    named |= {config.file: table for config, table in matrix_nodes.values()}
    nodes |= {node_type: config for node_type, (config, _) in matrix_nodes.items()}
    edge_tables, edges = mapping.edge_tables(named, nodes)
    named |= edge_tables

    def find(name: str) -> Table:
        if name not in named:
            raise SourceError(f"graph.toml names the table {name!r}, which is not given (there are {listed(named)})")
        return named[name]

    given = Tables(list(named.values()), find, "the tables", in_files=False)
    described = replace(settings, nodes=nodes | dict(settings.nodes), edges=[*edges, *settings.edges])
    return read_tables(recognise(given, described, options_of(settings, duplicates), duplicates))


@dataclass(frozen=True)
class _Mapping:
    """What `from_tables` is given: a key -> a table, a list or a matrix, and its options."""

    content: Mapping[Any, tuple[Any, dict[str, Any]]]

    @cached_property
    def relations(self) -> list[RelationKey]:
        """The keys that join two types."""
        return [_checked_key(key) for key in self.content if not isinstance(key, str)]

    def node_tables(self) -> tuple[dict[str, Table], dict[str, NodesConfig]]:
        """Return the tables under names, and which of them are the nodes of a type that a key or options name."""
        ends = {end for key in self.relations for end in (key[0], key[-1])}
        tables: dict[str, Table] = {}
        nodes = {}
        for key, (value, options) in self.content.items():
            if isinstance(key, str):
                explicit = key in ends or bool(options)
                title = f"the table of {key}" if explicit else f"the table {key!r}"
                table = tables[key] = _named_table(value, key, title)
                if explicit:
                    id_ = {"id": "id"} if "id" in table.columns else {}
                    nodes[key] = checked_options(NodesConfig, {"file": key} | id_ | options, key)
        return tables, nodes

    def matrix_nodes(
        self, tables: Mapping[str, Table], nodes: Mapping[str, NodesConfig]
    ) -> dict[str, tuple[NodesConfig, Table]]:
        """Return the nodes that only matrices give: as many as they have rows or columns, counted from 0."""
        sizes: dict[str, int] = {}
        for key in self.relations:
            matrix = self.content[key][0]
            if _is_matrix(matrix):
                _check_matrix(key, matrix)
                for end, size in zip((key[0], key[-1]), matrix.shape, strict=True):
                    rows = len(_ids_of(tables[nodes[end].file], nodes[end])) if end in nodes else int(size)
                    _check_size(key, end, int(size), sizes.setdefault(end, rows))
        return {
            node_type: (
                NodesConfig(f"{node_type} (rows)", "id"),
                ArrowTable(pa.table({"id": np.arange(size)}), node_type, f"the rows of {node_type}"),
            )
            for node_type, size in sizes.items()
            if node_type not in nodes
        }

    def edge_tables(
        self, tables: Mapping[str, Table], nodes: Mapping[str, NodesConfig]
    ) -> tuple[dict[str, Table], list[EdgesConfig]]:
        """Return the tables under keys of two types, and what each is."""
        edge_tables: dict[str, Table] = {}
        edges = []
        for key in self.relations:
            content, options = self.content[key]
            if _is_matrix(content):
                both = [_ids_of(tables[nodes[end].file], nodes[end]) for end in (key[0], key[-1])]
                content = _matrix_edges(content, *both)
            table = edge_tables[str(key)] = _named_table(content, "_".join(key), f"the table of relation {key}")
            if len(table.columns) < 2:
                raise GraphError(f"{table.title} has one column; it needs two, the ids of both ends")
            name = key[1] if len(key) == 3 else "_".join(key)
            described = {"name": name, "file": str(key), "source": key[0], "target": key[-1]}
            edges.append(checked_options(EdgesConfig, described | options, str(key)))
        return edge_tables, edges


def from_table(table: Frame, *, config: Config | None = None, duplicates: Duplicates | None = None) -> HIN:
    """Make a graph from one table: triples, a relation, or nodes with columns that hold edges."""
    settings = config or Config()
    only = _named_table(table, "", "the table")
    given = Tables([only], lambda _: only, "the table", in_files=False)
    return read_tables(recognise(given, settings, options_of(settings, duplicates), duplicates))


def from_triples(
    triples: Frame,
    types: Mapping[str, str] | None = None,
    *,
    node_type: str | None = None,
    config: Config | None = None,
    duplicates: Duplicates | None = None,
) -> HIN:
    """Make a graph from a table of triples.

    Parameters
    ----------
    triples
        A table whose columns are called head, relation and tail (or subject, predicate, object, …), or whose first
        three columns are that; or a list of (head, relation, tail) tuples. Columns such as head_type and head_name give
        types and names.
    types
        An entity -> its type.
    node_type
        The type of all other entities: by default the type before `::` if all ids are like Gene::2157, or else entity.
    config
        A graph.toml, as `load` takes it, with keys of the top level.
    duplicates
        What parallel edges mean, as in `load`.

    >>> from_triples(pa.table({"head": ["Ann"], "relation": ["likes"], "tail": ["pie"]})).schema.relations
    (Relation(source='entity', name='likes', target='entity', directed=True),)

    """
    if isinstance(triples, list):
        triples = _tuples_table(triples, ("head", "relation", "tail"))
    table = _named_table(triples, "", "the table of triples")
    if len(table.columns) < 3:
        raise GraphError(f"a table of triples needs three columns, but this one has only {listed(table.columns)}")
    named = find_ends(table)
    columns = None if named is not None and named.relation is not None else table.columns[:3]
    settings = replace(config or Config(), triples=TriplesConfig(columns=columns, type=node_type))
    given = Tables([table], lambda _: table, table.title, in_files=False)
    source = recognise(given, settings, options_of(settings, duplicates))
    if types is None or not isinstance(source, TripleTables):
        return read_tables(source)
    (selection,) = source.edges
    rows = selection.read()
    ids = distinct_ids([rows.columns["source"], rows.columns["target"]])
    kinds = [types.get(entity, node_type or "entity") for entity in ids.to_pylist()]
    nodes = ArrowTable(pa.table({"id": ids, "type": pa.array(kinds, pa.string())}), "types", "the types")
    typed = Selection(nodes, {"id": "id", "type": "type"}, all_text=True)
    plain = replace(selection, columns={role: column for role, column in selection.columns.items() if "_" not in role})
    return read_tables(replace(source, nodes=typed, edges=[plain], prefixed=False))


def from_tuples(tuples: Sequence[Any], *, config: Config | None = None, duplicates: Duplicates | None = None) -> HIN:
    """Make a graph from (head, relation, tail) tuples; raise if they may be edges of another kind."""
    table = _named_table(_tuples_table(tuples, ("head", "relation", "tail")), "", "the list")
    relations = {value for _, value, *_ in tuples}
    texts = all(isinstance(value, str) for value in relations)
    many = len(relations) > max(20, len(tuples) // 2)
    if len(table.columns) < 3 or not texts or many or any(isinstance(tail, float) for *_, tail in tuples):
        raise SourceError(
            f"a list of tuples is read as triples (head, relation, tail) with few relations, but this one begins with "
            f"{tuples[0]!r}; give the edges of one relation under its types, such as "
            f'{{("user", "item"): [("ann", "soap")]}}'
        )
    return from_triples(table.read(table.columns, {}), config=config, duplicates=duplicates)


def _named_table(content: Any, name: str, title: str) -> ArrowTable:
    if isinstance(content, list):
        content = _tuples_table(content, ("source", "target", "weight"))
    table = ArrowTable(_to_arrow(content), name, title)
    table.in_python = "table"
    library = type(content).__module__.split(".")[0]
    if library == "pandas":
        named = [str(name) for name in content.index.names if name is not None]
        table.index = named or ([""] if content.index.dtype.kind not in "iu" else [])
        levels = content.columns.names if content.ndim > 1 else [None]  # a Series has no header
        table.header_holds = ", ".join(str(name) for name in levels if name is not None)
        table.in_python = "table.droplevel(0, axis=1)" if len(levels) > 1 else "table"
        table.in_python += ".reset_index()" if named else ""
    elif library in ("polars", "pyarrow"):
        table.in_python = "table.to_pandas()"
    if not table.columns:
        raise GraphError(f"{title} has no columns; it needs at least the ids")
    return table


def _to_arrow(table: Frame) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    library = type(table).__module__.split(".")[0]
    try:
        if library == "pandas":
            # an index with a name is the first column; one without a name only counts the rows
            named = any(name is not None for name in table.index.names)
            frame = table.reset_index() if named else table
            return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)
        return table.to_arrow() if library == "polars" else pa.table(table)
    except (AttributeError, TypeError, ValueError, pa.ArrowException) as error:
        what = f"cannot read a {type(table).__name__} as a table ({first_line(error)})"
        raise GraphError(f"{what}; give a pandas, polars or Arrow table with one type of values per column") from error


def _tuples_table(tuples: Sequence[Any], names: tuple[str, str, str]) -> pa.Table:
    """Return tuples as a table; the third item may be missing."""
    widths = {len(row) if isinstance(row, tuple | list) else 0 for row in tuples}
    if len(widths) != 1 or not widths <= {2, 3}:
        raise GraphError(f"edges in a list are tuples, all of two items or all of three, but got {tuples[:1]!r}")
    columns = dict(zip(names, zip(*tuples, strict=True), strict=False))
    return pa.table({name: _values(list(values)) for name, values in columns.items()})


def _with_options(value: Any) -> tuple[Any, dict[str, Any]]:
    """Return what a mapping holds under a key, and the options beside it."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
        return value[0], dict(value[1])
    return value, {}


def _checked_key(key: Any) -> RelationKey:
    if not isinstance(key, tuple) or len(key) not in (2, 3) or not all(isinstance(part, str) for part in key):
        raise GraphError(
            f"expected the name of a table, (source, target) or (source, name, target) as the key, got {key!r}"
        )
    checked: RelationKey = key
    return checked


# ---- Matrices ------------------------------------------------------------------------------------
def _is_matrix(value: object) -> bool:
    return type(value).__module__.split(".")[0] in ("scipy", "numpy") and hasattr(value, "shape")


def _check_matrix(key: object, matrix: Any) -> None:
    """Raise if a matrix has not two dimensions, or is a list of edges: two rows or columns of node numbers."""
    if len(matrix.shape) != 2:
        raise GraphError(f"the matrix of relation {key} has {len(matrix.shape)} dimensions; it needs two")
    numbers = isinstance(matrix, np.ndarray) and matrix.dtype.kind in "iu"
    if numbers and 2 in matrix.shape and max(matrix.shape) > 2 and matrix.max(initial=0) > 1:
        raise GraphError(
            f"the array of relation {key} has the shape {matrix.shape}: it looks like a list of edges, not like a "
            f"matrix of weights; give a list of (source, target) tuples, or a scipy matrix if it is one"
        )


def _check_size(key: object, end: str, size: int, expected: int) -> None:
    if size != expected:
        raise GraphError(
            f"the matrix of relation {key} has {size:,} {end} nodes, but {expected:,} are given elsewhere; rows and "
            f"columns are the nodes of the two types, in order"
        )


def _ids_of(table: Table, config: NodesConfig) -> pa.Array:
    column = table.column(config.id, "id") if config.id else table.columns[0]
    return Selection(table, {"id": column}).read().columns["id"]


def _matrix_edges(matrix: Any, sources: pa.Array, targets: pa.Array) -> pa.Table:
    try:
        entries = coo_array(matrix)
        weights = np.asarray(entries.data, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"a matrix holds the weights of edges, but this one holds {matrix.dtype} values") from error
    filled = weights != 0
    rows, columns = (pa.array(np.asarray(at)[filled]) for at in (entries.row, entries.col))
    return pa.table(
        {"source": sources.take(rows), "target": targets.take(columns), "weight": pa.array(weights[filled])}
    )


# ---- NetworkX ------------------------------------------------------------------------------------
def from_networkx(
    graph: "nx.Graph[Any]",
    *,
    node_type: str | None = None,
    relation: str | None = None,
    duplicates: Duplicates = "count",
) -> HIN:
    """Make a graph from a NetworkX graph.

    Nodes may have the attributes `id` and `name` (or `title`, or a `label` that is not their type), edges `weight`.
    Nodes without a type get the type "node", edges without a relation the name "edge". An edge of an undirected graph
    points from the type that comes first to the other.

    Parameters
    ----------
    graph
        The NetworkX graph.
    node_type, relation
        The attributes that hold the types of nodes and the relations of edges; by default `type` and `relation`, or
        if no node or edge has them, another attribute with few values (`kind`, `label`, `bipartite`, `edge_type`, …) or
        the texts that are the keys of a multigraph's edges, which a note of the graph names.
    duplicates
        What parallel edges mean, as in `load`.

    >>> from neupath import load, to_networkx
    >>> from_networkx(to_networkx(load("toy"))).schema.node_types
    ('author', 'paper', 'venue')

    """
    is_ours = graph.graph.get("written_by") == "neupath"  # by to_networkx: each attribute is what it is called
    type_keys = () if is_ours else _TYPE_KEYS
    type_key = node_type or _find_key("type", type_keys, [data for _, data in graph.nodes(data=True)])
    if type_key == "type" and not node_type and not is_ours:
        type_key = _find_weak_type([data for _, data in graph.nodes(data=True)])
    kinds = {node: str(data.get(type_key, "node")) for node, data in graph.nodes(data=True)}
    if type_key == "labels":  # Neo4j writes labels with a colon in front
        kinds = {node: kind.removeprefix(":") for node, kind in kinds.items()}
    # a label is usually only drawn; it may be the relation if the types, too, are in an unusual attribute
    keys: tuple[str, ...] = _RELATION_KEYS if node_type or type_key == "type" else (*_RELATION_KEYS, "label")
    keys = () if is_ours else keys
    name_key = relation or _find_key("relation", keys, [data for _, _, data in graph.edges(data=True)])
    by_key = relation is None and name_key == "relation" and not is_ours and _keys_are_relations(graph)
    order = {kind: place for place, kind in enumerate(dict.fromkeys(kinds.values()))}
    check_counts(len(order), 0)
    members: dict[str, list[Hashable]] = {kind: [] for kind in order}
    for node, kind in kinds.items():
        members[kind].append(node)
    rows = {node: row for nodes in members.values() for row, node in enumerate(nodes)}
    links: dict[Relation, list[tuple[int, int, float]]] = {}
    values: dict[Relation, list[Mapping[str, Any]]] = {}
    for one_end, other_end, name, data in _named_edges(graph, name_key, by_key):
        one_way = graph.is_directed() and bool(data.get("directed", True))
        swap = not graph.is_directed() and order[kinds[one_end]] > order[kinds[other_end]]
        start, end = (other_end, one_end) if swap else (one_end, other_end)
        directed = one_way or kinds[start] != kinds[end]
        key = Relation(kinds[start], name, kinds[end], directed)
        links.setdefault(key, []).append((rows[start], rows[end], _as_weight(data.get("weight", 1.0), start, end)))
        values.setdefault(key, []).append(data)
    edges = []
    notes = _notes_on_keys(None if node_type else type_key, None if relation else name_key)
    of_kind = {kind: {node: graph.nodes[node] for node in members[kind]} for kind in order}
    name_keys = ("name",) if is_ours else ("name", "title", "label")
    read_as = None if is_ours else notes  # what neupath wrote has its types
    nodes = [_networkx_nodes(kind, own, type_key, name_keys, read_as) for kind, own in of_kind.items()]
    for key, entries in links.items():
        sources, targets, weights = (np.array(column) for column in zip(*entries, strict=True))
        left_out = (name_key, "weight", "directed", *(() if is_ours else ("id",)))
        columns = _networkx_values(values[key], left_out)
        attributes, more = (columns, []) if is_ours else _read_values(columns, key)
        edges.append(Edges(key, sources, targets, weights, attributes))
        notes += more
    if by_key:
        notes.append(
            "relations were read from the keys of edges; from_networkx(graph, relation='relation') ignores them"
        )
    return HIN.build(nodes, edges, duplicates=duplicates, notes=notes)


def _networkx_values(edges: Sequence[Mapping[str, Any]], left_out: Sequence[str]) -> pa.Table:
    """Return the attributes of a relation's edges, but for some."""
    keys = dict.fromkeys(key for data in edges for key in data if key not in left_out)
    return pa.table({str(key): _values([data.get(key) for data in edges]) for key in keys})


def _read_values(columns: pa.Table, relation: Relation) -> tuple[pa.Table, list[str]]:
    """Read attributes of edges as those of a table, with notes on them."""
    return RawAttributes.of(columns, relation.name).read(None, lambda row: f"edge {row + 1} of {relation.name}")


def _networkx_nodes(
    kind: str,
    nodes: Mapping[Hashable, Mapping[str, Any]],
    node_type: str,
    name_keys: Sequence[str],
    notes: list[str] | None,
) -> Nodes:
    ids = [data.get("id", node) for node, data in nodes.items()]
    integers = all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in ids)
    keys = {key for data in nodes.values() for key in data} - {node_type, "id"}
    name_key = next((key for key in name_keys if key in keys), "name")
    names = [data.get(name_key) for data in nodes.values()]
    others = sorted(keys - {name_key})
    values = {str(key): _values([data.get(key) for data in nodes.values()]) for key in others}
    attributes = pa.table(values)
    if notes is not None:
        attributes, more = undeclared_attributes(values, kind)
        notes += more
    return Nodes(
        kind,
        pa.array([int(i) for i in ids] if integers else [str(i) for i in ids], pa.int64() if integers else pa.string()),
        None if all(name is None for name in names) else pa.array([n if n is None else str(n) for n in names]),
        attributes,
    )


def _named_edges(graph: Any, name_key: str, by_key: bool) -> Iterator[tuple[Any, Any, str, Any]]:
    """Yield each edge with its relation."""
    if by_key:
        yield from ((start, end, key, data) for start, end, key, data in graph.edges(keys=True, data=True))
    else:
        yield from ((start, end, str(d.get(name_key, "edge")), d) for start, end, d in graph.edges(data=True))


def _keys_are_relations(graph: Any) -> bool:
    """Whether the keys of a multigraph's edges are relations: texts, few of them, and no counted ids such as e17."""
    if not graph.is_multigraph():
        return False
    keys = [key for _, _, key in graph.edges(keys=True)]
    return _names_kinds(keys) and not all(re.fullmatch(r"[^\d]{0,6}\d+", key) for key in keys)


def _as_weight(value: Any, start: Hashable, end: Hashable) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise GraphError(f"the weight of the edge from {start!r} to {end!r} must be a number, got {value!r}") from error


def _values(values: list[Any]) -> pa.Array:
    """Return attribute values as an Arrow array, or as texts if their types differ or integers are too large."""
    try:
        return pa.array(values)
    except OverflowError:
        with suppress(OverflowError, pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array(values, pa.uint64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        pass
    return pa.array([None if value is None else str(value) for value in values])


# ---- NetworkX attributes that hold types and relations -------------------------------------------
_TYPE_KEYS = ("node_type", "ntype", "kind", "labels")
_WEAK_TYPE_KEYS = ("label", "bipartite")
"""Also names of other things: a label is a type only if others have it too, a bipartite set also if it is a number."""
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


def _find_weak_type(carriers: Carriers) -> str:
    """Return `label` or `bipartite` if it holds types, or else `type`.

    >>> _find_weak_type([{"bipartite": 0}, {"bipartite": 1}])
    'bipartite'
    """
    is_named = all("name" in data or "title" in data for data in carriers)  # so that a label is no name
    for key in _WEAK_TYPE_KEYS:
        values = [data.get(key) for data in carriers]
        if any(value is None for value in values) or any("type" in data for data in carriers) or not values:
            continue
        distinct = len(set(map(str, values)))
        repeated = distinct < len(values) if is_named else 2 * distinct <= len(values)
        if (key == "bipartite" and set(map(str, values)) == {"0", "1"}) or (_names_kinds(values) and repeated):
            return key
    return "type"


def _names_kinds(values: Sequence[Any]) -> bool:
    """Whether all values are texts with few distinct ones."""
    if not all(isinstance(value, str) and value.strip() for value in values):
        return False
    return 0 < len(set(values)) <= min(_MOST_VALUES, max(_FEW_VALUES, len(values) // _NODES_PER_VALUE))


# ---- PyTorch Geometric ---------------------------------------------------------------------------
def from_pyg(data: "HeteroData", *, duplicates: Duplicates = "count") -> HIN:
    """Make a graph from a `torch_geometric.data.HeteroData`, with its `ids` or else row numbers as ids.

    A relation that only repeats another one backwards, as `ToUndirected` adds them, is left out.

    Parameters
    ----------
    data
        The HeteroData; weights are `edge_weight`, or an `edge_attr` of one number per edge. Other tensors with a number
        per edge, and the columns of an `edge_attr` with several, are attributes of edges.
    duplicates
        What parallel edges mean, as in `load`.

    """
    kinds = dict.fromkeys([*data.node_types, *(end for kind in data.edge_types for end in (kind[0], kind[2]))])
    nodes = [_pyg_nodes(data, kind) for kind in kinds]
    notes: list[str] = []
    edges = {kind: _pyg_edges(kind, data[kind], notes) for kind in data.edge_types}
    for kind in data.edge_types:
        forward = edges.get((kind[2], kind[1].removeprefix("rev_"), kind[0]))
        if kind[1].startswith("rev_") and forward is not None and repeats_backwards(edges[kind], forward):
            notes.append(f"relation {kind} was left out: it repeats {forward.relation} backwards")
            del edges[kind]
    return HIN.build(nodes, edges.values(), duplicates=duplicates, notes=notes)


def _pyg_nodes(data: "HeteroData", kind: str) -> Nodes:
    """Return the nodes of a type, with the ids and names that `to_pyg` adds, if they are there."""
    count = _pyg_count(data, kind)
    labels = [data[kind].get(what) if kind in data.node_types else None for what in ("ids", "names")]
    ids, names = (
        pa.array(each, pa.int64() if each.dtype.kind == "i" else pa.string())
        if isinstance(each, np.ndarray) and len(each) == count
        else None
        for each in labels
    )
    return Nodes(kind, pa.array(np.arange(count)) if ids is None else ids, names)


def _pyg_count(data: "HeteroData", kind: str) -> int:
    count = data[kind].num_nodes if kind in data.node_types else None
    if count is None:
        raise GraphError(f"the HeteroData does not say how many nodes {kind!r} has; set data[{kind!r}].num_nodes")
    return int(count)


def _pyg_edges(kind: tuple[str, str, str], store: Any, notes: list[str]) -> Edges:
    if "edge_index" not in store:
        raise GraphError(f"relation {kind} of the HeteroData has no edge_index; set data[{kind}].edge_index")
    sources, targets = store.edge_index.cpu().numpy().astype(np.int64)
    tensor = store.get("edge_weight", store.get("edge_attr"))
    one_each = tensor is not None and tensor.numel() == len(sources)
    weights = tensor.detach().reshape(-1).cpu().double().numpy() if one_each else None
    raw = RawAttributes.of(_pyg_values(store, None if weights is None else tensor, len(sources)), kind[1])
    attributes, more = raw.read(weights, lambda row: f"edge {row + 1} of {kind}")
    notes += more
    return Edges(Relation(*kind), sources, targets, weights, attributes)


def _pyg_values(store: Any, weight: Any, count: int) -> pa.Table:
    """Return what a relation of a HeteroData has for each edge, other than its weight: tensors, arrays and lists."""
    columns: dict[str, Any] = {}
    for key in store.keys():  # noqa: SIM118  a store yields its values, not its keys
        value = store[key]
        if key == "edge_index" or value is weight or not hasattr(value, "__len__") or isinstance(value, str):
            continue
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else value
        if len(array) != count or getattr(array, "ndim", 1) > 2:
            continue
        if getattr(array, "ndim", 1) == 2:
            columns |= {f"{key}_{number}": pa.array(array[:, number]) for number in range(array.shape[1])}
        else:
            plain = isinstance(array, np.ndarray) and array.dtype.kind in "biufM"
            columns[key] = pa.array(array) if plain else _values(list(array))
    return pa.table(columns)


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
    except ModuleNotFoundError as error:
        raise MissingExtraError("networkx", "networkx") from error
    name = path.name.lower().removesuffix(".gz")
    read = nx.read_graphml if name.endswith(".graphml") else nx.read_gexf if name.endswith(".gexf") else _read_gml
    refuse_special(path)
    try:
        with file_errors(path), open_raw(path) as stream:
            content = io.BytesIO(stream.read())
            if read is not _read_gml:
                _check_ends(path, content)
            graph = read(content)
    except RecursionError as error:
        raise SourceError(f"{path} is nested too deeply to be a graph") from error
    except (nx.NetworkXException, ArithmeticError, SyntaxError, LookupError, TypeError, ValueError) as error:
        raise SourceError(f"{path} cannot be read as {Path(name).suffix[1:]}: {first_line(error)}") from error
    return from_networkx(graph, duplicates=duplicates)


def _check_ends(path: Path, content: io.BytesIO) -> None:
    """Raise if two nodes of an XML file have the same id, or if an edge leads to a node that the file does not have.

    NetworkX would take the last of the nodes, and add a node without a type.
    """
    nodes: set[str] = set()
    ends: dict[str, str] = {}
    for _, element in iterparse(content):  # noqa: S314  expat stops entities that grow, and opens no files
        kind, get = element.tag.rpartition("}")[2], element.attrib.get
        if kind == "node" and (node := get("id")) is not None:
            if node in nodes:
                raise SourceError(f"{path}: node id {node!r} is repeated; node ids must be unique")
            nodes.add(node)
        elif kind == "edge":
            edge = f"the edge from {get('source')!r} to {get('target')!r}"
            ends |= {end: edge for end in (get("source"), get("target")) if end is not None and end not in ends}
        element.clear()
    for end, edge in ends.items():
        if end not in nodes:
            raise SourceError(f"{path}: {edge} leads to {end!r}, which is not a node of the file; add it there")
    content.seek(0)


def _read_gml(content: io.BytesIO) -> Any:
    """Read GML by the ids of its nodes; labels, which may be missing or repeated, become names."""
    import networkx as nx

    graph = nx.read_gml(content, label="id")
    for _, data in graph.nodes(data=True):
        if "label" in data and "name" not in data:
            data["name"] = data.pop("label")
    return graph
