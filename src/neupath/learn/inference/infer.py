"""From labelled pairs to the meta-paths, weights and measure that explain them, and how sure that is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from neupath._runtime.progress import Progress, no_progress
from neupath.engine.hits import Hits
from neupath.engine.scorer import SearchOptions
from neupath.errors import QueryError, listed
from neupath.explain.explanation import CombinedExplanation, explain_combination
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id
from neupath.learn.inference.binary_labels import (
    Ranker,
    auc,
    chance_error,
    held_out_auc,
    rank_hypotheses,
    with_negatives,
)
from neupath.learn.inference.candidates import (
    BUDGET,
    MEASURES_INFERRED,
    Candidate,
    CandidateSearch,
    explained_alone,
    search_candidates,
    spread_queries,
)
from neupath.learn.inference.features import features_of, search_one_way
from neupath.learn.inference.fitting import (
    FeatureTable,
    Hypothesis,
    alternatives_of,
    bootstrap_weights,
    choose_hypothesis,
    cross_validate,
    promising_columns,
    r_squared,
)
from neupath.learn.inference.suggestions import Suggestion, suggest
from neupath.learn.labels import Pairs, read_pairs
from neupath.measures import Combination, Part

# ---- Inferred ------------------------------------------------------------------------------------
_MOST_COMPARED = 8
WELL, POORLY = 0.5, 0.1


@dataclass(frozen=True)
class InferredPart:
    """A meta-path and its weight; 9 in 10 resamples of the queries give it a weight between `low` and `high`.

    Rankings have no such interval: only the shares of the weights mean something there.
    """

    metapath: str
    weight: float
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, object]:
        return {"metapath": self.metapath, "weight": self.weight, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Alternative:
    """Another explanation that these labels cannot tell from the one chosen."""

    measure: str
    weights: tuple[tuple[str, float], ...]
    rmse: float | None

    def __str__(self) -> str:
        return " + ".join(_term(text, weight) for text, weight in self.weights) + f" by {self.measure}"

    def to_dict(self) -> dict[str, object]:
        parts = [{"metapath": text, "weight": weight} for text, weight in self.weights]
        return {"measure": self.measure, "metapaths": parts, "rmse": self.rmse}


def _term(text: str, weight: float) -> str:
    return text if abs(weight - 1) < 5e-4 else f"{weight:.3f}·({text})"


@dataclass(frozen=True, eq=False)
class Inferred:
    """The meta-paths that explain labelled pairs, under one measure, and the search they give.

    `kind` says whether scores were explained, or, from yes/no labels, a ranking. `held_out_rmse`, `held_out_r2` and
    `held_out_auc` are cross-validated: each query's labels are predicted from those of other queries.
    """

    hin: HIN = field(repr=False)
    pairs: Pairs = field(repr=False)
    measure: str
    parts: tuple[InferredPart, ...]
    kind: Literal["scores", "ranking"]
    rmse: float | None
    r2: float | None
    held_out_rmse: float | None
    held_out_r2: float | None
    auc: float | None
    alternatives: tuple[Alternative, ...]
    searched: CandidateSearch
    seed: int = 0
    exact: bool = False
    """Whether the labels are explained to the last digit."""
    held_out_auc: float | None = None
    """Nothing where there are too few labels to hold some out."""
    chance_error: float = 0.0
    """The standard deviation of a random ranking's AUC on as many labels."""

    @property
    def explains(self) -> bool:
        """Whether what was found predicts labels it has not seen."""
        if self.kind == "ranking":
            return self.held_out_auc is not None and self.held_out_auc > 0.5 + 2 * self.chance_error
        return self.exact or (self.held_out_r2 or 0.0) >= POORLY

    @property
    def verdict(self) -> str:
        """Say in a sentence how well the labels are explained."""
        if self.kind == "ranking":
            if self.held_out_auc is None:
                return f"too few labels to hold some out; on these, the AUC is {self.auc:.3f}"
            sure = "similar pairs rank above others" if self.explains else "no path tells similar pairs from others"
            return f"{sure} (held-out AUC {self.held_out_auc:.3f})"
        return self._exact_verdict() if self.exact else self._inexact_verdict()

    def _exact_verdict(self) -> str:
        if not self.pairs.scores.any():
            return "all labels are 0, as this path says; add pairs that are similar to know more"
        others = len(self.alternatives)
        if others:
            told = "one other explanation" if others == 1 else f"{others} other explanations"
            return f"explained exactly, and as well by {told}: label a suggested pair"
        return "explained exactly, and by nothing else that was tried"

    def _inexact_verdict(self) -> str:
        told = f"held-out R² {self.held_out_r2:.3f}, RMSE {self.held_out_rmse:.4f}"
        if (self.held_out_r2 or 0.0) >= WELL:
            return f"explained well, not exactly ({told})"
        if self.explains:
            return f"explained poorly ({told}); compare the learned models"
        return f"no combination of paths explains these labels ({told}); compare the learned models"

    @cached_property
    def scorer(self) -> Combination:
        """The search that the labels mean."""
        return Combination(Part(self.measure, part.metapath, part.weight) for part in self.parts).fit(self.hin)

    def top_k(self, query: Id, k: int = 10, **options: Unpack[SearchOptions]) -> Hits:
        """Return the k targets most similar to a query, as the labels mean it."""
        return self.scorer.top_k(query, k, **options)

    def score(self, query: Id, target: Id) -> float:
        """Return the score of one pair."""
        return self.scorer.score(query, target)

    def explain(self, query: Id, target: Id, limit: int = 10) -> CombinedExplanation:
        """Return the meta-paths and path instances behind one score, with their shares."""
        return explain_combination(self.scorer, query, target, limit)

    def suggest_pairs(self, count: int = 5, skip: Iterable[tuple[Id, Id]] = ()) -> list[Suggestion]:
        """Return the unlabelled pairs whose label would best tell the alternatives apart; none where there are none.

        The first score of each is that of the explanation chosen, the others those of the alternatives; for rankings
        they are relative to the query's highest. Pairs to `skip` are left out, either way round.
        """
        own = Alternative(self.measure, tuple((part.metapath, part.weight) for part in self.parts), self.rmse)
        compared = [own, *self.alternatives[:_MOST_COMPARED]]
        if len(compared) < 2:
            return []
        weights = [(other.measure, other.weights) for other in compared]
        return suggest(self.hin, weights, self.pairs, count, self.seed, skip, relative=self.kind == "ranking")

    def save(self, folder: str | Path) -> Path:
        """Write the scorer to a folder as readable JSON; `neupath.load_scorer` reads it back."""
        return self.scorer.save(folder)

    def report(self, suggested: int, skip: Iterable[tuple[Id, Id]] = ()) -> dict[str, object]:
        """Return what `infer --json` prints: what was found, and so many pairs worth labelling next."""
        pairs = self.suggest_pairs(suggested, skip) if suggested and self.alternatives else []
        return self.to_dict() | {"suggestions": [pair.to_dict() for pair in pairs]}

    def to_dict(self) -> dict[str, object]:
        """Return what was found as JSON can hold it."""
        return {
            "metapaths": [part.to_dict() for part in self.parts],
            "measure": self.measure,
            "kind": self.kind,
            "rmse": self.rmse,
            "r2": self.r2,
            "held_out_rmse": self.held_out_rmse,
            "held_out_r2": self.held_out_r2,
            "auc": self.auc,
            "held_out_auc": self.held_out_auc,
            "explains": self.explains,
            "verdict": self.verdict,
            "alternatives": [other.to_dict() for other in self.alternatives],
            "searched": {
                "tried": self.searched.tried,
                "candidates": self.searched.total,
                "too_large": self.searched.too_large,
                "leading_nowhere": self.searched.leading_nowhere,
                "stopped": self.searched.stopped,
            },
        }


