"""Make a graph of the tables that a plan describes: ids become rows, and errors name the bad row.

`Assembler` is the one path. Each table passes by once, whole or in batches: its ids are numbered, its weights checked
and its attributes looked at. Tables with attributes then pass by again, to convert them. `MemoryAssembler` makes a
`HIN`; `StoreAssembler` in `io.out_of_core` keeps edges on disk and writes a store.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.errors import GraphError
from neupath.graph.hin import HIN, Edges, check_counts
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes, Rows
from neupath.io.ids import (
    Numbering,
    Numbers,
    are_new,
    empty_cell,
    empty_end,
    empty_id,
    missing_ids,
    note_ids,
    read_as_integers,
    repeated_id,
    similar_id,
    to_weights,
    unknown_end,
)
from neupath.io.plan import EdgePlan, NodePlan, Plan, SelectedRows, Selection
from neupath.io.tables import Place, Types
from neupath.io.values import EdgeAttributeColumns, NodeAttributeColumns, TextsOf

ENDS = ("source", "target")
EdgeRows = dict[str, NDArray[Any]]
"""Arrays of edges: source and target are rows of nodes, weight is there if they have some, kind if ids are shared."""
_BLANK_ROWS = 1 << 20


def read_tables(plan: Plan) -> HIN:
    """Read the tables of a plan as a graph in memory."""
    return MemoryAssembler(plan).assemble()


def edges_say_types(plan: Plan) -> bool:
    """Whether edges say the types or names of their ends."""
    said = any({"source_type", "source_name"} & set(edges.selection.columns) for edges in plan.edges)
    return plan.shared is not None and (plan.shared.prefixed or said)


# ---- What is read together -----------------------------------------------------------------------
class _TableRows:
    """The rows of tables that are read one after the other."""

    def __init__(self, selections: Sequence[Selection]) -> None:
        self.selections = selections
        self.lengths = [0] * len(selections)
        """How many rows of each table are read."""

    @property
    def count(self) -> int:
        return sum(self.lengths)

    def place(self, row: int) -> str:
        """Return the file and line of a row."""
        left = row
        for selection, length in zip(self.selections, self.lengths, strict=True):
            if left < length:
                return selection.place(left)
            left -= length
        return f"row {row + 1}"

    def place_after(self, first: int) -> Place:
        """Return the places of rows that are counted from the row `first` on."""
        return lambda row: self.place(first + row)


class NodePool(_TableRows):
    """Nodes among which ids are unique: those of one type or, where ids are shared, all.

    The nodes of a pool without tables are the ends of edges in order of appearance: the sources of a group of edges
    come before its targets, whichever batch they are in.
    """

    def __init__(self, name: str, plans: Sequence[NodePlan], node_type: str) -> None:
        super().__init__([plan.selection for plan in plans])
        self.name, self.plans = name, plans
        self.node_type = node_type
        """The type of its nodes if they have no other one."""
        self.attributes = [NodeAttributeColumns(selection) for selection in self.selections]
        self.keys = Numbering()
        """What the ends of edges are looked up by: the ids, behind their spaces if they have some."""
        self.row_of_key: Numbers | None = None
        """The row of each key, if the nodes are not in the order of their keys."""
        self.ids: Any = None
        self.names: pa.Array | None = None
        """The names that edges give to their ends."""
        self.type_names = [node_type]
        self.types: Numbers | None = None
        """The type of each node, if it is no pool of one type."""
        self.row_in_type: Rows | None = None
        self.kept: Rows | None = None
        """The rows of its tables that are nodes, if ids are folded."""
        self.joins_itself = False
        """Whether edges join its nodes with each other, so that their targets count after all of their sources."""
        self._first_places = np.empty(0, dtype=np.int64)

    @property
    def has_names(self) -> bool:
        return any("name" in selection.columns for selection in self.selections)

    @property
    def is_typed(self) -> bool:
        """Whether a table declares which ids are integers; elsewhere their looks decide."""
        return any(selection.table.typed for selection in self.selections)

    def add_ends(self, ids: Any, column: int, before: int) -> Numbers:
        """Return the keys of the ids in a column of ends, new ones too; `before` says how many rows are above."""
        known = len(self.keys)
        keys = self.keys.number(ids)
        if self.joins_itself:
            new = (column << 40) + before + np.flatnonzero(are_new(keys, known))
            places = np.concatenate([self._first_places, new])
            if known and places[:known].max() >> 40 > column:  # some targets were read before these sources
                own = np.full(len(places), np.iinfo(np.int64).max)
                own[keys[::-1]] = (column << 40) + np.arange(before, before + len(keys))[::-1]
                places = np.minimum(places, own)
            self._first_places = places
        return keys

    def sort_ends(self) -> None:
        """Put the ends of edges into their order of appearance."""
        if (self._first_places[1:] < self._first_places[:-1]).any():
            order = np.argsort(self._first_places)
            self.row_of_key = np.empty(len(order), dtype=np.int32)
            self.row_of_key[order] = np.arange(len(order))
            self.keys.values = self.keys.values.take(pa.array(order))
            self.names = None if self.names is None else self.names.take(pa.array(order))


@dataclass
class _BadIds:
    """The bad ids in a column: the first empty one, and the unknown ends of edges or the repeated ids of nodes."""

    empty: int | None = None
    wrong: int | None = None
    value: object = None
    count: int = 0

    def update(self, ids: Any, wrong: Rows, before: int) -> None:
        missing = missing_ids(ids)
        if self.empty is None and len(missing):
            self.empty = before + int(missing[0])
        if self.wrong is None and len(wrong):
            self.wrong, self.value = before + int(wrong[0]), ids[int(wrong[0])].as_py()
        self.count += len(wrong)


class EdgeGroup(_TableRows):
    """The edges that are read together: of one relation or, where ids are shared, all."""

    def __init__(self, number: int, plans: Sequence[EdgePlan]) -> None:
        super().__init__([plan.selection for plan in plans])
        self.number, self.plans = number, plans
        self.attributes = EdgeAttributeColumns(self.selections)
        self.is_weighted = any("weight" in selection.columns for selection in self.selections)
        self.bad_ends = {end: _BadIds() for end in ENDS}
        self.weight_error: GraphError | None = None
        self.empty_relation: int | None = None
        self.names: dict[str, list[tuple[Numbers, Any]]] = {end: [] for end in ENDS}
        """The keys and names of ends, where edges say them."""


# ---- The one path --------------------------------------------------------------------------------
class Assembler(ABC):
    """Makes a graph of the tables of a plan; raises at the first bad row.

    Nodes are read first, then edges; of these, ends are checked before weights.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.options, self.shared = plan, plan.options, plan.shared
        self.notes = list(plan.options.notes)
        self.groups = [EdgeGroup(number, [edges]) for number, edges in enumerate(plan.edges)]
        self.relations = Numbering()
        """The names of relations where ids are shared."""
        self._types, self._end_ids = Numbering(), Numbering()
        if self.shared is not None:
            self.groups = [EdgeGroup(0, plan.edges)]
        self.pools = self._pool_nodes()
        self.edges_say_types = edges_say_types(plan)

    def _pool_nodes(self) -> dict[str, NodePool]:
        if self.shared is not None:
            pool = NodePool("node", self.plan.nodes, self.shared.node_type)
            pool.joins_itself = True
            return {"node": pool}
        pools: dict[str, NodePool] = {}
        for plan in self.plan.nodes:
            if plan.node_type in pools:
                raise GraphError(f"nodes of type {plan.node_type!r} are given in two tables; give each type once")
            pools[plan.node_type] = NodePool(plan.node_type, [plan], plan.node_type)
        for edges in self.plan.edges:
            for end in (edges.relation.source, edges.relation.target):
                pools.setdefault(end, NodePool(end, [], end))
            pools[edges.relation.source].joins_itself |= edges.relation.source == edges.relation.target
        return pools

    def ends(self, group: EdgeGroup) -> tuple[NodePool, NodePool]:
        """Return the two pools that the edges of a group join."""
        relation = group.plans[0].relation
        source, target = (relation.source, relation.target) if self.shared is None else ("node", "node")
        return self.pools[source], self.pools[target]

    def read_all(self) -> None:
        """Read all tables, and check ids and weights; raise at the first bad row."""
        for pool in self.pools.values():
            if pool.plans:
                self._read_nodes(pool)
        for group in self.groups:
            self._read_edges(group)
        for pool in self.pools.values():
            if not pool.plans:
                pool.sort_ends()
                pool.ids = pool.keys.values
        if self.shared is not None:
            self._find_types(self.pools["node"], self.groups[0])
        for group in self.groups:
            decided = group.attributes.decide(lambda number, own=group.selections: self.texts_of(own[number]))  # type: ignore[misc]
            self.notes += [note for note in decided if note not in self.notes]  # two relations may share a table

    # ---- Nodes ----
    def _read_nodes(self, pool: NodePool) -> None:
        ids, codes, kept, bad = [], [], [], _BadIds()
        is_folded = any(selection.fold_ids for selection in pool.selections)
        for number, (plan, attributes) in enumerate(zip(pool.plans, pool.attributes, strict=True)):
            for rows in self.first_pass(plan.selection):
                before, known = pool.count, len(pool.keys)
                pool.lengths[number] += len(rows)
                attributes.look(rows.attributes)
                columns = self._node_columns(pool, plan, rows)
                numbers = pool.keys.number(columns["key"])
                is_new = are_new(numbers, known)
                bad.update(columns["key"], np.flatnonzero(~is_new & ~is_folded), before)
                if is_folded:
                    kept.append(before + np.flatnonzero(is_new))
                    columns = {name: column.filter(pa.array(is_new)) for name, column in columns.items()}
                ids.append(columns["id"])
                if self.shared is not None:
                    codes.append(self._types.number(columns["type"]))
            self.notes += attributes.notes(self.texts_of(plan.selection))
        if bad.empty is not None:
            raise empty_id(pool.place(bad.empty))
        if bad.wrong is not None:
            raise repeated_id(pool.place(bad.wrong), bad.value)
        pool.ids = join_arrays(ids)
        pool.kept = np.concatenate(kept) if is_folded else None
        pool.types = np.concatenate(codes) if self.shared is not None else None

    def _node_columns(self, pool: NodePool, plan: NodePlan, rows: SelectedRows) -> dict[str, Any]:
        several, ids = len(pool.plans) > 1, rows.columns["id"]
        columns = {"id": ids.cast(pa.string()) if several else ids}
        columns["key"] = _in_space(columns["id"], plan.selection.spaces.get("id"))
        if self.shared is not None:
            types = rows.columns.get("type", pa.repeat(plan.node_type, len(rows)))
            columns["type"] = _plain_labels(types.cast(pa.string()).fill_null(""), self.shared.labels)
        return columns

    def _find_types(self, pool: NodePool, group: EdgeGroup) -> None:
        """Find the type of each node, and its row among those of its type; raise at an empty type or relation."""
        if self.edges_say_types and not pool.plans:
            pairs = pool.keys.values.to_numpy()
            pool.ids, pool.types = self._end_ids.values.take(pa.array(pairs >> 31)), pairs & (2**31 - 1)
        elif not pool.plans:
            pool.types = self._types.number(pa.repeat(pool.node_type, len(pool.ids)))
        assert pool.types is not None
        pool.type_names, pool.types = _encode(self._types.values.take(pa.array(pool.types)))
        if "" in pool.type_names:
            row = int(np.argmax(pool.types == pool.type_names.index("")))
            raise empty_cell(pool.place(row if pool.kept is None else int(pool.kept[row])), "type")
        if group.empty_relation is not None:
            raise empty_cell(group.place(group.empty_relation), "relation")
        check_counts(len(pool.type_names), len(self.relations))
        self.options.check_names(self.relations.values.to_pylist())
        pool.row_in_type = np.empty(len(pool.ids), dtype=np.int64)
        for _, rows in group_rows(pool.types):
            pool.row_in_type[rows] = np.arange(len(rows))

    def typed_nodes(self, pool: NodePool) -> Iterator["TypedNodes"]:
        """Yield the nodes of each type of a pool; ids are integers if all read as such, unless tables declare them."""
        is_declared = self.shared is None and pool.is_typed
        if pool.types is None:
            ids = pool.ids if is_declared else read_as_integers(pool.ids)
            yield TypedNodes(pool.node_type, pool, 0, None, ids)
            return
        for code, rows in group_rows(pool.types):
            yield TypedNodes(pool.type_names[code], pool, code, rows, read_as_integers(pool.ids.take(pa.array(rows))))

    def described(self, pool: NodePool) -> Iterator[tuple[pa.Array | None, pa.Table]]:
        """Read the names and attributes of the nodes of a pool, batch by batch."""
        if not pool.has_names and not any(selection.attributes for selection in pool.selections):
            for first in range(0, max(1, len(pool.ids)), _BLANK_ROWS):
                some = slice(first, first + _BLANK_ROWS)
                yield None if pool.names is None else pool.names[some], _blank(len(pool.ids[some]))
            return
        first = 0
        for selection, attributes in zip(pool.selections, pool.attributes, strict=True):
            for rows in self.second_pass(selection, attributes.read_types):
                converted = attributes.convert(rows.attributes, pool.place_after(first))
                if not converted.num_columns:  # a table without columns loses its length where rows are left out
                    converted = _blank(len(rows))
                names = rows.columns.get("name", pa.nulls(len(rows), pa.string())) if pool.has_names else None
                if pool.kept is not None:
                    own = pool.kept[(pool.kept >= first) & (pool.kept < first + len(rows))] - first
                    converted, names = take_rows(converted, own), None if names is None else names.take(pa.array(own))
                yield names, converted
                first += len(rows)

    # ---- Edges ----
    def _read_edges(self, group: EdgeGroup) -> None:
        for number, plan in enumerate(group.plans):
            for rows in self.first_pass(plan.selection):
                before = group.count
                group.lengths[number] += len(rows)
                group.attributes.look(number, rows.attributes)
                columns = self._edge_columns(group, plan, rows, group.place_after(before))
                self.keep_edges(group, pa.table(self._number_edges(group, columns, before)))
        for bad, pool in zip(group.bad_ends.values(), self.ends(group), strict=True):
            if bad.empty is not None:
                raise empty_end(group.place(bad.empty), pool.name)
            if bad.wrong is not None:
                similar = similar_id(bad.value, pool.keys.values)
                where = None if self.shared is None else "node tables" if len(pool.plans) > 1 else "nodes table"
                raise unknown_end(group.place(bad.wrong), pool.name, bad.value, bad.count, where, similar)
        if self.edges_say_types and not self.pools["node"].plans:
            self._name_ends(self.pools["node"], group)
        if group.weight_error is not None:
            raise group.weight_error

    def _edge_columns(self, group: EdgeGroup, plan: EdgePlan, rows: SelectedRows, place: Place) -> dict[str, Any]:
        """Return the columns source, target and perhaps weight, relation, and types and names of ends."""
        columns = dict(rows.columns)
        if group.is_weighted and "weight" not in columns:  # in a property graph, some relations have weights
            columns["weight"] = pa.array([None if len(self.plan.nodes) < 2 else "1"] * len(rows), pa.string())
        if self.shared is None:
            return columns
        if "relation" not in columns:
            columns["relation"] = pa.repeat(plan.relation.name, len(rows))
        columns["relation"] = columns["relation"].cast(pa.string())
        for end in ENDS:
            columns[end] = _in_space(columns[end], plan.selection.spaces.get(end))
            if self.shared.prefixed:
                columns[f"{end}_type"] = _prefixes(columns[end], place)
            elif f"{end}_type" in columns:
                columns[f"{end}_type"] = _plain_labels(columns[f"{end}_type"], self.shared.labels)
        columns["relation"] = _plain_labels(columns["relation"], self.shared.labels)
        return columns

    def _number_edges(self, group: EdgeGroup, columns: dict[str, Any], before: int) -> dict[str, Any]:
        """Return the keys of the ends of edges, with their weights and the numbers of their relations."""
        numbers: dict[str, Any] = {}
        for at, (end, pool) in enumerate(zip(ENDS, self.ends(group), strict=True)):
            if self.edges_say_types and not pool.plans:
                columns[end] = self._pairs(pool, group, end, columns, before)
            if pool.plans:
                numbers[end] = pool.keys.find(columns[end])
            else:
                numbers[end] = pool.add_ends(columns[end], 2 * group.number + at, before)
            group.bad_ends[end].update(columns[end], np.flatnonzero(numbers[end] < 0), before)
            if f"{end}_name" in columns:
                group.names[end].append((numbers[end], columns[f"{end}_name"].cast(pa.string())))
        if group.is_weighted:
            numbers["weight"] = np.ones(len(columns["weight"]))
            try:
                numbers["weight"] = to_weights(columns["weight"], group.place_after(before))
            except GraphError as error:  # raised once the ends of all edges are checked
                group.weight_error = group.weight_error or error
        if self.shared is not None:
            names = columns["relation"].fill_null("")
            if group.empty_relation is None and len(missing := missing_ids(names)):
                group.empty_relation = before + int(missing[0])
            numbers["relation"] = self.relations.number(names)
        return numbers

    def _pairs(self, pool: NodePool, group: EdgeGroup, end: str, columns: Mapping[str, Any], before: int) -> pa.Array:
        """Return a number for each pair of an id and a type, where edges say the types of their ends."""
        ids, types = columns[end], columns.get(f"{end}_type", pa.repeat(pool.node_type, len(columns[end])))
        if len(missing := missing_ids(types)):
            raise empty_cell(group.place(before + int(missing[0])), "type")
        if len(missing := missing_ids(ids)):
            raise empty_end(group.place(before + int(missing[0])), types[int(missing[0])].as_py())
        return pa.array(self._end_ids.number(ids).astype(np.int64) << 31 | self._types.number(types))

    def _name_ends(self, pool: NodePool, group: EdgeGroup) -> None:
        """Give each node the first name that edges give to it."""
        selection = group.selections[0]
        columns = selection.columns
        if "source_name" not in columns:
            return
        parts = [part for end in ENDS for part in group.names[end]]
        nodes, names = np.concatenate([keys for keys, _ in parts]), join_arrays([names for _, names in parts])
        filled = np.setdiff1d(np.arange(len(names)), missing_ids(names))
        named, first = np.unique(nodes[filled], return_index=True)
        chosen = np.full(len(pool.keys), -1, dtype=np.int64)
        chosen[named] = filled[first]
        pool.names = names.take(pa.array(chosen, mask=chosen < 0))
        codes = names.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        pairs = np.unique(np.stack([nodes[filled], codes[filled].astype(np.int32)]), axis=1)
        several = int((np.bincount(pairs[0]) > 1).sum())
        if several and "source_type" not in columns:
            raise GraphError(
                f"{selection.table.title}: {several:,} id{'s' * (several > 1)} in {columns['source']} and "
                f"{columns['target']} have several names in {columns['source_name']} and {columns['target_name']}, so "
                f"they do not identify nodes; name columns of types or of other ids under [triples] in graph.toml "
                f"(‹config›)"
            )
        if several:
            self.notes.append(
                f"{several:,} node{'s have' if several > 1 else ' has'} more than one name in "
                f"{columns['source_name']}, {columns['target_name']}: the first is used; if {columns['source']} does "
                f"not identify nodes, name other columns under [triples] in graph.toml"
            )

    def edges(self, group: EdgeGroup) -> Iterator[tuple[EdgeRows, pa.Table]]:
        """Yield the edges of a group as rows of their nodes, and their attributes, batch by batch."""
        if not group.attributes.kinds:
            for numbers in self.kept_edges(group):
                yield self._rows_of(group, numbers), _blank(len(numbers))
            return
        kept, before = _Cutter(self.kept_edges(group)), 0
        for number, selection in enumerate(group.selections):
            for again in self.second_pass(selection, group.attributes.read_types(number)):
                rows = self._rows_of(group, kept.take(len(again)))
                yield rows, group.attributes.convert(number, again, rows.get("weight"), group.place_after(before))
                before += len(again)

    def _rows_of(self, group: EdgeGroup, numbers: pa.Table) -> EdgeRows:
        """Return the rows of the nodes of edges, their weights, and their kinds where ids are shared."""
        rows = {name: join_arrays([numbers[name]]).to_numpy() for name in numbers.column_names}
        for end, pool in zip(ENDS, self.ends(group), strict=True):
            if pool.row_of_key is not None:
                rows[end] = pool.row_of_key[rows[end]]
        if self.shared is not None:
            pool, codes = self.pools["node"], rows.pop("relation")
            assert pool.types is not None
            assert pool.row_in_type is not None
            kinds = codes.astype(np.int32 if math.prod(self._shape) < 2**31 else np.int64)
            for end in ENDS:
                kinds = kinds * len(pool.type_names) + pool.types[rows[end]]
            rows["kind"] = kinds
            rows |= {end: pool.row_in_type[rows[end]] for end in ENDS}
        return rows

    @property
    def _shape(self) -> tuple[int, int, int]:
        types = len(self.pools["node"].type_names)
        return len(self.relations), types, types

    def relation_of(self, group: EdgeGroup, kind: int) -> Relation | None:
        """Return the relation and types of ends that a kind stands for, or None if the options leave it out."""
        if self.shared is None:
            return group.plans[0].relation
        name, source, target = map(int, np.unravel_index(kind, self._shape))
        types = self.pools["node"].type_names
        return self.options.relation(types[source], self.relations.values[name].as_py(), types[target])

    # ---- What memory and store do differently ----
    @abstractmethod
    def first_pass(self, selection: Selection) -> Iterator[SelectedRows]:
        """Read a table for the first time; its attributes are looked at."""

    @abstractmethod
    def second_pass(self, selection: Selection, types: Types) -> Iterator[SelectedRows]:
        """Read a table again, its attributes with some types."""

    @abstractmethod
    def texts_of(self, selection: Selection) -> TextsOf:
        """Return what returns the values of an attribute as they were read."""

    @abstractmethod
    def keep_edges(self, group: EdgeGroup, numbers: pa.Table) -> None:
        """Keep the next edges of a group."""

    @abstractmethod
    def kept_edges(self, group: EdgeGroup) -> Iterator[pa.Table]:
        """Return the edges of a group that were kept."""


