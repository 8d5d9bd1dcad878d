"""From tables of ids to a HIN: ids become rows, edges are checked, and errors say where the bad row stands."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.errors import GraphError, listed
from neupath.graph.hin import HIN, Duplicates, Edges, Floats
from neupath.graph.nodes import Nodes, Rows
from neupath.graph.schema import Relation
from neupath.io.row_errors import bad_weight, empty_end, empty_id, empty_word, lost_end, repeated_id, table_of

Place = Callable[[int], str]
"""Says where a row of a table stands, for error messages."""

INTEGERS = r"^(0|-?[1-9][0-9]{0,17})$"
_WEIGHT = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class NodeTable:
    """The nodes of one type as given: ids, and names and attributes where there are any."""

    node_type: str
    ids: pa.Array
    place: Place
    names: pa.Array | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))
    typed: bool = False
    """Whether the table says itself which ids are integers; those of text tables are read off how they look."""


@dataclass(frozen=True)
class EdgeTable:
    """The edges of one relation as given: the ids at both ends, and weights where there are any."""

    relation: Relation
    sources: pa.Array
    targets: pa.Array
    place: Place
    weights: pa.Array | None = None


@dataclass(frozen=True)
class TypedTable:
    """Nodes of all types in one table; ids are unique across types."""

    ids: pa.Array
    types: pa.Array
    place: Place
    names: pa.Array | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))


@dataclass(frozen=True)
class TripleTable:
    """Edges of all relations in one table."""

    sources: pa.Array
    relations: pa.Array
    targets: pa.Array
    place: Place
    weights: pa.Array | None = None


@dataclass(frozen=True)
class Choices:
    """What a user may choose about a graph, whatever it is read from."""

    duplicates: Duplicates = "count"
    take: Sequence[str] = ()
    """Names of the relations to take; none means all."""
    undirected: Sequence[str] = ()
    """Names of the relations of a type to itself that have no direction."""
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def assemble(nodes: Iterable[NodeTable], edges: Iterable[EdgeTable], choices: Choices) -> HIN:
    """Make a graph of one table a node type and one a relation.

    A type without a table has the nodes its edges name, in order of appearance; with a table, every edge must lead
    to one of its nodes. Ids that all read as integers are integers.
    """
    taken = list(edges)
    tables: dict[str, NodeTable] = {}
    for table in nodes:
        if tables.setdefault(table.node_type, table) is not table:
            raise GraphError(f"nodes of type {table.node_type!r} are given in two tables; give each type once")
    for node_type in dict.fromkeys(t for e in taken for t in (e.relation.source, e.relation.target)):
        if node_type not in tables:
            tables[node_type] = NodeTable(node_type, _ids_in(node_type, taken), lambda row: f"row {row + 1}")
    all_nodes = {node_type: _to_nodes(table) for node_type, table in tables.items()}
    rows_of = {node_type: _RowFinder(table.ids, table_of(node_type)) for node_type, table in tables.items()}
    built = [
        Edges(
            edge.relation,
            rows_of[edge.relation.source].rows(edge.sources, edge.relation.source, edge.place),
            rows_of[edge.relation.target].rows(edge.targets, edge.relation.target, edge.place),
            to_weights(edge.weights, edge.place),
        )
        for edge in taken
    ]
    return _build(all_nodes.values(), built, choices)


def assemble_typed(nodes: TypedTable, edges: TripleTable, choices: Choices) -> HIN:
    """Make a graph of one table of typed nodes and one of named edges.

    A relation's name may stand between several pairs of types: each pair is a relation of its own.
    """
    _refuse_repeats(nodes.ids, nodes.place)
    finder = _RowFinder(nodes.ids, "nodes table")
    sources = finder.rows(edges.sources, "node", edges.place)
    targets = finder.rows(edges.targets, "node", edges.place)
    weights = to_weights(edges.weights, edges.place)
    for what, column, place in (("type", nodes.types, nodes.place), ("relation", edges.relations, edges.place)):
        missing = missing_ids(column)
        if len(missing):
            raise empty_word(place(int(missing[0])), what)
    type_names, type_codes = _encode(nodes.types)
    relation_names, relation_codes = _encode(edges.relations)
    refuse_unknown_names(choices, relation_names)
    row_in_type = _positions(type_codes, len(type_names))
    shape = (len(relation_names), len(type_names), len(type_names))
    kinds = np.ravel_multi_index((relation_codes, type_codes[sources], type_codes[targets]), shape)
    built = []
    for kind, chosen in _groups(kinds):
        relation, source, target = np.unravel_index(kind, shape)
        name = relation_names[relation]
        if choices.take and name not in choices.take:
            continue
        directed = not (name in choices.undirected and source == target)
        built.append(
            Edges(
                Relation(type_names[source], name, type_names[target], directed),
                row_in_type[sources[chosen]],
                row_in_type[targets[chosen]],
                None if weights is None else weights[chosen],
            )
        )
    return _build(_split_by_type(nodes, type_names, type_codes), built, choices)


def _split_by_type(nodes: TypedTable, type_names: list[str], type_codes: NDArray[np.int64]) -> list[Nodes]:
    parts = []
    for code, node_type in enumerate(type_names):
        rows = pa.array(np.flatnonzero(type_codes == code))
        names = None if nodes.names is None else nodes.names.take(rows)
        table = NodeTable(node_type, nodes.ids.take(rows), nodes.place, names, nodes.attributes.take(rows))
        parts.append(_to_nodes(table))
    return parts


def _groups(codes: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct code, ascending, with the positions where it stands, ascending."""
    order = np.argsort(codes, kind="stable")
    distinct, starts = np.unique(codes[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=False)


def _build(nodes: Iterable[Nodes], edges: Iterable[Edges], choices: Choices) -> HIN:
    return HIN.build(
        nodes, edges, duplicates=choices.duplicates, abbreviations=choices.abbreviations, notes=choices.notes
    )


def refuse_unknown_names(choices: Choices, names: Sequence[str]) -> None:
    """Refuse a choice about a relation that there is not."""
    for name in (*choices.take, *choices.undirected):
        if name not in names:
            raise GraphError(f"no relation named {name!r} to take or to read as undirected (there are {listed(names)})")


def _ids_in(node_type: str, edges: list[EdgeTable]) -> pa.Array:
    """List the distinct ids of a type in its edges, in order of appearance."""
    columns = [
        ids
        for edge in edges
        for end, ids in ((edge.relation.source, edge.sources), (edge.relation.target, edge.targets))
        if end == node_type
    ]
    return distinct_ids(columns)


def distinct_ids(columns: Sequence[pa.Array]) -> pa.Array:
    """List the distinct ids in some columns, in order of appearance; empty ones are for the check of edges to find."""
    same = len({column.type for column in columns}) == 1
    distinct = pc.unique(pa.chunked_array(columns if same else [pc.cast(column, pa.string()) for column in columns]))
    return pc.array_filter(distinct, pa.array(np.isin(np.arange(len(distinct)), missing_ids(distinct), invert=True)))


def _to_nodes(table: NodeTable) -> Nodes:
    _refuse_repeats(table.ids, table.place)
    ids = table.ids if table.typed else integers_if_all(table.ids)
    return Nodes(table.node_type, ids, table.names, table.attributes)


def integers_if_all(ids: pa.Array) -> pa.Array:
    """Return ids as integers where they all read as such and would print the same again; else as they are."""
    if not pa.types.is_string(ids.type):
        return ids
    return pc.cast(ids, pa.int64()) if len(ids) > 0 and all_read_as_integers(ids) else ids


def all_read_as_integers(texts: pa.Array) -> bool:
    """Whether all of some texts are integers that would print the same again."""
    return bool(pc.all(pc.match_substring_regex(texts, INTEGERS)).as_py() is not False)


def _refuse_repeats(ids: pa.Array, place: Place) -> None:
    missing = missing_ids(ids)
    if len(missing):
        raise empty_id(place(int(missing[0])))
    encoded = ids.dictionary_encode()
    if len(encoded.dictionary) < len(ids):
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        row = int(np.setdiff1d(np.arange(len(codes)), np.unique(codes, return_index=True)[1])[0])
        raise repeated_id(place(row), ids[row].as_py())


def missing_ids(ids: pa.Array) -> Rows:
    """Return the rows without an id: nothing, or an empty text."""
    empty = pc.is_null(ids)
    if pa.types.is_string(ids.type):
        empty = pc.or_(empty, pc.fill_null(pc.equal(ids, ""), True))
    return np.flatnonzero(empty.to_numpy(zero_copy_only=False)).astype(np.int64)


class _RowFinder:
    """Turns ids into rows; the strings of a table are hashed once a column."""

    def __init__(self, ids: pa.Array, where: str) -> None:
        self.ids = ids
        self.where = where

    def rows(self, wanted: pa.Array, node_type: str, place: Place) -> Rows:
        missing = missing_ids(wanted)
        if len(missing):
            raise empty_end(place(int(missing[0])), node_type)
        same = wanted.type == self.ids.type
        keys, ids = (wanted, self.ids) if same else (pc.cast(wanted, pa.string()), pc.cast(self.ids, pa.string()))
        found = pc.index_in(keys, value_set=ids)
        if found.null_count:
            row = int(np.flatnonzero(pc.is_null(found).to_numpy(zero_copy_only=False))[0])
            raise lost_end(place(row), node_type, wanted[row].as_py(), self.where, found.null_count)
        rows: Rows = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return rows


def to_weights(column: pa.Array | None, place: Place) -> Floats | None:
    """Return weights as numbers, refusing the first that is none."""
    if column is None:
        return None
    numbers = column
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pc.utf8_trim_whitespace(column)
        numbers = pc.utf8_ltrim(pc.if_else(pc.match_substring_regex(texts, _WEIGHT), texts, None), "+")
    try:
        weights = pc.cast(numbers, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise GraphError(f"{place(0)}: weights of type {column.type} are not numbers") from error
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise bad_weight(place(int(bad[0])), column[int(bad[0])].as_py())
    return np.asarray(weights, dtype=np.float64)


def _encode(column: pa.Array) -> tuple[list[str], NDArray[np.int64]]:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _positions(codes: NDArray[np.int64], count: int) -> Rows:
    """Number the members of each group from 0, in order; shape as codes."""
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=count))[:-1]])
    positions = np.empty(len(codes), dtype=np.int64)
    positions[order] = np.arange(len(codes)) - starts[codes[order]]
    return positions
