"""Half-path matrices that follow edges: an edge changes whole rows of them, which are computed again.

The rows are computed from the newest adjacency, never from their older values, so that rounding errors do not add up.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from neupath._runtime.lazy_mapping import LazyMapping
from neupath.engine.products import Factors, combined_row, link_matrix, row_norms
from neupath.engine.scorer import RowChange, RowEdge, Scorer, Updater
from neupath.engine.topk import Ranking, empty_ranking, in_blocks
from neupath.engine.walk import walk_rows
from neupath.errors import NeuPathError, QueryError
from neupath.graph.edges import LinkFilter
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import Link, MetaPath, Relation
from neupath.graph.nodes import Mask, Nodes, Rows
from neupath.live.live_edges import NewestEdges
from neupath.live.overlay import OverlaidFactors, Overlay, Row, add_up_entries
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
        self._pending: dict[Link, list[RowEdge]] = {}  # edges that are not yet in an overlay
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
        elif link in self._pending:
            self._put(link, self._pending.pop(link))
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
        """Set the weights of edges; those of a relation walked backwards wait until they are used."""
        for link in self._overlays:
            if link.reverse and not link.is_filtered:
                self._pending.setdefault(link, []).extend(edges)
            else:
                self._put(link, edges)

    def _put(self, link: Link, edges: Sequence[RowEdge]) -> None:
        entries: dict[int, dict[int, float]] = {}
        for row, column, weight in _entries_of(link, edges):
            counted = self._counted(link, row, column, weight) if link.is_filtered else weight
            entries.setdefault(row, {})[column] = counted
        if entries:
            self._overlays[link] = self._overlays[link].with_entries(entries)

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


def _entries_of(link: Link, edges: Sequence[RowEdge]) -> Iterator[tuple[int, int, float]]:
    """Yield the entries of a link's matrix that some edges set, those of an undirected relation both ways."""
    for relation, row, column, weight in edges:
        if link.relation is relation or link.relation == relation:  # mostly the same object, which compares faster
            yield (column, row, weight) if link.reverse else (row, column, weight)
            if not relation.directed and row != column:
                yield (row, column, weight) if link.reverse else (column, row, weight)


# ---- Half-path matrices --------------------------------------------------------------------------
_NO_ROWS = np.zeros(0, dtype=np.int64)
_ROWS_AT_ONCE = 1024  # rows that are computed together; those of a hub's neighbours may be many


class LiveLeg:
    """A leg of a measure over the newest edges: `walk_rows` takes rows of it, and multiplies by it."""

    __array_ufunc__ = None  # so that `@` of a matrix leaves it to this class

    def __init__(self, adjacency: Adjacency, leg: Leg) -> None:
        self._adjacency, self.leg = adjacency, leg
        self._back = leg.step.reversed()
        self.filtered = [link for link in leg.step.links if link.is_filtered]
        self._column_scale = np.zeros(0)
        self._rescale(np.arange(self.shape[1]))

    @property
    def is_sound(self) -> bool:
        """Whether all weights of its edges can be computed."""
        return self._adjacency.unsound.isdisjoint(self.filtered)

    def __getitem__(self, rows: Rows) -> Csr:
        matrix = self._take(self.leg.step.links, rows)
        if self.leg.row_power:
            scale = _to_power(matrix.sum(axis=1), self.leg.row_power)  # added up as when it is fitted
            matrix.data = np.repeat(scale, np.diff(matrix.indptr)) * matrix.data
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
        first, *others = (self._adjacency.overlay(link).take(rows) for link in links)
        return sum(others, first)

    def reaching(self, columns: Rows) -> Rows:
        """Return the rows that have an edge to one of the columns."""
        rows: Rows = np.unique(self._take(self._back.links, columns).indices).astype(np.int64)
        return rows

    def follow(self, edges: Sequence[RowEdge]) -> Rows:
        """Return the rows that edges change; their scaling factors are updated."""
        entries = [entry for link in self.leg.step.links for entry in _entries_of(link, edges)]
        rows = np.array(sorted({row for row, _, _ in entries}), dtype=np.int64)
        if not entries or not self.leg.column_power:
            return rows
        columns = np.array(sorted({column for _, column, _ in entries}), dtype=np.int64)
        self._rescale(columns)
        return np.union1d(rows, self.reaching(columns))

    def _rescale(self, columns: Rows) -> None:
        """Compute the scaling factors of some columns; nodes that are new have none yet."""
        if not self.leg.column_power:
            return
        new = np.zeros(self.shape[1] - len(self._column_scale))
        self._column_scale = np.concatenate([self._column_scale, new])
        entries = self._take(self._back.links, columns)
        own = np.repeat(np.arange(len(columns)), np.diff(entries.indptr))
        sums = np.bincount(own, weights=entries.data, minlength=len(columns)).astype(np.float64)  # in order, as fitted
        self._column_scale[columns] = _to_power(sums, self.leg.column_power)

    @property
    def shape(self) -> tuple[int, int]:
        return self._adjacency.overlay(self.leg.step.links[0]).shape


