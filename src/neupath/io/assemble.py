"""Make a graph of the tables that a plan describes: ids become rows, and errors name the bad row.

`Assembler` is the one path from tables to a graph: which rows are read, which checks are made, in which order, and
what is noted. It has two ends. `MemoryAssembler` numbers ids in memory and gives a `HIN`; `StoreAssembler` in
`io.out_of_core` does so in a database on disk and writes a store, for graphs that may be larger than memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.errors import GraphError
from neupath.graph.hin import HIN, Edges, Floats, check_counts
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes, Rows
from neupath.io.ids import (
    IdFacts,
    all_read_as_integers,
    empty_cell,
    empty_end,
    empty_id,
    empty_looking,
    find_fractions,
    find_twins,
    first_repeat,
    missing_ids,
    repeated_id,
    similar_id,
    to_weights,
    unknown_end,
)
from neupath.io.plan import EdgePlan, NodePlan, Plan, SelectedRows, Selection
from neupath.io.tables import Place
from neupath.io.values import EdgeAttributeColumns, NodeAttributeColumns, TextsOf


def read_tables(plan: Plan) -> HIN:
    """Read the tables of a plan as a graph in memory."""
    return MemoryAssembler(plan).assemble()


# ---- What is read together -----------------------------------------------------------------------
class NodePool:
    """Nodes among which ids are unique: those of one type or, where ids are shared, all."""

    def __init__(self, name: str, plans: Sequence[NodePlan], node_type: str) -> None:
        self.name, self.plans = name, plans
        self.node_type = node_type
        """The type of its nodes if they have no other one."""
        self.attributes = [NodeAttributeColumns(plan.selection) for plan in plans]
        self.places: list[Place] = [plan.selection.place for plan in plans]
        self.lengths: list[int] = []
        """How many nodes each table has."""

    @property
    def place(self) -> Place:
        return _place_in_files(self.places, self.lengths)

    @property
    def is_typed(self) -> bool:
        """Whether a table declares which ids are integers; elsewhere their looks decide."""
        return any(plan.selection.table.typed for plan in self.plans)


class EdgeGroup:
    """The edges that are read together: of one relation or, where ids are shared, all."""

    def __init__(self, number: int, plans: Sequence[EdgePlan]) -> None:
        self.number, self.plans = number, plans
        self.attributes = EdgeAttributeColumns([plan.selection for plan in plans])
        self.lengths: list[int] = []
        """How many edges each table has."""

    @property
    def place(self) -> Place:
        return _place_in_files([plan.selection.place for plan in self.plans], self.lengths)

    @property
    def is_weighted(self) -> bool:
        return any("weight" in plan.selection.columns for plan in self.plans)


def _place_in_files(places: Sequence[Place], lengths: Sequence[int]) -> Place:
    """Return a function that finds the file and line of a row in several files that were read one after the other."""

    def find(row: int) -> str:
        left = row
        for place, length in zip(places, lengths, strict=False):
            if left < length:
                return place(left)
            left -= length
        return f"row {row + 1}"

    return find


# ---- The one path --------------------------------------------------------------------------------
class Assembler(ABC):
    """Makes a graph of the tables of a plan; raises at the first bad row.

    Edges are read first, then nodes; ids of nodes are checked before the ends of edges, and these before weights.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.options = plan, plan.options
        self.notes = list(plan.options.notes)
        self.groups = self._group_edges()
        self.pools = self._pool_nodes()

    def _group_edges(self) -> list[EdgeGroup]:
        if self.plan.shared is not None:
            return [EdgeGroup(0, self.plan.edges)]
        return [EdgeGroup(number, [plan]) for number, plan in enumerate(self.plan.edges)]

    def _pool_nodes(self) -> dict[str, NodePool]:
        shared = self.plan.shared
        if shared is not None:
            return {"node": NodePool("node", self.plan.nodes, shared.node_type)}
        pools: dict[str, NodePool] = {}
        for plan in self.plan.nodes:
            if plan.node_type in pools:
                raise GraphError(f"nodes of type {plan.node_type!r} are given in two tables; give each type once")
            pools[plan.node_type] = NodePool(plan.node_type, [plan], plan.node_type)
        for group in self.groups:
            for end in self.ends(group):
                pools.setdefault(end, NodePool(end, [], end))
        return pools

    def ends(self, group: EdgeGroup) -> tuple[str, str]:
        """Return the names of the two pools that the edges of a group join."""
        relation = group.plans[0].relation
        return (relation.source, relation.target) if self.plan.shared is None else ("node", "node")

    @property
    def table_of_nodes(self) -> str | None:
        """What errors call the table of nodes, by default the node table of its type."""
        if self.plan.shared is None:
            return None
        return "node tables" if len(self.plan.nodes) > 1 else "nodes table"

    def read_all(self) -> None:
        """Read all tables, and check ids; raise at the first bad row."""
        for group in self.groups:
            self.put_edges(group, self._read_edges(group))
        for pool in self.pools.values():
            if pool.plans:
                self.put_nodes(pool, self._read_nodes(pool))
            else:
                self.put_ends(pool)
        for pool in self.pools.values():
            if pool.plans:
                self._refuse_repeats(pool)
        for group in self.groups:
            self.find_ends(group)

    def _read_edges(self, group: EdgeGroup) -> Iterator[pa.Table]:
        """Yield the edges of a group with the columns source, target and perhaps relation, weight, types and names."""
        for number, plan in enumerate(group.plans):
            group.lengths.append(0)
            for rows in self.first_pass(plan.selection):
                before = sum(group.lengths)
                group.lengths[number] += len(rows)
                group.attributes.look(number, rows.attributes)
                yield self._edge_columns(group, plan, rows, before)

    def _edge_columns(self, group: EdgeGroup, plan: EdgePlan, rows: SelectedRows, before: int) -> pa.Table:
        columns = dict(rows.columns)
        if group.is_weighted and "weight" not in columns and len(self.plan.nodes) > 1:
            columns["weight"] = pa.repeat("1", len(rows))  # in a property graph, some relations have weights
        if self.plan.shared is None:
            return pa.table(columns)
        names = columns.get("relation", pa.repeat(plan.relation.name, len(rows)))
        columns["relation"] = names.cast(pa.string())
        return pa.table(self._with_types(columns, plan.selection, lambda row: group.place(before + row)))

    def _with_types(self, columns: dict[str, pa.Array], selection: Selection, place: Place) -> dict[str, pa.Array]:
        """Return edges whose ids are shared with the types of their ends, where the edges say them."""
        shared = self.plan.shared
        assert shared is not None
        for end in ("source", "target"):
            columns[end] = _in_space(columns[end], selection.spaces.get(end))
            if shared.prefixed:
                columns[f"{end}_type"] = _prefixes(columns[end], place)
            elif f"{end}_type" in columns:
                columns[f"{end}_type"] = _plain_labels(columns[f"{end}_type"], shared.labels)
        if shared.labels is not None:
            columns["relation"] = _plain_labels(columns["relation"], shared.labels)
        return columns

    def _read_nodes(self, pool: NodePool) -> Iterator[pa.Table]:
        """Yield the nodes of a pool with the columns key, id and perhaps name and type."""
        for number, (plan, attributes) in enumerate(zip(pool.plans, pool.attributes, strict=True)):
            pool.lengths.append(0)
            for rows in self.first_pass(plan.selection):
                pool.lengths[number] += len(rows)
                attributes.look(rows.attributes)
                yield self._node_columns(pool, plan, rows)

    def _node_columns(self, pool: NodePool, plan: NodePlan, rows: SelectedRows) -> pa.Table:
        shared, several = self.plan.shared, len(pool.plans) > 1
        ids = rows.columns["id"].cast(pa.string()) if several else rows.columns["id"]
        columns = {"key": _in_space(ids, plan.selection.spaces.get("id")), "id": ids}
        if any("name" in each.selection.columns for each in pool.plans):
            columns["name"] = rows.columns.get("name", pa.nulls(len(rows), pa.string()))
        if shared is not None:
            types = rows.columns.get("type", pa.repeat(plan.node_type, len(rows)))
            columns["type"] = _plain_labels(types.cast(pa.string()) if several else types, shared.labels)
        return pa.table(columns)

    def _refuse_repeats(self, pool: NodePool) -> None:
        """Raise at the first node without an id, or else at the first with the id of another."""
        empty = self.first_empty_id(pool)
        if empty is not None:
            raise empty_id(pool.place(empty))
        repeated = self.first_repeated_id(pool)
        if repeated is not None:
            raise repeated_id(pool.place(repeated[0]), repeated[1])

    def note_ids(self, node_type: str, ids: "IdFacts") -> None:
        """Note the ids of a type that look empty, and those that differ from others only by case or spaces."""
        self.notes += ids.notes(node_type, self.options.in_tables)

    def note(self, notes: Sequence[str]) -> None:
        """Add notes that are not there yet: two relations may be read from one table."""
        self.notes += [note for note in notes if note not in self.notes]

    # ---- What the two ends do differently ----
    @abstractmethod
    def first_pass(self, selection: Selection) -> Iterator[SelectedRows]:
        """Read a table for the first time; its attributes are looked at."""

    @abstractmethod
    def put_edges(self, group: EdgeGroup, batches: Iterator[pa.Table]) -> None:
        """Keep the edges of a group."""

    @abstractmethod
    def put_nodes(self, pool: NodePool, batches: Iterator[pa.Table]) -> None:
        """Keep the nodes of a pool."""

    @abstractmethod
    def put_ends(self, pool: NodePool) -> None:
        """Make nodes of the distinct ids of edges, in order of appearance."""

    @abstractmethod
    def first_empty_id(self, pool: NodePool) -> int | None:
        """Return the first node without an id."""

    @abstractmethod
    def first_repeated_id(self, pool: NodePool) -> tuple[int, object] | None:
        """Return the first node with the id of another above it, and that id."""

    @abstractmethod
    def find_ends(self, group: EdgeGroup) -> None:
        """Find the nodes of all ends, then read the weights; raise at the first that is bad."""


