"""Groups: the paths between two nodes, counted, weighed and grouped by the node they share at one step.

M[x,y] = Σ_v F[x,v]·B[v,y]: the paths from x to y through node v of a step weigh as much as the paths from x to v times
those from v to y. So one pass forward and one backward split a score over the nodes of any step; no path is listed.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from neupath.engine.products import link_matrix
from neupath.engine.walk import StepEdges, leave_row
from neupath.errors import QueryError, listed
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import MetaPath, Step, arrow
from neupath.graph.nodes import Id, Rows
from neupath.measures.dwpc_kernels import add_paths, count_walks, steps_and_types


# ---- Nodes, paths and groups ---------------------------------------------------------------------
@dataclass(frozen=True)
class PathNode:
    """A node on a path."""

    node_type: str
    id: Id
    name: str | None

    @property
    def label(self) -> str:
        return self.name or str(self.id)

    def to_dict(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True)
class PathInstance:
    """One path from the query to the target.

    `weight` is what it adds to the numerator: the product of the measure's entries at its steps, for path counts the
    number of parallel edges or their weights. `share` is what it adds to the score. `links` are the relations it
    follows, such as "-writes->".
    """

    nodes: tuple[PathNode, ...]
    links: tuple[str, ...]
    weight: float
    share: float

    def to_dict(self) -> dict[str, object]:
        return vars(self) | {"nodes": [node.to_dict() for node in self.nodes], "links": list(self.links)}


@dataclass(frozen=True)
class PathGroup:
    """All paths through one node of a step: how many, what they add to the score, and the heaviest of them."""

    node: PathNode
    paths: int
    score: float | None
    """What its paths add to the score; None under a learned model, whose attention does not add up to it."""
    share: float
    """The same as a fraction of the score; the shares of all groups sum to 1."""
    instances: tuple[PathInstance, ...] = ()

    def to_dict(self) -> dict[str, object]:
        own = {"paths": self.paths, "score": self.score, "share": self.share}
        return self.node.to_dict() | own | {"instances": [instance.to_dict() for instance in self.instances]}


def node_at(hin: HIN, node_type: str, row: int) -> PathNode:
    """Return the node of a type at a row."""
    nodes = hin.nodes[node_type]
    return PathNode(node_type, nodes.id(row), nodes.name(row))


def path_instance(hin: HIN, path: MetaPath, rows: Sequence[int], weight: float, share: float) -> PathInstance:
    """Return the path over some rows, one per position of a meta-path."""
    return PathInstance(
        nodes=tuple(node_at(hin, t, row) for t, row in zip(path.node_types, rows, strict=True)),
        links=tuple(_link(hin, step, u, v) for step, (u, v) in zip(path.steps, pairwise(rows), strict=True)),
        weight=weight,
        share=share,
    )


def _link(hin: HIN, step: Step, source: int, target: int) -> str:
    """Name the relations of a step that join two nodes."""
    if len(step.links) == 1:
        return arrow(step.links)
    return arrow(tuple(link for link in step.links if _weight(link_matrix(hin, link), source, target) > 0))


def _weight(matrix: Csr, row: int, column: int) -> float:
    """Return an entry of a matrix, as `matrix[row, column]` does in much more time."""
    own = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return float(matrix.data[own][matrix.indices[own] == column].sum())


# ---- The step to group by ------------------------------------------------------------------------
def middle_of(length: int) -> int:
    """Return the position of a meta-path's middle: after half its steps, before the middle step of an odd number.

    A path of one step has no node between its ends, and its paths are grouped by their target.

    >>> [middle_of(length) for length in (1, 2, 3, 4)]
    [1, 1, 1, 2]
    """
    return max(1, length // 2)


def position_to_group_by(metapath: MetaPath, by: str | int | None) -> int:
    """Return the position of a meta-path, from 0 at the query, that a node type or a number of steps names.

    A type that stands at several positions means the one nearest the middle; of two equally near, the one nearer the
    query.

    >>> from neupath import load
    >>> path = load("toy").metapath("APVPA")
    >>> [position_to_group_by(path, by) for by in (None, "venue", "paper", 3)]
    [2, 2, 1, 3]
    """
    types, middle = metapath.node_types, middle_of(len(metapath))
    if by is None:
        return middle
    fitting = [position for position, node_type in enumerate(types) if node_type == by]
    if not fitting and isinstance(by, str):
        fitting = [position for position, node_type in enumerate(types) if node_type.casefold() == by.casefold()]
    if fitting:
        return min(fitting, key=lambda position: (abs(position - middle), position))
    steps = int(by) if isinstance(by, int) or (by.isascii() and by.isdecimal() and len(by) < 10) else -1
    if 0 <= steps < len(types):
        return steps
    raise QueryError(
        f"‹by› is {by!r}, but the nodes on {metapath} are of type {listed(dict.fromkeys(types))}; give one of these, "
        f"or a number of steps from the query, 0 to {len(metapath)}",
        parameter="by",
    )


# ---- Walks between two rows ----------------------------------------------------------------------
class Walks:
    """The walks between two rows along a chain of matrices: their number, total weight, and the heaviest one by one.

    It keeps only the rows that a walk visits at each position, as plain arrays: most pairs have few walks, and sparse
    matrices would take longer to make than to use. For each row it knows the number and the sum of the weights of the
    walks from the start and to the end.

    Parameters
    ----------
    rows
        The rows that walks visit at each position, in ascending order.
    edges
        The edges between these rows, step by step.
    """

    def __init__(self, rows: Sequence[Rows], edges: Sequence[StepEdges]) -> None:
        self.rows, self._edges = list(rows), list(edges)

    @classmethod
    def between(cls, chain: Sequence[Csr], back: Sequence[Csr], start: int, end: int) -> Self:
        """Find the walks from one row to another.

        Parameters
        ----------
        chain
            The matrices along the path.
        back
            The same matrices transposed, in the same order.
        start, end
            The two rows.
        """
        middle = middle_of(len(chain))
        there, forward = leave_row(chain[:middle], start)
        home, backward = leave_row(back[: middle - 1 : -1], end)
        meeting = np.intersect1d(there[-1], home[-1], assume_unique=True)
        rows: list[Rows] = [meeting]
        edges: list[StepEdges] = []
        for before, entries in zip(there[-2::-1], forward[::-1], strict=True):
            visited, step = entries.to(before, rows[0])
            rows.insert(0, visited)
            edges.insert(0, step)
        for after, entries in zip(home[-2::-1], backward[::-1], strict=True):
            visited, step = entries.to(after, rows[-1])
            edges.append(_turned_round(step, len(rows[-1])))
            rows.append(visited)
        return cls(rows, edges)

    # -- Sums
    @cached_property
    def total(self) -> float:
        """The sum of the weights of all walks."""
        return _checked(self._backward[0].sum())

    @cached_property
    def count(self) -> int:
        """The number of walks."""
        return int(_checked(self._counts_backward[0].sum()))

    def weights_at(self, position: int) -> Floats:
        """Return the sum of the weights of the walks through each row at a position."""
        return self._through_rows(self.total, self._forward, self._backward, position)

    def counts_at(self, position: int) -> Floats:
        """Return the number of walks through each row at a position."""
        return self._through_rows(self.count, self._counts_forward, self._counts_backward, position)

    def _through_rows(self, total: float, forward: list[Floats], backward: list[Floats], position: int) -> Floats:
        """Multiply what leads to each row by what leads on; no product exceeds the total, which is finite."""
        products: Floats = forward[position] * backward[position] if total else np.zeros(len(self.rows[position]))
        return products

    @cached_property
    def _forward(self) -> list[Floats]:
        return self._pass_forward([edges.weights for edges in self._edges])

    @cached_property
    def _backward(self) -> list[Floats]:
        return self._pass_backward([edges.weights for edges in self._edges])

    @cached_property
    def _counts_forward(self) -> list[Floats]:
        return self._pass_forward(self._joins)

    @cached_property
    def _counts_backward(self) -> list[Floats]:
        return self._pass_backward(self._joins)

    @cached_property
    def _joins(self) -> list[Floats]:
        """Whether the weight of each edge is above 0, as 1 and 0."""
        return [(edges.weights > 0).astype(np.float64) for edges in self._edges]

    def _pass_forward(self, weights: Sequence[Floats]) -> list[Floats]:
        """Return the sum over the walks from the start to each row at every position, given the weights of edges."""
        sums = [np.ones(len(self.rows[0]))]
        with np.errstate(over="ignore", invalid="ignore"):
            for edges, own, rows in zip(self._edges, weights, self.rows[1:], strict=True):
                sums.append(_added_up(edges.targets, own * sums[-1][edges.sources], len(rows)))
        return sums

    def _pass_backward(self, weights: Sequence[Floats]) -> list[Floats]:
        """Return the sum over the walks from each row at every position to the end, given the weights of edges."""
        sums = [np.ones(len(self.rows[-1]))]
        with np.errstate(over="ignore", invalid="ignore"):
            for edges, own, rows in zip(self._edges[::-1], weights[::-1], self.rows[-2::-1], strict=True):
                sums.insert(0, _added_up(edges.sources, own * sums[0][edges.targets], len(rows)))
        return sums

    # -- One by one
    @cached_property
    def _best(self) -> list[Floats]:
        """The weight of the heaviest walk from each row at every position to the end."""
        best = [np.ones(len(self.rows[-1]))]
        for edges in reversed(self._edges):
            best.insert(0, _best_onward(edges, best[0]))
        return best

    def _best_through(self, position: int, at: int) -> list[Floats]:
        """Return the same for walks through one row at a position; rows without such a walk get 0."""
        best = list(self._best)
        best[position] = np.where(np.arange(len(self.rows[position])) == at, best[position], 0.0)
        for step in reversed(range(position)):
            best[step] = _best_onward(self._edges[step], best[step + 1])
        return best

    def heaviest(self, through: tuple[int, int] | None = None) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield (rows, weight) of each walk, heaviest first, ties in row order.

        The queue orders beginnings of walks by the weight of their best continuation, so the first whole walk that it
        returns is the heaviest one left.

        Parameters
        ----------
        through
            A position and the place of one of its rows: yield the walks through it alone.
        """
        best = self._best if through is None else self._best_through(*through)
        queue: list[tuple[float, tuple[int, ...], float]]
        queue = [(-bound, (at,), 1.0) for at, bound in enumerate(best[0].tolist()) if bound > 0]
        while queue:
            _, places, weight = heapq.heappop(queue)
            position = len(places) - 1
            if position == len(self._edges):
                yield tuple(int(rows[at]) for rows, at in zip(self.rows, places, strict=True)), weight
                continue
            edges = self._edges[position]
            own = slice(edges.starts[places[-1]], edges.starts[places[-1] + 1])
            extended = weight * edges.weights[own]
            bounds = extended * best[position + 1][edges.targets[own]]
            for at in np.flatnonzero(bounds).tolist():
                place = int(edges.targets[own][at])
                if self._may_visit(places, place):
                    heapq.heappush(queue, (-float(bounds[at]), (*places, place), float(extended[at])))

    def _may_visit(self, places: tuple[int, ...], at: int) -> bool:  # noqa: ARG002
        """Whether a walk that has visited some places may go on to a place of the next position."""
        return True


