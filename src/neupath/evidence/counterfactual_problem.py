"""The problem behind a counterfactual: what may be removed or added, and the half-walks that depend on it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath._runtime.progress import check_cancelled
from neupath.engine.formula import Normalisation
from neupath.engine.products import adjacencies
from neupath.engine.walk import leave_row
from neupath.errors import QueryError, listed
from neupath.evidence import counterfactual_kernels as kernels
from neupath.evidence.groups import PathNode, node_at
from neupath.graph.edges import Edges, LinkFilter, in_both_directions
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import Link, MetaPath, Relation
from neupath.graph.nodes import Nodes, Rows
from neupath.measures import HeteSim, PathMeasure
from neupath.measures.path_measure import Leg, reversed_legs

EDGES = "edges"
_MOST_WALKS = 1 << 25
_MOST_ADDITIONS = 2000
_COPIES = 4  # how many new nodes may have the same neighbours
Ints = NDArray[np.int64]


# ---- What changes --------------------------------------------------------------------------------
@dataclass(frozen=True)
class ChangedEdge:
    """An edge that is removed or added."""

    relation: str
    source: PathNode
    target: PathNode
    weight: float

    def to_dict(self) -> dict[str, object]:
        return vars(self) | {"source": self.source.to_dict(), "target": self.target.to_dict()}

    def __str__(self) -> str:
        return f"{self.source.label} -{self.relation}- {self.target.label}"


@dataclass(frozen=True)
class ChangedNode:
    """A node that is removed with all its edges, or a new one with the edges that it gets."""

    node: PathNode
    edges: tuple[ChangedEdge, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return self.node.to_dict() | ({"edges": [edge.to_dict() for edge in self.edges]} if self.edges else {})

    def __str__(self) -> str:
        ends = (end for edge in self.edges for end in (edge.source, edge.target) if end != self.node)
        return f"{self.node.label} with {listed((end.label for end in ends), 4)}" if self.edges else self.node.label


Element = ChangedEdge | ChangedNode


# ---- Graphs with changes -------------------------------------------------------------------------
def without_edges(hin: HIN, removed: Mapping[Relation, tuple[Rows, Rows]]) -> HIN:
    """Return a graph without some edges, given by the rows of their ends."""

    def left(relation: Relation, ends: tuple[Rows, Rows]) -> Edges:
        pairs, width = hin.pairs(relation), hin.num_nodes(relation.target)
        sources, targets = Edges(relation, *ends).ends_in_order()
        return pairs.take(~np.isin(pairs.sources * width + pairs.targets, sources * width + targets))

    return hin.with_pairs(left(relation, ends) for relation, ends in removed.items())


def with_edges(hin: HIN, added: Mapping[Relation, Edges], new_nodes: Mapping[str, int]) -> HIN:
    """Return a graph with more edges, and with new nodes at the end of some types."""
    nodes = {name: _grown(each, new_nodes.get(name, 0)) for name, each in hin.nodes.items()}
    changed: dict[Relation, Csr] = {}
    for relation, matrix in hin.matrices.items():
        if relation in added or new_nodes.keys() & {relation.source, relation.target}:
            shape = len(nodes[relation.source]), len(nodes[relation.target])
            grown = matrix.copy()
            grown.resize(shape)  # type: ignore[arg-type]  # the stubs of scipy take no shape
            changed[relation] = freeze(grown + added[relation].matrix(shape) if relation in added else grown)
    return replace(hin.with_matrices(changed), nodes=MappingProxyType(nodes))


def _grown(nodes: Nodes, count: int) -> Nodes:
    if not count:
        return nodes
    taken = set(nodes.ids.to_pylist())
    if pa.types.is_int64(nodes.ids.type):
        numbers = chain(range(max(taken, default=0) + 1, 1 << 63), range(1 << 63))  # no larger ones may be left
        ids = pa.array(islice((number for number in numbers if number not in taken), count), pa.int64())
    else:
        names = (f"new {nodes.node_type} {number}" for number in range(1, len(taken) + count + 2))
        ids = pa.array([name for name in names if name not in taken][:count], pa.string())
    return Nodes(nodes.node_type, pa.concat_arrays([_combined(nodes.ids), ids]))


def _combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


# ---- Elements: what may be removed or added ------------------------------------------------------
@dataclass(frozen=True)
class _RelationEntries:
    """The entries of one relation's matrix, forward, each with up to two elements (-1: none)."""

    rows: Ints
    columns: Ints
    weights: Floats
    first: Ints
    second: Ints


