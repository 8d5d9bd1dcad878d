"""Groups: the paths between two nodes, counted, weighed and grouped by the node they share at one step.

M[x,y] = Σ_v F[x,v]·B[v,y]: the paths from x to y through node v of a step weigh as much as the paths from x to v times
those from v to y. So one pass forward and one backward split a score over the nodes of any step; no path is listed.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from neupath.engine.products import link_matrix
from neupath.errors import QueryError, listed
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import MetaPath, Step, arrow
from neupath.graph.nodes import Id, Rows


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
    return arrow(tuple(link for link in step.links if link_matrix(hin, link)[source, target] > 0))


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

    It keeps only the rows that a walk visits at each position. For each of them it knows the number and the sum of the
    weights of the walks from the start and to the end.

    Parameters
    ----------
    rows
        The rows that walks visit at each position, in ascending order.
    steps
        The matrices between these rows.
    """

    def __init__(self, rows: Sequence[Rows], steps: Sequence[Csr]) -> None:
        self.rows, self.steps = list(rows), list(steps)

    @cached_property
    def total(self) -> float:
        """The sum of the weights of all walks."""
        return _checked(self._backward[0].sum())

    @cached_property
    def count(self) -> int:
        """The number of walks."""
        return int(_checked(self._counts_backward[0].sum()))

    @cached_property
    def _forward(self) -> list[Floats]:
        return _pass_forward(np.ones(len(self.rows[0])), self.steps)

    @cached_property
    def _backward(self) -> list[Floats]:
        return _pass_backward(np.ones(len(self.rows[-1])), self.steps)

    @cached_property
    def _counts_forward(self) -> list[Floats]:
        return _pass_forward(np.ones(len(self.rows[0])), self._joins)

    @cached_property
    def _counts_backward(self) -> list[Floats]:
        return _pass_backward(np.ones(len(self.rows[-1])), self._joins)

    @cached_property
    def _joins(self) -> list[Csr]:
        return [(step > 0).astype(np.float64) for step in self.steps]

    @cached_property
    def _back(self) -> list[Csr]:
        return [step.T.tocsr() for step in self.steps]

    @classmethod
    def between(cls, chain: Sequence[Csr], back: Sequence[Csr], start: int, end: int) -> "Walks":
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
        forward = reached_rows(chain[:middle], start)
        backward = reached_rows(back[: middle - 1 : -1], end)[::-1]
        meeting = np.intersect1d(forward[-1], backward[0], assume_unique=True)
        rows: list[Rows] = [meeting]
        steps: list[Csr] = []
        for matrix, before in zip(reversed(chain[:middle]), reversed(forward[:-1]), strict=True):
            step = matrix[before][:, rows[0]]
            visited = np.flatnonzero(np.diff(step.indptr))
            rows.insert(0, before[visited])
            steps.insert(0, step[visited])
        for matrix, after in zip(back[middle:], backward[1:], strict=True):
            step = matrix[after][:, rows[-1]]
            visited = np.flatnonzero(np.diff(step.indptr))
            rows.append(after[visited])
            steps.append(step[visited].T.tocsr())
        return cls(rows, steps)

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

    def through(self, position: int, at: int) -> "Walks":
        """Return the walks through one of the rows at a position, given by its place in `rows`."""
        if position in (0, len(self.steps)):
            return self
        before = Walks.between(self.steps[:position], self._back[:position], 0, at)
        after = Walks.between(self.steps[position:], self._back[position:], at, 0)
        places = [*before.rows[:-1], *after.rows]
        return Walks([rows[own] for rows, own in zip(self.rows, places, strict=True)], before.steps + after.steps)

    def heaviest(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield (rows, weight) of each walk, heaviest first, ties in row order.

        The queue orders beginnings of walks by the weight of their best continuation, so the first whole walk that it
        returns is the heaviest one left.
        """
        best = [np.ones(len(self.rows[-1]))]
        for step in reversed(self.steps):
            best.insert(0, _best_onward(step, best[0]))
        queue: list[tuple[float, tuple[int, ...], float]] = []
        for at, bound in enumerate(best[0]):
            if bound > 0:
                heapq.heappush(queue, (-float(bound), (at,), 1.0))
        while queue:
            _, places, weight = heapq.heappop(queue)
            position = len(places) - 1
            if position == len(self.steps):
                yield tuple(int(rows[at]) for rows, at in zip(self.rows, places, strict=True)), weight
                continue
            step, onward = self.steps[position], best[position + 1]
            for at in range(step.indptr[places[-1]], step.indptr[places[-1] + 1]):
                column = int(step.indices[at])
                if onward[column] > 0:
                    extended = weight * float(step.data[at])
                    heapq.heappush(queue, (-extended * float(onward[column]), (*places, column), extended))


def reached_rows(chain: Sequence[Csr], start: int) -> list[Rows]:
    """Return the rows that walks from a row reach after each step, in ascending order."""
    rows: list[Rows] = [np.array([start])]
    for matrix in chain:
        rows.append(np.unique(matrix[rows[-1]].indices).astype(np.int64))
    return rows


def _pass_forward(start: Floats, matrices: Sequence[Csr]) -> list[Floats]:
    """Multiply a row by one matrix after another; return it before, between and after them."""
    vectors = [start]
    with np.errstate(over="ignore"):
        for matrix in matrices:
            vectors.append(np.asarray(matrix.T @ vectors[-1], dtype=np.float64))
    return vectors


def _pass_backward(end: Floats, matrices: Sequence[Csr]) -> list[Floats]:
    """Multiply a column by one matrix after another, the last first; return it before, between and after them."""
    vectors = [end]
    with np.errstate(over="ignore"):
        for matrix in reversed(matrices):
            vectors.insert(0, np.asarray(matrix @ vectors[0], dtype=np.float64))
    return vectors


def _checked(number: float) -> float:
    """Return a sum over all walks; raise if it overflows."""
    if not np.isfinite(number):
        raise QueryError("these two nodes are joined by more paths than can be counted; use a shorter meta-path")
    return float(number)


def _best_onward(step: Csr, best: Floats) -> Floats:
    """Return for each row the maximum of step[row, column] · best[column]."""
    products = step.data * best[step.indices]
    result = np.zeros(step.shape[0])
    filled = np.flatnonzero(np.diff(step.indptr))
    if len(filled):
        result[filled] = np.maximum.reduceat(products, step.indptr[filled])
    return result


# ---- Groups of walks -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Grouped:
    """The groups of all walks at one position, heaviest first, ties in row order; shape (groups,) each."""

    position: int
    places: Rows
    """Where each group's row stands in `Walks.rows[position]`."""
    shares: Floats
    counts: Floats

    @classmethod
    def of(cls, walks: Walks, position: int) -> "Grouped":
        weights = walks.weights_at(position)
        order = np.lexsort((np.arange(len(weights)), -weights))
        shares = weights / weights.sum() if len(weights) else weights
        return cls(position, order, shares[order], walks.counts_at(position)[order])

    def __len__(self) -> int:
        return len(self.places)


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