class SimplePaths(Walks):
    """The walks between two rows that visit no node twice.

    They are no product of matrices, so they are listed: sums take as long as there are such paths.

    Parameters
    ----------
    walks
        All walks.
    node_types
        The node type at each position.
    sizes
        The number of nodes of these types.
    """

    def __init__(self, walks: Walks, node_types: Sequence[str], sizes: Sequence[int]) -> None:
        super().__init__(walks.rows, walks._edges)
        self._node_types, self._sizes = list(node_types), sizes

    @cached_property
    def total(self) -> float:
        return _checked(self.weights_at(len(self._edges)).sum())

    @cached_property
    def count(self) -> int:
        return int(_checked(self.counts_at(len(self._edges)).sum()))

    def weights_at(self, position: int) -> Floats:
        return self._sum_at(position, are_counted=False)

    def counts_at(self, position: int) -> Floats:
        return self._sum_at(position, are_counted=True)

    def _sum_at(self, position: int, *, are_counted: bool) -> Floats:
        sums = np.zeros(self._sizes[position])
        if len(self.rows[0]):
            weights = self._joins if are_counted else [edges.weights for edges in self._edges]
            matrices = [self._matrix(step, own) for step, own in enumerate(weights)]
            steps, types = steps_and_types(matrices, self._node_types)
            query = int(self.rows[0][0])
            work = 3 * len(matrices) * count_walks(matrices)[query]
            add_paths.run(work, steps, types, query, position, sums)
        return sums[self.rows[position]]

    def _matrix(self, step: int, weights: Floats) -> Csr:
        """Return the edges of a step as a matrix of all nodes."""
        rows, columns = self.rows[step : step + 2]
        edges = self._edges[step]
        degrees = np.zeros(self._sizes[step] + 1, np.int32)
        degrees[rows + 1] = np.diff(edges.starts)
        ends = columns[edges.targets].astype(np.int32)
        shape = self._sizes[step], self._sizes[step + 1]
        return freeze(csr_array((weights.copy(), ends, np.cumsum(degrees, dtype=np.int32)), shape=shape))

    def _may_visit(self, places: tuple[int, ...], at: int) -> bool:
        position = len(places)
        row, node_type = self.rows[position][at], self._node_types[position]
        return all(self._node_types[i] != node_type or self.rows[i][place] != row for i, place in enumerate(places))


