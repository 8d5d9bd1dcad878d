"""RankComparison: the hits of one query by several meta-paths and measures, side by side, with their moves in rank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neupath.engine.formula import best_first, related
from neupath.engine.hits import QuerySet, check_whole
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.evidence.groups import PathNode, node_at
from neupath.graph.hin import html_table
from neupath.graph.nodes import Id, NodeRef, in_lines, one_line

MOST_COLUMNS = 8
"""Rankings that stand side by side."""


@dataclass(frozen=True)
class ComparedNode:
    """A target that is among the k best of at least one ranking."""

    node: PathNode
    ranks: tuple[int | None, ...]
    """Its rank in each ranking, also beyond k; None where it is not related to the query."""
    scores: tuple[float, ...]

    @property
    def moves(self) -> tuple[int | None, ...]:
        """By how many ranks it is higher in each ranking than in the first; None without a rank in both."""
        first = self.ranks[0]
        return tuple(None if first is None or rank is None else first - rank for rank in self.ranks)

    def to_dict(self) -> dict[str, object]:
        return {
            "id": self.node.id, "name": self.node.name, "ranks": list(self.ranks), "moves": list(self.moves),
            "scores": list(self.scores),
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class RankComparison:
    """Several rankings of the targets of one query; nodes by their rank in the first, then by their best rank."""

    query: Id | QuerySet
    k: int
    target_type: str
    rankings: tuple[tuple[str | None, str], ...]
    """The meta-path and the measure of each."""
    nodes: tuple[ComparedNode, ...]

    @property
    def shared(self) -> tuple[int, ...]:
        """How many of the k best of the first ranking are among the k best of each."""
        count = range(len(self.rankings))
        best = [{node.node.id for node in self.nodes if _is_within(node, at, self.k)} for at in count]
        return tuple(len(best[0] & own) for own in best)

    @property
    def query_label(self) -> str:
        """The query in words."""
        return self.query.label if isinstance(self.query, QuerySet) else str(self.query)

    def __repr__(self) -> str:
        methods = [", ".join(filter(None, ranking)) for ranking in self.rankings]
        legend = [f"  {number}  {one_line(method)}" for number, method in enumerate(methods, 1)]
        best = [(node, "".join(f"{rank or '-':>6}" for rank in node.ranks)) for node in self.nodes[: self.k]]
        lines = [f"{ranks}  {one_line(node.node.label)}" for node, ranks in best]
        more = [f"  and {len(self.nodes) - self.k:,} more"] if len(self.nodes) > self.k else []
        title = f"RankComparison of the hits of {one_line(self.query_label)}, {self.target_type} nodes:"
        return in_lines(title, *legend, *lines, *more)

    def _repr_html_(self) -> str:
        methods = [", ".join(filter(None, ranking)) for ranking in self.rankings]
        rows = [
            (node.node.label, *("–" if rank is None else f"{rank:,}" for rank in node.ranks)) for node in self.nodes
        ]
        return html_table((self.target_type, *methods), rows, f"ranks of the hits of {self.query_label}")

    def to_dict(self) -> dict[str, object]:
        """Return what `compare --json` prints."""
        return {
            "query": self.query.to_dicts() if isinstance(self.query, QuerySet) else self.query,
            "k": self.k,
            "rankings": [
                {"metapath": metapath, "measure": measure, "shared": shared}
                for (metapath, measure), shared in zip(self.rankings, self.shared, strict=True)
            ],
            "nodes": [node.to_dict() for node in self.nodes],
        }


def _is_within(node: ComparedNode, at: int, k: int) -> bool:
    rank = node.ranks[at]
    return rank is not None and rank <= k


def compare(scorers: Sequence[Scorer], query: NodeRef | Mapping[Any, float], k: int = 10) -> RankComparison:
    """Rank the targets of a query by each of some fitted scorers, and set the rankings side by side.

    Parameters
    ----------
    scorers
        Two or more, over one graph and between the same types.
    query
        An id or unambiguous name, or a dictionary of nodes with weights, as `Scorer.top_k` takes it.
    k
        The number of hits of each ranking.

    >>> from neupath import PathSim, load
    >>> from neupath.measures import PathCount
    >>> hin = load("toy")
    >>> both = compare([PathSim("APVPA").fit(hin), PathCount("APVPA").fit(hin)], "Mike", k=2)
    >>> [(node.node.id, node.ranks, node.moves) for node in both.nodes]
    [('Bob', (1, 2), (0, -1)), ('Mary', (2, 3), (0, -1)), ('Jim', (3, 1), (0, 2))]
    """
    if not isinstance(scorers, Sequence) or not all(isinstance(each, Scorer) for each in scorers):
        raise QueryError(
            f"‹scorers› is {one_line(repr(scorers))}; give a list of two or more fitted measures or models",
            parameter="scorers",
        )
    k = check_whole("k", k, 1)
    if not 2 <= len(scorers) <= MOST_COLUMNS:
        raise QueryError(
            f"compare 2 to {MOST_COLUMNS} rankings, by several ‹metapath› or ‹measure›; got {len(scorers)}"
        )
    first = scorers[0]
    for other in scorers[1:]:
        if (other.source_type, other.target_type) != (first.source_type, first.target_type):
            raise QueryError(
                f"{first.metapath_text or first.name} and {other.metapath_text or other.name} rank different types; "
                f"compare meta-paths with the same first and last type"
            )
    hin = first.hin_
    is_set = isinstance(query, Mapping)
    members, rows, weights = first.find_set(query if isinstance(query, Mapping) else {query: 1.0})
    scores = [scorer.set_scores(rows, weights) for scorer in scorers]
    rankings = [best_first(own, related(own, first.own_targets(rows))).tolist() for own in scores]
    rank_of_row = [{row: rank for rank, row in enumerate(ranking, 1)} for ranking in rankings]
    nodes = []
    for y in sorted({row for ranking in rankings for row in ranking[:k]}):
        ranks = tuple(own.get(y) for own in rank_of_row)
        nodes.append(ComparedNode(node_at(hin, first.target_type, y), ranks, tuple(float(own[y]) for own in scores)))
    nodes.sort(key=lambda node: [np.inf if rank is None else rank for rank in (node.ranks[0], *_sorted_ranks(node))])
    methods = tuple((scorer.metapath_text, scorer.name) for scorer in scorers)
    return RankComparison(members if is_set else members.ids[0], k, first.target_type, methods, tuple(nodes))


def _sorted_ranks(node: ComparedNode) -> list[int]:
    return sorted(rank for rank in node.ranks if rank is not None)
