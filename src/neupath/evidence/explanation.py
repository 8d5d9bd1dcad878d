"""Explanations of measures: the nodes and paths that make up the score of two nodes, or of a set, and why it is low."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from neupath.engine.cache import cached
from neupath.engine.formula import NONE, Formula, Normalisation, best_first, formula_of, rank_of, related, write_formula
from neupath.engine.hits import QuerySet, check_whole, score_text
from neupath.engine.topk import set_norm
from neupath.engine.walk import leave_row
from neupath.errors import GraphError
from neupath.evidence.groups import (
    NAMED,
    Grouped,
    PathGroup,
    PathInstance,
    PathNode,
    SimplePaths,
    Walks,
    counted,
    describe_groups,
    middle_of,
    node_at,
    path_instance,
    percent,
    position_to_group_by,
    shortened,
)
from neupath.evidence.relate import RelatedPath, over, relate
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import NodeRef, Rows, in_lines
from neupath.measures import PathMeasure


# ---- The explanation of one meta-path ------------------------------------------------------------
@dataclass(frozen=True, repr=False, kw_only=True)
class _ExplainedScore:
    """A score along one meta-path: its formula, its rank, and the nodes its paths run through."""

    target: PathNode
    metapath: str
    node_types: tuple[str, ...]
    measure: str
    normalisation: int | Formula
    score: float
    numerator: float
    """M[x,y], the paths between the two, as the measure weighs them; of a set, those of its members, weighed."""
    query_norm: float
    """M[x,x], the norm of the query; of a set, ‖w‖² of the weighted sum w of the members' rows."""
    target_norm: float
    """M[y,y], the norm of the target."""
    step: int
    """The number of steps from the query to the nodes that the paths are grouped by."""
    groups: tuple[PathGroup, ...]
    """The heaviest groups of paths, each through one node of that step."""
    num_groups: int
    """The number of groups, shown or hidden."""
    summary: str
    """A sentence that says through which nodes the two are connected."""
    num_instances: int
    """The number of distinct paths, shown or hidden."""
    rank: int | None = None
    """The target's rank in a search for the query; None if it is unrelated, or the query itself."""
    num_targets: int = 0
    """How many nodes such a search ranks."""

    @property
    def formula(self) -> str:
        """The score as a calculation: "2 × 5 / (5 + 5)"."""
        return write_formula(self.normalisation, self.numerator, self.query_norm, self.target_norm)

    @property
    def is_normalised(self) -> bool:
        return formula_of(self.normalisation)[0] != NONE

    def _facts(self, query: object) -> dict[str, object]:
        return {
            "query": query,
            "target": self.target.to_dict(),
            "metapath": self.metapath,
            "measure": self.measure,
            "score": self.score,
            "rank": self.rank,
            "targets": self.num_targets,
            "formula": self.formula,
            "numerator": self.numerator,
            "denominators": [self.query_norm, self.target_norm] if self.is_normalised else [],
            "summary": self.summary,
            "by": {"node_type": self.node_types[self.step], "step": self.step},
        }