# ---- Ids and types of tables whose ids are shared ------------------------------------------------
BIOLINK = "biolink:"
GENERAL_CLASSES = {
    "Entity", "NamedThing", "BiologicalEntity", "PhysicalEntity", "PhysicalEssence", "PhysicalEssenceOrOccurrent",
    "OntologyClass", "ThingWithTaxon", "GenomicEntity", "ChemicalEntityOrGeneOrGeneProduct", "Association",
    "MacromolecularMachineMixin", "GeneOrGeneProduct", "ChemicalOrDrugOrTreatment", "SubjectOfInvestigation",
    "ChemicalEntityOrProteinOrPolypeptide", "DiseaseOrPhenotypicFeature", "Occurrent", "Mixin",
}  # fmt: skip
"""Classes of Biolink that say less than any other beside them."""


def _in_space(ids: pa.Array, space: str | None) -> pa.Array:
    """Return ids behind the space that they belong to; an empty id stays empty."""
    if not space:
        return ids
    texts = ids.cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), texts, pc.binary_join_element_wise(f"{space}:", texts, ""))


def _plain_labels(column: pa.Array, delimiter: str | None) -> pa.Array:
    """Return one label of each cell, without its prefix `biolink:`: the first that is not a general class.

    >>> _plain_labels(pa.array(["biolink:NamedThing|biolink:Gene"]), "|")[0].as_py()
    'Gene'
    """
    if delimiter is None:
        return column
    encoded = column.cast(pa.string()).dictionary_encode()
    plain = []
    for cell in encoded.dictionary.to_pylist():
        labels = [label.removeprefix(BIOLINK) for label in cell.split(delimiter) if label]
        plain.append(next((label for label in labels if label not in GENERAL_CLASSES), labels[0] if labels else ""))
    return pa.array(plain, pa.string()).take(encoded.indices)