@dataclass(frozen=True)
class TypedNodes:
    """The nodes of one type: which they are in their pool, None if all, and their ids."""

    node_type: str
    pool: NodePool
    code: int
    rows: Rows | None
    ids: pa.Array


class _Cutter:
    """Cuts a stream of tables into pieces of any length."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._left: list[pa.Table] = []

    def take(self, count: int) -> pa.Table:
        """Return the next rows."""
        while not self._left or sum(map(len, self._left)) < count:
            self._left.append(next(self._tables))
        whole = self._left[0] if len(self._left) == 1 else pa.concat_tables(self._left)
        self._left = [whole.slice(count)]
        return whole.slice(0, count)


def _blank(count: int) -> pa.Table:
    """Return a table of some rows without columns."""
    return pa.table({"": pa.nulls(count)}).select([])


def take_rows(table: pa.Table, rows: Rows) -> pa.Table:
    """Return some rows of a table, which may have no columns."""
    return table.take(pa.array(rows)) if table.num_columns else _blank(len(rows))


def join_arrays(arrays: Sequence[Any]) -> pa.Array:
    """Return arrays, chunked or not, as one."""
    chunks = [c for each in arrays for c in (each.chunks if isinstance(each, pa.ChunkedArray) else [each])]
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], arrays[0].type)


def group_rows(codes: Numbers) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct code, ascending, with its positions, ascending."""
    if codes.max(initial=0) < 1 << 15:
        codes = codes.astype(np.int16)  # numpy sorts these by radix, which is several times faster
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for positions in np.split(order, starts) if len(order) else ():
        yield int(codes[positions[0]]), positions