def _turned_round(edges: StepEdges, size: int) -> StepEdges:
    """Return edges with their ends exchanged; `size` is the number of targets, each of which has an edge."""
    order = np.argsort(edges.targets.astype(np.min_scalar_type(size)), kind="stable")  # of 16 bits: a radix sort
    starts = np.concatenate([[0], np.cumsum(np.bincount(edges.targets, minlength=size))])
    return StepEdges(edges.targets[order], edges.sources[order], edges.weights[order], starts)


def _checked(number: float) -> float:
    """Return a sum over all walks; raise if it overflows."""
    if not np.isfinite(number):
        raise QueryError("these two nodes are joined by more paths than can be counted; use a shorter meta-path")
    return float(number)


def _added_up(places: Rows, numbers: Floats, size: int) -> Floats:
    """Return the sum of the numbers at each place, in their order, as floats even if there are none."""
    return np.bincount(places, numbers, size).astype(np.float64)


def _best_onward(edges: StepEdges, best: Floats) -> Floats:
    """Return for each source the maximum over its edges of weight · best[target]."""
    if not len(edges.sources):
        return np.zeros(0)
    maxima: Floats = np.maximum.reduceat(edges.weights * best[edges.targets], edges.starts[:-1])
    return maxima


# ---- Groups of walks -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Grouped:
    """The groups of all walks at one position, heaviest first, of equal ones the rarest; shape (groups,) each."""

    position: int
    places: Rows
    """Where each group's row stands in `Walks.rows[position]`."""
    shares: Floats
    counts: Floats

    @classmethod
    def of(cls, walks: Walks, position: int, degrees: Rows) -> "Grouped":
        """Group walks; `degrees` are those of the nodes at the position: of equal weights, the rarest comes first."""
        weights, counts = walks.weights_at(position), walks.counts_at(position)
        order = np.lexsort((np.arange(len(weights)), degrees[walks.rows[position]], -weights))
        order = order[counts[order] > 0]
        shares = weights / weights.sum() if len(order) else weights
        return cls(position, order, shares[order], counts[order])

    def __len__(self) -> int:
        return len(self.places)

    def each(self) -> Iterator[tuple[int, float, int]]:
        """Yield the place, the share and the number of paths of each group, the heaviest first."""
        return zip(self.places.tolist(), self.shares.tolist(), self.counts.astype(np.int64).tolist(), strict=True)


