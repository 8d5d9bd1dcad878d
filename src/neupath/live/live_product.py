"""Half-path matrices that follow edges: an edge changes whole rows of them, which are computed again.

The rows are computed from the newest adjacency, never from their older values, so that rounding errors do not add up.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from neupath._runtime.lazy_mapping import LazyMapping
from neupath.engine.products import Chain, Factors, link_matrix, row_norms
from neupath.engine.scorer import RowEdge
from neupath.engine.walk import walk_rows
from neupath.errors import NeuPathError
from neupath.graph.edges import LinkFilter
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import Link, MetaPath, Relation
from neupath.graph.nodes import Nodes, Rows
from neupath.live.live_edges import NewestEdges
from neupath.live.overlay import OverlaidFactors, Overlay, Row, add_up_entries, keys_of
from neupath.measures.path_measure import Leg, PathMeasure, reversed_legs


# ---- Matrices of one version ---------------------------------------------------------------------
class LiveMatrices(LazyMapping[Relation, Csr]):
    """The matrices of one version, each made of its overlay on first use."""

    def __init__(self, overlays: Mapping[Relation, Overlay], base_counts: dict[Relation, Rows]) -> None:
        super().__init__(overlays, lambda relation: overlays[relation].matrix())
        self.overlays, self._base_counts = overlays, base_counts

    def fresh(self) -> "LiveMatrices":
        """Return a copy without the matrices that are computed."""
        return LiveMatrices(self.overlays, self._base_counts)

    def edge_counts(self, relation: Relation) -> tuple[Rows, Rows]:
        """Count the edges of each source and each target, without the matrix."""
        overlay = self.overlays[relation]
        base, (height, width) = overlay.base, overlay.shape
        if relation not in self._base_counts:
            self._base_counts[relation] = np.bincount(base.indices, minlength=base.shape[1])
        sources, targets = np.zeros(height, dtype=np.int64), np.zeros(width, dtype=np.int64)
        sources[: base.shape[0]] = np.diff(base.indptr)
        targets[: base.shape[1]] = self._base_counts[relation]
        changed = np.array(sorted({number for block in overlay.blocks for number in block.rows}), dtype=np.int64)
        newest = overlay.take(changed)
        sources[changed] = np.diff(newest.indptr)
        targets += np.bincount(newest.indices, minlength=width)
        targets -= np.bincount(Overlay.over(base).take(changed).indices, minlength=width)
        return sources, targets


# ---- Adjacency of the newest version -------------------------------------------------------------
class Adjacency:
    """The edges of the newest version by link; those of a link are built when it is first used.

    A link with filters has those edges that meet its conditions, with the weights that they count with. `unsound` are
    links for whose edges or nodes no weight can be computed any more, or whose pinned nodes have to be looked up again.
    """

    def __init__(self, hin: HIN, single_edges: NewestEdges | None = None) -> None:
        self.hin = hin  # the newest version
        self._single_edges = single_edges or NewestEdges({}, [])
        self._overlays = {Link(relation): Overlay.over(matrix) for relation, matrix in hin.matrices.items()}
        self._base_counts: dict[Relation, Rows] = {}
        self._filters: dict[Link, LinkFilter] = {}
        self.unsound: set[Link] = set()

    @property
    def changed_share(self) -> float:
        """Entries of changed rows per entry of the base."""
        overlays = [own for link, own in self._overlays.items() if link == Link(link.relation)]
        size = sum(int(overlay.base.nnz) for overlay in overlays)
        return sum(overlay.num_changed for overlay in overlays) / max(1, size)

    def overlay(self, link: Link) -> Overlay:
        if link not in self._overlays:
            self._overlays[link] = Overlay.over(self.hin.matrix(link))
        return self._overlays[link]

    def matrices(self) -> LiveMatrices:
        overlays = {relation: self._overlays[Link(relation)] for relation in self.hin.schema.relations}
        return LiveMatrices(overlays, self._base_counts)

    def prepare(self, metapath: MetaPath, newest: HIN) -> None:
        """Build the overlays of links with filters from the newest version."""
        for step in metapath.steps:
            for link in (*step.links, *step.reversed().links):
                if link.is_filtered and (link not in self._overlays or link in self.unsound):
                    self._overlays[link] = Overlay.over(link_matrix(newest, link))
                    self._filters[link] = LinkFilter(link, newest.nodes)
                    self.unsound.discard(link)

    def put(self, edges: Sequence[RowEdge]) -> None:
        """Set the weights of edges, undirected ones listed in both directions."""
        for link, overlay in self._overlays.items():
            entries: dict[int, dict[int, float]] = {}
            for row, column, weight in _entries_of(link, edges):
                counted = self._counted(link, row, column, weight) if link.is_filtered else weight
                entries.setdefault(row, {})[column] = counted
            if entries:
                self._overlays[link] = overlay.with_entries(entries)

    def _counted(self, link: Link, row: int, column: int, weight: float) -> float:
        """Return the weight that an edge counts with by the filters of a link."""
        if link in self.unsound:  # its filters do not know new nodes
            return 0.0
        try:
            if link.edge_filter is not None and link.relation in self._single_edges:
                pair = (column, row) if link.reverse else (row, column)
                pair = pair if link.relation.directed else (min(pair), max(pair))
                edges = self._single_edges.between(link.relation, [pair])
                return self._filters[link].weight_between(row, column, edges)
            return float(self._filters[link].weights(np.array([row]), np.array([column]), np.array([weight]))[0])
        except NeuPathError:
            self.unsound.add(link)
            return 0.0

    def grow(self, nodes: Mapping[str, Nodes]) -> None:
        """Follow nodes that are new at the end of their types."""
        for link, overlay in self._overlays.items():
            self._overlays[link] = overlay.grown(len(nodes[link.source]), len(nodes[link.target]))
        for link, own in self._filters.items():
            try:
                own.grow(nodes)
            except NeuPathError:
                self.unsound.add(link)


def both_directions(edges: Sequence[RowEdge]) -> list[RowEdge]:
    """Return edges, those of undirected relations in both directions."""
    directions: list[RowEdge] = []
    for edge in edges:
        directions.append(edge)
        relation, row, column, weight = edge
        if not relation.directed and row != column:
            directions.append((relation, column, row, weight))
    return directions


def _entries_of(link: Link, edges: Sequence[RowEdge]) -> Iterator[tuple[int, int, float]]:
    """Yield the entries of a link's matrix that some edges set."""
    for relation, row, column, weight in edges:
        if link.relation is relation or link.relation == relation:  # mostly the same object, which compares faster
            yield (column, row, weight) if link.reverse else (row, column, weight)


