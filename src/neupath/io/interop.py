"""Objects of other libraries as tables and their Plan: frames, matrices, tuples, NetworkX, PyTorch Geometric."""

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array

from neupath.errors import GraphError, SourceError, first_line, listed
from neupath.graph.hin import HIN, Duplicates, Edges, check_counts
from neupath.graph.metapath import Relation
from neupath.io.assemble import read_tables
from neupath.io.columns import ChosenColumns, choose_columns, find_ends
from neupath.io.detect import recognise
from neupath.io.graph_toml import Config, EdgesConfig, NodesConfig, TriplesConfig, checked_options, read_config
from neupath.io.plan import EdgePlan, NodePlan, Plan, ReadOptions, Selection
from neupath.io.sources import Source
from neupath.io.tables import ArrowTable, Table
from neupath.io.words import NETWORK_RELATIONS, NETWORK_TYPES

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import HeteroData

Frame = Any
"""A pandas or polars DataFrame, a pyarrow Table, or anything else that Arrow can convert."""
RelationKey = tuple[str, str] | tuple[str, str, str]


def load_object(source: object, config: str | Path | None, duplicates: Duplicates | None) -> HIN:
    """Load a graph from an object; raise if it is of no kind that holds one."""
    library = type(source).__module__.split(".")[0]
    if isinstance(source, HIN):
        return source
    of_tables = next((read for kinds, read in _OF_TABLES.items() if isinstance(source, kinds)), None)
    if of_tables is not None or library in ("pandas", "pyarrow", "polars"):
        settings = Config() if config is None else read_config(Path(config))
        return (of_tables or from_table)(source, config=settings, duplicates=duplicates)
    if config is not None:
        raise SourceError(f"a {type(source).__name__} takes no graph.toml, but {config} was given; leave it out")
    if library == "networkx":
        return from_networkx(source, duplicates=duplicates or "count")  # type: ignore[arg-type]
    if library == "torch_geometric" and hasattr(source, "edge_types"):
        return from_pyg(source, duplicates=duplicates or "count")
    hint = 'give a matrix under the types that it joins: {("user", "item"): matrix}' if _is_matrix(source) else ""
    raise SourceError(
        f"cannot load a graph from {type(source).__name__}; {hint or 'help(neupath.load) lists what can be loaded'}"
    )


# ---- Tables and triples --------------------------------------------------------------------------
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
    given = _Mapping(tables)
    own = config or Config()
    described = replace(own, nodes=given.nodes | dict(own.nodes), edges=[*given.edges, *own.edges])
    return read_tables(_recognise(given.tables, described, duplicates, "the tables"))


def _recognise(tables: Mapping[str, Table], settings: Config, duplicates: Duplicates | None, where: str) -> Plan:
    """Recognise tables in memory, which a graph.toml calls by their names."""

    def find(name: str) -> Table:
        if name not in tables:
            raise SourceError(f"graph.toml names the table {name!r}, which is not given (there are {listed(tables)})")
        return tables[name]

    return recognise(Source(list(tables.values()), find, where, settings, duplicates, in_files=False))