@dataclass(frozen=True)
class Removals:
    """Edges, or nodes of a type, that may be removed."""

    hin: HIN
    count: int
    entries: Mapping[Relation, _RelationEntries]
    node_type: str | None = None
    offsets: Mapping[Relation, int] = field(default_factory=dict)
    starts_off = False
    largest_proof = sys.maxsize

    @classmethod
    def of(cls, hin: HIN, path: MetaPath, by: str, x: int, y: int) -> "Removals":
        entries, offsets, count = {}, {}, 0
        kept = [row for node_type, row in ((path.source, x), (path.target, y)) if node_type == by]
        for relation in dict.fromkeys(link.relation for link in path.links):
            rows, columns, weights = _coordinates(hin.matrices[relation])
            none = np.full(len(rows), -1)
            if by != EDGES:
                ends = [
                    np.where(np.isin(ends, kept), -1, ends) if node_type == by else none
                    for node_type, ends in ((relation.source, rows), (relation.target, columns))
                ]
                entries[relation] = _RelationEntries(rows, columns, weights, *ends)
                continue
            numbers = np.arange(len(rows))
            if not relation.directed:
                keys = np.minimum(rows, columns) * hin.matrices[relation].shape[1] + np.maximum(rows, columns)
                forward = np.flatnonzero(rows <= columns)
                numbers = forward[np.searchsorted(keys[forward], keys)]  # keys[forward] ascends, as in the matrix
            entries[relation] = _RelationEntries(rows, columns, weights, count + numbers, none)
            offsets[relation] = count
            count += len(rows)
        node_type = None if by == EDGES else by
        return cls(hin, count if by == EDGES else hin.num_nodes(by), entries, node_type, offsets)

    @property
    def distinct(self) -> Ints:
        """The elements of which no two are alike."""
        return np.arange(self.count)

    def describe(self, element: int, number: int = 1) -> Element:  # noqa: ARG002
        if self.node_type is not None:
            return ChangedNode(node_at(self.hin, self.node_type, element))
        relation = next(r for r in reversed(list(self.offsets)) if self.offsets[r] <= element)  # none without edges
        edges, place = self.entries[relation], element - self.offsets[relation]
        ends = (
            node_at(self.hin, relation.source, edges.rows[place]),
            node_at(self.hin, relation.target, edges.columns[place]),
        )
        return ChangedEdge(relation.name, *ends, float(edges.weights[place]))

    def apply(self, elements: Sequence[int]) -> HIN:
        """Return the graph without some elements; relations that the meta-path does not follow keep all edges."""
        removed = {}
        for relation, edges in self.entries.items():
            gone = np.isin(edges.first, elements) | np.isin(edges.second, elements)
            if gone.any():
                removed[relation] = edges.rows[gone], edges.columns[gone]
        return without_edges(self.hin, removed)