def _prefixes(ids: pa.Array, place: Place) -> pa.Array:
    """Return the types that stand before '::' in ids."""
    without = np.flatnonzero(~pc.fill_null(pc.match_substring(ids, "::"), True).to_numpy(zero_copy_only=False))
    if len(without):
        raise GraphError(
            f"{place(int(without[0]))}: the id {ids[int(without[0])].as_py()!r} has no type before '::', but the ids "
            f'above it have one; give all ids a type, or set type = "entity" under [triples] in graph.toml to read '
            f"all as one type"
        )
    return pc.list_element(pc.split_pattern(ids, "::", max_splits=1), 0)


# ---- In memory -----------------------------------------------------------------------------------
@dataclass
class _Nodes:
    """The nodes of a pool in memory."""

    keys: pa.Array
    """What the ends of edges are looked up by: the ids, behind their spaces if they have some."""
    ids: pa.Array
    types: pa.Array | None = None
    """The type of each node, or None if all have one."""
    names: pa.Array | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))
    type_names: Sequence[str] = ()
    type_codes: NDArray[np.int64] | None = None
    row_in_type: Rows | None = None


@dataclass
class _EdgeRows:
    """The edges of a group in memory: their columns as they were read, then as rows."""

    columns: dict[str, pa.Array]
    """Ids go once their nodes are known."""
    ends: dict[str, NDArray[np.integer]] = field(default_factory=dict)
    """source, target -> the nodes there, by their place in the pool."""
    weights: Floats | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))