class _Mapping:
    """What `from_tables` is given, as tables under names, and what their keys say of them."""

    def __init__(self, content: Mapping[Any, Any]) -> None:
        self.tables: dict[str, Table] = {}
        self.nodes: dict[str, NodesConfig] = {}
        self.edges: list[EdgesConfig] = []
        parts = {key: _with_options(value) for key, value in content.items()}
        relations = [_checked_key(key) for key in parts if not isinstance(key, str)]
        ends = {end for key in relations for end in (key[0], key[-1])}
        for key, (table, options) in parts.items():
            if isinstance(key, str):
                self._add_table(key, table, options, is_end=key in ends)
        for key in relations:
            if _is_matrix(parts[key][0]):
                self._add_matrix_nodes(key, parts[key][0])
        for key in relations:
            self._add_edges(key, *parts[key])

    def _add_table(self, key: str, content: Any, options: Mapping[str, Any], *, is_end: bool) -> None:
        """Add a table under a name; it holds the nodes of a type if a relation or options name it so."""
        is_explicit = is_end or bool(options)
        table = _named_table(content, key, f"the table of {key}" if is_explicit else f"the table {key!r}")
        self.tables[key] = table
        if is_explicit:
            id_ = {"id": "id"} if "id" in table.columns else {}
            self.nodes[key] = checked_options(NodesConfig, {"file": key, **id_, **options}, key)

    def _add_matrix_nodes(self, key: RelationKey, matrix: Any) -> None:
        """Add the nodes that only matrices give: as many as they have rows or columns, counted from 0."""
        _check_matrix(key, matrix)
        for end, size in zip((key[0], key[-1]), map(int, matrix.shape), strict=True):
            if end not in self.nodes:
                self.nodes[end] = NodesConfig(f"{end} (rows)", "id")
                rows = pa.table({"id": np.arange(size)})
                self.tables[self.nodes[end].file] = ArrowTable(rows, end, f"the rows of {end}")
            if size != len(self._ids(end)):
                raise GraphError(
                    f"the matrix of relation {key} has {size:,} {end} nodes, but {len(self._ids(end)):,} are given "
                    f"elsewhere; rows and columns are the nodes of the two types, in order"
                )

    def _ids(self, node_type: str) -> pa.Array:
        entry = self.nodes[node_type]
        table = self.tables[entry.file]
        column = table.column(entry.id, "id") if entry.id else table.columns[0]
        return Selection(table, {"id": column}).read().columns["id"]

    def _add_edges(self, key: RelationKey, content: Any, options: Mapping[str, Any]) -> None:
        if _is_matrix(content):
            content = _matrix_edges(content, self._ids(key[0]), self._ids(key[-1]))
        table = self.tables[str(key)] = _named_table(content, "_".join(key), f"the table of relation {key}")
        if len(table.columns) < 2:
            raise GraphError(f"{table.title} has one column; it needs two, the ids of both ends")
        name = key[1] if len(key) == 3 else "_".join(key)
        described = {"name": name, "file": str(key), "source": key[0], "target": key[-1]}
        self.edges.append(checked_options(EdgesConfig, {**described, **options}, str(key)))


def from_table(table: Frame, *, config: Config | None = None, duplicates: Duplicates | None = None) -> HIN:
    """Make a graph from one table: triples, a relation, or nodes with columns that hold edges."""
    only = {"": _named_table(table, "", "the table")}
    return read_tables(_recognise(only, config or Config(), duplicates, "the table"))


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
    described = TriplesConfig(type=node_type)
    if named is None or named.relation is None:
        described = replace(described, columns=table.columns[:3])
    if types is not None:
        ends = (table.columns[0], table.columns[2]) if described.columns or named is None else named.ids
        content = table.read(table.columns, {})
        for column, end in zip(("<head type>", "<tail type>"), ends, strict=True):
            entities = content[end].cast(pa.string()).combine_chunks().dictionary_encode()
            kinds = [types.get(entity, node_type or "entity") for entity in entities.dictionary.to_pylist()]
            content = content.append_column(column, pa.array(kinds, pa.string()).take(entities.indices))
        table = ArrowTable(content, table.name, table.title)
        described = replace(described, type=None, head_type="<head type>", tail_type="<tail type>")
    settings = replace(config or Config(), triples=described)
    return read_tables(_recognise({"": table}, settings, duplicates, table.title))


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


_OF_TABLES: Any = {Mapping: from_tables, (list, tuple): from_tuples}


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


# ---- Nodes and edges as tables -------------------------------------------------------------------
_SELF_EVIDENT = {pa.string(): "text", pa.int64(): "integer"}
"""Attributes that may be read as something else, and the word of graph.toml that prevents it."""