def _encode(column: pa.Array) -> tuple[list[str], Numbers]:
    """Return the distinct texts of a column in order of appearance, and the number of each."""
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


# ---- Ids and types of tables whose ids are shared ------------------------------------------------
BIOLINK = "biolink:"
GENERAL_CLASSES = {
    "Entity", "NamedThing", "BiologicalEntity", "PhysicalEntity", "PhysicalEssence", "PhysicalEssenceOrOccurrent",
    "OntologyClass", "ThingWithTaxon", "GenomicEntity", "ChemicalEntityOrGeneOrGeneProduct", "Association",
    "MacromolecularMachineMixin", "GeneOrGeneProduct", "ChemicalOrDrugOrTreatment", "SubjectOfInvestigation",
    "ChemicalEntityOrProteinOrPolypeptide", "DiseaseOrPhenotypicFeature", "Occurrent", "Mixin",
}  # fmt: skip
"""Classes of Biolink that say less than any other beside them."""


def _in_space(ids: Any, space: str | None) -> Any:
    """Return ids behind the space that they belong to; an empty id stays empty."""
    if not space:
        return ids
    texts = ids.cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), texts, pc.binary_join_element_wise(f"{space}:", texts, ""))


def _plain_labels(column: Any, delimiter: str | None) -> Any:
    """Return one label of each cell, without its prefix `biolink:`: the first that is not a general class.

    >>> _plain_labels(pa.array(["biolink:NamedThing|biolink:Gene"]), "|")[0].as_py()
    'Gene'
    """
    if delimiter is None:
        return column
    encoded = join_arrays([column]).cast(pa.string()).dictionary_encode()
    plain = []
    for cell in encoded.dictionary.to_pylist():
        labels = [label.removeprefix(BIOLINK) for label in cell.split(delimiter) if label]
        plain.append(next((label for label in labels if label not in GENERAL_CLASSES), labels[0] if labels else ""))
    return pa.array(plain, pa.string()).take(encoded.indices)