@dataclass(frozen=True)
class Additions:
    """Edges, or new nodes with edges, that may be added; the graph of the search has all of them, switched off."""

    hin: HIN
    grown: HIN
    new: "Sequence[NewEdges]"  # the edges of each element
    entries: Mapping[Relation, _RelationEntries]
    node_type: str | None
    num_kinds: int  # of new nodes; the first elements are one of each kind
    largest_proof: int
    """The largest size of which all sets can be tried; new nodes of a kind are few."""
    starts_off = True

    @property
    def count(self) -> int:
        return len(self.new)

    @classmethod
    def of(cls, hin: HIN, path: MetaPath, by: str, x: int, y: int) -> "Additions":
        reached, _ = leave_row(adjacencies(hin, path), x)
        new, num_kinds = _new_edges(hin, path, reached, y), 0
        if by != EDGES:
            ends = reached[-3].tolist() if len(path) > 2 else [x]
            new, num_kinds = _new_nodes(hin, path, by, ends, x, y)
        kept = new[:_MOST_ADDITIONS]
        copies = sys.maxsize if by == EDGES else len(new) // max(1, num_kinds)
        largest = copies if len(kept) == len(new) else 0
        node_type = None if by == EDGES else by
        grown = with_edges(hin, {}, {} if node_type is None else {by: len(kept)})
        entries = {}
        for relation in dict.fromkeys(link.relation for link in path.links):
            rows, columns, weights = _coordinates(hin.matrices[relation])
            pairs = [(s, t, i) for i, edges in enumerate(kept) for s, t in edges.get(relation, ())]
            sources, targets, elements = np.array(pairs, np.int64).reshape(-1, 3).T
            more = in_both_directions(sources, targets, elements, relation.directed)
            none = np.full(len(rows) + len(more[0]), -1)
            entries[relation] = _RelationEntries(
                np.concatenate([rows, more[0]]), np.concatenate([columns, more[1]]),
                np.concatenate([weights, np.ones(len(more[2]))]), np.concatenate([none[: len(rows)], more[2]]), none,
            )  # fmt: skip
        return cls(hin, grown, kept, entries, node_type, num_kinds, largest)

    @property
    def distinct(self) -> Ints:
        """The elements of which no two are alike: new nodes with different neighbours."""
        return np.arange(self.count if self.node_type is None else self.num_kinds)

    def describe(self, element: int, number: int = 1) -> Element:
        new_node = None if self.node_type is None else PathNode(self.node_type, f"new {self.node_type} {number}", None)
        edges = [
            ChangedEdge(
                relation.name, self._node(relation.source, source, new_node),
                self._node(relation.target, target, new_node), 1.0,
            )
            for relation, pairs in self.new[element].items()
            for source, target in pairs
        ]  # fmt: skip
        return edges[0] if new_node is None else ChangedNode(new_node, tuple(edges))

    def _node(self, node_type: str, row: int, new_node: PathNode | None) -> PathNode:
        if new_node is not None and row >= self.hin.num_nodes(node_type):
            return new_node
        return node_at(self.hin, node_type, row)

    def apply(self, elements: Sequence[int]) -> HIN:
        added = {}
        for relation in self.hin.matrices:
            pairs = [pair for element in elements for pair in self.new[element].get(relation, ())]
            if pairs:
                added[relation] = Edges(relation, *np.array(pairs, np.int64).T)
        new_nodes = {} if self.node_type is None else {self.node_type: self.count}
        return with_edges(self.hin, added, new_nodes)


NewEdges = dict[Relation, list[tuple[int, int]]]


def _new_edges(hin: HIN, path: MetaPath, reached: Sequence[Ints], y: int) -> list[NewEdges]:
    """Return the edges from the target to nodes that the query reaches, as far as there are none."""
    new: list[NewEdges] = []
    for link in path.steps[-1].links:
        joined = hin.matrix(link.plain.reversed())[[y]].indices
        loop = y if link.source == path.target else -1
        free = np.setdiff1d(reached[-2], np.append(joined, loop)).tolist()
        new += [{link.relation: [_forward(link, end, y)]} for end in free]
    return new


def check_new_node(path: MetaPath, by: str) -> None:
    """Raise a QueryError where a new node of this type cannot join the target with the query."""
    if by != path.node_types[-2] or len(path) < 2:
        between = f", or a {path.node_types[-2]}" if len(path) > 1 else ""
        raise QueryError(f"a new {by} cannot join {path.target} nodes along {path}; add edges{between}")
    own = next((f for node_type, f in zip(path.node_types, path.filters, strict=True) if f and node_type == by), None)
    if own is not None:
        raise QueryError(f"a new {by} has no attributes, so that it cannot meet the condition '{by}{own}'; add edges")


