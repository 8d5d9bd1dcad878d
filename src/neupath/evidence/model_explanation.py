"""Explanations of combinations and learned models: the meta-paths, paths, attention or learners behind a score."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from neupath.engine.hits import score_text
from neupath.engine.scorer import LearnedScorer, Scorer
from neupath.errors import QueryError
from neupath.evidence.explanation import Explanation, explain
from neupath.evidence.groups import (
    NAMED,
    PathGroup,
    PathInstance,
    PathNode,
    describe_groups,
    joined,
    middle_of,
    node_at,
    percent,
    position_to_group_by,
    shortened,
)
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id, NodeRef, id_of, in_lines
from neupath.measures import Combination


@dataclass(frozen=True)
class ExplainedPart:
    """One meta-path of a combination: its weight, what it adds to the score, and the groups and paths behind it."""

    weight: float
    share: float
    explanation: Explanation

    def groups(self, total: float) -> tuple[PathGroup, ...]:
        """Return its groups by what they add to the whole score, `total`."""
        fraction = self.share / total if total else 0.0
        return tuple(
            replace(group, score=self.weight * (group.score or 0.0), share=fraction * group.share,
                    instances=tuple(self._weighted(instance) for instance in group.instances))
            for group in self.explanation.groups
        )  # fmt: skip

    def _weighted(self, instance: PathInstance) -> PathInstance:
        return replace(instance, share=self.weight * instance.share)

    def to_dict(self, total: float) -> dict[str, object]:
        """Return the part with the shares of its groups and instances in the whole score, `total`."""
        more = self.explanation.more_groups
        fraction = self.share / total if total else 0.0
        return {"weight": self.weight, "share": self.share} | self.explanation.to_dict() | {
            "groups": [group.to_dict() for group in self.groups(total)],
            "more_groups": more | {"score": self.weight * more["score"], "share": fraction * more["share"]},
            "instances": [self._weighted(instance).to_dict() for instance in self.explanation.instances],
        }  # fmt: skip


@dataclass(frozen=True, repr=False, kw_only=True)
class _ModelExplanation:
    """Why a combination or a learned model gives two nodes their score; shows itself as HTML in notebooks."""

    query: Id
    target: Id
    measure: str
    score: float
    rank: int | None = None
    """The target's rank in a search for the query; None if it is unrelated, or the query itself."""
    num_targets: int = 0
    """How many nodes such a search ranks."""

    @property
    def summary(self) -> str:
        """Say in a sentence or two what decides the score."""
        raise NotImplementedError

    def _lines(self) -> list[str]:
        """Return what stands below the summary."""
        return []

    def __repr__(self) -> str:
        head = f"{self.query} and {self.target}: {self.measure} = {score_text(self.score)}"
        place = f", rank {self.rank:,} of {self.num_targets:,}" if self.rank else ""
        return in_lines(head + place, self.summary, *self._lines())

    def _repr_html_(self) -> str:
        from neupath.evidence.html_report import render_fragment

        return render_fragment(self)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --model --json` prints."""
        return {
            "query": self.query, "target": self.target, "measure": self.measure, "score": self.score,
            "rank": self.rank, "targets": self.num_targets, "summary": self.summary,
        }  # fmt: skip


@dataclass(frozen=True, repr=False, kw_only=True)
class CombinedExplanation(_ModelExplanation):
    """The parts of one score, the largest first; their shares add up to it."""

    parts: tuple[ExplainedPart, ...]

    @property
    def summary(self) -> str:
        """Say in a sentence which meta-path weighs most, and through which nodes."""
        first = self.parts[0]
        if not self.score:
            query, target = (shortened(node.label) for node in (first.explanation.query, first.explanation.target))
            return f"No path joins {query} and {target}."
        share = first.share / self.score
        if len(self.parts) == 1 or share > 1 - 1e-12:
            return first.explanation.summary
        return f"{percent(share)} of the score is by {first.explanation.metapath}. {first.explanation.summary}"

    def _lines(self) -> list[str]:
        return [f"  {score_text(part.share):>8}  {part.explanation.metapath}" for part in self.parts]

    def to_dict(self) -> dict[str, object]:
        content = super().to_dict() | {"parts": [part.to_dict(self.score) for part in self.parts]}
        del content["measure"]  # each part names its own
        return content


def explain_combination(
    combination: Combination,
    query: NodeRef,
    target: NodeRef,
    limit: int = 10,
    *,
    by: str | int | None = None,
    paths: int = 1,
) -> CombinedExplanation:
    """Split the score of two nodes under a fitted combination by meta-path, then by node, as `explain` does.

    Meta-paths without a node of the type `by` are grouped by their middle.
    """
    hin, steps = combination.hin_, [_step_of(measure.metapath_, by) for measure in combination.measures_]
    if by is not None and all(step is None for step in steps):
        position_to_group_by(combination.measures_[0].metapath_, by)  # raises
    rows = hin.row(combination.source_type, query), hin.row(combination.target_type, target)
    parts, weights = [], combination.pair_weights(*rows)
    for weight, measure, step in zip(weights, combination.measures_, steps, strict=True):
        explanation = explain(
            hin, measure.metapath_, query, target, measure=measure, by=step, limit=limit, paths=paths, k=None
        )
        parts.append(ExplainedPart(weight, weight * explanation.score if explanation.score else 0.0, explanation))
    parts.sort(key=lambda part: -part.share)
    first = parts[0].explanation
    return CombinedExplanation(parts=tuple(parts), **_facts(combination, first.query.id, first.target.id))


def _step_of(metapath: MetaPath, by: str | int | None) -> int | None:
    try:
        return None if by is None else position_to_group_by(metapath, by)
    except QueryError:
        return None


def _facts(scorer: Scorer, query: Id, target: Id) -> dict[str, Any]:
    """Return what all explanations of a model say of a pair, with its score and rank as a search has them.

    The rank is None if the target is no hit, has the score 0, or is the query itself.
    """
    x, y = scorer.hin_.row(scorer.source_type, query), scorer.hin_.row(scorer.target_type, target)
    skipped = x if scorer.source_type == scorer.target_type else -1
    ranking = scorer.rank_rows(np.array([x]), np.array([skipped]), scorer.hin_.num_nodes(scorer.target_type), None, 1)
    rows, scores = (each[0, : ranking.sizes[0]] for each in (ranking.rows, ranking.scores))
    places = np.flatnonzero((rows == y) & (scores != 0))
    score = scores[places[0]] if len(places) else scorer.score_targets(x, np.array([y]))[0]
    return {
        "query": query, "target": target, "measure": scorer.name, "score": float(score),
        "rank": 1 + int(places[0]) if len(places) else None, "num_targets": int(np.count_nonzero(scores)),
    }  # fmt: skip


_ATTENTION_PATHS = 1000
"""Paths that are traced to group the attention of a model."""


@dataclass(frozen=True)
class Contribution:
    """What a meta-path, an attribute or a degree adds to the score of a pair, before it is squashed to 0 to 1.

    It is a SHAP value: below 0 it lowers the score.
    """

    name: str
    value: float

    def to_dict(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True)
class AttentionPath:
    """A path instance behind a score: its nodes from the far end to the target, the links between, and its share."""

    nodes: tuple[PathNode, ...]
    links: tuple[str, ...]
    weight: float
    from_query: bool
    """Whether the path starts at the query; the others tell the model what the target itself is like."""

    @property
    def metapath(self) -> str:
        steps = zip(self.links, self.nodes[1:], strict=True)
        return self.nodes[0].node_type + "".join(f" {link} {node.node_type}" for link, node in steps)


@dataclass(frozen=True, repr=False, kw_only=True)
class AttentionExplanation(_ModelExplanation):
    """What a learned model attends to when it scores two nodes: paths, each with its share of the attention.

    `pathboost` and `linear` split the score itself, too: 1 / (1 + exp(-margin)), where the margin is `base` and all
    `contributions` added up.
    """

    paths: Sequence[AttentionPath] = ()
    groups: tuple[PathGroup, ...] = ()
    """The paths by the node in their middle, heaviest first, with their shares of the attention."""
    num_groups: int = 0
    summary: str = ""
    """Sentences that say what decides the score, if the model tells, and to which nodes it attends."""
    base: float | None = None
    """The margin of a pair of which nothing is known; None if the model does not split its margin."""
    contributions: tuple[Contribution, ...] = ()
    """All that raises or lowers the margin from there, the largest first."""

    @property
    def margin(self) -> float | None:
        """What is squashed to the score: `base` and all contributions."""
        return None if self.base is None else self.base + sum(each.value for each in self.contributions)

    def _lines(self) -> list[str]:
        groups = [f"  {percent(group.share):>6}  {shortened(group.node.label)}" for group in self.groups]
        return [*(f"  {signed(each.value):>6}  {each.name}" for each in self.contributions), *groups]

    def to_dict(self) -> dict[str, object]:
        return super().to_dict() | {
            "base": self.base,
            "margin": self.margin,
            "contributions": [each.to_dict() for each in self.contributions],
            "groups": [group.to_dict() for group in self.groups],
            "paths": [asdict(path) | {"metapath": path.metapath} for path in self.paths],
        }


def signed(value: float) -> str:
    """Write what is added to a score, with its sign.

    >>> signed(2.314), signed(-0.00021), signed(0.0)
    ('+2.31', '-0.0002', '+0.00')
    """
    return f"{value:+.2f}" if value == 0 or abs(value) >= 0.005 else f"{value:+.1g}"


def describe_contributions(contributions: Sequence[Contribution]) -> str:
    """Say in a sentence what raises a score and what lowers it, given the largest contributions first.

    >>> describe_contributions([Contribution("year: difference", -5.07), Contribution("user-item-user", 2.31)])
    'Raised by user-item-user (+2.31), lowered by year: difference (-5.07).'
    """
    sides = []
    for verb, sign in (("raised", 1), ("lowered", -1)):
        own = [each for each in contributions if sign * each.value > 0]
        words = [f"{each.name} ({signed(each.value)})" for each in own[:NAMED]]
        if len(own) > NAMED:
            words.append(f"{len(own) - NAMED} more ({signed(sum(each.value for each in own[NAMED:]))})")
        sides.append(f"{verb} by {joined(words)}" if words else f"{verb} by nothing")
    return f"R{sides[0][1:]}, {sides[1]}."


def _explain_attention(scorer: Any, query: Id, target: Id, limit: int, paths: int) -> AttentionExplanation:
    """Group the paths that a model attends to by their middle node, as `explain` groups those of a measure."""
    traced = scorer.attention_paths(query, target, max(limit, _ATTENTION_PATHS))
    by_node: dict[PathNode, list[AttentionPath]] = defaultdict(list)
    for path in traced:
        by_node[path.nodes[min(middle_of(len(path.links)), len(path.links))]].append(path)
    groups = []
    for middle, own in by_node.items():
        instances = tuple(PathInstance(path.nodes, path.links, path.weight, path.weight) for path in own[:paths])
        groups.append(PathGroup(middle, len(own), None, sum(path.weight for path in own), instances))
    groups.sort(key=lambda group: -group.share)
    explanation = AttentionExplanation(
        paths=traced[:limit], groups=tuple(groups[:limit]), num_groups=len(groups), **_facts(scorer, query, target)
    )
    if not hasattr(scorer, "split_margin"):
        summary = describe_groups(groups, len(groups), subject="The model attends to paths") if groups else ""
        return replace(explanation, summary=summary)
    margin = scorer.split_margin(query, target)
    if margin is None:
        sentence = f"The model does not rank {shortened(str(target))}: no path that it follows reaches it, or too many "
        return replace(explanation, summary=f"{sentence}other targets have stronger ones. Its score is 0.")
    base, contributions = margin
    sentences = [describe_contributions(contributions)]
    if groups:
        sentences.append(describe_groups(groups, len(groups), subject="The paths that raise it run"))
    return replace(explanation, summary=" ".join(sentences), base=base, contributions=tuple(contributions))


def _describe_cold(scorer: Scorer, query: Id) -> str:
    """Say that no path leads from a query to any target, if so; empty if not."""
    if not isinstance(scorer, LearnedScorer) or not scorer.is_cold(query):
        return ""
    other = "other " if scorer.source_type == scorer.target_type else ""
    name = shortened(node_at(scorer.hin_, scorer.source_type, scorer.hin_.row(scorer.source_type, query)).label)
    return (
        f"No path of any length leads from {name} to any {other}{scorer.target_type}, so it has no hits, and the score "
        f"is 0."
    )


# ---- Stacks --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ExplainedLearner:
    """One learner of a stack: its weight, its own score of the pair, and what that adds to the score of the stack."""

    name: str
    weight: float
    score: float
    share: float
    explanation: "ModelExplanation | None"
    """What is behind its own score; None if it shows no paths."""

    def to_dict(self) -> dict[str, object]:
        return vars(self) | {"explanation": None if self.explanation is None else self.explanation.to_dict()}


@dataclass(frozen=True, repr=False, kw_only=True)
class StackExplanation(_ModelExplanation):
    """What each learner adds to the score of a stack, the heaviest learner first; the shares add up to the score."""

    learners: tuple[ExplainedLearner, ...]
    cold: str = ""
    """A sentence that says so where no path leads from the query to any target; empty elsewhere."""

    @property
    def explained(self) -> ExplainedLearner | None:
        """The heaviest learner that shows paths."""
        return next((learner for learner in self.learners if learner.explanation is not None), None)

    @property
    def groups(self) -> tuple[PathGroup, ...]:
        """The groups of the heaviest learner that shows paths, with shares of its own score or attention.

        A group of several meta-paths, at the same node, is one.
        """
        why = self.explained.explanation if self.explained else None
        if not isinstance(why, CombinedExplanation):
            return why.groups if why else ()
        merged: dict[PathNode, PathGroup] = {}
        for each in (group for part in why.parts for group in part.groups(why.score)):
            other = merged.get(each.node, PathGroup(each.node, 0, None, 0.0))
            merged[each.node] = PathGroup(
                each.node, other.paths + each.paths, None, other.share + each.share, other.instances + each.instances
            )
        return tuple(sorted(merged.values(), key=lambda group: -group.share))

    @property
    def shares_text(self) -> str:
        """Say in a sentence what each learner adds, or why none adds anything."""
        if self.cold:
            return self.cold
        words = [f"{each.name} (weight {each.weight:.2f}) adds {signed(each.share)}" for each in self.learners]
        return f"{joined(words)}."

    @property
    def summary(self) -> str:
        """Say what each learner adds, and then what decides the score of the heaviest one that shows it."""
        main = None if self.cold else self.explained
        behind = f" {main.name}: {main.explanation.summary}" if main and main.explanation else ""
        return self.shares_text + behind

    def _lines(self) -> list[str]:
        return [f"  {signed(each.share):>6}  {each.name}, weight {each.weight:.2f}" for each in self.learners]

    def to_dict(self) -> dict[str, object]:
        why = self.explained.explanation if self.explained else None
        return super().to_dict() | {
            "learners": [learner.to_dict() for learner in self.learners],
            "groups": [group.to_dict() for group in self.groups],
            "paths": why.to_dict().get("paths", []) if why else [],
        }


ModelExplanation = CombinedExplanation | AttentionExplanation | StackExplanation


def _explain_stack(
    stack: Any, query: Id, target: Id, limit: int, *, by: str | int | None, paths: int
) -> StackExplanation:
    """Explain each learner of a stack that can be, and what each adds to the score of the stack."""
    learners, refused = [], None
    for scorer, (name, weight, own, share) in zip(stack.scorers_, stack.parts_of_score(query, target), strict=True):
        explanation = None
        if _shows_paths(scorer):
            try:
                explanation = explain_model(scorer, query, target, limit, by=by, paths=paths)
            except QueryError as error:
                refused = refused or error
        learners.append(ExplainedLearner(name, weight, own, share, explanation))
    if refused is not None and not any(learner.explanation for learner in learners):
        raise refused
    learners.sort(key=lambda learner: -learner.weight)
    return StackExplanation(learners=tuple(learners), cold=_describe_cold(stack, query), **_facts(stack, query, target))


def _shows_paths(scorer: Scorer) -> bool:
    has_parts = isinstance(scorer, Combination) or hasattr(scorer, "as_combination")
    return has_parts or hasattr(scorer, "attention_paths")


def explain_model(
    scorer: Scorer, query: NodeRef, target: NodeRef, limit: int = 10, *, by: str | int | None = None, paths: int = 1
) -> ModelExplanation:
    """Explain the score of two nodes under a combination or a learned model.

    Parameters
    ----------
    scorer
        A fitted combination, a stack, or a model that has `attention_paths`.
    query, target
        The two nodes, by id or unambiguous name.
    limit
        The number of groups to show, and the number of paths.
    by
        The node type to group paths by, or the number of steps from the query; by default the middle.
    paths
        The number of paths to show of each group.

    >>> from neupath import load
    >>> from neupath.measures import Part
    >>> explain_model(Combination([Part("pathsim", "APVPA", 1.0)]).fit(load("toy")), "Mike", "Mary").score
    0.8
    """
    query, target = id_of(query), id_of(target)
    if isinstance(scorer, Combination):
        return explain_combination(scorer, query, target, limit, by=by, paths=paths)
    if hasattr(scorer, "parts_of_score"):
        return _explain_stack(scorer, query, target, limit, by=by, paths=paths)
    if cold := _describe_cold(scorer, query):
        return AttentionExplanation(query=query, target=target, measure=scorer.name, score=0.0, summary=cold)
    combination = scorer.as_combination() if hasattr(scorer, "as_combination") else None
    if combination is not None:
        return replace(explain_combination(combination, query, target, limit, by=by, paths=paths), measure=scorer.name)
    if by is not None:
        raise QueryError(f"the paths of {scorer.name} have no common steps to group by; leave out ‹by›", parameter="by")
    if not hasattr(scorer, "attention_paths"):
        raise QueryError(f"the saved {scorer.name} shows no paths of its own; explain its meta-path instead")
    return _explain_attention(scorer, query, target, limit, paths)
