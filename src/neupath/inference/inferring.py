"""From labelled pairs to the meta-paths, weights and measure that explain them, and how sure that is."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
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
    search_candidates,
    spread_queries,
)
from neupath.inference.certainty import bootstrap_weights, cross_validate, r_squared
from neupath.inference.features import features_of, search_one_way
from neupath.inference.fitting import Hypothesis, Table, alternatives_of, choose_hypothesis, promising_columns
from neupath.inference.inferred import Alternative, Inferred, InferredPart
from neupath.inference.ranking import Ranker, auc, chance_error, held_out_auc, rank_hypotheses, with_negatives
from neupath.inference.walks import MEASURES_INFERRED
from neupath.labels import Pairs, read_pairs
from neupath.metapath import MetaPath

BOUNDED = ("pathsim", "joinsim", "hetesim", "pcrw")
_SHORTLIST = 48
_MOST_PAIRS = 5000
_LONGEST = 20
_LARGEST = 1e12


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
    given = read_pairs(hin, pairs, node_type, bounded=False, examples=True)
    labelled = _labels_of(hin, given, seed)
    table, metapaths, searched = _table(hin, labelled, max_length, chosen, asymmetric, budget, progress)
    yes_no = bool(np.isin(labelled.scores, (0.0, 1.0)).all()) and bool(np.ptp(labelled.scores) > 0)
    best, compared = choose_hypothesis(table, chosen)
    if yes_no and (best.free or not best.exact):
        rankers = rank_hypotheses(table, chosen, seed)
        if rankers:
            return _inferred_ranking(hin, given, table, metapaths, rankers, searched, chosen, seed)
    return _inferred_scores(hin, given, table, metapaths, best, compared, searched, chosen, seed)


def table_of(
    hin: HIN, pairs: Any, *, node_type: str | None, max_length: int, seed: int
) -> tuple[Table, list[MetaPath]]:
    """Return the features of labelled pairs for the candidates worth fitting, and these."""
    labelled = _labels_of(hin, read_pairs(hin, pairs, node_type, bounded=False, examples=True), seed)
    table, metapaths, _ = _table(hin, labelled, max_length, MEASURES_INFERRED, False, BUDGET, lambda *_: None)
    return table, metapaths


def _labels_of(hin: HIN, given: Pairs, seed: int) -> Pairs:
    """Return labels to explain, in one order however they were given, and no more than are needed."""
    if not 0 <= seed < 2**63:
        raise QueryError(f"seed is {seed}; it must lie between 0 and 2^63")
    if not given.scores.max() > 0 and given.scores.any():
        raise QueryError("no label is above 0; paths add to a score, and cannot explain what is below 0 alone")
    if np.abs(given.scores).max() > _LARGEST:
        largest = float(np.abs(given.scores).max())
        raise QueryError(f"a label is {largest:.4g}; scale labels down to at most {_LARGEST:.0e}")
    labelled = given if given.scored else with_negatives(given, hin.num_nodes(given.node_type), seed)
    order = np.lexsort((labelled.targets, labelled.queries))
    labelled = Pairs(labelled.node_type, labelled.queries[order], labelled.targets[order], labelled.scores[order])
    each = len(labelled) / len(np.unique(labelled.queries))
    return spread_queries(labelled, max(1, int(_MOST_PAIRS / each)))


def _check_measures(measures: Sequence[str] | None) -> tuple[str, ...]:
    if measures is None:
        return MEASURES_INFERRED
    if isinstance(measures, str) or not measures:
        raise QueryError(f"measures is {measures!r}; give a list of some of {listed(MEASURES_INFERRED)}")
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
    if not isinstance(max_length, int) or not 2 <= max_length <= _LONGEST:
        raise QueryError(f"max_length is {max_length}; a symmetric meta-path has 2 to {_LONGEST} steps")
    if budget < 1:
        raise QueryError(f"budget is {budget}; a search takes at least 1 multiplication")
    if not hin.schema.links_from(pairs.node_type):
        raise QueryError(f"no relation joins {pairs.node_type} nodes to others, so there is no path to infer")
    candidates, searched, sample = search_candidates(hin, pairs, max_length // 2, budget, progress)
    if asymmetric:
        one_way = search_one_way(hin, sample, max_length, budget)
        candidates, searched = candidates + one_way.candidates, searched.plus(one_way.searched)
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
    scale = float(np.abs(pairs.scores).max()) or 1.0
    return Table(features, pairs.scores, pairs.queries, [len(candidate.metapath) for candidate in candidates], scale)


def _shortlist(candidates: list[Candidate], pairs: Pairs, measures: Iterable[str]) -> list[Candidate]:
    """Keep the candidates that explain most of the labels alone or together, in the order of their length."""
    shortest = sorted(candidates, key=lambda candidate: len(candidate.metapath))
    if len(shortest) <= _SHORTLIST:
        return shortest
    table = _to_table(shortest, pairs)
    wanted: list[list[int]] = []
    for measure in measures:
        alone = {
            p: explained_alone(c.features[measure], pairs.scores)
            for p, c in enumerate(shortest)
            if measure in c.features
        }
        ranked = sorted(alone, key=lambda p: (-round(alone[p], 9), p))
        together = promising_columns(table, measure)
        wanted.append([p for pair in zip_longest(together, ranked[:_SHORTLIST]) for p in pair if p is not None])
    in_turn = [p for places in zip_longest(*wanted) for p in places if p is not None]
    return [shortest[p] for p in sorted(list(dict.fromkeys(in_turn))[:_SHORTLIST])]


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
        exact=best.exact,
        r2=r_squared(table.scores, best.predict(table)),
        held_out_rmse=float(np.sqrt(np.mean((held_out - table.scores) ** 2))),
        held_out_r2=r_squared(table.scores, held_out),
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
    measures: Sequence[str],
    seed: int,
) -> Inferred:
    best = rankers[0]
    parts = [InferredPart(str(metapaths[p]), w) for p, w in zip(best.columns, best.weights, strict=True)]
    others = [r for r in rankers[1:] if r.auc >= best.auc - max(best.error, 1e-9)]
    return Inferred(
        hin=hin,
        pairs=pairs,
        measure=best.measure,
        parts=tuple(sorted(parts, key=lambda part: -part.weight)),
        kind="ranking",
        rmse=None,
        r2=None,
        held_out_rmse=None,
        held_out_r2=None,
        auc=auc(table.scores, best.predict(table)),
        held_out_auc=held_out_auc(table, measures, seed),
        chance_error=chance_error(table.scores),
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