def _new_nodes(
    hin: HIN, path: MetaPath, by: str, ends: Sequence[int], x: int, y: int
) -> tuple[list[NewEdges], int]:  # fmt: skip
    """Return new nodes that join the target with one of some ends, and with the query on a symmetric path.

    Also returns how many kinds of them there are: an end may be the query or the target, which have an edge anyway.
    """
    check_new_node(path, by)
    kinds = {_edge_keys(_edges_of_new_node(path, -1, end, x, y)): end for end in reversed(ends)}
    different = sorted(kinds.values())
    new: list[NewEdges] = []
    for _ in range(_COPIES if len(path) > 2 else 3 * _COPIES):
        for end in different:
            new.append(_edges_of_new_node(path, hin.num_nodes(by) + len(new), end, x, y))
    return new, len(different)


def _edges_of_new_node(path: MetaPath, node: int, end: int, x: int, y: int) -> NewEdges:
    """Return the edges of a new node, each once."""
    first, last, before = (path.steps[at].links[0] for at in (0, -1, -2))
    joined = [(last, node, y), (before, end, node)]
    if path.is_symmetric and len(path) > 2:
        joined.append((first, x, node))
    edges: NewEdges = {}
    for link, source, target in joined:
        pairs, pair = edges.setdefault(link.relation, []), _forward(link, source, target)
        if pair not in pairs and (link.relation.directed or pair[::-1] not in pairs):
            pairs.append(pair)
    return edges


def _edge_keys(edges: NewEdges) -> frozenset[tuple[Relation, tuple[int, ...]]]:
    return frozenset((r, pair if r.directed else tuple(sorted(pair))) for r, pairs in edges.items() for pair in pairs)


def _coordinates(matrix: Csr) -> tuple[Ints, Ints, Floats]:
    entries = matrix.tocoo()
    return entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data


def _forward(link: Link, source: int, target: int) -> tuple[int, int]:
    return (target, source) if link.reverse else (source, target)


# ---- The problem: half-walks and their elements --------------------------------------------------
@dataclass(frozen=True)
class _LegEntries:
    """The entries of one leg with the number that each has in the problem."""

    rows: Ints
    columns: Ints
    numbers: Ints


