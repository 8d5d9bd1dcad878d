"""Features: the scores of labelled pairs along meta-paths, under every measure, from the rows of the labelled nodes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath.engine.cache import cached
from neupath.engine.formula import normalised
from neupath.engine.products import adjacency, csr_arrays
from neupath.engine.walk import walk_rows
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Rows
from neupath.learn.inference.feature_kernels import multiply_rows, pair_dots
from neupath.learn.labels import Pairs
from neupath.measures import MEASURES, PathCount, PathMeasure
from neupath.measures.path_measure import reversed_legs

MOST_NODES = 256
"""Labelled nodes whose rows are computed at once."""
MOST_ENTRIES = 30_000_000
"""Entries that the rows of these nodes may have."""

# ---- How measures factorise ----------------------------------------------------------------------
# A meta-path is two half-paths that meet, one from the query and one from the target. A measure scores a pair by the
# product of their two rows, normalised, and says itself how it scales the steps. Rows of one half-path differ in this
# scaling alone. So one walk computes the usual scalings together, and a measure with another scaling is walked apart.
_SCALINGS = ((0.0, 0.0), (-1.0, 0.0), (0.0, -1.0))
"""The row power and column power of each step, away from the labelled node: path counts; a random walk; the same walk
as seen from its end."""
_PRODUCTS = ((0, 0), (1, 1), (1, 2))
"""The scalings of the query's and the target's row in each product that `pair_dots` computes."""


def inferred_measures() -> list[str]:
    """Return the measures that can be inferred, in the order in which equally good ones are preferred.

    These are all measures over a meta-path but those with settings, such as a damping, which inference does not fit.

    >>> inferred_measures()
    ['pathsim', 'joinsim', 'hetesim', 'pcrw', 'jaccard', 'pathcount', 'overlap']
    """
    names = [name for name, measure in MEASURES.items() if not measure.settings]
    return sorted(names, key=lambda name: not MEASURES[name].bounded)


def shared_product(scorer: PathMeasure, metapath: MetaPath) -> int | None:
    """Return which of `_PRODUCTS` a measure is along a meta-path; None if it scales the steps in another way.

    >>> from neupath import load
    >>> from neupath.measures import PCRW
    >>> shared_product(PCRW("APA"), load("toy").metapath("APA"))
    2
    """
    lefts, rights = scorer.half_legs(metapath)
    halves = lefts, lefts if rights is None else reversed_legs(rights)
    powers = [{(leg.row_power, leg.column_power) for leg in half} for half in halves]
    for product, scalings in enumerate(_PRODUCTS):
        if all(own <= {_SCALINGS[at]} for own, at in zip(powers, scalings, strict=True)):
            return product
    return None


def half_paths(metapath: MetaPath) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps from the query to the middle, and from the target to the middle.

    >>> from neupath import load
    >>> [len(half) for half in half_paths(load("toy").metapath("author-paper-venue-paper"))]
    [1, 2]
    """
    lefts, rights = PathCount(metapath).half_legs(metapath)
    left = tuple(leg.step for leg in lefts)
    return left, left if rights is None else tuple(leg.step for leg in reversed_legs(rights))


# ---- Walks ---------------------------------------------------------------------------------------
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Walk:
    """The rows of labelled nodes after a half-path, as CSR of shape (nodes, nodes of the end type)."""

    end: str
    width: int
    indptr: Ints
    indices: Ints
    values: Floats
    """Shape (entries, scalings)."""

    @property
    def arrays(self) -> tuple[Ints, Ints, Floats]:
        return self.indptr, self.indices, self.values

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def squared_norms(self) -> Floats:
        """Return the squared norm of each row; shape (nodes, scalings)."""
        norms = np.zeros((len(self.indptr) - 1, len(_SCALINGS)))
        filled = np.flatnonzero(np.diff(self.indptr))
        if len(filled):
            norms[filled] = np.add.reduceat(self.values**2, self.indptr[filled])
        return norms