# ---- Sentences -----------------------------------------------------------------------------------
NAMED = 3
"""Nodes that a sentence names."""
_LONGEST = 60  # letters of a name in a sentence


def shortened(text: str, most: int = _LONGEST) -> str:
    """Cut the middle out of a name that is too long; names of one kind often differ at their end.

    >>> shortened("a".ljust(30, ".") + "z", 9)
    'a....…..z'
    """
    tail = most // 3
    return text if len(text) <= most else f"{text[: most - 1 - tail].rstrip()}…{text[-tail:].lstrip()}"


def joined(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(number: float, noun: str) -> str:
    """Write a number of things: "1 path", "2,417 paths".

    >>> counted(1, "path"), counted(2417, "path")
    ('1 path', '2,417 paths')
    """
    return f"{number:,.0f} {noun}{'s' * (number != 1)}"


def percent(share: float) -> str:
    """Write a fraction as a percentage; one that would read as nothing is "under 0.1 %".

    >>> percent(0.3678), percent(0.0421), percent(0.00001), percent(0.9999)
    ('37 %', '4.2 %', 'under 0.1 %', 'over 99 %')
    """
    value = 100 * share
    if 0 < value < 0.05:
        return "under 0.1 %"
    if 99.5 <= value < 100 - 1e-9:
        return "over 99 %"
    return f"{value:.1f} %" if value < 9.95 else f"{value:.0f} %"


def describe_groups(
    groups: Sequence[PathGroup], num_groups: int, node_type: str | None = None, subject: str = "Both connect"
) -> str:
    """Say in a sentence through which nodes most paths run.

    Parameters
    ----------
    groups
        The heaviest groups, heaviest first: all of them, or at least three.
    num_groups
        How many groups there are.
    node_type
        The type of the nodes, if all have the same.
    subject
        How the sentence begins.

    >>> one, other = (PathNode("venue", name, None) for name in ("KDD", "SIGMOD"))
    >>> describe_groups([PathGroup(one, 3, 0.3, 0.6), PathGroup(other, 2, 0.2, 0.4)], 2)
    'Both connect through KDD (60 %) and SIGMOD (40 %).'
    """
    nodes = "nodes" if node_type is None else f"nodes of type {node_type}"
    if num_groups == 1:
        return f"{subject} through {shortened(groups[0].node.label)} alone."
    labels = [f"{shortened(group.node.label)} ({percent(group.share)})" for group in groups[:NAMED]]
    if num_groups > NAMED and groups[0].share * num_groups < 1 + 1e-9 and groups[0].share == groups[-1].share:
        return f"{subject} through {num_groups:,} {nodes}, each with {percent(groups[0].share)}."
    if num_groups <= len(labels):
        return f"{subject} through {joined(labels)}."
    shares = np.cumsum([group.share for group in groups[:NAMED]])
    enough = int(np.searchsorted(shares, 0.5)) + 1
    if enough <= len(labels):
        return f"{subject} mostly through {joined(labels[:enough])}, of {num_groups:,} {nodes} in all."
    return f"{subject} through {num_groups:,} {nodes}, the heaviest of which is {labels[0]}."
