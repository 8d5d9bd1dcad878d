"""Inferred: what was found from labelled pairs, how sure it is, and the search it gives."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Unpack

from neupath.graph import HIN
from neupath.inference.candidates import Searched
from neupath.inference.explaining import CombinedExplanation, explain_combination
from neupath.inference.suggestions import Suggestion, suggest
from neupath.labels import Pairs
from neupath.measures import Combination, Part
from neupath.nodes import Id
from neupath.scorer import SearchOptions
from neupath.search import Hits

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
    searched: Searched
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
