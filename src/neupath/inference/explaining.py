"""Why a combination scores two nodes as it does: the share of each meta-path, and of each path instance in it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from neupath.errors import QueryError
from neupath.explanation import Explanation, explain
from neupath.measures import Combination
from neupath.nodes import Id
from neupath.scorer import Scorer


@dataclass(frozen=True)
class ExplainedPart:
    """One meta-path of a combination: its weight, what it adds to the score, and the paths behind it."""

    weight: float
    share: float
    explanation: Explanation


@dataclass(frozen=True)
class CombinedExplanation:
    """The parts of one score, the largest first; their shares add up to it."""

    query: Id
    target: Id
    score: float
    parts: tuple[ExplainedPart, ...]

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --model --json` prints."""
        parts = [
            {"weight": part.weight, "share": part.share} | part.explanation.to_dict() | {"instances": _shares(part)}
            for part in self.parts
        ]
        return {"query": self.query, "target": self.target, "score": self.score, "parts": parts}


def _shares(part: ExplainedPart) -> list[dict[str, object]]:
    """Return the instances of a part with their shares of the whole score."""
    return [instance.to_dict() | {"share": part.weight * instance.share} for instance in part.explanation.instances]


def explain_combination(combination: Combination, query: Id, target: Id, limit: int = 10) -> CombinedExplanation:
    """Find the meta-paths and path instances that make two nodes similar under a combination.

    >>> from neupath import load
    >>> from neupath.measures import Part
    >>> both = Combination([Part("pathsim", "APVPA", 0.75), Part("pathsim", "APA", 0.25)]).fit(load("toy"))
    >>> [(part.explanation.metapath, round(part.share, 4)) for part in explain_combination(both, "Mike", "Mary").parts]
    [('author-paper-venue-paper-author', 0.6), ('author-paper-author', 0.0)]
    """
    parts = []
    for part, measure in zip(combination.parts, combination.measures_, strict=True):
        why = explain(combination.hin_, measure.metapath_, query, target, measure=measure, limit=limit)
        parts.append(ExplainedPart(part.weight, part.weight * why.score, why))
    parts.sort(key=lambda part: -part.share)
    first = parts[0].explanation
    return CombinedExplanation(first.query.id, first.target.id, sum(part.share for part in parts), tuple(parts))


@dataclass(frozen=True)
class LookedAt:
    """What a learned model looked at to score two nodes: paths, each with its share of the model's attention."""

    query: Id
    target: Id
    measure: str
    score: float
    looks: Sequence[Any]

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --model --json` prints."""
        paths = [asdict(look) | {"metapath": look.metapath} for look in self.looks]
        return {
            "query": self.query, "target": self.target, "measure": self.measure, "score": self.score, "paths": paths
        }  # fmt: skip


def explain_model(scorer: Scorer, query: Id, target: Id, limit: int = 10) -> CombinedExplanation | LookedAt:
    """Find what a saved combination or model says of two nodes.

    >>> from neupath import load
    >>> from neupath.measures import Part
    >>> explain_model(Combination([Part("pathsim", "APVPA", 1.0)]).fit(load("toy")), "Mike", "Mary").score
    0.8
    """
    if isinstance(scorer, Combination):
        return explain_combination(scorer, query, target, limit)
    if not hasattr(scorer, "looked_at"):
        raise QueryError(f"the saved {scorer.name} shows no paths of its own; explain its meta-path instead")
    return LookedAt(query, target, scorer.name, scorer.score(query, target), scorer.looked_at(query, target, limit))