class MemoryAssembler(Assembler):
    """Reads whole tables into a graph in memory."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._attributes: dict[int, pa.Table] = {}
        """The attributes that were read of each selection, by its identity."""
        self._edges: list[_EdgeRows] = []
        self._nodes: dict[str, _Nodes] = {}

    def assemble(self) -> HIN:
        """Return the graph."""
        self.read_all()
        nodes = [each for pool in self.pools.values() for each in self._build_nodes(pool)]
        edges = [each for group in self.groups for each in self._build_edges(group)]
        for each in nodes:
            self.note_ids(each.node_type, self._look_at_ids(each, edges))
        options = self.options
        hin = HIN.build(
            nodes, edges, duplicates=options.duplicates, abbreviations=options.abbreviations, notes=self.notes
        )
        return replace(hin, notes=(*hin.notes, *_note_backwards(hin))) if self._edges_say_types else hin

    # ---- Tables ----
    def first_pass(self, selection: Selection) -> Iterator[SelectedRows]:
        rows = selection.read()
        self._attributes[id(selection)] = rows.attributes
        yield rows

    def _attributes_again(self, selection: Selection, types: Mapping[str, pa.DataType]) -> pa.Table:
        """Return the attributes of a table with some types; what was read as something else is read again."""
        attributes = self._attributes[id(selection)]
        other = {column: kind for column, kind in types.items() if attributes.schema.field(column).type != kind}
        if not other:
            return attributes
        again = replace(selection, attributes=list(other)).read(other).attributes
        for column in other:
            attributes = attributes.set_column(attributes.column_names.index(column), column, again[column])
        return attributes

    def _texts_of(self, selection: Selection) -> TextsOf:
        return lambda column: [self._attributes[id(selection)][column]]

    def put_edges(self, group: EdgeGroup, batches: Iterator[pa.Table]) -> None:
        assert group.number == len(self._edges)
        self._edges.append(_EdgeRows(_columns(list(batches))))

    def put_nodes(self, pool: NodePool, batches: Iterator[pa.Table]) -> None:
        columns = _columns(list(batches))
        tables = []
        for plan, attributes, place in zip(pool.plans, pool.attributes, pool.places, strict=True):
            self.notes += attributes.notes(self._texts_of(plan.selection))
            tables.append(attributes.convert(self._attributes[id(plan.selection)], place))
        if len(tables) > 1:
            tables = [each.rename_columns([_untyped(name) for name in each.column_names]) for each in tables]
        whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
        nodes = _Nodes(columns["key"], columns["id"], columns.get("type"), columns.get("name"), whole)
        first = _first_rows(nodes.keys) if any(plan.selection.fold_ids for plan in pool.plans) else None
        self._nodes[pool.name] = nodes if first is None else _take_nodes(nodes, first)

    def put_ends(self, pool: NodePool) -> None:
        if self._edges_say_types:
            self._nodes[pool.name] = self._typed_ends(pool)
            return
        columns = [
            (self._edges[group.number], end)
            for group in self.groups
            for end, name in zip(("source", "target"), self.ends(group), strict=True)
            if name == pool.name
        ]
        ids, numbers = _number_ids([edges.columns[end] for edges, end in columns])
        for (edges, end), rows in zip(columns, numbers, strict=True):
            if not len(missing_ids(edges.columns[end])):  # `find_ends` reports those that are missing
                edges.ends[end] = rows
                del edges.columns[end]
        types = None if self.plan.shared is None else pa.repeat(pool.node_type, len(ids))
        self._nodes[pool.name] = _Nodes(ids, ids, types)

    # ---- Ids ----
    def first_empty_id(self, pool: NodePool) -> int | None:
        missing = missing_ids(self._nodes[pool.name].keys)
        return int(missing[0]) if len(missing) else None

    def first_repeated_id(self, pool: NodePool) -> tuple[int, object] | None:
        keys = self._nodes[pool.name].keys
        row = first_repeat(keys)
        return None if row is None else (row, keys[row].as_py())

    def find_ends(self, group: EdgeGroup) -> None:
        edges = self._edges[group.number]
        for end, name in zip(("source", "target"), self.ends(group), strict=True):
            if end not in edges.ends:
                edges.ends[end] = self._rows_of(group, edges.columns[end], self.pools[name])
                del edges.columns[end]
        edges.weights = to_weights(edges.columns.get("weight"), group.place)
        if group.attributes.names:
            edges.attributes = self._edge_attributes(group, edges.weights)

    def _rows_of(self, group: EdgeGroup, ids: pa.Array, pool: NodePool) -> NDArray[np.integer]:
        """Return the places of ids in their pool."""
        nodes, missing = self._nodes[pool.name], missing_ids(ids)
        if len(missing):
            raise empty_end(group.place(int(missing[0])), pool.name)
        same = ids.type == nodes.keys.type
        keys, values = (ids, nodes.keys) if same else (pc.cast(ids, pa.string()), pc.cast(nodes.keys, pa.string()))
        rows = pc.index_in(keys, value_set=values)
        if rows.null_count:
            first = int(np.flatnonzero(pc.is_null(rows).to_numpy(zero_copy_only=False))[0])
            value = ids[first].as_py()
            similar = similar_id(value, nodes.keys)
            raise unknown_end(group.place(first), pool.name, value, rows.null_count, self.table_of_nodes, similar)
        numbers: NDArray[np.integer] = rows.to_numpy(zero_copy_only=False)
        return numbers

    def _edge_attributes(self, group: EdgeGroup, weights: Floats | None) -> pa.Table:
        attributes = group.attributes
        self.note(attributes.decide(lambda number: self._texts_of(attributes.selections[number])))
        parts, start = [], 0
        for number, length in enumerate(group.lengths):
            rows = self._attributes_again(attributes.selections[number], attributes.read_types(number))
            own = None if weights is None else weights[start : start + length]
            parts.append(attributes.convert(number, rows, own, lambda row, start=start: group.place(start + row)))  # type: ignore[misc]
            start += length
        return pa.concat_tables(parts).unify_dictionaries().combine_chunks() if len(parts) > 1 else parts[0]

    # ---- Edges that say the types of their ends ----
    @property
    def _edges_say_types(self) -> bool:
        """Whether edges say the types or names of their ends."""
        columns = self._edges[0].columns if self.plan.shared is not None else {}
        return bool({"source_type", "source_name"} & columns.keys())

    def _typed_ends(self, pool: NodePool) -> _Nodes:
        """Return the distinct pairs of type and id at the ends of edges, in order of appearance."""
        columns, place = self._edges[0].columns, self.groups[0].place
        both_ids = [columns[end] for end in ("source", "target")]
        untyped = pa.repeat(pool.node_type, len(both_ids[0]))
        both_types = [columns.get(f"{end}_type", untyped) for end in ("source", "target")]
        for ids, types in zip(both_ids, both_types, strict=True):
            if len(missing := missing_ids(types)):
                raise empty_cell(place(int(missing[0])), "type")
            if len(missing := missing_ids(ids)):
                raise empty_end(place(int(missing[0])), types[int(missing[0])].as_py())
        ids, types = (pa.chunked_array(both).combine_chunks() for both in (both_ids, both_types))
        _, id_codes = _encode(ids)
        type_names, type_codes = _encode(types)
        _, first, pairs = np.unique(id_codes * len(type_names) + type_codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        rows, first = number[pairs], first[order]
        half = len(both_ids[0])
        self._edges[0].ends = {"source": rows[:half], "target": rows[half:]}
        names, several = _names_of_ends(columns, rows, first)
        if several and "source_type" not in columns:
            raise _shared_names(several, self.plan)
        self.notes += _note_several_names(several, self.plan)
        own = ids.take(pa.array(first))
        return _Nodes(own, own, types.take(pa.array(first)), names)

    # ---- Nodes and edges of each type ----
    def _build_nodes(self, pool: NodePool) -> Iterator[Nodes]:
        nodes, typed = self._nodes[pool.name], self.plan.shared is None and pool.is_typed
        if nodes.types is None:
            yield Nodes(pool.node_type, _as_integers(nodes.ids, typed), nodes.names, nodes.attributes)
            return
        if len(missing := missing_ids(nodes.types)):
            raise empty_cell(pool.place(int(missing[0])), "type")
        nodes.type_names, nodes.type_codes = _encode(nodes.types)
        relations = self._edges[0].columns["relation"]
        if len(missing := missing_ids(relations)):
            raise empty_cell(self.groups[0].place(int(missing[0])), "relation")
        check_counts(len(nodes.type_names), len(relations.unique()))
        nodes.row_in_type = np.empty(len(nodes.ids), dtype=np.int64)
        rows_of_type = dict(_group(nodes.type_codes))
        for code, node_type in enumerate(nodes.type_names):
            rows = rows_of_type[code]
            nodes.row_in_type[rows] = np.arange(len(rows))
            own = _take_nodes(nodes, rows)
            if len(pool.plans) > 1:
                own.attributes = _with_values(own.attributes)
                own.names = None if own.names is None or own.names.null_count == len(rows) else own.names
            yield Nodes(node_type, _as_integers(own.ids, typed), own.names, own.attributes)

    def _build_edges(self, group: EdgeGroup) -> Iterator[Edges]:
        edges = self._edges[group.number]
        if self.plan.shared is None:
            sources, targets = (edges.ends.pop(end).astype(np.int64) for end in ("source", "target"))
            yield Edges(group.plans[0].relation, sources, targets, edges.weights, edges.attributes)
            return
        nodes = self._nodes["node"]
        assert nodes.type_codes is not None
        assert nodes.row_in_type is not None
        relation_names, relation_codes = _encode(edges.columns["relation"])
        self.options.check_names(relation_names)
        types, shape = nodes.type_names, (len(relation_names), len(nodes.type_names), len(nodes.type_names))
        both = [edges.ends[end] for end in ("source", "target")]
        ends = [nodes.type_codes[rows] for rows in both]
        for kind, rows in _group(np.ravel_multi_index((relation_codes, *ends), shape)):
            name, source, target = map(int, np.unravel_index(kind, shape))
            relation = self.options.relation(types[source], relation_names[name], types[target])
            if relation is not None:
                sources, targets = (nodes.row_in_type[each[rows]] for each in both)
                weights = None if edges.weights is None else edges.weights[rows]
                own = edges.attributes.take(pa.array(rows)) if edges.attributes.num_columns else edges.attributes
                yield Edges(relation, sources, targets, weights, _with_values(own))

    def _look_at_ids(self, nodes: Nodes, edges: Sequence[Edges]) -> IdFacts:
        ends = [
            rows
            for each in edges
            for end, rows in ((each.relation.source, each.sources), (each.relation.target, each.targets))
            if end == nodes.node_type
        ]
        counts: dict[str, int] = {}
        if self.options.missing_ids is None:
            for row in empty_looking(nodes.ids).tolist():
                counts[nodes.ids[row].as_py()] = sum(int(np.count_nonzero(np.asarray(rows) == row)) for rows in ends)
        if self.options.fold_ids is not None:
            return IdFacts(counts)
        return IdFacts(counts, find_twins(nodes.ids), find_fractions(nodes.ids))


def _columns(tables: Sequence[pa.Table]) -> dict[str, pa.Array]:
    """Return the columns of tables one after the other; where a table lacks one, it is null."""
    whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")
    return {name: whole[name].combine_chunks() for name in whole.column_names}


def _take_nodes(nodes: _Nodes, rows: Rows) -> _Nodes:
    taken = pa.array(rows)
    types, names = (None if each is None else each.take(taken) for each in (nodes.types, nodes.names))
    attributes = nodes.attributes.take(taken) if nodes.attributes.num_columns else nodes.attributes
    return _Nodes(nodes.keys.take(taken), nodes.ids.take(taken), types, names, attributes)


def _first_rows(ids: pa.Array) -> Rows:
    """Return the rows in which an id stands first."""
    codes = pc.fill_null(ids.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False)
    return np.sort(np.unique(codes, return_index=True)[1]).astype(np.int64)


def _number_ids(columns: Sequence[pa.Array]) -> tuple[pa.Array, list[NDArray[np.integer]]]:
    """Return the distinct ids of some columns in order of appearance, and the number of each id in each column.

    Empty ids are numbered, too.

    >>> _number_ids([pa.array([], pa.string()), pa.array(["b", "a", "b"])])[1][1].tolist()
    [0, 1, 0]
    """
    same = len({column.type for column in columns}) == 1
    all_ids = pa.chunked_array(columns if same else [pc.cast(each, pa.string()) for each in columns])
    chunks = all_ids.dictionary_encode().chunks  # Arrow drops columns without rows
    ids = chunks[-1].dictionary if chunks else pa.array([], all_ids.type)
    filled = iter(chunks)
    codes = [pc.fill_null(next(filled).indices, 0) if len(each) else pa.array([], pa.int32()) for each in columns]
    return ids, [each.to_numpy(zero_copy_only=False) for each in codes]


def _as_integers(ids: pa.Array, is_typed: bool) -> pa.Array:
    """Return ids as integers if all of them read as integers, unless their table declares what they are."""
    if is_typed or not pa.types.is_string(ids.type) or not len(ids) or not all_read_as_integers(ids):
        return ids
    return pc.cast(ids, pa.int64())


def _untyped(name: str) -> str:
    """Return the name of an attribute such as year:int of neo4j-admin without its type."""
    return name.partition(":")[0] or name


def _with_values(attributes: pa.Table) -> pa.Table:
    """Return the attributes that any of some nodes or edges has."""
    return attributes.select([c for c in attributes.column_names if attributes[c].null_count < len(attributes)])


def _group(codes: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct code, ascending, with its positions, ascending."""
    if codes.max(initial=0) < 1 << 15:
        codes = codes.astype(np.int16)  # numpy sorts these by radix, which is several times faster
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for positions in np.split(order, starts) if len(order) else ():
        yield int(codes[positions[0]]), positions


