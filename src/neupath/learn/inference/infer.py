"""Inference: from labelled pairs to the meta-paths, weights and measure that explain them, and how sure that is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from neupath._runtime.progress import Progress, no_progress
from neupath._runtime.resources import one_blas_thread
from neupath.engine.hits import Hits, check_whole
from neupath.engine.scorer import SearchOptions
from neupath.errors import QueryError, listed
from neupath.evidence.model_explanation import CombinedExplanation, explain_combination
from neupath.graph.hin import HIN, html_table
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id, in_lines
from neupath.learn.evaluation import auc, r_squared, rmse
from neupath.learn.inference.binary_labels import (
    Ranker,
    chance_error,
    held_out_auc,
    rank_hypotheses,
)
from neupath.learn.inference.candidates import (
    BUDGET,
    Candidate,
    Extent,
    SearchReport,
    explained_alone,
    read_conditions,
    sample_pairs,
    search_candidates,
    search_one_way,
    spread_queries,
)
from neupath.learn.inference.features import compute_features, inferred_measures
from neupath.learn.inference.fitting import (
    FeatureTable,
    Hypothesis,
    WeightedPaths,
    alternatives_of,
    bootstrap_weights,
    choose_hypothesis,
    cross_validate,
    promising_columns,
)
from neupath.learn.inference.suggestions import Suggestion, suggest
from neupath.learn.labels import NodeTypes, Pairs, join_types, read_pairs, with_negatives
from neupath.measures import MEASURES, Combination, Part

# ---- What is inferred ----------------------------------------------------------------------------
_MOST_COMPARED = 8
"""Alternatives that suggestions compare."""
_GOOD_R2, _LEAST_R2 = 0.5, 0.1
_BETTER, _LEAST_GAIN = 0.9, 0.02
"""The RMSE, relative to that of weights of 0 or more, and the gain in held-out R² that a constant or negative weights
must have."""


@dataclass(frozen=True)
class InferredPart:
    """A meta-path and its weight, which is between `low` and `high` in 9 of 10 resamples of the queries.

    Weights of a ranking have no such interval, because only their ratios have a meaning.
    """

    metapath: str
    weight: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Alternative:
    """Another explanation, which these labels cannot tell from the chosen one: meta-paths with their weights."""

    measure: str
    weights: tuple[tuple[str, float], ...]
    rmse: float | None

    def __str__(self) -> str:
        terms = (text if abs(weight - 1) < 5e-4 else f"{weight:.3f}·({text})" for text, weight in self.weights)
        return f"{' + '.join(terms)} by {self.measure}"

    def to_dict(self) -> dict[str, object]:
        parts = [{"metapath": text, "weight": weight} for text, weight in self.weights]
        return {"measure": self.measure, "metapaths": parts, "rmse": self.rmse}


@dataclass(frozen=True, eq=False, repr=False)
class Inferred:
    """The meta-paths that explain labelled pairs under one measure, and the evidence for them.

    It holds the search that the labels mean as `scorer`, a `Combination`; `top_k`, `score`, `explain` and `save` call
    it. `kind` says whether it explains scores or, from yes/no labels, a ranking. The `held_out` numbers are
    cross-validated: the labels of each query are predicted from those of other queries.
    """

    hin: HIN
    pairs: Pairs
    measure: str
    parts: tuple[InferredPart, ...]
    kind: Literal["scores", "ranking"]
    alternatives: tuple[Alternative, ...]
    searched: SearchReport
    seed: int = 0
    rmse: float | None = None
    r2: float | None = None
    held_out_rmse: float | None = None
    held_out_r2: float | None = None
    exact: bool = False
    """Whether the labels are explained to the last digit."""
    auc: float | None = None
    held_out_auc: float | None = None
    """None if there are too few labels to hold some out."""
    offset: float = 0.0
    """The label of a pair without paths, such as the 1 of ratings from 1 to 5; scores leave it out."""
    chance_error: float = 0.0
    """The standard deviation of a random ranking's AUC on as many labels."""

    @property
    def explains(self) -> bool:
        """Whether the explanation predicts labels that it has not seen."""
        if self.kind == "ranking":
            return self.held_out_auc is not None and self.held_out_auc > 0.5 + 2 * self.chance_error
        return self.exact or (self.held_out_r2 or 0.0) >= _LEAST_R2

    @property
    def verdict(self) -> str:
        """Say in a sentence how well the labels are explained."""
        if self.kind == "ranking":
            if self.held_out_auc is None:
                return f"too few labels to hold some out; on these, the AUC is {self.auc:.3f}"
            answer = "similar pairs rank above others" if self.explains else "no path tells similar pairs from others"
            return f"{answer} (held-out AUC {self.held_out_auc:.3f})"
        if len(self.pairs) <= len(self.parts):
            count = f"{len(self.pairs)} label{'s' * (len(self.pairs) != 1)}"
            return (
                f"{count}, and as many weights, which would fit anything: label more pairs, such as the suggested ones"
            )
        verdict = self._exact_verdict() if self.exact else self._inexact_verdict()
        if self.offset:
            verdict += f"; a pair without paths has the label {self.offset:.3g}, and scores count from there"
        if any(part.weight < 0 for part in self.parts):
            verdict += "; paths with negative weights make nodes less similar"
        return verdict

    def _exact_verdict(self) -> str:
        if not self.pairs.scores.any():
            return "all labels are 0, as this path says; add pairs that are similar to know more"
        count = len(self.alternatives)
        if count:
            others = "one other explanation" if count == 1 else f"{count} other explanations"
            return f"explained exactly, and as well by {others}"
        return "explained exactly, and by nothing else that was tried"

    def _inexact_verdict(self) -> str:
        numbers = f"held-out R² {self.held_out_r2:.3f}, RMSE {self.held_out_rmse:.4f}"
        if (self.held_out_r2 or 0.0) >= _GOOD_R2:
            return f"explained well, not exactly ({numbers})"
        if self.explains:
            return f"explained poorly ({numbers}); compare the learned models"
        return f"no combination of paths explains these labels ({numbers}); compare the learned models"

    @cached_property
    def scorer(self) -> Combination:
        """The search that the labels mean."""
        return Combination(Part(self.measure, part.metapath, part.weight) for part in self.parts).fit(self.hin)

    def top_k(self, query: Id, k: int = 10, **options: Unpack[SearchOptions]) -> Hits:
        """Return the k targets most similar to a query, as the labels mean it; the options are those of a scorer."""
        return self.scorer.top_k(query, k, **options)

    def score(self, query: Id, target: Id) -> float:
        """Return the score of a pair."""
        return self.scorer.score(query, target)

    def explain(self, query: Id, target: Id, limit: int = 10) -> CombinedExplanation:
        """Return the meta-paths and path instances behind one score, with their shares."""
        return explain_combination(self.scorer, query, target, limit)

    def save(self, folder: str | Path) -> Path:
        """Write the scorer to a folder as readable JSON; `neupath.load_scorer` reads it back."""
        return self.scorer.save(folder)

    def suggest_pairs(self, count: int = 5, skip: Iterable[tuple[Id, Id]] = ()) -> list[Suggestion]:
        """Return the unlabelled pairs whose labels would best tell the alternatives apart.

        Parameters
        ----------
        count
            How many pairs to return at most. There are none if there are no alternatives.
        skip
            Pairs to leave out, in either direction.

        """
        own = Alternative(self.measure, tuple((part.metapath, part.weight) for part in self.parts), self.rmse)
        compared = [own, *self.alternatives[:_MOST_COMPARED]]
        if len(compared) < 2:
            return []
        weights = [(other.measure, other.weights) for other in compared]
        return suggest(self.hin, weights, self.pairs, count, self.seed, skip, relative=self.kind == "ranking")

    def report(self, suggested: int, skip: Iterable[tuple[Id, Id]] = ()) -> dict[str, object]:
        """Return what `infer --json` prints: the explanation, and up to `suggested` pairs worth labelling next."""
        pairs = self.suggest_pairs(suggested, skip) if suggested and self.alternatives else []
        return self.to_dict() | {"suggestions": [pair.to_dict() for pair in pairs]}

    def __repr__(self) -> str:
        parts = [f"  {part.weight:8.3f}  {part.metapath}" for part in self.parts]
        count = f"{len(self.pairs):,} label{'s' * (len(self.pairs) != 1)}"
        return in_lines(f"Inferred from {count}, by {self.measure}: {self.verdict}", *parts)

    def _repr_html_(self) -> str:
        intervals = ["" if part.low is None else f"{part.low:.3f} to {part.high:.3f}" for part in self.parts]
        rows = [(part.metapath, f"{part.weight:.3f}", own) for part, own in zip(self.parts, intervals, strict=True)]
        caption = f"by {self.measure}: {self.verdict}"
        return html_table(("meta-path", "weight", "9 in 10 resamples"), rows, caption)

    def to_dict(self) -> dict[str, object]:
        """Return the explanation and the evidence as JSON can hold them."""
        names = ("measure", "kind", "offset", "rmse", "r2", "held_out_rmse", "held_out_r2", "auc", "held_out_auc")
        return {
            "metapaths": [dict(vars(part)) for part in self.parts],
            **{name: getattr(self, name) for name in (*names, "explains", "verdict")},
            "alternatives": [other.to_dict() for other in self.alternatives],
            "searched": self.searched.to_dict(),
        }