class _Parts:
    """The nodes and edges of an object as tables; `as_written` if attributes are what they look like."""

    def __init__(self, *, as_written: bool = False) -> None:
        self.nodes: list[NodePlan] = []
        self.edges: list[EdgePlan] = []
        self.notes: list[str] = []
        self._as_written = as_written

    def plan(self, duplicates: Duplicates) -> Plan:
        """Return the plan of what was added; ids are what they are, also those that look empty."""
        return Plan(self.nodes, self.edges, ReadOptions(duplicates, notes=self.notes, missing_ids=(), fold_ids=False))

    def add_nodes(self, kind: str, columns: Mapping[str, pa.Array], attributes: Mapping[str, pa.Array]) -> None:
        """Add the nodes of a type, with the columns id and perhaps name."""
        self.nodes.append(NodePlan(kind, self._select(f"the nodes of {kind}", kind, columns, attributes, attributes)))

    def add_edges(
        self, relation: Relation, columns: Mapping[str, pa.Array], attributes: Mapping[str, pa.Array], label: str
    ) -> None:
        """Add the edges of a relation, with the columns source, target and perhaps weight; notes call them `label`."""
        chosen = ChosenColumns(list(attributes))
        if not self._as_written:
            chosen = choose_columns(ArrowTable(pa.table(attributes), label, label), ())
            self.notes += chosen.notes(label)
        title = f"the edges of {relation}"
        self.edges.append(EdgePlan(relation, self._select(title, label, columns, attributes, chosen.columns)))

    def _select(
        self,
        title: str,
        label: str,
        columns: Mapping[str, pa.Array],
        attributes: Mapping[str, pa.Array],
        chosen: Iterable[str],
    ) -> Selection:
        names = {role: f"<{role}>" for role in columns}  # which no attribute is called
        content = {**attributes, **{names[role]: column for role, column in columns.items()}}
        words = {name: _SELF_EVIDENT.get(values.type) for name, values in attributes.items()}
        kinds = {name: word for name, word in words.items() if word} if self._as_written else {}
        return Selection(ArrowTable(pa.table(content), label, title), names, list(chosen), kinds=kinds)


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

    >>> from neupath import load
    >>> from neupath.io import to_networkx
    >>> from_networkx(to_networkx(load("toy"))).schema.node_types
    ('author', 'paper', 'venue')

    """
    return read_tables(networkx_plan(graph, node_type=node_type, relation=relation, duplicates=duplicates))


def networkx_plan(
    graph: "nx.Graph[Any]",
    *,
    node_type: str | None = None,
    relation: str | None = None,
    duplicates: Duplicates = "count",
) -> Plan:
    """Return the nodes and edges of a NetworkX graph as tables; the parameters are those of `from_networkx`."""
    is_ours = graph.graph.get("written_by") == "neupath"  # by to_networkx: each attribute is what it is called
    parts = _Parts(as_written=is_ours)
    type_key = node_type or ("type" if is_ours else _find_type_key([data for _, data in graph.nodes(data=True)]))
    # a label is usually only drawn; it may be the relation if the types, too, are in an unusual attribute
    others = NETWORK_RELATIONS if node_type or type_key == "type" else (*NETWORK_RELATIONS, "label")
    carriers = [data for _, _, data in graph.edges(data=True)]
    name_key = relation or _find_key("relation", () if is_ours else others, carriers)
    by_key = relation is None and name_key == "relation" and not is_ours and _keys_are_relations(graph)
    read_from, unless = "were read from the attribute", "ignores it"
    if node_type is None and type_key != "type":
        parts.notes.append(f"types {read_from} {type_key!r}; from_networkx(graph, node_type='type') {unless}")
    if relation is None and name_key != "relation":
        parts.notes.append(f"relations {read_from} {name_key!r}; from_networkx(graph, relation='relation') {unless}")
    kinds = {node: str(data.get(type_key, "node")) for node, data in graph.nodes(data=True)}
    if type_key == "labels":  # Neo4j writes labels with a colon in front
        kinds = {node: kind.removeprefix(":") for node, kind in kinds.items()}
    members: dict[str, list[Hashable]] = {}
    for node, kind in kinds.items():
        members.setdefault(kind, []).append(node)
    check_counts(len(members), 0)
    name_keys = ("name",) if is_ours else ("name", "title", "label")
    ids: dict[Hashable, Any] = {}
    for kind, nodes in members.items():
        ids |= _add_networkx_nodes(parts, kind, {node: graph.nodes[node] for node in nodes}, type_key, name_keys)
    order = {kind: place for place, kind in enumerate(members)}
    links: dict[Relation, list[tuple[Hashable, Hashable, Mapping[str, Any]]]] = {}
    edges: Any = graph.edges  # with keys only where it is a multigraph
    for start, end, *key, data in edges(keys=True, data=True) if by_key else edges(data=True):
        name = key[0] if by_key else str(data.get(name_key, "edge"))
        if not graph.is_directed() and order[kinds[start]] > order[kinds[end]]:
            start, end = end, start  # noqa: PLW2901
        directed = (graph.is_directed() and bool(data.get("directed", True))) or kinds[start] != kinds[end]
        links.setdefault(Relation(kinds[start], name, kinds[end], directed), []).append((start, end, data))
    left_out = {name_key, "weight", "directed"} | (set() if is_ours else {"id"})
    for link, entries in links.items():
        starts, ends, values = zip(*entries, strict=True)
        columns = {"source": pa.array([ids[node] for node in starts]), "target": pa.array([ids[node] for node in ends])}
        columns["weight"] = pa.array([_as_weight(data.get("weight", 1.0), start, end) for start, end, data in entries])
        parts.add_edges(link, columns, _attributes(values, left_out), link.name)
    if by_key:
        parts.notes.append(
            "relations were read from the keys of edges; from_networkx(graph, relation='relation') ignores them"
        )
    return parts.plan(duplicates)


def _add_networkx_nodes(
    parts: _Parts,
    kind: str,
    nodes: Mapping[Hashable, Mapping[str, Any]],
    type_key: str,
    name_keys: Sequence[str],
) -> dict[Hashable, Any]:
    """Add the nodes of a type; return their ids."""
    ids = [data.get("id", node) for node, data in nodes.items()]
    integers = all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in ids)
    ids = [int(i) for i in ids] if integers else [str(i) for i in ids]
    held = {key for data in nodes.values() for key in data} - {type_key}
    name_key = next((key for key in name_keys if key in held), "name")
    names = [data.get(name_key) for data in nodes.values()]
    columns = {"id": pa.array(ids, pa.int64() if integers else pa.string())}
    if any(name is not None for name in names):
        columns["name"] = pa.array([None if name is None else str(name) for name in names])
    attributes = _attributes(nodes.values(), {type_key, "id", name_key})
    parts.add_nodes(kind, columns, {key: attributes[key] for key in sorted(attributes)})
    return dict(zip(nodes, ids, strict=True))


def _attributes(carriers: Collection[Mapping[str, Any]], left_out: Collection[str]) -> dict[str, pa.Array]:
    """Return the attributes of nodes or edges, but for some."""
    keys = dict.fromkeys(key for data in carriers for key in data if key not in left_out)
    return {str(key): _values([data.get(key) for data in carriers]) for key in keys}


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
_MOST_VALUES, _FEW_VALUES, _NODES_PER_VALUE = 64, 8, 10
"""Types have few distinct values: at most 64, and at most 8 or one per ten nodes or edges."""
Carriers = Collection[Mapping[str, Any]]


def _find_key(usual: str, others: Sequence[str], carriers: Carriers) -> str:
    """Return the attribute that holds types or relations: the usual one, or else the first that looks like them.

    >>> _find_key("type", NETWORK_TYPES, [{"kind": "user"}, {"kind": "item"}])
    'kind'
    >>> _find_key("type", NETWORK_TYPES, [{"kind": "user"}, {"kind": 1.5}])
    'type'
    """
    if any(usual in data for data in carriers):
        return usual
    return next((key for key in others if _names_kinds([data.get(key) for data in carriers])), usual)


def _find_type_key(carriers: Carriers) -> str:
    """Return the attribute that holds types; `label` or `bipartite` may be it, if no other is.

    >>> _find_type_key([{"bipartite": 0}, {"bipartite": 1}])
    'bipartite'
    """
    key = _find_key("type", NETWORK_TYPES, carriers)
    if key != "type" or any("type" in data for data in carriers):
        return key
    if {str(data.get("bipartite")) for data in carriers} == {"0", "1"}:
        return "bipartite"
    is_named = all("name" in data or "title" in data for data in carriers)  # so that a label is no name
    for key in ("label", "bipartite"):
        values = [data.get(key) for data in carriers]
        if _names_kinds(values) and (1 if is_named else 2) * len(set(values)) <= len(values) - is_named:
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
    parts = _Parts()
    kinds = dict.fromkeys([*data.node_types, *(end for kind in data.edge_types for end in (kind[0], kind[2]))])
    ids = {kind: _add_pyg_nodes(parts, data, kind) for kind in kinds}
    edges = {kind: _pyg_edges(kind, data[kind]) for kind in data.edge_types}
    for kind, edge in list(edges.items()):
        forward = edges.get((kind[2], kind[1].removeprefix("rev_"), kind[0]))
        if kind[1].startswith("rev_") and forward is not None and repeats_backwards(edge, forward):
            parts.notes.append(f"relation {kind} was left out: it repeats {forward.relation} backwards")
            del edges[kind]
    for kind, edge in edges.items():
        columns = {"weight": pa.array(edge.weights)} if edge.weights is not None else {}
        for end, rows, own in (("source", edge.sources, ids[kind[0]]), ("target", edge.targets, ids[kind[2]])):
            outside = rows[(rows < 0) | (rows >= len(own))]
            if len(outside):
                raise GraphError(f"relation '{edge.relation}' names a row {outside[0]}, but there are {len(own)} rows")
            columns[end] = own.take(pa.array(rows))
        values = dict(zip(edge.attributes.column_names, edge.attributes.columns, strict=True))
        parts.add_edges(edge.relation, columns, values, kind[1])
    return read_tables(parts.plan(duplicates))


def _add_pyg_nodes(parts: _Parts, data: "HeteroData", kind: str) -> pa.Array:
    """Add the nodes of a type, with the ids and names that `to_pyg` adds, if they are there; return their ids."""
    count = data[kind].num_nodes if kind in data.node_types else None
    if count is None:
        raise GraphError(f"the HeteroData does not say how many nodes {kind!r} has; set data[{kind!r}].num_nodes")
    columns = {"id": pa.array(np.arange(count))}
    for role, key in (("id", "ids"), ("name", "names")):
        labels = data[kind].get(key)
        if isinstance(labels, np.ndarray) and len(labels) == count:
            columns[role] = pa.array(labels, pa.int64() if labels.dtype.kind == "i" else pa.string())
    parts.add_nodes(kind, columns, {})
    return columns["id"]


def _pyg_edges(kind: tuple[str, str, str], store: Any) -> Edges:
    """Return a relation of a HeteroData: tensors, arrays and lists with a value per edge are its attributes."""
    if "edge_index" not in store:
        raise GraphError(f"relation {kind} of the HeteroData has no edge_index; set data[{kind}].edge_index")
    sources, targets = store.edge_index.cpu().numpy().astype(np.int64)
    weight = store.get("edge_weight", store.get("edge_attr"))
    if weight is not None and weight.numel() != len(sources):
        weight = None
    columns: dict[str, Any] = {}
    for key in store.keys():  # noqa: SIM118  a store yields its values, not its keys
        value = store[key]
        if key == "edge_index" or value is weight or not hasattr(value, "__len__") or isinstance(value, str):
            continue
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else value
        if len(array) != len(sources) or getattr(array, "ndim", 1) > 2:
            continue
        if getattr(array, "ndim", 1) == 2:
            columns |= {f"{key}_{number}": pa.array(array[:, number]) for number in range(array.shape[1])}
        else:
            plain = isinstance(array, np.ndarray) and array.dtype.kind in "biufM"
            columns[key] = pa.array(array) if plain else _values(list(array))
    weights = None if weight is None else weight.detach().reshape(-1).cpu().double().numpy()
    return Edges(Relation(*kind), sources, targets, weights, pa.table(columns))


def repeats_backwards(edge: Edges, forward: Edges) -> bool:
    """Whether the edges of one relation are those of another, reversed."""

    def in_order(*columns: Any) -> Any:
        filled = [column for column in columns if column is not None]
        return np.stack(filled)[:, np.lexsort(filled)]

    ours = in_order(edge.sources, edge.targets, edge.weights)
    return np.array_equal(ours, in_order(forward.targets, forward.sources, forward.weights))