def _to_power(sums: Floats, power: float) -> Floats:
    positive = sums > 0
    with np.errstate(over="ignore"):  # the check of the norms finds it
        return np.where(positive, np.where(positive, sums, 1.0) ** power, 0.0)


class LiveHalf:
    """W = S1·S2·…·Sl of the newest version."""

    def __init__(self, adjacency: Adjacency, legs: Sequence[Leg], base: Csr) -> None:
        self.legs = [LiveLeg(adjacency, leg) for leg in legs]
        self.overlay = Overlay.over(base)
        for leg in self.legs[:-1]:
            leg.reaching(_NO_ROWS)  # builds what it needs, so that no update waits for it

    def follow(self, edges: Sequence[RowEdge]) -> None:
        """Compute the rows again from which a path leads over one of the edges; raise if a float cannot hold a norm."""
        rows = _NO_ROWS
        for leg in reversed(self.legs):
            changed = leg.follow(edges)
            rows = np.union1d(leg.reaching(rows), changed) if len(rows) else changed
        self.overlay = self.overlay.grown(self.legs[0].shape[0], self.legs[-1].shape[1])
        changed_rows = {}
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            block = rows[start : start + _ROWS_AT_ONCE]
            matrix = walk_rows(self.legs, block)  # type: ignore[arg-type]  # legs act as matrices
            spans, norms = pairwise(matrix.indptr.tolist()), row_norms(matrix).tolist()
            for number, (i, j), norm in zip(block.tolist(), spans, norms, strict=True):
                columns, values = matrix.indices[i:j], matrix.data[i:j]
                if len(block) > 1:  # a row that stays when its neighbours are replaced would keep them all in memory
                    columns, values = columns.copy(), values.copy()
                changed_rows[number] = Row(columns, values, norm)
        if changed_rows:
            self.overlay = self.overlay.replaced(changed_rows)


class LiveProduct(Updater):
    """The product M = L·Rᵀ of an attached measure, over the newest version."""

    def __init__(self, measure: PathMeasure, adjacency: Adjacency, version: int) -> None:
        assert isinstance(measure.factors_, Factors)
        self._measure, self._base, self._version = measure.resolve(measure.hin_), measure.factors_, version
        self._measure.metapath = measure.metapath_  # which no version parses again
        adjacency.prepare(measure.metapath_, measure.hin_)
        lefts, rights = measure.half_legs(measure.metapath_)
        self._left = self._right = LiveHalf(adjacency, lefts, self._base.left)
        if rights is not None:
            self._right = LiveHalf(adjacency, reversed_legs(rights), csr_array(self._base.right.T.tocsr()))
        self.is_sound = True
        """Whether all its weights can be computed, and floats hold its norms; if not, it must be fitted again."""

    @staticmethod
    def can_follow(measure: PathMeasure) -> bool:
        """Whether a fitted measure follows changes: its halves meet at nodes, and their product fits into memory."""
        return isinstance(measure.factors_, Factors) and measure.meets_at_nodes(measure.metapath_)

    @property
    def _halves(self) -> list[LiveHalf]:
        return [self._left] if self._left is self._right else [self._left, self._right]

    @property
    def changed_share(self) -> float:
        """Entries of changed rows per entry of the base, of the half that has changed more."""
        return max(half.overlay.num_changed / max(1, half.overlay.base.nnz) for half in self._halves)

    def apply(self, hin: HIN, change: RowChange) -> None:  # noqa: ARG002  # the adjacency has followed it
        self._version = change.version
        try:
            for half in self._halves:
                half.follow(change.edges)
        except NeuPathError:
            self.is_sound = False
        self.is_sound &= all(leg.is_sound for half in self._halves for leg in half.legs)

    def snapshot(self) -> "ProductBinding":
        return ProductBinding(
            self._measure, OverlaidFactors(self._base, self._left.overlay, self._right.overlay), self._version
        )


