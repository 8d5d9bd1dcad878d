"""From labelled pairs to the meta-paths, weights and measure that explain them, and how sure that is."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from neupath.errors import QueryError, listed
from neupath.graph import HIN
from neupath.inference.candidates import (
    BUDGET,
    Candidate,
    Progress,
    Searched,
    explained_alone,
    features_of,
    one_way_metapaths,
    search_candidates,
)
from neupath.inference.fitting import (
    EXACT,
    Hypothesis,
    Table,
    alternatives_of,
    bootstrap_weights,
    choose_hypothesis,
    cross_validate,
    promising_columns,
    r_squared,
)
from neupath.inference.inferred import Alternative, Inferred, InferredPart
from neupath.inference.ranking import Ranker, auc, rank_hypotheses, with_negatives
from neupath.inference.walks import MEASURES_INFERRED
from neupath.labels import Pairs, read_pairs
from neupath.metapath import MetaPath

BOUNDED = ("pathsim", "joinsim", "hetesim", "pcrw")
_SHORTLIST = 48
_MOST_ONE_WAY = 300


def infer(
    hin: HIN,
    pairs: Any,
    *,
    node_type: str | None = None,
    max_length: int = 6,
    measures: Sequence[str] | None = None,
    asymmetric: bool = False,
    budget: int = BUDGET,
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> Inferred:
    """Find the meta-paths, their weights, and the measure that explain labelled pairs.

    `pairs` is a CSV file, a table, or tuples of (query, target, score). Labels that are only 0 and 1, where no measure
    gives just these, and pairs without scores, which are examples of similar ones, are explained as a ranking.
    `max_length` is the most steps of a meta-path, `budget` the most multiplications of the search; `asymmetric` also
    tries paths that are not walked out and back.

    >>> from neupath import load
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Jim", 0.0826446), ("Mary", "Ann", 2 / 7)]
    >>> found = infer(load("toy"), labels, max_length=4)
    >>> found.measure, [(part.metapath, part.weight) for part in found.parts]
    ('pathsim', [('author-paper-venue-paper-author', 1.0)])
    """
    chosen = _check_measures(measures)
    labelled = read_pairs(hin, pairs, node_type, bounded=False, examples=True)
    if not labelled.scored:
        labelled = with_negatives(labelled, hin.num_nodes(labelled.node_type), seed)
    table, metapaths, searched = _table(hin, labelled, max_length, chosen, asymmetric, budget, progress)
    yes_no = bool(np.isin(labelled.scores, (0.0, 1.0)).all()) and bool(np.ptp(labelled.scores) > 0)
    best, compared = choose_hypothesis(table, chosen)
    if yes_no and (best.rmse > EXACT or best.free):
        rankers = rank_hypotheses(table, chosen, seed)
        if rankers:
            return _inferred_ranking(hin, labelled, table, metapaths, rankers, searched, seed)
    return _inferred_scores(hin, labelled, table, metapaths, best, compared, searched, chosen, seed)


def table_of(hin: HIN, pairs: Any, *, max_length: int, seed: int) -> tuple[Table, list[MetaPath]]:
    """Return the features of labelled pairs for the candidates worth fitting, and these."""
    labelled = read_pairs(hin, pairs, bounded=False, examples=True)
    if not labelled.scored:
        labelled = with_negatives(labelled, hin.num_nodes(labelled.node_type), seed)
    table, metapaths, _ = _table(hin, labelled, max_length, MEASURES_INFERRED, False, BUDGET, lambda *_: None)
    return table, metapaths


def _check_measures(measures: Sequence[str] | None) -> tuple[str, ...]:
    if measures is None:
        return MEASURES_INFERRED
    for measure in measures:
        if measure not in MEASURES_INFERRED:
            raise QueryError(f"{measure!r} cannot be inferred; {listed(MEASURES_INFERRED)} can")
    return tuple(measure for measure in MEASURES_INFERRED if measure in measures)


def _table(
    hin: HIN,
    pairs: Pairs,
    max_length: int,
    measures: Sequence[str],
    asymmetric: bool,
    budget: int,
    progress: Progress,
) -> tuple[Table, list[MetaPath], Searched]:
    """Search candidates on a sample, and compute the best of them for all pairs."""
    if max_length < 2:
        raise QueryError(f"max_length is {max_length}; a symmetric meta-path has at least 2 steps")
    if not hin.schema.links_from(pairs.node_type):
        raise QueryError(f"no relation joins {pairs.node_type} nodes to others, so there is no path to infer")
    candidates, searched, sample = search_candidates(hin, pairs, max_length // 2, budget, progress)
    if asymmetric:
        one_way = one_way_metapaths(hin.schema, pairs.node_type, max_length, _MOST_ONE_WAY)
        candidates = candidates + features_of(hin, one_way, sample)
        searched = Searched(
            searched.tried + len(one_way), searched.total + len(one_way), searched.too_large, searched.stopped
        )
    if not candidates:
        raise QueryError(
            f"the labelled {pairs.node_type} nodes reach too many others along every path, "
            f"or the budget of {budget:,} multiplications is too small for the first step; raise it"
        )
    kept = _shortlist(candidates, sample, measures)
    if len(sample) < len(pairs):
        kept = features_of(hin, [candidate.metapath for candidate in kept], pairs)
    return _to_table(kept, pairs), [candidate.metapath for candidate in kept], searched


def _to_table(candidates: Sequence[Candidate], pairs: Pairs) -> Table:
    undefined = np.full(len(pairs), np.nan)
    features = {
        measure: np.stack([candidate.features.get(measure, undefined) for candidate in candidates], axis=1)
        for measure in MEASURES_INFERRED
    }
    return Table(features, pairs.scores, pairs.queries, [len(candidate.metapath) for candidate in candidates])


def _shortlist(candidates: list[Candidate], pairs: Pairs, measures: Iterable[str]) -> list[Candidate]:
    """Keep the candidates that explain most of the labels alone or together, in the order of their length."""
    shortest = sorted(candidates, key=lambda candidate: len(candidate.metapath))
    if len(shortest) <= _SHORTLIST:
        return shortest
    table = _to_table(shortest, pairs)
    chosen: dict[int, None] = {}
    for measure in measures:
        alone = {
            p: explained_alone(c.features[measure], pairs.scores)
            for p, c in enumerate(shortest)
            if measure in c.features
        }
        ranked = sorted(alone, key=lambda p: (-round(alone[p], 9), p))
        chosen |= dict.fromkeys(ranked[: _SHORTLIST // 4])
        chosen |= dict.fromkeys(promising_columns(table, measure))
    return [shortest[p] for p in sorted(chosen)]


def _inferred_scores(
    hin: HIN,
    pairs: Pairs,
    table: Table,
    metapaths: list[MetaPath],
    best: Hypothesis,
    compared: list[Hypothesis],
    searched: Searched,
    measures: Sequence[str],
    seed: int,
) -> Inferred:
    held_out = cross_validate(table, measures, seed)
    intervals = bootstrap_weights(best, table, seed)
    return Inferred(
        hin=hin,
        pairs=pairs,
        measure=best.measure,
        parts=_parts(best, metapaths, intervals),
        kind="scores",
        rmse=best.rmse,
        r2=r_squared(pairs.scores, best.predict(table)),
        held_out_rmse=float(np.sqrt(np.mean((held_out - pairs.scores) ** 2))),
        held_out_r2=r_squared(pairs.scores, held_out),
        auc=None,
        alternatives=tuple(_alternative(other, metapaths) for other in alternatives_of(best, compared, table)),
        searched=searched,
        seed=seed,
    )


def _inferred_ranking(
    hin: HIN,
    pairs: Pairs,
    table: Table,
    metapaths: list[MetaPath],
    rankers: list[Ranker],
    searched: Searched,
    seed: int,
) -> Inferred:
    best = rankers[0]
    parts = [(metapaths[p], w, w, w) for p, w in zip(best.columns, best.weights, strict=True)]
    others = [r for r in rankers[1:] if r.auc >= best.auc - max(best.error, 1e-9)]
    return Inferred(
        hin=hin,
        pairs=pairs,
        measure=best.measure,
        parts=tuple(sorted((InferredPart(str(p), w, lo, hi) for p, w, lo, hi in parts), key=lambda part: -part.weight)),
        kind="ranking",
        rmse=None,
        r2=None,
        held_out_rmse=None,
        held_out_r2=None,
        auc=auc(pairs.scores, best.predict(table)),
        held_out_auc=best.auc,
        alternatives=tuple(_alternative(other, metapaths) for other in others),
        searched=searched,
        seed=seed,
    )


def _parts(
    best: Hypothesis, metapaths: list[MetaPath], intervals: Sequence[tuple[float, float]]
) -> tuple[InferredPart, ...]:
    found = [
        InferredPart(str(metapaths[p]), weight, *interval)
        for p, weight, interval in zip(best.columns, best.weights, intervals, strict=True)
    ]
    return tuple(sorted(found, key=lambda part: -part.weight))


def _alternative(other: Hypothesis | Ranker, metapaths: list[MetaPath]) -> Alternative:
    weights = tuple((str(metapaths[p]), w) for p, w in zip(other.columns, other.weights, strict=True))
    return Alternative(other.measure, weights, other.rmse if isinstance(other, Hypothesis) else None)