class Problem:
    """The half-walks of a query and of the targets that it reaches, as the kernels read them."""

    def __init__(self, scorer: PathMeasure, changes: Removals | Additions, x: int, y: int) -> None:
        hin = changes.grown if isinstance(changes, Additions) else changes.hin
        path = scorer.metapath_
        lefts, rights, meets_on_edges = _walked_legs(scorer, path)
        legs = [*lefts, *rights]
        tables, columns = self._number_entries(legs, changes.entries, hin.nodes)
        self._scaling = self._scale(legs, tables, hin, columns)
        self.entries = columns[2], columns[3].astype(np.int64, copy=False), columns[4].astype(np.int64, copy=False)
        left_tables, right_tables = tables[: len(lefts)], tables[len(lefts) :]
        first_of_middle = right_tables[0].numbers[0] if meets_on_edges and len(right_tables[0].numbers) else 0
        left_steps, left_ends = _expand(np.array([x]), left_tables, forward=True)[1:]
        if meets_on_edges:
            left_ends = left_steps[:, -1] - (left_tables[-1].numbers[0] if len(left_tables[-1].numbers) else 0)
            self.num_middles = len(right_tables[0].rows)
        else:
            self.num_middles = hin.num_nodes(legs[len(lefts) - 1].step.target)
        reached = np.unique(left_ends)
        targets = self._related(reached, right_tables, meets_on_edges)
        skips_query = path.source == path.target
        targets = np.union1d(targets[targets != x] if skips_query else targets, [y])
        origins, steps, ends = _expand(targets, right_tables[::-1], forward=False)
        steps = steps[:, ::-1]
        if meets_on_edges:
            ends = steps[:, 0] - first_of_middle
        if scorer.normalisation == Normalisation.NONE:  # norms don't matter, so only walks that can meet do
            kept = np.isin(ends, reached)
            origins, steps, ends = origins[kept], steps[kept], ends[kept]
        starts = np.concatenate([[0], np.cumsum(np.bincount(origins, minlength=len(targets)))])
        self.rows, self.target = targets, int(np.searchsorted(targets, y))
        self.count = changes.count
        self.left, self.right = self._walks(left_ends, left_steps), self._walks(ends, steps)
        self.starts = starts.astype(np.int64)
        self.touched = self._touch(origins)
        self.off = np.full(changes.count, changes.starts_off, dtype=np.int8)
        scratch = np.zeros(self.num_middles), np.empty(self.num_middles + 1, np.int64), np.zeros(len(targets), np.int8)
        self.base_norm = np.zeros(1)
        self.arrays = (
            self.left, self.right, self.starts, self.entries, self._scaling, self.touched, scratch, self.base_norm
        )  # fmt: skip
        self.base = np.zeros(len(targets)), np.zeros(len(targets)), np.zeros(self.num_middles)
        self.state = tuple(part.copy() for part in self.base)

    def _walks(self, middles: Ints, steps: Ints) -> tuple[Any, ...]:
        """Return half-walks as the kernels read them: their middles, elements, entries and weights."""
        weights, first, second = self.entries
        elements = np.concatenate([first[steps], second[steps]], axis=1)
        used = (elements >= 0).any(axis=0)
        elements = np.ascontiguousarray(elements[:, used], np.int32)
        product = np.ascontiguousarray(weights[steps].prod(axis=1))
        return middles.astype(np.int32), elements, np.ascontiguousarray(steps, np.int32), product

    @property
    def is_scaled(self) -> bool:
        return len(self._scaling[0]) > 0

    @staticmethod
    def _number_entries(
        legs: Sequence[Leg], entries: Mapping[Relation, _RelationEntries], nodes: Mapping[str, Nodes]
    ) -> tuple[list[_LegEntries], list[Any]]:
        """Number the entries of all legs; return them by leg, and the columns row, column, weight and two elements."""
        tables, columns, count = [], [], 0
        for leg in legs:
            parts = []
            for link in leg.step.links:
                e = entries[link.relation]
                ends = (e.columns, e.rows) if link.reverse else (e.rows, e.columns)
                part: tuple[Any, ...] = (*ends, e.weights, e.first, e.second)
                if link.is_filtered:
                    counted = LinkFilter(link, nodes).weights(*ends, e.weights)
                    kept = counted > 0
                    part = *(column[kept] for column in ends), counted[kept], e.first[kept], e.second[kept]
                parts.append(part)
            rows, cols, weights, first, second = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.lexsort((cols, rows))
            columns.append([column[order] for column in (rows, cols, weights, first, second)])
            tables.append(_LegEntries(rows[order], cols[order], count + np.arange(len(order))))
            count += len(order)
        return tables, [np.concatenate(column) for column in zip(*columns, strict=True)]

    @staticmethod
    def _scale(legs: Sequence[Leg], tables: Sequence[_LegEntries], hin: HIN, columns: Sequence[Any]) -> tuple[Any, ...]:
        is_scaled = any(leg.is_scaled for leg in legs)
        number = np.zeros(0, np.int64)
        rows, cols, size = columns[0].copy(), columns[1].copy(), 0
        if is_scaled:
            for leg, table in zip(legs, tables, strict=True):
                rows[table.numbers] += size
                size += hin.num_nodes(leg.step.source)
                cols[table.numbers] += size
                size += hin.num_nodes(leg.step.target)
            number = np.repeat(np.arange(len(legs)), [len(table.rows) for table in tables])
        return (
            number, rows, cols, np.array([float(leg.row_power) for leg in legs]),
            np.array([float(leg.column_power) for leg in legs]),
            np.array([isinstance(leg, _RootLeg) for leg in legs]), np.zeros(size),
            np.zeros(len(rows) if is_scaled else 0),
        )  # fmt: skip

    @staticmethod
    def _related(middles: Ints, tables: Sequence[_LegEntries], meets_on_edges: bool) -> Ints:
        """Return the targets that walks from some middles reach."""
        for position, table in enumerate(tables):
            if position == 0 and meets_on_edges:
                middles = np.unique(table.columns[middles])
            else:
                middles = np.unique(table.columns[np.isin(table.rows, middles)])
        return middles

    def _touch(self, origins: Ints) -> tuple[Any, ...]:
        """Return the targets that each element touches, as CSR, and whether it touches the query."""
        touches_query = np.zeros(self.count, np.bool_)
        of_query = self.left[1].ravel()
        touches_query[of_query[of_query >= 0]] = True
        elements = self.right[1]
        which = elements >= 0
        keys = np.sort((elements.astype(np.int64) * len(self.rows) + origins[:, None])[which])
        keys = keys[np.concatenate([[True], np.diff(keys) > 0])] if len(keys) else keys
        owners, targets = np.divmod(keys, len(self.rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=self.count))])
        return starts.astype(np.int64), targets, touches_query

    @property
    def work_of_all(self) -> int:
        """The work of evaluating all targets once."""
        return len(self.right[0]) + len(self.rows) + (8 * len(self.entries[0]) if self.is_scaled else 0)

    def reset(self) -> int:
        """Evaluate the graph as the switches are now; changes are evaluated relative to it. Return the work."""
        steps = len(self.left[0]) + self.work_of_all
        self.base_norm[0], work = kernels.revise_all.run(steps, self.arrays, self.off, self.base)
        for part, base in zip(self.state, self.base, strict=True):
            part[:] = base
        return int(work)


