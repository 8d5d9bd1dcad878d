"""Read the tables of a graph into memory: ids become rows, and errors name the bad row.

This is the first of three readers (see `io.plan`), for graphs that fit into memory.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.errors import GraphError
from neupath.graph.hin import HIN, Edges, Floats, check_counts
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes, Rows
from neupath.io.columns import singular
from neupath.io.edge_columns import choose_columns, note_texts, read_attributes, read_node_attributes
from neupath.io.plan import (
    EdgePlan,
    NodePlan,
    Place,
    ReadOptions,
    SelectedRows,
    Selection,
    TableSource,
    TripleTables,
    all_read_as_integers,
    empty_cell,
    empty_end,
    empty_id,
    empty_looking,
    find_fractions,
    find_twins,
    missing_ids,
    note_empty_ids,
    note_fractions,
    note_twins,
    place_in_files,
    repeated_id,
    similar_id,
    to_weights,
    unknown_end,
)
from neupath.io.tables import ArrowTable


# ---- Reading the tables of a source --------------------------------------------------------------
def read_tables(source: TableSource) -> HIN:
    """Read the tables of a source as a graph."""
    if isinstance(source, TripleTables):
        return _read_triples(source)
    edges = [_read_edges(edge) for edge in source.edges]
    notes = list(source.options.notes)
    nodes = [_read_nodes(node, notes) for node in source.nodes]
    return assemble(nodes, edges, replace(source.options, notes=notes))


def _read_nodes(node: NodePlan, notes: list[str]) -> "NodeTable":
    rows, place = _read_distinct(node.selection)
    ids, names = rows.columns["id"], rows.columns.get("name")
    attributes = _typed_attributes(node.selection, rows.attributes, place, notes)
    return NodeTable(node.node_type, ids, place, names, attributes, node.selection.table.typed)


def _typed_attributes(nodes: Selection, attributes: pa.Table, place: Place, notes: list[str]) -> pa.Table:
    """Return the attributes of nodes as they are kept; append notes on them."""
    kinds = {name: attributes.schema.field(name).type for name in attributes.column_names}
    notes += note_texts(nodes, kinds, lambda column: [attributes[column]])
    return read_node_attributes(attributes, nodes.kinds, place, typed=nodes.table.typed)


def _read_distinct(nodes: Selection) -> tuple[SelectedRows, Place]:
    """Read nodes; of those whose ids graph.toml makes one, the first is read."""
    rows, place = nodes.read(), nodes.place
    if not nodes.fold_ids:
        return rows, place
    first = first_rows(rows.columns["id"])
    columns = {role: column.take(pa.array(first)) for role, column in rows.columns.items()}
    attributes = rows.attributes.take(pa.array(first)) if rows.attributes.num_columns else rows.attributes
    return SelectedRows(columns, attributes), lambda row: place(int(first[row]))


def first_rows(ids: pa.Array) -> Rows:
    """Return the rows in which an id stands first."""
    codes = pc.fill_null(ids.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False)
    return np.sort(np.unique(codes, return_index=True)[1]).astype(np.int64)


def _read_edges(edge: EdgePlan) -> "EdgeTable":
    rows, place = edge.selection.read(), edge.selection.place
    columns = rows.columns
    attributes = RawAttributes([edge.selection], [rows.attributes])
    return EdgeTable(edge.relation, columns["source"], columns["target"], place, columns.get("weight"), attributes)


def _read_triples(source: TripleTables) -> HIN:
    if source.node_tables:
        return _read_spaces(source)
    files = [selection.read() for selection in source.edges]
    triples = pa.concat_tables([pa.table(dict(rows.columns)) for rows in files], promote_options="default")
    columns = {name: triples[name].combine_chunks() for name in triples.column_names}
    if source.relation is not None:
        columns["relation"] = pa.repeat(source.relation, len(triples))
    if source.labels is not None:
        columns["relation"] = _plain_labels(columns["relation"], source.labels)
    place = place_in_files([each.place for each in source.edges], list(map(len, files)))
    raw = RawAttributes(source.edges, [rows.attributes for rows in files])
    edges = TripleTable(columns["source"], columns["relation"], columns["target"], place, columns.get("weight"), raw)
    if source.prefixed or {"source_type", "source_name"} & set(columns):
        return _assemble_ends(source, edges, columns)
    if source.nodes is None:
        ids = distinct_ids([edges.sources, edges.targets])
        return assemble_typed(TypedTable(ids, pa.repeat(source.node_type, len(ids)), place), edges, source.options)
    rows, place_of_node = _read_distinct(source.nodes)
    types = rows.columns.get("type", pa.repeat(source.node_type, len(rows)))
    types = _plain_labels(types, source.labels)
    notes = list(source.options.notes)
    attributes = _typed_attributes(source.nodes, rows.attributes, place_of_node, notes)
    nodes = TypedTable(rows.columns["id"], types, place_of_node, rows.columns.get("name"), attributes)
    return assemble_typed(nodes, edges, replace(source.options, notes=notes))


# ---- Tables of neo4j-admin -----------------------------------------------------------------------
def _read_spaces(source: TripleTables) -> HIN:
    """Read several tables of nodes and of edges, whose ids are unique in their spaces."""
    nodes, edges = ([(each, each.read()) for each in tables] for tables in (source.node_tables, source.edges))
    place = place_in_files([each.place for each in source.node_tables], [len(rows) for _, rows in nodes])
    edge_place = place_in_files([each.place for each in source.edges], [len(rows) for _, rows in edges])
    types = [_or_constant(rows, "type", each.spaces.get("id") or singular(each.table.name)) for each, rows in nodes]
    names = [rows.columns.get("name", pa.nulls(len(rows), pa.string())) for _, rows in nodes]
    notes = list(source.options.notes)
    own = [_without_types(_typed_attributes(each, rows.attributes, each.place, notes)) for each, rows in nodes]
    attributes = pa.concat_tables(own, promote_options="permissive")
    keys = _join([_in_space(each, rows, "id") for each, rows in nodes])
    _refuse_repeats(keys, place)
    all_nodes = TypedTable(
        _join([rows.columns["id"].cast(pa.string()) for _, rows in nodes]), _plain_labels(_join(types), source.labels),
        place, _join(names), attributes.combine_chunks(), sparse=True,
    )  # fmt: skip
    sources, targets = (
        _find_rows(_join([_in_space(each, rows, end) for each, rows in edges]), keys, "node", edge_place, "node tables")
        for end in ("source", "target")
    )
    relations = _join([_or_constant(rows, "relation", each.table.name) for each, rows in edges])
    weighted = any("weight" in rows.columns for _, rows in edges)
    weights = [rows.columns.get("weight", pa.repeat("1", len(rows))).cast(pa.string()) for _, rows in edges]
    ends = _join([rows.columns["source"].cast(pa.string()) for _, rows in edges])
    raw = RawAttributes(source.edges, [rows.attributes for _, rows in edges])
    triples = TripleTable(ends, relations, ends, edge_place, _join(weights) if weighted else None, raw)
    return _assemble_rows(all_nodes, (sources, targets), triples, replace(source.options, notes=notes))


def _join(arrays: Sequence[pa.Array]) -> pa.Array:
    return pa.chunked_array(arrays).combine_chunks()


def _or_constant(rows: SelectedRows, column: str, value: str) -> pa.Array:
    return rows.columns[column].cast(pa.string()) if column in rows.columns else pa.repeat(value, len(rows))


def _in_space(selection: Selection, rows: SelectedRows, column: str) -> pa.Array:
    """Return ids behind the space that they belong to; an empty id stays empty."""
    ids = rows.columns[column].cast(pa.string())
    space = selection.spaces.get(column)
    if not space:
        return ids
    return pc.if_else(pc.equal(ids, ""), ids, pc.binary_join_element_wise(f"{space}:", ids, ""))


def _without_types(attributes: pa.Table) -> pa.Table:
    """Return attributes such as year:int under their plain names."""
    return attributes.rename_columns([name.partition(":")[0] or name for name in attributes.column_names])


# ---- Edges that say the types of their ends ------------------------------------------------------
BIOLINK = "biolink:"
GENERAL_CLASSES = {
    "Entity", "NamedThing", "BiologicalEntity", "PhysicalEntity", "PhysicalEssence", "PhysicalEssenceOrOccurrent",
    "OntologyClass", "ThingWithTaxon", "GenomicEntity", "ChemicalEntityOrGeneOrGeneProduct", "Association",
    "MacromolecularMachineMixin", "GeneOrGeneProduct", "ChemicalOrDrugOrTreatment", "SubjectOfInvestigation",
    "ChemicalEntityOrProteinOrPolypeptide", "DiseaseOrPhenotypicFeature", "Occurrent", "Mixin",
}  # fmt: skip
"""Classes of Biolink that say less than any other beside them."""


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


def _assemble_ends(source: TripleTables, edges: "TripleTable", columns: Mapping[str, pa.Array]) -> HIN:
    """Build a graph of edges whose ends have types: nodes are the distinct pairs of type and id, in order."""
    both_ids = [edges.sources, edges.targets]
    if source.prefixed:
        both_types = [_prefixes(ids, edges.place) for ids in both_ids]
    elif "source_type" not in columns:
        both_types = [pa.repeat(source.node_type, len(ids)) for ids in both_ids]
    else:
        both_types = [_plain_labels(columns[f"{end}_type"], source.labels) for end in ("source", "target")]
    for ids, types in zip(both_ids, both_types, strict=True):
        if len(missing := missing_ids(types)):
            raise empty_cell(edges.place(int(missing[0])), "type")
        if len(missing := missing_ids(ids)):
            raise empty_end(edges.place(int(missing[0])), types[int(missing[0])].as_py())
    ids, types = (pa.chunked_array(both).combine_chunks() for both in (both_ids, both_types))
    _, id_codes = _encode(ids)
    type_names, type_codes = _encode(types)
    keys = id_codes * len(type_names) + type_codes
    distinct, first, rows = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place_in_order = np.empty(len(distinct), dtype=np.int64)
    place_in_order[order] = np.arange(len(distinct))
    rows, first = place_in_order[rows], first[order]
    names, several = _names_of_ends(columns, rows, first)
    if several and len(type_names) == 1 and "source_type" not in columns:
        raise _shared_ids(several, source)
    notes = [*source.options.notes, *_note_several_names(several, source)]
    nodes = TypedTable(ids.take(pa.array(first)), types.take(pa.array(first)), edges.place, names)
    half = len(edges.sources)
    hin = _assemble_rows(nodes, (rows[:half], rows[half:]), edges, replace(source.options, notes=notes))
    return replace(hin, notes=(*hin.notes, *_note_backwards(hin)))


def _prefixes(ids: pa.Array, place: Place) -> pa.Array:
    without = np.flatnonzero(~pc.fill_null(pc.match_substring(ids, "::"), True).to_numpy(zero_copy_only=False))
    if len(without):
        raise GraphError(
            f"{place(int(without[0]))}: the id {ids[int(without[0])].as_py()!r} has no type before '::', but the ids "
            f'above it have one; give all ids a type, or set type = "entity" under [triples] in graph.toml to read '
            f"all as one type"
        )
    return pc.list_element(pc.split_pattern(ids, "::", max_splits=1), 0)


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


def _note_several_names(several: int, source: TripleTables) -> list[str]:
    if not several:
        return []
    columns = source.edges[0].columns
    return [
        f"{several:,} node{'s have' if several > 1 else ' has'} more than one name in {columns['source_name']}, "
        f"{columns['target_name']}: the first is used; if {columns['source']} does not identify nodes, name other "
        f"columns under [triples] in graph.toml"
    ]


def _shared_ids(several: int, source: TripleTables) -> GraphError:
    columns = source.edges[0].columns
    return GraphError(
        f"{source.edges[0].table.title}: {several:,} id{'s' * (several > 1)} in {columns['source']} and "
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


# ---- One table per node type and relation: ids become rows ---------------------------------------
@dataclass(frozen=True)
class NodeTable:
    """The nodes of one type: ids, and optional names and attributes."""

    node_type: str
    ids: pa.Array
    place: Place
    names: pa.Array | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))
    typed: bool = False
    """Whether the table declares which ids are integers; in text tables their looks decide."""


@dataclass(frozen=True)
class RawAttributes:
    """The attributes of edges as they were read from one or several files."""

    selections: Sequence[Selection]
    files: Sequence[pa.Table]
    notes: Sequence[str] = ()

    @classmethod
    def of(
        cls, columns: pa.Table, label: str, kinds: Mapping[str, str] | None = None, place: str = ""
    ) -> "RawAttributes":
        """Return the columns of a table in memory, which notes call `label`; `place` is that of `attribute_types`."""
        table = ArrowTable(columns, label, label)
        chosen = choose_columns(table, (), kinds=kinds)
        selection = Selection(table, {}, chosen.columns, kinds=chosen.kinds, declared_in=place)
        return cls([selection], [columns], chosen.notes(label))

    def read(self, weights: Floats | None, place: Place) -> tuple[pa.Table, list[str]]:
        """Return the attributes as edges keep them, and notes on them."""
        table, notes = read_attributes(self.selections, self.files, weights, place)
        return table, [*self.notes, *notes]


@dataclass(frozen=True)
class EdgeTable:
    """The edges of one relation: the ids at both ends, and optional weights and attributes."""

    relation: Relation
    sources: pa.Array
    targets: pa.Array
    place: Place
    weights: pa.Array | None = None
    attributes: RawAttributes | None = None


def _attributes_of(edges: "EdgeTable | TripleTable", weights: Floats | None, notes: list[str]) -> pa.Table:
    """Return the attributes of edges as they are kept; append notes on them."""
    if edges.attributes is None:
        return pa.table({})
    table, more = edges.attributes.read(weights, edges.place)
    notes += [note for note in more if note not in notes]  # two relations may be read from one table
    return table


def assemble(nodes: Iterable[NodeTable], edges: Iterable[EdgeTable], options: ReadOptions) -> HIN:
    """Build a graph from one table per node type and one per relation.

    The nodes of a type without a table are those that its edges name, in order of appearance. With a table, both ends
    of every edge must be in it. Ids become integers if all of them read as integers.
    """
    edge_tables = list(edges)
    tables: dict[str, NodeTable] = {}
    for table in nodes:
        if tables.setdefault(table.node_type, table) is not table:
            raise GraphError(f"nodes of type {table.node_type!r} are given in two tables; give each type once")
    columns: dict[str, list[pa.Array]] = {}
    for edge in edge_tables:
        for end, ids in ((edge.relation.source, edge.sources), (edge.relation.target, edge.targets)):
            columns.setdefault(end, []).append(ids)
    for end, id_columns in columns.items():
        if end not in tables:
            tables[end] = NodeTable(end, distinct_ids(id_columns), lambda row: f"row {row + 1}")
    all_nodes = [_to_nodes(table) for table in tables.values()]
    built, notes = [], list(options.notes)
    for edge in edge_tables:
        sources = _find_rows(edge.sources, tables[edge.relation.source].ids, edge.relation.source, edge.place)
        targets = _find_rows(edge.targets, tables[edge.relation.target].ids, edge.relation.target, edge.place)
        weights = to_weights(edge.weights, edge.place)
        built.append(Edges(edge.relation, sources, targets, weights, _attributes_of(edge, weights, notes)))
    return _build(all_nodes, built, replace(options, notes=notes))


def distinct_ids(columns: Sequence[pa.Array]) -> pa.Array:
    """List the distinct ids of some columns in order of appearance; the check of edges reports empty ones."""
    same = len({column.type for column in columns}) == 1
    distinct = pc.unique(pa.chunked_array(columns if same else [pc.cast(column, pa.string()) for column in columns]))
    return pc.array_filter(distinct, pa.array(np.isin(np.arange(len(distinct)), missing_ids(distinct), invert=True)))


def _to_nodes(table: NodeTable) -> Nodes:
    _refuse_repeats(table.ids, table.place)
    ids = table.ids
    if not table.typed and pa.types.is_string(ids.type) and len(ids) and all_read_as_integers(ids):
        ids = pc.cast(ids, pa.int64())
    return Nodes(table.node_type, ids, table.names, table.attributes)


def _refuse_repeats(ids: pa.Array, place: Place) -> None:
    missing = missing_ids(ids)
    if len(missing):
        raise empty_id(place(int(missing[0])))
    encoded = ids.dictionary_encode()
    if len(encoded.dictionary) < len(ids):
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        row = int(np.setdiff1d(np.arange(len(codes)), np.unique(codes, return_index=True)[1])[0])
        raise repeated_id(place(row), ids[row].as_py())


def _find_rows(ids: pa.Array, table: pa.Array, node_type: str, place: Place, where: str | None = None) -> Rows:
    """Return the row of each id in a table of ids; the table is hashed once per column of edges."""
    missing = missing_ids(ids)
    if len(missing):
        raise empty_end(place(int(missing[0])), node_type)
    same = ids.type == table.type
    keys, table_keys = (ids, table) if same else (pc.cast(ids, pa.string()), pc.cast(table, pa.string()))
    rows = pc.index_in(keys, value_set=table_keys)
    if rows.null_count:
        first = int(np.flatnonzero(pc.is_null(rows).to_numpy(zero_copy_only=False))[0])
        value = ids[first].as_py()
        raise unknown_end(place(first), node_type, value, rows.null_count, where, similar_id(value, table))
    numbers: Rows = rows.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _build(nodes: Sequence[Nodes], edges: Sequence[Edges], options: ReadOptions) -> HIN:
    notes = [*options.notes, *chain.from_iterable(_note_ids(each, edges, options) for each in nodes)]
    return HIN.build(nodes, edges, duplicates=options.duplicates, abbreviations=options.abbreviations, notes=notes)


def _note_ids(nodes: Nodes, edges: Sequence[Edges], options: ReadOptions) -> list[str]:
    """Note the ids of a type that look empty, and those that differ from others only by case or spaces."""
    ends = [
        rows
        for each in edges
        for end, rows in ((each.relation.source, each.sources), (each.relation.target, each.targets))
        if end == nodes.node_type
    ]
    counts = {}
    for row in empty_looking(nodes.ids).tolist() if options.missing_ids is None else ():
        counts[nodes.ids[row].as_py()] = sum(int(np.count_nonzero(np.asarray(rows) == row)) for rows in ends)
    count, pair = find_twins(nodes.ids) if options.fold_ids is None else (0, ())
    twins = [nodes.ids[int(row)].as_py() for row in pair]
    fractions = find_fractions(nodes.ids).tolist() if options.fold_ids is None else []
    sample = str(nodes.ids[fractions[0]].as_py()) if fractions else ""
    return [
        *note_empty_ids(nodes.node_type, counts, options),
        *note_twins(nodes.node_type, count, twins, options),
        *note_fractions(nodes.node_type, len(fractions), sample, options),
    ]


# ---- One table of all nodes and one of all edges -------------------------------------------------
@dataclass(frozen=True)
class TypedTable:
    """Nodes of all types in one table; ids are unique across types."""

    ids: pa.Array
    types: pa.Array
    place: Place
    names: pa.Array | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))
    sparse: bool = False
    """Whether a type has only the attributes that its nodes have."""


@dataclass(frozen=True)
class TripleTable:
    """Edges of all relations in one table."""

    sources: pa.Array
    relations: pa.Array
    targets: pa.Array
    place: Place
    weights: pa.Array | None = None
    attributes: RawAttributes | None = None


def assemble_typed(nodes: TypedTable, edges: TripleTable, options: ReadOptions) -> HIN:
    """Build a graph from one table of typed nodes and one of named edges.

    A relation's name may join several pairs of types: each pair becomes its own relation.
    """
    _refuse_repeats(nodes.ids, nodes.place)
    sources, targets = (
        _find_rows(ids, nodes.ids, "node", edges.place, "nodes table") for ids in (edges.sources, edges.targets)
    )
    return _assemble_rows(nodes, (sources, targets), edges, options)


def _assemble_rows(nodes: TypedTable, ends: tuple[Rows, Rows], edges: TripleTable, options: ReadOptions) -> HIN:
    """Build a graph of edges whose ends are rows of the table of nodes."""
    sources, targets = ends
    weights = to_weights(edges.weights, edges.place)
    for what, column, place in (("type", nodes.types, nodes.place), ("relation", edges.relations, edges.place)):
        missing = missing_ids(column)
        if len(missing):
            raise empty_cell(place(int(missing[0])), what)
    type_names, type_codes = _encode(nodes.types)
    relation_names, relation_codes = _encode(edges.relations)
    check_counts(len(type_names), len(relation_names))
    options.check_names(relation_names)
    typed_nodes, row_in_type = [], np.empty(len(type_codes), dtype=np.int64)
    rows_of_type = dict(_groups(type_codes))
    for code, node_type in enumerate(type_names):
        rows = rows_of_type.get(code, np.empty(0, dtype=np.int64))
        row_in_type[rows] = np.arange(len(rows))
        names = None if nodes.names is None else nodes.names.take(pa.array(rows))
        ids, attributes = nodes.ids.take(pa.array(rows)), nodes.attributes.take(pa.array(rows))
        if nodes.sparse:
            attributes = attributes.select([c for c in attributes.column_names if attributes[c].null_count < len(rows)])
            names = None if names is None or names.null_count == len(rows) else names
        typed_nodes.append(_to_nodes(NodeTable(node_type, ids, nodes.place, names, attributes)))
    shape = (len(relation_names), len(type_names), len(type_names))
    kinds = np.ravel_multi_index((relation_codes, type_codes[sources], type_codes[targets]), shape)
    built, notes = [], list(options.notes)
    attributes = _attributes_of(edges, weights, notes)
    for kind, rows in _groups(kinds):
        name, source, target = np.unravel_index(kind, shape)
        relation = options.relation(type_names[source], relation_names[name], type_names[target])
        if relation is not None:
            chosen = None if weights is None else weights[rows]
            own = _with_values(attributes.take(pa.array(rows))) if attributes.num_columns else attributes
            built.append(Edges(relation, row_in_type[sources[rows]], row_in_type[targets[rows]], chosen, own))
    return _build(typed_nodes, built, replace(options, notes=notes))


def _with_values(attributes: pa.Table) -> pa.Table:
    """Return the attributes of one relation: those that any of its edges has."""
    return attributes.select([c for c in attributes.column_names if attributes[c].null_count < len(attributes)])


def _groups(codes: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct code, ascending, with its positions, ascending."""
    order = np.argsort(codes, kind="stable")
    distinct, starts = np.unique(codes[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=False)


def _encode(column: pa.Array) -> tuple[list[str], NDArray[np.int64]]:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