def _encode(column: pa.Array) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct texts of a column in order of appearance, and the number of each."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _names_of_ends(columns: Mapping[str, pa.Array], rows: Rows, first: Rows) -> tuple[pa.Array | None, int]:
    """Return the first name of each node, if there are names, and how many nodes have several."""
    if "source_name" not in columns:
        return None, 0
    both = [columns["source_name"].cast(pa.string()), columns["target_name"].cast(pa.string())]
    names = pa.chunked_array(both).combine_chunks()
    filled = np.setdiff1d(np.arange(len(names)), missing_ids(names))
    codes = names.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    pairs = np.unique(np.stack([rows[filled], codes[filled].astype(np.int64)]), axis=1)
    several = int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())
    named, at = np.unique(rows[filled], return_index=True)
    chosen = np.full(len(first), -1, dtype=np.int64)
    chosen[named] = filled[at]
    return names.take(pa.array(chosen, mask=chosen < 0)), several


def _note_several_names(several: int, plan: Plan) -> list[str]:
    if not several:
        return []
    columns = plan.edges[0].selection.columns
    return [
        f"{several:,} node{'s have' if several > 1 else ' has'} more than one name in {columns['source_name']}, "
        f"{columns['target_name']}: the first is used; if {columns['source']} does not identify nodes, name other "
        f"columns under [triples] in graph.toml"
    ]