def suggest_pairs(found: Inferred, count: int = 5) -> list[Suggestion]:
    """Return the unlabelled pairs whose label would best tell apart the explanations of `found`."""
    return found.suggest_pairs(count)


# ---- From labelled pairs to the meta-paths, weights and measure that explain them, and how sure that is
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
    progress: Progress = no_progress,
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
) -> tuple[FeatureTable, list[MetaPath]]:
    """Return the features of labelled pairs for the candidates worth fitting, and these."""
    labelled = _labels_of(hin, read_pairs(hin, pairs, node_type, bounded=False, examples=True), seed)
    table, metapaths, _ = _table(hin, labelled, max_length, MEASURES_INFERRED, False, BUDGET, no_progress)
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
) -> tuple[FeatureTable, list[MetaPath], CandidateSearch]:
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


def _to_table(candidates: Sequence[Candidate], pairs: Pairs) -> FeatureTable:
    undefined = np.full(len(pairs), np.nan)
    features = {
        measure: np.stack([candidate.features.get(measure, undefined) for candidate in candidates], axis=1)
        for measure in MEASURES_INFERRED
    }
    scale = float(np.abs(pairs.scores).max()) or 1.0
    return FeatureTable(
        features, pairs.scores, pairs.queries, [len(candidate.metapath) for candidate in candidates], scale
    )


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
    table: FeatureTable,
    metapaths: list[MetaPath],
    best: Hypothesis,
    compared: list[Hypothesis],
    searched: CandidateSearch,
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
    table: FeatureTable,
    metapaths: list[MetaPath],
    rankers: list[Ranker],
    searched: CandidateSearch,
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
