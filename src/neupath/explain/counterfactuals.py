"""What if: the fewest edges or nodes whose removal, or addition, moves a target out of a query's k best, or into them.

A measure sees the graph through half-walks: those from the query and from each target to the middle of the meta-path.
`_Problem` lists them once, with the edges or nodes that each needs. Switching some of these off gives the exact scores
of the changed graph without building it. A greedy search finds a set, smaller sets are excluded by a bound or by branch
and bound within a budget, and whatever is returned is checked by changing the graph and searching again.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath._runtime.progress import check_cancelled
from neupath.engine.hits import check_k
from neupath.engine.products import Normalisation
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, listed
from neupath.explain.groups import PathNode
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import Link, MetaPath, Relation
from neupath.graph.nodes import Id, Nodes, Rows
from neupath.measures import HeteSim, PathMeasure, measure_named
from neupath.measures.path_measure import Leg, reversed_legs

EDGES = "edges"
BUDGET = 200_000_000
"""The work for one question by default, in half-walks that are added up: some seconds."""
_MOST_WALKS = 1 << 25
_MOST_ADDITIONS = 2000
_DEEPEST_BOUND = 32  # the largest set that the bound can exclude
_MOST_LIFTS = 500  # elements far from the two nodes that the greedy search tries
_LARGEST_BLIND = 3  # the largest set to look for where the greedy search finds none
_COPIES = 4  # how many new nodes may have the same neighbours
Ints = NDArray[np.int64]


# ---- Results -------------------------------------------------------------------------------------
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


@dataclass(frozen=True)
class ChangedSet:
    """Elements that are changed together, and where the target stands then: its rank is None without any path."""

    elements: tuple[Element, ...]
    rank: int | None
    score: float

    def to_dict(self) -> dict[str, object]:
        elements = [element.to_dict() for element in self.elements]
        return {"size": len(elements), "elements": elements, "rank": self.rank, "score": self.score}


@dataclass(frozen=True)
class WhatIf:
    """What moves a target out of, or into, the k best of a query."""

    query: PathNode
    target: PathNode
    metapath: str
    measure: str
    k: int
    change: str
    """ "remove" or "add"."""
    by: str
    """What is removed or added: "edges", or a node type."""
    rank: int | None
    """The rank of the target before; None without any path."""
    score: float
    smallest: ChangedSet | None
    """The smallest set that was found; None where no set does it, or none was found."""
    at_least: int
    """No set of fewer elements does it."""
    singles: tuple[ChangedSet, ...]
    """Single changes with the largest effect on the rank, then on the score."""
    reason: str | None = None
    """Why there is no set, as a sentence."""

    @property
    def optimal(self) -> bool:
        """Whether no smaller set does it, by proof."""
        return self.smallest is not None and len(self.smallest.elements) <= self.at_least

    def to_dict(self) -> dict[str, object]:
        """Return what `whatif --json` prints."""
        return {
            "query": self.query.to_dict(), "target": self.target.to_dict(), "metapath": self.metapath,
            "measure": self.measure, "k": self.k, "change": self.change, "by": self.by, "rank": self.rank,
            "score": self.score, "smallest": None if self.smallest is None else self.smallest.to_dict(),
            "optimal": self.optimal, "at_least": self.at_least, "reason": self.reason,
            "singles": [single.to_dict() for single in self.singles],
        }  # fmt: skip


# ---- The question --------------------------------------------------------------------------------
def what_if(
    hin: HIN,
    metapath: str | MetaPath,
    query: Id,
    target: Id,
    *,
    measure: str | PathMeasure = "pathsim",
    k: int = 10,
    remove: str | None = None,
    add: str | None = None,
    limit: int = 10,
    budget: int = BUDGET,
) -> WhatIf:
    """Find the fewest edges, or nodes, whose change moves a target out of the k best of a query, or into them.

    Every edge of the relations on the meta-path may be removed, also one of another target, which may overtake without
    it. Edges are added from the target to nodes that the query reaches; a new node is linked to the target, to the
    query where the meta-path starts as it ends, and to one node that the query reaches. The set and every single change
    in the result are verified by changing the graph and searching again.

    Parameters
    ----------
    hin
        The graph.
    metapath
        The meta-path, as a text or a `MetaPath`.
    query, target
        The two nodes, by id or unambiguous name.
    measure
        A name in `MEASURES`, or a measure with parameters of its own.
    k
        How many hits count as the best: the target's rank must become larger than k, or at most k.
    remove
        "edges", or the type of the nodes to remove. "edges" by default where the target is among the k best.
    add
        "edges", or the type of the nodes to add. "edges" by default where the target is not.
    limit
        How many single changes to list.
    budget
        How much work to spend; less may leave open whether a smaller set exists.

    >>> from neupath import load
    >>> answer = what_if(load("toy"), "APVPA", "Mike", "Mary", k=2, remove="paper")
    >>> answer.rank, [str(paper) for paper in answer.smallest.elements], answer.smallest.rank, answer.optimal
    (2, ['Mary-SIGMOD-1', 'Mary-SIGMOD-2'], None, True)
    """
    k = check_k(k)
    if limit < 0:
        raise QueryError(f"‹limit› is {limit}; list 0 or more single changes", parameter="limit")
    if budget < 1:
        raise QueryError(f"‹budget› is {budget}; give at least 1", parameter="budget")
    if remove is not None and add is not None:
        raise QueryError("give either ‹remove› or ‹add›, not both", parameter="add")
    named = measure_named(measure, metapath) if isinstance(measure, str) else _with_metapath(measure, metapath)
    scorer = named.fit(hin)
    if not scorer.counts_walks:
        raise QueryError(f"{scorer.name} leaves walks out, so what-if cannot follow it; use dwpc")
    path = scorer.metapath_
    x, y = hin.row(path.source, query), hin.row(path.target, target)
    if path.source == path.target and x == y:
        raise QueryError(f"{query!r} is both the query and the target; give two nodes")
    rank, score = rank_of(scorer, x, y)
    is_hit = rank is not None and rank <= k
    if remove is None and add is None:
        remove, add = (EDGES, None) if is_hit else (None, EDGES)
    by = _checked_kind(path, remove if remove is not None else str(add))
    answer = WhatIf(
        _path_node(hin, path.source, x), _path_node(hin, path.target, y), str(path), scorer.name, k,
        "add" if remove is None else "remove", by, rank, score, None, 0, (),
    )  # fmt: skip
    label, query_label = answer.target.label, answer.query.label
    if remove is not None:
        if not is_hit:
            where = "has no path to it" if rank is None else f"has rank {rank:,}"
            return replace(answer, reason=f"{label} is not among the {k:,} best of {query_label}: it {where}")
        changes: _Removals | _Additions = _Removals.of(hin, path, by, x, y)
    else:
        if is_hit:
            return replace(answer, reason=f"{label} is among the {k:,} best of {query_label} already, at rank {rank}")
        changes = _Additions.of(hin, path, by, x, y)
    return _Search(scorer, changes, x, y, answer, budget).run(limit)


def _with_metapath(measure: PathMeasure, metapath: str | MetaPath) -> PathMeasure:
    params: Any = measure.params() | {"metapath": metapath}
    return type(measure)(**params)


def _checked_kind(path: MetaPath, kind: str) -> str:
    if kind == EDGES:
        return kind
    node_type = path.schema.node_type(kind)
    if node_type not in path.node_types:
        raise QueryError(
            f"{node_type} is not on {path}; give edges, or one of {listed(dict.fromkeys(path.node_types))}"
        )
    return node_type


def _path_node(hin: HIN, node_type: str, row: int) -> PathNode:
    nodes = hin.nodes[node_type]
    return PathNode(node_type, nodes.id(row), nodes.name(row))


def rank_of(scorer: Scorer, x: int, y: int) -> tuple[int | None, float]:
    """Return the rank of a target among the hits of a query, None at score 0, and its score; both nodes as rows."""
    scores = scorer.score_rows(np.array([x]))[0]
    score = float(scores[y])
    before = (scores > score) | ((scores == score) & (np.arange(len(scores)) < y))
    if scorer.source_type == scorer.target_type:
        before[x] = False
    return (int(before.sum()) + 1 if score > 0 else None), score


def ranks_without_each(scorer: PathMeasure, query: Id, target: Id, by: str) -> Floats:
    """Return the ranks of a target after each removal of a single edge or node near it or the query.

    A target without any path has a rank of at least 2**53. `by` is "edges" or a node type on the meta-path.
    """
    hin, path = scorer.hin_, scorer.metapath_
    x, y = hin.row(path.source, query), hin.row(path.target, target)
    kind = _checked_kind(path, by)
    ends = _path_node(hin, path.source, x), _path_node(hin, path.target, y)
    answer = WhatIf(*ends, str(path), scorer.name, 1, "remove", kind, 1, 0.0, None, 0, ())
    return _Search(scorer, _Removals.of(hin, path, kind, x, y), x, y, answer, BUDGET).near_ranks()


# ---- Graphs with changes -------------------------------------------------------------------------
@dataclass(frozen=True)
class RelationEdges:
    """Edges of one relation by rows; those of an undirected relation once."""

    sources: Rows
    targets: Rows
    weights: Floats


def without_edges(hin: HIN, removed: Mapping[Relation, tuple[Rows, Rows]]) -> HIN:
    """Return a graph without some edges, given by the rows of their ends."""
    matrices = dict(hin.matrices)
    for relation, (sources, targets) in removed.items():
        entries = hin.matrices[relation].tocoo()
        width = entries.shape[1]
        keys = entries.row.astype(np.int64) * width + entries.col
        gone = np.asarray(sources, np.int64) * width + targets
        if not relation.directed:
            gone = np.concatenate([gone, np.asarray(targets, np.int64) * width + sources])
        kept = ~np.isin(keys, gone)
        left = csr_array((entries.data[kept], (entries.row[kept], entries.col[kept])), shape=entries.shape)
        matrices[relation] = freeze(left)
    return HIN(hin.schema, hin.nodes, MappingProxyType(matrices), hin.notes)


def with_edges(hin: HIN, added: Mapping[Relation, RelationEdges], new_nodes: Mapping[str, int]) -> HIN:
    """Return a graph with more edges, and with new nodes at the end of some types."""
    nodes = {name: _grown(each, new_nodes.get(name, 0)) for name, each in hin.nodes.items()}
    matrices: dict[Relation, Csr] = {}
    for relation, matrix in hin.matrices.items():
        shape = len(nodes[relation.source]), len(nodes[relation.target])
        more = added.get(relation)
        if more is None and shape == matrix.shape:
            matrices[relation] = matrix
            continue
        entries = matrix.tocoo()
        none = np.zeros(0, np.int64)
        extra = more or RelationEdges(none, none, np.zeros(0))
        sources, targets, weights = [extra.sources], [extra.targets], [extra.weights]
        if not relation.directed:
            sources, targets, weights = [*sources, extra.targets], [*targets, extra.sources], [*weights, extra.weights]
        rows, columns = np.concatenate([entries.row, *sources]), np.concatenate([entries.col, *targets])
        matrices[relation] = freeze(csr_array((np.concatenate([entries.data, *weights]), (rows, columns)), shape=shape))
    return HIN(hin.schema, MappingProxyType(nodes), MappingProxyType(matrices), hin.notes)


def _grown(nodes: Nodes, count: int) -> Nodes:
    if not count:
        return nodes
    if pa.types.is_int64(nodes.ids.type):
        first = max(nodes.ids.to_pylist(), default=0) + 1
        ids = pa.array(range(first, first + count), pa.int64())
    else:
        taken = set(nodes.ids.to_pylist())
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
class _Removals:
    """Edges, or nodes of a type, that may be removed."""

    hin: HIN
    count: int
    entries: Mapping[Relation, _RelationEntries]
    node_type: str | None = None
    offsets: Mapping[Relation, int] = field(default_factory=dict)
    starts_off = False
    largest_proof = sys.maxsize

    @classmethod
    def of(cls, hin: HIN, path: MetaPath, by: str, x: int, y: int) -> "_Removals":
        entries, offsets, count = {}, {}, 0
        kept = [row for node_type, row in ((path.source, x), (path.target, y)) if node_type == by]
        for relation in _relations(path):
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
            return ChangedNode(_path_node(self.hin, self.node_type, element))
        relation, place = self._place(element)
        edges = self.entries[relation]
        ends = (
            _path_node(self.hin, relation.source, edges.rows[place]),
            _path_node(self.hin, relation.target, edges.columns[place]),
        )
        return ChangedEdge(relation.name, *ends, float(edges.weights[place]))

    def _place(self, element: int) -> tuple[Relation, int]:
        relation = max((r for r in self.offsets if self.offsets[r] <= element), key=lambda r: self.offsets[r])
        return relation, element - self.offsets[relation]

    def apply(self, elements: Sequence[int]) -> HIN:
        removed: dict[Relation, tuple[Rows, Rows]] = {}
        if self.node_type is not None:
            for relation, matrix in self.hin.matrices.items():
                rows, columns, _ = _coordinates(matrix)
                gone = np.zeros(len(rows), np.bool_)
                for node_type, ends in ((relation.source, rows), (relation.target, columns)):
                    if node_type == self.node_type:
                        gone |= np.isin(ends, elements)
                if gone.any():
                    removed[relation] = rows[gone], columns[gone]
            return without_edges(self.hin, removed)
        places = [self._place(element) for element in elements]
        for relation in {relation for relation, _ in places}:
            at = [place for each, place in places if each == relation]
            removed[relation] = self.entries[relation].rows[at], self.entries[relation].columns[at]
        return without_edges(self.hin, removed)


@dataclass(frozen=True)
class _Additions:
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
    def of(cls, hin: HIN, path: MetaPath, by: str, x: int, y: int) -> "_Additions":
        reached = _reached(hin, path, x)
        new, num_kinds = _new_edges(hin, path, reached, y), 0
        if by != EDGES:
            ends = reached[-3].tolist() if len(path) > 2 else [x]
            new, num_kinds = _new_nodes(hin, path, by, ends, x, y), len(ends)
        kept = new[:_MOST_ADDITIONS]
        copies = sys.maxsize if by == EDGES else len(new) // max(1, num_kinds)
        largest = copies if len(kept) == len(new) else 0
        node_type = None if by == EDGES else by
        grown = with_edges(hin, {}, {} if node_type is None else {by: len(kept)})
        entries = {}
        for relation in _relations(path):
            rows, columns, weights = _coordinates(hin.matrices[relation])
            pairs = [(s, t, i) for i, edges in enumerate(kept) for s, t in edges.get(relation, ())]
            if not relation.directed:
                pairs += [(t, s, i) for s, t, i in pairs if s != t]
            more = np.array(pairs, np.int64).reshape(-1, 3)
            entries[relation] = _RelationEntries(
                np.concatenate([rows, more[:, 0]]), np.concatenate([columns, more[:, 1]]),
                np.concatenate([weights, np.ones(len(more))]),
                np.concatenate([np.full(len(rows), -1), more[:, 2]]), np.full(len(rows) + len(more), -1),
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
        return _path_node(self.hin, node_type, row)

    def apply(self, elements: Sequence[int]) -> HIN:
        added = {}
        for relation in self.hin.matrices:
            pairs = [pair for element in elements for pair in self.new[element].get(relation, ())]
            if pairs:
                ends = np.array(pairs, np.int64)
                added[relation] = RelationEdges(ends[:, 0], ends[:, 1], np.ones(len(ends)))
        new_nodes = {} if self.node_type is None else {self.node_type: self.count}
        return with_edges(self.hin, added, new_nodes)


NewEdges = dict[Relation, list[tuple[int, int]]]


def _new_edges(hin: HIN, path: MetaPath, reached: Sequence[Ints], y: int) -> list[NewEdges]:
    """Return the edges from the target to nodes that the query reaches, as far as there are none."""
    new: list[NewEdges] = []
    for link in path.steps[-1].links:
        joined = hin.matrix(link.reversed())[[y]].indices
        loop = y if link.source == path.target else -1
        free = np.setdiff1d(reached[-2], np.append(joined, loop)).tolist()
        new += [{link.relation: [_forward(link, end, y)]} for end in free]
    return new


def _new_nodes(hin: HIN, path: MetaPath, by: str, ends: Sequence[int], x: int, y: int) -> list[NewEdges]:
    """Return new nodes that join the target with one of some ends, and with the query on a symmetric path."""
    if by != path.node_types[-2] or len(path) < 2:
        between = f", or a {path.node_types[-2]}" if len(path) > 1 else ""
        raise QueryError(f"a new {by} cannot join {path.target} nodes along {path}; add edges{between}")
    first, last, before = (path.steps[at].links[0] for at in (0, -1, -2))
    new: list[NewEdges] = []
    for _ in range(_COPIES if len(path) > 2 else 3 * _COPIES):
        for end in ends:
            node = hin.num_nodes(by) + len(new)
            edges: NewEdges = {last.relation: [_forward(last, node, y)]}
            edges.setdefault(before.relation, []).append(_forward(before, end, node))
            if path.is_symmetric and len(path) > 2:
                edges.setdefault(first.relation, []).append(_forward(first, x, node))
            new.append(edges)
    return new


def _relations(path: MetaPath) -> list[Relation]:
    return list(dict.fromkeys(link.relation for step in path.steps for link in step.links))


def _coordinates(matrix: Csr) -> tuple[Ints, Ints, Floats]:
    entries = matrix.tocoo()
    return entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data


def _forward(link: Link, source: int, target: int) -> tuple[int, int]:
    return (target, source) if link.reverse else (source, target)


def _reached(hin: HIN, path: MetaPath, x: int) -> list[Ints]:
    """Return the rows that walks from the query visit at each position."""
    reached = [np.array([x])]
    for step in path.steps:
        reached.append(np.unique(np.concatenate([hin.matrix(link)[reached[-1]].indices for link in step.links])))
    return [rows.astype(np.int64) for rows in reached]


# ---- The problem: half-walks and their elements --------------------------------------------------
@dataclass(frozen=True)
class _LegEntries:
    """The entries of one leg with the number that each has in the problem."""

    rows: Ints
    columns: Ints
    numbers: Ints


class _Problem:
    """The half-walks of a query and of the targets that it reaches, as the kernels read them."""

    def __init__(self, scorer: PathMeasure, changes: _Removals | _Additions, x: int, y: int) -> None:
        hin = changes.grown if isinstance(changes, _Additions) else changes.hin
        path = scorer.metapath_
        lefts, rights, meets_on_edges = _walked_legs(scorer, path)
        legs = [*lefts, *rights]
        tables, columns = self._number_entries(legs, changes.entries)
        self._scaling = self._scale(legs, tables, hin, columns)
        self.entries = columns[2], columns[3], columns[4]
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
        legs: Sequence[Leg], entries: Mapping[Relation, _RelationEntries]
    ) -> tuple[list[_LegEntries], list[Any]]:
        """Number the entries of all legs; return them by leg, and the columns row, column, weight and two elements."""
        tables, columns, count = [], [], 0
        for leg in legs:
            parts = []
            for link in leg.step.links:
                e = entries[link.relation]
                ends = (e.columns, e.rows) if link.reverse else (e.rows, e.columns)
                parts.append((*ends, e.weights, e.first, e.second))
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
            number, rows, cols, np.array([leg.row_power for leg in legs]), np.array([leg.column_power for leg in legs]),
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

    def reset(self) -> None:
        """Evaluate the graph as the switches are now; changes are evaluated relative to it."""
        from neupath.explain import counterfactual_kernels as kernels

        self.base_norm[0], _ = kernels.revise_all(self.arrays, self.off, self.base)
        for part, base in zip(self.state, self.base, strict=True):
            part[:] = base


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


def _losses(targets: int, depth: int) -> tuple[Floats, ...]:
    """Return room for what single removals take away at most; see `counterfactual_kernels.evaluate_each`."""
    return np.zeros((targets, depth)), np.zeros((targets, depth)), np.zeros((2, depth)), np.zeros(depth)


# ---- The search ----------------------------------------------------------------------------------
class _Search:
    """Greedy search for a set, a bound on its size, and branch and bound between the two."""

    def __init__(
        self, scorer: PathMeasure, changes: _Removals | _Additions, x: int, y: int, answer: WhatIf, budget: int
    ) -> None:
        self._scorer, self._changes, self._x, self._y, self._answer = scorer, changes, x, y, answer
        self._left = budget
        self._removes = answer.change == "remove"
        self._problem = _Problem(scorer, changes, x, y)
        # Only removals of walks of fixed weights lower every M and norm, which the bound needs.
        self._is_bounded = self._removes and not self._problem.is_scaled
        depth, targets = _DEEPEST_BOUND, len(self._problem.rows)
        self._losses = _losses(targets, depth)

    def run(self, limit: int) -> WhatIf:
        """Evaluate changes near the two nodes; all others only where no single one of these does it."""
        self._problem.reset()
        near, far = self._candidates()
        results = self._evaluate(near)
        singles = self._singles(near, results, limit)
        done = np.flatnonzero(self._is_done(results[:, 1]))
        if len(done):
            gaps = (1 if self._removes else -1) * (results[done, 0] - results[done, 2])
            chosen: list[int] | None = [int(near[done[np.argmin(gaps)]])]
            at_least = 1
        else:
            chosen, at_least = self._smallest_set(near, far, results)
        smallest = None if chosen is None else self._verify(chosen)
        return replace(
            self._answer, smallest=smallest, at_least=at_least, singles=singles,
            reason=self._describe_failure(chosen) if smallest is None else None,
        )  # fmt: skip

    def near_ranks(self) -> Floats:
        """Return the rank after each single change near the two nodes."""
        self._problem.reset()
        ranks: Floats = self._evaluate(self._candidates()[0])[:, 1]
        return ranks

    def _smallest_set(self, near: Ints, far: Ints, results: Floats) -> tuple[list[int] | None, int]:
        """Return the smallest set that is found, and a lower bound on the size of any."""
        is_complete = self._work_of(far) <= self._left
        if is_complete:
            results = np.concatenate([results, self._evaluate(far)])
            done = np.flatnonzero(self._is_done(results[:, 1]))
            if len(done):
                return [int(np.concatenate([near, far])[done[0]])], 1
        candidates = np.concatenate([near, far]) if is_complete else near
        greedy = self._greedy(candidates, results, len(near))
        if not is_complete:
            return greedy, 1
        return self._tighten(candidates, results, greedy)

    def _describe_failure(self, chosen: list[int] | None) -> str:
        answer, what = self._answer, self._answer.by if self._answer.by == EDGES else f"{self._answer.by} nodes"
        if chosen is not None:
            return "a set was found, but ties that depend on rounding decide it, so it is left out"
        if self._removes:
            return f"removing {what} does not take {answer.target.label} out of the {answer.k:,} best"
        return f"no {what} that were tried bring {answer.target.label} into the {answer.k:,} best"

    # -- Single changes
    def _candidates(self) -> tuple[Ints, Ints]:
        """Return the elements on half-walks of the query and the target, and all others that matter."""
        starts, targets, touches_query = self._problem.touched
        element = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        near = touches_query.copy()
        near[element[targets == self._problem.target]] = True
        matters = np.zeros(self._problem.count + 1, np.bool_)
        if self._problem.is_scaled:  # by sums of weights, also those of edges on no half-walk
            for column in self._problem.entries[1:]:
                matters[column] = True
        matters[:-1] |= np.diff(starts) > 0
        return np.flatnonzero(near), np.flatnonzero(matters[:-1] & ~near)

    def _evaluate(self, candidates: Ints, losses: tuple[Floats, ...] | None = None) -> Floats:
        """Return (score, rank, k-th best other score) after each single change."""
        from neupath.explain import counterfactual_kernels as kernels

        problem = self._problem
        results = np.zeros((len(candidates), 3))
        for start in range(0, len(candidates), 1024):
            check_cancelled()
            part = slice(start, start + 1024)
            self._left -= kernels.evaluate_each(
                problem.arrays, int(self._scorer.normalisation), problem.rows, problem.target, candidates[part],
                problem.off, problem.base, problem.state, self._answer.k, results[part], losses or self._losses,
            )  # fmt: skip
        return results

    def _work_of(self, candidates: Ints) -> int:
        """Estimate the work of evaluating each candidate alone."""
        problem = self._problem
        starts, targets, touches_query = problem.touched
        whole = len(problem.right[0]) + len(problem.rows) + (8 * len(problem.entries[0]) if problem.is_scaled else 0)
        if problem.is_scaled:
            return whole * len(candidates)
        lengths = np.concatenate([[0], np.cumsum(np.diff(problem.starts)[targets] + 24)])
        each = lengths[starts[1:]] - lengths[starts[:-1]]
        each[touches_query] = whole
        return int(each[candidates].sum())

    def _singles(self, candidates: Ints, results: Floats, limit: int) -> tuple[ChangedSet, ...]:
        """Verify and return the single changes with the largest effect."""
        sign = 1 if self._removes else -1
        before = self._answer.rank if self._answer.rank is not None else np.inf
        is_distinct = np.isin(candidates, self._changes.distinct)
        candidates, results = candidates[is_distinct], results[is_distinct]
        ranks = np.minimum(results[:, 1], 2**53)
        helps = np.flatnonzero(sign * ranks > sign * min(before, 2**53))
        more = np.flatnonzero((ranks == min(before, 2**53)) & (sign * results[:, 0] < sign * self._answer.score))
        order = [
            part[np.lexsort((candidates[part], sign * results[part, 0], -sign * ranks[part]))] for part in (helps, more)
        ]
        chosen = candidates[np.concatenate(order)[:limit]]
        return tuple(self._changed_set([int(element)]) for element in chosen)

    # -- Sets
    def _is_done(self, ranks: Any) -> Any:
        return (ranks > self._answer.k) == self._removes

    def _greedy(self, candidates: Ints, results: Floats, num_near: int) -> list[int] | None:
        """Change the element that closes the gap to the k-th best most, again and again; then undo what is superfluous.

        The gap is the target's score less the k-th best other score. Besides the elements near the two nodes, those
        count that move the target alone.
        """
        problem, chosen = self._problem, list[int]()
        sign = 1 if self._removes else -1
        rank = 2**60 if self._answer.rank is None else self._answer.rank
        lifts = num_near + np.flatnonzero(sign * results[num_near:, 1] > sign * rank)[:_MOST_LIFTS]
        pool = np.concatenate([candidates[:num_near], candidates[lifts]])
        current = np.concatenate([results[:num_near], results[lifts]])
        unused = _losses(len(problem.rows), 1)
        is_done, last_gap = False, np.inf
        while len(pool):
            gaps = sign * (current[:, 0] - current[:, 2])
            done = np.flatnonzero(self._is_done(current[:, 1]))
            is_done = len(done) > 0
            at = int(done[0]) if is_done else int(np.argmin(gaps))
            if not is_done and not self._removes and gaps[at] >= last_gap:
                break
            last_gap = float(gaps[at])
            chosen.append(int(pool[at]))
            problem.off[pool[at]] ^= 1
            if is_done:
                break
            pool = np.delete(pool, at)
            problem.reset()
            current = self._evaluate(pool, unused)
        if is_done:
            self._drop_superfluous(chosen)
        problem.off[chosen] ^= 1
        problem.reset()
        return chosen if is_done else None

    def _drop_superfluous(self, chosen: list[int]) -> None:
        for element in list(chosen):
            self._problem.off[element] ^= 1
            self._problem.reset()
            if self._is_done(self._rank()):
                chosen.remove(element)
            else:
                self._problem.off[element] ^= 1

    def _rank(self) -> float:
        from neupath.explain import counterfactual_kernels as kernels

        problem = self._problem
        return float(kernels.standing(
            int(self._scorer.normalisation), problem.base_norm[0], problem.base, problem.rows, problem.target,
            np.empty(self._answer.k),
        )[1])  # fmt: skip

    def _tighten(self, candidates: Ints, results: Floats, greedy: list[int] | None) -> tuple[list[int] | None, int]:
        """Look for a set smaller than the greedy one; return the smallest set and a lower bound on its size."""
        most = _LARGEST_BLIND if greedy is None else len(greedy) - 1
        gaps = (1 if self._removes else -1) * (results[:, 0] - results[:, 2])
        ordered = candidates[np.argsort(gaps, kind="stable")]
        size = self._first_open_size(2 if self._changes.largest_proof else 1)
        while size <= min(most, len(candidates), self._changes.largest_proof) and self._left > 0:
            chosen = self._find(self._relevant(ordered, size), size)
            if chosen is None:
                break
            if chosen:
                return chosen, size
            size = self._first_open_size(size + 1)
        return greedy, size if greedy is None else min(size, len(greedy))

    def _first_open_size(self, size: int) -> int:
        """Return the smallest number of removals, from `size` on, that the bound does not exclude."""
        while self._is_bounded and size <= _DEEPEST_BOUND and 0 <= self._count_crossers(size)[0] < self._answer.k:
            size += 1
        return size

    def _count_crossers(self, size: int) -> tuple[int, NDArray[np.int8]]:
        from neupath.explain import counterfactual_kernels as kernels

        problem, crossers = self._problem, np.zeros(len(self._problem.rows), np.int8)
        count = kernels.mark_crossers(
            int(self._scorer.normalisation), problem.base_norm[0], problem.base, problem.target, size, self._losses,
            crossers,
        )  # fmt: skip
        return count, crossers

    def _relevant(self, candidates: Ints, size: int) -> Ints:
        """Leave out elements that touch neither of the two nodes nor a target that so many removals may move before."""
        if not self._is_bounded or size > _DEEPEST_BOUND:
            return candidates
        count, crossers = self._count_crossers(size)
        if count < 0:
            return candidates
        starts, targets, touches_query = self._problem.touched
        matters = touches_query.copy()
        element = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        matters[element[(crossers[targets] > 0) | (targets == self._problem.target)]] = True
        relevant: Ints = candidates[matters[candidates]]
        return relevant

    def _find(self, candidates: Ints, size: int) -> list[int] | None:
        """Return a set of this size, an empty list if there is none, or None if the budget ends."""
        from neupath.explain import counterfactual_kernels as kernels

        problem = self._problem
        check_cancelled()
        chosen, count, work = kernels.find_set(
            problem.arrays, int(self._scorer.normalisation), problem.rows, problem.target, candidates, size,
            self._answer.k, self._removes, self._is_bounded and size <= _DEEPEST_BOUND, problem.off, problem.base,
            problem.state, self._losses, self._left,
        )  # fmt: skip
        self._left -= work
        return None if count < 0 else [int(element) for element in chosen[:count]]

    # -- Claims
    def _changed_set(self, elements: Sequence[int]) -> ChangedSet:
        """Change the graph, search again, and return where the target stands."""
        scorer = self._scorer.bind(self._changes.apply(elements))
        rank, score = rank_of(scorer, self._x, self._y)
        described = tuple(self._changes.describe(element, number) for number, element in enumerate(elements, 1))
        return ChangedSet(described, rank, score)

    def _verify(self, elements: Sequence[int]) -> ChangedSet | None:
        changed = self._changed_set(sorted(elements))
        rank = np.inf if changed.rank is None else changed.rank
        return changed if self._is_done(rank) else None