class _RootLeg(Leg):
    """Half of the middle leg of HeteSim on a path of odd length, where walks meet on edges: √w instead of w."""


def _walked_legs(scorer: PathMeasure, path: MetaPath) -> tuple[list[Leg], list[Leg], bool]:
    """Return the legs of both halves, and whether they meet on the edges of a step that both contain."""
    if isinstance(scorer, HeteSim) and len(path) % 2:
        legs, k = scorer.legs(path), len(path) // 2
        if len(legs[k].step.links) > 1:
            raise QueryError(
                f"hetesim meets in the middle step of {path}, which follows several relations; name one of them"
            )
        middle = legs[k].step
        return (
            [*legs[:k], _RootLeg(middle, row_power=-1.0)],
            [_RootLeg(middle, column_power=-1.0), *legs[k + 1 :]],
            True,
        )
    lefts, rights = scorer.half_legs(path)
    return lefts, reversed_legs(lefts) if rights is None else rights, False


def _expand(starts: Ints, tables: Sequence[_LegEntries], *, forward: bool) -> tuple[Ints, Ints, Ints]:
    """List all walks from some rows: the place of each start, the entries of each step, and the row at the end."""
    origins, ends = np.arange(len(starts)), starts
    steps = np.zeros((len(starts), 0), np.int64)
    for table in tables:
        check_cancelled()
        here, there = (table.rows, table.columns) if forward else (table.columns, table.rows)
        order = np.argsort(here, kind="stable")
        sorted_rows = here[order]
        begin, stop = np.searchsorted(sorted_rows, ends), np.searchsorted(sorted_rows, ends, side="right")
        counts = stop - begin
        total = int(counts.sum())
        if total * (steps.shape[1] + 1) > _MOST_WALKS:
            raise QueryError(
                f"walks to the middle of this meta-path are more than {_MOST_WALKS:,}; use a shorter meta-path"
            )
        source = np.repeat(np.arange(len(ends)), counts)
        offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        taken = order[np.repeat(begin, counts) + offsets]
        origins, ends = origins[source], there[taken]
        steps = np.concatenate([steps[source], table.numbers[taken][:, None]], axis=1)
    return origins, steps, ends