@dataclass(frozen=True)
class ProductBinding:
    """Makes the scorer of an attached measure over the version for which it was made."""

    measure: PathMeasure
    factors: OverlaidFactors
    version: int

    def __call__(self, hin: HIN) -> "LiveScorer":
        return LiveScorer(self.measure.resolve(hin), self.factors, self.version)

    def fresh(self) -> "ProductBinding":
        """Return a copy without what searches have computed."""
        return replace(self, factors=replace(self.factors))


# ---- Scorer of one version -----------------------------------------------------------------------
_WORK = 500.0  # additions that a mean query is assumed to need; counting them would cost more than guessing
MeasureKey = tuple[str, str]  # name and parameters: equal for measures that score the same


class LiveScorer(Scorer):
    """An attached measure at one version; it scores as if it were fitted to that version from scratch."""

    exact = True

    def __init__(self, measure: PathMeasure, factors: OverlaidFactors, version: int) -> None:
        self.name = measure.name  # type: ignore[misc]
        self.measure, self.hin_, self.version = measure, measure.hin_, version  # the measure has no product
        self._factors = factors

    def fit(self, hin: HIN) -> Self:
        if hin is not self.hin_:
            raise QueryError(f"this {self.name} belongs to version {self.version} of a live graph; attach a new one")
        return self

    def bind(self, hin: HIN) -> Self:
        return self.measure.bind(hin)  # type: ignore[return-value]  # over another graph it is a plain measure

    def additions(self, row: int) -> float:
        """Count the additions that a query of this row needs along the base; those of changed rows come on top."""
        return self._factors.additions(row)

    @property
    def source_type(self) -> str:
        return self.measure.source_type

    @property
    def target_type(self) -> str:
        return self.measure.target_type

    @property
    def metapath_text(self) -> str:
        return self.measure.metapath_text

    def params(self) -> dict[str, object]:
        return self.measure.params()

    def score_rows(self, queries: Rows) -> Floats:
        scores = np.zeros((len(queries), len(self._targets)))
        for q, query in enumerate(queries.tolist()):
            scores[q] = self._factors.scores(self.measure.formula, *self._factors.row(query))
        return scores

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        row = combined_row([self._factors.row(member)[0] for member in members.tolist()], weights)
        return self._factors.scores(self.measure.formula, row, row.norm)

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        ranking = empty_ranking(len(queries), min(k, len(self._targets)))

        def search(block: slice) -> None:
            for q in range(block.start, block.stop):
                rows, scores = self._rank(int(queries[q]), int(skipped[q]), k, candidates)
                ranking.sizes[q] = len(rows)
                ranking.rows[q, : len(rows)], ranking.scores[q, : len(rows)] = rows, scores

        in_blocks(search, len(queries), threads, _WORK)
        return ranking

    def rank_row(self, row: int, skipped: int, k: int) -> tuple[list[int], list[float]]:
        rows, scores = self._rank(row, skipped, k, None)
        return rows.tolist(), scores.tolist()

    def _rank(self, query: int, skipped: int, k: int, candidates: Mask | None) -> tuple[Rows, Floats]:
        row, norm = self._factors.row(query)
        rows, scores = self._factors.top_k(self.measure.formula, row, norm, k + (skipped >= 0), candidates)
        kept = np.flatnonzero(rows != skipped)[:k]
        return rows[kept], scores[kept]


def key_of(measure: PathMeasure, hin: HIN) -> MeasureKey:
    """Return what measures that score the same on a graph share."""
    return measure.name, json.dumps(measure.resolve(hin).params())