@dataclass(frozen=True, repr=False, kw_only=True)
class Explanation(_ExplainedScore):
    """Why two nodes have their score: its formula, the nodes it runs through, and the heaviest paths."""

    query: PathNode
    instances: tuple[PathInstance, ...]
    why_not: "WhyNot | None" = None
    """Why the target is not among the k best, if it is not."""

    @property
    def num_hidden(self) -> int:
        return self.num_instances - len(self.instances)

    @property
    def hidden_weight(self) -> float:
        return max(0.0, self.numerator - sum(i.weight for i in self.instances)) if self.num_hidden else 0.0

    @property
    def hidden_share(self) -> float:
        """What the hidden paths add to the score; all shares sum to the score."""
        return max(0.0, self.score - sum(i.share for i in self.instances)) if self.num_hidden else 0.0

    @property
    def more_groups(self) -> dict[str, float]:
        """How many groups are hidden, and what they add to the score."""
        hidden = self.num_groups - len(self.groups)
        return {
            "groups": hidden,
            "paths": self.num_instances - sum(group.paths for group in self.groups) if hidden else 0,
            "score": max(0.0, self.score - sum(group.score or 0.0 for group in self.groups)) if hidden else 0.0,
            "share": max(0.0, 1.0 - sum(group.share for group in self.groups)) if hidden else 0.0,
        }

    @property
    def calculation(self) -> str:
        """The formula and its result: "2 × 5 / (5 + 5) = 1.0000"; the result alone if there is nothing to calculate."""
        result = score_text(self.score)
        return result if self.formula == f"{self.score:.6g}" else f"{self.formula} = {result}"

    @property
    def cost(self) -> str | None:
        """Say what the score is divided by: the paths of both nodes to themselves; None if by nothing."""
        if not self.is_normalised:
            return None
        query, target = (shortened(node.label) for node in (self.query, self.target))
        norms = self.query_norm, self.target_norm
        if all(norm == round(norm) for norm in norms):
            return f"{query} has {counted(norms[0], 'path')} to itself, {target} has {norms[1]:,.0f}."
        return f"The paths of {query} to itself weigh {norms[0]:.4g}, those of {target} {norms[1]:.4g}."

    def __repr__(self) -> str:
        lines = [f"  {percent(group.share):>6}  {shortened(group.node.label)}" for group in self.groups]
        hidden = self.num_groups - len(self.groups)
        more = [f"          and {hidden:,} more"] if hidden else []
        ends = f"{shortened(self.query.label)} and {shortened(self.target.label)}"
        return in_lines(f"{ends}: {self.measure} = {self.calculation}", self.summary, *lines, *more)

    def _repr_html_(self) -> str:
        from neupath.evidence.html_report import render_fragment

        return render_fragment(self)

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --json` prints."""
        return self._facts(self.query.to_dict()) | {
            "groups": [group.to_dict() for group in self.groups],
            "more_groups": self.more_groups,
            "instances": [instance.to_dict() for instance in self.instances],
            "more": {"instances": self.num_hidden, "weight": self.hidden_weight, "share": self.hidden_share},
            "why_not": None if self.why_not is None else self.why_not.to_dict(),
        }


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


@dataclass(frozen=True, kw_only=True)
class SetExplanation(_ExplainedScore):
    """Why a set and a target have their score: its formula, the members, and the nodes that their paths run through."""

    query: QuerySet
    members: tuple[ExplainedMember, ...]
    """All members, the one that adds or takes most first."""

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --with --json` prints."""
        return self._facts(self.query.to_dicts()) | {
            "members": [member.to_dict() for member in self.members],
            "groups": [group.to_dict() for group in self.groups],
            "more_groups": self.num_groups - len(self.groups),
        }


def explain(
    hin: HIN,
    metapath: str | MetaPath,
    query: NodeRef,
    target: NodeRef,
    *,
    measure: str | PathMeasure = "pathsim",
    by: str | int | None = None,
    limit: int = 10,
    paths: int = 1,
    k: int | None = 10,
) -> Explanation:
    """Split the score of two nodes over the nodes of a step and over paths, heaviest first.

    Of nodes with equal shares, the rarest comes first: the one with the fewest edges. Equal paths are in node order.

    The split over nodes is exact and lists no path. Groups and paths beyond the limit are counted and summed but never
    listed, so that millions of them cost little.

    Parameters
    ----------
    hin
        The graph.
    metapath
        The meta-path, as a text or a `MetaPath`.
    query, target
        The two nodes, by id or unambiguous name.
    measure
        A name in `MEASURES`, or a measure with parameters of its own, such as `DWPC("APA", damping=0.5)`.
    by
        The node type to group paths by, at its position nearest the middle, or the number of steps from the query. By
        default the middle of the meta-path; of an odd number of steps, where the middle step begins.
    limit
        The number of groups to show, and the number of paths.
    paths
        The number of paths to show of each group.
    k
        A target that is not among the k best gets `why_not`; with None, none does.

    >>> from neupath import load
    >>> why = explain(load("toy"), "APVPA", "Mike", "Jim", limit=1)
    >>> why.formula, why.rank, why.summary
    ('2 × 120 / (5 + 2900)', 3, 'Both connect through SIGMOD (83 %) and VLDB (17 %).')
    >>> why.groups[0].paths, why.num_instances, [node.label for node in why.instances[0].nodes]
    (100, 120, ['Mike', 'Mike-SIGMOD-1', 'SIGMOD', 'Jim-SIGMOD-1', 'Jim'])
    """
    limit, paths = check_whole("limit", limit, 0), check_whole("paths", paths, 0)
    scorer = over(measure, metapath).fit(hin)
    x, y = hin.row(scorer.source_type, query), hin.row(scorer.target_type, target)
    split = _Split(scorer, np.array([x]), np.ones(1), y, by)
    groups = split.groups_of_member(0, max(limit, NAMED), paths if limit else 0)
    ends = node_at(hin, scorer.source_type, x), node_at(hin, scorer.target_type, y)
    explanation = Explanation(
        query=ends[0],
        groups=groups[:limit],
        num_groups=len(split.grouped[0]),
        summary=_summarise(scorer.metapath_, split.position, groups, len(split.grouped[0]), split.count, ends),
        instances=split.instances(0, limit),
        **split.facts(),
    )
    return _with_reason(explanation, scorer, split.scores, (x, y), None if k is None else check_whole("k", k, 1))


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
    limit, paths = check_whole("limit", limit, 0), check_whole("paths", paths, 0)
    scorer = over(measure, metapath).fit(hin)
    members, rows, member_weights = scorer.find_set(query)
    split = _Split(scorer, rows, member_weights, hin.row(scorer.target_type, target), by)
    groups, num_groups = split.groups_of_all(max(limit, NAMED))
    facts = split.facts()
    return SetExplanation(
        query=members,
        members=tuple(sorted(split.members(limit, paths), key=lambda member: -abs(member.score))),
        groups=groups[:limit],
        num_groups=num_groups,
        summary=_summarise_set(scorer.metapath_, split.position, groups, num_groups, members, facts["target"]),
        **facts,
    )


class _Split:
    """The score of a set and a target, split over the members and the nodes of a step; a node is a set of one.

    M[w,y] = Σ_x c_x·M[x,y] = Σ_x Σ_v c_x·F[x,v]·B[v,y]: the numerator splits over the members x with their weights c,
    and over the nodes v of a step. A member with a negative weight takes away.
    """

    def __init__(self, scorer: PathMeasure, rows: Rows, weights: Floats, y: int, by: str | int | None) -> None:
        self.scorer, self.hin, self.path = scorer, scorer.hin_, scorer.metapath_
        self.position = position_to_group_by(self.path, by)
        self.node_type = self.path.node_types[self.position]
        self.rows, self.weights, self.y = rows, weights, y
        self.walks = [walks_between(scorer, row, y) for row in rows.tolist()]
        self.scores = scorer.set_scores(rows, weights)
        self.score = float(self.scores[y])
        numerators = [c * own.total for c, own in zip(weights.tolist(), self.walks, strict=True)]
        self.numerator, self.count = float(sum(numerators)), sum(own.count for own in self.walks)
        is_split = self.score != 0 and self.numerator != 0
        self.shares = [each / self.numerator if is_split else 0.0 for each in numerators]  # of the members
        self.added_per_weight = [c * (self.score / self.numerator) if is_split else 0.0 for c in weights.tolist()]
        degrees = self.hin.degrees(self.node_type)
        self.grouped = [Grouped.of(own, self.position, degrees) for own in self.walks]

    def instances(self, member: int, most: int, through: tuple[int, int] | None = None) -> tuple[PathInstance, ...]:
        """Return the heaviest paths of a member, all or those through one place of a position."""
        heaviest = islice(self.walks[member].heaviest(through), most)
        per_weight = self.added_per_weight[member]
        return tuple(path_instance(self.hin, self.path, rows, weight, weight * per_weight) for rows, weight in heaviest)

    def groups_of_member(self, member: int, most: int, paths: int) -> tuple[PathGroup, ...]:
        """Return the heaviest groups of a member's paths, each with some paths."""
        grouped, share = self.grouped[member], self.shares[member]
        groups = []
        for at, own, count in islice(grouped.each(), most):
            node = node_at(self.hin, self.node_type, int(self.walks[member].rows[self.position][at]))
            heaviest = self.instances(member, paths, (self.position, at)) if paths else ()
            groups.append(PathGroup(node, count, own * (share * self.score), own * share, heaviest))
        return tuple(groups)

    def groups_of_all(self, most: int) -> tuple[tuple[PathGroup, ...], int]:
        """Return the heaviest groups of the paths of all members, and how many groups there are."""
        added: dict[int, float] = defaultdict(float)
        paths: dict[int, int] = defaultdict(int)
        for walks, grouped, share in zip(self.walks, self.grouped, self.shares, strict=True):
            for at, own, count in grouped.each():
                row = int(walks.rows[self.position][at])
                added[row] += own * (share * self.score)
                paths[row] += count
        degrees = self.hin.degrees(self.node_type)
        heaviest = sorted(added, key=lambda row: (-abs(added[row]), degrees[row], row))[:most]
        groups = (
            PathGroup(node_at(self.hin, self.node_type, row), paths[row], added[row],
                      added[row] / self.score if self.score else 0.0)
            for row in heaviest
        )  # fmt: skip
        return tuple(groups), len(added)

    def members(self, limit: int, paths: int) -> list[ExplainedMember]:
        return [
            ExplainedMember(
                node_at(self.hin, self.path.source, row), weight, own.total, share * self.score, share, own.count,
                self.groups_of_member(member, limit, paths), len(grouped),
            )
            for member, (row, weight, own, share, grouped) in enumerate(
                zip(self.rows.tolist(), self.weights.tolist(), self.walks, self.shares, self.grouped, strict=True)
            )
        ]  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """Return what explanations of a node and of a set have in common."""
        factors = self.scorer.factors_
        rank, num_targets = rank_of(self.scores, self.y, self.scorer.own_targets(self.rows))
        return {
            "target": node_at(self.hin, self.path.target, self.y), "metapath": str(self.path),
            "node_types": self.path.node_types, "measure": self.scorer.name, "normalisation": self.scorer.formula,
            "score": self.score, "numerator": self.numerator,
            "query_norm": set_norm(factors, self.rows, self.weights), "target_norm": float(factors.right_norms[self.y]),
            "step": self.position, "num_instances": self.count, "rank": rank, "num_targets": num_targets,
        }  # fmt: skip