# ---- Inference -----------------------------------------------------------------------------------
_SHORTLIST = 48
"""Candidates that are fitted."""
_MOST_PAIRS = 5000
_LONGEST = 20
_LARGEST_LABEL = 1e12


@one_blas_thread()
def infer(
    hin: HIN,
    pairs: Any,
    *,
    node_type: NodeTypes = None,
    query_type: str | None = None,
    target_type: str | None = None,
    max_length: int = 6,
    measures: Sequence[str] | None = None,
    asymmetric: bool = False,
    conditions: Sequence[str] = (),
    budget: int = BUDGET,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Inferred:
    """Find the meta-paths, their weights, and the measure that explain labelled pairs.

    Pairs without scores are examples of similar ones. They, and labels of only 0 and 1 that no measure gives exactly,
    are explained as a ranking. Pairs across types, such as users and items, are explained by one-way meta-paths. Labels
    on another scale, such as ratings from 1 to 5, and paths that count against a pair are tried where weights of 0 or
    more leave much unexplained.

    Parameters
    ----------
    hin
        The graph.
    pairs
        A CSV file, a table, or tuples of (query, target, score); the score may be left out. `read_pairs` says which
        labels it takes.
    node_type
        The type of the nodes, if their ids belong to several; or that of the queries and that of the targets.
    query_type, target_type
        The types of the queries and of the targets instead.
    max_length
        The most steps of a meta-path.
    measures
        Names in `MEASURES`, of measures without settings; all of these unless given, but for Jaccard, which ranks as
        PathSim does, and overlap.
    asymmetric
        Whether to try also meta-paths that are not a half-path walked out and back.
    conditions
        Conditions to try on the nodes of symmetric meta-paths between their ends, such as "paper: year >= 2020".
    budget
        The most multiplications of the search.
    seed
        Decides folds, resamples and negatives.
    progress
        Receives how many meta-paths were tried, of how many.

    >>> from neupath import load
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Jim", 0.0826446), ("Mary", "Ann", 2 / 7)]
    >>> explanation = infer(load("toy"), labels, max_length=4)
    >>> explanation.measure, [(part.metapath, part.weight) for part in explanation.parts]
    ('pathsim', [('author-paper-venue-paper-author', 1.0)])

    """
    types = join_types(node_type, query_type, target_type)
    labels = read_pairs(hin, pairs, types, bounded=False, examples=True)
    chosen = _measures_for(labels, _check_measures(measures))
    tried = read_conditions(hin, [conditions] if isinstance(conditions, str) else conditions)
    if tried and labels.is_across_types:
        raise QueryError("‹conditions› are tried on symmetric meta-paths, and these pairs go from one type to another")
    fit = _prepare(hin, labels, Extent(max_length, asymmetric, tried, budget), chosen, seed, progress)
    fit, rankers, hypotheses = fit.explanations()
    return fit.explain_ranking(labels, rankers) if rankers else fit.explain_scores(labels, *hypotheses)


@one_blas_thread()
def infer_scorer(hin: HIN, pairs: Pairs, *, max_length: int, budget: int = BUDGET, seed: int = 0) -> Combination:
    """Return the search that labels mean, as `infer` does, without the evidence for it."""
    measures = _measures_for(pairs, _check_measures(None))
    fit = _prepare(hin, pairs, Extent(max_length, budget=budget), measures, seed)
    fit, rankers, (hypothesis, _) = fit.explanations()
    best = rankers[0] if rankers else hypothesis
    return Combination(Part(best.measure, text, weight) for text, weight in fit.weights_of(best)).fit(hin)


def feature_table(
    hin: HIN, pairs: Any, *, node_type: NodeTypes, max_length: int, seed: int
) -> tuple[FeatureTable, list[MetaPath]]:
    """Return the features of labelled pairs along the candidates worth fitting, and these meta-paths."""
    labels = read_pairs(hin, pairs, node_type, bounded=False, examples=True)
    measures = _measures_for(labels, inferred_measures())
    fit = _prepare(hin, labels, Extent(max_length), measures, seed)
    return fit.table, fit.metapaths


def _check_measures(measures: Sequence[str] | None) -> list[str]:
    known = inferred_measures()
    if measures is None:
        return [name for name in known if MEASURES[name].inferred_by_default]
    if isinstance(measures, str) or not measures:
        raise QueryError(f"‹measures› is {measures!r}; give a list of some of {listed(known)}")
    for measure in measures:
        if measure not in known:
            raise QueryError(f"{measure!r} cannot be inferred; {listed(known)} can")
    return [measure for measure in known if measure in measures]


def _measures_for(labels: Pairs, measures: Sequence[str]) -> list[str]:
    """Return the measures that can explain labels: across types, only those that score paths between two types."""
    chosen = [name for name in measures if not (labels.is_across_types and MEASURES[name].symmetric_only)]
    if not chosen:
        others = [name for name in inferred_measures() if not MEASURES[name].symmetric_only]
        raise QueryError(
            f"{' and '.join(measures)} compare nodes of one type, and these pairs go from {labels.node_type} to "
            f"{labels.target_type} nodes; {listed(others)} can explain them"
        )
    return chosen


def _prepare(
    hin: HIN, labels: Pairs, extent: Extent, measures: Sequence[str], seed: int, progress: Progress = no_progress
) -> "_Fit":
    """Search candidates on a sample of the labels, and compute the best of them for all."""
    pairs = _pairs_to_explain(hin, labels, seed)
    check_whole("max_length", extent.max_length, 2, _LONGEST)
    check_whole("budget", extent.budget, 1)
    if not hin.schema.links_from(pairs.node_type):
        raise QueryError(f"no relation joins {pairs.node_type} nodes to others, so there is no path to infer")
    sample = sample_pairs(pairs)
    candidates: list[Candidate] = []
    searched = SearchReport(0, 0)
    if not pairs.is_across_types:
        candidates, searched = search_candidates(hin, sample, extent, progress)
    if extent.asymmetric or pairs.is_across_types:
        one_way, also_searched = search_one_way(hin, sample, extent)
        candidates, searched = candidates + one_way, searched.plus(also_searched)
    if not searched.total:
        raise QueryError(
            f"no meta-path of up to {extent.max_length} steps leads from {pairs.node_type} to {pairs.target_type} "
            f"nodes; raise ‹max_length›, or label pairs that are connected",
            parameter="max_length",
        )
    if not candidates:
        raise QueryError(
            f"the labelled {pairs.node_type} nodes reach too many others along every path, "
            f"or the budget of {extent.budget:,} multiplications is too small for the first step; raise it"
        )
    candidates = _shortlist(candidates, sample, measures)
    metapaths = [candidate.metapath for candidate in candidates]
    if len(sample) < len(pairs):
        candidates = list(map(Candidate, metapaths, compute_features(hin, metapaths, pairs)))
    return _Fit(hin, _to_table(candidates, pairs), metapaths, searched, measures, seed)


def _pairs_to_explain(hin: HIN, labels: Pairs, seed: int) -> Pairs:
    """Return the labels in one order, however they were given, with negatives where needed, and not too many."""
    check_whole("seed", seed, 0, 2**63 - 1)
    if not labels.scores.max() > 0 and labels.scores.any():
        raise QueryError("no label is above 0; paths add to a score, and cannot explain what is below 0 alone")
    if np.abs(labels.scores).max() > _LARGEST_LABEL:
        largest = float(np.abs(labels.scores).max())
        raise QueryError(f"a label is {largest:.4g}; scale labels down to at most {_LARGEST_LABEL:.0e}")
    pairs = labels if labels.scored else with_negatives(labels, hin.num_nodes(labels.target_type), seed)
    pairs = pairs.take(np.lexsort((pairs.targets, pairs.queries)))
    per_query = len(pairs) / len(np.unique(pairs.queries))
    return spread_queries(pairs, max(1, int(_MOST_PAIRS / per_query)))


def _shortlist(candidates: list[Candidate], pairs: Pairs, measures: Iterable[str]) -> list[Candidate]:
    """Keep the candidates that explain most of the labels alone or together, in the order of their length."""
    by_length = sorted(candidates, key=lambda candidate: len(candidate.metapath))
    if len(by_length) <= _SHORTLIST:
        return by_length
    table = _to_table(by_length, pairs)
    choices: list[list[int]] = []
    for measure in measures:
        alone = {
            p: explained_alone(candidate.features[measure], pairs.scores)
            for p, candidate in enumerate(by_length)
            if measure in candidate.features
        }
        ranked = sorted(alone, key=lambda p: (-round(alone[p], 9), p))
        together = promising_columns(table, measure)
        choices.append([p for pair in zip_longest(together, ranked[:_SHORTLIST]) for p in pair if p is not None])
    in_turn = [p for places in zip_longest(*choices) for p in places if p is not None]
    return [by_length[p] for p in sorted(list(dict.fromkeys(in_turn))[:_SHORTLIST])]


def _to_table(candidates: Sequence[Candidate], pairs: Pairs) -> FeatureTable:
    undefined = np.full(len(pairs), np.nan)
    features = {
        measure: np.stack([candidate.features.get(measure, undefined) for candidate in candidates], axis=1)
        for measure in inferred_measures()
    }
    lengths = [len(candidate.metapath) for candidate in candidates]
    largest = float(np.abs(pairs.scores).max()) or 1.0
    return FeatureTable(features, pairs.scores, pairs.queries, lengths, pairs.partners, largest, pairs.weights)


@dataclass(frozen=True)
class _Fit:
    """The features of the candidates worth fitting; it turns what is fitted to them into an `Inferred`."""

    hin: HIN
    table: FeatureTable
    metapaths: list[MetaPath]
    searched: SearchReport
    measures: Sequence[str]
    seed: int
    centred: bool = False
    """Whether a constant is fitted beside the paths."""

    def explanations(self) -> tuple["_Fit", list[Ranker], tuple[Hypothesis, list[Hypothesis]]]:
        """Return the rankers that explain yes/no labels, and the hypothesis that explains scores, with the others.

        The fit is loosened where neither a ranker nor an exact hypothesis explains the labels.
        """
        best, compared = choose_hypothesis(self.table, self.measures)
        scores = self.table.scores
        if np.isin(scores, (0.0, 1.0)).all() and np.ptp(scores) > 0 and (best.free or not best.exact):
            rankers = rank_hypotheses(self.table, self.measures, self.seed)
            if rankers:
                return self, rankers, (best, compared)
        if best.exact:
            return self, [], (best, compared)
        fit = self.loosened(best)
        return fit, [], choose_hypothesis(fit.fitted_table()[0], self.measures)

    def fitted_table(self) -> tuple[FeatureTable, float]:
        """Return the table that weights are fitted to, and the mean label that it leaves out."""
        return self.table.centre() if self.centred else (self.table, 0.0)

    def loosened(self, best: Hypothesis) -> "_Fit":
        """Return the fit with a constant, with negative weights, or with both, if that predicts held-out labels better.

        It is tried only where it explains these labels much better than the best hypothesis.
        """
        chosen, score = self, self._held_out_r2()
        for signed, centred in ((False, True), (True, False), (True, True)):
            other = replace(self, table=replace(self.table, signed=signed), centred=centred)
            if choose_hypothesis(other.fitted_table()[0], self.measures)[0].rmse > _BETTER * best.rmse:
                continue
            better = other._held_out_r2()
            if better > score + _LEAST_GAIN:
                chosen, score = other, better
        return chosen

    def _held_out_r2(self) -> float:
        held_out = cross_validate(self.table, self.measures, self.seed, self.centred)
        return r_squared(self.table.scores, held_out)

    def explain_scores(self, labels: Pairs, best: Hypothesis, compared: list[Hypothesis]) -> Inferred:
        table, mean = self.fitted_table()
        held_out = cross_validate(self.table, self.measures, self.seed, self.centred)
        several = len(self.table.scores) > 1  # one label is the same in every resample, which says nothing
        intervals = bootstrap_weights(best, table, self.seed) if several else [()] * len(best.weights)
        offset = 0.0
        if self.centred:
            offset = mean - float(self.table.means(best.measure)[list(best.columns)] @ np.array(best.weights))
        return self._inferred(
            labels, best, alternatives_of(best, compared, table), intervals,
            kind="scores", offset=offset, rmse=best.rmse, exact=best.exact and len(labels) > best.free,
            r2=r_squared(table.scores, best.predict(table)),
            held_out_rmse=rmse(self.table.scores, held_out),
            held_out_r2=r_squared(self.table.scores, held_out),
        )  # fmt: skip

    def explain_ranking(self, labels: Pairs, rankers: list[Ranker]) -> Inferred:
        best = rankers[0]
        others = [ranker for ranker in rankers[1:] if ranker.auc >= best.auc - max(best.error, 1e-9)]
        return self._inferred(
            labels, best, others, [()] * len(best.weights), kind="ranking",
            auc=auc(self.table.scores, best.predict(self.table)),
            held_out_auc=held_out_auc(self.table, self.measures, self.seed),
            chance_error=chance_error(self.table),
        )  # fmt: skip

    def _inferred(
        self,
        labels: Pairs,
        best: WeightedPaths,
        others: Sequence[WeightedPaths],
        intervals: Sequence[tuple[float, ...]],
        **evidence: Any,
    ) -> Inferred:
        weights = zip(self.weights_of(best), intervals, strict=True)
        parts = [InferredPart(*weight, *interval) for weight, interval in weights]
        alternatives = (
            Alternative(each.measure, self.weights_of(each), getattr(each, "rmse", None)) for each in others
        )
        return Inferred(
            self.hin, labels, best.measure, tuple(sorted(parts, key=lambda part: -abs(part.weight))),
            alternatives=tuple(alternatives), searched=self.searched, seed=self.seed, **evidence,
        )  # fmt: skip

    def weights_of(self, explanation: WeightedPaths) -> tuple[tuple[str, float], ...]:
        """Return the meta-paths of an explanation with their weights."""
        columns = zip(explanation.columns, explanation.weights, strict=True)
        return tuple((str(self.metapaths[p]), weight) for p, weight in columns)