def _shared_names(several: int, plan: Plan) -> GraphError:
    """Return the error of ids with several names where no types tell nodes of one id apart."""
    selection = plan.edges[0].selection
    columns = selection.columns
    return GraphError(
        f"{selection.table.title}: {several:,} id{'s' * (several > 1)} in {columns['source']} and "
        f"{columns['target']} have several names in {columns['source_name']} and {columns['target_name']}, so "
        f"they do not identify nodes; name columns of types or of other ids under [triples] in graph.toml (‹config›)"
    )


def _note_backwards(hin: HIN) -> list[str]:
    """Note the relations that have each edge in both directions."""
    types = hin.schema.node_types
    notes = []
    for relation, matrix in hin.matrices.items():
        back = hin.matrices.get(Relation(relation.target, relation.name, relation.source))
        if back is None or not matrix.nnz or matrix.nnz != back.nnz or abs(matrix - back.T).nnz:
            continue
        if relation.source != relation.target and types.index(relation.source) < types.index(relation.target):
            notes.append(f"each edge of {relation} is there in both directions, so paths count it twice")
        elif relation.source == relation.target and matrix.diagonal().sum() < matrix.sum():
            notes.append(
                f"each edge of {relation} is there in both directions; "
                f'undirected = ["{relation.name}"] and duplicates = "drop" in graph.toml read it once'
            )
    return notes