def _summarise(
    path: MetaPath, position: int, groups: Sequence[PathGroup], num_groups: int, count: int,
    ends: tuple[PathNode, PathNode],
) -> str:  # fmt: skip
    """Say in a sentence through which nodes two nodes are connected; a group at an end of the path says nothing."""
    query, target = (shortened(node.label) for node in ends)
    if not groups:
        return f"No {path} path joins {query} and {target}."
    if position in (0, len(path)):
        return f"{counted(count, 'path')} {'joins' if count == 1 else 'join'} {query} and {target}."
    return describe_groups(groups, num_groups, path.node_types[position])


def _summarise_set(
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


def walks_between(scorer: PathMeasure, x: int, y: int) -> Walks:
    """Return the walks between two rows that count for a measure."""
    hin, types = scorer.hin_, scorer.metapath_.node_types
    walks = Walks.between(*chains(hin, scorer), x, y)
    return walks if scorer.counts_walks else SimplePaths(walks, types, [hin.num_nodes(each) for each in types])


def chains(hin: HIN, scorer: PathMeasure) -> tuple[Sequence[Csr], Sequence[Csr]]:
    """Return the matrices of a measure along its meta-path, and the same transposed."""
    path = scorer.metapath_
    key = ("explain", scorer.name, str(scorer.params()), path)

    def build() -> tuple[Sequence[Csr], Sequence[Csr]]:
        return scorer.step_matrices(hin, path), [leg.reversed().matrix(hin) for leg in scorer.legs(path)]

    return cached(hin, key, build)


# ---- Why not -------------------------------------------------------------------------------------
_WHY_NOT_BUDGET = 200_000_000
"""Multiplications to look for other meta-paths with: less than a second."""
_WHY_NOT_PATHS = 3
"""Other meta-paths that are named."""
_WHY_NOT_CANDIDATES = 1000
"""Other meta-paths of which these are the best."""


@dataclass(frozen=True)
class WhyNot:
    """Why a target is not among the k best, and what would bring it there."""

    k: int
    reason: str
    """One of "no paths", "nothing shared", "only repeats", "fewer paths", "outweighed" and "tied"."""
    sentence: str
    metapaths: tuple[RelatedPath, ...]
    """Meta-paths of up to 4 steps, each over one relation, along which it is among the k best under the same
    measure, best first."""
    complete: bool | None
    """Whether all meta-paths of up to 4 steps, each over one relation, were looked at; otherwise as many as a small
    budget of work allows. None if none were, since the measure leaves walks out."""

    def to_dict(self) -> dict[str, object]:
        return vars(self) | {"metapaths": [path.to_dict() for path in self.metapaths]}


def _with_reason(
    explanation: Explanation, scorer: PathMeasure, scores: Floats, rows: tuple[int, int], k: int | None
) -> Explanation:
    """Add the reason why the target is not among the k best, if it is not."""
    (x, y), rank = rows, explanation.rank
    left_out = scorer.own_targets(np.array([x]))
    if k is None or y in left_out or (rank is not None and rank <= k):
        return explanation
    if rank is None and len(Walks.between(*chains(scorer.hin_, scorer), x, y).rows[0]):
        reason, sentence = "only repeats", "Every walk that joins them visits a node twice."
    elif rank is None:
        reason, sentence = _what_is_missing(explanation, scorer, rows)
    else:
        last = int(best_first(scores, related(scores, left_out))[k - 1])
        reason, sentence = _what_outweighs(explanation, scorer, rows, (k, last, float(scores[last])))
    bring_in, complete = _other_metapaths(explanation, scorer, k)
    return replace(explanation, why_not=WhyNot(k, reason, sentence, bring_in, complete))


def _other_metapaths(
    explanation: Explanation, scorer: PathMeasure, k: int
) -> tuple[tuple[RelatedPath, ...], bool | None]:
    """Return meta-paths along which the target is among the k best, and whether all were looked at."""
    if not scorer.counts_walks:  # it would have to list the paths along each of them
        return (), None
    try:
        others = relate(
            scorer.hin_, explanation.query.id, explanation.target.id, measure=scorer, query_type=scorer.source_type,
            target_type=scorer.target_type, limit=_WHY_NOT_CANDIDATES, budget=_WHY_NOT_BUDGET,
        )  # fmt: skip
    except GraphError:  # paths along another meta-path overflow; that is no reason not to explain this one
        return (), False
    bring_in = [path for path in others.metapaths if path.rank <= k and path.metapath != explanation.metapath]
    bring_in.sort(key=lambda path: path.rank)
    return tuple(bring_in[:_WHY_NOT_PATHS]), others.complete and not others.unranked


def _what_is_missing(explanation: Explanation, scorer: PathMeasure, rows: tuple[int, int]) -> tuple[str, str]:
    """Say at which nodes the paths of both end without meeting."""
    path, (chain, back) = scorer.metapath_, chains(scorer.hin_, scorer)
    middle = middle_of(len(path))
    query, target = (shortened(node.label) for node in (explanation.query, explanation.target))
    reached = (
        len(leave_row(chain[:middle], rows[0])[0][-1]),
        len(leave_row(back[: middle - 1 : -1], rows[1])[0][-1]),
    )
    node_type = path.node_types[middle]
    for label, number in zip((query, target), reached, strict=True):
        if not number:
            return "no paths", f"{label} has no path along {path} to a node of type {node_type}."
    reach = f"{query} reaches {counted(reached[0], 'node')} of type {node_type} and {target} reaches {reached[1]:,}"
    return "nothing shared", f"{reach}, but they share none."


def _what_outweighs(
    explanation: Explanation, scorer: PathMeasure, rows: tuple[int, int], last: tuple[int, int, float]
) -> tuple[str, str]:
    """Compare the target with the last of the k best: by the paths that it shares with the query, then by its own."""
    k, row, score = last
    other = shortened(node_at(scorer.hin_, scorer.target_type, row).label)
    query, target = (shortened(node.label) for node in (explanation.query, explanation.target))
    place = f"{target} ranks {explanation.rank:,} of {counted(explanation.num_targets, 'target')} of {query}"
    if explanation.score == score:
        return "tied", f"{place}: it scores as high as {other} at rank {k:,}, and ties are in node order."
    numerator = score
    if scorer.normalisation != Normalisation.NONE:
        numerator = float(scorer.factors_.rows(np.array([rows[0]])).toarray()[0, row])
    own, others = _amounts(explanation.numerator, numerator)
    shares = f"{place}: {query} shares {own} with it and {others} with {other} at rank {k:,}"
    if explanation.numerator < numerator:
        return "fewer paths", f"{shares}."
    norms = _amounts(explanation.target_norm, float(scorer.factors_.right_norms[row]))
    return "outweighed", f"{shares}, but {target} has {norms[0]} to itself and {other} has {norms[1]}."


def _amounts(first: float, second: float) -> tuple[str, str]:
    """Write two sums of path weights: as numbers of paths, where they are whole."""
    if first == round(first) and second == round(second):
        return counted(first, "path"), f"{second:,.0f}"
    return f"paths of weight {first:.4g}", f"{second:.4g}"