def count_work(hin: HIN, walk: Walk, step: Step) -> int:
    """Count the multiplications that one more step takes."""
    return int(_degrees(hin, step)[walk.indices].sum())


def bound_entries(hin: HIN, walk: Walk, step: Step) -> int:
    """Return an upper bound of the entries that the rows have after one more step."""
    totals = np.concatenate([[0], np.cumsum(_degrees(hin, step)[walk.indices])])
    return int(np.minimum(totals[walk.indptr[1:]] - totals[walk.indptr[:-1]], hin.num_nodes(step.target)).sum())


def _degrees(hin: HIN, step: Step) -> Ints:
    return np.diff(_step_matrix(hin, step)[0].indptr).astype(np.int64)


def extend_walk(hin: HIN, walk: Walk, step: Step) -> Walk:
    """Return the rows after one more step."""
    matrix, values = _step_matrix(hin, step)
    width = hin.num_nodes(step.target)
    edges = *csr_arrays(matrix)[:2], values
    return Walk(step.target, width, *multiply_rows.run(3 * count_work(hin, walk, step), walk.arrays, edges, width))


def _step_matrix(hin: HIN, step: Step) -> tuple[Csr, Floats]:
    """Return the edges of a step, and their values under each scaling; shape (edges, scalings)."""

    def build() -> tuple[Csr, Floats]:
        matrix = adjacency(hin, step)
        row_sums: Floats = np.asarray(matrix.sum(axis=1)).repeat(np.diff(matrix.indptr))
        column_sums: Floats = np.asarray(matrix.sum(axis=0))[matrix.indices]
        return matrix, np.stack([matrix.data, _ratio(matrix.data, row_sums), _ratio(matrix.data, column_sums)], axis=1)

    return cached(hin, ("scaled step", step), build)


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)


# ---- Features of given meta-paths ----------------------------------------------------------------
class PairWalks:
    """The walks from the nodes of some pairs; it keeps those along the halves of the last meta-path."""

    def __init__(self, hin: HIN, pairs: Pairs) -> None:
        self.hin, self.work = hin, 0
        if pairs.is_across_types:
            nodes, self.queries = np.unique(pairs.queries, return_inverse=True)
            targets, self.targets = np.unique(pairs.targets, return_inverse=True)
            starts = {pairs.node_type: nodes, pairs.target_type: targets}
        else:
            nodes, positions = np.unique(np.concatenate([pairs.queries, pairs.targets]), return_inverse=True)
            self.queries, self.targets = positions[: len(pairs)], positions[len(pairs) :]
            starts = {pairs.node_type: nodes}
        self.starts = {node_type: _start_walk(hin, node_type, rows) for node_type, rows in starts.items()}
        self.walks: dict[tuple[str, tuple[Step, ...]], Walk] = {}

    def features(self, metapath: MetaPath) -> dict[str, Floats]:
        """Return the scores of the pairs by every measure; nothing where too many nodes are reached."""
        halves = tuple(zip((metapath.source, metapath.target), half_paths(metapath), strict=True))
        prefixes = {(start, half[:size]) for start, half in halves for size in range(len(half) + 1)}
        self.walks = {prefix: walk for prefix, walk in self.walks.items() if prefix in prefixes}
        left, right = (self._walk(start, half) for start, half in halves)
        return {} if left is None or right is None else self.score(metapath, left, right)

    def _walk(self, start: str, steps: tuple[Step, ...]) -> Walk | None:
        if not steps:
            return self.starts[start]
        if (start, steps) not in self.walks:
            before = self._walk(start, steps[:-1])
            if before is None or bound_entries(self.hin, before, steps[-1]) > MOST_ENTRIES:
                return None
            self.work += count_work(self.hin, before, steps[-1])
            self.walks[start, steps] = extend_walk(self.hin, before, steps[-1])
        return self.walks[start, steps]

    def score(self, metapath: MetaPath, left: Walk, right: Walk) -> dict[str, Floats]:
        """Score the pairs by every measure that is defined on a meta-path, given the walks along its half-paths."""
        features = {}
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            shared = self._products(left, right)
            for name in inferred_measures():
                scorer = MEASURES[name](metapath)
                if scorer.symmetric_only and not metapath.is_round_trip:
                    continue
                product = shared_product(scorer, metapath)
                if product is None and not scorer.meets_at_nodes(metapath):
                    continue
                products = self._own_products(scorer, metapath) if product is None else shared
                scores = normalised(scorer.formula, *(each[:, product or 0] for each in products))
                features[name] = np.where(np.isfinite(scores).all(), scores, np.nan)
        return features

    def _products(self, left: Walk, right: Walk) -> tuple[Floats, Floats, Floats]:
        """Return the product of each pair's rows, and the squared norms of both; shape (pairs, products) each."""
        entries = np.diff(left.indptr)[self.queries].sum() + np.diff(right.indptr)[self.targets].sum()
        dots = pair_dots.run(3 * int(entries), left.arrays, right.arrays, self.queries, self.targets, left.width)
        left_norms = left.squared_norms()
        right_norms = left_norms if right is left else right.squared_norms()
        of_query, of_target = zip(*_PRODUCTS, strict=True)
        return dots, left_norms[self.queries][:, of_query], right_norms[self.targets][:, of_target]

    def _own_products(self, scorer: PathMeasure, metapath: MetaPath) -> tuple[Floats, Floats, Floats]:
        """Return the same of a measure with a scaling of its own, which takes the place of each usual one."""
        halves = scorer.halves(self.hin, metapath)
        left = self._own_walk(metapath.source, halves.lefts)
        if halves.rights is None:
            return self._products(left, left)
        rights = [csr_array(matrix.T) for matrix in reversed(halves.rights)]
        return self._products(left, self._own_walk(metapath.target, rights))

    def _own_walk(self, start: str, matrices: Sequence[Csr]) -> Walk:
        rows = walk_rows(matrices, self.starts[start].indices)
        values = np.tile(rows.data[:, None], len(_SCALINGS))
        return Walk("", rows.shape[1], rows.indptr.astype(np.int64), rows.indices.astype(np.int64), values)


