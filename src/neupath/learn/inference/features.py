"""Features: the scores of labelled pairs along meta-paths, under every measure, from the rows of the labelled nodes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neupath.engine.cache import cached
from neupath.engine.products import Normalisation, adjacency
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Rows
from neupath.learn.labels import Pairs
from neupath.measures import PathCount, measure_named
from neupath.measures.path_measure import Leg, reversed_legs

MEASURES_INFERRED = ("pathsim", "joinsim", "hetesim", "pcrw", "pathcount")
"""The measures that can be inferred, in the order in which equally good ones are preferred."""
MOST_NODES = 256
"""Labelled nodes whose rows are computed at once."""
MOST_ENTRIES = 30_000_000
"""Entries that the rows of these nodes may have."""

# ---- How measures factorise ----------------------------------------------------------------------
# A meta-path is two half-paths that meet, one from the query and one from the target. A measure scores a pair by the
# product of their two rows, normalised, and says itself how it scales the steps. Rows of one half-path differ in this
# scaling alone, so that a walk computes them together, one value for each scaling.
_SCALINGS = ((0.0, 0.0), (-1.0, 0.0), (0.0, -1.0))
"""The row power and column power of each step, away from the labelled node: path counts; a random walk; the same walk
as seen from its end."""
_PRODUCTS = ((0, 0), (1, 1), (1, 2))
"""The scalings of the query's and the target's row in each product that `pair_dots` computes."""


@dataclass(frozen=True)
class Factorisation:
    """A measure along a meta-path: which of `_PRODUCTS` it is made of, and how it is normalised."""

    product: int
    normalisation: Normalisation


def factorise(measure: str, metapath: MetaPath) -> Factorisation | None:
    """Return how a measure scores pairs along a meta-path; None where it is not defined or not made of such products.

    >>> from neupath import load
    >>> factorise("pcrw", load("toy").metapath("APA")).product
    2
    """
    scorer = measure_named(measure, metapath)
    if scorer.symmetric_only and not metapath.is_round_trip:
        return None
    lefts, rights = scorer.half_legs(metapath)
    halves = lefts, lefts if rights is None else reversed_legs(rights)
    for product, scalings in enumerate(_PRODUCTS):
        if all(_is_scaled(half, _SCALINGS[at]) for half, at in zip(halves, scalings, strict=True)):
            return Factorisation(product, scorer.normalisation)
    return None


def _is_scaled(legs: Sequence[Leg], scaling: tuple[float, float]) -> bool:
    return all((leg.row_power, leg.column_power) == scaling for leg in legs)


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


def start_walk(hin: HIN, node_type: str, nodes: Rows) -> Walk:
    """Return the rows before any step."""
    values = np.ones((len(nodes), len(_SCALINGS)))
    return Walk(node_type, hin.num_nodes(node_type), np.arange(len(nodes) + 1), nodes.astype(np.int64), values)


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
    from neupath.learn.inference.feature_kernels import multiply_rows

    matrix, values = _step_matrix(hin, step)
    width = hin.num_nodes(step.target)
    return Walk(step.target, width, *multiply_rows(walk.arrays, (matrix.indptr, matrix.indices, values), width))


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


def pair_features(metapath: MetaPath, left: Walk, right: Walk, queries: Rows, targets: Rows) -> dict[str, Floats]:
    """Return the scores of pairs by every measure that is defined on a meta-path; shape (pairs,) each.

    `left` and `right` are the walks along its half-paths; the pairs are given as positions among their nodes.
    """
    from neupath.learn.inference.feature_kernels import pair_dots

    dots = pair_dots(left.arrays, right.arrays, queries, targets, left.width)
    features = {}
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        left_norms = left.squared_norms()
        right_norms = left_norms if right is left else right.squared_norms()
        for measure in MEASURES_INFERRED:
            if how := factorise(measure, metapath):
                of_query, of_target = _PRODUCTS[how.product]
                norms = left_norms[queries, of_query], right_norms[targets, of_target]
                scores = _normalise(how, dots[:, how.product], *norms)
                features[measure] = np.where(np.isfinite(scores).all(), scores, np.nan)
    return features


def _normalise(how: Factorisation, products: Floats, query_norms: Floats, target_norms: Floats) -> Floats:
    if how.normalisation == Normalisation.NONE:
        return products
    if how.normalisation == Normalisation.DICE:
        return _ratio(2 * products, query_norms + target_norms)
    if how.product == 0:  # path counts can be so large that the product of two norms overflows
        return _ratio(products, np.sqrt(query_norms) * np.sqrt(target_norms))
    return _ratio(products, np.sqrt(query_norms * target_norms))


# ---- Features of given meta-paths ----------------------------------------------------------------
class PairWalks:
    """The walks from the nodes of some pairs; it keeps those along the halves of the last meta-path."""

    def __init__(self, hin: HIN, node_type: str, queries: Rows, targets: Rows) -> None:
        self.hin, self.work = hin, 0
        nodes, positions = np.unique(np.concatenate([queries, targets]), return_inverse=True)
        self.queries, self.targets = positions[: len(queries)], positions[len(queries) :]
        self.walks: dict[tuple[Step, ...], Walk] = {(): start_walk(hin, node_type, nodes)}

    def features(self, metapath: MetaPath) -> dict[str, Floats]:
        """Return the scores of the pairs by every measure; nothing where too many nodes are reached."""
        halves = half_paths(metapath)
        prefixes = {half[:size] for half in halves for size in range(len(half) + 1)}
        self.walks = {steps: walk for steps, walk in self.walks.items() if steps in prefixes}
        left, right = (self._walk(half) for half in halves)
        if left is None or right is None:
            return {}
        return pair_features(metapath, left, right, self.queries, self.targets)

    def _walk(self, steps: tuple[Step, ...]) -> Walk | None:
        if steps not in self.walks:
            before = self._walk(steps[:-1])
            if before is None or bound_entries(self.hin, before, steps[-1]) > MOST_ENTRIES:
                return None
            self.work += count_work(self.hin, before, steps[-1])
            self.walks[steps] = extend_walk(self.hin, before, steps[-1])
        return self.walks[steps]


def compute_features(hin: HIN, metapaths: Iterable[MetaPath], pairs: Pairs) -> list[dict[str, Floats]]:
    """Return the features of pairs along each meta-path, in blocks of nodes; shared half-paths are walked once.

    There are none along a meta-path on which a block of nodes reaches too many others.
    """
    paths = list(metapaths)
    features: list[dict[str, Floats]] = [{} for _ in paths]
    too_large: set[int] = set()
    in_order = sorted(range(len(paths)), key=lambda p: "|".join(str(step.links) for step in paths[p].steps))
    for block in _blocks(pairs):
        walks = PairWalks(hin, pairs.node_type, pairs.queries[block], pairs.targets[block])
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
        seen |= {int(pairs.queries[at]), int(pairs.targets[at])}
        block.append(at)
        if len(seen) >= MOST_NODES:
            yield np.array(block)
            seen, block = set(), []
    if block:
        yield np.array(block)
