"""Combination: a weighted sum of measures over several meta-paths, such as `infer` returns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from neupath.engine.scorer import Scorer
from neupath.engine.topk import Ranking, without_zeros
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Mask, Rows
from neupath.measures.path_measure import PathMeasure
from neupath.measures.registry import measure_named


@dataclass(frozen=True)
class Part:
    """One measure over one meta-path, and its weight in the sum.

    Parameters
    ----------
    measure
        A name in `MEASURES`.
    metapath
        The meta-path, as a text or a `MetaPath`.
    weight
        Its weight; a negative one lowers the score.

    >>> Part("pathsim", "APVPA", 0.75).to_dict()
    {'measure': 'pathsim', 'metapath': 'APVPA', 'weight': 0.75}
    """

    measure: str
    metapath: str | MetaPath
    weight: float

    def to_dict(self) -> dict[str, object]:
        return {"measure": self.measure, "metapath": str(self.metapath), "weight": self.weight}


def equal_parts(
    metapaths: Sequence[str | MetaPath], weights: Sequence[float] | None = None, measure: str = "pathsim"
) -> list[Part]:
    """Return the parts of a combination of one measure over several meta-paths; without weights, that of their mean.

    >>> [part.weight for part in equal_parts(["APA", "APVPA"])]
    [0.5, 0.5]
    """
    if weights is None:
        weights = [1.0 / len(metapaths)] * len(metapaths)
    if len(weights) != len(metapaths):
        given = "meta-path" if len(metapaths) == 1 else "meta-paths"
        raise QueryError(
            f"‹weights› has {len(weights)} numbers for {len(metapaths)} {given}; give one for each", parameter="weights"
        )
    if len({*map(str, metapaths)}) < len(metapaths):
        raise QueryError(
            "‹metapath› names a meta-path twice; name it once, with its whole weight", parameter="metapath"
        )
    return [Part(measure, metapath, weight) for metapath, weight in zip(metapaths, weights, strict=True)]


class Combination(Scorer):
    """Add up exact measures over several meta-paths, each with its weight.

        s(x, y) = Σ weight·measure(x, y)

    Parameters
    ----------
    parts
        The measures with their meta-paths and weights, as `Part` or as its `to_dict`.

    >>> from neupath import load
    >>> parts = [Part("pathsim", "APVPA", 0.75), Part("pathsim", "APA", 0.25)]
    >>> round(Combination(parts).fit(load("toy")).score("Mike", "Mary"), 4)
    0.6
    """

    name = "combination"
    exact = True

    def __init__(self, parts: Iterable[Part | dict[str, object]]) -> None:
        self.parts = tuple(part if isinstance(part, Part) else _part_of(part) for part in parts)
        if not self.parts:
            raise QueryError("a combination needs at least one measure over a meta-path")
        for part in self.parts:
            if not isinstance(part.weight, int | float) or not np.isfinite(part.weight):
                raise QueryError(f"the weight of {part.metapath} is {part.weight}; it must be finite")
        self.is_signed = any(part.weight < 0 for part in self.parts)

    def params(self) -> dict[str, object]:
        return {"parts": [part.to_dict() for part in self.parts]}

    def fit(self, hin: HIN) -> Self:
        self.hin_ = hin
        self.measures_: list[PathMeasure] = [measure.fit(hin) for measure in self._make_measures()]
        first = self.measures_[0]
        for other in self.measures_[1:]:
            if (other.source_type, other.target_type) != (first.source_type, first.target_type):
                raise QueryError(
                    f"{first.metapath_text} and {other.metapath_text} rank different types; combine meta-paths with "
                    f"the same first and last type"
                )
        return self

    def _make_measures(self) -> list[PathMeasure]:
        return [measure_named(part.measure, part.metapath) for part in self.parts]

    @property
    def source_type(self) -> str:
        self._fitted()
        return self.measures_[0].source_type

    @property
    def target_type(self) -> str:
        self._fitted()
        return self.measures_[0].target_type

    @property
    def metapath_text(self) -> str | None:
        self._fitted()
        return self.measures_[0].metapath_text if len(self.measures_) == 1 else None

    def described_parts(self) -> list[dict[str, object]]:
        """Return the parts as `search --json` prints them, with the meta-paths in their canonical spelling."""
        texts = [measure.metapath_text for measure in self.measures_]
        return [part.to_dict() | {"metapath": text} for part, text in zip(self.parts, texts, strict=True)]

    def pair_weights(self, x: int, y: int) -> list[float]:  # noqa: ARG002
        """Return by how much the score of each part counts in the score of two rows."""
        return [part.weight for part in self.parts]

    def score_rows(self, queries: Rows) -> Floats:
        self._fitted()
        total = np.zeros((len(queries), self.hin_.num_nodes(self.target_type)))
        for part, measure in zip(self.parts, self.measures_, strict=True):
            total += part.weight * measure.score_rows(queries)
        return total

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        """Add up what each part gives to the whole set."""
        self._fitted()
        total = np.zeros(self.hin_.num_nodes(self.target_type))
        for part, measure in zip(self.parts, self.measures_, strict=True):
            total += part.weight * measure.set_scores(members, weights)
        return total

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        """Return the k best related targets of each query; a single part uses the engine's kernel."""
        if len(self.parts) == 1 and self.parts[0].weight > 0:
            ranking = self.measures_[0].rank_rows(queries, skipped, k, candidates, threads)
            return Ranking(ranking.rows, ranking.scores * self.parts[0].weight, ranking.sizes)
        return without_zeros(super().rank_rows(queries, skipped, k, candidates, threads))


def _part_of(content: dict[str, object]) -> Part:
    try:
        return Part(str(content["measure"]), str(content["metapath"]), float(str(content["weight"])))
    except (KeyError, TypeError, ValueError) as error:
        raise QueryError(f"{content!r} is not a part of a combination; give measure, metapath and weight") from error