# ---- Half-path matrices --------------------------------------------------------------------------
class LiveLeg:
    """A leg of a measure over the newest edges: `walk_rows` takes rows of it, and multiplies by it."""

    __array_ufunc__ = None  # so that `@` of a matrix leaves it to this class

    def __init__(self, adjacency: Adjacency, leg: Leg) -> None:
        self._adjacency, self.leg = adjacency, leg
        self._back = leg.step.reversed()
        self.filtered = [link for link in leg.step.links if link.is_filtered]
        self._row_scale, self._column_scale = np.zeros(0), np.zeros(0)
        self._rescale(*map(np.arange, self.shape))

    @property
    def is_sound(self) -> bool:
        """Whether all weights of its edges can be computed."""
        return self._adjacency.unsound.isdisjoint(self.filtered)

    def __getitem__(self, rows: Rows) -> Csr:
        matrix = self._take(self.leg.step.links, rows)
        if self.leg.row_power:
            matrix.data = np.repeat(self._row_scale[rows], np.diff(matrix.indptr)) * matrix.data
        if self.leg.column_power:
            matrix.data = matrix.data * self._column_scale[matrix.indices]
        return matrix

    def __rmatmul__(self, rows: Csr) -> Csr:
        """Return some rows times this leg, added up in the order of each row, as scipy does."""
        others = self[rows.indices.astype(np.int64)]
        counts, width = np.diff(others.indptr), others.shape[1]
        starts = np.repeat(np.arange(rows.shape[0]) * width, np.diff(rows.indptr))
        keys, values = np.repeat(starts, counts) + others.indices, np.repeat(rows.data, counts) * others.data
        return add_up_entries(keys, values, (rows.shape[0], width))

    def _take(self, links: Sequence[Link], rows: Rows) -> Csr:
        """Return some rows of the sum of some links."""
        parts = [self._adjacency.overlay(link).take(rows) for link in links]
        if len(parts) == 1:
            return parts[0]
        keys, values = np.concatenate([keys_of(part) for part in parts]), np.concatenate([part.data for part in parts])
        return add_up_entries(keys, values, parts[0].shape)

    def reaching(self, columns: Rows) -> Rows:
        """Return the rows that have an edge to one of the columns."""
        rows: Rows = np.unique(self._take(self._back.links, columns).indices).astype(np.int64)
        return rows

    def follow(self, edges: Sequence[RowEdge]) -> Rows:
        """Return the rows that edges change; their scaling factors are updated."""
        ends = [end[:2] for link in self.leg.step.links for end in _entries_of(link, edges)]
        if not ends:
            return np.zeros(0, dtype=np.int64)
        rows, columns = (np.unique(end) for end in np.array(ends, dtype=np.int64).T)
        self._rescale(rows, columns)
        return np.union1d(rows, self.reaching(columns)) if self.leg.column_power else rows

    def _rescale(self, rows: Rows, columns: Rows) -> None:
        links, back, leg = self.leg.step.links, self._back.links, self.leg
        sums: Floats  # added in the order in which scipy adds up the rows, and the columns, of a matrix
        if leg.row_power:
            sums = self._take(links, rows).sum(axis=1)
            self._row_scale = _with_powers(self._row_scale, rows, sums, leg.row_power)
        if leg.column_power:
            entries = self._take(back, columns)
            own = np.repeat(np.arange(len(columns)), np.diff(entries.indptr))
            sums = np.asarray(np.bincount(own, weights=entries.data, minlength=len(columns)), dtype=np.float64)
            self._column_scale = _with_powers(self._column_scale, columns, sums, leg.column_power)

    @property
    def shape(self) -> tuple[int, int]:
        return self._adjacency.overlay(self.leg.step.links[0]).shape

    def grow(self) -> None:
        """Follow nodes that are new: their edges add up to nothing yet."""
        height, width = self.shape
        self._row_scale = _padded(self._row_scale, height) if self.leg.row_power else self._row_scale
        self._column_scale = _padded(self._column_scale, width) if self.leg.column_power else self._column_scale


