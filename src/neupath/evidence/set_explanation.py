"""Explanation of a set: what each member, and each node between, adds to the score of a set of nodes and a target.

M[w,y] = Σ_x c_x·M[x,y] = Σ_x Σ_v c_x·F[x,v]·B[v,y]: the numerator of a set's score splits over its members x with their
weights c, and over the nodes v of any step. A member with a negative weight takes away.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from neupath.engine.formula import Formula, Normalisation, formula_of, write_formula
from neupath.engine.hits import QuerySet
from neupath.engine.topk import set_norm
from neupath.errors import QueryError
from neupath.evidence.explanation import counted, walks_between
from neupath.evidence.groups import (
    NAMED,
    Grouped,
    PathGroup,
    PathInstance,
    PathNode,
    Walks,
    describe_groups,
    node_at,
    path_instance,
    position_to_group_by,
    shortened,
)
from neupath.evidence.relate import over
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import NodeRef
from neupath.measures import PathMeasure


@dataclass(frozen=True)
class ExplainedMember:
    """One member of a set: its weight, its paths to the target, and what they add to the score of the set."""

    node: PathNode
    weight: float
    numerator: float
    """M[x,y], the paths between the member and the target."""
    score: float
    share: float
    """The same as a fraction of the score; the shares of all members sum to 1."""
    paths: int
    groups: tuple[PathGroup, ...]
    num_groups: int

    def to_dict(self) -> dict[str, object]:
        own = {name: getattr(self, name) for name in ("weight", "numerator", "score", "share", "paths")}
        return self.node.to_dict() | own | {"groups": [group.to_dict() for group in self.groups]}


@dataclass(frozen=True)
class SetExplanation:
    """Why a set and a target have their score: its formula, the members, and the nodes that their paths run through."""

    query: QuerySet
    target: PathNode
    metapath: str
    node_types: tuple[str, ...]
    measure: str
    normalisation: int | Formula
    score: float
    numerator: float
    query_norm: float
    """‖w‖², the norm of the weighted sum of the members' rows."""
    target_norm: float
    step: int
    members: tuple[ExplainedMember, ...]
    """All members, the one that adds or takes most first."""
    groups: tuple[PathGroup, ...]
    """The heaviest groups of the paths of all members, each through one node of `step`."""
    num_groups: int
    num_instances: int
    summary: str
    rank: int | None
    """The target's rank in a search for the set; None if it scores 0 or less, or is a member."""
    num_targets: int

    @property
    def formula(self) -> str:
        return write_formula(self.normalisation, self.numerator, self.query_norm, self.target_norm)

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --with --json` prints."""
        normalised = formula_of(self.normalisation)[0] != Normalisation.NONE
        return {
            "query": self.query.to_dicts(),
            "target": self.target.to_dict(),
            "metapath": self.metapath,
            "measure": self.measure,
            "score": self.score,
            "rank": self.rank,
            "targets": self.num_targets,
            "formula": self.formula,
            "numerator": self.numerator,
            "denominators": [self.query_norm, self.target_norm] if normalised else [],
            "summary": self.summary,
            "by": {"node_type": self.node_types[self.step], "step": self.step},
            "members": [member.to_dict() for member in self.members],
            "groups": [group.to_dict() for group in self.groups],
            "more_groups": self.num_groups - len(self.groups),
        }


def explain_set(
    hin: HIN,
    metapath: str | MetaPath,
    query: Mapping[Any, float] | Iterable[NodeRef] | QuerySet,
    target: NodeRef,
    *,
    measure: str | PathMeasure = "pathsim",
    by: str | int | None = None,
    limit: int = 10,
    paths: int = 1,
) -> SetExplanation:
    """Split the score of a set of nodes and a target over the members, and over the nodes of a step.

    Parameters
    ----------
    hin
        The graph.
    metapath
        The meta-path, as a text or a `MetaPath`.
    query
        The set, as `top_k` takes it: nodes with weights, or a list of nodes, which stands for their mean.
    target
        An id or unambiguous name.
    measure
        A name in `MEASURES`, or a measure with parameters of its own.
    by
        The node type to group paths by, or the number of steps from the query; by default the middle.
    limit
        The number of groups to show, of all paths and of each member.
    paths
        The number of paths to show of each group of a member.

    >>> from neupath import load
    >>> why = explain_set(load("toy"), "APVPA", {"Mike": 1, "Jim": -0.02}, "Mary")
    >>> [(member.node.id, round(member.share, 2)) for member in why.members]
    [('Mike', 2.0), ('Jim', -1.0)]
    """
    for name, value in (("limit", limit), ("paths", paths)):
        if value < 0:
            raise QueryError(f"‹{name}› is {value}; show 0 or more", parameter=name)
    scorer = over(measure, metapath).fit(hin)
    path, given = scorer.metapath_, query if isinstance(query, QuerySet) else QuerySet.read(query)
    position = position_to_group_by(path, by)
    rows, weights = hin.rows(path.source, given.ids), np.array(given.weights)
    members = QuerySet(hin.nodes[path.source].ids_at(rows.tolist()), given.weights).checked()
    y, degrees = hin.row(path.target, target), hin.degrees(path.node_types[position])
    walks = [walks_between(scorer, int(row), y) for row in rows]
    scores = scorer.set_scores(rows, weights)
    score, numerator = float(scores[y]), float(sum(c * each.total for c, each in zip(weights, walks, strict=True)))
    per_weight = score / numerator if numerator and score else 0.0

    def group(own: Walks, grouped: Grouped, order: int, factor: float) -> PathGroup:
        """Return a group of one member; `factor` is what a path of weight 1 adds to the score."""
        at = int(grouped.places[order])
        added = float(grouped.shares[order]) * own.total * factor
        instances: tuple[PathInstance, ...] = ()
        if paths and order < limit:
            heaviest = islice(own.heaviest((position, at)), paths)
            instances = tuple(path_instance(hin, path, nodes, weight, weight * factor) for nodes, weight in heaviest)
        node = node_at(hin, path.node_types[position], int(own.rows[position][at]))
        return PathGroup(node, int(grouped.counts[order]), added, added / score if score else 0.0, instances)

    explained, total, count = [], {}, {}  # type: ignore[var-annotated]
    for row, weight, own in zip(rows.tolist(), weights.tolist(), walks, strict=True):
        grouped, factor = Grouped.of(own, position, degrees), weight * per_weight
        for order, at in enumerate(grouped.places.tolist()):
            node = int(own.rows[position][at])
            total[node] = total.get(node, 0.0) + float(grouped.shares[order]) * own.total * factor
            count[node] = count.get(node, 0) + int(grouped.counts[order])
        added = own.total * factor
        groups = tuple(group(own, grouped, order, factor) for order in range(min(len(grouped), limit)))
        explained.append(
            ExplainedMember(
                node_at(hin, path.source, row), weight, own.total, added, added / score if score else 0.0, own.count,
                groups, len(grouped),
            )
        )  # fmt: skip
    heaviest = sorted(total, key=lambda node: (-abs(total[node]), degrees[node], node))
    groups = tuple(
        PathGroup(node_at(hin, path.node_types[position], node), count[node], total[node],
                  total[node] / score if score else 0.0)
        for node in heaviest[: max(limit, NAMED)]
    )  # fmt: skip
    related = np.flatnonzero(scores > 0)
    related = np.setdiff1d(related, rows) if path.source == path.target else related
    ahead = (scores[related] > score) | ((scores[related] == score) & (related < y))
    end = node_at(hin, path.target, y)
    return SetExplanation(
        query=members, target=end, metapath=str(path), node_types=path.node_types, measure=scorer.name,
        normalisation=scorer.formula, score=score, numerator=numerator,
        query_norm=set_norm(scorer.factors_, rows, weights), target_norm=float(scorer.factors_.right_norms[y]),
        step=position,
        members=tuple(sorted(explained, key=lambda member: -abs(member.score))), groups=groups[:limit],
        num_groups=len(heaviest), num_instances=sum(each.count for each in walks),
        summary=_summarise(path, position, groups, len(heaviest), members, end),
        rank=1 + int(ahead.sum()) if y in related else None, num_targets=len(related),
    )  # fmt: skip


def _summarise(
    path: MetaPath, position: int, groups: tuple[PathGroup, ...], num_groups: int, query: QuerySet, target: PathNode
) -> str:
    label = shortened(target.label)
    if not groups:
        return f"No {path} path joins {label} and any of {counted(len(query.ids), 'node')}."
    if position in (0, len(path)) or min(query.weights) < 0:
        most = groups[0]
        verb = "adds" if (most.score or 0.0) >= 0 else "takes"
        between = f"{counted(num_groups, 'node')} between the set and {label}"
        return f"{shortened(most.node.label)} {verb} most, of {between}."
    return describe_groups(groups, num_groups, path.node_types[position], subject="The set and the target connect")