def _prefixes(ids: Any, place: Place) -> Any:
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
class MemoryAssembler(Assembler):
    """Reads whole tables into a graph in memory."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._read: dict[int, SelectedRows] = {}
        """What the second pass needs of each selection, by its identity."""
        self._edges: dict[int, list[pa.Table]] = {group.number: [] for group in self.groups}

    def assemble(self) -> HIN:
        """Return the graph."""
        self.read_all()
        pa.default_memory_pool().release_unused()  # the texts of the tables, before matrices are built
        nodes = [each for pool in self.pools.values() for each in self._nodes_of(pool)]
        edges = [each for group in self.groups for each in self._edges_of(group)]
        for each in nodes:
            self.notes += note_ids(each.node_type, each.ids, self.options, _edge_counter(each.node_type, edges))
        options = self.options
        hin = HIN.build(
            nodes, edges, duplicates=options.duplicates, abbreviations=options.abbreviations, notes=self.notes
        )
        return replace(hin, notes=(*hin.notes, *_note_backwards(hin))) if self.edges_say_types else hin

    def first_pass(self, selection: Selection) -> Iterator[SelectedRows]:
        rows = selection.read()
        yield rows
        names = {"name": rows.columns["name"]} if "name" in rows.columns else {}
        self._read[id(selection)] = SelectedRows({"": pa.nulls(len(rows)), **names}, rows.attributes)

    def second_pass(self, selection: Selection, types: Types) -> Iterator[SelectedRows]:
        """Return what was read; attributes that were read as something else are read again."""
        rows = self._read[id(selection)]
        other = {column: kind for column, kind in types.items() if rows.attributes.schema.field(column).type != kind}
        attributes = rows.attributes
        again = replace(selection, attributes=list(other)).read(other).attributes if other else attributes
        for column in other:
            attributes = attributes.set_column(attributes.column_names.index(column), column, again[column])
        yield SelectedRows(rows.columns, attributes)

    def texts_of(self, selection: Selection) -> TextsOf:
        return lambda column: [self._read[id(selection)].attributes[column]]

    def keep_edges(self, group: EdgeGroup, numbers: pa.Table) -> None:
        self._edges[group.number].append(numbers)

    def kept_edges(self, group: EdgeGroup) -> Iterator[pa.Table]:
        yield from self._edges.pop(group.number)

    def _nodes_of(self, pool: NodePool) -> Iterator[Nodes]:
        several, parts = len(pool.plans) > 1, list(self.described(pool))
        tables = [attributes for _, attributes in parts]
        if several:
            tables = [each.rename_columns([_untyped(name) for name in each.column_names]) for each in tables]
        whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
        names = join_arrays([names for names, _ in parts]) if parts and parts[0][0] is not None else None
        for typed in self.typed_nodes(pool):
            own, attributes = names, whole
            if typed.rows is not None:
                own = None if names is None else names.take(pa.array(typed.rows))
                attributes = take_rows(whole, typed.rows)
            if several:
                attributes = _with_values(attributes)
                own = None if own is None or own.null_count == len(own) else own
            yield Nodes(typed.node_type, typed.ids, own, attributes)

    def _edges_of(self, group: EdgeGroup) -> Iterator[Edges]:
        parts = list(self.edges(group))
        rows = {name: _joined([own[name] for own, _ in parts]) for name in parts[0][0]}
        tables = [attributes for _, attributes in parts]
        attributes = tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        sources, targets, weights = rows["source"], rows["target"], rows.get("weight")
        if self.shared is None:
            ends = sources.astype(np.int64), targets.astype(np.int64)
            yield Edges(group.plans[0].relation, *ends, weights, attributes)
            return
        for kind, own in group_rows(rows["kind"]):
            relation = self.relation_of(group, kind)
            if relation is not None:
                weighs = None if weights is None else weights[own]
                yield Edges(relation, sources[own], targets[own], weighs, _with_values(take_rows(attributes, own)))


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _untyped(name: str) -> str:
    """Return the name of an attribute such as year:int of neo4j-admin without its type."""
    return name.partition(":")[0] or name


def _with_values(attributes: pa.Table) -> pa.Table:
    """Return the attributes that any of some nodes or edges has."""
    return attributes.select([c for c in attributes.column_names if attributes[c].null_count < len(attributes)])


def _edge_counter(node_type: str, edges: Sequence[Edges]) -> Callable[[int], int]:
    """Return a function that counts the edges at a node of a type."""

    def count(row: int) -> int:
        ends = [each.sources for each in edges if each.relation.source == node_type]
        ends += [each.targets for each in edges if each.relation.target == node_type]
        return sum(int(np.count_nonzero(rows == row)) for rows in ends)

    return count


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