def _padded(array: Floats, size: int) -> Floats:
    return np.concatenate([array, np.zeros(size - len(array))]) if size > len(array) else array


def _with_powers(scale: Floats, rows: Rows, sums: Floats, power: float) -> Floats:
    """Set the scaling factors of some rows to a power of the sums of their entries."""
    scale = _padded(scale, int(rows.max(initial=-1)) + 1)
    positive = sums > 0
    with np.errstate(over="ignore"):  # the check of the norms finds it
        scale[rows] = np.where(positive, np.where(positive, sums, 1.0) ** power, 0.0)
    return scale


class LiveHalf:
    """W = S1·S2·…·Sl of the newest version."""

    def __init__(self, adjacency: Adjacency, legs: Sequence[Leg], base: Csr) -> None:
        self.legs = [LiveLeg(adjacency, leg) for leg in legs]
        self.overlay = Overlay.over(base)
        self.follow([])  # builds what it needs of the adjacency, so that no update waits for it

    def follow(self, edges: Sequence[RowEdge]) -> None:
        """Compute the rows again from which a path leads over one of the edges; raise if a float cannot hold a norm."""
        rows = np.zeros(0, dtype=np.int64)
        for number, leg in enumerate(reversed(self.legs)):
            leg.grow()
            through = leg.reaching(rows) if number else rows
            rows = np.union1d(through, leg.follow(edges))
        matrix = walk_rows(self.legs, rows)  # type: ignore[arg-type]  # legs act as matrices
        self.overlay = self.overlay.grown(self.legs[0].shape[0], self.legs[-1].shape[1])
        if len(rows):
            norms, spans = row_norms(matrix).tolist(), pairwise(matrix.indptr.tolist())
            cut = (Row(matrix.indices[i:j], matrix.data[i:j], norm) for (i, j), norm in zip(spans, norms, strict=True))
            self.overlay = self.overlay.replaced(dict(zip(rows.tolist(), cut, strict=True)))


class LiveProduct:
    """M = L·Rᵀ of the newest version."""

    def __init__(self, base: Factors, left: LiveHalf, right: LiveHalf) -> None:
        self._base, self._halves = base, (left, right)
        self.is_sound = True
        """Whether all its weights can be computed, and floats hold its norms; if not, it must be fitted again."""

    @property
    def factors(self) -> OverlaidFactors:
        left, right = self._halves
        return OverlaidFactors(self._base, left.overlay, right.overlay)

    @property
    def changed_share(self) -> float:
        """Entries of changed rows per entry of the base, of the half that has changed more."""
        return max(half.overlay.num_changed / max(1, half.overlay.base.nnz) for half in self._halves)

    def follow(self, edges: Sequence[RowEdge]) -> None:
        left, right = self._halves
        try:
            for half in (left,) if left is right else (left, right):
                half.follow(edges)
        except NeuPathError:
            self.is_sound = False
        self.is_sound &= all(leg.is_sound for half in self._halves for leg in half.legs)


def live_product(measure: PathMeasure, adjacency: Adjacency) -> LiveProduct | None:
    """Return the product of a measure that is fitted to the newest version.

    None if the measure must be fitted to each version: its halves meet at edges, or their product is too large.
    """
    factors = measure.factors_
    if isinstance(factors, Chain) or not measure.meets_at_nodes(measure.metapath_):
        return None
    adjacency.prepare(measure.metapath_, measure.hin_)
    lefts, rights = measure.half_legs(measure.metapath_)
    left = LiveHalf(adjacency, lefts, factors.left)
    if rights is None:
        return LiveProduct(factors, left, left)
    return LiveProduct(factors, left, LiveHalf(adjacency, reversed_legs(rights), csr_array(factors.right.T.tocsr())))
