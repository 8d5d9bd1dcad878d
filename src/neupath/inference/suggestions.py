"""Suggestions: the unlabelled pairs whose label would best tell apart what the labels so far cannot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neupath.graph import HIN
from neupath.labels import Pairs
from neupath.measures import Combination
from neupath.nodes import Id

_QUERIES = 100


@dataclass(frozen=True)
class Suggestion:
    """A pair to label, and what each explanation says its score is."""

    query: Id
    target: Id
    query_name: str | None
    target_name: str | None
    scores: tuple[float, ...]

    @property
    def labels(self) -> tuple[str, str]:
        """Both nodes as a person knows them: by name, with the id where that is another word."""
        known = ((self.query_name, self.query), (self.target_name, self.target))
        query, target = (f"{name} ({own})" if name and name != own else str(own) for name, own in known)
        return query, target

    def to_dict(self) -> dict[str, object]:
        return {"query": self.query, "target": self.target, "scores": list(self.scores)}


def suggest(
    hin: HIN, scorers: Sequence[Combination], pairs: Pairs, count: int, seed: int, ranks: bool = False
) -> list[Suggestion]:
    """Return pairs on which the scorers differ most, one a query, over the labelled queries and some random others.

    Where only ranks matter, each scorer's scores are taken relative to the query's highest.
    """
    nodes = hin.nodes[pairs.node_type]
    rng = np.random.default_rng(seed)
    labelled = np.unique(pairs.queries)
    some = rng.permutation(labelled)[: _QUERIES // 2]
    others = np.setdiff1d(rng.permutation(len(nodes))[:_QUERIES], some)
    queries = np.concatenate([some, others])[:_QUERIES]
    known = set(zip(pairs.queries.tolist(), pairs.targets.tolist(), strict=True))
    known |= {(target, query) for query, target in known}
    found: list[tuple[float, int, int, tuple[float, ...]]] = []
    for query in queries.tolist():
        scores = np.stack([scorer.score_rows(np.array([query]))[0] for scorer in scorers])  # (scorers, targets)
        scores[:, query] = 0.0
        if ranks:
            scores = scores / np.maximum(scores.max(axis=1, keepdims=True), 1e-300)
        spread = scores.max(axis=0) - scores.min(axis=0)
        for target in np.argsort(-spread, kind="stable")[: len(known) + 2].tolist():
            if target != query and (query, target) not in known:
                found.append((float(spread[target]), query, target, tuple(scores[:, target].tolist())))
                break
    found.sort(key=lambda item: (-item[0], item[1]))
    return [
        Suggestion(nodes.id(query), nodes.id(target), nodes.name(query), nodes.name(target), scores)
        for spread, query, target, scores in found[:count]
        if spread > 1e-9
    ]
