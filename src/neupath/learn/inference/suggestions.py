"""Suggestions: the unlabelled pairs whose labels would best tell explanations apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from neupath.engine.products import adjacencies
from neupath.engine.walk import walk_rows
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id, Rows
from neupath.learn.inference.features import compute_features
from neupath.learn.labels import Pairs

_QUERIES = 100
"""Queries looked at: labelled ones and random others."""
_TARGETS = 20
"""Targets looked at for each query and meta-path: those with the most paths."""

Weighted = tuple[str, Sequence[tuple[str, float]]]
"""An explanation: a measure, and its meta-paths with their weights."""


@dataclass(frozen=True)
class Suggestion:
    """A pair to label, and the score that each explanation gives it, the chosen explanation first."""

    query: Id
    target: Id
    query_name: str | None
    target_name: str | None
    scores: tuple[float, ...]

    @property
    def labels(self) -> tuple[str, str]:
        """The query and the target by name, with the id if it differs."""
        known = ((self.query_name, self.query), (self.target_name, self.target))
        query, target = (f"{name} ({own})" if name and name != own else str(own) for name, own in known)
        return query, target

    def to_dict(self) -> dict[str, object]:
        return vars(self) | {"scores": list(self.scores)}


def suggest(
    hin: HIN,
    explanations: Sequence[Weighted],
    pairs: Pairs,
    count: int,
    seed: int,
    skip: Iterable[tuple[Id, Id]] = (),
    *,
    relative: bool = False,
) -> list[Suggestion]:
    """Return pairs on which explanations differ most, over the labelled queries and some random others.

    It computes only rows of single nodes, never a whole half-path matrix. With `relative`, the scores of an explanation
    are relative to the highest it gives the query.
    """
    nodes, target_nodes = hin.nodes[pairs.node_type], hin.nodes[pairs.target_type]
    known = set(zip(pairs.queries.tolist(), pairs.targets.tolist(), strict=True))
    known |= {(nodes.find(query), target_nodes.find(target)) for query, target in skip}
    known |= set() if pairs.is_across_types else {(target, query) for query, target in known}
    metapaths = {text: hin.metapath(text) for _, weights in explanations for text, _ in weights}
    rng = np.random.default_rng(seed)
    labelled = rng.permutation(np.unique(pairs.queries))[: _QUERIES // 2]
    others = np.setdiff1d(rng.integers(0, len(nodes), _QUERIES), labelled)
    queries = np.sort(np.concatenate([labelled, others])[:_QUERIES])
    unlabelled = _candidate_pairs(hin, list(metapaths.values()), queries, known)
    if not len(unlabelled):
        return []
    by_path = dict(zip(metapaths, compute_features(hin, metapaths.values(), unlabelled), strict=True))
    all_scores = [_scores(*explanation, by_path) for explanation in explanations]
    scores = np.stack([values for values in all_scores if values is not None] or [np.zeros(len(unlabelled))])
    if relative:
        scores = _relative(scores, unlabelled.queries)
    spread = scores.max(axis=0) - scores.min(axis=0)
    suggestions: list[Suggestion] = []
    seen: set[int] = set()
    for at in np.lexsort((np.arange(len(unlabelled)), -spread.round(12))).tolist():
        query, target = int(unlabelled.queries[at]), int(unlabelled.targets[at])
        if spread[at] <= 1e-9 or len(suggestions) == count:
            break
        if query in seen or (query, target) in known:
            continue
        seen |= {query} if pairs.is_across_types else {query, target}  # a pair of other nodes tells more
        ids, names = (nodes.id(query), target_nodes.id(target)), (nodes.name(query), target_nodes.name(target))
        suggestions.append(Suggestion(*ids, *names, tuple(scores[:, at].tolist())))
    return suggestions


def _candidate_pairs(hin: HIN, metapaths: Sequence[MetaPath], queries: Rows, known: set[tuple[int, int]]) -> Pairs:
    """Return for each query the targets to which the meta-paths join it most often."""
    related: dict[tuple[int, int], None] = {}
    for path in metapaths:
        chain = adjacencies(hin, path)
        for query in queries.tolist():
            row = walk_rows(chain, np.array([query]))
            best = row.indices[np.lexsort((row.indices, -row.data))][: _TARGETS + 1]
            own = query if path.source == path.target else None
            related |= dict.fromkeys((query, target) for target in best.tolist() if target != own)
    kept = np.array([pair for pair in related if pair not in known], dtype=np.int64).reshape(-1, 2)
    zeros = np.zeros(len(kept))
    return Pairs(metapaths[0].source, kept[:, 0], kept[:, 1], zeros, target_type=metapaths[0].target)


def _scores(measure: str, weights: Sequence[tuple[str, float]], by_path: dict[str, dict[str, Floats]]) -> Floats | None:
    """Return the scores that an explanation gives the pairs; None if its paths reach too many nodes."""
    parts = [weight * by_path[text][measure] for text, weight in weights if measure in by_path[text]]
    return np.sum(parts, axis=0, dtype=np.float64) if len(parts) == len(weights) else None


def _relative(scores: Floats, queries: Rows) -> Floats:
    """Divide the scores of each explanation by the highest that it gives the same query."""
    _, positions = np.unique(queries, return_inverse=True)
    highest = np.zeros((len(scores), int(positions.max()) + 1))
    for row, own in zip(highest, scores, strict=True):
        np.maximum.at(row, positions, own)
    return scores / np.maximum(highest[:, positions], 1e-300)