def _start_walk(hin: HIN, node_type: str, nodes: Rows) -> Walk:
    values = np.ones((len(nodes), len(_SCALINGS)))
    return Walk(node_type, hin.num_nodes(node_type), np.arange(len(nodes) + 1), nodes.astype(np.int64), values)


def compute_features(hin: HIN, metapaths: Iterable[MetaPath], pairs: Pairs) -> list[dict[str, Floats]]:
    """Return the features of pairs along each meta-path, in blocks of nodes; shared half-paths are walked once.

    There are none along a meta-path on which a block of nodes reaches too many others.
    """
    paths = list(metapaths)
    features: list[dict[str, Floats]] = [{} for _ in paths]
    too_large: set[int] = set()
    in_order = sorted(range(len(paths)), key=lambda p: "|".join(str(step.links) for step in paths[p].steps))
    for block in _blocks(pairs):
        walks = PairWalks(hin, pairs.take(block))
        for p in in_order:
            scores = {} if p in too_large else walks.features(paths[p])
            if not scores:
                too_large.add(p)
            for measure, values in scores.items():
                features[p].setdefault(measure, np.zeros(len(pairs)))[block] = values
    return [{} if p in too_large else own for p, own in enumerate(features)]


def _blocks(pairs: Pairs) -> Iterator[Ints]:
    """Cut pairs, query by query, into blocks with a limited number of nodes."""
    seen: set[int] = set()
    block: list[int] = []
    for at in np.argsort(pairs.queries, kind="stable").tolist():
        target = int(pairs.targets[at])
        seen |= {int(pairs.queries[at]), ~target if pairs.is_across_types else target}
        block.append(at)
        if len(seen) >= MOST_NODES:
            yield np.array(block)
            seen, block = set(), []
    if block:
        yield np.array(block)
